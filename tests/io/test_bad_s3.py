"""Datasets on an S3 server that misbehaves: listings, reads and writes, request by request and at random."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import col
from pyparq.datasets.write.store_commit import StagedObjects, StoreCommitter
from pyparq.datasets.write.targets import StagedFile
from pyparq.errors import ParquetError

require("fsspec")

FILES = 3
WRONGS = ["500", "503", "429", "lost", "short", "403", "404"]
NEW = [100, 101, 102, 103]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(autouse=True)
def quiet(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("pyparq.io.retry.pause_for", lambda seconds: None)
    s3.script = lambda method, path: ""
    s3.asked.clear()
    yield
    s3.script = lambda method, path: ""


def lake(s3: S3) -> str:
    """A folder with a few files, anew."""
    fs, root = s3.fs(), f"{BUCKET}/lake"
    with suppress(FileNotFoundError):
        fs.rm(root, recursive=True)
    for k in range(FILES):
        pyparq.write_table({"id": [k], "b": [k * 2]}, f"s3://{root}/p{k}/t.parquet", storage_options=s3.options)
    s3.asked.clear()
    return f"s3://{root}"


def ids(s3: S3, url: str) -> list[int]:
    """What is there, by a server that behaves."""
    before, s3.script = s3.script, lambda method, path: ""
    found: list[int] = sorted(pyparq.dataset(url, storage_options=s3.options).read(["id"]).to_pydict()["id"])
    s3.script = before
    return found


def read(s3: S3, url: str) -> Any:
    return sorted(pyparq.dataset(url, storage_options=s3.options, retry_wait=0).read(["id"]).to_pydict()["id"])


def read_by_glob(s3: S3, url: str) -> Any:
    return read(s3, f"{url}/p*/*.parquet")


def count(s3: S3, url: str) -> Any:
    return pyparq.dataset(url, storage_options=s3.options, retry_wait=0).scan(filters=col("b") >= 0).count()


def lookup(s3: S3, url: str) -> Any:
    found = pyparq.dataset(url, storage_options=s3.options, retry_wait=0).lookup("id", [1, 2])
    return sorted(found.to_pydict()["id"])


def verify(s3: S3, url: str) -> Any:
    report = pyparq.verify(url, storage_options=s3.options)
    if not report.ok:
        raise OSError(str(report.findings[0]))
    return len(report.files)


READS: dict[str, tuple[Callable[[S3, str], Any], Any]] = {
    "read": (read, [0, 1, 2]),
    "glob": (read_by_glob, [0, 1, 2]),
    "count": (count, FILES),
    "lookup": (lookup, [1, 2]),
    "verify": (verify, FILES),
}


def overwrite(s3: S3, url: str) -> None:
    pyparq.write_dataset({"id": NEW, "b": NEW}, url, mode="overwrite", max_rows_per_file=2, storage_options=s3.options)


def append(s3: S3, url: str) -> None:
    pyparq.write_dataset({"id": NEW, "b": NEW}, url, mode="append", storage_options=s3.options)


def by_tasks(s3: S3, url: str) -> None:
    committer = StoreCommitter.start(url, "overwrite", s3.options)
    staged: list[StagedFile] = []
    for k in (0, 2):
        objects = StagedObjects(committer.staging, f"task{k}", s3.options)
        schema = pyparq.schema({"id": "int64", "b": "int64"})
        with pyparq.ParquetWriter(objects.sink(f"new-{k}.parquet", False), schema) as writer:
            writer.write({"id": NEW[k : k + 2], "b": NEW[k : k + 2]})
        staged.append(objects.staged(f"new-{k}.parquet"))
    committer.commit(staged)


WRITES: dict[str, tuple[Callable[[S3, str], None], list[int]]] = {
    "overwrite": (overwrite, NEW),
    "append": (append, [0, 1, 2, *NEW]),
    "by tasks": (by_tasks, NEW),
}


def _changed(change: Callable[..., Any], *given: Any, **options: Any) -> Callable[[S3, str], None]:
    return lambda s3, url: change(url, *given, storage_options=s3.options, **options)


CHANGES: dict[str, tuple[Callable[[S3, str], None], list[int]]] = {
    "add_indexes": (_changed(pyparq.add_indexes, bloom_filters=["id"]), [0, 1, 2]),
    "index_dataset": (_changed(pyparq.index_dataset, ["id"]), [0, 1, 2]),
    "delete": (_changed(pyparq.delete, col("id") == 1), [0, 2]),
    "update": (_changed(pyparq.update, col("id") == 1, {"id": 7}), [0, 2, 7]),
    "upsert": (_changed(pyparq.upsert, [{"id": 1, "b": 7}, {"id": 9, "b": 9}], key="id"), [0, 1, 2, 9]),
}


def fail_the(s3: S3, n: int, wrong: str) -> None:
    seen = [0]

    def script(method: str, path: str) -> str:
        seen[0] += 1
        return wrong if seen[0] == n else ""

    s3.script = script


@pytest.mark.parametrize("how", ["read", "glob"])
def test_the_first_request_may_fail_for_the_moment(s3: S3, how: str) -> None:
    url, (ask, expected) = lake(s3), READS[how]
    fail_the(s3, 1, "lost")
    assert ask(s3, url) == expected


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["503", "lost"])
@pytest.mark.parametrize("how", READS)
def test_each_request_of_a_read_may_fail_for_the_moment(s3: S3, how: str, wrong: str) -> None:
    url, (ask, expected) = lake(s3), READS[how]
    assert ask(s3, url) == expected
    for n in range(1, len(s3.asked) + 1):
        fail_the(s3, n, wrong)
        assert ask(s3, url) == expected, n


@pytest.mark.parametrize("wrong", ["503", pytest.param("lost", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "how", ["add_indexes", *(pytest.param(how, marks=pytest.mark.slow) for how in [*WRITES, *list(CHANGES)[1:]])]
)
def test_each_request_of_a_write_may_fail_for_the_moment(s3: S3, how: str, wrong: str) -> None:
    url, (write, expected) = lake(s3), (WRITES | CHANGES)[how]
    write(s3, url)
    asked = len(s3.asked)
    assert ids(s3, url) == expected
    for n in range(1, asked + 1):
        lake(s3)
        fail_the(s3, n, wrong)
        write(s3, url)
        assert ids(s3, url) == expected, n


@pytest.mark.slow
def test_a_listing_of_many_pages(s3: S3) -> None:
    """S3 lists 1,000 objects at a time. A later page may fail as well."""
    fs, url = s3.fs(), f"s3://{BUCKET}/many"
    fs.pipe({f"{BUCKET}/many/{k:04d}.parquet": b"x" for k in range(1005)})

    def files() -> int:
        return len(pyparq.dataset(url, storage_options=s3.options, retry_wait=0).files)

    assert files() == 1005

    def later(method: str, path: str) -> bool:
        return "continuation-token" in path

    s3.script = lambda method, path: "403" if later(method, path) else ""
    with pytest.raises(OSError, match="many"):
        files()
    seen = [0]

    def once(method: str, path: str) -> str:
        seen[0] += later(method, path)
        return "lost" if later(method, path) and seen[0] == 1 else ""

    s3.script = once
    assert files() == 1005
    assert seen[0] > 1


@pytest.mark.slow
def test_a_tenth_of_all_answers_is_wrong(s3: S3) -> None:
    """A write that fails leaves the old files or the new ones, or both; each of them whole."""
    rng, right = random.Random(time.time_ns()), 0
    until = time.monotonic() + float(os.environ.get("PYPARQ_STRESS_SECONDS", "20"))
    url = lake(s3)
    while time.monotonic() < until:
        how = rng.choice([*READS, *WRITES])
        s3.script = lambda method, path: rng.choice(WRONGS) if rng.random() < 0.1 else ""
        try:
            if how in READS:
                assert READS[how][0](s3, url) == READS[how][1], how
            else:
                WRITES[how][0](s3, url)
        except (OSError, ParquetError):
            pass
        else:
            right += 1
            if how in WRITES:
                assert ids(s3, url) == WRITES[how][1], how
        s3.script = lambda method, path: ""
        if how in WRITES:
            found = set(ids(s3, url))
            assert found >= {0, 1, 2} or found >= set(NEW), (how, found)
            lake(s3)
    assert right > 0


@pytest.mark.parametrize(
    "ask", [pyparq.read_table, pyparq.dataset, lambda *a, **o: pyparq.write_table({"a": [1]}, *a, **o)]
)
def test_an_address_that_makes_obstore_panic(ask: Any) -> None:
    """What Rust raises then is no ``Exception``."""
    given = {"key": "k", "secret": "s", "endpoint_url": 'http://127.0.0.1:1"}'}
    with pytest.raises(OSError, match="InvalidUri"):
        ask("s3://bucket/t", storage_options=given)
