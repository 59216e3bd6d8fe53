"""Loading a model from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfhe.base import BaseKFHE, fitted_attributes
from kfhe.classifier import KFHEClassifier
from kfhe.robust import RobustKFHEClassifier
from kfhe.saving import header
from kfhe.saving.model_file import File, read_file, read_forest, told_as_damage

# Classes that a file can contain
MODELS: dict[str, type[BaseKFHE]] = {kind._saved_as: kind for kind in (KFHEClassifier, RobustKFHEClassifier)}


def load(file: File) -> Any:
    """Read a model from a file that `KFHEClassifier.save` has written.

    Files from strangers are safe: loading runs no code, and a damaged or forged file raises an error. The
    loaded model makes exactly the same predictions, and can be shown, exported, cloned and fitted again. A
    function as `emphasis` is not in the file: set this parameter before fitting again.

    Parameters
    ----------
    file : str, path or binary file
        The file.

    Returns
    -------
    KFHEClassifier or RobustKFHEClassifier
        The fitted classifier, of the class that was saved.

    Raises
    ------
    ModelFileError
        The file is damaged, is not a model file, or has another format.
    OSError
        The file does not exist, or can't be read.

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
    """Create the model from validated parts."""
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
