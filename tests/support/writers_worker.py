"""A process that works on the files of a folder at random, and logs what it begins and ends.

Run by ``test_writers_stress.py``: ``python writers_worker.py FOLDER LOG SEED SECONDS KILLS KINDS``. Each line of the
log is a JSON object. With ``KILLS`` the process ends now and then by SIGKILL just before it renames, links or removes
a file, and another one goes on. A begun operation without an end was killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyparq
from pyparq.datasets.write.commit import Committer
from pyparq.datasets.write.targets import StagedFile
from pyparq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig

ROWS = 20
NAMES = 3
PARTITIONS = 2
REFUSALS = (FileNotFoundError, pyparq.ChangedFileError, pyparq.WriteConflictError, pyparq.TargetExistsError)
"""What an operation may raise because of another program's work."""


class Kms:
    def wrap_key(self, key: bytes, master: str) -> str:
        return key.hex()

    def unwrap_key(self, wrapped: str, master: str) -> bytes:
        return bytes.fromhex(wrapped)


FACTORY = CryptoFactory(lambda config: Kms())
EXTERNAL = EncryptionConfiguration("main", uniform_encryption=True, internal_key_material=False)
DECRYPTION = FACTORY.file_decryption_properties(KmsConnectionConfig(), allow_plaintext_files=True)


def rows(generation: int) -> dict[str, list[int]]:
    """Half of the rows are for each partition."""
    return {
        "id": list(range(ROWS)),
        "generation": [generation] * ROWS,
        "p": [k % PARTITIONS for k in range(ROWS)],
    }


def rows_of(generation: int, partition: int, with_column: bool = False) -> dict[str, list[int]]:
    data = rows(generation)
    picked = [k for k in range(ROWS) if data["p"][k] == partition]
    return {name: [values[k] for k in picked] for name, values in data.items() if with_column or name != "p"}


class Worker:
    def __init__(self, folder: Path, log: Path, seed: int, seconds: float, kinds: list[str]) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.seed = seed
        self.until = time.monotonic() + seconds
        self.kinds = kinds
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.generation = 0

    def run(self) -> None:
        number = 0
        while time.monotonic() < self.until:
            number += 1
            self.generation = self.seed * 100_000 + number
            self.step(self.draw.choice(self.kinds))

    def step(self, kind: str) -> None:
        on_files, work = KINDS[kind]
        path = self.some_file(kind) if on_files else self.folder
        if path is None:
            return
        self.say(kind, path, "begun")
        try:
            work(self, path)
        except (*REFUSALS, pyparq.EncryptionError) as error:
            if isinstance(error, pyparq.EncryptionError) and "open it again" not in str(error):
                raise
            committed = any("is committed" in note for note in getattr(error, "__notes__", ()))
            self.say(kind, path, "ended" if committed else "refused", type(error).__name__)
            return
        self.say(kind, path, "ended")

    def say(self, kind: str, path: Path, what: str, why: str = "") -> None:
        line = {
            "kind": kind,
            "path": os.path.relpath(path, self.folder),
            "generation": self.generation,
            "at": time.monotonic_ns(),
            "what": what,
            "why": why,
        }
        os.write(self.log, json.dumps(line).encode() + b"\n")

    def some_file(self, kind: str) -> Path | None:
        """One of the fixed names, or, for a change in place, often any file that is there."""
        parts = any(k.endswith("partitions") for k in self.kinds)
        place = self.folder / f"p={self.draw.randrange(PARTITIONS)}" if parts else self.folder
        if kind in CHANGES and self.draw.random() < 0.7:
            found = [os.path.join(at, name) for at, _, names in os.walk(self.folder) for name in names]
            found = sorted(name for name in found if name.endswith(".parquet") and "_pyparq" not in name)
            return Path(self.draw.choice(found)) if found else None
        return place / f"f{self.draw.randrange(NAMES)}.parquet"


# ---- what a worker does ---------------------------------------------------------------------------------------------


def write(worker: Worker, path: Path) -> None:
    partition = path.parent.name.partition("=")[2]
    data = rows_of(worker.generation, int(partition)) if partition else rows(worker.generation)
    path.parent.mkdir(exist_ok=True)
    pyparq.write_table(data, path, fsync=worker.draw.random() < 0.05)


def write_secret(worker: Worker, path: Path) -> None:
    keys = FACTORY.file_encryption_properties(KmsConnectionConfig(), EXTERNAL)
    pyparq.write_table(rows(worker.generation), path, encryption=keys)


def edit_secret(worker: Worker, path: Path) -> None:
    pyparq.edit_metadata(path, update={"k": str(worker.generation)}, decryption=DECRYPTION)


def edit(worker: Worker, path: Path) -> None:
    pyparq.edit_metadata(path, update={"k": str(worker.generation)})


def index(worker: Worker, path: Path) -> None:
    pyparq.add_indexes(path, bloom_filters=[worker.draw.choice(["id", "generation"])])


def rewrite(worker: Worker, path: Path) -> None:
    pyparq.rewrite(path, path, compression=worker.draw.choice(["none", "zstd"]))


def merge(worker: Worker, path: Path) -> None:
    pyparq.merge([path], path, key_value_metadata={"k": str(worker.generation)})


def remove(worker: Worker, path: Path) -> None:
    path.unlink()


def read(worker: Worker, path: Path) -> None:
    """One file is never torn, whatever happens to it."""
    found = pyparq.read_table(path, columns=["generation"], decryption=DECRYPTION).to_pydict()["generation"]
    if path.name.startswith("f"):  # others hold parts of writes, or rows of several
        whole = ROWS // PARTITIONS if path.parent.name.startswith("p=") else ROWS
        assert (len(set(found)), len(found)) == (1, whole), (path, found)


def dataset(mode: str) -> Callable[[Worker, Path], None]:
    def work(worker: Worker, path: Path) -> None:
        options: dict[str, Any] = {"partition_cols": ["p"]} if "overwrite_partitions" in worker.kinds else {}
        if worker.draw.random() < 0.2:
            options["write_metadata"] = True
        if worker.draw.random() < 0.05:
            options["fsync"] = True
        elif not options.get("partition_cols") and worker.draw.random() < 0.5:
            options["max_rows_per_file"] = 7
        pyparq.write_dataset(rows(worker.generation), path, mode=mode, **options)

    return work


def job(mode: str) -> Callable[[Worker, Path], None]:
    """As Spark's jobs do: started, written by tasks, and committed by three parties."""

    def work(worker: Worker, path: Path) -> None:
        parts = "overwrite_partitions" in worker.kinds
        staging = Committer.start(str(path), mode, detached=True).staging
        files = []
        try:
            for task in range(PARTITIONS):
                place = staging.place(f"t{task}-a0", 0)
                pyparq.write_table(rows_of(worker.generation, task, not parts), place)
                inner = f"p={task}/" if parts else ""
                files.append(StagedFile(place, f"{inner}part-{worker.generation}-{task}.parquet"))
        except BaseException:
            Committer.resume(staging).abort()
            raise
        committer = Committer.resume(staging)
        try:
            committer.commit(files)
        except BaseException:
            committer.abort()
            raise

    return work


def compact(worker: Worker, path: Path) -> None:
    pyparq.rewrite(path, path, mode="overwrite", max_rows_per_file=worker.draw.choice([None, 30]))


def recover(worker: Worker, path: Path) -> None:
    pyparq.recover_dataset(path)


KINDS: dict[str, tuple[bool, Callable[[Worker, Path], None]]] = {
    "write": (True, write),
    "write secret": (True, write_secret),
    "edit": (True, edit),
    "edit secret": (True, edit_secret),
    "index": (True, index),
    "rewrite": (True, rewrite),
    "merge": (True, merge),
    "remove": (True, remove),
    "read": (True, read),
    "append": (False, dataset("append")),
    "overwrite": (False, dataset("overwrite")),
    "overwrite_partitions": (False, dataset("overwrite_partitions")),
    "job append": (False, job("append")),
    "job overwrite": (False, job("overwrite")),
    "compact": (False, compact),
    "recover": (False, recover),
}
"""Whether it works on one file, and what it does."""
CHANGES = ("edit", "edit secret", "index", "rewrite", "merge", "read")

KILLED_AT = ("os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")
"""Audit events before which a process may be killed."""


def be_killed(draw: random.Random, once_in: int) -> None:
    def hook(event: str, _: object) -> None:
        if event in KILLED_AT and draw.randrange(once_in) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def run_until_killed(folder: Path, log: Path, seed: int, seconds: float, kinds: list[str]) -> bool:
    """Whether a child that works on the folder was killed."""
    child = os.fork()
    if child == 0:
        try:
            be_killed(random.Random(seed), 60)
            Worker(folder, log, seed, seconds, kinds).run()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        sys.exit(1)
    return code != 0


def main(folder: Path, log: Path, seed: int, seconds: float, kills: bool, kinds: list[str]) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:  # loads what the children need
        Path(name, "lake").mkdir()
        for kind in sorted(set(kinds)):
            Worker(Path(name, "lake"), Path(name, "log"), 0, 0, kinds).step(kind)
    if not kills:
        Worker(folder, log, seed, seconds, kinds).run()
        return
    until = time.monotonic() + seconds
    while run_until_killed(folder, log, seed, max(until - time.monotonic(), 0), kinds) and time.monotonic() < until:
        seed += 1


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]), Path(given[1]), int(given[2]), float(given[3]), given[4] == "kills", given[5].split(","))
