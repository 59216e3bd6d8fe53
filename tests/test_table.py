"""Tables: whatever holds the same content gives the same model; what can't be read is refused by name."""

import datetime
import io
import itertools
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from components import as_parameters

import kfhe
from kfhe import CARTClassifier, KFHEClassifier
from kfhe.tables.binned import BinnedTable

N = 120


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def fingerprint(X, y, **settings):
    return KFHEClassifier(n_estimators=3, random_state=0, **as_parameters(settings)).fit(X, y).fingerprint()


# ---------------------------------------------------------------- the same content


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "i8", "u1", "u8", "f2", "O"])
def test_numbers_of_any_type_read_alike(rng, dtype):
    X = rng.integers(0, 40, size=(N, 11))
    y = (X[:, 0] + X[:, 1] > 40).astype(int)
    assert fingerprint(X.astype(dtype), y) == fingerprint(X, y)


@pytest.mark.parametrize("dtype", ["bool", "O", "f4"])
def test_booleans_read_as_numbers(rng, dtype):
    X = rng.random((N, 3)) < 0.5
    assert fingerprint(X.astype(dtype), X[:, 0] ^ X[:, 1]) == fingerprint(X.astype(int), X[:, 0] ^ X[:, 1])


@pytest.mark.parametrize("n_columns", [3, 20])
def test_the_layout_of_an_array_does_not_matter(rng, n_columns):
    X = rng.normal(size=(N, n_columns)).astype(np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int)
    wide = np.zeros((2 * N, 3 * n_columns), dtype=np.float32)
    wide[::2, ::3] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    swapped = X.astype(X.dtype.newbyteorder())
    expected = fingerprint(X, y)
    layouts = (np.asfortranarray(X), wide[::2, ::3], X[::-1, ::-1][::-1, ::-1], read_only, swapped)
    for other in (*layouts, X.tolist()):
        assert fingerprint(other, y) == expected
    model = KFHEClassifier(n_estimators=3, random_state=0).fit(X, y)
    for other in layouts:
        np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(X))


def content(rng):
    numbers = rng.integers(0, 9, size=N).tolist()
    flags = (rng.random(N) < 0.5).tolist()
    words = rng.choice(["red", "green", "blue", "zinc", "Äther"], size=N).tolist()
    for column in (numbers, flags, words):
        for i in rng.choice(N, size=15, replace=False):
            column[i] = None
    y = [(number or 0) > 4 or word in ("red", "zinc") for number, word in zip(numbers, words, strict=True)]
    return {"number": numbers, "flag": flags, "word": words}, np.array(y)


def containers(columns):
    """One table in many containers."""
    words = columns["word"]
    numbers = [np.nan if x is None else float(x) for x in columns["number"]]
    flags = [np.nan if x is None else float(x) for x in columns["flag"]]
    present = sorted({word for word in words if word is not None})
    plain = pd.DataFrame({"number": numbers, "flag": flags})
    yield "object array", np.array([numbers, flags, words], dtype=object).T
    yield "object array with None", np.array(list(columns.values()), dtype=object).T
    gaps = [[pd.NA if x is None else x for x in column] for column in columns.values()]
    yield "object array with NA", np.array(gaps, dtype=object).T
    # NumPy would make text of all of it
    yield "lists, no array", list(zip(numbers, flags, [word or np.nan for word in words], strict=True))
    for number, flag, word in itertools.product(
        ["Int64", "float32", "int64[pyarrow]", "object"],
        ["boolean", "bool[pyarrow]", "object"],
        ["object", "string", "string[pyarrow]", "category"],
    ):
        frame = pd.DataFrame(
            {
                "number": pd.Series(columns["number"], dtype=number),
                "flag": pd.Series(columns["flag"], dtype=flag),
                "word": pd.Series(words, dtype=word),
            }
        )
        yield f"pandas {number} {flag} {word}", frame
    category = pd.Categorical(words, categories=["unused", *present[::-1]], ordered=True)
    yield "pandas ordered, unused", plain.assign(word=category)
    dictionary = pd.Series(words, dtype="string[pyarrow]").astype("category")
    yield "pandas category of arrow", plain.assign(word=dictionary)
    yield "pandas other index", plain.assign(word=words).set_index(np.arange(N)[::-1] * 7)
    for number, word in itertools.product(
        [pl.Int64, pl.UInt8, pl.Float32, pl.Decimal(10, 2)],
        [pl.String, pl.Categorical, pl.Enum(["unused", *present[::-1]])],
    ):
        schema = {"number": number, "flag": pl.Boolean, "word": word}
        yield f"polars {number} {word}", pl.DataFrame(columns, schema=schema, strict=False)


def test_frames_and_arrays_of_the_same_content_give_the_same_model(rng):
    columns, y = content(rng)
    tables = dict(containers(columns))
    assert len(tables) > 50
    fingerprints = {name: fingerprint(X, y) for name, X in tables.items()}
    expected = fingerprints["object array"]
    assert {name for name, found in fingerprints.items() if found != expected} == set()


def test_a_model_predicts_alike_from_any_container(rng):
    columns, y = content(rng)
    frames = {name: X for name, X in containers(columns) if "array" not in name}
    model = CARTClassifier().fit(frames["polars Int64 String"], y)
    expected = model.predict_proba(frames["polars Int64 String"])
    for X in frames.values():
        np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_a_frame_of_many_columns_is_not_asked_for_all_types_once_for_each_of_them(rng, monkeypatch):
    asked, dtypes = [], pl.DataFrame.dtypes.fget
    monkeypatch.setattr(pl.DataFrame, "dtypes", property(lambda frame: asked.append(1) or dtypes(frame)))
    found = []
    for n_columns in (2, 40):
        fingerprint(pl.from_numpy(rng.normal(size=(N, n_columns))), np.arange(N) % 2)
        found.append(len(asked))
        asked.clear()
    assert found[0] == found[1] > 0


def test_strings_of_an_array_are_categories(rng):
    words = rng.choice(["x", "y", "z"], size=(N, 2))
    y = words[:, 0] == "y"
    expected = fingerprint(pd.DataFrame(words.tolist()), y)
    for X in (words, words.astype(object), words.tolist()):
        assert fingerprint(X, y) == expected
    assert CARTClassifier().fit(words, y).score(words, y) == 1
    bytes_ = words.astype("S")
    assert CARTClassifier().fit(bytes_, y).score(bytes_, y) == 1


def test_numbers_as_categories_read_alike(rng):
    column = rng.integers(5, size=N)
    y = np.isin(column, [0, 3])
    tables = [
        column[:, None],
        column[:, None].astype(float),
        pd.DataFrame({"a": column}),
        pd.DataFrame({"a": column.astype(float)}),
        pd.DataFrame({"a": pd.Series(column, dtype="Int64")}),
        pl.DataFrame({"a": column}),
        pl.DataFrame({"a": column.astype(np.float32)}),
        column[:, None].astype(object),
    ]
    assert len({fingerprint(X, y, categorical_features=[0]) for X in tables}) == 1
    category = pd.DataFrame({"a": pd.Categorical(column)})
    assert fingerprint(category, y) == fingerprint(tables[0], y, categorical_features=[0])
    model = CARTClassifier(categorical_features=[0]).fit(tables[2], y)
    assert all(model.score(X, y) == 1 for X in tables if not isinstance(X, np.ndarray))
    assert len(model.tree_.nodes) == 3  # one set of categories, which no threshold can do


def test_booleans_as_categories_read_alike(rng):
    flags = rng.random(N) < 0.5
    tables = [
        flags[:, None],
        pd.DataFrame({"a": flags}),
        pd.DataFrame({"a": pd.Series(flags, dtype="boolean")}),
        pl.DataFrame({"a": flags}),
    ]
    assert len({fingerprint(X, flags, categorical_features=[0]) for X in tables}) == 1


# ---------------------------------------------------------------- which columns are categories


def digits_frame(rng):
    X = pd.DataFrame(rng.integers(6, size=(N, 3)), columns=["a", "b", "c"])
    return X, np.isin(X["b"], [1, 4])


@pytest.mark.parametrize(
    "categorical_features",
    [[1], ["b"], [False, True, False], np.array([1]), np.array(["b"]), pd.Index(["b"]), (1,), ["b", "b"]],
)
def test_categories_are_given_by_number_name_or_mask(rng, categorical_features):
    X, y = digits_frame(rng)
    for table in (X, pl.from_pandas(X)):
        model = CARTClassifier(categorical_features=categorical_features).fit(table, y)
        assert [bool(c) for c in model._forest.schema.categories] == [False, True, False]
        assert model.score(table, y) == 1


@pytest.mark.parametrize("categorical_features", [None, [], "from_dtype", [False] * 3])
def test_numbers_are_not_categories_unless_they_are_said_to_be(rng, categorical_features):
    X, y = digits_frame(rng)
    model = CARTClassifier(categorical_features=categorical_features).fit(X, y)
    assert model._forest.schema.categories == [None] * 3


@pytest.mark.parametrize(
    ("categorical_features", "message"),
    [
        ([3], r"categorical_features has \[3\]; accepted are column numbers from 0 to 2"),
        ([0, -1], r"has \[-1\]"),
        (["b", "d"], r"names \['d'\], which X does not have; X has \['a', 'b', 'c'\]"),
        ([True, False], r"mask of shape \(2,\); X has 3 columns"),
        ([[0], [1]], r"categorical_features has shape \(2, 1\)"),
        ([0.5], r"names \[0.5\], which X does not have"),
        ("all", "'categorical_features' parameter"),
        (7, "'categorical_features' parameter"),
    ],
)
def test_bad_categorical_features_are_refused(rng, categorical_features, message):
    X, y = digits_frame(rng)
    with pytest.raises(ValueError, match=message):
        CARTClassifier(categorical_features=categorical_features).fit(X, y)


def test_strings_are_refused_where_there_are_to_be_no_categories():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    for table in (X, pl.from_pandas(X), X.to_numpy(dtype=object)):
        name = "1" if isinstance(table, np.ndarray) else "b"
        with pytest.raises(ValueError, match=f"column '{name}'"):
            CARTClassifier(categorical_features=None).fit(table, [0, 1])


# ---------------------------------------------------------------- many categories, new categories


@pytest.mark.parametrize("n_categories", [255, 256, 400])
def test_the_rarest_of_too_many_categories_share_a_bin(n_categories):
    rare = max(0, n_categories - 254) if n_categories > 255 else 0
    names = [f"c{i:03d}" for i in range(n_categories)]
    counts = [1 if i < rare else 3 for i in range(n_categories)]
    X = pd.DataFrame({"a": np.repeat(names, counts)})
    table = BinnedTable.from_table(X, "from_dtype", 255, 1)
    bins = table.schema.categories[0]
    assert table.n_bins[0] == 256  # and one for missing values
    assert {bins[name] for name in names[:rare]} == ({254} if rare else set())
    frequent = [bins[name] for name in names[rare:]]
    assert frequent == list(range(len(frequent)))
    np.testing.assert_array_equal(table.codes[0], [bins[name] for name in X["a"]])


def test_categories_that_share_a_bin_are_treated_alike(rng):
    names = np.array([f"c{i}" for i in range(20)])
    X = names[np.minimum(rng.geometric(0.15, size=600) - 1, 19)][:, None]
    model = CARTClassifier(max_bins=5, min_samples_leaf=1).fit(X, np.char.endswith(X[:, 0], "1"))
    bins = model._forest.schema.categories[0]
    shared = [name for name, bin in bins.items() if bin == 4]
    assert len(shared) == 16
    assert len(np.unique(model.predict_proba([[name] for name in shared]), axis=0)) == 1


@pytest.mark.parametrize("gaps", [True, False])
def test_categories_never_seen_go_where_missing_values_go(rng, gaps):
    X = pd.DataFrame({"a": rng.choice(list("pqrst"), size=N), "b": rng.normal(size=N)})
    y = X["a"].isin(["q", "r"]) ^ (X["b"] > 1)
    if gaps:
        X.loc[::4, "a"] = None
    model = KFHEClassifier(CARTClassifier(min_samples_leaf=2), n_estimators=10, random_state=0).fit(X, y)
    new, missing = X.assign(a="never seen"), X.assign(a=pd.Series([None] * N, dtype=object))
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(missing))
    with pytest.warns(UserWarning, match="none can match"):
        other_type = model.predict_proba(X.assign(a=7))
    np.testing.assert_array_equal(other_type, model.predict_proba(missing))


# ---------------------------------------------------------------- what can't be read

DAY = datetime.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"ok": [1, 2], "when": pd.Series([DAY, DAY]).dt.to_period("D")}),
        pd.DataFrame({"ok": [1, 2], "when": [1j, 2j]}),
        pd.DataFrame({"ok": [1, 2], "when": [[1], [2]]}),
        pl.DataFrame({"ok": [1, 2], "when": [[1], [2]]}),
        pl.DataFrame({"ok": [1, 2], "when": [{"a": 1}, {"a": 2}]}),
    ],
    ids=lambda X: f"{type(X).__module__.split('.')[0]} {list(X.dtypes)[1]}",
)
@pytest.mark.parametrize("model", [CARTClassifier(), KFHEClassifier(n_estimators=2)])
def test_columns_that_are_no_numbers_nor_categories_are_refused_by_name(X, model):
    with pytest.raises((TypeError, ValueError), match="column 'when' has"):
        model.fit(X, [0, 1])


def test_arrays_of_other_things_are_refused_by_column():
    with pytest.raises((TypeError, ValueError), match="column '0' has"):
        CARTClassifier().fit(np.array([[{}], [{}]], dtype=object), [0, 1])


TEXTS = {
    "pandas object": pd.DataFrame({"size": pd.Series(["7", None, "large"], dtype=object)}),
    "pandas str": pd.DataFrame({"size": pd.Series(["7", None, "large"], dtype="string")}),
    "polars": pl.DataFrame({"size": ["7", None, "large"]}),
    "pyarrow": pa.table({"size": ["7", None, "large"]}),
}


@pytest.mark.parametrize("X", TEXTS.values(), ids=TEXTS)
def test_text_where_numbers_were_trained_says_which_and_what_to_do(rng, X):
    numbers = pd.DataFrame({"size": rng.normal(size=N)})
    model = CARTClassifier().fit(numbers, numbers["size"] > 0)
    with pytest.raises(ValueError, match=r"column 'size', row 2: found 'large', but training had numbers"):
        model.predict(X)
    model.predict(X[:2])  # what is written like a number is one


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (pl.LazyFrame({"a": [1, 2]}), r"collect\(\)"),
        (pa.RecordBatch.from_pydict({"a": [1, 2]}), r"pyarrow\.Table\.from_batches"),
        (np.ma.masked_array([[1.0], [2.0]], [[False], [True]]), r"filled\(numpy\.nan\)"),
    ],
)
def test_what_would_be_read_wrongly_is_refused_with_advice(X, advice):
    with pytest.raises(TypeError, match=advice):
        CARTClassifier().fit(X, [0, 1])


def test_a_masked_array_without_masked_values_is_an_array(rng):
    X = rng.normal(size=(N, 2))
    assert CARTClassifier().fit(np.ma.masked_array(X), X[:, 0] > 0).score(X, X[:, 0] > 0) == 1


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("given", [["code"], [1], [False, True, False]], ids=["names", "numbers", "mask"])
def test_columns_that_are_named_categorical_add_to_those_of_text(rng, make, given):
    X = make({"x": rng.normal(size=N), "code": rng.integers(0, 5, N), "town": rng.choice(["a", "b"], N)})
    model = CARTClassifier(categorical_features=given).fit(X, rng.integers(0, 2, N))
    categories = model.tree_._forest.schema.categories
    assert [found is not None for found in categories] == [False, True, True]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_empty_frames_are_refused(make):
    with pytest.raises(ValueError, match="0 sample"):
        CARTClassifier().fit(make({"a": []}), [])
    with pytest.raises(ValueError, match="0 feature"):
        CARTClassifier().fit(pd.DataFrame(index=range(3)), [0, 1, 0])


def test_columns_without_any_value_are_of_no_use_and_do_no_harm(rng):
    x = rng.normal(size=N)
    y = x > 0
    for nothing in (pl.lit(None), pl.lit(None, dtype=pl.String), pl.lit(None, dtype=pl.Float64)):
        X = pl.DataFrame({"x": x}).with_columns(nothing.alias("nothing"))
        assert CARTClassifier().fit(X, y).tree_.nodes["feature"].tolist() == [0, 0, 0]
    for dtype in ("float64", "string", "Int64", "boolean", "category", "object"):
        X = pd.DataFrame({"x": x, "nothing": pd.Series([None] * N, dtype=dtype)})
        assert CARTClassifier().fit(X, y).tree_.nodes["feature"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_reading_a_float32_table_makes_no_float64_copy_of_it(rng, order):
    X = np.asarray(rng.normal(size=(10_000, 64)), dtype=np.float32, order=order)
    y = (X[:, 0] > 0).astype(int)
    in_float64 = X.size * 8
    model = CARTClassifier(max_depth=2, n_jobs=1)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < in_float64 / 2


def test_a_pyarrow_table_is_read_like_the_pandas_table_it_becomes(rng):
    import pyarrow as pa

    n = 200
    columns = {
        "number": [None if i % 7 == 0 else float(value) for i, value in enumerate(rng.normal(size=n))],
        "whole": rng.integers(0, 5, n).tolist(),
        "flag": (rng.random(n) < 0.5).tolist(),
        "word": [None if i % 5 == 0 else "abc"[i % 3] for i in range(n)],
        "empty": [None] * n,
    }
    y = [("abc"[i % 3] == "b") ^ (columns["whole"][i] > 2) for i in range(n)]
    table = pa.table(columns)
    encoded = table.set_column(3, "word", table["word"].dictionary_encode())
    in_pieces = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    frame = table.to_pandas().astype({"empty": float})
    expected = KFHEClassifier(random_state=0, n_estimators=5).fit(frame, y)
    for X in (table, encoded, in_pieces):
        model = KFHEClassifier(random_state=0, n_estimators=5).fit(X, y)
        assert model.fingerprint() == expected.fingerprint()
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(frame))
    for X in (table, encoded):  # as read_csv(..., dtype_backend="pyarrow") makes them
        kept = X.to_pandas(types_mapper=pd.ArrowDtype)
        model = KFHEClassifier(random_state=0, n_estimators=5).fit(kept, y)
        assert model.fingerprint() == expected.fingerprint()
    lists = table.append_column("when", pa.array([[0]] * n))
    with pytest.raises(ValueError, match=r"column 'when' has type list<.*>; accepted are numbers"):
        KFHEClassifier().fit(lists, y)


# ---------------------------------------------------------------- categories of another type


CODES = ["00012", "00407", "01001", "01337"]


@pytest.fixture
def by_code(rng):
    X = pd.DataFrame({"code": rng.choice(CODES, 200), "size": rng.normal(size=200)})
    return KFHEClassifier(n_estimators=3, random_state=0).fit(X, X["code"] < "01"), X


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy])
def test_numbers_where_text_was_trained_are_told(by_code, frame):
    model, X = by_code
    numbers = frame(X.astype({"code": int}))
    if isinstance(numbers, np.ndarray):
        model = KFHEClassifier(n_estimators=3).fit(X.to_numpy(), X["code"] < "01")
    with pytest.warns(
        UserWarning, match=r"column '(code|0)' has numbers .* text such as '00012' .* none can"
    ):
        model.predict(numbers)


def test_text_where_numbers_were_trained_is_told(rng):
    X = pd.DataFrame({"month": rng.integers(1, 13, 200)})
    model = KFHEClassifier(CARTClassifier(categorical_features=["month"]), n_estimators=3).fit(
        X, X["month"] > 6
    )
    with pytest.warns(
        UserWarning, match=r"has text such as '\d+', but had numbers such as 1 .*dtype={'month': int}"
    ):
        model.predict(X.astype(str))


def test_a_loaded_model_tells_it_too(by_code):
    model, X = by_code
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    with pytest.warns(UserWarning, match="none can match"):
        kfhe.load(file).predict_proba(X.astype({"code": int}))


@pytest.mark.parametrize("codes", [["new"], ["new", "00012"], [None], [12, "00012"]])
def test_new_categories_of_the_right_type_and_gaps_are_ordinary(by_code, codes):
    model, _ = by_code
    model.estimators_.encoded(pd.DataFrame({"code": pd.Series(codes, dtype=object), "size": 0.5}))


IDENTIFIERS = [2**53 + k % 6 for k in range(300)]


@pytest.mark.parametrize(
    "made",
    [
        lambda ids: np.array(ids).reshape(-1, 1),
        lambda ids: np.array(ids, dtype=np.uint64).reshape(-1, 1),
        lambda ids: np.array([None, *ids[1:]], dtype=object).reshape(-1, 1),
        lambda ids: [[each] for each in ids],
        lambda ids: pd.DataFrame({"id": ids}),
        lambda ids: pl.DataFrame({"id": [None, *ids[1:]]}),
        lambda ids: pl.DataFrame({"id": ids}),
        lambda ids: pa.table({"id": ids}),
        lambda ids: pa.table({"id": pa.array([None, *ids[1:]], pa.uint64())}),
    ],
    ids=[
        "array",
        "unsigned",
        "objects",
        "lists",
        "pandas",
        "polars, gap",
        "polars",
        "pyarrow",
        "pyarrow, gap",
    ],
)
def test_large_whole_numbers_are_categories_of_their_own(tmp_path, made):
    X, y = made(IDENTIFIERS), [k % 2 for k in range(300)]
    tree = CARTClassifier(min_samples_split=2, min_samples_leaf=1, categorical_features=[0])
    model = KFHEClassifier(tree, n_estimators=2, random_state=0).fit(X, y)
    assert [*model.estimators_.schema.categories[0]] == IDENTIFIERS[:6]
    assert model.score(X, y) > 0.99
    model.save(tmp_path / "model.kfhe")
    np.testing.assert_array_equal(kfhe.load(tmp_path / "model.kfhe").predict(X), model.predict(X))


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: pl.DataFrame(columns).with_columns(pl.col(pl.Int64).cast(pl.Int128)),
    ],
    ids=["pandas", "polars", "pyarrow", "128 bits"],
)
def test_large_whole_numbers_are_the_nearest_floats_where_they_are_numbers(make):
    X, y = make({"id": IDENTIFIERS, "size": [*range(300)]}), [k % 2 for k in range(300)]
    model = kfhe.RobustKFHEClassifier(n_estimators=2, random_state=0).fit(X, y)
    floats = make({"id": [*map(float, IDENTIFIERS)], "size": [*map(float, range(300))]})
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(floats))
