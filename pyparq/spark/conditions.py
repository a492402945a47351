"""Conditions of Spark as one small tree, from SQL text (``sql_text.py``) and from a ``Column`` (``columns.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Attribute:
    """A column, by the names from the top down."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """A value: ``None``, a bool, an int, a ``Decimal``, a float, text, bytes, a date or a duration. ``kind`` is
    ``timestamp`` or ``timestamp_ntz`` for text that was written as one."""

    value: Any
    kind: str = ""


@dataclass(frozen=True)
class Call:
    """A function or operator of Spark, by the name that Spark has for it, in small letters."""

    name: str
    arguments: tuple[Condition, ...]


@dataclass(frozen=True)
class Other:
    """An expression without an equal in pyparq. ``columns``: the columns in it; ``None`` if they are not known."""

    text: str
    columns: tuple[Attribute, ...] | None = None


Condition = Attribute | Literal | Call | Other

_OPERATORS = ("=", "<=>", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "/", "like", "rlike", "!=")


def columns_of(condition: Condition) -> Iterator[Attribute | None]:
    """All columns that the condition looks at; ``None`` among them where there may be others."""
    if isinstance(condition, Attribute):
        yield condition
    elif isinstance(condition, Call):
        for argument in condition.arguments:
            yield from columns_of(argument)
    elif isinstance(condition, Other):
        yield from (None,) if condition.columns is None else condition.columns


def shown(condition: Condition) -> str:
    """The condition as SQL of Spark, for errors."""
    if isinstance(condition, Attribute):
        return ".".join(name if name.isidentifier() else f"`{name}`" for name in condition.path)
    if isinstance(condition, Literal):
        return _value(condition)
    if isinstance(condition, Other):
        return condition.text
    parts = [shown(argument) for argument in condition.arguments]
    if condition.name in _OPERATORS and len(parts) > 1:
        return "(" + f" {condition.name.upper()} ".join(parts) + ")"
    if condition.name == "[]":
        return f"{parts[0]}[{parts[1]}]"
    if condition.name == "in":
        return f"{parts[0]} IN ({', '.join(parts[1:6])}{', …' if len(parts) > 6 else ''})"
    return f"{condition.name}({', '.join(parts)})"


def _value(literal: Literal) -> str:
    value = literal.value
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, (int, float)) or not isinstance(value, str):
        return str(value)
    text = "'" + value.replace("'", "\\'") + "'"
    return f"{literal.kind.upper()} {text}" if literal.kind else text
