"""Names in any script are drawn by a font that has them; matplotlib warns of letters that none has."""

import warnings

import matplotlib as mpl
import pytest
from matplotlib import font_manager, pyplot
from matplotlib.figure import Figure

from kfhe.plotting import FeatureImportanceDisplay, fonts
from kfhe.plotting.base import rendered


@pytest.fixture(autouse=True)
def no_other_fonts(monkeypatch):
    """Only matplotlib's own fonts are there."""
    own = [entry for entry in font_manager.fontManager.ttflist if "mpl-data" in entry.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    fonts.families_with.cache_clear()
    pyplot.switch_backend("agg")
    yield
    fonts.families_with.cache_clear()
    pyplot.close("all")


def drawn(*names):
    return FeatureImportanceDisplay([1.0] * len(names), names).plot()


def test_latin_greek_cyrillic_and_arabic_letters_are_there():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = drawn("größe", "μέγεθος", "размер", "الحجم")
        rendered(display.figure_, "png")


def test_a_font_that_has_the_letters_helps_out():
    with mpl.rc_context({"font.family": "cmr10", "axes.formatter.use_mathtext": True}):
        display = drawn("size", "размер")
        plain, helped = display.ax_.get_yticklabels()
        assert plain.get_fontfamily() == ["cmr10"]
        assert helped.get_fontfamily()[0] == "cmr10"
        assert "DejaVu Sans" in helped.get_fontfamily()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rendered(display.figure_, "png")


def test_letters_that_no_font_has_are_named_by_a_warning():
    with pytest.warns(UserWarning, match="IDEOGRAPH-5927.* missing from"):
        rendered(drawn("大", "size").figure_, "png")


def test_a_title_that_was_added_later_is_looked_at_when_it_becomes_a_file():
    figure = Figure()
    with mpl.rc_context({"font.family": "cmr10", "axes.formatter.use_mathtext": True}):
        title = figure.add_subplot().set_title("размер")
        rendered(figure, "png")
    assert "DejaVu Sans" in title.get_fontfamily()


def test_what_joins_letters_is_not_missed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn("a\u200db", "☺\ufe0f", "a\u00a0b")


def test_files_that_are_no_fonts_are_passed_over(monkeypatch, tmp_path):
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    broken = font_manager.FontEntry(str(tmp_path / "broken.ttf"), "broken")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [broken, *font_manager.fontManager.ttflist])
    assert fonts.families_with(frozenset("大")) == ()
    assert "broken" not in fonts.families_with(frozenset("a"))
