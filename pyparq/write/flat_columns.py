"""The dictionary page of a column that comes back as a dictionary: the original entries in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.record_batch import ImportedColumn, RecordBatch
from pyparq.errors import located
from pyparq.format import leaf_values as value_dictionary
from pyparq.format.leaf_values import Values, concat_values, count_of, plain_bytes, plain_size
from pyparq.format.schema_node import Node
from pyparq.format.types import DataType, LeafType, Physical
from pyparq.kernels import FlatArray
from pyparq.write.column_plans import Top
from pyparq.write.physical_values import fits, within_a_day
from pyparq.write.shred import Known, known_entries


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


LastKnown = dict[int, tuple[Column, Known | None]]
"""By column the last dictionary and its entries, as physical values of the leaf. Consecutive row groups with the same
dictionary share them."""


def _known_of(column: Column, node: Node, last: LastKnown) -> Known | None:
    """The entries for a column. ``None`` if there are none, or if the leaf cannot hold all of them."""
    if column.codes is None or column.dictionary is None:
        return None
    found = last.get(node.column)
    if found is None or found[0] is not column.dictionary:
        found = last[node.column] = column.dictionary, known_entries(column, node)
    return found[1]


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


_SAME, _BITS, _INT8, _UINT8, _INT16, _UINT16, _OFFSETS32, _OFFSETS64, _DECIMAL32, _DECIMAL64, _DECIMAL128, _CODES = (
    range(12)
)
"""Numbers of ``FlatForm`` in ``encode/flat_columns.hpp``."""
_FORMS = {
    "b": _BITS, "c": _INT8, "C": _UINT8, "s": _INT16, "S": _UINT16,
    "u": _OFFSETS32, "z": _OFFSETS32, "U": _OFFSETS64, "Z": _OFFSETS64,
}  # fmt: skip
_DECIMALS = {32: _DECIMAL32, 64: _DECIMAL64, 128: _DECIMAL128}
_CONVERTED = {"tdm", "tts", "tss"}
"""First letters of formats whose values are stored in another unit."""


@dataclass(slots=True)
class FlatData:
    """The leaf of consecutive rows, in several arrays."""

    node: Node
    num_rows: int
    parts: list[FlatArray]
    known: Known | None = None
    """The entries that the parts point to, where these are codes."""
    page: DictionaryPage | None = None
    """And as chunks have it."""


def flat_leaves(
    batches: Sequence[RecordBatch], num_rows: int, tops: Sequence[Top], last: LastKnown
) -> list[FlatData | None]:
    """The leaves of some top-level columns in the form that the kernels take. ``None`` for those that they do not
    take."""
    found: list[FlatData | None] = []
    for top in tops:
        node, known, parts = top.shape.node, None, None
        if top.is_flat and not top.entries:
            parts = _flat_parts(batches, top.column, node.type)
        elif top.is_flat:
            columns = [batch.columns[top.column] for batch in batches]
            with located(column=node.dotted):
                known = _known_of(columns[0], node, last)
            parts = None if known is None or known.source is None else code_parts(columns, known.source)
        found.append(None if parts is None else FlatData(node, num_rows, parts, known))
    return found


def _flat_parts(batches: Sequence[RecordBatch], at: int, leaf: LeafType) -> list[FlatArray] | None:
    parts: list[FlatArray] = []
    for batch in batches:
        column = batch.columns[at]
        form = None if column.type.dictionary is not None else _form(column.type.format, leaf)
        if form is None or (leaf.kind == "time" and not within_a_day(column.values(), column.type.unit).all()):
            return None
        if isinstance(column, ImportedColumn):
            parts.append(FlatArray(form, column.imported))
            continue
        buffers = column.buffers
        validity = column.validity if column.null_count else None
        data = buffers[1] if len(buffers) > 1 else None
        parts.append(FlatArray(form, column.length, column.offset, validity, buffers[0], data))
    return parts


def code_parts(columns: Sequence[Column], dictionary: Column) -> list[FlatArray] | None:
    """The codes of a dictionary-encoded column whose parts share one dictionary. ``None`` if they do not."""
    parts: list[FlatArray] = []
    for column in columns:
        if column.codes is None or column.dictionary is not dictionary:
            return None
        validity = column.validity if column.null_count else None
        parts.append(FlatArray(_CODES, column.length, 0, validity, column.codes, None))
    return parts


@lru_cache(maxsize=4096)
def _form(format: str, leaf: LeafType) -> int | None:
    """The conversion from values of a type to values of the leaf. ``None`` if the kernels have none."""
    type_ = DataType(format)
    if format[:3] in _CONVERTED or leaf.kind == "int96" or not fits(type_, leaf):
        return None
    if type_.kind == "decimal":
        return None if leaf.physical == Physical.BYTE_ARRAY else _DECIMALS.get(type_.decimal[2])
    if format in _FORMS:
        return _FORMS[format]
    return _SAME if type_.byte_width == leaf.width and type_.byte_width > 0 else None
