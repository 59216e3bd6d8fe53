"""Who imports what: no circle, lazy imports included, and no private name of another module."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What is built on the library, and so uses its public names only
OUTER = ("kfhe.study", "kfhe.cli", "kfhe.table_files", "benchmarks")


def modules():
    """The source of each module, by its name."""
    found = {}
    for top, folder in (("kfhe", ROOT / "src" / "kfhe"), ("benchmarks", ROOT / "benchmarks")):
        for path in folder.rglob("*.py"):
            parts = [top, *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


SOURCES = modules()


def imported(source):
    """Pairs of a module and a name in it (or None) that a source imports, wherever it does, but for types."""
    for node in without_type_checking(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def without_type_checking(node):
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"):
            yield from without_type_checking(child)


def needs(name):
    """The modules that one imports; to import a module of a package is to import the package."""
    found = set()
    for module, attribute in imported(SOURCES[name]):
        target = f"{module}.{attribute}" if f"{module}.{attribute}" in SOURCES else module
        while target:
            found.add(target)
            target = target.rpartition(".")[0]
    return {target for target in found & SOURCES.keys() if not f"{name}.".startswith(f"{target}.")}


def is_outer(name):
    return f"{name}.".startswith(tuple(f"{package}." for package in OUTER))


def circle_through(name):
    """A chain of imports from a module back to itself, or None."""
    chains, seen = [[name]], set()
    while chains:
        chain = chains.pop()
        for target in needs(chain[-1]):
            if target == name:
                return [*chain, name]
            if target not in seen:
                seen.add(target)
                chains.append([*chain, target])
    return None


@pytest.mark.parametrize("name", sorted(filter(is_outer, SOURCES)))
def test_no_import_goes_round(name):
    assert circle_through(name) is None


@pytest.mark.parametrize("name", sorted(filter(is_outer, SOURCES)))
def test_what_is_built_on_the_library_uses_its_public_names(name):
    private = [
        f"{module}.{attribute}"
        for module, attribute in imported(SOURCES[name])
        if module.split(".")[0] in ("kfhe", "benchmarks")
        if any(part.startswith("_") and part != "__main__" for part in [*module.split("."), attribute or ""])
    ]
    assert private == []


def test_nothing_that_is_installed_needs_the_benchmarks():
    using = [name for name in SOURCES if name.startswith("kfhe") and "benchmarks" in needs(name)]
    assert using == []
