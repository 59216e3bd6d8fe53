"""The command kfhe plot: pictures of a model file, and errors that say what to do."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

import kfhe
from kfhe import KFHEClassifier
from kfhe.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["plot", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def own_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def folder(tmp_path):
    """A folder with a table of two features and the file of a model of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 2)).round(3), columns=["width", "height"])
    frame["kind"] = np.where(frame["width"] + rng.normal(size=90) / 2 > 0, "wide", "narrow")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(frame[["width", "height"]], frame["kind"])
    model.save(tmp_path / "model.kfhe")
    return tmp_path


def test_without_options_the_trace_is_drawn_beside_the_model(folder):
    result = run(folder / "model.kfhe")
    assert result.exit_code == 0, result.output
    assert str(folder / "model_trace.png") in result.output
    assert (folder / "model_trace.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("trace", ["measurement error R", "gain K", "iteration"]),
        ("weights", ["effective sample size (rows)"]),
        ("importance", ["width", "height", "importance"]),
        ("scores", ["accuracy", "rows"]),
        ("regions", ["wide", "narrow", "width", "height"]),
    ],
)
def test_each_kind_is_drawn(folder, kind, texts):
    data = ("--data", folder / "rows.csv", "--target", "kind") if kind in ("scores", "regions") else ()
    result = run(folder / "model.kfhe", "--kind", kind, *data, "-o", folder / "deep" / "picture.svg")
    assert result.exit_code == 0, result.output
    drawn = (folder / "deep" / "picture.svg").read_text()
    for text in texts:
        assert f">{text}</text>" in drawn


def test_scores_of_several_tables_are_lines_of_one_picture(folder):
    rows = pd.read_csv(folder / "rows.csv")
    rows.iloc[::2].to_parquet(folder / "train.parquet")
    rows.iloc[1::2].to_csv(folder / "test.csv", index=False)
    data = ("--data", folder / "train.parquet", "--data", folder / "test.csv", "--target", "kind")
    result = run(folder / "model.kfhe", "--kind", "scores", *data, "-o", folder / "scores.svg")
    assert result.exit_code == 0, result.output
    drawn = (folder / "scores.svg").read_text()
    assert ">train</text>" in drawn
    assert ">test</text>" in drawn


def test_pdf_files_can_be_written(folder):
    assert run(folder / "model.kfhe", "-o", folder / "trace.PDF").exit_code == 0
    assert (folder / "trace.PDF").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "picture.gif"), "picture.gif: the file's name must end in .png, .svg, .pdf"),
        (("--kind", "scores"), "--kind scores needs --data and --target"),
        (("--kind", "regions", "--data", "rows.csv"), "--kind regions needs --data and --target"),
        (("--data", "rows.csv"), "--data and --target are for scores and regions, not for trace"),
        (
            ("--kind", "regions", "--data", "a.csv", "--data", "b.csv", "--target", "kind"),
            "regions are drawn for one table only",
        ),
        (("--kind", "treace"), "treace"),
    ],
)
def test_wrong_use_is_told(folder, arguments, message):
    result = run(folder / "model.kfhe", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert sorted(path.name for path in folder.iterdir()) == ["model.kfhe", "rows.csv"]


def test_what_is_wrong_with_the_files_is_told(folder):
    def error(model, *arguments):
        result = run(folder / model, *arguments)
        assert result.exit_code == 1
        return str(result.exception)

    scores = ("--kind", "scores", "--target", "kind", "--data")
    assert "nothing.kfhe: there is no such file" in error("nothing.kfhe")
    assert "rows.csv: this is no model file" in error("rows.csv")
    assert "there is no column 'kind'" in error(
        "model.kfhe", *scores, table(folder, "height,sort\n1,a\n2,b\n")
    )
    missing = table(folder, "height,kind\n1,wide\n2,narrow\n")
    assert "there is no column 'width'" in error("model.kfhe", *scores, missing)
    unknown = table(folder, "width,height,kind\n1,2,wide\n2,3,round\n")
    expected = "target 'kind' has 'round', which the model doesn't know; accepted are narrow, wide"
    assert expected in error("model.kfhe", *scores, unknown)


def table(folder, text):
    (folder / "other.csv").write_text(text)
    return folder / "other.csv"


def test_regions_of_a_wider_model_are_refused(folder, iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    KFHEClassifier(n_estimators=2, random_state=0).fit(frame, y).save(folder / "wide.kfhe")
    frame.assign(y=y).to_csv(folder / "wide.csv", index=False)
    result = run(folder / "wide.kfhe", "--kind", "regions", "--data", folder / "wide.csv", "--target", "y")
    assert "decision regions need two features" in str(result.exception)
    assert not (folder / "wide_regions.png").exists()


def test_a_picture_that_cannot_be_written_leaves_the_old_one(folder, monkeypatch):
    assert run(folder / "model.kfhe").exit_code == 0
    before = (folder / "model_trace.png").read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    result = run(folder / "model.kfhe", "-o", folder / "model_trace.png", "--kind", "weights")
    assert "can't be written: No space left on device" in str(result.exception)
    assert (folder / "model_trace.png").read_bytes() == before


def test_without_matplotlib_the_extra_is_named(folder, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("kfhe.plotting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(kfhe, "plotting", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(folder / "model.kfhe")
    assert result.exit_code == 1
    assert "plots need matplotlib: pip install kfhe[plot]" in result.output
