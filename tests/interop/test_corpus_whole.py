"""The whole folder of apache/parquet-testing: no file without an expectation; every file read that can be read also row
by row, leaf by leaf, and with filters on nested leaves, and compared with the whole."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import corpus_path
from test_corpus_flat import (
    BEYOND_NANOSECONDS,
    DAMAGED,
    HUGE,
    OPS,
    OTHERWISE,
    READ,
    assert_identical,
    identical,
    is_filterable,
    key,
    literals,
    path_of,
    whole,
)

import pyparq
from pyparq import col
from pyparq.errors import ParquetError

CORPUS = corpus_path() or Path("/nowhere")
VARIANTS = CORPUS / "shredded_variant"

pytestmark = pytest.mark.usefixtures("corpus")

# ---- nothing is forgotten

BAD = {
    "ARROW-GH-41317", "ARROW-GH-41321", "ARROW-GH-45185", "ARROW-GH-47662", "ARROW-RS-GH-6229-DICTHEADER",
    "ARROW-RS-GH-6229-LEVELS", "PARQUET-1481",
}  # fmt: skip
"""Refused: ``test_hostile.test_bad_data``."""

ENCRYPTED = """
    encrypt_columns_and_footer encrypt_columns_and_footer_aad encrypt_columns_and_footer_bloom_filter
    encrypt_columns_and_footer_ctr encrypt_columns_and_footer_disable_aad_storage encrypt_columns_plaintext_footer
    external_key_material_java uniform_encryption
    aes256/encrypt_columns_and_footer aes256/encrypt_columns_and_footer_ctr
    aes256/encrypt_columns_and_footer_disable_aad_storage aes256/encrypt_columns_plaintext_footer
    aes256/uniform_encryption
""".split()  # noqa: SIM905
"""Read with their keys: ``test_encryption_corpus``; without, a typed error: ``test_encrypted_without_keys``."""


def expected_files() -> set[str]:
    names = {f"data/{name}.parquet" for name in (*READ, *OTHERWISE, *BEYOND_NANOSECONDS, *DAMAGED, *HUGE)}
    names |= {f"bad_data/{name}.parquet" for name in (*BAD, "ARROW-GH-43605")}
    names |= {f"data/{name}.parquet.encrypted" for name in ENCRYPTED}
    return names | {f"shredded_variant/{case['parquet_file']}" for case in cases()}


def test_every_file_has_an_expectation() -> None:
    """Whatever is put into the corpus, something here must say what is to become of it."""
    found = {
        str(path.relative_to(CORPUS))
        for path in CORPUS.rglob("*.parquet*")
        if path.suffix != ".json"  # key material
    }
    assert found == expected_files()


# ---- shredded VARIANT


def cases() -> list[dict[str, Any]]:
    path = VARIANTS / "cases.json"
    listed: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return [case for case in listed if "parquet_file" in case]


def case_name(case: dict[str, Any]) -> str:
    return str(case["parquet_file"]).removesuffix(".parquet")


@pytest.mark.parametrize("case", cases(), ids=case_name)
def test_shredded_variants_are_read_as_stored(case: dict[str, Any]) -> None:
    """Metadata, value and typed_value side by side, as pyarrow reads them too."""
    path = VARIANTS / case["parquet_file"]
    ours, theirs = pyparq.read_table(path, variants="stored").to_arrow(), pq.read_table(path)
    assert ours.num_rows == theirs.num_rows > 0
    for name in theirs.column_names:
        assert ours.column(name).to_pylist() == theirs.column(name).to_pylist()


@pytest.mark.parametrize("case", [case for case in cases() if "error_message" not in case], ids=case_name)
def test_shredded_variants_are_put_together(case: dict[str, Any]) -> None:
    """Byte for byte what the corpus has beside each file: metadata, then value."""
    table = pyparq.read_table(VARIANTS / case["parquet_file"])
    rows = table.to_arrow()[table.schema.names[-1]].to_pylist()
    expected = case.get("variant_files") or [case.get("variant_file")]
    assert len(rows) == len(expected)
    for row, name in zip(rows, expected, strict=True):
        assert (None if row is None else row["metadata"] + row["value"]) == (
            None if name is None else (VARIANTS / name).read_bytes()
        )


@pytest.mark.parametrize("case", [case for case in cases() if "error_message" in case], ids=case_name)
def test_shredded_variants_that_are_invalid(case: dict[str, Any]) -> None:
    told = {
        "Invalid variant, conflicting value and typed_value": "value and typed_value are both there",
        "Invalid variant, non-object value with shredded fields": "no object",
    }.get(case["error_message"], "no Variant is shredded to")
    with pytest.raises(ParquetError, match=f"{told}.*column var"):
        pyparq.read_table(VARIANTS / case["parquet_file"])


# ---- in parts


@pytest.mark.parametrize("name", READ)
def test_slices(name: str) -> None:
    """Rows from the middle, the end, beyond it, and none."""
    table = whole(name)
    count = table.num_rows
    rng = np.random.default_rng(len(name))
    with pyparq.ParquetFile(path_of(name)) as file:
        ends = sorted(int(n) for n in rng.integers(0, count + 1, 6))
        for start, stop in [*pairwise(ends), (max(count - 1, 0), None), (0, 1), (count, None)]:
            expected = table.slice(start, (count if stop is None else stop) - start)
            assert_identical(file.read_rows(start, stop).to_arrow(), expected)


@pytest.mark.parametrize("name", READ)
def test_single_rows(name: str) -> None:
    """In any order, some twice."""
    table = whole(name)
    if not table.num_rows:
        pytest.skip("no rows")
    rows = np.random.default_rng(1).integers(0, table.num_rows, 9).tolist()
    with pyparq.ParquetFile(path_of(name)) as file:
        assert_identical(file.take(rows).to_arrow(), table.take(rows))


def nested_leaves(kind: pa.DataType, array: pa.Array, path: str) -> list[tuple[str, pa.Array]]:
    """The leaves of structs of structs, with the nulls of all structs around them."""
    if not pa.types.is_struct(kind):
        return [(path, array)]
    found = []
    for k in range(kind.num_fields):
        field = kind.field(k)
        found += nested_leaves(field.type, pc.struct_field(array, k), f"{path}.{field.name}")
    return found


def with_structs() -> list[str]:
    return [
        n for n in READ if path_of(n).exists() and any(pa.types.is_struct(f.type) for f in pq.read_schema(path_of(n)))
    ]


NO_PLAIN_FIELDS = ("nested_maps.snappy", "nulls.snappy", "repeated_no_annotation", "repeated_primitive_no_list")


@pytest.mark.parametrize("name", with_structs())
def test_filters_on_fields_of_structs(name: str) -> None:
    table = whole(name)
    rows = pa.array(np.arange(table.num_rows))
    seen = 0
    with pyparq.ParquetFile(path_of(name)) as file:
        for top in table.column_names:
            kind = table.schema.field(top).type
            if not pa.types.is_struct(kind):
                continue
            for path, array in nested_leaves(kind, table.column(top).combine_chunks(), top):
                if not is_filterable(array.type) or pa.types.is_timestamp(array.type):
                    continue
                values = array.to_pylist()
                for literal in literals(values)[:1]:
                    for op, passes in OPS.items():
                        kept = rows.filter(pa.array([v is not None and passes(key(v), key(literal)) for v in values]))
                        got = file.read([top], [(path, op, literal)]).to_arrow()
                        assert identical(got.column(top), pc.take(table.column(top), kept)), (path, op, literal)
                        seen += 1
                assert file.read([top], col(path).is_null()).num_rows == array.null_count
    assert seen or name in NO_PLAIN_FIELDS


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_data_column_by_column(name: str) -> None:
    """What is whole in a bad file can be read; what is not is a typed error, and nothing else happens."""
    path = CORPUS / "bad_data" / f"{name}.parquet"
    try:
        file = pyparq.ParquetFile(path)
    except ParquetError:
        return
    outcomes = []
    with file:
        for leaf in file._file.tree.leaves:
            try:
                outcomes.append(file.read([leaf.dotted]).num_rows)
            except ParquetError:
                outcomes.append(-1)
    assert -1 in outcomes
