"""Optional packages: where one is missing, the error says which extra brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(who: str, extra: str) -> Iterator[None]:
    """Say of a package that can't be imported here who needs it, and which extra brings it.

    Examples
    --------
    >>> from kfhe.extras import needed
    >>> with needed("a telescope needs lenses", "telescope"):
    ...     import lenses
    Traceback (most recent call last):
    ImportError: a telescope needs lenses: pip install "kfhe[telescope]"
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{who}: pip install "kfhe[{extra}]"', name=error.name) from error
