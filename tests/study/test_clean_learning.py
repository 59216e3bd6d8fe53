"""CleanLearning in a study: labels of any kind, gaps, and a plain forest where cleanlab gives up."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from kfhe.noise import flip_labels
from kfhe.study.clean_learning import CleanLearningForest

pytest.importorskip("cleanlab")


@pytest.fixture(scope="module")
def halves():
    """Rows of two classes with gaps: half to train on, a third of its labels wrong, and half to test."""
    X, y = load_breast_cancer(return_X_y=True)
    X[::17, 0] = np.nan
    names = np.array(["malignant", "benign"])[y]
    return X[::2], flip_labels(names[::2], 0.35, random_state=0), X[1::2], names[1::2]


def test_wrong_labels_hurt_it_less_than_a_plain_forest(halves):
    X, given, test, true = halves
    cleaned = CleanLearningForest(random_state=0).fit(X, given)
    plain = RandomForestClassifier(random_state=0).fit(X, given)
    assert cleaned.fallback_ is None
    assert cleaned.n_estimators_ == 100
    assert cleaned.score(test, true) > plain.score(test, true) + 0.05


def test_labels_come_back_as_they_were_given(halves):
    X, given, test, _ = halves
    model = CleanLearningForest(10, random_state=0).fit(X, given)
    assert set(model.predict(test)) <= {"benign", "malignant"}
    codes = CleanLearningForest(10, random_state=0).fit(X, np.where(given == "benign", 3, 7))
    np.testing.assert_array_equal(codes.predict(test), np.where(model.predict(test) == "benign", 3, 7))


def test_the_same_seed_gives_the_same_model(halves):
    X, given, test, _ = halves
    first, again = (CleanLearningForest(10, random_state=3).fit(X, given) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(test), again.predict_proba(test))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [(["a", "b", "c"] * 4, "Need more data from each class"), (["a"] * 12, "at least 2 classes")],
)
def test_where_cleanlab_gives_up_the_forest_gets_all_rows(halves, labels, reason):
    X = halves[0][:12]
    model = CleanLearningForest(10, random_state=0).fit(X, labels)
    assert reason in model.fallback_
    forest = RandomForestClassifier(10, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X), forest.predict_proba(X))


def test_a_class_that_cleanlab_has_pruned_keeps_its_column(halves, monkeypatch):
    def prune(self, X, labels):
        self.clf.fit(X[labels != 1], labels[labels != 1])
        return self

    monkeypatch.setattr("cleanlab.classification.CleanLearning.fit", prune)
    X = halves[0][:60]
    shares = CleanLearningForest(10, random_state=0).fit(X, ["a", "b", "c"] * 20).predict_proba(X)
    assert shares.shape == (60, 3)
    assert not shares[:, 1].any()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
