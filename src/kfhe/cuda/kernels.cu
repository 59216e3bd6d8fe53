// All kernels, as one program.
#include "tree.h"
