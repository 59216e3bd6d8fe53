"""max_samples: components are trained on fewer rows, and still measured on all of them."""

import io

import numpy as np
import pytest
from components import assert_equal_models
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

import kfhe
from kfhe import KFHEClassifier, RobustKFHEClassifier
from kfhe.rows import sample_size

CLASSIFIERS = pytest.mark.parametrize("classifier", [KFHEClassifier, RobustKFHEClassifier])


class Counting(DecisionTreeClassifier):
    """A tree that knows how many rows it was trained on."""

    def fit(self, X, y):
        self.n_rows_, self.labels_ = len(y), set(y)
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("max_samples", "n_rows", "expected"),
    [
        (None, 150, 150),
        (40, 150, 40),
        (1000, 150, 150),
        (0.5, 150, 75),
        (1.0, 150, 150),
        (1, 150, 1),
        ("auto", 150, 150),
        ("auto", 50_000, 50_000),
        ("auto", 200_000, 100_000),
        ("auto", 5_000_000, 500_000),
    ],
)
def test_a_sample_is_a_number_a_share_or_found_by_a_rule(max_samples, n_rows, expected):
    assert sample_size(max_samples, n_rows) == expected


@CLASSIFIERS
@pytest.mark.parametrize("max_samples", [150, 1.0, "auto"])
def test_as_many_rows_as_there_are_is_the_default(iris, classifier, max_samples):
    X, y = iris
    model = classifier(n_estimators=5, max_samples=max_samples, random_state=0).fit(X, y)
    assert model.fingerprint() == classifier(n_estimators=5, random_state=0).fit(X, y).fingerprint()


@CLASSIFIERS
def test_trees_have_as_many_rows_as_asked(iris, classifier):
    X, y = iris
    model = classifier(n_estimators=5, max_samples=60, random_state=0).fit(X, y)
    assert [int(tree.leaf_weights.sum()) for tree in model.estimators_[1:]] == [60] * 5


def test_components_of_ones_own_have_as_many_rows_as_asked_and_every_class(iris):
    X, y = iris
    model = KFHEClassifier(Counting(), n_estimators=20, max_samples=6, random_state=0).fit(X, y)
    assert {component.n_rows_ for component in model.estimators_} == {6}
    assert {len(component.labels_) for component in model.estimators_} == {3}


def test_the_first_component_has_a_sample_too(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=1, max_samples=0.4, random_state=0).fit(X, y)
    assert model.estimators_[0].leaf_weights.sum() == 60


def test_errors_are_measured_on_all_rows(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=1, max_samples=30, random_state=0).fit(X, y)
    error = np.mean(model.estimators_[1].predict(X) != y)
    assert error > 0
    np.testing.assert_allclose(model.trace_["component_error"], error)


def test_rows_are_drawn_by_weight(iris):
    X, y = iris
    weights = np.where(y == 2, 100.0, 1.0)
    model = KFHEClassifier(n_estimators=1, max_samples=50, random_state=0).fit(X, y, sample_weight=weights)
    classes = model.estimators_[0].leaf_weights.sum(axis=0)
    assert classes.sum() == 50
    assert classes[2] > 40


@CLASSIFIERS
def test_threads_do_not_show(classifier):
    X, y = make_classification(140_000, n_features=4, random_state=0)  # enough for parallel draws
    found = {
        classifier(n_estimators=2, max_samples=0.1, random_state=0, n_jobs=n_jobs).fit(X, y).fingerprint()
        for n_jobs in (1, 2, 3)
    }
    assert len(found) == 1


@CLASSIFIERS
@pytest.mark.parametrize("max_samples", [2, 0.001])
def test_samples_too_small_for_the_classes_are_refused(iris, classifier, max_samples):
    with pytest.raises(ValueError, match=rf"max_samples={max_samples} makes samples of \d rows?: too few"):
        classifier(max_samples=max_samples, random_state=0).fit(*iris)


@pytest.mark.parametrize("max_samples", [0, -1, 0.0, 1.5, "all"])
def test_what_is_no_size_is_refused(iris, max_samples):
    with pytest.raises(ValueError, match="'max_samples' parameter of KFHEClassifier must be"):
        KFHEClassifier(max_samples=max_samples).fit(*iris)


def test_samples_too_small_to_split_are_mentioned(iris):
    with pytest.warns(UserWarning, match="10 rows are too few for any tree to split"):
        KFHEClassifier(n_estimators=2, max_samples=10, random_state=0).fit(*iris)


@CLASSIFIERS
def test_training_goes_on_with_samples_of_the_same_size(iris, classifier):
    X, y = iris
    settings = {"max_samples": 0.5, "random_state": 0}
    in_steps = classifier(n_estimators=3, warm_start=True, **settings).fit(X, y)
    in_steps.set_params(n_estimators=6).fit(X, y)
    assert_equal_models(in_steps, classifier(n_estimators=6, **settings).fit(X, y), X)
    with pytest.raises(ValueError, match="can't change max_samples"):
        in_steps.set_params(n_estimators=9, max_samples=0.2).fit(X, y)


@CLASSIFIERS
def test_a_model_file_remembers_it(iris, classifier):
    X, y = iris
    model = classifier(n_estimators=3, max_samples=0.5, random_state=0).fit(X, y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = kfhe.load(file)
    assert loaded.max_samples == 0.5
    assert loaded.fingerprint() == model.fingerprint() == loaded.fit(X, y).fingerprint()


def test_a_share_is_of_the_rows_that_are_trained_on(iris):
    X, y = iris
    stopping = kfhe.EarlyStopping(5, validation_fraction=0.2)
    settings = {"max_samples": 0.5, "early_stopping": stopping, "random_state": 0}
    model = KFHEClassifier(Counting(), n_estimators=3, **settings).fit(X, y)
    assert {component.n_rows_ for component in model.estimators_} == {60}
