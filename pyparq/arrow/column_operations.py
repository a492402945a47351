"""Making, slicing, gathering and joining columns (:mod:`pyparq.arrow.column`) of every type, nested ones included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column, bytes_held
from pyparq.errors import DataError
from pyparq.format.types import DataType
from pyparq.kernels import (
    dict_encode_binary,
    keep_binary,
    keep_bits,
    keep_fixed,
    kept_bytes,
    mask_count,
    mask_rows,
    narrow_offsets,
    string_views,
    take_binary,
)
from pyparq.kernels.buffers import empty_results

Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
MOST_OFFSET = 2**31 - 1
"""A column of more bytes has offsets of 64 bits."""
VIEWS = ("vu", "vz")
VIEW_BUFFER = MOST_OFFSET
"""Bytes of one buffer that string views point into: offsets in it are int32."""
_INLINE = 12
"""Bytes of a string that its view holds itself; a longer one lies in another buffer."""


def pack_mask(mask: Mask | None) -> tuple[npt.NDArray[np.uint8] | None, int]:
    """Validity bitmap and null count of a bool array (``True`` = present); ``(None, 0)`` when nothing is null."""
    if mask is None:
        return None, 0
    nulls = len(mask) - int(np.count_nonzero(mask))
    return (np.packbits(mask, bitorder="little"), nulls) if nulls else (None, 0)


def fixed_column(type_: DataType, values: npt.NDArray[Any], mask: Mask | None = None) -> Column:
    """A column of fixed-width values (one per row, or bytes of shape ``(n, width)``); bool values get packed."""
    validity, nulls = (None, 0) if mask is None else pack_mask(mask)
    if type_.format == "b":
        packed = np.packbits(np.ascontiguousarray(values, np.bool_), bitorder="little")
        return Column(type_, len(values), validity, (packed,), nulls)
    return Column(type_, len(values), validity, (np.ascontiguousarray(values).reshape(-1),), nulls)


def binary_column(
    type_: DataType, offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], mask: Mask | None = None
) -> Column:
    """A string or binary column; offsets get the width that ``type_`` wants.

    Where int32 offsets cannot reach all bytes the column comes out as the large type instead.
    """
    type_, offsets = _fit_offsets(type_, offsets)
    validity, nulls = (None, 0) if mask is None else pack_mask(mask)
    return Column(type_, len(offsets) - 1, validity, (offsets, data), nulls)


def _fit_offsets(type_: DataType, offsets: npt.NDArray[Any]) -> tuple[DataType, npt.NDArray[Any]]:
    if type_.format in ("U", "Z", "+L"):
        return type_, np.ascontiguousarray(offsets, np.int64)
    if offsets.dtype == np.int32:
        return type_, offsets
    if len(offsets) and int(offsets[-1]) > MOST_OFFSET:
        if type_.format == "+m":
            raise DataError("a map column has more than 2^31 - 1 entries in one batch. Use smaller batches")
        large = {"u": "U", "z": "Z", "+l": "+L"}[type_.format]
        return DataType(large, type_.children), np.ascontiguousarray(offsets, np.int64)
    return type_, narrow_offsets(np.ascontiguousarray(offsets, np.int64))


def list_column(type_: DataType, offsets: npt.NDArray[Any], items: Column, mask: Mask | None = None) -> Column:
    """A list, large list or map column over ``items`` (a map's are its entries structs)."""
    type_, offsets = _fit_offsets(type_, offsets)
    validity, nulls = (None, 0) if mask is None else pack_mask(mask)
    return Column(type_, len(offsets) - 1, validity, (offsets,), nulls, (items,))


def struct_column(type_: DataType, children: Sequence[Column], length: int, mask: Mask | None = None) -> Column:
    validity, nulls = pack_mask(mask)
    return Column(type_, length, validity, (), nulls, tuple(children))


def null_column(type_: DataType, length: int) -> Column:
    """``length`` nulls of any type."""
    if type_.format == "n":
        return Column(type_, length, None, (), length)
    none = np.zeros(length, np.bool_)
    if type_.dictionary is not None:
        indices = null_column(DataType(type_.format), length)
        entries = null_column(type_.dictionary, 0)
        return Column(type_, length, indices.validity, indices.buffers, indices.null_count, (), entries)
    if type_.format == "+s":
        return struct_column(type_, [null_column(f.type, length) for f in type_.children], length, none)
    if type_.format.startswith("+w:"):
        size = int(type_.format[3:])
        validity, nulls = pack_mask(none)
        return Column(type_, length, validity, (), nulls, (null_column(type_.children[0].type, length * size),))
    if type_.format in VIEWS:
        validity, nulls = pack_mask(none)
        return Column(type_, length, validity, (np.zeros(16 * length, np.uint8), np.empty(0, np.int64)), nulls)
    if type_.kind == "list_view":
        validity, nulls = pack_mask(none)
        edges = np.zeros(length, np.int64 if type_.format == "+vL" else np.int32)
        return Column(type_, length, validity, (edges, edges), nulls, (null_column(type_.children[0].type, 0),))
    if type_.kind == "run_end":
        ends, runs = (f.type for f in type_.children)
        last = fixed_column(ends, np.full(min(length, 1), length, ends.numpy_dtype))
        return Column(type_, length, None, (), 0, (last, null_column(runs, len(last))))
    if type_.is_nested:
        return list_column(type_, np.zeros(length + 1, np.int64), null_column(type_.children[0].type, 0), none)
    if type_.is_binary_like:
        return binary_column(type_, np.zeros(length + 1, np.int64), np.empty(0, np.uint8), none)
    if type_.format == "b":
        return fixed_column(type_, none, none)
    return fixed_column(type_, np.zeros((length, type_.byte_width), np.uint8), none)


def slice_column(column: Column, start: int, stop: int) -> Column:
    """Elements ``start`` to ``stop``, sharing memory. The null count is -1 (not counted) unless it is 0."""
    if start == 0 and stop == column.length:
        return column
    if column.codes is not None:
        return column.part(start, stop)  # type: ignore[attr-defined, no-any-return]
    nulls = 0 if column.null_count == 0 else stop - start if column.type.format == "n" else -1
    return Column(
        column.type, stop - start, column.validity, column.buffers, nulls, column.children, column.dictionary,
        column.offset + start,
    )  # fmt: skip


def struct_child(column: Column, index: int) -> Column:
    """Child ``index`` of a struct column, cut to the struct's own rows."""
    return slice_column(column.children[index], column.offset, column.offset + column.length)


def list_items(column: Column) -> tuple[npt.NDArray[Any], Column]:
    """Offsets (``length + 1``) and the items they count in, for list, large list, map and fixed-size list."""
    if column.type.format.startswith("+w:"):
        size = int(column.type.format[3:])
        return np.arange(column.offset, column.offset + column.length + 1, dtype=np.int64) * size, column.children[0]
    return column.offsets(), column.children[0]


def ranges(starts: Int64Array, lengths: Int64Array) -> Int64Array:
    """``starts[k], starts[k] + 1, ...`` for ``lengths[k]`` numbers, one range after another."""
    total = int(lengths.sum())
    if total == 0:
        return np.empty(0, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths))


def take(column: Column, rows: Int64Array) -> Column:
    """The elements at ``rows`` (int64, each ``0 <= row < len(column)``, any order) as a new column."""
    rows = np.ascontiguousarray(rows, np.int64)
    if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= column.length):
        raise DataError(
            f"rows {int(rows.min())} to {int(rows.max())} were asked for, but the column has {column.length} rows"
        )
    if column.codes is not None:
        return column.taken(rows)  # type: ignore[attr-defined, no-any-return]
    mask = column.valid_mask()
    mask = None if mask is None else mask[rows]
    type_ = column.type
    if type_.format == "n":
        return null_column(type_, len(rows))
    if type_.dictionary is not None:
        taken = fixed_column(DataType(type_.format), column.values()[rows], mask)
        return Column(type_, taken.length, taken.validity, taken.buffers, taken.null_count, (), column.dictionary)
    if type_.format in VIEWS:  # the views are gathered, and share the bytes that they point to
        views = _views_of(column)[rows]
        validity, nulls = pack_mask(mask)
        return Column(type_, len(rows), validity, (views.reshape(-1), *column.buffers[1:]), nulls)
    if type_.kind == "list_view":
        validity, nulls = pack_mask(mask)
        edges = tuple(np.ascontiguousarray(edge[rows]) for edge in _list_view_edges(column))
        return Column(type_, len(rows), validity, edges, nulls, column.children)
    if type_.format == "+s":
        children = [take(struct_child(column, i), rows) for i in range(len(column.children))]
        return struct_column(holding(type_, children), children, len(rows), mask)
    if type_.format == "+r":  # a run for each row
        ends, values = column.children
        runs = np.searchsorted(ends.values(), rows + column.offset, "right")
        numbers = fixed_column(ends.type, np.arange(1, len(rows) + 1, dtype=ends.type.numpy_dtype))
        return Column(type_, len(rows), None, (), 0, (numbers, take(values, runs)))
    if type_.is_nested:
        return _take_list(column, rows, mask)
    if type_.is_binary_like:
        offsets, data = take_binary(np.ascontiguousarray(column.offsets()), data_of(column), rows)
        taken = binary_column(type_, offsets, data, mask)
    else:
        taken = fixed_column(type_, column.values()[rows], mask)
    taken.dictionary = column.dictionary  # that the values were spelled out from
    return taken


def keep(column: Column, words: Words, count: int) -> Column:
    """The ``count`` elements whose bits are set in ``words`` (as of a :class:`~pyparq.index.row_ranges.RowMask`)."""
    type_ = column.type
    if type_.format == "n":
        return null_column(type_, count)
    width = 16 if type_.format in VIEWS else type_.byte_width
    if type_.is_nested or not (width or type_.format == "b" or type_.is_binary_like):
        return take(column, mask_rows(words))
    validity, nulls = None, 0
    if column.validity is not None and column.null_count:
        kept = keep_bits(words, column.validity, column.offset, column.length)
        nulls = count - mask_count(kept)
        validity = kept.view(np.uint8)[: (count + 7) // 8] if nulls else None
    if type_.format == "b":
        packed = keep_bits(words, column.buffers[0], column.offset, column.length).view(np.uint8)
        return Column(type_, count, validity, (packed[: (count + 7) // 8],), nulls)
    if type_.is_binary_like and type_.dictionary is None:
        buffers: tuple[npt.NDArray[Any], ...] = _keep_binary(column, words, count)
    else:
        start = column.offset * width
        raw = column.buffers[0].reshape(-1).view(np.uint8)[start : start + column.length * width]
        out = empty_results((count * width,), np.uint8)
        keep_fixed(words, raw, width, out)
        buffers = out.view(column.buffers[0].dtype), *column.buffers[1:]  # views share the bytes that they point to
    return Column(type_, count, validity, buffers, nulls, (), column.dictionary)


def _keep_binary(column: Column, words: Words, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    offsets = column.offsets()
    data = empty_results((kept_bytes(words, offsets),), np.uint8)
    edges = empty_results((count + 1,), offsets.dtype)
    keep_binary(words, offsets, data_of(column), edges, data)
    return edges, data


def bytes_taken(column: Column, rows: Int64Array) -> int:
    """About how many bytes :func:`take` allocates. The items of lists count with their average size."""
    if column.type.dictionary is not None or column.type.format in VIEWS or column.type.kind == "list_view":
        return 16 * len(rows)
    if column.type.format == "+s":
        return sum(bytes_taken(struct_child(column, k), rows) for k in range(len(column.children)))
    if not (column.type.is_nested or column.type.is_binary_like):
        return column.type.byte_width * len(rows)
    offsets, items = (column.offsets(), None) if column.type.is_binary_like else list_items(column)
    count = int((offsets[1:][rows].astype(np.int64) - offsets[:-1][rows]).sum())
    if items is None:
        return count + offsets.itemsize * len(rows)
    return count * bytes_held(items) // max(items.length, 1) + offsets.itemsize * len(rows)


def data_of(column: Column) -> npt.NDArray[np.uint8]:
    """The bytes of all texts of a column, one behind the other."""
    return column.buffers[1].view(np.uint8)


def _take_list(column: Column, rows: Int64Array, mask: Mask | None) -> Column:
    offsets, items = list_items(column)
    starts = offsets[:-1][rows].astype(np.int64)
    lengths = offsets[1:][rows].astype(np.int64) - starts
    fixed = column.type.format.startswith("+w:")
    if mask is not None and not fixed:
        lengths[~mask] = 0
    taken = take(items, ranges(starts, lengths))
    type_ = holding(column.type, [taken])
    if fixed:
        validity, nulls = pack_mask(mask)
        return Column(type_, len(rows), validity, (), nulls, (taken,))
    return list_column(type_, np.concatenate(([0], np.cumsum(lengths))), taken, mask)


def concat(columns: Sequence[Column]) -> Column:
    """One column of all elements. The parts have one type, or differ only in how wide their offsets are."""
    if not columns:
        raise DataError("there are no columns to join")
    if len(columns) == 1:
        return columns[0]
    view = next((c.type for c in columns if c.type.format in VIEWS), None)
    if view is not None:
        columns = [c if c.type.format in VIEWS else as_views(c, view) for c in columns]
    type_ = next((c.type for c in columns if c.type.format in ("U", "Z", "+L")), columns[0].type)
    if type_.dictionary is not None:
        return _concat_dictionaries(columns)
    if type_.kind in ("run_end", "union"):
        raise DataError(f"columns of {type_} must be decoded before they are joined")
    length = sum(c.length for c in columns)
    if type_.format == "n":
        return null_column(type_, length)
    masks = [c.valid_mask() for c in columns]
    mask: Mask | None = None
    if any(m is not None for m in masks):
        mask = np.concatenate(
            [np.ones(c.length, np.bool_) if m is None else m for c, m in zip(columns, masks, strict=True)]
        )
    if type_.format in VIEWS:
        return _concat_views(columns, mask)
    if type_.kind == "list_view":
        return _concat_list_views(columns, mask)
    if type_.format == "+s":
        parts = [concat([struct_child(c, i) for c in columns]) for i in range(len(type_.children))]
        return struct_column(holding(type_, parts), parts, length, mask)
    if type_.format.startswith("+w:"):
        validity, nulls = pack_mask(mask)
        items = concat([used_items(c)[1] for c in columns])
        return Column(holding(type_, [items]), length, validity, (), nulls, (items,))
    if type_.is_nested:
        used = [used_items(c) for c in columns]
        items = concat([i for _, i in used])
        return list_column(holding(type_, [items]), _join_offsets([o for o, _ in used]), items, mask)
    if type_.is_binary_like:
        edges = [c.offsets() for c in columns]
        data = np.concatenate([data_of(c)[int(e[0]) : int(e[-1])] for c, e in zip(columns, edges, strict=True)])
        return binary_column(type_, _join_offsets(edges), data, mask)
    return fixed_column(type_, np.concatenate([c.values() for c in columns]), mask)


def holding(type_: DataType, children: Sequence[Column]) -> DataType:
    """``type_`` with the types that its children really have. Offsets may have become wider."""
    fields = (replace(f, type=c.type) for f, c in zip(type_.children, children, strict=True))
    return replace(type_, children=tuple(fields))


def _concat_dictionaries(columns: Sequence[Column]) -> Column:
    """Dictionary-encoded columns over one dictionary, in which every string or binary value occurs once."""
    type_ = columns[0].type
    index_type = DataType(type_.format)
    entries, places = _one_dictionary([c.dictionary for c in columns if c.dictionary is not None])
    if entries.length > 1 << (8 * index_type.byte_width - (index_type.kind == "int")):
        raise DataError(
            f"the dictionary has {entries.length} entries, which is too many for indices of type {index_type}"
        )
    parts = []
    for column, own in zip(columns, places, strict=True):
        indices = Column(index_type, column.length, None, column.buffers, 0, offset=column.offset).values()
        # Indices of null slots may be anything.
        parts.append(np.take(own, indices, mode="clip") if len(own) else np.zeros(column.length, np.int32))
    masks = [c.valid_mask() for c in columns]
    mask = np.concatenate(
        [np.ones(c.length, np.bool_) if m is None else m for c, m in zip(columns, masks, strict=True)]
    )
    joined = fixed_column(index_type, np.concatenate(parts).astype(index_type.numpy_dtype), mask)
    made = replace(type_, dictionary=entries.type)
    return Column(made, joined.length, joined.validity, joined.buffers, joined.null_count, (), entries)


def _one_dictionary(dictionaries: Sequence[Column]) -> tuple[Column, list[npt.NDArray[np.int32]]]:
    """One dictionary for all, and where the entries of each stand in it."""
    first = dictionaries[0]
    if all(d is first for d in dictionaries):
        return first, [np.arange(first.length, dtype=np.int32)] * len(dictionaries)
    entries = concat(dictionaries)
    places = np.arange(entries.length, dtype=np.int32)
    if entries.type.is_binary_like and entries.null_count == 0:
        places, firsts = dict_encode_binary(entries.offsets().astype(np.int64), data_of(entries), 2**63 - 1)
        entries = take(entries, firsts)
    ends = np.cumsum([d.length for d in dictionaries])
    return entries, np.split(places, ends[:-1])


# ---- views ---------------------------------------------------------------------------------------------------------


def as_views(column: Column, type_: DataType) -> Column:
    """A string or binary column as views of its bytes, in several buffers where one would pass 2 GiB."""
    offsets, data = column.offsets(), data_of(column)
    if int(offsets[-1]) > VIEW_BUFFER:
        first, last = int(offsets[0]), int(offsets[-1])
        offsets, data = offsets - first, data[first:last]
    views = empty_results((16 * column.length,), np.uint8)
    validity, nulls = column.validity if column.null_count else None, column.null_count
    bits = None if validity is None else validity.view(np.uint8)
    starts = string_views(offsets, data, bits, column.offset, VIEW_BUFFER, views)
    if column.offset:
        validity, nulls = pack_mask(column.valid_mask())
    buffers = [data[start:end] for start, end in pairwise([*starts, len(data)])]
    return Column(type_, column.length, validity, (views, *buffers, _sizes(buffers)), nulls)


def _sizes(buffers: Sequence[npt.NDArray[Any]]) -> Int64Array:
    return np.array([len(buffer) for buffer in buffers], np.int64)


def _views_of(column: Column) -> npt.NDArray[np.int32]:
    """int32 of shape ``(length, 4)``: a length, then the bytes themselves or (prefix, buffer, offset)."""
    raw = column.buffers[0].view(np.uint8)[16 * column.offset : 16 * (column.offset + column.length)]
    return np.ascontiguousarray(raw).view(np.int32).reshape(-1, 4)


def _concat_views(columns: Sequence[Column], mask: Mask | None) -> Column:
    """The views gather, and look at the same buffers as before under other numbers."""
    views: list[npt.NDArray[np.int32]] = []
    looked_at: list[npt.NDArray[Any]] = []
    for column in columns:
        own = _views_of(column).copy()
        own[own[:, 0] > _INLINE, 2] += len(looked_at)
        views.append(own)
        looked_at += column.buffers[1:-1]
    sizes = np.array([buffer.nbytes for buffer in looked_at], np.int64)
    validity, nulls = pack_mask(mask)
    length = sum(map(len, views))
    return Column(columns[0].type, length, validity, (np.concatenate(views).reshape(-1), *looked_at, sizes), nulls)


def _list_view_edges(column: Column) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Where each list starts among the items, and how many it has."""
    dtype = np.int64 if column.type.format == "+vL" else np.int32
    starts, sizes = (b.view(dtype)[column.offset : column.offset + column.length] for b in column.buffers[:2])
    return starts, sizes


def _concat_list_views(columns: Sequence[Column], mask: Mask | None) -> Column:
    items = concat([column.children[0] for column in columns])
    starts, sizes, base = [], [], 0
    for column in columns:
        first, size = _list_view_edges(column)
        starts.append(first.astype(np.int64) + base)
        sizes.append(size)
        base += column.children[0].length
    type_ = next((c.type for c in columns if c.type.format == "+vL"), columns[0].type)
    dtype = np.int64 if type_.format == "+vL" else np.int32
    if dtype is np.int32 and base > MOST_OFFSET:
        raise DataError("the list items are too many for int32 offsets. Join fewer rows")
    buffers = (np.concatenate(starts).astype(dtype), np.concatenate(sizes).astype(dtype))
    validity, nulls = pack_mask(mask)
    return Column(holding(type_, [items]), sum(map(len, sizes)), validity, buffers, nulls, (items,))


# ---- slices by themselves ------------------------------------------------------------------------------------------


def trimmed(column: Column) -> Column:
    """The same values with buffers cut to what they need, in most layouts. For slices that are sent or kept."""
    type_, length, start = column.type, column.length, column.offset
    if type_.format == "n" or type_.kind in ("list_view", "run_end", "union"):
        return column
    validity, nulls = column.validity, column.null_count
    if validity is not None:
        validity, nulls = pack_mask(column.valid_mask())
    children: tuple[Column, ...] = ()
    if type_.format == "+s":
        buffers: tuple[npt.NDArray[Any], ...] = ()
        children = tuple(trimmed(struct_child(column, k)) for k in range(len(column.children)))
    elif type_.is_nested:
        offsets, items = list_items(column)
        first, last = int(offsets[0]), int(offsets[-1])
        buffers = () if type_.format.startswith("+w:") else (offsets - offsets[0],)
        children = (trimmed(slice_column(items, first, last)),)
    elif type_.is_binary_like and type_.dictionary is None:
        offsets = column.offsets()
        buffers = (offsets - offsets[0], data_of(column)[int(offsets[0]) : int(offsets[-1])])
    elif type_.format in VIEWS:
        buffers = (_views_of(column).reshape(-1), *column.buffers[1:])
    elif type_.format == "b":
        buffers = (np.packbits(column.values(), bitorder="little"),)
    else:
        width = type_.byte_width
        buffers = (column.buffers[0].reshape(-1).view(np.uint8)[start * width : (start + length) * width],)
    return Column(type_, length, validity, buffers, nulls, children, column.dictionary)


def used_items(column: Column) -> tuple[npt.NDArray[Any], Column]:
    """The offsets of a list or map, and the items from the first one to the last."""
    offsets, items = list_items(column)
    return offsets, slice_column(items, int(offsets[0]), int(offsets[-1]))


def _join_offsets(parts: Sequence[npt.NDArray[Any]]) -> Int64Array:
    joined = np.empty(sum(len(p) - 1 for p in parts) + 1, np.int64)
    joined[0] = at = 0
    for part in parts:
        end = at + len(part) - 1
        joined[at + 1 : end + 1] = part[1:]
        joined[at + 1 : end + 1] += int(joined[at]) - int(part[0])
        at = end
    return joined
