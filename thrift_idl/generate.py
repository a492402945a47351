"""Generate pyparq/format/generated from parquet.thrift with the Apache Thrift compiler.

    python thrift_idl/generate.py            write the generated files
    python thrift_idl/generate.py --check    compare with what is there; exit 1 with the difference

Needs the Thrift compiler, release 0.17.0 (Debian package `thrift-compiler`); PYPARQ_THRIFT names another
executable. What comes out:

    ttypes.py, constants.py, __init__.py   the compiler's Python output, untouched
    ttypes.pyi                             its types for mypy and editors
    rules.py                               wire types, requiredness and unions, for the byte checker

The last two are made from the compiler's own JSON output, so nothing here parses the IDL.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
IDL = HERE / "parquet.thrift"
TARGET = HERE.parent / "pyparq" / "format" / "generated"
COMPILER_VERSION = "0.17.0"
# slots: attribute typos fail and objects stay small. dynamic: reading and writing follow thrift_spec, which
# is a third of the code and of its import time (the accelerated codec never runs the rest anyway).
PY_OPTIONS = "py:slots,dynamic"

# Fields that the standard calls strings but that files in the wild fill with raw bytes (pyarrow accepts any
# metadata value, Petastorm pickles into it). The codec hands such a value out as bytes.
BYTES_TOLERATED = {("KeyValue", "value")}

# Thrift type -> compact protocol type id.
WIRE = {
    "bool": 1, "i8": 3, "i16": 4, "i32": 5, "i64": 6, "double": 7,
    "string": 8, "binary": 8, "list": 9, "struct": 12, "union": 12,
}  # fmt: skip
PYTHON = {
    "bool": "bool", "i8": "int", "i16": "int", "i32": "int", "i64": "int", "double": "float",
    "string": "str", "binary": "bytes",
}  # fmt: skip
REQUIRED, TEXT, TEXT_OR_BYTES = 1, 2, 4

BANNER = '"""Made by thrift_idl/generate.py from parquet.thrift: edit those, not this."""\n'


def compiler() -> str:
    """Path of the Thrift compiler; exits with what to install when it is missing or another release."""
    path = shutil.which(os.environ.get("PYPARQ_THRIFT", "thrift"))
    if path is None:
        sys.exit("the Thrift compiler is not installed (Debian: apt-get install thrift-compiler)")
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stdout.strip()
    if said.split()[-1:] != [COMPILER_VERSION]:
        sys.exit(f"{path} is {said!r}; the generated files are made by Thrift {COMPILER_VERSION}")
    return path


def compile_idl(generator: str, out: Path) -> None:
    """Run one generator of the compiler into `out`."""
    command = [compiler(), "-strict", "--gen", generator, "-out", str(out), IDL.name]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def python_type(field: dict[str, Any]) -> str:
    """Annotation of a field's value: `int`, `bytes`, `list[str]`, `Statistics`, ..."""
    kind = field["typeId"]
    if kind == "list":
        inner = field["type"]
        if "elemType" in inner:
            return f"list[{inner['elemType']['class']}]"
        return f"list[{PYTHON[inner['elemTypeId']]}]"
    return str(field["type"]["class"]) if kind in ("struct", "union") else PYTHON[kind]


def stub(idl: dict[str, Any]) -> str:
    """Text of ttypes.pyi."""
    lines = [BANNER, "from typing import Any, Final\n"]
    for enum in idl["enums"]:
        lines.append(f"class {enum['name']}:")
        lines += [f"    {member['name']}: Final = {member['value']}" for member in enum["members"]]
        lines += ["    _VALUES_TO_NAMES: dict[int, str]", "    _NAMES_TO_VALUES: dict[str, int]", ""]
    for struct in idl["structs"]:
        name, fields = struct["name"], []
        for field in struct["fields"]:
            kind = python_type(field)
            if (name, field["name"]) in BYTES_TOLERATED:
                kind += " | bytes"
            fields.append((field["name"], kind if field["required"] == "required" else f"{kind} | None"))
        lines += [f"class {name}:", "    thrift_spec: tuple[Any, ...]"]
        lines += [f"    {attribute}: {kind}" for attribute, kind in fields]
        arguments = ", ".join(["self", *(f"{attribute}: {kind} = ..." for attribute, kind in fields)])
        lines += [f"    def __init__({arguments}) -> None: ...", ""]
    return "\n".join(lines)


def rules(idl: dict[str, Any]) -> str:
    """Text of rules.py: what the byte checker knows of each struct."""
    index = {struct["name"]: i for i, struct in enumerate(idl["structs"])}
    lines = [
        BANNER,
        "# One row per struct: (name, is a union, fields). One row per field: (id, name, compact protocol",
        "# type, element type of a list or 0, index of the struct it holds or -1,",
        f"# {REQUIRED} required + {TEXT} UTF-8 text + {TEXT_OR_BYTES} text that may be raw bytes).",
        "RULES = (",
    ]
    for struct in idl["structs"]:
        lines.append(f"    ({struct['name']!r}, {struct['isUnion']}, (")
        for field in struct["fields"]:
            kind, inner = field["typeId"], field.get("type", {})
            element = inner["elemTypeId"] if kind == "list" else ""
            held = inner.get("elemType", {}).get("class") if kind == "list" else inner.get("class")
            flags = REQUIRED * (field["required"] == "required")
            if "string" in (kind, element):
                tolerated = (struct["name"], field["name"]) in BYTES_TOLERATED
                flags |= TEXT_OR_BYTES if tolerated else TEXT
            row = (field["key"], field["name"], WIRE[kind], WIRE.get(element, 0), index.get(held, -1), flags)
            lines.append(f"        {row!r},")
        lines.append("    )),")
    return "\n".join([*lines, ")", ""])


def generate() -> dict[str, str]:
    """All generated files as name -> text."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        compile_idl("json", out)
        idl = json.loads((out / "parquet.json").read_text("utf-8"))
        compile_idl(PY_OPTIONS, out)
        package = out.joinpath(*idl["namespaces"]["py"].split("."))
        files = {path.name: path.read_text("utf-8") for path in sorted(package.glob("*.py"))}
    return files | {"ttypes.pyi": stub(idl), "rules.py": rules(idl)}


def difference(files: dict[str, str]) -> str:
    """Unified diff from what is in the repository to what the compiler says; empty when they agree."""
    there = {path.name: path.read_text("utf-8") for path in TARGET.glob("*.py*") if path.is_file()}
    chunks = []
    for name in sorted(files.keys() | there.keys()):
        old, new = there.get(name, ""), files.get(name, "")
        chunks += difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"repository/{name}",
            f"regenerated/{name}",
        )
    return "".join(chunks)


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate the Python structs from parquet.thrift.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when they differ")
    check = parser.parse_args().check
    files = generate()
    if check:
        diff = difference(files)
        sys.stdout.write(diff)
        return 1 if diff else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (TARGET / name).write_text(text, "utf-8")
    print(f"{len(files)} files in {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
