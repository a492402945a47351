"""Shares of a dataset: other processes read the footers of their files and plan them, one process puts it together.

A scan of a dataset needs one schema for all files, and a share's process knows its own files alone. So each tells
which schemas it met (:class:`Survey`). Where the schema of a share is that of the whole, its plans hold; the others are
planned again with the schema of the whole (:class:`Surveyed`).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column_operations import take
from pyparq.datasets.discovery import DataFile, Found
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching
from pyparq.datasets.read.dataset import Dataset, dataset_of
from pyparq.datasets.read.evolution import marked
from pyparq.datasets.read.one_schema import unify
from pyparq.errors import ParquetError, SchemaError, SkippedFileWarning
from pyparq.format.types import Schema
from pyparq.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Share:
    """Some files of a dataset, one after the other. It can be pickled where the files have paths or URLs."""

    first: int
    """Number of its first file in the dataset."""
    source: str
    """What the dataset is called."""
    files: tuple[DataFile, ...]
    partitions: Partitions

    @property
    def numbers(self) -> range:
        """Those of its files in the dataset."""
        return range(self.first, self.first + len(self.files))

    def dataset(
        self, schema: Schema | None, by: str, storage_options: Mapping[str, Any] | None, options: ReadOptions
    ) -> Dataset:
        """Its files as a dataset that leaves out those that cannot be read. ``schema``: to read the files with."""
        found = Found(self.source, self.files, False, storage_options)
        return dataset_of(found, self.partitions, schema, options, by, "skip")


@dataclass(frozen=True, slots=True)
class Survey:
    """What the footers of a share's files say."""

    schemas: tuple[tuple[str, Schema], ...]
    """Each schema that occurs, with the name of the first file that has it."""
    of_file: npt.NDArray[np.int64]
    """For each file its place in ``schemas``; -1 for one that cannot be read."""
    rows: npt.NDArray[np.int64]
    """Of each file; 0 for one that cannot be read."""


def shares_of(dataset: Dataset, count: int) -> list[Share]:
    """At most ``count`` shares with all files of the dataset, in their order and as even as can be."""
    files, partitions = dataset._found.files, dataset._partitions
    ends = np.linspace(0, len(files), max(min(count, len(files)), 1) + 1).astype(int).tolist()
    return [
        Share(first, dataset.root, files[first:last], _between(partitions, first, last))
        for first, last in itertools.pairwise(ends)
    ]


def _between(partitions: Partitions, first: int, last: int) -> Partitions:
    """The partition values of these files."""
    used, of_file = np.unique(partitions.of_file[first:last], return_inverse=True)
    return Partitions(
        partitions.fields, tuple(take(column, used) for column in partitions.columns), of_file.astype(np.int64)
    )


def survey(dataset: Dataset) -> Survey:
    """Read the footers of all files of a dataset, of a share most likely, and say what is in them."""
    schemas: dict[int, tuple[int, str, Schema]] = {}
    by_frame: dict[int, int] = {}
    count = len(dataset.files)
    of_file, rows = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedFileWarning)  # who asks sees which files are missing
        dataset.read_footers(range(count))
        for k in range(count):
            frame = dataset._footers.frame(k)
            place = None if frame is None else by_frame.get(frame)
            if place is None:
                file = dataset.open(k)
                if file is None:
                    continue
                new = len(schemas), file.name, marked(file.fields.schema, file.tree)
                place = schemas.setdefault(id(file.tree), new)[0]
                if frame is not None:
                    by_frame[frame] = place
            of_file[k], rows[k] = place, dataset._num_rows(k)
    return Survey(tuple((name, schema) for _, name, schema in schemas.values()), of_file, rows)


class Surveyed:
    """What the processes of all shares found in the footers of a dataset's files."""

    def __init__(self, shares: Sequence[tuple[Share, Survey]], failed: Mapping[int, ParquetError | OSError]) -> None:
        """``failed``: the files that cannot be read, by their numbers."""
        self.failed = failed
        self._schemas: list[tuple[str, Schema]] = []
        parts, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for _, seen in shares:
            parts.append(np.where(seen.of_file < 0, -1, seen.of_file + len(self._schemas)))
            rows.append(seen.rows)
            self._schemas += seen.schemas
        self._of_file, self.rows = np.concatenate(parts), np.concatenate(rows)

    def schemas(self, numbers: Sequence[int]) -> list[tuple[str, Schema]]:
        """The schemas of these files, in the order in which they first occur."""
        places = self._of_file[np.asarray(numbers, np.int64)]
        return [self._schemas[place] for place in dict.fromkeys(places.tolist()) if place >= 0]

    def is_like_all(self, share: Share, by: Matching) -> bool:
        """Whether a share's files make the same schema as all files: then names and literals mean the same for the
        share as for the whole."""
        return self._are_like(share.numbers, range(len(self._of_file)), by)

    def _are_like(self, some: Sequence[int], others: Sequence[int], by: Matching) -> bool:
        rules = [by.among(schema for _, schema in self.schemas(numbers)) for numbers in (some, others)]
        if rules[0] != rules[1]:
            return False
        try:
            return unify(self.schemas(some), rules[0]).fields == unify(self.schemas(others), rules[0]).fields
        except SchemaError:
            return False
