"""A report leaves nothing of an earlier one in its folder, and everything else as it is."""

import json

import pytest

from kfhe.study.analysis import Analysis
from kfhe.study.plan import Algorithm, Plan
from kfhe.study.report import write_report
from kfhe.study.report.folder import LIST, ReportFolder
from kfhe.study.run import run


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path):
    """A folder with a report of three files."""
    with ReportFolder(tmp_path / "report") as report:
        for name in ("index.html", "tables/a.csv", "figures/a.svg"):
            report.write(name, f"first {name}")
    return tmp_path / "report"


def test_a_new_report_removes_the_files_of_the_one_before(folder):
    with ReportFolder(folder) as report:
        report.write("index.html", "second")
        report.write("tables/b.csv", "second")
    assert files(folder) == {"index.html", "tables/b.csv", LIST}
    assert (folder / "index.html").read_text() == "second"
    assert not (folder / "figures").exists()


def test_what_others_wrote_or_changed_stays(folder):
    (folder / "study.sqlite").write_text("results")
    (folder / "figures" / "mine.svg").write_text("mine")
    (folder / "tables" / "a.csv").write_text("with my remarks")
    with ReportFolder(folder) as report:
        report.write("index.html", "second")
    assert files(folder) == {"index.html", "study.sqlite", "figures/mine.svg", "tables/a.csv", LIST}
    assert (folder / "tables" / "a.csv").read_text() == "with my remarks"


def test_a_report_that_was_cut_short_is_removed_by_the_next_one(folder):
    report = ReportFolder(folder)
    report.write("tables/b.csv", "second")
    error = KeyboardInterrupt()
    report.__exit__(type(error), error, None)
    assert files(folder) == {"index.html", "tables/a.csv", "tables/b.csv", "figures/a.svg", LIST}
    with ReportFolder(folder) as report:
        report.write("index.html", "third")
    assert files(folder) == {"index.html", LIST}


@pytest.mark.parametrize("content", ["no json", "[]", '{"index.html": 3}', "{}"])
def test_a_list_that_says_nothing_removes_nothing(folder, content):
    (folder / LIST).write_text(content)
    with ReportFolder(folder) as report:
        report.write("tables/b.csv", "second")
    assert {"index.html", "tables/a.csv", "figures/a.svg", "tables/b.csv"} <= files(folder)


def test_nothing_outside_of_the_folder_is_removed(folder, tmp_path):
    (tmp_path / "mine.txt").write_text("first index.html")  # as long as it is, and with the same digest
    listed = json.loads((folder / LIST).read_text())
    (folder / LIST).write_text(json.dumps({"../mine.txt": listed["index.html"]}))
    with ReportFolder(folder) as report:
        report.write("index.html", "second")
    assert (tmp_path / "mine.txt").exists()


def test_of_two_studies_the_later_one_is_in_the_folder(csv, tmp_path):
    for name, level in (("one", 0.1), ("two", 0.0)):
        algorithms = (Algorithm(name, "CART"), Algorithm("both", "CART"))
        plan = Plan((str(csv),), algorithms, (level,), folds=2)
        run(plan, tmp_path / f"{name}.sqlite", n_jobs=1)
        page = write_report(Analysis(tmp_path / f"{name}.sqlite"), tmp_path / "report")
    with_list = files(tmp_path / "report")
    fresh = write_report(Analysis(tmp_path / "two.sqlite"), tmp_path / "fresh")
    assert with_list == files(fresh.parent)
    assert "tables/scores_10.csv" not in with_list
    write_report(Analysis(tmp_path / "two.sqlite"), page.parent, files=False)
    assert files(page.parent) == {"index.html", LIST}


def test_names_that_are_no_names_of_files_are_made_so(csv, tmp_path):
    algorithms = (Algorithm("../../a/b: c?", "KFHE-l", {"n_estimators": 2}), Algorithm("$x$", "CART"))
    run(Plan((str(csv),), algorithms, (0.0,), folds=2), tmp_path / "r.sqlite", n_jobs=1)
    write_report(Analysis(tmp_path / "r.sqlite"), tmp_path / "report")
    assert "figures/training_small_..-..-a-b- c-.svg" in files(tmp_path / "report")
    assert {path.name for path in tmp_path.iterdir()} >= {"report", "r.sqlite"}
