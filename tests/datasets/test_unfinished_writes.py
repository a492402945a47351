"""Readers of a folder where a write has begun its commit and not ended: they get the files of before, and are told."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_after_a_crash import crash_at

import pyparq
from pyparq import col
from pyparq.datasets import unfinished_writes
from pyparq.datasets.write import folder_commit
from pyparq.errors import UnfinishedWriteWarning

STEPS = [
    ("recorded", 1), ("moved aside", 1), ("moved aside", 2), ("moved aside", 4), ("placed", 1),
]  # fmt: skip


def rows(generation: int) -> dict[str, list[Any]]:
    return {"generation": [generation] * 100, "g": [k % 2 for k in range(100)], "x": list(range(100))}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """100 rows of the first generation in two partitions of two files each."""
    monkeypatch.setattr(unfinished_writes, "WAITS", (0.0,))
    for part in (slice(0, 50), slice(50, 100)):
        data = {name: values[part] for name, values in rows(1).items()}
        pyparq.write_dataset(data, tmp_path / "lake", partition_cols=["g"], mode="append")
    return tmp_path / "lake"


def overwrite(lake: Path, mode: str = "overwrite") -> Callable[[], Any]:
    return lambda: pyparq.write_dataset(rows(2), lake, partition_cols=["g"], mode=mode)


def generations(source: Any, **options: Any) -> dict[int, int]:
    return dict(Counter(pyparq.read_table(source, **options).to_pydict()["generation"]))


@pytest.mark.parametrize(("step", "nth"), STEPS)
@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_the_files_of_before_are_read(lake: Path, step: str, nth: int, mode: str) -> None:
    before = [str(path) for path in sorted(lake.rglob("*.parquet"))]
    crash_at(step, nth, overwrite(lake, mode))
    with pytest.warns(UnfinishedWriteWarning, match="recover_dataset"):
        ds = pyparq.dataset(lake)
    assert ds.files == before
    assert (ds.count(), Counter(ds.read(["generation"]).to_pydict()["generation"])) == (100, {1: 100})
    assert ds.count((col("g") == 1) & (col("x") < 10)) == 5
    pyparq.recover_dataset(lake)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert generations(lake) == {2: 100}


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions", "append"])
def test_a_commit_whose_files_are_all_placed_has_ended(lake: Path, mode: str) -> None:
    """Only the tidying is left, which may fail for good."""
    crash_at("placed", 2, overwrite(lake, mode))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert generations(lake) == ({1: 100, 2: 100} if mode == "append" else {2: 100})


@pytest.mark.parametrize(("step", "nth"), [("moved aside", 3), ("placed", 1)])
def test_however_the_files_are_named(lake: Path, step: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    crash_at(step, nth, overwrite(lake))
    monkeypatch.chdir(lake)
    sources = {
        f"{lake}/": 100, str(lake.parent): 100, f"{lake}/**/*.parquet": 100, f"{lake}/*/*.parquet": 100,
        f"{lake}/*": 100, ".": 100, "*": 100, "g=0": 50, f"{lake}/g=1": 50, f"{lake}/g=1/*.parquet": 50,
        f"{lake}/g={{0,1}}/*": 100, f"{lake}/g=[1]": 50,
    }  # fmt: skip
    for source, count in sources.items():
        with pytest.warns(UnfinishedWriteWarning):
            assert generations(source) == {1: count}, source
    with pytest.warns(UnfinishedWriteWarning):
        assert generations([f"{lake}/g=0", f"{lake}/g=1"]) == {1: 100}
    with pytest.warns(UnfinishedWriteWarning):
        assert pyparq.verify(lake).ok


def test_an_append_is_read_when_it_is_complete(lake: Path) -> None:
    crash_at("placed", 1, overwrite(lake, "append"))
    with pytest.warns(UnfinishedWriteWarning):
        assert generations(lake) == {1: 100}


def test_a_commit_that_ends_meanwhile_is_waited_for(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is listed again: nothing is told, and the new rows are read."""
    crash_at("moved aside", 3, overwrite(lake))
    monkeypatch.setattr(unfinished_writes, "WAITS", (0.0, 0.0))
    monkeypatch.setattr(unfinished_writes.time, "sleep", lambda seconds: pyparq.recover_dataset(lake))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert generations(lake) == {2: 100}


def test_a_commit_that_ends_while_it_is_looked_at(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash_at("moved aside", 3, overwrite(lake))
    real = unfinished_writes.read_record

    def read(staging: str) -> Any:
        record = real(staging)
        pyparq.recover_dataset(lake)
        return record

    monkeypatch.setattr(unfinished_writes, "read_record", read)
    assert generations(lake) == {2: 100}


def test_a_damaged_record_is_told(lake: Path) -> None:
    crash_at("recorded", 1, overwrite(lake))
    (record,) = lake.glob("_pyparq*/commit.json")
    record.write_text("{")
    with pytest.warns(UnfinishedWriteWarning, match="damaged"):
        assert generations(lake) == {1: 100}


def test_a_hostile_record_shows_no_file_of_elsewhere(lake: Path) -> None:
    crash_at("moved aside", 1, overwrite(lake))
    (record,) = lake.glob("_pyparq*/commit.json")
    record.write_text('{"old": [["../secret", "0"]], "new": []}')
    with pytest.warns(UnfinishedWriteWarning, match="damaged"):
        assert pyparq.dataset(lake).count() == 50 + 25


def test_a_write_that_has_not_come_to_its_commit_is_passed_over(lake: Path) -> None:
    crash_at("staged", 1, overwrite(lake))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert generations(lake) == {1: 100}


def test_files_are_changed_in_place_after_the_write_is_completed(lake: Path) -> None:
    crash_at("moved aside", 3, overwrite(lake))
    pyparq.add_indexes(lake, bloom_filters=["x"])
    assert generations(lake) == {2: 100}
    for path in lake.rglob("*.parquet"):
        with pyparq.ParquetFile(path) as file:
            assert file.metadata.row_group(0).column(1).bloom_filter_offset is not None


def test_a_rewrite_in_place_of_such_a_folder(lake: Path) -> None:
    """The crashed write is completed first: its rows are rewritten, not those of before."""
    crash_at("moved aside", 3, overwrite(lake))
    pyparq.rewrite(lake, lake, mode="overwrite")
    assert generations(lake) == {2: 100}


def test_a_copy_of_the_folder(lake: Path, tmp_path: Path) -> None:
    crash_at("placed", 1, overwrite(lake))
    shutil.copytree(lake, tmp_path / "copy")
    with pytest.warns(UnfinishedWriteWarning):
        assert generations(tmp_path / "copy") == {1: 100}


def test_a_reader_during_commits(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each step of a commit, in this process, a reader finds one whole generation."""
    seen = []

    def reached(step: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnfinishedWriteWarning)
            seen.append(generations(lake))

    monkeypatch.setattr(folder_commit, "reached", reached)
    overwrite(lake)()
    assert all(found in ({1: 100}, {2: 100}) for found in seen)
    assert {1: 100} in seen
    assert {2: 100} in seen
