"""Models that were once recorded come out the same, bit by bit, whatever the shape of the code.

`python tests/test_same_models.py` records them anew, which is right only if results are meant to change.
"""

import hashlib
import json
import platform
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from components import as_parameters
from sklearn.base import BaseEstimator, ClassifierMixin

from kfhe import CARTClassifier, EarlyStopping, KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality

RECORDED = Path(__file__).parent / "golden" / "models" / "digests.json"


class Nearest(ClassifierMixin, BaseEstimator):
    """Predicts the class whose mean is nearest: a component of whole numbers, the same everywhere."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array(
            [np.rint(np.asarray(X)[y == k].sum(axis=0) / (y == k).sum()) for k in self.classes_]
        )
        return self

    def _distances(self, X):
        return ((np.asarray(X)[:, None, :] - self.means_) ** 2).sum(axis=2)

    def predict(self, X):
        return self.classes_[self._distances(X).argmin(axis=1)]

    def predict_proba(self, X):
        near = 1 / (1 + self._distances(X))
        return near / near.sum(axis=1, keepdims=True)


def gentle(weights, missed):
    return weights * np.where(missed, 1.25, 1.0)


@cache
def table(kind):
    """Return rows, labels and weights; all of it follows from whole random numbers."""
    rng = np.random.Generator(np.random.Philox(7))
    n = 20_000 if kind == "large" else 300
    X = rng.integers(0, 1000, size=(n, 6)).astype(float)
    y = (X[:, 0] + X[:, 1] * (X[:, 2] > 500) + rng.integers(0, 600, size=n)) // 700
    if kind in ("gaps", "mixed"):
        X[rng.integers(0, 5, size=X.shape) == 0] = np.nan
    if kind == "mixed":
        X = pd.DataFrame(X, columns=list("abcdef"))
        codes = rng.integers(0, 40, size=n)
        X["town"] = pd.Series([f"t{code}" for code in codes], dtype=object)
        X["side"] = pd.Categorical(np.where(rng.integers(0, 2, size=n) == 1, "left", "right"))
        X.loc[rng.integers(0, 9, size=n) == 0, "town"] = None
        y = np.where(codes % 7 == 0, 2, y)
    if kind == "words":
        y = np.array(["no", "perhaps", "yes", "never"], dtype=object)[y.astype(int) % 4]
    if kind == "one class":
        y = np.zeros(n)
    return X, (y if y.dtype == object else y.astype(int)), rng.integers(0, 5, size=n) / 4


TABLES = ("numbers", "gaps", "mixed", "words")
SETTINGS = {
    "plain": {},
    "linear": {"emphasis": "linear"},
    "soft": {"voting": "soft"},
    "linear soft": {"emphasis": "linear", "voting": "soft"},
    "gentle": {"emphasis": gentle},
    "balanced": {"class_weight": "balanced"},
    "small leaves": {"min_samples_leaf": 1, "min_samples_split": 2},
    "sqrt": {"max_features": "sqrt", "min_samples_leaf": 1, "min_samples_split": 2},
    "half": {"max_features": 0.5, "voting": "soft"},
    "random": {"splitter": "random", "max_features": 0.5, "min_samples_leaf": 1, "min_samples_split": 2},
    "few leaves": {"max_leaf_nodes": 9},
    "pruned": {"cp": 0.02},
    "shallow": {"max_depth": 3, "max_bins": 16},
}


def kfhe(X, y, weights=None, *, stages=(15,), early_stopping=None, **settings):
    model = KFHEClassifier(
        random_state=3, warm_start=len(stages) > 1, early_stopping=early_stopping, **as_parameters(settings)
    )
    validation = {"X_val": X[: len(y) // 3], "y_val": y[: len(y) // 3]} if early_stopping else {}
    for n_estimators in stages:
        model.set_params(n_estimators=n_estimators).fit(X, y, weights, **validation)
    parts = [model.predict_proba(X), *model.staged_predict_proba(X[:20]), model.trace_["gain"]]
    parts += [
        np.append(1.0, model.trace_["posterior_variance"]),
        model.component_weights_,
        model.trace_["training_error"],
    ]
    if settings.get("estimator") is None:
        parts += [model.feature_importances_, model.fingerprint()]
    return parts


def robust(X, y, weights=None, **settings):
    model = RobustKFHEClassifier(random_state=3, **{"n_estimators": 30, **settings}).fit(X, y, weights)
    found = [model.lambda_, model.noise_rate_, model.oob_score_, model.oob_log_loss_]
    return [model.predict_proba(X), np.array(found), model.oob_decision_function_, model.fingerprint()]


def cart(X, y, weights=None, **settings):
    tree = CARTClassifier(random_state=3, **settings).fit(X, y, weights)
    return [tree.predict_proba(X), tree.feature_importances_, tree.tree_.export_text(decimals=6)]


def audit(X, y, weights=None, **settings):
    found = label_quality(X, y, n_estimators=60, random_state=3, **settings)
    return [found.quality, found.rank, found.suspects, np.array([found.estimated_share])]


CASES = {
    **{
        f"{name}, {kind}": (kfhe, kind, False, settings)
        for name, settings in SETTINGS.items()
        for kind in TABLES
    },
    **{
        f"{name}, weights, {kind}": (kfhe, kind, True, SETTINGS[name])
        for name in ("plain", "linear soft", "balanced", "sqrt")
        for kind in ("numbers", "mixed")
    },
    **{
        f"{name}, large": (kfhe, "large", False, {**SETTINGS[name], "stages": (3,)})
        for name in ("plain", "linear", "soft", "sqrt", "few leaves", "pruned")
    },
    **{
        f"{n_leaves} leaves, {name}, {'weights, ' * weighted}{kind}": (
            kfhe,
            kind,
            weighted,
            {**SETTINGS[name], "max_leaf_nodes": n_leaves, "stages": (3,)},
        )
        for n_leaves in (2, 30, 400)
        for name in ("small leaves", "sqrt", "pruned")
        for kind, weighted in (("mixed", False), ("mixed", True), ("large", False), ("large", True))
    },
    **{
        f"foreign {voting} {emphasis}": (
            kfhe,
            "numbers",
            weighted,
            {"estimator": Nearest(), "voting": voting, "emphasis": emphasis},
        )
        for voting, weighted in (("hard", False), ("soft", True))
        for emphasis in ("exponential", "linear")
    },
    **{
        f"warm start, {name}": (kfhe, "mixed", True, {**SETTINGS[name], "stages": (5, 9, 15)})
        for name in ("plain", "linear", "soft")
    },
    **{
        f"early stopping, {name}": (
            kfhe,
            "mixed",
            False,
            {**SETTINGS[name], "early_stopping": stopping, "stages": (30,)},
        )
        for name, stopping in (("plain", 3), ("linear", EarlyStopping(4, "accuracy")), ("soft", 2))
    },
    "one class": (kfhe, "one class", False, {}),
    **{
        f"robust, {'weights, ' * weighted}{kind}": (robust, kind, weighted, {})
        for kind in (*TABLES, "large")
        for weighted in (False, True)
    },
    **{
        f"tree, {name}, {kind}": (cart, kind, weighted, settings)
        for name, settings in SETTINGS.items()
        if not {"voting", "emphasis"} & settings.keys()
        for kind, weighted in (("numbers", False), ("mixed", True))
    },
    **{f"audit, {kind}": (audit, kind, False, {}) for kind in TABLES},
}


def digest(name, **further):
    make, kind, weighted, settings = CASES[name]
    X, y, weights = table(kind)
    result = hashlib.sha256()
    for part in make(X, y, weights if weighted else None, **settings, **further):
        result.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes())
    return result.hexdigest()


@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="bits are promised on one platform"
)
@pytest.mark.parametrize("name", CASES)
def test_a_recorded_model_comes_out_the_same(name):
    if name.startswith("robust") and np.__version__ < "2":
        pytest.skip("the last bit of oob_log_loss_ is that of NumPy's logarithm")
    assert digest(name) == json.loads(RECORDED.read_text())[name]


if __name__ == "__main__":
    sys.exit(RECORDED.write_text(json.dumps({name: digest(name) for name in CASES}, indent=1) + "\n") and 0)
