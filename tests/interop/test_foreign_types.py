"""The files in ``testdata/types``: types that few writers write, as others write them, compared with what
``testdata/make_types.py`` put into them. Needs no other library."""

from __future__ import annotations

import datetime as dt
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_foreign import plain

import pyparq
from pyparq import col
from pyparq.format.types import LeafType

TYPES = Path(__file__).parents[2] / "testdata" / "types"
EXPECTED: dict[str, Any] = json.loads((TYPES / "expected.json").read_text("utf-8"))
COLUMNS = [(file, column) for file, about in EXPECTED.items() for column in about["columns"]]


def test_all_files_are_listed() -> None:
    assert sorted(p.stem for p in TYPES.glob("*.parquet")) == sorted(EXPECTED)


def stated(value: Any) -> Any:
    return value // dt.timedelta(microseconds=1) * 1000 if isinstance(value, dt.timedelta) else plain(value)


def stored(table: pyparq.Table, column: str) -> list[Any]:
    """The values; of Variants the bytes, and not what they hold."""
    return [value for chunk in table.chunks(column) for value in chunk.to_pylist()]


@pytest.mark.parametrize(("file", "column"), COLUMNS)
def test_values(file: str, column: str) -> None:
    about = EXPECTED[file]["columns"][column]
    with pyparq.ParquetFile(TYPES / f"{file}.parquet") as opened:
        assert str(opened.schema_arrow.field(column).type) == about["type"]
        for table in (opened.read(), opened.read([column]), opened.take([0, 1, 2])):
            assert [stated(v) for v in stored(table, column)] == about["values"]
        (last,) = stored(opened.take([2], [column]), column)
        assert stated(last) == about["values"][2]
        nulls = stored(opened.read([column], col(column).is_null()), column)
        assert nulls == [None] * about["values"].count(None)


def by_default(leaf: LeafType) -> LeafType:
    return replace(leaf, crs="" if leaf.crs == "OGC:CRS84" else leaf.crs)


@pytest.mark.parametrize("file", EXPECTED)
def test_what_is_read_can_be_written(file: str) -> None:
    """With its annotations. Durations have none in Parquet; lists and maps get the standard form."""
    with pyparq.ParquetFile(TYPES / f"{file}.parquet") as opened:
        names = [field.name for field in opened.schema_arrow if field.type.kind != "duration"]
        table = opened.read(names)
        leaves = {leaf.dotted: by_default(leaf.type) for leaf in opened.tree.leaves}
    again = io.BytesIO()
    pyparq.write_table(table, again, decimal_storage={"decimal_binary": "binary"} if "decimal_binary" in names else {})
    with pyparq.ParquetFile(again) as opened:
        assert opened.read().to_pydict() == table.to_pydict()
        flat = {leaf.dotted: by_default(leaf.type) for leaf in opened.tree.leaves if leaf.max_rep == 0}
        assert flat == {name: leaves[name] for name in flat}
        assert len(flat) > 5
