"""Names of a table's columns in options, as the names that a file stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyparq.datasets.file_columns import Matching, of_nodes
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.maintenance.index_request import IndexOptions


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
