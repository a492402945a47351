"""``rewrite`` and ``merge`` onto one of their sources, which another program removes or makes meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.errors import ChangedMeanwhile
from pyparq.maintenance import merge, rewrite

IN_PLACE: dict[str, Callable[[Path], Any]] = {
    "rewrite": lambda path: pyparq.rewrite(path, path, compression="none"),
    "merge": lambda path: pyparq.merge([path], path),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    found = tmp_path / "lake" / "a.parquet"
    pyparq.write_table({"id": list(range(20))}, found)
    return found


REMOVED_AT_EACH_STEP = """
    import os, sys, tempfile
    import pyparq

    at = {"stop": 0, "seen": 0, "path": None}

    def hook(event, args):
        if at["path"] is None or not event.startswith(("open", "os.")):
            return
        at["seen"] += 1
        if at["seen"] == at["stop"]:
            path, at["path"] = at["path"], None  # what this does itself is not looked at
            if os.path.exists(path):
                os.rename(path, path + ".aside")
            at["path"] = path

    sys.addaudithook(hook)
    work = {
        "rewrite": lambda path: pyparq.rewrite(path, path, compression="none"),
        "sorted": lambda path: pyparq.rewrite(path, path, sort_by="id"),
        "merge": lambda path: pyparq.merge([path], path),
        "edit_metadata": lambda path: pyparq.edit_metadata(path, update={"a": "1"}),
        "add_indexes": lambda path: pyparq.add_indexes(path, bloom_filters=["id"]),
    }[sys.argv[1]]
    while at["seen"] >= at["stop"]:
        path = os.path.join(tempfile.mkdtemp(dir=sys.argv[2]), "a.parquet")
        pyparq.write_table({"id": list(range(20))}, path)
        at.update(stop=at["stop"] + 1, seen=0, path=path)
        try:
            work(path)
        except (FileNotFoundError, pyparq.ChangedFileError):
            pass
        at["path"] = None
        if os.path.exists(path) and os.path.exists(path + ".aside"):
            print("stale at step", at["stop"])
    print("steps", at["stop"] - 1)
"""


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", ["rewrite", "sorted", "merge", "edit_metadata", "add_indexes"])
def test_a_file_that_goes_at_any_step_stays_away(tmp_path: Path, name: str) -> None:
    """An overwrite takes the file away at each step in turn: its rows never come back."""
    command = [sys.executable, "-c", textwrap.dedent(REMOVED_AT_EACH_STEP), name, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *stale, steps = done.stdout.splitlines()
    assert not stale
    assert int(steps.split()[1]) > 5


@pytest.mark.parametrize("name", ["rewrite", "merge"])
def test_a_source_that_comes_after_the_first_look(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target was not there at first, and is a source then: nobody knows which file may be replaced."""
    module = rewrite if name == "rewrite" else merge
    monkeypatch.setattr(module, "identity_of", lambda target: None)
    before = path.read_bytes()
    with pytest.raises(ChangedMeanwhile):
        IN_PLACE[name](path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == ["a.parquet"]
