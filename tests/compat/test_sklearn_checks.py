"""scikit-learn's own checks of what a classifier must do."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier, StateSpace

EQUIVALENCE = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
SAMPLES_ROWS = dict.fromkeys(
    EQUIVALENCE,
    "an ensemble that samples rows can't give equal draws for weighted and for repeated rows; "
    "test_sample_weight shows that frequencies and error rates are equal",
)

COUNTS_ROWS = dict.fromkeys(
    EQUIVALENCE,
    "min_samples_split and min_samples_leaf count rows, whatever they weigh; without them it passes",
)
FITS_EVERY_ROW = {
    "check_class_weight_classifiers": (
        "a tree without limits has leaves for rows of next to no weight; with the default limits it passes"
    )
}

PURE = {"min_samples_split": 2, "min_samples_leaf": 1}


def expected_failures(estimator):
    if isinstance(estimator, KFHEClassifier | RobustKFHEClassifier):
        return SAMPLES_ROWS
    return COUNTS_ROWS if estimator.min_samples_leaf > 1 else FITS_EVERY_ROW


@parametrize_with_checks(
    [
        KFHEClassifier(n_estimators=10),
        KFHEClassifier(emphasis="linear", n_estimators=10),
        KFHEClassifier(LogisticRegression(), n_estimators=5),
        KFHEClassifier(
            state_space=StateSpace(measurement="out-of-bag", n_measurements=2),
            n_estimators=6,
            emphasis="margin",
        ),
        KFHEClassifier(
            state_space=StateSpace(transition=0.9, process_noise=[0.1, 0.01], fusion=1.0), n_estimators=6
        ),
        KFHEClassifier(CARTClassifier(shrinkage="auto", **PURE), n_estimators=6, voting="soft"),
        KFHEClassifier(
            [LogisticRegression(), CARTClassifier()],
            state_space=StateSpace(measurement="out-of-bag"),
            n_estimators=6,
        ),
        RobustKFHEClassifier(n_estimators=25),
        CARTClassifier(),
        CARTClassifier(**PURE),
        CARTClassifier(shrinkage="auto"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_common_check(estimator, check):
    check(estimator)
