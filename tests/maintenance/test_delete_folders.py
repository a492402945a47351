"""``pyparq.delete`` in folders: all of it or nothing, other writers' work stays, and no trace of the rows is left."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from plain_pages import plain_bytes

import pyparq
from pyparq import ChangedFileError, OptionError, col
from pyparq.datasets.write import folder_commit
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import open_file
from pyparq.read.plan.bloom_probe import read_filter

FILES, ROWS = 6, 500


def lake(folder: Path, **options: Any) -> Path:
    """``FILES`` files in partitions ``g=0`` and so on; ids count on through all of them."""
    for g in range(FILES):
        ids = np.arange(g * ROWS, (g + 1) * ROWS)
        (folder / f"g={g}").mkdir(parents=True)
        data = pa.table({"id": ids, "name": [f"person-{k:06d}-{k * 7919}" for k in ids], "rest": ids % 7})
        pyparq.write_table(data, folder / f"g={g}" / "part-0.parquet", row_group_size=100, **options)
    return folder


def ids(folder: Path) -> list[int]:
    return sorted(pads.dataset(folder, partitioning="hive").to_table(columns=["id"])["id"].to_pylist())


def states(folder: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in folder.rglob("*.parquet"))
    return {str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def test_only_files_with_such_rows_change(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake", bloom_filters=["id"])
    before = states(folder)
    report = pyparq.delete(folder, keys={"id": [3, 7, 1001, 10**9]})
    after = states(folder)
    assert sorted(name for name in before if before[name] != after.get(name)) == [
        "g=0/part-0.parquet",
        "g=2/part-0.parquet",
    ]
    assert before.keys() == after.keys()
    assert ids(folder) == [k for k in range(FILES * ROWS) if k not in (3, 7, 1001)]
    assert [(file.rows_deleted, file.row_groups_copied) for file in report.files] == [(2, 4), (1, 4)]
    assert report.files_total == FILES
    assert report.indexes
    assert not pyparq.delete(folder, keys={"id": [3, 7, 1001]}).files
    assert not [name for name in os.listdir(folder) if name.startswith("_")]


def test_partitions_answer_without_a_file_being_read(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    report = pyparq.delete(folder, "g = 1 or (g = 2 and id < 1010)")
    assert [file.removed for file in report.files] == [True, False]
    assert not (folder / "g=1").exists()
    assert ids(folder) == [k for k in range(FILES * ROWS) if k // ROWS != 1 and not (k // ROWS == 2 and k < 1010)]


def test_files_of_other_schemas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2, 3, None], pa.int64()), "x": ["a", "b", "c"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": ["b", None]}), tmp_path / "c.parquet")
    assert pyparq.delete(tmp_path, "id = 2 or x = 'b'").rows_deleted == 4
    assert pq.read_table(tmp_path / "a.parquet")["id"].to_pylist() == [1, 3]
    assert pq.read_schema(tmp_path / "a.parquet").field("id").type == pa.int32()
    assert pq.read_table(tmp_path / "b.parquet")["id"].to_pylist() == [None]
    assert pq.read_table(tmp_path / "c.parquet")["x"].to_pylist() == [None]


def test_globs_lists_and_datasets(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    for source in (f"{folder}/g=0/*.parquet", [folder / "g=1/part-0.parquet", folder / "g=0/part-0.parquet"],
                   "dataset"):  # fmt: skip
        number = {str: 5, list: 505}[type(source)] if source != "dataset" else 1005
        source = pyparq.dataset(folder) if source == "dataset" else source
        report = pyparq.delete(source, col("id") == number)
        assert (report.rows_deleted, len(report.files)) == (1, 1)
    assert ids(folder) == [k for k in range(FILES * ROWS) if k not in (5, 505, 1005)]


def test_summaries_and_checksums_go_with_a_word(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    for name in ("_metadata", "_common_metadata", "g=0/.part-0.parquet.crc", "g=1/.part-0.parquet.crc", "_SUCCESS"):
        (folder / name).write_bytes(b"x")
    report = pyparq.delete(folder, col("id") == 5)
    gone = {"_metadata", "_common_metadata", "g=0/.part-0.parquet.crc"}
    assert {note.split(",")[0].removeprefix("removed ") for note in report.notes} == gone
    assert not any((folder / name).exists() for name in gone)
    assert (folder / "g=1/.part-0.parquet.crc").exists()
    assert (folder / "_SUCCESS").exists()


@pytest.mark.parametrize("marker", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"])
@pytest.mark.parametrize("condition", ["id = 5", "id = -1"])
@pytest.mark.filterwarnings("ignore::pyparq.ManagedTableWarning")
def test_tables_of_other_formats_are_refused(tmp_path: Path, marker: str, condition: str) -> None:
    folder = lake(tmp_path / "table" / "data")
    (tmp_path / "table" / marker).parent.mkdir()
    (tmp_path / "table" / marker).write_text("{}")
    before = states(folder)
    for source in (folder, folder / "g=0" / "part-0.parquet", f"{folder}/*/*.parquet"):
        with pytest.raises(OptionError, match="force"):
            pyparq.delete(source, condition)
    assert states(folder) == before
    assert pyparq.delete(folder, "id = 5", force=True).rows_deleted == 1


# ---- other programs --------------------------------------------------------------------------------------------------


def at_step(monkeypatch: pytest.MonkeyPatch, step: str, work: Any, nth: int = 1) -> None:
    """Do something when a commit reaches a step for the nth time."""
    seen = [0]

    def reached(name: str) -> None:
        if name == step:
            seen[0] += 1
            if seen[0] == nth:
                work()

    monkeypatch.setattr(folder_commit, "reached", reached)


def test_a_file_that_another_program_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lake(tmp_path / "lake")
    theirs = folder / "g=0" / "part-0.parquet"
    at_step(monkeypatch, "staged", lambda: pyparq.write_table({"id": [-1]}, theirs))
    with pytest.raises(ChangedFileError, match="changed"):
        pyparq.delete(folder, "id in (5, 600)")
    assert pq.read_table(theirs)["id"].to_pylist() == [-1]
    assert 600 in ids(folder / "g=1")
    monkeypatch.undo()
    assert pyparq.delete(folder, "id in (5, 600)").rows_deleted == 1


def test_files_that_are_added_meanwhile_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lake(tmp_path / "lake")
    at_step(monkeypatch, "staged", lambda: pyparq.write_table({"id": [10**6]}, folder / "g=0" / "new.parquet"))
    pyparq.delete(folder, "id = 5")
    assert 10**6 in ids(folder)
    assert 5 not in ids(folder)


# ---- retries ---------------------------------------------------------------------------------------------------------


def during(*work: Any) -> Any:
    """A ``progress=`` that does one thing after the other, once each."""
    left = list(work)
    return lambda done, total: left.pop(0)() if left else None


def rewritten(path: Path, rest: int) -> None:
    """Another program sets a column of all rows."""
    data = pq.ParquetFile(path).read()
    pq.write_table(data.set_column(2, "rest", pa.array([rest] * data.num_rows)), path)


def test_a_conflict_is_tried_again(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    theirs = folder / "g=0" / "part-0.parquet"
    with pytest.raises(ChangedFileError, match="changed"):
        pyparq.delete(folder, "rest in (3, 9)", progress=during(lambda: rewritten(theirs, 8)))
    assert len(ids(folder)) == FILES * ROWS
    work = during(None.__class__, lambda: rewritten(folder / "g=1" / "part-0.parquet", 9))
    report = pyparq.delete(folder, "rest in (3, 9)", retries=1, progress=work)
    assert ids(folder) == [k for k in range(FILES * ROWS) if (k % 7 != 3 or k < ROWS) and k // ROWS != 1]
    assert report.rows_deleted == FILES * ROWS - len(ids(folder))
    assert not [name for name in os.listdir(folder) if name.startswith("_")]


def test_a_file_that_gets_such_rows_meanwhile(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    pyparq.update(folder, "g = 0", {"rest": 8})
    theirs = folder / "g=0" / "part-0.parquet"
    pyparq.delete(folder, "rest in (3, 9)", retries=1, progress=during(lambda: rewritten(theirs, 9)))
    assert ids(folder) == [k for k in range(ROWS, FILES * ROWS) if k % 7 != 3]


def test_conflicts_end_after_so_many_retries(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    theirs, calls = folder / "g=0" / "part-0.parquet", list[int]()

    def again(done: int, total: int) -> None:
        if done == total:
            calls.append(done)
            rewritten(theirs, 3)

    with pytest.raises(ChangedFileError, match="changed"):
        pyparq.delete(folder, "rest = 3", retries=2, progress=again)
    assert len(calls) == 3
    assert len(ids(folder)) == FILES * ROWS


@pytest.mark.parametrize("as_glob", [False, True])
def test_files_that_are_added_meanwhile_are_looked_at(tmp_path: Path, as_glob: bool) -> None:
    folder = lake(tmp_path / "lake")
    new = [folder / "g=0" / f"new-{k}.parquet" for k in range(3)]
    data = {"id": [-1, -2], "name": ["a", "b"], "rest": [3, 4]}
    writes = [lambda path=path: pyparq.write_table(data, path) for path in new]
    source = f"{folder}/*/*.parquet" if as_glob else folder
    report = pyparq.delete(source, "rest = 3", retries=2, progress=during(writes[0], *[None.__class__] * 5, writes[1]))
    assert not report.notes
    assert {Path(file.file).name for file in report.files} == {"part-0.parquet", "new-0.parquet", "new-1.parquet"}
    assert report.files_total == FILES + 2
    assert [pq.read_table(path, partitioning=None)["id"].to_pylist() for path in new[:2]] == [[-2], [-2]]
    late = during(*[None.__class__] * 5, writes[2])
    report = pyparq.delete(source, "rest in (3, 5)", retries=0, progress=late)
    assert pq.read_table(new[2], partitioning=None)["id"].to_pylist() == [-1, -2]
    theirs = folder / "g=0" / "last.parquet"
    report = pyparq.delete(source, "rest in (3, 6)", retries=1, progress=during(
        lambda: pyparq.write_table(data, folder / "g=0" / "next.parquet"), *[None.__class__] * 6,
        lambda: pyparq.write_table(data, theirs),
    ))  # fmt: skip
    assert report.notes == ("more files were added or changed while the last round ran, and they were not looked at",)
    assert pq.read_table(theirs, partitioning=None)["id"].to_pylist() == [-1, -2]


def compacted(folder: Path, *names: str) -> None:
    """Another program joins files of ``g=0``."""
    inside = folder / "g=0"
    data = pa.concat_tables(pq.ParquetFile(inside / name).read() for name in names)
    pq.write_table(data, inside / "joined.parquet")
    for name in names:
        (inside / name).unlink()


def test_an_update_is_never_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lake(tmp_path / "lake")
    at_step(monkeypatch, "record removed", lambda: compacted(folder, "part-0.parquet"))
    report = pyparq.update(folder, "id < 10", {"rest": col("rest") + 100}, retries=3)
    assert "may have rows that have changed" in report.notes[0]
    found = pads.dataset(folder, partitioning="hive").to_table(filter=pads.field("id") < 10)
    assert sorted(found["rest"].to_pylist()) == sorted(k % 7 + 100 for k in range(10))


def test_an_upsert_and_rows_that_are_added_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lake(tmp_path / "lake")
    theirs = pa.table({"id": [-1, 5, -7], "name": ["theirs"] * 3, "rest": pa.array([1, 1, 1])})
    ours = {"id": [-1, 5, 7], "name": ["ours"] * 3, "rest": [2, 2, 2], "g": [0, 0, 3]}
    new = folder / "g=0" / "new.parquet"
    report = pyparq.upsert(folder, ours, "id", retries=1, progress=during(lambda: pq.write_table(theirs, new)))
    assert (report.rows_updated, report.rows_added, report.rows_deleted) == (1, 2, 3)
    rows = [row for row in pads.dataset(folder, partitioning="hive").to_table().to_pylist() if row["rest"] < 3]
    assert sorted((row["id"], row["g"], row["name"]) for row in rows if row["name"] in ("ours", "theirs")) == [
        (-7, 0, "theirs"), (-1, 0, "ours"), (5, 0, "ours"), (7, 3, "ours")
    ]  # fmt: skip
    assert len(ids(folder)) == FILES * ROWS + 2
    # A compaction moves rows of ours: they stay.
    at_step(monkeypatch, "record removed", lambda: compacted(folder, "part-0.parquet", "new.parquet"))
    report = pyparq.upsert(folder, {**ours, "name": ["again"] * 3}, "id", retries=2)
    assert "may have rows that have changed" in report.notes[0]
    found = pads.dataset(folder, partitioning="hive").to_table(filter=pads.field("id").isin([-1, 5, 7]))
    assert found["name"].to_pylist() == ["again"] * 3


def test_retries_need_a_source_that_can_be_listed_again(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    with pytest.raises(OptionError, match="retries needs a path"):
        pyparq.delete(pyparq.dataset(folder), "id = 5", retries=1)
    for wrong in (-1, 1.5, True):
        with pytest.raises(OptionError, match="retries must be"):
            pyparq.delete(folder, "id = 5", retries=wrong)  # type: ignore[arg-type]
    assert len(ids(folder)) == FILES * ROWS


_OTHER = """
import os, sys, pyarrow as pa, pyarrow.parquet as pq
folder, k, ready = sys.argv[1], 0, False
while sys.stdin.readline() != "stop\\n":
    for _ in range(3):
        k += 1
        data = pa.table({"id": [-k], "name": ["other"], "rest": [3]})
        pq.write_table(data, f"{folder}/.new")
        os.rename(f"{folder}/.new", f"{folder}/g=0/other-{k}.parquet")
        old = f"{folder}/g=1/part-0.parquet"
        data = pq.ParquetFile(old).read()
        marked = data.set_column(1, "name", pa.array([f"round {k}"] * data.num_rows))
        pq.write_table(marked, f"{folder}/.new")
        os.rename(f"{folder}/.new", old)
    print(k, flush=True)
"""


def test_a_second_program_that_adds_and_rewrites(tmp_path: Path) -> None:
    """What it has written last stays, and none of its rows that should go is left once it pauses."""
    folder = lake(tmp_path / "lake")
    command = [sys.executable, "-c", _OTHER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        written, ended = 0, 0
        for _ in range(10):
            other.stdin.write("more\n")
            other.stdin.flush()
            try:
                pyparq.delete(folder, "rest = 3", retries=10)
                ended += 1
            except ChangedFileError:
                pass
            written = int(other.stdout.readline())
        pyparq.delete(folder, "rest = 3", retries=10)
        other.stdin.write("stop\n")
        other.stdin.flush()
    assert written == 30
    assert ended > 0
    assert ids(folder) == [k for k in range(FILES * ROWS) if k % 7 != 3]
    names = pq.read_table(folder / "g=1" / "part-0.parquet", partitioning=None)["name"].to_pylist()
    assert set(names) == {"round 30"}


def test_readers_see_all_of_it_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lake(tmp_path / "lake")
    seen = []
    monkeypatch.setattr(folder_commit, "reached", lambda name: seen.append((name, pyparq.dataset(folder).count())))
    with pytest.warns(pyparq.UnfinishedWriteWarning):
        pyparq.delete(folder, "id in (5, 600, 1100)")
    counts = [count for _, count in seen]
    assert len(counts) > 6
    assert set(counts) == {FILES * ROWS, FILES * ROWS - 3}
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("step", ["staged", "record written", "recorded", "moved aside", "placed", "record removed"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_error_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, nth: int) -> None:
    folder = lake(tmp_path / "lake")
    before = ids(folder)

    def fails() -> None:
        raise OSError(28, "No space left on device")

    at_step(monkeypatch, step, fails, nth)
    try:
        pyparq.delete(folder, "id in (5, 600)")
    except OSError:
        assert ids(folder) == before
    else:
        assert ids(folder) == [k for k in before if k not in (5, 600)]
    monkeypatch.undo()
    pyparq.delete(folder, "id in (5, 600)")
    assert ids(folder) == [k for k in before if k not in (5, 600)]
    assert not [name for name in os.listdir(folder) if name.startswith("_")]


_PROGRAM = """
import sys, pyparq
print("ready", flush=True)
for line in sys.stdin:
    folder, condition = line.rstrip().split(chr(9))
    try:
        pyparq.delete(folder, condition)
    except (pyparq.ChangedFileError, pyparq.WriteConflictError):
        print("refused", flush=True)
    else:
        print("done", flush=True)
"""


def killed_after(folder: Path, seconds: float | None) -> None:
    """Delete rows in a process of its own, which is killed after some time."""
    pid = os.fork()
    if pid == 0:
        try:
            pyparq.delete(folder, "rest = 3")
        finally:
            os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def kills(tmp_path: Path, count: int) -> None:
    chosen, outcomes = random.Random(count), set[str]()
    whole = lake(tmp_path / "whole")
    began = time.monotonic()
    killed_after(whole, None)
    assert len(ids(whole)) < FILES * ROWS
    longest = time.monotonic() - began
    for k in range(count):
        folder = lake(tmp_path / f"lake-{k}")
        before = ids(folder)
        after = [n for n in before if n % 7 != 3]
        killed_after(folder, chosen.random() * longest)
        found = sorted(pyparq.dataset(folder).read(["id"])["id"].to_pylist())
        assert found in (before, after)
        outcomes.add("before" if found == before else "after")
        pyparq.recover_dataset(folder)
        assert ids(folder) in (before, after)
        pyparq.delete(folder, "rest = 3")
        assert ids(folder) == after
        assert not [name for name in os.listdir(folder) if name.startswith("_")]
        if k % 10 == 0:
            assert all(pyparq.verify(path).ok for path in folder.rglob("*.parquet"))
    assert outcomes == {"before", "after"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pyparq.UnfinishedWriteWarning")
def test_kills(tmp_path: Path) -> None:
    kills(tmp_path, 30)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::pyparq.UnfinishedWriteWarning")
def test_many_kills(tmp_path: Path) -> None:
    kills(tmp_path, 300)


def pairs(tmp_path: Path, count: int) -> None:
    """Two programs delete different rows of the same files at once. What ended counts; the other one says so."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for _ in range(2)
        ]
        assert [_said(process) for process in running] == ["ready", "ready"]
        for k in range(count):
            folder = lake(tmp_path / f"lake-{k}")
            for process, rest in zip(running, (3, 4), strict=True):
                assert process.stdin is not None
                process.stdin.write(f"{folder}\trest = {rest}\n".encode())
                process.stdin.flush()
            outs = [_said(process) for process in running]
            assert set(outs) <= {"done", "refused"}
            gone = [rest for rest, out in zip((3, 4), outs, strict=True) if out == "done"]
            assert gone
            assert ids(folder) == [n for n in range(FILES * ROWS) if n % 7 not in gone]
            shutil.rmtree(folder)


def _said(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().rstrip()


def test_pairs_of_programs(tmp_path: Path) -> None:
    pairs(tmp_path, 6)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_pairs_of_programs(tmp_path: Path) -> None:
    pairs(tmp_path, 200)


# ---- nothing is left -------------------------------------------------------------------------------------------------


@pytest.mark.sweep(4)
@pytest.mark.parametrize("options", [
    {"compression": "none", "bloom_filters": ["id", "name"]},
    {"compression": "zstd", "bloom_filters": ["name"], "bloom_filter_layout": "row_group"},
    {"compression": "snappy", "use_dictionary": False, "bloom_filters": ["name"]},
    {"compression": "none", "sort_by": ["name"]},
])  # fmt: skip
def test_no_trace_is_left(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = lake(tmp_path / "lake", **options)
    # Filters that are replaced stay in the file as bytes that nothing names.
    if "bloom_filters" in options:
        pyparq.add_indexes(folder, bloom_filters={"name": 0.0001}, replace=True)
    pyparq.index_dataset(folder, ["id", "name"])
    gone = random.Random(5).sample(range(FILES * ROWS), 1000)
    names = [f"person-{k:06d}-{k * 7919}" for k in gone]
    assert all(any(name.encode() in plain_bytes(path) for path in folder.rglob("*.parquet")) for name in names[:5])
    report = pyparq.delete(folder, keys={"id": gone})
    assert report.rows_deleted == 1000
    assert any("catalog" in note for note in report.notes)
    everything = b"".join(plain_bytes(path) for path in folder.rglob("*") if path.suffix == ".parquet")
    assert not [name for name in names if name.encode() in everything]
    others = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    assert not [path for path in others if not path.name.startswith((".", "_"))]
    assert not [name for path in others for name in names if name.encode() in path.read_bytes()]
    hits = asked = 0
    for path in folder.rglob("*.parquet"):
        assert pyparq.verify(path).ok
        file = open_file(path, ReadOptions())
        for k in range(file.num_row_groups):
            found = read_filter(file.chunk(k, file.tree.leaves[1]), file.fetcher, file.options.limits)
            if found is not None:
                asked += len(names)
                hits += int(found.check(names).sum())
    assert (asked > 0) == ("bloom_filters" in options)
    assert hits <= asked * 0.03, "a filter made anew answers as if the values had never been there"


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", ["lake", "./lake", "other/../lake", "a//lake"])
def test_a_catalog_of_a_folder_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    pyparq.write_dataset({"id": [1, 2], "p": [0, 1]}, name, partition_cols=["p"])
    pyparq.index_dataset(name, ["id"])
    report = pyparq.delete(name, pyparq.col("id") == 2)
    assert (report.rows_deleted, len(report.notes)) == (1, 1)
    assert not (tmp_path / name / "_pyparq_catalog").exists()
    assert pyparq.read_table(name)["id"].to_pylist() == [1]
