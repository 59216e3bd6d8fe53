"""Decisions as a csv file: what is written comes back, and mistakes are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfhe.review import Decision, DecisionError, read_decisions, write_decisions

HEADER = "row,digest,target,given,decision,decided,note\n"
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda word: "\0" not in word)


@given(label=text.filter(bool), other=text.filter(bool), note=text)
def test_what_is_written_comes_back(tmp_path_factory, label, other, note):
    path = tmp_path_factory.mktemp("decisions") / "decisions.csv"
    decisions = [
        Decision(2, "r1", "y", label, "keep", label, note),
        Decision(3, "r2", "y", label, "drop", "", note),
        Decision(4, "r3", "y", label, "unsure", "", note),
    ]
    if other != label:
        decisions.append(Decision(9, "r4", "y", label, "change", other, note))
    write_decisions(path, decisions)
    assert read_decisions(path) == decisions


def test_a_spreadsheet_may_have_saved_it(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes(
        b"\xef\xbb\xbf" + HEADER.replace(",", ";").replace("\n", "\r\n").encode() + b"2;r1;y;a;change;b;\r\n"
    )
    assert read_decisions(path) == [Decision(2, "r1", "y", "a", "change", "b")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,given\n1,a\n", "there is no column 'digest'; decisions have the columns row, digest"),
        (HEADER + "two,r1,y,a,keep,a,\n", "line 2: 'two' is no row number"),
        (
            HEADER + "2,r1,y,a,maybe,a,\n",
            "line 2: row 2: there is no decision 'maybe'; accepted are keep",
        ),
        (
            HEADER + "2,r1,y,a,keep,b,\n",
            "label 'a' and the new one 'b' don't go with the decision 'keep'",
        ),
        (HEADER + "2,r1,y,a,change,a,\n", "don't go with the decision 'change'"),
        (HEADER + "2,r1,y,a,change,,\n", "don't go with the decision 'change'"),
        (
            HEADER + "2,r1,y,a,keep,a,\n2,r1,y,a,drop,,\n",
            "line 3: row 2 has two decisions, 'keep a' and",
        ),
        (HEADER + "2,r1,y,a,keep,a,\n3,r1,z,a,drop,,\n", "one column of labels, got y, z"),
    ],
)
def test_mistakes_are_named(tmp_path, content, message):
    path = tmp_path / "decisions.csv"
    path.write_text(content)
    with pytest.raises(DecisionError, match=message.replace("(", r"\(")):
        read_decisions(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DecisionError, match="there is no such file"):
        read_decisions(tmp_path / "decisions.csv")
