"""What notebooks, loops and other libraries make of files, scans and reports; and the debug lines."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pyparq
from pyparq import col
from pyparq.io.retry import Retry
from pyparq.runtime.tables import Bar, html_view, size_text

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views") / "data"
    pyparq.write_dataset({HOSTILE: list(range(200)), "y": ["a", "b"] * 100}, path, bloom_filters=["y"])
    return path


def file_in(folder: Path) -> Path:
    return next(folder.glob("*.parquet"))


SHOWN: dict[str, Callable[[Path], Any]] = {
    "ParquetFile": lambda f: pyparq.ParquetFile(file_in(f)),
    "SchemaTree": lambda f: pyparq.ParquetFile(file_in(f)).tree,
    "Schema": lambda f: pyparq.ParquetFile(file_in(f)).schema_arrow,
    "FileMetaData": lambda f: pyparq.read_metadata(file_in(f)),
    "Scan": lambda f: pyparq.ParquetFile(file_in(f)).scan(filters=col(HOSTILE) > 4),
    "Dataset": lambda f: pyparq.dataset(f),
    "DatasetScan": lambda f: pyparq.dataset(f).scan(filters=col(HOSTILE) > 4),
    "Explanation": lambda f: pyparq.ParquetFile(file_in(f)).scan(filters=col(HOSTILE) > 4).explain(),
    "DatasetExplanation": lambda f: pyparq.dataset(f).explain(filters=col(HOSTILE) > 4),
    "VerificationReport": lambda f: pyparq.verify(file_in(f)),
    "IndexReport": lambda f: pyparq.add_indexes(file_in(f), f.parent / "indexed.parquet", bloom_filters=[HOSTILE]),
    "MergeReport": lambda f: pyparq.merge([file_in(f)], f.parent / "merged.parquet"),
    "WriteReport": lambda f: pyparq.write_dataset({HOSTILE: [1]}, f.parent / f"<b>{len(list(f.parent.iterdir()))}"),
    "Table": lambda f: pyparq.read_table(file_in(f)),
    "FileMap": lambda f: pyparq.ParquetFile(file_in(f)).map(),
}  # fmt: skip


class Tags(HTMLParser):
    """Checks that tags are closed in order, and gathers the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_get_escaped_tables(name: str, folder: Path) -> None:
    thing = SHOWN[name](folder)
    assert type(thing).__name__ == name
    page = Tags()
    page.feed(thing._repr_html_())
    page.close()
    assert page.open == []
    assert page.seen <= {"div", "table", "thead", "tbody", "tr", "th", "td", "b", "span", "p", "iframe"}
    if name in ("Dataset", "VerificationReport"):
        assert "parquet" in page.text
    elif name not in ("FileMetaData", "MergeReport", "WriteReport", "FileMap"):
        assert HOSTILE in page.text
    assert len(thing._repr_html_()) < 200_000


@pytest.mark.parametrize("name", SHOWN)
def test_reprs_have_one_style(name: str, folder: Path) -> None:
    """``<Name ...>`` for what stands for something on disk, ``pyparq.Name (...)`` before a preview of values."""
    text = repr(SHOWN[name](folder))
    if name in ("Schema", "SchemaTree", "Table"):
        assert text.startswith(f"pyparq.{name} (")
    else:
        assert re.fullmatch(rf"<{name}[ :].*>", text, re.S), text
        assert len(text) < 400


def test_a_view_shows_so_many_rows() -> None:
    page = html_view("t", (), ["n", "bar"], [[k, Bar(k / 100)] for k in range(100)])
    assert page.count("<tr>") == 61
    assert "… 40 more" in page


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_999, "1 MB"), (12_345_678, "12.3 MB")]
)
def test_sizes_as_text(size: int, text: str) -> None:
    assert size_text(size) == text


SOURCES: dict[str, Callable[[Path], Any]] = {
    "scan": lambda f: pyparq.ParquetFile(file_in(f)).scan(["y"], col(HOSTILE) < 3),
    "dataset": lambda f: pyparq.dataset(f).scan(["y"], col(HOSTILE) < 3),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_scans_become_frames_of_others(kind: str, folder: Path) -> None:
    make = SOURCES[kind]
    wanted = {"y": ["a", "b", "a"]}
    assert make(folder).to_arrow().equals(pa.table(wanted))
    assert make(folder).to_polars().equals(pl.DataFrame(wanted))
    pd.testing.assert_frame_equal(make(folder).to_pandas(), pa.table(wanted).to_pandas())
    assert make(folder).to_pandas(strings_to_categorical=True)["y"].dtype == "category"
    assert [value for batch in make(folder) for value in batch.to_pydict()["y"]] == wanted["y"]


def test_datasets_become_frames_of_others(folder: Path) -> None:
    dataset = pyparq.dataset(folder)
    whole = dataset.read()
    assert dataset.to_arrow().equals(whole.to_arrow())
    assert dataset.to_polars().equals(whole.to_polars())
    pd.testing.assert_frame_equal(dataset.to_pandas(), whole.to_pandas())
    assert sum(batch.num_rows for batch in dataset) == 200


# ---- debug lines


def test_debug_lines(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pyparq"):
        pyparq.read_table(file_in(folder), ["y"], filters=col(HOSTILE) == 4)
        pyparq.dataset(folder).scan(filters=col(HOSTILE) == 4).to_table()
    lines = [f"{record.name}: {record.getMessage()}" for record in caplog.records]
    for line in (
        r"pyparq\.io: .* 1 requests: [\d,]+ bytes at \d+",
        r"pyparq\.read: .* pruned by statistics: row groups 1 -> 1, rows 200 -> 200",
        r"pyparq\.read: .* planned 1 row groups together, columns .*y: all pages",
        r"pyparq\.datasets: .* partitions leave 1 of 1 files",
    ):
        assert any(re.match(line, found) for found in lines), (line, lines)


def test_one_package_alone(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pyparq.read"):
        pyparq.read_table(file_in(folder), ["y"], filters=col(HOSTILE) == 4)
    assert {record.name for record in caplog.records} == {"pyparq.read"}


def test_retries_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([ConnectionError("gone"), "here"])

    def ask(wanted: Any) -> list[Any]:
        return [next(answers)]

    with caplog.at_level(logging.DEBUG, "pyparq"):
        assert Retry(2, 0.001).each(ask, [1]) == ["here"]
    (record,) = caplog.records
    assert record.name == "pyparq.io"
    assert "1 requests are repeated" in record.getMessage()
    assert "ConnectionError: gone" in record.getMessage()


CALLS = """
import sys, pyparq
from pyparq import col
if {log}:
    import logging
path, seen = sys.argv[1], []
read = lambda: pyparq.read_table(path, ["y"], filters=col("y") == "a")
read()
sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_filename) if event == "call" else None)
read()
sys.setprofile(None)
print("logging" in sys.modules, sum("logging" in name or name.endswith("logs.py") for name in seen))
"""


@pytest.mark.parametrize("log", [False, True])
def test_without_debug_lines_nothing_is_called(log: bool, folder: Path) -> None:
    """Without ``logging`` no call at all; with it the question whether lines are wanted, once per scan and package."""
    command = [sys.executable, "-c", CALLS.format(log=log), str(file_in(folder))]
    loaded, calls = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert loaded == str(log)
    assert int(calls) <= 8 if log else int(calls) == 0
