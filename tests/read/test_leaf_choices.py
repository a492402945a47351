"""Choices of how leaves are read that cost time only: no result tells when they are wrong."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest

import pyparq
from pyparq.index.row_ranges import RowRanges
from pyparq.read.column_reads import CODES_FROM, Wanted, _by_codes
from pyparq.read.decode.leaves import is_flat
from pyparq.read.plan.ahead import MOST, chosen


def leaves(table: pa.Table, **options: Any) -> dict[str, Any]:
    sink = io.BytesIO()
    pyparq.write_table(table, sink, **options)
    with pyparq.ParquetFile(sink.getvalue()) as file:
        return {leaf.dotted: leaf for leaf in file.tree.leaves}


def test_leaves_that_are_columns_of_their_own() -> None:
    """Levels of all others have to be kept."""
    required = pa.field("required", pa.int64(), nullable=False)
    schema = pa.schema(
        [required, ("a", pa.int64()), ("s", pa.struct([("x", pa.int64())])), ("l", pa.list_(pa.int64()))]
    )
    found = leaves(pa.table([[1], [None], [{"x": 1}], [[1, 2]]], schema=schema))
    assert [is_flat(leaf) for leaf in found.values()] == [True, True, False, False]


@pytest.mark.parametrize(
    ("values", "tested", "shown"),
    [
        (pa.array([1], pa.int64()), True, False),
        (pa.array([1.5]), True, False),
        (pa.array(["a"]), True, True),
        (pa.array([b"0123456789abcdef"], pa.binary(16)), True, True),
        (pa.array([True]), False, False),
        (pa.nulls(1), False, False),
        (pa.array([0], pa.timestamp("us")), False, False),  # written as INT96
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_codes_are_looked_at_where_that_saves_work(values: pa.Array, tested: bool, shown: bool) -> None:
    """Columns that are only tested, slowly, and all others, from a number of rows on."""
    (leaf,) = leaves(pa.table({"x": values}), int96_timestamps=True).values()
    selection: Any = None
    for count in (CODES_FROM - 1, CODES_FROM):
        rows = RowRanges.all(count)
        for by_entries, expected in ((True, tested), (False, shown)):
            item = Wanted(selection, leaf, rows, by_entries=by_entries)
            assert _by_codes(item) == (expected and count == CODES_FROM)


def test_ranges_are_requested_ahead_up_to_a_number_of_bytes() -> None:
    assert chosen([[(0, MOST - 1), (MOST, 1)]]) == [(0, MOST - 1), (MOST, 1)]
    assert chosen([[(0, MOST - 1), (MOST, 2)], [(7, MOST)], [(9, 1)]]) == [(7, MOST)]
