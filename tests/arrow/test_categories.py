"""Categories of pandas: zones, orders, and types that no file can store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
import pyparq.pandas as ppd
from pyparq.arrow import to_pandas
from pyparq.errors import UnsupportedError

ZONED = pd.to_datetime(["2024-07-01 12:00", "2024-01-01 00:00", None]).tz_localize("America/New_York")


@pytest.mark.parametrize("ordered", [True, False])
def test_categories_keep_their_time_zone(tmp_path: Path, ordered: bool) -> None:
    frame = pd.DataFrame({"a": pd.Categorical(ZONED, ordered=ordered), "b": ["x"] * 3, "c": pd.Categorical(["u"] * 3)})
    due = frame["a"]
    pyparq.write_table(frame, tmp_path / "ours")
    ppd.to_parquet(frame, tmp_path / "by pandas")
    table = pyparq.read_table(tmp_path / "ours")
    for found in (
        table.to_pandas(), to_pandas.frame_of(table), pyparq.read_table(tmp_path / "by pandas").to_pandas(),
        table.to_pandas(split_blocks=True),
    ):  # fmt: skip
        assert found["a"][:2].tolist() == due[:2].tolist()
        assert found["a"].isna().tolist() == [False, False, True]
        assert str(found["a"].cat.categories.dtype.tz) == "America/New_York"
        assert found["a"].cat.ordered == ordered
    as_pandas = ppd.read_parquet(tmp_path / "by pandas")["a"]  # which gives times, and no categories of times
    assert as_pandas.dtype == pd.read_parquet(tmp_path / "by pandas")["a"].dtype
    assert as_pandas[:2].tolist() == due[:2].tolist()
    read = pd.read_parquet(tmp_path / "ours")["a"]
    assert read[:2].tolist() == due[:2].tolist()


@pytest.mark.parametrize(
    "values",
    [
        pd.cut([1, 5], [0, 3, 6]), pd.Categorical(pd.period_range("2024-01", periods=2, freq="M")),
        pd.Categorical(pd.arrays.IntervalArray.from_breaks([0.5, 1, 2], closed="left")),
    ],
    ids=["cut", "periods", "intervals"],
)  # fmt: skip
def test_categories_that_no_file_can_store(tmp_path: Path, values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas refuses them too."""
    frame = pd.DataFrame({"a": values})
    with pytest.raises((pa.ArrowNotImplementedError, pa.ArrowInvalid)):
        frame.to_parquet(tmp_path / "theirs")
    for write in (pyparq.write_table, ppd.to_parquet):
        with pytest.raises(UnsupportedError, match="categories of the type pandas"):
            write(frame, tmp_path / "ours")
    with pytest.raises(UnsupportedError, match="categories") as error:
        pyparq.write_table(
            pa.table({"s": pa.StructArray.from_arrays([pa.array(frame["a"])], ["a"])}), tmp_path / "ours"
        )
    assert error.value.column == "a"
    assert not (tmp_path / "ours").exists()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="cannot be stored"):
        pyparq.write_table(frame, tmp_path / "ours")


@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_ordered_categories_in_a_large_dictionary(tmp_path: Path, kind: str) -> None:
    """More bytes than a dictionary page has by default. pyarrow keeps them all, and so do we."""
    draw = np.random.default_rng(1)
    entries: Any = draw.permutation(150_000)
    if kind == "text":
        entries = np.array([f"category {k:07}" for k in entries], object)
    codes = draw.integers(0, 150_000, 20_000)
    frame = pd.DataFrame({"a": pd.Categorical.from_codes(codes, entries, ordered=True), "b": codes})
    for path, write in ((tmp_path / "theirs", frame.to_parquet), (tmp_path / "ours", None)):
        if write is None:
            pyparq.write_table(frame, path, row_group_size=8_000)
        elif kind == "text":
            write(path)
        else:
            continue
        for read in (pd.read_parquet, lambda path: pyparq.read_table(path).to_pandas()):
            if kind == "numbers" and read is pd.read_parquet:
                continue  # to pyarrow they are plain numbers
            found = read(path)["a"]
            assert found.dtype.ordered
            assert found.cat.categories.tolist() == list(entries)
            assert (found.cat.codes == codes).all()
    assert pq.read_table(tmp_path / "ours")["b"].to_pylist() == codes.tolist()
