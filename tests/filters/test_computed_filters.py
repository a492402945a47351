"""Filters on computed values: random ones against Python's three-valued logic, in files of several writers."""

from __future__ import annotations

import datetime as dt
import io
import pickle
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import computed_oracle as oracle
import pyarrow as pa
import pytest

import pyparq
from pyparq import FilterError, col
from pyparq.filters import expression as ex


def expected(where: Any) -> list[int]:
    return [n for n, row in enumerate(oracle.rows()) if oracle.evaluate(where, row)]


def check(seed: int) -> None:
    rng = random.Random(seed)
    where = oracle.expression(rng)
    name = rng.choice(list(oracle.files()))
    data, wanted = oracle.files()[name], expected(where)
    with pyparq.ParquetFile(data) as file:
        scan = file.scan(columns=["row"], filters=where)
        assert scan.to_table().to_pydict()["row"] == wanted, (seed, name, where)
        assert file.scan(filters=where).count() == len(wanted), (seed, name, where)
        plan = pickle.loads(pickle.dumps(file.scan(columns=["row"], filters=where).plan()))
        assert file.execute(plan).to_pydict()["row"] == wanted, (seed, name, where)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_random_filters(start: int) -> None:
    for seed in range(start, start + 100):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 30_000, 5000))
def test_many_random_filters(start: int) -> None:
    for seed in range(start, start + 5000):
        check(seed)


def test_folders_with_partition_columns(tmp_path: Path) -> None:
    table = oracle.table()
    pyparq.write_dataset(table, tmp_path, partition_cols=["c"])
    found = pyparq.dataset(tmp_path)
    for seed in range(1000, 1060):
        where = oracle.expression(random.Random(seed))
        rows = found.scan(columns=["row"], filters=where).to_table().to_pydict()["row"]
        assert sorted(rows) == expected(where), (seed, where)
    where = col("c") < col("w")
    assert sorted(found.read(columns=["row"], filters=where).to_pydict()["row"]) == expected(where)


def test_a_missing_column_is_null(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1, 2], "b": [2, 1]}, tmp_path / "1.parquet")
    pyparq.write_table({"a": [3]}, tmp_path / "2.parquet")
    found = pyparq.dataset(tmp_path)
    assert found.read(filters=col("a") < col("b")).to_pydict()["a"] == [1]
    assert found.read(filters=~(col("a") < col("b"))).to_pydict()["a"] == [2]
    assert found.read(filters=(col("a") + col("b")).is_null()).to_pydict()["a"] == [3]


def test_integers_never_wrap() -> None:
    big = 2**63 - 1
    data = pa.table({"a": [big, -(2**63), 1], "b": [2, 3, big]})
    sink = io.BytesIO()
    pyparq.write_table(data, sink)
    read = lambda where: pyparq.read_table(sink.getvalue(), filters=where).to_pydict()["a"]  # noqa: E731
    assert read(col("a") * col("b") > 2**63) == [big]
    assert read(col("a") * 4 - 1 < -(2**64)) == [-(2**63)]
    assert read(col("a") + col("b") == 2**63) == [1]


@pytest.mark.parametrize("seed", [504554, 506185])
def test_infinity_and_nan_at_the_end_of_a_range(seed: int) -> None:
    check(seed)


def nested() -> bytes:
    sink = io.BytesIO()
    rows = [{"x": 1, "y": 2}, {"x": None, "y": 1}, None, {"x": 5, "y": 4}]
    pyparq.write_table(pa.table({"n": [0, 1, 2, 3], "s": rows}), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (col("s.x") < col("s.y"), [0]), (~(col("s.x") < col("s.y")), [3]), (col("s.x") * 2 == 10, [3]),
        ((col("s.x") + 1).is_null(), [1, 2]), (col("s.y").isin([1, 4]), [1, 3]), (col("s.y") > col("n"), [0, 3]),
    ],
    ids=repr,
)  # fmt: skip
def test_fields_of_structs(where: Any, rows: list[int]) -> None:
    assert pyparq.read_table(nested(), filters=where).to_pydict()["n"] == rows


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        (col("i") * 2 + 1 > 10, "i >= 5"), (~(col("i") * 2 + 1 > 10), "i <= 4"), (3 - col("i") >= 1, "i <= 2"),
        (col("i") / 4 == 1, "i == 4"), (col("i") * 2 == 5, "false"), (-col("i") < 0, "i >= 1"),
        (col("t").year() == 2020, "t >= 2020-01-01T00:00:00.000000 and t <= 2020-12-31T23:59:59.999999"),
        (col("d").year() >= 2020, "d >= 2020-01-01"), (col("f") * 2 < 1, "f <= 0.49999999999999994"),
        (col("s").like("ab%"), "s starts with 'ab'"), (col("s").like("abc"), "s == 'abc'"),
        (col("s").like("ab_"), "s starts with 'ab' and s like 'ab_'"), (col("i") < col("k"), "i < k"),
        (col("p") + Decimal("0.005") > 1, "p >= 1.00"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_indexes_are_asked(where: Any, shown: str) -> None:
    with pyparq.ParquetFile(oracle.files()["ours"]) as file:
        assert str(file.scan(filters=where).predicate) == shown


def test_bounds_of_both_columns_prune() -> None:
    sink = io.BytesIO()
    data = pa.table({"a": range(100), "b": [50] * 100})
    pyparq.write_table(data, sink, row_group_size=10)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        explained = file.scan(filters=col("a") > col("b")).explain(execute=False)
        assert explained.row_groups == 5
        assert file.scan(filters=col("a") * 2 > col("b") + 140).explain(execute=False).row_groups == 1
        assert file.scan(filters=col("a") + col("b") < 10).explain(execute=False).row_groups == 0
        assert file.scan(filters=col("a") > col("b")).count() == 49


@pytest.mark.parametrize(("a", "b", "rows"), [(5, 5, 0), (5, 7, 2), (7, 5, 2), (-5, 5, 2)])
def test_bounds_of_constant_columns(a: int, b: int, rows: int) -> None:
    """Bounds alone say that two constant columns are the same; where they are not, every row is kept."""
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"a": [a] * 2, "b": [b] * 2}), sink)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        scan = file.scan(filters=col("a") * 1 != col("b"))
        assert scan.count() == rows
        assert scan.explain(execute=False).row_groups == (rows > 0)
        assert file.scan(filters=col("a") * 1 == col("b")).count() == 2 - rows


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (col("s") < col("i"), "cannot be compared"), (col("s") + 1 > 2, "needs numbers"),
        (col("t") < col("z"), "cannot be compared"), (col("i").year() == 1, "needs a date"),
        (col("d").hour() == 1, "needs a date or a point in time"), (col("i").lower() == "a", "needs a string"),
        (col("i").like("1%"), "needs a string"), (col("i") * 2 == "4", "a number is needed"),
        (col("s").lower() == 3, "a text is needed"), (col("i") * True == 1, "a number is needed"),
        (col("i") * float("inf") == 1, "no finite number"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_refused(where: Any, says: str) -> None:
    with pytest.raises(FilterError, match=says):
        pyparq.read_table(oracle.files()["ours"], filters=where)


def test_a_value_is_no_condition() -> None:
    with pytest.raises(TypeError, match="is a value and not a condition"):
        pyparq.read_table(oracle.files()["ours"], filters=col("i") + 1)
    with pytest.raises(FilterError, match="not a regular expression"):
        col("s").matches("(")
    with pytest.raises(FilterError, match="is never true"):
        _ = col("i") + 1 == None  # noqa: E711


def test_repr_is_what_was_written() -> None:
    where = (col("a") * 2 + 1 > col("b")) & col("s").lower().like("x%", escape="!") & ~col("t").year().isin([2020])
    names = {"col": col}
    assert repr(eval(repr(where), names)) == repr(where)
    assert isinstance(col("a") < col("b"), ex.Compare)


def test_time_of_day_and_zone() -> None:
    sink = io.BytesIO()
    noon = dt.datetime(2024, 1, 1, 0, 30, tzinfo=dt.UTC)
    pyparq.write_table(pa.table({"z": pa.array([noon], pa.timestamp("us", "Europe/Berlin"))}), sink)
    assert pyparq.read_table(sink.getvalue(), filters=col("z").hour() == 0).num_rows == 1, "parts are in UTC"


def crossing(with_nulls: bool) -> io.BytesIO:
    """Two columns that rise, whose pages end at different rows, and cross in the middle of 20,000 rows."""
    rows = range(20_000)
    made = {
        "a": pa.array([None if with_nulls and n % 11 == 0 else n for n in rows], pa.int64()),
        "b": pa.array([10_000 + (n - 10_000) // 2 for n in rows], pa.int32()),
        "wide": [f"{n:0200}" for n in rows],
        "x": [float("nan") if n == 17 else n / 2 for n in rows],
    }
    file = io.BytesIO()
    pyparq.write_table(pa.table(made), file, row_group_size=20_000, data_page_size=4_500, use_dictionary=False)
    return file


@pytest.mark.parametrize("with_nulls", [False, True])
def test_pages_of_both_columns_prune(with_nulls: bool) -> None:
    file = crossing(with_nulls)
    for where in (
        col("a") < col("b") - 4_000, col("a") - col("b") > 4_990, col("a") == col("b"), ~(col("a") >= col("b") - 4_000),
        (col("a") < col("b") - 4_000) | (col("a") == 19_999), (col("x") * 2 > col("b") + 4_000) & (col("a") < 19_000),
        col("x") + col("a") < 30,
    ):  # fmt: skip
        found = pyparq.read_table(file, ["a", "b"], where).to_arrow()
        assert found.equals(pyparq.read_table(file, ["a", "b"], where, use_page_index=False).to_arrow())
        assert found.num_rows
        with pyparq.ParquetFile(file) as opened:
            told = opened.scan(["wide"], where).explain()
        stage = next(stage for stage in told.stages if stage.name == "column index")
        assert stage.rows_after < stage.rows_before / 2
