"""Spark's own schema in the metadata of its files: kept by a rewrite where it still fits the columns."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.maintenance.kept_storage import ROW_METADATA

KEY = ROW_METADATA.encode()


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def text(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def write(table: pa.Table, path: Path, described: str) -> None:
    """As Spark does: with its own schema, and none of Arrow's."""
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: described})


def kept_text(path: Path) -> str:
    found: bytes = pq.read_metadata(path).metadata[KEY]
    return found.decode()


def kept(path: Path) -> list[tuple[str, Any]] | None:
    found = (pq.read_metadata(path).metadata or {}).get(KEY)
    return None if found is None else [(one["name"], one["type"]) for one in json.loads(found)["fields"]]


def array(of: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": of, "containsNull": True}


NESTED = {"type": "struct", "fields": [field("x", "interval year to month"), field("y", array("long"))]}
MAP = {"type": "map", "keyType": "string", "valueType": "interval hour to second", "valueContainsNull": True}
COLUMNS: dict[str, tuple[pa.Array, Any]] = {
    "day": (pa.array([1, None]), "interval day to second"),
    "month": (pa.array([1, 2], pa.int32()), "interval year to month"),
    "text": (pa.array(["a", "b"]), "string collate UTF8_LCASE"),
    "ts": (pa.array([1, 2], pa.timestamp("us", "UTC")), "timestamp"),
    "ntz": (pa.array([1, 2], pa.timestamp("us")), "timestamp_ntz"),
    "dec": (pa.array([1, 2]).cast(pa.decimal128(20, 0)), "decimal(20,0)"),
    "date": (pa.array([dt.date(2020, 1, 1), None]), "date"),
    "nested": (
        pa.array([{"x": 1, "y": [2]}, None], pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int64()))])), NESTED,
    ),
    "map": (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), MAP),
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    described = text(*(field(name, kind, note=name) for name, (_, kind) in COLUMNS.items()))
    write(pa.table({name: values for name, (values, _) in COLUMNS.items()}), tmp_path / "source.parquet", described)
    return tmp_path / "source.parquet"


def test_a_rewrite_keeps_it(source: Path, tmp_path: Path) -> None:
    pyparq.rewrite(source, tmp_path / "new.parquet", sort_by=["day"])
    assert kept(tmp_path / "new.parquet") == [(name, kind) for name, (_, kind) in COLUMNS.items()]
    described = json.loads(pq.read_metadata(tmp_path / "new.parquet").metadata[KEY])
    assert [one["metadata"] for one in described["fields"]] == [{"note": name} for name in COLUMNS]


def test_columns_that_are_left_out_or_become_folders(source: Path, tmp_path: Path) -> None:
    pyparq.rewrite(source, tmp_path / "new.parquet", columns=["text", "day"])
    assert kept(tmp_path / "new.parquet") == [("text", "string collate UTF8_LCASE"), ("day", "interval day to second")]
    pyparq.rewrite(source, tmp_path / "folder", columns=["text", "day"], partition_cols=["text"])
    for path in (tmp_path / "folder").glob("*/*.parquet"):
        assert kept(path) == [("day", "interval day to second")]


def test_what_the_caller_gives_comes_first(source: Path, tmp_path: Path) -> None:
    pyparq.rewrite(source, tmp_path / "new.parquet", key_value_metadata={ROW_METADATA: "mine", "a": "b"})
    metadata = pq.read_metadata(tmp_path / "new.parquet").metadata
    assert (metadata[KEY], metadata[b"a"]) == (b"mine", b"b")


@pytest.mark.parametrize(
    "described",
    [
        text(field("a", "integer")),  # the files together have wider integers
        text(field("a", "interval year to month")),
        text(field("a", "string")),
        text(field("b", "long")),
        text(field("a", array("long"))),
        text(field("a", {"type": "udt"})),
        text(field("a", 7)),
        "[" * 100_000,
        "{}",
        "no JSON",
        text(field("a", "long"), field("a", "long")).replace('"fields"', '"field"'),
    ],
    ids=str.__len__,
)
def test_what_does_not_fit_is_left_out(tmp_path: Path, described: str) -> None:
    (tmp_path / "in").mkdir()
    write(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "in" / "0.parquet", described)
    assert kept_text(tmp_path / "in" / "0.parquet") == described
    pq.write_table(pa.table({"a": pa.array([1 << 40])}), tmp_path / "in" / "1.parquet")
    pyparq.rewrite(tmp_path / "in", tmp_path / "out.parquet")
    assert kept(tmp_path / "out.parquet") is None
    assert pq.read_table(tmp_path / "out.parquet")["a"].to_pylist() == [1, 1 << 40]
