"""The files of a dataset with their footers, the common schema, and the files that are left out.

The schema is that of all files, whatever a filter leaves of them. It needs one footer of each kind. The catalog beside
the files, or another process (:class:`Surveyed`), may know it already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pyparq.datasets.catalog.catalog import KnownFiles, known_files
from pyparq.datasets.common_schema import Common, marked, tree_of, unify
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.file_columns import Matching, left_out
from pyparq.datasets.footers import Footers, is_remote
from pyparq.datasets.joint_keys import joint_keys, warn_dropped
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.tables import TableFiles
from pyparq.errors import LeftOutColumnsWarning, ParquetError, SkippedFileWarning
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema
from pyparq.index.row_ranges import RowRanges
from pyparq.io.file_systems import is_store
from pyparq.io.object_file import ObjectFile
from pyparq.io.source import begin
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile
from pyparq.runtime.messages import warn_caller
from pyparq.runtime.text import visible
from pyparq.runtime.threads import REQUESTS, cpu_count, map_requests, map_tasks, most_requests

T = TypeVar("T")
R = TypeVar("R")

Progress = Callable[[int, int], Any]
"""Called with the number of files that are done and the number of files."""


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


class DatasetFiles:
    """The state that the scans of a dataset share. :class:`pyparq.Dataset` is what users hold."""

    def __init__(
        self,
        found: SourceFiles,
        partitions: Partitions,
        declared: Schema | None,
        options: ReadOptions,
        by: str | Matching,
        on_error: str,
        progress: Progress | None = None,
        table: TableFiles | None = None,
    ) -> None:
        """``table``: what the log of a table says of the files, for a table of Delta Lake or Iceberg."""
        self.found = found
        self.partition_values = partitions
        self.declared = declared
        self.options = options
        rule = Matching(by, options.case_sensitive) if isinstance(by, str) else by
        self.matching = rule.among([declared]) if isinstance(by, str) and declared is not None else rule
        """Set once the schema is known: it holds the names that must be told apart by case."""
        self.tells_left_out = False
        """Whether to warn of columns that the declared schema does not have."""
        self.on_error = on_error
        self.progress = progress
        self.table = table
        self.footers = Footers(found.files, options, found.storage_options)
        self._surveyed: Surveyed | None = None
        self._whole: Common | None = None
        """The schema of all files without partition columns, once it is known."""
        self.is_remote = any(map(is_remote, found.files[:1]))
        """Whether requests take milliseconds, judged by the first file."""
        self._known: KnownFiles | None = None
        self._known_sought = False
        self.total = len(found.files)
        """Files of the dataset: more than these, where a trusted catalog has left out those without a key."""
        self._opened: dict[int, OpenFile] = {}
        self.unreadable: dict[int, ParquetError | OSError] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens files and catalogs anew."""
        return self.__dict__ | {"_opened": {}, "_surveyed": None, "_known": None, "_known_sought": False}

    # ---- what there is

    @property
    def files(self) -> list[str]:
        """Names of the files, in the order in which their rows come."""
        return [file.name for file in self.found.files]

    @property
    def root(self) -> str:
        """What the source is called."""
        return self.found.root

    @property
    def partitions(self) -> Schema:
        """The partition columns, and the ``filename`` column if it was asked for."""
        return Schema(self.partition_values.fields)

    @property
    def schema(self) -> Schema:
        """The Arrow schema of the table that all files make together: see :attr:`Dataset.schema`."""
        return self.schema_of(range(len(self.found.files)))

    @property
    def tree(self) -> SchemaTree:
        """:attr:`schema` as the tree of Parquet columns, as filters see it."""
        return tree_of(self.schema, case_sensitive=self.matching.case_sensitive)

    @property
    def skipped(self) -> list[tuple[str, Exception]]:
        """Files that were left out, with their errors (``on_error="skip"``)."""
        return [(self.found.files[k].name, error) for k, error in sorted(self.unreadable.items())]

    # ---- used by scans

    @property
    def known(self) -> KnownFiles | None:
        """The files that the folder's catalog knows."""
        if not self._known_sought:
            self._known = None if self.found.catalog is None else known_files(self.found, self.options)
            self._known_sought = True
        return self._known

    def believe(self, known: KnownFiles, schemas: Sequence[tuple[str, Schema]], total: int) -> None:
        """Take what a trusted catalog says: of these files, the schemas of all files, and how many there are."""
        self._known, self._known_sought = known, True
        if self.declared is None and schemas:
            self._whole = self._united(schemas, total)
        self.total = total

    def knows(self, k: int) -> bool:
        """Whether the catalog knows file ``k`` as it is listed."""
        return self.known is not None and self.known.has(k)

    def begin(self) -> None:
        """A scan begins: look again at remote files that are open, if they may have changed."""
        if self.is_remote:
            self.footers.begin()
            for file in self._opened.values():
                begin(file.fetcher.source)

    def open(self, k: int) -> OpenFile | None:
        """File ``k`` with its footer. ``None`` for a file that is left out."""
        opened = self._opened.get(k)
        if opened is None and k not in self.unreadable:
            try:
                opened = self.footers.open(k)
                self._opened[k] = opened
            except (ParquetError, OSError) as error:
                opened = None
                self.leave_out(k, error)
        return opened

    def with_survey(self, surveyed: Surveyed) -> DatasetFiles:
        """The same files, with footers that other processes have read."""
        other = self.with_options(self.options, self.declared)
        other._surveyed = surveyed
        return other

    def with_options(self, options: ReadOptions, declared: Schema | None = None) -> DatasetFiles:
        """The same files, to be read with other options. Nothing of them is known yet."""
        return DatasetFiles(
            self.found,
            self.partition_values,
            declared,
            options,
            self.matching,
            self.on_error,
            self.progress,
            self.table,
        )

    def only(self, numbers: Sequence[int]) -> DatasetFiles:
        """Only the files with these numbers. A catalog of all files is not asked about some of them."""
        files = tuple(self.found.files[k] for k in numbers)
        return DatasetFiles(
            replace(self.found, files=files, catalog=None),
            self.partition_values.of_some(np.array(numbers, np.int64)),
            self.declared,
            self.options,
            self.matching,
            self.on_error,
            self.progress,
        )

    def with_partitions(self, partitions: Partitions) -> DatasetFiles:
        """The same files with other partition values. What is known of them is shared."""
        other = copy(self)
        other.partition_values = partitions
        return other

    def read_footers(self, numbers: Iterable[int]) -> None:
        """Read the footers of these files, in parallel."""
        self.map_files(self.open, self.read_stored([k for k in numbers if k not in self.unreadable]))

    def read_stored(self, numbers: Iterable[int]) -> list[int]:
        """Read the footers of these files, where many can be read together, without decoding each. Returns the numbers
        of the files that must be opened one by one."""
        return self.footers.read(numbers, self.map_files)

    @property
    def model(self) -> OpenFile | None:
        """One of the files, if the footers of all were read and are of one kind: what it has, all have."""
        frames = self.footers.frames
        return self.open(int(frames[0])) if len(frames) and frames[0] >= 0 and (frames == frames[0]).all() else None

    def open_all(self, numbers: Iterable[int]) -> list[tuple[int, OpenFile]]:
        """The files with these numbers, without those that are left out. Their footers are read in parallel."""
        wanted = list(numbers)
        missing = [k for k in wanted if k not in self._opened and k not in self.unreadable]
        if len(missing) > 1:
            self.map_files(self.open, self.read_stored(missing))
        for k in missing:
            self.open(k)
        return [(k, self._opened[k]) for k in wanted if k in self._opened]

    def map_files(self, function: Callable[[T], R], items: Sequence[T], at_a_time: int = 0) -> list[R]:
        """``function`` of each item in parallel: on the processors, or, for remote files, on threads that wait for up
        to ``at_a_time`` items (by default :attr:`requests`)."""
        if self.is_remote and self.options.use_threads:
            return map_requests(function, items, at_a_time or self.requests)
        return map_tasks(function, items, self.options.use_threads)

    @property
    def requests(self) -> int:
        """Number of remote files to ask at a time, judged by the first one: where requests take the client little time,
        as many as the process may make."""
        quickly = any(map(_asks_quickly, self.found.files[:1]))
        return self.options.max_requests or (most_requests() if quickly else REQUESTS)

    def at_a_time(self) -> int:
        """Number of remote files to read at a time: as many as fit into ``prefetch_bytes``, and at least one per
        processor."""
        sizes = [file.size for file in self.found.files if file.size]
        mean = sum(sizes) // len(sizes) if sizes else 64 << 20
        return max(cpu_count(), min(self.requests, self.options.prefetch_bytes // max(mean, 1)))

    def _one_of_each(self, numbers: Iterable[int], asked: Collection[int]) -> Iterator[tuple[int, OpenFile]]:
        """One file for each kind of footer, and all files whose kind is unknown, with their numbers and footers.

        Footers are read in parallel. An unreadable file is passed over if it is not ``asked`` for rows.
        """
        wanted = [k for k in numbers if k not in self.unreadable]
        few = self.footers.kinds() if len(asked) * 4 <= len(wanted) == len(self.found.files) else None
        if few is None:
            alone = self.read_stored(wanted)
        else:
            wanted, alone = few, [k for k in few if self.footers.frames[k] < 0]

        def opened(k: int) -> OpenFile | None:
            return self.open(k) if k in asked else self._schema_of(k)

        if alone:
            self.map_files(opened, alone)
        frames, seen = self.footers.frames[wanted].tolist(), set[int]()
        for k, frame in zip(wanted, frames, strict=True):
            if frame not in seen and (file := opened(k)) is not None:
                yield k, file
                if frame >= 0:
                    seen.add(frame)

    def one_of_each_kind(self) -> Iterator[OpenFile]:
        """A file for each kind of footer: that of the catalog, where it knows the file."""
        wanted = list(range(len(self.found.files)))
        if self.known is not None:
            yield from (kind.model for _, kind in self.known.one_of_each(wanted))
            wanted = [k for k in wanted if not self.known.has(k)]
        yield from (file for _, file in self._one_of_each(wanted, ()))

    def _schema_of(self, k: int) -> OpenFile | None:
        """File ``k``, for its schema only. ``None`` if it cannot be read; no error is raised or noted."""
        if k not in self._opened and k not in self.unreadable:
            try:
                self._opened[k] = self.footers.open(k)
            except (ParquetError, OSError):
                return None
        return self._opened.get(k)

    def know_rows(self, numbers: Iterable[int]) -> None:
        """Read the footers of these files, in parallel, where they are needed to know the number of rows."""
        rows = self.footers.rows
        self.read_footers(k for k in numbers if k not in self._opened and rows[k] < 0 and not self.knows(k))

    def num_rows_of(self, k: int) -> int:
        """Rows of file ``k``. 0 for a file that is left out."""
        if k not in self.unreadable:
            if self.table is not None and self.table.rows_left(k) >= 0:
                return self.table.rows_left(k)
            if self.footers.rows[k] >= 0:
                return int(self.footers.rows[k])
            if not self.has_deleted(k) and self.knows(k):
                return self.known.rows(k)  # type: ignore[union-attr]
        file = self.open(k)
        return 0 if file is None else self._rows_in(k, file)

    def _rows_in(self, k: int, file: OpenFile) -> int:
        rows = self.rows_kept(k, file)
        if rows is not None:
            return sum(part.count for part in rows.values())
        return sum(file.num_rows_of(group) for group in range(file.num_row_groups))

    def has_deleted(self, k: int) -> bool:
        """Whether file ``k`` stores rows that its table no longer has."""
        return self.table is not None and k in self.table.deleted

    def stored_rows(self, k: int, file: OpenFile, rows: Any) -> Any:
        """``rows`` of file ``k`` as a scan takes them. ``rows``: ``None`` for all, a slice, or row numbers that rise,
        counted among the rows that the table has."""
        kept = self.rows_kept(k, file)
        if kept is None or rows is None:
            return rows if kept is None else kept
        firsts = np.cumsum([0, *(file.num_rows_of(group) for group in range(file.num_row_groups))])
        stored = [part.rows() + firsts[group] for group, part in kept.items()]
        return np.concatenate([np.zeros(0, np.int64), *stored])[rows]

    def rows_kept(self, k: int, file: OpenFile) -> dict[int, RowRanges] | None:
        """For a file of which a table has deleted rows, the other rows by row group."""
        if self.table is None or k not in self.table.deleted:
            return None
        counts = [file.num_rows_of(group) for group in range(file.num_row_groups)]
        return self.table.kept(k, counts, file.name)

    def left_out_columns(self, file: OpenFile) -> list[str]:
        """Columns of a file that the declared schema does not have, and whose values no partition gives."""
        if self.declared is None or self.table is not None:
            return []
        fields = (*self.declared.fields, *self.partition_values.fields)
        return left_out(file.tree, marked(file.fields.schema, file.tree), fields, self.matching)

    def warn_left_out(self, file: OpenFile) -> None:
        """Warn of columns of a file that the declared schema leaves out."""
        names = self.left_out_columns(file)
        if names:
            text = f"schema= leaves out columns that the file has: {', '.join(map(visible, names))} [file {file.name}]"
            warn_caller(text, LeftOutColumnsWarning)

    def leave_out(self, k: int, error: ParquetError | OSError) -> None:
        """Raise ``error`` for file ``k``, or leave the file out from now on."""
        is_gone = isinstance(error, FileNotFoundError)
        if self.on_error == "raise" or (self.on_error == "skip_missing" and not is_gone):
            raise error
        self._opened.pop(k, None)
        self.unreadable[k] = error
        said = SkippedFileWarning(f"the file is left out: {error}", self.found.files[k].name)
        warn_caller(said)

    def schema_of(self, asked: Collection[int]) -> Schema:
        """The schema of all files, for a scan of the files ``asked``. Other files are passed over if they cannot be
        read. Raises :class:`SchemaError` if a column has no common type."""
        return self.common(asked).for_all_columns()

    def common(self, asked: Collection[int]) -> Common:
        """As :meth:`schema_of`, with the columns that have no common type apart."""
        if self._whole is None:
            self._whole = Common(self.declared, {}) if self.declared is not None else self._unified(asked)
        return self._with_partitions(self._whole)

    def common_of_some(self, numbers: Iterable[int], asked: Collection[int] = ()) -> Common:
        """What these files have in common."""
        return self._with_partitions(self._of_footers(sorted(set(numbers)), asked))

    @property
    def knows_schema(self) -> bool:
        """Whether :meth:`schema_of` needs no footer."""
        known = self._whole is not None or self.declared is not None or self._surveyed is not None
        return known or (self.known is not None and self.known.are_all)

    def _with_partitions(self, common: Common) -> Common:
        if not self.partition_values.fields:
            return common
        names, own = self.partition_values.names, common.schema
        if self.table is not None:  # in the table's order
            added = (f for f in self.partition_values.fields if f.name not in own.names)
            return Common(Schema((*own.fields, *added)), common.clashes)
        kept = (field for field in own.fields if not self.matching.has(names, field.name))
        clashes = {name: error for name, error in common.clashes.items() if not self.matching.has(names, name)}
        return Common(Schema((*kept, *self.partition_values.fields), own.metadata), clashes)

    def _unified(self, asked: Collection[int]) -> Common:
        everything = range(len(self.found.files))
        if self._surveyed is not None:
            for k in asked:
                if k in self._surveyed.failed and k not in self.unreadable:
                    self.leave_out(k, self._surveyed.failed[k])
            return self._united(self._surveyed.schemas(everything), self.total)
        return self._of_footers(everything, asked)

    def _of_footers(self, numbers: Iterable[int], asked: Collection[int]) -> Common:
        wanted, rows_of = list(numbers), frozenset(asked)
        distinct: dict[int, tuple[int, str, Schema]] = {}
        if self.known is not None:
            for k, kind in self.known.one_of_each(wanted):
                name, model = self.found.files[k].name, kind.model
                distinct.setdefault(id(model.tree), (k, name, marked(model.fields.schema, model.tree)))
            wanted = [k for k in wanted if not self.known.has(k)]
        for k, file in self._one_of_each(wanted, rows_of):
            if id(file.tree) not in distinct:
                distinct[id(file.tree)] = k, file.name, marked(file.fields.schema, file.tree)
        ordered = sorted(distinct.values(), key=lambda one: one[0])
        return self._united([(name, schema) for _, name, schema in ordered], self.total)

    def _united(self, named: Sequence[tuple[str, Schema]], count: int) -> Common:
        """What ``count`` files with these schemas have in common. Each comes with the name of a file that has it."""
        schemas = [schema for _, schema in named]
        if len(schemas) == 1 and self.matching.case_sensitive and not schemas[0].metadata:
            return Common(schemas[0], {})
        self.matching = self.matching.among(schemas)
        schema, clashes = unify(named, self.matching)
        keys, dropped = joint_keys(schemas, schema, several=count > 1)
        warn_dropped(dropped, self.root)
        return Common(replace(schema, metadata=keys), clashes)


def _asks_quickly(file: DataFile) -> bool:
    """Whether requests for the file take the client little time."""
    where = file.where
    return (
        isinstance(where, ObjectFile)
        or is_store(file.fs)
        or (isinstance(where, str) and where.startswith(("http://", "https://")))
    )
