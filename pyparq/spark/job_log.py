"""Lines in the log (``pyparq.spark``, level INFO): what each job has read, passed over and written. The line of a read
is also the name of its function in Spark's plans and in the UI."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import posixpath
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyparq.datasets.data_files import DataFile
from pyparq.datasets.scan import DatasetPlan
from pyparq.errors import SkippedFileWarning
from pyparq.io.sink import open_sink
from pyparq.io.url import shown
from pyparq.runtime.messages import warn_caller

LOG = logging.getLogger("pyparq.spark")


@dataclass(frozen=True)
class Left:
    """What a plan leaves to be read."""

    all_files: int
    """Of the source."""
    all_bytes: int
    """Of these files; 0 where the listing does not say it."""
    files: int
    all_row_groups: int | None
    """Of the files that are left; ``None`` where tasks have read the footers."""
    row_groups: int
    narrowed: int
    """Data pages to be read of column chunks of which others are passed over."""
    rows: int
    """That may match."""
    num_bytes: int
    """Of the pages."""

    @classmethod
    def of(cls, plan: DatasetPlan, listed: Sequence[DataFile], all_row_groups: int | None = None) -> Left:
        groups = [group for file in plan.files for group in file.row_groups]
        pages = sum(len(read.pages.ordinals) for g in groups for read in g.reads if read.pages is not None)
        size = sum(file.size or 0 for file in listed)
        return cls(
            len(listed), size, len(plan.files), all_row_groups, len(groups), pages, plan.num_rows, plan.num_bytes
        )

    @classmethod
    def of_files(cls, listed: Sequence[DataFile], left: Sequence[int], groups: int, rows: int, num_bytes: int) -> Left:
        """What is left where whole files are: their row groups, rows, and bytes of pages."""
        size = sum(file.size or 0 for file in listed)
        return cls(len(listed), size, len(left), groups, groups, 0, rows, num_bytes)

    def __str__(self) -> str:
        pages = f", {self.narrowed:,} pages of chunks that are read in part" if self.narrowed else ""
        groups = "" if self.all_row_groups is None else f" of {self.all_row_groups:,}"
        size = f" of {self.all_bytes:,} in all files" if self.all_bytes else ""
        return (
            f"{self.files:,} of {self.all_files:,} files left, {self.row_groups:,}{groups} row groups{pages}, at most "
            f"{self.rows:,} rows in pages of {self.num_bytes:,} bytes{size}"
        )


def tell_read(what: str, source: Any, filters: Any, left: Left | None, how: str) -> str:
    """A read or a count. ``how``: what becomes of what is left. Gives the line that it logs."""
    where = "" if filters is None else f" where {filters}"
    text = f"{what} {_named(source)}"[:MOST] + where[:MOST]
    line = f"{text}: {'footers alone answer' if left is None else left}; {how}"
    LOG.info("%s", line)
    return line


def _named(source: Any) -> str:
    """A source without what a URL may hold besides its place: a password, a signature."""
    if isinstance(source, (list, tuple)):
        return str([_named(one) for one in source])
    return shown(source) if isinstance(source, str) else str(source)


MOST = 500
"""Characters of a source, or of a filter."""


def tell_of_source() -> None:
    """Log on a worker that plans for the data source, where Spark collects what its workers log."""
    if "PYSPARK_SPARK_SESSION_UUID" in os.environ:
        LOG.setLevel(logging.INFO)


def tell_job(what: str, target: Any, files: int, rows: int, num_bytes: int) -> None:
    """A job that has written or looked at files."""
    LOG.info("%s %s: %s files, %s rows, %s bytes", what, _named(target), f"{files:,}", f"{rows:,}", f"{num_bytes:,}")


# ---- files that a read leaves out (``on_error="skip"``): warnings for the caller, and a folder of notes to which every
# process of the read adds


class LeftOut(NamedTuple):
    """A file that was left out, and the message of its error."""

    path: str
    error: str


@contextmanager
def left_out() -> Iterator[Callable[[], list[LeftOut]]]:
    """Collects the warnings about files that are left out: those so far."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", SkippedFileWarning)
        yield lambda: [
            LeftOut(w.message.file, str(w.message)) for w in heard if isinstance(w.message, SkippedFileWarning)
        ]
    for other in heard:
        if not issubclass(other.category, SkippedFileWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def warn(files: Iterable[LeftOut]) -> None:
    """Say which files were left out, of the line that called a public function, which calls this."""
    for file in files:
        warn_caller(SkippedFileWarning(file.error, file.path))


def note(folder: str, files: Iterable[LeftOut], storage_options: Mapping[str, Any] | None) -> None:
    """Write down which files were left out: one small file of JSON for each, with ``path`` and ``error``. The same file
    makes the same note, so nothing is noted twice."""
    remote = "://" in folder
    if not remote:
        os.makedirs(folder, exist_ok=True)
    for file in files:
        name = hashlib.sha256("\0".join(file).encode("utf-8", "surrogateescape")).hexdigest()[:32] + ".json"
        where = posixpath.join(folder, name) if remote else os.path.join(folder, name)
        sink = open_sink(where, storage_options=storage_options if remote else None)
        sink.write([json.dumps(file._asdict()).encode()])
        sink.commit()
