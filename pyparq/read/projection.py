"""From the names a user asked for to the leaves to read and the fields to return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np

from pyparq.column_names import NOT_COMPUTED, as_list
from pyparq.errors import ColumnNotFoundError, OptionError, UnsupportedError
from pyparq.filters import expression as expressions
from pyparq.filters import given as given_filters
from pyparq.filters import variants
from pyparq.format.schema_node import LeafNumber, Node, Shape, shape_of
from pyparq.format.schema_tree import SchemaTree
from pyparq.index.row_ranges import Int64Array, RowRanges
from pyparq.read.footers.schemas import FileFields, Output, Projection


def row_numbers(rows: Any, num_rows: int) -> slice | Int64Array:
    """``rows`` checked against a file of ``num_rows`` rows. Returns a slice of step 1, or int64 row numbers in the
    given order.

    A slice follows Python's rules (negative ends count from the back). Row numbers must exist. Raises
    :class:`OptionError`.
    """
    if isinstance(rows, slice):
        try:
            start, stop, step = rows.indices(num_rows)
        except (TypeError, ValueError) as error:
            raise OptionError(f"rows has an invalid slice {rows!r}: {error}") from None
        return slice(start, max(stop, start)) if step == 1 else np.arange(start, stop, step, dtype=np.int64)
    if isinstance(rows, range) and rows.step == 1 and len(rows) and rows.start >= 0 and rows.stop <= num_rows:
        return slice(rows.start, rows.stop)
    try:
        numbers = np.asarray(rows)
    except (TypeError, ValueError) as error:
        raise OptionError(f"rows must be a slice or a list of row numbers: {error}") from None
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        raise OptionError(f"rows must be a slice or a list of row numbers, not {_shown(rows)}")
    for bad in (int(numbers.min()), int(numbers.max())) if len(numbers) else ():
        if not 0 <= bad < num_rows:
            raise OptionError(f"row {bad} does not exist: the file has {num_rows} rows, numbered from 0")
    return numbers.astype(np.int64)


def random_rows(count: int, num_rows: int, seed: int | None) -> Int64Array:
    """Numbers of ``count`` of ``num_rows`` rows (all, if there are fewer), chosen at random, rising. Every choice is
    equally likely. The same seed gives the same rows."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise OptionError(f"num_rows must be a whole number of at least 0, not {count!r}")
    chosen = Random(seed).sample(range(num_rows), min(count, num_rows))
    return np.sort(np.array(chosen, np.int64))


def _shown(rows: Any) -> str:
    text = repr(rows)
    return text if len(text) <= 60 else f"{text[:57]}..."


def ranges_by_group(rows: slice | Int64Array, counts: Sequence[int]) -> dict[int, RowRanges]:
    """The rows of each row group. Row group ``k`` has ``counts[k]`` rows. Row groups without any of the rows are left
    out. Row numbers must rise."""
    ends = np.cumsum(counts, dtype=np.int64)
    found: dict[int, RowRanges] = {}
    for k, (count, end) in enumerate(zip(counts, ends.tolist(), strict=True)):
        first = end - count
        if isinstance(rows, slice):
            start, stop = max(rows.start - first, 0), min(rows.stop - first, count)
            inside = RowRanges.of([(start, stop)] if start < stop else [], count)
        else:
            a, b = np.searchsorted(rows, (first, end))
            inside = RowRanges.from_rows(rows[a:b] - first, count)
        if inside:
            found[k] = inside
    return found


def project(tree: SchemaTree, columns: Iterable[Any] | None, fields: FileFields) -> Projection:
    """The columns of the result: all, or the named ones in the order of the names. A repeated name counts once.

    A name is a top-level column or a path into one, dotted or as a tuple (:meth:`SchemaTree.find`). A number is a
    top-level column. Several paths into one column give one column with those leaves only. Raises
    :class:`ColumnNotFoundError` with near matches, and :class:`UnsupportedError` for a column with a group that has no
    fields.
    """
    if columns is not None:
        return _checked([_output(node, leaves, fields) for node, leaves in named(tree, columns).items()], fields)
    if fields.projection is None:
        fields.projection = _checked([fields.whole(node) for node in tree.root.children], fields)
    return fields.projection


def _checked(outputs: list[Output], fields: FileFields) -> Projection:
    for output in outputs:
        if output.shape.kind != "leaf":
            _check_filled(output.shape)
    return Projection(outputs, fields)


def _check_filled(shape: Shape) -> None:
    if shape.kind == "struct" and not shape.children:
        raise UnsupportedError(
            "the group has no fields, so the file does not store in which rows it is null; read the other columns",
            column=shape.node.dotted,
        )
    for child in shape.children:
        _check_filled(child)


def named(tree: SchemaTree, columns: Iterable[Any]) -> dict[Node, set[int] | None]:
    """The top-level nodes of the named columns, with the leaves wanted of each (``None``: all)."""
    if _is_filter(columns):
        raise OptionError(f"columns must be a list of names; {columns!r} is a filter: give it as filters=...")
    wanted: dict[Node, set[int] | None] = {}
    for name in as_list(columns):
        if isinstance(name, LeafNumber):
            node = tree.leaves[name]
        elif isinstance(name, int) and not isinstance(name, bool):
            if not 0 <= name < len(tree.root.children):
                raise ColumnNotFoundError(f"there is no column {name}: there are {len(tree.root.children)}, from 0 on")
            node = tree.root.children[name]
        elif isinstance(name, (str, tuple)):
            node = _found(tree, name)
        else:
            raise OptionError(
                f"columns must be a list of names or numbers, but {name!r} is neither; use {NOT_COMPUTED}"
            )
        top = node
        while top.parent is not tree.root and top.parent is not None:
            top = top.parent
        leaves = {leaf.column for leaf in node.leaves()}
        before = wanted.get(top, set())
        wanted[top] = None if node is top or before is None else before | leaves
    return wanted


def _found(tree: SchemaTree, name: Any) -> Node:
    place = variants.variant_path(tree, name)
    if place is not None:
        raise ColumnNotFoundError(
            f"{place.name!r} is a path into the Variant {place.variant.dotted!r}, and results have whole Variants: "
            f"ask for {place.variant.dotted!r}. Filters take such paths"
        )
    return tree.find(name)


def _is_filter(given: Any) -> bool:
    """Whether a condition was given in the place of columns."""
    if isinstance(given, expressions.Expression):
        return True
    tests = [item for item in given if isinstance(item, tuple)] if isinstance(given, (list, tuple)) else []
    return any(len(test) == 3 and test[1] in given_filters.TUPLE_OPERATORS for test in tests)


def _output(node: Node, columns: set[int] | None, fields: FileFields) -> Output:
    if columns is None:
        return fields.whole(node)
    shape = shape_of(node)
    columns = columns | _whole_maps(shape, columns)
    stored = fields.stored(shape, columns)
    assert stored is not None, "a column without leaves"
    leaves = tuple(leaf for leaf in node.leaves() if leaf.column in columns)
    return Output(shape, stored, leaves, fields.result(stored, shape))


def _whole_maps(shape: Shape, columns: set[int]) -> set[int]:
    """All leaves of every map that ``columns`` lead into: a map needs both its keys and its values."""
    below = {leaf.node.column for leaf in shape.leaves()}
    if shape.kind == "map":
        return below if below & columns else set()
    return {column for child in shape.children for column in _whole_maps(child, columns)}
