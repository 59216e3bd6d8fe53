"""What workers do with the rows of one part: functions of arrays, which know nothing of Dask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.rooms import Rooms
from kfhe.dask.trees import WalkedTree
from kfhe.engine.arrays import Measurer, correct
from kfhe.engine.bank import HonestBank
from kfhe.engine.draws import draw_rows, draws_of_blocks

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


def of_all(function: Callable[[Any], Any], parts: list[Any]) -> Any:
    """Return what a function gives for all parts together."""
    return function(np.concatenate(parts))


def chosen_blocks(
    totals: list[NDArray[np.uint64]], start: int, stop: int, keyed: tuple[int, int, int]
) -> NDArray[np.int64]:
    """Return how many of some draws fall into each block, by the weights of the blocks of each part."""
    return draws_of_blocks(np.concatenate(totals), start, stop, *keyed)


def drawn(
    weights: Floats, chosen: NDArray[np.int64], span: tuple[int, int], keyed: tuple[int, int, int]
) -> Labels:
    """Return how often each row of a span of blocks is drawn."""
    return draw_rows(weights, span[0], chosen[slice(*span)], *keyed)


def corrected(rooms: Rooms, state: Floats, measurement: Floats, gain: float) -> Floats:
    """Return a state that has moved towards a measurement."""
    after = rooms.empty(state.shape)
    np.copyto(after, state)
    correct(after.ravel(), measurement.ravel(), gain)
    return after


def divided(rooms: Rooms, weights: Floats, total: float | None) -> Floats:
    """Return weights divided by their sum; if that is of no use, anything."""
    return np.divide(weights, total or 1.0, out=rooms.empty(weights.shape))


def returned(state: Floats, transition: float, prior: Floats | float) -> Floats:
    """Return a state that has moved back towards the prior."""
    return state * transition + (1 - transition) * prior


def least_of(weights: Floats) -> float:
    """Return the lowest weight."""
    return float(weights.min(initial=np.inf))


def are_multiples(weights: Floats, least: float) -> bool:
    """Return whether weights are multiples of the lowest."""
    multiples = weights / least
    return bool(np.allclose(multiples, np.rint(multiples), rtol=1e-12, atol=0))


def multiples_of(weights: Floats, least: float) -> Labels:
    """Return how many times the lowest weight each is."""
    return np.rint(weights / least).astype(np.int32)


def scaled_by(weights: Floats, factor: float) -> Labels:
    """Return weights as whole numbers; none becomes 0."""
    return np.maximum(np.rint(weights * factor), 1).astype(np.int32)


def whole_weight(labels: Labels, base: Floats, n_classes: int) -> int:
    """Return the weight of all rows, in a measurer's units."""
    return int((base * 2.0**60 + 0.5).astype(np.int64).sum())


def measure(
    rooms: Rooms, labels: Labels, base: Floats, n_classes: int, state: Floats, votes: Any, fusion: float
) -> tuple[Floats, NDArray[np.bool_], tuple[int, int]]:
    """Return a measurement, the rows that it misses, and the weight of what it and the votes alone miss."""
    measurer = Measurer(labels, base, n_classes, measurement=rooms.empty((len(labels), n_classes)))
    sums = measurer.measure(state, votes, fusion)
    return measurer.measurement, measurer.missed, sums


def misses(labels: Labels, base: Floats, n_classes: int, state: Floats) -> int:
    """Return the weight of the rows that a state misses."""
    return Measurer(labels, base, n_classes).misses(state)


def empty_bank(labels: Labels, base: Floats, prior: Floats, n_filters: int) -> HonestBank:
    """Return a bank that has read no component."""
    return HonestBank(labels, base, prior, n_filters)


def moved(bank: HonestBank, leaves: Labels, votes: Floats, counts: Labels) -> HonestBank:
    """Return a bank that has read one component more."""
    after = bank.copy()
    after.update(leaves, votes, counts)
    return after


def n_read_of(bank: HonestBank) -> Labels:
    """Return how many components have not seen each row."""
    return bank.n_read


def state_of(bank: HonestBank, b: int) -> Floats:
    """Return the state of one filter."""
    return bank.state(b)


def brier_scores(bank: HonestBank) -> Floats:
    """Return the Brier score of each filter, as far as these rows go."""
    return bank.brier_scores()


def bank_misses(
    bank: HonestBank, leaves: Labels, votes: Floats, counts: Labels
) -> tuple[NDArray[np.bool_], tuple[float, float]]:
    """Return which rows a component misses, of those that it has not seen, and what they weigh."""
    missed, wrong, unseen = bank.misses(leaves, votes, counts)
    return missed, (wrong, unseen)


def votes_of_leaves(vote: Callable[[Labels], Any], tree: WalkedTree, leaves: Labels) -> Any:
    """Return the votes of the leaves that rows are in, by what is in the leaves."""
    return vote(tree.leaf_weights)[leaves]


def taken(leaf_votes: Any, leaves: Labels) -> Any:
    """Return the votes of the leaves that rows are in."""
    return leaf_votes[leaves]
