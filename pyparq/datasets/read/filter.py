"""A dataset's filter, split into the part that partition values answer and the part for the columns of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import take
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.plain_layouts import normalize
from pyparq.datasets.partitions import Partitions
from pyparq.datasets.read.column_matching import Matching, of_nodes
from pyparq.datasets.read.projection import Projection
from pyparq.datasets.read.schema_tree import tree_of
from pyparq.filters.bind import bind, tested_leaf
from pyparq.filters.expression import (
    Compare,
    Contains,
    Expression,
    IsIn,
    IsNan,
    IsNull,
    Known,
    Literal,
    Not,
    Path,
    ValueTest,
    moved,
    simplified,
    tested_paths,
)
from pyparq.filters.predicate import evaluate_rows
from pyparq.filters.shown import check_computed, for_leaf
from pyparq.filters.variants import variant_path
from pyparq.format.nesting import Shape, shape_of
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree
from pyparq.format.types import Schema
from pyparq.read.footers.open_file import OpenFile

Mask = npt.NDArray[np.bool_]


class FilterParts:
    """One filter for all files. Each test on a partition column is answered once for all values that occur."""

    def __init__(self, expression: Expression | None, partitions: Partitions, case_sensitive: bool = True) -> None:
        self.expression = expression
        self._partitions = partitions
        self._case_sensitive = case_sensitive
        self._names = {self._key(name) for name in partitions.names}
        fields = partitions.fields
        self._tree = tree_of(Schema(fields), case_sensitive=case_sensitive) if fields else None
        self._answers: dict[int, tuple[Expression, Mask, Mask]] = {}
        self._rest: dict[int, Expression] = {}
        self.asks_partitions = bool(self._names) and expression is not None and self._mentions(expression)
        """Whether the filter names a partition column."""

    def files_left(self) -> list[int]:
        """Numbers of the files that the partitions do not rule out."""
        of_file = self._partitions.of_file
        if self.expression is None or not self._names:
            return list(range(len(of_file)))
        kept = np.array([self._may_match(k) for k in range(self._partitions.num_combinations)], np.bool_)
        return [int(k) for k in np.flatnonzero(kept[of_file])] if len(of_file) else []

    def _may_match(self, combination: int) -> bool:
        rest = self.rest(combination)
        return not isinstance(rest, Known) or rest.value is True

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

    def for_file(self, rest: Expression, projection: Projection, file: OpenFile, by: Matching) -> Expression:
        """The part of the filter that is left, with the file's names of the columns. Missing columns are null."""
        if isinstance(rest, Known):
            return rest
        columns = _Counterparts(projection.tree, file.tree, by)
        return simplified(rest, lambda test: _in_file(test, projection, file, columns))

    def _mentions(self, expression: Expression) -> bool:
        """Whether any test is one of a partition column."""
        found = []
        simplified(expression, lambda test: found.extend(self._own(test)) or test)  # type: ignore[func-returns-value]
        return any(found)

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
    if isinstance(copy, ValueTest) and copy.path is None:
        for path, own in paths.items():
            if variant_path(projection.tree, path) is not None:
                continue  # each kind of value is one of its own in every file
            wanted, leaf = projection.tree.find(path), file.tree.find(own)  # type: ignore[arg-type]
            check_computed(wanted, projection.shown(wanted), leaf, file.fields.shown(leaf))
        return copy
    if not isinstance(test, (Compare, Contains, IsIn, IsNan)) or variant_path(projection.tree, test.path) is not None:
        return copy
    wanted, leaf = tested_leaf(projection.tree, test), tested_leaf(file.tree, copy)
    return for_leaf(copy, wanted, projection.shown(wanted), leaf, file.fields.shown(leaf))


def _of_missing(test: Expression) -> Known:
    """The test where a column is missing or null."""
    if isinstance(test, IsNull):
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
