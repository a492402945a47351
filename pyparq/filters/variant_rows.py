"""What Variants hold at a path, row by row, sorted by the kind of value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.layouts import normalize
from pyparq.arrow.variant_columns import OBJECT, Terms, byte_arrays, shredded, typed_column
from pyparq.errors import CorruptFileError
from pyparq.filters.computed import InVariant
from pyparq.filters.variant_kinds import DECIMALS, Kind, kind_of, type_of
from pyparq.format.types import DataType
from pyparq.kernels import KernelError

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

Flags = npt.NDArray[np.bool_]
_BINARY = DataType("z")
_NO_NAMES = b"\x11\x00\x00"
_SHORT_STRING, _STRING = 1, 16


@dataclass(slots=True)
class ValuesAtPath:
    """The values at a path. ``present``: the rows whose Variant is not null. ``there``: those that have the path."""

    values: Column
    present: Flags
    there: Flags
    numbers: npt.NDArray[np.int64]
    """The number of the primitive type in VariantEncoding.md; -1 for objects, arrays, and where nothing is."""
    scales: npt.NDArray[np.int64]
    """Those of decimals, else 0."""

    @property
    def num_rows(self) -> int:
        return len(self.present)

    @property
    def null(self) -> Flags:
        """Where the path is missing in a Variant, or has Variant's null."""
        return np.asarray(self.present & (~self.there | (self.numbers == 0)))

    def kinds(self) -> Iterator[Kind]:
        """The kinds of value that there are."""
        pairs = np.unique(np.stack((self.numbers, self.scales), axis=1), axis=0)
        yield from dict.fromkeys(kind for pair in pairs.tolist() if (kind := kind_of(*pair)) is not None)

    def of_kind(self, kind: Kind) -> Column:
        """A column of the values of one kind, null in all other rows."""
        rows = np.array([kind_of(int(n), kind.scale) == kind for n in range(32)])[np.clip(self.numbers, 0, 31)]
        rows &= (self.numbers >= 0) & (self.scales == kind.scale)
        *_, typed = _shredded(_without_names(self.num_rows), self.values, rows, kind.terms)
        return typed_column(type_of(kind), *typed)


def values_at(test: InVariant, columns: Mapping[int, Column]) -> ValuesAtPath:
    """What the Variants hold at the path of a test. Raises :class:`CorruptFileError` for bytes that are no Variant."""
    values = normalize(columns[test.value.node.column], "value")
    present = _present(values)
    there = present
    if test.metadata is not None:
        values, there = _below(normalize(columns[test.metadata.node.column], "metadata"), values, present, test.rest)
    numbers, scales = _numbers(values, there)
    return ValuesAtPath(values, present, there, numbers, scales)


def _present(column: Column) -> Flags:
    mask = column.valid_mask()
    return np.ones(column.length, np.bool_) if mask is None else mask


def _without_names(count: int) -> Column:
    """Metadata for values that need no names."""
    data = np.frombuffer(_NO_NAMES * count, np.uint8)
    return byte_arrays(_BINARY, np.arange(count + 1, dtype=np.int64) * len(_NO_NAMES), data, np.ones(count, np.uint8))


def _shredded(metadata: Column, values: Column, rows: Flags, terms: Terms) -> tuple[Any, ...]:
    try:
        return shredded(metadata, values, rows, terms)
    except KernelError as error:
        raise CorruptFileError(f"a Variant is invalid: {error}") from error


def _below(metadata: Column, values: Column, present: Flags, names: tuple[str, ...]) -> tuple[Column, Flags]:
    """The values of a field of objects of objects, and where it is there."""
    terms: Terms = None
    for name in reversed(names):
        terms = (OBJECT, (name,), (terms,))
    parts = _shredded(metadata, values, present, terms)
    for _ in names:
        _, (parts,) = parts[3]
    offsets, data, mask, _ = parts
    return byte_arrays(_BINARY, offsets, data, mask), mask.view(np.bool_) & present


def _numbers(values: Column, there: Flags) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets, data = values.offsets().astype(np.int64), values.buffers[1].view(np.uint8)
    starts, sizes = offsets[:-1], np.diff(offsets)
    numbers, scales = np.full(len(starts), -1, np.int64), np.zeros(len(starts), np.int64)
    rows = np.flatnonzero(there & (sizes > 0))
    heads = data[starts[rows]].astype(np.int64)
    basic, number = heads & 3, heads >> 2
    numbers[rows] = np.where(basic == 0, number, np.where(basic == _SHORT_STRING, _STRING, -1))
    decimals = rows[np.isin(numbers[rows], DECIMALS) & (sizes[rows] > 1)]
    scales[decimals] = data[starts[decimals] + 1]
    return numbers, scales
