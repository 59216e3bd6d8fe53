"""Sensors: any scikit-learn classifier can be a component."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from components import Log, Scripted, assert_equal_models, numbered
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from kfhe import KFHEClassifier
from kfhe.estimator_ensemble import ClassShares


class Watched(ClassifierMixin, BaseEstimator):
    """A small tree that notes what it is asked."""

    def __init__(self, calls=None):
        self.calls = calls

    def fit(self, X, y):
        self.calls.append(("fit", X))
        self.tree_ = DecisionTreeClassifier(max_depth=1).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        self.calls.append(("predict", X))
        return self.tree_.predict(X)

    def predict_proba(self, X):
        self.calls.append(("predict_proba", X))
        return self.tree_.predict_proba(X)


@pytest.mark.parametrize(("voting", "asked"), [("hard", "predict"), ("soft", "predict_proba")])
def test_a_component_scores_the_training_rows_once_and_in_their_order(iris, voting, asked):
    X, y = iris
    calls = Log()
    model = KFHEClassifier(Watched(calls), voting=voting, n_estimators=4, random_state=0).fit(X, y)
    assert model.trace_["resets"].sum() == 0
    assert [name for name, _ in calls] == ["fit", "predict_proba"] + ["fit", asked] * 4
    for name, table in calls[:1] + calls[1::2]:
        np.testing.assert_array_equal(table, X, err_msg=name)
    for _, sample in calls[2::2]:
        assert len(sample) == len(X)
        assert len(np.unique(sample, axis=0)) < 0.75 * len(X)  # with replacement


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(max_iter=1000),
        GaussianNB(),
        KNeighborsClassifier(),
        LinearSVC(),
        Perceptron(),
        ExtraTreesClassifier(n_estimators=5),
        KFHEClassifier(n_estimators=3),
        make_pipeline(StandardScaler(), LinearSVC()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_classifier_can_be_a_component(iris, estimator):
    X, y = iris
    model = KFHEClassifier(estimator, n_estimators=4, random_state=0).fit(X, np.array(["x", "y", "z"])[y])
    assert model.score(X, np.array(["x", "y", "z"])[y]) > 0.6
    assert all(type(component) is type(estimator) for component in model.estimators_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def test_without_probabilities_the_initial_scores_are_votes(iris):
    X, y = iris
    model = KFHEClassifier(LinearSVC(), n_estimators=1, random_state=0).fit(X, y)
    initial = next(model.staged_predict_proba(X))
    np.testing.assert_array_equal(initial, np.eye(3)[model.estimators_[0].predict(X)])


def test_with_probabilities_they_are_the_initial_scores(iris):
    X, y = iris
    model = KFHEClassifier(GaussianNB(), n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        next(model.staged_predict_proba(X)), model.estimators_[0].predict_proba(X), atol=1e-12
    )


def test_a_component_that_saw_one_class_only_takes_no_feature_into_account():
    X, y = np.column_stack([np.arange(12.0), np.ones(12)]), np.array([0] * 11 + [1])
    weights = np.where(y == 1, 1e-12, 1.0)  # the other class is hardly ever drawn
    tree = DecisionTreeClassifier(random_state=0)
    model = KFHEClassifier(tree, n_estimators=3, random_state=0).fit(X, y, sample_weight=weights)
    assert [type(component) for component in model.estimators_[1:]] == [ClassShares] * model.n_iter_
    assert model.estimators_[1].feature_importances_.tolist() == [0, 0]
    expected = model.component_weights_[0] * model.estimators_[0].feature_importances_
    np.testing.assert_allclose(model.feature_importances_, expected)


def test_soft_voting_needs_probabilities(iris):
    model = KFHEClassifier(LinearSVC(), voting="soft")
    with pytest.raises(
        ValueError, match=r"voting='soft' needs an estimator with predict_proba, LinearSVC has none"
    ):
        model.fit(*iris)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pipeline_gets_rows_of_the_users_own_table(rng, frame, weighted):
    n = 80
    colour = rng.choice(["red", "green", "blue"], size=n)
    table = frame({"colour": colour, "size": rng.normal(size=n), "useless": ["text"] * n})
    y = np.where((colour == "red") ^ (rng.uniform(size=n) < 0.1), "stop", "go")
    by_name = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
        (StandardScaler(), ["size"]),
    )
    pipeline = make_pipeline(by_name, LogisticRegression())
    weights = rng.uniform(0.5, 1.5, size=n) * (np.arange(n) > 5) if weighted else None
    model = KFHEClassifier(pipeline, n_estimators=5, random_state=0).fit(table, y, sample_weight=weights)
    assert model.score(table, np.where(colour == "red", "stop", "go")) == 1
    assert model.feature_names_in_.tolist() == ["colour", "size", "useless"]


def test_random_components_are_seeded_by_the_classifier(iris):
    X, y = iris
    estimator = make_pipeline(StandardScaler(), ExtraTreesClassifier(n_estimators=1, max_depth=2))

    def fitted(random_state):
        return KFHEClassifier(estimator, n_estimators=3, random_state=random_state).fit(X, y)

    assert_equal_models(fitted(0), fitted(0), X)
    seeds = [component[-1].random_state for state in (0, 1) for component in fitted(state).estimators_]
    assert len(set(seeds)) == 8
    assert estimator[-1].random_state is None


def test_weights_leave_the_seed_of_the_initial_component_as_it_is(iris):
    X, y = iris
    model = KFHEClassifier(ExtraTreesClassifier(n_estimators=1), n_estimators=1, random_state=0)
    weighted, plain = (
        clone(model).fit(X, y, sample_weight=weights).estimators_[0].random_state for weights in (y + 1, None)
    )
    assert weighted == plain


def test_settings_of_the_estimator_can_be_reached_through_the_classifier(iris):
    model = KFHEClassifier(DecisionTreeClassifier(), n_estimators=2).set_params(estimator__max_depth=1)
    assert all(component.get_depth() == 1 for component in model.fit(*iris).estimators_)


def test_importances_are_those_of_the_components_by_weight(iris):
    model = KFHEClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0).fit(*iris)
    expected = sum(
        weight * component.feature_importances_
        for weight, component in zip(model.component_weights_, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-12)
    assert not hasattr(KFHEClassifier(GaussianNB(), n_estimators=1).fit(*iris), "feature_importances_")


# Samples


def test_a_sample_is_drawn_again_until_it_has_every_class(rng):
    y = np.array([0, 1] + [2] * 40)  # two classes with one row each: most samples miss one
    log = Log()
    estimator = Scripted(lambda t, rows: np.full(len(rows), 2), None, log)
    KFHEClassifier(estimator, emphasis="linear", n_estimators=30, random_state=0).fit(numbered(42), y)
    assert all(len(sample) == 42 for sample in log)
    assert all(len(np.unique(y[sample])) == 3 for sample in log)
    assert any(len(np.unique(sample)) < 42 for sample in log)


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("estimator", [None, GaussianNB(), LogisticRegression()], ids=["native", "NB", "LR"])
def test_components_may_miss_a_class_that_hardly_ever_gets_drawn(iris, voting, estimator):
    X, y = iris
    weights = np.where(y == 1, 1e-12, 1.0)
    model = KFHEClassifier(estimator, voting=voting, n_estimators=3, random_state=0)
    model.fit(X, y, sample_weight=weights)
    assert model.classes_.tolist() == [0, 1, 2]
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert proba[:, 1].max() < 0.1
    assert model.score(X[y != 1], y[y != 1]) > 0.8
    if estimator is not None:
        assert [component.classes_.tolist() for component in model.estimators_[1:]] == [[0, 2]] * 3


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_components_may_see_one_class_only(iris, voting):
    """Logistic regression refuses such a sample; there is nothing to learn from it anyway."""
    X, y = iris
    model = KFHEClassifier(LogisticRegression(), voting=voting, n_estimators=2, random_state=0)
    model.fit(X, y, sample_weight=np.where(y == 2, 1.0, 1e-15))
    assert [component.predict(X[:1]).tolist() for component in model.estimators_[1:]] == [[2], [2]]
    assert model.predict(X).tolist() == [2] * len(X)


# Failures


class FailsAt(ClassifierMixin, BaseEstimator):
    """Raises in its n-th fit."""

    def __init__(self, n=None, fits=None, error=None):
        self.n = n
        self.fits = fits
        self.error = error

    def fit(self, X, y):
        if len(self.fits) == self.n:
            raise self.error
        self.fits.append(1)
        self.tree_ = DecisionTreeClassifier(max_depth=1).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)


def test_a_component_that_fails_is_named_and_nothing_half_fitted_is_left(iris):
    X, y = iris
    model = KFHEClassifier(FailsAt(3, Log(), OSError("disk full")), n_estimators=5)
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match=r"component 3 \(FailsAt\) failed: OSError: disk full") as caught:
        model.fit(X, y)
    assert isinstance(caught.value.__cause__, OSError)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("at", [0, 3])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_fit_that_fails_leaves_an_older_one_as_it_was(iris, at, error):
    X, y = iris
    model = KFHEClassifier(n_estimators=4, random_state=0).fit(X[:, :2], y == 1)
    proba = model.predict_proba(X[:, :2])
    model.set_params(estimator=FailsAt(at, Log(), error))
    with pytest.raises((RuntimeError, type(error))):
        model.fit(X, y)
    model.set_params(estimator=None)
    np.testing.assert_array_equal(model.predict_proba(X[:, :2]), proba)
    assert (model.n_iter_, model.n_features_in_, model.classes_.tolist()) == (4, 2, [False, True])


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (lambda t, rows: np.full(len(rows), 7), r"predicts 7; y has the classes \[0, 1\]"),
        (lambda t, rows: np.full(len(rows), "x"), r"predicts 'x'; y has the classes \[0, 1\]"),
        (lambda t, rows: np.zeros(3), r"predict gave shape \(3,\), expected \(20,\)"),
        (lambda t, rows: np.zeros((len(rows), 2)), r"predict gave shape \(20, 2\), expected \(20,\)"),
    ],
)
def test_votes_that_make_no_sense_are_refused(votes, message):
    y = np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match=message):
        KFHEClassifier(Scripted(votes, None, Log())).fit(numbered(20), y)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (lambda t, rows: np.full((len(rows), 2), np.nan), "predict_proba gave NaN or infinite values"),
        (lambda t, rows: np.ones((3, 2)), r"predict_proba gave shape \(3, 2\), expected \(20, 2\)"),
        (lambda t, rows: np.ones((len(rows), 1)), r"predict_proba gave shape \(20, 1\), expected \(20, 2\)"),
    ],
)
def test_scores_that_make_no_sense_are_refused(scores, message):
    y = np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match=message):
        KFHEClassifier(Scripted(None, scores, Log())).fit(numbered(20), y)


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("estimator", [None, GaussianNB()], ids=["native", "foreign"])
def test_votes_for_other_rows_are_those_of_prediction(iris, estimator, voting):
    X, y = iris
    if estimator is None:
        colour = np.array(["red", "green", "blue", None], dtype=object)[np.where(np.arange(150) % 7, y, 3)]
        X = pd.DataFrame(X, columns=list("abcd")).assign(colour=colour)
        X["c"] = X["c"].where(X["c"] > 1.5)
    model = KFHEClassifier(estimator, voting=voting, n_estimators=4, warm_start=True, random_state=0).fit(
        X, y
    )
    sensor = model._run.sensor
    encoded = sensor.encode(X)
    np.testing.assert_array_equal(sensor.votes(0, encoded), model.estimators_[0].predict_proba(X))
    for t in range(1, 5):
        component = model.estimators_[t]
        expected = component.predict(X) if voting == "hard" else component.predict_proba(X)
        np.testing.assert_array_equal(sensor.votes(t, encoded), expected)


def test_a_tree_that_is_not_there_is_refused(iris):
    model = KFHEClassifier(n_estimators=2, warm_start=True, random_state=0).fit(*iris)
    with pytest.raises(IndexError, match="there are 3 trees, got 3"):
        model._run.sensor.votes(3, iris[0])
