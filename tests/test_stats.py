"""The rank tests: the paper's tables follow from its scores, and what must hold for any scores does."""

import math
import sys
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from kfhe import stats

pd = pytest.importorskip("pandas")

GOLDEN = Path(__file__).parent / "golden"
PAPER = files("kfhe.study.paper") / "published"
NOISE_PERCENTS = (0, 5, 10, 15, 20)


def published(name, noise_percent):
    """What the paper prints in one of its tables, for one level of noise."""
    with (PAPER / name).open() as file:
        table = pd.read_csv(file)
    return table[table["noise_percent"] == noise_percent].drop(columns="noise_percent")


def paper_scores(noise_percent):
    scores = published("f1_scores.csv", noise_percent)
    columns = list(dict.fromkeys(scores["algorithm"]))
    return scores.pivot(index="dataset", columns="algorithm", values="f1_macro_mean")[columns]


# What the paper prints follows from its scores (which it prints with four decimals)


@pytest.mark.parametrize("noise_percent", NOISE_PERCENTS)
def test_average_ranks_of_the_paper_follow_from_its_scores(noise_percent):
    expected = published("average_ranks.csv", noise_percent).iloc[0]
    found = stats.average_ranks(paper_scores(noise_percent))
    assert list(found.index) == list(expected.index)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.005 + 1e-9)


def test_ranks_are_by_dataset_and_what_has_no_score_has_no_rank():
    scores = pd.DataFrame([[0.9, 0.8, 0.8], [0.3, np.nan, 0.4]], index=["one", "two"], columns=list("ABC"))
    expected = pd.DataFrame([[1.0, 2.5, 2.5], [2, np.nan, 1]], index=scores.index, columns=scores.columns)
    pd.testing.assert_frame_equal(stats.ranks(scores), expected)
    np.testing.assert_array_equal(stats.ranks([[0.5]]), [[1]])
    with pytest.raises(ValueError, match="scores must be finite, got inf for dataset 0, algorithm 1"):
        stats.ranks([[0.5, np.inf]])


@pytest.mark.parametrize("noise_percent", NOISE_PERCENTS)
def test_win_lose_tie_counts_of_the_paper_follow_from_its_scores(noise_percent):
    columns = ["first", "second", "wins", "losses", "ties"]
    expected = published("wilcoxon.csv", noise_percent)[columns].reset_index(drop=True)
    found = stats.wilcoxon_table(paper_scores(noise_percent))[columns]
    assert len(found) == 21
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_wilcoxon_pvalues_of_the_paper_are_half_of_the_two_sided_ones():
    found = pd.concat([stats.wilcoxon_table(paper_scores(noise)) for noise in NOISE_PERCENTS])
    expected = pd.concat([published("wilcoxon.csv", noise) for noise in NOISE_PERCENTS])
    away = np.abs(found["pvalue"].to_numpy() / 2 - expected["pvalue"].to_numpy())
    assert len(away) == 105
    # The authors' program let rounding order equal differences, which shows in the third decimal
    assert away.max() < 0.005
    assert np.sum(away < 0.001) >= 101


@pytest.mark.parametrize("noise_percent", NOISE_PERCENTS)
def test_aligned_rank_posthoc_of_the_paper_follows_from_its_scores(noise_percent):
    table = stats.aligned_ranks_posthoc(paper_scores(noise_percent))
    expected = published("aligned_ranks_posthoc.csv", noise_percent)
    pairs = zip(expected["first"], expected["second"], strict=True)
    found = np.array([table.loc[first, second] for first, second in pairs])
    assert len(found) == 21
    np.testing.assert_allclose(found, expected["pvalue"], rtol=0, atol=0.02)
    np.testing.assert_array_equal(found < 0.05, expected["pvalue"] < 0.05)


@pytest.mark.parametrize("noise_percent", NOISE_PERCENTS)
def test_algorithms_of_the_paper_are_not_equally_good(noise_percent):
    assert stats.friedman_aligned_ranks(paper_scores(noise_percent)).pvalue < 0.05


# Five classifiers on 30 datasets: García and Herrera (JMLR 9, 2008), the example of the R package scmamp


def garcia_herrera_scores():
    return pd.read_csv(GOLDEN / "garcia_herrera_2008.csv", index_col="dataset")


def test_average_ranks_are_those_of_garcia_and_herrera():
    ranks = stats.average_ranks(garcia_herrera_scores())
    np.testing.assert_allclose(ranks, [2.100, 3.250, 2.200, 4.333, 3.117], rtol=0, atol=0.0005)


def test_aligned_ranks_are_those_of_exact_arithmetic():
    # Whole numbers, and means of four of them: floating-point arithmetic is exact on these
    thousandths = garcia_herrera_scores().mul(1000).round().iloc[:, :4]
    rows = [[Fraction(int(cell)) for cell in row] for row in thousandths.to_numpy()]
    n, k = len(rows), len(rows[0])
    aligned = [[cell - sum(row) / k for cell in row] for row in rows]
    everything = [cell for row in aligned for cell in row]

    def rank(value):
        return sum(other > value for other in everything) + Fraction(everything.count(value) + 1, 2)

    ranks = [[rank(cell) for cell in row] for row in aligned]
    of_algorithms = [sum(column) for column in zip(*ranks, strict=True)]
    of_datasets = [sum(row) for row in ranks]
    # As García et al. (2010) write it
    numerator = (k - 1) * (sum(r**2 for r in of_algorithms) - Fraction(k * n**2, 4) * (k * n + 1) ** 2)
    denominator = Fraction(k * n * (k * n + 1) * (2 * k * n + 1), 6) - Fraction(1, k) * sum(
        r**2 for r in of_datasets
    )

    result = stats.friedman_aligned_ranks(thousandths)
    np.testing.assert_allclose(result.mean_ranks, [float(r / n) for r in of_algorithms], rtol=1e-13)
    assert result.statistic == pytest.approx(float(numerator / denominator), rel=1e-12)


def test_aligned_ranks_agree_with_scmamp():
    result = stats.friedman_aligned_ranks(garcia_herrera_scores())
    mean_ranks = [46.617, 83.017, 57.45, 117.367, 73.05]
    np.testing.assert_allclose(result.mean_ranks, mean_ranks, rtol=0, atol=0.0005)
    assert result.statistic == pytest.approx(41.696, abs=0.0005)
    # scmamp sums the means in another order: rounding parts other ties
    assert result.statistic == pytest.approx(41.691, abs=0.01)
    assert result.pvalue == pytest.approx(1.933e-08, rel=0.01)


def test_posthoc_agrees_with_scmamp():
    # As scmamp prints them: unadjusted, pair by pair
    of_scmamp = [
        *(1.174850e-03, 3.341698e-01, 2.843421e-10, 1.845167e-02),
        *(2.265711e-02, 2.197407e-03, 3.742777e-01),
        *(9.226472e-08, 1.643229e-01),
        7.793722e-05,
    ]
    found = stats.aligned_ranks_posthoc(garcia_herrera_scores()).to_numpy()[np.triu_indices(5, 1)]
    np.testing.assert_allclose(found, stats.finner(of_scmamp), rtol=0.03)


# What must hold for any scores: tenths, whose differences are not exact, and for aligned ranks eighths in 2,
# 4 or 8 columns, whose means are. Ties are common in both


def whole(shape):
    return arrays(np.int64, shape, elements=st.integers(0, 10))


TABLES = whole(array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=7))
EXACT = st.tuples(st.integers(2, 7), st.sampled_from([2, 4, 8])).flatmap(whole)


def same_result(found, expected):
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-12)
    np.testing.assert_allclose(found.mean_ranks, expected.mean_ranks, rtol=1e-13)


@given(TABLES, st.randoms(use_true_random=False))
def test_order_of_datasets_does_not_matter(table, random):
    scores = table / 10
    shuffled = scores[random.sample(range(len(scores)), len(scores))]
    np.testing.assert_allclose(stats.average_ranks(shuffled), stats.average_ranks(scores), rtol=1e-13)
    pd.testing.assert_frame_equal(stats.wilcoxon_table(shuffled), stats.wilcoxon_table(scores))


@given(TABLES, st.randoms(use_true_random=False))
def test_order_of_algorithms_does_not_matter(table, random):
    scores = pd.DataFrame(table / 10)
    shuffled = scores[random.sample(list(scores.columns), scores.shape[1])]
    np.testing.assert_array_equal(stats.average_ranks(shuffled)[scores.columns], stats.average_ranks(scores))


@given(EXACT, st.randoms(use_true_random=False))
def test_order_does_not_matter_for_aligned_ranks(table, random):
    scores = pd.DataFrame(table / 8)
    shuffled = scores.sample(frac=1, random_state=random.randrange(2**32))
    shuffled = shuffled[random.sample(list(scores.columns), scores.shape[1])]
    found, expected = stats.friedman_aligned_ranks(shuffled), stats.friedman_aligned_ranks(scores)
    same_result(found._replace(mean_ranks=found.mean_ranks[scores.columns]), expected)
    pvalues = stats.aligned_ranks_posthoc(shuffled).loc[scores.columns, scores.columns]
    pd.testing.assert_frame_equal(pvalues, stats.aligned_ranks_posthoc(scores), rtol=1e-10)


@given(EXACT.flatmap(lambda table: st.tuples(st.just(table), whole((len(table), 1)))))
def test_a_harder_dataset_changes_no_aligned_rank(tables):
    scores, shift = tables[0] / 8, tables[1] / 8
    same_result(stats.friedman_aligned_ranks(scores - shift), stats.friedman_aligned_ranks(scores))
    np.testing.assert_array_equal(
        stats.aligned_ranks_posthoc(scores - shift), stats.aligned_ranks_posthoc(scores)
    )


@given(TABLES)
def test_scores_in_another_unit_give_the_same_results(table):
    np.testing.assert_array_equal(stats.average_ranks(table / 10), stats.average_ranks(table))
    same_result(stats.friedman_aligned_ranks(table / 8), stats.friedman_aligned_ranks(table))
    pd.testing.assert_frame_equal(stats.wilcoxon_table(table / 10), stats.wilcoxon_table(table))


@given(TABLES)
def test_ranks_add_up(table):
    n, k = table.shape
    assert np.sum(stats.average_ranks(table)) == pytest.approx(k * (k + 1) / 2)
    assert np.mean(stats.friedman_aligned_ranks(table).mean_ranks) == pytest.approx((n * k + 1) / 2)


@given(TABLES)
def test_posthoc_is_symmetric_with_ones_on_the_diagonal(table):
    pvalues = stats.aligned_ranks_posthoc(table)
    assert isinstance(pvalues, np.ndarray)
    np.testing.assert_array_equal(pvalues, pvalues.T)
    np.testing.assert_array_equal(np.diag(pvalues), 1)


@given(TABLES)
def test_a_loss_of_the_first_is_a_win_of_the_second(table):
    one_way, other_way = stats.wilcoxon_table(table[:, :2]), stats.wilcoxon_table(table[:, 1::-1])
    swapped = other_way.rename(columns={"wins": "losses", "losses": "wins"})[one_way.columns]
    pd.testing.assert_frame_equal(swapped, one_way)
    assert one_way[["wins", "losses", "ties"]].iloc[0].sum() == len(table)


# Small cases by hand


def test_the_highest_score_has_rank_one_and_ties_share_the_mean():
    np.testing.assert_array_equal(stats.average_ranks([[3, 2, 2, 1], [1, 2, 3, 4]]), [2.5, 2.75, 2.25, 2.5])


def test_aligned_ranks_by_hand():
    # Aligned: 2, 0, -2 and 1, 0, -1; ranks 1, 3.5, 6 and 2, 3.5, 5. T = 2 * 128 / (91 - 220.5 / 3)
    result = stats.friedman_aligned_ranks([[7, 5, 3], [3, 2, 1]])
    np.testing.assert_array_equal(result.mean_ranks, [1.5, 3.5, 5.5])
    assert result.statistic == pytest.approx(2 * 2**2 * (4 + 4) / (91 - 3 * 2 * 3.5**2))
    assert result.pvalue == pytest.approx(math.exp(-result.statistic / 2))


def test_wilcoxon_splits_the_ranks_of_ties():
    # Differences 3, 2, 1, 0: the first algorithm has ranks 4 + 3 + 2 and half of 1; mean 5, variance 7.5
    row = stats.wilcoxon_table([[3, 0], [2, 0], [1, 0], [0, 0]]).iloc[0]
    assert (row["first"], row["second"], row["wins"], row["losses"], row["ties"]) == (0, 1, 3, 0, 1)
    assert row["pvalue"] == pytest.approx(math.erfc((9.5 - 5) / math.sqrt(7.5) / math.sqrt(2)))


def test_algorithms_without_any_difference_have_pvalue_one():
    scores = np.repeat([[0.1], [0.7], [0.9]], 3, axis=1)
    table = stats.wilcoxon_table(scores)
    assert table["ties"].tolist() == [3, 3, 3]
    assert table["pvalue"].tolist() == [1, 1, 1]
    assert stats.friedman_aligned_ranks(scores)[:2] == (0, 1)
    np.testing.assert_array_equal(stats.aligned_ranks_posthoc(scores), np.ones((3, 3)))
    np.testing.assert_array_equal(stats.average_ranks(np.zeros((2, 3))), [2, 2, 2])


def test_only_what_rounding_may_have_parted_is_a_tie_to_wilcoxon():
    scores = np.array([[0.5, 0.5], [0.7, 0.7]])
    for gap, ties in [(1e-14, 2), (1e-10, 0)]:
        parted = scores + np.array([gap, 0])
        assert stats.wilcoxon_table(parted)["ties"].tolist() == [ties]


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e200])
def test_scores_of_any_size_keep_their_ranks(scale):
    scores = np.array([[7, 5, 3], [3, 2, 1]]) * scale
    np.testing.assert_array_equal(stats.friedman_aligned_ranks(scores).mean_ranks, [1.5, 3.5, 5.5])


def test_results_for_a_frame_carry_the_names_of_the_algorithms():
    scores = pd.DataFrame({"KFHE": [0.9, 0.8], "CART": [0.7, 0.6]}, index=["iris", "zoo"])
    assert list(stats.average_ranks(scores).index) == ["KFHE", "CART"]
    assert list(stats.friedman_aligned_ranks(scores).mean_ranks.index) == ["KFHE", "CART"]
    pvalues = stats.aligned_ranks_posthoc(scores)
    assert list(pvalues.index) == list(pvalues.columns) == ["KFHE", "CART"]
    assert stats.wilcoxon_table(scores)[["first", "second"]].to_numpy().tolist() == [["KFHE", "CART"]]


# Finner's adjustment

PVALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(PVALUES)
def test_finner_follows_its_formula(pvalues):
    m, ordered = len(pvalues), sorted(pvalues)
    steps = [1 - (1 - p) ** (m / j) for j, p in enumerate(ordered, start=1)]
    expected = [max(steps[: ordered.index(p) + 1]) for p in pvalues]
    np.testing.assert_allclose(stats.finner(pvalues), expected, rtol=0, atol=1e-14)


@given(PVALUES)
def test_finner_keeps_the_order_and_lowers_nothing(pvalues):
    adjusted = stats.finner(pvalues)
    assert np.all(np.diff(adjusted[np.argsort(pvalues)]) >= 0)
    assert np.all(adjusted >= np.array(pvalues) * (1 - 1e-14))
    assert np.all(adjusted <= 1)


@given(PVALUES, st.randoms(use_true_random=False))
def test_finner_answers_in_the_order_of_its_input(pvalues, random):
    order = random.sample(range(len(pvalues)), len(pvalues))
    np.testing.assert_array_equal(stats.finner(np.array(pvalues)[order]), stats.finner(pvalues)[order])


def test_finner_keeps_tiny_pvalues():
    np.testing.assert_allclose(stats.finner([0.5, 1e-30]), [0.5, 2e-30])


@pytest.mark.parametrize(
    ("pvalues", "message"),
    [
        ([0.5, 1.5], r"between 0 and 1, got 1\.5 at position 1"),
        ([-0.1], r"between 0 and 1, got -0\.1 at position 0"),
        ([0.1, 0.2, np.nan], "between 0 and 1, got nan at position 2"),
        ([[0.1, 0.2]], "must have 1 dimension, got 2"),
    ],
)
def test_finner_says_which_pvalue_is_none(pvalues, message):
    with pytest.raises(ValueError, match=message):
        stats.finner(pvalues)


# Bad input

TESTS = [
    stats.average_ranks,
    stats.friedman_aligned_ranks,
    stats.aligned_ranks_posthoc,
    stats.wilcoxon_table,
]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.1, 0.2], "must have 2 dimensions, datasets by algorithms, got 1"),
        ([[0.1, 0.2]], r"at least 2 datasets and 2 algorithms \(columns\), got 1 and 2"),
        ([[0.1], [0.2], [0.3]], r"at least 2 datasets and 2 algorithms \(columns\), got 3 and 1"),
        ([[0.1, 0.2], [0.3, np.nan]], "got nan for dataset 1, algorithm 1"),
        ([[0.1, 0.2], [np.inf, 0.3]], "got inf for dataset 1, algorithm 0"),
        ([[0.1, 0.2], [0.3]], "must be a table of numbers"),
        (
            pd.DataFrame({"KFHE": [0.9, None], "CART": [0.8, 0.7]}, index=["iris", "zoo"]),
            "got nan for dataset zoo, algorithm KFHE",
        ),
        (
            pd.DataFrame({"KFHE": [0.9, None], "CART": [0.8, 0.7]}, index=["iris", "zoo"]).convert_dtypes(),
            "got nan for dataset zoo, algorithm KFHE",
        ),
        (
            pd.DataFrame({"dataset": ["iris", "zoo"], "KFHE": [0.9, 0.8]}),
            "'iris'.* names of the datasets belong in the index",
        ),
    ],
)
def test_bad_scores_get_an_error_that_says_what_is_wrong(test, scores, message):
    with pytest.raises(ValueError, match=message):
        test(scores)


def test_only_tables_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    scores = [[0.9, 0.8], [0.7, 0.6]]
    for test in (stats.average_ranks, stats.friedman_aligned_ranks, stats.aligned_ranks_posthoc):
        test(scores)
    with pytest.raises(ImportError, match=r"pip install \"kfhe\[study\]\""):
        stats.wilcoxon_table(scores)
