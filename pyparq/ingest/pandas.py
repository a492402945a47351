"""pandas DataFrames: through pandas' own Arrow conversion, or by our rules where pyarrow is not installed."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import numpy as np

from pyparq._version import __version__
from pyparq.columns import fixed_column
from pyparq.errors import DataError, UnsupportedError
from pyparq.later import load
from pyparq.schemas.types import DataType, Field, Schema


def stream_from_pandas(frame: Any) -> Any | None:
    """The frame as an Arrow stream made by pandas, or ``None`` when pandas cannot (no pyarrow, or too old)."""
    if not hasattr(frame, "__arrow_c_stream__") or importlib.util.find_spec("pyarrow") is None:
        return None
    try:
        return load("nanoarrow.c_array_stream").c_array_stream(frame)
    except NotImplementedError as error:
        raise UnsupportedError(f"pandas cannot convert the DataFrame to Arrow: {error}") from error
    except Exception as error:  # pyarrow's errors have no common type that could be named without importing it
        raise DataError(f"pandas cannot convert the DataFrame to Arrow: {error}") from error


def columns_from_pandas(frame: Any) -> dict[str, Any]:
    """Column name to values. An index other than the default one comes last, as one column per level."""
    columns: dict[str, Any] = {}
    for name, series in frame.items():
        if str(name) in columns:
            raise DataError(f"two columns are called {str(name)!r}; rename one", column=str(name))
        columns[str(name)] = column_values(series, str(name))
    index = frame.index
    if type(index).__name__ == "RangeIndex" and index.name is None:
        return columns
    for level in range(index.nlevels):
        values = index.get_level_values(level)
        name = f"__index_level_{level}__" if values.name is None else str(values.name)
        if name in columns:
            raise DataError(f"an index level and a column are both called {name!r}; rename one", column=name)
        columns[name] = column_values(values.to_series(), name)
    return columns


def pandas_metadata(frame: Any, schema: Schema) -> dict[bytes, bytes]:
    """The ``pandas`` metadata by which readers find the index again (pandas' developer documentation)."""
    import pandas

    names = [str(name) for name in frame.columns]
    levels = [name for name in schema.names if name not in names]
    index: list[Any] = list(levels)
    if not levels:
        span = frame.index
        index = [{"kind": "range", "name": None, "start": span.start, "stop": span.stop, "step": span.step}]
    described = {
        "index_columns": index,
        "column_indexes": [
            {"name": None, "field_name": None, "pandas_type": "unicode", "numpy_type": "object",
             "metadata": {"encoding": "UTF-8"}}
        ],
        "columns": [_described(field, names, frame, levels) for field in schema],
        "creator": {"library": "pyparq", "version": __version__},
        "pandas_version": pandas.__version__,
    }  # fmt: skip
    return {b"pandas": json.dumps(described).encode()}


def _described(field: Field, names: list[str], frame: Any, levels: list[str]) -> dict[str, Any]:
    """One column's entry: what pandas called it, and its dtype there."""
    name: str | None = field.name
    if field.name in names:
        dtype = frame.dtypes.iloc[names.index(field.name)]
    else:
        level = levels.index(field.name)
        name = frame.index.names[level]
        dtype = frame.index.get_level_values(level).dtype
    numpy_type = str(dtype) if isinstance(dtype, np.dtype) else "object"
    metadata = {"timezone": str(dtype.tz)} if hasattr(dtype, "tz") else None
    if metadata is not None:
        numpy_type = "datetime64[ns]"
    return {
        "name": None if name is None else str(name), "field_name": field.name, "pandas_type": _pandas_type(field.type),
        "numpy_type": numpy_type if field.type.kind != "string" else str(dtype), "metadata": metadata,
    }  # fmt: skip


def _pandas_type(type_: DataType) -> str:
    kind = type_.kind
    if kind == "timestamp":
        return "datetimetz" if type_.timezone else "datetime"
    simple = {"string": "unicode", "binary": "bytes", "date": "date", "time": "time", "list": "list", "null": "empty"}
    return simple.get(kind) or (str(type_) if kind in ("bool", "int", "uint", "float") else "object")


def column_values(series: Any, name: str) -> Any:
    """A Series, Index or extension array as a numpy array (masked where values are missing), a list, or a column."""
    if type(series).__module__.split(".")[0] == "pandas" and type(series).__name__ != "Series":
        import pandas  # it is there: an Index or one of its extension arrays was given

        series = pandas.Series(series)
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        if dtype.kind == "f":
            return _masked(values, np.isnan(values))
        return _objects(series) if dtype.kind == "O" else values
    kind = type(dtype).__name__
    if kind == "DatetimeTZDtype":
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        missing = np.isnat(naive)
        numbers = np.ascontiguousarray(naive).view(np.int64)
        return fixed_column(DataType(f"ts{dtype.unit[0]}:UTC"), numbers, ~missing if missing.any() else None)
    if kind == "CategoricalDtype":
        return _objects(series.astype(object))
    if kind in ("PeriodDtype", "IntervalDtype", "SparseDtype"):
        raise UnsupportedError(f"a pandas {dtype} column: convert it to a plain one first", column=name)
    plain = getattr(dtype, "numpy_dtype", None)
    if isinstance(plain, np.dtype) and plain.kind in "biuf":  # pandas' nullable numbers
        missing = series.isna().to_numpy(bool)
        filled = series.fillna(plain.type(0)).to_numpy(plain)
        if plain.kind == "f":
            missing = missing | np.isnan(filled)
        return _masked(filled, missing)
    return _objects(series)


def _masked(values: Any, missing: Any) -> Any:
    return np.ma.masked_array(values, missing) if missing.any() else values


def _objects(series: Any) -> list[Any]:
    """Python objects; whatever pandas calls missing is ``None``."""
    missing = series.isna().to_numpy(bool)
    values: list[Any] = series.to_numpy(object).tolist()
    return [None if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]
