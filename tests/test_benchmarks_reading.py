"""The comparison of predicting a csv with reading it, on a small one."""

import re

import polars as pl
import pytest

from benchmarks.reading import OURS, READERS, main, make
from kfhe.tables.files import read_table


@pytest.mark.parametrize("mixed", [True, False])
def test_text_and_gaps_are_in_the_table_unless_numbers_are_asked_for(tmp_path, mixed):
    make(tmp_path, 300, 8, 200, mixed=mixed)
    table = read_table(tmp_path / "new.csv")
    assert table.shape == (300, 8)
    assert table.dtypes == [pl.Float64] * 6 + [pl.String if mixed else pl.Float64] * 2
    assert table["x0"].has_nulls() == mixed


def test_everybody_takes_a_turn_and_the_ratio_is_told(capsys):
    main(rows=300, columns=8, training_rows=200, rounds=1, mixed=True)
    said = capsys.readouterr().out
    for who in (*READERS, OURS):
        assert re.search(rf"^{re.escape(who)} +\d+\.\d\d s, of all cores \d+\.\d\d s$", said, re.MULTILINE)
    assert re.search(r"^ratio to pandas \d+\.\d\d, of all cores", said, re.MULTILINE)
