"""Sparse matrices: the same models and predictions as the dense table, without its memory."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import kfhe
from kfhe import CARTClassifier, EarlyStopping, KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality
from kfhe.noise import flip_labels
from kfhe.tables import columns
from kfhe.tables.binned import BinnedTable

FORMATS = ["csr_matrix", "csc_matrix", "csr_array", "csc_array", "coo_array", "coo_matrix", "lil_matrix"]
FORMATS += ["dok_array", "bsr_matrix"]
PURE = {"min_samples_split": 2, "min_samples_leaf": 1}


def counts(n_rows=300, n_columns=40, filled=0.1, seed=0):
    """Return a table like counts of words, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, n_columns)) < filled, rng.integers(1, 9, (n_rows, n_columns)), 0.0)
    return X, (X[:, 0] + X[:, 1] + X[:, 2] > rng.integers(0, 4, n_rows)).astype(int)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make rows dense a few at a time, so that there are several blocks."""
    monkeypatch.setattr(columns, "CELLS_AT_ONCE", 1000)


@st.composite
def matrices(draw):
    """A sparse matrix of any make: entries stored as zeros, stored twice, not in order, of any type."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_columns = draw(st.integers(1, 60)), draw(st.integers(1, 6))
    n_entries = rng.integers(0, draw(st.sampled_from([1, 20, n_rows * n_columns])) + 1)
    values = rng.integers(-3, 4, n_entries) if draw(st.booleans()) else rng.normal(size=n_entries)
    dtype = draw(st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.uint16, np.bool_]))
    values = np.abs(values).astype(dtype) if np.dtype(dtype).kind in "ub" else values.astype(dtype)
    if np.dtype(dtype).kind == "f":
        values[rng.random(n_entries) < draw(st.sampled_from([0, 0.2]))] = np.nan
        values[rng.random(n_entries) < 0.2] = -0.0
    # No more than two entries for a place: the sum of three depends on their order.
    places = np.tile(rng.permutation(n_rows * n_columns), 2)[rng.permutation(2 * n_rows * n_columns)][
        :n_entries
    ]
    index = draw(st.sampled_from([np.int32, np.int64]))
    rows, columns = (places // n_columns).astype(index), (places % n_columns).astype(index)
    by_column = draw(st.booleans())
    outer, inner = (columns, rows) if by_column else (rows, columns)
    order = np.argsort(outer, kind="stable")  # within a row, entries stay as they came: not in order
    starts = np.searchsorted(outer[order], np.arange((n_columns if by_column else n_rows) + 1)).astype(index)
    make = draw(
        st.sampled_from([sp.csc_matrix, sp.csc_array] if by_column else [sp.csr_matrix, sp.csr_array])
    )
    X = make((values[order], inner[order], starts), shape=(n_rows, n_columns))
    return X, rng.integers(draw(st.integers(1, 3)), size=n_rows), n_columns


@given(matrices(), st.booleans(), st.sampled_from([255, 3]))
@settings(max_examples=120)
def test_the_model_is_that_of_the_dense_table(problem, with_categories, max_bins):
    X, y, n_columns = problem
    dense = X.toarray()
    stored = X.data.copy(), X.indices.copy(), X.indptr.copy()
    categories = [n_columns - 1] if with_categories else None
    model = KFHEClassifier(
        CARTClassifier(categorical_features=categories, max_bins=max_bins, **PURE),
        n_estimators=3,
        random_state=0,
    )
    expected = model.fit(dense, y)
    digest, scores, leaves = expected.fingerprint(), expected.predict_proba(dense), expected.apply(dense)
    found = model.fit(X, y)
    assert found.fingerprint() == digest
    np.testing.assert_array_equal(found.predict_proba(X), scores)
    np.testing.assert_array_equal(found.apply(X), leaves)
    for before, after in zip(stored, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(before, after, strict=True)  # the user's matrix is left as it was


@pytest.mark.parametrize("kind", FORMATS)
def test_any_format_is_read(kind):
    X, y = counts()
    given = getattr(sp, kind)(X)
    for model in (
        CARTClassifier(max_features="sqrt", random_state=0),
        KFHEClassifier(n_estimators=4, random_state=0),
        RobustKFHEClassifier(n_estimators=12, random_state=0),
    ):
        expected = model.fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(model.fit(given, y).predict_proba(given), expected)
        np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.parametrize(("n_rows", "filled"), [(70_000, 0.02), (200_000, 0.5), (100, 1.0)])
def test_bins_are_those_of_the_dense_table(n_rows, filled):
    """Of a large table a sample of the rows decides, and of a full one no zero is among the values."""
    X = sp.random(n_rows, 3, filled, "csr", random_state=0)
    X.data -= 0.5
    found = BinnedTable.from_table(X, None, 255, 1)
    expected = BinnedTable.from_table(X.toarray(), None, 255, 1)
    for name in ("codes", "n_bins", "low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_block_has_a_row_at_least():
    X, y = counts(60, columns.CELLS_AT_ONCE + 1)
    model = KFHEClassifier(n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(sp.csr_array(X)), model.predict_proba(X))


def test_a_comparison_leaves_both_matrices_as_they_are():
    X = sp.csc_array(([1.0, 0.0, 2.0], ([0, 1, 2], [0, 0, 1])), shape=(3, 2))
    other = X.copy()
    assert columns.same_values(X, other)
    assert X.nnz == other.nnz == 3


def test_an_audit_finds_the_same():
    X, y = counts()
    noisy = flip_labels(y, 0.1, random_state=0)
    found = label_quality(sp.csr_array(X), noisy, n_estimators=30, random_state=0)
    expected = label_quality(X, noisy, n_estimators=30, random_state=0)
    np.testing.assert_array_equal(found.quality, expected.quality)


def test_weights_of_zero_leave_rows_out():
    X, y = counts()
    weights = np.arange(len(y)) % 3
    model = KFHEClassifier(n_estimators=4, random_state=0)
    expected = model.fit(X, y, weights).fingerprint()
    assert model.fit(sp.coo_matrix(X), y, weights).fingerprint() == expected


@pytest.mark.parametrize("classifier", [KFHEClassifier, RobustKFHEClassifier])
@pytest.mark.parametrize("validation", ["given", "held back"])
def test_a_validation_set_may_be_sparse(classifier, validation):
    X, y = counts()
    given = sp.csr_matrix(X)
    share = 0.3 if validation == "held back" else None
    model = classifier(
        n_estimators=15, early_stopping=EarlyStopping(3, validation_fraction=share), random_state=0
    )
    others = {} if share else {"X_val": X[:100], "y_val": y[:100]}
    sparse_others = {} if share else {"X_val": given[:100], "y_val": y[:100]}
    expected = model.fit(X, y, **others).validation_scores_
    np.testing.assert_array_equal(model.fit(given, y, **sparse_others).validation_scores_, expected)


def test_stages_uncertainty_and_single_trees():
    X, y = counts()
    given = sp.csc_matrix(X)
    model = RobustKFHEClassifier(n_estimators=12, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_uncertainty(given), model.predict_uncertainty(X))
    for found, expected in zip(model.staged_predict_proba(given), model.staged_predict_proba(X), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.estimators_[3].predict(given), model.estimators_[3].predict(X))


def test_a_model_file_reads_sparse_rows(tmp_path):
    X, y = counts()
    model = KFHEClassifier(n_estimators=4, random_state=0).fit(sp.csr_matrix(X), y)
    model.save(tmp_path / "model.kfhe")
    found = kfhe.load(tmp_path / "model.kfhe").predict_proba(sp.csr_matrix(X))
    np.testing.assert_array_equal(found, model.predict_proba(X))


def test_a_warm_start_knows_its_rows_again():
    X, y = counts()
    given = sp.csr_matrix(X)
    model = KFHEClassifier(n_estimators=3, warm_start=True, random_state=0).fit(given, y)
    changed = X.copy()
    changed[0, 0] += 1
    with pytest.raises(ValueError, match="other values in X"):
        model.set_params(n_estimators=6).fit(sp.csr_matrix(changed), y)
    rows, columns = (X == 0).nonzero()  # which are stored from now on
    with_zeros = sp.csr_matrix(
        (np.append(given.data, 0 * rows), np.hstack([given.nonzero(), (rows, columns)]))
    )
    assert with_zeros.nnz == X.size
    again = pickle.loads(pickle.dumps(model)).fit(with_zeros, y)
    assert again.fingerprint() == KFHEClassifier(n_estimators=6, random_state=0).fit(X, y).fingerprint()


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array", "lil_array"])
def test_components_of_other_kinds_get_sparse_rows(kind):
    X, y = counts()
    given = getattr(sp, kind)(X)

    class Asked(LogisticRegression):
        def fit(self, X, y):
            assert X.format in ("csr", "csc")
            return super().fit(X, y)

    model = KFHEClassifier(Asked(), n_estimators=3, random_state=0).fit(given, y)
    assert model.predict_proba(given) == pytest.approx(model.predict_proba(X))
    forest = RandomForestClassifier(n_estimators=3, random_state=0)
    mixed = KFHEClassifier([forest, CARTClassifier()], n_estimators=4, random_state=0)
    np.testing.assert_array_equal(mixed.fit(given, y).predict(given), mixed.fit(X, y).predict(X))


def test_components_that_do_not_take_sparse_rows_say_so():
    X, y = counts()
    model = KFHEClassifier(HistGradientBoostingClassifier(), n_estimators=2)
    assert not model.__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        model.fit(sp.csr_matrix(X), y)


def test_columns_of_pandas_may_be_sparse():
    X, y = counts()
    X[X == 8] = np.nan
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csc_matrix(X))
    frame[3] = pd.arrays.SparseArray(X[:, 3] > 2)
    dense = pd.DataFrame(X)
    dense[3] = X[:, 3] > 2
    dense.columns = frame.columns = [f"word {j}" for j in range(X.shape[1])]
    model = KFHEClassifier(n_estimators=4, random_state=0)
    expected = model.fit(dense, y).predict_proba(dense)
    np.testing.assert_array_equal(model.fit(frame, y).predict_proba(frame), expected)


def test_a_sparse_table_can_be_cross_validated():
    X, y = counts()
    found = cross_val_score(KFHEClassifier(n_estimators=4, random_state=0), sp.csr_array(X), y)
    np.testing.assert_array_equal(
        found, cross_val_score(KFHEClassifier(n_estimators=4, random_state=0), X, y)
    )


class TestRefusals:
    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinite_values(self, value):
        X, y = counts()
        model = KFHEClassifier(n_estimators=1).fit(X, y)
        X[7, 5] = value
        for call in (lambda: model.fit(sp.csr_matrix(X), y), lambda: model.predict(sp.csr_matrix(X))):
            with pytest.raises(ValueError, match="infinity in column '5'"):
                call()

    def test_other_numbers_of_columns(self):
        X, y = counts()
        model = KFHEClassifier(n_estimators=1).fit(sp.csr_matrix(X), y)
        with pytest.raises(ValueError, match="X has 39 features, but KFHEClassifier is expecting 40"):
            model.predict(sp.csr_matrix(X[:, 1:]))

    def test_other_numbers_of_rows(self):
        X, y = counts()
        with pytest.raises(ValueError, match="X has 299 rows, y has 300"):
            CARTClassifier().fit(sp.csr_matrix(X[1:]), y)

    def test_matrices_that_hold_no_numbers(self):
        with pytest.raises(ValueError, match=r"(?i)complex"):
            CARTClassifier().fit(sp.csr_matrix(np.eye(2) * 1j), [0, 1])

    def test_empty_matrices(self):
        with pytest.raises(ValueError, match="0 sample"):
            CARTClassifier().fit(sp.csr_matrix((0, 3)), [])
        with pytest.raises(ValueError, match="0 feature"):
            CARTClassifier().fit(sp.csr_matrix((3, 0)), [0, 1, 0])

    def test_unfitted_models(self):
        with pytest.raises(NotFittedError):
            KFHEClassifier().predict(sp.csr_matrix(np.eye(2)))

    def test_noise_in_inputs(self):
        X, _ = counts()
        with pytest.raises(TypeError, match=r"disturb_inputs does not take sparse input.*toarray"):
            kfhe.noise.disturb_inputs(sp.csr_matrix(X), 0.1, random_state=0)


class TestIndices:
    """Compiled code follows indices: those that point outside are refused, and any type of them is read."""

    @pytest.mark.parametrize("rows", [[0, 5, 50_000_000], [0, 5, -1]])
    @pytest.mark.parametrize("make", [sp.csc_matrix, sp.csr_array, sp.bsr_matrix])
    def test_outside_the_matrix(self, make, rows):
        X = make(np.eye(20))
        X.indices[:3] = rows
        X.has_canonical_format = X.has_sorted_indices = True  # a lie
        for judge in (KFHEClassifier().fit, label_quality):
            with pytest.raises(ValueError, match=r"damaged sparse matrix: .* must be"):
                judge(X, [0, 1] * 10)

    def test_outside_the_matrix_in_prediction(self):
        X, y = counts()
        model = KFHEClassifier(n_estimators=1).fit(X, y)
        rows = sp.csr_matrix(X)
        rows.indices[0] = 10**6
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            model.predict(rows)

    @pytest.mark.parametrize("starts", [2**30, 1])
    def test_columns_that_overlap(self, starts):
        X = sp.csc_matrix(np.ones((20, 3)))
        X.indptr[1:3] = [starts, 0]
        with pytest.raises(ValueError, match=r"damaged .*: (indptr|index pointer values) must"):
            KFHEClassifier().fit(X, [0, 1] * 10)

    @pytest.mark.parametrize("dtype", ["i2", "u4", "u8", ">i4", ">i8"])
    def test_of_any_type(self, dtype):
        X, y = counts()
        model = KFHEClassifier(n_estimators=2, random_state=0)
        expected = model.fit(X, y).fingerprint()
        other = sp.csc_matrix(X)
        other.indices, other.indptr = other.indices.astype(dtype), other.indptr.astype(dtype)
        assert model.fit(other, y).fingerprint() == expected
        assert other.indices.dtype == dtype


MEMORY = """
import resource, numpy as np, scipy.sparse as sp
from kfhe import CARTClassifier, KFHEClassifier
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
model = KFHEClassifier(CARTClassifier(max_features="sqrt", max_depth=3), n_estimators=1, n_jobs=1)
rng, n = np.random.default_rng(0), 20_000
rows, columns = np.repeat(np.arange(n), 50), rng.integers(5_000, size=50 * n)
X = sp.csr_matrix((rng.random(50 * n, dtype=np.float32), (rows, columns)), shape=(n, 5_000))
y = rng.integers(2, size=n)
model.fit(X[:100], y[:100]).predict(X[:100])
before = peak()
model.fit(X, y).predict(X)
print((peak() - before) / (4 * X.shape[0] * X.shape[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is counted in other units elsewhere")
def test_training_and_prediction_need_less_memory_than_the_dense_table():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.4  # of the table as float32
