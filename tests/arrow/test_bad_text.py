"""Text that is not UTF-8: an error that says where, and bytes on request."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, CorruptFileError, DataError, OptionError

VALUES = [b"good", b"\xff\xfe", None, b"caf\xe9", b"good", "né".encode(), b"\xed\xa0\x80", b""]
BAD_AT = 1
ENCODINGS: list[dict[str, Any]] = [
    {"use_dictionary": True},
    {"use_dictionary": False},
    {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
    {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
]


def text_of(values: list[bytes | None]) -> pa.Array:
    """An array of type string over any bytes: nobody checks."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)


def file_of(**options: Any) -> bytes:
    sink = io.BytesIO()
    columns = {"s": text_of(VALUES), "n": pa.array(range(len(VALUES)))}
    if "column_encoding" in options:
        options["column_encoding"] = {"s": options["column_encoding"]}
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("options", ENCODINGS, ids=str)
def test_an_error_by_default_bytes_on_request(options: dict[str, Any], version: str) -> None:
    data = file_of(data_page_version=version, write_page_index=True, **options)
    with pytest.raises(CorruptFileError, match=r"not UTF-8: b'\\xff\\xfe'.*binary_columns.*column s") as caught:
        pyparq.read_table(data)
    assert caught.value.column == "s"
    assert caught.value.row_group == 0
    found = pyparq.read_table(data, binary_columns=["s"]).to_arrow()
    assert found.schema.field("s").type == pa.binary()
    assert found.to_pydict() == {"s": VALUES, "n": list(range(8))}
    assert pyparq.read_table(data, columns=["n"]).num_rows == 8


def test_filters_compare_bytes() -> None:
    data = file_of(write_page_index=True)
    for value in (b"caf\xe9", b"\xff\xfe", b"good", b""):
        found = pyparq.read_table(data, filters=col("s") == value, binary_columns=["s"]).to_pydict()
        assert found["n"] == [k for k, v in enumerate(VALUES) if v == value]
    above = pyparq.read_table(data, filters=col("s") > b"go", binary_columns=["s"]).to_pydict()
    assert above["n"] == [k for k, v in enumerate(VALUES) if v is not None and v > b"go"]


def test_text_inside_of_lists_and_structs() -> None:
    items = text_of([b"\xff", b"b", b"c"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), items)
    structs = pa.StructArray.from_arrays([text_of([b"\xfe", b"x"]), pa.array([1, 2])], ["t", "k"])
    sink = io.BytesIO()
    pq.write_table(pa.table({"l": lists, "g": structs}), sink)
    data = sink.getvalue()
    for column, leaf in (("l", r"l\.list\.element"), ("g", r"g\.t")):
        with pytest.raises(CorruptFileError, match=f"UTF-8.*{leaf}"):
            pyparq.read_table(data, columns=[column])
    for names in (["l", "g"], ["l.list.element", "g.t"]):
        found = pyparq.read_table(data, binary_columns=names).to_pydict()
        assert found == {"l": [[b"\xff", b"b"], [b"c"]], "g": [{"t": b"\xfe", "k": 1}, {"t": b"x", "k": 2}]}


def test_annotations_and_hints_go_with_it() -> None:
    """JSON and what ARROW:schema says of text are gone too."""
    sink = io.BytesIO()
    table = pa.table({"j": pa.array(['{"a": 1}', None], pa.json_()), "v": pa.array(["x", "y"], pa.string_view())})
    pq.write_table(table, sink, store_schema=True)
    found = pyparq.read_table(sink.getvalue(), binary_columns=["j", "v"]).to_arrow()
    assert found.schema.field("j").type == pa.binary()
    assert found.column("v").to_pylist() == [b"x", b"y"]
    assert found.column("j").to_pylist() == [b'{"a": 1}', None]


def test_what_cannot_be_asked() -> None:
    data = file_of()
    with pytest.raises(OptionError, match=r"binary_columns takes text columns, not int.*column n"):
        pyparq.read_table(data, binary_columns=["n"])
    with pytest.raises(ColumnNotFoundError, match="no column 'x'"):
        pyparq.read_table(data, binary_columns=["x"])
    assert (
        pyparq.read_table(data, binary_columns="s").to_pydict()
        == pyparq.read_table(data, binary_columns=["s"]).to_pydict()
    )


# ---- writing: what we would not read again


TEXT = text_of(VALUES)
SHAPED: dict[str, tuple[pa.Array, int, str]] = {
    "string": (TEXT, 1, "s"),
    "large_string": (TEXT.cast(pa.large_string()), 1, "s"),
    "string_view": (TEXT.cast(pa.string_view()), 1, "s"),
    "slice": (TEXT[2:], 1, "s"),
    "dictionary": (pa.DictionaryArray.from_arrays(pa.array([0, 0, None, 3]), TEXT), 3, "s"),
    "list": (pa.ListArray.from_arrays(pa.array([0, 1, 1, 8], pa.int32()), TEXT), 2, r"s\.list\.element"),
    "struct": (pa.StructArray.from_arrays([TEXT], ["t"]), 1, r"s\.t"),
}


@pytest.mark.parametrize("name", SHAPED)
def test_it_is_not_written_as_text(name: str) -> None:
    values, row, column = SHAPED[name]
    sink = io.BytesIO()
    with pytest.raises(DataError, match=rf"row {row}: b.* is not valid UTF-8. Use a binary column.*column {column}\]"):
        pyparq.write_table(pa.table({"s": values}), sink)


def test_bytes_below_nulls_do_not_matter() -> None:
    offsets = pa.array([0, 2, 4], pa.int32()).buffers()[1]
    hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\2"), offsets, pa.py_buffer(b"\xff\xfeok")], 1)
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"s": hidden}), sink)
    assert pq.read_table(io.BytesIO(sink.getvalue())).to_pydict() == {"s": [None, "ok"]}
