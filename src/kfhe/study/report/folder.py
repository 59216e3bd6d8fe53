"""The folder of a report, with a list of its files, so that files of earlier reports can be removed."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from kfhe.files import write_whole

LIST = ".report-files.json"


class ReportFolder:
    """Writes the files of a report; the end of `with` removes outdated files of an earlier one.

    A list in the folder has the written files, with digests. Other files, or files that have been changed
    since, are never removed.

    Parameters
    ----------
    path : path
        The folder. It is created if it does not exist.
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
        if self._written:  # after an error, the next report must know what was written
            # Raise the original error
            with suppress(OSError) if error else nullcontext():
                write_whole(self.path / LIST, json.dumps(earlier | self._written, indent=0))

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file; its name may contain a folder."""
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
        with suppress(OSError):  # it is gone already, or can't be removed
            inside = file.resolve().is_relative_to(self.path.resolve())
            if inside and _digest(file.read_bytes()) == digest:
                file.unlink()
                if file.parent != self.path:
                    file.parent.rmdir()  # only if it is empty


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
