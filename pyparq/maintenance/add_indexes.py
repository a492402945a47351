"""``add_indexes``: Bloom filters and page indexes for files that exist, without touching their pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyparq.column_names import as_list
from pyparq.datasets.dataset import Dataset, files_of
from pyparq.datasets.file_columns import Matching, of_nodes
from pyparq.errors import OptionError, ParquetError
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.io.locations import both_located
from pyparq.io.table_formats import format_of
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.file_runs import Job, jobs_of, run, side_by_side
from pyparq.maintenance.index_building import (
    BLOOM,
    COLUMN_INDEX,
    KINDS,
    OFFSET_INDEX,
    ChunkChange,
    IndexOptions,
    resolve,
)
from pyparq.maintenance.indexed_file import Changes, IndexWriter, find_changes
from pyparq.maintenance.report import IndexedColumn, IndexedFile, IndexReport
from pyparq.maintenance.table_commits import replace_files
from pyparq.option_checks import keywords
from pyparq.options import ReadOptions, WriteOptions
from pyparq.read.footers.open_file import OpenFile

if TYPE_CHECKING:
    from pyparq.column_names import ListOf, Names, PerColumn
    from pyparq.encryption.properties import DecryptionProperties
    from pyparq.format.schema_tree import SchemaTree
    from pyparq.option_values import Bloom


@keywords
def add_indexes(
    source: Any,
    target: Any = None,
    *,
    bloom_filters: bool | Names | PerColumn[Bloom] = False,
    bloom_filter_options: Literal["auto"] | PerColumn[Bloom] | None = None,
    bloom_filter_layout: Literal["footer", "row_group"] = "footer",
    page_index: bool | Names = True,
    column_index_truncate_length: int = 64,
    replace: bool = False,
    remove: ListOf[Literal["bloom_filters", "column_indexes", "page_indexes"]] | Mapping[str, bool | Names] = (),
    force: bool = False,
    on_error: Literal["raise", "skip"] = "raise",
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> IndexReport:
    """Add Bloom filters, ColumnIndexes and OffsetIndexes to files that exist. Every page is copied byte for byte.

    ``source``: a file (a path, URL, bytes or file object), or many: a folder, a glob, a list, a
    :class:`pyparq.Dataset`. ``target``: where the new file goes; for many files, a folder. Without it, each file is
    replaced once the new one is complete. A ``DeltaTable`` or a table of pyiceberg gets new files by a commit.
    ``page_index``: add a ColumnIndex and an OffsetIndex for every column; names: ColumnIndexes for these only.
    ``replace``: also build again what is there already. ``remove``: kinds to remove, as a list or a dict of kind to
    columns. ``force``: also replace files of a table of Delta Lake, Apache Iceberg or Apache Hudi. ``on_error="skip"``:
    report a file that fails, and go on. ``progress``: called with the number of files done and the number of files.
    ``storage_options``, ``filesystem``: for a URL, as in :func:`pyparq.read_table`. ``decryption``: keys; new indexes
    are encrypted with them, and columns whose key is missing stay as they are. ``fsync``: flush new files to disk
    before they get their names. Other options: as in :class:`pyparq.WriteOptions` and :class:`pyparq.ReadOptions`.

    Returns an :class:`pyparq.IndexReport`: per column, what was added, kept and left out, and why. A file in which
    nothing changes is not written. docs/add-indexes.md has the details.

    Raises :class:`pyparq.OptionError`, :class:`pyparq.ColumnNotFoundError`, :class:`pyparq.CorruptFileError` for damage
    in a page that had to be read, and ``OSError``. The file at ``source`` is then unchanged.

    Example::

        report = pyparq.add_indexes("events.parquet", bloom_filters=["user"])      # in place
    """
    if on_error not in ("raise", "skip"):
        raise OptionError(f'on_error must be "raise" or "skip", not {on_error!r}')
    options = WriteOptions(
        bloom_filters=bloom_filters, bloom_filter_options=bloom_filter_options,
        bloom_filter_layout=bloom_filter_layout, column_index_truncate_length=column_index_truncate_length,
    )  # fmt: skip
    reading = ReadOptions(
        decryption=decryption, limits=limits or DEFAULT_LIMITS, verify_checksums=verify_checksums,
        use_threads=use_threads,
    )  # fmt: skip
    wanted = IndexOptions(options, as_list(page_index), replace, remove)
    source, target, storage_options = both_located(source, target, filesystem, storage_options)
    if target is None and format_of(source) is not None:
        return IndexReport(tuple(index_table(source, reading, wanted, fsync, progress, storage_options)))
    return _index_files(jobs_of(source, target, reading, storage_options, force, fsync), wanted, on_error, progress)


def _index_files(
    jobs: Sequence[Job], options: IndexOptions, on_error: str, progress: Callable[[int, int], Any] | None
) -> IndexReport:
    files = side_by_side(lambda job: _one(job, options, on_error), jobs, [job.size for job in jobs], progress)
    return IndexReport(tuple(files))


def index_table(
    table: Any,
    reading: ReadOptions,
    options: IndexOptions,
    fsync: bool,
    progress: Callable[[int, int], Any] | None,
    storage_options: Mapping[str, Any] | None,
) -> list[IndexedFile]:
    """Add indexes to the data files of a table, by a commit of its own library."""
    files = files_of(Dataset(table, storage_options=storage_options))
    stored = StoredOptions(options, files.tree, files.matching)

    def make(old: str, new: str, store: Mapping[str, Any] | None) -> IndexedFile:
        return index_file(Job(old, new, reading, store, False, fsync), stored.of)

    return replace_files(table, files, make, progress)


def _one(job: Job, options: IndexOptions, on_error: str) -> IndexedFile:
    try:
        return index_file(job, options)
    except (ParquetError, OSError) as error:
        if on_error == "raise":
            raise
        name = str(job.source)
        return IndexedFile(name, name if job.target is None else str(job.target), error=error)


def index_file(job: Job, options: IndexOptions | Callable[[SchemaTree], IndexOptions]) -> IndexedFile:
    """Add indexes to one file. ``options`` may depend on its schema."""
    seen: list[tuple[OpenFile, Changes, IndexWriter | None]] = []

    def prepare(file: OpenFile) -> IndexWriter | None:
        request = resolve(options(file.tree) if callable(options) else options, file.tree)
        changes = find_changes(file, request)
        writer = None
        if changes.any:
            writer = IndexWriter(file, request, changes)
            writer.prepare()
        seen.append((file, changes, writer))
        return writer

    outcome = run(job, prepare)
    report = report_of(*_last(seen, outcome.target), outcome.notes)
    return replace(report, written=outcome.written)


def _last(
    seen: list[tuple[OpenFile, Changes, IndexWriter | None]], target: str
) -> tuple[OpenFile, str, Changes, IndexWriter | None]:
    file, changes, writer = seen[-1]
    return file, target, changes, writer


class StoredOptions:
    """The options of :func:`pyparq.add_indexes` with a table's names, for files that may store other names."""

    def __init__(self, options: IndexOptions, table: SchemaTree, matching: Matching) -> None:
        self._options = options
        self._table = table
        self._matching = matching

    def of(self, file: SchemaTree) -> IndexOptions:
        """The options with the file's names. Columns that the file does not have are left out.

        Raises :class:`ColumnNotFoundError` for a name that the table does not have.
        """
        given, writing = self._options, self._options.writing
        removed = given.remove
        if isinstance(removed, Mapping):
            removed = {kind: self._named(columns, file) for kind, columns in removed.items()}
        blooms = {name: self._named(getattr(writing, name), file) for name in ("bloom_filters", "bloom_filter_options")}
        return replace(
            given, writing=replace(writing, **blooms), page_index=self._named(given.page_index, file), remove=removed
        )

    def _named(self, option: Any, file: SchemaTree) -> Any:
        if not isinstance(option, (Mapping, list, tuple, set, frozenset)):
            return option
        stored = {name: self._stored(self._table.find(name), file) for name in option}
        paths = {name: node.path for name, node in stored.items() if node is not None}
        if isinstance(option, Mapping):
            return {path: option[name] for name, path in paths.items()}
        return list(paths.values())

    def _stored(self, node: Node, file: SchemaTree) -> Node | None:
        if node.parent is None:
            return file.root
        above = self._stored(node.parent, file)
        if above is None:
            return None
        if node.element.field_id is None and len(above.children) == 1:  # what lists and maps consist of
            return above.children[0]
        place = self._matching.places(of_nodes([node]), of_nodes(above.children))[0]
        return None if place is None else above.children[place]


# ---- reporting -----------------------------------------------------------------------------------------------------


def report_of(
    file: OpenFile, target: str, changes: Changes, writer: IndexWriter | None, notes: Sequence[str] = ()
) -> IndexedFile:
    """The report about the file."""
    columns = []
    leaves = file.tree.leaves
    for k, leaf in enumerate(leaves):
        mine = changes.chunks[k :: len(leaves)]
        counts = {kind: _count(change.outcome.get(kind) for change in mine) for kind in KINDS}
        columns.append(
            IndexedColumn(
                leaf.dotted,
                **counts,
                reasons=_reasons(mine),
                bytes_decoded=sum(change.bytes_decoded for change in mine),
                bytes_added=0 if writer is None else writer.bytes_of.get(leaf.column, 0),
            )
        )
    return IndexedFile(
        file.name, target, writer is not None, tuple(columns), sum(c.bytes_decoded for c in columns),
        0 if writer is None else writer.bytes_copied, 0 if writer is None else writer.bytes_written,
        (*changes.notes, *notes),
    )  # fmt: skip


def _count(outcomes: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for outcome in outcomes:
        if outcome is not None:
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


_LABELS = {BLOOM: "Bloom filter", COLUMN_INDEX: "ColumnIndex", OFFSET_INDEX: "OffsetIndex"}


def _reasons(changes: Sequence[ChunkChange]) -> tuple[str, ...]:
    """The reasons for indexes that were left out. Each is listed once, with its row groups if it does not hold for
    all."""
    found: dict[tuple[str, str], list[int]] = {}
    for change in changes:
        for kind, reason in change.reasons.items():
            found.setdefault((kind, reason), []).append(change.row_group)
    lines = []
    for (kind, reason), groups in found.items():
        where = "" if len(groups) == len(changes) else f" in row group{'s' * (len(groups) > 1)} {_listed(groups)}"
        lines.append(f"no {_LABELS[kind]}{where}: {reason}")
    return tuple(lines)


def _listed(groups: Sequence[int]) -> str:
    shown = ", ".join(map(str, groups[:8]))
    return shown if len(groups) <= 8 else f"{shown} and {len(groups) - 8} more"
