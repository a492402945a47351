"""Rows into files: Parquet, CSV, JSON lines, Arrow (IPC) and Feather."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import click

from pyparq.cli.options import misused, storage_for
from pyparq.cli.output import count
from pyparq.cli.sources import PIPE, complete_output
from pyparq.errors import CorruptFileError
from pyparq.io.sink import open_sink
from pyparq.io.url import shown
from pyparq.runtime.text import visible

FORMS = ("parquet", "csv", "jsonl", "arrow", "feather")
_SUFFIXES = {
    ".parquet": "parquet", ".parq": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "jsonl",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow", ".ipc": "arrow", ".arrows": "arrow",
    ".feather": "feather",
}  # fmt: skip


def suffix_of(path: str) -> str:
    return PurePath(urlsplit(path).path if "://" in path else path).suffix.lower()


def known_form(path: str) -> str | None:
    """The form that the suffix of a path or URL stands for; ``None`` for any other suffix."""
    return _SUFFIXES.get(suffix_of(path))


def form_of(path: str) -> str:
    """The same; any other suffix is an error, and Parquet goes to standard output."""
    form = "parquet" if path == PIPE else known_form(path)
    if form is None:
        misused(f"{shown(path)!r}: the suffix must be .parquet, .csv, .jsonl, .arrow or .feather")
    return form


def save(path: str, schema: Any, batches: Iterable[Any], form: str | None = None, **options: Any) -> int:
    """Write rows to a file; the number of rows. A file appears complete or not at all.

    ``path``: ``-`` is standard output. ``form``: one of :data:`FORMS`; by default what the suffix says. ``options``:
    those of the Parquet file.
    """
    form = form or form_of(path)
    rows = _Rows(schema, batches)
    if form in ("jsonl", "csv"):
        from pyparq.cli.cells import csv_lines, json_lines

        _save_lines(path, (json_lines if form == "jsonl" else csv_lines)(schema, rows))
        return rows.count
    with complete_output(path) as target:
        if form == "parquet":
            _save_parquet(target, rows, options)
        else:
            _save_arrow(target, rows)
    return rows.count


def save_and_say(path: str, schema: Any, batches: Iterable[Any], form: str | None = None) -> None:
    """The same, and a line on stderr."""
    say_written(path, save(path, schema, batches, form))


def say_written(path: str, rows: int) -> None:
    if path != PIPE:
        click.echo(f"wrote {count(rows, 'row')} to {visible(path)}", err=True)


class _Rows:
    """Batches on their way, counted."""

    def __init__(self, schema: Any, batches: Iterable[Any]) -> None:
        self.schema = schema
        self.count = 0
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self.count += batch.num_rows
            yield batch


def _save_lines(path: str, lines: Iterable[bytes]) -> None:
    if path == PIPE:
        for line in lines:
            sys.stdout.write(line.decode("utf-8", "surrogatepass"))
        return
    sink = open_sink(path, storage_options=storage_for(path))
    try:
        for line in lines:
            sink.write([line])
        sink.commit()
    finally:
        sink.abort()


def _save_parquet(target: Any, rows: _Rows, options: dict[str, Any]) -> None:
    from pyparq.arrow.table import Table
    from pyparq.write.file import ParquetWriter

    with ParquetWriter(target, rows.schema, storage_options=storage_for(target), **options) as writer:
        for batch in rows:
            writer.write(Table(rows.schema, [batch]))


# ---- Arrow IPC files, by pyarrow


def _save_arrow(target: Any, rows: _Rows) -> None:
    """An Arrow IPC file, which is also a Feather file of version 2. ``target``: a path, or an open file."""
    import pyarrow as pa
    from pyarrow import ipc

    sink = open_sink(target, storage_options=storage_for(target))
    try:
        with ipc.new_file(_SinkFile(sink), pa.schema(rows.schema)) as writer:
            for batch in rows:
                batch.schema = rows.schema
                writer.write_batch(pa.record_batch(batch))
        sink.commit()
    finally:
        sink.abort()


class _SinkFile:
    """A sink as the file object that pyarrow writes to. Its owner closes it."""

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

    close = flush


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
            return ipc.open_stream(opened)
        except pa.ArrowInvalid as error:
            raise CorruptFileError("this is neither an Arrow IPC file nor a stream", file=name) from error
    return pa.RecordBatchReader.from_batches(reader.schema, map(reader.get_batch, range(reader.num_record_batches)))
