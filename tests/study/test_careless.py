"""Careless tables: what stands behind a dataset's name is added to it, and nothing else changes."""

import numpy as np
import pytest

from kfhe.study.careless import COLUMNS, COPIES, copied, split_additions
from kfhe.study.cells import make_fold, run_cells
from kfhe.study.errors import StudyError
from kfhe.study.plan import PRESETS, Algorithm, Cell, Plan
from kfhe.study.sources import load


def plan(*datasets):
    return Plan(datasets, (Algorithm("CART", "CART"),), noise_levels=(0.2,))


def fold(name):
    return make_fold(plan(name), Cell(name, "", 0.2, 0, 1), load(name))


def test_columns_are_added_behind_the_others_and_mean_nothing():
    plain, careless = load("wine"), load("wine+code+id")
    assert [*careless.X.columns] == [*plain.X.columns, "code", "id"]
    assert careless.categorical == ["code", "id"]
    assert careless.X["id"].nunique() == len(careless.X)
    assert careless.X["code"].nunique() <= len(careless.X) // 4
    assert (careless.y == plain.y).all()


def test_the_folds_and_the_noise_are_those_of_the_dataset_itself():
    plain, careless = fold("wine"), fold("wine+code+id")
    assert (plain.y == careless.y).all()
    assert (plain.X.to_numpy() == careless.X.iloc[:, :-2].to_numpy()).all()
    assert (plain.true == careless.true).all()


@pytest.mark.parametrize(("name", "share"), COPIES.items())
def test_so_many_training_rows_stand_twice_with_their_labels(name, share):
    plain, careless = fold("wine"), fold(f"wine+{name}")
    n = len(plain.y)
    assert len(careless.y) == n + round(share * n)
    assert len(careless.X_test) == len(plain.X_test)
    rows = np.column_stack([careless.X.to_numpy(), careless.y])
    assert len(np.unique(rows, axis=0)) == len(np.unique(np.column_stack([plain.X, plain.y]), axis=0))


def test_no_row_is_copied_more_than_once():
    rows = copied(np.arange(100), ("twice30",), 0)
    assert np.bincount(rows).max() == 2


@pytest.mark.parametrize("name", ["wine+", "wine+nonsense", "c++.csv", "a+code+nonsense"])
def test_other_names_with_a_plus_are_names(name):
    assert split_additions(name) == (name, ())


def test_an_unknown_addition_is_told():
    with pytest.raises(StudyError, match="wine\\+nonsense"):
        load("wine+nonsense")


def test_a_file_takes_additions_too(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("x,class\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    dataset = load(f"{path}+zip")
    assert [*dataset.X.columns] == ["x", "zip"]


def test_the_preset_needs_no_files_and_has_every_kind_of_addition_but_few():
    assert "careless" in PRESETS
    names = Plan.preset("careless").datasets
    for name in names:
        assert load(name).X.shape[0] > 0
    added = {each for name in names for each in split_additions(name)[1]}
    assert added <= {*COLUMNS, *COPIES}
    assert {"code", "id", "zip", "twice30", "twice100"} <= added


def test_columns_that_the_robust_classifier_leaves_out_change_no_score_at_all():
    robust = Algorithm("Robust KFHE", "Robust KFHE", {"n_estimators": 10})
    names = ("wine", "wine+code+id")
    of_robust = Plan(names, (robust,), noise_levels=(0.2,))
    plain, careless = run_cells(of_robust, [Cell(name, "Robust KFHE", 0.2, 0, 1) for name in names], load)
    assert plain.error is careless.error is None
    assert plain.log_loss == careless.log_loss
