"""What a task does for ``delete``, ``update`` and ``upsert``: its files are changed into staging, and rows are added.

Row groups without such rows are copied byte for byte, as :func:`pyparq.delete` does. Keys are those of staging.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyparq.arrow.ingest import ingest
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.dataset import dataset
from pyparq.datasets.explain import FileScan
from pyparq.datasets.scan import DatasetPlan, MatchingFiles
from pyparq.datasets.write.commit import StagedFiles
from pyparq.datasets.write.store_commit import StagedObjects, StoreStaging
from pyparq.datasets.write.write_dataset import StagedPart
from pyparq.errors import located
from pyparq.filters.expression import Expression
from pyparq.format.types import Schema
from pyparq.index.row_ranges import RowMask, Rows, rows_of
from pyparq.io.url import is_url
from pyparq.maintenance.row_changes.changed_file import GroupChange
from pyparq.maintenance.row_changes.copied_groups import NoSink
from pyparq.maintenance.row_changes.delete_update import rows_change
from pyparq.maintenance.row_changes.file_change import FileChange, rows_go, written
from pyparq.maintenance.row_changes.report import ChangedFileReport
from pyparq.maintenance.row_changes.upsert import UpsertedRows, Upserts, keys_of_rows, partition_values_of
from pyparq.read.scan import Scan
from pyparq.spark.options import keys_of
from pyparq.spark.staged_rows import Numbers, StagedReader, StagedRows, numbered, packed, unpacked
from pyparq.spark.tasks import attempt
from pyparq.spark.writing import WriteJob, stage

KeyValues = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Work:
    """What a task does to rows. It is pickled."""

    name: str
    """``"delete"``, ``"update"`` or ``"upsert"``."""
    values: dict[str, Any] | None
    """Of an update."""
    keep_empty: bool
    dry_run: bool
    decryption: str | None

    def find(self, scan: Scan) -> Mapping[int, GroupChange]:
        return rows_go(scan) if self.values is None else rows_change(scan, self.values)


@dataclass(frozen=True)
class Changed:
    """A file that a task has changed."""

    path: str
    """Relative to the folder."""
    report: ChangedFileReport
    part: StagedPart | None
    """``None``: the file goes, or nothing is written."""


@dataclass(frozen=True)
class Changes:
    """What a task has done."""

    files: tuple[Changed, ...]
    replaced: bytes
    """The numbers of staged rows that have taken the places of others, packed."""


def change_files(
    plan: DatasetPlan, paths: Mapping[str, str], work: Work, staged: StagedRows | None, job: WriteJob
) -> Changes:
    """Change some files, into staging."""
    target: StagedFiles | StagedObjects
    if isinstance(job.staging, StoreStaging):
        target = StagedObjects(job.staging, attempt(), job.storage_options)
    else:
        target = StagedFiles(job.staging, attempt())
    reader = None if staged is None else StagedReader(staged, job.storage_options)
    task = _Task(work, job, target, plan)
    keys = None if reader is None or work.name == "upsert" else reader.all_keys()
    if reader is None or keys is not None:
        matching = task.asked(plan.header.filters if keys is None else keys)
        found = [task.by_filter(file_scan, paths) for file_scan in matching.candidates()]
    else:
        found = [task.by_keys(number, reader, paths) for number in range(len(plan.files))]
    changed = tuple(one for one in found if one is not None)
    return Changes(changed, packed(np.unique(np.concatenate([np.empty(0, np.int64), *task.replaced]))))


class _Task:
    """Changes the files of a plan one after the other."""

    def __init__(self, work: Work, job: WriteJob, target: StagedFiles | StagedObjects, plan: DatasetPlan) -> None:
        self._work = work
        self._job = job
        self._store = job.storage_options if is_url(job.target) else None
        self._target = target
        self._plan = plan
        self.replaced: list[Numbers] = []

    def asked(self, filters: Expression | None) -> MatchingFiles:
        """All files, asked for these rows."""
        return _asked(self._plan, filters, self._work.decryption, self._store)

    def by_filter(self, file_scan: FileScan, paths: Mapping[str, str]) -> Changed | None:
        """Change the rows of a file that a scan finds, if there are any."""
        file = self._plan.files[file_scan.numbers[0]]
        with located(file=file.name):
            change = FileChange(file_scan.scan, self._work.find, self._work.keep_empty)
            return self._made(change, paths[file.where], file.name) if change.changes else None

    def by_keys(self, number: int, keys: StagedReader, paths: Mapping[str, str]) -> Changed | None:
        """Change the rows of a file that have one of the keys, if there are any."""
        file = self._plan.files[number]
        part = replace(self._plan, files=(file,)).trimmed()
        with located(file=file.name):
            matching = _asked(part, None, self._work.decryption, self._store)
            opened = matching.open(0)
            assert opened is not None  # errors are raised
            values = partition_values_of(matching.files, 0)
            by_keys = ByKeys(part, keys, values, self._work.decryption, self._store)
            find = self._upserts(by_keys) if self._work.name == "upsert" else by_keys.rows_go
            change = FileChange(Scan(opened.fork(), [], row_groups=[]), find, self._work.keep_empty)
            return self._made(change, paths[file.where], file.name) if change.changes else None

    def _upserts(self, by_keys: ByKeys) -> Callable[[Scan], Mapping[int, GroupChange]]:
        def find(scan: Scan) -> Mapping[int, GroupChange]:
            found, replaced = by_keys.upserts(scan)
            self.replaced.append(replaced)
            return found

        return find

    def _made(self, change: FileChange, path: str, name: str) -> Changed:
        if change.removes:
            return Changed(path, change.report(path), None)
        if self._work.dry_run:
            written(change, NoSink(name))
            return Changed(path, change.report(path), None)
        place = _new_name(path, self._job)
        sink = self._target.sink(place, False)
        written(change, sink)
        size = sink.position
        sink.commit()
        report = change.report(path)
        return Changed(path, report, StagedPart(self._target.staged(place), report.rows_left, size))


def _new_name(path: str, job: WriteJob) -> str:
    """A local file keeps its name. In a store, where files are placed one by one, the old one stays for readers."""
    if not isinstance(job.staging, StoreStaging):
        return path
    stem, _, suffix = path.rpartition(".")
    return f"{stem}-{attempt()}-{posixpath.basename(job.staging.folder).rpartition('-')[2]}.{suffix}"


class ByKeys:
    """The rows of one file that have one of the keys."""

    def __init__(
        self, part: DatasetPlan, keys: StagedReader, values: Mapping[str, Any], decryption: str | None, store: Any
    ) -> None:
        """``values``: of the file's partition columns. ``store``: options of the file's store."""
        self._part = part
        self._keys = keys
        self._values = values
        self._decryption = decryption
        self._store = store

    def rows_go(self, scan: Scan) -> dict[int, GroupChange]:
        """The rows go."""
        gone: dict[int, np.ndarray[Any, Any]] = {}
        for chunk, filters in self._keys.keys_within(scan.file, self._values):
            wanted = None if len(self._keys.key) == 1 else set(map(_plain, _tuples(chunk)))
            for row_group, rows in self._matching(scan, filters):
                numbers = rows.rows()
                if wanted is not None:
                    own = keys_of_rows(scan, row_group, rows, self._keys.key, self._values)
                    numbers = numbers[[_plain(key) in wanted for key in own]]
                mask = gone.setdefault(row_group, np.zeros(scan.file.num_rows_of(row_group), bool))
                mask[numbers] = True
        return {k: GroupChange(gone=rows_of(RowMask.of_bools(mask))) for k, mask in gone.items() if mask.any()}

    def upserts(self, scan: Scan) -> tuple[Mapping[int, GroupChange], Numbers]:
        """What becomes of the rows whose keys are those of staged rows, and the numbers of the staged rows that take
        their places."""
        import pyarrow as pa

        own = list[Any]()
        names = [name for name in self._keys.key if name not in self._values]
        for _, filters in self._keys.keys_within(scan.file, self._values):
            for row_group, rows in self._matching(scan, filters):
                ranges = rows.ranges if isinstance(rows, RowMask) else rows
                own.append(pa.table(Scan(scan.file.fork(), names, rows={row_group: ranges}).to_table()))
        if not own:
            return {}, np.empty(0, np.int64)
        table, numbers = self._keys.rows(scan.file, self._values, pa.concat_tables(own))
        if not table.num_rows:
            return {}, numbers
        data = UpsertedRows(table, self._part.header.schema, self._keys.key)
        asked = _asked(self._part, data.filters(), self._decryption, self._store)
        found = Upserts(data)
        found.begin(asked.files)
        matching = asked.ask(0, scan.file)
        changes = {} if matching is None else found.find(matching)
        return changes, numbers[found.replaced]

    def _matching(self, scan: Scan, filters: Expression) -> Iterator[tuple[int, Rows]]:
        found = _asked(self._part, filters, self._decryption, self._store).ask(0, scan.file)
        if found is not None:
            yield from found.matching_rows()


def _asked(plan: DatasetPlan, filters: Expression | None, decryption: str | None, store: Any) -> MatchingFiles:
    """The files of a plan, asked with one thread: Spark has as many tasks at a time as there are cores."""
    return plan.matching(filters, decryption=keys_of(decryption), storage_options=store, use_threads=False)


def _tuples(chunk: Any) -> KeyValues:
    return list(zip(*(column.to_pylist() for column in chunk.columns), strict=True))


def _plain(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key that equals itself: NaN does not."""
    return tuple("NaN" if value != value else value for value in key)


def _among(numbers: Numbers, ascending: Numbers) -> np.ndarray[Any, Any]:
    """Which of the numbers are among the others."""
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.asarray(ascending[places] == numbers)


# ---- rows that are added ---------------------------------------------------------------------------------------------


def add_staged(number: int, files: Sequence[tuple[str, bytes]], schema: Schema, job: WriteJob) -> tuple[Changed, ...]:
    """Write staged rows to new files. ``files``: the place of each staged file, and the numbers of its rows that are
    not added, packed. ``schema``: of the folder's columns."""
    import pyarrow as pa

    def tables() -> Iterator[Any]:
        for place, left_out in files:
            remote = job.storage_options if "://" in place else None
            done = unpacked(left_out)
            for batch in pa.RecordBatchReader.from_stream(
                dataset([place], storage_options=remote, partitioning=None, use_threads=False).scan()
            ):
                rows, numbers = numbered(pa.Table.from_batches([batch]))
                kept = rows.filter(pa.array(~_among(numbers, done)))
                _, batches = ingest(kept, schema)
                made = Table(schema, [Batch(part.columns, part.num_rows) for part in batches])
                yield from pa.table(made).to_batches()

    rows = pa.RecordBatchReader.from_batches(pa.schema(schema), tables())
    made = stage(rows, job, number, attempt())
    return tuple(
        Changed(
            part.file.path,
            ChangedFileReport(
                part.file.path, rows_added=part.num_rows, rows_left=part.num_rows, bytes_written=part.num_bytes
            ),
            part,
        )
        for part in made.parts
    )
