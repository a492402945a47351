"""The file format's structs (generated from thrift_idl/parquet.thrift), their codec, and the lazy footer."""

from pyparq.format.generated import ttypes

__all__ = ["ttypes"]
