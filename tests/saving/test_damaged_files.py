"""Model files that are damaged, forged, of another kind or of a later version: refused with a reason."""

import io
import json
import pickle
import tracemalloc
from copy import deepcopy

import fuzz_model_file
import numpy as np
import pytest
from fuzz_model_file import content_of, loaded, outcome, put_together, sealed, taken_apart, tiny_models
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import save as save_arrays
from sklearn.datasets import load_digits

import kfhe
from kfhe import CARTClassifier, KFHEClassifier, ModelFileError
from kfhe.kalman import component_weights
from kfhe.saving.model_file import NO_CHECKSUM

quickly = settings(max_examples=60)


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
        ModelFileError, match=r"other: this is not a model file of kfhe, or it is damaged; model.save"
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
    with pytest.raises(ModelFileError, match="not a model file of kfhe, or it is damaged"):
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


def test_a_file_of_another_format_says_which_kfhe_reads_it(contents):
    description, arrays = taken_apart(contents[0])
    with pytest.raises(ModelFileError, match=r"has format 2, of kfhe 9\.0; .* reads format 1\."):
        loaded(put_together({**description, "format": 2, "kfhe": "9.0"}, arrays))


def test_what_no_model_of_this_version_has_is_refused(contents):
    description, arrays = taken_apart(contents[0])
    description["parameters"]["colour"] = "blue"
    with pytest.raises(ModelFileError, match=r"damaged: there is something wrong with its parameters"):
        loaded(put_together(description, arrays))
    description, arrays = taken_apart(contents[0])
    description["trace"].insert(2, "mood")
    arrays["trace"] = np.insert(arrays["trace"], 2, 0.125, axis=0)
    with pytest.raises(ModelFileError, match=r"damaged: there is something wrong with its trace"):
        loaded(put_together(description, arrays))


@pytest.mark.parametrize("column", ["step", "transition", "resets"])
def test_a_file_with_fewer_columns_of_the_trace_is_refused(contents, column):
    description, arrays = taken_apart(contents[0])
    place = description["trace"].index(column)
    del description["trace"][place]
    arrays["trace"] = np.delete(arrays["trace"], place, axis=0)
    with pytest.raises(ModelFileError, match="there is something wrong with its trace"):
        loaded(put_together(description, arrays))


def test_the_components_weights_come_from_the_steps(contents):
    description, arrays = taken_apart(contents[0])
    arrays["trace"][description["trace"].index("step")] *= 0.5
    model = loaded(put_together(description, arrays))
    np.testing.assert_array_equal(model.component_weights_, component_weights(model.trace_["gain"] / 4))


def test_a_component_may_count_for_nothing_or_for_everything(contents):
    description, arrays = taken_apart(contents[1])
    for name in ("gain", "step"):
        arrays["trace"][description["trace"].index(name), :2] = 0, 1
    model = loaded(put_together(description, arrays))
    np.testing.assert_array_equal(model.trace_["gain"][:2], [0, 1])
    np.testing.assert_array_equal(model.component_weights_ > 0, [False, False, True, True])


class Own(KFHEClassifier):
    """A class of somebody's own."""


def test_a_subclass_is_not_saved_as_another_class(iris):
    model = Own(n_estimators=2, random_state=0).fit(*iris)
    with pytest.raises(
        ValueError, match=r"Own can't be saved: .* would be loaded as KFHEClassifier; use skops"
    ):
        model.save(io.BytesIO())


def test_a_class_that_is_not_known_is_refused(contents):
    description, arrays = taken_apart(contents[0])
    assert description["class"] == "KFHEClassifier"
    with pytest.raises(ModelFileError, match=r"damaged: there is something wrong with its class"):
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
    [
        ("estimator", [0]),
        ("state_space", {"state_space": {"process_noise": 10**400}}),
        ("estimator", {"tree": {"max_depth": 2**63}}),
        ("estimator", {"tree": {"max_leaf_nodes": 2**64}}),
    ],
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
        ("feature", with_value(3), "a split uses an unknown feature"),
        ("feature", lambda a: a[:-1], "the numbers of splits and gains differ"),
        ("feature", lambda a: a.astype("i4"), "array 'feature' is of type int32 with 1 dim"),
        ("gain", with_value(np.nan), "a split's gain is more than a tree can have"),
        ("gain", with_value(1e308), "a split's gain is more than a tree can have"),
        ("gain", with_value(-1e308), "a split's gain is more than a tree can have"),
        ("missing_left", lambda a: a[1:], "array 'missing_left' is too short or too long"),
        ("threshold", with_value(255), "a split uses an unknown threshold"),
        ("threshold", lambda a: a[1:], "the numbers of numeric splits and thresholds differ"),
        ("cut", lambda a: a[1:], "the numbers of numeric splits and thresholds differ"),
        ("thresholds", with_value(np.nan), "a threshold is not a number"),
        ("thresholds", with_value(-np.inf), "a threshold is not a number"),
        ("thresholds", lambda a: a.reshape(1, -1), "array 'thresholds' .* with 2 dimensions"),
        ("category_sets", lambda a: a[1:], "the numbers of categorical splits and sets differ"),
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
        ("columns.categories.2", [], "columns"),
        ("columns.categories.2.values", ["red", "red", "blue"], "columns"),
        ("columns.categories.2.values", ["red", [], "blue"], "columns"),
        ("columns.categories.2.values", ["red", 2**64, "blue"], "columns"),
        ("columns.categories.2.bins", [0, 1, 255], "columns"),
        ("columns.categories.2.bins", [0, 1, True], "columns"),
        ("columns.categories.2.bins", [0], "columns"),
        ("columns.rules", 7, "columns"),
        ("columns.rules", [[0, "star-date"]], "columns"),
        ("columns.rules", [[0, "date", "century"]], "columns"),
        ("columns.rules", [[0, "date", "hour", "month"]], "columns"),
        ("columns.rules", [[0, "date"], [0, "date"]], "columns"),
        ("columns.rules", [[0, "boolean", "month"]], "columns"),
        ("columns.rules", [[2, "date"]], "columns"),  # it has categories
        ("columns.rules", [[3, "date"]], "columns"),
        ("columns.rules", [[True, "date"]], "columns"),
        ("soft", 1, "voting"),
        ("trace", ["gain"], "trace"),
        ("trace", 7, "trace"),
        ("trace.4", "gain", "trace"),
        ("trace.3", "loss", "trace"),
        ("class", ["KFHEClassifier"], "class"),
        ("parameters.estimator", {"tree": {"colour": 1}}, "parameters"),
        ("parameters.state_space", {"state_space": {"colour": 1}}, "parameters"),
        ("parameters.estimator", {"tree": {"max_depth": -1}}, "'max_depth' parameter of CARTClassifier"),
        ("parameters", [], "parameters"),
        ("parameters.estimator.tree.cp", {"float": "1"}, "parameters"),
        ("parameters.estimator.tree.cp", {"import": "os"}, "parameters"),
        ("parameters.class_weight", {"pairs": [["x"]]}, "parameters"),
        ("parameters.class_weight", {"pairs": [[[], 1]]}, "parameters"),
        ("parameters.class_weight", [[[[[[1]]]]]], "parameters"),
        ("parameters.estimator.tree.categorical_features", {"array": 1}, "parameters"),
        ("rules.sharpness", 0.25, "rules"),
        ("rules.sharpness", 8.125, "rules"),
        ("rules.sharpness", 1.3, "rules"),  # no eighths
        ("rules.prior_power", 1.5, "rules"),
        ("rules.class_shares", [0.0, 0.0, 0.0], "rules"),
        ("rules.class_shares", [0.5, 0.5], "rules"),  # of three classes
        ("rules.class_shares", [0.5, 0.4, 2.0], "rules"),
        ("rules.class_shares", [0.5, 0.4, "1"], "rules"),
        ("rules.class_shares", 1.0, "rules"),
        ("rules.prior_power", "1", "rules"),
        ("rules.shrinkage", 1e6, "rules"),
        ("parameters.voting", "loud", "'voting' parameter"),
        ("parameters.n_estimators", 0, "'n_estimators' parameter"),
        ("parameters.n_jobs", 0, "'n_jobs' parameter"),
        ("parameters.state_space", {"state_space": {"process_noise": []}}, "process_noise must be a number"),
        ("parameters.state_space", {"state_space": {"process_noise": [-1.0]}}, "process_noise"),
        (
            "parameters.state_space",
            {"state_space": {"transition": 0.5}},
            "transition=0.5 needs a process_noise",
        ),
        ("parameters.estimator", [], "estimator is an empty list"),
        ("parameters.estimator.tree.shrinkage", 1e7, "'shrinkage' parameter"),
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


@pytest.mark.parametrize(
    "part", ["class", "classes", "columns", "found", "named", "parameters", "rules", "soft", "trace"]
)
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
