"""``advise``: what other options of writing would change, measured on a sample of a file."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from pyparq.arrow.table import Table
from pyparq.filters.expression import col
from pyparq.format.compression import codec_name, encoding_name
from pyparq.format.types import Physical
from pyparq.read.file import ParquetFile, file_of
from pyparq.write.file import write_table

SAMPLE_ROWS = 200_000
SLICES = 10
"""The sample is so many runs of rows, spread over the file: rows that lie together stay together."""
MOST_COLUMNS = 4
"""Columns that are tried for sorting, Bloom filters and example queries."""
LEAST_SAVED, LEAST_SKIPPED = 0.05, 0.3
"""A change pays from these shares of bytes, or of rows to read, on."""
SMALL_GROUP = 20_000
"""Rows of the row groups that are tried."""
_KINDS = ("int", "uint", "string", "date", "timestamp")
_CODECS = ("zstd", "snappy")
_CHOSEN = {"column_encoding": None}
"""Encodings are chosen by measuring, as :func:`pyparq.rewrite` does unless it is told otherwise."""


@dataclass(slots=True)
class Trial:
    """The sample written with some options."""

    change: str
    options: dict[str, Any]
    bytes: int = 0
    rows_left: float = 0.0
    """Rows that indexes leave to an example query, on average."""
    pays: bool = False


@dataclass(slots=True)
class Advice:
    """What was measured, and what of it pays."""

    rows: int
    queried: list[str] = field(default_factory=list)
    """Columns of the example queries: each asks for a value that is there and for one that is not."""
    trials: list[Trial] = field(default_factory=list)
    """The first is the file as it is. The last is what :func:`pyparq.rewrite` writes with ``options``."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of :func:`pyparq.rewrite` that pay; empty where nothing does."""


def advise(file: ParquetFile, *, rows: int = SAMPLE_ROWS, progress: Callable[[int], Any] | None = None) -> Advice:
    """Write a sample of ``file`` with other options, and compare bytes, and the rows that indexes leave to example
    queries.

    ``rows``: rows of the sample, at most. ``progress``: called with the number of trials done. Columns inside lists,
    maps and structs are written like the others, but not tried for sorting or queries.
    """
    table = _sample(file, rows)
    advice = Advice(table.num_rows)
    if not table.num_rows or not table.schema.fields:
        return advice
    advice.queried = _tried(table)
    queries = [query for name in advice.queried for query in _queries(table, name)]
    base = _as_it_is(file)
    for trial in _trials(base, advice.queried):
        _run(trial, table, queries)
        advice.trials.append(trial)
        if progress is not None:
            progress(len(advice.trials))
    _choose(advice, table, queries)
    return advice


def _sample(file: ParquetFile, rows: int) -> Table:
    total = file.metadata.num_rows
    if total <= rows:
        return file.read()
    run = max(rows // SLICES, 1)
    starts = np.linspace(0, total - run, SLICES).astype(np.int64)
    return file.scan(rows=np.unique((starts[:, None] + np.arange(run)).reshape(-1))).to_table()


def _as_it_is(file: ParquetFile) -> dict[str, Any]:
    """Codec and rows of a row group of the file, and encodings and Bloom filters of its flat columns."""
    opened = file_of(file)
    metas = [(leaf, opened.chunk(0, leaf).meta) for leaf in file.tree.leaves]
    codec = codec_name(metas[0][1].codec).lower().replace("uncompressed", "none")
    codec = "snappy" if codec == "lzo" else codec  # which is only read
    # Columns inside lists and maps may have other names when they are written.
    flat = [(leaf, meta) for leaf, meta in metas if len(leaf.path) == 1]
    hashed = [leaf for leaf, meta in flat if meta.bloom_filter_offset is not None]
    blooms = [tuple(leaf.path) for leaf in hashed if leaf.type.physical != Physical.BOOLEAN]
    encodings = {tuple(leaf.path): _encoding(meta.encodings, leaf.type.physical) for leaf, meta in flat}
    base = {"compression": codec, "row_group_size": opened.num_rows_of(0), "column_encoding": encodings}
    return base | ({"bloom_filters": blooms} if blooms else {})


def _encoding(numbers: Sequence[int], physical: Physical) -> str:
    """The encoding of the values, among those of a column chunk: levels have theirs there too. PLAIN, which every type
    has, where they tell none."""
    names = [encoding_name(number) for number in numbers]
    if physical == Physical.BOOLEAN:
        return "PLAIN" if "PLAIN" in names else "RLE"
    if any("DICTIONARY" in name for name in names):
        return "RLE_DICTIONARY"
    return next((name for name in names if name not in ("PLAIN", "RLE", "BIT_PACKED")), "PLAIN")


def _tried(table: Table) -> list[str]:
    """Columns that queries may ask for: flat, with more than one value."""
    names = [f.name for f in table.schema.fields if f.type.kind in _KINDS and f.type.dictionary is None]
    unique = [name for name in names if table.schema.names.count(name) == 1]
    return [name for name in unique if len(_values(table, name)) > 1][:MOST_COLUMNS]


def _values(table: Table, name: str) -> list[Any]:
    """Distinct values of some of the rows, in order."""
    column = table.select([name]).slice(0, 50_000).to_pydict()[name]
    found = {value for value in column if value is not None}
    kind = type(next(iter(found), None))  # an instant that no datetime can hold comes as a number
    return sorted(value for value in found if type(value) is kind)


def _queries(table: Table, name: str) -> list[tuple[str, Any]]:
    """A value from the middle, and one between values that is not there, where the type has one."""
    values = _values(table, name)
    middle = values[len(values) // 2]
    found = [(name, middle)]
    if isinstance(middle, str):
        found.append((name, middle + "~"))
    elif isinstance(middle, int):
        gap = next((a + 1 for a, b in pairwise(values) if b - a > 1), None)
        found += [] if gap is None else [(name, gap)]
    return found


def _trials(base: dict[str, Any], names: Sequence[str]) -> list[Trial]:
    found = [Trial(f"as it is ({base['compression']})", base)]
    found.append(Trial("encodings chosen anew", base | _CHOSEN))
    found += [Trial(codec, {**base, "compression": codec}) for codec in _CODECS if codec != base["compression"]]
    found += [Trial(f"sorted by {name}", {**base, "sort_by": [name]}) for name in names]
    has = base.get("bloom_filters", [])
    found += [
        Trial(f"Bloom filter on {name}", {**base, "bloom_filters": [*has, name]})
        for name in names
        if (name,) not in has
    ]
    found.append(Trial("smaller pages", {**base, "max_rows_per_page": 2_000}))
    if base["row_group_size"] > 2 * SMALL_GROUP:
        found.append(Trial("smaller row groups", {**base, "row_group_size": SMALL_GROUP}))
    return found


def _run(trial: Trial, table: Table, queries: Sequence[tuple[str, Any]]) -> None:
    made = io.BytesIO()
    write_table(table, made, **trial.options)
    data = made.getvalue()
    trial.bytes = len(data)
    with ParquetFile(data) as file:
        scans = [file.scan([name], col(name) == value) for name, value in queries]
        left = [scan.explain(execute=False).candidate_rows for scan in scans]
    trial.rows_left = sum(left) / len(left) if left else 0.0


def _choose(advice: Advice, table: Table, queries: Sequence[tuple[str, Any]]) -> None:
    """Mark what pays. Then join the best of each kind, one after another, as long as each makes the file better."""
    base = advice.trials[0]
    best: dict[str, Trial] = {}
    for trial in advice.trials[1:]:
        trial.pays = _pays(trial, base)
        (key,) = [name for name, value in trial.options.items() if base.options.get(name) != value]
        if trial.pays and (key not in best or _worth(trial, base) > _worth(best[key], base)):
            best[key] = trial
    chosen = dict(_CHOSEN)  # the command chooses encodings in any case
    rewritten = advice.trials[1]
    for key in sorted(best.keys() - chosen.keys(), key=lambda name: -_worth(best[name], base)):
        trial = Trial("rewritten so", {**rewritten.options, key: best[key].options[key]})
        _run(trial, table, queries)
        if _pays(trial, rewritten):
            rewritten, chosen[key] = trial, best[key].options[key]
    rewritten.pays = _pays(rewritten, base)
    if rewritten.pays:
        advice.options = chosen
        if rewritten is not advice.trials[1]:
            advice.trials.append(rewritten)


def _shares(trial: Trial, base: Trial) -> tuple[float, float]:
    """The shares of bytes, and of rows to read, that a trial saves."""
    skipped = 1 - trial.rows_left / base.rows_left if base.rows_left else 0.0
    return 1 - trial.bytes / base.bytes, skipped


def _pays(trial: Trial, base: Trial) -> bool:
    saved, skipped = _shares(trial, base)
    return (saved >= LEAST_SAVED and skipped > -LEAST_SKIPPED) or (skipped >= LEAST_SKIPPED and saved > -LEAST_SAVED)


def _worth(trial: Trial, base: Trial) -> float:
    return sum(_shares(trial, base))
