"""The example pages and the README's code run; the figures of a page can be read."""

import re
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
QUICKER = {"n_estimators = 100": "n_estimators = 2", "n_repeats = 2": "n_repeats = 1"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run an example with smaller settings; return its variables and the figures that it shows."""
    matplotlib.use("Agg")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))

    def run(path):
        text = path.read_text(encoding="utf-8")
        for setting, smaller in QUICKER.items():
            text = text.replace(setting, smaller)
        quick = tmp_path / path.name
        quick.write_text(text, encoding="utf-8")
        variables = runpy.run_path(str(quick), run_name="__main__")
        return variables, shown

    yield run
    plt.close("all")


def example(name):
    (path,) = (path for path in EXAMPLES if path.stem == name)
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_figures_of_an_example_are_labelled(run, path, capsys):
    _, figures = run(path)
    assert figures
    for figure in figures:
        figure.draw_without_rendering()
        charts = [axes for axes in figure.axes if axes.axison]  # others show a picture
        assert charts[0].get_title()
        assert charts[-1].get_xlabel()
        assert all(axes.get_ylabel() for axes in charts)
        assert any(axes.get_legend() or axes.texts for axes in charts)  # lines may be named where they end
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_page_with_a_title(path):
    title, underline = path.read_text(encoding="utf-8").splitlines()[1:3]
    assert title
    assert underline == "=" * len(title)


def test_the_battery_ends_at_the_best_estimate(run):
    variables, _ = run(example("battery"))
    assert variables["estimates"][-1] == pytest.approx(variables["best"], abs=1e-12)
    assert variables["estimates"][-1] == pytest.approx(1.5, abs=2 * np.sqrt(variables["variances"][-1]))


def test_noisy_labels_compares_five_ensembles_at_five_levels(run):
    variables, _ = run(example("noisy_labels"))
    assert list(variables["scores"]) == ["Robust KFHE", "KFHE-l", "KFHE-e", "bagging", "AdaBoost"]
    for scores in variables["scores"].values():
        assert len(scores) == 5
        assert 0.5 < min(scores) <= max(scores) <= 1


def test_the_code_in_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    variables = {}
    for block in blocks:
        exec(block, variables)
    assert len(blocks) == 2
    scores = [
        float(line) for line in capsys.readouterr().out.splitlines() if re.fullmatch(r"[01]\.\d+", line)
    ]
    assert len(scores) == 1
    assert scores[0] > 0.8


def test_links_in_the_documents_lead_somewhere():
    for document in ROOT.glob("*.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{document.name}: {target}"
