"""Spark (parquet-java) and pyparq, both ways, with a KMS that both know; and proof that each skips by the other's
encrypted indexes.
"""

from __future__ import annotations

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from encryption_by_hand import File, module_at
from encryption_tools import MASTER_KEYS, kms_file, local_kms, read
from spark_session import compile_java
from spark_tools import BLOOM, COLUMN_INDEX, STATISTICS, ask, load, put

import pyparq
from pyparq import col
from pyparq.encryption import CryptoFactory, EncryptionConfiguration, LocalFileKms
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize

pytestmark = pytest.mark.spark
pytest_plugins = ("spark_session",)

READING = {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "TestKms",
    "test.kms.keys": ",".join(f"{n}:{base64.b64encode(k).decode()}" for n, k in MASTER_KEYS.items()),
}
ROWS, PAGE = 4_000, 500
SCHEMA = "id long, s string, f double, st struct<x:long,y:array<long>>"


def table() -> pa.Table:
    """``id`` holds even numbers in order."""
    return pa.table(
        {
            "id": [2 * k for k in range(ROWS)],
            "s": [f"v{k % 97}" if k % 11 else None for k in range(ROWS)],
            "f": [k / 7 for k in range(ROWS)],
            "st": [{"x": k, "y": [k, k + 1]} for k in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def crypto(spark: Any) -> Any:
    """A Spark that knows the KMS."""
    compile_java(spark, Path(__file__).parents[1] / "support" / "java" / "TestKms.java")
    return spark


@pytest.fixture(scope="module")
def kms(tmp_path_factory: pytest.TempPathFactory) -> LocalFileKms:
    return local_kms(kms_file(tmp_path_factory.mktemp("kms") / "keys.json"))


@pytest.fixture(scope="module")
def frame(crypto: Any) -> Any:
    return crypto.createDataFrame(table().to_pylist(), SCHEMA)


def factory(kms: LocalFileKms) -> CryptoFactory:
    return CryptoFactory(lambda config: kms)


KEYS = {"uniform": {}, "some": {"kc1": ["id", "st.y"], "kc2": ["s"]}, "complete": {"kc1": ["id"]}}
# Pairs of everything at least, not all combinations: each takes Spark half a second.
CASES = [
    (algorithm, plaintext_footer, columns, double, internal, bits)
    for k, (algorithm, plaintext_footer, columns) in enumerate(
        itertools.product(["AES_GCM_V1", "AES_GCM_CTR_V1"], [False, True], KEYS)
    )
    for double, internal, bits in [[(True, True, 128), (False, False, 256)], [(True, False, 256), (False, True, 192)]][
        k % 2
    ]
]


def java_options(
    algorithm: str, plaintext_footer: bool, columns: str, double: bool, internal: bool, bits: int
) -> dict[str, str]:
    options = {
        **READING,
        "parquet.encryption.algorithm": algorithm,
        "parquet.encryption.plaintext.footer": str(plaintext_footer).lower(),
        "parquet.encryption.double.wrapping": str(double).lower(),
        "parquet.encryption.key.material.store.internally": str(internal).lower(),
        "parquet.encryption.data.key.length.bits": str(bits),
        "parquet.page.row.count.limit": str(PAGE),
        "parquet.enable.dictionary#id": "false",
        "parquet.bloom.filter.enabled#id": "true",
        "parquet.bloom.filter.expected.ndv#id": str(ROWS),
    }
    if columns == "uniform":
        return {**options, "parquet.encryption.uniform.key": "kf"}
    named = ";".join(f"{key}:{','.join(names)}" for key, names in KEYS[columns].items())
    return {
        **options,
        "parquet.encryption.footer.key": "kf",
        "parquet.encryption.column.keys": named.replace("st.y", "st.y.list.element"),
        "parquet.encryption.complete.columns": str(columns == "complete").lower(),
    }


def config(
    algorithm: str, plaintext_footer: bool, columns: str, double: bool, internal: bool, bits: int
) -> EncryptionConfiguration:
    return EncryptionConfiguration(
        "kf", KEYS[columns], uniform_encryption=columns == "uniform", complete_columns=columns == "complete",
        encryption_algorithm=algorithm, plaintext_footer=plaintext_footer, double_wrapping=double,
        internal_key_material=internal, data_key_length_bits=bits, aad_prefix="a prefix" if double else None,
    )  # fmt: skip


def ours(kms: LocalFileKms, path: Path, *case: Any, **options: Any) -> Path:
    keep: dict[str, Any] = {"row_group_size": 1_000, "max_rows_per_page": 100, "bloom_filters": ["id", "s"]}
    properties = factory(kms).file_encryption_properties(None, config(*case))
    pyparq.write_table(table(), path, encryption=properties, use_dictionary=False, **{**keep, **options})
    return path


# ---------------------------------------------------------------- values


@pytest.mark.sweep(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark_reads_ours(crypto: Any, kms: LocalFileKms, tmp_path: Path, case: tuple[Any, ...]) -> None:
    path = ours(kms, tmp_path / "ours.parquet", *case, bloom_filter_layout="row_group" if case[1] else "footer")
    found = load(crypto, path, READING)
    rows = [row.asDict(recursive=True) for row in found.collect()]
    assert rows == table().to_pylist()
    assert [row.id for row in found.where("id in (246, 247)").collect()] == [246]


@pytest.mark.sweep(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_we_read_spark(crypto: Any, frame: Any, kms: LocalFileKms, tmp_path: Path, case: tuple[Any, ...]) -> None:
    path = put(frame, tmp_path / "theirs", java_options(*case))
    properties = factory(kms).file_decryption_properties()
    assert read(path, properties).to_pylist() == table().to_pylist()
    with pyparq.ParquetFile(path, decryption=properties) as file:
        scan = file.scan(["s", "st"], filters=col("id") == 246)
        assert scan.to_table().to_pylist() == table().slice(123, 1).select(["s", "st"]).to_pylist()
        stages = {stage.name: stage for stage in scan.explain().stages}
        assert stages["bloom filter"].row_groups_after == 1
        assert (stages["column index"].pages_before, stages["column index"].pages_after) == (ROWS // PAGE, 1)
        filter_ = file.bloom_filter(0, "id")
        assert filter_ is not None
        assert filter_.check(list(range(0, 2 * ROWS, 2))).all()
        assert filter_.check(list(range(1, 2 * ROWS, 2))).mean() < 0.03


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("columns", KEYS)
def test_we_read_pages_of_version_2(
    crypto: Any, frame: Any, kms: LocalFileKms, tmp_path: Path, columns: str, algorithm: str
) -> None:
    """parquet-java leaves their levels in the clear, which the specification does not say."""
    options = java_options(algorithm, False, columns, True, True, 128) | {"parquet.writer.version": "v2"}
    path = put(frame, tmp_path / "theirs", options)
    properties = factory(kms).file_decryption_properties()
    with pyparq.ParquetFile(path, decryption=properties) as file:
        assert {page.type for page in file.pages(0, "id")} == {"data v2"}
    assert read(path, properties).to_pylist() == table().to_pylist()
    assert read(path, properties, filters=col("id") > 7_000).num_rows == 499


@pytest.mark.parametrize("columns", KEYS)
def test_spark_splits_ours(crypto: Any, kms: LocalFileKms, tmp_path: Path, columns: str) -> None:
    """parquet-java takes row groups of an encrypted footer by their own offset and size, not their columns'."""
    path = ours(kms, tmp_path / "ours.parquet", "AES_GCM_V1", False, columns, True, True, 128, compression="none")
    setting = "spark.sql.files.maxPartitionBytes"
    before = crypto.conf.get(setting)
    crypto.conf.set(setting, str(path.stat().st_size // 7))
    try:
        found = load(crypto, path, READING).select("id")
        assert found.rdd.getNumPartitions() > 4
        assert sorted(row.id for row in found.collect()) == list(range(0, 2 * ROWS, 2))
    finally:
        crypto.conf.set(setting, before)


# ---------------------------------------------------------------- indexes


def opened(path: Path, kms: LocalFileKms) -> File:
    """The file by hand, its data keys from the KMS (single wrapping, internal material)."""

    def key(metadata: bytes) -> bytes:
        material = json.loads(metadata)
        return kms.unwrap_key(material["wrappedDEK"], material["masterKeyID"])

    return File(path.read_bytes(), key)


def without_bits(path: Path, kms: LocalFileKms) -> Path:
    """A copy whose Bloom filters of ``id`` say of everything that it is absent, properly encrypted."""
    file = opened(path, kms)
    data = bytearray(file.data)
    for row_group in range(len(file.footer[4])):
        chunk = file.chunk(row_group, 0)
        _, bitset = chunk.bloom_filter()
        start = chunk.meta[14] + len(module_at(file.data, chunk.meta[14]))
        sealed = chunk.seal(9, bytes(len(bitset)))
        assert len(module_at(file.data, start)) == len(sealed)
        data[start : start + len(sealed)] = sealed
    target = path.with_name("no-bits.parquet")
    target.write_bytes(data)
    return target


def with_moved_bounds(path: Path, kms: LocalFileKms, row_group: int, page: int) -> Path:
    """A copy where a page of ``id`` has bounds beyond all values in the ColumnIndex, properly encrypted."""
    file = opened(path, kms)
    chunk = file.chunk(row_group, 0)
    start, size = chunk.raw[6], chunk.raw[7]
    text = chunk.open(6, file.data[start : start + size])
    index, end = deserialize(tt.ColumnIndex, text)
    far = (10**9).to_bytes(8, "little")
    index.min_values[page] = index.max_values[page] = far
    index.boundary_order = tt.BoundaryOrder.UNORDERED
    sealed = chunk.seal(6, serialize(index) + text[end:])
    assert len(sealed) == size
    data = bytearray(file.data)
    data[start : start + size] = sealed
    target = path.with_name("moved.parquet")
    target.write_bytes(data)
    return target


SINGLE = {"double": False, "internal": True, "bits": 128}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("layout", ["footer", "row_group"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_spark_skips_by_ours(
    crypto: Any, kms: LocalFileKms, tmp_path: Path, layout: str, plaintext_footer: bool, algorithm: str
) -> None:
    case = (algorithm, plaintext_footer, "some", False, True, 128)
    path = ours(kms, tmp_path / "ours.parquet", *case, bloom_filter_layout=layout, sort_by=["f"])

    def asked(file: Path, where: str, *off: str) -> Any:
        return ask(crypto, file, where, "id", off, READING)

    # odd, and within the bounds of a row group and of a page
    assert asked(path, "id = 1997").scanned == 0
    assert asked(path, "id = 1997", BLOOM).scanned == 100
    assert asked(path, "id = 1997", BLOOM, COLUMN_INDEX).scanned == 1_000
    present = asked(path, "id = 1998")
    assert (present.rows, present.scanned) == ([(1998,)], 100)  # one page
    assert asked(path, "id = 1998", COLUMN_INDEX).scanned == 1_000
    blind = without_bits(path, kms)
    assert asked(blind, "id = 1998").rows == []  # it believes our filter
    assert asked(blind, "id = 1998", BLOOM).rows == [(1998,)]
    moved = with_moved_bounds(path, kms, 0, 9)
    assert asked(moved, "id = 1998").rows == []  # and our column index
    assert asked(moved, "id = 1998", COLUMN_INDEX, STATISTICS).rows == [(1998,)]


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_we_skip_by_sparks(crypto: Any, frame: Any, kms: LocalFileKms, tmp_path: Path, plaintext_footer: bool) -> None:
    path = put(frame, tmp_path / "theirs", java_options("AES_GCM_V1", plaintext_footer, "some", False, True, 128))
    properties = factory(kms).file_decryption_properties()

    def asked(file: Path, value: int, **options: Any) -> list[int]:
        return read(file, properties, columns=["id"], filters=col("id") == value, **options)["id"].to_pylist()

    assert asked(path, 1998) == [1998]
    assert asked(path, 1997) == []
    blind = without_bits(path, kms)
    assert asked(blind, 1998) == []
    assert asked(blind, 1998, use_bloom_filters=False) == [1998]
    moved = with_moved_bounds(path, kms, 0, 1)
    assert asked(moved, 1998) == []
    assert asked(moved, 1998, use_page_index=False) == [1998]
