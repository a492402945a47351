"""What a user's tools see of the API: names, types of arguments, help, and the page that lists it all."""

from __future__ import annotations

import os
import pydoc
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from api_page import (
    _ALIASES,
    ARGUMENT_TYPES,
    ARGUMENTS,
    DOCS,
    OPTIONS,
    PAGE,
    SECTIONS,
    TAKES,
    options_of,
    page_of,
    parted,
    public,
    stale,
)

import pyparq
from pyparq import arguments
from pyparq.errors import OptionError

ROOT = Path(__file__).parents[2]
USES = Path(__file__).parents[1] / "support" / "typed_uses.py"


def test_mypy_tells_right_uses_from_wrong_ones(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    command = [
        sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}",
        "--follow-imports=silent", "--hide-error-context", "--no-pretty", "--no-error-summary", str(USES),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, check=False
    )
    refused: dict[int, str] = {}
    for line in done.stdout.splitlines():
        found = re.match(r".*typed_uses\.py:(\d+): error: (.*)", line)
        if found:
            refused[int(found[1])] = refused.get(int(found[1]), "") + found[2]
    marked = {
        number: line.split("# wrong: ")[1]
        for number, line in enumerate(USES.read_text().splitlines(), 1)
        if "# wrong: " in line and not line.startswith("A line")
    }
    assert len(marked) > 20
    assert set(refused) == set(marked), done.stdout + done.stderr
    assert [(n, words) for n, words in marked.items() if words not in refused[n]] == []


@pytest.mark.parametrize(("cls", "typed"), [("ReadOptions", "ReadArguments"), ("WriteOptions", "WriteArguments")])
def test_keyword_arguments_are_the_options(cls: str, typed: str) -> None:
    """As mypy sees them and as they are at run time."""
    options = {field.name for field in fields(getattr(pyparq, cls))}
    aliases = set(_ALIASES) if cls == "WriteOptions" else set()
    known = set(getattr(arguments, typed).__annotations__)
    assert known == options | aliases, (
        f"pyparq/arguments.py and pyparq/options.py differ in {sorted(known ^ (options | aliases))}: "
        "run python tests/support/api_page.py"
    )


@pytest.mark.parametrize("cls", OPTIONS)
def test_every_option_has_a_meaning(cls: str) -> None:
    assert [field.name for field in fields(getattr(pyparq, cls))] == [option.name for option in options_of(cls)]
    without = [option.name for option in options_of(cls) if len(option.meaning) < 8]
    assert without == [], f"write a docstring under these fields of {cls}"


def test_made_files_are_up_to_date() -> None:
    assert stale() == [], "run python tests/support/api_page.py"


def test_a_stale_file_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_page.options_of", lambda cls: options_of(cls)[1:])
    assert set(stale()) == {ARGUMENTS.name, "api-options-for-reading.md", "api-options-for-writing.md"}


def test_the_page_lists_every_public_name() -> None:
    contents, page = PAGE.read_text(), "".join(page.read_text() for page in DOCS.glob("api-*.md"))
    headings = set(re.findall(r"^## `(\w+)`", page, re.MULTILINE)) | set(re.findall(r"\*\*`(\w+)`\*\*", page))
    assert headings == set(pyparq.__all__) - {"__version__"}
    assert headings == set(re.findall(r"^\| \[`(\w+)`\]", contents, re.MULTILINE))
    for name in ("max_expansion", "coalesce_gap", "int96_timestamps", "nulls_first", "power_of_two"):
        assert f"| `{name}` |" in page


WITHOUT = {"Finding", "WrittenFile", "IndexedFile", "IndexedColumn"}
"""Parts of reports: the example of the report shows them."""


@pytest.mark.parametrize("name", [name for _, names in SECTIONS for name in names])
def test_each_public_name_has_an_example(name: str) -> None:
    """The page shows it, and the test of the page's blocks runs it."""
    if name.startswith("spark."):
        pytest.importorskip("pyspark")
    found = public(name)
    if name in WITHOUT or (isinstance(found, type) and issubclass(found, (Exception, Warning))):
        return
    example = parted(found)[1]
    assert example, "write an Example:: at the end of its docstring"
    assert isinstance(found, type) or f"{found.__name__}(" in example


@pytest.mark.parametrize("name", TAKES)
def test_help_lists_every_option_with_its_meaning_and_default(name: str) -> None:
    text = pydoc.plain(pydoc.render_doc(getattr(pyparq, name)))
    for option in options_of(TAKES[name]):
        assert f"{option.name} = {option.default}" in text
    assert ("Maximum size of a data page before compression" in text) == (TAKES[name] == "WriteOptions")
    assert ("are read in one request" in text) == (TAKES[name] == "ReadOptions")


def test_public_callables_stay_when_every_module_is_imported() -> None:
    """A module takes the place of a function of its name when it is imported."""
    code = (
        "import pkgutil, importlib, types, pyparq\n"
        "before = {name: getattr(pyparq, name) for name in pyparq.__all__}\n"
        "names = [m.name for m in pkgutil.walk_packages(pyparq.__path__, 'pyparq.')]\n"
        "names.remove('pyparq.__main__')  # it is a program\n"
        "assert len(names) > 100\n"
        "for name in names: importlib.import_module(name)\n"
        "for name, value in before.items():\n"
        "    assert getattr(pyparq, name) is value and not isinstance(value, types.ModuleType), name\n"
        "    assert callable(value) or name == '__version__', name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_loads_what_reading_needs_alone() -> None:
    code = (
        "import sys, pyparq\n"
        "assert pyparq.Scan and pyparq.WriteOptions and pyparq.CorruptFileError\n"
        "later = ('pyparq.write.file', 'pyparq.encryption.keytools', 'pyparq.arguments', 'pyparq.cli')\n"
        "print([name for name in later if name in sys.modules])\n"
        "print(pyparq.write_table.__module__, pyparq.errors.__name__, pyparq.limits.__name__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["[]", "pyparq.write.file pyparq.errors pyparq.limits"]


def test_the_import_alone_loads_little() -> None:
    """The reader comes with its first use; so do threads, and what only remote files need, after it."""
    late = (
        "asyncio",
        "concurrent.futures",
        "pyparq.read.file",
        "pyparq.options",
        "pyparq.arrow.table",
        "pyparq.io.fetch",
    )
    code = (
        f"import sys, pyparq; print([name for name in {late} if name in sys.modules])\n"
        "pyparq.ParquetFile; print('asyncio' in sys.modules, pyparq.options.ReadOptions is pyparq.ReadOptions)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["[]", "False True"]


FIRST = (
    "read.scan",
    "write.file",
    "arrow.table",
    "format.types",
    "filters.expression",
    "datasets.dataset",
    "options",
)


@pytest.mark.parametrize("first", FIRST)
def test_any_module_can_be_the_first(first: str) -> None:
    """No module counts on another one having been imported before."""
    subprocess.run([sys.executable, "-c", f"import pyparq.{first}"], capture_output=True, text=True, check=True)


def test_a_name_that_pyparq_does_not_have() -> None:
    with pytest.raises(AttributeError, match="no attribute 'reed_table'; did you mean 'read_table'"):
        _ = pyparq.reed_table
    assert not any(hasattr(pyparq, name) for name in ("qqqq", "a.b", "", "_qq", "__qq__"))


UNKNOWN: list[tuple[Any, str]] = [
    (lambda: pyparq.read_table(b"", colums=["a"]), "did you mean 'columns'?"),
    (lambda: pyparq.read_table(b"", filterz=[("a", "=", 1)]), "did you mean 'filters'?"),
    (lambda: pyparq.read_table(b"", verify_checksum=False), "did you mean 'verify_checksums'?"),
    (lambda: pyparq.read_table(b"", row_group=[0]), "did you mean 'row_groups'?"),
    (lambda: pyparq.ParquetFile(b"", columns=["a"]), r"give it to read_table\(\), or to read\(\) or scan\(\)"),
    (lambda: pyparq.ParquetFile(b"", filter=1), r"did you mean 'filters'\? give it to read_table\(\), or"),
    (lambda: pyparq.read_table(b"", use_pandas_metadat=True), "did you mean 'use_pandas_metadata'.*leave it out"),
    (lambda: pyparq.write_table({"a": [1]}, "f", compresion="zstd"), "did you mean 'compression'"),
    (lambda: pyparq.write_table({"a": [1]}, "f", schem=None), "did you mean 'schema'"),
    (
        lambda: pyparq.write_table({"a": [1]}, "f", partition_cols=["a"]),
        r"Use pyparq.write_dataset\(data, folder, partition_cols",
    ),
    (
        lambda: pyparq.ParquetWriter("f", None, partition_by=["a"]),
        r"Use pyparq.write_dataset\(data, folder, partition_cols",
    ),
]


@pytest.mark.parametrize(("call", "told"), UNKNOWN)
def test_unknown_names_say_what_to_write(call: Any, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=told):
        call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [pyparq.ReadOptions, pyparq.WriteOptions, pyparq.BloomOptions, pyparq.SortKey])
def test_the_page_explains_the_types_of_options(options: type) -> None:
    """Each name of a type that a table of options uses stands on the page, unless it is public itself."""
    explained = set(re.findall(r"^- `(\w+)`", page_of(ARGUMENT_TYPES).read_text(), re.MULTILINE))
    used = {name for field in fields(options) for name in re.findall(r"\b[A-Z][a-z]\w+", str(field.type))}
    known = {*pyparq.__all__, "Literal", "None", "True", "False"}
    assert {name for name in used if not name.isupper()} - known - explained == set()
    assert {"Names", "PerColumn", "Compression", "Bloom", "SortOrder", "Filters"} <= explained
