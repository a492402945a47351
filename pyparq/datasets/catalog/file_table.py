"""The files that a catalog knows, each in the state in which it was read, and the kinds of files: footers without row
groups, which tell schema, writer and column orders.

A file is *known* if the listing of the dataset shows it in that state: of the same size and entity tag in a store, or
of the same size, times of change and inode on a local disk. Any other file is asked as if there were no catalog.
"""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.table import Table
from pyparq.column_names import ColumnName
from pyparq.datasets.catalog.layout import Key
from pyparq.datasets.data_files import DataFile
from pyparq.encryption.reading import CLEAR_FILE
from pyparq.errors import OptionError, ParquetError
from pyparq.format.lazy_footer import LazyFileMetaData
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.thrift_codec import serialize
from pyparq.index.bloom_filter import can_prune
from pyparq.io.fetch import Fetcher
from pyparq.io.source import BytesSource
from pyparq.limits import DEFAULT_LIMITS
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile

OWN = b"pyparq."
"""Key-value metadata with such names tell how a file was made. They differ between files that are alike."""
MOST_KINDS = 1000
"""Kinds in a catalog. Files of more kinds are asked as if there were no catalog."""


def kind_key(footer: LazyFileMetaData) -> tuple[Any, ...]:
    """A value that is equal for files of one kind."""
    meta = footer.meta
    return footer.schema_bytes, meta.created_by, repr(meta.column_orders), repr(_kept(meta))


def kind_of(footer: LazyFileMetaData) -> bytes:
    """The footer without row groups, and without metadata that mean nothing for the other files of its kind."""
    meta = copy(footer.meta)
    meta.schema, meta.num_rows, meta.row_groups = footer.schema(), 0, []
    meta.key_value_metadata = _kept(meta) or None
    return serialize(meta)


def _kept(meta: Any) -> list[Any]:
    return [pair for pair in meta.key_value_metadata or () if not _bytes(pair.key).startswith(OWN)]


def _bytes(key: Any) -> bytes:
    return key.encode() if isinstance(key, str) else bytes(key)


class Kind:
    """One kind of file, to be asked with some options."""

    def __init__(self, stored: bytes, names: Sequence[Key], options: ReadOptions) -> None:
        footer = LazyFileMetaData(stored)
        self.model = OpenFile(Fetcher(BytesSource(b"")), footer, CLEAR_FILE, options)
        """A file of this kind without rows."""
        self.key_columns = key_columns(footer, names)
        """By the number of a leaf: the key column that it is."""


def key_leaf(tree: SchemaTree, name: Key) -> Node | None:
    """The leaf of a key column, if a file has it and hashes of its values can be told apart."""
    if name and isinstance(name[0], int):
        leaves = [leaf for leaf in tree.leaves if leaf.element.field_id == name[0]]
    else:
        try:
            leaves = list(tree.find(name).leaves())
        except ParquetError:
            return None
    return leaves[0] if len(leaves) == 1 and can_prune(leaves[0].type) else None


def check_key(tree: SchemaTree, name: ColumnName) -> Node:
    """The leaf of a key column. Raises :class:`pyparq.ColumnNotFoundError`, and :class:`pyparq.OptionError` for what
    cannot be one."""
    leaves = list(tree.find(name).leaves())
    if len(leaves) != 1:
        raise OptionError(f"the column {name!r} has {len(leaves)} leaf columns: a key is one of them")
    if not can_prune(leaves[0].type):
        raise OptionError(f"the column {name!r} cannot be a key: hashes of {leaves[0].type.kind} values tell nothing")
    return leaves[0]


def key_columns(footer: LazyFileMetaData, names: Sequence[Key]) -> dict[int, int]:
    """For the leaves that are key columns: which of them. Names are told apart by case, whatever a reader does."""
    tree = build_tree(footer.schema(), DEFAULT_LIMITS.max_schema_depth)
    leaves = [key_leaf(tree, name) for name in names]
    return {leaf.column: k for k, leaf in enumerate(leaves) if leaf is not None}


SCHEMA = parse_schema({
    "number": "int64", "path": "string", "size": "int64", "mtime_ns": "int64", "inode": "int64", "version": "string",
    "kind": "int32", "rows": "int64", "row_groups": "int32", "footer": "int64",
})  # fmt: skip
"""``number`` is unique and rises. ``path`` is relative to the dataset's folder. ``version`` is what the store says of
it, and of a local file its ctime. ``footer``: bytes of the footer."""

Int64Array = npt.NDArray[np.int64]
State = tuple[int, int, int, str]
"""Size, time of change, inode, and what the store says."""


def path_of(file: DataFile) -> str:
    """The path of a file below the dataset's folder, or as the log of a table has it."""
    return file.logged[0] if file.logged else "/".join((*file.folders, posixpath.basename(str(file.where))))


def state_of(file: DataFile) -> State | None:
    """The listed state of a file. ``None`` if the listing cannot tell one version of it from another."""
    if file.size is None:
        return None
    if file.logged is not None:
        return file.size, file.logged[2] * 1_000_000, 0, file.logged[1]
    if file.listed is None:
        local = file.mtime_ns is not None and file.inode is not None and "://" not in str(file.where)
        ctime = json.dumps([["ctime_ns", file.ctime_ns]])
        inode = file.inode or 0
        return (file.size, file.mtime_ns or 0, inode - (inode >> 63 << 64), ctime) if local else None
    if file.listed.tags:
        return file.size, 0, 0, json.dumps(file.listed.tags)
    return (file.size, file.mtime_ns or 0, 0, json.dumps(file.listed.dates)) if file.listed.dates else None


def age_ns(file: DataFile, now: int | None = None) -> int | None:
    """How long ago a file was changed, by its time of change. ``None`` where an entity tag tells its version."""
    if file.logged is not None or (file.listed is not None and file.listed.tags):
        return None
    at = file.mtime_ns
    if at is None and file.listed is not None:
        seconds = [date for _, date in file.listed.dates if isinstance(date, float)]
        at = int(max(seconds) * 1e9) if seconds else None
    return -1 if at is None else (time.time_ns() if now is None else now) - at


@dataclass(frozen=True)
class FileTable:
    """The known files, in the order of their numbers. The fields are the columns of :data:`SCHEMA`."""

    numbers: Int64Array
    paths: list[str]
    sizes: Int64Array
    mtimes: Int64Array
    inodes: Int64Array
    versions: list[str]
    kinds: npt.NDArray[np.int32]
    rows: Int64Array
    row_groups: npt.NDArray[np.int32]
    footers: Int64Array

    @classmethod
    def of(cls, table: Table) -> FileTable:
        texts = ("path", "version")
        values: Any = (table.column(n).to_pylist() if n in texts else table.to_numpy(n) for n in SCHEMA.names)
        return cls(*values)

    @classmethod
    def none(cls) -> FileTable:
        return cls.of(Table(SCHEMA, []))

    def among(self, numbers: Int64Array) -> FileTable:
        """The files with these numbers."""
        return FileTable(*self.columns(np.flatnonzero(np.isin(self.numbers, numbers))).values())

    def columns(self, places: Int64Array) -> dict[str, Any]:
        """The rows at these places, as they are written."""
        values = (getattr(self, field.name) for field in fields(self))
        chosen = ([v[k] for k in places.tolist()] if isinstance(v, list) else v[places] for v in values)
        return dict(zip(SCHEMA.names, chosen, strict=True))

    def places_of(self, files: Sequence[DataFile]) -> Int64Array:
        """For each listed file its place in this table; -1 for a file that is not known in the listed state."""
        place = {path: k for k, path in enumerate(self.paths)}
        states = list(zip(self.sizes.tolist(), self.mtimes.tolist(), self.inodes.tolist(), self.versions, strict=True))
        found = np.full(len(files), -1, np.int64)
        for k, file in enumerate(files):
            at = place.get(path_of(file))
            if at is not None and states[at] == state_of(file):
                found[k] = at
        return found
