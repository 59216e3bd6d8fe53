"""The commands of studies and data: what they print, where they write, and how they fail."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from kfhe.cli import main
from kfhe.study.analysis import Analysis
from kfhe.study.errors import StudyError
from kfhe.study.run import Outcome
from kfhe.study.store import Store


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run in an empty folder, without the user's own data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KFHE_DATA", raising=False)
    monkeypatch.setenv("KFHE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def kfhe(monkeypatch, capsys):
    """Run the command in this process; return what it said on standard output and error."""

    def command(*arguments, code=0):
        monkeypatch.setattr("sys.argv", ["kfhe", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == code, said.out + said.err
        return said.out, said.err

    return command


@pytest.fixture
def csv(tmp_path):
    lines = [f"{i % 10 + 3 * (i % 3)},{i % 7},{'abc'[i % 3]}" for i in range(90)]
    path = tmp_path / "mine.csv"
    path.write_text("x,z,class\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def results(kfhe, csv, tmp_path):
    """A small study of the user's own file and classifier."""
    options = ["--dataset", csv, "--dataset", "iris", "--algorithm", "CART", "--algorithm"]
    options += ["sklearn.naive_bayes.GaussianNB", "--noise", 0, "--noise", 0.2, "--jobs", 1]
    out, errors = kfhe("study", "run", *options)
    assert "32 cells were run; the results are in study.sqlite." in errors
    assert out.startswith("Best average rank by macro F1, by share of changed labels: ")
    assert "Mean macro F1 over the datasets" in out
    return tmp_path / "study.sqlite"


def test_own_data_and_classifiers_take_one_command(results):
    analysis = Analysis(results)
    assert analysis.algorithms == ["CART", "sklearn.naive_bayes.GaussianNB"]
    assert list(analysis.means(0.2).index) == ["mine", "iris"]
    assert len(analysis.failures) == 0


@pytest.fixture
def unnamed(csv):
    """A table of which nobody knows what is to be learnt: the last column would be wrong."""
    frame = pd.read_csv(csv)[["class", "x", "z"]].rename(columns={"class": "label"})
    frame.to_csv(csv, index=False)
    return csv


def test_a_study_asks_what_to_learn_unless_it_is_certain(kfhe, unnamed):
    _, errors = kfhe("study", "run", "--dataset", unnamed, "--dataset", "iris", code=1)
    assert "mine.csv: which column is the target? Name it with --target" in errors
    assert "there are label, x, z" in errors
    assert not unnamed.with_name("study.sqlite").exists()
    _, errors = kfhe("study", "run", "--dataset", unnamed, "--target", "lable", code=1)
    assert "there is no column 'lable'; did you mean 'label'?" in errors
    _, errors = kfhe("data", "show", unnamed, code=1)
    assert "which column is the target?" in errors
    assert "target:      label" in kfhe("data", "show", unnamed, "-t", "label")[0]


def test_what_is_learnt_is_said_everywhere(kfhe, unnamed, tmp_path):
    options = ["--dataset", unnamed, "--dataset", "iris", "--target", "label", "--algorithm", "CART"]
    _, errors = kfhe("study", "run", *options, "--noise", 0, "--jobs", 1)
    assert "mine: target 'label'; classes: 'a', 'b', 'c'" in errors
    assert Analysis("study.sqlite").datasets["target"].to_dict() == {"mine": "label", "iris": "class"}
    out, _ = kfhe("study", "analyse", "study.sqlite")
    assert re.search(r"mine +\S +label", out)
    kfhe("study", "report", "study.sqlite")
    assert "label" in (tmp_path / "report" / "tables" / "datasets.csv").read_text()
    assert re.search(
        r"mine.{1,80}label", (tmp_path / "report" / "index.html").read_text(encoding="utf-8"), re.S
    )


def test_no_output_overwrites_the_result_file(kfhe, results):
    before = results.read_bytes()
    results = results.rename(results.with_name("index.html"))
    _, said = kfhe("study", "report", "index.html", "--no-files", "-o", ".", code=2)
    assert "index.html is the input" in said
    assert results.read_bytes() == before


def test_jobs_are_the_processes_of_the_run(kfhe, csv, monkeypatch):
    asked = []

    def run(plan, path, *, n_jobs, **settings):
        asked.append(n_jobs)
        return Outcome(interrupted=True)

    monkeypatch.setattr("kfhe.study.run.run", run)
    kfhe("study", "run", "--dataset", csv, "--jobs", 3, code=130)
    kfhe("study", "run", "--dataset", csv, code=130)
    assert asked == [3, None]


def test_a_scheduler_is_the_one_of_the_run(kfhe, csv, monkeypatch):
    asked = []

    def run(plan, path, *, scheduler, **settings):
        asked.append(scheduler)
        return Outcome(interrupted=True)

    monkeypatch.setattr("kfhe.study.run.run", run)
    kfhe("study", "run", "--dataset", csv, "--scheduler", "tcp://127.0.0.1:8786", code=130)
    kfhe("study", "run", "--dataset", csv, code=130)
    assert asked == ["tcp://127.0.0.1:8786", None]


def test_without_a_plan_the_study_in_the_file_goes_on(kfhe, results):
    with Store.read(results) as store:
        plan, versions = store.plan, store.versions()[0]
    with Store.write(results, plan, versions) as store:
        store._connection.execute("DELETE FROM cells WHERE fold = 1")
        store._commit()
    _, errors = kfhe("study", "run", "--results", results, "--jobs", 1)
    assert "8 cells were run" in errors
    _, errors = kfhe("study", "run", "--results", results)
    assert "All 32 cells are in" in errors


def test_analyse_prints_the_tables(kfhe, results):
    out, _ = kfhe("study", "analyse", results)
    for title in (
        "Average ranks",
        "Friedman aligned ranks test",
        "Wilcoxon signed-ranks test",
        "Time per algorithm",
    ):
        assert title in out
    assert re.search(r"iris +│ +0\.\d{4} ± 0\.\d\d \(\d", out)


def test_report_says_where_the_page_is(kfhe, results, tmp_path):
    out, _ = kfhe("study", "report", results, "-o", "out")
    assert "The report is in out/index.html" in out
    assert (tmp_path / "out" / "index.html").is_file()
    assert (tmp_path / "out" / "figures" / "scores_mine.svg").is_file()


def test_a_preset_can_be_printed_changed_and_run(kfhe, tmp_path):
    text, _ = kfhe("study", "plan", "quick")
    assert "there is no plan 'slow'" in kfhe("study", "plan", "slow", code=2)[1]
    kept = "".join(
        line
        for line in text.splitlines(keepends=True)
        if not line.startswith(("Ada", "Light", "KFHE", '"Robust'))
    )
    changed = re.sub(r"datasets = \[.*?\]", 'datasets = ["iris"]', kept, flags=re.DOTALL)
    (tmp_path / "mine.toml").write_text(changed)
    _, errors = kfhe("study", "run", "mine.toml", "--jobs", 1)
    assert "12 cells were run; the results are in mine.sqlite." in errors


# How it fails: exit code, and a line that says why


def test_a_study_of_which_no_cell_works_has_failed_and_says_why(kfhe, tmp_path):
    (tmp_path / "mine.csv").write_text("x,class\n" + "-1,a\n-2,b\n" * 10)
    options = ["--dataset", "mine.csv", "--algorithm", "sklearn.naive_bayes.MultinomialNB", "--noise", 0]
    _, said = kfhe("study", "run", *options, "--jobs", 1, code=1)
    assert "4 cells were run, 4 of them ended in an error ('kfhe study report' lists them), first: " in said
    assert "first: ValueError: Negative values in data passed to" in said


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "give a plan, such as quick"),
        (
            ["slow"],
            2,
            "there is no plan 'slow'; give a TOML file or one of quick, paper",
        ),
        (["absent.toml"], 1, "absent.toml: the plan can't be read: No such file or directory"),
        (["mine.csv"], 1, "mine.csv is a table, not a plan; to run a study on it: --dataset mine.csv"),
        (
            ["quick", "--noise", "1.5"],
            2,
            "--noise must be a list of shares from 0 to 1, got 1.5",
        ),
        (["quick", "--noise", "much"], 2, "Invalid value for '--noise'"),
        (
            ["quick", "--algorithm", "KFHE"],
            1,
            "there is no algorithm 'KFHE'; did you mean 'KFHE-e' or 'KFHE-l'?",
        ),
        (["quick", "--dataset", "irsi"], 1, "dataset 'irsi' is unknown; did you mean iris?"),
        (["quick", "--data-dir", "empty"], 1, "data folder empty: it has no files"),
        (["quick", "--jobs", "0"], 2, "Invalid value for '--jobs'"),
        (
            ["quick", "--jobs", "2", "--scheduler", "a:1"],
            2,
            "local processes can't be combined",
        ),
        (["quick", "--scheduler", "a"], 1, "no Dask scheduler can be reached at a: missing port"),
        (["quick", "--repeats", "0"], 2, "--repeats must be a whole number of at least 1, got 0"),
        (["--dataset", "one.csv", "--dataset", "one.csv"], 2, "--dataset names one twice: one.csv, one.csv"),
        (["quick", "--noise-model", "pair"], 2, "--noise-model must be one of uniform, pairwise"),
        (["given.toml"], 1, "given.toml: 'given' and 'true' must be two columns of labels, got 'a'"),
        (["both.toml"], 1, "dataset 'iris' (scikit-learn) has no column 'a' of given labels"),
        (
            ["quick", "--noise", "0.6", "--noise-model", "border"],
            2,
            "from 0 to 0.5 for the noise model 'border', got 0.6",
        ),
        (["--dataset", "one.csv"], 1, "one.csv: target 'class' has one class only (a)"),
        (["--dataset", "rare.csv"], 1, "rare.csv: class 'b' has only one row"),
        (["--dataset", "few.csv"], 1, "few: no class has as many as 4 rows; use fewer folds"),
        (["--dataset", "number.csv"], 1, "number.csv: which column is the target?"),
        (["--dataset", "number.csv", "-t", "y"], 1, "number.csv: target 'y' has 20 different values"),
        (["real", "-t", "y"], 2, "--target and 'given' both name the labels to learn"),
        (
            ["quick", "--results", "notes.txt"],
            1,
            "notes.txt: this is not a result file of a study",
        ),
        (["quick", "--results", "empty"], 2, "empty is a folder"),
    ],
)
def test_mistakes_get_a_line_and_no_traceback(kfhe, options, code, message, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "plan.toml").write_text("datasets = []")
    algorithms = "[algorithms]\nKFHE-e = {}\n"
    (tmp_path / "given.toml").write_text(f'datasets = ["iris"]\ngiven = "a"\n{algorithms}')
    (tmp_path / "both.toml").write_text(f'datasets = ["iris"]\ngiven = "a"\ntrue = "b"\n{algorithms}')
    (tmp_path / "one.csv").write_text("x,class\n1,a\n2,a\n3,a\n")
    (tmp_path / "rare.csv").write_text("x,class\n1,a\n2,a\n3,b\n4,a\n")
    (tmp_path / "few.csv").write_text("x,class\n1,a\n2,a\n3,b\n4,b\n3,b\n")
    (tmp_path / "number.csv").write_text("x,y\n" + "".join(f"{i},{i / 7}\n" for i in range(20)))
    (tmp_path / "notes.txt").write_text("my notes, " * 100)
    _, errors = kfhe("study", "run", *options, code=code)
    assert message in " ".join(errors.replace("│", " ").split())
    assert "Traceback" not in errors
    assert (tmp_path / "notes.txt").read_text() == "my notes, " * 100
    assert not list(tmp_path.glob("*.sqlite"))


@pytest.fixture
def tables(tmp_path):
    """A folder of three tables, two of which have given and true labels."""
    folder = tmp_path / "tables"
    folder.mkdir()
    random = np.random.default_rng(0)
    for name in ("one", "two", "plain"):
        true = np.repeat(["a", "b"], 30)
        given = np.where(random.random(60) < 0.2, "a", true)
        frame = pd.DataFrame({"x": (true == "a") + random.normal(size=60), "given": given, "true": true})
        frame["given_majority"] = true
        columns = ["x", "true"] if name == "plain" else list(frame)
        frame[columns].to_csv(folder / f"{name}.csv", index=False)
    return folder


BAYES = ("--algorithm", "sklearn.naive_bayes.GaussianNB")


def test_the_preset_real_takes_all_tables_of_the_folder_that_have_given_and_true_labels(kfhe, tables):
    _, errors = kfhe("study", "run", "real", "--data-dir", tables, "--repeats", 1, *BAYES)
    assert "Left out:" in errors
    assert "plain.csv: there is no column 'given'" in errors
    with Store.read("real.sqlite") as store:
        assert store.plan.datasets == ("one", "plain", "two")
        assert (store.plan.given, store.plan.true) == ("given", "true")
        assert store.datasets()["features"].dropna().tolist() == [1, 1]
        assert len(store.done()) == 8
    _, errors = kfhe("study", "run", "real", "--data-dir", tables, "--repeats", 1, *BAYES)
    assert "All 8 cells are in real.sqlite already" in errors
    _, errors = kfhe("study", "run", "real", code=1)
    assert "'datasets' asks for all tables of the data folder: name it by --data-dir or KFHE_DATA" in errors


def test_labels_that_are_wrong_already_are_not_changed_unless_somebody_says_so(kfhe, tables):
    (tables.parent / "study.toml").write_text(
        f'datasets = ["{(tables / "one.csv").as_posix()}"]\ngiven = "given"\ntrue = "true"\n'
        'drop = ["given_*"]\n[algorithms]\n"sklearn.naive_bayes.GaussianNB" = {}\n'
    )
    options = ["study", "run", "study.toml", "--repeats", 1, *BAYES]
    kfhe(*options)
    kfhe(*options, "--noise", 0, "--noise", 0.1, "--noise-model", "pairwise", "--results", "more.sqlite")
    assert Analysis("study.sqlite").noise_levels == [0.0]
    plan = (tables.parent / "study.toml").read_text()
    (tables.parent / "typo.toml").write_text(plan.replace("given_*", "given_majorty"))
    _, said = kfhe("study", "run", "typo.toml", *BAYES, code=1)
    assert "no table has a column 'given_majorty' to be left out; did you mean 'given_majority'?" in said
    more = Analysis("more.sqlite")
    assert more.noise_levels == [0.0, 0.1]
    assert more.plan.noise_model == "pairwise"
    with Store.read("study.sqlite") as store:
        assert store.datasets().at["one", "features"] == 1
        assert 0.05 < store.datasets().at["one", "wrong"] < 0.2


def test_averages_of_many_algorithms_have_a_line_for_each(kfhe, csv):
    names = [f"sklearn.{name}" for name in ("naive_bayes.GaussianNB", "naive_bayes.BernoulliNB")]
    names += [f"sklearn.linear_model.{name}" for name in ("RidgeClassifier", "SGDClassifier", "Perceptron")]
    names += [f"sklearn.tree.{name}" for name in ("DecisionTreeClassifier", "ExtraTreeClassifier")]
    names += ["sklearn.dummy.DummyClassifier", "sklearn.neighbors.NearestCentroid"]
    options = [part for name in names for part in ("--algorithm", name)]
    out, _ = kfhe("study", "run", "--dataset", csv, "--noise", 0, "--noise", 0.2, *options)
    lines = [line for line in out.splitlines() if "sklearn.linear_model.Perceptron" in line]
    assert len(lines) == 2, "means and ranks"
    assert all(re.fullmatch(r"│ \S+ +│ +[\d.]+ │ +[\d.]+ │", line.strip()) for line in lines)


def test_debug_lets_the_error_through(monkeypatch):
    monkeypatch.setattr("sys.argv", ["kfhe", "--debug", "study", "report", "absent.sqlite"])
    with pytest.raises(StudyError, match=r"absent\.sqlite: there is no such result file"):
        main()


def test_more_repeats_are_added_to_what_is_there(kfhe, csv, tmp_path):
    options = ["--dataset", csv, "--algorithm", "CART", "--noise", 0, "--results"]
    in_steps, at_once = tmp_path / "steps.sqlite", tmp_path / "once.sqlite"
    for file, repeats in ((in_steps, 1), (in_steps, 3), (at_once, 3)):
        kfhe("study", "run", *options, file, "--repeats", repeats)
    with Store.read(in_steps) as store, Store.read(at_once) as other:
        assert store.plan == other.plan
        assert len(store.done()) == 12
        assert store.cells()["f1_macro"].tolist() == other.cells()["f1_macro"].tolist()


def test_another_plan_leaves_the_results_alone(kfhe, results):
    _, errors = kfhe("study", "run", "quick", "--results", results, code=1)
    assert "its results belong to another plan" in errors
    with Store.read(results) as store:
        assert len(store.done()) == 32


@pytest.mark.posix
def test_a_full_disk_stops_the_study_and_keeps_what_was_stored(kfhe, csv, tmp_path):
    pytest.importorskip("resource")
    # A limit on the size of files: the study's file grows until it is reached
    code = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))\n"
        "from kfhe.cli import main\nmain()\n"
    )
    options = ["--dataset", str(csv), "--algorithm", "sklearn.naive_bayes.GaussianNB", "--repeats", "30"]
    options += ["--noise", "0", "--jobs", "1", "--results", "full.sqlite"]
    program = [sys.executable, "-B", "-c", code, "study", "run", *options]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 1
    assert "full.sqlite: it can't be written or read" in done.stderr
    assert "Stored results are kept" in done.stderr
    with Store.read(tmp_path / "full.sqlite") as store:
        reached, plan = len(store.done()), store.plan
    assert 0 < reached < len(plan.cells())
    _, errors = kfhe("study", "run", "--results", "full.sqlite", "--jobs", 1)
    assert f"{len(plan.cells()) - reached} cells were run" in errors


def test_a_missing_extra_is_named(kfhe, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    _, errors = kfhe("study", "run", "quick", code=1)
    assert 'a study needs pandas: pip install "kfhe[study]"' in errors


# Data


def test_data_list_says_what_is_here(kfhe, tmp_path, csv, monkeypatch):
    out, _ = kfhe("data", "list")
    lines = {line.split("│")[1].strip(): line for line in out.splitlines() if line.count("│") == 8}
    assert len(lines) == 53
    assert "scikit-learn" in lines["iris"]
    assert "generated" in lines["balance_scale"]
    assert "unavailable" in lines["physio"]
    assert "other data" in lines["newthyroid"]
    assert lines["glass"].split("│")[-2].strip() == "no"
    monkeypatch.setenv("COLUMNS", "80")
    narrow, _ = kfhe("data", "list")
    assert set(lines) - {"dataset"} <= {
        line.split("│")[1].strip() for line in narrow.splitlines() if "│" in line
    }


def test_data_show_tells_size_classes_and_citation(kfhe, csv, tmp_path):
    out, _ = kfhe("data", "show", "monks")
    assert "scores fit monks-1" in out
    assert "432 rows, 6 features" in out
    (tmp_path / "small.csv").write_text("size,class\n" + "1,a\n2,b\n" * 2)
    assert "4 rows, 1 feature\n" in kfhe("data", "show", str(tmp_path / "small.csv"))[0]
    assert "0 (216), 1 (216)" in out
    out, _ = kfhe("data", "show", "mine.csv")
    assert "a (30), b (30), c (30)" in out
    out, _ = kfhe("data", "show", "physio")
    assert "Its origin is not known" in out
    _, errors = kfhe("data", "show", "nothing", code=1)
    assert "dataset 'nothing' is unknown" in errors


def test_data_fetch_says_what_is_unavailable(kfhe):
    _, errors = kfhe("data", "fetch", "physio", code=1)
    assert "dataset 'physio' can't be downloaded" in errors


def test_help_loads_nothing_heavy():
    script = (
        "import sys; from kfhe.cli import main; sys.argv = ['kfhe', 'study', 'run', '--help']\n"
        "try: main()\nfinally: print(sorted({'matplotlib', 'numpy', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "kfhe study run quick" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
