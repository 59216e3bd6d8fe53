"""Grower: grows trees on the same binned rows with different weights, on a GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.cuda.array import CudaArray
from kfhe.cuda.device import Array, Device
from kfhe.cuda.tree import CudaTree
from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.pruner import pruned
from kfhe.tables.binned import BinnedTable

# Chosen by counting reads and launches; not measured on a GPU yet. A subtree is the work of a single warp,
# whose barriers are cheap, and there are enough subtrees for all processors.
PIECE_ROWS = 4096  # rows that a block processes at a time
SMALL_ROWS = 256  # maximum rows of a node below which a single block grows everything
HISTOGRAM_BYTES = 1 << 29  # maximum for the nodes of a level
SCRATCH_BYTES = 1 << 28  # maximum workspace of blocks for categories
MOST_CLASSES = 600  # limited by the memory of a block
ROOM = 10240  # shared memory of a block, in numbers, as in block.h
THREADS, SUBTREE_THREADS = 256, 32

# `Growth` in growth.h and `Written` in tree.h: after the rules, all fields are numbers or addresses.
RULES = [
    *((name, "i8") for name in ("max_depth", "min_samples_split", "min_samples_leaf", "max_leaf_nodes")),
    *(("max_features", "i8"), ("random_cuts", "i8"), ("cp", "f8"), ("seed", "u8"), ("tree", "u8")),
]
FIELDS = re.findall(
    r"\w+",
    """
    lines stride n_rows n_features n_classes n_bins categorical low high labels weights weighted key members
    nodes totals sets counters waiting most_waiting pieces most_pieces small small_rows piece_rows histograms
    splits drawn scratch scratch_size left cells turn
    """,
)
GROWTH = np.dtype([*RULES, *((name, "u8") for name in FIELDS)])
WRITTEN = np.dtype(
    [("growth", GROWTH)]
    + [(name, "u8") for name in ("nodes", "gains", "leaf_weights", "sets", "leaves")]
    + [(name, "u8") for name in ("parents", "depths", "totals", "pruned")]
)
# `GrownNode` and `Counters` in growth.h
GROWN_NODE = np.dtype(
    [("key", "u8"), ("count", "i8"), ("gain", "f8"), ("threshold", "f8"), ("start", "u4"), ("end", "u4")]
    + [(name, "i4") for name in ("buffer", "parent", "depth", "left", "n_leaves", "n_sets", "n_counted")]
    + [("feature", "u2"), ("kind", "u1"), ("cut", "u1")]
)
COUNTERS = np.dtype(
    [(name, "i4") for name in ("n_members", "n_nodes", "n_small")]
    + [("n_waiting", "i4", 2), ("n_pieces", "i4", 2), ("deepest", "i4")]
)
MEMBER, WAITING, PIECE, SPLIT, STORED = 12, 12, 12, 72, 16  # bytes of the other structs there


class CudaTable:
    """A binned table on a GPU, with its labels, and memory for growing trees, which growers share in turn.

    Parameters
    ----------
    device : Device
        The device.
    table : BinnedTable
        The table.
    labels : int32 array of shape (n_rows,)
        Class of each row.
    n_classes : int
        Number of classes.

    Attributes
    ----------
    device, table, labels, n_classes
        As given.
    arrays : dict
        Arrays on the device, by their names in `Growth`.
    in_use : Lock
        Held by the grower that uses the memory.
    """

    def __init__(self, device: Device, table: BinnedTable, labels: NDArray[np.int32], n_classes: int) -> None:
        if n_classes > MOST_CLASSES:
            raise ValueError(f"y has {n_classes} classes; device='cuda' accepts at most {MOST_CLASSES}")
        self.device, self.table, self.labels, self.n_classes = device, table, labels, n_classes
        self.n_features, self.n_rows = table.codes.shape
        self.stride = line_width(self.n_features)
        self.some_categorical = bool(table.categorical.any())
        self.scratch_size = 256 * (2 * n_classes + 2) + n_classes * (n_classes + 4)
        self.n_blocks = device.n_blocks
        if self.some_categorical:
            self.n_blocks = max(1, min(self.n_blocks, SCRATCH_BYTES // (8 * self.scratch_size)))
        self.in_use = Lock()
        self.arrays: dict[str, Array] = {}

    def load(self) -> None:
        """Copy the table to the device, unless it is there already."""
        if self.arrays:
            return
        table, lines = self.table, np.zeros((self.n_rows, self.stride), dtype=np.uint8)
        lines[:, : self.n_features] = table.codes.T
        columns = {name: getattr(table, name) for name in ("n_bins", "categorical", "low", "high")}
        copied = {"lines": lines, "labels": self.labels, **columns}
        self.arrays = {name: self.device.put(array) for name, array in copied.items()}

    def make_room(self, sizes: Mapping[str, int]) -> None:
        """Allocate arrays of at least some numbers of bytes, filled with zeros.

        Raises
        ------
        MemoryError
            There is too little memory.
        """
        wanted = {
            name: size
            for name, size in sizes.items()
            if name not in self.arrays or self.arrays[name].nbytes < size
        }
        if not wanted:
            return
        needed = sum(wanted.values())
        if not self.arrays:
            needed += self.n_rows * (self.stride + 4)
        free = self.device.free_bytes()
        if needed > free:
            raise MemoryError(
                f"device='cuda' needs {needed / 2**30:.2f} GB of the GPU's memory to grow trees on "
                f"{self.n_rows} rows; {free / 2**30:.2f} GB are free"
            )
        self.load()
        for name, size in wanted.items():
            self.arrays[name] = self.device.zeros(max(1, size), np.uint8)


def line_width(n_features: int) -> int:
    """Return the size of a row's bins in bytes, chosen so that rows cross few boundaries of 32 bytes.

    Examples
    --------
    >>> from kfhe.cuda.grower import line_width
    >>> [line_width(n) for n in (3, 30, 33)]
    [4, 32, 64]
    """
    return 1 << (n_features - 1).bit_length() if n_features <= 32 else -(-n_features // 32) * 32


class CudaGrower:
    """Grows trees on a table on a GPU, equal to those of `Grower`.

    Parameters
    ----------
    table : CudaTable
        The table.
    rules : dict
        Settings, as in `Grower`.
    n_threads : int
        Number of threads of the host.
    small_rows, piece_rows : int
        Maximum rows of a node below which one block grows everything, and rows that a block processes at a
        time. The tree does not depend on them.
    """

    def __init__(
        self,
        table: CudaTable,
        rules: Mapping[str, Any],
        n_threads: int = 1,
        *,
        small_rows: int = SMALL_ROWS,
        piece_rows: int = PIECE_ROWS,
    ) -> None:
        self._table, self._rules, self._n_threads = table, dict(rules), n_threads
        self._small_rows, self._piece_rows = small_rows, piece_rows

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle as a grower of the host, which grows the same trees."""
        table, labels = self._table.table, self._table.labels
        columns = (table.codes, table.n_bins, table.categorical, table.low, table.high)
        return Grower, (*columns, labels, self._table.n_classes, self._rules, self._n_threads, False)

    def grow(self, weights: Any, counts: bool, tree: int, key: int = 1) -> CudaTree:
        """Grow a tree on the rows of positive weight, and find each row's leaf, as in `Grower.grow`."""
        with self._table.in_use:
            given = self._given(weights, counts, tree, key)
            self._grow_nodes(given)
            if self._cuts_back:
                self._cut_back()
            return self._written(given)

    @property
    def _cuts_back(self) -> bool:
        return bool(self._rules["max_leaf_nodes"] or self._rules["cp"] > 0)

    def _given(self, weights: Any, counts: bool, tree: int, key: int) -> NDArray[Any]:
        """Return the argument of the kernels, with memory for their results."""
        table, weighted = self._table, not counts
        lengths = self._make_room(weighted=weighted)
        arrays = {**table.arrays, "weights": CudaArray.of(table.device, weights, np.int32).cells}
        arrays["counters"][:] = 0
        arrays["totals"][: 8 * table.n_classes] = 0  # of the root
        given = np.zeros((), dtype=GROWTH)
        numbers = {**self._rules, **lengths, "tree": tree, "weighted": weighted, "key": key}
        for name in ("stride", "n_rows", "n_features", "n_classes", "scratch_size"):
            numbers[name] = getattr(table, name)
        for name, number in numbers.items():
            given[name] = number
        for name, array in arrays.items():
            given[name] = table.device.address(array)
        self._weights = arrays["weights"]  # keeps it alive while kernels read it
        return given

    def _make_room(self, *, weighted: bool) -> dict[str, int]:
        """Allocate the arrays for growing a tree; return the lengths of some of them."""
        table = self._table
        n_rows, n_features, n_classes = table.n_rows, table.n_features, table.n_classes
        n_tried, n_blocks = self._rules["max_features"], table.n_blocks
        histogram = 4 * 256 * (n_classes + weighted)
        small_rows = max(self._small_rows, n_rows * n_tried * histogram // HISTOGRAM_BYTES)
        most_waiting = n_rows // (small_rows + 1) + 1
        most_pieces = n_rows // self._piece_rows + most_waiting + 1
        table.make_room(
            {
                "members": 2 * n_rows * MEMBER,
                "nodes": 2 * n_rows * GROWN_NODE.itemsize,
                "totals": 2 * n_rows * n_classes * 8,
                "sets": 2 * n_rows * 32 * table.some_categorical,
                "waiting": 2 * most_waiting * WAITING,
                "pieces": 2 * most_pieces * PIECE,
                "small": n_rows * 4,
                "histograms": most_waiting * n_tried * histogram,
                "splits": most_waiting * n_tried * SPLIT,
                "drawn": (2 * most_waiting + n_blocks) * n_features * 4 * (n_tried < n_features),
                "scratch": n_blocks * table.scratch_size * 8 * table.some_categorical,
                "left": n_blocks * n_classes * 8,
                "cells": n_blocks * histogram * (histogram + histogram // 16 > 4 * ROOM),
                "counters": COUNTERS.itemsize,
            }
        )
        lengths = {"small_rows": small_rows, "most_waiting": most_waiting, "most_pieces": most_pieces}
        return {**lengths, "piece_rows": self._piece_rows}

    def _counters(self) -> Any:
        return self._table.device.get(self._table.arrays["counters"])[: COUNTERS.itemsize].view(COUNTERS)[0]

    def _grow_nodes(self, given: NDArray[Any]) -> None:
        """Grow all nodes: first level by level, then everything below small nodes."""
        table, launch = self._table, self._table.device.launch
        n_blocks, n_pieces = table.n_blocks, -(-table.n_rows // self._piece_rows)
        channels = table.n_classes + int(given["weighted"])
        n_sums = min(ROOM, max(16 * channels, 2 * table.n_classes))
        launch("take_members", given, n_pieces, THREADS, min(ROOM, 2 * table.n_classes))
        launch("plant", given, 1, 32)
        while self._counters()["n_waiting"][given["turn"]]:
            launch("build", given, n_blocks, THREADS, ROOM)
            launch("search", given, n_blocks, THREADS, n_sums)
            launch("settle", given, n_blocks, 32)
            launch("part_pieces", given, n_blocks, THREADS, n_sums)
            launch("open_children", given, n_blocks, 32)
            given["turn"] = 1 - given["turn"]
        n_room = (256 + 16) * channels
        launch("grow_subtrees", given, n_blocks, SUBTREE_THREADS, n_room if n_room <= ROOM else n_sums)

    def _cut_back(self) -> None:
        """Prune by `max_leaf_nodes` and `cp`: on the host, because it goes node by node."""
        table, device = self._table, self._table.device
        n_nodes = int(self._counters()["n_nodes"])
        nodes = table.arrays["nodes"][: n_nodes * GROWN_NODE.itemsize]
        totals = device.get(table.arrays["totals"][: n_nodes * table.n_classes * 8])
        grown = device.get(nodes).view(GROWN_NODE)
        grown["left"] = pruned(
            np.ascontiguousarray(grown["left"]),
            np.ascontiguousarray(grown["gain"]),
            totals.view(np.int64).reshape(n_nodes, table.n_classes),
            max_leaf_nodes=self._rules["max_leaf_nodes"],
            cp=self._rules["cp"],
        )
        nodes[:] = device.put(grown.view(np.uint8))

    def _written(self, growth: NDArray[Any]) -> CudaTree:
        """Write the tree, and find the leaf of every row."""
        table, device, launch = self._table, self._table.device, self._table.device.launch
        given = np.zeros((), dtype=WRITTEN)
        given["growth"], given["pruned"] = growth, self._cuts_back
        launch("count_leaves", given, table.n_blocks, THREADS)
        root = device.get(table.arrays["nodes"][: GROWN_NODE.itemsize]).view(GROWN_NODE)[0]
        n_leaves, n_sets = int(root["n_leaves"]), int(root["n_sets"])
        arrays = {
            "nodes": device.empty((2 * n_leaves - 1) * STORED, np.uint8),
            "gains": device.empty(2 * n_leaves - 1, np.float64),
            "leaf_weights": device.empty(n_leaves * table.n_classes, np.int32),
            "sets": device.empty(4 * n_sets, np.uint64),
            "leaves": device.empty(table.n_rows, np.int32),
            "parents": device.empty(2 * n_leaves - 1, np.int32),
            "depths": device.empty(2 * n_leaves - 1, np.int32),
            "totals": device.empty((2 * n_leaves - 1) * table.n_classes, np.int64),
        }
        for name, array in arrays.items():
            given[name] = device.address(array)
        launch("write_tree", given, table.n_blocks, THREADS)
        launch("find_leaves", given, -(-table.n_rows // self._piece_rows), THREADS)
        return CudaTree.of(device, arrays, n_leaves, table.n_rows, int(self._counters()["deepest"]))
