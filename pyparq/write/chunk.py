"""One column chunk: pages, and everything the footer and the indexes say about them.

Offsets are counted from the start of the chunk until :meth:`EncodedChunk.placed` knows where that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq import encodings
from pyparq.encryption.aad import Module
from pyparq.encryption.writing import ChunkEncryption
from pyparq.format import ttypes as tt
from pyparq.format.codec import serialize
from pyparq.index.page_index import ColumnIndexBuilder, OffsetIndexBuilder
from pyparq.index.statistics import build_statistics
from pyparq.options import WriteOptions
from pyparq.schemas.order import FLOAT_KINDS, SegmentBounds, segment_minmax
from pyparq.schemas.values import BinaryValues, count_of
from pyparq.write.bloom import build_filter, stored_filter
from pyparq.write.choose import Choices, Decision, decide
from pyparq.write.encode import DictionarySection, DirectSection, Section, level_bytes
from pyparq.write.pages import PageWriter
from pyparq.write.paginate import Cutter, Pages
from pyparq.write.plan import ColumnPlan

if TYPE_CHECKING:
    from pyparq.write.shred import LeafData

Int64Array = npt.NDArray[np.int64]


@dataclass(slots=True)
class EncodedChunk:
    """A chunk ready to be stored: ``parts`` one after another are its ``size`` bytes."""

    parts: list[Any]
    size: int
    meta: tt.ColumnMetaData
    """Offsets count from the start of the chunk."""
    offset_index: OffsetIndexBuilder | None
    """``None`` without a page index; its offsets too count from the start of the chunk."""
    column_index: bytes | None
    """Stored bytes of the ColumnIndex, where one can be written."""
    bloom: list[Any] | None
    """Stored modules of the Bloom filter."""

    def placed(self, base: int) -> tt.ColumnMetaData:
        """The metadata of the chunk at file offset ``base``."""
        self.meta.data_page_offset += base
        if self.meta.dictionary_page_offset is not None:
            self.meta.dictionary_page_offset += base
        return self.meta


_FEW_LEVELS = 12
"""Up to here, comparing with each level takes less time than counting through int64."""


@dataclass(slots=True)
class _Levels:
    """Histograms of the levels: one row per page, one column per level; ``None`` for a leaf without such levels."""

    definition: Int64Array | None
    repetition: Int64Array | None


def encode_chunk(
    data: LeafData, plan: ColumnPlan, options: WriteOptions, crypto: ChunkEncryption, choices: Choices, row_group: int
) -> EncodedChunk:
    """Encode one leaf of a row group (at least one row). Nothing here touches a file, nor, but for the choice of an
    encoding, another chunk."""
    decision = decide(data, plan, options, choices, row_group)
    dictionary, pages, sections = _paginate(data, plan, options, decision)
    version = 1 if str(options.data_page_version) == "1.0" else 2
    writer = PageWriter(plan.codec, plan.level, version, options.write_page_checksum, crypto)
    if dictionary is not None:
        writer.add_dictionary(dictionary.entries, plan.leaf)
    _write_pages(writer, data, pages, sections)
    bounds = segment_minmax(plan.leaf, data.values, pages.values, plan.order) if plan.statistics else None
    levels = _histograms(data, pages)
    meta = _metadata(data, plan, writer, sections, dictionary, decision)
    if bounds is not None:
        meta.statistics = _statistics(data, plan, options, bounds, decision)
    if options.write_size_statistics:
        meta.size_statistics = _size_statistics(data, levels)
    offset_index, column_index = None, None
    if options.write_page_index:
        offset_index = _offset_index(data, pages, writer, options)
        if bounds is not None:
            column_index = _column_index(plan, options, pages, bounds, levels, crypto)
    return EncodedChunk(
        writer.parts, writer.size, meta, offset_index, column_index,
        _bloom(data, plan, dictionary, crypto),
    )  # fmt: skip


def _paginate(
    data: LeafData, plan: ColumnPlan, options: WriteOptions, decision: Decision
) -> tuple[DictionarySection | None, Pages, list[tuple[Section, int]]]:
    """Page boundaries, and the section that the pages up to a number belong to; no dictionary if no page has it."""
    cutter = Cutter(data, options.max_rows_per_page, options.data_page_size)
    sections: list[tuple[Section, int]] = []
    dictionary = decision.dictionary
    if dictionary is not None:
        last = data.num_rows if dictionary.complete else cutter.row_before_value(len(dictionary.indices))
        if last > 0:
            sections.append((dictionary, cutter.cut(last, dictionary.cost)))
        else:
            dictionary = None
    if dictionary is None or not dictionary.complete:
        direct = DirectSection(data.values, plan.leaf, decision.encoding)
        sections.append((direct, cutter.cut(data.num_rows, direct.cost)))
    return dictionary, cutter.pages(), sections


def _write_pages(writer: PageWriter, data: LeafData, pages: Pages, sections: list[tuple[Section, int]]) -> None:
    node = data.node
    rows, slots, values = pages.rows.tolist(), pages.slots.tolist(), pages.values.tolist()
    start = 0
    for section, end in sections:
        for page in range(start, end):
            first, last = slots[page], slots[page + 1]
            writer.add_data(
                section.encoding,
                level_bytes(_cut(data.rep_levels, first, last), last - first, node.max_rep),
                level_bytes(_cut(data.def_levels, first, last), last - first, node.max_def),
                section.body(values[page], values[page + 1]),
                slots=last - first,
                rows=rows[page + 1] - rows[page],
                nulls=last - first - (values[page + 1] - values[page]),
                has_levels=(node.max_rep > 0, node.max_def > 0),
            )
        start = end


def _cut(levels: npt.NDArray[np.uint8] | None, first: int, last: int) -> npt.NDArray[np.uint8] | None:
    return None if levels is None else levels[first:last]


def _metadata(
    data: LeafData, plan: ColumnPlan, writer: PageWriter, sections: list[tuple[Section, int]],
    dictionary: DictionarySection | None, decision: Decision,
) -> tt.ColumnMetaData:  # fmt: skip
    data_page = tt.PageType.DATA_PAGE if writer.version == 1 else tt.PageType.DATA_PAGE_V2
    stats: list[tt.PageEncodingStats] = []
    if dictionary is not None:
        stats.append(tt.PageEncodingStats(tt.PageType.DICTIONARY_PAGE, encodings.PLAIN, 1))
    before = 0
    for section, end in sections:
        if end > before:
            stats.append(tt.PageEncodingStats(data_page, section.encoding, end - before))
        before = end
    used = {s.encoding for s in stats}
    if data.node.max_def or data.node.max_rep:
        used.add(encodings.RLE)
    return tt.ColumnMetaData(
        type=int(plan.leaf.physical),
        encodings=sorted(used),
        path_in_schema=list(plan.path),
        codec=plan.codec,
        num_values=data.num_slots,
        total_uncompressed_size=writer.uncompressed_size,
        total_compressed_size=writer.size,
        data_page_offset=writer.offsets[0],
        dictionary_page_offset=0 if dictionary is not None else None,
        encoding_stats=stats,
        key_value_metadata=_key_values(plan, decision) or None,
    )


def _key_values(plan: ColumnPlan, decision: Decision) -> list[tt.KeyValue]:
    """What the user said of the column, and how its encoding was chosen, where it was."""
    pairs = [tt.KeyValue(key=k, value=v) for k, v in plan.key_values.items()]
    return pairs if decision.record is None else [*pairs, decision.record]


def _statistics(
    data: LeafData, plan: ColumnPlan, options: WriteOptions, bounds: SegmentBounds, decision: Decision
) -> tt.Statistics:
    return build_statistics(
        plan.leaf,
        bounds.mins,
        bounds.maxs,
        null_count=data.num_slots - count_of(data.values),
        nan_count=None if bounds.nan_counts is None else int(bounds.nan_counts.sum()),
        # Dictionary entries differ in their bits: for floats that is not the same as distinct values.
        distinct_count=None if plan.leaf.kind in FLOAT_KINDS else decision.distinct,
        truncate=options.statistics_truncate_length or None,
        order=plan.order,
    )


def _histograms(data: LeafData, pages: Pages) -> _Levels:
    node = data.node
    return _Levels(
        _histogram(data.def_levels, node.max_def, pages.slots), _histogram(data.rep_levels, node.max_rep, pages.slots)
    )


def _histogram(levels: npt.NDArray[np.uint8] | None, maximum: int, slots: Int64Array) -> Int64Array | None:
    if maximum == 0:
        return None
    counts = np.zeros((len(slots) - 1, maximum + 1), np.int64)
    if levels is None:
        counts[:, maximum] = np.diff(slots)
        return counts
    edges = slots.tolist()
    for page, (first, last) in enumerate(pairwise(edges)):
        if maximum == 1:
            counts[page, 1] = np.count_nonzero(levels[first:last])
            counts[page, 0] = last - first - counts[page, 1]
        elif maximum <= _FEW_LEVELS:
            part = levels[first:last]
            counts[page, 1:] = [np.count_nonzero(part == level) for level in range(1, maximum + 1)]
            counts[page, 0] = last - first - counts[page].sum()
        else:
            counts[page] = np.bincount(levels[first:last], minlength=maximum + 1)
    return counts


def _size_statistics(data: LeafData, levels: _Levels) -> tt.SizeStatistics | None:
    """Level histograms where a leaf has levels, and the bytes of byte arrays; ``None`` when that is nothing."""
    stats = tt.SizeStatistics()
    if isinstance(data.values, BinaryValues):
        stats.unencoded_byte_array_data_bytes = int(data.values.offsets[-1] - data.values.offsets[0])
    if levels.definition is not None:
        stats.definition_level_histogram = levels.definition.sum(axis=0).tolist()
    if levels.repetition is not None:
        stats.repetition_level_histogram = levels.repetition.sum(axis=0).tolist()
    return None if stats == tt.SizeStatistics() else stats


def _offset_index(data: LeafData, pages: Pages, writer: PageWriter, options: WriteOptions) -> OffsetIndexBuilder:
    index = OffsetIndexBuilder()
    unencoded: list[int | None] = [None] * len(pages)
    if isinstance(data.values, BinaryValues) and options.write_size_statistics:
        unencoded = np.diff(data.values.offsets[pages.values]).tolist()
    for entry in zip(writer.offsets, writer.sizes, pages.rows.tolist(), unencoded, strict=False):
        index.add_page(*entry)
    return index


def _column_index(
    plan: ColumnPlan, options: WriteOptions, pages: Pages, bounds: SegmentBounds, levels: _Levels,
    crypto: ChunkEncryption,
) -> bytes | None:  # fmt: skip
    builder = ColumnIndexBuilder(plan.leaf, options.column_index_truncate_length or None, plan.order)
    value_counts = np.diff(pages.values)
    nulls = np.diff(pages.slots) - value_counts
    # With one level there is nothing in the histograms that null counts do not say.
    detailed = options.write_size_statistics and (plan.node.max_def > 1 or plan.node.max_rep > 0)
    for page in range(len(pages)):
        builder.add_page(
            bounds.mins[page],
            bounds.maxs[page],
            null_count=int(nulls[page]),
            value_count=int(value_counts[page]),
            nan_count=None if bounds.nan_counts is None else int(bounds.nan_counts[page]),
            definition_histogram=_row(levels.definition, page, detailed),
            repetition_histogram=_row(levels.repetition, page, detailed),
        )
    index = builder.finish()
    if index is None:
        return None
    return b"".join(crypto.seal(Module.COLUMN_INDEX, [serialize(index)]))


def _row(counts: Int64Array | None, page: int, wanted: bool) -> list[int] | None:
    return None if counts is None or not wanted else counts[page].tolist()


def _bloom(
    data: LeafData, plan: ColumnPlan, dictionary: DictionarySection | None, crypto: ChunkEncryption
) -> list[Any] | None:
    if plan.bloom is None:
        return None
    bitset = build_filter(data.values, dictionary, plan.leaf, plan.bloom)
    return None if bitset is None else stored_filter(bitset, crypto)
