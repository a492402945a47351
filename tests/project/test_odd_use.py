"""What people try: options that are not ours, wrong arguments, several scans of one file, forks, lost folders."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from written import written

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, OptionError, ParquetError
from pyparq.filters.leaf_tests import MOST_LITERALS

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_many_literals_at_the_ends_of_a_type(type_: pa.DataType) -> None:
    """More literals than are compared one by one, spanning all that the type can hold, and some beyond it."""
    bits, signed = type_.bit_width, str(type_).startswith("int")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    values = sorted({low, low + 1, *range(0, 100, 7), high - 1, high})
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": pa.array([*values, None], type_)}), sink)
    near_low = [low - 1, *range(low, low + 20, 2), Decimal(low + 1)]
    near_high = [high + 1, 2**70, *range(high - 20, high + 1, 2), high - 0.5 if bits < 32 else high]
    for literals in (near_low, near_high, near_low + near_high, list(range(50))):
        kept = pyparq.read_table(sink.getvalue(), filters=col("x").isin(literals)).to_pydict()["x"]
        assert kept == [v for v in values if v in literals]
        left = pyparq.read_table(sink.getvalue(), filters=~col("x").isin(literals)).to_pydict()["x"]
        assert left == [v for v in values if v not in literals]


def test_scans_of_one_file_count_for_themselves() -> None:
    data = written({"a": np.arange(50_000), "b": np.arange(50_000)[::-1].copy()}, row_group_size=10_000)
    with pyparq.ParquetFile(data, tail_size=64) as file:
        small, large = file.scan(["a"], col("a") == 5), file.scan()
        small.to_table()
        alone = small.explain().to_dict()
        large.to_table()
        assert small.explain().to_dict() == alone
    with pyparq.ParquetFile(data, tail_size=64) as file:
        large, small = file.scan(), file.scan(["a"], col("a") == 5)
        large.to_table()
        assert small.explain().to_dict() == alone


def test_many_literals_do_not_ask_the_bloom_filter() -> None:
    data = written({"a": np.arange(20_000) * 2}, bloom_filters=["a"], row_group_size=5_000)
    with pyparq.ParquetFile(data) as file:
        for count, asked in ((10, 2), (MOST_LITERALS + 1, 0)):
            scan = file.scan(filters=col("a").isin(list(range(1, 2 * count, 2))))
            assert scan.to_table().num_rows == 0
            found = [s.asked for s in scan.explain().stages if s.name == "bloom filter"]
            assert bool(found) is bool(asked)


def test_a_plan_is_for_one_file(tmp_path: Path) -> None:
    """A file of the same shape under the same name has other rows in other places."""
    path = tmp_path / "t.parquet"
    pyparq.write_table({"a": np.arange(1000)}, path, max_rows_per_page=100)
    with pyparq.ParquetFile(path) as file:
        plan = pickle.loads(pickle.dumps(file.scan(filters=col("a") == 5).plan()))
        assert file.execute(plan).to_pydict() == {"a": [5]}
    pyparq.write_table({"a": np.arange(1000)[::-1].copy()}, path, max_rows_per_page=100)
    with (
        pyparq.ParquetFile(path) as file,
        pytest.raises(OptionError, match=r"changed since the plan was made.*make the plan again"),
    ):
        file.execute(plan)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda f: f.scan([0.5]), "list of names or numbers, but 0.5 is neither"),
        (lambda f: f.scan(row_groups=0), "list of row group numbers"),
        (lambda f: f.scan(row_groups=["a"]), "list of row group numbers"),
        (
            lambda f: pyparq.ParquetFile(b"", qqqq=True),
            r"^ParquetFile\(\) has no option 'qqqq'; help\(\) of the function tells of all that there are$",
        ),
        (lambda f: written({"a": [1]}, flavor="spark"), r"^write_table\(\) has no option 'flavor'; names are kept"),
        (
            lambda f: written({"a": [1]}, qqqq=1),
            r"^write_table\(\) has no option 'qqqq'; help\(\) of the function tells of all that there are$",
        ),
        (lambda f: written({"a": [1]}, key_value_metadata=[1]), "key-value metadata must be a dict"),
        (lambda f: pyparq.read_table("nowhere://x"), "cannot read from 'nowhere://x'"),
        (lambda f: pyparq.write_table({"a": [1]}, "nowhere://x"), "cannot write to 'nowhere://x'"),
    ],
)
def test_wrong_arguments_are_named(call: Any, told: str) -> None:
    with pyparq.ParquetFile(written({"a": [1]})) as file, pytest.raises(OptionError, match=told):
        call(file)


@pytest.mark.parametrize(
    "options",
    [
        {"compression_level": 1.5, "compression": "zstd"},
        {"compression": 5},
        {"use_dictionary": 5},
        {"use_dictionary": {"a": 5}},
        {"write_statistics": {"a": True}},
        {"bloom_filter_options": 5},
        {"column_key_value_metadata": 5},
        {"field_ids": [1]},
    ],
    ids=str,
)
def test_write_options_of_the_wrong_kind(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(options)).replace('_', '.')}|unknown compression"):
        written({"a": [1]}, **options)


@pytest.mark.parametrize(
    "options",
    [{"use_threads": "no"}, {"verify_checksums": 1}, {"limits": 5}, {"read_dictionary": 5}, {"binary_columns": [1]}],
    ids=str,
)
def test_read_options_of_the_wrong_kind(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        pyparq.ParquetFile(written({"a": [1]}), **options)


def test_a_name_that_stands_twice() -> None:
    """Others write such files. Whole tables come out; a name that could mean either column is refused."""
    sink = io.BytesIO()
    pq.write_table(pa.table([[1, 2], [3, 4], [5, 6]], names=["a", "b", "a"]), sink)
    table = pyparq.read_table(sink.getvalue())
    assert [c.to_pylist() for c in table.to_arrow().columns] == [[1, 2], [3, 4], [5, 6]]
    assert pyparq.read_table(sink.getvalue(), columns=["b"], filters=col("b") > 3).to_pydict() == {"b": [4]}
    for ask in (
        lambda: pyparq.read_table(sink.getvalue(), columns=["a"]),
        lambda: pyparq.read_table(sink.getvalue(), filters=col("a") > 1),
        table.to_pydict,
        table.to_pylist,
        lambda: table.to_numpy("a"),
        lambda: table.select(["a"]),
    ):
        with pytest.raises(ColumnNotFoundError, match="2 columns have the name 'a'"):
            ask()


def test_slices_count_from_zero() -> None:
    table = pyparq.read_table(written({"a": [1, 2]}))
    assert (table.slice(1).num_rows, table.slice(5).num_rows) == (1, 0)
    for start, length in ((-1, None), (0, -1)):
        with pytest.raises(OptionError, match="slice"):
            table.slice(start, length)
    with pytest.raises(OptionError, match=r"\[0\]"):
        table.select(0)


def test_lz4_is_the_one_that_all_read() -> None:
    data = written({"a": ["x" * 50] * 1000}, compression="LZ4")
    with pyparq.ParquetFile(data) as file:
        assert file.metadata.row_group(0).column("a").raw.meta_data.codec == 7  # LZ4_RAW
    assert pq.read_table(io.BytesIO(data)).to_pydict() == {"a": ["x" * 50] * 1000}


def test_a_closed_file_says_so(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1]}, tmp_path / "t.parquet")
    file = pyparq.ParquetFile(tmp_path / "t.parquet", tail_size=8)
    file.close()
    with pytest.raises(OptionError, match=r"closed.*t\.parquet"):
        file.read()


def test_shown_as_text() -> None:
    data = written({"a": [1], "s": [{"x": 1, "y": ["z"]}]})
    with pyparq.ParquetFile(data) as file:
        assert repr(file.schema_arrow) == "pyparq.Schema (2 columns)\n" + str(file.schema_arrow)
        assert repr(file.tree).splitlines() == [
            "pyparq.SchemaTree (3 leaves)",
            "a: optional INT64",
            "s: optional group",
            "  x: optional INT64",
            "  y: optional group LIST",
            "    list: repeated group",
            "      element: optional BYTE_ARRAY STRING",
        ]
        assert repr(file.scan(["a"], col("a") > 3)) == "<Scan of <bytes>: a where a > 3>"
        assert repr(file.metadata.row_group(0)) == "<RowGroupMetaData 0: 1 rows, 3 columns>"
        assert [repr(b).splitlines()[0] for b in file.scan().iter_batches()] == ["pyparq.Batch (1 row, 2 columns)"]


@pytest.mark.parametrize(
    "values",
    [
        pd.array([1, None], dtype="Int64"),
        pd.array([1.5, None], dtype="Float64"),
        pd.array([True, None], dtype="boolean"),
        pd.array(["a", None], dtype="string"),
        pd.Categorical(["a", None, "b"]),
        pd.Index([1, 2]),
        pd.date_range("2020-01-01", periods=2),
    ],
    ids=lambda v: type(v).__name__,
)
def test_pandas_arrays_in_a_dict(values: Any) -> None:
    expected = [None if pd.isna(v) else v for v in values]
    assert pyparq.read_table(written({"a": values})).to_pydict()["a"] == expected


def test_rates_below_what_a_filter_can_reach() -> None:
    data = written({"a": [1, 2]}, bloom_filter_options={"a": {"fpp": 1e-300, "max_bytes": 1024}})
    with pyparq.ParquetFile(data) as file:
        assert file.bloom_filter(0, "a").check([1, 2, 3]).tolist() == [True, True, False]


def test_a_missing_folder_is_told_by_the_users_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        pyparq.write_table({"a": [1]}, tmp_path / "no" / "t.parquet")
    assert caught.value.filename == str(tmp_path / "no" / "t.parquet")


def test_a_target_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    writer = pyparq.ParquetWriter(tmp_path / "t.parquet")
    writer.write({"a": [1]})
    (tmp_path / "t.parquet").mkdir()
    (tmp_path / "t.parquet" / "something").touch()
    with pytest.raises(OSError, match=r"t\.parquet"):
        writer.close()
    assert os.listdir(tmp_path) == ["t.parquet"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_leaves_its_parents_file_alone(tmp_path: Path) -> None:
    code = (
        "import os, sys, pyparq\n"
        "writer = pyparq.ParquetWriter(sys.argv[1], use_threads=False)\n"
        "writer.write({'a': [1]})\n"
        "if os.fork() == 0:\n"
        "    sys.exit(0)\n"  # the child's copy of the writer is dropped
        "os.wait()\n"
        "writer.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.parquet")], check=True)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {"a": [1]}


def test_what_others_never_let_go_of_is_not_reported_at_exit() -> None:
    """Such as pyarrow's key tools, of whatever they can reach."""
    code = (
        "import ctypes, pyparq\n"
        "from pyparq import kernels\n"
        "kept = kernels.LeafOrder(0, 4, False, False, False)\n"
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("", "")


def _first_all_null(rows: bool) -> None:
    with pyparq.ParquetWriter(io.BytesIO()) as writer:
        writer.write([{"a": None}] if rows else {"a": [None, None]})
        writer.write([{"a": 1}] if rows else {"a": [1, 2]})


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_messages_say_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pyparq.write_table({"a": [1]}, path)
    calls: list[tuple[Any, str]] = [
        (lambda: pyparq.read_table(path.open()), r"text mode: open it with open\(path, 'rb'\)"),
        (lambda: pyparq.read_table(io.StringIO("abc")), r"open\(path, 'rb'\)"),
        (lambda: pyparq.read_table((tmp_path / "new").open("wb")), "for writing only: open it with"),
        (lambda: pyparq.write_table({"a": [1]}, (tmp_path / "new").open("w")), r"open\(path, 'wb'\)"),
        (lambda: pyparq.write_table({"a": [1]}, io.StringIO()), r"open\(path, 'wb'\)"),
        (lambda: pyparq.write_table({"a": [1]}, path.open("rb")), "for reading only: open it with"),
        (lambda: _first_all_null(rows=False), "Give the writer a schema, such as schema={'a': 'int64.'}"),
        (lambda: _first_all_null(rows=True), "Give the writer a schema, such as schema={'a': 'int64.'}"),
        (lambda: pyparq.write_table(path, {"a": [1]}), "takes the data first"),
        (lambda: pyparq.ParquetWriter({"a": "int64"}, path), "takes the target first"),
        (lambda: pyparq.ParquetWriter(path, {"a": [1]}), "a type is text such as 'int64'"),
        (lambda: pyparq.ParquetFile([path, path]), "use pyparq.dataset or read_table for several files"),
        (lambda: pyparq.read_table(path, col("a") > 0), r"give it as filters=\.\.\."),
        (lambda: pyparq.read_table(path, [("a", ">", 0)]), r"give it as filters=\.\.\."),
        (lambda: pyparq.read_table(path, "b"), "no column 'b'; the columns are 'a'"),
    ]  # fmt: skip
    for call, told in calls:
        with pytest.raises(ParquetError, match=told):
            call()
    with pytest.raises(IsADirectoryError, match=r"use pyparq\.dataset"):
        pyparq.ParquetFile(tmp_path)
    assert pyparq.read_table(path).to_pydict() == {"a": [1]}


@pytest.mark.parametrize(("wrong", "told"), [
    ("pq.read_table(PATH, colums=['a'])", r"read_table\(\) has no option 'colums'; did you mean 'columns'"),
    ("pq.read_table(PATH, filter=None)", "did you mean 'filters'"),
    ("pq.read_pandas(PATH, colum=['a'])", "did you mean 'columns'"),
    ("pq.ParquetDataset(PATH, filter=None)", "did you mean 'filters'"),
    ("pq.ParquetFile(PATH, memory_mapp=True)", "did you mean 'memory_map'"),
    ("pq.ParquetFile(PATH).read(column=['a'])", r"ParquetFile.read\(\) has no argument 'column'; did you mean"),
    ("pq.ParquetFile(PATH).iter_batches(batchsize=1)", "did you mean 'batch_size'"),
    ("pq.read_schema(PATH, memory=1)", "did you mean 'memory_map'"),
    ("pq.write_table({'a': [1]}, 'o', compresion='zstd')", "did you mean 'compression'"),
    ("pq.read_table(PATH, columns=1)", "columns must be a list of names or numbers, not 1"),
    ("pq.ParquetFile(PATH).read_row_group('a')", "'a' out of bounds: the file has 1 row groups"),
    ("pyparq.ParquetFile(PATH).metadata.row_group('a')", "row group 'a' does not exist"),
    ("pyparq.ParquetFile(PATH).to_pandas(column=1)", r"ParquetFile.to_pandas\(\) .* did you mean 'columns'"),
    ("pyparq.ParquetFile(PATH).to_pandas(columns=1)", "columns must be a list of names or numbers, not 1"),
    ("pyparq.read_table(PATH).to_pandas(column=1)", r"Table.to_pandas\(\) .* give it to read_table"),
    ("pyparq.Schema([('a', 'int64')]).names", "pyparq.schema"),
])  # fmt: skip
def test_wrong_arguments_get_a_sentence(tmp_path: Path, wrong: str, told: str) -> None:
    path = tmp_path / "t.parquet"
    pyparq.write_table({"a": [1, 2]}, path)
    names = {"pyparq": pyparq, "pq": pyparq.parquet, "PATH": str(path)}
    with pytest.raises((TypeError, AttributeError, IndexError, pyparq.OptionError), match=told):
        eval(wrong, names)
