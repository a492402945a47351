"""All types of Spark's, by its writer's settings: what a rewrite stores, and what Spark reads before and after."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

EVERYTHING = """
    select id, cast(id as tinyint) b8, cast(id as smallint) b16, cast(id as int) i, cast(id as float) f,
    cast(id as double) dbl, id % 2 = 0 flag, string(id) str, cast(string(id) as binary) bin,
    cast(id as decimal(5, 2)) d5, cast(id as decimal(15, 2)) d15, cast(id as decimal(25, 2)) d25,
    date '1500-01-01' + cast(id as int) day, timestamp '1500-03-10 02:30:00' + make_dt_interval(id) ts,
    timestamp '9999-12-31 00:00:00' late, timestamp_ntz '2024-03-10 02:30:00' ntz, make_dt_interval(id) dti,
    make_ym_interval(1, cast(id as int)) ymi, array(id, null) an, array(id) a, array(array(string(id))) aa,
    map('k', id) m, map('k', if(id % 2 = 0, null, id)) mn,
    named_struct('x', array(named_struct('y', id, 't', timestamp '2020-01-01 00:00:00'))) st,
    array(cast(id as decimal(5, 2))) ad, if(id % 3 = 0, null, id) n,
    cast('ab' as char(5)) c, cast('ab' as varchar(5)) vc,
    parse_json(concat('{"a":', id, '}')) v, array(parse_json('[1]')) av
    from range(0, 20, 1, 2)
"""
WRITERS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"outputTimestampType": "INT96"}, {}),
    ({"outputTimestampType": "TIMESTAMP_MILLIS"}, {"parquet.writer.version": "v2", "compression": "gzip"}),
    ({"outputTimestampType": "TIMESTAMP_MICROS"}, {"compression": "zstd"}),
    ({"outputTimestampType": "INT96", "writeLegacyFormat": "true"}, {"parquet.writer.version": "v2"}),
]
SPARKS = b"org.apache.spark.sql.parquet.row.metadata"


def stored(folder: Path, legacy: bool) -> tuple[Any, Any]:
    """The columns as they are stored, and Spark's own schema. ``legacy``: without the structure of lists."""
    (found,) = {_stored(pq.ParquetFile(path), legacy) for path in folder.glob("*.parquet")}
    return found


def _stored(file: pq.ParquetFile, legacy: bool) -> tuple[Any, Any]:
    columns = [file.schema.column(k) for k in range(len(file.schema))]
    leaves = tuple((c.physical_type, c.length, str(c.logical_type), c.converted_type) for c in columns)
    return leaves if legacy else str(file.schema).partition("schema {")[2], (file.metadata.metadata or {}).get(SPARKS)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", range(len(WRITERS)))
def test_spark_reads_the_same_after_a_rewrite(usual: Any, ps: Any, tmp_path: Path, number: int) -> None:
    settings, options = WRITERS[number]
    legacy = "writeLegacyFormat" in settings
    for name, value in settings.items():
        usual.conf.set(f"spark.sql.parquet.{name}", value)
    frame = usual.sql(EVERYTHING)
    frame = (frame.drop("v", "av") if legacy else frame).withMetadata("id", {"comment": "a key"})
    frame.write.options(**options).parquet(str(tmp_path / "t"))
    own = usual.read.parquet(str(tmp_path / "t"))
    before, types = sorted(map(str, own.selectExpr("string(struct(*))").collect())), stored(tmp_path / "t", legacy)
    new: dict[str, Any] = {"sort_by": ["id"], "bloom_filters": ["id", "str"]}
    ps.rewrite(usual, tmp_path / "t", tmp_path / "ps", **new)
    pyparq.rewrite(tmp_path / "t", tmp_path / "lib", **new)
    ps.compact(usual, tmp_path / "t", **new)
    for folder in ("ps", "lib", "t"):
        again = usual.read.parquet(str(tmp_path / folder))
        assert again.schema == own.schema, folder
        assert again.schema["id"].metadata == {"comment": "a key"}, folder
        assert sorted(map(str, again.selectExpr("string(struct(*))").collect())) == before, folder
        assert stored(tmp_path / folder, legacy) == types, folder


def test_spark_schema_goes_only_where_it_fits(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Spark believes its own schema rather than the file: a stale one would hide columns, or be an error."""
    usual.sql("select 1 a, make_ym_interval(1, 1) y").coalesce(1).write.parquet(str(tmp_path / "t"))
    usual.sql("select 2L a, make_ym_interval(1, 2) y, 'x' b").coalesce(1).write.mode("append").parquet(
        str(tmp_path / "t")
    )
    ps.rewrite(usual, tmp_path / "t", tmp_path / "all")
    both = usual.read.parquet(str(tmp_path / "all")).select("a", "b").collect()
    assert sorted(map(tuple, both)) == [(1, None), (2, "x")]
    ps.rewrite(usual, tmp_path / "all", tmp_path / "some", columns=["b"])
    assert usual.read.parquet(str(tmp_path / "some")).columns == ["b"]
    usual.sql("select 1 a, make_ym_interval(1, 1) y, 'x' b").write.parquet(str(tmp_path / "u"))
    pyparq.rewrite(tmp_path / "u", tmp_path / "v", columns=["y", "b"])
    assert usual.read.parquet(str(tmp_path / "v")).schema.simpleString() == (
        "struct<y:interval year to month,b:string>"
    )


def test_a_hostile_schema_of_spark_is_left_out(tmp_path: Path) -> None:
    hostile = [
        "{", "[]", '{"fields": 1}', '{"fields": [{"name": "a"}]}', '{"fields": [{"name": "a", "type": "long"}]}',
        "[" * 10_000, json.dumps({"fields": [{"name": "a", "type": {}}]}),
    ]  # fmt: skip
    for k, text in enumerate(hostile):
        pyparq.write_table({"a": ["x"]}, tmp_path / "a.parquet", key_value_metadata={SPARKS.decode(): text})
        pyparq.rewrite(tmp_path / "a.parquet", tmp_path / f"{k}.parquet")
        assert SPARKS not in (pq.ParquetFile(tmp_path / f"{k}.parquet").metadata.metadata or {})


def test_annotations_of_other_writers_stay(usual: Any, ps: Any, tmp_path: Path) -> None:
    texts = pa.array(['{"a": 1}', None])
    marked = {
        "e": pa.field("e", pa.string(), metadata={"PARQUET:logical_type": "ENUM"}),
        "b": pa.field("b", pa.binary(), metadata={"PARQUET:logical_type": "BSON"}),
        "j": pa.field("j", pa.json_()),
        "u": pa.field("u", pa.uuid()),
        "x": pa.field("x", pa.uint32()),
        "h": pa.field("h", pa.float16()),
    }
    arrays = [
        texts, texts.cast(pa.binary()), texts.cast(pa.json_()), pa.array([bytes(16), None], pa.uuid()),
        pa.array([2**32 - 1, None], pa.uint32()), pa.array([1.5, None], pa.float16()),
    ]  # fmt: skip
    (tmp_path / "t").mkdir()
    pyparq.write_table(pa.table(arrays, schema=pa.schema(list(marked.values()))), tmp_path / "t" / "a.parquet")
    before = stored(tmp_path / "t", False)
    assert all(f"({kind})" in before[0] for kind in ("Enum", "BSON", "JSON", "UUID"))
    ps.rewrite(usual, tmp_path / "t", tmp_path / "ps")
    pyparq.rewrite(tmp_path / "t", tmp_path / "lib")
    for folder in ("ps", "lib"):
        assert stored(tmp_path / folder, False) == before
        assert pyparq.read_table(tmp_path / folder) == pyparq.read_table(tmp_path / "t")


def test_variants_are_written_and_read(usual: Any, ps: Any, tmp_path: Path) -> None:
    """What ``ps.write`` wrote, ``ps.read`` gives back, as Spark does."""
    frame = usual.sql(
        "select id, if(id = 1, null, parse_json(concat('{\"a\":[', id, ']}'))) v, array(parse_json('1'), null) l, "
        "map('k', named_struct('x', id, 'v', parse_json('\"s\"'))) m from range(3)"
    )
    wanted = [str(row) for row in frame.selectExpr("to_json(struct(*))").collect()]
    ps.write(frame, tmp_path / "t")
    texts = [str(pq.ParquetFile(path).schema) for path in (tmp_path / "t").glob("*.parquet")]
    assert all(text.count("Variant(1)") == 3 for text in texts)
    for back in (
        usual.read.parquet(str(tmp_path / "t")),
        ps.read(usual, tmp_path / "t"),
        ps.read(usual, tmp_path / "t", small=0),
    ):
        assert back.schema.simpleString() == frame.schema.simpleString()
        assert [str(row) for row in back.orderBy("id").selectExpr("to_json(struct(*))").collect()] == wanted


def test_variants_that_are_shredded_for_spark(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Spark puts together what pyparq has taken apart, and finds the fields that it asks for."""
    values: list[Any] = [
        {"user": {"id": 5, "name": "x"}, "tags": ["a", None, 1], "price": Decimal("1.25")}, None, 7, "text", {},
        {"user": {"id": "no"}, "rest": [1, {"a": None}], "price": 3}, {"user": 1, "tags": []}, {"user": {"id": None}},
        {"day": dt.date(2024, 1, 2), "at": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "b": True, "f": 1.5},
    ]  # fmt: skip
    shredding = {
        "user": {"id": "int64", "name": "string"}, "tags": ["string"], "price": "decimal(9,2)", "day": "date",
        "at": "timestamp[us, UTC]", "b": "bool", "f": "float64",
    }  # fmt: skip
    rows = [{"id": k, "v": value} for k, value in enumerate(values)]
    schema = pyparq.schema({"id": "int64", "v": "variant?"})
    for name, given in (("whole", None), ("parts", {"v": shredding}), ("auto", "auto"), ("lists", {"v": ["int64"]})):
        pyparq.write_table(rows, tmp_path / f"{name}.parquet", schema=schema, shredding=given)
    asked = ["to_json(v)", "variant_get(v, '$.user.id', 'string')",
             "try_variant_get(v, '$.price', 'decimal(9,2)')", "try_variant_get(v, '$.tags[0]', 'string')"]  # fmt: skip

    def answers(name: str) -> list[Any]:
        return usual.read.parquet(str(tmp_path / f"{name}.parquet")).orderBy("id").selectExpr(*asked).collect()

    wanted = answers("whole")
    assert [row[1] for row in wanted] == ["5", None, None, None, None, "no", None, None, None]
    for name in ("auto", "lists", "parts"):
        for got, due in zip(answers(name), wanted, strict=True):
            assert got[1:] == due[1:]
            # A number of a decimal column has its scale: it is the same number.
            assert (got[0] and json.loads(got[0])) == (due[0] and json.loads(due[0]))


def test_nested_variants_that_are_shredded_for_spark(usual: Any, tmp_path: Path) -> None:
    values: list[Any] = [{"id": 5, "tags": ["a", None]}, None, 7, {"id": "no"}, {}]
    rows = [
        {"id": k, "s": None if k == 3 else {"v": value}, "l": [value, 1] if k else None, "m": [("x", value)]}
        for k, value in enumerate(values)
    ]
    schema = pyparq.schema({
        "id": "int64", "s": "struct<v: variant?>?", "l": "list<variant?>?", "m": "map<string,variant?>?",
    })  # fmt: skip
    shredding = {name: {"id": "int64", "tags": ["string"]} for name in ("s.v", "l.list.element", "m.key_value.value")}
    for name, given in (("whole", None), ("parts", shredding)):
        pyparq.write_table(rows, tmp_path / f"{name}.parquet", schema=schema, shredding=given)

    def answers(name: str) -> list[Any]:
        frame = usual.read.parquet(str(tmp_path / f"{name}.parquet")).orderBy("id")
        shown = ["to_json(s.v)", "to_json(l)", "to_json(m)", "try_variant_get(s.v, '$.id', 'bigint')",
                 "try_variant_get(l[0], '$.tags[0]', 'string')"]  # fmt: skip
        return list(frame.selectExpr("s is null", "l is null", *shown).collect())

    assert answers("parts") == answers("whole")
    assert [row[5] for row in answers("parts")] == [5, None, None, None, None]


def test_variants_that_spark_shreds(usual: Any, ps: Any, tmp_path: Path) -> None:
    """Spark stores parts of Variants in columns of their own where it is asked to, in each file as its rows are."""
    frame = usual.sql(
        "select id, parse_json(case id % 4 when 0 then to_json(named_struct('a', id, 'b', array(id, null), 'c', 1.25)) "
        "when 1 then '7' when 2 then concat('{\"a\":\"x', id, '\",\"z\":[{}]}') end) v from range(0, 400, 1, 2)"
    )
    wanted = [str(row) for row in frame.orderBy("id").selectExpr("to_json(struct(*))").collect()]
    for number, shredding in enumerate(("", "a bigint, b array<bigint>, c decimal(9, 2)", "a string")):
        usual.conf.set("spark.sql.variant.writeShredding.enabled", "true" if shredding else "false")
        if shredding:
            usual.conf.set("spark.sql.variant.forceShreddingSchemaForTest", shredding)
        frame.write.mode("append").parquet(str(tmp_path / "t" / f"part={number}"))
    usual.conf.unset("spark.sql.variant.forceShreddingSchemaForTest")
    leaves = {leaf.path for path in (tmp_path / "t").rglob("*.parquet") for leaf in pq.ParquetFile(path).schema}
    assert {"v.typed_value.a.typed_value", "v.typed_value.b.typed_value.list.element.typed_value"} <= leaves
    for small in (0, 8 << 20):
        for number in range(3):
            back = ps.read(usual, tmp_path / "t", filters=f"part = {number}", columns=["id", "v"], small=small)
            assert back.schema.simpleString() == "struct<id:bigint,v:variant>"
            assert [str(row) for row in back.orderBy("id").selectExpr("to_json(struct(*))").collect()] == wanted
    ps.rewrite(usual, tmp_path / "t", tmp_path / "again", sort_by=["id"])
    again = usual.read.parquet(str(tmp_path / "again")).where("part = 1").drop("part")
    assert [str(row) for row in again.orderBy("id").selectExpr("to_json(struct(*))").collect()] == wanted
