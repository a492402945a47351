"""Statistics, page indexes, Bloom filters, row ranges and bitmaps."""

DOOR = ("bloom_filter", "page_index", "row_ranges", "statistics")
"""Modules of this package that other packages may use."""
