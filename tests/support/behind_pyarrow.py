"""A pytest plugin that puts :mod:`pyparq.parquet` behind the name ``pyarrow.parquet``.

``pytest -p behind_pyarrow .../pyarrow/tests/parquet`` runs pyarrow's own tests on pyparq.
"""

from __future__ import annotations

import sys

import pyarrow
import pyarrow.parquet

import pyparq.parquet
import pyparq.parquet.encryption

THEIRS = pyarrow.parquet
pyarrow.parquet = pyparq.parquet  # type: ignore[misc]
sys.modules["pyarrow.parquet"] = pyparq.parquet
sys.modules["pyarrow.parquet.encryption"] = pyparq.parquet.encryption
