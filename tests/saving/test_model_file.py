"""Model files: the model that comes out is the one that went in, and a bad file is refused with a reason."""

import io
import json
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from copy import deepcopy
from functools import partial
from pathlib import Path

import fuzz_model_file
import numpy as np
import pandas as pd
import polars as pl
import pytest
from fuzz_model_file import content_of, outcome, put_together, sealed, taken_apart, tiny_models
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import save as save_arrays
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import kfhe
from kfhe import CARTClassifier, KFHEClassifier, ModelFileError, RobustKFHEClassifier, early_stopping
from kfhe.kalman import component_weights
from kfhe.saving.model_file import NO_CHECKSUM

quickly = settings(max_examples=60)
GOLDEN = Path(__file__).parents[1] / "golden" / "model_files"
SMALL = {"n_estimators": 4, "min_samples_leaf": 1, "min_samples_split": 2, "random_state": 0}


def loaded(content):
    return kfhe.load(io.BytesIO(content))


def assert_same(model, other, X):
    """Assert that nothing tells two models apart."""
    assert repr(other) == repr(model)
    assert type(other) is type(model)
    assert set(vars(other)) == set(vars(model)) - {"_run", "_run_settings"}
    assert other.fingerprint() == model.fingerprint()
    assert other.trace_ == model.trace_
    assert other.classes_.dtype == model.classes_.dtype
    for name in ("gains_", "measurement_errors_", "variances_", "component_weights_", "feature_importances_"):
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name))
    for tree, same in zip(model.estimators_, other.estimators_, strict=True):
        np.testing.assert_array_equal(same.gains, tree.gains)
        assert same.export_text() == tree.export_text()
        assert same.export_graphviz() == tree.export_graphviz()
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
    model = KFHEClassifier(voting=voting, max_bins=10, **SMALL).fit(X, y, sample_weight=rng.uniform(size=80))
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
    model = KFHEClassifier(**{**SMALL, **parameters}).fit(X, y, **validation)
    same = loaded(content_of(model))
    for name, value in model.get_params().items():
        assert type(getattr(same, name)) is type(value.item() if isinstance(value, np.generic) else value)
        np.testing.assert_equal(getattr(same, name), value)
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
        n_estimators=draw(st.integers(1, 8)),
        max_depth=draw(st.sampled_from([1, 3, None])),
        min_samples_leaf=1,
        min_samples_split=2,
        max_leaf_nodes=draw(st.sampled_from([None, 3])),
        max_bins=draw(st.sampled_from([2, 9, 255])),
        cp=draw(st.sampled_from([0.0, 0.1])),
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


@pytest.mark.parametrize("number", range(7))  # of format 1, 1, 1, 2, 2, 3, 4
def test_files_of_all_formats_are_read_for_good(number):
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


def test_files_that_hold_seconds_are_read_as_before():
    assert (kfhe.load(GOLDEN / "model_5.kfhe").trace_["seconds"] > 0).all()


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


OTHER_FILES = {
    "table": b"a,b,c\n1,2,3\n",
    "one byte": b"{",
    "zeros": bytes(1000),
    "zip": b"PK\x03\x04" + bytes(1000),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(1000),
    "pickle": pickle.dumps(list(range(1000))),
    "other safetensors": save_arrays({"weight": np.zeros(9)}),
    "other metadata": save_arrays({"weight": np.zeros(9)}, {"kfhe": "a model"}),
    "metadata of another form": save_arrays({"weight": np.zeros(9)}, {"kfhe": "[]"}),
    "huge header": (2**63).to_bytes(8, "little") + b"{}",
    "header that is no text": (8).to_bytes(8, "little") + b"\xff" * 8,
    "deep header": (60_000).to_bytes(8, "little") + b"[" * 60_000,
}


@pytest.mark.parametrize("content", OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_of_another_kind_is_refused(content, tmp_path):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(
        ModelFileError, match=r"other: this is no model file of kfhe, or a damaged one. model.save"
    ):
        kfhe.load(tmp_path / "other")


@pytest.fixture(scope="module")
def contents():
    return [content_of(model) for model in tiny_models()]


def test_a_description_that_says_a_thing_twice_is_refused(contents):
    description, arrays = taken_apart(contents[0])
    once = json.dumps({**description, "checksum": NO_CHECKSUM.decode()}, separators=(",", ":"))
    assert loaded(sealed(save_arrays(arrays, {"kfhe": once}))).n_iter_ > 0
    twice = once.replace('"soft":', '"soft":true,"soft":', 1)
    with pytest.raises(ModelFileError, match="no model file of kfhe, or a damaged one"):
        loaded(sealed(save_arrays(arrays, {"kfhe": twice})))


def test_an_empty_file_is_refused():
    with pytest.raises(ModelFileError, match=r"model file: the file is empty\. Save the model again"):
        loaded(b"")


def test_each_cut_off_file_is_refused(contents):
    for end in range(len(contents[0])):
        with pytest.raises(ModelFileError, match=r"damaged|empty"):
            loaded(contents[0][:end])
    with pytest.raises(ModelFileError, match=r"damaged: it is cut off\. Get another copy of it, or save"):
        loaded(contents[0][:1000])
    with pytest.raises(ModelFileError, match="damaged: its checksum is wrong"):
        loaded(contents[0][:-1])


def test_each_flipped_bit_is_noticed(contents):
    for place in range(len(contents[0])):
        changed = bytearray(contents[0])
        changed[place] ^= 1 << (place % 8)
        with pytest.raises(ModelFileError, match="damaged"):
            loaded(bytes(changed))


def test_a_file_of_a_later_format_asks_for_a_newer_version(contents):
    description, arrays = taken_apart(contents[0])
    with pytest.raises(
        ModelFileError, match=r"has format 5 and comes from kfhe 9\.0, .* pip install --upgrade"
    ):
        loaded(put_together({**description, "format": 5, "kfhe": "9.0"}, arrays))
    description["parameters"]["colour"] = "blue"
    with pytest.raises(ModelFileError, match=r"has the parameter 'colour' and .* pip install --upgrade"):
        loaded(put_together({**description, "kfhe": "9.0"}, arrays))


def test_what_is_merely_new_in_a_file_is_left_aside(contents):
    description, arrays = taken_apart(contents[0])
    later = put_together({**description, "colour": "blue"}, {**arrays, "colours": np.zeros(3)})
    assert loaded(later).fingerprint() == loaded(contents[0]).fingerprint()


def test_a_column_of_the_trace_from_the_future_is_left_aside(contents):
    description, arrays = taken_apart(contents[0])
    description["trace"].insert(2, "mood")
    arrays["trace"] = np.insert(arrays["trace"], 2, 0.125, axis=0)
    same = loaded(contents[0])
    later = loaded(put_together(description, arrays))
    assert later.trace_ == same.trace_
    assert later.fingerprint() == same.fingerprint()


def test_a_file_with_fewer_columns_of_the_trace_loads(contents):
    description, arrays = taken_apart(contents[0])
    place = description["trace"].index("component_error")
    del description["trace"][place]
    arrays["trace"] = np.delete(arrays["trace"], place, axis=0)
    model, same = loaded(put_together(description, arrays)), loaded(contents[0])
    assert model.fingerprint() == same.fingerprint()
    assert "component_error" not in model.trace_.columns
    np.testing.assert_array_equal(model.trace_["resets"], same.trace_["resets"])
    assert "component_error" not in model.trace_.to_frame()


def test_columns_of_the_trace_are_found_by_name(contents):
    description, arrays = taken_apart(contents[0])
    description["trace"].reverse()
    arrays["trace"] = arrays["trace"][::-1].copy()
    assert loaded(put_together(description, arrays)).trace_ == loaded(contents[0]).trace_


def test_the_components_weights_come_from_the_steps(contents):
    description, arrays = taken_apart(contents[0])
    arrays["trace"][description["trace"].index("step")] *= 0.5
    model = loaded(put_together(description, arrays))
    np.testing.assert_array_equal(model.component_weights_, component_weights(model.gains_ / 4))


def test_a_component_may_count_for_nothing_or_for_everything(contents):
    description, arrays = taken_apart(contents[1])
    for name in ("gain", "step"):
        arrays["trace"][description["trace"].index(name), :2] = 0, 1
    model = loaded(put_together(description, arrays))
    np.testing.assert_array_equal(model.gains_[:2], [0, 1])
    np.testing.assert_array_equal(model.component_weights_ > 0, [False, False, True, True])


class Own(KFHEClassifier):
    """A class of somebody's own."""


def test_a_subclass_is_not_saved_as_another_class(iris):
    model = Own(n_estimators=2, random_state=0).fit(*iris)
    with pytest.raises(
        ValueError, match=r"Own can't be saved: .* would come back as KFHEClassifier; use skops"
    ):
        model.save(io.BytesIO())


def test_a_class_that_is_not_known_asks_for_a_newer_version(contents):
    description, arrays = taken_apart(contents[0])
    assert description["class"] == "KFHEClassifier"
    with pytest.raises(ModelFileError, match=r"a model of the class 'Dreaming' and .* pip install --upgrade"):
        loaded(put_together({**description, "class": "Dreaming"}, arrays))


def test_a_tree_that_is_the_estimator_comes_back(iris):
    X, y = iris
    tree = CARTClassifier(max_depth=4, max_features=0.5, categorical_features=[0])
    model = KFHEClassifier(tree, n_estimators=3, random_state=0).fit(X, y)
    again = loaded(content_of(model))
    assert again.get_params().keys() == model.get_params().keys()
    assert again.estimator.get_params() == tree.get_params()
    assert again.fingerprint() == model.fingerprint() == again.fit(X, y).fingerprint()


@pytest.mark.parametrize(
    "scores", [np.zeros(4, dtype=np.float32), np.zeros(4, dtype=np.int64), np.zeros((2, 2))], ids=str
)
def test_validation_scores_are_checked(contents, scores):
    description, arrays = taken_apart(contents[0])
    arrays["validation_scores"] = scores
    with pytest.raises(ModelFileError, match=r"the file is damaged: .*wrong with its validation scores"):
        loaded(put_together(description, arrays))


@pytest.mark.parametrize(
    ("name", "value"),
    [("estimator", [0]), ("process_noise", 10**400), ("max_depth", 2**63), ("max_leaf_nodes", 2**64)],
)
def test_a_parameter_of_another_kind_or_too_large_is_damage(contents, name, value):
    description, arrays = taken_apart(contents[0])
    description["parameters"][name] = value
    with pytest.raises(ModelFileError, match="the file is damaged"):
        loaded(put_together(description, arrays))


def test_a_parameter_that_a_file_lacks_has_its_default(contents):
    description, arrays = taken_apart(contents[0])
    del description["parameters"]["voting"]
    assert loaded(put_together(description, arrays)).voting == "hard"


def test_a_long_reason_is_cut_short(contents):
    description, arrays = taken_apart(contents[0])
    description["parameters"]["voting"] = "x" * 10_000
    with pytest.raises(ModelFileError, match=r"The 'voting' parameter .* Get another copy") as error:
        loaded(put_together(description, arrays))
    assert len(str(error.value)) < 500


def with_value(value, place=0):
    def change(array):
        array.reshape(-1)[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("is_split", lambda a: a * 0, "its nodes don't make up whole trees"),
        ("is_split", lambda a: a[::-1], "its nodes don't make up whole trees"),
        ("is_split", lambda a: a[:-1], "array 'is_split' is too short or too long"),
        ("feature", with_value(3), "a split is on a feature that there is not"),
        ("feature", lambda a: a[:-1], "there is not one gain for each split"),
        ("feature", lambda a: a.astype("i4"), "array 'feature' is of type int32 with 1 dim"),
        ("gain", with_value(np.nan), "a split's gain is more than a tree can have"),
        ("gain", with_value(1e308), "a split's gain is more than a tree can have"),
        ("gain", with_value(-1e308), "a split's gain is more than a tree can have"),
        ("missing_left", lambda a: a[1:], "array 'missing_left' is too short or too long"),
        ("threshold", with_value(255), "a split has a threshold that there is not"),
        ("threshold", lambda a: a[1:], "there is not one threshold for each numeric split"),
        ("cut", lambda a: a[1:], "there is not one threshold for each numeric split"),
        ("thresholds", with_value(np.nan), "a threshold is not a number"),
        ("thresholds", with_value(-np.inf), "a threshold is not a number"),
        ("thresholds", lambda a: a.reshape(1, -1), "array 'thresholds' .* with 2 dimensions"),
        ("category_sets", lambda a: a[1:], "there is not one set for each categorical split"),
        ("leaf_weights", lambda a: a[:, :2], "its leaves are for another number of classes"),
        ("leaf_weights", lambda a: a * 0, "a leaf has no weight"),
        (
            "leaf_weights",
            lambda a: with_value(2**31)(a.astype("u4")),
            "a tree weighs too much",
        ),
        ("trace", with_value(np.inf), "there is something wrong with its trace"),
        ("trace", with_value(1.01, place=3 * 3), "there is something wrong with its trace"),
        ("trace", with_value(-0.01, place=3 * 3), "there is something wrong with its trace"),
        ("trace", lambda a: a[:, 1:], "its trace is of another number of components"),
    ],
)
def test_arrays_are_checked(contents, name, change, message):
    description, arrays = taken_apart(contents[1])
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    with pytest.raises(ModelFileError, match=f"the file is damaged: {message}.*Get another copy"):
        loaded(put_together(description, arrays))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("classes", None, "classes"),
        ("classes.values", [], "wrong with its classes"),
        ("classes.values", ["x", "x", "y"], "classes"),
        ("classes.values", ["y", "x", "z"], "classes"),
        ("classes.values", [1, 2, 3], "classes"),
        ("classes.values", ["x", "y", None], "classes"),
        ("classes.dtype", "<U1000000000", "classes"),
        ("classes.dtype", [], "classes"),
        ("classes", {"dtype": "uint8", "values": [0, 1, 300]}, "classes"),
        ("classes", {"dtype": "float32", "values": [0.0, 0.1, 0.2]}, "classes"),
        ("classes", {"dtype": "object", "values": [1, 2, "x"]}, "classes"),
        ("columns.names", ["a", "b", 3], "columns"),
        ("columns.names", [], "columns"),
        ("columns.categories", [None], "columns"),
        ("columns.categories.2", [], "categories"),
        ("columns.categories.2.values", ["red", "red", "blue"], "categories"),
        ("columns.categories.2.values", ["red", [], "blue"], "categories"),
        ("columns.categories.2.values", ["red", 2**64, "blue"], "categories"),
        ("columns.categories.2.bins", [0, 1, 255], "categories"),
        ("columns.categories.2.bins", [0, 1, True], "categories"),
        ("columns.categories.2.bins", [0], "categories"),
        ("columns.rules", 7, "rules of columns"),
        ("columns.rules", [[0, "star-date"]], "rules of columns"),
        ("columns.rules", [[0, "date", "century"]], "rules of columns"),
        ("columns.rules", [[0, "date", "hour", "month"]], "rules of columns"),
        ("columns.rules", [[0, "date"], [0, "date"]], "rules of columns"),
        ("columns.rules", [[0, "boolean", "month"]], "rules of columns"),
        ("columns.rules", [[2, "date"]], "rules of columns"),  # it has categories
        ("columns.rules", [[3, "date"]], "rules of columns"),
        ("columns.rules", [[True, "date"]], "rules of columns"),
        ("soft", 1, "voting"),
        ("trace", ["gain"], "trace"),
        ("trace", 7, "trace"),
        ("trace.4", "gain", "trace"),
        ("trace.3", "loss", "trace"),
        ("class", ["KFHEClassifier"], "class"),
        ("parameters.estimator", {"tree": {"colour": 1}}, "parameters"),
        ("parameters.estimator", {"tree": {"max_depth": -1}}, "'max_depth' parameter of CARTClassifier"),
        ("parameters", [], "parameters"),
        ("parameters.cp", {"float": "1"}, "parameters"),
        ("parameters.cp", {"import": "os"}, "parameters"),
        ("parameters.class_weight", {"pairs": [["x"]]}, "parameters"),
        ("parameters.class_weight", {"pairs": [[[], 1]]}, "parameters"),
        ("parameters.class_weight", [[[[[[1]]]]]], "parameters"),
        ("parameters.categorical_features", {"array": 1}, "parameters"),
        ("rules.noise_undone", 0.54, "rules"),  # of three classes: beyond what leaves anything to know
        ("rules.noise_undone", -0.1, "rules"),
        ("rules.prior_power", "1", "rules"),
        ("rules.shrinkage", 1e6, "rules"),
        ("parameters.voting", "loud", "'voting' parameter"),
        ("parameters.n_estimators", 0, "'n_estimators' parameter"),
        ("parameters.n_jobs", 0, "'n_jobs' parameter"),
        ("parameters.process_noise", [], "process_noise must be a number"),
        ("parameters.process_noise", [-1.0], "process_noise"),
        ("parameters.transition", 0.5, "transition=0.5 needs a process_noise"),
        ("parameters.estimator", [], "estimator is an empty list"),
        ("parameters.shrinkage", 1e7, "'shrinkage' parameter"),
        ("parameters.estimator", {"absent": "evil"}, "'estimator' parameter"),
        ("parameters.early_stopping", {"early_stopping": [0, "accuracy"]}, "rounds of at least 1"),
        ("parameters.early_stopping", {"early_stopping": [3, "accuracy", 7]}, "validation_fraction must be"),
        ("parameters.early_stopping", {"early_stopping": [3, "accuracy", 0.5, 0]}, "parameters"),
    ],
)
def test_the_description_is_checked(contents, path, value, message):
    description, arrays = taken_apart(contents[1])
    *parents, last = (int(name) if name.isdigit() else name for name in path.split("."))
    place = description
    for name in parents:
        place = place[name]
    place[last] = value
    with pytest.raises(ModelFileError, match=f"the file is damaged: .*{message}.*Get another copy"):
        loaded(put_together(description, arrays))


@pytest.mark.parametrize("part", ["class", "classes", "columns", "named", "parameters", "soft", "trace"])
def test_what_a_description_lacks_is_named(contents, part):
    description, arrays = taken_apart(contents[0])
    del description[part]
    with pytest.raises(ModelFileError, match=f"the file is damaged: it lacks '{part}'"):
        loaded(put_together(description, arrays))


@pytest.mark.parametrize("name", ["is_split", "leaf_weights", "trace"])
def test_what_arrays_lack_is_named(contents, name):
    description, arrays = taken_apart(contents[0])
    del arrays[name]
    with pytest.raises(ModelFileError, match=f"the file is damaged: it lacks .*'{name}'"):
        loaded(put_together(description, arrays))


edits = st.lists(
    st.tuples(st.integers(0, 10_000), st.binary(max_size=8), st.integers(0, 8)), min_size=1, max_size=4
)


@quickly
@given(st.integers(0, 2), edits, st.booleans(), st.randoms(use_true_random=False))
def test_changed_bytes_do_no_harm(contents, number, changes, seal, rng):
    content = contents[number]
    for place, new, removed in changes:
        place %= len(content)
        content = content[:place] + new + content[place + removed :]
    assume(content != contents[number])
    assert outcome(sealed(content) if seal else content, rng) in {"refused", "loaded"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@quickly
@given(st.data())
def test_changed_descriptions_do_no_harm(contents, data):
    description, arrays = taken_apart(contents[data.draw(st.integers(0, 2))])
    place = description
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans())):
            break
        place = place[key]
    place[key] = data.draw(json_values | st.just(deepcopy(description)))
    assert outcome(put_together(description, arrays), data.draw(st.randoms(use_true_random=False))) in {
        "refused",
        "loaded",
    }


@quickly
@given(st.data())
def test_changed_arrays_do_no_harm(contents, data):
    description, arrays = taken_apart(contents[data.draw(st.integers(0, 2))])
    name = data.draw(st.sampled_from(sorted(arrays)))
    shape = data.draw(st.just(arrays[name].shape) | arrays_of.array_shapes(min_dims=0, max_side=40))
    dtype = data.draw(st.just(arrays[name].dtype) | st.sampled_from(["u1", "u2", "u4", "f8", "i8"]))
    arrays[name] = data.draw(arrays_of.arrays(dtype, shape))
    assert outcome(put_together(description, arrays), data.draw(st.randoms(use_true_random=False))) in {
        "refused",
        "loaded",
    }


@pytest.mark.posix
def test_the_fuzzer_finds_nothing(capsys):
    fuzz_model_file.main(300, seed=1)
    assert "300 files: no crash, no hang" in capsys.readouterr().out


def test_loading_takes_memory_in_proportion_to_the_file():
    X, y = load_digits(return_X_y=True)
    content = content_of(KFHEClassifier(random_state=0).fit(X, y))
    loaded(content)
    tracemalloc.start()
    try:
        loaded(content)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(content)
    finally:
        tracemalloc.stop()
