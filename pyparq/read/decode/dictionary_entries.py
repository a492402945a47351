"""The entries of a dictionary, for those who look into them: pruning, indexes, checks."""

from __future__ import annotations

import numpy as np

from pyparq.errors import CorruptFileError, located
from pyparq.format.encodings import plain
from pyparq.format.leaf_values import BinaryValues, Values
from pyparq.kernels import KernelError
from pyparq.options import ReadOptions
from pyparq.read.decode.memory_account import Account, Share
from pyparq.read.decode.pages import StoredPage, open_dictionary
from pyparq.read.decode.physical_values import check_utf8
from pyparq.read.footers.column_chunk import Chunk


def dictionary_room(page: StoredPage) -> int:
    """Bytes that a dictionary takes at most, inflated and decoded: an entry of text has four for its length, and gets
    an offset of eight."""
    return 4 * page.header.uncompressed_page_size


def decode_dictionary(page: StoredPage, chunk: Chunk, options: ReadOptions, share: Share | Account) -> Values:
    """The entries of a dictionary page, which ``share`` counts from then on. Text is UTF-8."""
    values = decode_entries(page, chunk, options, share)
    if chunk.node.type.is_text and isinstance(values, BinaryValues):
        with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
            check_utf8(values)
    return values


def decode_entries(page: StoredPage, chunk: Chunk, options: ReadOptions, share: Share | Account) -> Values:
    """As :func:`decode_dictionary`, without a look at what text holds."""
    with located(row_group=chunk.row_group, column=chunk.name, page="dictionary"):
        share.take(dictionary_room(page))
        data, count = open_dictionary(page, chunk, options)
        leaf = chunk.node.type
        if count > 0 and not leaf.is_binary and leaf.width * count > len(data):
            raise CorruptFileError(f"the dictionary page declares {count} entries but has only {len(data)} bytes")
        try:
            values = plain.decode(data, count, leaf)
        except KernelError as error:
            raise CorruptFileError(f"the dictionary page is invalid: {error}") from error
    # Where nothing is compressed, they stand in the file's bytes.
    return values if isinstance(values, BinaryValues) else np.require(values, requirements="A")
