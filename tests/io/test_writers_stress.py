"""Many processes at work on one folder, some of them killed: no finished write is lost, and no stale row comes back.

Every process logs when each of its operations begins and ends (``writers_worker.py``). What is in the folder at the
end must follow from these times. Two operations that overlap may have happened in either order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from writers_worker import DECRYPTION, PARTITIONS, ROWS

import pyparq
from pyparq.io.file_lock import FOLDER_LOCK

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and locks of POSIX")

CHANGES = "edit,index,rewrite,merge,read"
MIXES = {
    "files": f"write,write,remove,{CHANGES}",
    "folder": f"overwrite,append,job append,job overwrite,write,remove,recover,{CHANGES}",
    "overwrites": f"overwrite,job overwrite,recover,{CHANGES}",
    "partitions": f"overwrite_partitions,overwrite,append,job append,write,remove,recover,{CHANGES}",
    "secrets": "write secret,write secret,edit secret,read,remove",
    "compaction": f"compact,append,job append,overwrite,write,recover,{CHANGES}",
}
FOREVER = 1 << 62


@dataclass(slots=True)
class Done:
    """An operation."""

    kind: str
    path: str
    generation: int
    begun: int
    ended: int = FOREVER
    what: str = "killed"

    @property
    def mode(self) -> str:
        return self.kind.removeprefix("job ").removesuffix(" secret")

    @property
    def happened(self) -> bool:
        return self.what == "ended"

    @property
    def may_have_happened(self) -> bool:
        """A killed one may have come so far that it is completed later."""
        return self.what != "refused"


def history(logs: Iterable[Path]) -> list[Done]:
    found = []
    for log in logs:
        last: Done | None = None
        for line in log.read_text().splitlines():
            said = json.loads(line)
            if said["what"] == "begun":
                last = Done(said["kind"], said["path"], said["generation"], said["at"])
                found.append(last)
            else:
                assert last is not None
                last.ended, last.what = said["at"], said["what"]
    return found


def run(folder: Path, kinds: str, processes: int, seconds: float, seed: int, kills: bool) -> list[Done]:
    """Let processes work on ``folder``; what they did."""
    logs = [folder.with_name(f"{folder.name}-{k}.log") for k in range(processes)]
    running = []
    for k, log in enumerate(logs):
        command = [
            sys.executable,
            str(Path(__file__).parents[1] / "support" / "writers_worker.py"),
            str(folder),
            str(log),
        ]
        command += [str((seed * 10 + k) * 1000), str(seconds), "kills" if kills else "", kinds]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for process in running:
        said = process.communicate(timeout=seconds + 120)[1]
        assert process.returncode == 0, said
    return history(logs)


def partitions_of(done: Done) -> set[int]:
    """The partitions that a write has rows for."""
    inner = done.path.partition("/")[0]
    return {int(inner[2:])} if inner.startswith("p=") else set(range(PARTITIONS))


def replaces(later: Done, earlier: Done, compacts: bool) -> bool:
    """Whether ``later`` takes the rows of ``earlier`` away, where it comes second."""
    if later.mode in ("overwrite", "overwrite_partitions"):
        return True
    # A compaction moves the rows of a file to another name.
    return later.mode in ("write", "remove") and later.path == earlier.path and not compacts


def check(folder: Path, done: list[Done], kills: bool) -> None:
    table: dict[str, list[int]] = {"generation": [], "id": []}
    if any(folder.rglob("*.parquet")):
        table = pyparq.read_table(folder, columns=["generation", "id"], decryption=DECRYPTION).to_pydict()
    found = Counter(table["generation"])
    ids = Counter(zip(table["generation"], table["id"], strict=True))
    twice = [row for row, count in ids.items() if count > 1]
    assert not twice, f"rows are there twice: {twice[:5]}"
    compacts = any(one.kind == "compact" for one in done)
    writes = {
        one.generation: one for one in done if one.mode in ("write", "append", "overwrite", "overwrite_partitions")
    }
    for generation, count in found.items():
        one = writes.get(generation)
        assert one is not None, f"nobody wrote {generation}"
        assert one.may_have_happened, f"{one} was refused, but its rows are there"
        assert count == ROWS * len(partitions_of(one)) // PARTITIONS, f"{count} rows of {one}"
        later = [x for x in done if x.happened and x.begun > one.ended and replaces(x, one, compacts)]
        assert not later, f"{one} is there in spite of {later[0]}"
    for one in writes.values():
        if one.happened and not found[one.generation]:
            later = [x for x in done if x.may_have_happened and x.ended > one.begun and x is not one]
            assert any(replaces(x, one, False) for x in later), f"{one} is lost"
    left = [path.name for path in folder.rglob("*") if path.name.startswith(("_pyparq", "."))]
    if kills:  # a job may go on, by what is known, until its staging folder is a day old
        left = [name for name in left if not name.endswith(".tmp") and name != FOLDER_LOCK]
        assert len(left) <= sum(one.kind.startswith("job") and one.what == "killed" for one in done), left
    assert kills or not left, left


def round_of(folder: Path, mix: str, processes: int, seconds: float, seed: int, kills: bool) -> None:
    folder.mkdir()
    print(f"seed {seed}")
    done = run(folder, MIXES[mix], processes, seconds, seed, kills)
    if kills:
        pyparq.recover_dataset(folder)
    check(folder, done, kills)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("kills", [False, True], ids=["", "kills"])
@pytest.mark.parametrize("mix", MIXES)
def test_for_a_moment(tmp_path: Path, mix: str, kills: bool) -> None:
    round_of(tmp_path / "lake", mix, 2, 1.5, 1, kills)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("processes", [2, 4])
def test_for_minutes(tmp_path: Path, processes: int) -> None:
    """``PYPARQ_STRESS_SECONDS``: for how long, in all. ``PYPARQ_STRESS_SEED``: where the rounds begin."""
    until = time.monotonic() + float(os.environ.get("PYPARQ_STRESS_SECONDS", "240")) / 2
    seed = int(os.environ.get("PYPARQ_STRESS_SEED", str(time.time_ns() % 100_000)))
    while time.monotonic() < until:
        mix = list(MIXES)[seed % len(MIXES)]
        round_of(tmp_path / str(seed), mix, processes, 4.0, seed, kills=seed // len(MIXES) % 2 == 1)
        seed += 1
