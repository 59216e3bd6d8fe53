"""The command kfhe plot: pictures of a model file, and errors that say what to do."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from typer.testing import CliRunner

import kfhe
from kfhe import CARTClassifier, KFHEClassifier
from kfhe.cli.commands import app
from kfhe.plotting import DecisionRegionsDisplay, StagedScoreDisplay


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
    result = run(folder / "model.kfhe", "--kind", kind, *data, "-o", folder / "picture.svg")
    assert result.exit_code == 0, result.output
    drawn = (folder / "picture.svg").read_text()
    for text in [*texts, "model.kfhe"]:
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
    assert "rows.csv: this is not a model file" in error("rows.csv")
    assert "there is no column 'kind'" in error(
        "model.kfhe", *scores, table(folder, "height,sort\n1,a\n2,b\n")
    )
    missing = table(folder, "height,kind\n1,wide\n2,narrow\n")
    assert "columns that the model needs are missing: 'width'" in error("model.kfhe", *scores, missing)
    unknown = table(folder, "width,height,kind\n1,2,wide\n2,3,round\n")
    expected = "target 'kind', row 3: found 'round', which the model doesn't know; accepted are narrow, wide"
    assert expected in error("model.kfhe", *scores, unknown)


def table(folder, text):
    (folder / "other.csv").write_text(text)
    return folder / "other.csv"


@pytest.fixture
def drawn(monkeypatch):
    """What displays of rows were made of: pairs of a model and the rows that it was asked to score."""
    asked = []
    for display in (StagedScoreDisplay, DecisionRegionsDisplay):

        def from_estimator(model, X, y, make=display.from_estimator, **settings):
            asked.append((model, X))
            return make(model, X, y, **settings)

        monkeypatch.setattr(display, "from_estimator", from_estimator)
    return asked


def predicted_scores(folder, model, table):
    """What kfhe predict says of the same rows."""
    command = ["predict", "--proba", folder / model, folder / table, "-o", folder / "predicted.csv"]
    result = CliRunner().invoke(app, [*map(str, command)])
    assert result.exit_code == 0, result.output
    texts = pd.read_csv(folder / "predicted.csv", dtype=str)  # pandas 2 reads decimals to a bit or so
    return texts.iloc[:, 1:].astype(float).to_numpy()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_codes_that_are_categories_are_so_in_pictures_too(folder, drawn, ending):
    """01234 and 1234 are the same number, but not the same zip code."""
    zips = np.resize(["01234", "1234", "5"], 90)
    frame = pd.read_csv(folder / "rows.csv").assign(zip=zips)
    frame["kind"] = np.where(frame["zip"] == "01234", frame["kind"], "narrow")
    getattr(frame, f"to_{ending}")(folder / f"zips.{ending}", index=False)
    fit = ["fit", folder / f"zips.{ending}", "-t", "kind", "--as", "zip=category", "-o", folder / "zips.kfhe"]
    assert CliRunner().invoke(app, [*map(str, fit)]).exit_code == 0
    data = ("--data", folder / f"zips.{ending}", "--target", "kind")
    result = run(folder / "zips.kfhe", "--kind", "scores", *data)
    assert result.exit_code == 0, result.output
    ((model, X),) = drawn
    expected = predicted_scores(folder, "zips.kfhe", f"zips.{ending}")
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert "never seen" not in result.output


def test_regions_are_of_the_scores_that_predict_writes(folder, drawn):
    data = ("--data", folder / "rows.csv", "--target", "kind")
    assert run(folder / "model.kfhe", "--kind", "regions", *data).exit_code == 0
    ((model, X),) = drawn
    expected = predicted_scores(folder, "model.kfhe", "rows.csv")
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_categories_have_no_place_on_an_axis(folder):
    frame = pd.read_csv(folder / "rows.csv").assign(height=np.resize([1, 2, 3], 90))
    frame.to_csv(folder / "codes.csv", index=False)
    model = KFHEClassifier(CARTClassifier(categorical_features=["height"]), n_estimators=2, random_state=0)
    model.fit(frame[["width", "height"]], frame["kind"]).save(folder / "codes.kfhe")
    data = ("--data", folder / "codes.csv", "--target", "kind")
    result = run(folder / "codes.kfhe", "--kind", "regions", *data)
    assert result.exit_code == 2
    assert "need two numeric features; the model's column 'height' holds categories" in result.output


def test_a_model_of_an_array_takes_columns_by_their_places(folder, drawn, iris):
    X, y = iris
    KFHEClassifier(n_estimators=2, random_state=0).fit(X, y).save(folder / "iris.kfhe")
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(folder / "iris.csv", index=False)
    data = ("--data", folder / "iris.csv", "--target", "y")
    result = run(folder / "iris.kfhe", "--kind", "scores", *data)
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(drawn[0][1], X)


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
    assert 'plots need matplotlib: pip install "kfhe[plot]"' in result.output
