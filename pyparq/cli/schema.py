"""``pyparq schema``: the tree of columns with Parquet and Arrow types."""

from __future__ import annotations

from typing import Any

import click

from pyparq.cli.options import ALL, COLUMNS, IGNORE_CASE, JSON, SOURCE
from pyparq.cli.output import Grid, count, cut, emit, on_terminal, print_json, title
from pyparq.cli.sources import opened_any
from pyparq.errors import SchemaError
from pyparq.format.annotation import annotation_name
from pyparq.io.url import shown

SHOWN = 200
"""Lines on a terminal before the rest needs ``--all``."""
LONG = 60
"""Annotations (GEOMETRY's may carry a whole coordinate system) are cut to this in the table."""
_REPETITIONS = ("required", "optional", "repeated")


@click.command("schema")
@SOURCE
@COLUMNS
@IGNORE_CASE
@ALL
@JSON
def schema_command(file: str, columns: list[str], everything: bool, as_json: bool) -> None:
    """The columns of a file: Parquet types, annotations and levels, and the Arrow type that each column is read as.

    For a folder or a glob: the columns of the table that all files make together, partition columns last.
    """
    with opened_any(file) as parquet:
        tree = parquet.tree
        nodes = [tree.find(name) for name in columns] if columns else list(tree.root.children)
        if as_json:
            print_json({"file": shown(file), "columns": [_document(node) for node in nodes]})
        else:
            _print(file, tree, nodes, everything)


def _print(file: str, tree: Any, nodes: list[Any], everything: bool) -> None:
    grid = Grid(">#|=column|repetition|=physical|-=annotation|??def|??rep|?->id|=Arrow type")
    limit = SHOWN if on_terminal() and not everything else None
    left_out = 0
    for node in nodes:
        for depth, inner in _walk(node, 0):
            if limit is not None and len(grid.rows) >= limit:
                left_out += 1
            else:
                grid.add(*_row(inner, depth, inner is node))
    columns, leaves = len(tree.root.children), len(tree.leaves)
    title(f"{shown(file)}: {count(columns, 'column')}" + (f" with {leaves:,} leaves" if leaves != columns else ""))
    if grid.rows:
        grid.show()
    if left_out:
        emit(f"  … {count(left_out, 'more line')}: choose with --columns, or use --all")


def _walk(node: Any, depth: int) -> Any:
    yield depth, node
    for child in node.children:
        yield from _walk(child, depth + 1)


def _row(node: Any, depth: int, is_top: bool) -> list[Any]:
    name = ("  " * depth + node.name) if depth else (node.dotted if is_top else node.name)
    return [
        str(node.column) if node.is_leaf else "",
        name,
        _REPETITIONS[node.repetition],
        physical_name(node),
        cut(annotation_name(node.element), LONG),
        int(node.max_def),
        int(node.max_rep),
        "" if node.element.field_id is None else str(node.element.field_id),
        _arrow_name(node),
    ]


def physical_name(node: Any) -> str:
    """``INT64``, ``FIXED_LEN_BYTE_ARRAY(16)``, ``group``."""
    if not node.is_leaf:
        return "group"
    if not is_known(node):
        return f"unknown type {node.element.type}"
    length = f"({node.type.length})" if node.type.physical.name == "FIXED_LEN_BYTE_ARRAY" else ""
    return f"{node.type.physical.name}{length}"


def is_known(node: Any) -> bool:
    """Whether a leaf's type makes sense."""
    try:
        return node.type is not None
    except SchemaError:
        return False


def _arrow_name(node: Any) -> str:
    """The Arrow type of a leaf's values. For a top-level group, its kind without the types below."""
    if node.is_leaf and not is_known(node):
        return "?"
    if node.is_leaf and node.max_rep == 0:
        return str(node.arrow_type)
    if node.parent is not None and node.parent.parent is None:
        from pyparq.format.schema_node import shape_of

        kind = shape_of(node).kind
        return f"list<{node.arrow_type}>" if node.is_leaf else kind
    return str(node.arrow_type) if node.is_leaf else ""


def _document(node: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": node.name,
        "path": list(node.path),
        "repetition": _REPETITIONS[node.repetition],
        "annotation": annotation_name(node.element) or None,
        "field_id": node.element.field_id,
        "max_definition_level": node.max_def,
        "max_repetition_level": node.max_rep,
    }
    if node.is_leaf and not is_known(node):
        found |= {"column": node.column, "physical_type": None, "arrow_type": None}
    elif node.is_leaf:
        found |= {"column": node.column, "physical_type": node.type.physical.name, "arrow_type": str(node.arrow_type)}
        if node.type.length:
            found["length"] = node.type.length
    else:
        found["children"] = [_document(child) for child in node.children]
    return found
