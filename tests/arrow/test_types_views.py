"""String and binary views, which polars, DuckDB and Arrow itself hand over: read as what they were."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyparq
from pyparq import col
from pyparq.arrow import column_operations as columns
from pyparq.arrow.column_operations import concat, take
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.format.types import Field, Schema
from pyparq.read.decode import decoder

ROWS = 3_000
WORDS = ["", "a", "eleven char", "twelve chars", "thirteen char", "ünïcödé", "many more than twelve characters " * 3]


def texts(kind: str) -> list[str | None]:
    number = np.random.default_rng(5).integers(0, 1 << 40, ROWS).tolist()
    return {
        "mixed": [WORDS[n % 7] + str(n % 13) for n in number],
        "short": [str(n % 10**9) for n in number],
        "long": [f"{n:030}" for n in number],
        "few": [f"value number {n % 50}" for n in number],
        "holes": [None if n % 3 == 0 else f"{n % 5_000:015}" for n in number],
        "one": ["the only one"] * ROWS,
        "null": [None] * ROWS,
        "empty": [""] * ROWS,
    }[kind]


KINDS = ["mixed", "short", "long", "few", "holes", "one", "null", "empty"]
TYPES = {"string": pa.string_view(), "binary": pa.binary_view()}


def stored(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table, sink, **{"row_group_size": 1_000, "data_page_size": 4_000, "write_page_index": True, **options}
    )
    return sink.getvalue()


def picked(table: pa.Table, rows: list[int]) -> pa.Table:
    """pyarrow gathers no views itself."""
    return pa.table(
        {name: pa.array([table[name][k].as_py() for k in rows], table[name].type) for name in table.column_names}
    )


def checked(found: Any, expected: pa.Table) -> None:
    theirs = pa.table(found)
    theirs.validate(full=True)
    assert theirs.schema.equals(expected.schema)
    assert theirs.to_pydict() == expected.to_pydict()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("use_threads", [True, False])
def test_views_as_they_were(kind: str, type_: str, dictionary: bool, use_threads: bool) -> None:
    table = pa.table({"v": pa.array(texts(kind)).cast(TYPES[type_]), "n": range(ROWS)})
    data = stored(table, use_dictionary=dictionary)
    checked(pyparq.read_table(data, use_threads=use_threads), table)
    checked(pyparq.read_table(data, ["v"], rows=slice(700, 2_300)), table.select(["v"]).slice(700, 1_600))
    rows = [2_999, 0, 5, 5, 1_000]
    with pyparq.ParquetFile(data, use_threads=use_threads) as file:
        checked(file.take(rows), picked(table, rows))
        checked(file.read(filters=col("n") > 2_990), table.slice(2_991))
        parts = [pa.record_batch(batch) for batch in file.iter_batches(300)]
        for part in parts:
            part.validate(full=True)
        assert pa.Table.from_batches(parts).to_pydict() == table.to_pydict()
        whole = file.read()
    wanted = texts(kind)[10]
    if wanted is not None:
        literal = wanted if type_ == "string" else wanted.encode()
        found = pyparq.read_table(data, filters=col("v") == literal)
        checked(found, picked(table, [k for k, v in enumerate(texts(kind)) if v == wanted]))
    assert whole.to_pydict() == table.to_pydict()
    assert whole.to_pandas()["n"].tolist() == list(range(ROWS))


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_dictionary_that_ends_within_the_column(dictionary: bool) -> None:
    """Pages of indices, then plain ones."""
    many = [f"entry number {n % 40 if n < 500 else n}" if n % 9 else None for n in range(ROWS)]
    table = pa.table({"v": pa.array(many, pa.string_view())})
    data = stored(
        table, row_group_size=ROWS, dictionary_pagesize_limit=1_500, write_batch_size=100, use_dictionary=dictionary
    )
    checked(pyparq.read_table(data), table)
    checked(pyparq.read_table(data, rows=[3, 400, 2_900]), picked(table, [3, 400, 2_900]))


def test_views_within_others() -> None:
    view = pa.string_view()
    words = texts("mixed")
    table = pa.table(
        {
            "list": pa.array([words[k : k + k % 4] if k % 5 else None for k in range(ROWS)], pa.list_(view)),
            "struct": pa.array(
                [None if k % 7 == 0 else {"a": words[k], "b": None} for k in range(ROWS)],
                pa.struct([("a", view), ("b", pa.binary_view())]),
            ),
            "map": pa.array([[(words[k], words[-k])] * (k % 3) for k in range(ROWS)], pa.map_(view, view)),
        }
    )
    sink = io.BytesIO()  # pyarrow does not cut nested views into row groups
    pyparq.write_table(table, sink, store_schema=True, row_group_size=1_000, data_page_size=4_000)
    data = sink.getvalue()
    assert pq.read_table(sink).to_pydict() == table.to_pydict()
    checked(pyparq.read_table(data), table)
    checked(pyparq.read_table(data, rows=slice(999, 2_002)), table.slice(999, 1_003))
    with pyparq.ParquetFile(data) as file:
        parts = [pa.record_batch(batch) for batch in file.iter_batches(170)]
        assert pa.Table.from_batches(parts).to_pydict() == table.to_pydict()


@pytest.mark.parametrize("kind", KINDS)
def test_several_buffers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a column has more bytes than an offset in one buffer reaches."""
    monkeypatch.setattr(columns, "VIEW_BUFFER", 500)
    monkeypatch.setattr(decoder, "MOST_OFFSET", 500)
    table = pa.table({"v": pa.array(texts(kind), pa.string_view())})
    data = stored(table, use_dictionary=False, write_batch_size=50)
    found = pyparq.read_table(data)
    checked(found, table)
    # What a predicate is asked of is made views afterwards.
    asked = pyparq.read_table(data, filters=col("v") != f"{1 << 39:030} and more")
    checked(asked, picked(table, [k for k, v in enumerate(texts(kind)) if v is not None]))
    if kind == "long":
        assert all(len(b.columns[0].buffers) > 5 for b in (*found.batches, *asked.batches))


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.none() | st.text(max_size=30) | st.sampled_from(WORDS), max_size=60),
    other=st.lists(st.none() | st.text(max_size=30), max_size=20),
    data=st.data(),
)
def test_joined_and_gathered(values: list[str | None], other: list[str | None], data: st.DataObject) -> None:
    arrays = [pa.array(part, pa.string_view()) for part in (values, other, values)]
    first = data.draw(st.integers(0, len(values)))
    arrays[2] = arrays[2][first:]
    parts = [next(batches_from_arrow(pa.record_batch({"v": a}))[1]).columns[0] for a in arrays if len(a)]
    if not parts:
        return
    joined, expected = concat(parts), [*values, *other, *values[first:]]
    rows = data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=30))
    for column, wanted in ((joined, expected), (take(joined, np.array(rows, np.int64)), [expected[k] for k in rows])):
        assert values_of(column) == wanted


def values_of(column: Any) -> list[str | None]:
    array = pa.table(Table(Schema((Field("v", column.type, True),)), [Batch([column], len(column))]))["v"]
    array.validate(full=True)
    assert array.type == pa.string_view()
    return array.to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_what_polars_hands_over(kind: str) -> None:
    """Its frames are views; its own files say large strings."""
    frame = pl.DataFrame({"v": texts(kind), "n": range(ROWS)}, schema={"v": pl.String, "n": pl.Int64})
    sink = io.BytesIO()
    pyparq.write_table(frame, sink, store_schema=True, row_group_size=700)
    assert pl.read_parquet(sink.getvalue()).equals(frame)
    found = pyparq.read_table(sink.getvalue())
    assert found.schema.field("v").type.format == "vu"
    assert pl.DataFrame(found).equals(frame)
    again = io.BytesIO()
    pyparq.write_table(found, again, store_schema=True)
    assert pl.read_parquet(again.getvalue()).equals(frame)
    own = io.BytesIO()
    frame.write_parquet(own, row_group_size=700)
    assert pl.DataFrame(pyparq.read_table(own.getvalue())).equals(frame)
