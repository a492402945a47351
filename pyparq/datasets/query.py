"""What a scan asks of a dataset: some of its columns, and a filter, in the dataset's names; and the same for one file.

The schema of a dataset is the common schema of all its files, whatever a filter leaves of them. The footers of all
local files are read for it, and those of up to :data:`FEW_REMOTE` remote files. If there are more, and partitions rule
most of them out, the first and the last file stand for all: partitions are often ordered by time, and columns are
added over time. A file that does not agree with these two is then an error; the schema never changes silently.

Where all files are of one kind, and no value comes from the names of folders, the files' own names and types are those
of the dataset. Nothing is translated then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import Mask, take
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.layouts import normalize
from pyparq.arrow.table import Table
from pyparq.datasets.common_schema import Common, has_marks, marked, tree_of
from pyparq.datasets.file_columns import Adapter, Matching, of_nodes
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.partitions import Partitions
from pyparq.errors import ColumnNotFoundError, ParquetError, SchemaError
from pyparq.filters import expression
from pyparq.filters.bind import bind, tested_leaf
from pyparq.filters.expression import Expression, IsIn, Known, Literal, Not, Path, moved, simplified, tested_paths
from pyparq.filters.given import as_expression
from pyparq.filters.predicate import evaluate_rows
from pyparq.filters.shown import check_computed, for_leaf
from pyparq.filters.variants import named_node, variant_path
from pyparq.format.schema_node import Node, Shape, shape_of, shown_field, top_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Field, Schema
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.projection import named
from pyparq.read.scan import Scan
from pyparq.runtime.threads import REQUESTS

FEW_REMOTE = REQUESTS
"""Up to this many remote files, all footers are read, even if partitions rule files out. That takes one round of
requests."""


def _paths_of(expression: Expression | None) -> list[Path]:
    """The paths of all columns that a filter names."""
    found: list[Path] = []

    def look(test: Expression) -> Expression:
        found.extend(tested_paths(test))
        return test

    if expression is not None:
        simplified(expression, look)
    return found


@dataclass(slots=True)
class FilesLeft:
    """The files that are left for a filter."""

    numbers: list[int]
    groups: dict[int, list[int]] = field(default_factory=dict)
    """The row groups that can match, of those files that the catalog has said something about."""
    by_keys: set[int] = field(default_factory=set)
    """The files of whose row groups the keys are known. Their Bloom filters say nothing more."""
    known: int = 0
    """Files that the catalog was asked about."""
    ruled_out: int = 0
    """Of these, the ones that are not left."""


class Query:
    """The columns and the filter of a scan. What files of one kind are asked is worked out once.

    Raises :class:`ColumnNotFoundError` and :class:`FilterError` like a scan of one file, and :class:`SchemaError` if
    the files have no common schema. Only columns that are asked for need a common type.
    """

    def __init__(
        self, files: DatasetFiles, columns: Iterable[Any] | str | None, filters: Any, numbers: list[int] | None = None
    ) -> None:
        """``numbers``: the files to ask, if they are known; by default those that partitions leave."""
        self.files = files
        self.columns = columns
        self.expression = _expression_of(files, filters)
        self.filter = DatasetFilter(self.expression, files.partition_values, files.matching.case_sensitive)
        self.numbers = self.filter.files_left() if numbers is None else numbers
        """The files that partitions leave."""
        self._common = self._common_schema()
        self._projection: Projection | None = None
        self._adapters: dict[int, tuple[OpenFile, Adapter]] = {}
        """By the id of a file's schema tree. The file keeps the tree alive."""
        self._scans: dict[tuple[int, int], tuple[OpenFile, Expression, Scan | None]] = {}
        """By the id of the schema tree, and by the part of the filter that partitions leave."""
        model = self._as_one_file()
        self.own_scan = None if model is None else Scan(model, columns, self.expression)  # type: ignore[arg-type]
        """The scan of any of the files, if their names and types are those of the dataset."""
        self.schema = self.projection.schema if model is None else Schema(
            self.own_scan.projection.fields, self._common.schema.metadata  # type: ignore[union-attr]
        )  # fmt: skip
        """Of the result."""

    @property
    def projection(self) -> Projection:
        """The columns of the result, and the dataset's tree."""
        if self._projection is None:
            self._projection = self._projected(self._common)
        return self._projection

    @property
    def places(self) -> list[int | None]:
        """For each column of the result, the number of its partition column. ``None`` for a column of the files."""
        return self.projection.places

    def rest(self, number: int) -> Expression:
        """The part of the filter that the partitions of a file leave."""
        return self.filter.rest(int(self.files.partition_values.of_file[number]))

    def in_file(self, rest: Expression, file: OpenFile) -> Expression:
        """The part of the filter that is left, with the file's names of the columns. Missing columns are null."""
        if isinstance(rest, Known):
            return rest
        columns = _Counterparts(self.projection.tree, file.tree, self.files.matching)
        return simplified(rest, lambda test: _in_file(test, self.projection, file, columns))

    def scan(self, file: OpenFile, rest: Expression) -> Scan | None:
        """A scan with the question to all files with this schema tree whose partitions leave ``rest`` of the filter.
        ``None``: no row of them can match."""
        if self.own_scan is not None and self.own_scan.file.tree is file.tree:
            return self.own_scan
        key = id(file.tree), id(rest)
        if key not in self._scans:
            question = self.in_file(rest, file)
            filters = None if isinstance(question, Known) else question
            none = isinstance(question, Known) and question.value is not True
            scan = None if none else Scan(file, self.adapter(file).columns, filters)
            self._scans[key] = file, rest, scan
        return self._scans[key][2]

    def adapter(self, file: OpenFile) -> Adapter:
        """The conversion that all files of a schema share."""
        found = self._adapters.get(id(file.tree))
        if found is None:
            schema = marked(file.fields.schema, file.tree)
            adapter = Adapter(file.tree, schema, self.projection.own, self.files.matching)
            found = self._adapters[id(file.tree)] = file, adapter
            if self.files.tells_left_out and len(self.places) == len(self.files.schema.fields):
                self.files.warn_left_out(file)
        return found[1]

    # ---- inside

    def _as_one_file(self) -> OpenFile | None:
        """A file that has the dataset's names and types, as all files have."""
        files = self.files
        if files.partition_values.fields or files.declared is not None or files.table is not None:
            return None
        if not files.matching.case_sensitive or isinstance(self.columns, str):
            return None
        names = self._common.schema.names
        if self.columns is not None and not all(isinstance(c, str) and names.count(c) == 1 for c in self.columns):
            return None
        file = files.model
        return None if file is None or has_marks(file.tree) else file

    def _common_schema(self) -> Common:
        """The common schema of all files, or of those that stand for all."""
        files, left = self.files, self.numbers
        count = len(files.found.files)
        if files.knows_schema or not files.is_remote or count <= FEW_REMOTE or len(left) == count:
            return files.common(left)
        ends = [0, count - 1]
        of_left = files.common_of_some([*left, *ends], left)
        try:
            of_ends = files.common_of_some(ends)
            made = self._projected(of_ends)
        except ParquetError:  # for example a column that only other files have
            return files.common(left)
        if self._projected(of_left).base.fields != made.base.fields:
            raise SchemaError(
                f"files that the filter leaves have other columns or types than the first and the last of the {count:,}"
                " remote files, and the footers of the others were not read. Call .schema of the dataset before, which "
                "reads all footers, or give schema=, or name the columns",
                file=files.root,
            )
        return of_ends

    def _projected(self, common: Common) -> Projection:
        schema = common.for_all_columns() if self.columns is None else common.schema
        partitions, case_sensitive = self.files.partition_values.fields, self.files.matching.case_sensitive
        try:
            return Projection(schema, self.columns, self.expression, partitions, case_sensitive)
        except ColumnNotFoundError:
            asked = _beginnings([*(self.columns or ()), *_paths_of(self.expression)])
            for name, error in common.clashes.items():
                if name in asked:
                    raise error from None
            raise


def _expression_of(files: DatasetFiles, filters: Any) -> Expression | None:
    """A filter in any form as an expression. The columns that it may name are those of all files."""

    def common() -> Common:
        return files.common(range(len(files.found.files)))

    def tree() -> SchemaTree:
        return tree_of(common().schema, case_sensitive=files.matching.case_sensitive)

    try:
        return as_expression(filters, tree, lambda: Table(common().schema, []))
    except ColumnNotFoundError:
        for name, error in common().clashes.items():
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(filters)):
                raise error from None
        raise


def _beginnings(paths: Iterable[Any]) -> set[str]:
    """Names of columns, and the beginnings of dotted names."""
    names = [path if isinstance(path, str) else path[0] for path in paths if isinstance(path, (str, tuple))]
    return {name[: k or None] for name in names for k in (0, *(k for k, char in enumerate(name) if char == "."))}


# ---- columns ---------------------------------------------------------------------------------------------------------


class Projection:
    """The columns of a result: some from the files (``own``), some from the names of folders.

    Raises :class:`ColumnNotFoundError` and :class:`FilterError` like a scan of one file.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Iterable[Any] | str | None,
        expression: Expression | None,
        partitions: Sequence[Field],
        case_sensitive: bool,
    ) -> None:
        self.tree = tree_of(schema, case_sensitive=case_sensitive)
        """The dataset's schema as a tree, partition columns included."""
        self._fields = schema.fields
        bind(expression, self.tree, self.shown)  # raises the error
        order = {field.name: k for k, field in enumerate(partitions)}
        tops = {node: k for k, node in enumerate(self.tree.root.children)}
        wanted = dict.fromkeys(self.tree.root.children) if columns is None else named(self.tree, columns)
        self.own: list[Field] = []
        self.places: list[int | None] = []
        """For each column of the result, the number of its partition column. ``None`` for a column of the files."""
        fields = []
        for node, leaves in wanted.items():
            field = schema.fields[tops[node]]
            place = order.get(field.name)
            if place is None:
                field = field if leaves is None else _reduced(field, shape_of(node), leaves)
                self.own.append(field)
            self.places.append(place)
            fields.append(field)
        self.schema = Schema(tuple(fields), schema.metadata)
        """Of the result."""
        asked = {tops[node] for node in wanted}
        asked |= {tops[top_of(named_node(self.tree, path))] for path in _paths_of(expression)}  # as it is bound again
        self.base = Schema(tuple(schema.fields[k] for k in sorted(asked)), schema.metadata)
        """The dataset's schema without columns that nothing asks for."""

    def shown(self, leaf: Node) -> Field | None:
        """The field as which the dataset shows a leaf."""
        return shown_field(leaf, self.tree.root.children, self._fields)


def _reduced(field: Field, shape: Shape, leaves: set[int]) -> Field:
    """The field with only these leaves. Maps stay whole."""
    below = {leaf.node.column for leaf in shape.leaves()}
    if below <= leaves or shape.kind in ("leaf", "map"):
        return field
    pairs = zip(field.type.children, shape.children, strict=True)
    kept = [
        _reduced(child, inner, leaves)
        for child, inner in pairs
        if {leaf.node.column for leaf in inner.leaves()} & leaves
    ]
    return replace(field, type=replace(field.type, children=tuple(kept)))


# ---- filters ---------------------------------------------------------------------------------------------------------


class DatasetFilter:
    """One filter for all files. Each test on a partition column is answered once for all values that occur."""

    def __init__(self, expression: Expression | None, partitions: Partitions, case_sensitive: bool) -> None:
        self.expression = expression
        self._partitions = partitions
        self._case_sensitive = case_sensitive
        self._names = {self._key(name) for name in partitions.names}
        fields = partitions.fields
        self._tree = tree_of(Schema(fields), case_sensitive=case_sensitive) if fields else None
        self._answers: dict[int, tuple[Expression, Mask, Mask]] = {}
        self._rest: dict[int, Expression] = {}
        self.asks_partitions = bool(self._names) and any(map(self._is_partition, _paths_of(expression)))
        """Whether the filter names a partition column."""

    def files_left(self) -> list[int]:
        """Numbers of the files that the partitions do not rule out."""
        of_file = self._partitions.of_file
        if self.expression is None or not self._names:
            return list(range(len(of_file)))
        rests = map(self.rest, range(self._partitions.num_combinations))
        kept = np.array([not isinstance(rest, Known) or rest.value is True for rest in rests], np.bool_)
        return [int(k) for k in np.flatnonzero(kept[of_file])] if len(of_file) else []

    def rest(self, combination: int) -> Expression:
        """The part of the filter that is left for files with this combination of partition values."""
        found = self._rest.get(combination)
        if found is None:
            if self.expression is None:
                found = Known(True)
            elif not self.asks_partitions:
                found = self.expression
            else:
                found = simplified(self.expression, lambda test: self._look(test, combination))
            self._rest[combination] = found
        return found

    def by_rest(self, numbers: npt.NDArray[np.int64]) -> Iterator[tuple[Expression, Mask]]:
        """What partitions leave of the filter, and a mask of the files among ``numbers`` for which they leave it."""
        if not self.asks_partitions:
            yield self.rest(0), np.ones(len(numbers), np.bool_)
            return
        combinations = self._partitions.of_file[numbers]
        alike: dict[Any, tuple[Expression, list[int]]] = {}
        for combination in np.unique(combinations).tolist():
            rest = self.rest(combination)
            alike.setdefault(rest.value if isinstance(rest, Known) else id(rest), (rest, []))[1].append(combination)
        for rest, same in alike.values():
            yield rest, np.isin(combinations, same)

    def _own(self, test: Expression) -> list[bool]:
        """For each column that a test looks at, whether it is a partition column."""
        return [self._is_partition(path) for path in tested_paths(test)]

    def _is_partition(self, path: Any) -> bool:
        return self._key(path[0] if isinstance(path, tuple) and len(path) == 1 else path) in self._names

    def _key(self, name: Any) -> Any:
        return name if self._case_sensitive or not isinstance(name, str) else name.lower()

    def _look(self, test: Expression, combination: int) -> Expression:
        own = self._own(test)
        if self._tree is None or not any(own):
            return test
        if not all(own):
            return self._with_values(test, combination, self._tree)
        _, true, false = self._answered(test, self._tree)
        return Known(True if true[combination] else False if false[combination] else None)

    def _with_values(self, test: Expression, combination: int, tree: SchemaTree) -> Expression:
        """A test of partition columns and columns of files, with the values of the former."""
        values: dict[Any, Any] = {}
        for path in filter(self._is_partition, tested_paths(test)):
            column = self._partitions.columns[tree.find(path).column]
            values[path] = take(column, np.array([combination])).to_pylist()[0]
        if None in values.values():
            return _of_missing(test)
        return test._replaced(lambda ref: Literal(values[ref.path]) if ref.path in values else ref)  # type: ignore[no-any-return]

    def _answered(self, test: Expression, tree: SchemaTree) -> tuple[Expression, Mask, Mask]:
        found = self._answers.get(id(test))
        if found is None:
            pairs = zip(tree.leaves, self._partitions.columns, strict=True)
            columns = {leaf.column: _as_stored(leaf, column) for leaf, column in pairs}
            count = self._partitions.num_combinations
            true, false = (evaluate_rows(bind(t, tree), columns, count) for t in (test, Not(test)))
            found = self._answers[id(test)] = test, true, false
        return found


def _as_stored(leaf: Node, column: Column) -> Column:
    """Partition values as a leaf of their type stores them: files have no seconds, no date64 and no views."""
    column = normalize(column, leaf.name)
    same = column.type.kind not in ("date", "timestamp", "time") or column.type == leaf.arrow_type
    return column if same else cast(column, leaf.arrow_type, leaf.name)


def _in_file(test: Expression, projection: Projection, file: OpenFile, columns: _Counterparts) -> Expression:
    """A test on a column of the dataset as a test on the file's column."""
    paths = {path: _path_in_file(path, projection.tree, columns) for path in tested_paths(test)}
    if None in paths.values():
        return _of_missing(test)
    copy: Expression = moved(test, lambda path: paths[path])  # type: ignore[arg-type, return-value]
    if isinstance(copy, expression.ValueTest) and copy.path is None:
        for path, own in paths.items():
            if variant_path(projection.tree, path) is not None:
                continue  # each kind of value is one of its own in every file
            wanted, leaf = projection.tree.find(path), file.tree.find(own)  # type: ignore[arg-type]
            check_computed(wanted, projection.shown(wanted), leaf, file.fields.shown(leaf))
        return copy
    if (
        not isinstance(test, (expression.Compare, expression.Contains, IsIn, expression.IsNan))
        or variant_path(projection.tree, test.path) is not None
    ):
        return copy
    wanted, leaf = tested_leaf(projection.tree, test), tested_leaf(file.tree, copy)
    return for_leaf(copy, wanted, projection.shown(wanted), leaf, file.fields.shown(leaf))


def _of_missing(test: Expression) -> Known:
    """The test where a column is missing or null."""
    if isinstance(test, expression.IsNull):
        return Known(True)
    return Known(False) if isinstance(test, IsIn) and not len(test.values) else Known(None)


def _path_in_file(path: Path, tree: SchemaTree, columns: _Counterparts) -> tuple[str, ...] | None:
    """The same place in a file. ``None`` if the file does not have it."""
    place = variant_path(tree, path)
    if place is None:
        return columns.path(tree.find(path))
    variant = columns.path(place.variant)
    return None if variant is None else (*variant, *place.names)


class _Counterparts:
    """Maps columns of a dataset to columns of a file."""

    def __init__(self, dataset: SchemaTree, tree: SchemaTree, by: Matching) -> None:
        self._root, self._by = dataset.root, by
        have = tree.root.children
        places = by.places(of_nodes(self._root.children), of_nodes(have))
        self._of_top = {top: have[k] for top, k in zip(self._root.children, places, strict=True) if k is not None}

    def path(self, node: Node) -> tuple[str, ...] | None:
        """The path in the file of the dataset's ``node``. ``None`` if the file does not have it."""
        top = node
        while top.parent is not None and top.parent is not self._root:
            top = top.parent
        found = self._of_top.get(top)
        if found is None or _has_no_type(found):
            return None
        shape = shape_of(top)
        ends = {id(have.node): other.node for have, other in _pairs(shape, shape_of(found), self._by)}
        if id(node) in ends:
            end = ends[id(node)]
            return None if _has_no_type(end) else end.path
        # A group that only wraps the items of a list exists in every file. Other groups may be missing in this one.
        return None if id(node) in {id(part.node) for part in _all(shape)} else node.path


def _has_no_type(node: Node) -> bool:
    """Whether a column has no type but null, so that it is as good as missing."""
    return node.is_leaf and node.type.kind == "null"


def _all(shape: Shape) -> Iterator[Shape]:
    yield shape
    for child in shape.children:
        yield from _all(child)


def _pairs(shape: Shape, other: Shape, by: Matching) -> list[tuple[Shape, Shape]]:
    """Pairs of positions: a column in the dataset, and the same column in the file."""
    found = [(shape, other)]
    if shape.kind != other.kind:
        return found
    if shape.kind == "struct":
        wanted, have = ([child.node for child in parent.children] for parent in (shape, other))
        for child, k in zip(shape.children, by.places(of_nodes(wanted), of_nodes(have)), strict=True):
            found += [] if k is None else _pairs(child, other.children[k], by)
    else:
        for child, match in zip(shape.children, other.children, strict=True):
            found += _pairs(child, match, by)
    return found
