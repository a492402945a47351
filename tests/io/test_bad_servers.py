"""Servers that misbehave: what comes back is the truth or a typed error, never bytes of two versions of a file."""

from __future__ import annotations

import io
import itertools
import pickle
import random
import signal
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_server import Asked, serve
from conftest import require
from slow_store import AsyncStore, LoopingStore

import pyparq
from pyparq import ChangedFileError, ParquetFile, col
from pyparq.errors import ParquetError, UnsupportedError

require("fsspec")
require("aiohttp")

ROWS = 30_000
KINDS = ["http", "s3", "obstore", "obstore-s3"]


@lru_cache
def table(version: int = 1) -> pa.Table:
    rng = np.random.default_rng(version)
    return pa.table({"id": rng.permutation(ROWS), "x": rng.random(ROWS), "y": rng.random(ROWS)})


@lru_cache
def data(version: int = 1) -> bytes:
    """Versions have the same size: only what the server says of them tells one from the other."""
    sink = io.BytesIO()
    pq.write_table(table(version), sink, row_group_size=10_000, compression="none", use_dictionary=False)
    return sink.getvalue()


def test_versions_of_one_size() -> None:
    assert len(data(1)) == len(data(2))


VALIDATORS: dict[str, dict[str, Any]] = {
    "strong": {},
    "weak": {"etag": 'W/"one"'},
    "date": {"etag": None},
}


@pytest.mark.parametrize("ignores_conditions", [False, True])
@pytest.mark.parametrize("validators", VALIDATORS)
@pytest.mark.parametrize("kind", KINDS)
def test_another_version_meanwhile(kind: str, validators: str, ignores_conditions: bool) -> None:
    if kind == "s3" and validators == "date":
        pytest.skip("every S3 server gives tags")
    with serve(data(), ignores_conditions=ignores_conditions, **VALIDATORS[validators]) as server:
        where, options = server.source(kind)
        with ParquetFile(where, tail_size=1000, **options) as file:
            assert file.read(["x"]).to_arrow() == table().select(["x"])
            server.replace(data(2), 'W/"two"' if validators == "weak" else '"two"')
            with pytest.raises(ChangedFileError, match="open it again") as caught:
                file.read(["id", "y"])
            assert str(caught.value.file).endswith("t.parquet")
        assert pyparq.read_table(where, **options).to_arrow() == table(2), "another reader takes it as it is then"


@pytest.mark.parametrize("kind", ["s3", "obstore-s3", "obstore"])
def test_a_first_request_that_fails_does_not_lose_the_version(kind: str) -> None:
    with serve(data(), script=lambda asked: "400" if asked.number == 1 else "") as server:
        where, options = server.source(kind)
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.replace(data(2))
            with pytest.raises(ChangedFileError):
                file.read()


@pytest.mark.parametrize("wrong", ["short", "unfinished", "long"])
@pytest.mark.parametrize("kind", KINDS)
def test_bodies_of_another_length(kind: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first answer and of later ones: an error that names the file and does not blame its bytes."""
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)  # it waits longer each time
    for first in (1, 2, 3):
        with serve(data(), script=lambda asked, first=first: wrong if asked.number >= first else "") as server:
            where, options = server.source(kind)
            with pytest.raises((OSError, ParquetError)) as caught:
                pyparq.read_table(where, tail_size=1000, retry_wait=0.001, **options)
            assert "t.parquet" in str(caught.value)
            assert "not a Parquet file" not in str(caught.value)


def test_a_rewrite_of_an_object_that_is_replaced_meanwhile(tmp_path: Path) -> None:
    with serve(data()) as server:
        where, _ = server.source("obstore")
        target = tmp_path / "new.parquet"
        server.replace_after(2, data(2))
        with pytest.raises(ChangedFileError):
            pyparq.rewrite(where, target)
        assert not target.exists()


# ---- HTTP

READS: dict[str, Any] = {
    "read": lambda file: file.read(),
    "batches": lambda file: list(file.scan().iter_batches()),
    "filter": lambda file: file.read(filters=col("id") == 7),
    "count": lambda file: file.scan(filters=col("x") > 0.5).count(),
    "take": lambda file: file.take([5, 25_000]),
    "plan": lambda file: file.execute(pickle.loads(pickle.dumps(file.scan(filters=col("id") >= 0).plan()))),
}


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize("how", READS)
def test_http_reads_of_a_file_that_is_replaced(how: str, after: int) -> None:
    """A server that ignores conditions: only the answers tell. Each kind of read, between any two requests."""
    with serve(data(), ignores_conditions=True) as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, coalesce_gap=0, prefetch_bytes=0, **options) as file:
            server.replace_after(len(server.asked) + after - 1, data(2))
            with pytest.raises(ChangedFileError):
                READS[how](file)


@pytest.mark.parametrize("ranges", [True, False])
def test_http_without_tag_and_date(ranges: bool) -> None:
    """Then the size tells, and nothing where it stays."""
    with serve(data(), etag=None, modified=None) as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.ranges = ranges
            server.replace(data() + b"PAR1")
            with pytest.raises(ChangedFileError):
                file.read()
            server.replace(data()[:-1000])
            with pytest.raises(ChangedFileError):
                file.read()
        server.replace(data())
        server.ranges = True
        with ParquetFile(where, tail_size=1000, **options) as file:
            assert file.read().to_arrow() == table()


def test_http_sends_conditions_and_asks_for_no_compression() -> None:
    for validators, name, value in (
        ({}, "If-Match", '"one"'),
        ({"etag": 'W/"one"'}, "If-Unmodified-Since", "Mon, 05 Jan 2026 10:00:00 GMT"),
        ({"etag": None}, "If-Unmodified-Since", "Mon, 05 Jan 2026 10:00:00 GMT"),
    ):
        with serve(data(), **validators) as server:
            where, options = server.source("http")
            assert pyparq.read_table(where, tail_size=1000, **options).to_arrow() == table()
            assert all(asked.headers["Accept-Encoding"] == "identity" for asked in server.asked)
            assert server.asked[0].headers[name] is None
            assert len(server.asked) > 1
            assert {asked.headers[name] for asked in server.asked[1:]} == {value}


def test_http_where_the_first_request_is_not_served() -> None:
    """The version then comes from the request for the size."""
    with serve(data(), script=lambda asked: "400" if asked.number == 1 else "") as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, **options) as file:
            assert [asked.method for asked in server.asked][:3] == ["GET", "HEAD", "GET"]
            server.replace(data(2))
            with pytest.raises(ChangedFileError):
                file.read()


@pytest.mark.parametrize(("wrong", "told"), [("gzip", "compresses"), ("elsewhere", "another range")])
def test_http_answers_that_are_no_ranges(wrong: str, told: str) -> None:
    with serve(data()) as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.script = lambda asked: wrong
            with pytest.raises(OSError, match=told) as caught:
                file.read()
            assert str(caught.value.filename).endswith("t.parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_other_bytes_than_those_that_were_asked_for(kind: str) -> None:
    """As many as were asked for: only the place that the answer states tells."""
    with serve(data()) as server:
        where, options = server.source(kind)
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.script = lambda asked: "elsewhere"
            with pytest.raises(OSError, match=r"another range|Requested .*, got") as caught:
                file.read()
            assert str(caught.value.filename).endswith("t.parquet")


@pytest.mark.parametrize("kind", ["obstore", "obstore-s3"])
def test_obstore_that_sends_all_for_a_range_after_all(kind: str) -> None:
    """It does serve ranges: this answer is wrong."""
    with serve(data()) as server:
        where, _ = server.source(kind)
        with ParquetFile(where, tail_size=1000) as file:
            server.script = lambda asked: "whole"
            with pytest.raises(OSError, match=r"other than the range|non-partial"):
                file.read()
    with serve(data(), ranges=False) as server, pytest.raises((OSError, UnsupportedError), match="ange"):
        pyparq.read_table(server.source(kind)[0])


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_one_answer_with_the_whole_file(kind: str, number: int) -> None:
    """A 200 in place of a 206, once: it is used, or the range is asked for again."""
    with serve(data(), script=lambda asked: "whole" if asked.number == number else "") as server:
        where, options = server.source(kind)
        found = pyparq.read_table(where, tail_size=1000, coalesce_gap=0, retry_wait=0.001, **options)
        assert found.to_arrow() == table()


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_answers_that_do_not_state_the_size_of_the_file(kind: str) -> None:
    """``Content-Range: bytes 0-99/*``: another request tells the size."""
    with serve(data(), script=lambda asked: "star") as server:
        where, options = server.source(kind)
        assert pyparq.read_table(where, tail_size=1000, coalesce_gap=0, **options).to_arrow() == table()
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.replace(data(2))
            with pytest.raises(ChangedFileError):
                file.read()


CAUSES = {
    "another region: give region=": ("301", "PermanentRedirect", "Use the endpoint"),
    "clock of this machine is off": ("403", "RequestTimeTooSkewed", "The difference is too large"),
    "no longer valid": ("403", "AccessDenied", "Request has expired"),
    "not allowed: (read|GetObject|HeadObject)": ("403", "AccessDenied", "You shall not pass"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("told", CAUSES)
def test_messages_say_the_cause(kind: str, told: str) -> None:
    status, code, message = CAUSES[told]
    answer = f"{status} <Error><Code>{code}</Code><Message>{message}</Message></Error>"
    if status == "301" and kind != "obstore-s3":  # boto asks again and again where no region is told
        pytest.skip("it is for S3")
    with serve(data(), script=lambda asked: answer) as server:
        where, options = server.source(kind)
        with pytest.raises(OSError, match=message if kind == "http" and "allowed" in told else told) as caught:
            pyparq.read_table(where, retries=0, **options)
        assert isinstance(caught.value, PermissionError) == (status == "403")
        assert message in str(caught.value) or status == "301"


def test_http_waits_as_long_as_the_server_asks() -> None:
    with serve(data(), script=lambda asked: "503" if asked.number == 2 else "", wait="1") as server:
        where, options = server.source("http")
        begun = time.monotonic()
        assert pyparq.read_table(where, tail_size=1000, retry_wait=0.001, **options).num_rows == ROWS
        assert time.monotonic() - begun >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_resets_without_end(kind: str) -> None:
    """The number of tries has a bound, and the time with it."""
    with serve(data(), script=lambda asked: "reset") as server:
        where, options = server.source(kind)
        with pytest.raises(OSError, match=r"connect|reset|disconnected"):
            pyparq.read_table(where, retry_wait=0.001, **options)
        assert len(server.asked) <= 24


def test_http_that_sends_all_for_a_range_after_all() -> None:
    with serve(data()) as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.script = lambda asked: "whole"
            assert file.read().to_arrow() == table()
            server.replace(data(2))
            assert file.read().to_arrow() == table(), "what came is kept"


def test_http_file_in_a_dataset() -> None:
    with serve(data(), ignores_conditions=True) as server:
        where, options = server.source("http")
        dataset = pyparq.dataset([where], tail_size=1000, prefetch_bytes=0, **options)
        batches = dataset.scan().iter_batches()
        assert next(batches).num_rows > 0
        server.replace(data(2))
        with pytest.raises(ChangedFileError):
            list(batches)


# ---- requests that fail for the moment

PASSING = ["500", "502", "503", "504", "429", "reset", "short"]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("wrong", PASSING)
@pytest.mark.parametrize("kind", KINDS)
def test_one_request_that_fails_ends_nothing(kind: str, wrong: str) -> None:
    """Whichever it is: the first, which tells the version, or a later one."""
    for number in (1, 2, 4):
        with serve(data(), script=lambda asked, number=number: wrong if asked.number == number else "") as server:
            where, options = server.source(kind)
            found = pyparq.read_table(where, tail_size=1000, coalesce_gap=0, retry_wait=0.001, **options)
            assert found.to_arrow() == table()
            assert len(server.asked) > number


@pytest.mark.parametrize("wrong", ["503", "reset", "short"])
def test_http_that_fails_always(wrong: str) -> None:
    """The number of tries has a bound, and the error says it."""
    with serve(data()) as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, retry_wait=0.001, retries=2, **options) as file:
            server.clear()
            server.script = lambda asked: wrong
            with pytest.raises(OSError, match="tried 3 times") as caught:
                file.read_row_group(0, ["x"])
            most = 6 if wrong == "reset" else 3  # aiohttp itself tries once more on a connection that it has kept
            assert 3 <= len(server.asked) <= most
            assert str(caught.value.filename).endswith("t.parquet")


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "501"])
def test_http_answers_that_stay_as_they_are(status: str) -> None:
    with serve(data()) as server:
        where, options = server.source("http")
        with ParquetFile(where, tail_size=1000, **options) as file:
            server.clear()
            server.script = lambda asked: status
            with pytest.raises(OSError, match=r"^(?!.*tried)"):
                file.read_row_group(0, ["x"])
            assert len(server.asked) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize("kind", ["http", "obstore"])
def test_ctrl_c_while_waiting_to_try_again(kind: str) -> None:
    with serve(data()) as server:
        where, options = server.source(kind)
        with ParquetFile(where, tail_size=1000, retry_wait=20, **options) as file:
            server.clear()

            def script(asked: Asked) -> str:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                return "503"

            def stop(*args: Any) -> None:
                raise KeyboardInterrupt

            server.script = script
            before = signal.signal(signal.SIGALRM, stop)
            try:
                with pytest.raises(KeyboardInterrupt):
                    file.read_row_group(0, ["x"])
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            assert len(server.asked) == 1


def test_no_retries() -> None:
    with serve(data(), script=lambda asked: "503") as server:
        where, options = server.source("http")
        with pytest.raises(OSError, match="503"):
            pyparq.read_table(where, retries=0, **options)
        assert len(server.asked) == 1


def test_a_try_again_keeps_the_version() -> None:
    def script(asked: Asked) -> str:
        if asked.number == first:
            server.replace(data(2))
            return "503"
        return ""

    for kind in ("http", "obstore", "s3"):
        with serve(data(), ignores_conditions=True) as server:
            where, options = server.source(kind)
            with ParquetFile(where, tail_size=1000, retry_wait=0.001, **options) as file:
                first = len(server.asked) + 1
                server.script = script
                with pytest.raises(ChangedFileError):
                    file.read()


@pytest.mark.parametrize("store", [AsyncStore, LoopingStore])
def test_other_stores(store: type[AsyncStore] | type[LoopingStore]) -> None:
    slow = store({"t": data()})
    for n in (1, 2, 4):
        slow.fail_the(n, ConnectionResetError("gone"))
        found = pyparq.read_table(slow.of("t"), tail_size=1000, coalesce_gap=0, retry_wait=0.001)
        assert found.to_arrow() == table()


def test_what_a_server_asks_to_wait() -> None:
    """It is obeyed within a bound; a wait is never without chance, and never longer than stated."""
    from pyparq.io.retry import Retry

    class Answer(OSError):
        status = 503
        headers: ClassVar[dict[str, str]] = {}

    error = Answer()
    pauses = [Retry(4, 0.1)._pause(3, [error]) for _ in range(50)]
    assert min(pauses) >= 0.2
    assert max(pauses) <= 0.4
    assert len(set(pauses)) > 1
    for asked, pause in (("7", 7.0), ("3600", 20.0), ("Wed, 21 Oct 2099 07:28:00 GMT", 20.0), ("soon", None)):
        error.headers = {"Retry-After": asked}
        found = Retry(4, 0.1)._pause(1, [error])
        assert found == pause if pause else found <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_tenth_of_all_answers_is_wrong(kind: str) -> None:
    """Now and then the file is replaced as well: a result is that of one version, or an error says why not."""
    rng = random.Random(5)
    wrongs = [*PASSING, "unfinished", "long", "gzip", "whole", "elsewhere", "404"]
    with serve(data(), ignores_conditions=True) as server:
        versions = itertools.cycle([2, 1])

        def script(asked: Asked) -> str:
            if rng.random() < 0.02:
                version = next(versions)
                server.replace(data(version), f'"{asked.number}"')
            return rng.choice(wrongs) if rng.random() < 0.1 else ""

        server.script = script
        right = 0
        for _ in range(25):
            where, options = server.source(kind)
            with suppress(OSError, ParquetError):
                found = pyparq.read_table(where, tail_size=1000, coalesce_gap=0, retry_wait=0.001, **options).to_arrow()
                right += 1
                assert found in (table(1), table(2))
        assert right > 5
