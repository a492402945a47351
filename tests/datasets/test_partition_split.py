"""Rows are dealt out to partitions: each partition has its rows, in their order, for all types of columns."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyparq
from pyparq import kernels
from pyparq.arrow.ingest import ingest
from pyparq.datasets.write.partition_split import Splitter
from pyparq.kernels import KernelError

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [1, -5]),
    "i64": (pa.int64(), [2**62, -7, 0]),
    "f": (pa.float32(), [0.5, -0.0]),
    "b": (pa.bool_(), [True, False]),
    "s": (pa.string(), ["", "a", "näher", "x" * 90]),
    "large": (pa.large_string(), ["", "b", "y" * 40]),
    "raw": (pa.binary(), [b"", b"\0\1"]),
    "fixed": (pa.binary(3), [b"abc", b"\0\1\2"]),
    "dec": (pa.decimal128(20, 2), [Decimal("1.25"), Decimal("-7.00")]),
    "at": (pa.timestamp("us", "UTC"), [0, 10**15]),
    "d": (pa.date32(), [0, 19_000]),
    "n": (pa.null(), [None]),
    "items": (pa.list_(pa.int32()), [[], [1, None], [2, 3, 4]]),
    "who": (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": None, "b": "yy"}]),
    "word": (pa.dictionary(pa.int32(), pa.string()), ["u", "v", "w"]),
}


def drawn(draw: random.Random) -> pa.Table:
    count = draw.randrange(1, 300)

    def column(kind: tuple[pa.DataType, list[Any]], nulls: float) -> pa.Array:
        return pa.array([None if draw.random() < nulls else draw.choice(kind[1]) for _ in range(count)], kind[0])

    table = pa.table({name: column(kind, draw.choice([0, 0.3])) for name, kind in VALUES.items()})
    for k in range(draw.randrange(1, 4)):
        kind = draw.choice([(pa.int64(), list(range(draw.choice([1, 5, 200])))), (pa.string(), ["a", "b", "c"])])
        table = table.append_column(f"p{k}", column(kind, draw.choice([0, 0.2])))
    first = draw.randrange(count)
    return table.slice(first) if draw.random() < 0.5 else table


def test_each_partition_has_its_rows_in_their_order() -> None:
    draw = random.Random(60)
    for _ in range(40):
        table = drawn(draw)
        names = [name for name in table.column_names if name.startswith("p")]
        schema, batches = ingest(table.combine_chunks())
        splitter = Splitter(schema, names)
        keys = list(zip(*(table[name].to_pylist() for name in names), strict=True))
        null = "__HIVE_DEFAULT_PARTITION__"
        folders = [tuple(f"{n}={null if v is None else v}" for n, v in zip(names, key, strict=True)) for key in keys]
        found = [(place, part) for batch in batches for place, part in splitter.split(batch)]
        assert len(found) == len(set(folders))
        for place, part in found:
            rows = [n for n, folder in enumerate(folders) if folder == place]
            made = pa.table(pyparq.Table(splitter.schema, [pyparq.Batch(part.columns, part.num_rows)]))
            made.validate(full=True)
            assert made.to_pylist() == table.drop_columns(names).take(rows).to_pylist()


def test_more_rows_than_are_divided_together() -> None:
    count = 1_200_000
    numbers = np.arange(count)
    part = np.where(numbers % 10 < 9, 7, numbers % 31)
    schema, batches = ingest({"part": part, "x": numbers})
    found: dict[str, list[Any]] = {f"part={k}": [] for k in np.unique(part)}
    for batch in batches:
        for place, rows in Splitter(schema, ["part"]).split(batch):
            found[place[0]] += [rows.columns[0].values()]
    for name, parts in found.items():
        assert len(parts) == 2
        assert np.array_equal(np.concatenate(parts), numbers[part == int(name[5:])])


GROUPS, COUNTS = np.array([1, 0, 1], np.int32), np.array([1, 2])
EDGES = np.array([0, 1, 3, 6], np.int32)


def test_the_kernels_divide() -> None:
    parts = kernels.divide_fixed(np.array([5, 6, 7], np.int64), 8, GROUPS, COUNTS)
    assert [part.view(np.int64).tolist() for part in parts] == [[6], [5, 7]]
    texts = kernels.divide_binary(EDGES, b"abbccc", GROUPS, COUNTS)
    assert [(edges.tolist(), data.tobytes()) for edges, data in texts] == [([0, 2], b"bb"), ([0, 1, 4], b"accc")]


@pytest.mark.parametrize("groups", [[0, 1, 2], [0, -1, 1], [0, 0, 1], [1, 1, 1], [0, 1], [1, 0, 1, 1]])
def test_groups_that_do_not_fit_are_refused(groups: list[int]) -> None:
    wrong = np.array(groups, np.int32)
    with pytest.raises(KernelError):
        kernels.divide_fixed(np.zeros(3, np.int64), 8, wrong, COUNTS)
    with pytest.raises(KernelError):
        kernels.divide_binary(EDGES, b"abbccc", wrong, COUNTS)


@pytest.mark.parametrize("edges", [[0, 1, 3, 7], [0, 2, 1, 3], [-1, 1, 3, 6]])
def test_offsets_that_do_not_fit_are_refused(edges: list[int]) -> None:
    with pytest.raises(KernelError):
        kernels.divide_binary(np.array(edges, np.int32), b"abbccc", GROUPS, COUNTS)
