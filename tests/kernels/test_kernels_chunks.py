"""Whole chunks decoded by arrays: the kernel takes what it is given for hostile."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyparq import kernels
from pyparq.api import read_table
from pyparq.kernels import DecodedColumn, KernelError, LeafSpec

ROWS = 500


class Call:
    """The arguments of a call that a real read makes."""

    def __init__(self, *given: Any, wanted: Any) -> None:
        names = (
            "leaves", "runs", "num_rows", "codec", "num_values", "has_dictionary", "start", "size", "read", "limits",
            "threads", "room",
        )  # fmt: skip
        self.given = dict(zip(names, given, strict=True)) | {"wanted": wanted}

    def run(self, **changed: Any) -> tuple[Any, Any, Any]:
        return kernels.decode_chunks(**(self.given | changed))

    def array(self, name: str) -> Any:
        return self.given[name].copy()


def table() -> pa.Table:
    return pa.table(
        {
            "a": pa.array([None if k % 9 == 0 else k for k in range(ROWS)]),
            "b": pa.array([f"text {k % 40}" for k in range(ROWS)]),
            "c": pa.array([[k] * (k % 3) for k in range(ROWS)]),
            "d": pa.array([k % 2 == 0 for k in range(ROWS)]),
        }
    )


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    path = tmp_path / "t.parquet"
    pq.write_table(table(), path, row_group_size=100, compression="snappy", write_page_checksum=False)
    calls: list[Call] = []

    decode = kernels.decode_chunks

    def noted(*given: Any, **named: Any) -> Any:
        calls.append(Call(*given, **named))
        return decode(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(kernels, "decode_chunks", noted)
        assert pa.table(read_table(path)).equals(table())
    (found,) = calls
    return found


def test_one_batch_of_several_row_groups(call: Call) -> None:
    columns, facts, refusal = call.run()
    assert refusal is None
    assert [type(column) for column in columns] == [DecodedColumn] * 4
    assert [column.length for column in columns] == [ROWS, ROWS, sum(max(k % 3, 0) for k in range(ROWS)), ROWS]
    assert columns[0].null_count == len(range(0, ROWS, 9))
    assert (facts.data_pages, facts.dictionary_pages, facts.ended_early) == (20, 15, 0)
    assert facts.num_bytes == sum(column.size for column in columns)


def test_runs_of_row_groups(call: Call) -> None:
    columns, _, refusal = call.run(runs=np.array([2, 0, 3], np.int64))
    assert refusal is None
    assert [column.length for column in columns[:1] + columns[8:9]] == [200, 300]
    assert len(columns) == 12


@pytest.mark.parametrize("name", ["num_rows", "codec", "num_values", "has_dictionary", "start", "size", "runs"])
def test_arrays_of_another_size(call: Call, name: str) -> None:
    with pytest.raises(KernelError):
        call.run(**{name: np.append(call.array(name), [1, 1])})
    if name != "runs":
        with pytest.raises(KernelError):
            call.run(**{name: call.array(name)[:-1]})


@pytest.mark.parametrize("name", ["start", "size"])
@pytest.mark.parametrize("value", [-1, -(1 << 63), 1 << 40, (1 << 63) - 1])
def test_places_that_were_not_read(call: Call, name: str, value: int) -> None:
    changed = call.array(name)
    changed[7] = value
    with pytest.raises(KernelError, match="not been read"):
        call.run(**{name: changed})


@pytest.mark.parametrize("name", ["num_rows", "num_values", "codec"])
@pytest.mark.parametrize("value", [-1, -(1 << 63), 1 << 40, (1 << 63) - 1, 99])
def test_numbers_that_are_not_true(call: Call, name: str, value: int) -> None:
    changed = call.array(name)
    changed[2] = value
    try:
        columns, _, refusal = call.run(**{name: changed}, room=1 << 26)
    except KernelError:
        return
    assert refusal is not None or all(isinstance(column, DecodedColumn) for column in columns)


def test_runs_that_are_none(call: Call) -> None:
    for runs in ([-1], [6], [1 << 62], [5, 1]):
        with pytest.raises(KernelError):
            call.run(runs=np.array(runs, np.int64))


def test_leaves_that_are_none(call: Call) -> None:
    for leaves in ([()], ["a"], [None]):
        with pytest.raises((KernelError, RuntimeError, TypeError)):
            call.run(leaves=leaves)
    with pytest.raises(KernelError, match="as values or codes"):
        call.run(leaves=[LeafSpec(1, 4, 1, 0, form="views")] * 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0}, {"width": -1}, {"max_def": 999}, {"max_rep": -1}, {"physical": 8}, {"physical": -1},
        {"digits": 77}, {"convert": 9}, {"form": "numbers"},
    ],
)  # fmt: skip
def test_leaves_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(KernelError):
        LeafSpec(**({"physical": 2, "width": 8, "max_def": 1, "max_rep": 0} | wrong))


def test_bytes_that_are_none(call: Call) -> None:
    for read in ([(4, "text")], [(4,)], [None], [("a", b"")], []):
        with pytest.raises((KernelError, IndexError, TypeError, SystemError)):
            call.run(read=read)


def test_no_room(call: Call) -> None:
    for room in (0, 1, 1000, 10_000):
        _, _, refusal = call.run(room=room)
        assert refusal is not None
        assert refusal.name == "memory"


def test_damaged_bytes(call: Call) -> None:
    """Anything but a crash: a refusal by name, or values."""
    chance = random.Random(7)
    whole = [(start, bytes(data)) for start, data in call.given["read"]]
    for _ in range(400):
        read = []
        for start, data in whole:
            changed = bytearray(data)
            for _ in range(chance.randint(1, 8)):
                if changed:
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
            read.append((start, bytes(changed)))
        try:
            columns, facts, refusal = call.run(read=read, threads=1 + chance.randrange(2))
        except KernelError:
            continue
        if refusal is None:
            assert facts.num_bytes == sum(column.size for column in columns)
            for column in columns:
                assert column.values.sum() >= 0
                assert column.validity is None or len(column.validity) == (column.length + 7) // 8
        else:
            assert isinstance(refusal.name, str)


def test_cut_bytes(call: Call) -> None:
    last = int((call.array("start") + call.array("size")).max())
    (start, data), *_ = (pair for pair in call.given["read"] if pair[0] < last <= pair[0] + len(pair[1]))
    assert call.run(read=[*call.given["read"], (start, bytes(data))])[2] is None
    for size in (0, 1, last - start - 1):
        rest = [pair for pair in call.given["read"] if pair[0] != start]
        with pytest.raises(KernelError, match="not been read"):
            call.run(read=[*rest, (start, bytes(data[:size]))])


def test_some_rows(call: Call) -> None:
    """Bits of runs that begin at any row; a row group without a wanted row need not have been read."""
    whole = pa.array(table()["a"].combine_chunks())
    for wanted in (range(0, ROWS, 3), range(105, 190), range(499, 500)):
        rows = np.zeros((ROWS + 63) // 64 * 64, bool)
        rows[list(wanted)] = True
        words = np.packbits(rows, bitorder="little").view(np.uint64)
        groups = {row // 100 for row in wanted}
        starts = call.array("start").reshape(5, 4)
        read = [
            (at, data)
            for at, data in call.given["read"]
            if any(at <= start < at + len(data) for g in groups for start in starts[g])
        ]
        columns, facts, refusal = call.run(wanted=[words], read=read)
        assert refusal is None
        assert {column.length for column in columns[:2]} == {len(wanted)}
        assert facts.data_pages == 4 * len(groups)
        assert columns[0].values.view(np.int64).tolist() == [0 if k % 9 == 0 else k for k in wanted]
        assert columns[0].null_count == whole.take(list(wanted)).null_count
        assert columns[2].length == sum(k % 3 for k in wanted)


@pytest.mark.parametrize("wanted", [[None, None], [np.zeros(7, np.uint64)], [b"\0" * 63], [3]])
def test_rows_that_are_none(call: Call, wanted: Any) -> None:
    with pytest.raises((KernelError, TypeError)):
        call.run(wanted=wanted)
