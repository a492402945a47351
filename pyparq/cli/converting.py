"""``pyparq import`` and ``pyparq convert``: rows from files of one form into a file of another."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, TypeVar

import click

from pyparq.cli import completion
from pyparq.cli.common import JSON, SOURCE, opened_any, print_json
from pyparq.cli.export import save
from pyparq.cli.forms import FORMS, PACKED, form_of, known_form
from pyparq.cli.names import one_name
from pyparq.cli.pipes import CHUNK, NAME, PIPE, check_no_terminal, standard_input
from pyparq.cli.progress import Busy
from pyparq.cli.sizes import size
from pyparq.cli.sorting import sort_order
from pyparq.cli.text import count, visible
from pyparq.cli.text_files import TextOptions, opened_text, parse_types
from pyparq.io.url import shown

F = TypeVar("F", bound=Callable[..., Any])

_TEXT = (
    click.option("--delimiter", metavar="CHAR", help="Between the fields of CSV: a comma, or in .tsv a tab."),
    click.option("--encoding", metavar="NAME", help="Of CSV, such as latin-1 or utf-16. [default: utf-8]"),
    click.option("--null", "nulls", multiple=True, metavar="TEXT", help="Text that means null in CSV, such as NA. May "
                 "be repeated. An empty field without quotes always does."),
    click.option("--type", "types", multiple=True, metavar="NAME=TYPE", help="The SQL type of a column instead of the "
                 "one that is found, such as zip=varchar. May be repeated."),
)  # fmt: skip
_PARQUET = (
    click.option("--sort-by", multiple=True, metavar="COLUMN[:desc]", help="Sort all rows. May be repeated."),
    click.option("--compression", metavar="CODEC", help="none, snappy, gzip, zstd, brotli or lz4_raw."),
    click.option("--bloom", "blooms", multiple=True, metavar="COLUMN", help="Write Bloom filters. May be repeated."),
    click.option("--row-group-rows", type=click.IntRange(min=1), metavar="N", help="Rows per row group."),
)
_MEMORY = click.option("--memory", default="1G", metavar="SIZE", help="Memory for reading text, approximately (1G).")


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command("import")
@SOURCE
@click.option("--output", "-o", metavar="PATH", shell_complete=completion.files,
              help="The Parquet file. [default: SOURCE with the suffix .parquet]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the Parquet file beside SOURCE, if there is one.")
@click.option("--from", "form", type=click.Choice(["csv", "jsonl"]), help="What SOURCE is, whatever its suffix.")
@_all(*_TEXT, *_PARQUET, _MEMORY, JSON)
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
            raise click.UsageError(
                f"{file!r} has no suffix .csv, .tsv or .jsonl: name its format with --from",
                ctx=click.get_current_context(),
            )
    if output is None:
        if file == PIPE:
            raise click.UsageError("say where to write with --output", ctx=click.get_current_context())
        output = str(PurePath(_unpacked(file)).with_suffix(".parquet"))
        if os.path.lexists(output) and not overwrite:
            raise click.UsageError(
                f"{output} exists: give --overwrite to replace it, or another file with --output",
                ctx=click.get_current_context(),
            )
    _convert(file, output, form, None if output == PIPE else "parquet", options)


@click.command("convert")
@SOURCE
@click.argument("output", metavar="OUTPUT", shell_complete=completion.files)
@click.option("--from", "form", type=click.Choice(FORMS), help="What SOURCE is, whatever its suffix.")
@click.option("--to", "target", type=click.Choice(FORMS), help="What OUTPUT shall be, whatever its suffix.")
@_all(*_TEXT, *_PARQUET, _MEMORY, JSON)
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
    if target is None:
        target = "parquet" if output == PIPE else form_of(output)
    _convert(file, output, form, target, options)


def _unpacked(path: str) -> str:
    """``x.csv`` for ``x.csv.gz``."""
    found = PurePath(path)
    return path[: -len(found.suffix)] if found.suffix in PACKED else path


def _convert(source: str, output: str, form: str, target: str | None, options: dict[str, Any]) -> None:
    target = target or "parquet"
    if output == PIPE and target not in ("csv", "jsonl"):
        check_no_terminal()
    text = TextOptions(
        options["delimiter"], options["encoding"], options["nulls"], parse_types(options["types"]),
        size("--memory", options["memory"]),
    )  # fmt: skip
    if output == PIPE and options["as_json"]:
        raise click.UsageError(
            "--json prints a report, which needs an --output that is not -", ctx=click.get_current_context()
        )
    with _rows(source, form, text) as (schema, batches), Busy("converting"):
        rows = save(output, schema, batches, target, **(_parquet_options(options) if target == "parquet" else {}))
    if options["as_json"]:
        print_json({"path": output, "num_rows": rows})
    elif output != PIPE:
        click.echo(f"wrote {count(rows, 'row')} to {visible(output)}", err=True)


def _parquet_options(options: dict[str, Any]) -> dict[str, Any]:
    given = {
        "sort_by": sort_order(options["sort_by"]), "compression": options["compression"],
        "bloom_filters": [one_name(name) for name in options["blooms"]], "row_group_size": options["row_group_rows"],
    }  # fmt: skip
    return {name: value for name, value in given.items() if value}


@contextmanager
def _rows(source: str, form: str, text: TextOptions) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Schema and batches of a source."""
    if form == "parquet":
        with opened_any(source) as parquet:
            scan = parquet.scan()
            yield scan.schema, scan.batches()
        return
    from pyparq.arrow.ingest import ingest

    if form in ("csv", "jsonl"):
        with _on_disk(source) as path, opened_text(path, _shown(source), form, text) as found:
            schema, batches = ingest(found)
            yield schema, _batches(schema, batches)
        return
    from pyparq.cli.arrow_files import read_arrow

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
            raise click.UsageError(f"{source} is a folder: give one file", ctx=click.get_current_context())
        yield source
        return
    with tempfile.NamedTemporaryFile(prefix="pyparq-") as made:
        shutil.copyfileobj(sys.stdin.buffer, made, CHUNK)
        made.flush()
        yield made.name


def _shown(source: str) -> str:
    return NAME if source == PIPE else shown(source)
