"""What can be done with an audit: weights, a cleaned table, frames, a view in notebooks."""

import pickle
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from kfhe.audit import label_quality
from kfhe.noise import flip_labels


@pytest.fixture(scope="module")
def noisy_iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, flip_labels(y, 0.1, random_state=0)


@pytest.fixture(scope="module")
def audit(noisy_iris):
    return label_quality(*noisy_iris, n_estimators=100, random_state=0)


def test_weights_of_suspects_are_low(audit):
    weights = audit.weights()
    assert (weights[~audit.suspects] == 1).all()
    np.testing.assert_array_equal(weights[audit.suspects], audit.quality[audit.suspects])
    assert weights[audit.suspects].mean() < 0.3


class TestCleaned:
    def test_suspects_are_dropped(self, audit, noisy_iris):
        X, y = noisy_iris
        kept, labels = audit.cleaned(X, y)
        pd.testing.assert_frame_equal(kept, X[~audit.suspects])
        np.testing.assert_array_equal(labels, np.asarray(y)[~audit.suspects])

    def test_a_sparse_matrix_of_any_format(self, audit, noisy_iris):
        X, y = noisy_iris
        kept, _ = audit.cleaned(sp.coo_matrix(X), y)
        np.testing.assert_array_equal(kept.toarray(), X[~audit.suspects])

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    @pytest.mark.filterwarnings("ignore:A column-vector y")
    def test_labels_in_a_frame_become_an_array(self, audit, noisy_iris, frame):
        X, y = noisy_iris
        _, labels = audit.cleaned(X, frame({"y": np.asarray(y)}), suspects="relabel")
        np.testing.assert_array_equal(labels, np.where(audit.suspects, audit.suggested, y))

    def test_suspects_are_relabelled_if_asked_for(self, audit, noisy_iris):
        X, y = noisy_iris
        kept, labels = audit.cleaned(X, y, suspects="relabel")
        assert kept is X
        np.testing.assert_array_equal(labels[audit.suspects], audit.suggested[audit.suspects])
        np.testing.assert_array_equal(labels[~audit.suspects], audit.given[~audit.suspects])

    @pytest.mark.parametrize("how", ["drop", "relabel"])
    def test_containers_stay_what_they_are(self, audit, noisy_iris, how):
        X, y = noisy_iris
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        named = label_quality(X, names, n_estimators=20, random_state=0)
        series = pd.Series(names, index=X.index, name="kind")
        rows, labels = named.cleaned(X, series, suspects=how)
        assert labels.name == "kind"
        assert labels.dtype == series.dtype
        assert labels.index.equals(rows.index)
        frame, labels = named.cleaned(pl.DataFrame(X.to_dict("list")), pl.Series("kind", names), suspects=how)
        assert isinstance(frame, pl.DataFrame)
        assert labels.name == "kind"
        assert len(frame) == len(labels) == len(rows)
        array, labels = named.cleaned(X.to_numpy(), names, suspects=how)
        assert array.shape == rows.shape
        assert labels.dtype == names.dtype

    def test_categories_stay_categories(self, noisy_iris):
        X, y = noisy_iris
        kinds = pd.Series(pd.Categorical.from_codes(y, ["a", "b", "c"]))
        audit = label_quality(X, kinds, n_estimators=20, random_state=0)
        assert audit.cleaned(X, kinds, suspects="relabel")[1].dtype == kinds.dtype

    @pytest.mark.parametrize(
        "bare", [pd.Categorical, pd.Index, lambda names: pd.array(names, dtype="string"), pa.array]
    )
    def test_labels_may_be_an_array_of_pandas_or_pyarrow(self, audit, noisy_iris, bare):
        X, y = noisy_iris
        names = np.array(["a", "b", "c"])[y].tolist()
        named = label_quality(X, bare(names), n_estimators=20, random_state=0)
        _, labels = named.cleaned(X, bare(names))
        np.testing.assert_array_equal(np.asarray(labels), np.array(names)[~named.suspects])
        _, labels = named.cleaned(X, bare(names), suspects="relabel")
        np.testing.assert_array_equal(labels, np.where(named.suspects, named.suggested, names))

    def test_other_rows_are_refused(self, audit, noisy_iris):
        X, y = noisy_iris
        with pytest.raises(ValueError, match="not what was audited"):
            audit.cleaned(X, np.asarray(y)[::-1])
        with pytest.raises(ValueError, match="X has 100 rows"):
            audit.cleaned(X[:100], y)
        with pytest.raises(ValueError, match="'drop' or 'relabel', got 'fix'"):
            audit.cleaned(X, y, suspects="fix")


class TestIssues:
    def test_all_kinds_are_in_one_frame(self, noisy_iris):
        X, y = noisy_iris
        X = pd.concat([X, X.iloc[[0]]]).set_index(np.arange(1000, 1151))
        X.iloc[3, 0] = 900.0
        audit = label_quality(X, [*y, 2 - y[0]], n_estimators=50, random_state=0)
        issues = audit.issues()
        assert issues.loc[1150, "duplicate_of"] == 1000
        assert issues.loc[1000, "conflicts_with"] == 1150
        assert issues.loc[1003, "outlying"] == "sepal length (cm)"
        assert set(X.index[audit.suspects]) <= set(issues.index)
        assert issues["rank"].is_monotonic_increasing

    def test_without_rows_there_are_none_to_name(self):
        audit = label_quality(y=["a", "b"], pred_proba=[[0.5, 0.5], [0.5, 0.5]])
        with pytest.raises(ValueError, match="needs the rows"):
            audit.issues()


class Reader(HTMLParser):
    """Notes all tags and texts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, text):
        self.texts.append(text)


class TestNotebook:
    def test_the_worst_rows_are_shown_with_their_cells(self, audit, noisy_iris):
        X, _ = noisy_iris
        shown = Reader(audit._repr_html_())
        worst = audit.to_frame().index[0]
        assert repr(audit) in shown.texts
        assert {"petal width (cm)", str(worst), f"{X.loc[worst, 'petal width (cm)']:g}"} <= set(shown.texts)
        assert shown.tags.count("tr") == 11

    def test_hostile_cells_are_text(self):
        evil = "<script>alert(1)</script>"
        table = pd.DataFrame(
            {f"<img src=x onerror={evil}>": [evil, "\x1b[2J", "b", None] * 10}, index=[evil] * 40
        )
        audit = label_quality(table, [evil, "b"] * 20, n_estimators=10, random_state=0)
        shown = Reader(audit._repr_html_())
        assert set(shown.tags) == {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert evil in shown.texts
        assert not any("\x1b" in text for text in shown.texts)

    def test_without_rows_the_labels_are_shown(self):
        audit = label_quality(y=["a", "b"], pred_proba=[[0.9, 0.1], [0.8, 0.2]])
        assert {"suggested", "0.900"} <= set(Reader(audit._repr_html_()).texts)


def test_an_audit_can_be_pickled(audit):
    again = pickle.loads(pickle.dumps(audit))
    np.testing.assert_array_equal(again.quality, audit.quality)
    assert again._repr_html_() == audit._repr_html_()


def test_an_index_of_several_levels_is_kept(noisy_iris):
    X, y = noisy_iris
    levels = pd.MultiIndex.from_product([range(15), range(10)])
    audit = label_quality(X.set_index(levels), np.asarray(y), n_estimators=20, random_state=0)
    assert set(audit.to_frame().index) == set(levels)
    assert audit.issues().index.isin(levels).all()
