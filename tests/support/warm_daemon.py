"""Spark's daemon of Python workers, with what they import already imported.

A worker is a fork of the daemon, and Spark's own has imported next to nothing: each worker would import numpy, pandas,
pyarrow, sqlglot and pyparq again, which takes a second of the processor. Tests of workers in processes of their own
(``cluster``) run without this module.
"""

from __future__ import annotations

import importlib
import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else numpy starts threads, and a fork has none of them

from pyspark.daemon import manager
from service_models import keep_models

NEEDED = ("pandas", "pyarrow", "sqlglot", "pyparq.spark")

if __name__ == "__main__":
    for name in (*NEEDED, *sys.argv[1:2]):  # the worker's own module is the argument
        importlib.import_module(name)
    keep_models()
    manager()
