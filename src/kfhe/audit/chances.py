"""The probability that labels are wrong, based on votes and on reviewed labels.

If mistakes are random, the votes suffice: calibrated like the scores of the robust classifier, they give the
odds against each label, and these times the odds of a mistake are the odds that the label is wrong. If
mistakes follow a pattern, the votes have learnt it, and only people can find them. So there are two
explanations. Each is a logistic regression on the odds against labels, with an offset for each given class,
because error rates differ between classes. The prior of the first is based on the votes; that of the second
leaves the error rate open. Reviewed labels decide between the two, and update each. chances.js computes the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtr

from kfhe.calibration import RATES, calibrated_votes
from kfhe.forest import sharpened

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

NO_VOTE = 0.04  # of a vote, spread over all classes, because a few trees prove nothing
LEAST_RATE = RATES[1] / 2  # half a step of the rate replaces 0
RANGE = 0.95  # the coverage of the range
THREE = 3  # the rule of three: if none of n was wrong, up to 3 / n may be
LEAST = 1e-6
STEPS = np.arange(-12, 13) / 4  # standard deviations, for sums over a normal distribution


class Explanation(NamedTuple):
    """An explanation of wrong labels: mean and standard deviation of the priors. All start equally likely."""

    level: tuple[float, float]
    slope: tuple[float, float]
    of_class: tuple[float, float]


BY_PATTERN = Explanation(level=(-1.25, 1.0), slope=(0.75, 0.2), of_class=(0.0, 1.0))


def by_chance(level: float) -> Explanation:
    """Return the explanation that mistakes are random, at the rate estimated from the votes."""
    return Explanation(level=(level, 0.65), slope=(1.0, 0.3), of_class=(0.0, 0.4))


@dataclass(frozen=True)
class Chances:
    """The probability that labels are wrong.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        The probability that each label is wrong; 0 or 1 for reviewed ones.
    share : float
        Estimated share of wrong labels; the posterior median, if some were reviewed.
    low, high : float
        A range that contains the share with 95 % probability, if one of the explanations is right.
    of_class : ndarray of shape (n_classes,)
        Estimated share of wrong labels in each class.
    n_judged, n_wrong : int
        Number of reviewed labels, and number of those found wrong.
    """

    wrong: Floats
    share: float
    low: float
    high: float
    of_class: Floats
    n_judged: int = 0
    n_wrong: int = 0


class VotedOdds(NamedTuple):
    """Evidence from votes: the log-odds against each label, and the prior log-odds of a mistake."""

    against: Floats
    level: float

    @classmethod
    def of(cls, votes: Floats, labels: Labels) -> VotedOdds:
        """Calibrate out-of-sample votes; rows without votes are NaN."""
        n, n_classes = votes.shape
        voted = ~np.isnan(votes[:, 0])
        spread = (np.where(voted[:, None], votes, 1 / n_classes) + NO_VOTE / n_classes) / (1 + NO_VOTE)
        found = calibrated_votes(spread[voted], labels[voted])
        right = sharpened(spread, found.likeliest)[np.arange(n), labels]
        rate = max(found.noise_rate, LEAST_RATE)
        return cls(-logit(np.clip(right, LEAST, 1 - LEAST)), float(logit(rate) - np.log(n_classes - 1)))


def chances(
    votes: Floats,
    labels: Labels,
    judged: NDArray[np.bool_] | None = None,
    wrong: NDArray[np.bool_] | None = None,
) -> Chances:
    """Return the probability that each label is wrong, from votes and reviewed labels.

    Parameters
    ----------
    votes : ndarray of shape (n, n_classes)
        Out-of-sample shares of the votes; NaN for rows without any.
    labels : int32 array of shape (n,)
        The given labels, as positions of classes.
    judged, wrong : ndarray of bool of shape (n,), optional
        The reviewed rows, and which of these were found wrong.

    Returns
    -------
    Chances
        The probability for each label, and the share of wrong ones with a range.
    """
    judged = np.zeros(len(labels), dtype=bool) if judged is None else judged
    wrong = judged if wrong is None else wrong & judged
    n_judged, n_wrong = int(judged.sum()), int(wrong.sum())
    known, not_wrong = n_wrong / len(labels), (n_judged - n_wrong) / len(labels)
    if np.isnan(votes).all():
        of_class = _mean_of_class(wrong, labels, votes.shape[1])
        return Chances(wrong.astype(float), known, known, 1 - not_wrong, of_class, n_judged, n_wrong)
    against, level = VotedOdds.of(votes, labels)
    fits = [
        _Fit(each, against, labels, votes.shape[1], judged, wrong)
        for each in ((by_chance(level), BY_PATTERN) if judged.any() else (by_chance(level),))
    ]
    believed = np.exp(np.array([fit.evidence for fit in fits]) - max(fit.evidence for fit in fits))
    believed /= believed.sum()
    found = sum(weight * fit.wrong for weight, fit in zip(believed, fits, strict=True))
    low, median, high = (
        _quantile(believed, fits, chance) for chance in ((1 - RANGE) / 2, 0.5, (1 + RANGE) / 2)
    )
    low, high = (
        max(_rounded(low), known),
        min(max(_rounded(high), known + THREE / len(labels)), 1 - not_wrong),
    )
    share = median if judged.any() else np.mean(found)
    share = min(max(_rounded(share), low), high)
    of_class = _mean_of_class(found, labels, votes.shape[1])
    return Chances(np.asarray(found), share, low, high, of_class, n_judged, n_wrong)


def _mean_of_class(values: NDArray[Any], labels: Labels, n_classes: int) -> Floats:
    """Return the mean of values over the rows of each class; 0 for a class without rows."""
    sums = np.bincount(labels, values, n_classes)
    means = sums / np.maximum(np.bincount(labels, minlength=n_classes), 1)
    return np.array([_rounded(mean) for mean in means])


def _rounded(share: float | np.floating[Any]) -> float:
    """Return a rounded share, because the last bits of sums differ between machines."""
    return float(f"{share:.6g}")


class _Fit:
    """One explanation, fitted to the reviewed labels.

    The weights maximise the posterior. Their covariance gives a distribution of the log-odds of the share;
    given these, labels are independent.
    """

    def __init__(
        self,
        prior: Explanation,
        against: Floats,
        labels: Labels,
        n_classes: int,
        judged: NDArray[np.bool_],
        wrong: NDArray[np.bool_],
    ) -> None:
        inputs = np.zeros((judged.sum(), 2 + n_classes))
        inputs[:, 0], inputs[:, 1] = 1, against[judged]
        inputs[np.arange(len(inputs)), 2 + labels[judged]] = 1
        mean, deviation = np.array([prior.level, prior.slope, *[prior.of_class] * n_classes]).T
        weights, curvature, loss = _likeliest(inputs, wrong[judged], mean, deviation**-2.0)
        spread = np.log(deviation).sum() + np.linalg.slogdet(curvature)[1] / 2
        self.evidence = float(-loss - spread)

        self.wrong = np.where(judged, wrong, expit(weights[0] + weights[1] * against + weights[2 + labels]))
        unsure = self.wrong * (1 - self.wrong)
        slope = np.r_[unsure.sum(), unsure @ against, np.bincount(labels, unsure, n_classes)] / len(labels)
        share = np.clip(self.wrong.mean(), LEAST, 1 - LEAST)
        deviation = float(slope @ np.linalg.solve(curvature, slope)) ** 0.5 / (share * (1 - share))
        self.shares = expit(logit(share) + STEPS * deviation)
        self.deviation = max(float(unsure.sum()) ** 0.5 / len(labels), LEAST)

    def below(self, share: float) -> float:
        """Return the probability that less than a share of the labels is wrong."""
        densities = np.exp(-(STEPS**2) / 2)
        return float(densities @ ndtr((share - self.shares) / self.deviation) / densities.sum())


def _likeliest(
    inputs: Floats, wrong: NDArray[np.bool_], mean: Floats, precision: Floats
) -> tuple[Floats, Floats, float]:
    """Return the weights of highest posterior, the curvature of the loss there, and the loss."""

    def loss(weights: Floats) -> float:
        scores = inputs @ weights
        return float(
            np.logaddexp(0, scores).sum() - scores[wrong].sum() + precision @ (weights - mean) ** 2 / 2
        )

    def slope(weights: Floats) -> Floats:
        return inputs.T @ (expit(inputs @ weights) - wrong) + precision * (weights - mean)

    def curvature(weights: Floats) -> Any:
        shares = expit(inputs @ weights)
        return (inputs.T * (shares * (1 - shares))) @ inputs + np.diag(precision)

    found = minimize(loss, mean, jac=slope, hess=curvature, method="trust-exact", options={"gtol": LEAST})
    return found.x, curvature(found.x), float(found.fun)


def _quantile(believed: Floats, fits: Sequence[_Fit], share_of_chance: float) -> float:
    """Return a quantile of the share."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        below = believed @ [fit.below(middle) for fit in fits] < share_of_chance
        low, high = (middle, high) if below else (low, middle)
    return high
