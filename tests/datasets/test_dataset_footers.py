"""Footers of many files: read together, kept as long as the files stay as they are, decoded once for files alike."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encryption_tools import FOOTER

import pyparq
from pyparq import col, kernels
from pyparq.datasets import footers
from pyparq.datasets.dataset import files_of
from pyparq.datasets.footers import file_status, status_of
from pyparq.errors import (
    ChangedFileError,
    CorruptFileError,
    EncryptionError,
    LimitError,
    OptionError,
    SkippedFileWarning,
)
from pyparq.format.lazy_footer import LazyFileMetaData

DAY = 86_400 * 10**9


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    footers.forget_footers()
    yield
    footers.forget_footers()


def settle(path: Path, ago: int = DAY) -> None:
    """Make the file old: footers of files that have just been written are not kept beyond their dataset."""
    at = os.stat(path).st_mtime_ns - ago
    os.utime(path, ns=(at, at))


def many(folder: Path, count: int = 20, rows: int = 7, **options: Any) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for k in range(count):
        path = folder / f"f{k:03d}.parquet"
        pq.write_table(
            pa.table({"x": np.arange(rows + k), "s": [f"{k}-{i}" for i in range(rows + k)]}), path, **options
        )
        settle(path)
        found.append(path)
    return found


def write(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def read_footers(*paths: Any, tail: int = 1 << 14, most: int = 1 << 20) -> Any:
    if kernels.read_footers is None:
        pytest.skip("no positioned reads here")
    return kernels.read_footers([os.fsencode(path) for path in paths], tail, most)


# ---- the kernels ---------------------------------------------------------------------------------------------------


def test_footers_are_read_as_they_are_stored(tmp_path: Path) -> None:
    paths = many(tmp_path, 3)
    for tail in (8, 100, 1 << 14):
        for path, found in zip(paths, read_footers(*paths, tail=tail), strict=True):
            size, mtime, inode, ctime, encrypted, data, requests, count = found
            status = os.stat(path)
            assert (size, mtime, inode) == (status.st_size, status.st_mtime_ns, status.st_ino)
            assert ctime == status.st_ctime_ns
            assert (data, encrypted) == (footer_of(path), False)
            assert requests == (1 if len(data) + 8 <= tail else 2)
            assert count == min(tail, size) + (len(data) + 8 if requests == 2 else 0)


def test_what_is_no_footer_is_left_to_others(tmp_path: Path) -> None:
    (good,) = many(tmp_path, 1)
    data = good.read_bytes()
    bad = {
        "magic": data[:-4] + b"PARX",
        "zero": data[:-8] + bytes(4) + data[-4:],
        "long": data[:-8] + (len(data) - 11).to_bytes(4, "little") + data[-4:],
        "short": b"PAR1PAR1",
        "empty": b"",
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    paths = [*(tmp_path / name for name in bad), tmp_path, tmp_path / "pipe", tmp_path / "missing", f"{good}\0"]
    assert read_footers(*paths) == [None] * len(paths)
    assert read_footers(good, most=len(footer_of(good)) - 1) == [None]
    assert read_footers() == []
    with pytest.raises(kernels.KernelError):
        read_footers(good, tail=7)


def test_frames_tell_what_is_alike(tmp_path: Path) -> None:
    alike = [footer_of(path) for path in many(tmp_path / "a", 3)]
    other = [footer_of(path) for path in many(tmp_path / "b", 2, use_dictionary=False)]
    table = pa.table({"x": [1]}).replace_schema_metadata({"k": "v"})
    keyed = footer_of(write(tmp_path / "k.parquet", table))
    empty = footer_of(write(tmp_path / "e.parquet", table.slice(0, 0)))
    frames, rows = kernels.footer_frames([*alike, keyed, *other, b"", alike[0][:-3], keyed, empty])
    assert frames.tolist() == [0, 0, 0, 3, 0, 0, -1, -1, 3, -1]
    assert rows.tolist() == [7, 8, 9, 1, 7, 8, -1, -1, 1, -1]


def test_frames_of_damaged_footers(tmp_path: Path) -> None:
    """What the kernel takes for sound reads as it says; what it does not, is left to the decoder."""
    (path,) = many(tmp_path, 1)
    good = footer_of(path)
    told = 0
    for at in range(len(good)):
        for value in (0, good[at] ^ 1, good[at] ^ 0x80, 0xFF):
            bad = good[:at] + bytes([value]) + good[at + 1 :]
            frames, rows = kernels.footer_frames([good, bad])
            assert frames[0] == 0
            if frames[1] < 0:
                continue
            told += 1
            if frames[1] == 0:
                like = LazyFileMetaData(bad, LazyFileMetaData(good))
                alone = LazyFileMetaData(bad)
                assert (like.meta, like.schema_bytes, like.end) == (alone.meta, alone.schema_bytes, alone.end)
                assert sum(map(like.num_rows, range(like.num_row_groups))) == rows[1]
    assert told > len(good)


# ---- datasets ------------------------------------------------------------------------------------------------------


def test_datasets_share_footers_until_files_change(tmp_path: Path) -> None:
    paths = many(tmp_path, compression="none")
    first, again = pyparq.dataset(tmp_path), pyparq.dataset(tmp_path)
    rows = sum(7 + k for k in range(20))
    assert first.explain().requests > again.explain().requests  # the footers are not read again
    assert (first.count(), again.count()) == (rows, rows)
    assert len(footers._kept) == 20
    # Another file of the same name, size and time: its inode tells.
    before = os.stat(paths[0])
    other = tmp_path / "other"
    moved = pa.table({"x": np.arange(7) + 100, "s": [f"1-{i}" for i in range(7)]})
    pq.write_table(moved, other, compression="none")
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, paths[0])
    assert pyparq.dataset(tmp_path).read(["x"]).to_numpy("x")[:7].tolist() == list(range(100, 107))
    # The same file, longer.
    pq.write_table(pa.table({"x": np.arange(1000), "s": ["a"] * 1000}), paths[1])
    settle(paths[1], 2 * DAY)
    assert pyparq.dataset(tmp_path).count() == rows - 8 + 1000


def overwritten(path: Path, base: int) -> None:
    """Written to, with size, time and inode as they were."""
    before, at = path.stat(), path.with_name("other")
    pyparq.write_table(numbers(base), at, **FIXED)
    assert at.stat().st_size == before.st_size
    with open(path, "r+b") as file:
        file.write(at.read_bytes())
    at.unlink()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def numbers(base: int) -> dict[str, Any]:
    """The order differs too, so that pages and filters do."""
    return {"id": (np.arange(1000, dtype=np.int64) + base)[:: 1 if base == 0 else -1].copy()}


FIXED: dict[str, Any] = {
    "compression": "none", "use_dictionary": False, "column_encoding": "PLAIN", "bloom_filters": ["id"],
}  # fmt: skip


@pytest.mark.parametrize("catalog", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_is_kept_of_a_file_that_was_overwritten_in_place(tmp_path: Path, count: int, catalog: bool) -> None:
    """Its ctime tells. A dataset that is open refuses it, or has its old rows. A new one reads it anew."""
    folder = tmp_path / "lake"
    for k in range(count):
        path = folder / f"{k}.parquet"
        path.parent.mkdir(exist_ok=True)
        pyparq.write_table(numbers(1_000_000 * k), path, **FIXED)
        settle(path)
    if catalog:
        pyparq.index_dataset(folder, ["id"])
    asked = [col("id") < 500, col("id") >= 5_000_000, col("id") == 5_000_003]
    opened = pyparq.dataset(folder)
    assert [opened.count(question) for question in asked] == [500, 0, 0]
    assert opened.lookup("id", 7).num_rows == 1
    overwritten(folder / "0.parquet", 5_000_000)
    found = pyparq.dataset(folder)
    assert [found.count(question) for question in asked] == [0, 1000, 1]
    assert [found.read(filters=question).num_rows for question in asked] == [0, 1000, 1]
    assert [found.lookup("id", key).num_rows for key in (7, 5_000_003)] == [0, 1]
    with suppress(ChangedFileError):  # a small file may have been read whole
        assert opened.read(filters=asked[0]).to_numpy("id").tolist() == list(range(500))


def test_files_just_written_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    for path in many(tmp_path, 2):
        os.utime(path)
    assert pyparq.dataset(tmp_path).count() == 15
    assert not footers._kept


def test_kept_footers_take_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(tmp_path)
    monkeypatch.setattr(footers, "MOST_BYTES", 20_000)
    for _ in range(2):
        assert pyparq.dataset(tmp_path).count() == sum(7 + k for k in range(20))
        kept = sum(len(footer.data) + footers.OVERHEAD for footer in footers._kept.values())
        assert 0 < kept == footers._size <= 20_000
        assert len(footers._kept) < 20


def test_paths_relative_to_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in (("a", 3), ("b", 30)):
        many(tmp_path / name / "data", 2, rows)
        monkeypatch.chdir(tmp_path / name)
        assert pyparq.dataset("data").count() == 2 * rows + 1


def test_a_working_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(tmp_path / "data", 3)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert pyparq.dataset(tmp_path / "data").count() == 24
    with pytest.raises(FileNotFoundError):
        pyparq.dataset("data")


def test_inodes_of_all_64_bits() -> None:
    assert file_status(1, 2, 2**64 - 3, 4) == (1, 2, -3, 4)
    assert file_status(1, 2, 2**63 - 1, 4) == (1, 2, 2**63 - 1, 4)


def test_more_files_than_descriptors(tmp_path: Path) -> None:
    for path in many(tmp_path, 1):
        for k in range(300):
            os.link(path, tmp_path / f"l{k}.parquet")
    code = (
        "import resource, sys; import pyparq\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "ds = pyparq.dataset(sys.argv[1]); print(ds.count(), ds.read(filters=pyparq.col('x') == 3).num_rows)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["2107", "301"]


def test_a_damaged_footer_among_many(tmp_path: Path) -> None:
    paths = many(tmp_path)
    data = paths[7].read_bytes()
    paths[7].write_bytes(data[: len(data) // 2])
    with pytest.raises(CorruptFileError, match=r"f007\.parquet"):
        pyparq.dataset(tmp_path).count()
    footer = footer_of(paths[9])
    data = paths[9].read_bytes()
    paths[9].write_bytes(data.replace(footer, footer[:4] + b"\xff" * 20 + footer[24:]))
    ds = pyparq.dataset(tmp_path, on_error="skip")
    with pytest.warns(SkippedFileWarning):
        rows = ds.count()
    assert rows == sum(7 + k for k in range(20) if k not in (7, 9))
    assert [os.path.basename(name) for name, _ in ds.skipped] == ["f007.parquet", "f009.parquet"]


def test_rows_that_the_footer_does_not_add_up(tmp_path: Path) -> None:
    """Row groups count, not the number beside them, for one file as for many."""
    paths = many(tmp_path, 3, 130)
    footer = footer_of(paths[1])
    changed = footer.replace(b"\x16\x86\x02", b"\x16\x88\x02", 1)  # num_rows: 131 becomes 132
    assert changed != footer
    paths[1].write_bytes(paths[1].read_bytes().replace(footer, changed))
    assert pyparq.dataset(tmp_path).count() == sum(pyparq.read_table(path).num_rows for path in paths) == 393


def test_limits_hold_for_many(tmp_path: Path) -> None:
    many(tmp_path, 3)
    with pytest.raises(LimitError, match="max_footer"):
        pyparq.dataset(tmp_path, limits=pyparq.Limits(max_footer=100)).count()


def test_encrypted_footers_stay_encrypted(tmp_path: Path) -> None:
    table = pa.table({"secret_name": [1, 2, 3]})
    for k in range(4):
        path = tmp_path / f"{k}.parquet"
        keys = pyparq.EncryptionProperties(footer_key=FOOTER, plaintext_footer=k % 2 == 1)
        pyparq.write_table(table, path, encryption=keys)
        settle(path)
    keyed = pyparq.DecryptionProperties(footer_key=FOOTER)
    for _ in range(2):
        assert pyparq.dataset(tmp_path, decryption=keyed).count() == 12
        assert pyparq.dataset(tmp_path, decryption=keyed).read().to_arrow().num_rows == 12
    assert [b"secret_name" in footer.data for footer in footers._kept.values()] == [False, True, False, True]
    for wrong in (None, pyparq.DecryptionProperties(footer_key=b"another key 0123")):
        with pytest.raises(EncryptionError):
            pyparq.dataset(tmp_path, decryption=wrong).count()
    many(tmp_path / "plain", 3)
    with pytest.raises(EncryptionError, match="not encrypted"):
        pyparq.dataset(tmp_path / "plain", decryption=keyed).count()


def test_files_of_several_schemas(tmp_path: Path) -> None:
    for k in range(12):
        table = pa.table({"x": pa.array([k], [pa.int32(), pa.int64()][k % 2]), **({"y": ["a"]} if k % 3 == 0 else {})})
        pq.write_table(table, tmp_path / f"{k:02d}.parquet")
    ds = pyparq.dataset(tmp_path)
    assert ds.schema.names == ["x", "y"]
    assert str(ds.schema.field("x").type) == "int64"
    assert ds.count() == 12
    found = ds.read().to_pydict()
    assert found == {"x": list(range(12)), "y": ["a" if k % 3 == 0 else None for k in range(12)]}


# ---- one footer of each kind: the schema of files that no row is asked of ------------------------------------------


def kinds(paths: list[Path], tail: int = 1 << 14, most: int = 1 << 20, **changed: tuple[int, int, int, int]) -> Any:
    if kernels.footer_kinds is None:
        pytest.skip("no positioned reads here")
    statuses: list[int] = []
    for path in paths:
        statuses += changed.get(path.stem, status_of(os.stat(path)))
    firsts, stored, odd = kernels.footer_kinds(list(map(os.fsencode, paths)), np.array(statuses, np.int64), tail, most)
    return firsts.tolist(), stored, odd.tolist()


def test_the_kernel_finds_the_first_of_each_kind(tmp_path: Path) -> None:
    paths = [*many(tmp_path / "a", 3), write(tmp_path / "b.parquet", pa.table({"y": [1]})), *many(tmp_path / "c", 2)]
    paths.append(write(tmp_path / "d.parquet", pa.table({"y": [1, 2]})))
    for tail in (8, 100, 1 << 14):
        firsts, stored, odd = kinds(paths, tail)
        assert (firsts, odd) == ([0, 3], [])
        assert [found[5] for found in stored] == [footer_of(paths[0]), footer_of(paths[3])]
        assert [found[:4] for found in stored] == [tuple(read_footers(paths[k])[0][:4]) for k in firsts]
    assert kinds(paths, most=10) == ([], [], list(range(7)))
    assert kinds([]) == ([], [], [])
    for field in ("size", "mtime_ns", "inode", "ctime_ns"):
        moved = status_of(os.stat(paths[1]))._replace(**{field: 5})
        assert kinds(paths, f001=moved)[2] == [1, 5]
    broken = tmp_path / "broken.parquet"
    for data in (b"", b"PAR1", b"PAR1 nonsense PAR1", paths[0].read_bytes()[:-20] + bytes(12) + b"PAR1"):
        broken.write_bytes(data)
        assert kinds([paths[0], broken, paths[3]])[::2] == ([0, 2], [1])
    sealed = tmp_path / "sealed.parquet"
    pyparq.write_table(pa.table({"x": [1]}), sealed, encryption=pyparq.EncryptionProperties(footer_key=FOOTER))
    assert kinds([sealed])[::2] == ([], [0])
    with pytest.raises(ValueError, match="tail"):
        kinds(paths, tail=7)


def test_kinds_of_damaged_footers(tmp_path: Path) -> None:
    """They are those that the frames of the same footers tell."""
    (good,) = many(tmp_path, 1)
    data, rng, paths = good.read_bytes(), random.Random(3), [good]
    for k in range(300):
        bad = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            bad[rng.randrange(len(data) - len(footer_of(good)) - 8, len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        path = tmp_path / f"bad{k}.parquet"
        path.write_bytes(bad)
        paths.append(path)
    stored = read_footers(*paths)
    clear = [found[5] if found is not None and not found[4] else b"" for found in stored]
    frames = kernels.footer_frames(clear)[0].tolist()
    firsts, footers, odd = kinds(paths)
    assert odd == [k for k, frame in enumerate(frames) if frame < 0]
    assert firsts == sorted({frame for frame in frames if frame >= 0})
    assert [found[5] for found in footers] == [clear[k] for k in firsts]
    assert len(firsts) > 20 < len(odd)


def months(folder: Path, count: int = 24) -> Path:
    """Files whose schemas come and go, one in each folder."""
    for k in range(count):
        columns = {"x": pa.array([k], pa.int64() if k == 17 else pa.int32()), f"c{k % 5}": [k]}
        path = folder / f"m={k}" / "f.parquet"
        path.parent.mkdir(parents=True)
        settle(write(path, pa.table(columns)))
    return folder


def test_a_pruned_read_keeps_one_footer_of_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = months(tmp_path)
    ds = pyparq.dataset(folder)
    found = ds.read(filters=pyparq.col("m") == 9)
    assert files_of(ds).footers.kinds() is not None
    assert len(files_of(ds).footers._stored) <= 7
    assert ds.count() == 24
    monkeypatch.setattr(kernels, "footer_kinds", None)
    assert pyparq.dataset(folder).schema == ds.schema == found.schema
    assert pyparq.dataset(folder).read(filters=pyparq.col("m") == 9).to_pydict() == found.to_pydict()
    assert str(found.schema.field("x").type) == "int64"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    if kernels.footer_kinds is None:
        pytest.skip("no positioned reads here")
    calls, real = [], kernels.footer_kinds

    def call(paths: Any, *rest: Any) -> Any:
        calls.append(len(paths))
        return real(paths, *rest)

    monkeypatch.setattr(kernels, "footer_kinds", call)
    return calls


def test_kinds_are_remembered_as_long_as_the_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, calls = months(tmp_path), counted(monkeypatch)
    for m in range(3):
        ds = pyparq.dataset(folder)
        assert ds.read(filters=pyparq.col("m") == m).num_rows == 1
    assert sum(calls) == 24
    settle(write(folder / "m=20" / "f.parquet", pa.table({"x": [1], "new": ["n"]})), ago=2 * DAY)
    ds = pyparq.dataset(folder)
    assert "new" in ds.read(filters=pyparq.col("m") == 0).column_names
    assert sum(calls) == 48
    write(folder / "m=21" / "f.parquet", pa.table({"x": [1], "newer": ["n"]}))  # it may change again within a moment
    for _ in range(2):
        assert "newer" in pyparq.dataset(folder).read(filters=pyparq.col("m") == 0).column_names
    assert sum(calls) == 96
    for k in range(5):
        pyparq.dataset(months(tmp_path / f"other{k}")).read(filters=pyparq.col("m") == 0)
    assert len(footers._kinds) == footers.MOST_LISTINGS


def test_files_of_no_known_kind_are_looked_at(tmp_path: Path) -> None:
    folder = months(tmp_path)
    (folder / "m=3" / "f.parquet").write_bytes(b"PAR1 nonsense PAR1")
    empty = folder / "m=4" / "f.parquet"
    pyparq.write_table(pa.table({"e": pa.array([], pa.int64()), "x": pa.array([], pa.int16())}), empty)
    ds = pyparq.dataset(folder)
    assert set(ds.read(filters=pyparq.col("m") == 9).column_names) == {"x", "c0", "c1", "c2", "c3", "c4", "e", "m"}
    with pytest.raises(CorruptFileError, match="m=3"):
        pyparq.dataset(folder).read(filters=pyparq.col("m") == 3)
    with pytest.warns(SkippedFileWarning):
        assert pyparq.dataset(folder, on_error="skip").read(filters=pyparq.col("m") == 3).num_rows == 0
    ds = pyparq.dataset(folder)
    changed = folder / "m=9" / "f.parquet"
    write(changed, pa.table({"x": [1, 2], "late": [1, 2]}))
    assert "late" not in ds.read(filters=pyparq.col("m") == 8).column_names  # the listing saw another file
    with pytest.raises(ChangedFileError):
        ds.read(filters=pyparq.col("m") == 9)


def test_listings_without_a_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were named one by one, and paths that are no text."""
    folder, calls = months(tmp_path), counted(monkeypatch)
    paths = sorted(folder.glob("*/*.parquet"))
    named = pyparq.dataset([str(path) for path in paths])
    assert named.count(pyparq.col("x") == 3) == 1
    assert calls == []
    monkeypatch.chdir(folder)
    assert pyparq.dataset(".").read(filters=pyparq.col("m") == 2).num_rows == 1
    assert sum(calls) == 24
    monkeypatch.chdir(tmp_path.parent)
    odd = tmp_path / "odd" / os.fsdecode(b"\xff=1")
    odd.mkdir(parents=True)
    for k in range(9):
        pyparq.write_table({"x": [k]}, odd / f"{k}.parquet")
    with pytest.raises(OptionError, match="UTF-8"):
        pyparq.dataset(tmp_path / "odd")
    assert pyparq.dataset(odd, partitioning=None).count() == 9


def test_counting_reads_footers_together(tmp_path: Path) -> None:
    """Also where the schema is known already: it is declared, or an earlier question has read one of each kind."""
    if kernels.read_footers is None:
        pytest.skip("no positioned reads here")
    folder = months(tmp_path)
    declared = pyparq.dataset(folder, schema={"x": "int64?"})
    assert declared.count() == 24
    assert declared.count(pyparq.col("m") > 20) == 3
    assert files_of(declared)._opened == {}
    asked = pyparq.dataset(folder)
    asked.read(["x"], pyparq.col("m") == 9)
    opened = len(files_of(asked)._opened)
    assert asked.count() == 24
    assert len(files_of(asked)._opened) == opened
    (folder / "m=3" / "f.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(CorruptFileError, match="m=3"):
        pyparq.dataset(folder, schema={"x": "int64?"}).count()
    with pytest.warns(SkippedFileWarning):
        assert pyparq.dataset(folder, schema={"x": "int64?"}, on_error="skip").count() == 23
