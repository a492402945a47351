"""Columns of every type, with the values where readers and writers go wrong, and one way to compare what came back.

:func:`canonical` turns any engine's array into Python objects that are equal exactly when the values are: floats by
bits (all NaN as one), times and timestamps as whole nanoseconds, decimals by their digits. Representations that say the
same (string and string_view, UTC under another name, milliseconds read as microseconds) come out equal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class Kind:
    """A column type: ``edges`` are values that deserve to be drawn often, ``values`` draws any. Temporal values are
    numbers in the type's own unit."""

    type: pa.DataType
    values: st.SearchStrategy[Any]
    edges: list[Any] = field(default_factory=list)

    def array(self, values: list[Any]) -> pa.Array:
        if isinstance(self.type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(self.type, pa.array(values, self.type.storage_type))
        if pa.types.is_dictionary(self.type):
            return pa.array(values, self.type.value_type).cast(self.type)
        return pa.array(values, self.type)

    @property
    def any(self) -> st.SearchStrategy[Any]:
        return st.one_of(st.sampled_from(self.edges), self.values) if self.edges else self.values


def number(digits: int, scale: int) -> Decimal:
    """``digits * 10**-scale``, unrounded whatever its length."""
    return Decimal(f"{digits}e-{scale}")


def integers(bits: int, signed: bool) -> Kind:
    low = -(1 << bits - 1) if signed else 0
    high = low + (1 << bits) - 1
    type_ = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    return Kind(type_, st.integers(low, high), [low, high, high // 2, high // 2 + 1, 0])


def floats(width: int) -> Kind:
    type_ = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[width]
    smallest = {16: 2.0**-24, 32: 2.0**-149, 64: 5e-324}[width]
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, smallest, -smallest]
    return Kind(type_, st.floats(width=width), edges)  # type: ignore[arg-type]


def decimals(precision: int, scale: int, make: Any = pa.decimal128) -> Kind:
    top = 10**precision - 1
    as_number = st.integers(-top, top).map(lambda n: number(n, scale))
    return Kind(make(precision, scale), as_number, [number(n, scale) for n in (top, -top, 0, 1, -1)])


def timestamps(unit: str, zone: str | None = None) -> Kind:
    # The instants that int64 nanoseconds can hold: every engine represents them, whatever unit it works in.
    top = (1 << 63) // NS[unit] - 2
    return Kind(pa.timestamp(unit, zone), st.integers(-top, top), [-top, top, 0, -1, 1])


def times(type_: pa.DataType) -> Kind:
    last = DAY_NS // NS[type_.unit] - 1
    return Kind(type_, st.integers(0, last), [0, last])


TEXTS = ["", "\0", "a\0b", "é" * 5, "\U0001f600", "\uffff", "\U0010ffff" * 20, "x" * 80, "prefix" * 12 + "a"]
BYTES = [b"", b"\0", b"\xff" * 70, b"\x7f\x80", b"prefix" * 12 + b"\xff"]
DATES = st.integers(-141_427, 193_999)
"""Days of the years 1582 to 2500, which every engine can show."""

FLAT: dict[str, Kind] = {
    "bool": Kind(pa.bool_(), st.booleans()),
    **{f"int{b}": integers(b, True) for b in (8, 16, 32, 64)},
    **{f"uint{b}": integers(b, False) for b in (8, 16, 32, 64)},
    **{f"float{b}": floats(b) for b in (16, 32, 64)},
    "string": Kind(pa.string(), st.text(max_size=24), TEXTS),
    "large_string": Kind(pa.large_string(), st.text(max_size=24), TEXTS),
    "string_view": Kind(pa.string_view(), st.text(max_size=24), TEXTS),
    "categorical": Kind(pa.dictionary(pa.int16(), pa.string()), st.text(max_size=3), TEXTS),
    "binary": Kind(pa.binary(), st.binary(max_size=24), BYTES),
    "large_binary": Kind(pa.large_binary(), st.binary(max_size=24), BYTES),
    "binary_view": Kind(pa.binary_view(), st.binary(max_size=24), BYTES),
    "fixed1": Kind(pa.binary(1), st.binary(min_size=1, max_size=1), [b"\0", b"\xff"]),
    "fixed13": Kind(pa.binary(13), st.binary(min_size=13, max_size=13), [b"\0" * 13, b"\xff" * 13]),
    "date32": Kind(pa.date32(), DATES, [0, -1, -719_162]),
    "date64": Kind(pa.date64(), DATES.map(lambda d: d * 86_400_000)),
    "time_s": times(pa.time32("s")),
    "time_ms": times(pa.time32("ms")),
    "time_us": times(pa.time64("us")),
    "time_ns": times(pa.time64("ns")),
    **{f"ts_{u}": timestamps(u) for u in NS},
    **{f"ts_{u}_utc": timestamps(u, "UTC") for u in NS},
    "ts_us_zone": timestamps("us", "Asia/Kathmandu"),
    **{f"decimal{p}_{s}": decimals(p, s) for p, s in [(1, 0), (9, 9), (10, 2), (18, 0), (19, 19), (38, 10), (38, 38)]},
    "decimal32": decimals(9, 4, pa.decimal32),
    "decimal64": decimals(18, 9, pa.decimal64),
    "null": Kind(pa.null(), st.none()),
    "uuid": Kind(pa.uuid(), st.binary(min_size=16, max_size=16), [b"\0" * 16, b"\xff" * 16]),
    "json": Kind(pa.json_(), st.sampled_from(["{}", '{"é": [1, null]}', "null"])),
}


WIDE_DECIMALS = {f"decimal{p}_{s}": decimals(p, s, pa.decimal256) for p, s in [(39, 0), (57, 20), (76, 30), (76, 76)]}
"""More than 38 digits: DuckDB reads them as doubles, polars refuses the file."""


@st.composite
def tables(draw: st.DrawFn, names: Iterable[str], max_rows: int = 40, columns: int = 8) -> pa.Table:
    """Some of the columns, each of a few distinct values picked over and over, so that dictionaries, runs, long null
    stretches and all-null columns occur. Half of the columns are required."""
    chosen = draw(st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=columns, unique=True))
    rows = draw(st.integers(0, max_rows))
    arrays, fields = [], []
    for name in chosen:
        kind = FLAT[name]
        nullable = name == "null" or draw(st.booleans())
        pool = draw(st.lists(kind.any, min_size=1, max_size=6)) + [None] * nullable
        picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=rows, max_size=rows))
        arrays.append(kind.array([pool[k] for k in picks]))
        fields.append(pa.field(name, kind.type, nullable=nullable))
    return chunked(draw, pa.table(arrays, schema=pa.schema(fields)))


def is_read_as(found: pa.DataType, given: pa.DataType) -> bool:
    """Is it the type that was given? An ARROW:schema may have told of its Arrow form or its extension, or not."""
    storage = given.storage_type if isinstance(given, pa.BaseExtensionType) else given
    return reads_as(found) in (reads_as(given), reads_as(storage))


def encodings_of(kind: pa.DataType) -> list[str]:
    """What a column of the type may be encoded in besides PLAIN and dictionaries (decimals stored as integers)."""
    kind = reads_as(kind)
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_boolean(storage):
        return ["RLE"]
    if pa.types.is_floating(storage):
        return ["BYTE_STREAM_SPLIT"]
    if pa.types.is_string(storage) or pa.types.is_binary(storage):
        return ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    if pa.types.is_fixed_size_binary(storage) or (pa.types.is_decimal(storage) and storage.precision > 18):
        return ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"]
    return [] if pa.types.is_null(storage) else ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]


@st.composite
def encodings(draw: st.DrawFn, table: pa.Table) -> dict[str, str]:
    """An encoding for some of the columns."""
    drawn = {f.name: draw(st.sampled_from(["", *encodings_of(f.type)])) for f in table.schema}
    return {name: encoding for name, encoding in drawn.items() if encoding}


def chunked(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """The same rows, often in several chunks that are slices of larger arrays: offsets into buffers and bitmaps."""
    cuts = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=3)))
    bounds = zip([0, *cuts], [*cuts, table.num_rows])
    return pa.concat_tables([table.slice(first, last - first) for first, last in bounds])


def reads_as(kind: pa.DataType) -> pa.DataType:
    """The type that a Parquet file alone gives a column that was of this type before it was written."""
    if isinstance(kind, pa.JsonType):
        return pa.json_()
    if isinstance(kind, pa.BaseExtensionType):
        return kind
    if pa.types.is_dictionary(kind):
        return reads_as(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_time32(kind):
        return pa.time32("ms")
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ms" if kind.unit == "s" else kind.unit, "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind):
        return (pa.decimal128 if kind.precision <= 38 else pa.decimal256)(kind.precision, kind.scale)
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(reads_as(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(reads_as(kind.key_type), kind.item_field.with_type(reads_as(kind.item_type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(reads_as(kind.value_type)))
    return kind


def spread(table: pa.Table, rows: int) -> pa.Table:
    """The rows over and over, until there are so many: pages and row groups of some size from few drawn values."""
    if table.num_rows == 0:
        return table
    return pa.concat_tables([table] * (rows // table.num_rows + 1)).slice(0, rows)


def canonical(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as Python objects, equal exactly when the values are."""
    if isinstance(array, pa.ChunkedArray):
        return [v for chunk in array.chunks for v in canonical(chunk)]
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return canonical(array.storage)
    if pa.types.is_dictionary(kind):
        return canonical(array.dictionary_decode())
    if pa.types.is_nested(kind):
        return canonical_nested(array)
    if pa.types.is_timestamp(kind):
        return scaled(array.cast(pa.int64()), NS[kind.unit])
    if pa.types.is_date64(kind):
        return [None if v is None else v // 86_400_000 for v in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_time(kind):
        return scaled(array.cast(pa.int32() if kind.bit_width == 32 else pa.int64()), NS[kind.unit])
    if pa.types.is_floating(kind):
        values = (None if v is None else float(v) for v in array.to_pylist())
        return [None if v is None else "nan" if math.isnan(v) else struct.pack("<d", v) for v in values]
    return array.to_pylist()  # type: ignore[no-any-return]


def scaled(array: pa.Array, factor: int) -> list[Any]:
    return [None if v is None else v * factor for v in array.to_pylist()]


def canonical_nested(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_struct(kind):
        children = [(f.name, canonical(array.field(k))) for k, f in enumerate(kind)]
        rows = [{name: values[row] for name, values in children} for row in range(len(array))]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        offsets = array.offsets.to_pylist()
        pairs = list(zip(canonical(array.keys), canonical(array.items), strict=True))
    elif pa.types.is_fixed_size_list(kind):
        return canonical_nested(array.cast(pa.list_(kind.value_type)))
    else:
        offsets, pairs = array.offsets.to_pylist(), canonical(array.values)
    spans = zip(offsets[:-1], offsets[1:], array.is_valid().to_pylist(), strict=True)
    return [pairs[first:last] if valid else None for first, last, valid in spans]


# ---- nested columns --------------------------------------------------------------------------------------------------

ITEMS = ["bool", "int8", "uint32", "int64", "float64", "string", "binary", "date32", "ts_us_utc", "decimal10_2"]
"""Leaves of nested columns: one of each way in which leaves differ."""

Shaped = tuple[pa.DataType, st.SearchStrategy[Any]]


def optional(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values) if nullable else values


@st.composite
def nested_types(draw: st.DrawFn, depth: int = 3) -> Shaped:
    """A type with lists, structs and maps up to a depth, each child nullable or not, and a strategy for its values."""
    shape = draw(st.sampled_from(["leaf", "list", "struct", "map"] if depth else ["leaf"]))
    if shape == "leaf":
        kind = FLAT[draw(st.sampled_from(ITEMS))]
        return kind.type, kind.any
    nullable = draw(st.booleans())
    child, values = draw(nested_types(depth - 1))
    values = optional(values, nullable)
    if shape == "list":
        return pa.list_(pa.field("element", child, nullable)), st.lists(values, max_size=4)
    if shape == "map":
        # Engines refuse repeated keys.
        pairs = st.dictionaries(st.text(max_size=3), values, max_size=3).map(lambda d: list(d.items()))
        return pa.map_(pa.string(), pa.field("value", child, nullable)), pairs
    members = {"a": (child, nullable, values)}
    for name in draw(st.sampled_from([[], ["b"], ["b", "ü.c"]])):
        nullable = draw(st.booleans())
        child, values = draw(nested_types(depth - 1))
        members[name] = (child, nullable, optional(values, nullable))
    fields = [pa.field(name, child, nullable) for name, (child, nullable, _) in members.items()]
    return pa.struct(fields), st.fixed_dictionaries({name: values for name, (_, _, values) in members.items()})


@st.composite
def nested_tables(draw: st.DrawFn, max_rows: int = 20) -> pa.Table:
    """One to three nested columns."""
    rows = draw(st.integers(0, max_rows))
    arrays, fields = [], []
    for k in range(draw(st.integers(1, 3))):
        kind, values = draw(nested_types())
        nullable = draw(st.booleans())
        pool = draw(st.lists(optional(values, nullable), min_size=1, max_size=6))
        picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=rows, max_size=rows))
        arrays.append(pa.array([pool[p] for p in picks], kind))
        fields.append(pa.field(f"c{k}", kind, nullable=nullable))
    return chunked(draw, pa.table(arrays, schema=pa.schema(fields)))
