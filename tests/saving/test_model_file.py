"""Model files: the model that comes out is the one that went in."""

import io
import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from components import as_parameters
from fuzz_model_file import content_of, loaded
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import kfhe
from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier, early_stopping

quickly = settings(max_examples=60)
GOLDEN = Path(__file__).parents[1] / "golden" / "model_files"
PURE = {"min_samples_leaf": 1, "min_samples_split": 2}
SMALL = {"estimator": CARTClassifier(**PURE), "n_estimators": 4, "random_state": 0}


def assert_same(model, other, X):
    """Assert that nothing tells two models apart."""
    assert repr(other) == repr(model)
    assert type(other) is type(model)
    assert set(vars(other)) == set(vars(model)) - {"_run", "_run_settings"}
    assert other.fingerprint() == model.fingerprint()
    assert other.trace_ == model.trace_
    assert other.classes_.dtype == model.classes_.dtype
    for name in ("component_weights_", "feature_importances_"):
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name))
    for tree, same in zip(model.estimators_, other.estimators_, strict=True):
        np.testing.assert_array_equal(same.gains, tree.gains)
        assert same.export_text() == tree.export_text()
    assert other.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert content_of(other) == content_of(model)


def mixed_table(rng, n):
    """Return a table with numbers, gaps, strings and codes."""
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "rounded": rng.normal(size=n).round(),
            "text": rng.choice(np.array([None, "a", "b", "ü", 'quo"te'], dtype=object), size=n),
            "many": rng.integers(40, size=n).astype(str),
            "category": pd.Categorical(rng.choice([1, 2, 30], size=n)),
        }
    )
    X.loc[rng.uniform(size=n) < 0.2, "number"] = np.nan
    return X


LABELS = {
    "numbers": np.array([0, 1, 2]),
    "short numbers": np.array([0, 1, 200], dtype=np.uint8),
    "floats": np.array([-1.0, 0.0, 1e15]),
    "words": np.array(["a", "bb", "ü"]),
    "objects": np.array(["a", "bb", "\ud800"], dtype=object),
    "numbers as objects": np.array([1, 2, 2**63], dtype=object),
    "booleans": np.array([False, True, True]),
    "one class": np.array([7, 7, 7]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_the_loaded_model_is_the_saved_one(labels, voting, rng):
    X = mixed_table(rng, 80)
    y = labels[rng.integers(3, size=80)]
    model = (
        KFHEClassifier(**SMALL, voting=voting)
        .set_params(estimator__max_bins=10)
        .fit(X, y, sample_weight=rng.uniform(size=80))
    )
    assert_same(model, loaded(content_of(model)), X)


@pytest.mark.parametrize(
    "table", [np.asarray, pd.DataFrame, pl.from_pandas], ids=["array", "pandas", "polars"]
)
def test_names_of_columns_are_kept_where_there_are_any(table, rng):
    X, y = mixed_table(rng, 60).drop(columns="category"), rng.integers(2, size=60)
    X = table(X)
    model = KFHEClassifier(**SMALL).fit(X, y)
    same = loaded(content_of(model))
    assert_same(model, same, X)
    assert same.n_features_in_ == 4
    if table is not np.asarray:
        assert same.feature_names_in_.tolist() == ["number", "rounded", "text", "many"]
        with pytest.raises(ValueError, match="feature names should match"):
            same.predict(X[["text", "number", "rounded", "many"]])


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_features": "sqrt", "max_depth": None, "n_jobs": 2, "verbose": 0, "warm_start": True},
        {"max_features": 0.5, "cp": 0.01, "max_leaf_nodes": 5, "class_weight": "balanced"},
        {
            "max_features": np.int64(2),
            "class_weight": {0: 1.0, np.int64(2): 2.5},
            "random_state": np.int64(3),
        },
        {"categorical_features": [1, 2]},
        {"categorical_features": np.array([False, True, True, False]), "early_stopping": 2},
        {"categorical_features": None, "early_stopping": kfhe.EarlyStopping(3, scoring="accuracy")},
        {"early_stopping": kfhe.EarlyStopping(3, validation_fraction=0.25)},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
def test_parameters_are_kept(iris, parameters):
    X, y = iris
    stopping = early_stopping.resolve(parameters.get("early_stopping"))
    is_given = stopping is not None and stopping.validation_fraction is None
    validation = {"X_val": X[::2], "y_val": y[::2]} if is_given else {}
    model = KFHEClassifier(**{**SMALL, **as_parameters(PURE | parameters)}).fit(X, y, **validation)
    same = loaded(content_of(model))
    found = same.get_params()
    for name, value in model.get_params().items():
        assert type(found[name]) is type(value.item() if isinstance(value, np.generic) else value)
        if name != "estimator":  # its own parameters are compared
            np.testing.assert_equal(found[name], value)
    if validation:
        np.testing.assert_array_equal(same.validation_scores_, model.validation_scores_)


@st.composite
def models(draw):
    """A fitted model and its table."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    X = mixed_table(rng, n)[
        draw(st.lists(st.sampled_from(["number", "rounded", "text", "many"]), min_size=1))
    ]
    y = rng.integers(draw(st.integers(1, 4)), size=n)
    model = KFHEClassifier(
        CARTClassifier(
            max_depth=draw(st.sampled_from([1, 3, None])),
            min_samples_leaf=1,
            min_samples_split=2,
            max_leaf_nodes=draw(st.sampled_from([None, 3])),
            max_bins=draw(st.sampled_from([2, 9, 255])),
            cp=draw(st.sampled_from([0.0, 0.1])),
        ),
        n_estimators=draw(st.integers(1, 8)),
    )
    return model.fit(X.to_numpy(), y), X.to_numpy()


@quickly
@given(models())
def test_any_model_comes_back(fitted):
    model, X = fitted
    assert_same(model, loaded(content_of(model)), X)


def test_another_process_predicts_the_same_bits(tmp_path, rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(3, size=200)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    model = KFHEClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "model.kfhe")
    np.save(tmp_path / "X.npy", X)
    script = (
        "import kfhe, numpy\n"
        "print(kfhe.load('model.kfhe').predict_proba(numpy.load('X.npy')).tobytes().hex(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == model.predict_proba(X).tobytes().hex()


@pytest.mark.parametrize("number", range(8))
def test_recorded_files_are_read_for_good(number):
    expected = json.loads((GOLDEN / "expected.json").read_text())[number]
    model = kfhe.load(GOLDEN / f"model_{number}.kfhe")
    table = np.array(expected["table"], dtype=object)
    np.testing.assert_allclose(model.predict_proba(table), expected["scores"], rtol=0, atol=1e-15)
    assert model.predict(table).tolist() == expected["predicted"]


@pytest.mark.parametrize("kind", [KFHEClassifier, RobustKFHEClassifier])
def test_the_same_seed_gives_the_same_file(iris, kind):
    one, two = (kind(n_estimators=5, random_state=0).fit(*iris) for _ in range(2))
    assert one.trace_["seconds"].tolist() != two.trace_["seconds"].tolist()
    assert content_of(one) == content_of(two)
    assert "seconds" not in loaded(content_of(one)).trace_.columns


def test_a_loaded_model_can_be_cloned_and_fitted_again(iris):
    X, y = iris
    model = KFHEClassifier(**SMALL).fit(X, y)
    same = loaded(content_of(model))
    assert clone(same).fit(X, y).fingerprint() == model.fingerprint()
    assert same.fit(X, y).fingerprint() == model.fingerprint()


def test_after_loading_fit_starts_anew(iris):
    model = KFHEClassifier(warm_start=True, **SMALL).fit(*iris)
    same = loaded(content_of(model)).set_params(n_estimators=6).fit(*iris)
    assert same.fingerprint() == model.set_params(n_estimators=6).fit(*iris).fingerprint()


@pytest.mark.parametrize("random_state", [np.random.default_rng(0), np.random.RandomState(0), None])
def test_a_random_state_that_is_no_number_becomes_none(iris, random_state):
    model = KFHEClassifier(n_estimators=2, random_state=random_state).fit(*iris)
    assert loaded(content_of(model)).random_state is None


def halved(weights, missed):
    return np.where(missed, weights, weights / 2)


@pytest.mark.parametrize(("function", "name"), [(halved, "halved"), (partial(halved), "partial")])
def test_an_emphasis_of_ones_own_is_remembered_by_name(iris, function, name):
    X, y = iris
    model = KFHEClassifier(emphasis=function, **SMALL).fit(X, y)
    for same in (loaded(content_of(model)), loaded(content_of(loaded(content_of(model))))):
        assert same.fingerprint() == model.fingerprint()
        assert f"emphasis=<{name}, not in the model file>" in repr(same)
        with pytest.raises(RuntimeError, match=f"the function {name} is not in the file .* set_params"):
            clone(same).fit(X, y)
        assert same.set_params(emphasis=halved).fit(X, y).fingerprint() == model.fingerprint()


def test_only_models_of_native_trees_can_be_saved(iris, tmp_path):
    model = KFHEClassifier(GaussianNB(), n_estimators=2).fit(*iris)
    with pytest.raises(
        ValueError, match=r"only models of native trees .* type GaussianNB; use skops\.io\.dump"
    ):
        model.save(tmp_path / "model.kfhe")
    with pytest.raises(NotFittedError):
        KFHEClassifier().save(tmp_path / "model.kfhe")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (
            pd.DataFrame({"age": pd.cut(np.arange(9), 3)}),
            [0] * 9,
            r"categories of column 'age' of type Interval",
        ),
        (np.zeros((2, 1)), np.array([b"a", b"b"], dtype=object), "classes of type bytes"),
        (np.zeros((2, 1)), np.array([1, 2**64], dtype=object), "classes of type int"),
        (np.zeros((2, 1)), np.array([0, 1], dtype=np.longdouble), "classes of type longdouble"),
    ],
)
def test_labels_and_categories_other_than_words_and_numbers_are_refused(X, y, message):
    model = KFHEClassifier(n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match=f"{message} can't be saved; accepted are .* skops"):
        content_of(model)


def test_a_header_that_could_not_be_read_is_not_written(iris, monkeypatch):
    monkeypatch.setattr("kfhe.saving.model_file.LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="categories are too many for a file"):
        content_of(KFHEClassifier(**SMALL).fit(*iris))


def test_strings_that_are_no_text_are_kept():
    X = np.array([["\ud800"], ["\x00"], ["a"]] * 9, dtype=object)
    model = KFHEClassifier(**SMALL).fit(X, X[:, 0])
    assert_same(model, loaded(content_of(model)), X)


def test_paths_and_files_are_taken(iris, tmp_path):
    model = KFHEClassifier(**SMALL).fit(*iris)
    model.save(tmp_path / "path")
    model.save(str(tmp_path / "text"))
    with open(tmp_path / "file", "wb") as file:
        model.save(file)
    assert len({(tmp_path / name).read_bytes() for name in ("path", "text", "file")}) == 1
    assert kfhe.load(str(tmp_path / "path")).fingerprint() == model.fingerprint()
    assert kfhe.load(tmp_path / "path").fingerprint() == model.fingerprint()


def test_a_model_goes_through_a_pipe(iris):
    model = KFHEClassifier(**SMALL).fit(*iris)
    end, start = os.pipe()

    def write_slowly():
        with open(start, "wb", buffering=0) as file:
            for byte in content_of(model):
                file.write(bytes([byte]))

    writer = threading.Thread(target=write_slowly)
    writer.start()
    with open(end, "rb", buffering=0) as file:
        assert kfhe.load(file).fingerprint() == model.fingerprint()
    writer.join()


def test_a_full_disk_leaves_the_old_file(iris, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    (tmp_path / "model.kfhe").write_bytes(b"old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"model\.kfhe: can't be written: No space left on device"):
        KFHEClassifier(**SMALL).fit(*iris).save(tmp_path / "model.kfhe")
    assert (tmp_path / "model.kfhe").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.kfhe"]


def test_there_must_be_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*absent\.kfhe'"):
        kfhe.load(tmp_path / "absent.kfhe")
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        kfhe.load(tmp_path)


@pytest.mark.parametrize("file", [3, None, b"model.kfhe", io.StringIO("model")])
def test_what_is_neither_path_nor_binary_file_is_refused(iris, file):
    model = KFHEClassifier(**SMALL).fit(*iris)
    for take in (kfhe.load, model.save):
        with pytest.raises(TypeError, match="a model file is a path, or a file opened in binary mode; got "):
            take(file)
