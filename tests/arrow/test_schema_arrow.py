"""Schemas between Arrow and Parquet: what is written (held against pyarrow) and how groups are read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.schema.to_parquet import decimal_storage, elements_from_schema, schema_from_tree
from pyparq.errors import SchemaError, UnsupportedError
from pyparq.format import ttypes as tt
from pyparq.format.schema_node import shapes
from pyparq.format.schema_tree import build_tree
from pyparq.format.types import OPTIONAL, REPEATED, REQUIRED, DataType, Field, Physical, Schema


def described(schema: Schema) -> pq.ParquetSchema:
    """pyarrow's view of an empty file with that schema."""
    buffer = io.BytesIO()
    pyparq.ParquetWriter(buffer, schema).close()
    return pq.ParquetFile(buffer).schema


COLUMNS = [
    # (our type, physical, logical as pyarrow prints it, converted)
    ("bool", "BOOLEAN", "None", "NONE"),
    ("int8", "INT32", "Int(bitWidth=8, isSigned=true)", "INT_8"),
    ("int16", "INT32", "Int(bitWidth=16, isSigned=true)", "INT_16"),
    ("int32", "INT32", "None", "NONE"),
    ("int64", "INT64", "None", "NONE"),
    ("uint8", "INT32", "Int(bitWidth=8, isSigned=false)", "UINT_8"),
    ("uint16", "INT32", "Int(bitWidth=16, isSigned=false)", "UINT_16"),
    ("uint32", "INT32", "Int(bitWidth=32, isSigned=false)", "UINT_32"),
    ("uint64", "INT64", "Int(bitWidth=64, isSigned=false)", "UINT_64"),
    ("float16", "FIXED_LEN_BYTE_ARRAY", "Float16", "NONE"),
    ("float32", "FLOAT", "None", "NONE"),
    ("float64", "DOUBLE", "None", "NONE"),
    ("string", "BYTE_ARRAY", "String", "UTF8"),
    ("large_string", "BYTE_ARRAY", "String", "UTF8"),
    ("binary", "BYTE_ARRAY", "None", "NONE"),
    ("json", "BYTE_ARRAY", "JSON", "JSON"),
    ("uuid", "FIXED_LEN_BYTE_ARRAY", "UUID", "NONE"),
    ("fixed[7]", "FIXED_LEN_BYTE_ARRAY", "None", "NONE"),
    ("date", "INT32", "Date", "DATE"),
    ("date64", "INT32", "Date", "DATE"),
    ("time[s]", "INT32", "Time(isAdjustedToUTC=false, timeUnit=milliseconds)", "NONE"),
    ("time[ms]", "INT32", "Time(isAdjustedToUTC=false, timeUnit=milliseconds)", "NONE"),
    ("time[us]", "INT64", "Time(isAdjustedToUTC=false, timeUnit=microseconds)", "NONE"),
    ("time[ns]", "INT64", "Time(isAdjustedToUTC=false, timeUnit=nanoseconds)", "NONE"),
    ("timestamp[s]", "INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds", "NONE"),
    ("timestamp[ms]", "INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds", "NONE"),
    ("timestamp[us]", "INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds", "NONE"),
    ("timestamp[ns]", "INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds", "NONE"),
    ("timestamp[ms, UTC]", "INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds", "TIMESTAMP_MILLIS"),
    ("timestamp[us, Europe/Paris]", "INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=mi", "TIMESTAMP_MICROS"),
    ("timestamp[ns, UTC]", "INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds", "NONE"),
    ("decimal(9, 2)", "INT32", "Decimal(precision=9, scale=2)", "DECIMAL"),
    ("decimal(18, 18)", "INT64", "Decimal(precision=18, scale=18)", "DECIMAL"),
    ("decimal(19, 0)", "FIXED_LEN_BYTE_ARRAY", "Decimal(precision=19, scale=0)", "DECIMAL"),
    ("decimal(76, 5)", "FIXED_LEN_BYTE_ARRAY", "Decimal(precision=76, scale=5)", "DECIMAL"),
]


@pytest.mark.parametrize(("type_", "physical", "logical", "converted"), COLUMNS, ids=[c[0] for c in COLUMNS])
def test_what_is_written(type_: str, physical: str, logical: str, converted: str) -> None:
    column = described(parse_schema({"c": type_})).column(0)
    assert column.physical_type == physical
    assert str(column.logical_type).startswith(logical)
    assert column.converted_type == converted
    assert column.max_definition_level == 0
    assert described(parse_schema({"c": type_ + "?"})).column(0).max_definition_level == 1


def test_nested_structures_are_the_standard_ones() -> None:
    schema = parse_schema({"l": "list<int64?>?", "m": "map<string, list<float64>?>", "s": "struct<a: int8?, b: date>?"})
    found = described(schema)
    paths = [found.column(i).path for i in range(len(found))]
    assert paths == ["l.list.element", "m.key_value.key", "m.key_value.value.list.element", "s.a", "s.b"]
    arrow = found.to_arrow_schema()
    assert arrow.field("l").type == pa.list_(pa.field("element", pa.int64()))
    assert not arrow.field("m").nullable
    assert arrow.field("m").type.item_type == pa.list_(pa.field("element", pa.float64(), nullable=False))
    assert not arrow.field("s").type.field("b").nullable


def test_round_trip_of_the_schema() -> None:
    spec = {
        "a": "int64", "b": "string?", "c": "decimal(40,3)?", "d": "timestamp[us, UTC]", "e": "fixed[5]?",
        "l": "list<struct<x: uint8?, y: list<string>>?>?", "m": "map<string, float32?>?", "n": "null",
    }  # fmt: skip
    schema = parse_schema(spec)
    assert schema_from_tree(build_tree(elements_from_schema(schema))) == schema


def test_projection_keeps_only_wanted_leaves() -> None:
    schema = parse_schema({"s": "struct<a: int8, b: struct<c: int8, d: int8>>", "x": "int8"})
    tree = build_tree(elements_from_schema(schema))
    assert str(schema_from_tree(tree, columns={2})) == "s: struct<b: struct<d: int8>> not null"
    tree = build_tree(elements_from_schema(parse_schema({"m": "map<string, int8>", "l": "list<int8>"})))
    assert schema_from_tree(tree, columns={1}).names == ["m"]
    assert len(schema_from_tree(tree, columns={1}).fields[0].type.children[0].type.children) == 2


def test_field_ids_are_kept() -> None:
    schema = Schema((Field("a", DataType("l"), metadata={b"PARQUET:field_id": b"7"}),))
    elements = elements_from_schema(schema)
    assert elements[1].field_id == 7
    assert schema_from_tree(build_tree(elements)).fields[0].metadata == {b"PARQUET:field_id": b"7"}
    for bad in (b"x", b"99999999999"):
        schema = Schema((Field("a", DataType("l"), metadata={b"PARQUET:field_id": bad}),))
        assert elements_from_schema(schema)[1].field_id is None


@pytest.mark.parametrize("precision", range(1, 77))
def test_decimals_get_the_smallest_storage(precision: int) -> None:
    physical, length = decimal_storage(precision)
    most = 10**precision - 1
    if physical == Physical.INT32:
        assert most < 2**31
    elif physical == Physical.INT64:
        assert 2**31 <= most < 2**63
    else:
        assert most >= 2**63
        assert 2 ** (8 * (length - 1) - 1) <= most < 2 ** (8 * length - 1)


REFUSED: list[tuple[pa.DataType, type[Exception], str]] = [
    (pa.dense_union([pa.field("a", pa.int8())]), UnsupportedError, "struct"),
    (pa.struct([]), UnsupportedError, "without fields"),
    (pa.decimal128(5, -2), SchemaError, "scale"),
    (pa.decimal128(5, 9), SchemaError, "scale"),
    (pa.binary(0), SchemaError, "at least 1"),
]


@pytest.mark.parametrize(("type_", "error", "words"), REFUSED, ids=[str(r[0]) for r in REFUSED])
@pytest.mark.parametrize("nested", [False, True])
def test_types_that_parquet_lacks(type_: pa.DataType, error: type[Exception], words: str, nested: bool) -> None:
    schema = schema_from_arrow(pa.schema([("bad", pa.list_(type_) if nested else type_)]))
    with pytest.raises(error, match=words) as caught:
        elements_from_schema(schema)
    assert nested or caught.value.column in ("bad", "x")


def test_required_nulls_are_refused() -> None:
    with pytest.raises(SchemaError, match="type null"):
        elements_from_schema(Schema((Field("a", DataType("n"), nullable=False),)))


# ---- legacy structures (LogicalTypes.md, backward-compatibility rules) ---------------------------------------------


def group(name: str, repetition: int | None, children: int, annotation: str = "") -> Any:
    element = tt.SchemaElement(name=name, repetition_type=repetition, num_children=children)
    if annotation:
        element.converted_type = getattr(tt.ConvertedType, annotation)
    return element


def leaf(name: str, repetition: int, type_: int = 1) -> Any:
    element = tt.SchemaElement(name=name, repetition_type=repetition, type=type_)
    if type_ == 6:
        element.converted_type = tt.ConvertedType.UTF8
    return element


LIST = "my_list"
LEGACY: dict[str, tuple[list[Any], str]] = {
    "standard": (
        [group(LIST, OPTIONAL, 1, "LIST"), group("list", REPEATED, 1), leaf("element", OPTIONAL)],
        "list<element?: int32>?",
    ),
    "other names": (
        [group(LIST, REQUIRED, 1, "LIST"), group("element", REPEATED, 1), leaf("str", REQUIRED, 6)],
        "list<str: string>",
    ),
    "rule 1": ([group(LIST, OPTIONAL, 1, "LIST"), leaf("element", REPEATED)], "list<element: int32>?"),
    "rule 2": (
        [
            group(LIST, OPTIONAL, 1, "LIST"),
            group("element", REPEATED, 2),
            leaf("str", REQUIRED, 6),
            leaf("num", REQUIRED),
        ],
        "list<element: struct<str: string, num: int32>>?",
    ),
    "rule 3": (
        [group(LIST, OPTIONAL, 1, "LIST"), group("array", REPEATED, 1, "LIST"), leaf("array", REPEATED)],
        "list<array: list<array: int32>>?",
    ),
    "rule 4 array": (
        [group(LIST, OPTIONAL, 1, "LIST"), group("array", REPEATED, 1), leaf("str", REQUIRED, 6)],
        "list<array: struct<str: string>>?",
    ),
    "rule 4 tuple": (
        [group(LIST, OPTIONAL, 1, "LIST"), group("my_list_tuple", REPEATED, 1), leaf("str", REQUIRED, 6)],
        "list<my_list_tuple: struct<str: string>>?",
    ),
    "rule 5": (
        [group(LIST, OPTIONAL, 1, "LIST"), group("element", REPEATED, 1), leaf("str", OPTIONAL, 6)],
        "list<str?: string>?",
    ),
    "bare leaf": ([leaf("num", REPEATED)], "list<element: int32>"),
    "bare group": (
        [group("g", REPEATED, 2), leaf("num", REQUIRED), leaf("str", OPTIONAL, 6)],
        "list<element: struct<num: int32, str?: string>>",
    ),
    "map": (
        [group("m", OPTIONAL, 1, "MAP"), group("map", REPEATED, 2), leaf("str", REQUIRED, 6), leaf("num", REQUIRED)],
        "map<str: string, num: int32>?",
    ),
    "map_key_value": (
        [
            group("m", OPTIONAL, 1, "MAP_KEY_VALUE"),
            group("map", REPEATED, 2),
            leaf("key", REQUIRED, 6),
            leaf("value", OPTIONAL),
        ],
        "map<key: string, value?: int32>?",
    ),
    "map of keys": (
        [group("m", REQUIRED, 1, "MAP"), group("key_value", REPEATED, 1), leaf("key", REQUIRED, 6)],
        "list<key: string>",
    ),
    "broken list": (
        [group(LIST, OPTIONAL, 2, "LIST"), leaf("a", REQUIRED), leaf("b", OPTIONAL)],
        "struct<a: int32, b?: int32>?",
    ),
    "broken map": ([group("m", OPTIONAL, 1, "MAP"), leaf("a", REPEATED)], "struct<a: list<element: int32>>?"),
}


def told(field: Field) -> str:
    """A field's type with its nullability, names included."""
    type_ = field.type
    if type_.format == "+m":
        inner = ", ".join(_child(c) for c in type_.children[0].type.children)
        text = f"map<{inner}>"
    elif type_.is_nested:
        text = f"{'struct' if type_.format == '+s' else 'list'}<{', '.join(_child(c) for c in type_.children)}>"
    else:
        text = str(type_)
    return text + ("?" if field.nullable else "")


def _child(field: Field) -> str:
    text = told(field)
    return f"{field.name}?: {text[:-1]}" if field.nullable else f"{field.name}: {text}"


@pytest.mark.parametrize("case", LEGACY)
def test_legacy_structures(case: str) -> None:
    elements, expected = LEGACY[case]
    tree = build_tree([group("schema", None, 1), *elements])
    (field,) = schema_from_tree(tree)
    assert told(field) == expected
    # Every leaf is reached, in column order, and its last level is the leaf's own.
    (shape,) = shapes(tree.root)
    assert [s.node for s in shape.leaves()] == tree.leaves
    assert all(s.def_level == s.node.max_def for s in shape.leaves())


NAMES = [
    "nested_lists.snappy", "nested_maps.snappy", "old_list_structure", "list_columns", "repeated_no_annotation",
    "nonnullable.impala", "nullable.impala", "repeated_primitive_no_list", "map_no_value", "null_list",
    "nested_structs.rust",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_nested_schemas_of_the_corpus(corpus: Path, name: str) -> None:
    """The Arrow schema that pyarrow makes of the same file, metadata and names of items aside."""
    path = corpus / "data" / f"{name}.parquet"
    assert path.exists()
    ours = pa.schema(pyparq.ParquetFile(path).schema_arrow)
    theirs = pq.ParquetFile(path).schema.to_arrow_schema()
    assert [f.name for f in ours] == [f.name for f in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.type == other.type, mine.name
        assert mine.nullable == other.nullable


def test_a_map_with_optional_keys_reads_as_a_map(corpus: Path) -> None:
    """pyarrow refuses that file; the standard says that keys are required, the file says that they are not."""
    (field,) = pyparq.ParquetFile(corpus / "data" / "incorrect_map_schema.parquet").schema_arrow
    assert told(field) == "map<key: string, value?: string>?"
