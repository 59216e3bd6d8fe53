"""What fit, predict and evaluate refuse or warn of, and how they say so."""

import os
import re
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("elsewhere")


def write(text, name="mine.csv"):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


GOOD = "a,b,label\n" + "".join(f"{i % 17},{'uvw'[i % 3]},{'xy'[i % 2]}\n" for i in range(60))

BAD_TABLES = {
    "no such file": (None, "mine.csv: there is no such file"),
    "empty": ("", "mine.csv: is empty"),
    "header only": ("a,label\n", "mine.csv: there are no rows below the header"),
    "no such column": (GOOD.replace("label", "Labels"), "there is no column 'label'; did you mean 'Labels'?"),
    "no column like it": (GOOD.replace("label", "z"), "there is no column 'label'; there are a, b, z"),
    "gaps in the target": (
        GOOD.replace("3,u,y", "3,u,").replace("5,w,y", "5,w,NA"),
        "target 'label' has 5 gaps, in rows 5, 22, 39, 24, 41",
    ),
    "one class": (GOOD.replace(",y\n", ",x\n"), "target 'label' has one class only (x)"),
    "fractions": (
        "a,label\n" + "".join(f"{i},{i % 7 / 2}\n" for i in range(50)),
        "target 'label' has 7 different values in 50 rows: fractions. kfhe predicts classes",
    ),
    "names": (
        "a,label\n" + "".join(f"{i},row {i}\n" for i in range(50)),
        "target 'label' has 50 different values in 50 rows: too many to be classes",
    ),
    "target alone": ("label\nx\ny\nx\ny\n", "mine.csv: no columns are left to learn from"),
    "infinite": (GOOD + "inf,u,x\n", "mine.csv: column 'a', row 62: found infinity; accepted are finite"),
    "ragged": (GOOD + "1,u,x,x\n", "row 62 has 4 values, but the header (row 1) names 3 columns"),
    "not UTF-8": (
        GOOD.encode() + b"1,\xc3\xa9\xff,x\n",
        "column 'b', row 62: there are bytes that are not UTF-8",
    ),
    "same names": (GOOD.replace("a,b", "a,a"), "there are several columns named 'a'"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_table_that_cant_be_learnt_gets_one_line_that_says_why(kfhe, case):
    content, message = BAD_TABLES[case]
    if content is not None:
        write(content)
    if case == "gaps in the target":
        rows = [row for row, line in enumerate(content.splitlines(), 1) if line.endswith((",", ",NA"))]
        message = f"has {len(rows)} gaps, in rows {', '.join(map(str, rows))} (the header is row 1)"
    for command in (["fit", "mine.csv", "-o", "model.kfhe"], ["evaluate", "mine.csv"]):
        _, said = kfhe(*command, "--target", "label", code=1)
        (last,) = [line for line in said.splitlines() if line.startswith("kfhe: ")]
        assert message in last
        assert not re.match(r"kfhe: \w+Error", last)
    assert not Path("model.kfhe").exists()


def test_what_may_be_wrong_with_a_table_is_said(kfhe):
    names = "".join(f"n{i},{i % 25}\n" for i in range(100))
    fit = ("fit", write("the name,label\n" + names), "-t", "label", "-o", "m.kfhe", "--n-estimators", 1)
    _, said = kfhe(*fit, "--model", "kfhe-e")
    assert "Column 'the name' has 100 categories in 100 rows." in said
    assert "--drop 'the name'" in said
    _, said = kfhe(*fit)
    assert "kfhe: column 'the name' has (nearly) as many values as rows: it is left out" in said
    assert "--drop" not in said
    assert "Target 'label' has 25 different numbers" in said


def test_new_rows_that_cant_be_read_get_an_error_and_the_old_output_stays(kfhe, model):
    new = Path("new_customers.csv").read_text()
    header, rows = new.split("\n", 1)
    write("old", "out.csv")
    for text, message in (
        (
            header.replace("age", "Age").replace("city", "town") + "\n" + rows,
            "are missing: 'age', 'city'; did you",
        ),
        (new + "old,basic,Corwen,1,1,1,no\n", "column 'age', row 102: found 'old'; accepted are numbers"),
        (new + "1,basic\n", "row 102 has 2 values, but the header (row 1) names 7 columns"),
        (
            new.encode() + b"1,\xc3\xa9\xff,Corwen,1,1,1,no\n",
            "column 'plan', row 102: there are bytes that are not UTF-8",
        ),
        (header, "there are no rows below the header"),
        (new + "inf,basic,Corwen,1,1,1,no\n", "contains infinity in column 'age'"),
    ):
        _, said = kfhe("predict", model, write(text), "-o", "out.csv", code=1)
        assert message in said
        assert Path("out.csv").read_text() == "old"
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_a_model_that_is_none_gets_an_error(kfhe, model):
    whole = Path(model).read_bytes()
    for content, message in (
        (b"a,b\n1,2\n", "bad.kfhe: "),
        (b"", "bad.kfhe: "),
        (whole[:-100], "bad.kfhe: the file is damaged"),
    ):
        _, said = kfhe("predict", write(content, "bad.kfhe"), "new_customers.csv", code=1)
        assert message in said
    _, said = kfhe("predict", "absent.kfhe", "new_customers.csv", code=1)
    assert "absent.kfhe: there is no such file" in said
    _, said = kfhe("predict", ".", "new_customers.csv", code=1)
    assert ".: is a folder; give a model file" in said


def test_a_saved_model_is_tried_only_on_labels_that_it_knows(kfhe, model):
    table = Path("customers.csv").read_text()
    gap = "a gap (kfhe evaluate leaves such rows out with --drop-unlabelled)"
    for label, message in (("moves", "'moves', which the model doesn't know"), ("", gap)):
        write(f"{table}30,basic,Corwen,1,1,1,no,{label}\n")
        _, said = kfhe("evaluate", "mine.csv", "-t", "outcome", "--model", model, code=1)
        assert f"target 'outcome', row 502: found {message}; accepted are leaves, stays, upgrades" in said


@pytest.mark.parametrize(("share", "tested"), [(0.001, 1), (0.999, 500)])
def test_a_share_that_leaves_too_few_rows_is_told(kfhe, share, tested):
    _, said = kfhe("evaluate", "customers.csv", "-t", "outcome", "--holdout", share, code=1)
    assert f"customers.csv: --holdout {share} tests {tested} of 500 rows; training and testing need" in said
    assert "training and testing need at least 3 each, one of each class" in said


def test_a_class_of_one_row_cant_be_evaluated(kfhe):
    _, said = kfhe("evaluate", write(GOOD + "1,u,z\n"), "-t", "label", code=1)
    assert "class 'z' has only one row" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "customers.csv", "-o", "m.kfhe"], "Missing option"),
        (["fit", "customers.csv", "-t", "outcome"], "Missing option"),
        (["fit", "customers.csv", "-t", "outcome", "-o", "m", "--model", "square"], "square"),
        (["fit", "customers.csv", "-t", "outcome", "-o", "m", "--n-estimators", "0"], "--n-estimators"),
        (["fit", "customers.csv", "-t", "outcome", "-o", "m", "--drop", "outcome"], "can't be left out"),
        (["fit", "customers.csv", "-t", "outcome", "-o", "."], "is a folder"),
        (["predict", "-", "-"], "can't both come from standard input"),
        (["evaluate", "customers.csv", "-t", "outcome", "--holdout", "1.5"], "between 0 and 1"),
        (["evaluate", "customers.csv", "-t", "outcome", "--folds", "3", "--holdout", "0.5"], "choose one of"),
        (
            ["evaluate", "customers.csv", "-t", "outcome", "--model", "m", "--max-leaf-nodes", "3"],
            "nothing is trained",
        ),
    ],
)
def test_wrong_use_ends_with_2_and_is_told(kfhe, arguments, message):
    _, said = kfhe(*arguments, code=2)
    assert message in said


def test_output_is_refused_before_the_work_begins(kfhe):
    _, said = kfhe("predict", "absent.kfhe", "absent.csv", "-o", "out.txt", code=2)
    assert "out.txt: the name must end in .csv" in said


@pytest.mark.posix
def test_a_full_disk_is_told_and_the_old_file_stays(kfhe, model):
    resource = pytest.importorskip("resource")
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    _, said = kfhe("predict", model, "new_customers.csv", "-o", "/dev/full", code=1)
    assert "/dev/full: can't be written: No space left on device" in said
    before, limit = Path(model).read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        _, said = kfhe("fit", "customers.csv", "-t", "outcome", "-o", model, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "model.kfhe: can't be written: File too large" in said
    assert Path(model).read_bytes() == before


def test_a_model_file_is_no_table(kfhe, model):
    for command in (["fit", "-o", "out.kfhe"], ["evaluate"], ["audit"]):
        _, said = kfhe(command[0], model, "-t", "outcome", *command[1:], code=1)
        assert f"{model}: is a model file, not a table" in said


def test_an_output_never_overwrites_the_input(kfhe, model):
    before = Path("customers.csv").read_bytes()
    for command in (["fit", "customers.csv", "-t", "outcome"], ["audit", "customers.csv", "-t", "outcome"]):
        _, said = kfhe(*command, "-o", "customers.csv", code=2)
        assert "customers.csv is the input" in said
    _, said = kfhe("predict", model, "customers.csv", "-o", "./customers.csv", code=2)
    assert "customers.csv is the input" in said
    assert Path("customers.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["fit", "-", "-t", "outcome"], "customers.csv"),
        (["audit", "-", "-t", "outcome"], "customers.csv"),
        (["predict", "model.kfhe", "-"], "customers.csv"),
        (["predict", "-", "new_customers.csv"], "model.csv"),
        (["export", "-", "--format", "json"], "model.csv"),
    ],
)
def test_nor_does_it_overwrite_what_standard_input_is_read_from(kfhe, model, command, output):
    Path("model.csv").write_bytes(Path(model).read_bytes())
    before = Path(output).read_bytes()
    _, said = kfhe(*command, "-o", output, piped=Path(output), code=2)
    assert f"{output} is the input" in said
    assert Path(output).read_bytes() == before


def test_nor_a_part_of_a_table(kfhe, tmp_path):
    parts = tmp_path / "big"
    parts.mkdir()
    for number in range(2):
        pd.read_csv("customers.csv").to_parquet(parts / f"part-{number}.parquet")
    before = (parts / "part-1.parquet").read_bytes()
    _, said = kfhe("fit", "big", "-t", "outcome", "-o", "big/part-1.parquet", code=2)
    assert "big/part-1.parquet is the input" in said
    assert (parts / "part-1.parquet").read_bytes() == before


def test_nor_the_decisions_by_a_picture(kfhe):
    Path("d.png").write_text("decisions")
    command = ["audit", "customers.csv", "-t", "outcome", "--decisions", "d.png", "--plot", "d.png"]
    _, said = kfhe(*command, code=2)
    assert "d.png is the input" in said
    assert Path("d.png").read_text() == "decisions"


def test_an_output_that_can_t_be_made_is_told_before_anything_is_trained(kfhe, model):
    Path("taken").write_text("by a file")
    for command, name in [("fit", "taken/model.kfhe"), ("audit", "taken/below/suspects.csv")]:
        _, said = kfhe(command, "customers.csv", "-t", "outcome", "-o", name, code=2)
        assert "taken is not a folder" in said
        assert "Trained" not in said


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        (["fit", "customers.csv", "-t", "outcome"], "-o", "m.kfhe"),
        (["predict", "model.kfhe", "new_customers.csv"], "-o", "p.csv"),
        (["audit", "customers.csv", "-t", "outcome"], "-o", "s.csv"),
        (["audit", "customers.csv", "-t", "outcome"], "--page", "p.html"),
        (["audit", "customers.csv", "-t", "outcome"], "--plot", "p.png"),
        (["apply", "decisions.csv", "customers.csv"], "-o", "c.csv"),
        (["plot", "model.kfhe"], "-o", "p.png"),
        (["export", "model.kfhe"], "-o", "m.json"),
        (["study", "run", "quick"], "--results", "r.sqlite"),
        (["evaluate", "customers.csv", "-t", "outcome"], "--plots", "pictures"),
    ],
)
def test_no_folder_is_made_that_nobody_asked_for(kfhe, model, command, option, name):
    _, said = kfhe(*command, option, f"typo/{name}", code=2)
    assert f"typo/{name} can't be created: the folder typo doesn't exist" in said
    assert not Path("typo").exists()


def test_a_picture_or_an_export_never_overwrites_the_model(kfhe, model):
    saved = Path(model).read_bytes()
    Path("model.png").write_bytes(saved)
    rows = Path("customers.csv").rename("customers.svg")
    picture = ["plot", model, "-k", "scores", "--data", rows, "-t", "outcome"]
    for command, its_input in [
        (["export", model, "--format", "json"], model),
        (["plot", "model.png"], "model.png"),
        (picture, "customers.svg"),
    ]:
        before = Path(its_input).read_bytes()
        _, said = kfhe(*command, "-o", its_input, code=2)
        assert f"{its_input} is the input" in said
        assert Path(its_input).read_bytes() == before


def test_line_breaks_in_quotes_are_said_by_every_command(kfhe, model):
    rows = Path("customers.csv").read_text().splitlines()
    city = pd.read_csv("customers.csv").columns.get_loc("city")
    cells = rows[3].split(",")
    cells[city] = f'"{cells[city]}\n"'
    write("\n".join([*rows[:3], ",".join(cells), *rows[4:]]) + "\n")
    learnt = ["mine.csv", "-t", "outcome"]
    for command in (
        ["fit", *learnt, "-o", "m.kfhe"],
        ["audit", *learnt, "--n-estimators", "20"],
        ["evaluate", *learnt, "--folds", "2", "--n-estimators", "2"],
        ["evaluate", *learnt, "--model", model],
        ["predict", model, "mine.csv", "-o", "out.csv"],
    ):
        out, said = kfhe(*command)
        assert "mine.csv: 1 value has a line break in quotes; it begins in line 4" in out.decode() + said


def test_what_looks_like_a_mistake_in_a_table_is_said(kfhe):
    frame = pd.read_csv("customers.csv")
    frame["age"] = frame["age"].astype(object)
    frame.loc[3, "age"] = "old"
    frame["many"] = [f"m{row % 300}" for row in range(len(frame))]
    frame.to_csv("mine.csv")
    _, said = kfhe("fit", "mine.csv", "-t", "outcome", "-o", "ours.kfhe")
    assert "Column 'Unnamed: 0' has no name in the header." in said
    assert "Column 'age' has numbers except for old, so it is treated as categories." in said
    assert "Column 'many' has 300 categories" not in said
    _, said = kfhe("fit", "mine.csv", "-t", "outcome", "-o", "ours.kfhe", "--model", "kfhe-l")
    assert "Column 'many' has 300 categories; the rarest are merged" in said
