"""The audit: which labels look wrong."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import roc_auc_score

from kfhe.audit import LabelAudit, label_quality
from kfhe.audit import votes as votes_module
from kfhe.noise import flip_labels


@pytest.fixture(scope="module")
def clean_iris():
    return load_iris(return_X_y=True)


def same(audit, other):
    names = set(vars(audit)) - {"index", "findings", "worst"}
    return all(np.array_equal(getattr(audit, name), getattr(other, name)) for name in names)


class TestFinding:
    @pytest.mark.parametrize("share", [0.1, 0.2])
    def test_changed_labels_are_found(self, clean_iris, share):
        X, y = clean_iris
        noisy = flip_labels(y, share, random_state=1)
        audit = label_quality(X, noisy, random_state=0)
        changed = noisy != y
        assert roc_auc_score(changed, -audit.quality) > 0.97
        assert changed[audit.suspects].mean() > 0.8
        assert (audit.suggested == y)[changed].mean() > 0.9

    def test_it_is_as_the_clean_labels_were(self, clean_iris):
        X, y = clean_iris
        audit = label_quality(X, y, random_state=0)
        assert audit.estimated_share < 0.02
        assert audit.suspects.sum() <= 3

    def test_a_class_that_is_one_typo_is_the_worst(self, clean_iris):
        X, y = clean_iris
        names = np.array(["setosa", "versicolor", "virginica"])[y].astype(object)
        names[10] = "setsoa"
        audit = label_quality(X, names, random_state=0)
        assert audit.quality[10] == 0
        assert audit.rank[10] == 1
        assert audit.suggested[10] == "setosa"

    def test_a_label_has_no_vote_on_itself(self):
        """Where X says nothing, trees that had seen a row would side with its label."""
        rng = np.random.default_rng(0)
        X, y = rng.random((200, 3)), rng.integers(2, size=200)
        audit = label_quality(X, y, random_state=0)
        assert 0.3 < (audit.suggested == y).mean() < 0.7

    def test_many_classes_categories_and_gaps(self):
        rng = np.random.default_rng(0)
        city = rng.integers(12, size=600)
        X = pd.DataFrame({"city": [f"city {k}" for k in city], "noise": rng.normal(size=600)})
        X.loc[::7, "noise"] = np.nan
        X.loc[::31, "city"] = None
        y = np.array([f"region {k}" for k in city])
        noisy = flip_labels(y, 0.1, random_state=0)
        audit = label_quality(X, noisy, random_state=0, n_estimators=100)
        known = X["city"].notna().to_numpy()
        assert roc_auc_score((noisy != y)[known], -audit.quality[known]) > 0.97


class TestResult:
    def test_ranks_order_the_qualities(self, iris):
        audit = label_quality(*iris, random_state=0, n_estimators=50)
        assert sorted(audit.rank) == list(range(1, 151))
        assert (np.diff(audit.quality[audit.rank.argsort()]) >= 0).all()

    def test_suspects_are_the_worst_of_the_labels_that_the_votes_dispute(self, iris):
        audit = label_quality(*iris, random_state=0)
        disputed = audit.suggested != audit.given
        assert 0 < audit.suspects.sum() < disputed.sum()
        assert disputed[audit.suspects].all()
        assert audit.rank[audit.suspects].max() < audit.rank[disputed & ~audit.suspects].min()
        assert audit.suspects.sum() == round(audit.estimated_share * 150)

    @pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3, 7]])
    def test_labels_come_back_as_they_were(self, labels):
        X, y = make_classification(60, random_state=0)
        given = np.array(labels)[y]
        audit = label_quality(X, given, random_state=0, n_estimators=20)
        assert np.array_equal(audit.given, given)
        assert audit.suggested.dtype == given.dtype
        assert set(audit.suggested.tolist()) <= set(labels)

    def test_the_frame_has_the_worst_first(self, iris):
        audit = label_quality(*iris, random_state=0, n_estimators=50)
        frame = audit.to_frame()
        assert list(frame.columns) == ["rank", "given", "suggested", "quality", "suspect"]
        assert frame["rank"].tolist() == list(range(1, 151))
        assert frame.loc[7, "quality"] == audit.quality[7]

    def test_its_text_says_what_was_found(self, iris):
        audit = label_quality(*iris, random_state=0, n_estimators=50)
        assert repr(audit).startswith("LabelAudit of 150 labels: about ")
        assert f"{audit.suspects.sum()} suspects" in repr(audit)

    def test_a_row_that_no_tree_left_out_is_not_judged(self, iris):
        audit = label_quality(*iris, random_state=0, n_estimators=1)
        unknown = np.isnan(audit.quality)
        assert 0.5 < unknown.mean() < 0.75
        assert (audit.suggested == audit.given)[unknown].all()
        assert not audit.suspects[unknown].any()
        assert audit.rank[unknown].min() > audit.rank[~unknown].max()

    def test_without_any_vote_nothing_is_said(self):
        audit = label_quality([[0.0], [1.0]], ["a", "b"], random_state=0, n_estimators=1)
        assert np.isnan(audit.quality).all()
        assert audit.rank.tolist() == [1, 2]
        assert audit.estimated_share == 0
        assert not audit.suspects.any()


class TestSameBits:
    def test_threads_and_their_number_change_nothing(self, iris):
        audits = [label_quality(*iris, random_state=0, n_estimators=51, n_jobs=n) for n in (1, 2, 3, 64)]
        assert all(same(audits[0], other) for other in audits[1:])

    def test_the_seed_decides(self, iris):
        first, again, other = (label_quality(*iris, random_state=s, n_estimators=20) for s in (0, 0, 1))
        assert same(first, again)
        assert not same(first, other)

    def test_containers_change_nothing(self):
        rng = np.random.default_rng(0)
        columns = {"number": rng.normal(size=80), "word": rng.choice(["a", "b", "c"], size=80)}
        columns["number"][::9] = np.nan
        y = rng.choice(["x", "y"], size=80)
        pandas = pd.DataFrame(columns)
        audits = [
            label_quality(X, labels, random_state=0, n_estimators=20)
            for X, labels in [
                (pandas, y),
                (pl.DataFrame(columns, nan_to_null=True), pl.Series(y)),
                (pandas.to_numpy(dtype=object), y.tolist()),
            ]
        ]
        assert same(audits[0], audits[1])
        assert same(audits[0], audits[2])


@settings(max_examples=50)
@given(data=st.data(), n=st.integers(1, 40), c=st.integers(2, 5))
def test_any_votes_give_a_sound_result(data, n, c):
    labels = np.array(data.draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n)), dtype=np.int32)
    votes = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n * c, max_size=n * c)), dtype=float)
    votes = votes.reshape(n, c)
    with np.errstate(invalid="ignore"):
        votes /= votes.sum(axis=1, keepdims=True)
    audit = LabelAudit.from_votes(np.arange(c), labels, votes)
    assert sorted(audit.rank) == list(range(1, n + 1))
    assert 0 <= audit.estimated_share <= 1
    assert audit.suspects.sum() <= round(audit.estimated_share * n)
    assert not (audit.suspects & (audit.suggested == labels)).any()


class TestMistakes:
    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            ([[1.0], [2.0]], ["a", "a"], r"one class only \('a'\).*at least two"),
            ([[1.0], [2.0]], ["a"], "X has 2 rows, y has 1"),
            ([[1.0], [2.0]], ["a", None], "missing labels"),
            ([[1.0], [2.0]], [0.5, 1.5], "continuous"),
            ([[1.0], [2.0]], None, "y"),
            (None, ["a", "b"], "needs the rows X, or votes on them"),
            ([[np.inf], [2.0]], [0, 1], "infinity in column '0'"),
            ([1.0, 2.0], [0, 1], "2D"),
            (np.empty((0, 2)), [0, 1], "0 sample"),
        ],
    )
    def test_values(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            label_quality(X, y, random_state=0)

    @pytest.mark.parametrize(
        "parameter",
        [{"n_estimators": 0}, {"n_estimators": 1.5}, {"random_state": "x"}, {"categorical_features": 3}],
    )
    def test_parameters_are_named(self, parameter):
        with pytest.raises(ValueError, match=f"'{next(iter(parameter))}' parameter of .*label_quality"):
            label_quality([[1.0], [2.0]], [0, 1], **parameter)


def test_the_index_of_a_table_is_kept(clean_iris):
    X, y = clean_iris
    table = pd.DataFrame(X, index=pd.Index(range(1000, 1150), name="flower"))
    frame = label_quality(table, y, random_state=0, n_estimators=20).to_frame()
    assert frame.index.name == "flower"
    np.testing.assert_array_equal(frame["given"], y[frame.index - 1000])


def test_an_interrupted_audit_does_not_grow_all_trees(clean_iris, monkeypatch):
    grown = []

    class InterruptedPool(ThreadPoolExecutor):
        def map(self, function, workers):
            for worker in workers:
                self.submit(function, worker)
            raise KeyboardInterrupt

    def counted(*arguments):
        grown.append(arguments)
        return draw(*arguments)

    draw = votes_module.bootstrap
    monkeypatch.setattr(votes_module, "bootstrap", counted)
    monkeypatch.setattr(votes_module, "ThreadPoolExecutor", InterruptedPool)
    with pytest.raises(KeyboardInterrupt):
        label_quality(*clean_iris, random_state=0, n_estimators=100_000, n_jobs=2)
    assert len(grown) < 50_000


def test_dates_are_looked_at_as_other_columns_are():
    days = pd.date_range("2026-01-01", periods=60, freq="D").to_series(index=range(60))
    days[7] = pd.Timestamp("2091-01-01 12:00")
    X = pd.DataFrame({"when": days, "size": np.arange(60.0)})
    audit = label_quality(X, np.arange(60) >= 30, random_state=0, n_estimators=50)
    assert audit.findings.outlying[7] == "when"
    shown = [row[0] for row in audit.worst.cells]
    expected = X["when"].iloc[np.argsort(audit.rank)[:10]]
    assert shown == [str(day).replace(" 00:00:00", "").replace(" ", "T") for day in expected]


def test_a_sparse_matrix_is_judged_as_the_dense_one_is():
    X, y = load_iris(return_X_y=True)
    dense, sparse = (label_quality(table, y, random_state=0, n_estimators=50) for table in (X, csr_array(X)))
    np.testing.assert_array_equal(dense.quality, sparse.quality)
    assert dense.findings is not None
    assert sparse.findings is None
