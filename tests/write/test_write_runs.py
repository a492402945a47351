"""Generators and other iterables as data: of tables, of batches, of rows."""

from __future__ import annotations

import io
import os
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import stable_id
from written import written

import pyparq
from pyparq import kernels
from pyparq.arrow.ingest import from_iterables
from pyparq.arrow.table import Batch, Table
from pyparq.errors import DataError


def read(data: bytes) -> dict[str, list[Any]]:
    """As pyarrow reads it."""
    return pq.read_table(io.BytesIO(data)).to_pydict()  # type: ignore[no-any-return]


def arrow(k: int) -> pa.Table:
    return pa.table({"a": [2 * k, 2 * k + 1], "s": [f"{k}", None]})


MAKERS: dict[str, Callable[[int], Any]] = {
    "arrow tables": arrow,
    "record batches": lambda k: arrow(k).to_batches()[0],
    "readers": lambda k: arrow(k).to_reader(),
    "our tables": lambda k: Table.from_arrow(arrow(k)),
    "our batches": lambda k: Batch.from_arrow(arrow(k)),
    "polars": lambda k: pl.DataFrame(arrow(k)),
    "pandas": lambda k: arrow(k).to_pandas(),
    "arrays": lambda k: {"a": np.array([2 * k, 2 * k + 1]), "s": np.array([f"{k}", None], object)},
    "arrays and lists": lambda k: {"a": np.array([2 * k, 2 * k + 1]), "s": [f"{k}", None]},
    "lists of rows": lambda k: [{"a": 2 * k, "s": f"{k}"}, {"a": 2 * k + 1}],
}
EXPECTED = {"a": list(range(10)), "s": [v for k in range(5) for v in (f"{k}", None)]}


@pytest.mark.parametrize("name", MAKERS)
def test_tables_of_every_kind(name: str) -> None:
    made = MAKERS[name]
    assert read(written(made(k) for k in range(5))) == EXPECTED
    assert read(written([made(k) for k in range(5)])) == EXPECTED
    assert read(written((made(k) for k in range(5)), row_group_size=3)) == EXPECTED
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink) as writer:
        writer.write(made(k) for k in range(2))
        writer.write(made(2))
        writer.write((made(k) for k in (3, 4)), row_group_size=2)
    assert read(sink.getvalue()) == EXPECTED
    groups = pq.read_metadata(sink)
    assert [groups.row_group(k).num_rows for k in range(groups.num_row_groups)] == [6, 2, 2]


def test_tables_of_several_kinds_go_together() -> None:
    makers = [MAKERS[n] for n in ("arrow tables", "polars", "our batches", "arrays", "pandas")]
    assert read(written(made(k) for k, made in enumerate(makers))) == EXPECTED


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_iterables, "MOST_ROWS", 3)
    rows: list[dict[str, Any]] = [
        {"a": 1, "l": [1, 2], "d": {"x": 1}},
        {"l": None, "a": 2},
        {"a": None, "l": [], "d": {"x": None}},
        {"a": 4},
        {},
    ]
    expected = pa.Table.from_pylist(rows).to_pydict()
    assert read(written(row for row in rows)) == expected
    assert read(written(rows)) == expected
    assert read(written(iter(rows), schema={"a": "int8?", "l": "list<int64?>?", "d": "struct<x: int64?>?"})) == expected
    assert read(written(map(dict, [[("a", 1)], [("a", 2)]]))) == {"a": [1, 2]}


def test_a_dict_of_lists_is_a_row_among_others() -> None:
    """As in a list of dicts: only arrays make it a batch."""
    rows = [{"tokens": [1, 2], "labels": [0, 1]}, {"tokens": [3], "labels": [1]}]
    assert read(written(iter(rows))) == read(written(rows)) == {"tokens": [[1, 2], [3]], "labels": [[0, 1], [1]]}
    rows = [{"id": 1, "vector": np.array([0.5, 1.5])}, {"id": 2, "vector": np.array([2.5])}]
    assert read(written(iter(rows))) == read(written(rows)) == {"id": [1, 2], "vector": [[0.5, 1.5], [2.5]]}


def test_rows_gather_into_pieces_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_iterables, "MOST_ROWS", 100)
    monkeypatch.setattr(from_iterables, "MOST_BYTES", 1000)
    for row, most in (({"a": 1}, 63), ({"a": "x" * 400}, 3), ({"a": [["y" * 200] * 5]}, 1), ({"a": np.zeros(50)}, 100)):
        pieces = list(from_iterables.pieces((row for _ in range(200)), lambda item: True))
        if isinstance(row["a"], np.ndarray):
            assert pieces == [row] * 200
            continue
        assert max(map(len, pieces)) == most
        assert sum(map(len, pieces)) == 200


def counted(items: Iterator[Any], taken: list[Any]) -> Iterator[Any]:
    for item in items:
        taken.append(None)
        yield item


def test_rows_are_weighed_by_the_kernels_as_by_python() -> None:
    """The kernels gather dicts of usual values. They leave all others to Python, one at a time."""
    deep: Any = "x" * 40
    for _ in range(50):
        deep = [deep]
    usual = [
        {"a": 1, "b": 2.5, "c": True, "d": None, "t": "text of é", "y": b"bytes"},
        {"l": [1, 2, 3], "e": [], "s": {"x": "inner", "y": [{"z": "zz"}]}, "p": ("t", "uu"), "n": [None, 1]},
        {"w": datetime(2024, 5, 1), "m": Decimal("1.50"), "f": np.float64(1.5)},
        {},
    ]
    other = [OrderedDict(a="three"), {"a": bytearray(9)}, {"a": uuid4()}, {"l": deep}, {"a": np.arange(3), "b": 1}]
    rows: list[Any] = []
    left: list[Any] = []
    source, size, ended = iter([*usual, *other, *usual]), 5, False
    while not ended:
        size, found, ended = kernels.gather_rows(source, rows, size, 1000, 1 << 20, from_iterables.SMALL_TYPES)
        left += found
    assert rows == usual * 2
    assert size == 5 + 2 * (78 + 66 + 48)
    assert list(map(id, left)) == list(map(id, other))
    gather = partial(kernels.gather_rows, iter(usual), rows, 7)
    assert gather(8, 1 << 20, from_iterables.SMALL_TYPES) == (7, [], False)  # enough rows
    assert gather(99, 7, from_iterables.SMALL_TYPES) == (7, [], False)  # enough bytes
    assert rows == usual * 2


def test_unusual_rows_lie_between_usual_ones() -> None:
    rows = [OrderedDict(a=k, t=str(k)) if k % 7 == 3 else {"a": k, "t": str(k)} for k in range(100)]
    sink = io.BytesIO()
    pyparq.write_table((row for row in rows), sink)
    assert pyparq.read_table(sink.getvalue()).to_pylist() == [dict(row) for row in rows]


@pytest.mark.parametrize("kind", ["batches", "arrays", "rows"])
def test_memory_stays_bounded(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 MB and more go through; a tenth of it is held at any time."""
    count, each = 100, 50_000
    monkeypatch.setattr(from_iterables, "MOST_BYTES", 1 << 20)

    def made() -> Iterator[Any]:
        for k in range(count):
            numbers = np.arange(k * each, (k + 1) * each)
            if kind == "rows":
                yield from ({"a": n, "s": "x" * 40_000} for n in range(10 * k, 10 * k + 10))
            else:
                yield pa.record_batch({"a": numbers}) if kind == "batches" else {"a": numbers}

    path, before = tmp_path / "t.parquet", pa.total_allocated_bytes()
    tracemalloc.start()
    pyparq.write_table(
        made(), path, row_group_size=2 * each, row_group_bytes=4 << 20, use_threads=False, compression="zstd"
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 4_000_000
    rows = 10 * count if kind == "rows" else count * each
    assert pq.read_metadata(path).num_rows == rows
    assert pq.read_table(path, columns=["a"])["a"].to_numpy().tolist() == list(range(rows))
    assert peak < 12_000_000


def test_items_are_taken_as_they_are_needed() -> None:
    """When an item is asked for, the rows before it are in the file but for a row group's worth."""
    sink, seen = io.BytesIO(), []

    def made() -> Iterator[Any]:
        for _ in range(20):
            seen.append(sink.tell())
            yield {"a": np.random.default_rng(0).integers(0, 2**62, 10_000)}

    pyparq.write_table(made(), sink, row_group_size=10_000, use_threads=False, compression="none", use_dictionary=False)
    assert seen[0] <= 4
    assert seen[2:] == sorted(set(seen[2:]))
    assert seen[-1] > 17 * 80_000


@pytest.mark.parametrize("use_threads", [True, False])
def test_the_next_item_may_use_the_same_arrays(use_threads: bool) -> None:
    def arrays() -> Iterator[Any]:
        kept = np.empty(1000, np.int64)
        for k in range(20):
            kept[:] = k
            yield {"a": kept}

    def frames() -> Iterator[Any]:
        frame = pd.DataFrame({"a": np.zeros(1000, np.int64)})
        for k in range(20):
            frame.loc[:, "a"] = k
            yield frame

    expected = np.repeat(np.arange(20), 1000).tolist()
    for made in (arrays, frames):
        for size in (300, 1000, 7000, 10**6):
            assert read(written(made(), row_group_size=size, use_threads=use_threads)) == {"a": expected}


def test_the_first_piece_decides_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_iterables, "MOST_ROWS", 2)
    assert read(written(iter([{"a": 1.5}, {"a": 2}, {"a": 3}]))) == {"a": [1.5, 2.0, 3.0]}
    narrow = ({"a": np.array([k], "i8" if k else "i2")} for k in range(3))
    assert pq.read_table(io.BytesIO(written(narrow))).schema.field("a").type == pa.int16()


@pytest.mark.parametrize(
    "items",
    [
        [{"a": None}, {"a": None}, {"a": 1}],
        [{"a": 1}, {"a": 2}, {"a": 1.5}],
        [{"a": 1}, {"a": 2}, {"a": "x"}],
        [{"a": 1}, {"a": 2}, {"a": 3, "b": 4}],
        [pa.table({"a": pa.nulls(2)}), pa.table({"a": [1]})],
        [pa.table({"a": [1]}), pa.table({"b": [1]})],
        [{"a": np.array([1])}, {"a": np.array([2**40]) + 0.5}],
    ],
    ids=stable_id,
)
@pytest.mark.parametrize("how", ["table", "writer", "writes"])
def test_what_does_not_fit_the_first_piece(items: list[Any], how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_iterables, "MOST_ROWS", 2)

    def write() -> None:
        if how == "table":
            pyparq.write_table(iter(items), io.BytesIO())
            return
        with pyparq.ParquetWriter(io.BytesIO()) as writer:
            if how == "writer":
                writer.write(iter(items))
                return
            for item in [items[:2], items[2:]] if len(items) == 3 else items:
                writer.write(item)

    with pytest.raises(DataError, match=r"first rows decided what the columns are: give schema=") as caught:
        write()
    assert str(caught.value).count("give schema=") == 1
    assert caught.value.column in ("a", "b")


def test_a_schema_that_was_given_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_iterables, "MOST_ROWS", 1)
    assert read(written(iter([{"a": None}, {"a": 1}]), schema={"a": "int8?"})) == {"a": [None, 1]}
    with pytest.raises(DataError) as caught:
        written(iter([{"a": 1}, {"a": 300}]), schema={"a": "int8?"})
    assert "give schema=" not in str(caught.value)


def test_nothing_at_all(tmp_path: Path) -> None:
    empty: list[Any] = [[], iter([]), (row for row in []), ()]
    for data in empty:
        with pytest.raises(DataError, match="no data and no schema, so the columns are not known"):
            pyparq.write_table(data, tmp_path / "t.parquet")
    assert os.listdir(tmp_path) == []
    for data in empty:
        made = pq.read_table(io.BytesIO(written(data, schema={"a": "int8?", "s": "list<string>"})))
        assert (made.num_rows, str(made.schema.field("a").type), made.column_names) == (0, "int8", ["a", "s"])
    with pyparq.ParquetWriter(tmp_path / "u.parquet") as writer:
        writer.write([{"a": 1}])
        writer.write(iter([]))
    assert read((tmp_path / "u.parquet").read_bytes()) == {"a": [1]}


@pytest.mark.parametrize("rows_before", [0, 1, 10])
@pytest.mark.parametrize("kind", ["rows", "batches"])
def test_a_generator_that_fails_leaves_the_old_file(kind: str, rows_before: int, tmp_path: Path) -> None:
    class Broken(Exception):
        pass

    def made() -> Iterator[Any]:
        for k in range(rows_before):
            yield {"a": k} if kind == "rows" else pa.record_batch({"a": [k]})
        raise Broken

    path = tmp_path / "t.parquet"
    pyparq.write_table({"a": [-1]}, path)
    with pytest.raises(Broken):
        pyparq.write_table(made(), path, row_group_size=2)
    assert read(path.read_bytes()) == {"a": [-1]}
    assert os.listdir(tmp_path) == ["t.parquet"]
    with pytest.raises(Broken), pyparq.ParquetWriter(path) as writer:
        writer.write(made())
    assert read(path.read_bytes()) == {"a": [-1]}
    writer = pyparq.ParquetWriter(path)
    writer.write({"a": [5]})
    with pytest.raises(Broken):
        writer.write(made())
    if rows_before and kind == "batches":  # rows that wait to be a piece are not written yet
        with pytest.raises(DataError, match="earlier write failed"):
            writer.close()
        assert read(path.read_bytes()) == {"a": [-1]}
    else:
        writer.close()
        assert read(path.read_bytes()) == {"a": [5]}


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([{"a": 1}, pa.table({"a": [1]})], "item 1 is one of tables, but earlier items are rows"),
        ([pa.table({"a": [1]}), {"a": 1}], "item 1 is one of rows, but earlier items are tables"),
        ([{"a": 1}, {"a": np.array([1])}], "item 1 is one of tables, but earlier items are rows"),
        ([{"a": 1}, 5], "item 1 is a int"),
        ([{"a": 1}, None], "item 1 is a NoneType"),
        ([5], "item 0 is a int. An iterable must give tables"),
        (["text", "more"], "item 0 is a str"),
        ([[1, 2], [3, 4]], "item 0 is a list"),
        ([(1, 2)], "item 0 is a tuple"),
        ([iter([{"a": 1}])], "item 0 is a list_iterator"),
        ([np.arange(3)], "item 0 is a ndarray"),
    ],
    ids=stable_id,
)
def test_items_that_are_no_data(items: list[Any], told: str) -> None:
    rows = all(isinstance(item, dict) for item in items)
    for data in (iter(items),) if rows else (iter(items), items):
        with pytest.raises(DataError, match=told):
            written(data)


@pytest.mark.parametrize(
    "data",
    [b"bytes", bytearray(b"x"), {1, 2}, frozenset("a"), {"a": 1}.keys(), {"a": 1}.values(), {}.items(), 5],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_iterables_that_are_no_data(data: Any) -> None:
    with pytest.raises(DataError, match=f"a {type(data).__name__} cannot be read as a table"):
        written(data)


def test_streams_of_others() -> None:
    reader = pa.RecordBatchReader.from_batches(arrow(0).schema, (arrow(k).to_batches()[0] for k in range(5)))
    assert read(written(reader)) == EXPECTED
    text = io.StringIO("a,s\n" + "".join(f"{k},x{k}\n" for k in range(10)))
    chunks = pd.read_csv(text, chunksize=3)
    made = pyparq.read_table(written(chunks))
    assert made.to_pydict() == {"a": list(range(10)), "s": [f"x{k}" for k in range(10)]}
    assert made.to_pandas().index.tolist() == list(range(10))


def test_batches_go_through_a_filter_and_on(tmp_path: Path) -> None:
    """What generators are for: a file rewritten batch by batch."""
    data = written({"a": np.arange(1000), "s": ["x", None] * 500}, row_group_size=100)
    with pyparq.ParquetFile(data) as file:
        pyparq.write_table(
            (b.select(["a"]).rename({"a": "b"}).slice(0, 2) for b in file.iter_batches(100)), tmp_path / "t"
        )
    assert read((tmp_path / "t").read_bytes())["b"] == [100 * k + n for k in range(10) for n in range(2)]


def test_rows_without_columns_are_counted() -> None:
    data = written(iter([{}, {}]))
    assert pq.read_table(io.BytesIO(data)).num_rows == 2
    assert pyparq.read_table(data).shape == (2, 0)
