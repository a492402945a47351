"""Key-value metadata of several files whose rows become one table.

A key speaks for all rows, so one file's value is not enough. A key is kept where all files that have it agree. What
describes columns (pandas, GeoParquet) is joined. What describes all columns of a file has to be the same in every
file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyparq.arrow import pandas_key
from pyparq.datasets.common_schema import COMPACTION
from pyparq.errors import DroppedMetadataWarning
from pyparq.format.hybrid_calendar import ROW_METADATA
from pyparq.format.types import Schema
from pyparq.runtime.messages import warn_caller

GEO = b"geo"
_SAID_OTHERWISE = (ROW_METADATA.decode(), "org.apache.spark.version", "pyparq.indexes")
"""Keys about columns, the writer and indexes, of which a table of several files needs nothing."""
_OF_ALL_COLUMNS = (
    ROW_METADATA, b"parquet.avro.schema", b"avro.schema", b"iceberg.schema", b"parquet.proto.descriptor",
    b"parquet.thrift.descriptor",
)  # fmt: skip
"""Keys that describe all columns of a file. Readers take the schema of the rows from some of them."""
_INVALID = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_JOINED_GEO = ("bbox", "geometry_types")


class JointKeys(NamedTuple):
    """The keys of a table of several files."""

    keys: dict[bytes, bytes]
    dropped: tuple[str, ...]
    """Keys that are left out, or that say less than in the files, with what they do not say."""


def joint_keys(schemas: Sequence[Schema], whole: Schema, *, several: bool = True) -> JointKeys:
    """The keys that hold for the rows of files with these ``schemas``. ``whole``: their common schema. ``several``:
    whether there is more than one file, even if they have one schema."""
    found = list(dict.fromkeys(key for schema in schemas for key in schema.metadata if key != COMPACTION))
    if not several and len(schemas) == 1:
        return JointKeys({key: schemas[0].metadata[key] for key in found}, ())
    keys: dict[bytes, bytes] = {}
    dropped: list[str] = []
    for key in found:
        value, lost = _joint_value(key, schemas, whole)
        if value is not None:
            keys[key] = value
        name = key.decode(errors="replace")
        dropped += [name if value is None else f"{name} ({', '.join(lost)})"] if lost or value is None else []
    return JointKeys(keys, tuple(dropped))


def warn_dropped(dropped: Sequence[str], source: str) -> None:
    """Warn with :class:`pyparq.DroppedMetadataWarning` of keys that do not hold for all rows."""
    names = [name for name in dropped if name not in _SAID_OTHERWISE]
    if names:
        text = f"{source}: the files differ in key-value metadata. Left out: {', '.join(names)}"
        warn_caller(text, DroppedMetadataWarning)


def _joint_value(key: bytes, schemas: Sequence[Schema], whole: Schema) -> tuple[bytes | None, list[str]]:
    """The value of a key, and what is lost of it."""
    if key == pandas_key.PANDAS:
        return pandas_key.joined(schemas, whole)
    values = {schema.metadata.get(key) for schema in schemas}
    if key == GEO and len(values) > 1:
        return _joined_geo(schemas), []
    if key not in _OF_ALL_COLUMNS:
        values.discard(None)
    return (values.pop() if len(values) == 1 else None), []


def _joined_geo(schemas: Sequence[Schema]) -> bytes | None:
    """GeoParquet's key for all rows: boxes and types of geometries are joined. ``None`` if the files differ in anything
    else, such as the reference system: coordinates would be confused."""
    try:
        described = [json.loads(schema.metadata.get(GEO, b'{"columns": {}}')) for schema in schemas]
        names = dict.fromkeys(name for found in described for name in found["columns"])
        columns = {
            name: _joined_column(
                [f["columns"].get(name) for f, s in zip(described, schemas, strict=True) if name in s.names]
            )
            for name in names
        }
        rest = [
            {key: value for key, value in found.items() if key != "columns"} for found in described if len(found) > 1
        ]
    except _INVALID:
        return None
    if None in columns.values() or any(other != rest[0] for other in rest):
        return None
    return json.dumps({**rest[0], "columns": columns}).encode()


def _joined_column(described: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """``described``: what each file that has the column says of it. ``None``: nothing."""
    known = [found for found in described if found is not None]
    if not known or len(known) < len(described):
        return None
    rest = [{key: value for key, value in found.items() if key not in _JOINED_GEO} for found in known]
    if any(other != rest[0] for other in rest):
        return None
    types = [found.get("geometry_types", []) for found in known]
    boxes = [found.get("bbox") for found in known]
    # An empty list says that the types are not known.
    joined = {**rest[0], "geometry_types": sorted({name for own in types for name in own}) if all(types) else []}
    box = _joined_box(boxes)
    return joined if box is None else {**joined, "bbox": box}


def _joined_box(boxes: Sequence[Any]) -> list[float] | None:
    """The box around all. ``None`` if one is missing or crosses the antimeridian."""
    if not all(isinstance(box, list) and len(box) == len(boxes[0]) and len(box) in (4, 6) for box in boxes):
        return None
    half = len(boxes[0]) // 2
    if any(box[k] > box[k + half] for box in boxes for k in range(half)):
        return None
    return [min(box[k] for box in boxes) for k in range(half)] + [
        max(box[k] for box in boxes) for k in range(half, 2 * half)
    ]
