"""Model files: a fitted ensemble of native trees as arrays and a JSON header, that anyone may open.

A file is in the safetensors format: little-endian arrays behind a header of JSON, whose metadata describe the model.
Reading it runs no code from it and unpacks nothing: it takes memory in proportion to the file's size. Everything is
checked, by a checksum over all of its bytes and then one by one, before it is used.

Versions: a file has a format number, now 1. Every version of kfhe reads the files of all versions before it. The number
changes only when an older version could no longer read a file rightly; that version then says so. The place of the
number and the checksum stay as they are for good.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from sklearn.utils.validation import check_is_fitted

from kfhe import model_header as header
from kfhe.classifier import KFHEClassifier
from kfhe.files import write_whole
from kfhe.forest import Forest
from kfhe.packed_forest import pack, unpack

FORMAT = 1
LONGEST_HEADER = 100_000_000  # bytes, as in safetensors
NO_CHECKSUM = "0" * 64  # stands where the checksum goes, while it is computed

File = str | os.PathLike[str] | BinaryIO


class ModelFileError(ValueError):
    """A model file can't be read: the message says what is wrong with it and what to do."""


def save(model: KFHEClassifier, file: File) -> None:
    """Write a fitted model; see `KFHEClassifier.save`."""
    check_is_fitted(model)
    forest = model.estimators_
    if not isinstance(forest, Forest):
        raise ValueError(
            f"only models of native trees (estimator=None) can be saved, this one has components of type "
            f"{type(model.estimator).__name__}; save it with skops.io.dump"
        )
    arrays = pack(forest)
    arrays["trace"] = np.array([model.trace_[name] for name in model.trace_.columns], dtype=np.float64)
    description = {
        "checksum": NO_CHECKSUM,  # the first of its kind in the file, as nothing before it is the user's
        "format": FORMAT,
        "kfhe": version("kfhe"),
        "parameters": header.write_parameters(model.get_params(deep=False)),
        "classes": header.write_array(model.classes_, "classes"),
        "columns": header.write_schema(forest.schema),
        "named": hasattr(model, "feature_names_in_"),
        "soft": forest.soft,
        "trace": model.trace_.columns,
    }
    # One entry: safetensors gives several no order, and the same model should give the same file.
    content = save_arrays(arrays, {"kfhe": json.dumps(description, separators=(",", ":"))})
    content = content.replace(NO_CHECKSUM.encode(), hashlib.sha256(content).hexdigest().encode(), 1)
    if hasattr(file, "write"):
        file.write(content)
    else:
        write_whole(file, content)


def load(file: File) -> KFHEClassifier:
    """Read a model from a file that `KFHEClassifier.save` has written.

    A file can come from a stranger: loading runs no code from it, and a damaged or forged one is an error.
    The model predicts the same bits as the one that was saved, and can be shown, exported, cloned and fitted
    again. A function that was its `emphasis` is not in the file: set the parameter before fitting again.

    Parameters
    ----------
    file : str, path or binary file
        Where to read.

    Returns
    -------
    KFHEClassifier
        The fitted classifier.

    Raises
    ------
    ModelFileError
        The file is damaged, no model file at all, or needs a newer version of kfhe. Each version reads the files of
        all versions before it.
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
    if not hasattr(file, "read"):
        with open(file, "rb") as opened:
            return load(opened)
    try:
        return _model(*_read(file))
    except ValueError as error:
        raise ModelFileError(f"{getattr(file, 'name', 'model file')}: {error}") from None


def _read(file: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Return the description of the model and the whole file, once they are known to be ours and undamaged."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if not start:
        raise ValueError("the file is empty: was it saved to the end?")
    head = _read_up_to(file, length) if length <= LONGEST_HEADER else b""
    if length > len(head) and head.startswith(b'{"__metadata__":{"kfhe":'):
        raise _damaged("it is cut off")
    try:
        text = header.parse(head)["__metadata__"]["kfhe"]
        description = header.parse(text)
        checksum, number, writer = (description[name] for name in ("checksum", "format", "kfhe"))
        place = head.index(checksum.encode())
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(
            "this is no model file of kfhe, or a damaged one; model.save(...) makes one"
        ) from None
    content = b"".join([start, head, file.read()])
    digest = hashlib.sha256(memoryview(content)[: place + 8])
    digest.update(NO_CHECKSUM.encode())
    digest.update(memoryview(content)[place + 8 + len(NO_CHECKSUM) :])
    if digest.hexdigest() != checksum:
        raise _damaged("its checksum is wrong")
    if number != FORMAT:
        raise ValueError(
            f"it is in format {number!r}, written by kfhe {writer}; this is kfhe {version('kfhe')}, which reads "
            f"format {FORMAT}: pip install --upgrade kfhe"
        )
    return description, content


def _read_up_to(file: BinaryIO, length: int) -> bytes:
    """Read in pieces: a wrong length takes no more memory than there are bytes."""
    pieces = []
    while length > 0 and (piece := file.read(min(length, 1 << 20))):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _damaged(how: str) -> ValueError:
    return ValueError(f"the file is damaged: {how}. Get another copy, or save the model again")


def _model(description: dict[str, Any], content: bytes) -> KFHEClassifier:
    """Make the model, whose every part is checked."""
    try:
        arrays = load_arrays(content)
        trace = header.read_trace(description["trace"], arrays.pop("trace"))
        classes = header.read_classes(description["classes"])
        schema = header.read_schema(description["columns"])
        soft, named = description["soft"], description["named"]
        if type(soft) is not bool or type(named) is not bool:
            raise ValueError("its voting or its names are not as they should be")
        forest = unpack(arrays, schema, classes, soft=soft)
        if len(forest) != len(trace) + 1:
            raise ValueError("its trace is for another number of components")
        model = KFHEClassifier(**header.read_parameters(description["parameters"]))
        model._validate_params()
    except KeyError as error:
        raise _damaged(f"it has no {error}") from None
    except (SafetensorError, TypeError, ValueError) as error:
        raise _damaged(str(error)) from None
    model.n_features_in_ = len(schema.names)
    if named:
        model.feature_names_in_ = np.array(schema.names, dtype=object)
    model._adopt(classes, trace, forest)
    return model
