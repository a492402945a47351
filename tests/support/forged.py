"""A sound file and copies of it with one false statement each: in the footer, an index, a page header, a filter or the
data. Everything else stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from footer_lies import encoded
from written import written

from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import deserialize

ROWS = 600
GROUPS = 2
COLUMNS = ["n", "s", "t", "p", "f", "d", "l", "x"]


def table() -> pa.Table:
    """``n`` is sorted; ``s`` has a dictionary, ``t`` and ``x`` have none; a value of ``x`` is not UTF-8."""
    return pa.table(
        {
            "n": pa.array(np.arange(ROWS) * 3),
            "s": pa.array([None if k % 7 == 0 else f"word {k % 11:02}" for k in range(ROWS)]),
            "t": pa.array([f"text {k:05}" for k in range(ROWS)]),
            "p": pa.array([None if k % 5 == 0 else k % 256 for k in range(ROWS)], pa.int32()),
            "f": pa.array([None if k % 4 == 0 else float("nan") if k % 9 == 0 else k / 8 for k in range(ROWS)]),
            "d": pa.array([k * 100 for k in range(ROWS)], pa.int32()).cast(pa.decimal128(10, 0)).cast(
                pa.decimal128(9, 2)
            ),
            "l": pa.array([None if k % 6 == 0 else [f"item {j}" for j in range(k % 4)] for k in range(ROWS)]),
            "x": pa.array([b"\xff\xfe" if k == 431 else b"%05d" % k for k in range(ROWS)], pa.binary()),
        },
        schema=pa.schema([
            pa.field("n", pa.int64(), nullable=False), ("s", pa.string()), ("t", pa.string()), ("p", pa.int32()),
            ("f", pa.float64()), ("d", pa.decimal128(9, 2)), ("l", pa.list_(pa.string())), ("x", pa.binary()),
        ]),
    )  # fmt: skip


@cache
def sound(version: str = "1.0") -> bytes:
    """Two row groups of six pages a chunk (but for ``l``), with everything that a file can state about itself."""
    return written(
        table(), row_group_size=ROWS // GROUPS, max_rows_per_page=50, data_page_version=version, sort_by=["n"],
        use_dictionary=["s"], bloom_filters={"n": 0.01, "s": 0.01, "t": 0.01}, write_page_checksum=True,
        column_encoding={"t": "PLAIN", "p": "PLAIN", "n": "PLAIN"}, compression="none",
    )  # fmt: skip


class Forged:
    """A copy of a sound file, to be changed."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[-8:-4], "little")
        self.meta: Any = LazyFileMetaData(data[-8 - size : -8]).full()
        self.body = bytearray(data[: -8 - size])

    def chunk(self, column: str, group: int = 0) -> Any:
        """The ColumnChunk of a leaf, by the name of its top-level column."""
        return next(c for c in self.meta.row_groups[group].columns if c.meta_data.path_in_schema[0] == column)

    def of(self, column: str, group: int = 0) -> Any:
        """Its ColumnMetaData."""
        return self.chunk(column, group).meta_data

    def column_index(self, column: str, change: Callable[[Any], None], group: int = 0) -> None:
        """Change a ColumnIndex; the changed one is put behind everything else."""
        chunk = self.chunk(column, group)
        index = deserialize(tt.ColumnIndex, bytes(self.body), chunk.column_index_offset)[0]
        change(index)
        chunk.column_index_offset, chunk.column_index_length = self.append(encoded(index))

    def offset_index(self, column: str, change: Callable[[Any], None], group: int = 0) -> None:
        chunk = self.chunk(column, group)
        index = deserialize(tt.OffsetIndex, bytes(self.body), chunk.offset_index_offset)[0]
        change(index)
        chunk.offset_index_offset, chunk.offset_index_length = self.append(encoded(index))

    def append(self, data: bytes) -> tuple[int, int]:
        """Put bytes behind everything else; their offset and size."""
        at = len(self.body)
        self.body += data
        return at, len(data)

    def pages(self, column: str, group: int = 0) -> list[tuple[int, int, Any]]:
        """(offset of the header, offset of the body, header) of each page."""
        meta = self.of(column, group)
        at = meta.dictionary_page_offset or meta.data_page_offset
        end, found = at + meta.total_compressed_size, []
        while at < end:
            header, start = deserialize(tt.PageHeader, bytes(self.body), at)
            found.append((at, start, header))
            at = start + header.compressed_page_size
        return found

    def header(self, column: str, page: int, change: Callable[[Any], None], group: int = 0) -> None:
        """Change a page header; it has to stay as long as it is."""
        at, start, header = self.pages(column, group)[page]
        change(header)
        new = encoded(header)
        assert len(new) == start - at, "a header of another length"
        self.body[at:start] = new

    def element(self, name: str) -> Any:
        return next(element for element in self.meta.schema if element.name == name)

    def data(self) -> bytes:
        footer = encoded(self.meta)
        return bytes(self.body) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@dataclass(frozen=True)
class Forgery:
    """A false statement, and what a verification has to say of it. ``where`` is the column, the row group, the first
    page and the first row, as far as they are to be named."""

    name: str
    change: Callable[[Forged], None]
    kind: str
    structure: str
    where: tuple[str | None, int | None, int | str | None, int | None] = (None, None, None, None)
    version: str = "1.0"

    def file(self) -> bytes:
        forged = Forged(sound(self.version))
        self.change(forged)
        return forged.data()


def _set(target: Callable[[Forged], Any], name: str, value: Any) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        found = target(forged)
        setattr(found, name, value(getattr(found, name)) if callable(value) else value)

    return change


def _more(value: int) -> int:
    return value + 1


def _meta(column: str, name: str, value: Any, group: int = 0) -> Callable[[Forged], None]:
    return _set(lambda f: f.of(column, group), name, value)


def _statistics(column: str, group: int = 0, **given: Any) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        for name, value in given.items():
            setattr(forged.of(column, group).statistics, name, value)

    return change


def _index(column: str, name: str, change: Callable[[list[Any]], Any], group: int = 0) -> Callable[[Forged], None]:
    def on_index(index: Any) -> None:
        listed = getattr(index, name)
        new = change(listed)
        setattr(index, name, listed if new is None else new)

    return lambda forged: forged.column_index(column, on_index, group)


def _put(place: int, value: Any) -> Callable[[list[Any]], None]:
    def change(listed: list[Any]) -> None:
        listed[place] = value(listed[place]) if callable(value) else value

    return change


def _location(column: str, page: int, name: str, value: Any) -> Callable[[Forged], None]:
    def on_index(index: Any) -> None:
        location = index.page_locations[page]
        setattr(location, name, value(getattr(location, name)))

    return lambda forged: forged.offset_index(column, on_index)


def _int32(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


def _int64(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def _double(value: float) -> bytes:
    return np.float64(value).tobytes()


def _clear_filter(forged: Forged) -> None:
    meta = forged.of("t", 1)
    end = meta.bloom_filter_offset + meta.bloom_filter_length
    size = meta.bloom_filter_length // 32 * 32
    forged.body[end - size : end] = bytes(size)


def _spoil_filter(forged: Forged) -> None:
    at = forged.of("s").bloom_filter_offset
    forged.body[at : at + 6] = b"\xff" * 6


def _clear_a_bit(forged: Forged) -> None:
    """One bit that a value needs: the lowest one of the first byte that is not zero, in the filter of ``n``."""
    meta = forged.of("n")
    end = meta.bloom_filter_offset + meta.bloom_filter_length
    at = next(k for k in range(end - meta.bloom_filter_length // 32 * 32, end) if forged.body[k])
    forged.body[at] &= forged.body[at] - 1


def _flip(column: str, page: int) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        forged.body[forged.pages(column)[page][1] + 20] ^= 64

    return change


def _annotate(column: str, converted: int, logical: tt.LogicalType | None = None) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        element = forged.element(column)
        element.converted_type, element.logicalType = converted, logical

    return change


def _narrow_decimal(forged: Forged) -> None:
    element = forged.element("d")
    element.precision = 6
    element.logicalType.DECIMAL.precision = 6


def _lose_statistics(forged: Forged) -> None:
    """Bounds of another type would be wrong too: leave none."""
    for group in range(GROUPS):
        for column in ("p", "x"):
            chunk = forged.chunk(column, group)
            chunk.meta_data.statistics = chunk.column_index_offset = chunk.column_index_length = None


def _both(*changes: Callable[[Forged], None]) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        for one in changes:
            one(forged)

    return change


def _overlap(forged: Forged) -> None:
    first, second = forged.chunk("n"), forged.chunk("n", 1)
    first.column_index_offset, first.column_index_length = second.column_index_offset + 1, second.column_index_length


def _garbage_index(column: str, name: str) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        chunk = forged.chunk(column)
        offset, _ = forged.append(b"\xff" * 40)
        setattr(chunk, f"{name}_offset", offset)
        setattr(chunk, f"{name}_length", 40)

    return change


_GROUP = lambda f: f.meta.row_groups[1]  # noqa: E731
_CHUNK, _STATS, _SIZES, _HEADER = "ColumnMetaData", "Statistics", "SizeStatistics", "PageHeader"
_CI, _OI = "ColumnIndex", "OffsetIndex"

FORGERIES = [
    # the file and its row groups
    Forgery("rows of the file", _set(lambda f: f.meta, "num_rows", _more), "count", "FileMetaData"),
    Forgery("column orders", _set(lambda f: f.meta, "column_orders", lambda o: o[1:]), "metadata", "FileMetaData"),
    Forgery("magic", lambda f: f.body.__setitem__(slice(0, 4), b"PAR2"), "layout", "magic"),
    Forgery("rows of a row group", _set(_GROUP, "num_rows", _more), "count", "RowGroup", ("n", 1, None, None)),
    Forgery("bytes of a row group", _set(_GROUP, "total_byte_size", _more), "size", "RowGroup", (None, 1, None, None)),
    Forgery("stored bytes of a row group", _set(_GROUP, "total_compressed_size", _more), "size", "RowGroup",
            (None, 1, None, None)),
    Forgery("ordinal", _set(_GROUP, "ordinal", 5), "metadata", "RowGroup", (None, 1, None, None)),
    Forgery("sort order", _set(_GROUP, "sorting_columns", [tt.SortingColumn(0, True, False)]), "sorting", "RowGroup",
            (None, 1, None, 1)),
    Forgery("sorted by another column", _set(_GROUP, "sorting_columns", [tt.SortingColumn(1, False, False)]), "sorting",
            "RowGroup", (None, 1, None, 2)),
    Forgery("sorting column", _set(_GROUP, "sorting_columns", [tt.SortingColumn(99, False, False)]), "metadata",
            "RowGroup", (None, 1, None, None)),
    # the metadata of a chunk
    Forgery("path", _meta("p", "path_in_schema", ["q"]), "metadata", _CHUNK, ("p", 0, None, None)),
    Forgery("path of another", _meta("p", "path_in_schema", ["s"]), "metadata", _CHUNK, ("p", 0, None, None)),
    Forgery("values", _meta("n", "num_values", _more), "count", _CHUNK, ("n", 0, None, None)),
    Forgery("values of a list", _meta("l", "num_values", _more, 1), "count", _CHUNK, ("l", 1, None, None)),
    Forgery("fewer values of a list", _meta("l", "num_values", lambda n: n - 3, 1), "count", _CHUNK,
            ("l", 1, None, None)),
    Forgery("stored size", _meta("t", "total_compressed_size", lambda n: n - 1), "size", _CHUNK, ("t", 0, None, None)),
    Forgery("larger stored size", _meta("x", "total_compressed_size", lambda n: n + 9, 1), "size", _CHUNK,
            ("x", 1, None, None)),
    Forgery("size", _meta("t", "total_uncompressed_size", _more), "size", _CHUNK, ("t", 0, None, None)),
    Forgery("first data page", _meta("s", "data_page_offset", _more), "location", _CHUNK, ("s", 0, None, None)),
    Forgery("a dictionary that is not there", _meta("t", "dictionary_page_offset", lambda _: 4), "location", _CHUNK,
            ("t", 0, None, None)),
    Forgery("encodings", _meta("s", "encodings", [0, 3]), "encoding", _CHUNK, ("s", 0, 0, None)),
    Forgery("encoding counts", _set(lambda f: f.of("p").encoding_stats[-1], "count", _more), "encoding", _CHUNK,
            ("p", 0, None, None)),
    # statistics
    Forgery("nulls", _statistics("s", null_count=7), "count", _STATS, ("s", 0, 0, None)),
    Forgery("NaN", _statistics("f", nan_count=0), "count", _STATS, ("f", 0, None, None)),
    Forgery("distinct", _statistics("s", distinct_count=12), "count", _STATS, ("s", 0, None, None)),
    Forgery("minimum", _statistics("n", 1, min_value=_int64(903)), "bounds", _STATS, ("n", 1, 0, 0)),
    Forgery("maximum", _statistics("p", max_value=_int32(200)), "bounds", _STATS, ("p", 0, 4, 201)),
    Forgery("minimum of text", _statistics("t", min_value=b"text 00007"), "bounds", _STATS, ("t", 0, 0, 0)),
    Forgery("maximum of a dictionary", _statistics("s", max_value=b"word 09"), "bounds", _STATS, ("s", 0, 0, 10)),
    Forgery("maximum of floats", _statistics("f", max_value=_double(30.0)), "bounds", _STATS, ("f", 0, 4, 241)),
    Forgery("maximum of decimals", _statistics("d", max_value=_int32(2_000_000)), "bounds", _STATS, ("d", 0, 4, 201)),
    Forgery("maximum of a list", _statistics("l", max_value=b"item 1"), "bounds", _STATS, ("l", 0, 0, 3)),
    Forgery("bound of another width", _statistics("p", min_value=b"\0"), "bounds", _STATS, ("p", 0, None, None)),
    Forgery("exactness", _statistics("n", min_value=_int64(-5)), "exactness", _STATS, ("n", 0, 0, None)),
    Forgery("exactness of text", _statistics("t", 1, max_value=b"texu"), "exactness", _STATS, ("t", 1, 5, None)),
    Forgery("bytes", _set(lambda f: f.of("s").size_statistics, "unencoded_byte_array_data_bytes", _more), "size",
            _SIZES, ("s", 0, None, None)),
    Forgery("definition levels", _set(lambda f: f.of("l").size_statistics, "definition_level_histogram",
            lambda h: [h[0] + 1, h[1] - 1, *h[2:]]), "histogram", _SIZES, ("l", 0, None, None)),
    Forgery("repetition levels", _set(lambda f: f.of("l").size_statistics, "repetition_level_histogram",
            lambda h: h[::-1]), "histogram", _SIZES, ("l", 0, None, None)),
    # the ColumnIndex
    Forgery("null page", _index("p", "null_pages", _put(3, True)), "count", _CI, ("p", 0, 3, 150)),
    Forgery("page minimum", _index("t", "min_values", _put(2, b"text 00103")), "bounds", _CI, ("t", 0, 2, 100)),
    Forgery("page maximum", _index("n", "max_values", _put(4, _int64(700))), "bounds", _CI, ("n", 0, 4, 234)),
    Forgery("page maximum of a dictionary", _index("s", "max_values", _put(1, b"word 05")), "bounds", _CI,
            ("s", 0, 1, 50)),
    Forgery("page bound of another width", _index("n", "max_values", _put(4, b"")), "bounds", _CI, ("n", 0, 4, None)),
    Forgery("page nulls", _index("s", "null_counts", _put(5, _more), 1), "count", _CI, ("s", 1, 5, None)),
    Forgery("page NaN", _index("f", "nan_counts", _put(2, 0)), "count", _CI, ("f", 0, 2, None)),
    Forgery("boundary order", _index("p", "boundary_order", lambda _: 1), "boundary order", _CI, None),
    Forgery("descending", _index("n", "boundary_order", lambda _: 2), "boundary order", _CI, ("n", 0, 1, 50)),
    Forgery("unknown order", _index("n", "boundary_order", lambda _: 9), "boundary order", _CI, ("n", 0, None, None)),
    Forgery("page definition levels", _index("l", "definition_level_histograms", lambda h: [h[1], h[0], *h[2:]]),
            "histogram", _CI, ("l", 0, 0, None)),
    Forgery("page repetition levels", _index("l", "repetition_level_histograms", lambda h: [h[1], h[0], *h[2:]]),
            "histogram", _CI, ("l", 0, 0, None)),
    Forgery("page histograms too short", _index("l", "repetition_level_histograms", lambda h: h[1:]), "index", _CI,
            ("l", 0, None, None)),
    Forgery("a page less in the ColumnIndex", _index("t", "null_counts", lambda n: n[1:]), "index", _CI,
            ("t", 0, None, None)),
    Forgery("garbage for a ColumnIndex", _garbage_index("t", "column_index"), "index", _CI, ("t", 0, None, None)),
    Forgery("a ColumnIndex outside", _set(lambda f: f.chunk("t"), "column_index_offset", 1 << 40), "layout", _CI,
            ("t", 0, None, None)),
    Forgery("overlapping indexes", _overlap, "layout", "FileMetaData"),
    # the OffsetIndex
    Forgery("page offset", _location("t", 3, "offset", _more), "location", _OI, ("t", 0, 3, None)),
    Forgery("page size", _location("t", 5, "compressed_page_size", _more), "location", _OI, ("t", 0, 5, None)),
    Forgery("first row", _location("p", 4, "first_row_index", _more), "location", _OI, ("p", 0, 4, 200)),
    Forgery("first row of lists", _location("l", 1, "first_row_index", _more), "location", _OI, ("l", 0, 1, 50)),
    Forgery("page bytes", lambda f: f.offset_index("t", lambda i: _put(1, _more)(i.unencoded_byte_array_data_bytes)),
            "size", _OI, ("t", 0, 1, None)),
    Forgery("a page less in the OffsetIndex", lambda f: f.offset_index("t", lambda i: i.page_locations.pop()), "index",
            _OI, ("t", 0, None, None)),
    Forgery("garbage for an OffsetIndex", _garbage_index("t", "offset_index"), "index", _OI, ("t", 0, None, None)),
    # Bloom filters
    Forgery("an empty filter", _clear_filter, "bloom filter", "BloomFilter", ("t", 1, 0, 0)),
    Forgery("one bit of a filter", _clear_a_bit, "bloom filter", "BloomFilter", None),
    Forgery("garbage for a filter", _spoil_filter, "bloom filter", "BloomFilter", ("s", 0, None, None)),
    Forgery("length of a filter", _meta("n", "bloom_filter_length", _more), "size", "BloomFilter",
            ("n", 0, None, None)),
    Forgery("a filter outside", _meta("n", "bloom_filter_offset", 1 << 40), "layout", "BloomFilter",
            ("n", 0, None, None)),
    # pages
    Forgery("CRC", lambda f: f.header("t", 2, lambda h: setattr(h, "crc", h.crc ^ 1)), "checksum", _HEADER,
            ("t", 0, 2, None)),
    Forgery("a byte of a page", _flip("n", 3), "checksum", _HEADER, ("n", 0, 3, None)),
    Forgery("a byte of a dictionary", _flip("s", 0), "checksum", _HEADER, ("s", 0, "dictionary", None)),
    Forgery("size of a page", lambda f: f.header("p", 2, lambda h: setattr(h, "uncompressed_page_size",
            h.uncompressed_page_size + 1)), "page", "data", ("p", 0, 2, None)),
    Forgery("values of a page", lambda f: f.header("p", 2, lambda h: setattr(h.data_page_header, "num_values", 49)),
            "count", _CHUNK, ("p", 0, None, None)),
    Forgery("nulls of a v2 page", lambda f: f.header("p", 2, lambda h: setattr(h.data_page_header_v2, "num_nulls", 9)),
            "count", _HEADER, ("p", 0, 2, 100), "2.0"),
    Forgery("rows of a v2 page", lambda f: f.header("l", 1, lambda h: setattr(h.data_page_header_v2, "num_rows",
            h.data_page_header_v2.num_rows - 1)), "count", _HEADER, None, "2.0"),
    # values
    Forgery("text", _both(_lose_statistics, _annotate("x", 0)), "text", "data", ("x", 1, 2, 131)),
    Forgery("narrow integers", _both(_lose_statistics, _annotate("p", 15)), "range", "data", ("p", 0, 2, 128)),
    Forgery("a decimal's digits", _narrow_decimal, "range", "data", ("d", 0, 2, 100)),
]  # fmt: skip
