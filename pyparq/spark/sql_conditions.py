"""Conditions in the SQL of Spark, for a Python that may have no sqlglot."""

from __future__ import annotations

from collections.abc import Sequence

from pyparq.errors import UnsupportedError
from pyparq.spark.conditions import Condition


def parsed(text: str, names: Sequence[str] = ()) -> Condition:
    """The condition that SQL text is: see :mod:`pyparq.spark.sql_text`, which needs sqlglot."""
    try:
        from pyparq.spark import sql_text
    except ModuleNotFoundError as error:
        raise UnsupportedError('conditions in SQL need sqlglot: pip install "pyparq[cli]"') from error
    return sql_text.parsed(text, names)
