"""Tables: what a csv or parquet file becomes, and what is said of one that can't be used."""

import numpy as np
import pandas as pd
import pytest

from kfhe.study.errors import StudyError
from kfhe.study.tables import read_table


def write(tmp_path, text, name="mine.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_numbers_categories_and_gaps_keep_their_nature(tmp_path):
    path = write(tmp_path, "size,colour,code,class\n1,red,7,x\n,,8,y\n2.5,blue,7,x\n3,red,8,y\n")
    dataset = read_table(path, categorical=["code"])
    assert dataset.name == "mine"
    assert dataset.classes == ["x", "y"]
    assert dataset.y.tolist() == [0, 1, 0, 1]
    assert dataset.categorical == ["colour", "code"]
    np.testing.assert_array_equal(dataset.X["size"], [1, np.nan, 2.5, 3])
    assert dataset.X["colour"].isna().tolist() == [False, True, False, False]
    assert list(dataset.X["code"].cat.categories) == ["7", "8"]


def test_the_class_column_is_the_one_of_that_name_else_the_last(tmp_path):
    named = read_table(write(tmp_path, "class,size\nx,1\ny,2\nx,3\ny,4\n"))
    last = read_table(write(tmp_path, "size,kind\n1,x\n2,y\n3,x\n4,y\n"))
    assert named.classes == last.classes == ["x", "y"]
    assert list(named.X.columns) == list(last.X.columns) == ["size"]


def test_parquet_and_gzip_give_the_same_as_csv(rows, csv, tmp_path):
    rows.to_parquet(tmp_path / "small.parquet")
    rows.to_csv(tmp_path / "small.csv.gz", index=False)
    expected = read_table(csv)
    for name in ("small.parquet", "small.csv.gz"):
        found = read_table(tmp_path / name)
        assert found.name == "small"
        assert found.classes == expected.classes
        np.testing.assert_allclose(found.X, expected.X)
    assert read_table(tmp_path / "small.csv.gz").fingerprint() == expected.fingerprint()


def test_the_fingerprint_notices_any_change(rows, tmp_path):
    def fingerprint(frame):
        frame.to_csv(tmp_path / "changed.csv", index=False)
        return read_table(tmp_path / "changed.csv").fingerprint()

    before = fingerprint(rows)
    assert fingerprint(rows) == before
    other_value, other_label = rows.copy(), rows.copy()
    other_value.loc[3, "height"] += 1e-9
    other_label.loc[3, "class"] = "b"
    renamed = rows.rename(columns={"width": "breadth"})
    assert len({before, *map(fingerprint, (other_value, other_label, renamed))}) == 4


MANY = "name,class\n" + "".join(f"row {i},{'xy'[i % 2]}\n" for i in range(300))
BAD = {
    "no class column": (
        "a,b\n" + "1,1\n2,2\n3,3\n4,4\n",
        "no class column: none is named 'class', .* 'b', has 4",
    ),
    "fractions as classes": ("a,b\n1,0.5\n2,0.5\n3,1.5\n4,1.5\n", "there is no class column"),
    "names as classes": (
        "a,class\n1,u\n2,v\n3,w\n",
        "column 'class' holds no classes: it has 3 different values",
    ),
    "one class": ("a,class\n1,x\n2,x\n3,x\n", r"class column 'class' has one class only \('x'\)"),
    "a class of one row": ("a,class\n1,x\n2,x\n3,y\n4,y\n5,z\n6,x\n", "class 'z' has one row only"),
    "300 categories": (MANY, "column 'name' has 300 categories, at most 255 are possible"),
    "gaps in the class": ("a,class\n1,x\n2,\n3,y\n4,\n", "class column 'class' has 2 gaps, in lines 3, 5"),
    "infinite": ("a,class\n1,x\ninf,y\n3,x\n4,y\n", "column 'a' has infinite values"),
    "one column": ("class\nx\ny\n", "at least one feature and a class column, got 2 rows and 1 columns"),
    "header only": ("a,class\n", "there are no rows below the header"),
    "empty": ("", "is empty; the first row must name the columns"),
    "ragged": ("a,class\n1,x\n2,y,z\n", r"row 3 has 3 values, but the header \(row 1\) names 2 columns"),
    "not UTF-8": (b"a,class\n\xff\xfe,x\n", "column 'a', row 2: there are bytes that are not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gets_an_error_that_names_it_and_says_why(case, tmp_path):
    text, message = BAD[case]
    with pytest.raises(StudyError, match=message) as error:
        read_table(write(tmp_path, text))
    assert str(error.value).startswith(str(tmp_path / "mine.csv"))


def test_missing_and_broken_files_are_named(tmp_path):
    with pytest.raises(StudyError, match=r"absent\.csv: there is no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(StudyError, match=r"mine\.parquet: is damaged, or no parquet file"):
        read_table(write(tmp_path, "no parquet", "mine.parquet"))


def test_255_categories_are_possible(tmp_path):
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(255)], "class": [i % 2 for i in range(255)]})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    assert read_table(tmp_path / "wide.csv").X["name"].nunique() == 255
