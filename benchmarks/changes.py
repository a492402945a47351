"""Rows deleted and replaced: by pyparq in the files that hold them, by others by writing everything again.

    python benchmarks/changes.py [--only TEXT ...] [--runs 5] [--small] [--data-dir DIR] [--profile TEXT]

Each question is asked of a fresh copy of the same files, by pyparq and by its peers in turn within each round. After
the first round the rows that are left are compared by DuckDB. ``--small`` makes everything a twentieth of the size.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from events import default_data_dir

import pyparq

KEY = "id"
#: What is left, in one line: the number of rows, and sums over hashes of each.
DIGEST = "select count(*), sum(hash({columns})::hugeint) from read_parquet('{files}')"


@dataclass(frozen=True)
class Question:
    """``answer`` of each engine changes the files under a folder, which ``fresh`` fills before."""

    name: str
    target: float
    fresh: Callable[[Path], None]
    answers: dict[str, Callable[[Path], Any]]
    files: str = "*.parquet"
    compared: bool = True


def rows_of(first: int, count: int, seed: int) -> pa.Table:
    """Rows of a log: ids in no order, times in order, text that repeats and text that does not."""
    rng = np.random.default_rng(seed)
    ids = ids_of(first, count)
    pages = pa.array([f"/shop/{k:05d}/page" for k in range(20_000)])
    return pa.table(
        {
            KEY: ids,
            "time": pa.array(first + np.arange(count), pa.timestamp("ms", "UTC")),
            "page": pages.take(pa.array(rng.integers(0, 20_000, count))),
            "mail": pc.binary_join_element_wise(pa.array(ids).cast(pa.string()), "example.org", "@"),
            "amount": rng.random(count),
            "count": rng.integers(0, 1_000, count).astype("i4"),
        }
    )


def ids_of(first: int, count: int) -> np.ndarray[Any, Any]:
    """Ids of the rows from ``first``: each once, without an order."""
    return ((np.arange(first, first + count, dtype="u8") * 0x9E3779B97F4A7C15) >> np.uint64(1)).astype("i8")


def one_file(path: Path, groups: int, rows: int) -> None:
    """A file of row groups with Bloom filters and page indexes for the key."""
    with pyparq.ParquetWriter(path, rows_of(0, 1, 0).schema, bloom_filters=[KEY]) as writer:
        for group in range(groups):
            writer.write_table(rows_of(group * rows, rows, group), row_group_size=rows)


def many_files(folder: Path, files: int, rows: int) -> None:
    folder.mkdir()
    for file in range(files):
        table = rows_of(file * rows, rows, file)
        pyparq.write_table(table, folder / f"part-{file:04d}.parquet", bloom_filters=[KEY])


def questions(data: Path, scale: int) -> Iterator[Question]:
    groups, rows = 40, 480_000 // scale
    large = made(data / f"one-{rows}.parquet", lambda path: one_file(path, groups, rows))
    key = int(ids_of(17 * rows + rows // 2, 1)[0])
    one = {
        "pyparq": lambda at: pyparq.delete(at / "one.parquet", keys={KEY: [key]}),
        "pyarrow": lambda at: replaced(at / "one.parquet", lambda old, new: pyarrow_without(old, new, [key], rows)),
        "polars": lambda at: replaced(at / "one.parquet", lambda old, new: polars_without(old, new, [key], rows)),
        "duckdb": lambda at: replaced(at / "one.parquet", lambda old, new: duckdb_without(old, new, [key], rows)),
    }
    yield Question("one key, one file of 40 row groups", 0.1, copier(large, "one.parquet"), one)
    copied = {
        "pyparq": one["pyparq"],
        "cp and mv": lambda at: replaced(at / "one.parquet", lambda _, new: copy_of(large, new)),
        "cp alone": lambda at: copy_of(large, at / "copy"),
    }
    yield Question("the same beside cp and mv", 1.5, copier(large, "one.parquet"), copied, compared=False)

    count, each = 1_000 // (1 if scale == 1 else 10), 20_000 // scale
    folder = made(data / f"many-{count}-{each}", lambda path: many_files(path, count, each))
    holding = range(0, count, count // 10)
    keys = np.concatenate([ids_of(file * each + each // 2, 10) for file in holding])
    names = [f"part-{file:04d}.parquet" for file in holding]

    def each_of(without: Callable[[Path, Path, Any, int], None]) -> Callable[[Path], None]:
        """Files that hold keys are found by a scan, and written again."""

        def answer(at: Path) -> None:
            scan = pl.scan_parquet(at / "*.parquet", include_file_paths="file").filter(pl.col(KEY).is_in(keys))
            for path in scan.select("file").unique().collect()["file"]:
                replaced(Path(path), lambda old, new: without(old, new, keys, each))

        return answer

    def by_duckdb(at: Path) -> None:
        given = pl.DataFrame({"key": keys})  # noqa: F841  DuckDB sees it by its name
        found = duckdb.sql(
            f"select distinct filename from read_parquet('{at}/*.parquet', filename=true) where {KEY} in "
            "(select key from given)"
        )
        for (path,) in found.fetchall():
            replaced(Path(path), lambda old, new: duckdb_without(old, new, keys, each))

    answers: dict[str, Callable[[Path], Any]] = {
        "pyparq": lambda at: pyparq.delete(at, keys={KEY: keys}),
        "polars": each_of(polars_without),
        "duckdb": by_duckdb,
    }
    fresh = tree_copier(folder)
    yield Question(f"100 keys, {count:,} files, {len(names)} of them hold any", 0.2, fresh, answers)

    total = 10_000_000 // scale
    wide = made(data / f"upsert-{total}.parquet", lambda path: one_file(path, 20, total // 20))
    # Half of the rows are there already: those of one day. The others are new.
    half = total // 2_000
    data_of = pa.concat_tables([rows_of(total // 4, half, 98), rows_of(total, half, 99)])
    yield Question(
        f"upsert of {2 * half:,} rows into {total:,}", 0.3, copier(wide, "one.parquet"),
        {
            "pyparq": lambda at: pyparq.upsert(at / "one.parquet", data_of, key=KEY),
            "polars": lambda at: replaced(at / "one.parquet", lambda old, new: polars_upsert(old, new, data_of)),
        },
    )  # fmt: skip


def made(path: Path, make: Callable[[Path], None]) -> Path:
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.partial")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.unlink(missing_ok=True)
        make(unfinished)
        unfinished.rename(path)
    return path


def copier(source: Path, name: str) -> Callable[[Path], None]:
    return lambda at: copy_of(source, at / name)


def tree_copier(source: Path) -> Callable[[Path], None]:
    return lambda at: shutil.copytree(source, at, dirs_exist_ok=True) and None


def copy_of(source: Path, target: Path) -> None:
    subprocess.run(["cp", source, target], check=True)


def replaced(path: Path, write: Callable[[Path, Path], None]) -> None:
    new = path.with_name("new-file.tmp")
    write(path, new)
    os.replace(new, path)


def pyarrow_without(old: Path, new: Path, keys: Any, rows: int) -> None:
    pq.write_table(pq.read_table(old, filters=~pc.field(KEY).isin(pa.array(keys))), new, row_group_size=rows)


def polars_without(old: Path, new: Path, keys: Any, rows: int) -> None:
    left = pl.scan_parquet(old).filter(~pl.col(KEY).is_in(list(keys)))
    left.sink_parquet(new, compression="snappy", row_group_size=rows)


def duckdb_without(old: Path, new: Path, keys: Any, rows: int) -> None:
    given = pl.DataFrame({"key": np.asarray(keys)})  # noqa: F841
    duckdb.sql(
        f"copy (select * from '{old}' where {KEY} not in (select key from given)) to '{new}' "
        f"(format parquet, compression snappy, row_group_size {rows})"
    )


def polars_upsert(old: Path, new: Path, data: pa.Table) -> None:
    given = pl.from_arrow(data).lazy()
    kept = pl.scan_parquet(old).join(given, on=KEY, how="anti")
    pl.concat([kept, given], how="vertical_relaxed").sink_parquet(new, compression="snappy", row_group_size=500_000)


def digest_of(at: Path, files: str) -> Any:
    columns = ", ".join(f"epoch_ms({name})" if name == "time" else name for name in rows_of(0, 1, 0).column_names)
    return duckdb.sql(DIGEST.format(columns=columns, files=at / files)).fetchall()[0]


def ask(question: Question, data: Path, runs: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in question.answers}
    digests = {}
    names = list(question.answers)
    report = None
    for step in range(runs + 1):
        for name in names[step % len(names) :] + names[: step % len(names)]:
            at = data / "asked"
            shutil.rmtree(at, ignore_errors=True)
            at.mkdir()
            question.fresh(at)
            os.sync()  # what was copied is not written out while an engine works
            start = time.perf_counter()
            found = question.answers[name](at)
            taken = time.perf_counter() - start
            report = found if name == "pyparq" else report
            if step:
                seconds[name].append(taken)
            elif question.compared:
                digests[name] = digest_of(at, question.files)
    shutil.rmtree(data / "asked")
    if len(set(digests.values())) > 1:
        raise AssertionError(f"{question.name}: the rows that are left differ: {digests}")
    medians = {name: statistics.median(of) for name, of in seconds.items()}
    best = min(value for name, value in medians.items() if name not in ("pyparq", "cp alone"))
    shown = ", ".join(f"{name} {value:.3f} s" for name, value in medians.items())
    ratio = medians["pyparq"] / best
    print(f"{question.name}: {ratio:.3f} of the best (at most {question.target}); {shown}", flush=True)
    print(f"    {report}".replace("\n", "\n    "), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="questions whose name contains this")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir() / "changes")
    parser.add_argument("--profile", metavar="TEXT", help="show where pyparq's time goes in the first such question")
    given = parser.parse_args()
    given.data_dir.mkdir(parents=True, exist_ok=True)
    for question in questions(given.data_dir, 20 if given.small else 1):
        if given.profile and given.profile in question.name:
            with_profile(question, given.data_dir)
            return
        if not given.profile and any(text in question.name for text in given.only):
            ask(question, given.data_dir, given.runs)


def with_profile(question: Question, data: Path) -> None:
    for step in ("warm-up", "profiled"):
        at = data / "profiled"
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir()
        question.fresh(at)
        if step == "warm-up":
            question.answers["pyparq"](at)
    cProfile.runctx("question.answers['pyparq'](at)", globals(), locals(), sort="tottime")


if __name__ == "__main__":
    main()
