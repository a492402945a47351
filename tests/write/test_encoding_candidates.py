"""Which encodings are tried for a leaf: none that a common reader gets wrong."""

from __future__ import annotations

import pytest

from pyparq.format import compression
from pyparq.format.types import LeafType, Physical
from pyparq.write.encoding_choice import BYTE_STREAM_SPLIT, candidates_of


@pytest.mark.parametrize(
    ("physical", "kind", "bits", "is_tried"),
    [
        (Physical.INT32, "uint", 32, False),  # Spark does not read split streams as unsigned numbers
        (Physical.INT64, "uint", 64, False),
        (Physical.INT32, "uint", 16, True),  # Spark reads it as a signed number that has room
        (Physical.INT32, "int", 32, True),
        (Physical.INT64, "int", 64, True),
        (Physical.DOUBLE, "double", 0, True),
    ],
)
def test_split_streams(physical: Physical, kind: str, bits: int, is_tried: bool) -> None:
    leaf = LeafType(physical, kind, bits=bits)
    assert (BYTE_STREAM_SPLIT in candidates_of(leaf, compression.ZSTD)) is is_tried
    assert BYTE_STREAM_SPLIT not in candidates_of(leaf, compression.UNCOMPRESSED)
