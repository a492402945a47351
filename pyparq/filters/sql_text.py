"""SQL conditions (``--where``, filters as text, and those of Spark) as trees of :mod:`pyparq.filters.conditions`.

sqlglot parses the condition. Each kind of node that is understood is listed here, with every part that it may carry.
Anything else becomes an :class:`Other`, which is refused by name, so that no condition is half understood.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import MAX_PREC, ROUND_HALF_UP, Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import sqlglot
from sqlglot import expressions as sql
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from pyparq.column_names import ColumnName
from pyparq.errors import FilterError, by_each, near
from pyparq.filters.conditions import Attribute, Call, Condition, Literal, NoEqual, Other, SqlBuilder, number
from pyparq.filters.expression import PARTS, Expression
from pyparq.filters.times import NUMBER, duration_of, of_span, of_unit
from pyparq.format.schema_tree import SchemaTree


@dataclass(frozen=True)
class Dialect:
    """What differs between the SQL of the command line and that of Spark."""

    name: str
    """sqlglot's."""
    quote: str
    """Around the names of columns."""
    escape: str
    """The escape character of LIKE where none is given."""
    number: Callable[[str], Any]
    cast: Callable[[Literal, str, list[int]], Literal | None]
    """A literal that is cast to a type, by its name and the numbers in its brackets. ``None``: it is not supported."""
    floats: bool
    """Whether NaN and infinity are bare words."""
    dots: bool
    """Whether unquoted dots may be part of a name."""
    calls: Callable[[str, int], bool]
    """The functions that sqlglot does not know but the builder may, by their names and numbers of arguments."""


def _cast(literal: Literal, target: str, sizes: list[int]) -> Literal | None:
    """A cast on the command line. Times stay text, which is checked beside their column."""
    text = str(literal.value)
    is_text = isinstance(literal.value, str) and not literal.kind
    if target in _TIMES and is_text:
        return Literal(text, _TIMES[target])
    if target in ("TEXT", "VARCHAR", "CHAR", "UUID") and is_text:
        return Literal(text)
    if target in ("DOUBLE", "FLOAT"):
        return Literal(float(text) if target == "DOUBLE" else np.float32(text))
    if target == "DECIMAL" and not sizes:
        return Literal(Decimal(text))
    if target == "DECIMAL":
        return Literal(_rounded(Decimal(text), *sizes))
    return Literal(int(text)) if target in _WHOLE else None


def _rounded(value: Decimal, precision: int, scale: int = 0) -> Decimal:
    """A number as a decimal of a precision and a scale, halves away from zero."""
    with localcontext() as context:
        context.prec = MAX_PREC
        found = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if found.adjusted() >= precision - scale and found:
        raise ValueError(f"{value} does not fit a decimal({precision}, {scale})")
    return found


def _cast_in_spark(literal: Literal, target: str, sizes: list[int]) -> Literal | None:
    value, is_text = literal.value, isinstance(literal.value, str)
    if target == "DATE" and is_text:
        return Literal(dt.date.fromisoformat(value.strip()))
    if target in _TIMES and target not in ("TIME", "DATETIME") and is_text:
        return Literal(value.strip(), "timestamp_ntz" if target == "TIMESTAMPNTZ" else "timestamp")
    if target in _WHOLE and isinstance(value, int):
        return literal
    if target == "DOUBLE" and (is_text or isinstance(value, (int, Decimal))):
        return Literal(float(value))
    return Literal(Decimal(value)) if target == "DECIMAL" and is_text else None


def _number_in_spark(text: str) -> Any:
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


_WHOLE = ("INT", "BIGINT", "SMALLINT", "TINYINT")
_TIMES = {
    "DATE": "date", "TIME": "time", "DATETIME": "timestamp",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ"), "timestamp"),
}  # fmt: skip
_FUNCTIONS = {"regexp_matches": 2, "suffix": 2, "prefix": 2, "list_contains": 2, "st_intersects_extent": 2,
              "st_makeenvelope": 4}  # fmt: skip
_NAMES = (*_FUNCTIONS, "starts_with", "ends_with", "contains", "lower", "upper", "length", "year", "quarter", "month",
          "day", "hour", "minute", "second", "to_date")  # fmt: skip
_INSTEAD = by_each({
    "isnull is_null": "column IS NULL", "notnull is_not_null": "column IS NOT NULL", "isnan is_nan": "column IS NAN",
    "regexp rlike regex regexp_match matches": "regexp_matches(city, '^L')", "instr position": "contains(city, 'L')",
    "len": "length()", "isin is_in": "column IN (1, 2)", "is_between": "column BETWEEN 1 AND 2",
})  # fmt: skip
"""What to write for functions of other libraries."""
_OPERATORS = {"=>": ">=", "=<": "<=", "===": "=", "!==": "!=", "><": "<>", "&&": "AND", "||": "OR"}
STANDARD = Dialect(
    "postgres", '"', "", number, _cast, floats=True, dots=True,
    calls=lambda name, count: _FUNCTIONS.get(name) == count,
)  # fmt: skip
"""The dialect whose literals and quoting are the standard's, X'00ff' included."""
SPARK = Dialect(
    "spark", "`", "\\", _number_in_spark, _cast_in_spark, floats=False, dots=False,
    calls=lambda name, count: True,
)  # fmt: skip


def parse_where(text: str, tree: SchemaTree) -> Expression:
    """The filter expression of an SQL condition on the columns of ``tree``.

    Raises :class:`FilterError` naming what is not SQL or not supported, :class:`ColumnNotFoundError` for an unknown
    column.
    """
    names = {part for leaf in tree.leaves for part in leaf.path}
    same: Callable[[str], str] = str if tree.case_sensitive else str.lower
    try:
        found = SqlBuilder(tree).condition(_Reader(STANDARD).read(_parsed(text, STANDARD, names, same)))
    except sqlglot.errors.SqlglotError as error:
        why = _mistake(text.strip(), error, _keywords(text, STANDARD, names, same))
        raise FilterError(f"the condition cannot be parsed: {why}") from None
    except RecursionError:
        raise FilterError("the condition is nested too deeply") from None
    assert found is not None
    return found


def parse_set(text: str, tree: SchemaTree) -> tuple[ColumnName, Any]:
    """The column and the new value that ``column = value`` says: a constant, ``None`` for NULL, or an expression of
    columns. Raises as :func:`parse_where` does."""
    names = {part for leaf in tree.leaves for part in leaf.path}
    same: Callable[[str], str] = str if tree.case_sensitive else str.lower
    try:
        return SqlBuilder(tree).assignment(_Reader(STANDARD).read(_parsed(text, STANDARD, names, same)))
    except sqlglot.errors.SqlglotError as error:
        why = _mistake(text.strip(), error, _keywords(text, STANDARD, names, same))
        raise FilterError(f"{text!r} cannot be parsed: {why}") from None
    except RecursionError:
        raise FilterError("the value is nested too deeply") from None
    except NoEqual as error:
        raise FilterError(f"{text!r} does not say a value: {error}") from None


def spark_condition(text: str, names: Iterable[str] = ()) -> Condition:
    """A condition in the SQL of Spark. ``names``: of columns, which need no backticks where they are words of SQL.

    Raises :class:`FilterError` for what is no SQL.
    """
    if not text.strip():
        raise FilterError("the condition is empty")
    try:
        return _Reader(SPARK).read(_parsed(text, SPARK, names, str.lower))
    except sqlglot.errors.SqlglotError as error:
        raise FilterError(f"the condition is no SQL of Spark: {_reason(error)}") from None
    except RecursionError:
        raise FilterError("the condition is nested too deeply") from None


# ---- parsing


def _parsed(text: str, dialect: Dialect, names: Iterable[str], same: Callable[[str], str]) -> Any:
    """The parsed condition. Columns with the names of SQL keywords need no quotes where the meaning is clear."""
    wrong = re.search(r"=>|=<|===|!==|><|&&|\|\|", re.sub("'[^']*'|\"[^\"]*\"", "", text))
    if wrong and dialect is STANDARD:
        raise FilterError(f"the condition cannot be parsed: write {_OPERATORS[wrong[0]]} for {wrong[0]}")
    text = _with_whole_intervals(text, dialect.name)
    try:
        return sqlglot.parse_one(text, read=dialect.name)
    except sqlglot.errors.ParseError:
        quoted, mark = text, dialect.quote
        for word in reversed(_keywords(text, dialect, names, same)):
            if word.text.upper() not in _WORDS:
                quoted = f"{quoted[: word.start]}{mark}{word.text}{mark}{quoted[word.end + 1 :]}"
        if quoted != text:
            with suppress(sqlglot.errors.SqlglotError):
                return sqlglot.parse_one(quoted, read=dialect.name)
        raise


_WORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE", "LIKE", "ESCAPE", "ANY", "NAN"}
"""Words that a condition is made of."""


def _keywords(text: str, dialect: Dialect, names: Iterable[str], same: Callable[[str], str]) -> list[Any]:
    """The names of columns in the text that are unquoted SQL keywords."""
    known = set(map(same, names))
    plain = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)
    with suppress(sqlglot.errors.TokenError):
        tokens = sqlglot.tokenize(text, read=dialect.name)
        return [t for t in tokens if t.token_type not in plain and same(t.text) in known]
    return []


def _with_whole_intervals(text: str, dialect: str) -> str:
    """The condition with ``INTERVAL '1 day 02:00'`` as a cast: sqlglot drops all but the first part of its text."""
    tokens = sqlglot.tokenize(text, read=dialect)
    for word, value in reversed(list(pairwise(tokens))):
        is_text = word.token_type == TokenType.INTERVAL and value.token_type == TokenType.STRING
        if is_text and re.search("[a-z]", value.text, re.IGNORECASE):
            start, end = value.start, value.end + 1
            text = f"{text[: word.start]}CAST({text[start:end]} AS INTERVAL){text[end:]}"
    return text


def _mistake(text: str, error: Exception, keywords: list[Any]) -> str:
    """What is probably wrong with a condition that cannot be parsed."""
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
    if keywords:
        return f'{keywords[0].text} is an SQL keyword: write the column as "{keywords[0].text}", in double quotes'
    return f"{_reason(error)}; a condition looks like city = 'Lima' AND price > 0.5"


def _reason(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not details:
        return str(error)
    said = str(details[0].get("description", "syntax error")).split(" for <class")[0].split(" but got <")[0].rstrip(".")
    where = details[0].get("highlight")
    said = "something is missing" if said.startswith("Required keyword") else said
    return f"{said} at {where!r} (column {details[0].get('col')})" if where else said


# ---- nodes


class _Refused(Exception):
    """A node that has no equal in the tree; the text says why, if it can be said."""


def _only(node: Any, *names: str) -> None:
    """Refuse a node with any part that is not called ``names``. Otherwise that part would be ignored."""
    if any(name not in names and value not in (None, False, []) for name, value in node.args.items()):
        raise _Refused


def _is_text(node: Any) -> bool:
    return isinstance(node, sql.Literal) and bool(node.is_string)


_BINARY: dict[type, str] = {
    sql.EQ: "==", sql.NEQ: "!=", sql.LT: "<", sql.LTE: "<=", sql.GT: ">", sql.GTE: ">=", sql.Add: "+", sql.Sub: "-",
    sql.Mul: "*", sql.Div: "/", sql.Mod: "rem", sql.StartsWith: "starts_with", sql.EndsWith: "ends_with",
    sql.Contains: "contains", sql.RegexpLike: "rlike", sql.ArrayContains: "array_contains",
    sql.NullSafeEQ: "<=>", sql.NullSafeNEQ: "<=>",
}  # fmt: skip
_UNARY: dict[type, str] = {
    sql.Not: "not", sql.IsNan: "is_nan", sql.Lower: "lower", sql.Upper: "upper", sql.Length: "length",
    sql.Year: "year", sql.Quarter: "quarter", sql.Month: "month", sql.Day: "day", sql.DayOfMonth: "day",
    sql.Hour: "hour", sql.Minute: "minute", sql.Second: "second", sql.TsOrDsToDate: "to_date",
}  # fmt: skip
_WHY: dict[type, str] = {
    sql.DPipe: "write OR for ||",
    sql.ArrayOverlaps: "write AND for &&",
    sql.Dot: "write a function as starts_with(city, 'L')",
    **dict.fromkeys((sql.RegexpLike, sql.SimilarTo, sql.BitwiseNot), "write regexp_matches(city, '^L')"),
    sql.Select: "subqueries are not supported. Write only the condition that follows WHERE",
    **dict.fromkeys(
        (sql.Exists, sql.Subquery), "subqueries are not supported. Write a condition on the columns of the file"
    ),
}


class _Reader:
    """Reads nodes of sqlglot."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def read(self, node: Any) -> Condition:
        try:
            return self._read(node)
        except (_Refused, ValueError, ArithmeticError) as error:
            return self._other(node, str(error) or _WHY.get(type(node), ""))

    def _other(self, node: Any, why: str) -> Other:
        inside = []
        for column in node.find_all(sql.Column):
            with suppress(_Refused):
                inside.append(self._attribute(column))
                continue
            return Other(self._shown(node), None, why)
        whole = not node.find(sql.Lambda, sql.Star)
        return Other(self._shown(node), tuple(inside) if whole else None, why)

    def _shown(self, node: Any) -> str:
        text = str(node.sql(dialect=self._dialect.name))
        return text if len(text) <= 120 else text[:119] + "…"

    def _read(self, node: Any) -> Condition:
        kind = type(node)
        if kind in (sql.And, sql.Or):
            return self._chain(node)
        if _is_interval(node):
            _only(node, "this", "unit", "to", "safe", "fraction_in_string")
            return Literal(_duration(node))
        if kind in _BINARY:
            return self._binary(node)
        if kind in _UNARY:
            _only(node, "this", "encoding", "safe")
            of_date = kind is not sql.TsOrDsToDate and isinstance(node.this, sql.TsOrDsToDate)  # as Spark's year()
            return Call(_UNARY[kind], (self.read(node.this.this if of_date else node.this),))
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise _Refused
        return handler(self, node)

    def _chain(self, node: Any) -> Condition:
        """A chain of ANDs or ORs leans left, as deep as it is long: walked in a loop."""
        kind, parts = type(node), []
        while type(node) is kind:
            _only(node, "this", "expression")
            parts.append(self.read(node.expression))
            node = node.this
        parts.append(self.read(node))
        return Call("and" if kind is sql.And else "or", tuple(reversed(parts)))

    def _binary(self, node: Any) -> Condition:
        _only(node, "this", "expression", "typed", "safe")
        name, left, right = _BINARY[type(node)], node.this, node.expression
        if name == "==" and isinstance(right, sql.Any):
            return Call("array_contains", (self.read(right.this), self.read(left)))
        found = Call(name, (self.read(left), self.read(right)))
        return Call("not", (found,)) if isinstance(node, sql.NullSafeNEQ) else found

    def _paren(self, node: Any) -> Condition:
        _only(node, "this")
        return self.read(node.this)

    def _negated(self, node: Any, found: Condition) -> Condition:
        return Call("not", (found,)) if node.args.get("negate") else found

    def _in(self, node: Any) -> Condition:
        if node.args.get("field") is not None:
            raise _Refused("IN takes a list in brackets: IN (1, 2)")
        if node.args.get("query") is not None:
            raise _Refused("IN takes a list of values, subqueries are not supported")
        _only(node, "this", "expressions", "negate")
        return self._negated(node, Call("in", tuple(map(self.read, (node.this, *node.expressions)))))

    def _between(self, node: Any) -> Condition:
        _only(node, "this", "low", "high", "negate")
        parts = (node.this, node.args["low"], node.args["high"])
        return self._negated(node, Call("between", tuple(map(self.read, parts))))

    def _is(self, node: Any) -> Condition:
        _only(node, "this", "expression", "negate")
        what = node.expression
        if isinstance(what, sql.Null):
            name = "is_null"
        elif isinstance(what, sql.Boolean):
            name = "is_true" if what.this else "is_false"
        elif self._float(what) == "nan":
            name = "is_nan"
        else:
            raise _Refused("IS takes NULL, NAN, TRUE or FALSE")
        return self._negated(node, Call(name, (self.read(node.this),)))

    def _like(self, node: Any) -> Condition:
        """``LIKE`` with its escape character."""
        escape = self._dialect.escape
        if isinstance(node, sql.Escape):
            _only(node, "this", "expression")
            sign, node = node.expression, node.this
            is_one = _is_text(sign) and len(str(sign.this)) == 1
            if not isinstance(node, (sql.Like, sql.ILike)) or not is_one:
                raise _Refused("ESCAPE belongs to LIKE and takes one character")
            escape = str(sign.this)
        _only(node, "this", "expression", "negate")
        name = "ilike" if isinstance(node, sql.ILike) else "like"
        return self._negated(node, Call(name, (self.read(node.this), self.read(node.expression), Literal(escape))))

    def _column(self, node: Any) -> Condition:
        special = self._float(node)
        return self._attribute(node) if special is None else Literal(float(special))

    def _attribute(self, node: Any) -> Attribute:
        parts = self._identifiers(node)
        names = tuple(str(part.this) for part in parts)
        if self._dialect.dots and (len(names) == 1 or not any(part.args.get("quoted") for part in parts)):
            return Attribute(".".join(names))
        return Attribute(names)

    def _identifiers(self, node: Any) -> list[Any]:
        """The identifiers of a column, outermost first (sqlglot takes them for catalog, database and table)."""
        if isinstance(node, sql.Dot) and isinstance(node.expression, sql.Identifier):
            return [*self._identifiers(node.this), node.expression]
        if not isinstance(node, sql.Column) or not isinstance(node.this, sql.Identifier):
            raise _Refused
        _only(node, "this", "table", "db", "catalog")
        return [part for name in ("catalog", "db", "table", "this") if (part := node.args.get(name)) is not None]

    def _float(self, node: Any) -> str | None:
        """``nan`` or ``inf`` written as a bare word."""
        if not self._dialect.floats or not isinstance(node, sql.Column) or len(node.parts) != 1:
            return None
        name = "" if node.this.args.get("quoted") else str(node.this.this).lower()
        return {"nan": "nan", "inf": "inf", "infinity": "inf"}.get(name)

    def _bracket(self, node: Any) -> Condition:
        """An item of a list or a map, or a field of a struct or Variant."""
        if isinstance(node, sql.Dot):
            if not node.find(sql.Bracket) or not isinstance(node.expression, sql.Identifier):
                return self._attribute(node)
            return Call("[]", (self.read(node.this), Literal(str(node.expression.this))))
        if len(node.expressions) != 1:
            raise _Refused
        key = self.read(node.expressions[0])
        if self._dialect is STANDARD and isinstance(key, Literal) and type(key.value) is int:
            key = Literal(key.value + 1)  # sqlglot counts from 0
        return Call("[]", (self.read(node.this), key))

    def _extract(self, node: Any) -> Condition:
        _only(node, "this", "expression")
        name = str(node.this.name).lower()
        if name not in PARTS:
            raise _Refused(f"the parts are {', '.join(PARTS)}")
        return Call(name, (self.read(node.expression),))

    def _function(self, node: Any) -> Condition:
        name = str(node.this).lower()
        if not self._dialect.calls(name, len(node.expressions)):
            found = _INSTEAD.get(name) or " or ".join(f"{other}()" for other in near(name, _NAMES) if other != name)
            raise _Refused(f"did you mean {found}?" if found else "")
        return Call(name, tuple(map(self.read, node.expressions)))

    def _alias(self, node: Any) -> Condition:
        raise _Refused(f"it has {node.alias!r} after {self._shown(node.this)}: is AND or OR missing?")

    # ---- literals

    def _literal(self, node: Any) -> Condition:
        text = str(node.this)
        return Literal(text if node.is_string else self._dialect.number(text))

    def _negative(self, node: Any) -> Condition:
        _only(node, "this")
        inner = self.read(node.this)
        if not isinstance(inner, Literal):
            return Call("-", (inner,))
        if isinstance(inner.value, (bool, str, bytes)) or inner.value is None:
            raise _Refused("only numbers and intervals can have a sign")
        return Literal(-inner.value)

    def _hex(self, node: Any) -> Condition:
        digits = str(node.this)
        if self._dialect is STANDARD:
            return Literal(digits, "hex")
        return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits))

    def _cast(self, node: Any) -> Condition:
        """Literals with a type, columns as dates, and columns in a type that holds their values."""
        _only(node, "this", "to", "safe")
        inner, target = self.read(node.this), str(node.to.this.name)
        sizes = [int(str(size.this)) for size in node.to.expressions]
        if not isinstance(inner, Literal):
            if target == "DATE":
                return Call("to_date", (inner,))
            if self._dialect is SPARK:
                raise _Refused("only literals can be cast")
            return Call("cast", (inner, Literal(target), *map(Literal, sizes)))
        found = self._dialect.cast(inner, target, sizes)
        if found is None:
            raise _Refused("this type is not supported in a cast")
        return found


_HANDLERS: dict[type, Callable[[_Reader, Any], Condition]] = {
    sql.Paren: _Reader._paren, sql.In: _Reader._in, sql.Between: _Reader._between, sql.Is: _Reader._is,
    sql.Like: _Reader._like, sql.ILike: _Reader._like, sql.Escape: _Reader._like, sql.Column: _Reader._column,
    sql.Dot: _Reader._bracket, sql.Bracket: _Reader._bracket,
    sql.Coalesce: lambda reader, node: Call("coalesce", tuple(map(reader.read, (node.this, *node.expressions)))),
    sql.Extract: _Reader._extract, sql.Anonymous: _Reader._function, sql.Alias: _Reader._alias,
    sql.Literal: _Reader._literal, sql.Neg: _Reader._negative, sql.HexString: _Reader._hex, sql.Cast: _Reader._cast,
    sql.TryCast: _Reader._cast, sql.RawString: lambda _, node: Literal(str(node.this)),
    sql.Boolean: lambda _, node: Literal(bool(node.this)), sql.Null: lambda _, node: Literal(None),
}  # fmt: skip


# ---- durations


def _is_interval(node: Any) -> bool:
    """Whether a node is an INTERVAL literal, or a text that is cast to one."""
    if isinstance(node, sql.Interval):
        return True
    if not isinstance(node, sql.Cast):
        return False
    return "interval" in str(getattr(node.to.this, "name", "")).lower() or isinstance(node.to.this, sql.Interval)


def _duration(node: Any) -> dt.timedelta | np.timedelta64:
    """The duration of an INTERVAL literal. Raises :class:`ValueError`, which says what is wrong with it."""
    form = "write INTERVAL '1 day 02:00:00'"
    if isinstance(node, sql.Cast):
        if isinstance(node.to.this, sql.Interval) or not _is_text(node.this):
            raise ValueError(form)
        return duration_of(str(node.this.this))
    unit, value = node.args.get("unit"), node.this
    if not isinstance(value, sql.Literal):
        raise ValueError(form)
    text = str(value.this).strip()
    if unit is None:
        return duration_of(text)
    if isinstance(unit, sql.IntervalSpan):
        return of_span(text, str(unit.this.name).upper(), str(unit.expression.name).upper())
    if type(unit) is not sql.Var or not re.fullmatch(NUMBER, text, re.ASCII):
        raise ValueError(form)
    return of_unit(text, str(unit.name))
