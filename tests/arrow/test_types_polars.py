"""polars' types through its own files, where ARROW:schema says most of it."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pytest

import pyparq

pl = pytest.importorskip("polars")

TIMES = pl.Series([dt.datetime(2020, 1, 1)] * 4).dt.replace_time_zone("Asia/Tokyo")
COLUMNS: dict[str, Any] = {
    "categorical": pl.Series(["x", "y", None, "x"], dtype=pl.Categorical),
    "enum": pl.Series(["lo", "hi", None, "hi"], dtype=pl.Enum(["hi", "lo", "mid"])),
    "duration": pl.Series([dt.timedelta(1), None, dt.timedelta(0, 1), dt.timedelta(2)]),
    "time": pl.Series([dt.time(1, 2, 3), None] * 2),
    "zoned": TIMES,
    "array": pl.Series([[1, 2], [3, 4], None, [5, None]], dtype=pl.Array(pl.Int64, 2)),
    "list": pl.Series([["p"], [], None, ["q", None]]),
    "decimal": pl.Series(["1.5", None, "2", "3"]).cast(pl.Decimal(10, 2)),
    "binary": pl.Series([b"1", None, b"", b"22"]),
    "struct": pl.Series([{"c": "k"}, None, {"c": None}, {"c": "m"}]).cast(pl.Struct({"c": pl.Categorical})),
    "null": pl.Series([None] * 4),
    "int64": pl.Series([1, None, 2**40, -1]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_polars_gets_back_what_it_wrote(name: str) -> None:
    frame = pl.DataFrame({name: COLUMNS[name]})
    sink = io.BytesIO()
    frame.write_parquet(sink)
    back = pyparq.read_table(sink.getvalue()).to_polars()
    assert back[name].to_list() == frame[name].to_list()
    if name != "enum":  # its categories are polars' own business: it comes as a categorical
        assert back.schema == frame.schema


@pytest.mark.parametrize("name", [n for n in COLUMNS if n != "duration"])
def test_polars_reads_what_we_write_of_it(name: str) -> None:
    frame = pl.DataFrame({name: COLUMNS[name]})
    sink = io.BytesIO()
    pyparq.write_table(frame, sink, store_schema=True)
    assert pl.read_parquet(sink.getvalue())[name].cast(frame.schema[name]).to_list() == frame[name].to_list()
    assert pyparq.read_table(sink.getvalue()).to_polars()[name].to_list() == frame[name].to_list()
