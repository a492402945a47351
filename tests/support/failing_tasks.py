"""Functions of tasks that fail as the system and Arrow do. Workers import them from here."""

from __future__ import annotations

import errno
import os
from typing import Any

import pyarrow as pa

import pyparq


def full_disk(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/new.parquet")


def no_keys() -> Any:
    """As a factory of keys: what the request needs is not there."""
    raise pyparq.UnsupportedError("there are no keys here")


def lossy_cast(*_: Any) -> Any:
    raise pa.ArrowInvalid("Casting from timestamp[ns] to timestamp[us] would lose data: 1")


def lossy_stream(*_: Any) -> Any:
    def batches() -> Any:
        yield lossy_cast()

    pa.RecordBatchReader.from_batches(pa.schema([]), batches()).read_all()


def no_memory(*_: Any) -> Any:
    raise MemoryError
