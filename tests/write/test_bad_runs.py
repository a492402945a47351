"""All that users do with remote files, on servers and file systems that misbehave: each result is the truth of one
version of the file, or a typed error says why there is none. What may pass does pass.

The long runs take ``PYPARQ_STRESS_SECONDS`` (20 where it is not set) for each kind of store.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bad_operations import OPERATIONS, READING, WRITES, Place, data, truth
from bad_server import Asked, serve
from conftest import require
from slow_store import AsyncStore, LoopingStore, Request

import pyparq
from pyparq import ChangedFileError
from pyparq.errors import ParquetError

require("fsspec")
require("aiohttp")
require("polars")

PASSING = ["500", "502", "503", "504", "429", "reset", "short"]
LASTING = ["unfinished", "long", "gzip", "whole", "elsewhere", "404", "403"]


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyparq.io.retry.pause_for", lambda seconds: None)


def is_typed(error: BaseException) -> bool:
    """Errors of pyparq, of the system, and of Arrow, which has its own kinds for those of streams."""
    return isinstance(error, (OSError, ParquetError, pa.ArrowException))


def outcome(how: str, place: Place, versions: tuple[int, ...] = (1,)) -> BaseException | None:
    """Do it. ``None`` where the result is the truth of one version; the error where it is a typed one."""
    try:
        found = OPERATIONS[how](place)
    except Exception as error:
        if not is_typed(error):
            raise
        if how in WRITES and place.target().exists():
            raise AssertionError("a write that failed leaves nothing") from error
        return error
    assert any(found == truth(how, version) for version in versions), how
    return None


@pytest.mark.sweep(6)
@pytest.mark.parametrize("wrong", ["503", "reset", "short"])
@pytest.mark.parametrize("how", OPERATIONS)
def test_http_requests_that_fail_for_the_moment(how: str, wrong: str, tmp_path: Path) -> None:
    with serve(data(), script=lambda asked: wrong if asked.number in (1, 3) else "") as server:
        assert outcome(how, Place(*server.source("http"), tmp_path)) is None
        assert len(server.asked) >= 3


@pytest.mark.sweep(3)
@pytest.mark.parametrize("wrong", ["503", "reset"])
@pytest.mark.parametrize("how", OPERATIONS)
def test_obstore_requests_that_fail_for_the_moment(how: str, wrong: str, tmp_path: Path) -> None:
    require("obstore.store")
    with serve(data(), script=lambda asked: wrong if asked.number in (1, 4) else "") as server:
        assert outcome(how, Place(*server.source("obstore"), tmp_path)) is None


@pytest.mark.sweep(5)
@pytest.mark.parametrize("kind", ["http", "obstore"])
@pytest.mark.parametrize("how", OPERATIONS)
def test_a_file_that_is_replaced_at_any_time(how: str, kind: str, tmp_path: Path) -> None:
    """The server takes no notice of conditions: only its answers tell."""
    if kind == "obstore":
        require("obstore.store")
    for after in (1, 2, 3):
        with serve(data(), ignores_conditions=True) as server:
            server.replace_after(after, data(2))
            error = outcome(how, Place(*server.source(kind), tmp_path), (1, 2))
            assert error is None or isinstance(error, (ChangedFileError, OSError)) or "change" in str(error), error
        (tmp_path / "new.parquet").unlink(missing_ok=True)


# ---- file systems of fsspec's


class _Misbehaves:
    """A store that answers some requests for bytes with too few, too many, or others."""

    script: Callable[[Request], str] = staticmethod(lambda request: "")

    def _begin_bytes(self, path: str, start: int | None, end: int | None) -> tuple[Request, bytes]:
        request, found = super()._begin_bytes(path, start, end)  # type: ignore[misc]
        wrong = self.script(request)
        if wrong == "503":
            raise ConnectionRefusedError(111, "the server answers 503 with t")
        if wrong == "reset":
            raise ConnectionResetError(104, "the connection broke at t")
        if wrong == "403":
            raise PermissionError(13, "not yours", "t")
        if wrong == "404":
            raise FileNotFoundError(2, "No such file", "t")
        if wrong in ("short", "unfinished"):
            found = found[: len(found) // 2]
        if wrong == "long":
            found += b"more"
        if wrong == "whole":
            found = self.files["t"]  # type: ignore[attr-defined]
        return request, found


class BadLooping(_Misbehaves, LoopingStore):
    pass


class BadAsync(_Misbehaves, AsyncStore):
    pass


STORES: dict[str, Any] = {"looping": BadLooping, "async": BadAsync}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("wrong", ["503", "reset", "short", "unfinished"])
@pytest.mark.parametrize("how", OPERATIONS)
@pytest.mark.parametrize("store", STORES)
def test_stores_whose_requests_fail_for_the_moment(store: str, how: str, wrong: str, tmp_path: Path) -> None:
    slow = STORES[store]({"t": data()})
    number = itertools.count(1)
    slow.script = lambda request: wrong if next(number) in (1, 3) else ""
    assert outcome(how, Place(slow.of("t"), {}, tmp_path)) is None


# ---- long runs


def seconds() -> float:
    return float(os.environ.get("PYPARQ_STRESS_SECONDS", "20"))


def run(make: Callable[[random.Random], Place], rng: random.Random, versions: tuple[int, ...]) -> dict[str, int]:
    """Do one thing after the other; how often each came out well."""
    right = dict.fromkeys(OPERATIONS, 0)
    until = time.monotonic() + seconds()
    while time.monotonic() < until:
        how = rng.choice(sorted(OPERATIONS))
        place = make(rng)
        right[how] += outcome(how, place, versions) is None
        place.target().unlink(missing_ok=True)
    return right


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "s3", "obstore", "obstore-s3"])
def test_a_tenth_of_all_answers_is_wrong(kind: str, tmp_path: Path) -> None:
    rng = random.Random(time.time_ns())
    with serve(data(), ignores_conditions=True) as server:
        versions = itertools.cycle([2, 1])

        def script(asked: Asked) -> str:
            if rng.random() < 0.01:
                server.replace(data(next(versions)), f'"{asked.number}"')
            return rng.choice(PASSING + LASTING) if rng.random() < 0.1 else ""

        server.script = script
        right = run(lambda rng: Place(*server.source(kind), tmp_path), rng, (1, 2))
    assert sum(right.values()) > 0, right


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_a_tenth_of_all_answers_of_a_file_system_is_wrong(store: str, tmp_path: Path) -> None:
    rng = random.Random(time.time_ns())

    def make(rng: random.Random) -> Place:
        slow = STORES[store]({"t": data()})
        wrongs = ["503", "reset", "short", "unfinished", "long", "whole", "404"]
        slow.script = lambda request: rng.choice(wrongs) if rng.random() < 0.1 else ""
        return Place(slow.of("t"), {}, tmp_path)

    right = run(make, rng, (1,))
    assert sum(right.values()) > 0, right


def test_verification_goes_on_behind_a_file_that_cannot_be_read() -> None:
    """Wherever it stops to be readable. Of one file alone the error is raised."""
    for wrong_from in itertools.count(1):
        slow = BadLooping({f"{name}.parquet": data() for name in "abc"})
        seen = itertools.count(1)
        slow.script = lambda request, seen=seen, first=wrong_from: (
            "403" if request.path == "b.parquet" and next(seen) >= first else ""
        )
        report = pyparq.verify([slow.of(f"{name}.parquet") for name in "abc"])
        if report.ok:  # it takes fewer requests
            break
        assert [file.ok for file in report.files] == [True, False, True]
        assert "not yours" in str(report.findings[0])
        with pytest.raises(PermissionError):
            pyparq.verify(slow.of("b.parquet"))
    assert wrong_from > 2


@pytest.mark.parametrize("wrong", ["short", "long"])
@pytest.mark.parametrize("store", STORES)
def test_answers_of_another_length_do_not_blame_the_file(store: str, wrong: str, recwarn: Any) -> None:
    slow = STORES[store]({"t": data()})
    with pyparq.ParquetFile(slow.of("t"), **READING) as file:
        slow.script = lambda request: wrong
        for read in (
            lambda: file.read(),
            lambda: file.column_index(0, "x"),
            lambda: file.read(["x"], pyparq.col("x") < 0.1),
        ):
            with pytest.raises(ConnectionError, match="instead of"):
                read()
    assert not recwarn


def test_obstore_answers_of_another_length_do_not_blame_the_file(recwarn: Any) -> None:
    require("obstore.store")
    with serve(data()) as server:
        where, _ = server.source("obstore")
        with pyparq.ParquetFile(where, **READING) as file:
            server.script = lambda asked: "long"
            with pytest.raises(OSError, match="instead of"):
                file.read(["x"], pyparq.col("x") < 0.1)
            server.script = lambda asked: "503"
            with pytest.raises(OSError, match=r"503.*tried 2 times") as caught:
                file.read()
            assert type(caught.value) is OSError
    assert not recwarn
