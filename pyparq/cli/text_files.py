"""CSV and JSON lines as rows, by DuckDB: it finds the types in all of the file, and reads it in pieces."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

import click

from pyparq.cli.forms import suffix_of
from pyparq.cli.storage import storage_for
from pyparq.cli.text_types import doubtful, quoted, refined, types_without_days
from pyparq.errors import DataError, OptionError

ISO = "%Y-%m-%d"
"""01/02/2024 stays text: it may be January or February."""

LEAST_MEMORY = 128 << 20
"""DuckDB cannot read CSV with much less."""


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
    temp_folder: str | None = None


@contextmanager
def opened_text(path: str, name: str, form: str, options: TextOptions) -> Iterator[Any]:
    """The rows of a text file, as something with an Arrow stream. ``form``: ``csv`` or ``jsonl``. ``name``: for
    messages.

    Raises :class:`DataError`, which names the line, for lines that do not fit.
    """
    import duckdb

    config = {"memory_limit": f"{max(options.max_memory, LEAST_MEMORY)}B"}
    if options.temp_folder is not None:
        config["temp_directory"] = options.temp_folder
    with duckdb.connect(config=config) as db:
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
                return f"line {line} has {_fields(len(record))}, and the header has {_fields(wanted)}"
            line = records.line_num + 1
    except csv.Error as error:
        return f"line {line}: {error} (a quote that is not closed?)"
    return None


def _fields(number: int) -> str:
    return "1 field" if number == 1 else f"{number} fields"


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
            raise click.UsageError(
                f"--type {text!r} must be NAME=TYPE, such as zip=varchar", ctx=click.get_current_context()
            )
        found[name] = type_
    return found
