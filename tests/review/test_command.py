"""From a table to a page, to decisions, to the next audit and a cleaned table, by commands."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from kfhe.cli import main
from kfhe.review import Decision, write_decisions

DATA = Path(__file__).parents[2] / "examples" / "data"
FEW = ("--n-estimators", "50")
WRONG = range(5, 502, 10)  # rows of customers.csv, the header is row 1: every tenth label is wrong


@pytest.fixture
def kfhe(monkeypatch, capfd, tmp_path):
    (tmp_path / "customers.csv").write_bytes((DATA / "customers.csv").read_bytes())
    monkeypatch.chdir(tmp_path)

    def command(*arguments, code=0, piped=b""):
        monkeypatch.setattr("sys.argv", ["kfhe", *arguments])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(piped))))
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        said = capfd.readouterr()
        assert ended.value.code == code, said.err
        return " ".join((said.out + said.err).replace("│", " ").split())

    return command


def page_data(path="review.html"):
    return json.loads(re.search(r'id="data">(.*?)</script>', Path(path).read_text(), re.DOTALL)[1])


def decisions_on(rows, data):
    """Decide as the suggestion says where the label is wrong; keep the others."""
    classes = data["classes"]
    for row in rows:
        given, suggested = (classes[row[side]] for side in ("given", "suggested"))
        change = row["row"] in WRONG and given != suggested
        decided = ("change", suggested) if change else ("keep", given)
        yield Decision(row["row"], row["digest"], data["target"], given, *decided)


def test_the_whole_way(kfhe):
    said = kfhe("audit", "customers.csv", "-t", "outcome", *FEW, "--page", "review.html")
    assert re.search(r"The page is in review\.html: \d+ labels to look at", said)
    assert "if mistakes are random" in said
    data = page_data()
    write_decisions("decisions.csv", decisions_on(data["rows"][:30], data))

    said = kfhe(
        *("audit", "customers.csv", "-t", "outcome", *FEW, "--decisions", "decisions.csv"),
        *("--page", "next.html", "-o", "suspects.csv"),
    )
    assert re.search(
        r"30 were reviewed, \d+ of these were wrong. Estimated error rate: [\d.]+% to [\d.]+%", said
    )
    judged = {row["row"] for row in data["rows"][:30]}
    assert not judged & set(pd.read_csv("suspects.csv")["row"])
    after = page_data("next.html")
    assert after["key"] == data["key"]
    assert {each["row"] for each in after["decisions"]} == judged
    assert not judged & {row["row"] for row in after["rows"][:30]}
    assert judged <= {row["row"] for row in after["rows"]}

    kfhe("apply", "decisions.csv", "customers.csv", "-o", "cleaned.csv")
    before, cleaned = (pd.read_csv(name)["outcome"] for name in ("customers.csv", "cleaned.csv"))
    changed = np.flatnonzero(before != cleaned) + 2
    assert set(changed) <= set(WRONG)
    assert len(changed) > 15


def test_a_parquet_file_and_columns_that_are_left_out(kfhe):
    table = pd.read_csv("customers.csv").assign(id=lambda t: [f"C{n}" for n in range(len(t))])
    table.to_parquet("t.parquet")
    said = kfhe("audit", "t.parquet", "-t", "outcome", *FEW, "--drop", "id", "--page", "review.html")
    assert "kfhe apply decisions.csv t.parquet -o cleaned.parquet" in said
    data = page_data()
    names = [column["name"] for column in data["columns"]]
    assert "id" in names
    assert data["columns"][names.index("id")]["usual"] is None
    assert data["rows"][0]["cells"][names.index("id")] == f"C{data['rows'][0]['row'] - 1}"
    assert all(place != names.index("id") for row in data["rows"] for place, _ in row["looks"])
    write_decisions("decisions.csv", [*decisions_on(data["rows"][:5], data)])
    kfhe("apply", "decisions.csv", "t.parquet", "-o", "cleaned.parquet")
    again = ("audit", "t.parquet", "-t", "outcome", *FEW, "--drop", "id", "--decisions", "decisions.csv")
    assert "5 were reviewed" in kfhe(*again)


def test_a_sheet_of_excel_is_judged_and_cleaned_as_a_csv(kfhe):
    table = pd.read_csv("customers.csv")
    table.to_excel("t.xlsx", index=False, engine="xlsxwriter")
    said = kfhe("audit", "t.xlsx", "-t", "outcome", *FEW, "--page", "review.html")
    assert "kfhe apply decisions.csv t.xlsx -o cleaned.csv" in said
    data = page_data()
    write_decisions("decisions.csv", [*decisions_on(data["rows"][:5], data)])
    kfhe("apply", "decisions.csv", "t.xlsx", "-o", "cleaned.csv")
    kfhe("apply", "decisions.csv", "t.xlsx", "-o", "cleaned.csv.gz")
    cleaned = pd.read_csv("cleaned.csv")
    pd.testing.assert_frame_equal(pd.read_csv("cleaned.csv.gz"), cleaned)
    changes = pd.read_csv("cleaned_changes.csv")
    assert len(changes) > 0
    table.loc[changes["row"] - 2, "outcome"] = changes["decided"].to_numpy()
    pd.testing.assert_frame_equal(cleaned, table)


def test_rows_without_a_label_keep_their_numbers(kfhe):
    lines = Path("customers.csv").read_text().splitlines()
    lines[1] = lines[1].rpartition(",")[0] + ","
    Path("gaps.csv").write_text("\n".join(lines))
    options = ("-t", "outcome", "--drop-unlabelled", *FEW)
    kfhe("audit", "gaps.csv", *options, "--page", "review.html")
    data = page_data()
    assert len({row["row"] for row in data["rows"][:20]} & set(WRONG)) > 10
    write_decisions("decisions.csv", [*decisions_on(data["rows"][:5], data)])
    assert "5 were reviewed" in kfhe("audit", "gaps.csv", *options, "--decisions", "decisions.csv")
    kfhe("apply", "decisions.csv", "gaps.csv", "-o", "cleaned.csv")


def test_one_decision_is_no_several(kfhe):
    Path("customers.csv").write_text("\n".join(Path("customers.csv").read_text().splitlines()[:60]))
    kfhe("audit", "customers.csv", "-t", "outcome", *FEW, "--page", "review.html")
    data = page_data()
    write_decisions("decisions.csv", [*decisions_on(data["rows"][:1], data)])
    assert "1 decision. Labels changed" in kfhe("apply", "decisions.csv", "customers.csv", "-o", "new.csv")
    said = kfhe("audit", "customers.csv", "-t", "outcome", *FEW, "--decisions", "decisions.csv")
    assert re.search("1 was reviewed, (1 of these was|0 of these were) wrong", said)


def test_a_file_without_decisions_is_told(kfhe):
    before = kfhe("audit", "customers.csv", "-t", "outcome", *FEW)
    write_decisions("decisions.csv", [])
    said = kfhe("audit", "customers.csv", "-t", "outcome", *FEW, "--decisions", "decisions.csv")
    share = re.search(r"Estimated error rate: [\d.]+% to [\d.]+%", before)[0]
    assert f"500 labels. None of them was reviewed. {share}, if mistakes are random" in said


def test_pictures_beside_the_table_are_on_the_page(kfhe):
    Path("faces").mkdir()
    Image.new("RGB", (20, 20), "blue").save("faces/a.png")
    table = pd.read_csv("customers.csv").assign(face="faces/a.png")
    table.to_csv("t.csv", index=False)
    kfhe("audit", "t.csv", "-t", "outcome", *FEW, "--page", "review.html")
    data = page_data()
    assert list(data["pictures"]) == ["faces/a.png"]
    assert data["columns"][-1]["kind"] == "picture"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--page", "review.txt"], 2, "must end in .html"),
        (["--decisions", "none.csv"], 1, "none.csv: there is no such file"),
        (["--decisions", "other.csv"], 1, "is about the labels in 'plan', but --target is 'outcome'"),
        (["--decisions", "moved.csv"], 1, "customers.csv: row 3: does not match the decisions"),
        (["--decisions", "moved.csv", "-o", "moved.csv"], 2, "is the input"),
    ],
)
def test_mistakes_get_a_message(kfhe, arguments, code, message):
    write_decisions("other.csv", [Decision(3, "r0", "plan", "basic", "drop")])
    write_decisions("moved.csv", [Decision(3, "r0", "outcome", "stays", "drop")])
    assert message in kfhe("audit", "customers.csv", "-t", "outcome", *FEW, *arguments, code=code)
