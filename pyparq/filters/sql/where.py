"""``--where``: converts an SQL condition to a filter expression.

sqlglot parses the condition. Each kind of node that is understood is listed here, with every part that it may carry.
Anything else is refused by name, so that no condition is half understood. Literals are read in the type of the column
they are compared with. Beside a FLOAT column, ``0.1`` is the float that prints as 0.1. Beside a DECIMAL column it is
the exact number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import sqlglot
from sqlglot import expressions as sql
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters.bind import items_leaf
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    ColumnRef,
    Compare,
    Expression,
    IsIn,
    IsNan,
    IsNull,
    Matches,
    Not,
    Value,
)
from pyparq.filters.sql.computed import computed, is_computed, literal
from pyparq.filters.sql.intervals import kept_whole
from pyparq.filters.sql.parts import (
    DIALECT,
    bare,
    is_column,
    only,
    parts_of,
    shown,
    special_float,
    text_of,
    unsupported,
    value_of,
)
from pyparq.filters.variants import named_node
from pyparq.format.schema_node import Node
from pyparq.format.schema_tree import SchemaTree

_COMPARISONS: dict[type, str] = {
    sql.EQ: "==", sql.NEQ: "!=", sql.LT: "<", sql.LTE: "<=", sql.GT: ">", sql.GTE: ">=",
}  # fmt: skip
_TEXT_TESTS = {"regexp_matches": "matches", "suffix": "ends_with", "prefix": "starts_with"}
"""DuckDB's names."""
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse_where(text: str, tree: SchemaTree) -> Expression:
    """The filter expression of an SQL condition on the columns of ``tree``.

    Raises :class:`FilterError` naming what is not SQL or not supported, :class:`ColumnNotFoundError` for an unknown
    column.
    """
    try:
        return _Builder(tree).condition(_parsed(text, tree))
    except sqlglot.errors.SqlglotError as error:
        raise FilterError(f"the condition cannot be parsed: {_reason(error, text, tree)}") from None
    except RecursionError:
        raise FilterError("the condition is nested too deeply") from None


def _parsed(text: str, tree: SchemaTree) -> Any:
    """The parsed condition. Columns with the names of SQL keywords need no quotes where the meaning is clear."""
    text = kept_whole(text, DIALECT)
    try:
        return sqlglot.parse_one(text, read=DIALECT)
    except sqlglot.errors.ParseError:
        quoted = text
        for word in reversed(_keywords(text, tree)):
            if word.text.upper() not in _OURS:
                quoted = f'{quoted[: word.start]}"{word.text}"{quoted[word.end + 1 :]}'
        if quoted == text:
            raise
        with suppress(sqlglot.errors.SqlglotError):
            return sqlglot.parse_one(quoted, read=DIALECT)
        raise


_OURS = {"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "LIKE", "ESCAPE", "ANY", "NAN"}
"""Words that a condition is made of."""


def _keywords(text: str, tree: SchemaTree) -> list[Any]:
    """The names of columns in the text that are unquoted SQL keywords."""
    plain = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
    same: Callable[[str], str] = str if tree.case_sensitive else str.lower
    names = {same(part) for leaf in tree.leaves for part in leaf.path}
    return [t for t in sqlglot.tokenize(text, read=DIALECT) if t.token_type not in plain and same(t.text) in names]


def _reason(error: Exception, text: str, tree: SchemaTree) -> str:
    text = text.strip()
    if not text:
        return "it is empty"
    if isinstance(error, sqlglot.errors.TokenError) or text.count("'") % 2 or text.count('"') % 2:
        return (
            "a quote is not closed. Write text as 'Lima' (double a quote inside: 'O''Higgins') and a name as \"order\""
        )
    if text[0] == text[-1] and text[0] in "\"'" and any(c in text[1:-1] for c in "=<>"):
        return "the whole condition is in quotes: remove them. Write text as 'Lima' and a name as \"order\""
    if "`" in text:
        return "a backtick is not a quote here. Write text as 'Lima' and a name as \"order\""
    if text.split()[0].upper() == "WHERE":
        return "leave out the word WHERE"
    words = _keywords(text, tree)
    if words:
        return f'{words[0].text} is an SQL keyword: write the column as "{words[0].text}", in double quotes'
    details = getattr(error, "errors", None)
    if not details:
        return str(error)
    where = details[0].get("highlight") or ""
    near = f" at {where!r} (column {details[0].get('col')})" if where else ""
    said = str(details[0].get("description", "syntax error")).split(" for <class")[0].split(" but got <")[0].rstrip(".")
    if said.startswith("Required keyword"):
        said = "something is missing"
    return f"{said}{near}; a condition looks like city = 'Lima' AND price > 0.5"


class _Builder:
    """Turns parsed SQL into expressions over one schema."""

    def __init__(self, tree: SchemaTree) -> None:
        self._tree = tree

    # ---- conditions

    def condition(self, node: Any) -> Expression:
        """An expression that is true, false or unknown for each row."""
        handler = self._handler(node)
        return handler(node)

    def _handler(self, node: Any) -> Callable[[Any], Expression]:
        if type(node) in _COMPARISONS:
            return self._comparison
        handlers: dict[type, Callable[[Any], Expression]] = {
            sql.And: self._junction, sql.Or: self._junction, sql.Not: self._not, sql.Paren: self._paren,
            sql.In: self._in, sql.Between: self._between, sql.Is: self._is, sql.Like: self._like,
            sql.Escape: self._like, sql.IsNan: self._isnan, sql.StartsWith: self._starts_with,
            sql.ILike: self._like, sql.RegexpLike: self._matches, sql.EndsWith: self._matches,
            sql.Contains: self._matches, sql.ArrayContains: self._array_contains, sql.Anonymous: self._function,
            sql.Column: self._bare_column, sql.Dot: self._bare_column,
        }  # fmt: skip
        return handlers.get(type(node), self._refuse)

    def _refuse(self, node: Any) -> Expression:
        if isinstance(node, sql.Alias):
            raise FilterError(f"the condition has {node.alias!r} after {shown(node.this)}: is AND or OR missing?")
        if isinstance(node, sql.Literal) and node.is_string:
            raise unsupported(node, "the whole condition is in quotes: remove them")
        if isinstance(node, (sql.Literal, sql.Boolean, sql.Null)):
            raise unsupported(node, "a condition must compare a column with a value")
        if isinstance(node, sql.Select):
            raise unsupported(node, "subqueries are not supported. Write only the condition that follows WHERE")
        if isinstance(node, (sql.Exists, sql.Subquery)):
            raise unsupported(node, "subqueries are not supported. Write a condition on the columns of the file")
        raise unsupported(node)

    def _junction(self, node: Any) -> Expression:
        # A chain of ANDs leans left, as deep as it is long: walked in a loop.
        kind = type(node)
        operands: list[Any] = []
        while type(node) is kind:
            only(node, "this", "expression")
            operands.append(node.expression)
            node = node.this
        operands.append(node)
        children = tuple(self.condition(operand) for operand in reversed(operands))
        return AllOf(children) if kind is sql.And else AnyOf(children)

    def _not(self, node: Any) -> Expression:
        only(node, "this")
        return Not(self.condition(node.this))

    def _paren(self, node: Any) -> Expression:
        only(node, "this")
        return self.condition(node.this)

    def _comparison(self, node: Any) -> Expression:
        only(node, "this", "expression")
        op, left, right = _COMPARISONS[type(node)], bare(node.this), bare(node.expression)
        if op == "==" and isinstance(right, sql.Any):
            return self._contains(bare(right.this), left, node)
        if is_computed(left) or is_computed(right):
            return self._computed_comparison(node, op, left, right)
        if not is_column(left):
            left, right, op = right, left, _FLIPPED[op]
        if not is_column(left):
            raise unsupported(node, "one side must be a column and the other a value")
        if is_column(right) and special_float(right) is None:
            self._check_text(node, left, right)
            return Compare(self._column(left)[0], op, self._column(right)[0])
        ref, column = self._column(left)
        value = value_of(right, column)
        if value is None:
            raise unsupported(node, "a comparison with NULL is never true; write IS NULL or IS NOT NULL")
        return Compare(ref.path, op, value)

    def _computed_comparison(self, node: Any, op: str, left: Any, right: Any) -> Expression:
        if isinstance(left, sql.Null) or isinstance(right, sql.Null):
            raise unsupported(node, "a comparison with NULL is never true; write IS NULL or IS NOT NULL")
        return Compare(self._value(left), op, self._value(right))

    def _value(self, node: Any) -> Value:
        """A column, or what is computed from columns."""
        return computed(node, lambda column: self._column(column)[0])

    def _check_text(self, node: Any, left: Any, right: Any) -> None:
        """Raise an error for ``city = "Lima"``: double quotes mean a column name, and there is none with this name."""
        for value, other in ((right, left), (left, right)):
            parts = [str(part.this) for part in parts_of(value)]
            if not self._has(parts) and self._has([str(part.this) for part in parts_of(other)]):
                text = ".".join(parts).replace("'", "''")
                raise unsupported(node, f"no column is called {'.'.join(parts)}. Write the text as '{text}'")

    def _has(self, names: list[str]) -> bool:
        try:
            named_node(self._tree, ".".join(names))
        except ColumnNotFoundError:
            return False
        return True

    def _in(self, node: Any) -> Expression:
        if node.args.get("field") is not None:
            raise unsupported(node, "IN takes a list in brackets: IN (1, 2)")
        if node.args.get("query") is not None:
            raise unsupported(node, "IN takes a list of values, subqueries are not supported")
        only(node, "this", "expressions", "negate")
        if is_computed(node.this):
            items = [None if isinstance(bare(item), sql.Null) else literal(item) for item in node.expressions]
            return _negated(self._value(node.this).isin(items), node)
        ref, column = self._column(node.this)
        values = [value_of(bare(item), column) for item in node.expressions]
        return _negated(IsIn(ref.path, values), node)

    def _between(self, node: Any) -> Expression:
        only(node, "this", "low", "high", "negate")
        if any(is_computed(part) or is_column(bare(part)) for part in (node.args["low"], node.args["high"])) or (
            is_computed(node.this)
        ):
            low, high = (self._value(node.args[name]) for name in ("low", "high"))
            return _negated(self._value(node.this).between(low, high), node)
        ref, column = self._column(node.this)
        ends = [value_of(bare(node.args[name]), column) for name in ("low", "high")]
        if None in ends:
            raise unsupported(node, "BETWEEN takes two values, not NULL")
        return _negated(ref.between(*ends), node)

    def _is(self, node: Any) -> Expression:
        only(node, "this", "expression", "negate")
        what = node.expression
        if is_computed(node.this) and isinstance(what, sql.Null):
            return _negated(self._value(node.this).is_null(), node)
        ref, _ = self._column(node.this)
        found: Expression
        if isinstance(what, sql.Null):
            found = IsNull(ref.path)
        elif isinstance(what, sql.Boolean):
            # IS TRUE is never unknown.
            found = AllOf((Compare(ref.path, "==", bool(what.this)), Not(IsNull(ref.path))))
        elif isinstance(what, sql.Column) and special_float(what) == "nan":
            found = IsNan(ref.path)
        else:
            raise unsupported(node, "IS takes NULL, NAN, TRUE or FALSE")
        return _negated(found, node)

    def _isnan(self, node: Any) -> Expression:
        only(node, "this")
        return IsNan(self._column(node.this)[0].path)

    def _starts_with(self, node: Any) -> Expression:
        only(node, "this", "expression")
        return self._value(node.this).starts_with(text_of(node.expression, node))

    def _matches(self, node: Any) -> Expression:
        only(node, "this", "expression")
        kind = {sql.RegexpLike: "matches", sql.EndsWith: "ends_with", sql.Contains: "contains"}[type(node)]
        return Matches(self._value(node.this), kind, text_of(node.expression, node))

    def _array_contains(self, node: Any) -> Expression:
        only(node, "this", "expression")
        return self._contains(node.this, node.expression, node)

    def _function(self, node: Any) -> Expression:
        name = str(node.this).lower()
        if name in _TEXT_TESTS and len(node.expressions) == 2:
            value, pattern = node.expressions
            return Matches(self._value(value), _TEXT_TESTS[name], text_of(pattern, node))
        if name == "st_intersects_extent" and len(node.expressions) == 2:
            column, envelope = node.expressions
            return self._intersects_box(column, envelope, node)
        if name != "list_contains" or len(node.expressions) != 2:
            return self._refuse(node)
        return self._contains(node.expressions[0], node.expressions[1], node)

    def _intersects_box(self, column: Any, envelope: Any, node: Any) -> Expression:
        made = isinstance(envelope, sql.Anonymous) and str(envelope.this).lower() == "st_makeenvelope"
        try:
            box = [float(number.sql()) for number in envelope.expressions] if made else []
        except ValueError:
            box = []
        if len(box) != 4:
            raise unsupported(node, "write ST_Intersects_Extent(column, ST_MakeEnvelope(xmin, ymin, xmax, ymax))")
        return self._column(column)[0].intersects_box(*box)

    def _contains(self, column: Any, value: Any, node: Any) -> Expression:
        """Whether an item of a list equals a value, or a field of the structs in a list (``'a' = ANY(ls.y)``)."""
        ref, _ = self._column(column)
        found = value_of(bare(value), items_leaf(self._tree, ref.path))
        if found is None:
            raise unsupported(node, "NULL equals nothing, so no list contains it")
        return ref.contains(found)

    def _like(self, node: Any) -> Expression:
        escape = ""
        if isinstance(node, sql.Escape):
            only(node, "this", "expression")
            escape, outer, node = text_of(node.expression, node), node, node.this
            if not isinstance(node, (sql.Like, sql.ILike)) or len(escape) != 1:
                raise unsupported(outer, "ESCAPE belongs to LIKE and takes one character")
        only(node, "this", "expression", "negate")
        pattern = text_of(node.expression, node)
        if not escape and ("\\%" in pattern or "\\_" in pattern):
            raise unsupported(node, "the backslash needs an ESCAPE clause: LIKE '…' ESCAPE '\\'")
        kind = "ilike" if isinstance(node, sql.ILike) else "like"
        return _negated(Matches(self._value(node.this), kind, pattern, escape), node)

    def _bare_column(self, node: Any) -> Expression:
        return Compare(self._column(node)[0].path, "==", True)

    # ---- columns

    def _column(self, node: Any) -> tuple[ColumnRef, Node]:
        """A column by its name or dotted path, and its place in the schema."""
        node = bare(node)
        if not is_column(node):
            raise unsupported(node, "a column is needed here. Functions, casts and arithmetic are not supported")
        parts = parts_of(node)
        names = tuple(str(part.this) for part in parts)
        # Unquoted dots may belong to a name; quoted parts are names as they stand.
        path: str | tuple[str, ...] = names
        if len(names) == 1 or not any(part.args.get("quoted") for part in parts):
            path = ".".join(names)
        return ColumnRef(path), named_node(self._tree, path)


def _negated(found: Expression, node: Any) -> Expression:
    return Not(found) if node.args.get("negate") else found
