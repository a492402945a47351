"""Columns in ALP: written on request and read again, in every shape; pages of others' making; damaged ones."""

from __future__ import annotations

import io
from typing import Any

import alp_reference as reference
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from handmade import OPTIONAL, Column, Page, group, leaf, make
from hostile_pages import data_page, hand_made

import pyparq
from pyparq import col
from pyparq.errors import CorruptFileError, OptionError, ParquetError
from pyparq.format import ttypes as tt

ALP = 10
HARD = [0.1, -0.0, float("inf"), float("nan"), 1 / 3, 5e-324, 1e38, 123.45]


def doubles(n: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(n)
    values = np.round(rng.uniform(-1000, 1000, n), 2)
    values[rng.integers(0, n, n // 50)] = rng.choice(HARD, n // 50)
    return values


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    names = {"column_encoding": dict.fromkeys(options.pop("names", table.column_names), "ALP")}
    pyparq.write_table(table, sink, **names, **options)
    return sink.getvalue()


def same_bits(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    """Equal with NaN and -0.0 told apart: the bytes, nulls as zero."""
    one, other = (np.asarray(pc.fill_null(x.combine_chunks(), 0.0)) for x in (a, b))
    return one.tobytes() == other.tobytes() and a.is_null().equals(b.is_null())


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_flat_columns(version: str, codec: str) -> None:
    n = 50_000
    values = doubles(n)
    nulls = np.random.default_rng(1).random(n) < 0.3
    table = pa.table(
        {
            "d": values, "f": values.astype(np.float32), "dn": pa.array(values, mask=nulls),
            "fn": pa.array(values.astype(np.float32), mask=nulls), "none": pa.nulls(n, pa.float64()),
        }
    )  # fmt: skip
    data = written(table, data_page_version=version, compression=codec)
    with pyparq.ParquetFile(data) as file:
        assert all("ALP" in file.metadata.row_group(0).column(k).encodings for k in range(5))
        back = file.read().to_arrow()
    assert all(same_bits(back[name], table[name]) for name in table.column_names)
    assert pyparq.verify(data).ok


def test_rows_of_pages() -> None:
    """Filters and row ranges decode only the vectors that hold a wanted value."""
    n = 30_000
    values = doubles(n)
    table = pa.table({"i": np.arange(n), "d": values, "dn": pa.array(values, mask=np.arange(n) % 3 == 0)})
    data = written(table, names=["d", "dn"], max_rows_per_page=7000)
    for wanted in ([5], [1023, 1024, 6999, 7000], list(range(2000, 4100)), [n - 1], list(range(0, n, 997))):
        found = pyparq.read_table(data, filters=col("i").isin(wanted)).to_arrow()
        expected = table.take(wanted)
        assert all(same_bits(found[name], expected[name]) for name in ("d", "dn"))
    found = pyparq.read_table(data, filters=col("d") > 990)
    assert found.num_rows == int((~(values <= 990)).sum())  # NaN is above all numbers
    with pyparq.ParquetFile(data) as file:
        assert same_bits(file.take([29_999, 3, 8_000]).to_arrow()["d"], table["d"].take([29_999, 3, 8_000]))


def test_nested_columns() -> None:
    rows = [[{"x": 1.5}, None, {"x": float(k)}] if k % 3 else (None if k % 2 else []) for k in range(5000)]
    table = pa.table({"l": pa.array(rows, pa.list_(pa.struct([("x", pa.float32())])))})
    data = io.BytesIO()
    pyparq.write_table(table, data, column_encoding={("l", "list", "element", "x"): "ALP"})
    with pyparq.ParquetFile(data.getvalue()) as file:
        assert "ALP" in file.metadata.row_group(0).column(0).encodings
        assert file.read().to_arrow().equals(table)


def test_only_floating_point_numbers() -> None:
    for type_ in (pa.int64(), pa.string(), pa.float16(), pa.bool_()):
        with pytest.raises(OptionError, match="ALP cannot hold"):
            written(pa.table({"x": pa.nulls(3, type_)}))


def test_never_chosen() -> None:
    """Few readers know ALP: it is for those who ask for it, however well it would pay."""
    data = io.BytesIO()
    pyparq.write_table(pa.table({"d": np.round(np.random.default_rng(5).uniform(0, 9999, 5000), 2)}), data)
    with pyparq.ParquetFile(data.getvalue()) as file:
        assert "ALP" not in file.metadata.row_group(0).column(0).encodings


def foreign_file(body: bytes, count: int, type_: int = 5) -> bytes:
    element = tt.SchemaElement(name="n", type=type_, repetition_type=0)
    return hand_made(element, count, [(data_page(count, ALP, len(body)), body)])


@pytest.mark.parametrize(("width", "type_"), [(4, 4), (8, 5)])
def test_pages_of_the_reference(width: int, type_: int) -> None:
    """Vectors of another size and other pairs than ours, as the text of the format lets a writer make them."""
    values = doubles(1000).astype([None, np.float32, np.float64][width // 4])
    for log in (3, 7, 15):
        body = reference.encode(list(values), width, log, [(2, 0), (9, 7), (0, 0)])
        found = pyparq.read_table(foreign_file(body, 1000, type_)).to_numpy("n")
        assert found.tobytes() == values.tobytes()


def test_optional_values_of_the_reference() -> None:
    """`num_elements` counts what is not null."""
    body = reference.encode([1.25, float("nan"), -3.5], 8, 3, [(2, 0)])
    column = Column([Page(5, body, definition=[1, 0, 1, 0, 1], encoding=ALP)], max_def=1, type_=5)
    data = make([group("root", None, 1), leaf("x", OPTIONAL, 5)], [column], 5)
    found = pyparq.read_table(data)["x"].to_pylist()
    assert found[0::2] == [1.25, pytest.approx(float("nan"), nan_ok=True), -3.5]
    assert found[1::2] == [None, None]


def test_wrong_types_are_refused() -> None:
    body = reference.encode([1.25], 8, 3, [(2, 0)])
    for type_ in (1, 2, 6):
        with pytest.raises(CorruptFileError, match=r"ALP cannot hold .*column n, page 0"):
            pyparq.read_table(foreign_file(body, 1, type_))


def test_damage_is_named(tmp_path: Any) -> None:
    body = bytearray(reference.encode([1.25, 2.5, 7.75], 8, 3, [(2, 0)]))
    body[11] = 19
    path = tmp_path / "bad.parquet"
    path.write_bytes(foreign_file(bytes(body), 3))
    place = r"bad\.parquet.*row group 0.*column n.*page 0"
    with pytest.raises(CorruptFileError, match=rf"bad ALP data: vector 0 has exponent 19.*{place}"):
        pyparq.read_table(path)


def test_random_damage() -> None:
    """Whole pages in a file: an error with its place, or values."""
    rng = np.random.default_rng(6)
    good = reference.encode(list(doubles(200)), 8, 5, [(2, 0), (3, 1)])
    refused = []
    for _ in range(400):
        body = bytearray(good)
        for at in rng.integers(0, len(body) if rng.random() < 0.5 else 60, 3):
            body[at] = rng.integers(256)
        try:
            assert pyparq.read_table(foreign_file(bytes(body), 200)).num_rows == 200
        except ParquetError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert all("column n, page 0" in said for said in refused)
