"""Page indexes that are structurally broken: a warning, and the right rows all the same."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hostile_structs import Workpiece

import pyparq
from pyparq import col
from pyparq.errors import CorruptIndexWarning
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize
from pyparq.index import page_index, statistics

ROWS = 4_000
TABLE = pa.table({"n": np.arange(ROWS), "s": [f"{k:06d}" for k in range(ROWS)], "m": np.arange(ROWS) % 977})
FILTER = (col("n") >= 1_234) & (col("n") < 1_240)
EXPECTED = TABLE.slice(1_234, 6)


@pytest.fixture(scope="module")
def piece() -> Workpiece:
    sink = io.BytesIO()
    pyparq.write_table(TABLE, sink, max_rows_per_page=100)
    return Workpiece(sink.getvalue())


def broken(piece: Workpiece, kind: str, change: Callable[[Any], Any]) -> bytes:
    """The file with another ColumnIndex or OffsetIndex of column ``n``; ``change`` alters the struct or gives bytes."""
    meta = copy.deepcopy(piece.meta)
    chunk = meta.row_groups[0].columns[0]
    cls = tt.ColumnIndex if kind == "column_index" else tt.OffsetIndex
    index, _ = deserialize(cls, piece.data, getattr(chunk, f"{kind}_offset"))
    raw = change(index)
    raw = raw if isinstance(raw, bytes) else serialize(index)
    setattr(chunk, f"{kind}_offset", len(piece.data))
    setattr(chunk, f"{kind}_length", len(raw))
    return piece.with_footer(meta, piece.data + raw)


def moved(field: str, page: int, by: int) -> Callable[[Any], None]:
    def change(index: Any) -> None:
        location = index.page_locations[page]
        setattr(location, field, getattr(location, field) + by)

    return change


def swapped(index: Any) -> None:
    index.page_locations[3], index.page_locations[4] = index.page_locations[4], index.page_locations[3]


def cut(field: str) -> Callable[[Any], None]:
    return lambda index: getattr(index, field).pop()


def each(field: str, value: Any) -> Callable[[Any], None]:
    return lambda index: setattr(index, field, [value] * len(index.null_pages))


OFFSETS: dict[str, Callable[[Any], Any]] = {
    "a page less": cut("page_locations"),
    "no pages": lambda index: index.page_locations.clear(),
    "pages swapped": swapped,
    "rows that do not rise": moved("first_row_index", 7, -100),
    "rows beyond the row group": moved("first_row_index", 39, ROWS),
    "a first page that starts later": moved("first_row_index", 0, 1),
    "offset outside of the chunk": moved("offset", 0, -4),
    "offset outside of the file": moved("offset", 39, 1 << 40),
    "a negative offset": moved("offset", 0, -(1 << 40)),
    "pages that overlap": moved("compressed_page_size", 12, 1),
    "a page of no bytes": lambda index: setattr(index.page_locations[5], "compressed_page_size", 0),
    "a page cut short": moved("compressed_page_size", 12, -1),
    "a page that starts inside the one before": moved("offset", 12, -5),
    "rows shifted by one": moved("first_row_index", 12, 1),
    "bytes that are no struct": lambda index: b"\xff" * 40,
    "bytes that end early": lambda index: serialize(index)[:-7],
}
COLUMNS: dict[str, Callable[[Any], Any]] = {
    "a null page less": cut("null_pages"),
    "a minimum less": cut("min_values"),
    "a maximum less": cut("max_values"),
    "a null count less": cut("null_counts"),
    "no pages": lambda index: [getattr(index, f).clear() for f in ("null_pages", "min_values", "max_values")] and None,
    "boundary order 7": lambda index: setattr(index, "boundary_order", 7),
    "negative null counts": each("null_counts", -1),
    "more nulls than rows": each("null_counts", 1_000),
    "bytes that are no struct": lambda index: b"\xff" * 40,
    "bytes that end early": lambda index: serialize(index)[:-7],
}
SILENT: dict[str, Callable[[Any], Any]] = {
    "bounds of wrong length": each("min_values", b"\1"),
    "minima above the maxima": each("min_values", (1 << 40).to_bytes(8, "little")),
}
"""Single bounds that cannot be right are left out, without a word."""


def ask(data: bytes) -> tuple[pa.Table, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = pyparq.read_table(data, filters=FILTER).to_arrow()
    return found, [str(w.message) for w in caught if issubclass(w.category, CorruptIndexWarning)]


def test_whole_it_is_used_without_a_word(piece: Workpiece) -> None:
    data = piece.with_footer(piece.meta)
    found, said = ask(data)
    assert found.equals(EXPECTED)
    assert said == []
    with pyparq.ParquetFile(data) as file:
        scan = file.scan(filters=FILTER)
        scan.to_table()
        assert scan.explain().pages_decoded == 3  # one of each column


@pytest.mark.parametrize("name", OFFSETS)
def test_offset_indexes(piece: Workpiece, name: str) -> None:
    found, said = ask(broken(piece, "offset_index", OFFSETS[name]))
    assert found.equals(EXPECTED)
    assert said, "nothing was said"
    assert any("column n" in text for text in said)


@pytest.mark.parametrize("name", COLUMNS)
def test_column_indexes(piece: Workpiece, name: str) -> None:
    found, said = ask(broken(piece, "column_index", COLUMNS[name]))
    assert found.equals(EXPECTED)
    assert said
    assert any("column n" in text for text in said)


@pytest.mark.parametrize("name", SILENT)
def test_single_bounds(piece: Workpiece, name: str) -> None:
    found, _ = ask(broken(piece, "column_index", SILENT[name]))
    assert found.equals(EXPECTED)


@pytest.mark.parametrize("kind", ["offset_index", "column_index"])
@pytest.mark.parametrize(("offset", "length"), [(-5, 10), (0, 10), (1 << 50, 10), (100, 1 << 30), (100, 0), (100, -3)])
def test_places_outside_of_the_file(piece: Workpiece, kind: str, offset: int, length: int) -> None:
    meta = copy.deepcopy(piece.meta)
    setattr(meta.row_groups[0].columns[0], f"{kind}_offset", offset)
    setattr(meta.row_groups[0].columns[0], f"{kind}_length", length)
    found, _ = ask(piece.with_footer(meta))
    assert found.equals(EXPECTED)


def test_a_full_scan_asks_no_index(piece: Workpiece) -> None:
    data = broken(piece, "offset_index", OFFSETS["bytes that are no struct"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pyparq.read_table(data).to_arrow().equals(TABLE)


def test_warnings_can_be_errors(piece: Workpiece) -> None:
    data = broken(piece, "column_index", COLUMNS["bytes that end early"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CorruptIndexWarning, match="column n"):
            pyparq.read_table(data, filters=FILTER)


# ---- Bloom filters -------------------------------------------------------------------------------------------------

ODD = pa.table({"k": np.arange(ROWS) * 2})


@pytest.fixture(scope="module")
def filtered() -> Workpiece:
    sink = io.BytesIO()
    options: Any = {"write_page_index": False, "use_dictionary": False, "bloom_filters": ["k"]}
    pyparq.write_table(ODD, sink, row_group_size=ROWS // 2, **options)
    return Workpiece(sink.getvalue())


PLACES: dict[str, Callable[[Any], tuple[int, int | None]]] = {
    "before the file": lambda meta: (-5, meta.bloom_filter_length),
    "in the magic at the end": lambda meta: (1 << 62, meta.bloom_filter_length),
    "a longer one than the file": lambda meta: (meta.bloom_filter_offset, 1 << 30),
    "a negative length": lambda meta: (meta.bloom_filter_offset, -32),
    "one byte later": lambda meta: (meta.bloom_filter_offset + 1, meta.bloom_filter_length),
    "one byte earlier": lambda meta: (meta.bloom_filter_offset - 1, meta.bloom_filter_length),
    "one byte later, of unknown length": lambda meta: (meta.bloom_filter_offset + 1, None),
} | {
    f"a length that is {by:+} off": lambda meta, by=by: (meta.bloom_filter_offset, meta.bloom_filter_length + by)
    for by in (-32, -5, -1, 1, 5, 32)
}  # type: ignore[misc]


def counts(source: Any) -> list[int]:
    """Of keys that are there, of one that is not, and of many, for which the filter is read whole."""
    with pyparq.ParquetFile(source) as file:
        some = [col("k") == 4, col("k") == ROWS + 8, col("k") == 5, col("k").isin(list(range(0, 400, 2)))]
        return [file.scan(filters=question).count() for question in some]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_places_of_bloom_filters(filtered: Workpiece, name: str, local: bool, tmp_path: Path) -> None:
    meta = copy.deepcopy(filtered.meta)
    for group in meta.row_groups:
        chunk = group.columns[0].meta_data
        chunk.bloom_filter_offset, chunk.bloom_filter_length = PLACES[name](chunk)
    data = filtered.with_footer(meta)
    (tmp_path / "t.parquet").write_bytes(data)
    with pytest.warns(CorruptIndexWarning, match="Bloom filter ignored"):
        assert counts(tmp_path / "t.parquet" if local else data) == [1, 1, 0, 200]


@pytest.mark.parametrize("local", [False, True])
def test_a_bloom_filter_whose_header_is_longer_than_its_length_leaves_room_for(
    filtered: Workpiece, local: bool, tmp_path: Path
) -> None:
    """The bitset begins later than the length tells."""
    meta, data = copy.deepcopy(filtered.meta), filtered.data
    for group in meta.row_groups:
        chunk = group.columns[0].meta_data
        at, length = chunk.bloom_filter_offset, chunk.bloom_filter_length
        stored = data[at : at + length]
        header = stored[: length % 32]
        last = next(k for k in range(1, 8) if not header[k] & 0x80)  # of the size, which may take a byte more
        longer = header[:last] + bytes([header[last] | 0x80, 0]) + header[last + 1 :]
        chunk.bloom_filter_offset = len(data)
        data += longer + stored[length % 32 :]
    source: Any = filtered.with_footer(meta, data)
    if local:
        (tmp_path / "t.parquet").write_bytes(source)
        source = tmp_path / "t.parquet"
    with pytest.warns(CorruptIndexWarning, match="Bloom filter ignored"):
        assert counts(source) == [1, 1, 0, 200]


# ---- level histograms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["chunk", "pages"])
@pytest.mark.parametrize("share", [2, 3, 0])
def test_level_histograms_that_count_other_entries_than_there_are(
    where: str, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They say that each row has a struct, or that none has, of only some of the rows: nothing is believed."""
    structs = [None if k % 10 == 0 else {"a": k} for k in range(1000)]
    sink = io.BytesIO()
    pyparq.write_table(pa.table({"s": structs}), sink, row_group_size=500, max_rows_per_page=100)
    for level in (-1, 0):

        def forged(found: Any, level: int = level) -> Any:
            if found is None:
                return None
            lie = np.zeros_like(found)
            lie[:, level] = found.sum(axis=1) // share if share else 0
            return lie

        module = statistics if where == "chunk" else page_index
        name = "_level_histograms" if where == "chunk" else "_histograms"
        real = getattr(module, name)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *given, real=real, forged=forged: forged(real(*given)))
            for question, rows in ((col("s").is_null(), 100), (col("s").is_not_null(), 900)):
                assert pyparq.read_table(sink.getvalue(), filters=question).num_rows == rows
                assert pyparq.ParquetFile(sink.getvalue()).scan(filters=question).count() == rows
