"""``docs/interop.md``: it covers every type, we read everything in it, and a sample of it is what a run gives today."""

from __future__ import annotations

from pathlib import Path

import pytest
from interop_matrix import NESTED, TARGET, by_pyparq, encoding_in, in_few_words, run, with_pyparq
from interop_peers import READERS, WRITERS
from interop_tables import FLAT, WIDE_DECIMALS

Row = tuple[str, tuple[str, ...], dict[str, str]]


def tables() -> dict[str, list[Row]]:
    """By writer: encoding, types, and what stands under each reader."""
    found: dict[str, list[Row]] = {}
    readers: list[str] = []
    writer = ""
    for line in TARGET.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("## Written by "):
            writer = line.removeprefix("## Written by ")
            found[writer] = []
        elif line.startswith("| encoding "):
            readers = cells[2:]
        elif line.startswith("| "):
            found[writer].append((cells[0], tuple(cells[1].split(", ")), dict(zip(readers, cells[2:], strict=True))))
    return found


TABLES = tables()


def test_all_writers_readers_and_types_are_there() -> None:
    assert list(TABLES) == ["pyparq", *WRITERS, "spark"]
    for rows in TABLES.values():
        assert all(list(marks) == ["pyparq", *READERS, "spark"] for _, _, marks in rows)
    ours = {name for _, types, _ in TABLES["pyparq"] for name in types}
    assert ours == {*FLAT, *WIDE_DECIMALS, *NESTED}
    encodings = {encoding for encoding, _, _ in TABLES["pyparq"]}
    assert encodings == {
        "PLAIN", "RLE", "RLE_DICTIONARY", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
        "BYTE_STREAM_SPLIT",
    }  # fmt: skip


def test_we_read_everything() -> None:
    """But for what a writer stored as something else: pyarrow does not find it there either."""
    for writer, rows in TABLES.items():
        for encoding, types, marks in rows:
            if marks["pyparq"] != "✓":
                assert marks["pyarrow"] != "✓", (writer, encoding, types)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("writer", ["pyparq", "pyarrow", "duckdb", "datafusion"])
def test_a_sample_of_it(tmp_path: Path, writer: str) -> None:
    """Types that differ between readers, and some that do not, run anew: the same marks."""
    names = {"int32", "uint64", "float16", "fixed13", "string", "bool", "decimal38_10", "decimal57_20", "list", "map"}
    write = by_pyparq if writer == "pyparq" else WRITERS[writer]
    matrix = run(writer, write, {"pyparq": with_pyparq, **READERS}, tmp_path, names)
    said = {(encoding, name): marks for encoding, types, marks in TABLES[writer] for name in types}
    assert set(matrix.cells) == {key for key in said if key[1] in names}
    for key, outcomes in matrix.cells.items():
        for reader, problem in outcomes.items():
            assert (said[key][reader] == "✓") == (problem == ""), (key, reader, problem)


def test_what_failed_in_few_words() -> None:
    error = ValueError("  in /tmp/a/x.parquet:\n bad | worse " + "word " * 60)
    words = in_few_words(error)
    assert words.startswith("ValueError: in the file")
    assert "|" not in words
    assert words.endswith(" …") or len(words) < 140


def test_the_encoding_is_read_from_the_pages(tmp_path: Path) -> None:
    import pyparq

    path = tmp_path / "x.parquet"
    for encoding in ("PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"):
        pyparq.write_table({"x": [1, 2, 1, 2]}, path, column_encoding=encoding)
        assert encoding_in(path) == encoding
