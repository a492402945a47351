"""Variants taken apart when they are written: what comes back, where it is stored, and what others make of it."""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.variant_values import encode
from pyparq.errors import ColumnNotFoundError, DataError, OptionError

SCHEMA = pyparq.schema({"id": "int64", "v": "variant?"})


def written(path: Path, values: list[Any], shredding: Any, **options: Any) -> Path:
    rows = [{"id": k, "v": value} for k, value in enumerate(values)]
    pyparq.write_table(rows, path, schema=SCHEMA, shredding=shredding, **options)
    return path


def stored(path: Path) -> list[Any]:
    """The columns of the Variants, as another reader sees them."""
    found: list[Any] = pq.read_table(path)["v"].to_pylist()
    return found


def test_the_tables_of_the_specification(tmp_path: Path) -> None:
    """The examples of VariantShredding.md, column by column."""
    null, text = b"\x00", lambda value: encode(value)[1]
    path = written(tmp_path / "measurement.parquet", [34, None, "n/a", 100], {"v": "int64"})
    assert [(r and (r["value"], r["typed_value"])) for r in stored(path)] == [
        (None, 34), None, (text("n/a"), None), (None, 100),
    ]  # fmt: skip
    tags = [["comedy", "drama"], ["horror", None], ["comedy", "drama", "romance"], []]
    path = written(tmp_path / "tags.parquet", tags, {"v": ["string"]})
    assert [r["value"] for r in stored(path)] == [None] * 4
    assert [[(e["value"], e["typed_value"]) for e in r["typed_value"]] for r in stored(path)] == [
        [(None, "comedy"), (None, "drama")], [(None, "horror"), (null, None)],
        [(None, "comedy"), (None, "drama"), (None, "romance")], [],
    ]  # fmt: skip
    events: list[Any] = [
        {"type": "noop", "ts": 1729794114937}, {"type": "login", "ts": 1729794146402, "email": "user@example.com"},
        {"error_msg": "malformed"}, "malformed: not an object", {"ts": 1729794240241, "click": "_button"},
        {"type": None, "ts": 1729794954163}, {"type": "noop", "ts": "2024-10-24"}, {}, {"type": {"nested": 1}},
    ]  # fmt: skip
    path = written(tmp_path / "event.parquet", events, {"v": {"type": "string", "ts": "int64"}})
    assert pyparq.read_table(path)["v"].to_pylist() == events

    def parts(row: Any) -> Any:
        typed = row["typed_value"]
        fields = None if typed is None else [tuple(typed[name].values()) for name in ("type", "ts")]
        return row["value"] is None, fields

    missing = (None, None)
    assert [parts(row) for row in stored(path)] == [
        (True, [(None, "noop"), (None, 1729794114937)]), (False, [(None, "login"), (None, 1729794146402)]),
        (False, [missing, missing]), (False, None), (False, [missing, (None, 1729794240241)]),
        (True, [(null, None), (None, 1729794954163)]), (True, [(None, "noop"), (text("2024-10-24"), None)]),
        (True, [missing, missing]), (True, [(stored(path)[8]["typed_value"]["type"]["value"], None), missing]),
    ]  # fmt: skip


TYPES: list[tuple[str, list[Any]]] = [
    ("bool", [True, False]), ("int8", [1, -128, 127]), ("int16", [1, -32768]), ("int32", [5, 1 << 30]),
    ("int64", [5, -(1 << 63), (1 << 63) - 1]), ("float32", [np.float32(1.5)]), ("float64", [1.5, float("inf")]),
    ("decimal(9,2)", [Decimal("1.50"), Decimal("-9999999.99")]), ("decimal(18,3)", [Decimal("123456789012.345")]),
    ("decimal(38,1)", [Decimal(10**30), Decimal(-(10**30))]), ("date", [dt.date(2024, 2, 29)]),
    ("time[us]", [dt.time(1, 2, 3, 4)]), ("timestamp[us]", [dt.datetime(2024, 1, 2, 3, 4, 5, 6)]),
    ("timestamp[us, UTC]", [dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]), ("binary", [b"", b"\x00\xff"]),
    ("timestamp[ns]", [np.datetime64("2024-01-02T03:04:05.000000007", "ns")]), ("string", ["", "x" * 100, "ü"]),
    ("uuid", [uuid.UUID(int=7)]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "values"), TYPES, ids=[name for name, _ in TYPES])
def test_every_type_of_the_specification(type_: str, values: list[Any], tmp_path: Path) -> None:
    others = [None, {"a": 1}, [1], True, "text", b"bytes", 1.25, dt.date(1, 1, 1), 7]
    mixed = [v for value in values for v in (value, *others)]
    path = written(tmp_path / "t.parquet", [{"x": value} for value in mixed], {"v": {"x": type_}})
    assert pyparq.read_table(path)["v"].to_pylist() == [{"x": value} for value in mixed]
    typed = [row["typed_value"]["x"] for row in stored(path)]
    assert all(typed[k * 10]["typed_value"] is not None for k in range(len(values))), "the type fits its values"
    assert all((part["value"] is None) != (part["typed_value"] is None) for part in typed)
    assert pyparq.verify(path).ok


@pytest.mark.parametrize(
    ("value", "type_", "fits"),
    [
        (127, "int8", True), (128, "int8", False), (-32769, "int16", False), (5, "decimal(3,2)", True),
        (10, "decimal(3,2)", False), (Decimal("1.50"), "decimal(5,1)", True), (Decimal("1.55"), "decimal(5,1)", False),
        (Decimal("7.00"), "int8", True), (Decimal("7.01"), "int64", False), (10**37, "decimal(38,0)", True),
        (10**37, "decimal(38,2)", False), (10**37, "int64", False), (1.0, "int64", False), (1, "float64", False),
        (Decimal(-(10**20)), "decimal(38,17)", True), (0, "decimal(38,38)", True), ("1", "int64", False),
        (np.datetime64(5, "ns"), "timestamp[us]", False), (True, "int8", False),
    ],
)  # fmt: skip
def test_numbers_go_where_their_value_fits(value: Any, type_: str, fits: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", [value], {"v": type_})
    (row,) = stored(path)
    assert (row["typed_value"] is not None) == fits
    assert (row["value"] is None) == fits
    assert pyparq.read_table(path)["v"].to_pylist() == [value]


# ---- random ones


def random_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(12 if depth < 3 else 8)
    if kind >= 10:
        return {rng.choice("abcd"): random_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    if kind >= 8:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice([
        None, True, rng.randrange(-200, 200), rng.randrange(1 << 40), rng.random(), "x" * rng.randrange(70),
        Decimal(rng.randrange(10**6)).scaleb(-2), dt.date(2024, 1, 1), b"raw", "text",
    ])  # fmt: skip


def random_shredding(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind >= 7:
        return {name: random_shredding(rng, depth + 1) for name in rng.sample("abcd", rng.randrange(1, 4))}
    if kind == 6:
        return [random_shredding(rng, depth + 1)]
    return rng.choice([None, "int64", "string", "float64", "decimal(9,2)", "date", "bool", "int8", "binary"])


def test_random_variants_come_back(tmp_path: Path) -> None:
    rng = random.Random(11)
    for number in range(60):
        values = [random_value(rng) for _ in range(rng.randrange(1, 40))]
        shredding = random_shredding(rng) if number % 4 else "auto"
        path = written(
            tmp_path / f"{number}.parquet", values, {"v": shredding}, row_group_size=rng.choice([7, 1000]),
            max_rows_per_page=5,
        )  # fmt: skip
        assert pyparq.read_table(path)["v"].to_pylist() == values, shredding
        for row in stored(path):
            if row is not None and "typed_value" in row:
                check_rules(row)
        whole = tmp_path / "whole.parquet"
        pyparq.rewrite(path, whole, shredding={})
        assert set(stored(whole)[0] or {"metadata", "value"}) == {"metadata", "value"}
        assert pyparq.read_table(whole)["v"].to_pylist() == values
        if number % 6 == 0:
            rows = duckdb.sql(f"select a.v::json, b.v::json from '{path}' a join '{whole}' b using (id)").fetchall()
            assert len(rows) == len(values)
            assert all(a is b is None or json.loads(a) == json.loads(b) for a, b in rows)


def check_rules(group: dict[str, Any]) -> None:
    """What VariantShredding.md says of value and typed_value, for a group and all below."""
    value, typed = group.get("value"), group.get("typed_value")
    if isinstance(typed, dict):
        for name, field in typed.items():
            check_rules(field)
            assert value is None or name.encode() not in value, "a shredded field is in no value"
        assert value is None or value[0] & 3 == 2, "beside fields there is an object or nothing"
    elif typed is not None:
        assert value is None
        for element in typed if isinstance(typed, list) else ():
            assert (element.get("value") is None) != (element.get("typed_value") is None) or isinstance(
                element.get("typed_value"), dict
            ), "an element is never missing"
            check_rules(element)


# ---- types that the rows decide


def test_the_first_rows_decide(tmp_path: Path) -> None:
    rows = [{"id": k, "p": Decimal(k) / 4, "tags": ["a"], "u": {"n": f"x{k}"}, "odd": k if k % 2 else "s"} for k in
            range(100)]  # fmt: skip
    rows[50]["seldom"] = 1
    path = written(tmp_path / "a.parquet", rows, "auto")
    type_ = pq.read_schema(path).field("v").type.field("typed_value").type
    assert {field.name for field in type_} == {"id", "p", "tags", "u", "odd"}
    names = {field.name: str(field.type.field("typed_value").type) for field in type_ if field.type.num_fields > 1}
    assert names["id"] == "int64"
    assert names["p"] == "decimal128(18, 2)"
    assert names["tags"].startswith("list<element: struct<value: binary, typed_value: string")
    assert pyparq.read_table(path)["v"].to_pylist() == rows


def test_the_first_rows_of_a_stream(tmp_path: Path) -> None:
    def batches() -> Any:
        yield {"id": [], "v": []}
        for k in range(3):
            yield [{"id": k, "v": {"a": k}}]

    with pyparq.ParquetWriter(tmp_path / "s.parquet", SCHEMA, shredding={"v": "auto"}) as writer:
        for batch in batches():
            writer.write(batch)
    assert pyparq.read_table(tmp_path / "s.parquet")["v"].to_pylist() == [{"a": 0}, {"a": 1}, {"a": 2}]
    pyparq.write_table(iter([[{"id": 1, "v": {"a": 1}}], [{"id": 2, "v": "b"}]]), tmp_path / "i.parquet", schema=SCHEMA,
                       shredding="auto")  # fmt: skip
    assert stored(tmp_path / "i.parquet")[0]["typed_value"]["a"]["typed_value"] == 1
    with pyparq.ParquetWriter(tmp_path / "none.parquet", SCHEMA, shredding="auto"):
        pass
    assert pyparq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_files_of_a_dataset(tmp_path: Path) -> None:
    rows = [{"id": k % 2, "v": {"a": k, "b": [k]}} for k in range(20)]
    pyparq.write_dataset(rows, tmp_path / "d", schema=SCHEMA, partition_cols=["id"], shredding={"v": {"a": "int64"}})
    files = sorted((tmp_path / "d").rglob("*.parquet"))
    assert len(files) == 2
    assert all(row["typed_value"]["a"]["typed_value"] is not None for f in files for row in stored(f))
    back = pyparq.read_table(tmp_path / "d").to_pylist()
    assert sorted(row["v"]["a"] for row in back) == list(range(20))


def test_other_options_name_the_columns(tmp_path: Path) -> None:
    leaf = ("v", "typed_value", "a", "typed_value")
    rows = [{"a": k % 7, "b": k} for k in range(100)]
    path = written(tmp_path / "o.parquet", rows, {"v": {"a": "int64"}}, bloom_filters=[leaf], sort_by=[leaf])
    assert [row["a"] for row in pyparq.read_table(path)["v"].to_pylist()] == sorted(k % 7 for k in range(100))


# ---- what is refused


@pytest.mark.parametrize(
    ("shredding", "told"),
    [
        ({"v": "uint8"}, "uint8"), ({"v": {"a": "json"}}, r"v\.a"), ({"v": []}, "one type"), ({"v": {}}, "one field"),
        ({"v": "decimal(39,0)"}, "decimal"), ({"v": {"a": ["time[ms]"]}}, r"v\.a\[\]"), ({"v": {1: "int8"}}, "string"),
        ({"id": "int64"}, "no Variant"), ("all", "shredding"), (["v"], "shredding"), ({"v": "int65"}, "int65"),
        ({"v": "timestamp[ms]"}, "timestamp"), ({"v": "map<string, int64>"}, "map"),
    ],
    ids=range(13),
)  # fmt: skip
def test_what_no_variant_is_shredded_to(shredding: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=told):
        written(tmp_path / "t.parquet", [1], shredding)
    assert not list(tmp_path.iterdir())


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ColumnNotFoundError, match="w"):
        written(tmp_path / "t.parquet", [1], {"w": "int64"})


@pytest.mark.parametrize(
    ("metadata", "value", "told"),
    [
        (b"\x11\x00\x00", b"", "empty"), (b"", b"\x00", "metadata is empty"), (b"\x11\x00\x00", b"\xfc", "type 63"),
        (b"\x11\x01\x00\x01a", b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", "'a' twice"),
        (b"\x11\x00\x00", b"\x02\x01\x05\x00\x01\x00", "field id 5"),
        (b"\x11\x01\x00\x01a", b"\x02\x01\x00\x00\x05\x00", "outside"),
    ],
    ids=range(6),
)  # fmt: skip
def test_bytes_that_are_no_variant(metadata: bytes, value: bytes, told: str, tmp_path: Path) -> None:
    type_ = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    field = pa.field("v", type_, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    rows = [{"metadata": b"\x11\x00\x00", "value": b"\x00"}, {"metadata": metadata, "value": value}]
    table = pa.table([pa.array(rows, type_)], schema=pa.schema([field]))
    with pytest.raises(DataError, match=rf"row 1: .*{told}.*column v"):
        pyparq.write_table(table, tmp_path / "t.parquet", shredding={"v": {"a": "int64"}})
    assert not list(tmp_path.iterdir())
