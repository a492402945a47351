"""Questions to files in a store that answers after 30 ms and sends 80 MB/s, beside polars, DuckDB, DataFusion, pyarrow.

``python benchmarks/remote.py`` makes the files, serves them by ``s3_store.py``, and asks every engine every question in
a process of its own. It prints the seconds and processor seconds from the first call, after all imports, to the
``pyarrow.Table``, and what the store was asked: requests, serial trips (requests that each began after another had
ended), and bytes. ``--write`` puts the table into ``README.md``. Requests and bytes do not depend on the machine;
seconds do, and are shown as ratios too. DuckDB reads through s3fs here, since its own extension for S3 has to be
downloaded.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import remote_delete
from catalog import options, served

import pyparq

ROWS, GROUP = 1_000_000, 100_000
WIDE = 3_000
FILES, FILE_ROWS = 300, 1_000
STEP = 7_919
"""A prime: keys are spread over all files."""
START, END = "<!-- remote: start -->", "<!-- remote: end -->"


@dataclass(frozen=True)
class Question:
    """Rows of some columns, or their number."""

    name: str
    path: str
    columns: tuple[str, ...] = ()
    test: tuple[str, str, int, int] | None = None
    """Column, ``==`` or ``between``, and values."""
    limit: int | None = None
    kind: str = "rows"
    """``"rows"``, ``"count"``, ``"metadata"`` (the number of rows by the footer) or ``"take"`` (rows by number)."""


ONE, MANY = "one/events.parquet", "many/*.parquet"
DELETE = "delete of a key in 100,000 files"
"""The question that is asked last, of pyparq alone."""
PLACES = tuple(range(5, ROWS, ROWS // 10))
QUESTIONS = (
    Question("metadata", ONE, kind="metadata"),
    Question("key that is absent", ONE, ("id", "amount"), ("key", "==", 2 * STEP + 1, 0)),
    Question("key that is there", ONE, ("id", "amount"), ("key", "==", 500_000 * STEP % 10_000_019, 0)),
    Question("point on the sort column", ONE, ("id", "user", "amount"), ("id", "==", 777_777, 0)),
    Question("range of 0.1 %", ONE, ("id", "user", "amount"), ("id", "between", 300_000, 300_999)),
    Question("one column", ONE, ("amount",)),
    Question("1 of 3,000 columns", "one/wide.parquet", ("c1234",)),
    Question("first 10 rows", ONE, limit=10),
    Question("number of rows", ONE, kind="count"),
    Question("number of rows that match", ONE, test=("part", "==", 7, 0), kind="count"),
    Question("10 rows by number", ONE, ("id", "amount"), kind="take"),
    Question("two fields of structs", "one/nested.parquet", ("a.x", "b.y")),
    Question("everything", ONE),
    Question("key in 300 files", MANY, ("id", "amount"), ("key", "==", 150_000 * STEP % 10_000_019, 0)),
    Question("absent key in 300 files", MANY, ("id", "amount"), ("key", "==", 2 * STEP + 1, 0)),
)


# ---- files


def events(first: int, rows: int) -> dict[str, Any]:
    draw, ids = np.random.default_rng(first), np.arange(first, first + rows)
    return {
        "id": ids, "key": ids * STEP % 10_000_019, "user": [f"user-{k}" for k in draw.integers(0, 5_000, rows)],
        "part": draw.integers(0, 50, rows), "amount": draw.random(rows), "price": draw.random(rows),
    }  # fmt: skip


def make(folder: Path) -> None:
    """The same files for all engines, with page indexes, and Bloom filters of the keys."""
    (folder / "one").mkdir()
    (folder / "many").mkdir()
    given: dict[str, Any] = {"compression": "zstd", "bloom_filters": ["key"]}
    pyparq.write_table(events(0, ROWS), folder / ONE, row_group_size=GROUP, **given)
    draw = np.random.default_rng(1)
    pyparq.write_table({f"c{k}": draw.random(2_000) for k in range(WIDE)}, folder / "one" / "wide.parquet")
    rows = [{"a": {"x": k, "y": "a" * (k % 50)}, "b": {"x": "b" * (k % 70), "y": k / 2}} for k in range(200_000)]
    pyparq.write_table(rows, folder / "one" / "nested.parquet", row_group_size=50_000)
    for k in range(FILES):
        pyparq.write_table(events(k * FILE_ROWS, FILE_ROWS), folder / "many" / f"f{k:03}.parquet", **given)


# ---- engines: each gives a table, or a number


def by_pyparq(asked: Question, given: dict[str, Any], filesystem: str = "obstore") -> Callable[[], Any]:
    import obstore.store  # noqa: F401
    import s3fs  # noqa: F401

    load_pyparq()
    url = f"s3://lake/{asked.path}"
    opens = partial(pyparq.ParquetFile if "*" not in url else pyparq.dataset, filesystem=filesystem)
    return lambda: ask_pyparq(asked, opens, url, given)


def load_pyparq() -> None:
    """Load the modules that come with their first use: imports do not count."""
    data = io.BytesIO()
    pyparq.write_table({"id": [1, 2]}, data, bloom_filters=["id"])
    for opened in (pyparq.ParquetFile(data), pyparq.dataset(data)):
        opened.scan(["id"], pyparq.col("id") == 1).to_table().to_arrow()
        opened.take([1])
        opened.scan(filters=pyparq.col("id") == 1).count()


def ask_pyparq(asked: Question, opens: Any, source: Any, given: dict[str, Any]) -> Any:
    opened = opens(source, storage_options=given)
    test = None
    if asked.test is not None:
        column, op, low, high = asked.test
        test = pyparq.col(column) == low if op == "==" else pyparq.col(column).between(low, high)
    if asked.kind == "metadata":
        return opened.metadata.num_rows
    if asked.kind == "count":
        return opened.scan(filters=test).count()
    if asked.kind == "take":
        return opened.take(list(PLACES), columns=list(asked.columns)).to_arrow()
    scan = opened.scan(list(asked.columns) or None, test, limit=asked.limit)
    return scan.to_table().to_arrow()


def by_polars(asked: Question, given: dict[str, Any]) -> Callable[[], Any]:
    import polars as pl

    stored = {
        "aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_endpoint_url": given["endpoint_url"],
        "aws_region": "us-east-1", "aws_allow_http": "true",
    }  # fmt: skip

    def ask() -> Any:
        frame = pl.scan_parquet(f"s3://lake/{asked.path}", storage_options=stored)
        if asked.test is not None:
            column, op, low, high = asked.test
            frame = frame.filter(pl.col(column) == low if op == "==" else pl.col(column).is_between(low, high))
        if asked.kind in ("count", "metadata"):
            return frame.select(pl.len()).collect().item()
        if asked.kind == "take":
            frame = frame.with_row_index("n").filter(pl.col("n").is_in(PLACES))
        if asked.columns:
            frame = frame.select([_field_of_polars(pl, name) for name in asked.columns])
        return (frame if asked.limit is None else frame.head(asked.limit)).collect().to_arrow()

    return ask


def _field_of_polars(pl: Any, name: str) -> Any:
    column, _, inner = name.partition(".")
    return pl.col(column).struct.field(inner).alias(name) if inner else pl.col(name)


def sql(asked: Question, table: str) -> str | None:
    """``None``: the engine cannot ask it."""
    if asked.kind == "take":
        return None
    where = ""
    if asked.test is not None:
        column, op, low, high = asked.test
        where = f" WHERE {column} = {low}" if op == "==" else f" WHERE {column} BETWEEN {low} AND {high}"
    names = ", ".join(f'{name} AS "{name}"' for name in asked.columns) or "*"
    what = "count(*)" if asked.kind in ("count", "metadata") else names
    return f"SELECT {what} FROM {table}{where}" + (f" LIMIT {asked.limit}" if asked.limit else "")


def by_duckdb(asked: Question, given: dict[str, Any]) -> Callable[[], Any] | None:
    import duckdb
    import s3fs

    text = sql(asked, f"read_parquet('s3://lake/{asked.path}')")
    if text is None:
        return None

    def ask() -> Any:
        connection = duckdb.connect()
        connection.register_filesystem(s3fs.S3FileSystem(**given))
        found = connection.sql(text)
        return found.fetchall()[0][0] if asked.kind in ("count", "metadata") else found.arrow().read_all()

    return ask


def by_datafusion(asked: Question, given: dict[str, Any]) -> Callable[[], Any] | None:
    import datafusion
    from datafusion.object_store import AmazonS3

    text = sql(asked, "t")
    if text is None:
        return None

    def ask() -> Any:
        store = AmazonS3(
            bucket_name="lake", region="us-east-1", access_key_id="k", secret_access_key="s",
            endpoint=given["endpoint_url"], allow_http=True,
        )  # fmt: skip
        context = datafusion.SessionContext()
        context.register_object_store("s3://", store, "lake")
        context.register_parquet("t", f"s3://lake/{asked.path.replace('*.parquet', '')}")
        found = context.sql(text).to_arrow_table()
        return found.column(0)[0].as_py() if asked.kind in ("count", "metadata") else found

    return ask


def by_pyarrow(asked: Question, given: dict[str, Any]) -> Callable[[], Any]:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq
    from pyarrow import fs

    def ask() -> Any:
        place = given["endpoint_url"].removeprefix("http://")
        store = fs.S3FileSystem(
            access_key="k", secret_key="s", endpoint_override=place, scheme="http", region="us-east-1"
        )
        path = f"lake/{asked.path.replace('/*.parquet', '')}"
        if asked.kind == "metadata":
            return pq.read_metadata(path, filesystem=store).num_rows
        data, test = ds.dataset(path, filesystem=store), None
        if asked.test is not None:
            column, op, low, high = asked.test
            field = ds.field(column)
            test = field == low if op == "==" else (field >= low) & (field <= high)
        if asked.kind == "count":
            return data.count_rows(filter=test)
        columns = {name: pc.field(*name.split(".")) for name in asked.columns} or None
        if asked.kind == "take":
            return data.take(list(PLACES), columns=columns)
        if asked.limit is not None:
            return data.head(asked.limit)
        return data.to_table(columns=columns, filter=test)

    return ask


ENGINES: dict[str, Callable[[Question, dict[str, Any]], Callable[[], Any] | None]] = {
    "pyparq": by_pyparq, "pyparq, fsspec": partial(by_pyparq, filesystem="fsspec"), "polars": by_polars,
    "duckdb": by_duckdb, "datafusion": by_datafusion, "pyarrow": by_pyarrow,
}  # fmt: skip
OURS = ("pyparq", "pyparq, fsspec")


# ---- measuring


def answer(engine: str, number: int, given: dict[str, Any]) -> None:
    """In a process of its own: the answer's digest, and the seconds that it took."""
    import pyarrow as pa

    ask = ENGINES[engine](QUESTIONS[number], given)
    if ask is None:
        print(json.dumps(None))
        return
    begun, used = time.perf_counter(), time.process_time()
    found = ask()
    seconds, used = time.perf_counter() - begun, time.process_time() - used
    limited = QUESTIONS[number].limit is not None  # which rows come is up to the engine
    digest = [found.num_rows, 0 if limited else _sum(found)] if isinstance(found, pa.Table) else [found, 0]
    print(json.dumps([seconds, used, digest]))


def _sum(table: Any) -> float:
    import pyarrow.compute as pc
    import pyarrow.types as pt

    numbers = [c for c in table.flatten().columns if pt.is_integer(c.type) or pt.is_floating(c.type)]
    return round(math.fsum(float(pc.sum(column).as_py() or 0) for column in numbers), 3)


@dataclass(frozen=True)
class Cell:
    """What one engine takes for one question."""

    seconds: float
    used: float
    """Processor seconds of the process."""
    requests: int
    trips: int
    bytes: int
    digest: tuple[float, ...]


def measure(engine: str, number: int, url: str, rounds: int, most: float) -> Cell | str:
    cells = []
    for _ in range(rounds):
        urllib.request.urlopen(f"{url}/?log").read()
        command = [sys.executable, __file__, "--answer", engine, str(number), "--url", url]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=most, check=False)
        except subprocess.TimeoutExpired:
            return f"did not end in {most:.0f} s"
        if done.returncode:
            return f"failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}"
        told = json.load(urllib.request.urlopen(f"{url}/?log"))
        found = json.loads(done.stdout.splitlines()[-1])
        if found is None:
            return "–"
        cells.append(Cell(found[0], found[1], told["requests"], told["trips"], told["bytes"], tuple(found[2])))
    middle = statistics.median(cell.seconds for cell in cells)
    return replace(cells[-1], seconds=middle, used=statistics.median(cell.used for cell in cells))


def line(question: Question, cells: dict[str, Cell | str]) -> str:
    """A row of the table. All answers must be equal."""
    known = {engine: cell for engine, cell in cells.items() if isinstance(cell, Cell)}
    digests = {cell.digest for cell in known.values()}
    assert len({(d[0], round(d[1], 1)) for d in digests}) == 1, (question.name, known)
    ratio = ratio_of(known)
    parts = [_cell(cells[engine]) if engine in cells else "–" for engine in ENGINES]
    return f"| {question.name} | {' | '.join(parts)} | {'–' if ratio is None else f'{ratio:.2f}'} |"


def ratio_of(known: dict[str, Cell]) -> float | None:
    """The quicker of pyparq's ways, by the best peer."""
    ours = [cell.seconds for engine, cell in known.items() if engine in OURS]
    peers = [cell.seconds for engine, cell in known.items() if engine not in OURS]
    return min(ours) / min(peers) if ours and peers else None


def _cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return "–" if cell == "–" else cell.split(":")[0]
    return f"{cell.seconds:.2f} ({cell.used:.2f}): {cell.requests} / {cell.trips}, {cell.bytes / 1e6:.2f}"


def table(lines: Sequence[str], ratios: Sequence[float], delay: float, rate: float) -> str:
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 0.0
    head = [
        f"Each cell: seconds (of a processor): requests / serial trips, megabytes. {delay * 1000:.0f} ms a request, "
        f"{rate / 1e6:.0f} MB/s. The ratio is the quicker of pyparq's two ways by the best peer; geometric mean "
        f"{mean:.2f}.", "",
        f"| question | {' | '.join(ENGINES)} | ratio |", f"|---|{'---:|' * (len(ENGINES) + 1)}",
    ]  # fmt: skip
    return "\n".join([*head, *lines])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--answer", nargs=2)
    parser.add_argument("--url", default="")
    parser.add_argument("--delay", type=float, default=0.03)
    parser.add_argument("--rate", type=float, default=80e6, help="bytes a second of one answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=float, default=120, help="seconds for one answer")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--only", default="", help="part of a question's name")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    given = parser.parse_args()
    if given.answer:
        return answer(given.answer[0], int(given.answer[1]), options(given.url))
    lines, ratios = [], list[float]()
    with tempfile.TemporaryDirectory() as place:
        make(Path(place))
        with served(Path(place), given.delay, given.rate) as url:
            for number, question in enumerate(QUESTIONS):
                if given.only not in question.name:
                    continue
                cells = {e: measure(e, number, url, given.rounds, given.most) for e in given.engines}
                for engine, cell in cells.items():
                    if isinstance(cell, str) and cell != "–":
                        print(f"{question.name}, {engine}: {cell}", file=sys.stderr)
                lines.append(line(question, cells))
                ratio = ratio_of({e: c for e, c in cells.items() if isinstance(c, Cell)})
                ratios += [] if ratio is None else [ratio]
                print(lines[-1], flush=True)
    made = table(lines, ratios, given.delay, given.rate)
    if given.only in DELETE:
        made += f"\n\n{remote_delete.measure(100_000, given.delay, given.rate)}"
    print(made)
    if given.write:
        readme = Path(__file__).parent / "README.md"
        before, _, rest = readme.read_text().partition(START)
        readme.write_text(f"{before}{START}\n{made}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
