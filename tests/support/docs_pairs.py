"""The tables of ``docs/coming-from.md``: a call of another library, and ours. Both run, and their results are alike."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from docs_blocks import ROOT

PAGE = ROOT / "docs" / "coming-from.md"


@dataclass(frozen=True)
class Pair:
    library: str
    what: str
    theirs: str
    ours: str


def sections() -> dict[str, str]:
    """The text of the page below each of its headings; what stands before the first one is below ``""``."""
    first, *others = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return {"": first, **{title: text for title, _, text in (part.partition("\n") for part in others)}}


def pairs() -> list[Pair]:
    return [
        Pair(library, what, theirs, ours)
        for library, text in sections().items()
        for what, theirs, ours in re.findall(r"^\| ([^|`]+) \| `([^|`]+)` \| `([^|`]+)` \|$", text, re.MULTILINE)
    ]


def names(library: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the blocks above the tables define. The first ones make the files, in the current folder."""
    found = dict(given)
    if not Path("trips.parquet").exists():
        exec(_code(""), {})
    exec("import pyparq\nfrom pyparq import col\n" + _code(library), found)
    return found


def _code(section: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", sections()[section], re.DOTALL | re.MULTILINE))


def result(code: str, given: dict[str, Any]) -> Any:
    """What the code returns, or the file or folder that it writes, as plain values."""
    for left in ("out.parquet", "out"):
        shutil.rmtree(left, ignore_errors=True)
        Path(left).unlink(missing_ok=True)
    try:
        value = eval(compile(code, "docs", "eval"), given)
    except SyntaxError:
        value = exec(code, given)
    if Path("out.parquet").exists():
        return pq.read_table("out.parquet").to_pylist()
    if Path("out").exists():
        return _in_order(pl.scan_parquet("out/**/*.parquet", hive_partitioning=True).collect().to_arrow())
    return _plain(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "toArrow"):
        return _in_order(value.toArrow())
    if hasattr(value, "__arrow_c_stream__"):
        return pa.table(value).to_pylist()
    if isinstance(value, list) and value and hasattr(value[0], "__arrow_c_array__"):
        return pa.Table.from_batches(pa.record_batch(item) for item in value).to_pylist()
    if isinstance(value, list) and value and hasattr(value[0], "iloc"):
        return [row for frame in value for row in pa.table(frame).to_pylist()]
    return value


def _in_order(table: pa.Table) -> list[Any]:
    """Folders and Spark's tasks have no order; columns of folders come last."""
    columns = sorted(table.column_names)
    return list(table.select(columns).sort_by([(name, "ascending") for name in columns]).to_pylist())
