"""What the growing of a tree works on: the problem, its rows, the nodes so far and room to work in."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.splitter cimport NodeTotals, Row, Split, Tally

cdef struct Problem:
    const uint8_t *codes  # bins, one feature after the other
    const uint8_t *lines  # the same, one row after the other; NULL: not at hand
    int64_t n_rows
    int64_t n_features
    int64_t n_classes
    const int32_t *n_bins  # the missing bin counted in
    const uint8_t *categorical
    const double *low  # 256 per feature: the smallest value in each bin
    const double *high
    const int32_t *features  # all of them, in their order
    int64_t *offsets  # where each feature's histogram starts, in bins
    int64_t total_bins
    int64_t max_depth
    int64_t min_split
    int64_t min_leaf
    int64_t max_features
    int64_t sorted_rows
    bint weighted  # weights and counts differ
    bint force_parallel
    bint random_cuts
    uint64_t seed
    uint64_t tree


# The rows of a task: a copy of their bins if that pays, and what splits them, in the order of the nodes.
cdef struct Frame:
    const uint8_t *codes
    int64_t stride
    uint32_t *rows  # positions in codes
    uint16_t *classes
    int32_t *weights
    const uint32_t *origin  # which training row a position is; NULL: the position itself


cdef struct RawNode:
    int32_t left  # -1: a leaf; below: task -2 - left goes on here
    int32_t feature
    int32_t category_set
    bint missing_left
    uint8_t cut
    double threshold
    double gain
    int64_t count
    uint32_t start  # its rows, in the order of the nodes
    uint32_t end


cdef struct Pending:
    int32_t node
    int32_t depth
    int64_t start
    int64_t end
    uint64_t key  # names the node by its path from the root
    int32_t histogram  # slot in the pool, -1: none yet
    int32_t first_active  # sorted nodes: their features that still vary
    int32_t n_active
    int32_t first_entry  # of their sorted orders,
    int32_t n_entries  # some of which may be of rows that are in leaves by now


cdef cppclass Buffer:
    vector[RawNode] nodes
    vector[int64_t] totals  # per node, the weight of each class
    vector[uint64_t] category_sets


# Room to work in, for one thread; it is kept from tree to tree.
cdef cppclass Workspace:
    vector[Pending] stack
    vector[int32_t] drawn  # features in the order in which a node tries them
    vector[int64_t] left  # for searches: a number per class and thread
    vector[double] scratch
    # Nodes of many rows: the pool of histograms, the split of each feature, rows on their way right
    vector[int32_t] histograms
    vector[int32_t] count_histograms
    vector[int32_t] free_slots
    int32_t n_slots
    vector[Split] splits
    vector[uint32_t] spare_rows
    vector[uint16_t] spare_classes
    vector[int32_t] spare_weights
    # Nodes of few rows: the rows, in the order of the nodes (members) and of each feature
    vector[Row] rows
    vector[uint64_t] pairs
    Tally tally
    vector[uint8_t] codes
    vector[uint16_t] members
    vector[uint32_t] orders
    vector[uint16_t] spare
    vector[uint8_t] side
    vector[uint8_t] found  # the bins of a node's rows
    vector[int32_t] category_histogram
    vector[int32_t] active  # features that vary, node after node


# All that the growing of one subtree reads and writes.
cdef struct Growth:
    const Problem *problem
    Frame *frame
    Buffer *buffer
    Workspace *work
    uint32_t *members  # training rows, in the order of the leaves
    int64_t task_rows  # nodes of at most so many rows are put off,
    vector[Pending] *tasks  # as tasks for later
    int n_threads  # that share the features of a large node
    int64_t max_leaves  # to grow, the best first; 0: all there are
    PyObject *exchange  # what adds up over workers of which each has some of the rows; NULL: all are here
    bint broken  # the others can't be reached any more: come to an end
    int64_t first  # sorted nodes: where their rows start in the frame,
    int64_t n_sorted  # and how many there are


cdef void clear(Buffer *buffer) noexcept nogil
cdef int32_t add_node(Buffer *buffer, int64_t n_classes, int64_t count) noexcept nogil
cdef int32_t add_children(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil
cdef void settle_children(
    const Problem *problem, Buffer *buffer, int32_t node, int64_t n_left, int64_t n_of_all
) noexcept nogil
cdef NodeTotals totals_of(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil
cdef bint is_terminal(const Problem *problem, Buffer *buffer, int32_t node, int64_t depth) noexcept nogil
cdef void record(
    const Problem *problem, Buffer *buffer, int32_t node, const Split *split, const NodeTotals *totals
) noexcept nogil


cdef inline int64_t rows_of(const Growth *growth, const Pending *task) noexcept nogil:
    """Number of a node's rows, wherever these are."""
    return task.end - task.start if growth.exchange == NULL else growth.buffer.nodes[task.node].count


cdef inline int64_t origin_of(const Frame *frame, int64_t position) noexcept nogil:
    """Training row at a position of the frame."""
    return position if frame.origin == NULL else frame.origin[position]
