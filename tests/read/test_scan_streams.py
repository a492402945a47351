"""Scans and files as Arrow streams: what others make of them, row group by row group."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import nanoarrow
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counting import CountingFile

import pyparq
from pyparq import col
from pyparq.errors import ChecksumError, OptionError
from pyparq.read.column_reads import ColumnReader
from pyparq.read.streams import ScanStream

ROWS, GROUP = 5_000, 1_000
FILTER = (col("id") >= 900) & (col("word") == "w3")


@lru_cache
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "word": pa.array([None if k % 11 == 0 else f"w{k % 7}" for k in range(ROWS)]),
            "long": pa.array([f"{k:040d}" for k in rng.integers(0, 1 << 60, ROWS)]),
            "list": pa.array([list(range(k % 3)) for k in range(ROWS)]),
            "when": pa.array(np.arange(ROWS), pa.timestamp("us", "Europe/Madrid")),
        }
    )


@lru_cache
def data(**options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(table(), sink, row_group_size=GROUP, max_rows_per_page=100, **options)
    return sink.getvalue()


@pytest.fixture
def file() -> Any:
    with pyparq.ParquetFile(data()) as opened:
        yield opened


def expected(file: pyparq.ParquetFile) -> pa.Table:
    return file.read(filters=FILTER).to_arrow()


# ---- with each


def test_pyarrow(file: Any) -> None:
    scan = file.scan(filters=FILTER)
    reader = pa.RecordBatchReader.from_stream(scan)
    assert reader.schema == expected(file).schema
    assert reader.read_all().equals(expected(file))
    assert pa.table(scan).equals(expected(file))
    assert pa.schema(scan) == expected(file).schema
    assert pa.table(file).equals(file.read().to_arrow())
    assert pa.schema(file) == file.read().to_arrow().schema


def test_polars(file: Any) -> None:
    found = pl.DataFrame(file.scan(filters=FILTER))
    assert found.equals(file.read(filters=FILTER).to_polars())
    assert pl.DataFrame(file).equals(file.read().to_polars())


def test_duckdb(file: Any) -> None:
    scan = file.scan(["id", "word"], FILTER)  # noqa: F841, duckdb finds it by its name
    ids = expected(file)["id"].to_pylist()
    assert [row[0] for row in duckdb.sql("from scan order by id").fetchall()] == ids
    assert duckdb.sql("select count(*), min(word) from scan").fetchall() == [(len(ids), "w3")]
    assert duckdb.sql("select count(*) from scan a join scan b using (id)").fetchall() == [(len(ids),)]
    assert duckdb.sql("select count(*), sum(id) from file").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]
    relation = duckdb.sql("select id from scan")
    assert len(relation.fetchall()) == len(ids)


def test_pandas_and_nanoarrow(file: Any) -> None:
    scan = file.scan(["id", "word"], FILTER)
    assert nanoarrow.Array(scan).to_pylist() == file.read(["id", "word"], FILTER).to_pylist()
    assert pa.table(scan).to_pandas().equals(file.read(["id", "word"], FILTER).to_pandas())


@pytest.mark.parametrize("question", [{}, {"filters": col("id") < 0}, {"columns": []}, {"limit": 1_500}], ids=str)
def test_any_question(file: Any, question: dict[str, Any]) -> None:
    scan = file.scan(**question)
    found = pa.RecordBatchReader.from_stream(scan).read_all()
    wanted = scan.to_table().to_arrow()
    assert found.schema == wanted.schema
    assert found.equals(wanted)
    planned = file.scan_of(scan.plan())
    assert pa.table(planned).equals(wanted)
    assert pa.table(planned).equals(wanted)


def test_what_is_asked_for_may_be_ignored(file: Any) -> None:
    """A requested schema: what comes says what it is."""
    wanted = pa.schema([("word", pa.large_string())])
    reader = pa.RecordBatchReader.from_stream(file.scan(["word"]), schema=wanted)
    assert reader.schema == pa.schema([("word", pa.string())])
    assert reader.read_all()["word"].to_pylist() == table()["word"].to_pylist()


# ---- types that hints give


HINTED = {
    "views": pa.array([f"{k:030d}" if k % 3 else "short" for k in range(ROWS)], pa.string_view()),
    "large": pa.array([str(k) for k in range(ROWS)], pa.large_string()),
    "dictionary": pa.array([f"v{k % 5}" for k in range(ROWS)]).dictionary_encode(),
    "narrow": pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS) % 90, pa.int8()), [str(k) for k in range(90)]),
    "pairs": pa.array(np.arange(2 * ROWS).reshape(ROWS, 2).tolist(), pa.list_(pa.int64(), 2)),
    "in a struct": pa.array([{"x": [k, k]} for k in range(ROWS)], pa.struct([("x", pa.list_(pa.int64(), 2))])),
}


@pytest.mark.parametrize("name", HINTED)
def test_hinted_types(name: str) -> None:
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"a": HINTED[name]}), sink, row_group_size=GROUP, store_schema=True)
    with pyparq.ParquetFile(sink.getvalue()) as opened:
        scan = opened.scan()
        reader = pa.RecordBatchReader.from_stream(scan)
        batches = list(reader)
        assert {b.schema for b in batches} == {reader.schema} == {pa.schema(scan)}
        assert reader.schema.field("a").type == HINTED[name].type
        assert pa.Table.from_batches(batches)["a"].to_pylist() == HINTED[name].to_pylist()
        assert pl.DataFrame(scan).height == ROWS


def hinted_wrongly() -> bytes:
    """Lists of two, but for one of three in the last row group; the hint says two."""
    lists = [[k, k] for k in range(ROWS - 1)] + [[1, 2, 3]]
    sink = io.BytesIO()
    right = pa.table({"a": pa.array([*lists[:-1], [0, 0]], pa.list_(pa.int64(), 2))})
    pyparq.write_table(right, sink, store_schema=True)
    hint = pq.ParquetFile(sink).metadata.metadata[b"ARROW:schema"]
    sink = io.BytesIO()
    pyparq.write_table({"a": lists}, sink, row_group_size=GROUP, key_value_metadata={"ARROW:schema": hint})
    return sink.getvalue()


def test_a_hint_that_the_data_contradict_later() -> None:
    with pyparq.ParquetFile(hinted_wrongly()) as opened:
        reader = pa.RecordBatchReader.from_stream(opened.scan())
        assert reader.schema.field("a").type == pa.list_(pa.int64(), 2)
        with pytest.raises(pa.ArrowInvalid, match="use_arrow_schema=False"):
            reader.read_all()
    with pyparq.ParquetFile(hinted_wrongly(), use_arrow_schema=False) as opened:
        assert pa.table(opened)["a"].to_pylist()[-1] == [1, 2, 3]


def test_a_hint_that_the_first_rows_contradict() -> None:
    with pyparq.ParquetFile(hinted_wrongly()) as opened:
        scan = opened.scan(row_groups=[4])
        reader = pa.RecordBatchReader.from_stream(scan)
        assert reader.schema == pa.schema(scan)
        assert reader.schema.field("a").type == pa.list_(pa.field("element", pa.int64()))
        assert reader.read_all()["a"].to_pylist()[-1] == [1, 2, 3]


# ---- lazily


def test_one_row_group_at_a_time() -> None:
    outside = CountingFile(data())
    with pyparq.ParquetFile(outside, tail_size=8) as opened:
        scan = opened.scan()
        before = outside.requests
        reader = pa.RecordBatchReader.from_stream(scan)
        assert reader.schema.names == table().column_names
        assert outside.requests == before
        ends = [sum(chunk_size(opened, g, c) for c in range(5)) for g in range(5)]
        for group in range(3):
            assert reader.read_next_batch().num_rows == GROUP
            read = sum(length for _, length in outside.reads[before:])
            assert read == sum(ends[: group + 1])
        del reader
        gc.collect()
        assert sum(length for _, length in outside.reads[before:]) == sum(ends[:3])


def chunk_size(file: pyparq.ParquetFile, group: int, column: int) -> int:
    return int(file.metadata.row_group(group).column(column).total_compressed_size)


def test_each_call_is_a_run_of_its_own(file: Any) -> None:
    scan = file.scan(filters=FILTER)
    one, two = (pa.RecordBatchReader.from_stream(scan) for _ in range(2))
    first = one.read_next_batch()
    assert two.read_all().equals(expected(file))
    assert pa.Table.from_batches([first, *one]).equals(expected(file))
    assert scan.rows_returned is None
    assert scan.explain(execute=False).pages_decoded == 0


def test_memory_stays_the_same() -> None:
    """Of forty row groups of 1.6 MB no more than a few are there at a time; as much for forty as for ten."""
    peaks = []
    for groups in (10, 40):
        sink = io.BytesIO()
        values = np.random.default_rng(1).random(groups * 200_000)
        pyparq.write_table({"a": values}, sink, row_group_size=200_000, compression="none", column_encoding="PLAIN")
        with pyparq.ParquetFile(sink.getvalue()) as opened:
            pyparq.release_unused()
            tracemalloc.start()
            rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(opened))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert rows == groups * 200_000
    assert peaks[1] < peaks[0] * 1.2
    assert peaks[1] < 4 * 200_000 * 8 + (2 << 20)


# ---- the file


def test_the_stream_keeps_its_file_open(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(data())
    reader = pa.RecordBatchReader.from_stream(pyparq.ParquetFile(path).scan())
    relation = counted_by_duckdb(path)
    gc.collect()
    assert open_files(path) in (2, None)
    rows, counted = reader.read_all().num_rows, relation.fetchall()
    del reader, relation
    gc.collect()
    assert (rows, counted) == (ROWS, [(len(expected_ids()),)])
    assert open_files(path) in (0, None)


def counted_by_duckdb(path: Path) -> Any:
    """In a function of its own: duckdb looks for names in the frame, which keeps what it had."""
    scan = pyparq.ParquetFile(path).scan(filters=FILTER)  # noqa: F841
    return duckdb.sql("select count(*) from scan")


def expected_ids() -> list[int]:
    return [k for k in range(900, ROWS) if k % 7 == 3 and k % 11]


def open_files(path: Path) -> int | None:
    """How many descriptors of this process stand for ``path``; ``None`` where nothing tells."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return None
    return sum(os.path.realpath(link) == str(path) for link in folder.iterdir())


@pytest.mark.parametrize("kind", ["path", "bytes", "file object"])
def test_after_close(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(data())
    with pyparq.ParquetFile({"path": path, "bytes": data(), "file object": io.BytesIO(data())}[kind]) as opened:
        reader = pa.RecordBatchReader.from_stream(opened.scan())
        begun = pa.RecordBatchReader.from_stream(opened.scan())
        begun.read_next_batch()
    for _ in range(2):  # and not the end the second time
        for stream in (reader, begun):
            with pytest.raises(pa.ArrowInvalid, match="OptionError: the file is closed"):
                stream.read_next_batch()
    assert reader.schema.names == table().column_names
    with pytest.raises(OptionError, match="the file is closed"):
        pyparq.write_table(opened.scan(), io.BytesIO())


def test_released_before_its_end(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    first = ScanStream.__init__

    def noted(self: ScanStream, scan: Any, *rest: Any) -> None:
        made.append(weakref.ref(scan))
        first(self, scan, *rest)

    monkeypatch.setattr(ScanStream, "__init__", noted)
    reader = pa.RecordBatchReader.from_stream(file.scan())
    reader.read_next_batch()
    assert made[0]() is not None
    del reader
    capsule = file.scan().__arrow_c_stream__()
    del capsule
    gc.collect()
    assert [one() for one in made] == [None, None]


# ---- errors


def broken() -> bytes:
    """A byte of the last row group's last column is another."""
    with pyparq.ParquetFile(data(compression="none")) as opened:
        places = opened.page_locations(4, "long")
    assert places is not None
    raw = bytearray(data(compression="none"))
    raw[int(places.offsets[-1] + places.sizes[-1]) - 1] ^= 1
    return bytes(raw)


def test_an_error_on_the_way() -> None:
    with pyparq.ParquetFile(broken()) as opened:
        reader = pa.RecordBatchReader.from_stream(opened.scan())
        assert [reader.read_next_batch().num_rows for _ in range(4)] == [GROUP] * 4
        for _ in range(2):
            with pytest.raises(pa.ArrowInvalid, match=r"ChecksumError: .*row group 4, column long, page 9"):
                reader.read_next_batch()
        scan = opened.scan()
        with pytest.raises(duckdb.Error, match="ChecksumError"):
            duckdb.sql("select count(long) from scan").fetchall()
        with pytest.raises(Exception, match="ChecksumError"):
            pl.DataFrame(scan)
        with pytest.raises(ChecksumError, match="row group 4, column long, page 9"):
            pyparq.write_table(scan, io.BytesIO())


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_an_interrupt_on_the_way(file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a batch is read ends in KeyboardInterrupt, as it does without a stream."""
    # Some rows of each row group: small ones that are read whole are read in one step.
    reader = pa.RecordBatchReader.from_stream(file.scan(rows=range(0, ROWS, 2)))
    reader.read_next_batch()
    read = ColumnReader.read

    def interrupted(self: ColumnReader, wanted: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return read(self, wanted)

    monkeypatch.setattr(ColumnReader, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pull(reader)


def pull(reader: Any) -> None:
    try:
        reader.read_next_batch()
    except OSError:  # the consumer's own error: the interrupt comes right behind it
        for _ in range(1_000):
            pass


CTRL_C = """
import os, signal, sys, time
import pyparq
from pyparq.read.row_group_reads import RowGroupReader

how, path = sys.argv[1:]
run_one, calls = RowGroupReader.run, []

def interrupted(self, *rest, **options):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    if len(calls) > 2:  # a library that reads by its own threads looks at signals between its own steps
        time.sleep(0.2)
    return run_one(self, *rest, **options)

def run():
    source = pyparq.scan([path], filters=pyparq.col("id") > 1)
    if how == "pyarrow":
        import pyarrow as pa
        return pa.RecordBatchReader.from_stream(source).read_all()
    if how == "duckdb":
        import duckdb
        duckdb.sql("set threads=1")
        return duckdb.sql("select sum(id), max(long) from source").fetchall()
    if how == "polars":
        import polars as pl
        return pl.DataFrame(source)
    import polars as pl
    rows = pyparq.polars.scan(path).filter(pl.col("id") > 1)
    return rows.select(pl.col("long").max()).collect()

import duckdb, polars, pyarrow, pyparq.polars
RowGroupReader.run = interrupted
try:
    try:
        run()
    except Exception as error:
        for _ in range(1000):
            pass
        raise error
    print("not interrupted")
except KeyboardInterrupt:
    try:
        for _ in range(1000):  # polars may let it come twice
            pass
    except KeyboardInterrupt:
        pass
    print("interrupted", len(calls) < 5)
print(pyparq.dataset(path).count())
"""


@pytest.mark.sweep(3)
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("how", ["pyarrow", "duckdb", "polars", "polars scan"])
def test_ctrl_c_through_another_library(how: str, tmp_path: Path) -> None:
    """KeyboardInterrupt comes, at once or right behind the library's own error, and nothing is printed."""
    path = tmp_path / "t.parquet"
    path.write_bytes(data())
    command = [sys.executable, "-c", CTRL_C, how, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "True", str(ROWS)], done.stderr
    assert done.stderr == ""


# ---- threads


def test_other_threads(file: Any) -> None:
    """Many streams of one file, pulled side by side by threads of pyarrow's and ours."""
    scan, wanted, wrong = file.scan(filters=FILTER), expected(file), []

    def run() -> None:
        for _ in range(5):
            if not pa.RecordBatchReader.from_stream(scan).read_all().equals(wanted):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    with duckdb.connect() as connection:
        connection.execute("set threads = 4")
        assert connection.sql("select count(*) from scan, range(3)").fetchall() == [(3 * wanted.num_rows,)]


@pytest.mark.parametrize(
    "consumer", ["pa.RecordBatchReader.from_stream(scan).read_all()", "duckdb.sql('from scan').fetchall()"]
)
def test_at_exit(consumer: str, tmp_path: Path) -> None:
    """Others pull while the process ends, and streams are left over."""
    path = tmp_path / "t.parquet"
    path.write_bytes(data())
    code = (
        "import threading, time, sys, duckdb, pyarrow as pa, pyparq\n"
        "scan = pyparq.ParquetFile(sys.argv[1]).scan(['id'])\n"
        "keep = pa.RecordBatchReader.from_stream(scan); keep.read_next_batch()\n"
        "capsule = scan.__arrow_c_stream__()\n"
        f"result = {consumer}\n"
        "print(len(result))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{ROWS}\n", "")


# ---- into a file again


def test_rewriting_with_bloom_filters(file: Any, tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    pyparq.write_table(file.scan(), path, bloom_filters=["long"], row_group_size=GROUP)
    assert pyparq.read_table(path).to_arrow().equals(file.read().to_arrow())
    with pyparq.ParquetFile(path) as written:
        assert written.bloom_filter(0, "long") is not None
    pyparq.write_table(file, path)
    assert pq.read_table(path).equals(pq.read_table(io.BytesIO(data())))
    pyparq.write_table(file.scan(["id"], FILTER), path)
    assert pq.read_table(path)["id"].to_pylist() == expected(file)["id"].to_pylist()


def test_rewriting_onto_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(data())
    with pyparq.ParquetFile(path) as opened:
        pyparq.write_table(opened.scan(), path, bloom_filters=["id"], row_group_size=GROUP)
        assert opened.read().num_rows == ROWS  # the old one, which is still open
    assert pq.read_table(path).equals(pq.read_table(io.BytesIO(data())))
    with pyparq.ParquetFile(path) as opened:
        assert opened.scan(filters=col("id") == ROWS + 5).explain().rows == 0
        assert opened.bloom_filter(4, "id").check([4_500, 77]).tolist() == [True, False]
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_rewriting_onto_itself_fails_whole(tmp_path: Path) -> None:
    """A fault in the last row group leaves the file as it was."""
    path = tmp_path / "t.parquet"
    path.write_bytes(broken())
    with pyparq.ParquetFile(path) as opened, pytest.raises(ChecksumError, match="row group 4"):
        pyparq.write_table(opened.scan(), path)
    assert path.read_bytes() == broken()
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


def test_a_writer_takes_several_scans(file: Any) -> None:
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink) as writer:
        writer.write(file.scan(filters=col("id") < 100))
        writer.write(file.scan(filters=col("id") >= 4_900))
        writer.write(file, row_group_size=500)
    ids = list(range(100)) + list(range(4_900, ROWS)) + list(range(ROWS))
    assert pq.read_table(sink)["id"].to_pylist() == ids


def test_the_stored_schema_is_that_of_the_source() -> None:
    source = io.BytesIO()
    pyparq.write_table(pa.table({"a": HINTED["dictionary"]}), source, store_schema=True)
    with pyparq.ParquetFile(source.getvalue()) as opened:
        sink = io.BytesIO()
        pyparq.write_table(opened.scan(), sink, store_schema=True)
    assert pq.read_table(sink).schema.field("a").type == HINTED["dictionary"].type


def test_rewriting_takes_as_much_memory_for_many_row_groups() -> None:
    """Filters that go behind their row groups; those of the other layout wait for the end of the file."""
    peaks = []
    for groups in (8, 32):
        sink, out = io.BytesIO(), io.BytesIO()
        values = np.random.default_rng(1).random(groups * 100_000)
        pyparq.write_table({"a": values}, sink, row_group_size=100_000, compression="none", column_encoding="PLAIN")
        out.write(bytes(groups * 2_000_000))  # room: growing it is not the writer's memory
        out.seek(0)
        options: dict[str, Any] = {"bloom_filters": ["a"], "bloom_filter_layout": "row_group", "compression": "none"}
        with pyparq.ParquetFile(sink.getvalue()) as opened:
            pyparq.release_unused()
            tracemalloc.start()
            pyparq.write_table(opened.scan(), out, row_group_size=100_000, **options)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.2, peaks
