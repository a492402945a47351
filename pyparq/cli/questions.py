"""The scan that the options of a command ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pyparq.cli.common import chosen_row_groups, is_dataset


def chosen_groups(parquet: Any, wanted: Sequence[int]) -> list[int] | None:
    """The row groups asked for; ``None`` for a dataset, where they count within each file."""
    if not is_dataset(parquet):
        return chosen_row_groups(parquet, wanted)
    if wanted:
        raise click.UsageError("--row-group is for a single file", ctx=click.get_current_context())
    return None


def make_scan(
    parquet: Any, where: str | None, columns: Sequence[str], groups: Sequence[int] | None, limit: int | None = None
) -> Any:
    """A scan for what the command line asked; without a condition one of the first ``limit`` rows only."""
    predicate = None
    if where is not None:
        from pyparq.filters.sql_text import parse_where

        predicate = parse_where(where, parquet.tree if is_dataset(parquet) else parquet.schema)
    first = limit or None if where is None else None
    if is_dataset(parquet):
        return parquet.scan(columns or None, predicate, limit=first)
    return parquet.scan(columns or None, predicate, groups, limit=first)
