"""Checks the ColumnIndex and OffsetIndex of a chunk against its pages (PageIndex.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize
from pyparq.index.bounds import ASCENDING, DESCENDING, UNORDERED
from pyparq.maintenance.verify.bounds import ChunkValues, Stated, TrueBounds, in_order
from pyparq.maintenance.verify.report import Findings
from pyparq.read.decode.chunk_pages import ChunkPages

Int64Array = npt.NDArray[np.int64]
OFFSET, COLUMN = "OffsetIndex", "ColumnIndex"


def first_difference(stated: Any, true: Int64Array) -> tuple[int, int]:
    """(the first position where two arrays differ, the number of differences). ``(-1, 0)`` if they are equal."""
    wrong = np.flatnonzero(np.asarray(stated, np.int64) != true)
    return (int(wrong[0]), len(wrong)) if len(wrong) else (-1, 0)


def may_be_left_out(num_values: Int64Array, encrypted: bool) -> Int64Array:
    """The ordinals of the data pages that the indexes of a chunk may leave out, all of them or none. See
    :mod:`pyparq.index.page_index`.

    ``num_values``: values of each page, nulls included.
    """
    empty = np.flatnonzero(num_values == 0)
    return np.empty(0, np.int64) if encrypted else empty[empty > 0]


def check_offset_index(
    data: Any, stored: ChunkPages, values: ChunkValues | None, findings: Findings, *, byte_counts: bool,
    encrypted: bool,
) -> int:  # fmt: skip
    """Offsets and sizes against the pages, first rows and (``byte_counts``) bytes against what they hold. ``values`` is
    ``None`` where they do not decode. Returns how many pages the index lists. Raises :class:`ParquetError` for bytes
    that are no OffsetIndex."""
    index, _ = deserialize(tt.OffsetIndex, data)
    num_listed = len(index.page_locations)
    left_out = may_be_left_out(np.array([page.num_values for page in stored.pages], np.int64), encrypted)
    if len(left_out) and num_listed == len(stored.pages) - len(left_out):
        _put_back(index, left_out.tolist(), stored, values)
    _check_locations(index, stored, values, findings, byte_counts)
    return num_listed


def _put_back(index: Any, left_out: list[int], stored: ChunkPages, values: ChunkValues | None) -> None:
    """Insert the pages without values into an OffsetIndex that leaves them out."""
    sizes = index.unencoded_byte_array_data_bytes
    whole = sizes is not None and len(sizes) == len(index.page_locations)
    for k in left_out:
        page = stored.pages[k]
        row = 0 if values is None else int(values.first_rows[k])
        index.page_locations.insert(k, tt.PageLocation(page.offset, page.size, row))
        if whole:
            sizes.insert(k, 0)


def _check_locations(
    index: Any, stored: ChunkPages, values: ChunkValues | None, findings: Findings, byte_counts: bool
) -> None:
    listed = index.page_locations
    if len(listed) != len(stored.pages):
        findings.add("index", OFFSET, f"it lists {len(listed)} pages, but the chunk has {len(stored.pages)} data pages")
        return
    for name, true in (
        ("offset", [page.offset for page in stored.pages]),
        ("compressed_page_size", [page.size for page in stored.pages]),
    ):
        _compare([getattr(p, name) for p in listed], np.array(true, np.int64), name, "location", OFFSET, findings)
    if values is None:
        return
    first_rows = [p.first_row_index for p in listed]
    page, pages = first_difference(first_rows, values.first_rows)
    if pages:
        text = f"first_row_index is {first_rows[page]}, but the page starts with row {values.first_rows[page]}"
        findings.add("location", OFFSET, text, page, int(values.first_rows[page]), pages)
    _check_starts(values, findings)
    sizes = index.unencoded_byte_array_data_bytes
    if sizes is not None and byte_counts:
        _compare(sizes, values.byte_counts, "unencoded_byte_array_data_bytes", "size", OFFSET, findings)


def _check_starts(values: ChunkValues, findings: Findings) -> None:
    """Check that the pages in an OffsetIndex begin with a row."""
    middle = [k for k, reps in enumerate(values.rep_levels) if reps is not None and len(reps) and reps[0] != 0]
    if middle:
        row = int(values.first_rows[middle[0]]) - 1
        text = "the page starts in the middle of a row, which an OffsetIndex cannot express"
        findings.add("location", OFFSET, text, middle[0], max(row, 0), len(middle))


def _compare(stated: Any, true: Int64Array, name: str, kind: str, structure: str, findings: Findings) -> None:
    if len(stated) != len(true):
        findings.add("index", structure, f"it has {len(stated)} {name} for {len(true)} pages")
        return
    page, pages = first_difference(stated, true)
    if pages:
        findings.add(kind, structure, f"{name} is {stated[page]}, but it should be {true[page]}", page, pages=pages)


def check_column_index(
    data: Any, values: ChunkValues, bounds: TrueBounds | None, num_listed: int | None, findings: Findings
) -> None:
    """Null pages, counts, histograms, and where ``bounds`` is given those of the pages and their order. The OffsetIndex
    lists ``num_listed`` pages, if that is known.

    Raises :class:`ParquetError` for bytes that are no ColumnIndex."""
    index, _ = deserialize(tt.ColumnIndex, data)
    left_out = may_be_left_out(values.num_levels, values.chunk.crypto.encrypted)
    if len(left_out) and len(index.null_pages) == values.num_pages - len(left_out):
        if num_listed == values.num_pages:
            text = f"it has {len(index.null_pages)} pages, but the OffsetIndex lists {num_listed}"
            findings.add("index", COLUMN, text)
            return
        _spread(index, left_out.tolist(), values)
    elif num_listed == values.num_pages - len(left_out) and num_listed != values.num_pages:
        text = f"it has {len(index.null_pages)} pages, but the OffsetIndex lists {num_listed}"
        findings.add("index", COLUMN, text)
        return
    lists = ("null_pages", "min_values", "max_values", "null_counts", "nan_counts")
    lengths = {name: len(found) for name in lists if (found := getattr(index, name)) is not None}
    wrong = {name: length for name, length in lengths.items() if length != values.num_pages}
    for name, length in wrong.items():
        findings.add("index", COLUMN, f"it has {length} {name}, but the chunk has {values.num_pages} data pages")
    if wrong:
        return
    is_null = (values.num_present == 0).astype(np.int64)
    page, pages = first_difference(index.null_pages, is_null)
    if pages:
        what = "holds no value" if is_null[page] else f"holds {values.num_present[page]} values"
        text = f"null_pages is {bool(index.null_pages[page])}, but the page {what}"
        findings.add("count", COLUMN, text, page, int(values.first_rows[page]), pages)
    if index.null_counts is not None:
        _compare(index.null_counts, values.num_levels - values.num_present, "null_counts", "count", COLUMN, findings)
    if bounds is not None and index.nan_counts is not None and bounds.pages.nan_counts is not None:
        _compare(index.nan_counts, bounds.pages.nan_counts, "nan_counts", "count", COLUMN, findings)
    _check_histograms(index, values, findings)
    if bounds is not None:
        _check_bounds(index, bounds, findings)


def _spread(index: Any, left_out: list[int], values: ChunkValues) -> None:
    """Insert the pages without values into a ColumnIndex that leaves them out."""
    node, pages = values.chunk.node, len(index.null_pages)
    entries: dict[str, list[Any]] = {
        "null_pages": [True],
        "min_values": [b""],
        "max_values": [b""],
        "null_counts": [0],
        "nan_counts": [0],
    }
    entries["definition_level_histograms"] = [0] * (node.max_def + 1)
    entries["repetition_level_histograms"] = [0] * (node.max_rep + 1)
    for name, entry in entries.items():
        listed, width = getattr(index, name), len(entry)
        if listed is not None and len(listed) == pages * width:
            for k in left_out:
                listed[k * width : k * width] = entry


def _check_bounds(index: Any, bounds: TrueBounds, findings: Findings) -> None:
    lows: list[bytes | None] = list(index.min_values)
    highs: list[bytes | None] = list(index.max_values)
    bounds.check(Stated(COLUMN, "min_values", "max_values", lows, highs), findings)
    claimed = index.boundary_order
    if claimed not in (UNORDERED, ASCENDING, DESCENDING):
        findings.add("boundary order", COLUMN, f"boundary_order {claimed} does not exist")
    if claimed not in (ASCENDING, DESCENDING):
        return
    nulls = np.array(index.null_pages, bool)
    for name, raw in (("min_values", lows), ("max_values", highs)):
        listed, usable = in_order(bounds.leaf, raw, bounds.order)
        there = np.flatnonzero(usable & ~nulls)
        above, below = listed[there[:-1]], listed[there[1:]]
        wrong = np.flatnonzero(np.asarray(above > below if claimed == ASCENDING else above < below, bool))
        if len(wrong):
            page = int(there[int(wrong[0]) + 1])
            stated = "ASCENDING" if claimed == ASCENDING else "DESCENDING"
            text = f"boundary_order is {stated}, but {name} of the page is {_side(claimed)} than that of the one before"
            findings.add("boundary order", COLUMN, text, page, int(bounds.values.first_rows[page]), len(wrong))


def _side(claimed: int) -> str:
    return "smaller" if claimed == ASCENDING else "larger"


def _check_histograms(index: Any, values: ChunkValues, findings: Findings) -> None:
    node = values.chunk.node
    for name, maximum in (
        ("definition_level_histograms", node.max_def),
        ("repetition_level_histograms", node.max_rep),
    ):
        listed = getattr(index, name)
        if not listed or (maximum == 0 and name.startswith("repetition")):
            continue
        if len(listed) != values.num_pages * (maximum + 1):
            text = f"{name} has {len(listed)} entries for {values.num_pages} pages and {maximum + 1} levels"
            findings.add("index", COLUMN, text)
            continue
        true = values.def_histograms if name.startswith("definition") else values.rep_histograms
        stated = np.array(listed, np.int64).reshape(true.shape)
        wrong = np.flatnonzero((stated != true).any(axis=1))
        if len(wrong):
            page = int(wrong[0])
            text = f"{name} of the page is {stated[page].tolist()}, but it should be {true[page].tolist()}"
            findings.add("histogram", COLUMN, text, page, pages=len(wrong))
