"""Files that we encrypt: taken apart by hand, and read by pyarrow and polars."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
import xxhash
from counting import CountingFile
from encryption_by_hand import Chunk, File, struct_at
from encryption_tools import FOOTER, OTHER, THIRD, read, stored, table, written

import pyparq
from pyparq import col
from pyparq.encryption import DecryptionProperties, EncryptionKey, EncryptionProperties
from pyparq.errors import ColumnNotFoundError, DataError, EncryptionError, OptionError
from pyparq.kernels import aes_is_native
from pyparq.options import WriteOptions
from pyparq.write.column_plans import within_ordinals

ALGORITHMS = ["AES_GCM_V1", "AES_GCM_CTR_V1"]
COLUMNS: dict[str, dict[str, bytes] | None] = {
    "uniform": None,
    "some": {"unique": OTHER, "secret": THIRD, "nested.y": OTHER},
    "one": {"id": THIRD},
}
LEAVES = ["id", "shuffled", "secret", "unique", "amount", "nested.x", "nested.y.list.element"]


def key_of(leaf: str, keys: dict[str, bytes] | None) -> bytes | None:
    """A leaf's key in the file by hand; ``None`` when it is clear."""
    if keys is None:
        return FOOTER
    return keys.get(leaf, keys.get("nested.y") if leaf.startswith("nested.y") else None)


def by_hand(data: bytes, keys: dict[str, bytes] | None, prefix: bytes | None = None) -> File:
    own = {leaf: key for leaf in LEAVES if keys is not None and (key := key_of(leaf, keys)) is not None}
    return File(data, {None: FOOTER, **own}, prefix)


# ---- every module, by hand


@pytest.mark.parametrize("layout", ["footer", "row_group"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_module(algorithm: str, columns: str, plaintext_footer: bool, layout: str) -> None:
    keys, source = COLUMNS[columns], table()
    properties = EncryptionProperties(FOOTER, keys, algorithm=algorithm, plaintext_footer=plaintext_footer)
    data = written(source, properties, bloom_filter_layout=layout)
    file = by_hand(data, keys)
    assert file.ctr == (algorithm == "AES_GCM_CTR_V1")
    assert file.plaintext_footer == plaintext_footer
    ids = source["id"].to_numpy()
    for row_group, column in itertools.product(range(3), range(7)):
        chunk = file.chunk(row_group, column)
        leaf = LEAVES[column]
        assert chunk.encrypted == (key_of(leaf, keys) is not None)
        if not chunk.encrypted:
            assert_clear(data, chunk)
            if leaf == "id":
                header, end = struct_at(data, chunk.meta[14])
                assert chunk.meta[15] == end - chunk.meta[14] + header[1]
                assert in_filter(data[end : end + header[1]], int(ids[row_group * 1_000 + 7]))
            continue
        assert (3 in chunk.raw) == (plaintext_footer or columns == "uniform")
        pages = chunk.pages()
        assert len(pages) == 5 + (leaf == "secret")
        assert {header[1] for header, _, _ in pages} <= {0, 2}  # of version 1 unless asked otherwise, and a dictionary
        for header, module, _ in pages:
            assert header[4] & 0xFFFFFFFF == zlib.crc32(module)  # the CRC is that of the module
        places = [page[1] for page in chunk.offset_index()[1]]
        assert len(places) == 5
        assert places[0] == chunk.meta[9]
        assert len(chunk.column_index()[1]) == 5
        if leaf == "id":
            header, bitset = chunk.bloom_filter()
            assert header[1] == len(bitset)
            plain = np.frombuffer(b"".join(snappy(body) for _, _, body in pages), np.int64)
            assert plain.tolist() == ids[row_group * 1_000 : (row_group + 1) * 1_000].tolist()
            assert in_filter(bitset, int(plain[7]))
    groups = file.footer[4]
    assert [group[7] for group in groups] == [0, 1, 2]  # ordinals
    assert groups[1][5] == groups[0][5] + groups[0][6] or layout == "row_group"


def assert_clear(data: bytes, chunk: Chunk) -> None:
    """A column without a key beside encrypted ones: any reader of plain files finds its structs where they are."""
    header, _ = struct_at(data, chunk.meta[9])
    assert header[1] == 0  # a data page
    assert header[5][1] >= 200  # of so many values
    index, end = struct_at(data, chunk.raw[4])
    assert end == chunk.raw[4] + chunk.raw[5]
    assert index[1][0][1] == chunk.meta[9]
    index, end = struct_at(data, chunk.raw[6])
    assert end == chunk.raw[6] + chunk.raw[7]
    assert len(index[1]) == 5


def snappy(body: bytes) -> bytes:
    """A page of required values... of optional ones: levels of four bytes and their length go first."""
    import cramjam

    plain = bytes(cramjam.snappy.decompress_raw(body))
    return plain[4 + int.from_bytes(plain[:4], "little") :]


def in_filter(bitset: bytes, value: int) -> bool:
    hashed = xxhash.xxh64_intdigest(value.to_bytes(8, "little", signed=True))
    return pyparq.index.bloom_filter.BloomFilter(np.frombuffer(bitset, np.uint8)).check_hash(hashed)


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("store", [True, False])
def test_aad_prefix(store: bool, plaintext_footer: bool) -> None:
    properties = EncryptionProperties(
        FOOTER, plaintext_footer=plaintext_footer, aad_prefix="table-1", store_aad_prefix=store
    )
    data = written(table(300), properties)
    file = by_hand(data, None, b"table-1")
    assert file.supply_prefix is (not store)
    assert (b"table-1" in data) is store
    file.chunk(0, 0).pages()
    assert read(data, DecryptionProperties(FOOTER, aad_prefix="table-1")) == table(300)
    if store:
        assert read(data, DecryptionProperties(FOOTER)) == table(300)
    else:
        with pytest.raises(EncryptionError, match="needs an AAD prefix"):
            read(data, DecryptionProperties(FOOTER))
    with pytest.raises(EncryptionError, match="AAD prefix" if store else "signature|authentication"):
        read(data, DecryptionProperties(FOOTER, aad_prefix="table-2"))
    with pytest.raises(EncryptionError, match="written without one"):
        read(written(table(300), EncryptionProperties(FOOTER)), DecryptionProperties(FOOTER, aad_prefix="table-1"))


def test_files_have_ids_of_their_own() -> None:
    """One object writes many files, whose modules cannot stand for each other."""
    properties = EncryptionProperties(FOOTER)
    one, two = (by_hand(written(table(300), properties), None) for _ in range(2))
    assert one.aad != two.aad
    assert len(one.aad) == 8


def test_key_metadata() -> None:
    properties = EncryptionProperties(
        EncryptionKey(FOOTER, b"the footer's"), {"id": EncryptionKey(OTHER, "that of id"), "secret": THIRD}
    )
    data = written(table(300), properties)
    file = by_hand(data, {"id": OTHER, "secret": THIRD})
    assert file.key_metadata == b"the footer's"
    assert file.chunk(0, 0).raw[8] == {2: {1: [b"id"], 2: b"that of id"}}
    assert file.chunk(0, 2).raw[8] == {2: {1: [b"secret"]}}
    known = {b"the footer's": FOOTER, b"that of id": OTHER}
    assert read(data, DecryptionProperties(key_retriever=known.__getitem__), columns=["id"]).num_rows == 300


def test_complete_columns() -> None:
    data = written(table(300), EncryptionProperties(FOOTER, {"id": OTHER}, complete_columns=True))
    file = by_hand(data, {"id": OTHER})
    assert [file.chunk(0, k).raw[8] for k in range(7)] == [{2: {1: [b"id"]}}] + [{1: {}}] * 6
    assert read(data, DecryptionProperties(FOOTER, {"id": OTHER})) == table(300)


# ---- nothing of an encrypted column in the clear


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_no_value_in_the_clear(compression: str, algorithm: str, plaintext_footer: bool) -> None:
    keys = {"unique": OTHER, "secret": THIRD}
    source = table(400)
    plain = written(source, None, compression=compression, use_dictionary=False)
    assert b"hush-000000" in plain
    assert b"secret-001" in plain
    properties = EncryptionProperties(FOOTER, keys, algorithm=algorithm, plaintext_footer=plaintext_footer)
    data = written(source, properties, compression=compression, bloom_filters=["unique"])
    assert b"hush-" not in data
    assert b"secret-" not in data
    assert (b"amount" in data) is plaintext_footer  # names are in the clear with the footer


@pytest.mark.parametrize("layout", ["footer", "row_group"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_trace_of_values(algorithm: str, plaintext_footer: bool, layout: str) -> None:
    """Numbers, keys of nested columns, dictionary entries, what the user said of a column, Bloom filters: no module and
    no part of the footer shows them."""
    rows, first = 400, 0x1122334455667700
    source = pa.table(
        {
            "open": np.arange(rows),
            "number": first + np.arange(rows),
            "kind": pa.array([f"needle-{k % 7}" for k in range(rows)]).dictionary_encode(),
            "map": pa.array([[(f"needle-{k}", k)] for k in range(rows)], pa.map_(pa.string(), pa.int64())),
            "list": pa.array([[{"s": f"needle-{k}"}] for k in range(rows)]),
        }
    )
    options: dict[str, Any] = {
        "compression": "none", "bloom_filters": True, "bloom_filter_layout": layout, "max_rows_per_page": 50,
        "sort_by": ["number"], "column_key_value_metadata": {"kind": {"note": "needle"}},
    }  # fmt: skip
    keys = {"number": OTHER, "kind": THIRD, "map": OTHER, "list": THIRD}
    traces = [b"needle", first.to_bytes(8, "little")[1:], first.to_bytes(8, "big")[:7]]
    plain = stored(source, None, **options)
    assert all(trace in plain for trace in traces[:2])
    properties = EncryptionProperties(FOOTER, keys, algorithm=algorithm, plaintext_footer=plaintext_footer)
    data = stored(source, properties, **options)
    assert not any(trace in data for trace in traces)
    assert read(data, DecryptionProperties(FOOTER, keys)).to_pydict() == source.to_pydict()
    with pyparq.ParquetFile(plain) as file:
        for name, shown in (("open", True), ("number", False), ("kind", False)):
            filter_ = file.bloom_filter(0, name)
            assert filter_ is not None
            assert (filter_.bitset.tobytes() in data) == shown


def test_plaintext_footer_says_little() -> None:
    """Of an encrypted column it has what a reader needs to step over it, and nothing else."""
    source = table(400)
    for keys in (None, {"unique": OTHER, "id": THIRD}):
        data = written(source, EncryptionProperties(FOOTER, keys, plaintext_footer=True))
        file = by_hand(data, keys)
        for column, leaf in enumerate(LEAVES):
            chunk = file.chunk(0, column)
            if chunk.encrypted:
                # type, encodings, path, codec, value count, sizes, page offsets
                assert set(chunk.raw[3]) <= {1, 2, 3, 4, 5, 6, 7, 9, 11}
                assert 12 in chunk.meta  # statistics, for those with the key
                assert (14 in chunk.meta) == (leaf in ("id", "unique"))
                assert {k: v for k, v in chunk.meta.items() if k in chunk.raw[3]} == chunk.raw[3]
            else:
                assert 12 in chunk.raw[3]
                assert 9 not in chunk.raw
        schema_and_metadata = {k: v for k, v in file.footer.items() if k != 4}
        assert b"hush" not in repr(schema_and_metadata).encode()
        # 28 bytes behind the footer sign it
        assert len(file.footer_bytes) + 28 == int.from_bytes(data[-8:-4], "little")


def test_sizes_of_overhead() -> None:
    """GCM takes 32 bytes more per module, CTR 16 per page body."""
    source = table(400)
    plain = pyparq.ParquetFile(written(source, None)).metadata.row_group(0).column("id")
    for algorithm, body in (("AES_GCM_V1", 32), ("AES_GCM_CTR_V1", 16)):
        data = written(source, EncryptionProperties(FOOTER, algorithm=algorithm))
        found = pyparq.ParquetFile(data, decryption=DecryptionProperties(FOOTER)).metadata.row_group(0).column("id")
        assert abs(found.total_compressed_size - plain.total_compressed_size - 2 * (32 + body)) <= 4
        assert plain.bloom_filter_length is not None
        assert found.bloom_filter_length == plain.bloom_filter_length + 64


# ---- reading back


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pruning_works_as_on_plain_files(algorithm: str, columns: str, version: str) -> None:
    keys, source = COLUMNS[columns], table()
    options: dict[str, Any] = {"data_page_version": version}
    plain = written(source, None, **options)
    data = written(source, EncryptionProperties(FOOTER, keys, algorithm=algorithm), **options)
    decryption = DecryptionProperties(FOOTER, keys)
    assert read(data, decryption) == source
    assert read(data, decryption, use_threads=False) == source
    for predicate in (
        col("id") == 1_200, col("id").between(300, 340), col("unique") == "hush-001999", col("unique") == "absent",
        (col("secret") == "secret-010") & (col("id") < 700), col("nested.x") > 2_990, col("secret").is_null(),
        (col("amount") < 0.001) | (col("shuffled") == 1_000_003),
    ):  # fmt: skip
        with pyparq.ParquetFile(plain) as file:
            scan = file.scan(["shuffled", "nested", "secret"], filters=predicate)
            expected, before = pa.table(scan.to_table()), scan.explain()
        with pyparq.ParquetFile(data, decryption=decryption) as file:
            scan = file.scan(["shuffled", "nested", "secret"], filters=predicate)
            assert pa.table(scan.to_table()) == expected
            after = scan.explain()
            assert sum(b.num_rows for b in file.scan(filters=predicate).iter_batches(17)) == expected.num_rows
            assert file.scan(filters=predicate).count() == expected.num_rows
        assert (after.pages_decoded, after.candidate_rows) == (before.pages_decoded, before.candidate_rows)
        assert [s.name for s in after.stages] == [s.name for s in before.stages]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_by_number(algorithm: str, plaintext_footer: bool, version: str) -> None:
    keys, source = COLUMNS["some"], table()
    properties = EncryptionProperties(FOOTER, keys, algorithm=algorithm, plaintext_footer=plaintext_footer)
    data = written(source, properties, data_page_version=version)
    rows = [2_999, 7, 1_000, 7, 0, 1_650]
    with pyparq.ParquetFile(data, decryption=DecryptionProperties(FOOTER, keys)) as file:
        assert pa.table(file.take(rows)) == source.take(rows)
        assert pa.table(file.take(rows, ["nested"])) == source.select(["nested"]).take(rows)
        assert pa.table(file.head(5)) == source.slice(0, 5)
        assert pa.table(file.read_rows(990, 1_010)) == source.slice(990, 20)
        assert pa.table(file.read_row_groups([2, 0])) == pa.concat_tables([source.slice(2_000), source.slice(0, 1_000)])
        scan = file.scan(["secret"], rows=slice(500, 1_500), limit=30, filters=col("unique") > "hush-000600")
        assert pa.table(scan.to_table()) == source.select(["secret"]).slice(601, 30)


@pytest.mark.parametrize("native", [True, False], ids=["kernels", "package"])
def test_a_scan_decrypts_the_modules_of_its_pages(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.encryption import cipher

    if native and not aes_is_native():
        pytest.skip("the kernels have no libcrypto")
    monkeypatch.setattr(cipher, "aes_is_native", lambda: native)
    data = written(table(), EncryptionProperties(FOOTER))
    opened: list[int] = []
    name = "KernelCiphers" if native else "PackageCiphers"
    real: Any = getattr(cipher, name)

    class Counting(real):  # type: ignore[misc]
        def __init__(self, key: bytes) -> None:
            super().__init__(key)
            for name in ("decrypt", "decrypt_into" if native else "decrypt_from"):
                setattr(self, name, self.counting(getattr(self, name)))

        def counting(self, real: Any) -> Any:
            if real is None:  # an older release of cryptography
                return None

            def count(nonce: bytes, sealed: Any, aad: bytes, *out: Any) -> Any:
                opened.append(aad[8])
                return real(nonce, sealed, aad, *out)

            return count

    monkeypatch.setattr(cipher, name, Counting)
    found = read(data, DecryptionProperties(FOOTER), columns=["amount"], filters=col("id") == 2_468)
    assert found.num_rows == 1
    # footer; Bloom filter and indexes of the filter column in the one row group that statistics leave; page locations
    # of the other column; a page of each, unless native code opens it
    assert sorted(opened) == [0, *([] if native else [2, 2, 4, 4]), 6, 7, 7, 8, 9]


# ---- other readers


@pytest.mark.parametrize("prefix", [None, "stored", "kept back"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("key", [FOOTER, OTHER, THIRD], ids=len)
def test_pyarrow_reads_uniform(
    tmp_path: Path, key: bytes, version: str, algorithm: str, plaintext_footer: bool, prefix: str | None
) -> None:
    path = tmp_path / "f.parquet"
    properties = EncryptionProperties(
        key, algorithm=algorithm, plaintext_footer=plaintext_footer, aad_prefix=prefix,
        store_aad_prefix=prefix != "kept back",
    )  # fmt: skip
    path.write_bytes(written(table(), properties, data_page_version=version))
    aad = b"kept back" if prefix == "kept back" else None
    assert pq.read_table(path, decryption_properties=pe.create_decryption_properties(key, aad_prefix=aad)) == table()


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("columns", COLUMNS)
def test_polars_reads_ours(tmp_path: Path, columns: str, version: str, plaintext_footer: bool) -> None:
    keys = COLUMNS[columns]
    if keys is not None:
        keys = dict.fromkeys(keys, THIRD)  # it knows no keys of 24 bytes
    own = None if keys is None else {leaf: key for leaf in LEAVES if (key := key_of(leaf, keys)) is not None}
    path = tmp_path / "f.parquet"
    properties = EncryptionProperties(FOOTER, keys, plaintext_footer=plaintext_footer, aad_prefix="p")
    path.write_bytes(written(table(), properties, data_page_version=version))
    decryption = pl.ParquetDecryptionProperties(footer_key=FOOTER, column_keys=own)
    found = pl.read_parquet(path, decryption=decryption)
    assert found.equals(pl.from_arrow(table()))
    rows = pl.scan_parquet(path, decryption=decryption).filter(pl.col("id") == 1_200).collect()
    assert rows["unique"].to_list() == ["hush-000600"]


def test_pyarrow_reads_the_clear_columns(tmp_path: Path) -> None:
    """A reader without any keys: what the plaintext footer is for."""
    path = tmp_path / "f.parquet"
    path.write_bytes(written(table(), EncryptionProperties(FOOTER, {"unique": OTHER}, plaintext_footer=True)))
    assert pq.read_table(path, columns=["id", "nested"]) == table().select(["id", "nested"])


# ---- we read theirs


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_we_read_pyarrow(tmp_path: Path, algorithm: str, plaintext_footer: bool, version: str) -> None:
    path = tmp_path / "f.parquet"
    properties = pe.create_encryption_properties(
        THIRD, aad_prefix=b"p", encryption_algorithm=algorithm, plaintext_footer=plaintext_footer
    )
    pq.write_table(
        table(), path, encryption_properties=properties, data_page_version=version, row_group_size=1_000,
        write_page_index=True, max_rows_per_page=100, write_page_checksum=True,
    )  # fmt: skip
    decryption = DecryptionProperties(THIRD)
    assert read(path, decryption) == table()
    with pyparq.ParquetFile(path, decryption=decryption) as file:
        scan = file.scan(["unique"], filters=col("id") == 1_200)
        assert pa.table(scan.to_table())["unique"].to_pylist() == ["hush-000600"]
        assert scan.explain().pages_decoded <= 3


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("columns", [None, {"unique": FOOTER, "nested.y.list.element": THIRD}])
def test_we_read_polars(tmp_path: Path, columns: dict[str, bytes] | None, plaintext_footer: bool) -> None:
    path = tmp_path / "f.parquet"
    properties = pl.ParquetEncryptionProperties(
        footer_key=FOOTER, column_keys=columns, plaintext_footer=plaintext_footer, aad_prefix=b"p"
    )
    frame = pl.from_arrow(table())
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, encryption=properties, row_group_size=1_000)
    found = pl.from_arrow(read(path, DecryptionProperties(FOOTER, columns, aad_prefix="p")))
    assert frame.equals(found)


# ---- what cannot be written


def test_wrong_properties(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(b"what was there")
    for properties, error, message in (
        ({"footer_key": FOOTER}, OptionError, r"must be pyparq\.EncryptionProperties\(key\), not dict"),
        (EncryptionProperties(FOOTER, {"uniqe": OTHER}), ColumnNotFoundError, "did you mean 'unique'"),
    ):
        with pytest.raises(error, match=message):
            pyparq.write_table(table(10), path, encryption=properties)
    assert path.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_too_many_pages_is_no_matter() -> None:
    """Row groups close early enough for the pages to be counted."""
    rows = 40_000
    source = pa.table({"a": pa.array(np.arange(rows))})
    data = written(
        source, EncryptionProperties(FOOTER), row_group_size=rows, max_rows_per_page=1, bloom_filters=False,
        column_encoding="PLAIN", use_dictionary=False,
    )  # fmt: skip
    found = pyparq.ParquetFile(data, decryption=DecryptionProperties(FOOTER))
    assert found.num_row_groups > 1
    assert pa.table(found.read()) == source
    assert found.metadata.num_rows == rows
    options = WriteOptions(encryption=EncryptionProperties(FOOTER), data_page_size=1_000, row_group_bytes=1 << 30)
    assert within_ordinals(options).row_group_bytes < 32_768 * 1_000
    assert within_ordinals(WriteOptions()) == WriteOptions()
    defaults = within_ordinals(WriteOptions(encryption=options.encryption))
    assert (defaults.row_group_size, defaults.row_group_bytes) == (
        WriteOptions().row_group_size,
        WriteOptions().row_group_bytes,
    )


def test_too_many_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.encryption import cipher as aad

    monkeypatch.setattr(aad, "MAX_ORDINAL", 6)  # the columns fit
    options: dict[str, Any] = {"row_group_size": 1, "bloom_filters": False, "column_encoding": None}
    written(table(7), EncryptionProperties(FOOTER), **options)
    path = tmp_path / "f.parquet"
    with pytest.raises(EncryptionError, match="row group 7 cannot be encrypted"):
        pyparq.write_table(table(8), path, encryption=EncryptionProperties(FOOTER), row_group_size=1)
    assert not path.exists()


def test_too_many_columns() -> None:
    from pyparq.encryption.writing import EncryptedFile

    paths = [(f"c{k}",) for k in range(32_769)]
    with pytest.raises(DataError, match="at most 32768 leaf columns"):
        EncryptedFile(EncryptionProperties(FOOTER), paths, "f")
    EncryptedFile(EncryptionProperties(FOOTER), paths[:-1], "f")
    EncryptedFile(EncryptionProperties(FOOTER, {"c0": OTHER}), paths, "f")  # the last one is clear


def test_invocations_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.encryption import cipher

    monkeypatch.setattr(cipher, "MAX_INVOCATIONS", 100)
    path = tmp_path / "f.parquet"
    with pytest.raises(EncryptionError, match="Use a new key"):
        pyparq.write_table(table(), path, encryption=EncryptionProperties(b"a key used often"), max_rows_per_page=50)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pages_are_sealed_natively(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python seals what there is one of in a chunk, and all where the library is too old for the kernel."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from pyparq.encryption import writing

    by_python: list[int] = []
    seal = writing.EncryptedChunk.seal

    def counting(self: Any, module: Any, parts: list[Any], page: int = -1) -> list[Any]:
        by_python.append(int(module))
        return seal(self, module, parts, page)

    monkeypatch.setattr(writing.EncryptedChunk, "seal", counting)
    properties = EncryptionProperties(FOOTER, algorithm=algorithm)
    data = written(table(), properties, bloom_filters=["shuffled"])
    assert read(data, DecryptionProperties(FOOTER)).num_rows == table().num_rows
    pages = {2, 3, 4, 5} if not hasattr(AESGCM, "encrypt_into") else set()
    assert set(by_python) == {6, 7, 8, 9} | pages


# ---- what a lookup reads


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bytes_of_a_lookup(algorithm: str) -> None:
    """Those of the plain file, 32 bytes more per module, and the Bloom filters asked whole."""
    properties = EncryptionProperties(FOOTER, algorithm=algorithm)
    data = written(table(), properties, bloom_filters=["shuffled"], column_encoding=None)
    file = by_hand(data, None)
    wanted = int(table()["shuffled"][1_234].as_py())
    counting = CountingFile(data)
    with pyparq.ParquetFile(
        counting, decryption=DecryptionProperties(FOOTER), coalesce_gap=0, tail_size=8, use_dictionaries=False
    ) as ours:
        scan = ours.scan(["unique"], filters=col("shuffled") == wanted)
        assert scan.to_table().to_pydict() == {"unique": ["hush-001234"]}
        assert scan.explain().bytes_fetched == counting.num_bytes
    bounds = [bounds_by_hand(file, k) for k in range(3)]
    asked = [k for k, (low, high) in enumerate(bounds) if low <= wanted <= high]
    filter_column, output = file.chunk(1, 1), file.chunk(1, 3)
    index = filter_column.column_index()
    pages = [
        k for k, (low, high) in enumerate(zip(index[2], index[3], strict=True))
        if int.from_bytes(low, "little") <= wanted <= int.from_bytes(high, "little")
    ]  # fmt: skip
    footer = int.from_bytes(data[-8:-4], "little")
    expected = 8 + footer
    expected += sum(file.chunk(k, 1).meta[15] for k in asked)
    expected += filter_column.raw[5] + filter_column.raw[7] + output.raw[5]
    expected += sum(filter_column.offset_index()[1][k][2] for k in pages)
    expected += output.offset_index()[1][1][2]  # row 234 of the row group is in its second page
    assert counting.num_bytes == expected


def bounds_by_hand(file: File, row_group: int) -> tuple[int, int]:
    """Smallest and largest ``shuffled`` of a row group as its statistics say."""
    statistics = file.chunk(row_group, 1).meta[12]
    return int.from_bytes(statistics[6], "little"), int.from_bytes(statistics[5], "little")


# ---- odd tables


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_odd_tables(algorithm: str, compression: str, version: str) -> None:
    """No rows, nothing but nulls, empty texts, empty lists: modules of few bytes or none."""
    for odd in (
        pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
        pa.table({"a": pa.array([None] * 5, pa.int64()), "s": [""] * 5, "l": [[], None, [None], [1], []]}),
        pa.table({"b": pa.array([True, None, False])}),
    ):
        data = stored(
            odd, EncryptionProperties(FOOTER, algorithm=algorithm), compression=compression, bloom_filters=True,
            data_page_version=version,
        )  # fmt: skip
        assert read(data, DecryptionProperties(FOOTER)) == odd
        theirs = pe.create_decryption_properties(FOOTER)
        assert pq.read_table(pa.BufferReader(data), decryption_properties=theirs) == odd


def test_written_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    with pyparq.ParquetWriter(path, {"a": "int64"}, encryption=EncryptionProperties(FOOTER)) as writer:
        for k in range(10):
            writer.write({"a": list(range(100 * k, 100 * (k + 1)))}, row_group_size=30)
    assert read(path, DecryptionProperties(FOOTER))["a"].to_pylist() == list(range(1_000))
