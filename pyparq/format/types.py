"""Types: Arrow's on the memory side, Parquet's physical and logical ones on the file side.

:class:`DataType`, :class:`Field` and :class:`Schema` describe columns in memory. A type *is* its Arrow C data
interface format string plus its children, so that exchanging with other libraries needs no second vocabulary.
:class:`LeafType` describes a leaf of a file: physical type and resolved annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import Never

import numpy as np

from pyparq.column_names import as_list
from pyparq.errors import ColumnNotFoundError, OptionError, OtherNames, SchemaError, by_each, near_matches
from pyparq.kernels import ArrowField
from pyparq.option_checks import keywords, methods_told, refuse_unknown
from pyparq.runtime.lazy_import import provided
from pyparq.runtime.tables import Cell, html_view, viewable
from pyparq.runtime.text import printable


class Physical(IntEnum):
    """Parquet physical types, numbered as ``Type`` in parquet.thrift."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
"""Numbers of ``FieldRepetitionType``."""

PHYSICAL_DTYPE: dict[Physical, np.dtype[np.generic]] = {
    Physical.BOOLEAN: np.dtype(np.uint8),
    Physical.INT32: np.dtype("<i4"),
    Physical.INT64: np.dtype("<i8"),
    Physical.FLOAT: np.dtype("<f4"),
    Physical.DOUBLE: np.dtype("<f8"),
}

_DTYPES = {
    "c": "i1", "C": "u1", "s": "<i2", "S": "<u2", "i": "<i4", "I": "<u4", "l": "<i8", "L": "<u8",
    "e": "<f2", "f": "<f4", "g": "<f8", "tdD": "<i4", "tdm": "<i8", "tts": "<i4", "ttm": "<i4",
    "ttu": "<i8", "ttn": "<i8", "tDs": "<i8", "tDm": "<i8", "tDu": "<i8", "tDn": "<i8",
}  # fmt: skip
_OTHER_WIDTHS = {"tiM": 4, "tiD": 8, "tin": 16, "_pli128": 16, "_plu128": 16}

_NAMES = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32",
    "I": "uint32", "l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64",
    "u": "string", "U": "large_string", "vu": "string_view", "z": "binary", "Z": "large_binary",
    "vz": "binary_view", "tdD": "date32", "tdm": "date64", "tts": "time32[s]", "ttm": "time32[ms]",
    "ttu": "time64[us]", "ttn": "time64[ns]", "tDs": "duration[s]", "tDm": "duration[ms]", "tDu": "duration[us]",
    "tDn": "duration[ns]", "tiM": "interval[months]", "tiD": "interval[days, ms]",
    "tin": "interval[months, days, ns]", "+vl": "list_view", "+vL": "large_list_view", "+s": "struct", "+l": "list",
    "+L": "large_list", "+m": "map", "_pli128": "int128", "_plu128": "uint128",
}  # fmt: skip

_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
_UNIT_LETTERS = {name: letter for letter, name in _UNITS.items()}


@methods_told
@dataclass(frozen=True, slots=True)
class DataType:
    """An Arrow type: C data interface ``format`` and ``children`` fields (nested types only).

    ``dictionary`` is the value type when the array is dictionary-encoded (``format`` is the index type then), and
    ``ordered`` says that the order of its entries means something; of a map, that its keys are sorted.

    Example::

        print(pyparq.read_schema("flights.parquet").field("dest").type)
    """

    format: str
    children: tuple[Field, ...] = ()
    dictionary: DataType | None = None
    ordered: bool = False

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is the same type, its name (``"int64"``), or the same type of pyarrow. As with numpy's
        types, the hash is not that of the name."""
        if type(other) is DataType:
            mine, others = (self.format, self.children), (other.format, other.children)
            return mine == others and self.dictionary == other.dictionary and self.ordered == other.ordered
        if hasattr(other, "__arrow_c_schema__"):
            return self == provided("types of others").field_from_arrow(other).type  # type: ignore[no-any-return]
        return isinstance(other, str) and str(self) == other

    @property
    def kind(self) -> str:
        """Family: ``bool int uint float string binary fixed decimal date time timestamp null`` or a nested one."""
        f = self.format
        return _KINDS.get(f) or _KINDS.get(f[:2]) or _KINDS.get(f[:1]) or "unknown"

    @property
    def byte_width(self) -> int:
        """Bytes of one value; 0 for bool (bits) and for types of variable width."""
        f = self.format
        if f[0] == "w":
            return int(f[2:])
        if f[0] == "d":
            return self.decimal[2] // 8
        if f.startswith("ts"):
            return 8
        return np.dtype(_DTYPES[f]).itemsize if f in _DTYPES else _OTHER_WIDTHS.get(f, 0)

    @property
    def numpy_dtype(self) -> np.dtype[np.generic]:
        """dtype of the values buffer for numeric and temporal types (temporal ones as integers)."""
        if self.format.startswith("ts"):
            return np.dtype("<i8")
        try:
            return np.dtype(_DTYPES[self.format])
        except KeyError:
            raise SchemaError(f"{self} has no numpy dtype") from None

    @property
    def unit(self) -> str:
        """``s``, ``ms``, ``us`` or ``ns`` of a time, timestamp or duration type."""
        return _UNITS[self.format[2]]

    @property
    def timezone(self) -> str:
        """Time zone of a timestamp type, ``""`` when it has none (local time)."""
        return self.format[4:]

    @property
    def decimal(self) -> tuple[int, int, int]:
        """(precision, scale, bit width) of a decimal type."""
        parts = [int(p) for p in self.format[2:].split(",")]
        return parts[0], parts[1], parts[2] if len(parts) > 2 else 128

    @property
    def is_binary_like(self) -> bool:
        """Has an offsets buffer and a data buffer."""
        return self.format in ("u", "U", "z", "Z")

    @property
    def is_list(self) -> bool:
        """A list, large list or fixed-size list."""
        return self.format in ("+l", "+L") or self.format.startswith("+w:")

    @property
    def is_map(self) -> bool:
        return self.format == "+m"

    @property
    def is_nested(self) -> bool:
        return self.format.startswith("+")

    def __str__(self) -> str:
        f = self.format
        if self.dictionary is not None:
            return f"dictionary<{self.dictionary}>"
        if f[0] == "w":
            return f"fixed_size_binary[{f[2:]}]"
        if f[0] == "d":
            precision, scale, bits = self.decimal
            return f"decimal{'' if bits == 128 else bits}({precision}, {scale})"
        if f.startswith("ts"):
            zone = f", tz={self.timezone}" if self.timezone else ""
            return f"timestamp[{self.unit}{zone}]"
        name = _NAMES.get(f) or f"fixed_size_list[{f[3:]}]" if f.startswith("+w") else _NAMES.get(f, f)
        inner = ", ".join(f"{c.name}: {c.type}{_logical(c)}" for c in self.children)
        return f"{name}<{inner}>" if self.children else str(name)


_KINDS = {
    "n": "null", "b": "bool", "e": "float", "f": "float", "g": "float", "u": "string", "U": "string",
    "vu": "string", "z": "binary", "Z": "binary", "vz": "binary", "w": "fixed", "d": "decimal", "td": "date",
    "tt": "time", "ts": "timestamp", "tD": "duration", "ti": "interval", "+s": "struct", "+l": "list",
    "+L": "list", "+w": "list", "+m": "map", "+r": "run_end", "+v": "list_view", "+u": "union", "_p": "int128",
    "c": "int", "s": "int", "i": "int", "l": "int", "C": "uint", "S": "uint", "I": "uint", "L": "uint",
}  # fmt: skip


@methods_told
@dataclass(frozen=True, slots=True)
class Field:
    """A named, possibly nullable column. ``metadata`` keys and values are bytes.

    Example::

        field = pyparq.schema({"price": "decimal(9,2)?"}).field("price")
        print(field.name, field.type, field.nullable)
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[bytes, bytes] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{_logical(self)}{'' if self.nullable else ' not null'}"


def _logical(field: Field) -> str:
    """What the metadata of a field say of its type: ``" (uuid)"``. Empty where they say nothing."""
    name = field.metadata.get(b"ARROW:extension:name") or field.metadata.get(b"PARQUET:logical_type", b"").lower()
    return f" ({name.decode('utf-8', 'replace').removeprefix('arrow.').removeprefix('parquet.')[:60]})" if name else ""


@dataclass(frozen=True, slots=True)
class Schema(OtherNames):
    """Fields in order, with table-level ``metadata`` (bytes to bytes).

    Example::

        schema = pyparq.read_schema("flights.parquet")
        for field in schema:
            print(field.name, field.type, field.nullable)
    """

    fields: tuple[Field, ...]
    metadata: Mapping[bytes, bytes] = field(default_factory=dict, hash=False)
    _elsewhere = by_each({
        "leaves root find": "tree of the open file", "column": "field(name)", "keys columns": "names",
        "with_metadata remove_metadata append insert set remove":
            "pyparq.schema(...), or key_value_metadata= of write_table", "to_arrow": "pyarrow.schema(schema)",
        "get_field_index": "=index", "text to_string": "str(schema)", "equals": "the operator ==, for the metadata too",
        "types dtypes to_pandas values": "[f.type for f in schema]",
        "items to_dict to_python": "{f.name: f.type for f in schema}", "field_by_name": "=field", "len": "len(schema)",
        "names": "pyparq.schema(...) to make one: the fields of this one are none",
    })  # fmt: skip

    def __init__(
        self, fields: tuple[Field, ...], metadata: Mapping[bytes, bytes] | None = None, **wrong: Never
    ) -> None:
        if wrong or type(fields) is not tuple:
            refuse_unknown(wrong, (), {})
            raise OptionError("Schema() takes a tuple of fields. Use pyparq.schema({'id': 'int64'}) for other things")
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "metadata", {} if metadata is None else metadata)

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.fields]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __contains__(self, name: object) -> bool:
        """Whether a field has this name, or is this one."""
        return name in self.names or name in self.fields

    @keywords
    def field(self, name: str | int) -> Field:
        """The field of that name or number; :class:`ColumnNotFoundError` if none or several have the name."""
        return self.fields[self.index(name) if isinstance(name, str) else name]

    __getitem__ = field

    @keywords
    def index(self, name: str) -> int:
        found = [i for i, f in enumerate(self.fields) if f.name == name]
        if len(found) > 1:
            raise ColumnNotFoundError(
                f"{len(found)} columns have the name {name!r}, so it does not identify one of them"
            )
        if not found:
            raise ColumnNotFoundError(f"no column {name!r}{near_matches(name, self.names)}")
        return found[0]

    @keywords
    def select(self, names: str | Iterable[str]) -> Schema:
        return replace(self, fields=tuple(self.field(n) for n in as_list(names)))

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.fields)

    @printable
    def __repr__(self) -> str:
        return f"pyparq.Schema ({len(self.fields)} columns)\n{self}".rstrip()

    @viewable
    def _repr_html_(self) -> str:
        return html_view(f"Schema ({len(self.fields):,} columns)", (), *schema_view(self))

    def __arrow_c_schema__(self) -> object:
        return native_struct(self).capsule()


_KEPT = 16
_kept: dict[tuple[object, ...], tuple[tuple[Field, ...], ArrowField]] = {}
"""The last few schemas of Arrow made. Their fields are kept too, so that the id they are known by stays theirs."""


def native_struct(schema: Schema) -> ArrowField:
    """The schema as the Arrow C data interface has it: a struct with one child per field."""
    key = id(schema.fields), tuple(schema.metadata.items())
    known = _kept.get(key)
    if known is None:
        root = Field("", DataType("+s", schema.fields), nullable=False, metadata=schema.metadata)
        known = schema.fields, ArrowField(root)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = known
    return known[1]


@dataclass(frozen=True, slots=True)
class LeafType:
    """What a leaf of a file holds.

    ``kind`` is one of ``bool int uint float16 float double string enum json bson binary fixed decimal date time
    timestamp int96 int96_bytes uuid interval null variant geometry geography``; the other members are set where the
    kind has them. ``length`` is the byte width of FIXED_LEN_BYTE_ARRAY, ``bits`` the logical width of integers,
    ``unit`` also the one in which int96 timestamps are read, ``crs`` (as stored; ``""``: OGC:CRS84) and ``algorithm``
    those of geometry and geography. ``nulls_beyond``: values that do not fit the type are read as nulls. ``hybrid``:
    the time zone in whose hybrid calendar dates or timestamps are stored (:mod:`pyparq.format.hybrid_calendar`),
    ``""`` where they are as the format has them.
    """

    physical: Physical
    kind: str
    length: int = 0
    bits: int = 0
    unit: str = ""
    utc: bool = False
    precision: int = 0
    scale: int = 0
    crs: str = ""
    algorithm: str = ""
    nulls_beyond: bool = False
    hybrid: str = ""

    @property
    def width(self) -> int:
        """Bytes of one PLAIN value; 0 for BYTE_ARRAY; 1 for BOOLEAN (in memory)."""
        return _WIDTHS.get(self.physical, self.length)

    @property
    def is_binary(self) -> bool:
        """Values have a length of their own (BYTE_ARRAY)."""
        return self.physical == Physical.BYTE_ARRAY

    @property
    def is_text(self) -> bool:
        """Values must be UTF-8."""
        return self.kind in ("string", "enum", "json")


_WIDTHS = {
    Physical.BOOLEAN: 1, Physical.INT32: 4, Physical.INT64: 8, Physical.INT96: 12, Physical.FLOAT: 4,
    Physical.DOUBLE: 8, Physical.BYTE_ARRAY: 0,
}  # fmt: skip

_INT_FORMATS = {
    ("int", 8): "c", ("int", 16): "s", ("int", 32): "i", ("int", 64): "l",
    ("uint", 8): "C", ("uint", 16): "S", ("uint", 32): "I", ("uint", 64): "L",
}  # fmt: skip

_PLAIN_FORMATS = {
    "bool": "b", "float16": "e", "float": "f", "double": "g", "string": "u", "enum": "u", "json": "u",
    "bson": "z", "binary": "z", "date": "tdD", "null": "n", "variant": "z",
    "geometry": "z", "geography": "z",
}  # fmt: skip


@lru_cache(maxsize=1024)
def arrow_type(leaf: LeafType) -> DataType:
    """The Arrow type that a leaf's values have in memory."""
    kind = leaf.kind
    if kind in ("int", "uint"):
        return DataType(_INT_FORMATS[kind, leaf.bits])
    if kind == "timestamp":
        return DataType(f"ts{_UNIT_LETTERS[leaf.unit]}:{'UTC' if leaf.utc else ''}")
    if kind == "int96":
        return DataType(f"ts{_UNIT_LETTERS[leaf.unit or 'ns']}:{'UTC' if leaf.utc else ''}")
    if kind == "time":
        return DataType(f"tt{_UNIT_LETTERS[leaf.unit]}")
    if kind == "decimal":
        return DataType(f"d:{leaf.precision},{leaf.scale}" + (",256" if leaf.precision > 38 else ""))
    # A type that Arrow does not have is the bytes that are stored.
    return DataType(_PLAIN_FORMATS.get(kind) or (f"w:{leaf.length}" if leaf.length else "z"))


def schema_view(schema: Schema) -> tuple[list[str], list[list[Cell]]]:
    """Headings and rows of a schema for a notebook."""
    rows: list[list[Cell]] = [[f.name, f"{f.type}{_logical(f)}", "" if f.nullable else "not null"] for f in schema]
    return ["column", "type", ""], rows
