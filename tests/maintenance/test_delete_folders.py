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

import pyparq
from pyparq import ChangedFileError, OptionError, col
from pyparq.datasets.write import folder_commit
from pyparq.format import compression
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import open_file
from pyparq.read.page_headers import walk_headers
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


def plain_bytes(path: Path) -> bytes:
    """All bytes of a file, and all of its pages decompressed."""
    found = [path.read_bytes()]
    file = open_file(path, ReadOptions())
    for k in range(file.num_row_groups):
        for leaf in file.tree.leaves:
            chunk = file.chunk(k, leaf)
            for page in walk_headers(file, chunk):
                start = page.offset + page.header_size
                stored = found[0][start : start + page.compressed_size]
                name = compression.codec_name(chunk.meta.codec)
                if name != "UNCOMPRESSED":
                    stored = pa.decompress(
                        stored, page.uncompressed_size, {"LZ4_RAW": "lz4_raw"}.get(name, name.lower())
                    )
                found.append(bytes(stored))
    return b"".join(found)


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
