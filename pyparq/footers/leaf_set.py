"""Leaves that are read together: what is asked of each of them, worked out once for all reads that ask for the same."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.format.chunk_numbers import stored_path
from pyparq.schemas.tree import Node


class LeafSet:
    """Some leaves of one schema, each once. May be used from several threads: what two work out at once is the same."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = list(nodes)
        self.decoded: Any = None
        """How the decoder knows them: kept for :mod:`pyparq.decoding.decoder`."""

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def columns(self) -> npt.NDArray[np.int64]:
        """Their places in a row group."""
        return np.array([node.column for node in self.nodes], np.int64)

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Of each its place in a row group, and here."""
        return [(column, k) for k, column in enumerate(self.columns.tolist())]

    @cached_property
    def types(self) -> npt.NDArray[np.int64]:
        """Their physical types."""
        return np.array([node.element.type for node in self.nodes], np.int64)

    @cached_property
    def repeated(self) -> npt.NDArray[np.uint8]:
        """Which of them are in lists."""
        return np.array([node.max_rep > 0 for node in self.nodes], np.uint8)

    @cached_property
    def stored_paths(self) -> list[bytes]:
        """Their `path_in_schema` as column chunks have it."""
        return [stored_path(node.path) for node in self.nodes]
