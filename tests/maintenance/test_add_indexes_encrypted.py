"""Encrypted files get indexes: pages stay, new modules are sealed under their keys, what has no key stays sealed."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from cryptography.exceptions import InvalidTag
from encryption_by_hand import File
from encryption_tools import (
    FOOTER,
    OTHER,
    THIRD,
    corpus_keys,
    kms_file,
    local_kms,
    read,
    stored,
    table,
)
from test_encryption_write import COLUMNS, LEAVES, by_hand, in_filter, key_of

import pyparq
from pyparq import col
from pyparq.encryption import (
    CryptoFactory,
    DecryptionProperties,
    EncryptionConfiguration,
    EncryptionProperties,
    KmsConnectionConfig,
)

PLAIN: dict[str, Any] = {
    "row_group_size": 1_000, "max_rows_per_page": 200, "write_page_index": False, "use_dictionary": ["secret"],
    "column_encoding": {"id": "PLAIN"},
}  # fmt: skip
ALGORITHMS = ["AES_GCM_V1", "AES_GCM_CTR_V1"]


def keys(columns: str, **more: Any) -> DecryptionProperties:
    return DecryptionProperties(FOOTER, COLUMNS[columns] or {}, **more)


def page_bytes(file: File) -> list[str]:
    """Hashes of the stored pages, headers included."""
    hashes = []
    for row_group in range(3):
        for column in range(len(LEAVES)):
            chunk = file.chunk(row_group, column)
            start = min(o for o in (chunk.meta.get(11, 0), chunk.meta[9]) if o)
            hashes.append(hashlib.sha256(file.data[start : start + chunk.meta[7]]).hexdigest())
    return hashes


@pytest.mark.sweep(3)
@pytest.mark.parametrize("layout", ["footer", "row_group"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_module(algorithm: Any, columns: str, plaintext_footer: bool, layout: Any, tmp_path: Path) -> None:
    """Taken apart by the specification alone: pages as before, each index under its column's key and place."""
    properties = EncryptionProperties(
        FOOTER, COLUMNS[columns], algorithm=algorithm, plaintext_footer=plaintext_footer, aad_prefix="file 7"
    )
    path = tmp_path / "f.parquet"
    path.write_bytes(stored(table(), properties, **PLAIN))
    before = by_hand(path.read_bytes(), COLUMNS[columns])
    report = pyparq.add_indexes(
        path, bloom_filters=["id", "unique"], bloom_filter_layout=layout, decryption=keys(columns)
    )
    assert {c.offset_index.get("added") for c in report.columns} == {3}
    after = by_hand(path.read_bytes(), COLUMNS[columns])
    assert page_bytes(after) == page_bytes(before)
    assert after.aad == before.aad
    ids = table()["id"].to_numpy()
    for row_group in range(3):
        for column, leaf in enumerate(LEAVES):
            old, new = before.chunk(row_group, column), after.chunk(row_group, column)
            kept = {k: v for k, v in new.meta.items() if k not in (9, 11, 14, 15)}
            assert kept == {k: v for k, v in old.meta.items() if k not in (9, 11)}
            assert (14 in new.meta) == (leaf in ("id", "unique"))
            if not new.encrypted:
                continue
            assert new.offset_index()[1][0][1] == new.meta[9]
            assert len(new.column_index()[1]) == 5
            if leaf == "id":
                header, bitset = new.bloom_filter()
                assert header[1] == len(bitset)
                assert all(in_filter(bitset, int(v)) for v in ids[row_group * 1_000 : row_group * 1_000 + 50])
    if plaintext_footer:
        for group in after.footer[4]:
            for raw, leaf in zip(group[1], LEAVES, strict=True):
                if key_of(leaf, COLUMNS[columns]) is not None:
                    assert not {12, 14, 15} & set(raw[3])  # the clear copy says nothing new
    assert read(path, keys(columns)) == table()
    assert pyparq.verify(path, decryption=keys(columns)).ok
    with pyparq.ParquetFile(path, decryption=keys(columns)) as file:
        assert file.scan(filters=col("id") == 1_201).explain().pages_decoded == 0
        assert file.scan(["id", "unique"], col("id") == 1_200).explain().pages_decoded == 2
    again = path.read_bytes()
    pyparq.add_indexes(path, bloom_filters=["id", "unique"], decryption=keys(columns))
    assert path.read_bytes() == again


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_a_changed_index_is_noticed(plaintext_footer: bool, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    properties = EncryptionProperties(FOOTER, plaintext_footer=plaintext_footer)
    path.write_bytes(stored(table(), properties, **PLAIN))
    pyparq.add_indexes(path, decryption=keys("uniform"))
    data = bytearray(path.read_bytes())
    chunk = by_hand(bytes(data), None).chunk(0, 0)
    data[chunk.raw[6] + 20] ^= 1
    with pytest.raises(InvalidTag):
        by_hand(bytes(data), None).chunk(0, 0).column_index()
    with pytest.raises(pyparq.EncryptionError):
        pyparq.read_table(bytes(data), filters=col("id") == 4, decryption=keys("uniform"))


def test_a_plaintext_footer_is_signed_again(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(stored(table(), EncryptionProperties(FOOTER, COLUMNS["one"], plaintext_footer=True), **PLAIN))
    pyparq.add_indexes(path, decryption=keys("one"))
    checked = DecryptionProperties(FOOTER, COLUMNS["one"], check_footer_integrity=True)
    assert read(path, checked) == table()
    before = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyparq.UnverifiedFooterWarning)
        for change in (
            lambda: pyparq.add_indexes(path, bloom_filters=["shuffled"]),
            lambda: pyparq.edit_metadata(path, update={"a": "b"}),
        ):
            with pytest.raises(pyparq.MissingKeyError, match="signed again"):
                change()
        assert path.read_bytes() == before
        assert pyparq.add_indexes(path).files_written == 0
    assert pyparq.edit_metadata(path, update={"a": "b"}, decryption=keys("one")) == 1
    assert read(path, checked) == table()


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_columns_without_their_keys_stay_sealed(plaintext_footer: bool, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(
        stored(table(), EncryptionProperties(FOOTER, COLUMNS["some"], plaintext_footer=plaintext_footer), **PLAIN)
    )
    before = by_hand(path.read_bytes(), COLUMNS["some"])
    some = DecryptionProperties(FOOTER, {"secret": THIRD})
    report = pyparq.add_indexes(path, bloom_filters=["id", "unique"], decryption=some)
    columns = {c.name: c for c in report.columns}
    assert columns["unique"].bloom_filter == {"left": 3}
    assert "its own key" in columns["unique"].reasons[0]
    assert columns["secret"].column_index == {"added": 3}
    after = by_hand(path.read_bytes(), COLUMNS["some"])
    assert page_bytes(after) == page_bytes(before)
    for row_group in range(3):
        for column in (3, 6):
            old, new = before.chunk(row_group, column).raw, after.chunk(row_group, column).raw
            assert new == old  # sealed metadata and all
    data = path.read_bytes()
    with pytest.raises(pyparq.UnsupportedError, match='bloom_filter_layout="footer"'):
        pyparq.add_indexes(path, bloom_filters=["shuffled"], bloom_filter_layout="row_group", decryption=some)
    assert path.read_bytes() == data
    # Nothing is left out of such a file either: who knows where the sealed columns' pages are.
    pyparq.add_indexes(path, page_index=False, remove=["bloom_filters"], decryption=some)
    assert page_bytes(by_hand(path.read_bytes(), COLUMNS["some"])) == page_bytes(before)
    assert pyparq.add_indexes(path, bloom_filters=["unique"], decryption=keys("some")).files_written == 1
    assert read(path, keys("some")) == table()


def test_without_the_footer_key(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(stored(table(), EncryptionProperties(FOOTER), **PLAIN))
    before = path.read_bytes()
    for decryption in (None, DecryptionProperties(OTHER)):
        with pytest.raises(pyparq.EncryptionError):
            pyparq.add_indexes(path, decryption=decryption)
    assert path.read_bytes() == before


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_others_read_them(algorithm: Any, plaintext_footer: bool, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    properties = EncryptionProperties(FOOTER, algorithm=algorithm, plaintext_footer=plaintext_footer)
    path.write_bytes(stored(table(), properties, **PLAIN))
    pyparq.add_indexes(path, bloom_filters=["id"], decryption=keys("uniform"))
    assert pq.read_table(path, decryption_properties=pe.create_decryption_properties(FOOTER)) == table()
    if algorithm == "AES_GCM_V1":
        decryption = pl.ParquetDecryptionProperties(footer_key=FOOTER)
        assert pl.read_parquet(path, decryption=decryption).equals(pl.from_arrow(table()))


def test_files_of_the_corpus(corpus: Path, tmp_path: Path) -> None:
    """Written by parquet-java and Arrow C++."""
    done = 0
    for path in sorted((corpus / "data").glob("**/*.parquet.encrypted")):
        footer, columns, prefix = corpus_keys(path)
        if "external_key_material" in path.name:
            continue
        decryption = DecryptionProperties(footer, columns, aad_prefix=prefix)
        target = tmp_path / path.name
        report = pyparq.add_indexes(path, target, bloom_filters=True, replace=True, decryption=decryption)
        assert report.ok
        assert any(c.bloom_filter for c in report.columns)
        wanted = read(path, decryption)
        assert read(target, decryption) == wanted
        for name in [n for n in ("int32_field", "double_field", "ba_field") if n in wanted.column_names]:
            value = wanted[name].drop_null()[7].as_py()
            found = read(target, decryption, filters=col(name) == value)
            assert found == read(path, decryption, filters=col(name) == value, use_page_index=False)
        done += 1
    assert done > 8


def test_key_material_beside_the_file_goes_along(tmp_path: Path) -> None:
    kms = local_kms(kms_file(tmp_path / "keys.json"))
    factory = CryptoFactory(lambda config: kms)
    connection = KmsConnectionConfig()
    config = EncryptionConfiguration("kf", {"kc1": ["unique"]}, internal_key_material=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    path, target = tmp_path / "in" / "f.parquet", tmp_path / "out" / "g.parquet"
    pyparq.write_table(table(), path, encryption=factory.file_encryption_properties(connection, config), **PLAIN)
    material = path.with_name("_KEY_MATERIAL_FOR_f.parquet.json").read_bytes()
    decryption = factory.file_decryption_properties(connection)
    pyparq.add_indexes(path, target, bloom_filters=["unique"], decryption=decryption)
    assert target.with_name("_KEY_MATERIAL_FOR_g.parquet.json").read_bytes() == material
    assert read(target, decryption) == table()
    pyparq.add_indexes(path, bloom_filters=["unique"], decryption=decryption)
    assert path.with_name("_KEY_MATERIAL_FOR_f.parquet.json").read_bytes() == material
    assert read(path, decryption) == table()
