"""Grower: trees, again and again, on the same binned rows with other weights.

Large nodes are split by histograms, their rows shared out among threads; the subtrees below are deferred, and grown
side by side; within them, nodes of few rows go on with sorted rows. Every decision is made on integer sums, and nodes
are numbered by their place in the tree, so none of this shows.
"""

from cpython.ref cimport PyObject
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from kfhe.engine.trees.grown_tree cimport GrownTree, assemble, take_over
from kfhe.engine.trees.growth cimport Growth, OpenNode, Problem, RowSet, Subtree, Workspace, add_node, clear
from kfhe.engine.trees.histogram_splitter cimport grow_by_histogram
from kfhe.engine.trees.partitioner cimport RowSets, gather
from kfhe.engine.trees.pruner cimport cut_back
from kfhe.engine.trees.splitter cimport Rules, scratch_size

import numpy as np

cdef enum:
    PARALLEL_CELLS = 32768  # rows times features from which threads are worth their start
    SUBTREES_PER_THREAD = 2  # and some more: large nodes above are split by all threads, with little to do for each
    SUBTREES = 4
    MAX_SORTED_ROWS = 8192
    MAX_DEFERRED_ROWS = 40960  # that fit a core's cache, in a table that is not wide
    BLOCK = 8192  # rows that are taken over together
    MIN_SENT_ROWS = 1024  # rows of a subtree that one worker grows, at least,
    SENT_PER_WORKER = 4  # and about how many it grows: more of them are balanced better, and take more rounds of sums
    GROUPS = 4  # of the rows of a table, about a fourth is copied together at a time, if that leaves work for all
    MANY_ROWS = 32768  # that one thread also takes subtree by subtree, to have those of one together in memory

# Rows below which sorting beats histograms, per cell of an average histogram (docs/evidence/speed.md).
cdef double SORTED_ROWS_PER_CELL = 0.5
cdef int64_t MIN_SORTED_ROWS = 96
# Best first, a leaf costs a scan of its histograms; if there are more cells in an average one than this, per row that
# there is for a leaf, it is faster to grow the tree whole and to cut it back (docs/evidence/speed.md).
cdef double BEST_FIRST_CELLS_PER_ROW = 10.0


cdef cppclass LargerFirst:
    const OpenNode *roots

    bint call "operator()"(int64_t a, int64_t b) noexcept nogil const:
        return this.roots[a].end - this.roots[a].start > this.roots[b].end - this.roots[b].start


cdef void grow_subtree(
    const Growth *growth, RowSet *row_set, Subtree *subtree, Workspace *work, const OpenNode *deferred
) noexcept nogil:
    """Grow a subtree that was deferred."""
    cdef const Problem *problem = growth.problem
    cdef const Subtree *parent = growth.subtree
    cdef Growth own = growth[0]
    cdef OpenNode root = deferred[0]
    cdef int64_t n_classes = problem.n_classes
    clear(subtree)
    add_node(subtree, n_classes, parent.nodes[root.index].count)
    subtree.nodes[0].start, subtree.nodes[0].end = parent.nodes[root.index].start, parent.nodes[root.index].end
    memcpy(subtree.totals.data(), &parent.totals[root.index * n_classes], n_classes * sizeof(int64_t))
    root.index = 0
    own.subtree, own.work, own.row_set = subtree, work, row_set
    own.deferred_rows, own.n_threads = 0, 1
    grow_by_histogram(&own, &root)


cdef int64_t count_block(
    const int32_t[::1] labels, const int32_t *weights, int64_t block, int64_t n_rows, int64_t *totals
) noexcept nogil:
    """Add up the classes of a block of rows; return how many have a positive weight."""
    cdef int64_t i, n = 0
    for i in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
        totals[labels[i]] += weights[i]
        n += weights[i] > 0
    return n


cdef void load_block(
    const int32_t[::1] labels, const int32_t *weights, int64_t block, int64_t n_rows, uint32_t *rows,
    uint16_t *classes, int32_t *row_weights,
) noexcept nogil:
    """Write down those rows of a block that have a positive weight."""
    cdef int64_t i, n = 0
    cdef uint32_t found[BLOCK]
    for i in range(block * BLOCK, min(n_rows, (block + 1) * BLOCK)):
        found[n] = <uint32_t> i
        n += weights[i] > 0
    for i in range(n):
        rows[i] = found[i]
        classes[i] = <uint16_t> labels[found[i]]
        row_weights[i] = weights[found[i]]


cdef class Grower:
    """Grows trees on one binned table.

    Parameters
    ----------
    codes : uint8 array of shape (n_features, n_rows)
        The bin of each value.
    n_bins : int32 array of shape (n_features,)
        Number of bins of each feature, the one for missing values counted in.
    categorical : uint8 array of shape (n_features,)
        1 for features whose bins have no order.
    low, high : arrays of shape (n_features, 256)
        Smallest and largest value in each bin of the numeric features.
    labels : int32 array of shape (n_rows,)
        Class of each row.
    n_classes : int
        Number of classes.
    rules : dict
        How to grow: a value for each field of `Rules` in rules.h, but for the number of the tree.
    n_threads : int
        Number of threads that may be used.
    force_parallel : bool
        Use them on small tables too.
    exchange : Exchange or None
        What the workers tell each other of which each has some of the rows, and grows the same tree.
    """

    cdef object arguments  # of the constructor, for pickling
    cdef object exchange
    cdef Problem problem
    cdef const uint8_t[:, ::1] codes
    cdef const int32_t[::1] n_bins
    cdef const uint8_t[::1] categorical
    cdef const double[:, ::1] low, high
    cdef const int32_t[::1] labels
    cdef int n_threads, n_workers
    cdef vector[int32_t] features
    cdef vector[int64_t] offsets
    cdef vector[Workspace*] workspaces
    cdef vector[Subtree*] subtrees
    cdef vector[uint32_t] rows, members
    cdef vector[uint16_t] classes
    cdef vector[int32_t] weights

    def __cinit__(
        self, codes, n_bins, categorical, low, high, labels, int64_t n_classes, rules, int n_threads=1,
        bint force_parallel=False, exchange=None,
    ):
        self.arguments = (codes, n_bins, categorical, low, high, labels, n_classes, rules, n_threads, force_parallel)
        self.codes, self.n_bins, self.categorical = codes, n_bins, categorical
        self.low, self.high, self.labels = low, high, labels
        self.n_threads = n_threads
        self.exchange = exchange
        self.n_workers = 1 if exchange is None else exchange.n
        self.problem.rules = {**rules, "tree": 0}
        self.problem.force_parallel = force_parallel
        self.describe_table(n_classes)
        self.make_workspaces()

    cdef int describe_table(self, int64_t n_classes) except -1:
        cdef Problem *problem = &self.problem
        cdef int64_t f
        problem.codes = &self.codes[0, 0]
        problem.n_features, problem.n_rows = self.codes.shape[0], self.codes.shape[1]
        problem.n_classes = n_classes
        problem.n_bins = &self.n_bins[0]
        problem.categorical = &self.categorical[0]
        problem.low, problem.high = &self.low[0, 0], &self.high[0, 0]
        problem.total_bins = 0
        for f in range(problem.n_features):
            self.features.push_back(f)
            self.offsets.push_back(problem.total_bins)
            problem.total_bins += self.n_bins[f]
        problem.features, problem.offsets = self.features.data(), self.offsets.data()
        problem.cells = <double> (problem.total_bins * problem.n_classes) / max(<int64_t> 1, problem.n_features)
        problem.sorted_rows = min(MAX_SORTED_ROWS, max(MIN_SORTED_ROWS, int(SORTED_ROWS_PER_CELL * problem.cells)))
        return 0

    cdef int make_workspaces(self) except -1:
        """Make a workspace for each thread, and the first subtree."""
        cdef int64_t n_classes = self.problem.n_classes, n_features = self.problem.n_features
        cdef Workspace *work
        for _ in range(max(1, self.n_threads)):
            work = new Workspace()
            work.n_slots = 0
            work.splits.resize(n_features)
            work.left.resize(self.n_threads * n_classes)
            work.scratch.resize(self.n_threads * scratch_size(n_classes))
            work.category_histogram.resize(256 * (n_classes + 1))
            work.drawn.resize(n_features)
            memset(&work.sparse_histogram, 0, sizeof(work.sparse_histogram))
            self.workspaces.push_back(work)
        self.subtrees.push_back(new Subtree())
        return 0

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.workspaces.size()):
            del self.workspaces[i]
        for i in range(self.subtrees.size()):
            del self.subtrees[i]

    def __reduce__(self):
        return Grower, self.arguments

    def grow(self, const int32_t[::1] weights, bint counts, uint64_t tree, uint64_t key=1):
        """Grow a tree on the rows of positive weight, and find the leaf of every row.

        ``counts``: weights are numbers of rows; else each row counts as one in the min_samples settings. ``tree``
        is the tree's number, which its nodes draw their features by; ``key`` names its root, if that is a node of a
        larger tree.
        """
        cdef const Rules *rules = &self.problem.rules
        cdef GrownTree grown = GrownTree(self.problem.n_classes)
        cdef int64_t n_subtrees
        self.problem.rules.tree = tree
        self.problem.weighted = not counts
        with nogil:
            if self.problem.force_parallel or self.problem.n_rows * self.problem.n_features >= PARALLEL_CELLS:
                grown.n_threads = self.n_threads
            grown.row_leaves.resize(self.problem.n_rows)
            self.load(&weights[0], grown.n_threads)
        if self.exchange is not None:
            self.sum_root()
        with nogil:
            n_subtrees = self.grow_nodes(key, grown.n_threads)
        if self.exchange is not None and self.exchange.failure is not None:
            raise self.exchange.failure
        with nogil:
            cut_back(
                self.subtrees, n_subtrees, self.problem.n_classes, rules.max_leaf_nodes, rules.cp, grown.n_threads
            )
            assemble(grown, self.subtrees, n_subtrees, self.members.data())
            grown.find_leaves(&self.problem, &weights[0])
        return grown

    cdef void load(self, const int32_t *weights, int n_threads) noexcept nogil:
        """Take over the rows of positive weight, and start the tree with its root."""
        cdef int64_t n, b, k, n_rows = self.problem.n_rows, n_classes = self.problem.n_classes, total = 0
        cdef int64_t n_blocks = (n_rows + BLOCK - 1) // BLOCK
        cdef vector[int64_t] starts = vector[int64_t](n_blocks + 1)
        cdef vector[int64_t] totals = vector[int64_t](n_blocks * n_classes)
        cdef Subtree *subtree = self.subtrees[0]
        if n_blocks == 1:  # even a team of one thread would cost more than a small tree's rows do
            starts[1] = count_block(self.labels, weights, 0, n_rows, totals.data())
        else:
            for b in prange(n_blocks, num_threads=n_threads, schedule="dynamic"):
                starts[b + 1] = count_block(self.labels, weights, b, n_rows, &totals[b * n_classes])
        clear(subtree)
        add_node(subtree, n_classes, 0)
        memset(subtree.totals.data(), 0, n_classes * sizeof(int64_t))
        for b in range(n_blocks):
            starts[b + 1] += starts[b]
            for k in range(n_classes):
                subtree.totals[k] += totals[b * n_classes + k]
                total += totals[b * n_classes + k]
        n = starts[n_blocks]
        self.rows.resize(n)
        self.classes.resize(n)
        self.weights.resize(n)
        self.members.resize(n)
        if n_blocks == 1:
            load_block(
                self.labels, weights, 0, n_rows, self.rows.data(), self.classes.data(), self.weights.data()
            )
        else:
            for b in prange(n_blocks, num_threads=n_threads, schedule="dynamic"):
                load_block(
                    self.labels, weights, b, n_rows, &self.rows[starts[b]], &self.classes[starts[b]],
                    &self.weights[starts[b]],
                )
        subtree.nodes[0].count = n if self.problem.weighted else total
        subtree.nodes[0].end = <uint32_t> n

    cdef int64_t grow_nodes(self, uint64_t key, int n_threads) noexcept nogil:
        """Grow the raw nodes: in one go, or large nodes first and the subtrees below side by side.

        Returns of how many subtrees the tree is.
        """
        cdef int64_t n = <int64_t> self.members.size()
        cdef vector[OpenNode] roots
        cdef RowSet row_set
        cdef Growth growth
        cdef OpenNode root
        memset(&row_set, 0, sizeof(RowSet))
        row_set.codes = self.problem.codes
        row_set.stride = self.problem.n_rows
        row_set.rows = self.rows.data()
        row_set.classes = self.classes.data()
        row_set.weights = self.weights.data()
        memset(&growth, 0, sizeof(Growth))
        growth.problem, growth.row_set = &self.problem, &row_set
        growth.subtree, growth.work = self.subtrees[0], self.workspaces[0]
        growth.members, growth.deferred = self.members.data(), &roots
        growth.n_threads = n_threads
        if self.exchange is not None:
            growth.exchange = <PyObject *> self.exchange
            n = self.subtrees[0].nodes[0].count
        if self.grows_best_first(n):
            growth.max_leaves = self.problem.rules.max_leaf_nodes
        elif growth.exchange != NULL:
            growth.deferred_rows = max(<int64_t> MIN_SENT_ROWS, n // (SENT_PER_WORKER * self.n_workers))
        elif n_threads > 1 or n > MANY_ROWS:
            growth.deferred_rows = max(1, min(MAX_DEFERRED_ROWS, n // (SUBTREES_PER_THREAD * max(2, n_threads) + SUBTREES)))
            if not self.problem.force_parallel:
                growth.deferred_rows = max(growth.deferred_rows, self.problem.sorted_rows)
        memset(&root, 0, sizeof(OpenNode))
        root.end = <int64_t> self.members.size()
        root.key = key
        root.histogram = -1
        grow_by_histogram(&growth, &root)
        if growth.exchange == NULL:
            self.grow_deferred(&growth)
        elif not growth.broken and roots.size():
            with gil:
                self.grow_elsewhere(roots)
        return 1 + <int64_t> roots.size()

    cdef void sum_root(self) except *:
        """Let the root have the rows of all workers."""
        cdef Subtree *subtree = self.subtrees[0]
        totals = np.asarray(<int64_t[:self.problem.n_classes]> subtree.totals.data())
        sums = self.exchange.sum(np.append(totals, subtree.nodes[0].count))
        totals[:] = sums[:-1]
        subtree.nodes[0].count = sums[-1]

    cdef void grow_elsewhere(self, const vector[OpenNode] &roots) noexcept:
        """Grow the subtrees that were put off, each on the worker that all rows of it are sent to."""
        cdef int64_t t, n_roots = <int64_t> roots.size()
        cdef Subtree *subtree = self.subtrees[0]
        try:
            while <int64_t> self.subtrees.size() < n_roots + 1:
                self.subtrees.push_back(new Subtree())
            counts = [subtree.nodes[roots[t].index].count for t in range(n_roots)]
            owners = self.exchange.shares(counts)
            rows = [self.rows_below(roots[t]) for t in range(n_roots)]
            sent = [[rows[t] for t in some] for some in owners]
            received = self.exchange.swap([[self.packed(some) for some in those] for those in sent])
            grown = [
                self.grown_from([pieces[i] for pieces in received], roots[t])
                for i, t in enumerate(owners[self.exchange.rank])
            ]
            answers = [[(tree, leaves[q]) for tree, leaves in grown] for q in range(len(owners))]
            for some, answer in zip(owners, self.exchange.swap(answers)):
                for t, (tree, leaves) in zip(some, answer):
                    take_over(self.subtrees[t + 1], tree, leaves, rows[t], roots[t].start, self.members.data())
        except BaseException as error:
            self.exchange.failure = error

    cdef object rows_below(self, OpenNode root):
        """Return the rows here of a subtree, where they are in its order."""
        cdef int64_t n = root.end - root.start
        if n == 0:
            return np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint16), np.empty(0, dtype=np.int32)
        return (
            np.array(<uint32_t[:n]> &self.rows[root.start]),
            np.array(<uint16_t[:n]> &self.classes[root.start]),
            np.array(<int32_t[:n]> &self.weights[root.start]),
        )

    cdef object packed(self, some):
        """Return bins, classes and weights of rows, in few bytes."""
        rows, classes, weights = some
        return np.asarray(self.codes).take(rows, axis=1), in_few_bytes(classes), in_few_bytes(weights)

    cdef object grown_from(self, pieces, OpenNode root):
        """Grow a subtree on rows that workers have sent; return it, and for each worker the leaves of its rows."""
        codes, classes, weights = (np.concatenate(each, axis=-1) for each in zip(*pieces))
        depth = self.problem.rules.max_depth - root.depth if self.problem.rules.max_depth else 0
        rules = {**self.arguments[7], "max_depth": depth, "max_leaf_nodes": 0, "cp": 0.0}
        table = np.ascontiguousarray(codes), *self.arguments[1:5]
        grower = Grower(*table, classes.astype(np.int32), self.problem.n_classes, rules, self.n_threads)
        tree = grower.grow(weights.astype(np.int32), not self.problem.weighted, self.problem.rules.tree, root.key)
        leaves = np.split(tree.leaves, np.cumsum([len(piece[1]) for piece in pieces])[:-1])
        return (tree.nodes, tree.gains, tree.leaf_weights, tree.category_sets), leaves

    cdef bint grows_best_first(self, int64_t n_rows) noexcept nogil:
        """Whether so few leaves are to be kept that it pays to grow no others."""
        cdef const Problem *problem = &self.problem
        cdef const Rules *rules = &problem.rules
        return rules.max_leaf_nodes and rules.max_leaf_nodes * problem.cells <= BEST_FIRST_CELLS_PER_ROW * n_rows

    cdef void grow_deferred(self, const Growth *growth) noexcept nogil:
        """Grow the subtrees that were put off, in groups whose rows are copied together."""
        cdef int64_t i, group, n_rows = 0, n_groups, n_roots = <int64_t> growth.deferred.size()
        cdef const OpenNode *roots = growth.deferred.data()
        cdef vector[int64_t] by_size
        cdef LargerFirst larger_first
        cdef RowSets row_sets  # not kept: of several growers, one has a use for them
        while <int64_t> self.subtrees.size() < n_roots + 1:
            self.subtrees.push_back(new Subtree())
        for i in range(n_roots):
            by_size.push_back(i)
            n_rows += roots[i].end - roots[i].start
        larger_first.roots = roots
        sort(by_size.begin(), by_size.end(), larger_first)
        n_groups = max(1, min(1 + GROUPS * n_rows // self.problem.n_rows, n_roots // (SUBTREES_PER_THREAD * growth.n_threads + SUBTREES)))
        for group in range(n_groups):
            self.grow_group(growth, by_size, group, n_groups, &row_sets)

    cdef void grow_group(
        self, const Growth *growth, const vector[int64_t] &by_size, int64_t group, int64_t n_groups, RowSets *row_sets
    ) noexcept nogil:
        """Grow a group of subtrees, large and small, the largest first, each into a subtree of its own."""
        cdef int64_t i
        cdef vector[int64_t] numbers
        cdef vector[OpenNode] roots
        for i in range(<int64_t> by_size.size()):
            if i % n_groups == group:
                numbers.push_back(by_size[i])
                roots.push_back(growth.deferred[0][by_size[i]])
        gather(&self.problem, growth.row_set, roots, row_sets, growth.n_threads)
        for i in prange(<int64_t> roots.size(), num_threads=growth.n_threads, schedule="dynamic", chunksize=1):
            grow_subtree(
                growth, &row_sets.of_root[i], self.subtrees[numbers[i] + 1], self.workspaces[threadid()], &roots[i]
            )


def in_few_bytes(numbers):
    """Return whole numbers as those of the shortest kind that holds them."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))
