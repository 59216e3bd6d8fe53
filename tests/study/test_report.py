"""The report: every table and figure is there, and the page works in a browser without a network."""

import csv as csv_files
import json
import re
import subprocess
import sys
import zlib
from copy import copy
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from browser import opened

from kfhe.study.analysis import Analysis
from kfhe.study.cells import Result
from kfhe.study.paper import published
from kfhe.study.plan import Algorithm, Plan
from kfhe.study.report import write_report
from kfhe.study.report.page import chart_data
from kfhe.study.report.tables import Table, Value, all_tables, finding
from kfhe.study.run import run
from kfhe.study.store import Store


@pytest.fixture(scope="module")
def paper(paper_study):
    return Analysis(paper_study)


@pytest.fixture(scope="module")
def page(paper, tmp_path_factory):
    return write_report(paper, tmp_path_factory.mktemp("page"), files=False)


class Tags(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    VOID = ("meta", "link", "br", "hr", "img")

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_one_sentence_says_who_is_first_and_where(paper):
    assert finding(paper) == (
        "Best average rank by macro F1, by share of changed labels: "
        "KFHE-e at 0%; "
        "KFHE-e and KFHE-l at 5%; KFHE-l at 10%, 15%, 20%."
    )


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(page):
    tags = Tags()
    text = page.read_text()
    tags.feed(text)
    assert tags.open == []
    linked = [
        value for _, attributes in tags.seen for key, value in attributes.items() if key in ("src", "href")
    ]
    assert linked
    assert all(value.startswith(("#", "data:")) for value in linked)
    assert "default-src 'none'" in text


def test_what_users_name_cannot_break_the_page(csv, tmp_path):
    name = "</script><b>&\"'"
    plan = Plan.from_keys(
        {
            "datasets": [str(csv)],
            "algorithms": {name: {"algorithm": "CART"}, "B": {"algorithm": "CART"}},
            "folds": 2,
        }
    )
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    text = write_report(Analysis(tmp_path / "r.sqlite"), tmp_path / "report", files=False).read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert text.count("</script>") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1)
    assert json.loads(data)["algorithms"] == [name, "B"]


def test_every_table_of_the_paper_has_its_counterpart(paper):
    keys = {table.key for table in all_tables(paper)}
    levels = ("0", "5", "10", "15", "20")
    expected = {f"{name}_{level}" for name in ("scores", "posthoc", "wilcoxon") for level in levels}
    expected |= {"average_ranks", "datasets", "comparison", "friedman_aligned_ranks", "times"}
    assert expected <= keys


def test_published_figures_stand_beside_ours(paper):
    tables = {table.key: table for table in all_tables(paper)}
    iris = next(row for row in tables["scores_0"].rows if row[0].raw == "iris")
    assert (iris[1].text, iris[1].beside) == ("0.9433 ± 0.00 (4)", "paper 0.9433 (+0.000)")
    flags = next(row for row in tables["scores_0"].rows if row[0].raw == "flags")
    assert flags[1].beside.endswith("other data")
    ranks = tables["average_ranks"].rows[0][1]
    assert (ranks.text, ranks.strong) == ("2.78", True)
    assert ranks.beside == "paper 2.69 / 2.78"
    wilcoxon = tables["wilcoxon_0"].rows
    assert (wilcoxon[0][2].text, wilcoxon[0][2].beside) == ("19/11/0", "paper 19/11/0")
    assert wilcoxon[1][1].beside == "paper 0.0190"
    assert "one-tailed" in tables["wilcoxon_0"].note


def test_a_noise_level_is_not_rounded(plan, tmp_path):
    run(replace(plan, noise_levels=(0.0, 0.125), repeats=1), tmp_path / "r.sqlite", n_jobs=1)
    tables = {table.key: table for table in all_tables(Analysis(tmp_path / "r.sqlite"))}
    assert [row[0].text for row in tables["average_ranks"].rows] == ["0%", "12.5%"]
    assert "12.5% of the training labels changed" in tables["scores_12_5"].title


def test_tables_and_figures_are_files_too(plan, tmp_path):
    ours = Algorithm("ours", "KFHE-l", {"n_estimators": 5})
    plan = Plan((*plan.datasets, "iris"), (*plan.algorithms, ours), (0.0, 0.2), folds=2)
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    analysis = Analysis(tmp_path / "r.sqlite")
    page = write_report(analysis, tmp_path / "report")
    figures = {path.name for path in (page.parent / "figures").iterdir()}
    names = ("average_ranks", "rank_plot_0", "rank_plot_20", "scores_small", "scores_iris")
    names += ("training_small_ours", "training_iris_ours")
    assert {f"{name}.{suffix}" for name in names for suffix in ("svg", "png")} == figures
    assert (page.parent / "figures" / "average_ranks.png").read_bytes().startswith(b"\x89PNG")
    for name, texts in {
        "average_ranks": ("average rank", "share of changed labels (%)", "Bayes"),
        "rank_plot_20": ("Average ranks, 20% noise", f"tree  {analysis.average_ranks.at[0.2, 'tree']:.2f}"),
        "scores_iris": ("iris", analysis.metric_name, "ours"),
        "training_iris_ours": ("iris, ours, 0% noise", "variance P", "iteration"),
    }.items():
        drawn = (page.parent / "figures" / f"{name}.svg").read_text()
        assert all(f">{text}</text>" in drawn for text in texts)
    with open(page.parent / "tables" / "scores_20.csv", newline="") as file:
        rows = list(csv_files.reader(file))
    assert rows[0] == ["dataset", "tree", "Bayes", "ours"]
    assert float(rows[1][1]) == pytest.approx(analysis.means(0.2).at["small", "tree"])
    assert r"\begin{tabular}{lrrr}" in (page.parent / "tables" / "scores_20.tex").read_text()
    assert len(pd.read_csv(page.parent / "tables" / "cells.csv.gz")) == len(analysis.cells)


def test_a_wide_table_of_few_rows_is_read_upright():
    names = [f"algorithm {number}" for number in range(12)]
    fields = [
        [Value(level, f"{level:.0%}"), *(Value(level, f"{level:g}") for _ in names)] for level in (0, 0.5)
    ]
    wide = Table("ranks", "ranks", "Ranks", ["noise", *names], fields)
    upright = wide.upright()
    assert upright.head == ["noise", "0%", "50%"]
    assert [[value.text for value in row] for row in upright.rows] == [[name, "0", "0.5"] for name in names]
    assert upright.upright() is upright
    square = Table("pairs", "tests", "Pairs", ["", *names], fields * 6)
    assert square.upright() is square, "what is above the diagonal stays there"
    narrow = Table("ranks", "ranks", "Ranks", ["noise", "a"], [row[:2] for row in fields])
    assert narrow.upright() is narrow


def test_there_is_a_table_of_ranks_for_each_other_metric(plan, tmp_path):
    ridge = Algorithm("ridge", "sklearn.linear_model.RidgeClassifier")
    plan = replace(plan, algorithms=(*plan.algorithms, ridge), noise_model="pairwise", repeats=1)
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    analysis = Analysis(tmp_path / "r.sqlite")
    tables = {table.key: table for table in all_tables(analysis) if table.section == "metrics"}
    names = ["accuracy", "balanced_accuracy", "roc_auc", "log_loss", "brier", "calibration_error"]
    assert list(tables) == [f"average_ranks_{name}" for name in names]
    assert tables["average_ranks_accuracy"].head == ["noise", "tree", "Bayes", "ridge"]
    loss = tables["average_ranks_log_loss"]
    assert loss.head == ["noise", "tree", "Bayes"], "ridge has no probabilities"
    means = analysis.cells[analysis.cells["noise"] == 0.2].groupby("algorithm")["log_loss"].mean()
    better = means.idxmin()
    for name, value in zip(loss.head[1:3], loss.rows[1][1:3], strict=True):
        assert value.text == ("1.00" if name == better else "2.00")
        assert value.beside == f"{means[name]:.3f}"
    page = write_report(analysis, tmp_path / "report", files=False).read_text()
    assert "Other metrics" in page
    assert "0%, 20% of the training labels changed (pairwise)" in page


def test_a_study_of_given_and_true_labels_says_so(plan, reviewed, tmp_path):
    plan = replace(
        plan, datasets=(str(reviewed),), given="given", true="true", noise_levels=(0.0,), repeats=1
    )
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    analysis = Analysis(tmp_path / "r.sqlite")
    page = write_report(analysis, tmp_path / "report", files=False).read_text()
    assert "Trained on the labels in the column &#39;given&#39;" in page
    assert "tested against those in &#39;true&#39;" in page
    (datasets,) = [table for table in all_tables(analysis) if table.key == "datasets"]
    assert datasets.rows[0][datasets.head.index("wrong labels")].text == "20.0%"


def test_the_paper_stands_beside_its_own_kind_of_study_only(paper_study, tmp_path):
    for change in ({"noise_model": "pairwise"}, {"given": "a", "true": "b"}, {"metric": "accuracy"}):
        other = Analysis(paper_study)
        other.plan = replace(other.plan, **change)
        other.metric = other.plan.metric
        assert not other.has_published
        assert other.comparison.empty
    more = Analysis(paper_study)
    more.algorithms = [*more.algorithms, "another"]
    assert not more.compares, "ranks among eight are others than among seven"


def test_datasets_that_were_left_out_are_named_on_the_page(plan, tmp_path):
    run(Plan((*plan.datasets, "physio"), plan.algorithms, folds=2), tmp_path / "r.sqlite", n_jobs=1)
    text = write_report(Analysis(tmp_path / "r.sqlite"), tmp_path / "report", files=False).read_text()
    assert "<summary>Left out: physio</summary>" in text
    assert text.count("Its origin is not known") == 2, "above, and in the table of datasets"


def test_writing_again_gives_the_same_bytes(paper, tmp_path):
    first = write_report(paper, tmp_path / "a", files=False).read_bytes()
    assert write_report(paper, tmp_path / "b", files=False).read_bytes() == first


def test_latex_keeps_special_characters():
    rows = [[Value(1, "50% & a_b ± {x}"), Value(2, "y", strong=True)]]
    text = Table("t", "s", "Title of 5%", ["a", "b"], rows).latex()
    assert r"50\% \& a\_b ± \{x\} & \bfseries y \\" in text
    assert r"\caption{Title of 5\%" in text


@pytest.fixture(scope="module")
def accuracies(tmp_path_factory):
    """The paper's study, but judged by accuracy; its figures happen to be the paper's macro F1."""
    plan = replace(Plan.preset("paper"), metric="accuracy", repeats=1, folds=2)
    scores = {noise: published.scores(noise) for noise in plan.noise_levels}
    path = tmp_path_factory.mktemp("accuracies") / "r.sqlite"
    with Store.write(path, plan, {"kfhe": "0"}) as store:
        store.note_datasets([], dict.fromkeys(plan.datasets, "made up"))
        store.add(
            Result(cell, accuracy=float(scores[cell.noise].at[cell.dataset, cell.algorithm]))
            for cell in plan.cells()
        )
    return Analysis(path)


def test_accuracies_are_not_set_beside_the_papers_macro_f1(accuracies):
    tables = {table.key: table for table in all_tables(accuracies)}
    assert "scores_0" in tables
    assert "comparison" not in tables
    beside = [value.beside for table in tables.values() for row in table.rows for value in row]
    assert not any(beside)
    charts = chart_data(accuracies)
    assert not charts["comparison"]


def test_of_one_dataset_there_are_no_lines_of_ranks(plan, tmp_path):
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    analysis = Analysis(tmp_path / "r.sqlite")
    assert chart_data(analysis)["ranks"] == {}
    page = write_report(analysis, tmp_path / "report")
    assert not (page.parent / "figures" / "average_ranks.svg").exists()
    assert (page.parent / "figures" / "scores_small.svg").exists()
    text = page.read_text()
    assert text.index('<section id="noise">') < text.index('<section id="ranks">')


def test_of_one_dataset_the_other_charts_are_drawn(browser, plan, tmp_path):
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    page = write_report(Analysis(tmp_path / "r.sqlite"), tmp_path / "report", files=False)
    ask = opened(browser, page)
    assert ask("return [...document.querySelectorAll('[data-chart]')].map((one) => one.dataset.chart)") == [
        "scores"
    ]
    assert ask("return document.querySelectorAll('[data-chart=scores] .line').length") > 0
    assert browser.get_log("browser") == []


def test_an_algorithm_of_its_short_name_is_named_once(plan, tmp_path):
    plan = replace(plan, algorithms=(*plan.algorithms, Algorithm("CART", "CART")), repeats=1)
    run(plan, tmp_path / "r.sqlite", n_jobs=1)
    text = write_report(Analysis(tmp_path / "r.sqlite"), tmp_path / "report", files=False).read_text()
    about = text[text.index('id="about"') :]
    assert "tree: sklearn.tree.DecisionTreeClassifier {&#34;max_depth&#34;: 3}\n" in about
    assert "Bayes: sklearn.naive_bayes.GaussianNB\nCART</pre>" in about


def test_of_many_lines_ours_alone_have_colours(paper):
    assert paper.marked is None
    many = copy(paper)
    many.algorithms = [*paper.algorithms, "another"]
    assert many.marked == ["KFHE-e", "KFHE-l"]


def test_a_report_that_cannot_be_written_leaves_the_old_one(paper, page, tmp_path, monkeypatch):
    before = page.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match=r"index\.html: can't be written: No space left on device"):
        write_report(paper, page.parent, files=False)
    assert page.read_bytes() == before
    assert {path.name for path in page.parent.iterdir()} == {"index.html", ".report-files.json"}


@pytest.mark.parametrize(("package", "what"), [("matplotlib", "matplotlib"), ("jinja2", "Jinja")])
def test_without_a_package_the_extra_is_named(paper_study, tmp_path, package, what):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from kfhe.study.analysis import Analysis\nfrom kfhe.study.report import write_report\n"
        f"try:\n    write_report(Analysis({str(paper_study)!r}), {str(tmp_path)!r})\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(rf'needs? {what}: pip install "kfhe\[study\]"', done.stdout)


# In a browser


def test_charts_are_drawn_without_errors_and_without_a_network(browser, page):
    ask = opened(browser, page)
    counts = ask(
        "return Object.fromEntries([...document.querySelectorAll('[data-chart]')].map((place) =>"
        " [place.dataset.chart, [...place.querySelectorAll('svg')]"
        ".filter((svg) => svg.querySelector('.line, .mark')).length]))"
    )
    assert counts == {"ranks": 1, "rank-plots": 5, "scores": 30, "comparison": 1, "traces": 30}
    assert ask("return document.querySelectorAll('[data-chart=ranks] .mark').length") == 7 * 5
    assert (
        ask("return performance.getEntriesByType('resource').filter((e) => !e.name.startsWith('data:'))")
        == []
    )
    assert browser.get_log("browser") == []


def test_tables_can_be_sorted_both_ways(browser, page):
    ask = opened(browser, page)
    column = (
        "return [...document.querySelectorAll('table[data-key=scores_0] tbody tr')]"
        ".map((row) => Number(row.cells[1].dataset.v))"
    )
    heads = "document.querySelectorAll('table[data-key=scores_0] th button')"
    before = ask(column)
    assert before != sorted(before)
    ask(f"{heads}[1].click()")
    assert ask(column) == sorted(before)
    ask(f"{heads}[1].click()")
    assert ask(column) == sorted(before, reverse=True)
    ask(f"{heads}[0].click()")
    names = ask(
        "return [...document.querySelectorAll('table[data-key=scores_0] tbody tr')]"
        ".map((row) => row.cells[0].textContent)"
    )
    assert names == sorted(names, key=str.lower)
    assert browser.get_log("browser") == []


def test_an_algorithm_can_be_hidden_and_a_noise_level_chosen(browser, page):
    ask = opened(browser, page)
    lines = "return document.querySelectorAll('[data-chart=ranks] .line').length"
    assert ask(lines) == 7
    ask("document.querySelector('#legend button').click()")
    assert ask(lines) == 6
    ask("document.querySelector('#legend button').click()")
    assert ask(lines) == 7
    shown = (
        "return [...document.querySelectorAll('#scores figure.table')]"
        ".filter((table) => table.offsetHeight).map((table) => table.dataset.noise)"
    )
    assert ask(shown) == ["0.0"]
    ask("document.querySelectorAll('#scores .choices button')[4].click()")
    assert ask(shown) == ["0.2"]
    points = "return document.querySelectorAll('[data-chart=comparison] .mark').length"
    assert ask(points) == 30 * 7
    assert browser.get_log("browser") == []


def test_pointing_at_a_chart_shows_its_values(browser, page):
    ask = opened(browser, page)
    ask(
        "const svg = document.querySelector('[data-chart=ranks] svg'), box = svg.getBoundingClientRect();"
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + 45, clientY: box.top + 50}))"
    )
    lines = ask("return [...document.querySelectorAll('#tip div')].map((line) => line.textContent)")
    assert lines[0] == "KFHE-e2.78"
    assert len(lines) == 7


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A page of thirty algorithms whose names are long, in any script, or both; one dataset's is, too."""
    folder = tmp_path_factory.mktemp("odd")
    scripts = [
        "随机森林分类器",
        "خوارزمية الغابة العشوائية",
        "😀🎉",
        "a_very_long_name_without_any_space" * 2,
    ]
    algorithms = tuple(Algorithm(f"{scripts[i % 4]} {i} {'and so on ' * (i % 9)}", "CART") for i in range(30))
    for name in ("数据" * 30, "b"):
        rows = pd.DataFrame({"x": range(40), "class": ["u", "v"] * 20})
        rows.to_csv(folder / f"{name}.csv", index=False)
    levels = (0.0, 0.01, 0.02, 0.03, 0.125, 0.5)
    plan = Plan(tuple(str(path) for path in sorted(folder.glob("*.csv"))), algorithms, levels, folds=2)
    with Store.write(folder / "r.sqlite", plan, {}) as store:
        store.add([Result(cell, f1_macro=hash_share(cell)) for cell in plan.cells()])
    return write_report(Analysis(folder / "r.sqlite"), folder / "report", files=False)


def hash_share(cell):
    return zlib.crc32(repr(cell).encode()) / 2**32


@pytest.mark.parametrize("width", [390, 1280])
def test_names_in_any_script_and_of_any_length_stay_within_the_page(browser, odd, width):
    ask = opened(browser, odd, width=width)
    assert ask("return document.documentElement.scrollWidth") <= width
    outside = ask(
        "return [...document.querySelectorAll('svg text')].filter((text) => {"
        " const own = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();"
        " return own.left < all.left - 1 || own.right > all.right + 1; }).map((text) => text.textContent)"
    )
    assert outside == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [390, 1280])
def test_numbers_along_an_axis_do_not_run_together(browser, odd, width):
    ask = opened(browser, odd, width=width)
    touching = ask(
        "return [...document.querySelectorAll('svg')].flatMap((svg) => {"
        " const texts = [...svg.querySelectorAll('text:not(.name)')];"
        " const boxes = texts.map((text) => text.getBoundingClientRect());"
        " return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.left < b.right"
        "  && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map((b) => [a.left, b.left])); })"
    )
    assert touching == []


def test_the_page_fits_a_phone_and_the_dark(browser, page):
    ask = opened(browser, page, width=390)
    assert ask("return document.documentElement.scrollWidth") <= 390
    light = ask("return getComputedStyle(document.body).backgroundColor")
    ask = opened(browser, page, scheme="dark")
    dark = ask("return getComputedStyle(document.body).backgroundColor")
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (light, dark)]
    assert brightness[0] > 700
    assert brightness[1] < 100


def test_on_paper_all_noise_levels_are_there(browser, page):
    ask = opened(browser, page, scheme="dark", media="print")
    shown = ask(
        "return [...document.querySelectorAll('#scores figure.table')].filter((t) => t.offsetHeight).length"
    )
    assert shown == 5
    assert ask("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.execute_cdp_cmd("Page.printToPDF", {})["data"].startswith("JVBERi")  # %PDF-
