"""Keys of metadata in the footer and in ARROW:schema, where pyarrow and pandas look for those of a table."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq.errors import UnsupportedError

RICH = pa.table({
    "x": [1], "c": pa.array(["u"]).dictionary_encode(), "d": pa.array([1], pa.duration("ms")),
    "l": pa.array([[{"a": 1}]]), "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
    "t": pa.array([1], pa.timestamp("s", "America/New_York")), "dec": pa.array([1], pa.decimal256(50, 2)),
    "w": pa.array([[1, 2]], pa.list_(pa.int16(), 2)), "v": pa.array(["a"], pa.string_view()), "n": pa.nulls(1),
    "time": pa.array([1], pa.time64("ns")), "h": pa.array([1.5], pa.float16()), "b": pa.array([b"ab"], pa.binary(2)),
    "o": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), ["u"], ordered=True),
}).append_column(pa.field("r", pa.int64(), False, {"unit": "m"}), pa.array([4]))  # fmt: skip


def stored_schema(path: Path) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(pq.read_metadata(path).metadata[b"ARROW:schema"])))


@pytest.mark.parametrize("writer", [pq, pyparq], ids=["pyarrow", "pyparq"])
def test_keys_change_in_the_arrow_schema_too(tmp_path: Path, writer: Any) -> None:
    """pyarrow and pandas take a table's keys from there. Everything else in it stays as it is."""
    path = tmp_path / "e.parquet"
    writer.write_table(RICH.replace_schema_metadata({"day": "1", "owner": "a secret", "kept": "k"}), path)
    before = stored_schema(path).remove_metadata()
    values = pq.read_table(path).to_pydict()
    assert pyparq.edit_metadata(path, remove=["owner"], update={"day": "9", "new": "n" * 5000, "raw": b"\xff"}) == 1
    keys = {b"day": b"9", b"kept": b"k", b"new": b"n" * 5000, b"raw": b"\xff"}
    footer = {k: v for k, v in pq.read_metadata(path).metadata.items() if k != b"ARROW:schema"}
    assert footer == keys
    assert pq.read_schema(path).metadata == keys
    assert pyparq.read_schema(path).metadata == keys
    assert stored_schema(path).remove_metadata().equals(before, check_metadata=True)
    assert b"a secret" not in base64.b64decode(pq.read_metadata(path).metadata[b"ARROW:schema"])
    assert pq.read_table(path).to_pydict() == values
    assert pyparq.edit_metadata(path, remove=["owner"], update={"day": "9"}) == 0


def test_a_key_that_stands_in_the_arrow_schema_alone(tmp_path: Path) -> None:
    """As older versions of pyparq left it."""
    path = tmp_path / "e.parquet"
    pq.write_table(RICH.replace_schema_metadata({"owner": "a secret"}), path)
    whole = pq.read_metadata(path).metadata[b"ARROW:schema"]
    pq.write_table(RICH.replace_schema_metadata(None), path, store_schema=False)
    pyparq.edit_metadata(path, update={"ARROW:schema": whole})
    assert pq.read_schema(path).metadata == {b"owner": b"a secret"}
    assert pyparq.edit_metadata(path, remove=["owner"]) == 1
    assert pq.read_schema(path).metadata is None
    assert pq.read_table(path).schema.field("t").type.tz == "America/New_York"


def test_an_arrow_schema_that_cannot_be_stored_anew(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    union = pa.schema({"x": pa.dense_union([pa.field("a", pa.int64())])}, {"owner": "a secret"})
    pq.write_table(pa.table({"x": [1]}), path, store_schema=False)
    pyparq.edit_metadata(path, update={"ARROW:schema": base64.b64encode(union.serialize().to_pybytes())})
    before = path.read_bytes()
    with pytest.raises(UnsupportedError, match=r"ARROW:schema.*column x") as error:
        pyparq.edit_metadata(path, remove=["owner"])
    assert error.value.file == str(path)
    assert path.read_bytes() == before
    pyparq.edit_metadata(path, remove=["owner", "ARROW:schema"])
    assert b"secret" not in path.read_bytes()
    pyparq.edit_metadata(path, update={"ARROW:schema": "no base64", "a": "1"}, remove=["owner"])
    assert pyparq.read_metadata(path).metadata == {b"ARROW:schema": b"no base64", b"a": b"1"}
