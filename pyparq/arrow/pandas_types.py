"""Hints about a DataFrame in a table's ``pandas`` metadata and extension types. They come from outside, and are ignored
if they are invalid."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.schema.extensions import EXTENSION_METADATA, EXTENSION_NAME
from pyparq.format.types import Field

if TYPE_CHECKING:
    import pandas

_WRONG = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, SyntaxError, RecursionError,
          MemoryError)  # fmt: skip
"""Errors of pandas, json and literal_eval for invalid input."""
_NULLABLE = re.compile(r"(?:U?Int(?:8|16|32|64)|Float(?:32|64)|boolean)")
_LABEL_TYPES = re.compile(r"(?:u?int(?:8|16|32|64)|float(?:32|64)|datetime64\[(?:s|ms|us|ns)\])")
_MOST_LABEL = 10_000
"""Characters of a column's name that is taken apart into several labels."""


class PandasMetadata:
    """The metadata of a DataFrame. Empty if there are none, or if they are invalid."""

    def __init__(self, stored: bytes | None) -> None:
        self._all: dict[str, Any] = {}
        self._columns: dict[str, dict[str, Any]] = {}
        try:
            found = json.loads(stored or b"{}")
            if isinstance(found, dict):
                self._all = found
                self._columns = {c["field_name"]: c for c in found.get("columns", []) if isinstance(c, dict)}
        except _WRONG:
            pass

    def dtype_of(self, name: str) -> str:
        """The name that pandas gave the type of a column. ``""`` if it is not known."""
        found = self._columns.get(name, {}).get("numpy_type")
        return found if isinstance(found, str) else ""

    def indexed(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """The frame with its index."""
        try:
            return self._indexed(frame)
        except _WRONG:
            return frame

    def labelled(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        """The frame with the column labels that were no text, and their names."""
        try:
            labels = self._labels(list(frame.columns))
        except _WRONG:
            return frame
        return frame if labels is None else frame.set_axis(labels, axis=1)

    def _indexed(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        import pandas as pd

        levels = self._all["index_columns"]
        if len(levels) == 1 and isinstance(levels[0], dict) and levels[0]["kind"] == "range":
            found = levels[0]
            index = pd.RangeIndex(found["start"], found["stop"], found["step"], name=found["name"])
            return frame.set_axis(index) if len(index) == len(frame) else frame
        if not levels or not all(isinstance(name, str) and list(frame.columns).count(name) == 1 for name in levels):
            return frame
        indexed = frame.set_index(levels)
        indexed.index.names = [self._columns.get(n, {}).get("name", n) if self._names(n) else None for n in levels]
        return indexed

    def _names(self, field: str) -> bool:
        return not field.startswith("__index_level_") or self._columns.get(field, {}).get("name") is not None

    def _labels(self, names: list[str]) -> Any:
        import pandas as pd

        levels = self._all.get("column_indexes") or []
        if len(levels) > 1:
            tuples = [ast.literal_eval(name[:_MOST_LABEL]) for name in names]
            if not all(isinstance(parts, tuple) and len(parts) == len(levels) for parts in tuples):
                return None
            parts = [
                _as_labels(list(part), level) for part, level in zip(zip(*tuples, strict=True), levels, strict=True)
            ]
            return pd.MultiIndex.from_arrays(parts, names=[level["name"] for level in levels])
        return _as_labels(names, levels[0]) if levels else None


def _as_labels(names: list[str], level: dict[str, Any]) -> Any:
    import pandas as pd

    found = pd.Index(names, name=level["name"])
    kind = level["numpy_type"]
    if kind == "object" and level["pandas_type"] not in ("unicode", "string"):
        return found
    return found.astype(kind) if isinstance(kind, str) and _LABEL_TYPES.fullmatch(kind) else found


def nullable(values: Any, dtype: str) -> Any | None:
    """Numbers as one of pandas' types with a mask; ``None`` where ``dtype`` is none of them or does not fit."""
    import pandas as pd

    if not _NULLABLE.fullmatch(dtype) or values.dtype.kind not in "biuf":
        return None
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(len(values), np.bool_)
    data = np.ascontiguousarray(np.ma.getdata(values))
    if dtype == "boolean":
        return pd.Series(pd.arrays.BooleanArray(data, missing)) if data.dtype.kind == "b" else None
    wanted = pd.array([], dtype=dtype).dtype.numpy_dtype
    if wanted != data.dtype:
        return None
    kind = pd.arrays.FloatingArray if data.dtype.kind == "f" else pd.arrays.IntegerArray
    return pd.Series(kind(data.copy(), missing))


def of_extension(field: Field, values: Any) -> Any | None:
    """A column of pandas' extension types, which pyarrow stores as integers or structs; ``None`` for others."""
    name = field.metadata.get(EXTENSION_NAME)
    if name not in (b"pandas.period", b"pandas.interval"):
        return None
    import pandas as pd

    try:
        described = json.loads(field.metadata.get(EXTENSION_METADATA, b""))
        if name == b"pandas.period" and field.type.format == "l":
            data = np.ma.getdata(values).astype(np.int64)
            if isinstance(values, np.ma.MaskedArray):
                data[np.ma.getmaskarray(values)] = np.iinfo(np.int64).min  # pandas' NaT
            return pd.Series(pd.PeriodIndex.from_ordinals(data, freq=described["freq"]))
        if name == b"pandas.interval" and field.type.format == "+s":
            dtype = pd.IntervalDtype(described["subtype"], described["closed"])
            pairs = [None if v is None or v["left"] is None else (v["left"], v["right"]) for v in values]
            return pd.Series(pd.arrays.IntervalArray.from_tuples(pairs, dtype=dtype))
    except _WRONG:
        pass
    return None
