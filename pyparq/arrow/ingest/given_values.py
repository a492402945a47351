"""Python objects of one column, sorted out: what is null, which kinds of values there are, and where each stands."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column
from pyparq.errors import DataError
from pyparq.format.types import DataType

Mask = npt.NDArray[np.bool_]

_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    # In this order: bool is an int, datetime is a date, np.float64 is a float, np.timedelta64 an np.integer.
    ((type(None),), "null"),
    ((dt.timedelta, np.timedelta64), "duration"),
    ((bool, np.bool_), "bool"),
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((str,), "str"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((Decimal,), "decimal"),
    ((dt.datetime,), "datetime"),
    ((dt.date,), "date"),
    ((dt.time,), "time"),
    ((np.datetime64,), "datetime64"),
    ((uuid.UUID,), "uuid"),
    ((list, tuple, np.ndarray), "list"),
    ((Mapping,), "dict"),
)


_KNOWN: dict[type, str] = {}


def kind_of(class_: type) -> str:
    kind = _KNOWN.get(class_)
    if kind is None:
        if class_.__name__ in ("NAType", "NaTType"):  # pandas' missing values, without importing pandas
            kind = "null"
        else:
            kind = next((kind for classes, kind in _KINDS if issubclass(class_, classes)), "")
        _KNOWN[class_] = kind
    return kind


@dataclass(slots=True)
class Given:
    """Values that are not null, where they stand, and the column's name for errors."""

    present: list[Any]
    mask: Mask | None
    length: int
    kinds: set[str]
    name: str
    depth: int

    def row_of(self, k: int) -> int:
        return k if self.mask is None else int(np.flatnonzero(self.mask)[k])

    def error(self, k: int, why: str) -> DataError:
        element = "item" if self.depth else "row"
        return DataError(f"{element} {self.row_of(k)}: {why}", column=self.name)

    def first(self, kind: str) -> int:
        return next(k for k, value in enumerate(self.present) if kind_of(type(value)) == kind)


def sorted_out(values: Sequence[Any], name: str, depth: int) -> Given:
    values = values if isinstance(values, list) else list(values)
    classes = set(map(type, values))
    absent = {c for c in classes if kind_of(c) == "null"}
    mask: Mask | None = None
    present = values
    if absent == {type(None)}:
        mask = np.fromiter((v is not None for v in values), np.bool_, len(values))
        present = [v for v in values if v is not None]
    elif absent:
        mask = np.fromiter((type(v) not in absent for v in values), np.bool_, len(values))
        present = [v for v in values if type(v) not in absent]
    kinds = {kind_of(c) for c in classes - absent}
    given = Given(present, mask, len(values), kinds, name, depth)
    if "" in kinds:
        at = given.first("")
        raise given.error(at, f"values of type {type(present[at]).__name__} cannot be stored. Convert them first")
    return given


def fixed_values(given: Given, format_: str, dense: npt.NDArray[Any]) -> Column:
    """A fixed-width column of the values that are there."""
    if given.mask is None:
        return fixed_column(DataType(format_), dense)
    spread = np.zeros((given.length, *dense.shape[1:]), dense.dtype)
    spread[given.mask] = dense
    return fixed_column(DataType(format_), spread, given.mask)
