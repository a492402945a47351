"""Footers whose parts are many: the work stays in proportion to their bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from forged import Forged
from written import written

import pyparq
from pyparq.errors import CorruptFileError
from pyparq.format import ttypes as tt
from pyparq.format.schema_node import Node
from pyparq.index.statistics import parse_created_by
from pyparq.maintenance.verify.report import Findings
from pyparq.maintenance.verify.value_checks import checkable


def wide(columns: int) -> Forged:
    return Forged(written(pa.table({f"c{k}": [k, k + 1] for k in range(columns)}), compression="none"))


@pytest.mark.parametrize(
    "created_by",
    [
        "parquet-mr version 1.2." + "1" * 400_000, "parquet-mr version " + "9" * 100_000,
        "parquet-mr version 1.8.0 (build " + "(" * 100_000, " " * 300_000, "a version" * 50_000,
        " version" * 50_000, "x " * 100_000 + "version 1.2.3", "\n\t" * 100_000 + "version",
    ],
    ids=range(8),
)  # fmt: skip
def test_writers_of_long_names(created_by: str) -> None:
    """Neither an error that is not ours nor the patience of a regular expression."""
    forged = wide(2)
    forged.meta.created_by = created_by
    assert pyparq.read_table(forged.data(), filters=pyparq.col("c0") == 1).to_pydict() == {"c0": [1], "c1": [2]}
    assert pyparq.verify(forged.data()).ok
    assert parse_created_by(created_by)[1] in (None, (1, 8, 0), (1, 2, 3))


def test_writers_are_known_as_before() -> None:
    for text, expected in {
        "parquet-mr version 1.8.0-SNAPSHOT (build abc)": ("parquet-mr", (1, 8, 0), "SNAPSHOT"),
        "parquet-mr version 1.5.0-cdh5.5.0 (build x)": ("parquet-mr", (1, 5, 0), "cdh5.5.0"),
        "parquet-cpp-arrow version 26.0.1": ("parquet-cpp-arrow", (26, 0, 1), ""),
        "  Parquet-CPP  version v2(x)": ("parquet-cpp", (2, 0, 0), ""),
        "DuckDB version v1.2.0+7 (build 1)": ("duckdb", (1, 2, 0), ""),
        "aversion version 3": ("aversion", (3, 0, 0), ""),
        "version 3": ("version 3", None, ""),
        " version 3": ("", (3, 0, 0), ""),
        "Polars": ("polars", None, ""),
        "": ("", None, ""),
        "x version y": ("x", None, ""),
        "x version 1.2.3.4 rest": ("x", (1, 2, 3), ".4 rest"),
    }.items():
        assert parse_created_by(text) == expected, text


def test_paths_that_no_column_has_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns renamed in the schema alone: others read them by their place too."""
    asked: list[Any] = []
    path = Node.path

    def counted(node: Node) -> Any:
        asked.append(node)
        return path.__get__(node)

    forged = wide(400)
    for chunk in forged.meta.row_groups[0].columns:
        chunk.meta_data.path_in_schema = ["no", "such"]
    monkeypatch.setattr(Node, "path", property(counted))
    assert pyparq.read_table(forged.data()).num_columns == 400
    assert len(asked) < 400 * 40
    forged.meta.row_groups[0].columns[7].meta_data.path_in_schema = ["c300"]
    with pytest.raises(CorruptFileError, match=r"belongs to column c300.*column c7"):
        pyparq.read_table(forged.data())


def test_sorting_columns_that_are_named_again() -> None:
    forged = wide(3)
    forged.meta.row_groups[0].sorting_columns = [tt.SortingColumn(k % 3, False, False) for k in range(50_000)]
    assert pyparq.verify(forged.data()).ok
    leaves = list(pyparq.ParquetFile(forged.data()).tree.leaves)
    keys = checkable(forged.meta.row_groups[0].sorting_columns, leaves, Findings("f", 0))
    assert [node.column for node, _ in keys] == [0, 1, 2]
    forged.meta.row_groups[0].sorting_columns[1:] = [tt.SortingColumn(0, True, False)]
    assert pyparq.verify(forged.data()).ok
    forged.meta.row_groups[0].sorting_columns = [tt.SortingColumn(0, True, False)]
    assert [f.kind for f in pyparq.verify(forged.data()).findings] == ["sorting"]
