"""The command line over folders and globs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, refused, run

TABLE = pa.table(
    {
        "id": pa.array(range(300), pa.int64()),
        "name": [f"n{k % 7}" for k in range(300)],
        "year": pa.array([2022 + k // 100 for k in range(300)], pa.int32()),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "table"
    parts = ds.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
    ds.write_dataset(TABLE, path, format="parquet", partitioning=parts)
    (path / "_SUCCESS").touch()
    return path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_query_reads_the_files_that_partitions_leave(folder: Path) -> None:
    found = lines(ok("query", folder, "--where", "year = 2023 AND id < 104", "--json"))
    assert found == TABLE.slice(100, 4).to_pylist()


def test_query_over_a_glob_in_quotes(folder: Path) -> None:
    found = lines(ok("query", f"{folder}/*/*.parquet", "-c", "id", "--json"))
    assert [row["id"] for row in found] == TABLE["id"].to_pylist()


def test_query_writes_all_rows_to_a_file(folder: Path, tmp_path: Path) -> None:
    assert run("query", folder, "-o", tmp_path / "one.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "one.parquet").equals(TABLE)


def test_head_says_how_many_rows_all_files_have(folder: Path) -> None:
    assert "4 rows shown, 296 more" in ok("head", folder, "-n", "4")


def test_schema_has_the_partition_columns(folder: Path) -> None:
    document = as_json("schema", folder, "--json")
    assert [column["name"] for column in document["columns"]] == ["id", "name", "year"]


def test_explain_counts_the_files_that_partitions_rule_out(folder: Path) -> None:
    document = as_json("explain", folder, "-w", "year = 2024", "--json")
    assert (document["files"], document["files_opened"], document["rows"]) == (3, 1, 100)
    assert "of which partitions rule out 2" in ok("explain", folder, "-w", "year = 2024")


def test_meta_lists_the_files(folder: Path) -> None:
    document = as_json("meta", folder, "--json")
    assert document["partitions"] == ["year"]
    assert [(file["rows"], file["row_groups"]) for file in document["files"]] == [(100, 1)] * 3
    assert [file["bytes"] for file in document["files"]] == [p.stat().st_size for p in sorted(folder.glob("*/*"))]
    text = ok("meta", folder)
    assert "300 in 3 row groups" in text
    assert "year (int32)" in text
    assert "year=2023/part-0.parquet" in text


@pytest.mark.parametrize("options", [["query", "-g", "0"], ["meta", "-g", "0"], ["explain", "--plan"]])
def test_options_for_a_single_file_are_refused(folder: Path, options: list[str]) -> None:
    assert "for a single file" in refused(2, options[0], folder, *options[1:])


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert "no data files" in refused(1, "head", tmp_path)


def test_a_pattern_without_quotes(folder: Path) -> None:
    assert "in quotes" in refused(2, "head", *sorted(folder.glob("*/*.parquet")))
