"""Strings with int64 offsets beside ones with int32, at any depth: a table has one type per column."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.record_batch import batches_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.arrow.tabular import widen_columns
from pyparq.format.types import Schema
from pyparq.read.decode import decoder

SMALL: dict[str, Any] = {"l": pa.list_(pa.string()), "s": pa.struct([("x", pa.binary()), ("n", pa.int8())])}
LARGE: dict[str, Any] = {
    "l": pa.large_list(pa.large_string()),
    "s": pa.struct([("x", pa.large_binary()), ("n", pa.int8())]),
}
MIXED: dict[str, Any] = {"l": pa.list_(pa.large_string()), "s": SMALL["s"]}
ROWS = {
    "l": [["a", None], None, [], ["bcd"]],
    "s": [{"x": b"xy", "n": 1}, None, {"x": None, "n": 2}, {"x": b"", "n": 3}],
}


def parts(*types: dict[str, Any]) -> tuple[Schema, list[Any]]:
    found = []
    for kinds in types:
        table = pa.table({name: pa.array(ROWS[name], kind) for name, kind in kinds.items()})
        schema, batches = batches_from_arrow(table.slice(1))
        found.append((schema, *(Batch(*batch) for batch in batches)))
    return found[0][0], [batch for _, *batches in found for batch in batches]


@pytest.mark.parametrize(
    "types", [(SMALL, LARGE), (LARGE, SMALL), (SMALL, MIXED, LARGE), (MIXED, SMALL), (SMALL, SMALL)]
)
def test_one_type_for_all_batches(types: tuple[dict[str, Any], ...]) -> None:
    table = Table(*widen_columns(*parts(*types)))
    arrow = table.to_arrow()
    arrow.validate(full=True)
    assert arrow.to_pydict() == {name: values[1:] * len(types) for name, values in ROWS.items()}
    wanted = LARGE if LARGE in types else MIXED if MIXED in types else SMALL
    assert {f.name: f.type for f in arrow.schema} == wanted


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_row_groups_on_both_sides_of_two_gibibytes(use_dictionary: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit moved down: row groups that pass it come out large, and the whole table with them."""
    words = [f"{k % 7:0{4 if k < 50 else 40}d}" for k in range(150)]
    table = pa.table({
        "s": words,
        "l": [[w, None] if k % 3 else None for k, w in enumerate(words)],
        "m": pa.array([[(w, k)] for k, w in enumerate(words)], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=50, use_dictionary=use_dictionary)
    data = sink.getvalue()
    monkeypatch.setattr(decoder, "MOST_OFFSET", 600)
    with pyparq.ParquetFile(data) as file:
        for found in (file.read(), file.take(list(range(150)))):
            arrow = found.to_arrow()
            arrow.validate(full=True)
            assert arrow.to_pydict() == table.to_pydict()
            assert arrow.schema.field("s").type == pa.large_string()
            assert arrow.schema.field("l").type.value_type == pa.large_string()
            assert arrow.schema.field("m").type.key_type == pa.large_string()
        batches = [pa.table(batch.to_table()) for batch in file.scan().iter_batches()]
    assert {b.schema.field("s").type for b in batches} == {pa.string()}  # cut, rather than of another type
    assert [row for batch in batches for row in batch.to_pylist()] == table.to_pylist()
