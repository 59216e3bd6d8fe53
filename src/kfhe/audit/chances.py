"""How likely labels are wrong: by the votes, and by what people found of some of them.

If labels went wrong by chance, the votes tell: calibrated, as the robust classifier calibrates its scores,
they give the odds against each label, and these times the odds of a mistake are the odds that it is wrong. If
mistakes follow a pattern, the votes have learnt it, and people have to tell. So there are two explanations.
Each is a logistic regression on the odds against labels, with an offset for each given class, as some classes
are mistaken more often. The prior of the one is what the votes say; that of the other leaves open how often
labels go wrong. What people find decides between the two, and corrects each. chances.js does the same sums.
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

NO_VOTE = 0.04  # of a vote, spread over all classes: a handful of trees is no proof
LEAST_RATE = RATES[1] / 2  # a rate of 0 is one that is nearer to 0 than to the next step
RANGE = 0.95  # the chance that the range covers the share
THREE = 3  # rows of which none was found wrong leave room for so many wrong ones: the rule of three
LEAST = 1e-6
STEPS = np.arange(-12, 13) / 4  # deviations, at which a normal distribution is summed up


class Explanation(NamedTuple):
    """Why labels are wrong: mean and deviation of each weight's prior. All are as likely at first."""

    level: tuple[float, float]
    slope: tuple[float, float]
    of_class: tuple[float, float]


BY_PATTERN = Explanation(level=(-1.25, 1.0), slope=(0.75, 0.2), of_class=(0.0, 1.0))


def by_chance(level: float) -> Explanation:
    """Return the explanation that labels went wrong by chance, as often as the votes say."""
    return Explanation(level=(level, 0.65), slope=(1.0, 0.3), of_class=(0.0, 0.4))


@dataclass(frozen=True)
class Chances:
    """How likely labels are wrong.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        The chance that each label is wrong; 0 or 1 for those that somebody judged.
    share : float
        Estimated share of wrong labels: once some were judged, the median of what it may be.
    low, high : float
        The range that the share is in, with a chance of 95 % if one of the explanations is right.
    of_class : ndarray of shape (n_classes,)
        Estimated share of wrong labels among those of each class.
    n_judged, n_wrong : int
        How many labels were judged, and how many of these found wrong.
    """

    wrong: Floats
    share: float
    low: float
    high: float
    of_class: Floats
    n_judged: int = 0
    n_wrong: int = 0


class VotedOdds(NamedTuple):
    """What votes say of labels: the log-odds against each, and those that the rate of mistakes adds."""

    against: Floats
    level: float

    @classmethod
    def of(cls, votes: Floats, labels: Labels) -> VotedOdds:
        """Calibrate votes by classifiers that have not seen the labels; rows may have none, which are NaN."""
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
    """Return how likely labels are wrong: by chance if nobody judged any, else as decisions explain it.

    Parameters
    ----------
    votes : ndarray of shape (n, n_classes)
        Shares of the votes by classifiers that have not seen the labels; NaN for rows without any.
    labels : int32 array of shape (n,)
        The given labels, as positions of classes.
    judged, wrong : ndarray of bool of shape (n,), optional
        The rows that somebody has judged, and which of these were found wrong.

    Returns
    -------
    Chances
        The chance for each label, and the share of wrong ones with a range.
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
    """Return a share without the last bits of sums, which are not the same on all machines."""
    return float(f"{share:.6g}")


class _Fit:
    """What one explanation makes of all labels, after it heard of the judged ones.

    The weights are the likeliest ones. Their covariance spreads the log-odds of the share, and around each of
    these, chance decides about each label.
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
        """Return the chance that less than a share of the labels is wrong."""
        densities = np.exp(-(STEPS**2) / 2)
        return float(densities @ ndtr((share - self.shares) / self.deviation) / densities.sum())


def _likeliest(
    inputs: Floats, wrong: NDArray[np.bool_], mean: Floats, precision: Floats
) -> tuple[Floats, Floats, float]:
    """Return the likeliest weights, the curvature of the loss there, and the loss."""

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
    """Return the share that the true one is below, with a chance."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        below = believed @ [fit.below(middle) for fit in fits] < share_of_chance
        low, high = (middle, high) if below else (low, middle)
    return high
