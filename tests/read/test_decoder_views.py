"""The native decoder's string views: of pages, of copies and of dictionaries, in all encodings of byte arrays."""

from __future__ import annotations

import io
import random
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

ROWS = 20_000
NUMBERS = np.random.default_rng(7).integers(0, 1 << 40, ROWS).tolist()
SHAPES: dict[str, list[str | None]] = {
    "short": [str(n % 10**9) for n in NUMBERS],
    "long": [f"{n:040}" for n in NUMBERS],
    "very long": [f"{n:040}" * 5 for n in NUMBERS],
    "mixed": [("ä" * (n % 23)) + str(n % 7) for n in NUMBERS],
    "nulls": [None if n % 3 == 0 else f"{n % 5_000:020}" for n in NUMBERS],
    "few": [None if n % 7 == 0 else f"one of a few, number {n % 50}" for n in NUMBERS],
}
TABLE = pa.table(
    {
        "n": range(ROWS),
        "key": pa.array([n % 1_000 for n in NUMBERS]),
        **{name: pa.array(values, pa.string_view()) for name, values in SHAPES.items()},
        "bytes": pa.array([w and w.encode() for w in SHAPES["nulls"]], pa.binary_view()),
    }
)
ENCODINGS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "lengths": {
        "use_dictionary": False,
        "column_encoding": dict.fromkeys([*SHAPES, "bytes"], "DELTA_LENGTH_BYTE_ARRAY"),
    },
    "prefixes": {"use_dictionary": False, "column_encoding": dict.fromkeys([*SHAPES, "bytes"], "DELTA_BYTE_ARRAY")},
}


def stored(encoding: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    given = {"row_group_size": 9_000, "data_page_size": 30_000, "write_page_checksum": False}
    pq.write_table(TABLE, sink, write_page_index=True, **(given | ENCODINGS[encoding] | options))
    return sink.getvalue()


def checked(found: Any, expected: pa.Table) -> None:
    theirs = pa.table(found)
    theirs.validate(full=True)
    assert theirs.schema.equals(expected.schema)
    assert plain(theirs).equals(plain(expected))


def plain(table: pa.Table) -> pa.Table:
    """pyarrow compares and filters no views itself."""
    fields = [
        pa.field(f.name, {"string_view": pa.string(), "binary_view": pa.binary()}.get(str(f.type), f.type))
        for f in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_all_and_some(encoding: str, codec: str, version: str) -> None:
    data = stored(encoding, compression=codec, data_page_version=version)
    checked(pyparq.read_table(data), TABLE)
    checked(pyparq.read_table(data, rows=slice(8_990, 9_020)), TABLE.slice(8_990, 30))
    whole = plain(TABLE)
    for least in (10, 300, 990):
        found = pyparq.read_table(data, filters=col("key") < least)
        pa.table(found).validate(full=True)
        assert plain(pa.table(found)).equals(whole.filter(pc.field("key") < least).combine_chunks())


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("most", [1, 5_000, 100_000])
def test_several_buffers(encoding: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a column has more bytes than an offset in one buffer reaches."""
    monkeypatch.setattr(decoder, "MOST_OFFSET", most)
    data = stored(encoding)
    found = pyparq.read_table(data)
    checked(found, TABLE)
    if encoding == "plain":
        assert len(found.batches[0].columns[3].buffers) > 4
    checked(pyparq.read_table(data, rows=[3, 5, 17_000]), pa.concat_tables([TABLE.slice(k, 1) for k in (3, 5, 17_000)]))


def test_few_rows_do_not_keep_a_dictionary_alive() -> None:
    texts = [f"{n} a long text that occurs twice" for n in range(5_000)] * 2
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"v": pa.array(texts, pa.string_view())}), sink, write_page_index=True, data_page_size=2_000
    )
    found = pyparq.read_table(sink.getvalue(), rows=[1, 4_000, 9_999])
    assert pa.table(found)["v"].to_pylist() == [texts[k] for k in (1, 4_000, 9_999)]
    assert sum(b.nbytes for b in found.batches[0].columns[0].buffers) < 1_000
    whole = pyparq.read_table(sink.getvalue(), rows=slice(1, None))
    assert sum(len(b) for b in whole.batches[0].columns[0].buffers[1:-1]) < 1.1 * 5_000 * 35


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("parts", [(b"ab\xc3", b"\xa9cd"), (b"x" * 130 + b"\xc3", b"\xa9" + b"y" * 130), (b"\xff",)])
def test_text_that_is_not_utf8(encoding: str, parts: tuple[bytes, ...]) -> None:
    """Also where it would be, if values were not told apart."""
    values = [
        "ascii",
        "ünïcödé",
        *(part.translate(bytes.maketrans(b"\xc3\xa9\xff", b"QZW")).decode() for part in parts),
    ]
    options = {k: {"v": v["long"]} if k == "column_encoding" else v for k, v in ENCODINGS[encoding].items()}
    sink = io.BytesIO()
    table = pa.table({"v": pa.array(values, pa.string_view())})
    pq.write_table(table, sink, compression="none", write_statistics=False, **options)
    whole = sink.getvalue()
    checked(pyparq.read_table(whole), table)
    found = pq.read_metadata(sink).row_group(0).column(0)
    end = 4 + found.total_compressed_size
    damaged = whole[:4] + whole[4:end].translate(bytes.maketrans(b"QZW", b"\xc3\xa9\xff")) + whole[end:]
    with pytest.raises(ParquetError, match="UTF-8") as caught:
        pyparq.read_table(damaged)
    assert " 2 " in str(caught.value)
    if encoding != "dictionary":
        checked(pyparq.read_table(damaged, rows=slice(2)), table.slice(0, 2))


@pytest.mark.sweep(4)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_damage(encoding: str, codec: str) -> None:
    """Views and offsets refuse the same, and give the same where damage leaves values."""
    data = stored(encoding, compression=codec)
    chance = random.Random(f"{encoding} {codec}")
    end = pq.read_metadata(io.BytesIO(data)).row_group(0).column(2).data_page_offset
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(4, end + 200_000)] = chance.randrange(256)
        answers = []
        for options in ({}, {"use_arrow_schema": False}):
            try:
                answers.append(
                    plain(pa.table(pyparq.read_table(bytes(damaged), list(SHAPES), use_threads=False, **options)))
                )
            except ParquetError as error:
                answers.append(str(error))
        assert answers[0] == answers[1]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("threads", [True, False])
def test_large_strings(encoding: str, threads: bool) -> None:
    """What a hint says is large has offsets of 64 bits, however few bytes there are."""
    table = TABLE.select(["n", "key"])
    for name, values in SHAPES.items():
        table = table.append_column(name, pa.array(values, pa.large_string()))
    table = table.append_column("bytes", pa.array([w and w.encode() for w in SHAPES["nulls"]], pa.large_binary()))
    sink = io.BytesIO()
    pq.write_table(
        table, sink, row_group_size=9_000, data_page_size=30_000, write_page_index=True, **ENCODINGS[encoding]
    )
    data = sink.getvalue()

    def same(found: Any, expected: pa.Table) -> None:
        theirs = pa.table(found)
        theirs.validate(full=True)
        assert theirs.schema.equals(expected.schema)
        assert theirs.combine_chunks().equals(expected.combine_chunks())

    same(pyparq.read_table(data, use_threads=threads), table)
    same(pyparq.read_table(data, ["few"], use_threads=threads), table.select(["few"]))
    same(pyparq.read_table(data, rows=slice(8_000, 9_500), use_threads=threads), table.slice(8_000, 1_500))
    same(pyparq.read_table(data, rows=slice(0, 0)), table.slice(0, 0))
    for least in (10, 300, 990):
        same(pyparq.read_table(data, filters=col("key") < least), table.filter(pc.field("key") < least))
    with pyparq.ParquetFile(data) as file:
        same(pa.Table.from_batches([pa.record_batch(b) for b in file.iter_batches(701)]), table)
