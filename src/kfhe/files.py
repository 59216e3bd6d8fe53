"""Output files, which are complete or absent, and the streams that replace files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

NAME = 40  # letters of a file's name in that of the file which becomes it: all of it may leave no room


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that it is never half there, and an existing one is lost only to the new one.

    Folders that are missing are made. What is no regular file, such as a pipe, is written to directly. A file
    that is there keeps its mode: who may read one may read the other.

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
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:NAME]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)  # some file systems notice only now that they are full
            # Closed by now, for Windows moves no open file; and mkstemp made it for the owner only.
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):  # Ctrl-C may come when it has its name already
                os.unlink(temporary)
            raise
    except OSError as error:
        raise type(error)(f"{path}: can't be written: {error.strerror or error}") from error


def standard_input() -> BinaryIO:
    """Return standard input as bytes; raise if it is closed."""
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Return standard output as bytes; raise if it is closed."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    return sys.stdout.buffer


def _mode(target: Path) -> int:
    """Return who may do what with a file: what they may now, else what the umask allows."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
