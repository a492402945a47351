"""How much memory a read needs: little more than its result, by ``limits.max_memory`` and by what the system counts."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import LimitError
from pyparq.limits import Limits

MIB = 1 << 20
ROWS = 200_000
KINDS: dict[str, Callable[[], pa.Array]] = {
    "text": lambda: pa.array([f"unique string {i:012d} and more" for i in range(ROWS)]),
    "text with nulls": lambda: pa.array([f"unique {i:012d}" if i % 3 else None for i in range(ROWS)]),
    "few words": lambda: pa.array([f"word {i % 500:06d} and more" for i in range(ROWS)]),
    "numbers": lambda: pa.array(range(ROWS)),
    "flags": lambda: pa.array([i % 3 == 0 for i in range(ROWS)]),
    "lists": lambda: pa.array([[f"{i:020d}", None] for i in range(ROWS // 2)]),
}


def stored(array: pa.Array, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": array}), sink, **options)
    return sink.getvalue()


@pytest.mark.sweep(5)
@pytest.mark.parametrize("use_threads", [True, False])
@pytest.mark.parametrize("row_group_size", [ROWS, 5_000])
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_twice_the_result_is_enough(name: str, use_dictionary: bool, row_group_size: int, use_threads: bool) -> None:
    """Dictionaries, parts of threads and passing memory of many row groups do not add up."""
    data = stored(KINDS[name](), use_dictionary=use_dictionary, row_group_size=row_group_size)
    expected = pq.read_table(io.BytesIO(data))
    limits = Limits(max_memory=2 * expected.nbytes + 2 * MIB)
    assert pyparq.read_table(data, limits=limits, use_threads=use_threads).to_arrow().equals(expected)


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_row_groups_that_do_not_fit_together(use_dictionary: bool) -> None:
    """Small row groups are read together where there is memory for them, and one by one where there is not."""
    data = stored(KINDS["text"](), use_dictionary=use_dictionary, row_group_size=5_000)
    expected = pq.read_table(io.BytesIO(data))
    with pyparq.ParquetFile(data, limits=Limits(max_memory=3 * MIB)) as file:
        tests = [("x", ">", "unique string 000000001000")]
        for filters, right in ((None, expected), (tests, pq.read_table(io.BytesIO(data), filters=tests))):
            batches = list(file.scan(filters=filters).iter_batches())
            assert pa.Table.from_batches([pa.record_batch(batch) for batch in batches]).equals(right)
            assert file.scan(filters=filters).count() == right.num_rows
        with pytest.raises(LimitError):
            file.read()


@pytest.mark.parametrize("use_threads", [True, False])
@pytest.mark.parametrize("filters", [None, col("x") >= ""])
def test_the_refusal_has_true_numbers(filters: Any, use_threads: bool) -> None:
    """What is held and what is missing are more than the limit, but neither is alone."""
    data = stored(KINDS["text"](), row_group_size=5_000)
    most = pq.read_table(io.BytesIO(data)).nbytes * 3 // 4
    with pytest.raises(LimitError) as error:
        pyparq.read_table(data, filters=filters, limits=Limits(max_memory=most), use_threads=use_threads)
    words = str(error.value).split()
    held, missing = int(words[words.index("holds") + 1]), int(words[words.index("least") + 1])
    assert most // 2 < held <= most < held + missing


PEAK = """
import sys, pyparq
def memory(name):
    return int(next(x for x in open("/proc/self/status") if name in x).split()[1]) << 10
pyparq.read_table(sys.argv[2])
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
table = pyparq.read_table(sys.argv[1], use_threads=sys.argv[3] == "True")
print(memory("VmHWM") - before, table.nbytes)
"""


@pytest.mark.sweep(2)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
@pytest.mark.parametrize("use_threads", [True, False])
def test_the_dictionaries_of_many_row_groups_are_not_held(tmp_path: Path, use_threads: bool) -> None:
    """Of text that never repeats they take more than the values."""
    rows = 1_500_000
    table = pa.table({"x": [f"unique string {i:012d} and more" for i in range(rows)]})
    pq.write_table(table, tmp_path / "a", row_group_size=20_000)
    pq.write_table(table.slice(0, 10), tmp_path / "b")
    run = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path / "a"), str(tmp_path / "b"), str(use_threads)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    peak, size = map(int, run.stdout.split())
    assert size > 50 * MIB
    assert peak < 1.3 * size + 64 * MIB
