"""Tables of Spark's catalog whose files are written here: the catalog learns of new partitions and replaced files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.url import local_path
from pyparq.spark.session import local

_NAME = r"(?:`(?:[^`]|``)+`|[^`.;\s]+)"


class CatalogTable:
    """A table of the session's catalog, looked at before its files are written.

    Raises :class:`OptionError` for a name of no table, for a view, and for a table whose files lie in another folder
    than ``folder``.
    """

    def __init__(self, spark: Any, name: str, folder: str) -> None:
        if not isinstance(name, str) or not re.fullmatch(rf"{_NAME}(?:\.{_NAME})*", name):
            raise OptionError(f"table must be the name of a table, such as 'sales.orders', not {name!r}")
        if not spark.catalog.tableExists(name):
            raise OptionError(f"there is no table {name} in the catalog")
        self._spark, self._name = spark, name
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        facts = {str(row[0]): str(row[1]) for row in described}
        place = facts.get("Location")
        if place is None or _folder(place) != _folder(folder):
            raise OptionError(f"the files of the table {name} lie in {place or 'no folder'}, not in {folder}")
        self._is_partitioned = "# Partition Information" in facts and facts.get("Partition Provider") != "None"

    def learn(self) -> None:
        """Make the catalog see what is there now: partitions that came or went, and files that were replaced."""
        if self._is_partitioned:
            self._spark.sql(f"MSCK REPAIR TABLE {self._name} SYNC PARTITIONS")
        self._spark.sql(f"REFRESH TABLE {self._name}")


def learner(spark: Any, table: str | None, folder: str) -> Callable[[], None]:
    """For a job that writes to ``folder``: looks at its table now, and gives what to call after the commit."""
    found = None if table is None else CatalogTable(spark, table, folder)

    def learn() -> None:
        try:
            if found is not None:
                found.learn()
        except Exception as error:
            error.add_note(
                f"The files in {folder} are committed: do not write them again. Run MSCK REPAIR TABLE {table} SYNC "
                f"PARTITIONS, if it has partitions, and REFRESH TABLE {table}."
            )
            raise

    return learn


def _folder(place: str) -> str:
    place = local(place)
    return (local_path(place) or place).rstrip("/")
