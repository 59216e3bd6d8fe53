"""Bad input gets an error that says what was wrong and what is accepted."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from components import as_parameters
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from kfhe import KFHEClassifier, RobustKFHEClassifier, load
from kfhe.audit import label_quality
from kfhe.validation import integer_weights, same_table, seed_from, unchanged_on_error


def refuses(iris, message, *, X=None, y=None, sample_weight=None, error=ValueError, **settings):
    """Assert that fit raises, and that it leaves nothing behind."""
    model = KFHEClassifier(**as_parameters(settings))
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(iris[0] if X is None else X, iris[1] if y is None else y, sample_weight=sample_weight)
    assert vars(model) == before


def spoiled(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


ESTIMATORS = {"native": None, "foreign": DecisionTreeClassifier()}


@pytest.fixture(params=ESTIMATORS.values(), ids=ESTIMATORS.keys())
def estimator(request):
    return request.param


# Tables


def test_infinite_values_are_refused(iris, estimator):
    for value in (np.inf, -np.inf):
        refuses(iris, "(?i)X.* infinit", X=spoiled(iris[0], value), estimator=estimator)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
@pytest.mark.parametrize("value", [1.0, "a"])
def test_the_first_row_of_another_length_is_named(iris, estimator, kind, value):
    rows = [[value, value]] * 150
    rows[7] = rows[9] = [value]
    message = "rows of X are of different lengths: row 7 has 1, row 0 has 2; use NaN or None for a gap"
    refuses(iris, message, X=[*map(kind, rows)], estimator=estimator)
    model = KFHEClassifier(n_estimators=1).fit(iris[0][:, :2], iris[1])
    with pytest.raises(ValueError, match=message):
        model.predict([*map(kind, rows)])
    with pytest.raises(ValueError, match=message):
        label_quality([*map(kind, rows)], iris[1])


def test_nan_is_refused_where_the_component_can_not_take_it(iris):
    X = spoiled(iris[0], np.nan)
    message = "Input X contains NaN.\nLogisticRegression does not accept missing values"
    refuses(iris, message, X=X, estimator=LogisticRegression())
    model = KFHEClassifier(LogisticRegression(max_iter=1000), n_estimators=1).fit(*iris)
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_nan_is_taken_where_the_component_takes_it(iris, estimator):
    X = spoiled(iris[0], np.nan)
    model = KFHEClassifier(estimator, n_estimators=3, random_state=0).fit(X, iris[1])
    assert model.score(X, iris[1]) > 0.8


def test_text_is_refused_where_numbers_are_needed(iris):
    X = iris[0].astype(object)
    X[3, 1] = "long"
    refuses(iris, "'long'", X=X, estimator=LogisticRegression())


def test_an_empty_table_is_refused(iris, estimator):
    X, y = iris
    refuses(iris, "y is empty: found 0 labels", X=X[:0], y=y[:0], estimator=estimator)
    refuses(iris, r"0 sample\(s\)|X has 0 rows", X=X[:0], estimator=estimator)
    refuses(iris, r"0 feature\(s\)", X=X[:, :0], estimator=estimator)


def test_an_empty_table_is_refused_at_predict_time(iris, estimator):
    model = KFHEClassifier(estimator, n_estimators=1).fit(*iris)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(iris[0][:0])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("text", "Expected 2D array, got scalar array"),
        (7, "Expected 2D array, got scalar array"),
        (np.arange(150), "Expected 2D array, got 1D array"),
        (np.zeros((150, 2, 2)), "dim 3"),
        ([[1, 2], [3]], "of different lengths: row 1 has 1, row 0 has 2"),
    ],
)
def test_what_is_no_table_is_refused(iris, estimator, X, message):
    refuses(iris, message, X=X, estimator=estimator)


@pytest.mark.parametrize("frame", [np.array, pd.DataFrame, pl.DataFrame], ids=["array", "pandas", "polars"])
def test_x_and_y_of_different_length_are_refused(iris, estimator, frame):
    X, y = iris
    refuses(iris, "X has 150 rows, y has 149", X=frame(X), y=y[:-1], estimator=estimator)
    refuses(iris, "X has 149 rows, y has 150", X=frame(X[:-1]), estimator=estimator)


def test_predicting_needs_a_fit(iris):
    for method in ("predict", "predict_proba", "score"):
        with pytest.raises(NotFittedError, match="This KFHEClassifier instance is not fitted yet"):
            getattr(KFHEClassifier(), method)(*iris[: 1 + (method == "score")])
    with pytest.raises(NotFittedError):
        next(KFHEClassifier().staged_predict(iris[0]))
    with pytest.raises(NotFittedError):
        _ = KFHEClassifier().feature_importances_


# Labels


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, None, 1], r"y has missing labels \(NaN, None or masked\) in 1 row, first in row 2"),
        ([0, np.nan, np.nan, 1], "y has missing labels .* in 2 rows, first in row 1"),
        (pd.Series(["a", None, "b", "b"]), "y has missing labels .* in 1 row, first in row 1"),
        (pd.Series(["a", None, "b", "b"], dtype="string"), "y has missing labels"),
        (pd.Series([1, None, 2, 2], dtype="Int64"), "y has missing labels"),
        (pd.Series([1, None, 2, 2], dtype="category"), "y has missing labels"),
        (pl.Series([1, 2, None, 1]), "y has missing labels"),
        ([0, 1, np.inf, 1], "y contains infinity"),
        (["a", 1, "b", 2], "y mixes labels of types int, str; use one type for all"),
        (np.array(["a", 1, "b", 2], dtype=object), "y mixes labels of types int, str"),
        ([0.5, 1.5, 0.5, 2.5], "(?i)unknown label type: continuous"),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], "y should be a 1d array"),
        ("text", "y should be a 1d array"),
        (7, "y should be a 1d array"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_labels_that_make_no_sense_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        KFHEClassifier().fit(np.zeros((4, 1)), y)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3, 7]])
def test_labels_may_be_an_array_of_pyarrow(iris, labels):
    X, y = iris
    given = [labels[int(each == 0)] for each in y]
    expected = KFHEClassifier(n_estimators=1, random_state=0).fit(X, given)
    for array in (pa.array(given), pa.array(given).dictionary_encode(), pa.chunked_array([given])):
        model = KFHEClassifier(n_estimators=1, random_state=0).fit(X, array)
        assert model.classes_.tolist() == expected.classes_.tolist()
        assert model.predict(X).tolist() == expected.predict(X).tolist()
    with pytest.raises(ValueError, match=r"missing labels .* in 1 row, first in row 2"):
        KFHEClassifier().fit(X, pa.array([*given[:2], None, *given[3:]]))


@pytest.mark.parametrize("kind", [int, float, str])
def test_masked_labels_are_missing(iris, kind):
    X, y = iris
    masked = np.ma.masked_array(y.astype(kind), mask=np.arange(150) % 50 == 7)
    with pytest.raises(ValueError, match=r"y has missing labels \(.*masked\) in 3 rows, first in row 7"):
        KFHEClassifier().fit(X, masked)


def test_a_zero_at_the_end_of_a_label_is_a_part_of_it(tmp_path):
    model = KFHEClassifier(n_estimators=2, random_state=0).fit([[0.0], [1.0]] * 50, ["a", "a\0"] * 50)
    assert model.classes_.tolist() == ["a", "a\0"]
    model.save(tmp_path / "model.kfhe")
    assert load(tmp_path / "model.kfhe").predict([[0.0], [1.0]]).tolist() == ["a", "a\0"]


@pytest.mark.parametrize("kind", [np.int64, np.str_, np.bool_])
def test_labels_that_are_numpys_scalars_are_plain_values(iris, tmp_path, kind):
    X, y = iris
    labels = np.empty(150, dtype=object)
    labels[:] = [kind(label) for label in y]
    model = KFHEClassifier(n_estimators=2, random_state=0).fit(X, labels)
    plain = KFHEClassifier(n_estimators=2, random_state=0)
    assert model.fingerprint() == plain.fit(X, [label.item() for label in labels]).fingerprint()
    model.save(tmp_path / "model.kfhe")
    assert load(tmp_path / "model.kfhe").fingerprint() == model.fingerprint()


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
def test_more_classes_than_trees_can_tell_apart_are_refused_at_once(kind):
    with pytest.raises(ValueError, match="y has 70000 classes; at most 65535 are accepted"):
        kind().fit(np.zeros((70_000, 1)), np.arange(70_000))


def test_a_column_of_labels_is_taken_with_a_warning(iris):
    X, y = iris
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = KFHEClassifier(n_estimators=1, random_state=0).fit(X, y.reshape(-1, 1))
    assert model.predict(X).shape == (len(y),)


# Weights


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (np.r_[1, 1, -0.5, np.ones(147)], r"sample_weight must be at least 0, got .* -0\.5 in row 2"),
        (np.zeros(150), "(?i)weights .*zero"),
        (np.r_[np.nan, np.ones(149)], "sample_weight contains NaN"),
        (np.r_[np.inf, np.ones(149)], "sample_weight contains infinity"),
        (np.ones(3), r"sample_weight.shape == \(3,\), expected \(150,\)"),
        (np.ones((150, 2)), "(?i)sample weights must be 1D array or scalar"),
        (["heavy"] * 150, "sample_weight must hold one number of at least 0 per row: .*'heavy'"),
    ],
)
def test_sample_weights_that_make_no_sense_are_refused(iris, sample_weight, message):
    refuses(iris, message, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        (
            {0: 1, 7: 2, "x": 1},
            r"class_weight names classes that are not in y: \[7, 'x'\]; y has \[0, 1, 2\]",
        ),
        ({0: -1}, r"class_weight must hold finite numbers of at least 0, got \{0: -1\}"),
        ({0: np.nan}, "class_weight must hold finite numbers of at least 0"),
        ({0: np.inf}, "class_weight must hold finite numbers of at least 0"),
        ({0: "heavy"}, "class_weight must hold finite numbers of at least 0"),
        ({0: 0, 1: 0, 2: 0}, "all weights are zero: at least one row needs a positive weight"),
        ("heavy", "'class_weight' parameter .* must be an instance of 'dict'.*'balanced'.* Got 'heavy'"),
        ([1, 2, 3], "'class_weight' parameter .* must be an instance of 'dict'"),
    ],
)
def test_class_weights_that_make_no_sense_are_refused(iris, class_weight, message):
    refuses(iris, message, class_weight=class_weight)


# Parameters


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [
        ({"n_estimators": 0}, r"an int in the range \[1, inf\)\. Got 0 instead"),
        ({"n_estimators": -3}, r"an int in the range \[1, inf\)\. Got -3 instead"),
        ({"n_estimators": 2.5}, r"an int in the range \[1, inf\)\. Got 2.5 instead"),
        ({"n_estimators": "many"}, "an int in the range"),
        ({"emphasis": "quadratic"}, "a str among .*'exponential'.* or a callable. Got 'quadratic'"),
        ({"emphasis": 3}, "a str among .*'linear'.* or a callable"),
        ({"voting": "loud"}, "a str among {'hard', 'soft'}|a str among {'soft', 'hard'}"),
        ({"estimator": "tree"}, "an object implementing 'fit' and 'predict', .*'list' or None. Got 'tree'"),
        ({"warm_start": "yes"}, "an instance of 'bool'"),
        ({"random_state": "x"}, "Generator.* Got 'x'"),
        ({"random_state": -1}, "an int in the range"),
        ({"n_jobs": "all"}, "or None. Got 'all'"),
        ({"verbose": -1}, "an int in the range"),
        ({"n_jobs": 0}, r"an int in the range \[1, inf\), an int in the range \(-inf, -1\]"),
        ({"max_depth": 0}, "an int in the range"),
        ({"max_depth": "deep"}, "an int in the range"),
        ({"min_samples_split": 0}, "an int in the range"),
        ({"min_samples_leaf": 0}, "an int in the range"),
        ({"max_leaf_nodes": 1}, r"an int in the range \[2, 9223372036854775807\]"),
        ({"max_features": 0}, "an int in the range"),
        ({"max_features": "some"}, "a str among .*'sqrt'"),
    ],
    ids=lambda value: "-".join(map(str, *value.items())) if isinstance(value, dict) else "",
)
def test_parameters_out_of_range_are_refused(iris, settings, accepted):
    (name,) = settings
    refuses(iris, rf"The '{name}' parameter of \w+ must be .*({accepted})", **settings)


def test_a_regressor_is_refused(iris):
    refuses(
        iris,
        "estimator must be a classifier, got a regressor: LinearRegression",
        estimator=LinearRegression(),
    )


def test_an_estimator_class_is_refused(iris):
    message = r"estimator must be an instance, such as LogisticRegression\(\), got the class"
    refuses(iris, message, estimator=LogisticRegression, error=TypeError)


# The parts


def test_unchanged_on_error_restores_what_there_was():
    model = KFHEClassifier()
    model.older_ = 1
    with pytest.raises(KeyboardInterrupt), unchanged_on_error(model):  # noqa: PT012
        model.older_ = 2
        model.newer_ = 3
        raise KeyboardInterrupt
    assert model.older_ == 1
    assert not hasattr(model, "newer_")


def test_seeds_come_from_all_of_64_bits():
    for source in (np.random.RandomState, np.random.default_rng):
        seeds = [seed_from(source(seed)) for seed in range(200)]
        assert len(set(seeds)) == 200
        assert max(seeds) > 2**63
        assert 0 <= min(seeds) < 2**61


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, pl.DataFrame], ids=["array", "pandas", "polars"])
def test_same_table_compares_values(make):
    values = [[1.0, np.nan], [3.0, 4.0]]
    assert same_table(make(values), make(values))
    assert not same_table(make(values), make([[1.0, 2.0], [3.0, 4.0]]))
    assert not same_table(make(values), make(values[:1]))
    assert not same_table(make(values), values)


@pytest.mark.parametrize("smallest", [1e-300, 5e-324])
def test_weights_that_no_whole_number_can_hold_are_scaled_without_a_warning(smallest):
    units, counts = integer_weights(np.array([smallest, 1.0, 0.5, 0.0]))
    assert not counts
    assert units[0] == 1
    assert units[3] == 0
    assert units[1] == pytest.approx(2 * units[2], abs=1)
    assert units.sum() == pytest.approx(2**30, rel=1e-6)


def test_multiples_of_the_smallest_weight_are_exact():
    units, counts = integer_weights(np.array([0.25, 0.75, 0.0, 2.5]))
    assert units.tolist() == [1, 3, 0, 10]
    assert not counts
