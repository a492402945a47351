"""Warnings name the place of the damage, and point at the line of the caller."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyparq
import pyparq.parquet
from pyparq import col
from pyparq.runtime.messages import warn_caller
from pyparq.runtime.threads import map_tasks


@pytest.fixture
def damaged(tmp_path: Path) -> list[Path]:
    """Files whose OffsetIndexes of the first column are no Thrift."""
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    for path in paths:
        data = {"id": list(range(5000)), "s": [f"u{k}" for k in range(5000)]}
        pyparq.write_table(data, path, row_group_size=1000, max_rows_per_page=200)
        raw = bytearray(path.read_bytes())
        with pyparq.ParquetFile(path) as file:
            at = file.metadata.raw.row_groups[0].columns[0].offset_index_offset
        assert at is not None
        raw[at : at + 6] = b"\xff" * 6
        path.write_bytes(raw)
    return paths


WAYS: dict[str, Callable[[Path], Any]] = {
    "read_table": lambda path: pyparq.read_table(path, filters=col("id") == 77),
    "count": lambda path: pyparq.ParquetFile(path).scan(filters=col("id") == 77).count(),
    "batches": lambda path: list(pyparq.ParquetFile(path).scan(filters=col("id") == 77).iter_batches()),
    "written": lambda path: pyparq.write_table(
        pyparq.ParquetFile(path).scan(filters=col("id") == 77), path.parent / "out.pq"
    ),
    "drop-in": lambda path: pyparq.parquet.read_table(path, filters=[("id", "==", 77)]),
}


@pytest.mark.parametrize("way", WAYS)
def test_damage_is_told_of_each_file_at_the_callers_line(damaged: list[Path], way: str) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")  # as a program has it: once for each text and line
        for path in damaged:
            WAYS[way](path)
    told = [w for w in heard if issubclass(w.category, pyparq.CorruptIndexWarning)]
    assert [str(w.message).split(" [")[1] for w in told] == [
        f"file {path}, row group 0, column id]" for path in damaged
    ]
    source, first = inspect.getsourcelines(WAYS[way])
    for w in told:
        assert w.filename == __file__
        assert first <= w.lineno < first + len(source)


def test_a_file_that_is_left_out(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1]}, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    with pytest.warns(pyparq.errors.SkippedFileWarning, match=r"b\.parquet") as told:
        pyparq.dataset(tmp_path, on_error="skip").read()
    assert told[0].filename == __file__


def test_threads_of_ours_point_at_the_main_thread() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        map_tasks(lambda _: warn_caller(threading.current_thread().name), range(20), True)
    assert {w.filename for w in heard} == {__file__}


def rows() -> Iterator[dict[str, int]]:
    warn_caller("within")
    yield {"a": 1}


def test_the_nearest_line_counts(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="within") as told:
        pyparq.write_table(rows(), tmp_path / "a.parquet")
    assert told[0].lineno == inspect.getsourcelines(rows)[1] + 1
