"""scikit-learn's own checks of what a classifier must do."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfhe import KFHEClassifier

SAMPLES_ROWS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "an ensemble that samples rows can't give equal draws for weighted and for repeated rows; "
        "test_sample_weight shows that frequencies and error rates are equal"
    )
}


@parametrize_with_checks(
    [
        KFHEClassifier(n_estimators=10),
        KFHEClassifier(emphasis="linear", n_estimators=10),
        KFHEClassifier(LogisticRegression(), n_estimators=5),
    ],
    expected_failed_checks=lambda estimator: SAMPLES_ROWS,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_common_check(estimator, check):
    check(estimator)
