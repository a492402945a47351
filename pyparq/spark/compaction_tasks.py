"""The tasks of a compaction: take samples, split rows into ranges, write files."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.ingest import ingest
from pyparq.arrow.pandas_key import in_other_order
from pyparq.arrow.record_batch import RecordBatch
from pyparq.datasets.dataset import dataset
from pyparq.datasets.scan import DatasetPlan
from pyparq.datasets.write.store_commit import StoreStaging
from pyparq.datasets.write.write_dataset import write_staged
from pyparq.format.types import Schema
from pyparq.options import WriteOptions
from pyparq.spark.keys import keys_of
from pyparq.spark.ordering import Numbers, Order
from pyparq.spark.write_tasks import TaskReply, WriteJob
from pyparq.write.column_plans import make_plan
from pyparq.write.external_sort import ExternalSorter

if TYPE_CHECKING:
    import pyarrow as pa

_RANGE, _NUMBER = "pyparq.range", "pyparq.number"
"""Columns of pieces: which range a row is in, and its number in the order."""
SAMPLE_ROWS = 1 << 14
"""Rows that one task takes into the sample."""
SORT_BYTES = 1 << 30
"""Memory of one task for sorting: more rows wait in temporary files."""
_OF_PIECES = {"compression": "snappy", "use_dictionary": False, "write_page_index": False, "write_statistics": False,
              "store_schema": True, "use_threads": False}  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """An order, and where its ranges begin."""

    order: Order
    begins: Numbers


@dataclass(frozen=True)
class Piece:
    """Rows of one range: a file in staging."""

    range: int
    place: str


@dataclass(frozen=True)
class Work:
    """One new file, and the files or rows that it is made from."""

    number: int
    folders: tuple[str, ...]
    plan: DatasetPlan | None
    pieces: tuple[Piece, ...]
    order: Order | None
    """A Z-order that its rows are put in; a sort order is an option of the file."""


def do(step: str, payload: Any, settings: Mapping[str, Any], attempt: str) -> Any:
    """One step of a compaction."""
    job, decryption = settings["job"], settings["decryption"]
    if step == "sample":
        return _sample(payload, job, decryption)
    if step == "pieces":
        plan, cut = payload
        return _pieces(plan, cut, job, decryption, attempt)
    return _file(payload, job, decryption, attempt)


def _scan(plan: DatasetPlan, job: WriteJob, decryption: str | None) -> Any:
    return plan.scan(decryption=keys_of(decryption), storage_options=job.storage_options, use_threads=False)


def _sample(plan: DatasetPlan, job: WriteJob, decryption: str | None) -> bytes:
    """Some rows of the key columns, evenly spread, as an Arrow stream."""
    import pyarrow as pa

    step = max(plan.num_rows // SAMPLE_ROWS, 1)
    sink, first = pa.BufferOutputStream(), 0
    reader = pa.RecordBatchReader.from_stream(_scan(plan, job, decryption))
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            picked = np.arange(first, batch.num_rows, step)
            first = (first - batch.num_rows) % step
            writer.write_batch(batch.take(pa.array(picked)))
    return bytes(sink.getvalue())


def _pieces(plan: DatasetPlan, cut: Cut, job: WriteJob, decryption: str | None, attempt: str) -> list[Piece]:
    """The rows, each in the piece of its range."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(_scan(plan, job, decryption))
    schema = reader.schema.append(pa.field(_NUMBER, pa.int64())).append(pa.field(_RANGE, pa.int32()))

    def parted() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            numbers = cut.order.numbers(batch)
            ranges = np.searchsorted(cut.begins, numbers, side="right").astype(np.int32)
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(numbers), pa.array(ranges)], schema=schema)

    made = write_staged(
        pa.RecordBatchReader.from_batches(schema, parted()), job.staging, attempt, partition_cols=(_RANGE,),
        schema=schema, even_empty=False, prefix="piece", options=_OF_PIECES, storage_options=job.storage_options,
    )  # fmt: skip
    return [Piece(int(part.file.path.split("/")[0].rpartition("=")[2]), _place(part.file.staged, job)) for part in made]


def _place(staged: str, job: WriteJob) -> str:
    if isinstance(job.staging, StoreStaging):
        return posixpath.join(job.staging.folder, posixpath.basename(staged))
    return staged


def _file(work: Work, job: WriteJob, decryption: str | None, attempt: str) -> TaskReply:
    """The new file."""
    rows: Any
    if work.plan is not None:
        rows = _scan(work.plan, job, decryption)
        rows = rows if work.order is None else _sorted(_numbered(rows, work.order), job)
    else:
        scan = dataset([piece.place for piece in work.pieces], storage_options=_for_places(work, job)).scan()
        rows = _without_number(scan) if work.order is None else _sorted(scan, job)
    made = write_staged(
        rows, job.staging, attempt, partition_cols=(), schema=job.schema, even_empty=False,
        prefix=f"part-{work.number:05d}", options=job.write_options(), storage_options=job.storage_options,
    )  # fmt: skip
    inner = "/".join(work.folders)
    placed = (replace(part, file=replace(part.file, path=os.path.join(inner, part.file.path))) for part in made)
    return TaskReply(work.number, tuple(placed))


def _for_places(work: Work, job: WriteJob) -> Any:
    return job.storage_options if any("://" in piece.place for piece in work.pieces) else None


class _Rows:
    """Batches that come one after another."""

    def __init__(self, schema: Schema, batches: Iterator[RecordBatch]) -> None:
        self._parts = schema, batches

    def __pyparq_stream__(self) -> tuple[Schema, Iterator[RecordBatch]]:
        return self._parts


def _numbered(scan: Any, order: Order) -> Any:
    """The rows, with their number in the order as the last column."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(scan)
    schema = reader.schema.append(pa.field(_NUMBER, pa.int64()))
    batches = (
        pa.RecordBatch.from_arrays([*batch.columns, pa.array(order.numbers(batch))], schema=schema) for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _without_number(rows: Any) -> _Rows:
    schema, batches = ingest(rows)
    return _Rows(_own(schema), (RecordBatch(batch.columns[:-1], batch.num_rows) for batch in batches))


def _own(schema: Schema) -> Schema:
    return replace(schema, fields=schema.fields[:-1])


def _sorted(rows: Any, job: WriteJob) -> _Rows:
    """The rows in the order of their numbers, without these."""
    schema, batches = ingest(rows)
    sorter = ExternalSorter(
        make_plan(schema, WriteOptions(sort_by=[_NUMBER])), SORT_BYTES, None, job.encryption is not None
    )

    def in_order() -> Iterator[RecordBatch]:
        try:
            for batch in batches:
                sorter.add(batch)
            for batch in sorter.batches():
                yield RecordBatch(batch.columns[:-1], batch.num_rows)
        finally:
            sorter.close()

    return _Rows(in_other_order(_own(schema)), in_order())
