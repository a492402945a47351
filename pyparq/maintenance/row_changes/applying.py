"""Rows of many files changed: which files may hold them, and in how many rounds.

With ``retries`` there are more rounds: one for files that another program has changed, or for those that it has added.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import Dataset, files_of
from pyparq.datasets.explain import FileScan
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.scan import MatchingFiles
from pyparq.datasets.write.commit import complete_writes
from pyparq.datasets.write.targets import place_of
from pyparq.errors import ChangedFileError, ChangedMeanwhile, OptionError, WriteConflictError
from pyparq.filters.expression import top_names
from pyparq.io.locations import located as on_system
from pyparq.io.table_formats import check_buckets, check_streams, format_of
from pyparq.io.url import is_url
from pyparq.maintenance.file_runs import side_by_side, size_in_store
from pyparq.maintenance.in_place import check_not_managed, local_file
from pyparq.maintenance.kept_storage import check_defaults
from pyparq.maintenance.row_changes.file_change import FindChanges, index_help
from pyparq.maintenance.row_changes.places import Additions, ApplyOptions, OneByOne, Place, place_for
from pyparq.maintenance.row_changes.report import ChangedFileReport, ChangeReport, IndexHelp

_CONFLICTS = (ChangedFileError, WriteConflictError, FileNotFoundError)
_NEW = DataFile("", None)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
"""Seconds."""


def table_of(source: Any) -> Any:
    """The source, if it is a table that ``deltalake`` or ``pyiceberg`` has opened."""
    return source if format_of(source) is not None else None


def relisted(source: Any, again: Callable[[], Dataset]) -> Callable[[], Dataset] | None:
    """``again``, if the files of the source can be listed anew."""
    return None if isinstance(source, Dataset) or format_of(source) is not None else again


def opened(source: Any, storage_options: Mapping[str, Any] | None, filesystem: Any, **options: Any) -> Dataset:
    """The source as a dataset, after writes there that crashed are completed: their old files must not be changed."""
    if isinstance(source, Dataset):
        return source
    if format_of(source) is not None:
        return Dataset(source, storage_options=storage_options, **options)
    source, storage_options = on_system(source, filesystem, storage_options)
    if isinstance(source, (bytes, bytearray, memoryview)) or hasattr(source, "read"):
        raise OptionError(f"rows of a {type(source).__name__} cannot be changed in place: give a path or a URL")
    if not isinstance(source, (list, tuple)) and not is_url(source):
        complete_writes(source)
    return Dataset(source, storage_options=storage_options, **options)


def apply(
    dataset: Dataset, filters: Any, find: FindChanges, options: ApplyOptions, more: Additions | None = None
) -> ChangeReport:
    """Change the rows of a dataset for which ``filters`` is true, as ``find`` says, and then add ``more`` rows."""
    began = time.perf_counter()
    rounds = _Rounds(filters, find, options, more)
    for number in range(options.retries + 1):
        try:
            rounds.run(dataset)
        except _CONFLICTS as error:
            if number == options.retries or options.again is None:
                if isinstance(error, FileNotFoundError) and not files_of(dataset).found.is_one_file:
                    raise ChangedMeanwhile("another program has removed the file", file=error.filename) from error
                raise
            time.sleep(min(_FIRST_WAIT * 2**number, _LONGEST_WAIT) * random.uniform(0.5, 1))
            dataset = options.again()
            if rounds.may_have_moved(dataset):
                raise  # some of the rows that have changed already
            continue
        found = None if options.dry_run else rounds.with_more_files(dataset)
        if found is None:
            break
        if rounds.may_have_moved(found):
            rounds.notes.append(
                "another program has replaced files that were done: its new files may have rows that have changed "
                "already, so they were not looked at"
            )
            break
        dataset = found
    else:
        rounds.notes.append("more files were added or changed while the last round ran, and they were not looked at")
    return ChangeReport(
        files_of(dataset).root, tuple(rounds.reports), rounds.total, options.dry_run, tuple(rounds.asked),
        time.perf_counter() - began, tuple(rounds.notes),
    )  # fmt: skip


class _Rounds:
    """The rounds of one call. Each looks at the files that none before it has done."""

    def __init__(self, filters: Any, find: FindChanges, options: ApplyOptions, more: Additions | None) -> None:
        self._filters = filters
        self._changes_of = find
        self._options = options
        self._more = more
        self._done = dict[str, DataFile | None]()
        """Files that have been looked at, by place: ``None`` for those that have changed here."""
        self._listed = set[str]()
        self.total = 0
        """Files of the source, with those that were added."""
        self.reports: list[ChangedFileReport] = []
        self.asked: list[IndexHelp] = []
        self.notes: list[str] = []

    def run(self, dataset: Dataset) -> None:
        """One round. After an error nothing of it counts, except files that were replaced one by one."""
        scan, options = dataset.scan([], self._filters), self._options
        files = MatchingFiles(scan).files
        if files.table is None:
            check_streams(files.found.streams, options.force)
            _check_folders(files, options.force)
            if not options.only_removes:
                check_buckets(files.files, options.force)
        if self._more is not None:
            self._more.begin(files)
        places = list(map(place_of, files.found.files))
        new = [number for number, file in enumerate(files.found.files) if self._is_new(file)]
        if files.table is None and not files.found.is_one_file:
            asked = {*options.columns, *top_names(scan.filters)}
            check_defaults([*files.one_of_each_kind()], asked, "write the table again with Spark first")
        matching = MatchingFiles(scan, new)
        candidates = matching.candidates()
        helped = index_help(matching.reports)
        place = place_for(files, matching, candidates, self._changes_of, options, self._more)
        reports = list[ChangedFileReport]() if place.at_once else self.reports
        made = dict[int, ChangedFileReport]()

        def change(file_scan: FileScan) -> None:
            (number,) = file_scan.numbers
            report = place.change(file_scan)
            if report is not None:
                made[number] = report
                if not place.at_once and self._more is None:
                    self._done[places[number]] = None

        try:
            try:
                sizes = _sizes(candidates, place, files, self._more)
                side_by_side(change, candidates, sizes, options.progress)
            finally:
                reports += [made[number] for number in sorted(made)]
            added = place.finish()
            self.notes += place.commit()
        except BaseException:
            place.abort()
            raise
        if place.at_once:
            self.reports += reports
        self.reports += added
        self.asked += helped
        self.total += len({*places} - self._listed) if self._listed else files.total
        self._listed.update(places)
        self._done.update((places[number], files.found.files[number]) for number in new)
        self._done.update((_absolute(report.file), None) for report in self.reports)
        if self._more is not None:
            self._more.placed()

    def with_more_files(self, dataset: Dataset) -> Dataset | None:
        """The source listed anew, if it has files that have not been looked at, or have changed since."""
        if not self._options.retries or self._options.again is None or files_of(dataset).found.is_one_file:
            return None
        try:
            found = self._options.again()
        except FileNotFoundError:  # no file is left
            return None
        return found if any(map(self._is_new, files_of(found).found.files)) else None

    def _is_new(self, file: DataFile) -> bool:
        """Whether a listed file has not been looked at, or has been changed since by another program."""
        seen = self._done.get(place_of(file), _NEW)
        return seen is not None and seen != file

    def may_have_moved(self, dataset: Dataset) -> bool:
        """Whether rows that have changed, and may not change again, may lie in files that have not been looked at."""
        removed = {_absolute(report.file) for report in self.reports if report.removed}
        there = set(map(place_of, files_of(dataset).found.files))
        return not self._options.repeatable and not there.issuperset(self._done.keys() - removed)


def _absolute(where: str) -> str:
    return where if is_url(where) else os.path.abspath(where)


def _sizes(
    candidates: Sequence[FileScan], place: Place, files: DatasetFiles, more: Additions | None
) -> list[int | None]:
    """Of the files that may be changed beside each other: objects in a store that are replaced one by one."""
    if not isinstance(place, OneByOne):
        return [None] * len(candidates)
    place.begin(candidates)
    return [None if more is not None else size_in_store(files.found.files[scan.numbers[0]]) for scan in candidates]


_INSTEAD = (
    "Give the table itself for a commit: deltalake.DeltaTable({table!r}), on the command line --table delta, or a "
    "table of a catalog of pyiceberg"
)


def _check_folders(files: DatasetFiles, force: bool) -> None:
    """Raise :class:`OptionError` for local files of a table format, whether rows of them change or not."""
    paths = [path for path in (local_file(file.where) for file in files.found.files) if path]
    for path in {os.path.dirname(path): path for path in paths}.values():
        check_not_managed(path, force, _INSTEAD)
