"""``pandas.read_parquet`` and ``DataFrame.to_parquet`` on pyparq's engine."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.to_pandas import with_zones, zones_of
from pyparq.errors import OptionError, UnsupportedError
from pyparq.io.locations import StorageOptions
from pyparq.parquet import read_table, write_table, write_to_dataset


def read_parquet(
    path: Any,
    engine: str | None = None,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    dtype_backend: str | None = None,
    filesystem: Any = None,
    filters: Any = None,
    to_pandas_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A DataFrame of a file, a folder, a URL or a file object, as ``pandas.read_parquet`` returns it.

    ``columns``: names; the index of pandas comes too. ``filters``: tuples as in pandas; rows that do not match
    are not read. ``engine``: as pandas has it; pyparq reads in any case. ``storage_options``: for the file system of a
    URL; headers for one of HTTP, as in pandas. ``dtype_backend``: ``"numpy_nullable"``
    or ``"pyarrow"``; numpy's types by default. ``options``: those of :func:`pyparq.parquet.read_table`.

    Raises :class:`pyparq.UnsupportedError` without pandas or pyarrow, which makes pandas' frames.

    Example::

        import pyparq.pandas

        frame = pyparq.pandas.read_parquet("flights.parquet", columns=["flight"], filters=[("dest", "==", "LAX")])
    """
    pandas = _pandas()
    _check_engine(engine)
    if dtype_backend not in (None, "numpy_nullable", "pyarrow"):
        raise OptionError(f"dtype_backend must be 'numpy_nullable' or 'pyarrow', not {dtype_backend!r}")
    source, system = _place(path, storage_options, filesystem)
    table = read_table(
        source, columns=columns, filters=filters, use_pandas_metadata=True, filesystem=system, **options
    )  # fmt: skip
    attributes = (table.schema.metadata or {}).get(b"PANDAS_ATTRS")
    # After self_destruct=True the table must not be touched.
    zones = zones_of(schema_from_arrow(table.schema))
    frame = table.to_pandas(types_mapper=_types(pandas, dtype_backend), **(to_pandas_kwargs or {}))
    frame = with_zones(frame, zones)
    if attributes:
        import json

        frame.attrs = json.loads(attributes)
    return frame


def to_parquet(
    df: Any,
    path: Any = None,
    *,
    engine: str | None = None,
    compression: str | Mapping[str, str] | None = "snappy",
    index: bool | None = None,
    partition_cols: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Any,
) -> bytes | None:
    """Write a DataFrame to a file, or to a folder where ``partition_cols`` is given.

    ``path``: a path, a URL or a file object; ``None`` returns the file as bytes. ``index``: store pandas' index; by
    default a range is stored as metadata alone. ``options``: those of :func:`pyparq.parquet.write_table`.

    Example::

        import pandas as pd
        import pyparq.pandas

        frame = pd.DataFrame({"price": [1.5, 2.5]}, index=pd.Index(["a", "b"], name="key"))
        pyparq.pandas.to_parquet(frame, "prices.parquet", compression="zstd")
    """
    _pandas()
    _check_engine(engine)
    import json

    import pyarrow as pa

    given = {} if index is None else {"preserve_index": index}
    table = pa.Table.from_pandas(df, schema=options.pop("schema", None), **given)
    if df.attrs:
        own = {**(table.schema.metadata or {}), b"PANDAS_ATTRS": json.dumps(df.attrs).encode()}
        table = table.replace_schema_metadata(own)
    buffer = io.BytesIO() if path is None else None
    target, system = _place(path, storage_options, filesystem) if buffer is None else (buffer, None)
    if partition_cols is None:
        write_table(table, target, compression=compression or "none", filesystem=system, **options)
    else:
        names = [partition_cols] if isinstance(partition_cols, str) else list(partition_cols)
        write_to_dataset(
            table, target, partition_cols=names, compression=compression or "none", filesystem=system,
            existing_data_behavior=options.pop("existing_data_behavior", "overwrite_or_ignore"), **options,
        )  # fmt: skip
    return None if buffer is None else buffer.getvalue()


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401  pandas' frames come from its tables
    except ImportError as error:
        raise UnsupportedError(f"pyparq.pandas needs pandas and pyarrow, and there is no {error.name}") from None
    return pandas


def _check_engine(engine: str | None) -> None:
    if engine not in (None, "auto", "pyarrow", "fastparquet"):
        raise OptionError(f"engine must be 'auto', 'pyarrow' or 'fastparquet', as in pandas, not {engine!r}")


def _types(pandas: Any, backend: str | None) -> Any:
    """pandas' types for Arrow's."""
    if backend is None:
        return None
    if backend == "pyarrow":
        return pandas.ArrowDtype
    import pyarrow as pa

    made = {
        pa.int8(): pandas.Int8Dtype(), pa.int16(): pandas.Int16Dtype(), pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(), pa.uint8(): pandas.UInt8Dtype(), pa.uint16(): pandas.UInt16Dtype(),
        pa.uint32(): pandas.UInt32Dtype(), pa.uint64(): pandas.UInt64Dtype(), pa.bool_(): pandas.BooleanDtype(),
        pa.string(): pandas.StringDtype(), pa.large_string(): pandas.StringDtype(), pa.float32(): pandas.Float32Dtype(),
        pa.float64(): pandas.Float64Dtype(),
    }  # fmt: skip
    return made.get


def _place(path: Any, storage_options: Mapping[str, Any] | None, filesystem: Any) -> tuple[Any, Any]:
    """A source or target and its file system. Raises :class:`pyparq.OptionError` for options of no URL, as pandas."""
    if not storage_options:
        return path, filesystem
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
    if filesystem is not None or not isinstance(text, str) or "://" not in text:
        where = "beside filesystem=" if filesystem is not None else f"with {path!r}, which is no URL"
        raise OptionError(f"storage_options are for the file system of a URL: they have no use {where}")
    if text.startswith(("http://", "https://")) and all(isinstance(value, str) for value in storage_options.values()):
        storage_options = {"headers": dict(storage_options)}
    return text, StorageOptions(storage_options)
