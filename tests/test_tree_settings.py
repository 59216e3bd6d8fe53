"""Tree settings: made once from parameters, whoever grows the trees."""

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.tree_settings import TreeSettings

NAMES = [setting.name for setting in fields(TreeSettings)]


def test_the_tree_shows_every_setting_with_its_default():
    shown = signature(CARTClassifier).parameters
    assert {name: shown[name].default for name in NAMES} == vars(TreeSettings())
    assert CARTClassifier._parameter_constraints.keys() >= set(NAMES)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 100), ("sqrt", 10), ("log2", 6), (7, 7), (500, 100), (0.25, 25), (0.001, 1), (1.0, 100), (1, 1)],
)
def test_features_per_split_of_a_hundred(max_features, expected):
    assert TreeSettings(max_features=max_features).features_per_split(100) == expected


@pytest.mark.parametrize("max_features", ["sqrt", "log2"])
def test_a_single_feature_is_tried_anyway(max_features):
    assert TreeSettings(max_features=max_features).features_per_split(1) == 1


def test_65535_columns_are_accepted_and_no_more():
    X = np.zeros((4, 65536))
    X[:, 65534] = [0, 0, 1, 1]
    tree = CARTClassifier(min_samples_split=2, min_samples_leaf=1, n_jobs=1).fit(X[:, :65535], [0, 0, 1, 1])
    assert tree.predict(X[:, :65535]).tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="X has 65536 columns; at most 65535 are accepted"):
        CARTClassifier().fit(X, [0, 0, 1, 1])


def test_more_than_65535_classes_are_refused():
    y = np.arange(65536)
    with pytest.raises(ValueError, match="y has 65536 classes; at most 65535 are accepted"):
        CARTClassifier().fit(y.reshape(-1, 1), y)


# A CARTClassifier as the component of an ensemble means native trees


def test_a_cart_classifier_means_native_trees_with_its_settings(iris):
    X, y = iris
    tree = CARTClassifier(max_depth=3, min_samples_leaf=2, min_samples_split=4, max_features="sqrt")
    model = KFHEClassifier(tree, n_estimators=8, random_state=0).fit(X, y)
    assert max(each.get_depth() for each in model.estimators_) == 3
    default, plain = (
        KFHEClassifier(each, n_estimators=8, random_state=0) for each in (None, CARTClassifier())
    )
    assert default.fit(X, y).fingerprint() == plain.fit(X, y).fingerprint() != model.fingerprint()


def test_it_takes_gaps_and_categories(rng):
    X = np.array([["red", 1.0], ["blue", None], [None, 3.0], ["red", 4.0]] * 20, dtype=object)
    y = np.array(["a", "b", "b", "a"] * 20)
    model = KFHEClassifier(CARTClassifier(), n_estimators=5, random_state=0).fit(X, y)
    assert model.score(X, y) == 1
    assert model.__sklearn_tags__().input_tags.allow_nan


def test_class_weights_belong_to_the_ensemble(iris):
    model = KFHEClassifier(CARTClassifier(class_weight="balanced"))
    with pytest.raises(ValueError, match=r"estimator has class_weight='balanced': .* to the ensemble"):
        model.fit(*iris)


def test_its_parameters_are_checked(iris):
    with pytest.raises(InvalidParameterError, match="The 'max_depth' parameter of CARTClassifier must be"):
        KFHEClassifier(CARTClassifier(max_depth=-1)).fit(*iris)
