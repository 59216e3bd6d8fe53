"""The chance that a label is wrong, by what people found of others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kfhe.audit import LabelAudit
from kfhe.audit.chances import Chances, chances


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
    labels = np.searchsorted(audit.classes, audit.given).astype(np.int32)
    return chances(audit.votes, labels, judged, wrong)
