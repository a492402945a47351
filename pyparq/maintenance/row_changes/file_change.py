"""One file whose rows change: which rows, what writes the new file, and the report about it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from pyparq.encryption.writing import CLEAR_FILE, EncryptedFile, FileEncryption
from pyparq.errors import DataError
from pyparq.io.sink import Sink
from pyparq.maintenance.report import Outcome
from pyparq.maintenance.row_changes.changed_file import ChangedFile, GroupChange
from pyparq.maintenance.row_changes.report import ChangedFileReport, IndexHelp
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.candidates import StageReport
from pyparq.read.scan import Scan
from pyparq.write.shred import LeafData

FindChanges = Callable[[Scan], Mapping[int, GroupChange]]
"""What happens to the row groups in which a scan finds rows. The scan asks the file that is changed."""

MoreRows = Callable[[OpenFile], list[list[LeafData]]]
"""The leaves of row groups that are added to a file."""


def rows_go(scan: Scan) -> dict[int, GroupChange]:
    """The rows of a scan go."""
    return {row_group: GroupChange(gone=rows) for row_group, rows in scan.matching_rows()}


class FileChange:
    """The change of the file that ``scan`` asks. Making it reads the columns of the filter."""

    def __init__(self, scan: Scan, find: FindChanges, keep_empty: bool, more: MoreRows | None = None) -> None:
        """``keep_empty``: a file without rows stays, with its schema. ``more``: rows that are added to this file."""
        self._began = time.perf_counter()
        self._scan = scan
        self._changes = find(scan)
        self._keep_empty = keep_empty
        self._added = [] if more is None else more(scan.file)
        self._writer: ChangedFile | None = None

    @property
    def changes(self) -> bool:
        """Whether any row changes, or is added."""
        return bool(self._changes or self._added)

    def check_required(self, required: Collection[str]) -> None:
        """Raise :class:`DataError` for a null among new values of these columns, which the file does not require."""
        leaves = (leaf for change in self._changes.values() for leaf in change.values.values())
        for leaf in leaves:
            if leaf.node.path[0] in required and leaf.def_levels is not None and (leaf.def_levels == 0).any():
                raise DataError("the column must not be null", column=leaf.node.path[0])

    @property
    def removes(self) -> bool:
        """Whether no row is left, and the file goes."""
        return not self._keep_empty and not self.writer.rows_left

    @property
    def writer(self) -> ChangedFile:
        """Writes the new file (:class:`pyparq.maintenance.file_runs.Writer`)."""
        if self._writer is None:
            file = self._scan.file
            self._writer = ChangedFile(file, self._changes, self._added, _same_encryption(file))
        return self._writer

    def report(self, name: str, outcome: Outcome | None = None) -> ChangedFileReport:
        """The report, once the file is written, or about to be removed. ``outcome``: of the run that replaced it."""
        counts, file = self.writer.counts, self._scan.file
        removed = self.removes
        anew = self.writer.why_anew
        said = (f"all row groups are made anew: {anew}",) if anew and not removed else ()
        gone = sum(change.gone.count for change in self._changes.values() if change.gone is not None)
        changed = sum(len(change.changed) for change in self._changes.values() if change.changed is not None)
        added = sum(leaves[0].num_rows for leaves in self._added)
        read = file.fetcher.counts.bytes + file.open_counts.bytes + self.writer.bytes_read
        return ChangedFileReport(
            name, gone, changed, added, counts.rows_left, counts.copied, counts.made,
            file.num_row_groups if removed else counts.dropped, read, counts.bytes_copied,
            0 if outcome is None else outcome.copied_in_store, counts.bytes_written, removed,
            "" if outcome is None else outcome.old_version, index_help(self._scan.reports),
            time.perf_counter() - self._began,
            said if outcome is None else (*said, *outcome.notes, *_older(name, outcome)),
        )  # fmt: skip


def _older(name: str, outcome: Outcome) -> list[str]:
    """What to do with the version that was replaced."""
    scheme, _, place = name.partition("://")
    if not outcome.old_version:
        return []
    kept = f"the old rows stay in version {outcome.old_version} of the object"
    if scheme not in ("s3", "s3a"):
        return [f"{kept}, if the store keeps versions"]
    bucket, _, key = place.partition("/")
    command = ["aws", "s3api", "delete-object", "--bucket", bucket, "--key", key, "--version-id", outcome.old_version]
    return [f"{kept}: remove it with {shlex.join(command)}"]


def index_help(reports: Sequence[StageReport]) -> tuple[IndexHelp, ...]:
    """What the stages of pruning have ruled out."""
    return tuple(
        IndexHelp(stage.name, stage.row_groups_before, stage.row_groups_after, stage.rows_before, stage.rows_after)
        for stage in reports
    )


def _same_encryption(file: OpenFile) -> FileEncryption:
    """Encryption with the keys, the algorithm and the layout of a file, and with an identifier of its own."""
    if not file.num_row_groups:
        return CLEAR_FILE
    same = file.decryption.same_keys([(file.raw_chunk(0, leaf), leaf) for leaf in file.tree.leaves], file.tree)
    if same is None:
        return CLEAR_FILE
    return EncryptedFile(same, [leaf.path for leaf in file.tree.leaves], os.path.basename(file.name))


def written(change: FileChange, sink: Sink) -> None:
    """Write the new file, and give the sink up where that fails. The caller commits."""
    try:
        change.writer.write(sink)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            error.filename = sink.name  # the disk is full
        sink.abort()
        raise
