"""Pages of column chunks: their headers one by one, and the decoder with some of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_input import check, number, refused, split

from pyparq import kernels
from pyparq.format.types import LeafType, Physical
from pyparq.read.decode.arrow_columns import Kind, leaf_spec
from pyparq.read.decode.decoder import MOST_OFFSET  # which gives the kernels their libraries, too

_ROOM = 1 << 24

LEAVES = (
    LeafType(Physical.BOOLEAN, "bool"), LeafType(Physical.INT32, "int", bits=32),
    LeafType(Physical.INT64, "int", bits=64), LeafType(Physical.INT96, "int96", unit="ns"),
    LeafType(Physical.FLOAT, "float"), LeafType(Physical.DOUBLE, "double"),
    LeafType(Physical.BYTE_ARRAY, "string"), LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "fixed", length=5),
    LeafType(Physical.BYTE_ARRAY, "binary"), LeafType(Physical.INT32, "int", bits=8),
    LeafType(Physical.INT32, "int", bits=16), LeafType(Physical.INT32, "uint", bits=8),
    LeafType(Physical.INT32, "uint", bits=16), LeafType(Physical.INT32, "decimal", precision=5, scale=2),
    LeafType(Physical.INT64, "decimal", precision=18, scale=3),
    LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "decimal", length=9, precision=20, scale=1),
    LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "decimal", length=20, precision=40, scale=1),
    LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "uuid", length=16),
    LeafType(Physical.FIXED_LEN_BYTE_ARRAY, "float16", length=2),
    LeafType(Physical.BYTE_ARRAY, "decimal", precision=20, scale=1),
)  # fmt: skip
"""What the head chooses from."""
_KINDS: tuple[Kind, ...] = ("values", "large", "codes", "views", "stored", "dictionary")


def head_of(leaf: int, kind: int, max_def: int, max_rep: int, codec: int, has_dictionary: bool, values: int,
            rows: int) -> bytes:  # fmt: skip
    """The head of an input with these pages, all of whose rows are wanted."""
    head = bytes([leaf, kind, max_def, max_rep, codec, has_dictionary])
    return (head + values.to_bytes(2, "little") + rows.to_bytes(2, "little")).ljust(24, b"\0")


class Question:
    """Pages, and what the head asks of them."""

    def __init__(self, head: bytes, stored: Any) -> None:
        self.leaf = LEAVES[head[0] % len(LEAVES)]
        self.max_def = head[2] % 4
        self.max_rep = head[3] % (self.max_def + 1)
        self.codec, self.has_dictionary = head[4] % 8, bool(head[5] & 1)
        self.values, self.rows = number(head, 6), number(head, 8)
        self.checks_crc = not head[10] & 1
        self.head, self.stored = head, stored
        self.cipher: Any = None

    def spec(self, kind: Kind) -> kernels.LeafSpec:
        slot = min(self.max_rep, self.max_def)
        flat = self.max_rep == 0 and not self.head[10] & 2
        return leaf_spec(self.leaf, kind, self.max_def, self.max_rep, slot, not flat)

    def piece(self, rows: Any = None) -> kernels.PieceSpec:
        return kernels.PieceSpec(
            self.codec, self.values, self.rows, self.has_dictionary, self.stored, None, None, None, False, rows,
            self.cipher, None,
        )  # fmt: skip

    def limits(self) -> kernels.PageLimits:
        return kernels.PageLimits(1 << 20, 1000, 1 << 16, 1 << 16, 1 << 22, self.checks_crc, MOST_OFFSET)

    def decoded(self, kind: Kind, rows: Any = None) -> Any:
        """The column; ``None`` where it is refused, or cannot be had in this form."""
        with refused:
            jobs = [(self.spec(kind), [self.piece(rows)])]
            results, _, refusal = kernels.decode_columns(jobs, self.limits(), 1, _ROOM)
            return results[0] if refusal is None else None
        return None


def pages(data: Any) -> None:
    """The pages one by one."""
    head, stored = split(data)
    asked = Question(head, stored)

    def more(missing: int) -> tuple[int, int]:
        if missing > _ROOM:
            raise MemoryError
        return missing, _ROOM

    with refused:
        reader = kernels.PageReader(asked.spec("values"), asked.piece(), asked.limits(), 0)
        reader.list_pages(bool(head[10] & 4), more, _ROOM)
        listed = reader.pages()
        check(all(p.offset >= 0 and p.offset + p.size <= len(stored) for p in listed), "a page outside")
        count = -1
        if reader.dictionary() is not None:
            found, _ = reader.entries(more, _ROOM)
            count = -1 if found is None else found[0]
        first = 0
        while first < len(listed):
            run, refusal = reader.decode(first, 1 << 40, 1 << 12, count, not head[10] & 8, more, _ROOM)
            if run is None or refusal is not None:
                return
            check(run.count > 0, "no page is decoded")
            first += run.count


def chunk(data: Any) -> None:
    """The whole chunk, some rows of it, and other forms of its values."""
    head, stored = split(data)
    asked = Question(head, stored)
    kind = _KINDS[head[1] % len(_KINDS)]
    if not asked.leaf.is_binary and kind in ("views", "large"):
        kind = "values"
    whole = asked.decoded("values")
    other = asked.decoded(kind) if kind != "values" else None
    _same_length(whole, other)
    if asked.rows:
        _some_rows(asked, whole)


def _same_length(whole: Any, other: Any) -> None:
    found = other[0] if isinstance(other, tuple) else other
    if whole is not None and found is not None:
        check(whole.length == found.length and whole.null_count == found.null_count, "lengths differ by form")


def _some_rows(asked: Question, whole: Any) -> None:
    head = asked.head
    if head[11] & 1:
        bits = np.zeros((asked.rows + 63) // 64 * 8, np.uint8)
        bits[: len(bits)] = np.resize(np.frombuffer(head[12:20], np.uint8), len(bits))
        wanted = np.unpackbits(bits, bitorder="little")[: asked.rows].astype(bool)
        rows: Any = np.packbits(np.resize(wanted, len(bits) * 8) & (np.arange(len(bits) * 8) < asked.rows),
                                bitorder="little")  # fmt: skip
    else:
        edges = np.unique(np.minimum(np.frombuffer(head[12:20], "<u2"), asked.rows)).astype(np.int64)
        edges = edges[: len(edges) // 2 * 2]
        rows = edges[::2].copy(), edges[1::2].copy()
        wanted = np.zeros(asked.rows, bool)
        for start, end in zip(*rows, strict=True):
            wanted[start:end] = True
    some = asked.decoded("values", rows)
    if whole is None or some is None or asked.max_rep or whole.length != asked.rows:
        return
    check(some.length == int(wanted.sum()), "another number of rows")
    check(_texts(some) == [t for t, w in zip(_texts(whole), wanted, strict=True) if w], "other values")


def _texts(column: Any) -> list[bytes | None]:
    """The bytes of each slot; ``None`` for nulls."""
    count, data = column.length, column.values
    present = np.ones(count, bool)
    if column.validity is not None:
        present = np.unpackbits(column.validity, bitorder="little")[:count].astype(bool)
    if column.is_binary:
        offsets = column.offsets.tolist()
        parts = [data[offsets[k] : offsets[k + 1]].tobytes() for k in range(count)]
    elif count and len(data) // count:
        parts = [row.tobytes() for row in data[: len(data) // count * count].reshape(count, -1)]
    else:  # bits
        parts = [bytes([bit]) for bit in np.unpackbits(data, bitorder="little")[:count]]
    return [part if there else None for part, there in zip(parts, present, strict=True)]
