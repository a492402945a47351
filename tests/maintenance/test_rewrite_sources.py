"""A rewrite of a folder onto itself replaces the files that it read, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """Two files of 50 rows."""
    for first in (0, 50):
        pyparq.write_dataset({"x": list(range(first, first + 50))}, tmp_path / "lake", mode="append")
    return tmp_path / "lake"


def numbers(folder: Any) -> list[int]:
    return sorted(pyparq.read_table(folder)["x"].to_pylist())


def once(do: Callable[[], Any]) -> Callable[[int], None]:
    """Another program at work while the rows are read."""
    left = [do]

    def step(done: int) -> None:
        if left:
            left.pop()()

    return step


def test_rows_that_are_added_meanwhile_stay(busy: Path) -> None:
    more = once(lambda: pyparq.write_dataset({"x": [1000]}, busy, mode="append"))
    pyparq.rewrite(busy, busy, mode="overwrite", filters=pyparq.col("x") >= 10, progress=more)
    assert numbers(busy) == [*range(10, 100), 1000]
    assert len(list(busy.glob("*.parquet"))) == 2


def test_rows_that_are_added_meanwhile_stay_in_a_store(busy: Path) -> None:
    system = require("fsspec").filesystem("memory")
    url = "memory://rewrite_sources/lake"
    try:
        pyparq.write_dataset(pyparq.dataset(busy), url, mode="overwrite")
        more = once(lambda: pyparq.write_dataset({"x": [1000]}, url, mode="append"))
        pyparq.rewrite(url, url + "/", mode="overwrite", filters=pyparq.col("x") >= 10, progress=more)
        assert numbers(url) == [*range(10, 100), 1000]
        changed = once(lambda: pyparq.write_table({"x": [1]}, next(iter(pyparq.dataset(url).files))))
        with pytest.raises(pyparq.ChangedFileError, match="run the job again"):
            pyparq.rewrite(url, url, mode="overwrite", progress=changed)
        assert 1 in numbers(url)
    finally:
        system.rm("/rewrite_sources", recursive=True)


def test_a_file_that_changes_meanwhile_is_kept(busy: Path) -> None:
    first = sorted(busy.glob("*.parquet"))[0]
    with pytest.raises(pyparq.ChangedFileError, match="run the job again"):
        pyparq.rewrite(busy, busy, mode="overwrite", progress=once(lambda: pyparq.write_table({"x": [7]}, first)))
    assert len(numbers(busy)) == 51
    assert not [p for p in busy.iterdir() if p.name.startswith("_pyparq")]


def test_a_file_that_cannot_be_read_is_kept(busy: Path) -> None:
    """It was left out of the rows, so nothing replaces it."""
    (busy / "bad.parquet").write_bytes(b"PAR1 no more PAR1")
    with pytest.warns(pyparq.SkippedFileWarning):
        pyparq.rewrite(pyparq.dataset(busy, on_error="skip"), busy, mode="overwrite")
    assert (busy / "bad.parquet").exists()
    (busy / "bad.parquet").unlink()
    assert numbers(busy) == list(range(100))


def test_another_folder_is_overwritten_whole(busy: Path, tmp_path: Path) -> None:
    target = tmp_path / "other"
    pyparq.write_dataset({"x": [5]}, target)
    more = once(lambda: pyparq.write_dataset({"x": [1000]}, target, mode="append"))
    pyparq.rewrite(busy, target, mode="overwrite", progress=more)
    assert numbers(target) == list(range(100))
