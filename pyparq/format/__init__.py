"""The file format's structs (generated from thrift_idl/parquet.thrift), their codec, and the lazy footer."""

from pyparq.format.generated import ttypes

__all__ = ["ttypes"]

DOOR = (
    "annotation", "chunk_numbers", "compression", "hybrid_calendar", "int96", "lazy_footer", "leaf_values",
    "order", "schema_node", "schema_tree", "thrift_codec", "thrift_tree", "types",
)  # fmt: skip
"""Modules of this package that other packages may use."""
