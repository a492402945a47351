"""Variants in structs, lists and maps that are taken apart when they are written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.arrow.variant_values import encode
from pyparq.errors import ColumnNotFoundError, DataError, OptionError

SCHEMA = pyparq.schema({
    "id": "int64", "s": "struct<a: int8?, v: variant?>?", "l": "list<variant?>?", "m": "map<string,variant?>?",
    "d": "list<struct<v: variant?>?>?", "v": "variant?", "r": "struct<x: struct<v: variant>>?",
})  # fmt: skip
OBJECT = {"user": {"id": "int64"}, "tags": ["string"]}
PATHS = ("s.v", "l.list.element", "m.key_value.value", "d.list.element.v", "v", "r.x.v")
VALUES: list[Any] = [
    {"user": {"id": 5}, "tags": ["a", "b"]}, None, 7, "text", {"user": {"id": "x"}, "more": [1, None]}, [1, "a"],
    {"user": {"id": 6}}, {},
]  # fmt: skip


def rows(count: int = 60) -> list[dict[str, Any]]:
    made = []
    for k in range(count):
        value = VALUES[k % len(VALUES)]
        made.append({
            "id": k, "s": None if k % 7 == 3 else {"a": k, "v": value}, "l": None if k % 5 == 2 else [value] * (k % 4),
            "m": None if k % 3 == 1 else [("x", value), ("y", k)], "d": [{"v": value}, None] if k % 2 else [],
            "v": value, "r": None if k % 4 == 1 else {"x": {"v": 0 if value is None else value}},
        })  # fmt: skip
    return made


def written(data: Any, shredding: Any, schema: Any = SCHEMA, **options: Any) -> bytes:
    out = io.BytesIO()
    pyparq.write_table(data, out, schema=schema, shredding=shredding, **options)
    return out.getvalue()


@pytest.mark.parametrize("names", [PATHS, tuple(tuple(path.split(".")) for path in PATHS)], ids=["dotted", "tuples"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_at_any_depth(names: tuple[Any, ...], version: str) -> None:
    data = written(rows(), dict.fromkeys(names, OBJECT), data_page_version=version, row_group_size=17)
    assert pyparq.read_table(data).to_pylist() == rows()
    assert pyparq.verify(data).ok
    leaves = {leaf.dotted for leaf in pyparq.ParquetFile(data).tree.leaves}
    assert {f"{path}.typed_value.user.typed_value.id.typed_value" for path in PATHS} <= leaves
    assert pyparq.read_table(data, rows=[3, 40]).to_pylist() == [rows()[3], rows()[40]]


def test_auto_takes_what_most_have() -> None:
    mostly = [{"user": {"id": k}} for k in range(9)] + ["rest"]
    data = [{"s": {"v": value}, "l": [value, value], "m": [("k", value)]} for value in mostly]
    schema = pyparq.schema({"s": "struct<v: variant?>", "l": "list<variant?>", "m": "map<string,variant?>"})
    for given in ("auto", {"s.v": "auto", "l.list.element": "auto", ("m", "key_value", "value"): "auto"}):
        stored = written(data, given, schema)
        found = [leaf.dotted for leaf in pyparq.ParquetFile(stored).tree.leaves]
        for path in ("s.v", "l.list.element", "m.key_value.value"):
            assert f"{path}.typed_value.user.typed_value.id.typed_value" in found
        assert pyparq.read_table(stored).to_pylist() == data
    assert written(data, {}, schema) == written(data, None, schema)


VARIANT = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}
PARTS = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
ELEMENT = pa.field("element", PARTS, metadata=VARIANT)


def variants(values: list[Any], known: list[bool]) -> pa.Array:
    """Whole Variants, with bytes that are none where they are not ``known``."""
    parts = [encode(value) if there else (b"none", b"none") for value, there in zip(values, known, strict=True)]
    columns = [pa.array([part[k] for part in parts], pa.binary()) for k in (0, 1)]
    return pa.StructArray.from_arrays(columns, ["metadata", "value"])


def lists_of(kind: str) -> pa.Array:
    """Four lists of two Variants, two of them null."""
    items, mask = variants(VALUES, [k % 4 < 2 for k in range(8)]), pa.array([False, True, False, True])
    starts, sizes = [0, 2, 4, 6, 8], [2, 2, 2, 2]
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(items, type=pa.list_(ELEMENT, 2), mask=mask)
    if kind == "list":
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), items, pa.list_(ELEMENT), mask=mask)
    if kind == "large list":
        return pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), items, pa.large_list(ELEMENT), mask=mask)
    edges = pa.array(starts[:4], pa.int32()), pa.array(sizes, pa.int32())
    return pa.ListViewArray.from_arrays(*edges, items, pa.list_view(ELEMENT), mask=mask)


@pytest.mark.parametrize("kind", ["list", "large list", "fixed", "list view"])
def test_lists_of_every_layout(kind: str) -> None:
    """Slices too. Below null lists there are bytes that are no Variant."""
    table = pa.table({"l": lists_of(kind)})
    shown = [None if k % 2 else VALUES[2 * k : 2 * k + 2] for k in range(4)]
    for start, count in ((0, 4), (1, 3), (2, 1), (1, 1), (4, 0)):
        data = written(table.slice(start, count), {"l.list.element": OBJECT}, None)
        assert pyparq.read_table(data)["l"].to_pylist() == shown[start : start + count]


def test_null_structs_may_hold_anything() -> None:
    inner = variants(VALUES, [k % 3 != 1 for k in range(8)])
    mask = pa.array([k % 3 == 1 for k in range(8)])
    fields = [pa.field("v", PARTS, metadata=VARIANT, nullable=nullable) for nullable in (True, False)]
    for field in fields:
        table = pa.table({"s": pa.StructArray.from_arrays([inner], fields=[field], mask=mask)})
        for part in (table, table.slice(1, 4)):
            found = pyparq.read_table(written(part, {"s.v": OBJECT}, None))["s"].to_pylist()
            shown = [None if k % 3 == 1 else {"v": v} for k, v in enumerate(VALUES)]
            assert found == (shown if part.num_rows == 8 else shown[1:5])


def test_bytes_that_are_no_variant() -> None:
    table = pa.table({"s": pa.StructArray.from_arrays([variants(VALUES, [True] * 7 + [False])],
                                                      fields=[pa.field("v", PARTS, metadata=VARIANT)])})  # fmt: skip
    with pytest.raises(DataError, match=r"invalid: row 7.*column s\.v"):
        written(table, {"s.v": OBJECT}, None)


def test_a_path_in_a_struct_reads_and_prunes_by_its_leaf() -> None:
    data = [{"s": {"v": {"id": k, "rest": "x" * 50}}} for k in range(300)]
    stored = written(data, {"s.v": {"id": "int64"}}, pyparq.schema({"s": "struct<v: variant?>?"}), row_group_size=100)
    with pyparq.ParquetFile(stored) as file:
        scan = file.scan(filters=col("s", "v", "id") == 250)
        assert scan.to_table().to_pylist() == [data[250]]
        assert scan.explain().row_groups == 1


def test_others_read_them(tmp_path: Path) -> None:
    """DuckDB puts them together; pyarrow shows the columns."""
    path = tmp_path / "f.parquet"
    path.write_bytes(written(rows(), dict.fromkeys(PATHS, OBJECT)))
    for name in ("s", "l", "m", "d", "v", "r"):
        shown = [row[name] for row in rows()]
        shown = [dict(pairs) if pairs else pairs for pairs in shown] if name == "m" else shown
        theirs = [value for (value,) in duckdb.sql(f"select {name} from '{path}'").fetchall()]
        assert theirs == shown, name
    theirs = pq.read_table(path)["s"].to_pylist()[0]["v"]
    assert theirs["typed_value"]["user"]["typed_value"]["id"]["typed_value"] == 5


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"l": OBJECT}, OptionError, "no Variant.*The Variants are 's.v', 'l.list.element'"),
        ({"s.a": OBJECT}, ColumnNotFoundError, "did you mean 's.v'"),
        ({("s", "v", "x"): OBJECT}, ColumnNotFoundError, "shredding names the column"),
        ({"l.list.element": "int65"}, OptionError, r"shredding of l\.list\.element"),
    ],
)
def test_what_is_refused(given: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        written(rows(), given)
