"""From a table to its suspects: kfhe audit, and how it fails."""

import io
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from kfhe.audit import label_quality
from kfhe.cli import main

DATA = Path(__file__).parents[2] / "examples" / "data"
FEW = ("--n-estimators", "50")
WRONG = range(5, 502, 10)  # rows of customers.csv, the header is row 1: every tenth label is wrong


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run in a folder that holds the example alone."""
    (tmp_path / "customers.csv").write_bytes((DATA / "customers.csv").read_bytes())
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def audit(monkeypatch, capfd):
    """Run the command in this process; return what it said on standard output and error."""

    def command(*arguments, code=0, piped=b""):
        monkeypatch.setattr("sys.argv", ["kfhe", "audit", *arguments])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(piped))))
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        said = capfd.readouterr()
        assert ended.value.code == code, said.err
        assert "Traceback" not in said.err
        return said.out, said.err

    return command


class TestSuspects:
    def test_wrong_labels_are_listed_with_both_labels_and_the_row(self, audit):
        out, err = audit("customers.csv", "--target", "outcome", "-o", "suspects.csv")
        suspects = pd.read_csv("suspects.csv")
        customers = pd.read_csv("customers.csv")
        assert list(suspects.columns) == [
            *("row", "given", "suggested", "quality"),
            *customers.columns.drop("outcome"),
            "notes",
        ]
        assert 25 <= len(suspects) <= 60
        assert suspects["row"].isin(WRONG).mean() > 0.8
        assert suspects["quality"].is_monotonic_increasing
        assert (suspects["given"] != suspects["suggested"]).all()
        rows = customers.iloc[suspects["row"] - 2].reset_index(drop=True)
        assert suspects["given"].equals(rows["outcome"].rename("given"))
        pd.testing.assert_frame_equal(suspects[rows.columns.drop("outcome")], rows.drop(columns="outcome"))
        assert "500 labels" in out
        assert f"the {len(suspects)} most suspicious" in out
        assert "Hard rows look like wrong ones" in out
        assert str(suspects["row"][9]) in out
        assert err == f"The {len(suspects)} suspects are in suspects.csv, the most suspicious first.\n"

    def test_without_options_it_is_an_audit_of_1000_trees_with_seed_0(self, audit):
        audit("customers.csv", "-t", "outcome", "--all", "-o", "all.parquet")
        customers = pd.read_csv("customers.csv")
        expected = label_quality(
            customers.drop(columns="outcome"), customers["outcome"], n_estimators=1000, random_state=0
        )
        found = pd.read_parquet("all.parquet").sort_values("row")
        assert found["quality"].tolist() == expected.quality.round(4).tolist()

    def test_without_a_file_the_worst_are_shown(self, audit, tmp_path):
        out, err = audit("customers.csv", "-t", "outcome", *FEW)
        assert "The 10 most suspicious" in out
        assert err == ""
        assert [path.name for path in tmp_path.iterdir()] == ["customers.csv"]

    def test_all_rows_tell_which_are_suspects(self, audit):
        audit("customers.csv", "-t", "outcome", *FEW, "-o", "suspects.csv")
        audit("customers.csv", "-t", "outcome", *FEW, "--all", "-o", "all.parquet")
        suspects, everything = pd.read_csv("suspects.csv"), pd.read_parquet("all.parquet")
        assert sorted(everything["row"]) == list(range(2, 502))
        assert everything["quality"].is_monotonic_increasing
        assert everything.loc[everything["suspect"], "row"].tolist() == suspects["row"].tolist()

    def test_a_pipe_gets_the_table_and_nothing_else(self, audit):
        out, err = audit("-", "-t", "outcome", *FEW, "-o", "-", piped=Path("customers.csv").read_bytes())
        assert out.startswith("row,given,suggested,quality,age,")
        assert len(pd.read_csv(io.StringIO(out))) > 10
        assert "standard input: 500 labels" in err

    def test_the_seed_decides_and_threads_do_not(self, audit):
        for name, extra in [("a", ["--jobs", "1"]), ("b", ["--jobs", "3"]), ("c", ["--random-state", "7"])]:
            audit("customers.csv", "-t", "outcome", *FEW, *extra, "-o", f"{name}.csv")
        a, b, c = (Path(f"{name}.csv").read_bytes() for name in "abc")
        assert a == b
        assert a != c

    def test_columns_left_out_are_written_but_have_no_say(self, audit):
        """Names of rows would be a category each; the audit is the same as without them."""
        audit("customers.csv", "-t", "outcome", *FEW, "-o", "plain.csv")
        table = pd.read_csv("customers.csv")
        table.insert(0, "row", [f"C{k}" for k in range(len(table))])
        table.to_csv("named.csv", index=False)
        audit("named.csv", "-t", "outcome", "--drop", "row", *FEW, "-o", "named_suspects.csv")
        plain, named = pd.read_csv("plain.csv"), pd.read_csv("named_suspects.csv")
        assert named["audit row"].tolist() == plain["row"].tolist()
        assert named["row"].tolist() == [f"C{row - 2}" for row in plain["row"]]

    def test_names_of_the_tables_own_columns_are_never_taken(self, audit):
        table = pd.read_csv("customers.csv").assign(
            suspect="ours", quality="ours", **{"audit quality": "ours"}
        )
        table.to_csv("own.csv", index=False)
        audit("own.csv", "-t", "outcome", *FEW, "--all", "-o", "all.csv")
        header = Path("all.csv").read_text().splitlines()[0].split(",")
        ours = ["row", "given", "suggested", "audit audit quality", "audit suspect"]
        assert header == [*ours, *table.columns.drop("outcome"), "notes"]
        written = pd.read_csv("all.csv")
        assert set(written["suspect"]) == {"ours"}
        assert set(written["audit suspect"]) == {True, False}

    @pytest.mark.parametrize("labels", [[1, 2], [True, False]])
    def test_labels_keep_their_type(self, audit, labels):
        table = pd.DataFrame(
            {"x": range(60), "code": ["a", "b"] * 30, "y": [labels[0]] * 30 + [labels[1]] * 30}
        )
        table.loc[[5, 50], "y"] = labels[1], labels[0]
        table.to_parquet("t.parquet")
        audit("t.parquet", "-t", "y", *FEW, "-o", "s.parquet")
        suspects = pd.read_parquet("s.parquet")
        assert suspects["given"].dtype == suspects["suggested"].dtype == table["y"].dtype
        assert {6, 51} <= set(suspects["row"])  # a parquet file has no header

    def test_clean_labels_have_no_suspects(self, audit):
        pd.DataFrame({"x": range(60), "y": ["a"] * 30 + ["b"] * 30}).to_csv("clean.csv", index=False)
        out, _ = audit("clean.csv", "-t", "y", "-o", "none.csv")
        assert "Estimated error rate: 0.0% to 5.0%, if mistakes are random" in out
        assert Path("none.csv").read_text() == "row,given,suggested,quality,x,notes\n"

    def test_labels_that_are_not_disputed_are_said_to_be_none(self, audit):
        pd.DataFrame({"x": ["u", "v"] * 30, "y": ["a", "b"] * 30}).to_csv("plain.csv", index=False)
        assert "The trees agree with all labels." in audit("plain.csv", "-t", "y")[0]

    def test_it_says_how_to_see_disputed_labels_if_none_is_a_suspect(self, audit):
        """Where two classes meet, trees may go the other way; that is nothing to count on."""
        pd.DataFrame({"x": range(60), "y": ["a"] * 30 + ["b"] * 30}).to_csv("clean.csv", index=False)
        out, _ = audit("clean.csv", "-t", "y")
        assert re.search(
            r"The trees disagree with [1-9]\d*, but with this error rate none is a suspect; --all", out
        )

    def test_mistakes_of_one_class_that_trees_see_are_counted(self, audit):
        table = pd.DataFrame({"x": range(600), "y": ["a"] * 300 + ["b"] * 300})
        table.loc[:299:10, "y"] = "b"
        table.to_csv("sided.csv", index=False)
        out, _ = audit("sided.csv", "-t", "y", "-o", "suspects.csv")
        low, high = map(float, re.search(r"rate: ([\d.]+)% to ([\d.]+)%", out).groups())
        assert low <= 5 <= high < 6
        assert pd.read_csv("suspects.csv")["row"].sort_values().tolist() == list(range(2, 302, 10))


class TestFindings:
    @pytest.fixture
    def odd(self):
        """Make a table with a duplicate, a copy of another label and a mistyped age; return its name."""
        table = pd.read_csv("customers.csv")
        copies = table.iloc[[10, 20]].copy()
        copies["outcome"] = [
            copies["outcome"].iloc[0],
            "stays" if table["outcome"][20] != "stays" else "leaves",
        ]
        table.loc[30, "age"] = 999
        pd.concat([table, copies]).to_csv("odd.csv", index=False)
        return "odd.csv"

    def test_odd_rows_are_said(self, audit, odd):
        out, _ = audit(odd, "-t", "outcome", *FEW)
        assert "Rows that repeat an earlier row: 2. The first is row 502: same as row 12." in out
        assert "Rows that are nearly equal to a row with another label" in out
        assert "Rows that have a number far from all others: 1. The first is row 32: age is far" in out

    def test_notes_are_written(self, audit, odd):
        audit(odd, "-t", "outcome", *FEW, "--all", "-o", "all.csv")
        notes = pd.read_csv("all.csv").set_index("row")["notes"]
        assert notes[32] == "age is far from all others"
        assert notes[502] == "same as row 12"
        assert notes[503].startswith("same as row 22; like row 22, which is ")
        assert notes[22].startswith("like row 503, which is ")
        assert notes.notna().sum() < 10

    def test_an_ordinary_table_has_none(self, audit):
        out, _ = audit("customers.csv", "-t", "outcome", *FEW)
        assert "repeat" not in out
        assert "far from" not in out


class TestPicture:
    def test_it_is_drawn_beside_the_suspects(self, audit):
        _, err = audit("customers.csv", "-t", "outcome", *FEW, "--plot", "audit.svg", "-o", "s.csv")
        assert err.endswith("The picture is in audit.svg\n")
        assert "suspects" in Path("audit.svg").read_text()

    def test_a_wrong_ending_is_told_before_the_audit(self, audit):
        _, err = audit("customers.csv", "-t", "outcome", "--plot", "audit.doc", code=2)
        assert "must end in .png, .svg, .pdf" in " ".join(err.replace("│", " ").split())

    def test_it_does_not_overwrite_the_table(self, audit):
        Path("t.png").write_bytes(Path("customers.csv").read_bytes())
        _, err = audit("t.png", "-t", "outcome", "--plot", "t.png", code=2)
        assert "is the input" in err


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["customers.csv", "-t", "outcom"], 1, "there is no column 'outcom'; did you mean 'outcome'?"),
            (["customer.csv", "-t", "outcome"], 1, "there is no such file; did you mean 'customers.csv'?"),
            (["customers.csv", "-t", "monthly bill"], 1, "has 26 gaps, in rows 72, 104"),
            (["customers.csv", "-t", "outcome", "-o", "suspects.txt"], 2, "the name must end in"),
            (["customers.csv", "-t", "outcome", "-o", "."], 2, "is a folder"),
            (["customers.csv", "-t", "outcome", "--drop", "outcome"], 2, "the target can't be left out"),
            (["customers.csv", "-t", "outcome", "--all"], 2, "name the file"),
            (["customers.csv", "-t", "outcome", "--n-estimators", "0"], 2, "--n-estimators"),
        ],
    )
    def test_each_gets_a_message(self, audit, arguments, code, message):
        _, err = audit(*arguments, code=code)
        assert message in " ".join(err.replace("│", " ").split())
        if code == 1:
            assert err.startswith("kfhe: ")
            assert err.count("\n") == 1

    def test_one_class_is_not_enough(self, audit):
        Path("same.csv").write_text("x,y\n1,a\n2,a\n3,a\n")
        _, err = audit("same.csv", "-t", "y", code=1)
        assert "one class only (a)" in err
