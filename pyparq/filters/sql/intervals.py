"""INTERVAL literals of SQL as durations; see :mod:`pyparq.filters.sql.durations`."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from typing import Any

import numpy as np
import sqlglot
from sqlglot import expressions as sql
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from pyparq.filters.times import NUMBER, duration_of, of_span, of_unit


def kept_whole(text: str, dialect: str) -> str:
    """The condition with ``INTERVAL '1 day 02:00'`` as a cast: sqlglot drops all but the first part of its text."""
    tokens = sqlglot.tokenize(text, read=dialect)
    for word, value in reversed(list(pairwise(tokens))):
        is_text = word.token_type == TokenType.INTERVAL and value.token_type == TokenType.STRING
        if is_text and re.search("[a-z]", value.text, re.IGNORECASE):
            start, end = value.start, value.end + 1
            text = f"{text[: word.start]}CAST({text[start:end]} AS INTERVAL){text[end:]}"
    return text


def is_interval(node: Any) -> bool:
    """Whether a node is an INTERVAL literal, or a text that is cast to one."""
    if isinstance(node, sql.Interval):
        return True
    if not isinstance(node, sql.Cast):
        return False
    return "interval" in str(getattr(node.to.this, "name", "")).lower() or isinstance(node.to.this, sql.Interval)


def duration(node: Any) -> dt.timedelta | np.timedelta64:
    """The duration of an INTERVAL literal. Raises :class:`ValueError`, which says what is wrong with it."""
    if isinstance(node, sql.Cast):
        if isinstance(node.to.this, sql.Interval) or not _is_text(node.this):
            raise ValueError("write INTERVAL '1 day 02:00:00'")
        return duration_of(str(node.this.this))
    unit, value = node.args.get("unit"), node.this
    if not isinstance(value, sql.Literal):
        raise ValueError("write INTERVAL '1 day 02:00:00'")
    text = str(value.this).strip()
    if unit is None:
        return duration_of(text)
    if isinstance(unit, sql.IntervalSpan):
        return of_span(text, str(unit.this.name).upper(), str(unit.expression.name).upper())
    if type(unit) is not sql.Var or not re.fullmatch(NUMBER, text, re.ASCII):
        raise ValueError("write INTERVAL '1 day 02:00:00'")
    return of_unit(text, str(unit.name))


def _is_text(node: Any) -> bool:
    return isinstance(node, sql.Literal) and bool(node.is_string)
