"""Model files: a fitted ensemble of native trees as arrays and a JSON header.

A file is in the safetensors format: little-endian arrays after a header, whose metadata describe the model in
JSON. It contains no code and is not compressed, so it can't do harm, and loading takes memory in proportion
to its size. It has a checksum over all bytes, and its contents are validated before they are used.

A file has a format number, and each version of kfhe reads a single format. Anything that no model of this
version has, such as an unknown parameter, is an error.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from kfhe.engine.threads import thread_count
from kfhe.files import write_whole
from kfhe.forest import DECISIONS, SCORE_SETTINGS, Forest
from kfhe.saving import header
from kfhe.saving.packed_forest import pack, unpack
from kfhe.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 1
LONGEST_HEADER = 100_000_000  # bytes, as in safetensors
NO_CHECKSUM = b"0" * 64  # placeholder while the checksum is computed

File = str | os.PathLike[str] | BinaryIO
T = TypeVar("T")


class ModelFileError(ValueError):
    """A model file can't be read. The message says what is wrong and what to do."""


def save(model: Any, file: File) -> None:
    """Write a fitted model; see `KFHEClassifier.save`.

    Classes that `load` supports have `_saved_as`. A subclass would be loaded as another class.
    """
    from importlib.metadata import version

    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    _check_file(file, "write")
    model._validate_params()
    kind = vars(type(model)).get("_saved_as")
    if kind is None:
        raise ValueError(
            f"{type(model).__name__} can't be saved: a file holds no code, so it would be loaded as "
            f"{model._saved_as}; use skops.io.dump"
        )
    forest = model.estimators_
    if not isinstance(forest, Forest):
        raise ValueError(
            "only models of native trees (estimator=None, or a CARTClassifier) can be saved, this one has "
            f"components of type {', '.join(dict.fromkeys(type(each).__name__ for each in forest))}; use "
            "skops.io.dump"
        )
    arrays = pack(forest)
    trace = model.trace_.lasting()  # without seconds, so that equal models give equal files
    arrays["trace"] = np.array(list(trace.values()), dtype=np.float64)
    if hasattr(model, "validation_scores_"):
        arrays["validation_scores"] = model.validation_scores_
    description = {
        "checksum": NO_CHECKSUM.decode(),  # first, so that no other zeros precede it
        "format": FORMAT,
        "kfhe": version("kfhe"),
        "class": kind,
        "parameters": header.write_parameters(model.get_params(deep=False)),
        "classes": header.write_array(model.classes_, "classes"),
        "columns": header.write_schema(forest.schema),
        "named": hasattr(model, "feature_names_in_"),
        "soft": forest.soft,
        "rules": {name: getattr(forest, name) for name in SCORE_SETTINGS},
        "found": {name: getattr(model, name) for name in model._found},
        "trace": list(trace),
    }
    # A single entry, because several would have no fixed order, and equal models should give equal files.
    content = save_arrays(arrays, {"kfhe": json.dumps(description, separators=(",", ":"))})
    if int.from_bytes(content[:8], "little") > LONGEST_HEADER:
        raise ValueError(
            "the model's categories are too many for a file: more than 100 MB; leave out columns that are "
            "different in each row, or use skops.io.dump"
        )
    content = content.replace(NO_CHECKSUM, hashlib.sha256(content).hexdigest().encode(), 1)
    if isinstance(file, str | os.PathLike):
        write_whole(file, content)
    else:
        file.write(content)


@dataclass(frozen=True)
class SavedForest:
    """The contents of a model file for prediction.

    Attributes
    ----------
    forest : Forest
        The trees, the classes, and the schema.
    trace : Trace
        The trace of the training.
    named : bool
        Whether the training columns had names.
    validation_scores : ndarray or None
        Scores of the validation set, if there was one.
    """

    forest: Forest
    trace: Trace
    named: bool
    validation_scores: NDArray[np.float64] | None

    def deciding(self, decision: str | float | None) -> SavedForest:
        """Return the model with another decision rule; None: unchanged.

        Raises
        ------
        ValueError
            The model has no such rule, because it always predicts the most likely class.
        """
        if decision is None or (decision == "likeliest" and not self.forest.class_shares):
            return self
        if not self.forest.class_shares:
            raise ValueError("--decision is for robust models; this one always predicts the likeliest class")
        power = float(DECISIONS.get(decision, decision))
        return replace(self, forest=replace(self.forest, prior_power=power))

    def predict(self, X: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return predicted classes and probabilities for a table with exactly the model's columns."""
        return self.predict_rows(self.forest.encoded(X), thread_count())

    def predict_rows(
        self, rows: Any, n_threads: int, *, proba: bool = True
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the same for rows as numbers; without `proba`, probabilities are not computed."""
        if not proba:
            return self.forest.encoded_decisions(rows, n_threads), np.empty((len(rows), 0))
        scores = self.forest.encoded_scores(rows, n_threads)
        return self.forest.decide(scores), self.forest.probabilities(scores)


def load_forest(file: File) -> SavedForest:
    """Load only what prediction needs, without importing scikit-learn, which is slow."""
    return read_file(file, read_forest)


def read_file(file: File, make: Callable[[dict[str, Any], bytes], T]) -> T:
    """Read a file and build an object from its header and contents; errors name the file."""
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            return read_file(opened, make)
    _check_file(file, "read")
    try:
        return make(*_read(file))
    except ValueError as error:
        raise ModelFileError(f"{getattr(file, 'name', 'model file')}: {error}") from None


def _check_file(file: File, method: str) -> None:
    """Raise unless it is a path, or a binary file with a given method."""
    if isinstance(file, str | os.PathLike):
        return
    if isinstance(file, io.TextIOBase) or not hasattr(file, method):
        raise TypeError(f"a model file is a path, or a file opened in binary mode; got {file!r:.100}")


def _read(file: BinaryIO) -> tuple[dict[str, Any], bytes]:
    """Return the header and the whole file, after checking format and checksum."""
    start = _read_up_to(file, 8)
    length = int.from_bytes(start, "little")
    if not start:
        raise ValueError("the file is empty. Save the model again")
    head = _read_up_to(file, length) if length <= LONGEST_HEADER else b""
    if len(head) < length and head.startswith(b'{"__metadata__":{"kfhe":'):
        raise _damaged("it is cut off")
    try:
        description = header.parse(header.parse(head)["__metadata__"]["kfhe"])
        checksum, number, writer = (description[name] for name in ("checksum", "format", "kfhe"))
        place = 8 + head.index(checksum.encode())
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(
            "this is not a model file of kfhe, or it is damaged; model.save(...) writes one"
        ) from None
    content = b"".join([start, head, file.read()])
    digest = hashlib.sha256(memoryview(content)[:place])
    digest.update(NO_CHECKSUM)
    digest.update(memoryview(content)[place + len(NO_CHECKSUM) :])
    if digest.hexdigest() != checksum:
        raise _damaged("its checksum is wrong")
    if number != FORMAT:
        from importlib.metadata import version

        raise ValueError(
            f"it has format {number!r:.20}, of kfhe {writer!s:.20}; this is kfhe {version('kfhe')}, which "
            f"reads format {FORMAT}. Install that one, or save the model again"
        )
    return description, content


def _read_up_to(file: BinaryIO, length: int) -> bytes:
    """Read in pieces, so that a wrong length takes no more memory than there are bytes."""
    pieces = []
    while length > 0 and (piece := file.read(min(length, 1 << 20))):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _damaged(how: str) -> ValueError:
    how = how.rstrip(".") if len(how) < 300 else f"{how[:300]} ..."  # it may quote the file
    return ValueError(f"the file is damaged: {how}. Get another copy of it, or save the model again")


def read_forest(description: dict[str, Any], content: bytes) -> SavedForest:
    """Create the forest from validated parts."""
    with told_as_damage():
        arrays = load_arrays(content)
        trace = header.read_trace(description["trace"], arrays["trace"])
        classes = header.read_classes(description["classes"])
        schema = header.read_schema(description["columns"])
        soft, named = description["soft"], description["named"]
        if type(soft) is not bool or type(named) is not bool:
            raise ValueError("there is something wrong with its voting or its names")
        rules = header.read_score_settings(description["rules"], len(classes))
        forest = unpack(arrays, schema, classes, trace["step"], soft=soft)
        forest = replace(forest, transitions=trace["transition"], **rules)
        scores = arrays.get("validation_scores")
        if scores is not None and (scores.dtype.str[1:] != "f8" or scores.ndim != 1):
            raise ValueError("there is something wrong with its validation scores")
    return SavedForest(forest, trace, named, scores)


@contextmanager
def told_as_damage() -> Iterator[None]:
    """Turn errors in the parts of a file into errors about a damaged file."""
    try:
        yield
    except KeyError as error:
        raise _damaged(f"it lacks {error}") from None
    except (SafetensorError, TypeError, ValueError) as error:
        raise _damaged(str(error)) from None
