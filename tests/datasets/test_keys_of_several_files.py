"""Key-value metadata of files that become one table: pandas, geo and others, in datasets, rewrite and merge."""

from __future__ import annotations

import json
import random
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DroppedMetadataWarning, ParquetError

PANDAS: dict[str, Callable[[], Any]] = {
    "Int8": lambda: pd.array([1, None], dtype="Int8"),
    "Int64": lambda: pd.array([300, None], dtype="Int64"),
    "UInt8": lambda: pd.array([200, 1], dtype="UInt8"),
    "int16": lambda: np.array([-5, 7], np.int16),
    "int64": lambda: np.array([2**40, 3]),
    "Float32": lambda: pd.array([0.5, None], dtype="Float32"),
    "Float64": lambda: pd.array([0.1, None], dtype="Float64"),
    "float64": lambda: np.array([0.1, 2.5]),
    "boolean": lambda: pd.array([True, None], dtype="boolean"),
    "bool": lambda: np.array([True, False]),
    "string": lambda: pd.array(["a", None], dtype="string"),
    "object": lambda: np.array(["b", None], object),
    "category": lambda: pd.Categorical(["x", "y"]),
    "other category": lambda: pd.Categorical(["z", "x"]),
    "ordered": lambda: pd.Categorical(["x", "y"], ["y", "x"], ordered=True),
    "months": lambda: pd.period_range("2024-01", periods=2, freq="M"),
    "days": lambda: pd.period_range("2024-01-01", periods=2, freq="D"),
    "left": lambda: pd.arrays.IntervalArray.from_breaks([0, 1, 2], closed="left"),
    "right": lambda: pd.arrays.IntervalArray.from_breaks([0, 1, 2], closed="right"),
    "float right": lambda: pd.arrays.IntervalArray.from_breaks([0.0, 0.5, 2.0], closed="right"),
    "seconds": lambda: pd.to_datetime(["2024-01-01", None]).as_unit("s"),
    "nanoseconds": lambda: pd.to_datetime(["2024-01-01 00:00:00.000000001", None]).as_unit("ns"),
    "New York": lambda: pd.to_datetime(["2024-07-01", None]).tz_localize("America/New_York"),
    "arrow seconds": lambda: pd.array([pd.Timestamp("2024-01-01")] * 2, dtype="timestamp[s][pyarrow]"),
    "arrow ms": lambda: pd.array([pd.Timestamp("2024-01-01 00:00:00.5")] * 2, dtype="timestamp[ms][pyarrow]"),
    "arrow int8": lambda: pd.array([1, None], dtype="int8[pyarrow]"),
    "arrow int64": lambda: pd.array([300, None], dtype="int64[pyarrow]"),
    "durations": lambda: pd.to_timedelta(["1s", None]).as_unit("s"),
    "shorter durations": lambda: pd.to_timedelta(["1ms", None]).as_unit("ms"),
    "None": lambda: np.array([None, None], object),
}  # fmt: skip
DRAW = random.Random(7)
PAIRS = [
    ("months", "days"), ("left", "right"), ("Float32", "Float64"), ("Int8", "Int64"), ("arrow seconds", "arrow ms"),
    ("category", "None"), ("durations", "shorter durations"), ("durations", "int64"), ("months", "int64"),
    ("category", "other category"), ("right", "float right"), ("Int64", "int64"), ("None", "months"),
    *(tuple(DRAW.sample(sorted(PANDAS), 2)) for _ in range(60)), *((name, name) for name in PANDAS),
]  # fmt: skip
PAIRS = list(dict.fromkeys(PAIRS))


def cells(values: Any) -> list[Any]:
    return [None if value is None or value is pd.NaT or value is pd.NA or value != value else value
            for value in pd.Series(values).astype(object)]  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("way", ["read", "rewrite", "merge"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pandas_types_of_two_files(tmp_path: Path, pair: tuple[str, str], way: str) -> None:
    """As pandas.concat joins them, or refused by a typed error."""
    frames = [pd.DataFrame({"a": PANDAS[name](), "b": [1, 2]}) for name in pair]
    files = [tmp_path / f"{k}.parquet" for k in range(2)]
    for frame, file in zip(frames, files, strict=True):
        frame.to_parquet(file)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            if way == "read":
                found = pyparq.dataset(files).read().to_pandas()
            else:
                getattr(pyparq, way)(files, tmp_path / "all.parquet")
        except ParquetError as error:
            refused = error
        else:
            refused = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            due = pd.concat(frames, ignore_index=True)["a"]
    if refused is not None:
        assert pair[0] != pair[1]
        assert str(refused.column).startswith("a")
        return
    if way != "read":
        found = pd.read_parquet(tmp_path / "all.parquet")
    assert cells(found["a"]) == cells(due)
    named = any("pandas (a)" in str(w.message) for w in told if issubclass(w.category, DroppedMetadataWarning))
    if pair[0] == pair[1]:
        alone = pyparq.read_table(files[0]).to_pandas() if way == "read" else pd.read_parquet(files[0])
        assert (found["a"].dtype, named) == (alone["a"].dtype, False)
    if pd.api.types.is_extension_array_dtype(due.dtype) and due.dtype != found["a"].dtype:
        assert named or way == "merge" or "None" in pair or "category" in pair


INDEXES: dict[str, Callable[[], Any]] = {
    "range": lambda: pd.RangeIndex(2),
    "later range": lambda: pd.RangeIndex(10, 12, name="id"),
    "texts": lambda: pd.Index(["p", "q"], name="key"),
    "other texts": lambda: pd.Index(["r", "s"], name="key"),
    "unnamed": lambda: pd.Index([5.5, 6.5]),
}


@pytest.mark.parametrize("way", ["read", "rewrite", "merge"])
@pytest.mark.parametrize("pair", [(a, b) for a in INDEXES for b in INDEXES], ids="-".join)
def test_indexes_of_two_files(tmp_path: Path, pair: tuple[str, str], way: str) -> None:
    frames = [pd.DataFrame({"a": [1, 2]}, index=INDEXES[name]()) for name in pair]
    for k, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{k}.parquet")
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if way == "read":
            found = pyparq.dataset(files).read().to_pandas()
        else:
            try:
                report: Any = getattr(pyparq, way)(files, tmp_path / "all.parquet")
            except ParquetError:
                assert way == "merge"
                assert frames[0].index.name != frames[1].index.name or "range" in pair[0] + pair[1]
                return
            found = pd.read_parquet(tmp_path / "all.parquet")
    due = pd.concat(frames)
    assert found["a"].tolist() == due["a"].tolist()
    kinds = {"range" in name for name in pair}
    if kinds == {False} and frames[0].index.name == frames[1].index.name:
        assert found.index.equals(due.index)
        assert found.index.name == due.index.name
    elif kinds == {True}:
        assert found.index.equals(pd.RangeIndex(4))  # as of a folder that pandas reads
    else:
        dropped = [str(w.message) for w in told] if way != "merge" else report.dropped_keys
        assert any("pandas" in text for text in dropped)


def test_a_filter_that_leaves_as_many_rows_as_a_file_has(tmp_path: Path) -> None:
    for name in "ab":
        pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(10, 12)).to_parquet(tmp_path / name)
    found = pyparq.dataset(tmp_path).read(filters=pyparq.col("a") == 1).to_pandas()
    assert found.index.tolist() == [0, 1]


# ---- rows in another order


@pytest.mark.parametrize("index", [pd.RangeIndex(3), pd.RangeIndex(10, 13, name="id"), pd.Index(["u", "v", "w"])])
def test_rows_in_another_order_have_no_range(tmp_path: Path, index: pd.Index) -> None:
    frame = pd.DataFrame({"a": [3, 1, 2]}, index=index)
    frame.to_parquet(tmp_path / "p.parquet")
    usual = isinstance(index, pd.RangeIndex) and index.start == 0
    due = (
        frame.sort_values("a")
        if index.dtype == "str" or index.dtype == object
        else frame.sort_values("a", ignore_index=True)
    )

    def check(made: Callable[[], Any], wanted: pd.DataFrame) -> None:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = made()
        named = any(issubclass(w.category, DroppedMetadataWarning) and "pandas" in str(w.message) for w in told)
        assert named == (isinstance(index, pd.RangeIndex) and not usual)
        pd.testing.assert_frame_equal(found, wanted, check_names=False)

    def written(write: Callable[[Path], Any]) -> pd.DataFrame:
        write(tmp_path / "s.parquet")
        return pd.read_parquet(tmp_path / "s.parquet")

    check(lambda: written(lambda path: pyparq.write_table(frame, path, sort_by=["a"])), due)
    check(lambda: written(lambda path: pyparq.rewrite(tmp_path / "p.parquet", path, sort_by=["a"])), due)
    turned = frame[::-1] if not isinstance(index, pd.RangeIndex) else frame[::-1].reset_index(drop=True)
    check(lambda: pyparq.ParquetFile(tmp_path / "p.parquet").take([2, 1, 0]).to_pandas(), turned)
    check(lambda: pyparq.dataset(tmp_path / "p.parquet").take([2, 1, 0]).to_pandas(), turned)
    same = pyparq.ParquetFile(tmp_path / "p.parquet").take(np.array([0, 1, 2])).to_pandas()
    pd.testing.assert_frame_equal(same, frame)


# ---- GeoParquet


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def geo_file(path: Path, x: float, **column: Any) -> Path:
    described = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [x, x, x, x], **column}
    key = {"version": "1.0.0", "primary_column": "g", "columns": {"g": described}}
    pq.write_table(pa.table({"g": [point(x, x)]}).replace_schema_metadata({"geo": json.dumps(key)}), path)
    return path


@pytest.mark.parametrize("way", ["rewrite", "merge"])
def test_boxes_and_types_of_geometries_are_joined(tmp_path: Path, way: str) -> None:
    files = [geo_file(tmp_path / "a", 1), geo_file(tmp_path / "b", 5, geometry_types=["Polygon"])]
    getattr(pyparq, way)(files, tmp_path / "all.parquet")
    for keys in (
        pq.read_metadata(tmp_path / "all.parquet").metadata,
        pq.read_schema(tmp_path / "all.parquet").metadata,
    ):
        column = json.loads(keys[b"geo"])["columns"]["g"]
        assert column == {"encoding": "WKB", "geometry_types": ["Point", "Polygon"], "bbox": [1, 1, 5, 5]}


@pytest.mark.parametrize(
    "other", [{"crs": "EPSG:25832"}, {"encoding": "point"}, {"edges": "spherical"}, {"epoch": 2021.5}, None], ids=str
)
def test_geometries_of_two_reference_systems(tmp_path: Path, other: dict[str, Any] | None) -> None:
    files = [geo_file(tmp_path / "a", 1), tmp_path / "b"]
    if other is None:
        pq.write_table(pa.table({"g": [point(5, 5)]}), files[1])
    else:
        geo_file(files[1], 5, **other)
    with pytest.warns(DroppedMetadataWarning, match=r"Left out: geo"):
        pyparq.rewrite(files, tmp_path / "all.parquet")
    assert b"geo" not in (pq.read_metadata(tmp_path / "all.parquet").metadata or {})
    assert pyparq.merge(files, tmp_path / "merged.parquet").dropped_keys == ("geo",)
    assert b"geo" not in (pq.read_metadata(tmp_path / "merged.parquet").metadata or {})
    assert b"geo" not in (pq.read_schema(tmp_path / "merged.parquet").metadata or {})


def test_a_box_across_the_antimeridian_is_not_joined(tmp_path: Path) -> None:
    files = [geo_file(tmp_path / "a", 1), geo_file(tmp_path / "b", 5, bbox=[170, 0, -170, 1])]
    pyparq.merge(files, tmp_path / "all")
    column = json.loads(pq.read_metadata(tmp_path / "all").metadata[b"geo"])["columns"]["g"]
    assert "bbox" not in column


# ---- other keys


KEYS = ("owner", "parquet.avro.schema", "iceberg.schema", "day")


@pytest.mark.parametrize("seed", range(12))
def test_keys_that_not_all_rows_have(tmp_path: Path, seed: int) -> None:
    """A key is kept where all that have it agree; one about all columns has to be in every file. pyarrow sees the
    same in the footer and in ARROW:schema."""
    draw = random.Random(seed)
    given = [{key: draw.choice("xy") for key in KEYS if draw.random() < 0.8} for _ in range(2)]
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for keys, file in zip(given, files, strict=True):
        table = pa.table({"c": pa.array(["u"]).dictionary_encode()}).replace_schema_metadata(keys)
        draw.choice([pq, pyparq]).write_table(table, file)
    due = {}
    for key in KEYS:
        values = [keys[key] for keys in given if key in keys]
        if values and len(set(values)) == 1 and (len(values) == 2 or "schema" not in key):
            due[key] = values[0]
    gone = sorted({key for keys in given for key in keys if key not in due})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table = pyparq.dataset(files).read()
        pyparq.rewrite(files, tmp_path / "new.parquet")
    texts = [str(w.message).partition("Left out: ")[2] for w in told if issubclass(w.category, DroppedMetadataWarning)]
    assert {tuple(sorted(text.split(", "))) for text in texts} == ({tuple(gone)} if gone else set())
    assert table.schema.metadata == {key.encode(): value.encode() for key, value in due.items()}
    assert sorted(pyparq.merge(files, tmp_path / "merged.parquet").dropped_keys) == gone
    for name in ("new.parquet", "merged.parquet"):
        stored = pq.read_metadata(tmp_path / name).metadata
        assert {k.decode(): v.decode() for k, v in stored.items() if k != b"ARROW:schema"} == due
        seen = pq.read_schema(tmp_path / name).metadata or {}
        assert {k.decode(): v.decode() for k, v in seen.items()} == due
        assert pq.read_table(tmp_path / name)["c"].to_pylist() == ["u", "u"]


def test_the_record_of_indexes_stays_with_its_file(tmp_path: Path) -> None:
    pyparq.write_table({"id": [1, 2]}, tmp_path / "a.parquet")
    pyparq.add_indexes(tmp_path / "a.parquet", bloom_filters=True)
    pyparq.rewrite(tmp_path / "a.parquet", tmp_path / "b.parquet")
    pyparq.write_table(pyparq.read_table(tmp_path / "a.parquet"), tmp_path / "c.parquet")
    for name in "bc":
        assert pq.read_metadata(tmp_path / f"{name}.parquet").metadata is None


def test_a_remote_folder_in_which_a_column_clashes(tmp_path: Path) -> None:
    """Of many remote files, footers of the first, the last and those that are left are read."""
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory")
    try:
        for k in range(10, 50):
            with fs.open(f"/clash/p={k}/f.parquet", "wb") as out:
                pq.write_table(pa.table({"a": [k], "b": ["x" if k == 20 else k]}), out)
        at = pyparq.col("p") == 20
        assert pyparq.dataset("memory://clash").read(["a"], at).to_pylist() == [{"a": 20}]
        assert pyparq.dataset("memory://clash").read(None, pyparq.col("p") == 15)["b"].to_pylist() == [15]
        assert pyparq.dataset("memory://clash").read(["a"])["a"].to_pylist() == list(range(10, 50))
        for columns, filters in ((None, at), (["b"], at), (None, None), (["a"], pyparq.col("b") == 1)):
            with pytest.raises(pyparq.SchemaError, match=r"int64 in .*p=10.* and string here") as error:
                pyparq.dataset("memory://clash").read(columns, filters)
            assert error.value.column == "b"
    finally:
        fs.rm("/clash", recursive=True)
