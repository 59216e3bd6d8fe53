"""Loading a model from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfhe.base import BaseKFHE, fitted_attributes
from kfhe.classifier import KFHEClassifier
from kfhe.robust import RobustKFHEClassifier
from kfhe.saving import header
from kfhe.saving.model_file import File, read_file, read_forest, told_as_damage

# The classes that a file can name
MODELS: dict[str, type[BaseKFHE]] = {kind._saved_as: kind for kind in (KFHEClassifier, RobustKFHEClassifier)}


def load(file: File) -> Any:
    """Read a model from a file that `KFHEClassifier.save` has written.

    A file can come from a stranger: loading runs no code from it, and a damaged or forged one is an error.
    The model predicts the same bits as the one that was saved, and can be shown, exported, cloned and fitted
    again. A function that was its `emphasis` is not in the file: set that parameter before fitting again.

    Parameters
    ----------
    file : str, path or binary file
        Where to read.

    Returns
    -------
    KFHEClassifier or RobustKFHEClassifier
        The fitted classifier, of the class that was saved.

    Raises
    ------
    ModelFileError
        The file is damaged, is no model file, or of another format.
    OSError
        There is no such file, or it can't be read.

    Examples
    --------
    >>> import io
    >>> from sklearn.datasets import load_iris
    >>> import kfhe
    >>> X, y = load_iris(return_X_y=True)
    >>> model = kfhe.KFHEClassifier(random_state=0).fit(X, y)
    >>> file = io.BytesIO()
    >>> model.save(file)
    >>> _ = file.seek(0)
    >>> kfhe.load(file).fingerprint() == model.fingerprint()
    True
    """
    return read_file(file, _model)


def _model(description: dict[str, Any], content: bytes) -> BaseKFHE:
    """Make the model, each part of which is checked."""
    saved = read_forest(description, content)
    with told_as_damage():
        name, given = description["class"], description["parameters"]
        with header.section("class"):
            kind = MODELS[name]
        with header.section("parameters"):
            model = kind(**header.read_parameters(given))
            model._validate_params()
        found = header.read_found(description["found"], model._found)
    names = saved.forest.schema.columns
    model.n_features_in_ = len(names)
    if saved.named:
        model.feature_names_in_ = np.array(names, dtype=object)
    if saved.validation_scores is not None:
        model.validation_scores_ = saved.validation_scores
    model.__dict__.update(fitted_attributes(saved.forest.classes, saved.trace, saved.forest), **found)
    return model
