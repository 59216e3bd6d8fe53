"""Rows that are odd in themselves: duplicates, near-duplicates of another label, outliers."""

import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfhe.audit import row_findings


@pytest.fixture
def numbers(rng):
    return rng.normal(size=(300, 5))


@pytest.fixture
def labels(rng):
    return rng.integers(2, size=300)


class TestDuplicates:
    @settings(max_examples=60)
    @given(data=st.data(), n=st.integers(1, 12), m=st.integers(1, 3))
    def test_they_are_the_rows_that_are_equal(self, data, n, m):
        cells = st.sampled_from([0.0, -0.0, 1.5, np.nan])
        X = np.array(data.draw(st.lists(cells, min_size=n * m, max_size=n * m))).reshape(n, m)
        y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        found = row_findings(X, y)
        keys = [tuple("gap" if np.isnan(value) else value + 0.0 for value in row) for row in X]
        for row, key in enumerate(keys):
            first = keys.index(key)
            assert found.duplicate_of[row] == (first if first < row else -1)
            others = [other for other in range(n) if keys[other] == key and y[other] != y[row]]
            assert found.conflicts_with[row] == (others[0] if others else -1)

    def test_categories_are_compared_exactly_however_many_there_are(self):
        names = [f"name {k}" for k in range(1000)]
        table = pd.DataFrame({"name": [*names, "name 7", None, None]})
        found = row_findings(table, [0, 1] * 501 + [0])
        assert np.flatnonzero(found.duplicate_of >= 0).tolist() == [1000, 1002]
        assert found.duplicate_of[[1000, 1002]].tolist() == [7, 1001]

    def test_containers_change_nothing(self):
        columns = {"x": [1.0, 2.0, 1.0, None], "word": ["a", None, "a", "b"]}
        for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
            assert row_findings(table, [0, 1, 1, 0]).duplicate_of.tolist() == [-1, -1, 0, -1]


class TestNearDuplicates:
    def test_a_copy_with_a_little_noise_and_another_label_is_found(self, numbers, labels, rng):
        copies = numbers[:20] + rng.normal(scale=1e-4, size=(20, 5))
        found = row_findings(np.vstack([numbers, copies]), [*labels, *(1 - labels[:20])])
        assert found.conflicts_with[300:].tolist() == list(range(20))
        assert found.conflicts_with[:20].tolist() == list(range(300, 320))
        assert (found.conflicts_with[20:300] < 0).all()

    def test_of_several_the_nearest_is_named(self, numbers, labels):
        copies = [numbers[0] + 1e-6, numbers[0] + 2e-6, numbers[0] + 3e-6]
        found = row_findings(np.vstack([numbers, copies]), [*labels, *[1 - labels[0]] * 3])
        assert found.conflicts_with[0] == 300
        assert found.conflicts_with[300:].tolist() == [0, 0, 0]

    def test_duplicates_do_not_hide_it(self, rng):
        numbers = rng.normal(size=(3000, 5))
        found = row_findings(np.vstack([numbers, *[numbers[:1]] * 9, numbers[0] + 1e-6]), [0] * 3009 + [1])
        assert found.conflicts_with[[0, 3009]].tolist() == [3009, 0]

    def test_of_the_same_label_it_is_no_conflict(self, numbers, labels):
        found = row_findings(np.vstack([numbers, numbers[:20] + 1e-6]), [*labels, *labels[:20]])
        assert (found.conflicts_with < 0).all()

    def test_another_category_or_a_gap_is_another_row(self, numbers, labels):
        numbers = numbers[np.argsort(-numbers[:, 2])]  # a gap is not like the largest number either
        table = pd.DataFrame(np.vstack([numbers, numbers[:2] + 1e-6]))
        table["word"] = ["a"] * 300 + ["a", "b"]
        table.iloc[300, 2] = np.nan
        found = row_findings(table, [*labels, *(1 - labels[:2])])
        assert (found.conflicts_with < 0).all()

    def test_columns_beyond_those_searched_by_count_too(self, rng, labels):
        numbers = rng.normal(size=(300, 40))
        near, far = numbers[0] + 1e-6, numbers[1] + 1e-6
        far[39] += 1
        found = row_findings(np.vstack([numbers, near, far]), [*labels, *(1 - labels[:2])])
        assert found.conflicts_with[300:].tolist() == [0, -1]

    @pytest.mark.parametrize("n_columns", [1, 2, 5, 20])
    def test_chance_seldom_brings_rows_so_near(self, rng, n_columns):
        found = row_findings(rng.normal(size=(5000, n_columns)), rng.integers(2, size=5000))
        assert (found.conflicts_with >= 0).mean() < 0.01

    def test_threads_change_nothing(self, numbers, labels):
        X, y = np.vstack([numbers, numbers[:20] + 1e-6]), [*labels, *(1 - labels[:20])]
        one, two = (row_findings(X, y, n_threads=n).conflicts_with for n in (1, 2))
        np.testing.assert_array_equal(one, two)


class TestOutliers:
    def test_a_number_far_from_all_others_is_named_by_its_column(self, numbers, labels):
        table = pd.DataFrame(numbers, columns=list("abcde"))
        table.loc[5, "c"], table.loc[9, "e"] = 1000, -1000
        found = row_findings(table, labels)
        assert found.outlying[5] == "c"
        assert found.outlying[9] == "e"
        assert (found.outlying != "").sum() == 2

    @pytest.mark.parametrize(
        "column",
        [
            np.r_[np.zeros(199), 1.0],  # a rare yes
            np.r_[np.zeros(100), np.ones(100)],
            np.arange(200.0),
            np.full(200, np.nan),
            np.r_[np.full(150, 9.0), np.full(50, 999.0)],  # a code, not a slip
        ],
    )
    def test_ordinary_columns_have_none(self, column):
        found = row_findings(column[:, np.newaxis], [0, 1] * 100)
        assert (found.outlying == "").all()

    def test_a_handful_of_rows_has_none(self):
        for numbers in ([1, 2, 999], [1, 2, 3, 999]):
            found = row_findings(np.reshape(numbers, (-1, 1)), np.arange(len(numbers)) % 2)
            assert (found.outlying == "").all()


def test_notes_say_it_in_words(numbers, labels):
    X = np.vstack([numbers, numbers[3]])
    X[7, 2] = 1e6
    found = row_findings(X, [*labels, 1 - labels[3]])
    notes = found.notes([f"R{k}" for k in range(301)], np.array([*labels, 1 - labels[3]]))
    assert notes[7] == "2 is far from all others"
    assert notes[300] == f"same as row R3; like row R3, which is {labels[3]}"
    assert notes[0] == ""
    assert repr(found) == "RowFindings: 1 duplicates, 2 conflicts, 1 outliers"


def test_it_is_a_small_part_of_an_audit(rng):
    from kfhe.audit import label_quality

    X, y = rng.normal(size=(20_000, 20)), rng.integers(2, size=20_000)
    started = time.process_time()
    row_findings(X, y)
    alone = time.process_time() - started
    started = time.process_time()
    label_quality(X, y, n_estimators=100, random_state=0, n_jobs=1, early_stopping=False)
    assert alone < 0.5 * (time.process_time() - started)
