"""Rows as lines of JSON or CSV, and into files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pyparq.cli.arrow_files import save_arrow
from pyparq.cli.forms import form_of
from pyparq.cli.pipes import PIPE, complete_output
from pyparq.cli.storage import storage_for
from pyparq.errors import OptionError

CELLS = 1 << 19
"""Cells put together at a time, at most."""
FIRST = 1 << 10
"""Rows of the first piece, so that a pipe has something to show at once."""


def pieces(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches cut small: few cells are text at any time."""
    most = FIRST
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, min(most, batch.num_rows - start))
            yield piece
            start += piece.num_rows
            most = max(CELLS // max(len(batch.columns), 1), FIRST)


def json_lines(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """One JSON object per row, a line each."""
    from pyparq.cli.cells import JSON, cells_of, lines

    names = schema.names
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise OptionError(f"several columns are called {twice!r}, which a JSON object cannot hold: use CSV or a table")
    before = [f"{', ' if k else '{'}{json.dumps(name, ensure_ascii=False)}: " for k, name in enumerate(names)]
    for batch in pieces(batches):
        columns = [cells_of(column, JSON, field) for column, field in zip(batch.columns, schema.fields, strict=True)]
        yield lines(columns, before, "}\n" if names else "{}\n", batch.num_rows)


def csv_lines(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """CSV (RFC 4180 quoting, lines end in a line feed): a null is empty, an empty string is ``""``."""
    from pyparq.arrow.to_python import check_field_names
    from pyparq.cli.cells import CSV, cells_of, csv_cell, lines

    for field in schema.fields:  # before the line of names: what cannot be shown is refused before anything is
        check_field_names(field.type)
    yield (",".join(map(csv_cell, schema.names)) + "\n").encode("utf-8", "surrogatepass")
    before = ["" if k == 0 else "," for k in range(len(schema.fields))]
    for batch in pieces(batches):
        columns = [cells_of(column, CSV, field) for column, field in zip(batch.columns, schema.fields, strict=True)]
        yield lines(columns, before, "\n", batch.num_rows)


def save(path: str, schema: Any, batches: Iterable[Any], form: str | None = None, **options: Any) -> int:
    """Write rows to a file; the number of rows. A file appears complete or not at all.

    ``path``: ``-`` is standard output. ``form``: one of :data:`pyparq.cli.forms.FORMS`; by default what the suffix
    says, and Parquet on standard output. ``options``: those of the Parquet file.
    """
    form = form or ("parquet" if path == PIPE else form_of(path))
    counted = _Counted(batches)
    if form in ("jsonl", "csv"):
        lines = (json_lines if form == "jsonl" else csv_lines)(schema, counted)
        _print_lines(lines) if path == PIPE else _save_lines(path, lines)
        return counted.rows
    with complete_output(path) as target:
        if form == "parquet":
            _save_parquet(target, schema, counted, options)
        else:
            save_arrow(target, schema, counted, storage_for(path))
    return counted.rows


class _Counted:
    """Batches on their way, counted."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _save_parquet(target: Any, schema: Any, batches: Iterable[Any], options: dict[str, Any]) -> None:
    from pyparq.arrow.table import Table
    from pyparq.write.file import ParquetWriter

    with ParquetWriter(target, schema, storage_options=storage_for(target), **options) as writer:
        for batch in batches:
            writer.write(Table(schema, [batch]))


def _print_lines(lines: Iterable[bytes]) -> None:
    for line in lines:
        sys.stdout.write(line.decode("utf-8", "surrogatepass"))


def _save_lines(path: str, lines: Iterable[bytes]) -> None:
    from pyparq.io.sink import open_sink

    sink = open_sink(path, storage_options=storage_for(path))
    try:
        for line in lines:
            sink.write([line])
        sink.commit()
    except BaseException:
        sink.abort()
        raise
