"""Tables: what a csv or parquet file becomes, and what is said of one that can't be used."""

import numpy as np
import pandas as pd
import pytest

from kfhe.study.dataset import Roles, make_dataset, read_table
from kfhe.study.errors import NoTargetError, StudyError
from kfhe.tables.files import TableFileError
from kfhe.tables.labelled import ColumnRoles, LabelledTable


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


def test_the_class_column_is_the_one_of_that_name_or_the_one_that_is_named(tmp_path):
    usual = read_table(write(tmp_path, "class,size\nx,1\ny,2\nx,3\ny,4\n"))
    path = write(tmp_path, "kind,size\nx,1\ny,2\nx,3\ny,4\n")
    named = read_table(path, roles=Roles(target="kind"))
    assert usual.classes == named.classes == ["x", "y"]
    assert list(usual.X.columns) == list(named.X.columns) == ["size"]
    assert (usual.target, named.target) == ("class", "kind")
    with pytest.raises(
        NoTargetError, match=r"mine\.csv: which column is the target\? .*--target.* kind, size$"
    ):
        read_table(path)


def test_of_a_dataset_of_the_catalogue_it_is_the_last_one_unless_another_is_named(tmp_path):
    path = write(tmp_path, "kind,size\nx,1\ny,2\nx,1\ny,2\n")
    for target, learnt in [(None, "size"), ("kind", "kind"), ("label", "size")]:
        assert read_table(path, roles=Roles(target=target), of_catalogue=True).target == learnt


def test_given_and_true_labels_are_no_features_and_nothing_else_is_left_out(reviewed):
    dataset = read_table(reviewed, roles=Roles("given", "true"))
    assert list(dataset.X.columns) == ["width", "height", "given_twice"]
    assert dataset.classes == ["a", "b", "c"]
    assert np.bincount(dataset.true).tolist() == [30, 30, 30]
    assert dataset.wrong == 0.2
    frame = pd.read_csv(reviewed)
    assert [dataset.classes[code] for code in dataset.y] == frame["given"].tolist()
    assert [dataset.classes[code] for code in dataset.true] == frame["true"].tolist()


def test_columns_are_left_out_by_name_or_pattern_but_never_the_labels(reviewed):
    for pattern in ("given_twice", "given*"):
        dataset = read_table(reviewed, roles=Roles("given", "true", (pattern, "not there")))
        assert list(dataset.X.columns) == ["width", "height"]
    assert read_table(reviewed, roles=Roles(drop=("height",), target="given_twice")).X.columns.tolist() == [
        "width",
        "true",
        "given",
    ]
    pd.read_csv(reviewed).rename(columns={"width": "width [cm]"}).to_csv(reviewed, index=False)
    dataset = read_table(reviewed, roles=Roles("given", "true", ("given*", "width [cm]")))
    assert list(dataset.X.columns) == ["height"]  # only the star stands for other letters


def test_another_truth_is_another_dataset(reviewed):
    before = read_table(reviewed, roles=Roles("given", "true"))
    frame = pd.read_csv(reviewed)
    frame.loc[0, "true"] = "c"
    frame.to_csv(reviewed, index=False)
    after = read_table(reviewed, roles=Roles("given", "true"))
    assert after.fingerprint() != before.fingerprint()
    assert read_table(reviewed, roles=Roles(target="given")).wrong is None


def test_labels_are_compared_as_they_are_written(tmp_path):
    """The given ones alone look like numbers; the true ones have one more class."""
    path = write(tmp_path, "x,given,true\n1,01,01\n2,02,02\n3,01,01\n4,02,x\n5,01,02\n6,02,01\n")
    dataset = read_table(path, roles=Roles("given", "true"))
    assert dataset.classes == ["01", "02", "x"]
    assert dataset.wrong == 0.5


def test_a_column_of_labels_that_is_not_there_or_has_gaps_is_named(tmp_path, reviewed):
    with pytest.raises(StudyError, match=r"reviewed\.csv: there is no column 'truth'; did you mean 'true'"):
        read_table(reviewed, roles=Roles("given", "truth"))
    path = write(tmp_path, "x,given,true\n1,a,a\n2,b,\n3,a,a\n4,b,b\n")
    with pytest.raises(StudyError, match="column 'true' of true labels has 1 gap, in row 3"):
        read_table(path, roles=Roles("given", "true"))


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


BAD = {
    "no class column": (
        "a,b\n" + "1,1\n2,2\n3,3\n4,4\n",
        r"target 'b' \(the last column, as none is named 'class'\) has 4 different values in 4 rows",
    ),
    "fractions as classes": (
        "a,b\n1,0.5\n2,0.5\n3,1.5\n4,1.5\n",
        "2 different values in 4 rows: fractions",
    ),
    "names as classes": (
        "a,class\n1,u\n2,v\n3,w\n",
        "target 'class' has 3 different values in 3 rows: too many to be classes",
    ),
    "one class": ("a,class\n1,x\n2,x\n3,x\n", r"target 'class' has one class only \(x\)"),
    "a class of one row": ("a,class\n1,x\n2,x\n3,y\n4,y\n5,z\n6,x\n", "class 'z' has only one row"),
    "gaps in the class": ("a,class\n1,x\n2,\n3,y\n4,\n", "target 'class' has 2 gaps, in rows 3, 5 "),
    "infinite": ("a,class\n1,x\ninf,y\n3,x\n4,y\n", "column 'a', row 3: found infinity; accepted are finite"),
    "one column": ("class\nx\ny\n", "no columns are left to learn from"),
    "header only": ("a,class\n", "there are no rows below the header"),
    "empty": ("", "is empty; the first row must name the columns"),
    "ragged": ("a,class\n1,x\n2,y,z\n", r"row 3 has 3 values, but the header \(row 1\) names 2 columns"),
    "not UTF-8": (b"a,class\n\xc3\xa9\xff,x\n", "column 'a', row 2: there are bytes that are not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_gets_an_error_that_names_it_and_says_why(case, tmp_path):
    text, message = BAD[case]
    with pytest.raises(StudyError, match=message) as error:
        read_table(write(tmp_path, text), of_catalogue=True)
    assert str(error.value).startswith(str(tmp_path / "mine.csv"))


@pytest.mark.parametrize("case", sorted(BAD.keys() - {"a class of one row"}))
def test_the_command_line_says_the_same_of_it(case, tmp_path):
    path = write(tmp_path, BAD[case][0])
    with pytest.raises(StudyError) as ours:
        read_table(path, of_catalogue=True)
    with pytest.raises(TableFileError) as theirs:
        LabelledTable.read(path)
    assert str(ours.value) == str(theirs.value)


def test_missing_and_broken_files_are_named(tmp_path):
    with pytest.raises(StudyError, match=r"absent\.csv: there is no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(StudyError, match=r"mine\.parquet: is damaged, or no parquet file"):
        read_table(write(tmp_path, "no parquet", "mine.parquet"))


def test_any_number_of_categories_is_possible(tmp_path):
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(300)], "class": [i % 2 for i in range(300)]})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    assert read_table(tmp_path / "wide.csv").X["name"].nunique() == 300


def test_rows_of_a_parquet_file_count_from_1(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "class": ["x", None, "y", None]})
    frame.to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(StudyError, match="target 'class' has 2 gaps, in rows 2, 4; fill them in"):
        read_table(tmp_path / "mine.parquet")


def test_rows_of_a_data_frame_count_from_1():
    frame = pd.DataFrame({"a": [1.0, np.inf, 3.0, 4.0], "class": ["x", "y", "x", "y"]})
    with pytest.raises(StudyError, match="made: column 'a', row 2: found infinity"):
        make_dataset(frame, "mine", source="made")


def test_classes_are_called_as_they_are_written(tmp_path):
    dataset = read_table(write(tmp_path, "size,class\n1,01\n2,1\n3,01\n4,1\n"))
    assert dataset.classes == ["01", "1"]


def test_a_study_and_the_command_line_read_a_table_alike(tmp_path):
    text = "zip,size,flag,word,empty,class\n01,1,true,u,,x\n1,,false,,,y\n01,2,,v,,x\n1,3,true,u,,y\n"
    path = write(tmp_path, text)
    table, dataset = (
        LabelledTable.read(path, ColumnRoles(read_as={"zip": "category"})),
        read_table(path, categorical=["zip"]),
    )
    assert dataset.categorical == ["zip", "word"]
    named = zip(table.X.columns, table.categorical, strict=True)
    assert dataset.categorical == [name for name, is_category in named if is_category]
    assert dataset.classes == sorted(set(table.y))
    assert list(dataset.X["zip"]) == table.X["zip"].to_list() == ["01", "1", "01", "1"]
    np.testing.assert_array_equal(dataset.X["flag"], [1, 0, np.nan, 1])
    assert dataset.X["empty"].isna().all()
