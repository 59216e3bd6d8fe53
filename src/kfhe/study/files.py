"""Output files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kfhe.study.errors import StudyError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is never half there, and an existing one is lost only to the new one."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                # mkstemp makes files for the owner only
                os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise StudyError(f"{path}: can't be written: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
