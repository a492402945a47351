"""Cells of CSV and JSON as bytes: a column at a time, because a Python object per cell takes twenty times as long.

Texts lie one behind the other with offsets between them, each cell says which is its own, and one native gather puts
texts and separators of many rows in a line. So repeated values are formatted once, nulls and separators are texts like
others, and strings that need no quoting are never looked at one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import take
from pyparq.arrow.to_python import check_field_names, field_to_pylist
from pyparq.cli.values import cell_format, field_json, float_text
from pyparq.errors import OptionError
from pyparq.format.types import Field
from pyparq.kernels import dict_encode_binary, dict_encode_fixed, number_texts, take_binary, utf8_validate

Places = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Render = Callable[[Any], str]

CELLS = 1 << 19
"""Cells put together at a time, at most."""
FIRST = 1 << 10
"""Rows of the first piece, so that a pipe has something to show at once."""
REPEATS = 4
"""Values are formatted once each where there are so many rows for one of them."""
_FINE_UNITS = ("s", "ms", "us")


def csv_cell(text: str) -> str:
    """A cell with quotes where it needs them (RFC 4180); an empty text is ``""``, to be told from a null."""
    if text == "" or text != text.strip() or any(c in text for c in '",\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _marks(*codes: int | range) -> npt.NDArray[np.bool_]:
    found = np.zeros(256, np.bool_)
    for code in codes:
        found[list(code) if isinstance(code, range) else code] = True
    return found


_SPACES = (*range(9, 14), *range(28, 33))
# Spaces beyond ASCII begin with these bytes in UTF-8, and are two or three bytes long.
_TWO, _THREE = _marks(0xC2), _marks(0xE1, 0xE2, 0xE3)
_CSV_INSIDE, _CSV_EDGE = _marks(*b'",\n\r'), _marks(*_SPACES)
_JSON_INSIDE = _marks(range(32), *b'"\\')


@dataclass(frozen=True, slots=True)
class Form:
    """How cells of a type are written: in CSV, or in JSON."""

    is_json: bool

    @property
    def null(self) -> str:
        return "null" if self.is_json else ""

    def render(self, field: Field) -> Render:
        """The text of one value that is no null."""
        if self.is_json:
            to_json = field_json(field)
            return lambda value: json.dumps(to_json(value), ensure_ascii=False, allow_nan=False)
        form = cell_format(field)
        return lambda value: csv_cell(form(value))


CSV, JSON = Form(False), Form(True)


@dataclass(slots=True)
class Texts:
    """Texts one behind the other: text ``k`` is ``data[offsets[k]:offsets[k + 1]]``."""

    offsets: Places
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(slots=True)
class Cells:
    """The cells of a column: texts, which of them each row has, and which rows still want quotes around theirs."""

    texts: Texts
    places: Places
    unquoted: npt.NDArray[np.bool_] | None = None


def texts_of(strings: Sequence[str]) -> Texts:
    together, parts = "".join(strings), cast(Sequence[str | bytes], strings)
    if not together.isascii():
        parts = [s.encode("utf-8", "surrogatepass") for s in strings]
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(strings)), out=offsets[1:])
    return Texts(offsets, np.frombuffer(together.encode("utf-8", "surrogatepass"), np.uint8))


def cells_of(column: Column, form: Form, field: Field | None = None) -> Cells:
    """The cells of a column, nulls included. ``field``: of the column, where it is known: it tells Variants."""
    type_ = column.type
    if type_.dictionary is None and (type_.is_nested or not (type_.byte_width or type_.format in ("u", "U", "b"))):
        return _one_by_one(column, form, field)
    mask = column.valid_mask()
    if mask is None:
        return _present(column, form)
    rows = np.flatnonzero(mask)
    found = _present(take(column, rows), form)
    texts = joined([found.texts, texts_of([form.null])])
    places = np.full(column.length, len(found.texts), np.int64)
    places[rows] = found.places
    unquoted = None
    if found.unquoted is not None:
        unquoted = np.zeros(column.length, np.bool_)
        unquoted[rows] = found.unquoted
    return Cells(texts, places, unquoted)


def _present(column: Column, form: Form) -> Cells:
    """The cells of a column without nulls."""
    type_ = column.type
    if not column.length:
        return _each([])
    if type_.dictionary is not None and column.dictionary is not None:
        entries = cells_of(column.dictionary, form)
        indices = column.values().astype(np.int64)
        return Cells(
            entries.texts, entries.places[indices], None if entries.unquoted is None else entries.unquoted[indices]
        )
    if type_.format == "b":
        return Cells(texts_of(["false", "true"]), column.values().astype(np.int64))
    if type_.format in ("u", "U"):
        return _strings(column, form)
    return _fixed_width(column, form)


def _one_by_one(column: Column, form: Form, field: Field | None = None) -> Cells:
    field = Field("", column.type) if field is None else field
    render = form.render(field)
    return _each([form.null if value is None else render(value) for value in field_to_pylist(field, column)])


def _each(strings: Sequence[str]) -> Cells:
    return Cells(texts_of(strings), np.arange(len(strings), dtype=np.int64))


def _fixed_width(column: Column, form: Form) -> Cells:
    values = np.ascontiguousarray(column.values())
    if column.length >= REPEATS:
        indices, firsts = dict_encode_fixed(values, column.type.byte_width, column.length // REPEATS)
        if len(indices) == column.length:
            return Cells(_one_by_one(take(column, firsts), form).texts, indices.astype(np.int64))
    kind = column.type.kind
    if kind in ("int", "uint", "float"):
        return _numbers(values, form)
    if kind == "timestamp":
        return _timestamps(column, values, form) or _one_by_one(column, form)
    return _one_by_one(column, form)


def _numbers(values: npt.NDArray[Any], form: Form) -> Cells:
    texts = Texts(*number_texts(values))
    places = np.arange(len(values), dtype=np.int64)
    rows = np.flatnonzero(np.diff(texts.offsets) == 0)
    if len(rows):  # floats with an exponent, and those that are no numbers
        others = _floats(values[rows], form)
        places[rows] = len(texts) + np.arange(len(rows))
        texts = joined([texts, texts_of(others)])
    return Cells(texts, places)


def _floats(values: npt.NDArray[Any], form: Form) -> list[str]:
    strings = [float_text(value) for value in values]
    if not form.is_json:
        return strings
    finite = np.isfinite(values).tolist()
    return [repr(float(s)) if known else f'"{s}"' for s, known in zip(strings, finite, strict=True)]


def _timestamps(column: Column, values: npt.NDArray[Any], form: Form) -> Cells | None:
    """ISO texts by numpy; ``None`` for those that it writes otherwise than Python: zones, far years, nanoseconds."""
    type_ = column.type
    if type_.timezone not in ("", "UTC") or type_.unit not in _FINE_UNITS:
        return None
    moments = values.view(f"M8[{type_.unit}]").astype("M8[us]")
    years = moments[[int(values.argmin()), int(values.argmax())]].astype("M8[Y]").astype(np.int64) + 1970
    if (
        years.min() < 1
        or years.max() > 9999
        or (moments.astype(f"M8[{type_.unit}]") != values.view(moments.dtype)).any()
    ):
        return None
    letters = np.datetime_as_string(moments, unit="us")  # 26 letters each
    digits = letters.view(np.uint32).reshape(len(values), -1)[:, :26]
    end = ("Z" if type_.timezone else "") + ('"' if form.is_json else "")
    begin = '"' if form.is_json else ""
    # A whole second has no fraction: its end is written over it, and the rest is never used.
    whole = moments.astype(np.int64) % 1_000_000 == 0
    matrix = np.zeros((len(values), len(begin) + 26 + len(end)), np.uint8)
    matrix[:, : len(begin)] = list(begin.encode())
    matrix[:, len(begin) : len(begin) + 26] = digits
    lengths = np.where(whole, len(begin) + 19, len(begin) + 26)
    for k, letter in enumerate(end.encode()):
        matrix[np.arange(len(values)), lengths + k] = letter
    starts = np.arange(len(values), dtype=np.int64) * matrix.shape[1]
    offsets = np.append(np.stack([starts, starts + lengths + len(end)], axis=1).reshape(-1), matrix.size)
    return Cells(Texts(offsets, matrix.reshape(-1)), np.arange(len(values), dtype=np.int64) * 2)


def _strings(column: Column, form: Form) -> Cells:
    """Strings as they lie in memory, but for those that need quotes or escapes."""
    offsets = np.ascontiguousarray(column.offsets()).astype(np.int64)
    data = column.buffers[1].view(np.uint8)
    if utf8_validate(offsets, data) >= 0:
        return _one_by_one(column, form)  # says which row is not
    texts = Texts(offsets - offsets[0], data[offsets[0] : offsets[-1]])
    places = np.arange(column.length, dtype=np.int64)
    odd = _rows_with(texts, _JSON_INSIDE if form.is_json else _CSV_INSIDE)
    if not form.is_json:
        odd |= _maybe_padded(texts)
    rows = np.flatnonzero(odd)
    if len(rows):
        others = take(column, rows)
        numbers, firsts = dict_encode_binary(others.offsets().astype(np.int64), others.buffers[1], 1 << 62)
        places[rows] = len(texts) + numbers.astype(np.int64)
        texts = joined([texts, _one_by_one(take(others, firsts), form).texts])
    return Cells(texts, places, ~odd if form.is_json else None)


def _rows_with(texts: Texts, marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which texts hold any of the marked bytes."""
    found = np.zeros(len(texts), np.bool_)
    hits = np.flatnonzero(marks[texts.data])
    if len(hits):
        found[np.unique(np.searchsorted(texts.offsets, hits, "right") - 1)] = True
    return found


def _maybe_padded(texts: Texts) -> npt.NDArray[np.bool_]:
    """Texts that are empty, or may begin or end with a space of any alphabet."""
    starts, ends = texts.offsets[:-1], texts.offsets[1:]
    found: npt.NDArray[np.bool_] = starts == ends
    if not len(texts.data):
        return found
    last = len(texts.data) - 1
    first = texts.data[np.minimum(starts, last)]
    final, second, third = (texts.data[np.maximum(ends - k, 0)] for k in (1, 2, 3))
    found |= _CSV_EDGE[first] | _TWO[first] | _THREE[first]
    found |= _CSV_EDGE[final] | _TWO[second] | _THREE[third]
    return found


def joined(parts: Sequence[Texts]) -> Texts:
    """All texts of the parts, numbered on."""
    offsets, at = [np.zeros(1, np.int64)], 0
    for part in parts:
        offsets.append(part.offsets[1:] + at)
        at += len(part.data)
    return Texts(np.concatenate(offsets), np.concatenate([part.data for part in parts]))


def lines(columns: Sequence[Cells], before: Sequence[str], end: str, num_rows: int) -> bytes:
    """Rows put together: before each cell its separator (in JSON with its name), ``end`` behind the last."""
    pool = [texts_of(["", '"', end, *before])]
    size = len(pool[0])
    picks: list[Any] = []
    for k, cells in enumerate(columns):
        quote = [] if cells.unquoted is None else [cells.unquoted.astype(np.int64)]  # text 0 or 1
        picks += [3 + k, *quote, size + cells.places, *quote]
        pool.append(cells.texts)
        size += len(cells.texts)
    places = np.empty((num_rows, len(picks) + 1), np.int64)
    for k, pick in enumerate([*picks, 2]):
        places[:, k] = pick
    texts = joined(pool)
    return take_binary(texts.offsets, texts.data, places.reshape(-1))[1].tobytes()


# ---- rows


def pieces(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches cut small: few cells are text at any time."""
    most = FIRST
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, min(most, batch.num_rows - start))
            yield piece
            start += piece.num_rows
            most = max(CELLS // max(len(batch.columns), 1), FIRST)


def json_lines(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """One JSON object per row, a line each."""
    names = schema.names
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise OptionError(f"several columns are called {twice!r}, which a JSON object cannot hold: use CSV or a table")
    before = [f"{', ' if k else '{'}{json.dumps(name, ensure_ascii=False)}: " for k, name in enumerate(names)]
    for batch in pieces(batches):
        columns = [cells_of(column, JSON, field) for column, field in zip(batch.columns, schema.fields, strict=True)]
        yield lines(columns, before, "}\n" if names else "{}\n", batch.num_rows)


def csv_lines(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """CSV (RFC 4180 quoting, lines end in a line feed): a null is empty, an empty string is ``""``."""
    for field in schema.fields:  # before the line of names: what cannot be shown is refused before anything is
        check_field_names(field.type)
    yield (",".join(map(csv_cell, schema.names)) + "\n").encode("utf-8", "surrogatepass")
    before = ["" if k == 0 else "," for k in range(len(schema.fields))]
    for batch in pieces(batches):
        columns = [cells_of(column, CSV, field) for column, field in zip(batch.columns, schema.fields, strict=True)]
        yield lines(columns, before, "\n", batch.num_rows)
