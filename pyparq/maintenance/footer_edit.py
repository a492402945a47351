"""The footer of a file as a tree of Thrift fields. Changed fields are written anew, all others stay byte for byte.

Field numbers are those of parquet.thrift. The generated structs cannot be used here: they would drop fields that they
do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyparq import kernels
from pyparq.arrow.schema.hints import ARROW_SCHEMA
from pyparq.arrow.schema.keys import keys_of, with_keys
from pyparq.encryption.cipher import MAX_ORDINAL, Module
from pyparq.errors import CorruptFileError, DataError, located
from pyparq.format import ttypes as tt
from pyparq.format.lazy_footer import ENCRYPTED_MAGIC, MAGIC
from pyparq.format.thrift_codec import deserialize
from pyparq.format.thrift_tree import I16, I32, I64, STRUCT, ThriftList, ThriftStruct
from pyparq.index.statistics import parse_created_by
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.footers.schemas import to_bytes

FILE_VERSION, FILE_NUM_ROWS, FILE_ROW_GROUPS, FILE_KEY_VALUES, FILE_CREATED_BY, FILE_COLUMN_ORDERS = 1, 3, 4, 5, 6, 7
_LAST_KNOWN_OF_FILE = 9
_EXTENSION = -16384
"""The format's own extension field, in which some writers store the footer a second time, in another form. It would
not follow a change, so changed footers do not have it."""
GROUP_COLUMNS, GROUP_FILE_OFFSET, GROUP_ORDINAL = 1, 5, 7
CHUNK_FILE_OFFSET, CHUNK_META = 2, 3
OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH, COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH = 4, 5, 6, 7
CHUNK_SEALED_META = 9
META_PAGES = (9, 10, 11)
"""Offsets of the first data page, index page and dictionary page."""
META_STATISTICS = 12
OLD_BOUNDS = (1, 2)
"""Fields of Statistics: the max and min of writers before column orders."""
BOUNDS = (5, 6, 7, 8)
"""max_value, min_value, and whether they are exact."""
BLOOM_OFFSET, BLOOM_LENGTH = 14, 15
_KEY, _VALUE = 1, 2
_TYPE_ORDER = 1

Moved = Callable[[int], int]
"""The new place of what began at an old one."""
Place = tuple[int, int]
"""Offset and length."""


class FooterTree:
    """The FileMetaData of an open file. Changes show in :meth:`parts`.

    Raises :class:`CorruptFileError` for a footer that does not have the form of parquet.thrift.
    """

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        size, front, behind = _frame(file)
        self.start = file.fetcher.source.size - 8 - size
        """Where the footer begins in the file."""
        self._front = front
        self._behind = behind
        with located(file=file.name):
            self._tree = ThriftStruct.parse(file.footer.stored)[0]
            self._tree.remove(_EXTENSION)
        self._chunks: dict[tuple[int, int], ChunkTree] = {}

    def row_group(self, row_group: int) -> ThriftStruct:
        """A RowGroup."""
        return self._required(self._tree.list(FILE_ROW_GROUPS)).struct(row_group)

    def chunk(self, row_group: int, column: int) -> ChunkTree:
        """A column chunk."""
        known = self._chunks.get((row_group, column))
        if known is None:
            columns = self._required(self.row_group(row_group).list(GROUP_COLUMNS))
            known = self._chunks[row_group, column] = ChunkTree(columns.struct(column))
        return known

    def _required(self, found: ThriftList | None) -> ThriftList:
        if found is None:
            raise CorruptFileError("the footer lacks a required list", file=self._file.name)
        return found

    # ---- file level

    def add_column_orders(self, count: int) -> None:
        """TYPE_ORDER for every leaf."""
        orders = ThriftList(STRUCT)
        for _ in range(count):
            order = ThriftStruct()
            order.set_struct(_TYPE_ORDER, ThriftStruct())
            orders.append(order)
        self._tree.set_list(FILE_COLUMN_ORDERS, orders)

    def key_value(self, key: str) -> bytes | None:
        """The value of a key. The last one, if the key occurs twice."""
        found = None
        for pair in self._pairs():
            if pair.binary(_KEY) == key.encode():
                found = pair.binary(_VALUE) or b""
        return found

    def change_key_values(self, update: Mapping[str, str | bytes | None], remove: Iterable[str] = ()) -> bool:
        """Set keys (existing ones keep their place) and remove others. Returns whether anything changed."""
        gone = {key.encode() for key in remove}
        wanted = {key.encode(): value.encode() if isinstance(value, str) else value for key, value in update.items()}
        before = [(pair.binary(_KEY), pair.binary(_VALUE)) for pair in self._pairs()]
        kept, done = [], set()
        for pair in self._pairs():
            key = pair.binary(_KEY)
            if key in gone or key in done:
                continue
            if key is not None and key in wanted:
                done.add(key)
                if pair.binary(_VALUE) != wanted[key]:
                    pair = _pair(key, wanted[key])
            kept.append(pair)
        kept += [_pair(key, value) for key, value in wanted.items() if key not in done]
        if [(pair.binary(_KEY), pair.binary(_VALUE)) for pair in kept] == before:
            return False
        if not kept:
            self._tree.remove(FILE_KEY_VALUES)
            return True
        pairs = ThriftList(STRUCT)
        pairs.elements = list(kept)
        self._tree.set_list(FILE_KEY_VALUES, pairs)
        return True

    def change_table_keys(self, update: Mapping[str, str | bytes | None], remove: Iterable[str] = ()) -> bool:
        """As :meth:`change_key_values`, and the same in ``ARROW:schema``, where pyarrow looks for the keys of a table.

        Raises :class:`UnsupportedError` if ``ARROW:schema`` cannot be stored anew.
        """
        gone, name = set(remove), ARROW_SCHEMA.decode()
        stored = self.key_value(name) if name not in update else to_bytes(update[name])
        if stored is None or name in gone:
            return self.change_key_values(update, gone)
        there = keys_of(stored)
        keys = {
            to_bytes(key): to_bytes(value)
            for key, value in update.items()
            if key != name and (to_bytes(key) in there or self.key_value(key) != to_bytes(value))
        }
        with located(file=self._file.name):
            changed = with_keys(stored, keys, {key.encode() for key in gone})
        return self.change_key_values(update if changed == stored else {**update, name: changed.decode()}, gone)

    def _pairs(self) -> list[ThriftStruct]:
        pairs = self._tree.list(FILE_KEY_VALUES)
        return [] if pairs is None else [pairs.struct(k) for k in range(len(pairs))]

    def set_created_by(self, name: str) -> None:
        self._tree.set_binary(FILE_CREATED_BY, name.encode())

    def copy_column_orders(self, other: FooterTree) -> None:
        """Copy the column orders of another file with the same schema."""
        orders = other._tree.list(FILE_COLUMN_ORDERS)
        if orders is not None:
            self._tree.set_list(FILE_COLUMN_ORDERS, orders)

    # ---- several files as one

    def join(self, others: Sequence[FooterTree]) -> bool:
        """Append the row groups of other files with the same schema, whose offsets are rebuilt already.

        An unknown field of the file is kept if all files have the same value. Returns whether one was dropped.
        """
        groups = self._required(self._tree.list(FILE_ROW_GROUPS))
        for other in others:
            for k in range(other._file.num_row_groups):
                groups.append(other.row_group(k))
        numbered = any(groups.struct(k).field(GROUP_ORDINAL) is not None for k in range(len(groups)))
        for k in range(len(groups) if numbered else 0):
            if k <= MAX_ORDINAL:
                groups.struct(k).set_integer(GROUP_ORDINAL, I16, k)
            else:
                groups.struct(k).remove(GROUP_ORDINAL)
        trees = [self._tree, *(other._tree for other in others)]
        for number, wire, most in ((FILE_NUM_ROWS, I64, sum), (FILE_VERSION, I32, max)):
            self._tree.set_integer(number, wire, most([tree.integer(number) or 0 for tree in trees]))
        unknown = {field.number for tree in trees for field in tree.fields if field.number > _LAST_KNOWN_OF_FILE}
        gone = [n for n in unknown if len({_stored(tree, n) for tree in trees}) > 1]
        for number in gone:
            self._tree.remove(number)
        return bool(gone)

    # ---- offsets

    def move(self, moved: Moved, chunk_of: Callable[[int, int], Chunk | None]) -> None:
        """Rebuild every offset in the footer."""
        for k in range(self._file.num_row_groups):
            _move(self.row_group(k), GROUP_FILE_OFFSET, moved)
            for column in range(self._file.footer.num_columns(k)):
                self.chunk(k, column).move(moved, chunk_of(k, column))

    def has_unknown_offsets(self, first: int) -> bool:
        """Whether an unknown field may hold the offset of something at ``first`` or behind it."""
        return any(
            field.number > known and field.wire == I64 and first <= (tree.integer(field.number) or 0) < self.start
            for tree, known in self._with_offsets()
            for field in tree.fields
        )

    def _with_offsets(self) -> Iterator[tuple[ThriftStruct, int]]:
        """Structs whose fields may be offsets, each with the last field that is known. Those of row groups are not
        kept: the trees of a large footer take much memory."""
        yield self._tree, 9
        groups = self._required(self._tree.list(FILE_ROW_GROUPS))
        for k in range(self._file.num_row_groups):
            group = groups.look(k)
            yield group, 7
            columns = self._required(group.list(GROUP_COLUMNS))
            for column in range(self._file.footer.num_columns(k)):
                chunk = columns.look(column)
                yield chunk, 9
                meta = chunk.struct(CHUNK_META)
                if meta is not None:
                    yield meta, 17

    # ---- the end of the file

    def parts(self) -> list[Any]:
        """Everything from the start of the footer to the end of the file.

        Raises :class:`MissingKeyError` if the footer must be encrypted or signed and its key is missing.
        """
        sealed = self._file.decryption.seal_footer(self._tree.serialize())
        parts = [self._front, *sealed, self._behind]
        size = sum(memoryview(part).nbytes for part in parts)
        if size >= 1 << 32:
            raise DataError(f"the footer has {size} bytes, but its length must fit in 32 bits")
        return [*parts, size.to_bytes(4, "little"), ENCRYPTED_MAGIC if self._front else MAGIC]


def _stored(tree: ThriftStruct, number: int) -> bytes | None:
    """The stored bytes of a field that was not opened."""
    field = tree.field(number)
    if field is None:
        return None
    assert isinstance(field.value, (bytes, memoryview))
    return bytes((field.wire,)) + bytes(field.value)


def _pair(key: bytes, value: bytes | None) -> ThriftStruct:
    pair = ThriftStruct()
    pair.set_binary(_KEY, key)
    if value is not None:
        pair.set_binary(_VALUE, value)
    return pair


def _frame(file: OpenFile) -> tuple[int, bytes, bytes]:
    """The bytes between the data and the footer's length: those before an encrypted footer, and those behind a
    plaintext footer that is not signed."""
    size = file.fetcher.source.size
    (end,) = file.fetcher.fetch([(size - 8, 8)])
    length = int.from_bytes(end[:4], "little")
    (stored,) = file.fetcher.fetch([(size - 8 - length, length)])
    if bytes(end[4:]) == ENCRYPTED_MAGIC:
        return length, bytes(stored[: deserialize(tt.FileCryptoMetaData, stored)[1]]), b""
    if file.decryption.info is not None:
        return length, b"", b""  # a signature, which is computed anew
    return length, b"", bytes(stored[file.footer.end :])


@dataclass(slots=True)
class ChunkTree:
    """A ColumnChunk in the tree of its footer."""

    tree: ThriftStruct

    def place_index(self, offset_field: int, length_field: int, place: Place | None) -> None:
        """Set the place of an index. ``None``: the chunk has none."""
        if place is None:
            self.tree.remove(offset_field)
            self.tree.remove(length_field)
        else:
            self.tree.set_integer(offset_field, I64, place[0])
            self.tree.set_integer(length_field, I32, place[1])

    def drop_bounds(self, numbers: Iterable[int]) -> None:
        """Remove fields from the statistics of an unencrypted chunk."""
        meta = self.tree.struct(CHUNK_META)
        statistics = None if meta is None else meta.struct(META_STATISTICS)
        for number in numbers if statistics is not None else ():
            assert statistics is not None
            statistics.remove(number)

    def place_bloom(self, chunk: Chunk, place: Place | None) -> None:
        """Set the place of the Bloom filter. ``None``: the chunk has none."""

        def change(meta: ThriftStruct) -> None:
            if place is None:
                meta.remove(BLOOM_OFFSET)
                meta.remove(BLOOM_LENGTH)
            else:
                meta.set_integer(BLOOM_OFFSET, I64, place[0])
                meta.set_integer(BLOOM_LENGTH, I32, place[1])

        self._change_meta(chunk, change)
        clear = self.tree.struct(CHUNK_META)
        if self._is_sealed and clear is not None and place is None:
            change(clear)

    def move(self, moved: Moved, chunk: Chunk | None) -> None:
        """Rebuild the offsets of the chunk, its indexes and its filter. ``chunk`` is ``None`` if its key is missing:
        then only plaintext offsets can change."""

        def change(meta: ThriftStruct) -> None:
            for number in (*META_PAGES, BLOOM_OFFSET):
                _move(meta, number, moved)

        for number in (CHUNK_FILE_OFFSET, OFFSET_INDEX_OFFSET, COLUMN_INDEX_OFFSET):
            _move(self.tree, number, moved)
        clear = self.tree.struct(CHUNK_META)
        if clear is not None:
            change(clear)
        if self._is_sealed and chunk is not None:
            self._change_meta(chunk, change)

    @property
    def _is_sealed(self) -> bool:
        return self.tree.field(CHUNK_SEALED_META) is not None

    def _change_meta(self, chunk: Chunk, change: Callable[[ThriftStruct], None]) -> None:
        """Change the metadata that readers with the key use."""
        if not self._is_sealed:
            meta = self.tree.struct(CHUNK_META)
            if meta is None:
                raise CorruptFileError("the column chunk has no metadata", row_group=chunk.row_group, column=chunk.name)
            change(meta)
            return
        stored = self.tree.binary(CHUNK_SEALED_META) or b""
        plain = chunk.crypto.open(Module.COLUMN_METADATA, stored)
        meta, end = ThriftStruct.parse(plain)
        before = meta.serialize()
        change(meta)
        after = meta.serialize()
        if after != before:
            sealed = chunk.crypto.seal(Module.COLUMN_METADATA, [after + bytes(plain[end:])])
            self.tree.set_binary(CHUNK_SEALED_META, b"".join(sealed))


def _move(tree: ThriftStruct, number: int, moved: Moved) -> None:
    """Rebuild one offset. 0 means that there is none."""
    at = tree.integer(number)
    if at is not None and at > 0 and moved(at) != at:
        field = tree.field(number)
        assert field is not None
        tree.set_integer(number, field.wire, moved(at))


def moved_offset_index(plain: memoryview, moved: Moved) -> bytes:
    """An OffsetIndex for pages that have moved."""
    try:
        return kernels.moved_offset_index(plain, moved)
    except kernels.KernelError as error:
        raise CorruptFileError(f"the OffsetIndex cannot be moved: {error}") from error


def needs_its_writer(created_by: str | None) -> bool:
    """parquet-mr before 1.8.0: DELTA_BYTE_ARRAY pages depend on the page before (PARQUET-246), dictionary pages are
    larger than stated (PARQUET-816)."""
    name, version, _ = parse_created_by(created_by or "")
    return name == "parquet-mr" and (version is None or version < (1, 8, 0))
