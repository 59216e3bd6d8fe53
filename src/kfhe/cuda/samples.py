"""Samples drawn on a GPU, equal to those of `kfhe.engine.draws`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.cuda.array import CudaArray
from kfhe.cuda.device import Device
from kfhe.cuda.work import RowWork
from kfhe.engine.draws import REDRAWS, ROWS_OF_BLOCK, Draws

LEAST, MOST = 2**59, 2**61  # bounds of the sum of all weights, in units of 2^-60


class CudaDraws:
    """Weighted bootstrap samples with a row of every class, if possible, as in `Draws`.

    Parameters
    ----------
    device : Device
        The device.
    labels, n_classes, n_present, seed, n_draws
        As in `Draws`.
    """

    def __init__(
        self,
        device: Device,
        labels: NDArray[np.int32],
        n_classes: int,
        n_present: int,
        seed: int,
        n_draws: int,
    ) -> None:
        self._arguments = (labels, n_classes, n_present, seed, 1, n_draws)
        self._n, self._n_classes, self._n_present, self._n_draws = len(labels), n_classes, n_present, n_draws
        self._n_blocks = -(-self._n // ROWS_OF_BLOCK)
        self._cumulated = CudaArray.empty(device, (self._n,), np.uint64)
        self._work = RowWork(device, n=self._n, labels=labels, seed=seed)
        self._blocks = RowWork(device, n=self._n_blocks, seed=seed, n_draws=n_draws)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle as draws of the host, which are the same."""
        return Draws, self._arguments

    def draw(self, weights: Any, iteration: int, attempt: int) -> CudaArray:
        """Return how often each row is in the sample; redraw up to a limit while a class is missing."""
        device, n_blocks = self._work.device, self._n_blocks
        totals = self._work.run(
            "cumulate", n_blocks, n_blocks=n_blocks, state=weights, cumulated=self._cumulated
        )
        cumulated = np.cumsum(totals.view(np.uint64), dtype=np.uint64)
        if not LEAST < int(cumulated[-1]) < MOST:
            raise ValueError("weights to draw by must be at least 0 and sum to 1")
        first = attempt * (REDRAWS + 1)
        for redraw in range(first, first + REDRAWS + 1):
            named = {"iteration": iteration, "attempt": redraw}
            chosen = CudaArray.of(device, np.array([0] * (n_blocks - 1) + [self._n_draws]), np.int64)
            if n_blocks > 1:
                chosen = CudaArray.of(device, np.zeros(n_blocks), np.int64)
                self._blocks.run(
                    "choose_blocks",
                    n_blocks=min(device.n_blocks, -(-self._n_draws // 1024)),
                    n_room=min(n_blocks, 10240),
                    cumulated=cumulated,
                    chosen=chosen,
                    **named,
                )
            counts = CudaArray.empty(device, (self._n,), np.int32)
            seen = CudaArray.of(device, np.zeros(self._n_classes), np.uint8)
            self._work.run(
                "draw_rows",
                n_blocks=n_blocks,
                n_room=ROWS_OF_BLOCK,
                cumulated=self._cumulated,
                chosen=chosen,
                drawn=counts,
                seen=seen,
                **named,
            )
            if np.count_nonzero(np.asarray(seen)) == self._n_present:
                break
        return counts
