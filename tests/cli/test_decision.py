"""Which class is predicted: rare ones are favoured, unless somebody says otherwise, and that is told."""

import json

import numpy as np
import pandas as pd
import pytest

import kfhe as library

LIKELIEST = ("--decision", "likeliest")


@pytest.fixture(autouse=True)
def imbalanced(elsewhere):
    """Write a table of which a tenth of the rows are of a rare class; return its rows."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(600, 3)).round(3), columns=list("abc"))
    rare = rows["a"] + rng.normal(scale=0.7, size=600) > 1.6
    rows.assign(label=np.where(rare, "rare", "usual")).to_csv("table.csv", index=False)
    return rows


@pytest.fixture
def model(kfhe):
    kfhe("fit", "table.csv", "-t", "label", "--n-estimators", 20, "-o", "model.kfhe")
    return "model.kfhe"


def predicted(options, kfhe):
    _, said = kfhe("predict", "model.kfhe", "table.csv", *options, "-o", "out.csv")
    return pd.read_csv("out.csv"), said


@pytest.mark.parametrize("kept", [(), ("--keep", "a")], ids=["", "kept"])
def test_predictions_that_are_not_the_likeliest_class_are_counted(kfhe, model, kept):
    found, said = predicted(["--proba", *kept], kfhe)
    likeliest = np.where(found["proba_rare"] > 0.5, "rare", "usual")
    n_others = (likeliest != found["prediction"]).sum()
    assert n_others > 5
    assert f"table.csv: {n_others} predictions are not the likeliest class" in said
    assert "--decision likeliest" in said


def test_the_likeliest_class_is_one_option_away(kfhe, model, imbalanced):
    found, said = predicted(["--proba", *LIKELIEST], kfhe)
    likeliest = np.where(found["proba_rare"] > 0.5, "rare", "usual")
    assert found["prediction"].tolist() == likeliest.tolist()
    assert "likeliest" not in said
    assert predicted(LIKELIEST, kfhe)[0]["prediction"].tolist() == likeliest.tolist()
    kfhe("fit", "table.csv", "-t", "label", "--n-estimators", 20, *LIKELIEST, "-o", "likeliest.kfhe")
    assert library.load("likeliest.kfhe").predict(imbalanced).tolist() == likeliest.tolist()
    found, _ = predicted(["--decision", "1"], kfhe)
    assert (found["prediction"] == "rare").sum() > (library.load(model).predict(imbalanced) == "rare").sum()


def test_evaluate_tells_what_the_likeliest_class_would_give(kfhe):
    table = ("evaluate", "table.csv", "-t", "label", "--n-estimators", 20, "--folds", 3)
    favoured = json.loads(kfhe(*table, "--json")[0])
    likeliest = json.loads(kfhe(*table, *LIKELIEST, "--json")[0])
    assert likeliest["likeliest"] is None
    assert favoured["accuracy"] < favoured["likeliest"]["accuracy"] == likeliest["accuracy"]
    assert favoured["f1_macro"] != favoured["likeliest"]["f1_macro"] == likeliest["f1_macro"]
    out = kfhe(*table)[0].decode()
    assert "Predictions favour rare classes. With --decision likeliest" in out
    assert f"accuracy {likeliest['accuracy']:.4f}" in " ".join(out.split())
    assert "favour" not in kfhe(*table, *LIKELIEST)[0].decode()


def test_a_model_file_is_evaluated_by_either_decision(kfhe, model):
    table = ("evaluate", "table.csv", "-t", "label", "--model", model, "--json")
    favoured, likeliest = (json.loads(kfhe(*table, *more)[0]) for more in ((), LIKELIEST))
    assert favoured["likeliest"]["accuracy"] == likeliest["accuracy"] != favoured["accuracy"]


def test_the_papers_models_have_no_decision_but_the_likeliest(kfhe):
    kfhe("fit", "table.csv", "-t", "label", "--model", "kfhe-e", "--n-estimators", 3, "-o", "model.kfhe")
    plain, said = predicted(["--proba"], kfhe)
    assert "likeliest" not in said
    assert predicted(["--proba", *LIKELIEST], kfhe)[0].equals(plain)
    _, said = kfhe("predict", "model.kfhe", "table.csv", "--decision", "balanced", "-o", "x.csv", code=1)
    assert "--decision is for robust models" in said


def test_figures_of_the_training_table_are_said_to_be_too_good(kfhe, model):
    table = ("evaluate", "table.csv", "-t", "label", "--model", model)
    _, said = kfhe(*table)
    assert "has as many rows of each class as the training table" in said
    assert "kfhe evaluate table.csv --target label" in said
    rows = pd.read_csv("table.csv")
    rows.iloc[1:].to_csv("table.csv", index=False)
    assert "trained on" not in kfhe(*table)[1]


def test_repeats_are_other_folds(kfhe):
    table = ("evaluate", "table.csv", "-t", "label", "--n-estimators", 3, "--folds", 2, "--json")
    once, more, again = (
        json.loads(kfhe(*table, *options)[0])
        for options in ((), ("--repeats", 3), ("--random-state", 1, "--repeats", 1))
    )
    assert len(more["tests"]) == 6
    assert more["how"] == "table.csv: 2-fold cross-validation, 3 times"
    assert more["tests"][:2] == once["tests"]
    assert len({test["log_loss"] for test in more["tests"]}) == 6
    assert more["accuracy"] == pytest.approx(np.mean([test["accuracy"] for test in more["tests"]]))
    assert again["how"] == once["how"] == "table.csv: 2-fold cross-validation"
    held_out = json.loads(kfhe(*table[:-3], "--holdout", 0.3, "--repeats", 2, "--json")[0])
    assert len(held_out["tests"]) == 2


@pytest.mark.parametrize("option", ["--keep", "--drop"])
def test_columns_are_named_alike(kfhe, model, option):
    """By commas, by repeating the option, and with * for any letters."""
    rows = pd.read_csv("table.csv").assign(x_1=1, x_2=2)
    rows.to_csv("more.csv", index=False)
    if option == "--keep":
        for names in (["a,x_*"], ["a", "x_1", "x_2"], ["a", "x_?".replace("?", "*")]):
            options = [part for name in names for part in ("--keep", name)]
            kfhe("predict", model, "more.csv", *options, "-o", "out.csv")
            assert [*pd.read_csv("out.csv")] == ["a", "x_1", "x_2", "prediction"]
        _, said = kfhe("predict", model, "more.csv", "--keep", "a,z_*", "-o", "out.csv", code=1)
    else:
        for names in (["a,x_*"], ["a", "x_1", "x_2"]):
            options = [part for name in names for part in ("--drop", name)]
            kfhe("fit", "more.csv", "-t", "label", "--n-estimators", 2, *options, "-o", "other.kfhe")
            assert library.load("other.kfhe").feature_names_in_.tolist() == ["b", "c"]
        _, said = kfhe("fit", "more.csv", "-t", "label", "--drop", "a,z_*", "-o", "other.kfhe", code=1)
    assert "there is no column 'z_*'" in said
