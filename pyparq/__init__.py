"""Parquet from scratch: page indexes, Bloom filters and encryption, without pyarrow."""

from pyparq._version import __version__

__all__ = ["__version__"]
