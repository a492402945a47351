"""Makes the scans of a dataset's files: one per file, or one for many small files that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyparq import kernels
from pyparq.arrow.column import Column
from pyparq.arrow.table import Batch
from pyparq.datasets.read.batch_pruning import AskedFile, Together
from pyparq.datasets.read.concatenated_scan import ConcatenatedFile, Joint, Part, runs
from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.datasets.read.evolution import marked
from pyparq.datasets.read.file_plan import FilePlan
from pyparq.datasets.read.filter import FilterParts
from pyparq.datasets.read.known_files import Narrowed
from pyparq.datasets.read.projection import Projection
from pyparq.datasets.read.schema_cast import Adapter
from pyparq.errors import LeftOutColumnsWarning, ParquetError, located
from pyparq.filters.expression import Expression, Known
from pyparq.filters.predicate import Constant
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.candidates import StageReport
from pyparq.read.scan import Scan, same_question
from pyparq.runtime.messages import warn_caller
from pyparq.runtime.text import visible


@dataclass(slots=True)
class FileScan:
    """The scan of one file, and the conversion of its columns to the dataset's types."""

    number: int
    """Of the file in the dataset."""
    scan: Scan
    adapter: Adapter
    combination: int
    """Of partition values."""


@dataclass(slots=True)
class ConcatenatedScan:
    """The scan of many small files as one."""

    number: int
    """Of the first of the files."""
    numbers: list[int]
    scan: Scan
    adapter: Adapter
    file: ConcatenatedFile


class FileScans:
    """Makes scans for one question to a dataset. What files of one schema have in common is computed once."""

    def __init__(
        self,
        dataset: DatasetFiles,
        parts: FilterParts,
        projection: Projection,
        plans: Sequence[FilePlan] | None,
        left: Narrowed,
    ) -> None:
        """``plans``: the reads of each file, if the scan was planned before. ``left``: what the catalog says."""
        self._left = left
        self._dataset = dataset
        self._parts = parts
        self._projection = projection
        self._plans = plans
        self._adapters: dict[int, tuple[OpenFile, Adapter]] = {}
        """By the id of a file's schema tree. The file keeps the tree alive."""
        self._models: dict[tuple[int, int], tuple[OpenFile, Expression, Scan | None]] = {}
        """By the id of the schema tree, and by the part of the filter that partitions leave."""
        self._own_filters: set[int] = set()
        """Remote files whose Bloom filters did not come with their footers."""
        self.reports: list[StageReport] = []
        """What indexes have ruled out in files that were asked together."""

    def row_groups(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        """The row groups that can match, for the files that can be asked together."""
        if self._parts.expression is None or self._plans is not None or len(numbers) < 2:
            return {}
        footers, where = self._dataset.footers, self._dataset.found.files
        found: dict[int, list[int]] = {}
        for rest, part in self._alike(numbers):
            if isinstance(rest, Known):
                continue
            model = self.of_file(part[0], None)
            if model is None and part[0] not in self._dataset.unreadable:
                found |= {number: [] for number in part}  # the filter is never true for such a file
            elif model is not None:
                files = [AskedFile(where[k].where, footers.stored(k), footers.fetcher(k)) for k in part]
                together = Together(model.scan.file, model.scan.predicate, files)
                asked = together.row_groups()
                self.reports += together.reports
                self._own_filters.update(part[place] for place in together.unasked)
                found |= {number: groups for number, groups in zip(part, asked, strict=True) if groups is not None}
        return found

    def _alike(self, numbers: Sequence[int]) -> list[tuple[Expression, list[int]]]:
        """Groups of files that can be asked together: the partitions leave the same part of the filter, and the footers
        are of one kind.

        Files of an unknown kind and files that are left out are in no group.
        """
        footers = self._dataset.footers
        self._dataset.read_stored(numbers)
        alike: dict[tuple[int, Any], tuple[Expression, list[int]]] = {}
        for number in numbers:
            frame = footers.frame(number)
            if frame is not None and number not in self._dataset.unreadable and not self._dataset.has_deleted(number):
                rest = self._parts.rest(int(self._dataset.partition_values.of_file[number]))
                same = rest.value if isinstance(rest, Known) else id(rest)
                alike.setdefault((frame, same), (rest, []))[1].append(number)
        return list(alike.values())

    def of_file(
        self, number: int, limit: int | None, row_groups: Sequence[int] | None = None, rows: Any = None
    ) -> FileScan | None:
        """The scan of a file. ``None`` if no row of the file matches, or if the file is left out. ``row_groups``: those
        that can match. ``rows``: of a scan without a plan, the only rows to read."""
        file = self._dataset.open(number)
        if file is None:
            return None
        combination = int(self._dataset.partition_values.of_file[number])
        adapter = self._adapter(file)
        rest = self._parts.rest(combination)
        if self._plans is None:
            model = self._model(file, rest, adapter)
            if model is None:
                return None
            rows = self._dataset.stored_rows(number, file, rows)
            groups = self._left.groups.get(number)
            ask = (row_groups is None or number in self._own_filters) and number not in self._left.by_keys
            if groups is not None and row_groups is not None:
                groups = sorted(set(groups) & set(row_groups))
            chosen = row_groups if groups is None else groups
            scan = same_question(model, file.fork(), chosen, limit, ask_filters=ask, rows=rows)
        else:
            question = self._parts.for_file(rest, self._projection, file, self._dataset.matching)
            if isinstance(question, Known) and question.value is not True:
                return None
            planned = self._plans[number].scan_plan(
                adapter.columns, None if isinstance(question, Known) else question, self._dataset.options, limit
            )
            try:
                scan = Scan.of_plan(file.fork(), planned)
            except ParquetError as error:  # the file has changed
                self._dataset.leave_out(number, error)
                return None
        return FileScan(number, scan, adapter, combination)

    def _model(self, file: OpenFile, rest: Expression, adapter: Adapter) -> Scan | None:
        """A scan with the question to all files with this schema tree whose partitions leave ``rest`` of the filter.
        ``None``: no row of them can match."""
        key = id(file.tree), id(rest)
        if key not in self._models:
            question = self._parts.for_file(rest, self._projection, file, self._dataset.matching)
            known = isinstance(question, Known)
            none = isinstance(question, Known) and question.value is not True
            scan = None if none else Scan(file.fork(), adapter.columns, None if known else question)
            self._models[key] = file, rest, scan
        return self._models[key][2]

    def _adapter(self, file: OpenFile) -> Adapter:
        """The conversion that all files of a schema share."""
        found = self._adapters.get(id(file.tree))
        if found is None:
            schema = marked(file.fields.schema, file.tree)
            adapter = Adapter(file.tree, schema, self._projection.own, self._dataset.matching)
            found = self._adapters[id(file.tree)] = file, adapter
            if self._dataset.tells_left_out and len(self._projection.places) == len(self._dataset.schema.fields):
                self._tell_left_out(file)
        return found[1]

    def _tell_left_out(self, file: OpenFile) -> None:
        names = self._dataset.left_out_columns(file)
        if names:
            text = f"schema= leaves out columns that the file has: {', '.join(map(visible, names))} [file {file.name}]"
            warn_caller(text, LeftOutColumnsWarning)

    def joined(self, numbers: Sequence[int], groups: dict[int, list[int]]) -> list[ConcatenatedScan]:
        """Scans of neighbouring small local files that are alike."""
        if self._plans is not None or len(numbers) < 2 or self._dataset.is_remote or kernels.read_many_ranges is None:
            return []
        joints: dict[int, Joint] = {}
        models: dict[Joint, FileScan] = {}
        for _, part in self._alike(numbers):
            model = self.of_file(part[0], None) if len(part) > 1 else None
            if model is not None and model.scan.file.tree.leaves:
                joint = self._joint(model.scan, part, groups)
                joints |= dict.fromkeys(part, joint)
                models[joint] = model
        return [self._joined_scan(joints[run[0]], models[joints[run[0]]], run) for run in runs(numbers, joints)]

    def _joint(self, model: Scan, numbers: Sequence[int], groups: dict[int, list[int]]) -> Joint:
        files, footers, leaves = self._dataset.found.files, self._dataset.footers, model.file.tree.leaves
        parts = [Part(str(files[k].where), footers.stored(k), groups.get(k)) for k in numbers]
        read = {leaf.column for output in model.outputs for leaf in output.leaves} | model.predicate.columns()
        selective = not isinstance(model.predicate, Constant)
        return Joint(model.file, [leaves[column] for column in read or {0}], selective, numbers, parts)

    def _joined_scan(self, joint: Joint, model: FileScan, numbers: list[int]) -> ConcatenatedScan:
        file = joint.file(numbers)
        scan = same_question(model.scan, file, file.row_groups, None, ask_filters=False)
        return ConcatenatedScan(numbers[0], numbers, scan, model.adapter, file)

    def adapted(self, file_scan: FileScan, columns: Sequence[Column], num_rows: int) -> Batch:
        with located(file=file_scan.scan.file.name):
            own = iter(file_scan.adapter.adapt(columns, num_rows))
        partitions = self._dataset.partition_values
        made = [
            next(own) if k is None else partitions.values(k, file_scan.combination, num_rows)
            for k in self._projection.places
        ]
        return Batch(made, num_rows)

    def adapted_of_many(self, joined: ConcatenatedScan, batches: Sequence[Batch]) -> list[Batch]:
        """The batches of joined files in the dataset's types. A batch may have rows of several files."""
        partitions, rows = self._dataset.partition_values, joined.scan.rows_of_groups
        of_file = partitions.of_file[joined.numbers]
        counts = [rows.get(group, 0) for group in range(joined.file.num_row_groups)]
        combinations, ends = of_file[joined.file.of_group], np.cumsum(counts)
        made, at = [], 0
        for batch in batches:
            own = iter(joined.adapter.adapt(batch.columns, batch.num_rows))
            edges = np.clip(ends - at, 0, batch.num_rows)
            at += batch.num_rows
            rows_of = np.diff(edges, prepend=0)
            groups = np.flatnonzero(rows_of)
            columns = [
                next(own) if k is None else partitions.values_of(k, combinations[groups], rows_of[groups])
                for k in self._projection.places
            ]
            made.append(Batch(columns, batch.num_rows))
        return made
