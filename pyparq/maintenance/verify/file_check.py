"""Checks one file: row group by row group, column by column, then the footer's statements about the whole file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyparq.errors import ParquetError
from pyparq.format.schema_node import Node
from pyparq.index.statistics import parse_created_by
from pyparq.maintenance.verify.chunk_check import ChunkCheck
from pyparq.maintenance.verify.report import ChunkResult, FileReport, Findings, Place
from pyparq.maintenance.verify.value_checks import check_order, checkable
from pyparq.option_values import SortKey
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.footer_read import ENCRYPTED_MAGIC, MAGIC
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.page_indexes import claim_modules
from pyparq.runtime.threads import map_tasks

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
    places: list[Place] = []
    for window in _windows(file, leaves, report):
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
        sizes = [_stored_size(file, number, node) for node in leaves]
        window.append(_Group(number, raw, sizes, keys, findings))
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


def _stored_size(file: OpenFile, row_group: int, node: Node) -> int:
    chunk = claim_modules(file, row_group, node)
    return 0 if chunk is None else chunk.size


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
    if raw.total_byte_size != total and _counts_bytes(file.created_by):
        text = f"total_byte_size is {raw.total_byte_size}, but the column chunks have {total} bytes uncompressed"
        findings.add("size", "RowGroup", text)


def _counts_bytes(created_by: str | None) -> bool:
    """Writers have filled ``total_byte_size`` with compressed bytes, zeros and estimates, which harms no reader."""
    return parse_created_by(created_by or "")[0] in ("pyparq", "parquet-cpp-arrow", "parquet-mr")


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


def _check_layout(file: OpenFile, places: list[Place], report: FileReport) -> None:
    """Column chunks, indexes and Bloom filters do not overlap."""
    findings = Findings(file.name)
    ordered = sorted(places)
    for (_, end, above), (start, _, below) in pairwise(ordered):
        if start < end:
            findings.add("layout", FOOTER, f"{above} end at {end}, but {below} start at {start}")
            break
    report.findings += findings.found
