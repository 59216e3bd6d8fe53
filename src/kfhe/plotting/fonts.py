"""Fonts for names in any script: what the chosen font can't write is written in one that can."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

Letters = frozenset[str]

EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC")  # one font has them all
_told: set[str] = set()  # letters that a warning has named


def cover(figure: FigureBase) -> None:
    """Let all texts of a figure be written; warn, once, of letters that no installed font has."""
    missing = {text: letters for text in _texts(figure) if (letters := _missing(text))}
    if not missing:
        return
    families, without = fonts_for(frozenset().union(*missing.values()))
    for text in missing:
        text.set_fontfamily([*text.get_fontfamily(), *families])
    untold = sorted(without - _told)
    if untold:
        _told.update(untold)
        fonts = ", ".join(sorted({_font_with(letter) for letter in untold}))
        some = " ".join(untold[:20]) + (" …" if len(untold) > 20 else "")
        warnings.warn(
            f"no installed font has {some} : boxes are drawn instead. Install a font that has them: {fonts}",
            stacklevel=2,
        )


@lru_cache(maxsize=64)
def fonts_for(letters: Letters) -> tuple[tuple[str, ...], Letters]:
    """Return families of installed fonts that have these letters, as few as can be, and letters in none."""
    had = {path: found for path in _installed() if (found := _letters_in(path, letters))}
    families: list[str] = []
    while letters and had:
        best = max(had, key=lambda path: len(had[path] & letters))
        if not had[best] & letters:
            break
        letters -= had.pop(best)
        families.append(_family(best))
    return tuple(families), letters


def _texts(figure: FigureBase) -> Iterator[Text]:
    axes: list[Axes] = figure.axes  # type: ignore[assignment]
    for ax in axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # they get their texts only now
    yield from figure.findobj(Text)


def _missing(text: Text) -> Letters:
    families = text.get_fontfamily()
    letters = frozenset(letter for letter in text.get_text() if not _is_invisible(letter))
    for family in [families] if isinstance(families, str) else families:
        if letters:
            letters -= _letters_in(findfont(FontProperties(family=[family])), letters)
    return letters


def _is_invisible(letter: str) -> bool:
    """Whether it is a space, or tells how to draw the letters beside it."""
    return letter.isspace() or unicodedata.category(letter) in ("Cf", "Cc") or 0xFE00 <= ord(letter) <= 0xFE0F


def _installed() -> list[str]:
    """Return the files of all fonts, upright ones first: those that matplotlib knows, and newer ones."""
    paths = {*font_manager.findSystemFonts(), *(entry.fname for entry in fontManager.ttflist)}
    names = {path: Path(path).stem.lower() for path in paths}
    # A font of last resort has a box for every letter
    fonts = [path for path, name in names.items() if not name.replace("-", "").startswith("lastresort")]
    return sorted(fonts, key=lambda path: ("regular" not in names[path], path))


def _letters_in(path: str, letters: Letters) -> Letters:
    """Return which of these letters a font can draw; pictures in colours are none that matplotlib can."""
    try:
        font = get_font(path)
        if not font.scalable:
            return frozenset()
        known = font.get_charmap()
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(letter for letter in letters if ord(letter) in known)


def _family(path: str) -> str:
    if all(entry.fname != path for entry in fontManager.ttflist):
        fontManager.addfont(path)
    return str(get_font(path).family_name)


def _font_with(letter: str) -> str:
    """Return a free font that has a letter."""
    script = unicodedata.name(letter, "").split(" ")[0].split("-")[0]
    if unicodedata.category(letter) in ("So", "Sk"):
        return "Noto Emoji"
    return "Noto Sans CJK" if script in EAST_ASIAN else f"Noto Sans {script.title()}".strip()
