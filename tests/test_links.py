"""Links in the repository's pages lead somewhere: as GitHub follows them, and as the built site does."""

import re
import runpy
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = (DOCS / "gallery", DOCS / "generated", DOCS / "_build")  # by make docs, not part of the repository
PAGES = sorted(
    page
    for pattern in ("*.md", ".github/**/*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/**/*.md")
    for page in ROOT.glob(pattern)
    if not any(page.is_relative_to(folder) for folder in BUILT)
)
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ ]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(
    r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)|(?:href|src)=\"([^\"]+)\"",
    re.MULTILINE,
)
ROLE = re.compile(r"\{(?:doc|download|ref)\}`(?:[^`<]*<)?([^`>]+)>?`")
FIGURE = re.compile(r"^```\{(?:figure|image|include)\} (\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z]+:|//", re.IGNORECASE)
# Headings of the site have anchors down to this depth
DEPTH = int(re.search(r"myst_heading_anchors = (\d)", (DOCS / "conf.py").read_text("utf-8"))[1])


def prose(page):
    """Return a page without its code."""
    return re.sub(r"(`+)[^`]+?\1(?!`)", "", FENCE.sub("", page.read_text("utf-8")))


def links(page):
    return ["".join(found) for found in LINK.findall(prose(page))]


@cache
def anchors(page):
    """Return the anchors of a page's headings, with their depths."""
    found = {}
    for marks, heading in re.findall(
        r"^(#+) (.+?)\s*#*$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE
    ):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        numbered = (slug if not number else f"{slug}-{number}" for number in range(1000))
        found[next(name for name in numbered if name not in found)] = len(marks)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page):
    for link in links(page):
        if ELSEWHERE.match(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no such file"
        assert target.is_relative_to(ROOT), f"{link}: this is outside of the repository"
        assert not any(target.is_relative_to(folder) for folder in BUILT), f"{link}: make docs writes this"
        if anchor:
            assert anchor in anchors(target), f"{link}: there is no such heading"
        if page.is_relative_to(DOCS) and anchor:
            assert target.is_relative_to(DOCS), f"{link}: the site has no page of this"
            assert anchors(target)[anchor] <= DEPTH, f"{link}: on the site, so deep a heading has no anchor"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_are_there_or_made_by_an_example(page):
    for figure in FIGURE.findall(page.read_text("utf-8")):
        if made := re.match(r"/gallery/images/sphx_glr_(\w+)_\d+\.png$", figure):
            assert (ROOT / "examples" / f"{made[1]}.py").exists(), figure
        else:
            folder = DOCS if figure.startswith("/") else page.parent
            assert (folder / figure.lstrip("/")).exists(), figure


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_one_that_only_the_site_knows(page):
    assert ROLE.findall(FENCE.sub("", page.read_text("utf-8"))) == []


def test_on_the_site_an_example_is_its_page_in_the_gallery():
    pytest.importorskip("sphinx_gallery")
    link_gallery = runpy.run_path(str(DOCS / "conf.py"))["link_gallery"]
    source = [
        "[trace](../../examples/trace.py), [all](../examples) and [data](../examples/data/customers.csv)"
    ]
    link_gallery(None, "guide/plots", source)
    shown = "[trace](/gallery/trace), [all](/gallery/index) and [data](../examples/data/customers.csv)"
    assert source == [shown]


def test_the_names_of_a_module_are_documented_at_one_place():
    """Sources on the site link back to what is documented, and know one place for each module."""
    places = {}
    for name in re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text("utf-8"), re.MULTILINE):
        place, _, last = f"kfhe.{name}".rpartition(".")
        home = getattr(getattr(import_module(place), last), "__module__", place)
        places.setdefault(home, set()).add(place)
    assert {home: found for home, found in places.items() if len(found) > 1} == {}


def test_anchors_are_those_of_github(tmp_path):
    (tmp_path / "page.md").write_text(
        "# What `kfhe fit` does, and why\n\n## Same\n\n## Same\n\n```text\n# no heading\n```\n", "utf-8"
    )
    assert anchors(tmp_path / "page.md") == {"what-kfhe-fit-does-and-why": 1, "same": 2, "same-1": 2}
