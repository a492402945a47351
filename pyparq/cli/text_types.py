"""Types that DuckDB finds in text too eagerly, and those that it leaves wider than the values need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

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
    questions = [(k, type_, test) for k, type_, test in _questions(rows, is_json)]
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
