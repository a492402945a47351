"""Computed values that are bound to the leaves of a file, and their tests.

A value is a tree of columns (:class:`Leaf`), literals (:class:`Fixed`), arithmetic and functions. Each of them says
what it is for the rows of decoded columns (``of_rows``), between which ends it lies in a part of a file (``interval``),
and what it is where its only column has a given value (``at``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.layouts import normalize
from pyparq.errors import FilterError
from pyparq.filters import exact_numbers
from pyparq.filters.bound import Bound, Columns, Levels
from pyparq.filters.exact_numbers import Exact, as_double, integers, part_of, year_of
from pyparq.filters.expression import OPERATORS
from pyparq.filters.leaf_tests import looked_up
from pyparq.format.schema_node import Node
from pyparq.index.row_ranges import RowMask, Words
from pyparq.index.statistics import Bounds
from pyparq.kernels import TextTest
from pyparq.runtime.text import printable

if TYPE_CHECKING:
    from pyparq.arrow.column import Column

Flags: TypeAlias = npt.NDArray[np.bool_]

NUMBER, TEXT, BINARY, UUID, BOOL = "number", "text", "binary", "uuid", "bool"
LOCAL, INSTANT, MOMENT, TIME, DURATION = "local time", "instant", "moment", "time of day", "duration"
"""What values are, which decides what they can be compared with. A moment (INT96) is a local time and an instant."""


class Texts:
    """Byte strings one behind the other, and which of them each row has (``codes`` is ``None``: they are the rows)."""

    __slots__ = ("codes", "data", "offsets")

    def __init__(self, offsets: npt.NDArray[Any], data: Any, codes: npt.NDArray[Any] | None = None) -> None:
        self.offsets, self.data = offsets, data
        self.codes = codes

    def by_row(self, answers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each row, the answer for its text."""
        return answers if self.codes is None else answers[self.codes]

    def parts(self) -> tuple[Any, Any, Any]:
        """As kernels take them."""
        return self.offsets, self.data, None if self.codes is None else self.codes.astype(np.int64, copy=False)

    def objects(self) -> npt.NDArray[Any]:
        raw, found = memoryview(self.data), np.empty(len(self.offsets) - 1, object)
        found[:] = [bytes(raw[a:b]) for a, b in pairwise(self.offsets.tolist())]
        return self.by_row(found)


class Vector(NamedTuple):
    """A value for each row. ``valid``: where it is not null (``None``: everywhere)."""

    data: Any
    """:class:`Exact` numbers, doubles or :class:`Texts`."""
    valid: Flags | None


class Interval(NamedTuple):
    """The values lie within. ``None``: it is not known. NaN lies above every number, so it has no upper end."""

    low: Any
    high: Any


UNKNOWN = Interval(None, None)


# ---- values


class BoundValue:
    """``family``: one of :data:`NUMBER`, :data:`TEXT` and so on. ``floats``: it is computed in doubles."""

    __slots__ = ("family", "floats")
    family: str
    floats: bool
    operands: tuple[BoundValue, ...] = ()

    def leaves(self) -> list[Leaf]:
        return [leaf for operand in self.operands for leaf in operand.leaves()]

    def of_rows(self, columns: Mapping[int, Column]) -> Vector:
        raise NotImplementedError

    def steps(self, columns: Mapping[int, Column]) -> list[tuple[Any, ...]]:
        """How the kernel computes a number: see ``kernels.compare_computed``."""
        return [step for operand in self.operands for step in operand.steps(columns)]

    def interval(self, bounds: Mapping[Node, Bounds], k: int) -> Interval:
        """The values of part ``k``."""
        return UNKNOWN

    def at(self, x: Any) -> Any:
        """The value where the column is ``x``."""
        raise NotImplementedError

    def direction(self) -> int:
        """1 where it only rises with the column, -1 where it only falls, 0 for everything else."""
        return 0


class Leaf(BoundValue):
    """A column. ``den``: its values are whole numbers of ``1 / den``: decimals, and times in days."""

    __slots__ = ("den", "node")

    def __init__(self, node: Node, family: str, den: int = 1, floats: bool = False) -> None:
        self.node, self.family, self.den, self.floats = node, family, den, floats

    def leaves(self) -> list[Leaf]:
        return [self]

    def of_rows(self, columns: Mapping[int, Column]) -> Vector:
        return _values_of(columns[self.node.column], self)

    def steps(self, columns: Mapping[int, Column]) -> list[tuple[Any, ...]]:
        column = columns[self.node.column]
        entries = column.dictionary if column.type.dictionary is not None else None
        numbers, codes = (column, None) if entries is None else (entries, _stored_numbers(column))
        return [("column", self.den, self.floats, _stored_numbers(numbers), codes)]

    def interval(self, bounds: Mapping[Node, Bounds], k: int) -> Interval:
        own = bounds[self.node]
        if not own.has_bounds[k]:
            return UNKNOWN
        low, high = own.mins[k], own.maxs[k]
        if isinstance(low, bytes):
            return Interval(low, high)
        if self.floats:
            return Interval(float(low), float(high) if own.nan_counts[k] == 0 else None)
        return Interval(Fraction(int(low), self.den), Fraction(int(high), self.den))

    def at(self, x: Any) -> Any:
        return x if self.floats else Fraction(x, self.den)

    def direction(self) -> int:
        return 1

    @printable
    def __repr__(self) -> str:
        return self.node.dotted


class Fixed(BoundValue):
    """A literal: an exact number, a double, or bytes."""

    __slots__ = ("value",)

    def __init__(self, value: Fraction | float | bytes, family: str) -> None:
        self.value, self.family = value, family
        self.floats = isinstance(value, float)

    def of_rows(self, columns: Mapping[int, Column]) -> Vector:
        value = self.value
        if isinstance(value, bytes):
            return Vector(Texts(np.array([0, len(value)]), value), None)
        return Vector(np.array(value) if isinstance(value, float) else exact_numbers.exact(value), None)

    def steps(self, columns: Mapping[int, Column]) -> list[tuple[Any, ...]]:
        value: Any = self.value
        return [("literal", value, 1) if self.floats else ("literal", value.numerator, value.denominator)]

    def interval(self, bounds: Mapping[Node, Bounds], k: int) -> Interval:
        return Interval(self.value, self.value) if self.value == self.value else UNKNOWN

    def at(self, x: Any) -> Any:
        return self.value

    @printable
    def __repr__(self) -> str:
        return repr(self.value) if isinstance(self.value, bytes) else str(self.value)


class Operation(BoundValue):
    """Two values and one of :data:`pyparq.filters.expression.ARITHMETIC`. ``family``: of the result."""

    __slots__ = ("op", "operands")

    def __init__(self, op: str, operands: tuple[BoundValue, ...], floats: bool, family: str = NUMBER) -> None:
        self.op, self.operands, self.family, self.floats = op, operands, family, floats

    def of_rows(self, columns: Mapping[int, Column]) -> Vector:
        left, right = (operand.of_rows(columns) for operand in self.operands)
        valid, join = _both(left.valid, right.valid), _ARITHMETIC[self.op]
        a, b = left.data, right.data
        if self.floats:
            a, b = (exact_numbers.as_floats(x) if isinstance(x, Exact) else x for x in (a, b))
        if self.op in DIVISIONS:
            valid = _both(valid, np.asarray((b if self.floats else b.num) != 0, bool))
        with np.errstate(all="ignore"):
            return Vector(np.asarray(join.plain(a, b)) if self.floats else join.exact(a, b), valid)

    def steps(self, columns: Mapping[int, Column]) -> list[tuple[Any, ...]]:
        return [*super().steps(columns), (self.op, self.floats)]

    def interval(self, bounds: Mapping[Node, Bounds], k: int) -> Interval:
        ends = [operand.interval(bounds, k) for operand in self.operands]
        return _ARITHMETIC[self.op].ends(*(map(_in_floats, ends) if self.floats else ends))

    def at(self, x: Any) -> Any:
        left, right = (operand.at(x) for operand in self.operands)
        return _ARITHMETIC[self.op].plain(*((as_double(left), as_double(right)) if self.floats else (left, right)))

    def direction(self) -> int:
        left, right = self.operands
        if self.op in ("%", "rem"):
            return 0
        if isinstance(right, Fixed):
            return left.direction() * self._sign(right)
        if not isinstance(left, Fixed) or self.op == "/":
            return 0
        return right.direction() * (-1 if self.op == "-" else self._sign(left))

    def _sign(self, literal: Fixed) -> int:
        factor: Any = 1 if self.op in ("+", "-") else literal.value
        return int(factor > 0) - int(factor < 0)

    @printable
    def __repr__(self) -> str:
        return f"({self.operands[0]!r} {self.op} {self.operands[1]!r})"


class Function(BoundValue):
    """A part of a point in time, or ``lower``, ``upper``, ``length`` of a text."""

    __slots__ = ("name", "operands")

    def __init__(self, name: str, operand: BoundValue, family: str) -> None:
        self.name, self.operands, self.family, self.floats = name, (operand,), family, False

    def of_rows(self, columns: Mapping[int, Column]) -> Vector:
        if self.name == "length":
            lengths, valid = self._lengths(columns)
            return Vector(Exact(integers(lengths), integers(1)), valid)
        data, valid = self.operands[0].of_rows(columns)
        if not isinstance(data, Texts):
            return Vector(Exact(integers(part_of(self.name, data)), integers(1)), valid)
        return Vector(Texts(*kernels.change_case(data.offsets, data.data, self.name == "upper"), data.codes), valid)

    def steps(self, columns: Mapping[int, Column]) -> list[tuple[Any, ...]]:
        if self.name != "length":
            return [*super().steps(columns), ("part", self.name)]
        lengths, valid = self._lengths(columns)
        count = _rows_of(columns, self)
        bits = None if valid is None else np.packbits(valid, bitorder="little")
        return [("column", 1, False, (np.ascontiguousarray(np.broadcast_to(lengths, count)), count, bits, 0), None)]

    def _lengths(self, columns: Mapping[int, Column]) -> tuple[npt.NDArray[Any], Flags | None]:
        (texts, valid), of_bytes = self.operands[0].of_rows(columns), self.operands[0].family == BINARY
        lengths = np.diff(texts.offsets) if of_bytes else kernels.count_characters(texts.offsets, texts.data)
        return texts.by_row(lengths), valid

    def interval(self, bounds: Mapping[Node, Bounds], k: int) -> Interval:
        (of,) = self.operands
        if self.name == "year" and isinstance(of, Leaf):
            ends = of.interval(bounds, k)
            return Interval(*(None if end is None else year_of(int(end * of.den), of.den) for end in ends))
        return Interval(Fraction(0), None) if self.name == "length" else UNKNOWN

    def at(self, x: Any) -> Any:
        (of,) = self.operands
        assert isinstance(of, Leaf)
        return year_of(x, of.den)

    def direction(self) -> int:
        return int(self.name == "year" and isinstance(self.operands[0], Leaf))

    @printable
    def __repr__(self) -> str:
        return f"{self.name}({self.operands[0]!r})"


def _in_floats(ends: Interval) -> Interval:
    """The same as doubles. Infinite ends are unknown, because arithmetic with them makes NaN."""
    found = [None if end is None else as_double(end) for end in ends]
    return Interval(*(end if end is not None and isfinite(end) else None for end in found))


def _difference(a: Interval, b: Interval) -> Interval:
    return Interval(
        None if a.low is None or b.high is None else a.low - b.high,
        # Where the upper end of b is unknown it may be NaN, and so may be the difference.
        None if None in (a.high, b.low, b.high) else a.high - b.low,
    )


def _product(a: Interval, b: Interval) -> Interval:
    if None in a or None in b:
        return UNKNOWN
    ends = [x * y for x in a for y in b]
    return Interval(min(ends), max(ends))


def _quotient(a: Interval, b: Interval) -> Interval:
    if None in a or None in b or b.low <= 0 <= b.high:
        return UNKNOWN
    ends = [x / y for x in a for y in b]
    return Interval(min(ends), max(ends))


def _modulus(a: Interval, b: Interval) -> Interval:
    """The divisor has the sign. An infinite or unknown dividend may make NaN."""
    if None in b:
        return UNKNOWN
    return Interval(min(b.low, 0), max(b.high, 0) if None not in a else None)


def _remainder(a: Interval, b: Interval) -> Interval:
    """The dividend has the sign."""
    if None in a or None in b:
        return UNKNOWN
    most = max(abs(b.low), abs(b.high))
    return Interval(max(-most, min(a.low, 0)), min(most, max(a.high, 0)))


class _Operator(NamedTuple):
    """How two fractions or doubles, arrays of exact numbers, and intervals are joined."""

    plain: Callable[[Any, Any], Any]
    exact: Callable[[Exact, Exact], Exact]
    ends: Callable[[Interval, Interval], Interval]


_ARITHMETIC = {
    "+": _Operator(
        operator.add,
        exact_numbers.add,
        lambda a, b: Interval(*(None if None in one else one[0] + one[1] for one in zip(a, b))),
    ),
    "-": _Operator(operator.sub, exact_numbers.subtract, _difference),
    "*": _Operator(operator.mul, exact_numbers.multiply, _product),
    "/": _Operator(operator.truediv, exact_numbers.divide, _quotient),
    "%": _Operator(np.mod, partial(exact_numbers.remainder, floor=True), _modulus),
    "rem": _Operator(np.fmod, partial(exact_numbers.remainder, floor=False), _remainder),
}
DIVISIONS = ("/", "%", "rem")
"""Operators that have no answer for a divisor of zero."""


# ---- tests


class Computed(Bound):
    """A test of computed values: true for a row where the test of its class is true, or with ``negated`` where that is
    false."""

    __slots__ = ("negated", "nodes")
    of_entries = True
    """Whether the answer for a row follows from its values, none of which is null."""

    def __init__(self, values: Sequence[BoundValue], negated: bool) -> None:
        self.negated = negated
        self.nodes: tuple[Node, ...] = tuple({x.node.column: x.node for v in values for x in v.leaves()}.values())

    def columns(self) -> set[int]:
        return {node.column for node in self.nodes}

    def tests(self) -> Sequence[Computed]:
        return (self,)

    @property
    def has_bounds(self) -> bool:
        """Whether bounds of the columns can prove more than that a column is null."""
        return False

    def entries_column(self, columns: Columns) -> int | None:
        if len(self.nodes) != 1 or not self.of_entries:
            return None
        column = columns[self.nodes[0].column]
        return None if column.type.dictionary is None or column.dictionary is None else self.nodes[0].column

    def rows(self, columns: Columns, num_rows: int = -1, levels: Levels = None, within: Words | None = None) -> RowMask:
        """The rows where the test is true, or false if it is negated. Rows where it is unknown are neither."""
        number = self.entries_column(columns)
        if number is None:
            return self._of_values(columns, within)
        return looked_up(columns[number], lambda entries: self._of_values({number: entries}), within)

    def _of_values(self, columns: Mapping[int, Column], within: Words | None = None) -> RowMask:
        raise NotImplementedError

    def can_pass(self, bounds: Mapping[Node, Bounds]) -> Flags:
        """For each part that all the ``bounds`` describe, whether a row can pass."""
        some = np.ones(len(bounds[self.nodes[0]]), np.bool_)
        if self.of_entries:
            for node in self.nodes:
                if node.max_def:
                    some &= ~bounds[node].all_null
            self._narrow(some, bounds)
        return some

    def _narrow(self, some: Flags, bounds: Mapping[Node, Bounds]) -> None:
        """Take out further parts."""

    def __str__(self) -> str:
        return f"not ({self._text()})" if self.negated else self._text()

    def _text(self) -> str:
        raise NotImplementedError


class Comparison(Computed):
    """``left op right``."""

    __slots__ = ("left", "op", "right")

    def __init__(self, left: BoundValue, op: str, right: BoundValue) -> None:
        super().__init__((left, right), False)
        self.left, self.op, self.right = left, op, right

    @property
    def has_bounds(self) -> bool:
        return bool(self.nodes)

    def _of_values(self, columns: Mapping[int, Column], within: Words | None = None) -> RowMask:
        return _compared(self.left, self.op, self.right, columns, within)

    def _narrow(self, some: Flags, bounds: Mapping[Node, Bounds]) -> None:
        for k in np.flatnonzero(some).tolist():
            some[k] = _possible(self.op, self.left.interval(bounds, k), self.right.interval(bounds, k))

    def _text(self) -> str:
        return f"{self.left!r} {self.op} {self.right!r}"


def _possible(op: str, left: Interval, right: Interval) -> bool:
    if op in (">", ">="):
        return _possible(OPERATORS[op].flipped, right, left)
    if op == "!=":
        return None in left or None in right or not left.low == left.high == right.low == right.high
    if op == "==":
        return _possible("<=", left, right) and _possible("<=", right, left)
    if left.low is None or right.high is None:
        return True
    return bool(left.low < right.high if op == "<" else left.low <= right.high)


def _compared(left: BoundValue, op: str, right: BoundValue, columns: Columns, within: Words | None) -> RowMask:
    """The rows where ``left op right`` is true: by the kernel, where it compares such values."""
    count = _rows_of(columns, left, right)
    if left.family not in (TEXT, BINARY, UUID):
        words = kernels.compare_computed([*left.steps(columns), *right.steps(columns)], op, count, within)
        if words is not None:
            return RowMask.of_words(words, count)
    a, b = left.of_rows(columns), right.of_rows(columns)
    less, same = _order(a.data, b.data)
    passed = {"==": same, "<": less, "<=": less | same, "!=": ~same, ">=": ~less, ">": ~(less | same)}
    return _known(passed[op], _both(a.valid, b.valid), count)


def _rows_of(columns: Columns, *values: BoundValue) -> int:
    """How many rows there are. A column of lists, which may be there beside its items, has another number of values."""
    own = [columns[leaf.node.column] for value in values for leaf in value.leaves()]
    return (own or list(columns.values()))[0].length


def _known(found: Flags, valid: Flags | None, count: int) -> RowMask:
    """The rows that are found. No null is."""
    return RowMask.of_bools(np.ascontiguousarray(np.broadcast_to(found if valid is None else found & valid, count)))


def _order(a: Any, b: Any) -> tuple[Flags, Flags]:
    """Where a is less, and where both are equal. NaN equals itself and lies above every number."""
    if isinstance(a, Texts):
        sign = kernels.compare_texts(*a.parts(), *b.parts())
        return sign < 0, sign == 0
    if isinstance(a, Exact):
        return exact_numbers.order(a, b) if isinstance(b, Exact) else exact_numbers.order_with_floats(a, b)
    if isinstance(b, Exact):
        more, same = exact_numbers.order_with_floats(b, a)
        return ~more & ~same, same
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    return (a < b) | (~nan_a & nan_b), (a == b) | (nan_a & nan_b)


class Match(Computed):
    """A text fits a pattern: see :class:`pyparq.filters.expression.Matches`."""

    __slots__ = ("escape", "kind", "pattern", "value")

    def __init__(self, value: BoundValue, kind: str, pattern: Any, escape: str, negated: bool) -> None:
        super().__init__((value,), negated)
        self.value, self.kind, self.pattern, self.escape = value, kind, pattern, escape

    def _of_values(self, columns: Mapping[int, Column], within: Words | None = None) -> RowMask:
        texts, valid = self.value.of_rows(columns)
        test = text_test(self.kind, self.pattern, self.escape, self.value.family != BINARY)
        words = test.test(texts.offsets, texts.data, within if texts.codes is None else None)
        found = texts.by_row(RowMask.of_words(words, len(texts.offsets) - 1).bools())
        return _known(~found if self.negated else found, valid, _rows_of(columns, self.value))

    def _text(self) -> str:
        return f"{self.value!r} {self.kind.replace('_', ' ')} {self.pattern!r}"


class Missing(Computed):
    """A value is null."""

    __slots__ = ("value",)
    of_entries = False

    def __init__(self, value: BoundValue, negated: bool) -> None:
        super().__init__((value,), negated)
        self.value = value

    def _of_values(self, columns: Mapping[int, Column], within: Words | None = None) -> RowMask:
        valid = _compared(self.value, "==", self.value, columns, None)  # null is not equal to null
        return valid if self.negated else ~valid

    def _text(self) -> str:
        return f"{self.value!r} is null"


# ---- patterns of text


def parts_of(pattern: str, escape: str) -> list[str | None]:
    """The parts of a LIKE pattern: a piece of text stands for itself, ``None`` for any characters, ``""`` for any one
    character. Raises :class:`FilterError` for a pattern that ends with its escape character."""
    found: list[str | None] = []
    text, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            at += 1
            if at == len(pattern):
                raise FilterError(f"the pattern {pattern!r} ends with its escape character")
            char = pattern[at]
        elif char in "%_":
            found += [text] if text else []
            text = ""
            found.append(None if char == "%" else "")
            at += 1
            continue
        text, at = text + char, at + 1
    return found + ([text] if text else [])


@lru_cache(16)
def text_test(kind: str, pattern: str | bytes, escape: str, is_text: bool) -> TextTest:
    """Regular expressions look at characters of a text and bytes of a binary value."""
    if kind in ("starts_with", "ends_with", "contains"):
        return TextTest(kind, pattern if isinstance(pattern, bytes) else pattern.encode(), is_text, None)
    assert isinstance(pattern, str)
    if kind == "matches":
        own = pattern if is_text else pattern.encode()
        return TextTest(kind, own, is_text, re.compile(own).search)
    parts, pieces = parts_of(pattern, escape), {None: ".*", "": "."}
    pattern = "".join(pieces[part] if not part else re.escape(part) for part in parts)
    flags = re.DOTALL | (re.IGNORECASE if kind == "ilike" else 0)
    find = re.compile(pattern if is_text else pattern.encode(), flags).fullmatch
    return TextTest(kind, parts, is_text, find)


# ---- the values of decoded columns


def _both(a: Flags | None, b: Flags | None) -> Flags | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _values_of(column: Column, leaf: Leaf) -> Vector:
    """The values of a column that is decoded as the leaf's type."""
    if column.type.dictionary is not None and column.dictionary is not None:
        if leaf.family in (TEXT, BINARY, UUID):
            return _looked_up(column, _values_of(column.dictionary, leaf))
        column = normalize(column, leaf.node.dotted)
    valid = column.valid_mask()
    if column.type.is_binary_like:
        return Vector(Texts(column.offsets(), column.buffers[1]), valid)
    if column.type.kind == "fixed":
        rows = np.ascontiguousarray(column.values())
        return Vector(Texts(np.arange(len(rows) + 1) * rows.shape[1], rows.reshape(-1)), valid)
    values = column.values()
    if leaf.floats:
        return Vector(values.astype(np.float64), valid)
    if values.ndim == 2:  # little-endian numbers of several bytes
        values = np.array([int.from_bytes(row, "little", signed=True) for row in values], object)
    numbers = integers(values)
    return Vector(Exact(numbers if valid is None else np.where(valid, numbers, 0), integers(leaf.den)), valid)


def _looked_up(column: Column, entries: Vector) -> Vector:
    """The text of each row, from those of the dictionary's entries."""
    valid, codes = column.valid_mask(), np.ascontiguousarray(column.values())
    codes = codes if valid is None else np.where(valid, codes, 0)
    if not column.dictionary:  # nothing but nulls
        return Vector(
            Texts(np.zeros(2, np.int64), b"", np.zeros(column.length, np.int64)), np.zeros(column.length, bool)
        )
    if entries.valid is not None:
        valid = _both(valid, entries.valid[codes])
    return Vector(Texts(entries.data.offsets, entries.data.data, codes), valid)


def _stored_numbers(column: Column) -> tuple[Any, ...]:
    """The values of a column, or its codes, as ``kernels.compare_computed`` takes them."""
    values = column.values()
    if column.type.kind == "decimal" and values.ndim == 2:
        values = values.reshape(-1).view(f"<i{min(values.shape[1], 8)}")
    bits = column.validity if column.null_count else None
    return np.require(values, requirements=("C", "A")), column.length, bits, column.offset
