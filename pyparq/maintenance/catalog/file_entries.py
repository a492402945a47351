"""What a catalog takes from one file: the hashes of its keys, its statistics, and its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pyparq.column_names import ColumnName
from pyparq.datasets.catalog.bounds_table import statistics_of
from pyparq.datasets.catalog.file_table import State, key_columns, kind_key, kind_of, state_of
from pyparq.datasets.catalog.key_table import UInt64Array
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.footers import open_listed
from pyparq.errors import UnsupportedError
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.maintenance.page_statistics import Wanted, survey_chunk
from pyparq.options import ReadOptions
from pyparq.read.decode.memory_account import Account
from pyparq.read.footers.open_file import OpenFile


@dataclass(frozen=True)
class FileEntries:
    """The entries that were read from one file."""

    file: DataFile
    state: State
    kind: tuple[Any, ...]
    stored_kind: Callable[[], bytes]
    rows: tuple[int, ...]
    """Of each row group."""
    footer: int
    """Bytes of the footer."""
    keys: dict[tuple[int, int], UInt64Array]
    """By key column and row group: hashes, each once, sorted."""
    statistics: Mapping[str, tuple[list[Any], ...]]
    """By leaf."""


def entries_of(
    file: DataFile, names: Sequence[ColumnName], options: ReadOptions, storage_options: Mapping[str, Any] | None
) -> FileEntries:
    """Read the key columns of a file.

    Raises :class:`pyparq.UnsupportedError` for an encrypted file, and for one whose versions cannot be told apart;
    :class:`pyparq.CorruptFileError` for damage; :class:`pyparq.ChangedFileError` if it is not as it was listed.
    """
    state = state_of(file)
    if state is None:
        raise UnsupportedError("the listing has neither a tag nor a time of the file", file=file.name)
    opened = open_listed(file, options, storage_options)
    try:
        if opened.decryption.info is not None:
            raise UnsupportedError("the file is encrypted, and a catalog is not", file=file.name)
        opened.check_chunk_counts()
        opened.check_places()
        footer: LazyFileMetaData = opened.footer
        rows = tuple(opened.num_rows_of(group) for group in range(opened.num_row_groups))
        return FileEntries(
            file, state, kind_key(footer), partial(kind_of, footer), rows, len(footer.stored), _keys(opened, names),
            statistics_of(opened),
        )  # fmt: skip
    finally:
        opened.close()


def _keys(file: OpenFile, names: Sequence[ColumnName]) -> dict[tuple[int, int], UInt64Array]:
    account = Account(file.options.limits)
    found: dict[tuple[int, int], UInt64Array] = {}
    for leaf, column in key_columns(file.footer, names).items():
        node = file.tree.leaves[leaf]
        for group in range(file.num_row_groups):
            if file.num_rows_of(group):
                chunk = file.chunk(group, node)
                survey = survey_chunk(file, chunk, file.column_order(node), Wanted(hashes=True), account)
                hashes = np.zeros(0, np.uint64) if survey.hashes is None else survey.hashes
                found[column, group] = np.unique(hashes)
    return found
