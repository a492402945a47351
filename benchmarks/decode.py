"""Values per second of the delta and byte-stream-split encodings, beside what memory allows.

    python benchmarks/decode.py [--values 1000000] [--runs 15]

One thread, one column, no compression: every engine reads the same file (written by pyarrow, no nulls, no dictionary)
and hands over an Arrow table, whose values are compared first. "decoder" is pyparq's page decoder alone, over one page
in memory. The limit is what one thread copies from one warm buffer to another, in values of the column's width.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from floors import memory_bandwidth

import pyparq

PAGE = 20_000  # values


def columns(count: int) -> dict[str, tuple[str, pa.Array]]:
    """Name of a case: (encoding, values)."""
    rng = np.random.default_rng(5)
    steps, wide = np.cumsum(rng.integers(0, 1000, count)), rng.integers(-(2**62), 2**62, count)
    words = pa.array([f"https://example.org/{k % 997:03d}/{k}" for k in rng.integers(0, 10**9, count)])
    delta, split = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
    return {
        "delta int32, small steps": (delta, pa.array((steps % 2**31).astype(np.int32))),
        "delta int64, small steps": (delta, pa.array(steps)),
        "delta int64, random": (delta, pa.array(wide)),
        "delta length, 30-byte strings": ("DELTA_LENGTH_BYTE_ARRAY", words),
        "delta byte array, sorted strings": ("DELTA_BYTE_ARRAY", words.sort()),
        "split float": (split, pa.array(rng.random(count).astype(np.float32))),
        "split double": (split, pa.array(rng.random(count))),
        "split int64": (split, pa.array(wide)),
        "split 16 bytes": (split, pa.array([k.to_bytes(16, "big") for k in range(count)], pa.binary(16))),
    }  # fmt: skip


def median(call: Callable[[], Any], runs: int) -> float:
    """Seconds."""
    call()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        taken.append(time.perf_counter() - start)
        del result
    return statistics.median(taken)


def decoder_seconds(path: Path, runs: int) -> float:
    """Median seconds that the decoder takes for all pages of the file's one chunk, whose headers were read before."""
    from pyparq.read.decode.chunk_pages import ChunkPages
    from pyparq.read.decode.memory_account import Account
    from pyparq.read.footers.open_file import open_file

    file = open_file(path, pyparq.options.ReadOptions())
    chunk = file.chunk(0, file.tree.leaves[0])
    (data,) = file.fetcher.fetch([(chunk.start, chunk.size)])
    pages = ChunkPages(data, chunk, file.options, Account(file.options.limits))
    return median(pages.decode, runs)


def reads(call: Callable[[], Any], values: pa.Array, engine: str) -> bool:
    """Whether an engine reads the column at all; AssertionError if it reads other values."""
    try:
        found = call()["x"].cast(values.type)
    except Exception:
        if engine == "pyparq":
            raise
        return False
    assert found.to_pylist() == values.to_pylist(), f"{engine} reads other values"
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    bandwidth = memory_bandwidth()
    print(f"millions of values per second, one thread; copying memory: {bandwidth / 1e9:.1f} GB/s")
    heads = ("limit", "decoder", "pyparq", "pyarrow", "polars")
    print(f"{'':34}" + "".join(f"{head:>9}" for head in heads))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "column.parquet"
        for name, (encoding, values) in columns(arguments.values).items():
            table = pa.table({"x": values})
            pq.write_table(
                table, path, compression="NONE", use_dictionary=False, column_encoding={"x": encoding},
                max_rows_per_page=PAGE, row_group_size=arguments.values, write_statistics=False,
            )  # fmt: skip
            readers: dict[str, Callable[[], Any]] = {
                "pyparq": lambda: pyparq.read_table(path, use_threads=False).to_arrow(),
                "pyarrow": lambda: pq.ParquetFile(path).read(use_threads=False),
                "polars": lambda: pl.read_parquet(path, use_statistics=False).to_arrow(),
            }
            able = {reader: call for reader, call in readers.items() if reads(call, values, reader)}
            seconds = {"limit": values.nbytes / bandwidth, "decoder": decoder_seconds(path, arguments.runs)}
            seconds |= {reader: median(call, arguments.runs) for reader, call in able.items()}
            rates = [f"{arguments.values / seconds[head] / 1e6:,.0f}" if head in seconds else "–" for head in heads]
            print(f"{name:34}" + "".join(f"{rate:>9}" for rate in rates), flush=True)


if __name__ == "__main__":
    main()
