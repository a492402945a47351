"""Sound files, and the same with one lie: a number or field of the footer, or of a page header, that is not what it
should be. All other bytes stay as they are."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from thrift.protocol import fastbinary

from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.thrift_codec import deserialize

ROWS = 120
GROUPS = 2
Change = Callable[[Any], None]

HUGE = 1 << 40


def table() -> pa.Table:
    """A required column, one with nulls, one without a dictionary, and a list."""
    count = ROWS * GROUPS
    schema = pa.schema([
        pa.field("n", pa.int64(), nullable=False), pa.field("s", pa.string()), pa.field("p", pa.int32()),
        pa.field("l", pa.list_(pa.int64())),
    ])  # fmt: skip
    return pa.table(
        [
            [k % 17 for k in range(count)],
            [None if k % 7 == 0 else f"word {k % 11}" for k in range(count)],
            [None if k % 5 == 0 else k * k for k in range(count)],
            [None if k % 6 == 0 else list(range(k % 4)) for k in range(count)],
        ],
        schema=schema,
    )


TABLE = table()


@cache
def sound(version: str = "1.0") -> bytes:
    """Two row groups, several pages a chunk, with page indexes and CRCs."""
    sink = io.BytesIO()
    pq.write_table(
        TABLE, sink, row_group_size=ROWS, max_rows_per_page=50, write_batch_size=10, data_page_version=version,
        use_dictionary=["n", "s"], write_page_index=True, write_page_checksum=True, store_schema=False,
    )  # fmt: skip
    return sink.getvalue()


def encoded(value: Any) -> bytes:
    """As the format has it, without a look at what is missing."""
    return bytes(fastbinary.encode_compact(value, [type(value), type(value).thrift_spec]))


@dataclass(frozen=True)
class Lie:
    """``change`` makes of the footer what the file says in its place."""

    field: str
    what: str
    change: Change | None = None
    page: Callable[[tt.PageHeader], None] | None = None
    """For a field of a page header: changes the header of every data page of ``n`` and ``s``, or of what ``pages``
    names."""
    pages: int = 0
    """The type of page that ``page`` is for."""
    version: str = "1.0"

    @property
    def name(self) -> str:
        return f"{self.field}: {self.what}"

    def file(self) -> bytes:
        data = sound(self.version)
        size = int.from_bytes(data[-8:-4], "little")
        meta = LazyFileMetaData(data[-8 - size : -8]).full()
        body = data[: -8 - size]
        if self.page is not None:
            body = with_headers(body, meta, self.page, self.pages)
        if self.change is not None:
            self.change(meta)
        footer = encoded(meta)
        return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def with_headers(body: bytes, meta: tt.FileMetaData, change: Callable[[tt.PageHeader], None], kind: int) -> bytes:
    """Page headers of one kind changed where they stand: a change may not make them longer or shorter."""
    data = bytearray(body)
    for chunk in chunks(meta):
        at = chunk.meta_data.dictionary_page_offset or chunk.meta_data.data_page_offset
        end = at + chunk.meta_data.total_compressed_size
        while at < end:
            header, start = deserialize(tt.PageHeader, body, at)
            if header.type == kind:
                change(header)
                new = encoded(header)
                assert len(new) == start - at, "a header of another length"
                data[at:start] = new
            at = start + deserialize(tt.PageHeader, body, at)[0].compressed_page_size
    return bytes(data)


def chunks(meta: tt.FileMetaData, column: int | None = None) -> Iterator[tt.ColumnChunk]:
    for group in meta.row_groups:
        yield from group.columns if column is None else group.columns[column : column + 1]


def _on_file(name: str, value: Any) -> Change:
    def change(meta: Any) -> None:
        setattr(meta, name, value(meta) if callable(value) else value)

    return change


def _on_groups(name: str, value: Any) -> Change:
    def change(meta: Any) -> None:
        for group in meta.row_groups:
            setattr(group, name, value(group) if callable(value) else value)

    return change


def _on_chunks(name: str, value: Any, column: int | None = None) -> Change:
    def change(meta: Any) -> None:
        for chunk in chunks(meta, column):
            setattr(chunk, name, value(chunk) if callable(value) else value)

    return change


def _on_metas(name: str, value: Any, column: int | None = None) -> Change:
    def change(meta: Any) -> None:
        for chunk in chunks(meta, column):
            setattr(chunk.meta_data, name, value(chunk.meta_data) if callable(value) else value)

    return change


def _on_element(place: int, name: str, value: Any) -> Change:
    def change(meta: Any) -> None:
        element = meta.schema[place]
        setattr(element, name, value(element) if callable(value) else value)

    return change


def _data_offset_is_dictionary(at: Any) -> Any:
    return at.dictionary_page_offset or at.data_page_offset


def _file_lies() -> Iterator[Lie]:
    field = "FileMetaData."
    for what, value in (("missing", None), ("0", 0), ("99", 99)):
        yield Lie(field + "version", what, _on_file("version", value))
    for what, value in (
        ("missing", None), ("0", 0), ("one more", lambda m: m.num_rows + 1), ("one less", lambda m: m.num_rows - 1),
        ("negative", -1), ("huge", HUGE),
    ):  # fmt: skip
        yield Lie(field + "num_rows", what, _on_file("num_rows", value))
    for what, value in (("missing", None), ("nonsense", "!")):
        yield Lie(field + "created_by", what, _on_file("created_by", value))
    for what, value in (("missing", None), ("empty", []), ("one less", lambda m: m.column_orders[1:])):
        yield Lie(field + "column_orders", what, _on_file("column_orders", value))
    nonsense = [tt.KeyValue("ARROW:schema", "nonsense"), tt.KeyValue("pandas", "nonsense")]
    yield Lie(field + "key_value_metadata", "nonsense in known keys", _on_file("key_value_metadata", nonsense))
    yield Lie(field + "schema", "empty", _on_file("schema", []))
    yield Lie(field + "row_groups", "missing", _on_file("row_groups", None))


def _group_lies() -> Iterator[Lie]:
    field = "RowGroup."
    for what, value in (("missing", None), ("0", 0), ("negative", -1), ("huge", HUGE)):
        yield Lie(field + "total_byte_size", what, _on_groups("total_byte_size", value))
    for what, value in (
        ("missing", None), ("0", 0), ("one more", lambda g: g.num_rows + 1), ("one less", lambda g: g.num_rows - 1),
        ("a whole page less", lambda g: 100), ("negative", -1), ("huge", HUGE),
    ):  # fmt: skip
        yield Lie(field + "num_rows", what, _on_groups("num_rows", value))
    for what, value in (("missing", None), ("0", 0), ("outside the file", HUGE)):
        yield Lie(field + "file_offset", what, _on_groups("file_offset", value))
    for what, value in (("missing", None), ("0", 0), ("negative", -1), ("huge", HUGE)):
        yield Lie(field + "total_compressed_size", what, _on_groups("total_compressed_size", value))
    yield Lie(field + "ordinal", "another's", _on_groups("ordinal", 7))
    yield Lie(field + "sorting_columns", "a column that is not there",
              _on_groups("sorting_columns", [tt.SortingColumn(99, True, True)]))  # fmt: skip
    yield Lie(field + "columns", "one less", _on_groups("columns", lambda g: g.columns[:-1]))
    yield Lie(field + "columns", "one more", _on_groups("columns", lambda g: g.columns + g.columns[-1:]))
    yield Lie(field + "columns", "those of the row group before", _the_same_columns)


def _the_same_columns(meta: Any) -> None:
    meta.row_groups[1].columns = meta.row_groups[0].columns


def _chunk_lies() -> Iterator[Lie]:
    field = "ColumnChunk."
    for what, value in (("missing", None), ("0", 0), ("outside the file", HUGE)):
        yield Lie(field + "file_offset", what, _on_chunks("file_offset", value))
    yield Lie(field + "file_path", "empty", _on_chunks("file_path", ""))
    yield Lie(field + "file_path", "another file", _on_chunks("file_path", "other.parquet"))
    yield Lie(field + "meta_data", "missing", _on_chunks("meta_data", None))
    for name in ("offset_index_offset", "column_index_offset"):
        for what, value in (("missing", None), ("negative", -1), ("outside the file", HUGE), ("a page's", 4)):
            yield Lie(field + name, what, _on_chunks(name, value))
    for name in ("offset_index_length", "column_index_length"):
        for what, value in (("missing", None), ("0", 0), ("negative", -1), ("huge", (1 << 31) - 1)):
            yield Lie(field + name, what, _on_chunks(name, value))


def _meta_lies() -> Iterator[Lie]:
    field = "ColumnMetaData."
    for what, value in (("missing", None), ("another type", 4), ("unknown", 99)):
        yield Lie(field + "type", what, _on_metas("type", value, 0))
    for what, value in (("missing", None), ("empty", []), ("others", [5, 9]), ("unknown", [77])):
        yield Lie(field + "encodings", what, _on_metas("encodings", value))
    for what, value in (
        ("missing", None),
        ("empty", []),
        ("a name that no column has", ["zz"]),
        ("another column's", ["p"]),
    ):
        yield Lie(field + "path_in_schema", what, _on_metas("path_in_schema", value, 0))
    for what, value in (("missing", None), ("UNCOMPRESSED", 0), ("another codec", 6), ("unknown", 99)):
        yield Lie(field + "codec", what, _on_metas("codec", value))
    for name, column in (("of a flat column", 0), ("of a list", 3)):
        for what, value in (
            ("missing", None), ("0", 0), ("one more", lambda m: m.num_values + 1),
            ("one less", lambda m: m.num_values - 1), ("a whole page less", lambda m: 100), ("negative", -1),
            ("huge", HUGE),
        ):  # fmt: skip
            yield Lie(f"{field}num_values {name}", what, _on_metas("num_values", value, column))
    for what, value in (
        ("missing", None), ("0", 0), ("1", 1), ("the compressed size", lambda m: m.total_compressed_size),
        ("negative", -1), ("huge", HUGE),
    ):  # fmt: skip
        yield Lie(field + "total_uncompressed_size", what, _on_metas("total_uncompressed_size", value))
    for what, value in (
        ("missing", None), ("0", 0), ("negative", -1), ("one less", lambda m: m.total_compressed_size - 1),
        ("half", lambda m: m.total_compressed_size // 2), ("1000 more", lambda m: m.total_compressed_size + 1000),
        ("huge", HUGE),
    ):  # fmt: skip
        yield Lie(field + "total_compressed_size", what, _on_metas("total_compressed_size", value))
    for what, value in (
        ("missing", None), ("0", 0), ("negative", -1), ("the dictionary page's", _data_offset_is_dictionary),
        ("one more", lambda m: m.data_page_offset + 1), ("outside the file", HUGE),
    ):  # fmt: skip
        yield Lie(field + "data_page_offset", what, _on_metas("data_page_offset", value, 0))
        if what != "the dictionary page's":
            yield Lie(field + "data_page_offset, no dictionary", what, _on_metas("data_page_offset", value, 2))
    for what, value in (
        ("missing", None), ("0", 0), ("negative", -1), ("the data page's", lambda m: m.data_page_offset),
        ("one more", lambda m: m.dictionary_page_offset + 1), ("outside the file", HUGE),
    ):  # fmt: skip
        yield Lie(field + "dictionary_page_offset", what, _on_metas("dictionary_page_offset", value, 0))
    yield Lie(field + "dictionary_page_offset", "there, without a dictionary",
              _on_metas("dictionary_page_offset", lambda m: m.data_page_offset, 2))  # fmt: skip
    yield Lie(field + "dictionary_page_offset", "missing, data_page_offset the dictionary page's", _one_offset)
    yield Lie(field + "index_page_offset", "outside the file", _on_metas("index_page_offset", HUGE))
    for what, value in (
        ("missing", None), ("nonsense bounds", tt.Statistics(min_value=b"?", max_value=b"", null_count=-5)),
        ("a wrong null count", tt.Statistics(null_count=1)), ("a huge null count", tt.Statistics(null_count=HUGE)),
    ):  # fmt: skip
        yield Lie(field + "statistics", what, _on_metas("statistics", value))
    for what, value in (("missing", None), ("empty", []), ("other encodings", [tt.PageEncodingStats(0, 5, 3)])):
        yield Lie(field + "encoding_stats", what, _on_metas("encoding_stats", value))
    for what, value in (("outside the file", HUGE), ("negative", -1), ("a page's", 4)):
        yield Lie(field + "bloom_filter_offset", what, _on_metas("bloom_filter_offset", value))
    for what, value in (
        ("huge", tt.SizeStatistics(HUGE, [HUGE], [HUGE])), ("negative", tt.SizeStatistics(-1, [-1], [-1])),
        ("empty", tt.SizeStatistics(0, [], [])),
    ):  # fmt: skip
        yield Lie(field + "size_statistics", what, _on_metas("size_statistics", value))


def _one_offset(meta: Any) -> None:
    for chunk in chunks(meta, 0):
        chunk.meta_data.data_page_offset = chunk.meta_data.dictionary_page_offset
        chunk.meta_data.dictionary_page_offset = None


def _element_lies() -> Iterator[Lie]:
    field = "SchemaElement."
    yield Lie(field + "repetition_type", "missing at a required leaf", _on_element(1, "repetition_type", None))
    yield Lie(field + "repetition_type", "missing at an optional leaf", _on_element(3, "repetition_type", None))
    yield Lie(field + "repetition_type", "missing at a group", _on_element(4, "repetition_type", None))
    yield Lie(field + "repetition_type", "unknown", _on_element(1, "repetition_type", 7))
    yield Lie(field + "repetition_type", "OPTIONAL for REQUIRED", _on_element(1, "repetition_type", 1))
    yield Lie(field + "repetition_type", "REQUIRED for OPTIONAL", _on_element(3, "repetition_type", 0))
    for what, value in (("missing", None), ("REPEATED", 2)):
        yield Lie(field + "repetition_type of the root", what, _on_element(0, "repetition_type", value))
    for what, value in (("missing", None), ("one less", 3), ("one more", 5), ("negative", -1), ("huge", (1 << 31) - 1)):
        yield Lie(field + "num_children of the root", what, _on_element(0, "num_children", value))
    yield Lie(field + "num_children of a leaf", "0", _on_element(1, "num_children", 0))
    yield Lie(field + "num_children of a leaf", "1", _on_element(1, "num_children", 1))
    for what, value in (("missing", None), ("unknown", 99), ("another type", 1)):
        yield Lie(field + "type", what, _on_element(1, "type", value))
    yield Lie(field + "type", "there, at a group", _on_element(4, "type", 1))
    yield Lie(field + "type_length", "at a type of its own", _on_element(1, "type_length", -3))
    for what, value in (("missing", None), ("empty", "")):
        yield Lie(field + "name", what, _on_element(1, "name", value))
    for what, value in (("unknown", 99), ("UTF8 for INT64", 0), ("DECIMAL without precision", 5)):
        yield Lie(field + "converted_type", what, _on_element(1, "converted_type", value))
    for what, value in (
        ("STRING for INT64", tt.LogicalType(STRING=tt.StringType())),
        ("a decimal of 40 digits for INT64", tt.LogicalType(DECIMAL=tt.DecimalType(2, 40))),
        ("an integer of 32 bits for INT64", tt.LogicalType(INTEGER=tt.IntType(32, True))),
    ):
        yield Lie(field + "logicalType", what, _on_element(1, "logicalType", value))
    yield Lie(field + "field_id", "the same for all", _same_ids)


def _same_ids(meta: Any) -> None:
    for element in meta.schema:
        element.field_id = -1


def _page_lies() -> Iterator[Lie]:
    def on(name: str, value: Any, inner: str | None = None) -> Callable[[Any], None]:
        def change(header: Any) -> None:
            where = header if inner is None else getattr(header, inner)
            setattr(where, name, value(where) if callable(value) else value)

        return change

    field, v1, v2, words = "PageHeader.", "data_page_header", "data_page_header_v2", "dictionary_page_header"
    yield Lie(field + "uncompressed_page_size", "one more",
              page=on("uncompressed_page_size", lambda h: h.uncompressed_page_size + 1))  # fmt: skip
    yield Lie(field + "uncompressed_page_size", "one less",
              page=on("uncompressed_page_size", lambda h: h.uncompressed_page_size - 1))  # fmt: skip
    yield Lie(field + "uncompressed_page_size of the dictionary page", "one more", pages=2,
              page=on("uncompressed_page_size", lambda h: h.uncompressed_page_size + 1))  # fmt: skip
    yield Lie(field + "compressed_page_size", "one less",
              page=on("compressed_page_size", lambda h: h.compressed_page_size - 1))  # fmt: skip
    yield Lie(field + "compressed_page_size", "one more",
              page=on("compressed_page_size", lambda h: h.compressed_page_size + 1))  # fmt: skip
    yield Lie(field + "crc", "another", page=on("crc", lambda h: h.crc ^ 64))
    yield Lie(field + "type", "INDEX_PAGE", page=on("type", 1))
    yield Lie(field + "type of the dictionary page", "unknown", page=on("type", 9), pages=2)
    for what, value in (("one more", lambda h: h.num_values + 1), ("one less", lambda h: h.num_values - 1)):
        yield Lie("DataPageHeader.num_values", what, page=on("num_values", value, v1))
        yield Lie("DictionaryPageHeader.num_values", what, page=on("num_values", value, words), pages=2)
        yield Lie("DataPageHeaderV2.num_values", what, page=on("num_values", value, v2), pages=3, version="2.0")
        yield Lie("DataPageHeaderV2.num_rows", what, page=on("num_rows", lambda h, v=value: _rows(h, v), v2), pages=3,
                  version="2.0")  # fmt: skip
    yield Lie("DataPageHeader.encoding", "RLE_DICTIONARY for PLAIN, and PLAIN for it", page=_swapped)
    yield Lie("DataPageHeader.encoding", "unknown", page=on("encoding", 33, v1))
    yield Lie("DataPageHeader.definition_level_encoding", "unknown", page=on("definition_level_encoding", 33, v1))
    yield Lie("DataPageHeader.repetition_level_encoding", "BIT_PACKED",
              page=on("repetition_level_encoding", 4, v1))  # fmt: skip
    yield Lie("DictionaryPageHeader.encoding", "RLE_DICTIONARY", page=on("encoding", 8, words), pages=2)
    yield Lie("DataPageHeaderV2.num_nulls", "one more", pages=3, version="2.0",
              page=on("num_nulls", lambda h: h.num_nulls + 1, v2))  # fmt: skip
    yield Lie("DataPageHeaderV2.definition_levels_byte_length", "one more", pages=3, version="2.0",
              page=on("definition_levels_byte_length", lambda h: h.definition_levels_byte_length + 1, v2))  # fmt: skip
    yield Lie("DataPageHeaderV2.is_compressed", "the other way", pages=3, version="2.0",
              page=on("is_compressed", lambda h: not h.is_compressed, v2))  # fmt: skip


def _rows(header: Any, value: Callable[[Any], int]) -> int:
    return header.num_rows + value(header) - header.num_values


def _swapped(header: Any) -> None:
    header.data_page_header.encoding = 8 - header.data_page_header.encoding


def all_lies() -> list[Lie]:
    return [
        *_file_lies(), *_group_lies(), *_chunk_lies(), *_meta_lies(), *_element_lies(), *_page_lies(),
    ]  # fmt: skip


LIES = all_lies()
