"""pandas DataFrames: through pandas' own Arrow conversion, or by our rules where pyarrow is not installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column, pack_mask
from pyparq.arrow.ingest.from_numpy import column_from_numpy
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.arrow.ingest.pandas_metadata import text_of, zone_name
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType
from pyparq.runtime.lazy_import import load


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
    """Column name to values. An index other than a range comes last, as one column per level."""
    columns: dict[str, Any] = {}
    for k, label in enumerate(frame.columns):
        name = text_of(label)
        if name in columns:
            raise DataError(f"two columns have the name {name!r}. Rename one", column=name)
        columns[name] = column_values(frame.iloc[:, k], name)
    index = frame.index
    if type(index).__name__ == "RangeIndex":
        return columns  # the metadata has it
    for level in range(index.nlevels):
        values = index.get_level_values(level)
        name = f"__index_level_{level}__" if values.name is None else text_of(values.name)
        if name in columns:
            raise DataError(f"an index level and a column are both called {name!r}. Rename one", column=name)
        columns[name] = column_values(values.to_series(), name)
    return columns


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
        zone = zone_name(dtype.tz)
        return fixed_column(DataType(f"ts{dtype.unit[0]}:{zone}"), numbers, ~missing if missing.any() else None)
    if kind == "CategoricalDtype":
        return _categories(series, name)
    if kind == "StringDtype":
        return column_from_list(_objects(series), name, DataType("u"))
    if kind in ("PeriodDtype", "IntervalDtype", "SparseDtype"):
        raise UnsupportedError(
            f"a pandas {dtype} column cannot be stored. Convert it to another type first", column=name
        )
    plain = getattr(dtype, "numpy_dtype", None)
    if isinstance(plain, np.dtype) and plain.kind in "biuf":  # pandas' nullable numbers
        missing = series.isna().to_numpy(bool)
        filled = series.fillna(plain.type(0)).to_numpy(plain)
        if plain.kind == "f":
            missing = missing | np.isnan(filled)
        return _masked(filled, missing)
    return _objects(series)


def _categories(series: Any, name: str) -> Column:
    """A dictionary column with all categories, used or not, in their order."""
    categories = column_values(series.cat.categories.to_series(), name)
    if isinstance(categories, np.ndarray):
        categories = column_from_numpy(categories, name, column_from_list)
    elif not isinstance(categories, Column):
        categories = column_from_list(categories, name)
    codes = series.cat.codes.to_numpy()
    indices = column_from_numpy(np.ascontiguousarray(codes), name, column_from_list)
    present = codes >= 0
    validity, nulls = pack_mask(None if present.all() else present)
    type_ = DataType(indices.type.format, (), categories.type, bool(series.cat.ordered))
    return Column(type_, len(codes), validity, indices.buffers, nulls, (), categories)


def _masked(values: Any, missing: Any) -> Any:
    return np.ma.masked_array(values, missing) if missing.any() else values


def _objects(series: Any) -> list[Any]:
    """Python objects; whatever pandas calls missing is ``None``."""
    missing = series.isna().to_numpy(bool)
    values: list[Any] = series.to_numpy(object).tolist()
    return [None if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]
