"""Logical types that Arrow knows by name or not at all: what we write, others read, and the other way round."""

from __future__ import annotations

import io
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from written import written

import pyparq
from pyparq import col
from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column
from pyparq.errors import DataError, FilterError, OptionError, SchemaError
from pyparq.format import ttypes as tt
from pyparq.format.types import DataType, Field, LeafType, Physical, Schema

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

NAME, DETAILS, LOGICAL = b"ARROW:extension:name", b"ARROW:extension:metadata", b"PARQUET:logical_type"


def logical(file: bytes, column: int = 0) -> str:
    return str(pq.ParquetFile(io.BytesIO(file)).schema.column(column).logical_type)


def by_duckdb(file: bytes, tmp_path: Path, query: str = "from f") -> list[Any]:
    path = tmp_path / "f.parquet"
    path.write_bytes(file)
    return duckdb.sql(query.replace("from f", f"from '{path}'")).fetchall()


WKB = bytes.fromhex("0101000000000000000000f03f0000000000000040")  # POINT (1 2)
IDS = [uuid.UUID(int=k * 7919**8 % 2**128) for k in range(5)]
INTERVALS = [(1, 2, 3000), (0, 0, 0), (2**32 - 1, 2**32 - 1, 2**32 - 1)]
PACKED = [b"".join(n.to_bytes(4, "little") for n in part) for part in INTERVALS]


# ---- written by a schema, read back, as others see it --------------------------------------------------------------

CASES: dict[str, tuple[list[Any], str, dict[bytes, bytes]]] = {
    "uuid": ([v.bytes for v in IDS], "UUID", {NAME: b"arrow.uuid", DETAILS: b""}),
    "json": (['{"a": 1}', "[]"], "JSON", {NAME: b"arrow.json", DETAILS: b""}),
    "enum": (["red", "blue"], "ENUM", {LOGICAL: b"ENUM"}),
    "bson": ([b"\x05\x00\x00\x00\x00"], "BSON", {LOGICAL: b"BSON"}),
    "interval": (PACKED, "INTERVAL", {LOGICAL: b"INTERVAL"}),
    "geometry": ([WKB], "Geometry(crs=)", {NAME: b"geoarrow.wkb"}),
    "geography": ([WKB], "Geography(crs=, algorithm=spherical)", {NAME: b"geoarrow.wkb"}),
    "float16": ([1.5, -0.0], "FLOAT16", {}),
    "null": ([], "NULL", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dictionary", [True, False])
def test_an_annotation_by_name(name: str, dictionary: bool, tmp_path: Path) -> None:
    values, annotation, metadata = CASES[name]
    values = [*values, None, *values]
    file = written({"x": values}, schema={"x": f"{name}?"}, use_dictionary=dictionary)
    assert annotation.lower() in logical(file).replace("Null", "NULL").lower()
    found = pyparq.read_table(file)
    assert found.to_pydict() == {"x": values}
    got = found.schema.field("x").metadata
    assert {k: got[k] for k in metadata} == metadata
    assert pyparq.read_schema(written(found)).fields == found.schema.fields  # read and written it stays what it is
    theirs = pq.read_table(io.BytesIO(file))["x"]
    plain = pa.chunked_array([c.storage if isinstance(c, pa.ExtensionArray) else c for c in theirs.chunks])
    if name == "enum":  # pyarrow reads these as binary
        plain = plain.cast(pa.string())
    assert plain.to_pylist() == values
    if name != "bson":  # DuckDB has no BSON
        assert len(by_duckdb(file, tmp_path)) == len(values)


def test_extension_types_come_out_as_pyarrow_s_own() -> None:
    table = pa.table({"u": pa.array([v.bytes for v in IDS], pa.uuid()), "j": pa.array(["{}"] * 5, pa.json_())})
    file = written(table)
    assert pyparq.read_table(file).to_arrow().equals(table)
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False)
    assert pyparq.read_table(sink.getvalue()).to_arrow().equals(table)
    assert pyparq.read_table(file, filters=col("u") == IDS[3]).to_pydict()["u"] == [IDS[3].bytes]


def test_polars_and_duckdb_take_extension_types() -> None:
    polars = pytest.importorskip("polars")
    t = pyparq.read_table(written({"j": ["{}", None], "u": [IDS[1].bytes, None]}, schema={"j": "json?", "u": "uuid?"}))
    assert duckdb.sql("select typeof(u), u from t limit 1").fetchall() == [("UUID", IDS[1])]
    assert duckdb.sql("select typeof(j), j from t limit 1").fetchall() == [("JSON", "{}")]
    frame = polars.DataFrame(t)
    assert frame.height == 2
    assert frame["u"].to_list() == [IDS[1].bytes, None]
    assert str(frame.schema["j"]).lower().count("arrow.json") == 1


# ---- intervals -----------------------------------------------------------------------------------------------------


def test_intervals_as_duckdb_sees_them(tmp_path: Path) -> None:
    data = pa.table({"i": pa.array([pa.MonthDayNano([14, 3, 5_000_000]), None, pa.MonthDayNano([0, 0, 0])])})
    file = written(data)
    rows = by_duckdb(file, tmp_path, "select cast(i as varchar) from f")
    assert rows == [("1 year 2 months 3 days 00:00:00.005",), (None,), ("00:00:00",)]
    assert pyparq.read_table(file).to_pydict()["i"] == [(14, 3, 5_000_000), None, (0, 0, 0)]
    plain = pyparq.read_table(written(data, store_schema=False)).to_pydict()["i"]
    assert plain[0] == b"".join(n.to_bytes(4, "little") for n in (14, 3, 5))
    path = tmp_path / "theirs.parquet"
    duckdb.sql(f"copy (select interval '1 month 2 days 3 seconds' i) to '{path}'")
    assert pyparq.read_table(path).to_pydict() == {"i": [PACKED[0]]}
    assert pyparq.read_schema(path).field("i").metadata == {LOGICAL: b"INTERVAL"}


@pytest.mark.parametrize("parts", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 1), (0, 0, 2**62)])
def test_intervals_that_parquet_cannot_hold(parts: tuple[int, int, int]) -> None:
    data = pa.table({"i": pa.array([None, pa.MonthDayNano([0, 0, 0]), pa.MonthDayNano(list(parts))])})
    with pytest.raises(DataError, match=r"row 2.*INTERVAL"):
        written(data)


def test_intervals_have_no_order() -> None:
    file = written({"x": PACKED}, schema={"x": "interval"})
    with pyparq.ParquetFile(file) as opened:
        assert opened.column_index(0, "x") is None
        assert not opened.metadata.row_group(0).column(0).bounds.has_bounds.any()
        with pytest.raises(FilterError, match="interval"):
            opened.scan(filters=col("x") == PACKED[0])
    with pytest.raises(OptionError, match="Bloom"):
        written({"x": PACKED}, schema={"x": "interval"}, bloom_filters=["x"])


# ---- geospatial ----------------------------------------------------------------------------------------------------

PROJJSON = {"type": "GeographicCRS", "name": "NAD83", "id": {"authority": "OGC", "code": "CRS83"}}
GEO = [
    ({}, "", ""),
    ({"crs": None}, "", ""),
    ({"crs": "OGC:CRS84", "crs_type": "authority_code"}, "", ""),
    ({"crs": "EPSG:4326"}, "", ""),
    ({"crs": {"id": {"authority": "EPSG", "code": 4326}}}, "", ""),
    ({"crs": "EPSG:3857", "crs_type": "authority_code"}, "EPSG:3857", ""),
    ({"crs": "1234", "crs_type": "srid"}, "srid:1234", ""),
    ({"crs": PROJJSON, "crs_type": "projjson"}, json.dumps(PROJJSON, separators=(",", ":")), ""),
    ({"edges": "spherical"}, "", "spherical"),
    ({"crs": "OGC:CRS83", "crs_type": "authority_code", "edges": "karney"}, "OGC:CRS83", "karney"),
    ({"crs": "anything"}, "anything", ""),
]


@pytest.mark.parametrize(("described", "crs", "algorithm"), GEO)
def test_geoarrow_to_parquet_and_back(described: dict[str, Any], crs: str, algorithm: str) -> None:
    metadata = {NAME: b"geoarrow.wkb", DETAILS: json.dumps(described).encode() if described else b""}
    schema = pa.schema([pa.field("g", pa.binary(), metadata=metadata)])
    file = written(pa.table({"g": pa.array([WKB, None], pa.binary())}, schema=schema))
    with pyparq.ParquetFile(file) as opened:
        leaf = opened.tree.leaves[0].type
        assert leaf == LeafType(
            Physical.BYTE_ARRAY, "geography" if algorithm else "geometry", crs=crs, algorithm=algorithm
        )
        assert opened.column_index(0, "g") is None
        with pytest.raises(FilterError, match="geo"):
            opened.scan(filters=col("g") == WKB)
        table = opened.read()
    got = json.loads(table.schema.field("g").metadata[DETAILS])
    assert got.get("edges", "") == algorithm
    expected = {k: v for k, v in described.items() if k.startswith("crs") and v is not None}
    if crs:
        assert {k: v for k, v in got.items() if k in expected} == expected
    else:
        assert got["crs"] == "OGC:CRS84"
    assert table.to_pydict() == {"g": [WKB, None]}
    with pyparq.ParquetFile(written(table)) as again:
        assert again.tree.leaves[0].type == leaf
    text = logical(file)
    assert ("Geography" if algorithm else "Geometry") in text
    assert pq.read_table(io.BytesIO(file))["g"].to_pylist() == [WKB, None]


@pytest.mark.parametrize("described", [b"[]", b"{", b'{"edges": "wavy"}', b'{"crs": 4326}'])
def test_geoarrow_that_parquet_cannot_hold(described: bytes) -> None:
    schema = pa.schema([pa.field("g", pa.binary(), metadata={NAME: b"geoarrow.wkb", DETAILS: described})])
    with pytest.raises(SchemaError, match=r"geoarrow.wkb.*column g"):
        written(pa.table({"g": pa.array([WKB], pa.binary())}, schema=schema))


def test_geospatial_files_of_the_corpus(corpus: Path) -> None:
    found = {}
    for path in sorted((corpus / "data" / "geospatial").glob("crs-*.parquet")):
        with pyparq.ParquetFile(path) as file:
            (leaf,) = [leaf.type for leaf in file.tree.leaves if leaf.type.kind.startswith("geo")]
            (field,) = [f for f in file.schema_arrow if NAME in f.metadata]
            found[path.stem] = (leaf.kind, json.loads(field.metadata[DETAILS]))
            table = file.read()
            theirs = pq.read_table(path)
            assert table.to_arrow().num_rows == theirs.num_rows
            plain = theirs[field.name].to_pylist()
            assert [bytes(v) if v is not None else None for v in table.to_pydict()[field.name]] == plain
    assert found["crs-default"] == ("geometry", {"crs": "OGC:CRS84", "crs_type": "authority_code"})
    assert found["crs-geography"][0] == "geography"
    assert found["crs-geography"][1]["edges"] == "spherical"
    assert found["crs-srid"][1]["crs_type"] == "srid"
    assert isinstance(found["crs-projjson"][1]["crs"], dict)
    assert found["crs-arbitrary-value"][1]["crs"]


# ---- variant -------------------------------------------------------------------------------------------------------


def test_unshredded_variant(tmp_path: Path) -> None:
    metadata, value = b"\x01\x00\x00", b"\x0c\x07"  # an empty dictionary; int8 7
    rows = [{"metadata": metadata, "value": value}, None, {"metadata": metadata, "value": b"\x00"}]
    file = written({"v": rows}, schema={"v": "variant?"})
    with pyparq.ParquetFile(file) as opened:
        (top,) = opened.tree.root.children
        assert top.element.logicalType.VARIANT.specification_version == 1
        assert {leaf.type.kind for leaf in opened.tree.leaves} == {"variant"}
        for leaf in ("v.metadata", "v.value"):
            assert opened.column_index(0, leaf) is None
            assert not opened.metadata.row_group(0).column(leaf).bounds.has_bounds.any()
        frame = opened.read()
    assert frame.schema.field("v").metadata[NAME] == b"arrow.parquet.variant"
    assert frame.to_pydict() == {"v": [7, None, None]}
    assert frame.to_arrow()["v"].to_pylist() == rows
    assert pyparq.read_schema(written(frame)).fields == frame.schema.fields
    assert [None if r is None else dict(r) for r in pq.read_table(io.BytesIO(file))["v"].to_pylist()] == rows
    query = "select typeof(v), v from f"
    assert by_duckdb(file, tmp_path, query) == [("VARIANT", 7), ("VARIANT", None), ("VARIANT", None)]
    assert duckdb.sql("select typeof(v), v from frame").fetchall() == by_duckdb(file, tmp_path, query)
    wrong = pa.field("v", pa.struct([("value", pa.binary())]), metadata={NAME: b"arrow.parquet.variant"})
    lacking = pa.table({"v": pa.array([{"value": b""}], wrong.type)}, schema=pa.schema([wrong]))
    with pytest.raises(SchemaError, match="Variant"):
        written(lacking)


# ---- whatever comes ------------------------------------------------------------------------------------------------


def test_an_unknown_annotation_reads_as_its_physical_type() -> None:
    from pyparq.format.annotation import leaf_type

    for physical, kind in (("INT32", "int"), ("BYTE_ARRAY", "binary"), ("DOUBLE", "double"), ("INT96", "int96")):
        element = tt.SchemaElement(
            name="x", type=Physical[physical], repetition_type=0, logicalType=tt.LogicalType(), converted_type=99
        )
        assert leaf_type(element).kind == kind
    # One that does not fit its physical type is as good as unknown.
    element = tt.SchemaElement(
        name="x", type=Physical.INT32, repetition_type=0, logicalType=tt.LogicalType(UUID=tt.UUIDType())
    )
    assert leaf_type(element) == LeafType(Physical.INT32, "int", bits=32)
    element.logicalType = tt.LogicalType(GEOMETRY=tt.GeometryType(crs="x"))
    assert leaf_type(element).kind == "int"


ARROW_INPUT: dict[str, Any] = {
    "run_end": pa.RunEndEncodedArray.from_arrays(pa.array([2, 5, 6], pa.int32()), pa.array(["x", None, "y"])),
    "run_end_numbers": pa.RunEndEncodedArray.from_arrays(pa.array([1, 6], pa.int16()), pa.array([1.5, 2.5])),
    "list_view": pa.array([[1], [2, None], None, [], [3], [4, 5]], pa.list_view(pa.int32())),
    "large_list_view": pa.array([["a"], ["b"], None, [], ["c"], []], pa.large_list_view(pa.string_view())),
    "string_view": pa.array(["a", None, "b" * 50, "", "é", "c" * 12], pa.string_view()),
    "decimal32": pa.array([1, None, 3, 4, 5, 6], pa.decimal32(5, 2)),
    "decimal64": pa.array([1, None, 3, 4, 5, 6], pa.decimal64(15, 2)),
    "half": pa.array([1, None, 3, 4, 5, 6], pa.float16()),
    "nested_dictionary": pa.array(
        [{"d": "q"}, None, {"d": None}, {"d": "z"}, {"d": "q"}, None],
        pa.struct([("d", pa.dictionary(pa.int8(), pa.string()))]),
    ),
    "dictionary_of_structs": pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None, 1, 2, 0], pa.uint8()), pa.array([{"a": "x", "b": [1]}, None, {"a": None, "b": []}])
    ),
    "dictionary_of_lists": pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 1, 2, 0], pa.int64()), pa.array([["x", None], [], None])
    ),
    "dictionary_of_dictionaries": pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 1, 2, 0], pa.int16()), pa.array(["x", None, "y"]).dictionary_encode()
    ),
    "dictionary_of_decimals": pa.array([Decimal("1.5"), None] * 3).dictionary_encode(),
    "list_of_runs": pa.ListArray.from_arrays(
        [0, 2, 2, 3, 3, 3, 4],
        pa.RunEndEncodedArray.from_arrays(pa.array([3, 4], pa.int32()), pa.array([7, None])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARROW_INPUT)
@pytest.mark.parametrize("start", [0, 1, 4])
def test_every_arrow_layout_comes_in(name: str, start: int) -> None:
    array = ARROW_INPUT[name][start:]
    expected = array.to_pylist() if name not in ("run_end", "run_end_numbers") else [v.as_py() for v in array]
    if name == "list_of_runs":
        expected = [[7, 7], [], [7], [], [], [None]][start:]
    assert pyparq.read_table(written(pa.table({"x": array}))).to_pydict() == {"x": expected}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_integers_to_those_that_know_no_hint(unit: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None, -(2**62)], pa.duration(unit))})
    file = written(table)
    assert by_duckdb(file, tmp_path, "select x from f") == [(1,), (None,), (-(2**62),)]
    assert logical(file) == "None"
    plain = pyparq.read_table(file, use_arrow_schema=False)
    assert plain.schema.field("x").type.format == "l"
    assert pq.read_table(io.BytesIO(file)).equals(table)


@pytest.mark.parametrize(
    ("ends", "length"), [([4, 2], 4), ([2, 4], 9), ([], 1), ([0, 4], 4), ([2, 2, 4], 4), ([1, 2, 3], 3)]
)
def test_run_ends_that_lie_are_refused(ends: list[int], length: int) -> None:
    type_ = DataType("+r", (Field("run_ends", DataType("i")), Field("values", DataType("l"))))
    children = fixed_column(DataType("i"), np.array(ends, np.int32)), fixed_column(DataType("l"), np.array([1, 2]))
    table = pyparq.Table(
        Schema((Field("x", type_),)), [pyparq.Batch([Column(type_, length, None, (), 0, children)], length)]
    )
    with pytest.raises(DataError, match=r"run ends.*column x"):
        written(table)


def test_list_views_that_lie_are_refused() -> None:
    type_ = DataType("+vl", (Field("item", DataType("l")),))
    items = fixed_column(DataType("l"), np.array([1, 2, 3]))
    for starts, lengths in (([0, 2], [1, 2]), ([-1, 0], [1, 1]), ([0, 0], [-1, 1])):
        column = Column(type_, 2, None, (np.array(starts, np.int32), np.array(lengths, np.int32)), 0, (items,))
        with pytest.raises(DataError, match=r"list view.*column x"):
            written(pyparq.Table(Schema((Field("x", type_),)), [pyparq.Batch([column], 2)]))


def test_time_units_and_zones() -> None:
    ticks = np.array([0, 1, -1, 10**9], np.int64)
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            data = pa.table({"t": pa.array([*ticks.tolist(), None], pa.timestamp(unit, zone))})
            file = written(data)
            stored = "ms" if unit == "s" else unit
            assert pyparq.read_table(file).to_arrow().equals(data)
            assert f"isAdjustedToUTC={str(zone is not None).lower()}" in logical(file)
            plain = pyparq.read_table(file, use_arrow_schema=False).to_arrow()
            assert plain["t"].type == pa.timestamp(stored, "UTC" if zone else None)


CONVERTED: dict[str, str | None] = {
    "string": "UTF8", "json": "JSON", "enum": "ENUM", "date": "DATE", "int8": "INT_8", "int16": "INT_16",
    "int32": None, "int64": None, "uint8": "UINT_8", "uint16": "UINT_16", "uint32": "UINT_32", "uint64": "UINT_64",
    "decimal(9, 2)": "DECIMAL", "decimal(40, 2)": "DECIMAL", "interval": "INTERVAL", "uuid": None, "float16": None,
    "time[ms]": "TIME_MILLIS", "time[us]": "TIME_MICROS", "time[ns]": None,
    "timestamp[ms]": "TIMESTAMP_MILLIS", "timestamp[us]": "TIMESTAMP_MICROS", "timestamp[ns]": None,
    "timestamp[ms, UTC]": "TIMESTAMP_MILLIS", "timestamp[us, UTC]": "TIMESTAMP_MICROS", "timestamp[ns, UTC]": None,
}  # fmt: skip
"""The tables "forward compatibility" of LogicalTypes.md: local times too. (DuckDB 2.0 opens no file with BSON.)"""


def test_converted_types_stand_beside_logical_ones(tmp_path: Path) -> None:
    """As DuckDB reads the footer (pyarrow derives them from the logical types)."""
    path = tmp_path / "f.parquet"
    schema = pyparq.schema({type_: type_ for type_ in CONVERTED} | {"l": "list<int32>", "m": "map<string, int32>"})
    pyparq.write_table(pyparq.Table(schema, []), path)
    rows = duckdb.sql(f"select name, converted_type from parquet_schema('{path}')").fetchall()
    assert {name: found for name, found in rows if name in CONVERTED} == CONVERTED
    assert [found for name, found in rows if name in "lm"] == ["LIST", "MAP"]
