"""Refuses polars' Object columns. polars exports them as binary, but their values are addresses of Python objects."""

from __future__ import annotations

from typing import Any

from pyparq.errors import UnsupportedError


def refuse_objects(data: Any, name: str | None = None) -> None:
    """Raise :class:`UnsupportedError` for a column of polars' type Object. ``data`` may be anything; ``name`` is for a
    Series, which a frame's columns have themselves."""
    if type(data).__module__.split(".")[0] != "polars":
        return
    schema = getattr(data, "schema", None)
    dtypes = dict(schema) if schema is not None else {name: getattr(data, "dtype", None)}
    for column, dtype in dtypes.items():
        if _holds_objects(dtype):
            raise UnsupportedError(
                "a polars Object column holds Python objects, and Arrow would get only their addresses. "
                "Convert it to another polars type first (map_elements(..., return_dtype=...))",
                column=column,
            )


def _holds_objects(dtype: Any) -> bool:
    if str(dtype) == "Object":
        return True
    if getattr(dtype, "inner", None) is not None:
        return _holds_objects(dtype.inner)
    fields = getattr(dtype, "fields", None)
    return isinstance(fields, list) and any(_holds_objects(getattr(field, "dtype", None)) for field in fields)
