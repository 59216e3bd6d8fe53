"""The report as a single HTML page."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from typing import Any

from kfhe.display.palette import PALETTE, TRACE_LINES
from kfhe.display.text import counted, needed
from kfhe.study.analysis import Analysis
from kfhe.study.report.tables import Table, finding


def page(analysis: Analysis, tables: list[Table]) -> str:
    """Return the HTML of a report."""
    with needed("the page of a report needs Jinja", "study"):
        from jinja2 import Environment
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    style, script, template = (
        files("kfhe.study.report").joinpath(f"page.{suffix}").read_text(encoding="utf-8")
        for suffix in ("css", "js", "html")
    )
    by_section: dict[str, list[Table]] = {}
    for table in tables:
        by_section.setdefault(table.section, []).append(table.upright())
    return environment.from_string(template).render(
        analysis=analysis,
        plan=analysis.plan,
        finding=finding(analysis),
        summary=_summary(analysis),
        tables=by_section,
        charts=chart_data(analysis),
        style=style,
        script=script,
        dumps=json.dumps,
    )


def chart_data(analysis: Analysis) -> dict[str, Any]:
    """Return the data of the charts; a chart without data is empty."""
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
        "marked": analysis.marked or names,
        "noise": levels,
        "ranks": {name: _numbers(ranks[name], 3) for name in names if analysis.has_ranks},
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
