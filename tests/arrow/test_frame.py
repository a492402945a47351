"""DataFrames without pyarrow: the same as pyarrow makes, in a process that has none."""

from __future__ import annotations

import datetime as dt
import io
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.arrow.to_pandas import frame_of
from pyparq.runtime.messages import requirement

DATE, TIME = dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 12, 30, 1)

COLUMNS = {
    "int": pa.array([1, 2, 3], pa.int16()),
    "int_null": pa.array([1, None, 3], pa.int32()),
    "uint_null": pa.array([1, None, 3], pa.uint64()),
    "float": pa.array([1.5, None, float("nan")], pa.float32()),
    "bool": pa.array([True, False, True]),
    "bool_null": pa.array([True, None, False]),
    "string": pa.array(["a", None, "é"]),
    "binary": pa.array([b"a", None, b""]),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "date": pa.array([DATE, None, DATE]),
    "time": pa.array([dt.time(1, 2, 3), None, dt.time(0)], pa.time64("us")),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-2.25")]),
    "ms": pa.array([TIME, None, TIME], pa.timestamp("ms")),
    "ns": pa.array([TIME, TIME, TIME], pa.timestamp("ns")),
    "utc": pa.array([TIME, None, TIME], pa.timestamp("us", "UTC")),
    "struct": pa.array([{"x": 1}, None, {"x": None}]),
    "nothing": pa.nulls(3),
}


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_as_pyarrow_has_it(rows: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table(COLUMNS).slice(0, rows), sink, row_group_size=2)
    table = pyparq.read_table(sink.getvalue())
    pd.testing.assert_frame_equal(frame_of(table), table.to_arrow().to_pandas())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-1, None, 86_400_000], pa.time32("ms")),
        pa.array([2**62, None, 0], pa.time64("us")),
        pa.array([2**31 - 1, None, 0], pa.date32()),
    ],
)
def test_times_that_python_has_not(column: pa.Array) -> None:
    """pyarrow refuses them; one bad value must not keep the others from being seen. (fastparquet writes such times for
    missing ones.)"""
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column, "n": [1, 2, 3]}), sink)
    frame = pyparq.read_table(sink.getvalue()).to_pandas()
    assert frame["n"].tolist() == [1, 2, 3]
    assert pd.isna(frame["x"][1])
    assert frame["x"].notna().tolist() == [True, False, True]


def test_lists_and_dictionaries() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"l": [[1], [2], None], "d": ["b", None, "a"]}), sink)
    frame = frame_of(pyparq.read_table(sink.getvalue(), read_dictionary=["d"]))
    assert frame["l"].tolist() == [[1], [2], None]
    assert isinstance(frame["d"].dtype, pd.CategoricalDtype)
    assert [None if pd.isna(v) else v for v in frame["d"]] == ["b", None, "a"]


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(3),
        pd.RangeIndex(5, 11, 2, name="n"),
        pd.Index(["a", "b", "c"]),
        pd.Index([3, 1, 2], name="k"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["x", None]),
        pd.date_range("2020-01-01", periods=3, tz="UTC", name="when", freq=None),
    ],
    ids=["default", "range", "text", "named", "levels", "times"],
)
def test_the_index_comes_back(index: pd.Index) -> None:
    frame = pd.DataFrame({"v": [1.0, 2.0, 3.0]}, index=index)
    sink = io.BytesIO()
    frame.to_parquet(sink, engine="pyarrow")
    found = frame_of(pyparq.read_table(sink.getvalue()))
    pd.testing.assert_frame_equal(found, pd.read_parquet(sink, engine="pyarrow"), check_freq=False)


@pytest.mark.parametrize(
    "metadata",
    [b"[", b"{}", b'{"index_columns": 5}', b'{"index_columns": ["no"]}', b'{"index_columns": [{"kind": 1}]}'],
)
def test_metadata_that_makes_no_sense(metadata: bytes) -> None:
    sink = io.BytesIO()
    pyparq.write_table({"a": [1, 2]}, sink, key_value_metadata={"pandas": metadata})
    assert frame_of(pyparq.read_table(sink.getvalue()))["a"].tolist() == [1, 2]


def test_without_pyarrow_and_without_pandas(tmp_path: Path) -> None:
    pyparq.write_table({"a": np.arange(3), "s": ["x", None, "z"]}, tmp_path / "t.parquet")
    code = (
        "import sys, importlib.util as u\n"
        "real, gone = u.find_spec, set(sys.argv[2].split(','))\n"
        "u.find_spec = lambda name, *rest: None if name in gone else real(name, *rest)\n"
        "for name in gone: sys.modules[name] = None\n"
        "import pyparq\n"
        "table = pyparq.read_table(sys.argv[1])\n"
        "for method in ('to_arrow', 'to_polars', 'to_pandas'):\n"
        "    try: print(method, type(getattr(table, method)()).__name__)\n"
        "    except pyparq.ParquetError as error: print(error)\n"
    )

    def told(gone: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "t.parquet"), gone], capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    arrow = f"to_arrow() needs pyarrow: pip install {requirement('pyarrow')}"
    polars = f"to_polars() needs polars: pip install {requirement('polars')}"
    assert told("pyarrow,polars") == [arrow, polars, "to_pandas DataFrame"]
    assert told("pyarrow,polars,pandas") == [
        arrow,
        polars,
        f"to_pandas() needs pandas: pip install {requirement('pandas')}",
    ]


def test_categories_keep_the_order_of_their_dictionary() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), ["low", "high"], ordered=True)
    octets = pa.array([b"b", None, b"a"]).dictionary_encode()
    sink = io.BytesIO()
    pq.write_table(pa.table({"w": words, "b": octets}), sink)
    table = pyparq.read_table(sink.getvalue())
    pd.testing.assert_frame_equal(frame_of(table), table.to_arrow().to_pandas())
    assert frame_of(table)["w"].min() == table.to_pandas()["w"].min()


ROADS = """
import gc, sys
import pandas as pd, pyarrow as pa
import pyparq, pyparq.pandas, pyparq.parquet
path, broken = sys.argv[1:]
options = {"self_destruct": True, "split_blocks": True, "memory_pool": pa.system_memory_pool(), "use_threads": False}
roads = {
    "table": lambda path: pyparq.read_table(path).to_pandas(**options),
    "batch": lambda path: next(iter(pyparq.ParquetFile(path).iter_batches())).to_pandas(**options),
    "scan": lambda path: pyparq.dataset(path).scan().to_pandas(**options),
    "pyarrow's names": lambda path: pyparq.parquet.read_table(path).to_pandas(**options),
    "pandas": lambda path: pyparq.pandas.read_parquet(path, to_pandas_kwargs=options),
}
want = pd.read_parquet(path)
for name, road in roads.items():
    frames = [road(path) for _ in range(3)]
    gc.collect()
    pyparq.read_table(path)  # takes memory that is free again
    for frame in frames:
        pd.testing.assert_frame_equal(frame, want)
        assert name != "pandas" or frame.attrs == {"a": 1}
table = pyparq.read_table(path)
table.to_pandas(**options)
pd.testing.assert_frame_equal(table.to_pandas(), want)  # it is still there
assert pyparq.read_table(broken).to_pandas(**options).columns.to_list() == ["a"]
for some in ({"zero_copy_only": True, "split_blocks": True}, {"zero_copy_only": True, **options}):
    frame = pyparq.read_table(path, columns=["x"]).to_pandas(**some)
    pyparq.read_table(path)
    pd.testing.assert_frame_equal(frame, want[["x"]])
print("done")
"""


def test_options_of_pyarrow_that_free_memory(tmp_path: Path) -> None:
    """Each road to a frame works with them, and a table that was converted is as it was."""
    frame = pd.DataFrame({"x": np.arange(50_000), "y": np.arange(50_000) / 2, "s": [str(k) for k in range(50_000)]})
    frame.attrs = {"a": 1}
    frame.to_parquet(tmp_path / "t.parquet")
    wrong = b'{"index_columns": ["a"], "columns": [{"name": 1, "field_name": 7, "pandas_type": {}}]}'
    pq.write_table(pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": wrong}), tmp_path / "broken.parquet")
    args = [sys.executable, "-c", ROADS, str(tmp_path / "t.parquet"), str(tmp_path / "broken.parquet")]
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
