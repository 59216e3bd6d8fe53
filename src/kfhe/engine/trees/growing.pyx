"""Growing: trees, again and again, on the same binned rows with other weights.

Large nodes are split by histograms, their features shared out among threads; the subtrees below are
tasks that run side by side; within them, nodes of few rows go on with sorted orders. Every decision
is made on integer sums, and nodes are numbered by their place in the tree, so none of this shows.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from kfhe.engine.trees.blocks cimport Block
from kfhe.engine.trees.histogram_nodes cimport grow_by_histogram, scratch_size
from kfhe.engine.trees.nodes cimport Buffer, Frame, Pending, Problem, RawNode, Workspace, add_node
from kfhe.engine.trees.pruning cimport FlatNode, flatten, keep_best_leaves, prune
from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, NUMERIC, Node

import numpy as np

cdef extern from *:
    """
    #include <chrono>
    static inline double kfhe_now() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    """
    double now "kfhe_now"() noexcept nogil

cdef enum:
    PARALLEL_CELLS = 32768  # rows times features from which threads may be worth their start,
    SURELY_PARALLEL_CELLS = 4194304  # and from which they surely are
    TRIAL_TREES = 16  # in between, the slower way is tried again after so many trees
    VOTE_ROWS = 65536  # rows whose votes are shared out
    TASKS_PER_THREAD = 8
    MAX_SORTED_ROWS = 8192
    GATHER_ROWS = 65536

# Rows below which sorting beats histograms, per cell of an average histogram. Measured.
cdef double SORTED_ROWS_PER_CELL = 1.0
cdef int64_t MIN_SORTED_ROWS = 96


cdef cppclass LargerFirst:
    const Pending *tasks

    bint call "operator()"(int64_t a, int64_t b) noexcept nogil const:
        return this.tasks[a].end - this.tasks[a].start > this.tasks[b].end - this.tasks[b].start


cdef void run_task(
    const Problem *problem, const Frame *frame, Buffer *parent, Buffer *buffer, Workspace *work,
    const Pending *task, int32_t *votes,
) noexcept nogil:
    """Grow a put-off subtree into a buffer of its own."""
    cdef Frame local = frame[0]
    cdef Pending root = task[0]
    cdef int64_t i, f, n = task.end - task.start, n_classes = problem.n_classes
    add_node(buffer, n_classes, parent.nodes[task.node].count)
    memcpy(buffer.totals.data(), &parent.totals[task.node * n_classes], n_classes * sizeof(int64_t))
    root.node = 0
    if frame.origin == NULL and n <= GATHER_ROWS and problem.n_rows > 4 * n:
        # Rows far apart in memory are copied together once.
        work.frame_codes.resize(n * problem.n_features)
        work.frame_rows.resize(n)
        for f in range(problem.n_features):
            for i in range(n):
                work.frame_codes[f * n + i] = frame.codes[f * frame.stride + frame.rows[task.start + i]]
        for i in range(n):
            work.frame_rows[i] = frame.rows[task.start + i]
            frame.rows[task.start + i] = i
        local.codes = work.frame_codes.data()
        local.stride = n
        local.origin = work.frame_rows.data()
    grow_by_histogram(problem, &local, buffer, work, &root, 0, NULL, 1, votes)


cdef inline int32_t walk(
    const Node *nodes, const uint64_t *category_sets, const Problem *problem, int64_t row
) noexcept nogil:
    """Number of the leaf that a training row falls into."""
    cdef const Node *node = nodes
    cdef const uint64_t *bits
    cdef uint8_t code
    cdef bint left
    while node.kind != LEAF:
        code = problem.codes[node.feature * problem.n_rows + row]
        if node.kind & CATEGORICAL:
            bits = &category_sets[4 * <int64_t> node.threshold]
            left = (bits[code // 64] >> (code % 64)) & 1
        elif code == problem.n_bins[node.feature] - 1:
            left = (node.kind & MISSING_LEFT) != 0
        else:
            left = code <= node.cut
        node = &nodes[node.left + (not left)]
    return node.left


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
    cp : float
        Complexity parameter of the pruning, 0: none.
    seed : int
        For `max_features`.
    n_threads : int
        Number of threads that may be used.
    force_parallel : bool
        Use them on small tables too.
    """

    cdef object arguments  # of the constructor, for pickling
    cdef Problem problem
    cdef const uint8_t[:, ::1] codes
    cdef const int32_t[::1] n_bins
    cdef const uint8_t[::1] categorical
    cdef const double[:, ::1] low, high
    cdef const int32_t[::1] labels
    cdef int64_t max_leaves
    cdef double cp
    cdef int n_threads
    cdef vector[int64_t] offsets
    cdef vector[Workspace*] workspaces
    cdef vector[Buffer*] buffers
    cdef vector[uint32_t] rows
    cdef vector[uint16_t] classes
    cdef vector[int32_t] weights
    cdef vector[FlatNode] flat
    cdef vector[int32_t] flat_stack, flat_places, leaf_classes
    cdef double seconds_per_row[2]  # of the last tree grown alone, and of the last one grown by threads
    cdef int n_timed
    # The last tree
    cdef vector[Node] nodes
    cdef vector[double] gains
    cdef vector[int32_t] leaf_weights
    cdef vector[uint64_t] category_sets
    # The forest so far, and where each tree starts in it, and the end
    cdef Block forest_nodes, forest_gains, forest_leaf_weights, forest_category_sets
    cdef vector[int64_t] tree_nodes, tree_leaves, tree_sets

    def __cinit__(
        self, codes, n_bins, categorical, low, high, labels, n_classes, *, max_depth, min_samples_split,
        min_samples_leaf, max_leaf_nodes, max_features, cp, seed, n_threads, force_parallel=False,
    ):
        cdef int64_t f
        self.arguments = (
            (codes, n_bins, categorical, low, high, labels, n_classes),
            dict(
                max_depth=max_depth, min_samples_split=min_samples_split, min_samples_leaf=min_samples_leaf,
                max_leaf_nodes=max_leaf_nodes, max_features=max_features, cp=cp, seed=seed, n_threads=n_threads,
                force_parallel=force_parallel,
            ),
        )
        self.codes, self.n_bins, self.categorical = codes, n_bins, categorical
        self.low, self.high, self.labels = low, high, labels
        self.max_leaves, self.cp = max_leaf_nodes, cp
        self.n_threads = n_threads
        self.seconds_per_row[0] = self.seconds_per_row[1] = 0
        self.n_timed = 0
        problem = &self.problem
        problem.force_parallel = force_parallel
        problem.codes = &self.codes[0, 0]
        problem.n_features, problem.n_rows = codes.shape
        problem.n_classes = n_classes
        problem.n_bins = &self.n_bins[0]
        problem.categorical = &self.categorical[0]
        problem.low, problem.high = &self.low[0, 0], &self.high[0, 0]
        problem.max_depth = max_depth if max_depth else 1 << 30
        problem.min_split, problem.min_leaf = min_samples_split, min_samples_leaf
        problem.max_features, problem.seed = max_features, seed
        self.offsets.resize(problem.n_features)
        problem.total_bins = 0
        for f in range(problem.n_features):
            self.offsets[f] = problem.total_bins
            problem.total_bins += self.n_bins[f]
        problem.offsets = self.offsets.data()
        cells = problem.total_bins * problem.n_classes / problem.n_features
        problem.sorted_rows = min(MAX_SORTED_ROWS, max(MIN_SORTED_ROWS, int(SORTED_ROWS_PER_CELL * cells)))
        for f in range(max(1, n_threads)):
            self.workspaces.push_back(new Workspace())
            self.workspaces[f].n_slots = 0
            self.workspaces[f].splits.resize(problem.n_features)
            self.workspaces[f].left.resize(n_threads * n_classes)
            self.workspaces[f].scratch.resize(n_threads * scratch_size(problem))
            self.workspaces[f].category_histogram.resize(256 * (n_classes + 1))
        self.buffers.push_back(new Buffer())
        self.forest_nodes, self.forest_gains = Block(), Block()
        self.forest_leaf_weights, self.forest_category_sets = Block(), Block()
        self.tree_nodes.push_back(0)
        self.tree_leaves.push_back(0)
        self.tree_sets.push_back(0)

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.workspaces.size()):
            del self.workspaces[i]
        for i in range(self.buffers.size()):
            del self.buffers[i]

    def __len__(self):
        return self.tree_nodes.size() - 1

    def keep(self, size_t n_trees):
        """Drop all trees but the first ones."""
        if n_trees >= self.tree_nodes.size() - 1:
            return
        self.tree_nodes.resize(n_trees + 1)
        self.tree_leaves.resize(n_trees + 1)
        self.tree_sets.resize(n_trees + 1)
        self.forest_nodes.truncate(self.tree_nodes.back() * sizeof(Node))
        self.forest_gains.truncate(self.tree_nodes.back() * sizeof(double))
        self.forest_leaf_weights.truncate(self.tree_leaves.back() * self.problem.n_classes * sizeof(int32_t))
        self.forest_category_sets.truncate(self.tree_sets.back() * 4 * sizeof(uint64_t))

    cdef int store(self) except -1:
        """Add the last tree to the forest."""
        self.forest_nodes.append(self.nodes.data(), self.nodes.size() * sizeof(Node))
        self.forest_gains.append(self.gains.data(), self.gains.size() * sizeof(double))
        self.forest_leaf_weights.append(self.leaf_weights.data(), self.leaf_weights.size() * sizeof(int32_t))
        self.forest_category_sets.append(self.category_sets.data(), self.category_sets.size() * sizeof(uint64_t))
        self.tree_nodes.push_back(self.tree_nodes.back() + <int64_t> self.nodes.size())
        self.tree_leaves.push_back(
            self.tree_leaves.back() + <int64_t> self.leaf_weights.size() // self.problem.n_classes
        )
        self.tree_sets.push_back(self.tree_sets.back() + <int64_t> self.category_sets.size() // 4)
        return 0

    def grow(self, const int32_t[::1] weights, bint counts, uint64_t tree, bint hard):
        """Grow a tree on the rows of positive weight, add it to the forest, and return its votes for all rows.

        ``counts``: weights are numbers of rows; else each row counts as one in the min_samples settings.
        Hard votes are the class of each row (int32), others the shares of the classes in its leaf.
        """
        cdef bint grown_votes = hard and self.cp == 0 and self.max_leaves == 0
        hard_votes = np.empty(self.problem.n_rows, dtype=np.int32)
        cdef int32_t[::1] classes = hard_votes
        cdef double[:, ::1] shares = None
        self.problem.tree = tree
        self.problem.weighted = not counts
        with nogil:
            self.load(weights)
            self.grow_nodes(&classes[0])
            self.lay_out()
        self.store()
        if hard:
            self.vote_hard(weights, classes, grown_votes)
            return hard_votes
        soft_votes = np.empty((self.problem.n_rows, self.problem.n_classes))
        shares = soft_votes
        self.vote_soft(shares)
        return soft_votes

    cdef void load(self, const int32_t[::1] weights) noexcept nogil:
        """Take over the rows of positive weight, and start the tree with its root."""
        cdef int64_t i, n = 0, n_rows = self.problem.n_rows
        cdef int64_t total = 0
        cdef Buffer *buffer = self.buffers[0]
        self.rows.resize(n_rows)
        self.classes.resize(n_rows)
        self.weights.resize(n_rows)
        buffer.nodes.clear()
        buffer.totals.clear()
        buffer.category_sets.clear()
        add_node(buffer, self.problem.n_classes, 0)
        memset(buffer.totals.data(), 0, self.problem.n_classes * sizeof(int64_t))
        for i in range(n_rows):
            self.rows[n] = i
            self.classes[n] = self.labels[i]
            self.weights[n] = weights[i]
            n += weights[i] > 0
            buffer.totals[self.labels[i]] += weights[i]
            total += <int64_t> (weights[i] > 0) if self.problem.weighted else <int64_t> weights[i]
        self.rows.resize(n)
        buffer.nodes[0].count = total

    cdef void grow_nodes(self, int32_t *votes) noexcept nogil:
        """Grow the raw nodes: in one go, or large nodes first and the subtrees below side by side."""
        cdef int64_t n = <int64_t> self.rows.size(), i
        cdef int n_threads
        cdef vector[Pending] tasks
        cdef vector[int64_t] by_size
        cdef LargerFirst larger_first
        cdef Frame frame
        cdef Pending root
        cdef int64_t task_rows = 0
        frame.codes = self.problem.codes
        frame.stride = self.problem.n_rows
        frame.rows = self.rows.data()
        frame.classes = self.classes.data()
        frame.weights = self.weights.data()
        frame.origin = NULL
        memset(&root, 0, sizeof(Pending))
        root.end = n
        root.key = 1
        root.histogram = -1
        cdef double started = now()
        n_threads = self.team(n)
        if n_threads > 1:
            task_rows = max(1, n // (TASKS_PER_THREAD * n_threads))
            if not self.problem.force_parallel:
                task_rows = max(task_rows, self.problem.sorted_rows)
        grow_by_histogram(
            &self.problem, &frame, self.buffers[0], self.workspaces[0], &root, task_rows, &tasks, n_threads,
            votes,
        )
        while self.buffers.size() < tasks.size() + 1:
            self.buffers.push_back(new Buffer())
        for i in range(<int64_t> tasks.size()):
            self.buffers[i + 1].nodes.clear()
            self.buffers[i + 1].totals.clear()
            self.buffers[i + 1].category_sets.clear()
            by_size.push_back(i)
        larger_first.tasks = tasks.data()
        sort(by_size.begin(), by_size.end(), larger_first)
        for i in prange(<int64_t> tasks.size(), num_threads=n_threads, schedule="dynamic", chunksize=1):
            run_task(
                &self.problem, &frame, self.buffers[0], self.buffers[by_size[i] + 1], self.workspaces[threadid()],
                &tasks[by_size[i]], votes,
            )
        self.seconds_per_row[n_threads > 1] = (now() - started) / n

    cdef int team(self, int64_t n) noexcept nogil:
        """How many threads to grow the next tree with. The tree doesn't depend on it, so speed decides.

        On a busy machine threads wait for each other longer than they work.
        """
        cdef int64_t cells = n * self.problem.n_features
        cdef bint parallel_wins = self.seconds_per_row[1] <= self.seconds_per_row[0]
        if self.problem.force_parallel or self.n_threads == 1:
            return self.n_threads
        if cells < PARALLEL_CELLS:
            return 1
        if cells >= SURELY_PARALLEL_CELLS:
            return self.n_threads
        self.n_timed += 1
        if self.n_timed % TRIAL_TREES == 0:
            # Not if it was hopeless: a trial may cost a few trees' time, not more.
            if self.seconds_per_row[parallel_wins == 0] < 4 * self.seconds_per_row[parallel_wins]:
                parallel_wins = not parallel_wins
        return self.n_threads if parallel_wins else 1

    cdef void lay_out(self) noexcept nogil:
        """Prune the raw tree and write what is left as the last tree."""
        cdef int64_t n_classes = self.problem.n_classes, k
        cdef int32_t i, place
        cdef FlatNode item
        cdef RawNode *raw
        cdef Node node
        cdef Buffer *buffer
        flatten(self.buffers, self.flat, self.flat_stack)
        if self.max_leaves > 0:
            keep_best_leaves(self.buffers, self.flat, self.max_leaves)
        if self.cp > 0:
            prune(self.buffers, self.flat, n_classes, self.cp)
        self.nodes.resize(1)
        self.gains.resize(1)
        self.leaf_weights.clear()
        self.category_sets.clear()
        self.flat_stack.push_back(0)
        self.flat_places.push_back(0)
        while self.flat_stack.size():
            i, place = self.flat_stack.back(), self.flat_places.back()
            self.flat_stack.pop_back()
            self.flat_places.pop_back()
            item = self.flat[i]
            buffer = self.buffers[item.buffer]
            raw = &buffer.nodes[item.node]
            memset(&node, 0, sizeof(Node))
            if item.left < 0:
                node.left = <int32_t> (<int64_t> self.leaf_weights.size() // n_classes)
                for k in range(n_classes):
                    self.leaf_weights.push_back(<int32_t> buffer.totals[item.node * n_classes + k])
                self.nodes[place] = node
                self.gains[place] = 0
                continue
            node.left = <int32_t> self.nodes.size()
            node.feature = raw.feature
            node.kind = CATEGORICAL if raw.category_set >= 0 else NUMERIC
            if raw.missing_left:
                node.kind |= MISSING_LEFT
            node.cut = raw.cut
            node.threshold = raw.threshold
            if raw.category_set >= 0:
                node.threshold = self.category_sets.size() // 4
                for k in range(4):
                    self.category_sets.push_back(buffer.category_sets[4 * raw.category_set + k])
            self.nodes[place] = node
            self.gains[place] = raw.gain
            self.nodes.resize(self.nodes.size() + 2)
            self.gains.resize(self.gains.size() + 2)
            self.flat_stack.push_back(item.left + 1)
            self.flat_places.push_back(node.left + 1)
            self.flat_stack.push_back(item.left)
            self.flat_places.push_back(node.left)

    cdef void vote_hard(self, const int32_t[::1] weights, int32_t[::1] votes, bint grown_votes):
        """Let the rows that growing has not seen vote; all rows if the tree was pruned since."""
        cdef int64_t i, k, n_classes = self.problem.n_classes, best, leaf
        cdef int64_t n_leaves = <int64_t> self.leaf_weights.size() // n_classes
        cdef const int32_t *cells
        cdef const Node *nodes = self.nodes.data()
        cdef const uint64_t *sets = self.category_sets.data()
        cdef int n_threads = self.n_threads if self.problem.n_rows >= VOTE_ROWS else 1
        self.leaf_classes.resize(n_leaves)
        for leaf in range(n_leaves):
            cells = &self.leaf_weights[leaf * n_classes]
            best = 0
            for k in range(1, n_classes):
                if cells[k] > cells[best]:
                    best = k
            self.leaf_classes[leaf] = best
        if n_threads == 1:
            for i in range(self.problem.n_rows):
                if not grown_votes or weights[i] == 0:
                    votes[i] = self.leaf_classes[walk(nodes, sets, &self.problem, i)]
            return
        for i in prange(self.problem.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            if not grown_votes or weights[i] == 0:
                votes[i] = self.leaf_classes[walk(nodes, sets, &self.problem, i)]

    cdef void vote_soft(self, double[:, ::1] votes):
        """Write each row's class shares in its leaf."""
        cdef int64_t i
        cdef int n_threads = self.n_threads if self.problem.n_rows >= VOTE_ROWS else 1
        if n_threads == 1:
            with nogil:
                for i in range(self.problem.n_rows):
                    self.write_shares(i, &votes[i, 0])
            return
        for i in prange(self.problem.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            self.write_shares(i, &votes[i, 0])

    cdef void write_shares(self, int64_t row, double *shares) noexcept nogil:
        cdef int64_t k, n_classes = self.problem.n_classes, total = 0
        cdef int32_t leaf = walk(self.nodes.data(), self.category_sets.data(), &self.problem, row)
        cdef const int32_t *weights = &self.leaf_weights[leaf * n_classes]
        for k in range(n_classes):
            total += weights[k]
        for k in range(n_classes):
            shares[k] = <double> weights[k] / <double> total

    def tree(self, size_t t):
        """Return a copy of one tree: nodes (bytes), leaf weights and category sets."""
        if t + 1 >= self.tree_nodes.size():
            raise IndexError(f"there are {len(self)} trees, got {t}")
        cdef Py_ssize_t n_classes = self.problem.n_classes
        return (
            piece(self.forest_nodes, self.tree_nodes[t], self.tree_nodes[t + 1], sizeof(Node)),
            piece(self.forest_leaf_weights, self.tree_leaves[t], self.tree_leaves[t + 1], 4 * n_classes)
            .view(np.int32)
            .reshape(-1, n_classes),
            piece(self.forest_category_sets, self.tree_sets[t], self.tree_sets[t + 1], 32)
            .view(np.uint64)
            .reshape(-1, 4),
        )

    def arrays(self, *, copy=True):
        """Return the forest as arrays: nodes (bytes), gains, leaf weights, category sets, and where trees start.

        Without a copy, the arrays are the grower's own memory, and it can't grow any more.
        """
        arrays = {
            "nodes": np.frombuffer(self.forest_nodes, dtype=np.uint8),
            "gains": np.frombuffer(self.forest_gains, dtype=np.float64),
            "leaf_weights": np.frombuffer(self.forest_leaf_weights, dtype=np.int32).reshape(
                -1, self.problem.n_classes
            ),
            "category_sets": np.frombuffer(self.forest_category_sets, dtype=np.uint64).reshape(-1, 4),
        }
        if copy:
            arrays = {name: array.copy() for name, array in arrays.items()}
        arrays["tree_nodes"] = np.asarray(self.tree_nodes, dtype=np.int64)
        arrays["tree_leaves"] = np.asarray(self.tree_leaves, dtype=np.int64)
        arrays["tree_sets"] = np.asarray(self.tree_sets, dtype=np.int64)
        return arrays

    def __reduce__(self):
        return restored, (*self.arguments, self.arrays())

    def take_over(self, arrays):
        """Go on with a forest that was grown before, as `arrays` gave it."""
        cdef const uint8_t[::1] data
        cdef Block block
        for name, block in (
            ("nodes", self.forest_nodes), ("gains", self.forest_gains),
            ("leaf_weights", self.forest_leaf_weights), ("category_sets", self.forest_category_sets),
        ):
            data = arrays[name].reshape(-1).view(np.uint8)
            block.truncate(0)
            if data.shape[0]:
                block.append(&data[0], data.shape[0])
        self.tree_nodes, self.tree_leaves = arrays["tree_nodes"], arrays["tree_leaves"]
        self.tree_sets = arrays["tree_sets"]


cdef piece(Block block, int64_t first, int64_t end, int64_t size):
    """Copy the bytes of the entries ``first .. end - 1`` of a block."""
    copied = np.empty((end - first) * size, dtype=np.uint8)
    cdef uint8_t[::1] data = copied
    if end > first:
        memcpy(&data[0], block.data + first * size, (end - first) * size)
    return copied


def restored(args, settings, arrays):
    """Bring a pickled grower back, with the forest it had grown."""
    grower = Grower(*args, **settings)
    grower.take_over(arrays)
    return grower
