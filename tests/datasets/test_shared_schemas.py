"""Files with one schema share what was worked out of it; files that differ in anything it depends on do not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import OPTIONAL, REQUIRED, Column, Page, group, int32, leaf, make
from written import written

import pyparq
from pyparq.errors import UnsupportedError
from pyparq.read.footers import schemas

TABLE = pa.table({"t": pa.array([0, 1], pa.timestamp("us", tz="Europe/Paris")), "s": ["a", "b"]})


def opened(data: bytes, **options: Any) -> Any:
    return pyparq.ParquetFile(data, **options)._file


def arrow_file(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def test_files_of_other_rows_share_a_schema() -> None:
    first, second = opened(arrow_file(TABLE)), opened(arrow_file(TABLE.slice(1)))
    assert first.tree is second.tree
    assert first.fields is second.fields
    assert first.key_values is not second.key_values  # a user gets hold of these
    assert pyparq.read_table(arrow_file(TABLE.slice(1))).to_arrow() == TABLE.slice(1)


@pytest.mark.parametrize(
    "options",
    [{"binary_columns": ["s"]}, {"read_dictionary": ["s"]}, {"use_arrow_schema": False}],
    ids=lambda options: next(iter(options)),
)
def test_other_options_other_fields(options: dict[str, Any]) -> None:
    data = arrow_file(TABLE)
    before = pyparq.read_table(data).to_arrow()
    other = pyparq.read_table(data, **options).to_arrow()
    assert other.schema != before.schema
    assert pyparq.read_table(data).to_arrow() == before == TABLE
    assert pyparq.read_table(data, **options).to_arrow() == other


def test_int96_in_other_units() -> None:
    data = arrow_file(pa.table({"t": pa.array([0], pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True)
    for unit in ("ns", "ms", "us", "ns"):
        table = pyparq.read_table(data, coerce_int96_timestamp_unit=unit).to_arrow()
        assert table.schema.field("t").type == pa.timestamp(unit)


def test_key_values_are_part_of_it() -> None:
    tables = [TABLE.replace_schema_metadata({"k": value}) for value in ("1", "2", "1")]
    found = [pyparq.read_table(arrow_file(table)).to_arrow() for table in tables]
    assert [table.schema.metadata for table in found] == [table.schema.metadata for table in tables]


def test_only_so_many_are_kept() -> None:
    for k in range(schemas.MOST_SCHEMAS + 5):
        opened(written(pa.table({f"column {k}": [k]})))
    assert len(schemas._known) == schemas.MOST_SCHEMAS


def test_only_so_many_bytes_are_kept() -> None:
    """A wide schema is kept in place of others; one beyond all bounds is not."""
    narrow = written(pa.table({"x": [1]}))
    first = opened(narrow).tree
    assert opened(narrow).tree is first
    wide = written(pa.table({f"a wide table's column {k}": [k] for k in range(1000)}))
    noted = [(b"note", bytes(97 + k for _ in range(schemas.MOST_BYTES // 2 - 1000))) for k in range(3)]
    kept = [written(pa.table({"x": [1]}), key_value_metadata=dict([pair])) for pair in noted]
    assert opened(wide).tree is opened(wide).tree
    for data in kept:
        assert opened(data).tree is opened(data).tree
        assert sum(known.size for known in schemas._known.values()) <= schemas.MOST_BYTES
    assert opened(narrow).tree is not first
    large = written(pa.table({"x": [1]}), key_value_metadata={b"note": b"x" * schemas.MOST_BYTES})
    assert opened(large).tree is not opened(large).tree


def test_a_schema_that_was_not_understood_is_not_kept() -> None:
    data = make([group("root", None, 1), leaf("x", 3)], [Column([Page(1, int32(1))])], 1)
    for _ in range(2):
        with pytest.raises(pyparq.errors.CorruptFileError, match="repetition type"):
            opened(data)


def test_a_group_without_fields() -> None:
    """pyarrow makes it null in every row; nothing in the file says so."""
    elements = [
        group("root", None, 3), leaf("x", REQUIRED), group("hollow", OPTIONAL, 0), group("s", REQUIRED, 1),
        leaf("y", REQUIRED),
    ]  # fmt: skip
    columns = [Column([Page(2, int32(1, 2))]), Column([Page(2, int32(3, 4))], path=("s", "y"))]
    data = make(elements, columns, 2)
    assert pyparq.read_table(data, columns=["s", "x"]).to_pydict() == {"s": [{"y": 3}, {"y": 4}], "x": [1, 2]}
    for columns in (None, ["hollow"]):
        with pytest.raises(UnsupportedError, match=r"the group has no fields.*column hollow"):
            pyparq.read_table(data, columns=columns)
