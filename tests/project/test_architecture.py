"""Imports point one way: each module may import from its own layer's package and from layers below it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pyparq

PACKAGE = Path(pyparq.__file__).parent
# The sources, not the installed copy, where both are there: stubs and generated files included.
SOURCE = Path(__file__).parents[2] / "pyparq"

# Lowest first. A name stands for a module or a package of pyparq; names of one row may not import each other.
LAYERS = [
    ["_version", "errors", "limits", "option_help", "runtime"],
    ["column_names", "kernels"],
    ["format", "option_checks"],
    ["arrow", "encryption", "option_values"],
    ["index", "options"],
    ["io"],
    ["filters"],
    ["arguments"],
    ["read", "write"],
    ["datasets"],
    ["maintenance"],
    ["api", "polars"],
    ["spark"],
    ["cli"],
    ["__main__"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# Never on import: what the Arrow schema of a Schema needs when it is asked for.
LAZY = {("format", "arrow")}


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if "generated" not in p.parts)


def top_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports_of(path: Path) -> list[tuple[str, bool, int]]:
    """(imported pyparq module, only within a function or for type checking, line)."""
    found: list[tuple[str, bool, int]] = []

    def visit(node: ast.AST, lazy: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inner = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            inner = inner or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
            if isinstance(child, ast.Import):
                found.extend((a.name, lazy, child.lineno) for a in child.names if a.name.split(".")[0] == "pyparq")
            elif isinstance(child, ast.ImportFrom) and child.module and child.module.split(".")[0] == "pyparq":
                names = [f"pyparq.{a.name}" for a in child.names] if child.module == "pyparq" else [child.module]
                found.extend((name, lazy, child.lineno) for name in names)
            visit(child, inner)

    visit(ast.parse(path.read_text()), False)
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if here == "__init__":
        return  # the public names, from anywhere
    assert here in RANK, f"{here} has no layer: give it one in LAYERS"
    for module, lazy, line in imports_of(path):
        there = top_of(module)
        if there == here or there in ("", "__version__"):
            continue
        if lazy and (here, there) in LAZY:
            continue
        assert there in RANK, f"{path}:{line} imports {module}, which has no layer"
        assert RANK[there] < RANK[here], f"{path}:{line}: {here} imports {there}, which is not below it"


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
