"""Output files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that it is never half there, and an existing one is lost only to the new one.

    Folders that are missing are made. What is no regular file, such as a pipe, is written to directly.

    Raises
    ------
    OSError
        The file can't be written: its message names the file and the reason.
    """
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        if target.exists() and not (target.is_file() or target.is_dir()):
            target.write_bytes(data)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)  # some file systems notice only now that they are full
                # mkstemp makes files for the owner only
                os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise type(error)(f"{path}: can't be written: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
