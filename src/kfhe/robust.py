"""RobustKFHEClassifier: the classifier for labels that may be wrong."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kfhe.base import BaseKFHE
from kfhe.calibration import calibrate
from kfhe.early_stopping import EarlyStopping
from kfhe.emphasis import ByMargin, Emphasis
from kfhe.engine.threads import thread_count
from kfhe.filter_bank import SHRINKAGES, FilterBank, log_losses
from kfhe.forest import DECISIONS
from kfhe.measurement import OutOfBag
from kfhe.remarks import leaking_column, of_leak, remarks_on
from kfhe.robust_sensor import RobustSensor
from kfhe.rows import TrainingRows
from kfhe.training import TrainingRun
from kfhe.tree_settings import TreeSettings, check_classes

Floats = NDArray[np.float64]

SPLIT = 4  # minimum rows of a node to split; the last splits to purity are slow and say least
TREE_SETTINGS = ("min_samples_leaf", "max_leaf_nodes", "max_bins", "categorical_features")


class RobustKFHEClassifier(BaseKFHE):
    """A Kalman filter-based ensemble that estimates how noisy the labels are and adapts to it.

    Trees are grown nearly to purity on bootstrap samples, alternately with the best cuts and with random
    ones, and each row is judged by trees that have not seen it. Leaves of few rows are shrunken towards their
    ancestors. How much depends on the noise: a bank of filters tries several values and uses the one that
    predicts the labels of unseen rows best. It also decides whether leaves should be larger, and whether hard
    rows are drawn more often. Finally, the scores are calibrated and the share of wrong labels is estimated,
    by maximum likelihood on unseen rows, so that the probabilities are those of the true classes.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_samples : int, float, "auto" or None, default=None
        Number, or share, of the rows that a tree is trained on, as in `KFHEClassifier`.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf. With noisy labels, leaves are larger anyway. Larger leaves make a
        smaller model.
    max_leaf_nodes : int or None, default=None
        Grow trees best-first, up to this number of leaves, for a smaller model.
    decision : {"balanced", "likeliest"} or float, default="balanced"
        Which class `predict` returns. "likeliest": the one with the highest probability. A number p: the one
        with the highest probability divided by the class share to the power of p, so that rare classes are
        not lost. "balanced" is 0.6. The shares are the estimated ones of the true classes. `predict_proba`
        does not depend on it.
    max_bins : int, default=255
        Maximum number of bins of a numeric feature, and of distinct categories of a categorical one.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Additional categorical columns: positions, names or a mask. Columns of strings or categories are
        always categorical, except with None, which treats no column as categorical.
    class_weight : dict, "balanced" or None, default=None
        Class weights. They are multiplied with `sample_weight`.
    early_stopping : bool, int, EarlyStopping or None, default=None
        When to stop before `n_estimators`, as in `KFHEClassifier`.
    warm_start : bool, default=False
        Whether another call of `fit` on the same data adds trees up to `n_estimators`.
    random_state : int, Generator, RandomState or None, default=None
        Seed. An int gives the same model each time.
    n_jobs : int or None, default=None
        Number of threads. The model does not depend on it.
    device : {"cpu", "cuda"}, default="cpu"
        Where to train: "cuda" uses an Nvidia GPU and needs `pip install "kfhe[cuda]"`. The model
        does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    lambda_ : float
        The chosen shrinkage, 0 to 100: the higher, the noisier the labels.
    noise_rate_ : float
        Estimated share of wrong labels, in steps of 0.01, assuming that mistakes are random. If the features
        say nothing about the labels, it is meaningless: see `oob_log_loss_`.
    oob_score_ : float
        Out-of-bag accuracy by the given labels.
    oob_log_loss_ : float
        Out-of-bag log loss by the given labels. If it is not below that of the class shares, nothing was
        learnt.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        The out-of-bag scores: probabilities of the given labels, not of the true classes. Rows of weight 0
        and rows held out for early stopping are omitted.
    remarks_ : tuple of str
        Possible mistakes in the training table, also issued as `TableWarning`: copies of rows, which are kept
        together; columns that are ignored because they say nothing, such as names or codes; columns with a
        single value; a column that predicts the label on its own.
    n_iter_, estimators_, component_weights_, trace_, validation_scores_, feature_importances_
        As in `KFHEClassifier`. The first tree has a single leaf, with the class shares.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import RobustKFHEClassifier
    >>> from kfhe.noise import flip_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RobustKFHEClassifier(random_state=0).fit(X, flip_labels(y, 0.3, random_state=0))
    >>> round(model.score(X, y), 2)
    0.96
    """

    _saved_as: ClassVar[str] = "RobustKFHEClassifier"
    _found: ClassVar[tuple[str, ...]] = ("noise_rate_", "oob_score_", "oob_log_loss_")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseKFHE._parameter_constraints,
        "decision": [StrOptions(set(DECISIONS)), Interval(Real, 0, 1, closed="both")],
        **{name: TreeSettings.constraints()[name] for name in TREE_SETTINGS},
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_samples: int | float | str | None = None,
        min_samples_leaf: int = 1,
        max_leaf_nodes: int | None = None,
        decision: str | float = "balanced",
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        class_weight: dict[Any, float] | str | None = None,
        early_stopping: bool | int | EarlyStopping | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.decision = decision
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def make_run(self, rows: TrainingRows) -> TrainingRun:
        """Create the run: trees, measured out of the bag by a bank of filters."""
        check_classes(len(rows.classes))  # a bank for too many classes would use all memory
        bank = FilterBank(rows)
        return TrainingRun(rows, RobustSensor(rows, self._tree_settings(), bank), OutOfBag(rows, bank))

    def _tree_settings(self) -> TreeSettings:
        return TreeSettings(
            max_depth=None,
            min_samples_split=SPLIT,
            honest_categories=True,
            **{name: getattr(self, name) for name in TREE_SETTINGS},
        )

    def _with_copies(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows with copies grouped, unless the user has given groups."""
        return rows if rows.groups is not None else rows.with_copies()

    def make_emphasis(self, run: TrainingRun) -> Emphasis:
        """Return an emphasis by margins, which ends when labels look noisy."""
        assert isinstance(run.model, FilterBank)
        return ByMargin(run.rows, run.model)

    def predict_uncertainty(self, X: Any) -> Floats:
        """Return how uncertain each row is: how far the trees and the filters of the bank disagree.

        It is the weighted variance of the trees' votes, plus the variance of the scores between the chosen
        shrinkage and its neighbours in the bank. Both are summed over the classes.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The uncertainty of each row; 0 where all trees agree under each of these shrinkages.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kfhe import RobustKFHEClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = RobustKFHEClassifier(random_state=0).fit(X, y)
        >>> model.predict_uncertainty(X[[0, 106]]).round(2)
        array([0.03, 0.23])
        """
        X, n_threads = self._validate_for_prediction(X), thread_count(self.n_jobs)
        return self.estimators_.spread(X, n_threads) + self.estimators_.bank_spread(X, n_threads)

    @property
    def lambda_(self) -> float:
        """The final shrinkage of the bank."""
        check_is_fitted(self)
        return float(self.estimators_.shrinkage)

    def _attributes(self, run: TrainingRun, *, resumes: bool) -> dict[str, Any]:
        attributes, bank, rows = super()._attributes(run, resumes=resumes), run.model, run.rows
        assert isinstance(bank, FilterBank)
        scores = bank.scores(SHRINKAGES.tolist().index(attributes["estimators_"].shrinkage))
        found = calibrate(rows, scores, bank.n_read, bank.prior)
        attributes["estimators_"] = forest = replace(
            attributes["estimators_"],
            sharpness=found.sharpness,
            class_shares=tuple(found.class_shares.tolist()),
            prior_power=float(DECISIONS.get(self.decision, self.decision)),
        )
        own = scores[np.arange(len(scores)), rows.labels]
        right = rows.base * ((scores * forest.class_factors).argmax(axis=1) == rows.labels)
        return {
            **attributes,
            "noise_rate_": found.noise_rate,
            "oob_score_": min(1.0, rows.exact_sum(right)),  # weights may sum to a rounding error more
            "oob_log_loss_": rows.exact_sum(log_losses(own, rows.base)),
            "oob_decision_function_": scores,
            "remarks_": self._remarks(run, forest.importances(rows.n_threads)),
        }

    def _remarks(self, run: TrainingRun, importances: Floats) -> tuple[str, ...]:
        """Return the remarks on the training table."""
        assert isinstance(run.sensor, RobustSensor)
        remarks = remarks_on(run.rows, run.sensor.table)
        leaking = leaking_column(run.rows, run.sensor.table, self._tree_settings(), importances)
        return (*remarks, of_leak(leaking)) if leaking is not None else tuple(remarks)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags
