"""Imbalance: classes thinned out, each more than the one before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfhe.noise.draws import checked_rate, generator_of
from kfhe.validation import encode_labels


def thin_classes(y: ArrayLike, rate: float, *, random_state: Any) -> NDArray[np.intp]:
    """Choose the rows to keep so that some classes become rare.

    The classes are put into a random order. The first one keeps all of its rows, the second one ``1 - rate``
    of them, the third one ``(1 - rate) ** 2``, and so on, rounded; each class keeps one row at least.

    Parameters
    ----------
    y : array-like of shape (n,)
        The labels.
    rate : float
        What each class loses compared with the one before it, 0 to 1.
    random_state : int, Generator, RandomState or None
        Where the randomness comes from.

    Returns
    -------
    int array
        Positions of the rows to keep, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.noise import thin_classes
    >>> y = np.repeat(["a", "b", "c"], 100)
    >>> kept = thin_classes(y, 0.5, random_state=0)
    >>> np.unique(y[kept], return_counts=True)
    (array(['a', 'b', 'c'], dtype='<U1'), array([ 25, 100,  50]))
    """
    rate = checked_rate(rate)
    classes, codes = encode_labels(y, "thin_classes")
    generator = generator_of(random_state)
    kept = []
    for place, code in enumerate(generator.permutation(len(classes))):
        members = generator.permutation(np.flatnonzero(codes == code))
        kept.append(members[: max(1, round(len(members) * (1 - rate) ** place))])
    return np.sort(np.concatenate(kept))
