"""Rows on disk for a while: sorted runs in one temporary file. It has no name, so it ends with the process."""

from __future__ import annotations

import pickle
import secrets
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import concat, take
from pyparq.arrow.record_batch import RecordBatch
from pyparq.encryption.cipher import DataKey

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a run, column by column: where each column lies in the file."""

    num_rows: int
    places: tuple[tuple[int, int], ...]
    """Offset and length."""


class SpillFile:
    """Blocks of rows in a file in ``folder`` (``None``: where the system has temporary files). ``secret``: encrypted,
    with a key that exists in memory only."""

    def __init__(self, folder: str | None, secret: bool) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix="pyparq-sort-")  # noqa: SIM115
        self._key: Any = None
        if secret:
            self._key = DataKey(secrets.token_bytes(16))

    def store(self, batches: list[RecordBatch], order: Int64Array, block_rows: int) -> list[Block]:
        """Store the rows of ``batches`` (emptied) in an order, in blocks of so many rows."""
        columns = [[batch.columns[k] for batch in batches] for k in range(len(batches[0].columns))]
        batches.clear()
        parts = [order[at : at + block_rows] for at in range(0, len(order), block_rows)]
        places: list[list[tuple[int, int]]] = [[] for _ in parts]
        for k in range(len(columns)):
            joined, columns[k] = concat(columns[k]), []  # the parts go while the next columns are still there
            for into, rows in zip(places, parts, strict=True):
                into.append(self._append(_bare(take(joined, rows))))
        return [Block(len(rows), tuple(into)) for into, rows in zip(places, parts, strict=True)]

    def load(self, block: Block) -> RecordBatch:
        """The rows of a block."""
        columns = []
        for offset, length in block.places:
            self._file.seek(offset)
            data: Any = self._file.read(length)
            columns.append(pickle.loads(data if self._key is None else self._key.open(data, b"")))
        return RecordBatch(columns, block.num_rows)

    def close(self) -> None:
        self._file.close()

    def _append(self, column: Column) -> tuple[int, int]:
        data: Any = pickle.dumps(column, protocol=5)
        if self._key is not None:
            data = self._key.seal([data], b"")
        offset = self._file.seek(0, 2)
        self._file.write(data)
        return offset, memoryview(data).nbytes


def _bare(column: Column) -> Column:
    """Without the dictionary that the values were spelled out from: each block would store it anew."""
    if column.type.dictionary is None:
        column.dictionary = None
    column.children = tuple(map(_bare, column.children))
    return column
