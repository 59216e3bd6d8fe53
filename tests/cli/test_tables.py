"""From a table to a model and predictions: kfhe fit, predict and evaluate."""

import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import make_classification

import kfhe as library
from kfhe.noise import flip_labels

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "data"

pytestmark = pytest.mark.usefixtures("elsewhere")


def predictions(name="out.csv"):
    return pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)


def scores_in(name):
    """The scores to the last bit: pandas 2 gets some decimals of a csv wrong by one."""
    written = predictions(name) if name.endswith("parquet") else pd.read_csv(name, dtype=str)
    return written.iloc[:, 1:].astype(float).to_numpy()


def write(text, name="mine.csv"):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def test_the_two_commands_of_the_readme_work_in_a_fresh_folder(kfhe):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## From a csv to predictions in two commands")[1].split("\n## ")[0]
    commands = re.findall(r"^    kfhe (.+?)(?:  #.*)?$", section, re.MULTILINE)
    assert [command.split()[0] for command in commands[:2]] == ["fit", "predict"]
    for command in commands:
        kfhe(*command.replace("examples/data/", "").split())
    frame, new = pd.read_csv("customers.csv"), pd.read_csv("new_customers.csv")
    expected = library.RobustKFHEClassifier(random_state=0).fit(
        frame.drop(columns="outcome"), frame["outcome"]
    )
    assert library.load("model.kfhe").fingerprint() == expected.fingerprint()
    assert predictions()["prediction"].tolist() == expected.predict(new).tolist()


def test_fit_shows_columns_classes_and_where_the_model_is(kfhe):
    out, said = kfhe("fit", "customers.csv", "-t", "outcome", "-o", "model.kfhe")
    assert not out
    for line in (
        r"customers.csv: 500 rows",
        r"age +│ number +│ 18 to 77 +│ 20 ",
        r"plan +│ category +│ 3: basic, family, plus +│ 28 ",
        r"outcome +│ target +│ leaves \(121\), stays \(290\), upgrades \(89\)",
        r"Trained 101 trees in (?!0.0 s).* Out of the bag, they agree with \d.*% of ",
        r"Estimated error rate of the labels: \d.*%, if mistakes are random;",
        r"The model is in model.kfhe. Next: kfhe predict model.kfhe",
    ):
        assert re.search(line, said), line


def test_classes_that_differ_by_capitals_or_blanks_only_are_named(kfhe):
    labels = ["Yes", "no", "yes ", "No", "yes", "no", "maybe", "Yes"]
    rows = [f"{number},{labels[number % len(labels)]}" for number in range(80)]
    Path("t.csv").write_text("\n".join(["size,label", *rows]))
    for command in (["fit", "-o", "t.kfhe", "--n-estimators", "3"], ["audit", "--n-estimators", "3"]):
        out, said = kfhe(command[0], "t.csv", "-t", "label", *command[1:])
        said = " ".join((out.decode() + said).split())
        assert "only differ in capitals or blanks, 'Yes' (20), 'yes' (10), 'yes ' (10); each is" in said
        assert "only differ in capitals or blanks, 'No' (10), 'no' (20); each" in said
        assert "maybe'" not in said


def test_blanks_in_place_of_gaps_are_named(kfhe):
    rows = [
        f"{number if number % 9 else ' '},{'ab'[number % 2] if number % 7 else '  '}" for number in range(80)
    ]
    Path("t.csv").write_text("\n".join(["size,label", *rows]))
    fit = ("fit", "t.csv", "-t", "label", "-o", "t.kfhe", "--n-estimators", "3")
    _, said = kfhe(*fit)
    assert "Column 'size' has numbers except for ' ', so it is treated as categories" in said
    assert "Target 'label' has a blank class, '  ' (12)." in said
    assert "--na '  ' --drop-unlabelled" in said
    _, said = kfhe(*fit, "--na", " ", "--na", "  ", "--drop-unlabelled")
    assert "12 rows without a label are left out" in said
    assert "blanks" not in said
    assert "categories" not in said


@pytest.mark.parametrize("kind", ["str", "category"])
def test_words_are_gaps_in_parquet_too(kfhe, kind):
    table = pd.DataFrame({"town": ["Rome", "?"] * 30, "label": ["a", "b", "a", "-"] * 15}, dtype=kind)
    table.to_parquet("t.parquet")
    as_gaps = ("--na", "?", "--na", "-", "--drop-unlabelled")
    _, said = kfhe("fit", "t.parquet", "-t", "label", "-o", "t.kfhe", "--n-estimators", "3", *as_gaps)
    assert "15 rows without a label are left out" in said
    assert re.search(r"town +│ category │ 1: Rome +│ 15 ", said)
    out, said = kfhe("evaluate", "t.parquet", "-t", "label", "--model", "t.kfhe", "--json", *as_gaps)
    assert json.loads(out)["confusion_matrix"] == [[30, 0], [0, 15]]
    assert "never seen" not in said


def test_a_table_that_says_nothing_of_its_labels_says_nothing_of_their_mistakes(kfhe):
    Path("few.csv").write_text("size,label\n1,a\n2,b\n3,a\n")
    _, said = kfhe("fit", "few.csv", "-t", "label", "-o", "few.kfhe")
    assert "so their error rate can't be estimated" in said
    assert "capitals" not in said


def test_mistakes_are_told_of_even_if_rare_classes_cost_accuracy(kfhe):
    X, y = make_classification(1500, 10, n_informative=5, weights=[0.93], class_sep=0.7, random_state=2)
    given = flip_labels(y, 0.1, random_state=2)
    pd.DataFrame(X).assign(label=np.where(given, "rare", "usual")).to_csv("rare.csv", index=False)
    _, said = kfhe("fit", "rare.csv", "-t", "label", "-o", "rare.kfhe")
    assert library.load("rare.kfhe").oob_score_ < (given == 0).mean()
    assert re.search(r"Estimated error rate of the labels: ([789]|1[0-3])%,", said)


def test_the_papers_variants_tell_their_training_error(kfhe):
    _, said = kfhe("fit", "customers.csv", "-t", "outcome", "--model", "kfhe-l", "-o", "model.kfhe")
    assert re.search(r"Trained 101 trees in .* Training error: \d.*%; kfhe evaluate", said)


def test_parquet_gzip_and_pipes_give_the_same_predictions(kfhe, model):
    kfhe("predict", model, "new_customers.csv", "-o", "out.csv", "--proba")
    expected = predictions()
    for name in ("customers", "new_customers"):
        pd.read_csv(f"{name}.csv").to_parquet(f"{name}.parquet")
        Path(f"{name}.csv.gz").write_bytes(gzip.compress(Path(f"{name}.csv").read_bytes()))
    for ending in ("parquet", "csv.gz"):
        kfhe("fit", f"customers.{ending}", "-t", "outcome", "-o", "other.kfhe")
        kfhe("predict", "other.kfhe", f"new_customers.{ending}", "-o", f"out.{ending}", "--proba")
        pd.testing.assert_frame_equal(predictions(f"out.{ending}"), expected)
    piped = Path("customers.csv").read_bytes()
    saved, _ = kfhe("fit", "-", "-t", "outcome", "-o", "-", piped=piped)
    assert library.load(io.BytesIO(saved)).fingerprint() == library.load(model).fingerprint()
    written, _ = kfhe("predict", "-", "new_customers.csv", "--proba", piped=saved)
    assert written == Path("out.csv").read_bytes()
    written, _ = kfhe("predict", model, "-", "--proba", piped=Path("new_customers.parquet").read_bytes())
    assert written == Path("out.csv").read_bytes()


def test_the_scores_are_those_of_the_library_to_the_last_bit(kfhe, model):
    kfhe("predict", model, "new_customers.csv", "-o", "out.csv", "--proba")
    loaded = library.load(model)
    scores = loaded.predict_proba(pd.read_csv("new_customers.csv"))
    assert list(predictions()) == ["prediction", "proba_leaves", "proba_stays", "proba_upgrades"]
    np.testing.assert_array_equal(scores_in("out.csv"), scores)


def test_no_score_is_above_1(kfhe):
    """The weights of these six trees add up to a little more, and they agree on many rows."""
    settings = ["--model", "kfhe-e", "--n-estimators", 5, "--random-state", 2]
    kfhe("fit", "customers.csv", "-t", "outcome", "-o", "m.kfhe", *settings)
    loaded = library.load("m.kfhe")
    features = pd.read_csv("customers.csv").drop(columns="outcome")
    assert sum(loaded.component_weights_.tolist()) > 1
    for output in ("out.csv", "out.parquet"):
        kfhe("predict", "m.kfhe", "customers.csv", "--proba", "-o", output)
        scores = scores_in(output)
        assert scores.max() == 1
        np.testing.assert_array_equal(scores, loaded.predict_proba(features))


@pytest.mark.parametrize("labels", [[0, 1, 2], [True, False, True], ["1", "x", "y, z"], [1.0, 2.0, 3.0]])
def test_labels_are_written_as_they_are_in_python(kfhe, labels, rng):
    frame = pd.DataFrame({"a": rng.random(90), "label": np.resize(np.array(labels), 90)})
    trained = library.KFHEClassifier(random_state=0, n_estimators=3).fit(frame[["a"]], frame["label"])
    trained.save("python.kfhe")
    frame.to_csv("mine.csv", index=False)
    kfhe("fit", "mine.csv", "-t", "label", "-o", "ours.kfhe", "--model", "kfhe-e", "--n-estimators", 3)
    assert library.load("ours.kfhe").fingerprint() == trained.fingerprint()
    for model in ("python.kfhe", "ours.kfhe"):
        for output in ("out.csv", "out.parquet"):
            kfhe("predict", model, "mine.csv", "-o", output)
            assert predictions(output)["prediction"].tolist() == trained.predict(frame[["a"]]).tolist()


def test_categories_are_the_same_whether_python_or_the_command_reads_them(kfhe, rng):
    n = 300
    frame = pd.DataFrame(
        {
            "zip": rng.choice(["007", "07", "123"], n),  # numbers, as for pandas
            "code": rng.choice([1, 2, 3], n),  # made categories below
            "gappy code": rng.choice([1, 2, None], n),
            "mixed": rng.choice(["1", "2.0", "x", None], n),
            "flag": rng.choice([True, False], n),
            "gappy flag": rng.choice([True, False, None], n),
            "word": rng.choice(["yes", "no", "NA", ""], n),
        }
    )
    frame["label"] = (frame["code"] == 2) ^ (frame["mixed"] == "x") ^ (frame["word"] == "yes")
    frame.to_csv("mine.csv", index=False)
    read = pd.read_csv("mine.csv")
    chosen = ["--as", "code=category", "--as", "gappy code=category"]
    kfhe("fit", "mine.csv", "-t", "label", "-o", "ours.kfhe", "--model", "kfhe-e", *chosen)
    ours = library.load("ours.kfhe")
    features = read.drop(columns="label")
    mask = ["code", "gappy code", "mixed", "word"]
    trained = library.KFHEClassifier(library.CARTClassifier(categorical_features=mask), random_state=0)
    trained.fit(features, read["label"]).save("python.kfhe")
    assert trained.fingerprint() == ours.fingerprint()
    for model in ("ours.kfhe", "python.kfhe"):
        _, said = kfhe("predict", model, "mine.csv", "-o", "out.csv")
        assert "never seen" not in said
        assert predictions()["prediction"].tolist() == ours.predict(features).tolist()


def test_columns_are_found_by_name_in_any_order_and_others_ignored(kfhe, model):
    new = pd.read_csv("new_customers.csv")
    kfhe("predict", model, "new_customers.csv", "-o", "out.csv")
    expected = Path("out.csv").read_bytes()
    new.assign(outcome="?", id=range(len(new)))[[*reversed(list(new)), "outcome", "id"]].to_csv("mine.csv")
    _, said = kfhe("predict", model, "mine.csv", "-o", "out.csv")
    assert Path("out.csv").read_bytes() == expected
    assert "mine.csv: not used, as the model doesn't know them: Unnamed: 0, outcome, id" in said


def test_a_model_without_names_takes_columns_by_their_places(kfhe, iris):
    X, y = iris
    library.KFHEClassifier(random_state=0, n_estimators=3).fit(X, y).save("iris.kfhe")
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    frame.to_csv("mine.csv", index=False)
    _, said = kfhe("predict", "iris.kfhe", "mine.csv", "-o", "out.csv")
    assert said == "The predictions are in out.csv\n"
    assert predictions()["prediction"].tolist() == library.load("iris.kfhe").predict(X).tolist()
    frame.assign(more=1).to_csv("mine.csv", index=False)
    _, said = kfhe("predict", "iris.kfhe", "mine.csv", code=1)
    assert "has 5 columns; the model was trained without names on 4" in said


def test_columns_are_kept_as_they_are_written(kfhe, model):
    """Of features, too; a blank line, a gap, zeros and quotes change nothing. Batches are many."""
    rows = pd.read_csv("new_customers.csv", dtype=str, keep_default_na=False)
    rows = pd.concat([rows] * 500, ignore_index=True)
    rows.insert(0, "id", [f"{row:06}" for row in range(len(rows))])
    rows["note, free"] = ['a "b", c', "NA", "", "1.50"] * (len(rows) // 4)
    header, *lines = rows.to_csv(index=False).splitlines(keepends=True)
    write(header + "\n" + lines[0] + "\n\n" + "".join(lines[1:]))
    for name in ("out.csv", "out.parquet", "out.csv.gz"):
        kfhe("predict", model, "mine.csv", "--proba", "-o", f"alone.{name}")
        alone = predictions(f"alone.{name}").astype(str)
        _, said = kfhe("predict", model, "mine.csv", "--proba", "--keep-all", "-o", name)
        assert "not used" not in said
        read = (
            pd.read_parquet(name)
            if "parquet" in name
            else pd.read_csv(name, dtype=str, keep_default_na=False)
        )
        pd.testing.assert_frame_equal(read[rows.columns].fillna(""), rows, check_dtype=False)
        assert list(read.columns) == [*rows.columns, *alone.columns]
        assert read["prediction"].tolist() == alone["prediction"].tolist()


def test_some_columns_are_kept_in_the_order_in_which_they_are_named(kfhe, model):
    rows = pd.read_csv("new_customers.csv").assign(**{"a, b": range(100), "id": range(100)})
    rows.to_parquet("mine.parquet")
    rows.to_csv("mine.csv", index=False)
    for table in ("mine.csv", "mine.parquet"):
        kfhe(
            "predict", model, table, "--keep", "id,age", "--keep", "a, b", "--keep", "id", "-o", "out.parquet"
        )
        read = predictions("out.parquet")
        assert list(read.columns) == ["id", "age", "a, b", "prediction"]
        assert read["id"].astype(int).tolist() == list(range(100))
        pd.testing.assert_series_equal(read["age"].astype(float), rows["age"].astype(float))


def test_columns_that_cant_be_kept_are_named(kfhe, model):
    rows = pd.read_csv("new_customers.csv").assign(prediction="old")
    rows.to_csv("mine.csv", index=False)
    _, said = kfhe("predict", model, "mine.csv", "--keep", "age,cty", code=1)
    assert "there is no column 'cty'; did you mean 'city'?" in said
    _, said = kfhe("predict", model, "mine.csv", "--keep-all", code=1)
    assert "column 'prediction' can't be kept" in said
    _, said = kfhe("predict", model, "mine.csv", "--keep-all", "--keep", "age", code=2)
    assert "choose one of --keep and --keep-all" in said


def test_unknown_categories_are_counted_and_said_once(kfhe, model):
    new = pd.read_csv("new_customers.csv")
    new.loc[3:8, "plan"] = "premium"
    pd.concat([new] * 600).to_csv("mine.csv", index=False)  # more than one batch
    _, said = kfhe("predict", model, "mine.csv", "-o", "out.csv")
    assert said.count("never seen") == 2
    assert "column 'plan': values in categories that the model has never seen: 3600" in said
    assert len(predictions()) == 60_000


def test_evaluate_tells_the_metrics_and_the_confusion_matrix(kfhe):
    out, _ = kfhe("evaluate", "customers.csv", "-t", "outcome", "--n-estimators", 5, "--folds", 3)
    assert "customers.csv: 3-fold cross-validation, 500 rows" in out.decode()
    for word in (
        "macro F1",
        "accuracy",
        "AUROC",
        "log loss",
        "Brier",
        "calibration error",
        "leaves",
        "stays",
        "upgrades",
    ):
        assert word in out.decode()
    found = {}
    for name, options in {"folds": ["--folds", 3], "hold-out": ["--holdout", 0.2]}.items():
        out, _ = kfhe("evaluate", "customers.csv", "-t", "outcome", *options, "--json")
        found[name] = json.loads(out)
        matrix = np.array(found[name]["confusion_matrix"])
        assert matrix.sum() == found[name]["rows"]
        assert 0.6 < found[name]["accuracy"] < 0.95
        assert 0.5 < found[name]["f1_macro"] < 0.95
        assert found[name]["log_loss"] > 0
    assert (found["folds"]["rows"], found["hold-out"]["rows"]) == (500, 100)
    assert np.array(found["folds"]["confusion_matrix"]).sum(axis=1).tolist() == [121, 290, 89]


def test_evaluate_tries_a_saved_model(kfhe, model):
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    out, _ = kfhe("evaluate", "customers.csv", "-t", "outcome", "--model", model, "--json")
    frame = pd.read_csv("customers.csv")
    loaded = library.load(model)
    scores, predicted = (f(frame.drop(columns="outcome")) for f in (loaded.predict_proba, loaded.predict))
    found = json.loads(out)
    assert found["accuracy"] == accuracy_score(frame["outcome"], predicted)
    assert found["f1_macro"] == pytest.approx(f1_score(frame["outcome"], predicted, average="macro"))
    assert found["log_loss"] == pytest.approx(log_loss(frame["outcome"], scores))


def test_a_dropped_column_is_not_learnt(kfhe):
    kfhe("fit", "customers.csv", "-t", "outcome", "--drop", "city", "-o", "model.kfhe")
    assert "city" not in library.load("model.kfhe").feature_names_in_.tolist()


def test_a_star_drops_all_columns_of_such_names_and_other_signs_stand_for_themselves(kfhe):
    frame = pd.read_csv("customers.csv").rename(columns={"age": "age [years]", "city": "note_1"})
    frame["note_2"] = frame["outcome"]
    frame = frame[[*frame.columns.drop("outcome"), "outcome"]]
    frame.to_csv("mine.csv", index=False)
    frame.to_parquet("mine.parquet")
    kept = frame.columns.drop(["age [years]", "note_1", "note_2", "outcome"]).tolist()
    for name in ("mine.csv", "mine.parquet"):
        fit = ("fit", name, "-t", "outcome", "--n-estimators", 2, "-o", "model.kfhe")
        kfhe(*fit, "--drop", "note_*", "--drop", "age [years]")
        assert library.load("model.kfhe").feature_names_in_.tolist() == kept
        kfhe(*fit, "--drop", "o*", "--drop", "note_*")  # what is to be learnt is learnt
        _, said = kfhe(*fit, "--drop", "remark_*", code=1)
        assert "there is no column 'remark_*'" in said
        _, said = kfhe(*fit, "--drop", "*", code=1)
        assert "no columns are left to learn from" in said


def test_dates_are_dates_in_a_csv_and_in_parquet(kfhe):
    frame = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=60), "label": ["x", "y"] * 30})
    frame.to_csv("mine.csv", index=False)
    frame.to_parquet("mine.parquet")
    models = []
    for name in ("mine.csv", "mine.parquet"):
        _, said = kfhe("fit", name, "-t", "label", "-o", "model.kfhe")
        assert "2020-01-01 to 2020-02-29" in said
        models.append(library.load("model.kfhe").fingerprint())
    assert models[0] == models[1]


def test_the_example_files_are_what_their_program_writes(tmp_path, monkeypatch):
    import runpy

    made = runpy.run_path(str(DATA / "customers.py"), run_name="made")
    customers, outcomes, right = made["labelled"]()
    assert sum(a != b for a, b in zip(outcomes, right, strict=True)) == 50
    rows = [{**customer, "outcome": outcome} for customer, outcome in zip(customers, outcomes, strict=True)]
    made["write"](tmp_path / "again.csv", rows)
    made["write"](tmp_path / "new_again.csv", made["new"]())
    assert (tmp_path / "again.csv").read_bytes() == (DATA / "customers.csv").read_bytes()
    assert (tmp_path / "new_again.csv").read_bytes() == (DATA / "new_customers.csv").read_bytes()


@pytest.mark.parametrize(
    "labels", [["01", "1"], ["-1", "+1"], ["TRUE", "FALSE"], ["1", "1.0"], ["12345678901234567890", "2"]]
)
def test_labels_come_back_as_they_were_written(kfhe, labels):
    write("a,label\n" + "".join(f"{row % 2},{labels[row % 2]}\n" for row in range(80)))
    kfhe("fit", "mine.csv", "-t", "label", "-o", "ours.kfhe")
    kfhe("predict", "ours.kfhe", "mine.csv", "-o", "out.csv")
    assert Path("out.csv").read_text().split()[1:3] == labels
    out, _ = kfhe("evaluate", "mine.csv", "-t", "label", "--model", "ours.kfhe", "--json")
    assert json.loads(out)["accuracy"] == 1


def test_codes_that_are_made_categories_keep_their_zeros(kfhe):
    codes = ["01234", "1234", "001234", "5"]
    write("zip,label\n" + "".join(f"{codes[row % 4]},{'ab'[row % 4 == 1]}\n" for row in range(200)))
    _, said = kfhe("fit", "mine.csv", "-t", "label", "--as", "zip=category", "-o", "ours.kfhe")
    assert "4: 001234, 01234, 1234, 5" in said
    kfhe("predict", "ours.kfhe", "mine.csv", "-o", "out.csv")
    assert predictions()["prediction"].tolist() == pd.read_csv("mine.csv")["label"].tolist()


def test_rows_without_a_label_are_left_out_on_request(kfhe):
    rows = pd.read_csv("customers.csv")
    rows["outcome"] = rows["outcome"].where(rows.index % 10 > 0)
    rows.to_csv("mine.csv", index=False)
    rows.dropna(subset="outcome").to_csv("labelled.csv", index=False)
    learnt = ["mine.csv", "-t", "outcome"]
    _, said = kfhe("fit", *learnt, "-o", "m.kfhe", code=1)
    assert "--drop-unlabelled" in said
    few = ["--n-estimators", "20"]
    _, said = kfhe("fit", *learnt, "--drop-unlabelled", *few, "-o", "m.kfhe")
    assert "mine.csv: 50 rows without a label are left out" in said
    kfhe("fit", "labelled.csv", "-t", "outcome", *few, "-o", "labelled.kfhe")
    for name in ("m", "labelled"):
        kfhe("predict", f"{name}.kfhe", "new_customers.csv", "--proba", "-o", f"out_{name}.csv")
    assert Path("out_m.csv").read_bytes() == Path("out_labelled.csv").read_bytes()
    tested = ["-t", "outcome", "--model", "m.kfhe", "--json"]
    expected, _ = kfhe("evaluate", "labelled.csv", *tested)
    found, said = kfhe("evaluate", "mine.csv", *tested, "--drop-unlabelled")
    assert "mine.csv: 50 rows without a label are left out" in said
    assert json.loads(found.replace(b"mine", b"labelled")) == json.loads(expected)
    rows.assign(outcome=None).to_csv("mine.csv", index=False)
    _, said = kfhe("evaluate", "mine.csv", *tested, "--drop-unlabelled", code=1)
    assert "mine.csv: no row has a label in 'outcome'" in said
    rows.to_csv("mine.csv", index=False)
    kfhe("audit", *learnt, "--drop-unlabelled", *few, "--all", "-o", "all.csv")
    numbers = pd.read_csv("all.csv").sort_values("row")["row"]
    assert numbers.tolist() == [row + 2 for row in rows.index if row % 10]


def test_half_floats_are_numbers(kfhe):
    halves = pa.array(np.arange(30, dtype=np.float16))
    try:
        halves.cast("float32")
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow knows no half floats")
    parquet.write_table(pa.table({"size": halves, "label": ["a", "b", "b"] * 10}), "half.parquet")
    _, said = kfhe("fit", "half.parquet", "-t", "label", "-o", "half.kfhe", "--n-estimators", 2)
    assert "0 to 29" in said


def test_a_wide_table_is_summed_up(kfhe, rng):
    rows = pd.DataFrame(rng.normal(size=(40, 500)).round(2)).add_prefix("x")
    rows.iloc[3, 300] = np.nan
    rows.insert(500, "label", ["a", "b"] * 20)
    rows.to_csv("mine.csv", index=False)
    _, said = kfhe("fit", "mine.csv", "-t", "label", "--n-estimators", "2", "-o", "m.kfhe")
    assert len(said.splitlines()) < 40
    assert re.search(r"480 more .* 0 of categories, 480 of numbers .* 1 ", said)
    ids = pd.DataFrame({f"id{j}": [f"{j}-{row}" for row in range(40)] for j in range(500)})
    pd.concat([ids, rows], axis=1).to_csv("ids.csv", index=False)
    _, said = kfhe("fit", "ids.csv", "-t", "label", "--n-estimators", "2", "-o", "ids.kfhe")
    assert (
        "columns 'id0', 'id1', 'id2', 'id3', 'id4', 'id5' and 494 more have (nearly) as many values" in said
    )
    assert len(said.splitlines()) < 40
    _, said = kfhe(
        "fit", "ids.csv", "-t", "label", "--n-estimators", "2", "-o", "ids.kfhe", "--model", "kfhe-e"
    )
    assert "There are 480 more notes like these." in said
    assert len(said.splitlines()) < 80
    _, said = kfhe("predict", "m.kfhe", "ids.csv", "-o", "out.csv")
    assert "id0, id1, id2, id3, id4, id5 and 495 more" in said


def test_a_table_as_a_spreadsheet_saves_it_gives_the_same_model(kfhe, model):
    """Semicolons, decimal commas, Windows line ends, Latin-1, another word for gaps."""
    rows = pd.read_csv("customers.csv")
    rows["city"] = rows["city"].str.replace("o", "ö")
    rows.to_csv("plain.csv", index=False)
    for name, table in [("theirs.csv", rows), ("new.csv", rows.drop(columns="outcome"))]:
        table.to_csv(
            name, index=False, sep=";", decimal=",", encoding="latin-1", lineterminator="\r\n", na_rep="keine"
        )
    options = ["--encoding", "latin-1", "--na", "keine"]
    kfhe("fit", "plain.csv", "-t", "outcome", "-o", "plain.kfhe")
    _, said = kfhe("fit", "theirs.csv", "-t", "outcome", *options, "-o", "theirs.kfhe")
    assert "theirs.csv: columns are separated by ';', and decimals have a comma" in said
    kfhe("predict", "plain.kfhe", "plain.csv", "--proba", "-o", "plain.out.csv")
    explicit = ["--sep", ";", "--decimal", ","]
    kfhe("predict", "theirs.kfhe", "new.csv", "--proba", *options, *explicit, "-o", "theirs.out.csv")
    assert Path("plain.out.csv").read_bytes() == Path("theirs.out.csv").read_bytes()
    learnt = ["theirs.csv", "-t", "outcome", *options]
    kfhe("evaluate", *learnt, "--model", "theirs.kfhe")
    kfhe("evaluate", *learnt, "--folds", "2", "--n-estimators", "2")
    kfhe("audit", *learnt, "--n-estimators", "20")
    kfhe("plot", "theirs.kfhe", "-k", "scores", "--data", "theirs.csv", "-t", "outcome", *options)
    for option, value in [("--sep", ";;"), ("--decimal", "x")]:
        assert f"Invalid value for {option}" in kfhe("predict", model, "new.csv", option, value, code=2)[1]


@pytest.mark.parametrize("kept", [[], ["--keep", "id"]], ids=["", "kept"])
def test_large_whole_numbers_of_a_csv_are_categories_of_their_own(kfhe, kept):
    ids = [2**53 + k % 6 for k in range(300)]
    write("id,y\n" + "".join(f"{each},{'odd' if each % 2 else 'even'}\n" for each in ids))
    trees = ["--model", "kfhe-e", "--min-samples-leaf", 1, "--n-estimators", 2]
    kfhe("fit", "mine.csv", "-t", "y", "--as", "id=category", *trees, "-o", "m.kfhe")
    write(f"id\n{2**53 + 1}\n{2**53 + 2}\n{2**53}.0\n0.5\nNA\n{2**53 + 5}\n", "new.csv")
    _, said = kfhe("predict", "m.kfhe", "new.csv", *kept, "-o", "out.csv")
    assert [*predictions()["prediction"].iloc[[0, 1, -1]]] == ["odd", "even", "odd"]
    write("id\n1\nx\n", "new.csv")
    _, said = kfhe("predict", "m.kfhe", "new.csv", *kept, "-o", "out.csv", code=1)
    assert "new.csv: column 'id', row 3: found 'x'; accepted are numbers" in said
