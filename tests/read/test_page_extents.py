"""Pages of two column chunks may not overlap; those of one chunk may be read in parts, in any order."""

from __future__ import annotations

import pytest

from pyparq.errors import CorruptFileError
from pyparq.read.column_reads import Extents


def test_a_chunk_that_is_read_in_parts_has_all_of_them() -> None:
    extents = Extents()
    extents.add((0, 0), 100, 200)
    extents.add((0, 0), 300, 400)  # the rest of the same chunk: 100 to 400 is its own now
    with pytest.raises(CorruptFileError, match=r"overlap those of column chunk 0 in row group 0 \(offset 100 to 400\)"):
        extents.add((0, 1), 350, 360)
    with pytest.raises(CorruptFileError, match="overlap"):
        extents.add((0, 1), 250, 260)  # between the parts: pages of a chunk follow each other
    extents.add((0, 1), 400, 450)


def test_a_chunk_that_grows_to_the_front() -> None:
    extents = Extents()
    extents.add((0, 0), 300, 400)
    extents.add((0, 0), 100, 200)
    with pytest.raises(CorruptFileError, match=r"\(offset 100 to 400\)"):
        extents.add((1, 0), 50, 101)
    extents.add((1, 0), 50, 100)
    extents.add((1, 0), 40, 60)


def test_a_chunk_that_grows_into_another() -> None:
    extents = Extents()
    extents.add((0, 0), 100, 200)
    extents.add((0, 1), 200, 300)
    extents.add((0, 2), 300, 400)
    with pytest.raises(CorruptFileError, match=r"its pages \(offset 100 to 201\) overlap those of column chunk 1"):
        extents.add((0, 0), 150, 201)


def test_the_same_part_again_and_parts_of_nothing() -> None:
    extents = Extents()
    extents.add((0, 0), 100, 200)
    extents.add((0, 0), 120, 180)
    extents.add((0, 1), 150, 150)  # no byte
    extents.add_if_new((0, 0), 0, 1 << 40)  # known already
    extents.add((0, 1), 200, 210)
