"""Many files: pyparq against pyarrow, polars, duckdb and datafusion on a folder of small files; extra ``bench``.

    python benchmarks/many.py               # 1,000 files of 10,000 rows, written once by pyarrow with Bloom filters
    python benchmarks/many.py --files 200 --runs 3 --only count

The folder has a partition of every ten files. Every engine answers the same questions in turn within each round, and
each answer is compared with pyarrow's before anything is timed. *Cold* is a new handle: the folder is listed and the
footers are read. *Open* is a handle that is kept, as far as an engine has one; duckdb and polars have none.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import events
import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 10_000
FILES_PER_PARTITION = 10
COLUMNS = ["ts", "id", "user", "url", "country", "amount", "note"]


@dataclass(frozen=True)
class Question:
    """``select columns from folder [where column in values]``, or a count of rows, or the facts of all footers."""

    kind: str  # "rows", "count", "footers"
    column: str | None = None
    values: tuple[int, ...] = ()


class Engine:
    """One engine over one folder. `kept` says whether it keeps a handle between questions."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.glob = f"{folder}/*/*.parquet"

    def forget(self) -> None:
        """Drop what the engine keeps beyond a handle."""

    def ask(self, question: Question, *, kept: bool) -> Any:
        """A table, or the number of rows of all files."""
        raise NotImplementedError


class Pyparq(Engine):
    name = "pyparq"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import pyparq
        from pyparq.datasets import footers
        from pyparq.datasets.dataset import files_of

        self.pyparq, self.footers = pyparq, footers
        self.files_of = files_of
        self.handle = pyparq.dataset(folder)

    def forget(self) -> None:
        self.footers.forget_footers()

    def ask(self, question: Question, *, kept: bool) -> Any:
        dataset = self.handle if kept else self.pyparq.dataset(self.folder)
        if question.kind == "count":
            return dataset.count()
        if question.kind == "footers":
            return sum(
                file.num_rows_of(group)
                for _, file in self.files_of(dataset).open_all(range(len(dataset.files)))
                for group in range(file.num_row_groups)
            )
        if question.column is None:
            return pa.table(dataset.read(COLUMNS))
        if question.column == "part":
            return pa.table(dataset.read(COLUMNS, self.pyparq.col("part") == question.values[0]))
        return pa.table(dataset.lookup(question.column, question.values, columns=COLUMNS))


class PyArrow(Engine):
    name = "pyarrow"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.handle = self.open()

    def open(self) -> Any:
        import pyarrow.dataset as pads

        return pads.dataset(self.folder, partitioning="hive", format="parquet")

    def ask(self, question: Question, *, kept: bool) -> Any:
        import pyarrow.compute as pc

        dataset = self.handle if kept else self.open()
        if question.kind == "count":
            return dataset.count_rows()
        if question.kind == "footers":
            return sum(fragment.metadata.num_rows for fragment in dataset.get_fragments())
        if question.column is None:
            return dataset.to_table(COLUMNS)
        return dataset.to_table(COLUMNS, filter=pc.field(question.column).isin(question.values))


class Polars(Engine):
    name = "polars"

    def ask(self, question: Question, *, kept: bool) -> Any:
        import polars as pl

        frame = pl.scan_parquet(self.folder, hive_partitioning=True, cache=False)
        if question.kind == "count":
            return frame.select(pl.len()).collect().item()
        if question.kind == "footers":
            return None
        if question.column is not None:
            one = len(question.values) == 1
            column = pl.col(question.column)
            frame = frame.filter(column == question.values[0] if one else column.is_in(list(question.values)))
        return frame.select(COLUMNS).collect().to_arrow(compat_level=pl.CompatLevel.newest())


class DuckDB(Engine):
    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("set enable_external_file_cache=false")
        self.connection.execute("set timezone='UTC'")

    def ask(self, question: Question, *, kept: bool) -> Any:
        source = f"read_parquet('{self.glob}', hive_partitioning=true)"
        if question.kind == "count":
            return self.connection.execute(f"select count(*) from {source}").fetchone()[0]
        if question.kind == "footers":
            facts = f"select sum(num_rows)::bigint from parquet_file_metadata('{self.glob}')"
            return self.connection.execute(facts).fetchone()[0]
        query = f"select {', '.join(COLUMNS)} from {source}"
        if question.column is not None:
            values = ", ".join(map(str, question.values))
            query += f" where {question.column} " + (f"= {values}" if len(question.values) == 1 else f"in ({values})")
        return self.connection.sql(query).to_arrow_table()


class DataFusion(Engine):
    name = "datafusion"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.handle = self.open()

    def open(self) -> Any:
        from datafusion import SessionConfig, SessionContext

        config = SessionConfig()
        for option in ("pushdown_filters", "reorder_filters", "enable_page_index", "bloom_filter_on_read"):
            config = config.set(f"datafusion.execution.parquet.{option}", "true")
        context = SessionContext(config)
        context.register_parquet("t", str(self.folder), table_partition_cols=[("part", pa.int32())])
        return context

    def ask(self, question: Question, *, kept: bool) -> Any:
        context = self.handle if kept else self.open()
        if question.kind == "count":
            return context.sql("select count(*) from t").to_arrow_table().column(0)[0].as_py()
        if question.kind == "footers":
            return None
        query = f"select {', '.join(COLUMNS)} from t"
        if question.column is not None:
            values = ", ".join(map(str, question.values))
            query += f" where {question.column} " + (f"= {values}" if len(question.values) == 1 else f"in ({values})")
        return context.sql(query).to_arrow_table()


ENGINES: Sequence[type[Engine]] = (Pyparq, PyArrow, Polars, DuckDB, DataFusion)


@dataclass(frozen=True)
class Measurement:
    """One line of the table."""

    name: str
    questions: Sequence[Question]
    kept: bool
    target: float
    """pyparq's time against the best of the others, at most."""


def folder_of(data_dir: Path, files: int) -> Path:
    """The folder of the files, written if it is not there."""
    folder = data_dir / f"many-{files}x{ROWS}-{events.digest()}-pyarrow{pa.__version__}"
    if (folder / "_SUCCESS").exists():
        return folder
    table = events.make_events(files * ROWS)
    bloom = {name: {"ndv": ROWS, "fpp": events.BLOOM_RATE} for name in events.BLOOM_COLUMNS}
    for k in range(files):
        target = folder / f"part={k // FILES_PER_PARTITION}"
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table.slice(k * ROWS, ROWS), target / f"f{k:04d}.parquet", compression="snappy", write_page_index=True,
            use_dictionary=list(events.DICTIONARY_COLUMNS), bloom_filter_options=bloom,
        )  # fmt: skip
    (folder / "_SUCCESS").touch()
    os.sync()
    return folder


def measurements(files: int, runs: int) -> list[Measurement]:
    """The questions. Ids are the even numbers below twice the rows, shuffled over all files: odd ones are absent."""
    rng = np.random.default_rng(11)
    rows = files * ROWS

    def ids(count: int, odd: int = 0) -> tuple[int, ...]:
        return tuple(int(k) * 2 + odd for k in rng.choice(rows, count, replace=False))

    one = [Question("rows", "id", ids(1)) for _ in range(runs)]
    parts = [Question("rows", "part", (int(k),)) for k in rng.integers(0, files // FILES_PER_PARTITION, runs)]
    thousand = [Question("rows", "id", ids(1000)) for _ in range(runs)]
    absent = [Question("rows", "id", ids(1000, 1)) for _ in range(runs)]
    return [
        Measurement("one key, cold", one, False, 0.7),
        Measurement("one key, open", one, True, 0.3),
        Measurement("1,000 keys, open", thousand, True, 0.3),
        Measurement("1,000 absent keys, open", absent, True, 0.3),
        Measurement("full scan, cold", [Question("rows")], False, 1.0),
        Measurement("one partition of 100, cold", parts, False, 1.0),
        Measurement("count(), cold", [Question("count")], False, 1.0),
        Measurement("footers, cold", [Question("footers")], False, 1.0),
    ]


def check(engines: Sequence[Engine], item: Measurement) -> None:
    """Compare the answers to the first question, every value."""
    question = item.questions[0]
    answers = {engine.name: engine.ask(question, kept=item.kept) for engine in engines}
    expected = answers["pyarrow"]
    for name, found in answers.items():
        if found is None:
            continue
        if question.kind != "rows":
            assert found == expected, f"{name}, {item.name}: {found}, expected {expected}"
            continue
        measure.compare(measure.canonical(found, expected.schema), expected, f"{name}, {item.name}", keeps_order=False)


def run(engines: Sequence[Engine], item: Measurement, runs: int) -> dict[str, Any]:
    check(engines, item)
    questions = item.questions
    able = [engine for engine in engines if engine.ask(questions[0], kept=item.kept) is not None]
    by_name = {engine.name: engine for engine in able}
    cpu: dict[str, list[float]] = {engine.name: [] for engine in able}

    def call(engine: Engine, step: int) -> Any:
        begun = time.process_time()
        answer = engine.ask(questions[step % len(questions)], kept=item.kept)
        cpu[engine.name].append(time.process_time() - begun)
        return answer

    calls: dict[str, Callable[[int], Any]] = {engine.name: partial(call, engine) for engine in able}
    before = None if item.kept else (lambda name: by_name[name].forget())
    timings = measure.interleave(calls, runs, at_least=3, before=before, budget=20)
    medians = {name: timing.median_ms for name, timing in timings.items()}
    processor = {name: round(statistics.median(seconds) * 1e3, 1) for name, seconds in cpu.items()}
    best = min((ms, name) for name, ms in medians.items() if name != "pyparq")
    ratio = medians["pyparq"] / best[0] if "pyparq" in medians else None
    return {
        "name": item.name,
        "ms": medians,
        "cpu_ms": processor,
        "best": best[1],
        "ratio": ratio,
        "target": item.target,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--data-dir", type=Path, default=events.default_data_dir())
    parser.add_argument("--engines", nargs="+", help="only these engines")
    parser.add_argument("--only", help="only measurements whose name contains this")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    arguments = parser.parse_args()
    folder = folder_of(arguments.data_dir, arguments.files)
    engines = [kind(folder) for kind in ENGINES if not arguments.engines or kind.name in arguments.engines]
    results = []
    load = os.getloadavg()[0]
    print(f"{arguments.files:,} files of {ROWS:,} rows; {os.cpu_count()} cores, load {load:.1f}")
    print("medians in ms, processor time in parentheses")
    for item in measurements(arguments.files, arguments.runs):
        if arguments.only and arguments.only not in item.name:
            continue
        line = run(engines, item, arguments.runs)
        results.append(line)
        times = "  ".join(f"{name} {ms:8.1f} ({line['cpu_ms'][name]:7.1f})" for name, ms in line["ms"].items())
        verdict = "" if line["ratio"] is None else f"{line['ratio']:5.2f} of {line['best']} (at most {item.target})"
        print(f"{line['name']:27} {times}  {verdict}", flush=True)
    if arguments.output:
        arguments.output.write_text(
            json.dumps({"files": arguments.files, "load": load, "measurements": results}, indent=1)
        )


if __name__ == "__main__":
    main()
