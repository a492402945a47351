"""schema --as: each form is taken by the library that it is for, and means what the file holds."""

from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, refused

from pyparq.read.file import ParquetFile


def every_type() -> pa.Table:
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000)
    values: dict[str, tuple[Any, Any]] = {
        "bool": (pa.bool_(), True),
        **{str(t): (t, 7) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
        **{str(t): (t, 8) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
        "f32": (pa.float32(), 1.5), "f64": (pa.float64(), float("nan")),
        "text": (pa.string(), 'é "q"\n'), "bytes": (pa.binary(), b"\x00\xff"), "fixed": (pa.binary(3), b"abc"),
        "decimal": (pa.decimal128(12, 3), Decimal("-1.500")), "date": (pa.date32(), datetime.date(2024, 5, 6)),
        "t_ms": (pa.time32("ms"), datetime.time(1, 2, 3)), "t_us": (pa.time64("us"), datetime.time(1, 2, 3)),
        "ts_ms": (pa.timestamp("ms"), moment), "ts_us": (pa.timestamp("us"), moment),
        "ts_ns": (pa.timestamp("ns"), moment), "utc": (pa.timestamp("us", "UTC"), moment),
        "list": (pa.list_(pa.int32()), [1, None]), "deep": (pa.list_(pa.list_(pa.string())), [["a"], None, []]),
        "struct": (pa.struct([pa.field("a b", pa.int64(), nullable=False), ("c", pa.list_(pa.date32()))]),
                   {"a b": 1, "c": [datetime.date(2024, 5, 6)]}),
        "map": (pa.map_(pa.string(), pa.float64()), [("k", 1.0), ("l", None)]),
        "by day": (pa.map_(pa.int32(), pa.string()), [(3, "x")]),
    }  # fmt: skip
    columns = {name: pa.array([value, None], type_) for name, (type_, value) in values.items()}
    columns['1, ; "odd"'] = pa.array(["x", None]).dictionary_encode()
    table = pa.table(columns)
    sure = pa.field("sure", pa.int64(), nullable=False)
    return table.append_column(sure, pa.array([1, 2])).append_column(
        "id", pa.array([uuid.UUID(int=7).bytes, None], pa.uuid())
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("as") / "all types.parquet"
    pq.write_table(every_type(), path)
    return path


def test_arrow_is_code_for_pyarrow(file: Path) -> None:
    names: dict[str, Any] = {}
    exec(ok("schema", file, "--as", "arrow"), names)
    assert names["schema"] == pq.read_schema(file)


def test_sql_makes_the_table_that_duckdb_makes_of_the_file(file: Path) -> None:
    with duckdb.connect() as db:
        db.execute(ok("schema", file, "--as", "sql"))
        ours = db.execute('select column_name, data_type, is_nullable from information_schema.columns '
                          "where table_name = 'all types'").fetchall()  # fmt: skip
        db.execute(f"create table theirs as from '{file}'")
        theirs = db.execute("select column_name, data_type from information_schema.columns "
                            "where table_name = 'theirs'").fetchall()  # fmt: skip
        assert [(name, type_) for name, type_, _ in ours] == theirs
        assert [name for name, _, nullable in ours if nullable == "NO"] == ["sure"]
        db.execute(f"insert into \"all types\" from '{file}'")


def test_avro_is_a_schema_that_holds_the_rows(file: Path) -> None:
    schema = json.loads(ok("schema", file, "--as", "avro"))
    parsed = fastavro.parse_schema(schema)
    names = [field.get("doc", field["name"]) for field in schema["fields"]]
    assert names == pq.read_schema(file).names
    table = every_type()
    row = dict(zip((f["name"] for f in schema["fields"]), table.slice(0, 1).to_pylist()[0].values(), strict=True))
    row |= {"map": {"k": 1.0, "l": None}, "by_day": [{"key": 3, "value": "x"}], "uint64": Decimal(8)}
    row["struct"] = {"a_b": 1, "c": [datetime.date(2024, 5, 6)]}
    row["ts_ns"] = int(table["ts_ns"].cast(pa.int64())[0].as_py())
    assert fastavro.validate(row, parsed)
    assert fastavro.validate({**row, "f64": "text"}, parsed, raise_errors=False) is False
    assert fastavro.validate(dict.fromkeys(row) | {"sure": 1}, parsed)
    assert not fastavro.validate(dict.fromkeys(row), parsed, raise_errors=False)


def test_json_schema_holds_the_rows_of_cat(file: Path) -> None:
    schema = json.loads(ok("schema", file, "--as", "json-schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    rows = [json.loads(line) for line in ok("cat", file).splitlines()]
    for row in rows:
        check.validate(row)
        for name in row:
            assert not check.is_valid(row | {name: {"not": "this"}}), name
    assert not check.is_valid({name: value for name, value in rows[0].items() if name != "bool"})
    assert not check.is_valid(rows[0] | {"sure": None})
    assert not check.is_valid(rows[0] | {"int8": 128})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_reads_what_it_infers_itself(file: Path) -> None:
    from pyspark.sql.types import StructType

    from pyparq.spark.types import SparkTypes

    found = StructType.fromJson(as_json("schema", file, "--as", "spark"))
    with ParquetFile(file) as opened:
        assert found == SparkTypes(opened.schema_arrow, truncate=True).spark


def test_columns_and_refusals(file: Path, tmp_path: Path) -> None:
    assert ok("schema", file, "--as", "sql", "-c", "sure,text") == (
        'CREATE TABLE "all types" (\n  "sure" BIGINT NOT NULL,\n  "text" VARCHAR\n);\n'
    )
    pq.write_table(pa.table({"x": pa.array([1], pa.decimal256(50, 2))}), tmp_path / "wide.parquet")
    assert "Spark has no type for" in refused(1, "schema", tmp_path / "wide.parquet", "--as", "spark")
    assert "--json and --as" in refused(2, "schema", file, "--as", "sql", "--json")
    assert "is not one of" in refused(2, "schema", file, "--as", "cobol")
