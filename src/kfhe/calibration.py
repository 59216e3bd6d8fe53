"""Calibration: from scores, which predict the given labels, to probabilities of the true classes.

Scores are the mean votes of shrunken trees. They are too cautious, the more so the noisier the labels. So
the probabilities are powers of the scores, scaled to sum to 1; the exponent is called the sharpness. If a
share of the labels is wrong at random, the label is a class of probability q with the probability
(1 - share) q + share / (c - 1) (1 - q), where c is the number of classes. The share is that by which the
labels of unseen rows are most likely.

With few labels, or labels that are hard to learn, cautious scores can't be told from wrong labels. So both
have a prior. That of the share is near the rate of disagreement among the surest rows. That of the sharpness
is half way, in logarithms, between 1, for rows that are just hard, and the value that undoes wrong labels:
undecided scores that are right about labels tell classes apart by 1 - rate c / (c - 1) of what is true. The
sharpness is the mean of all values by their likelihood: the single best one is often far too sure where
classes overlap.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.draws import ROWS_OF_BLOCK
from kfhe.forest import STEPS_OF_SHARPNESS, eighth_root, sharpened, times_itself

if TYPE_CHECKING:
    from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

ENOUGH = 5_000  # rows; more are thinned out by halves, to one in a block at most
LEAST_COVERED = 0.95  # share of the weight that has to be of classes with a row that some tree has not seen
# Both are found in steps, as the last bits of sums are not the same on all machines, and models have to be.
STEPS = range(4, 65)
SHARPNESSES = np.array(STEPS) / STEPS_OF_SHARPNESS  # 0.5 to 8
RATES = np.arange(96) / 100
COARSE = 6  # every so many sharpnesses are tried first, then those around the best
RATE_SPREAD = 0.1  # standard deviation of the prior of the rate
LEAST_TOLD = 1 / SHARPNESSES[-1]  # of what the true classes would tell apart
SUREST = 0.2  # share of the rows by which the rate is foretold, at least


class Calibration(NamedTuple):
    """What stands between scores and true classes."""

    sharpness: float
    noise_rate: float
    class_shares: Floats  # of the true classes
    likeliest: float = 1.0  # the sharpness that goes with the rate: both together are the likeliest


def calibrate(rows: TrainingRows, scores: Floats, n_read: Labels, prior: Floats) -> Calibration:
    """Find out what stands between scores of the training rows, blind to their labels, and true classes.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    scores : ndarray of shape (n_rows, n_classes)
        Their scores.
    n_read : ndarray of shape (n_rows,)
        How many trees these are of. Rows of none, as those of a large weight may be, have no say.
    prior : ndarray of shape (n_classes,)
        Share of each label in the weight of the rows.

    Returns
    -------
    Calibration
        The sharpness of the scores, the share of wrong labels, and the shares of the true classes.
    """
    halvings = max(0, (rows.n_rows // ENOUGH).bit_length() - 1)
    step = min(2**halvings, ROWS_OF_BLOCK)
    sample = sampled(scores, rows.labels, rows.base, n_read, step, rows.seed)
    calibration: Calibration = rows.exchange.all(partial(calibrated, prior=prior), sample)
    return calibration


def sampled(scores: Floats, labels: Labels, base: Floats, n_read: Labels, step: int, seed: int) -> Floats:
    """Return label, base weight and scores of one in so many rows, of those that some tree has not seen.

    Chance picks one of each stretch of rows, the same ones in each block: workers have whole blocks.
    """
    starts = np.arange(0, ROWS_OF_BLOCK, step)
    picked = starts + np.random.default_rng([seed, step]).integers(step, size=len(starts))
    chosen = (np.arange(0, len(labels), ROWS_OF_BLOCK)[:, None] + picked).ravel()
    chosen = chosen[chosen < len(labels)]
    chosen = chosen[n_read[chosen] > 0]
    return np.column_stack([labels[chosen], base[chosen], scores[chosen]])


def calibrated(sample: Floats, prior: Floats) -> Calibration:
    """Return what makes the labels of some rows likeliest: rows of a label, a base weight and scores.

    The heavier a row, the fewer trees have not seen it. So the rows of a class are weighed as all of its rows
    are together; if there are none of a class that matters, scores are left as they are.
    """
    labels, scores = sample[:, 0].astype(np.int32), sample[:, 2:]
    n_rows, n_classes = scores.shape
    expected = rate_among_the_surest(scores, labels)
    of_class = np.bincount(labels, weights=sample[:, 1], minlength=n_classes)
    if n_classes == 1 or prior[of_class > 0].sum() < LEAST_COVERED:
        return Calibration(1.0, expected, prior)
    weights = sample[:, 1] * (prior / np.where(of_class > 0, of_class, 1.0))[labels]
    weights *= weights.sum() / (weights**2).sum()  # as many as they are worth
    told = max(1 - expected * n_classes / (n_classes - 1), LEAST_TOLD)

    # What a label has of the probability is 1 over the sum of the powers of all scores over the label's own.
    roots = eighth_root((scores / scores[np.arange(n_rows), labels, None]).T.copy())

    losses, rates = np.full((2, len(SHARPNESSES)), np.inf)

    def try_out(tried: range) -> int:
        """Work out how unlikely some sharpnesses are, and at which rates; return the likeliest so far."""
        right = np.empty((len(tried), n_rows))
        power, factor = times_itself(roots, STEPS[tried[0]]), times_itself(roots, tried.step)
        for row in right:
            np.divide(1.0, power.sum(axis=0), out=row)
            power *= factor
        found, rates[tried] = best_rates(right, n_classes, weights, expected)
        losses[tried] = found + np.log(SHARPNESSES[tried] * told**0.5) ** 2
        return int(losses.argmin())

    k = try_out(range(0, len(SHARPNESSES), COARSE))
    k = try_out(range(max(0, k - COARSE + 1), min(len(SHARPNESSES), k + COARSE)))
    sharpness = float(SHARPNESSES[mean_sharpness(losses)])
    shares = (weights[:, None] * sharpened(scores, sharpness)).sum(axis=0) / weights.sum()
    in_short = np.array([float(f"{share:.6g}") for share in shares])
    return Calibration(sharpness, float(rates[k]), in_short, float(SHARPNESSES[k]))


def mean_sharpness(losses: Floats) -> int:
    """Return the position of the mean logarithmic sharpness, given how unlikely each is; inf: not tried."""
    tried = np.flatnonzero(np.isfinite(losses))
    logarithms = np.log(SHARPNESSES[tried])
    chances = np.exp(losses.min() - losses[tried]) * np.gradient(logarithms)
    mean = np.exp((chances * logarithms).sum() / chances.sum())
    return int(abs(SHARPNESSES - mean).argmin())


def calibrated_votes(votes: Floats, labels: Labels) -> Calibration:
    """Return what stands between votes on rows, which count alike, and true classes.

    Of many rows every so many are enough.
    """
    n, n_classes = votes.shape
    rows = slice(None, None, max(1, n // ENOUGH))
    sample = np.column_stack([labels, np.full(n, 1 / n), votes])[rows]
    return calibrated(sample, np.bincount(labels[rows], minlength=n_classes) / len(sample))


def rate_among_the_surest(votes: Floats, labels: Labels) -> float:
    """Return the lowest rate of disagreement among the rows that votes are surest of, a fifth or more of all.

    Rows that are easy to tell apart are wrong as often as others, if labels went wrong by chance. Votes on a
    single class are sure of nothing.
    """
    n, n_classes = votes.shape
    if not n or n_classes < 2:
        return 0.0
    *_, second, first = np.sort(votes, axis=1).T
    differ = votes.argmax(axis=1) != labels
    counts = differ[np.argsort(second - first, kind="stable")].cumsum()
    return float((counts / np.arange(1, n + 1))[round(SUREST * n) :].min())


def best_rates(right: Floats, n_classes: int, weights: Floats, expected: float) -> tuple[Floats, Floats]:
    """Return the rates of wrong labels by which these are likeliest, and before them how unlikely they are.

    Parameters
    ----------
    right : ndarray of shape (n_fits, n_rows)
        The probability that each row's label is the true class, for each of some sharpnesses.
    n_classes : int
        Number of classes.
    weights : ndarray of shape (n_rows,)
        How many rows each row counts for.
    expected : float
        The rate that is expected.

    Returns
    -------
    tuple of (ndarray, ndarray)
        The negative logarithm of the likelihood times the prior, and the rate, of each fit: one of `RATES` at
        which labels still tell the classes apart.
    """
    lead = right - (1 - right) / (n_classes - 1)  # of the label's class before any other

    def chances(steps: NDArray[np.int64]) -> Floats:
        return right - RATES[steps, None] * lead

    def losses(steps: NDArray[np.int64]) -> Floats:
        prior: Floats = ((RATES[steps] - expected) / RATE_SPREAD) ** 2 / 2
        return prior - (weights * np.log(chances(steps))).sum(axis=1)

    low = np.zeros(len(right), dtype=np.int64)
    high = np.full_like(low, round(RATES[-1] * (1 - 1 / n_classes) * 100))
    weighted = weights * lead
    while (low < high).any():  # for the first rate from which on the loss, which is convex, rises
        middle = (low + high) // 2
        slopes = (weighted / chances(middle)).sum(axis=1) + (RATES[middle] - expected) / RATE_SPREAD**2
        low, high = (
            np.where(slopes < 0, np.minimum(middle + 1, high), low),
            np.where(slopes < 0, high, middle),
        )
    before = np.maximum(low - 1, 0)
    first, second = losses(before), losses(low)
    return np.minimum(first, second), RATES[np.where(first <= second, before, low)]
