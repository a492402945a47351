"""A dataset's filter: what partition values decide of it, and what is left for the columns of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.datasets.partitions import Partitions
from pyparq.datasets.project import Projection
from pyparq.filters.bind import bind
from pyparq.filters.durations import counted
from pyparq.filters.expression import Expression, IsIn, IsNull, Known, Not
from pyparq.filters.known import simplified
from pyparq.filters.rows import evaluate_rows
from pyparq.footers.open_file import OpenFile
from pyparq.schemas.arrow import elements_from_schema
from pyparq.schemas.durations import may_be_duration
from pyparq.schemas.shape import Shape, shape_of
from pyparq.schemas.tree import Node, SchemaTree, build_tree
from pyparq.schemas.types import Schema

Mask = npt.NDArray[np.bool_]


class FilterParts:
    """One filter for all files. Each test on a partition column is answered once for all values that occur."""

    def __init__(self, expression: Expression | None, partitions: Partitions) -> None:
        self.expression = expression
        self._partitions = partitions
        self._names = set(partitions.names)
        self._tree = build_tree(elements_from_schema(Schema(partitions.fields))) if partitions.fields else None
        self._answers: dict[int, tuple[Expression, Mask, Mask]] = {}
        self._rest: dict[int, Expression] = {}
        self._asks_partitions = bool(self._names) and expression is not None and self._mentions(expression)

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
        """The filter for files of one combination of partition values."""
        found = self._rest.get(combination)
        if found is None:
            if self.expression is None:
                found = Known(True)
            elif not self._asks_partitions:
                found = self.expression
            else:
                found = simplified(self.expression, lambda test: self._look(test, combination))
            self._rest[combination] = found
        return found

    def for_file(self, rest: Expression, projection: Projection, file: OpenFile, by: str) -> Expression:
        """What is left of the filter, with the names that the columns have in a file; columns that it does not have are
        null."""
        return rest if isinstance(rest, Known) else simplified(rest, lambda test: _in_file(test, projection, file, by))

    def _mentions(self, expression: Expression) -> bool:
        """Whether any test is one of a partition column."""
        found = []
        simplified(expression, lambda test: found.append(self._name(test) in self._names) or test)  # type: ignore[func-returns-value]
        return any(found)

    def _name(self, test: Expression) -> Any:
        path = getattr(test, "path", None)
        return path[0] if isinstance(path, tuple) and len(path) == 1 else path

    def _look(self, test: Expression, combination: int) -> Expression:
        if self._tree is None or self._name(test) not in self._names:
            return test
        _, true, false = self._answered(test, self._tree)
        return Known(True if true[combination] else False if false[combination] else None)

    def _answered(self, test: Expression, tree: SchemaTree) -> tuple[Expression, Mask, Mask]:
        found = self._answers.get(id(test))
        if found is None:
            columns, count = dict(enumerate(self._partitions.columns)), self._partitions.num_combinations
            true, false = (evaluate_rows(bind(t, tree), columns, count) for t in (test, Not(test)))
            found = self._answers[id(test)] = test, true, false
        return found


def _in_file(test: Expression, projection: Projection, file: OpenFile, by: str) -> Expression:
    """A test on a column of the dataset as one on the file's column."""
    node = projection.tree.find(test.path)  # type: ignore[attr-defined]
    path = _path_in(node, projection.tree, file.tree, by)
    if path is None:
        if isinstance(test, IsNull):
            return Known(True)
        return Known(False) if isinstance(test, IsIn) and not len(test.values) else Known(None)
    copy = object.__new__(type(test))
    slots: tuple[str, ...] = type(test).__slots__
    for name in slots:
        setattr(copy, name, getattr(test, name))
    copy.path = path  # type: ignore[attr-defined]
    unit = projection.duration_unit(node)
    leaf = file.tree.find(path) if unit else node
    if unit and may_be_duration(leaf) and not file.fields.duration_unit(leaf):
        return counted(copy, leaf, unit)  # the dataset's schema alone says that these integers are durations
    return copy


def _path_in(node: Node, dataset: SchemaTree, tree: SchemaTree, by: str) -> tuple[str, ...] | None:
    """The path in a file's tree of what ``node`` is in the dataset's; ``None`` where the file does not have it."""
    top = node
    while top.parent is not None and top.parent is not dataset.root:
        top = top.parent
    found = next((child for child in tree.root.children if _same(child, top, by)), None)
    if found is None:
        return None
    shape = shape_of(top)
    ends = {id(have.node): other.node.path for have, other in _pairs(shape, shape_of(found), by)}
    if id(node) in ends:
        return ends[id(node)]
    # A group that only frames the items of a list has its place in every file; others are missing in this one.
    return None if id(node) in {id(part.node) for part in _all(shape)} else node.path


def _all(shape: Shape) -> Iterator[Shape]:
    yield shape
    for child in shape.children:
        yield from _all(child)


def _pairs(shape: Shape, other: Shape, by: str) -> list[tuple[Shape, Shape]]:
    """The positions of a column in the dataset with those of the file's column."""
    found = [(shape, other)]
    if shape.kind != other.kind:
        return found
    if shape.kind == "struct":
        for child in shape.children:
            match = next((o for o in other.children if _same(o.node, child.node, by)), None)
            found += _pairs(child, match, by) if match is not None else []
    else:
        for child, match in zip(shape.children, other.children, strict=True):
            found += _pairs(child, match, by)
    return found


def _same(node: Node, other: Node, by: str) -> bool:
    if by == "field_id" and node.element.field_id is not None and other.element.field_id is not None:
        return bool(node.element.field_id == other.element.field_id)
    return node.name == other.name
