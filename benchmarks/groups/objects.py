"""Rows as Python's dicts: taken in, written, and handed out. Peers are those that have such a call."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import measure
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from engines import Engine
from inputs import Inputs
from lines import Line

import pyparq

Rows = list[dict[str, Any]]


def flat_rows(count: int, seed: int) -> Rows:
    """Numbers, text and flags, some of them null."""
    rng = np.random.default_rng(seed)
    words = [f"word {n} of é" if n % 9 == 0 else f"word {n}" for n in rng.integers(0, 5000, count)]
    columns = {
        "id": rng.integers(0, 1 << 50, count).tolist(),
        "word": words,
        "share": rng.random(count).tolist(),
        "open": (rng.random(count) < 0.3).tolist(),
        "note": [None if gone else f"note {k}" for k, gone in enumerate(rng.random(count) < 0.4)],
        "code": rng.integers(0, 90, count).tolist(),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def nested_rows(count: int, seed: int) -> Rows:
    """The same with a list of numbers, a struct, and a list of structs."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, count).tolist()
    return [
        row
        | {
            "tags": list(range(n)),
            "at": {"x": row["id"], "y": row["share"]},
            "parts": [{"n": k, "t": "t"} for k in range(n // 2)],
        }
        for row, n in zip(flat_rows(count, seed), lengths, strict=True)
    ]


def ours_written(rows: Iterable[dict[str, Any]]) -> None:
    pyparq.write_table(rows, io.BytesIO())


def arrow_written(rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist(rows), io.BytesIO())


def polars_written(rows: Rows) -> None:
    pl.from_dicts(rows, infer_schema_length=None).write_parquet(io.BytesIO(), compression="snappy")


TAKEN_IN: dict[str, Callable[[Any], Any]] = {
    "pyparq": pyparq.Table.from_pylist, "pyarrow": pa.Table.from_pylist,
    "polars": partial(pl.from_dicts, infer_schema_length=None),
}  # fmt: skip


def lines(inputs: Inputs) -> Iterator[Line]:
    count = max(50, inputs.sizes.rows // 20)
    for part in (100, 10):
        yield Objects(
            group="objects", name=f"{count // part:,} flat dicts in", target=1.0, counted=False,
            curve=("dicts in", count // part), rows=partial(flat_rows, count // part, 37), calls=TAKEN_IN,
        )  # fmt: skip
    yield Objects(
        group="objects", name="flat dicts of a generator, written", target=1.0, rows=partial(flat_rows, count, 38),
        calls={
            "pyparq": lambda rows: ours_written(row for row in rows),
            "pyarrow": lambda rows: arrow_written(list(rows)),
            "polars": lambda rows: polars_written(list(rows)),
        },
    )  # fmt: skip
    for kind, make in (("flat", partial(flat_rows, count, 35)), ("nested", partial(nested_rows, count, 36))):
        yield Objects(
            group="objects", name=f"{kind} dicts in", target=1.0, rows=make, calls=TAKEN_IN,
            curve=("dicts in", count) if kind == "flat" else None,
        )  # fmt: skip
        yield Objects(
            group="objects", name=f"{kind} dicts written", target=1.0, rows=make,
            calls={"pyparq": ours_written, "pyarrow": arrow_written, "polars": polars_written},
        )  # fmt: skip
        yield Objects(
            group="objects", name=f"{kind} dicts out", target=1.0, rows=make,
            calls={
                "pyparq": lambda table: table.to_pylist(), "pyarrow": lambda table: table.to_pylist(),
                "polars": lambda table: table.to_dicts(),
            },
            tables=TAKEN_IN,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Objects(Line):
    """One call over rows, or over the table that ``tables`` makes of them."""

    rows: Callable[[], Rows]
    calls: dict[str, Callable[[Any], Any]]
    tables: dict[str, Callable[[Rows], Any]] | None = None

    def measure(self, engines: Sequence[Engine], inputs: Inputs) -> dict[str, Any]:
        rows = self.rows()
        names = [engine.name for engine in engines if engine.name in self.calls]
        given = {name: rows if self.tables is None else self.tables[name](rows) for name in names}
        for name in names:
            found = self.calls[name](given[name])
            made = found if isinstance(found, list) or found is None else pa.table(found).to_pylist()
            if made is not None and made != rows:
                raise AssertionError(f"{self.name}: {name} gives other rows")
        timings = measure.interleave(
            {name: (lambda _, name=name: self.calls[name](given[name])) for name in names},
            inputs.sizes.runs, budget=inputs.sizes.budget,
        )  # fmt: skip
        return self.figures(timings, set(names) - {"pyparq"}, {})
