"""Files that others encrypted: the public corpus, read with right values and opened by hand beside it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from encryption_by_hand import File
from encryption_tools import CORPUS_128, CORPUS_256, CORPUS_FOOTER_128, corpus_keys, kms_file, local_kms, read

import pyparq
from pyparq import col
from pyparq.encryption import CryptoFactory, DecryptionProperties
from pyparq.errors import EncryptionError, UnverifiedFooterWarning

FILES = [
    "encrypt_columns_and_footer.parquet.encrypted",
    "encrypt_columns_and_footer_aad.parquet.encrypted",
    "encrypt_columns_and_footer_ctr.parquet.encrypted",
    "encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted",
    "encrypt_columns_plaintext_footer.parquet.encrypted",
    "uniform_encryption.parquet.encrypted",
    "aes256/encrypt_columns_and_footer.parquet.encrypted",
    "aes256/encrypt_columns_and_footer_ctr.parquet.encrypted",
    "aes256/encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted",
    "aes256/encrypt_columns_plaintext_footer.parquet.encrypted",
    "aes256/uniform_encryption.parquet.encrypted",
]
BLOOM = "encrypt_columns_and_footer_bloom_filter.parquet.encrypted"


def properties(path: Path) -> DecryptionProperties:
    footer, columns, prefix = corpus_keys(path)
    return DecryptionProperties(footer, columns, aad_prefix=prefix)


def test_no_file_is_forgotten(corpus: Path) -> None:
    there = {str(p.relative_to(corpus / "data")) for p in (corpus / "data").rglob("*.encrypted")}
    assert there == {*FILES, BLOOM, "external_key_material_java.parquet.encrypted"}


@pytest.mark.parametrize("name", FILES)
def test_values(corpus: Path, name: str) -> None:
    """The rows that the writers' example programs put in, row by row."""
    path = corpus / "data" / name
    found = read(path, properties(path))
    assert found.num_rows == 50
    rows = range(50)
    assert found["boolean_field"].to_pylist() == [k % 2 == 0 for k in rows]
    assert found["int32_field"].cast(pa.int32()).to_pylist() == list(rows)
    assert found["int64_field"].to_pylist() == [[2 * k * 10**12, (2 * k + 1) * 10**12] for k in rows]
    assert found["float_field"].to_numpy().tolist() == [np.float32(k) * np.float32(1.1) for k in rows]
    assert found["double_field"].to_pylist() == [k * 1.1111111 for k in rows]
    if "ba_field" in found.column_names:
        expected = [f"parquet{k:03}".encode() if k % 2 == 0 else None for k in rows]
        assert found["ba_field"].to_pylist() == expected
        assert found["flba_field"].to_pylist() == [bytes([k]) * 10 for k in rows]


@pytest.mark.parametrize("name", [*FILES, BLOOM])
def test_by_hand(corpus: Path, name: str) -> None:
    """Every module of the file opens with its AAD, and what our reader says of the pages is what is in them."""
    path = corpus / "data" / name
    footer, columns, prefix = corpus_keys(path)
    uniform = "uniform" in name
    file = File(path.read_bytes(), {None: footer, **columns}, None if prefix is None else prefix.encode())
    with pyparq.ParquetFile(path, decryption=properties(path)) as ours:
        assert ours.metadata.num_rows == file.footer[3]
        for leaf in range(ours.metadata.num_columns):
            chunk = file.chunk(0, leaf)
            assert chunk.encrypted or not uniform
            if not chunk.encrypted:
                continue
            pages = chunk.pages()
            assert [p.compressed_size for p in ours.pages(0, leaf)] == [len(stored) for _, stored, _ in pages]
            assert ours.metadata.row_group(0).column(leaf).num_values == chunk.meta[5]
            if chunk.raw.get(4):
                locations = ours.page_locations(0, leaf)
                assert locations is not None
                assert locations.offsets.tolist() == [page[1] for page in chunk.offset_index()[1]]
            if chunk.raw.get(6):
                index = ours.column_index(0, leaf)
                assert index is not None
                assert index.all_null.tolist() == chunk.column_index()[1]


def test_bloom_filters(corpus: Path) -> None:
    path = corpus / "data" / BLOOM
    file = File(path.read_bytes(), {None: CORPUS_FOOTER_128, **CORPUS_128})
    with pyparq.ParquetFile(path, decryption=properties(path)) as ours:
        data = ours.read().to_pydict()
        for leaf, name in enumerate(("double_field", "float_field")):
            header, bitset = file.chunk(0, leaf).bloom_filter()
            filter_ = ours.bloom_filter(0, name)
            assert filter_ is not None
            assert header[1] == len(bitset) == filter_.num_bytes
            assert filter_.bitset.tobytes() == bitset
            kind = np.float64 if leaf == 0 else np.float32
            for value in data[name]:
                assert filter_.check_hash(xxhash.xxh64_intdigest(kind(value).tobytes()))
            absent = [filter_.check(kind(value + 0.3)) for value in data[name][:500]]
            assert sum(absent) < 50
        scan = ours.scan(filters=col("double_field") == 100.25)
        assert scan.to_table().num_rows == 0
        assert "bloom filter" in [stage.name for stage in scan.explain().stages]
        assert scan.explain().pages_decoded == 0


def test_external_key_material(corpus: Path, tmp_path: Path) -> None:
    kms = local_kms(kms_file(tmp_path / "kms.json"))
    factory = CryptoFactory(lambda config: kms)
    path = corpus / "data" / "external_key_material_java.parquet.encrypted"
    found = read(path, factory.file_decryption_properties())
    assert found.column_names == ["integers", "strings"]
    assert found["integers"].to_pylist() == list(range(100))
    assert found["strings"].to_pylist() == [f"{chr(97 + k % 10)}{k}" for k in range(100)]


# ---- without some of the keys


def test_columns_without_a_key(corpus: Path) -> None:
    path = corpus / "data" / FILES[0]
    keys = DecryptionProperties(CORPUS_FOOTER_128, {"float_field": CORPUS_128["float_field"]})
    with pyparq.ParquetFile(path, decryption=keys) as file:
        assert "double_field" in file.schema_arrow.names
        assert file.read(["float_field", "int32_field"]).num_rows == 50
        assert file.scan(["int32_field"], filters=col("boolean_field") == True).to_table().num_rows == 25  # noqa: E712
        for touch in (
            lambda: file.read(["double_field"]), lambda: file.read(), lambda: file.pages(0, "double_field"),
            lambda: file.scan(["int32_field"], filters=col("double_field") > 1).to_table(),
        ):  # fmt: skip
            with pytest.raises(EncryptionError, match=r"'kc1'.*column double_field") as caught:
                touch()
            assert caught.value.column == "double_field"


def test_without_keys(corpus: Path) -> None:
    with pytest.raises(EncryptionError, match="'kf'"):
        pyparq.read_table(corpus / "data" / FILES[0])
    plain_footer = corpus / "data" / "encrypt_columns_plaintext_footer.parquet.encrypted"
    with pytest.warns(UnverifiedFooterWarning, match="'kf'"):
        assert pyparq.read_table(plain_footer, columns=["int32_field"]).num_rows == 50
    with pytest.raises(EncryptionError, match="signature was not checked"):
        read(plain_footer, DecryptionProperties(check_footer_integrity=True), columns=["int32_field"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(plain_footer, DecryptionProperties(check_footer_integrity=False), columns=["int32_field"])


def test_by_retriever(corpus: Path) -> None:
    known = {b"kf": CORPUS_256["double_field"][:-1] + b"2", b"kc2": CORPUS_256["float_field"]}
    known[b"kf"] = b"01234567890123456789012345678901"
    known[b"kc1"] = CORPUS_256["double_field"]
    asked: list[bytes] = []

    def retrieve(metadata: bytes) -> bytes:
        asked.append(metadata)
        return known[metadata]

    path = corpus / "data" / "aes256" / "encrypt_columns_and_footer.parquet.encrypted"
    keys = DecryptionProperties(key_retriever=retrieve)
    assert read(path, keys, columns=["double_field", "float_field"]).num_rows == 50
    assert sorted(asked) == [b"kc1", b"kc2", b"kf"]  # each once
    with pytest.raises(EncryptionError, match=r"could not be retrieved: KeyError: b'kc5'.*ba_field"):
        read(path, keys, columns=["ba_field"])
