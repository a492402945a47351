"""Page headers as tuples. A scan reads one per page and does not need their statistics, so no object is made.

Fields are those of parquet.thrift, in its order. ``None`` stands for an absent field, and for a field that is no
number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import Bytes, deserialize_numbers


class DataPageHeader(NamedTuple):
    num_values: int
    encoding: int
    definition_level_encoding: int
    repetition_level_encoding: int
    statistics: Any


class DictionaryPageHeader(NamedTuple):
    num_values: int
    encoding: int
    is_sorted: bool | None


class DataPageHeaderV2(NamedTuple):
    num_values: int
    num_nulls: int
    num_rows: int
    encoding: int
    definition_levels_byte_length: int
    repetition_levels_byte_length: int
    is_compressed: bool | None
    """``None`` means ``True``."""
    statistics: Any


class PageHeader(NamedTuple):
    type: int
    uncompressed_page_size: int
    compressed_page_size: int
    crc: int | None
    data_page_header: DataPageHeader | None
    index_page_header: Any
    dictionary_page_header: DictionaryPageHeader | None
    data_page_header_v2: DataPageHeaderV2 | None


def read_page_header(data: Bytes, offset: int = 0) -> tuple[PageHeader, int]:
    """The page header at ``data[offset]``, and the offset behind it. Raises the errors of ``deserialize``."""
    numbers, end = deserialize_numbers(tt.PageHeader, data, offset)
    kind, size, stored, crc, v1, index, dictionary, v2 = numbers
    return PageHeader(
        kind, size, stored, crc,
        None if v1 is None else DataPageHeader._make(v1),
        index,
        None if dictionary is None else DictionaryPageHeader._make(dictionary),
        None if v2 is None else DataPageHeaderV2._make(v2),
    ), end  # fmt: skip
