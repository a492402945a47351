"""A table as a pandas DataFrame by our own rules, for where pandas has no pyarrow to convert through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.convert import chunks_to_numpy, column_to_pylist, without_mask
from pyparq.schemas.types import DataType

if TYPE_CHECKING:
    import pandas

    from pyparq.table import Table

_AS_OBJECTS = ("date", "time", "list", "list_view", "struct", "map", "string", "binary", "fixed", "decimal", "null")


def frame_of(table: Table) -> pandas.DataFrame:
    """What pyarrow's ``to_pandas()`` makes of the table, but for items of lists, which are lists here.

    Integers with nulls become float64, booleans with nulls objects; dictionaries become categories; times keep their
    unit and zone. ``pandas`` metadata, where the table has it, brings the index back.
    """
    import pandas as pd

    columns: dict[int, Any] = {k: _series(table, k) for k in range(table.num_columns)}
    frame = pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))
    frame.columns = pd.Index(table.column_names)
    return _with_index(frame, table.schema.metadata.get(b"pandas"))


def _series(table: Table, k: int) -> Any:
    import pandas as pd

    type_ = table.schema.fields[k].type
    chunks = [batch.columns[k] for batch in table.batches]
    if type_.dictionary is not None:
        values = [value for chunk in chunks for value in column_to_pylist(chunk)]
        # In the dictionaries' order, which may mean something.
        entries = (e for chunk in chunks if chunk.dictionary for e in column_to_pylist(chunk.dictionary))
        known = list(dict.fromkeys(e for e in entries if e is not None))
        categories = _strings(known) if type_.dictionary.kind == "string" else pd.Index(known)
        return pd.Series(pd.Categorical(values, categories, ordered=type_.ordered))
    if type_.kind in _AS_OBJECTS:
        values = [value for chunk in chunks for value in column_to_pylist(chunk)]
        return pd.Series(_objects(values)) if type_.kind != "string" else _strings(values)
    return _flat(type_, chunks_to_numpy(type_, chunks))


def _strings(values: list[Any]) -> Any:
    """Of the type that this pandas gives strings."""
    import pandas as pd

    return pd.Series(_objects(values), dtype=pd.Series(["x"]).dtype)


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), object)
    for k, value in enumerate(values):  # lists of one length would make two dimensions
        array[k] = value
    return array


def _flat(type_: DataType, values: Any) -> Any:
    """Numbers, booleans, timestamps and durations, with pandas' own marks for what is missing."""
    import pandas as pd

    series = pd.Series(without_mask(values))
    if type_.kind == "timestamp" and type_.timezone:
        return series.dt.tz_localize("UTC").dt.tz_convert(type_.timezone)
    return series


def _with_index(frame: pandas.DataFrame, metadata: bytes | None) -> pandas.DataFrame:
    """The index that the metadata of a DataFrame tells of. It is a hint: what does not fit is ignored."""
    import pandas as pd

    try:
        levels = json.loads(metadata or b"{}")["index_columns"]
        if len(levels) == 1 and isinstance(levels[0], dict) and levels[0]["kind"] == "range":
            found = levels[0]
            index = pd.RangeIndex(found["start"], found["stop"], found["step"], name=found["name"])
            return frame.set_axis(index) if len(index) == len(frame) else frame
        if not levels or not all(isinstance(name, str) and list(frame.columns).count(name) == 1 for name in levels):
            return frame
        indexed = frame.set_index(levels)
    except (ValueError, TypeError, KeyError):
        return frame
    indexed.index.names = [None if n.startswith("__index_level_") else n for n in levels]
    return indexed
