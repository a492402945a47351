"""The Bloom filter of one column chunk: the hashes of its distinct values in a bitset of the right size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.encryption.cipher import Module
from pyparq.encryption.writing import CLEAR, ChunkEncryption, FileEncryption
from pyparq.errors import DataError, ParquetError, located
from pyparq.format import compression
from pyparq.format import compression as encodings
from pyparq.format import leaf_values as value_dictionary
from pyparq.format import ttypes as tt
from pyparq.format.leaf_values import BinaryValues, Values, count_of, plain_bytes, plain_size
from pyparq.format.order import Order, native_order
from pyparq.format.thrift_codec import serialize
from pyparq.format.types import LeafType
from pyparq.index.bloom_filter import BloomFilter, bytes_for, hash_values, serialize_filter
from pyparq.index.page_index import MAX_WHOLE_BOUND
from pyparq.option_values import BloomOptions
from pyparq.options import WriteOptions
from pyparq.runtime.threads import Task, check_stopped, cpu_count, within_task
from pyparq.write import encoding_choice
from pyparq.write.column_plans import ColumnPlan, WritePlan
from pyparq.write.encoding_choice import Choices, candidates_of
from pyparq.write.flat_columns import DictionaryPage, FlatData, dictionary_page, known_dictionary

if TYPE_CHECKING:
    from pyparq.write.shred import Known, LeafData


def build_filter(
    values: Values, entries: Values | None, leaf: LeafType, options: BloomOptions
) -> npt.NDArray[np.uint8] | None:
    """The bitset over a chunk's values, nulls left out. ``None`` if the option ``auto`` finds that a filter adds
    nothing.

    ``entries``: the entries of a dictionary that holds every value of the chunk once. Only these are hashed then.
    """
    if entries is not None:
        if options.auto:
            return None
        values = entries
    return filter_of(hash_values(values, leaf), options)


def filter_of(hashes: npt.NDArray[np.uint64], options: BloomOptions) -> npt.NDArray[np.uint8]:
    """The bitset with these hashes, in the size that ``options`` ask for."""
    bloom = BloomFilter(np.zeros(_size(hashes, options), np.uint8))
    bloom.insert_hashes(hashes)
    return bloom.bitset


def _size(hashes: npt.NDArray[np.uint64], options: BloomOptions) -> int:
    if options.bytes is not None:
        return options.bytes
    if options.ndv is not None:
        return bytes_for(options.ndv, options.fpp, options.power_of_two, options.max_bytes)
    most = bytes_for(len(hashes), options.fpp, options.power_of_two, options.max_bytes)
    return most if most <= 32 else _size_counted(hashes, options)


_COUNT_FROM, _ERROR = 1 << 16, 0.02
"""From this many hashes on, their number is estimated first. The error of the estimate is smaller than this (by 14
standard deviations)."""


def _size_counted(hashes: npt.NDArray[np.uint64], options: BloomOptions) -> int:
    """The size for the exact number of distinct hashes. They are not counted if the estimate allows only one size."""
    if len(hashes) >= _COUNT_FROM and options.power_of_two:
        about = kernels.estimate_distinct_u64(hashes)
        sizes = {_size_for(int(about * factor), options) for factor in (1 - _ERROR, 1 + _ERROR)}
        if len(sizes) == 1:
            return sizes.pop()
    return _size_for(kernels.count_distinct_u64(hashes), options)


def _size_for(distinct: int, options: BloomOptions) -> int:
    return bytes_for(distinct, options.fpp, options.power_of_two, options.max_bytes)


def stored_filter(bitset: npt.NDArray[np.uint8], crypto: ChunkEncryption) -> list[Any]:
    """The two stored modules of a filter: header and bitset."""
    header, bits = serialize_filter(bitset)
    return crypto.seal(Module.BLOOM_FILTER_HEADER, [header]) + crypto.seal(Module.BLOOM_FILTER_BITSET, [bits])


_CRC = kernels.Crc32(zlib.crc32)
_MOST_OF_PAGE = (1 << 31) - 1
_PAGE_TOO_LARGE, _MISFIT, _EWKB = 1, 3, 4

_LOOK = 0.002
"""Seconds between two looks for finished bytes of a chunk that is being encoded."""
_PATIENCE = 10
"""Number of looks before the storing thread encodes chunks itself that no other thread has begun."""


class StoredChunks:
    """Some column chunks of a row group. They may still be being encoded."""

    def __init__(self, row_group: int, columns: list[int]) -> None:
        self.row_group = row_group
        self.columns = columns
        self.native = kernels.EncodedChunks()
        self.task: Task[None] | None = None
        """Encodes them; ``None`` when that is done."""
        self.filters: list[tuple[int, list[Any]]] = []
        """Stored modules of Bloom filters, by the position of the chunk."""

    def parts(self) -> Iterator[list[Any]]:
        """The bytes of the chunks, in pieces, as they are made.

        No other method may be called before the last piece. Raises the errors of encoding.
        """
        if self.task is not None:
            # The pool has a thread per processor, so this thread is free to store finished bytes. But a task may
            # wait for the pool, and the pool may wait for the task.
            patience = 0 if within_task() else _PATIENCE
            while patience and not self.task.ended(_LOOK):
                if parts := self.native.take():
                    yield parts
                patience -= not self.task.has_started
            self.task.result()
            self.task = None
        yield self.native.take()

    def seal_offset_indexes(self, encryption: FileEncryption) -> None:
        """Encrypt the OffsetIndexes of encrypted chunks. The chunks must have their places in the file."""
        for k, column in enumerate(self.columns):
            crypto = encryption.chunk(self.row_group, column)
            if crypto.encrypted:
                sealed = crypto.seal(Module.OFFSET_INDEX, [self.native.offset_index(k)])
                self.native.set_offset_index(k, b"".join(sealed))

    def footer_entries(self, encryption: FileEncryption) -> bytes:
        """The serialized ColumnChunks."""
        if not encryption.encrypts:
            return self.native.column_chunks()
        return b"".join(self._footer_entry(k, column, encryption) for k, column in enumerate(self.columns))

    def _footer_entry(self, k: int, column: int, encryption: FileEncryption) -> bytes:
        form, sealed = encryption.metadata_form(column), b""
        if form.sealed:
            crypto = encryption.chunk(self.row_group, column)
            sealed = b"".join(crypto.seal(Module.COLUMN_METADATA, [self.native.column_metadata(k)]))
        return self.native.column_chunk(k, form.crypto, sealed, form.bare)


class ChunkEncoder:
    """Encodes the column chunks of one file."""

    def __init__(self, plan: WritePlan, encryption: FileEncryption, choices: Choices) -> None:
        self._plan = plan
        self._options = plan.options
        self._encryption = encryption
        self._choices = choices
        self._pages: dict[int, tuple[Known, DictionaryPage | None]] = {}
        """The last dictionary of each column that keeps its entries."""
        threads = cpu_count() if plan.options.use_threads else 1
        if plan.rules is None or plan.rules[0] != threads:
            rules = _file_rules(plan.options, threads)
            kinds: dict[tuple[int, int, int | None, Order], _Kind] = {}
            plan.rules = threads, [_column_rules(column, rules, _kind(column, kinds)) for column in plan.columns]
        self._rules: list[kernels.ColumnRules] = plan.rules[1]

    def encode(
        self, made: StoredChunks, leaves: Sequence[LeafData | FlatData], shredded: Callable[[int], LeafData]
    ) -> None:
        """Encode leaves of a row group (at least one row).

        This touches no file and, except for the choice of an encoding, no other chunk. ``shredded(column)`` returns the
        leaf of a column that came as arrays, or raises the error in its values.
        """
        leaves, row_group = list(leaves), made.row_group
        for k, data in enumerate(leaves):
            if isinstance(data, FlatData) and data.known is not None and self._has_no_page(data, data.known):
                with located(row_group=row_group, column=data.node.dotted):
                    leaves[k] = shredded(data.node.column)
        sealed: list[ChunkEncryption] = [CLEAR] * len(made.columns)
        if self._encryption.encrypts:
            sealed = [self._encryption.chunk(row_group, column) for column in made.columns]
        jobs = [self._job(data, crypto, row_group) for data, crypto in zip(leaves, sealed, strict=True)]
        try:
            while (done := made.native.count) < len(leaves):
                refusal = made.native.encode(jobs[done:] if done else jobs, check_stopped)
                if refusal is not None:
                    k = made.native.at_fault
                    if refusal.code != _MISFIT or not isinstance(leaves[k], FlatData):
                        raise _refused(refusal)
                    leaves[k] = shredded(made.columns[k])
                    jobs[k] = self._job(leaves[k], sealed[k], row_group)
        except kernels.KernelError as error:
            at_fault = leaves[made.native.at_fault].node.dotted
            raise DataError(f"the column's buffers are wrong: {error}", row_group=row_group, column=at_fault) from error
        except ParquetError as error:
            error.locate(row_group=row_group, column=leaves[made.native.at_fault].node.dotted)
            raise
        if row_group == 0:
            self._choices.decided(made.columns, made.native.choice)
        for k, (data, crypto) in enumerate(zip(leaves, sealed, strict=True)):
            bloom = self._plan.columns[data.node.column].bloom
            if crypto.encrypted or bloom is not None:
                _finish(made, k, data, crypto, bloom)

    def _job(
        self, data: LeafData | FlatData, crypto: ChunkEncryption, row_group: int
    ) -> kernels.ValuesChunk | kernels.ArraysChunk:
        column = data.node.column
        choice = self._choices.of(column) if row_group else None
        seal = crypto.page_seal() if crypto.encrypted else None
        if isinstance(data, FlatData):
            page = None if data.page is None else (data.page.plain, count_of(data.page.entries), data.page.places)
            return kernels.ArraysChunk(self._rules[column], data.parts, data.num_rows, page, choice, seal)
        plan, values = self._plan.columns[column], data.values
        known = _indexed(data, plan, self._options)
        if known is None and plan.entries:
            known = _known(data, plan, self._options, self._choices)
        offsets, raw = values if isinstance(values, BinaryValues) else (None, np.ascontiguousarray(values))
        return kernels.ValuesChunk(
            self._rules[column], offsets, raw, data.def_levels, data.rep_levels, data.num_rows, data.num_slots,
            known, choice, seal,
        )  # fmt: skip

    def _has_no_page(self, data: FlatData, known: Known) -> bool:
        """Whether a column comes as codes, but its chunk cannot have a dictionary page for their entries."""
        column = data.node.column
        plan = self._plan.columns[column]
        last = self._pages.get(column)
        if last is None or last[0] is not known:
            page = dictionary_page(known.values, plan.leaf, _limit(plan, self._options)) if plan.dictionary else None
            last = self._pages[column] = known, page
        data.page = last[1]
        if data.page is not None and not self._choices.agrees(column, known.values):
            self._choices.reordered.add(column)
        return data.page is None


def _finish(
    made: StoredChunks, k: int, data: LeafData | FlatData, crypto: ChunkEncryption, bloom: BloomOptions | None
) -> None:
    native = made.native
    if crypto.encrypted:
        index = native.column_index(k)
        if index is not None:
            native.set_column_index(k, b"".join(crypto.seal(Module.COLUMN_INDEX, [index])))
    if bloom is not None:
        values, entries = _to_filter(native, k, data)
        bitset = build_filter(values, entries, data.node.type, bloom)
        if bitset is not None:
            made.filters.append((k, stored_filter(bitset, crypto)))


def _to_filter(native: kernels.EncodedChunks, k: int, data: LeafData | FlatData) -> tuple[Values, Values | None]:
    """Values that include each value of the chunk, and the entries of its dictionary, if that was made for this chunk
    and holds all values."""
    if isinstance(data, FlatData):
        assert data.page is not None  # other columns with a filter are shredded
        return value_dictionary.entries(data.page.entries, native.used_entries(k)), None
    places = native.first_places(k)
    return data.values, None if places is None else value_dictionary.entries(data.values, places)


def _file_rules(options: WriteOptions, threads: int) -> kernels.FileRules:
    return kernels.FileRules(
        1 if str(options.data_page_version) == "1.0" else 2,
        options.max_rows_per_page,
        options.data_page_size,
        options.dictionary_pagesize_limit,
        options.statistics_truncate_length or -1,
        options.column_index_truncate_length or -1,
        MAX_WHOLE_BOUND,
        options.write_page_index,
        options.write_size_statistics,
        encoding_choice.MIN_VALUES,
        encoding_choice.DICTIONARY_SETTLES,
        encoding_choice.MOST_OF_DICTIONARY,
        encoding_choice.KEY,
        _CRC if options.write_page_checksum else None,
        threads,
    )


_Kind = tuple[kernels.LeafOrder, Callable[[Any], Any] | None, int, list[tuple[int, float]]]
"""What columns of one type have in common: order, codec, level of the native codec, encodings worth trying."""


def _kind(plan: ColumnPlan, known: dict[tuple[int, int, int | None, Order], _Kind]) -> _Kind:
    # By identity: equal leaves are mostly the same object. The plan keeps them alive.
    key = id(plan.leaf), plan.codec, plan.level, plan.order
    found = known.get(key)
    if found is None:
        is_plain = plan.codec == compression.UNCOMPRESSED
        compress = None if is_plain else partial(compression.compress, plan.codec, level=plan.level)
        candidates = [(e, encoding_choice.MOST[e]) for e in candidates_of(plan.leaf, plan.codec)]
        level = compression.native_level(plan.codec, plan.level)
        found = known[key] = native_order(plan.leaf, plan.order), compress, level, candidates
    return found


_GEO = {"geometry": 1, "geography": 2}


def _column_rules(plan: ColumnPlan, file: kernels.FileRules, kind: _Kind) -> kernels.ColumnRules:
    leaf, node = plan.leaf, plan.node
    order, compress, level, candidates = kind
    # pyarrow reads dictionaries from PLAIN pages only
    encoding = plan.encoding if plan.encoding is not None else encodings.PLAIN if plan.entries else -1
    pairs = [serialize(tt.KeyValue(key=k, value=v)) for k, v in plan.key_values.items()] if plan.key_values else []
    return kernels.ColumnRules(
        file, order, leaf.physical, leaf.width, node.max_def, node.max_rep, plan.codec, compress, level,
        plan.dictionary, plan.keep_dictionary, encoding, candidates, plan.statistics, leaf.is_text, leaf.precision,
        _GEO.get(leaf.kind, 0), plan.path, pairs,
    )  # fmt: skip


def _known(data: LeafData, plan: ColumnPlan, options: WriteOptions, choices: Choices) -> kernels.KnownDictionary | None:
    """The dictionary that the values come from. ``None`` if it is not kept, or cannot be."""
    known, section = data.known, None
    if not count_of(data.values) and (known is None or not count_of(known.values)):
        return None  # only nulls, so no dictionary
    if known is not None and plan.dictionary:
        section = known_dictionary(data.values, known.values, plan.leaf, _limit(plan, options))
    if known is None or section is None or known.source is None or not choices.agrees(plan.column, known.values):
        choices.reordered.add(plan.column)
    if section is None:
        return None
    entries, indices = section
    return kernels.KnownDictionary(plain_bytes(entries, plan.leaf), count_of(entries), indices, len(np.unique(indices)))


def _indexed(data: LeafData, plan: ColumnPlan, options: WriteOptions) -> kernels.KnownDictionary | None:
    """The dictionary of a leaf that keeps the one it comes with. ``None`` for others."""
    known = data.known
    if known is None or known.indices is None or not plan.keep_dictionary:
        return None
    if not len(known.indices) or plain_size(known.values) > _limit(plan, options):
        return None
    plain, count = plain_bytes(known.values, plan.leaf), count_of(known.values)
    return kernels.KnownDictionary(plain, count, known.indices, known.distinct)


def _limit(plan: ColumnPlan, options: WriteOptions) -> int:
    """The most bytes of a dictionary page."""
    return _MOST_OF_PAGE if plan.ordered else options.dictionary_pagesize_limit


def _refused(refusal: kernels.EncodeRefusal) -> DataError:
    if refusal.code == _PAGE_TOO_LARGE:
        which = refusal.page if refusal.page >= 0 else "dictionary"
        return DataError("the page has 2 GiB or more; a page must be smaller", page=which)
    if refusal.code == _EWKB:
        return DataError("a value is EWKB, as PostGIS writes it: Parquet has ISO WKB (ST_AsBinary)")
    return DataError(
        f"row {refusal.row} of the row group takes {refusal.size} bytes, but a page must be smaller than 2 GiB"
    )
