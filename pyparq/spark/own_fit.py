"""What the footers of files say of Spark's own reader: whether it reads their columns exactly as pyparq does.

Only what both are known to read alike fits: files in which lists and maps have an old structure, whose types have to be
converted, or whose pages Spark misreads, are pyparq's.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyparq.datasets.file_groups import ChunksOfKind, chunks_by_kind
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.scan import DatasetPlanHeader
from pyparq.format import ttypes as tt
from pyparq.format.chunk_numbers import bit_of
from pyparq.format.nesting import is_list, is_map
from pyparq.format.schema_node import Node
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
