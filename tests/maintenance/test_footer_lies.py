"""Footers that lie: what the pages contradict is tolerated where values stay right, refused with its place where not.
``docs/footer.md`` says which, and is held against the code here."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from footer_lies import GROUPS, LIES, ROWS, TABLE, Lie, chunks, encoded, sound
from footer_matrix import READ, TARGET, outcome, pyparq_says
from handmade import OPTIONAL, REPEATED, REQUIRED, Column, Page, group, int32, leaf, make
from hostile_structs import Workpiece
from interop_peers import with_pyparq

import pyparq
from pyparq import col
from pyparq.errors import CorruptFileError, CorruptIndexWarning, LimitError, ParquetError

BY_NAME = {lie.name: lie for lie in LIES}


def said() -> dict[str, str]:
    """What the document says of pyparq, by lie."""
    found = {}
    for line in TARGET.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "field":
            found[f"{cells[0]}: {cells[1]}"] = cells[2]
    return found


SAID = said()
TOLERATED = [lie for lie in LIES if SAID.get(lie.name) == READ]


def test_every_lie_is_in_the_document() -> None:
    assert list(SAID) == list(BY_NAME)
    assert len(TOLERATED) > 80


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_what_the_document_says(lie: Lie, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(lie.file())
    assert pyparq_says(outcome(with_pyparq, path)) == SAID[lie.name]


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie not in TOLERATED], ids=lambda lie: lie.name)
def test_errors_name_the_file(lie: Lie, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(lie.file())
    if lie.name == "SchemaElement.name: empty":
        assert pyparq.read_table(path).num_rows == TABLE.num_rows
        return
    with pytest.raises(ParquetError) as caught:
        pyparq.read_table(path)
    error = caught.value
    assert error.file == str(path)
    if lie.field.startswith(("ColumnMetaData", "DataPage", "Dictionary", "PageHeader")):
        assert (error.row_group, error.column) != (None, None)


@pytest.mark.parametrize("lie", TOLERATED, ids=lambda lie: lie.name)
@pytest.mark.filterwarnings("ignore::pyparq.errors.CorruptIndexWarning")
def test_tolerated_lies_in_other_ways_to_read(lie: Lie) -> None:
    """Rows by number, batches, filters, one column: the same values, or an error; never others."""
    data = lie.file()
    rows = [3, 51, 119, 120, 200]
    with pyparq.ParquetFile(data) as file:
        assert file.metadata.num_rows == ROWS * GROUPS
        assert file.take(rows).to_arrow().equals(TABLE.take(rows))
        batches = [pa.record_batch(batch) for batch in file.iter_batches(37)]
        assert pa.Table.from_batches(batches).combine_chunks().equals(TABLE.combine_chunks())
        if not lie.field.endswith(("statistics", "encoding_stats", "logicalType", "converted_type")):
            found = file.read(filters=(col("n") == 16) & (col("p") > 0)).to_arrow()
            expected = TABLE.filter((pc.field("n") == 16) & (pc.field("p") > 0))
            assert found.to_pydict() == expected.to_pydict()
    assert pyparq.read_table(data, columns=["l"], use_threads=False).to_arrow().equals(TABLE.select(["l"]))


# ---- sizes


@pytest.mark.parametrize("what", ["0", "1", "the compressed size", "negative"])
def test_chunks_whose_uncompressed_total_is_wrong(what: str) -> None:
    data = BY_NAME[f"ColumnMetaData.total_uncompressed_size: {what}"].file()
    assert pyparq.read_table(data).to_arrow().equals(TABLE)


def lying(change: Any, data: bytes | None = None) -> bytes:
    piece = Workpiece(sound() if data is None else data)
    change(piece.meta)
    footer = encoded(piece.meta)
    return piece.data + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_chunk_that_is_too_short_ends_where_the_next_begins() -> None:
    """What is missing of the last page is not looked for in the chunk behind."""

    def change(meta: Any) -> None:
        first, second = (meta.row_groups[0].columns[k].meta_data for k in (0, 1))
        first.total_compressed_size //= 2
        second.dictionary_page_offset -= 40  # as if it began within the last page of the first

    with pytest.raises(CorruptFileError, match=r"the column chunk has only.*column n"):
        pyparq.read_table(lying(change), columns=["n"])


def test_a_chunk_that_is_too_short_by_itself() -> None:
    data = BY_NAME["ColumnMetaData.total_compressed_size: half"].file()
    for name in TABLE.column_names:
        found = pyparq.read_table(data, columns=[name], row_groups=[0])
        assert found.to_arrow().equals(TABLE.select([name]).slice(0, ROWS))


def test_a_data_page_that_is_said_to_begin_within_the_dictionary() -> None:
    """What is not the whole dictionary rules nothing out."""

    def change(meta: Any) -> None:
        for chunk in chunks(meta, 0):
            chunk.meta_data.data_page_offset -= 3

    data = lying(change)
    for use_page_index in (False, True):
        found = pyparq.read_table(data, filters=col("n") == 16, use_page_index=use_page_index).to_arrow()
        assert found.num_rows == TABLE["n"].to_pylist().count(16)


@pytest.mark.parametrize("what", ["outside the file", "negative", "a page's"])
def test_bloom_filters_that_are_not_there(what: str) -> None:
    data = BY_NAME[f"ColumnMetaData.bloom_filter_offset: {what}"].file()
    with pytest.warns(CorruptIndexWarning, match=r"Bloom filter ignored.*row group 0, column s"):
        found = pyparq.read_table(data, filters=col("s") == "word 3")
    assert found.num_rows == TABLE["s"].to_pylist().count("word 3")


X = leaf("x", REQUIRED)
THREE_PAGES = [Page(3, int32(1, 2, 3)), Page(2, int32(4, 5)), Page(1, int32(6))]


@pytest.mark.parametrize(("num_rows", "num_values"), [(3, 3), (5, 5), (3, 6), (5, 6), (5, 3)])
def test_pages_behind_the_declared_rows_are_not_passed_over(num_rows: int, num_values: int) -> None:
    data = make([group("root", None, 1), X], [Column(THREE_PAGES, num_values=num_values)], num_rows)
    with pytest.raises(CorruptFileError, match=f"declares {num_rows} values, but another page of . follows.*column x"):
        pyparq.read_table(data)


@pytest.mark.parametrize("num_values", [0, 1, 3, 5, 7, 1 << 40, -1])
def test_the_rows_tell_how_many_values_there_are(num_values: int) -> None:
    data = make([group("root", None, 1), X], [Column(THREE_PAGES, num_values=num_values)], 6)
    assert pyparq.read_table(data).to_pydict() == {"x": [1, 2, 3, 4, 5, 6]}
    assert pyparq.read_table(data, filters=col("x") > 4).to_pydict() == {"x": [5, 6]}
    assert pyparq.read_table(data, filters=col("x").is_null()).num_rows == 0


@pytest.mark.parametrize("num_values", [3, 4, 6, 0, 1 << 40, -1])
def test_entries_of_lists_are_counted_by_the_footer_alone(num_values: int) -> None:
    """Where a row is continued by the next page, no other number tells that entries are missing."""
    pages = [Page(3, int32(1, 2, 3), [0, 1, 1], [1, 1, 1]), Page(2, int32(4, 5), [1, 0], [1, 1])]
    column = Column(pages, 1, 1, ("x",), num_values=num_values)
    elements = [group("root", None, 1), leaf("x", REPEATED)]
    with pytest.raises(CorruptFileError, match=r"(values|rows).*column x"):
        pyparq.read_table(make(elements, [column], 2))
    column.num_values = 5
    assert pyparq.read_table(make(elements, [column], 2)).to_pydict() == {"x": [[1, 2, 3, 4], [5]]}


def test_a_row_group_without_rows_whose_columns_have_values() -> None:
    with pytest.raises(CorruptFileError, match=r"0 rows.*6 values.*row group 0, column x"):
        pyparq.read_table(make([group("root", None, 1), X], [Column(THREE_PAGES)], 0))


# ---- schemas


def test_a_leaf_without_repetition_is_required() -> None:
    data = make([group("root", None, 1), leaf("x", None)], [Column(THREE_PAGES)], 6)
    assert pyparq.read_table(data).to_arrow().schema.field("x").nullable is False
    assert (
        pyparq.read_table(data).to_pydict() == pq.read_table(io.BytesIO(data)).to_pydict() == {"x": list(range(1, 7))}
    )


def test_a_leaf_without_repetition_in_a_struct() -> None:
    elements = [group("root", None, 1), group("g", OPTIONAL, 1), leaf("x", None)]
    column = Column([Page(3, int32(1, 2), definition=[1, 0, 1])], max_def=1, path=("g", "x"))
    data = make(elements, [column], 3)
    expected = {"g": [{"x": 1}, None, {"x": 2}]}
    assert pyparq.read_table(data).to_pydict() == pq.read_table(io.BytesIO(data)).to_pydict() == expected


# ---- pages that two column chunks share


@pytest.mark.filterwarnings("ignore::pyparq.errors.CorruptIndexWarning")
@pytest.mark.parametrize("rows", [None, [0, 130]])
def test_chunks_whose_pages_overlap_are_refused(rows: list[int] | None) -> None:
    data = BY_NAME["RowGroup.columns: those of the row group before"].file()
    assert with_rows(data, range(ROWS)) == TABLE.slice(0, ROWS).to_pydict()  # each of them is sound
    with pytest.raises(CorruptFileError, match=r"overlap those of column chunk . in row group"):
        with_rows(data, rows)


def with_rows(data: bytes, rows: Any) -> Any:
    return pyparq.read_table(data, rows=None if rows is None else list(rows)).to_pydict()


def test_declared_sizes_that_overlap_do_no_harm() -> None:
    """Each chunk claims all bytes to the end of the file."""

    def change(meta: Any) -> None:
        end = len(sound()) - 8 - int.from_bytes(sound()[-8:-4], "little")
        for chunk in chunks(meta):
            start = chunk.meta_data.dictionary_page_offset or chunk.meta_data.data_page_offset
            chunk.meta_data.total_compressed_size = end - start

    assert pyparq.read_table(lying(change)).to_arrow().equals(TABLE)


def test_one_chunk_may_be_read_again() -> None:
    scan = pyparq.ParquetFile(sound()).scan(filters=col("n") > 3)
    assert scan.to_table().to_arrow().equals(scan.to_table().to_arrow())


# ---- pages that inflate more than a thousandfold


def zeros(size: int) -> bytes:
    import zstandard

    count = size // 4
    body = zstandard.ZstdCompressor().compress(bytes(size))
    page = Page(count, body)
    data = make([group("root", None, 1), X], [Column([page])], count)
    piece = Workpiece(data)
    meta = piece.meta.row_groups[0].columns[0].meta_data
    header = page.header(len(body))
    header.uncompressed_page_size = size
    pages = b"PAR1" + encoded(header) + body
    meta.codec, meta.total_compressed_size = 6, len(pages) - 4
    return piece.with_footer(piece.meta, pages)


def test_large_pages_that_inflate_a_thousandfold_need_a_raised_limit() -> None:
    assert pyparq.read_table(zeros(64 << 20)).num_rows == 16 << 20
    data = zeros((64 << 20) + 4)
    with pytest.raises(LimitError, match=r"limits.max_expansion \(1000\).*column x, page 0"):
        pyparq.read_table(data)
    raised = pyparq.limits.Limits(max_expansion=1 << 15)
    assert pyparq.read_table(data, limits=raised).num_rows == (16 << 20) + 1


def test_the_sound_files_are_sound_to_others() -> None:
    """Else nothing above would mean anything."""
    for version in ("1.0", "2.0"):
        assert pq.read_table(io.BytesIO(sound(version))).equals(TABLE)


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_metadata_of_a_lying_footer_shows_values_or_says_what_is_wrong(lie: Lie) -> None:
    try:
        with pyparq.ParquetFile(lie.file()) as file:
            groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
    except ParquetError:
        return
    for group_ in groups:
        for name in ("num_rows", "total_byte_size", "sorting_columns"):
            with contextlib.suppress(ParquetError):
                getattr(group_, name)


def test_encodings_that_nobody_knows() -> None:
    """Several of them share a place in what is kept of a footer. The pages say what they are encoded with."""
    data = io.BytesIO()
    pyparq.write_table({"id": list(range(3000)), "x": [k / 7 for k in range(3000)]}, data, row_group_size=1000)
    piece = Workpiece(data.getvalue())
    for row_group in piece.meta.row_groups:
        for chunk in row_group.columns:
            chunk.meta_data.encodings = [*chunk.meta_data.encodings, 77, 99, -3]
    lying = piece.with_footer(piece.meta)
    assert pyparq.read_table(lying)["id"].to_pylist() == list(range(3000))
    assert pyparq.count(lying, filters=col("id") >= 2990) == 10
    assert pyparq.dataset([lying, lying]).read(["id"]).num_rows == 6000
