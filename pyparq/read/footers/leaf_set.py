"""Leaves that are read together. What they have in common is computed once for all reads of the same leaves."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from pyparq.format.chunk_numbers import stored_path
from pyparq.format.schema_node import Node


class LeafSet:
    """Some leaves of one schema, each once. It must not be changed."""

    __slots__ = ("coded", "columns", "decoded", "nodes", "numbers", "repeated", "stored_paths", "types")

    def __init__(self, nodes: Iterable[Node], coded: Container[int] = ()) -> None:
        """``coded``: the columns that come as codes of dictionaries."""
        self.nodes = list(nodes)
        self.coded = [node.column in coded for node in self.nodes]
        """Which of them come as codes of dictionaries."""
        self.numbers = [node.column for node in self.nodes]
        """Their places in a row group, also as the array ``columns``."""
        self.columns = np.array(self.numbers, np.int64)
        self.types = np.array([node.element.type for node in self.nodes], np.int64)
        """Their physical types."""
        self.repeated = np.array([node.max_rep > 0 for node in self.nodes], np.uint8)
        """Which of them are in lists."""
        self.stored_paths = [stored_path(node.path) for node in self.nodes]
        """Their `path_in_schema` as column chunks have it."""
        self.decoded: Any = None
        """The description of the leaves for the decoder, kept for :mod:`pyparq.read.decode.whole_chunks`."""

    def __len__(self) -> int:
        return len(self.nodes)
