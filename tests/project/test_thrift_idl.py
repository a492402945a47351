"""Our IDL, the generated classes and the checker's table against the standard's facts.

`thrift_facts.json` lists every enum, struct and union of the public parquet.thrift (repository
apache/parquet-format): members and values; field ids, names, types, requiredness and defaults.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TType

from pyparq.format.generated import ttypes
from pyparq.format.generated.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
GENERATE = ROOT / "thrift_idl" / "generate.py"
FACTS = json.loads((Path(__file__).parents[1] / "support" / "thrift_facts.json").read_text("utf-8"))
ENUMS: dict[str, dict[str, int]] = FACTS["enums"]
STRUCTS: dict[str, dict[str, Any]] = FACTS["structs"]
NAMES = sorted(STRUCTS)

WIRE = {"bool": 1, "i8": 3, "i16": 4, "i32": 5, "i64": 6, "double": 7, "string": 8, "binary": 8}
TTYPE = {
    "bool": TType.BOOL, "i8": TType.BYTE, "i16": TType.I16, "i32": TType.I32, "i64": TType.I64,
    "double": TType.DOUBLE, "string": TType.STRING, "binary": TType.STRING,
}  # fmt: skip


def element(kind: str) -> str | None:
    return kind[5:-1] if kind.startswith("list<") else None


def plain(kind: str) -> str:
    """The wire's name of a type: enums travel as i32."""
    return "i32" if kind in ENUMS else kind


def parsed_idl() -> dict[str, Any]:
    text = (ROOT / "thrift_idl" / "parquet.thrift").read_text("utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    found: dict[str, Any] = {"enums": {}, "structs": {}}
    for kind, name, body in re.findall(r"\b(enum|struct|union)\s+(\w+)\s*\{([^}]*)\}", text):
        assert name not in found["enums"]
        assert name not in found["structs"]
        if kind == "enum":
            found["enums"][name] = {key: int(value) for key, value in re.findall(r"(\w+)\s*=\s*(\d+);", body)}
            continue
        field = r"(\d+):\s*(required |optional )?([\w<>]+)\s+(\w+)(?:\s*=\s*(\w+))?;"
        fields = [
            [int(number), field_name, type_name, required.strip() or "optional", default or None]
            for number, required, type_name, field_name, default in re.findall(field, body)
        ]
        assert len(fields) == body.count(";"), name
        found["structs"][name] = {"kind": kind, "fields": fields}
    return found


def test_idl_states_the_facts() -> None:
    idl = parsed_idl()
    assert idl["enums"] == ENUMS
    assert idl["structs"].keys() == STRUCTS.keys()
    for name in NAMES:
        assert idl["structs"][name] == STRUCTS[name], name


def test_facts_are_the_whole_standard() -> None:
    # Guards the table itself against being cut short.
    assert len(ENUMS) == 8
    assert len(STRUCTS) == 61
    assert sum(len(struct["fields"]) for struct in STRUCTS.values()) == 176
    assert [f[:2] for f in STRUCTS["ColumnOrder"]["fields"]][-1] == [3, "INT96_TIMESTAMP_ORDER"]
    assert ENUMS["Encoding"]["ALP"] == 10


@pytest.mark.parametrize("name", sorted(ENUMS))
def test_generated_enum(name: str) -> None:
    cls = getattr(ttypes, name)
    assert ENUMS[name] == cls._NAMES_TO_VALUES
    assert {number: label for label, number in ENUMS[name].items()} == cls._VALUES_TO_NAMES
    assert all(getattr(cls, label) == number for label, number in ENUMS[name].items())


@pytest.mark.parametrize("name", NAMES)
def test_generated_struct(name: str) -> None:
    cls, fields = getattr(ttypes, name), STRUCTS[name]["fields"]
    assert list(getattr(cls, "__slots__", ())) == [field[1] for field in fields]
    spec = [row for row in cls.thrift_spec if row is not None]
    assert len(spec) == len(fields)
    for row, (number, field_name, kind, _, default) in zip(spec, fields, strict=True):
        assert cls.thrift_spec[number] is row
        assert (row[0], row[2]) == (number, field_name)
        expected_default = {None: None, "true": True, "0": 0}[default]
        assert row[4] is expected_default
        assert getattr(cls(), field_name) is expected_default
        inner = element(kind)
        wire, argument = (row[1], row[3]) if inner is None else (row[3][0], row[3][1])
        if inner is not None:
            assert row[1] == TType.LIST
        value = plain(inner or kind)
        if value in STRUCTS:
            assert wire == TType.STRUCT
            held = getattr(ttypes, value)
            assert argument[0] is held
            assert argument[1] is held.thrift_spec
        else:
            assert wire == TTYPE[value]
            assert argument == {"string": "UTF8", "binary": "BINARY"}.get(value)


def test_checker_table() -> None:
    assert sorted(row[0] for row in RULES) == NAMES
    for name, is_union, fields in RULES:
        facts = STRUCTS[name]
        assert is_union == (facts["kind"] == "union")
        assert len(fields) == len(facts["fields"])
        for row, (number, field_name, kind, required, _) in zip(fields, facts["fields"], strict=True):
            inner = element(kind)
            value = plain(inner or kind)
            wire = WIRE.get(value, 12)
            assert row[:4] == (number, field_name, 9 if inner else wire, wire if inner else 0)
            assert (RULES[row[4]][0] if row[4] >= 0 else None) == (value if value in STRUCTS else None)
            assert bool(row[5] & 1) == (required == "required")
            text = 0 if value != "string" else 4 if (name, field_name) == ("KeyValue", "value") else 2
            assert row[5] & 6 == text


def annotations(stub: ast.Module) -> dict[str, dict[str, str]]:
    return {
        node.name: {
            line.target.id: ast.unparse(line.annotation)
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }
        for node in stub.body
        if isinstance(node, ast.ClassDef)
    }


def test_type_stub() -> None:
    path = ROOT / "pyparq" / "format" / "generated" / "ttypes.pyi"
    found = annotations(ast.parse(path.read_text("utf-8")))
    python = {"bool": "bool", "double": "float", "string": "str", "binary": "bytes"}
    for name in NAMES:
        stub = found[name]
        del stub["thrift_spec"]
        assert list(stub) == [field[1] for field in STRUCTS[name]["fields"]]
        for _, field_name, kind, required, _ in STRUCTS[name]["fields"]:
            value = plain(element(kind) or kind)
            expected = value if value in STRUCTS else python.get(value, "int")
            expected = f"list[{expected}]" if element(kind) else expected
            expected += " | bytes" if (name, field_name) == ("KeyValue", "value") else ""
            assert stub[field_name] == (expected if required == "required" else f"{expected} | None")


def load_generate() -> Any:
    spec = importlib.util.spec_from_file_location("thrift_generate", GENERATE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def need_compiler() -> None:
    wanted = load_generate().COMPILER_VERSION
    path = shutil.which(os.environ.get("PYPARQ_THRIFT", "thrift"))
    said = subprocess.run([path, "-version"], capture_output=True, text=True).stdout if path else "none"
    if wanted not in said.split():
        reason = f"needs the Thrift compiler {wanted}, here is {said.strip()}"
        if os.environ.get("PYPARQ_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def test_generated_files_are_up_to_date() -> None:
    need_compiler()
    done = subprocess.run([sys.executable, str(GENERATE), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_check_notices_a_hand_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    need_compiler()
    generate = load_generate()
    copy = tmp_path / "generated"
    shutil.copytree(generate.TARGET, copy)
    monkeypatch.setattr(generate, "TARGET", copy)
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    assert generate.main() == 0
    ttypes_copy = copy / "ttypes.py"
    ttypes_copy.write_text(ttypes_copy.read_text("utf-8").replace("ALP = 10", "ALP = 11"), "utf-8")
    (copy / "stray.py").write_text("x = 1\n", "utf-8")
    assert generate.main() == 1
    shown = capsys.readouterr().out
    assert "-    ALP = 11" in shown
    assert "+    ALP = 10" in shown
    assert "-x = 1" in shown
