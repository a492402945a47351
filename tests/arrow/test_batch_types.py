"""Batches of one stream have one schema, however much text a row group holds and whatever hints say."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow import column_operations as columns
from pyparq.errors import CorruptFileError, LimitError
from pyparq.read import batch_types
from pyparq.read.decode import decoder

TEXT = [None if k % 7 == 3 else f"{k:05d}" * (k % 4) for k in range(240)]
"""About 300 bytes in 40 rows, 1,600 in 240."""

TYPES: dict[str, pa.Array] = {
    "string": pa.array(TEXT),
    "binary": pa.array([None if t is None else t.encode() for t in TEXT]),
    "list": pa.array([TEXT[k : k + k % 3] if k % 5 else None for k in range(240)], pa.list_(pa.string())),
    "deep": pa.array([[TEXT[k : k + k % 3], None, []] for k in range(240)], pa.list_(pa.list_(pa.string()))),
    "struct": pa.array([{"t": t, "n": k} if k % 5 else None for k, t in enumerate(TEXT)]),
    "map": pa.array([[(f"{k}", t)] * (k % 3) for k, t in enumerate(TEXT)], pa.map_(pa.string(), pa.string())),
    "large": pa.array(TEXT, pa.large_string()),
    "view": pa.array(TEXT, pa.string_view()),
    "list view": pa.array([TEXT[k : k + k % 3] if k % 5 else None for k in range(240)], pa.list_view(pa.string())),
    "large list view": pa.array([TEXT[k : k + k % 3] for k in range(240)], pa.large_list_view(pa.string())),
    "large list": pa.array([TEXT[k : k + k % 3] for k in range(240)], pa.large_list(pa.string())),
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets of four bytes reach 1,000, as it were."""
    monkeypatch.setattr(decoder, "MOST_OFFSET", 1000)
    monkeypatch.setattr(columns, "MOST_OFFSET", 1000)
    monkeypatch.setattr(batch_types, "MOST_OFFSET", 1000)


def file_of(table: pa.Table, sizes: list[int], **options: Any) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        at = 0
        for size in sizes:
            writer.write_table(table.slice(at, size), row_group_size=size)
            at += size
    return sink.getvalue()


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("sizes", [[40, 200], [200, 40]], ids=str)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("store_schema", [True, False])
def test_one_schema_for_all_batches(name: str, sizes: list[int], store_schema: bool) -> None:
    table = pa.table({"x": TYPES[name]})
    data = file_of(table, sizes, store_schema=store_schema)
    with pyparq.ParquetFile(data) as file:
        scan = file.scan()
        batches = list(scan.iter_batches())
    assert [b.schema for b in batches] == [scan.schema] * len(batches)
    if name not in ("large", "view") or not store_schema:  # views of a dictionary share its bytes
        assert len(batches) > 2, "too little text for this test"
    assert [row for b in batches for row in b.to_table().to_pydict()["x"]] == table["x"].to_pylist()
    wide = pa.Table.from_batches([pa.record_batch(b) for b in batches])
    wide.validate(full=True)
    assert wide["x"].to_pylist() == table["x"].to_pylist()
    if store_schema:
        assert wide.schema.field("x").type == table.schema.field("x").type


@pytest.mark.usefixtures("tiny")
def test_batch_sizes_still_hold() -> None:
    data = file_of(pa.table({"x": TYPES["string"], "k": range(240)}), [240])
    with pyparq.ParquetFile(data) as file:
        batches = list(file.iter_batches(50))
    assert max(b.num_rows for b in batches) <= 50
    assert [k for b in batches for k in b.to_table().to_pydict()["k"]] == list(range(240))


@pytest.mark.usefixtures("tiny")
def test_tables_become_large() -> None:
    table = pyparq.read_table(file_of(pa.table({"x": TYPES["string"]}), [40, 200])).to_arrow()
    assert table.schema.field("x").type == pa.large_string()
    assert table["x"].to_pylist() == TEXT


@pytest.mark.usefixtures("tiny")
def test_a_row_that_is_too_large_alone() -> None:
    data = file_of(pa.table({"x": [["a" * 100] * 3, ["b" * 600] * 2]}), [2])
    with pyparq.ParquetFile(data) as file, pytest.raises(LimitError, match=r"single row.*to_table\(\).*file <bytes>"):
        list(file.iter_batches())
    assert pyparq.read_table(data).to_pydict()["x"][1] == ["b" * 600] * 2


def hinted(first: list[Any], second: list[Any]) -> bytes:
    """A file that says its lists are of three items each; they are not."""
    lists = [pa.table({"x": pa.array(part, pa.list_(pa.int64()))}) for part in (first, second)]
    schema = pa.schema([pa.field("x", pa.list_(pa.int64(), 3))])
    sink, as_it_says = io.BytesIO(), io.BytesIO()
    pq.write_table(schema.empty_table(), as_it_says)
    hint = pq.read_metadata(as_it_says).metadata[b"ARROW:schema"]
    with pq.ParquetWriter(sink, lists[0].schema, store_schema=False) as writer:
        for part in lists:
            writer.write_table(part)
        writer.add_key_value_metadata({b"ARROW:schema": hint})
    return sink.getvalue()


THREE, TWO = [[1, 2, 3], [4, 5, 6]], [[1, 2], [3]]


@pytest.mark.parametrize("second", [THREE, TWO], ids=["right later", "wrong again"])
def test_a_hint_that_is_wrong_at_once_is_dropped_for_good(second: list[Any]) -> None:
    with pyparq.ParquetFile(hinted(TWO, second)) as file:
        assert pa.schema(file.schema_arrow).field("x").type == pa.list_(pa.int64(), 3)
        found = pa.Table.from_batches([pa.record_batch(b) for b in file.iter_batches()])
    assert found.schema.field("x").type == pa.list_(pa.int64())
    assert found["x"].to_pylist() == TWO + second


def test_a_hint_that_turns_out_wrong_is_an_error_in_a_stream() -> None:
    data = hinted(THREE, TWO)
    with pyparq.ParquetFile(data) as file:
        batches = file.iter_batches()
        assert next(batches).to_table().to_pydict() == {"x": THREE}
        with pytest.raises(CorruptFileError, match=r"ARROW:schema.*use_arrow_schema.*column x"):
            next(batches)
    assert pyparq.read_table(data).to_pydict() == {"x": THREE + TWO}
    with pyparq.ParquetFile(data, use_arrow_schema=False) as file:
        found = pa.Table.from_batches([pa.record_batch(b) for b in file.iter_batches()])
    assert found["x"].to_pylist() == THREE + TWO
