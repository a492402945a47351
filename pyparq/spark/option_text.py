"""Options of a data source: text, as Spark hands it on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError
from pyparq.filters.dnf import parse_filters
from pyparq.spark.paths import local


def source_of(options: Mapping[str, Any]) -> Any:
    """``load(path)`` or ``load([paths])``."""
    given = {name.lower(): value for name, value in options.items()}
    if "paths" in given:
        return [local(path) for path in json.loads(given["paths"])]
    path = given.get("path")
    if path is None:
        raise OptionError('give a path: spark.read.format("pyparq").load("folder"), df.write.format("pyparq").save(…)')
    return local(path)


def as_value(text: Any) -> Any:
    """A value as JSON writes it; other text as it is."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_list(text: Any) -> list[Any] | None:
    """``'["a", "b.c"]'`` or ``'a, b.c'``."""
    if text is None:
        return None
    value = as_value(text)
    return value if isinstance(value, list) else [name.strip() for name in str(text).split(",")]


def as_filters(text: Any) -> Any:
    """``'[["x", ">", 1]]'`` as pyarrow's lists, anything else as a condition in SQL."""
    if text is None:
        return None
    value = as_value(text)
    return parse_filters(_tuples(value)) if isinstance(value, list) else str(text)


def _tuples(value: list[Any]) -> Any:
    """JSON has lists where filters have tuples: ``[column, operator, value]`` is one."""
    if len(value) == 3 and all(isinstance(part, str) for part in value[:2]):
        return tuple(value)
    return [_tuples(part) if isinstance(part, list) else part for part in value]


def as_flag(given: Mapping[str, Any], name: str) -> bool:
    text = str(given.get(name, "false")).lower()
    if text not in ("true", "false"):
        raise OptionError(f"the option {name} must be true or false, not {text!r}")
    return text == "true"


def as_whole(given: Mapping[str, Any], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"the option {name} must be a whole number, not {text!r}") from None
