"""Streams from a folder in which files arrive: ``spark.readStream.format("pyparq")``. An offset tells which files were
read.

Times alone do not tell it: ``chmod``, ``touch`` and hard links give old files new ones. So an offset holds the names of
all files that were given out and are still there, eight bytes each (hashes). Spark keeps an offset for every batch, so
of more than :data:`MOST_NAMES` files only the latest are named. Every file that is older than these counts as read.
"""

from __future__ import annotations

import base64
import binascii
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xxhash
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.dataset import dataset_of
from pyparq.datasets.discovery import discover
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.partitions import partitions_of
from pyparq.errors import ChangedFileError, LimitError, OptionError, PlanError, UnsupportedError
from pyparq.spark.options import keys_of
from pyparq.spark.question import Question, by_of, dataset_scan, parts_of, pickled, read_options, schema_given
from pyparq.spark.reading import read_part
from pyparq.spark.tasks import OnWorkers
from pyparq.spark.types import declared_folders

LATE = 600.0
"""Seconds: a writer may take so long between the time that a file gets and the time that it is seen."""

MOST_NAMES = 100_000
"""In one offset: about a megabyte of text."""
_HASH_BYTES = 8


@dataclass(frozen=True)
class Arrival:
    """A file, and when it came."""

    file: DataFile
    time: int
    """Nanoseconds since 1970. Of a local file the last change of its directory entry or content, which a rename sets;
    of an object the store's own time."""
    key: str
    """The hash of its name."""


def arrived(files: Iterable[DataFile]) -> list[Arrival]:
    """When files came, in this order.

    Raises :class:`pyparq.UnsupportedError` where a store does not say it. A file that is gone is passed over.
    """
    found = []
    for file in files:
        time = file.mtime_ns
        if isinstance(file.where, str) and "://" not in file.where:
            try:
                time = os.stat(file.where).st_ctime_ns
            except FileNotFoundError:
                continue
        if time is None:
            raise UnsupportedError(f"{file.name}: this store lists files without times, which a stream needs")
        found.append(Arrival(file, time, xxhash.xxh64_hexdigest(file.name.encode("utf-8", "surrogateescape"))))
    return sorted(found, key=lambda arrival: (arrival.time, arrival.file.name))


@dataclass(frozen=True)
class Offset:
    """How far a stream has come."""

    time: int | None = None
    """Of the latest file that was given out, in nanoseconds; ``None``: no file was."""
    names: frozenset[str] = frozenset()
    """Keys of the files that were given out."""
    horizon: int | None = None
    """Files of this time and before it count as given out, whatever their names; ``None``: the names tell all."""

    def to_json(self) -> dict[str, Any]:
        names = base64.b64encode(b"".join(map(bytes.fromhex, sorted(self.names)))).decode()
        return {"version": 2, "time": self.time, "horizon": self.horizon, "names": names}

    @classmethod
    def from_json(cls, given: Mapping[str, Any], late: float = LATE) -> Offset:
        """``late``: the seconds of :class:`Arrivals`, for an offset of version 1, which has no horizon.

        Raises :class:`pyparq.PlanError` for what is no offset of ours."""
        version, time, names = given.get("version"), given.get("time"), given.get("names")
        horizon = given.get("horizon")
        try:
            if not (isinstance(time, int | None) and isinstance(horizon, int | None)):
                raise ValueError
            if version == 1 and isinstance(names, list):
                return cls(time, frozenset(map(str, names)), None if time is None else time - int(late * 1e9))
            if version != 2 or not isinstance(names, str):
                raise ValueError
            packed = base64.b64decode(names, validate=True)
        except (ValueError, binascii.Error):
            raise PlanError(
                f"the checkpoint holds no offset of pyparq's stream reader: {str(dict(given))[:100]}"
            ) from None
        cut = range(0, len(packed), _HASH_BYTES)
        return cls(time, frozenset(packed[k : k + _HASH_BYTES].hex() for k in cut), horizon)


@dataclass(frozen=True)
class Arrivals:
    """The rules by which offsets are moved on."""

    late: float = LATE
    """Seconds."""

    def covers(self, offset: Offset, arrival: Arrival) -> bool:
        """Was the file given out before ``offset``, or did it come too late?"""
        return arrival.key in offset.names or (offset.horizon is not None and arrival.time <= offset.horizon)

    def advanced(self, start: Offset, files: Sequence[Arrival], limit: int | None) -> Offset:
        """The offset behind at most ``limit`` more of the files, which are in order.

        Raises :class:`pyparq.LimitError` where it would have to name too many files.
        """
        new = [arrival for arrival in files if not self.covers(start, arrival)]
        if not new:
            return start
        taken, left = new[:limit], new[len(new[:limit]) :]
        time = max(taken[-1].time, start.time if start.time is not None else taken[-1].time)
        keys = {arrival.key for arrival in taken} | start.names
        given = [arrival for arrival in files if arrival.key in keys]
        horizon = start.horizon
        if len(given) > MOST_NAMES:
            oldest = [time - int(self.late * 1e9), given[-MOST_NAMES - 1].time, *(a.time - 1 for a in left[:1])]
            horizon = max(min(oldest), horizon if horizon is not None else min(oldest))
            given = [arrival for arrival in given if arrival.time > horizon]
        if len(given) > MOST_NAMES:
            raise LimitError(
                f"{len(given):,} files came within {self.late:g} seconds, and an offset names at most {MOST_NAMES:,}: "
                "set the option late_seconds lower, or maxFilesPerTrigger"
            )
        return Offset(time, frozenset(arrival.key for arrival in given), horizon)

    def between(self, start: Offset, end: Offset, files: Sequence[Arrival]) -> list[Arrival]:
        """The files of the batch from ``start`` to ``end``.

        Raises :class:`pyparq.ChangedFileError` if a file that ``end`` names is gone.
        """
        missing = end.names - start.names - {arrival.key for arrival in files}
        if missing:
            raise ChangedFileError(
                f"{len(missing)} of the files of this batch are gone: a folder that a stream reads must keep its files "
                "until they are read"
            )
        return [arrival for arrival in files if self.covers(end, arrival) and not self.covers(start, arrival)]


class StreamReader(OnWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Gives out each file once, in the order in which the files came (:class:`Arrivals`)."""

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
        yield from read_part(pickle.loads(partition.value), self._question.settings())

    def _offset(self, given: dict[str, Any]) -> Offset:
        return Offset.from_json(given, self._arrivals.late)

    def _found(self) -> SourceFiles:
        return self._question.choice.of(discover(self._question.source, self._question.storage_options))

    def _dataset(self, all_files: SourceFiles, batch: SourceFiles) -> Any:
        """The batch as a dataset. Values of folders have the types of the stream, whatever the batch's folders are."""
        question = self._question
        partitioning = question.options.get("partitioning", "hive")
        if partitioning == "hive":
            names = partitions_of(all_files.files, "hive").names
            declared = StructType([field for field in self._schema if field.name in names])
            partitioning = declared_folders(declared, question.zone) if len(declared) else "hive"
        files = DatasetFiles(
            batch, partitions_of(batch.files, partitioning), schema_given(question),
            read_options(question, keys_of(question.decryption)), by_of(question), question.on_error,
        )  # fmt: skip
        return dataset_of(files)
