"""The chance that a label is wrong: from its votes, and from what people found of others.

If votes were the chances of the true classes, the odds that a label is wrong would be the odds against it in
the votes, times a factor that says how often labels go wrong. So the model is a logistic regression on the
log-odds of the votes, with an offset for each given class: some classes are mistaken more often. What is
expected before anybody has looked is a prior, which decisions soon outweigh. page.js does the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from kfhe.audit import LabelAudit

Floats = NDArray[np.float64]

NO_VOTE = 0.02  # added to votes for and against: a handful of trees is no proof
# Mean and deviation of the prior: labels that the votes are split on are wrong more rarely than not
LEVEL, SLOPE, OF_CLASS = (-1.0, 1.5), (1.0, 0.5), (0.0, 1.0)
WIDTH = 1.645  # deviations either side: 90 %
LEAST = 1e-6


@dataclass(frozen=True)
class Chances:
    """How likely labels are wrong.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        The chance that each label is wrong; 0 or 1 for those that somebody judged.
    share : float
        Expected share of wrong labels.
    low, high : float
        The range that the share is in, with a chance of 90 % if the model is right.
    n_judged, n_wrong : int
        How many labels were judged, and how many of these found wrong.
    """

    wrong: Floats
    share: float
    low: float
    high: float
    n_judged: int
    n_wrong: int


def wrong_chances(audit: LabelAudit, judged: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Chances:
    """Return how likely the labels of an audit are wrong, by what was found of some of them.

    Parameters
    ----------
    audit : LabelAudit
        The audit of all rows.
    judged : ndarray of bool of shape (n,)
        The rows that somebody has judged.
    wrong : ndarray of bool of shape (n,)
        Which of these were found wrong.

    Returns
    -------
    Chances
        The chance for each label, and the share of wrong ones with a range.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.audit import label_quality
    >>> from kfhe.noise import flip_labels
    >>> from kfhe.review import wrong_chances
    >>> X, y = load_iris(return_X_y=True)
    >>> noisy = flip_labels(y, 0.2, random_state=0)
    >>> audit = label_quality(X, noisy, random_state=0, n_estimators=200)
    >>> found = wrong_chances(audit, audit.rank <= 20, noisy != y)  # somebody judged the worst 20
    >>> bool(found.low < 0.2 < found.high)
    True
    """
    against = odds_against(audit.quality)
    classes = np.searchsorted(audit.classes, audit.given)
    inputs = np.zeros((len(audit), 2 + len(audit.classes)))
    inputs[:, 0], inputs[:, 1] = 1, against
    inputs[np.arange(len(audit)), 2 + classes] = 1
    wrong = wrong & judged
    weights, covariance = _fitted(inputs[judged], wrong[judged])
    found = np.where(judged, wrong, expit(inputs @ weights))
    spread = np.where(judged, 0.0, found * (1 - found))
    share = float(np.clip(found.mean(), LEAST, 1 - LEAST))
    slope = spread @ inputs / len(audit)
    deviation = np.sqrt(slope @ covariance @ slope + spread.sum() / len(audit) ** 2)
    reach = WIDTH * deviation / (share * (1 - share))
    low, high = expit(logit(share) - reach), expit(logit(share) + reach)
    low = max(low, wrong.mean())  # so many are known
    return Chances(found, share, float(low), float(high), int(judged.sum()), int(wrong.sum()))


def odds_against(quality: Floats) -> Floats:
    """Return the log-odds against a label by its votes; even ones if it has no votes."""
    quality = np.where(np.isnan(quality), 0.5, quality)
    return np.log((1 - quality + NO_VOTE) / (quality + NO_VOTE))


def _fitted(inputs: Floats, wrong: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the likeliest weights, and their covariance there."""
    n_classes = inputs.shape[1] - 2
    mean, deviation = np.array([LEVEL, SLOPE, *[OF_CLASS] * n_classes]).T
    precision = deviation**-2.0

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

    weights: Floats = minimize(
        loss, mean, jac=slope, hess=curvature, method="trust-exact", options={"gtol": LEAST}
    ).x
    return weights, np.linalg.inv(curvature(weights))
