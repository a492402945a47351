"""Limits on how much a file can make the reader allocate, nest or count."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for a read, whatever sizes the file declares. Sizes are bytes.

    They protect against decompression bombs and absurd declared sizes. A file that exceeds a limit is refused with
    :class:`pyparq.LimitError`, even if it is valid. The error names the limit to raise.

    Example::

        limits = pyparq.Limits(max_memory=2 << 30)
        table = pyparq.read_table("flights.parquet", limits=limits)
    """

    max_footer: int = 512 << 20
    """Largest serialized footer."""
    max_schema_depth: int = 64
    """Deepest nesting of groups in the schema."""
    max_page_header: int = 16 << 20
    """Largest serialized page header. A page header can hold statistics."""
    max_page: int = (1 << 31) - 1
    """Largest uncompressed page."""
    max_expansion: int = 1000
    """Most uncompressed bytes per compressed byte of a page. It applies to pages larger than ``expansion_floor``."""
    expansion_floor: int = 64 << 20
    """``max_expansion`` does not apply to pages up to this uncompressed size."""
    max_values_per_byte: int = 1 << 20
    """Most values that a page may declare per stored byte. Where batches of no columns are read, most rows that the
    footer may declare per byte of the file."""
    max_memory: int | None = None
    """Most decoded bytes that one read may hold at a time: open pages, dictionaries and columns. ``None``: the memory
    of the machine, or of the container (cgroup) that the process runs in. A stream of batches holds one row group at a
    time. Where several threads, or small row groups read together, do not fit, one thread or one row group at a time
    does the work."""
    max_column: int = 16 << 30
    """Largest decoded column chunk: its values and offsets in memory."""
    max_bloom_filter: int = 128 << 20
    """Largest Bloom filter bitset. All implementations share this cap."""
    max_index: int = 256 << 20
    """Largest serialized ColumnIndex or OffsetIndex."""


DEFAULT_LIMITS = Limits()
