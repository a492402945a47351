"""Reads the schema and the rows of a remote folder's files from its ``_metadata`` file: one request instead of one per
file.

A summary may be older than the files, and it does not contain their state. So it is only trusted under these
conditions:

- It names every file of the folder and no other. It states nothing impossible about them, such as column chunks beyond
  a file's end or row groups with other columns than its schema.
- The store tells when each file was written, and the summary was written after all of them. (Stores set these times
  themselves. Times that a copying program can set do not count.)

Local folders do not use summaries: a thousand local footers take a few milliseconds. A file that is opened although a
summary is trusted must have the rows that the summary states.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.data_files import SourceFiles
from pyparq.datasets.read.evolution import marked
from pyparq.datasets.read.open_files import source_of
from pyparq.errors import ParquetError
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.types import Schema
from pyparq.io.fetch import Fetcher
from pyparq.options import ReadOptions
from pyparq.read.footers.footer_read import read_footer
from pyparq.read.footers.schemas import schema_of

SUMMARY = "_metadata"
SMALLEST = 12
"""Minimum number of bytes of a file besides its pages: the magic at both ends, and the footer's length."""


@dataclass(frozen=True, slots=True)
class TrustedSummary:
    """The contents of a summary whose files have not changed since it was written."""

    name: str
    schema: Schema
    rows: Mapping[str, int]
    """By the name of the file."""


def trusted_summary(found: SourceFiles, options: ReadOptions) -> TrustedSummary | None:
    """The summary of a remote folder, if there is one that can be trusted."""
    summary = next((file for file in found.summaries if posixpath.basename(str(file.where)) == SUMMARY), None)
    if summary is None or summary.mtime_ns is None or options.decryption is not None:
        return None
    times = [file.mtime_ns for file in found.files]
    if any(time is None or time >= summary.mtime_ns for time in times):
        return None
    paths = {posixpath.join(*file.folders, posixpath.basename(str(file.where))): file for file in found.files}
    try:
        source = source_of(summary, found.storage_options)
        with closing(source):
            footer, _ = read_footer(Fetcher(source, options.coalesce_gap), options)
        shared = schema_of(footer, options)
        rows = _rows(footer, {path: file.size for path, file in paths.items()}, len(shared.tree.leaves))
    except (ParquetError, OSError):  # the files' own footers are read
        return None
    if rows is None:
        return None
    schema = marked(shared.fields.schema, shared.tree)
    return TrustedSummary(summary.name, schema, {paths[path].name: count for path, count in rows.items()})


def _rows(footer: LazyFileMetaData, sizes: Mapping[str, int | None], leaves: int) -> dict[str, int] | None:
    """The rows of each file. ``None`` if the summary does not describe exactly these files."""
    rows = dict.fromkeys(sizes, 0)
    named: set[str] = set()
    for group in range(footer.num_row_groups):
        count = footer.num_rows(group)
        if footer.num_columns(group) != leaves or leaves == 0 or count < 0:
            return None
        chunk = footer.column_chunk(group, 0)
        path = str(chunk.file_path)
        size = sizes.get(path)
        last = footer.column_chunk(group, leaves - 1)
        if size is None or not all(_within(c.meta_data, size) for c in (chunk, last)):
            return None
        rows[path] += count
        named.add(path)
    return rows if named == set(sizes) else None


def _within(meta: Any, size: int) -> bool:
    starts = [] if meta is None else [o for o in (meta.dictionary_page_offset, meta.data_page_offset) if o]
    return bool(starts) and min(starts) + meta.total_compressed_size <= size - SMALLEST
