"""Brute force for filters: every value and literal becomes an exact rank, logic has three values.

Written without the library's binding or evaluators: it walks the user's expression over Python values.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from pyparq.arrow.column import Column
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.filters import expression as ex
from pyparq.format import ttypes as tt
from pyparq.format.annotation import annotate
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import LeafType, Physical

UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
INFINITE = Fraction(10) ** 6000


@dataclass(frozen=True)
class Spec:
    """A column for tests: its leaf, its type in memory, values it may hold, literals to compare them with.

    ``pool`` holds values of the comparable domain (int, float or bytes).
    """

    name: str
    leaf: LeafType
    arrow: pa.DataType
    pool: list[Any]
    literals: list[Any] = field(default_factory=list)

    def rank(self, value: Any) -> Any:
        """Where a domain value stands: comparable with :func:`rank_literal`."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, float):
            return rank_number(value)
        leaf = self.leaf
        if leaf.kind == "decimal":
            return (0, Fraction(value, 10**leaf.scale))
        if leaf.kind == "date":
            return (0, Fraction(value * 86_400 * 10**9))
        if leaf.kind in ("time", "timestamp", "int96"):
            return (0, Fraction(value * UNIT_NS[leaf.unit or "ns"]))
        return (0, Fraction(value))

    def to_arrow(self, values: list[Any]) -> pa.Array:
        """Domain values (and None) as a pyarrow array."""
        if pa.types.is_null(self.arrow):
            return pa.nulls(len(values))
        if pa.types.is_decimal(self.arrow):
            shift = Decimal(f"1e-{self.leaf.scale}")
            with_context = [None if v is None else exact_product(v, shift) for v in values]
            return pa.array(with_context, self.arrow)
        if pa.types.is_temporal(self.arrow):
            width = "int32" if self.arrow.bit_width == 32 else "int64"
            return pa.array(values, pa.type_for_alias(width)).view(self.arrow)
        if pa.types.is_float16(self.arrow):
            return pa.array([None if v is None else np.float16(v) for v in values], self.arrow)
        if pa.types.is_string(self.arrow):
            return pa.array([None if v is None else v.decode() for v in values], self.arrow)
        if pa.types.is_boolean(self.arrow):
            return pa.array([None if v is None else bool(v) for v in values], self.arrow)
        return pa.array(values, self.arrow)


def exact_product(value: int, shift: Decimal) -> Decimal:
    sign, digits, _ = Decimal(value).as_tuple()
    return Decimal((sign, digits, shift.as_tuple().exponent))


def rank_number(value: Any) -> Any:
    """NaN above every number, zeros equal."""
    if isinstance(value, (float, Decimal, np.longdouble)):
        if value != value:
            return (1, 0)
        # Not math.isinf(), which makes a float of it first.
        if str(value).lower().lstrip("+-").startswith("inf"):
            return (0, INFINITE if value > 0 else -INFINITE)
    return (0, Fraction(*value.as_integer_ratio()) if isinstance(value, np.longdouble) else Fraction(value))


def rank_literal(leaf: LeafType, literal: Any) -> Any:
    """The rank of a literal that a user may give for such a column."""
    if isinstance(literal, np.generic) and not isinstance(literal, (np.datetime64, np.timedelta64)):
        if leaf.kind == "decimal" and isinstance(literal, np.floating) and np.isfinite(literal):
            return (0, Fraction(Decimal(str(literal))))
        literal = literal if isinstance(literal, np.longdouble) else literal.item()
    if leaf.kind == "decimal" and isinstance(literal, float) and math.isfinite(literal):
        return (0, Fraction(Decimal(repr(literal))))
    if isinstance(literal, uuid.UUID):
        return literal.bytes
    if isinstance(literal, str):
        if leaf.kind in ("date", "timestamp"):
            return (0, rank_text(literal))
        return uuid.UUID(literal).bytes if leaf.kind == "uuid" else literal.encode()
    if isinstance(literal, bytes):
        return literal
    if isinstance(literal, dt.datetime):
        zone = dt.UTC if literal.tzinfo else None
        since = literal - dt.datetime(1970, 1, 1, tzinfo=zone)
        return (0, Fraction(since // dt.timedelta(microseconds=1) * 1000))
    if isinstance(literal, dt.date):
        return (0, Fraction((literal - dt.date(1970, 1, 1)).days * 86_400 * 10**9))
    if isinstance(literal, dt.time):
        whole = dt.datetime.combine(dt.date(1970, 1, 1), literal) - dt.datetime(1970, 1, 1)
        return (0, Fraction(whole // dt.timedelta(microseconds=1) * 1000))
    if isinstance(literal, np.datetime64):
        return (0, Fraction(int(literal.astype("M8[ns]").astype(np.int64))))
    return rank_number(literal)


def rank_text(text: str) -> Fraction:
    """An ISO string of the kinds the tests use: date, then time with up to 9 digits, then Z or an offset."""
    day, _, clock = text.replace(" ", "T").partition("T")
    total = Fraction((dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days * 86_400)
    if clock.endswith("Z"):
        clock = clock[:-1]
    elif "+" in clock:
        clock, _, zone = clock.partition("+")
        total -= int(zone[:2]) * 3600 + int(zone[3:]) * 60
    for part, seconds in zip(clock.split(":") if clock else [], (3600, 60, 1)):
        total += Fraction(Decimal(part)) * seconds
    return total * 10**9


def evaluate(expression: Any, specs: dict[str, Spec], row: dict[str, Any]) -> bool | None:
    """True, False or None (unknown) for one row of domain values."""
    if isinstance(expression, ex.Not):
        inner = evaluate(expression.child, specs, row)
        return None if inner is None else not inner
    if isinstance(expression, (ex.AllOf, ex.AnyOf)):
        found = [evaluate(c, specs, row) for c in expression.children]
        decisive = isinstance(expression, ex.AnyOf)
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    spec, value = specs[expression.path], row[expression.path]
    if isinstance(expression, ex.IsNull):
        return value is None
    if isinstance(expression, ex.IsIn):
        return _is_in(spec, value, expression.values)
    if value is None:
        return None
    if isinstance(expression, ex.IsNan):
        return value != value
    if isinstance(expression, ex.Matches):
        assert expression.kind == "starts_with"
        prefix = expression.pattern
        return value.startswith(prefix.encode() if isinstance(prefix, str) else prefix)
    ours, theirs = spec.rank(value), rank_literal(spec.leaf, expression.other)
    return {
        "==": ours == theirs, "!=": ours != theirs, "<": ours < theirs, "<=": ours <= theirs,
        ">": ours > theirs, ">=": ours >= theirs,
    }[expression.op]  # fmt: skip


def _is_in(spec: Spec, value: Any, values: tuple[Any, ...]) -> bool | None:
    if not values:
        return False
    if value is None:
        return None
    if any(spec.rank(value) == rank_literal(spec.leaf, v) for v in values if v is not None):
        return True
    return None if None in values else False


def tree_of(specs: list[Spec], nullable: bool = True) -> SchemaTree:
    """A flat schema tree of the columns."""
    elements = [tt.SchemaElement(name="schema", num_children=len(specs))]
    for spec in specs:
        element = tt.SchemaElement(name=spec.name, type=int(spec.leaf.physical), repetition_type=1 if nullable else 0)
        if spec.leaf.length:
            element.type_length = spec.leaf.length
        annotate(element, spec.leaf)
        elements.append(element)
    tree = build_tree(elements)
    assert [leaf.type for leaf in tree.leaves] == [s.leaf for s in specs]
    return tree


def columns_of(arrays: list[pa.Array]) -> dict[int, Column]:
    """pyarrow arrays as our columns, by ordinal."""
    rows = len(arrays[0])
    # A stream gives no batch for no rows: cut one of one row down.
    arrays = arrays if rows else [pa.nulls(1, a.type) for a in arrays]
    _, batches = batches_from_arrow(pa.record_batch(arrays, [str(i) for i in range(len(arrays))]))
    columns = dict(enumerate(next(batches).columns))
    for column in columns.values():
        column.length = rows
    return columns


P = Physical
NAN, INF = math.nan, math.inf
DAY = 86_400


WIDE_FLOATS = np.finfo(np.longdouble).nmant > 52
"""Does numpy have floats here that are wider than Python's?"""
_WIDE = ["1e400", "-1e4000", "inf", "-inf", "1e-4000", "9223372036854775809"] if WIDE_FLOATS else ["inf", "-inf"]

BEYOND_FLOATS: list[Any] = [
    Decimal("1E+400"), Decimal("-1E+400"), Decimal("1E+309"), Decimal("1E+401"), Fraction(10) ** 400,
    -(Fraction(10) ** 400), Fraction(1, 10**400), Fraction(-1, 10**400), Decimal("1E-400"), Decimal("-3E-324"),
    2**63, 2**64 - 1, -(2**63) - 1, 2**53 - 1, Fraction(2**54 + 1, 2), np.uint64(2**64 - 1), np.int64(-(2**63)),
    float(2**63), np.nextafter(float(2**63), 0.0), np.float16(0.1), *map(np.longdouble, _WIDE),
]  # fmt: skip
"""Finite numbers that no float64 holds, or none exactly, and such that only just fit 64 bits."""


def _around_the_edges(narrow: Any) -> list[Any]:
    """Exact numbers next to the largest, the smallest normal and the smallest of all numbers of a float type."""
    info = np.finfo(narrow)
    found: list[Any] = []
    for edge in (info.max, info.smallest_normal, info.smallest_subnormal):
        exact = Fraction(*float(edge).as_integer_ratio())
        for factor in (1, -1, Fraction(1, 2), 1 + Fraction(1, 2**60), 1 - Fraction(1, 2**60), 2):
            found.append(exact * factor)
    return [*found, float(info.max), Decimal(float(info.max)) + 1, -Decimal(float(info.max)) - 1]


def _integers(kind: str, bits: int) -> Spec:
    low, high = (0, 2**bits - 1) if kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    physical = P.INT64 if bits == 64 else P.INT32
    pool = [low, low + 1, 0, 1, 2, 3, 4, high - 1, high]
    literals = [
        low, low - 1, low - 0.5, 0, 1, 2, 2.5, Decimal("3.0"), Fraction(1, 3), 3, -7, high, high + 1,
        high - 1, 2**70,
        -(2**70), INF, -INF, NAN, -0.0, np.int8(3), np.uint64(3), np.float32(1.5), Decimal("1e999"),
        Decimal("NaN"),
        Decimal("-1e-999"), 2**53 + 1, float(2**53), *BEYOND_FLOATS,
    ]  # fmt: skip
    alias = f"{kind}{bits}"
    return Spec(alias, LeafType(physical, kind, bits=bits), pa.type_for_alias(alias), pool, literals)


def _timestamps(unit: str, utc: bool) -> Spec:
    per = 10**9 // UNIT_NS[unit]
    base = 1_700_000_000 * per
    pool = [base, base + 1, base + per, base - 1, -1, 0, 1, DAY * per, 19_675 * DAY * per]
    zone = dt.timezone(dt.timedelta(hours=2, minutes=30))
    literals: list[Any] = [
        dt.datetime(2023, 11, 14, 22, 13, 20), dt.datetime(2023, 11, 14, 22, 13, 20, 1), dt.date(2023, 11,
        14),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.date(1970, 1, 1), "2023-11-14 22:13:20",
        "2023-11-14T22:13:20.000000001", np.datetime64(1_700_000_000, "s"),
        np.datetime64(1_700_000_000_000_000_001, "ns"),
        np.datetime64("2023-11-14"), np.datetime64("2023-11"), dt.date(1, 1, 1), dt.datetime(9999, 12, 31,
        23, 59),
    ]  # fmt: skip
    if utc:
        literals += [
            dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC), dt.datetime(2023, 11, 15, 0, 43, 20,
            tzinfo=zone),
            "2023-11-14T22:13:20Z", "2023-11-15T00:43:20+02:30",
        ]  # fmt: skip
    leaf = LeafType(P.INT64, "timestamp", unit=unit, utc=utc)
    return Spec(f"ts_{unit}_{utc}", leaf, pa.timestamp(unit, "UTC" if utc else None), pool, literals)


def _times(unit: str) -> Spec:
    per = 10**9 // UNIT_NS[unit]
    pool = [0, 1, 5 * per, 5 * per + 1, 3600 * per, DAY * per - 1]
    literals = [dt.time(0, 0, 5), dt.time(1), dt.time(0, 0, 5, 1), dt.time(23, 59, 59, 999_999), dt.time(0)]
    leaf = LeafType(P.INT32 if unit == "ms" else P.INT64, "time", unit=unit, utc=True)
    return Spec(f"time_{unit}", leaf, pa.time32("ms") if unit == "ms" else pa.time64(unit), pool, literals)


def _decimals(name: str, physical: Physical, length: int, precision: int, scale: int) -> Spec:
    top = 10**precision - 1
    one = 10**scale
    pool = [0, 1, -1, one, 2 * one, 5 * one // 2, top, -top, top - 1, 1 << min(63, 3 * precision - 1)]
    literals = [
        0, 1, 2.5, Decimal("2.5"), 0.01, Decimal("0.01"), Decimal("0.015"), -1, Fraction(1, 3), 10**80,
        -(10**80), INF,
        NAN, Decimal(top) / one if precision < 20 else 7, np.float32(0.01), -0.01, Decimal("1e-500"),
        np.int16(2), np.longdouble(0.01), np.longdouble(1) / 100, np.float16(0.01), *BEYOND_FLOATS,
    ]  # fmt: skip
    leaf = LeafType(physical, "decimal", length, precision=precision, scale=scale)
    arrow = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return Spec(name, leaf, arrow, [v for v in pool if abs(v) <= top], literals)


def _floats(kind: str) -> Spec:
    narrow = {"float16": np.float16, "float": np.float32, "double": np.float64}[kind]
    info = np.finfo(narrow)
    pool = [float(narrow(v)) for v in (0.0, -0.0, 0.1, 1, -1, 2.5, 3, INF, -INF, NAN, info.max, info.tiny)]
    literals = [
        0, 0.0, -0.0, 0.1, narrow(0.1), np.float32(0.1), 1, 2, Decimal("0.1"), Fraction(1, 3), NAN, INF,
        -INF, 1e39,
        -1e39, 10**400, -(10**400), float(info.max), 65_519.0, 65_520, 2**53 + 1, Decimal("Infinity"),
        Decimal("1e-500"), 5e-324, *BEYOND_FLOATS, *_around_the_edges(narrow),
    ]  # fmt: skip
    leaf = {
        "float16": LeafType(P.FIXED_LEN_BYTE_ARRAY, "float16", 2),
        "float": LeafType(P.FLOAT, "float"),
        "double": LeafType(P.DOUBLE, "double"),
    }[kind]
    return Spec(kind, leaf, pa.type_for_alias({"float16": "halffloat"}.get(kind, kind)), pool, literals)


_WORDS = ["", "a", "ab", "abc", "b", "ba", "é", "éa", "日本", "日本語", "z\0", "z", "\U0010ffff"]
_RAW = [b"", b"\0", b"\0\0", b"a", b"a\0", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff\xff\0"]
_FOUR = [b"\0\0\0\0", b"\0\0\0\1", b"abcd", b"abce", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"]
_UUIDS = [uuid.UUID(int=v) for v in (0, 1, 2**64, 2**127, 2**128 - 1)]

SPECS: list[Spec] = [
    *(_integers(kind, bits) for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *(_timestamps(unit, utc) for unit in ("ms", "us", "ns") for utc in (True, False)),
    *map(_times, ("ms", "us", "ns")),
    *map(_floats, ("float16", "float", "double")),
    _decimals("dec_i32", P.INT32, 0, 9, 2),
    _decimals("dec_i64", P.INT64, 0, 18, 4),
    _decimals("dec_fixed", P.FIXED_LEN_BYTE_ARRAY, 16, 38, 10),
    _decimals("dec_small", P.FIXED_LEN_BYTE_ARRAY, 5, 11, 2),
    _decimals("dec_binary", P.BYTE_ARRAY, 0, 20, 2),
    _decimals("dec_wide", P.FIXED_LEN_BYTE_ARRAY, 32, 76, 3),
    Spec("bool", LeafType(P.BOOLEAN, "bool"), pa.bool_(), [0, 1], [True, False, np.True_]),
    Spec(
        "date", LeafType(P.INT32, "date"), pa.date32(), [-1, 0, 1, 19_675, 19_676, -719_162],
        [
            dt.date(1970, 1, 1), dt.date(2023, 11, 14), dt.datetime(2023, 11, 14), dt.datetime(2023, 11,
            14, 1),
            "2023-11-14", np.datetime64("2023-11-14"), np.datetime64("2023-11-14T12", "ns"), dt.date(1, 1, 1),
            dt.date(9999, 12, 31),
        ],
    ),
    Spec(
        "string", LeafType(P.BYTE_ARRAY, "string"), pa.string(), [w.encode() for w in _WORDS], [*_WORDS,
        b"ab", "c"],
    ),
    Spec("binary", LeafType(P.BYTE_ARRAY, "binary"), pa.binary(), _RAW, [*_RAW, "ab", b"\xfe"]),
    Spec(
        "fixed", LeafType(P.FIXED_LEN_BYTE_ARRAY, "fixed", 4), pa.binary(4), _FOUR,
        [*_FOUR, b"", b"abc", b"abcde", b"\xff" * 5, "abcd"],
    ),
    Spec(
        "uuid", LeafType(P.FIXED_LEN_BYTE_ARRAY, "uuid", 16), pa.binary(16), [u.bytes for u in _UUIDS],
        [*_UUIDS, str(_UUIDS[1]), _UUIDS[2].bytes],
    ),
]  # fmt: skip
BY_NAME = {spec.name: spec for spec in SPECS}
