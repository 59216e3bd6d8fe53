"""With ``device="cuda"`` come out the models of the CPU, bit by bit."""

import json
import pickle

import numpy as np
import pytest
from host_device import ON_GPU
from random_tables import random_classes, random_table
from sklearn.linear_model import LogisticRegression
from test_same_models import CASES, RECORDED, digest

from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier, StateSpace, load
from kfhe.audit import label_quality


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("foreign")])
def test_a_recorded_model_comes_out_the_same(name, device):
    assert digest(name, device="cuda") == json.loads(RECORDED.read_text())[name]


def drawn_model(rng, n_rows):
    """Return a model of some kind, and settings of its own."""
    tree = {
        "min_samples_leaf": int(rng.choice([1, 7])),
        "max_leaf_nodes": [None, 2, 30][rng.integers(3)],
        "max_features": [None, "sqrt", 0.5][rng.integers(3)],
        "splitter": str(rng.choice(["best", "random"])),
        "cp": float(rng.choice([0, 0.01])),
    }
    if rng.random() < 0.3:
        return RobustKFHEClassifier(n_estimators=25, max_leaf_nodes=tree["max_leaf_nodes"])
    state_space = StateSpace(
        measurement=str(rng.choice(["training", "out-of-bag"])), process_noise=float(rng.choice([0, 0.05]))
    )
    return KFHEClassifier(
        CARTClassifier(**tree),
        n_estimators=4,
        emphasis=str(rng.choice(["exponential", "linear", "margin"])),
        voting=str(rng.choice(["hard", "soft"])),
        max_samples=[None, 0.5][rng.integers(2)],
        state_space=state_space,
        early_stopping=bool(n_rows > 300 and rng.random() < 0.5),
        warm_start=bool(rng.random() < 0.3),
    )


@pytest.mark.parametrize("seed", range(300 if ON_GPU else 25))
def test_models_of_random_tables_are_those_of_the_cpu(seed, device):
    rng = np.random.default_rng(seed)
    n_rows = int(10 ** rng.uniform(1.5, 5.3 if ON_GPU else 3))
    sizes = [int(size) for size in rng.choice([1, 2, 5, 30, 300], size=rng.integers(3))]
    X, scores = random_table(rng, n_rows, sizes, rng.choice([0, 0.2]), n_numeric=int(rng.integers(1, 8)))
    y = random_classes(scores, int(rng.choice([2, 2, 3, 7, 20])))
    weights = rng.integers(1, 5, size=n_rows) / 4 if rng.random() < 0.3 else None
    model = drawn_model(rng, n_rows).set_params(random_state=seed)
    expected = model.fit(X, y, weights)
    found = pickle.loads(pickle.dumps(model)).set_params(device="cuda", warm_start=False).fit(X, y, weights)
    assert found.fingerprint() == expected.fingerprint()
    assert found.trace_.lasting() == expected.trace_.lasting()
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_groups_and_copies_are_kept_together_there_too(device, iris):
    X, y = iris
    groups = np.arange(len(y)) // 3
    for model in (KFHEClassifier(n_estimators=4), RobustKFHEClassifier(n_estimators=4)):
        model.set_params(random_state=0)
        expected = model.fit(X, y, groups=groups).fingerprint()
        assert model.set_params(device="cuda").fit(X, y, groups=groups).fingerprint() == expected
    again = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]])
    model = RobustKFHEClassifier(n_estimators=4, random_state=0)
    expected = model.fit(*again).fingerprint()
    assert model.set_params(device="cuda").fit(*again).fingerprint() == expected


def test_a_warm_start_may_change_the_device(device, iris):
    expected = KFHEClassifier(n_estimators=6, random_state=0).fit(*iris).fingerprint()
    model = KFHEClassifier(n_estimators=2, random_state=0, warm_start=True).fit(*iris)
    for n_estimators, place in ((4, "cuda"), (5, "cuda"), (6, "cpu")):
        model.set_params(n_estimators=n_estimators, device=place).fit(*iris)
    assert model.fingerprint() == expected
    model = KFHEClassifier(n_estimators=4, random_state=0, warm_start=True, device="cuda").fit(*iris)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.set_params(n_estimators=6).fit(*iris).fingerprint() == expected


def test_a_saved_model_is_opened_where_there_is_no_gpu(device, iris, tmp_path):
    model = KFHEClassifier(n_estimators=3, random_state=0, device="cuda").fit(*iris)
    model.save(tmp_path / "model.kfhe")
    assert load(tmp_path / "model.kfhe").fingerprint() == model.fingerprint()


def test_a_failure_leaves_the_model_as_it_was(device, iris, monkeypatch):
    model = KFHEClassifier(n_estimators=3, random_state=0, device="cuda").fit(*iris)
    before = dict(vars(model))
    monkeypatch.setattr(device, "free_bytes", lambda: 0)
    with pytest.raises(MemoryError, match="to grow trees on 150 rows"):
        model.fit(*iris)
    assert vars(model) == before
    assert model.fingerprint() == KFHEClassifier(n_estimators=3, random_state=0).fit(*iris).fingerprint()


def test_a_device_is_one_of_two(iris):
    with pytest.raises(ValueError, match=r"'device' parameter of KFHEClassifier must be a str among"):
        KFHEClassifier(device="gpu").fit(*iris)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KFHEClassifier(LogisticRegression(), device="cuda"), "CARTClassifier, got LogisticRegression"),
        (
            KFHEClassifier(CARTClassifier(device="cuda")),
            "estimator has device='cuda': pass it to the ensemble",
        ),
    ],
)
def test_what_has_no_place_there_is_refused(model, message, iris, device):
    with pytest.raises(ValueError, match=message):
        model.fit(*iris)


def test_an_audit_of_given_votes_has_no_trees_to_grow(iris, device):
    X, y = iris
    with pytest.raises(ValueError, match="with estimator there are none"):
        label_quality(X, y, estimator=LogisticRegression(), device="cuda")
    with pytest.raises(ValueError, match="with pred_proba there are none"):
        label_quality(y=y, pred_proba=np.full((len(y), 3), 1 / 3), device="cuda")
