"""What newcomers try first: names and options of other libraries, ``~`` in paths, LazyFrames, literals of any kind."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import pyparq
from pyparq import FilterError, OptionError


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sink_parquet", r"pyparq\.write_table"),
        ("append", "mode=\"append\""), ("open", "ParquetFile"),
        ("read_pandas", "to_pandas"), ("reed_table", "'read_table'"),
    ],
)  # fmt: skip
def test_names_of_other_libraries(name: str, told: str) -> None:
    with pytest.raises(AttributeError, match=told):
        getattr(pyparq, name)


def test_every_name_that_is_given_instead_exists() -> None:
    for text in pyparq._ELSEWHERE.values():
        for word in text.replace("(", " ").replace(",", " ").split():
            if word.startswith("pyparq."):
                found: Any = pyparq
                for part in word.split(".")[1:]:
                    found = getattr(found, part)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("partitioning", r"pyparq\.dataset\(source, partitioning="), ("schema", r"pyparq\.dataset\(source, schema="),
        ("hive_schema", r"pyparq\.dataset"), ("row_index_name", "with_row_index"),
        ("use_pandas_metadata", "leave it out"),
        ("colums", "'columns'"), ("qqqq", r"help\(\) of the function tells of all that there are$"),
    ],
)  # fmt: skip
def test_options_of_other_libraries(option: str, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        pyparq.read_table("x.parquet", **{option: 7})  # type: ignore[misc]


def test_what_is_said_to_do_works(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1, 2]}, tmp_path / "a=5.parquet")
    assert pyparq.dataset(tmp_path, partitioning=None).read().to_pydict() == {"a": [1, 2]}
    (field,) = pyparq.dataset(tmp_path, schema=pyparq.schema({"a": "int32?"})).read().schema.fields
    assert str(field.type) == "int32"


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pyparq.write_table({"a": [1]}, "~/x/../a.parquet")
    pyparq.write_dataset({"a": [2]}, "~/folder")
    assert (tmp_path / "a.parquet").exists()
    assert pyparq.read_table("~/a.parquet").num_rows == pyparq.read_table("~/*.parquet").num_rows == 1
    assert pyparq.dataset("~/folder").count() == pyparq.read_table(Path("~/folder")).num_rows == 1
    pyparq.add_indexes("~/a.parquet", bloom_filters=["a"])
    with pyparq.ParquetFile("~/a.parquet") as file:
        assert file.bloom_filter(0, "a") is not None
    pyparq.rewrite("~/a.parquet", "~/b.parquet")
    assert (tmp_path / "b.parquet").exists()


def test_lazy_frames_stream_in(tmp_path: Path) -> None:
    lazy = pl.LazyFrame({"a": range(100_000), "s": ["x", None] * 50_000}).with_columns(b=pl.col("a") * 2)
    pyparq.write_table(lazy, tmp_path / "x.parquet")
    assert pl.DataFrame(pyparq.read_table(tmp_path / "x.parquet")).equals(lazy.collect())
    pyparq.write_table(lazy.filter(pl.col("a") < 0), tmp_path / "y.parquet")
    assert pyparq.read_table(tmp_path / "y.parquet").to_pydict() == {"a": [], "s": [], "b": []}
    pyparq.write_dataset(lazy, tmp_path / "d", partition_cols=["s"])
    assert pyparq.dataset(tmp_path / "d").count() == 100_000


LITERALS: dict[str, tuple[pa.Array, Any, Any]] = {
    "date": (pa.array([dt.date(2024, 1, 1)]), dt.date(2024, 1, 1), "2024-01-02"),
    "timestamp": (pa.array([dt.datetime(2024, 1, 1)]), "2024-01-01T00:00:00", dt.datetime(2024, 1, 2)),
    "time": (pa.array([dt.time(1)]), dt.time(1), dt.time(2)),
    "duration": (pa.array([dt.timedelta(1)]), dt.timedelta(1), dt.timedelta(2)),
    "decimal": (pa.array([Decimal("1.50")]), Decimal("1.5"), Decimal("1.505")),
    "uuid": (pa.array([uuid.UUID(int=1).bytes], pa.uuid()), uuid.UUID(int=1), uuid.UUID(int=2)),
    "integer": (pa.array([3]), Decimal(3), Decimal("3.5")), "text": (pa.array(["a"]), "a", "b"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LITERALS)
def test_bloom_filters_take_what_equals_takes(tmp_path: Path, kind: str) -> None:
    column, there, absent = LITERALS[kind]
    pyparq.write_table(pa.table({"x": column}), tmp_path / "x.parquet", bloom_filters=["x"], use_dictionary=False)
    with pyparq.ParquetFile(tmp_path / "x.parquet") as file:
        found = file.bloom_filter(0, "x")
        assert found is not None
        assert found.check(there) is True
        assert found.check(absent) is False
        assert found.check([there, absent]).tolist() == [True, False]
        with pytest.raises(FilterError):
            found.check(object())
