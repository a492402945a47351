"""Plain Python shredding, one value at a time, straight from README.md: what tests hold the vectorised one against."""

from __future__ import annotations

from typing import Any

from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import OPTIONAL

Entry = tuple[int, int, Any]
"""(repetition level, definition level, value or None)"""


def shred_rows(tree: SchemaTree, rows: list[dict[str, Any]]) -> list[list[Entry]]:
    """For every leaf of a tree in the standard structures, its entries."""
    out: list[list[Entry]] = [[] for _ in tree.leaves]
    for row in rows:
        for node in tree.root.children:
            _emit(node, row[node.name], 0, 0, out)
    return out


def _emit(node: Node, value: Any, rep: int, level: int, out: list[list[Entry]]) -> None:
    if node.repetition == OPTIONAL:
        if value is None:
            _nothing(node, rep, level, out)
            return
        level += 1
    if node.is_leaf:
        out[node.column].append((rep, level, value))
    elif node.element.logicalType is not None and node.element.logicalType.LIST is not None:
        _items(node, [(item,) for item in value], rep, level, out)
    elif node.element.logicalType is not None and node.element.logicalType.MAP is not None:
        _items(node, value, rep, level, out)
    else:
        for child in node.children:
            _emit(child, value[child.name], rep, level, out)


def _items(node: Node, items: list[tuple[Any, ...]], rep: int, level: int, out: list[list[Entry]]) -> None:
    repeated = node.children[0]
    if not items:
        _nothing(node, rep, level, out)
    for i, item in enumerate(items):
        for child, value in zip(repeated.children, item, strict=True):
            _emit(child, value, repeated.max_rep if i else rep, level + 1, out)


def _nothing(node: Node, rep: int, level: int, out: list[list[Entry]]) -> None:
    for leaf in node.leaves():
        out[leaf.column].append((rep, level, None))
