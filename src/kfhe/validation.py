"""Input validation, shared by the classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from kfhe.engine.arrays import exact_sum
from kfhe.exchange import ALONE, Exchange
from kfhe.tables.columns import is_frame, is_missing, is_sparse, same_values, sound

Floats = NDArray[np.float64]

# Constraints of parameters that all classifiers have, as in scikit-learn's validation
COMMON_CONSTRAINTS: dict[str, list[Any]] = {
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "random_state": ["random_state", np.random.Generator],
    "n_jobs": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Integral, None, -1, closed="right"),
        None,
    ],
    "device": [StrOptions({"cpu", "cuda"})],
}
SPARSE_FORMATS = ("csr", "csc")  # others can't be indexed and are converted to the first
LIGHTEST = 2.0**-500  # minimum weight relative to the largest
PLAIN = (np.number, np.bool_, np.str_, np.bytes_)  # NumPy's scalars with an equivalent in Python
MAX_WEIGHT = 2**30  # squares of sums of weights fit into 64 bits


class NamedParameters(BaseEstimator):
    """An estimator that caches the names of its parameters; looking them up takes as long as a few trees."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()
        return names


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore an estimator if fitting fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def checks_of(argument: str) -> Iterator[None]:
    """Add the name of the argument to the errors of a check."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{argument}: {error}") from error


def check_list(estimators: list[Any]) -> None:
    """Raise unless a list contains only valid estimators."""
    if not estimators:
        raise ValueError("estimator is an empty list; give at least one classifier, or None for native trees")
    for each in estimators:
        if not (hasattr(each, "fit") and hasattr(each, "predict")):
            raise TypeError(f"estimator must be a list of classifiers, got {each!r} in it")


def check_component(estimator: Any) -> None:
    """Raise unless an estimator can be a component."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"estimator must be an instance, such as {name}(), got the class {name}")
    if estimator is not None and is_regressor(estimator):
        raise ValueError(f"estimator must be a classifier, got a regressor: {type(estimator).__name__}")


def check_tree_component(tree: Any) -> None:
    """Raise unless a `CARTClassifier` is valid as the settings of native components."""
    tree._validate_params()
    if tree.class_weight is not None:
        raise ValueError(
            f"estimator has class_weight={tree.class_weight!r}: pass class weights to the ensemble instead"
        )
    if tree.device != "cpu":
        raise ValueError(f"estimator has device={tree.device!r}: pass it to the ensemble instead")


def check_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate a table for a classifier of native trees, which encode the columns themselves."""
    if _is_frame(X, estimator):
        return validate_data(estimator, X, reset=reset, skip_check_array=True)
    X = sound(X) if is_sparse(X) else _as_rows(X)
    X = validate_data(
        estimator, X, reset=reset, dtype=None, ensure_all_finite=False, accept_sparse=SPARSE_FORMATS
    )
    return _numbers_if_sparse(X)


def check_foreign_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate a table for a given estimator, which gets it unchanged; sparse rows must be indexable."""
    if is_sparse(X) and X.format not in SPARSE_FORMATS:
        X = X.tocsr()
    _check_even(X)
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


def readable_table(X: Any, who: str, *, sparse: bool = False) -> Any:
    """Validate a table for a function; ``who`` is its name."""
    if is_sparse(X) and not sparse:
        raise TypeError(f"{who} does not take sparse input, got {type(X).__name__}; use X.toarray()")
    if _is_frame(X, who):
        return X
    X = sound(X) if is_sparse(X) else _as_rows(X)
    X = check_array(
        X, dtype=None, ensure_all_finite=False, estimator=who, input_name="X", accept_sparse=SPARSE_FORMATS
    )
    return _numbers_if_sparse(X)


def _as_rows(X: Any) -> Any:
    """Return X; a list of rows with numbers and text becomes an array of objects."""
    _check_even(X)
    if not (isinstance(X, list | tuple) and all(isinstance(row, list | tuple) for row in X)):
        return X
    mixed = len({isinstance(value, str) for row in X for value in row}) > 1
    return np.array(X, dtype=object) if mixed else X  # otherwise 1 and NaN would become strings


def _check_even(X: Any) -> None:
    """Raise if X is a list of rows of different lengths."""
    if not (isinstance(X, list | tuple) and all(isinstance(row, list | tuple | np.ndarray) for row in X)):
        return
    lengths = [np.size(row) if isinstance(row, np.ndarray) else len(row) for row in X]
    for number, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"the rows of X are of different lengths: row {number} has {length}, row 0 has {lengths[0]}; "
                "use NaN or None for a gap"
            )


def _numbers_if_sparse(X: Any) -> Any:
    """Return X; raise if it is a sparse matrix of objects."""
    if is_sparse(X) and X.dtype.kind not in "bfiu":
        raise ValueError(f"X is a sparse matrix of type {X.dtype}; accepted are numbers and booleans")
    return X


def _is_frame(X: Any, who: Any) -> bool:
    """Whether X is a data frame; raise if it is of an unsupported type or empty."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{_name(who)} does not take a LazyFrame; use X.collect()")
    if type(X).__name__ == "RecordBatch":
        raise TypeError(f"{_name(who)} does not take a RecordBatch; use pyarrow.Table.from_batches([X])")
    if is_masked(X):
        raise TypeError(f"{_name(who)} does not take masked values; use X.astype(float).filled(numpy.nan)")
    if not is_frame(X):
        return False
    for size, kind in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(
                f"Found array with 0 {kind}(s) (shape={X.shape}) while a minimum of 1 is required"
            )
    return True


def is_masked(values: Any) -> bool:
    """Whether values are masked; scikit-learn and NumPy would ignore the mask."""
    return isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)


def _name(who: Any) -> str:
    """Return how messages call a function (its name) or an estimator."""
    return who if isinstance(who, str) else type(who).__name__


def encode_labels(y: Any, who: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the sorted classes and each row's position among them; ``who`` is the caller, for messages."""
    if y is None:
        raise ValueError(f"{_name(who)} requires y to be passed, but the target y is None")
    if is_masked(y):
        raise _missing_labels(np.flatnonzero(np.ma.getmaskarray(y)))
    if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biufUO"):
        y = column_or_1d(_as_labels(y), warn=True)
    if len(y) == 0:
        raise ValueError("y is empty: found 0 labels, at least 1 is needed")
    if y.dtype.kind in "OfT":
        missing = np.flatnonzero([is_missing(label) for label in y.tolist()])
        if len(missing):
            raise _missing_labels(missing)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
    try:
        classes, labels = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(f"y mixes labels of types {', '.join(kinds)}; use one type for all") from None
    if classes.dtype == object:
        classes[:] = [label.item() if isinstance(label, PLAIN) else label for label in classes]
    return classes, labels.reshape(-1).astype(np.int32)


def _missing_labels(rows: NDArray[np.intp]) -> ValueError:
    return ValueError(
        f"y has missing labels (NaN, None or masked) in {len(rows)} row{'s' * (len(rows) > 1)}, first in row "
        f"{rows[0]}"
    )


def encode_known_labels(y: Any, classes: NDArray[Any], estimator: Any) -> NDArray[np.int32]:
    """Return each row's position among known classes."""
    found, labels = encode_labels(y, estimator)
    positions = {label: position for position, label in enumerate(classes.tolist())}
    unknown = [label for label in found.tolist() if label not in positions]
    if unknown:
        raise ValueError(f"labels that are not in the training data: {unknown}; it has {list(positions)}")
    return np.array([positions[label] for label in found.tolist()], dtype=np.int32)[labels]


def check_callbacks(callbacks: Any) -> list[Any]:
    """Validate the callbacks of a call of fit."""
    if callbacks is None:
        return []
    if not (isinstance(callbacks, list | tuple) and all(map(callable, callbacks))):
        raise TypeError(
            f"callbacks must be a list of functions that take an iteration's row, got {callbacks!r}"
        )
    return list(callbacks)


def _as_labels(y: Any) -> Any:
    """Return y in a form that scikit-learn does not change."""
    if hasattr(y, "to_numpy"):  # pandas' nullable integers and booleans would become floats
        of_pyarrow = type(y).__module__.split(".")[0] == "pyarrow"  # its arrays refuse to copy text
        y = np.asarray(y) if of_pyarrow else y.to_numpy()
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1:
        return np.array(y, dtype=object)  # 1 and "a" would become "1" and "a"
    if isinstance(y, list | tuple) and any(isinstance(label, str) and label[-1:] == "\0" for label in y):
        return np.array(y, dtype=object)  # NumPy drops null characters at the end of a text
    if isinstance(y, np.ndarray) and y.dtype.kind == "T":  # NumPy's strings would be rejected
        return y.astype(object)
    return y


def check_same_length(X: Any, labels: NDArray[np.int32]) -> None:
    """Raise unless X has one row per label."""
    n_rows = _num_samples(X)
    if n_rows != len(labels):
        raise ValueError(f"X has {n_rows} rows, y has {len(labels)}: inconsistent numbers of samples")


def check_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    """Validate groups: one text or number per row."""
    values = np.asarray(_as_labels(groups))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"groups must be a list or a column of values, got an array of shape {values.shape}")
    if len(values) != n_rows:
        raise ValueError(f"groups has {len(values)} values, X has {n_rows} rows: one for each row is needed")
    missing = np.flatnonzero([is_missing(value) for value in values.tolist()])
    if len(missing):
        raise ValueError(
            f"groups has gaps in {len(missing)} row{'s' * (len(missing) > 1)}, first in row {missing[0]}; "
            "give a row that belongs to no other a value of its own"
        )
    if values.dtype.kind == "O" and len({isinstance(value, str) for value in values}) > 1:
        raise ValueError("groups mixes text and other values; use one kind for all")
    if len(values) > 1 and len(set(values.tolist())) == 1:
        raise ValueError(
            f"groups has one value only, {values.tolist()[0]!r}: there must be two, so that rows can be "
            "judged by what was learnt from others"
        )
    return values


def same_table(X: Any, other: Any) -> bool:
    """Whether two validated tables have the same values; missing values are equal."""
    if X is other:
        return True
    if type(X) is not type(other) or X.shape != other.shape:
        return False
    if is_sparse(X):
        return same_values(X, other)
    if hasattr(X, "equals"):
        return bool(X.equals(other))
    return bool(((other == X) | ((X != X) & (other != other))).all())


def row_weights(
    sample_weight: Any, class_weight: Any, classes: NDArray[Any], labels: NDArray[np.int32]
) -> Floats:
    """Return each row's weight: its sample weight times its class weight."""
    weights = (
        np.ones(len(labels)) if sample_weight is None else _up_to_one(sample_weights(sample_weight, labels))
    )
    if isinstance(class_weight, str):  # "balanced"
        weights = balanced(weights, labels, _class_totals(weights, labels, len(classes)))
    elif class_weight is not None:
        weights *= class_weights(class_weight, classes)[labels]
    if not weights.any():
        raise ValueError("all weights are zero: at least one row needs a positive weight")
    return weights


def sample_weights(sample_weight: Any, labels: NDArray[np.int32]) -> Floats:
    """Validate sample weights and return them as an array."""
    if is_masked(sample_weight):
        raise ValueError("sample_weight has masked values; give 0 to rows that are to be left out")
    try:
        weights: Floats = np.array(_check_sample_weight(sample_weight, labels, dtype=np.float64))
    except (TypeError, ValueError) as error:
        if "weight" in str(error):
            raise
        raise ValueError(f"sample_weight must hold one number of at least 0 per row: {error}") from error
    negative = np.flatnonzero(weights < 0)
    if len(negative):
        first = f"{weights[negative[0]]} in row {negative[0]}"
        raise ValueError(f"sample_weight must be at least 0, got negative values: {first}")
    return weights


def _up_to_one(weights: Floats) -> Floats:
    return up_to_one(weights, float(weights.max()))


def up_to_one(weights: Floats, largest: float) -> Floats:
    """Scale the largest weight to 1, so that nothing overflows, and equal weights are exactly 1.

    Tiny weights stay positive, also in products of two.
    """
    if not largest > 0:
        return weights
    exponent = np.frexp(largest)[1]  # the reciprocal of a tiny weight would overflow
    scaled = np.ldexp(weights, -exponent) / np.ldexp(largest, -exponent)
    return np.where(weights > 0, np.maximum(scaled, LIGHTEST), 0.0)


def _class_totals(weights: Floats, labels: NDArray[np.int32], n_classes: int) -> Floats:
    """Return the weight of each class."""
    return np.array([exact_sum(weights[labels == k]) for k in range(n_classes)])


def balanced(weights: Floats, labels: NDArray[np.int32], totals: Floats) -> Floats:
    """Return class weights that give all classes the same total weight."""
    # Powers of two are separated first, because the factor of a tiny class would overflow.
    parts, exponents = np.frexp(totals)
    factors = np.divide(totals.max(), parts, out=np.zeros_like(totals), where=totals > 0)
    balanced: Floats = np.ldexp(weights, -exponents[labels]) * factors[labels]
    return balanced


def class_weights(class_weight: Any, classes: NDArray[Any]) -> Floats:
    """Return the factor of each class, scaled so that the largest is 1."""
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ValueError(f"class_weight names classes that are not in y: {unknown}; y has {known}")
    factors = [class_weight.get(label, 1.0) for label in known]
    if not all(isinstance(factor, Real) and 0 <= float(factor) < np.inf for factor in factors):
        raise ValueError(f"class_weight must hold finite numbers of at least 0, got {class_weight}")
    return _up_to_one(np.array(factors, dtype=np.float64))


def integer_weights(weights: Floats, exchange: Exchange = ALONE) -> tuple[NDArray[np.int32], bool]:
    """Return weights as integers, and whether they are all 0 or 1, that is, counts of rows.

    If all weights are multiples of the smallest one, these multiples are used. Other weights are scaled to a
    total of about 2^30; positive weights stay positive.
    """
    present = weights > 0
    if all(exchange.gather(np.array_equal(weights, present))):
        return present.astype(np.int32), True
    with np.errstate(over="ignore"):  # an infinite multiple is too large in any case
        multiples = weights / min(exchange.gather(weights[present].min(initial=np.inf)))
        total = exchange.exact_sum(multiples)
    whole = np.rint(multiples)
    if total < MAX_WEIGHT and all(exchange.gather(np.allclose(multiples, whole, rtol=1e-12, atol=0))):
        return whole.astype(np.int32), all(exchange.gather((whole <= 1).all()))
    scaled = np.rint(weights * (MAX_WEIGHT / exchange.exact_sum(weights)))
    return np.maximum(scaled, present).astype(np.int32), False


def seed_from(random_state: Any) -> int:
    """Draw one 64-bit seed from `random_state`."""
    if isinstance(random_state, Integral):
        return int(np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**64, dtype=np.uint64))
    high, low = check_random_state(random_state).randint(2**32, size=2, dtype=np.uint32).tolist()
    return int(high << 32 | low)
