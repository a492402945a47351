"""Extension types whose storage is not whole, or laid out otherwise: a sound table of the storage type comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq

POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])


class Point(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(POINT, "pyparq.tests.point")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Point:
        if storage != POINT:
            raise ValueError(f"not the storage of a point: {storage}")
        return cls()


@pytest.fixture
def registered() -> Any:
    pa.register_extension_type(Point())
    yield
    pa.unregister_extension_type("pyparq.tests.point")


@pytest.mark.parametrize("nested", [False, True])
def test_a_part_of_an_extension_type(registered: None, tmp_path: Path, nested: bool) -> None:
    column = pa.ExtensionArray.from_storage(Point(), pa.array([{"x": 1.0, "y": 2.0}, None], POINT))
    if nested:
        column = pa.ListArray.from_arrays([0, 2], column)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"p": column}), path)
    whole = pyparq.read_table(path).to_arrow()
    assert whole.schema == pq.read_schema(path).remove_metadata() or whole["p"].type == column.type
    name = "p.list.element.x" if nested else "p.x"
    part = pyparq.read_table(path, columns=[name]).to_arrow()
    only_x = pa.struct([("x", pa.float64())])
    assert part["p"].type == (pa.list_(only_x) if nested else only_x)
    found = part["p"].to_pylist()[0]
    assert (found[0] if nested else found) == {"x": 1.0}
    assert pa.table(pyparq.ParquetFile(path).scan([name])).schema == part.schema
    pyparq.write_table(part, tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet")["p"].to_pylist() == part["p"].to_pylist()


def test_json_as_a_dictionary(tmp_path: Path) -> None:
    path, texts = tmp_path / "a.parquet", ['{"a":1}', None, "[]", "[]"]
    pyparq.write_table({"j": texts}, path, schema={"j": "json?"})
    table = pyparq.read_table(path, read_dictionary=["j"])
    assert table.to_arrow()["j"].type == pa.dictionary(pa.int32(), pa.string())
    assert table.to_arrow()["j"].to_pylist() == table.to_polars()["j"].to_list() == texts
    assert [row["j"] for row in table.to_pylist()] == texts
    assert [None if pd.isna(v) else v for v in table.to_pandas()["j"]] == texts
    pyparq.write_table(table, tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet")["j"].to_pylist() == texts


@pytest.mark.parametrize("storage", ["smallest", "binary", "fixed"])
@pytest.mark.parametrize("inner", [pa.decimal128(9, 2), pa.list_(pa.decimal128(9, 2), 1)], ids=["plain", "fixed list"])
@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
def test_list_views_of_decimals_in_any_storage(tmp_path: Path, storage: str, inner: Any, view: Any) -> None:
    value: Any = 1 if pa.types.is_decimal(inner) else [2]
    rows = pa.table({"c": pa.array([[value], None, []], view(inner))})
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    for path in paths:
        pyparq.write_table(rows, path, decimal_storage=storage)
    assert pyparq.dataset(paths).read().to_arrow()["c"].to_pylist() == rows["c"].to_pylist() * 2
    pyparq.rewrite(paths[0], tmp_path / "r.parquet")
    assert pyparq.read_table(tmp_path / "r.parquet").to_arrow()["c"].to_pylist() == rows["c"].to_pylist()
