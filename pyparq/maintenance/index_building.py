"""The indexes of column chunks: those that the caller requests, which ones of them to build, and how they are built.

Without column orders in the footer, ``min_value`` and ``max_value`` of chunk statistics mean nothing (parquet.thrift,
ColumnOrder), and readers ignore them. With them, readers believe these bounds. So orders are added only if the bounds
are true, which the pages tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyparq.encryption.cipher import Module
from pyparq.errors import MissingKeyError, OptionError, UnsupportedError, near_matches
from pyparq.format.order import FLOAT_KINDS, Order, decode_bounds, has_order
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import LeafType
from pyparq.index.bloom_filter import serialize_filter
from pyparq.index.page_index import ColumnIndexBuilder
from pyparq.index.statistics import writer_is_trusted
from pyparq.maintenance.report import ADDED, KEPT, LEFT, REMOVED, REPLACED
from pyparq.option_values import BloomOptions
from pyparq.options import WriteOptions
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.page_statistics import PageFacts, Survey, Wanted, survey_chunk
from pyparq.read.plan.page_indexes import has_column_index, has_offset_index, sound_locations
from pyparq.write.column_chunks import filter_of
from pyparq.write.column_plans import bloom_plan, per_leaf

BLOOM, COLUMN_INDEX, OFFSET_INDEX = "bloom_filter", "column_index", "offset_index"
KINDS = (BLOOM, COLUMN_INDEX, OFFSET_INDEX)

_OF_WRITING = ("bloom_filters", "bloom_filter_options", "bloom_filter_layout", "column_index_truncate_length")

_REMOVABLE = {
    "bloom_filters": (BLOOM,),
    "column_indexes": (COLUMN_INDEX,),
    "page_indexes": (COLUMN_INDEX, OFFSET_INDEX),
}


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options of :func:`pyparq.add_indexes`, with the checks that need no schema."""

    writing: WriteOptions
    """``bloom_filters``, ``bloom_filter_options``, ``bloom_filter_layout`` and ``column_index_truncate_length``, with
    the same meaning as in writing."""
    page_index: Any = True
    replace: bool = False
    remove: Any = ()

    def __post_init__(self) -> None:
        if not isinstance(self.replace, bool):
            raise OptionError(f"replace must be True or False, not {self.replace!r}")
        if not isinstance(self.page_index, (bool, list, tuple, set, frozenset)):
            raise OptionError(f"page_index must be True, False or a list of names, not {self.page_index!r}")
        for kind in _removals(self.remove):
            if kind not in _REMOVABLE:
                raise OptionError(f"remove cannot take {kind!r}{near_matches(str(kind), _REMOVABLE, 'kinds')}")


def check_columns(given: Mapping[str, Any], tree: SchemaTree) -> None:
    """Raise the errors of :func:`pyparq.add_indexes` for options that do not fit a file's schema."""
    writing = {name: given[name] for name in _OF_WRITING if name in given}
    others = {name: given[name] for name in ("page_index", "replace", "remove") if name in given}
    resolve(IndexOptions(WriteOptions(**writing), **others), tree)


def _removals(given: Any) -> Mapping[Any, Any]:
    """Kinds of indexes, each with the columns it is removed from."""
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str):
        return {given: True}
    if isinstance(given, (list, tuple, set, frozenset)):
        return dict.fromkeys(given, True)
    raise OptionError(f"remove must be a list of kinds ({', '.join(_REMOVABLE)}) or a dict by kind, not {given!r}")


@dataclass(frozen=True, slots=True)
class Request:
    """The requested indexes of one file: one value per leaf column."""

    blooms: list[BloomOptions | None]
    asked: dict[str, list[bool]]
    """By kind: whether the file should have it, per column."""
    removed: dict[str, list[bool]]
    """By kind: whether to remove it, per column."""
    replace: bool
    layout: str
    truncate: int | None


def resolve(options: IndexOptions, tree: SchemaTree) -> Request:
    """The options for a file with this schema.

    Raises :class:`ColumnNotFoundError` for missing columns, and :class:`OptionError` for columns that cannot have a
    Bloom filter and for indexes that are both requested and to be removed.
    """
    blooms = bloom_plan(tree, options.writing)
    removed = {kind: [False] * len(tree.leaves) for kind in KINDS}
    for name, columns in _removals(options.remove).items():
        chosen = per_leaf(tree, columns, False)
        for kind in _REMOVABLE[name]:
            removed[kind] = [a or bool(b) for a, b in zip(removed[kind], chosen, strict=True)]
    for leaf, bloom in zip(tree.leaves, blooms, strict=True):
        if bloom is not None and removed[BLOOM][leaf.column]:
            raise OptionError(
                "a Bloom filter is both asked for and to be removed. To build it anew, give replace=True",
                column=leaf.dotted,
            )
    bounded = per_leaf(tree, options.page_index, False)
    placed = [options.page_index is not False] * len(tree.leaves)
    wanted = {BLOOM: [bloom is not None for bloom in blooms], COLUMN_INDEX: bounded, OFFSET_INDEX: placed}
    asked = {kind: [bool(a) and not b for a, b in zip(wanted[kind], removed[kind], strict=True)] for kind in KINDS}
    return Request(
        blooms, asked, removed, options.replace, options.writing.bloom_filter_layout,
        options.writing.column_index_truncate_length or None,
    )  # fmt: skip


# ---- column orders ---------------------------------------------------------------------------------------------------


def contradiction(leaf: LeafType, statistics: Any, survey: Survey) -> str:
    """The fault in the bounds of a chunk's statistics under TYPE_ORDER. Empty if they are true.

    Bounds that no reader can use (NaN, a wrong length) are no fault.
    """
    if not has_order(leaf):
        return f"{leaf.kind} values have no order"
    for stored, name, found in (
        (statistics.min_value, "min_value", [page.minimum for page in survey.pages]),
        (statistics.max_value, "max_value", [page.maximum for page in survey.pages]),
    ):
        there = [bound for bound in found if bound is not None]
        if stored is None or not there:
            continue
        values, usable = decode_bounds(leaf, [stored, *there])
        if not usable[0]:
            continue
        beyond = values[1:] < values[0] if name == "min_value" else values[1:] > values[0]
        if bool(beyond.any()):
            return f"{name} is not a bound of the values"
    return ""


# ---- one column chunk ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ChunkChange:
    """The changes to the indexes of one column chunk."""

    row_group: int
    node: Node
    chunk: Chunk | None = None
    """``None`` where the chunk is sealed: its key is missing."""
    outcome: dict[str, str] = field(default_factory=dict)
    """By kind, for indexes that are there or asked for."""
    reasons: dict[str, str] = field(default_factory=dict)
    """By kind, for those left out."""
    bloom: list[Any] | None = None
    """The stored modules of a new filter."""
    column_index: bytes | None = None
    """The stored bytes of a new ColumnIndex."""
    pages: list[PageFacts] | None = None
    """The pages that a new OffsetIndex lists."""
    bytes_decoded: int = 0
    contradiction: str = ""
    """The fault that the chunk's statistics would have under a column order."""

    def leave(self, kind: str, reason: str, present: bool) -> None:
        """Note that a requested index is not built. An existing one stays."""
        self.outcome[kind] = KEPT if present else LEFT
        self.reasons[kind] = reason

    @property
    def changed(self) -> bool:
        return any(what in (ADDED, REPLACED, REMOVED) for what in self.outcome.values())


def change_chunk(
    file: OpenFile, request: Request, row_group: int, node: Node, orders_missing: bool, account: Account
) -> ChunkChange:
    """Decide about the indexes of a chunk, and build those that are needed.

    ``orders_missing``: the footer has no column orders. A ColumnIndex in the file then means nothing yet, and the
    bounds in its statistics mean nothing either.
    """
    change = ChunkChange(row_group, node)
    try:
        chunk = change.chunk = file.chunk(row_group, node)
    except MissingKeyError as error:
        for kind in KINDS:
            if request.asked[kind][node.column]:
                change.leave(kind, error.message, False)
        return change
    present = _present(chunk, orders_missing)
    damaged = _damaged(file, chunk, request, present)
    build = _to_build(file, change, request, present, damaged, orders_missing)
    bounds = COLUMN_INDEX in build or (orders_missing and _has_bounds(chunk) and any(request.asked[COLUMN_INDEX]))
    wanted = Wanted(bounds=bounds and has_order(node.type), hashes=BLOOM in build)
    if not build and not wanted.values:
        return change
    order = _order(file, node, orders_missing)
    try:
        survey = survey_chunk(file, chunk, order, wanted, account)
    except UnsupportedError as error:
        for kind in build:
            change.leave(kind, f"its pages cannot be read: {error.message}", present[kind])
        if bounds and orders_missing:
            change.contradiction = f"they cannot be checked: {error.message}"
        return change
    change.bytes_decoded = survey.bytes_decoded
    if orders_missing and _has_bounds(chunk):
        change.contradiction = contradiction(node.type, chunk.meta.statistics, survey)
    _build(file, change, request, survey, build, present, order)
    return change


def _present(chunk: Chunk, orders_missing: bool) -> dict[str, bool]:
    placed, bounded = has_offset_index(chunk), has_column_index(chunk)
    return {
        BLOOM: bool(chunk.meta.bloom_filter_offset),
        # Without page locations or a column order, readers cannot use a ColumnIndex.
        COLUMN_INDEX: bounded and placed and not orders_missing,
        OFFSET_INDEX: placed,
    }


def _damaged(file: OpenFile, chunk: Chunk, request: Request, present: dict[str, bool]) -> bool:
    """Whether readers ignore the existing page index, because its parts contradict each other or the pages. It is built
    anew then."""
    if not request.asked[OFFSET_INDEX][chunk.node.column] or not present[OFFSET_INDEX]:
        return False
    return sound_locations(file, chunk) is None


def _to_build(
    file: OpenFile,
    change: ChunkChange,
    request: Request,
    present: dict[str, bool],
    damaged: bool,
    orders_missing: bool,
) -> list[str]:
    """The kinds to build. Decisions about the other kinds are noted in ``change``."""
    build = []
    column = change.node.column
    for kind in KINDS:
        if request.removed[kind][column]:
            if present[kind]:
                change.outcome[kind] = REMOVED
        elif present[kind] and not ((request.replace or (damaged and kind != BLOOM)) and request.asked[kind][column]):
            change.outcome[kind] = KEPT
        elif request.asked[kind][column]:
            reason = "the row group has no rows" if change.chunk is None or change.chunk.num_rows == 0 else ""
            if kind == COLUMN_INDEX and not reason:
                reason = _no_bounds(file, change.node, orders_missing)
            if reason:
                change.leave(kind, reason, present[kind])
            else:
                build.append(kind)
    return build


def _no_bounds(file: OpenFile, node: Node, orders_missing: bool) -> str:
    """The reason why no ColumnIndex of a leaf could be used. Empty if one can."""
    if not has_order(node.type):
        return f"{node.type.kind} values have no order, so there are no bounds"
    if _order(file, node, orders_missing) not in (Order.TYPE, Order.TOTAL, Order.INT96):
        return "the footer gives the column no order that is known"
    if not writer_is_trusted(node.type, file.created_by):
        return f"readers do not believe bounds of such columns in files of {file.created_by!r}"
    return ""


def _order(file: OpenFile, node: Node, orders_missing: bool) -> Order:
    order = file.column_order(node)
    return Order.TYPE if order == Order.ABSENT and orders_missing else order


def _has_bounds(chunk: Chunk) -> bool:
    statistics = chunk.meta.statistics
    return statistics is not None and (statistics.min_value is not None or statistics.max_value is not None)


def _build(
    file: OpenFile, change: ChunkChange, request: Request, survey: Survey, build: list[str],
    present: dict[str, bool], order: Order,
) -> None:  # fmt: skip
    for kind in build:
        change.outcome[kind] = REPLACED if present[kind] else ADDED
    if BLOOM in build:
        _build_filter(change, request, survey, present[BLOOM])
    if survey.no_rows:
        for kind in (COLUMN_INDEX, OFFSET_INDEX):
            if kind in build:
                change.leave(kind, survey.no_rows, False)
                if present[kind]:  # it was wrong
                    change.outcome[kind] = REMOVED
        return
    if COLUMN_INDEX in build:
        if OFFSET_INDEX not in build and not _fits(file, change, survey):
            change.outcome[OFFSET_INDEX] = REPLACED
            build = [*build, OFFSET_INDEX]
        _build_column_index(change, survey, order, request.truncate, present[COLUMN_INDEX])
    if OFFSET_INDEX in build:
        change.pages = survey.pages


def _build_filter(change: ChunkChange, request: Request, survey: Survey, present: bool) -> None:
    options = request.blooms[change.node.column]
    assert options is not None
    assert survey.hashes is not None
    assert change.chunk is not None
    if options.auto and survey.all_dictionary:
        change.leave(BLOOM, "every page is dictionary-encoded: readers can test the dictionary", present)
        return
    header, bits = serialize_filter(filter_of(survey.hashes, options))
    crypto = change.chunk.crypto
    change.bloom = [
        *crypto.seal(Module.BLOOM_FILTER_HEADER, [header]),
        *crypto.seal(Module.BLOOM_FILTER_BITSET, [bits]),
    ]


def _build_column_index(change: ChunkChange, survey: Survey, order: Order, truncate: int | None, present: bool) -> None:
    node = change.node
    builder = ColumnIndexBuilder(node.type, truncate, order)
    detailed = node.max_def > 1 or node.max_rep > 0  # otherwise the histograms tell no more than null counts
    for page in survey.pages:
        builder.add_page(
            page.minimum, page.maximum, null_count=page.slots - page.present, value_count=page.present,
            nan_count=page.nan_count if node.type.kind in FLOAT_KINDS else None,
            definition_histogram=page.definition if detailed else None,
            repetition_histogram=page.repetition if detailed else None,
        )  # fmt: skip
    index = builder.finish()
    if index is None:
        change.leave(COLUMN_INDEX, "a page holds nothing but NaN, or a bound that is too long", present)
        return
    assert change.chunk is not None
    change.column_index = b"".join(change.chunk.crypto.seal(Module.COLUMN_INDEX, [index]))


def _fits(file: OpenFile, change: ChunkChange, survey: Survey) -> bool:
    """Whether the OffsetIndex in the file lists the pages that exist."""
    assert change.chunk is not None
    found = sound_locations(file, change.chunk)
    if found is None:
        return False
    there = np.array([(page.offset, page.size, page.first_row) for page in survey.pages], np.int64).reshape(-1, 3)
    return all(
        np.array_equal(a, b) for a, b in zip((found.offsets, found.sizes, found.first_rows), there.T, strict=True)
    )
