"""What single writers do that the format allows or that all peers read: the peers' answers are the right ones."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col

EXTENSION = b"\x08\xff\xff\x01"
"""The header of the format's extension field: binary, with the id -16384."""


def with_extension(raw: bytes, head: bytes = EXTENSION) -> bytes:
    (size,) = struct.unpack("<I", raw[-8:-4])
    footer = raw[-8 - size : -8]
    assert footer.endswith(b"\0")
    footer = footer[:-1] + head + bytes([14]) + b"some extension" + b"\0"
    return raw[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"


@pytest.fixture
def plain() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000), "s": [f"x{k}" for k in range(1000)]}), sink, row_group_size=300)
    return sink.getvalue()


@pytest.mark.parametrize("head", [EXTENSION, b"\x08\xfe\xff\x03", b"\x08\x01", b"\x08\x00"])
def test_fields_of_any_id_are_passed_over(tmp_path: Path, plain: bytes, head: bytes) -> None:
    """Photon of Databricks writes the extension field. Ids: -16384, 32767, -1, 0."""
    path = tmp_path / "a.parquet"
    path.write_bytes(with_extension(plain, head))
    if head == EXTENSION:
        assert pq.read_table(path).num_rows == pl.read_parquet(path).height == 1000
        assert duckdb.sql(f"select count(*) from '{path}'").fetchall() == [(1000,)]
    assert pyparq.read_table(path).to_pydict() == pyparq.read_table(io.BytesIO(plain)).to_pydict()
    assert pyparq.read_table(path, filters=col("a") == 777).to_pydict() == {"a": [777], "s": ["x777"]}
    assert pyparq.dataset(tmp_path).count(col("a") >= 990) == 10
    assert pyparq.verify(path).ok


def test_a_changed_footer_has_no_extension(tmp_path: Path, plain: bytes) -> None:
    """The extension may be another form of the footer, which would be stale."""
    path = tmp_path / "a.parquet"
    path.write_bytes(with_extension(plain))
    pyparq.edit_metadata(path, update={"k": "v"})
    assert b"some extension" not in path.read_bytes()
    path.write_bytes(with_extension(plain))
    pyparq.add_indexes(path, bloom_filters=["s"])
    assert b"some extension" not in path.read_bytes()
    assert pq.read_table(path).num_rows == 1000
    assert pyparq.read_table(path, filters=col("s") == "x5").num_rows == 1


def test_checksums_of_zero(tmp_path: Path) -> None:
    """Parquet.jl stores 0 for every page. The error says what reads them, and it does."""
    sink = io.BytesIO()
    table = pa.table({"a": pa.array([1, 2, 3], pa.int64())})
    pq.write_table(table, sink, write_page_checksum=True, use_dictionary=False, compression="none")
    raw = sink.getvalue()
    start = raw.index(b"\x15", 10) + 1  # the fourth field of the first page header
    end = next(k for k in range(start, start + 5) if raw[k] < 0x80) + 1
    raw = raw[:start] + b"\x80" * (end - start - 1) + b"\0" + raw[end:]
    assert pq.read_table(io.BytesIO(raw))["a"].to_pylist() == [1, 2, 3]
    with pytest.raises(pyparq.ChecksumError, match=r"stored 0x00000000.*verify_checksums=False.*column a, page 0"):
        pyparq.read_table(io.BytesIO(raw))
    assert pyparq.read_table(io.BytesIO(raw), verify_checksums=False).to_pydict() == {"a": [1, 2, 3]}
