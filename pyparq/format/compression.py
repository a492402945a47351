"""Codec ids of the format, each with its library call (Compression.md).

Decompression writes into one preallocated buffer of the declared size. So the output never exceeds the size that the
caller has checked, and a reused buffer is twice as fast as a new object per page.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cramjam
import numpy as np
import numpy.typing as npt

from pyparq.errors import CorruptFileError, OptionError, UnsupportedError
from pyparq.format.types import Physical
from pyparq.kernels import codec_writes_native
from pyparq.kernels.buffers import Scratch
from pyparq.runtime.threads import check_stopped

PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED = 0, 2, 3, 4
DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY = 5, 6, 7
RLE_DICTIONARY, BYTE_STREAM_SPLIT, ALP = 8, 9, 10

ENCODING_NAMES = {
    PLAIN: "PLAIN", PLAIN_DICTIONARY: "PLAIN_DICTIONARY", RLE: "RLE", BIT_PACKED: "BIT_PACKED",
    DELTA_BINARY_PACKED: "DELTA_BINARY_PACKED", DELTA_LENGTH_BYTE_ARRAY: "DELTA_LENGTH_BYTE_ARRAY",
    DELTA_BYTE_ARRAY: "DELTA_BYTE_ARRAY", RLE_DICTIONARY: "RLE_DICTIONARY", BYTE_STREAM_SPLIT: "BYTE_STREAM_SPLIT",
    ALP: "ALP",
}  # fmt: skip

DICTIONARY_ENCODINGS = (PLAIN_DICTIONARY, RLE_DICTIONARY)

_ALL = frozenset(Physical)
_FIXED = _ALL - {Physical.BYTE_ARRAY, Physical.BOOLEAN, Physical.INT96}
_TYPES: dict[int, frozenset[Physical]] = {
    PLAIN: _ALL,
    PLAIN_DICTIONARY: _ALL - {Physical.BOOLEAN},
    RLE: frozenset([Physical.BOOLEAN]),
    DELTA_BINARY_PACKED: frozenset([Physical.INT32, Physical.INT64]),
    DELTA_LENGTH_BYTE_ARRAY: frozenset([Physical.BYTE_ARRAY]),
    DELTA_BYTE_ARRAY: frozenset([Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY]),
    RLE_DICTIONARY: _ALL - {Physical.BOOLEAN},
    BYTE_STREAM_SPLIT: _FIXED,
    ALP: frozenset([Physical.FLOAT, Physical.DOUBLE]),
}
"""BIT_PACKED is for levels alone."""

WRITABLE = tuple(sorted(_TYPES.keys() - {PLAIN_DICTIONARY}))
"""Encodings that values can be written in."""


def encoding_name(encoding: int) -> str:
    """The name in parquet.thrift, or the number of an encoding that is not known."""
    return ENCODING_NAMES.get(encoding, f"encoding {encoding}")


def holds(encoding: int, physical: Physical) -> bool:
    """Can pages of this encoding hold values of this physical type (Encodings.md)?"""
    return physical in _TYPES.get(encoding, ())


UNCOMPRESSED, SNAPPY, GZIP, LZO, BROTLI, LZ4, ZSTD, LZ4_RAW = range(8)
"""Numbers of ``CompressionCodec`` in parquet.thrift."""

CODEC_NAMES = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")

Bytes = npt.NDArray[np.uint8]
_threads = threading.local()


def codec_name(codec: int) -> str:
    return CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else f"codec {codec}"


def codec_number(name: str | None) -> int:
    """Codec id of a user's name, in any case.

    ``None`` and ``"none"`` mean uncompressed. ``"lz4"`` means LZ4_RAW, as in pyarrow and polars: the format's own LZ4
    is deprecated, because writers disagreed on its framing.
    """
    wanted = "NONE" if name is None else str(name).upper()
    wanted = {"NONE": "UNCOMPRESSED", "LZ4": "LZ4_RAW"}.get(wanted, wanted)
    if wanted == "LZO":
        raise OptionError("LZO is only read: few readers know it, and zstd or lz4_raw does better in every way")
    if wanted not in CODEC_NAMES:
        writable = ", ".join(n.lower() for n in CODEC_NAMES if n not in ("LZO", "LZ4"))
        raise OptionError(f"unknown compression {name!r}; use one of none, {writable}")
    return CODEC_NAMES.index(wanted)


# ---- decompression -----------------------------------------------------------------------------------------------


def library_decoder(codec: int) -> Callable[[Any, Any], int] | None:
    """The function ``decode(stored, out)`` of a Python package, for kernels that have found no library of that codec.
    ``None`` for codecs that kernels always read, and for unknown ones.

    It returns the number of bytes. An error of any kind, or another number than expected, means that the stream is
    invalid.
    """
    return _DECODERS.get(codec)


def unreadable(codec: int) -> str | None:
    """The reason why nothing here reads the codec. ``None`` for a codec that is read."""
    if 0 <= codec < len(CODEC_NAMES):
        return None
    return f"unknown compression codec {codec}; a newer pyparq may read it"


def _gzip_into(data: Any, out: Any) -> int:
    """All members one after another (a GZIP page may hold several)."""
    at, rest = 0, bytes(data)
    while rest and at < len(out):
        member = zlib.decompressobj(47)  # 32 + 15: gzip or zlib wrapper
        piece = member.decompress(rest, len(out) - at)
        out[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
        if not member.eof:
            if at == len(out) and not member.decompress(member.unconsumed_tail, 1):
                break
            raise CorruptFileError(
                "the GZIP data ends early, or decompresses to more bytes than the page header declares"
            )
        rest = member.unused_data
    return at


_DECODERS: dict[int, Callable[[Any, Any], int]] = {
    GZIP: _gzip_into,
    BROTLI: cramjam.brotli.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}


# ---- compression -------------------------------------------------------------------------------------------------

_LEVELS = {GZIP: (0, 9, 6), BROTLI: (0, 11, 4), ZSTD: (-131072, 22, 3)}
"""Lowest, highest and default level of the codecs that have levels."""


def check_level(codec: int, level: int | None) -> int | None:
    """The level to use. Raises :class:`OptionError` if the codec does not have it."""
    if codec not in _LEVELS:
        if level is not None:
            raise OptionError(f"{codec_name(codec)} has no compression levels")
        return None
    low, high, default = _LEVELS[codec]
    if level is None:
        return default
    if not isinstance(level, int) or isinstance(level, bool):
        raise OptionError(f"the compression level must be a whole number, not {level!r}")
    if not low <= level <= high:
        raise OptionError(f"{codec_name(codec)} levels go from {low} to {high}, not {level}")
    return level


def compress(codec: int, data: Any, level: int | None = None, scratch: Scratch | None = None) -> Any:
    """``data`` compressed, as a bytes-like object. ``level`` is the result of :func:`check_level`.

    With ``scratch``, the result may lie in that memory. Fresh memory for every page would take longer than Snappy does.
    """
    if codec == UNCOMPRESSED:
        return data
    if codec == SNAPPY:
        return _snappy(data, scratch)
    if codec == ZSTD:
        return _zstd(data, 3 if level is None else level)
    if codec == GZIP:
        return _gzip(data, 6 if level is None else level)
    if codec == BROTLI:
        return _brotli(data, 4 if level is None else level)
    if codec == LZ4_RAW:
        return cramjam.lz4.compress_block(data, store_size=False)
    raise UnsupportedError(f"pyparq does not write {codec_name(codec)}; use lz4_raw or zstd")


def _snappy(data: Any, scratch: Scratch | None) -> Any:
    if scratch is None:
        import snappy

        return snappy.compress(data)
    out = scratch.take(cramjam.snappy.compress_raw_max_len(data))
    return out[: cramjam.snappy.compress_raw_into(data, out)]


def _gzip(data: Any, level: int) -> bytes:
    member = zlib.compressobj(level, zlib.DEFLATED, 31)
    return b"".join([*(member.compress(piece) for piece in _pieces(data)), member.flush()])


def _zstd(data: Any, level: int) -> Any:
    compressor = _zstd_compressor(level)
    if level < _SLOW_ZSTD and memoryview(data).nbytes <= _QUICK:
        return compressor.compress(data)
    stream = compressor.compressobj(size=memoryview(data).nbytes)
    return b"".join([*(stream.compress(piece) for piece in _pieces(data)), stream.flush()])


def _brotli(data: Any, level: int) -> Any:
    if level < _SLOW_BROTLI and memoryview(data).nbytes <= _QUICK:
        return cramjam.brotli.compress(data, level=level)
    stream = cramjam.brotli.Compressor(level=level)
    for piece in _pieces(data):
        stream.compress(bytes(piece))
    return stream.finish()


NOT_NATIVE = -1 << 30
"""In place of a level: the native codec is not used."""


def native_level(codec: int, level: int | None) -> int:
    """The level for a native codec that is fast enough. :data:`NOT_NATIVE` for others: they are compressed in pieces,
    so that Ctrl-C is noticed between two pieces."""
    slow = {ZSTD: _SLOW_ZSTD, BROTLI: _SLOW_BROTLI}.get(codec, 99)
    if codec == UNCOMPRESSED or not codec_writes_native(codec) or (level is not None and level >= slow):
        return NOT_NATIVE
    return 0 if level is None else level


_PIECE = 128 << 10
_QUICK = 4 << 20
_SLOW_ZSTD, _SLOW_BROTLI = 10, 6
"""From these levels on, a page of one megabyte takes tenths of a second. At the highest levels it takes seconds."""


def _pieces(data: Any) -> Iterator[memoryview]:
    """The data in pieces for a slow compressor. Ctrl-C is noticed between two pieces."""
    view = memoryview(data).cast("B")
    for start in range(0, len(view), _PIECE):
        check_stopped()
        yield view[start : start + _PIECE]


def _zstd_compressor(level: int) -> Any:
    """One context per thread and level: making a context costs more than compressing a small page."""
    import zstandard

    contexts = _threads.__dict__.setdefault("zstd", {})
    if level not in contexts:
        contexts[level] = zstandard.ZstdCompressor(level=level)
    return contexts[level]
