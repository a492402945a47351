"""The native decoder: columns cut up for several threads, rows picked by ranges and bitmaps, offsets of 64 bits."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import ParquetError
from pyparq.read.decode import decoder

ROWS = 120_000
RNG = np.random.default_rng(18)
SOME = RNG.random(ROWS) < 0.2


def table() -> pa.Table:
    numbers = RNG.integers(0, 1 << 50, ROWS)
    return pa.table({
        "key": np.arange(ROWS),
        "share": RNG.random(ROWS),
        "number": pa.array(numbers, mask=SOME),
        "small": pa.array((numbers % 200 - 100).astype(np.int8)),
        "flag": pa.array(numbers % 3 == 0, mask=SOME),
        "amount": pa.array(numbers % 10**9, mask=SOME).cast(pa.decimal128(21, 2)),
        "text": pa.array([None if gone else f"{n} näher" for n, gone in zip(numbers.tolist(), SOME, strict=True)]),
        "word": pa.array([f"word {n % 300}" for n in numbers.tolist()]),
        "long": pa.array([None if n % 9 == 0 else f"{n % 40}" * 60 for n in numbers.tolist()]),
        "list": pa.array([None if n % 11 == 0 else [n % 7, None, n % 5][: n % 4] for n in numbers.tolist()]),
        "struct": pa.array([None if n % 13 == 0 else {"a": n % 99, "b": f"{n % 17}"} for n in numbers.tolist()]),
    })  # fmt: skip


TABLE = table()


def stored(**options: Any) -> bytes:
    sink = io.BytesIO()
    given = {"row_group_size": ROWS, "data_page_size": 20_000, "store_decimal_as_integer": True}
    pq.write_table(TABLE, sink, write_page_index=True, **(given | options))
    return sink.getvalue()


FILES = {
    "snappy": stored(),
    "v2, zstd": stored(data_page_version="2.0", compression="zstd"),
    "plain": stored(use_dictionary=False, compression="lz4"),
    "stored": stored(use_dictionary=["word", "long"], compression="none", store_decimal_as_integer=False),
    "row groups": stored(row_group_size=17_001, compression="gzip"),
    "small row groups": stored(row_group_size=701),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("threads", [True, False])
def test_all_rows(name: str, threads: bool) -> None:
    found = pyparq.read_table(FILES[name], use_threads=threads).to_arrow()
    found.validate(full=True)
    assert found.equals(TABLE)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("column", TABLE.column_names)
def test_a_column_alone(name: str, column: str) -> None:
    """It is cut up for all threads."""
    assert pyparq.read_table(FILES[name], columns=[column]).to_arrow().equals(TABLE.select([column]))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0005, 0.03, 0.5, 0.97])
def test_rows_here_and_there(name: str, share: float) -> None:
    found = pyparq.read_table(FILES[name], filters=col("share") < share).to_arrow()
    found.validate(full=True)
    assert found.equals(TABLE.filter(pc.field("share") < share))


@pytest.mark.parametrize("name", FILES)
def test_ranges_of_rows(name: str) -> None:
    rows = [*range(3), *range(16_990, 17_020), 50_000, *range(90_000, 95_000), ROWS - 1]
    assert pyparq.read_table(FILES[name], rows=rows).to_arrow().equals(TABLE.take(pa.array(rows)))


@pytest.mark.parametrize("name", ["snappy", "plain", "row groups"])
@pytest.mark.parametrize("most", [1_000, 3_000_000])
def test_offsets_of_64_bits(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit of 32-bit offsets moved down: bytes, nulls and counts are the same."""
    monkeypatch.setattr(decoder, "MOST_OFFSET", most)
    found = pyparq.read_table(FILES[name])
    arrow = found.to_arrow()
    arrow.validate(full=True)
    assert arrow.schema.field("long").type == pa.large_string()
    assert arrow.cast(TABLE.schema).equals(TABLE)


@pytest.mark.parametrize("kept", [{}, {"read_dictionary": ["text"]}])
def test_damage_is_told_with_its_column_and_page(kept: dict[str, Any]) -> None:
    """Also where values that are spelled out are to become a dictionary, which is tried twice."""
    data = bytearray(FILES["stored"])
    with pyparq.ParquetFile(bytes(data)) as file:
        found = file.page_locations(0, "text")
        assert found is not None
        offset, size = int(found.offsets[7]), int(found.sizes[7])
    data[offset + size // 2 : offset + size] = b"\xff" * (size - size // 2)
    with pytest.raises(ParquetError) as caught:
        pyparq.read_table(bytes(data), **kept)
    assert (caught.value.row_group, caught.value.column, caught.value.page) == (0, "text", 7)
