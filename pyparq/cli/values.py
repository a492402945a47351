"""Values as text and as JSON: bounds and literals of a leaf, cells of a result.

Text of bounds can be pasted into ``--where``. JSON keeps what it can express exactly: decimals, dates and times are
strings, binary is ``"0x…"``, NaN and infinities are ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.arrow.to_python import is_variant
from pyparq.cli.output import cut
from pyparq.filters.literal import format_literal
from pyparq.format.order import FLOAT_KINDS, Order
from pyparq.format.types import DataType, Field, LeafType
from pyparq.runtime.text import visible

Format = Callable[[Any], str]

_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ZERO_FRACTION = re.compile(r"\.0+(?=Z?$)")
_NARROW: dict[str, Any] = {"float16": np.float16, "float": np.float32, "e": np.float16, "f": np.float32}


def bound_text(leaf: LeafType, value: Any, order: Order, limit: int = 1 << 30) -> str:
    """A bound as SQL would write it, its text cut to ``limit`` cells."""
    if leaf.kind in FLOAT_KINDS:
        value = _zero(value, order)
        return float_text(_NARROW[leaf.kind](value) if leaf.kind in _NARROW else float(value))
    if not isinstance(value, bytes):
        text = format_literal(leaf, value.item() if isinstance(value, np.generic) else value)
        return _ZERO_FRACTION.sub("", text) if leaf.kind in ("timestamp", "time") else text
    if leaf.kind == "uuid":
        return format_literal(leaf, value)
    decoded = _decoded(leaf, value)
    if decoded is not None:
        return f"'{cut(visible(decoded), limit)}'"
    return f"X'{cut(value.hex(), limit)}'"


def _decoded(leaf: LeafType, value: bytes) -> str | None:
    """Text of a string; ``None`` for binary and for what is no UTF-8 (truncated bounds may end inside a letter)."""
    if not leaf.is_text:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _zero(value: Any, order: Order) -> Any:
    """Writers store -0.0 for a minimum of zero, so that it is below both zeros: that says nothing of the values. In an
    order that tells the zeros apart it does."""
    return value if order is Order.TOTAL else value + type(value)(0)


def bound_json(leaf: LeafType, value: Any, order: Order) -> Any:
    """A bound for JSON."""
    value = _zero(value, order) if leaf.kind in FLOAT_KINDS else value
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        if leaf.kind == "uuid" and len(value) == 16:
            return str(uuid.UUID(bytes=value))
        text = _decoded(leaf, value)
        return "0x" + value.hex() if text is None else text
    if leaf.kind in FLOAT_KINDS:
        return _float_json(float(str(_NARROW[leaf.kind](value))) if leaf.kind in _NARROW else value)
    if leaf.kind == "bool":
        return bool(value)
    return value if leaf.kind in ("int", "uint") else format_literal(leaf, value)


def float_text(value: Any) -> str:
    """The shortest text that reads back as the same float of the same width."""
    if not math.isfinite(value):
        return str(_float_json(float(value)))
    return str(value) if isinstance(value, (np.float16, np.float32)) else repr(float(value))


def _float_json(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


# ---- cells of a result: Python objects as Table.to_pylist gives them


def cell_format(field: Field) -> Format:
    """How a cell of a field is shown in a table. Nulls are the caller's (``None`` inside nested values is NULL)."""
    to_json, type_ = field_json(field), field.type
    if type_.is_nested or type_.kind == "bool":
        return lambda value: json.dumps(to_json(value), ensure_ascii=False)
    if type_.kind == "float":
        width = _NARROW.get(type_.format, float)
        return lambda value: float_text(width(value))
    return lambda value: str(to_json(value))


def field_json(field: Field) -> Callable[[Any], Any]:
    """How a cell of a field is put into JSON (``None`` stays null)."""
    inner = _variant_json if is_variant(field) else _json_of(field.type)
    return lambda value: None if value is None else inner(value)


def _variant_json(value: Any) -> Any:
    """What a Variant holds, at any depth."""
    if isinstance(value, dict):
        return {name: _variant_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_variant_json(inner) for inner in value]
    if isinstance(value, float):
        return _float_json(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return _timestamp(value, "Z" if value.tzinfo else "")
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _json_of(type_: DataType) -> Callable[[Any], Any]:
    kind = type_.kind
    if kind == "struct":
        fields = [(f.name, field_json(f)) for f in type_.children]
        return lambda value: {name: convert(value[name]) for name, convert in fields}
    if kind in ("list", "list_view"):
        element = field_json(type_.children[0])
        return lambda value: [element(v) for v in value]
    if kind == "map":
        key, item = (field_json(f) for f in type_.children[0].type.children)
        return lambda value: [[key(k), item(v)] for k, v in value]
    if type_.format in _NARROW:
        narrow = _NARROW[type_.format]
        return lambda value: _float_json(float(str(narrow(value))))
    if kind == "float":
        return _float_json
    if kind in ("binary", "fixed"):
        return lambda value: "0x" + bytes(value).hex()
    if kind == "decimal":
        return lambda value: format(value, "f") if isinstance(value, Decimal) else str(value)
    if kind == "timestamp":
        zone = "Z" if type_.timezone == "UTC" else ""
        of_numpy = "Z" if type_.timezone else ""
        return lambda value: _timestamp(value, of_numpy if isinstance(value, np.datetime64) else zone)
    if kind in ("int", "uint", "bool", "string"):
        return lambda value: value
    if kind == "time":
        return _time
    return str


def _timestamp(value: Any, zone: str) -> str:
    if isinstance(value, np.datetime64):  # an instant in UTC, or a local time
        return str(value) + ("" if np.isnat(value) else zone)
    return str(value.isoformat()).removesuffix("+00:00") + zone


def _time(value: Any) -> str:
    if not isinstance(value, np.timedelta64):
        return str(value)
    unit = np.datetime_data(value)[0]
    seconds, ns = divmod(abs(int(value.astype(np.int64))) * _NS[unit], 10**9)
    sign = "-" if int(value.astype(np.int64)) < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{ns:09d}"


def metadata_json(value: bytes) -> str:
    """A key or value of key-value metadata: text, or base64 (marked) where it is none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode()
