"""After a bare `pip install kfhe` each command works, or says which extra it needs."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import xlsxwriter
from sklearn.datasets import load_iris

from kfhe import KFHEClassifier
from kfhe.review import Decision, row_digests, write_decisions
from kfhe.tables.output import write_table

BARE = (
    "catboost",
    "cleanlab",
    "dask",
    "distributed",
    "jinja2",
    "lightgbm",
    "matplotlib",
    "onnx",
    "pandas",
    "polars",
)
BARE += ("pyarrow", "python_calamine", "shap", "xgboost")

# Runs commands as if some packages weren't installed
SCRIPT = """
import contextlib, io, json, sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *where):
        return None if name.partition(".")[0] in {blocked!r} else self.finder.find_spec(name, *where)


sys.meta_path[:] = map(Without, sys.meta_path)
from kfhe.cli import main

found = []
for command in {commands!r}:
    sys.argv = ["kfhe", *command.split()]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as ended:
        found.append([ended.code, said.getvalue()])
print(json.dumps(found))
"""

NEEDED = {
    "fit mine.csv -t label -o new.kfhe": "frames",
    "fit mine.xlsx -t label -o new.kfhe": "excel",
    "fit mine.parquet mine.parquet -t label -o new.kfhe": "dask",
    "predict model.kfhe mine.csv": "frames",
    "predict model.kfhe mine.parquet": "frames",
    "evaluate mine.csv -t label": "frames",
    "evaluate mine.csv -t label --model model.kfhe": "frames",
    "audit mine.csv -t label": "frames",
    "plot model.kfhe": "plot",
    "export model.kfhe -o model.onnx": "onnx",
    "export model.kfhe -o model.json": None,
    "data list": None,
    "data show iris": "study",
    "data show mine.csv -t label": "study",
    "data fetch car_eval": "study",
    "study plan quick": None,
    "study run quick": "study",
    "study run --dataset mine.csv -t label": "study",
}
LEFT = {
    ("fit mine.xlsx -t label -o new.kfhe", "python_calamine"): "excel",
    ("fit mine.parquet mine.parquet -t label -o new.kfhe", "distributed"): "dask",
    ("plot model.kfhe --kind scores --data mine.csv -t label", "polars"): "frames",
    ("study run --dataset iris --algorithm XGBoost --jobs 1", "xgboost"): "peers",
    ("study run --dataset iris --scheduler tcp://127.0.0.1:1", "distributed"): "dask",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    X, y = load_iris(return_X_y=True)
    KFHEClassifier(n_estimators=2, random_state=0).fit(X, y).save(folder / "model.kfhe")
    (folder / "mine.csv").write_text("a,label\n1,x\n2,y\n")
    for name in ("mine.xlsx", "mine.parquet"):
        (folder / name).write_bytes(b"never read")

    def commands(blocked, *commands):
        script = SCRIPT.format(blocked=blocked, commands=commands)
        done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    commands.folder = folder
    return commands


def test_each_command_works_or_says_which_extra_it_needs(run):
    for (command, extra), (code, said) in zip(NEEDED.items(), run(BARE, *NEEDED), strict=True):
        assert code == (0 if extra is None else 1), (command, said)
        assert extra is None or f'"kfhe[{extra}]"' in said.partition("pip install")[2], (command, said)
        assert len(said.splitlines()) <= 1, (command, said)


@pytest.mark.parametrize(("command", "missing"), LEFT, ids=lambda text: text.split()[0])
def test_what_is_left_to_install_is_said(run, command, missing):
    ((code, said),) = run([missing], command)
    assert code == 1
    assert f'pip install "kfhe[{LEFT[command, missing]}]"' in said
    assert "Traceback" not in said


def test_the_command_line_works_without_pandas_and_pyarrow(run):
    rows = pl.DataFrame({"a": range(60), "b": ["u", "v", "w"] * 20, "label": ["x", "y"] * 30})
    folder = run.folder
    for name in ("rows.csv", "rows.csv.gz", "rows.parquet"):
        write_table(folder / name, rows)
    with xlsxwriter.Workbook(folder / "rows.xlsx") as book:
        rows.write_excel(book)
    digest = row_digests(rows.drop("label"), np.arange(1))[0]
    write_decisions(folder / "decisions.csv", [Decision(2, digest, "label", "x", "change", "y")])
    small = "-t label --n-estimators 2"
    commands = [
        *(f"fit rows.{ending} {small} -o rows.kfhe" for ending in ("csv", "csv.gz", "parquet", "xlsx")),
        *(f"predict rows.kfhe rows.{ending} --proba --keep a -o out.csv" for ending in ("csv", "parquet")),
        "predict rows.kfhe rows.xlsx -o out.parquet",
        "predict rows.kfhe rows.csv -o out.xlsx",
        f"evaluate rows.csv {small}",
        "evaluate rows.parquet -t label --model rows.kfhe",
        f"audit rows.csv {small} --all -o all.csv --page page.html",
        "apply decisions.csv rows.csv -o cleaned.csv",
        "export rows.kfhe -o rows.json",
    ]
    for command, (code, said) in zip(commands, run(["pandas", "pyarrow"], *commands), strict=True):
        assert code == 0, (command, said)
    assert (folder / "cleaned.csv").read_text().splitlines()[1] == "0,u,y"
