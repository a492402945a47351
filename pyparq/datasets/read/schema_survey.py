"""The schemas of a dataset's files, from several processes that have read their footers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyparq.datasets.read.column_matching import Matching
from pyparq.datasets.read.one_schema import unify
from pyparq.errors import ParquetError
from pyparq.format.types import Schema


@dataclass(frozen=True, slots=True)
class Survey:
    """The schemas that the footers of a share's files contain."""

    schemas: tuple[tuple[str, Schema], ...]
    """Each schema that occurs, with the name of the first file that has it."""
    of_file: npt.NDArray[np.int64]
    """For each file, the position of its schema in ``schemas``. -1 for an unreadable file."""
    rows: npt.NDArray[np.int64]
    """Of each file; 0 for one that cannot be read."""


class Surveyed:
    """The schemas of all files of a dataset, from the surveys of its shares."""

    def __init__(self, surveys: Sequence[Survey], failed: Mapping[int, ParquetError | OSError]) -> None:
        """``surveys``: those of the shares, in their order. ``failed``: the unreadable files, by their numbers."""
        self.failed = failed
        self._schemas: list[tuple[str, Schema]] = []
        parts, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for seen in surveys:
            parts.append(np.where(seen.of_file < 0, -1, seen.of_file + len(self._schemas)))
            rows.append(seen.rows)
            self._schemas += seen.schemas
        self._of_file, self.rows = np.concatenate(parts), np.concatenate(rows)

    def schemas(self, numbers: Sequence[int]) -> list[tuple[str, Schema]]:
        """The schemas of these files, in the order in which they first occur."""
        places = self._of_file[np.asarray(numbers, np.int64)]
        return [self._schemas[place] for place in dict.fromkeys(places.tolist()) if place >= 0]

    def are_like_all(self, some: Sequence[int], by: Matching) -> bool:
        """Whether the files with these numbers have the same common schema as all files. Names and literals then mean
        the same for them as for the whole."""
        others = range(len(self._of_file))
        rules = [by.among(schema for _, schema in self.schemas(numbers)) for numbers in (some, others)]
        if rules[0] != rules[1]:
            return False
        own, whole = (unify(self.schemas(numbers), rules[0]) for numbers in (some, others))
        return own.schema.fields == whole.schema.fields and not whole.clashes
