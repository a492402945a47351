"""Summary files: ``_metadata`` has the footers of all files of a folder, ``_common_metadata`` the schema alone.

parquet.thrift, ``ColumnChunk.file_path``: "File where column data is stored", relative to the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from pyparq.datasets.write.targets import Kept
from pyparq.errors import SchemaError, located
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize
from pyparq.io.fetch import Fetcher
from pyparq.options import ReadOptions
from pyparq.read.footers.footer_read import MAGIC, read_footer


def summary_files(made: Sequence[tuple[str, tt.FileMetaData]], kept: Kept) -> dict[str, bytes]:
    """Both summaries, of the new files (paths and footers) and of the old files that stay.

    Raises :class:`SchemaError` where the files do not have one schema, and what a damaged or encrypted footer raises.
    """
    footers = [*made, *_footers(kept)]
    if not footers:
        return {}
    groups = []
    first_path, first = made[0] if made else footers[0]
    for path, footer in sorted(footers, key=lambda item: item[0]):
        if footer.schema != first.schema:
            raise SchemaError(
                f"_metadata needs files of one schema, but this one is not like {first_path}. Leave write_metadata out",
                file=path,
            )
        groups += [_located(group, path) for group in footer.row_groups]
    whole, common = copy(first), copy(first)
    whole.row_groups, whole.num_rows = groups, sum(group.num_rows for group in groups)
    common.row_groups, common.num_rows = [], 0
    return {"_metadata": _file(whole), "_common_metadata": _file(common)}


def _footers(kept: Kept) -> list[tuple[str, tt.FileMetaData]]:
    found = []
    for path, opened in kept:
        source = opened()
        try:
            with located(file=path):
                found.append((path, read_footer(Fetcher(source), ReadOptions())[0].full()))
        finally:
            source.close()
    return found


def _located(group: tt.RowGroup, path: str) -> tt.RowGroup:
    """A row group as another file lists it. Its number in its own file means nothing there."""
    moved = copy(group)
    moved.ordinal = None
    moved.columns = []
    for chunk in group.columns:
        moved.columns.append(copy(chunk))
        moved.columns[-1].file_path = path
    return moved


def _file(footer: tt.FileMetaData) -> bytes:
    data = serialize(footer)
    return b"".join((MAGIC, data, len(data).to_bytes(4, "little"), MAGIC))
