"""Writes ``lzo.parquet``: pages that liblzo2 (Debian: liblzo2-2) compressed, in Hadoop's frames and bare.

No library that pyparq is tested against writes LZO. ``python testdata/make_lzo.py`` makes the same file again.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from hostile_pages import data_page, hand_made  # noqa: E402
from lzo_pages import PAGES, framed, plain  # noqa: E402

from pyparq.format import ttypes as tt  # noqa: E402


def compressed(data: bytes, function: str) -> bytes:
    """A bare block by one of liblzo2's compressors."""
    library = ctypes.CDLL("liblzo2.so.2")
    out, size = ctypes.create_string_buffer(len(data) + len(data) // 16 + 67), ctypes.c_size_t()
    room = ctypes.create_string_buffer(1 << 20)
    assert getattr(library, function)(data, ctypes.c_size_t(len(data)), out, ctypes.byref(size), room) == 0
    return out.raw[: size.value]


def main() -> None:
    pages = []
    for values, function, block in PAGES:
        body = plain(values)
        stored = (
            framed(body, block, lambda part, f=function: compressed(part, f)) if block else compressed(body, function)
        )
        header = data_page(len(values), 0, len(body))
        pages.append((header, stored))
    element = tt.SchemaElement(name="s", type=6, repetition_type=0, converted_type=0)
    count = sum(len(values) for values, _, _ in PAGES)
    (HERE / "lzo.parquet").write_bytes(hand_made(element, count, pages, codec=3))


if __name__ == "__main__":
    main()
