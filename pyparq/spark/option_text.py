"""Options of a data source, which Spark passes as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError
from pyparq.filters.given import parse_filters
from pyparq.options import ReadOptions, WriteOptions
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


def as_write_option(name: str, text: Any) -> Any:
    """A write option: JSON, or plain text. Columns may be listed as ``'a, b'``."""
    value = as_value(text)
    option = WriteOptions.__dataclass_fields__.get(name)
    is_list = option is not None and option.metadata["is_list"]
    return as_list(value) if is_list and isinstance(value, str) else value


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


_OF_WRITES = ("partition_cols", "force", "encryption", "max_rows_per_file", "max_bytes_per_file", "maxrecordsperfile",
              "partitionoverwritemode")  # fmt: skip


def is_of_writes(name: str) -> bool:
    """Whether an option is about writing alone. Tables and views have such options beside those for reading."""
    known, of_reads = WriteOptions.__dataclass_fields__, ReadOptions.__dataclass_fields__
    return name in _OF_WRITES or (name in known and name not in of_reads)
