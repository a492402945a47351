"""One file: row group by row group, column by column, then what the footer says of all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from pyparq.errors import ParquetError
from pyparq.index.statistics import parse_created_by
from pyparq.read.account import Account
from pyparq.read.columns import TASK_FROM, THREADS_FROM
from pyparq.read.footer import ENCRYPTED_MAGIC, MAGIC
from pyparq.read.open import OpenFile
from pyparq.schemas.tree import Node
from pyparq.threads import map_tasks
from pyparq.verification.chunk_check import ChunkCheck, ChunkResult, Place
from pyparq.verification.findings import Findings
from pyparq.verification.report import FileReport
from pyparq.verification.sorted_rows import check_order, checkable

FOOTER = "FileMetaData"
Done = Callable[[int], Any]
"""Called with the bytes that have been checked since it was called last."""


def check_file(file: OpenFile, leaves: Sequence[Node], done: Done) -> FileReport:
    """Check the column chunks of ``leaves`` in all row groups, and the footer."""
    report = FileReport(file.name, file.num_row_groups, int(file.footer.meta.num_rows), file.created_by)
    info = file.decryption.info
    if info is not None and info.plaintext_footer and not info.footer_verified:
        report.not_checked.append("the signature of the footer: the footer key is not known")
    places: list[Place] = []
    for row_group in range(file.num_row_groups):
        results = _check_row_group(file, row_group, leaves, done, report)
        for result in results:
            report.take(result)
            places += result.places
    _check_footer(file, report)
    _check_layout(file, places, report)
    return report


def _check_row_group(
    file: OpenFile, row_group: int, leaves: Sequence[Node], done: Done, report: FileReport
) -> list[ChunkResult]:
    findings = Findings(file.name, row_group)
    try:
        file.num_rows_of(row_group)
        raw = file.raw_row_group(row_group)
    except ParquetError as error:
        findings.add_error("metadata", "RowGroup", error)
        report.findings += findings.found
        return []
    keys = checkable(raw.sorting_columns, list(file.tree.leaves), findings)
    sorts = {node.column for node, _ in keys}
    check = ChunkCheck(file, Account(file.options.limits))
    sizes = [_stored_size(file, row_group, node) for node in leaves]
    order = sorted(range(len(leaves)), key=lambda k: -sizes[k])

    def run(k: int) -> ChunkResult:
        result = check.check(row_group, leaves[k], leaves[k].column in sorts)
        done(sizes[k])
        return result

    threads = file.options.use_threads and sum(n for n in sizes if n >= TASK_FROM) >= THREADS_FROM
    found = dict(zip(order, map_tasks(run, order, threads), strict=True))
    results = [found[k] for k in range(len(leaves))]
    check_order(keys, {r.node.column: r.leaf for r in results if r.leaf is not None}, findings)
    _check_row_group_facts(file, row_group, raw, results, findings)
    report.findings += findings.found
    for result in results:
        result.leaf = None
    return results


def _stored_size(file: OpenFile, row_group: int, node: Node) -> int:
    try:
        return file.chunk(row_group, node).size
    except ParquetError:
        return 0


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
