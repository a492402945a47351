"""Shares of a dataset: several processes read the footers of the files and plan them, and one process joins the plans.

A scan of a dataset needs one schema for all files, but the process of a share knows only its own files. So each process
reports the schemas that it found (:class:`Survey`). If a share has the same schema as the whole dataset, its plans are
valid. The other shares are planned again with the schema of the whole (:class:`Surveyed`).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyparq.datasets.common_schema import marked
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.files import DatasetFiles, Survey
from pyparq.datasets.partitions import Partitions
from pyparq.errors import SkippedFileWarning
from pyparq.format.types import Schema
from pyparq.options import ReadOptions


@dataclass(frozen=True, slots=True)
class Share:
    """Consecutive files of a dataset. It can be pickled if the files have paths or URLs."""

    first: int
    """Number of its first file in the dataset."""
    source: str
    """What the dataset is called."""
    files: tuple[DataFile, ...]
    partitions: Partitions

    @property
    def numbers(self) -> range:
        """The numbers of its files in the dataset."""
        return range(self.first, self.first + len(self.files))

    def dataset_files(
        self, schema: Schema | None, by: str, storage_options: Mapping[str, Any] | None, options: ReadOptions
    ) -> DatasetFiles:
        """Its files as those of a dataset that leaves out unreadable files. ``schema``: what to read them with."""
        found = SourceFiles(self.source, self.files, False, storage_options)
        return DatasetFiles(found, self.partitions, schema, options, by, "skip")


def shares_of(dataset: DatasetFiles, count: int) -> list[Share]:
    """At most ``count`` shares that hold all files of the dataset in their order, as even as possible."""
    files, partitions = dataset.found.files, dataset.partition_values
    ends = np.linspace(0, len(files), max(min(count, len(files)), 1) + 1).astype(int).tolist()
    return [
        Share(first, dataset.root, files[first:last], partitions.of_some(np.arange(first, last)))
        for first, last in itertools.pairwise(ends)
    ]


def survey(dataset: DatasetFiles) -> Survey:
    """Read the footers of all files of a dataset, usually of a share, and report their schemas."""
    schemas: dict[int, tuple[int, str, Schema]] = {}
    by_frame: dict[int, int] = {}
    count = len(dataset.files)
    of_file, rows = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedFileWarning)  # the caller reports the missing files
        dataset.read_footers(range(count))
        for k in range(count):
            frame = dataset.footers.frame(k)
            place = None if frame is None else by_frame.get(frame)
            if place is None:
                file = dataset.open(k)
                if file is None:
                    continue
                new = len(schemas), file.name, marked(file.fields.schema, file.tree)
                place = schemas.setdefault(id(file.tree), new)[0]
                if frame is not None:
                    by_frame[frame] = place
            of_file[k], rows[k] = place, dataset.num_rows_of(k)
    return Survey(tuple((name, schema) for _, name, schema in schemas.values()), of_file, rows)
