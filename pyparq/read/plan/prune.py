"""Narrows row groups to the rows that can match. The cheapest index is asked first.

There are two sets of rows per test and row group. ``maybe`` holds every row that can match, ``sure`` holds rows that
certainly match. Each stage asks one kind of index, and narrows ``maybe`` or widens ``sure``. AND and OR combine the
sets of their tests. A stage asks only about rows that are in ``maybe`` and not in ``sure``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.errors import ParquetError
from pyparq.filters.computed import Computed
from pyparq.filters.leaf_binding import compare_literal
from pyparq.filters.leaf_tests import Test, is_box_test, may_intersect
from pyparq.filters.predicate import Predicate, conjunction, disjunction, null_test, rewritten
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.index.row_ranges import RowRanges
from pyparq.index.statistics import Bounds, bounds_of_chunks, bounds_of_numbers
from pyparq.io.byte_ranges import Range
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.ahead import MOST_CHUNKS, EarlyReads, chosen, chunks_to_locate, hold
from pyparq.read.plan.bloom_probe import HEADER
from pyparq.read.plan.candidates import Candidates, Selection, StageReport, Trace
from pyparq.read.plan.page_indexes import offset_index_range, page_index_ranges, read_locations
from pyparq.read.plan.stages import BloomStage, DictionaryStage, ask_page_indexes, page_counts

Shares = npt.NDArray[np.float64]

USELESS = 0.95
"""From this share on no index is read for a test, as it can save a twentieth of the pages at most."""

UNKNOWN = 0.5


# ---- boxes of geometries in columns of their own: ``covering.bbox`` of GeoParquet 1.1, in the key ``geo`` of a file
#
# Statistics and page indexes of these columns rule out row groups and pages that no box intersects. Rows are tested by
# the geometries themselves.


GEO = b"geo"
_SIDES = ("xmin", "ymin", "xmax", "ymax")
_DEEPEST = 100


class Covering(NamedTuple):
    """The columns with the boxes of one column of geometries."""

    xmin: Node
    ymin: Node
    xmax: Node
    ymax: Node
    bounds_x: bool
    """Whether no box crosses the antimeridian."""
    some_missing: bool = True
    """Whether a geometry may be without a box."""

    @property
    def sides(self) -> list[Node]:
        return [self.xmin, self.ymin, self.xmax, self.ymax]


def coverings_of(tree: SchemaTree, key_values: Mapping[bytes, bytes]) -> dict[int, Covering]:
    """The coverings of a file, by the number of the leaf with the geometries.

    What is no such metadata, or names columns that are not there, is passed over: nothing is pruned then.
    """
    try:
        columns = json.loads(key_values[GEO])["columns"]
        found = {tree.find((name,)).column: _covering(tree, given) for name, given in columns.items()}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ParquetError):
        return {}
    return {column: covering for column, covering in found.items() if covering is not None}


def _covering(tree: SchemaTree, given: Any) -> Covering | None:
    with suppress(KeyError, TypeError, AttributeError, ParquetError):
        box = given["covering"]["bbox"]
        leaves = [tree.find(tuple(box[side])) for side in _SIDES]
        if all(leaf.is_leaf and leaf.max_rep == 0 and leaf.type.kind in ("float", "double") for leaf in leaves):
            xmin, ymin, xmax, ymax = leaves
            return Covering(xmin, ymin, xmax, ymax, _bounds_x(given))
    return None


def _bounds_x(given: Mapping[str, Any]) -> bool:
    """Whether boxes reach from west to east. On a globe they may do otherwise, as the box of the column tells."""
    whole: list[Any] = given.get("bbox") or []
    crosses = len(whole) in (4, 6) and whole[0] > whole[len(whole) // 2]
    return not crosses and given.get("edges", "planar") == "planar"


def with_coverings(predicate: Predicate, coverings: Mapping[int, Covering]) -> Predicate:
    """The predicate with tests of the boxes beside each test of a geometry that has one."""

    def change(test: Test | Computed) -> Predicate:
        if not isinstance(test, Test) or test.op != "intersects box" or test.leaf.kind == "geography":
            return test
        covering = coverings.get(test.column)
        return test if covering is None else conjunction([test, *_tests(covering, *test.literal)])

    return rewritten(predicate, change)


def _tests(covering: Covering, xmin: float, ymin: float, xmax: float, ymax: float) -> Iterator[Predicate]:
    sides = [(covering.ymin, "<=", ymax), (covering.ymax, ">=", ymin)]
    if covering.bounds_x and xmin <= xmax:
        sides += [(covering.xmin, "<=", xmax), (covering.xmax, ">=", xmin)]
    for leaf, op, number in sides:
        test = _test(leaf, op, number)
        yield disjunction([test, null_test(leaf, True)]) if covering.some_missing else test


def _test(leaf: Node, op: str, number: float) -> Predicate:
    if leaf.type.kind == "float":  # the box may have been rounded inwards
        with np.errstate(over="ignore"):
            number = float(np.nextafter(np.float32(number), np.float32(np.inf if op == "<=" else -np.inf)))
    test = compare_literal(leaf, op, number)
    if isinstance(test, Test):
        test.no_nan = True  # an empty geometry may have a box of NaN
    return test


if TYPE_CHECKING:
    from logging import Logger


def log_stages(logger: Logger, source: str, reports: Sequence[StageReport]) -> None:
    """Write a debug line for each stage."""
    for stage in reports:
        logger.debug(
            "%s: pruned by %s: row groups %d -> %d, rows %d -> %d, %d indexes asked, %d requests, %d bytes",
            source, stage.name, stage.row_groups_before, stage.row_groups_after, stage.rows_before, stage.rows_after,
            stage.asked, stage.requests, stage.bytes,
        )  # fmt: skip


class Pruner:
    """Runs the stages over the row groups of one file."""

    def __init__(
        self,
        file: OpenFile,
        predicate: Predicate,
        row_groups: Sequence[int],
        within: Mapping[int, RowRanges] | None = None,
        account: Account | None = None,
        outputs: Sequence[Node] = (),
        *,
        ask_filters: bool = True,
        trace: Trace | None = None,
        early: EarlyReads | None = None,
    ) -> None:
        """``within``: the requested rows, for row groups of which only some are. ``account`` counts the
        decoded dictionaries. ``outputs``: the columns that will be read for the rows that are left. ``ask_filters``:
        whether to ask Bloom filters. ``trace``: where to note what each stage leaves. ``early``: requests what may be
        read beside the indexes, if rows will be read at once."""
        self.file = file
        self.options = file.options
        asked = _with_coverings(file, predicate, row_groups)
        self._rows = Candidates(file, asked, row_groups, within or {}, predicate.columns())
        self._outputs = outputs
        self._ask_filters = ask_filters and file.options.use_bloom_filters
        self._account = account
        self._bloom: BloomStage | None = None
        self._dictionaries: DictionaryStage | None = None
        self.reports: list[StageReport] = []
        self._trace = trace
        self._early = early
        self._not_reported = 0, 0
        """Requests and bytes that belong to the stages to come."""

    @property
    def dictionaries_decoded(self) -> int:
        return 0 if self._dictionaries is None else self._dictionaries.decoded

    def run(self) -> list[Selection]:
        """The row groups that may hold matching rows, each with its row ranges."""
        if self.options.use_statistics:
            self._by_statistics()
        else:
            self._rows.select()
        rows, options = self._rows, self.options
        if not rows.selections:
            return []
        if self._ask_filters and rows.may_learn(rows.with_filters):
            self._bloom = BloomStage(rows)
        if options.use_dictionaries and rows.may_learn(rows.with_dictionaries):
            self._dictionaries = DictionaryStage(rows, self._account or Account(options.limits))
        if not self.file.fetcher.is_slow:
            self._by_indexes()
        else:
            with self._asked_together():
                self._by_indexes()
        if self._dictionaries is not None:
            self._stage("dictionary", self._dictionaries.run, False)
        if self._early is not None:
            self._early.count_use(bool(self._rows.selections))
        return self._rows.selections

    def _by_indexes(self) -> None:
        if self._bloom is not None:
            self._stage("bloom filter", self._bloom.run)
        if self._dictionaries is not None:
            self._stage("dictionary", self._dictionaries.run, True)
        if self.options.use_page_index and (self._rows.computed or self._rows.may_learn(self._rows.with_page_indexes)):
            self._stage("column index", ask_page_indexes, self._rows)

    @contextmanager
    def _asked_together(self) -> Iterator[None]:
        """Within this context, most requests of the stages are answered from one joint request."""
        output_chunks = self._note_narrowing()
        ranges = chosen(self._kinds_of_ranges(output_chunks))
        if self._early is not None:
            tested = [self.file.tree.leaves[column] for column in sorted(self._rows.columns)]
            others = [node for node in self._outputs if node not in tested]
            filters = 0 if self._bloom is None else self._bloom.num_filters
            self._early.beside_indexes(self._rows.selections, tested, others, ranges, filters)
        counts = self.file.fetcher.counts
        requests, size = counts.requests, counts.bytes
        ahead = hold(self.file.fetcher, ranges)
        self.file.fetcher.keep_indexes(ranges)
        self._not_reported = counts.requests - requests, counts.bytes - size
        try:
            yield
            self._locate(output_chunks)
        finally:
            self.file.fetcher.forget(ahead)

    def _note_narrowing(self) -> list[Chunk]:
        """Mark the row groups of which few rows are expected to match. Returns their chunks that will be read, unless
        there are too many."""
        narrowed = {selection.row_group for _, selection, _ in self._rows.open_questions()}
        for selection in self._rows.selections:
            selection.narrows = selection.row_group in narrowed
        if not self.options.use_page_index or len(narrowed) * len(self._outputs) > MOST_CHUNKS:
            return []
        return chunks_to_locate(self.file, [s for s in self._rows.selections if s.narrows], self._outputs)

    def _kinds_of_ranges(self, output_chunks: Sequence[Chunk]) -> Iterator[list[Range]]:
        """The ranges that the stages will ask for, the most useful kinds first."""
        chunks = [chunk for _, _, chunk in self._rows.open_questions()]
        chunks += [chunk for _, _, own in self._rows.computed_questions() for chunk in own]
        if self.options.use_page_index:
            yield list(dict.fromkeys(r for chunk in chunks for r in page_index_ranges(chunk, self.file)))
        if self._bloom is not None:
            yield self._bloom.ranges(self._room)
        yield [r for chunk in output_chunks for r in offset_index_range(chunk, self.file)]
        if self._dictionaries is not None:
            yield self._dictionaries.ranges(before_index=True)

    def _room(self, chunk: Chunk, place: int) -> int:
        """Bytes from a Bloom filter of unknown length to the next known part of the file, if finding it is little
        work."""
        if len(self._rows.selections) * len(self.file.tree.leaves) > MOST_CHUNKS:
            return HEADER
        return self.file.room_at(chunk.row_group, place)

    def _locate(self, chunks: Sequence[Chunk]) -> None:
        """Keep the page locations of the chunks whose row groups are left. Only a part of each chunk is likely to be
        read."""
        parts = {s.row_group: s for s in self._rows.selections}
        wanted = [c for c in chunks if c.row_group in parts and c.node.column not in parts[c.row_group].locations]
        found = read_locations(self.file, wanted)
        for chunk in wanted:
            parts[chunk.row_group].locations[chunk.node.column] = found.get((chunk.row_group, chunk.node.column))

    # ---- the frame of a stage

    def _stage(self, name: str, run: Callable[..., None], *arguments: object) -> None:
        """Run one stage, and report it if it has asked anything."""
        rows, counts = self._rows, self.file.fetcher.counts
        before = rows.selections
        if not before:
            return
        requests, size = counts.requests, counts.bytes
        rows.asked.clear()
        run(*arguments)
        if not rows.asked:
            return
        rows_before = rows.rows_left()
        rows.narrow_selections()
        pages = page_counts(rows, before) if name == "column index" else (0, 0)
        early, self._not_reported = self._not_reported, (0, 0)
        took = counts.requests - requests + early[0], counts.bytes - size + early[1]
        if self._trace is not None:
            self._trace.note_stage(name, rows.asked, rows.rows_by_group())
        left = len(rows.selections), rows.rows_left()
        self.reports.append(
            StageReport(name, len(rows.asked), len(before), left[0], rows_before, left[1], *pages, *took)
        )

    def _by_statistics(self) -> None:
        rows = self._rows
        asked = ask_statistics(rows)
        if self._trace is not None:
            self._trace.note_stage("statistics", set(), rows.rows_by_group())
        if asked:
            left = len(rows.selections), rows.rows_left()
            self.reports.append(
                StageReport("statistics", asked, len(rows.row_groups), left[0], rows.num_asked, left[1], 0, 0, 0, 0)
            )


# ---- boxes of geometries


def _with_coverings(file: OpenFile, predicate: Predicate, row_groups: Sequence[int]) -> Predicate:
    """The predicate with tests of the boxes that GeoParquet keeps in other columns. They are true for every row for
    which it is true."""
    if not file.key_values:  # most files say nothing of geometries
        return predicate
    tested = {test.node.column for test in predicate.tests() if isinstance(test, Test) and is_box_test(test)}
    if not tested:
        return predicate
    usable = {}
    for column, covering in coverings_of(file.tree, file.key_values).items():
        found = _usable(file, column, covering, row_groups) if column in tested else None
        if found is not None:
            usable[column] = found
    return with_coverings(predicate, usable) if usable else predicate


def _usable(file: OpenFile, column: int, covering: Covering, row_groups: Sequence[int]) -> Covering | None:
    """The covering with what null counts say of it. ``None`` if a column chunk cannot be asked: nobody has asked for
    them, so they must not fail.

    With no more null boxes than null geometries, the same rows are taken to be without both.
    """
    leaves = [file.tree.leaves[column], *covering.sides]
    try:
        table = file.chunk_table(row_groups, leaves)
    except ParquetError:
        return None
    geometries, *sides = (table.of_column(k).null_count for k in range(len(leaves)))
    all_there = all(bool(((nulls >= 0) & (nulls <= geometries)).all()) for nulls in sides)
    return covering._replace(some_missing=not all_there)


# ---- statistics


def ask_statistics(rows: Candidates) -> int:
    """Drop row groups whose statistics, which the footer holds, say that no row can match. Returns the number of column
    chunks that were asked."""
    known = rows.bounds
    for test in rows.tests:
        if test.node not in known:
            known[test.node] = _chunk_bounds(rows, test.node)
        bounds = known[test.node]
        some, every = test.verdict(bounds)
        if is_box_test(test):
            chunks = [rows.file.chunk(k, test.node) for k in rows.row_groups]
            some &= may_intersect(test, [chunk.meta.geospatial_statistics for chunk in chunks])
        rows.answers[test].take(some, every, kept_shares(test, bounds) < USELESS)
    for computed in rows.computed:
        for node in computed.nodes:
            if node not in known:
                known[node] = _chunk_bounds(rows, node)
        rows.answers[computed].some = computed.can_pass(known)
    rows.select()
    return len(known) * len(rows.row_groups)


def _chunk_bounds(rows: Candidates, node: Node) -> Bounds:
    """The bounds of a leaf from the statistics of its chunks, one entry per row group."""
    file, table, place = rows.file, rows.table, rows.places[node.column]
    order, created_by = file.column_order(node), file.created_by
    # Counts of levels answer some tests better than bounds. Bounds of unusual chunks do not lie in the footer in clear.
    histograms = node.max_rep > 0 or any(test.asks_levels for test in rows.tests if test.node is node)
    if not histograms and not table.odd[:, place].any():
        return bounds_of_numbers(node.type, table.stack_of(place), file.footer.places, order, created_by)
    return bounds_of_chunks(node.type, [file.chunk(k, node).meta for k in rows.row_groups], order, created_by)


# ---- the share of rows that a test is likely to keep


def kept_shares(test: Test, bounds: Bounds) -> Shares:
    """A share between 0 and 1 for each part of ``bounds`` (float64). Values are assumed to be spread evenly between
    their bounds."""
    if test.asks_levels:
        return np.full(len(bounds), UNKNOWN)
    if test.none:
        return np.ones(len(bounds))  # few lists hold one given value
    if test.op in ("==", "in", "is_nan"):
        return np.zeros(len(bounds))
    counts, nulls = bounds.counts, bounds.null_counts
    known = (counts > 0) & (nulls >= 0)
    null_shares = np.where(known, nulls / np.maximum(counts, 1), 0.0)
    if test.op == "is_null":
        return null_shares
    present = 1.0 - null_shares
    if test.op in ("!=", "not in", "not starts_with", "not intersects box", "is_not_null", "is_not_nan"):
        return present
    if test.op == "intersects box":
        return np.full(len(bounds), UNKNOWN)
    if test.op == "starts_with":
        return np.where(bounds.has_bounds, UNKNOWN * present, UNKNOWN)
    below = _positions(bounds, test.literal)
    share = present * (below if test.op in ("<", "<=") else 1.0 - below)
    return np.where(bounds.has_bounds, share, UNKNOWN)


def _positions(bounds: Bounds, literal: Any) -> Shares:
    """The position of a literal between the two bounds of each part: 0 at the lower bound, 1 at the upper."""
    if bounds.mins.dtype == np.dtype(object):  # bytes, or integers of any length
        found = [_position(low, high, literal) for low, high in zip(bounds.mins, bounds.maxs, strict=True)]
        return np.array(found, np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        low, high = bounds.mins.astype(np.float64), bounds.maxs.astype(np.float64)
        spread = high - low
        places = (float(literal) - low) / spread
    usable = (spread > 0) & np.isfinite(spread)
    return np.where(usable, np.clip(np.where(usable, places, 0.0), 0.0, 1.0), UNKNOWN)


def _position(low: Any, high: Any, literal: Any) -> float:
    if isinstance(low, bytes):
        low, high, literal = _as_numbers(low, high, literal)
    try:
        low, high, literal = float(low), float(high), float(literal)
    except OverflowError:
        return UNKNOWN
    if not high > low or not isfinite(high - low):
        return UNKNOWN
    return min(max(float((literal - low) / (high - low)), 0.0), 1.0)


def _as_numbers(low: bytes, high: bytes, literal: bytes) -> tuple[int, int, int]:
    """The eight bytes behind the common prefix of both bounds, as numbers."""
    common = 0
    for a, b in zip(low, high, strict=False):
        if a != b:
            break
        common += 1
    if literal[:common] != low[:common]:
        return 0, 1, 0 if literal < low else 1
    part = slice(common, common + 8)
    first, second, third = (int.from_bytes(x[part].ljust(8, b"\0"), "big") for x in (low, high, literal))
    return first, second, third
