"""Arrow structs that are made natively: who keeps memory alive, and what is refused."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyparq.api import read_table
from pyparq.arrow.column import Column, NativeColumn
from pyparq.arrow.table import Table
from pyparq.format.types import DataType, Field
from pyparq.kernels import ArrowField, KernelError, arrow_array, arrow_arrays
from pyparq.read.file import ParquetFile

ROWS = 1000


class Capsules:
    """What a consumer sees of a producer."""

    def __init__(self, array: Any = None, field: Field | None = None, stream: Any = None) -> None:
        self._array, self._field, self._stream = array, field, stream

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        assert self._field is not None
        return ArrowField(self._field).capsule(), self._array


class Streamed:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._stream


def source() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "whole": pa.array(numbers),
            "some": pa.array([None if k % 7 == 0 else k for k in range(ROWS)], pa.int32()),
            "text": pa.array([None if k % 11 == 0 else "word" * (k % 5) for k in range(ROWS)]),
            "flag": pa.array([k % 3 == 0 for k in range(ROWS)]),
            "half": pa.array(numbers.astype(np.float16)),
            "fixed": pa.array([b"%03d" % (k % 1000) for k in range(ROWS)], pa.binary(3)),
            "price": pa.array([k * 25 for k in range(ROWS)], pa.int64()).cast(pa.decimal128(25, 2)),
            "small": pa.array((numbers % 100).astype(np.int8)),
            "list": pa.array([list(range(k % 4)) for k in range(ROWS)]),
            "struct": pa.array([{"a": k, "b": str(k)} if k % 5 else None for k in range(ROWS)]),
            "nothing": pa.nulls(ROWS),
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("export") / "t.parquet")
    pq.write_table(source(), found, row_group_size=300)
    return found


def test_values_outlive_table_and_file(path: str) -> None:
    with ParquetFile(path) as file:
        made = pa.table(file.read())
    gc.collect()
    assert made.equals(source())


def test_a_column_outlives_the_others(path: str) -> None:
    table = read_table(path)
    kept = pa.table(table)["text"]
    array = table["whole"].chunks[0].buffers[0]
    del table
    gc.collect()
    assert kept.equals(source()["text"])
    assert array.tolist() == list(range(len(array)))


def test_the_same_memory_in_numpy_and_in_arrow(path: str) -> None:
    column = read_table(path, columns=["whole"])["whole"].chunks[0]
    before = pa.array(column)
    values = column.to_numpy()
    assert before.buffers()[1].address == values.__array_interface__["data"][0]
    assert pa.array(column).buffers()[1].address == before.buffers()[1].address


def test_native_columns_are_ordinary_columns(path: str) -> None:
    table = read_table(path)
    natives = [c for f in table for c in f.chunks if isinstance(c, NativeColumn)]
    assert natives
    for other in (copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))):
        for column in natives:
            made = other(column)
            assert made.to_pylist() == column.to_pylist()
            assert made.null_count == column.null_count
    with pytest.raises(AttributeError, match="nonsense"):
        _ = natives[0].nonsense  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(table)) == table
    assert table.nbytes >= sum(sum(b.nbytes for b in c.buffers) for c in natives)


def test_slices_have_their_null_counts(path: str) -> None:
    table = read_table(path)
    for start, length in ((0, 1), (3, 70), (5, 901), (999, 1), (64, 640), (8, 0)):
        made = pa.table(table.slice(start, length))
        made.validate(full=True)
        expected = source().slice(start, length)
        assert made.equals(expected)
        assert [made[k].null_count for k in range(made.num_columns)] == [
            expected[k].null_count for k in range(made.num_columns)
        ]


def test_a_column_by_itself(path: str) -> None:
    for chunked in read_table(path):
        for column in chunked.chunks:
            assert pa.array(column).to_pylist() == column.to_pylist()
        assert pa.chunked_array(chunked).to_pylist() == chunked.to_pylist()


def test_capsules_that_nobody_takes(path: str) -> None:
    table = read_table(path)
    tracemalloc.start()
    try:
        table.__arrow_c_stream__()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            table.__arrow_c_stream__()
            table.__arrow_c_schema__()
            table.to_batches()[0].__arrow_c_array__()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
    finally:
        tracemalloc.stop()


def test_a_stream_read_in_part(path: str) -> None:
    table = Table.concat([read_table(path)] * 3)
    reader = pa.RecordBatchReader.from_stream(table)
    first = reader.read_next_batch()
    reader.close()
    del reader, table
    gc.collect()
    assert pa.Table.from_batches([first]).equals(source().slice(0, first.num_rows))


def arrays_held() -> int:
    """Bytes of arrays that tracemalloc knows of; not those of Python's objects, which other threads make, too."""
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)


def test_memory_of_a_read_is_accounted_until_its_last_user_is_gone(path: str) -> None:
    tracemalloc.start()
    try:
        before = arrays_held()
        made = pa.table(read_table(path, columns=["whole", "price"]))
        gc.collect()
        held = arrays_held() - before
        assert held >= ROWS * 24
        del made
        gc.collect()
        assert arrays_held() - before <= held - ROWS * 24
    finally:
        tracemalloc.stop()


def test_arrays_are_let_go_of_on_other_threads(path: str) -> None:
    def read() -> None:
        for _ in range(20):
            tables = [pa.table(read_table(path)), read_table(path)]
            thread = threading.Thread(target=tables.clear)
            thread.start()
            thread.join()

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_schemas_with_all_that_they_can_say() -> None:
    inner = Field("x", DataType("i"), nullable=False, metadata={b"k": b"v", b"": b"\x00\xff"})
    fields = [
        Field("s", DataType("+s", (inner, Field("y", DataType("u"))))),
        Field("d", DataType("c", (), DataType("u"), True), metadata={b"a": b"b"}),
        Field("m", DataType("+m", (Field("e", DataType("+s", (inner, inner)), False),), None, True)),
        Field("w", DataType("+w:3", (Field("item", DataType("f")),))),
        Field("größe", DataType("tsu:UTC")),
    ]
    capsule = ArrowField(Field("", DataType("+s", tuple(fields)), False, {b"meta": b"data"})).capsule()

    class Schema:
        def __arrow_c_schema__(self) -> Any:
            return capsule

    made = pa.schema(Schema())
    assert made.metadata == {b"meta": b"data"}
    assert made.names == ["s", "d", "m", "w", "größe"]
    assert made.field("s").type[0].metadata == {b"k": b"v", b"": b"\x00\xff"}
    assert not made.field("s").type[0].nullable
    assert made.field("d").type == pa.dictionary(pa.int8(), pa.string(), ordered=True)
    assert made.field("d").metadata == {b"a": b"b"}
    assert made.field("m").type.keys_sorted
    assert made.field("w").type == pa.list_(pa.float32(), 3)
    assert made.field("größe").type == pa.timestamp("us", "UTC")


def test_empty_columns_of_every_layout() -> None:
    empty = np.empty(0, np.uint8)
    for form, buffers in (("u", (empty, empty)), ("l", (empty,)), ("b", (empty,)), ("Z", (empty, empty))):
        made = pa.array(Column(DataType(form), 0, None, buffers, 0))
        made.validate(full=True)
        assert len(made) == 0
    views = Column(DataType("vu"), 0, None, (empty, np.empty(0, np.int64)), 0)
    assert len(pa.array(views)) == 0


@pytest.mark.parametrize(
    "array",
    [
        None,
        (1, 2, 3),
        ([], "many"),
        ([None], 3),
        Column(DataType("l"), 3, None, ("text",), 0),  # type: ignore[arg-type]
        Column(DataType("l"), 3, np.zeros(8, np.uint8)[::2], (np.zeros(3),), 0),
        Column(DataType("l"), 100, np.zeros(1, np.uint8), (np.zeros(100),), -1),
        Column(DataType("l"), 3, np.zeros(1, np.uint8), (np.zeros(3),), -1, offset=-8),
        Column(DataType("i", (), DataType("u")), 1, None, (np.zeros(1, np.int32),), 0),
        Column(DataType(7), 1, None, (np.zeros(1, np.int32),), 0),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_array_is_refused(array: Any) -> None:
    with pytest.raises((KernelError, TypeError, AttributeError, RuntimeError)):
        arrow_array(array)
    with pytest.raises((KernelError, TypeError, AttributeError, RuntimeError)):
        arrow_arrays(ArrowField(Field("", DataType("l"))), [array])


def test_what_nests_without_end_is_refused() -> None:
    deep = DataType("l")
    for _ in range(3000):
        deep = DataType("+l", (Field("item", deep),))
    with pytest.raises(KernelError, match="too deep"):
        ArrowField(Field("", deep))
    column = Column(DataType("l"), 0, None, (np.empty(0),), 0)
    for _ in range(3000):
        column = Column(DataType("+s", (Field("x", DataType("l")),)), 0, None, (), 0, (column,))
    with pytest.raises(KernelError, match="too deep"):
        arrow_array(column)


@pytest.mark.parametrize("metadata", [{1: b"x"}, {b"x": 1}, {b"x": None}, 7])
def test_metadata_that_is_no_bytes_is_refused(metadata: Any) -> None:
    with pytest.raises((KernelError, TypeError, AttributeError)):
        ArrowField(Field("", DataType("l"), True, metadata))
