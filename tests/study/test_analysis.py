"""The analysis: fed with the paper's own scores, it finds what the paper prints."""

import numpy as np
import pytest

from kfhe.study.analysis import Analysis
from kfhe.study.cells import Result
from kfhe.study.errors import StudyError
from kfhe.study.paper import published
from kfhe.study.plan import Algorithm, Plan
from kfhe.study.run import run
from kfhe.study.store import Store


@pytest.fixture(scope="module")
def paper(paper_study):
    return Analysis(paper_study)


def study_of(path, scores, metric="f1_macro"):
    """Analyse a study whose mean scores are given: datasets by algorithms."""
    names = list(next(iter(scores.values())))
    plan = Plan(tuple(scores), tuple(Algorithm(name, "CART") for name in names), folds=2, metric=metric)
    with Store.write(path, plan, {"kfhe": "0"}) as store:
        store.note_datasets([], dict.fromkeys(scores, "made up"))
        store.add(
            Result(cell, **{metric: scores[cell.dataset][cell.algorithm] + (0.01 if cell.fold else -0.01)})
            for cell in plan.cells()
            if scores[cell.dataset][cell.algorithm] is not None
        )
    return Analysis(path)


def test_average_ranks_of_the_papers_scores_are_those_it_prints(paper):
    for noise in paper.noise_levels:
        printed = published.average_ranks(noise)
        np.testing.assert_allclose(paper.average_ranks.loc[noise, printed.index], printed, atol=0.005 + 1e-9)


def test_tests_of_the_papers_scores_are_those_it_prints(paper):
    for noise in paper.noise_levels:
        found, printed = paper.posthoc(noise), published.posthoc(noise)
        assert len(printed) == 21
        for pair, pvalue in printed.items():
            assert found.loc[*pair] == pytest.approx(pvalue, abs=0.02)
        counts = {(r.first, r.second): (r.wins, r.losses, r.ties) for r in paper.wilcoxon(noise).itertuples()}
        assert counts == {pair: values[:3] for pair, values in published.wilcoxon(noise).items()}


def test_the_comparison_with_itself_shows_no_difference(paper):
    comparison = paper.comparison
    assert len(comparison) == 30 * 7 * 5
    assert comparison["difference"].abs().max() < 1e-12
    assert set(comparison.loc[~comparison["comparable"], "dataset"]) == {"physio", "flags", "newthyroid"}
    clean = comparison.set_index(["dataset", "algorithm", "noise"])["authors_program"]
    assert clean["iris", "KFHE-e", 0.0] == 0.9457
    assert clean["monks", "KFHE-l", 0.0] == 1
    assert np.isnan(clean["iris", "KFHE-e", 0.2])
    assert np.isnan(clean["iris", "CART", 0.0])


def test_means_deviations_and_ranks(tmp_path):
    analysis = study_of(
        tmp_path / "r.sqlite",
        {"one": {"A": 0.9, "B": 0.8, "C": 0.8}, "two": {"A": 0.3, "B": 0.5, "C": 0.4}},
    )
    assert analysis.means(0.0).loc["one"].tolist() == pytest.approx([0.9, 0.8, 0.8])
    assert analysis.deviations(0.0).at["one", "A"] == pytest.approx(0.02 / np.sqrt(2))
    assert analysis.ranks(0.0).to_numpy().tolist() == [[1, 2.5, 2.5], [3, 1, 2]]
    assert analysis.average_ranks.loc[0.0].tolist() == [2, 1.75, 2.25]


def test_average_ranks_are_the_averages_of_the_ranks(tmp_path):
    """Also where means differ by rounding alone: 0.1 + 0.2 is more than 0.3."""
    scores = {"one": {"A": 0.1 + 0.2, "B": 0.3, "C": 0.2}, "two": {"A": 0.5, "B": 0.5, "C": 0.6}}
    plan = Plan(tuple(scores), tuple(Algorithm(name, "CART") for name in "ABC"), folds=2)
    with Store.write(tmp_path / "r.sqlite", plan, {"kfhe": "0"}) as store:
        store.note_datasets([], dict.fromkeys(scores, "made up"))
        store.add(Result(cell, f1_macro=scores[cell.dataset][cell.algorithm]) for cell in plan.cells())
    analysis = Analysis(tmp_path / "r.sqlite")
    assert analysis.ranks(0.0).to_numpy().tolist() == [[1, 2, 3], [2.5, 2.5, 1]]
    assert analysis.average_ranks.loc[0.0].tolist() == analysis.ranks(0.0).mean().tolist()


def test_a_low_log_loss_is_a_good_one(tmp_path):
    scores = {"one": {"A": 0.9, "B": 0.2}, "two": {"A": 0.7, "B": 0.1}}
    analysis = study_of(tmp_path / "r.sqlite", scores, metric="log_loss")
    assert analysis.average_ranks.loc[0.0].tolist() == [2, 1]
    assert analysis.wilcoxon(0.0)["losses"].tolist() == [2]
    assert analysis.comparison.empty, "the paper prints macro F1 only"


def test_other_metrics_are_ranked_among_the_algorithms_that_have_them(tmp_path):
    plan = Plan(("one", "two"), tuple(Algorithm(name, "CART") for name in "ABC"), folds=2)
    found = {"A": (0.9, 0.3), "B": (0.8, 0.1), "C": (0.7, None)}
    with Store.write(tmp_path / "r.sqlite", plan, {"kfhe": "0"}) as store:
        store.note_datasets([], dict.fromkeys(plan.datasets, "made up"))
        for cell in plan.cells():
            f1, error = found[cell.algorithm]
            store.add([Result(cell, f1_macro=f1, calibration_error=error)])
    analysis = Analysis(tmp_path / "r.sqlite")
    assert analysis.average_ranks.loc[0.0].to_dict() == {"A": 1, "B": 2, "C": 3}
    (calibration,) = analysis.other_metrics
    assert calibration.metric_name == "calibration error"
    assert calibration.average_ranks.loc[0.0].to_dict() == {"B": 1, "A": 2}, "a low one is a good one"
    assert analysis.metric == "f1_macro"
    assert list(analysis.means(0.0)) == ["A", "B", "C"]


def test_a_dataset_that_an_algorithm_failed_on_is_left_out_of_ranks_and_tests(tmp_path):
    scores = {"one": {"A": 0.9, "B": 0.8}, "two": {"A": 0.3, "B": None}, "three": {"A": 0.5, "B": 0.6}}
    analysis = study_of(tmp_path / "r.sqlite", scores)
    assert list(analysis.complete(0.0).index) == ["one", "three"]
    assert analysis.average_ranks.loc[0.0].tolist() == [1.5, 1.5]
    assert analysis.friedman["datasets"].tolist() == [2]


def test_groups_are_neighbours_that_do_not_differ(paper):
    # As the paper's rank plots show: without noise, KFHE-e, AdaBoost, KFHE-l and GBM are alike
    for noise in paper.noise_levels:
        pvalues = paper.posthoc(noise)
        order = list(paper.average_ranks.loc[noise].sort_values().index)
        for group in paper.groups(noise):
            positions = [order.index(name) for name in group]
            assert positions == list(range(positions[0], positions[0] + len(group)))
            assert all(pvalues.at[a, b] >= 0.05 for a in group for b in group)
    assert paper.groups(0.0)[0] == ["KFHE-e", "AdaBoost", "KFHE-l", "GBM"]


def test_one_dataset_is_enough_for_tables_but_not_for_tests(plan, tmp_path):
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    analysis = Analysis(tmp_path / "r.sqlite")
    assert not analysis.can_test(0.0)
    assert analysis.friedman.empty
    assert analysis.times["cells"].tolist() == [12, 12]


def test_a_study_without_results_is_said(plan, tmp_path):
    Store.write(tmp_path / "r.sqlite", plan, {}).close()
    with pytest.raises(StudyError, match="there are no results in it yet"):
        Analysis(tmp_path / "r.sqlite")
