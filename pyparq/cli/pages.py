"""``pyparq pages`` and ``pyparq index``: every page, as its header and as the page indexes describe it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click

from pyparq.cli.meta import bound_cell, known, named_chunk, place
from pyparq.cli.options import ALL, COLUMNS, FILE, JSON, ROW_GROUP
from pyparq.cli.output import (
    Busy,
    Grid,
    count,
    emit,
    on_terminal,
    one_line,
    print_json,
    raise_problems,
    ratio,
    say,
    title,
)
from pyparq.cli.sources import chosen_leaves, chosen_row_groups, file_of, opened
from pyparq.cli.values import bound_json
from pyparq.errors import ParquetError
from pyparq.filters.literal import type_text
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.order import FLOAT_KINDS
from pyparq.index.statistics import gregorian
from pyparq.read.page_headers import PageFacts, walk_headers
from pyparq.read.plan.page_indexes import read_locations, read_page_indexes
from pyparq.write.encoding_choice import KEY, MIN_VALUES, parse_record

SHOWN = 20
"""Column chunks on a terminal before the rest needs ``--all`` or a choice."""
_ORDERS = ("unordered", "ascending", "descending")


@click.command("pages")
@FILE
@COLUMNS
@ROW_GROUP
@ALL
@JSON
def pages_command(file: str, columns: list[str], row_groups: tuple[int, ...], everything: bool, as_json: bool) -> None:
    """Every page of FILE: type, encoding, values, rows, offset, sizes, and whether it has a CRC.

    Only page headers are read. For column chunks that pyparq wrote, a line above the pages says why the encoding was
    chosen. The sizes are those of the page without its header, as stored and uncompressed.
    """
    with opened(file) as parquet:
        leaves, groups = chosen_leaves(parquet, columns), chosen_row_groups(parquet, row_groups)
        file_of(parquet).place_chunks()
        places = [(k, leaf) for k in groups for leaf in leaves]
        limit = SHOWN if on_terminal() and not everything and not columns else None
        _report(parquet, places, "reading page headers", _Pages, as_json, limit)


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
        limit = SHOWN if on_terminal() and not everything and not columns else None
        _report(parquet, places, "reading page indexes", _Index, as_json, limit)


def _report(
    parquet: Any, places: Sequence[tuple[int, Any]], doing: str, describe: Callable[[Any, int, Any], _Pages | _Index],
    as_json: bool, limit: int | None,
) -> None:  # fmt: skip
    """What ``describe`` finds of each chunk (row group, leaf): JSON with an entry for each, or tables for at most
    ``limit`` of them. Of a chunk that cannot be described, the error."""
    document, problems, shown, without = [], [], 0, 0
    with Busy(doing, len(places)) as busy:
        for k, leaf in places:
            if limit is not None and shown == limit and not as_json:
                break
            entry: dict[str, Any] = {"row_group": k, **named_chunk(leaf)}
            try:
                found = describe(parquet, k, leaf)
                if as_json:
                    entry |= found.document()
                elif found.is_there:
                    emit() if shown else None
                    found.show()
                    shown += 1
                else:
                    without += 1
            except ParquetError as error:
                entry["error"] = one_line(str(error))
                problems.append(entry["error"])
            document.append(entry)
            busy.step()
    if as_json:
        print_json(document)
    elif without:
        emit(("\n" if shown else "") + f"no page index: {count(without, 'column chunk')} of {len(places):,}")
    if len(document) < len(places):
        left = count(len(places) - len(document), "more column chunk")
        emit(f"\n… {left}: choose with --columns, or use --all")
    raise_problems(problems)


# ---- as the headers say


class _Pages:
    """The pages of a column chunk."""

    is_there = True

    def __init__(self, parquet: Any, k: int, leaf: Any) -> None:
        self._file, self._chunk = file_of(parquet), file_of(parquet).chunk(k, leaf)
        self._pages = list(walk_headers(self._file, self._chunk))

    def document(self) -> dict[str, Any]:
        return {
            "offset": self._chunk.start,
            "size": self._chunk.size,
            "pages": [asdict(page) for page in self._pages],
            "encoding_reason": _reason(self._file, self._chunk, self._pages),
        }

    def show(self) -> None:
        chunk, pages = self._chunk, self._pages
        data = sum(page.ordinal is not None for page in pages)
        dictionaries = sum(page.type == "dictionary" for page in pages)
        other = len(pages) - data - dictionaries
        extra = f" and {count(dictionaries, 'dictionary')}" if dictionaries else ""
        extra += f" and {count(other, 'other page')}" if other > 0 else ""
        codec = codec_name(chunk.meta.codec)
        title(
            f"row group {chunk.row_group}, column {chunk.name}: {type_text(chunk.node)}, {codec}, "
            f"{count(data, 'data page')}{extra} in {chunk.size:,} bytes at {chunk.start}"
        )
        why = _reason(self._file, chunk, pages)
        if why:
            say(f"encoding: {why}")
        grid = Grid(
            "@page:ordinal|type|=encoding|values|-nulls|??-rows|?@offset|??header:header_size|compressed:compressed_size|"
            "?uncompressed:uncompressed_size|??>ratio|CRC:has_crc",
            [
                asdict(p) | {"ratio": ratio(p.compressed_size, p.uncompressed_size), "has_crc": p.crc is not None}
                for p in pages
            ],
        )
        if pages:
            grid.show()


def _reason(file: Any, chunk: Any, pages: Sequence[PageFacts]) -> str | None:
    """Why a chunk is encoded as it is, in one sentence: from its pages, and from what pyparq records where it chose by
    measuring. ``None`` where another writer chose, who did not say why."""
    data = [p for p in pages if p.ordinal is not None]
    entries = [p for p in pages if p.type == "dictionary"]
    if not data or not str(file.created_by or "").startswith("pyparq"):
        return None
    rest = [p for p in data if "DICTIONARY" not in (p.encoding or "")]
    said = []
    if entries:
        values = count(sum(p.values or 0 for p in data if p not in rest), "value")
        held = f"{values} as {count(entries[0].values or 0, 'dictionary entry')}"
        said.append(f"{held}, in fewer bytes than PLAIN" if not rest else f"{held}, then the dictionary was full")
    if rest or not entries:
        said.append(_reason_of_encoding(file, chunk, rest[0].encoding or ""))
    return "; ".join(said)


def _reason_of_encoding(file: Any, chunk: Any, encoding: str) -> str:
    row_group, sizes = _measured(file, chunk)
    if next(iter(sizes), None) != encoding:
        return f"{encoding}: chosen by the user, or the only choice (fewer than {MIN_VALUES} values, or a type for "\
            "which some readers support no other encoding)"  # fmt: skip
    where = "its first page" if row_group == chunk.row_group else f"the first page of row group {row_group}"
    others = ", ".join(f"{name} {size:.3g}" for name, size in sizes.items() if name != encoding)
    return f"{encoding}: {where} stores a value in {sizes[encoding]:.3g} bytes; others: {others}"


def _measured(file: Any, chunk: Any) -> tuple[int, dict[str, float]]:
    """(row group that decided, stored bytes per value of its first page by encoding, the chosen one first)."""
    for row_group in (chunk.row_group, *range(chunk.row_group)):
        try:
            meta = file.chunk(row_group, chunk.node).meta
        except ParquetError:  # damaged or encrypted: it tells nothing
            continue
        for pair in meta.key_value_metadata or ():
            sizes = parse_record(pair.value) if pair.key == KEY else None
            if sizes:
                return row_group, {encoding_name(e): size for e, size in sizes.items()}
    return 0, {}


# ---- as the indexes say


class _Index:
    """The indexes of one chunk: bounds, locations, or neither."""

    def __init__(self, parquet: Any, k: int, leaf: Any) -> None:
        file, key = file_of(parquet), (k, leaf.column)
        self._leaf, self._order, self._chunk = leaf, file.column_order(leaf), file.chunk(k, leaf)
        raw = self._chunk.raw
        self.is_there = bool(raw.offset_index_offset or raw.column_index_offset)
        self._bounds: Any = None
        self._locations: Any = None
        found = read_page_indexes(file, [self._chunk]).get(key) if raw.column_index_offset else None
        if found is not None:
            self._bounds, self._locations = gregorian(found[0]), found[1]
        elif raw.offset_index_offset:
            self._locations = read_locations(file, [self._chunk]).get(key)

    def document(self) -> dict[str, Any]:
        raw = self._chunk.raw
        return {
            "column_index": place(raw.column_index_offset, raw.column_index_length),
            "offset_index": place(raw.offset_index_offset, raw.offset_index_length),
            "boundary_order": None if self._bounds is None else _ORDERS[self._bounds.boundary_order],
            "pages": self._pages(bound_json),
        }

    def _pages(self, bound: Callable[[Any, Any, Any], Any]) -> list[dict[str, Any]]:
        """One dict per page; ``None`` for what the indexes do not say."""
        bounds, locations = self._bounds, self._locations
        if locations is None:
            return []
        rows = locations.row_counts(self._chunk.num_rows)
        is_float = self._leaf.type.kind in FLOAT_KINDS
        return [
            {
                "page": n,
                "first_row": int(locations.first_rows[n]),
                "rows": int(rows[n]),
                "offset": int(locations.offsets[n]),
                "size": int(locations.sizes[n]),
                "null_count": None if bounds is None else known(bounds.null_counts[n]),
                "nan_count": None if bounds is None or not is_float else known(bounds.nan_counts[n]),
                "all_null": None if bounds is None else bool(bounds.all_null[n]),
                "min": self._bound("mins", n, bound),
                "max": self._bound("maxs", n, bound),
            }
            for n in range(len(locations))
        ]

    def _bound(self, side: str, n: int, bound: Callable[[Any, Any, Any], Any]) -> Any:
        bounds = self._bounds
        if bounds is None or not bounds.has_bounds[n]:
            return None
        return bound(bounds.leaf, getattr(bounds, side)[n], self._order)

    def show(self) -> None:
        bounds, chunk, pages = self._bounds, self._chunk, self._pages(bound_cell)
        order = "" if bounds is None else f", {_ORDERS[bounds.boundary_order]}"
        number = "unreadable" if self._locations is None else count(len(pages), "page")
        title(
            f"row group {chunk.row_group}, column {chunk.name}: {type_text(self._leaf)}, {number}{order} "
            f"({', '.join(self._places())})"
        )
        for page in pages:
            if page["all_null"]:
                page["min"] = page["max"] = "(all null)"
        if pages:
            Grid("page|first row:first_row|rows|??@offset|?bytes:size|-nulls:null_count|?-NaNs:nan_count|-=min|-=max",
                 pages).show()  # fmt: skip

    def _places(self) -> list[str]:
        raw = self._chunk.raw
        return [
            f"{name} {length or 0:,} bytes at {offset}" if offset else f"no {name}"
            for name, offset, length in (
                ("ColumnIndex", raw.column_index_offset, raw.column_index_length),
                ("OffsetIndex", raw.offset_index_offset, raw.offset_index_length),
            )
        ]
