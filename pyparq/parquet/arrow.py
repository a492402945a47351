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


def even_batches(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """The rows of pyarrow's batches in batches of ``size`` rows; the last one may have fewer."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        while count + batch.num_rows >= size:
            held.append(batch.slice(0, size - count))
            batch, count = batch.slice(held[-1].num_rows), 0
            yield held[0] if len(held) == 1 else _joined(pa.Table.from_batches(held))
            held = []
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield held[0] if len(held) == 1 else _joined(pa.Table.from_batches(held))


def _joined(table: Any) -> Any:
    return table.combine_chunks().to_batches()[0]


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
    # pyarrow raises ArrowInvalid for some faults of a file and OSError for others: both are caught.
    made: type[ParquetError] = type(kind.__name__, (kind, other, OSError), {"__module__": kind.__module__})
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
