"""Displays of predictions: confusion, calibration and ROC are what scikit-learn computes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve
from sklearn.svm import LinearSVC

from kfhe import KFHEClassifier
from kfhe.display.palette import BLUE, PALETTE, VERMILION
from kfhe.metrics import calibration_error
from kfhe.plotting import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay

DISPLAYS = (ConfusionMatrixDisplay, CalibrationDisplay, RocCurveDisplay)


@pytest.fixture(autouse=True)
def own_figures():
    backend = mpl.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(backend)


@pytest.fixture(scope="module")
def case(iris):
    """A model of classes with names, the rows that it has not seen, and its scores for them."""
    X, y = iris
    y = np.array(["ash", "birch", "cedar"])[y]
    model = KFHEClassifier(n_estimators=10, random_state=0).fit(X[::2], y[::2])
    return model, X[1::2], y[1::2], model.predict_proba(X[1::2])


@pytest.mark.parametrize("display", DISPLAYS)
def test_from_an_estimator_and_from_its_predictions_are_the_same(case, display):
    model, X, y, scores = case
    given = model.predict(X) if display is ConfusionMatrixDisplay else scores
    first, second = display.from_estimator(model, X, y), display.from_predictions(y, given)
    for name, value in vars(first).items():
        if not name.endswith("_"):
            np.testing.assert_equal(value, vars(second)[name])


@pytest.mark.parametrize("display", DISPLAYS)
def test_any_fitted_classifier_can_be_drawn(case, display):
    _, X, y, _ = case
    with pytest.raises(NotFittedError):
        display.from_estimator(LogisticRegression(), X, y)
    assert display.from_estimator(LogisticRegression(max_iter=1000).fit(X, y), X, y).ax_.has_data()


@pytest.mark.parametrize("display", [CalibrationDisplay, RocCurveDisplay])
def test_what_has_no_probabilities_is_an_error_that_says_so(case, display):
    _, X, y, _ = case
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        display.from_estimator(LinearSVC().fit(X, y), X, y)


@pytest.mark.parametrize("display", [CalibrationDisplay, RocCurveDisplay])
def test_scores_have_to_be_those_of_the_classes(display):
    with pytest.raises(ValueError, match="there are 2 classes, got scores of 3"):
        display.from_predictions([0, 1], [[0.2, 0.3, 0.5]] * 2)
    with pytest.raises(ValueError, match="labels that are not in classes: b"):
        display.from_predictions(["a", "b"], [[0.5, 0.5]] * 2, classes=["a", "c"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        display.from_predictions([0, 1, 1], [[0.5, 0.5]] * 2)


class TestConfusionMatrix:
    def test_cells_are_rows_by_true_and_predicted_class(self, case):
        model, X, y, _ = case
        display = ConfusionMatrixDisplay.from_estimator(model, X, y)
        expected = confusion_matrix(y, model.predict(X))
        np.testing.assert_array_equal(display.confusion_matrix, expected)
        assert [text.get_text() for text in display.ax_.texts] == [str(n) for n in expected.ravel()]
        for axis in (display.ax_.xaxis, display.ax_.yaxis):
            assert [label.get_text() for label in axis.get_ticklabels()] == ["ash", "birch", "cedar"]

    def test_right_ones_and_mistakes_differ_in_colour_and_shares_in_strength(self):
        display = ConfusionMatrixDisplay(np.array([[6, 2], [0, 0]])).plot()
        shades = np.asarray(display.im_.get_array())
        assert [mpl.colors.to_hex(shades[i, j, :3]) for i, j in ((0, 0), (0, 1), (1, 1))] == [
            BLUE,
            VERMILION,
            BLUE,
        ]
        np.testing.assert_allclose(shades[..., 3], [[0.9 * 0.75**0.5, 0.9 * 0.5], [0, 0]])

    @pytest.mark.parametrize("normalize", ["true", "pred", "all"])
    def test_shares_are_drawn_on_request(self, case, normalize):
        model, X, y, _ = case
        display = ConfusionMatrixDisplay.from_estimator(model, X, y, normalize=normalize)
        expected = confusion_matrix(y, model.predict(X), normalize=normalize)
        assert [text.get_text() for text in display.ax_.texts] == [f"{n:.2f}" for n in expected.ravel()]
        assert np.asarray(display.im_.get_array())[..., 3].max() == pytest.approx(0.9)

    def test_classes_are_in_the_order_and_by_the_names_that_are_given(self):
        display = ConfusionMatrixDisplay.from_predictions(
            [0, 0, 1], [0, 1, 1], labels=[1, 0], display_labels=["yes", "no"]
        )
        np.testing.assert_array_equal(display.confusion_matrix, [[1, 0], [1, 1]])
        assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["yes", "no"]
        with pytest.raises(ValueError, match="there are 2 classes, got 3 display_labels"):
            ConfusionMatrixDisplay.from_predictions([0, 1], [0, 1], display_labels=["a", "b", "c"])

    def test_classes_that_are_only_predicted_are_there_too(self):
        display = ConfusionMatrixDisplay.from_predictions(["a", "a"], ["a", "b"])
        np.testing.assert_array_equal(display.confusion_matrix, [[1, 1], [0, 0]])

    def test_classes_that_only_the_classifier_knows_are_there_too(self, case):
        model, X = case[:2]
        of_one_class = X[model.predict(X) == "ash"]
        display = ConfusionMatrixDisplay.from_estimator(model, of_one_class, ["ash"] * len(of_one_class))
        assert list(display.display_labels) == list(model.classes_)

    def test_of_very_many_classes_some_names_are_left_out(self):
        display = ConfusionMatrixDisplay(np.eye(200, dtype=int)).plot()
        shown = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert 20 < len(shown) < 100
        assert shown[:2] == ["0", shown[1]]
        assert display.figure_.get_size_inches().max() < 16
        assert not display.ax_.texts


class TestCalibration:
    def test_the_legend_has_the_calibration_error(self, case):
        _, _, y, scores = case
        display = CalibrationDisplay.from_predictions(y, scores)
        codes = np.unique(y, return_inverse=True)[1]
        expected = f"calibration error {calibration_error(codes, scores):.3f}"
        assert [text.get_text() for text in display.ax_.get_legend().get_texts()][1:] == [expected]

    def test_of_scores_the_shares_are_the_probabilities(self):
        y_true, scores = [0, 1, 1], np.array([[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
        displays = [CalibrationDisplay.from_predictions(y_true, scores * factor) for factor in (1, 4)]
        np.testing.assert_allclose(displays[1].prob_pred, displays[0].prob_pred)

    def test_points_are_what_was_said_and_what_was_right(self):
        shares = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]] * 2)
        display = CalibrationDisplay.from_predictions([0, 0, 0, 1, 1, 0], shares, n_bins=5)
        np.testing.assert_allclose(display.line_.get_xdata(), [0.6, 0.9])
        np.testing.assert_allclose(display.line_.get_ydata(), [0.5, 0.75])
        areas = display.ax_.collections[0].get_sizes()
        assert areas[0] == areas[1] / 2

    def test_a_second_line_has_another_colour_and_the_diagonal_is_drawn_once(self, case):
        _, _, y, scores = case
        first = CalibrationDisplay.from_predictions(y, scores, name="first")
        second = CalibrationDisplay.from_predictions(y, scores**2, name="second", ax=first.ax_)
        assert (first.line_.get_color(), second.line_.get_color()) == PALETTE[:2]
        assert len(first.ax_.lines) == 3
        names = [text.get_text().split(":")[0] for text in second.ax_.get_legend().get_texts()]
        assert names == ["Perfectly calibrated", "first", "second"]


class TestRocCurve:
    def test_lines_and_areas_are_those_of_each_class_against_the_others(self, case):
        _, _, y, scores = case
        display = RocCurveDisplay.from_predictions(y, scores)
        assert display.name == ["ash", "birch", "cedar"]
        for position, name in enumerate(display.name):
            fpr, tpr, _ = roc_curve(y == name, scores[:, position])
            np.testing.assert_array_equal(display.lines_[position].get_xdata(), fpr)
            np.testing.assert_array_equal(display.lines_[position].get_ydata(), tpr)
            assert display.roc_auc[position] == pytest.approx(roc_auc_score(y == name, scores[:, position]))
        legend = display.ax_.get_legend()
        assert legend.get_title().get_text() == f"area, on average {np.mean(display.roc_auc):.3f}"
        assert [text.get_text().split("  ")[0] for text in legend.get_texts()] == display.name

    def test_two_classes_are_one_line(self):
        true, scores = ["no", "no", "yes", "yes"], np.array([0.1, 0.4, 0.3, 0.8])
        one = RocCurveDisplay.from_predictions(true, scores)
        both = RocCurveDisplay.from_predictions(true, np.column_stack([1 - scores, scores]))
        assert one.name == both.name == ["yes"]
        assert one.roc_auc == both.roc_auc == [0.75]

    def test_a_class_without_rows_has_no_line(self):
        scores = np.eye(3)[[0, 1, 1]]
        assert RocCurveDisplay.from_predictions([0, 1, 1], scores, classes=[0, 1, 2]).name == [0, 1]
        with pytest.raises(ValueError, match="need rows of two classes"):
            RocCurveDisplay.from_predictions([0, 0, 0], scores, classes=[0, 1, 2])

    def test_of_many_classes_the_worst_have_names(self, rng):
        true = np.arange(600) % 30
        scores = rng.random((600, 30)) + np.eye(30)[true] * np.linspace(0.9, 0.1, 30)
        display = RocCurveDisplay.from_predictions(true, scores)
        *named, others = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert len(named) == len(PALETTE)
        worst = np.argsort(display.roc_auc)
        assert [int(text.split("  ")[0]) for text in named] == worst[:7].tolist()
        areas = np.array(display.roc_auc)[worst[7:]]
        assert others == f"23 others  {areas[0]:.3f} to {areas[-1]:.3f}"
        colours = {position: line.get_color() for position, line in enumerate(display.lines_)}
        assert [colours[position] for position in worst[:7]] == list(PALETTE)
        assert {colours[position] for position in worst[7:]} == {"0.6"}
