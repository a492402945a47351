"""Why a column chunk is encoded as it is: from its pages, and from what pyparq records where it chose by measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyparq.cli.common import file_of
from pyparq.cli.text import count
from pyparq.errors import ParquetError
from pyparq.format.compression import encoding_name
from pyparq.read.page_headers import PageFacts
from pyparq.write.encoding_choice import KEY, MIN_VALUES, parse_record


def measured(parquet: Any, chunk: Any) -> tuple[int, dict[str, float]] | None:
    """(row group that decided, stored bytes per value of its first page by encoding, the chosen one first)."""
    for row_group in (chunk.row_group, *range(chunk.row_group)):
        try:
            meta = file_of(parquet).chunk(row_group, chunk.node).meta
        except ParquetError:  # damaged or encrypted: it tells nothing
            continue
        for pair in meta.key_value_metadata or ():
            sizes = parse_record(pair.value) if pair.key == KEY else None
            if sizes:
                return row_group, {encoding_name(e): size for e, size in sizes.items()}
    return None


def reason(parquet: Any, chunk: Any, pages: Sequence[PageFacts]) -> str | None:
    """One sentence; ``None`` where another writer chose, who did not say why."""
    data = [p for p in pages if p.ordinal is not None]
    entries = [p for p in pages if p.type == "dictionary"]
    if not data or not str(file_of(parquet).created_by or "").startswith("pyparq"):
        return None
    rest = [p for p in data if "DICTIONARY" not in (p.encoding or "")]
    said = []
    if entries:
        values = count(sum(p.values or 0 for p in data if p not in rest), "value")
        held = f"{values} as {count(entries[0].values or 0, 'dictionary entry')}"
        said.append(f"{held}, in fewer bytes than PLAIN" if not rest else f"{held}, then the dictionary was full")
    if rest or not entries:
        said.append(_direct(parquet, chunk, rest[0].encoding or ""))
    return "; ".join(said)


def _direct(parquet: Any, chunk: Any, encoding: str) -> str:
    found = measured(parquet, chunk)
    if found is None or next(iter(found[1])) != encoding:
        return f"{encoding}: chosen by the user, or the only choice (fewer than {MIN_VALUES} values, or a type for "\
            "which some readers support no other encoding)"  # fmt: skip
    row_group, sizes = found
    where = "its first page" if row_group == chunk.row_group else f"the first page of row group {row_group}"
    others = ", ".join(f"{name} {size:.3g}" for name, size in sizes.items() if name != encoding)
    return f"{encoding}: {where} stores a value in {sizes[encoding]:.3g} bytes; others: {others}"
