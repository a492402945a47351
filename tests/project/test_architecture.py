"""The shape of the package: imports point one way and make no circle, and each package has a door."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import pyparq

PACKAGE = Path(pyparq.__file__).parent
# The sources, not the installed copy, where both are there: stubs and generated files included.
SOURCE = Path(__file__).parents[2] / "pyparq"

# Lowest first. A name stands for a module or a package of pyparq; names of one row may not import each other.
LAYERS = [
    ["_version", "errors", "limits", "runtime"],
    ["column_names", "kernels"],
    ["option_checks"],
    ["format", "versions"],
    ["arrow", "encryption", "option_values"],
    ["index", "options"],
    ["io"],
    ["filters"],
    ["arguments"],
    ["read", "write"],
    ["datasets"],
    ["maintenance"],
    ["api", "compute", "dataset", "parquet", "polars"],
    ["pandas"],
    ["spark"],
    ["cli"],
    ["__main__"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# Who may import a module of pyparq inside a function, and why. All others import at the top.
INSIDE_FUNCTIONS = {
    "api": "a read of one file does not load what reads many",
    "cli/": "each command loads what it needs alone, so that the first line comes at once",
    "encryption/keyfile": "key tools load with their first use",
    "io/locations": "fsspec may be missing",
    "spark/file_jobs": "the session's process starts jobs, and loads what they do only to check their options",
    "spark/source": "a batch source does not load what streams and writes need",
    "spark/tasks": "a worker says what it lacks before it loads anything of pyparq",
}


class Import(NamedTuple):
    """One imported name: of ``module``, where it is not a module itself."""

    module: str
    name: str
    kind: str
    """``"run"``, ``"function"`` or ``"type"`` (for type checkers alone)."""
    line: int


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if "generated" not in p.parts)


def short(path: Path) -> str:
    """``read/plan/prune`` for its file."""
    return path.relative_to(SOURCE).with_suffix("").as_posix()


def module_of(path: Path) -> str:
    return f"pyparq.{short(path).replace('/', '.')}".removesuffix(".__init__")


def top_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


LOADERS = {"load", "import_module", "__import__", "LazyModule", "provide"}
"""Calls that load a module of pyparq by its name."""

NAMES = {module_of(path): path for path in modules()}


@cache
def imports_of(path: Path) -> list[Import]:
    """The imports of pyparq's own modules. ``from package import module`` counts as the module's."""
    return list(_imports(ast.parse(path.read_text()), "run"))


def _imports(node: ast.AST, kind: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        inner = kind
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = "function"
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            inner = "type"
        if isinstance(child, ast.Import):
            yield from (Import(a.name, "", kind, child.lineno) for a in child.names if a.name.split(".")[0] == "pyparq")
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: a relative import"
            if child.module and child.module.split(".")[0] == "pyparq":
                for a in child.names:
                    whole = f"{child.module}.{a.name}"
                    named = (whole, "") if whole in NAMES else (child.module, a.name)
                    yield Import(*named, kind, child.lineno)
        elif isinstance(child, ast.Call) and ast.unparse(child.func) in LOADERS:
            yield from (Import(a.value, "", kind, child.lineno) for a in child.args
                        if isinstance(a, ast.Constant) and str(a.value).startswith("pyparq."))  # fmt: skip
        yield from _imports(child, inner)


def test_every_module_has_a_layer() -> None:
    assert {short(path).split("/")[0] for path in modules()} - {"__init__"} == set(RANK)


def test_imports_point_down() -> None:
    """Of all kinds: at run time, inside functions, and for type checkers."""
    wrong = []
    for path in modules():
        here = short(path).split("/")[0]
        if here == "__init__":
            continue  # the public names, from anywhere
        for module, _, _, line in imports_of(path):
            there = top_of(module)
            if there not in (here, "") and RANK[there] >= RANK[here]:
                wrong.append(f"{short(path)}:{line}: {here} imports {there}, which is not below it")
    assert wrong == []


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules each of which reaches all others of its set (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(edges.get(module, ())):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in edges:
        if module not in number:
            visit(module)
    return found


@pytest.mark.parametrize("kinds", [("run",), ("run", "function"), ("run", "function", "type")], ids="+".join)
def test_no_circle_of_modules(kinds: tuple[str, ...]) -> None:
    edges: dict[str, set[str]] = defaultdict(set)
    for module, path in NAMES.items():
        for found in imports_of(path):
            if found.kind in kinds and found.module != module and module != "pyparq":
                edges[module].add(found.module)
    assert circles(edges) == []


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"d"}}) == []
    assert circles({"a": {"b", "e"}, "b": {"c"}, "c": {"b", "a"}, "e": {"f"}, "f": {"e"}}) == [
        ["e", "f"],
        ["a", "b", "c"],
    ]


def is_among(file: str, name: str) -> bool:
    """``name``: of a file, or of a folder with ``/`` at its end."""
    return file == name or (name.endswith("/") and file.startswith(name))


def test_modules_are_imported_at_the_top() -> None:
    allowed, wrong = set(), []
    for path in modules():
        listed = [name for name in INSIDE_FUNCTIONS if is_among(short(path), name)]
        for found in imports_of(path):
            if found.kind == "function":
                allowed |= set(listed)
                wrong += [] if listed else [f"{short(path)}:{found.line}: {found.module}"]
    assert wrong == []
    assert set(INSIDE_FUNCTIONS) == allowed, "the list names a file that has no such import"


# ---- doors


@cache
def packages() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())


def door_of(package: str) -> tuple[str, ...]:
    """What the package's ``__init__`` names in ``DOOR``: its modules that other packages may use."""
    for node in ast.parse((SOURCE / package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "DOOR":
            door: tuple[str, ...] = ast.literal_eval(node.value)
            return door
    return ()


@cache
def uses_from_outside() -> list[tuple[str, str, str, int]]:
    """(importing file, package, module within it, line) for each import across packages. pyparq's own ``__init__``
    has the public names from anywhere."""
    return list(_uses_from_outside())


def _uses_from_outside() -> Iterator[tuple[str, str, str, int]]:
    for path in modules():
        here = short(path).split("/")[0]
        if here == "__init__":
            continue
        for found in imports_of(path):
            there = top_of(found.module)
            if there != here and there in packages():
                yield short(path), there, found.module.removeprefix(f"pyparq.{there}").lstrip("."), found.line


def test_imports_stop_at_doors() -> None:
    """What a package's ``__init__`` defines itself is open as well."""
    doors = {package: door_of(package) for package in packages()}
    past = [f"{file}:{line}: {package}.{module}" for file, package, module, line in uses_from_outside()
            if module and module not in doors[package]]  # fmt: skip
    assert past == [], "use a module that is open, or open this one in DOOR of its package"


@pytest.mark.parametrize("package", packages())
def test_doors_are_no_wider_than_needed(package: str) -> None:
    used = {module for _, there, module, _ in uses_from_outside() if there == package and module}
    door = door_of(package)
    assert list(door) == sorted(door)
    assert sorted(used) == list(door)


# ---- what is private


NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


FREE = {("kernels/__init__", "pyparq.kernels._native")}
"""The package of the compiled module is its door."""


def test_private_names_are_not_imported() -> None:
    """Nor private modules. The version is one only for the build, which reads it as text."""
    wrong = []
    for path in modules():
        for module, name, _, line in imports_of(path):
            private = [part for part in [*module.split("."), name] if re.fullmatch("_[^_].*", part)]
            if private and module != "pyparq._version" and (short(path), module) not in FREE:
                wrong.append(f"{short(path)}:{line}: {module} {name}")
    assert wrong == []


def _private_names(tree: ast.AST) -> tuple[set[str], list[tuple[int, str]]]:
    """The private names that a module gives to anything, and its uses of private attributes. What a class uses of
    itself may come from the class that it stands on."""
    given: set[str] = set()
    used: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            given.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.add(node.id)
        elif isinstance(node, ast.Attribute) and re.fullmatch(r"_[^_].*", node.attr):
            if isinstance(node.ctx, ast.Store):
                given.add(node.attr)
            elif not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                used.append((node.lineno, node.attr))
    return {name for name in given if name.startswith("_")}, used


def test_private_attributes_stay_within_their_package() -> None:
    """``x._name`` where only another package gives anything that name."""
    given: dict[str, set[str]] = defaultdict(set)
    uses: list[tuple[str, str, int, str]] = []
    for path in modules():
        package = short(path).split("/")[0]
        names, used = _private_names(ast.parse(path.read_text()))
        given[package] |= names
        uses += [(package, short(path), line, name) for line, name in used if name not in NAMED_TUPLES]
    ours = set().union(*given.values())
    assert [f"{file}:{line}: {name}" for package, file, line, name in uses
            if name in ours and name not in given[package]] == []  # fmt: skip


def test_core_imports_nothing_heavy() -> None:
    """Importing pyparq loads neither pyarrow, pandas nor polars (a fresh interpreter tells)."""
    import subprocess
    import sys

    heavy = ("pyarrow", "pandas", "polars", "pyspark", "click", "cryptography")
    code = f"import sys, pyparq; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_kernels_keep_to_the_stable_abi() -> None:
    """From Python 3.12 on they are built for it, and it has none of CPython's macros: there they would not compile."""
    sources = sorted((SOURCE / "kernels" / "src").rglob("*.[ch]pp"))
    assert len(sources) > 20
    macro = re.compile(r"\bPy[A-Za-z]+_(?:GET|SET|AS)_[A-Z_]+|\b_Py\w+")
    assert [(path.name, found) for path in sources for found in macro.findall(path.read_text())] == []
