"""Under label noise KFHE-l holds where AdaBoost, on equal trees, gives way."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import RepeatedStratifiedKFold

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.noise import flip_labels


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer], ids=lambda load: load.__name__)
def test_kfhe_l_beats_adaboost_with_a_fifth_of_the_labels_changed(load):
    X, y = load(return_X_y=True)
    scores = {"KFHE-l": [], "AdaBoost": []}
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=5, random_state=0).split(X, y)
    for fold, (train, test) in enumerate(folds):
        noisy = flip_labels(y[train], 0.2, random_state=fold)
        models = {
            "KFHE-l": KFHEClassifier(emphasis="linear", random_state=fold),
            "AdaBoost": AdaBoostClassifier(CARTClassifier(), n_estimators=100, random_state=fold),
        }
        for name, model in models.items():
            predicted = model.fit(X[train], noisy).predict(X[test])
            scores[name].append(f1_score(y[test], predicted, average="macro"))
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    print("macro F1:", means)
    assert means["KFHE-l"] > means["AdaBoost"]
