"""Schemas written by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq.errors import SchemaError
from pyparq.format.types import DataType, Field

TYPES = {
    "bool": pa.bool_(), "boolean": pa.bool_(), "int8": pa.int8(), "int64": pa.int64(), "uint16": pa.uint16(),
    "float16": pa.float16(), "float": pa.float32(), "float32": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "str": pa.string(), "large_string": pa.large_string(), "binary": pa.binary(),
    "bytes": pa.binary(), "fixed[3]": pa.binary(3), "binary[3]": pa.binary(3), "fixed_size_binary[3]": pa.binary(3),
    "date": pa.date32(), "date32": pa.date32(), "date64": pa.date64(), "time[ms]": pa.time32("ms"),
    "time64[ns]": pa.time64("ns"), "timestamp[s]": pa.timestamp("s"), "timestamp[ns, UTC]": pa.timestamp("ns", "UTC"),
    "timestamp[us, tz=Europe/Paris]": pa.timestamp("us", "Europe/Paris"),
    "timestamp[ms, +05:30]": pa.timestamp("ms", "+05:30"), "decimal(9,2)": pa.decimal128(9, 2),
    "Decimal( 9 , 2 )": pa.decimal128(9, 2), "decimal(5)": pa.decimal128(5, 0), "decimal(39,1)": pa.decimal256(39, 1),
    "decimal32(5,1)": pa.decimal32(5, 1), "decimal256(5,1)": pa.decimal256(5, 1), "null": pa.null(),
    "list<int8?>": pa.list_(pa.field("element", pa.int8())),
    "list<element: int8>": pa.list_(pa.field("element", pa.int8(), nullable=False)),
    "large_list<string?>": pa.large_list(pa.field("element", pa.string())),
    "map<string, int8?>": pa.map_(pa.string(), pa.int8()),
    "struct<a: int8?, b: list<struct<c: date?>?>?>": pa.struct(
        [("a", pa.int8()), ("b", pa.list_(pa.field("element", pa.struct([("c", pa.date32())]))))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
@pytest.mark.parametrize("nullable", [False, True])
def test_types(text: str, nullable: bool) -> None:
    (field,) = pa.schema(pyparq.schema({"c": text + " ?" * nullable}))
    # pyarrow's inner fields are nullable unless they say otherwise; the texts above say the same.
    assert field.type.equals(TYPES[text]) or str(field.type) == str(TYPES[text])
    assert field.nullable == (nullable or text == "null")


@pytest.mark.parametrize("text", [t for t in TYPES if not TYPES[t].num_fields])
def test_a_type_reads_what_it_prints(text: str) -> None:
    (field,) = pyparq.schema({"c": text})
    assert pyparq.schema({"c": str(field.type)}).fields[0].type == field.type


BAD = {
    "int65": "did you mean 'int64'", "list<int64": "'>' expected at the end", "timestamp[xs]": "one of s, ms, us, ns",
    "decimal(77,0)": "precision <= 76", "decimal(0)": "precision", "decimal(5,6)": "scale", "decimal32(10,1)": "<= 9",
    "decimal33(5)": "unknown type", "struct<>": "not a field name", "struct<a: int8, a: int8>": "share a name",
    "int64 x": "left over", "": "more expected", "map<string?,int8>": "key cannot be nullable",
    "timestamp[us,]": "time zone is missing", "fixed[0]": "at least 1", "fixed[x]": "not a number",
    "time32[us]": "unit",    "list": "write list<int64?>", "int64??": "left over", "fixed[99999999999]": "not a number",
    "list<<int8>>": "unknown type", "int": "write int8, int16, int32 or int64",
    "map<string, integer>": "write int8, int16",
    "timestamp": "write timestamp[us] (local time) or timestamp[us, UTC]", "decimal?": "write decimal(9,2)",
    "list<text>": "write string", "time": "write time[us]",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_types_say_what_is_wrong(text: str) -> None:
    with pytest.raises(SchemaError, match="type ") as caught:
        pyparq.schema({"c": text})
    assert BAD[text] in str(caught.value)
    assert caught.value.column == "c"


def test_other_forms() -> None:
    want = pyparq.schema({"a": "int64", "b": "string?"})
    assert pyparq.schema(want) is want
    assert pyparq.schema([("a", "int64"), Field("b", DataType("u"))]) == want
    assert pyparq.schema(pa.schema([pa.field("a", pa.int64(), False), ("b", pa.string())])) == want
    got = pyparq.schema({"a": np.int64, "b": np.dtype("f4"), "c": np.dtype("M8[ms]"), "d": np.dtype("M8[D]")})
    assert [str(f.type) for f in got] == ["int64", "float32", "timestamp[ms]", "date32"]
    assert pyparq.schema({"a": DataType("l")}).fields[0].nullable


@pytest.mark.parametrize(
    "spec",
    [
        5,
        "int64",
        {"a": object},
        {"a": str},
        {"a": None},
        {1: "int64"},
        [("a", "int64"), ("a", "int8")],
        [3],
        {"a": complex},
    ],
)
def test_bad_specs(spec: object) -> None:
    with pytest.raises(SchemaError):
        pyparq.schema(spec)
