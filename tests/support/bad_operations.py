"""What users do with a remote file, each as a function whose result can be compared: for servers that misbehave."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyparq
import pyparq.polars
from pyparq import ParquetFile, col

ROWS = 30_000
READING: Any = {"tail_size": 1000, "coalesce_gap": 0, "retry_wait": 0.0}
"""Options with which a file takes many requests."""


@lru_cache
def table(version: int = 1) -> pa.Table:
    rng = np.random.default_rng(version)
    return pa.table({"id": rng.permutation(ROWS), "x": rng.random(ROWS), "y": rng.random(ROWS)})


@lru_cache
def data(version: int = 1) -> bytes:
    """Versions have the same size: only what a server says of them tells one from the other."""
    sink = io.BytesIO()
    options: Any = {"row_group_size": 10_000, "compression": "none", "use_dictionary": False}
    pyparq.write_table(table(version), sink, bloom_filters=["id"], write_page_checksum=False, **options)
    return sink.getvalue()


@dataclass(frozen=True)
class Place:
    """A remote file, and a folder that is free to be written to."""

    where: Any
    options: dict[str, Any]
    """Storage options, where they are needed."""
    folder: Path

    def target(self) -> Path:
        return self.folder / "new.parquet"


def _open(place: Place) -> ParquetFile:
    return ParquetFile(place.where, **READING, **place.options)


def _sorted(found: pa.Table) -> pa.Table:
    return found.sort_by("id")


def _read(place: Place) -> Any:
    return pyparq.read_table(place.where, **READING, **place.options).to_arrow()


def _columns_in_turn(place: Place) -> Any:
    with _open(place) as file:
        parts = [file.read([name]).to_arrow().column(name) for name in ("id", "x", "y")]
    return pa.table(parts, ["id", "x", "y"])


def _filter(place: Place) -> Any:
    return pyparq.read_table(place.where, filters=col("x") < 0.25, **READING, **place.options).to_arrow()


def _batches(place: Place) -> Any:
    with _open(place) as file:
        return pa.Table.from_batches([pa.record_batch(batch) for batch in file.scan().iter_batches()])


def _count(place: Place) -> Any:
    with _open(place) as file:
        return file.scan(filters=col("x") < 0.25).count()


def _take(place: Place) -> Any:
    with _open(place) as file:
        return file.take([5, 25_000, 12_345]).to_arrow()


def _plan(place: Place) -> Any:
    with _open(place) as file:
        plan = pickle.loads(pickle.dumps(file.scan(filters=col("id") < 100).plan()))
    with _open(place) as file:
        return _sorted(file.execute(plan).to_arrow())


def _lookup(place: Place) -> Any:
    dataset = pyparq.dataset([place.where], **READING, **place.options)
    return _sorted(dataset.lookup("id", [7, 29_999, 70_000]).to_arrow())


def _dataset_plan(place: Place) -> Any:
    dataset = pyparq.dataset([place.where, place.where], **READING, **place.options)
    return dataset.scan(["x"], filters=col("id") < 50).to_table().to_arrow()


def _polars(place: Place) -> Any:
    import polars

    lazy = pyparq.polars.scan(place.where, **READING, **place.options)
    found = lazy.filter(polars.col("x") < 0.25).select("id", "y").collect()
    return found.to_arrow()


def _stream(place: Place) -> Any:
    with _open(place) as file:
        return pa.table(file.scan(["y"]))


def _verify(place: Place) -> Any:
    report = pyparq.verify(place.where, **place.options)
    if report.ok:
        return True
    finding = report.findings[0]
    if not any(told in str(finding) for told in ("server", "connection", "answer", "changed", "No such")):
        raise AssertionError(f"a finding that blames the file: {finding}")
    raise OSError(str(finding))


def _add_indexes(place: Place) -> Any:
    pyparq.add_indexes(place.where, place.target(), bloom_filters=["y"], **place.options)
    return pq.read_table(place.target())


def _edit(place: Place) -> Any:
    pyparq.edit_metadata(place.where, place.target(), update={"a": "b"}, **place.options)
    found = pq.read_table(place.target())
    return found.replace_schema_metadata()


def _rewrite(place: Place) -> Any:
    pyparq.rewrite(place.where, place.target(), compression="zstd", **place.options)
    return pq.read_table(place.target())


def _merge(place: Place) -> Any:
    pyparq.merge([place.where, place.where], place.target(), **place.options)
    return pq.read_table(place.target())


OPERATIONS: dict[str, Callable[[Place], Any]] = {
    "read": _read, "columns in turn": _columns_in_turn, "filter": _filter, "batches": _batches, "count": _count,
    "take": _take, "plan": _plan, "lookup": _lookup, "dataset": _dataset_plan, "polars": _polars, "stream": _stream,
    "verify": _verify, "add_indexes": _add_indexes, "edit_metadata": _edit, "rewrite": _rewrite, "merge": _merge,
}  # fmt: skip
WRITES = {"add_indexes", "edit_metadata", "rewrite", "merge"}


@cache
def truth(how: str, version: int = 1) -> Any:
    """What pyarrow's view of the same rows gives."""
    whole = table(version)
    few = whole.filter(pa.compute.field("x") < 0.25)
    wanted: dict[str, Callable[[], Any]] = {
        "filter": lambda: few,
        "count": lambda: few.num_rows,
        "take": lambda: whole.take([5, 25_000, 12_345]),
        "plan": lambda: _sorted(whole.filter(pa.compute.field("id") < 100)),
        "lookup": lambda: _sorted(whole.filter(pa.compute.field("id").isin([7, 29_999]))),
        "dataset": lambda: pa.concat_tables([whole.filter(pa.compute.field("id") < 50).select(["x"])] * 2),
        "polars": lambda: few.select(["id", "y"]),
        "stream": lambda: whole.select(["y"]),
        "verify": lambda: True,
        "merge": lambda: pa.concat_tables([whole, whole]),
    }
    return wanted.get(how, lambda: whole)()
