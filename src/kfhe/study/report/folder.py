"""The folder of a report: it records what was written, so that files of earlier reports are removed."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from kfhe.files import write_whole

LIST = ".report-files.json"


class ReportFolder:
    """Writes the files of a report; `with` removes those of an earlier one that are not written again.

    A list in the folder holds what was written, with digests. What is not in it, or has been changed since,
    is somebody else's and stays.

    Parameters
    ----------
    path : path
        The folder. It is made if need be.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._written: dict[str, str] = {}

    def __enter__(self) -> ReportFolder:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        earlier = self._listed()
        if error is None:
            for name, digest in earlier.items():
                if name not in self._written:
                    self._remove(name, digest)
            earlier = {}
        if self._written:  # what a report that was cut short has written is known to the next one
            # The error that cut it short is the one to be told
            with suppress(OSError) if error else nullcontext():
                write_whole(self.path / LIST, json.dumps(earlier | self._written, indent=0))

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file; its name may have a folder in it, after a slash."""
        content = content.encode() if isinstance(content, str) else content
        write_whole(self.path / name, content)
        self._written[name] = _digest(content)
        return self.path / name

    def _listed(self) -> dict[str, str]:
        try:
            listed = json.loads((self.path / LIST).read_bytes())
        except (OSError, ValueError):
            return {}
        return listed if isinstance(listed, dict) else {}

    def _remove(self, name: str, digest: str) -> None:
        file = self.path / name
        with suppress(OSError):  # it is gone already, or not ours to remove
            inside = file.resolve().is_relative_to(self.path.resolve())
            if inside and _digest(file.read_bytes()) == digest:
                file.unlink()
                if file.parent != self.path:
                    file.parent.rmdir()  # if nothing is left in it


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
