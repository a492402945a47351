"""Damaged files: whatever is wrong is a finding, never another error; and what only hand-made files can show."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from footer_lies import LIES, Lie
from footer_lies import sound as sound_lie
from forged import Forged, sound
from handmade import REQUIRED, Column, Page, int32, leaf, make
from handmade import group as group_element
from hypothesis import given, settings
from hypothesis import strategies as st

import pyparq
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import serialize


def header_is_longer(page: Page, statistics: tt.Statistics) -> Callable[[int], tt.PageHeader]:
    """The page's header with statistics in it."""

    def header(size: int) -> tt.PageHeader:
        made = Page.header(page, size)
        made.data_page_header.statistics = statistics
        return made

    return header


def with_header_statistics(*statistics: tt.Statistics) -> bytes:
    """Pages of the values 1 to 4, 5 to 8, and so on, each with statistics in its header."""
    pages = []
    for k, given_ in enumerate(statistics):
        page = Page(4, int32(*range(4 * k + 1, 4 * k + 5)))
        page.header = header_is_longer(page, given_)  # type: ignore[method-assign]
        pages.append(page)
    elements = [group_element("root", None, 1), leaf("x", REQUIRED)]
    return make(elements, [Column(pages)], 4 * len(pages))


def bounds(low: int, high: int, **given: Any) -> tt.Statistics:
    return tt.Statistics(min=int32(low), max=int32(high), **given)


def test_statistics_in_page_headers() -> None:
    assert pyparq.verify(with_header_statistics(bounds(1, 4, null_count=0), bounds(0, 9))).ok
    (finding,) = pyparq.verify(with_header_statistics(bounds(1, 4), bounds(5, 7))).findings
    assert (finding.kind, finding.structure, finding.page, finding.row) == ("bounds", "PageHeader", 1, 7)
    (finding,) = pyparq.verify(with_header_statistics(bounds(1, 4), bounds(5, 8, null_count=1))).findings
    assert (finding.kind, finding.structure, finding.page, finding.row) == ("count", "PageHeader", 1, 4)


@pytest.mark.parametrize("entries", [[1, 2, 3], [1, 3, 2]], ids=["sorted", "not sorted"])
def test_a_dictionary_that_claims_to_be_sorted(entries: list[int]) -> None:
    body = struct.pack("<3i", *entries)
    inner = tt.DictionaryPageHeader(num_values=3, encoding=0, is_sorted=True)
    head = serialize(tt.PageHeader(type=2, uncompressed_page_size=12, compressed_page_size=12,
                                   dictionary_page_header=inner))  # fmt: skip
    # Codes 0, 1, 2 as one run each, of two bits.
    values = bytes([2]) + b"".join(bytes([2, code]) for code in range(3))
    data_head = serialize(
        tt.PageHeader(type=0, uncompressed_page_size=len(values), compressed_page_size=len(values),
                      data_page_header=tt.DataPageHeader(3, 8, 3, 3))
    )  # fmt: skip
    pages = head + body + data_head + values
    meta = tt.ColumnMetaData(
        type=1, encodings=[0, 8], path_in_schema=["x"], codec=0, num_values=3, total_uncompressed_size=len(pages),
        total_compressed_size=len(pages), dictionary_page_offset=4, data_page_offset=4 + len(head + body),
    )  # fmt: skip
    group = tt.RowGroup(columns=[tt.ColumnChunk(file_offset=0, meta_data=meta)], total_byte_size=0, num_rows=3)
    elements = [group_element("root", None, 1), leaf("x", REQUIRED)]
    footer = serialize(tt.FileMetaData(version=1, schema=elements, num_rows=3, row_groups=[group]))
    report = pyparq.verify(b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    found = [(f.kind, f.structure, f.page) for f in report.findings]
    assert found == ([] if entries == sorted(entries) else [("sorting", "DictionaryPageHeader", "dictionary")])


NOT_CHECKED = {
    "FileMetaData.version", "FileMetaData.created_by", "FileMetaData.key_value_metadata", "RowGroup.file_offset",
    "ColumnChunk.file_offset", "SchemaElement",
}  # fmt: skip
"""Fields without a second witness, or that writers fill as they like."""

TOLERATED = [
    "RowGroup.total_compressed_size: 0", "ColumnChunk.offset_index_length: 0", "ColumnChunk.column_index_length: 0",
    "ColumnMetaData.dictionary_page_offset: missing, data_page_offset the dictionary page's",
    "ColumnMetaData.index_page_offset: outside the file", "DataPageHeader.definition_level_encoding: unknown",
    "DictionaryPageHeader.encoding: RLE_DICTIONARY",
]  # fmt: skip
"""Statements that say nothing, or that writers are known to make so."""


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_lies_of_the_footer_raise_nothing(lie: Lie) -> None:
    pyparq.verify(lie.file())


def test_most_lies_of_the_footer_are_found() -> None:
    """A lie may also be a statement left out, which nothing contradicts."""
    assert pyparq.verify(sound_lie()).ok
    missed = [
        lie.name for lie in LIES
        if lie.what not in ("missing", "empty") and not lie.field.startswith(tuple(NOT_CHECKED))
        and pyparq.verify(lie.file()).ok
    ]  # fmt: skip
    assert missed == TOLERATED


@settings(max_examples=150)
@given(data=st.data())
def test_flipped_bytes_raise_nothing(data: st.DataObject) -> None:
    spoiled = bytearray(sound(data.draw(st.sampled_from(["1.0", "2.0"]))))
    in_footer = data.draw(st.booleans())
    first = len(spoiled) - 8 - int.from_bytes(spoiled[-8:-4], "little") if in_footer else 0
    for _ in range(data.draw(st.integers(1, 3))):
        spoiled[data.draw(st.integers(first, len(spoiled) - 1))] = data.draw(st.integers(0, 255))
    report = pyparq.verify(bytes(spoiled))
    assert str(report)
    assert report.to_dict()


def test_every_byte_of_the_pages_is_covered() -> None:
    """Pages have CRCs: no flipped bit of a body goes unnoticed."""
    forged = Forged(sound())
    rng = np.random.default_rng(5)
    for column in ("n", "s", "t", "l"):
        for _ in range(3):
            pages = forged.pages(column)
            _, start, header = pages[int(rng.integers(len(pages)))]
            at = start + int(rng.integers(header.compressed_page_size))
            forged.body[at] ^= 1 << int(rng.integers(8))
            assert "checksum" in {f.kind for f in pyparq.verify(forged.data()).findings}
            forged = Forged(sound())


def test_limits_are_kept() -> None:
    report = pyparq.verify(sound(), limits=pyparq.Limits(max_page=100))
    assert {f.kind for f in report.findings} == {"page"}
    assert all("limits.max_page" in f.text for f in report.findings)
