"""KFHEClassifier: the algorithm of the paper behind the interface of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from components import Log, Scripted, as_parameters, assert_equal_models, numbered
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier
from kfhe.kalman import component_weights


@pytest.fixture(params=["exponential", "linear"])
def emphasis(request):
    return request.param


# Labels


LABELS = {
    "strings": np.array(["pear", "apple", "fig"]),
    "strings that differ in case": np.array(["Fig", "fig", "FIG"]),
    "integers": np.array([7, -3, 12]),
    "whole floats": np.array([2.0, 0.0, 1.0]),
    "objects": np.array(["pear", "apple", "fig"], dtype=object),
}


@pytest.mark.parametrize("names", LABELS.values(), ids=LABELS.keys())
def test_labels_of_any_kind_come_back_and_change_nothing(iris, names):
    X, codes = iris
    names = np.sort(names)
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, names[codes])
    by_code = KFHEClassifier(n_estimators=5, random_state=0).fit(X, codes)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(X), names[by_code.predict(X)])
    np.testing.assert_array_equal(model.predict_proba(X), by_code.predict_proba(X))
    assert model.predict(X).dtype == names.dtype


def test_boolean_labels(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y == 1)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool
    assert model.score(X, y == 1) > 0.8


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        (pd.Series(["b", "a", "B", "a"], dtype="category"), ["B", "a", "b"]),
        (pd.Series(["b", "a", "B", "a"], dtype="string"), ["B", "a", "b"]),
        (pd.Series([2, 1, 3, 1], dtype="Int64"), [1, 2, 3]),
        (pd.Series([True, False, True, False], dtype="boolean"), [False, True]),
        (pl.Series(["b", "a", "B", "a"]), ["B", "a", "b"]),
        (pl.Series([2, 1, 3, 1]), [1, 2, 3]),
        (pl.Series([True, False, True, False]), [False, True]),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {getattr(column, 'dtype', '')}",
)
def test_labels_in_a_column_of_a_data_frame_keep_their_type(column, classes):
    model = KFHEClassifier(n_estimators=1, random_state=0).fit(numbered(4), column)
    found = model.classes_.tolist()
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]


@pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["tree", "logistic regression"])
def test_a_single_class_is_always_predicted(iris, estimator):
    X, _ = iris
    model = KFHEClassifier(estimator, random_state=0).fit(X, ["only"] * len(X))
    assert set(model.predict(X)) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(X), 1)
    assert (model.n_iter_, len(model.estimators_), len(model.trace_["gain"])) == (0, 1, 0)
    assert model.component_weights_.tolist() == [1.0]
    assert len(list(model.staged_predict(X))) == 1


# The state and its prediction


def recursion(scores, votes, gains):
    """The filter's own steps: each measurement is the mean of the state and a vote."""
    for vote, gain in zip(votes, gains, strict=True):
        measurement = (scores + vote) / 2
        scores = scores + gain * (measurement - scores)
        yield scores


def test_component_weights_are_the_recursion_in_closed_form(rng):
    for n_iter in (0, 1, 2, 10, 300):
        gains = rng.uniform(size=n_iter)
        votes = rng.dirichlet(np.ones(4), size=(n_iter + 1, 20))
        *_, expected = votes[0], *recursion(votes[0], votes[1:], gains)
        weights = component_weights(gains / 2)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(np.tensordot(weights, votes, 1), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_training_and_prediction_follow_an_explicit_recursion(rng, emphasis, voting):
    n, n_classes, n_iter = 60, 3, 40
    y = rng.integers(n_classes, size=n)
    scores = rng.dirichlet(np.ones(n_classes), size=(3 * n_iter, n))
    votes = scores.argmax(axis=2)
    estimator = Scripted(lambda t, rows: votes[t, rows], lambda t, rows: scores[t, rows], Log())
    model = KFHEClassifier(estimator, emphasis=emphasis, voting=voting, n_estimators=n_iter)
    model.fit(numbered(n), y)

    state, variance = scores[0], 1.0
    last_fits = np.cumsum(model.trace_["resets"] + 1)  # an iteration with a reset trains two components
    assert last_fits[-1] + 1 == len(estimator.log)
    stages = model.staged_predict_proba(numbered(n))
    np.testing.assert_allclose(next(stages), state, rtol=0, atol=1e-12)
    for t, fit in enumerate(last_fits):
        vote = np.eye(n_classes)[votes[fit]] if voting == "hard" else scores[fit]
        measurement = (state + vote) / 2
        error = np.mean(measurement.argmax(axis=1) != y)
        gain = variance / (variance + error)
        state = state + gain * (measurement - state)
        variance -= gain * variance
        assert model.trace_["measurement_error"][t] == pytest.approx(error, abs=1e-12)
        assert model.trace_["gain"][t] == pytest.approx(gain, abs=1e-12)
        assert model.trace_["posterior_variance"][t] == pytest.approx(variance, abs=1e-12)
        assert model.trace_["training_error"][t] == pytest.approx(np.mean(state.argmax(axis=1) != y))
        np.testing.assert_allclose(next(stages), state, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(numbered(n)), state, rtol=0, atol=1e-12)


def test_fitted_attributes_have_their_promised_shapes(iris, emphasis):
    X, y = iris
    model = KFHEClassifier(emphasis=emphasis, n_estimators=7, random_state=0).fit(X, y)
    assert model.n_iter_ == len(model.trace_) == 7
    assert len(model.estimators_) == len(model.component_weights_) == 8
    assert model.trace_["prior_variance"][0] == 1
    assert model.n_features_in_ == len(model.feature_importances_) == 4
    assert model.feature_importances_.min() >= 0
    assert model.feature_importances_.argmax() in (2, 3)  # petals tell irises apart


def test_ties_go_to_the_lowest_class():
    estimator = Scripted(None, lambda t, rows: np.full((len(rows), 3), 1 / 3), Log())
    y = np.array(["c", "b", "a", "c"])
    model = KFHEClassifier(estimator, voting="soft", n_estimators=3).fit(numbered(4), y)
    np.testing.assert_allclose(model.trace_["measurement_error"], 3 / 4)  # only the "a" is right
    assert model.predict(numbered(4)).tolist() == ["a"] * 4


def test_a_bad_component_resets_the_weights_once_and_is_then_taken_as_it_is(rng):
    n = 30
    y = rng.integers(2, size=n)
    seen = []

    def spy(weights, missed):
        seen.append(weights)
        return weights * np.exp(missed)

    # Fits: h_0, 1 good, 2 and its repetition no better than guessing, 3 good.
    wrong = np.array([y, np.where(np.arange(n) < 5, 1 - y, y), 1 - y, 1 - y, y])
    scores = np.eye(2)[rng.integers(2, size=n)] * 0.2 + 0.4
    log = Log()
    estimator = Scripted(lambda t, rows: wrong[t, rows], lambda t, rows: scores[rows], log)
    model = KFHEClassifier(estimator, emphasis=spy, n_estimators=3).fit(numbered(n), y)
    assert model.trace_["resets"].tolist() == [0, 1, 0]
    assert len(log) == 5
    assert len(model.estimators_) == 4
    np.testing.assert_allclose(seen[0], 1 / n)
    np.testing.assert_allclose(seen[1], 1 / n)


def test_guessing_as_badly_as_one_of_c_classes_is_a_reset():
    """The authors' program resets at an error of exactly 1 - 1/c; the paper's text only above it."""
    y = np.repeat([0, 1], 10)
    half_wrong = np.tile([0, 1], 10)
    estimator = Scripted(lambda t, rows: half_wrong[rows], None, Log())
    model = KFHEClassifier(estimator, n_estimators=1).fit(numbered(20), y)
    assert model.trace_["component_error"].tolist() == [0.5]
    assert model.trace_["resets"].tolist() == [1]


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_scores_are_probabilities_to_the_last_bit(voting):
    """A score of 1 + 2e-16 would be an error in scikit-learn's log loss."""
    X, y = load_wine(return_X_y=True)
    for seed in range(5):
        model = KFHEClassifier(emphasis="linear", voting=voting, n_estimators=20, random_state=seed).fit(X, y)
        for scores in (model.predict_proba(X), *model.staged_predict_proba(X)):
            assert scores.min() >= 0
            assert scores.max() <= 1
            np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=0, atol=1e-12)


# When training ends


@pytest.mark.parametrize("certain_at", [1, 4])
def test_training_stops_when_the_gain_is_zero_without_a_component_too_many(certain_at):
    n = 20
    y = np.repeat([0, 1], n // 2)
    off = np.arange(n) < 4

    def votes(t, rows):
        return np.where(off[rows] & (t < certain_at), 1 - y[rows], y[rows])

    log = Log()
    estimator = Scripted(votes, lambda t, rows: np.full((len(rows), 2), 0.5), log)
    model = KFHEClassifier(estimator, n_estimators=50).fit(numbered(n), y)
    assert model.n_iter_ == certain_at
    assert len(log) == certain_at + 1
    assert model.trace_["measurement_error"][-1] == 0
    assert (model.trace_["gain"][-1], model.trace_["posterior_variance"][-1]) == (1, 0)
    assert (model.trace_["measurement_error"][:-1] > 0).all()
    assert model.score(numbered(n), y) == 1


def test_training_trains_as_many_components_as_asked_for_otherwise(iris):
    X, y = iris
    log = Log()
    estimator = Scripted(lambda t, rows: np.zeros(len(rows), dtype=int), None, log)
    model = KFHEClassifier(estimator, n_estimators=12).fit(np.c_[np.arange(len(X)), X], y)
    assert model.n_iter_ == 12
    assert len(log) == 13 + model.trace_["resets"].sum()


# Randomness


def test_the_same_random_state_gives_the_same_model_and_another_one_does_not(iris, emphasis):
    X, y = iris

    def fitted(random_state):
        return KFHEClassifier(emphasis=emphasis, n_estimators=10, random_state=random_state).fit(X, y)

    assert_equal_models(fitted(3), fitted(3), X)
    for source in (np.random.default_rng, np.random.RandomState):
        assert_equal_models(fitted(source(3)), fitted(source(3)), X)
        shared = source(3)
        assert not np.array_equal(fitted(shared).predict_proba(X), fitted(shared).predict_proba(X))
    assert not np.array_equal(fitted(3).predict_proba(X), fitted(4).predict_proba(X))
    assert not np.array_equal(fitted(None).predict_proba(X), fitted(None).predict_proba(X))


def test_n_jobs_has_no_influence_on_the_model(rng):
    X = rng.normal(size=(40_000, 2))  # enough rows to be shared out among threads
    y = (X[:, 0] > rng.normal(size=len(X))).astype(int)
    models = [KFHEClassifier(n_estimators=2, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2, -1)]
    assert_equal_models(models[0], models[1], X[:100])
    assert_equal_models(models[0], models[2], X[:100])


# Tables


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier()], ids=["native", "foreign"])
def test_every_container_gives_the_same_model(iris, estimator):
    X, y = iris
    names = ["a", "b", "c", "d"]
    frames = [pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)]

    def fitted(table):
        return KFHEClassifier(estimator, n_estimators=5, random_state=0).fit(table, y)

    from_array = fitted(X)
    assert not hasattr(from_array, "feature_names_in_")
    for table in (X.tolist(), np.asfortranarray(X), X[::-1][::-1]):
        assert_equal_models(from_array, fitted(table), X)
    for table in frames:
        model = fitted(table)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_array_equal(model.predict_proba(table), from_array.predict_proba(X))


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier()], ids=["native", "foreign"])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_feature_names_are_checked_at_predict_time(iris, estimator, frame):
    X, y = iris
    table = frame(dict(zip("abcd", X.T, strict=True)))
    model = KFHEClassifier(estimator, n_estimators=2, random_state=0).fit(table, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(table[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match=r"yet now missing:\s+- d"):
        model.predict(table[["a", "b", "c"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\s+- e"):
        model.predict(frame(dict(zip("abce", X.T, strict=True))))


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier()], ids=["native", "foreign"])
def test_the_number_of_features_is_checked_at_predict_time(iris, estimator):
    X, y = iris
    model = KFHEClassifier(estimator, n_estimators=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but KFHEClassifier is expecting 4"):
        model.predict(X[:, :3])


# As one of scikit-learn's


def test_a_fitted_model_survives_pickling(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    assert_equal_models(model, pickle.loads(pickle.dumps(model)), X)


def test_parameters_can_be_searched(iris):
    X, y = iris
    grid = {"emphasis": ["exponential", "linear"], "n_estimators": [1, 3]}
    search = GridSearchCV(KFHEClassifier(random_state=0), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


def test_a_second_fit_forgets_the_first(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=9, random_state=0).fit(X[:, :2], y == 1)
    again = model.set_params(n_estimators=4).fit(X, y)
    assert again is model
    assert_equal_models(again, KFHEClassifier(n_estimators=4, random_state=0).fit(X, y), X)


# What scikit-learn's forests have as well


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
def test_logarithms_of_probabilities_are_theirs(iris, kind):
    X, y = iris
    model = kind(n_estimators=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-14)


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_leaves_of_all_trees_are_told(rng, kind, n_jobs):
    colours = rng.choice(["red", "green", "blue", None], 300)
    X = pd.DataFrame({"colour": colours, "size": rng.normal(size=300)})
    model = kind(n_estimators=5, random_state=0, n_jobs=n_jobs).fit(X, colours == "red")
    leaves = model.apply(X)
    assert leaves.shape == (300, model.n_iter_ + 1)
    for column, tree in zip(leaves.T, model.estimators_, strict=True):
        np.testing.assert_array_equal(column, tree.apply(X))


def test_components_of_other_kinds_have_no_leaves_to_tell(iris):
    model = KFHEClassifier(DecisionTreeClassifier(), n_estimators=2).fit(*iris)
    with pytest.raises(ValueError, match=r"apply\(\) needs native trees"):
        model.apply(iris[0])


# Few rows


def few(n):
    return np.arange(n, dtype=float).reshape(-1, 1), np.arange(n) >= n // 2


@pytest.mark.parametrize(
    "settings", [{}, {"estimator": CARTClassifier()}, {"min_samples_split": 2, "min_samples_leaf": 10}]
)
def test_too_few_rows_to_split_are_told_with_what_to_lower(settings):
    with pytest.warns(UserWarning, match=r"15 rows are too few .* takes 20. Lower min_samples_split and"):
        model = KFHEClassifier(n_estimators=3, **as_parameters(settings)).fit(*few(15))
    assert all(tree.get_n_leaves() == 1 for tree in model.estimators_)


@pytest.mark.parametrize(
    "settings", [{"min_samples_split": 2, "min_samples_leaf": 7}, {"estimator": GaussianNB()}]
)
def test_rows_that_are_enough_are_not(settings):
    KFHEClassifier(n_estimators=3, **as_parameters(settings)).fit(*few(15))
    KFHEClassifier(n_estimators=3).fit(*few(20))


def test_rows_of_one_class_have_nothing_to_split():
    KFHEClassifier(n_estimators=3).fit(np.zeros((5, 1)), np.zeros(5))
