"""A folder that nobody may write to: it is read, and what would change it is one sentence."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyparq

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture
def sealed(usual: Any, ps: Any, tmp_path: Path) -> Iterator[Path]:
    """A folder in a file system that is mounted to be read only: root may write to all others."""
    inner, place = tmp_path / "inner", tmp_path / "sealed"
    for k in range(3):
        ps.write(usual.range(k * 10, k * 10 + 10).coalesce(1), inner / "t", mode="append")
    place.mkdir()
    mounted = subprocess.run(["mount", "--bind", str(inner), str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs root to mount a folder")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
        yield place / "t"
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_it_is_read(usual: Any, ps: Any, sealed: Path) -> None:
    for engine in ("auto", "pyparq", "spark"):
        assert sorted(row.id for row in ps.read(usual, sealed, engine=engine, small=0).collect()) == list(range(30))
    assert ps.count(usual, sealed, "id > 20") == 9
    assert ps.verify(usual, sealed).where("not ok").count() == 0
    ps.register(usual)
    assert usual.read.format("pyparq").option("filters", "id = 7").load(str(sealed)).count() == 1


def test_what_would_change_it_says_so(usual: Any, ps: Any, sealed: Path) -> None:
    jobs: dict[str, Callable[[], Any]] = {
        "append": lambda: ps.write(usual.range(3), sealed, mode="append"),
        "overwrite": lambda: ps.write(usual.range(3), sealed, mode="overwrite"),
        "new": lambda: ps.write(usual.range(3), sealed.parent / "new"),
        "compact": lambda: ps.compact(usual, sealed),
        "rewrite": lambda: ps.rewrite(usual, sealed, sort_by=["id"]),
        "delete": lambda: ps.delete(usual, sealed, "id = 7"),
        "update": lambda: ps.update(usual, sealed, "id = 7", {"id": 70}),
        "upsert": lambda: ps.upsert(usual, sealed, usual.range(25, 35), "id"),
        "index_dataset": lambda: ps.index_dataset(usual, sealed, ["id"]),
    }
    for name, job in jobs.items():
        with pytest.raises(OSError, match="Read-only file system") as caught:
            job()
        assert caught.value.errno == errno.EROFS, name
        assert str(caught.value).count("\n") == 0, name
    report = ps.add_indexes(usual, sealed, bloom_filters=["id"]).collect()
    assert len(report) == 3
    assert all(not row.ok and "Read-only file system" in row.error and "\n" not in row.error for row in report), report
    assert sorted(pyparq.read_table(sealed)["id"].to_pylist()) == list(range(30))
