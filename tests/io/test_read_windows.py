"""Dictionary-encoded pages are decoded several at a time: same values, and errors that name their page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import DecryptionProperties, EncryptionProperties, ParquetFile
from pyparq.errors import CorruptFileError

ROWS = 20_000
KEY = b"0123456789abcdef"
RNG = np.random.default_rng(8)
TABLE = pa.table(
    {
        "number": pa.array(RNG.integers(0, 300, ROWS)),
        "holes": pa.array([None if n % 11 < 3 else n % 97 / 7 for n in range(ROWS)]),
        "short": pa.array([f"word {n}" for n in RNG.integers(0, 200, ROWS)]),
        "long": pa.array(
            [None if n % 5 == 0 else f"{n % 60} is not so short a word: " + "x" * 70 for n in range(ROWS)]
        ),
        "lists": pa.array([None if n % 7 == 0 else [f"item {n % 13}"] * (n % 4) for n in range(ROWS)]),
    }
)


@pytest.mark.parametrize("algorithm", [None, "AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_values(tmp_path: Path, version: str, codec: str, algorithm: str | None) -> None:
    path = tmp_path / "file.parquet"
    encryption = None if algorithm is None else EncryptionProperties(KEY, algorithm=algorithm)
    pyparq.write_table(
        TABLE, path, data_page_version=version, compression=codec, max_rows_per_page=300, encryption=encryption,
        column_encoding="RLE_DICTIONARY",
    )  # fmt: skip
    decryption = None if algorithm is None else DecryptionProperties(KEY)
    assert pyparq.read_table(path, decryption=decryption).to_arrow().cast(TABLE.schema) == TABLE
    kept = pyparq.read_table(path, decryption=decryption, read_dictionary=["short", "long"]).to_arrow()
    assert kept.cast(TABLE.schema) == TABLE


def test_pages_of_others_that_fall_back_to_plain(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table({"s": [f"{n % 50}" for n in range(6_000)] + [f"only once {n}" for n in range(6_000)]})
    pq.write_table(table, path, dictionary_pagesize_limit=8_000, data_page_size=2_000, write_batch_size=100)
    found = ParquetFile(path).pages(0, "s")
    assert {page.encoding for page in found[1:]} == {"RLE_DICTIONARY", "PLAIN"}
    assert pyparq.read_table(path).to_arrow() == table


@pytest.mark.parametrize("column", ["number", "short", "long"])
@pytest.mark.parametrize("page", [0, 7, 66])
def test_a_page_that_does_not_decode_is_named(tmp_path: Path, column: str, page: int) -> None:
    path = tmp_path / "file.parquet"
    pyparq.write_table(
        TABLE.select([column]), path, compression="none", max_rows_per_page=300, column_encoding="RLE_DICTIONARY",
        write_page_checksum=False,
    )  # fmt: skip
    places = ParquetFile(path).page_locations(0, column)
    assert places is not None
    damaged = bytearray(path.read_bytes())
    end = int(places.offsets[page] + places.sizes[page])
    damaged[end - 12 : end] = b"\xff" * 12  # indices beyond the dictionary, or no run at all
    with pytest.raises(CorruptFileError, match="bad RLE_DICTIONARY data") as caught:
        pyparq.read_table(bytes(damaged))
    assert (caught.value.row_group, caught.value.column, caught.value.page) == (0, column, page)
