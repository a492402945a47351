"""Rows of a Delta Lake table deleted and replaced, by pyparq and by ``deltalake``, each with its defaults.

    python benchmarks/table_changes.py [--only TEXT ...] [--runs 5] [--small] [--data-dir DIR] [--profile TEXT]

Each question is asked of a fresh copy of the same table, by both in turn within each round. After each answer the rows
that are left are compared by ``deltalake``. ``--small`` makes everything a twentieth of the size.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from events import default_data_dir

import pyparq

FILES, ROWS = 100, 100_000
Answer = Callable[[DeltaTable, int], Any]


@dataclass(frozen=True)
class Question:
    """The answers change the table; the number of the round tells them which rows."""

    name: str
    target: float
    table: Path
    answers: dict[str, Answer]


def rows_of(file: int, rows: int, total: int) -> pa.Table:
    """Ids rise over the files. Users are in no order, and each is there once."""
    rng, ids = np.random.default_rng(file), np.arange(file * rows, (file + 1) * rows)
    notes = pa.array(rng.integers(0, 1_000_000, rows)).cast(pa.string())
    return pa.table(
        {
            "id": ids,
            "user": ids * 7_654_321 % total,
            "amount": rng.random(rows).round(2),
            "kind": pa.array(["view", "cart", "buy"]).take(pa.array(rng.integers(0, 3, rows))),
            "note": pc.binary_join_element_wise("note", notes, " "),
        }
    )


def made(folder: Path, files: int, rows: int, *, bloom: bool) -> Path:
    """A table that ``deltalake`` wrote file by file. ``bloom``: pyparq has added Bloom filters of the users."""
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
        for file in range(files):
            write_deltalake(unfinished, rows_of(file, rows, files * rows), mode="append")
        if bloom:
            pyparq.add_indexes(DeltaTable(unfinished), bloom_filters=["user"])
        unfinished.rename(folder)
    return folder


def questions(data: Path, scale: int) -> Iterator[Question]:
    rows = ROWS // scale
    plain = made(data / f"delta-{FILES}-{rows}", FILES, rows, bloom=False)
    asked = {"id": "one key, in one file by the log's statistics", "user": "one key, that any file may have"}
    for column, name in asked.items():
        yield Question(name, 0.3, plain, deletes(column))
    indexed = made(data / f"delta-bloom-{FILES}-{rows}", FILES, rows, bloom=True)
    yield Question("the same, with Bloom filters", 0.3, indexed, deletes("user"))
    total = FILES * rows
    half = total // 2_000
    new = pa.concat_tables([rows_of(0, half, total), rows_of(total // half, half, total)])
    yield Question(f"upsert of {new.num_rows:,} rows, half of them new", 0.3, plain, {
        "pyparq": lambda table, _: pyparq.upsert(table, new, key="id"),
        "deltalake": lambda table, _: table.merge(new, "s.id = t.id", source_alias="s", target_alias="t")
        .when_matched_update_all().when_not_matched_insert_all().execute(),
    })  # fmt: skip


def deletes(column: str) -> dict[str, Answer]:
    return {
        "pyparq": lambda table, round_: pyparq.delete(table, pyparq.col(column) == key(round_)),
        "deltalake": lambda table, round_: table.delete(f"{column} = {key(round_)}"),
    }


def key(round_: int) -> int:
    return 1_234 * (round_ + 1)


def fresh(source: Path, target: Path) -> Path:
    """A copy whose data files are links: nobody changes them."""
    shutil.rmtree(target, ignore_errors=True)

    def copied(old: str, new: str) -> None:
        (shutil.copy2 if "_delta_log" in old else os.link)(old, new)

    shutil.copytree(source, target, copy_function=copied)
    return target


def digest(folder: Path) -> tuple[Any, ...]:
    """The number of rows, and sums of what there is."""
    found = DeltaTable(folder).to_pyarrow_table(columns=["id", "user", "amount", "note"])
    sizes = pc.sum(pc.binary_length(found["note"])).as_py()
    return found.num_rows, pc.sum(found["id"]).as_py(), pc.sum(found["user"]).as_py(), sizes


def timed(question: Question, work: Path, runs: int) -> dict[str, float]:
    """Seconds of each, the middle of the rounds. The first round is outside."""
    seconds: dict[str, list[float]] = {name: [] for name in question.answers}
    for round_ in range(runs + 1):
        left = {}
        for name in sorted(question.answers, reverse=bool(round_ % 2)):
            table = DeltaTable(fresh(question.table, work / name))
            begun = time.perf_counter()
            question.answers[name](table, round_)
            seconds[name].append(time.perf_counter() - begun)
            left[name] = digest(work / name)
        if len(set(left.values())) > 1:
            raise AssertionError(f"{question.name}: {left}")
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="questions whose names contain this")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--data-dir", type=Path, default=default_data_dir())
    parser.add_argument("--profile", metavar="TEXT", help="profile pyparq's answer to such a question")
    given = parser.parse_args()
    given.data_dir.mkdir(parents=True, exist_ok=True)
    work = given.data_dir / f"delta-work-{os.getpid()}"
    try:
        print("| | pyparq ms | deltalake ms | ratio (at most) |\n|---|---:|---:|---:|")
        for question in questions(given.data_dir, 20 if given.small else 1):
            if given.profile and given.profile in question.name:
                answer = partial(question.answers["pyparq"], DeltaTable(fresh(question.table, work / "pyparq")), 0)
                cProfile.runctx("answer()", {"answer": answer}, {}, sort="tottime")
            elif not given.profile and any(text in question.name for text in given.only):
                found = timed(question, work, given.runs)
                ratio = found["pyparq"] / found["deltalake"]
                times = " | ".join(f"{found[name] * 1e3:.0f}" for name in ("pyparq", "deltalake"))
                print(f"| {question.name} | {times} | {ratio:.2f} ({question.target}) |", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
