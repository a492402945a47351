"""What the pages of a file hold once they are decompressed: to search it for values that must be gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pyparq.format import compression, ttypes
from pyparq.format.thrift_codec import deserialize
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import open_file
from pyparq.read.page_headers import walk_headers


def plain_bytes(path: Path) -> bytes:
    """All bytes of a file, and all of its pages decompressed."""
    found = [path.read_bytes()]
    file = open_file(path, ReadOptions())
    for k in range(file.num_row_groups):
        for leaf in file.tree.leaves:
            chunk = file.chunk(k, leaf)
            for page in walk_headers(file, chunk):
                start = page.offset + page.header_size
                stored = found[0][start : start + page.compressed_size]
                header, _ = deserialize(ttypes.PageHeader, found[0][page.offset : start])
                levels, second = 0, header.data_page_header_v2
                if second is not None:  # levels come first, and are never compressed
                    levels = second.repetition_levels_byte_length + second.definition_levels_byte_length
                name = compression.codec_name(chunk.meta.codec).lower()
                plain = name == "uncompressed" or (second is not None and second.is_compressed is False)
                body = stored[levels:]
                if not plain and page.uncompressed_size > levels:
                    body = bytes(pa.decompress(body, page.uncompressed_size - levels, name))
                found.append(stored[:levels] + body)
    return b"".join(found)
