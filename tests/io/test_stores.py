"""Object stores: how many requests a read makes, which of them wait for others, and what becomes of those that fail."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve
from slow_store import AsyncStore, LoopingStore, Request

import pyparq
from pyparq import ParquetFile, col
from pyparq.errors import ChangedFileError, CorruptFileError
from pyparq.read.plan import ahead as together

require("fsspec")

ROWS = 60_000
STORES = [AsyncStore, LoopingStore]
Store = type[AsyncStore] | type[LoopingStore]


@lru_cache
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "id": rng.permutation(ROWS),
            "x": rng.random(ROWS),
            "word": [f"word {n}" for n in rng.integers(0, 3000, ROWS)],
            "text": [f"{n:032x}" for n in rng.integers(0, 1 << 62, ROWS)],
        }
    )


@lru_cache
def data() -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(table(), sink, row_group_size=10_000, max_rows_per_page=1000, bloom_filters=["id"])
    return sink.getvalue()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        running.fs().pipe_file(f"{BUCKET}/t.parquet", data())
        yield running


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> None:
    if "s3" in request.fixturenames:
        request.getfixturevalue("s3").asked.clear()


# ---- the first request


@pytest.mark.parametrize("store", STORES)
def test_the_size_is_asked_for_beside_the_end(store: Store) -> None:
    slow = store({"t": data()}, delay=0.05)
    assert pyparq.read_metadata(slow.of("t")).num_rows == ROWS
    assert sorted((r.kind, r.size) for r in slow.log.requests) == [("bytes", 128 << 10), ("info", 0)]
    assert slow.log.most_at_once == 2


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("size", [0, 1, 11, 12, 1000])
def test_files_shorter_than_the_first_request(store: Store, size: int) -> None:
    with pytest.raises(CorruptFileError, match="not a Parquet file"):
        pyparq.read_metadata(store({"t": bytes(size)}).of("t"))
    small = io.BytesIO()
    pyparq.write_table({"a": [1, 2]}, small)
    assert pyparq.read_table(store({"t": small.getvalue()}).of("t")).to_pydict() == {"a": [1, 2]}


@pytest.mark.parametrize("store", STORES)
def test_a_footer_longer_than_the_first_request(store: Store) -> None:
    """Only what is missing is asked for then."""
    slow = store({"t": data()})
    with ParquetFile(slow.of("t"), tail_size=100) as file:
        assert file.metadata.num_rows == ROWS
    sizes = [r.size for r in slow.log.of("bytes")]
    assert sizes[0] == 100
    assert len(sizes) == 2
    assert sum(sizes) == int.from_bytes(data()[-8:-4], "little") + 8


def test_s3_tells_the_size_with_the_end(s3: S3) -> None:
    found = pyparq.read_metadata(f"s3://{BUCKET}/t.parquet", storage_options=s3.options)
    assert found.num_rows == ROWS
    assert s3.asked == [("GET", f"/{BUCKET}/t.parquet", "bytes=-131072")]


@pytest.mark.parametrize("size", [0, 5])
def test_s3_objects_that_are_no_files(s3: S3, size: int) -> None:
    s3.fs().pipe_file(f"{BUCKET}/no.parquet", bytes(size))
    with pytest.raises(CorruptFileError, match="not a Parquet file"):
        pyparq.read_table(f"s3://{BUCKET}/no.parquet", storage_options=s3.options)


def test_s3_objects_that_are_not_there(s3: S3) -> None:
    for url in (f"s3://{BUCKET}/absent.parquet", "s3://no-such-bucket/t.parquet"):
        with pytest.raises(FileNotFoundError) as caught:
            pyparq.read_table(url, storage_options=s3.options)
        assert caught.value.filename == url


# ---- values


@pytest.mark.parametrize("use_threads", [True, False])
def test_s3_and_back(s3: S3, use_threads: bool) -> None:
    url = f"s3://{BUCKET}/folder/new.parquet"
    pyparq.write_table(table(), url, row_group_size=10_000, storage_options=s3.options)
    assert pq.read_table(f"{BUCKET}/folder/new.parquet", filesystem=s3.fs()) == table()
    found = pyparq.read_table(url, storage_options=s3.options, use_threads=use_threads)
    assert found.to_arrow() == table()
    few = pyparq.read_table(url, ["word"], col("id") == 7, storage_options=s3.options)
    assert few.to_arrow() == table().filter(pa.compute.field("id") == 7).select(["word"])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("options", [{}, {"coalesce_gap": 0, "tail_size": 8}, {"use_threads": False}], ids=str)
def test_the_same_values_from_every_store(store: Store, options: dict[str, Any]) -> None:
    slow = store({"t": data()})
    assert pyparq.read_table(slow.of("t"), **options).to_arrow() == table()
    found = pyparq.read_table(slow.of("t"), ["x", "text"], col("word") == "word 77", **options)
    assert found.to_arrow() == table().filter(pa.compute.field("word") == "word 77").select(["x", "text"])


# ---- objects that are replaced, uploads that fail


@pytest.mark.parametrize("same_size", [True, False])
def test_an_object_that_is_replaced_while_it_is_read(s3: S3, same_size: bool) -> None:
    """Its size need not tell: bytes of two objects are never put together."""
    url, fs = f"s3://{BUCKET}/replaced.parquet", s3.fs()
    fs.pipe_file(url, data())
    other = io.BytesIO()
    pyparq.write_table(table().slice(100), other, row_group_size=10_000)
    replacement = data()[:-1] + b"2" if same_size else other.getvalue()
    for coalesce_gap in (0, None):
        fs.pipe_file(url, data())
        with ParquetFile(url, storage_options=s3.options, coalesce_gap=coalesce_gap) as file:
            assert file.read(["x"], col("id") == 7).num_rows == 1
            fs.pipe_file(url, replacement)
            with pytest.raises(ChangedFileError, match="open it again") as caught:
                file.read(["text"])
            assert caught.value.file == url
            batches = file.scan(["text"]).iter_batches()
            with pytest.raises(ChangedFileError):
                next(batches)
        fs.rm_file(url)
        with pytest.raises(FileNotFoundError):
            pyparq.read_table(url, storage_options=s3.options)


def test_an_object_that_is_removed_while_it_is_read(s3: S3) -> None:
    url, fs = f"s3://{BUCKET}/removed.parquet", s3.fs()
    fs.pipe_file(url, data())
    with ParquetFile(url, storage_options=s3.options) as file:
        fs.rm_file(url)
        with pytest.raises(FileNotFoundError) as caught:
            file.read(["text"])
        assert caught.value.filename == url


def uploads(s3: S3) -> list[Any]:
    return list(s3.fs().call_s3("list_multipart_uploads", Bucket=BUCKET).get("Uploads", []))


@pytest.mark.parametrize("how", ["the caller fails", "a part is refused", "the end is refused"])
def test_an_upload_that_fails_leaves_nothing_and_keeps_the_old_object(
    s3: S3, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec")
    url, fs = f"s3://{BUCKET}/upload.parquet", s3.fs()
    fs.pipe_file(url, b"what was there before")
    numbers = {"x": np.random.default_rng(0).random(1_500_000)}  # more than two parts
    options = s3.options | {"default_block_size": 5 << 20}
    if how == "a part is refused":
        s3.refuse = lambda method, path: "partNumber=2" in path
    elif how == "the end is refused":
        s3.refuse = lambda method, path: method == "POST" and "uploadId=" in path

    def write() -> None:
        schema = pyparq.schema({"x": "float64"})
        with pyparq.ParquetWriter(url, schema, storage_options=options, row_group_size=300_000) as writer:
            writer.write(numbers)
            if how == "the caller fails":
                raise KeyError

    try:
        with pytest.raises(KeyError if how == "the caller fails" else PermissionError) as caught:
            write()
        assert how == "the caller fails" or caught.value.filename == url
    finally:
        s3.refuse = lambda method, path: False
    assert any("partNumber=1" in path for _, path, _ in s3.asked), "or it was no upload of several parts"
    assert uploads(s3) == []
    assert fs.cat_file(url) == b"what was there before"


def test_an_upload_of_several_parts(s3: S3) -> None:
    url = f"s3://{BUCKET}/parts.parquet"
    numbers = np.random.default_rng(0).random(1_500_000)
    pyparq.write_table({"x": numbers}, url, storage_options=s3.options | {"default_block_size": 5 << 20})
    assert np.array_equal(pq.read_table(url.removeprefix("s3://"), filesystem=s3.fs())["x"].to_numpy(), numbers)
    assert np.array_equal(pyparq.read_table(url, storage_options=s3.options).to_numpy("x"), numbers)
    assert uploads(s3) == []


# ---- several requests at a time


def test_a_store_without_requests_of_several_ranges_gets_threads() -> None:
    """Every request waits within the store until there are as many as go out in one step."""
    slow = LoopingStore({"t": data()})
    with ParquetFile(slow.of("t"), coalesce_gap=0) as file:
        slow.log.clear()
        meeting = threading.Barrier(4)
        slow.before = lambda request: meeting.wait(20) and None
        assert file.scan(["x"], row_groups=[0, 1, 2, 3]).to_table().num_rows == 40_000
    assert len(slow.log.requests) == 4


def test_a_store_with_one_reader_is_read_by_one_thread_at_a_time() -> None:
    class Ftp(LoopingStore):
        protocol = "ftp"

    slow = Ftp({"t": data()}, delay=0.001)
    found = pyparq.read_table(slow.of("t"), ["id", "word"], coalesce_gap=0)
    assert found.to_arrow() == table().select(["id", "word"])
    assert len(slow.log.requests) > 10
    assert slow.log.most_at_once == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    slow = LoopingStore({"t": data()})
    with ParquetFile(slow.of("t"), coalesce_gap=0) as file:
        assert file.read(["x"]).num_rows == ROWS
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if file.read(["word"]).to_arrow() == table().select(["word"]) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- a lookup takes four steps


def by_pyarrow(indexed: bool) -> bytes:
    sink = io.BytesIO()
    extra: Any = {"write_page_index": True, "bloom_filter_options": {"id": {"ndv": 10_000}}} if indexed else {}
    pq.write_table(table(), sink, row_group_size=10_000, data_page_size=8 << 10, write_batch_size=1000, **extra)
    return sink.getvalue()


def by_us(layout: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table(
        table(), sink, row_group_size=10_000, max_rows_per_page=1000, bloom_filters=["id", "text"],
        bloom_filter_layout=layout,
    )  # fmt: skip
    return sink.getvalue()


FILES = {
    "ours, filters in the footer": lambda: by_us("footer"),
    "ours, filters by row group": lambda: by_us("row_group"),
    "pyarrow's": lambda: by_pyarrow(True),
    "without indexes": lambda: by_pyarrow(False),
}


@lru_cache
def file_bytes(name: str) -> bytes:
    return FILES[name]()


LOOKUPS: list[Any] = [
    col("id") == 41_000,
    col("id").isin([3, 59_000]),
    col("id") == -1,
    col("word") == "word 77",
    col("text") == "absent",
    (col("word") == "word 78") & (col("id") > 50_000),
    (col("id") == 7) | (col("x") < 1e-5),
    col("x") < 1e-4,
]


def footer_size(whole: bytes) -> int:
    return int.from_bytes(whole[-8:-4], "little") + 8


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("options", [{}, {"coalesce_gap": 0}], ids=str)
def test_a_lookup_takes_four_round_trips_at_most(name: str, options: dict[str, Any]) -> None:
    """From a closed file, whose first request holds no index and no data."""
    whole = file_bytes(name)
    for question in LOOKUPS:
        slow = AsyncStore({"t": whole}, delay=0.01)
        found = pyparq.read_table(slow.of("t"), filters=question, tail_size=footer_size(whole), **options)
        assert slow.log.depth <= 4, question
        assert found.to_arrow() == pyparq.read_table(whole, filters=question).to_arrow(), question


def test_a_plan_takes_two() -> None:
    """The end of the file, and the columns: it asks no index."""
    whole = file_bytes("ours, filters in the footer")
    plan = ParquetFile(whole).scan(filters=col("id") == 41_000).plan()
    slow = AsyncStore({"t": whole}, delay=0.15)
    with ParquetFile(slow.of("t"), tail_size=footer_size(whole)) as file:
        assert file.execute(plan).num_rows == 1
    assert slow.log.depth == 2


@pytest.mark.parametrize("name", FILES)
def test_explain_counts_what_is_asked_together(name: str) -> None:
    whole = file_bytes(name)
    for question in LOOKUPS:
        slow = AsyncStore({"t": whole})
        with ParquetFile(slow.of("t"), tail_size=footer_size(whole)) as file:
            told = file.scan(filters=question).explain()
        assert told.requests == len(slow.log.of("bytes"))
        assert told.bytes_fetched == slow.log.num_bytes
        assert sum(stage.bytes for stage in told.stages) <= told.bytes_fetched


@pytest.mark.parametrize("question", [None, col("x") >= 0, col("id") >= 0, col("word") != "absent"], ids=str)
def test_indexes_that_cannot_help_are_not_asked_for(question: Any) -> None:
    whole = file_bytes("ours, filters by row group")
    costs = []
    for switches in ({}, {"use_page_index": False, "use_bloom_filters": False, "use_dictionaries": False}):
        slow = AsyncStore({"t": whole})
        pyparq.read_table(slow.of("t"), filters=question, tail_size=footer_size(whole), **switches)
        costs.append((len(slow.log.of("bytes")), slow.log.num_bytes))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("most", [0, 3000])
def test_what_is_too_much_is_asked_for_when_it_is_needed(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(together, "MOST", most)
    whole = file_bytes("ours, filters in the footer")
    for question in LOOKUPS:
        slow = AsyncStore({"t": whole})
        found = pyparq.read_table(slow.of("t"), filters=question, tail_size=footer_size(whole))
        assert found.to_arrow() == pyparq.read_table(whole, filters=question).to_arrow()


def test_nothing_that_was_asked_for_ahead_stays() -> None:
    slow = AsyncStore({"t": data()})
    with ParquetFile(slow.of("t"), tail_size=footer_size(data())) as file:
        for run in ("to_table", "count", "plan"):
            scan = file.scan(filters=col("word") == "word 77")
            getattr(scan, run)()
            assert not scan.file.fetcher.ahead
        batches = (scan := file.scan(filters=col("word") == "word 77")).iter_batches()
        next(batches)
        batches.close()
        assert not scan.file.fetcher.ahead


# ---- what goes wrong


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionResetError("gone"), ConnectionError),
        (PermissionError("no"), PermissionError),
        (ValueError("?"), OSError),
    ],
)
def test_a_request_that_fails_in_the_middle(store: Store, error: Exception, kind: type[OSError]) -> None:
    """A typed error with the name of the file, whichever request it is; and the next read is not harmed."""
    slow = store({"folder/t": data()})
    with ParquetFile(slow.of("folder/t"), coalesce_gap=0, retries=0) as file:
        for n in (1, 3, 6):
            slow.fail_the(n, error)
            with pytest.raises(kind) as caught:
                file.read()
            assert str(caught.value.filename).endswith("folder/t")
        slow.fail = lambda request: None
        assert file.read().to_arrow() == table()


@pytest.mark.parametrize("store", STORES)
def test_a_first_request_that_fails(store: Store) -> None:
    slow = store({"t": data()})

    def refuse(request: Request) -> Exception:
        return PermissionError("no")

    slow.fail = refuse
    with pytest.raises(PermissionError) as caught:
        pyparq.read_table(slow.of("t"))
    assert str(caught.value.filename).endswith("t")


def test_bytes_that_do_not_come_from_the_end_are_asked_for_again() -> None:
    """A file system that takes a negative start for 0, or refuses it: the size places the second request."""

    class Odd(AsyncStore):
        async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
            if start is not None and start < 0:
                if path == "refused":
                    raise NotImplementedError
                start, end = 0, 77
            return await super()._cat_file(path, start, end)

    slow = Odd({"t": data(), "refused": data()})
    for path in slow.files:
        assert pyparq.read_table(slow.of(path)).to_arrow() == table()


# ---- other kinds of files and scans


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files(plaintext_footer: bool) -> None:
    key, column_key = b"the footer's key", b"a column's keyxx"
    sink = io.BytesIO()
    pyparq.write_table(
        table(), sink, row_group_size=10_000, max_rows_per_page=1000, bloom_filters=["id"],
        encryption=pyparq.EncryptionProperties(key, column_keys={"id": column_key}, plaintext_footer=plaintext_footer),
    )  # fmt: skip
    whole = sink.getvalue()
    both = pyparq.DecryptionProperties(key, column_keys={"id": column_key})
    slow = AsyncStore({"t": whole}, delay=0.01)
    tail = footer_size(whole)
    found = pyparq.read_table(slow.of("t"), ["x"], col("id") == 41_000, decryption=both, tail_size=tail)
    assert found.to_arrow() == table().filter(pa.compute.field("id") == 41_000).select(["x"])
    assert slow.log.depth <= 4
    with ParquetFile(slow.of("t"), decryption=both, tail_size=tail) as file:
        assert [v for b in file.scan(["id"]).iter_batches() for v in b.columns[0].to_pylist()] == table()[
            "id"
        ].to_pylist()


def test_damaged_indexes_are_told_once_and_not_used() -> None:
    whole = bytearray(file_bytes("ours, filters by row group"))
    chunk = ParquetFile(bytes(whole)).metadata.row_group(0).column(0)
    whole[chunk.bloom_filter_offset] ^= 0xFF
    slow = AsyncStore({"t": bytes(whole)})
    with pytest.warns(pyparq.CorruptIndexWarning, match="Bloom filter ignored") as told:
        found = pyparq.read_table(slow.of("t"), ["x"], col("id") == 41_000, tail_size=footer_size(bytes(whole)))
    assert found.num_rows == 1
    assert len(told) == 1


@pytest.mark.parametrize("store", STORES)
def test_a_plan_is_run_as_a_stream(store: Store) -> None:
    whole = file_bytes("ours, filters in the footer")
    for question in (None, col("x") < 0.2, (col("word") == "word 78") & (col("id") > 5000)):
        plan = ParquetFile(whole).scan(["id"], question).plan()
        slow = store({"t": whole})
        with ParquetFile(slow.of("t"), tail_size=footer_size(whole)) as file:
            found = [v for b in file.scan_of(plan).iter_batches() for v in b.columns[0].to_pylist()]
        assert found == pyparq.read_table(whole, ["id"], question).to_pydict()["id"]


@pytest.mark.parametrize("store", STORES)
def test_some_rows_of_a_stream(store: Store) -> None:
    whole = file_bytes("pyarrow's")
    rows = np.array([3, 4, 9_999, 10_000, 25_123, 59_999])
    slow = store({"t": whole})
    with ParquetFile(slow.of("t"), tail_size=footer_size(whole)) as file:
        found = [v for b in file.scan(["text"], rows=rows).iter_batches() for v in b.columns[0].to_pylist()]
    assert found == table()["text"].take(rows).to_pylist()


def test_filters_of_unknown_length(corpus: Path) -> None:
    """Files of older writers do not say how long their Bloom filters are: a filter is read with what follows it."""
    whole = (corpus / "data" / "data_index_bloom_encoding_stats.parquet").read_bytes()
    assert ParquetFile(whole).metadata.row_group(0).column(0).bloom_filter_offset
    for literal, rows in (("Hello", 1), ("no such word", 0)):
        slow = AsyncStore({"t": whole}, delay=0.01)
        with ParquetFile(slow.of("t"), tail_size=footer_size(whole), use_dictionaries=False) as file:
            scan = file.scan(filters=col("String") == literal)
            assert scan.to_table().num_rows == rows
            assert [stage.name for stage in scan.explain().stages if stage.asked][1] == "bloom filter"
        assert slow.log.depth <= 4
