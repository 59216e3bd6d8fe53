"""Names in any script are drawn by a font that has them, or a warning says what is missing, once."""

import warnings

import matplotlib as mpl
import pytest
from matplotlib import font_manager, pyplot
from matplotlib.figure import Figure

from kfhe.plotting import FeatureImportanceDisplay, fonts
from kfhe.plotting.display import rendered


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    """Warnings of other tests are no reason to be silent here; only matplotlib's own fonts are there."""
    monkeypatch.setattr(fonts, "_told", set())
    own = [entry for entry in font_manager.fontManager.ttflist if "mpl-data" in entry.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])
    fonts.fonts_for.cache_clear()
    pyplot.switch_backend("agg")
    yield
    fonts.fonts_for.cache_clear()
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


def test_letters_that_no_font_has_are_named_once_with_a_font_to_install():
    with pytest.warns(UserWarning, match="no installed font has 大 小 : .* Noto Sans CJK$") as said:
        display = drawn("大小", "size")
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for suffix in ("png", "svg", "pdf"):
            rendered(display.figure_, suffix)
        drawn("小大")


def test_a_title_that_was_added_later_is_looked_at_when_it_becomes_a_file():
    figure = Figure()
    figure.add_subplot().set_title("標題")
    with pytest.warns(UserWarning, match="no installed font has 標 題"):
        rendered(figure, "png")


@pytest.mark.parametrize(
    ("name", "font"),
    [
        ("大", "Noto Sans CJK"),
        ("か", "Noto Sans CJK"),
        ("한", "Noto Sans CJK"),
        ("क", "Noto Sans Devanagari"),
        ("🦊", "Noto Emoji"),
    ],
)
def test_the_font_to_install_depends_on_the_script(name, font):
    with pytest.warns(UserWarning, match=f"Install a font that has them: {font}$"):
        drawn(name)


def test_what_joins_letters_is_not_missed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn("a\u200db", "☺\ufe0f", "a\u00a0b")


def test_files_that_are_no_fonts_are_passed_over(monkeypatch, tmp_path):
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(tmp_path / "broken.ttf")])
    with pytest.warns(UserWarning, match="no installed font has 大"):
        drawn("大")
