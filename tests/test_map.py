"""The map in docs/contributing.md is true: it names every module, and imports only go up in it."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kfhe"
FROM_LINE = re.compile(r"^\s*from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|.*)", re.MULTILINE)
IMPORT_LINE = re.compile(r"^\s*c?import\s+([\w.]+)", re.MULTILINE)


def name_of(path):
    """Return the module that a file belongs to: ``kfhe.engine.bins`` for engine/bins.pyx."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".pyx", ".pxd")]
MODULES = {name_of(path): path for path in FILES}  # of a .pxd and a .pyx of one name, the latter
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


class Imports(ast.NodeVisitor):
    """Collects (module, name) of all imports, lazy ones too; the name is None for a whole module."""

    def __init__(self, package, for_types=False):
        self.package, self.for_types, self.found = package, for_types, []

    def visit_Import(self, node):
        self.found += [(alias.name, None) for alias in node.names]

    def visit_ImportFrom(self, node):
        module = resolve_name("." * node.level + (node.module or ""), self.package)
        self.found += [(module, alias.name) for alias in node.names]

    def visit_Call(self, node):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_module", "__import__") and isinstance(node.args[0], ast.Constant):
            self.found.append((node.args[0].value, None))
        self.generic_visit(node)

    def visit_If(self, node):
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING") and not self.for_types:
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)


def python_imports(text, package="kfhe", for_types=False):
    collector = Imports(package, for_types)
    collector.visit(ast.parse(text))
    return collector.found


def cython_imports(text):
    text = re.sub(r"#.*", "", text)
    names = ((module, re.findall(r"\w+", names)) for module, names in FROM_LINE.findall(text))
    return [
        *((module, name) for module, found in names for name in found),
        *((module, None) for module in IMPORT_LINE.findall(text)),
    ]


@cache
def homes(package):
    """Where the names that a package hands on come from."""
    found = python_imports(MODULES[package].read_text(encoding="utf-8"), package, for_types=True)
    return {name: module for module, name in found if name and module in MODULES and module != package}


def target(module, name):
    """Return the module that an import is after, None if it is not one of ours."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    if module in PACKAGES and name in homes(module):
        return homes(module)[name]
    return module if module in MODULES and module != "kfhe" else None


@cache
def imports():
    """Return the modules that each module imports."""
    found = {name: set() for name in MODULES}
    for path in FILES:
        name, text = name_of(path), path.read_text(encoding="utf-8")
        package = name if name in PACKAGES else name.rpartition(".")[0]
        pairs = python_imports(text, package) if path.suffix == ".py" else cython_imports(text)
        found[name] |= {target(*pair) for pair in pairs} - {None, name}
    return found


@cache
def rows():
    """Return what each row of the map names."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = re.search(r"^\| `src/kfhe/` \|.*\n\|[-| ]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [re.findall(r"`([\w/.]+)`", line.split("|")[1]) for line in table[1].splitlines()]


def row_of(module):
    """Return the number of the row with a module's file or else its nearest folder; None: there is none."""
    place = MODULES[module].relative_to(PACKAGE)
    stem = place.with_suffix("")
    for candidate in (place, stem.with_suffix(".py"), stem.with_suffix(".pyx"), *place.parents):
        names = {candidate.as_posix(), f"{candidate.as_posix()}/"}
        for number, row in enumerate(rows()):
            if names & set(row):
                return number
    return None


def shown(module):
    return MODULES[module].relative_to(PACKAGE).as_posix()


def test_lazy_imports_are_found_and_those_for_types_are_not():
    text = "if TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    text += "def f():\n    from . import c\n    import_module('d.e')\n"
    assert python_imports(text) == [("b", None), ("kfhe", "c"), ("d.e", None)]
    assert python_imports(text, for_types=True)[0] == ("a", None)
    cython = "from a.b cimport (\n    c,\n    d,\n)\ncimport e  # from f import g\nfrom h import i, j"
    assert cython_imports(cython) == [("a.b", "c"), ("a.b", "d"), ("h", "i"), ("h", "j"), ("e", None)]


def test_an_import_leads_to_where_a_name_comes_from():
    assert target("kfhe", "KFHEClassifier") == "kfhe.classifier"
    assert target("kfhe", "stats") == target("kfhe.stats", "ranks") == "kfhe.stats"
    assert target("kfhe.noise", "flip_labels") == "kfhe.noise.labels"
    assert target("kfhe.plotting", "TraceDisplay") == "kfhe.plotting.training"
    assert target("numpy", "array") is target("kfhe", "__version__") is None


def test_the_map_names_every_module_and_nothing_else():
    missing = [shown(module) for module in MODULES if module not in PACKAGES and row_of(module) is None]
    assert missing == []
    assert [name for row in rows() for name in row if not (PACKAGE / name).exists()] == []


def test_no_module_imports_one_that_is_further_down_the_map():
    wrong = [
        f"{shown(module)} imports {shown(imported)}"
        for module, found in imports().items()
        for imported in sorted(found)
        if None not in (row_of(module), row_of(imported)) and row_of(imported) > row_of(module)
    ]
    assert wrong == []


def test_imports_never_go_round_in_a_circle():
    graph = {}
    for module, found in imports().items():
        # Whoever imports a module of another package runs the package's own __init__.py first
        parents = {parent for name in found for parent in PACKAGES if name.startswith(f"{parent}.")}
        graph[module] = found | {parent for parent in parents if not f"{module}.".startswith(f"{parent}.")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " imports ".join(shown(module) for module in reversed(error.args[1]))
        raise AssertionError(circle) from None


def test_what_is_built_on_the_library_uses_its_public_names():
    built_on_it = [PACKAGE / name for name in ("cli", "review", "study", "tables")] + [ROOT / "benchmarks"]
    private = [
        f"{path.relative_to(ROOT)} imports {module}.{name}"
        for folder in built_on_it
        for path in sorted(folder.rglob("*.py"))
        for module, name in python_imports(path.read_text(encoding="utf-8"))
        if module.split(".")[0] in ("kfhe", "benchmarks")
        if any(part.startswith("_") for part in [*module.split("."), name or ""])
    ]
    assert private == []


def test_nothing_that_is_installed_needs_the_benchmarks():
    texts = {shown(module): path.read_text(encoding="utf-8") for module, path in MODULES.items()}
    assert [
        name for name, text in texts.items() if re.search(r"^\s*(from|import) benchmarks", text, re.M)
    ] == []
