"""Filters on nested columns: items of lists, null tests at any level, against what plain Python says row by row."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nested_tables import FILES, ROWS, Row

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, FilterError
from pyparq.filters.expression import Expression


@pytest.fixture(scope="module", params=list(FILES))
def data(request: pytest.FixtureRequest) -> bytes:
    return FILES[request.param]()


REQUIRED_INT = pa.field("element", pa.int64(), nullable=False)


def same(a: Any, b: Any) -> bool:
    return a is not None and (a == b or (a != a and b != b))


def flat(value: Any, *fields: str) -> list[Any]:
    """All items below nested lists, with fields taken on the way."""
    if value is None:
        return []
    if isinstance(value, list):
        return [x for v in value for x in flat(v, *fields)]
    if isinstance(value, dict):
        return flat(value[fields[0]], *fields[1:])
    return [value]


def contains(value: Any, wanted: Any, *fields: str) -> bool | None:
    return None if value is None else any(same(x, wanted) for x in flat(value, *fields))


def field(value: Any, *names: str) -> Any:
    for name in names:
        value = None if value is None else value[name]
    return value


def holds_null(value: Any, *fields: str) -> bool | None:
    """Is there a null below the outermost list, on the way to what ``fields`` name?"""

    def found(value: Any, fields: tuple[str, ...]) -> bool:
        if isinstance(value, list):
            return any(found(v, fields) for v in value)
        return value is None or (len(fields) > 0 and found(value[fields[0]], fields[1:]))

    return None if value is None else found(value, fields)


Question = tuple[Expression, Callable[[Row], bool | None]]
NAN = float("nan")
CONTAINS: list[Question] = [
    (col("l").contains(3), lambda r: contains(r["l"], 3)),
    (col("l").contains(24), lambda r: contains(r["l"], 24)),
    (col("l").contains(9999), lambda r: contains(r["l"], 9999)),
    (col("l").contains(3.5), lambda r: contains(r["l"], 3.5)),
    (col("l").contains(2**40), lambda r: contains(r["l"], 2**40)),
    (col("ll").contains("w004"), lambda r: contains(r["ll"], "w004")),
    (col("ls.x").contains(20), lambda r: contains(r["ls"], 20, "x")),
    (col("ls.y").contains("w010"), lambda r: contains(r["ls"], "w010", "y")),
    (col("ls.z").contains(7), lambda r: contains(r["ls"], 7, "z")),
    (col("ls.list.element.y").contains("w010"), lambda r: contains(r["ls"], "w010", "y")),
    (col("m.key").contains("k3"), lambda r: None if r["m"] is None else "k3" in r["m"]),
    (col("m", "value").contains(15), lambda r: None if r["m"] is None else 15 in r["m"].values()),
    (col("r").contains(12), lambda r: contains(r["r"], 12)),
    (col("r").contains(2**33), lambda r: contains(r["r"], 2**33)),
    (col("sl.v").contains(0.0), lambda r: contains(field(r["sl"], "v"), 0.0)),
    (col("sl.v").contains(NAN), lambda r: contains(field(r["sl"], "v"), NAN)),
]
NULL_ITEMS: list[Question] = [
    (col("l").contains(None), lambda r: holds_null(r["l"])),
    (col("ll").contains(None), lambda r: holds_null(r["ll"])),
    (col("ls").contains(None), lambda r: holds_null(r["ls"])),
    (col("ls.x").contains(None), lambda r: holds_null(r["ls"], "x")),
    (col("ls.y").contains(None), lambda r: holds_null(r["ls"], "y")),
    (col("ls.z").contains(None), lambda r: holds_null(r["ls"], "z")),
    (col("m.key").contains(None), lambda r: None if r["m"] is None else False),
    (col("m.value").contains(None), lambda r: None if r["m"] is None else None in r["m"].values()),
    (col("r").contains(None), lambda r: False),
    (col("sl.v").contains(None), lambda r: holds_null(field(r["sl"], "v"))),
]
NULLS: list[Question] = [
    (col("s").is_null(), lambda r: r["s"] is None),
    (col("s.a").is_null(), lambda r: field(r["s"], "a") is None),
    (col("s.in").is_null(), lambda r: field(r["s"], "in") is None),
    (col("s.in.b").is_null(), lambda r: field(r["s"], "in", "b") is None),
    (col("l").is_null(), lambda r: r["l"] is None),
    (col("ll").is_null(), lambda r: r["ll"] is None),
    (col("ls").is_null(), lambda r: r["ls"] is None),
    (col("m").is_null(), lambda r: r["m"] is None),
    (col("r").is_null(), lambda r: r["r"] is None),
    (col("sl").is_null(), lambda r: r["sl"] is None),
    (col("sl.v").is_null(), lambda r: field(r["sl"], "v") is None),
]


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def negated(a: bool | None) -> bool | None:
    return None if a is None else not a


JOINED: list[Question] = [
    (
        col("l").contains(None) & col("l").contains(3) & ~col("ls").contains(None),
        lambda r: both(both(holds_null(r["l"]), contains(r["l"], 3)), negated(holds_null(r["ls"]))),
    ),
    (
        col("l").contains(3) & col("l").contains(5),  # different items: no contradiction
        lambda r: both(contains(r["l"], 3), contains(r["l"], 5)),
    ),
    (
        col("l").contains(3) & ~col("s").is_null() & (col("id") > 50),
        lambda r: both(both(contains(r["l"], 3), r["s"] is not None), r["id"] > 50),
    ),
    (
        ~(col("l").contains(3) | col("s.a").is_null()),
        lambda r: both(negated(contains(r["l"], 3)), field(r["s"], "a") is not None),
    ),
    (
        (col("s.a") == 20) & col("ls.x").contains(20),
        lambda r: both(None if field(r["s"], "a") is None else r["s"]["a"] == 20, contains(r["ls"], 20, "x")),
    ),
]


@pytest.mark.parametrize("negate", [False, True], ids=["", "not"])
@pytest.mark.parametrize("question", CONTAINS + NULL_ITEMS + NULLS + JOINED, ids=lambda q: str(q[0]))
def test_rows_are_those_that_python_finds(data: bytes, question: Question, negate: bool) -> None:
    expression, oracle = question
    answers = [oracle(row) for row in ROWS]
    expected = [row["id"] for row, answer in zip(ROWS, answers, strict=True) if answer is (not negate)]
    filters = ~expression if negate else expression
    found = pyparq.read_table(data, columns=["id"], filters=filters)
    assert found.to_pydict()["id"] == expected
    with pyparq.ParquetFile(data) as file:
        assert file.scan(filters=filters).count() == len(expected)


@pytest.mark.parametrize("columns", [["ls"], ["ls.y", "s"], ["l", "m"], None], ids=str)
def test_nested_columns_of_the_rows_found(data: bytes, columns: list[str] | None) -> None:
    filters = col("l").contains(3) | col("ls.y").contains("w010")
    found = pyparq.read_table(data, columns=columns, filters=filters).to_arrow()
    keep = [bool(contains(r["l"], 3)) or bool(contains(r["ls"], "w010", "y")) for r in ROWS]
    whole = pyparq.read_table(data, columns=columns).to_arrow()
    assert found.num_rows == sum(keep)
    assert repr(found.to_pylist()) == repr(whole.filter(pa.array(keep)).to_pylist())  # NaN is not equal to itself


def explained(data: bytes, filters: Expression) -> Any:
    with pyparq.ParquetFile(data) as file:
        return file.scan(["id"], filters).explain()


@pytest.mark.parametrize(
    "filters",
    [
        col("l").contains(3),
        col("ls.x").contains(25),
        col("ll").contains("w002"),
        col("m.key").contains("k1"),
        col("r").contains(2),
        (col("s.a") == 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["ours", "pyarrow"])
def test_pages_that_cannot_match_are_skipped(name: str, filters: Expression) -> None:
    seen = explained(FILES[name](), filters)
    assert 0 < seen.rows <= seen.candidate_rows < len(ROWS) * 0.6
    assert "column index" in [stage.name for stage in seen.stages]


@pytest.mark.parametrize("name", ["ours", "pyarrow"])
@pytest.mark.parametrize(
    ("filters", "most"),
    [
        (~col("s.in").is_null(), 1150),  # four pages without any struct
        (~col("l").is_null(), 1150),
        (~col("s").is_null(), 1150),
        (col("ls").contains(None), 1150),
        (col("ls.y").contains(None), 1150),
        (col("l").contains(None), 1150),
    ],
    ids=str,
)
def test_null_tests_of_groups_skip_pages(name: str, filters: Expression, most: int) -> None:
    seen = explained(FILES[name](), filters)
    assert seen.rows < seen.candidate_rows <= most


def test_a_bloom_filter_answers_for_items() -> None:
    seen = explained(FILES["ours v2 bloom"](), col("ls.y").contains("w003x"))
    assert seen.rows == 0
    assert seen.pages_decoded == 0


@pytest.mark.parametrize("write", [pyparq.write_table, pq.write_table], ids=["ours", "pyarrow"])
def test_levels_alone_can_answer(write: Any) -> None:
    """A group that is never null (or always) costs no page at all."""
    table = pa.table({"s": pa.array([{"a": None}] * 100, pa.struct([("a", pa.int32())]))})
    sink = io.BytesIO()
    write(table, sink)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        for filters, rows in ((col("s").is_null(), 0), (~col("s").is_null(), 100), (col("s.a").is_null(), 100)):
            scan = file.scan([], filters)
            assert scan.count() == rows
            assert scan.reader.counts.data_pages == 0


@pytest.mark.parametrize(
    ("filters", "says"),
    [
        (col("ls").contains(1), "ls.list.element.x"),
        (col("s.a").contains(1), "use == to compare"),
        (col("l") == 1, "contains"),
        (col("ls.x").is_null(), r"do not look inside lists.*\.contains\(None\)"),
        (col("s.a").contains(None), r"use \.is_null\(\)"),
        (col("m").contains(None), r"use \.is_null\(\)"),
        (col("l").contains("a"), "cannot compare"),
        (col("s") == 1, "nested fields"),
    ],
    ids=str,
)
def test_what_cannot_be_asked(filters: Expression, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        pyparq.read_table(FILES["ours"](), filters=filters)


@pytest.mark.parametrize("null", [None, pd.NA, pd.NaT], ids=repr)
def test_any_null_asks_for_null_items(null: Any) -> None:
    found = pyparq.read_table(FILES["ours"](), columns=["id"], filters=col("l").contains(null)).to_pydict()["id"]
    assert found == [r["id"] for r in ROWS if holds_null(r["l"])]


def test_levels_prove_lists_without_null_items() -> None:
    """No page is read where the histograms know of no null item, none where lists must not hold any."""
    optional = pa.table({"l": [[1, 2], [], [3]], "k": [1, 2, 3]})
    for table in (optional, optional.cast(pa.schema([("l", pa.list_(REQUIRED_INT)), ("k", pa.int64())]))):
        sink = io.BytesIO()
        pyparq.write_table(table, sink)
        with pyparq.ParquetFile(sink.getvalue()) as file:
            scan = file.scan([], col("l").contains(None))
            assert scan.count() == 0
            assert scan.reader.counts.data_pages == 0
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"l": [[1, 2], [], [3], [None]]}), sink, max_rows_per_page=1)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        seen = file.scan(filters=~col("l").contains(None)).explain()
        assert (seen.rows, seen.candidate_rows) == (3, 4)
        assert str(file.scan(filters=col("l").contains(None)).predicate) == "l.list.element contains null"


def test_contains_takes_no_column() -> None:
    with pytest.raises(FilterError, match="not a column"):
        col("l").contains(col("id"))


@pytest.mark.parametrize("path", ["ls.nope", "ls.x.y", "m.keys", "l.list.element.x"])
def test_unknown_logical_paths(path: str) -> None:
    with pytest.raises(ColumnNotFoundError, match=path):
        pyparq.read_table(FILES["ours"](), columns=[path])


ANY_SQL = col("s").is_null() | (col("ll").contains("w004") & ~col("l").is_null())


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("list_contains(l, 3)", col("l").contains(3)),
        ("3 = ANY(l)", col("l").contains(3)),
        ("NOT array_contains(ls.y, 'w010')", ~col("ls.y").contains("w010")),
        ("s IS NULL OR 'w004' = ANY(ll) AND l IS NOT NULL", ANY_SQL),
    ],
    ids=str,
)
def test_in_sql(text: str, expression: Expression) -> None:
    where = pytest.importorskip("pyparq.filters.sql_text")
    data = FILES["ours"]()
    with pyparq.ParquetFile(data) as file:
        found = file.read(["id"], where.parse_where(text, file.tree)).to_pydict()
        assert found == file.read(["id"], expression).to_pydict()
        assert 0 < len(found["id"]) < len(ROWS)
        with pytest.raises(FilterError, match="NULL equals nothing"):
            where.parse_where("list_contains(l, NULL)", file.tree)
        with pytest.raises(FilterError, match="use == to compare"):
            where.parse_where("list_contains(id, 1)", file.tree)
