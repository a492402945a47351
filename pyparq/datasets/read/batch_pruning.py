"""Asks the statistics and Bloom filters of many files at once: which row groups of which files can match?

The answers are those of :mod:`pyparq.read.plan.prune`, for all files with equal footers except for rows and row groups.
Each test is evaluated once over the statistics of all row groups, its hashes are computed once, and native code reads
one 32-byte block of each filter. Nothing is read of a file that its statistics rule out. A file with anything unusual
is left to a scan of its own, which raises the errors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.datasets.read.file_chunks import chunks_of_files
from pyparq.datasets.read.stored_footer import AT_A_TIME, StoredFooter
from pyparq.filters.computed import Computed
from pyparq.filters.leaf_tests import Test, evaluate_bounds, probe_hashes
from pyparq.filters.predicate import And, Constant, Predicate
from pyparq.format.chunk_numbers import BoundPlaces, ChunkNumbers
from pyparq.index.bounds import Bounds
from pyparq.index.statistics import bounds_of_numbers
from pyparq.io.fetch import Fetcher
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.stage_report import StageReport
from pyparq.runtime.threads import map_tasks

ABSENT, UNUSABLE = 0, 2
"""Answers of :func:`pyparq.kernels.probe_filters`."""

BEHIND = 8
"""Bytes that end a file, behind all filters."""

Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Answer = npt.NDArray[np.uint8]


class AskedFile(NamedTuple):
    """A file whose statistics and filters are asked."""

    where: Any
    footer: StoredFooter
    fetcher: Fetcher | None
    """What has read the footer of a remote file. ``None`` for a local file."""


class Together:
    """One predicate and the files of a dataset with footers like that of ``model``."""

    def __init__(self, model: OpenFile, predicate: Predicate, files: Sequence[AskedFile]):
        self._model = model
        self._options = model.options
        self._predicate = predicate
        footers = [file.footer for file in files]
        self._fetchers = [file.fetcher for file in files]
        self._paths = [os.fsencode(file.where) if file.fetcher is None else b"" for file in files]
        self._is_local = np.array([file.fetcher is None for file in files], np.bool_)
        self._data = [footer.data for footer in footers]
        self._statuses = np.array([footer.status for footer in footers], np.int64)
        self._tests = list(dict.fromkeys(predicate.tests()))
        self._nodes = sorted({test.node for test in self._tests}, key=lambda node: node.column)
        self._chunks = chunks_of_files(model, self._nodes, footers)
        self._maybe: dict[Test, Mask] = {}
        self.unasked: set[int] = set()
        """Positions of files with Bloom filters that have to be requested."""
        self.reports: list[StageReport] = []
        """What each index ruled out, for ``explain()``."""
        self._cost = 0, 0
        """Requests and bytes of the filters."""

    def row_groups(self) -> list[list[int] | None]:
        """For each file, the row groups that can match. ``None``: the file must be asked by itself."""
        if not self._tests:
            return [None] * len(self._data)
        first, usual = self._chunks.first, self._chunks.sound.copy()
        for test in self._tests:
            self._maybe[test] = np.ones(int(first[-1]), bool)
        if self._options.use_statistics:
            bounds = {node: self._bounds(j) for j, node in enumerate(self._nodes)}
            before = self._combined(self._predicate)
            for test in self._tests:
                self._maybe[test] = evaluate_bounds(test, bounds[test.node]).some
            self._report("statistics", len(self._nodes) * len(before), before)
        if self._options.use_bloom_filters:
            self._by_filters(usual)
        kept: list[list[int] | None] = [[] if sound else None for sound in usual.tolist()]
        live = np.flatnonzero(self._combined(self._predicate))
        files = self._chunks.file_of[live]
        for file, group in zip(files.tolist(), (live - first[files]).tolist(), strict=True):
            found = kept[file]
            if found is not None:
                found.append(group)
        return kept

    def _by_filters(self, usual: Mask) -> None:
        if kernels.probe_filters is None:  # the system has no positioned reads
            self.unasked.update(np.flatnonzero(~self._is_local).tolist())
            return
        before = self._combined(self._predicate)
        asked = sum(self._ask_filters(test, usual) for test in self._tests)
        if asked:
            self._report("bloom filter", asked, before, *self._cost)

    def _report(self, name: str, asked: int, before: Mask, requests: int = 0, size: int = 0) -> None:
        """Note what an index has left of the row groups of ``before``."""
        after, rows = self._combined(self._predicate), self._chunks.rows
        counts = int(before.sum()), int(after.sum()), int(rows[before].sum()), int(rows[after].sum())
        self.reports.append(StageReport(name, asked, *counts, 0, 0, requests, size))

    def _bounds(self, j: int) -> Bounds:
        """Bounds from the statistics of the chunks of one leaf."""
        node, model = self._nodes[j], self._model
        places = BoundPlaces(self._data, self._chunks.file_of)
        order = model.column_order(node)
        return bounds_of_numbers(node.type, self._chunks.stack_of(j), places, order, model.created_by)

    def _combined(self, predicate: Predicate) -> Mask:
        if isinstance(predicate, Test):
            return self._maybe[predicate]
        if isinstance(predicate, (Constant, Computed)):  # only the file by itself answers tests of computed values
            value = not isinstance(predicate, Constant) or predicate.value
            return np.full(len(next(iter(self._maybe.values()))), value)
        children = [self._combined(child) for child in predicate.children]
        join = np.logical_and if isinstance(predicate, And) else np.logical_or
        return np.asarray(join.reduce(children), bool)

    def _ask_filters(self, test: Test, usual: Mask) -> int:
        """Remove the row groups whose Bloom filters contain none of the literals. A file with an unusable filter is no
        longer ``usual``. Returns the number of filters that were asked."""
        files, chunks = self._chunks.file_of, self._chunks.of_leaf(self._nodes.index(test.node))
        wanted = self._combined(self._predicate) & self._maybe[test] & (chunks.bloom_filter_offset > 0) & usual[files]
        asked = np.flatnonzero(wanted)
        hashes = probe_hashes(test) if len(asked) else None
        if hashes is None:
            return 0
        flat = np.array(sorted({h for alternatives in hashes for h in alternatives}), np.uint64)
        answer = np.ones(len(asked), np.uint8)
        local = self._is_local[files[asked]]
        answer[local] = self._by_paths(chunks, files, asked[local], flat)
        answer[~local] = self._by_memory(chunks, files, asked[~local], flat)
        self._maybe[test] = self._maybe[test].copy()
        self._maybe[test][asked] = answer != ABSENT
        usual[files[asked[answer == UNUSABLE]]] = False
        return len(asked)

    def _by_paths(self, chunks: ChunkNumbers, files: Int64Array, asked: Int64Array, hashes: Hashes) -> Answer:
        """The answers of filters in local files."""
        parts = [asked[k : k + AT_A_TIME] for k in range(0, len(asked), AT_A_TIME)]
        probe = lambda part: self._probe(chunks, files[part], part, hashes)  # noqa: E731
        found = map_tasks(probe, parts, self._options.use_threads)
        requests, size = self._cost
        self._cost = requests + sum(one[1] for one in found), size + sum(one[2] for one in found)
        return np.concatenate([np.zeros(0, np.uint8), *(one[0] for one in found)])

    def _by_memory(self, chunks: ChunkNumbers, files: Int64Array, asked: Int64Array, hashes: Hashes) -> Answer:
        """The answers of filters in remote files, as far as they came with the footers or are kept."""
        answer = np.ones(len(asked), np.uint8)
        offsets, lengths = chunks.bloom_filter_offset[asked].tolist(), chunks.bloom_filter_length[asked].tolist()
        for place, (k, offset, length) in enumerate(zip(files[asked].tolist(), offsets, lengths, strict=True)):
            found = self._probe_one(k, offset, length, hashes)
            if found is None:
                self.unasked.add(k)
            else:
                answer[place] = found
        return answer

    def _probe_one(self, k: int, offset: int, length: int, hashes: Hashes) -> int | None:
        """The answer of a filter of file ``k``. ``None`` if its bytes have to be requested."""
        fetcher = self._fetchers[k]
        assert fetcher is not None
        assert kernels.probe_open_filters is not None
        end, tail = int(self._statuses[k, 0]), fetcher.tail
        if offset < end - len(tail):
            kept = None if length <= 0 else fetcher.kept_part(offset, length)
            if kept is None:
                return None
            end, tail = offset + length + BEHIND, memoryview(bytes(kept) + bytes(BEHIND))  # as if the file ended there
        elif length > 0:
            fetcher.keep_indexes([(offset, length)])
        place, size = np.array([offset], np.int64), np.array([length], np.int64)
        most = self._options.limits.max_bloom_filter
        return int(kernels.probe_open_filters(-1, end, tail, place, size, hashes, most)[0][0])

    def _probe(
        self, chunks: ChunkNumbers, files: Int64Array, part: Int64Array, hashes: Hashes
    ) -> tuple[Answer, int, int]:
        assert kernels.probe_filters is not None
        first, last = int(files[0]), int(files[-1]) + 1
        return kernels.probe_filters(
            self._paths[first:last], self._statuses[first:last].reshape(-1), files - first,
            chunks.bloom_filter_offset[part], chunks.bloom_filter_length[part], hashes,
            self._options.limits.max_bloom_filter,
        )  # fmt: skip
