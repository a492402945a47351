"""The stage of pruning that asks Bloom filters whether a row group can hold a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyparq.filters.leaf_tests import Test, probe_hashes
from pyparq.index import bloom_filter
from pyparq.io.byte_ranges import Range
from pyparq.read.footers.chunk_table import Mask
from pyparq.read.footers.column_chunk import Chunk
from pyparq.read.plan.bloom_probe import ABSENT, UNUSABLE, Probe, Probing, probe_local
from pyparq.read.plan.candidates import Candidates
from pyparq.read.plan.row_groups import Selection


@dataclass(slots=True)
class Probes:
    """The Bloom filters to ask, each about a test in a row group."""

    asked: list[tuple[Test, Selection, Probe]]
    all: Probing


class BloomStage:
    """Rules out row groups whose Bloom filters have none of the values that a test asks for."""

    def __init__(self, rows: Candidates) -> None:
        self._rows = rows
        self._known: Probes | None = None

    @property
    def num_filters(self) -> int:
        """Filters that :meth:`run` will ask, if :meth:`ranges` was called."""
        return 0 if self._known is None else len(self._known.asked)

    def ranges(self, room: Callable[[Chunk, int], int]) -> list[Range]:
        """The byte ranges that :meth:`run` will ask for. ``room``: bytes that a filter of unknown length can have, by
        its column chunk and place."""
        self._known = self._probes()
        return self._known.all.ranges(room)

    def _probes(self) -> Probes:
        asked: list[tuple[Test, Selection, Probe]] = []
        hashes_of: dict[Test, list[list[int]] | None] = {}
        for test, selection, chunk in self._rows.open_questions(self._have_filters):
            if test not in hashes_of:
                hashes_of[test] = probe_hashes(test)
            hashes = hashes_of[test]
            if hashes is not None:
                asked.append((test, selection, Probe(chunk, hashes)))
        probing = Probing([probe for _, _, probe in asked], self._rows.file.fetcher, self._rows.options.limits)
        return Probes(asked, probing)

    def _have_filters(self, test: Test) -> Mask | None:
        if not bloom_filter.can_prune(test.leaf):
            return None
        mask: Mask = self._rows.numbers(test.node).bloom_filter_offset != 0
        return mask

    def run(self) -> None:
        """Ask the filters of the tests and row groups that are open."""
        if self._known is None and self._by_local_filters():
            return
        probes = self._known or self._probes()
        self._rows.note([probe.chunk for _, _, probe in probes.asked])
        probes.all.run()
        for test, selection, probe in probes.asked:
            if not probe.answer:
                self._rows.drop(test, selection)

    def _by_local_filters(self) -> bool:
        """Ask the Bloom filters of a local file, all filters of a test in one call. Returns whether everything was
        asked. Encrypted and unusable filters are left for :meth:`run`."""
        usable = True
        for test in self._rows.tests:
            places = self._filters_to_ask(test)
            if places and self._rows.groups.any_encrypted(test.node):
                return False
            hashes = probe_hashes(test) if places else None
            if hashes is None:
                continue
            numbers = self._rows.numbers(test.node)
            offsets, lengths = numbers.bloom_filter_offset[places], numbers.bloom_filter_length[places]
            answers = probe_local(self._rows.file.fetcher, offsets, lengths, hashes, self._rows.options.limits)
            if answers is None:
                return False
            groups, column = self._rows.groups.row_groups, test.node.column
            self._rows.asked.update([(groups[place], column) for place in places])
            known = [place for place, answer in zip(places, answers.tolist(), strict=True) if answer == ABSENT]
            self._rows.answers[test].drop_all(known)
            self._rows.changed.update(known)
            usable &= UNUSABLE not in answers
        return usable

    def _filters_to_ask(self, test: Test) -> list[int]:
        """Positions of the row groups whose filter could change the answer to a test."""
        having = self._have_filters(test)
        if having is None:
            return []
        wanted = (self._rows.answers[test].is_open & having).tolist()
        if not any(wanted):
            return []
        return [s.place for s in self._rows.selections if wanted[s.place] and s.sure.count != s.maybe.count]
