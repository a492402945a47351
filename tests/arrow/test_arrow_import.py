"""Arrow data of other libraries: every type comes in as it is, and structs that make no sense are refused."""

from __future__ import annotations

import ctypes
import decimal
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq.arrow.record_batch import ImportedColumn
from pyparq.errors import DataError
from pyparq.kernels import ArrowImport, KernelError


def typed(values: list[Any], type_: Any) -> Any:
    return pa.array(values, type_)


D = decimal.Decimal
ARRAYS = {
    "null": pa.nulls(5),
    "bool": pa.array([True, None, False, True, False]),
    "int8": typed([1, None, -3, 4, 5], pa.int8()),
    "uint64": typed([1, None, 3, 4, 2**64 - 1], pa.uint64()),
    "half": pa.array(np.arange(5, dtype=np.float16)),
    "double": pa.array([1.5, None, float("inf"), 4.0, -0.0]),
    "date32": typed([1, None, 3, 4, 5], pa.date32()),
    "time64": typed([1000, None, 3000, 4000, 5000], pa.time64("ns")),
    "timestamp": typed([1, None, 3, 4, 5], pa.timestamp("us", "Europe/Paris")),
    "duration": typed([1, None, 3, 4, 5], pa.duration("s")),
    "decimal32": typed([D("1.23"), None, D("-9"), D(0), D(1)], pa.decimal32(5, 2)),
    "decimal256": typed([D("1.23"), None, D("-9"), D(0), D(1)], pa.decimal256(60, 2)),
    "string": pa.array(["a", None, "", "längeres", "e"]),
    "large": typed([b"a", None, b"", b"dd", b"e"], pa.large_binary()),
    "fixed": typed([b"abc", None, b"def", b"ghi", b"jkl"], pa.binary(3)),
    "view": typed(["a", None, "longer than twelve bytes", "d", "also longer than twelve"], pa.string_view()),
    "list": pa.array([[1], None, [], [2, 3], [None]]),
    "large_list": typed([["x"], None, [], ["yy", "z"], [None]], pa.large_list(pa.string())),
    "fixed_list": typed([[1, 2], None, [3, 4], [5, 6], [7, 8]], pa.list_(pa.int16(), 2)),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 3, "b": None}, {"a": 4, "b": "z"}]),
    "map": typed([[("k", 1)], None, [], [("l", 2), ("m", None)], [("n", 3)]], pa.map_(pa.string(), pa.int32())),
    "dictionary": pa.array(["a", None, "b", "a", "c"]).dictionary_encode(),
    "list_view": typed([[1], None, [], [2, 3], [None]], pa.list_view(pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 5], pa.array(["x", None])),
    "nulls below": pa.StructArray.from_arrays([pa.nulls(5)], ["n"]),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("first", [0, 1])
def test_types(name: str, first: int) -> None:
    table = pa.table({"a": ARRAYS[name]}).slice(first)
    found = pyparq.Table.from_arrow(table)
    assert found.to_pylist() == table.to_pylist()
    batch = pa.record_batch({"a": ARRAYS[name]}).slice(first, 3)  # by `__arrow_c_array__`
    assert pyparq.Table.from_arrow(batch).to_pylist() == batch.to_pylist()


def test_names_metadata_and_nullability() -> None:
    fields = [
        pa.field("ä", pa.int32(), False, {"k": "v", "": "\0x"}),
        pa.field("b", pa.list_(pa.field("it", pa.int8(), False))),
    ]
    schema = pa.schema(fields, {"table": "metadata"})
    found = pyparq.Table.from_arrow(schema.empty_table()).schema
    assert pa.schema(found) == schema
    assert pa.schema(found).field(0).metadata == {b"k": b"v", b"": b"\0x"}
    assert found.metadata == {b"table": b"metadata"}


def test_unions_come_the_other_way() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    with pytest.raises(pyparq.errors.UnsupportedError, match="union"):
        pyparq.write_table(pa.table({"u": union}), pa.BufferOutputStream())


def test_memory_stays_as_long_as_somebody_looks_at_it() -> None:
    before = pa.total_allocated_bytes()
    table = pa.table({"a": pa.array(np.arange(100_000)), "s": pa.array(["x" * 50] * 2_000 + [None] * 98_000)})
    columns = pyparq.Table.from_arrow(table).batches[0].columns
    kept = [columns[0].buffers[0], columns[1].validity]
    assert isinstance(columns[0], ImportedColumn)
    del table, columns
    gc.collect()
    assert pa.total_allocated_bytes() > before
    np.testing.assert_array_equal(kept[0].view(np.int64), np.arange(100_000))
    assert not kept[0].flags.writeable
    del kept
    gc.collect()
    assert pa.total_allocated_bytes() <= before


def test_an_error_of_the_producer_is_told() -> None:
    def batches() -> Any:
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(DataError, match="the disk is gone"):
        pyparq.Table.from_arrow(reader)


# ---- structs that make no sense -------------------------------------------------------------------------------------


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


FREE_SCHEMA, FREE_ARRAY = (ctypes.CFUNCTYPE(None, ctypes.POINTER(kind)) for kind in (Schema, Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)), ("release", FREE_SCHEMA), ("private", ctypes.c_void_p),
]  # fmt: skip
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
    ("release", FREE_ARRAY), ("private", ctypes.c_void_p),
]  # fmt: skip
CAPSULE = ctypes.pythonapi.PyCapsule_New
CAPSULE.restype, CAPSULE.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
POINTER = ctypes.pythonapi.PyCapsule_GetPointer
POINTER.restype, POINTER.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


NOTHING = FREE_ARRAY(lambda _: None)
"""Whoever made the array would follow the wrong numbers when it is let go of."""


def changed(array: Any, change: Callable[[Any], None]) -> tuple[Any, Any]:
    """The capsules of an array, whose struct is another than it says."""
    schema, data = array.__arrow_c_array__()
    struct = Array.from_address(POINTER(data, b"arrow_array"))
    struct.release = NOTHING
    change(struct)
    return schema, data


def no_buffer(k: int) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        array.buffers[k] = None

    return change


def set_to(**values: int) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        for name, value in values.items():
            setattr(array, name, value)

    return change


def negative_offsets(array: Any) -> None:
    array.buffers[1] = OFFSETS.ctypes.data


def no_dictionary(array: Any) -> None:
    array.dictionary = None


NUMBERS, TEXT = pa.array([1, None, 3]), pa.array(["a", None, "b"])
OFFSETS = np.array([0, 2, 1, -5], np.int32)
WRONG = [
    (NUMBERS, set_to(length=-1)),
    (NUMBERS, set_to(offset=-1)),
    (NUMBERS, set_to(length=1 << 62)),
    (NUMBERS, set_to(offset=1 << 62)),
    (NUMBERS, set_to(n_children=1)),
    (NUMBERS, set_to(n_buffers=1)),
    (NUMBERS, no_buffer(1)),
    (TEXT, set_to(n_buffers=2)),
    (TEXT, no_buffer(1)),
    (TEXT, no_buffer(2)),
    (TEXT, negative_offsets),
    (ARRAYS["view"], set_to(n_buffers=2)),
    (ARRAYS["list"], set_to(n_children=0)),
    (ARRAYS["list"], no_buffer(1)),
    (ARRAYS["dictionary"], no_dictionary),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_structs_that_make_no_sense_are_refused(case: int) -> None:
    array, change = WRONG[case]
    with pytest.raises(KernelError):
        ArrowImport(*changed(array, change)).next()


FORMATS = [
    b"",
    b"?",
    b"ab",
    b"w:",
    b"w:-3",
    b"w:99999999999999999999",
    b"d:5",
    b"d:5,2,77",
    b"ts",
    b"tsx:",
    b"+",
    b"+x",
    b"+ud:0",
]


@pytest.mark.parametrize("format", FORMATS)
def test_formats_that_are_not_known_stay_in_their_capsules(format: bytes) -> None:
    schema, data = NUMBERS.__arrow_c_array__()
    Schema.from_address(POINTER(schema, b"arrow_schema")).format = format
    source = ArrowImport(schema, data)
    assert source.schema() is None
    assert Array.from_address(POINTER(data, b"arrow_array")).length == 3
    with pytest.raises(KernelError):
        source.next()


def test_capsules_that_are_none_or_empty_are_refused() -> None:
    schema, data = NUMBERS.__arrow_c_array__()
    for capsules in ((data, schema), (schema, 5), (5, data), (None, data)):
        with pytest.raises((ValueError, TypeError)):
            ArrowImport(*capsules)
    stream = pa.table({"a": [1]}).__arrow_c_stream__()
    ArrowImport(None, stream)
    with pytest.raises(KernelError, match="taken over"):
        ArrowImport(None, stream)
