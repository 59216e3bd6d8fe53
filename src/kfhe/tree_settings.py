"""Tree settings: how native trees are grown."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import log2
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from kfhe.engine.trees.grower import Grower
from kfhe.exchange import ALONE, Exchange
from kfhe.tables.binned import BinnedTable
from kfhe.target_encoding import Target

MOST_COLUMNS = MOST_CLASSES = 65535  # compiled code uses 16 bits


# Settings of how a table is encoded and how a tree is used, rather than grown
NOT_OF_GROWING = ("splitter", "shrinkage", "max_bins", "categorical_features", "honest_categories")
LARGEST = 2**63 - 1  # the largest number in compiled code


def _accepts(*accepted: Any) -> dict[str, Any]:
    """Add the accepted values of a setting, as in scikit-learn's validation."""
    return {"accepted": list(accepted)}


def _at_least(least: int) -> Interval:
    return Interval(Integral, least, LARGEST, closed="both")


@dataclass(frozen=True)
class TreeSettings:
    """How native trees are grown; `CARTClassifier` describes each setting. The defaults are the paper's.

    A setting is declared here, and in the signature of each classifier that has it.

    Examples
    --------
    >>> from kfhe import CARTClassifier
    >>> from kfhe.tree_settings import TreeSettings
    >>> TreeSettings.of(CARTClassifier(max_depth=3)).max_depth
    3
    """

    max_depth: int | None = field(default=30, metadata=_accepts(_at_least(1), None))
    min_samples_split: int = field(default=20, metadata=_accepts(_at_least(2)))
    min_samples_leaf: int = field(default=7, metadata=_accepts(_at_least(1)))
    max_leaf_nodes: int | None = field(default=None, metadata=_accepts(_at_least(2), None))
    max_features: int | float | str | None = field(
        default=None,
        metadata=_accepts(
            _at_least(1), Interval(Real, 0, 1, closed="right"), StrOptions({"sqrt", "log2"}), None
        ),
    )
    splitter: str = field(default="best", metadata=_accepts(StrOptions({"best", "random"})))
    cp: float = field(default=0.0, metadata=_accepts(Interval(Real, 0, None, closed="left")))
    shrinkage: float | str = field(
        default=0.0, metadata=_accepts(Interval(Real, 0, 1e6, closed="left"), StrOptions({"auto"}))
    )
    max_bins: int = field(default=255, metadata=_accepts(Interval(Integral, 2, 255, closed="both")))
    categorical_features: Any = field(
        default="from_dtype", metadata=_accepts(StrOptions({"from_dtype"}), "array-like", None)
    )

    honest_categories: bool = field(default=False, metadata=_accepts("boolean"))

    @classmethod
    def of(cls, estimator: Any) -> TreeSettings:
        """Create the settings from the parameters of a classifier."""
        return cls(**{setting.name: getattr(estimator, setting.name) for setting in fields(cls)})

    @classmethod
    def constraints(cls) -> dict[str, list[Any]]:
        """Return the accepted values of each setting, for scikit-learn's validation of parameters."""
        return {setting.name: setting.metadata["accepted"] for setting in fields(cls)}

    def features_per_split(self, n_features: int) -> int:
        """Return the number of features that a node considers."""
        wanted = self.max_features
        if wanted is None:
            return n_features
        if isinstance(wanted, str):
            wanted = n_features**0.5 if wanted == "sqrt" else log2(max(1, n_features))
        elif not isinstance(wanted, Integral):
            wanted = wanted * n_features
        return max(1, min(n_features, int(wanted)))

    def binned(self, X: Any, n_threads: int, target: Target | None = None) -> BinnedTable:
        """Bin a table; columns of many categories are encoded by the target."""
        return BinnedTable.from_table(X, self.categorical_features, self.max_bins, n_threads, target)

    def grower(
        self,
        table: BinnedTable,
        labels: NDArray[np.int32],
        n_classes: int,
        seed: int,
        n_threads: int,
        exchange: Exchange = ALONE,
    ) -> Grower:
        """Return what grows trees on a table."""
        check_columns(len(table.n_bins))
        check_classes(n_classes)
        return Grower(
            table.codes,
            table.n_bins,
            table.categorical,
            table.low,
            table.high,
            labels,
            n_classes,
            self.rules(len(table.n_bins), seed),
            n_threads,
            exchange=exchange if exchange.n > 1 else None,
        )

    def rules(self, n_features: int, seed: int) -> dict[str, Any]:
        """Return the settings for compiled code: the fields of `Rules` in rules.h."""
        grown = {name: value or 0 for name, value in vars(self).items() if name not in NOT_OF_GROWING}
        translated = {
            "max_features": self.features_per_split(n_features),
            "random_cuts": self.splitter == "random",
        }
        return {**grown, **translated, "seed": seed}


def check_columns(n_columns: int) -> None:
    """Raise if there are more columns than trees can tell apart."""
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"X has {n_columns} columns; at most {MOST_COLUMNS} are accepted")


def check_classes(n_classes: int) -> None:
    """Raise if there are more classes than trees support."""
    if n_classes > MOST_CLASSES:
        raise ValueError(f"y has {n_classes} classes; at most {MOST_CLASSES} are accepted")
