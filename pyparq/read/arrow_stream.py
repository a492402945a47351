"""One run of a scan as a stream of Arrow batches (the Arrow C stream interface). The consumer asks for each batch."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Protocol

from pyparq.arrow.c_export import batch_capsule, schema_capsule
from pyparq.arrow.table import Batch
from pyparq.errors import CorruptFileError
from pyparq.format.types import Schema
from pyparq.read.hinted_types import depends_on_data


class Streamed(Protocol):
    """A scan, of one file or of many."""

    @property
    def schema(self) -> Schema: ...
    def batches(self) -> Generator[Batch]: ...


class ScanStream:
    """The batches of ``scan``, one after the other. Only this stream may use the scan.

    Nothing is read before the first batch is requested. The schema is an exception: where the data may contradict the
    hints of ``ARROW:schema``, the first batch is read to know it. The file stays open as long as this object refers to
    it. After the file is closed by name, the next batch is an :class:`OptionError`.
    """

    def __init__(self, scan: Streamed, name: str, check_open: Callable[[], None] | None = None) -> None:
        """``name``: of the source, for messages. ``check_open``: raises if the file is closed."""
        self._name = name
        self._check_open = check_open
        self._promised = scan.schema
        self._batches: Generator[Batch] = scan.batches()
        self._ahead: Batch | None = None
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        """The schema of all batches."""
        if self._schema is None:
            self._schema = self._found_schema()
        return self._schema

    def _found_schema(self) -> Schema:
        if not any(depends_on_data(field.type) for field in self._promised.fields):
            return self._promised
        self._ahead = self._next()
        return self._promised if self._ahead is None or self._ahead.schema is None else self._ahead.schema

    def __iter__(self) -> ScanStream:
        return self

    def __next__(self) -> Batch:
        schema = self.schema
        batch, self._ahead = self._ahead or self._next(), None
        if batch is None:
            raise StopIteration
        if batch.schema is not None and [f.type for f in batch.schema.fields] != [f.type for f in schema.fields]:
            raise CorruptFileError("a batch has other types than the stream's schema", file=self._name)
        return batch

    def _next(self) -> Batch | None:
        if self._check_open is not None:
            self._check_open()
        return next(self._batches, None)

    # ---- what pyparq.kernels.arrow_stream asks for

    def get_schema(self) -> object:
        return schema_capsule(self.schema)

    def get_next(self) -> object:
        batch = next(self, None)
        if batch is None:
            return None
        return batch_capsule(batch.columns, batch.num_rows)

    def close(self) -> None:
        """Release the batch that was read and the file."""
        self._batches.close()
        self.__dict__.clear()
