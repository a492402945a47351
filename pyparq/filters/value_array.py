"""Literals that users give, as Python values: scalars and arrays of numpy, pandas, pyarrow and polars.

Points in time stay exact: as Python objects they would lose nanoseconds, or need pandas. Many numbers stay one array:
one Python object per literal would take longer than the search.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow.column_operations import concat
from pyparq.arrow.exchange import arrays_from_arrow, column_from_nanoarrow, field_from_nanoarrow
from pyparq.arrow.layouts import normalize
from pyparq.filters.times import UNIT_NS, Instant
from pyparq.format.types import LeafType
from pyparq.runtime.text import printable

MANY = 256
"""Fewer values than this may as well be Python objects."""

BYTES_KINDS = ("string", "enum", "json", "bson", "binary", "fixed")
"""Kinds of leaves whose literals are bytes; text is its UTF-8."""

Numbers = npt.NDArray[Any]

NARROW_FLOATS: dict[str, Any] = {
    "float16": np.float16, "halffloat": np.float16, "float32": np.float32, "float": np.float32,
    "Float32": np.float32, "float[pyarrow]": np.float32, "halffloat[pyarrow]": np.float16,
}  # fmt: skip
"""Float types narrower than Python's, by the names of numpy, pyarrow, pandas and polars."""

_TIMES = ("timestamp[", "time64[", "date64[", "duration[", "Datetime(", "Duration(", "Time")
"""Prefixes of the names of exact times in pyarrow, pandas (over pyarrow) and polars."""

_NULL_TYPES = frozenset(("NoneType", "NAType", "NaTType"))


# ---- one value


def is_null_literal(value: object) -> bool:
    """None, ``pandas.NA``, ``NaT`` of pandas or numpy, a null of pyarrow (told by type name: neither is imported)."""
    name = type(value).__name__
    if name in _NULL_TYPES:
        return True
    if name in ("datetime64", "timedelta64"):
        return bool(value != value)
    return name.endswith("Scalar") and not getattr(value, "is_valid", True)


def plain(value: Any) -> Any:
    """A Python number for a numpy number, the content of a 0-d array or a pyarrow scalar. Anything else is returned
    unchanged."""
    if isinstance(value, np.generic):
        if isinstance(value, (np.datetime64, np.timedelta64)):
            return value
        if isinstance(value, np.floating):
            # float32's own shortest digits are kept for decimals; longdouble must not lose any.
            exceeds = isinstance(value, np.longdouble) and not isinstance(value, float)
            return value if exceeds else _float(value)
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return plain(value[()])
    if hasattr(value, "as_py"):
        exact = _exact_scalar(value)
        if exact is not None:
            return exact
        inside = value.as_py()
        narrow = NARROW_FLOATS.get(str(value.type))
        return inside if narrow is None or inside is None else _float(narrow(inside))
    return value


class _ShortFloat(float):
    """A float that came from a narrower numpy type: prints with that type's digits."""

    __slots__ = ("text",)
    text: str

    @printable
    def __repr__(self) -> str:
        return self.text


def _float(value: Any) -> float:
    if isinstance(value, float):
        return float(value)
    short = _ShortFloat(value)
    short.text = str(value)
    return short


def _exact_scalar(scalar: Any) -> Any:
    """The value of a pyarrow scalar. ``None`` if it is null or no point in time."""
    name, ticks = str(scalar.type), getattr(scalar, "value", None)
    if not name.startswith(_TIMES) or ticks is None:
        return None
    unit = name[name.index("[") + 1 :].split("]")[0].split(",")[0]
    return _exact(name.split("[")[0], unit, "tz=" in name, ticks)


def _exact(kind: str, unit: str, aware: bool, ticks: int) -> Any:
    if kind == "timestamp":
        return Instant(ticks * UNIT_NS[unit], aware)
    if kind == "date64":
        return Instant(ticks * UNIT_NS["ms"], False)
    return np.array(ticks, "M8[D]" if kind == "date" else f"m8[{unit}]")[()]


# ---- collections


def list_of_values(values: Any) -> tuple[Any, ...] | ValueArray | ByteArray:
    """The values of a collection: Python's, or buffers of many numbers, texts or bytes. The scalars of pyarrow and
    numpy are slower, and masked ones are no longer None."""
    many = values if isinstance(values, (ValueArray, ByteArray)) else _many_values(values)
    if many is not None:
        return many
    name = str(getattr(values, "type", getattr(values, "dtype", "")))
    narrow = NARROW_FLOATS.get(name)
    if narrow is not None:  # keep their own digits, which Python's floats would lose
        known = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist() if _counts(values) else values
        return tuple(None if is_null_literal(value) else narrow(value) for value in known)
    exact = _exact_values(values) if name.startswith(_TIMES) else None
    if exact is not None:
        return exact
    if hasattr(values, "to_pylist"):
        return tuple(values.to_pylist())
    if _counts(values) and getattr(values.dtype, "itemsize", 8) <= 8:
        return tuple(values.tolist())
    return tuple(values)


def _counts(values: Any) -> bool:
    return hasattr(values, "dtype") and getattr(values.dtype, "kind", "") in ("b", "i", "u", "f", "U", "S")


def _exact_values(values: Any) -> tuple[Any, ...] | None:
    """The values of an array or series of exact times, ``None`` for nulls. ``None`` for one that is no Arrow array."""
    if not (hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")):
        return None
    schema, arrays = arrays_from_arrow(values)
    type_ = field_from_nanoarrow(schema).type
    if type_.dictionary is not None or type_.kind not in ("timestamp", "time", "date", "duration"):
        return None
    kind = type_.kind if type_.format != "tdm" else "date64"
    unit, aware = type_.unit or "D", bool(type_.timezone)
    found: list[Any] = []
    for array in arrays:
        column = column_from_nanoarrow(array, type_)
        valid = column.valid_mask()
        ticks = column.values().tolist()
        known = [True] * len(ticks) if valid is None else valid.tolist()
        found += [
            _exact(kind, unit, aware, tick) if is_valid else None for tick, is_valid in zip(ticks, known, strict=True)
        ]
    return tuple(found)


class ValueArray:
    """Integers or floats, and possibly a null. It behaves like a tuple of the Python values."""

    __slots__ = ("_found", "has_null", "numbers")

    def __init__(self, numbers: Numbers, has_null: bool) -> None:
        """``numbers``: an array of any integer or float dtype, without the null. It must not be changed."""
        self.numbers = numbers
        self.has_null = has_null
        self._found: dict[tuple[str, int], tuple[Numbers, bool]] = {}

    def __len__(self) -> int:
        return len(self.numbers) + self.has_null

    def __iter__(self) -> Iterator[Any]:
        """Python's numbers. Narrow floats come as numpy's, which keep their own digits."""
        narrow = self.numbers.dtype.kind == "f" and self.numbers.dtype.itemsize < 8
        yield from (self.numbers if narrow else self.numbers.tolist())
        if self.has_null:
            yield None

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueArray, (self.numbers, self.has_null)

    def without_null(self) -> ValueArray:
        return ValueArray(self.numbers, False)

    def among(self, leaf: LeafType) -> tuple[Numbers, bool] | None:
        """The values that a numeric leaf can hold, distinct and sorted, in the dtype of its comparable domain; and
        whether NaN is among the values. ``None`` for other leaves. Computed once, however many files are asked."""
        if leaf.kind not in ("int", "uint", "float16", "float", "double"):
            return None
        key = leaf.kind, leaf.bits or 8 * leaf.width
        if key not in self._found:
            self._found[key] = _fitting(self.numbers, *key)
        return self._found[key]


class ByteArray(Sequence[Any]):
    """Many texts, byte strings or UUIDs, sorted and each once, and possibly a null. It behaves like a tuple of them."""

    __slots__ = ("data", "has_null", "kind", "offsets")

    def __init__(self, offsets: Numbers, data: Numbers, kind: type = bytes, has_null: bool = False) -> None:
        self.offsets, self.data, self.kind, self.has_null = offsets, data, kind, has_null

    @classmethod
    def of(cls, values: Sequence[bytes], kind: type, has_null: bool) -> ByteArray:
        ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
        return cls(*kernels.distinct_binary(np.concatenate(([0], ends)), b"".join(values)), kind, has_null)

    def __len__(self) -> int:
        return len(self.offsets) - 1 + self.has_null

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return tuple(self[i] for i in range(len(self))[k])
        k = range(len(self))[k]
        if k == len(self.offsets) - 1:
            return None
        raw = self.data[self.offsets[k] : self.offsets[k + 1]].tobytes()
        return raw if self.kind is bytes else raw.decode() if self.kind is str else UUID(bytes=raw)

    def without_null(self) -> ByteArray:
        return ByteArray(self.offsets, self.data, self.kind)

    def among(self, leaf: LeafType) -> tuple[ByteArray, bool] | None:
        """The bytes of all values. ``None`` where one of them cannot be a value of the leaf."""
        fits = leaf.kind in {str: BYTES_KINDS, bytes: (*BYTES_KINDS, "uuid"), UUID: ("uuid",)}[self.kind]
        if leaf.length:
            fits = fits and self.kind is not str and set(np.diff(self.offsets).tolist()) == {leaf.length}
        return (ByteArray(self.offsets, self.data), False) if fits else None


def _many_values(values: Any) -> ValueArray | ByteArray | None:
    """The values of a numpy array, a pandas Series over one, an Arrow array or column, or a list or set of Python
    values of one type, if they are many numbers, texts or bytes. ``None`` for anything else."""
    try:
        if len(values) < MANY:
            return None
    except TypeError:
        return None
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        plain = dtype.kind in "iuf" and dtype.itemsize <= 8 and getattr(values, "ndim", 0) == 1
        masked = isinstance(values, np.ma.MaskedArray)
        return ValueArray(np.array(values).astype(dtype.newbyteorder("=")), False) if plain and not masked else None
    if isinstance(values, (list, tuple, set, frozenset)):
        return _of_objects(values)
    if hasattr(values, "iloc"):  # pandas' own types have NaN or nulls in their own ways
        return None
    arrow = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    return _of_arrow(values) if arrow else None


def _of_objects(values: Iterable[Any]) -> ValueArray | ByteArray | None:
    """Python's integers, floats, texts, bytes or UUIDs, and None. Other objects are refused: True is not 1, and a
    Decimal is no float."""
    kinds = set(map(type, values))
    has_null = type(None) in kinds
    kinds.discard(type(None))
    kind: Any = kinds.pop() if len(kinds) == 1 else None
    if kind not in (int, float, *_RAW):
        return None
    known = [v for v in values if v is not None] if has_null else list(values)
    try:
        if kind in _RAW:
            return ByteArray.of(list(map(_RAW[kind], known)), kind, has_null)
        return ValueArray(np.array(known, np.float64 if kind is float else np.int64), has_null)
    except (OverflowError, UnicodeEncodeError):
        return None


def _of_arrow(values: Any) -> ValueArray | ByteArray | None:
    schema, arrays = arrays_from_arrow(values)
    type_ = field_from_nanoarrow(schema).type
    if type_.kind not in ("int", "uint", "float", "string", "binary") or type_.dictionary is not None:
        return None
    column = concat([normalize(column_from_nanoarrow(array, type_), "keys") for array in arrays])
    valid = column.valid_mask()
    rows = None if valid is None else np.flatnonzero(valid)
    has_null = rows is not None and len(rows) < column.length
    if not column.type.is_binary_like:
        return ValueArray(np.array(column.values()) if rows is None else column.values()[rows], has_null)
    texts = column.offsets(), column.buffers[1]
    known = kernels.distinct_binary(*(texts if rows is None else kernels.take_binary(*texts, rows)))
    return ByteArray(*known, str if type_.kind == "string" else bytes, has_null)


def _fitting(numbers: Numbers, kind: str, bits: int) -> tuple[Numbers, bool]:
    if kind in ("int", "uint"):
        return _distinct(_integers(numbers, kind, bits)), False
    narrow = np.dtype(f"f{bits // 8}")
    with np.errstate(over="ignore"):
        near = numbers.astype(narrow).astype(np.float64)
    if numbers.dtype.kind == "f":
        kept = near[near == numbers]
        return _distinct(kept + 0.0), bool(np.isnan(numbers).any())  # -0.0 becomes 0.0
    wide = np.dtype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
    limit = 2.0**64 if wide == np.uint64 else 2.0**63  # a value just below the limit may round up to it
    fits = np.isfinite(near) & (near < limit)
    near, own = near[fits], numbers[fits]
    return _distinct(near[near.astype(wide) == own]), False


def _integers(numbers: Numbers, kind: str, bits: int) -> Numbers:
    """The values that an integer type can hold, as int64 or uint64."""
    low, high = (0, (1 << bits) - 1) if kind == "uint" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    wide = np.dtype(np.uint64 if kind == "uint" else np.int64)
    if numbers.dtype.kind == "f":
        exact: Numbers = numbers.astype(np.float64)
        # Both limits are powers of two, which floats hold.
        exact = exact[(exact >= float(low)) & (exact < float(high + 1)) & (exact == np.floor(exact))]
        numbers = exact.astype(wide)
        return numbers
    own = np.iinfo(numbers.dtype)
    if own.min < low:
        numbers = numbers[numbers >= low]
    if own.max > high:
        numbers = numbers[numbers <= high]
    return numbers.astype(wide, copy=False)


_RAW: dict[Any, Any] = {str: str.encode, bytes: bytes, UUID: operator.attrgetter("bytes")}


def _distinct(numbers: Numbers) -> Numbers:
    """Sorted distinct values."""
    distinct: Numbers = kernels.distinct_numbers(numbers).view(numbers.dtype)
    return distinct
