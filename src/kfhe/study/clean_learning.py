"""CleanLearning of cleanlab on a random forest, as a classifier that accepts any labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from cleanlab.classification import CleanLearning
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted


class CleanLearningForest(ClassifierMixin, BaseEstimator):
    """A random forest trained on the rows that cleanlab trusts, with cleanlab's defaults.

    cleanlab cross-validates a forest, removes the rows whose labels look wrong, and trains a forest on the
    rest. If it raises an error (because all classes have fewer rows than its five folds, or there is only one
    class), the forest is trained on all rows, and `fallback_` has the reason.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees of each forest.
    n_jobs : int or None
        Number of threads of the forests.
    random_state : int or None
        Seed of the folds and forests.

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    forest_ : RandomForestClassifier
        The forest that predicts.
    fallback_ : str or None
        Why cleanlab was not used; None if it was.
    """

    def __init__(
        self, n_estimators: int = 100, *, n_jobs: int | None = None, random_state: int | None = None
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CleanLearningForest:
        """Train on rows with labels of any type."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        one_process = {"n_jobs": 1}
        forest = RandomForestClassifier(self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state)
        cleaning = CleanLearning(clone(forest), seed=self.random_state, find_label_issues_kwargs=one_process)
        self.fallback_: str | None = None
        try:
            self.forest_ = cleaning.fit(X, codes).clf
        except Exception as error:  # any error that cleanlab raises for unsuitable labels
            self.fallback_ = f"{type(error).__name__}: {error}"
            self.forest_ = forest.fit(X, codes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the class probabilities; 0 for a class whose rows cleanlab has removed."""
        check_is_fitted(self)
        shares = np.zeros((len(X), len(self.classes_)))
        shares[:, self.forest_.classes_] = self.forest_.predict_proba(X)
        return shares

    def predict(self, X: Any) -> Any:
        """Return the class with the largest share."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @property
    def n_estimators_(self) -> int:
        """Number of trees."""
        return len(self.forest_.estimators_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(RandomForestClassifier()).input_tags.allow_nan
        return tags
