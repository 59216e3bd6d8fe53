"""Options that several commands share, each declared once: as fields of a class that a command takes whole.

A command's parameter of the type `Training` or `LabelledInput` stands for all of its fields: `spread` shows
them to typer as options of their own, and hands them over as one object. So a new option of training is one
field of `Training`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kfhe.cli.echo import echo

if TYPE_CHECKING:
    from kfhe.base import BaseKFHE
    from kfhe.tables.files import Dialect
    from kfhe.tables.labelled import LabelledTable
    from kfhe.tables.parts import PartedTable

_PANEL = "Training"
_CSV_PANEL = "How the file is written"
_PAPER_PANEL = "Trees of kfhe-e and kfhe-l"
_TREE_SETTINGS = ("max_depth", "min_samples_leaf", "min_samples_split")


class Model(StrEnum):
    """Which classifier to train."""

    robust = "robust"
    kfhe_e = "kfhe-e"
    kfhe_l = "kfhe-l"


class ClassWeight(StrEnum):
    """Weights of the classes."""

    balanced = "balanced"


EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe in front of text in a csv that a spreadsheet would take for a formula.",
    ),
]


Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Run on the Dask cluster of this scheduler instead, such as tcp://10.0.0.1:8786.",
        metavar="ADDRESS",
    ),
]


def refuse_jobs(jobs: int | None, scheduler: str | None) -> None:
    """Raise if processors of this machine are to be used on a cluster."""
    if jobs is not None and scheduler is not None:
        raise typer.BadParameter(
            "they are processes of this machine; workers of a --scheduler are started elsewhere",
            param_hint="--jobs",
        )


@dataclass(frozen=True, kw_only=True)
class CsvInput:
    """How a csv or Excel file is written, where that can't be seen."""

    sep: Annotated[
        str | None,
        typer.Option(
            help="What separates columns; default: as the header has it.", rich_help_panel=_CSV_PANEL
        ),
    ] = None
    decimal: Annotated[
        str | None,
        typer.Option(help="The decimal mark: . or ,; default: as it is used.", rich_help_panel=_CSV_PANEL),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            help="The encoding, such as latin-1; default: UTF-8, or what Windows writes.",
            rich_help_panel=_CSV_PANEL,
        ),
    ] = None
    na: Annotated[
        list[str] | None,
        typer.Option(
            help="A word that is a gap, besides NA and the like; repeatable.",
            metavar="WORD",
            rich_help_panel=_CSV_PANEL,
        ),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option(help="The sheet of an Excel file; default: the first.", rich_help_panel=_CSV_PANEL),
    ] = None

    @property
    def dialect(self) -> Dialect:
        """What these options say, checked."""
        from kfhe.tables.files import Dialect

        sep = {"\\t": "\t", "tab": "\t"}.get(self.sep or "", self.sep)
        if sep is not None and (len(sep) != 1 or not sep.isascii() or sep in '"\n\r'):
            raise typer.BadParameter(f"must be one letter, or tab, got {sep!r}", param_hint="--sep")
        if self.decimal not in (None, ".", ","):
            raise typer.BadParameter(f"must be . or , got {self.decimal!r}", param_hint="--decimal")
        return Dialect(sep, self.decimal, self.encoding, tuple(self.na or ()), self.sheet)


@dataclass(frozen=True, kw_only=True)
class ReadingInput(CsvInput):
    """How a file is written, and what its columns are read as."""

    read_as: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="Read a column as category, number, date, day-first, month-first, time or boolean, such as "
            "joined=day-first; repeatable. Default: as it looks, if that leaves no doubt.",
            metavar="COLUMN=KIND",
        ),
    ] = None

    @property
    def kinds(self) -> dict[str, str]:
        """What columns are to be read as, checked."""
        from kfhe.tables.texts import KINDS

        found: dict[str, str] = {}
        for given in self.read_as or ():
            column, _, kind = given.rpartition("=")
            if not column or kind not in KINDS:
                raise typer.BadParameter(
                    f"must be COLUMN=KIND, a kind being one of {', '.join(KINDS)}; got {given!r}",
                    param_hint="--as",
                )
            if found.setdefault(column, kind) != kind:
                raise typer.BadParameter(
                    f"{column!r} can't be read as {found[column]} and as {kind}; leave one out",
                    param_hint="--as",
                )
        return found

    @property
    def for_plan(self) -> dict[str, Any]:
        """What these options say, as a plan of a study has it: without what is not said."""
        dialect = self.dialect
        names = ("sep", "decimal", "encoding", "sheet")
        said = {name: getattr(dialect, name) for name in names} | {"na": list(dialect.na), "as": self.kinds}
        return {name: value for name, value in said.items() if value}


@dataclass(frozen=True, kw_only=True)
class TargetInput(ReadingInput):
    """The target of a table, and which of its columns are learnt from."""

    target: Annotated[str, typer.Option("--target", "-t", help="The column to learn.", show_default=False)]
    categorical: Annotated[
        list[str] | None,
        typer.Option(help="A column of numbers that are categories; repeatable.", metavar="COLUMN"),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to leave out, such as an identifier; repeatable. * stands for any letters.",
            metavar="COLUMN",
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="A column that tells which rows belong together, such as those of one patient: no row is "
            "judged by what was learnt from its group. It is not learnt from.",
            metavar="COLUMN",
        ),
    ] = None
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Leave rows out that have no label.")
    ] = False

    def check(self) -> None:
        """Raise if the options contradict each other."""
        from kfhe.tables.texts import CATEGORY

        if self.target in (self.drop or ()):
            raise typer.BadParameter("the target can't be left out", param_hint="--drop")
        if self.target == self.groups:
            raise typer.BadParameter(
                f"{self.target!r} is the target; groups are a column of their own", param_hint="--groups"
            )
        of_names = {**dict.fromkeys(self.categorical or (), "--categorical"), self.target: "the target"}
        for column, kind in self.kinds.items():
            if kind != CATEGORY and column in of_names:
                raise typer.BadParameter(
                    f"{column!r} is {of_names[column]}, and can't be read as {kind}", param_hint="--as"
                )

    def read_file(self, table: Path) -> LabelledTable:
        """Read a table."""
        from kfhe.tables.labelled import LabelledTable

        return LabelledTable.read(
            table,
            self.target,
            categorical=self.categorical or (),
            read_as=self.kinds,
            drop=self.drop or (),
            groups=self.groups,
            dialect=self.dialect,
            drop_unlabelled=self.drop_unlabelled,
        )

    def categorical_features(self, data: LabelledTable | PartedTable) -> Any:
        """Return the parameter of that name for the table that was read."""
        return data.categorical if data.made_categories else "from_dtype"


@dataclass(frozen=True, kw_only=True)
class LabelledInput(TargetInput):
    """A table with a target, in one file."""

    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A .csv, .csv.gz, .parquet or .xlsx file; - for standard input.",
            show_default=False,
        ),
    ]

    def read(self) -> LabelledTable:
        """Read the table."""
        return self.read_file(self.table)


@dataclass(frozen=True, kw_only=True)
class LabelledFiles(TargetInput):
    """A table with a target, in one file or in several."""

    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            help="A .csv, .csv.gz, .parquet or .xlsx file; - for standard input. Several parquet files, or a "
            "folder of them, are one table, which may be larger than memory.",
            show_default=False,
        ),
    ]

    @property
    def files(self) -> list[Path]:
        """The files, those in folders one by one."""
        from kfhe.tables.footers import files_in

        return [file for table in self.tables for file in (files_in(table) if table.is_dir() else [table])]

    def open_parts(self) -> PartedTable:
        """Open parquet files, to be read part by part."""
        from kfhe.tables.parts import PartedTable

        for name in ("sep", "decimal", "encoding", "na", "sheet"):
            if getattr(self, name) is not None:
                raise typer.BadParameter(
                    "what is read part by part is parquet files, which are all written alike",
                    param_hint=f"--{name}",
                )
        return PartedTable.open(
            self.tables,
            self.target,
            categorical=self.categorical or (),
            read_as=self.kinds,
            drop=self.drop or (),
            groups=self.groups,
            drop_unlabelled=self.drop_unlabelled,
        )


@dataclass(frozen=True)
class Training:
    """How to train: the fields are parameters of the classifiers; None stands for the classifier's own."""

    n_estimators: Annotated[
        int, typer.Option(min=1, help="Components after the first.", rich_help_panel=_PANEL)
    ] = 100
    max_samples: Annotated[
        str | None,
        typer.Option(
            help="Rows to train a component on: a number, a share such as 0.2, or auto; default: as many as "
            "there are.",
            metavar="ROWS",
            rich_help_panel=_PANEL,
        ),
    ] = None
    class_weight: Annotated[
        ClassWeight | None,
        typer.Option(help="balanced: rare classes count as much.", rich_help_panel=_PANEL),
    ] = None
    random_state: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, help="Seed: the same one gives the same model.", rich_help_panel=_PANEL
        ),
    ] = 0
    n_jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            help="Threads; default: one per processor.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    max_depth: Annotated[
        int | None,
        typer.Option(min=1, help="Most splits above a leaf; default: 30.", rich_help_panel=_PAPER_PANEL),
    ] = None
    min_samples_leaf: Annotated[
        int | None,
        typer.Option(min=1, help="Fewest rows of a leaf; default: 7.", rich_help_panel=_PAPER_PANEL),
    ] = None
    min_samples_split: Annotated[
        int | None,
        typer.Option(
            min=2, help="Fewest rows of a node that is split; default: 20.", rich_help_panel=_PAPER_PANEL
        ),
    ] = None

    def check(self, model: Model) -> None:
        """Raise if an option is given that the model doesn't take."""
        for name in _TREE_SETTINGS:
            if model is Model.robust and getattr(self, name) is not None:
                raise typer.BadParameter(
                    "it is for --model kfhe-e and kfhe-l; robust finds out by itself how far to trust a leaf",
                    param_hint=f"--{name.replace('_', '-')}",
                )
        self.sample_size()

    def sample_size(self) -> int | float | str | None:
        """Return what `--max-samples` says, as the classifiers take it."""
        given = self.max_samples
        if given in (None, "auto"):
            return given
        assert given is not None
        with suppress(ValueError):
            if given.isdecimal() and int(given) > 0:
                return int(given)
            if 0 < float(given) <= 1:
                return float(given)
        raise typer.BadParameter(
            f"must be a number of rows, a share above 0 and up to 1.0, or auto; got {given!r}",
            param_hint="--max-samples",
        )

    def new_model(self, model: Model, categorical_features: Any, classifiers: Any = None) -> BaseKFHE:
        """Return an unfitted model with these settings; `classifiers` is the module that has its class."""
        from kfhe import CARTClassifier

        if classifiers is None:
            import kfhe as classifiers

        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        settings["max_samples"] = self.sample_size()
        given: dict[str, Any] = {
            name: str(value) if isinstance(value, StrEnum) else value
            for name, value in settings.items()
            if value is not None
        }
        if model is Model.robust:
            return classifiers.RobustKFHEClassifier(categorical_features=categorical_features, **given)
        emphasis = {Model.kfhe_e: "exponential", Model.kfhe_l: "linear"}[model]
        trees = {name: given.pop(name) for name in _TREE_SETTINGS if name in given}
        tree = CARTClassifier(categorical_features=categorical_features, **trees)
        return classifiers.KFHEClassifier(tree, emphasis=emphasis, **given)


GROUPS = (CsvInput, ReadingInput, LabelledInput, LabelledFiles, Training)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a command's `GROUPS` be an option of its own.

    Parameters
    ----------
    command : callable
        Some of its parameters may have one of the `GROUPS` as their type.

    Returns
    -------
    callable
        The command as typer takes it.

    Examples
    --------
    >>> from kfhe.cli.options import Training, spread
    >>> @spread
    ... def show(training: Training) -> None:
    ...     print(training.n_estimators, training.random_state)
    >>> show(n_estimators=7)
    7 0
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {name: p.annotation for name, p in signature.parameters.items() if p.annotation in GROUPS}
    parameters = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            hints = get_type_hints(groups[name], include_extras=True)
            parameters += [_parameter(field, hints[field.name]) for field in fields(groups[name])]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def spread_command(**given: Any) -> None:
        for name, group in groups.items():
            own = {field.name for field in fields(group)} & given.keys()
            given[name] = group(**{key: given.pop(key) for key in own})
        command(**given)

    spread_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread_command


def _parameter(field: Field[Any], hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def refuse(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise if the user has given one of some options."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(reason, param_hint=parameter.opts[0])


def check_writable(output: Path, *inputs: Path, option: str = "--output") -> None:
    """Raise if an output would overwrite an input, or can't be made; asked before anything takes long."""
    from kfhe.files import unwritable

    if reason := unwritable(output, *inputs):
        raise typer.BadParameter(reason, param_hint=option)


def check_folder(folder: Path, names: Collection[str], *inputs: Path, option: str = "--output") -> None:
    """Raise unless a folder is there or can be made, and if one of its files would overwrite an input."""
    from kfhe.files import nearest

    if not nearest(folder).is_dir():
        raise typer.BadParameter(f"{nearest(folder)} is no folder", param_hint=option)
    for name in names if folder.exists() else ():
        check_writable(folder / name, *inputs, option=option)


def check_table_output(output: Path, *inputs: Path) -> None:
    """Raise unless an output's ending says what table to write, and it can be made."""
    from kfhe.tables.errors import TableFileError
    from kfhe.tables.output import check_output

    try:
        check_output(output)
    except TableFileError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error
    check_writable(output, *inputs)


def check_picture(output: Path, *inputs: Path, option: str = "--output") -> None:
    """Raise unless a picture can be drawn, to a file of a known kind that is none of the inputs."""
    check_plotting()
    from kfhe.plotting.display import FORMATS

    if output.suffix.lower().removeprefix(".") not in FORMATS:
        accepted = ", ".join(f".{known}" for known in FORMATS)
        raise typer.BadParameter(f"{output}: the file's name must end in {accepted}", param_hint=option)
    check_writable(output, *inputs, option=option)


def check_plotting() -> None:
    """Raise unless there is matplotlib, and let it open no window."""
    try:
        import matplotlib
    except ImportError:
        echo('kfhe: plots need matplotlib: pip install "kfhe[plot]"', err=True)
        raise typer.Exit(1) from None
    matplotlib.use("agg")
