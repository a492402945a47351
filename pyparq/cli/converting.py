"""``pyparq import`` and ``pyparq convert``: rows from files of one form into a file of another."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

import click

from pyparq.cli.options import JSON, SOURCE, WRITING, all_of, complete_files, memory, misused
from pyparq.cli.output import Busy, print_json
from pyparq.cli.saving import FORMS, form_of, known_form, read_arrow, save, say_written
from pyparq.cli.sources import CHUNK, NAME, PIPE, check_no_terminal, opened_any, standard_input
from pyparq.cli.text_files import TextOptions, opened_text, parse_types
from pyparq.io.url import shown

PACKED = (".gz", ".zst")
OPTIONS = all_of(
    click.option("--delimiter", metavar="CHAR", help="Between the fields of CSV: a comma, or in .tsv a tab."),
    click.option("--encoding", metavar="NAME", help="Of CSV, such as latin-1 or utf-16. [default: utf-8]"),
    click.option("--null", "nulls", multiple=True, metavar="TEXT", help="Text that means null in CSV, such as NA. May "
                 "be repeated. An empty field without quotes always does."),
    click.option("--type", "types", multiple=True, metavar="NAME=TYPE", help="The SQL type of a column instead of the "
                 "one that is found, such as zip=varchar. May be repeated."),
    WRITING,
    memory("Memory for reading text"),
    JSON,
)  # fmt: skip


@click.command("import")
@SOURCE
@click.option("--output", "-o", metavar="PATH", shell_complete=complete_files,
              help="The Parquet file. [default: SOURCE with the suffix .parquet]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the Parquet file beside SOURCE, if there is one.")
@click.option("--from", "form", type=click.Choice(["csv", "jsonl"]), help="What SOURCE is, whatever its suffix.")
@OPTIONS
def import_command(file: str, output: str | None, overwrite: bool, form: str | None, **options: Any) -> None:
    """Make a Parquet file of CSV with a header line, or of JSON lines (one object per line).

    Types are found in all of the file, not in its first lines: numbers, dates and times as ISO 8601 writes them, true
    and false. Everything else stays text, as do numbers with leading zeros (007), dates such as 01/02/2024 or 24-01-02,
    and 0x1F. The file is read in pieces. A line with too few or too many fields is an error that names the line.

    Reading text needs duckdb: pip install "pyparq[import]".

    \b
    pyparq import flights.csv                         (writes flights.parquet)
    pyparq import readings.csv --null NA --type zip=varchar -o readings.parquet
    zcat log.jsonl.gz | pyparq import - --from jsonl -o log.parquet --sort-by time
    """
    if form is None:
        form = known_form(_unpacked(file)) if file != PIPE else None
        if form not in ("csv", "jsonl"):
            misused(f"{file!r} has no suffix .csv, .tsv or .jsonl: name its format with --from")
    if output is None:
        if file == PIPE:
            misused("say where to write with --output")
        output = str(PurePath(_unpacked(file)).with_suffix(".parquet"))
        if os.path.lexists(output) and not overwrite:
            misused(f"{output} exists: give --overwrite to replace it, or another file with --output")
    _convert(file, output, form, "parquet", **options)


@click.command("convert")
@SOURCE
@click.argument("output", metavar="OUTPUT", shell_complete=complete_files)
@click.option("--from", "form", type=click.Choice(FORMS), help="What SOURCE is, whatever its suffix.")
@click.option("--to", "target", type=click.Choice(FORMS), help="What OUTPUT shall be, whatever its suffix.")
@OPTIONS
def convert_command(file: str, output: str, form: str | None, target: str | None, **options: Any) -> None:
    """Turn a file into another form: Parquet, CSV, JSON lines, Arrow (IPC) or Feather, by the suffixes.

    SOURCE may be a folder or a glob of Parquet files. - is standard input or output. Types of text files are
    found as by 'pyparq import'. CSV and JSON lines need duckdb to be read. Arrow and Feather need pyarrow.

    \b
    pyparq convert flights.parquet flights.csv
    pyparq convert flights/ flights.feather
    pyparq convert flights.parquet - --to jsonl | jq .dest
    """
    if form is None:
        form = "parquet" if file == PIPE else known_form(_unpacked(file)) or "parquet"
    _convert(file, output, form, target or form_of(output), **options)


def _unpacked(path: str) -> str:
    """``x.csv`` for ``x.csv.gz``."""
    found = PurePath(path)
    return path[: -len(found.suffix)] if found.suffix in PACKED else path


def _convert(
    source: str, output: str, form: str, target: str, as_json: bool, delimiter: str | None, encoding: str | None,
    nulls: tuple[str, ...], types: tuple[str, ...], memory: int, **writing: Any,
) -> None:  # fmt: skip
    if output == PIPE and target not in ("csv", "jsonl"):
        check_no_terminal()
    text = TextOptions(delimiter, encoding, nulls, parse_types(types), memory)
    if output == PIPE and as_json:
        misused("--json prints a report, which needs an --output that is not -")
    given = {name: value for name, value in writing.items() if value} if target == "parquet" else {}
    with _rows(source, form, text) as (schema, batches), Busy("converting"):
        rows = save(output, schema, batches, target, **given)
    if as_json:
        print_json({"path": output, "num_rows": rows})
    else:
        say_written(output, rows)


@contextmanager
def _rows(source: str, form: str, text: TextOptions) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Schema and batches of a source."""
    if form == "parquet":
        with opened_any(source) as parquet:
            scan = parquet.scan()
            yield scan.schema, scan.iter_batches()
        return
    from pyparq.arrow.ingest import ingest

    if form in ("csv", "jsonl"):
        with _on_disk(source) as path, opened_text(path, _shown(source), form, text) as found:
            schema, batches = ingest(found)
            yield schema, _batches(schema, batches)
        return
    schema, batches = ingest(read_arrow(standard_input() if source == PIPE else source, _shown(source)))
    yield schema, _batches(schema, batches)


def _batches(schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    from pyparq.arrow.table import Batch

    for batch in batches:
        yield Batch(batch.columns, batch.num_rows, schema)


@contextmanager
def _on_disk(source: str) -> Iterator[str]:
    """The path of a source. What comes through a pipe waits in a temporary file: types are found in a first pass."""
    if source != PIPE:
        if "://" not in source and not os.path.isfile(source):
            os.stat(source)  # says what is wrong
            misused(f"{source} is a folder: give one file")
        yield source
        return
    with tempfile.NamedTemporaryFile(prefix="pyparq-") as made:
        shutil.copyfileobj(sys.stdin.buffer, made, CHUNK)
        made.flush()
        yield made.name


def _shown(source: str) -> str:
    return NAME if source == PIPE else shown(source)
