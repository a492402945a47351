"""Small files of other writers, kept in ``testdata/foreign``: read with pyparq alone, and compared with what
``testdata/make_foreign.py`` put into them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyparq
from pyparq import col
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize

FOREIGN = Path(__file__).parents[2] / "testdata" / "foreign"
EXPECTED: dict[str, Any] = json.loads((FOREIGN / "expected.json").read_text("utf-8"))
FILES: list[str] = sorted(EXPECTED["files"])
ROWS = len(EXPECTED["columns"]["row"])


def plain(value: Any) -> Any:
    """A value of ``to_pydict`` in the JSON form of ``make_foreign.plain``."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        since = value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo and dt.UTC)
        return since // dt.timedelta(microseconds=1) * 1000
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    if isinstance(value, (np.datetime64, np.timedelta64)):
        kind = "M8[ns]" if isinstance(value, np.datetime64) else "m8[ns]"
        return int(value.astype(kind).astype(np.int64))
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@lru_cache(maxsize=4)
def whole(name: str) -> dict[str, list[Any]]:
    """All columns of a file, once."""
    table = pyparq.read_table(FOREIGN / f"{name}.parquet").to_pydict()
    return {column: [plain(v) for v in values] for column, values in table.items()}


def test_all_files_are_listed() -> None:
    assert sorted(p.stem for p in FOREIGN.glob("*.parquet")) == FILES
    assert {f["writer"].split()[0] for f in EXPECTED["files"].values()} == {
        "pyarrow", "duckdb", "polars", "datafusion", "spark",
    }  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_values(name: str) -> None:
    found = whole(name)
    assert list(found) == EXPECTED["files"][name]["columns"]
    for column, values in found.items():
        assert values == EXPECTED["columns"][column], column


@pytest.mark.parametrize("name", FILES)
def test_column_by_column(name: str) -> None:
    path = FOREIGN / f"{name}.parquet"
    for column in EXPECTED["files"][name]["columns"]:
        (values,) = pyparq.read_table(path, columns=[column]).to_pydict().values()
        assert [plain(v) for v in values] == EXPECTED["columns"][column], column


@pytest.mark.parametrize("name", FILES)
def test_batches(name: str) -> None:
    """Some rows at a time, over row groups and pages."""
    with pyparq.ParquetFile(FOREIGN / f"{name}.parquet") as file:
        assert file.metadata.num_rows == ROWS
        rows = [row for batch in file.iter_batches(7, columns=["row", "url"]) for row in batch.to_table().to_pylist()]
    assert rows == [{"row": k, "url": EXPECTED["columns"]["url"][k]} for k in range(ROWS)]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FILES)
def test_filters(name: str) -> None:
    """Whatever indexes the file has: the right rows, with all their values."""
    for case in EXPECTED["answers"]:
        conditions = [(column, op, value) for column, op, value in case["filter"]]
        found = pyparq.read_table(FOREIGN / f"{name}.parquet", filters=conditions).to_pydict()
        for column, values in whole(name).items():
            assert [plain(v) for v in found[column]] == [values[k] for k in case["rows"]], (conditions, column)


@pytest.mark.parametrize("name", ["pyarrow_v1", "datafusion_v1", "spark_v1"])
def test_an_absent_value_costs_no_pages(name: str) -> None:
    """Their Bloom filters say so (their bounds cannot: the value lies between)."""
    with pyparq.ParquetFile(FOREIGN / f"{name}.parquet") as file:
        assert all(file.bloom_filter(k, "url") is not None for k in range(file.num_row_groups))
        report = file.scan(["row"], col("url") == "https://example.org/flights/2013/0030?from=LGA").explain()
    assert (report.rows, report.row_groups, report.pages_decoded) == (0, 0, 0)
    assert "bloom" in [stage.name.split()[0].lower() for stage in report.stages]


@pytest.mark.parametrize("name", ["pyarrow_v1", "datafusion_v1", "polars", "spark_v1"])
def test_one_page_for_one_row(name: str) -> None:
    with pyparq.ParquetFile(FOREIGN / f"{name}.parquet") as file:
        report = file.scan(["row"], col("row") == 41).explain()
        pages = [file.page_locations(k, "row") for k in range(file.num_row_groups)]
    assert sum(len(p.offsets) for p in pages if p is not None) >= 2
    assert (report.rows, report.row_groups, report.pages_decoded) == (1, 1, 1)


def test_padded_pages_of_fastparquet(tmp_path: Path) -> None:
    """fastparquet (2026.9) pads pages of FIXED_LEN_BYTE_ARRAY by 8 bytes. A schema whose length is too small is told
    apart: its pages have a byte per value too many, or more."""
    data = (FOREIGN.parent / "quirks" / "fastparquet_padded.parquet").read_bytes()
    values = [b"x%d" % (k % 10) for k in range(100)]
    assert pyparq.read_table(data)["a"].to_pylist() == values
    assert pyparq.read_table(data, rows=[3, 50])["a"].to_pylist() == [b"x3", b"x0"]
    assert pyparq.read_table(data, filters=col("a") == b"x3").num_rows == 10
    assert not pyparq.verify(data).files[0].findings
    size = int.from_bytes(data[-8:-4], "little")
    meta, _ = deserialize(tt.FileMetaData, data[-8 - size : -8])
    meta.schema[1].type_length = 1
    footer = serialize(meta)
    narrow = data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    for rows in (None, [3]):
        with pytest.raises(pyparq.CorruptFileError, match="208 bytes for 100 PLAIN values of 1 bytes"):
            pyparq.read_table(narrow, rows=rows)
