"""Opens tables of ``deltalake`` and ``pyiceberg`` as sources. Neither package is imported: class names tell
them."""

from __future__ import annotations

from typing import Any

from pyparq.datasets.tables.delta import open_delta
from pyparq.datasets.tables.iceberg import open_iceberg
from pyparq.datasets.tables.opened_table import OpenedTable
from pyparq.datasets.tables.store_options import store_options_of
from pyparq.io.table_formats import DELTA, format_of


def open_table(source: Any) -> OpenedTable | None:
    """The table that ``source`` is, at the version that it has loaded. ``None`` for any other source."""
    format_ = format_of(source)
    if format_ is None:
        return None
    table = open_delta(source) if format_ == DELTA else open_iceberg(source)
    return table._replace(storage_options=store_options_of(source))
