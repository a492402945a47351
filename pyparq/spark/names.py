"""Names of columns as Spark tells them apart: by default without regard to case."""

from __future__ import annotations

from copy import copy
from typing import Any

from pyparq.datasets.dataset import Dataset
from pyparq.errors import ColumnNotFoundError, OptionError
from pyparq.filters.dnf import parse_filters
from pyparq.filters.expression import AllOf, AnyOf, Expression, IsNan, IsNull, Not
from pyparq.schemas.tree import SchemaTree


class Names:
    """The names of a dataset's columns, as a question may spell them (``spark.sql.caseSensitive``)."""

    def __init__(self, dataset: Dataset, case_sensitive: bool) -> None:
        self._dataset = dataset
        self._exact = case_sensitive
        self._made: SchemaTree | None = None

    def columns(self, given: Any) -> Any:
        """``given`` as the dataset spells it."""
        if given is None or self._exact:
            return given
        return [self._spelled(name) for name in ([given] if isinstance(given, str) else given)]

    def filters(self, given: Any) -> Expression | None:
        """The filter as Spark means it, with the names that the dataset has."""
        expression = parse_filters(given)
        return None if expression is None else self._changed(expression)

    def _changed(self, expression: Expression) -> Expression:
        changed = copy(expression)
        if isinstance(expression, (AllOf, AnyOf)):
            changed.children = tuple(map(self._changed, expression.children))  # type: ignore[attr-defined]
        elif isinstance(expression, Not):
            changed.child = self._changed(expression.child)  # type: ignore[attr-defined]
        elif hasattr(expression, "path"):
            changed.path = self._spelled(expression.path)  # type: ignore[attr-defined]
        if isinstance(changed, IsNan):
            return AllOf((changed, Not(IsNull(changed.path))))  # isnan(null) is false in Spark, elsewhere unknown
        return changed

    def _spelled(self, name: Any) -> Any:
        """The column called ``name``; where none is, the only one whose name differs by case alone."""
        if self._exact:
            return name
        if self._made is None:
            self._made = self._dataset.tree
        try:
            self._made.find(name)
            return name
        except ColumnNotFoundError:
            return self._by_folded_case(self._made, name)

    def _by_folded_case(self, tree: SchemaTree, name: Any) -> Any:
        parts = name if isinstance(name, tuple) else tuple(name.split("."))
        if not isinstance(name, tuple):
            whole = [node.path for node in tree.root.children if node.name.lower() == name.lower()]
            if whole:
                return self._only(name, whole)
        nodes = [tree.root]
        for part in parts:
            nodes = [child for node in nodes for child in node.children if child.name.lower() == part.lower()]
        return self._only(name, [node.path for node in nodes]) if nodes else name

    @staticmethod
    def _only(name: Any, found: list[Any]) -> Any:
        if len(found) > 1:
            listed = ", ".join(".".join(path) for path in found)
            raise OptionError(
                f"the name {name!r} is ambiguous: {listed}. Spell it as the file does, or set spark.sql.caseSensitive"
            )
        return found[0]
