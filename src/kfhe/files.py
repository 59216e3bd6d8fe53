"""Output files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that it is never half there, and an existing one is lost only to the new one.

    Folders that are missing are made. What is no regular file, such as a pipe, is written to directly.

    Raises
    ------
    OSError
        The file can't be written: its message names the file and the reason.
    """
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written as by `write_whole`, piece by piece; it is there once all has gone well."""
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        if target.exists() and not (target.is_file() or target.is_dir()):
            with open(target, "wb") as file:
                yield file
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)  # some file systems notice only now that they are full
            # Closed by now, for Windows moves no open file; and mkstemp made it for the owner only.
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):  # Ctrl-C may come when it has its name already
                os.unlink(temporary)
            raise
    except OSError as error:
        raise type(error)(f"{path}: can't be written: {error.strerror or error}") from error


def unwritable(output: Path, *inputs: Path) -> str | None:
    """Return why an output would overwrite an input, or can't be made; None if neither is the case."""
    if output.is_dir():
        return f"{output} is a folder; give the name of a file"
    nearest = next(parent for parent in output.absolute().parents if parent.exists())
    if not nearest.is_dir():
        return f"{output} can't be made: {nearest} is no folder"
    if any(output.is_file() and path.is_file() and output.samefile(path) for path in inputs):
        return f"{output} is the input; choose another file"
    return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
