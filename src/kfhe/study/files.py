"""Output files of a study."""

from __future__ import annotations

from pathlib import Path

from kfhe import files
from kfhe.study.errors import StudyError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    try:
        files.write_whole(path, content)
    except OSError as error:
        raise StudyError(str(error)) from error
