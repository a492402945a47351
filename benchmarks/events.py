"""The benchmark's files, made from a seed and cached: an events table of any size and a very wide table.

    python benchmarks/events.py --rows 4000000 --data-dir /tmp/pyparq-bench

The values come from numpy alone; pyarrow only carries them to the writers. A cached file's name holds the
digest of this script and pyarrow's version, so that it is never stale; what pyparq writes is not cached.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 4_000_000
ROW_GROUP = 1_000_000
SEED = 20260101
BLOOM_COLUMNS = ("id", "url")
DICTIONARY_COLUMNS = ("user", "country", "amount", "note")  # the others hardly repeat a value
BLOOM_RATE = 0.01
LAYOUTS = ("footer", "row_group")
FIRST_TS = 1_767_225_600_000_000  # 2026-01-01T00:00Z in microseconds
COUNTRIES = tuple(
    "US IN CN BR ID PK NG BD RU MX JP PH EG VN TR IR DE TH GB FR IT ZA KR ES CO AR PL CA UA AU NL SE".split()  # noqa: SIM905
)
WORDS = tuple(
    "refund partial retry manual review gift express late split invoice phone desk loyalty return damaged "  # noqa: SIM905
    "address changed duplicate hold release priority bulk trial renewal upgrade voucher weekend".split()
)

WIDE_COLUMNS = 5_000
WIDE_ROW_GROUPS = 20
WIDE_ROWS_PER_GROUP = 50
WIDE_COLUMN = "column_2500"


def row_group_rows(rows: int) -> int:
    """Rows per row group: a million, or a quarter of a smaller table, so that there are at least four."""
    return max(1, min(ROW_GROUP, rows // 4))


def digest() -> str:
    """Eight digits that change with this script."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]


def default_data_dir() -> Path:
    """The cache folder when none is named: outside the repository."""
    return Path(tempfile.gettempdir()) / "pyparq-bench"


def make_events(rows: int = ROWS, seed: int = SEED) -> pa.Table:
    """Return the events table; the same rows and seed give the same values.

    ts       timestamp[us, UTC], strictly ascending, about one event a second
    id       int64, every even number below 2 * rows once, shuffled: odd ones are absent but in min..max
    user     int64, Zipf-distributed (a few users make most of the events)
    url      string, 16 random hex digits, practically unique
    country  string, 32 codes, skewed
    amount   double, two decimals
    note     string, null in 7 of 10 rows, otherwise one of 5,000 short texts
    """
    rng = np.random.default_rng(seed)
    ts = FIRST_TS + np.cumsum(rng.integers(1, 2_000_000, rows))
    ids = rng.permutation(rows).astype(np.int64) * 2
    user = np.minimum(rng.zipf(1.3, rows), 1_000_000)
    url = hex_digits(rng.integers(0, 256, (rows, 8), dtype=np.uint8))
    weights = 1 / np.arange(1, len(COUNTRIES) + 1)
    country = rng.choice(len(COUNTRIES), rows, p=weights / weights.sum()).astype(np.int8)
    amount = np.round(rng.exponential(60.0, rows), 2)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.integers(2, 7, 5_000)]
    note = rng.integers(0, len(texts), rows).astype(np.int32)
    no_note = rng.random(rows) < 0.7
    return pa.table(
        {
            "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")),
            "id": pa.array(ids),
            "user": pa.array(user.astype(np.int64)),
            "url": url,
            "country": pa.array(COUNTRIES).take(pa.array(country)),
            "amount": pa.array(amount),
            "note": pa.array(texts).take(pa.array(note, mask=no_note)),
        }
    )


def hex_digits(raw: np.ndarray[Any, Any]) -> pa.Array:
    """Lower-case hex of each row of a (rows, width) uint8 array, as an Arrow string array."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.empty((*raw.shape, 2), np.uint8)
    text[..., 0] = digits[raw >> 4]
    text[..., 1] = digits[raw & 15]
    offsets = np.arange(len(raw) + 1, dtype=np.int32) * (raw.shape[1] * 2)
    return pa.StringArray.from_buffers(len(raw), pa.py_buffer(offsets), pa.py_buffer(text))


def make_wide() -> pa.Table:
    """Return 5,000 columns (int64, double and string in turn) of 20 x 50 rows: almost nothing but footer."""
    rows = WIDE_ROW_GROUPS * WIDE_ROWS_PER_GROUP
    rng = np.random.default_rng(SEED)
    integers = rng.integers(-(2**40), 2**40, (rows, 8))
    makers: list[Callable[[int], pa.Array]] = [
        lambda i: pa.array(integers[:, i % 8] + i),
        lambda i: pa.array((integers[:, i % 8] + i) / 256),
        lambda i: pa.array([f"{v & 0xFFFFFF:06x}" for v in (integers[:, i % 8] + i).tolist()]),
    ]
    return pa.table({f"column_{i:04d}": makers[i % 3](i) for i in range(WIDE_COLUMNS)})


def write_with_pyarrow(table: pa.Table, path: Path) -> None:
    """pyarrow's events file: its defaults (pages of 20,000 rows or 1 MiB) plus page index and Bloom filters.

    pyarrow would also try a dictionary on the columns that do not repeat, give up at 1 MiB and leave that
    dictionary in the file, where every lookup has to read it; so the columns worth one are named.
    """
    group = row_group_rows(table.num_rows)
    bloom = {name: {"ndv": group, "fpp": BLOOM_RATE} for name in BLOOM_COLUMNS}
    pq.write_table(
        table,
        path,
        row_group_size=group,
        compression="snappy",
        use_dictionary=list(DICTIONARY_COLUMNS),
        write_page_index=True,
        bloom_filter_options=bloom,
    )


def write_with_pyparq(table: pa.Table, path: Path, layout: str) -> None:
    """Our events file in one of the two Bloom filter layouts; everything else is our default."""
    pyparq: Any = importlib.import_module("pyparq")

    pyparq.write_table(
        table,
        path,
        row_group_size=row_group_rows(table.num_rows),
        compression="snappy",
        bloom_filters=dict.fromkeys(BLOOM_COLUMNS, BLOOM_RATE),
        bloom_filter_layout=layout,
    )


def events_files(data_dir: Path, rows: int, *, ours: bool, fresh: bool = False) -> dict[str, Path]:
    """Write what is missing; return the files by writer: ``pyarrow`` and, when `ours`, ``pyparq/…``."""
    data_dir.mkdir(parents=True, exist_ok=True)
    stem = f"events-{rows}-{digest()}"
    writers: dict[str, tuple[Path, Callable[[pa.Table, Path], None]]] = {
        "pyarrow": (data_dir / f"{stem}-pyarrow{pa.__version__}.parquet", write_with_pyarrow)
    }
    for layout in LAYOUTS if ours else ():
        path = data_dir / f"{stem}-pyparq-{layout}.parquet"
        writers[f"pyparq/{layout}"] = (path, partial(write_with_pyparq, layout=layout))
    table: pa.Table | None = None
    for name, (path, write) in writers.items():
        if path.exists() and not fresh and name == "pyarrow":
            continue  # our own files are rewritten each time: the writer is what is being worked on
        table = make_events(rows) if table is None else table
        replace(path, partial(write, table))
    return {name: path for name, (path, _) in writers.items()}


def wide_file(data_dir: Path, *, fresh: bool = False) -> Path:
    """Write the wide file with pyarrow if it is missing and return its path."""
    data_dir.mkdir(parents=True, exist_ok=True)
    path = data_dir / f"wide-{WIDE_COLUMNS}x{WIDE_ROW_GROUPS}-{digest()}-pyarrow{pa.__version__}.parquet"
    if fresh or not path.exists():
        table = make_wide()
        replace(path, lambda p: pq.write_table(table, p, row_group_size=WIDE_ROWS_PER_GROUP))
    return path


def replace(path: Path, write: Callable[[Path], None]) -> None:
    """Write beside `path` and rename, so that an interrupted run leaves no half file in the cache."""
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the benchmark's files.")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--fresh", action="store_true", help="write again what is cached")
    parser.add_argument("--peers-only", action="store_true", help="leave out the files pyparq writes")
    arguments = parser.parse_args()
    files = events_files(arguments.data_dir, arguments.rows, ours=not arguments.peers_only, fresh=arguments.fresh)
    files["wide"] = wide_file(arguments.data_dir, fresh=arguments.fresh)
    for name, path in files.items():
        footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
        print(f"{name:18} {path.stat().st_size:>13,} bytes, footer {footer:>11,}  {path}")


if __name__ == "__main__":
    main()
