"""Files replaced in their place: nothing else changes, whatever goes wrong; and many files at once."""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cli_files as cli
import datafusion
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import REPEATED, REQUIRED, Column, Page, group, int32, leaf, make
from rewritten import footer_bytes, footer_of, key_values, page_hashes

import pyparq
from pyparq import col
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.format.thrift_tree import BINARY, I64, ThriftStruct
from pyparq.io.file_lock import FOLDER_LOCK

ROWS = 3_000
TABLE = pa.table({"id": np.arange(ROWS) * 2, "text": [f"v{i:06d}" for i in range(ROWS)]})


def written(path: Path, **options: Any) -> Path:
    pq.write_table(TABLE, path, **{"row_group_size": 1_000, "data_page_size": 2_000, "use_dictionary": False} | options)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "a.parquet")


def state(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


# ---- in place


def test_a_second_run_changes_nothing(path: Path) -> None:
    assert pyparq.add_indexes(path, bloom_filters=True).files_written == 1
    before = state(path)
    report = pyparq.add_indexes(path, bloom_filters=True)
    assert report.files_written == 0
    assert state(path) == before
    assert pyparq.edit_metadata(path, update={"pyparq.indexes": key_values(path.read_bytes())["pyparq.indexes"]}) == 0
    assert pyparq.edit_metadata(path, remove=["not there"]) == 0
    assert state(path) == before


def test_permissions_stay(path: Path) -> None:
    path.chmod(0o640)
    pyparq.add_indexes(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(path.parent) == ["a.parquet"]


def test_a_symbolic_link_stays_one(path: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.parquet"
    link.symlink_to(path)
    for stale in (tmp_path / ".a.parquet.crc", tmp_path / "links" / ".link.parquet.crc"):
        stale.write_bytes(b"crc")
    report = pyparq.add_indexes(link, bloom_filters=["id"])
    assert report.files[0].written
    assert link.is_symlink()
    assert "pyparq.indexes" in key_values(path.read_bytes())
    assert names(tmp_path) == ["a.parquet", "links"]
    assert names(tmp_path / "links") == ["link.parquet"]


def test_hard_links_keep_the_old_file(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.parquet"
    other.hardlink_to(path)
    before = path.read_bytes()
    report = pyparq.add_indexes(path)
    assert other.read_bytes() == before != path.read_bytes()
    assert "hard links" in report.files[0].notes[0]


def test_a_target_that_is_the_source(path: Path) -> None:
    (path.parent / ".a.parquet.crc").write_bytes(b"old")
    pyparq.add_indexes(path, str(path))
    assert names(path.parent) == ["a.parquet"]
    assert pq.read_table(path).equals(TABLE)


def test_the_checksum_of_hadoop_goes(path: Path) -> None:
    crc = path.parent / ".a.parquet.crc"
    crc.write_bytes(b"old")
    report = pyparq.add_indexes(path)
    assert not crc.exists()
    assert str(crc) in report.files[0].notes[0]
    crc.write_bytes(b"new")
    pyparq.add_indexes(path)  # nothing to do
    assert crc.exists()
    pyparq.edit_metadata(path, update={"a": "b"})
    assert not crc.exists()


def summary(folder: Path, inner: str) -> Path:
    """A ``_metadata`` of the file ``inner``."""
    metadata = pq.read_metadata(folder / inner)
    metadata.set_file_path(inner)
    metadata.write_metadata_file(folder / "_metadata")
    return folder / "_metadata"


def test_a_summary_that_names_the_file_goes(tmp_path: Path) -> None:
    inner = tmp_path / "year=2020" / "month=1"
    inner.mkdir(parents=True)
    path, other = written(inner / "a.parquet"), written(tmp_path / "other.parquet")
    for where, name in ((tmp_path, "year=2020/month=1/a.parquet"), (inner, "a.parquet")):
        summary(where, name)
    pyparq.add_indexes(other)
    assert (tmp_path / "_metadata").exists()
    report = pyparq.add_indexes(path)
    assert not (tmp_path / "_metadata").exists()
    assert not (inner / "_metadata").exists()
    assert len(report.files[0].notes) == 2


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie", "metadata"])
def test_files_of_tables_are_refused(tmp_path: Path, log: str) -> None:
    (tmp_path / log).mkdir()
    (tmp_path / log / "00.metadata.json").write_text("{}")
    (tmp_path / "part=1").mkdir()
    path = written(tmp_path / "part=1" / "a.parquet")
    before = state(path)
    for change in (pyparq.add_indexes, lambda p: pyparq.edit_metadata(p, update={"a": "b"})):
        with pytest.raises(pyparq.OptionError, match="force=True"):
            change(path)
    assert state(path) == before
    pyparq.add_indexes(path, tmp_path / "part=1" / "copy.parquet")
    assert pyparq.add_indexes(path, force=True).files_written == 1


def test_what_cannot_be_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(pyparq.OptionError):
            pyparq.add_indexes(path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="symbolic"):
        pyparq.add_indexes(tmp_path / "loop")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.parquet"))
    path.write_bytes(written(tmp_path / "a.parquet").read_bytes())
    (tmp_path / "a.parquet").unlink()
    assert pyparq.add_indexes(path, bloom_filters=["id"]).files_written == 1
    assert pq.read_table(path.open("rb")).equals(TABLE)
    assert "nothing to do" in str(pyparq.add_indexes(tmp_path))


# ---- on other file systems


def test_urls(path: Path) -> None:
    """In place too: most object stores show a file only when it is complete."""
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/lake/a.parquet", path.read_bytes())
    try:
        assert pyparq.add_indexes("memory://lake/a.parquet", bloom_filters=["id"]).files_written == 1
        assert "pyparq.indexes" in key_values(fs.cat_file("/lake/a.parquet"))
        assert fs.ls("/lake", detail=False) == ["/lake/a.parquet"]
        assert pyparq.add_indexes("memory://lake/a.parquet", bloom_filters=["id"]).files_written == 0
        assert pyparq.edit_metadata("memory://lake/", update={"a": "b"}) == 1
        pyparq.add_indexes("memory://lake/", "memory://other", replace=True)
        assert page_hashes(fs.cat_file("/other/a.parquet")) == page_hashes(path.read_bytes())
        pyparq.add_indexes("memory://lake/a.parquet", path.with_name("local.parquet"))
        assert pq.read_table(path.with_name("local.parquet")).equals(TABLE)
        fs.pipe_file("/lake/_delta_log/0.json", b"{}")
        with pytest.raises(pyparq.OptionError, match="Delta Lake"):
            pyparq.edit_metadata("memory://lake/a.parquet", update={"a": "c"})
        assert pyparq.edit_metadata("memory://lake/a.parquet", update={"a": "c"}, force=True) == 1
    finally:
        fs.rm("/lake", recursive=True)
        fs.rm("/other", recursive=True)


# ---- what goes wrong


def test_a_corrupt_file_stays_as_it_is(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = footer_of(bytes(data)).row_groups[1].columns[1].meta_data.data_page_offset
    data[at : at + 4] = b"\xff" * 4
    path.write_bytes(data)
    before = state(path)
    with pytest.raises(pyparq.CorruptFileError) as caught:
        pyparq.add_indexes(path)
    assert (caught.value.file, caught.value.row_group, caught.value.column) == (str(path), 1, "text")
    assert state(path) == before
    assert names(path.parent) == ["a.parquet"]


def test_no_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"nothing of the kind" * 10)
    with pytest.raises(pyparq.CorruptFileError):
        pyparq.add_indexes(path)
    with pytest.raises(FileNotFoundError):
        pyparq.add_indexes(tmp_path / "b.parquet")
    assert names(tmp_path) == ["a.parquet"]


IN_CHILD = """
    import os, resource, signal, sys
    import pyparq
    path, what = sys.argv[1:]
    size = os.path.getsize(path)
    if what == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
    if what == "killed":
        sys.addaudithook(lambda event, names: event == "os.rename" and os.kill(os.getpid(), signal.SIGKILL))
    try:
        pyparq.add_indexes(path, bloom_filters=True)
    except OSError as error:
        print(error.errno, error.filename)
"""


def in_child(path: Path, what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(IN_CHILD), str(path), what]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_no_room_in_the_middle(path: Path) -> None:
    before = state(path)
    done = in_child(path, "full")
    assert done.stdout.split() == [str(errno.EFBIG), str(path)]
    assert state(path) == before
    assert names(path.parent) == ["a.parquet"]


def test_killed_just_before_the_end(path: Path) -> None:
    before, data = state(path), path.read_bytes()
    done = in_child(path, "killed")
    assert done.returncode == -signal.SIGKILL
    assert (state(path), path.read_bytes()) == (before, data)
    left = [name for name in names(path.parent) if name != FOLDER_LOCK]
    for name in left:  # where files need a name, the new one has a hidden one, and is complete
        assert pq.read_table(path.parent / name).equals(TABLE)
        assert name == "a.parquet" or name.startswith(".a.parquet.")
    assert pyparq.add_indexes(path, bloom_filters=True).files_written == 1
    assert names(path.parent) == left


def test_killed_at_any_moment(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet")
    old = path.read_bytes()
    for k in range(6):
        command = [sys.executable, "-c", textwrap.dedent(IN_CHILD), str(path), "go on"]
        with subprocess.Popen(command) as process:
            time.sleep(0.25 + 0.1 * k)
            process.kill()
        assert pq.read_table(path).equals(TABLE)
        assert page_hashes(path.read_bytes()) == page_hashes(old)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(path: Path) -> None:
    before = state(path)
    path.parent.chmod(0o555)
    try:
        with pytest.raises(PermissionError):
            pyparq.add_indexes(path)
    finally:
        path.parent.chmod(0o755)
    assert state(path) == before


def test_a_folder_that_is_not_there(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pyparq.add_indexes(path, tmp_path / "no" / "such" / "a.parquet")


def test_many_open_files_are_not_left_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        pyparq.add_indexes(path, replace=True)
        pyparq.add_indexes(path)
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before


# ---- two at once


def both(path: str, column: str, start: Any) -> None:
    start.wait()
    pyparq.add_indexes(path, bloom_filters=[column], page_index=False)


def test_two_processes_at_once(path: Path) -> None:
    """Both filters are there afterwards, whoever came first: the later one began anew."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    processes = [context.Process(target=both, args=(str(path), name, start)) for name in ("id", "text")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    metas = [c.meta_data for g in footer_of(path.read_bytes()).row_groups for c in g.columns]
    assert all(meta.bloom_filter_offset for meta in metas)
    assert names(path.parent) == ["a.parquet"]


def test_threads_at_once(path: Path) -> None:
    errors: list[Exception] = []

    def run(key: int) -> None:
        try:
            pyparq.edit_metadata(path, update={f"key {key}": str(key)})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = key_values(path.read_bytes())
    assert {found[f"key {k}"] for k in range(8)} == {str(k) for k in range(8)}


def test_a_file_that_changes_meanwhile(path: Path) -> None:
    """The new file is made from what is there in the end."""
    other = written(path.with_name("other.parquet"), compression="zstd").read_bytes()
    path.with_name("other.parquet").unlink()
    calls = []

    class Names(list):  # type: ignore[type-arg]
        """Columns that are asked for after the file was opened."""

        def __iter__(self) -> Iterator[str]:
            if not calls:
                path.write_bytes(other)
            calls.append(1)
            return super().__iter__()

    pyparq.add_indexes(path, bloom_filters=Names(["id"]))
    assert len(calls) > 1
    assert page_hashes(path.read_bytes()) == page_hashes(other)
    assert pq.read_table(path).equals(TABLE)


# ---- what others left in the file


def with_unknown_fields(path: Path) -> bytes:
    """The file with fields in its footer that no version of parquet.thrift has (yet), at every level."""
    data = path.read_bytes()
    footer = footer_bytes(data)
    tree, _ = ThriftStruct.parse(footer)
    tree.set_binary(32_767, b"an extension")
    for k in range(3):
        group = tree.list(4).struct(k)  # type: ignore[union-attr]
        group.set_integer(40, I64, -5)
        chunk = group.list(1).struct(0)  # type: ignore[union-attr]
        chunk.set_binary(100, b"\x00\xff unknown")
        chunk.struct(3).set_integer(77, I64, 1 << 40)  # type: ignore[union-attr]
    changed = tree.serialize()
    data = data[: len(data) - 8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(data)
    return data


@pytest.mark.parametrize("layout", ["footer", "row_group"])
def test_unknown_fields_stay(path: Path, layout: Any) -> None:
    before = with_unknown_fields(path)
    pyparq.add_indexes(path, bloom_filters=True, bloom_filter_layout=layout)
    after = path.read_bytes()
    assert page_hashes(after) == page_hashes(before)
    tree, _ = ThriftStruct.parse(footer_bytes(after))
    assert tree.binary(32_767) == b"an extension"
    group = tree.list(4).struct(2)  # type: ignore[union-attr]
    assert group.integer(40) == -5
    chunk = group.list(1).struct(0)  # type: ignore[union-attr]
    assert chunk.field(100).wire == BINARY  # type: ignore[union-attr]
    assert chunk.binary(100) == b"\x00\xff unknown"
    assert chunk.struct(3).integer(77) == 1 << 40  # type: ignore[union-attr]
    pyparq.add_indexes(path, page_index=False, remove=["bloom_filters", "page_indexes"])
    assert path.read_bytes() == before


def test_what_may_be_an_unknown_offset_is_not_broken(path: Path) -> None:
    data = path.read_bytes()
    footer = footer_bytes(data)
    tree, _ = ThriftStruct.parse(footer)
    meta = tree.list(4).struct(2).list(1).struct(0).struct(3)  # type: ignore[union-attr]
    meta.set_integer(77, I64, meta.integer(9) or 0)  # type: ignore[union-attr]
    changed = tree.serialize()
    path.write_bytes(data[: len(data) - 8 - len(footer)] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pyparq.UnsupportedError, match='bloom_filter_layout="footer"'):
        pyparq.add_indexes(path, bloom_filters=True, bloom_filter_layout="row_group")
    assert pyparq.add_indexes(path, bloom_filters=True).files_written == 1


def without_orders(path: Path, change: Any = None) -> bytes:
    """The file as old writers made it: without column orders."""
    data = path.read_bytes()
    footer, _ = deserialize(tt.FileMetaData, footer_bytes(data))
    footer.column_orders = None
    if change is not None:
        change(footer)
    changed = serialize(footer)
    data = data[: len(data) - 8 - len(footer_bytes(data))] + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(data)
    return data


def test_column_orders_are_added_where_statistics_are_true(path: Path) -> None:
    without_orders(path)
    report = pyparq.add_indexes(path)
    footer = footer_of(path.read_bytes())
    assert footer.column_orders == [tt.ColumnOrder(TYPE_ORDER=tt.TypeDefinedOrder())] * 2
    assert {c.column_index["added"] for c in report.columns} == {3}
    with pyparq.ParquetFile(path) as file:
        assert file.scan(filters=col("id") == 2_000).explain().pages_decoded <= 2


@pytest.mark.parametrize("page_index", [True, ["id"]])
def test_no_column_orders_where_statistics_are_wrong(path: Path, page_index: Any) -> None:
    """Nobody believes the bounds of such a file now. With column orders, rows would be lost."""

    def lie(footer: Any) -> None:
        footer.row_groups[1].columns[1].meta_data.statistics.max_value = b"a"

    without_orders(path, lie)
    report = pyparq.add_indexes(path, page_index=page_index, bloom_filters=["id"])
    footer = footer_of(path.read_bytes())
    assert footer.column_orders is None
    id_ = report.columns[0]
    assert (id_.column_index, id_.offset_index, id_.bloom_filter) == ({"left": 3}, {"added": 3}, {"added": 3})
    assert "row group 1, column text: max_value is not a bound" in id_.reasons[0]
    assert pyparq.read_table(path, filters=col("text") == "v001500").num_rows == 1


def test_a_column_index_without_column_orders_is_not_believed(path: Path) -> None:
    """Nobody knows what its bounds mean: it is built anew."""
    pyparq.write_table(TABLE, path, row_group_size=1_000, max_rows_per_page=100)
    old = path.read_bytes()
    without_orders(path)
    report = pyparq.add_indexes(path)
    assert {c.column_index["added"] for c in report.columns} == {3}
    assert pq.read_table(path).equals(TABLE)
    pyparq.add_indexes(path)
    with pyparq.ParquetFile(path) as file, pyparq.ParquetFile(old) as before:
        for k in range(3):
            assert file.column_index(k, 0).mins.tolist() == before.column_index(k, 0).mins.tolist()  # type: ignore[union-attr]
    assert abs(len(old) - path.stat().st_size) < 300  # the old ones are gone


def test_writers_that_nobody_believes_get_no_bounds(path: Path) -> None:
    def old(footer: Any) -> None:
        footer.created_by = "parquet-mr version 1.6.0 (build 1)"

    without_orders(path, old)
    id_, text = pyparq.add_indexes(path).columns
    assert id_.column_index == {"added": 3}
    assert text.column_index == {"left": 3}
    assert "parquet-mr version 1.6.0" in text.reasons[0]


def test_pages_that_start_in_the_middle_of_a_row(path: Path) -> None:
    """As old writers cut lists. No OffsetIndex can describe them; a Bloom filter has no need to."""
    pages = [
        Page(3, int32(1, 2, 3), rep=[0, 1, 1], definition=[1, 1, 1]),
        Page(2, int32(4, 5), rep=[1, 0], definition=[1, 1]),
        Page(1, int32(6), rep=[1], definition=[1]),
    ]
    elements = [group("root", None, 2), leaf("x", REPEATED), leaf("y", REQUIRED)]
    flat = Column([Page(2, int32(10, 20))], path=["y"])
    path.write_bytes(make(elements, [Column(pages, 1, 1), flat], 2))
    x, y = pyparq.add_indexes(path, bloom_filters=True).columns
    assert (x.bloom_filter, x.column_index, x.offset_index) == ({"added": 1}, {"left": 1}, {"left": 1})
    assert x.reasons == tuple(f"no {k}: pages start in the middle of a row" for k in ("ColumnIndex", "OffsetIndex"))
    assert (y.column_index, y.offset_index) == ({"added": 1}, {"added": 1})
    assert pyparq.read_table(path).to_pydict() == {"x": [[1, 2, 3, 4], [5, 6]], "y": [10, 20]}
    assert pyparq.read_table(path, filters=col("x").contains(6)).to_pydict()["y"] == [20]
    before = state(path)
    assert pyparq.add_indexes(path, bloom_filters=True).files_written == 0
    assert state(path) == before


@pytest.mark.parametrize("place", [0, 1, 2])
def test_pages_without_rows(path: Path, place: int) -> None:
    """Nobody misses them in an OffsetIndex, but before the first page with rows readers expect the dictionary."""
    pages = [Page(2, int32(1, 2)), Page(2, int32(3, 4))]
    pages.insert(place, Page(0, b""))
    path.write_bytes(make([group("root", None, 1), leaf("x", REQUIRED)], [Column(pages)], 4))
    (x,) = pyparq.add_indexes(path).columns
    assert x.offset_index == {"added": 1}
    assert pyparq.read_table(path).to_pydict() == {"x": [1, 2, 3, 4]}
    assert pyparq.read_table(path, filters=col("x") == 3).to_pydict() == {"x": [3]}
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    assert context.sql("select x from t where x = 3").to_pydict() == {"x": [3]}
    assert context.sql("select x from t").to_pydict() == {"x": [1, 2, 3, 4]}


# ---- key-values


def test_key_values_are_changed(path: Path) -> None:
    before = path.read_bytes()
    size = len(before) - 8 - len(footer_bytes(before))
    assert pyparq.edit_metadata(path, update={"a": "1", "raw": b"\xff\x00", "none": None, "é": "ü"}) == 1
    data = path.read_bytes()
    assert data[:size] == before[:size]
    stored = key_values(data)
    assert {k: stored[k] for k in ("a", "raw", "none", "é")} == {"a": "1", "raw": b"\xff\x00", "none": None, "é": "ü"}
    assert "ARROW:schema" in stored
    assert list(stored) == ["ARROW:schema", "a", "raw", "none", "é"]
    assert pyparq.edit_metadata(path, update={"a": "2"}, remove=["raw", "none", "é", "nothing"]) == 1
    assert list(key_values(path.read_bytes())) == ["ARROW:schema", "a"]
    assert pq.read_metadata(path).metadata[b"a"] == b"2"
    assert pq.read_schema(path).metadata == {b"a": b"2"}
    assert pyparq.edit_metadata(path, remove=["a"]) == 1
    assert list(key_values(path.read_bytes())) == ["ARROW:schema"]
    assert pq.read_schema(path).metadata is None
    pyparq.edit_metadata(path, remove=["ARROW:schema"])
    assert footer_of(path.read_bytes()).key_value_metadata is None
    assert pq.read_table(path).equals(TABLE)


def test_key_values_to_another_file(path: Path, tmp_path: Path) -> None:
    before = state(path)
    assert pyparq.edit_metadata(path, tmp_path / "b.parquet", update={"a": "b"}) == 1
    assert state(path) == before
    assert key_values((tmp_path / "b.parquet").read_bytes())["a"] == "b"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"update": {"a": 1}}, pyparq.DataError),
        ({"update": {b"\xff": "x"}}, pyparq.DataError),
        ({"update": {"a": "b"}, "remove": ["a"]}, pyparq.OptionError),
        ({"remove": "a"}, pyparq.OptionError),
    ],
)
def test_key_values_that_cannot_be(path: Path, options: dict[str, Any], error: type[Exception]) -> None:
    before = state(path)
    with pytest.raises(error):
        pyparq.edit_metadata(path, **options)
    assert state(path) == before


# ---- many files


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for k in range(4):
        (tmp_path / "lake" / f"k={k}").mkdir(parents=True)
        written(tmp_path / "lake" / f"k={k}" / "part.parquet")
    return tmp_path / "lake"


def test_a_folder_in_place(lake: Path) -> None:
    seen = []
    report = pyparq.add_indexes(lake, bloom_filters=["id"], progress=lambda done, total: seen.append((done, total)))
    assert (report.files_written, report.ok) == (4, True)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert pyparq.add_indexes(lake, bloom_filters=["id"]).files_written == 0
    assert pyparq.read_table(lake, filters=(col("id") == 5) & (col("k") == 2)).num_rows == 0
    assert pyparq.read_table(lake).num_rows == 4 * ROWS


def test_one_bad_file_does_not_stop_the_rest(lake: Path) -> None:
    bad = lake / "k=1" / "part.parquet"
    bad.write_bytes(b"PAR1 no file at all PAR1")
    with pytest.raises(pyparq.CorruptFileError, match="k=1"):
        pyparq.add_indexes(lake)
    report = pyparq.add_indexes(lake, bloom_filters=["id"], on_error="skip")
    assert (report.files_written, report.ok) == (3, False)
    assert list(report.errors) == [str(bad)]
    assert bad.read_bytes() == b"PAR1 no file at all PAR1"
    assert "failed" in str(report)


@pytest.mark.parametrize("kind", ["folder", "glob", "list", "dataset"])
def test_to_another_folder(lake: Path, tmp_path: Path, kind: str) -> None:
    source: Any = {
        "folder": lake,
        "glob": f"{lake}/*/*.parquet",
        "list": [lake / "k=0", lake / "k=3" / "part.parquet"],
        "dataset": pyparq.dataset(lake),
    }[kind]
    before = {p: state(p) for p in lake.rglob("*.parquet")}
    report = pyparq.add_indexes(source, tmp_path / "out", bloom_filters=["id"])
    assert {p: state(p) for p in lake.rglob("*.parquet")} == before
    made = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.parquet"))
    assert made == [f"k={k}/part.parquet" for k in ((0, 3) if kind == "list" else range(4))]
    if kind != "list":
        assert pyparq.read_table(tmp_path / "out").to_arrow().equals(pyparq.read_table(lake).to_arrow())
    assert report.files_written == len(made)


def test_targets_that_cannot_be(lake: Path, tmp_path: Path) -> None:
    one = lake / "k=0" / "part.parquet"
    with pytest.raises(pyparq.OptionError, match=r"both be written to 'part\.parquet'"):
        pyparq.add_indexes([one, one], tmp_path / "out")
    with pytest.raises(pyparq.OptionError, match="is a file"):
        pyparq.add_indexes([one], one)
    with pytest.raises(pyparq.OptionError, match="must be a folder"):
        pyparq.add_indexes([one], io.BytesIO())


def test_key_values_of_many_files(lake: Path) -> None:
    assert pyparq.edit_metadata(lake, update={"owner": "us"}) == 4
    assert pyparq.edit_metadata(str(lake / "*" / "*.parquet"), update={"owner": "us"}) == 0


# ---- the command line


def test_command_line(path: Path, tmp_path: Path) -> None:
    assert "added" in cli.ok("add-index", path, "--bloom", "id=0.001", "--bloom", "text")
    assert pyparq.add_indexes(path, bloom_filters=["id", "text"]).files_written == 0
    assert "nothing to do" in cli.ok("add-index", path)
    found = cli.as_json("add-index", path, "--all-blooms", "--json")
    assert found["files"][0]["columns"][0]["bloom_filter"] == {"kept": 3}
    assert cli.ok("edit-metadata", path, "--set", "a=b=c", "--remove", "x") == "1 file written\n"
    assert key_values(path.read_bytes())["a"] == "b=c"
    copy = tmp_path / "copy.parquet"
    cli.ok("add-index", path, "-o", copy, "--remove", "bloom_filters", "--layout", "row_group")
    assert pyparq.add_indexes(copy, page_index=False, bloom_filters=["id"]).files_written == 1


def test_command_line_mistakes(path: Path, tmp_path: Path) -> None:
    assert "nope" in cli.refused(2, "add-index", path, "--bloom", "nope")
    assert "rate" in cli.refused(2, "add-index", path, "--bloom", "id=often")
    assert "none.parquet" in cli.refused(1, "add-index", tmp_path / "none.parquet")
    assert "KEY=VALUE" in cli.refused(2, "edit-metadata", path, "--set", "a")
    assert cli.run("add-index").exit_code == 2
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    done = cli.run("add-index", tmp_path, "--skip-errors")
    assert done.exit_code == 1
    assert "failed" in done.stdout
    assert "pyparq.indexes" in key_values(path.read_bytes())
