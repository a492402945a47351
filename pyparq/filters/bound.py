"""What all parts of a bound predicate have, and those that have no tests: true and false."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq.index.row_ranges import RowMask, Words
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from pyparq.arrow.column import Column


@dataclass(frozen=True, slots=True)
class EntryLevels:
    """The levels of a leaf in a struct or list: one uint8 per entry.

    ``definition`` is ``None`` if no entry is null. ``repetition`` is ``None`` if each entry is a row. An entry has an
    element in the leaf's column if its definition level is ``slot_level`` or more.
    """

    definition: npt.NDArray[np.uint8] | None
    repetition: npt.NDArray[np.uint8] | None
    slot_level: int = 0


Columns: TypeAlias = "Mapping[int, Column]"
"""Decoded columns, by the ordinals of their leaves."""
Levels: TypeAlias = Mapping[int, EntryLevels] | None


class Bound:
    """A part of a bound predicate."""

    __slots__ = ()

    def columns(self) -> set[int]:
        """Ordinals of the leaves that the tests look at."""
        return set()

    def tests(self) -> Sequence[Any]:
        """The tests of single leaves."""
        return ()

    def computed(self) -> Sequence[Any]:
        """The tests of computed values: no index of a single leaf answers them."""
        return ()

    def entries_column(self, columns: Columns) -> int | None:
        """The only column of the tests, if the answers follow from the entries of its dictionary. Otherwise
        ``None``."""
        return None

    def asks_variants(self) -> bool:
        """Whether a test asks for a path of a Variant."""
        return any(test.of_variant for test in self.computed())

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        """The rows where it is true; see :func:`pyparq.filters.predicate.matching_rows`."""
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError

    @printable
    def __repr__(self) -> str:
        return str(self)


class Constant(Bound):
    """True or false for every row."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        if num_rows < 0:
            raise ValueError("a constant predicate needs num_rows")
        return RowMask.all(num_rows) if self.value else RowMask.none(num_rows)

    def __str__(self) -> str:
        return "true" if self.value else "false"


TRUE, FALSE = Constant(True), Constant(False)
