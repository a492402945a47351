"""What loads with its first use loads whole, also where many threads ask for it at once in a fresh process."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import pyparq

ROOT = Path(pyparq.__file__).parent
TOGETHER = """
import sys, threading
{before}
import pyparq

table = pyparq.read_table(sys.argv[1])
(batch,) = table.batches
jobs = [{jobs}] * 6
start, failed = threading.Barrier(len(jobs)), []

def run(job):
    start.wait()
    try:
        job()
    except BaseException as error:
        failed.append(repr(error))

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(set(failed)))
"""

ARROW = """
    lambda: table.schema.__arrow_c_schema__(), lambda: table.__arrow_c_stream__(), lambda: table.__arrow_c_schema__(),
    lambda: pyparq.Batch(batch.columns, batch.num_rows, table.schema).__arrow_c_array__(),
"""
WRITER = """
    lambda: pyparq.write_table, lambda: table.to_numpy("a"), lambda: pyparq.ParquetWriter,
    lambda: __import__("pyparq.arrow.to_polars", fromlist=["x"]).for_polars(table.schema, []), lambda: repr(table),
"""
KEYS = "lambda: pyparq.EncryptionProperties(bytes(16)), lambda: pyparq.DecryptionProperties(bytes(16)),"


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("before", "jobs"), [("import pandas", ARROW), ("", ARROW), ("", WRITER), ("", KEYS)])
def test_many_threads_load_at_once(tmp_path: Path, before: str, jobs: str) -> None:
    pyparq.write_table({"a": [1, 2, 3], "b": ["x", "y", "z"]}, tmp_path / "t.parquet")
    code = TOGETHER.format(before=before, jobs=jobs)
    for _ in range(3):
        command = [sys.executable, "-c", code, str(tmp_path / "t.parquet")]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout.strip() == "[]"


def test_nothing_of_nanoarrow_is_imported_by_statement() -> None:
    """``from nanoarrow.x import y`` in a function would race: :func:`pyparq.runtime.lazy_import.load` is the way in."""
    package = Path(pyparq.__file__).parent
    lines = [
        f"{path.name}: {line.strip()}"
        for path in package.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith(("from nanoarrow", "import nanoarrow", "from cryptography", "import cryptography"))
    ]
    assert lines == []


ALONE = """
import pickle, sys

column, schema = pickle.loads(bytes.fromhex(sys.argv[1]))
assert "pyparq.arrow.table" not in sys.modules
print(column.to_pylist(), column.to_numpy().tolist(), type(column.__arrow_c_array__()[1]).__name__)
print(type(schema.__arrow_c_schema__()).__name__)
"""


def test_a_column_and_a_schema_by_themselves_are_whole() -> None:
    """Another process unpickles them, and imports no table."""
    table = pyparq.Table.from_pydict({"a": [1, None, 3]})
    pickled = pickle.dumps((table.chunks("a")[0], table.schema)).hex()
    run = subprocess.run([sys.executable, "-c", ALONE, pickled], capture_output=True, text=True)
    assert run.stdout.splitlines() == ["[1, None, 3] [1, None, 3] PyCapsule", "PyCapsule"], run.stderr


READ = """
import sys
import pyparq

pyparq.read_table(sys.argv[1])
print([m for m in sys.modules if m.startswith("pyparq.")])
"""


COUNT = """
import sys
from pyparq.cli import main

try:
    main(["count", sys.argv[1]])
finally:
    print([m for m in sys.modules if m.startswith("pyparq.")])
"""


def test_counting_loads_neither_keys_nor_filters(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1, 2, 3]}, tmp_path / "t.parquet")
    command = [sys.executable, "-c", COUNT, str(tmp_path / "t.parquet")]
    rows, loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert rows == "3"
    assert "pyparq.read.footers.open_file" in loaded
    for name in ("encryption.cipher'", "encryption.properties'", "filters.", "read.file'", "arrow.table'"):
        assert f"'pyparq.{name}" not in loaded, name


def test_a_read_loads_no_conversions(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1, 2, 3], "b": ["x", None, "z"], "l": [[1], [], [2]]}, tmp_path / "t.parquet")
    command = [sys.executable, "-c", READ, str(tmp_path / "t.parquet")]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "pyparq.arrow.table" in loaded
    for name in ("ingest", "preview", "equality", "to_python", "to_pandas", "to_polars"):
        assert f"pyparq.arrow.{name}'" not in loaded
    for name in ("filters.predicate", "encryption.cipher", "encryption.material", "read.plan.scan_plan"):
        assert f"'pyparq.{name}'" not in loaded
    assert loaded.count("'pyparq.") <= 110


def test_lazy_modules_are_not_needed_while_a_module_loads() -> None:
    """Where one needs a name of another at once, it imports that name: who loads both in other orders, in two threads,
    would wait for the other's lock."""
    lazy: dict[str, set[str]] = {}
    for path in ROOT.rglob("__init__.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "load_later":
                package = ".".join(("pyparq", *path.parent.relative_to(ROOT).parts))
                lazy[package] = {str(ast.literal_eval(name)) for name in node.args[1:]}
    assert "expression" in lazy["pyparq.filters"]
    found = []
    for path in ROOT.rglob("*.py"):
        body = ast.parse(path.read_text()).body
        imports = [node for node in body if isinstance(node, ast.ImportFrom) and node.module]
        loaded = {node.module for node in imports}
        names = {
            alias.asname or alias.name
            for node in imports
            for alias in node.names
            if alias.name in lazy.get(str(node.module), ()) and f"{node.module}.{alias.name}" not in loaded
        }
        found += [f"{path.name}:{node.lineno}" for node in body for used in at_once(node) if used in names]
    assert found == []


def at_once(node: ast.AST) -> Iterator[str]:
    """Names whose attributes are asked for when the statement is run: not in functions, and not in annotations."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield node.value.id
    parts: Iterable[ast.AST | None] = ast.iter_child_nodes(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
    elif isinstance(node, ast.Lambda):
        parts = ()
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value]
    for part in parts:
        if part is not None:
            yield from at_once(part)
