"""Progress bars of commands: shown on a terminal only, and removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROBE = 1 << 20  # bytes from which the number of rows in a csv is estimated


@contextmanager
def bar(what: str, total: float | None, *, output: Path | None = None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; call the result with each amount of work done.

    There is no bar if standard error is not a terminal, or if the output is printed on the same terminal.
    """
    printed = str(output) == "-" and sys.stdout is not None and sys.stdout.isatty()
    if printed or not sys.stderr.isatty():
        yield lambda amount: None
        return
    from kfhe.display import progress

    with progress.bar(what, total, transient=True) as update:
        yield lambda amount: update(advance=amount)


def rows_of(path: Path) -> int | None:
    """Return the approximate number of rows of a table file; None if it would take reading all of it."""
    if not path.is_file() or path.suffix not in (".csv", ".parquet"):
        return None
    if path.suffix == ".parquet":
        import polars as pl

        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    with open(path, "rb") as file:
        start = file.read(PROBE)
    lines = start.count(b"\n") * path.stat().st_size / max(1, len(start))
    return max(1, round(lines) - 1)
