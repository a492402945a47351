"""Few rows of many pages: other people's of every kind, opened no further than the rows need, and damaged ones."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import ParquetError

ROWS = 60_000


def table() -> pa.Table:
    rng = np.random.default_rng(11)
    some = rng.random(ROWS) < 0.3
    words = pa.array(["partial refund", "", "näher", "late", "x" * 90])
    flags = rng.random(ROWS) < 0.5
    return pa.table({
        "number": pa.array(rng.integers(1, 5000, ROWS).cumsum()),
        "maybe": pa.array(rng.integers(0, 1 << 40, ROWS), mask=some),
        "small": pa.array(rng.integers(0, 90, ROWS).astype(np.int32), mask=some),
        "word": words.take(pa.array(rng.integers(0, 5, ROWS))),
        "text": pa.array([None if gone else f"{k * 7919 % 100_003} of many" for k, gone in enumerate(some)]),
        "flag": pa.array(flags, mask=some),
        "twelve": pa.array([b"%012d" % (k // 5) for k in range(ROWS)], pa.binary(12)),
        "half": pa.array(rng.random(ROWS).astype(np.float32)),
        "of": pa.StructArray.from_arrays(
            [pa.array(rng.integers(0, 99, ROWS)), words.take(pa.array(rng.integers(0, 5, ROWS)))],
            ["a", "b"], mask=pa.array(some),
        ),
        "nothing": pa.array([None] * ROWS, pa.int64()),
    })  # fmt: skip


TABLE = table()
ENCODED = {
    "number": "DELTA_BINARY_PACKED", "maybe": "BYTE_STREAM_SPLIT", "small": "DELTA_BINARY_PACKED",
    "word": "DELTA_BYTE_ARRAY", "text": "DELTA_LENGTH_BYTE_ARRAY", "flag": "RLE", "twelve": "BYTE_STREAM_SPLIT",
    "half": "BYTE_STREAM_SPLIT",
}  # fmt: skip


def stored(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, write_page_index=True, row_group_size=40_000, **({"max_rows_per_page": 5000} | options))
    return sink.getvalue()


def some_rows(rng: random.Random) -> list[int]:
    start = rng.randrange(ROWS - 50)
    return sorted({*rng.sample(range(ROWS), 40), *range(start, start + 30), 0, 39_999, 40_000, ROWS - 1})


@pytest.mark.parametrize("encoding", ["dictionary", "plain", "others"])
@pytest.mark.parametrize("codec", ["snappy", "zstd", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_of_other_peoples_pages(version: str, codec: str, encoding: str) -> None:
    kind: dict[str, Any] = {"use_dictionary": encoding == "dictionary"}
    if encoding == "others":
        kind["column_encoding"] = {**ENCODED, "of.a": "PLAIN", "of.b": "PLAIN", "nothing": "PLAIN"}
    rng = random.Random(version + codec + encoding)
    data = stored(data_page_version=version, compression=codec, write_page_checksum=True, **kind)
    for indexed in (True, False):
        with pyparq.ParquetFile(data, use_page_index=indexed, verify_checksums=indexed) as file:
            rows = some_rows(rng)
            assert file.take(rows).to_arrow().equals(TABLE.take(pa.array(rows)))
            single = [rng.randrange(ROWS)]
            assert file.take(single).to_arrow().equals(TABLE.take(pa.array(single)))


def test_values_that_lie_further_back_than_was_guessed() -> None:
    """Short strings after long ones, and the reverse: what was inflated may end before the row."""
    texts = ["a long beginning " * 40] * 500 + ["b"] * 19_500
    for values in (texts, texts[::-1]):
        strings = pa.table({"t": pa.array(values)})
        sink = io.BytesIO()
        pq.write_table(strings, sink, use_dictionary=False, write_page_index=True, data_page_size=1 << 24)
        rows = [3, 499, 500, 700, 10_000, 19_499, 19_500, 19_999]
        for row in rows:
            with pyparq.ParquetFile(sink.getvalue()) as file:
                assert file.take([row]).to_pydict() == {"t": [values[row]]}


def places(data: bytes, column: str, page: int) -> tuple[int, int]:
    with pyparq.ParquetFile(data) as file:
        found = file.page_locations(0, column)
        assert found is not None
        return int(found.offsets[page]), int(found.sizes[page])


@pytest.mark.filterwarnings("ignore::pyparq.errors.CorruptIndexWarning")
@pytest.mark.parametrize("checksum", [True, False])
def test_damage(checksum: bool) -> None:
    """Every answer from a damaged page is right, or an error that names the page; with a CRC it is always an error."""
    data = stored(use_dictionary=False, max_rows_per_page=20_000, write_page_checksum=checksum)
    offset, size = places(data, "number", 1)
    expected = TABLE.select(["number"]).take(pa.array([20_005])).to_pydict()
    rng, errors = random.Random(3), list[ParquetError]()
    for _ in range(150):
        damaged = bytearray(data)
        at = offset + rng.choice((rng.randrange(30), rng.randrange(size)))
        damaged[at] ^= 1 << rng.randrange(8)
        with pyparq.ParquetFile(bytes(damaged)) as file:
            try:
                found = file.take([20_005], ["number"]).to_pydict()
            except ParquetError as error:
                errors.append(error)
                continue
        if checksum:  # of the header's bytes some say nothing that counts
            assert found == expected
    assert len(errors) > (120 if checksum else 5)
    assert {(error.column, error.row_group) for error in errors} == {("number", 0)}
