"""Cells: all algorithms see the same rows and labels, and a result depends on the cell's name alone."""

import hashlib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kfhe.study.cells import fold_rows, make_fold, run_cells, seed_of
from kfhe.study.dataset import read_table
from kfhe.study.plan import Algorithm, Cell, Plan
from kfhe.study.sources import loaded

TREE = Algorithm("tree", "sklearn.tree.DecisionTreeClassifier", {"max_depth": 3})
BAYES = Algorithm("Bayes", "sklearn.naive_bayes.GaussianNB")
KFHE = Algorithm("KFHE-e", "KFHE-e", {"n_estimators": 3})


def results_of(plan, cells):
    return run_cells(plan, cells, partial(loaded, plan, None))


def test_folds_are_stratified_and_cut_up_the_rows(plan, csv):
    y = read_table(csv).y
    tests = []
    for fold in range(3):
        train, test = fold_rows(plan, Cell("small", "tree", 0.0, 0, fold), y)
        assert sorted([*train, *test]) == list(range(90))
        assert np.bincount(y[test]).tolist() == [10, 10, 10]
        tests.extend(test)
    assert sorted(tests) == list(range(90))


def test_folds_and_noise_are_the_same_for_all_algorithms_and_differ_by_repeat(plan, csv):
    dataset = read_table(csv)

    def drawn(algorithm, noise, repeat, fold=1):
        made = make_fold(plan, Cell("small", algorithm, noise, repeat, fold), dataset)
        return made.X_test.index.tolist(), made.y.tolist()

    assert drawn("tree", 0.2, 0) == drawn("Bayes", 0.2, 0)
    assert drawn("tree", 0.2, 0)[0] == drawn("tree", 0.0, 0)[0], "folds don't depend on the noise"
    assert drawn("tree", 0.2, 0)[0] != drawn("tree", 0.2, 1)[0]
    assert drawn("tree", 0.2, 0)[1] != drawn("tree", 0.2, 1)[1]


@pytest.mark.parametrize("noise_model", ["uniform", "pairwise", "border", "neighbourhood"])
def test_the_share_of_changed_labels_is_the_noise_level(plan, csv, noise_model):
    dataset, plan = read_table(csv), replace(plan, noise_model=noise_model)
    for noise in (0.2, 0.0):
        made = make_fold(plan, Cell("small", "tree", noise, 0, 0), dataset)
        assert (made.y != dataset.y[made.X.index]).mean() == noise
        assert (made.true == dataset.y[made.X_test.index]).all()


def test_noise_in_the_inputs_leaves_labels_and_test_rows(plan, csv):
    dataset, plan = read_table(csv), replace(plan, noise_model="inputs")
    made = make_fold(plan, Cell("small", "tree", 0.2, 0, 0), dataset)
    names = {"x0": "width", "x1": "height"}
    before = dataset.X.loc[made.X.index]
    assert (made.X.rename(columns=names) != before).all(axis=None)
    assert (made.y == dataset.y[made.X.index]).all()
    assert made.X_test.rename(columns=names).equals(dataset.X.loc[made.X_test.index])


def test_imbalance_thins_out_the_training_rows_alone(plan, csv):
    plan = replace(plan, noise_model="imbalance")
    made = make_fold(plan, Cell("small", "tree", 0.5, 0, 0), read_table(csv))
    assert sorted(np.bincount(made.y).tolist()) == [5, 10, 20]
    assert len(made.true) == 30


def test_given_labels_are_trained_on_and_true_ones_are_tested_against(reviewed):
    plan = Plan((str(reviewed),), (TREE,), (0.0, 0.5), folds=3, given="given", true="true")
    dataset = read_table(reviewed, roles=plan.roles)
    clean, noisy = (make_fold(plan, Cell("reviewed", "tree", noise, 0, 0), dataset) for noise in (0.0, 0.5))
    assert (clean.y == dataset.y[clean.X.index]).all()
    assert (clean.y != dataset.true[clean.X.index]).any()
    assert (clean.true == dataset.true[clean.X_test.index]).all()
    assert (noisy.y != clean.y).mean() == 0.5, "noise comes on top of the mistakes that are there"
    assert (noisy.true == clean.true).all()


def test_noise_is_made_once_for_all_algorithms(plan, monkeypatch):
    made = []
    monkeypatch.setattr("kfhe.study.cells.make_fold", lambda *given: made.append(given) or make_fold(*given))
    cells = [cell for cell in plan.cells() if cell.repeat == 0]
    results_of(plan, cells)
    assert len(cells) == 12
    assert len(made) == 6


def test_uniform_noise_is_what_it_always_was(plan, csv):
    """Result files go on: the same cells get the same labels."""
    made = make_fold(plan, Cell("small", "tree", 0.2, 1, 2), read_table(csv))
    assert hashlib.sha256(made.y.astype(np.int64).tobytes()).hexdigest()[:16] == "da3bc99e5b4b96c3"


def test_scores_are_against_the_true_labels_over_all_classes(csv):
    # A constant prediction is right on a third of each test fold: F1 is 0.5, 0 and 0
    constant = Algorithm("constant", "sklearn.dummy.DummyClassifier", {"strategy": "most_frequent"})
    plan = Plan((str(csv),), (constant,), noise_levels=(1.0,), folds=3)
    (result,) = results_of(plan, [Cell("small", "constant", 1.0, 0, 0)])
    assert result.error is None
    assert result.accuracy == pytest.approx(1 / 3)
    assert result.f1_macro == pytest.approx(0.5 / 3)


def test_components_are_those_of_the_classifier_however_many_steps_come_before_it(csv):
    bagging = Algorithm("Bagging", "Bagging", {"n_estimators": 4})  # after codes and imputation
    plan = Plan((str(csv),), (bagging,), folds=3)
    (result,) = results_of(plan, [Cell("small", "Bagging", 0.0, 0, 0)])
    assert result.components == 4


def test_a_result_holds_scores_times_components_and_the_first_folds_trace(csv):
    plan = Plan((str(csv),), (KFHE, BAYES), folds=3)
    first, other, bayes = results_of(
        plan,
        [
            Cell("small", "KFHE-e", 0.0, 0, 0),
            Cell("small", "KFHE-e", 0.0, 0, 1),
            Cell("small", "Bayes", 0.0, 0, 0),
        ],
    )
    assert 0.5 < first.f1_macro <= 1
    assert first.log_loss > 0
    assert 0.5 < first.roc_auc <= 1
    assert 0 < first.brier < 1
    assert 0 < first.calibration_error < 1
    assert min(first.fit_seconds, first.predict_seconds) > 0
    assert first.components == 4
    assert len(first.trace["gain"]) == 3
    assert other.trace is None
    assert bayes.components is bayes.trace is None


def test_a_classifier_without_probabilities_has_predictions_judged_only(csv):
    plan = Plan((str(csv),), (Algorithm("ridge", "sklearn.linear_model.RidgeClassifier"),), folds=3)
    (result,) = results_of(plan, plan.cells()[:1])
    assert result.log_loss is result.roc_auc is result.brier is result.calibration_error is None
    assert result.f1_macro > 0.5


def test_a_class_that_noise_has_wiped_out_is_no_trouble(tmp_path):
    # Two rows of class c, one in each training half: at full noise neither keeps its label
    lines = [f"{i % 7},{'a' if i % 2 else 'b'}" for i in range(40)] + ["9,c", "9,c"]
    path = tmp_path / "rare.csv"
    path.write_text("x,class\n" + "\n".join(lines) + "\n")
    plan = Plan((str(path),), (Algorithm("XGBoost", "XGBoost", {"n_estimators": 2}), TREE), (1.0,), folds=2)
    for result in results_of(plan, plan.cells()):
        assert result.error is None
        assert result.log_loss > 0


def test_an_error_of_a_classifier_is_a_result(csv):
    plan = Plan(
        (str(csv),), (Algorithm("bad", "sklearn.tree.DecisionTreeClassifier", {"max_depth": -1}),), folds=3
    )
    (result,) = results_of(plan, plan.cells()[:1])
    assert result.f1_macro is None
    assert result.error.startswith("InvalidParameterError: The 'max_depth' parameter")


def test_the_order_of_cells_makes_no_difference(plan):
    def scores(cells):
        return {result.cell: (result.f1_macro, result.log_loss) for result in results_of(plan, cells)}

    cells = plan.cells()
    assert scores(cells) == scores(cells[::-1]) == scores(cells[5:] + cells[:5])


def test_seeds_differ_by_name_and_fit_into_31_bits():
    seeds = {seed_of(0, "iris", algorithm, fold) for algorithm in "abc" for fold in range(100)}
    assert len(seeds) == 300
    assert all(0 <= seed < 2**31 for seed in seeds)
    # What was drawn in one version is drawn in the next
    assert seed_of(2019, "iris", 0, "folds") == 1494572482
    assert seed_of(1, 23) != seed_of(12, 3)
