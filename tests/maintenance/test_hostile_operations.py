"""Every operation over files that claim more than there is: right data or one typed error, in bounded memory and
time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hostile_claims import CLAIMS
from hostile_ops import OPERATIONS

WORKER = Path(__file__).parents[1] / "support" / "hostile_ops.py"
MEMORY = 1 << 30
"""Bytes that an operation may take. (limits.max_memory is by default what the machine has, which is more.)"""
SECONDS = 60
"""A deadline, not a measurement: what it is meant to stop would take hours."""

QUICK = ["read_table", "batches", "verify", "add_indexes", "merge", "edit_metadata", "rewrite"]

REFUSED = {
    "row groups on one chunk": {"read_table", "batches", "rewrite", "add_indexes", "merge", "edit_metadata"},
    "columns on one chunk": {"read_table", "batches", "rewrite", "add_indexes", "merge", "edit_metadata"},
    "staggered chunks": {"read_table", "batches", "rewrite", "add_indexes"},
    "staggered chunks, shuffled": {"read_table", "batches", "rewrite", "add_indexes"},
    "staggered chunks of one page": {"read_table", "batches", "rewrite", "add_indexes"},
    "staggered chunks of one page, shuffled": {"read_table", "batches", "rewrite", "add_indexes"},
    "2**31 nulls in 2 pages": {"read_table", "batches", "rewrite", "add_indexes"},
    "2**31 nulls in 256 pages": {"read_table", "batches", "rewrite"},
    "2**35 nulls": {"read_table", "batches", "rewrite", "add_indexes"},
    "2**40 rows": {"read_table", "batches", "rewrite", "add_indexes"},
    "2**62 rows": {"read_table", "batches", "rewrite", "add_indexes", "merge"},
    "2**62 bytes": set(),
    "2**62 bytes in each column": set(),
    "no columns, 2**31 rows": {"batches", "rewrite"},
    "no columns, 2**62 rows": {"batches", "rewrite", "merge"},
    "no columns, 2**64 rows": {"read_table", "batches", "rewrite", "add_indexes", "merge", "edit_metadata"},
    "overlapping pages": set(),
    "2**31 rows in an index": set(),
    "2**62 rows in an index": set(),
    "2**31 values in a page": {"read_table", "batches", "rewrite", "add_indexes"},
    "a shared Bloom filter": set(),
    "shared page indexes": {"merge"},
}
"""By file, which of the operations of ``QUICK`` raise."""

TESTED_ELSEWHERE = (
    "row groups on", "columns on", "staggered", "2**31 nulls in 256", "2**35", "no columns", "shared", "a shared",
    "2**62 bytes in",
)  # fmt: skip
"""What quick tests look at: ``test_chunk_places.py``, ``test_declared_counts.py``, ``test_shared_indexes.py``."""
NAMES = [pytest.param(name, marks=[pytest.mark.fuzz] * name.startswith(TESTED_ELSEWHERE)) for name in CLAIMS]


def done(name: str, folder: Path, *operations: str) -> dict[str, Any]:
    """What became of these operations over a file, or of all."""
    call = [sys.executable, str(WORKER), str(folder), name, str(MEMORY), str(SECONDS), ",".join(operations)]
    ended = subprocess.run(call, capture_output=True, text=True, timeout=SECONDS * len(OPERATIONS), check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def check(found: dict[str, Any]) -> None:
    """Nothing died, hung or raised an error of another kind, and what failed has left no file."""
    assert {what: f["said"] for what, f in found.items() if f["said"].startswith("!")} == {}
    assert {what: f["peak"] for what, f in found.items() if f["peak"] > MEMORY} == {}
    failed = {what: f["left"] for what, f in found.items() if not f["said"].startswith("ok") and f["left"]}
    assert {what: left for what, left in failed.items() if left != ["copy.parquet"]} == {}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", NAMES)
def test_the_chief_operations(name: str, tmp_path: Path) -> None:
    found = done(name, tmp_path, *QUICK)
    check(found)
    refused = {what for what, f in found.items() if not f["said"].startswith("ok")}
    assert refused == REFUSED[name], {what: f["said"] for what, f in found.items()}


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CLAIMS)
def test_every_operation(name: str, tmp_path: Path) -> None:
    found = done(name, tmp_path)
    assert list(found) == list(OPERATIONS)
    check(found)
