"""Local files take their place only when they are complete: what lies there until then, owners, permissions, kills."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from pyparq.io import atomic_write
from pyparq.io.sink import LocalSink

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions, links and signals")

TABLE = pa.table({"a": list(range(1000)), "s": [f"text {k}" for k in range(1000)]})
OLD = b"what was there before"
ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
NOBODY = 65534
UNNAMED = ("unnamed", "no /proc any more", "no links")
"""Systems that have files without a name."""
OPEN, LINK = os.open, os.link


def has_unnamed_files(folder: Path) -> bool:
    fd = atomic_write.open_unnamed(str(folder), 0o600)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def without(number: int) -> Callable[..., int]:
    """``os.open`` of a system that refuses ``O_TMPFILE`` with this error."""

    def open_(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(number, os.strerror(number), path)
        return OPEN(path, flags, *args, **options)

    return open_


@pytest.fixture(
    params=["unnamed", "not supported", "unknown flag", "no such folder", "no /proc", "no /proc any more", "no links"]
)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Whether files without a name can be made here, and be given one."""
    if request.param in UNNAMED and not has_unnamed_files(tmp_path):
        pytest.skip("no O_TMPFILE here")
    errors = {"not supported": errno.EOPNOTSUPP, "unknown flag": errno.EISDIR, "no such folder": errno.ENOENT}
    if request.param in errors and hasattr(os, "O_TMPFILE"):
        monkeypatch.setattr(atomic_write.os, "open", without(errors[request.param]))
    if request.param == "no /proc":
        monkeypatch.setattr(atomic_write, "DESCRIPTORS", "/nowhere")
    refusals = {"no links": errno.EPERM, "no /proc any more": errno.ENOENT}
    if request.param in refusals:

        def refuse(*args: Any, **options: Any) -> None:
            raise OSError(refusals[request.param], "no links here")

        monkeypatch.setattr(atomic_write.os, "link", refuse)
    return str(request.param)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def as_nobody(task: Callable[[], Any], groups: tuple[int, ...] = ()) -> None:
    """Run ``task`` in a child that is not root."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgroups(groups)
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            task()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that everybody may write to, and reach."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    for parent in folder.parents:
        if parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o055)
        if parent.name.startswith("pytest-of-"):
            break
    return folder


# ---- until it is complete ----------------------------------------------------------------------------------------


def test_what_lies_in_the_folder_meanwhile(tmp_path: Path, system: str) -> None:
    path = tmp_path / "t.parquet"
    for content in (None, OLD):
        if content is not None:
            path.write_bytes(content)
        before = names(tmp_path)
        writer = pyparq.ParquetWriter(path)
        writer.write(TABLE, row_group_size=100)
        meanwhile = [name for name in names(tmp_path) if name not in before]
        assert len(meanwhile) == (0 if system in UNNAMED else 1)
        assert all(name.startswith(".t.parquet.") and name.endswith(".tmp") for name in meanwhile)
        if content is not None:
            assert path.read_bytes() == content
            # Nobody else opens what is not his yet.
            assert [mode(tmp_path / name) for name in meanwhile] == [0o600] * len(meanwhile)
        writer.close()
        assert names(tmp_path) == ["t.parquet"]
        assert pq.read_table(path).equals(TABLE)
    writer = pyparq.ParquetWriter(path)
    writer.write(TABLE, row_group_size=100)
    writer.abort()
    assert names(tmp_path) == ["t.parquet"]


def test_it_works_in_a_thread(tmp_path: Path, system: str) -> None:
    thread = threading.Thread(target=pyparq.write_table, args=(TABLE, tmp_path / "t.parquet"))
    thread.start()
    thread.join()
    assert pq.read_table(tmp_path / "t.parquet").equals(TABLE)


def test_a_relative_path_is_where_it_was_when_it_was_opened(
    tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    writer = pyparq.ParquetWriter("t.parquet")
    writer.write(TABLE)
    os.chdir(tmp_path)
    writer.close()
    assert pq.read_table(tmp_path / "a" / "t.parquet").equals(TABLE)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["x" * 247 + ".parquet", "ä" * 123 + ".parquet", "語" * 82 + ".parquet", "🎈" * 61])
def test_names_as_long_as_they_may_be(tmp_path: Path, system: str, name: str) -> None:
    """In bytes: a hidden name must not be longer than that."""
    for _ in range(2):
        pyparq.write_table(TABLE, tmp_path / name)
    assert names(tmp_path) == [name]
    hidden = atomic_write.hidden_name(name)
    assert len(os.fsencode(hidden)) < 143
    assert name.startswith(hidden[1:20])


def test_a_name_that_is_no_text(tmp_path: Path, system: str) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.parquet"
    pyparq.write_table(TABLE, os.fsdecode(path))
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe.parquet"]


def test_a_target_that_cannot_be_replaced(tmp_path: Path, system: str) -> None:
    sink = LocalSink(str(tmp_path / "t.parquet"))
    sink.write([b"data"])
    (tmp_path / "t.parquet").mkdir()
    with pytest.raises(OSError, match=r"'[^']*/t\.parquet'$"):
        sink.commit()
    assert names(tmp_path) == ["t.parquet"]
    sink.abort()


def test_a_folder_that_is_gone(tmp_path: Path, system: str) -> None:
    (tmp_path / "a").mkdir()
    sink = LocalSink(str(tmp_path / "a" / "t.parquet"))
    sink.write([b"data"])
    for name in names(tmp_path / "a"):
        (tmp_path / "a" / name).unlink()
    (tmp_path / "a").rmdir()
    with pytest.raises(FileNotFoundError, match=r"t\.parquet'$"):
        sink.commit()


@pytest.mark.parametrize("call", ["fsync", "close", "replace"])
def test_an_error_at_the_end_leaves_what_was_there(
    tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    writer = pyparq.ParquetWriter(path, fsync=True)
    writer.write(TABLE)
    real = getattr(os, call)

    def fail(*args: Any) -> None:
        if call == "close":
            real(*args)
        monkeypatch.setattr(atomic_write.os, call, real)
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(atomic_write.os, call, fail)
    with pytest.raises(OSError, match="the disk is full"):
        writer.close()
    assert names(tmp_path) == ["t.parquet"]
    assert path.read_bytes() == OLD


# ---- links, pipes ------------------------------------------------------------------------------------------------


def test_links(tmp_path: Path, system: str) -> None:
    """A symbolic link stays one; of a hard link's names the one that is written gets the new file."""
    (tmp_path / "folder").mkdir()
    path, link, other = tmp_path / "folder" / "t.parquet", tmp_path / "link.parquet", tmp_path / "other.parquet"
    path.write_bytes(OLD)
    link.symlink_to(path)
    LINK(path, other)
    pyparq.write_table(TABLE, link)
    assert link.is_symlink()
    assert pq.read_table(path).equals(TABLE)
    assert other.read_bytes() == OLD
    path.unlink()
    pyparq.write_table(TABLE, link)  # it leads nowhere
    assert link.is_symlink()
    assert pq.read_table(path).equals(TABLE)


def test_a_named_pipe_is_written_to_directly(tmp_path: Path, system: str) -> None:
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    thread = threading.Thread(target=lambda: found.append(path.read_bytes()))
    thread.start()
    pyparq.write_table(TABLE, path)
    thread.join(60)
    assert pq.read_table(pa.BufferReader(found[0])).equals(TABLE)
    assert stat.S_ISFIFO(path.stat().st_mode)


# ---- permissions and owners --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o640, 0o600, 0o444, 0o666, 0o000])
def test_permissions_stay(tmp_path: Path, system: str, bits: int) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    path.chmod(bits)
    pyparq.write_table(TABLE, path)
    assert mode(path) == bits


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0o000])
def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path: Path, system: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        pyparq.write_table(TABLE, tmp_path / "t.parquet")
        (tmp_path / "other").touch()
    finally:
        assert os.umask(before) == umask
    assert mode(tmp_path / "t.parquet") == mode(tmp_path / "other") == 0o666 & ~umask


def test_set_user_id_does_not_stay(tmp_path: Path, system: str) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    path.chmod(0o6755)
    pyparq.write_table(TABLE, path)
    assert mode(path) == 0o755


def test_permissions_of_a_file_that_came_meanwhile(tmp_path: Path, system: str) -> None:
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    writer.write(TABLE)
    (tmp_path / "t.parquet").write_bytes(OLD)
    (tmp_path / "t.parquet").chmod(0o600)
    writer.close()
    assert mode(tmp_path / "t.parquet") == 0o600
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    writer.write(TABLE)
    (tmp_path / "t.parquet").unlink()
    writer.close()
    assert mode(tmp_path / "t.parquet") == 0o600


@ROOT
def test_the_owner_stays(tmp_path: Path, system: str) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o4640)
    pyparq.write_table(TABLE, path)
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (NOBODY, NOBODY, 0o640)


@ROOT
def test_the_owner_comes_before_the_permissions(tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would be another's for a moment, and giving a file away changes them."""
    path, calls = tmp_path / "t.parquet", []
    path.write_bytes(OLD)
    os.chown(path, NOBODY, NOBODY)
    for name in ("fchown", "fchmod", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(atomic_write.os, name, lambda *a, n=name, r=real: (calls.append(n), r(*a)))
    pyparq.write_table(TABLE, path)
    assert [name for k, name in enumerate(calls) if name not in calls[:k]] == ["fchown", "fchmod", "replace"]


@pytest.mark.sweep(3)
@ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(
    ("groups", "group", "bits", "becomes"),
    [
        ((), 0, 0o660, 0o600),  # another group: it gets nothing that was root's group's
        ((), 0, 0o664, 0o644),
        ((), 0, 0o604, 0o600),  # whoever was in the group had nothing
        ((), NOBODY, 0o664, 0o664),
        ((4321,), 4321, 0o660, 0o660),  # a group of the writer's stays
    ],
)
def test_another_users_file_grants_nobody_more(
    shared: Path, system: str, groups: tuple[int, ...], group: int, bits: int, becomes: int
) -> None:
    path = shared / "t.parquet"
    path.write_bytes(OLD)
    os.chown(path, 0, group)
    path.chmod(bits)
    as_nobody(lambda: pyparq.write_table(TABLE, path), groups)
    assert (path.stat().st_uid, mode(path)) == (NOBODY, becomes)
    assert path.stat().st_gid == (NOBODY if group == 0 else group)
    assert names(shared) == ["t.parquet"]


@ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_folder_that_may_not_be_written_to(shared: Path, system: str) -> None:
    path = shared / "t.parquet"
    path.write_bytes(OLD)
    path.chmod(0o666)
    shared.chmod(0o555)

    def task() -> None:
        with pytest.raises(PermissionError, match=r"t\.parquet'$"):
            pyparq.write_table(TABLE, path)

    as_nobody(task)
    assert path.read_bytes() == OLD


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as the kernel keeps it: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NO_ID = 0xFFFFFFFF
ACL = acl((1, 6, NO_ID), (2, 4, 1234), (4, 0, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID))
"""The owner may write, user 1234 may read, his group may not."""
DEFAULT = acl((1, 7, NO_ID), (2, 6, 4321), (4, 5, NO_ID), (16, 7, NO_ID), (32, 0, NO_ID))
ACCESS = "system.posix_acl_access"


@pytest.fixture
def with_acls(tmp_path: Path) -> Path:
    folder = tmp_path / "acls"
    folder.mkdir()
    try:
        os.setxattr(folder, "system.posix_acl_default", DEFAULT)
    except (OSError, AttributeError):
        pytest.skip("no access control lists here")
    return folder


def test_access_control_lists(with_acls: Path, system: str) -> None:
    """A new file gets the folder's, as any does; one that is replaced keeps its own, or has none as before."""
    new, listed, plain = (with_acls / f"{name}.parquet" for name in ("new", "listed", "plain"))
    pyparq.write_table(TABLE, new)
    listed.touch()
    assert os.getxattr(new, ACCESS) == os.getxattr(listed, ACCESS)
    os.setxattr(listed, ACCESS, ACL)
    pyparq.write_table(TABLE, listed)
    assert os.getxattr(listed, ACCESS) == ACL
    plain.touch()
    os.removexattr(plain, ACCESS)
    plain.chmod(0o640)
    pyparq.write_table(TABLE, plain)
    assert os.listxattr(plain) == []
    assert mode(plain) == 0o640


def test_key_material_beside_a_file(tmp_path: Path, system: str) -> None:
    """It takes its place as the file does."""

    class Kms:
        def wrap_key(self, key: bytes, master: str) -> str:
            return key.hex()

        def unwrap_key(self, wrapped: str, master: str) -> bytes:
            return bytes.fromhex(wrapped)

    factory, path = CryptoFactory(lambda config: Kms()), tmp_path / "t.parquet"
    config = EncryptionConfiguration("key", uniform_encryption=True, internal_key_material=False)
    for _ in range(2):
        properties = factory.file_encryption_properties(KmsConnectionConfig(), config)
        pyparq.write_table(TABLE, path, encryption=properties)
        assert names(tmp_path) == ["_KEY_MATERIAL_FOR_t.parquet.json", "t.parquet"]
        sibling = tmp_path / "_KEY_MATERIAL_FOR_t.parquet.json"
        sibling.chmod(0o600)
    assert mode(sibling) == 0o600
    known = factory.file_decryption_properties(KmsConnectionConfig())
    assert pyparq.read_table(path, decryption=known).to_arrow().equals(TABLE)
    before = sibling.read_bytes(), path.read_bytes()
    writer = pyparq.ParquetWriter(path, encryption=properties)
    writer.write(TABLE)
    del writer
    assert (sibling.read_bytes(), path.read_bytes()) == before


# ---- kills -------------------------------------------------------------------------------------------------------

WRITE = """
import sys, numpy as np, pyparq
from pyparq.io import atomic_write
if sys.argv[2] == "named":
    atomic_write.open_unnamed = lambda folder, mode: -1
for round in range(1 << 20):
    if round == 1:
        print("begin", flush=True)
    with pyparq.ParquetWriter(sys.argv[1], compression=None, column_encoding="PLAIN") as writer:
        for k in range(3):
            writer.write({"a": np.arange(50_000) + k}, row_group_size=50_000)
"""


def kill_while_writing(path: Path, how: str, after: float) -> None:
    args = [sys.executable, "-c", WRITE, str(path), how]
    with subprocess.Popen(args, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begin\n"
        time.sleep(after)
        process.kill()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("how", ["unnamed", "named"])
def test_a_kill_at_any_moment(tmp_path: Path, how: str) -> None:
    """The file is the old one or the new one. Nothing else is left where files need no name; or, for a kill at the very
    end, a complete one."""
    if how == "unnamed" and not has_unnamed_files(tmp_path):
        pytest.skip("no O_TMPFILE here")
    path, chance = tmp_path / "t.parquet", random.Random(7)
    for _ in range(10):
        kill_while_writing(path, how, chance.uniform(0.0, 0.2))
        assert pq.read_table(path).num_rows == 150_000
        for name in names(tmp_path):
            if name != "t.parquet":
                assert name.startswith(".t.parquet.")
                if how == "unnamed":
                    assert pq.read_table(tmp_path / name).num_rows == 150_000
                (tmp_path / name).unlink()


def test_a_kill_before_the_end_leaves_nothing(tmp_path: Path) -> None:
    if not has_unnamed_files(tmp_path):
        pytest.skip("no O_TMPFILE here")
    path = tmp_path / "t.parquet"
    path.write_bytes(OLD)
    script = textwrap.dedent("""
        import os, signal, sys, numpy as np, pyparq
        writer = pyparq.ParquetWriter(sys.argv[1], compression=None, column_encoding="PLAIN")
        writer.write({"a": np.arange(200_000)}, row_group_size=50_000)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["t.parquet"]
