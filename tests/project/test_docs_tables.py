"""The Python examples of docs/tables.md run, and what it says of their results is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The variables of each example, run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    made: list[dict[str, Any]] = []
    for code in EXAMPLES:
        made.append({})
        exec(compile(code, "docs/tables.md", "exec"), made[-1])
    return made


def test_examples_run(results: list[dict[str, Any]]) -> None:
    assert len(results) == 7
    table, column, _, handed, back, _, embeddings = results
    assert embeddings["near"]["vector"].to_numpy().shape == (10, 384)
    assert table["t"] == table["t"]
    assert table["t"][1] == table["t"][-2]
    assert np.asarray(column["c"]).tolist()[::2] == [1.0, 3.0]
    expected = [("Kyoto", 2.5), ("Lima", 2.0)]
    assert handed["frame"].rows() == handed["rows"] == expected
    assert [tuple(row.values()) for row in handed["arrow"].to_pylist()] == expected
    assert handed["mean"].as_py() == 1.5
    assert list(handed["total"].items()) == expected
    assert pq.read_table("dear.parquet").to_pylist() == [{"city": "Kyoto", "price": 2.5}]
    assert back["dear"].height == 1
    assert pq.read_metadata("rows.parquet").num_row_groups == 5
    assert pq.read_table("few.parquet")["id"].to_pylist()[:11] == [*range(10), 20_000]


def test_said_in_numbers() -> None:
    from pyparq.arrow.ingest import from_iterables
    from pyparq.arrow.preview import ROWS

    assert f"the first {from_iterables.MOST_ROWS:,}" in TEXT
    assert (ROWS, "first ten rows" in TEXT) == (10, True)
