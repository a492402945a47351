"""Types that DuckDB leaves wider than the values of a text file need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MOMENT = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})"


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
