"""Ask the statistics and Bloom filters of many files at once: which row groups of which files can match.

The questions and the answers are those of :mod:`pyparq.read.prune`, for all files whose footers are alike: each test is
evaluated once over the statistics of all row groups, its hashes are computed once, and native code reads one block of
32 bytes of each filter. Nothing is read of a file that is ruled out by its statistics. What is unusual about a file is
left to the scan of that file, which says what it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.datasets.footers import AT_A_TIME, StoredFooter
from pyparq.filters.bloom import probe_hashes
from pyparq.filters.bounds import evaluate_bounds
from pyparq.filters.predicate import And, Constant, Predicate, Test
from pyparq.index.bounds import Bounds
from pyparq.index.statistics import believed_bounds, bounds_of_stored
from pyparq.read.open import OpenFile
from pyparq.schemas.tree import Node
from pyparq.threads import map_tasks

ABSENT, UNUSABLE = 0, 2
"""Answers of :func:`pyparq.kernels.probe_filters`."""

Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]


class LeafChunks(NamedTuple):
    """The column chunks of one leaf in many files, in order."""

    first: Int64Array
    """Of each file its first row group among all; then their number."""
    good: Mask
    bounds: Bounds
    filter_offsets: Int64Array
    """Of the Bloom filters; 0 where there is none."""
    filter_lengths: Int64Array


class Together:
    """One predicate and the files of a dataset that ``model`` stands for: their footers are alike."""

    def __init__(self, model: OpenFile, predicate: Predicate, paths: Sequence[str], footers: Sequence[StoredFooter]):
        self._model = model
        self._options = model.options
        self._predicate = predicate
        self._paths = [os.fsencode(path) for path in paths]
        self._data = [footer.data for footer in footers]
        self._statuses = np.array([footer.status for footer in footers], np.int64)
        self._leaves: dict[Node, LeafChunks] = {}
        self._maybe: dict[Test, Mask] = {}

    def row_groups(self) -> list[list[int] | None]:
        """Of each file the row groups that can match; ``None``: that the file has to be asked by itself."""
        tests = list(dict.fromkeys(self._predicate.tests()))
        if not tests:
            return [None] * len(self._data)
        self._leaves = {node: self._chunks(node) for node in {test.node: None for test in tests}}
        first = self._leaves[tests[0].node].first
        usual = self._usual(first)
        for test in tests:
            self._maybe[test] = np.ones(int(first[-1]), bool)
        if self._options.use_statistics:
            for test in tests:
                self._maybe[test] = evaluate_bounds(test, self._leaves[test.node].bounds).some
        if self._options.use_bloom_filters and kernels.probe_filters is not None:
            for test in tests:
                self._ask_filters(test, usual)
        kept: list[list[int] | None] = [[] if sound else None for sound in usual.tolist()]
        live = np.flatnonzero(self._combined(self._predicate))
        files = np.searchsorted(first, live, "right") - 1
        for file, group in zip(files.tolist(), (live - first[files]).tolist(), strict=True):
            found = kept[file]
            if found is not None:
                found.append(group)
        return kept

    def _usual(self, first: Int64Array) -> Mask:
        """The files all of whose chunks are as they should be."""
        usual = np.ones(len(self._data), bool)
        for chunks in self._leaves.values():
            if not np.array_equal(chunks.first, first):
                return np.zeros(len(self._data), bool)
            usual[np.searchsorted(first, np.flatnonzero(~chunks.good), "right") - 1] = False
        return usual

    def _chunks(self, node: Node) -> LeafChunks:
        order = self._model.column_order(node)
        modern, old = believed_bounds(node.type, order, self._model.created_by)
        first, numbers, good, mins, maxs = kernels.leaf_chunks(
            self._data, np.ascontiguousarray(self._statuses[:, 0]), node.column,
            [name.encode() for name in node.path], int(node.element.type), modern, old,
        )  # fmt: skip
        rows, values, nulls, nans, offsets, lengths = numbers.reshape(6, -1)
        if node.max_rep == 0:  # a chunk that states another number of values: nothing it counts is believed
            for k in np.flatnonzero(values != rows).tolist():
                values[k], nulls[k], nans[k], mins[k], maxs[k] = rows[k], -1, -1, None, None
        bounds = bounds_of_stored(node.type, mins, maxs, nulls, nans, values)
        return LeafChunks(first, good, bounds, offsets, lengths)

    def _combined(self, predicate: Predicate) -> Mask:
        if isinstance(predicate, Test):
            return self._maybe[predicate]
        if isinstance(predicate, Constant):
            return np.full(len(next(iter(self._maybe.values()))), predicate.value)
        children = [self._combined(child) for child in predicate.children]
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        return np.asarray(join.reduce(children), bool)

    def _ask_filters(self, test: Test, usual: Mask) -> None:
        """Take away the row groups whose Bloom filters hold none of the literals. A file with a filter that cannot be
        used is not ``usual``."""
        chunks = self._leaves[test.node]
        files = np.repeat(np.arange(len(self._data)), np.diff(chunks.first))
        wanted = self._combined(self._predicate) & self._maybe[test] & (chunks.filter_offsets > 0) & usual[files]
        asked = np.flatnonzero(wanted)
        hashes = probe_hashes(test) if len(asked) else None
        if hashes is None:
            return
        flat = np.array(sorted({h for alternatives in hashes for h in alternatives}), np.uint64)
        parts = [asked[k : k + AT_A_TIME] for k in range(0, len(asked), AT_A_TIME)]
        answers = map_tasks(lambda part: self._probe(chunks, files[part], part, flat), parts, self._options.use_threads)
        self._maybe[test] = self._maybe[test].copy()
        answer = np.concatenate(answers)
        self._maybe[test][asked] = answer != ABSENT
        usual[files[asked[answer == UNUSABLE]]] = False

    def _probe(
        self, chunks: LeafChunks, files: Int64Array, part: Int64Array, hashes: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint8]:
        assert kernels.probe_filters is not None
        first, last = int(files[0]), int(files[-1]) + 1
        return kernels.probe_filters(
            self._paths[first:last], self._statuses[first:last].reshape(-1), files - first,
            chunks.filter_offsets[part], chunks.filter_lengths[part], hashes, self._options.limits.max_bloom_filter,
        )  # fmt: skip
