"""Remote files are asked together, as local ones are: all footers at once, and the filters that came with them."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from slow_store import AsyncStore

import pyparq
from pyparq import col
from pyparq.datasets import footers
from pyparq.errors import CorruptIndexWarning, SkippedFileWarning

require("fsspec")

FILES, ROWS = 12, 400
STEP = 7919


@lru_cache
def file_bytes(k: int, groups: int = 2) -> bytes:
    ids = range(k * ROWS, (k + 1) * ROWS)
    sink = io.BytesIO()
    data = {"id": list(ids), "key": [i * STEP % 1_000_003 for i in ids], "text": [f"text {i % 7}" for i in ids]}
    pyparq.write_table(data, sink, row_group_size=ROWS // groups, bloom_filters=["key"])
    return sink.getvalue()


def store(**changes: bytes) -> AsyncStore:
    return AsyncStore({f"lake/{k:02}": file_bytes(k) for k in range(FILES)} | changes)


def dataset(where: AsyncStore, **options: Any) -> pyparq.Dataset:
    return pyparq.dataset([where.of(name) for name in sorted(where.files)], **options)


def local(**options: Any) -> pyparq.Dataset:
    return pyparq.dataset([file_bytes(k) for k in range(FILES)], **options)


def key(i: int) -> int:
    return i * STEP % 1_000_003


QUESTIONS: list[Any] = [
    col("key") == key(1777),
    col("key") == 2,
    col("key").isin([key(3), key(3000), 2]),
    (col("key") == key(900)) & (col("text") != "text 3"),
    (col("key") == key(900)) | (col("id") == 41),
    col("id").between(1190, 1210),
    (col("id") < 900) & (col("text") == "text 3"),
]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose footers were decoded."""
    names, make = list[str](), footers.OpenFile

    def note(fetcher: Any, *args: Any, **options: Any) -> Any:
        names.append(fetcher.source.name)
        return make(fetcher, *args, **options)

    monkeypatch.setattr(footers, "OpenFile", note)
    return names


@pytest.mark.parametrize("tail_size", [None, 4_000, 64], ids=["all in the tail", "no filter in it", "no footer in it"])
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_the_same_rows(question: Any, tail_size: int | None) -> None:
    expected = local().read(filters=question).to_arrow()
    ds = dataset(store(), tail_size=tail_size)
    assert ds.read(filters=question).to_arrow() == expected
    assert ds.count(question) == expected.num_rows
    assert sum(batch.num_rows for batch in ds.scan(filters=question).iter_batches()) == expected.num_rows
    assert ds.scan(filters=question).explain().rows == expected.num_rows


@pytest.mark.parametrize(("asked", "rows", "most"), [(key(1777), 1, 2), (2, 0, 1), (-5, 0, 1)])
def test_only_files_that_may_match_are_opened(opened: list[str], asked: int, rows: int, most: int) -> None:
    """And the first one, for the schema. All else comes with one request for each file."""
    where = store()
    ds = dataset(where)
    for _ in range(2):
        assert ds.read(filters=col("key") == asked).num_rows == rows
    assert len(set(opened)) <= most
    assert len(where.log.of("bytes")) == FILES


def test_filters_that_did_not_come_are_asked(opened: list[str]) -> None:
    where = store()
    ds = dataset(where, tail_size=int.from_bytes(file_bytes(0)[-8:-4], "little") + 400)
    question = col("key") == 2  # within the bounds of most files
    assert ds.read(filters=question).num_rows == 0
    without = store()
    assert dataset(without, tail_size=4_000, use_bloom_filters=False).read(filters=question).num_rows == 0
    assert where.log.num_bytes < without.log.num_bytes


@pytest.mark.parametrize("kind", ["filter", "footer", "missing"])
def test_what_is_wrong_with_one_file(kind: str) -> None:
    whole = bytearray(file_bytes(5))
    chunk = pyparq.ParquetFile(bytes(whole)).metadata.row_group(0).column("key")
    if kind == "filter":
        whole[chunk.bloom_filter_offset] ^= 0xFF
    else:
        whole[-20:-8] = b"\xff" * 12
    where = store(**{"lake/05": bytes(whole)})
    if kind == "missing":
        where.fail = lambda r: FileNotFoundError(r.path) if r.path.endswith("05") else None
    question = col("key").isin([key(5 * ROWS + 3), key(3)])
    if kind == "filter":
        with pytest.warns(CorruptIndexWarning):
            assert dataset(where).read(filters=question).num_rows == 2
        return
    expected = FileNotFoundError if kind == "missing" else pyparq.errors.CorruptFileError
    with pytest.raises(expected, match="05"):
        dataset(where).read(filters=question)
    ds = dataset(where, on_error="skip")
    with pytest.warns(SkippedFileWarning):
        found = ds.read(filters=question)
    assert found.num_rows == 1
    assert next(name for name, _ in ds.skipped).endswith("05")


def test_local_and_remote_files(tmp_path: Path) -> None:
    where, sources = store(), list[Any]()
    for k in range(FILES):
        path = tmp_path / f"{k:02}.parquet"
        path.write_bytes(file_bytes(k))
        sources.append(path if k % 3 else where.of(f"lake/{k:02}"))
    for question in QUESTIONS:
        expected = local().read(filters=question).to_arrow()
        for order in (sources, sources[1:] + sources[:1]):
            found = pyparq.dataset(order).read(filters=question).to_arrow()
            assert found.sort_by("id") == expected.sort_by("id")


def test_a_limit_needs_few_files() -> None:
    where = store()
    schema = local().schema
    found = dataset(where, schema=schema).scan(["id"], col("id") >= 0, limit=10).to_table()
    assert found.num_rows == 10
    assert len({request.path for request in where.log.of("bytes")}) < FILES


def test_footers_are_requested_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    where = store()
    where.delay = 0.05
    assert dataset(where).read(filters=col("key") == 2).num_rows == 0
    assert where.log.depth == 1
