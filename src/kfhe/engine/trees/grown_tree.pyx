"""A grown tree: its nodes as they are stored, and the leaf of each training row."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, Node
from kfhe.engine.trees.memory cimport CACHE_LINE, prefetch
from kfhe.engine.trees.nodes cimport Problem
from kfhe.engine.trees.votes cimport heaviest, write_shares

import numpy as np

cdef enum:
    PARALLEL_ROWS = 8192  # rows from which threads share the search for their leaves,
    PARALLEL_NODES = 8192  # and nodes from which they prepare it
    BLOCK = 1024  # rows that walk down the tree side by side, so that memory is never waited for alone
    FEW_COLUMNS = 64  # of which rows that walk read the most


cdef copied(const void *data, size_t size, dtype):
    """Copy some bytes into an array."""
    result = np.empty(size, dtype=np.uint8)
    cdef uint8_t[::1] target = result
    if size:
        memcpy(&target[0], data, size)
    return result.view(dtype)


cdef struct Fork:  # a node of 8 bytes, of which a cache holds many
    int32_t left  # left child; leaf: -1 and less, for the numbers 0 and more
    uint16_t feature
    uint8_t first_right  # numeric: as many bins, from this one on, go right as ``n_right`` says
    uint8_t n_right


cdef Fork fork_of(const Node *node, const int32_t *n_bins) noexcept nogil:
    cdef Fork fork
    cdef int32_t missing
    fork.left, fork.feature, fork.first_right, fork.n_right = node.left, node.feature, 0, 0
    if node.kind == LEAF:
        fork.left = -1 - node.left
    elif not node.kind & CATEGORICAL:
        missing = n_bins[node.feature] - 1
        fork.first_right = <uint8_t> (node.cut + 1)
        fork.n_right = <uint8_t> (missing - node.cut - ((node.kind & MISSING_LEFT) != 0))
    return fork


cdef void plant(
    const Node *nodes, int64_t n_nodes, const int32_t *n_bins, vector[Fork] &forks, int n_threads
) noexcept nogil:
    """Write the nodes of a tree as forks."""
    cdef int64_t i
    forks.resize(n_nodes)
    if n_threads == 1 or n_nodes < PARALLEL_NODES:
        for i in range(n_nodes):
            forks[i] = fork_of(&nodes[i], n_bins)
    else:
        for i in prange(n_nodes, num_threads=n_threads, schedule="dynamic", chunksize=PARALLEL_NODES):
            forks[i] = fork_of(&nodes[i], n_bins)


cdef inline int32_t child_of(
    const Node *node, const uint64_t *category_sets, const Problem *problem, int64_t row
) noexcept nogil:
    """Child of a categorical split that a training row goes to."""
    cdef uint8_t code = problem.codes[node.feature * problem.n_rows + row]
    cdef const uint64_t *bits = &category_sets[4 * <int64_t> node.threshold]
    return node.left + (not (bits[code // 64] >> (code % 64)) & 1)


cdef void walk(
    const Fork *forks, const Node *nodes, const uint64_t *category_sets, const Problem *problem, bint plain,
    uint32_t *rows, int64_t n, int32_t *leaves,
) noexcept nogil:
    """Let rows of a block walk down a tree; ``plain``: there are no categories."""
    cdef int32_t places[BLOCK]
    cdef const Fork *fork
    cdef uint8_t code
    cdef int64_t i, f, n_left
    memset(places, 0, n * sizeof(int32_t))
    # Their bins are asked for all at once. Compilers drop a function that does nothing else, so it is not one.
    if n and problem.n_features <= FEW_COLUMNS:
        for f in range(problem.n_features):
            for i in range((rows[n - 1] - rows[0]) // CACHE_LINE + 1):
                prefetch(&problem.codes[f * problem.n_rows + rows[0] + i * CACHE_LINE])
    while n:
        n_left = 0  # that are not in a leaf yet
        for i in range(n):
            fork = &forks[places[i]]
            if fork.left < 0:
                leaves[rows[i]] = -1 - fork.left
                continue
            rows[n_left] = rows[i]
            if plain or not nodes[places[i]].kind & CATEGORICAL:
                code = problem.codes[fork.feature * problem.n_rows + rows[i]]
                places[n_left] = fork.left + (<uint8_t> (code - fork.first_right) < fork.n_right)
            else:
                places[n_left] = child_of(&nodes[places[i]], category_sets, problem, rows[i])
            n_left += 1
        n = n_left


cdef void settle(
    const Fork *forks, const Node *nodes, const uint64_t *category_sets, const Problem *problem, bint plain,
    const int32_t *weights, int64_t block, int32_t *leaves,
) noexcept nogil:
    """Find the leaves of those of a block of rows that growing has not seen."""
    cdef uint32_t rows[BLOCK]
    cdef int64_t i, n = 0
    for i in range(block * BLOCK, min(problem.n_rows, (block + 1) * BLOCK)):
        rows[n] = <uint32_t> i
        n += weights[i] <= 0
    walk(forks, nodes, category_sets, problem, plain, rows, n, leaves)


cdef class GrownTree:
    """One tree. A grower makes it, or `from_arrays`; a `TreeStore` keeps it."""

    def __cinit__(self, int64_t n_classes):
        self.n_classes = n_classes
        self.n_threads = 1

    @classmethod
    def from_arrays(
        cls, const uint8_t[::1] nodes, const double[::1] gains, const int32_t[:, ::1] leaf_weights,
        const uint64_t[:, ::1] category_sets, const int32_t[::1] leaves,
    ):
        """Make a tree of what its attributes show."""
        cdef GrownTree tree = cls(leaf_weights.shape[1])
        cdef int64_t i, k, n_bytes = gains.shape[0] * sizeof(Node)
        if nodes.shape[0] != n_bytes or n_bytes == 0:
            raise ValueError(f"{len(gains)} gains take {n_bytes} bytes of nodes, got {len(nodes)}")
        tree.node_list.resize(gains.shape[0])
        memcpy(tree.node_list.data(), &nodes[0], n_bytes)
        for i in range(gains.shape[0]):
            tree.gain_list.push_back(gains[i])
        for i in range(leaf_weights.shape[0]):
            for k in range(leaf_weights.shape[1]):
                tree.weight_list.push_back(leaf_weights[i, k])
        for i in range(category_sets.shape[0]):
            for k in range(4):
                tree.set_list.push_back(category_sets[i, k])
        for i in range(leaves.shape[0]):
            tree.row_leaves.push_back(leaves[i])
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
        """Return what the leaf of each training row votes for, by what each leaf does."""
        return leaf_votes[self.leaves]

    def class_votes(self):
        """Return the class that each training row's leaf votes for (int32)."""
        cdef int64_t i, n_leaves = <int64_t> self.weight_list.size() // self.n_classes
        cdef vector[int32_t] leaf_classes = vector[int32_t](n_leaves)
        result = np.empty(self.row_leaves.size(), dtype=np.int32)
        cdef int32_t[::1] votes = result
        with nogil:
            for i in range(n_leaves):
                leaf_classes[i] = heaviest(&self.weight_list[i * self.n_classes], self.n_classes)
            if self.n_threads == 1 or votes.shape[0] < PARALLEL_ROWS:
                for i in range(votes.shape[0]):
                    votes[i] = leaf_classes[self.row_leaves[i]]
            else:
                for i in prange(votes.shape[0], num_threads=self.n_threads, schedule="dynamic", chunksize=PARALLEL_ROWS):
                    votes[i] = leaf_classes[self.row_leaves[i]]
        return result

    def share_votes(self):
        """Return each training row's shares of the classes in its leaf."""
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
        """Find the leaves of the rows that growing has not seen: they walk down the tree."""
        cdef int64_t block, n_blocks = (problem.n_rows + BLOCK - 1) // BLOCK
        cdef const Node *nodes = self.node_list.data()
        cdef const uint64_t *sets = self.set_list.data()
        cdef bint plain = self.set_list.size() == 0
        cdef int32_t *leaves = self.row_leaves.data()
        cdef vector[Fork] forks
        plant(nodes, <int64_t> self.node_list.size(), problem.n_bins, forks, self.n_threads)
        if self.n_threads == 1 or problem.n_rows < PARALLEL_ROWS:
            for block in range(n_blocks):
                settle(forks.data(), nodes, sets, problem, plain, weights, block, leaves)
            return
        for block in prange(n_blocks, num_threads=self.n_threads, schedule="dynamic", chunksize=4):
            settle(forks.data(), nodes, sets, problem, plain, weights, block, leaves)


def leaves_of_codes(
    const uint8_t[::1] nodes, const uint64_t[:, ::1] category_sets, const uint8_t[:, ::1] codes,
    const int32_t[::1] n_bins, known=None,
):
    """Return the leaf of each row (int32), by the bins of its values: (n_features, n_rows).

    ``known`` has the leaves that need not be looked for, and -1 for the others; it is filled in and returned.
    """
    cdef int64_t i, size, end, start = 0, n = codes.shape[1], n_nodes = nodes.shape[0] // <int64_t> sizeof(Node)
    cdef bint plain = category_sets.shape[0] == 0
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    cdef const Node *all_nodes = <const Node *> &nodes[0]
    cdef vector[Fork] forks
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
        plant(all_nodes, n_nodes, &n_bins[0], forks, 1)
        while start < n:
            size, end = 0, min(n, start + BLOCK)
            for i in range(start, end):
                rows[size] = <uint32_t> i
                size += leaves[i] < 0
            walk(forks.data(), all_nodes, sets, &problem, plain, rows, size, &leaves[0])
            start = end
    return result
