"""Caps on what a file may make the reader allocate, nest or count."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that hold whatever a file declares. Sizes are bytes.

    They stop bombs and absurd declarations; a legitimate file that exceeds one is refused with
    :class:`pyparq.errors.LimitError`, which names the field to raise.
    """

    max_footer: int = 512 << 20
    """Serialized footer."""
    max_schema_depth: int = 64
    """Nesting of groups in the schema."""
    max_page_header: int = 16 << 20
    """Serialized page header (it can carry statistics)."""
    max_page: int = (1 << 31) - 1
    """Uncompressed page."""
    max_expansion: int = 1000
    """Uncompressed bytes per compressed byte in one page, once a page is over ``expansion_floor``."""
    expansion_floor: int = 64 << 20
    """Pages up to this size are not checked for their expansion."""
    max_values_per_byte: int = 1 << 20
    """Values that a page may claim per stored byte (runs compress without bound, but not for free)."""
    max_memory: int | None = None
    """All that one read has decoded and alive at once: pages that lie open, dictionaries, columns. ``None``: as much as
    the machine has, or the container (cgroup) that the process runs in. A stream of batches has one row group alive."""
    max_column: int = 16 << 30
    """Decoded column chunk: values and offsets as they are in memory."""
    max_bloom_filter: int = 128 << 20
    """Bloom filter bitset; the cap that every implementation shares."""
    max_index: int = 256 << 20
    """One serialized ColumnIndex or OffsetIndex."""


DEFAULT_LIMITS = Limits()
