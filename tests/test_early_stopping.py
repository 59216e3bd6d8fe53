"""Early stopping: the model ends where it is best on rows that it was not trained on."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from components import Log, Scripted, assert_equal_models, numbered
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, f1_score, log_loss, make_scorer
from sklearn.tree import DecisionTreeClassifier

from kfhe import EarlyStopping, KFHEClassifier, RobustKFHEClassifier
from kfhe.noise import flip_labels

ESTIMATORS = {"native": None, "foreign": DecisionTreeClassifier(max_depth=4, random_state=0)}


@pytest.fixture(params=ESTIMATORS.values(), ids=ESTIMATORS.keys())
def estimator(request):
    return request.param


@pytest.fixture(scope="module")
def halves():
    """Return digits with wrong labels to train on, and others with right ones."""
    X, y = load_digits(return_X_y=True)
    return X[::4], flip_labels(y[::4], 0.2, random_state=0), X[1::4], y[1::4]


def fitted(halves, estimator=None, **settings):
    X, y, X_val, y_val = halves
    settings = {"n_estimators": 30, "random_state": 0, **settings}
    return KFHEClassifier(estimator, **settings).fit(X, y, X_val=X_val, y_val=y_val)


def assert_same_as_at_once(model, halves):
    """Assert that a model is the one that so many components would have given."""
    X, y, X_val, _ = halves
    settings = {**model.get_params(deep=False), "early_stopping": None, "n_estimators": model.n_iter_}
    at_once = KFHEClassifier(**settings).fit(X, y)
    assert_equal_models(model, at_once, X_val)
    assert len(model.estimators_) == len(model.component_weights_) == model.n_iter_ + 1
    assert len(model.trace_["gain"]) == len(model.trace_) == model.n_iter_
    if model.estimator is None:
        assert model.fingerprint() == at_once.fingerprint()


# Scores


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_validation_scores_are_those_of_the_staged_predictions(halves, estimator, voting):
    model = fitted(halves, estimator, voting=voting, n_estimators=8)
    _, _, X_val, y_val = halves
    expected = [-log_loss(y_val, scores) for scores in model.staged_predict_proba(X_val)]
    np.testing.assert_allclose(model.validation_scores_, expected, rtol=1e-10)
    assert len(model.validation_scores_) == 9  # h_0 first


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        ("accuracy", accuracy_score),
        ("f1_macro", lambda y, predicted: f1_score(y, predicted, average="macro")),
        (make_scorer(accuracy_score), accuracy_score),
        (
            lambda model, X, y: -np.mean(model.predict(X) != y),
            lambda y, predicted: accuracy_score(y, predicted) - 1,
        ),
    ],
    ids=["accuracy", "f1_macro", "scorer", "function"],
)
def test_any_scoring_of_scikit_learn_can_be_chosen(halves, scoring, metric):
    model = fitted(halves, early_stopping=EarlyStopping(30, scoring), n_estimators=10)
    _, _, X_val, y_val = halves
    unstopped = fitted(halves, n_estimators=10)
    expected = [metric(y_val, predicted) for predicted in unstopped.staged_predict(X_val)]
    np.testing.assert_allclose(model.validation_scores_, expected, rtol=1e-12)
    assert model.n_iter_ == np.argmax(expected)


def test_a_validation_set_alone_has_no_influence_on_the_model(halves):
    X, y, X_val, _ = halves
    model = fitted(halves, n_estimators=10)
    assert_equal_models(model, KFHEClassifier(n_estimators=10, random_state=0).fit(X, y), X_val)
    assert model.n_iter_ == 10


def test_each_component_votes_for_the_validation_set_once(rng):
    y = rng.integers(2, size=20)
    asked = []

    def votes(t, rows):
        asked.append((t, len(rows)))
        return y[rows % 20] ^ (rows % 20 == t)

    estimator = Scripted(votes, None, Log())
    model = KFHEClassifier(estimator, n_estimators=3).fit(numbered(20), y, X_val=numbered(7), y_val=y[:7])
    assert [t for t, n_rows in asked if n_rows == 7] == list(range(model.n_iter_ + 1))


def test_a_class_that_the_validation_set_lacks_is_no_problem(halves):
    X, y, X_val, y_val = halves
    few = y_val < 3
    model = fitted((X, y, X_val[few], y_val[few]), n_estimators=3)
    expected = [
        -log_loss(y_val[few], scores, labels=range(10)) for scores in model.staged_predict_proba(X_val[few])
    ]
    np.testing.assert_allclose(model.validation_scores_, expected, rtol=1e-10)


def test_a_second_fit_without_a_validation_set_forgets_the_scores(halves):
    model = fitted(halves, n_estimators=2)
    assert hasattr(model, "validation_scores_")
    assert not hasattr(model.fit(*halves[:2]), "validation_scores_")


def test_threads_have_no_influence_on_the_scores(rng):
    X = rng.normal(size=(60_000, 3))  # enough rows to be shared out among threads
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    X[::7, 1] = np.nan
    one, two = (
        fitted((X[::60], y[::60], X[:30_000], y[:30_000]), n_estimators=5, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.validation_scores_, two.validation_scores_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_categories_and_gaps_are_read_as_at_prediction(rng, frame):
    colours = rng.choice(["red", "green", "blue"], size=300)
    y = (colours == "red") ^ (rng.uniform(size=300) < 0.1)
    sizes = np.where(rng.uniform(size=300) < 0.2, None, rng.normal(size=300)).astype(object)
    table = frame({"colour": colours, "size": [None if size is None else float(size) for size in sizes]})
    other = frame({"colour": ["red", "violet", None, "blue"], "size": [1.0, None, 0.5, 0.2]})
    labels = np.array([True, False, False, True])
    model = fitted((table, y, other, labels), n_estimators=5)
    expected = [
        -log_loss(labels, scores, labels=[False, True]) for scores in model.staged_predict_proba(other)
    ]
    np.testing.assert_allclose(model.validation_scores_, expected, rtol=1e-10)


# When to stop


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("rounds", [3, 5])
def test_the_best_length_is_kept(halves, estimator, voting, rounds):
    scoring = "accuracy"
    model = fitted(halves, estimator, voting=voting, early_stopping=EarlyStopping(rounds, scoring))
    scores = model.validation_scores_
    assert model.n_iter_ == scores.argmax()  # of equal scores, the first
    assert len(scores) - 1 == min(30, model.n_iter_ + rounds)
    assert model.score(*halves[2:]) == scores.max()
    assert_same_as_at_once(model, halves)


def test_an_int_stops_by_the_log_loss(halves):
    model = fitted(halves, early_stopping=2, emphasis="linear")
    by_name = fitted(halves, early_stopping=EarlyStopping(2), emphasis="linear")
    assert 0 < model.n_iter_ == model.validation_scores_.argmax() == len(model.validation_scores_) - 3 < 28
    assert by_name.fingerprint() == model.fingerprint()
    assert_same_as_at_once(model, halves)


def test_the_best_length_is_kept_too_when_all_components_were_trained(halves):
    model = fitted(halves, early_stopping=EarlyStopping(30, "accuracy"), n_estimators=25)
    assert len(model.validation_scores_) == 26
    assert model.n_iter_ == model.validation_scores_.argmax() < 25
    assert_same_as_at_once(model, halves)


def test_the_initial_model_alone_may_be_the_best(rng):
    y = np.repeat([0, 1], 10)

    def votes(t, rows):  # right for the training rows, all but one; wrong for the others
        return np.where(rows < 20, y[rows % 20] ^ (rows == t), 1 - y[rows % 20])

    estimator = Scripted(votes, lambda t, rows: np.eye(2)[y[rows % 20]] * 0.2 + 0.4, Log())
    model = KFHEClassifier(estimator, early_stopping=3, n_estimators=50)
    model.fit(numbered(20), y, X_val=numbered(40)[20:], y_val=y)
    assert len(model.validation_scores_) == 4
    assert (model.n_iter_, len(model.estimators_), len(model.trace_)) == (0, 1, 0)
    assert model.component_weights_.tolist() == [1.0]
    np.testing.assert_array_equal(model.predict(numbered(40)[20:]), y)


def test_a_single_class_has_nothing_to_stop(iris):
    X, _ = iris
    model = KFHEClassifier(early_stopping=5).fit(X, ["a"] * len(X), X_val=X[:3], y_val=["a"] * 3)
    assert (model.n_iter_, model.validation_scores_.tolist()) == (0, [0.0])


def test_a_certain_model_ends_as_before(rng):
    X = rng.normal(size=(60, 1))
    y = X[:, 0] > 0
    model = KFHEClassifier(early_stopping=5, random_state=0).fit(X, y, X_val=X, y_val=y)
    assert len(model.validation_scores_) < 6
    assert model.score(X, y) == 1


def test_the_settings_can_be_cloned_searched_and_pickled(halves):
    model = KFHEClassifier(early_stopping=EarlyStopping(3, "accuracy"))
    assert clone(model).early_stopping == EarlyStopping(3, "accuracy")
    model = fitted(halves, early_stopping=EarlyStopping(3, "accuracy"))
    restored = pickle.loads(pickle.dumps(model))
    assert_equal_models(model, restored, halves[2])
    np.testing.assert_array_equal(model.validation_scores_, restored.validation_scores_)


# warm_start


def test_a_warm_start_goes_on_from_the_length_that_was_kept(halves, estimator):
    X, y, X_val, y_val = halves
    model = fitted(halves, estimator, early_stopping=EarlyStopping(2, "accuracy"), warm_start=True)
    kept = model.n_iter_
    assert kept < 20
    model.set_params(early_stopping=None, n_estimators=20).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.n_iter_ == 20
    assert_same_as_at_once(model, halves)
    unstopped = fitted(halves, estimator, n_estimators=20)
    np.testing.assert_array_equal(model.validation_scores_, unstopped.validation_scores_)


def test_a_warm_start_with_more_patience_is_training_at_once_with_it(halves):
    model = fitted(halves, early_stopping=EarlyStopping(1, "accuracy"), warm_start=True)
    first = model.n_iter_
    patient = fitted(halves, early_stopping=EarlyStopping(6, "accuracy"))
    X, y, X_val, y_val = halves
    model.set_params(early_stopping=EarlyStopping(6, "accuracy")).fit(X, y, X_val=X_val, y_val=y_val)
    assert model.n_iter_ > first
    assert model.fingerprint() == patient.fingerprint()
    np.testing.assert_array_equal(model.validation_scores_, patient.validation_scores_)


def test_a_warm_start_never_drops_components_of_the_first_fit(halves):
    X, y, X_val, y_val = halves
    model = fitted(halves, n_estimators=20, warm_start=True)
    assert model.validation_scores_.argmax() < 20
    worse = np.roll(y_val, 1)
    model.set_params(n_estimators=30, early_stopping=2).fit(X, y, X_val=X_val, y_val=worse)
    assert 20 <= model.n_iter_ <= 30
    assert_same_as_at_once(model, halves)


# Bad input


def test_rows_of_another_kind_are_refused_as_at_prediction(iris, estimator):
    X, y = iris

    def refused(X_val, message, error=ValueError, table=X):
        model = KFHEClassifier(estimator, n_estimators=2)
        before = dict(vars(model))
        with pytest.raises(error, match=message):
            model.fit(table, y, X_val=X_val, y_val=y)
        assert vars(model) == before

    refused(X[:, :3], "X_val: X has 3 features, but KFHEClassifier is expecting 4")
    refused(X[:0], "X_val: |validation set: X has 0 rows")
    refused(X[:10], "validation set: X has 10 rows, y has 150")
    refused(X[:, 0], "X_val: Expected 2D array")
    table = pd.DataFrame(X, columns=list("abcd"))
    refused(table[list("abdc")], r"X_val: .*(\n.*)*must be in the same order", table=table)
    refused(table.rename(columns={"d": "e"}), r"X_val: .*(\n.*)*unseen at fit time:\s+- e", table=table)


def test_values_that_native_trees_cannot_read_are_refused(iris):
    X, y = iris
    infinite = X.copy()
    infinite[3, 1] = np.inf
    with pytest.raises(ValueError, match="X_val: Input X contains infinity in column '1'"):
        KFHEClassifier().fit(X, y, X_val=infinite, y_val=y)
    with pytest.raises(ValueError, match="X_val: column 'b'"):
        KFHEClassifier().fit(
            pd.DataFrame(X, columns=list("abcd")),
            y,
            X_val=pd.DataFrame(X, columns=list("abcd")).astype({"b": str}).assign(b="text"),
            y_val=y,
        )


@pytest.mark.parametrize(
    ("y_val", "message"),
    [
        ([0, 1, 5, 7], r"y_val: labels that are not in the training data: \[5, 7\]; it has \[0, 1, 2\]"),
        (["0", "1", "2", "0"], r"y_val: labels that are not in the training data: \['0', '1', '2'\]"),
        ([0, 1, None, 2], "y_val: y has missing labels .* first in row 2"),
        ([], "y_val: y is empty"),
        ([0, 1, 2], "validation set: X has 4 rows, y has 3"),
    ],
)
def test_labels_that_do_not_fit_are_refused(iris, y_val, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        KFHEClassifier().fit(X, y, X_val=X[:4], y_val=y_val)


def test_half_a_validation_set_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="needs both X_val and y_val, got X_val without y_val"):
        KFHEClassifier().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="needs both X_val and y_val, got y_val without X_val"):
        KFHEClassifier().fit(X, y, y_val=y)


def test_early_stopping_needs_a_validation_set(iris):
    with pytest.raises(ValueError, match=r"early_stopping=5 needs a validation set: fit\(X, y, X_val=..."):
        KFHEClassifier(early_stopping=5).fit(*iris)


@pytest.mark.parametrize(
    ("early_stopping", "message"),
    [
        (0, "The 'early_stopping' parameter of KFHEClassifier must be an instance of 'bool'"),
        (2.5, "The 'early_stopping' parameter of KFHEClassifier must be .* an int in the range"),
        ("yes", "The 'early_stopping' parameter of KFHEClassifier must be .* an int in the range"),
    ],
)
def test_other_values_of_the_parameter_are_refused(iris, early_stopping, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        KFHEClassifier(early_stopping=early_stopping).fit(X, y, X_val=X, y_val=y)


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
def test_true_holds_a_tenth_back_unless_fit_gets_a_validation_set(halves, kind):
    X, y, X_val, y_val = halves
    alone = kind(early_stopping=True, random_state=0).fit(X, y)
    held = kind(early_stopping=EarlyStopping(10, validation_fraction=0.1), random_state=0).fit(X, y)
    assert_equal_models(alone, held, X_val)
    given = kind(early_stopping=True, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    by_number = kind(early_stopping=10, random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
    assert_equal_models(given, by_number, X_val)
    never = kind(early_stopping=False, n_estimators=5, random_state=0).fit(X, y)
    assert never.n_iter_ == 5
    assert not hasattr(never, "validation_scores_")


def test_settings_that_make_no_sense_are_refused():
    for rounds in (0, -1, 2.5, None, False):
        with pytest.raises(ValueError, match="number of rounds of at least 1, got"):
            EarlyStopping(rounds)
    with pytest.raises(TypeError, match="scoring must be a name or a scorer, got 3"):
        EarlyStopping(3, scoring=3)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("f1_marco", "f1_marco"),
        (lambda model, X, y: np.nan, "^scoring=.* gave nan for the validation set"),
    ],
)
def test_a_score_that_cannot_be_compared_is_refused(iris, scoring, message):
    X, y = iris
    with pytest.raises(ValueError, match=message):
        KFHEClassifier(early_stopping=EarlyStopping(3, scoring)).fit(X, y, X_val=X, y_val=y)


# Rows that are held back


def held_back(X, y, fraction=0.25, kind=KFHEClassifier, weights=None, **settings):
    stopping = EarlyStopping(5, scoring="accuracy", validation_fraction=fraction)
    return kind(**{"random_state": 0, **settings}, early_stopping=stopping).fit(X, y, weights)


def numbers_of_rows(model_class=KFHEClassifier):
    """Return a class that notes which rows are trained on: column 0 numbers them."""

    class Noting(model_class):
        def make_run(self, rows):
            self.trained_on = np.asarray(rows.X)[:, 0].astype(int)
            return super().make_run(rows)

    return Noting


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
def test_a_share_of_each_class_is_held_back(rng, kind):
    X, y = np.column_stack([np.arange(400), rng.normal(size=400)]), np.repeat(list("abc"), [200, 160, 40])
    model = held_back(X, y, kind=numbers_of_rows(kind))
    kept = np.unique(model.trained_on)
    assert [int((y[kept] == label).sum()) for label in "abc"] == [150, 120, 30]
    others = np.setdiff1d(np.arange(400), kept)
    assert model.score(X[others], y[others]) == model.validation_scores_.max()
    assert not np.array_equal(
        kept, np.unique(held_back(X, y, kind=numbers_of_rows(kind), random_state=1).trained_on)
    )


def test_it_is_the_model_of_the_rows_that_are_left(halves, estimator):
    X, y, _, _ = halves
    X = np.column_stack([np.arange(len(X)), X])
    model = held_back(X, y, kind=numbers_of_rows(), estimator=estimator)
    others = np.setdiff1d(np.arange(len(X)), model.trained_on)
    given = KFHEClassifier(estimator, early_stopping=EarlyStopping(5, scoring="accuracy"), random_state=0)
    given.fit(X[model.trained_on], y[model.trained_on], X_val=X[others], y_val=y[others])
    assert_equal_models(model, given, X)
    np.testing.assert_array_equal(model.validation_scores_, given.validation_scores_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_rows_of_any_table_are_held_back_alike(rng, frame):
    columns = {"a": rng.normal(size=200), "b": rng.choice(["red", "green"], 200)}
    y = (columns["a"] > 0) ^ (columns["b"] == "red")
    same = held_back(pd.DataFrame(columns), y)
    assert held_back(frame(columns), y).fingerprint() == same.fingerprint()


def test_rows_without_weight_are_absent_before_any_are_held_back(halves):
    X, y, _, _ = halves
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    present = weights > 0
    assert held_back(X, y, weights=weights).fingerprint() == held_back(X[present], y[present]).fingerprint()


@pytest.mark.parametrize("random_state", [0, None])
def test_a_warm_start_holds_back_the_same_rows(halves, random_state):
    X, y, _, _ = halves
    model = held_back(X, y, warm_start=True, n_estimators=4, random_state=random_state)
    model.set_params(n_estimators=12).fit(X, y)
    if random_state == 0:
        assert model.fingerprint() == held_back(X, y, n_estimators=12).fingerprint()


def test_a_class_of_one_row_is_trained_on(iris):
    X, y = np.vstack([iris[0], iris[0][:1]]), np.append(iris[1], 3)
    assert held_back(X, y, fraction=0.9).classes_.tolist() == [0, 1, 2, 3]


def test_what_cannot_be_held_back_is_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match="choose one of validation_fraction and a validation set"):
        KFHEClassifier(early_stopping=EarlyStopping(5, validation_fraction=0.2)).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match=r"validation_fraction=0\.001 of 150 rows holds out none"):
        held_back(X, y, fraction=0.001)
    for fraction in (0, 1, -0.1, True, "half", np.nan):
        with pytest.raises(ValueError, match="validation_fraction must be a number between 0 and 1"):
            EarlyStopping(5, validation_fraction=fraction)
