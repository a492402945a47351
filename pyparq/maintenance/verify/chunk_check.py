"""Checks one column chunk: all statements about it, against its pages."""

from __future__ import annotations

from typing import Any

from pyparq.encryption.cipher import Module
from pyparq.errors import MissingKeyError, ParquetError, reading
from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import TRAILER
from pyparq.format.order import Order, domain
from pyparq.format.schema_node import Node
from pyparq.index.statistics import writer_is_trusted
from pyparq.kernels import StoredPage
from pyparq.maintenance.verify.bounds import ChunkValues, TrueBounds, of_statistics
from pyparq.maintenance.verify.chunk_facts import (
    COLUMN,
    HEADER,
    META,
    OFFSET,
    STATISTICS,
    check_column_index,
    check_counts,
    check_metadata,
    check_offset_index,
    check_rows,
    check_size_statistics,
    counts_bytes,
    counts_nulls,
)
from pyparq.maintenance.verify.report import ChunkResult, Findings
from pyparq.maintenance.verify.value_checks import FILTER, check_filter, check_range, check_text, spelled_out
from pyparq.read.column_reads import beyond_its_size
from pyparq.read.decode.chunk_pages import ChunkPages
from pyparq.read.decode.memory_account import Account, Share
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile, omits_dictionary_header
from pyparq.runtime.threads import check_stopped

PAGES = "pages"
ROW_KEY = 64
"""Bytes per row that comparing neighbouring rows takes about."""


class ChunkCheck:
    """Checks column chunks of one file. May be used from several threads."""

    def __init__(self, file: OpenFile, account: Account) -> None:
        self._file = file
        self._account = account

    def check(self, row_group: int, node: Node, keep_rows: bool) -> ChunkResult:
        """Check a chunk. Everything that is wrong with it becomes a finding."""
        check_stopped()
        result = ChunkResult(node)
        findings = Findings(self._file.name, row_group, node.path)
        share = Share(self._account)
        try:
            with reading():
                chunk = self._file.chunk(row_group, node)
                result.meta = self._stated(chunk)
                self._check_chunk(chunk, result, findings, share, keep_rows)
        except MissingKeyError as error:
            result.not_checked.append(error.message)
        except ParquetError as error:
            shared = self._file.place_chunks().is_shared(row_group, node.column)
            findings.add_error("location" if shared else "metadata", META, error)
        finally:
            share.set_held(0)
        result.findings = findings.found
        return result

    def _stated(self, chunk: Chunk) -> Any:
        """The chunk's metadata as stored, before the reader corrects them."""
        return self._file.decryption.column(chunk.raw, chunk.row_group, chunk.node, self._file.tree)[0]

    def _check_chunk(
        self, chunk: Chunk, result: ChunkResult, findings: Findings, share: Share, keep_rows: bool
    ) -> None:
        self._note_places(chunk, result, findings)
        if chunk.size == 0 and not result.meta.num_values:
            return
        modules = self._modules(chunk)
        stored = self._pages(chunk, modules.pop(PAGES), share)
        chunk = stored.chunk
        has_crc = [page.has_crc for page in (*stored.pages, stored.dictionary) if page is not None]
        result.pages, result.crcs = len(stored.pages), sum(has_crc)
        if stored.fault is not None:
            findings.add_error("page", HEADER, stored.fault)
        else:
            check_metadata(result.meta, chunk, stored, self._file.created_by, findings)
        values = None if stored.fault is not None else self._decoded(stored, findings)
        self._check_offset_index(chunk, modules.get(OFFSET), stored, values, result, findings)
        if values is not None:
            self._check_values(modules.get(COLUMN), values, stored, result, findings)
            if keep_rows:
                self._keep_rows(values, result, share)

    def _modules(self, chunk: Chunk) -> dict[str, memoryview]:
        """The stored bytes of the pages, and of the indexes that lie within the file, read in one step."""
        raw, most = chunk.raw, self._file.options.limits.max_index
        ranges = {PAGES: (chunk.start, chunk.size)}
        for what, offset, length in (
            (COLUMN, raw.column_index_offset, raw.column_index_length),
            (OFFSET, raw.offset_index_offset, raw.offset_index_length),
        ):
            inside = offset and length and self._is_inside(offset, length)
            if inside and length <= most and self._is_own(chunk, offset, length):
                ranges[what] = offset, length
        return dict(zip(ranges, self._file.fetcher.fetch(list(ranges.values())), strict=True))

    def _pages(self, chunk: Chunk, data: memoryview, share: Share) -> ChunkPages:
        """The pages of the chunk. If the chunk is longer than stated, all of them."""
        options = self._file.options
        exact = not omits_dictionary_header(self._file.created_by)
        stored = ChunkPages(data, chunk, options, share, to_the_end=exact)
        if stored.num_values < chunk.num_values:
            longer = beyond_its_size(self._file, chunk, data)
            if longer is not None:
                (data,) = self._file.fetcher.fetch([(longer.start, longer.size)])
                return ChunkPages(data, longer, options, share)
        return stored

    def _decoded(self, stored: ChunkPages, findings: Findings) -> ChunkValues | None:
        try:
            return ChunkValues(stored)
        except ParquetError as error:
            findings.add_error("page", "data", error)
            return None

    # ---- indexes

    def _note_places(self, chunk: Chunk, result: ChunkResult, findings: Findings) -> None:
        if chunk.size:
            # For a chunk that was cut where the next one begins: the stated end.
            stated = chunk.start + result.meta.total_compressed_size
            inside = chunk.start < stated <= self._file.fetcher.source.size - TRAILER
            result.places.append((chunk.start, stated if inside else chunk.end, f"the pages of {chunk.name}"))
        raw, meta = chunk.raw, result.meta
        for offset, length, what in (
            (raw.column_index_offset, raw.column_index_length, COLUMN),
            (raw.offset_index_offset, raw.offset_index_length, OFFSET),
            (meta.bloom_filter_offset, meta.bloom_filter_length, FILTER),
        ):
            if offset and self._is_inside(offset, length or 1) and not self._is_own(chunk, offset, length):
                text = f"its bytes at offset {offset} are also those of another column chunk's"
                findings.add("layout", what, text)
            if offset and length and self._is_inside(offset, length):
                result.places.append((offset, offset + length, f"the {what} of {chunk.name}"))
            elif offset and (length or what == FILTER) and not self._is_inside(offset, length or 1):
                text = f"{length} bytes at offset {offset} are outside of the file"
                findings.add("layout", what, text)

    def _is_own(self, chunk: Chunk, offset: int, length: int | None) -> bool:
        return self._file.modules.belongs(offset, length, chunk.row_group, chunk.node.column)

    def _is_inside(self, offset: int, length: int) -> bool:
        return offset >= 4 and length > 0 and offset + length <= self._file.fetcher.source.size - TRAILER

    def _keep_rows(self, values: ChunkValues, result: ChunkResult, share: Share) -> None:
        rows = int(values.num_rows.sum())
        if rows * ROW_KEY > share.left:
            most = self._account.most
            text = f"the order of {rows} rows: it would take more memory than limits.max_memory ({most}) allows"
            result.not_checked.append(text)
            return
        result.leaf = spelled_out(values)

    def _is_too_long(self, length: int | None, what: str, findings: Findings) -> bool:
        """Whether an index is longer than may be read. That is a finding."""
        most = self._file.options.limits.max_index
        if length is None or length <= most:
            return False
        findings.add("index", what, f"it has {length} bytes: more than limits.max_index ({most})")
        return True

    def _check_offset_index(
        self, chunk: Chunk, data: memoryview | None, stored: ChunkPages, values: ChunkValues | None,
        result: ChunkResult, findings: Findings,
    ) -> None:  # fmt: skip
        if self._is_too_long(chunk.raw.offset_index_length, OFFSET, findings) or data is None:
            return
        result.offset_index = True
        try:
            plain = chunk.crypto.open(Module.OFFSET_INDEX, data)
            if stored.fault is None:
                counts = values is not None and counts_bytes(values, self._file.created_by)
                result.pages_listed = check_offset_index(
                    plain, stored, values, findings, byte_counts=counts, encrypted=chunk.crypto.encrypted
                )
        except ParquetError as error:
            findings.add_error("index", OFFSET, error)

    def _check_column_index(
        self, data: memoryview | None, values: ChunkValues, bounds: TrueBounds | None, result: ChunkResult,
        findings: Findings,
    ) -> None:  # fmt: skip
        chunk = values.chunk
        if self._is_too_long(chunk.raw.column_index_length, COLUMN, findings) or data is None:
            return
        result.column_index = True
        try:
            plain = chunk.crypto.open(Module.COLUMN_INDEX, data)
            check_column_index(plain, values, bounds, result.pages_listed, findings)
        except ParquetError as error:
            findings.add_error("index", COLUMN, error)

    # ---- values

    def _check_values(
        self, column_index: memoryview | None, values: ChunkValues, stored: ChunkPages, result: ChunkResult,
        findings: Findings,
    ) -> None:  # fmt: skip
        chunk, meta = values.chunk, result.meta
        result.num_values = int(values.num_levels.sum())
        result.num_nulls = result.num_values - int(values.num_present.sum())
        check_rows(chunk, stored, values, findings)
        check_text(values, findings)
        order, trusted = self._order(chunk, result)
        bounds = TrueBounds(values, order) if domain(values.leaf) else None
        if bounds is not None:
            check_range(bounds, findings)
        if meta.statistics is not None:
            result.statistics = True
            check_counts(meta.statistics, values, bounds, self._file.created_by, findings)
            if bounds is not None and trusted:
                for stated in of_statistics(meta.statistics, values.leaf, order, STATISTICS):
                    bounds.check(stated, findings)
        if meta.size_statistics is not None:
            check_size_statistics(meta.size_statistics, values, self._file.created_by, findings)
        comparable = trusted and order in (Order.TYPE, Order.TOTAL, Order.INT96)
        if bounds is not None and trusted:
            self._check_headers(stored, bounds, findings)
        self._check_column_index(column_index, values, bounds if comparable else None, result, findings)
        self._check_filter(values, result, findings)

    def _order(self, chunk: Chunk, result: ChunkResult) -> tuple[Order, bool]:
        """The order of the column, and whether this writer's bounds can be right."""
        order, leaf = self._file.column_order(chunk.node), chunk.node.type
        trusted = writer_is_trusted(leaf, self._file.created_by)
        has_bounds = result.meta.statistics is not None or chunk.raw.column_index_offset
        if has_bounds and not trusted:
            result.not_checked.append(f"bounds: those of {self._file.created_by} are known to be wrong for this type")
        elif has_bounds and domain(leaf) and order == Order.UNKNOWN and leaf.kind != "int96":
            result.not_checked.append("bounds: the order of the column is not known")
        return order, trusted

    def _check_headers(self, stored: ChunkPages, bounds: TrueBounds, findings: Findings) -> None:
        """Statistics in page headers: each page's bounds and null count."""
        for ordinal, page in enumerate(stored.pages):
            if not page.has_statistics:
                continue
            statistics = _header_statistics(page, ordinal, stored)
            if statistics is None:
                continue
            here = bounds.of_page(ordinal)
            found = Findings(findings.file, findings.row_group, findings.column)
            for stated in of_statistics(statistics, bounds.leaf, bounds.order, HEADER):
                here.check(stated, found)
            nulls = int(bounds.values.num_levels[ordinal] - bounds.values.num_present[ordinal])
            counted = counts_nulls(bounds.values.chunk.node, self._file.created_by)
            if statistics.null_count is not None and statistics.null_count != nulls and counted:
                text = f"null_count is {statistics.null_count}, but the page holds {nulls} nulls"
                found.add("count", HEADER, text, ordinal, int(bounds.values.first_rows[ordinal]))
            if found.found:
                findings.found += found.found
                return

    def _check_filter(self, values: ChunkValues, result: ChunkResult, findings: Findings) -> None:
        offset = values.chunk.meta.bloom_filter_offset
        if not offset or not self._is_inside(offset, 1) or not self._is_own(values.chunk, offset, None):
            return
        try:
            result.bloom = check_filter(
                values.chunk, values, self._file.fetcher, self._file.options.limits, findings
            )  # fmt: skip
        except ParquetError as error:
            findings.add_error("bloom filter", FILTER, error)


def _header_statistics(page: StoredPage, ordinal: int, pages: ChunkPages) -> tt.Statistics | None:
    """The statistics in a page's header. Raises :class:`ParquetError` if they do not decode."""
    chunk, at = pages.chunk, page.offset - pages.chunk.start
    header, _ = chunk.crypto.struct(tt.PageHeader, pages.data, at, Module.DATA_PAGE_HEADER, ordinal)
    inner: Any = header.data_page_header if header.data_page_header is not None else header.data_page_header_v2
    return None if inner is None else inner.statistics
