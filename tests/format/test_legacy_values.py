"""Values in every LIST and MAP structure that LogicalTypes.md lists for reading, put together by hand: as expected, and
as pyarrow reads the same bytes. (``test_schema_arrow`` holds the types.)"""

from __future__ import annotations

import io
from typing import Any

import pytest
from handmade import OPTIONAL, REPEATED, REQUIRED, Column, Page, group, int32, leaf, make

import pyparq
from pyparq import col
from pyparq.format import ttypes as tt

pq = pytest.importorskip("pyarrow.parquet")

ROOT = group("schema", None, 1)
LIST, MAP, MAP_KEY_VALUE = (
    {"converted_type": c} for c in (tt.ConvertedType.LIST, tt.ConvertedType.MAP, tt.ConvertedType.MAP_KEY_VALUE)
)
LOGICAL_LIST = {"logicalType": tt.LogicalType(LIST=tt.ListType())}

ROWS, ITEMS = [0, 0, 0, 0, 1], [0, 1, 2, 2, 2]  # null, [], [1], [2, 3]
NULL_ITEM = [0, 1, 3, 2, 3]  # null, [], [1], [null, 3]
DEEP_ROWS, DEEP_ITEMS = [0, 0, 0, 0, 1, 2], [0, 1, 2, 3, 3, 3]  # null, [], [[]], [[1], [2, 3]]
ONES = [None, [], [1], [2, 3]]
STRUCTS = [None, [], [{"s": 1}], [{"s": 2}, {"s": 3}]]
DEEP = [None, [], [[]], [[1], [2, 3]]]
PAIRS = [None, [], [(1, 10)], [(2, None), (3, 30)]]


def column(path: str, rep: list[int], definition: list[int], values: list[int], max_def: int) -> Column:
    page = Page(len(rep), int32(*values), rep, definition)
    return Column([page], max(rep), max_def, ("l", *path.split(".")) if path else ("l",))


def items(path: str) -> list[Column]:
    return [column(path, ROWS, ITEMS, [1, 2, 3], 2)]


def pairs(repeated: str, key: str = "key", value: str = "value") -> list[Column]:
    return [*items(f"{repeated}.{key}"), column(f"{repeated}.{value}", ROWS, NULL_ITEM, [10, 30], 3)]


def listed(*below: Any, **annotation: Any) -> list[Any]:
    return [ROOT, group("l", OPTIONAL, 1, **(annotation or LIST)), *below]


def mapped(repeated: Any, *below: Any, **annotation: Any) -> list[Any]:
    return listed(repeated, *below, **(annotation or MAP))


KEY, VALUE = leaf("key", REQUIRED), leaf("value", OPTIONAL)

CASES: dict[str, tuple[list[Any], list[Column], list[Any]]] = {
    "rule 1": (listed(leaf("element", REPEATED)), items("element"), ONES),
    "rule 1, annotated anew": (listed(leaf("element", REPEATED), **LOGICAL_LIST), items("element"), ONES),
    "rule 1, required": (
        [ROOT, group("l", REQUIRED, 1, **LIST), leaf("element", REPEATED)],
        [column("element", [0, 0, 0, 1], [0, 1, 1, 1], [1, 2, 3], 1)],
        ONES[1:],
    ),
    "rule 2": (
        listed(group("element", REPEATED, 2), leaf("a", REQUIRED), leaf("b", OPTIONAL)),
        pairs("element", "a", "b"),
        [None, [], [{"a": 1, "b": 10}], [{"a": 2, "b": None}, {"a": 3, "b": 30}]],
    ),
    "rule 3": (
        listed(group("array", REPEATED, 1, **LIST), leaf("array", REPEATED)),
        [column("array.array", DEEP_ROWS, DEEP_ITEMS, [1, 2, 3], 3)],
        DEEP,
    ),
    "rule 3, not annotated": (
        listed(group("x", REPEATED, 1), leaf("y", REPEATED)),
        [column("x.y", DEEP_ROWS, DEEP_ITEMS, [1, 2, 3], 3)],
        [None, [], [{"y": []}], [{"y": [1]}, {"y": [2, 3]}]],
    ),
    "rule 3, maps": (
        listed(group("array", REPEATED, 1, **MAP), group("map", REPEATED, 2, **MAP_KEY_VALUE), KEY, VALUE),
        [
            column("array.map.key", DEEP_ROWS, DEEP_ITEMS, [1, 2, 3], 3),
            column("array.map.value", DEEP_ROWS, [0, 1, 2, 4, 3, 4], [10, 30], 4),
        ],
        [None, [], [[]], [[(1, 10)], [(2, None), (3, 30)]]],
    ),
    "rule 4, array": (listed(group("array", REPEATED, 1), leaf("s", REQUIRED)), items("array.s"), STRUCTS),
    "rule 4, tuple": (listed(group("l_tuple", REPEATED, 1), leaf("s", REQUIRED)), items("l_tuple.s"), STRUCTS),
    "rule 4, optional": (
        listed(group("array", REPEATED, 1), leaf("s", OPTIONAL)),
        [column("array.s", ROWS, NULL_ITEM, [1, 3], 3)],
        [None, [], [{"s": 1}], [{"s": None}, {"s": 3}]],
    ),
    "rule 5": (
        listed(group("element", REPEATED, 1), leaf("s", OPTIONAL)),
        [column("element.s", ROWS, NULL_ITEM, [1, 3], 3)],
        [None, [], [1], [None, 3]],
    ),
    "rule 5, two levels within three": (
        listed(group("list", REPEATED, 1), group("element", OPTIONAL, 1, **LIST), leaf("array", REPEATED)),
        [column("list.element.array", [0, 0, 0, 0, 0, 1, 2], [0, 1, 2, 3, 4, 4, 4], [1, 2, 3], 4)],
        [None, [], [None], [[]], [[1], [2, 3]]],
    ),
    "bare": ([ROOT, leaf("l", REPEATED)], [column("", [0, 0, 0, 1], [0, 1, 1, 1], [1, 2, 3], 1)], ONES[1:]),
    "bare group": (
        [ROOT, group("l", REPEATED, 2), leaf("a", REQUIRED), leaf("b", OPTIONAL)],
        [column("a", [0, 0, 0, 1], [0, 1, 1, 1], [1, 2, 3], 1), column("b", [0, 0, 0, 1], [0, 2, 1, 2], [1, 3], 2)],
        [[], [{"a": 1, "b": 1}], [{"a": 2, "b": None}, {"a": 3, "b": 3}]],
    ),
    "bare in bare": (
        [ROOT, group("l", REPEATED, 1), leaf("a", REPEATED)],
        [column("a", [0, 0, 0, 1, 2], [0, 1, 2, 2, 2], [1, 2, 3], 2)],
        [[], [{"a": []}], [{"a": [1]}, {"a": [2, 3]}]],
    ),
    "bare in a struct": (
        [ROOT, group("l", OPTIONAL, 1), leaf("a", REPEATED)],
        items("a"),
        [None, {"a": []}, {"a": [1]}, {"a": [2, 3]}],
    ),
    "map": (mapped(group("key_value", REPEATED, 2), KEY, VALUE), pairs("key_value"), PAIRS),
    "map, other names": (
        mapped(group("map", REPEATED, 2), leaf("str", REQUIRED), leaf("num", OPTIONAL)),
        pairs("map", "str", "num"),
        PAIRS,
    ),
    "map, inner annotated": (mapped(group("map", REPEATED, 2, **MAP_KEY_VALUE), KEY, VALUE), pairs("map"), PAIRS),
    "MAP_KEY_VALUE for MAP": (mapped(group("map", REPEATED, 2), KEY, VALUE, **MAP_KEY_VALUE), pairs("map"), PAIRS),
    "map of two-level lists": (
        mapped(group("map", REPEATED, 2), KEY, group("value", OPTIONAL, 1, **LIST), leaf("array", REPEATED)),
        [*items("map.key"), column("map.value.array", [*DEEP_ROWS[:4], 1, 2], [0, 1, 4, 2, 4, 4], [1, 2, 3], 4)],
        [None, [], [(1, [1])], [(2, None), (3, [2, 3])]],
    ),
    "map without values": (mapped(group("key_value", REPEATED, 1), KEY), items("key_value.key"), ONES),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    elements, columns, expected = CASES[name]
    file = make(elements, columns, len(expected))
    assert pyparq.read_table(file).to_arrow()["l"].to_pylist() == expected
    assert pq.read_table(io.BytesIO(file), use_threads=False)["l"].to_pylist() == expected
    assert pyparq.read_table(file).to_pydict()["l"] == expected
    with pyparq.ParquetFile(file) as opened:
        backwards = list(range(len(expected)))[::-1]
        assert opened.take(backwards).to_arrow()["l"].to_pylist() == expected[::-1]
        assert opened.read(filters=col("l").is_null()).num_rows == expected.count(None)
        for leaf_ in opened._file.tree.leaves:
            assert opened.read([leaf_.dotted]).num_rows == len(expected)
