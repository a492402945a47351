"""Plans of datasets: values that other processes run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.datasets import scan as plans
from pyparq.encryption import DecryptionProperties, EncryptionProperties
from pyparq.errors import OptionError, PlanError, SkippedFileWarning

ROWS = 1_200
KEY = b"0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files in two levels of partitions, two row groups each."""
    path = tmp_path_factory.mktemp("plan") / "table"
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "text": [f"word {k % 17}" for k in range(ROWS)],
            "year": pa.array(np.repeat([2022, 2023, 2024], ROWS // 3), pa.int32()),
            "city": np.tile(["Lima", None], ROWS // 2),
        }
    )
    parts = pads.partitioning(pa.schema([("year", pa.int32()), ("city", pa.string())]), flavor="hive")
    pads.write_dataset(table, path, format="parquet", partitioning=parts, max_rows_per_group=110)
    return path


QUESTIONS = {
    "everything": {},
    "some columns": {"columns": ["text", "year"]},
    "no column": {"columns": []},
    "partitions": {"filters": col("year") == 2023},
    "partitions and rows": {"filters": (col("year") >= 2023) & (col("id") < 850) & (col("text") == "word 3")},
    "a partition that is null": {"columns": ["id", "city"], "filters": col("city").is_null() & (col("id") > 700)},
    "nothing": {"filters": col("id") > 10_000},
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("parts", [1, 2, 5, 100, None])
def test_parts_together_give_the_rows_of_the_scan(folder: Path, question: str, parts: int | None) -> None:
    ds = pyparq.dataset(folder)
    asked = QUESTIONS[question]
    plan = ds.plan(**asked)
    cut = pickle.loads(pickle.dumps(plan.split(parts)))
    assert plan.join(part.scan().to_table() for part in cut) == ds.scan(**asked).to_table()
    assert sum(part.num_bytes for part in cut) == plan.num_bytes
    assert sum(part.num_rows for part in cut) == plan.num_rows
    assert {part.schema for part in cut} == {ds.scan(**asked).schema}
    assert all(len(part.values[0]) <= len(part.files) for part in cut if part.files)


def test_parts_are_balanced_by_bytes(folder: Path) -> None:
    plan = pyparq.dataset(folder).plan()
    sizes = [part.num_bytes for part in plan.split(4)]
    assert len(sizes) == 4
    assert max(sizes) < 1.5 * plan.num_bytes / 4


def test_another_process_in_another_folder_runs_a_part(folder: Path, tmp_path: Path) -> None:
    """Relative paths of the planning process are no help there."""
    before = os.getcwd()
    os.chdir(folder.parent)
    try:
        plan = pyparq.dataset("table").plan(["id"], col("id") < 900)
    finally:
        os.chdir(before)
    (tmp_path / "plan").write_bytes(pickle.dumps(plan.split(2)[1]))
    code = (
        "import pickle, sys; plan = pickle.load(open(sys.argv[1], 'rb')); table = plan.scan().to_table()\n"
        "print(sum(table['id'].to_pylist()))"
    )
    run = [sys.executable, "-c", code, str(tmp_path / "plan")]
    ran = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    expected = plan.split(2)[1].scan().to_table()
    assert int(ran.stdout) == sum(expected["id"].to_pylist())


def test_a_limit_leaves_out_what_lies_behind_enough_rows(folder: Path) -> None:
    ds = pyparq.dataset(folder)
    plan = ds.plan(limit=250)
    assert len(plan.files) == 2
    assert plan.num_rows < 450
    assert plan.join(part.scan().to_table() for part in plan.split()) == ds.scan(limit=250).to_table()
    question = col("text") == "word 4"
    filtered = ds.plan(filters=question, limit=9)
    parts = [part.scan().to_table() for part in filtered.split()]
    assert max(part.num_rows for part in parts) <= 9
    assert filtered.join(parts) == ds.scan(filters=question, limit=9).to_table()


def test_a_planned_scan_is_a_scan(folder: Path) -> None:
    plan = pyparq.dataset(folder).plan(filters=col("id") >= 1_000)
    expected = pyparq.dataset(folder).read(filters=col("id") >= 1_000)
    assert pa.table(plan.scan()).num_rows == 200
    assert plan.scan().count() == 200
    assert sum(batch.num_rows for batch in plan.scan().iter_batches(7)) == 200
    assert plan.scan(use_threads=False).to_table() == expected
    again = pickle.loads(pickle.dumps(plan)).scan().plan()
    assert again.scan().to_table() == expected


def test_indexes_are_not_asked_again(folder: Path, tmp_path: Path) -> None:
    table = pa.table({"id": np.random.default_rng(5).permutation(20_000), "x": np.arange(20_000)})
    for k in range(2):
        part = table.slice(k * 10_000, 10_000)
        pyparq.write_table(part, tmp_path / f"{k}.parquet", bloom_filters=["id"], max_rows_per_page=500)
    plan = pyparq.dataset(tmp_path).plan(filters=col("id") == int(table["id"][15_000].as_py()))
    assert [Path(file.where).name for file in plan.files] == ["1.parquet"]
    scan = plan.scan()
    assert scan.to_table()["x"].to_pylist() == [15_000]
    assert all(report.bytes == 0 for report in scan.explain().stages)


def test_file_names_stay_those_of_the_planning_process(folder: Path) -> None:
    ds = pyparq.dataset(folder, filename=True)
    plan = pickle.loads(pickle.dumps(ds.plan(["filename", "id"])))
    assert plan.scan().to_table() == ds.read(["filename", "id"])
    parts = [part.scan().to_table()["filename"].to_pylist() for part in plan.split()]
    assert [names[0] for names in parts] == ds.files


def test_files_of_different_schemas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["x"], "a": pa.array([1 << 40], pa.int64())}), tmp_path / "2.parquet")
    ds = pyparq.dataset(tmp_path)
    plan = ds.plan(filters=col("a") >= 2)
    assert plan.join(part.scan().to_table() for part in plan.split()) == ds.read(filters=col("a") >= 2)
    assert plan.split()[0].scan().to_table().to_pydict() == {"a": [2], "b": [None]}


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    for k in range(2):
        pq.write_table(pa.table({"a": [k]}), tmp_path / f"{k}.parquet")
    plan = pyparq.dataset(tmp_path).plan()
    skipping = pyparq.dataset(tmp_path, on_error="skip").plan()
    os.utime(tmp_path / "0.parquet")
    assert plan.scan().to_table().num_rows == 2  # a new time alone changes nothing
    pq.write_table(pa.table({"a": [7, 8]}), tmp_path / "1.parquet")
    with pytest.raises(PlanError, match=r"make the plan again .*1\.parquet"):
        plan.scan().to_table()
    with pytest.warns(SkippedFileWarning, match=r"make the plan again"):
        assert skipping.scan().to_table().num_rows == 1


def test_neither_keys_nor_storage_options_travel(tmp_path: Path) -> None:
    path = tmp_path / "sealed.parquet"
    pyparq.write_table({"a": [1, 2, 3]}, path, encryption=EncryptionProperties(footer_key=KEY))
    keys = DecryptionProperties(footer_key=KEY)
    plan = pyparq.dataset(tmp_path, decryption=keys).plan(filters=col("a") > 1)
    pickled = pickle.dumps(plan)
    assert KEY not in pickled
    assert pickle.loads(pickled).scan(decryption=keys).to_table()["a"].to_pylist() == [2, 3]
    with pytest.raises(pyparq.EncryptionError):
        pickle.loads(pickled).scan().to_table()


def test_a_url_keeps_its_credentials_out(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    fs.pipe("/plan/a.parquet", pyparq_bytes())
    try:
        plan = pyparq.dataset("memory://plan/", storage_options={"secret": "do-not-show"}).plan()
        assert b"do-not-show" not in pickle.dumps(plan)
        assert plan.scan(storage_options={}).to_table()["a"].to_pylist() == [1, 2]
    finally:
        fs.rm("/plan", recursive=True)


def pyparq_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    return bytes(sink.getvalue())


def test_what_has_no_path_cannot_be_planned() -> None:
    with pytest.raises(PlanError, match="path or URL"):
        pyparq.dataset([pyparq_bytes()]).plan()


def test_options_of_the_plan_cannot_be_changed(folder: Path) -> None:
    plan = pyparq.dataset(folder).plan()
    with pytest.raises(OptionError, match="read_dictionary"):
        plan.scan(read_dictionary=["text"])
    with pytest.raises(PlanError, match="at least 1"):
        plan.split(0)


def test_options_of_the_plan_are_those_of_the_dataset(folder: Path) -> None:
    plan = pyparq.dataset(folder, read_dictionary=["text"]).plan(["text"])
    table = pa.table(pickle.loads(pickle.dumps(plan)).scan())
    assert pa.types.is_dictionary(table.schema.field("text").type)


def test_a_plan_of_another_version_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = pyparq.dataset(folder).plan(filters=col("id") == 1)
    monkeypatch.setattr(plans, "DATASET_PLAN_VERSION", 99)
    pickled = pickle.dumps(plan)
    monkeypatch.undo()
    with pytest.raises(PlanError, match="plan version 99"):
        pickle.loads(pickled)


def test_an_altered_plan_is_refused(folder: Path) -> None:
    plan = pyparq.dataset(folder).plan()
    file = plan.files[0]
    without_reads = replace(file.row_groups[0], output_reads=())
    altered = replace(plan, files=(replace(file, row_groups=(without_reads,)),))
    with pytest.raises(PlanError, match="does not read each column"):
        altered.scan().to_table()


def test_a_plan_prints_what_it_reads(folder: Path) -> None:
    text = str(pyparq.dataset(folder).plan(["id"], col("id") < 500))
    assert "files" in text
    assert "year=2022" in text
    assert str(folder) in text


def test_a_filter_may_name_columns_that_decide_nothing(tmp_path: Path) -> None:
    pyparq.write_table({"id": list(range(50)), "s": ["a", "b"] * 25}, tmp_path / "x.parquet")
    never = (col("id") >= 7) & (col("id") <= 1)
    for columns in ([], ["s"]):
        plan = pyparq.dataset(tmp_path).scan(columns, never | (col("s") == "b")).plan()
        assert pickle.loads(pickle.dumps(plan)).scan().count() == 25


@pytest.mark.parametrize("catalog", ["off", "check", "trust"])
def test_a_dataset_that_was_used_goes_to_another_process(catalog: str, tmp_path: Path) -> None:
    """What it has opened stays behind."""
    pyparq.write_dataset({"id": range(90)}, tmp_path / "t", max_rows_per_file=30, bloom_filters=["id"])
    for path in (tmp_path / "t").iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    if catalog != "off":
        pyparq.index_dataset(tmp_path / "t", ["id"])
    ds = pyparq.dataset(tmp_path / "t", catalog=catalog)
    for use in (lambda: ds.lookup("id", 7), ds.count, ds.read, lambda: ds.count(col("id") == 8)):
        use()
        again = pickle.loads(pickle.dumps(ds))
        assert again.lookup("id", [7, 77, 777])["id"].to_pylist() == [7, 77]
        assert again.count() == 90


def test_a_scan_of_a_plan_takes_no_other_question(tmp_path: Path) -> None:
    """Its reads are planned for its own: a filter that was left out would give rows too many."""
    for k in range(3):
        pyparq.write_table({"a": [3 * k, 3 * k + 1, 3 * k + 2]}, tmp_path / f"{k}.parquet")
    scan = pyparq.dataset(tmp_path).plan().scan()
    for ask in (lambda: scan.filter("a < 2"), lambda: scan.select("a")):
        with pytest.raises(pyparq.OptionError, match="runs a plan"):
            ask()
    assert scan.to_arrow()["a"].to_pylist() == list(range(9))
    assert [row for batch in scan for row in batch["a"].to_pylist()] == list(range(9))
    # The plan of one file is asked again, within its rows.
    with pyparq.ParquetFile(tmp_path / "1.parquet") as file:
        planned = file.scan(rows=slice(1, 3)).plan()
        assert file.scan_of(planned).filter("a != 5").to_table()["a"].to_pylist() == [4]
