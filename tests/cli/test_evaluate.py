"""kfhe evaluate: figures for people and programs, by class and in all, and pictures."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.metrics import balanced_accuracy_score, precision_recall_fscore_support

import kfhe as library
from kfhe.cli import main
from kfhe.cli.evaluation import Outcome, Predictions

CUSTOMERS = Path(__file__).parents[2] / "examples" / "data" / "customers.csv"
QUICK = ("--n-estimators", "5", "--folds", "2")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("customers.csv").write_bytes(CUSTOMERS.read_bytes())
    yield
    pyplot.close("all")


@pytest.fixture
def evaluate(monkeypatch, capfd):
    """Run the command in this process; return what it said on standard output and error."""

    def command(*arguments, code=0):
        monkeypatch.setattr("sys.argv", ["kfhe", "evaluate", *map(str, arguments)])
        monkeypatch.setattr("sys.stdin", io.StringIO())
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        said = capfd.readouterr()
        assert ended.value.code == code, said.err
        return said.out, said.err

    return command


def outcome_of(true, predicted, classes):
    """Return the outcome of one test; scores are 1 for what is predicted."""
    scores = np.eye(len(classes))[predicted]
    return Outcome(
        "rows", "kind", np.array(classes), [Predictions(np.array(true), np.array(predicted), scores)]
    )


def printed(outcome, capsys):
    outcome.print()
    return capsys.readouterr().out


def test_the_figures_by_class_are_scikit_learns(evaluate):
    library.KFHEClassifier(n_estimators=5, random_state=0).fit(
        (frame := pd.read_csv("customers.csv")).drop(columns="outcome"), frame["outcome"]
    ).save("model.kfhe")
    out, _ = evaluate("customers.csv", "-t", "outcome", "--model", "model.kfhe", "--json")
    found = json.loads(out)
    predicted = library.load("model.kfhe").predict(frame.drop(columns="outcome"))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(frame["outcome"], predicted))
    expected = zip(*precision_recall_fscore_support(frame["outcome"], predicted), strict=True)
    assert [entry["class"] for entry in found["by_class"]] == found["classes"]
    for entry, (precision, recall, f1, rows) in zip(found["by_class"], expected, strict=True):
        assert [entry["precision"], entry["recall"], entry["f1"]] == pytest.approx([precision, recall, f1])
        assert entry["rows"] == rows


def test_a_class_that_is_never_predicted_has_no_precision(capsys):
    outcome = outcome_of([0, 1, 1], [0, 0, 0], ["a", "b", "c"])
    a, b, c = outcome.as_dict()["by_class"]
    assert a["precision"] == pytest.approx(1 / 3)
    assert (b["rows"], b["precision"], b["recall"], b["f1"]) == (2, None, 0.0, 0.0)
    assert (c["rows"], c["precision"], c["recall"], c["f1"]) == (0, None, None, None)
    assert "nan" not in printed(outcome, capsys)


def test_metrics_classes_and_confusion_are_shown(evaluate):
    out, _ = evaluate("customers.csv", "-t", "outcome", *QUICK)
    for words in ("balanced accuracy", "AUROC", "precision", "recall", "F1", "calibration error"):
        assert words in out
    assert "Confusion matrix: true classes down, predicted classes across" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("n_classes", [2, 12, 20, 21, 120])
def test_any_number_of_classes_with_long_names_fits_into_80_columns(capsys, n_classes):
    names = [f"a class that has a very long name indeed, number {i} of them" for i in range(n_classes)]
    true = np.arange(1000) % n_classes
    out = printed(outcome_of(true, (true + (true % 7 == 0)) % n_classes, names), capsys)
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("\n") < 70


def test_of_many_classes_the_worst_and_the_most_frequent_mistakes_are_shown(capsys):
    true = np.repeat(np.arange(30), 10)
    predicted = true.copy()
    predicted[50:57] = 9  # most of the sixth class are taken for the tenth
    out = printed(outcome_of(true, predicted, [f"class {i}" for i in range(30)]), capsys)
    assert "The 10 worst of 30 classes; --json lists all:" in out
    worst = out.split("10 worst")[1]
    assert worst.index("class 5 ") < worst.index("class 9 ") < worst.index("class 0 ")
    assert "class 5 │ class 9   │    7 │          70%" in out
    assert "class 29" not in out


def test_a_matrix_that_has_no_room_gives_way_to_the_mistakes(capsys, monkeypatch):
    names = [f"quite a long name {i}" for i in range(9)]
    outcome = outcome_of([0, 0, 1, *range(9)], [3, 3, 2, *range(9)], names)
    narrow = printed(outcome, capsys).split("The most frequent mistakes")[1]
    assert narrow.index("quite a long name 3 │    2") < narrow.index("quite a long name 2 │    1")
    monkeypatch.setenv("COLUMNS", "200")
    assert "Confusion matrix" in printed(outcome, capsys)


def test_without_a_mistake_none_are_listed(capsys):
    out = printed(outcome_of(range(40), range(40), [f"class {i}" for i in range(40)]), capsys)
    assert "mistakes" not in out


def test_pictures_are_written_into_a_folder(evaluate):
    Path("deep").mkdir()
    out, said = evaluate("customers.csv", "-t", "outcome", *QUICK, "--plots", "deep/pictures", "--json")
    assert json.loads(out)["rows"] == 500
    assert "The plots are in deep/pictures" in said
    files = sorted(path.name for path in Path("deep/pictures").iterdir())
    assert files == ["calibration.png", "confusion.png", "roc.png"]
    for name in files:
        assert (Path("deep/pictures") / name).read_bytes().startswith(b"\x89PNG")


def test_pictures_say_what_they_are_of(monkeypatch, evaluate):
    titles = []
    monkeypatch.setattr("kfhe.plotting.base.rendered", lambda figure, suffix: titles.append(figure) or b"")
    evaluate("customers.csv", "-t", "outcome", *QUICK, "--plots", "pictures")
    title = "customers.csv: 2-fold cross-validation, 500 rows"
    assert [" ".join(figure.get_suptitle().split()) for figure in titles] == [title] * 3


def test_nothing_is_trained_if_the_pictures_cannot_be_drawn(evaluate, monkeypatch):
    monkeypatch.setattr("kfhe.cli.evaluate._of_training", lambda *arguments: pytest.fail("it was trained"))
    _, said = evaluate("customers.csv", "-t", "outcome", "--plots", "customers.csv", code=2)
    assert "customers.csv is not a folder" in said
    for name in [name for name in sys.modules if name.startswith("kfhe.plotting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(library, "plotting", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, said = evaluate("customers.csv", "-t", "outcome", "--plots", "pictures", code=1)
    assert 'plots need matplotlib: pip install "kfhe[plot]"' in said
    assert not Path("pictures").exists()


def test_a_picture_does_not_overwrite_the_table(evaluate):
    Path("pictures").mkdir()
    Path("customers.csv").rename("pictures/roc.png")
    Path("table.csv").symlink_to("pictures/roc.png")
    _, said = evaluate("table.csv", "-t", "outcome", *QUICK, "--plots", "pictures", code=2)
    assert "is the input" in said
    assert Path("pictures/roc.png").read_bytes() == CUSTOMERS.read_bytes()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_too_large_for_floats_stay_apart(evaluate, ending):
    labels = np.array([2**53, 2**53 + 1, 2**63 - 1] * 20)
    frame = pd.DataFrame({"size": np.arange(60) % 3, "label": labels})
    getattr(frame, f"to_{ending}")(f"ids.{ending}", index=False)
    library.KFHEClassifier(n_estimators=5, random_state=0).fit(frame[["size"]], labels).save("ids.kfhe")
    out, _ = evaluate(f"ids.{ending}", "-t", "label", "--model", "ids.kfhe", "--json")
    assert json.loads(out)["confusion_matrix"] == [[20, 0, 0], [0, 20, 0], [0, 0, 20]]
    frame.assign(label=["x", *labels[1:]]).to_csv("odd.csv", index=False)
    _, said = evaluate("odd.csv", "-t", "label", "--model", "ids.kfhe", code=1)
    assert "column 'label', row 2: found 'x'; accepted are numbers" in said
