"""Schemas that lie, groups that break the rules of LIST and MAP, level streams that do not fit: what no writer writes,
made by hand. A typed error, or the plain reading of what is there; what pyarrow reads too, we read the same."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import BIT_PACKED, OPTIONAL, REPEATED, REQUIRED, Column, Page, group, int32, leaf, make
from hostile_structs import Workpiece

import pyparq
from pyparq.errors import CorruptFileError, CorruptIndexWarning, LimitError, ParquetError, SchemaError
from pyparq.format import ttypes as tt

pytest_plugins = ("spark_session",)

NANOS = tt.TimeUnit(NANOS=tt.NanoSeconds())

FLAT = Column([Page(3, int32(1, 2, 3))])
LISTS = tt.ConvertedType.LIST
MAPS = tt.ConvertedType.MAP


def read(data: bytes, **options: Any) -> pa.Table:
    return pyparq.read_table(data, **options).to_arrow()


def test_the_builder_makes_files_that_are_right() -> None:
    """Else nothing below would mean anything."""
    data = make([group("root", None, 1), leaf("x", REQUIRED)], [FLAT], 3)
    assert read(data).to_pydict() == {"x": [1, 2, 3]} == pq.read_table(io.BytesIO(data)).to_pydict()
    nested = make(
        [group("root", None, 1), group("l", OPTIONAL, 1, converted_type=LISTS), group("list", REPEATED, 1),
         leaf("element", OPTIONAL)],
        [Column([Page(5, int32(1, 2, 3), [0, 1, 0, 0, 0], [3, 3, 0, 1, 3])], 1, 3, ("l", "list", "element"))], 4,
    )  # fmt: skip
    assert read(nested).to_pydict() == {"l": [[1, 2], None, [], [3]]} == pq.read_table(io.BytesIO(nested)).to_pydict()


# ---- trees that lie


def chain(depth: int) -> list[tt.SchemaElement]:
    return [group("root", None, 1), *(group("g", OPTIONAL, 1) for _ in range(depth)), leaf("x", REQUIRED)]


X = leaf("x", REQUIRED)
TREES: dict[str, tuple[list[tt.SchemaElement], type[ParquetError]]] = {
    "no elements": ([], CorruptFileError),
    "a child more than there is": ([group("root", None, 2), X], CorruptFileError),
    "a child less than there is": ([group("root", None, 1), X, leaf("y", REQUIRED)], CorruptFileError),
    "children without end": ([group("root", None, (1 << 31) - 1), X], CorruptFileError),
    "fewer than no children": ([group("root", None, -1), X], CorruptFileError),
    "a group below that claims more": ([group("root", None, 1), group("g", REQUIRED, 5), X], CorruptFileError),
    "a group below with fewer than none": ([group("root", None, 1), group("g", REQUIRED, -3), X], CorruptFileError),
    "too deep": (chain(1000), LimitError),
    "deeper than Python's stack": (chain(100_000), LimitError),
    "a group without repetition": ([group("root", None, 1), group("g", None, 1), X], CorruptFileError),
    "repetition 3": ([group("root", None, 1), leaf("x", 3)], CorruptFileError),
    "repetition -1": ([group("root", None, 1), leaf("x", -1)], CorruptFileError),
    "neither type nor children": ([group("root", None, 1), leaf("x", REQUIRED, None)], CorruptFileError),
    "type 8": ([group("root", None, 1), leaf("x", REQUIRED, 8)], SchemaError),
    "type -7": ([group("root", None, 1), leaf("x", REQUIRED, -7)], SchemaError),
    "fixed length of none": ([group("root", None, 1), leaf("x", REQUIRED, 7)], SchemaError),
    "fixed length 0": ([group("root", None, 1), leaf("x", REQUIRED, 7, type_length=0)], SchemaError),
    "fixed length -4": ([group("root", None, 1), leaf("x", REQUIRED, 7, type_length=-4)], SchemaError),
    "fixed length 2^31 - 1": ([group("root", None, 1), leaf("x", REQUIRED, 7, type_length=2**31 - 1)], SchemaError),
    "another type than the chunk's": ([group("root", None, 1), leaf("x", REQUIRED, 2)], CorruptFileError),
    "more leaves than chunks": ([group("root", None, 2), X, leaf("y", REQUIRED)], CorruptFileError),
    "other levels than the page's": ([group("root", None, 1), leaf("x", OPTIONAL)], CorruptFileError),
    "repeated without levels": ([group("root", None, 1), leaf("x", REPEATED)], CorruptFileError),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_that_lie(name: str) -> None:
    elements, error = TREES[name]
    with pytest.raises(error):
        read(make(elements, [FLAT], 3))


def test_fewer_leaves_than_chunks() -> None:
    with pytest.raises(CorruptFileError):
        read(make([group("root", None, 1), X], [FLAT, FLAT], 3))


def test_no_columns_and_no_fields() -> None:
    """A file without columns has rows all the same; a struct without fields has nothing that could tell its rows."""
    assert read(make([group("root", None, 0)], [], 3)).shape == (3, 0)
    with pytest.raises(CorruptFileError, match=r"neither a type nor children.*column g"):
        read(make([group("root", None, 2), group("g", REQUIRED, 0), X], [FLAT], 3))


@pytest.mark.parametrize("operation", [pyparq.merge, pyparq.add_indexes])
def test_chunks_of_no_column(operation: Any, tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    source.write_bytes(make([group("root", None, 0)], [FLAT], 3))
    with pytest.raises(CorruptFileError, match=r"1 columns, but the schema has 0.*row group 0"):
        operation(source, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_leaf_that_is_bad_spoils_only_itself() -> None:
    wrong = leaf("y", REQUIRED, 1, converted_type=tt.ConvertedType.DECIMAL, precision=12, scale=2)
    data = make([group("root", None, 2), X, wrong], [FLAT, Column(FLAT.pages, path=("y",))], 3)
    assert read(data, columns=["x"]).to_pydict() == {"x": [1, 2, 3]}
    with pytest.raises(SchemaError, match=r"precision 12 does not fit INT32.*column y"):
        read(data)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("width", [1, 7, 9, 16])
def test_a_width_that_the_values_do_not_have(width: int, page_version: str, dictionary: bool) -> None:
    """Nothing but the schema says how wide the values of FIXED_LEN_BYTE_ARRAY are."""
    values = pa.array([b"%08d" % (k * k) for k in range(1_000)], pa.binary(8))
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"x": values}), sink, use_dictionary=dictionary, data_page_version=page_version, compression="NONE",
        max_rows_per_page=100, store_schema=False, write_page_index=True,
    )  # fmt: skip
    piece = Workpiece(sink.getvalue())
    assert read(piece.with_footer(piece.meta))["x"].to_pylist() == values.to_pylist()
    piece.meta.schema[1].type_length = width
    data = piece.with_footer(piece.meta)
    few = [{"rows": [17]}, {"rows": list(range(0, 1_000, 90))}, {"limit": 1}] if width < 8 or dictionary else []
    for options in ({}, *few):
        with pytest.raises(CorruptFileError, match="column x"):
            read(data, use_page_index=False, **options)
        with pytest.warns(CorruptIndexWarning) if options else nullcontext(), pytest.raises(CorruptFileError):
            read(data, **options)


@pytest.mark.parametrize("columns", [None, ["a"], ["b"]])
def test_chunks_that_changed_places(columns: list[str] | None) -> None:
    """Their paths give it away; what only the schema calls by another name is read by its place, as others do."""
    two = [Column([Page(3, int32(k, k, k))], path=(name,)) for k, name in enumerate("ab")]
    schema = [group("root", None, 2), leaf("a", REQUIRED), leaf("b", REQUIRED)]
    whole = {"a": [0] * 3, "b": [1] * 3}
    assert read(make(schema, two, 3)).to_pydict() == whole
    with pytest.raises(
        CorruptFileError, match=r"declares that it belongs to column [ab] \[.*row group 0, column [ab]\]"
    ):
        read(make(schema, two[::-1], 3), columns=columns)
    renamed = [group("root", None, 2), leaf("a", REQUIRED), leaf("new", REQUIRED)]
    assert read(make(renamed, two, 3)).to_pydict() == {"a": [0] * 3, "new": [1] * 3}


# ---- decimals that their storage cannot hold


@pytest.mark.parametrize(
    ("type_", "length", "precision", "scale", "says"),
    [
        (1, None, 10, 0, "precision 10 does not fit INT32"),
        (2, None, 19, 0, "precision 19 does not fit INT64"),
        (7, 4, 10, 2, r"precision 10 does not fit FIXED_LEN_BYTE_ARRAY\(4\)"),
        (7, 16, 39, 2, r"precision 39 does not fit FIXED_LEN_BYTE_ARRAY\(16\)"),
        (7, 40, 77, 0, "precision 77"),
        (6, None, 77, 0, "precision 77"),
        (1, None, 0, 0, "precision 0"),
        (1, None, None, None, "precision 0"),
        (1, None, -5, 0, "precision -5"),
        (1, None, 5, 6, "scale 6"),
        (1, None, 5, -1, "scale -1"),
    ],
)
@pytest.mark.parametrize("logical", [False, True])
def test_decimals(type_: int, length: int | None, precision: int, scale: int, says: str, logical: bool) -> None:
    given: dict[str, Any] = {"converted_type": tt.ConvertedType.DECIMAL, "precision": precision, "scale": scale}
    if logical:
        if precision is None:
            pytest.skip("a required field of the logical type")
        given = {"logicalType": tt.LogicalType(DECIMAL=tt.DecimalType(precision=precision, scale=scale))}
    element = leaf("x", REQUIRED, type_, type_length=length, **given)
    column = Column([Page(1, bytes(44))], type_=type_)
    with pytest.raises(SchemaError, match=rf"{says}.*column x"):
        read(make([group("root", None, 1), element], [column], 1))


# ---- annotations that do not fit are passed over


@pytest.mark.parametrize(
    "given",
    [
        {"converted_type": tt.ConvertedType.UTF8},
        {"converted_type": tt.ConvertedType.INT_64},
        {"converted_type": tt.ConvertedType.TIMESTAMP_MILLIS},
        {"converted_type": tt.ConvertedType.INTERVAL},
        {"converted_type": LISTS},
        {"converted_type": 99},
        {"logicalType": tt.LogicalType(STRING=tt.StringType())},
        {"logicalType": tt.LogicalType(UUID=tt.UUIDType())},
        {"logicalType": tt.LogicalType(FLOAT16=tt.Float16Type())},
        {"logicalType": tt.LogicalType(INTEGER=tt.IntType(bitWidth=64, isSigned=True))},
        {"logicalType": tt.LogicalType(INTEGER=tt.IntType(bitWidth=24, isSigned=True))},
        {"logicalType": tt.LogicalType(TIME=tt.TimeType(isAdjustedToUTC=True, unit=NANOS))},
        {"logicalType": tt.LogicalType(MAP=tt.MapType())},
        {"logicalType": tt.LogicalType()},
    ],
)  # fmt: skip
def test_annotations_on_the_wrong_type(given: dict[str, Any]) -> None:
    """The integers stay integers, as LogicalTypes.md asks of annotations that mean nothing."""
    data = make([group("root", None, 1), leaf("x", REQUIRED, 1, **given)], [FLAT], 3)
    assert read(data) == pa.table({"x": pa.array([1, 2, 3], pa.int32())}, pa.schema([pa.field("x", pa.int32(), False)]))


# ---- LIST and MAP groups against the rules


def one_leaf(elements: list[tt.SchemaElement], path: str, page: Page, max_rep: int, max_def: int, rows: int) -> bytes:
    top = [group("root", None, 1), *elements]
    return make(top, [Column([page], max_rep, max_def, path.split("."))], rows)


TWO_ROWS = [0, 1, 0]


@pytest.mark.parametrize("converted", [LISTS, MAPS, tt.ConvertedType.MAP_KEY_VALUE])
def test_annotated_group_without_repetition(converted: int) -> None:
    """LIST or MAP over a child that does not repeat: the struct that it is."""
    elements = [group("g", OPTIONAL, 1, converted_type=converted), leaf("x", OPTIONAL)]
    data = one_leaf(elements, "g.x", Page(3, int32(7), None, [2, 1, 0]), 0, 2, 3)
    assert read(data).to_pydict() == {"g": [{"x": 7}, {"x": None}, None]}


@pytest.mark.parametrize("converted", [LISTS, MAPS])
def test_annotated_group_of_two_children(converted: int) -> None:
    elements = [group("root", None, 1), group("g", OPTIONAL, 2, converted_type=converted), leaf("x", REQUIRED),
                leaf("y", OPTIONAL)]  # fmt: skip
    columns = [Column([Page(2, int32(5), None, [1, 0])], 0, 1, ("g", "x")),
               Column([Page(2, int32(6), None, [2, 0])], 0, 2, ("g", "y"))]  # fmt: skip
    assert read(make(elements, columns, 2)).to_pydict() == {"g": [{"x": 5, "y": 6}, None]}


def test_annotated_group_that_itself_repeats() -> None:
    """A LIST must not be repeated: the bare repetition is one more list around it."""
    elements = [group("l", REPEATED, 1, converted_type=LISTS), group("list", REPEATED, 1), leaf("element", REQUIRED)]
    data = one_leaf(elements, "l.list.element", Page(4, int32(1, 2, 3), [0, 2, 1, 0], [2, 2, 2, 0]), 2, 2, 2)
    assert read(data).to_pydict() == {"l": [[[1, 2], [3]], []]}


def test_list_of_repeated_in_repeated() -> None:
    """Rule 3: the repeated group's only child repeats too, so the group is the element."""
    elements = [group("l", OPTIONAL, 1, converted_type=LISTS), group("list", REPEATED, 1), leaf("v", REPEATED)]
    data = one_leaf(elements, "l.list.v", Page(4, int32(1, 2, 3), [0, 2, 1, 0], [3, 3, 3, 0]), 2, 3, 2)
    expected = {"l": [[{"v": [1, 2]}, {"v": [3]}], None]}
    assert read(data).to_pydict() == expected


def test_map_of_three_children() -> None:
    """No map: a list of structs of three."""
    entry = group("key_value", REPEATED, 3)
    elements = [group("root", None, 1), group("m", OPTIONAL, 1, converted_type=MAPS), entry, leaf("key", REQUIRED),
                leaf("value", REQUIRED), leaf("third", REQUIRED)]  # fmt: skip
    pages = [Page(2, int32(k), [0, 0], [2, 0]) for k in (1, 2, 3)]
    columns = [Column([p], 1, 2, ("m", "key_value", n)) for p, n in zip(pages, ("key", "value", "third"), strict=True)]
    rows = read(make(elements, columns, 2)).to_pydict()["m"]
    entry_read = {"key": 1, "value": 2, "third": 3}
    assert rows in ([[entry_read], None], [{"key_value": [entry_read]}, None])


@pytest.mark.parametrize("key", [OPTIONAL, REPEATED])
def test_map_with_a_key_that_is_not_required(key: int) -> None:
    """Keys must be required; older writers made them optional (nulls among them are an error then)."""
    elements = [group("root", None, 1), group("m", OPTIONAL, 1, converted_type=MAPS), group("key_value", REPEATED, 2),
                leaf("key", key), leaf("value", OPTIONAL)]  # fmt: skip
    rep = 1 if key == OPTIONAL else 2
    columns = [Column([Page(2, int32(1, 2), [0, 1], [3, 3])], rep, 3, ("m", "key_value", "key")),
               Column([Page(2, int32(3), [0, 1], [3, 2])], 1, 3, ("m", "key_value", "value"))]  # fmt: skip
    found = read(make(elements, columns, 1))
    if key == OPTIONAL:
        assert found.to_pydict() == {"m": [[(1, 3), (2, None)]]}
    else:
        assert found.to_pydict()["m"] in (
            [[{"key": [1], "value": 3}, {"key": [2], "value": None}]],
            [{"key_value": [{"key": [1], "value": 3}, {"key": [2], "value": None}]}],
        )


def test_a_null_among_the_keys() -> None:
    elements = [group("root", None, 1), group("m", OPTIONAL, 1, converted_type=MAPS), group("key_value", REPEATED, 2),
                leaf("key", OPTIONAL), leaf("value", OPTIONAL)]  # fmt: skip
    columns = [Column([Page(2, int32(1), [0, 1], [3, 2])], 1, 3, ("m", "key_value", "key")),
               Column([Page(2, int32(3), [0, 1], [3, 2])], 1, 3, ("m", "key_value", "value"))]  # fmt: skip
    with pytest.raises(CorruptFileError, match=r"the map has 1 null key.*column m"):
        read(make(elements, columns, 1))


def test_names_that_meet_twice() -> None:
    """Two columns of one name: each is read."""
    data = make([group("root", None, 2), X, X], [FLAT, Column([Page(3, int32(4, 5, 6))])], 3)
    found = read(data)
    assert [c.to_pylist() for c in found.columns] == [[1, 2, 3], [4, 5, 6]]


# ---- levels that do not fit

NESTED = [group("root", None, 1), group("l", OPTIONAL, 1, converted_type=LISTS), group("list", REPEATED, 1),
          leaf("element", OPTIONAL)]  # fmt: skip
PATH = ("l", "list", "element")


def nested(*pages: Page, rows: int, num_values: int | None = None) -> bytes:
    return make(NESTED, [Column(pages, 1, 3, PATH, num_values=num_values)], rows)


LEVELS: dict[str, bytes] = {
    "starts inside a row": nested(Page(3, int32(1, 2, 3), [1, 0, 0], [3, 3, 3]), rows=2),
    "fewer rows than claimed": nested(Page(3, int32(1, 2, 3), [0, 1, 0], [3, 3, 3]), rows=3),
    "more rows than claimed": nested(Page(3, int32(1, 2, 3), [0, 0, 0], [3, 3, 3]), rows=2),
    "an item of a list that is null": nested(Page(3, int32(1, 2), [0, 1, 0], [3, 0, 3]), rows=2),
    "an item of a list that is empty": nested(Page(3, int32(1, 2), [0, 1, 0], [1, 3, 3]), rows=2),
    "repetition beyond its maximum": nested(Page(3, int32(1, 2, 3), b"\2\3\2\1\2\0", [3, 3, 3]), rows=2),
    "fewer definition levels than values": nested(Page(3, int32(1, 2, 3), [0, 1, 0], [3, 3]), rows=2),
    "fewer repetition levels than values": nested(Page(3, int32(1, 2, 3), [0, 1], [3, 3, 3]), rows=2),
    "levels that end inside a run": nested(Page(3, int32(1, 2, 3), [0, 1, 0], b"\6"), rows=2),
    "a run without end": nested(Page(3, int32(1, 2, 3), [0, 1, 0], b"\xff\xff\xff\xff\xff\xff\xff"), rows=2),
    "fewer values than levels say": nested(Page(3, int32(1), [0, 1, 0], [3, 3, 3]), rows=2),
    "fewer values in the page than in the chunk": nested(Page(1, int32(1), [0], [3]), rows=1, num_values=2),
    "more values in the page than in the chunk": nested(Page(2, int32(1, 2), [0, 0], [3, 3]), rows=2, num_values=1),
    "no levels at all": nested(Page(3, int32(1, 2, 3)), rows=3),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_do_not_fit(name: str) -> None:
    with pytest.raises(CorruptFileError, match=r"column l(\.list\.element)?"):
        read(LEVELS[name])


DEEP = [*NESTED[:3], group("element", OPTIONAL, 1, converted_type=LISTS), leaf("array", REPEATED)]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_an_item_below_a_list_that_is_not_there(level: int) -> None:
    """It does not become one of the list before."""
    page = Page(3, int32(1, 2), [0, 0, 2], [4, level, 4])
    with pytest.raises(CorruptFileError, match="null, empty or missing"):
        read(make(DEEP, [Column([page], 2, 4, ("l", "list", "element", "array"))], 2))


def test_levels_that_start_inside_a_row_are_named() -> None:
    with pytest.raises(CorruptFileError, match="first repetition level is 1"):
        read(LEVELS["starts inside a row"])


@pytest.mark.parametrize("level", [2, 3])
def test_a_definition_level_beyond_the_schema(level: int) -> None:
    """Two bits hold 3; the schema has levels 0 to 2."""
    elements = [group("root", None, 1), group("g", OPTIONAL, 1), leaf("x", OPTIONAL)]
    data = make(elements, [Column([Page(2, int32(1, 2), None, [2, level])], 0, 2, ("g", "x"))], 2)
    if level == 2:
        assert read(data).to_pydict() == {"g": [{"x": 1}, {"x": 2}]}
        return
    with pytest.raises(CorruptFileError, match=r"bad levels: .*3 is beyond the largest allowed, 2.*column g\.x"):
        read(data)


def test_fields_of_listed_structs_that_disagree() -> None:
    """Two items by one leaf, one by the other."""
    elements = [group("root", None, 1), group("l", OPTIONAL, 1, converted_type=LISTS), group("list", REPEATED, 1),
                group("element", REQUIRED, 2), leaf("x", REQUIRED), leaf("y", REQUIRED)]  # fmt: skip
    path = ("l", "list", "element")
    columns = [Column([Page(2, int32(1, 2), [0, 1], [2, 2])], 1, 2, (*path, "x")),
               Column([Page(1, int32(1), [0], [2])], 1, 2, (*path, "y"))]  # fmt: skip
    with pytest.raises(CorruptFileError, match="l"):
        read(make(elements, columns, 1))


# ---- leaves of one group that tell different things of it: whose word would count?

STRUCT = [group("root", None, 1), group("s", OPTIONAL, 2), leaf("a", OPTIONAL), leaf("b", OPTIONAL)]


def struct_of_two(a: list[int], b: list[int]) -> bytes:
    pages = [Page(3, int32(*range(levels.count(2))), None, levels) for levels in (a, b)]
    return make(STRUCT, [Column([p], 0, 2, ("s", n)) for p, n in zip(pages, "ab", strict=True)], 3)


@pytest.mark.parametrize("b", [[2, 1, 2], [0, 0, 2], [2, 0, 0]], ids=["there", "null", "null behind"])
def test_fields_that_disagree_whether_the_struct_is_null(b: list[int]) -> None:
    data = struct_of_two([2, 0, 1], b)
    with pytest.raises(CorruptFileError, match=r"those of s\.a disagree.*row group 0, column s\.b"):
        read(data)
    for one, levels in (("s.a", [2, 0, 1]), ("s.b", b)):  # each alone is a column like any other
        found = read(data, columns=[one]).to_pydict()["s"]
        assert [v is None for v in found] == [level == 0 for level in levels]


def test_fields_that_agree() -> None:
    found = read(struct_of_two([2, 0, 1], [1, 0, 2])).to_pydict()["s"]
    assert found == [{"a": 0, "b": None}, None, {"a": None, "b": 0}]


LISTED = [group("root", None, 1), group("l", OPTIONAL, 1, converted_type=LISTS), group("list", REPEATED, 1),
          group("element", OPTIONAL, 2), leaf("x", OPTIONAL), leaf("y", REPEATED)]  # fmt: skip


@pytest.mark.parametrize(
    ("rep", "definition"),
    [
        ([0, 0, 1], [4, 4, 4]),
        ([0, 1, 0], [4, 0, 4]),
        ([0, 1, 0], [4, 2, 4]),
        ([0, 2, 1], [4, 4, 4]),
        ([0, 2, 0, 1], [4, 4, 4, 4]),
    ],
    ids=["lengths", "null list", "null struct", "fewer rows", "lengths below deeper lists"],
)
def test_fields_of_listed_structs_that_tell_of_other_lists(rep: list[int], definition: list[int]) -> None:
    path = ("l", "list", "element")
    x = Column([Page(3, int32(1, 2, 3), [0, 1, 0], [4, 4, 4])], 1, 4, (*path, "x"))
    y = Column([Page(len(rep), int32(*range(definition.count(4))), rep, definition)], 2, 4, (*path, "y"))
    with pytest.raises(CorruptFileError, match=r"row group 0, column l(\.list\.element\.y)?"):
        read(make(LISTED, [x, y], 2))


def test_fields_of_listed_structs_with_lists_of_their_own() -> None:
    path = ("l", "list", "element")
    x = Column([Page(4, int32(1, 2), [0, 1, 1, 0], [4, 4, 2, 0])], 1, 4, (*path, "x"))
    y = Column([Page(5, int32(5, 6), [0, 2, 1, 1, 0], [4, 4, 3, 2, 0])], 2, 4, (*path, "y"))
    expected = [[{"x": 1, "y": [5, 6]}, {"x": 2, "y": []}, None], None]
    assert read(make(LISTED, [x, y], 2)).to_pydict() == {"l": expected}


def test_keys_and_values_that_disagree() -> None:
    """The same number of both, but not of the same maps."""
    elements = [group("root", None, 1), group("m", OPTIONAL, 1, converted_type=MAPS), group("key_value", REPEATED, 2),
                leaf("key", REQUIRED), leaf("value", OPTIONAL)]  # fmt: skip
    for rep in ([0, 1, 0], [0, 0, 1]):
        columns = [Column([Page(3, int32(1, 2, 3), [0, 1, 0], [2, 2, 2])], 1, 2, ("m", "key_value", "key")),
                   Column([Page(3, int32(4, 5, 6), rep, [3, 3, 3])], 1, 3, ("m", "key_value", "value"))]  # fmt: skip
        data = make(elements, columns, 2)
        if rep == [0, 1, 0]:
            assert read(data).to_pydict() == {"m": [[(1, 4), (2, 5)], [(3, 6)]]}
        else:
            with pytest.raises(CorruptFileError, match=r"disagree.*column m\.key_value\.value"):
                read(data)


# ---- levels in the deprecated encoding BIT_PACKED


def bit_packed(levels: list[int], width: int) -> bytes:
    """From the most significant bit on (Encodings.md)."""
    bits = "".join(f"{level:0{width}b}" for level in levels)
    return bytes(int(bits[k : k + 8].ljust(8, "0"), 2) for k in range(0, len(bits), 8))


BIT_PACKED_ROWS = {"l": [[1, 2], None, [], [3, None, 4, 5], [6]]}


def bit_packed_file() -> bytes:
    rep, definition = [0, 1, 0, 0, 0, 1, 1, 1, 0], [3, 3, 0, 1, 3, 2, 3, 3, 3]
    page = Page(9, int32(*range(1, 7)), bit_packed(rep, 1), bit_packed(definition, 2), level_encoding=BIT_PACKED)
    return nested(page, rows=5)


def test_bit_packed_levels() -> None:
    assert read(bit_packed_file()).to_pydict() == BIT_PACKED_ROWS


@pytest.mark.slow
@pytest.mark.spark
def test_bit_packed_levels_as_spark_reads_them(spark: Any, tmp_path: Path) -> None:
    """parquet-java takes the bits as Encodings.md says (Spark's own reader and the other peers do not read it)."""
    path = tmp_path / "t.parquet"
    path.write_bytes(bit_packed_file())
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        rows = spark.read.parquet(str(path)).collect()
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert [row["l"] for row in rows] == BIT_PACKED_ROWS["l"]


def test_bit_packed_levels_that_do_not_fit() -> None:
    short = Page(90, int32(*range(6)), bit_packed([0] * 90, 1), b"\xff", level_encoding=BIT_PACKED)
    with pytest.raises(CorruptFileError, match=r"column l\.list\.element"):
        read(nested(short, rows=90))
    elements = [group("root", None, 1), group("g", OPTIONAL, 1), leaf("x", OPTIONAL)]
    page = Page(2, int32(1, 2), None, bit_packed([2, 3], 2), level_encoding=BIT_PACKED)
    with pytest.raises(CorruptFileError, match="level of 3, but the maximum is 2"):
        read(make(elements, [Column([page], 0, 2, ("g", "x"))], 2))
