"""The dialects of :mod:`questions`: how each says a question, and what its own library answers."""

from __future__ import annotations

import datetime as dt
import math
import operator
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from question_oracle import right_rows
from questions import FLOATS, Dialect, Difference, Question, Unsaid, columns, literals, parts, stored, table

import pyparq
import pyparq.parquet
import pyparq.polars
from pyparq import FilterError, col

_OPS: dict[str, Any] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "neg": operator.neg,
}  # fmt: skip


class _Objects(Dialect):
    """Expressions that Python's operators make."""

    def say(self, question: Question) -> Any:
        kind = question[0]
        if kind in ("and", "or"):
            return reduce(operator.and_ if kind == "and" else operator.or_, map(self.say, question[1:]))
        if kind == "not":
            return ~self.say(question[1])
        if kind == "cmp":
            return self._operation(question[1], question[2:])
        if kind == "between":
            return self.between(self.value(question[1]), *question[2:])
        return getattr(self, f"_{kind}")(self.value(question[1]), *question[2:])

    def _operation(self, op: str, operands: Question) -> Any:
        if all(operand[0] == "lit" for operand in operands):
            raise Unsaid
        return _OPS[op](*map(self.value, operands))

    def value(self, value: Question) -> Any:
        kind = value[0]
        if kind == "lit":
            return value[1]
        if kind == "col":
            return self.column(value[1])
        return self._operation(kind, value[1:]) if kind in _OPS else self.call(kind, self.value(value[1]))

    def column(self, name: str) -> Any:
        raise NotImplementedError

    def call(self, name: str, value: Any) -> Any:
        raise NotImplementedError

    def between(self, value: Any, low: Any, high: Any) -> Any:
        return (value >= low) & (value <= high)

    def _in(self, value: Any, values: tuple[Any, ...]) -> Any:
        return value.isin(list(values))

    def _null(self, value: Any) -> Any:
        return value.is_null()

    def _nan(self, value: Any) -> Any:
        return value.is_nan()

    def _prefix(self, value: Any, text: str) -> Any:
        return value.starts_with(text)

    def _flag(self, value: Any) -> Any:
        return value


class Col(_Objects):
    name = "col"

    def right(self, question: Question, said: Any) -> list[int]:
        return right_rows(question)

    def column(self, name: str) -> Any:
        return col(name)

    def call(self, name: str, value: Any) -> Any:
        return getattr(value, name)()

    def between(self, value: Any, low: Any, high: Any) -> Any:
        return value.between(low, high)


class Tuples(Dialect):
    """pyarrow's list of tuples, with pyparq's meaning."""

    name = "tuples"

    def say(self, question: Question) -> Any:
        if question[0] != "or":
            return self._conjunction(question)
        return [self._conjunction(part) for part in question[1:]]

    def _conjunction(self, question: Question) -> list[Any]:
        return [self._test(part) for part in (question[1:] if question[0] == "and" else [question])]

    def _test(self, question: Question) -> Any:
        negated = question[0] == "not"
        question = question[1] if negated else question
        kind = question[0]
        if kind == "in" and question[1][0] == "col":
            return (question[1][1], "not in" if negated else "in", list(question[2]))
        if kind != "cmp" or negated or question[2][0] != "col" or question[3][0] != "lit":
            raise Unsaid
        return (question[2][1], question[1], question[3][1])

    def right(self, question: Question, said: Any) -> list[int]:
        return right_rows(question)


class Sql(Dialect):
    """SQL text, and DuckDB."""

    name = "sql"

    def say(self, question: Question) -> str:
        kind = question[0]
        if kind in ("and", "or"):
            return "(" + f" {kind} ".join(map(self.say, question[1:])) + ")"
        if kind == "not":
            return f"(not {self.say(question[1])})"
        if kind == "cmp":
            op = {"==": "=", "!=": "<>"}.get(question[1], question[1])
            return f"{self.value(question[2])} {op} {self.value(question[3])}"
        value = self.value(question[1])
        if kind == "in":
            if not question[2]:
                raise Unsaid
            return f"{value} in ({', '.join(map(self.literal, question[2]))})"
        if kind == "between":
            return f"{value} between {self.literal(question[2])} and {self.literal(question[3])}"
        if kind == "prefix":
            return f"starts_with({value}, {self.literal(question[2])})"
        return {"null": f"{value} is null", "nan": f"isnan({value})", "flag": value}[kind]

    def value(self, value: Question) -> str:
        kind = value[0]
        if kind in ("lit", "col"):
            return self.literal(value[1]) if kind == "lit" else str(value[1])
        parts = [self.value(part) for part in value[1:]]
        if kind in ("year", "length"):
            return f"{kind}({parts[0]})"
        return f"(-{parts[0]})" if kind == "neg" else f"({parts[0]} {kind} {parts[1]})"

    def literal(self, value: Any) -> str:
        if value is None or isinstance(value, bool):
            return str(value or "null").lower() if value is not False else "false"
        if isinstance(value, float):
            return self.float(value)
        if isinstance(value, (int, Decimal)):
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise Unsaid
            return f"timestamp '{value}'"
        if isinstance(value, dt.date):
            return f"date '{value}'"
        if isinstance(value, dt.time):
            return f"time '{value}'"
        if isinstance(value, dt.timedelta):
            return f"interval '{value // dt.timedelta(microseconds=1)} microseconds'"
        raise Unsaid

    def float(self, value: float) -> str:
        if not math.isfinite(value):
            return f"cast('{value}' as double)"
        text = repr(value)
        # With an exponent it is a double to DuckDB, which else rounds decimals of many digits twice.
        return text if "e" in text or len(text) < 16 else f"{text}e0"

    def right(self, question: Question, said: Any) -> list[int]:
        return [n for (n,) in _duckdb().execute(f"select n from t where {said} order by n").fetchall()]


@lru_cache
def _duckdb() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.register("rows", table().drop_columns("z"))
    connection.execute("create table t as select * from rows")
    return connection


class PyArrow(_Objects):
    name = "pyarrow"

    def right(self, question: Question, said: Any) -> list[int]:
        answer: list[int] = table().filter(said)["n"].to_pylist()
        return answer

    def column(self, name: str) -> Any:
        return pc.field(name)

    def call(self, name: str, value: Any) -> Any:
        return pc.year(value) if name == "year" else pc.utf8_length(value)

    def _in(self, value: Any, values: tuple[Any, ...]) -> Any:
        return value.isin(pa.array(values, table().schema.field("n").type) if not values else list(values))

    def _prefix(self, value: Any, text: str) -> Any:
        return pc.starts_with(value, text)

    def _operation(self, op: str, operands: Question) -> Any:
        if op == "neg":
            return pc.negate_checked(self.value(operands[0]))
        return super()._operation(op, operands)


class PyArrowTuples(Tuples):
    """Tuples as ``pyarrow.parquet`` and ``pyparq.parquet`` take them."""

    name = "pyarrow-tuples"

    def right(self, question: Question, said: Any) -> list[int]:
        answer: list[int] = table().filter(pyarrow.parquet.filters_to_expression(said))["n"].to_pylist()
        return answer

    def found(self, said: Any) -> list[int]:
        try:
            answer: list[int] = pyparq.parquet.read_table(stored(), columns=["n"], filters=said)["n"].to_pylist()
        except (pa.ArrowException, OverflowError) as error:
            raise FilterError(str(error)) from error
        return answer


class Polars(_Objects):
    name = "polars"

    def right(self, question: Question, said: Any) -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _frame().filter(said)["n"].to_list()

    def column(self, name: str) -> Any:
        return pl.col(name)

    def call(self, name: str, value: Any) -> Any:
        return value.dt.year() if name == "year" else value.str.len_chars()

    def between(self, value: Any, low: Any, high: Any) -> Any:
        return value.is_between(pl.lit(low), pl.lit(high))

    def _in(self, value: Any, values: tuple[Any, ...]) -> Any:
        return value.is_in(list(values))

    def _prefix(self, value: Any, text: str) -> Any:
        return value.str.starts_with(text)


@lru_cache
def _frame() -> pl.DataFrame:
    return pl.DataFrame(table())


class PolarsLazy(Polars):
    """``pyparq.polars.scan``, in both of polars' engines."""

    name = "polars-lazy"

    def right(self, question: Question, said: Any) -> list[int]:
        return _frame().lazy().filter(said).select("n").collect()["n"].to_list()

    def found(self, said: Any) -> list[int]:
        query = pyparq.polars.scan(stored()).filter(said).select("n")
        try:
            one, other = (query.collect(engine=engine)["n"].to_list() for engine in ("in-memory", "streaming"))
        except pl.exceptions.InvalidOperationError as error:  # polars', of a part that it need not come to
            raise FilterError(str(error)) from None
        assert one == other
        return one


DIALECTS: tuple[Dialect, ...] = (Col(), Tuples(), Sql(), PyArrow(), PyArrowTuples(), Polars(), PolarsLazy())
"""Another dialect (Spark's) is one more class, and the same questions are put to it."""


# ---- what is known to differ


def _mixes_floats(question: Question) -> bool:
    """Floats on one side of a comparison, and exact numbers on the other."""
    for part in parts(question):
        if part[0] == "cmp" and "lit" not in (part[2][0], part[3][0]):
            one, other = (not columns(side) & set(FLOATS) for side in part[2:])
            if one != other:
                return True
    return False


def _computes_narrow(question: Question) -> bool:
    return any("g" in columns(part) for part in parts(question) if part[0] in ("+", "-", "*"))


def _has_zero_in_list(question: Question) -> bool:
    return any(part[0] == "in" and 0 in part[2] and columns(part[1]) & set(FLOATS) for part in parts(question))


def _has_doubles_beside_narrow(question: Question) -> bool:
    """Literals that DuckDB reads as doubles, among those of a float32 column or beside wide integers."""
    for part in parts(question):
        values = literals(part) if part[0] == "in" else []
        if any(isinstance(v, float) for v in values) and any(isinstance(v, int) and abs(v) > 1 << 53 for v in values):
            return True
        if part[0] in ("cmp", "in", "between") and columns(part) & set(FLOATS) == {"g"}:
            texts = [Sql().float(value) for value in literals(part) if isinstance(value, float)]
            if any("e" in text or "as" in text for text in texts):
                return True
    return False


def _has_list(question: Question) -> bool:
    return any(part[0] == "in" for part in parts(question))


def _has_null_in_list(question: Question) -> bool:
    return any(part[0] == "in" and (None in part[2] or not part[2]) for part in parts(question))


def _has_floats(question: Question) -> bool:
    return bool(columns(question) & set(FLOATS)) or any(v != v for v in literals(question))


def _has_inexact_literals(question: Question) -> bool:
    """Numbers that are not the same as a decimal, a double and a float32, and times that milliseconds cut off."""
    if any(isinstance(v, dt.datetime) and v.microsecond % 1000 for v in literals(question)):
        return True
    numbers = [v for v in literals(question) if isinstance(v, (float, Decimal)) and math.isfinite(v)]
    return any(Fraction(v) * 256 % 1 or abs(v) >= 1 << 24 for v in numbers) or any(
        isinstance(v, int) and abs(v) >= 1 << 24 for v in literals(question)
    )


DIFFERENCES = (
    # pyparq beside the library of the dialect
    Difference("numbers beside floats are compared without rounding", ("sql",), _mixes_floats, False),
    Difference("float32 is computed in doubles", ("sql",), _computes_narrow, False),
    Difference("DuckDB reads a list with a double as doubles", ("sql",), _has_doubles_beside_narrow, False),
    Difference("pyarrow finds -0.0 and 0.0 in lists by their bits", ("pyarrow",), _has_zero_in_list, False),
    # a dialect beside the others
    Difference("NaN is above no number in pyarrow", ("pyarrow", "pyarrow-tuples"), _has_floats, True),
    Difference("a null is in no list in pyarrow, and not unknown", ("pyarrow", "pyarrow-tuples"), _has_list, True),
    Difference(
        "a null in a list changes nothing in polars, and an empty list is unknown to nulls",
        ("polars",),
        _has_null_in_list,
        True,
    ),
    Difference(
        "literals take the type of the column",
        ("sql", "polars", "pyarrow", "pyarrow-tuples"),
        _has_inexact_literals,
        True,
    ),
)
