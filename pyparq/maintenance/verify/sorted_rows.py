"""Checks that the rows of a row group are in the order of its sorting columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyparq.format.leaf_values import BinaryValues, Values, concat_values
from pyparq.format.order import domain
from pyparq.format.schema_node import Node
from pyparq.maintenance.verify.chunk_values import ChunkValues
from pyparq.maintenance.verify.findings import Findings
from pyparq.option_values import SortKey
from pyparq.write.shred import LeafData
from pyparq.write.sort import first_unsorted


def can_be_compared(node: Node) -> bool:
    """Whether a leaf can order rows: it has at most one value per row, and a known order."""
    leaf = node.type
    return node.max_rep == 0 and domain(leaf) not in ("", "int96") and not (leaf.kind == "decimal" and leaf.is_binary)


def spelled_out(values: ChunkValues) -> LeafData:
    """All rows of a leaf outside of lists."""
    parts: list[Values] = [values.page_values(page) for page in range(values.num_pages)]
    joined = concat_values(parts, values.leaf)
    node, rows = values.chunk.node, int(values.num_rows.sum())
    levels = None
    if any(found is not None for found in values.def_levels):
        levels = np.concatenate([
            np.full(count, node.max_def, np.uint8) if found is None else found
            for found, count in zip(values.def_levels, values.num_levels.tolist(), strict=True)
        ])  # fmt: skip
    if isinstance(joined, BinaryValues):
        joined = BinaryValues(joined.offsets.astype(np.int64, copy=False), joined.data)
    return LeafData(node, rows, rows, joined, levels, None)


def checkable(sorting_columns: Any, leaves: list[Node], findings: Findings) -> list[tuple[Node, SortKey]]:
    """The sorting columns before the first one that cannot order rows."""
    keys: list[tuple[Node, SortKey]] = []
    known: set[int] = set()
    for stated in sorting_columns or ():
        if not 0 <= stated.column_idx < len(leaves):
            text = f"sorting_columns names column {stated.column_idx}, but there are {len(leaves)}"
            findings.add("metadata", "RowGroup", text)
            break
        node = leaves[stated.column_idx]
        if node.column in known:  # (rows that are equal in a column stay equal)
            continue
        known.add(node.column)
        if not can_be_compared(node):
            break
        keys.append((node, SortKey(node.path, descending=stated.descending, nulls_first=stated.nulls_first)))
    return keys


def check_order(keys: list[tuple[Node, SortKey]], leaves: Mapping[int, LeafData], findings: Findings) -> None:
    """``leaves``: the sorting columns that could be decoded, by column number."""
    known: list[tuple[Node, SortKey]] = []
    for node, key in keys:
        if node.column not in leaves:
            break
        known.append((node, key))
    if not known or len({leaves[node.column].num_rows for node, _ in known}) > 1:
        return
    row = first_unsorted([leaves[node.column] for node, _ in known], [key for _, key in known])
    if row is not None:
        names = ", ".join(f"{node.dotted}{' descending' if key.descending else ''}" for node, key in known)
        text = f"sorting_columns states the order {names}, but row {row} comes before the row above it"
        findings.add("sorting", "RowGroup", text, row=row)
