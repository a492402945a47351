"""How a row group that exists is stored, as a plan for the row group that takes its place.

The schema is taken over as the footer has it, and so are codec, encodings, page version, statistics, Bloom filters and
sorting columns. A file does not say how large pages should be, or at which level they were compressed: sizes are those
of the largest chunk's pages, and levels are the codec's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

from pyparq.errors import ParquetError
from pyparq.format import compression
from pyparq.format.schema_node import Node, shapes
from pyparq.format.schema_tree import build_tree
from pyparq.index.bloom_filter import bitset_bytes, can_prune, fit_bytes
from pyparq.option_values import BloomOptions, SortKey
from pyparq.options import WriteOptions
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_headers import PageFacts, walk_headers
from pyparq.read.plan.bloom_probe import read_filter
from pyparq.read.plan.page_indexes import has_offset_index, read_locations
from pyparq.write.column_plans import ColumnPlan, SortPlan, Top, WritePlan

_MIB = 1 << 20
_MOST_OF_PAGE = 1 << 30
_DEFAULT_ROWS = 20_000


class RowGroupPlans:
    """Plans for the row groups of one file."""

    def __init__(self, file: OpenFile, use_threads: bool = True) -> None:
        self._file = file
        self._threads = use_threads
        self.elements = file.footer.schema()
        self.tree = build_tree(self.elements, file.options.limits.max_schema_depth)
        """The tree of the stored schema: no option of the reader shows in it."""
        self.shapes = shapes(self.tree.root)
        self._tops = [
            Top(k, shape, [leaf.column for leaf in shape.node.leaves()], is_flat=False, entries=False)
            for k, shape in enumerate(self.shapes)
        ]

    def of(self, row_group: int, share: float = 1.0) -> WritePlan:
        """The plan for the row group that takes the place of ``row_group``. ``share``: how many of its rows it has."""
        file = self._file
        chunks = [file.chunk(row_group, leaf) for leaf in file.tree.leaves]
        options = self._options(chunks, row_group)
        columns = [self._column(leaf, chunk, share) for leaf, chunk in zip(self.tree.leaves, chunks, strict=True)]
        sort = self._sort(row_group)
        return WritePlan(options, file.fields.schema, self.elements, self.tree, columns, sort, None, self._tops, [])

    def for_more_rows(self) -> WritePlan:
        """The plan for a row group behind those of the file: like the last one."""
        last = self._file.num_row_groups - 1
        return self.of(last) if last >= 0 else self.default()

    def default(self) -> WritePlan:
        """The plan for a file without row groups."""
        columns = [self._plain_column(leaf) for leaf in self.tree.leaves]
        return WritePlan(
            WriteOptions(), self._file.fields.schema, self.elements, self.tree, columns, None, None, self._tops, []
        )

    # ---- the row group as a whole

    def _options(self, chunks: Sequence[Chunk], row_group: int) -> WriteOptions:
        with_pages = [chunk for chunk in chunks if chunk.size]
        largest = max(with_pages, key=lambda chunk: chunk.size, default=None)
        first = None if largest is None else first_data_page(self._file, largest)
        page_size, page_rows = self._page_sizes(with_pages, first)
        metas = [chunk.meta for chunk in chunks]
        return WriteOptions(
            data_page_version="2.0" if first is not None and first.type == "data v2" else "1.0",
            data_page_size=page_size,
            max_rows_per_page=page_rows,
            dictionary_pagesize_limit=max([_MIB, *map(_dictionary_size, chunks)]),
            write_size_statistics=any(meta.size_statistics is not None for meta in metas),
            write_page_index=any(map(has_offset_index, chunks)),
            write_page_checksum=first is None or first.crc is not None,
            bloom_filter_layout=self.filter_layout(row_group),
            use_threads=self._threads,
        )

    def _page_sizes(self, chunks: Sequence[Chunk], first: PageFacts | None) -> tuple[int, int]:
        """The size of a page in bytes, without compression, and its rows."""
        locations = read_locations(self._file, [chunk for chunk in chunks if has_offset_index(chunk)])
        sizes, rows = list[int](), list[int]()
        for chunk in chunks:
            found = locations.get((chunk.row_group, chunk.node.column))
            if found is not None and len(found):
                sizes.append(chunk.meta.total_uncompressed_size // len(found))
                rows.append(int(found.row_counts(chunk.num_rows).max()))
        if not rows:
            size, count = (_MIB, None) if first is None else (first.uncompressed_size, first.rows)
            return max(size, _MIB), max(count or _DEFAULT_ROWS, 1)
        return min(max([*sizes, 1024]), _MOST_OF_PAGE), max([*rows, 1])

    def filter_layout(self, row_group: int) -> Literal["footer", "row_group"]:
        """Where the Bloom filters of a row group lie: behind its own pages, or behind all pages."""
        last = self._file.num_row_groups - 1
        starts = [self._file.chunk(last, leaf).start for leaf in self._file.tree.leaves]
        places = [self._file.chunk(row_group, leaf).meta.bloom_filter_offset for leaf in self._file.tree.leaves]
        between = any(place and place < min(starts) for place in places) if row_group < last else False
        return "row_group" if between else "footer"

    def _sort(self, row_group: int) -> SortPlan | None:
        pairs = []
        for key in self._file.raw_row_group(row_group).sorting_columns or ():
            if not 0 <= key.column_idx < len(self.tree.leaves):
                return None
            node = self.tree.leaves[key.column_idx]
            pairs.append((node, SortKey(key.column_idx, bool(key.descending), bool(key.nulls_first))))
        return SortPlan(tuple(pairs), "") if pairs else None

    # ---- one column

    def _column(self, node: Node, chunk: Chunk, share: float) -> ColumnPlan:
        meta, leaf = chunk.meta, node.type
        codec = meta.codec if _writes(meta.codec) else compression.codec_number("lz4_raw")
        dictionary, only, encoding = _encodings(chunk)
        return ColumnPlan(
            node=node, leaf=leaf, path=node.path, codec=codec, level=compression.check_level(codec, None),
            dictionary=dictionary, keep_dictionary=only, encoding=encoding, statistics=meta.statistics is not None,
            bloom=self._bloom(chunk, share) if can_prune(leaf) else None, order=self._file.column_order(node),
            key_values={pair.key: pair.value for pair in meta.key_value_metadata or ()},
            entries=False, ordered=False,
        )  # fmt: skip

    def _plain_column(self, node: Node) -> ColumnPlan:
        return ColumnPlan(
            node=node, leaf=node.type, path=node.path, codec=compression.SNAPPY, level=None,
            dictionary=compression.holds(compression.RLE_DICTIONARY, node.type.physical), keep_dictionary=False,
            encoding=compression.PLAIN, statistics=True, bloom=None, order=self._file.column_order(node),
            key_values={}, entries=False, ordered=False,
        )  # fmt: skip

    def _bloom(self, chunk: Chunk, share: float) -> BloomOptions | None:
        """A filter with as many bits for each row as the old one has."""
        if not chunk.meta.bloom_filter_offset:
            return None
        if chunk.meta.bloom_filter_length and not chunk.crypto.encrypted:
            size = bitset_bytes(chunk.meta.bloom_filter_length)
        else:
            try:
                found = read_filter(chunk, self._file.fetcher, self._file.options.limits)
            except ParquetError:  # another kind of filter, or a damaged one
                found = None
            size = 0 if found is None else len(found.bitset)
        if not size:
            return BloomOptions()
        rounds = size & (size - 1) == 0
        return BloomOptions(bytes=fit_bytes(int(size * share), rounds), power_of_two=rounds)


def first_data_page(file: OpenFile, chunk: Chunk) -> PageFacts | None:
    """The first data page of a chunk, as its header says."""
    for page in islice(walk_headers(file, chunk), 3):
        if page.ordinal is not None:
            return page
    return None


def _writes(codec: int) -> bool:
    return codec not in (compression.CODEC_NAMES.index("LZO"), compression.CODEC_NAMES.index("LZ4"))


def _encodings(chunk: Chunk) -> tuple[bool, bool, int]:
    """Whether a chunk has a dictionary, whether all of its pages use it, and how its other pages are encoded."""
    meta, physical = chunk.meta, chunk.node.type.physical
    pages = {stat.encoding for stat in meta.encoding_stats or () if stat.page_type in (0, 3) and stat.count}
    known = bool(pages)
    pages = pages or set(meta.encodings or ())
    dictionary = not pages.isdisjoint(compression.DICTIONARY_ENCODINGS)
    dictionary = dictionary and compression.holds(compression.RLE_DICTIONARY, physical)  # Impala claims it of booleans
    others = [e for e in compression.WRITABLE if e in pages and e not in compression.DICTIONARY_ENCODINGS]
    if not known:  # levels are in the list too, and the entries of a dictionary
        others = [e for e in others if e not in (compression.PLAIN, compression.RLE)]
    others = [e for e in others if compression.holds(e, physical)]
    only = dictionary and known and not others
    return dictionary, only, others[0] if others else compression.PLAIN


def _dictionary_size(chunk: Chunk) -> int:
    """About as many bytes as a chunk's dictionary has, without compression."""
    meta = chunk.meta
    if not meta.dictionary_page_offset or meta.data_page_offset <= meta.dictionary_page_offset:
        return 0
    stored, ratio = meta.data_page_offset - meta.dictionary_page_offset, 1.0
    if meta.total_compressed_size > 0:
        ratio = max(meta.total_uncompressed_size / meta.total_compressed_size, 1.0)
    return min(int(stored * ratio), _MOST_OF_PAGE)


def options_like(plan: WritePlan) -> dict[str, Any]:
    """The plan of a row group as options for other files."""
    given, columns = plan.options, plan.columns
    blooms = {column.path: True for column in columns if column.bloom is not None}
    keys = () if plan.sort is None else plan.sort.keys
    return {
        "compression": {column.path: compression.codec_name(column.codec).lower() for column in columns},
        "use_dictionary": {column.path: column.dictionary for column in columns},
        "bloom_filters": blooms or False,
        "bloom_filter_layout": given.bloom_filter_layout,
        "data_page_version": given.data_page_version,
        "write_page_index": given.write_page_index,
        "write_statistics": [column.path for column in columns if column.statistics],
        "sort_by": [SortKey(node.path, key.descending, key.nulls_first) for node, key in keys],
    }
