// All kernels, as one program.
#include "rows.h"
#include "votes.h"
