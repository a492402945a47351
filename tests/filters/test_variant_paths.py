"""Filters on paths of Variants: the same rows however each file has shredded them, and no more bytes than needed."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyparq
from pyparq import col
from pyparq.errors import ColumnNotFoundError, FilterError

SCHEMA = pyparq.schema({"id": "int64", "v": "variant?"})
_MISSING = object()


def write(path: Path, values: list[Any], shredding: Any = None, first: int = 0, **options: Any) -> Path:
    rows = [{"id": first + k, "v": value} for k, value in enumerate(values)]
    pyparq.write_table(rows, path, schema=SCHEMA, shredding=shredding, **options)
    return path


def ids(source: Any, filters: Any) -> list[int]:
    found: list[int] = pyparq.read_table(source, columns=["id"], filters=filters)["id"].to_pylist()
    assert pyparq.dataset(source).scan(filters=filters).count() == len(found)
    return found


# ---- an oracle


def at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _MISSING
        value = value[name]
    return value


def family(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    return {str: "text", bytes: "text", dt.date: "date"}.get(type(value), "other")


def compared(value: Any, op: str, literal: Any) -> bool:
    """Whether it is true: values of other kinds, objects, arrays and nulls make it unknown."""
    if value is _MISSING or value is None or family(value) != family(literal) or family(value) == "other":
        return False
    a, b = (x.encode() if isinstance(x, str) else x for x in (value, literal))
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def expected(values: list[Any], path: tuple[str, ...], op: str, literal: Any) -> list[int]:
    found = [at(value, path) for value in values]
    if op == "is_null":
        return [k for k, value in enumerate(found) if value is _MISSING or value is None]
    if op == "is_not_null":
        return [k for k, value in enumerate(found) if value is not _MISSING and value is not None]
    if op == "in":
        return [k for k, value in enumerate(found) if any(compared(value, "==", one) for one in literal)]
    if op == "not in":
        return [k for k, value in enumerate(found) if all(compared(value, "!=", one) for one in literal)]
    if op == "starts_with":
        raw = [v.encode() if isinstance(v, str) else v for v in found]
        return [k for k, value in enumerate(raw) if isinstance(value, bytes) and value.startswith(literal.encode())]
    return [k for k, value in enumerate(found) if compared(value, op, literal)]


def expression(path: tuple[str, ...], op: str, literal: Any) -> Any:
    column = col("v", *path)
    if op in ("is_null", "is_not_null"):
        return getattr(column, op)()
    if op == "in":
        return column.isin(literal)
    if op == "not in":
        return ~column.isin(literal)
    if op == "starts_with":
        return column.starts_with(literal)
    return {
        "==": column == literal, "!=": column != literal, "<": column < literal, "<=": column <= literal,
        ">": column > literal, ">=": column >= literal,
    }[op]  # fmt: skip


SHREDDINGS: list[Any] = [
    None, "auto", {"v": {"a": "int64"}}, {"v": {"a": {"b": "string"}}}, {"v": {"a": {"b": "int64", "c": None}}},
    {"v": {"a": {"b": "decimal(9,2)"}, "c": "date"}}, {"v": "int64"}, {"v": {"a": None}}, {"v": {"a": ["int8"]}},
    {"v": {"a": {"b": {"c": "bool"}}}}, {"v": {"a": {"b": "float64"}}}, {"v": {"a": "binary", "c": {"a": "int8"}}},
]  # fmt: skip


def some_value(rng: random.Random, depth: int = 0) -> Any:
    if depth < 3 and rng.random() < 0.75:
        return {name: some_value(rng, depth + 1) for name in "abc" if rng.random() < 0.6}
    return rng.choice([
        None, True, False, rng.randrange(-5, 5), rng.randrange(-5, 5) / 2, Decimal(rng.randrange(-500, 500)).scaleb(-2),
        Decimal(rng.randrange(-5, 5)), rng.choice(["", "x", "xy", "y"]), b"x", dt.date(2024, 1, rng.randrange(1, 4)),
        [1, 2], 10**18, 1 << 40,
    ])  # fmt: skip


LITERALS = [
    0,
    1,
    -3,
    1.5,
    -0.5,
    Decimal("0.25"),
    Decimal("2.00"),
    "x",
    "xy",
    "",
    True,
    dt.date(2024, 1, 2),
    10**18,
    300,
]


@pytest.mark.parametrize("seed", [4, *(pytest.param(k, marks=pytest.mark.slow) for k in range(5, 25))])
def test_random_files_that_are_shredded_in_different_ways(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        values: list[Any] = []
        for part in range(4):
            some = [None if rng.random() < 0.1 else some_value(rng) for _ in range(rng.randrange(5, 40))]
            options = {"row_group_size": rng.choice([6, 100]), "max_rows_per_page": 3}
            write(folder / f"{part}.parquet", some, rng.choice(SHREDDINGS), len(values), **options)
            values += some
        for _ in range(12):
            path = rng.choice([("a",), ("a", "b"), ("a", "b", "c"), ("c",), ("c", "a"), ("none",), ("a", "none")])
            op = rng.choice(["==", "!=", "<", "<=", ">", ">=", "is_null", "is_not_null", "in", "not in", "starts_with"])
            literal = rng.sample(LITERALS, 3) if op.endswith("in") else rng.choice(LITERALS)
            literal = "x" if op == "starts_with" else literal
            asked = expression(path, op, literal)
            found = expected(values, path, op, literal)
            assert ids(folder, asked) == found, (path, op, literal, [at(v, path) for v in values])
            both = asked | (col("id") < 5)
            assert ids(folder, both) == sorted({*found, *range(min(5, len(values)))})


def test_what_pruned_and_what_was_read(tmp_path: Path) -> None:
    values: list[Any] = [{"user": {"id": k, "name": f"name {k}" * 3}, "n": k % 10} for k in range(4000)]
    for k in range(2000, 2010):
        values[k]["user"]["id"] = f"s{k}"
    leaf = ("v", "typed_value", "user", "typed_value", "id", "typed_value")
    path = write(
        tmp_path / "b.parquet", values, {"v": {"user": {"id": "int64"}}}, row_group_size=1000, compression="none",
        use_dictionary=False, bloom_filters=[leaf],
    )  # fmt: skip
    user = col("v", "user", "id")
    with pyparq.ParquetFile(path) as file:
        told = file.scan(["id"], filters=user == 3500).explain()
        statistics = next(stage for stage in told.stages if stage.name == "statistics")
        # The row group in which some ids are texts stays: only its values can tell.
        assert (statistics.row_groups_before, statistics.row_groups_after) == (4, 2)
        assert "v.typed_value.user.typed_value.id.typed_value == 3500" in str(told)
    assert ids(path, user == 3500) == [3500]
    assert ids(path, user == 2005) == []
    assert ids(path, user == "s2003") == [2003]
    assert ids(path, (user == 5) | (user == "s2003")) == [5, 2003]
    # A Bloom filter rules out a number that lies within the bounds.
    gaps = [{"a": 2 * k} for k in range(100)]
    write(tmp_path / "g.parquet", gaps, {"v": {"a": "int64"}}, use_dictionary=False,
          bloom_filters=[("v", "typed_value", "a", "typed_value")])  # fmt: skip
    with pyparq.ParquetFile(tmp_path / "g.parquet") as file:
        stages = file.scan(filters=col("v", "a") == 51).explain().stages
        assert [s.row_groups_after for s in stages if s.name.startswith("bloom")] == [0], stages


def test_only_the_column_of_the_path_is_read(tmp_path: Path) -> None:
    """Of the Variant exactly the bytes of the typed column are read, in one of three row groups."""
    rng = random.Random(1)
    values: list[Any] = [
        {"user": {"id": k // 1000 << 50 | rng.getrandbits(48), "name": "n" * 50}, "x": [k]} for k in range(3000)
    ]
    path = write(
        tmp_path / "c.parquet", values, {"v": {"user": {"id": "int64", "name": "string"}}}, compression="none",
        use_dictionary=False, row_group_size=1000, write_page_index=False,
    )  # fmt: skip
    with pyparq.ParquetFile(path, coalesce_gap=0, tail_size=8) as file:
        group = file.metadata.row_group(2)
        sizes = {
            group.column(k).path_in_schema: group.column(k).total_compressed_size for k in range(group.num_columns)
        }

    def bytes_read(filters: Any) -> int:
        with pyparq.ParquetFile(path, coalesce_gap=0, tail_size=8) as file:
            return int(file.scan(["id"], filters=filters).explain().bytes_fetched)

    all_rows = bytes_read(col("v", "user", "id") >= 2 << 50)
    assert all_rows == bytes_read(col("id") >= 2000), "statistics say that all rows of the last row group match"
    beside = bytes_read(col("v", "user", "id") > (2 << 50) + (1 << 47)) - all_rows
    assert beside == sizes["v.typed_value.user.typed_value.id.typed_value"]


def test_a_stored_column_comes_first(tmp_path: Path) -> None:
    values: list[Any] = [{"value": 1}, {"value": 2}, 7]
    path = write(tmp_path / "s.parquet", values, {"v": {"value": "int64"}})
    assert ids(path, col("v", "typed_value", "value", "typed_value") == 2) == [1]
    assert ids(path, col("v", "value").is_not_null()) == [2]  # the column of that name


@pytest.mark.parametrize("shredding", [None, {"v": {"a": "int64"}}])
def test_what_cannot_be_asked(shredding: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "e.parquet", [{"a": 1}], shredding)
    for wrong in (col("v", "a") == object(), col("v", "a").contains(1), col("v", "a") > col("id")):
        with pytest.raises((FilterError, ColumnNotFoundError)):
            ids(path, wrong)
    with pytest.raises(ColumnNotFoundError):
        ids(path, col("w", "a") == 1)


def computed_cases(path: tuple[str, ...]) -> list[tuple[Any, Any]]:
    """Filters, and what each asks of a value. For one of another kind each is unknown."""
    value, dotted = col("v", *path), ".".join(("v", *path))
    brackets = "v" + "".join(f"['{name}']" for name in path)
    number, text = (lambda v: family(v) == "number"), (lambda v: isinstance(v, str))

    def is_(kind: Any, holds: Any) -> Any:
        return lambda v: v is not _MISSING and v is not None and kind(v) and holds(v)

    def raw(v: Any) -> bytes:
        return bytes(v.encode()) if isinstance(v, str) else bytes(v)

    def texts(holds: Any) -> Any:
        return is_(lambda v: isinstance(v, (str, bytes)), lambda v: holds(raw(v)))

    return [
        (value + 1 > 2, is_(number, lambda v: v > 1)), (~(value + 1 > 2), is_(number, lambda v: v <= 1)),
        (f"{dotted} + 1 > 2", is_(number, lambda v: v > 1)), (f"{brackets} > 1", is_(number, lambda v: v > 1)),
        (f"{dotted} = 'x'", texts(lambda v: v == b"x")), (f"lower({dotted}) LIKE '%Y'", lambda v: False),
        (value.like("%y"), texts(lambda v: v[-1:] == b"y")), (~value.like("%y"), texts(lambda v: v[-1:] != b"y")),
        (f"{dotted} LIKE 'x%'", texts(lambda v: v[:1] == b"x")),
        (value.upper() == "XY", is_(text, lambda v: v == "xy")),
        (f"{dotted} BETWEEN -1 AND 2", is_(number, lambda v: -1 <= v <= 2)),
        (f"{dotted} IN (1, 'y')", is_(lambda v: not isinstance(v, bool), lambda v: v in (1, "y", b"y"))),
        (f"{dotted} IS NULL", lambda v: v is _MISSING or v is None),
        (f"NOT {dotted} = 1", is_(number, lambda v: v != 1)),
        (f"year({dotted}) = 2024", is_(lambda v: isinstance(v, dt.date), lambda v: True)),
    ]  # fmt: skip


def test_computed_values_and_sql_text(tmp_path: Path) -> None:
    rng = random.Random(11)
    values: list[Any] = []
    for part in range(3):
        some = [None if rng.random() < 0.1 else some_value(rng) for _ in range(20)]
        some += [{"a": v} for v in (0, 2, 1.5, Decimal("2.50"), "x", "xy", b"y", True, dt.date(2024, 1, 2))]
        write(tmp_path / f"{part}.parquet", some, SHREDDINGS[2 * part], len(values), row_group_size=20)
        values += some
    for path in (("a",), ("a", "b")):
        for filters, holds in computed_cases(path):
            wanted = [k for k, value in enumerate(values) if holds(at(value, path))]
            assert ids(tmp_path, filters) == wanted, (filters, path)


def test_columns_are_whole_variants(tmp_path: Path) -> None:
    path = write(tmp_path / "e.parquet", [{"a": 1}], {"v": {"a": "int64"}})
    for source in (path, tmp_path):
        with pytest.raises(ColumnNotFoundError, match=r"'v\.a' is a path into the Variant 'v'.*ask for 'v'"):
            pyparq.read_table(source, columns=["v.a"])


def test_bytes_that_are_no_variant(tmp_path: Path) -> None:
    type_ = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    field = pa.field("v", type_, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    good = {"metadata": b"\x11\x00\x00", "value": b"\x0c\x05"}
    for bad in ({"metadata": b"\x11\x00\x00", "value": b"\xfc"}, {"metadata": b"", "value": b"\x0c\x05"}):
        table = pa.table([pa.array([good, bad], type_)], schema=pa.schema([field]))
        pyparq.write_table(table, tmp_path / "t.parquet")
        with pytest.raises(pyparq.ParquetError, match="Variant"):
            pyparq.read_table(tmp_path / "t.parquet", filters=col("v", "a", "b") == 1)
