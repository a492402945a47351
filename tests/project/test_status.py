"""``docs/status.md``: every row of the official matrix is there, and every cell is held by a test that exists."""

from __future__ import annotations

import ast
import io
import re
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_structs import Workpiece

import pyparq
from pyparq.errors import UnsupportedError

HERE = Path(__file__).parents[1]
STATUS = HERE.parent / "docs" / "status.md"

ROWS = {
    "Physical types": "BOOLEAN,INT32,INT64,INT96,FLOAT,DOUBLE,BYTE_ARRAY,FIXED_LEN_BYTE_ARRAY",
    "Logical types": "STRING,ENUM,UUID,8,DECIMAL (INT32),DECIMAL (INT64),DECIMAL (BYTE_ARRAY),"
    "DECIMAL (FIXED_LEN_BYTE_ARRAY),FLOAT16,DATE,TIME (INT32),TIME (INT64),TIMESTAMP (INT64),INTERVAL,JSON,BSON,"
    "VARIANT,GEOMETRY,GEOGRAPHY,LIST,MAP,UNKNOWN",
    "Encodings": "PLAIN,PLAIN_DICTIONARY,RLE_DICTIONARY,RLE,BIT_PACKED,DELTA_BINARY_PACKED,DELTA_LENGTH_BYTE_ARRAY,"
    "DELTA_BYTE_ARRAY,BYTE_STREAM_SPLIT",
    "Compressions": "UNCOMPRESSED,BROTLI,GZIP,LZ4 (deprecated),LZ4_RAW,LZO,SNAPPY,ZSTD",
    "Other format level features": "xxHash-based bloom filters,Bloom filter length,Statistics min_value,Page index,"
    "Page CRC32 checksum,Modular encryption,Size statistics",
    "High level data APIs for Parquet feature usage": 'External column data,Row group "Sorting column" metadata,'
    "Row group pruning using statistics,Row group pruning using bloom filter,Reading select columns only,"
    "Page pruning using statistics",
}
"""The official matrix (parquet-site, content/en/docs/File Format/implementationstatus.md): beginnings of its rows."""

OPEN: set[str] = set()
"""Rows that are to come."""


def source_of(module: str) -> str:
    """The text of a test module, whichever folder it is in."""
    (found,) = HERE.rglob(f"{module}.py")
    return found.read_text("utf-8")


def sections() -> dict[str, list[list[str]]]:
    """Cells of the tables' rows, by heading."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in STATUS.read_text("utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
            found[heading] = []
        elif line.startswith("| ") and not line.startswith("| |"):
            found[heading].append([cell.strip() for cell in line.strip("|").split("|")])
    return found


SECTIONS = sections()


def test_every_row_of_the_official_matrix_is_there() -> None:
    assert set(SECTIONS) == set(ROWS)
    for heading, rows in ROWS.items():
        names = [cells[0] for cells in SECTIONS[heading]]
        assert len(set(names)) == len(names)
        for row in rows.split(","):
            assert any(name == row or name.startswith((f"{row} ", f"{row},")) for name in names), row


def test_what_is_open_is_said_to_be() -> None:
    names = {cells[0]: cells for rows in SECTIONS.values() for cells in rows}
    assert set(names) >= OPEN
    for name, cells in names.items():
        assert len(cells) == 5, name
        marks = [cell[:1] for cell in (cells[1], cells[3]) if cell]
        assert set(marks) <= {"✅", "❌"}
        assert (set(marks) == {"❌"}) == (name in OPEN), name


REFERENCES = sorted(
    {
        reference
        for rows in SECTIONS.values()
        for cells in rows
        for k in (2, 4)
        for reference in re.split(r", (?=test_)", cells[k])
        if reference
    }
)


@lru_cache
def functions_of(module: str) -> set[str]:
    tree = ast.parse(source_of(module))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("reference", REFERENCES)
def test_the_named_tests_exist(reference: str) -> None:
    found = re.fullmatch(r"(test_\w+)::(test_\w+)(?:\[([^\]]+)\])?", reference)
    assert found, reference
    module, function, parameter = found.groups()
    assert function in functions_of(module)
    if parameter:
        assert parameter in source_of(module)


def test_every_done_cell_is_held() -> None:
    assert len(REFERENCES) > 50
    for rows in SECTIONS.values():
        for cells in rows:
            for state, tests in ((cells[1], cells[2]), (cells[3], cells[4])):
                assert tests or not state.startswith("✅"), cells[0]


# ---- cells that no other test holds ----------------------------------------------------------------------------------


def file_of(**options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 3], "b": [3, 2, 1]}), sink, **options)
    return sink.getvalue()


def test_external_column_data_is_refused() -> None:
    """Data of a column in another file: the column is refused by name, the others are read."""
    piece = Workpiece(file_of())
    piece.meta.row_groups[0].columns[1].file_path = "elsewhere.parquet"
    data = piece.with_footer(piece.meta)
    assert pyparq.read_table(data, columns=["a"]).to_pydict() == {"a": [1, 2, 3]}
    with pytest.raises(UnsupportedError, match=r"elsewhere\.parquet.*column b"):
        pyparq.read_table(data)


def test_sorting_columns_are_shown() -> None:
    order = [pq.SortingColumn(1, descending=True), pq.SortingColumn(0, nulls_first=True)]
    with pyparq.ParquetFile(file_of(sorting_columns=order)) as file:
        found = file.metadata.row_group(0).sorting_columns
    assert found == [("b", True, False), ("a", False, True)]
