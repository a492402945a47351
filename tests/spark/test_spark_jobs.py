"""Jobs over the files of a dataset on Spark: add_indexes, verify, rewrite."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from spark_tools import BLOOM, ask

import pyparq
from pyparq import col
from pyparq.errors import OptionError, TargetExistsError

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files by pyarrow in two partitions, without any index."""
    path = tmp_path_factory.mktemp("jobs") / "plain"
    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "id": rng.permutation(20_000) * 2,
            "name": [f"n{k:05d}" for k in rng.integers(0, 30_000, 20_000)],
            "day": pa.array(np.sort(rng.integers(0, 1_000, 20_000)).astype("int32"), pa.date32()),
            "year": pa.array(np.repeat([2023, 2024], 10_000), pa.int32()),
        }
    )
    parts = pads.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
    options = pads.ParquetFileFormat().make_write_options(use_dictionary=False)
    pads.write_dataset(table, path, format="parquet", partitioning=parts, file_options=options,
                       max_rows_per_file=4_000, max_rows_per_group=4_000)  # fmt: skip
    return path


@pytest.fixture
def folder(plain: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(plain, tmp_path / "table"))


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def test_indexes_for_all_files(spark: Any, ps: Any, folder: Path) -> None:
    before = pyparq.read_table(folder)
    report = ps.add_indexes(spark, folder, bloom_filters=["id"]).collect()
    assert [row.path for row in report] == [str(path) for path in files_of(folder)]
    assert all(row.ok and row.error is None and row.rows > 0 and row.seconds > 0 for row in report)
    assert all("bloom_filter: id" in row.added and "column_index" in row.added for row in report)
    assert all(row.bytes_copied > 0 and row.bytes_written > 0 and row.bytes_decoded > 0 for row in report)
    assert pyparq.read_table(folder) == before
    assert pyparq.verify(folder).ok
    with pyparq.ParquetFile(files_of(folder)[0]) as file:
        assert file.bloom_filter(0, "id") is not None
        assert file.column_index(0, "day") is not None


def test_sparks_reader_skips_with_the_new_indexes(spark: Any, ps: Any, folder: Path) -> None:
    path = files_of(folder)[0]
    assert ask(spark, path, "id = 7").scanned > 0  # odd numbers are not there, but within the bounds
    ps.add_indexes(spark, folder, bloom_filters={"id": 0.001})
    spark.catalog.clearCache()
    assert ask(spark, path, "id = 7").scanned == 0
    assert ask(spark, path, "id = 7", off=(BLOOM,)).scanned > 0


def test_a_second_run_leaves_all_files_alone(spark: Any, ps: Any, folder: Path) -> None:
    ps.add_indexes(spark, folder, bloom_filters=["id"])
    before = [(path, path.stat().st_ino, path.stat().st_mtime_ns) for path in files_of(folder)]
    report = ps.add_indexes(spark, folder, bloom_filters=["id"]).collect()
    assert [(path, path.stat().st_ino, path.stat().st_mtime_ns) for path in files_of(folder)] == before
    assert all(row.ok and row.added is None and row.bytes_written == 0 for row in report)


def test_a_bad_file_is_a_row_and_the_others_go_on(spark: Any, ps: Any, folder: Path) -> None:
    bad = folder / "year=2023" / "bad.parquet"
    bad.write_bytes(b"PAR1" + b"x" * 50 + b"PAR1")
    report = {row.path: row for row in ps.add_indexes(spark, folder, bloom_filters=["id"]).collect()}
    assert not report[str(bad)].ok
    assert "CorruptFileError" in report[str(bad)].error
    assert sum(row.ok for row in report.values()) == len(report) - 1
    checked = {row.path: row for row in ps.verify(spark, folder).collect()}
    assert [path for path, row in checked.items() if not row.ok] == [str(bad)]


def test_files_that_spark_wrote_can_be_read_after_a_change_in_place(spark: Any, ps: Any, tmp_path: Path) -> None:
    """Hadoop's checksum files beside them are stale then."""
    spark.range(1_000).coalesce(1).write.parquet(str(tmp_path / "t"))
    assert list((tmp_path / "t").glob(".*.crc"))
    assert ps.add_indexes(spark, tmp_path / "t", bloom_filters=["id"]).collect()[0].ok
    assert spark.read.parquet(str(tmp_path / "t")).count() == 1_000


def test_to_another_folder(spark: Any, ps: Any, folder: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in files_of(folder)}
    ps.add_indexes(spark, folder, tmp_path / "new", bloom_filters=["id"])
    assert {path: path.read_bytes() for path in files_of(folder)} == before
    names = [str(path.relative_to(tmp_path / "new")) for path in files_of(tmp_path / "new")]
    assert names == [str(path.relative_to(folder)) for path in files_of(folder)]
    assert pyparq.read_table(tmp_path / "new") == pyparq.read_table(folder)
    same = [str(path) for path in files_of(folder)]
    with pytest.raises(OptionError, match="would both be written"):
        ps.add_indexes(spark, [same[0], same[0]], tmp_path / "twice", bloom_filters=["id"])


def test_progress_counts_files(spark: Any, ps: Any, folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    ps.verify(spark, folder, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(files_of(folder)), len(files_of(folder)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_findings_are_told(spark: Any, ps: Any, folder: Path) -> None:
    path = files_of(folder)[1]
    data = path.read_bytes()
    largest = max(pq.read_table(path, columns=["id"])["id"].to_pylist())
    body, footer = data[: -len(data) // 20], data[-len(data) // 20 :]
    wrong = footer.replace(struct.pack("<q", largest), struct.pack("<q", largest - 2))
    assert wrong != footer
    path.write_bytes(body + wrong)
    rows = {row.path: row for row in ps.verify(spark, folder).collect()}
    assert [path for path, row in rows.items() if not row.ok] == [str(path)]
    assert "id" in rows[str(path)].error
    assert "max" in rows[str(path)].error


def test_unknown_options_stop_before_the_job(spark: Any, ps: Any, folder: Path) -> None:
    with pytest.raises(OptionError, match="bloom_filters"):
        ps.add_indexes(spark, folder, bloom_filter=["id"])
    with pytest.raises(OptionError, match="unknown option"):
        ps.verify(spark, folder, fast=True)
    with pytest.raises(FileNotFoundError):
        ps.verify(spark, folder / "nowhere")


def test_groups_of_similar_size() -> None:
    from pyparq.spark.file_jobs import balanced

    sizes = [100 << 20, 1 << 20, 50 << 20, 49 << 20, 2 << 20, 98 << 20]
    groups = [sum(group) for group in balanced(sizes, sizes, 3)]
    assert len(groups) == 3
    assert max(groups) <= 105 << 20
    assert len(balanced(sizes, sizes, 100)) == len(sizes)
    assert balanced([], [], 4) == []


# ---- rewrite -------------------------------------------------------------------------------------------------------


def test_rewrite_joins_small_files_and_sorts(spark: Any, ps: Any, folder: Path, tmp_path: Path) -> None:
    report = ps.rewrite(spark, folder, tmp_path / "new", sort_by=["id"], bloom_filters=["id"]).collect()
    assert sorted(row.path for row in report) == [str(path) for path in files_of(tmp_path / "new")]
    assert sum(row.rows for row in report) == 20_000
    assert sorted(path.parent.name for path in files_of(tmp_path / "new")) == ["year=2023", "year=2024"]
    new = pyparq.read_table(tmp_path / "new", ["id"], col("year") == 2024)["id"].to_pylist()
    assert new == sorted(pyparq.read_table(folder, ["id"], col("year") == 2024)["id"].to_pylist())
    theirs = spark.read.parquet(str(tmp_path / "new"))
    assert theirs.exceptAll(spark.read.parquet(str(folder)).select(*theirs.columns)).count() == 0


def test_rewrite_in_place(spark: Any, ps: Any, folder: Path) -> None:
    before = pyparq.read_table(folder).num_rows
    ps.rewrite(spark, folder, filters=col("day") < "1971-06-01", columns=["id", "day", "year"], compression="zstd")
    after = pyparq.dataset(folder)
    assert after.schema.names == ["id", "day", "year"]
    assert 0 < after.count() < before
    assert all(pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD" for path in files_of(folder))
    assert not [name for name in os.listdir(folder) if name.startswith("_pyparq")]


def test_rewrite_refuses_what_is_there(spark: Any, ps: Any, folder: Path, tmp_path: Path) -> None:
    ps.rewrite(spark, folder, tmp_path / "new", partition_cols=[])
    with pytest.raises(TargetExistsError):
        ps.rewrite(spark, folder, tmp_path / "new")
    with pytest.raises(OptionError, match="give a target"):
        ps.rewrite(spark, [str(folder)])
    kept = pyparq.read_table(tmp_path / "new").num_rows
    with pytest.raises(OptionError, match="compression"):
        ps.rewrite(spark, folder, tmp_path / "new", mode="overwrite", compresion="zstd")
    assert pyparq.read_table(tmp_path / "new").num_rows == kept


# ---- the command line ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_commands_run_as_spark_jobs(spark: Any, ps: Any, folder: Path, tmp_path: Path) -> None:
    """In a process of its own, which starts its own Spark."""
    import json
    import subprocess
    import sys

    command = [sys.executable, "-m", "pyparq"]
    (folder / "year=2023" / "bad.parquet").write_bytes(b"no Parquet")
    added = subprocess.run([*command, "add-index", str(folder), "--bloom", "id", "--spark", "--json"],
                           capture_output=True, text=True)  # fmt: skip
    assert added.returncode == 1, added.stderr
    rows = json.loads(added.stdout)["files"]
    assert [row["ok"] for row in rows].count(False) == 1
    assert sum("bloom_filter: id" in (row["added"] or "") for row in rows) == len(rows) - 1
    (folder / "year=2023" / "bad.parquet").unlink()
    checked = subprocess.run([*command, "verify", str(folder), "--master", "local[1]"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert f"{len(rows) - 1} files, none with errors" in checked.stdout
