"""The Spark type of each column, and a lossless cast to it.

Spark takes Arrow batches with exactly its own types. Other types are cast to a Spark type that holds all their values.
If there is none, planning fails and names the column.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.datasets.partitions import HiveFolders
from pyparq.datasets.write.partition_split import moment_text
from pyparq.errors import DataError, UnsupportedError
from pyparq.format.types import DataType, Schema
from pyparq.spark.literals import instant_us, wall_us, zone_of
from pyparq.spark.session import infers_partitions, time_zone
from pyparq.spark.stored import conformed, has_variant, is_variant, spark_variant, with_collations

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS, BATCH_BYTES = 1 << 16, 16 << 20
"""Rows or bytes from which on a batch goes to Spark."""


class SparkTypes:
    """The types that the columns of ``schema`` have in Spark.

    ``truncate``: cut nanoseconds to microseconds, and allow it for times of day and durations too. Raises
    :class:`UnsupportedError`, which names the column, for a type that Spark has nothing for.
    """

    def __init__(self, schema: Schema, *, truncate: bool = False) -> None:
        import pyarrow as pa
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        self._truncate = truncate
        ours = pa.schema(schema)
        aimed = pa.schema([pa.field(field.name, _target(field, field.name)) for field in ours])
        self.spark: Any = with_collations(from_arrow_schema(aimed), schema)
        """Spark's schema (a ``StructType``): every field nullable, as with Spark's own reader."""
        self.arrow: pa.Schema = to_arrow_schema(self.spark, timezone="UTC")
        """The same as Spark expects it of Arrow batches."""
        for field, name in zip(self.arrow, ours.names, strict=True):
            _check_castable(ours.field(name), field)

    def cast(self, data: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a table, batch or scan in Spark's types, in batches that are not small: each costs Spark
        milliseconds.

        Raises :class:`DataError`, which names the column, for a value that would be changed.
        """
        import pyarrow as pa

        yield from _gathered(map(self._cast, pa.RecordBatchReader.from_stream(data)))

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        pairs = zip(batch.columns, self.arrow, strict=True)
        return pa.RecordBatch.from_arrays(
            [_cast(column, field, self._truncate) for column, field in pairs], schema=self.arrow
        )


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches, such as those of small files, put together."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)


def _target(field: pa.Field, name: str) -> pa.DataType:
    """The type that a column is cast to; it is one that ``from_arrow_schema`` knows."""
    import pyarrow as pa

    is_, type_ = pa.types, field.type
    if is_variant(field):
        return spark_variant()
    if isinstance(type_, pa.BaseExtensionType):
        return _target(pa.field(name, type_.storage_type), name)
    if is_.is_dictionary(type_) or is_.is_run_end_encoded(type_):
        return _target(pa.field(name, type_.value_type), name)
    if is_.is_struct(type_):
        return pa.struct([pa.field(f.name, _target(f, f"{name}.{f.name}")) for f in type_])
    if is_.is_map(type_):
        value = pa.field("value", _target(type_.item_field, f"{name}.value"))
        return pa.map_(_target(type_.key_field, f"{name}.key"), value)
    if hasattr(type_, "value_type"):  # all kinds of lists
        return pa.list_(_target(type_.value_field, f"{name}.element"))
    if is_.is_decimal(type_):
        if type_.precision > 38:
            raise _no_type(name, f"{type_}: Spark's decimals have at most 38 digits")
        return pa.decimal128(type_.precision, type_.scale)
    if is_.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz is not None else None)
    found = _plain(type_)
    if found is None:
        raise _no_type(name, str(type_))
    return found


def _plain(type_: pa.DataType) -> pa.DataType | None:
    """The type for one without parameters; ``None`` where Spark has none."""
    import pyarrow as pa

    is_ = pa.types
    widened = {
        pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(), pa.date64(): pa.date32(),
    }  # fmt: skip
    if type_ in widened:
        return widened[type_]
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return pa.string()
    if is_.is_binary(type_) or is_.is_large_binary(type_) or is_.is_binary_view(type_):
        return pa.binary()
    if is_.is_fixed_size_binary(type_):
        return pa.binary()
    if is_.is_time(type_):
        return pa.time64("ns")
    if is_.is_duration(type_):
        return pa.duration("us")
    same = is_.is_signed_integer(type_) or is_.is_floating(type_) or is_.is_boolean(type_) or is_.is_null(type_)
    return type_ if same or is_.is_date32(type_) else None


def _no_type(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"Spark has no type for {what}. Leave the column out with columns=", column=name)


def _check_castable(have: pa.Field, want: pa.Field) -> None:
    """Say before a job starts what no value could be cast to."""
    import pyarrow as pa

    if has_variant(want):
        return
    try:
        _spelled_out(pa.nulls(0, have.type)).cast(want.type)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise _no_type(have.name, str(have.type)) from error


def in_microseconds(type_: pa.DataType) -> pa.DataType:
    """The type with microseconds for nanoseconds in times of day, at any depth."""
    import pyarrow as pa

    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(in_microseconds(f.type)) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(in_microseconds(type_.key_type), type_.item_field.with_type(in_microseconds(type_.item_type)))
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(in_microseconds(type_.value_type)))
    return pa.time64("us") if type_ == pa.time64("ns") else type_


def _spelled_out(column: pa.Array) -> pa.Array:
    """The values of a dictionary that pyarrow casts to no other type, or of runs."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type) and column.type.value_type not in (pa.string(), pa.binary()):
        return column.dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        import pyarrow.compute as pc

        return pc.run_end_decode(column)
    return column


def _cast(column: pa.Array, field: pa.Field, truncate: bool) -> pa.Array:
    import pyarrow as pa
    from pyarrow.compute import CastOptions

    def to(values: pa.Array, type_: pa.DataType) -> pa.Array:
        # Parts of a unit may be cut off, but no number may wrap around.
        return values.cast(options=CastOptions(target_type=type_, allow_time_truncate=truncate))

    column = _spelled_out(column)
    try:
        if str(column.type).find("time64[ns]") >= 0:  # Spark's times have microseconds, in an Arrow type with more
            column = to(column, in_microseconds(column.type))
        if has_variant(field):
            return conformed(column, field.type, to)
        return column if column.type == field.type else to(column, field.type)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a value would change in Spark's type for the column, {field.type} ({error})"
            + ("" if truncate else ". To cut off nanoseconds, give truncate=True"),
            column=field.name,
        ) from None


_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DOUBLE = re.compile(rf"(?:(?:{_NUMBER.pattern})[fFdD]?|[+-]?(?:NaN|Infinity))", re.ASCII)
_DATE = re.compile(r"(?:-?\d{4}|[+-]\d{5,6})-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(rf"{_DATE.pattern} (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d)?", re.ASCII)
_DIGITS = 38
_OF_INTEGERS = {"int": 10, "long": 20}
"""Digits of the decimal that holds all of them."""


@dataclass(frozen=True)
class SparkFolders(HiveFolders):
    """Folders called ``name=value``, whose values have the types that Spark infers.

    ``zone``: the session's, for timestamps; ``""``: it is not known, and they are text. ``inferred``: whether there are
    other types than text (``spark.sql.sources.partitionColumnTypeInference.enabled``).
    """

    zone: str = ""
    inferred: bool = True
    instants: tuple[str, ...] = ()
    """Columns that are known to be timestamps."""

    def column(self, name: str, texts: Sequence[str | None]) -> Column:
        """The values of a column. All of them have one type: text where nothing else fits them all."""
        kinds = {self._kind(text) for text in texts if text is not None}
        if name in self.instants and kinds <= {"date", "timestamp"}:
            kinds = {"timestamp"}
        type_, read = _common(kinds, [text for text in texts if text is not None])
        if type_.format.startswith("ts"):
            zone = zone_of(self.zone)
            values = [None if text is None else _moment(text, zone) for text in texts]
            mask = np.array([value is not None for value in values], bool)
            ticks = np.array([value or 0 for value in values], np.int64)
            return fixed_column(type_, ticks, mask)
        return cast(column_from_list([None if text is None else read(text) for text in texts], name), type_, name)

    def _kind(self, text: str) -> str:
        if not self.inferred:
            return "string"
        if _WHOLE.fullmatch(text):
            number = int(text)
            if -(1 << 63) <= number < 1 << 63:
                return "int" if -(1 << 31) <= number < 1 << 31 else "long"
        if _NUMBER.fullmatch(text) and _decimal_digits(text) <= _DIGITS:
            return "decimal"
        if _DOUBLE.fullmatch(text.strip()):
            return "double"
        if _is_moment(text) and self.zone:
            return "timestamp"
        return "date" if _is_date(text) else "string"


def declared_folders(schema: Any, zone: str | None) -> Any:
    """How folders called ``name=value`` get the types of a Spark schema: a value for ``partitioning``."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import TimestampType

    instants = tuple(field.name for field in schema if isinstance(field.dataType, TimestampType))
    return SparkFolders(zone, instants=instants) if instants and zone else to_arrow_schema(schema, timezone="UTC")


def folders_of(spark: Any) -> SparkFolders:
    """As the session's settings say."""
    return SparkFolders(time_zone(spark), infers_partitions(spark))


def _common(kinds: set[str], texts: Sequence[str]) -> tuple[DataType, Any]:
    """The type of a column whose values look like these, and what makes a value of a text."""
    if kinds <= {"int"} and kinds:
        return DataType("i"), int
    if kinds <= {"int", "long"} and kinds:
        return DataType("l"), int
    if kinds <= {"int", "long", "decimal"} and kinds:
        digits = [_decimal_digits(text) for text in texts] + [
            _OF_INTEGERS[kind] for kind in kinds & _OF_INTEGERS.keys()
        ]
        return DataType(f"d:{max(digits)},0"), _decimal
    if kinds in ({"double"}, {"int", "double"}):
        return DataType("g"), _double
    if kinds == {"date"}:
        return DataType("tdD"), _day
    if kinds <= {"date", "timestamp"} and kinds:
        return DataType("tsu:UTC"), None
    return DataType("u"), str


def _decimal(text: str) -> Decimal:
    return Decimal(int(Decimal(text)))


def _decimal_digits(text: str) -> int:
    """Digits of a number without decimal places; more than there can be for one that has some."""
    _, digits, exponent = Decimal(text).as_tuple()
    if not isinstance(exponent, int) or exponent < 0:
        return _DIGITS + 1
    return max(len(digits) + exponent if any(digits) else 1, 1)


def _double(text: str) -> float:
    return float(text.strip().rstrip("fFdD") if not text.strip().endswith(("NaN", "Infinity")) else text)


def _day(text: str) -> Any:
    """A date of any year: Python's own end at 9999. Raises :class:`ValueError` for a day that no month has."""
    return np.datetime64(text, "D")


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and _day(text) is not None
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    return bool(_TIME.fullmatch(text)) and _is_date(text.split(" ")[0])


def _moment(text: str, zone: dt.tzinfo) -> int:
    """Microseconds since 1970 of what a clock of the zone shows, or of the beginning of a day."""
    return instant_us(int(np.datetime64(text.replace(" ", "T"), "us").astype(np.int64)), zone)


# ---- writing ---------------------------------------------------------------------------------------------------------


def zoned_names(schema: Any, partition_cols: Sequence[str], zone: str) -> list[str]:
    """The partition columns of a pyarrow schema whose folders are named after clocks of the session's zone."""
    import pyarrow as pa

    types = {name: schema.field(name).type for name in partition_cols} if zone else {}
    return [name for name, type_ in types.items() if pa.types.is_timestamp(type_) and type_.tz is not None]


def with_clocks(rows: Any, names: Sequence[str], zone: str) -> Any:
    """A pyarrow reader of the rows of another one, with the instants in the columns called ``names`` as the text of a
    clock in the zone."""
    import pyarrow as pa

    fields = [field.with_type(pa.string()) if field.name in names else field for field in rows.schema]
    made = pa.schema(fields, rows.schema.metadata)

    def changed() -> Iterator[Any]:
        for batch in rows:
            columns = [
                _clocks(column, zone) if name in names else column
                for name, column in zip(made.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=made)

    return pa.RecordBatchReader.from_batches(made, changed())


def _clocks(column: Any, name: str) -> Any:
    import pyarrow as pa

    zone, codes = zone_of(name), column.cast(pa.timestamp("us", "UTC"), safe=False).dictionary_encode()
    instants = codes.dictionary.cast(pa.int64()).to_pylist()
    return pa.array([_shown(wall_us(us, zone)) for us in instants], pa.string()).take(codes.indices)


def _shown(us: int) -> str:
    """As Spark writes it: without zeros at the end of a second's part."""
    return moment_text(np.datetime64(us, "us"))
