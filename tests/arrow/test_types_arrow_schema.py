"""The Arrow schema that we store, and pandas' metadata, as others read them."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_types_hints import hinted
from written import written

import pyparq
from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.schema.ipc_read import HintSchema
from pyparq.arrow.schema.ipc_write import schema_message
from pyparq.arrow.to_pandas import frame_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")


EVERY = [
    *(pa.field(name, array.type) for name, array in hinted().items()),
    pa.field("required", pa.bool_(), nullable=False),
    pa.field("noted", pa.int8(), metadata={"k": "v", "": "empty"}),
    pa.field("ordered", pa.dictionary(pa.uint16(), pa.large_binary(), ordered=True)),
    *(
        pa.field(str(t), t)
        for t in (
            pa.int16(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.null(), pa.binary(),
            pa.binary(7), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
            pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.decimal32(5, 1), pa.decimal64(18, 0),
            pa.decimal128(38, -2), pa.decimal256(76, 3),
            pa.month_day_nano_interval(),
            pa.list_view(pa.int8()), pa.large_list_view(pa.int8()),
            pa.run_end_encoded(pa.int32(), pa.string()), pa.list_(pa.dictionary(pa.int32(), pa.string())),
            pa.struct([("a", pa.map_(pa.string(), pa.int8(), keys_sorted=False)), ("b", pa.list_(pa.int8(), 4))]),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("field", EVERY, ids=lambda f: f.name)
def test_arrow_reads_our_message(field: Any) -> None:
    schema = pa.schema([field])
    message = schema_message(schema_from_arrow(schema))
    assert pa.ipc.read_schema(pa.py_buffer(message)).equals(schema, check_metadata=True)
    assert HintSchema(message).field(0).name == field.name


def test_arrow_reads_a_message_of_all_types_at_once() -> None:
    schema = pa.schema(EVERY * 3)
    assert pa.ipc.read_schema(pa.py_buffer(schema_message(schema_from_arrow(schema)))).equals(
        schema, check_metadata=True
    )
    assert pa.ipc.read_schema(pa.py_buffer(schema_message(pyparq.Schema(())))).names == []


def has_hint(file: bytes) -> bool:
    return b"ARROW:schema" in (pq.read_metadata(io.BytesIO(file)).metadata or {})


@pytest.mark.parametrize("name", hinted())
def test_store_schema(name: str) -> None:
    table = pa.table({name: hinted()[name]})
    file = written(table)
    theirs = pq.read_table(io.BytesIO(file))
    ours = pyparq.read_table(file).to_arrow()
    assert theirs.equals(pq.read_table(io.BytesIO(_by_pyarrow(table))))
    assert ours.equals(theirs)
    assert has_hint(file) == (name not in ("uuid", "json"))  # Parquet has annotations for these
    assert has_hint(written(table, store_schema=True))
    assert not has_hint(written(table, store_schema=False))
    given = io.BytesIO()
    with pyparq.ParquetWriter(given, table.schema) as writer:
        writer.write(table)
    assert pq.read_table(given).equals(theirs)


def _by_pyarrow(table: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def test_the_stored_schema_is_of_the_data_not_of_a_file_they_came_from() -> None:
    first = written(pa.table({"a": pa.array(["x"]).dictionary_encode(), "b": [1]}), store_schema=True)
    table = pyparq.read_table(first).select(["b"])
    assert b"ARROW:schema" not in table.schema.metadata
    again = written(table, store_schema=True)
    stored = pq.read_metadata(io.BytesIO(again)).metadata[b"ARROW:schema"]
    assert pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))).names == ["b"]


def test_categories_come_back_with_their_order_and_those_that_no_value_has() -> None:
    words = pd.Categorical(["a", "b", None, "a"], categories=["b", "a", "z"], ordered=True)
    frame = pd.DataFrame({"c": words, "n": pd.array([1, None, 3, 4], dtype="Int64")})
    for options in ({}, {"row_group_size": 1}, {"sort_by": "n"}, {"compression": "none"}):
        file = written(frame, **options)
        expected = frame if "sort_by" not in options else frame.sort_values("n").reset_index(drop=True)
        pd.testing.assert_frame_equal(pyparq.read_table(file).to_pandas(), expected)
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(file)), expected)
    sink = io.BytesIO()
    frame.to_parquet(sink)  # pyarrow keeps the dictionary as it is
    pd.testing.assert_frame_equal(pyparq.read_table(sink.getvalue()).to_pandas(), frame)


def test_spark_s_row_metadata_does_not_outlive_its_file() -> None:
    key = "org.apache.spark.sql.parquet.row.metadata"
    table = pa.table({"a": [1]}).replace_schema_metadata({key: "{}", "mine": "kept"})
    assert pyparq.read_table(written(table)).schema.metadata == {b"mine": b"kept"}


# ---- pandas --------------------------------------------------------------------------------------------------------

FRAMES = {
    "default": pd.DataFrame({"x": [1, 2, 3], "s": ["a", None, "c"]}),
    "range": pd.DataFrame({"x": [1, 2, 3]}, index=pd.RangeIndex(10, 16, 2)),
    "named_range": pd.DataFrame({"x": [1, 2, 3]}, index=pd.RangeIndex(3, name="k")),
    "strings": pd.DataFrame({"x": [1, 2, 3]}, index=pd.Index(["p", "q", "r"], name="key")),
    "unnamed": pd.DataFrame({"x": [1, 2, 3]}, index=[7, 3, 5]),
    "two_levels": pd.DataFrame({"x": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["l", None])),
    "times": pd.DataFrame(
        {"x": [1.5, np.nan]}, index=pd.date_range("2020-01-01", periods=2, tz="Europe/Berlin", name="t")
    ),
    "numbers_as_names": pd.DataFrame({"x": [True, False]}, index=pd.Index([1.5, 2.5], name="f")),
    "categories": pd.DataFrame({"x": [1, 2]}, index=pd.CategoricalIndex(["a", "b"], ["b", "a"], name="c")),
    "durations": pd.DataFrame({"x": [1, 2]}, index=pd.to_timedelta([1, 2], unit="ms")),
    "integers_as_labels": pd.DataFrame([[1, 2], [3, 4]], columns=[10, 20]),
    "named_labels": pd.DataFrame([[1, 2]], columns=pd.Index(["a", "b"], name="letters")),
    "times_as_labels": pd.DataFrame([[1, 2]], columns=pd.to_datetime(["2020-01-01", "2020-01-02"])),
    "two_levels_of_labels": pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None])
    ),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("store_schema", ["auto", False])
def test_the_index_of_a_frame_comes_back(name: str, store_schema: bool) -> None:
    frame = FRAMES[name]
    file = written(frame, store_schema=store_schema)
    theirs = pq.read_table(io.BytesIO(file)).to_pandas()
    ours = pyparq.read_table(file).to_pandas()
    pd.testing.assert_frame_equal(ours, theirs)
    if name in ("categories", "durations") and not store_schema:
        return  # the index comes as what the file's own schema says
    pd.testing.assert_frame_equal(
        ours, frame, check_freq=False, check_index_type=bool(store_schema), check_dtype=bool(store_schema)
    )


@pytest.mark.parametrize("name", FRAMES)
def test_the_index_of_a_frame_without_pyarrow_at_hand(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pyparq.arrow.ingest.from_pandas.stream_from_pandas", lambda frame: None)
    frame, file = FRAMES[name], tmp_path / "f.parquet"
    pyparq.write_table(frame, file)
    described = json.loads(pq.read_metadata(file).metadata[b"pandas"])
    assert described["creator"]["library"] == "pyparq"
    for found in (pyparq.read_table(file).to_pandas(), frame_of(pyparq.read_table(file)), pd.read_parquet(file)):
        pd.testing.assert_frame_equal(found, frame, check_freq=False)


@pytest.mark.parametrize(
    "metadata",
    ["", "{", "[]", "{}", "null", '{"index_columns": ["gone"]}',
     '{"index_columns": [{"kind": "range"}], "columns": []}',
     '{"index_columns": ["x"], "columns": [{"name": "x", "field_name": "x", "pandas_type": "?", "numpy_type": "x["}]}',
     '{"index_columns": [{"kind": "range", "start": 0, "stop": 1000000000000, "step": 1, "name": null}], "columns": [],'
     ' "column_indexes": []}', "[" * 5000],
)  # fmt: skip
def test_pandas_metadata_that_makes_no_sense_is_ignored(metadata: str) -> None:
    sink = io.BytesIO()
    with pyparq.ParquetWriter(sink) as writer:
        writer.write({"x": [1, 2, 3]})
        writer.add_key_value_metadata({"pandas": metadata})
    frame = pyparq.read_table(sink.getvalue()).to_pandas()
    assert frame.reset_index()["x"].tolist() == [1, 2, 3]
