"""``pyparq bloom``: lists the Bloom filters of a file, or looks up values in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import numpy as np

from pyparq.cli.options import ALL, FILE, JSON, ROW_GROUP, one_name
from pyparq.cli.output import Busy, Grid, count, emit, on_terminal, print_json, raise_problems, ranges, title
from pyparq.cli.sources import chosen_row_groups, file_of, opened
from pyparq.errors import FilterError, ParquetError
from pyparq.filters.conditions import probe_value
from pyparq.filters.literal import type_text
from pyparq.format.types import Field
from pyparq.io.url import shown

SHOWN = 100
"""Filters on a terminal before the rest needs ``--all``."""
NOT, MAYBE, NO_FILTER = "certainly not", "maybe", "no filter"
_POPCOUNT = np.array([n.bit_count() for n in range(256)], np.uint8)


@click.command("bloom")
@FILE
@click.argument("column", required=False)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@ROW_GROUP
@ALL
@JSON
def bloom_command(
    file: str, column: str | None, values: tuple[str, ...], row_groups: tuple[int, ...], everything: bool, as_json: bool
) -> None:
    """The Bloom filters of FILE: list them, or look up each VALUE in those of COLUMN.

    The list shows the size of each filter, the share of bits set, an estimate of the distinct values, and the rate of
    false positives. The last two follow from the bits that are set, so every filter is read whole.

    Write a VALUE as in --where, but without quotes: 42, N14228, 2013-01-01, 0x00ff for bytes. Each row group answers
    "certainly not", "maybe" or "no filter". One answer reads 32 bytes. Put -- before values that begin with a minus.
    """
    with opened(file) as parquet:
        groups = chosen_row_groups(parquet, row_groups)
        if column is not None and values:
            _probe(parquet, column, values, groups, as_json)
            return
        leaves = [parquet.tree.find(one_name(column))] if column is not None else [parquet.tree.root]
        places = [(k, leaf) for k in groups for node in leaves for leaf in node.leaves()]
        filters, problems = _list(parquet, places, 1 << 60 if as_json or everything or not on_terminal() else SHOWN)
        layout = _layout(parquet)
        if as_json:
            print_json({"file": shown(file), "layout": layout, "filters": filters})
        else:
            _print(parquet, filters, layout, len(places))
        raise_problems(problems)


# ---- the list


def _list(parquet: Any, places: Sequence[tuple[int, Any]], limit: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Facts of every filter, and what is wrong with those that cannot be read."""
    found: list[dict[str, Any]] = []
    problems: list[str] = []
    with Busy("reading Bloom filters", len(places)) as busy:
        for k, leaf in places:
            busy.step()
            try:
                meta = file_of(parquet).chunk(k, leaf).meta
                offset, length = meta.bloom_filter_offset, meta.bloom_filter_length
                if offset and not file_of(parquet).modules.belongs(offset, length, k, leaf.column):
                    problems.append(
                        f"the bytes of the Bloom filter at offset {offset} are also those of another column chunk's "
                        f"[row group {k}, column {leaf.dotted}]"
                    )
                elif offset and len(found) < limit:
                    found.append(_facts(parquet.bloom_filter(k, leaf.column), k, leaf, meta))
            except ParquetError as error:
                problems.append(str(error))
    return found, problems


def _facts(filter_: Any, k: int, leaf: Any, meta: Any) -> dict[str, Any]:
    ones = int(_POPCOUNT[filter_.bitset].sum(dtype=np.int64))
    full = ones == 8 * filter_.num_bytes
    return {
        "row_group": k,
        "column": leaf.column,
        "path": list(leaf.path),
        "offset": meta.bloom_filter_offset,
        "length": meta.bloom_filter_length or None,
        "bitset_bytes": filter_.num_bytes,
        "fill": ones / (8 * filter_.num_bytes),
        "estimated_distinct": None if full else filter_.estimated_distinct(),
        "false_positive_rate": filter_.false_positive_rate(),
        "values": meta.num_values,
    }


def _print(parquet: Any, filters: list[dict[str, Any]], layout: str | None, asked: int) -> None:
    if not filters:
        emit(f"no Bloom filter in {count(asked, 'column chunk')}")
        return
    grid = Grid(">group|=column|=type|??@offset|??bytes|bitset|>bits set|>distinct, about|?values|>false positives")
    for f in filters:
        leaf = parquet.tree.leaves[f["column"]]
        distinct = f["estimated_distinct"]
        grid.add(
            str(f["row_group"]), leaf.dotted, type_text(leaf), f["offset"], f["length"], f["bitset_bytes"],
            f"{100 * f['fill']:.1f} %", "(full)" if distinct is None else distinct, f["values"],
            f"{100 * f['false_positive_rate']:.3g} %",
        )  # fmt: skip
    title(f"{count(len(filters), 'Bloom filter')}, {sum(f['bitset_bytes'] for f in filters):,} bytes; {layout}")
    grid.show()


def _layout(parquet: Any) -> str | None:
    """Where the filters lie: after all row groups, or each row group's behind it; ``None`` without any."""
    file = file_of(parquet)
    ends: list[int] = []
    places: list[tuple[int, int]] = []
    for k in range(parquet.num_row_groups):
        end = 0
        for leaf in parquet.tree.leaves:
            try:
                chunk = file.chunk(k, leaf)
            except ParquetError:
                continue
            end = max(end, chunk.end)
            if chunk.meta.bloom_filter_offset:
                places.append((k, chunk.meta.bloom_filter_offset))
        ends.append(end)
    if not places:
        return None
    if all(offset >= max(ends) for _, offset in places):
        return "after the row group" if len(ends) == 1 else "all after the last row group (layout: footer)"
    following = [*ends[1:], 1 << 62]
    if all(ends[k] <= offset < following[k] for k, offset in places):
        return "each row group's right after it (layout: row_group)"
    return "in several places"


# ---- asking for values


def _probe(parquet: Any, name: str, texts: Sequence[str], groups: list[int], as_json: bool) -> None:
    node = parquet.tree.find(one_name(name))
    if not node.is_leaf:
        inner = ", ".join(repr(leaf.dotted) for leaf in list(node.leaves())[:5])
        raise FilterError(f"the column has nested fields: name one of {inner}", column=node.dotted)
    field = file_of(parquet).fields.shown(node)
    hashes = [_hashes(node, text, field) for text in texts]
    answers = [_ask(parquet, node, alternatives, groups) for alternatives in hashes]
    if as_json:
        rows = [
            {"value": text, "row_groups": [{"row_group": k, "answer": a} for k, a in zip(groups, row, strict=True)]}
            for text, row in zip(texts, answers, strict=True)
        ]
        print_json({"file": file_of(parquet).name, "column": node.dotted, "probes": rows})
        return
    title(f"column {node.dotted}: {type_text(node)}")
    if len(texts) == 1:
        grid = Grid(">group|rows|answer")
        for k, answer in zip(groups, answers[0], strict=True):
            grid.add(str(k), int(parquet.metadata.row_group(k).num_rows), answer)
    else:
        grid = Grid("=value|in the file|maybe in row groups|certainly not in|-no filter in")
        for text, row in zip(texts, answers, strict=True):
            parts = [[k for k, a in zip(groups, row, strict=True) if a == kind] for kind in (MAYBE, NOT, NO_FILTER)]
            grid.add(text, NOT if all(answer == NOT for answer in row) else MAYBE, *map(ranges, parts))
    grid.show()


def _hashes(node: Any, text: str, shown: Field | None) -> list[int]:
    """Hashes that a value may have been inserted under; none when the column cannot hold it."""
    from pyparq.filters.literal import locate
    from pyparq.filters.shown import meaning, ticks
    from pyparq.format.schema_node import values_of
    from pyparq.index.bloom_filter import can_prune, hash_literal

    leaf = node.type
    if not can_prune(leaf):
        raise FilterError(
            f"Bloom filters of {type_text(node)} columns prove nothing, because writers fill them differently",
            column=node.dotted,
        )
    value = probe_value(text, node, shown)
    if shown is not None and meaning(shown) == "duration":
        value = ticks(value, node, values_of(shown.type).unit)
    place = locate(leaf, value, node.dotted)
    if not place.exact:
        return []
    hashes = hash_literal(place.below, leaf)
    if hashes is None:
        raise FilterError(
            "NaN has many bit patterns, so a Bloom filter cannot tell whether the column contains one",
            column=node.dotted,
        )
    return hashes


def _ask(parquet: Any, node: Any, alternatives: list[int], groups: Sequence[int]) -> list[str]:
    from pyparq.read.plan.bloom_probe import Probe, Probing

    file = file_of(parquet)
    probes: dict[int, Probe] = {}
    for k in groups:
        chunk = file.chunk(k, node)
        if chunk.meta.bloom_filter_offset:
            probes[k] = Probe(chunk, [alternatives])
    if alternatives:
        Probing(list(probes.values()), file.fetcher, file.options.limits).run()
    answers = []
    for k in groups:
        # A value that the type cannot hold is absent, filter or not.
        absent = not alternatives or (k in probes and not probes[k].answer)
        answers.append(NOT if absent else MAYBE if k in probes else NO_FILTER)
    return answers
