"""What the growing of a tree works on: the problem, its rows, the nodes so far, and memory to work in."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport Node
from kfhe.engine.trees.splitter cimport NodeTotals, Row, Rules, SparseHistogram, Split

cdef struct Problem:
    Rules rules
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
    double cells  # of the histogram of a feature, on average
    int64_t sorted_rows  # of a node, up to which sorting beats histograms
    bint weighted  # weights and counts differ
    bint force_parallel


# Some rows: a copy of their bins if that pays, and what is parted between nodes, in the order of the nodes.
cdef struct RowSet:
    const uint8_t *codes
    int64_t stride
    uint32_t *rows  # positions in codes
    uint16_t *classes
    int32_t *weights
    const uint32_t *origin  # which training row a position is; NULL: the position itself


# A node of a subtree that is grown. Its left child is numbered within the subtree; -1: a leaf; below: the deferred
# subtree -1 - left goes on here.
cdef struct GrownNode:
    Node stored
    double gain
    int64_t count
    uint32_t start  # its rows, in the order of the nodes
    uint32_t end


cdef cppclass Subtree:
    vector[GrownNode] nodes
    vector[int64_t] totals  # per node, the weight of each class
    vector[uint64_t] category_sets


# A node that is to be split.
cdef struct OpenNode:
    int32_t index
    int32_t depth
    int64_t start
    int64_t end
    uint64_t key  # names the node by its path from the root
    int32_t histogram  # slot in the pool, -1: none yet
    int32_t first_active  # sorted rows: the features that still vary
    int32_t n_active
    int32_t first_entry  # of the sorted orders,
    int32_t n_entries  # some of which may be of rows that are in leaves by now


# Memory to work in, for one thread; it is kept from tree to tree.
cdef cppclass Workspace:
    vector[OpenNode] stack
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
    SparseHistogram sparse_histogram
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
    RowSet *row_set
    Subtree *subtree
    Workspace *work
    uint32_t *members  # training rows, in the order of the leaves
    int64_t deferred_rows  # nodes of at most so many rows are put off,
    vector[OpenNode] *deferred  # as roots of subtrees for later
    int n_threads  # that share the features of a large node
    int64_t max_leaves  # to grow, the best first; 0: all there are
    PyObject *exchange  # what adds up over workers of which each has some of the rows; NULL: all are here
    bint broken  # the others can't be reached any more: come to an end
    int64_t first  # sorted rows: where they start in the row set,
    int64_t n_sorted  # and how many there are


# What works on nodes: there is one for many rows and one for few.
cdef struct Splitter:
    # Leave a node to another splitter, or to later; return whether that was done.
    bint (*defers)(Growth *growth, OpenNode *node) noexcept nogil
    # Search some features for a better split.
    void (*search)(
        Growth *growth, OpenNode *node, const NodeTotals *totals, const int32_t *features, int64_t n, Split *best
    ) noexcept nogil
    # Move the rows that go left to the front, add their classes up in the left child, return how many they are.
    int64_t (*partition)(Growth *growth, const OpenNode *node, const Split *split, int64_t *left_totals) noexcept nogil
    # Leave to the children what the node's search has found out and they can use.
    void (*hand_on)(Growth *growth, const OpenNode *node, OpenNode *small, OpenNode *large) noexcept nogil
    # Write down which training rows are in a leaf.
    void (*close)(Growth *growth, const OpenNode *node) noexcept nogil


cdef void sum_cells(Growth *growth, int32_t *cells, int64_t n) noexcept nogil
cdef void clear(Subtree *subtree) noexcept nogil
cdef int32_t add_node(Subtree *subtree, int64_t n_classes, int64_t count) noexcept nogil
cdef bint stays_leaf(const Growth *growth, const OpenNode *node) noexcept nogil
cdef bint find_split(Growth *growth, const Splitter *splitter, OpenNode *node, Split *split) noexcept nogil
cdef void split_node(
    Growth *growth, const Splitter *splitter, const OpenNode *node, const Split *split, OpenNode *small, OpenNode *large
) noexcept nogil
cdef void grow_depth_first(Growth *growth, const OpenNode *root, const Splitter *splitter) noexcept nogil
cdef void grow_best_first(Growth *growth, const OpenNode *root, const Splitter *splitter) noexcept nogil


cdef inline int64_t rows_of(const Growth *growth, const OpenNode *node) noexcept nogil:
    """Number of a node's rows, wherever these are."""
    return node.end - node.start if growth.exchange == NULL else growth.subtree.nodes[node.index].count


cdef inline int64_t origin_of(const RowSet *row_set, int64_t position) noexcept nogil:
    """Training row at a position of the row set."""
    return position if row_set.origin == NULL else row_set.origin[position]
