"""The report as one HTML page: it needs no other file and no network."""

from __future__ import annotations

import json
import math
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from kfhe.look.counts import counted
from kfhe.look.palette import PALETTE
from kfhe.look.trace_lines import TRACE_LINES
from kfhe.study.analyse import Analysis
from kfhe.study.report.tables import Table, Value

LONG = 32  # letters that a field has room for on one line
# Sections in their order: key, title, what it says, and the chart that belongs to it
_SECTIONS = (
    ("claims", "What the paper claims", "Each claim of the paper, checked against these results.", None),
    (
        "ranks",
        "Average ranks",
        "How the average rank over the datasets changes with the noise in the training rows ({level}). "
        "Higher up is better.",
        "ranks",
    ),
    (
        "tests",
        "Which differences are real",
        "Algorithms by average rank at each noise level; a bar joins those that don't differ significantly "
        "(aligned-rank post-hoc test, Finner's adjustment, 0.05).",
        "rank-plots",
    ),
    (
        "noise",
        "Each dataset against noise",
        "Mean score on the true labels of the test rows by the noise in the training rows ({level}). "
        "The scales differ.",
        "scores",
    ),
    (
        "metrics",
        "By other metrics",
        "Average ranks by what else classifiers are judged by, and beside them the means. Balanced "
        "accuracy: all classes count alike. AUROC: each class against all others, on average. Log loss, "
        "Brier score and calibration error (of the likeliest class, in 15 bins) say whether probabilities "
        "can be believed.",
        None,
    ),
    ("scores", "Scores", "", None),
    (
        "paper",
        "Beside the paper",
        "Each point is a dataset and an algorithm: published macro F1 to the right, ours upwards. "
        "Within the band they differ by at most 0.03.",
        "comparison",
    ),
    (
        "training",
        "How training went",
        "Measurement error R, variance P, gain K and the ensemble's error on its training rows by iteration, "
        "for the first fold of each dataset.",
        "traces",
    ),
    ("times", "Time", "", None),
    ("datasets", "Datasets", "", None),
    ("failures", "Failures", "", None),
)


def page(analysis: Analysis, tables: list[Table]) -> str:
    """Return the HTML of a report."""
    charts = chart_data(analysis)
    sections = [
        _section(
            key,
            title,
            text.format(level=analysis.plan.level),
            chart,
            [table for table in tables if table.section == key],
        )
        for key, title, text, chart in _SECTIONS
        if any(table.section == key for table in tables) or charts.get(chart or "")
    ]
    titles = [(key, title) for key, title, *_ in _SECTIONS if f'id="{key}"' in "".join(sections)]
    links = "".join(f'<a href="#{key}">{escape(title)}</a>' for key, title in titles)
    # A page with a script must not end that script early
    data = json.dumps(charts, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    resources = files("kfhe.study.report")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>KFHE study</title>
<style>
{resources.joinpath("page.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>KFHE study</h1>
<p>{escape(_summary(analysis))}</p>
{_left_out(analysis)}<nav>{links}</nav>
</header>
<div id="legend" role="group" aria-label="Algorithms shown in the charts"></div>
<main>
{"".join(sections)}{_about(analysis)}</main>
<script type="application/json" id="data">{data}</script>
<script>
{resources.joinpath("page.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""


def chart_data(analysis: Analysis) -> dict[str, Any]:
    """Return what the charts draw; a chart without data is empty."""
    levels, names = analysis.noise_levels, analysis.algorithms
    ranks = analysis.average_ranks
    means = {noise: analysis.means(noise) for noise in levels}

    def against_noise(dataset: str, name: str) -> list[float | None]:
        return _numbers([means[noise].at[dataset, name] for noise in levels], 4)

    tested = [noise for noise in levels if analysis.can_test(noise)]
    return {
        "colours": PALETTE,
        "metric": analysis.metric_name,
        "level": analysis.plan.level,
        "lowIsBetter": analysis.lower_is_better,
        "algorithms": names,
        "noise": levels,
        "ranks": {name: _numbers(ranks[name], 3) for name in names} if ranks.notna().to_numpy().any() else {},
        "rank-plots": [
            {
                "title": analysis.plan.noise_done(noise),
                "ranks": {name: round(float(ranks.at[noise, name]), 3) for name in names},
                "groups": analysis.groups(noise),
            }
            for noise in tested
        ],
        "scores": [
            {"dataset": dataset, "means": {name: against_noise(dataset, name) for name in names}}
            for dataset in means[levels[0]].index
        ],
        "comparison": [
            [row.dataset, row.algorithm, row.noise, round(row.ours, 4), row.published, bool(row.comparable)]
            for row in analysis.comparison.itertuples(index=False)
        ],
        "trace-lines": [{"column": line.column, "name": line.symbol} for line in TRACE_LINES],
        "traces": [
            {"dataset": dataset, "algorithm": algorithm, "noise": noise}
            | {column: _numbers(values, 5) for column, values in trace.items()}
            for (dataset, algorithm, noise), trace in sorted(analysis.traces.items())
        ],
    }


def _numbers(values: Any, digits: int) -> list[float | None]:
    return [None if math.isnan(value) else round(float(value), digits) for value in values]


def _summary(analysis: Analysis) -> str:
    plan, cells = analysis.plan, analysis.cells
    total = len(analysis.means(analysis.noise_levels[0])) * len(plan.algorithms) * len(plan.noise_levels)
    total *= plan.repeats * plan.folds
    seconds = float(analysis.times["total_seconds"].sum())
    took = f"{seconds / 3600:.1f} hours" if seconds > 7200 else f"{seconds / 60:.1f} minutes"
    text = (
        f"{counted(len(plan.algorithms), 'algorithm')} on "
        f"{counted(len(analysis.means(analysis.noise_levels[0])), 'dataset')}, "
        f"{plan.noise_done(*plan.noise_levels)}, "
        f"{plan.repeats} × {plan.folds}-fold cross-validation: "
        f"{counted(len(cells), 'cell')}, {took} of computing."
    )
    if plan.given is not None:
        text += (
            f" Trained on the labels in the column '{plan.given}', some of which are wrong, and tested "
            f"against those in '{plan.true}'."
        )
    if len(cells) < total:
        text += f" The study is not finished: {counted(total - len(cells), 'cell', 'are')} missing."
    if len(analysis.failures):
        text += f" {counted(len(analysis.failures), 'cell')} ended in an error."
    return text


def _left_out(analysis: Analysis) -> str:
    if not analysis.left_out:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in analysis.left_out.values())
    summary = f"Left out: {', '.join(analysis.left_out)}"
    return f"<details><summary>{escape(summary)}</summary><ul>{items}</ul></details>\n"


def _section(key: str, title: str, text: str, chart: str | None, tables: list[Table]) -> str:
    parts = [f'<section id="{key}">\n<h2>{escape(title)}</h2>\n']
    if text:
        parts.append(f"<p>{escape(text)}</p>\n")
    if chart:
        parts.append(f'<div class="charts" data-chart="{chart}"></div>\n')
    # Tables of one noise level each are shown one level at a time
    for is_series, group in groupby(tables, key=lambda table: table.noise is not None):
        shown = "".join(_table(table) for table in group)
        parts.append(f'<div class="series">\n{shown}</div>\n' if is_series else shown)
    return "".join([*parts, "</section>\n"])


def _table(table: Table) -> str:
    table = table.upright()
    level = f' data-noise="{table.noise}"' if table.noise is not None else ""
    head = "".join(
        f'<th scope="col"{_long(name)}><button>{escape(name)}</button></th>' for name in table.head
    )
    rows = "".join(f"<tr>{''.join(_field(value) for value in row)}</tr>\n" for row in table.rows)
    note = f"<p>{escape(table.note)}</p>\n" if table.note else ""
    return (
        f'<figure class="table"{level}>\n<figcaption><h3>{escape(table.title)}</h3>\n{note}</figcaption>\n'
        f'<div class="scroll" tabindex="0"><table data-key="{table.key}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table></div>\n</figure>\n"
    )


def _field(value: Value) -> str:
    is_number = isinstance(value.raw, int | float) or hasattr(value.raw, "dtype")
    sort = f' data-v="{float(value.raw)!r}"' if is_number else ""
    text = escape(value.text)
    text = f"<b>{text}</b>" if value.strong else text
    beside = f"<small>{escape(value.beside)}</small>" if value.beside else ""
    return f"<td{sort}{_long(value.text)}>{text}{beside}</td>"


def _long(text: str) -> str:
    """Return the mark of a text that has to be broken into lines, as names may be as long as they like."""
    return ' class="long"' if len(text) > LONG else ""


def _about(analysis: Analysis) -> str:
    plan = "\n".join(
        f"{algorithm.name}: {algorithm.algorithm} {json.dumps(algorithm.parameters)}"
        for algorithm in analysis.plan.algorithms
    )
    versions = "\n".join(
        ", ".join(f"{name} {version}" for name, version in versions.items()) for versions in analysis.versions
    )
    return (
        '<section id="about">\n<h2>Plan and versions</h2>\n'
        f"<p>Seed {analysis.plan.seed}; noise model {escape(analysis.plan.noise_model)}; folds are "
        "stratified; all algorithms see the same folds and the same noise. Plan "
        f"<code>{analysis.plan.digest()[:12]}</code>.</p>\n"
        f"<pre>{escape(plan)}</pre>\n<pre>{escape(versions)}</pre>\n</section>\n"
    )
