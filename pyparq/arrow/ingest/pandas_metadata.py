"""The ``pandas`` metadata of a DataFrame (pandas' developer documentation), as pyarrow writes them: by these readers
find index, column labels and types again. For where pandas has no pyarrow to write them."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np

from pyparq._version import __version__
from pyparq.format.types import DataType, Schema


def pandas_metadata(frame: Any, schema: Schema) -> dict[bytes, bytes]:
    """The metadata of a frame that becomes a table of ``schema``: its columns, then the levels of its index."""
    import pandas

    labels = [text_of(label) for label in frame.columns]
    levels = schema.names[len(labels) :]
    index: list[Any] = list(levels)
    if not levels:
        span = frame.index
        name = None if span.name is None else text_of(span.name)
        index = [{"kind": "range", "name": name, "start": span.start, "stop": span.stop, "step": span.step}]
    names = [*labels, *(None if name is None else text_of(name) for name in frame.index.names)]
    dtypes = [*frame.dtypes, *(frame.index.get_level_values(k).dtype for k in range(len(levels)))]
    described = {
        "index_columns": index,
        "column_indexes": [_level(frame.columns.get_level_values(k)) for k in range(frame.columns.nlevels)],
        "columns": [
            {"name": name, "field_name": field.name, **_type_entry(field.type, dtype)}
            for name, field, dtype in zip(names, schema, dtypes, strict=False)
        ],
        "creator": {"library": "pyparq", "version": __version__},
        "pandas_version": pandas.__version__,
    }
    return {b"pandas": json.dumps(described).encode()}


def text_of(label: Any) -> str:
    """The name of a column in the file: pyarrow's text of the label, which readers convert back."""
    if isinstance(label, tuple):
        return str(tuple(text_of(part) for part in label))
    return label if isinstance(label, str) else str(label)


def zone_name(zone: Any) -> str:
    """The name of a time zone, or its offset from UTC."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name:
        return str(name)
    offset = zone.utcoffset(None)
    if not offset:
        return "UTC"
    minutes = int(offset / dt.timedelta(minutes=1))
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _level(labels: Any) -> dict[str, Any]:
    """One level of the column labels."""
    numpy_type, is_text = str(labels.dtype), labels.inferred_type in ("string", "empty")
    return {
        "name": labels.name, "field_name": labels.name, "pandas_type": "unicode" if is_text else numpy_type,
        "numpy_type": numpy_type, "metadata": {"encoding": "UTF-8"} if is_text else None,
    }  # fmt: skip


def _type_entry(type_: DataType, dtype: Any) -> dict[str, Any]:
    """The description of the column's pandas type."""
    numpy_type = str(dtype)
    metadata: dict[str, Any] | None = None
    if type(dtype).__name__ == "CategoricalDtype":
        # The type that pandas has for the codes.
        codes = np.min_scalar_type(-max(len(dtype.categories), 1))
        metadata = {"num_categories": len(dtype.categories), "ordered": bool(dtype.ordered)}
        return {"pandas_type": "categorical", "numpy_type": str(codes), "metadata": metadata}
    if hasattr(dtype, "tz"):
        numpy_type, metadata = f"datetime64[{dtype.unit}]", {"timezone": zone_name(dtype.tz)}
    return {"pandas_type": _pandas_type(type_), "numpy_type": numpy_type, "metadata": metadata}


def _pandas_type(type_: DataType) -> str:
    kind = type_.kind
    if kind == "timestamp":
        return "datetimetz" if type_.timezone else "datetime"
    simple = {"string": "unicode", "binary": "bytes", "date": "date", "time": "time", "list": "list", "null": "empty"}
    return simple.get(kind) or (str(type_) if kind in ("bool", "int", "uint", "float") else "object")
