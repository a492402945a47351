"""Parquet on Spark through PySpark: reading, writing and jobs over many files. See docs/spark.md.

Needs the extra ``spark`` (``pip install "pyparq[spark]"``: pyspark 4.3 or newer, and pyarrow) and Java 17 or newer.
Only Spark's public Python API is used: everything works in a classic session and over Spark Connect.
"""

from __future__ import annotations

from pyparq.spark.jobs import add_indexes, verify
from pyparq.spark.reading import count, read
from pyparq.spark.rewriting import rewrite
from pyparq.spark.source import register
from pyparq.spark.writing import write

__all__ = ["add_indexes", "count", "read", "register", "rewrite", "verify", "write"]
