"""Files that lay out one type in different ways, read as one dataset: the result is valid Arrow with the same values.

The oracle is pyarrow: ``validate(full=True)`` looks at every offset, and its cast says what the values are.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import pyparq
from pyparq import col

WORDS = ["low", None, "", "a text that is longer than twelve bytes"]
LISTS: list[Any] = [["low", None], None, [], ["a text that is longer than twelve bytes"]]


def laid_out() -> dict[str, dict[str, pa.Array]]:
    text, raw = pa.array(WORDS), pa.array(WORDS).cast(pa.binary())
    lists = pa.array(LISTS)
    return {
        "text": {
            "plain": text, "large": text.cast(pa.large_string()), "view": text.cast(pa.string_view()),
            "dictionary": text.dictionary_encode(),
            "large_dictionary": text.cast(pa.large_string()).dictionary_encode(),
        },
        "bytes": {
            "plain": raw, "large": raw.cast(pa.large_binary()), "view": raw.cast(pa.binary_view()),
            "dictionary": raw.dictionary_encode(),
        },
        "lists": {
            "plain": lists, "large": pa.array(LISTS, pa.large_list(pa.string())),
            "of_views": pa.array(LISTS, pa.list_(pa.string_view())),
            "of_large": pa.array(LISTS, pa.list_(pa.large_string())),
        },
        "structs": {
            "plain": pa.array([{"a": w} for w in WORDS]),
            "of_views": pa.array([{"a": w} for w in WORDS], pa.struct([("a", pa.string_view())])),
        },
    }  # fmt: skip


LAYOUTS = laid_out()
PAIRS = [(kind, a, b) for kind, forms in LAYOUTS.items() for a, b in permutations(forms, 2)]


def valid(table: pyparq.Table) -> pa.ChunkedArray:
    arrow = table.to_arrow()
    arrow.validate(full=True)
    return arrow.column("x")


@pytest.mark.parametrize(("kind", "first", "second"), PAIRS)
def test_a_folder_of_two_layouts(tmp_path: Path, kind: str, first: str, second: str) -> None:
    for k, name in enumerate((first, second)):
        pyparq.write_table(pa.table({"x": LAYOUTS[kind][name]}), tmp_path / f"{k}.parquet")
    data = pyparq.dataset(tmp_path)
    found = valid(data.read())
    assert found.to_pylist() == LAYOUTS[kind]["plain"].to_pylist() * 2
    streamed = pa.RecordBatchReader.from_stream(data.scan()).read_all()
    streamed.validate(full=True)
    assert streamed.column("x").to_pylist() == found.to_pylist()


def declared() -> dict[str, pa.Array]:
    seconds = pa.array([1, None, 0], pa.timestamp("s"))
    price = pa.array([Decimal("1.25"), None, Decimal("-2.50")], pa.decimal128(9, 2))
    return {
        "text": pa.array(["b", None, "a"]), "view": pa.array(["b", None, "a"], pa.string_view()),
        "large": pa.array(["b", None, "a"], pa.large_string()), "bytes": pa.array([b"b", None, b"a"]),
        "bytes_view": pa.array([b"b", None, b"a"], pa.binary_view()),
        "words": pa.array(["b", None, "a"]).dictionary_encode(),
        "numbers": pa.array([1, None, 0]), "narrow": pa.array([1, None, 0], pa.int8()),
        "codes": pa.array([1, None, 0]).dictionary_encode(),
        "runs": pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array([1, None, 0])),
        "price": price, "price_32": price.cast(pa.decimal32(9, 2)), "price_64": price.cast(pa.decimal64(12, 4)),
        "price_256": price.cast(pa.decimal256(40, 2)),
        "seconds": seconds, "micros": seconds.cast(pa.timestamp("us")),
        "lists": pa.array([[1], None, []]), "list_view": pa.array([[1], None, []], pa.list_view(pa.int64())),
        "days": pa.array([dt.date(2024, 3, 31), None, dt.date(1970, 1, 1)]),
        "days_in_ms": pa.array([dt.date(2024, 3, 31), None, dt.date(1970, 1, 1)], pa.date64()),
    }  # fmt: skip


DECLARED = declared()


@pytest.mark.parametrize("stored", DECLARED)
def test_a_declared_type_is_given_or_refused(tmp_path: Path, stored: str) -> None:
    path = tmp_path / "a.parquet"
    pyparq.write_table(pa.table({"x": DECLARED[stored]}), path)
    refused: list[pyparq.ParquetError] = []
    for wanted in DECLARED.values():
        try:
            table = pyparq.dataset(path, schema=pa.schema({"x": wanted.type})).read()
        except pyparq.ParquetError as error:
            refused.append(error)
            continue
        found = valid(table)
        assert found.type == wanted.type
        plain = [v.decode() if isinstance(v, bytes) else v for v in found.to_pylist()]
        if stored.startswith("days"):  # the beginning of the day, where a timestamp is asked for
            plain = [v.date() if isinstance(v, dt.datetime) else v for v in plain]
        own = [v.decode() if isinstance(v, bytes) else v for v in DECLARED[stored].to_pylist()]
        assert plain == own
    assert refused
    assert all("column x" in str(error) for error in refused)


def test_a_dictionary_cannot_be_declared_over_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for array in (pa.array([1, 0]), pa.array(["b", "a"]), DECLARED["runs"]):
        pyparq.write_table(pa.table({"x": array}), path)
        data = pyparq.dataset(path, schema=pa.schema({"x": pa.dictionary(pa.int32(), pa.string())}))
        with pytest.raises(pyparq.SchemaError, match=r"cannot make it a dictionary.*type of the values, string.*x"):
            data.read()


# ---- what metadata says of the values ------------------------------------------------------------------------------


def extended(type_: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))


IDS = [bytes(16), None, b"\xff" * 16]
MEANINGS = {
    "uuid": extended(pa.uuid(), IDS), "bool8": extended(pa.bool8(), [1, None, 0]),
    "opaque": extended(pa.opaque(pa.int32(), "type", "vendor"), [1, None, 7]),
    "json": extended(pa.json_(), ["1", None, "{}"]),
}  # fmt: skip
OTHERS = {
    "uuid": [pa.array(IDS, pa.binary(16)), pa.array(IDS, pa.binary()), pa.array([b"abc"], pa.binary(3))],
    "bool8": [pa.array([5, None], pa.int8()), pa.array([5, 300]), pa.array([0.5])],
    "opaque": [pa.array([5, 2**40]), extended(pa.opaque(pa.int64(), "type", "vendor"), [2**40])],
    "json": [pa.array(["no json"]), pa.array(["no json"], pa.large_string())],
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", MEANINGS)
def test_an_extension_type_is_that_of_all_files_or_of_none(tmp_path: Path, name: str, turned: bool) -> None:
    """The type of one file over the storage of another showed other values: int64 read as int32."""
    for k, other in enumerate(OTHERS[name]):
        folder = tmp_path / str(k)
        folder.mkdir()
        pair = [other, MEANINGS[name]] if turned else [MEANINGS[name], other]
        for j, array in enumerate(pair):
            pyparq.write_table(pa.table({"x": array}), folder / f"{j}.parquet")
        found = valid(pyparq.dataset(folder).read())
        assert not isinstance(found.type, pa.BaseExtensionType)
        storage = [a.storage if isinstance(a, pa.ExtensionArray) else a for a in pair]
        assert found.to_pylist() == [v for a in storage for v in a.to_pylist()]


@pytest.mark.parametrize("name", MEANINGS)
def test_an_extension_type_that_all_files_agree_on_stays(tmp_path: Path, name: str) -> None:
    for k, array in enumerate((MEANINGS[name], pa.nulls(2), MEANINGS[name])):
        pyparq.write_table(pa.table({"x": array}), tmp_path / f"{k}.parquet")
    assert valid(pyparq.dataset(tmp_path).read()).type == MEANINGS[name].type
    (tmp_path / "0.parquet").unlink()  # now the nulls come first
    assert valid(pyparq.dataset(tmp_path).read()).type == MEANINGS[name].type


def test_enums_of_other_values_do_not_become_nulls_in_polars(tmp_path: Path) -> None:
    for k, words in enumerate((["a", "b"], ["b", "c"])):
        pl.DataFrame({"x": pl.Series(words, dtype=pl.Enum(words))}).write_parquet(tmp_path / f"{k}.parquet")
    frame = pyparq.dataset(tmp_path).read().to_polars()
    assert frame["x"].cast(pl.String).to_list() == ["a", "b", "b", "c"]
    same = pyparq.dataset([tmp_path / "0.parquet", tmp_path / "0.parquet"]).read().to_polars()
    assert same.schema == {"x": pl.Enum(["a", "b"])}


def test_tests_without_a_literal_follow_the_type_that_is_shown(tmp_path: Path) -> None:
    """Whole numbers of one file are floats of the dataset, and a uuid of one file is bytes."""
    nans, ids = tmp_path / "nans", tmp_path / "ids"
    for folder in (nans, ids):
        folder.mkdir()
    for k, x in enumerate((pa.array([1, None], pa.int32()), pa.array([float("nan"), 2.0, None]))):
        pyparq.write_table(pa.table({"x": x}), nans / f"{k}.parquet")
    data = pyparq.dataset(nans)
    assert data.read(filters=col("x").is_nan()).num_rows == 1
    assert data.read(filters=~col("x").is_nan()).num_rows == 2
    for k, x in enumerate((MEANINGS["uuid"], pa.array(IDS, pa.binary()))):
        pyparq.write_table(pa.table({"x": x}), ids / f"{k}.parquet")
    data = pyparq.dataset(ids)
    assert data.read(filters=col("x").starts_with(b"\xff")).num_rows == 2
    assert data.read(filters=~col("x").starts_with(b"\xff")).num_rows == 2
    with pytest.raises(pyparq.FilterError, match=r"not uuid.*column x"):
        pyparq.read_table(ids / "0.parquet", filters=col("x").starts_with("ff"))


def test_many_numbers_on_columns_that_are_declared_otherwise(tmp_path: Path) -> None:
    """Many values stay an array, where the files' types allow it."""
    flags, prices = tmp_path / "flags", tmp_path / "prices"
    for folder in (flags, prices):
        folder.mkdir()
    pyparq.write_table(pa.table({"x": [True, False, None]}), flags / "0.parquet")
    data = pyparq.dataset(flags, schema=pa.schema({"x": pa.int32()}))
    assert data.read(filters=col("x").isin(list(range(1, 400)))).num_rows == 1
    assert data.read(filters=~col("x").isin(list(range(1, 400)))).num_rows == 1
    pyparq.write_table(pa.table({"x": pa.array([Decimal("1.5")], pa.decimal128(21, 2))}), prices / "0.parquet")
    pyparq.write_table(pa.table({"x": pa.array([7, 300, None], pa.int64())}), prices / "1.parquet")
    data = pyparq.dataset(prices)
    assert data.read(filters=col("x").isin(list(range(400)))).num_rows == 2
    assert data.read(filters=col("x").isin([k / 2 for k in range(800)])).num_rows == 3
    assert data.read(filters=~col("x").isin([k / 2 for k in range(800)])).num_rows == 0
