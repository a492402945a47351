"""``pyparq index``: every page as the ColumnIndex and OffsetIndex describe it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from pyparq.cli import chunks
from pyparq.cli.common import (
    ALL,
    COLUMNS,
    FILE,
    JSON,
    ROW_GROUP,
    chosen_leaves,
    chosen_row_groups,
    file_of,
    number,
    opened,
)
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, on_terminal, show, title
from pyparq.cli.text import count
from pyparq.cli.values import bound_json, bound_text
from pyparq.errors import ParquetError
from pyparq.index.bounds import gregorian

SHOWN = 20
"""Column chunks on a terminal before the rest needs ``--all`` or a choice."""
_ORDERS = ("unordered", "ascending", "descending")


@click.command("index")
@FILE
@COLUMNS
@ROW_GROUP
@ALL
@JSON
def index_command(file: str, columns: list[str], row_groups: tuple[int, ...], everything: bool, as_json: bool) -> None:
    """The page indexes of FILE: offset, rows, nulls, minimum and maximum of every data page.

    A damaged index is reported and skipped. Bounds are shown only if they can be trusted.
    """
    with opened(file) as parquet:
        leaves, groups = chosen_leaves(parquet, columns), chosen_row_groups(parquet, row_groups)
        places = [(k, leaf) for k in groups for leaf in leaves]
        if as_json:
            chunks.print_document(places, "reading page indexes", partial(_index_document, parquet))
            return
        limited = on_terminal() and not everything and not columns
        _print(parquet, places, SHOWN if limited else len(places))


class _Index:
    """The indexes of one chunk: bounds, locations, or neither."""

    def __init__(self, parquet: Any, k: int, leaf: Any) -> None:
        from pyparq.read.plan.page_indexes import read_locations, read_page_indexes

        file, key = file_of(parquet), (k, leaf.column)
        self.leaf = leaf
        self.order = file.column_order(leaf)
        self.chunk = file.chunk(k, leaf)
        raw = self.chunk.raw
        self.has_any = bool(raw.offset_index_offset or raw.column_index_offset)
        found = read_page_indexes(file, [self.chunk]).get(key) if raw.column_index_offset else None
        self.bounds: Any = None
        self.locations: Any = None
        if found is not None:
            self.bounds, self.locations = gregorian(found[0]), found[1]
        elif raw.offset_index_offset:
            self.locations = read_locations(file, [self.chunk]).get(key)

    @property
    def place(self) -> str:
        raw, parts = self.chunk.raw, []
        for name, offset, length in (
            ("ColumnIndex", raw.column_index_offset, raw.column_index_length),
            ("OffsetIndex", raw.offset_index_offset, raw.offset_index_length),
        ):
            parts.append(f"{name} {length or 0:,} bytes at {offset}" if offset else f"no {name}")
        return ", ".join(parts)


def _print(parquet: Any, places: Sequence[tuple[int, Any]], limit: int) -> None:
    problems: list[str] = []
    printed = without = 0
    with Busy("reading page indexes", len(places)) as busy:
        for k, leaf in places:
            busy.step()
            try:
                index = _Index(parquet, k, leaf)
            except ParquetError as error:
                problems.append(str(error))
                continue
            if not index.has_any:
                without += 1
            elif printed < limit:
                if printed:
                    emit()
                printed += 1
                _print_index(index)
            else:
                break
    if without:
        emit(("\n" if printed else "") + f"no page index: {count(without, 'column chunk')} of {len(places):,}")
    left = len(places) - printed - without - len(problems)
    if left > 0:
        emit(f"\n… {count(left, 'more column chunk')}: choose with --columns, or use --all")
    chunks.raise_problems(problems)


def _print_index(index: _Index) -> None:
    bounds, locations, chunk = index.bounds, index.locations, index.chunk
    order = "" if bounds is None else f", {_ORDERS[bounds.boundary_order]}"
    title(
        f"row group {chunk.row_group}, column {chunk.name}: {chunks.type_name(index.leaf)}, "
        f"{'unreadable' if locations is None else count(len(locations), 'page')}{order} ({index.place})"
    )
    if locations is None or not len(locations):
        return
    grid = Grid(headings(">page|>first row|>rows|??>offset|?>bytes|>nulls|?>NaNs|~min|~max"))
    for page in _pages(index):
        grid.add(
            str(page["page"]), f"{page['first_row']:,}", f"{page['rows']:,}", str(page["offset"]),
            f"{page['size']:,}", number(page["null_count"]), number(page["nan_count"]), *_bound_cells(index, page),
        )  # fmt: skip
    show(grid.without_empty("nulls", "NaNs", "min", "max"))


def _bound_cells(index: _Index, page: dict[str, Any]) -> tuple[str, str]:
    n, bounds = page["page"], index.bounds
    if bounds is None or not bounds.has_bounds[n]:
        text = "(all null)" if page["all_null"] else "-"
        return text, text
    minimum, maximum = (
        bound_text(bounds.leaf, side[n], index.order, chunks.BOUND) for side in (bounds.mins, bounds.maxs)
    )
    return minimum, maximum


def _pages(index: _Index) -> list[dict[str, Any]]:
    """One dict per page; ``None`` for what the indexes do not say."""
    bounds, locations, leaf = index.bounds, index.locations, index.leaf.type
    rows = locations.row_counts(index.chunk.num_rows)
    floats = leaf.kind in ("float16", "float", "double")
    found = []
    for n in range(len(locations)):
        has = bounds is not None and bool(bounds.has_bounds[n])
        found.append(
            {
                "page": n,
                "first_row": int(locations.first_rows[n]),
                "rows": int(rows[n]),
                "offset": int(locations.offsets[n]),
                "size": int(locations.sizes[n]),
                "null_count": _known(bounds, "null_counts", n),
                "nan_count": _known(bounds, "nan_counts", n) if floats else None,
                "all_null": None if bounds is None else bool(bounds.all_null[n]),
                "min": bound_json(bounds.leaf, bounds.mins[n], index.order) if has else None,
                "max": bound_json(bounds.leaf, bounds.maxs[n], index.order) if has else None,
            }
        )
    return found


def _known(bounds: Any, name: str, n: int) -> int | None:
    value = -1 if bounds is None else int(getattr(bounds, name)[n])
    return None if value < 0 else value


def _index_document(parquet: Any, k: int, leaf: Any) -> dict[str, Any]:
    index = _Index(parquet, k, leaf)
    raw = index.chunk.raw
    return {
        "column_index": chunks.place(raw.column_index_offset, raw.column_index_length),
        "offset_index": chunks.place(raw.offset_index_offset, raw.offset_index_length),
        "boundary_order": None if index.bounds is None else _ORDERS[index.bounds.boundary_order],
        "pages": [] if index.locations is None else _pages(index),
    }
