"""Servers that misbehave: what comes back is the truth or a typed error, never bytes of two versions of a file."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_server import serve
from conftest import require

import pyparq
from pyparq import ChangedFileError, ParquetFile
from pyparq.errors import ParquetError

require("fsspec")
require("aiohttp")

ROWS = 30_000
KINDS = ["s3", "obstore", "obstore-s3"]


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
def test_bodies_of_another_length(kind: str, wrong: str) -> None:
    """Of the first answer and of later ones: an error that names the file and does not blame its bytes."""
    for first in (1, 2, 3):
        with serve(data(), script=lambda asked, first=first: wrong if asked.number >= first else "") as server:
            where, options = server.source(kind)
            with pytest.raises((OSError, ParquetError)) as caught:
                pyparq.read_table(where, tail_size=1000, **options)
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
