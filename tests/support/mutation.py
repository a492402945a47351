"""Copies of our files with one index falsified and nothing else touched: who trusts that index then loses a row."""

from __future__ import annotations

from pathlib import Path

from written import Written

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize


def column_number(file: Written, name: str) -> int:
    paths = [".".join(c.meta_data.path_in_schema) for c in file.meta.row_groups[0].columns]
    return paths.index(name)


def clear_bloom_filter(source: Path, target: Path, column: str, row_groups: list[int] | None = None) -> Path:
    """Zero the bitsets of a column: its filters then say of every value that it is absent."""
    data = bytearray(source.read_bytes())
    file = Written(bytes(data))
    for group in row_groups if row_groups is not None else range(len(file.meta.row_groups)):
        meta = file.chunk(group, column_number(file, column)).meta_data
        _, start = deserialize(tt.BloomFilterHeader, file.data, meta.bloom_filter_offset)
        end = meta.bloom_filter_offset + meta.bloom_filter_length
        assert any(data[start:end])
        data[start:end] = bytes(end - start)
    target.write_bytes(data)
    return target


def move_page_bounds(
    source: Path, target: Path, column: str, row_group: int, page: int, low: bytes, high: bytes
) -> Path:
    """Give one page other bounds in the ColumnIndex, of the same length as the true ones."""
    data = bytearray(source.read_bytes())
    file = Written(bytes(data))
    number = column_number(file, column)
    chunk, index = file.chunk(row_group, number), file.column_index(row_group, number)
    index.min_values[page], index.max_values[page] = low, high
    changed = serialize(index)
    assert len(changed) == chunk.column_index_length
    start = chunk.column_index_offset
    assert data[start : start + len(changed)] != changed
    data[start : start + len(changed)] = changed
    target.write_bytes(data)
    return target
