"""``pyparq.upsert``: rows with a known key are replaced in their places, the others are added where they belong."""

from __future__ import annotations

import datetime as dt
import os
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import pyparq
from pyparq import DataError, OptionError, UnsupportedError


def table(rows: int = 4000, first: int = 0, text: str = "old") -> pa.Table:
    numbers = range(first, first + rows)
    return pa.table({
        "id": pa.array(numbers, pa.int64()), "text": [f"{text}-{k}" for k in numbers],
        "tags": pa.array([[k] * (k % 3) for k in numbers], pa.list_(pa.int64())),
        "at": pa.array([dt.datetime(2020, 3, 29, 0, 30) + dt.timedelta(minutes=k) for k in numbers],
                       pa.timestamp("us", "Europe/Berlin")),
    })  # fmt: skip


def by_id(data: Any) -> list[dict[str, Any]]:
    return sorted(data.to_pylist(), key=lambda row: row["id"])


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, row_group_size=1000, compression="zstd")
    data = pa.concat_tables([table(5, 1500, "new"), table(3, 10_000, "new")])
    report = pyparq.upsert(path, data, "id")
    assert (report.rows_updated, report.rows_added, report.rows_deleted) == (5, 3, 0)
    (file,) = report.files
    assert (file.row_groups_copied, file.row_groups_rewritten, file.rows_left) == (3, 2, 4003)
    found = pq.read_table(path)
    assert found.to_pylist() == [
        *table(1500).to_pylist(), *table(5, 1500, "new").to_pylist(), *table(2495, 1505).to_pylist(),
        *table(3, 10_000, "new").to_pylist(),
    ]  # fmt: skip
    assert found.schema == table().schema
    meta = pq.read_metadata(path)
    assert {meta.row_group(k).column(1).compression for k in range(5)} == {"ZSTD"}
    assert pyparq.verify(path).ok
    before = path.read_bytes()
    assert pyparq.upsert(path, data, "id").rows_added == 0
    assert pq.read_table(path).equals(found)
    assert len(before) > 0


def test_only_new_rows_and_a_dry_run(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(100), path)
    data = table(3, 1000, "new")
    dry = pyparq.upsert(path, data, ["id"], dry_run=True)
    assert pq.read_metadata(path).num_rows == 100
    done = pyparq.upsert(path, data, ["id"])
    for name in ("rows_updated", "rows_added", "row_groups_copied", "bytes_copied", "bytes_written"):
        if name.startswith("rows"):
            assert getattr(dry, name) == getattr(done, name)
        else:
            assert getattr(dry.files[0], name) == getattr(done.files[0], name), name
    assert pq.read_table(path).to_pylist() == [*table(100).to_pylist(), *data.to_pylist()]
    assert done.files[0].row_groups_copied == 1


def test_polars_agrees(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    old = pl.DataFrame({"a": [k // 10 for k in range(5000)], "b": [k % 10 for k in range(5000)], "x": range(5000)})
    new = pl.DataFrame({"a": [1, 2, 400, 900], "b": [5, 6, 7, 1], "x": [-1, -2, -3, -4]})
    old.write_parquet(path, row_group_size=500)
    assert pyparq.upsert(path, new, ["a", "b"]).rows_updated == 3
    wanted = old.join(new, on=["a", "b"], how="anti").vstack(new).sort("a", "b")
    assert pl.read_parquet(path).sort("a", "b").equals(wanted)


def lake(folder: Path) -> Path:
    for g in range(4):
        (folder / f"g={g}").mkdir(parents=True)
        pq.write_table(
            table(500, 500 * g), folder / f"g={g}" / "part-0.parquet", row_group_size=100, compression="zstd"
        )
    return folder


def with_g(data: pa.Table, g: int) -> pa.Table:
    return data.append_column("g", pa.array([g] * data.num_rows, pa.int32()))


def test_a_partitioned_folder(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    untouched = os.stat(folder / "g=3" / "part-0.parquet")
    data = pa.concat_tables([
        with_g(table(2, 10, "new"), 0), with_g(table(2, 600, "moved"), 2), with_g(table(1, 9000, "new"), 1),
        with_g(table(1, 9001, "new"), 7),
    ])  # fmt: skip
    dry = pyparq.upsert(folder, data, "id", dry_run=True)
    report = pyparq.upsert(folder, data, "id")
    for found in (dry, report):
        assert (found.rows_updated, found.rows_deleted, found.rows_added) == (2, 2, 4)
    rows = by_id(pads.dataset(folder, partitioning="hive").to_table())
    wanted = {row["id"]: row for g in range(4) for row in with_g(table(500, 500 * g), g).to_pylist()}
    wanted |= {row["id"]: row for row in data.to_pylist()}
    assert rows == sorted(wanted.values(), key=lambda row: row["id"])
    assert os.stat(folder / "g=3" / "part-0.parquet").st_ino == untouched.st_ino
    for path in folder.rglob("*.parquet"):
        assert pyparq.verify(path).ok
        assert pq.read_metadata(path).row_group(0).column(0).compression == "ZSTD"
    assert pyparq.upsert(folder, data, "id").rows_added == 0
    assert by_id(pads.dataset(folder, partitioning="hive").to_table()) == rows


def test_a_key_with_a_partition_column(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    data = pa.concat_tables([with_g(table(1, 600, "new"), 1), with_g(table(1, 600, "other"), 2)])
    report = pyparq.upsert(folder, data, ["g", "id"])
    assert (report.rows_updated, report.rows_added) == (1, 1)
    rows = [row for row in by_id(pads.dataset(folder, partitioning="hive").to_table()) if row["id"] == 600]
    assert sorted((row["g"], row["text"]) for row in rows) == [(1, "new-600"), (2, "other-600")]


def test_files_that_lack_a_column(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int32())}), folder / "a.parquet")
    pq.write_table(pa.table({"id": pa.array(range(10, 20), pa.int64()), "x": ["y"] * 10}), folder / "b.parquet")
    pyparq.upsert(folder, pa.table({"id": [3, 12, 30], "x": ["new"] * 3}), "id")
    found = pyparq.read_table(folder).to_pydict()
    rows = dict(zip(found["id"], found["x"], strict=True))
    assert rows == {**dict.fromkeys(range(10)), **dict.fromkeys(range(10, 20), "y"), 3: "new", 12: "new", 30: "new"}
    assert len(found["id"]) == 21


@pytest.mark.parametrize(
    ("data", "key", "error", "message"),
    [
        ({"id": [1, 1], "x": ["a", "b"]}, "id", DataError, "rows 0 and 1 have the same key: id=1"),
        ({"id": [1, None], "x": ["a", "b"]}, "id", DataError, "row 1 has no key"),
        ({"id": [1], "x": ["a"]}, "nobody", OptionError, "key must name"),
        ({"id": [1]}, "id", OptionError, "lacks the columns x"),
        ({"id": [1], "x": ["a"], "y": [1]}, "id", OptionError, "y"),
        ({"id": ["one"], "x": ["a"]}, "id", pyparq.ParquetError, "id"),
        ({"id": [1], "x": [5]}, "id", pyparq.ParquetError, "x"),
    ],
)
def test_data_that_do_not_fit_change_nothing(tmp_path: Path, data: Any, key: Any, error: Any, message: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(10), "x": ["a"] * 10}), path)
    stored = path.read_bytes()
    with pytest.raises(error, match=message):
        pyparq.upsert(path, data, key)
    assert path.read_bytes() == stored
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_lists_and_patterns_have_no_place_for_new_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(10), path)
    for source in ([path], [path, path], f"{tmp_path}/*.parquet"):
        with pytest.raises(UnsupportedError, match="no place"):
            pyparq.upsert(source, table(1), "id")


def test_sorted_and_encrypted_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    keys = pyparq.DecryptionProperties(b"k" * 16)
    pyparq.write_table(
        table(300), path, row_group_size=100, sort_by=["text"], encryption=pyparq.EncryptionProperties(b"k" * 16)
    )
    pyparq.upsert(path, table(250, 150, "new"), "id", decryption=keys)
    found = pyparq.read_table(path, decryption=keys)
    assert by_id(found) == by_id(
        pyparq.Table.from_pylist([*table(150).to_pylist(), *table(250, 150, "new").to_pylist()])
    )
    assert pyparq.verify(path, decryption=keys).ok


def test_pandas(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"id": range(100), "x": range(100)})
    frame.to_parquet(path)
    pyparq.upsert(path, pd.DataFrame({"id": [5, 200], "x": [-5, -200]}), "id")
    wanted = pd.concat(
        [frame.assign(x=frame["x"].where(frame["id"] != 5, -5)), pd.DataFrame({"id": [200], "x": [-200]})]
    )
    pd.testing.assert_frame_equal(pd.read_parquet(path), wanted.reset_index(drop=True))


def test_an_encrypted_folder(tmp_path: Path) -> None:
    own, other = (pyparq.EncryptionProperties(letter * 16) for letter in (b"k", b"o"))
    keys = pyparq.DecryptionProperties(b"k" * 16)
    folder = tmp_path / "lake"
    pyparq.write_dataset(with_g(table(300), 1), folder, partition_cols=["g"], encryption=own)
    data = pa.concat_tables([with_g(table(2, 10, "new"), 1), with_g(table(2, 5000, "new"), 2)])
    with pytest.raises(UnsupportedError, match="give encryption="):
        pyparq.upsert(folder, data, "id", decryption=keys)
    assert pyparq.dataset(folder, decryption=keys).count() == 300
    assert not [path.name for path in folder.iterdir() if path.name.startswith("_")]
    report = pyparq.upsert(folder, data, "id", encryption=own, decryption=keys)
    assert (report.rows_updated, report.rows_added) == (2, 2)
    found = pyparq.read_table(folder, decryption=keys)
    wanted = {row["id"]: row for row in with_g(table(300), 1).to_pylist()} | {
        row["id"]: row for row in data.to_pylist()
    }
    assert by_id(found) == sorted(wanted.values(), key=lambda row: row["id"])
    for path in folder.rglob("*.parquet"):
        assert path.read_bytes()[:4] == b"PARE"
        assert b"new-5000" not in path.read_bytes()
        with pytest.raises(pyparq.EncryptionError):
            pyparq.read_table(path)
    with pytest.raises(OptionError, match="keeps the keys"):
        pyparq.upsert(path, data.drop(["g"]), "id", encryption=other, decryption=keys)
    plain = lake(tmp_path / "plain")
    with pytest.raises(OptionError, match="not encrypted"):
        pyparq.upsert(plain, data, "id", encryption=own)


# ---- keys ------------------------------------------------------------------------------------------------------------

BERLIN = [dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC) + dt.timedelta(minutes=30 * k) for k in range(8)]
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "é", "e\u0301", "ß", "SS", "a'b", "日本", "😀"]),
    "decimal": (pa.decimal128(20, 3), [Decimal(k) / 8 for k in range(8)]),
    "wide decimal": (pa.decimal128(38, 0), [10**30 + k for k in range(8)]),
    "zoned": (pa.timestamp("us", "Europe/Berlin"), BERLIN),
    "nanoseconds": (pa.timestamp("ns"), [10**18 + k for k in range(8)]),
    "nanosecond clock": (pa.time64("ns"), list(range(8))),
    "clock": (pa.timestamp("ms"), [moment.replace(tzinfo=None) for moment in BERLIN]),
    "day": (pa.date32(), [dt.date(2024, 1, 1) + dt.timedelta(k) for k in range(8)]),
    "bytes": (pa.binary(), [bytes([k, 255]) for k in range(8)]),
    "fixed": (pa.binary(4), [bytes([k, 255, 0, 0]) for k in range(8)]),
    "double": (pa.float64(), [0.1 * k for k in range(8)]),
    "float": (pa.float32(), [k / 3 for k in range(8)]),
    "unsigned": (pa.uint64(), [2**64 - 1 - k for k in range(8)]),
    "category": (pa.dictionary(pa.int32(), pa.string()), [f"c{k}" for k in range(8)]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_all_types(tmp_path: Path, kind: str) -> None:
    type_, values = KEYS[kind]
    plain = pa.string() if kind == "category" else type_
    keys = pa.array(values, plain).cast(type_)
    pq.write_table(pa.table({"k": keys[:6], "x": range(6)}), tmp_path / "a.parquet", row_group_size=2)
    report = pyparq.upsert(tmp_path / "a.parquet", pa.table({"k": keys[5:], "x": [-5, -6, -7]}), "k")
    assert (report.rows_updated, report.rows_added) == (1, 2)
    found = pq.read_table(tmp_path / "a.parquet")
    assert found["k"].combine_chunks().cast(plain).equals(keys.cast(plain))
    assert found["x"].to_pylist() == [0, 1, 2, 3, 4, -5, -6, -7]
    with pytest.raises(DataError, match="rows 0 and 1 have the same key"):
        pyparq.upsert(tmp_path / "a.parquet", pa.table({"k": keys.take(pa.array([3, 3])), "x": [1, 2]}), "k")


def test_a_nested_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    data = pa.table({"place": [{"a": 1}], "tags": [[1]], "id": [1]})
    pq.write_table(data, path)
    for key, message in (("place", "nested"), ("tags", "nested"), ("place.a", "must name"), ([], "must name")):
        with pytest.raises(OptionError, match=message):
            pyparq.upsert(path, data, key)


def test_text_and_null_partitions(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    old = pa.table({"city": ["Köln", "a/b", None, "x=y"], "id": [1, 2, 3, 4], "x": [0] * 4})
    pyparq.write_dataset(old, folder, partition_cols=["city"])
    data = pa.table({"city": ["Köln", "x=y", "a/b", "new %"], "id": [1, 2, 3, 5], "x": [1] * 4})
    report = pyparq.upsert(folder, data, "id")
    assert (report.rows_updated, report.rows_deleted, report.rows_added) == (1, 2, 3)
    found = [row for row in by_id(pyparq.read_table(folder)) if row["id"] != 4]
    assert found == by_id(data.select(["id", "x", "city"]))
    report = pyparq.upsert(folder, data, ["city", "id"])
    assert (report.rows_updated, report.rows_deleted, report.rows_added) == (4, 0, 0)
    with pytest.raises(DataError, match=r"city.*null|null.*city"):
        pyparq.upsert(folder, {"city": [None], "id": [3], "x": [1]}, ["city", "id"])


def random_frame(chosen: random.Random, rows: int, keys: list[str]) -> pl.DataFrame:
    columns = {
        "a": pl.Series([chosen.randrange(6) for _ in range(rows)], dtype=pl.Int32),
        "b": pl.Series([chosen.choice(["x", "y", "ü", ""]) for _ in range(rows)]),
        "c": pl.Series([Decimal(chosen.randrange(4)) / 4 for _ in range(rows)], dtype=pl.Decimal(9, 2)),
        "p": pl.Series([chosen.randrange(3) for _ in range(rows)], dtype=pl.Int32),
        "v": pl.Series([chosen.choice([None, k]) for k in range(rows)], dtype=pl.Int64),
    }
    return pl.DataFrame(columns).unique(keys, maintain_order=True)


@pytest.mark.parametrize(
    ("first", "count"), [(0, 100), pytest.param(100, 900, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_random_tables_as_polars_joins_them(tmp_path: Path, first: int, count: int) -> None:
    for case in range(first, first + count):
        chosen = random.Random(case)
        keys = chosen.sample(["a", "b", "c", "p"], chosen.randint(1, 3))
        old = random_frame(chosen, chosen.randint(1, 40), keys)
        new = random_frame(chosen, chosen.randint(1, 12), keys)
        layout = chosen.choice(["file", "folder", "partitions"])
        place = tmp_path / f"{case}{'.parquet' if layout == 'file' else ''}"
        size = chosen.choice([3, 10, 100])
        if layout == "file":
            old.write_parquet(place, row_group_size=size)
        else:
            names = ["p"] if layout == "partitions" else []
            pyparq.write_dataset(old, place, partition_cols=names, row_group_size=size, max_rows_per_file=20)
        report = pyparq.upsert(place, new.select(chosen.sample(new.columns, len(new.columns))), keys)
        kept = old.join(new, on=keys, how="anti")
        wanted = kept.vstack(new).select("a", "b", "c", "p", "v").sort("a", "b", "c", "p", "v")
        source = place if layout == "file" else place / "**" / "*.parquet"
        hive: dict[str, Any] = {"hive_schema": {"p": pl.Int32}} if layout == "partitions" else {}
        found = pl.read_parquet(source, hive_partitioning=bool(hive), **hive)
        assert found.select(wanted.columns).sort("a", "b", "c", "p", "v").equals(wanted), case
        assert report.rows_updated + report.rows_deleted == old.height - kept.height, case
        assert report.rows_updated + report.rows_added == new.height, case


class TwoNames(MemoryFileSystem):
    """Two protocols lead to it, as ``az`` and ``abfs`` do to that of Azure. It calls its files by the first."""

    protocol = ("first", "second")
    store: dict[str, Any] = {}  # noqa: RUF012  # as in the base class
    pseudo_dirs: list[str] = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        found: str = super()._strip_protocol(path.removeprefix("first://").removeprefix("second://"))
        return found


def test_a_folder_whose_files_have_another_protocol() -> None:
    for protocol in TwoNames.protocol:
        fsspec.register_implementation(protocol, TwoNames, clobber=True)
    pyparq.write_dataset({"id": [1, 2], "g": [0, 1]}, "second://lake", partition_cols=["g"])
    assert pyparq.dataset("second://lake").files[0].startswith("first://")
    report = pyparq.upsert("second://lake", {"id": [2, 3], "g": [1, 7]}, "id")
    assert (report.rows_updated, report.rows_added) == (1, 1)
    assert by_id(pyparq.dataset("second://lake").read()) == [
        {"id": 1, "g": 0}, {"id": 2, "g": 1}, {"id": 3, "g": 7},
    ]  # fmt: skip
    two = ["second://lake/g=0/", "second://lake/g=1/"]
    with pytest.raises(UnsupportedError, match="have no place"):
        pyparq.upsert(two, {"id": [9], "g": [1]}, "id")
