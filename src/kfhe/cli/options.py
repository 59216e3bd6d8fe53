"""Options that several commands share, each declared once, as a field of a dataclass.

A parameter of type `Training` or `LabelledInput` stands for all of its fields. `spread` shows them to typer
as single options, and passes them to the command as one object. So a new option of training is a new field of
`Training`.
"""

from __future__ import annotations

import inspect
import os
import sys
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
    from kfhe.tables.labelled import ColumnRoles, LabelledTable
    from kfhe.tables.parts import PartedTable

_TREE_SETTINGS = ("min_samples_leaf", "max_leaf_nodes")


class Model(StrEnum):
    """Which classifier to train."""

    robust = "robust"
    kfhe_e = "kfhe-e"
    kfhe_l = "kfhe-l"


class Place(StrEnum):
    """Where to train."""

    cpu = "cpu"
    cuda = "cuda"


Device = Annotated[Place, typer.Option("--device", help="Train on the processor or on an Nvidia GPU.")]


class ClassWeight(StrEnum):
    """Weights of the classes."""

    balanced = "balanced"


EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas", help="Put an apostrophe before text that a spreadsheet would run as a formula."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(help="Use the Dask cluster of this scheduler (tcp://host:8786).", metavar="ADDRESS"),
]
Decision = Annotated[
    str | None,
    typer.Option(
        help="balanced favours rare classes, likeliest does not; a number from 0 to 1 sets how much.",
        metavar="RULE",
    ),
]


DataDir = Annotated[
    Path | None, typer.Option(envvar="KFHE_DATA", help="Folder of table files.", metavar="FOLDER")
]
StudyTarget = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", help="Column to predict; default: class, or the known one.", show_default=False
    ),
]


def decision_of(given: str | None) -> str | float | None:
    """Return the value of `--decision` for `RobustKFHEClassifier`."""
    from kfhe.forest import DECISIONS

    if given is None or given in DECISIONS:
        return given
    with suppress(ValueError):
        if 0 <= float(given) <= 1:
            return float(given)
    raise typer.BadParameter(
        f"must be {', '.join(DECISIONS)} or a number from 0 to 1, got {given!r}", param_hint="--decision"
    )


def refuse_jobs(jobs: int | None, scheduler: str | None) -> None:
    """Raise if local processes are requested on a cluster."""
    if jobs is not None and scheduler is not None:
        raise typer.BadParameter(
            "local processes can't be combined with --scheduler, whose workers are started elsewhere",
            param_hint="--jobs",
        )


@dataclass(frozen=True, kw_only=True)
class CsvInput:
    """How a csv or Excel file is written, where that can't be detected."""

    sep: Annotated[
        str | None, typer.Option(help="Column separator; default: detected.", metavar="CHARACTER")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal mark, . or ,; default: detected.", metavar="CHARACTER")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding, such as latin-1; default: detected.", metavar="NAME")
    ] = None
    na: Annotated[
        list[str] | None,
        typer.Option(help="Word for missing values, besides NA and the like; repeatable.", metavar="WORD"),
    ] = None
    sheet: Annotated[
        str | None, typer.Option(help="Sheet of an Excel file; default: the first.", metavar="NAME")
    ] = None

    @property
    def dialect(self) -> Dialect:
        """The dialect, validated."""
        from kfhe.tables.files import Dialect

        sep = {"\\t": "\t", "tab": "\t"}.get(self.sep or "", self.sep)
        if sep is not None and (len(sep) != 1 or not sep.isascii() or sep in '"\n\r'):
            raise typer.BadParameter(f"must be one character, or tab, got {sep!r}", param_hint="--sep")
        if self.decimal not in (None, ".", ","):
            raise typer.BadParameter(f"must be . or , got {self.decimal!r}", param_hint="--decimal")
        return Dialect(sep, self.decimal, self.encoding, tuple(self.na or ()), self.sheet)


@dataclass(frozen=True, kw_only=True)
class ReadingInput(CsvInput):
    """How a file is written, and the types of its columns."""

    read_as: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="Type of a column: category, number, date, day-first, month-first, time or boolean; "
            "repeatable.",
            metavar="COLUMN=KIND",
        ),
    ] = None

    @property
    def kinds(self) -> dict[str, str]:
        """The types of columns, validated."""
        from kfhe.tables.readings import KINDS

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


@dataclass(frozen=True, kw_only=True)
class TargetInput(ReadingInput):
    """The target of a table, and its features."""

    target: Annotated[
        str, typer.Option("--target", "-t", help="Column to predict.", metavar="COLUMN", show_default=False)
    ]
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Columns to ignore, such as id,x_*.", metavar="COLUMNS"),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="Keep rows of the same value together, such as those of one patient; not a feature.",
            metavar="COLUMN",
        ),
    ] = None
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Ignore rows without a label.")
    ] = False

    def check(self) -> None:
        """Raise if the options contradict each other."""
        from kfhe.tables.readings import CATEGORY

        if any(self.target in names.split(",") for names in self.drop or ()):
            raise typer.BadParameter("the target can't be left out", param_hint="--drop")
        if self.target == self.groups:
            raise typer.BadParameter(
                f"{self.target!r} is the target; groups must be another column", param_hint="--groups"
            )
        kind = self.kinds.get(self.target, CATEGORY)
        if kind != CATEGORY:
            raise typer.BadParameter(
                f"{self.target!r} is the target, and can't be read as {kind}", param_hint="--as"
            )

    @property
    def roles(self) -> ColumnRoles:
        """The roles of the columns."""
        from kfhe.tables.labelled import ColumnRoles

        return ColumnRoles(
            self.target,
            self.kinds,
            self.drop or (),
            groups=self.groups,
            drop_unlabelled=self.drop_unlabelled,
        )

    def read_file(self, table: Path) -> LabelledTable:
        """Read a table."""
        from kfhe.tables.labelled import LabelledTable

        return LabelledTable.read(table, self.roles, self.dialect)

    def categorical_features(self, data: LabelledTable | PartedTable) -> Any:
        """Return the parameter with the name of the table option."""
        return data.categorical if self.roles.categories else "from_dtype"


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


@dataclass(frozen=True, kw_only=True)
class LabelledFiles(TargetInput):
    """A table with a target, in one or several files."""

    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            help="A .csv, .csv.gz, .parquet or .xlsx file; - for standard input. Several parquet files or "
            "folders of them are one table, of any size.",
            show_default=False,
        ),
    ]

    @property
    def files(self) -> list[Path]:
        """The files, including those in folders."""
        return [
            file for table in self.tables for file in (table.glob("*.parquet") if table.is_dir() else [table])
        ]

    def open_parts(self) -> PartedTable:
        """Open parquet files for reading part by part."""
        from kfhe.tables.parts import PartedTable

        for field in fields(CsvInput):
            if getattr(self, field.name) is not None:
                raise typer.BadParameter(
                    "only for csv and Excel files; several files or a folder must be parquet",
                    param_hint=f"--{field.name}",
                )
        return PartedTable.open(self.tables, self.roles)


@dataclass(frozen=True)
class Training:
    """Settings of training: the fields are parameters of the classifiers; None is their default."""

    n_estimators: Annotated[int, typer.Option(min=1, help="Number of trees.", metavar="N")] = 100
    max_samples: Annotated[
        str | None,
        typer.Option(
            help="Rows for each tree: a number, a share such as 0.2, or auto; default: all.", metavar="ROWS"
        ),
    ] = None
    min_samples_leaf: Annotated[
        int | None,
        typer.Option(
            min=1, help="Minimum rows in a leaf; default: 1, and 7 for kfhe-e and kfhe-l.", metavar="N"
        ),
    ] = None
    max_leaf_nodes: Annotated[
        int | None, typer.Option(min=2, help="Maximum leaves of a tree; default: no limit.", metavar="N")
    ] = None
    decision: Decision = None
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Give all classes the same total weight.")
    ] = None
    random_state: Annotated[
        int,
        typer.Option(min=0, max=2**32 - 1, help="Seed; the same seed gives the same model.", metavar="SEED"),
    ] = 0
    n_jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, help="Number of threads; default: all.", metavar="N", show_default=False
        ),
    ] = None
    device: Device = Place.cpu

    def check(self, model: Model) -> None:
        """Raise if an option is not supported by the model."""
        if model is not Model.robust and self.decision is not None:
            raise typer.BadParameter(
                f"it is for --model robust; {model} always predicts the likeliest class",
                param_hint="--decision",
            )
        decision_of(self.decision)
        self.sample_size()

    def sample_size(self) -> int | float | str | None:
        """Return the value of `--max-samples` for the classifiers."""
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
        """Return an unfitted model with these settings; `classifiers` is the module of its class."""
        from kfhe import CARTClassifier

        if classifiers is None:
            import kfhe as classifiers

        settings = vars(self) | {"max_samples": self.sample_size(), "decision": decision_of(self.decision)}
        given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        if model is Model.robust:
            return classifiers.RobustKFHEClassifier(categorical_features=categorical_features, **given)
        emphasis = {Model.kfhe_e: "exponential", Model.kfhe_l: "linear"}[model]
        trees = {name: given.pop(name) for name in _TREE_SETTINGS if name in given}
        tree = CARTClassifier(categorical_features=categorical_features, **trees)
        return classifiers.KFHEClassifier(tree, emphasis=emphasis, **given)


GROUPS = (CsvInput, ReadingInput, LabelledInput, LabelledFiles, Training)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Turn each field of a command's `GROUPS` into an option.

    Parameters
    ----------
    command : callable
        A command, with parameters whose type may be one of the `GROUPS`.

    Returns
    -------
    callable
        The command for typer.

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
    of_csv = {field.name for field in fields(CsvInput)}  # rarely needed, so they are listed last
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

    parameters.sort(key=lambda parameter: parameter.name in of_csv)
    spread_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread_command


def _parameter(field: Field[Any], hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def refuse(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise if any of some options is given."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(reason, param_hint=parameter.opts[0])


def check_writable(output: Path, *inputs: Path, option: str = "--output") -> None:
    """Raise early if an output would overwrite an input, or can't be created.

    ``-`` is standard output or standard input, which may be a file as well.
    """
    if str(output) == "-":
        return
    folder, problem = output.parent, None
    if output.is_dir():
        problem = f"{output} is a folder; give the name of a file"
    elif not folder.is_dir():
        file = next((each for each in (folder, *folder.parents) if each.is_file()), None)
        problem = f"{file} is not a folder" if file else f"the folder {folder} doesn't exist; create it first"
        problem = f"{output} can't be created: {problem}"
    elif any(are_same(output, path) for path in inputs):
        problem = f"{output} is the input; choose another file"
    if problem:
        raise typer.BadParameter(problem, param_hint=option)


def are_same(output: Path, other: Path) -> bool:
    """Whether two names are the same file, which may not exist yet; devices and pipes are not files."""
    try:
        if str(other) == "-":
            return output.is_file() and os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
        if output.exists() and other.exists():
            return output.is_file() and output.samefile(other)
    except (AttributeError, OSError):  # standard input may be closed, or not a file
        return False
    return os.path.realpath(output) == os.path.realpath(other)


def check_folder(folder: Path, names: Collection[str], *inputs: Path, option: str = "--output") -> None:
    """Raise unless a folder exists or can be created, and its files would not overwrite an input."""
    if folder.is_file():
        raise typer.BadParameter(f"{folder} is not a folder", param_hint=option)
    for path in [folder / name for name in names] if folder.exists() else [folder]:
        check_writable(path, *inputs, option=option)


def check_table_output(output: Path, *inputs: Path) -> None:
    """Raise unless an output is a table by its ending, and can be created."""
    from kfhe.tables.errors import TableFileError
    from kfhe.tables.files import check_output

    try:
        check_output(output)
    except TableFileError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error
    check_writable(output, *inputs)


def check_picture(output: Path, *inputs: Path, option: str = "--output") -> None:
    """Raise unless a plot can be written: to a supported format, and not over an input."""
    check_plotting()
    from kfhe.plotting.base import FORMATS

    if output.suffix.lower().removeprefix(".") not in FORMATS:
        accepted = ", ".join(f".{known}" for known in FORMATS)
        raise typer.BadParameter(f"{output}: the file's name must end in {accepted}", param_hint=option)
    check_writable(output, *inputs, option=option)


def check_plotting() -> None:
    """Raise unless matplotlib is installed; select a backend without windows."""
    try:
        import matplotlib
    except ImportError:
        echo('kfhe: plots need matplotlib: pip install "kfhe[plot]"', err=True)
        raise typer.Exit(1) from None
    matplotlib.use("agg")
