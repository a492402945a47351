"""``delete``: rows removed from files that exist. Only row groups that hold such rows are made anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from pyparq.datasets.dataset import Dataset, key_filter
from pyparq.datasets.write.commit import complete_writes
from pyparq.errors import OptionError
from pyparq.io.locations import located as on_system
from pyparq.io.table_formats import format_of
from pyparq.io.url import is_url
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.row_changes.applying import apply
from pyparq.maintenance.row_changes.file_change import rows_go
from pyparq.maintenance.row_changes.places import ApplyOptions
from pyparq.maintenance.row_changes.report import ChangeReport
from pyparq.option_checks import keywords

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.encryption.properties import DecryptionProperties


@keywords
def delete(
    source: Any,
    filters: Filters | None = None,
    *,
    keys: Mapping[str | tuple[str, ...], Any] | None = None,
    keep_empty: bool = False,
    dry_run: bool = False,
    force: bool = False,
    retries: int = 0,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> ChangeReport:
    """Delete the rows for which ``filters`` is true. Row groups without such rows are copied byte for byte, and files
    without them stay untouched.

    ``source``: a file (a path or URL), or many: a folder, a glob, a list, a :class:`pyparq.Dataset`. A ``DeltaTable``
    or a table of pyiceberg gets new files by one commit (docs/delta-and-iceberg.md). ``filters``: as in
    :func:`pyparq.read_table`. Rows for which it is null stay. ``keys``: ``{column: keys}`` instead, rows that have one
    of the keys: a list or array of values, up to a million. With several columns, a row must have a key of each.
    ``keep_empty``: keep files of which no row is left, with their schema; they are removed otherwise. ``dry_run``:
    write nothing, and return the same report. ``force``: also change files of a table of Delta Lake, Apache Iceberg or
    Apache Hudi. ``retries``: how often to begin anew where another program has changed the same files, and to look at
    files that it has added meanwhile (docs/deleting.md). ``progress``: called with the number of files done and the
    number of files that may hold such rows. ``storage_options``: for the file system of a URL. ``filesystem``: a file
    system of fsspec or pyarrow or a store of obstore, on which paths are; or ``"obstore"`` or ``"fsspec"``, by which
    URLs are opened (docs/urls.md).
    ``decryption``: keys. Encrypted files keep them, with their algorithm and layout. ``fsync``: flush new files to disk
    before they get their names. Other options: as in :class:`pyparq.ReadOptions`.

    The files of a local folder change together. Others are replaced one by one, each only as it was read. No value of a
    deleted row is left in the new files. docs/deleting.md has the details.

    Returns a :class:`pyparq.ChangeReport`. Raises :class:`pyparq.ChangedFileError` and
    :class:`pyparq.WriteConflictError` where another program changes the same files more than ``retries`` times, and
    what :func:`pyparq.dataset` raises. The files are then as they were.

    Example::

        pyparq.write_table({"user": [6, 7, 7]}, "logins.parquet")
        report = pyparq.delete("logins.parquet", pyparq.col("user") == 7)
        print(report)
    """
    again = partial(
        opened, source, storage_options, filesystem, decryption=decryption, limits=limits or DEFAULT_LIMITS,
        verify_checksums=verify_checksums, use_threads=use_threads,
    )  # fmt: skip
    dataset = again()
    asked = rows_asked_for(filters, keys)
    options = ApplyOptions(
        keep_empty, dry_run, force, fsync, progress, table_of(source), "DELETE", retries, relisted(source, again),
        only_removes=True,
    )  # fmt: skip
    return apply(dataset, asked, rows_go, options)


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


def rows_asked_for(filters: Filters | None, keys: Mapping[Any, Any] | None) -> Any:
    """The filter that ``filters`` or ``keys`` say."""
    if (filters is None) == (keys is None):
        raise OptionError("give either filters or keys={column: keys}: which rows to change")
    if keys is None:
        return filters
    if not isinstance(keys, Mapping) or not keys:
        raise OptionError(f"keys must be a dict of a column to its keys, not {keys!r:.80}")
    return reduce(and_, (key_filter((name,) if isinstance(name, str) else name, of) for name, of in keys.items()))
