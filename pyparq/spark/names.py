"""Names of columns, compared as Spark compares them: by default without regard to case."""

from __future__ import annotations

from typing import Any

from pyparq.column_names import ColumnName
from pyparq.datasets.dataset import Dataset
from pyparq.errors import ColumnNotFoundError, OptionError, UnsupportedError
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    Compare,
    Contains,
    Expression,
    IsIn,
    IsNan,
    IsNull,
    Not,
    ValueTest,
    moved,
    tested_paths,
)
from pyparq.filters.given import parse_filters
from pyparq.filters.leaf_binding import items_leaf
from pyparq.filters.literal import interpreted
from pyparq.filters.shown import meaning
from pyparq.format.schema_node import Node, shown_field
from pyparq.format.schema_tree import SchemaTree
from pyparq.spark.literals import in_zone
from pyparq.spark.stored import collated_columns


class Names:
    """The names of a dataset's columns, as a question may spell them (``spark.sql.caseSensitive``).

    ``zone``: the session's, for points in time in filters; ``""``: it is not known; ``None``: they say theirs.
    """

    def __init__(self, dataset: Dataset, case_sensitive: bool, zone: str | None) -> None:
        self._dataset = dataset
        self._exact = case_sensitive
        self._zone = zone
        self._made: SchemaTree | None = None
        self._collated: frozenset[str] | None = None

    @property
    def tree(self) -> SchemaTree:
        """The columns of the dataset, which are found here by the names that a question may give them."""
        if self._made is None:
            tree = self._dataset.tree
            self._made = tree if self._exact else AnyCase(tree.root, tree.leaves)
        return self._made

    def columns(self, given: Any) -> Any:
        """``given`` as the dataset spells it."""
        if given is None or self._exact:
            return given
        return [self._spelled(name) for name in ([given] if isinstance(given, str) else given)]

    def filters(self, given: Any) -> Expression | None:
        """The filter as Spark means it, with the names that the dataset has."""
        expression = parse_filters(given)
        return None if expression is None else self._changed(expression)

    def _changed(self, expression: Expression, negated: bool = False) -> Expression:
        """``negated``: under an odd number of NOT."""
        if isinstance(expression, (AllOf, AnyOf)):
            return type(expression)(tuple(self._changed(child, negated) for child in expression.children))
        if isinstance(expression, Not):
            return Not(self._changed(expression.child, not negated))
        if not isinstance(expression, ValueTest):
            return expression
        changed: ValueTest = moved(expression, self._spelled)
        if changed.path is None or not isinstance(changed, IsNull):
            for path in tested_paths(changed):
                self._check_plain(path)
        if changed.path is not None:
            changed = self._as_text(self._in_zone(changed, changed.path))
        if isinstance(changed, Contains) and negated and changed.item is not None:
            # In Spark it is unknown whether a list with nulls has what is not found in it.
            return AnyOf((changed, Contains(changed.value, None)))
        if isinstance(changed, IsNan):
            return AllOf((changed, Not(IsNull(changed.value))))  # isnan(null) is false in Spark, elsewhere unknown
        return changed

    def _check_plain(self, path: Any) -> None:
        """Raise :class:`UnsupportedError` for a comparison of text that Spark makes by a collation."""
        if self._collated is None:
            self._collated = collated_columns(self._dataset.schema)
        if not self._collated:
            return
        name = self.tree.find(path).path[0]
        if name in self._collated:
            raise UnsupportedError(
                "Spark compares this text by a collation, which pyparq does not know: apply the filter to the "
                "DataFrame, df.where(…)",
                column=name,
            )

    def _in_zone(self, test: Any, path: Any) -> Any:
        """The test with points in time that need no zone."""
        if self._zone is None or not isinstance(test, (Compare, Contains, IsIn)):
            return test
        tree = self.tree
        node = items_leaf(tree, path) if isinstance(test, Contains) else tree.find(path)
        return in_zone(test, node.type, self._zone) if node.is_leaf else test

    def _as_text(self, test: Any) -> Any:
        """The test, for categories with an order: Spark has none and shows their text, so that is compared."""
        if not isinstance(test, Compare):
            return test
        tree = self.tree
        leaf = tree.find(test.path)
        if meaning(shown_field(leaf, tree.root.children, self._dataset.schema.fields)) != "ordered":
            return test
        return test.with_literals(lambda value: interpreted(leaf.type, value, leaf.dotted))

    def _spelled(self, name: Any) -> Any:
        """The column called ``name``; where none is, the only one whose name differs by case alone."""
        if self._exact:
            return name
        tree = self.tree
        return tree.spelled(name) if isinstance(tree, AnyCase) else name


class AnyCase(SchemaTree):
    """Columns that are found without regard to case where no name fits exactly."""

    def find(self, name: ColumnName) -> Node:
        return super().find(self.spelled(name))

    def spelled(self, name: ColumnName) -> ColumnName:
        """The name as the tree has it; a name that it does not have stays as it is.

        Raises :class:`OptionError` for one that several columns have but for case.
        """
        try:
            super().find(name)
            if isinstance(name, str) and any(child.name == name for child in self.root.children):
                return (name,)  # a tuple means this column, where others differ by case
            return name
        except ColumnNotFoundError:
            return self._by_folded_case(name)

    def _by_folded_case(self, name: ColumnName) -> ColumnName:
        parts = name.split(".") if isinstance(name, str) else name
        if isinstance(name, str):
            whole = [node.path for node in self.root.children if node.name.lower() == name.lower()]
            if whole:
                return _only(name, whole)
        nodes = [self.root]
        for part in parts:
            nodes = [child for node in nodes for child in node.children if child.name.lower() == part.lower()]
        return _only(name, [node.path for node in nodes]) if nodes else name


def _only(name: ColumnName, found: list[tuple[str, ...]]) -> ColumnName:
    if len(found) > 1:
        listed = ", ".join(".".join(path) for path in found)
        raise OptionError(
            f"the name {name!r} is ambiguous: {listed}. Spell it as the file does, or set spark.sql.caseSensitive"
        )
    return found[0]
