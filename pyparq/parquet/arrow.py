"""Results as pyarrow's objects where pyarrow is installed, and errors that its users catch."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from pyparq.errors import ParquetError, UnsupportedError

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def table_of(table: Any) -> Any:
    """A table of pyparq's as pyarrow's."""
    return table.to_arrow() if has_pyarrow() else table


def schema_of(schema: Any) -> Any:
    """A schema of pyparq's as pyarrow's."""
    if not has_pyarrow():
        return schema
    import pyarrow as pa

    return pa.schema(schema)


@functools.cache
def _named(kind: type[ParquetError]) -> type[ParquetError]:
    """A class of errors that pyarrow's class catches too."""
    import pyarrow as pa

    other = pa.ArrowNotImplementedError if issubclass(kind, UnsupportedError) else pa.ArrowInvalid
    made: type[ParquetError] = type(kind.__name__, (kind, other), {"__module__": kind.__module__})
    return made


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Errors of pyparq that ``except pyarrow.ArrowInvalid`` (or ``ArrowNotImplementedError``) catches."""
    try:
        yield
    except ParquetError as error:
        if not has_pyarrow() or not isinstance(error, (ValueError, NotImplementedError)):
            raise
        kind: Any = type(error)
        made = _named(kind)(error.message)
        made.__dict__.update(error.__dict__)
        raise made from error


def with_arrow_errors(function: Callable[P, R]) -> Callable[P, R]:
    """The function with :func:`arrow_errors` around it."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with arrow_errors():
            return function(*args, **kwargs)

    return run
