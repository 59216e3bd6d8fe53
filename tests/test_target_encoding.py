"""Columns of many categories as shares of the classes among other rows."""

import io
import json
import pickle
from itertools import pairwise
from math import lgamma, log
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfhe
from kfhe import CARTClassifier, EarlyStopping, KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality
from kfhe.engine.draws import folds
from kfhe.groups import Groups
from kfhe.rows import TrainingRows
from kfhe.target_encoding import (
    FEW,
    FOLDS,
    MOST_SHARES,
    NOISES,
    Counts,
    Target,
    TargetEncoding,
    Way,
    cross_fitted,
)

QUICK = {"n_estimators": 15, "random_state": 0}


def table(n=600, n_zips=60, seed=0):
    """Return rows of a number and of a zip that matters, and their labels."""
    rng = np.random.default_rng(seed)
    zips, x = rng.integers(n_zips, size=n), rng.normal(size=n)
    effects = 2 * rng.normal(size=n_zips)
    labels = np.where(x + effects[zips] + 0.3 * rng.normal(size=n) > 0, "no", "yes")
    return pd.DataFrame({"x": x, "zip": [f"z{zip}" for zip in zips]}), labels


def schema_of(model):
    return (model._forest if isinstance(model, CARTClassifier) else model.estimators_).schema


def target_of(labels, ids=None, weights=None, seed=0):
    labels = np.asarray(labels, dtype=np.int32)
    ids = np.arange(len(labels)) if ids is None else np.asarray(ids)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    return Target(labels, np.unique(labels), weights, ids, np.bincount(ids)[ids], seed)


class Fitted(NamedTuple):
    """An encoding, and what it makes of the training rows."""

    encoding: TargetEncoding
    values: np.ndarray


def fitted(factorized, target):
    """Encode a column, or return what else to do with it."""
    found = cross_fitted(target.count(factorized), target.shares)
    return found if isinstance(found, Way) else Fitted(found.encoding, found.values(factorized, target.folds))


def twin(categories, labels, ids, weights, seed):
    """Encode by plain loops; return None for a column that says nothing, else shares and rows."""
    rows = [i for i, category in enumerate(categories) if category is not None]
    classes = sorted(set(labels))

    def worth(i, among):
        """What a row counts for among some: its group counts for one row."""
        return weights[i] / sum(ids[k] == ids[i] for k in among)

    everyone = range(len(labels))
    total = sum(worth(i, everyone) for i in everyone)
    prior = {c: sum(worth(i, everyone) for i in everyone if labels[i] == c) / total for c in classes}
    members = {z: [i for i in rows if categories[i] == z] for z in {categories[i] for i in rows}}
    counts = {
        z: {c: sum(worth(i, some) for i in some if labels[i] == c) for c in classes}
        for z, some in members.items()
    }

    def evidence(noise):
        found = 0.0
        for by_class in counts.values():
            found += lgamma(noise) - lgamma(sum(by_class.values()) + noise)
            for c, n in by_class.items():
                if n > 0:
                    found += lgamma(n + noise * prior[c]) - lgamma(noise * prior[c]) - n * log(prior[c])
        return found

    best = max(NOISES, key=evidence)
    if evidence(best) < 3:
        return None
    told = classes[1:] if len(classes) == 2 else classes
    fold = folds(np.asarray(ids), seed, FOLDS)
    shares, values = {}, []
    for z, by_class in counts.items():
        n = sum(by_class.values())
        n = n if n > 1 else 0  # one row, or group, is no evidence for others
        shares[z] = [((by_class[c] if n else 0) + best * prior[c]) / (n + best) for c in told]
    for i, z in enumerate(categories):
        if z is None:
            values.append([np.nan] * len(told))
            continue
        others = [k for k in members[z] if fold[k] != fold[i]]
        n = sum(worth(k, members[z]) for k in others)
        values.append(
            [
                (sum(worth(k, members[z]) for k in others if labels[k] == c) + best * prior[c]) / (n + best)
                for c in told
            ]
        )
    return shares, np.array(values)


class TestTheEncoding:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10**6), st.integers(2, 4), st.booleans(), st.booleans())
    def test_it_equals_a_twin_of_plain_loops(self, seed, n_classes, grouped, weighted):
        rng = np.random.default_rng(seed)
        n = 150
        codes = rng.integers(25, size=n)
        labels = np.where(rng.random(n) < 0.6, codes % n_classes, rng.integers(n_classes, size=n))
        labels[:n_classes] = range(n_classes)
        codes[rng.random(n) < 0.1] = -1
        names = [f"c{code:02d}" for code in range(25)]
        ids = rng.integers(60, size=n) if grouped else np.arange(n)
        weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
        found = fitted((codes, names), target_of(labels, ids, weights, seed))
        expected = twin([None if c < 0 else names[c] for c in codes], labels, ids, weights, seed)
        if expected is None:
            assert found is Way.LEFT_OUT
            return
        assert isinstance(found, Fitted)
        shares, values = expected
        np.testing.assert_allclose(found.values, values, atol=1e-5)
        for name, position in found.encoding.categories.items():
            np.testing.assert_allclose(found.encoding.shares[position], shares[name], atol=1e-5)

    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 10**6), st.integers(0, 299))
    def test_what_a_row_gets_does_not_tell_its_own_label(self, seed, row):
        """But for the shares of the table, and for the noise, which are of all rows."""
        rng = np.random.default_rng(seed)
        codes = rng.integers(40, size=300)
        labels = np.where(rng.random(300) < 0.8, codes % 2, rng.integers(2, size=300))
        labels[row] = 0
        other = labels.copy()
        other[row] = 1
        names = [f"c{code}" for code in range(40)]
        targets = [target_of(each, seed=seed) for each in (labels, other)]
        targets[1].__dict__["shares"] = targets[0].shares  # the prior
        found = [fitted((codes, names), target) for target in targets]
        if not all(isinstance(each, Fitted) for each in found):
            return
        mine = folds(np.arange(300), seed, FOLDS) == folds(np.arange(300), seed, FOLDS)[row]
        alike = mine & (codes == codes[row])
        if found[0].values[alike].tolist() != found[1].values[alike].tolist():
            assert noise_in(found[0], targets[0], codes) != noise_in(found[1], targets[1], codes)
        others = ~mine & (codes == codes[row])
        assert (found[0].values[others] < found[1].values[others]).all()  # its label is news for them

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 10**6), st.booleans())
    def test_counts_of_parts_add_up_to_those_of_the_table_to_the_bit(self, seed, grouped):
        rng = np.random.default_rng(seed)
        codes, labels = rng.integers(30, size=200), rng.integers(3, size=200)
        ids = rng.integers(60, size=200) if grouped else np.arange(200)
        names, weights = [f"c{code:02d}" for code in range(30)], rng.random(200)
        whole = target_of(labels, ids, weights, seed)
        bounds = [0, *np.sort(rng.integers(200, size=3)).tolist(), 200]
        parts = []
        for start, stop in pairwise(bounds):
            some = slice(start, stop)
            arrays = (
                whole.labels[some],
                whole.classes,
                whole.weights[some],
                whole.ids[some],
                whole.sizes[some],
            )
            parts.append(Target(*arrays, seed).count((codes[some], names)))
        ours, theirs = Counts.merged(parts).settled(), whole.count((codes, names)).settled()
        assert ours.values == theirs.values
        assert ours.cells.tolist() == theirs.cells.tolist()
        assert ours.units.tolist() == theirs.units.tolist()

    def test_few_categories_are_left_to_the_trees(self):
        rng = np.random.default_rng(0)
        for n_categories in (FEW, FEW + 1):
            codes = np.arange(1000) % n_categories
            labels = np.where(rng.random(1000) < 0.9, codes % 2, 1 - codes % 2)
            names = [str(code) for code in range(n_categories)]
            found = fitted((codes, names), target_of(labels))
            assert found is Way.SETS if n_categories == FEW else isinstance(found, Fitted)

    def test_a_column_of_junk_is_left_out(self):
        rng = np.random.default_rng(0)
        codes, labels = rng.integers(100, size=500), rng.integers(2, size=500)
        assert fitted((codes, [str(code) for code in range(100)]), target_of(labels)) is Way.LEFT_OUT

    def test_a_group_counts_for_one_row_in_each_category(self):
        """Its rows of another category are evidence of their own: visits of a patient in many places."""
        rng = np.random.default_rng(0)
        zips, patients = rng.integers(100, size=1000), rng.integers(20, size=1000)
        labels = np.where(rng.random(1000) < 0.9, zips % 2, 1 - zips % 2)
        names = [str(zip) for zip in range(100)]
        assert isinstance(fitted((zips, names), target_of(labels, patients)), Fitted)
        repeated = np.repeat(np.arange(50), 20)  # of 50 patients with labels by chance
        by_chance = rng.integers(2, size=50)[repeated]
        assert isinstance(fitted((repeated, names), target_of(by_chance)), Fitted)
        assert fitted((repeated, names), target_of(by_chance, repeated)) is Way.LEFT_OUT

    def test_what_one_group_says_of_a_category_is_not_kept(self):
        labels = np.arange(600) % 2
        codes = (np.arange(600) // 6) % 30 * 2 + labels
        codes[:6], labels[:6] = 60, 1  # six rows of one group alone
        ids = np.arange(600)
        ids[:6] = 0
        found = fitted((codes, [str(code) for code in range(61)]), target_of(labels, ids))
        unknown = found.encoding.shares[-1]
        assert found.encoding.shares[found.encoding.categories["60"]].tolist() == unknown.tolist()
        apart = fitted((codes, [str(code) for code in range(61)]), target_of(labels))
        assert apart.encoding.shares[apart.encoding.categories["60"]] > apart.encoding.shares[-1] + 0.2

    def test_of_many_classes_the_most_frequent_become_features(self):
        rng = np.random.default_rng(0)
        codes = rng.integers(60, size=3000 // 3)
        labels = np.where(rng.random(1000) < 0.8, codes % 20, rng.integers(20, size=1000))
        labels[:40] = 19  # so that this is among them
        target = target_of(labels)
        assert len(target.shares.told) == MOST_SHARES
        assert 19 in target.shares.told
        assert np.bincount(labels)[target.shares.told].min() >= np.sort(np.bincount(labels))[-MOST_SHARES]
        assert fitted((codes, [str(code) for code in range(60)]), target).values.shape == (1000, MOST_SHARES)


def noise_in(found, target, codes):
    """Return the noise that an encoding was made with, by its first category of more than one row."""
    position = int(np.flatnonzero(np.bincount(codes) > 1)[0])
    some = codes == position
    n, ones = some.sum(), (target.labels[some] == 1).sum()
    prior = target.shares.prior[1]
    place = found.encoding.categories[f"c{position}"]
    return min(
        NOISES, key=lambda noise: abs((ones + noise * prior) / (n + noise) - found.encoding.shares[place, 0])
    )


FITTERS = [
    RobustKFHEClassifier(**QUICK),
    KFHEClassifier(CARTClassifier(honest_categories=True), **QUICK),
    CARTClassifier(random_state=0, honest_categories=True),
]


class TestClassifiers:
    @pytest.mark.parametrize("model", FITTERS, ids=lambda model: type(model).__name__)
    def test_a_column_that_matters_is_worth_more_than_nothing_and_junk_costs_nothing(self, model):
        X, y = table()
        new, true = X[400:], y[400:]
        score = model.fit(X[:400], y[:400]).score(new, true)
        assert schema_of(model).left_out == frozenset()
        assert [*schema_of(model).encodings] == [1]
        junk = X.assign(
            id=np.arange(600).astype(str), code=np.random.default_rng(1).integers(100, size=600).astype(str)
        )
        assert model.fit(junk[:400], y[:400]).score(junk[400:], true) > score - 0.04
        assert schema_of(model).left_out == {2, 3}
        assert model.feature_importances_[2:].tolist() == [0, 0]
        assert score > model.fit(X[["x"]][:400], y[:400]).score(X[["x"]][400:], true) + 0.1

    @pytest.mark.parametrize("classifier", [KFHEClassifier, CARTClassifier])
    def test_the_papers_classifiers_split_sets_unless_asked(self, classifier):
        X, y = table()
        schema = schema_of(classifier(random_state=0).fit(X, y))
        assert not schema.encodings
        assert schema.categories[1] is not None

    @pytest.mark.parametrize("model", FITTERS, ids=lambda model: type(model).__name__)
    def test_of_a_table_of_names_alone_the_shares_of_the_classes_are_learnt(self, model):
        ids = pd.DataFrame({"id": np.arange(300).astype(str), "key": np.arange(300)[::-1].astype(str)})
        y = np.repeat(["a", "b", "c"], [180, 90, 30])
        model.fit(ids, y)
        found = model.predict_proba(ids[:5])
        assert (found == found[0]).all()
        assert found[0, 0] > found[0, 1] > found[0, 2] > 0
        if isinstance(model, CARTClassifier):
            np.testing.assert_allclose(found[0], [0.6, 0.3, 0.1])
        assert model.predict(ids[:5]).tolist() == ["a"] * 5
        assert model.feature_importances_.tolist() == [0, 0]

    def test_unseen_categories_get_the_shares_of_the_table_and_gaps_stay_gaps(self):
        X, y = table()
        model = RobustKFHEClassifier(**QUICK).fit(X, y)
        schema = model.estimators_.schema
        new = X[:3].assign(zip=["never seen", None, X["zip"][2]])
        matrix = schema.matrix(new)
        assert matrix[0, 1] == schema.encodings[1].shares[-1, 0]
        assert np.isnan(matrix[1, 1])
        assert matrix[2, 1] == schema.encodings[1].shares[schema.encodings[1].categories[X["zip"][2]], 0]

    def test_equal_tables_give_equal_models_whatever_holds_them(self):
        X, y = table()
        expected = RobustKFHEClassifier(**QUICK).fit(X, y).fingerprint()
        for same in (pl.from_pandas(X), pa.Table.from_pandas(X), X.astype({"zip": "category"})):
            assert RobustKFHEClassifier(**QUICK).fit(same, y).fingerprint() == expected
        objects = RobustKFHEClassifier(**QUICK).fit(X.to_numpy(dtype=object), y)
        assert (
            objects.predict_proba(X.to_numpy(dtype=object))
            == RobustKFHEClassifier(**QUICK).fit(X, y).predict_proba(X)
        ).all()
        for n_jobs in (1, 3):
            assert RobustKFHEClassifier(**QUICK, n_jobs=n_jobs).fit(X, y).fingerprint() == expected

    def test_numbers_can_be_categories(self):
        X, y = table()
        numbers = X.assign(zip=X["zip"].str[1:].astype(float))
        by_place = RobustKFHEClassifier(**QUICK, categorical_features=[1]).fit(numbers, y)
        assert [*by_place.estimators_.schema.encodings] == [1]
        as_ints = numbers.astype({"zip": int})
        assert (by_place.predict_proba(as_ints) == by_place.predict_proba(numbers)).all()
        assert by_place.score(numbers, y) > 0.85

    def test_warm_starts_weights_and_early_stopping_go_along(self):
        X, y = table()
        whole = RobustKFHEClassifier(**QUICK).fit(X, y).fingerprint()
        grown = RobustKFHEClassifier(n_estimators=5, random_state=0, warm_start=True).fit(X, y)
        assert grown.set_params(n_estimators=15).fit(X, y).fingerprint() == whole
        zero = np.where(np.arange(600) < 100, 0.0, 1.0)
        weighted = RobustKFHEClassifier(**QUICK).fit(X, y, sample_weight=zero)
        assert weighted.fingerprint() == RobustKFHEClassifier(**QUICK).fit(X[100:], y[100:]).fingerprint()
        assert not set(weighted.estimators_.schema.encodings[1].categories) - {*X["zip"][100:]}
        stopping = EarlyStopping(3, validation_fraction=0.2)
        assert RobustKFHEClassifier(**QUICK, early_stopping=stopping).fit(X, y).score(X, y) > 0.8

    @pytest.mark.parametrize("max_bins", [2, 3, 10, 255])
    def test_shares_are_binned_as_numbers_are(self, max_bins):
        X, y = table()
        model = RobustKFHEClassifier(**QUICK, max_bins=max_bins).fit(X, y)
        assert [*model.estimators_.schema.encodings] == [1]
        assert model.feature_importances_[1] > 0.3

    def test_in_an_audit_of_names_alone_all_rows_look_alike(self):
        audit = label_quality(
            pd.DataFrame({"id": np.arange(200).astype(str)}),
            np.arange(200) % 4 > 0,
            random_state=0,
            n_estimators=50,
        )
        np.testing.assert_allclose(audit.votes[:, 1], 0.75, atol=0.05)
        assert audit.remarks == ("column 'id' has (nearly) as many values as rows: it is left out",)


TABLES = {
    "zip": lambda X: X,
    "gaps": lambda X: X.assign(zip=X["zip"].where(np.arange(len(X)) % 5 > 0)),
    "id beside": lambda X: X.assign(id=np.arange(len(X)).astype(str)),
    "id alone": lambda X: pd.DataFrame({"id": np.arange(len(X)).astype(str)}),
    "numbers": lambda X: X.assign(zip=X["zip"].str[1:].astype(int).astype("category")),
    "two zips": lambda X: X.assign(zip2=X["zip"]),
}


class TestFiles:
    @pytest.mark.parametrize("kind", TABLES)
    @pytest.mark.parametrize("n_classes", [2, 3, 20])
    def test_models_come_back_from_files_and_exports(self, kind, n_classes):
        onnxruntime = pytest.importorskip("onnxruntime")
        from kfhe.export import to_json, to_onnx, to_shap

        X, y = table()
        X = TABLES[kind](X)
        if n_classes > 2:
            y = np.where(y == "no", np.arange(600) % (n_classes - 1), n_classes - 1)
        model = RobustKFHEClassifier(**QUICK).fit(X, y)
        new = X.copy()
        last = X.columns[-1]
        new[last] = new[last].where(np.arange(600) >= 50)
        if kind != "numbers":
            new[last] = new[last].mask((np.arange(600) >= 50) & (np.arange(600) < 99), "never seen")
        expected = model.predict_proba(new)
        assert (pickle.loads(pickle.dumps(model)).predict_proba(new) == expected).all()
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        loaded = kfhe.load(file)
        assert loaded.fingerprint() == model.fingerprint()
        assert (loaded.predict_proba(new) == expected).all()
        session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
        feed = {}
        for column in session.get_inputs():
            values = new[column.name].astype(object)
            gap = "" if "string" in column.type else np.nan
            kind_of = object if "string" in column.type else float
            feed[column.name] = values.where(values.notna(), gap).to_numpy(kind_of).reshape(-1, 1)
        assert [column.name for column in session.get_inputs()] == [*X.columns]
        np.testing.assert_allclose(session.run(None, feed)[1], expected, atol=1e-6)
        schema = model.estimators_.schema
        features = json.loads(to_json(model))["features"]
        assert [feature["name"] for feature in features] == schema.names
        for k, feature in enumerate(features):
            j = schema.feature_columns[k]
            if j in schema.encodings:
                assert feature["column"] == X.columns[j]
                read = dict(map(tuple, feature["shares"]))
                values = [
                    np.nan if value is None else read.get(value, feature["other"]) for value in plain(new, j)
                ]
                np.testing.assert_array_equal(schema.matrix(new)[:, k], values)
        explained = to_shap(model)(new[:20])
        scores = model.estimators_.scores(new[:20], 1)
        np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, scores, atol=1e-9)


def plain(X, j):
    """Return a column's values as JSON has them."""
    return [None if pd.isna(value) else value for value in X.iloc[:, j].astype(object)]


def test_copies_count_once():
    """So a table of copies is encoded by the same shares as the rows that it was made of."""
    X, y = table()
    labels = np.unique(y, return_inverse=True)[1].astype(np.int32)
    copied = np.concatenate([np.arange(600), np.arange(0, 600, 2)])
    rows = TrainingRows(
        X.iloc[copied], labels[copied], np.unique(y), np.full(900, 1 / 900), 0, 1, copies=Groups.of(copied)
    )
    once = TrainingRows(X, labels, np.unique(y), np.full(600, 1 / 600), 0, 1)
    codes, names = pd.factorize(X["zip"])
    found, expected = fitted((codes[copied], [*names]), rows.target), fitted((codes, [*names]), once.target)
    np.testing.assert_allclose(found.encoding.shares, expected.encoding.shares, atol=1e-5)
    np.testing.assert_allclose(found.values[:600], expected.values, atol=1e-5)
