"""Partition columns with the types that Spark gives them, and folders of timestamps in the session's time zone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import fixed_column
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.datasets.partitions import HiveFolders
from pyparq.datasets.write.partition_split import moment_text
from pyparq.format.types import DataType
from pyparq.spark.literals import instant_us, wall_us, zone_of
from pyparq.spark.session import infers_partitions, time_zone

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


def with_clocks(batches: Iterable[Any], schema: Any, names: Sequence[str], zone: str) -> Any:
    """A reader of the batches, with the instants in the columns called ``names`` as the text of a clock in the
    zone."""
    import pyarrow as pa

    fields = [field.with_type(pa.string()) if field.name in names else field for field in schema]
    made = pa.schema(fields, schema.metadata)

    def changed() -> Iterator[Any]:
        for batch in batches:
            columns = [
                _clocks(column, zone) if field.name in names else column
                for column, field in zip(batch.columns, schema, strict=True)
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
