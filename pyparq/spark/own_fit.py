"""What the footers of files say of Spark's own reader: whether it reads their columns exactly as pyparq does. And the
filters of pyparq in its SQL.

Only what both are known to read alike fits: files in which lists and maps have an old structure, whose types have to be
converted, or whose pages Spark misreads, are pyparq's.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.datasets.file_groups import ChunksOfKind, chunks_by_kind
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.scan import DatasetPlanHeader
from pyparq.errors import ParquetError
from pyparq.filters.expression import AllOf, AnyOf, Compare, Expression, IsIn, IsNan, IsNull, Matches, Not, ValueTest
from pyparq.filters.literal import interpreted
from pyparq.filters.times import DAY_NS
from pyparq.format import ttypes as tt
from pyparq.format.chunk_numbers import bit_of
from pyparq.format.schema_node import Node, is_list, is_map
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import REPEATED, LeafType, Physical
from pyparq.read.footers.open_file import OpenFile


@dataclass(frozen=True)
class Fit:
    """What the footers of some files say of Spark's reader."""

    why: str | None
    """Why it would not give the same rows and types."""
    rows: int = 0
    """Of these files."""
    row_groups: int = 0
    num_bytes: int = 0
    """Of the column chunks that are read."""


def fit_of(files: DatasetFiles, numbers: Sequence[int], header: DatasetPlanHeader, spark: Any) -> Fit:
    """What the footers of the files with these numbers say of the read by Spark's reader. ``spark``: Spark's schema of
    the columns of the read."""
    types = {field.name: field.dataType for field in spark}
    partitions = {field.name for field in header.partitions}
    own = {name: type_ for name, type_ in types.items() if name not in partitions}
    if any(_is_behind_checksum(files.found.files[k].where) for k in numbers):
        return Fit("a checksum file (.NAME.crc) is not that of the file beside it")
    fit, known = Fit(None), dict[int, str | None]()
    for kind in chunks_by_kind(files, numbers, own):
        tree = kind.file.tree
        if id(tree) not in known:
            known[id(tree)] = _why_not_tree(kind.file, own, {name.lower() for name in partitions})
        why = known[id(tree)] or _why_not_chunks(kind)
        if why is not None:
            return Fit(why)
        rows, groups, size = int(kind.rows.sum()), len(kind.rows), int(kind.size.sum())
        fit = Fit(None, fit.rows + rows, fit.row_groups + groups, fit.num_bytes + size)
    return fit


def _why_not_tree(file: OpenFile, types: dict[str, Any], partitions: set[str]) -> str | None:
    """What in the schema of a file Spark's reader would not read as these types."""
    names = [node.name for node in file.tree.root.children]
    lowered = Counter(name.lower() for name in names)
    if max(lowered.values(), default=0) > 1:
        return "names of columns differ by case alone"
    if partitions & lowered.keys():
        return "a partition column is in the files too"
    nodes = {node.name: node for node in file.tree.root.children}
    for name, type_ in types.items():
        if name not in nodes and name.lower() in lowered:
            return f"the column {name!r} is spelled otherwise in a file"
        if name in nodes and not reads_as(nodes[name], type_):
            return f"Spark would not read the column {name!r} of a file as {type_.simpleString()}"
    return None


def _set_of(numbers: Mapping[str, int], *names: str) -> int:
    return sum(bit_of(numbers[name]) for name in names)


_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW")
_NUMBERS = tt.Encoding._NAMES_TO_VALUES
_ENCODINGS = _set_of(
    _NUMBERS, "PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED"
)
_OF_TEXT = _set_of(_NUMBERS, "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
"""Spark 4.3 misreads these in pages that are not compressed. Where the column chunk has a codec, pages of version 1 are
compressed; those of version 2 may not be."""


def _why_not_chunks(kind: ChunksOfKind) -> str | None:
    """What in column chunks Spark's reader cannot read, or reads wrongly."""
    file, numbers = kind.file, kind.numbers
    if file.decryption.info is not None or file.footer.meta.encryption_algorithm is not None:
        return "a file is encrypted"
    for number in np.unique(numbers.codec).tolist():
        codec = tt.CompressionCodec._VALUES_TO_NAMES.get(number, str(number))
        if codec not in _CODECS:
            return f"a column chunk has the codec {codec}"
    is_known = (file.created_by or "").startswith("pyparq version")  # others name no version 2 in encoding_stats
    is_first = (numbers.page_types > 0) & (numbers.page_types & bit_of(tt.PageType.DATA_PAGE_V2) == 0)
    packed = is_known & is_first & (numbers.codec != tt.CompressionCodec.UNCOMPRESSED)
    unknown = numbers.encodings & ~np.where(packed, _ENCODINGS | _OF_TEXT, _ENCODINGS)
    found = int(np.bitwise_or.reduce(unknown.ravel()))
    if found:
        number = found.bit_length() - 1
        return f"a column chunk has the encoding {tt.Encoding._VALUES_TO_NAMES.get(number, 'of an unknown number')}"
    return None


def _is_behind_checksum(path: str) -> bool:
    """Whether the checksum file that Hadoop keeps beside a local file is not of this file: Spark could not read it."""
    folder, name = os.path.split(path)
    try:
        beside = os.stat(os.path.join(folder, f".{name}.crc"))
    except OSError:
        return False
    file = os.stat(path)
    return beside.st_mtime_ns < file.st_mtime_ns - _CLOCK or beside.st_size != 8 + 4 * -(-file.st_size // 512)


_CLOCK = 2_000_000_000
"""Nanoseconds by which the times of two files written together may differ, on a machine with much other work too."""


# ---- types -----------------------------------------------------------------------------------------------------------


def reads_as(node: Node, type_: Any) -> bool:
    """Whether Spark's reader makes the values of ``type_`` (a ``DataType``) of a column, which pyparq makes too.

    Only what both are known to read alike is true. Files in which lists and maps have an old structure, or whose types
    have to be converted, are pyparq's.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if node.repetition == REPEATED:
        return False
    if node.is_leaf:
        return type_ in _types_of(node.type)
    inner = node.children[0] if len(node.children) == 1 else None
    if is_list(node):
        return (
            isinstance(type_, ArrayType) and inner is not None and inner.repetition == REPEATED
            and inner.name == "list" and len(inner.children) == 1
            and reads_as(inner.children[0], type_.elementType)
        )  # fmt: skip
    if is_map(node):
        return (
            isinstance(type_, MapType) and inner is not None and inner.repetition == REPEATED
            and inner.name == "key_value" and len(inner.children) == 2
            and reads_as(inner.children[0], type_.keyType) and reads_as(inner.children[1], type_.valueType)
        )  # fmt: skip
    names = [child.name for child in node.children]
    return (
        isinstance(type_, StructType) and not node.is_variant and not node.is_file and type_.names == names
        and len({name.lower() for name in names}) == len(names)
        and all(reads_as(child, field.dataType) for child, field in zip(node.children, type_.fields, strict=True))
    )  # fmt: skip


def _types_of(leaf: LeafType) -> tuple[Any, ...]:
    """The type of Spark in which its reader gives the values of a leaf; none where it reads them otherwise."""
    from pyspark.sql import types as t

    if leaf.hybrid or leaf.nulls_beyond:
        return ()
    physical, kind = leaf.physical, leaf.kind
    plain = {
        (Physical.BOOLEAN, "bool"): t.BooleanType(),
        (Physical.FLOAT, "float"): t.FloatType(),
        (Physical.DOUBLE, "double"): t.DoubleType(),
        (Physical.BYTE_ARRAY, "string"): t.StringType(),
        (Physical.BYTE_ARRAY, "binary"): t.BinaryType(),
        (Physical.INT32, "date"): t.DateType(),
        (Physical.INT96, "int96"): t.TimestampType(),
    }.get((physical, kind))
    if plain is not None:
        return (plain,)
    if kind == "int":
        sizes = {8: t.ByteType(), 16: t.ShortType(), 32: t.IntegerType(), 64: t.LongType()}
        return (sizes[leaf.bits],) if (physical == Physical.INT64) == (leaf.bits == 64) else ()
    if kind == "timestamp" and leaf.unit in ("us", "ms"):
        return (t.TimestampType() if leaf.utc else t.TimestampNTZType(),)
    if kind == "decimal" and leaf.precision <= _DIGITS.get(physical, 38) and leaf.scale >= 0:
        return (t.DecimalType(leaf.precision, leaf.scale),)
    return ()


_DIGITS = {Physical.INT32: 9, Physical.INT64: 18}


# ---- filters of pyparq as conditions in Spark's SQL


MOST_VALUES = 1000
"""Of an ``isin`` that becomes text."""


def sql_of(expression: Expression, tree: SchemaTree) -> str | None:
    """The condition that is true for the same rows in Spark; ``None`` where there is none here. ``tree``: the columns,
    as the filter names them."""
    if isinstance(expression, (AllOf, AnyOf)):
        parts = [sql_of(child, tree) for child in expression.children]
        word = " AND " if isinstance(expression, AllOf) else " OR "
        return None if None in parts or not parts else word.join(f"({part})" for part in parts)
    if isinstance(expression, Not):
        inner = sql_of(expression.child, tree)
        return None if inner is None else f"NOT ({inner})"
    if not isinstance(expression, ValueTest) or expression.path is None:
        return None
    try:
        node = tree.find(expression.path)
        return _test(expression, node, _name(node))
    except (ParquetError, ValueError, OverflowError):
        return None


def _name(node: Node) -> str:
    if len(node.path) > 1:
        raise ValueError("inside of a column")  # a struct, or a list: the names say nothing of it
    return "`" + node.name.replace("`", "``") + "`"


def _test(test: ValueTest, node: Node, name: str) -> str | None:
    if isinstance(test, IsNull):
        return f"{name} IS NULL"
    if not node.is_leaf:
        return None
    if isinstance(test, IsNan):
        return f"isnan({name})" if node.type.kind in ("float", "double") else None
    if isinstance(test, Compare) and test.op in _OPERATORS:
        return f"{name} {_OPERATORS[test.op]} {_literal(test.other, node.type)}"
    if isinstance(test, IsIn) and 0 < len(test.values) <= MOST_VALUES:
        return f"{name} IN ({', '.join(_literal(value, node.type) for value in test.values)})"
    if isinstance(test, Matches) and test.kind == "starts_with" and node.type.kind == "string":
        return f"startswith({name}, {_literal(test.pattern, node.type)})"
    return None


_OPERATORS = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _literal(value: Any, leaf: LeafType) -> str:
    """A value as SQL, in the type of the column. Raises :class:`ValueError` for one that has not this type."""
    make = _LITERALS.get(leaf.kind)
    if make is None:
        raise ValueError(leaf.kind)
    return make(interpreted(leaf, value, "").value, leaf)


def _int(value: Any, leaf: LeafType) -> str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(value)
    if not -(1 << 63) < int(value) < 1 << 63:
        raise ValueError(value)
    return f"{int(value)}L"


def _double(value: Any, leaf: LeafType) -> str:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(value)
    number = float(value)
    if number != value or not np.isfinite(number):
        raise ValueError(value)
    return f"{number!r}D"


def _decimal(value: Any, leaf: LeafType) -> str:
    number = Decimal(int(value)) if isinstance(value, (int, np.integer)) else value
    if not isinstance(number, Decimal) or isinstance(value, bool) or not number.is_finite():
        raise ValueError(value)
    _, digits, exponent = number.as_tuple()
    if len(digits) > _MOST_DIGITS or leaf.precision > _MOST_DIGITS or not -_MOST_DIGITS <= int(exponent) <= 0:
        raise ValueError(value)
    return f"{number:f}BD"


_MOST_DIGITS = 18
"""Of decimals that Spark compares exactly with each other, whatever their scales are."""


def _bool(value: Any, leaf: LeafType) -> str:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(value)
    return "TRUE" if value else "FALSE"


def _text(value: Any, leaf: LeafType) -> str:
    stored = value.encode() if isinstance(value, str) else bytes(value)
    text = stored.decode()
    return f"'{text}'" if re.fullmatch(r"[A-Za-z0-9 _.,:/@-]*", text) else f"CAST(X'{stored.hex()}' AS STRING)"


def _bytes(value: Any, leaf: LeafType) -> str:
    return f"X'{bytes(value).hex()}'"


def _moment(ns: Any, leaf: LeafType) -> str:
    """``ns``: nanoseconds since 1970."""
    us, rest = divmod(ns, 1000)
    if rest or us != int(us) or not -_YEAR_1 < us < _YEAR_9999:
        raise ValueError(ns)
    if leaf.kind == "int96" or leaf.utc:
        return f"timestamp_micros({int(us)}L)"
    return f"TIMESTAMP_NTZ'{str(np.datetime64(int(us), 'us')).replace('T', ' ')}'"


def _date(ns: Any, leaf: LeafType) -> str:
    days, rest = divmod(ns, DAY_NS)
    if rest:
        raise ValueError(ns)
    return f"DATE'{(dt.date(1970, 1, 1) + dt.timedelta(days=int(days))).isoformat()}'"


_YEAR_1, _YEAR_9999 = 62_000_000_000_000_000, 253_000_000_000_000_000
"""Microseconds between these years and 1970, about."""

_LITERALS: dict[str, Callable[[Any, LeafType], str]] = {
    "int": _int, "float": _double, "double": _double, "decimal": _decimal, "bool": _bool, "string": _text,
    "binary": _bytes, "timestamp": _moment, "int96": _moment, "date": _date,
}  # fmt: skip
