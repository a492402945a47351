"""Data as pyarrow's writer would store it: ``coerce_timestamps``, ``version``, ``flavor`` and names of lists."""

from __future__ import annotations

import re
from typing import Any

from pyparq.errors import OptionError

_UNFIT = re.compile(r"[ ,;{}()\n\t=]")


def written_schema(schema: Any, version: str, flavor: Any, coerce_timestamps: str | None, int96: bool) -> Any:
    """pyarrow's schema with the types that are written; the schema itself where nothing changes.

    Raises :class:`OptionError` for unknown versions and units.
    """
    if version not in ("1.0", "2.4", "2.6", "2.0"):
        raise OptionError(f"Unsupported Parquet format version: {version}")
    if coerce_timestamps not in (None, "ms", "us"):
        raise OptionError(f"Invalid value for coerce_timestamps: {coerce_timestamps}")
    unit = coerce_timestamps
    if unit is None and version in ("1.0", "2.4", "2.0") and not int96:
        unit = "us for ns"
    import pyarrow as pa

    fields = []
    for field in schema:
        type_ = field.type if int96 else _with_unit(field.type, unit)
        if version == "1.0" and type_ == pa.uint32():
            type_ = pa.int64()
        name = _UNFIT.sub("_", field.name) if flavor and "spark" in flavor else field.name
        fields.append(field.with_type(type_).with_name(name))
    made = pa.schema(fields, schema.metadata)
    return schema if made.equals(schema, check_metadata=True) else made


def _with_unit(type_: Any, unit: str | None) -> Any:
    """Timestamps in another unit, at any depth."""
    import pyarrow as pa

    if unit is None:
        return type_
    if pa.types.is_timestamp(type_):
        if unit == "us for ns":
            return pa.timestamp("us", type_.tz) if type_.unit == "ns" else type_
        return pa.timestamp(unit, type_.tz)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_with_unit(field.type, unit)) for field in type_])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        make = pa.list_ if pa.types.is_list(type_) else pa.large_list
        return make(type_.value_field.with_type(_with_unit(type_.value_type, unit)))
    return type_


def converted(table: Any, schema: Any, allow_truncated: bool) -> Any:
    """The table with the types of ``schema``. Raises pyarrow's ``ArrowInvalid`` where a time would lose digits."""
    if table.schema.equals(schema):
        return table
    renamed = table.rename_columns(schema.names)
    return renamed.cast(schema, safe=not allow_truncated)
