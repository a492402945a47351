"""The dictionary page of a column that comes back as a dictionary: the original entries in their order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.format import value_dictionary
from pyparq.format.leaf_values import Values, concat_values, count_of, plain_bytes, plain_size
from pyparq.format.schema_node import Node
from pyparq.format.types import LeafType
from pyparq.write.encode.shred import Known, known_entries


class DictionaryPage(NamedTuple):
    """The entries of a dictionary as stored in chunks, each once."""

    entries: Values
    plain: Any
    """These in PLAIN."""
    places: npt.NDArray[np.int32] | None
    """For each entry of the original dictionary, its position in the page. ``None``: the same position."""


def dictionary_page(known: Values, leaf: LeafType, limit: int) -> DictionaryPage | None:
    """The result of :func:`known_dictionary` for values that are all among ``known``."""
    if plain_size(known) > limit or count_of(known) == 0:
        return None
    places, first = value_dictionary.build(known, leaf, limit)
    if len(places) < count_of(known):
        return None
    if len(first) == len(places):
        return DictionaryPage(known, plain_bytes(known, leaf), None)
    entries = value_dictionary.entries(known, first)
    return DictionaryPage(entries, plain_bytes(entries, leaf), places)


class KnownDictionaries:
    """The entries of the dictionaries of columns, as physical values of their leaves. Consecutive row groups with the
    same dictionary share them."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Column, Known | None]] = {}

    def of(self, column: Column, node: Node) -> Known | None:
        """The entries for a column. ``None`` if there are none, or if the leaf cannot hold all of them."""
        if column.codes is None or column.dictionary is None:
            return None
        last = self._last.get(node.column)
        if last is None or last[0] is not column.dictionary:
            last = self._last[node.column] = column.dictionary, known_entries(column, node)
        return last[1]


def known_dictionary(
    values: Values, known: Values, leaf: LeafType, limit: int
) -> tuple[Values, npt.NDArray[np.int32]] | None:
    """All entries of ``known`` in their order, then the missing ones, and the index of each value. ``None`` if the
    entries take more than ``limit`` bytes."""
    if plain_size(known) > limit or count_of(known) == 0:
        return None
    both = concat_values([known, values], leaf)
    indices, first_positions = value_dictionary.build(both, leaf, limit)
    entries = value_dictionary.entries(both, first_positions)
    if len(indices) < count_of(both) or plain_size(entries) > limit:
        return None
    return entries, indices[count_of(known) :]
