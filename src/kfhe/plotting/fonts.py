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
    """Select fonts for all text of a figure; matplotlib warns of characters that no installed font has."""
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
    """Return families of installed fonts for some characters, as far as there are any."""
    families: list[str] = []
    for entry in sorted(fontManager.ttflist, key=_plain_first):
        if "lastresort" in Path(entry.fname).stem.lower().replace("-", ""):
            continue  # it has a placeholder for every character
        if found := letters and _letters_in(entry.fname, letters):
            families.append(entry.name)
            letters -= found
    return tuple(families)


def _plain_first(entry: FontEntry) -> tuple[bool, bool, str, str]:
    """Sort key that puts matplotlib's plain font first, in the same order on each machine."""
    chosen = entry.name in rcParams["font.sans-serif"]
    return not chosen, "regular" not in entry.fname.lower(), entry.name, entry.fname


def _texts(figure: FigureBase) -> Iterator[Text]:
    axes: list[Axes] = figure.axes  # type: ignore[assignment]
    for ax in axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # ticks get their text only now
    yield from figure.findobj(Text)


def _can_be_seen(letter: str) -> bool:
    """Whether a character is visible, and not a mark that changes its neighbours."""
    joins = unicodedata.category(letter) in ("Cf", "Cc") or 0xFE00 <= ord(letter) <= 0xFE0F
    return not (joins or letter.isspace())


def _letters_in(path: str, letters: Letters) -> Letters:
    """Return the characters that a font can draw; matplotlib can't draw fonts with colours."""
    try:
        font = get_font(path)
        known = font.get_charmap() if font.scalable else {}
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(letter for letter in letters if ord(letter) in known)
