"""The tables behind the benchmark, each made from a seed; ``events.py`` has the events table and the very wide one.

The values come from numpy alone; TPC-H's lineitem comes from ``tpchgen-cli`` (extra ``bench``), and the flights from
``testdata/``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from engines import NotOffered
from events import WORDS, hex_digits

FLIGHTS = Path(__file__).parent.parent / "testdata"
FIRST_ORDER = 1_700_000_000_000_000  # microseconds


def make_orders(rows: int, seed: int = 18) -> pa.Table:
    """A table for filters: what is filtered by is not sorted, and every kind of column comes along.

    pick, second  double, uniform in 0..1: ``pick < 0.9`` keeps 90 %, in no order
    side          string, "buy" in half of the rows and "sell" in the others
    key           int64, every even number below 2 * rows once, shuffled
    at            timestamp[us], ascending
    count         int32 up to 1,000, null in one of 10
    price         double, two decimals
    city          string, 1,000 names
    text          string, 16 characters, practically unique
    paid          bool, null in one of 20
    """
    rng = np.random.default_rng(seed)
    cities = pa.array([f"city of {k:03d}" for k in range(1000)])
    return pa.table({
        "pick": rng.random(rows),
        "second": rng.random(rows),
        "side": pa.array(["buy", "sell"]).take(pa.array(rng.integers(0, 2, rows))),
        "key": rng.permutation(rows).astype(np.int64) * 2,
        "at": pa.array(FIRST_ORDER + np.cumsum(rng.integers(1, 1_000_000, rows))).cast(pa.timestamp("us")),
        "count": pa.array(rng.integers(0, 1000, rows).astype(np.int32), mask=rng.random(rows) < 0.1),
        "price": np.round(rng.exponential(60.0, rows), 2),
        "city": cities.take(pa.array(np.minimum(rng.zipf(1.4, rows), 1000) - 1)),
        "text": pc.utf8_slice_codeunits(hex_digits(rng.integers(0, 256, (rows, 12), dtype=np.uint8)), 0, 16),
        "paid": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.05),
    })  # fmt: skip


ORDERS_OUT = ("key", "at", "count", "price", "city", "text", "paid")


def make_customers(rows: int, seed: int = 61) -> pa.Table:
    """Long names that repeat: 40,000 of them in all, so that dictionaries are large; ``pick`` is uniform in 0..1."""
    rng = np.random.default_rng(seed)
    names = pa.array([f"{k % 89:02d}-customer-{k * 7919:09d}" for k in range(40_000)])
    return pa.table({
        "name": names.take(pa.array(rng.integers(0, len(names), rows))),
        "pick": rng.random(rows),
        "spent": np.round(rng.gamma(2.0, 40.0, rows), 2),
        "visits": pa.array(rng.poisson(3.0, rows).astype(np.int32), mask=rng.random(rows) < 0.2),
    })  # fmt: skip


def make_articles(rows: int, seed: int = 83) -> pa.Table:
    """Texts of 20 to 200 bytes, and numbers and times to compute with.

    text     string, words of which a few are not ASCII, then one of four endings, of 1, 10, 50 and 39 % of the rows
    topic    string, 40,000 names
    a, b     int64 up to 1,000
    low, mid int64: above ``a`` in 1 and 10 % of the rows
    f, g     double
    at       timestamp[us]
    id       binary, 16 bytes, distinct
    name     string, distinct
    """
    rng = np.random.default_rng(seed)
    letters = rng.integers(ord("a"), ord("z") + 1, (5_000, 12), dtype=np.uint8)
    words = [bytes(row[: 2 + k % 10]).decode() for k, row in enumerate(letters)]
    words[5::500] = ["größe", "naïve", "東京", "Ελλάδα", "żółw", "déjà", "señor", "мир", "čeština", "Zürich"]
    ends = np.concatenate(([0], np.cumsum(rng.integers(3, 27, rows)))).astype(np.int32)
    drawn = pa.array(words).take(pa.array(np.minimum(rng.zipf(1.2, int(ends[-1])), 5_000) - 1))
    endings = pa.array(["a Needle rare", "error: timeout 404", "warning half", "ok"])
    ending = endings.take(pa.array(np.searchsorted([0.01, 0.11, 0.61], rng.random(rows))))
    topics = pa.array([f"{words[k % 5_000]}/{k}" for k in range(40_000)])
    a = rng.integers(0, 1000, rows)
    return pa.table({
        "text": pc.binary_join_element_wise(pc.binary_join(pa.ListArray.from_arrays(ends, drawn), " "), ending, " "),
        "topic": topics.take(pa.array(rng.integers(0, 40_000, rows))),
        "a": a, "b": rng.integers(0, 1000, rows),
        "low": a - 500 + (rng.random(rows) < 0.01) * 900, "mid": a - 500 + (rng.random(rows) < 0.1) * 900,
        "f": rng.normal(size=rows), "g": rng.normal(size=rows),
        "at": pa.array(FIRST_ORDER + rng.integers(0, 10**14, rows)).cast(pa.timestamp("us")),
        "id": distinct_ids(rng, rows),
        "name": pa.array([f"name {k}" for k in rng.permutation(rows).tolist()]),
    })  # fmt: skip


def distinct_ids(rng: np.random.Generator, rows: int) -> pa.Array:
    """Random bytes, 16 for each row."""
    ends = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * 16)
    return pa.BinaryArray.from_buffers(pa.binary(), rows, [None, ends, pa.py_buffer(rng.bytes(16 * rows))])


def make_wide(columns: int, rows: int, seed: int = 19) -> pa.Table:
    """`columns` columns in turn int64, double, short string, and int32 with nulls."""
    rng = np.random.default_rng(seed)
    texts = pa.array([f"value {k}" for k in range(200)])
    base = [rng.integers(0, 1 << 40, rows) for _ in range(8)]
    halves = [rng.random(rows) for _ in range(8)]
    words = [texts.take(pa.array(rng.integers(0, 200, rows))) for _ in range(8)]
    small = [pa.array(rng.integers(0, 1000, rows).astype(np.int32), mask=rng.random(rows) < 0.1) for _ in range(8)]

    def column(k: int) -> Any:
        turn = (k // 4) % 8
        return (base[turn] + k, halves[turn] + k, words[turn], small[turn])[k % 4]

    return pa.table({f"c{k:05d}": column(k) for k in range(columns)})


def make_small_rows(rows: int, seed: int = 20) -> pa.Table:
    """Ten columns for files of many row groups or pages; ``c0`` ascends in steps of two."""
    rng = np.random.default_rng(seed)
    texts = pa.array([f"value {k}" for k in range(500)])
    columns: dict[str, Any] = {"c0": np.arange(rows, dtype=np.int64) * 2}
    for k in range(1, 10):
        columns[f"c{k}"] = (
            rng.integers(0, 1 << 40, rows), rng.random(rows), texts.take(pa.array(rng.integers(0, 500, rows)))
        )[k % 3]  # fmt: skip
    return pa.table(columns)


def make_log(lines: int, seed: int = 21) -> pa.Table:
    """Log lines of about 800 characters, hardly one twice, with their times and levels."""
    rng = np.random.default_rng(seed)
    phrases = pa.array([" ".join(rng.choice(WORDS, n)) for n in rng.integers(4, 24, 20_000)])
    parts = [phrases.take(pa.array(rng.integers(0, len(phrases), lines))) for _ in range(8)]
    request = hex_digits(rng.integers(0, 256, (lines, 16), dtype=np.uint8))
    line = pc.binary_join_element_wise(request, *parts, " | ")
    levels = pa.array(["DEBUG", "INFO", "WARNING", "ERROR"]).take(
        pa.array(rng.choice(4, lines, p=[0.5, 0.4, 0.08, 0.02]))
    )
    at = pa.array(FIRST_ORDER + np.cumsum(rng.integers(1, 10_000, lines))).cast(pa.timestamp("us"))
    return pa.table({"at": at, "level": levels, "line": line})


def make_views(rows: int, seed: int = 22) -> pa.Table:
    """Three columns of ``string_view``: short repeated values, short distinct ones, longer ones with nulls."""
    rng = np.random.default_rng(seed)
    cities = pa.array([f"city {k}" for k in range(1000)])
    phrases = pa.array([" ".join(rng.choice(WORDS, n)) for n in rng.integers(2, 8, 50_000)])
    return pa.table({
        "city": cities.take(pa.array(rng.integers(0, 1000, rows))).cast(pa.string_view()),
        "code": pc.utf8_slice_codeunits(
            hex_digits(rng.integers(0, 256, (rows, 6), dtype=np.uint8)), 0, 10
        ).cast(pa.string_view()),
        "phrase": phrases.take(
            pa.array(rng.integers(0, len(phrases), rows), mask=rng.random(rows) < 0.2)
        ).cast(pa.string_view()),
    })  # fmt: skip


def make_tiny(rows: int = 5_000, seed: int = 23) -> pa.Table:
    """Three columns: integers, numbers with nulls, words."""
    rng = np.random.default_rng(seed)
    return pa.table({
        "id": np.arange(rows),
        "value": pa.array(rng.random(rows), mask=rng.random(rows) < 0.1),
        "word": pa.array(WORDS).take(pa.array(rng.integers(0, len(WORDS), rows))),
    })  # fmt: skip


def make_nested(rows: int, seed: int = 7) -> pa.Table:
    """``n: int64``, ``l: list<int64>``, ``ls: list<struct<x: double, y: string>>``, ``s: struct<a: int64, b: double,
    c: string>``; `n` is the number of the row."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(0, 6, rows)))).astype(np.int32)
    items = int(offsets[-1])
    tags = pa.array([f"tag{k}" for k in range(1000)]).take(pa.array(rng.integers(0, 1000, items)))
    names = pa.array([f"name{k}" for k in range(5000)]).take(pa.array(rng.integers(0, 5000, rows)))
    numbers = pa.array(rng.integers(0, 100_000, items), mask=rng.random(items) < 0.05)
    edges = pa.array(offsets, mask=np.append(rng.random(rows) < 0.05, False))
    return pa.table({
        "n": np.arange(rows),
        "l": pa.ListArray.from_arrays(edges, numbers),
        "ls": pa.ListArray.from_arrays(
            pa.array(offsets), pa.StructArray.from_arrays([pa.array(rng.random(items)), tags], ["x", "y"])
        ),
        "s": pa.StructArray.from_arrays(
            [pa.array(rng.integers(0, 1 << 40, rows)), pa.array(rng.random(rows)), names],
            ["a", "b", "c"], mask=pa.array(rng.random(rows) < 0.1),
        ),
    })  # fmt: skip


def make_flights(rows: int) -> pa.Table:
    """The first rows of the real flights of ``testdata/``: 19 columns."""
    sys.path.insert(0, str(FLIGHTS))
    try:
        from flights import NULLABLE, load_flights
    finally:
        sys.path.remove(str(FLIGHTS))
    columns: dict[str, Any] = {}
    for name, values in load_flights().items():
        masked = name in NULLABLE and isinstance(values, np.ma.MaskedArray)
        columns[name] = pa.array(values.data, mask=values.mask) if masked else pa.array(values)
    return pa.table(columns).slice(0, rows)


def make_lineitem(scale: float) -> pa.Table:
    """TPC-H's lineitem, 6,000,000 rows at scale 1; strings as ``string``, as most tables have them."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if command is None:
        raise NotOffered("lineitem needs tpchgen-cli: pip install -e '.[bench]'")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [command, "parquet", "-s", str(scale), "--tables", "lineitem", "--output-dir", folder],
            check=True, capture_output=True,
        )  # fmt: skip
        table = pq.read_table(Path(folder) / "lineitem.parquet")
    kinds = [pa.string() if field.type == pa.string_view() else field.type for field in table.schema]
    return table.cast(pa.schema([pa.field(f.name, kind) for f, kind in zip(table.schema, kinds)]))
