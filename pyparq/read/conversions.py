"""What scans and datasets become: tables of other libraries, and batches."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from pyparq.arrow.table import Batch, Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Convertible:
    """Something with ``to_table`` and ``batches``."""

    def to_table(self) -> Table:
        """All (matching) rows as a table."""
        raise NotImplementedError

    def batches(self) -> Generator[Batch]:
        """All (matching) rows in batches."""
        raise NotImplementedError

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All (matching) rows as a pandas DataFrame: see :meth:`pyparq.Table.to_pandas`."""
        return self.to_table().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All (matching) rows as a polars DataFrame: see :meth:`pyparq.Table.to_polars`."""
        return self.to_table().to_polars()

    def to_arrow(self) -> pyarrow.Table:
        """All (matching) rows as a ``pyarrow.Table``: see :meth:`pyparq.Table.to_arrow`."""
        return self.to_table().to_arrow()

    def __iter__(self) -> Iterator[Batch]:
        """All (matching) rows in batches, as :meth:`batches` gives them."""
        return self.batches()
