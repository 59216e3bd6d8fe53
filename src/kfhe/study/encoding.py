"""Encodings: how categories and missing values are passed to a classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Categorical(NamedTuple):
    """Which columns of a table hold categories: their names and positions."""

    names: list[str]
    positions: list[int]

    @classmethod
    def of(cls, X: Any) -> Categorical:
        """Find them in a data frame; an array has none."""
        if not hasattr(X, "dtypes"):
            return cls([], [])
        names = [name for name, dtype in X.dtypes.items() if dtype == "category"]
        return cls(names, [X.columns.get_loc(name) for name in names])


def encoding_steps(encoding: str, categorical: Categorical, classifier: Any) -> list[Any]:
    """Return the steps that make a data frame fit for a classifier; none if it takes it as it is."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    if encoding == "native":
        return []
    if encoding == "text":
        return [FunctionTransformer(_gaps_as_text, kw_args={"categorical": categorical.names})]
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    if encoding == "codes":
        return [FunctionTransformer(_codes), median]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    if encoding == "target encoding":
        encoder = _target_encoder()
    numbers = "passthrough" if _tags(classifier).allow_nan else median
    if encoding == "one-hot, scaled" and not _tags(classifier).positive_only:
        numbers = make_pipeline(numbers, StandardScaler())
    return [make_column_transformer((encoder, categorical.names), remainder=numbers)]


def _target_encoder() -> Any:
    """Return scikit-learn's target encoder, with the same folds each time."""
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import TargetEncoder

    if "deprecated" in TargetEncoder().get_params().values():  # from 1.9 on
        return TargetEncoder(cv=KFold(5, shuffle=True, random_state=0))
    return TargetEncoder(random_state=0)


def _tags(classifier: Any) -> Any:
    """Return what a classifier says of the input that it takes."""
    from sklearn.utils import InputTags, get_tags

    try:
        return get_tags(classifier).input_tags
    except (AttributeError, TypeError):  # a classifier of somebody else's that knows no tags
        return InputTags()


def _codes(X: Any) -> Any:
    """Return the columns as numbers, categories by their codes; a gap is a category of its own."""
    columns = []
    for name in X.columns:
        column = X[name]
        if column.dtype == "category":
            codes = column.cat.codes.to_numpy(np.float64)
            columns.append(np.where(codes < 0, len(column.cat.categories), codes))
        else:
            columns.append(column.to_numpy(np.float64))
    return np.column_stack(columns)


def _gaps_as_text(X: Any, categorical: list[str]) -> Any:
    filled = X.copy()
    for name in categorical:
        filled[name] = X[name].astype(object).fillna("(missing)").astype(str)
    return filled
