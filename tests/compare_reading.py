"""Compare predicting a csv with ``kfhe predict`` to reading it with pandas: python tests/compare_reading.py.

Both take turns on the same file. Seconds are those of the clock; processor seconds, of all threads, are told
as well, because they depend less on what else the machine does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa

from kfhe import KFHEClassifier
from kfhe.table_files import write_table

READ = "import sys, time, pandas; start = time.perf_counter(), time.process_time(); "
READ += "pandas.read_csv(sys.argv[1]); print(time.perf_counter() - start[0], time.process_time() - start[1])"
PREDICT = "from kfhe.cli import main; main()"


def make(folder, rows, columns, training_rows):
    """Write a csv of normal numbers and a model of three classes trained on its first rows."""
    X = np.random.default_rng(0).normal(size=(rows, columns))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.5, "a", np.where(X[:, 3] > 0, "b", "c"))[:training_rows]
    names = [f"x{j}" for j in range(columns)]
    write_table(folder / "new.csv", pa.table(list(X.T), names=names))
    frame = pd.DataFrame(X[:training_rows], columns=names)
    KFHEClassifier(random_state=0).fit(frame, y).save(folder / "model.kfhe")


def read(folder):
    """Return the seconds that pandas takes, its import left out: clock and processor."""
    command = [sys.executable, "-c", READ, folder / "new.csv"]
    seconds, processor = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(processor)


def predict(folder):
    """Return the seconds of the whole command: clock and processor."""
    import resource  # not on Windows

    files = [folder / "model.kfhe", folder / "new.csv", "-o", folder / "out.csv"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([sys.executable, "-c", PREDICT, "predict", *files], check=True)
    seconds, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description="Compare kfhe predict with pandas.read_csv on the same csv.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--training-rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.rows, options.columns, options.training_rows)
        rounds = [(*read(folder), *predict(folder)) for _ in range(options.rounds)]
    read_seconds, read_processor, seconds, processor = (
        median(column) for column in zip(*rounds, strict=True)
    )
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"{options.rows:,} rows, {options.columns} columns, 101 trees; {load:.1f} processes wait per core")
    print(
        f"pandas.read_csv {read_seconds:.2f} s, of all cores {read_processor:.2f} s (pandas {pd.__version__})"
    )
    print(f"kfhe predict    {seconds:.2f} s, of all cores {processor:.2f} s")
    print(f"ratio           {seconds / read_seconds:.2f}")


if __name__ == "__main__":
    main()
