"""KFHEClassifier: the ensemble of the paper as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, ClassVar
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions

from kfhe import emphasis as emphases
from kfhe.base import BaseKFHE
from kfhe.early_stopping import EarlyStopping
from kfhe.measurement import Measurement
from kfhe.rows import TrainingRows
from kfhe.sensors import EstimatorSensor, Sensor, TreeSensor
from kfhe.state_space import StateSpace
from kfhe.training import TrainingRun
from kfhe.tree import CARTClassifier
from kfhe.tree_settings import TreeSettings
from kfhe.validation import check_component, check_foreign_table, check_list, check_tree_component

Floats = NDArray[np.float64]


class KFHEClassifier(BaseKFHE):
    """Kalman Filter-based Heuristic Ensemble (Pakrashi and Mac Namee, 2019).

    Training estimates a fixed, unknown state: the ideal classifier. Each component classifier is a
    noisy measurement of it, and a Kalman filter fuses the measurements. A second filter estimates the
    weights with which the training rows of the next component are drawn.

    Parameters
    ----------
    estimator : classifier, list of classifiers or None, default=None
        The component. A `CARTClassifier` sets how native trees are grown; None means the settings of the
        paper. Trees can't split tables of fewer than `min_samples_split` (20) rows; for small tables, lower
        it and `min_samples_leaf`. Any other scikit-learn classifier is cloned for each component and trained
        on resampled rows of X. The estimators of a list take turns within an iteration.
    emphasis : {"exponential", "linear", "margin"} or callable, default="exponential"
        How a miss raises the weight of a row. "exponential" (KFHE-e) is more accurate with clean labels,
        "linear" (KFHE-l) is more robust to wrong ones. "margin" uses the margins of the rows instead of
        misses. A callable gets the sampling weights and a boolean array of the misclassified rows, and
        returns the measured weights.
    state_space : StateSpace or None, default=None
        How the state changes and is measured: process noise, transition, fusion, out-of-bag or several
        measurements. None: as in the paper.
    n_estimators : int, default=100
        Number of components after the initial one. Training stops earlier once a measurement has no error,
        because the filter is certain then.
    max_samples : int, float, "auto" or None, default=None
        Number, or share, of the rows that are drawn with replacement to train a component. None: as many as
        there are, as in the paper. "auto": all up to 50,000 rows, and beyond that the geometric mean of
        50,000 and their number. Fewer rows are faster; errors are still measured on all rows.
    voting : {"hard", "soft"}, default="hard"
        Whether a component votes for one class, or by its class probabilities. Trees with `shrinkage` need
        "soft".
    class_weight : dict, "balanced" or None, default=None
        Class weights. They are multiplied with `sample_weight`.
    early_stopping : bool, int, EarlyStopping or None, default=None
        True: stop after 10 iterations without a better log loss on the validation set of `fit`, or on a tenth
        of the rows if it has none. An int: stop after this number of iterations; `fit` needs a validation
        set. `EarlyStopping` has more settings. The components up to the best score are kept.
    warm_start : bool, default=False
        Whether another call of `fit` on the same data adds components up to `n_estimators`.
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
    n_iter_ : int
        Number of components after h_0.
    estimators_ : list of n_iterations + 1 classifiers
        The components, h_0 first.
    component_weights_ : ndarray of shape (n_iterations + 1,)
        How much each component contributes to the scores. They sum to 1.
    trace_ : Trace
        What happened in each iteration: gain K, measurement error R, variances of the model filter and more.
    validation_scores_ : ndarray
        Scores on the validation set, if there was one: of h_0 alone, then after each iteration, including
        those that early stopping has discarded. Higher is better; the default is the negative log loss.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the components, averaged by component weight.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KFHEClassifier(emphasis="linear", random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _saved_as: ClassVar[str] = "KFHEClassifier"  # in model files

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseKFHE._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), list, None],
        "emphasis": [StrOptions({"exponential", "linear", "margin"}), callable],
        "state_space": [StateSpace, None],
        "voting": [StrOptions({"hard", "soft"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        emphasis: str | emphases.Emphasis = "exponential",
        state_space: StateSpace | None = None,
        n_estimators: int = 100,
        max_samples: int | float | str | None = None,
        voting: str = "hard",
        class_weight: dict[Any, float] | str | None = None,
        early_stopping: bool | int | EarlyStopping | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.emphasis = emphasis
        self.state_space = state_space
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.voting = voting
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def make_run(self, rows: TrainingRows) -> TrainingRun:
        """Put a run together."""
        n_measurements = self._state_space().n_measurements * len(self._components())
        run = TrainingRun(rows, self.make_sensor(rows), self.make_measurement(rows), n_measurements)
        if self._grows_trees() and rows.n_present > 1:
            self._hint_at_few_rows(rows.n_samples)
        return run

    def make_sensor(self, rows: TrainingRows) -> Sensor:
        """Return what trains the components: native trees, or clones of the estimators.

        A subclass with a sensor of its own overrides it.

        Parameters
        ----------
        rows : TrainingRows
            The training rows, checked.

        Returns
        -------
        Sensor
            A new sensor for these rows.
        """
        sensor = TreeSensor if self._grows_trees() else EstimatorSensor
        return sensor(rows, self._components(), self.voting, from_shares=self._state_space().from_shares)

    def make_measurement(self, rows: TrainingRows) -> Measurement:
        """Return what measures the components' votes.

        A subclass with another measurement overrides it.

        Parameters
        ----------
        rows : TrainingRows
            The training rows, checked.

        Returns
        -------
        Measurement
            A new measurement for these rows.
        """
        return self._state_space().make_measurement(rows)

    def make_emphasis(self, run: TrainingRun) -> emphases.Emphasis:
        """Return the emphasis that the parameter stands for."""
        return emphases.resolve(self.emphasis, run.rows, run.model)

    def _validate_params(self) -> None:
        """Check the parameters, one by one and together; fitting, saving and loading ask for it."""
        super()._validate_params()
        self._state_space().check()
        self._check_components()

    def _state_space(self) -> StateSpace:
        return StateSpace() if self.state_space is None else self.state_space

    def _given(self) -> list[Any]:
        """Return the estimators that take turns: those that were given, or the paper's tree."""
        if isinstance(self.estimator, list):
            return self.estimator
        return [CARTClassifier() if self.estimator is None else self.estimator]

    def _components(self) -> list[Any]:
        """Return what the sensor takes: settings of trees, or estimators."""
        return [TreeSettings.of(each) for each in self._given()] if self._grows_trees() else self._given()

    def _check_components(self) -> None:
        """Raise unless the estimators can be components, of one ensemble."""
        if isinstance(self.estimator, list):
            check_list(self.estimator)
        for each in self._given():
            check_component(each)
            if type(each) is CARTClassifier:
                check_tree_component(each)
        if self._grows_trees():
            first, *others = self._components()
            for name in ("max_bins", "categorical_features", "honest_categories", "shrinkage"):
                if any(not np.array_equal(getattr(first, name), getattr(each, name)) for each in others):
                    raise ValueError(f"trees of one forest have to agree in {name}, estimator has several")
            if first.shrinkage != 0 and self.voting == "hard":
                raise ValueError(
                    "shrinkage needs voting='soft': a tree that votes for one class has no shares to shrink"
                )

        elif self.device != "cpu":
            names = ", ".join(dict.fromkeys(type(each).__name__ for each in self._given()))
            raise ValueError(
                f"device={self.device!r} grows native trees: estimator must be None or a CARTClassifier, "
                f"got {names}"
            )

    def _hint_at_few_rows(self, n_rows: int) -> None:
        """Warn if there are too few rows for native trees of these settings to split at all."""
        needed = min(max(tree.min_samples_split, 2 * tree.min_samples_leaf) for tree in self._given())
        if n_rows < needed:
            warn(
                f"{n_rows} rows are too few for any tree to split, so all rows get the same scores: with "
                f"these settings it takes {needed}. Lower min_samples_split and min_samples_leaf of the "
                "estimator, a CARTClassifier",
                stacklevel=2,
            )

    def _grows_trees(self) -> bool:
        """Whether the components are native trees."""
        return all(type(each) is CARTClassifier for each in self._given())

    def _component_settings(self) -> dict[str, Any]:
        settings = super()._component_settings()
        settings |= named("state_space", self._state_space().get_params())
        del settings["state_space"]
        if self._grows_trees():
            del settings["estimator"]
            for turn, tree in enumerate(self._components()):
                settings |= named(f"estimator{f'[{turn}]' if turn else ''}", vars(tree))
        return settings

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        """Check X; a given estimator gets it as it came, and checks its values itself."""
        if self._grows_trees() or len(getattr(X, "shape", ())) != 2:
            return super()._check_table(X, reset=reset)
        return check_foreign_table(self, X, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for tag in ("allow_nan", "sparse"):
            taken = self._grows_trees() or all(
                getattr(get_tags(each).input_tags, tag) for each in self._given()
            )
            setattr(tags.input_tags, tag, taken)
        return tags


def named(parameter: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a parameter by the names that `set_params` knows them by."""
    return {f"{parameter}__{name}": value for name, value in settings.items()}
