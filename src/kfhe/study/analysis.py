"""The analysis of a study: means, ranks and tests at each noise level, compared with those of the paper."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

from kfhe import stats
from kfhe.display.palette import PALETTE
from kfhe.metrics import LOWER_IS_BETTER, METRICS
from kfhe.study.dataset import import_pandas
from kfhe.study.errors import StudyError
from kfhe.study.paper import published
from kfhe.study.plan import Plan
from kfhe.study.store import Store

ALPHA = 0.05


class Analysis:
    """Means, ranks and tests of the results of a study.

    Tables have datasets as rows and algorithms as columns, in the order of the plan. Ranks and tests at a
    noise level are over the datasets for which every algorithm has a score.

    Parameters
    ----------
    path : path
        The result file.
    """

    def __init__(self, path: str | Path) -> None:
        with Store.read(path) as store:
            self.plan: Plan = store.plan
            self.cells = store.cells()
            self.datasets = store.datasets()
            self.traces = store.traces()
            self.versions = store.versions()
        if self.cells.empty:
            raise StudyError(f"{path}: there are no results in it yet; 'kfhe study run' adds them")
        self.algorithms = [algorithm.name for algorithm in self.plan.algorithms]
        present = set(self.cells["noise"])
        self.noise_levels = [level for level in self.plan.noise_levels if level in present]
        self.metric = self.plan.metric

    @property
    def metric_name(self) -> str:
        """The name of the metric for ranks and tests."""
        return METRICS[self.metric]

    @property
    def lower_is_better(self) -> bool:
        """Whether lower values of the metric are better."""
        return self.metric in LOWER_IS_BETTER

    @cached_property
    def other_metrics(self) -> list[Analysis]:
        """The same results by each other metric that has values."""
        return [
            self.judged_by(metric)
            for metric in METRICS
            if metric != self.metric and self.cells[metric].notna().any()
        ]

    def judged_by(self, metric: str) -> Analysis:
        """Return the analysis of the same results by another metric, for the algorithms that have it."""
        other = copy(self)
        for name, attribute in vars(Analysis).items():
            if isinstance(attribute, cached_property):
                other.__dict__.pop(name, None)
        other.metric = metric
        measured = set(self.cells.loc[self.cells[metric].notna(), "algorithm"])
        other.algorithms = [name for name in self.algorithms if name in measured]
        return other

    def means(self, noise: float) -> Any:
        """Return the mean score of each dataset and algorithm at a noise level."""
        return self._summary(noise, "mean")

    def deviations(self, noise: float) -> Any:
        """Return the standard deviation of the scores over repeats and folds."""
        return self._summary(noise, "std")

    def ranks(self, noise: float) -> Any:
        """Return the rank of each algorithm on each dataset: 1 is the best."""
        return stats.ranks(self._higher_is_better(self.means(noise)))

    def complete(self, noise: float) -> Any:
        """Return the means, with higher being better, of datasets for which every algorithm has one."""
        return self._higher_is_better(self.means(noise)).dropna()

    @cached_property
    def average_ranks(self) -> Any:
        """Average ranks: noise levels by algorithms."""
        rows = {noise: self._average_ranks(noise) for noise in self.noise_levels}
        frame = import_pandas().DataFrame(rows).T
        frame.index.name = "noise"
        return frame[self.algorithms]

    @cached_property
    def mean_scores(self) -> Any:
        """Means over the datasets for which every algorithm has a score: noise levels by algorithms."""
        rows = {
            noise: self.means(noise).loc[self.complete(noise).index].mean() for noise in self.noise_levels
        }
        return import_pandas().DataFrame(rows).T[self.algorithms]

    def _average_ranks(self, noise: float) -> Any:
        scores = self.complete(noise)
        return stats.ranks(scores).mean() if len(scores) else scores.mean()

    @property
    def has_ranks(self) -> bool:
        """Whether ranks are useful in addition to scores: not for a single dataset."""
        return len(self._dataset_order) > 1

    @property
    def marked(self) -> list[str] | None:
        """The algorithms in colour if there are many lines: those of kfhe. None: all of them."""
        ours = [each.name for each in self.plan.algorithms if "KFHE" in each.algorithm]
        return ours if ours and len(self.algorithms) > len(PALETTE) else None

    def can_test(self, noise: float) -> bool:
        """Whether there are enough results for a test: two datasets and two algorithms."""
        return min(self.complete(noise).shape) >= 2

    @cached_property
    def friedman(self) -> Any:
        """Friedman aligned ranks test of each noise level: datasets, statistic and p-value."""
        rows = {}
        for noise in filter(self.can_test, self.noise_levels):
            scores = self.complete(noise)
            test = stats.friedman_aligned_ranks(scores)
            rows[noise] = (len(scores), test.statistic, test.pvalue)
        columns = ["datasets", "statistic", "pvalue"]
        return import_pandas().DataFrame.from_dict(rows, orient="index", columns=columns)

    def posthoc(self, noise: float) -> Any:
        """Return the adjusted p-values of the aligned-rank post-hoc test: algorithms by algorithms."""
        return stats.aligned_ranks_posthoc(self.complete(noise))

    def wilcoxon(self, noise: float) -> Any:
        """Return the Wilcoxon signed-ranks test (two-sided) of each pair, with wins, losses and ties."""
        return stats.wilcoxon_table(self.complete(noise))

    def groups(self, noise: float) -> list[list[str]]:
        """Return the largest groups of algorithms, by average rank, without a significant difference."""
        return stats.groups_alike(self.average_ranks.loc[noise], self.posthoc(noise), alpha=ALPHA)

    @cached_property
    def times(self) -> Any:
        """Time per algorithm: cells, total hours, mean seconds for fit and predict, mean components."""
        cells = self.cells.assign(total_seconds=self.cells[["fit_seconds", "predict_seconds"]].sum(axis=1))
        frame = cells.groupby("algorithm").agg(
            cells=("fold", "size"),
            failed=("error", "count"),
            total_seconds=("total_seconds", "sum"),
            fit_seconds=("fit_seconds", "mean"),
            predict_seconds=("predict_seconds", "mean"),
            components=("components", "mean"),
        )
        return frame.reindex(self.algorithms)

    @cached_property
    def failures(self) -> Any:
        """Cells that ended in an error."""
        columns = ["dataset", "algorithm", "noise", "repeat", "fold", "error"]
        return self.cells.loc[self.cells["error"].notna(), columns]

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Datasets of the plan that could not be used, with reasons."""
        problems = self.datasets["problem"].dropna()
        return dict(problems)

    @property
    def has_published(self) -> bool:
        """Whether the paper has comparable scores: macro F1 with uniform label noise."""
        plan = self.plan
        return self.metric == "f1_macro" and plan.noise_model == "uniform" and plan.given is None

    @property
    def compares(self) -> bool:
        """Whether results can be compared with the paper's: its algorithms, and most of its datasets."""
        if set(self.algorithms) != set(published.ALGORITHMS):
            return False
        return self.comparison.loc[self.comparison["comparable"], "dataset"].nunique() >= 20

    @cached_property
    def comparison(self) -> Any:
        """Our scores and the published ones: one row per dataset, algorithm and noise level of the paper.

        Columns: dataset, algorithm, noise, ours, published, difference, authors_program (the authors' own
        program, KFHE without noise only), comparable (whether the data are the paper's).
        """
        program = published.authors_program()
        rows = []
        for noise in self.noise_levels if self.has_published else []:
            ours, printed = self.means(noise), published.scores(noise)
            for dataset in ours.index.intersection(printed.index, sort=False):
                for algorithm in ours.columns.intersection(printed.columns, sort=False):
                    own, theirs = ours.at[dataset, algorithm], printed.at[dataset, algorithm]
                    known = noise == 0 and algorithm in program and dataset in program.index
                    again = program.at[dataset, algorithm] if known else None
                    row = (dataset, algorithm, noise, own, theirs, own - theirs, again)
                    rows.append((*row, published.comparable(dataset)))
        columns = ["dataset", "algorithm", "noise", "ours", "published", "difference", "authors_program"]
        frame = import_pandas().DataFrame(rows, columns=[*columns, "comparable"])
        return frame.dropna(subset=["ours"])

    def _higher_is_better(self, frame: Any) -> Any:
        return -frame if self.lower_is_better else frame

    def _summary(self, noise: float, what: str) -> Any:
        return self._summaries[what].loc[noise].reindex(index=self._dataset_order, columns=self.algorithms)

    @cached_property
    def _dataset_order(self) -> list[str]:
        present = set(self.cells["dataset"])
        return [name for name in self.plan.dataset_names if name in present]

    @cached_property
    def _summaries(self) -> dict[str, Any]:
        grouped = self.cells.groupby(["noise", "dataset", "algorithm"])[self.metric]
        return {what: grouped.agg(what).unstack("algorithm") for what in ("mean", "std")}
