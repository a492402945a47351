"""Makes ``pyparq/kernels/_native.pyi``, the types of the kernels, from the extension module itself.

    python tests/support/native_stub.py            writes the file
    python tests/support/native_stub.py --check    says whether it is out of date, and shows the difference

The types and docstrings stand beside the names that they belong to, in ``pyparq/kernels/src/*/bindings.cpp``.
nanobind's stubgen reads them. Build the kernels first. What stubgen cannot know is added here:

- the imports and the aliases that the signatures use;
- ``probes`` is a module inside the module. Type checkers want a class for that;
- a function whose docstring says "None where the system ..." is None elsewhere, so its type is a Callable or None.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from nanobind.stubgen import StubGen

from pyparq.kernels import _native

TARGET = Path(__file__).parents[2] / "pyparq" / "kernels" / "_native.pyi"

HEAD = '''"""Made by tests/support/native_stub.py from the bindings in kernels/src: edit those, not this.

- `Buffer`: any C-contiguous buffer; where an item type is named below, a one-dimensional array of it.
- offsets: int32 or int64, n + 1 of them for n values, into uint8 data; they may start above 0.
- valid: one byte per slot, non-zero = present; None = every slot is present.
- "values"/"dictionary" with a `width`: raw bytes of whole values.
- Every function raises `KernelError` for bytes, counts or indices that do not fit, and TypeError for an
  argument that is not the buffer it asks for.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer as _PyBuffer

# numpy's stubs say that arrays are buffers from Python 3.12 on only.
Buffer: TypeAlias = _PyBuffer | NDArray[Any]

_Bounds: TypeAlias = tuple[list[bytes | None], list[bytes | None], NDArray[np.int64] | None]

_More: TypeAlias = Callable[[int], tuple[int, int]]
"""Called for so many bytes more than there are: how many it adds, and how many could follow. It may raise."""

'''


def stubs_of(module: object) -> str:
    """What stubgen makes of a module, without its docstring and imports."""
    generator = StubGen(module)
    generator.put(module)
    text = re.sub(r"^(from|import) .*\n", "", generator.get(), flags=re.MULTILINE)
    return re.sub(r'\A""".*?"""\n', "", text, flags=re.DOTALL).strip() + "\n"


def as_class(name: str, text: str) -> str:
    """A module's functions as static methods of a class."""
    body = re.sub(r"^def ", "@staticmethod\ndef ", text, flags=re.MULTILINE)
    return f"class {name}:\n" + textwrap.indent(body, "    ")


def optional(text: str) -> str:
    """Functions that are not there on every system as what they are: a Callable or None."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        doc = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
        if not isinstance(node, ast.FunctionDef) or doc is None or "None where the system" not in doc:
            continue
        assert node.returns is not None
        assert node.end_lineno is not None
        taken = [ast.unparse(argument.annotation) for argument in node.args.args if argument.annotation is not None]
        names = ", ".join(argument.arg for argument in node.args.args)
        kind = f"Callable[[{', '.join(taken)}], {ast.unparse(node.returns)}] | None"
        lines[node.lineno - 1 : node.end_lineno] = [f'{node.name}: {kind}\n"""`({names})`: {doc}"""\n']
    return "".join(lines)


def formatted(text: str) -> str:
    """The text as the repository's formatter has it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def plain(text: str) -> str:
    """The text without its layout, which a formatter may change."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = inspect.cleandoc(node.value.value)
    return ast.unparse(tree)


def stub() -> str:
    """The text of ``_native.pyi`` before a formatter lays it out."""
    return HEAD + optional(stubs_of(_native)) + "\n" + as_class("probes", stubs_of(_native.probes))


def difference() -> str:
    """What the file has otherwise than the extension module, layout aside; empty when they agree."""
    there, made = plain(TARGET.read_text("utf-8")), plain(stub())
    return "".join(difflib.unified_diff(there.splitlines(True), made.splitlines(True), "repository", "made"))


def main() -> int:
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(formatted(stub()), "utf-8")
        return 0
    found = difference()
    sys.stdout.write(found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
