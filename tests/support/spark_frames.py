"""Random data of all of Spark's types, and random settings of its writer."""

from __future__ import annotations

import decimal
import random
from typing import Any

import pyarrow as pa

DAY = 86_400_000_000
YEAR_1, YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Microseconds of the first instant that Spark's timestamps are made for, and of the first one behind the last."""

ZONES = ["America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]

LEAVES: list[pa.DataType] = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(),
    pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.duration("us"), pa.decimal128(5, 2),
    pa.decimal128(18, 0), pa.decimal128(20, 7), pa.decimal128(38, 18),
]  # fmt: skip


def table(chance: random.Random, rows: int, columns: int, oldest: int = YEAR_1) -> pa.Table:
    """Random columns behind a column ``row``. ``oldest``: the first point in time, in microseconds since 1970."""
    made = {"row": pa.array(range(rows), pa.int64())}
    for k in range(columns):
        kind = _type(chance, 2)
        nulls = chance.choice([0.0, 0.0, 0.2, 1.0 if chance.random() < 0.2 else 0.0])
        few = [_value(chance, kind, oldest) for _ in range(3)] if chance.random() < 0.3 else []
        values = [
            None if chance.random() < nulls else chance.choice(few) if few else _value(chance, kind, oldest)
            for _ in range(rows)
        ]
        made[chance.choice(["c", "Ä b", "x.y", "Name"]) + str(k)] = pa.array(values, kind)
    return pa.table(made)


def _type(chance: random.Random, depth: int) -> pa.DataType:
    if depth == 0 or chance.random() < 0.7:
        return chance.choice(LEAVES)
    inner = [_type(chance, depth - 1) for _ in range(2)]
    return chance.choice([
        pa.list_(inner[0]), pa.struct([("a", inner[0]), ("b", inner[1])]), pa.map_(pa.string(), inner[0]),
        pa.map_(pa.int32(), inner[0]),
    ])  # fmt: skip


def _value(chance: random.Random, kind: pa.DataType, oldest: int) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: None if chance.random() < 0.2 else _value(chance, field.type, oldest) for field in kind}
    if pa.types.is_list(kind):
        item = kind.value_type
        return [None if chance.random() < 0.2 else _value(chance, item, oldest) for _ in range(chance.randrange(4))]
    if pa.types.is_map(kind):
        keys = {_value(chance, kind.key_type, oldest) for _ in range(chance.randrange(4))}
        items = [None if chance.random() < 0.2 else _value(chance, kind.item_type, oldest) for _ in keys]
        return list(zip(sorted(keys), items, strict=True))
    return _leaf(chance, kind, oldest)


def _leaf(chance: random.Random, kind: pa.DataType, oldest: int) -> Any:
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_integer(kind):
        half = 1 << (kind.bit_width - 1)
        return chance.choice([0, 1, -1, half - 1, -half, chance.randrange(-half, half)])
    if pa.types.is_floating(kind):
        return chance.choice([0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), 1e-30])
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        number = chance.choice([0, 1, most, -most, chance.randint(-most, most)])
        return decimal.Decimal(number).scaleb(-kind.scale, decimal.Context(prec=60))
    if pa.types.is_date(kind):
        return pa.scalar(chance.randrange(oldest // DAY, YEAR_10000 // DAY), pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        near = chance.choice([0, DAY // 2 - 1, chance.randrange(1_500_000_000_000_000, 1_800_000_000_000_000)])
        instant = chance.choice([near, chance.randrange(oldest, YEAR_10000), max(oldest, YEAR_10000 - 1)])
        return pa.scalar(instant, pa.int64()).cast(kind)
    if pa.types.is_duration(kind):
        return pa.scalar(chance.choice([0, 1, -1, chance.randrange(-(10**15), 10**15)]), pa.int64()).cast(kind)
    text = "".join(chance.choice("ab é日\U0001f600'\"\\\n") for _ in range(chance.choice([0, 1, 5, 40])))
    return text if pa.types.is_string(kind) else text.encode()


def settings(chance: random.Random) -> dict[str, str]:
    """Of Spark's writer. Most are the defaults most of the time."""
    rare = chance.random() < 0.4
    legacy = chance.choice(["CORRECTED", "LEGACY"]) if rare else "EXCEPTION"
    return {
        "spark.sql.session.timeZone": chance.choice(ZONES),
        "spark.sql.parquet.outputTimestampType": chance.choice(
            ["INT96", "INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MICROS" if chance.random() < 0.7 else "TIMESTAMP_MILLIS"]
        ),
        "spark.sql.parquet.writeLegacyFormat": str(rare and chance.random() < 0.5).lower(),
        "spark.sql.parquet.compression.codec": chance.choice(["snappy", "zstd", "gzip", "none", "lz4_raw"]),
        "spark.sql.parquet.datetimeRebaseModeInWrite": legacy,
        "spark.sql.parquet.int96RebaseModeInWrite": legacy,
        "parquet.writer.version": chance.choice(["v1", "v1", "v2"]),
        "parquet.page.row.count.limit": chance.choice(["20000", "7"]),
        "parquet.enable.dictionary": chance.choice(["true", "true", "false"]),
    }  # fmt: skip
