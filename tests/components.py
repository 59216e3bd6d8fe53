"""Components that tests can script and watch. The first column of X is a row's number."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kfhe import CARTClassifier, StateSpace
from kfhe.rows import TrainingRows
from kfhe.trace import COLUMNS, Iteration

SHARED = {"class_weight", "random_state", "n_jobs", "device"}  # parameters of trees and of ensembles


class Log(list):
    """A list that a component and its clones share."""

    def __deepcopy__(self, memo):
        return self


class Scripted(ClassifierMixin, BaseEstimator):
    """Votes what `votes(t, rows)` says, whatever it was trained on.

    t counts the fits from 0 (h_0); `log` gets the row numbers of each fit. There is a `predict_proba`
    only if `scores(t, rows)` is given.
    """

    def __init__(self, votes=None, scores=None, log=None):
        self.votes = votes
        self.scores = scores
        self.log = log

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.t_ = len(self.log)
        self.log.append(row_numbers(X))
        return self

    def predict(self, X):
        return self.votes(self.t_, row_numbers(X))

    @available_if(lambda self: self.scores is not None)
    def predict_proba(self, X):
        return self.scores(self.t_, row_numbers(X))


def as_parameters(settings):
    """Return settings as `KFHEClassifier` takes them: those of trees and of the state space in objects."""
    parameters = dict(settings)
    for name, kind in (("estimator", CARTClassifier), ("state_space", StateSpace)):
        own = {key: parameters.pop(key) for key in kind().get_params().keys() - SHARED if key in parameters}
        if own:
            assert name not in parameters
            parameters[name] = kind(**own)
    return parameters


def iteration(value):
    """Return a row of a trace in which every column has the same value."""
    return Iteration(1, **dict.fromkeys(COLUMNS, value))


def row_numbers(X):
    return np.asarray(X)[:, 0].astype(int)


def rows_of(base):
    """Return training rows of which only the base weights matter."""
    return TrainingRows(None, np.zeros(len(base), dtype=np.int32), np.arange(2), base, seed=0, n_threads=1)


def numbered(n):
    """Return X for n rows: a column with their numbers."""
    return np.arange(n, dtype=float).reshape(-1, 1)


def assert_equal_models(one, other, X):
    """Assert that two fitted classifiers went the same way and predict the same, bit by bit."""
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.trace_["gain"], other.trace_["gain"])
    np.testing.assert_array_equal(one.trace_["measurement_error"], other.trace_["measurement_error"])
    np.testing.assert_array_equal(one.trace_["effective_sample_size"], other.trace_["effective_sample_size"])
    np.testing.assert_array_equal(one.component_weights_, other.component_weights_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
