"""Streams from a folder in which files arrive: ``spark.readStream.format("pyparq")``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType, TimestampType

from pyparq.datasets.data_files import SourceFiles
from pyparq.datasets.dataset import dataset_of
from pyparq.datasets.discovery import discover
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.partitions import partitions_of
from pyparq.errors import OptionError
from pyparq.spark import tasks
from pyparq.spark.arrivals import Arrival, Arrivals, Offset, arrived
from pyparq.spark.keys import keys_of
from pyparq.spark.partition_types import SparkFolders
from pyparq.spark.question import Question, by_of, dataset_scan, parts_of, pickled, read_options, schema_given


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Gives out each file once, in the order in which the files came (:mod:`pyparq.spark.arrivals`)."""

    def __init__(self, question: Question, schema: StructType, late: float, max_files: int | None) -> None:
        if question.on_error != "raise":
            raise OptionError('a stream cannot take on_error="skip": a file that is left out would never be read')
        self._question = question
        self._schema = schema
        self._arrivals = Arrivals(late)
        self._max_files = max_files
        self._last: list[Arrival] | None = None
        """With ``availableNow``: the files that were there when the query began."""

    def initialOffset(self) -> dict[str, Any]:
        return Offset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._max_files is None else ReadMaxFiles(self._max_files)

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = arrived(self._found().files)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        files = arrived(self._found().files) if self._last is None else self._last
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return self._arrivals.advanced(self._offset(start), files, most).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        found = self._found()
        batch = self._arrivals.between(self._offset(start), self._offset(end), arrived(found.files))
        if not batch:
            return []
        of_batch = replace(found, files=tuple(arrival.file for arrival in batch), is_one_file=False)
        plan = dataset_scan(self._question, self._dataset(found, of_batch)).plan()
        if not plan.files:
            return []
        parts = plan.split(self._question.parts or parts_of(plan.num_bytes, os.cpu_count() or 1))
        return [InputPartition(payload) for payload in pickled(parts)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield from tasks.run("read", partition.value, self._question.settings())

    def _offset(self, given: dict[str, Any]) -> Offset:
        return Offset.from_json(given, self._arrivals.late)

    def _found(self) -> SourceFiles:
        return discover(self._question.source, self._question.storage_options)

    def _dataset(self, all_files: SourceFiles, batch: SourceFiles) -> Any:
        """The batch as a dataset. Values of folders have the types of the stream, whatever the batch's folders are."""
        question = self._question
        partitioning = question.options.get("partitioning", "hive")
        if partitioning == "hive":
            names = partitions_of(all_files.files, "hive").names
            declared = StructType([field for field in self._schema if field.name in names])
            partitioning = to_arrow_schema(declared, timezone="UTC") if len(declared) else "hive"
            instants = tuple(f.name for f in declared if isinstance(f.dataType, TimestampType))
            if instants and question.zone:
                partitioning = SparkFolders(question.zone, instants=instants)
        files = DatasetFiles(
            batch, partitions_of(batch.files, partitioning), schema_given(question),
            read_options(question, keys_of(question.decryption)), by_of(question), question.on_error,
        )  # fmt: skip
        return dataset_of(files)
