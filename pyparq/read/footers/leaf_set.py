"""Leaves that are read together: what is asked of each of them, worked out once for all reads that ask for the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pyparq.format.chunk_numbers import stored_path
from pyparq.format.schema_node import Node


class LeafSet:
    """Some leaves of one schema, each once. Not to be changed."""

    __slots__ = ("columns", "decoded", "nodes", "repeated", "stored_paths", "types")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)
        self.columns = np.array([node.column for node in self.nodes], np.int64)
        """Their places in a row group."""
        self.types = np.array([node.element.type for node in self.nodes], np.int64)
        """Their physical types."""
        self.repeated = np.array([node.max_rep > 0 for node in self.nodes], np.uint8)
        """Which of them are in lists."""
        self.stored_paths = [stored_path(node.path) for node in self.nodes]
        """Their `path_in_schema` as column chunks have it."""
        self.decoded: Any = None
        """How the decoder knows them: kept for :mod:`pyparq.read.decode.whole_chunks`."""

    def __len__(self) -> int:
        return len(self.nodes)
