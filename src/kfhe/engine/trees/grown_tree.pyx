"""A grown tree: its nodes, and the leaf of each training row.

It consists of subtrees. Everything below a node is stored together, so the sizes of the subtrees suffice to write all
of them in parallel.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport GrownNode, Problem, Subtree, add_node, clear
from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, Node
from kfhe.engine.trees.leaf_votes cimport heaviest, write_shares
from kfhe.engine.trees.memory cimport CACHE_LINE, prefetch

import numpy as np

cdef enum:
    PARALLEL_ROWS = 8192  # rows from which threads share the search for leaves,
    PARALLEL_NODES = 8192  # and nodes from which they share its preparation
    BLOCK = 1024  # rows that walk down at a time, to hide the latency of memory
    FEW_COLUMNS = 64  # up to which rows are stored row by row


cdef copied(const void *data, size_t size, dtype):
    """Copy some bytes into an array."""
    result = np.empty(size, dtype=np.uint8)
    cdef uint8_t[::1] target = result
    if size:
        memcpy(&target[0], data, size)
    return result.view(dtype)


cdef struct CodeNode:  # a node of 8 bytes, so that many fit into a cache
    int32_t left  # left child; for leaves, -1 minus the number of the leaf
    uint16_t feature
    uint8_t first_right  # numeric: as many bins, from this one on, go right as ``n_right`` says
    uint8_t n_right


cdef CodeNode code_node_of(const Node *node, const int32_t *n_bins) noexcept nogil:
    cdef CodeNode made
    cdef int32_t missing
    made.left, made.feature, made.first_right, made.n_right = node.left, node.feature, 0, 0
    if node.kind == LEAF:
        made.left = -1 - node.left
    elif not node.kind & CATEGORICAL:
        missing = n_bins[node.feature] - 1
        made.first_right = <uint8_t> (node.cut + 1)
        made.n_right = <uint8_t> (missing - node.cut - ((node.kind & MISSING_LEFT) != 0))
    return made


cdef void code_nodes_of(
    const Node *nodes, int64_t n_nodes, const int32_t *n_bins, vector[CodeNode] &code_nodes, int n_threads
) noexcept nogil:
    """Write the nodes of a tree for rows given by their bins."""
    cdef int64_t i
    code_nodes.resize(n_nodes)
    if n_threads == 1 or n_nodes < PARALLEL_NODES:
        for i in range(n_nodes):
            code_nodes[i] = code_node_of(&nodes[i], n_bins)
    else:
        for i in prange(n_nodes, num_threads=n_threads, schedule="dynamic", chunksize=PARALLEL_NODES):
            code_nodes[i] = code_node_of(&nodes[i], n_bins)


cdef inline int32_t child_of(
    const Node *node, const uint64_t *category_sets, const Problem *problem, int64_t row
) noexcept nogil:
    """Child of a categorical split for a training row."""
    cdef uint8_t code = problem.codes[node.feature * problem.n_rows + row]
    cdef const uint64_t *bits = &category_sets[4 * <int64_t> node.threshold]
    return node.left + (not (bits[code // 64] >> (code % 64)) & 1)


cdef void walk(
    const CodeNode *code_nodes, const Node *nodes, const uint64_t *category_sets, const Problem *problem, bint plain,
    uint32_t *rows, int64_t n, int32_t *leaves,
) noexcept nogil:
    """Let the rows of a block walk down a tree; ``plain``: there are no categories."""
    cdef int32_t places[BLOCK]
    cdef const CodeNode *at
    cdef uint8_t code
    cdef int64_t i, f, n_left
    memset(places, 0, n * sizeof(int32_t))
    # All bins are prefetched first. This is not a function, because compilers drop functions that only prefetch.
    if n and problem.n_features <= FEW_COLUMNS:
        for f in range(problem.n_features):
            for i in range((rows[n - 1] - rows[0]) // CACHE_LINE + 1):
                prefetch(&problem.codes[f * problem.n_rows + rows[0] + i * CACHE_LINE])
    while n:
        n_left = 0  # rows that are not in a leaf yet
        for i in range(n):
            at = &code_nodes[places[i]]
            if at.left < 0:
                leaves[rows[i]] = -1 - at.left
                continue
            rows[n_left] = rows[i]
            if plain or not nodes[places[i]].kind & CATEGORICAL:
                code = problem.codes[at.feature * problem.n_rows + rows[i]]
                places[n_left] = at.left + (<uint8_t> (code - at.first_right) < at.n_right)
            else:
                places[n_left] = child_of(&nodes[places[i]], category_sets, problem, rows[i])
            n_left += 1
        n = n_left


cdef void find_unseen(
    const CodeNode *code_nodes, const Node *nodes, const uint64_t *category_sets, const Problem *problem, bint plain,
    const int32_t *weights, int64_t block, int32_t *leaves,
) noexcept nogil:
    """Find the leaves of the rows of a block that were not used for growing."""
    cdef uint32_t rows[BLOCK]
    cdef int64_t i, n = 0
    for i in range(block * BLOCK, min(problem.n_rows, (block + 1) * BLOCK)):
        rows[n] = <uint32_t> i
        n += weights[i] <= 0
    walk(code_nodes, nodes, category_sets, problem, plain, rows, n, leaves)


cdef class GrownTree:
    """One tree, made by a grower or `from_arrays`, and stored in a `TreeStore`."""

    def __cinit__(self, int64_t n_classes):
        self.n_classes = n_classes
        self.n_threads = 1

    @classmethod
    def from_arrays(
        cls, const uint8_t[::1] nodes, const double[::1] gains, const int32_t[:, ::1] leaf_weights,
        const uint64_t[:, ::1] category_sets, const int32_t[::1] leaves, int n_threads=1,
    ):
        """Make a tree from its attributes; ``n_threads`` may share its rows."""
        cdef GrownTree tree = cls(leaf_weights.shape[1])
        cdef int64_t n_bytes = gains.shape[0] * sizeof(Node)
        if nodes.shape[0] != n_bytes or n_bytes == 0:
            raise ValueError(f"{len(gains)} gains take {n_bytes} bytes of nodes, got {len(nodes)}")
        tree.node_list.resize(gains.shape[0])
        memcpy(tree.node_list.data(), &nodes[0], n_bytes)
        tree.gain_list.resize(gains.shape[0])
        memcpy(tree.gain_list.data(), &gains[0], gains.shape[0] * sizeof(double))
        tree.weight_list.resize(leaf_weights.shape[0] * leaf_weights.shape[1])
        if tree.weight_list.size():
            memcpy(tree.weight_list.data(), &leaf_weights[0, 0], tree.weight_list.size() * sizeof(int32_t))
        tree.set_list.resize(category_sets.shape[0] * 4)
        if tree.set_list.size():
            memcpy(tree.set_list.data(), &category_sets[0, 0], tree.set_list.size() * sizeof(uint64_t))
        tree.row_leaves.resize(leaves.shape[0])
        if tree.row_leaves.size():
            memcpy(tree.row_leaves.data(), &leaves[0], tree.row_leaves.size() * sizeof(int32_t))
        tree.n_threads = n_threads
        return tree

    @property
    def nodes(self):
        """All nodes, the root first, as bytes. Siblings are neighbours."""
        return copied(self.node_list.data(), self.node_list.size() * sizeof(Node), np.uint8)

    @property
    def gains(self):
        """How much each node's split lowers the weighted Gini impurity."""
        return copied(self.gain_list.data(), self.gain_list.size() * sizeof(double), np.float64)

    @property
    def leaf_weights(self):
        """Weight of the training rows of each class in each leaf."""
        weights = copied(self.weight_list.data(), self.weight_list.size() * sizeof(int32_t), np.int32)
        return weights.reshape(-1, self.n_classes)

    @property
    def category_sets(self):
        """Bins that go left at categorical splits, as bits."""
        sets = copied(self.set_list.data(), self.set_list.size() * sizeof(uint64_t), np.uint64)
        return sets.reshape(-1, 4)

    @property
    def leaves(self):
        """Number of the leaf that each training row is in."""
        return copied(self.row_leaves.data(), self.row_leaves.size() * sizeof(int32_t), np.int32)

    def votes(self, leaf_votes):
        """Return the votes for each training row, given those of the leaves."""
        return leaf_votes[self.leaves]

    def class_votes(self):
        """Return the class that each training row's leaf votes for (int32)."""
        cdef int64_t i, n_leaves = <int64_t> self.weight_list.size() // self.n_classes
        cdef vector[int32_t] leaf_classes = vector[int32_t](n_leaves)
        result = np.empty(self.row_leaves.size(), dtype=np.int32)
        cdef int32_t[::1] votes = result
        with nogil:
            if self.n_threads == 1 or votes.shape[0] < PARALLEL_ROWS:
                for i in range(n_leaves):
                    leaf_classes[i] = heaviest(&self.weight_list[i * self.n_classes], self.n_classes)
                for i in range(votes.shape[0]):
                    votes[i] = leaf_classes[self.row_leaves[i]]
            else:
                for i in prange(n_leaves, num_threads=self.n_threads, schedule="static"):
                    leaf_classes[i] = heaviest(&self.weight_list[i * self.n_classes], self.n_classes)
                for i in prange(votes.shape[0], num_threads=self.n_threads, schedule="dynamic", chunksize=PARALLEL_ROWS):
                    votes[i] = leaf_classes[self.row_leaves[i]]
        return result

    def share_votes(self):
        """Return the class shares in each training row's leaf."""
        cdef int64_t i, n_leaves = <int64_t> self.weight_list.size() // self.n_classes
        cdef vector[double] shares = vector[double](n_leaves * self.n_classes)
        result = np.empty((self.row_leaves.size(), self.n_classes))
        cdef double[:, ::1] votes = result
        with nogil:
            for i in range(n_leaves):
                write_shares(
                    &self.weight_list[i * self.n_classes], self.n_classes, &shares[i * self.n_classes]
                )
            for i in range(votes.shape[0]):
                memcpy(
                    &votes[i, 0], &shares[self.row_leaves[i] * self.n_classes], self.n_classes * sizeof(double)
                )
        return result

    cdef void find_leaves(self, const Problem *problem, const int32_t *weights) noexcept nogil:
        """Find the leaves of the rows that were not used for growing: they walk down the tree."""
        cdef int64_t block, n_blocks = (problem.n_rows + BLOCK - 1) // BLOCK
        cdef const Node *nodes = self.node_list.data()
        cdef const uint64_t *sets = self.set_list.data()
        cdef bint plain = self.set_list.size() == 0
        cdef int32_t *leaves = self.row_leaves.data()
        cdef vector[CodeNode] code_nodes
        code_nodes_of(nodes, <int64_t> self.node_list.size(), problem.n_bins, code_nodes, self.n_threads)
        if self.n_threads == 1 or problem.n_rows < PARALLEL_ROWS:
            for block in range(n_blocks):
                find_unseen(code_nodes.data(), nodes, sets, problem, plain, weights, block, leaves)
            return
        for block in prange(n_blocks, num_threads=self.n_threads, schedule="dynamic", chunksize=4):
            find_unseen(code_nodes.data(), nodes, sets, problem, plain, weights, block, leaves)


# ---------------------------------------------------------------- assembly


cdef struct Size:
    int64_t n_nodes  # below the root
    int64_t n_leaves
    int64_t n_sets  # of categories

# Sizes of one subtree, and of those deferred below it.
cdef struct Placement:
    Size size
    Size start  # what is stored before it
    int32_t root  # position of its root; -1: it was cut off

# A node of a subtree, and its position.
cdef struct Visit:
    int32_t node
    int32_t place


cdef void assemble(
    GrownTree tree, vector[Subtree*] &subtrees, int64_t n_subtrees, const uint32_t *members
) noexcept nogil:
    """Write a tree after growing and pruning, subtree by subtree; the first one has the root.

    ``members`` are the training rows that it was grown on, in the order of the leaves; they get their leaves.
    """
    cdef vector[Placement] placements = vector[Placement](n_subtrees)
    cdef int64_t i
    for i in prange(1, n_subtrees, num_threads=tree.n_threads, schedule="static"):
        count(subtrees[i], placements.data(), &placements[i])
        placements[i].root = -1
    count(subtrees[0], placements.data(), &placements[0])
    tree.node_list.resize(1 + placements[0].size.n_nodes)
    tree.gain_list.resize(1 + placements[0].size.n_nodes)
    tree.weight_list.resize(placements[0].size.n_leaves * tree.n_classes)
    tree.set_list.resize(4 * placements[0].size.n_sets)
    placements[0].start.n_nodes = 1
    write(tree, subtrees[0], placements.data(), &placements[0], members)
    for i in prange(1, n_subtrees, num_threads=tree.n_threads, schedule="static"):
        if placements[i].root >= 0:
            write(tree, subtrees[i], placements.data(), &placements[i], members)


cdef inline int64_t deferred_at(const GrownNode *node) noexcept nogil:
    """The deferred subtree that continues at a node, from 1; 0: none."""
    return -1 - node.stored.left if node.stored.left < -1 else 0


cdef void add(Size *size, const Size *other) noexcept nogil:
    size.n_nodes += other.n_nodes
    size.n_leaves += other.n_leaves
    size.n_sets += other.n_sets


cdef void count(const Subtree *subtree, const Placement *placements, Placement *own) noexcept nogil:
    """Count the contents of a subtree."""
    cdef vector[int32_t] waiting = vector[int32_t](1)
    cdef const GrownNode *node
    while waiting.size():
        node = &subtree.nodes[waiting.back()]
        waiting.pop_back()
        if deferred_at(node):
            add(&own.size, &placements[deferred_at(node)].size)
        elif node.stored.left < 0:
            own.size.n_leaves += 1
        else:
            own.size.n_nodes += 2
            own.size.n_sets += (node.stored.kind & CATEGORICAL) != 0
            waiting.push_back(node.stored.left)
            waiting.push_back(node.stored.left + 1)


cdef void write(
    GrownTree tree, const Subtree *subtree, Placement *placements, const Placement *own, const uint32_t *members
) noexcept nogil:
    """Write a subtree, and set the positions of those below."""
    cdef vector[Visit] visits = vector[Visit](1)
    cdef Size next = own.start
    cdef const GrownNode *node
    cdef Placement *below
    cdef Visit visit, left, right
    visits[0].place = own.root
    while visits.size():
        visit = visits.back()
        visits.pop_back()
        node = &subtree.nodes[visit.node]
        if deferred_at(node):
            below = &placements[deferred_at(node)]
            below.root, below.start = visit.place, next
            add(&next, &below.size)
        elif node.stored.left < 0:
            write_leaf(tree, subtree, &visit, <int32_t> next.n_leaves, members)
            next.n_leaves += 1
        else:
            left.node, left.place = node.stored.left, <int32_t> next.n_nodes
            right.node, right.place = left.node + 1, left.place + 1
            write_split(tree, subtree, &visit, &next)
            next.n_nodes += 2
            next.n_sets += (node.stored.kind & CATEGORICAL) != 0
            visits.push_back(right)
            visits.push_back(left)


cdef inline void write_leaf(
    GrownTree tree, const Subtree *subtree, const Visit *visit, int32_t leaf, const uint32_t *members
) noexcept nogil:
    cdef const GrownNode *node = &subtree.nodes[visit.node]
    cdef int32_t *leaves = tree.row_leaves.data()
    cdef int64_t k
    memset(&tree.node_list[visit.place], 0, sizeof(Node))
    tree.node_list[visit.place].left = leaf
    for k in range(tree.n_classes):
        tree.weight_list[leaf * tree.n_classes + k] = <int32_t> subtree.totals[visit.node * tree.n_classes + k]
    for k in range(node.start, node.end):
        leaves[members[k]] = leaf


cdef inline void write_split(GrownTree tree, const Subtree *subtree, const Visit *visit, const Size *next) noexcept nogil:
    cdef const GrownNode *grown = &subtree.nodes[visit.node]
    cdef Node *node = &tree.node_list[visit.place]
    cdef int64_t k, own_set = <int64_t> grown.stored.threshold
    node[0] = grown.stored
    node.left = <int32_t> next.n_nodes
    if node.kind & CATEGORICAL:
        node.threshold = <double> next.n_sets
        for k in range(4):
            tree.set_list[4 * next.n_sets + k] = subtree.category_sets[4 * own_set + k]
    tree.gain_list[visit.place] = grown.gain


cdef int take_over(Subtree *subtree, tree, leaves, rows, int64_t start, uint32_t *members) except -1:
    """Read a subtree grown by a worker, and sort this worker's rows of it by leaf.

    ``leaves`` are those of the first of ``rows``; from ``start`` on, ``members`` are these rows.
    """
    cdef const uint8_t[::1] bytes_of_nodes = tree[0]
    cdef const double[::1] gains = tree[1]
    cdef const int32_t[:, ::1] weights = tree[2]
    cdef const uint64_t[:, ::1] sets = tree[3]
    cdef const int32_t[::1] leaf_of = leaves
    cdef const uint32_t[::1] row_of = rows[0]
    cdef const Node *nodes = <const Node *> &bytes_of_nodes[0]
    cdef int64_t i, k, q, n_classes = weights.shape[1], n_leaves = weights.shape[0], n_nodes = gains.shape[0]
    cdef vector[int64_t] ends = vector[int64_t](n_leaves + 1)
    cdef vector[int64_t] places
    clear(subtree)
    for i in range(leaf_of.shape[0]):
        ends[leaf_of[i] + 1] += 1
    ends[0] = start
    for i in range(n_leaves):
        ends[i + 1] += ends[i]
    places = ends
    for i in range(leaf_of.shape[0]):
        members[places[leaf_of[i]]] = row_of[i]
        places[leaf_of[i]] += 1
    for i in range(n_nodes):
        add_node(subtree, n_classes, 0)
    for i in range(n_nodes - 1, -1, -1):  # children come after their parents
        subtree.nodes[i].stored, subtree.nodes[i].gain = nodes[i], gains[i]
        if nodes[i].kind == LEAF:
            subtree.nodes[i].stored.left = -1
            subtree.nodes[i].start, subtree.nodes[i].end = ends[nodes[i].left], ends[nodes[i].left + 1]
            for k in range(n_classes):
                subtree.totals[i * n_classes + k] = weights[nodes[i].left, k]
        else:
            q = nodes[i].left
            subtree.nodes[i].start, subtree.nodes[i].end = subtree.nodes[q].start, subtree.nodes[q + 1].end
            for k in range(n_classes):
                subtree.totals[i * n_classes + k] = (
                    subtree.totals[q * n_classes + k] + subtree.totals[(q + 1) * n_classes + k]
                )
    for i in range(sets.shape[0]):
        for k in range(4):
            subtree.category_sets.push_back(sets[i, k])
    return 0


# ---------------------------------------------------------------- leaves of other rows


def leaves_of_codes(
    const uint8_t[::1] nodes, const uint64_t[:, ::1] category_sets, const uint8_t[:, ::1] codes,
    const int32_t[::1] n_bins, known=None,
):
    """Return the leaf of each row (int32), given the bins of its values: (n_features, n_rows).

    ``known`` has known leaves, and -1 for the others; it is filled in and returned.
    """
    cdef int64_t i, size, end, start = 0, n = codes.shape[1], n_nodes = nodes.shape[0] // <int64_t> sizeof(Node)
    cdef bint plain = category_sets.shape[0] == 0
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    cdef const Node *all_nodes = <const Node *> &nodes[0]
    cdef vector[CodeNode] code_nodes
    cdef uint32_t rows[BLOCK]
    cdef Problem problem
    result = np.full(n, -1, dtype=np.int32) if known is None else known
    cdef int32_t[::1] leaves = result
    if n == 0:
        return result
    memset(&problem, 0, sizeof(Problem))
    problem.codes, problem.n_rows, problem.n_bins = &codes[0, 0], n, &n_bins[0]
    problem.n_features = codes.shape[0]
    with nogil:
        code_nodes_of(all_nodes, n_nodes, &n_bins[0], code_nodes, 1)
        while start < n:
            size, end = 0, min(n, start + BLOCK)
            for i in range(start, end):
                rows[size] = <uint32_t> i
                size += leaves[i] < 0
            walk(code_nodes.data(), all_nodes, sets, &problem, plain, rows, size, &leaves[0])
            start = end
    return result
