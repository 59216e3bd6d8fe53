"""The plan of a study: a small TOML file, typed and validated."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from kfhe.metrics import METRICS
from kfhe.noise import NOISE_MODELS
from kfhe.study.dataset import Roles, is_table, table_name
from kfhe.study.errors import StudyError
from kfhe.tables.files import Dialect
from kfhe.tables.readings import KINDS

PRESETS = ("quick", "paper", "noise", "others", "real", "careless")
ALL_TABLES = "*"  # stands for all tables of the data folder


@dataclass(frozen=True)
class Algorithm:
    """A classifier of the study.

    Attributes
    ----------
    name : str
        Its name in the results.
    algorithm : str
        A short name (see :mod:`kfhe.study.algorithms`) or the import path of a scikit-learn classifier.
    parameters : dict
        Its parameters, if they are not the defaults.
    """

    name: str
    algorithm: str
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One training run. Its name determines its place in the results and its seed."""

    dataset: str
    algorithm: str
    noise: float
    repeat: int
    fold: int


@dataclass(frozen=True)
class Plan:
    """A plan: algorithms, datasets, noise levels, repeats and folds.

    Attributes
    ----------
    datasets : tuple of str
        Names in the catalogue or the data folder, paths of table files, or ``*`` for all tables of the data
        folder.
    algorithms : tuple of Algorithm
        The classifiers.
    noise_levels : tuple of float
        Amounts of noise in the training rows: for most noise models, the share of labels to change.
    noise_model : str
        The noise model: a name in `kfhe.noise.NOISE_MODELS`.
    repeats, folds : int
        Number of repeats and folds of cross-validation.
    metric : str
        The metric for ranks and tests: a name in `kfhe.metrics.METRICS`.
    seed : int
        The seed of folds, noise and models.
    given, true : str or None
        The columns of training labels and of true labels for testing, in all tables. None: there is a single
        column of labels.
    drop : tuple of str
        Columns to ignore, if they exist; ``*`` matches any characters.
    target : str or None
        The column to predict, in all tables; datasets of the catalogue without such a column use their
        own. None: the one named ``class``.
    reading : dict
        How files are written, where that can't be detected: ``sep``, ``decimal``, ``encoding``, ``na`` (a
        list), ``sheet``; and ``as``, a table of column types.

    Examples
    --------
    >>> from kfhe.study.plan import Plan
    >>> plan = Plan.preset("quick")
    >>> [algorithm.name for algorithm in plan.algorithms][:2]
    ['Robust KFHE', 'KFHE-e']
    """

    datasets: tuple[str, ...]
    algorithms: tuple[Algorithm, ...]
    noise_levels: tuple[float, ...] = (0.0,)
    noise_model: str = "uniform"
    repeats: int = 1
    folds: int = 4
    metric: str = "f1_macro"
    seed: int = 0
    given: str | None = None
    true: str | None = None
    drop: tuple[str, ...] = ()
    target: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def preset(cls, name: str) -> Plan:
        """Return a preset: one of `PRESETS`."""
        return cls.from_toml(preset_text(name), f"preset {name}")

    @classmethod
    def from_file(cls, path: str | Path) -> Plan:
        """Read a plan; paths of data files in it are relative to its own folder."""
        path = Path(path)
        if is_table(path.name):
            raise StudyError(f"{path} is a table, not a plan; to run a study on it: --dataset {path.name}")
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise StudyError(f"{path}: the plan can't be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise StudyError(f"{path}: the plan can't be read: {error}") from error
        plan = cls.from_toml(text, str(path))
        return replace(
            plan,
            datasets=tuple(str(path.parent / name) if is_table(name) else name for name in plan.datasets),
        )

    @classmethod
    def from_toml(cls, text: str, origin: str = "plan") -> Plan:
        """Create a plan from TOML text; errors name `origin` and the key."""
        try:
            return cls.from_keys(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{origin}: this is not TOML: {error}") from error
        except StudyError as error:
            raise StudyError(f"{origin}: {error}") from error

    @classmethod
    def from_keys(cls, keys: dict[str, Any]) -> Plan:
        """Create a plan from the keys of a TOML file, validated."""
        known = [item.name for item in fields(cls)]
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise StudyError(f"'{unknown[0]}' is not a key of a plan; there are {', '.join(known)}")
        for key in ("datasets", "algorithms"):
            if key not in keys:
                raise StudyError(f"'{key}' is missing")
        algorithms = keys["algorithms"]
        _check("algorithms", algorithms, isinstance(algorithms, dict), "a table of name = {parameters}")
        made = tuple(_algorithm(name, given) for name, given in algorithms.items())
        levels = keys.get("noise_levels", [0.0])
        texts: dict[str, Any] = {key: _texts(key, keys[key]) for key in ("datasets", "drop") if key in keys}
        return cls(**{**keys, **texts, "algorithms": made, "noise_levels": levels}).checked()

    def checked(self) -> Plan:
        """Return the plan, or raise an error that names the invalid key."""
        _check("metric", self.metric, self.metric in METRICS, f"one of {', '.join(METRICS)}")
        known = self.noise_model in NOISE_MODELS
        _check("noise_model", self.noise_model, known, f"one of {', '.join(NOISE_MODELS)}")
        plan = replace(self, noise_levels=_checked_levels(self.noise_levels, self.noise_model))
        for key, least in (("repeats", 1), ("folds", 2), ("seed", 0)):
            value = getattr(plan, key)
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            _check(key, value, is_whole and value >= least, f"a whole number of at least {least}")
        for key in ("datasets", "algorithms"):
            if not getattr(plan, key):
                raise StudyError(f"'{key}' is empty")
        if len(plan.dataset_names) < len(plan.datasets):
            raise StudyError(f"'datasets' names one twice: {', '.join(plan.datasets)}")
        if ALL_TABLES in plan.datasets and len(plan.datasets) > 1:
            raise StudyError(
                f"'datasets' is '{ALL_TABLES}' for all tables of the data folder, or a list of some"
            )
        if (plan.given, plan.true) != (None, None) and (
            None in (plan.given, plan.true) or plan.given == plan.true
        ):
            raise StudyError(
                f"'given' and 'true' must be two columns of labels, got {plan.given!r} and {plan.true!r}"
            )
        _check_reading(plan.reading)
        if plan.target is not None and plan.given is not None:
            raise StudyError("'target' and 'given' both name the labels to learn; leave one of them out")
        return plan

    @property
    def dataset_names(self) -> dict[str, str]:
        """The names of the datasets in the results, and what they are loaded from."""
        return {(table_name(entry) if is_table(entry) else entry): entry for entry in self.datasets}

    @property
    def roles(self) -> Roles:
        """Roles and types of the columns."""
        dialect = {key: value for key, value in self.reading.items() if key != "as"}
        dialect["na"] = tuple(dialect.get("na", ()))
        read_as = tuple(self.reading.get("as", {}).items())
        return Roles(self.given, self.true, self.drop, self.target, Dialect(**dialect), read_as)

    @property
    def level(self) -> str:
        """The meaning of a noise level, as an axis label."""
        return NOISE_MODELS[self.noise_model].level

    def noise_done(self, *levels: float) -> str:
        """Describe what some noise levels do to the training rows."""
        amounts = ", ".join(f"{100 * level:g}%" for level in levels)
        return f"{amounts} {NOISE_MODELS[self.noise_model].done}"

    def cells(self) -> list[Cell]:
        """Return all cells, ordered so that each repeat is a complete study."""
        return [
            Cell(dataset, algorithm.name, noise, repeat, fold)
            for repeat in range(self.repeats)
            for dataset in self.dataset_names
            for noise in self.noise_levels
            for fold in range(self.folds)
            for algorithm in self.algorithms
        ]

    def to_json(self) -> str:
        """Return the plan as canonical JSON: equal plans give equal text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan from :meth:`to_json`."""
        keys = json.loads(text)
        keys["algorithms"] = tuple(Algorithm(**item) for item in keys["algorithms"])
        keys["datasets"] = tuple(keys["datasets"])
        keys["noise_levels"] = tuple(keys["noise_levels"])
        keys["drop"] = tuple(keys["drop"])
        return cls(**keys)

    def digest(self) -> str:
        """Return a hash of everything that determines the results, without folders of data files."""
        return hashlib.sha256(self._without_folders().to_json().encode()).hexdigest()

    def goes_on_from(self, other: Plan) -> bool:
        """Whether another plan is the same with at most as many repeats."""
        same = replace(other, repeats=self.repeats).digest() == self.digest()
        return same and self.repeats >= other.repeats

    def differences(self, other: Plan) -> list[str]:
        """Name the keys in which two plans differ."""
        mine, others = self._without_folders(), other._without_folders()
        return [item.name for item in fields(self) if getattr(mine, item.name) != getattr(others, item.name)]

    def _without_folders(self) -> Plan:
        return replace(self, datasets=tuple(self.dataset_names))


def preset_text(name: str) -> str:
    """Return the TOML text of a preset: one of `PRESETS`."""
    if name not in PRESETS:
        raise StudyError(f"there is no plan '{name}'; give a TOML file or one of {', '.join(PRESETS)}")
    return files("kfhe.study").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")


def _check(key: str, value: Any, is_right: bool, accepted: str) -> None:
    if not is_right:
        raise StudyError(f"'{key}' must be {accepted}, got {value!r}")


def _algorithm(name: str, given: Any) -> Algorithm:
    _check(f"algorithms.{name}", given, isinstance(given, dict), "a table of parameters")
    parameters = dict(given)
    algorithm = parameters.pop("algorithm", name)
    _check(f"algorithms.{name}.algorithm", algorithm, isinstance(algorithm, str), "a text")
    return Algorithm(name, algorithm, parameters)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    is_list = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    _check(key, value, is_list, "a list of names")
    return tuple(value)


def _check_reading(reading: Any) -> None:
    known = ("sep", "decimal", "encoding", "na", "sheet", "as")
    is_table = isinstance(reading, dict) and reading.keys() <= {*known}
    _check("reading", reading, is_table, f"a table of some of {', '.join(known)}")
    _texts("reading.na", reading.get("na", ()))
    kinds = reading.get("as", {})
    are_kinds = isinstance(kinds, dict) and {*kinds.values()} <= {*KINDS}
    _check("reading.as", kinds, are_kinds, f"a table of column = kind ({', '.join(KINDS)})")
    for key in ("sep", "decimal", "encoding", "sheet"):
        _check(f"reading.{key}", reading.get(key), isinstance(reading.get(key, ""), str), "a text")


def _checked_levels(levels: Any, noise_model: str) -> tuple[float, ...]:
    most = NOISE_MODELS[noise_model].most
    of_model = "" if noise_model == "uniform" else f" for the noise model '{noise_model}'"
    wrong = "none" if levels in ([], ()) else repr(levels)
    if isinstance(levels, list | tuple) and levels:
        outside = [level for level in levels if not _is_number(level) or not 0 <= level <= most]
        if not outside:
            return tuple(sorted({float(level) for level in levels}))
        wrong = repr(outside[0])
    raise StudyError(f"'noise_levels' must be a list of shares from 0 to {most:g}{of_model}, got {wrong}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
