"""Displays show the data they are of, where they are told to, and can be read."""

import sys
from importlib import import_module
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from kfhe import CARTClassifier, KFHEClassifier, stats
from kfhe.display.palette import PALETTE
from kfhe.plotting import (
    CalibrationDisplay,
    ConfusionMatrixDisplay,
    DecisionRegionsDisplay,
    FeatureImportanceDisplay,
    NoiseDisplay,
    RankDisplay,
    RocCurveDisplay,
    SamplingWeightsDisplay,
    StagedScoreDisplay,
    TraceDisplay,
)
from kfhe.plotting.base import MARKERS, class_colours, entitle, rendered, shortened

LONG = "a name that is far too long for any axis or legend, number"


@pytest.fixture(autouse=True)
def own_figures():
    """No windows, and nothing is left open."""
    pyplot.close("all")
    backend = mpl.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(backend)


@pytest.fixture(scope="module")
def model(iris):
    return KFHEClassifier(n_estimators=30, random_state=0).fit(*iris)


@pytest.fixture(scope="module")
def plane(iris):
    """A model of two features and three classes with names, and its rows."""
    X, y = iris
    X, y = pd.DataFrame(X[:, 2:], columns=["petal length", "petal width"]), np.array(["a", "b", "c"])[y]
    return KFHEClassifier(n_estimators=10, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def displays(model, iris, plane):
    """One of each kind, not drawn."""
    rng = np.random.default_rng(0)
    plane_model, X, y = plane
    names = [f"{LONG} {i}" if i % 3 else f"A{i}" for i in range(20)]
    ranks = dict(zip(names, 1 + np.sort(rng.random(20)) * 19, strict=True))
    many = [f"{LONG} {i}" for i in range(20)]
    shown = {
        "trace": TraceDisplay(model.trace_),
        "staged": StagedScoreDisplay(rng.random(31), name="test"),
        "weights": SamplingWeightsDisplay(model.trace_),
        "importance": FeatureImportanceDisplay(rng.random(60), [f"{LONG} {i}" for i in range(60)]),
        "ranks": RankDisplay(ranks, [names[:5], names[3:9], names[8:20]]),
        "thirty ranks": RankDisplay({f"{LONG} {i}": i + 1.2 for i in range(30)}),
        "uneven noise": NoiseDisplay(
            [0, 0.01, 0.02, 0.03, 0.125, 0.5],
            {f"{LONG} {i}": rng.random(6) for i in range(30)},
            value_name="macro F1",
        ),
        "two ranks": RankDisplay({"a": 1.2, "b": 1.8}),
        "noise": NoiseDisplay([0, 0.05, 0.1], {name: rng.random(3) for name in names}, value_name="macro F1"),
        "regions": DecisionRegionsDisplay(
            np.linspace(0, 1, 5),
            np.linspace(0, 1, 5),
            rng.dirichlet(np.ones(20), (5, 5)),
            classes=np.array(many),
            feature_names=[f"{LONG} 1", f"{LONG} 2"],
            points=rng.random((40, 2)),
            labels=np.repeat(many, 2),
            predicted=np.repeat(many[::-1], 2),
        ),
        "confusion": ConfusionMatrixDisplay(rng.integers(2000, size=(3, 3)), display_labels=["a", "b", "c"]),
        "long confusion": ConfusionMatrixDisplay(rng.integers(20, size=(5, 5)), display_labels=many[:5]),
        "wide confusion": ConfusionMatrixDisplay(rng.integers(10**6, size=(20, 20)), display_labels=many),
        "many classes": ConfusionMatrixDisplay(np.eye(30), display_labels=[f"{LONG} {i}" for i in range(30)]),
        "hundreds": ConfusionMatrixDisplay(np.eye(300), display_labels=[f"{LONG} {i}" for i in range(300)]),
        "calibration": CalibrationDisplay(rng.random(9), np.linspace(0.1, 1, 9), np.arange(1, 10), name=LONG),
        "roc": RocCurveDisplay(
            fpr=[np.array([0, 1])] * 20,
            tpr=[np.array([0, 1])] * 20,
            roc_auc=rng.random(20).tolist(),
            name=many,
        ),
    }
    # Not drawn by pyplot, so that making them opens no figure
    regions = DecisionRegionsDisplay.from_estimator(plane_model, X, y, ax=mpl.figure.Figure().add_subplot())
    return shown | {"three regions": regions}


KINDS = (
    "trace",
    "staged",
    "weights",
    "importance",
    "ranks",
    "two ranks",
    "thirty ranks",
    "uneven noise",
    "noise",
    "regions",
    "three regions",
    "confusion",
    "long confusion",
    "wide confusion",
    "many classes",
    "hundreds",
    "calibration",
    "roc",
)


def texts(figure):
    """Return the boxes of all texts that are drawn, by text."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    found = []
    for ax in figure.axes:
        found += [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
        found += ax.get_legend().get_texts() if ax.get_legend() else []
        for labels, positions, view in (
            (ax.get_xticklabels(), ax.get_xticks(), ax.get_xlim()),
            (ax.get_yticklabels(), ax.get_yticks(), ax.get_ylim()),
        ):
            pairs = zip(labels, positions, strict=True)
            found += [label for label, position in pairs if min(view) <= position <= max(view)]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in found if text.get_text().strip()]


def overlapping(figure):
    pairs = combinations(texts(figure), 2)
    return [(first, second) for (first, a), (second, b) in pairs if a.padded(-1).overlaps(b.padded(-1))]


@pytest.mark.parametrize("kind", KINDS)
class TestEveryDisplay:
    def test_plot_makes_a_figure_and_returns_the_display(self, displays, kind):
        display = displays[kind]
        assert display.plot() is display
        assert display.figure_ is display.ax_.figure
        assert pyplot.get_fignums() == [display.figure_.number]

    def test_given_axes_are_drawn_on_and_no_figure_is_made(self, displays, kind):
        figure, (left, right) = pyplot.subplots(1, 2)
        display = displays[kind].plot(ax=right)
        assert display.ax_ is right
        assert display.figure_ is figure
        assert right.has_data()
        assert not left.has_data()
        assert pyplot.get_fignums() == [figure.number]

    def test_to_figure_needs_no_pyplot(self, displays, kind):
        figure = displays[kind].to_figure()
        assert displays[kind].figure_ is figure
        assert pyplot.get_fignums() == []

    def test_texts_do_not_overlap_and_are_within_the_figure(self, displays, kind):
        figure = displays[kind].plot().figure_
        assert overlapping(figure) == []
        for text, box in texts(figure):
            assert min(box.x0, box.y0) >= -1, text
            assert box.x1 <= figure.bbox.x1 + 1, text
            assert box.y1 <= figure.bbox.y1 + 1, text

    def test_no_setting_of_matplotlib_is_changed(self, displays, kind):
        before = dict(mpl.rcParams)
        displays[kind].plot()
        assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", ["noise", "uneven noise", "regions", "roc"])
def test_a_legend_leaves_room_for_the_picture(displays, kind):
    figure = displays[kind].plot().figure_
    figure.canvas.draw()
    assert displays[kind].ax_.get_window_extent().width / figure.dpi > 3


def test_a_title_of_any_length_is_within_the_figure(displays):
    figure = displays["confusion"].plot().figure_
    entitle(figure, "a title with $ and many words " * 9)
    figure.canvas.draw()
    box = figure._suptitle.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.get_suptitle().count("\n") in (1, 2)


def test_a_number_stays_behind_a_name_that_is_written_from_right_to_left():
    assert shortened("עץ") == "\u200eעץ\u200e"
    assert shortened("name") == "name"


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_display_gives_the_same_file(displays, suffix, start):
    first, second = (rendered(displays["trace"].to_figure(), suffix) for _ in range(2))
    assert first == second
    assert first.startswith(start)


@pytest.mark.parametrize("kind", ["ranks", "three regions"])
def test_on_a_dark_background_ink_is_light(displays, kind):
    with pyplot.style.context("dark_background"):
        display = displays[kind].plot()
    colours = [mpl.colors.to_rgb(line.get_color()) for line in display.ax_.lines]
    assert (1, 1, 1) in colours
    assert (0, 0, 0) not in colours


class TestTrace:
    def test_lines_are_the_columns_of_the_trace(self, model):
        display = TraceDisplay.from_estimator(model)
        columns = {
            "measurement error R": "measurement_error",
            "variance P": "posterior_variance",
            "gain K": "gain",
            "training error": "training_error",
        }
        assert [line.get_label() for line in display.lines_] == list(columns)
        for line, column in zip(display.lines_, columns.values(), strict=True):
            np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 31))
            np.testing.assert_array_equal(line.get_ydata(), model.trace_[column])
        assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == list(columns)
        assert display.ax_.get_ylim() == (0, 1)

    def test_a_mapping_of_columns_does_as_well(self):
        columns = ("measurement_error", "posterior_variance", "gain", "training_error")
        display = TraceDisplay({column: [0.5, 0.25] for column in columns}).plot()
        assert [list(line.get_ydata()) for line in display.lines_] == [[0.5, 0.25]] * 4

    def test_resets_are_marked_on_the_axis(self, model):
        trace = {column: model.trace_[column] for column in model.trace_.columns}
        trace["resets"] = np.isin(np.arange(1, 31), [4, 17]).astype(int)
        for display in (TraceDisplay(trace).plot(), SamplingWeightsDisplay(trace).plot()):
            (marks,) = [line for line in display.ax_.lines if line.get_label() == "weights reset"]
            assert list(marks.get_xdata()) == [4, 17]

    @pytest.mark.parametrize("kind", [TraceDisplay, SamplingWeightsDisplay])
    def test_one_class_has_no_iterations_and_that_is_said(self, kind):
        display = kind.from_estimator(KFHEClassifier().fit([[1], [2]], [0, 0]))
        assert [text.get_text() for text in display.ax_.texts] == ["no iterations"]

    @pytest.mark.parametrize("kind", [TraceDisplay, SamplingWeightsDisplay])
    def test_a_single_iteration_can_be_seen(self, iris, kind):
        display = kind.from_estimator(KFHEClassifier(n_estimators=1, random_state=0).fit(*iris))
        assert display.ax_.lines[0].get_marker() == "o"
        low, high = display.ax_.get_xlim()
        assert low < 1 < high


class TestStagedScores:
    def test_scores_are_those_of_the_stages(self, model, iris):
        X, y = iris
        display = StagedScoreDisplay.from_estimator(model, X, y, name="train", scoring="f1_macro")
        expected = [f1_score(y, stage, average="macro") for stage in model.staged_predict(X)]
        np.testing.assert_array_equal(display.line_.get_ydata(), expected)
        np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(31))
        assert display.ax_.get_ylabel() == "f1 macro"

    def test_scores_of_probabilities_and_scorers_of_ones_own(self, model, iris):
        X, y = iris
        loss = StagedScoreDisplay.from_estimator(model, X, y, scoring="neg_log_loss").scores
        right = np.arange(len(y)), y
        expected = [np.log(scores[right].clip(1e-15)).mean() for scores in model.staged_predict_proba(X)]
        np.testing.assert_allclose(loss, expected, rtol=1e-6)

        def hits(estimator, X, y):
            return (estimator.predict(X) == y).sum()

        own = StagedScoreDisplay.from_estimator(model, X, y, scoring=hits)
        assert own.scores[-1] == (model.predict(X) == y).sum()
        assert own.ax_.get_ylabel() == "hits"

    def test_a_second_line_on_the_same_axes_has_another_colour(self, model, iris):
        X, y = iris
        train = StagedScoreDisplay.from_estimator(model, X[::2], y[::2], name="train")
        test = StagedScoreDisplay.from_estimator(model, X[1::2], y[1::2], name="test", ax=train.ax_)
        assert test.ax_ is train.ax_
        assert test.line_.get_color() != train.line_.get_color()
        assert [text.get_text() for text in test.ax_.get_legend().get_texts()] == ["train", "test"]

    def test_validation_scores_and_where_training_was_cut(self, iris):
        X, y = iris
        model = KFHEClassifier(early_stopping=3, random_state=0)
        model.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
        display = StagedScoreDisplay.from_validation(model)
        np.testing.assert_array_equal(display.line_.get_ydata(), model.validation_scores_)
        cut = f"{model.n_iter_} components kept"
        assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["validation", cut]
        assert display.ax_.lines[1].get_xdata() == [model.n_iter_, model.n_iter_]
        assert display.ax_.get_ylabel() == "neg log loss"
        train = StagedScoreDisplay.from_estimator(
            model, X[::2], y[::2], name="train", scoring="neg_log_loss", ax=display.ax_
        )
        assert train.line_.get_color() != display.line_.get_color()

    def test_one_component_is_no_several(self):
        display = StagedScoreDisplay([0.5, 0.6], name="validation", n_kept=1).plot()
        assert display.ax_.get_legend().get_texts()[1].get_text() == "1 component kept"

    def test_without_a_validation_set_there_are_no_validation_scores(self, model):
        with pytest.raises(ValueError, match="pass a validation set, X_val and y_val, to fit"):
            StagedScoreDisplay.from_validation(model)

    def test_an_unknown_score_is_an_error(self, model, iris):
        with pytest.raises(ValueError, match="acuracy"):
            StagedScoreDisplay.from_estimator(model, *iris, scoring="acuracy")


class TestSamplingWeights:
    def test_the_line_is_the_effective_sample_size(self, model):
        display = SamplingWeightsDisplay.from_estimator(model)
        np.testing.assert_array_equal(display.line_.get_ydata(), model.trace_["effective_sample_size"])
        assert display.ax_.get_ylim()[0] == 0


class TestFeatureImportance:
    def test_bars_go_from_the_most_important_feature_down(self, iris):
        X, y = iris
        model = KFHEClassifier(n_estimators=5, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
        display = FeatureImportanceDisplay.from_estimator(model)
        order = np.argsort(-model.feature_importances_)
        np.testing.assert_array_equal(
            [bar.get_width() for bar in display.bars_], model.feature_importances_[order]
        )
        labels = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert labels == [list("abcd")[feature] for feature in order]
        top, bottom = (display.ax_.transData.transform((0, place))[1] for place in (0, 3))
        assert top > bottom

    def test_the_rest_is_summed_up(self):
        display = FeatureImportanceDisplay(
            [0.1, 0.6, 0.05, 0.25], ["a", "b", "c", "d"], max_features=2
        ).plot()
        assert len(display.bars_) == 2
        assert display.ax_.get_xlabel() == "importance\n(the other 2 together: 0.150)"

    def test_other_classifiers_have_importances_too(self, iris):
        X, y = iris
        for classifier in (CARTClassifier(), DecisionTreeClassifier()):
            display = FeatureImportanceDisplay.from_estimator(classifier.fit(X, y))
            assert {label.get_text() for label in display.ax_.get_yticklabels()} == {"x0", "x1", "x2", "x3"}

    def test_names_must_be_as_many_as_features(self, model):
        with pytest.raises(ValueError, match="there are 4 features, got 2 feature_names"):
            FeatureImportanceDisplay.from_estimator(model, feature_names=["a", "b"])

    def test_components_without_importances_are_an_error_that_says_so(self, iris):
        model = KFHEClassifier(LogisticRegression(max_iter=1000), n_estimators=2).fit(*iris)
        with pytest.raises(
            ValueError, match=r"no importances to draw: .*LogisticRegression.*feature_importances_"
        ):
            FeatureImportanceDisplay.from_estimator(model)


class TestDecisionRegions:
    def test_shades_are_the_colour_of_the_winner_and_as_strong_as_its_score(self, plane):
        model, X, y = plane
        display = DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=30)
        grid = [[(x0, x1) for x0 in display.x] for x1 in display.y]
        scores = model.predict_proba(pd.DataFrame(np.reshape(grid, (-1, 2)), columns=X.columns))
        np.testing.assert_array_equal(display.scores, scores.reshape(30, 30, 3))
        shades = np.asarray(display.image_.get_array())
        colours = np.array([mpl.colors.to_rgb(colour) for colour in class_colours(3)])
        np.testing.assert_allclose(shades[..., :3], colours[display.scores.argmax(axis=2)])
        strength = (display.scores.max(axis=2) - 1 / 3) / (2 / 3)
        np.testing.assert_allclose(shades[..., 3] / 0.6, strength, atol=1e-12)
        assert (display.x[0], display.x[-1]) < (X["petal length"].min(), X["petal length"].max())

    def test_rows_are_markers_and_crosses_are_on_the_wrong_ones(self, plane):
        model, X, y = plane
        display = DecisionRegionsDisplay.from_estimator(model, X, y)
        lines = {line.get_label(): line for line in display.ax_.lines}
        wrong = model.predict(X) != y
        assert wrong.any()
        assert list(lines) == ["a", "b", "c", f"wrong ({wrong.sum()})"]
        np.testing.assert_array_equal(np.column_stack(lines["b"].get_data()), X[y == "b"])
        np.testing.assert_array_equal(np.column_stack(lines[f"wrong ({wrong.sum()})"].get_data()), X[wrong])
        assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("petal length", "petal width")

    def test_without_labels_there_are_regions_only(self, plane):
        model, X, _ = plane
        display = DecisionRegionsDisplay.from_estimator(model, X)
        assert all(len(line.get_xdata()) == 0 for line in display.ax_.lines)
        assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b", "c"]

    @pytest.mark.parametrize("container", [pd.DataFrame.to_numpy, pl.from_pandas, pa.Table.from_pandas])
    def test_whatever_holds_the_rows_the_picture_is_the_same(self, plane, container):
        model, X, y = plane
        expected = DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=9).scores
        table = container(X)
        again = KFHEClassifier(n_estimators=10, random_state=0).fit(table, y)
        display = DecisionRegionsDisplay.from_estimator(again, table, y, grid_resolution=9)
        np.testing.assert_array_equal(display.scores, expected)

    def test_labels_must_be_as_many_as_rows(self, plane):
        model, X, y = plane
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            DecisionRegionsDisplay.from_estimator(model, X, y[:-1])

    def test_one_class_and_a_constant_feature_can_be_drawn(self):
        model = KFHEClassifier().fit([[1.0, 5.0], [2.0, 5.0]], ["only", "only"])
        display = DecisionRegionsDisplay.from_estimator(model, [[1.0, 5.0], [2.0, 5.0]], ["only", "only"])
        assert np.asarray(display.image_.get_array())[..., 3] == pytest.approx(0.6)

    def test_a_feature_of_text_is_an_error(self):
        table = pd.DataFrame({"age": [30, 40], "plan": ["basic", "plus"]})
        model = KFHEClassifier().fit(table, ["x", "y"])
        with pytest.raises(ValueError, match="decision regions need two numeric features"):
            DecisionRegionsDisplay.from_estimator(model, table)

    def test_more_than_two_features_are_an_error(self, model, iris):
        with pytest.raises(
            ValueError, match=r"decision regions need two features, got X of shape \(150, 4\)"
        ):
            DecisionRegionsDisplay.from_estimator(model, *iris)


class TestRanks:
    def test_names_stand_in_order_with_their_ranks(self):
        display = RankDisplay({"b": 2.25, "c": 2.5, "a": 1.25}, [["b", "c"]]).plot()
        assert [text.get_text() for text in display.ax_.texts] == ["a  1.25", "b  2.25", "c  2.50"]
        bar, *stems = display.ax_.lines
        assert min(bar.get_xdata()) == pytest.approx(2.25, abs=0.1)
        assert max(bar.get_xdata()) == pytest.approx(2.5, abs=0.1)
        assert [stem.get_xdata()[0] for stem in stems] == [1.25, 2.25, 2.5]

    def test_scores_are_ranked_and_tested(self):
        rng = np.random.default_rng(0)
        scores = pd.DataFrame(
            rng.normal([0.9, 0.895, 0.7, 0.5], 0.01, (20, 4)), columns=["good", "too", "so-so", "bad"]
        )
        display = RankDisplay.from_scores(scores)
        assert dict(display.ranks) == dict(stats.average_ranks(scores))
        assert display.groups == [["good", "too"]]
        assert len(RankDisplay.from_scores(scores, alpha=1e-12).groups[0]) > 2

    def test_one_algorithm_is_an_error(self):
        with pytest.raises(ValueError, match="needs the ranks of two algorithms or more"):
            RankDisplay({"alone": 1.0}).plot()


class TestNoise:
    def test_lines_are_the_values_and_differ_in_more_than_colour(self):
        values = {f"A{i}": [0.9 - i / 100, 0.8, np.nan] for i in range(40)}
        display = NoiseDisplay([0, 0.1, 0.2], values, value_name="macro F1").plot()
        looks = {(line.get_color(), line.get_marker()) for line in display.lines_}
        assert len(looks) == 40
        for line, name in zip(display.lines_, values, strict=True):
            assert line.get_label() == name
            np.testing.assert_array_equal(line.get_ydata(), values[name])
            np.testing.assert_array_equal(line.get_xdata(), [0, 10, 20])
        assert display.ax_.get_ylabel() == "macro F1"

    def test_lines_are_named_where_they_end_and_marked_ones_alone_have_colours(self):
        values = {"ours": [0.9, 0.8], "theirs": [0.7, 0.8], "gone": [np.nan, np.nan]}
        display = NoiseDisplay([0, 0.2], values, value_name="macro F1", marked=["ours"]).plot()
        assert display.ax_.get_legend() is None
        names = [text.get_text() for text in display.ax_.texts]
        assert [name for name in names if name] == ["ours", "theirs"]
        assert [line.get_color() for line in display.lines_] == [PALETTE[0], "0.55", "0.55"]

    def test_ranks_have_the_best_at_the_top(self):
        frame = pd.DataFrame({"a": [1.0, 1.5], "b": [2.0, 1.5]})
        display = NoiseDisplay([0, 0.2], frame, value_name="average rank", lower_is_better=True).plot()
        assert display.ax_.yaxis_inverted()
        assert not NoiseDisplay([0, 0.2], frame, value_name="macro F1").plot().ax_.yaxis_inverted()


def test_neighbouring_markers_and_colours_differ():
    assert len(set(MARKERS)) == len(MARKERS)
    assert len(set(class_colours(20))) == 20


def test_long_names_lose_their_middle_and_dollars_start_no_formula():
    assert shortened("short") == "short"
    assert shortened("a" * 50 + "z") == "a" * 21 + "…" + "a" * 9 + "z"
    assert len(shortened("a" * 100, 40)) == 40
    display = NoiseDisplay([0, 1], {"$x": [1, 2], "y$": [1, 2]}, value_name="$").plot()
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (TraceDisplay, ()),
        (SamplingWeightsDisplay, ()),
        (FeatureImportanceDisplay, ()),
        (StagedScoreDisplay, ([[1.0, 2.0]], [0])),
        (DecisionRegionsDisplay, ([[1.0, 2.0]], [0])),
    ],
)
def test_a_model_that_is_not_fitted_is_an_error_that_says_so(kind, data):
    with pytest.raises(NotFittedError, match="KFHEClassifier instance is not fitted yet"):
        kind.from_estimator(KFHEClassifier(), *data)
    assert pyplot.get_fignums() == []


def test_another_kind_of_model_is_an_error_that_says_what_is_accepted(iris):
    tree = DecisionTreeClassifier().fit(*iris)
    with pytest.raises(TypeError, match="needs a KFHEClassifier, got DecisionTreeClassifier"):
        TraceDisplay.from_estimator(tree)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("kfhe.plotting", "matplotlib"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"kfhe.plotting needs matplotlib: pip install \"kfhe\[plot\]\""):
        import_module("kfhe.plotting")
