"""pyparq in polars: ``pyparq.polars.scan("flights.parquet").filter(...).collect()``."""

from pyparq.polars.source import scan

__all__ = ["scan"]
