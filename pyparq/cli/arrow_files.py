"""Arrow IPC files (``.arrow``, ``.feather``), by pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyparq.errors import CorruptFileError


class _Rows:
    """Batches that pyarrow takes as a stream."""

    def __init__(self, schema: Any, batches: Iterable[Any]) -> None:
        self._parts = schema, batches

    def __pyparq_stream__(self) -> tuple[Any, Iterator[Any]]:
        return self._parts[0], iter(self._parts[1])


def save_arrow(target: Any, schema: Any, batches: Iterable[Any], storage: dict[str, Any] | None) -> None:
    """Write rows as an Arrow IPC file, which is also a Feather file of version 2. ``target``: a path, or an open
    file."""
    import pyarrow as pa
    from pyarrow import ipc

    from pyparq.io.sink import open_sink

    sink = open_sink(target, storage_options=storage)
    try:
        with ipc.new_file(_SinkFile(sink), pa.schema(schema)) as writer:
            for batch in batches:
                batch.schema = schema
                writer.write_batch(pa.record_batch(batch))
        sink.commit()
    finally:
        sink.abort()


class _SinkFile:
    """A sink as the file object that pyarrow writes to."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        self._sink.write([data])
        return len(data)

    def tell(self) -> int:
        return int(self._sink.position)

    def flush(self) -> None:
        """The sink is complete when it is committed."""

    def close(self) -> None:
        """The sink is closed by its owner."""


def read_arrow(source: Any, name: str) -> Any:
    """The rows, as a stream, of an Arrow IPC file or stream. ``source``: a path, or a file that can seek."""
    import pyarrow as pa
    from pyarrow import ipc

    opened = pa.memory_map(source) if isinstance(source, str) else pa.PythonFile(source)
    try:
        reader = ipc.open_file(opened)
    except pa.ArrowInvalid:
        opened.seek(0)
        try:
            stream = ipc.open_stream(opened)
        except pa.ArrowInvalid as error:
            raise CorruptFileError("this is neither an Arrow IPC file nor a stream", file=name) from error
        return stream
    return pa.RecordBatchReader.from_batches(reader.schema, map(reader.get_batch, range(reader.num_record_batches)))
