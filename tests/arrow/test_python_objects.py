"""Columns from Python objects and back: one pass of the kernels gives what the slower road gives, and its errors."""

from __future__ import annotations

import datetime as dt
import enum
import gc
import random
import uuid
from collections import OrderedDict
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pyparq
from pyparq.arrow.ingest import from_python
from pyparq.errors import ParquetError


class Level(enum.IntEnum):
    LOW = 1


class Text(str):
    __slots__ = ()


class Price(Decimal):
    pass


class Moment(dt.datetime):
    pass


class Odd(dt.tzinfo):
    """No offset: Python takes the local zone."""

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta | None:
        return None


class Broken(Odd):
    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta | None:
        return dt.timedelta(days=2)


def replaced_uuid(number: Any) -> uuid.UUID:
    made = uuid.UUID(int=5)
    object.__setattr__(made, "int", number)
    return made


ZONE = dt.timezone(dt.timedelta(hours=5))
LIMA, APIA = ZoneInfo("America/Lima"), ZoneInfo("Pacific/Apia")  # Apia left out a day, and moved its clocks
SIMPLE: list[list[Any]] = [
    [1, -5, 2**63 - 1, -(2**63)], [0.5, float("nan"), -0.0], [True, False], ["a", "", "näte", "\U0001f600", "x" * 300],
    [b"", b"ab\0c"],
]  # fmt: skip
PLAIN: list[list[Any]] = [
    *SIMPLE,
    [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1900, 2, 28), dt.date(2000, 2, 29), dt.date(1969, 12, 31)],
    [
        dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1969, 12, 31, 23, 59, 59, 1),
        dt.datetime(2021, 10, 31, 2, 30, fold=1), dt.datetime(2024, 2, 29, 12),
    ],
    [
        dt.datetime(2021, 4, 4, 3, 30, tzinfo=APIA), dt.datetime(2021, 4, 4, 3, 30, tzinfo=APIA, fold=1),
        dt.datetime(1850, 1, 1, tzinfo=LIMA), dt.datetime(2024, 7, 1, 5, tzinfo=dt.UTC),
        dt.datetime(2020, 1, 1, 0, 0, 0, 5, tzinfo=ZONE), dt.datetime(2020, 1, 1, tzinfo=dt.timezone.max),
    ],
    [dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(1, 2, 3, 4, fold=1)],
    [dt.timedelta(0), dt.timedelta(-1, 1, 1), dt.timedelta(99_999_999, 86_399, 999_999), dt.timedelta(-99_999_999)],
    [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")],
    [Decimal("0.00"), Decimal("-1.5"), Decimal("1E+3"), Decimal("-0"), Decimal("99999.999"), Decimal("1E-9"), 7],
    [Decimal("2.50"), -(10**9), None],
    [Decimal(10) ** 37, Decimal(1 - 10**38), Decimal(0), Decimal("12E+35"), 2**63 - 1],
]  # fmt: skip
HOSTILE: list[Any] = [
    2**63, 2**64 - 1, 2**64, -(2**63) - 1, Level.LOW, Text("sub"), "\ud800", np.int8(3), np.float32(0.5),
    np.bool_(True),
    Decimal("NaN"), Decimal("-sNaN12"), Decimal("Infinity"), Decimal("1E-40"), Decimal("1E+90"), Decimal("0E+90"),
    Decimal("0E-40"), Decimal(10**38), Decimal("123456789012345678901234567890.12345678901"), Price("2.5"),
    dt.datetime(1, 1, 1, tzinfo=ZONE), dt.datetime(9999, 12, 31, 23, tzinfo=LIMA),
    dt.datetime(2020, 1, 1, tzinfo=Odd()), dt.datetime(2020, 1, 1, tzinfo=Broken()), Moment(2020, 1, 1, 5),
    dt.time(3, tzinfo=dt.UTC), dt.timedelta.max,
    dt.timedelta.min, pd.Timestamp(5), pd.NaT, pd.Timedelta(5), replaced_uuid("x"), replaced_uuid(2**128),
    replaced_uuid(-1), replaced_uuid(Level.LOW),
    Decimal("1.50"), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=ZONE), dt.date(2020, 1, 1),
    bytearray(b"q"),
    object(), {1, 2}, float, OrderedDict(a=1), {"a": 1, "b": "x"}, {1: 2}, [1, 2], [[1], None], (3, None), [{"q": [1]}],
    np.array([1, 2]), np.datetime64("2020-01-01"), 2**70, {},
]  # fmt: skip


def drawn(draw: random.Random) -> list[Any]:
    """A list of values that mostly go together."""
    shape = draw.random()
    if shape < 0.5:
        values = draw.choices(draw.choice(PLAIN), k=draw.randrange(20))
    elif shape < 0.7:
        values = [drawn(draw)[:3] for _ in range(draw.randrange(8))]
    elif shape < 0.9:
        kinds = {key: draw.choice(PLAIN) for key in "abc"}
        values = [
            {key: draw.choice(kind) for key, kind in draw.sample(sorted(kinds.items()), draw.randrange(4))}
            for _ in range(draw.randrange(12))
        ]
    else:
        values = draw.choices(draw.choice(PLAIN), k=9) + draw.choices(HOSTILE, k=draw.randrange(1, 3))
        draw.shuffle(values)
    if draw.random() < 0.4:
        values = [None if draw.random() < 0.3 else value for value in values]
    return values


SCHEMAS = [
    None, "int64", "int8", "string", "float64", "decimal(20,2)", "decimal(38,9)", "decimal(7,3)",
    "decimal(50,4)", "binary", "date", "timestamp[ms]", "timestamp[ns, UTC]", "time64[us]", "uuid",
    pa.duration("us"), pa.decimal128(9, -2), "large_string", "timestamp[us]",
    pa.list_(pa.int32()), pa.large_list(pa.string()), pa.list_(pa.int64(), 2), pa.map_(pa.string(), pa.int64()),
    pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())]),
    pa.list_(pa.struct([("q", pa.list_(pa.int8()))])),
]  # fmt: skip


def outcome(values: list[Any], schema: Any) -> Any:
    try:
        given = None if schema is None else pyparq.schema(schema if isinstance(schema, dict) else pa.schema(schema))
        table = pyparq.Table.from_pylist([{"x": value} for value in values] or [{}], given)
        alone = pyparq.Table.from_pydict({"x": values}, given)
    except (ParquetError, ValueError, TypeError, OverflowError, AttributeError) as error:
        return type(error), str(error)
    tables = [pa.table(table), pa.table(alone)]
    for made in tables:
        made.validate(full=True)
    return [(str(made.schema), repr(made.to_pylist())) for made in tables]


def test_the_kernels_agree_with_python(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(35)
    cases = [
        (values, {"x": f"{kind}?"} if isinstance(kind, str) else None if kind is None else [("x", kind)])
        for values, kind in ((drawn(draw), draw.choice(SCHEMAS if draw.random() < 0.5 else [None])) for _ in range(700))
    ]
    quick = [outcome(values, schema) for values, schema in cases]
    monkeypatch.setattr(from_python, "by_kernels", lambda *_: None)
    monkeypatch.setattr("pyparq.kernels.split_dicts", lambda _: None)
    for (values, schema), found in zip(cases, quick, strict=True):
        assert outcome(values, schema) == found, (values, schema)
    assert sum(isinstance(found, tuple) for found in quick) > 20
    assert sum(isinstance(found, list) for found in quick) > 300


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_every_hostile_value_alone_and_among_others(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [[value], [None, value], *([*plain, value] for plain in PLAIN), [[value]], [{"k": value}, {"k": 1}]]
    quick = [outcome(case, None) for case in cases]
    monkeypatch.setattr(from_python, "by_kernels", lambda *_: None)
    assert [outcome(case, None) for case in cases] == quick


def test_a_list_in_itself() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(pyparq.DataError, match="64 levels deep"):
        pyparq.Table.from_pydict({"x": endless})
    knot: dict[str, Any] = {}
    knot["k"] = knot
    with pytest.raises(pyparq.DataError, match="64 levels deep"):
        pyparq.Table.from_pylist([knot])


def test_keys_that_come_late_and_in_another_order() -> None:
    rows = [{"a": 1}, {"b": "x", "a": 2}, {}, {"c": None, "b": "".join(["y"])}]
    assert pyparq.Table.from_pylist(rows).to_pylist() == [
        {"a": 1, "b": None, "c": None}, {"a": 2, "b": "x", "c": None}, {"a": None, "b": None, "c": None},
        {"a": None, "b": "y", "c": None},
    ]  # fmt: skip


def test_rows_out_are_those_of_pyarrow() -> None:
    draw = random.Random(36)
    for _ in range(60):
        count = draw.randrange(1, 40)
        given = {
            f"c{k}": pa.array(
                [None if draw.random() < 0.2 else draw.choice(values) for _ in range(count)], pa.infer_type(values)
            )
            for k, values in enumerate(
                [*(plain for plain in SIMPLE if plain[0] != 0.5), [[1], [], [2, None]], [{"q": [1]}]]
            )
        }
        given |= {"i8": given["c0"].cast(pa.int8(), safe=False), "dict": given["c2"].dictionary_encode()}
        given |= {"u64": given["c0"].cast(pa.uint64(), safe=False), "large": given["c2"].cast(pa.large_string())}
        given["map"] = pa.array([[("k", 1)], None, []] * count, pa.map_(pa.string(), pa.int64()))[:count]
        table = pa.table(given)
        part = table.slice(draw.randrange(3), draw.randrange(40))
        assert pyparq.Table.from_arrow(part).to_pylist() == part.to_pylist()
    floats = pa.table({"f": pa.array([0.5, None, -0.0]), "h": pa.array([1.5, 2.5, None], pa.float16())})
    assert repr(pyparq.Table.from_arrow(floats).to_pylist()) == repr(floats.to_pylist())


def test_the_collector_goes_on() -> None:
    """It rests while objects are made, and keeps the state that it had."""
    table = pyparq.Table.from_pylist([{"a": [1], "b": {"x": 1}}])
    assert gc.isenabled()
    table.to_pylist()
    assert gc.isenabled()
    gc.disable()
    try:
        table.to_pylist()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_bad_text_is_named() -> None:
    bad = pa.table(
        {
            "s": pa.Array.from_buffers(
                pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], "<i4")), pa.py_buffer(b"a\xff")]
            )
        }
    )
    with pytest.raises(pyparq.DataError, match="row 1 is not valid UTF-8"):
        pyparq.Table.from_arrow(bad).to_pylist()
