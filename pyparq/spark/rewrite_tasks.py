"""What the tasks of a rewrite do: each writes its part of the rows into staging."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from pyparq.datasets.write.write_dataset import write_staged
from pyparq.spark.keys import keys_of
from pyparq.spark.partition_types import with_clocks, zoned_names
from pyparq.spark.write_tasks import TaskReply


def rewrite_task(payload: bytes, settings: Mapping[str, Any], attempt: str) -> TaskReply:
    """What one task does: its part of the rows, written to staging."""
    import pyarrow as pa

    number, job_number, part = pickle.loads(payload)
    job, decryption = settings["jobs"][job_number], settings["decryption"]
    scan = pickle.loads(part).scan(
        decryption=keys_of(decryption), storage_options=job.storage_options, use_threads=False
    )
    rows, schema = scan, job.schema
    zoned = zoned_names(pa.schema(job.schema), job.partition_cols, job.zone)
    if zoned:
        reader = pa.RecordBatchReader.from_stream(scan)
        rows = with_clocks(reader, reader.schema, zoned, job.zone)
        schema = rows.schema
    made = write_staged(
        rows, job.staging, attempt, partition_cols=job.partition_cols, schema=schema, even_empty=False,
        prefix=f"part-{number:05d}", options=job.write_options(), storage_options=job.storage_options,
    )  # fmt: skip
    return TaskReply(number, tuple(made))
