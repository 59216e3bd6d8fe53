"""Growing: trees, again and again, on the same binned rows with other weights.

Large nodes are split by histograms, their features shared out among threads; the subtrees below are
tasks that run side by side; within them, nodes of few rows go on with sorted orders. Every decision
is made on integer sums, and nodes are numbered by their place in the tree, so none of this shows.
"""

from cpython.ref cimport PyObject
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from kfhe.engine.trees.assembly cimport assemble
from kfhe.engine.trees.frames cimport Frames, gather
from kfhe.engine.trees.grown_tree cimport GrownTree
from kfhe.engine.trees.histogram_nodes cimport grow_by_histogram
from kfhe.engine.trees.nodes cimport Buffer, Frame, Growth, Pending, Problem, Workspace, add_node, clear
from kfhe.engine.trees.pruning cimport cut_back
from kfhe.engine.trees.shared cimport take_over
from kfhe.engine.trees.splitter cimport scratch_size

import numpy as np

cdef enum:
    PARALLEL_CELLS = 32768  # rows times features from which threads are worth their start
    TASKS_PER_THREAD = 4
    MAX_SORTED_ROWS = 8192
    MAX_TASK_ROWS = 40960  # that fit a core's cache, in a table that is not wide
    GROUPS = 4  # of the rows of a table, about a fourth is copied together at a time
    MIN_SENT_ROWS = 1024  # rows of a subtree that one worker grows, at least,
    SENT_PER_WORKER = 8  # and about how many it grows
    MANY_ROWS = 32768  # that one thread also takes in tasks, to have those of a task together in memory

# Rows below which sorting beats histograms, per cell of an average histogram. Measured.
cdef double SORTED_ROWS_PER_CELL = 0.5
cdef int64_t MIN_SORTED_ROWS = 96
# Best first, a leaf costs a scan of its histograms; if there are more cells in an average one than this, per row that
# there is for a leaf, it is faster to grow the tree whole and to cut it back. Measured.
cdef double BEST_FIRST_CELLS_PER_ROW = 2.0


cdef cppclass LargerFirst:
    const Pending *tasks

    bint call "operator()"(int64_t a, int64_t b) noexcept nogil const:
        return this.tasks[a].end - this.tasks[a].start > this.tasks[b].end - this.tasks[b].start


cdef void run_task(
    const Growth *growth, Frame *frame, Buffer *buffer, Workspace *work, const Pending *task
) noexcept nogil:
    """Grow a put-off subtree into a buffer of its own."""
    cdef const Problem *problem = growth.problem
    cdef const Buffer *parent = growth.buffer
    cdef Growth own = growth[0]
    cdef Pending root = task[0]
    cdef int64_t n_classes = problem.n_classes
    clear(buffer)
    add_node(buffer, n_classes, parent.nodes[task.node].count)
    buffer.nodes[0].start, buffer.nodes[0].end = parent.nodes[task.node].start, parent.nodes[task.node].end
    memcpy(buffer.totals.data(), &parent.totals[task.node * n_classes], n_classes * sizeof(int64_t))
    root.node = 0
    own.buffer, own.work, own.frame = buffer, work, frame
    own.task_rows, own.n_threads = 0, 1
    grow_by_histogram(&own, &root)


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
    n_classes, max_depth, min_samples_split, min_samples_leaf, max_leaf_nodes, max_features : int
        Settings; 0 means no limit for `max_depth` and `max_leaf_nodes`.
    random_cuts : bool
        Draw the cuts of numeric features, instead of looking for the best.
    cp : float
        Complexity parameter of the pruning, 0: none.
    seed : int
        For `max_features` and `random_cuts`.
    n_threads : int
        Number of threads that may be used.
    force_parallel : bool
        Use them on small tables too.
    exchange : Exchange or None
        What the workers tell each other of which each has some of the rows, and grows the same tree.
    lines : uint8 array of shape (n_rows, n_features) or None
        The bins row by row. With many rows and few leaves, this is faster. A pickled grower comes back without them.
    """

    cdef object arguments  # of the constructor, for pickling
    cdef object exchange
    cdef Problem problem
    cdef const uint8_t[:, ::1] codes, lines
    cdef const int32_t[::1] n_bins
    cdef const uint8_t[::1] categorical
    cdef const double[:, ::1] low, high
    cdef const int32_t[::1] labels
    cdef int64_t max_leaves
    cdef double cp
    cdef int n_threads
    cdef int n_workers
    cdef vector[int32_t] features
    cdef vector[int64_t] offsets
    cdef vector[Workspace*] workspaces
    cdef vector[Buffer*] buffers
    cdef vector[uint32_t] rows, members
    cdef vector[uint16_t] classes
    cdef vector[int32_t] weights

    def __cinit__(
        self, codes, n_bins, categorical, low, high, labels, n_classes, *, max_depth, min_samples_split,
        min_samples_leaf, max_leaf_nodes, max_features, random_cuts=False, cp, seed, n_threads, force_parallel=False,
        lines=None, exchange=None,
    ):
        self.arguments = (
            (codes, n_bins, categorical, low, high, labels, n_classes),
            dict(
                max_depth=max_depth, min_samples_split=min_samples_split, min_samples_leaf=min_samples_leaf,
                max_leaf_nodes=max_leaf_nodes, max_features=max_features, random_cuts=random_cuts, cp=cp, seed=seed,
                n_threads=n_threads, force_parallel=force_parallel,
            ),
        )
        if lines is not None and lines.shape != codes.shape[::-1]:
            raise ValueError(f"lines of shape {lines.shape} are not those of codes of shape {codes.shape}")
        self.codes, self.lines, self.n_bins, self.categorical = codes, lines, n_bins, categorical
        self.low, self.high, self.labels = low, high, labels
        self.max_leaves, self.cp = max_leaf_nodes, cp
        self.exchange = exchange
        self.n_workers = 1 if exchange is None else exchange.n
        self.n_threads = n_threads
        self.problem.max_depth = max_depth if max_depth else 1 << 30
        self.problem.min_split, self.problem.min_leaf = min_samples_split, min_samples_leaf
        self.problem.max_features, self.problem.seed = max_features, seed
        self.problem.force_parallel, self.problem.random_cuts = force_parallel, random_cuts
        self.describe_table(n_classes)
        self.make_room(n_threads)

    cdef int describe_table(self, int64_t n_classes) except -1:
        cdef Problem *problem = &self.problem
        cdef int64_t f
        problem.codes = &self.codes[0, 0]
        problem.lines = &self.lines[0, 0] if self.lines is not None else NULL
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
        cells = problem.total_bins * problem.n_classes / problem.n_features
        problem.sorted_rows = min(MAX_SORTED_ROWS, max(MIN_SORTED_ROWS, int(SORTED_ROWS_PER_CELL * cells)))
        return 0

    cdef int make_room(self, int n_threads) except -1:
        """Make a workspace for each thread, and the first buffer."""
        cdef int64_t n_classes = self.problem.n_classes
        cdef Workspace *work
        for _ in range(max(1, n_threads)):
            work = new Workspace()
            work.n_slots = 0
            work.splits.resize(self.problem.n_features)
            work.left.resize(n_threads * n_classes)
            work.scratch.resize(n_threads * scratch_size(n_classes))
            work.category_histogram.resize(256 * (n_classes + 1))
            work.drawn.resize(self.problem.n_features)
            memset(&work.tally, 0, sizeof(work.tally))
            self.workspaces.push_back(work)
        self.buffers.push_back(new Buffer())
        return 0

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.workspaces.size()):
            del self.workspaces[i]
        for i in range(self.buffers.size()):
            del self.buffers[i]

    def __reduce__(self):
        return made_again, self.arguments

    def grow(self, const int32_t[::1] weights, bint counts, uint64_t tree, uint64_t key=1):
        """Grow a tree on the rows of positive weight, and find the leaf of every row.

        ``counts``: weights are numbers of rows; else each row counts as one in the min_samples settings. ``tree``
        is the tree's number, which its nodes draw their features by; ``key`` names its root, if that is a node of a
        larger tree.
        """
        cdef GrownTree grown = GrownTree(self.problem.n_classes)
        cdef int64_t n_cells, n_parts
        self.problem.tree = tree
        self.problem.weighted = not counts
        with nogil:
            grown.row_leaves.resize(self.problem.n_rows)
            self.load(&weights[0])
        if self.exchange is not None:
            self.sum_root()
        with nogil:
            n_cells = <int64_t> self.rows.size() * self.problem.n_features
            if self.problem.force_parallel or n_cells >= PARALLEL_CELLS:
                grown.n_threads = self.n_threads
            n_parts = self.grow_nodes(key, grown.n_threads)
        if self.exchange is not None and self.exchange.failure is not None:
            raise self.exchange.failure
        with nogil:
            cut_back(self.buffers, n_parts, self.problem.n_classes, self.max_leaves, self.cp, grown.n_threads)
            assemble(grown, self.buffers, n_parts, self.members.data())
            grown.find_leaves(&self.problem, &weights[0])
        return grown

    cdef void load(self, const int32_t *weights) noexcept nogil:
        """Take over the rows of positive weight, and start the tree with its root."""
        cdef int64_t i, n = 0, n_rows = self.problem.n_rows
        cdef int64_t total = 0
        cdef Buffer *buffer = self.buffers[0]
        self.rows.resize(n_rows)
        self.classes.resize(n_rows)
        self.weights.resize(n_rows)
        clear(buffer)
        add_node(buffer, self.problem.n_classes, 0)
        memset(buffer.totals.data(), 0, self.problem.n_classes * sizeof(int64_t))
        for i in range(n_rows):
            self.rows[n] = i
            self.classes[n] = self.labels[i]
            self.weights[n] = weights[i]
            n += weights[i] > 0
            buffer.totals[self.labels[i]] += weights[i]
            total += weights[i]
        self.rows.resize(n)
        self.members.resize(n)
        buffer.nodes[0].count = n if self.problem.weighted else total
        buffer.nodes[0].end = n

    cdef int64_t grow_nodes(self, uint64_t key, int n_threads) noexcept nogil:
        """Grow the raw nodes: in one go, or large nodes first and the subtrees below side by side.

        Returns of how many parts the tree is, each in a buffer of its own.
        """
        cdef int64_t n = <int64_t> self.rows.size()
        cdef vector[Pending] tasks
        cdef Frame frame
        cdef Growth growth
        cdef Pending root
        memset(&frame, 0, sizeof(Frame))
        frame.codes = self.problem.codes
        frame.stride = self.problem.n_rows
        frame.rows = self.rows.data()
        frame.classes = self.classes.data()
        frame.weights = self.weights.data()
        memset(&growth, 0, sizeof(Growth))
        growth.problem, growth.frame = &self.problem, &frame
        growth.buffer, growth.work = self.buffers[0], self.workspaces[0]
        growth.members, growth.tasks = self.members.data(), &tasks
        growth.n_threads = n_threads
        if self.exchange is not None:
            growth.exchange = <PyObject *> self.exchange
            n = self.buffers[0].nodes[0].count
        if self.grows_best_first(n):
            growth.max_leaves = self.max_leaves
        elif growth.exchange != NULL:
            growth.task_rows = max(<int64_t> MIN_SENT_ROWS, n // (SENT_PER_WORKER * self.n_workers))
        elif n_threads > 1 or n > MANY_ROWS:
            growth.task_rows = max(1, min(MAX_TASK_ROWS, n // (TASKS_PER_THREAD * max(2, n_threads))))
            if not self.problem.force_parallel:
                growth.task_rows = max(growth.task_rows, self.problem.sorted_rows)
        memset(&root, 0, sizeof(Pending))
        root.end = <int64_t> self.rows.size()
        root.key = key
        root.histogram = -1
        grow_by_histogram(&growth, &root)
        if growth.exchange == NULL:
            self.run_tasks(&growth)
        elif not growth.broken and tasks.size():
            with gil:
                self.grow_elsewhere(tasks)
        return 1 + <int64_t> tasks.size()

    cdef void sum_root(self) except *:
        """Let the root have the rows of all workers."""
        cdef Buffer *buffer = self.buffers[0]
        totals = np.asarray(<int64_t[:self.problem.n_classes]> buffer.totals.data())
        sums = self.exchange.sum(np.append(totals, buffer.nodes[0].count))
        totals[:] = sums[:-1]
        buffer.nodes[0].count = sums[-1]

    cdef void grow_elsewhere(self, const vector[Pending] &tasks) noexcept:
        """Grow the subtrees that were put off, each on the worker that all rows of it are sent to."""
        cdef int64_t t, n_tasks = <int64_t> tasks.size()
        cdef Buffer *buffer = self.buffers[0]
        try:
            while <int64_t> self.buffers.size() < n_tasks + 1:
                self.buffers.push_back(new Buffer())
            counts = [buffer.nodes[tasks[t].node].count for t in range(n_tasks)]
            owners = self.exchange.shares(counts)
            rows = [self.rows_of_task(tasks[t]) for t in range(n_tasks)]
            sent = [[rows[t] for t in some] for some in owners]
            received = self.exchange.swap([[self.packed(some) for some in those] for those in sent])
            grown = [
                self.grown_from([parts[i] for parts in received], tasks[t])
                for i, t in enumerate(owners[self.exchange.rank])
            ]
            answers = [[(tree, leaves[q]) for tree, leaves in grown] for q in range(len(owners))]
            for some, answer in zip(owners, self.exchange.swap(answers)):
                for t, (tree, leaves) in zip(some, answer):
                    take_over(self.buffers[t + 1], tree, leaves, rows[t], tasks[t].start, self.members.data())
        except BaseException as error:
            self.exchange.failure = error

    cdef object rows_of_task(self, Pending task):
        """Return the rows here of a subtree, where they are in its order."""
        cdef int64_t n = task.end - task.start
        if n == 0:
            return np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint16), np.empty(0, dtype=np.int32)
        return (
            np.array(<uint32_t[:n]> &self.rows[task.start]),
            np.array(<uint16_t[:n]> &self.classes[task.start]),
            np.array(<int32_t[:n]> &self.weights[task.start]),
        )

    cdef object packed(self, some):
        """Return bins, classes and weights of rows, in few bytes."""
        rows, classes, weights = some
        return np.asarray(self.codes).take(rows, axis=1), in_few_bytes(classes), in_few_bytes(weights)

    cdef object grown_from(self, parts, Pending task):
        """Grow a subtree on rows that workers have sent; return it, and for each worker the leaves of its rows."""
        arguments, settings = self.arguments
        codes, classes, weights = (np.concatenate(each, axis=-1) for each in zip(*parts))
        depth = self.problem.max_depth - task.depth
        grower = Grower(
            np.ascontiguousarray(codes), *arguments[1:5], classes.astype(np.int32), arguments[6],
            **{**settings, "max_depth": depth, "max_leaf_nodes": 0, "cp": 0.0},
        )
        tree = grower.grow(weights.astype(np.int32), not self.problem.weighted, self.problem.tree, task.key)
        leaves = np.split(tree.leaves, np.cumsum([len(part[1]) for part in parts])[:-1])
        return (tree.nodes, tree.gains, tree.leaf_weights, tree.category_sets), leaves

    cdef bint grows_best_first(self, int64_t n_rows) noexcept nogil:
        """Whether so few leaves are to be kept that it pays to grow no others."""
        cdef const Problem *problem = &self.problem
        cdef double cells = <double> (problem.total_bins * problem.n_classes) / problem.n_features
        return self.max_leaves and self.max_leaves * cells <= BEST_FIRST_CELLS_PER_ROW * n_rows

    cdef void run_tasks(self, const Growth *growth) noexcept nogil:
        """Grow the subtrees that were put off, in groups whose rows are copied together."""
        cdef int64_t i, group, n_rows = 0, n_groups, n_tasks = <int64_t> growth.tasks.size()
        cdef const Pending *tasks = growth.tasks.data()
        cdef vector[int64_t] by_size
        cdef LargerFirst larger_first
        cdef Frames frames  # not kept: of several growers, one has a use for them
        while <int64_t> self.buffers.size() < n_tasks + 1:
            self.buffers.push_back(new Buffer())
        for i in range(n_tasks):
            by_size.push_back(i)
            n_rows += tasks[i].end - tasks[i].start
        larger_first.tasks = tasks
        sort(by_size.begin(), by_size.end(), larger_first)
        n_groups = 1 + GROUPS * n_rows // self.problem.n_rows
        for group in range(n_groups):
            self.run_group(growth, by_size, group, n_groups, &frames)

    cdef void run_group(
        self, const Growth *growth, const vector[int64_t] &by_size, int64_t group, int64_t n_groups, Frames *frames
    ) noexcept nogil:
        """Grow a group of subtrees, large and small, the largest first, each into a buffer of its own."""
        cdef int64_t i
        cdef vector[int64_t] numbers
        cdef vector[Pending] tasks
        for i in range(<int64_t> by_size.size()):
            if i % n_groups == group:
                numbers.push_back(by_size[i])
                tasks.push_back(growth.tasks[0][by_size[i]])
        gather(&self.problem, growth.frame, tasks, frames, growth.n_threads)
        for i in prange(<int64_t> tasks.size(), num_threads=growth.n_threads, schedule="dynamic", chunksize=1):
            run_task(
                growth, &frames.of_task[i], self.buffers[numbers[i] + 1], self.workspaces[threadid()], &tasks[i]
            )


def in_few_bytes(numbers):
    """Return whole numbers as those of the shortest kind that holds them."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


def made_again(args, settings):
    """Bring a pickled grower back."""
    return Grower(*args, **settings)
