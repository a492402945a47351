"""``pyparq.verify``: every file of a source, checked against itself; and the catalog beside a dataset, checked against
its files."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.datasets.catalog.building import FileEntries, entries_of
from pyparq.datasets.catalog.catalog import Catalog, open_catalog, place_in
from pyparq.datasets.catalog.key_table import Columns, cut
from pyparq.datasets.catalog.layout import FOLDER
from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.datasets.dataset import Dataset, files_of
from pyparq.datasets.discovery import discover
from pyparq.datasets.footers import open_listed
from pyparq.errors import EncryptionError, OptionError, ParquetError, UnverifiedFooterWarning
from pyparq.format.lazy_footer import ENCRYPTED_MAGIC, MAGIC
from pyparq.format.schema_node import Node
from pyparq.index.statistics import parse_created_by
from pyparq.io.byte_ranges import Range
from pyparq.io.locations import located as on_system
from pyparq.maintenance.file_runs import opened_table, side_by_side, size_in_store
from pyparq.maintenance.verify.chunk_check import ChunkCheck
from pyparq.maintenance.verify.report import ChunkResult, Extent, FileReport, Findings, VerificationReport
from pyparq.maintenance.verify.value_checks import check_order, checkable
from pyparq.option_checks import keywords
from pyparq.option_values import SortKey
from pyparq.options import ReadOptions
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.chunks import Chunk
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_indexes import claim_modules, page_index_ranges
from pyparq.runtime import fork_safety
from pyparq.runtime.threads import map_tasks

if TYPE_CHECKING:
    from pyparq.column_names import Names
    from pyparq.encryption.properties import DecryptionProperties
    from pyparq.limits import Limits


FOOTER = "FileMetaData"
Done = Callable[[int], Any]
"""Called with the number of bytes checked since the last call."""
WINDOW = 32 << 20
"""Stored bytes of row groups that are checked at the same time. One larger row group may exceed it."""
TASK_FROM = 64 << 10
"""Smaller chunks (in stored bytes) are mostly work of Python, which one thread does at a time."""
THREADS_FROM = 2 << 20
"""From this many stored bytes of larger chunks on, threads pay."""
MOST_GROUPS = 64
"""No more row groups than this side by side."""


def check_file(file: OpenFile, leaves: Sequence[Node], done: Done) -> FileReport:
    """Check the column chunks of ``leaves`` in all row groups, and the footer."""
    report = FileReport(file.name, file.num_row_groups, int(file.footer.meta.num_rows), file.created_by)
    info = file.decryption.info
    if info is not None and info.plaintext_footer and not info.footer_verified:
        report.not_checked.append("the signature of the footer: the footer key is not known")
    file.place_chunks()
    places: list[Extent] = []
    for window in _windows(file, leaves, report):
        with _fetched(file, window):
            _check_window(file, window, leaves, done)
        for group in window:
            report.findings += group.findings.found
            for result in group.results.values():
                report.take(result)
                places += result.places
    _check_footer(file, report)
    _check_layout(file, places, report)
    return report


@dataclass(slots=True)
class _Group:
    """A row group to be checked."""

    number: int
    raw: Any
    sizes: list[int]
    """Stored bytes of the column chunks that are checked."""
    ranges: list[Range]
    """Where these lie, with their indexes and Bloom filters, as far as that is inside the file."""
    keys: list[tuple[Node, SortKey]]
    """Its sorting columns."""
    findings: Findings
    results: dict[int, ChunkResult] = field(default_factory=dict)
    """By column."""


def _windows(file: OpenFile, leaves: Sequence[Node], report: FileReport) -> Iterator[list[_Group]]:
    """Row groups whose column chunks are checked at the same time: enough to keep all threads busy."""
    window: list[_Group] = []
    for number in range(file.num_row_groups):
        findings = Findings(file.name, number)
        try:
            file.num_rows_of(number)
            raw = file.raw_row_group(number)
        except ParquetError as error:
            findings.add_error("metadata", "RowGroup", error)
            report.findings += findings.found
            continue
        keys = checkable(raw.sorting_columns, list(file.tree.leaves), findings)
        chunks = [claim_modules(file, number, node) for node in leaves]
        sizes = [0 if chunk is None else chunk.size for chunk in chunks]
        window.append(_Group(number, raw, sizes, list(_ranges(file, chunks)), keys, findings))
        if sum(sum(group.sizes) for group in window) >= WINDOW or len(window) == MOST_GROUPS:
            yield window
            window = []
    if window:
        yield window


def _check_window(file: OpenFile, window: list[_Group], leaves: Sequence[Node], done: Done) -> None:
    check = ChunkCheck(file, Account(file.options.limits))
    tasks = [(group, k) for group in window for k in range(len(leaves))]
    sorted_by = {group.number: {node.column for node, _ in group.keys} for group in window}
    tasks.sort(key=lambda task: -task[0].sizes[task[1]])

    def run(task: tuple[_Group, int]) -> None:
        group, k = task
        is_key = leaves[k].column in sorted_by[group.number]
        group.results[k] = check.check(group.number, leaves[k], is_key)
        done(group.sizes[k])

    large = sum(size for group in window for size in group.sizes if size >= TASK_FROM)
    map_tasks(run, tasks, file.options.use_threads and large >= THREADS_FROM)
    for group in window:
        group.results = {k: group.results[k] for k in sorted(group.results)}
        results = list(group.results.values())
        check_order(group.keys, {r.node.column: r.leaf for r in results if r.leaf is not None}, group.findings)
        _check_row_group_facts(file, group.number, group.raw, results, group.findings)
        for result in results:
            result.leaf = None


def _ranges(file: OpenFile, chunks: Sequence[Chunk | None]) -> Iterator[Range]:
    end = file.fetcher.source.size
    for chunk in filter(None, chunks):
        bloom = chunk.numbers.bloom_filter_offset, chunk.numbers.bloom_filter_length
        for offset, length in ((chunk.start, chunk.size), *page_index_ranges(chunk, file), bloom):
            if length > 0 and 0 < offset <= end - length:
                yield offset, length


@contextmanager
def _fetched(file: OpenFile, window: list[_Group]) -> Iterator[None]:
    """With what a store has of these row groups, in one step."""
    ranges = [one for group in window for one in group.ranges]
    if file.fetcher.source.is_local or sum(size for _, size in ranges) > WINDOW:
        yield
        return
    held = file.fetcher.hold(ranges, file.fetcher.gap)
    try:
        yield
    finally:
        file.fetcher.forget(held)


def _check_row_group_facts(
    file: OpenFile, row_group: int, raw: Any, results: list[ChunkResult], findings: Findings
) -> None:
    if raw.ordinal is not None and raw.ordinal != row_group:
        findings.add("metadata", "RowGroup", f"ordinal is {raw.ordinal}, but it is row group {row_group}")
    metas = [result.meta for result in results]
    if len(metas) != len(file.tree.leaves) or any(meta is None for meta in metas):
        return
    total = sum(meta.total_compressed_size for meta in metas)
    if raw.total_compressed_size is not None and raw.total_compressed_size not in (0, total):
        text = f"total_compressed_size is {raw.total_compressed_size}, but the column chunks have {total} bytes"
        findings.add("size", "RowGroup", text)
    total = sum(meta.total_uncompressed_size for meta in metas)
    if raw.total_byte_size != total and parse_created_by(file.created_by or "")[0] in _COUNT_BYTES:
        text = f"total_byte_size is {raw.total_byte_size}, but the column chunks have {total} bytes uncompressed"
        findings.add("size", "RowGroup", text)


_COUNT_BYTES = ("pyparq", "parquet-cpp-arrow", "parquet-mr")
"""Others have filled ``total_byte_size`` with compressed bytes, zeros and estimates, which harms no reader."""


def _check_footer(file: OpenFile, report: FileReport) -> None:
    findings, meta = Findings(file.name), file.footer.meta
    try:
        rows = sum(file.num_rows_of(k) for k in range(file.num_row_groups))
        if meta.num_rows != rows:
            findings.add("count", FOOTER, f"num_rows is {meta.num_rows}, but the row groups have {rows} rows")
    except ParquetError:
        pass  # reported with the row group
    if meta.column_orders is not None and len(meta.column_orders) != len(file.tree.leaves):
        count, leaves = len(meta.column_orders), len(file.tree.leaves)
        findings.add("metadata", FOOTER, f"column_orders has {count} entries, but the schema has {leaves} leaves")
    (magic,) = file.fetcher.fetch([(0, 4)])
    encrypted = file.decryption.info is not None and not file.decryption.info.plaintext_footer
    if bytes(magic) != (ENCRYPTED_MAGIC if encrypted else MAGIC):
        findings.add("layout", "magic", f"the file begins with {bytes(magic)!r}")
    report.findings += findings.found


def _check_layout(file: OpenFile, places: list[Extent], report: FileReport) -> None:
    """Column chunks, indexes and Bloom filters do not overlap."""
    findings = Findings(file.name)
    ordered = sorted(places)
    for (_, end, above), (start, _, below) in pairwise(ordered):
        if start < end:
            findings.add("layout", FOOTER, f"{above} end at {end}, but {below} start at {start}")
            break
    report.findings += findings.found


# ---- all files of a source -------------------------------------------------------------------------------------------


KIND = "catalog"


def check_catalog(found: SourceFiles, options: ReadOptions) -> FileReport | None:
    """What is wrong with the catalog of a folder; ``None`` where there is none.

    Files that it does not know as they are listed are no finding: readers do not ask it about them.
    """
    if found.catalog is None:
        return None
    findings = Findings(f"{found.root.rstrip('/')}/{FOLDER}")
    try:
        catalog = open_catalog(place_in(found))
        if catalog is None:
            return None
        _check(catalog, found, options, findings)
    except (ParquetError, OSError) as error:
        findings.add(KIND, "catalog.json", f"it cannot be read: {error}")
    return FileReport(findings.file, findings=findings.found)


def _check(catalog: Catalog, found: SourceFiles, options: ReadOptions, findings: Findings) -> None:
    table = catalog.files
    stored = [_stored(catalog, column) for column in range(len(catalog.head.columns))]
    for file, place in zip(found.files, table.places_of(found.files).tolist(), strict=True):
        if place < 0:
            continue
        try:
            entries = entries_of(file, catalog.head.columns, options, found.storage_options)
        except (ParquetError, OSError):  # a finding of the file itself
            continue
        number = int(table.numbers[place])
        if (sum(entries.rows), len(entries.rows)) != (int(table.rows[place]), int(table.row_groups[place])):
            findings.add(KIND, "files", f"{file.name} has {sum(entries.rows)} rows, but it states {table.rows[place]}")
        _check_keys(catalog, stored, number, entries, findings)


def _stored(catalog: Catalog, column: int) -> list[tuple[int, Columns]]:
    """The rows of the key tables of a column, with the bits of their hashes."""
    tables = [table for table in catalog.keys if table.segment.column == column]
    return [(t.segment.bits, t.between(0, (1 << t.segment.bits) - 1, t.segment.bits)) for t in tables]


def _check_keys(
    catalog: Catalog, stored: Sequence[list[tuple[int, Columns]]], number: int, entries: FileEntries,
    findings: Findings,
) -> None:  # fmt: skip
    for (column, group), hashes in entries.keys.items():
        missing = np.ones(len(hashes), bool)
        for bits, (own, files, groups) in stored[column]:
            there = own[(files == number) & (groups == group)]
            missing &= ~np.isin(cut(hashes, 64, bits), there)
        if missing.any():
            name = ".".join(map(str, catalog.head.columns[column]))
            findings.add(
                KIND, "keys",
                f"it denies {int(missing.sum())} keys of the column {name} in row group {group} of {entries.file.name}",
            )  # fmt: skip


Progress = Callable[[int, int], Any]
"""Called with the bytes that are checked and the bytes of all files, as far as they are known."""


@keywords
def verify(
    source: Any,
    columns: Names | None = None,
    *,
    progress: Progress | None = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    use_threads: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> VerificationReport:
    """Check files against their own data: checksums, sizes, counts, statistics, page indexes, Bloom filters, sort
    orders and more (docs/verify.md lists all checks).

    ``source``: a file, folder, glob, URL or list of these, as in :func:`pyparq.dataset`, or a :class:`pyparq.Dataset`.
    ``columns``: check only these columns. ``progress``: called with the bytes that have been checked, and the bytes of
    all files as far as they are known. ``decryption``: keys of encrypted files. Columns whose keys are missing are not
    checked, and the report says so. ``limits``: as in :class:`pyparq.ReadOptions`. ``use_threads``: use all CPUs.
    ``storage_options``, ``filesystem``: for a URL, as in :func:`pyparq.read_table`.

    Everything that is wrong with a file is a finding of the report, also that it cannot be opened. One column chunk per
    thread is in memory at a time, plus the sorting columns of a row group that has some.

    Raises ``FileNotFoundError`` where the source does not exist, and :class:`pyparq.ColumnNotFoundError` for a column
    that no file has.

    Example::

        report = pyparq.verify("flights/")
        assert report.ok, report.findings
    """
    given = {"decryption": decryption, "limits": limits}
    options = {name: value for name, value in given.items() if value is not None}
    source, storage_options = on_system(source, filesystem, storage_options)
    source = opened_table(source)
    if isinstance(source, Dataset):
        files = files_of(source)
        found, own = files.found, files.options
        read = ReadOptions.make({"decryption": own.decryption, "limits": own.limits, **options})
    else:
        found, read = discover(source, storage_options), ReadOptions.make({**options, "use_threads": use_threads})
    run = _Run(read, columns, progress, found.files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnverifiedFooterWarning)  # the report has it
        reports = side_by_side(
            lambda file: run.file(file, found.storage_options), found.files, list(map(size_in_store, found.files))
        )
    run.check_columns()
    catalog = check_catalog(found, read) if columns is None else None
    reports += [] if catalog is None else [catalog]
    return VerificationReport(found.root, reports)


class _Run:
    """One verification. Several files may come at a time."""

    def __init__(
        self, options: ReadOptions, columns: Names | None, progress: Progress | None, files: Sequence[DataFile]
    ) -> None:
        self._options = options
        self._columns = [columns] if isinstance(columns, str) else columns
        self._progress = progress
        self._total = sum(file.size or 0 for file in files)
        self._done = 0
        self._alone = len(files) == 1
        self._unknown: ParquetError | None = None
        self._any_found = False
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def file(self, listed: DataFile, storage_options: Mapping[str, Any] | None) -> FileReport:
        """Check one file; what keeps it from being read is a finding."""
        findings, done, size = Findings(listed.name), 0, listed.size or 0

        def step(more: int) -> None:
            nonlocal done
            with self._lock:
                done += more
            self._step(more)

        file, report = None, None
        try:
            file = open_listed(listed, self._options, storage_options)
            size = file.fetcher.source.size
            if listed.size is None:
                with self._lock:
                    self._total += size
            report = check_file(file, self._leaves(file), step)
        except OptionError:
            raise
        except ParquetError as error:
            is_signature = file is None and isinstance(error, EncryptionError) and "signature" in error.message
            findings.add_error("signature" if is_signature else "file", "FileMetaData", error)
        except OSError as error:
            if self._alone:
                raise
            findings.add("file", "FileMetaData", f"{type(error).__name__}: {error}")
        finally:
            if file is not None:
                file.close()
        self._step(size - done)
        return FileReport(listed.name, findings=findings.found) if report is None else report

    def _leaves(self, file: OpenFile) -> list[Node]:
        if self._columns is None:
            return list(file.tree.leaves)
        found: dict[int, Node] = {}
        for name in self._columns:
            try:
                found |= {leaf.column: leaf for leaf in file.tree.find(name).leaves()}
            except ParquetError as error:
                self._unknown = error
        self._any_found |= bool(found)
        return list(found.values())

    def check_columns(self) -> None:
        """Raise the error about names of columns if no file has any of them."""
        if self._unknown is not None and not self._any_found:
            raise self._unknown

    def _step(self, size: int) -> None:
        with self._lock:
            self._done += size
            if self._progress is not None:
                self._progress(min(self._done, self._total), self._total)
