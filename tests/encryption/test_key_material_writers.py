"""A file and the key material beside it fit each other always: with two writers, after a crash, and for who reads."""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_two_writers import at_renames

import pyparq
from pyparq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Kms:
    def wrap_key(self, key: bytes, master: str) -> str:
        return key.hex()

    def unwrap_key(self, wrapped: str, master: str) -> bytes:
        return bytes.fromhex(wrapped)


FACTORY = CryptoFactory(lambda config: Kms())
CONFIG = EncryptionConfiguration("main", {"hr": ["b"]}, internal_key_material=False)
DECRYPTION = FACTORY.file_decryption_properties(KmsConnectionConfig())


def write(path: Path, generation: int) -> None:
    keys = FACTORY.file_encryption_properties(KmsConnectionConfig(), CONFIG)
    pyparq.write_table({"a": [generation] * 5, "b": [generation] * 5}, path, encryption=keys)


def generation(path: Path) -> int:
    found = pyparq.read_table(path, decryption=DECRYPTION).to_pydict()
    assert found["a"] == found["b"]
    (one,) = set(found["a"])
    return int(one)


def edit(path: Path) -> None:
    pyparq.edit_metadata(path, update={"k": "v"}, decryption=DECRYPTION)


def child(work: Callable[[], Any]) -> int:
    """The id of a process that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return pid


def ended(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    return False


@pytest.fixture(params=["new", "replaced"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "replaced":
        write(tmp_path / "f.parquet", 1)
    return tmp_path / "f.parquet"


@pytest.mark.sweep(4)
@pytest.mark.parametrize("other", ["write", "edit"])
@pytest.mark.parametrize("nth", [0, 1, 2])
def test_another_write_at_each_rename(path: Path, nth: int, other: str) -> None:
    seen: list[str] = []
    running: list[int] = []

    def work(old: str, new: str) -> None:
        seen.append(new)
        if len(seen) == nth + 1 and (other == "write" or path.exists()):
            running.append(child(lambda: write(path, 3) if other == "write" else edit(path)))
            if ended(running[0], 1.0):
                running.clear()

    with at_renames(work):
        write(path, 2)
    for pid in running:
        os.waitpid(pid, 0)
    assert generation(path) in (2, 3)


@pytest.mark.parametrize("nth", range(3))
def test_a_crash_at_each_rename(path: Path, nth: int) -> None:
    had = generation(path) if path.exists() else None
    seen: list[str] = []

    def work(old: str, new: str) -> None:
        seen.append(new)
        if len(seen) == nth + 1:
            os.kill(os.getpid(), signal.SIGKILL)

    def crash() -> None:
        with at_renames(work):
            write(path, 2)

    os.waitpid(child(crash), 0)
    if path.exists():
        assert generation(path) in (had, 2)
    write(path, 3)
    assert generation(path) == 3


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    write(path, 1)
    until = time.monotonic() + 1.5

    def work(number: int) -> None:
        while time.monotonic() < until:
            write(path, number)

    running = [child(lambda k=k: work(k)) for k in (2, 3)]
    while time.monotonic() < until:
        try:
            assert generation(path) in (1, 2, 3)
        except pyparq.EncryptionError as error:  # it was replaced twice since it was opened
            assert "if the file was replaced meanwhile, open it again" in str(error)  # noqa: PT017
    assert [os.waitpid(pid, 0)[1] for pid in running] == [0, 0]
    assert generation(path) in (2, 3)


def test_material_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    for number in range(4):
        write(path, number)
        found = json.loads((tmp_path / "_KEY_MATERIAL_FOR_f.parquet.json").read_text())
        assert len(found) <= 1 + 2 * 2  # the footer's key by its usual name, and the keys of two generations
        assert generation(path) == number
