"""A file worth pruning, random predicates on it, and an oracle of what an index can prove about them.

The oracle knows the true values of each page and judges by the facts that an index records of them: smallest and
largest value, nulls, NaNs. It tries what could lie between the bounds; it shares no code with the evaluators.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyparq
from pyparq import col

ROWS, GROUP, PAGE = 1200, 400, 25


def drifting(rng: np.random.Generator, spread: int) -> np.ndarray[Any, Any]:
    """Whole numbers whose pages overlap a little: -20 to 20."""
    return np.clip(np.arange(ROWS) * 40 // ROWS - 20 + rng.integers(-spread, spread + 1, ROWS), -20, 20)


@lru_cache
def table() -> pa.Table:
    rng = np.random.default_rng(5)

    def holes(share: float = 0.2) -> np.ndarray[Any, Any]:
        mask = rng.random(ROWS) < share
        mask[3 * PAGE : 4 * PAGE] = True  # a page of nulls
        mask[6 * PAGE : 8 * PAGE] = False  # pages without
        return mask

    floats = drifting(rng, 3) / 4.0
    floats[rng.random(ROWS) < 0.04] = math.nan
    floats[(floats == 0) & (rng.random(ROWS) < 0.5)] = -0.0
    few_nan = drifting(rng, 2) / 2.0
    few_nan[GROUP + 7] = math.nan
    words = [("m" * int(k // 8 + 4)) + chr(97 + int(k) % 5) for k in drifting(rng, 2)]
    cents = [Decimal(int(k)) / 10 for k in drifting(rng, 2)]
    return pa.table(
        {
            "row": pa.array(np.arange(ROWS)),
            "i": pa.array(drifting(rng, 2).astype(np.int32)),
            "n": pa.array(drifting(rng, 3), mask=holes()),
            "u": pa.array((drifting(rng, 1) + 20).astype(np.uint16), mask=holes(0.02)),
            "f": pa.array(floats, mask=holes()),
            "g": pa.array(few_nan.astype(np.float32)),
            "b": pa.array(drifting(rng, 1) > 0, mask=holes(0.1)),
            "s": pa.array(words, mask=holes()),
            "d": pa.array(drifting(rng, 2).astype(np.int32), pa.date32()),
            "t": pa.array(drifting(rng, 2) * 1000, pa.timestamp("ms")),
            "p": pa.array(cents, pa.decimal128(7, 1), mask=holes(0.05)),
            "big": pa.array([c * 10**20 for c in cents], pa.decimal128(30, 1)),
        }
    )


def by_pyarrow(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, row_group_size=GROUP, max_rows_per_page=PAGE, write_batch_size=PAGE, write_page_index=True,
        bloom_filter_options={"i": {"ndv": 40}, "s": {"ndv": 40}, "n": {"ndv": 40}}, **options,
    )  # fmt: skip
    return sink.getvalue()


def by_us(**options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(
        table(), sink, row_group_size=GROUP, max_rows_per_page=PAGE, bloom_filters=["i", "s", "n", "f"], **options
    )
    return sink.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "pyarrow": lambda: by_pyarrow(),
    "pyarrow-v2-plain": lambda: by_pyarrow(use_dictionary=False, data_page_version="2.0", compression="zstd"),
    "ours": lambda: by_us(),
    "ours-row_group-v2": lambda: by_us(bloom_filter_layout="row_group", data_page_version="2.0", use_dictionary=False),
}


@lru_cache
def file_bytes(name: str) -> bytes:
    return FILES[name]()


# ---- values in an order of their own: numbers, bytes; NaN last


@lru_cache
def ranks(column: str) -> list[Any]:
    """Values as the oracle compares them: ints, floats, bytes, None."""
    return [rank(v) for v in table().column(column).to_pylist()]


def rank(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return int((value - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1))
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    if isinstance(value, Decimal):
        return int(value * 10)
    if isinstance(value, str):
        return value.encode()
    return int(value) if isinstance(value, bool) else value


def scale(column: str) -> int:
    """The oracle's whole numbers per unit of a literal."""
    return 10 if column in ("p", "big") else 1


# ---- random predicates: a tree of tests, as an expression, as SQL and for the oracle


@dataclass
class Node:
    op: str
    column: str = ""
    values: list[Any] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)


PYTHON = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def random_test(rng: random.Random) -> Node:
    column = rng.choice(["i", "n", "u", "f", "g", "b", "s", "d", "t", "p", "big"])
    op = rng.choice(["==", "==", "!=", "<", "<=", ">", ">=", "in", "in", "not in", "is_null", "is_not_null"])
    if column in "fg" and rng.random() < 0.15:
        op = rng.choice(["is_nan", "is_not_nan"])
    if column == "s" and rng.random() < 0.15:
        op = rng.choice(["starts_with", "not starts_with"])
    if op.startswith("is_"):
        return Node(op, column)
    values = [random_literal(column, rng, op) for _ in range(rng.choice((1, 2, 4, 9)) if op.endswith("in") else 1)]
    return Node(op, column, values)


def random_literal(column: str, rng: random.Random, op: str) -> Any:
    known = [v for v in table().column(column).to_pylist() if v is not None and v == v]
    value = rng.choice(known)
    if "starts_with" in op:
        return value[: rng.randrange(0, len(value) + 1)]
    if rng.random() < 0.7:
        return value
    if column in "inu":
        return rng.choice([value + 0.5, value + 100, -(2**40), 2**65])
    if column in "fg":
        return rng.choice([0.1, math.inf, -math.inf, 0.0, -0.0, math.nan])
    if column == "s":
        return value + rng.choice(["", "a", "\U0001f980"])
    if column == "d":
        return value + dt.timedelta(days=rng.randrange(-50, 50))
    if column == "t":
        return value + dt.timedelta(microseconds=rng.choice([1, 999_000]))
    if column in ("p", "big"):
        return value + Decimal(rng.choice(["0.05", "100", "-0.1"]))
    return value


def random_tree(rng: random.Random, depth: int = 2) -> Node:
    if depth == 0 or rng.random() < 0.4:
        return random_test(rng)
    return Node(rng.choice(["and", "or"]), children=[random_tree(rng, depth - 1) for _ in range(rng.choice((2, 2, 3)))])


def expression(node: Node) -> Any:
    if node.children:
        first, *rest = map(expression, node.children)
        for other in rest:
            first = first & other if node.op == "and" else first | other
        return first
    column, op = col(node.column), node.op
    if op in PYTHON:
        return PYTHON[op](column, node.values[0])
    if op.endswith("in"):
        return ~column.isin(node.values) if op == "not in" else column.isin(node.values)
    if op.endswith("starts_with"):
        return ~column.starts_with(node.values[0]) if op.startswith("not") else column.starts_with(node.values[0])
    return {
        "is_null": column.is_null, "is_not_null": column.is_valid, "is_nan": column.is_nan,
        "is_not_nan": lambda: ~column.is_nan(),
    }[op]()  # fmt: skip


def passes(node: Node, value: Any) -> bool:
    """Is the test true of a value (in the oracle's ranks, not null)?"""
    nan = isinstance(value, float) and math.isnan(value)
    if node.op == "is_not_null":
        return True
    if node.op in ("is_nan", "is_not_nan"):
        return nan == (node.op == "is_nan")
    if node.op == "is_null":
        return False
    if node.op.endswith("starts_with"):
        return value.startswith(node.values[0].encode()) != node.op.startswith("not")
    literals = [literal_rank(node.column, v) for v in node.values]
    if node.op == "in":
        return any(compare("==", value, x) for x in literals)
    if node.op == "not in":
        return not any(compare("==", value, x) for x in literals)
    return compare(node.op, value, literals[0])


def literal_rank(column: str, value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return Decimal((value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)) / 1000
    if isinstance(value, Decimal):
        return value * scale(column)
    return rank(value)


def compare(op: str, a: Any, b: Any) -> bool:
    """With NaN equal to itself and above every number."""
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        return bool(PYTHON[op](a_nan, b_nan))
    return bool(PYTHON[op](a, b))


def true_rows(node: Node) -> np.ndarray[Any, Any]:
    """The rows where the predicate is true. There is no NOT above a test, so unknown may count as false."""
    if node.children:
        masks = [true_rows(child) for child in node.children]
        return np.logical_and.reduce(masks) if node.op == "and" else np.logical_or.reduce(masks)
    values = ranks(node.column)
    if node.op == "is_null":
        return np.array([v is None for v in values])
    return np.array([v is not None and passes(node, v) for v in values])


# ---- what an index can know of a page


@dataclass
class Facts:
    """One page: what its index entry says."""

    start: int
    end: int
    low: Any
    high: Any
    nulls: int
    nans: int | None
    size: int

    def candidates(self, node: Node) -> Iterator[Any]:
        """Values between the bounds, as many kinds as matter; all whole numbers, or those next to literals."""
        if self.low is None:
            return
        if isinstance(self.low, int):
            if self.high - self.low < 100:
                yield from range(self.low, self.high + 1)
                return
            tries = [self.low, self.high, self.low + 1]
            for value in node.values:
                literal = math.floor(literal_rank(node.column, value))
                tries += [literal - 1, literal, literal + 1, literal + 2]
            yield from (t for t in tries if self.low <= t <= self.high)
        else:
            yield self.low
            yield self.high
            if isinstance(self.low, float) and self.low < self.high:
                yield from (k / 80 for k in range(math.ceil(self.low * 80), math.floor(self.high * 80) + 1))

    def verdict(self, node: Node) -> tuple[bool, bool]:
        """(a row could match, every row must)."""
        if node.op == "is_null":
            return self.nulls > 0, self.nulls == self.size
        if self.nulls == self.size:
            return False, False
        outcomes = {passes(node, v) for v in self.candidates(node)}
        if isinstance(self.low, bytes) and self.low < self.high:
            outcomes |= between(node, self.low, self.high)
        if self.nans is None:
            outcomes |= {passes(node, math.nan)} | ({True, False} if self.low is None else set())
        elif self.nans:
            outcomes.add(passes(node, math.nan))
        return True in outcomes, outcomes == {True} and self.nulls == 0


def between(node: Node, low: bytes, high: bytes) -> set[bool]:
    """What the test can say of byte strings within two different bounds: try those next to every literal."""
    tries = [low, high]
    for value in node.values:
        literal = value.encode()
        tries += [literal, literal + b"\0", literal[:-1], literal + b"\xff"]
        if literal:
            tries += [
                literal[:-1] + bytes([max(literal[-1] - 1, 0)]),
                literal[:-1] + bytes([min(literal[-1] + 1, 255)]),
            ]
    tries.append(low + b"\0")
    return {passes(node, t) for t in tries if low <= t <= high}


def pages_of(file: pyparq.ParquetFile, group: int, column: str) -> list[Facts] | None:
    """The facts of each page, from the true values; ``None`` where the chunk has no ColumnIndex."""
    index, locations = file.column_index(group, column), file.page_locations(group, column)
    assert locations is not None
    if index is None:
        return None
    starts = locations.first_rows.tolist()
    found = []
    for k, (start, end) in enumerate(zip(starts, [*starts[1:], GROUP], strict=True)):
        values = ranks(column)[group * GROUP + start : group * GROUP + end]
        there = [v for v in values if v is not None]
        numbers = [v for v in there if v == v]
        nans = None if index.nan_counts[k] < 0 else len(there) - len(numbers)
        low, high = (min(numbers), max(numbers)) if numbers else (None, None)
        found.append(Facts(start, end, low, high, len(values) - len(there), nans, len(values)))
    return found


def row_sets(node: Node, file: pyparq.ParquetFile, group: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(rows that could match, rows that must) of a row group, page by page."""
    if node.children:
        maybes, sures = zip(*(row_sets(child, file, group) for child in node.children), strict=True)
        join = np.logical_and.reduce if node.op == "and" else np.logical_or.reduce
        return join(maybes), join(sures)
    maybe, sure = np.ones(GROUP, bool), np.zeros(GROUP, bool)
    for page in facts(file, group, node.column) or ():
        maybe[page.start : page.end], sure[page.start : page.end] = page.verdict(node)
    return maybe, sure


_facts: WeakKeyDictionary[pyparq.ParquetFile, dict[tuple[int, str], list[Facts] | None]] = WeakKeyDictionary()


def facts(file: pyparq.ParquetFile, group: int, column: str) -> list[Facts] | None:
    known = _facts.setdefault(file, {})
    if (group, column) not in known:
        known[group, column] = pages_of(file, group, column)
    return known[group, column]


# ---- which pages a read needs


Page = tuple[int, str, int, int]
"""(row group, column, offset, size)."""


def all_pages(file: pyparq.ParquetFile) -> Iterator[Page]:
    for group in range(3):
        for leaf in file.tree.leaves:
            locations = file.page_locations(group, leaf.name)
            assert locations is not None
            for offset, size in zip(locations.offsets.tolist(), locations.sizes.tolist(), strict=True):
                yield group, leaf.name, offset, size


def needed_pages(node: Node, file: pyparq.ParquetFile, outputs: list[str]) -> set[Page]:
    needed: set[Page] = set()
    truth = true_rows(node)
    for group in range(3):
        maybe, sure = row_sets(node, file, group)
        undecided = maybe & ~sure
        survivors = truth[group * GROUP : (group + 1) * GROUP]
        first = columns_of(node) if undecided.any() else set()
        wanted = {c: maybe if c in outputs else undecided for c in first}
        wanted |= {c: survivors for c in outputs if c not in first}
        for column, rows in wanted.items():
            locations = file.page_locations(group, column)
            assert locations is not None
            starts = locations.first_rows.tolist()
            for k, (a, b) in enumerate(zip(starts, [*starts[1:], GROUP], strict=True)):
                if rows[a:b].any():
                    needed.add((group, column, int(locations.offsets[k]), int(locations.sizes[k])))
    return needed


def columns_of(node: Node) -> set[str]:
    return set().union(*map(columns_of, node.children)) if node.children else {node.column}


# ---- in SQL


def sql(node: Node) -> str:
    if node.children:
        return "(" + f" {node.op} ".join(map(sql, node.children)) + ")"
    name, op = f'"{node.column}"', node.op
    if op in PYTHON:
        return f"{name} {'=' if op == '==' else op} {sql_literal(node.values[0])}"
    if op.endswith("in"):
        return f"{name} {op} ({', '.join(map(sql_literal, node.values))})"
    if op.endswith("starts_with"):
        return f"{'not ' if op.startswith('not') else ''}starts_with({name}, {sql_literal(node.values[0])})"
    return {
        "is_null": f"{name} is null", "is_not_null": f"{name} is not null", "is_nan": f"isnan({name})",
        "is_not_nan": f"not isnan({name})",
    }[op]  # fmt: skip


def sql_literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"'{value}'::double" if not math.isfinite(value) else f"{value!r}::double"
    if isinstance(value, int):
        return f"{value}::hugeint" if abs(value) < 2**126 else f"{value}"
    if isinstance(value, dt.datetime):
        return f"timestamp '{value}'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    if isinstance(value, Decimal):
        return str(value)
    return f"'{value}'"
