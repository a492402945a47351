"""CSV and JSON lines as rows, by DuckDB: it finds the types in all of the file, and reads it in pieces."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from pyparq.cli.options import misused, storage_for
from pyparq.cli.output import count
from pyparq.cli.saving import suffix_of
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
