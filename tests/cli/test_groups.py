"""--groups, and what the command line says of copies and of columns of many categories."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import kfhe as library
from kfhe.audit import label_quality
from kfhe.review import Decision, write_decisions

QUICK = ("--n-estimators", "5")
FIT = ("-t", "label", "-o", "m.kfhe", *QUICK)

# What Python warns of is said in other words: without this, a warning that comes through would not be seen
pytestmark = pytest.mark.filterwarnings("default::kfhe.TableWarning")


def visits(n_patients=80, seed=0):
    """Return rows of patients with an id, a code without a meaning, and a place that matters."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), rng.integers(1, 12, size=n_patients))
    n = len(patient)
    centres, effects = rng.normal(size=(n_patients, 2)), 2 * rng.normal(size=40)
    places = rng.integers(40, size=n)
    score = centres[patient, 0] + effects[places] + 0.3 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "id": [f"v{i:04d}" for i in rng.permutation(n)],
            "code": [f"k{i}" for i in rng.integers(n // 4, size=n)],
            "place": [f"z{place}" for place in places],
            "a": (centres[patient, 0] + 0.05 * rng.normal(size=n)).round(3),
            "b": (centres[patient, 1] + 0.05 * rng.normal(size=n)).round(3),
            "patient": [f"p{i:02d}" for i in patient],
            "label": np.where(score > 0, "ill", "well"),
        }
    )


def model_of_python(table, groups):
    """Return the model that Python trains on the visits."""
    X = table.drop(columns=["patient", "label"])
    with pytest.warns(library.TableWarning):
        return library.RobustKFHEClassifier(n_estimators=5, random_state=0).fit(
            X, table["label"], groups=groups
        )


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """Run in a folder that holds the visits alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rows = visits()
    rows.to_csv("visits.csv", index=False)
    rows.to_parquet("visits.parquet")
    yield rows
    pyplot.close("all")


class TestFit:
    @pytest.mark.parametrize("file", ["visits.csv", "visits.parquet"])
    def test_the_model_is_that_of_python(self, kfhe, table, file):
        kfhe("fit", file, *FIT, "--groups", "patient")
        expected = model_of_python(table, table["patient"])
        found = library.load("m.kfhe")
        assert found.fingerprint() == expected.fingerprint()
        assert found.feature_names_in_.tolist() == ["id", "code", "place", "a", "b"]

    @pytest.mark.parametrize("model", ["kfhe-e", "kfhe-l"])
    def test_the_papers_variants_take_groups_as_well(self, kfhe, model):
        kfhe("fit", "visits.csv", *FIT, "--groups", "patient", "--model", model)
        grouped = library.load("m.kfhe").fingerprint()
        kfhe("fit", "visits.csv", *FIT, "--drop", "patient", "--model", model)
        assert library.load("m.kfhe").fingerprint() != grouped

    def test_numbers_name_groups_as_python_sorts_them(self, kfhe, table):
        numbers = table["patient"].str[1:].astype(int)
        table.assign(patient=numbers).to_csv("visits.csv", index=False)
        kfhe("fit", "visits.csv", *FIT, "--groups", "patient")
        assert library.load("m.kfhe").fingerprint() == model_of_python(table, numbers).fingerprint()

    def test_the_overview_tells_what_became_of_each_column(self, kfhe):
        _, said = kfhe("fit", "visits.csv", *FIT, "--groups", "patient")
        rows = {line.split()[1]: line for line in said.splitlines() if line.startswith("│")}
        assert "category, left out" in rows["id"]
        assert "category, left out" in rows["code"]
        assert "category, as shares of the classes" in rows["place"]
        assert "number" in rows["a"]
        assert re.search(r"groups +│ 80: p00, p01", rows["patient"])

    def test_what_may_be_a_mistake_is_said_in_words_of_the_command_line(self, kfhe, table):
        _, said = kfhe("fit", "visits.csv", *FIT, "--groups", "patient")
        assert "kfhe: column 'id' has (nearly) as many values as rows: it is left out\n" in said
        assert re.search(
            r"kfhe: column 'code' \(\d+ values\) says nothing about the label: it is left out\n", said
        )
        table.assign(closed=table["label"] == "ill", one=1).to_csv("leak.csv", index=False)
        _, said = kfhe("fit", "leak.csv", *FIT)
        assert (
            "kfhe: column 'closed' predicts nearly all labels on its own. If it is only known after" in said
        )
        assert "--drop closed\n" in said
        assert "kfhe: column 'one' has one value only: it can't tell classes apart\n" in said
        pd.concat([table, table.iloc[::3]]).drop(columns="id").to_csv("copies.csv", index=False)
        _, said = kfhe("fit", "copies.csv", *FIT)
        n, n_copies = len(table) + len(table.iloc[::3]), len(table.iloc[::3])
        assert f"kfhe: {n_copies} of {n} rows are copies of others: copies are kept together" in said
        assert "in each row: --groups COLUMN\n" in said
        assert "`groups`" not in said
        assert said.count("copies of others") == 1

    def test_a_table_of_names_alone_gets_a_model(self, kfhe, table):
        table[["id", "label"]].to_csv("ids.csv", index=False)
        _, said = kfhe("fit", "ids.csv", *FIT)
        assert "it is left out" in said
        kfhe("predict", "m.kfhe", "ids.csv", "-o", "out.csv")
        most = table["label"].mode()[0]
        assert set(pd.read_csv("out.csv")["prediction"]) == {most}
        kfhe("plot", "m.kfhe", "--kind", "importance", "-o", "picture.png")
        kfhe("export", "m.kfhe", "-o", "m.json")

    @pytest.mark.parametrize("command", ["fit", "audit", "evaluate"])
    def test_columns_that_tell_no_groups_get_an_error(self, kfhe, table, command):
        def refused(*options, code=1, file="visits.csv"):
            wanted = FIT if command == "fit" else ("-t", "label", *QUICK)
            return " ".join(kfhe(command, file, *wanted, *options, code=code)[1].replace("│", "").split())

        assert "there is no column 'patinet'; did you mean 'patient'?" in refused("--groups", "patinet")
        assert "'label' is the target" in refused("--groups", "label", code=2)
        table["patient"] = table["patient"].mask(np.arange(len(table)) == 3)
        table.to_csv("gaps.csv", index=False)
        assert (
            "gaps.csv: column 'patient' of groups has 1 gap, in row 5 (the header is row 1); give a row "
            "without a group a value of its own"
        ) in refused("--groups", "patient", file="gaps.csv")
        table.assign(patient=np.where(np.arange(len(table)) < 2, np.nan, 1.5)).to_parquet("gaps.parquet")
        assert "has 2 gaps, in rows 1, 2; give" in refused("--groups", "patient", file="gaps.parquet")
        table.assign(patient="p").to_csv("one.csv", index=False)
        assert "has one value only (p); there must be two groups" in refused(
            "--groups", "patient", file="one.csv"
        )

    def test_gaps_in_rows_without_a_label_are_no_matter(self, kfhe, table):
        table.loc[3, ["patient", "label"]] = None
        table.to_csv("visits.csv", index=False)
        kfhe("fit", "visits.csv", *FIT, "--groups", "patient", "--drop-unlabelled")
        table.loc[7, "patient"] = None
        table.to_csv("visits.csv", index=False)
        _, said = kfhe("fit", "visits.csv", *FIT, "--groups", "patient", "--drop-unlabelled", code=1)
        assert "1 gap, in row 9 (the header is row 1)" in said


class TestPredict:
    def test_unseen_categories_are_told_with_what_they_get(self, kfhe, table):
        kfhe("fit", "visits.csv", *FIT, "--groups", "patient")
        new = table.head(20).drop(columns=["patient", "label"])
        new["id"] = "new"
        new.loc[:4, "place"] = "nowhere"
        new.loc[5:6, "place"] = None
        new.to_csv("new.csv", index=False)
        _, said = kfhe("predict", "m.kfhe", "new.csv", "-o", "out.csv")
        assert (
            "kfhe: new.csv: column 'place': values in categories that the model has never seen: 5; they get "
            "the shares of the whole table\n"
        ) in said
        assert "'id'" not in said  # what it holds does not matter
        expected = library.load("m.kfhe").predict(pd.read_csv("new.csv"))
        assert pd.read_csv("out.csv")["prediction"].tolist() == expected.tolist()

    @pytest.mark.parametrize("columns", [["id", "code", "place"], ["id", "code"], ["id"]])
    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_what_is_left_out_need_not_be_there(self, kfhe, table, columns, ending):
        table = table[[*columns, "label"]] if columns == ["id"] else table[[*columns, "a", "b", "label"]]
        getattr(table, f"to_{ending}")(f"train.{ending}", index=False)
        kfhe("fit", f"train.{ending}", *FIT)
        expected = library.load("m.kfhe").predict(table.drop(columns="label"))
        new = table.drop(columns="code", errors="ignore").assign(id="x" if columns == ["id"] else 1.5)
        getattr(new, f"to_{ending}")(f"new.{ending}", index=False)
        kfhe("predict", "m.kfhe", f"new.{ending}", "-o", "out.csv")
        assert pd.read_csv("out.csv")["prediction"].tolist() == expected.tolist()
        kfhe("predict", "m.kfhe", f"new.{ending}", "-o", "out.csv", "--keep", "label")
        assert pd.read_csv("out.csv")["prediction"].tolist() == expected.tolist()
        out, _ = kfhe("evaluate", f"new.{ending}", "-t", "label", "--model", "m.kfhe", "--json")
        assert json.loads(out)["accuracy"] == pytest.approx((expected == table["label"]).mean())
        kfhe(
            "plot",
            "m.kfhe",
            "--kind",
            "scores",
            "--data",
            f"new.{ending}",
            "-t",
            "label",
            "-o",
            "picture.png",
        )


class TestEvaluate:
    @pytest.mark.parametrize("how", [("--folds", "3"), ("--holdout", "0.3")])
    def test_no_group_is_trained_on_and_tested(self, kfhe, table, monkeypatch, how):
        trained, tested = [], []
        fit, predict = library.RobustKFHEClassifier.fit, library.RobustKFHEClassifier.predict

        def watching(model, X, y, groups=None, **others):
            trained.append((X["a"].to_list(), groups.tolist()))
            return fit(model, X, y, groups=groups, **others)

        def asked(model, X):
            tested.append(X["a"].to_list())
            return predict(model, X)

        table["a"] = np.arange(len(table)) / 4  # by which rows are known
        table.to_csv("visits.csv", index=False)
        monkeypatch.setattr(library.RobustKFHEClassifier, "fit", watching)
        monkeypatch.setattr(library.RobustKFHEClassifier, "predict", asked)
        out, said = kfhe("evaluate", "visits.csv", "-t", "label", *QUICK, "--groups", "patient", *how)
        assert b"groups by 'patient'" in out
        group_of = dict(zip(table["a"], table["patient"], strict=True))
        for (rows, groups), others in zip(trained, tested, strict=True):
            assert [group_of[row] for row in rows] == groups
            assert not {group_of[row] for row in rows} & {group_of[row] for row in others}
            assert len(rows) + len(others) == len(table)
        if how[0] == "--folds":
            assert sorted(row for rows in tested for row in rows) == sorted(table["a"])
        else:
            assert len({group_of[row] for row in tested[0]}) == 24
        assert said.count("has (nearly) as many values as rows") == 1  # not for each of the folds

    def test_classes_and_groups_have_to_go_round(self, kfhe, table):
        def refused(*options):
            return kfhe(
                "evaluate", "visits.csv", "-t", "label", *QUICK, "--groups", "patient", *options, code=1
            )[1]

        assert "there are only 80 groups; use fewer than 90 --folds" in refused("--folds", "90")
        assert "tests all of 80 groups" in refused("--holdout", "0.999")
        table.loc[table["patient"] == "p03", "label"] = "odd"
        table.to_csv("visits.csv", index=False)
        assert "class 'odd' is in one group only, so it can't be both trained on and tested" in refused()

    def test_a_class_that_a_fold_lacks_has_no_score_there(self, kfhe, table):
        table.loc[table["patient"].isin(["p03", "p04"]), "label"] = "odd"
        table.to_csv("visits.csv", index=False)
        out, _ = kfhe(
            "evaluate",
            "visits.csv",
            "-t",
            "label",
            *QUICK,
            "--groups",
            "patient",
            "--holdout",
            "0.97",
            "--json",
        )
        assert json.loads(out)["classes"] == ["ill", "odd", "well"]

    def test_copies_that_make_it_look_good_are_told(self, kfhe, table):
        pd.concat([table, table]).drop(columns=["id"]).to_csv("copies.csv", index=False)
        _, said = kfhe("evaluate", "copies.csv", "-t", "label", *QUICK)
        assert (
            said.count(
                "kfhe: there are copies of rows. A model that is trained on a row and tested on its copy"
            )
            == 1
        )
        _, said = kfhe("evaluate", "copies.csv", "-t", "label", *QUICK, "--groups", "patient")
        assert "copies" not in said

    def test_a_model_file_has_no_use_for_groups(self, kfhe):
        kfhe("fit", "visits.csv", *FIT)
        _, said = kfhe(
            "evaluate", "visits.csv", "-t", "label", "--model", "m.kfhe", "--groups", "patient", code=2
        )
        assert "with a model file nothing is trained" in said


class TestAudit:
    def test_it_is_that_of_python_and_lists_the_column(self, kfhe, table):
        trees = ("--n-estimators", "50")
        _, said = kfhe(
            "audit", "visits.csv", "-t", "label", "--groups", "patient", *trees, "--all", "-o", "all.csv"
        )
        X = table.drop(columns=["patient", "label"])
        settings = {"groups": table["patient"], "n_estimators": 50, "random_state": 0}
        with pytest.warns(library.TableWarning):
            expected = label_quality(X, table["label"], **settings)
        found = pd.read_csv("all.csv").sort_values("row")
        assert found["quality"].tolist() == expected.quality.round(4).tolist()
        assert found["patient"].tolist() == table["patient"].tolist()
        assert "kfhe: column 'id' has (nearly) as many values as rows: it is left out\n" in said

    def test_columns_left_out_speak_for_nothing_on_the_page(self, kfhe):
        kfhe("audit", "visits.csv", "-t", "label", "--groups", "patient", *QUICK, "--page", "page.html")
        page = page_data("page.html")
        names = [column["name"] for column in page["columns"]]
        looked_at = {names[place] for row in page["rows"] for place, _ in row["looks"]}
        assert looked_at == {"place", "a", "b"}
        usual = {column["name"]: column["usual"] for column in page["columns"]}
        assert [name for name in names if usual[name] is None] == ["id", "code", "patient"]

    def test_decisions_are_learnt_from_with_the_same_groups(self, kfhe, monkeypatch):
        kfhe("audit", "visits.csv", "-t", "label", "--groups", "patient", *QUICK, "--page", "page.html")
        page = page_data("page.html")
        first = page["rows"][0]
        given = page["classes"][first["given"]]
        write_decisions(
            "decisions.csv", [Decision(first["row"], first["digest"], "label", given, "keep", given)]
        )
        seen = []

        def watching(X, y, **settings):
            seen.append(settings["groups"])
            return label_quality(X, y, **settings)

        monkeypatch.setattr("kfhe.review.reaudit.label_quality", watching)
        _, said = kfhe(
            "audit", "visits.csv", "-t", "label", "--groups", "patient", *QUICK,
            "--decisions", "decisions.csv", "--page", "again.html",
        )  # fmt: skip
        assert seen[0].tolist() == visits()["patient"].tolist()
        assert "kfhe: column 'id' has" in said


def page_data(path):
    found = re.search(
        r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', Path(path).read_text(), re.DOTALL
    )
    return json.loads(found[1])


class TestParts:
    def test_rows_in_parts_have_groups_as_well(self, kfhe, table):
        for name, some in (("a", table[:200]), ("b", table[200:])):
            some.to_parquet(f"{name}.parquet", row_group_size=90)
        _, said = kfhe("fit", "a.parquet", "b.parquet", *FIT, "--groups", "patient", "--jobs", 2)
        assert library.load("m.kfhe").fingerprint() == model_of_python(table, table["patient"]).fingerprint()
        assert "kfhe: column 'id' has (nearly) as many values as rows: it is left out\n" in said
        assert said.count("left out") == 2

    def test_gaps_in_groups_are_told_by_file_and_row(self, kfhe, table):
        table[:200].to_parquet("a.parquet")
        table[200:].assign(patient=table["patient"].mask(np.arange(len(table)) == 207)).to_parquet(
            "b.parquet"
        )
        fit = ("fit", "a.parquet", "b.parquet", *FIT, "--jobs", 2)
        _, said = kfhe(*fit, "--groups", "patient", code=1)
        assert "b.parquet: column 'patient' of groups has 1 gap, in row 8; give a row without a group" in said
        assert "there is no column 'patinet'; did you mean" in kfhe(*fit, "--groups", "patinet", code=1)[1]
