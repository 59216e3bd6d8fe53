"""Fallback fonts for names in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.font_manager import FontEntry, FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

Letters = frozenset[str]


def cover(figure: FigureBase) -> None:
    """Let all texts of a figure be written; matplotlib warns of letters that no installed font has."""
    for text in _texts(figure):
        families = text.get_fontfamily()
        letters = frozenset(filter(_can_be_seen, text.get_text()))
        for family in [families] if isinstance(families, str) else families:
            if letters:
                letters -= _letters_in(findfont(FontProperties(family=[family])), letters)
        if letters and (others := families_with(letters)):
            text.set_fontfamily([*families, *others])


@lru_cache(maxsize=256)
def families_with(letters: Letters) -> tuple[str, ...]:
    """Return families of installed fonts that have these letters, as far as there are any."""
    families: list[str] = []
    for entry in sorted(fontManager.ttflist, key=_plain_first):
        if "lastresort" in Path(entry.fname).stem.lower().replace("-", ""):
            continue  # it has a box for every letter
        if found := letters and _letters_in(entry.fname, letters):
            families.append(entry.name)
            letters -= found
    return tuple(families)


def _plain_first(entry: FontEntry) -> tuple[bool, bool, str, str]:
    """Sort by this for matplotlib's own choice of a plain font first, in the same order on each machine."""
    chosen = entry.name in rcParams["font.sans-serif"]
    return not chosen, "regular" not in entry.fname.lower(), entry.name, entry.fname


def _texts(figure: FigureBase) -> Iterator[Text]:
    axes: list[Axes] = figure.axes  # type: ignore[assignment]
    for ax in axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # they get their texts only now
    yield from figure.findobj(Text)


def _can_be_seen(letter: str) -> bool:
    """Whether it is neither a space nor tells how to draw the letters beside it."""
    joins = unicodedata.category(letter) in ("Cf", "Cc") or 0xFE00 <= ord(letter) <= 0xFE0F
    return not (joins or letter.isspace())


def _letters_in(path: str, letters: Letters) -> Letters:
    """Return which of these letters a font can draw; pictures in colours are none that matplotlib can."""
    try:
        font = get_font(path)
        known = font.get_charmap() if font.scalable else {}
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(letter for letter in letters if ord(letter) in known)
