"""Parquet on Spark through PySpark: reading, writing and jobs over many files. See docs/spark.md.

Needs the extra ``spark`` (``pip install "pyparq[spark]"``: pyspark 4.3 or newer, and pyarrow) and Java 17 or newer.
Everything works in a classic session and over Spark Connect, by Spark's public Python API.
"""

from __future__ import annotations

from pyparq.spark.session import check_pyspark

check_pyspark()  # else an import below would fail, without a word of what to do

from pyparq.spark.cataloging import index_dataset  # noqa: E402
from pyparq.spark.compacting import compact  # noqa: E402
from pyparq.spark.file_jobs import add_indexes, verify  # noqa: E402
from pyparq.spark.reading import count, read  # noqa: E402
from pyparq.spark.rewriting import rewrite  # noqa: E402
from pyparq.spark.row_changing import delete, update, upsert  # noqa: E402
from pyparq.spark.source import register  # noqa: E402
from pyparq.spark.writing import write  # noqa: E402

__all__ = [
    "add_indexes",
    "compact",
    "count",
    "delete",
    "index_dataset",
    "read",
    "register",
    "rewrite",
    "update",
    "upsert",
    "verify",
    "write",
]

DOOR = ("session",)
"""Modules of this package that other packages may use."""
