"""Compare predicting a csv with ``kfhe predict`` to reading it with pandas: python -m benchmarks.reading.

They take turns on the same file, and so does polars, which ours reads by. Seconds are those of the clock;
processor seconds, of all threads, are told as well, because they depend less on what else the machine does.
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
import polars as pl
import typer

from benchmarks.machine import load_average
from kfhe import KFHEClassifier
from kfhe.tables.output import write_table

READ = """
import sys, time
from {module} import read_csv
start = time.perf_counter(), time.process_time()
read_csv(sys.argv[1])
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""
READERS = {"pandas.read_csv": "pandas", "polars.read_csv": "polars"}
PREDICT = "from kfhe.cli import main; main()"
OURS = "kfhe predict"
CATEGORIES = 2  # columns of text
GAPS = 0.05  # share of the values of the first columns


def main(
    rows: Annotated[int, typer.Option(help="Rows of the csv.")] = 1_000_000,
    columns: Annotated[int, typer.Option(help="Columns of the csv.", min=6)] = 20,
    training_rows: Annotated[int, typer.Option(help="Rows that the model is trained on.")] = 2000,
    rounds: Annotated[int, typer.Option(help="How often each takes its turn.")] = 3,
    mixed: Annotated[bool, typer.Option(help="Two columns of text, and gaps; else numbers alone.")] = True,
) -> None:
    """Compare kfhe predict with pandas.read_csv on the same csv."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows, columns, training_rows, mixed=mixed)
        times = [
            {**{who: read(folder, module) for who, module in READERS.items()}, OURS: predict(folder)}
            for _ in range(rounds)
        ]
    found = {who: tuple(map(median, zip(*(each[who] for each in times), strict=True))) for who in times[0]}
    load = load_average()
    busy = "" if load is None else f"; {load / (os.cpu_count() or 1):.1f} processes wait per core"
    print(f"{rows:,} rows, {columns} columns, 101 trees, pandas {pd.__version__}{busy}")
    for who, (seconds, processor) in found.items():
        print(f"{who:15} {seconds:.2f} s, of all cores {processor:.2f} s")
    ratios = [ours / peers for ours, peers in zip(found[OURS], found["pandas.read_csv"], strict=True)]
    print(f"ratio to pandas {ratios[0]:.2f}, of all cores {ratios[1]:.2f}")


def make(folder: Path, rows: int, columns: int, training_rows: int, *, mixed: bool) -> None:
    """Write a csv and a model of three classes trained on its first rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.5, "a", np.where(X[:, 3] > 0, "b", "c"))[:training_rows]
    table = pl.DataFrame(X, schema=[f"x{j}" for j in range(columns)])
    if mixed:
        for j in range(2):
            gaps = rng.random(rows) < GAPS
            table = table.with_columns(table[f"x{j}"].set(pl.Series(gaps), None))
        for j in range(columns - CATEGORIES, columns):
            words = pl.Series([f"level {k}" for k in range(3 * (j + 1 - columns + CATEGORIES))])
            table = table.with_columns(words[rng.integers(len(words), size=rows)].alias(f"x{j}"))
    write_table(folder / "new.csv", table)
    KFHEClassifier(random_state=0).fit(table[:training_rows], y).save(folder / "model.kfhe")


def read(folder: Path, module: str) -> tuple[float, float]:
    """Return the seconds that a reader takes, its import left out: clock and processor."""
    command = [sys.executable, "-c", READ.format(module=module), str(folder / "new.csv")]
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
