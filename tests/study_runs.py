"""Runs of studies that tests watch from outside."""

import sqlite3
import subprocess
import sys
from contextlib import closing

from waiting import wait_until

from kfhe.study.store import Store


def cells_in(path):
    """All results but the times, which differ from run to run."""
    with Store.read(path) as store:
        return store.cells().drop(columns=["fit_seconds", "predict_seconds"])


def stored(path):
    """How many cells are in the file of a run that may be going on."""
    if not path.is_file():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM cells").fetchone()[0]
        except sqlite3.OperationalError:  # the file is being made
            return 0


def command(*arguments, **options):
    program = [
        sys.executable,
        "-c",
        "from kfhe.cli import main; main()",
        "study",
        "run",
        *map(str, arguments),
    ]
    return subprocess.Popen(program, stderr=subprocess.PIPE, text=True, start_new_session=True, **options)


def wait_for_cells(path, process, count):
    def are_there():
        assert process.poll() is None, process.stderr.read()
        return stored(path) >= count

    wait_until(are_there)
