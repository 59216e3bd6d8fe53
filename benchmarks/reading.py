"""Compare predicting a csv with ``kfhe predict`` to reading it with pandas: python -m benchmarks.reading.

Both take turns on the same file. Seconds are those of the clock; processor seconds, of all threads, are told
as well, because they depend less on what else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated

import numpy as np
import pandas as pd
import pyarrow as pa
import typer

from benchmarks.machine import load_average
from kfhe import KFHEClassifier
from kfhe.table_files import write_table

READ = "import sys, time, pandas; start = time.perf_counter(), time.process_time(); "
READ += "pandas.read_csv(sys.argv[1]); print(time.perf_counter() - start[0], time.process_time() - start[1])"
PREDICT = "from kfhe.cli import main; main()"


def main(
    rows: Annotated[int, typer.Option(help="Rows of the csv.")] = 1_000_000,
    columns: Annotated[int, typer.Option(help="Columns of the csv.")] = 20,
    training_rows: Annotated[int, typer.Option(help="Rows that the model is trained on.")] = 2000,
    rounds: Annotated[int, typer.Option(help="How often each takes its turn.")] = 3,
) -> None:
    """Compare kfhe predict with pandas.read_csv on the same csv."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows, columns, training_rows)
        times = [(*read(folder), *predict(folder)) for _ in range(rounds)]
    read_seconds, read_processor, seconds, processor = (median(each) for each in zip(*times, strict=True))
    load = load_average()
    busy = "" if load is None else f"; {load / (os.cpu_count() or 1):.1f} processes wait per core"
    print(f"{rows:,} rows, {columns} columns, 101 trees{busy}")
    print(
        f"pandas.read_csv {read_seconds:.2f} s, of all cores {read_processor:.2f} s (pandas {pd.__version__})"
    )
    print(f"kfhe predict    {seconds:.2f} s, of all cores {processor:.2f} s")
    print(f"ratio           {seconds / read_seconds:.2f}")


def make(folder: Path, rows: int, columns: int, training_rows: int) -> None:
    """Write a csv of normal numbers and a model of three classes trained on its first rows."""
    X = np.random.default_rng(0).normal(size=(rows, columns))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.5, "a", np.where(X[:, 3] > 0, "b", "c"))[:training_rows]
    names = [f"x{j}" for j in range(columns)]
    write_table(folder / "new.csv", pa.table(list(X.T), names=names))
    frame = pd.DataFrame(X[:training_rows], columns=names)
    KFHEClassifier(random_state=0).fit(frame, y).save(folder / "model.kfhe")


def read(folder: Path) -> tuple[float, float]:
    """Return the seconds that pandas takes, its import left out: clock and processor."""
    command = [sys.executable, "-c", READ, str(folder / "new.csv")]
    seconds, processor = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(processor)


def predict(folder: Path) -> tuple[float, float]:
    """Return the seconds of the whole command: clock and processor (0 on Windows, which doesn't tell)."""
    command = [sys.executable, "-c", PREDICT, "predict", "model.kfhe", "new.csv", "-o", "out.csv"]
    before, start = os.times(), perf_counter()
    subprocess.run(command, check=True, cwd=folder)
    seconds, after = perf_counter() - start, os.times()
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return seconds, user + system


if __name__ == "__main__":
    typer.run(main)
