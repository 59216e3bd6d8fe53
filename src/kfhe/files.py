"""Output files that are complete or absent, and standard streams."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

NAME = 40  # characters of a file's name in its temporary name; more may be too long


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file completely or not at all; an existing file stays until the new one is complete.

    Missing folders are created. A target that is not a regular file, such as a pipe, is written to directly.
    An existing file keeps its mode.

    Raises
    ------
    OSError
        The file can't be written. The message names the file and the reason.
    """
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing as `write_whole` does; it appears when the block ends without an error."""
    target = Path(os.path.realpath(path))  # links are followed
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
                os.fsync(handle)  # some file systems report only now that they are full
            # The file is closed here, as Windows can't rename open files; mkstemp made it readable for the
            # owner only.
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):  # after Ctrl-C it may have been renamed already
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
    """Return the mode of an existing file, else what the umask allows."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
