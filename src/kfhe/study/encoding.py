"""Encodings: how categories and missing values are passed to a classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Categorical(NamedTuple):
    """The categorical columns of a table: names and positions."""

    names: list[str]
    positions: list[int]

    @classmethod
    def of(cls, X: Any) -> Categorical:
        """Return those of a data frame; an array has none."""
        if not hasattr(X, "dtypes"):
            return cls([], [])
        names = [name for name, dtype in X.dtypes.items() if dtype == "category"]
        return cls(names, [X.columns.get_loc(name) for name in names])


def encoding_steps(encoding: str, categorical: Categorical, classifier: Any) -> list[Any]:
    """Return the steps that encode a data frame for a classifier; none if it needs no encoding."""
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
    """Return scikit-learn's target encoder with fixed folds."""
    from sklearn.model_selection import KFold
    from sklearn.preprocessing import TargetEncoder

    if "deprecated" in TargetEncoder().get_params().values():  # from 1.9 on
        return TargetEncoder(cv=KFold(5, shuffle=True, random_state=0))
    return TargetEncoder(random_state=0)


def _tags(classifier: Any) -> Any:
    """Return a classifier's tags for its input."""
    from sklearn.utils import InputTags, get_tags

    try:
        return get_tags(classifier).input_tags
    except (AttributeError, TypeError):  # third-party classifiers may have no tags
        return InputTags()


def _codes(X: Any) -> Any:
    """Return the columns as numbers: categories become codes, including one for missing values."""
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
