"""Replaced files that a commit keeps for a time: who reads them, who does not, and when they go."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest

import pyparq
from pyparq import col
from pyparq.datasets import footers
from pyparq.datasets.dataset import files_of
from pyparq.datasets.footers import ListedFile
from pyparq.datasets.write import folder_commit
from pyparq.datasets.write.commit import Committer, complete_writes
from pyparq.datasets.write.targets import Sources, StagedFile


def folder_of(path: Path, files: int, rows: int) -> Path:
    for k in range(files):
        place = path / f"g={k % 2}" / f"{k:03}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        ids = list(range(k * rows, (k + 1) * rows))
        pyparq.write_table({"id": ids, "x": [0.5] * rows}, place, row_group_size=max(rows // 4, 5))
    return path


def replace_all(folder: Path, keep_old: float) -> None:
    """One file with one row in place of all."""
    committer = Committer.start(str(folder), "overwrite")
    staged = committer.staging.place("task", 0)
    pyparq.write_table({"id": [-1], "x": [1.0]}, staged)
    files = [StagedFile(staged, "g=0/new.parquet")]
    committer.commit(files, sources=Sources.listed(str(folder)), keep_old=keep_old)


@pytest.mark.parametrize(("files", "rows"), [(3, 10), (40, 10), (3, 20_000)])
def test_who_has_listed_before_reads_the_old_files(tmp_path: Path, files: int, rows: int) -> None:
    folder = folder_of(tmp_path / "t", files, rows)
    listed, read_once = pyparq.dataset(folder), pyparq.dataset(folder)
    assert read_once.read(["id"]).num_rows == files * rows
    running = pyparq.dataset(folder).scan().iter_batches()
    first = next(running)
    plans = pickle.dumps(pyparq.dataset(folder).plan(["id"], col("id") >= 0).split(2))
    replace_all(folder, 3600)
    assert listed.count(col("x") > 0) == listed.read().num_rows == files * rows
    assert sorted(read_once.read(["id", "x"])["id"].to_pylist()) == list(range(files * rows))
    assert first.num_rows + sum(batch.num_rows for batch in running) == files * rows
    assert sum(part.scan().to_table().num_rows for part in pickle.loads(plans)) == files * rows
    assert pyparq.dataset(folder).read()["id"].to_pylist() == [-1]
    assert pads.dataset(folder).count_rows() == len(list(folder.rglob("*.parquet"))) == 1


def test_the_next_run_removes_them_when_their_time_is_over(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "t", 3, 10)
    plan = pyparq.dataset(folder).plan(["id"])
    replace_all(folder, 3600)
    complete_writes(folder)
    (kept,) = folder.glob("_pyparq_replaced-*")
    stated: dict[str, Any] = json.loads((kept / "kept.json").read_text())
    (kept / "kept.json").write_text(json.dumps({**stated, "until": time.time() - 1}))
    complete_writes(folder)
    assert not kept.exists()
    with pytest.raises(FileNotFoundError, match=r"000\.parquet"):
        plan.scan().to_table()


def test_without_the_option_nothing_stays(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "t", 3, 10)
    replace_all(folder, 0)
    assert [path.name for path in folder.glob("_pyparq*")] == []


@pytest.mark.parametrize("text", ["", "[]", "{", '{"files": 3}', '{"files": {"g=0/000.parquet": "../../secret"}}',
                                  '{"files": {"g=0/000.parquet": 7}, "until": "x"}', "[" * 100_000])  # fmt: skip
def test_lists_that_no_commit_has_written(tmp_path: Path, text: str) -> None:
    """They lead nowhere, and a plan reads no file but its own."""
    folder = folder_of(tmp_path / "t", 3, 10)
    plan = pyparq.dataset(folder).plan(["id"])
    pyparq.write_table({"id": [1], "x": [1.0]}, tmp_path / "secret")
    (folder / "g=0" / "000.parquet").unlink()
    kept = folder / "_pyparq_replaced-0123456789abcdef"
    kept.mkdir()
    (kept / "kept.json").write_text(text)
    with pytest.raises(FileNotFoundError, match=r"000\.parquet"):
        plan.scan().to_table()


def test_another_file_in_its_place_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "t", 3, 10)
    plan, listed = pyparq.dataset(folder).plan(["id"]), pyparq.dataset(folder)
    replace_all(folder, 3600)
    for other in folder.glob("_pyparq_replaced-*/[0-9]"):
        other.unlink()
        pyparq.write_table({"id": [7], "x": [1.0]}, other)
    with pytest.raises(pyparq.PlanError, match="changed"):
        plan.scan().to_table()
    with pytest.raises(pyparq.ChangedFileError, match="changed"):
        listed.read()


@pytest.mark.parametrize("step", ["recorded", "moved aside", "placed", "record removed", "ended"])
def test_a_commit_that_goes_on_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Readers that have begun at this step meet all later ones."""
    folder = folder_of(tmp_path / "t", 4, 10)
    rows = sorted(pyparq.read_table(folder)["id"].to_pylist())
    plan, files = pyparq.dataset(folder).plan(["id", "x"]), files_of(pyparq.dataset(folder)).found.files
    begun, met = list[ListedFile](), list[str]()

    def reached(now: str) -> None:
        if now == step:
            assert sorted(plan.scan().to_table()["id"].to_pylist()) == rows
            begun.extend(map(ListedFile, files))
        met.extend(now for file in begun if file.read_ranges([(0, 4)])[0].tobytes() == b"PAR1")

    monkeypatch.setattr(folder_commit, "reached", reached)
    replace_all(folder, 3600)
    assert met[0] == step
    assert met[-1] == "ended"
    assert len(met) % 4 == 0
    assert sorted(plan.scan().to_table()["id"].to_pylist()) == rows


def test_a_file_that_moves_between_a_look_and_its_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit ends just when a reader has found the file in staging."""
    folder = folder_of(tmp_path / "t", 3, 10)
    plan = pyparq.dataset(folder).plan(["id"])
    looked, real = list[str | None](), footers.kept_file

    def kept_file(path: str) -> str | None:
        looked.append(found := real(path))
        if found is not None and "_pyparq_staging" in found:
            staging, name = Path(found).parent, Path(found).name
            os.rename(staging, folder / "_pyparq_replaced-0123456789abcdef")
            assert (folder / "_pyparq_replaced-0123456789abcdef" / name).exists()
        return found

    staged = folder / "_pyparq_staging-0123456789abcdef" / "old"
    staged.mkdir(parents=True)
    files = {str(path.relative_to(folder)): str(k) for k, path in enumerate(sorted(folder.rglob("*.parquet")))}
    for path, name in files.items():
        os.rename(folder / path, staged / name)
    (staged / "kept.json").write_text(json.dumps({"until": time.time() + 3600, "files": files}))
    monkeypatch.setattr(footers, "kept_file", kept_file)
    assert plan.scan().to_table().num_rows == 30
    assert "staging" in str(looked[0])
    assert "replaced" in str(looked[1])
