"""Words the errors of the native decoder. The decoder gives a name, up to three numbers and a text; this module has
their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyparq.errors import ChecksumError, CorruptFileError, DataError, LimitError, ParquetError, UnsupportedError
from pyparq.format.compression import codec_name, unreadable
from pyparq.format.encodings import encoding_name
from pyparq.format.types import Physical
from pyparq.kernels import DecodeRefusal
from pyparq.read.decode.physical_values import too_many_bits, too_many_digits


def page_of(refusal: DecodeRefusal) -> int | str | None:
    """The page of a refusal, as errors name it. ``None`` if the fault is in no page."""
    return {-1: None, -2: "dictionary"}.get(refusal.page, refusal.page)


_CORRUPT: dict[str, Callable[[DecodeRefusal], str]] = {
    "stored_size": lambda r: f"the page header declares {r.a} bytes, but the column chunk has only {r.b} left",
    "negative_size": lambda r: f"the page header declares {r.a} uncompressed bytes",
    "impossible_size": lambda r: f"the page of {r.a} bytes cannot decompress to {r.b} bytes",
    "page_header": lambda r: f"bad page header: {_text(r)}",
    "pages_end": lambda r: f"the column chunk declares {r.a} values, but its pages end after {r.b}",
    "pages_hold_more": lambda r: f"the column chunk declares {r.a} values, but its pages hold {r.b}",
    "more_than_declared": lambda r: f"the pages hold more values than the column chunk declares ({r.a})",
    "dictionary_not_first": lambda r: "the dictionary page is not the first page of its column chunk",
    "no_data_header": lambda r: "the data page has no data page header",
    "negative_values": lambda r: f"the page header declares {r.a} values",
    "no_dictionary_header": lambda r: "the dictionary page has no dictionary page header",
    "negative_entries": lambda r: f"the dictionary page declares {r.a} entries",
    "dictionary_size": lambda r: f"the dictionary page declares {r.a} entries but has only {r.b} bytes",
    "dictionary_values": lambda r: f"the dictionary page is invalid: {_text(r)}",
    "uncompressed_size": lambda r: (
        f"the page header declares {r.a} bytes, but the uncompressed page has {r.b}"
    ),
    "levels_v2": lambda r: f"the levels declare {r.a} + {r.b} bytes, but the page has {r.c}",
    "ends_before_levels": lambda r: "the page ends before its levels",
    "levels_size": lambda r: f"the levels declare {r.a} bytes, but the page has only {r.b} left",
    "levels": lambda r: f"bad levels: {_text(r)}",
    "level": lambda r: f"the page has a level of {r.a}, but the maximum is {r.b}",
    "no_dictionary": lambda r: "the page is dictionary-encoded, but the column chunk has no dictionary page",
    "no_indices": lambda r: "the dictionary-encoded page has no data",
    "values": lambda r: f"bad {encoding_name(r.a)} data: {_text(r)}",
    "encoding_type": lambda r: f"encoding {encoding_name(r.a)} cannot hold {Physical(r.b).name} values",
    "plain_booleans": lambda r: f"the page has {r.a} bytes for {r.b} PLAIN booleans",
    "plain_size": lambda r: f"the page has {r.a} bytes for {r.b} PLAIN values of {r.c} bytes",
    "plain_byte_arrays": lambda r: f"the page has {r.a} bytes, too few for {r.b} PLAIN byte arrays",
    "rle_length": lambda r: "the RLE boolean page ends before its length field",
    "rle_size": lambda r: f"the RLE boolean page declares {r.a} bytes, but only {r.b} follow",
    "split_size": lambda r: f"the page has {r.a} bytes for {r.b} BYTE_STREAM_SPLIT values of {r.c} bytes",
    "fixed_length": lambda r: f"the page has DELTA_BYTE_ARRAY values that are not {r.a} bytes long",
    "utf8": lambda r: (
        f"value {r.a} of the page is not UTF-8: {r.text!r}...; read it with binary_columns=[...] to get bytes"
    ),
    "page_rows": lambda r: f"the page has {r.a} rows, but the OffsetIndex says {r.b}",
    "mid_row": lambda r: "the page starts in the middle of a row",
    "first_repetition": lambda r: f"the first repetition level is {r.a}, but a row must start with 0",
    "rows_held": lambda r: f"the pages hold {r.a} rows, but the row group has {r.b}",
    "too_many_values": lambda r: "the pages hold more values than the rows that they are for",
}  # fmt: skip

_LIMITS: dict[str, Callable[[DecodeRefusal], str]] = {
    "max_page": lambda r: f"the page of {r.a} bytes decompresses to {r.b}: more than limits.max_page ({r.c})",
    "max_expansion": lambda r: (
        f"the page of {r.a} bytes decompresses to {r.b}: more than limits.max_expansion ({r.c}) allows"
    ),
    "values_per_byte": lambda r: (
        f"the page declares {r.a} values in {r.b} bytes: more than limits.max_values_per_byte allows"
    ),
    "max_column": lambda r: f"the decoded column chunk takes {r.a} bytes: more than limits.max_column ({r.b})",
}


def worded(refusal: DecodeRefusal, too_much: Callable[[int, int], ParquetError]) -> ParquetError:
    """The error to raise, without its place. ``too_much(size, held)``: the error for a read that needs ``size`` more
    bytes than the ``held`` ones of this call."""
    name = refusal.name
    if name == "memory":
        return too_much(refusal.a, refusal.b)
    if name == "crc":
        advice = "" if refusal.a else ". Some writers store 0 for every page: verify_checksums=False reads these"
        return ChecksumError(f"the page does not match its CRC (stored {refusal.a:#010x}){advice}")
    if name in _LIMITS:
        return LimitError(_LIMITS[name](refusal))
    if name == "encoding":
        return UnsupportedError(f"{encoding_name(refusal.a)} is not supported; a newer pyparq may read it")
    if name == "dictionary_encoding":
        return UnsupportedError(f"the dictionary page has encoding {encoding_name(refusal.a)}, which is not supported")
    if name == "inflated_size":
        return _not_inflated(refusal)
    if name == "decimal_digits":
        return DataError(too_many_digits(refusal.a))
    if name == "integer_bits":
        return DataError(too_many_bits(refusal.a, bool(refusal.b)))
    if name in _CORRUPT:
        return CorruptFileError(_CORRUPT[name](refusal))
    return CorruptFileError(f"{name}: {_text(refusal)}")


def _not_inflated(refusal: DecodeRefusal) -> ParquetError:
    codec, found, due = refusal.a, refusal.b, refusal.c
    if (reason := unreadable(codec)) is not None:
        return UnsupportedError(reason)
    if found < 0:
        return CorruptFileError(
            f"the {codec_name(codec)} data is invalid, or decompresses to more than the {due} bytes that the page "
            "header declares"
        )
    return CorruptFileError(
        f"the {codec_name(codec)} data decompresses to {found} bytes, but the page header declares {due}"
    )


def _text(refusal: Any) -> str:
    return str(refusal.text.decode("utf-8", "replace"))
