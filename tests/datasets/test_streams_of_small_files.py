"""Batches of many small local files: they are read together behind the first ones, in their order, and one that is
damaged or was changed is told by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

FILES, ROWS = 150, 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of three kinds, each in a run: by pyparq, by pyarrow, and with another column type."""
    rng = np.random.default_rng(5)
    for k in range(FILES):
        ids = np.arange(k * ROWS, (k + 1) * ROWS)
        table = pa.table({
            "id": pa.array(ids, pa.int32() if 60 <= k < 70 else pa.int64()),
            "text": [None if n % 7 == 0 else f"t{n % 11}" for n in ids],
            "list": [list(range(n % 4)) for n in ids],
            "x": rng.normal(size=ROWS),
        })  # fmt: skip
        place = tmp_path / f"part={k // 50}" / f"{k:03}.parquet"
        place.parent.mkdir(exist_ok=True)
        if 80 <= k < 120:
            pq.write_table(table, place, row_group_size=15)
        else:
            pyparq.write_table(table, place, row_group_size=30 if k % 3 else ROWS)
    return tmp_path


def by_pyarrow(folder: Path) -> pa.Table:
    tables = [pq.ParquetFile(path).read() for path in sorted(folder.rglob("*.parquet"))]
    parts = [pa.array([k // 50] * ROWS, pa.int64()) for k in range(FILES)]
    return pa.concat_tables(
        t.set_column(0, "id", t["id"].cast(pa.int64())).append_column("part", part)
        for t, part in zip(tables, parts, strict=True)
    )


def rows(batches: list[pyparq.Batch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("batch_size", [None, 1, 7, 64, 1 << 16])
def test_rows_come_in_the_order_of_the_files(folder: Path, batch_size: int | None) -> None:
    dataset, wanted = pyparq.dataset(folder), by_pyarrow(folder).to_pylist()
    for scan in (dataset.scan(), dataset.plan().scan()):
        batches = list(scan.iter_batches(batch_size))
        assert rows(batches) == wanted
        assert scan.rows_returned == len(wanted)
        assert scan.share_read == 1.0
        assert all(batch.schema == scan.schema for batch in batches)
        if batch_size is not None:
            assert max(batch.num_rows for batch in batches) <= batch_size
    assert batch_size != 1 << 16 or len(batches) < 2 * FILES // 3  # they were read together
    assert pa.RecordBatchReader.from_stream(dataset.scan()).read_all().to_pylist() == wanted


@pytest.mark.parametrize("question", [col("id") % 13 == 4, col("text") == "t3", (col("part") == 1) & (col("x") > 1)])
def test_a_filter(folder: Path, question: pyparq.Expression) -> None:
    dataset = pyparq.dataset(folder)
    wanted = dataset.scan(filters=question).to_table().to_pylist()
    assert wanted
    for scan in (dataset.scan(filters=question), dataset.plan(filters=question).scan()):
        assert rows(list(scan.iter_batches(100))) == wanted


def test_a_limit_opens_no_more_files(folder: Path) -> None:
    told: list[int] = []
    scan = pyparq.dataset(folder, progress=lambda done, _: told.append(done)).scan(limit=ROWS + 1)
    assert rows(list(scan.iter_batches())) == by_pyarrow(folder).to_pylist()[: ROWS + 1]
    assert max(told) <= 2


def test_progress_goes_up_to_all_files(folder: Path) -> None:
    told: list[int] = []
    for _ in pyparq.dataset(folder, progress=lambda done, _: told.append(done)).scan().iter_batches():
        pass
    assert told == sorted(told)
    assert told[-1] == FILES


@pytest.mark.parametrize("number", [3, 30, 65, 149])
def test_a_damaged_file_is_named_or_left_out(folder: Path, number: int) -> None:
    (path,) = folder.rglob(f"{number:03}.parquet")
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(b ^ 0x55 for b in data[4:40])
    path.write_bytes(data)
    with pytest.raises(pyparq.CorruptFileError, match=f"{number:03}.parquet"):
        list(pyparq.dataset(folder).scan().iter_batches())
    dataset = pyparq.dataset(folder, on_error="skip")
    with pytest.warns(pyparq.SkippedFileWarning, match=f"{number:03}.parquet"):
        found = rows(list(dataset.scan().iter_batches()))
    left = {row["id"] for row in found}
    whole = set(range(FILES * ROWS))
    assert whole - left <= set(range(number * ROWS, (number + 1) * ROWS))
    assert [row["id"] for row in found] == sorted(left)


@pytest.mark.parametrize("number", [3, 30, 65, 149])
def test_a_plan_refuses_a_file_that_was_replaced(folder: Path, number: int) -> None:
    plan = pyparq.dataset(folder).plan()
    (path,) = folder.rglob(f"{number:03}.parquet")
    other = pq.ParquetFile(path).read()
    pyparq.write_table(other.slice(0, ROWS - 1), path)
    with pytest.raises(pyparq.PlanError, match=f"{number:03}.parquet"):
        list(plan.scan().iter_batches())
    with pytest.raises(pyparq.PlanError, match=f"{number:03}.parquet"):
        plan.scan().to_table()


def test_parts_of_a_plan(folder: Path) -> None:
    """Parts may have some of a file's row groups: these files are read as planned."""
    plan = pyparq.dataset(folder).plan()
    for parts in (2, 7, 400):
        found = [row for part in plan.split(parts) for row in rows(list(part.scan(use_threads=False).iter_batches()))]
        assert found == by_pyarrow(folder).to_pylist()
