"""Writes to remote file systems where requests fail: what is to be changed is changed once, or an error says so."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from conftest import require
from encryption_tools import kms_file, local_kms
from fsspec.implementations.memory import MemoryFileSystem

import pyparq
from pyparq.datasets.write.store_commit import StagedObjects, StoreCommitter
from pyparq.datasets.write.targets import StagedFile
from pyparq.encryption import CryptoFactory, EncryptionConfiguration
from pyparq.errors import EncryptionError, ParquetError

require("fsspec")


class BadFileSystem(MemoryFileSystem):
    """In memory; any request that changes it may fail, before it is carried out or after."""

    protocol = "bad"
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    script: ClassVar[Callable[[str, int], str]] = staticmethod(lambda kind, number: "")
    """``"before"``, ``"after"`` or ``""`` for the n-th request of a kind, counted from 1."""
    asked: ClassVar[dict[str, int]] = {}

    @classmethod
    def clear(cls) -> None:
        cls.store.clear()
        cls.pseudo_dirs[:] = [""]
        cls.quiet()

    @classmethod
    def quiet(cls) -> None:
        cls.asked.clear()
        cls.script = staticmethod(lambda kind, number: "")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        found: str = super()._strip_protocol(path.removeprefix("bad://"))
        return found

    def _do(self, kind: str, make: Callable[[], Any]) -> Any:
        self.asked[kind] = self.asked.get(kind, 0) + 1
        wrong = type(self).script(kind, self.asked[kind])
        if wrong == "before":
            raise ConnectionResetError(104, "the connection broke")
        made = make()
        if wrong == "after":
            raise TimeoutError(110, "no answer in time")
        return made

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> Any:
        return self._do("put", lambda: super(BadFileSystem, self).pipe_file(path, value, **kwargs))

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> Any:
        return self._do("copy", lambda: super(BadFileSystem, self).cp_file(path1, path2, **kwargs))

    def rm_file(self, path: str) -> Any:
        return self._do("remove", lambda: self.store.pop(self._known(path)))

    def makedirs(self, path: str, exist_ok: bool = False) -> Any:
        return self._do("folder", lambda: super(BadFileSystem, self).makedirs(path, exist_ok))

    def find(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("list", lambda: super(BadFileSystem, self).find(*args, **kwargs))

    def info(self, path: str, **kwargs: Any) -> Any:
        return self._do("info", lambda: super(BadFileSystem, self).info(path, **kwargs))

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        return self._do("open", lambda: super(BadFileSystem, self).open(path, mode, **kwargs))

    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> Any:
        return self._do("bytes", lambda: super(BadFileSystem, self).cat_file(path, *args, **kwargs))

    def _known(self, path: str) -> str:
        if (found := self._strip_protocol(path)) not in self.store:
            raise FileNotFoundError(path)
        return found


class RenamingFileSystem(BadFileSystem):
    """It renames in one step, as sftp does."""

    protocol = "renaming"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("renaming://"))

    def mv(self, path1: str, path2: str, **kwargs: Any) -> Any:
        return self._do("rename", lambda: self.store.__setitem__(self._strip_protocol(path2), self._taken(path1)))

    def _taken(self, path: str) -> Any:
        return self.store.pop(self._known(path))


fsspec.register_implementation("bad", BadFileSystem, clobber=True)
fsspec.register_implementation("renaming", RenamingFileSystem, clobber=True)


@pytest.fixture(params=["bad", "renaming"])
def fs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    kind: Any = {"bad": BadFileSystem, "renaming": RenamingFileSystem}[request.param]
    for each in (BadFileSystem, RenamingFileSystem):
        each.clear()
    yield kind
    for each in (BadFileSystem, RenamingFileSystem):
        each.clear()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyparq.io.retry.pause_for", lambda seconds: None)


def rows(url: str) -> list[int]:
    found: list[int] = sorted(pyparq.dataset(url).read(["id"]).to_pydict()["id"])
    return found


def files(fs: Any) -> list[str]:
    return sorted(fs.store)


def write_table(root: str) -> None:
    pyparq.write_table({"id": [1, 2]}, f"{root}/t.parquet")


def overwrite(root: str) -> None:
    pyparq.write_dataset({"id": [1, 2]}, root, mode="overwrite")


def append(root: str) -> None:
    pyparq.write_dataset({"id": [1, 2]}, root, mode="append")


def by_tasks(root: str) -> None:
    committer = StoreCommitter.start(root, "overwrite", None)
    staged: list[StagedFile] = []
    for k in (1, 2):
        objects = StagedObjects(committer.staging, f"task{k}", None)
        with pyparq.ParquetWriter(objects.sink(f"part-{k}.parquet", False), pyparq.schema({"id": "int64"})) as writer:
            writer.write({"id": [k]})
        staged.append(objects.staged(f"part-{k}.parquet"))
    committer.commit(staged)
    committer.note_success("_SUCCESS")


WRITES = {
    "write_table": (write_table, [1, 2]),
    "overwrite": (overwrite, [1, 2]),
    "append": (append, [0, 1, 2]),
    "by tasks": (by_tasks, [1, 2]),
}


def prepare(fs: Any, how: str) -> str:
    root = f"{fs.protocol}://lake"
    pyparq.write_table({"id": [0]}, f"{root}/{'t' if how == 'write_table' else 'old'}.parquet")
    fs.quiet()
    return root


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", WRITES)
def test_each_request_of_a_write_may_fail_for_the_moment(fs: Any, how: str, when: str) -> None:
    """Whichever it is, and whether it was carried out or not: the end is the same, and nothing else is left."""
    write, expected = WRITES[how]
    root = prepare(fs, how)
    write(root)
    left, plan = len(files(fs)), dict(fs.asked)
    assert plan
    assert rows(root) == expected
    for kind, times in plan.items():
        for number in range(1, times + 1):
            fs.clear()
            prepare(fs, how)
            fs.script = staticmethod(lambda k, n, kind=kind, number=number: when if (k, n) == (kind, number) else "")
            write(root)
            assert fs.asked[kind] >= number, "it was asked"
            fs.quiet()
            assert rows(root) == expected, (kind, number)
            assert len(files(fs)) == left, (kind, number, files(fs))


@pytest.mark.parametrize("how", WRITES)
def test_a_request_of_a_write_that_fails_for_good(fs: Any, how: str) -> None:
    """The old rows are there, the new ones, or both; never a part of the new ones, and never none."""
    write, expected = WRITES[how]
    root = prepare(fs, how)
    write(root)
    for kind in dict(fs.asked):
        fs.clear()
        prepare(fs, how)
        fs.script = staticmethod(lambda k, n, kind=kind: "before" if k == kind else "")
        with suppress(OSError):
            write(root)
        fs.quiet()
        assert rows(root) in ([0], expected, [0, 1, 2]), kind


def test_a_file_that_was_not_there_is_not_removed() -> None:
    from pyparq.io.folders import Changes

    BadFileSystem.clear()
    with pytest.raises(FileNotFoundError):
        Changes(BadFileSystem()).remove("/lake/absent", "absent")


@pytest.mark.slow
def test_a_tenth_of_all_requests_fails(fs: Any) -> None:
    rng = random.Random(7)
    for _ in range(300):
        how = rng.choice(sorted(WRITES))
        write, expected = WRITES[how]
        fs.clear()
        root = prepare(fs, how)
        fs.script = staticmethod(lambda kind, n: rng.choice(["before", "after"]) if rng.random() < 0.1 else "")
        done = False
        with suppress(OSError, ParquetError):
            write(root)
            done = True
        fs.quiet()
        assert rows(root) == expected if done else rows(root) in ([0], expected, [0, 1, 2])


# ---- key material in files of its own


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Any, Any]:
    factory = CryptoFactory(lambda config: local_kms(kms_file(tmp_path / "kms.json")))
    external = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
    return factory.file_encryption_properties(None, external), factory.file_decryption_properties()


def test_a_file_and_its_keys_survive_any_request_that_fails(fs: Any, keys: tuple[Any, Any]) -> None:
    """For the moment or for good: the file that is there can be read, the old one or the new one."""
    url, (encryption, decryption) = f"{fs.protocol}://lake/t.parquet", keys

    def write(k: int) -> None:
        pyparq.write_table({"id": [k]}, url, encryption=encryption)

    def read() -> Any:
        return pyparq.read_table(url, decryption=decryption).to_pydict()["id"]

    write(0)
    fs.quiet()
    write(1)
    for kind, times in dict(fs.asked).items():
        for number in range(1, times + 1):
            for when, lasts in itertools.product(["before", "after"], [False, True]):
                fs.clear()
                write(0)
                fs.quiet()
                fs.script = staticmethod(
                    lambda k, n, kind=kind, number=number, when=when, lasts=lasts: (
                        when if k == kind and (n >= number if lasts else n == number) else ""
                    )
                )
                done = False
                with suppress(OSError, ParquetError):
                    write(1)
                    done = True
                fs.quiet()
                assert read() in ([[1]] if done else [[0], [1]]), (kind, number, when, lasts)
                assert done or lasts, (kind, number, when)


def test_a_remote_dataset_with_keys_beside_its_files(fs: Any, keys: tuple[Any, Any]) -> None:
    root, (encryption, decryption) = f"{fs.protocol}://lake", keys
    for k, mode in enumerate(["error", "append", "overwrite"]):
        pyparq.write_dataset({"id": [k]}, root, mode=mode, encryption=encryption)
        found = pyparq.dataset(root, decryption=decryption).read().to_pydict()["id"]
        assert sorted(found) == ([2] if mode == "overwrite" else list(range(k + 1)))


def test_files_in_staging_have_no_place_for_keys(fs: Any, keys: tuple[Any, Any]) -> None:
    """The keys would go with the staging folder, and nobody could read the files."""
    committer = StoreCommitter.start(f"{fs.protocol}://lake", "append", None)
    sink = StagedObjects(committer.staging, "task", None).sink("part.parquet", False)
    with pytest.raises(EncryptionError, match="internal_key_material=True"):
        pyparq.write_table({"id": [1]}, sink, encryption=keys[0])
