"""The decoded values of a column chunk, and stated bounds (of chunk statistics, page headers and ColumnIndexes) against
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.format import int96
from pyparq.format import ttypes as tt
from pyparq.format.leaf_values import BinaryValues, Values, size_of
from pyparq.format.order import FLOAT_KINDS, BoolArray, Order, SegmentBounds, decode_bounds, domain, stored_dtype
from pyparq.format.types import LeafType
from pyparq.maintenance.verify import bounds as total_order
from pyparq.maintenance.verify.report import Findings
from pyparq.read.decode.chunk_pages import ChunkPages, PageRun, PageValues


def keys(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Signed integers of the floats' width whose ``<`` is the total order."""
    bits = np.ascontiguousarray(values).view(np.dtype(f"<i{values.itemsize}"))
    return np.asarray(bits ^ ((bits >> (8 * values.itemsize - 1)) & np.iinfo(bits.dtype).max))


class ChunkValues(PageValues):
    """The decoded pages of one column chunk."""

    def __init__(self, pages: ChunkPages) -> None:
        """Raises :class:`ParquetError`, with the page, if a page does not decode."""
        self.chunk = pages.chunk
        entries = pages.entries()
        counts = [page.num_values for page in pages.pages]
        last = max((k + 1 for k, count in enumerate(counts) if count), default=0)
        run = pages.decode(last=last, entries=entries)
        super().__init__(pages.chunk.node, _padded(run, len(counts) - last, pages.chunk.node.max_rep > 0), entries)
        pages.release(self.size + (0 if entries is None else size_of(entries)))
        self.first_rows = np.cumsum(self.num_rows) - self.num_rows
        """The row that each page begins with."""

    def row_of(self, page: int, value: int) -> int:
        """The row of value number ``value`` of a page, nulls not counted."""
        defs, reps = self.def_levels[page], self.rep_levels[page]
        slot = value if defs is None else int(np.flatnonzero(defs == self.chunk.node.max_def)[value])
        before = slot if reps is None else int(np.count_nonzero(reps[: slot + 1] == 0)) - 1
        return int(self.first_rows[page]) + before

    def place_of_code(self, code: int) -> tuple[int, int]:
        """The first page and row with this dictionary code."""
        at = int(np.flatnonzero(self.codes == code)[0])
        k = int(np.searchsorted(self.code_edges, at, side="right")) - 1
        page = int(self.coded_pages[k])
        return page, self.row_of(page, at - int(self.code_edges[k]))

    def place_of_value(self, at: int) -> tuple[int, int]:
        """The page and row of value number ``at``, counted among the values that are not dictionary-encoded."""
        k = int(np.searchsorted(self.value_edges, at, side="right")) - 1
        page = int(self.direct_pages[k])
        return page, self.row_of(page, at - int(self.value_edges[k]))


def _padded(run: PageRun, count: int, nested: bool) -> PageRun:
    """The run with ``count`` more pages without values. Pages behind the last value are not opened."""
    if not count:
        return run
    empty = np.tile(np.array([0, 0, 0, 0 if nested else -1, -1], np.int64), (count, 1))
    return run._replace(
        numbers=np.concatenate([run.numbers, empty]), is_coded=np.concatenate([run.is_coded, np.zeros(count, bool)])
    )


Raw = Sequence[bytes | None]

SHOWN = 40
"""Characters of a value in a finding."""


def in_order(leaf: LeafType, raw: Raw, order: Order) -> tuple[npt.NDArray[Any], BoolArray]:
    """PLAIN values as an array in which ``<`` is the column's order, and a mask of the values that can be bounds."""
    if order == Order.INT96:
        joined, usable = _joined(raw, 12)
        return int96.keys(np.frombuffer(joined, np.uint8)), usable
    if order != Order.TOTAL or leaf.kind not in FLOAT_KINDS:
        return decode_bounds(leaf, raw)
    dtype = stored_dtype(leaf)
    assert dtype is not None
    joined, usable = _joined(raw, dtype.itemsize)
    return total_order.keys(np.frombuffer(joined, dtype)), usable


def _joined(raw: Raw, width: int) -> tuple[bytes, BoolArray]:
    """The bytes of all values, with zeros for those that have another width, and a mask of the others."""
    usable = np.array([r is not None and len(r) == width for r in raw], bool)
    blank = bytes(width)
    return b"".join(r if ok and r is not None else blank for r, ok in zip(raw, usable.tolist(), strict=True)), usable


def beyond(values: Values, leaf: LeafType, order: Order, bound: bytes, below: bool) -> BoolArray:
    """Which values are less than ``bound`` (``below``), or greater."""
    if isinstance(values, BinaryValues):
        compare = kernels.compare_binary_decimal if domain(leaf) == "decimal" else kernels.compare_binary
        signs: npt.NDArray[Any] = compare(values.offsets, values.data, bound)
    elif domain(leaf) in ("bytes", "decimal"):
        flat = np.ascontiguousarray(values).reshape(-1)
        signs = kernels.compare_flba(flat, leaf.width, domain(leaf) == "decimal", bound)
    else:
        limit, _ = in_order(leaf, [bound], order)
        found = _numbers(values, leaf, order)
        return np.asarray(found < limit[0] if below else found > limit[0])
    return signs < 0 if below else signs > 0


def _numbers(values: npt.NDArray[Any], leaf: LeafType, order: Order) -> npt.NDArray[Any]:
    if domain(leaf) == "int96":
        return int96.keys(values)
    dtype = stored_dtype(leaf)
    assert dtype is not None
    numbers = values.reshape(-1).view(dtype)
    return total_order.keys(numbers) if order == Order.TOTAL and leaf.kind in FLOAT_KINDS else numbers


def shown(leaf: LeafType, raw: bytes | None) -> str:
    """A bound as readable text."""
    if raw is None:
        return "nothing"
    if domain(leaf) == "bytes":
        text = repr(raw.decode("utf-8", "backslashreplace") if leaf.is_text else raw)
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    values, usable = decode_bounds(leaf, [raw])
    return str(values[0]) if usable[0] else raw[:16].hex() or "no bytes"


@dataclass(slots=True)
class Stated:
    """The bounds that a structure states: one pair for each page, or one for all pages."""

    structure: str
    low_name: str
    high_name: str
    lows: Raw
    highs: Raw
    exact: tuple[bool, bool] = (False, False)
    """Whether the one pair claims to be the extreme values."""


class TrueBounds:
    """The true bounds of a chunk's pages, or of one of them."""

    def __init__(self, values: ChunkValues, order: Order, pages: SegmentBounds | None = None, first: int = 0) -> None:
        self.values = values
        self.leaf = values.leaf
        self.order = order
        self.pages: SegmentBounds = values.page_bounds(order) if pages is None else pages
        """As PLAIN bytes."""
        self.mins, self.has_values = in_order(self.leaf, self.pages.mins, order)
        self.maxs, _ = in_order(self.leaf, self.pages.maxs, order)
        self._first = first
        """The ordinal of the first page."""
        self.in_all = self._in_all()
        """The pages whose values count for a bound of all pages."""

    def _in_all(self) -> BoolArray:
        """In the total order, NaN is a bound of a page with nothing else. Bounds of all pages ignore NaN as soon as one
        value is a number (parquet.thrift, IEEE754TotalOrder)."""
        dtype = stored_dtype(self.leaf)
        if self.order != Order.TOTAL or self.leaf.kind not in FLOAT_KINDS or dtype is None:
            return self.has_values
        blank = bytes(dtype.itemsize)
        joined = b"".join(
            blank if low is None or not there else low
            for low, there in zip(self.pages.mins, self.has_values, strict=True)
        )
        numbers = self.has_values & ~np.isnan(np.frombuffer(joined, dtype))
        return numbers if numbers.any() else self.has_values

    def of_page(self, page: int) -> TrueBounds:
        """The true bounds of one page."""
        mins, maxs, nans = self.pages.mins, self.pages.maxs, self.pages.nan_counts
        part = SegmentBounds(mins[page : page + 1], maxs[page : page + 1], None if nans is None else nans[page:][:1])
        return TrueBounds(self.values, self.order, part, page)

    def check(self, stated: Stated, findings: Findings) -> None:
        """Report the first page, on each side, with a value outside of its bounds, and bounds that are invalid."""
        for raw, below, name, true in (
            (stated.lows, True, stated.low_name, self.mins),
            (stated.highs, False, stated.high_name, self.maxs),
        ):
            self._check_side(raw, below, name, stated.structure, true, findings)
        if len(stated.lows) == 1 and any(stated.exact):
            self._check_exact(stated, findings)

    def _check_side(
        self, raw: Raw, below: bool, name: str, structure: str, true: npt.NDArray[Any], findings: Findings
    ) -> None:
        bounds, usable = in_order(self.leaf, raw, self.order)
        per_page = len(raw) != 1 or len(true) == 1
        has_values = self.has_values if per_page else self.in_all
        useless = has_values & ~(usable if per_page else usable[0])
        if useless.any():
            there = np.array([r is not None and not self._is_excused(r) for r in raw], bool)
            useless &= there if per_page else there[0]
        if useless.any():
            page = int(np.flatnonzero(useless)[0])
            said = shown(self.leaf, raw[page if per_page else 0])
            text = f"{name} is {said}, which cannot be a bound of {self.leaf.kind} values"
            findings.add("bounds", structure, text, self._first + page if per_page else None, pages=int(useless.sum()))
        side = np.asarray(true < bounds if below else true > bounds, bool) & has_values & usable
        if side.any():
            page = int(np.flatnonzero(side)[0])
            text, row = self._report(page, raw[page if per_page else 0], below, name)
            findings.add("bounds", structure, text, self._first + page, row, int(side.sum()))

    def _is_excused(self, bound: bytes) -> bool:
        """Whether a NaN bound is harmless. NaN is no bound, but parquet-java takes it for the largest number, and
        readers ignore it. So it is wrong only if no value is NaN."""
        dtype = stored_dtype(self.leaf)
        if self.pages.nan_counts is None or dtype is None or len(bound) != dtype.itemsize:
            return False
        return bool(np.isnan(np.frombuffer(bound, dtype)[0])) and bool(self.pages.nan_counts.any())

    def _report(self, page: int, bound: bytes | None, below: bool, name: str) -> tuple[str, int | None]:
        """Report the wrong bound of a page, and the first row that shows it."""
        assert bound is not None
        ordinal = self._first + page
        found = np.flatnonzero(beyond(self.values.page_values(ordinal), self.leaf, self.order, bound, below))
        row = self.values.row_of(ordinal, int(found[0])) if len(found) else None
        worst = shown(self.leaf, self.pages.mins[page] if below else self.pages.maxs[page])
        than = f"smaller values, down to {worst}" if below else f"larger values, up to {worst}"
        return f"{name} is {shown(self.leaf, bound)}, but the page holds {than}", row

    def _check_exact(self, stated: Stated, findings: Findings) -> None:
        there = np.flatnonzero(self.in_all)
        if not len(there):
            return
        sides = (
            (stated.exact[0], stated.lows, self.mins, True, stated.low_name),
            (stated.exact[1], stated.highs, self.maxs, False, stated.high_name),
        )
        for claimed, raw, true, below, name in sides:
            bounds, usable = in_order(self.leaf, raw, self.order)
            if not claimed or raw[0] is None or not usable[0]:
                continue
            page = int(there[int(np.argmin(true[there]) if below else np.argmax(true[there]))])
            if true[page] > bounds[0] if below else true[page] < bounds[0]:
                worst = self.pages.mins[page] if below else self.pages.maxs[page]
                text = (
                    f"is_{name}_exact is set and {name} is {shown(self.leaf, raw[0])}, but the "
                    f"{'smallest' if below else 'largest'} value is {shown(self.leaf, worst)}"
                )
                findings.add("exactness", stated.structure, text, self._first + page)


def of_statistics(statistics: tt.Statistics, leaf: LeafType, order: Order, structure: str) -> list[Stated]:
    """The bounds of statistics that are valid under ``order``. The deprecated pair was computed by signed comparison,
    so it is valid for signed numbers only."""
    found = []
    if order in (Order.TYPE, Order.TOTAL, Order.INT96):
        exact = bool(statistics.is_min_value_exact), bool(statistics.is_max_value_exact)
        low, high = statistics.min_value, statistics.max_value
        if low is not None or high is not None:
            found.append(Stated(structure, "min_value", "max_value", [low], [high], exact))
    if domain(leaf) in ("int", "float") and (statistics.min is not None or statistics.max is not None):
        found.append(Stated(structure, "min", "max", [statistics.min], [statistics.max]))
    return found
