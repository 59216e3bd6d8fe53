"""A grown tree whose rows are on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.cuda.array import CudaArray
from kfhe.cuda.device import Array, Device
from kfhe.cuda.work import RowWork
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.leaf_votes import leaf_classes, leaf_shares

THREADS = 256

# `Shrunken` in votes.h
SHRUNKEN = np.dtype(
    [
        *(
            (name, "u8")
            for name in ("nodes", "parents", "depths", "totals", "n_nodes", "n_classes", "n_leaves")
        ),
        *((name, "u8") for name in ("shrinkages", "n_shrinkages", "estimates", "votes", "depth")),
    ]
)


class CudaTree(GrownTree):
    """A grown tree, whose rows stay on the device."""

    @classmethod
    def of(
        cls, device: Device, arrays: Mapping[str, Array], n_leaves: int, n_rows: int, deepest: int
    ) -> CudaTree:
        """Create a tree from the output of kernels."""
        nodes, gains, weights, sets = (
            device.get(arrays[name]) for name in ("nodes", "gains", "leaf_weights", "sets")
        )
        no_rows = np.empty(0, dtype=np.int32)
        tree = cls.from_arrays(nodes, gains, weights.reshape(n_leaves, -1), sets.reshape(-1, 4), no_rows)
        tree._device, tree._arrays, tree._deepest = device, arrays, deepest
        tree._leaves = CudaArray(device, arrays["leaves"], (n_rows,))
        return tree

    _device: Device
    _arrays: Mapping[str, Array]
    _deepest: int
    _leaves: CudaArray

    @property
    def leaves(self) -> Any:
        """Number of each training row's leaf."""
        return self._leaves

    def votes(self, leaf_votes: NDArray[Any]) -> Any:
        """Return the votes for each training row, given those of the leaves."""
        taken = CudaArray.empty(self._device, (len(self._leaves), self.n_classes), np.float64)
        self._work().run("take_votes", leaves=self._leaves, votes=leaf_votes, measured=taken)
        return taken

    def class_votes(self) -> Any:
        """Return the class that each training row's leaf votes for."""
        taken = CudaArray.empty(self._device, self._leaves.shape, np.int32)
        classes = leaf_classes(self.leaf_weights)
        self._work().run("take_classes", leaves=self._leaves, classes=classes, drawn=taken)
        return taken

    def share_votes(self) -> Any:
        """Return the class shares in each training row's leaf."""
        return self.votes(leaf_shares(self.leaf_weights))

    def _work(self) -> RowWork:
        return RowWork(self._device, n=len(self._leaves), n_classes=self.n_classes)

    def shrunken_shares(self, shrinkages: NDArray[np.float64]) -> CudaArray:
        """Return the vote of each leaf, for each of some shrinkages, as in `shrunken_shares`."""
        device, n_nodes, n_leaves = self._device, len(self._arrays["gains"]), len(self.leaf_weights)
        numbers = {"n_nodes": n_nodes, "n_classes": self.n_classes, "n_leaves": n_leaves}
        arrays = {name: self._arrays[name] for name in ("nodes", "parents", "depths", "totals")}
        arrays["shrinkages"] = device.put(shrinkages)
        size = len(shrinkages) * self.n_classes
        arrays["estimates"] = device.empty(size * n_nodes, np.float64)
        arrays["votes"] = device.empty(size * n_leaves, np.float64)
        given = np.zeros((), dtype=SHRUNKEN)
        for name, number in {**numbers, "n_shrinkages": len(shrinkages)}.items():
            given[name] = number
        for name, array in arrays.items():
            given[name] = device.address(array)
        for depth in range(self._deepest + 1):
            given["depth"] = depth
            device.launch("filter_down", given, device.n_blocks, THREADS)
        return CudaArray(device, arrays["votes"], (len(shrinkages), n_leaves, self.n_classes))
