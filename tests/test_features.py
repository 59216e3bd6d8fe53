"""Features: a date is a number of days and the parts that vary, alike in whatever it comes."""

import io
import json
from dataclasses import replace
from datetime import datetime, time, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kfhe
from kfhe import CARTClassifier, KFHEClassifier, export
from kfhe.tables.dates import PARTS, days, from_objects, part, span_in_days, varying_parts

N = 300
RNG = np.random.default_rng(0)
HOURS = RNG.integers(-200_000, 400_000, N)  # from 1947 to 2015
WHEN = np.datetime64("1970-01-01T00", "h") + HOURS
FRAME = pd.DataFrame(
    {"size": RNG.normal(size=N), "when": WHEN.astype("M8[us]"), "word": RNG.choice(["a", "b"], N)}
)
FRAME.loc[::10, "when"] = pd.NaT
SUMMER = FRAME["when"].dt.month.isin([6, 7, 8])
Y = np.where(SUMMER ^ (FRAME["size"] > 1), "out", "in")


def fitted(X, y=Y):
    return KFHEClassifier(n_estimators=5, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fitted(FRAME)


def test_days_and_parts_are_those_of_pandas():
    moments = FRAME["when"].dropna()
    dates = moments.to_numpy("M8[us]")
    expected = {"month": moments.dt.month, "weekday": moments.dt.day_of_week, "hour": moments.dt.hour}
    for name in PARTS:
        np.testing.assert_array_equal(part(dates, name), expected[name])
    np.testing.assert_array_equal(days(dates) * 24, (dates - np.datetime64(0, "us")) / np.timedelta64(1, "h"))


SAME = {
    "nanoseconds": FRAME.assign(when=FRAME["when"].astype("M8[ns]") + pd.Timedelta(1, "ns")),
    "seconds": FRAME.astype({"when": "datetime64[s]"}),
    "another time zone": FRAME.assign(when=FRAME["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
    "objects": FRAME.assign(when=FRAME["when"].astype(object)),
    "pyarrow in pandas": FRAME.assign(when=FRAME["when"].astype("timestamp[us][pyarrow]")),
    "pyarrow": pa.Table.from_pandas(FRAME),
    "polars": pl.from_pandas(FRAME),
    "polars in a time zone": pl.from_pandas(FRAME).with_columns(
        pl.col("when").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    ),
    "array of objects": FRAME.to_numpy(dtype=object),
}


@pytest.mark.parametrize("X", SAME.values(), ids=SAME)
def test_dates_give_the_same_model_whatever_holds_them(model, X):
    assert fitted(X).fingerprint() == model.fingerprint()


def test_days_without_a_time_read_alike():
    midnight = FRAME.assign(when=FRAME["when"].dt.floor("D"))
    expected = fitted(midnight)
    assert expected.estimators_.schema.names == ["size", "when", "when.month", "when.weekday", "word"]
    dates = pl.from_pandas(midnight).with_columns(pl.col("when").cast(pl.Date))
    as_objects = midnight.assign(when=[None if pd.isna(day) else day.date() for day in midnight["when"]])
    for X in (dates, dates.to_arrow(), as_objects):
        assert fitted(X).fingerprint() == expected.fingerprint()


def test_an_array_of_dates_is_read():
    X = WHEN.astype("M8[s]").reshape(-1, 1)
    assert (
        CARTClassifier()
        .fit(X, X[:, 0] > np.datetime64("1990-01-01"))
        .score(X, X[:, 0] > np.datetime64("1990-01-01"))
        == 1
    )


def test_dates_among_other_things_are_not_lost():
    mixed = np.array([[WHEN[0].astype(object)], ["1990-01-01"]] * 50, dtype=object)
    assert CARTClassifier().fit(mixed, [0, 1] * 50).score(mixed, [0, 1] * 50) == 1


def test_a_moment_may_leave_the_years_of_python_in_utc():
    ahead = timezone(timedelta(hours=5))
    first, last = datetime.min.replace(tzinfo=ahead), datetime.max.replace(tzinfo=timezone.min)
    found = from_objects([first, last])
    assert found.view(np.int64).tolist() == [-62135614800000000, 253402387139999999]


@pytest.mark.parametrize(
    "X",
    [
        np.array([[2**62], [0]]).astype("M8[s]"),
        np.array([[300_000], [0]]).astype("M8[Y]"),
        pd.DataFrame({"0": np.array([2**60, 0]).astype("M8[s]")}),
        pl.DataFrame({"0": pl.Series([2**62, 0]).cast(pl.Datetime("ms"))}),
        pl.DataFrame({"0": pl.Series([2**31 - 1, 0], dtype=pl.Int32).cast(pl.Date)}),
        pa.table({"0": pa.array([2**62, 0]).cast(pa.timestamp("s"))}),
        pa.table({"0": pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32())}),
    ],
)
def test_a_date_too_far_away_is_told_and_not_another_one(X):
    with pytest.raises(ValueError, match=r"column '0' has a date that is 292,000 years away"):
        CARTClassifier().fit(X, [0, 1])


def test_durations_and_times_of_day_are_days():
    spans = pd.DataFrame({"span": pd.to_timedelta(HOURS, unit="h")})
    expected = fitted(pd.DataFrame({"span": HOURS / 24}))
    table = pa.Table.from_pandas(spans)
    objects = pd.DataFrame({"span": pd.Series([timedelta(hours=int(hour)) for hour in HOURS], dtype=object)})
    for X in (spans, pl.from_pandas(spans), table, spans.to_numpy(), objects, objects.to_numpy()):
        assert fitted(X).fingerprint() == expected.fingerprint()
    assert fitted(table.to_pandas(types_mapper=pd.ArrowDtype)).fingerprint() == expected.fingerprint()
    times = pl.DataFrame({"span": HOURS % 24}).select(pl.time(pl.col("span")).alias("span")).to_arrow()
    of_day = fitted(pd.DataFrame({"span": HOURS % 24 / 24}))
    objects = times.to_pandas()  # Python's times
    for X in (
        pl.from_arrow(times),
        times,
        times.to_pandas(types_mapper=pd.ArrowDtype),
        objects,
        objects.to_numpy(),
    ):
        assert fitted(X).fingerprint() == of_day.fingerprint()


def test_a_time_of_day_may_be_missing_and_have_parts_of_a_second():
    moment = time(6, 30, 15, 500_000)
    assert span_in_days(moment) * 86_400 == 23_415.5
    X = pd.DataFrame({"at": [moment, None, time(20)] * 30})
    assert fitted(X, [0, 1, 0] * 30).score(X, [0, 1, 0] * 30) == 1


def test_each_of_several_dates_counts():
    X = pd.DataFrame({"ordered": WHEN, "paid": WHEN[::-1]})
    model = CARTClassifier().fit(X, X["paid"] > X["paid"].median())
    np.testing.assert_array_equal(model.feature_importances_, [0, 1])


def test_only_parts_that_vary_are_features():
    days_of_march = np.datetime64("2024-03-01", "D") + np.arange(30)
    tree = CARTClassifier().fit(pd.DataFrame({"when": days_of_march}), np.arange(30) % 2)
    assert tree._forest.schema.names == ["when", "when.weekday"]


def test_two_hours_in_a_row_differ_enough_to_be_a_feature():
    moments = np.datetime64("2024-03-01T10:30") + np.arange(30) * np.timedelta64(2, "m")
    assert varying_parts(moments.astype("M8[us]")) == ("hour",)


def test_the_table_keeps_its_columns_and_importances_are_theirs(model):
    assert model.feature_names_in_.tolist() == ["size", "when", "word"]
    assert model.n_features_in_ == 3
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_[1] > 0.3  # its month, in truth
    assert sum(tree.feature_importances_.shape == (3,) for tree in model.estimators_) == len(
        model.estimators_
    )
    assert "when.month" in model.estimators_[0].export_text()


def test_text_of_the_same_form_is_read_where_dates_were_trained(model):
    texts = FRAME.assign(when=FRAME["when"].dt.strftime("%Y-%m-%dT%H:%M"))
    for X in (texts, pl.from_pandas(texts), pa.Table.from_pandas(texts)):
        np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(FRAME))


def test_a_column_of_gaps_is_read_where_dates_were_trained(model):
    nothing = model.predict_proba(FRAME.assign(when=pd.NaT))
    for gap in (None, np.nan):
        np.testing.assert_array_equal(model.predict_proba(FRAME.assign(when=gap)), nothing)


def test_what_is_no_date_is_told(model):
    with pytest.raises(
        ValueError, match=r"column 'when', row 7: found 'soon'; training had dates such as 2024-12-31"
    ):
        model.predict(FRAME.assign(when=["2024-01-01"] * 7 + ["soon"] * (N - 7)))
    with pytest.raises(ValueError, match="column 'when' has numbers, but had dates in training"):
        model.predict(FRAME.assign(when=7))


def test_a_file_keeps_the_rule(model):
    file = io.BytesIO()
    model.save(file)
    again = kfhe.load(io.BytesIO(file.getvalue()))
    assert again.fingerprint() == model.fingerprint()
    assert again.estimators_.schema == model.estimators_.schema
    assert again.feature_names_in_.tolist() == ["size", "when", "word"]
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))


def test_another_rule_is_another_fingerprint():
    model, other = fitted(FRAME), fitted(FRAME)
    schema = model.estimators_.schema.with_readings({"when": "day-first"})
    other.estimators_ = replace(model.estimators_, schema=schema)
    assert other.fingerprint() != model.fingerprint()
    texts = FRAME.assign(when=FRAME["when"].dt.strftime("%d/%m/%Y %H:%M"))
    np.testing.assert_array_equal(other.predict_proba(texts), other.predict_proba(FRAME))


def test_exports_name_the_parts(model):
    features = [feature["name"] for feature in json.loads(export.to_json(model))["features"]]
    assert features == ["size", "when", "when.month", "when.weekday", "when.hour", "word"]


def test_shap_explains_the_parts(model):
    explanation = export.to_shap(model)(FRAME)
    assert explanation.feature_names[1:3] == ["when", "when.month"]
    assert explanation.values.shape[1] == explanation.data.shape[1] == 6
