"""Thrift structs from bytes and back: the compact protocol, checked before it is decoded.

Decoding takes two steps. First, the native check (`ThriftRules`) walks the bytes with the generated table of structs.
It refuses truncated, malformed, too deep and doubled structs, and missing required fields (except a few that readers
can do without). It also finds the end. Then the thrift package's accelerated decoder builds the objects from exactly
those bytes. So all counts and lengths that the decoder sees were checked against the bytes, and no object is half
filled.

Text that is not UTF-8 is refused; the decoder would silently insert U+FFFD. `KeyValue.value` is the one exception,
because existing files hold raw bytes there. Such a value is returned as `bytes`, and written back unchanged. Enum
fields are plain ints, unknown values included.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from io import BytesIO
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyparq.errors import CorruptFileError, DataError
from pyparq.format.chunk_numbers import ChunkNumbers
from pyparq.format.generated import ttypes
from pyparq.format.generated.rules import RULES
from pyparq.kernels import ColumnIndexArrays, KernelError, ThriftRules, ThriftTruncated
from pyparq.runtime import fork_safety

try:
    from thrift.protocol import fastbinary
except ImportError:  # the thrift package falls back to pure Python when its own extension did not build
    fastbinary = None
    warnings.warn(
        "the thrift package is installed without its accelerator (thrift.protocol.fastbinary): "
        "decoding metadata takes about fifty times as long",
        RuntimeWarning,
        stacklevel=2,
    )

__all__ = [
    "Bytes",
    "ThriftDecodeError",
    "ThriftEncodeError",
    "ThriftTruncatedError",
    "column_chunk_numbers",
    "column_chunks_of_footers",
    "deserialize",
    "deserialize_column_index",
    "deserialize_lists",
    "serialize",
    "serialize_footer",
    "serialize_row_group",
]

Bytes = bytes | bytearray | memoryview
T = TypeVar("T")

_INT32_MAX = 2**31 - 1
# From here on the cyclic garbage collector would run over the growing tree often enough to double or triple
# the time of a decode; there are no cycles in it.
PAUSE_GC_FROM = 1 << 18


class ThriftDecodeError(CorruptFileError):
    """Bytes are not the serialized Thrift struct they should be."""


class ThriftTruncatedError(ThriftDecodeError):
    """The bytes end inside the struct; with more of them it might decode."""


class ThriftEncodeError(DataError):
    """A struct cannot be serialized: a required field is unset, or a value does not fit its field."""


class _Input:
    """What the accelerated decoder asks of a protocol and of its transport, in one object."""

    __slots__ = ("cstringio_buf",)
    string_length_limit = container_length_limit = _INT32_MAX  # the check has done it

    def __init__(self, data: bytes) -> None:
        self.cstringio_buf = BytesIO(data)

    @property
    def trans(self) -> _Input:
        return self

    def cstringio_refill(self, partial: bytes, wanted: int) -> NoReturn:
        raise EOFError


def _raw_typeargs(cls: type, done: dict[type, list[Any]]) -> list[Any]:
    """[class, thrift_spec] with KeyValue.value as bytes instead of text, down through every nested struct."""
    if cls in done:
        return done[cls]
    typeargs: list[Any] = [cls, ()]
    done[cls] = typeargs
    spec: list[Any] = []
    for field in cls.thrift_spec:  # type: ignore[attr-defined]
        if field is not None:
            number, wire, name, args, default = field
            if isinstance(args, list):
                args = _raw_typeargs(args[0], done)
            elif isinstance(args, tuple) and isinstance(args[1], list):
                args = (args[0], _raw_typeargs(args[1][0], done), args[2])
            elif cls is ttypes.KeyValue and name == "value":
                args = "BINARY"
            field = (number, wire, name, args, default)
        spec.append(field)
    typeargs[1] = tuple(spec)
    return typeargs


_CLASSES: list[type] = [getattr(ttypes, row[0]) for row in RULES]
_KINDS = {cls: (kind, [cls, cls.thrift_spec]) for kind, cls in enumerate(_CLASSES)}  # type: ignore[attr-defined]
_RAW: dict[type, list[Any]] = {}
NOT_NEEDED = {
    ("ColumnChunk", "file_offset"), ("ColumnMetaData", "type"), ("ColumnMetaData", "encodings"),
    ("ColumnMetaData", "path_in_schema"),
}  # fmt: skip
"""Required fields that a reader can do without: the schema and the pages state the same."""
_REQUIRED = 1


def _lenient() -> tuple[Any, ...]:
    return tuple(
        (name, is_union, tuple((*f[:5], f[5] & ~_REQUIRED) if (name, f[1]) in NOT_NEEDED else f for f in fields))
        for name, is_union, fields in RULES
    )


_rules = ThriftRules(RULES)
_lenient_rules = ThriftRules(_lenient())
_check = _lenient_rules.check


def deserialize(cls: type[T], data: Bytes, offset: int = 0) -> tuple[T, int]:
    """Decode the `cls` (a class of `pyparq.format.generated.ttypes`) that starts at `data[offset]`.

    Returns the object and the position behind it; what follows there is not looked at.
    Raises `ThriftTruncatedError` when the bytes end too early, `ThriftDecodeError` for any other fault. The fields of
    `NOT_NEEDED` may be missing: they have their defaults then.
    """
    kind, typeargs = _KINDS[cls]
    try:
        end, raw = _check(data, offset, kind)
    except ThriftTruncated as error:
        raise ThriftTruncatedError(f"{cls.__name__}: {error}") from None
    except KernelError as error:
        raise ThriftDecodeError(f"{cls.__name__}: {error}") from None
    body = data[offset:end] if type(data) is bytes else bytes(memoryview(data).cast("B")[offset:end])
    if raw:
        typeargs = _raw_typeargs(cls, _RAW)
    if end - offset < PAUSE_GC_FROM:
        value = _decode(cls, body, typeargs)
    else:
        with _gc_paused():
            value = _decode(cls, body, typeargs)
    if raw:
        _restore_text(value)
    return value, end


def deserialize_lists(cls: type, data: Bytes, offset: int = 0) -> tuple[list[NDArray[np.int64] | None], int]:
    """As `deserialize`, for a class with no fields but lists of integers, or of structs of required integers.

    Returns one int64 array per field, in the order of their ids (`None` where it is absent): of structs, all their
    first fields, then all their second ones, and so on. No object is made per element, which is ten times faster.
    """
    return _natively(_rules.lists, cls, data, offset)


def deserialize_column_index(data: Bytes, width: int, number_kind: int) -> ColumnIndexArrays:
    """The ColumnIndex at the start of ``data`` as arrays. Bounds of numbers of ``width`` bytes are (64-bit numbers of
    their kind, where they can be used); others (0) lists of bytes."""
    kind = _KINDS[ttypes.ColumnIndex][0]
    try:
        return _rules.column_index(data, kind, width, number_kind)
    except ThriftTruncated as error:
        raise ThriftTruncatedError(f"ColumnIndex: {error}") from None
    except KernelError as error:
        raise ThriftDecodeError(f"ColumnIndex: {error}") from None


def column_chunk_numbers(data: Bytes, starts: NDArray[np.int64], paths: list[bytes]) -> NDArray[np.int64]:
    """The numbers of the ColumnChunks that start there in `data`: one row per field of
    `pyparq.format.chunk_numbers.ChunkNumbers`. A start of -1 stands for a chunk that is not there. ``paths``: in turn,
    the chunks' paths in the schema, as they should be stored."""
    found = _lenient_rules.chunk_numbers(data, starts, _KINDS[ttypes.ColumnChunk][0], paths)
    return found.reshape(len(ChunkNumbers._fields), len(starts))


def column_chunks_of_footers(
    footers: list[bytes], columns: NDArray[np.int64], paths: list[bytes], leaves: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The same of some columns, ascending, in the row groups of many serialized FileMetaData: (the number of row groups
    before each footer, and of all; the rows of each row group, -1 where something is wrong with it; the numbers of
    their chunks, by kind, row group and column). ``leaves``: column chunks that a row group should have."""
    kind = _KINDS[ttypes.ColumnChunk][0]
    first, rows, numbers = _lenient_rules.chunks_of_footers(footers, columns, kind, paths, leaves)
    return first, rows, numbers.reshape(len(ChunkNumbers._fields), len(rows), len(columns))


def _natively(read: Callable[[Bytes, int, int], tuple[int, T]], cls: type, data: Bytes, offset: int) -> tuple[T, int]:
    try:
        end, value = read(data, offset, _KINDS[cls][0])
    except ThriftTruncated as error:
        raise ThriftTruncatedError(f"{cls.__name__}: {error}") from None
    except KernelError as error:
        raise ThriftDecodeError(f"{cls.__name__}: {error}") from None
    return value, end


def serialize(value: object) -> bytes:
    """Encode an object of a generated class; `ThriftEncodeError` also when a required field is unset."""
    kind, typeargs = _KINDS[type(value)]
    try:
        if fastbinary is not None:
            data: bytes = fastbinary.encode_compact(value, typeargs)
        else:
            data = _encode_slowly(value, typeargs[1])
        end, _ = _rules.check(data, 0, kind)
    except (TypeError, ValueError, OverflowError, AttributeError, AssertionError, SystemError) as error:
        raise ThriftEncodeError(f"cannot serialize this {type(value).__name__}: {error}") from error
    if end != len(data):
        raise ThriftEncodeError(f"cannot serialize this {type(value).__name__}: its bytes do not read back")
    return data


def serialize_row_group(group: ttypes.RowGroup, columns: Sequence[bytes], count: int) -> bytes:
    """A RowGroup whose ``count`` ColumnChunks are serialized already; ``group`` has none."""
    return _list_of_structs(1, count) + b"".join(columns) + serialize(group)[2:]  # behind its own list, of nothing


def serialize_footer(footer: ttypes.FileMetaData, row_groups: Sequence[bytes]) -> bytes:
    """A FileMetaData whose RowGroups are serialized already; ``footer`` has none."""
    before = ttypes.FileMetaData(footer.version, footer.schema, footer.num_rows, [])
    after = copy(footer)
    after.version, after.schema, after.num_rows = 0, [], 0
    head, tail = serialize(before)[:-3], serialize(after)  # without the list of nothing, and the end
    if not tail.startswith(_NO_ROWS):
        raise ThriftEncodeError("cannot serialize this FileMetaData: its first fields are not where they should be")
    return b"".join([head, _list_of_structs(1, len(row_groups)), *row_groups, tail[len(_NO_ROWS) :]])


_NO_ROWS = bytes([0x15, 0, 0x19, 0x0C, 0x16, 0, 0x19, 0x0C])
"""Version, schema, rows and row groups of a footer where they are zero and empty."""


def _list_of_structs(step: int, count: int) -> bytes:
    """The header of a list field, ``step`` ids behind the field before it, and that of the list."""
    if count < 15:
        return bytes([step << 4 | 9, count << 4 | 12])
    size = bytearray()
    while count > 0x7F:
        size.append(count & 0x7F | 0x80)
        count >>= 7
    return bytes([step << 4 | 9, 0xFC]) + bytes(size) + bytes([count])


def _decode(cls: type[T], body: bytes, typeargs: list[Any]) -> T:
    value = cls()
    source = _Input(body)
    try:
        if fastbinary is not None:
            fastbinary.decode_compact(value, source, typeargs)
        else:
            _slow_protocol(source.cstringio_buf).readStruct(value, typeargs[1])
    except Exception as error:  # the Thrift runtime raises many kinds; all of them mean that the bytes are wrong
        raise ThriftDecodeError(f"{cls.__name__}: {type(error).__name__}: {error}") from error
    if source.cstringio_buf.tell() != len(body):
        raise ThriftDecodeError(f"{cls.__name__}: check and decoder disagree about where it ends")
    return value


def _slow_protocol(buffer: BytesIO) -> Any:
    from thrift.protocol.TCompactProtocol import TCompactProtocol
    from thrift.Thrift import TType
    from thrift.transport.TTransport import TMemoryBuffer

    class Protocol(TCompactProtocol):  # type: ignore[misc]
        def skip(self, ttype: int, *depth: int) -> None:
            # The original reads an unknown string as text, and so fails on unknown bytes.
            if ttype == TType.STRING:
                self.readBinary()
            else:
                super().skip(ttype, *depth)

    transport = TMemoryBuffer()
    transport._buffer = buffer
    protocol = Protocol(transport)
    protocol.string_length_limit = protocol.container_length_limit = None
    return protocol


def _encode_slowly(value: object, spec: tuple[Any, ...]) -> bytes:
    buffer = BytesIO()
    _slow_protocol(buffer).writeStruct(value, spec)
    return buffer.getvalue()


def _restore_text(value: Any) -> None:
    """Make text of every KeyValue.value below `value` that is UTF-8 (the others stay bytes)."""
    if isinstance(value, list):
        for item in value:
            _restore_text(item)
    elif isinstance(value, ttypes.KeyValue):
        if isinstance(value.value, bytes):
            try:
                value.value = value.value.decode("utf-8")
            except UnicodeDecodeError:
                return
    elif type(value) in _KINDS:
        for name in value.__slots__:
            _restore_text(getattr(value, name))


_gc_lock = threading.Lock()
_gc_pauses: list[int] = []
"""The threads that are inside."""
_gc_was_on = False


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Hold the garbage collector back; several threads may be inside, the last one out lets it go on."""
    global _gc_was_on
    thread = threading.get_ident()
    with _gc_lock:
        if not _gc_pauses:
            _gc_was_on = gc.isenabled()
            gc.disable()
        _gc_pauses.append(thread)
    try:
        yield
    finally:
        with _gc_lock:
            _gc_pauses.remove(thread)
            if not _gc_pauses and _gc_was_on:
                gc.enable()


@fork_safety.in_child
def _gc_goes_on() -> None:
    """Threads that are not in a forked child do not come out either."""
    global _gc_lock
    _gc_lock = threading.Lock()
    if _gc_pauses:
        own = _gc_pauses.count(threading.get_ident())
        _gc_pauses[:] = [threading.get_ident()] * own
        if not own and _gc_was_on:
            gc.enable()
