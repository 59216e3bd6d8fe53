"""Exports of fitted models to ONNX, JSON and shap, all of them exact.

Model files that kfhe reads again are written by `kfhe.saving`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kfhe.display.text import needed

if TYPE_CHECKING:
    import onnx

    from kfhe.export.shap_explainer import ForestExplainer

__all__ = ["to_json", "to_onnx", "to_shap"]


def to_onnx(model: Any) -> onnx.ModelProto:
    """Return a model as an ONNX graph, for onnxruntime and other runtimes without Python.

    The graph has the outputs ``label``, of shape (n_samples,), and ``probabilities``, float32 of shape
    (n_samples, n_classes). If a column has such a name, an underscore is added to that of the output.

    If all columns are numeric, there is one input ``X``, float64 of shape (n_samples, n_features). Otherwise,
    there is one input per column, of shape (n_samples, 1) and with the name of the column: strings if its
    categories are strings, float64 otherwise. Thresholds are float64 as well, so the predictions are those of
    the model. NaN is a missing number. The empty string is a missing category; any other string that is not a
    category is an unknown one.

    The package ``onnx`` is needed: ``pip install "kfhe[onnx]"``.

    Parameters
    ----------
    model : KFHEClassifier or CARTClassifier
        A fitted model of native trees.

    Returns
    -------
    onnx.ModelProto
        The graph. ``SerializeToString()`` returns the contents of an ``.onnx`` file.

    Examples
    --------
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.export import to_onnx
    >>> X = pd.DataFrame({"size": [1.0, 2.0, None, 4.0] * 10, "city": ["Cork", "Cork", "Sligo", None] * 10})
    >>> y = ["low", "low", "high", "high"] * 10
    >>> model = KFHEClassifier(random_state=0).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> table = {"size": X[["size"]].to_numpy(), "city": X[["city"]].to_numpy(dtype=object)}
    >>> label, probabilities = session.run(None, table)
    >>> print(label[:4])
    ['low' 'low' 'high' 'high']
    """
    with needed("this export needs the package onnx", "onnx"):
        from kfhe.export.onnx_graph import onnx_model
    return onnx_model(model)


def to_json(model: Any) -> str:
    """Return a model as JSON text, for other programs and for reading: one line per node.

    The text is an object with

    - ``format``: "kfhe trees", and ``version``: 1;
    - ``classes``: the class labels;
    - ``features``: for each feature its ``name`` and its ``categories``, null for a numeric one. A column
      of many categories has several features, or none if it says nothing: each is the share of a class
      in the categories of a ``column``, which ``shares`` lists; ``other`` is that of all other categories.
      Where the category is missing, the feature is missing, too;
    - ``trees``: each with its ``weight``, its ``voting`` ("hard" or "soft") and its ``nodes``, root first.

    A node is a leaf, with ``class_weights``: the weight of its training rows of each class (and ``votes``, if
    these are not the shares of the weights, as in a `RobustKFHEClassifier`). Or it is a split, with the name
    of its ``feature``, and the numbers of its children, ``left`` and ``right``. Numbers up to ``threshold``
    go left (null: all numbers do); of a categorical feature, the listed ``categories`` go left. Missing
    values, and categories that the feature does not have, go to the side in ``missing``.

    A tree votes for the class with the largest weight in the leaf, the first one if several are equal;
    with ``voting`` "soft", by the class shares of the weight. The scores of a row are the sum of the
    votes times the weights of the trees. Numbers are written with all digits: a program that calculates in
    float64, tree by tree, gets exactly the scores of the model; a score that rounding brought above 1
    is 1.

    The class with the highest score is predicted; in a `RobustKFHEClassifier`, the highest score times
    ``class_factors``. Its probabilities are the scores to the power of ``sharpness``, if given, divided by
    their sum.

    Parameters
    ----------
    model : KFHEClassifier or CARTClassifier
        A fitted model of native trees.

    Returns
    -------
    str
        The JSON text.

    Examples
    --------
    >>> from kfhe import CARTClassifier
    >>> from kfhe.export import to_json
    >>> tree = CARTClassifier(min_samples_leaf=1, min_samples_split=2).fit([[1], [2], [4]], [0, 0, 1])
    >>> print(to_json(tree))
    {"format": "kfhe trees", "version": 1, "classes": [0, 1],
    "features": [
    {"name": "0", "categories": null}
    ],
    "trees": [
    {"weight": 1.0, "voting": "soft", "nodes": [
    {"feature": "0", "threshold": 3.0, "missing": "left", "left": 1, "right": 2},
    {"class_weights": [2, 0]},
    {"class_weights": [0, 1]}
    ]}
    ]}
    """
    from kfhe.export.json_text import json_text

    return json_text(model)


def to_shap(model: Any, background: Any = None) -> ForestExplainer:
    """Return an explainer of the package shap with the exact SHAP values of a model's scores.

    It is a `shap.TreeExplainer` for the same tables as the model, with strings and missing values.
    (``shap.TreeExplainer(model)`` does not work, because shap only supports a fixed list of classes.) Called
    with a table, it returns a `shap.Explanation` for shap's plots, with values of shape (n_samples,
    n_features, n_classes). Values and base values add up to ``predict_proba``; in a `RobustKFHEClassifier`,
    to the scores, of which probabilities are powers (``sharpness`` of its ``estimators_``).

    SHAP values compare a prediction with one where features are unknown. With ``background``, they are
    replaced by values from its rows (shap's "interventional", in single precision). Without it, both sides of
    their splits are averaged, by the weight of the training rows (shap's "tree_path_dependent").

    The package ``shap`` is needed: ``pip install "kfhe[shap]"``.

    Parameters
    ----------
    model : KFHEClassifier or CARTClassifier
        A fitted model of native trees.
    background : array or data frame, default=None
        Rows to compare with. A hundred are enough; the time is proportional to their number.

    Returns
    -------
    shap.TreeExplainer
        The explainer.

    Raises
    ------
    ValueError
        A tree is too large for shap. Its trees have no sets of categories: a split of many categories becomes
        several splits, and the subtrees below it are copied.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.export import to_shap
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = KFHEClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> explanation = to_shap(model, background=X[::10])(X[:5])
    >>> explanation.shape
    (5, 4, 3)
    >>> scores = explanation.base_values + explanation.values.sum(axis=1)
    >>> bool((abs(scores - model.predict_proba(X[:5])) < 1e-6).all())
    True
    """
    with needed("this export needs the package shap", "shap"):
        from kfhe.export.shap_explainer import ForestExplainer
    return ForestExplainer(model, background)
