"""Calibration: from scores, which predict the given labels, to probabilities of the true classes.

Scores are the mean votes of shrunken trees. They are too cautious, and more so with noisy labels. So the
probabilities are powers of the scores, scaled to sum to 1; the exponent is called the sharpness. If a share
of the labels is wrong at random, a class of probability q has the label probability
(1 - share) q + share / (c - 1) (1 - q), where c is the number of classes. The share is estimated by maximum
likelihood on the labels of unseen rows.

With few labels, or labels that are hard to learn, cautious scores and wrong labels look the same. So both
parameters have a prior. That of the share is centred near the rate of disagreement among the most certain
rows. That of the sharpness is half way, in logarithms, between 1, for rows that are just hard, and the value
that undoes wrong labels: scores that are right about the labels distinguish the classes only by
1 - rate c / (c - 1) as much as the true probabilities do. The sharpness is the posterior mean, because the
single best value is often far too certain where classes overlap.
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

ENOUGH = 5_000  # rows; larger samples are halved until at most one row per block is left
LEAST_COVERED = 0.95  # minimum weight of the classes that have a row which some tree has not seen
# Both are searched on a grid: the last bits of sums differ between machines, and models must not.
STEPS = range(4, 65)
SHARPNESSES = np.array(STEPS) / STEPS_OF_SHARPNESS  # 0.5 to 8
RATES = np.arange(96) / 100
COARSE = 6  # first every sixth sharpness is tried, then those around the best
RATE_SPREAD = 0.1  # standard deviation of the prior of the rate
LEAST_TOLD = 1 / SHARPNESSES[-1]  # minimum for 1 - rate c / (c - 1)
SUREST = 0.2  # minimum share of the rows that the prior of the rate is based on


class Calibration(NamedTuple):
    """Parameters that turn scores into probabilities of the true classes."""

    sharpness: float
    noise_rate: float
    class_shares: Floats  # of the true classes
    likeliest: float = 1.0  # the sharpness that maximises the likelihood together with the rate


def calibrate(rows: TrainingRows, scores: Floats, n_read: Labels, prior: Floats) -> Calibration:
    """Estimate the calibration from the out-of-bag scores of the training rows.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    scores : ndarray of shape (n_rows, n_classes)
        Their out-of-bag scores.
    n_read : ndarray of shape (n_rows,)
        Number of trees behind each score. Rows with none, such as rows of a large weight, are ignored.
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
    """Return label, base weight and scores of a sample of the rows that some tree has not seen.

    One row of each stretch is picked at random, the same ones in each block, since workers have whole blocks.
    """
    starts = np.arange(0, ROWS_OF_BLOCK, step)
    picked = starts + np.random.default_rng([seed, step]).integers(step, size=len(starts))
    chosen = (np.arange(0, len(labels), ROWS_OF_BLOCK)[:, None] + picked).ravel()
    chosen = chosen[chosen < len(labels)]
    chosen = chosen[n_read[chosen] > 0]
    return np.column_stack([labels[chosen], base[chosen], scores[chosen]])


def calibrated(sample: Floats, prior: Floats) -> Calibration:
    """Return the parameters under which the labels of some rows are most likely.

    Heavy rows are unseen by fewer trees. So the rows of each class are reweighted to the total of that class;
    if a class that matters has no rows, the scores stay as they are.
    """
    labels, scores = sample[:, 0].astype(np.int32), sample[:, 2:]
    n_rows, n_classes = scores.shape
    expected = rate_among_the_surest(scores, labels)
    of_class = np.bincount(labels, weights=sample[:, 1], minlength=n_classes)
    if n_classes == 1 or prior[of_class > 0].sum() < LEAST_COVERED:
        return Calibration(1.0, expected, prior)
    weights = sample[:, 1] * (prior / np.where(of_class > 0, of_class, 1.0))[labels]
    weights *= weights.sum() / (weights**2).sum()  # the effective sample size
    told = max(1 - expected * n_classes / (n_classes - 1), LEAST_TOLD)

    # The probability of a label is 1 over the sum of the powers of all scores divided by the label's own.
    roots = eighth_root((scores / scores[np.arange(n_rows), labels, None]).T.copy())

    losses, rates = np.full((2, len(SHARPNESSES)), np.inf)

    def try_out(tried: range) -> int:
        """Compute the loss of some sharpnesses, each with its best rate; return the best so far."""
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
    """Return the position of the mean logarithmic sharpness, by the loss of each; inf: not tried."""
    tried = np.flatnonzero(np.isfinite(losses))
    logarithms = np.log(SHARPNESSES[tried])
    chances = np.exp(losses.min() - losses[tried]) * np.gradient(logarithms)
    mean = np.exp((chances * logarithms).sum() / chances.sum())
    return int(abs(SHARPNESSES - mean).argmin())


def calibrated_votes(votes: Floats, labels: Labels) -> Calibration:
    """Return the calibration for votes on rows of equal weight.

    Large samples are thinned out.
    """
    n, n_classes = votes.shape
    rows = slice(None, None, max(1, n // ENOUGH))
    sample = np.column_stack([labels, np.full(n, 1 / n), votes])[rows]
    return calibrated(sample, np.bincount(labels[rows], minlength=n_classes) / len(sample))


def rate_among_the_surest(votes: Floats, labels: Labels) -> float:
    """Return the lowest disagreement rate among the rows with the most certain votes, at least a fifth.

    If labels are wrong at random, easy rows are wrong as often as others. Votes for a single class are never
    certain.
    """
    n, n_classes = votes.shape
    if not n or n_classes < 2:
        return 0.0
    *_, second, first = np.sort(votes, axis=1).T
    differ = votes.argmax(axis=1) != labels
    counts = differ[np.argsort(second - first, kind="stable")].cumsum()
    return float((counts / np.arange(1, n + 1))[round(SUREST * n) :].min())


def best_rates(right: Floats, n_classes: int, weights: Floats, expected: float) -> tuple[Floats, Floats]:
    """Return the losses and the most likely error rates of the labels.

    Parameters
    ----------
    right : ndarray of shape (n_fits, n_rows)
        For each sharpness, the probability that each row's label is the true class.
    n_classes : int
        Number of classes.
    weights : ndarray of shape (n_rows,)
        Weight of each row.
    expected : float
        The mean of the prior of the rate.

    Returns
    -------
    tuple of (ndarray, ndarray)
        For each fit, the negative logarithm of likelihood times prior, and the rate: one of `RATES` under
        which the labels still distinguish the classes.
    """
    lead = right - (1 - right) / (n_classes - 1)  # probability of the label minus the mean of the others

    def chances(steps: NDArray[np.int64]) -> Floats:
        return right - RATES[steps, None] * lead

    def losses(steps: NDArray[np.int64]) -> Floats:
        prior: Floats = ((RATES[steps] - expected) / RATE_SPREAD) ** 2 / 2
        return prior - (weights * np.log(chances(steps))).sum(axis=1)

    low = np.zeros(len(right), dtype=np.int64)
    high = np.full_like(low, round(RATES[-1] * (1 - 1 / n_classes) * 100))
    weighted = weights * lead
    while (low < high).any():  # bisection for the first rate from which the convex loss rises
        middle = (low + high) // 2
        slopes = (weighted / chances(middle)).sum(axis=1) + (RATES[middle] - expected) / RATE_SPREAD**2
        low, high = (
            np.where(slopes < 0, np.minimum(middle + 1, high), low),
            np.where(slopes < 0, high, middle),
        )
    before = np.maximum(low - 1, 0)
    first, second = losses(before), losses(low)
    return np.minimum(first, second), RATES[np.where(first <= second, before, low)]
