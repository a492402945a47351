"""Rows as lines of JSON or CSV, and into files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

import click

from pyparq.cli.values import cell_format, cell_json
from pyparq.errors import OptionError

_BATCH = 4096
"""Rows turned into Python objects at a time."""


def pieces(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches cut small, so that few rows are Python objects at any time."""
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            yield batch.slice(start, min(_BATCH, batch.num_rows - start))


def json_lines(schema: Any, batches: Iterable[Any]) -> Iterator[str]:
    """One JSON object per row, a line each."""
    from pyparq.convert import column_to_pylist

    names, converters = schema.names, [cell_json(f.type) for f in schema.fields]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise OptionError(f"several columns are called {twice!r}, and a JSON object holds one: take CSV or a table")
    for batch in pieces(batches):
        lists = [
            [convert(v) for v in column_to_pylist(column)]
            for convert, column in zip(converters, batch.columns, strict=True)
        ]
        for row in range(batch.num_rows):
            values = {name: values[row] for name, values in zip(names, lists, strict=True)}
            yield json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"


def csv_lines(schema: Any, batches: Iterable[Any]) -> Iterator[str]:
    """CSV (RFC 4180 quoting, lines end in a line feed): a null is empty, an empty string is ``""``."""
    from pyparq.convert import check_field_names, column_to_pylist

    for field in schema.fields:  # before the line of names: what cannot be shown is refused before anything is
        check_field_names(field.type)
    formats = [cell_format(f.type) for f in schema.fields]
    yield ",".join(map(_csv_cell, schema.names)) + "\n"
    for batch in pieces(batches):
        lists = [
            ["" if v is None else _csv_cell(form(v)) for v in column_to_pylist(column)]
            for form, column in zip(formats, batch.columns, strict=True)
        ]
        for row in range(batch.num_rows):
            yield ",".join([values[row] for values in lists]) + "\n"


def _csv_cell(text: str) -> str:
    if text == "" or text != text.strip() or any(c in text for c in '",\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def save(path: str, schema: Any, batches: Iterable[Any]) -> int:
    """Write rows to a file, in the form that its suffix says; the number of rows. A local file appears complete or not
    at all."""
    suffix = PurePath(path).suffix.lower()
    counted = _Counted(batches)
    if suffix in (".parquet", ".pq"):
        _save_parquet(path, schema, counted)
    elif suffix in (".json", ".jsonl", ".ndjson"):
        _save_lines(path, json_lines(schema, counted))
    elif suffix == ".csv":
        _save_lines(path, csv_lines(schema, counted))
    else:
        raise click.UsageError(
            f"--output {path!r}: the suffix must be .parquet, .csv or .json", ctx=click.get_current_context()
        )
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


def _save_parquet(path: str, schema: Any, batches: Iterable[Any]) -> None:
    from pyparq.table import Table
    from pyparq.write.file import ParquetWriter

    with ParquetWriter(path, schema) as writer:
        for batch in batches:
            writer.write(Table(schema, [batch]))


def _save_lines(path: str, lines: Iterable[str]) -> None:
    from pyparq.io.sink import open_sink

    sink = open_sink(path)
    try:
        for line in lines:
            sink.write([line.encode("utf-8", "surrogatepass")])
        sink.commit()
    except BaseException:
        sink.abort()
        raise
