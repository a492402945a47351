"""Strings with int64 offsets beside ones with int32, at any depth: a table has one type per column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyparq.schema.types import Schema
from pyparq.table import Table, batches_from_arrow, widen_columns

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
        found.append((schema, *batches))
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
