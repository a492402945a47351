"""Random lazy queries over ``pyparq.polars.scan``: both engines of polars give what they give over a polars frame.

``PYPARQ_QUESTIONS=5000 PYPARQ_SEED=7 pytest tests/arrow/test_polars_lazy.py`` runs more queries, and others.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from written import written

import pyparq
import pyparq.polars

pl = pytest.importorskip("polars")
testing = pytest.importorskip("polars.testing")
col = pl.col

COUNT = int(os.environ.get("PYPARQ_QUESTIONS", "120"))
SEED = int(os.environ.get("PYPARQ_SEED", "1"))
ROWS = 23
FRAME = pl.DataFrame(
    {
        "i": [None if k % 7 == 3 else k % 5 - 1 for k in range(ROWS)],
        "f": [None if k % 11 == 4 else float("nan") if k % 6 == 1 else k / 8 for k in range(ROWS)],
        "s": [None if k % 9 == 2 else "ab1"[k % 3] for k in range(ROWS)],
        "d": [dt.date(2024, 2, 26) + dt.timedelta(days=k % 5) for k in range(ROWS)],
        "b": [None if k % 8 == 5 else k % 2 == 0 for k in range(ROWS)],
    }
)
STORED = written(FRAME, row_group_size=7, max_rows_per_page=3)
OTHER = pl.LazyFrame({"i": [0, 2, 9], "z": ["p", "q", "r"]})
FILTERS: dict[str, list[Any]] = {
    "i": [col("i") > 0, col("i").is_in([1, None]), col("i").cast(pl.Int8) == 1, col("i").is_null(), col("i") % 2 == 0],
    "f": [col("f") > 1, col("f") == float("nan"), col("f").is_between(0.1, float("inf")), col("f") < col("f").count()],
    "s": [col("s") == "a", col("s").cast(pl.Int64, strict=False) == 1, col("s").str.starts_with("")],
    "d": [col("d") >= dt.datetime(2024, 2, 27, 12), col("d") == dt.date(2024, 2, 28)],
    "b": [col("b"), ~col("b")],
}


class Query:
    """The same query over pyparq's scan and over polars' frame."""

    def __init__(self) -> None:
        self.frames = [pyparq.polars.scan(STORED), FRAME.lazy()]
        self.steps: list[str] = []
        self.ordered = True
        """Whether the order of rows follows from the query."""

    def then(self, text: str, change: Callable[[Any], Any], ordered: bool = True) -> None:
        changed = [change(frame) for frame in self.frames]
        try:
            changed[1].collect_schema()
        except pl.exceptions.PolarsError:  # an earlier step has made another type of a column
            return
        self.frames = changed
        self.steps.append(text)
        self.ordered &= ordered

    @property
    def names(self) -> list[str]:
        return list(self.frames[1].collect_schema())


def any_query(rng: random.Random) -> Query:
    query = Query()
    for _ in range(rng.randrange(1, 6)):
        rng.choice(STEPS)(query, rng)
    return query


def _filter(query: Query, rng: random.Random) -> None:
    known = [test for name in query.names for test in FILTERS.get(name, ())]
    if known:
        one, other = rng.choice(known), rng.choice(known)
        test = rng.choice([one, one & other, one | other, ~one])
        query.then(f"filter({test})", lambda frame: frame.filter(test))


def _columns(query: Query, rng: random.Random) -> None:
    some = rng.sample(query.names, rng.randrange(len(query.names) + 1))
    if rng.random() < 0.5:
        query.then(f"select({some})", lambda frame: frame.select(some))
    else:
        query.then(f"drop({some})", lambda frame: frame.drop(some))


def _index(query: Query, rng: random.Random) -> None:
    name = f"r{len(query.steps)}"
    if query.ordered:
        query.then("with_row_index()", lambda frame: frame.with_row_index(name))


def _some_rows(query: Query, rng: random.Random) -> None:
    if not query.ordered:
        return
    start, length = rng.randrange(ROWS), rng.randrange(9)
    ways: dict[str, Callable[[Any], Any]] = {
        "head": lambda frame: frame.head(length), "tail": lambda frame: frame.tail(length),
        "slice": lambda frame: frame.slice(start, length), "reverse": lambda frame: frame.reverse(),
        "gather": lambda frame: frame.gather_every(3), "from": lambda frame: frame.slice(start),
    }  # fmt: skip
    way = rng.choice([*ways])
    query.then(f"{way}({start}, {length})", ways[way])


def _add(query: Query, rng: random.Random) -> None:
    name = f"k{len(query.steps)}"
    values = [pl.lit(1), pl.len()]
    if query.ordered:
        values += [pl.int_range(pl.len()), *(col(other).shift(1) for other in query.names[:1])]
    value = rng.choice(values)
    query.then(f"with_columns({value})", lambda frame: frame.with_columns(value.alias(name)))


def _alone(query: Query, rng: random.Random) -> None:
    names = query.names
    values = [pl.len(), pl.int_range(pl.len()).alias("k"), pl.lit(1).alias("k"), pl.all().count()]
    if names and query.ordered:
        values += [col(names[0]).last(), col(names[-1]).first(), col(names[0]).is_null().sum()]
    value = rng.choice(values)
    query.then(f"select({value})", lambda frame: frame.select(value))


def _groups(query: Query, rng: random.Random) -> None:
    keys = [name for name in ("s", "d", "b") if name in query.names]
    if keys:
        key = rng.choice(keys)
        query.then(f"group_by({key})", lambda frame: frame.group_by(key).len(), ordered=False)


def _join(query: Query, rng: random.Random) -> None:
    names, how = query.names, rng.choice(["inner", "left", "semi", "anti", "cross"])
    if "z" in names or (how == "cross" and "i" in names):
        return
    if how == "cross":
        query.then("join(cross)", lambda frame: frame.join(OTHER.select("z"), how="cross"), ordered=False)
    elif "i" in names:
        query.then(f"join({how})", lambda frame: frame.join(OTHER, on="i", how=how), ordered=False)


def _twice(query: Query, rng: random.Random) -> None:
    if rng.random() < 0.5:
        query.then("concat(twice)", lambda frame: pl.concat([frame, frame]))
    elif query.names:
        query.then("unique()", lambda frame: frame.unique(), ordered=False)


STEPS = (_filter, _filter, _columns, _columns, _index, _some_rows, _add, _alone, _groups, _join, _twice)


@pytest.mark.timeout(7200)
def test_random_queries() -> None:
    rng = random.Random(SEED)
    for _ in range(COUNT):
        query = any_query(rng)
        for engine in ("in-memory", "streaming"):
            text = f"{engine}: {'.'.join(query.steps)}"
            try:
                right = query.frames[1].collect(engine=engine)
            except pl.exceptions.PolarsError:
                continue
            found = query.frames[0].collect(engine=engine)
            assert found.shape == right.shape, text
            try:
                testing.assert_frame_equal(found, right, check_row_order=query.ordered)
            except AssertionError as error:
                raise AssertionError(text) from error
