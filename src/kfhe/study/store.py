"""The store: the results of a study in a SQLite file that survives crashes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kfhe.study.dataset import Dataset, import_pandas
from kfhe.study.errors import StudyError
from kfhe.study.plan import Cell, Plan

if TYPE_CHECKING:
    from kfhe.study.cells import Result

APPLICATION_ID = int.from_bytes(b"kfhe")
FORMAT = 1
_SCHEMA = """
CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE versions (id INTEGER PRIMARY KEY, packages TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, source TEXT, fingerprint TEXT, rows INTEGER, features INTEGER,
    classes INTEGER, categorical INTEGER, problem TEXT, wrong REAL, target TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE cells (
    dataset TEXT NOT NULL, algorithm TEXT NOT NULL, noise REAL NOT NULL, repeat INTEGER NOT NULL,
    fold INTEGER NOT NULL, f1_macro REAL, accuracy REAL, balanced_accuracy REAL, roc_auc REAL,
    log_loss REAL, brier REAL, calibration_error REAL, fit_seconds REAL, predict_seconds REAL,
    components INTEGER, error TEXT, versions INTEGER NOT NULL,
    PRIMARY KEY (dataset, algorithm, noise, repeat, fold)) STRICT, WITHOUT ROWID;
CREATE TABLE traces (
    dataset TEXT NOT NULL, algorithm TEXT NOT NULL, noise REAL NOT NULL, columns TEXT NOT NULL,
    PRIMARY KEY (dataset, algorithm, noise)) STRICT, WITHOUT ROWID;
"""


class Store:
    """Results of one plan in a file; `with` closes it.

    A writer holds SQLite's write lock until it closes the file, so a second writer is rejected, but readers
    are not. Each call of :meth:`add` is one transaction.

    Parameters
    ----------
    path : Path
        The file.
    connection : sqlite3.Connection
        The open connection.
    plan : Plan
        The plan that the results belong to.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, plan: Plan) -> None:
        self.path = path
        self.plan = plan
        self._connection = connection
        self._versions = 0

    @classmethod
    def write(
        cls, path: str | Path, plan: Plan, versions: dict[str, str], *, mix_versions: bool = False
    ) -> Store:
        """Open a file for writing: a new one, or one with the same plan and versions, but fewer repeats."""
        path = Path(path)
        with _explained(path):
            connection = _connect(path, create=True)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                if _is_empty(connection):
                    _create(connection, plan)
                store = cls(path, connection, _stored_plan(connection, path))
                store._check_plan(plan)
                store._versions = store._versions_id(versions, mix_versions)
                store._commit()
            except BaseException:
                connection.close()
                raise
        return store

    @classmethod
    def read(cls, path: str | Path) -> Store:
        """Open a file for reading; a study may be running on it."""
        path = Path(path)
        if not path.is_file():
            raise StudyError(f"{path}: there is no such result file; 'kfhe study run' makes one")
        with _explained(path):
            connection = _connect(path, create=False)
            if _is_empty(connection):
                connection.close()
                raise StudyError(f"{path}: this result file is empty; 'kfhe study run' fills it")
            return cls(path, connection, _stored_plan(connection, path))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def note_datasets(self, datasets: Iterable[Dataset], problems: dict[str, str]) -> None:
        """Store the datasets, and the reasons why others are missing; raise if data have changed."""
        with self._transaction():
            known = dict(self._connection.execute("SELECT name, fingerprint FROM datasets"))
            for dataset in datasets:
                fingerprint = dataset.fingerprint()
                before = known.get(dataset.name)
                if before not in (None, fingerprint):
                    raise StudyError(
                        f"{self.path}: dataset '{dataset.name}' ({dataset.source}) has changed since its "
                        "results were stored; use another result file, or the original data"
                    )
                row = (dataset.name, dataset.source, fingerprint, *dataset.X.shape)
                row += (len(dataset.classes), len(dataset.categorical), dataset.wrong, dataset.target)
                self._connection.execute(
                    "REPLACE INTO datasets (name, source, fingerprint, rows, features, classes, categorical, "
                    "wrong, target) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            for name, problem in problems.items():
                if name not in known or known[name] is None:
                    self._connection.execute(
                        "REPLACE INTO datasets (name, problem) VALUES (?, ?)", (name, problem)
                    )

    def add(self, results: Iterable[Result]) -> None:
        """Store results in one transaction."""
        with self._transaction():
            for result in results:
                values = {**vars(result), **vars(result.cell), "versions": self._versions}
                del values["cell"], values["trace"]
                names, places = ", ".join(values), ", ".join("?" * len(values))
                self._connection.execute(
                    f"INSERT INTO cells ({names}) VALUES ({places})", tuple(values.values())
                )
                if result.trace is not None:
                    key = (result.cell.dataset, result.cell.algorithm, result.cell.noise)
                    self._connection.execute(
                        "REPLACE INTO traces VALUES (?, ?, ?, ?)", (*key, json.dumps(result.trace))
                    )

    def forget_failures(self) -> int:
        """Delete failed cells, so that they are run again; return their number."""
        with self._transaction():
            return self._connection.execute("DELETE FROM cells WHERE error IS NOT NULL").rowcount

    def done(self) -> set[Cell]:
        """Return the names of stored cells."""
        query = "SELECT dataset, algorithm, noise, repeat, fold FROM cells"
        with _explained(self.path):
            return {Cell(*row) for row in self._connection.execute(query)}

    def cells(self) -> Any:
        """Return all cells as a DataFrame, sorted by name."""
        return self._frame("SELECT * FROM cells ORDER BY dataset, algorithm, noise, repeat, fold")

    def datasets(self) -> Any:
        """Return the stored facts about datasets as a DataFrame, in the order of the plan."""
        frame = self._frame("SELECT * FROM datasets").set_index("name")
        return frame.loc[[name for name in self.plan.dataset_names if name in frame.index]]

    def _frame(self, query: str) -> Any:
        with _explained(self.path):
            return import_pandas().read_sql_query(query, self._connection)

    def traces(self) -> dict[tuple[str, str, float], dict[str, list[float]]]:
        """Return the training traces by dataset, algorithm and noise level."""
        query = "SELECT dataset, algorithm, noise, columns FROM traces"
        with _explained(self.path):
            return {(d, a, n): json.loads(columns) for d, a, n, columns in self._connection.execute(query)}

    def versions(self) -> list[dict[str, str]]:
        """Return the versions of the packages that made the results; more than one if they were mixed."""
        with _explained(self.path):
            rows = self._connection.execute("SELECT packages FROM versions ORDER BY id").fetchall()
        return [json.loads(row[0]) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _explained(self.path):
            try:
                yield
                self._commit()
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise

    def _commit(self) -> None:
        """Commit, and take the write lock again at once, so that no other study can write to the file."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def _check_plan(self, plan: Plan) -> None:
        if not plan.goes_on_from(self.plan):
            keys = ", ".join(f"'{key}'" for key in self.plan.differences(plan))
            raise StudyError(
                f"{self.path}: its results belong to another plan (it differs in {keys}); nothing was "
                "changed. Use another result file; without a plan, the study in the file is continued"
            )
        if plan.repeats > self.plan.repeats:
            self._connection.execute("UPDATE study SET value = ? WHERE key = 'plan'", (plan.to_json(),))
        self.plan = plan

    def _versions_id(self, versions: dict[str, str], mix_versions: bool) -> int:
        stored = self.versions()
        if stored and versions not in stored and not mix_versions:
            before = stored[-1]
            changed = ", ".join(
                f"{name} {before.get(name, 'none')} is now {versions.get(name, 'none')}"
                for name in sorted({*before, *versions})
                if before.get(name) != versions.get(name)
            )
            raise StudyError(
                f"{self.path}: its results are from other versions ({changed}). Use another result "
                "file, or --mix-versions to continue; the versions are stored with each cell"
            )
        text = json.dumps(versions, sort_keys=True)
        self._connection.execute("INSERT OR IGNORE INTO versions (packages) VALUES (?)", (text,))
        row = self._connection.execute("SELECT id FROM versions WHERE packages = ?", (text,)).fetchone()
        return int(row[0])


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Connect to an empty file, or to a valid result file."""
    if path.is_dir():
        raise StudyError(f"{path}: this is a folder; a result file is needed")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=2, isolation_level=None)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise StudyError(f"{path}: this is another program's file, not results of a study")
        with closing(connection.execute("PRAGMA quick_check(1)")) as cursor:
            verdict = cursor.fetchone()[0]
        if verdict != "ok":
            raise StudyError(_damaged(path, verdict))
    except BaseException:
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _create(connection: sqlite3.Connection, plan: Plan) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    entries = [("format", str(FORMAT)), ("plan", plan.to_json())]
    connection.executemany("INSERT INTO study VALUES (?, ?)", entries)


def _stored_plan(connection: sqlite3.Connection, path: Path) -> Plan:
    entries = dict(connection.execute("SELECT key, value FROM study"))
    if entries.get("format") != str(FORMAT):
        raise StudyError(
            f"{path}: the results in it have format {entries.get('format')}, this version reads {FORMAT}"
        )
    return Plan.from_json(entries["plan"])


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into advice; stored results are not changed."""
    try:
        yield
    except sqlite3.Error as error:
        kind = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        messages = {
            sqlite3.SQLITE_BUSY: "it is in use by another program, possibly a running study; "
            "wait until that ends, or use another result file",
            sqlite3.SQLITE_FULL: "the disk is full; free some space and run again; stored results are kept",
            sqlite3.SQLITE_IOERR: f"it can't be written or read ({error}): is the disk full or gone? "
            "Stored results are kept; run again once it is fixed",
            sqlite3.SQLITE_READONLY: "it can't be written: the file or its folder is read-only",
            sqlite3.SQLITE_CANTOPEN: "it can't be opened: check the folder and its permissions",
            sqlite3.SQLITE_NOTADB: "this is not a result file of a study; nothing was changed",
        }
        messages[sqlite3.SQLITE_LOCKED] = messages[sqlite3.SQLITE_BUSY]
        if kind == sqlite3.SQLITE_CORRUPT:
            raise StudyError(_damaged(path, str(error))) from error
        raise StudyError(f"{path}: {messages.get(kind, error)}") from error
    except OSError as error:
        raise StudyError(f"{path}: its folder can't be made or read: {error.strerror or error}") from error


def _damaged(path: Path, detail: str) -> str:
    return (
        f"{path}: the file is damaged ({detail}); nothing was changed. "
        "Restore it from a copy, or use another result file"
    )
