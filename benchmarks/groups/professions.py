"""Conditions on text and on computed values, at 1, 10 and 50 % of the rows kept, and many keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from engines import Condition, Query, Term
from inputs import PLAIN, Inputs
from lines import Line, Read

WORDS = {1: "Needle", 10: "timeout", 50: "warning"}
ENDS = {1: "rare", 10: "404", 50: "half"}
SHORTER = {1: 30, 10: 50, 50: 110}
DAYS = {1: "day", 10: "month", 50: "hour"}
OUT = ("a", "at", "topic")


def of_text(share: int) -> Iterator[tuple[str, Condition]]:
    """Conditions on text that keep about so many percent."""
    word, end, shorter = WORDS[share], ENDS[share], SHORTER[share]
    text = "text"
    yield "contains", Condition(
        f"contains(text, '{word}')", lambda c: c(text).contains(word),
        lambda c: c(text).str.contains(word, literal=True), lambda c: pc.match_substring(c(text), word),
    )  # fmt: skip
    yield "ends with", Condition(
        f"ends_with(text, '{end}')", lambda c: c(text).ends_with(end), lambda c: c(text).str.ends_with(end),
        lambda c: pc.ends_with(c(text), end),
    )  # fmt: skip
    like = f"% {word}_{end[:2]}%"
    yield "like", Condition(
        f"text like '{like}'", lambda c: c(text).like(like), lambda c: c(text).str.contains(f"(?s) {word}.{end[:2]}"),
        lambda c: pc.match_like(c(text), like),
    )  # fmt: skip
    yield "ilike", Condition(
        f"text ilike '%{word.upper()}%'", lambda c: c(text).ilike(f"%{word.upper()}%"),
        lambda c: c(text).str.contains(f"(?i){word}"), lambda c: pc.match_substring(c(text), word, ignore_case=True),
    )  # fmt: skip
    pattern = rf"{word[:3]}[a-z]+ [a-z0-9]+$"
    yield "regular expression", Condition(
        f"regexp_matches(text, '{pattern}')", lambda c: c(text).matches(pattern),
        lambda c: c(text).str.contains(pattern), lambda c: pc.match_substring_regex(c(text), pattern),
    )  # fmt: skip
    yield "lower", Condition(
        f"ends_with(lower(text), '{end}')", lambda c: c(text).lower().ends_with(end),
        lambda c: c(text).str.to_lowercase().str.ends_with(end), lambda c: pc.ends_with(pc.utf8_lower(c(text)), end),
    )  # fmt: skip
    yield "length", Condition(
        f"length(text) < {shorter}", lambda c: c(text).length() < shorter, lambda c: c(text).str.len_chars() < shorter,
        lambda c: pc.utf8_length(c(text)) < shorter,
    )  # fmt: skip


def of_numbers(share: int) -> Iterator[tuple[str, Condition]]:
    """Computed conditions that keep about so many percent."""
    other = {1: "low", 10: "mid", 50: "b"}[share]
    yield (
        "column against column",
        Condition(
            f"a < {other}", lambda c: c("a") < c(other), lambda c: c("a") < c(other), lambda c: c("a") < c(other)
        ),
    )
    most = {1: 140, 10: 447, 50: 1000}[share]
    yield "arithmetic", Condition(
        f"a + b < {most}", lambda c: c("a") + c("b") < most, lambda c: c("a") + c("b") < most,
        lambda c: c("a") + c("b") < most,
    )  # fmt: skip
    part = DAYS[share]
    below: Callable[[Any], Any] = (lambda value: value < 12) if part == "hour" else (lambda value: value == 7)
    yield f"part of a date: {part}", Condition(
        f"{part}(\"at\") {'< 12' if part == 'hour' else '= 7'}", lambda c: below(getattr(c("at"), part)()),
        lambda c: below(getattr(c("at").dt, part)()), lambda c: below(getattr(pc, part)(c("at"))),
    )  # fmt: skip


def keys(inputs: Inputs, column: str, count: int) -> Any:
    """Keys, half of which are in the file."""
    rows = inputs.sizes.rows // 2
    drawn = np.random.default_rng(count).choice(rows, min(count, rows) // 2, replace=False)
    if column == "name":
        return pa.array([f"name {k}" for k in [*drawn.tolist(), *(drawn + rows).tolist()]])
    there = inputs.table("articles", rows)["id"].take(pa.array(drawn)).to_pylist()
    return pa.array(there + [value[::-1] for value in there])


def lines(inputs: Inputs) -> Iterator[Line]:
    """Ten questions, each at three shares; text and binary keys by the number of them."""
    rows = inputs.sizes.rows // 2
    read = partial(
        Read, group="professions", writer="pyarrow", target=0.8, with_floor=True,
        path=partial(inputs.file, "pyarrow", PLAIN, "articles", rows), table=partial(inputs.table, "articles", rows),
    )  # fmt: skip
    for share in (1, 10, 50):
        for name, condition in (*of_text(share), *of_numbers(share)):
            query = Query(OUT, condition=condition)
            yield read(name=f"{name}, {share} %", queries=lambda query=query: [query])
    for column in ("name", "id"):
        for count in (10, 1_000, 100_000):

            def ask(column: str = column, count: int = count) -> list[Query]:
                return [Query(("a", column), (Term(column, "in", keys(inputs, column, count)),))]

            yield read(name=f"{count:,} keys, {'text' if column == 'name' else 'binary'}", queries=ask)
