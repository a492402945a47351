"""What all parts of a bound predicate have, and those that have no tests: true and false."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


Mask: TypeAlias = npt.NDArray[np.bool_]
Columns: TypeAlias = "Mapping[int, Column]"
"""Decoded columns, by the ordinals of their leaves."""
Levels: TypeAlias = Mapping[int, EntryLevels] | None


class Bound:
    """A part of a bound predicate."""

    __slots__ = ()
    asks_variants: bool = False
    """Whether a test asks for a path of a Variant."""

    def columns(self) -> set[int]:
        """Ordinals of the leaves that the tests look at."""
        return set()

    def tests(self) -> Sequence[Any]:
        """The tests: those of single leaves, and those of computed values, which no index of a single leaf answers."""
        return ()

    def units_left(self, of_test: Callable[[Any], Mask | None], count: int) -> Mask:
        """Those of ``count`` files or row groups in which a row may match. ``of_test``: the same for one test of a
        leaf; ``None`` where nothing is known. Nothing is known of tests of computed values."""
        return np.ones(count, np.bool_)

    def entries_column(self, columns: Columns) -> int | None:
        """The only column of the tests, if the answers follow from the entries of its dictionary. Otherwise
        ``None``."""
        return None

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        """The rows where it is true (neither false nor unknown).

        ``columns`` holds by leaf ordinal at least :meth:`columns`, all of one length, in the leaves' Arrow types
        (``Node.arrow_type``; dictionary-encoded and large ones too). A leaf inside structs must be null where any of
        them is. A leaf in a list has one element per item. ``levels`` are needed for leaves in lists and for null tests
        of groups, ``num_rows`` only for a :class:`Constant`. Rows outside of ``within`` may come out either way: so the
        later terms of AND and OR look only at rows that those before leave open.
        """
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

    def units_left(self, of_test: Callable[[Any], Mask | None], count: int) -> Mask:
        return np.full(count, self.value)

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        if num_rows < 0:
            raise ValueError("a constant predicate needs num_rows")
        return RowMask.all(num_rows) if self.value else RowMask.none(num_rows)

    def __str__(self) -> str:
        return "true" if self.value else "false"


TRUE, FALSE = Constant(True), Constant(False)
