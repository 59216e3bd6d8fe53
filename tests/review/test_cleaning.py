"""Decisions applied: the table is as decided, and nothing else has changed."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from kfhe.cli import main
from kfhe.review import (
    Decision,
    DecisionError,
    apply_decisions,
    clean_file,
    read_decisions,
    write_decisions,
)
from kfhe.review.cells import row_digests
from kfhe.tables.files import Dialect, TableFileError, read_table

CSV = b'\xef\xbb\xbfid,text,y\r\n1,"a, ""b""\nc",cat\r\n\r\n2,,"dog"\r\n3,\xc3\xa9,cat\r\n4,x,NA\r\n'


def decided(path, *wanted, first_row=2, **read):
    """Return decisions about a file: each a position, a decision and perhaps a label."""
    table = read_table(path, ["y"], **read)
    digests = row_digests(table.drop("y"), np.arange(len(table)))
    given = table["y"].to_list()
    return [
        Decision(row + first_row, digests[row], "y", str(given[row]), kind, *label)
        for row, kind, *label in wanted
    ]


class TestFiles:
    @pytest.fixture
    def source(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_bytes(CSV)
        return path

    @pytest.fixture
    def decisions(self, source):
        return decided(source, (0, "change", "dog"), (1, "keep", "dog"), (2, "drop"))

    def test_untouched_bytes_of_a_csv_stay(self, source, decisions, tmp_path):
        clean_file(decisions, source, tmp_path / "out.csv")
        after = CSV.replace(b'c",cat', b'c",dog').replace(b"3,\xc3\xa9,cat\r\n", b"")
        assert (tmp_path / "out.csv").read_bytes() == after
        assert source.read_bytes() == CSV

    def test_of_a_gzipped_one_too(self, decisions, tmp_path):
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(CSV))
        clean_file(decisions, tmp_path / "t.csv.gz", tmp_path / "out.csv.gz")
        clean_file(decisions, tmp_path / "t.csv.gz", tmp_path / "out.csv")
        after = (tmp_path / "out.csv").read_bytes()
        assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == after
        assert b'c",dog' in after

    def test_in_other_encodings_and_with_other_separators(self, tmp_path):
        text = "x;y\n1,5;né\n2,5;b\n"
        (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
        dialect = Dialect(encoding="latin-1")
        decisions = decided(tmp_path / "t.csv", (1, "change", "né"), dialect=dialect)
        clean_file(decisions, tmp_path / "t.csv", tmp_path / "out.csv", dialect=dialect)
        assert (tmp_path / "out.csv").read_bytes() == text.replace(";b", ";né").encode("latin-1")

    @pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
    def test_in_an_encoding_that_nobody_names(self, tmp_path, encoding):
        text = "x,y\n1,né\n2,b\n"
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        decisions = decided(tmp_path / "t.csv", (1, "change", "né"))
        clean_file(decisions, tmp_path / "t.csv", tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_bytes() == text.replace(",b", ",né").encode(encoding)

    def test_a_parquet_file_keeps_its_values_types_and_index(self, tmp_path):
        frame = pd.DataFrame(
            {
                "x": [1.5, None, 3.0],
                "when": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
                "y": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"], ordered=True),
            },
            index=pd.Index(["p", "q", "r"]),
        )
        frame.to_parquet(tmp_path / "t.parquet")
        digest = row_digests(frame.drop(columns="y"), np.array([0]))[0]
        decision = Decision(1, digest, "y", "b", "change", "a")
        clean_file([decision], tmp_path / "t.parquet", tmp_path / "out.parquet")
        expected = frame.copy()
        expected.loc["p", "y"] = "a"
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out.parquet"), expected)

    @pytest.mark.parametrize("labels", [[1, 2, 1], [True, False, True], ["a", "b", "a"]])
    def test_labels_of_a_parquet_file_keep_their_type(self, tmp_path, labels):
        table = pa.table({"x": [1, 2, 3], "y": labels})
        parquet.write_table(table, tmp_path / "t.parquet")
        digest = row_digests(table.drop_columns(["y"]), np.array([0]))[0]
        decision = Decision(1, digest, "y", str(labels[0]), "change", str(labels[1]))
        clean_file([decision], tmp_path / "t.parquet", tmp_path / "out.parquet")
        after = parquet.read_table(tmp_path / "out.parquet")
        assert after.column("y").to_pylist() == [labels[1], *labels[1:]]
        assert after.schema.equals(table.schema)

    def test_the_log_tells_every_change(self, source, decisions, tmp_path):
        clean_file(decisions, source, tmp_path / "out.csv", log=tmp_path / "log.csv")
        assert read_decisions(tmp_path / "log.csv") == [decisions[0], decisions[2]]


class TestRefusals:
    @pytest.fixture
    def source(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("x,y\n1,a\n2,b\n3,a\n")
        return path

    def refused(self, decisions, source, message):
        output = source.with_name("out.csv")
        with pytest.raises(DecisionError, match=message):
            clean_file(decisions, source, output, log=source.with_name("log.csv"))
        assert not output.exists()
        assert not source.with_name("log.csv").exists()

    def test_rows_that_have_moved(self, source):
        decisions = decided(source, (0, "change", "b"), (2, "drop"))
        source.write_text("x,y\n2,b\n1,a\n3,a\n")
        self.refused(decisions, source, r"t\.csv: row 2: does not match the decisions \(1 of 2 decisions\)")

    def test_another_label(self, source):
        decisions = decided(source, (0, "change", "b"))
        source.write_text("x,y\n1,b\n2,b\n3,a\n")
        self.refused(decisions, source, "row 2: the label 'a' was reviewed, but it is 'b' now")

    def test_a_shorter_table(self, source):
        decisions = decided(source, (2, "drop"))
        source.write_text("x,y\n1,a\n2,b\n")
        self.refused(decisions, source, "there is no row 4: the table has 2 rows")

    def test_a_class_that_no_row_has(self, source):
        decisions = decided(source, (0, "change", "bb"))
        self.refused(
            decisions, source, "row 2 is to become 'bb', which is not one of the classes; did you mean 'b'"
        )

    def test_a_table_without_the_labels(self, source):
        decisions = decided(source, (0, "drop"))
        source.write_text("x,z\n1,a\n2,b\n")
        with pytest.raises(TableFileError, match="there is no column 'y'"):
            clean_file(decisions, source, source.with_name("out.csv"))

    def test_its_own_input(self, source):
        decisions = decided(source, (0, "drop"))
        before = source.read_bytes()
        with pytest.raises(TableFileError, match="is the table itself"):
            clean_file(decisions, source, source)
        assert source.read_bytes() == before

    def test_another_kind_of_file(self, source):
        with pytest.raises(TableFileError, match=r"must end in \.csv or \.csv\.gz"):
            clean_file(decided(source, (0, "drop")), source, source.with_name("out.parquet"))


class TestInMemory:
    FRAME = pd.DataFrame({"x": [1, 2, None], "code": ["007", "b", None], "flag": [True, False, True]})
    LABELS = np.array(["a", "b", "a"])

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
    def test_tables_of_all_kinds_have_the_same_digests(self, kind, tmp_path):
        self.FRAME.to_csv(tmp_path / "t.csv", index=False)
        from_file = row_digests(read_table(tmp_path / "t.csv"), np.arange(3))
        assert row_digests(kind(self.FRAME), np.arange(3)) == from_file
        as_text = row_digests(read_table(tmp_path / "t.csv", ["x", "code", "flag"]), np.arange(3))
        assert as_text == from_file, "whatever is read as text"

    def test_every_cell_counts_and_so_does_its_column(self):
        before = row_digests(self.FRAME, np.arange(3))
        for name in self.FRAME:
            other = self.FRAME.assign(**{name: self.FRAME[name].iloc[::-1].to_numpy()})
            assert row_digests(other, np.arange(3))[0] != before[0] or name == "flag"
        assert row_digests(self.FRAME.rename(columns={"x": "z"}), np.arange(3))[0] != before[0]

    def test_labels_are_as_decided(self):
        digests = row_digests(self.FRAME, np.arange(3))
        decisions = [
            Decision(2, digests[2], "y", "a", "change", "b"),
            Decision(0, digests[0], "y", "a", "unsure"),
            Decision(1, digests[1], "y", "b", "drop"),
        ]
        cleaned = apply_decisions(decisions, self.FRAME, self.LABELS)
        assert cleaned.labels.tolist() == ["a", "b", "b"]
        assert cleaned.kept.tolist() == [True, False, True]
        assert cleaned.judged.tolist() == [False, False, True]
        assert [change.row for change in cleaned.changes] == [1, 2]
        assert self.LABELS.tolist() == ["a", "b", "a"]


class TestCommand:
    @pytest.fixture
    def kfhe(self, monkeypatch, capfd, tmp_path):
        monkeypatch.chdir(tmp_path)

        def command(*arguments, code=0):
            monkeypatch.setattr("sys.argv", ["kfhe", *arguments])
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
            with pytest.raises(SystemExit) as ended:
                main()
            sys.stdout.flush()
            said = capfd.readouterr()
            assert ended.value.code == code, said.err
            return " ".join((said.out + said.err).replace("│", " ").split())

        (tmp_path / "t.csv").write_bytes(CSV)
        decisions = decided(tmp_path / "t.csv", (0, "change", "dog"), (1, "keep", "dog"), (2, "drop"))
        write_decisions(tmp_path / "decisions.csv", decisions)
        return command

    def test_it_says_what_was_done_and_where_it_is(self, kfhe, tmp_path):
        said = kfhe("apply", "decisions.csv", "t.csv", "-o", "cleaned.csv")
        assert "3 decisions. Labels changed: 1, found right: 1, left open: 0; rows dropped: 1." in said
        assert "The table is in cleaned.csv, every change in cleaned_changes.csv." in said
        assert b'c",dog' in (tmp_path / "cleaned.csv").read_bytes()
        assert len(read_decisions(tmp_path / "cleaned_changes.csv")) == 2

    def test_applied_twice_it_refuses(self, kfhe, tmp_path):
        kfhe("apply", "decisions.csv", "t.csv", "-o", "cleaned.csv")
        said = kfhe("apply", "decisions.csv", "cleaned.csv", "-o", "again.csv", code=1)
        assert said.startswith("kfhe: cleaned.csv: row 4: does not match the decisions")
        assert not (tmp_path / "again.csv").exists()

    def test_inputs_are_never_overwritten(self, kfhe, tmp_path):
        assert "t.csv is the input" in kfhe("apply", "decisions.csv", "t.csv", "-o", "t.csv", code=2)
        assert "is the input" in kfhe("apply", "decisions.csv", "t.csv", "-o", "decisions.csv", code=2)
        clash = ("apply", "decisions.csv", "t.csv", "-o", "c.csv", "--log")
        assert "is the input" in kfhe(*clash, "t.csv", code=2)
        assert "need a file each" in kfhe(*clash, "c.csv", code=2)
        assert "need a file each" in kfhe(*clash, str(tmp_path / "c.csv"), code=2)
