"""Keys, data and files that the tests of encryption share."""

from __future__ import annotations

import base64
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import pyparq
from pyparq.encryption import DecryptionProperties, EncryptionProperties, LocalFileKms

FOOTER = b"the footer's key"
OTHER = b"twenty-four bytes of key"
THIRD = b"thirty-two bytes make the third."

ROWS = 3_000


def table(rows: int = ROWS) -> pa.Table:
    """Sorted, shuffled, repeating and nested columns, with nulls; ``secret`` holds texts to search files for."""
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "id": pa.array(np.arange(rows) * 2),
            "shuffled": pa.array(rng.permutation(rows) * 1_000_003),
            "secret": pa.array([f"secret-{k % 50:03}" if k % 7 else None for k in range(rows)]),
            "unique": pa.array([f"hush-{k:06}" for k in range(rows)]),
            "amount": pa.array(rng.random(rows)),
            "nested": pa.array([{"x": k, "y": [k, k + 1] if k % 3 else None} for k in range(rows)]),
        }
    )


LAYOUT: dict[str, Any] = {
    "row_group_size": 1_000,
    "max_rows_per_page": 200,
    "bloom_filters": ["id", "unique"],
    "use_dictionary": ["secret"],
    "column_encoding": {"id": "PLAIN"},
}


def written(data: Any, properties: EncryptionProperties | None, **options: Any) -> bytes:
    """The bytes of a file with the layout that suits :func:`table`."""
    return stored(data, properties, **{**LAYOUT, **options})


def stored(data: Any, properties: EncryptionProperties | None, **options: Any) -> bytes:
    """The bytes of a file, by the options given and no others."""
    file = io.BytesIO()
    pyparq.write_table(data, file, encryption=properties, **options)
    return file.getvalue()


def read(source: Any, properties: DecryptionProperties | None, **options: Any) -> pa.Table:
    # The INT96 values of the writers' example programs lie in 4713 BC, beyond nanoseconds.
    options.setdefault("coerce_int96_timestamp_unit", "us")
    return pa.table(pyparq.read_table(source, decryption=properties, **options))


# ---- the public corpus: key values are in its notes

CORPUS_128 = {"double_field": b"1234567890123450", "float_field": b"1234567890123451"}
CORPUS_FOOTER_128 = b"0123456789012345"
_STEM = b"1234567890123456789012345678901"
CORPUS_256 = {
    name: _STEM + digit
    for name, digit in {
        "double_field": b"2", "float_field": b"3", "boolean_field": b"4", "int32_field": b"5", "ba_field": b"6",
        "flba_field": b"7", "int64_field.list.element": b"8", "int96_field": b"9",
    }.items()
}  # fmt: skip
CORPUS_FOOTER_256 = b"01234567890123456789012345678901"


def corpus_keys(path: Path) -> tuple[bytes, dict[str, bytes], str | None]:
    """(footer key, column keys, AAD prefix that the reader must supply) of a file of the corpus."""
    prefix = "tester" if "disable_aad_storage" in path.name else None
    if path.parent.name == "aes256":
        return CORPUS_FOOTER_256, CORPUS_256, prefix
    return CORPUS_FOOTER_128, CORPUS_128, prefix


# ---- a KMS

MASTER_KEYS = {"kf": b"0123456789012345", "kc1": b"1234567890123450", "kc2": b"1234567890123451"}


def kms_file(path: Path, keys: dict[str, bytes] | None = None) -> Path:
    path.write_text(json.dumps({n: base64.b64encode(k).decode() for n, k in (keys or MASTER_KEYS).items()}))
    return path


def local_kms(path: Path) -> LocalFileKms:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is for development
        return LocalFileKms(path)
