"""Many small row groups are filtered as one: the answers are those of pyarrow, and the calls are few."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col, kernels
from pyparq.read import joined
from pyparq.read.decode.memory_account import Account, Portion
from pyparq.read.joined import NoCodesError

ROWS = 1500


def table(seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)

    def holed(values: Any) -> pa.Array:
        return pa.array(values, mask=rng.random(ROWS) < 0.2)

    words = [None if n == 0 else f"v{n}" for n in rng.integers(0, 60, ROWS)]
    return pa.table(
        {
            "k": holed(rng.integers(0, 100, ROWS)),
            "f": holed(rng.random(ROWS)),
            "s": words,
            "b": holed(rng.random(ROWS) < 0.3),
            "l": [None if n == 0 else list(range(n - 1)) for n in rng.integers(0, 5, ROWS)],
            "st": [None if n == 0 else {"x": int(n), "y": ["q"] * int(n % 3)} for n in rng.integers(0, 9, ROWS)],
            "row": np.arange(ROWS),
        }
    )


QUESTIONS = [
    (col("k") < 10, pc.field("k") < 10),
    ((col("k") == 7) | (col("s") == "v7"), (pc.field("k") == 7) | (pc.field("s") == "v7")),
    (col("s").starts_with("v1") & (col("f") > 0.3), pc.starts_with(pc.field("s"), "v1") & (pc.field("f") > 0.3)),
    (col("b") == True, pc.field("b")),  # noqa: E712
    (col("k").is_null(), pc.field("k").is_null()),
    (col("f").is_not_null(), pc.field("f").is_valid()),
    (col(("st", "x")) > 4, pc.field("st", "x") > 4),
    (col("k") > 1000, pc.field("k") > 1000),
]


@pytest.fixture(params=[1, 7, 64, 100], ids=lambda size: f"of {size} rows")
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / "t.parquet"
    pq.write_table(table(), found, row_group_size=request.param, use_dictionary=["s"])
    return found


@pytest.mark.sweep(5)
def test_answers_are_those_of_pyarrow(path: Path) -> None:
    draw = random.Random(path.name)
    for ours, theirs in QUESTIONS:
        columns = draw.choice([["row"], ["s", "l"], ["st", "k"], None])
        want = table().filter(theirs)
        want = want if columns is None else want.select(columns)
        assert pa.table(pyparq.read_table(path, columns=columns, filters=ours)) == want
        limit, first = draw.randrange(ROWS), draw.randrange(ROWS)
        with pyparq.ParquetFile(path) as file:
            assert file.scan(columns, ours).count() == want.num_rows
            assert pa.table(file.scan(columns, ours)) == want
            assert pa.table(file.scan(columns, ours, limit=limit).to_table()) == want.slice(0, limit)
            assert file.scan(columns, ours, limit=limit).count() == min(limit, want.num_rows)
            part = table().slice(first, 200).filter(theirs)
            found = pa.table(file.scan(columns, ours, rows=slice(first, first + 200)).to_table())
            assert found == (part if columns is None else part.select(columns))


def test_rows_that_statistics_are_sure_of(tmp_path: Path) -> None:
    path = tmp_path / "sorted.parquet"
    ordered = pa.table({"k": range(1000), "x": [k % 7 for k in range(1000)]})
    pq.write_table(ordered, path, row_group_size=90)
    found = pyparq.read_table(path, filters=(col("k") >= 400) | (col("x") == 3))
    assert pa.table(found) == ordered.filter((pc.field("k") >= 400) | (pc.field("x") == 3))


@pytest.fixture(autouse=True, params=["columns", "row groups"])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the threads share out."""
    if request.param == "row groups":
        monkeypatch.setattr(joined, "THREAD_WINDOW", 1 << 11)
        monkeypatch.setattr(joined, "cpu_count", lambda: 3)
        monkeypatch.setattr(joined, "JOINED", 250)
    return str(request.param)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of row groups in each call of the decoder of many chunks."""
    made: list[int] = []
    decode = kernels.decode_chunks

    def noted(leaves: Any, runs: Any, *others: Any, **named: Any) -> Any:
        made.append(int(runs.sum()))
        return decode(leaves, runs, *others, **named)

    monkeypatch.setattr(kernels, "decode_chunks", noted)
    return made


def test_two_calls_for_all_row_groups(tmp_path: Path, calls: list[int], shared: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, row_group_size=10)
    found = pyparq.read_table(path, filters=col("k") < 50)
    assert pa.table(found) == table().filter(pc.field("k") < 50)
    if shared == "row groups":
        assert len(calls) >= 6
        return
    assert len(calls) == 2
    assert min(calls) >= 148  # statistics rule out the others
    calls.clear()
    with pyparq.ParquetFile(path) as file:
        assert file.scan(filters=col("s") == "v3").count() > 0
    assert len(calls) == 1


def test_memory_stays_within_its_limit(tmp_path: Path) -> None:
    """However little there is, the rows are right, or the error says what is missing."""
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, row_group_size=10)
    want, refused, read = table().filter(pc.field("k") < 50), dict[int, str](), 0
    for bits in range(8, 24):
        limits = pyparq.Limits(max_memory=1 << bits)
        try:
            found = pyparq.read_table(path, filters=col("k") < 50, limits=limits)
        except pyparq.LimitError as error:
            refused[bits] = str(error)
        else:
            assert pa.table(found) == want
            read += 1
    assert read
    assert refused
    assert all(f"limits.max_memory ({1 << bits})" in text for bits, text in refused.items())


def test_threads_share_what_is_left() -> None:
    account = Account(pyparq.Limits(max_memory=900))
    account.take(100)
    first, second = Portion(account, 2), Portion(account, 2)
    assert (first.left, second.left, account.left) == (400, 200, 200)
    with pytest.raises(pyparq.LimitError):
        second.take(201)
    first.take(300)
    first.release()
    first.take(390)
    first.set_held(50)
    second.set_held(0)
    assert account.used == 150


def test_a_stream_joins_small_row_groups(tmp_path: Path, calls: list[int]) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, row_group_size=10)
    with pyparq.ParquetFile(path) as file:
        batches = list(file.scan(filters=col("k") < 50).iter_batches())
        joined_calls = [count for count in calls if count > 1]
        assert len(joined_calls) < 20
        assert len(calls) - len(joined_calls) <= 16  # two for each of the first eight row groups, which come alone
        assert sum(batch.num_rows for batch in batches) == table().filter(pc.field("k") < 50).num_rows
        assert len(batches) < 20
        assert len(list(file.scan().iter_batches(None))) == 150


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    options = {"row_group_size": 100, "write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(table().select(["k", "row"]), path, **options)
    chunk = pq.read_metadata(path).row_group(7).column(1)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(pyparq.ChecksumError) as error:
        pyparq.read_table(path, filters=col("k") < 90)
    assert (error.value.row_group, error.value.column) == (7, "row")


@pytest.mark.parametrize("kind", ["repeated", "absent in places", "distinct", "dictionary that ends", "no dictionary"])
def test_text_is_tested_by_its_dictionaries(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all pages have codes. Each row group has a dictionary of its own; values are looked at otherwise."""
    rng, path = np.random.default_rng(9), tmp_path / "t.parquet"
    numbers = np.arange(ROWS) if kind in ("distinct", "dictionary that ends") else np.sort(rng.integers(0, 400, ROWS))
    words: list[str | None] = [f"{n % 7} é {'x' * int(n % 90)}{n}" for n in numbers]
    if kind == "absent in places":
        words[100:340] = [None] * 240  # some row groups have nothing else
    made = pa.table({"s": words, "row": range(ROWS)})
    limit = 2000 if kind == "dictionary that ends" else 1 << 20
    refused = []

    class Refused(NoCodesError):
        def __init__(self) -> None:
            refused.append(1)

    monkeypatch.setattr(joined, "NoCodesError", Refused)
    pq.write_table(
        made, path, row_group_size=80, use_dictionary=kind != "no dictionary", dictionary_pagesize_limit=limit,
        data_page_size=500, write_batch_size=8,
    )  # fmt: skip
    for ours, theirs in (
        (col("s").starts_with("3"), pc.starts_with(pc.field("s"), "3")),
        (col("s") == words[700], pc.field("s") == words[700]),
        (col("s").is_null(), pc.field("s").is_null()),
        ((col("s") > "5") & (col("row") > 60), (pc.field("s") > "5") & (pc.field("row") > 60)),
    ):
        want = made.filter(theirs)
        for columns in (None, ["row"], ["s"]):
            # Without the page index, row groups of several pages are joined too.
            found = pyparq.read_table(path, columns=columns, filters=ours, use_page_index=False)
            assert pa.table(found) == (want if columns is None else want.select(columns))
        with pyparq.ParquetFile(path) as file:
            assert file.scan(filters=ours).count() == want.num_rows
    assert bool(refused) == (kind == "dictionary that ends")


@pytest.mark.parametrize("dictionary", [False, True])
def test_many_texts_of_one_row_group(dictionary: bool, tmp_path: Path) -> None:
    """Those that are tested in slices, on several threads."""
    rng = np.random.default_rng(9)
    words = ["Größe", "needle", "Needle", "haystack", "東京", "", "ΑΣ"]
    texts = [f"{words[k % 7]} {k}" for k in rng.integers(0, 10**6, 150_001).tolist()]
    digits = re.compile("[0-9]{6}$").search
    texts[::31] = [None] * len(texts[::31])
    data = pa.table({"s": pa.array(texts), "k": rng.integers(0, 9, len(texts)), "row": np.arange(len(texts))})
    found = tmp_path / "t.parquet"
    pq.write_table(data, found, use_dictionary=["s"] if dictionary else False)
    for condition, passes in (
        (col("s").lower().contains("größe 1"), lambda s, k: s is not None and "größe 1" in s.lower()),
        (col("s").ilike("NEEDLE %7"), lambda s, k: s is not None and re.fullmatch("(?i)needle .*7", s)),
        (col("s").length() < 8, lambda s, k: s is not None and len(s) < 8),
        ((col("s") > "haystack 5") & (col("k") == 3), lambda s, k: s is not None and s > "haystack 5" and k == 3),
        (~col("s").matches("[0-9]{6}$") | (col("k") < 2), lambda s, k: (s is not None and not digits(s)) or k < 2),
    ):
        rows = enumerate(zip(texts, data["k"].to_pylist(), strict=True))
        expected = [row for row, (text, k) in rows if passes(text, k)]
        assert pyparq.read_table(found, columns=["row"], filters=condition)["row"].to_pylist() == expected
        assert pyparq.count(found, filters=condition) == len(expected)


def test_many_texts_in_structs_without_nulls(tmp_path: Path) -> None:
    """A null test of a struct asks for the levels of its leaf, also where no entry is null."""
    found = tmp_path / "t.parquet"
    pyparq.write_table({"s": [{"t": f"x{k}"} for k in range(140_000)]}, found)
    text = col(("s", "t")).like("%9")
    assert pyparq.count(found, filters=col("s").is_null() | text) == 14_000
    assert pyparq.count(found, filters=col("s").is_not_null() & text) == 14_000
