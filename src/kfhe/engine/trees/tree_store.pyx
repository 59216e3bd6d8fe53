"""Tree store: the trees so far, in memory that is passed to NumPy without a copy.

A forest is the largest object of training. In vectors, it would be in memory twice when they grow, and twice again
when the arrays are made.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from libcpp.vector cimport vector

from kfhe.engine.trees.grown_tree cimport GrownTree, copied
from kfhe.engine.trees.layout cimport LEAF, Node

import numpy as np


cdef enum:
    PIECE = 262144  # bytes that a thread copies at a time
    PARALLEL_NODES = 65536  # from which threads share the sums over them


cdef void copy(char *target, const void *data, size_t size, int n_threads) noexcept nogil:
    """Copy bytes; of memory that was never written to, threads get their pieces from the system side by side."""
    cdef int64_t p, n_pieces = <int64_t> (size // PIECE)
    if n_pieces:
        for p in prange(n_pieces, num_threads=n_threads, schedule="static"):
            memcpy(target + p * PIECE, <const char *> data + p * PIECE, PIECE)
    memcpy(target + n_pieces * PIECE, <const char *> data + n_pieces * PIECE, size - n_pieces * PIECE)


cdef class Block:
    """Bytes in one block. They must not change while an array uses them."""

    cdef char *data
    cdef size_t size
    cdef size_t capacity
    cdef int n_views

    def __cinit__(self):
        self.data = NULL
        self.size = self.capacity = 0
        self.n_views = 0

    def __dealloc__(self):
        free(self.data)

    cdef int append(self, const void *data, size_t size, int n_threads=1) except -1:
        """Add some bytes at the end."""
        cdef char *moved
        if self.size + size > self.capacity:
            # The system moves large blocks without copying, so they may grow in small steps.
            moved = <char *> realloc(self.data, (self.size + size) * 5 // 4 + 64)
            if moved == NULL:
                raise MemoryError("no memory for the forest")
            self.data, self.capacity = moved, (self.size + size) * 5 // 4 + 64
        if size:
            copy(self.data + self.size, data, size, n_threads)
        self.size += size
        return 0

    cdef void truncate(self, size_t size) noexcept:
        """Drop everything behind some size."""
        self.size = min(self.size, size)

    cdef piece(self, int64_t first, int64_t end, int64_t size, dtype):
        """Copy the entries ``first .. end - 1``, each of so many bytes."""
        return copied(self.data + first * size, (end - first) * size, dtype)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, False, flags)
        self.n_views += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.n_views -= 1


@cython.final
cdef class TreeStore:
    """A growing forest.

    Parameters
    ----------
    n_classes : int
        Number of classes of all trees.
    """

    cdef int64_t n_classes
    cdef Block nodes, gains, leaf_weights, category_sets
    cdef vector[int64_t] tree_nodes, tree_leaves, tree_sets  # offsets of the trees, and the total

    def __cinit__(self, int64_t n_classes):
        self.n_classes = n_classes
        self.nodes, self.gains, self.leaf_weights, self.category_sets = Block(), Block(), Block(), Block()
        self.tree_nodes.push_back(0)
        self.tree_leaves.push_back(0)
        self.tree_sets.push_back(0)

    def __len__(self):
        return self.tree_nodes.size() - 1

    cdef int check_unseen(self) except -1:
        if self.nodes.n_views or self.gains.n_views or self.leaf_weights.n_views or self.category_sets.n_views:
            raise BufferError("the trees were handed over, and can't change while their arrays are in use")
        return 0

    def append(self, GrownTree tree not None):
        """Append a tree."""
        self.check_unseen()
        if tree.n_classes != self.n_classes:
            raise ValueError(f"the trees are for {self.n_classes} classes, got one for {tree.n_classes}")
        self.nodes.append(tree.node_list.data(), tree.node_list.size() * sizeof(Node), tree.n_threads)
        self.gains.append(tree.gain_list.data(), tree.gain_list.size() * sizeof(double), tree.n_threads)
        self.leaf_weights.append(tree.weight_list.data(), tree.weight_list.size() * sizeof(int32_t), tree.n_threads)
        self.category_sets.append(tree.set_list.data(), tree.set_list.size() * sizeof(uint64_t))
        self.tree_nodes.push_back(self.tree_nodes.back() + <int64_t> tree.node_list.size())
        self.tree_leaves.push_back(
            self.tree_leaves.back() + <int64_t> tree.weight_list.size() // self.n_classes
        )
        self.tree_sets.push_back(self.tree_sets.back() + <int64_t> tree.set_list.size() // 4)

    def keep(self, size_t n_trees):
        """Drop all trees but the first ones."""
        if n_trees >= self.tree_nodes.size() - 1:
            return
        self.check_unseen()
        self.tree_nodes.resize(n_trees + 1)
        self.tree_leaves.resize(n_trees + 1)
        self.tree_sets.resize(n_trees + 1)
        self.nodes.truncate(self.tree_nodes.back() * sizeof(Node))
        self.gains.truncate(self.tree_nodes.back() * sizeof(double))
        self.leaf_weights.truncate(self.tree_leaves.back() * self.n_classes * sizeof(int32_t))
        self.category_sets.truncate(self.tree_sets.back() * 4 * sizeof(uint64_t))

    def tree(self, size_t t):
        """Return a copy of one tree: nodes (bytes), leaf weights and category sets."""
        if t + 1 >= self.tree_nodes.size():
            raise IndexError(f"there are {len(self)} trees, got {t}")
        weights = self.leaf_weights.piece(
            self.tree_leaves[t], self.tree_leaves[t + 1], self.n_classes * sizeof(int32_t), np.int32
        )
        sets = self.category_sets.piece(
            self.tree_sets[t], self.tree_sets[t + 1], 4 * sizeof(uint64_t), np.uint64
        )
        return (
            self.nodes.piece(self.tree_nodes[t], self.tree_nodes[t + 1], sizeof(Node), np.uint8),
            weights.reshape(-1, self.n_classes),
            sets.reshape(-1, 4),
        )

    def arrays(self, *, copy=True):
        """Return all trees as arrays: nodes (bytes), gains, leaf weights, category sets, and where trees start.

        Without a copy, the arrays are the store's own memory, which can't change while they are in use.
        """
        arrays = {
            "nodes": np.frombuffer(self.nodes, dtype=np.uint8),
            "gains": np.frombuffer(self.gains, dtype=np.float64),
            "leaf_weights": np.frombuffer(self.leaf_weights, dtype=np.int32).reshape(-1, self.n_classes),
            "category_sets": np.frombuffer(self.category_sets, dtype=np.uint64).reshape(-1, 4),
        }
        if copy:
            arrays = {name: array.copy() for name, array in arrays.items()}
        arrays["tree_nodes"] = np.asarray(self.tree_nodes, dtype=np.int64)
        arrays["tree_leaves"] = np.asarray(self.tree_leaves, dtype=np.int64)
        arrays["tree_sets"] = np.asarray(self.tree_sets, dtype=np.int64)
        return arrays

    @staticmethod
    def from_arrays(arrays):
        """Restore a store from its `arrays`."""
        cdef TreeStore store = TreeStore(arrays["leaf_weights"].shape[1])
        cdef const uint8_t[::1] data
        cdef Block block
        for name, block in (
            ("nodes", store.nodes), ("gains", store.gains),
            ("leaf_weights", store.leaf_weights), ("category_sets", store.category_sets),
        ):
            data = arrays[name].reshape(-1).view(np.uint8)
            if data.shape[0]:
                block.append(&data[0], data.shape[0])
        store.tree_nodes, store.tree_leaves = arrays["tree_nodes"], arrays["tree_leaves"]
        store.tree_sets = arrays["tree_sets"]
        return store

    def __reduce__(self):
        return TreeStore.from_arrays, (self.arrays(),)


def gains_of_features(
    const Node[::1] nodes, const double[::1] gains, const int64_t[::1] tree_nodes, int64_t n_features, int n_threads=1
):
    """Return what the splits of each tree gain by each feature; what rounding makes a loss is no gain."""
    cdef int64_t t, i
    result = np.zeros((tree_nodes.shape[0] - 1, n_features))
    cdef double[:, ::1] found = result
    if tree_nodes[tree_nodes.shape[0] - 1] - tree_nodes[0] < PARALLEL_NODES:
        n_threads = 1
    for t in prange(tree_nodes.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic"):
        for i in range(tree_nodes[t], tree_nodes[t + 1]):
            if nodes[i].kind != LEAF:
                found[t, nodes[i].feature] += max(gains[i], 0.0)
    return result
