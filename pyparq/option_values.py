"""Values of options: Bloom filters, sort orders, and the types of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from pyparq.column_names import ColumnName, is_name
from pyparq.errors import OptionError
from pyparq.option_checks import is_int, is_number, methods_told

Compression: TypeAlias = Literal[
    "none", "uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw", "lz4",
    "NONE", "UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4_RAW", "LZ4",
]  # fmt: skip
Encoding: TypeAlias = Literal[
    "auto", "PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT", "ALP",
]  # fmt: skip
FloatOrder: TypeAlias = Literal["TYPE_ORDER", "IEEE_754_TOTAL_ORDER"]
DecimalStorage: TypeAlias = Literal["smallest", "fixed", "binary"]
Int96Unit: TypeAlias = Literal["s", "ms", "us", "ns", "bytes", "auto"]
KeyValues: TypeAlias = Mapping[Any, str | bytes | None]


@methods_told
@dataclass(frozen=True, slots=True)
class BloomOptions:
    """Options for the Bloom filters of one column.

    Example::

        options = {"id": pyparq.BloomOptions(fpp=0.001, power_of_two=False)}
        pyparq.write_table({"id": [1, 2, 3]}, "ids.parquet", bloom_filter_options=options)
    """

    fpp: float = 0.01
    """Target false-positive rate. The filter is sized for the distinct values of each row group, which are counted when
    the row group is complete."""
    ndv: int | None = None
    """Number of distinct values per row group to size the filter for. ``None`` counts them."""
    bytes: int | None = None
    """Exact size of the bitset, in bytes."""
    max_bytes: int = 128 << 20
    """Maximum size of the bitset, in bytes. A filter that reaches it has a higher false-positive rate than ``fpp``."""
    power_of_two: bool = True
    """Round the size of the bitset to a power of two. ``False`` uses the exact number of 32-byte blocks. That is
    smaller, but Arrow C++ refuses to read it."""
    auto: bool = False
    """Write no filter for a column chunk that is completely dictionary-encoded: readers can test its dictionary."""

    def __post_init__(self) -> None:
        if not (is_number(self.fpp) and 0 < self.fpp < 1):
            raise OptionError(f"a Bloom filter's fpp must be between 0 and 1 (exclusive), not {self.fpp!r}")
        if self.ndv is not None and not (is_int(self.ndv) and self.ndv >= 0):
            raise OptionError(f"a Bloom filter's ndv must be a whole number of at least 0, not {self.ndv!r}")
        for name, size in (("bytes", self.bytes), ("max_bytes", self.max_bytes)):
            if size is not None and not (is_int(size) and 32 <= size <= 128 << 20):
                raise OptionError(f"a Bloom filter's {name} must be between 32 bytes and 128 MiB, not {size!r}")
        if self.bytes is not None and self.bytes % 32:
            raise OptionError(f"a Bloom filter's bytes must be a multiple of 32, not {self.bytes}")
        if self.bytes is not None and self.power_of_two and self.bytes & (self.bytes - 1):
            raise OptionError(
                f"a Bloom filter's bytes must be a power of two, not {self.bytes}, unless power_of_two=False"
            )


def bloom_options(given: Any, base: BloomOptions | None = None) -> BloomOptions | None:
    """One column's value in ``bloom_filters`` or ``bloom_filter_options``; ``None`` when it says no filter."""
    base = base or BloomOptions()
    if given is None or given is False:
        return None
    if given is True:
        return base
    if isinstance(given, BloomOptions):
        return given
    if isinstance(given, str) and given == "auto":
        return replace(base, auto=True)
    if is_number(given):
        return replace(base, fpp=given)
    if isinstance(given, Mapping):
        return replace(base, **given)
    raise OptionError(f"a Bloom filter takes True, a false-positive rate, 'auto' or a dict of options, not {given!r}")


class BloomValues(TypedDict, total=False):
    """The fields of :class:`pyparq.BloomOptions`."""

    fpp: float
    ndv: int | None
    bytes: int | None
    max_bytes: int
    power_of_two: bool
    auto: bool


@methods_told
@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of a sort order.

    Example::

        order = [pyparq.SortKey("city"), pyparq.SortKey("id", descending=True)]
        pyparq.write_table({"id": [1, 2, 3], "city": ["b", "a", "a"]}, "sorted.parquet", sort_by=order)
    """

    name: ColumnName | int
    """The column: its name, its path, or its number among the leaf columns, counted from 0."""
    descending: bool = False
    """Sort from the largest value to the smallest."""
    nulls_first: bool = False
    """Put nulls before all values. By default they come after all values, in either direction."""


def sort_keys(given: Any) -> tuple[SortKey, ...]:
    """The keys of ``sort_by`` or ``sorting_columns``: names, tuples, or :class:`SortKey`."""
    if given is None:
        return ()
    if isinstance(given, (str, SortKey)):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise OptionError(f"a sort order must be a list of names or (name, direction) tuples, not {given!r}")
    keys = tuple(_sort_key(item) for item in given)
    names = [key.name for key in keys]
    if len(set(names)) != len(names):
        raise OptionError(f"the sort order names a column twice: {names}")
    return keys


def check_sort_order(name: str, value: Any) -> None:
    """Raise :class:`OptionError` for what is no sort order."""
    sort_keys(value)


_DIRECTIONS = ("ascending", "descending", "asc", "desc")
"""Second items of a sort key that mean a direction, not the second name of a path."""


def _sort_key(item: Any) -> SortKey:
    if isinstance(item, SortKey):
        return item
    if isinstance(item, str):
        return SortKey(item)
    if hasattr(item, "column_index") and hasattr(item, "descending"):  # pyarrow.parquet.SortingColumn
        return SortKey(item.column_index, bool(item.descending), bool(getattr(item, "nulls_first", False)))
    if is_name(item) and len(item) > 1 and item[1].lower() not in _DIRECTIONS:
        return SortKey(item)
    if isinstance(item, tuple) and 1 <= len(item) <= 3 and is_name(item[0]):
        direction = item[1] if len(item) > 1 else "ascending"
        nulls = item[2] if len(item) > 2 else False
        if direction in ("ascending", "descending") and nulls in (True, False, "nulls_first", "nulls_last"):
            return SortKey(item[0], direction == "descending", nulls in (True, "nulls_first"))
    raise OptionError(
        f"{item!r} is not a sort key. Give a name, (name, 'ascending' | 'descending'), or "
        "(name, 'ascending' | 'descending', 'nulls_first' | 'nulls_last')"
    )


class NamedSortColumn(Protocol):
    """``pyarrow.parquet.SortingColumn``."""

    @property
    def column_index(self) -> int: ...
    @property
    def descending(self) -> bool: ...


Shredding: TypeAlias = Literal["auto"] | Mapping[Any, Any] | None
"""What Variants are shredded to, by column: text of a type, a dict of an object's fields, a list of one for an array's
elements, ``None`` for any value, or ``"auto"``."""
Bloom: TypeAlias = bool | float | Literal["auto"] | BloomOptions | BloomValues | None
Direction: TypeAlias = Literal["ascending", "descending"]
Nulls: TypeAlias = bool | Literal["nulls_first", "nulls_last"]
SortColumn: TypeAlias = (
    str
    | SortKey
    | tuple[str, ...]
    | tuple[ColumnName, Direction]
    | tuple[ColumnName, Direction, Nulls]
    | NamedSortColumn
)
SortOrder: TypeAlias = str | SortKey | Sequence[SortColumn] | None
