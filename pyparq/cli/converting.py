"""``pyparq import`` and ``pyparq convert``: rows from files of one form into a file of another."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, TextIO

import click

from pyparq.cli.options import JSON, SOURCE, WRITING, all_of, complete_files, memory, misused, storage_for
from pyparq.cli.output import Busy, count, print_json
from pyparq.cli.saving import FORMS, form_of, known_form, read_arrow, save, say_written, suffix_of
from pyparq.cli.sources import CHUNK, NAME, PIPE, check_no_terminal, opened_any, standard_input
from pyparq.errors import DataError, OptionError
from pyparq.io.url import shown

PACKED = (".gz", ".zst")
ISO = "%Y-%m-%d"
"""01/02/2024 stays text: it may be January or February."""

LEAST_MEMORY = 128 << 20
"""DuckDB cannot read CSV with much less."""
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


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How to read text. ``None``: by the suffix, or as it is found."""

    delimiter: str | None = None
    encoding: str | None = None
    nulls: tuple[str, ...] = ()
    """Texts that mean null in CSV. An empty cell is null too."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Names of columns, and their types as SQL writes them."""
    max_memory: int = 1 << 30


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


# ---- CSV and JSON lines as rows, by DuckDB: it finds the types in all of the file, and reads it in pieces


@contextmanager
def opened_text(path: str, name: str, form: str, options: TextOptions) -> Iterator[Any]:
    """The rows of a text file, as something with an Arrow stream. ``form``: ``csv`` or ``jsonl``. ``name``: for
    messages.

    Raises :class:`DataError`, which names the line, for lines that do not fit.
    """
    import duckdb

    with duckdb.connect(config={"memory_limit": f"{max(options.max_memory, LEAST_MEMORY)}B"}) as db:
        db.execute("set TimeZone = 'UTC'")
        _open_store(db, path)
        try:
            rows = _csv(db, path, options) if form == "csv" else _json_lines(db, path, options)
            _check_found(rows, path, name, form)
            yield refined(rows, form == "jsonl")
        except (duckdb.Error, DataError) as error:
            if isinstance(error, DataError) and "DuckDBPyRelation" not in str(error):
                raise  # not of reading
            if "Query interrupted" in str(error) or isinstance(error, duckdb.InterruptException):
                raise KeyboardInterrupt from error
            raise _plain(error, path, name, form, options) from error


def _open_store(db: Any, path: str) -> None:
    """DuckDB reads URLs by fsspec, as pyparq does."""
    if "://" in path:
        from fsspec.core import url_to_fs

        db.register_filesystem(url_to_fs(path, **(storage_for(path) or {}))[0])


def _csv(db: Any, path: str, options: TextOptions) -> Any:
    given: dict[str, Any] = {
        "delim": _delimiter(path, options), "quote": '"', "escape": '"', "comment": "", "header": True, "skip": 0,
        "sample_size": -1, "dateformat": ISO, "allow_quoted_nulls": False, "nullstr": ["", *options.nulls],
        "strict_mode": True, "null_padding": False, "ignore_errors": False,
    }  # fmt: skip
    if options.encoding is not None:
        given["encoding"] = options.encoding
    if options.types:
        given["types"] = dict(options.types)
    rows = _relation(db, "read_csv", path, given)
    found = {n: str(t) for n, t in zip(rows.columns, rows.types, strict=True) if n not in options.types}
    plain = {name: value for name, value in given.items() if name != "types"} | {"all_varchar": True}
    stay = doubtful(_relation(db, "read_csv", path, plain), found)
    if not stay:
        return rows
    return _relation(db, "read_csv", path, given | {"types": {**options.types, **dict.fromkeys(stay, "VARCHAR")}})


def _json_lines(db: Any, path: str, options: TextOptions) -> Any:
    given: dict[str, Any] = {
        "format": "newline_delimited", "sample_size": -1, "field_appearance_threshold": 0,
        "map_inference_threshold": -1, "convert_strings_to_integers": False, "dateformat": ISO,
        "maximum_object_size": 1 << 28,
    }  # fmt: skip
    rows = _relation(db, "read_json", path, given)
    days = types_without_days(rows)
    if days:
        rows = _relation(db, "read_json", path, given | {"columns": days})
    unknown = [name for name in options.types if name not in rows.columns]
    if unknown:
        raise OptionError(f"--type {unknown[0]}: there is no such column. The columns are {', '.join(rows.columns)}")
    if not options.types:
        return rows
    cast = [
        f"{quoted(n)}::{options.types[n]} as {quoted(n)}" if n in options.types else quoted(n) for n in rows.columns
    ]
    return rows.select(", ".join(cast))


def _relation(db: Any, function: str, path: str, given: dict[str, Any]) -> Any:
    options = ", ".join(f"{name} = {_literal(value)}" for name, value in given.items())
    return db.sql(f"from {function}({_literal(_exactly(path))}, {options})")


def _exactly(path: str) -> str:
    """A path in which no sign is a pattern."""
    return path if "://" in path else "".join(f"[{c}]" if c in "*?[" else c for c in path)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    return "'" + str(value).replace("'", "''") + "'"


def _delimiter(path: str, options: TextOptions) -> str:
    if options.delimiter is not None:
        return {"\\t": "\t", "tab": "\t"}.get(options.delimiter, options.delimiter)
    return "\t" if suffix_of(path) == ".tsv" else ","


# ---- what is wrong with a file


def _check_found(rows: Any, path: str, name: str, form: str) -> None:
    """An empty file, or lines that are no objects: DuckDB calls their one column so."""
    if form == "csv" and rows.columns == ["column0"] and _first_line(path) == "":
        raise DataError("the file is empty: CSV begins with a line of names", file=name)
    if form == "jsonl" and rows.columns == ["json"] and "://" not in path:
        fault = _json_fault(path)
        if fault is not None or _first_line(path) == "":
            raise DataError(fault or "the file is empty: there is nothing to take columns from", file=name)


def _first_line(path: str) -> str | None:
    if "://" in path:
        return None
    with open(path, encoding="utf-8-sig", errors="replace") as text:
        return text.readline()


def _plain(error: Exception, path: str, name: str, form: str, options: TextOptions) -> Exception:
    """What DuckDB says, with the number of the line where it can be found."""
    fault = None
    if "://" not in path and not path.endswith((".gz", ".zst")):
        fault = _csv_fault(path, options) if form == "csv" else _json_fault(path)
    said = str(error.__cause__ if isinstance(error, DataError) else error).strip().splitlines()
    why = [line for k, line in enumerate(said) if k == 0 or line.startswith("Error when converting")]
    return DataError(fault or f"cannot read it as {form}: {' '.join(why)}", file=name)


def _csv_fault(path: str, options: TextOptions) -> str | None:
    """The first record that has another number of fields than the header, or whose quotes do not end."""
    delimiter = _delimiter(path, options)
    if len(delimiter) != 1:
        return None
    encoding = options.encoding or "utf-8-sig"
    with open(path, encoding=encoding, errors="surrogateescape", newline="") as text:
        return _fault_in(text, csv.reader(text, delimiter=delimiter, strict=True))


def _fault_in(text: TextIO, records: Any) -> str | None:
    line, wanted = 1, None
    try:
        for record in records:
            if any("\udc80" <= c <= "\udcff" for cell in record for c in cell):
                return f"line {line} is not UTF-8: give --encoding, such as latin-1"
            wanted = len(record) if wanted is None else wanted
            if record and len(record) != wanted:
                return f"line {line} has {count(len(record), 'field')}, and the header has {count(wanted, 'field')}"
            line = records.line_num + 1
    except csv.Error as error:
        return f"line {line}: {error} (a quote that is not closed?)"
    return None


def _json_fault(path: str) -> str | None:
    """The first line that is no JSON object."""
    with open(path, encoding="utf-8-sig", errors="replace") as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except ValueError as error:
                return f"line {number} is not JSON: {error}"
            if not isinstance(found, dict):
                return f'line {number} is no JSON object: each line must be one, such as {{"id": 1}}'
    return None


def parse_types(given: tuple[str, ...]) -> dict[str, str]:
    """``zip=VARCHAR`` as a name and a type."""
    found = {}
    for text in given:
        name, equals, type_ = text.rpartition("=")
        if not equals or not name or re.fullmatch(r"[A-Za-z][\w ,()\[\]]*", type_) is None:
            misused(f"--type {text!r} must be NAME=TYPE, such as zip=varchar")
        found[name] = type_
    return found


# ---- types that DuckDB finds in text too eagerly, and those that it leaves wider than the values need


_MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})"
_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"([01]\d|2[0-3]):\d{2}(:\d{2}(\.\d{1,6})?)?"
_SPELLED = {
    "DATE": _DAY,
    "TIME": _CLOCK,
    "TIMESTAMP": rf"{_DAY}([T ]{_CLOCK})?",
    "TIMESTAMP WITH TIME ZONE": rf"{_DAY}([T ]{_CLOCK} ?(Z|[+-]\d{{2}}(:?\d{{2}})?)?)?",
    "BOOLEAN": r"(?i)true|false",
    **dict.fromkeys(("BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DOUBLE"), r"[^xXbB]*"),
}
"""How values of a type are spelled in CSV. DuckDB takes 24-01-02 for a day of the year 24, infinity for a day, 0x00ff
for 255, and no more than six digits of a fraction of a second."""
_NO_YEAR = r'"(0[0-9]{3}-[0-9]{2}-[0-9]{2}|-?infinity)"'
"""A day in JSON of DuckDB whose text had no year of four digits, or was none."""
_DAY_TYPE = re.compile(r'(?<!")\bDATE\b(?!")')


def doubtful(text: Any, types: Mapping[str, str]) -> list[str]:
    """The columns that have to stay text. ``text``: the rows of CSV with all columns as text. ``types``: those that
    DuckDB has found, by name. It takes a pass over the rows."""
    asked = [(name, _SPELLED[type_]) for name, type_ in types.items() if type_ in _SPELLED]
    if not asked:
        return []
    tests = (f"bool_and(regexp_full_match(trim({quoted(name)}), '{spelled}')) is not false" for name, spelled in asked)
    fits = text.aggregate(", ".join(tests)).fetchall()[0]
    return [name for (name, _), fit in zip(asked, fits, strict=True) if not fit]


def types_without_days(rows: Any) -> dict[str, str]:
    """The types of rows of JSON, with text in place of days in columns that have one without a year of four digits.
    Empty if all days are such."""
    types = dict(zip(rows.columns, map(str, rows.types), strict=True))
    days = [name for name, type_ in types.items() if _DAY_TYPE.search(type_)]
    if not days:
        return {}
    tests = (f"bool_or(regexp_matches(to_json({quoted(name)})::varchar, '{_NO_YEAR}'))" for name in days)
    wrong = [name for name, found in zip(days, rows.aggregate(", ".join(tests)).fetchall()[0], strict=True) if found]
    return {**types, **{name: _DAY_TYPE.sub("VARCHAR", types[name]) for name in wrong}} if wrong else {}


def refined(rows: Any, is_json: bool) -> Any:
    """``rows`` with narrower types where all values fit, which takes a pass over them.

    A column of whole numbers with negative ones in JSON is HUGEINT to DuckDB: BIGINT where that is enough. Text of JSON
    that has timestamps of ISO 8601 only, with and without fractions of a second, becomes timestamps.
    """
    questions = list(_questions(rows, is_json))
    if not questions:
        return rows
    answers = rows.aggregate(", ".join(f"coalesce(bool_and({test}), false)" for _, _, test in questions)).fetchall()[0]
    chosen: dict[int, str] = {}
    for (k, type_, _), fits in zip(questions, answers, strict=True):
        if fits and k not in chosen:
            chosen[k] = type_
    names = list(map(quoted, rows.columns))
    return rows.select(", ".join(f"{n}::{chosen[k]} as {n}" if k in chosen else n for k, n in enumerate(names)))


def quoted(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _questions(rows: Any, is_json: bool) -> Iterator[tuple[int, str, str]]:
    """Column, narrower type, and what has to be true of all its values."""
    for k, (column, type_) in enumerate(zip(rows.columns, map(str, rows.types), strict=True)):
        name = quoted(column)
        if "HUGEINT" in type_:
            for smaller in ("BIGINT", "UBIGINT"):
                narrow = type_.replace("UHUGEINT", smaller).replace("HUGEINT", smaller)
                yield k, narrow, f"{name} is null or try_cast({name} as {narrow})::{type_} is not distinct from {name}"
        elif type_ == "VARCHAR" and is_json:
            yield k, "TIMESTAMP", _is_moment(name, _MOMENT, "TIMESTAMP")
            yield k, "TIMESTAMPTZ", _is_moment(name, _MOMENT + _ZONE, "TIMESTAMPTZ")


def _is_moment(name: str, pattern: str, type_: str) -> str:
    """Null says nothing: a column of nulls alone is none of moments."""
    return f"case when {name} is not null then regexp_full_match({name}, '{pattern}') " \
        f"and try_cast({name} as {type_}) is not null end"  # fmt: skip
