"""What Arrow has no type of its own for: annotations that travel in a field's metadata.

UUID, JSON, VARIANT, GEOMETRY and GEOGRAPHY are Arrow extension types, known by name. ENUM, BSON, INTERVAL, times
adjusted to UTC, shredded Variants and the bytes of INT96 have none: ``PARQUET:logical_type`` says so (and makes a file
that is read and written again keep them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyparq.errors import SchemaError, UnsupportedError
from pyparq.format import ttypes as tt
from pyparq.format.types import Field, LeafType, Physical

EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"
FIELD_ID = b"PARQUET:field_id"
LOGICAL_TYPE = b"PARQUET:logical_type"
LAYOUT = b"PARQUET:arrow_layout"
"""A key of a field's metadata in ``ARROW:schema``, for layouts that other readers do not understand as a type.

``dictionary:i`` or ``ordered:i`` (with the format of the indices) and ``run_end:i`` (with that of the run ends) stand
on a field that has the type of the values. ``date64`` stands on a field of date32. Several are separated by spaces,
the outer layout first."""

UUID, JSON, WKB, VARIANT = b"arrow.uuid", b"arrow.json", b"geoarrow.wkb", b"arrow.parquet.variant"
BOOL8 = b"arrow.bool8"
IN_ANNOTATIONS = (UUID, JSON, WKB, VARIANT)
"""Extension types that Parquet has annotations for, which say all there is to say."""

ALGORITHMS = {number: name.lower() for number, name in tt.EdgeInterpolationAlgorithm._VALUES_TO_NAMES.items()}
"""Names of ``EdgeInterpolationAlgorithm``, lower case as GeoArrow writes them."""

_LOGICAL_BY_KIND = {"enum": b"ENUM", "bson": b"BSON", "interval": b"INTERVAL", "int96_bytes": b"INT96"}
_LONGITUDE_LATITUDE = ("OGC:CRS84", "EPSG:4326")
_AUTHORITY_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_]*:[A-Za-z0-9_.-]+")
_MOST_CRS = 1 << 20
"""Bytes of a CRS definition that are looked at."""

OF_PANDAS = (b"pandas.period", b"pandas.interval")
"""Extension types whose stored values mean nothing without the parameters of the type."""


def check_entries(name: str, metadata: Mapping[bytes, bytes]) -> None:
    """Raise :class:`UnsupportedError` for categories that are periods or intervals of pandas: a dictionary in a file
    would have their numbers alone. ``metadata``: those of the entries."""
    if metadata.get(EXTENSION_NAME) in OF_PANDAS:
        raise UnsupportedError(
            f"the column has categories of the type {metadata[EXTENSION_NAME].decode()}, which no file can store. "
            "Convert the categories to text, or the column to the type of its categories",
            column=name,
        )


# ---- reading: annotation to metadata -------------------------------------------------------------------------------


def metadata_of(leaf: LeafType, key_values: Mapping[bytes, bytes] | None = None) -> dict[bytes, bytes]:
    """The metadata of the Arrow field that a leaf becomes. ``key_values`` are the file's, where a CRS may lie."""
    kind = leaf.kind
    if kind == "uuid":
        return {EXTENSION_NAME: UUID, EXTENSION_METADATA: b""}
    if kind == "json":
        return {EXTENSION_NAME: JSON, EXTENSION_METADATA: b""}
    if kind in ("geometry", "geography"):
        import json  # (here and below) a millisecond of an import that few files need

        described = _geoarrow_crs(leaf.crs, key_values or {})
        if kind == "geography":
            described["edges"] = leaf.algorithm or "spherical"
        return {EXTENSION_NAME: WKB, EXTENSION_METADATA: json.dumps(described, separators=(",", ":")).encode()}
    if kind in _LOGICAL_BY_KIND:
        return {LOGICAL_TYPE: _LOGICAL_BY_KIND[kind]}
    if kind == "time" and leaf.utc:
        return {LOGICAL_TYPE: b"TIME_UTC"}
    return {}


def _geoarrow_crs(crs: str, key_values: Mapping[bytes, bytes]) -> dict[str, Any]:
    """GeoArrow's members for a CRS as Parquet stores it (Geospatial.md, Coordinate Reference System)."""
    if not crs:
        return {"crs": _LONGITUDE_LATITUDE[0], "crs_type": "authority_code"}
    if crs.startswith("srid:"):
        return {"crs": crs.removeprefix("srid:"), "crs_type": "srid"}
    text = crs
    if crs.startswith("projjson:"):
        text = key_values.get(crs.removeprefix("projjson:").encode(), b"").decode("utf-8", "replace")
    definition = _json_object(text)
    if definition is not None:
        return {"crs": definition, "crs_type": "projjson"}
    if _AUTHORITY_CODE.fullmatch(crs) and not crs.startswith("projjson:"):
        return {"crs": crs, "crs_type": "authority_code"}
    return {"crs": crs}


def _json_object(text: str | bytes) -> dict[str, Any] | None:
    if len(text) > _MOST_CRS or text.lstrip()[:1] not in ("{", b"{"):
        return None
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def variant_metadata(children: tuple[Field, ...]) -> dict[bytes, bytes]:
    """The metadata of a group annotated with VARIANT: an extension type if the group has the form of one. A shredded
    Variant has not; it is a struct of its stored parts."""
    parts = [(child.name, child.type.kind, child.nullable) for child in children]
    if sorted(parts) == [("metadata", "binary", False), ("value", "binary", False)]:
        return {EXTENSION_NAME: VARIANT, EXTENSION_METADATA: b""}
    return {LOGICAL_TYPE: b"VARIANT"} if "metadata" in {child.name for child in children} else {}


# ---- writing: metadata to annotation -------------------------------------------------------------------------------


def annotated(field: Field, leaf: LeafType) -> LeafType:
    """The leaf type with what the field's metadata adds to it; ``leaf`` itself where that does not fit its type.

    Raises :class:`SchemaError` for a GeoArrow column that says what Parquet cannot hold.
    """
    extension = field.metadata.get(EXTENSION_NAME, b"")
    logical = field.metadata.get(LOGICAL_TYPE, b"").upper()
    kind = leaf.kind
    if kind == "fixed":
        if extension == UUID and leaf.length == 16:
            return replace(leaf, kind="uuid")
        if logical == b"INT96" and leaf.length == 12:
            return LeafType(Physical.INT96, "int96", unit="ns")
        return replace(leaf, kind="interval") if logical == b"INTERVAL" and leaf.length == 12 else leaf
    if kind == "string":
        named = "json" if extension == JSON else "enum" if logical == b"ENUM" else kind
        return replace(leaf, kind=named)
    if kind == "binary":
        if extension == WKB:
            return _geospatial(field)
        return replace(leaf, kind="bson") if logical == b"BSON" else leaf
    if kind == "time" and logical == b"TIME_UTC":
        return replace(leaf, utc=True)
    return leaf


def _geospatial(field: Field) -> LeafType:
    """GEOMETRY, or GEOGRAPHY where the edges are not planar."""
    raw = field.metadata.get(EXTENSION_METADATA, b"")
    described = _json_object(raw) if raw.strip() else {}
    if described is None:
        raise SchemaError("the geoarrow.wkb metadata is not a JSON object", column=field.name)
    crs = _parquet_crs(described, field.name)
    edges = described.get("edges") or "planar"
    if edges == "planar":
        return LeafType(Physical.BYTE_ARRAY, "geometry", crs=crs)
    if edges not in ALGORITHMS.values():
        known = ", ".join(["planar", *ALGORITHMS.values()])
        raise SchemaError(
            f"the geoarrow.wkb column has edges {edges!r}, but Parquet has only {known}", column=field.name
        )
    return LeafType(Physical.BYTE_ARRAY, "geography", crs=crs, algorithm=str(edges))


def _parquet_crs(described: dict[str, Any], name: str) -> str:
    """The CRS as Parquet stores it; ``""`` for longitude and latitude, and (as others do) for none at all."""
    crs, kind = described.get("crs"), described.get("crs_type")
    if crs is None or crs in _LONGITUDE_LATITUDE:
        return ""
    if isinstance(crs, dict):
        found = crs.get("id")
        if isinstance(found, dict) and f"{found.get('authority')}:{found.get('code')}" in _LONGITUDE_LATITUDE:
            return ""
        import json

        return json.dumps(crs, separators=(",", ":"))
    if not isinstance(crs, str):
        raise SchemaError(f"the CRS of a geoarrow.wkb column is a {type(crs).__name__}", column=name)
    return f"srid:{crs}" if kind == "srid" else crs


def is_variant_field(field: Field) -> bool:
    """Whether a struct is marked as a Variant. Raises :class:`SchemaError` if it does not have the form of one."""
    if field.type.format == "+s" and field.metadata.get(LOGICAL_TYPE) == b"VARIANT":
        return "metadata" in {child.name for child in field.type.children}  # all of a shredded one, or a part
    if field.metadata.get(EXTENSION_NAME) != VARIANT or field.type.format != "+s":
        return False
    parts = {child.name: child.type.kind for child in field.type.children}
    if parts != {"metadata": "binary", "value": "binary"}:
        raise SchemaError(
            "an unshredded Variant is a struct of binary fields 'metadata' and 'value', "
            f"not {', '.join(parts) or 'empty'}",
            column=field.name,
        )
    return True


FILE_PARTS = {
    "uri": "string", "offset": "int64", "size": "int64", "content_type": "string", "checksum": "string",
    "inline": "binary",
}  # fmt: skip
"""Fields of a FILE and their types (LogicalTypes.md, "FILE"). All are nullable, and each may be left out."""
_FORMATS = {"string": ("u", "U", "vu"), "int64": ("l",), "binary": ("z", "Z", "vz")}


def is_file_field(field: Field) -> bool:
    """Whether a struct is marked as a FILE. Raises :class:`SchemaError` if it does not have the form of one."""
    if field.type.format != "+s" or field.metadata.get(LOGICAL_TYPE) != b"FILE":
        return False
    for child in field.type.children:
        wanted = FILE_PARTS.get(child.name)
        if wanted is None:
            raise SchemaError(f"a FILE has no field {child.name!r}, only {', '.join(FILE_PARTS)}", column=field.name)
        if child.type.format not in _FORMATS[wanted]:
            raise SchemaError(f"the field {child.name!r} of a FILE is {wanted}, not {child.type}", column=field.name)
        if not child.nullable:
            raise SchemaError(f"the field {child.name!r} of a FILE must be nullable", column=field.name)
    return True
