"""Bootstrap samples of rows that are spread."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.parts import chosen_blocks, drawn, taken
from kfhe.dask.spread import OfParts, Sample, Spread
from kfhe.dask.workers import added_up, as_is
from kfhe.engine.arrays import class_totals
from kfhe.engine.draws import REDRAWS, block_totals
from kfhe.groups import Groups

if TYPE_CHECKING:
    from kfhe.dask.rows import SpreadRows

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

DRAWS_OF_TASK = 2**22  # draws of which one task finds out into which blocks they fall


class SpreadDraws:
    """Bootstrap samples: blocks of rows are drawn first, then rows, where these are."""

    def __init__(self, rows: SpreadRows) -> None:
        self._rows = rows

    def draw(self, weights: Any, iteration: int, attempt: int, redraws: int = REDRAWS) -> Spread:
        """Return how often each row is in the sample; redrawn while a class is missing, but not for ever.

        Whether one is missing is looked at when somebody needs to know.
        """
        rows, workers = self._rows, self._rows.workers
        weights = weights.resolved()
        totals = weights.blocks or workers.everywhere(rows.map(block_totals, weights))
        rows.square(weights)
        first = attempt * (REDRAWS + 1)
        likely, likely_totals = self._drawn(weights, totals, (rows.seed, iteration, first))

        def complete() -> Spread:
            counts, of_classes = likely, likely_totals
            for redraw in range(first, first + redraws + 1):
                if redraw > first:
                    counts, of_classes = self._drawn(weights, totals, (rows.seed, iteration, redraw))
                counts.sample = Sample(iteration, redraw, added_up(workers.parts(of_classes)))
                if (counts.sample.class_totals > 0).sum() == rows.n_present:
                    break
            workers.let_go(totals)
            return counts

        promised = Spread.promised(complete)
        promised.likely = likely
        return promised

    def _drawn(self, weights: Spread, totals: Any, keyed: tuple[int, int, int]) -> tuple[Spread, Spread]:
        """Return how often each row is drawn, and how many rows of each class are in each part."""
        rows, spans = self._rows, OfParts([*pairwise(self._rows.first_blocks)])
        counts = rows.map(drawn, weights, self._chosen(totals, keyed), spans, keyed)
        of_classes = rows.map(class_totals, rows.labels, counts, len(rows.classes))
        return counts, rows.workers.want(of_classes)

    def _chosen(self, totals: Any, keyed: tuple[int, int, int]) -> Any:
        """Return how many draws fall into each block: by tasks, unless each part finds out sooner itself."""
        rows, workers, n = self._rows, self._rows.workers, self._rows.n_samples
        if workers.n_parts == 1 or n <= DRAWS_OF_TASK:
            return rows.map(chosen_blocks, totals, 0, n, keyed)
        starts = range(0, n, DRAWS_OF_TASK)
        return workers.sum(
            [workers.run(chosen_blocks, totals, i, min(i + DRAWS_OF_TASK, n), keyed) for i in starts]
        )


class SpreadGroupDraws:
    """Bootstrap samples of whole groups: one worker gets the weights of all rows, and draws."""

    def __init__(self, rows: SpreadRows, groups: Groups) -> None:
        self._rows = rows
        self._groups, self._numbers = rows.workers.run(as_is, groups), rows.sent(groups.numbers)

    def draw(self, weights: Any, iteration: int, attempt: int, redraws: int = REDRAWS) -> Spread:
        """Return how often each row is in the sample; redrawn while a class is missing, but not for ever."""
        rows, workers = self._rows, self._rows.workers
        weights = weights.resolved()
        rows.square(weights)
        first = attempt * (REDRAWS + 1)
        for redraw in range(first, first + redraws + 1):
            keyed = rows.n_samples, rows.seed, iteration, redraw
            times = workers.run(drawn_groups, workers.pieces(weights), self._groups, keyed)
            counts = rows.map(taken, times, self._numbers)
            of_classes = rows.map(class_totals, rows.labels, counts, len(rows.classes))
            counts.sample = Sample(iteration, redraw, added_up(workers.parts(of_classes)))
            if (counts.sample.class_totals > 0).sum() == rows.n_present:
                break
        return counts


def drawn_groups(weights: list[Floats], groups: Groups, keyed: tuple[int, int, int, int]) -> Labels:
    """Return how often each group is drawn, by the weights of the rows of all parts."""
    return groups.times(np.concatenate(weights), *keyed)
