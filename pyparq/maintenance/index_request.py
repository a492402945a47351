"""The indexes that the caller requests, per leaf column of one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyparq.errors import OptionError, near_matches
from pyparq.format.schema_tree import SchemaTree
from pyparq.option_values import BloomOptions
from pyparq.options import WriteOptions
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
        if isinstance(self.page_index, str) or not isinstance(self.page_index, (bool, list, tuple, set, frozenset)):
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
