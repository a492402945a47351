"""Conditions on text and on computed values, at 1, 10 and 50 % of the rows kept, many keys; and what people write:
articles, vectors, folders of partitions, rows with times and decimals."""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import measure
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from engines import Condition, Engine, Query, Term, WriteJob
from inputs import PLAIN, Inputs
from lines import Line, Read, Write

import pyparq
from groups.objects import TAKEN_IN, Objects

WORDS = {1: "Needle", 10: "timeout", 50: "warning"}
ENDS = {1: "rare", 10: "404", 50: "half"}
SHORTER = {1: 30, 10: 50, 50: 110}
DAYS = {1: "day", 10: "month", 50: "hour"}
OUT = ("a", "at", "topic")


def of_text(share: int) -> Iterator[tuple[str, Condition]]:
    """Conditions on text that keep about so many percent."""
    word, end, shorter = WORDS[share], ENDS[share], SHORTER[share]
    text = "text"
    yield "contains", Condition(
        f"contains(text, '{word}')", lambda c: c(text).contains(word),
        lambda c: c(text).str.contains(word, literal=True), lambda c: pc.match_substring(c(text), word),
    )  # fmt: skip
    yield "ends with", Condition(
        f"ends_with(text, '{end}')", lambda c: c(text).ends_with(end), lambda c: c(text).str.ends_with(end),
        lambda c: pc.ends_with(c(text), end),
    )  # fmt: skip
    like = f"% {word}_{end[:2]}%"
    yield "like", Condition(
        f"text like '{like}'", lambda c: c(text).like(like), lambda c: c(text).str.contains(f"(?s) {word}.{end[:2]}"),
        lambda c: pc.match_like(c(text), like),
    )  # fmt: skip
    yield "ilike", Condition(
        f"text ilike '%{word.upper()}%'", lambda c: c(text).ilike(f"%{word.upper()}%"),
        lambda c: c(text).str.contains(f"(?i){word}"), lambda c: pc.match_substring(c(text), word, ignore_case=True),
    )  # fmt: skip
    pattern = rf"{word[:3]}[a-z]+ [a-z0-9]+$"
    yield "regular expression", Condition(
        f"regexp_matches(text, '{pattern}')", lambda c: c(text).matches(pattern),
        lambda c: c(text).str.contains(pattern), lambda c: pc.match_substring_regex(c(text), pattern),
    )  # fmt: skip
    yield "lower", Condition(
        f"ends_with(lower(text), '{end}')", lambda c: c(text).lower().ends_with(end),
        lambda c: c(text).str.to_lowercase().str.ends_with(end), lambda c: pc.ends_with(pc.utf8_lower(c(text)), end),
    )  # fmt: skip
    yield "length", Condition(
        f"length(text) < {shorter}", lambda c: c(text).length() < shorter, lambda c: c(text).str.len_chars() < shorter,
        lambda c: pc.utf8_length(c(text)) < shorter,
    )  # fmt: skip


def of_numbers(share: int) -> Iterator[tuple[str, Condition]]:
    """Computed conditions that keep about so many percent."""
    other = {1: "low", 10: "mid", 50: "b"}[share]
    yield (
        "column against column",
        Condition(
            f"a < {other}", lambda c: c("a") < c(other), lambda c: c("a") < c(other), lambda c: c("a") < c(other)
        ),
    )
    most = {1: 140, 10: 447, 50: 1000}[share]
    yield "arithmetic", Condition(
        f"a + b < {most}", lambda c: c("a") + c("b") < most, lambda c: c("a") + c("b") < most,
        lambda c: c("a") + c("b") < most,
    )  # fmt: skip
    part = DAYS[share]
    below: Callable[[Any], Any] = (lambda value: value < 12) if part == "hour" else (lambda value: value == 7)
    yield f"part of a date: {part}", Condition(
        f"{part}(\"at\") {'< 12' if part == 'hour' else '= 7'}", lambda c: below(getattr(c("at"), part)()),
        lambda c: below(getattr(c("at").dt, part)()), lambda c: below(getattr(pc, part)(c("at"))),
    )  # fmt: skip


def keys(inputs: Inputs, column: str, count: int) -> Any:
    """Keys, half of which are in the file."""
    rows = inputs.sizes.rows // 2
    drawn = np.random.default_rng(count).choice(rows, min(count, rows) // 2, replace=False)
    if column == "name":
        return pa.array([f"name {k}" for k in [*drawn.tolist(), *(drawn + rows).tolist()]])
    there = inputs.table("articles", rows)["id"].take(pa.array(drawn)).to_pylist()
    return pa.array(there + [value[::-1] for value in there])


def lines(inputs: Inputs) -> Iterator[Line]:
    """Ten questions, each at three shares; text and binary keys by the number of them."""
    rows = inputs.sizes.rows // 2
    read = partial(
        Read, group="professions", writer="pyarrow", target=0.8, with_floor=True,
        path=partial(inputs.file, "pyarrow", PLAIN, "articles", rows), table=partial(inputs.table, "articles", rows),
    )  # fmt: skip
    for share in (1, 10, 50):
        for name, condition in (*of_text(share), *of_numbers(share)):
            query = Query(OUT, condition=condition)
            yield read(name=f"{name}, {share} %", queries=lambda query=query: [query])
    for column in ("name", "id"):
        for count in (10, 1_000, 100_000):

            def ask(column: str = column, count: int = count) -> list[Query]:
                return [Query(("a", column), (Term(column, "in", keys(inputs, column, count)),))]

            yield read(name=f"{count:,} keys, {'text' if column == 'name' else 'binary'}", queries=ask)
    for codec, level in (("snappy", None), ("zstd", 3)):
        write = partial(Write, group="professions", target=0.9, job=WriteJob(codec, level), with_floor=True)
        yield write(name=f"articles, {codec}", table=partial(inputs.table, "articles", rows))
        yield write(name=f"vectors, {codec}", table=partial(vectors, rows // 8))
    for parts in (60, 2_000):
        yield Folders(
            group="professions", name=f"a folder of {parts:,} partitions", target=0.8,
            table=partial(parted, rows, parts), calls=FOLDERS,
        )  # fmt: skip
    yield Objects(
        group="professions", name="dicts with times, decimals and UUIDs in", target=0.7,
        rows=partial(odd_rows, rows // 20), calls=TAKEN_IN,
    )  # fmt: skip


# ---- what is written


def vectors(rows: int) -> pa.Table:
    """Embeddings: 64 numbers of 32 bits, of length 1."""
    found = np.random.default_rng(64).normal(size=(rows, 64)).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(found.reshape(-1)), 64)
    return pa.table({"id": np.arange(rows), "vector": flat})


def parted(rows: int, parts: int) -> pa.Table:
    rng = np.random.default_rng(parts)
    return pa.table({
        "part": rng.integers(0, parts, rows), "id": np.arange(rows), "price": np.round(rng.gamma(2.0, 30.0, rows), 2),
        "city": pa.array([f"city {k}" for k in range(500)]).take(pa.array(rng.integers(0, 500, rows))),
    })  # fmt: skip


def odd_rows(rows: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(20)
    start = dt.datetime(2024, 1, 1)
    return [
        {
            "at": start + dt.timedelta(microseconds=int(at)), "day": dt.date.fromordinal(738_000 + int(day)),
            "price": Decimal(int(cents)).scaleb(-2), "key": str(uuid.UUID(int=int(cents) << 40 | int(at))),
        }
        for at, day, cents in zip(
            rng.integers(0, 10**13, rows), rng.integers(0, 900, rows), rng.integers(0, 10**6, rows), strict=True
        )
    ]  # fmt: skip


def duckdb_folder(table: pa.Table, folder: Path) -> None:
    connection = duckdb.connect()
    connection.register("source", table)
    connection.execute(f"copy source to '{folder}' (format parquet, partition_by (part))")


FOLDERS: dict[str, Callable[[Any, Path], Any]] = {
    "pyparq": lambda table, folder: pyparq.write_dataset(table, folder, partition_cols=["part"]),
    "pyarrow": lambda table, folder: pq.write_to_dataset(table, folder, partition_cols=["part"], max_partitions=5_000),
    "polars": lambda table, folder: pl.from_arrow(table).write_parquet(  # type: ignore[union-attr]
        folder, partition_by=["part"], mkdir=True, compression="snappy"
    ),
    "duckdb": duckdb_folder,
}


@dataclass(frozen=True, kw_only=True)
class Folders(Line):
    """A table written as a folder with a partition for each value of ``part``."""

    table: Callable[[], pa.Table]
    calls: dict[str, Callable[[Any, Path], Any]]

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        table = self.table()
        targets = {e.name: inputs.scratch(f"{e.name}-folder") for e in engines if e.name in self.calls}

        def clear(name: str) -> None:
            shutil.rmtree(targets[name], ignore_errors=True)

        refused = {}
        for name in list(targets):
            clear(name)
            try:
                self.calls[name](table, targets[name])
                parts = ds.partitioning(pa.schema([("part", pa.int64())]), flavor="hive")
                found = ds.dataset(targets[name], partitioning=parts).to_table().sort_by("id")
                measure.compare(found.select(["id", "price", "city"]), table.drop(["part"]), name, keeps_order=True)
            except Exception as error:
                if name == "pyparq":
                    raise
                refused[name] = f"{type(error).__name__}: {error}"[:200]
                del targets[name]
        calls = {name: (lambda _, name=name: self.calls[name](table, targets[name])) for name in targets}
        timings = measure.interleave(calls, inputs.sizes.runs, budget=2 * inputs.sizes.budget, before=clear)
        for name in targets:
            clear(name)
        return self.figures(timings, set(targets) - {"pyparq"}, refused)
