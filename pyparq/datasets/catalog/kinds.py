"""The kinds of files in a catalog: footers without row groups, which tell schema, writer and column orders."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from pyparq.column_names import ColumnName
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
MOST = 1000
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

    def __init__(self, stored: bytes, names: Sequence[ColumnName], options: ReadOptions) -> None:
        footer = LazyFileMetaData(stored)
        self.model = OpenFile(Fetcher(BytesSource(b"")), footer, CLEAR_FILE, options)
        """A file of this kind without rows."""
        self.key_columns = key_columns(footer, names)
        """By the number of a leaf: the key column that it is."""


def key_leaf(tree: SchemaTree, name: ColumnName) -> Node | None:
    """The leaf of a key column, if a file has it and hashes of its values can be told apart."""
    try:
        leaves = list(tree.find(name).leaves())
    except ParquetError:
        return None
    return leaves[0] if len(leaves) == 1 and can_prune(leaves[0].type) else None


def check_key(tree: SchemaTree, name: ColumnName) -> None:
    """Raise :class:`pyparq.ColumnNotFoundError` or :class:`pyparq.OptionError` for what cannot be a key column."""
    leaves = list(tree.find(name).leaves())
    if len(leaves) != 1:
        raise OptionError(f"the column {name!r} has {len(leaves)} leaf columns: a key is one of them")
    if not can_prune(leaves[0].type):
        raise OptionError(f"the column {name!r} cannot be a key: hashes of {leaves[0].type.kind} values tell nothing")


def key_columns(footer: LazyFileMetaData, names: Sequence[ColumnName]) -> dict[int, int]:
    """For the leaves that are key columns: which of them. Names are told apart by case, whatever a reader does."""
    tree = build_tree(footer.schema(), DEFAULT_LIMITS.max_schema_depth)
    leaves = [key_leaf(tree, name) for name in names]
    return {leaf.column: k for k, leaf in enumerate(leaves) if leaf is not None}
