"""Makes the first inputs of the corpora: small pages, footers and indexes of files that pyarrow and pyparq write.

    python tests/fuzz/seeds.py FOLDER

writes them to ``FOLDER/TARGET/``. ``run.py --minimize`` then leaves what adds coverage.
"""

from __future__ import annotations

import io
import random
import struct
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_input import HEAD
from fuzz_pages import LEAVES, head_of
from fuzz_thrift import _KINDS as KINDS
from written import Written

import pyparq
from pyparq.kernels._native import probes

_CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
_ENCODINGS = {
    "i": "DELTA_BINARY_PACKED", "d": "BYTE_STREAM_SPLIT", "s": "DELTA_BYTE_ARRAY", "z": "DELTA_LENGTH_BYTE_ARRAY",
    "w": "BYTE_STREAM_SPLIT",
}  # fmt: skip


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    numbers = rng.integers(0, 9, rows)
    nulls = rng.random(rows) < 0.3
    return pa.table({
        "b": pa.array(numbers % 2 == 0, mask=nulls), "i": pa.array(numbers * 1000, pa.int32(), mask=nulls),
        "l": pa.array(np.cumsum(numbers), pa.int64()), "d": pa.array(numbers / 3, mask=nulls),
        "f": pa.array(numbers.astype(np.float32)), "s": pa.array([f"text {n}" for n in numbers], mask=nulls),
        "z": pa.array([bytes([n] * n) for n in numbers], pa.binary()),
        "w": pa.array([bytes([n] * 5) for n in numbers], pa.binary(5), mask=nulls),
        "c": pa.array(numbers, pa.int8()), "m": pa.array(list(map(Decimal, numbers.tolist())), pa.decimal128(18, 3)),
        "e": pa.array(list(map(Decimal, numbers.tolist())), pa.decimal128(20, 1)),
        "t": pa.array([[f"a{n}"] * (n % 3) if n else None for n in numbers.tolist()]),
        "n": pa.array([[[n, None], []] if n % 2 else [] for n in numbers.tolist()]),
    })  # fmt: skip


def _files() -> Iterator[bytes]:
    for k, codec in enumerate(_CODECS * 2):
        rows, version = (7, 40)[k % 2], ("1.0", "2.0")[k // len(_CODECS)]
        out = io.BytesIO()
        plain = k % 3 == 0
        pq.write_table(
            _table(rows), out, compression=codec, data_page_version=version, use_dictionary=not plain and k % 2 == 0,
            column_encoding=_ENCODINGS if k % 2 or plain else None, write_page_checksum=k % 4 == 0, data_page_size=100,
            write_page_index=True, bloom_filter_options={"s": {"ndv": 10, "fpp": 0.1}} if k == 0 else None,
        )  # fmt: skip
        yield out.getvalue()
        ours = io.BytesIO()
        pyparq.write_table(_table(rows), ours, compression=codec, data_page_version=version, max_rows_per_page=9,
                           bloom_filters=["s", "i"], write_page_checksum=k % 2 == 0)  # fmt: skip
        yield ours.getvalue()
    alp = io.BytesIO()
    columns = dict.fromkeys(("d", "f"), "ALP")
    pyparq.write_table(_table(40), alp, column_encoding=columns, use_dictionary=False, compression="none")
    yield alp.getvalue()


def _of_files() -> Iterator[tuple[str, bytes]]:
    for data in _files():
        size = int.from_bytes(data[-8:-4], "little")
        yield "footer", bytes(HEAD) + data[-8 - size : -8]
        yield "struct", bytes([KINDS["FileMetaData"]]).ljust(HEAD, b"\0") + data[-8 - size : -8]
        file = Written(data)
        for number, chunk in enumerate(file.meta.row_groups[0].columns):
            yield from _of_chunk(data, file, chunk, number)


def _of_chunk(data: bytes, file: Any, chunk: Any, number: int) -> Iterator[tuple[str, bytes]]:
    meta = chunk.meta_data
    start = min(p for p in (meta.dictionary_page_offset, meta.data_page_offset) if p)
    stored = data[start : start + meta.total_compressed_size]
    element, max_def, max_rep = _levels(file.meta.schema, meta.path_in_schema)
    leaf = min(range(len(LEAVES)), key=lambda k: (LEAVES[k].physical != meta.type,
               abs(LEAVES[k].length - (element.type_length or 0)), k))  # fmt: skip
    for kind in (0, 2, 3):
        head = head_of(leaf, kind, max_def, max_rep, meta.codec, bool(meta.dictionary_page_offset), meta.num_values,
                       file.meta.row_groups[0].num_rows)  # fmt: skip
        yield "chunk", head + stored
    yield "pages", head + stored
    for k in range(4):
        yield "sealed", head[:20] + bytes([5 * k + (8 if k > 1 else 0), k % 3]).ljust(4, b"\0") + stored
    yield "struct", bytes([KINDS["PageHeader"]]).ljust(HEAD, b"\0") + stored[:200]
    if chunk.column_index_offset:
        index = data[chunk.column_index_offset :][: chunk.column_index_length]
        width = {1: 1, 2: 2, 4: 5, 5: 6}.get(meta.type, 0)
        yield "column_index", bytes([width]).ljust(HEAD, b"\0") + index
        yield "struct", bytes([KINDS["ColumnIndex"]]).ljust(HEAD, b"\0") + index
    if chunk.offset_index_offset:
        index = data[chunk.offset_index_offset :][: chunk.offset_index_length]
        yield "column_index", bytes(HEAD) + index
        yield "struct", bytes([KINDS["OffsetIndex"]]).ljust(HEAD, b"\0") + index
    if meta.bloom_filter_offset:
        end = meta.bloom_filter_offset + (meta.bloom_filter_length or 64)
        hashes = bytes([0, 0, 0, 0, 0, 0, 1, 0]) + random.Random(number).randbytes(16)
        yield "bloom", hashes + data[meta.bloom_filter_offset : end]


def _levels(schema: Any, path: list[str]) -> tuple[Any, int, int]:
    at, max_def, max_rep = 0, 0, 0
    for name in path:
        at = next(k for k in range(at + 1, len(schema)) if schema[k].name == name)
        max_def += schema[at].repetition_type != 0
        max_rep += schema[at].repetition_type == 2
    return schema[at], max_def, max_rep


def _of_values() -> Iterator[tuple[str, bytes]]:
    rng = random.Random(1)
    texts = [b"", b"a", b"abcabcabcabcabc" * 9, rng.randbytes(70), b"x" * 300, bytes(range(64)) * 4]
    for text in texts:
        yield "snappy", bytes(HEAD) + bytes(cramjam.snappy.compress_raw(text))
        yield "lz4", bytes(HEAD) + pa.compress(text, "lz4_raw", asbytes=True)
        block = pa.compress(text, "lz4_raw", asbytes=True)
        frame = len(text).to_bytes(4, "big") + len(block).to_bytes(4, "big") + block
        yield "lz4", bytes([1]).ljust(HEAD, b"\0") + frame
        yield "compress", bytes(HEAD) + text
    for width in (0, 1, 3, 8, 12, 32):
        values = np.array([rng.randrange(1 << min(width, 31)) for _ in range(40)] + [0] * 30, np.int32)
        head = bytes([1, 70, 0, width]).ljust(HEAD, b"\0")
        yield "rle", head + bytes(probes.rle_encode_i32(values, width))
    for dtype, encode in ((np.int32, probes.delta_encode_i32), (np.int64, probes.delta_encode_i64)):
        values = np.array([rng.randrange(-1000, 1000) for _ in range(140)], dtype)
        head = bytes([dtype is np.int64, 140, 0, 0, 1]).ljust(HEAD, b"\0")
        yield "delta", head + bytes(encode(values))
    for width, dtype in ((4, np.float32), (8, np.float64)):
        for scale in (1, 10, 1000, 3):
            floats = np.array([rng.randrange(-1000, 1000) / scale for _ in range(40)] + [np.nan, -0.0], dtype)
            head = bytes([width == 8, len(floats)]).ljust(HEAD, b"\0")
            yield "alp", head + bytes(probes.alp_encode(floats.view(np.uint8), width))
            yield "alp_values", head + floats.tobytes()
    offsets = np.array([0, 3, 3, 8, 20], np.int32)
    raw = np.frombuffer(b"abcabcdeabcdefghijkl", np.uint8)
    for kind, encode in enumerate((pyparq.kernels.plain_binary_encode, probes.delta_length_encode,
                                   probes.delta_byte_array_encode)):  # fmt: skip
        yield "byte_arrays", bytes([kind, 4]).ljust(HEAD, b"\0") + bytes(encode(offsets, raw))


def _geometries() -> Iterator[tuple[str, bytes]]:
    def wkb(order: str, kind: int, *parts: bytes) -> bytes:
        return struct.pack(order + "BI", order == "<", kind) + b"".join(parts)

    for order in "<>":
        for more, form in ((0, "dd"), (1000, "ddd"), (3000, "dddd")):
            at = struct.pack(order + form, *[1.5, -2.0, 3.0, 4.0][: len(form)])
            two = struct.pack(order + "I", 2)
            point, line = wkb(order, 1 + more, at), wkb(order, 2 + more, two, at, at)
            ring = wkb(order, 3 + more, two, two, at, at, two, at, at)
            every = [point, line, ring, wkb(order, 4 + more, two, point, point), wkb(order, 5 + more, two, line, line),
                     wkb(order, 6 + more, two, ring, ring), wkb(order, 7 + more, two, point, line)]  # fmt: skip
            for value in every:
                yield "wkb", bytes([0, 0, 246, 246, 10, 10]).ljust(HEAD, b"\0") + value


def _blocks_of_lzo() -> Iterator[tuple[str, bytes]]:
    end = b"\x11\0\0"
    for block, size in (
        (b"\x15abcd" + end, 4),
        (b"\0\x0f" + bytes(33) + end, 33),
        (b"\x15abcd\x20\x01\x0c\0" + end, 38),
    ):
        yield "lzo", bytes([0, size]).ljust(HEAD, b"\0") + block


def _others() -> Iterator[tuple[str, bytes]]:
    rng = random.Random(2)
    message = _table(3).schema.serialize().to_pybytes()
    for at in range(0, 1000, 4):
        yield "arrow_schema", at.to_bytes(2, "little").ljust(HEAD, b"\0") + message[:1000]
    for _ in range(200):
        yield "arrow_import", rng.randbytes(HEAD + rng.randrange(200))
        yield "shred", bytes([rng.randrange(14), 0]).ljust(HEAD, b"\0") + rng.randbytes(rng.randrange(80))
        yield "variant", rng.randbytes(2).ljust(HEAD, b"\0") + rng.randbytes(rng.randrange(200))


def _whole_files() -> Iterator[tuple[str, bytes]]:
    rng = random.Random(3)
    for kind in range(28):
        for _ in range(12):
            yield "files", bytes([kind]) + rng.randbytes(HEAD - 1) + rng.randbytes(rng.randrange(400))
    for k in range(80):
        yield "encoders", bytes([k]) + rng.randbytes(HEAD - 1) + rng.randbytes(rng.randrange(300))
        yield "geometry_columns", rng.randbytes(HEAD) + rng.randbytes(rng.randrange(300))
        yield "select", bytes([k]) + rng.randbytes(HEAD - 1) + rng.randbytes(rng.randrange(600))
        yield "computed", rng.randbytes(HEAD) + rng.randbytes(rng.randrange(400))
        yield "modules", rng.randbytes(HEAD) + rng.randbytes(rng.randrange(60))


def main(folder: Path) -> None:
    for source in (_of_files, _of_values, _geometries, _blocks_of_lzo, _others, _whole_files):
        for k, (target, data) in enumerate(source()):
            (folder / target).mkdir(parents=True, exist_ok=True)
            (folder / target / f"{source.__name__}_{k}").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
