"""The rank tests of the paper: which algorithms differ significantly over many datasets.

Scores are a table of datasets (rows) by algorithms (columns); higher is better. Aligned ranks are based on
plain floating-point differences, as in other programs, so that results can be compared. Rounding may separate
equal differences (0.3 - 0.2 and 0.2 - 0.1) and change the fourth digit of a statistic.
"""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm, rankdata, wilcoxon

from kfhe.display.text import needed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray


class AlignedRanksResult(NamedTuple):
    """Result of the Friedman aligned ranks test.

    Attributes
    ----------
    statistic : float
        T; chi-squared with k - 1 degrees of freedom if all k algorithms are equally good.
    pvalue : float
        Probability of a T at least this large under that hypothesis.
    mean_ranks : ndarray or Series of shape (k,)
        Mean aligned rank of each algorithm, lower is better; a Series for a DataFrame of scores.
    """

    statistic: float
    pvalue: float
    mean_ranks: NDArray[np.float64] | pd.Series


def ranks(scores: ArrayLike | pd.DataFrame) -> NDArray[np.float64] | pd.DataFrame:
    """Rank of each algorithm on each dataset.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_datasets, n_algorithms)
        Higher is better. NaN: an algorithm without a score has no rank.

    Returns
    -------
    ndarray or DataFrame of shape (n_datasets, n_algorithms)
        1 is the best; equal scores share the mean of their ranks. A DataFrame for a DataFrame.

    Examples
    --------
    >>> from kfhe.stats import ranks
    >>> ranks([[0.9, 0.8, 0.7], [0.9, 0.9, 0.6]])
    array([[1. , 2. , 3. ],
           [1.5, 1.5, 3. ]])
    """
    values, algorithms = _checked(scores, least=1, gaps=True)
    found: NDArray[np.float64] = rankdata(-values, axis=1, nan_policy="omit")
    if algorithms is None:
        return found
    return _pandas().DataFrame(found, index=scores.index, columns=algorithms)  # type: ignore[union-attr]


def average_ranks(scores: ArrayLike | pd.DataFrame) -> NDArray[np.float64] | pd.Series:
    """Mean rank of each algorithm over the datasets.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_datasets, n_algorithms)
        Higher is better.

    Returns
    -------
    ndarray or Series of shape (n_algorithms,)
        1 is the best; equal scores share the mean of their ranks. A Series by algorithm for a DataFrame.

    Examples
    --------
    >>> from kfhe.stats import average_ranks
    >>> average_ranks([[0.9, 0.8, 0.7], [0.9, 0.9, 0.6]])
    array([1.25, 1.75, 3.  ])
    """
    values, algorithms = _checked(scores)
    return _by_algorithm(np.mean(ranks(values), axis=0), algorithms)


def friedman_aligned_ranks(scores: ArrayLike | pd.DataFrame) -> AlignedRanksResult:
    """Friedman aligned ranks test of the hypothesis that all algorithms are equally good.

    The mean of each dataset is subtracted from its scores. The differences are ranked over all datasets
    together, the highest first [1]_.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_datasets, n_algorithms)
        Higher is better.

    Returns
    -------
    AlignedRanksResult
        The statistic, its p-value and the mean aligned rank of each algorithm.

    References
    ----------
    .. [1] S. García, A. Fernández, J. Luengo, F. Herrera (2010), "Advanced nonparametric tests for multiple
       comparisons in the design of experiments in computational intelligence and data mining: Experimental
       analysis of power", Information Sciences 180, 2044-2064.

    Examples
    --------
    >>> from kfhe.stats import friedman_aligned_ranks
    >>> result = friedman_aligned_ranks([[0.9, 0.8, 0.7], [0.8, 0.6, 0.5], [0.7, 0.5, 0.6], [0.9, 0.8, 0.6]])
    >>> result.mean_ranks
    array([2.5 , 7.25, 9.75])
    >>> print(f"T = {result.statistic:.2f}, p = {result.pvalue:.3f}")
    T = 6.14, p = 0.046
    """
    values, algorithms = _checked(scores)
    n, k = values.shape
    ranks = _aligned_ranks(values)
    mean_ranks = ranks.mean(axis=0)
    between = (k - 1) * n**2 * np.sum((mean_ranks - (n * k + 1) / 2) ** 2)
    within = n * k * (n * k + 1) * (2 * n * k + 1) / 6 - k * np.sum(ranks.mean(axis=1) ** 2)
    statistic = float(between / within)
    pvalue = float(chi2.sf(statistic, k - 1))
    return AlignedRanksResult(statistic, pvalue, _by_algorithm(mean_ranks, algorithms))


def aligned_ranks_posthoc(scores: ArrayLike | pd.DataFrame) -> NDArray[np.float64] | pd.DataFrame:
    """Post-hoc test of the mean aligned ranks: adjusted p-values for each pair of algorithms.

    The difference of two mean aligned ranks is taken as normal with standard deviation
    sqrt(k (n k + 1) / 6), for n datasets and k algorithms. The p-values are two-sided, and adjusted by
    :func:`finner` over all pairs.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_datasets, n_algorithms)
        Higher is better.

    Returns
    -------
    ndarray or DataFrame of shape (n_algorithms, n_algorithms)
        Symmetric, with 1 on the diagonal; a DataFrame by algorithm for a DataFrame.

    Examples
    --------
    >>> from kfhe.stats import aligned_ranks_posthoc
    >>> scores = [[0.9, 0.8, 0.7], [0.8, 0.6, 0.5], [0.7, 0.5, 0.6], [0.9, 0.8, 0.6]]
    >>> aligned_ranks_posthoc(scores).round(3)
    array([[1.   , 0.092, 0.013],
           [0.092, 1.   , 0.327],
           [0.013, 0.327, 1.   ]])
    """
    values, algorithms = _checked(scores)
    n, k = values.shape
    mean_ranks = _aligned_ranks(values).mean(axis=0)
    first, second = np.triu_indices(k, 1)
    z = (mean_ranks[first] - mean_ranks[second]) / math.sqrt(k * (n * k + 1) / 6)
    pvalues = np.ones((k, k))
    pvalues[first, second] = pvalues[second, first] = finner(2 * norm.sf(np.abs(z)))
    if algorithms is None:
        return pvalues
    return _pandas().DataFrame(pvalues, index=algorithms, columns=algorithms)


def groups_alike(ranks: pd.Series, pvalues: pd.DataFrame, *, alpha: float = 0.05) -> list[list[str]]:
    """Largest groups of neighbouring algorithms, by average rank, without a significant difference.

    Parameters
    ----------
    ranks : Series of shape (n_algorithms,)
        Average ranks.
    pvalues : DataFrame of shape (n_algorithms, n_algorithms)
        Adjusted p-values of all pairs.
    alpha : float, default=0.05
        Two algorithms differ if their p-value is below it.

    Returns
    -------
    list of lists of str
        Groups of two or more, best first. An algorithm can be in several groups, or in none.

    Examples
    --------
    >>> import pandas as pd
    >>> from kfhe.stats import aligned_ranks_posthoc, average_ranks, groups_alike
    >>> rows = [[0.9, 0.8, 0.7], [0.8, 0.6, 0.5], [0.7, 0.5, 0.6], [0.9, 0.8, 0.6]]
    >>> scores = pd.DataFrame(rows, columns=["KFHE", "bagging", "CART"])
    >>> groups_alike(average_ranks(scores), aligned_ranks_posthoc(scores))
    [['KFHE', 'bagging'], ['bagging', 'CART']]
    """
    order = list(ranks.sort_values(kind="stable").index)
    groups: list[list[str]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and (pvalues.loc[order[end], order[start:end]] >= alpha).all():
            end += 1
        # A subset of the previous group is omitted
        if end - start > 1 and not (groups and order[end - 1] in groups[-1]):
            groups.append(order[start:end])
    return groups


def finner(pvalues: ArrayLike) -> NDArray[np.float64]:
    """P-values adjusted for multiple comparisons by Finner's step-down procedure.

    The i-th smallest of m p-values becomes the largest 1 - (1 - p_j) ** (m / j) over j = 1..i.

    Parameters
    ----------
    pvalues : array-like of shape (m,)
        In any order.

    Returns
    -------
    ndarray of shape (m,)
        Adjusted p-values, in the order of the input.

    Examples
    --------
    >>> from kfhe.stats import finner
    >>> finner([0.04, 0.01, 0.5]).round(4)
    array([0.0594, 0.0297, 0.5   ])
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    if raw.ndim != 1:
        raise ValueError(f"pvalues must have 1 dimension, got {raw.ndim}")
    outside = np.flatnonzero(~((raw >= 0) & (raw <= 1)))
    if outside.size:
        raise ValueError(f"pvalues must be between 0 and 1, got {raw[outside[0]]} at position {outside[0]}")
    order = np.argsort(raw)
    exponents = raw.size / np.arange(1, raw.size + 1)
    with np.errstate(divide="ignore"):  # log(0) is correct for a p-value of 1
        # 1 - (1 - p)**exponent, without rounding p-values below 1e-16 to 0
        powers = -np.expm1(exponents * np.log1p(-raw[order]))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.maximum.accumulate(powers)
    return adjusted


def wilcoxon_table(scores: ArrayLike | pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon signed-ranks test of each pair of algorithms, with wins, losses and ties.

    The p-values are two-sided, from the normal approximation without continuity correction, and not adjusted
    for the number of pairs. The ranks of ties count half for each side. The p-values that the paper prints
    are one-sided: half of these.

    Parameters
    ----------
    scores : DataFrame or array-like of shape (n_datasets, n_algorithms)
        Higher is better.

    Returns
    -------
    DataFrame
        One row for each pair: ``first`` and ``second`` (column names of a DataFrame, else column numbers);
        ``wins``, ``losses``, ``ties``: the number of datasets on which the first is better, worse, equal;
        ``pvalue``.

    Examples
    --------
    >>> import pandas as pd
    >>> from kfhe.stats import wilcoxon_table
    >>> scores = pd.DataFrame({"KFHE": [0.9, 0.8, 0.7, 0.9], "CART": [0.8, 0.6, 0.5, 0.9]})
    >>> wilcoxon_table(scores).round(3)
      first second  wins  losses  ties  pvalue
    0  KFHE   CART     3       0     1   0.098
    """
    values, algorithms = _checked(scores)
    names = range(values.shape[1]) if algorithms is None else algorithms
    rows = []
    for (first, x), (second, y) in combinations(zip(names, values.T, strict=True), 2):
        difference = _without_rounding(x - y, values)
        counts = [int(np.sum(np.sign(difference) == sign)) for sign in (1, -1, 0)]
        with warnings.catch_warnings():
            # Old SciPy warns if there are fewer than ten datasets
            warnings.filterwarnings("ignore", "Sample size too small", UserWarning)
            # "approx" selects the normal approximation in old and new versions
            pvalue = wilcoxon(difference, zero_method="zsplit", correction=False, method="approx").pvalue
        rows.append([first, second, *counts, float(pvalue)])
    return _pandas().DataFrame(rows, columns=["first", "second", "wins", "losses", "ties", "pvalue"])


def _checked(scores: Any, *, least: int = 2, gaps: bool = False) -> tuple[NDArray[np.float64], Any]:
    """Return scores as an array, and the column names of a DataFrame."""
    is_frame = hasattr(scores, "columns") and hasattr(scores, "index")
    try:
        values = scores.to_numpy(np.float64, na_value=np.nan) if is_frame else np.asarray(scores, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"scores must be a table of numbers, datasets by algorithms: {error}. "
            "In a DataFrame the names of the datasets belong in the index."
        ) from error
    if values.ndim != 2:
        raise ValueError(f"scores must have 2 dimensions, datasets by algorithms, got {values.ndim}")
    if min(values.shape) < least:
        n, k = values.shape
        raise ValueError(
            f"scores must have at least {least} datasets and {least} algorithms (columns), got {n} and {k}"
        )
    wrong = np.isinf(values) if gaps else ~np.isfinite(values)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        dataset, algorithm = (scores.index[row], scores.columns[column]) if is_frame else (row, column)
        raise ValueError(
            f"scores must be finite, got {values[row, column]} for dataset {dataset}, algorithm {algorithm}"
        )
    return values, scores.columns if is_frame else None


def _without_rounding(difference: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return differences rounded to about 1e-12 of the largest score, so that equal ones are ties."""
    exponent = math.floor(math.log10(max(np.abs(values).max(), 1e-290)))
    rounded: NDArray[np.float64] = np.rint(difference * 10.0 ** (11 - exponent))
    return rounded


def _aligned_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks: NDArray[np.float64] = rankdata(values.mean(axis=1, keepdims=True) - values).reshape(values.shape)
    return ranks


def _by_algorithm(values: NDArray[np.float64], algorithms: Any) -> NDArray[np.float64] | pd.Series:
    return values if algorithms is None else _pandas().Series(values, index=algorithms)


def _pandas() -> Any:
    with needed("a table of results needs pandas", "study"):
        import pandas
    return pandas
