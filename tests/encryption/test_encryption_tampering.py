"""Altered files: other data never come out of them.

What authenticates and what does not follows Encryption.md: GCM modules are bound to their place and file; CTR page
bodies, columns in the clear and a file without a supplied AAD prefix are not (docs/encryption.md says so too).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from encryption_by_hand import File, module_at
from encryption_tools import FOOTER, OTHER, read, stored, table, written

import pyparq
from pyparq import col
from pyparq.encryption import DecryptionProperties, EncryptionProperties, writing
from pyparq.encryption.cipher import Module
from pyparq.errors import ChecksumError, CorruptIndexWarning, EncryptionError, ParquetError, UnverifiedFooterWarning
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize, serialize

KEYS = DecryptionProperties(FOOTER)


def small(**options: Any) -> pa.Table:
    return pa.table({"a": pa.array([1, 2, 3, None]), "b": pa.array(["x", "yy", "zzz", "x"])})


def look(data: bytes, decryption: DecryptionProperties = KEYS) -> list[Any]:
    """Everything that can be read of a file, by every path: all of it, and through Bloom filter and indexes."""
    with pyparq.ParquetFile(data, decryption=decryption) as file:
        return [
            file.read().to_pydict(),
            file.scan(filters=col("a") == 2).to_table().to_pydict(),
            file.scan(filters=col("b") == "zzz").to_table().to_pydict(),
            file.scan(["b"], filters=col("a").is_null()).to_table().to_pydict(),
            file.scan(filters=col("b") == "absent").to_table().to_pydict(),
            file.metadata.num_rows,
        ]


def assert_safe(data: bytes, expected: list[Any], decryption: DecryptionProperties = KEYS) -> bool:
    """Right data or a typed error; whether it was an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptIndexWarning)
        try:
            found = look(data, decryption)
        except ParquetError:
            return True
    assert found == expected
    return False


@pytest.mark.sweep(8)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_every_byte(compression: str, plaintext_footer: bool, version: str) -> None:
    """A small uniformly encrypted GCM file: each byte flipped in three ways."""
    data = stored(
        small(), EncryptionProperties(FOOTER, plaintext_footer=plaintext_footer, aad_prefix="p"),
        max_rows_per_page=2, bloom_filters=True, use_dictionary=["b"], compression=compression,
        data_page_version=version,
    )  # fmt: skip
    expected = look(data)
    refused = 0
    for at in range(len(data)):
        for flip in (0x01, 0x80, 0xFF) if at > len(data) - 600 else (0x55,):
            altered = bytearray(data)
            altered[at] ^= flip
            refused += assert_safe(bytes(altered), expected)
    # All but the magic at the start and the Bloom filters' parts that no query needs is authenticated and looked at.
    assert refused > 0.85 * len(data)


@pytest.mark.fuzz
def test_every_byte_three_ways() -> None:
    data = stored(small(), EncryptionProperties(FOOTER), max_rows_per_page=2, bloom_filters=True)
    expected = look(data)
    for at in range(len(data)):
        for flip in range(1, 256, 2):
            altered = bytearray(data)
            altered[at] ^= flip
            assert_safe(bytes(altered), expected)


def test_a_large_file() -> None:
    source = table(20_000)
    data = written(source, EncryptionProperties(FOOTER), row_group_size=7_000, max_rows_per_page=1_000)
    rng = np.random.default_rng(11)
    refused = 0
    for _ in range(60):
        altered = bytearray(data)
        for at in rng.integers(0, len(data), rng.integers(1, 4)):
            altered[at] ^= int(rng.integers(1, 256))
        try:
            assert read(bytes(altered), KEYS) == source
        except ParquetError:
            refused += 1
    assert refused > 30


@pytest.mark.parametrize("cut", [1, 7, 8, 9, 40, 500, -1, -5])
def test_truncated(cut: int) -> None:
    data = stored(small(), EncryptionProperties(FOOTER), bloom_filters=True)
    with pytest.raises(ParquetError):
        read(data[:-cut] if cut > 0 else data[-cut:], KEYS)


# ---- modules moved


def swapped(data: bytes, one: tuple[int, int], two: tuple[int, int]) -> bytes:
    """Two stretches (offset, length) of the same length exchanged."""
    (a, size), (b, other) = one, two
    assert size == other
    altered = bytearray(data)
    altered[a : a + size], altered[b : b + size] = data[b : b + size], data[a : a + size]
    assert altered != data
    return bytes(altered)


def fixed() -> tuple[bytes, File, pa.Table]:
    """Two columns of pages of the same size, in two row groups."""
    rng = np.random.default_rng(5)
    source = pa.table({"a": rng.integers(0, 2**62, 4_000), "b": rng.integers(0, 2**62, 4_000)})
    data = stored(
        source, EncryptionProperties(FOOTER), row_group_size=2_000, max_rows_per_page=500, compression="none",
        use_dictionary=False, bloom_filters=["a", "b"], write_page_checksum=False,
    )  # fmt: skip
    return data, File(data, {None: FOOTER}), source


def places(file: File, row_group: int, column: int) -> list[tuple[int, int]]:
    """(offset, length) of the data pages."""
    return [(page[1], page[2]) for page in file.chunk(row_group, column).offset_index()[1]]


def body(data: bytes, page: tuple[int, int]) -> tuple[int, int]:
    """(offset, length) of a page's body."""
    head = len(module_at(data, page[0]))
    return page[0] + head, page[1] - head


def test_exchanged_indexes() -> None:
    data, file, source = fixed()
    value = source["a"][700].as_py()
    one, two = file.chunk(0, 0), file.chunk(1, 0)
    for name, spans in (
        ("offset index", [(c.raw[4], c.raw[5]) for c in (one, two)]),
        ("column index", [(c.raw[6], c.raw[7]) for c in (one, two)]),
        ("bloom filter header", [(c.meta[14], c.meta[15]) for c in (one, two)]),
    ):
        if spans[0][1] != spans[1][1]:
            (a, x), (b, y) = spans
            spans = [(a, min(x, y)), (b, min(x, y))]
        with pytest.raises(EncryptionError, match=name):
            read(swapped(data, spans[0], spans[1]), KEYS, filters=col("a") == value)


Span = tuple[str, int, int]
"""Kind, offset, length."""


def spans_of(file: File) -> Iterator[Span]:
    """Every module of a file's row groups, and what stands together: pages, whole chunks, whole Bloom filters."""
    for row_group in range(len(file.footer[4])):
        for column in range(len(file.footer[4][0][1])):
            chunk = file.chunk(row_group, column)
            meta, raw = chunk.meta, chunk.raw
            start = at = min(o for o in (meta.get(11, 0), meta[9]) if o)
            for header, stored_body, _ in chunk.pages():
                kind = "dictionary page" if header[1] == 2 else "data page"
                size = len(module_at(file.data, at))
                yield f"{kind} header", at, size
                yield kind, at + size, len(stored_body)
                yield f"whole {kind}", at, size + len(stored_body)
                at += size + len(stored_body)
            yield "column chunk", start, meta[7]
            yield "offset index", raw[4], raw[5]
            yield "column index", raw[6], raw[7]
            if 14 in meta:
                size = len(module_at(file.data, meta[14]))
                yield "bloom filter header", meta[14], size
                yield "bloom filter bitset", meta[14] + size, meta[15] - size
                yield "whole bloom filter", meta[14], meta[15]


KINDS = {
    "data page header", "data page", "whole data page", "dictionary page header", "dictionary page",
    "whole dictionary page", "column chunk", "offset index", "column index", "bloom filter header",
    "bloom filter bitset", "whole bloom filter",
}  # fmt: skip


def numbers(seed: int) -> pa.Table:
    """Columns whose modules have the same sizes, in pairs."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": rng.integers(0, 2**62, 600), "b": rng.integers(0, 2**62, 600),
            "c": 2**40 + rng.permutation(np.arange(600) % 8), "d": 2**41 + rng.permutation(np.arange(600) % 8),
        }
    )  # fmt: skip


def everything(data: bytes, keys: DecryptionProperties, source: pa.Table) -> list[Any]:
    """All rows; rows by Bloom filters, dictionaries and page indexes of either row group; the filters themselves."""
    with pyparq.ParquetFile(data, decryption=keys) as file:
        found: list[Any] = [file.read().to_pydict()]
        for name, row in itertools.product(source.column_names, (20, 450)):
            found.append(file.scan(filters=col(name) == source[name][row].as_py()).to_table().to_pydict())
        for name, k in itertools.product("ab", range(2)):
            found.append(file.bloom_filter(k, name).bitset.tobytes())  # type: ignore[union-attr]
        for name, k in itertools.product(source.column_names, range(2)):
            found.append(str(file.column_index(k, name)))
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("own_keys", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_two_modules_of_a_size_exchanged(version: str, own_keys: bool) -> None:
    """Within the file, and with the same place of another file under the same keys."""
    raw = {"a": OTHER, "b": OTHER, "c": OTHER, "d": OTHER} if own_keys else None
    properties = EncryptionProperties(FOOTER, raw, plaintext_footer=own_keys)
    keys = DecryptionProperties(FOOTER, raw)
    source, other = numbers(1), numbers(2)
    ours, theirs = (
        stored(
            t, properties, row_group_size=300, max_rows_per_page=150, compression="none", bloom_filters=["a", "b"],
            use_dictionary=["c", "d"], column_encoding={"a": "PLAIN", "b": "PLAIN"}, data_page_version=version,
            write_page_checksum=False,
        )
        for t in (source, other)
    )  # fmt: skip
    by_hand: dict[str | None, bytes] = {None: FOOTER, **(raw or {})}
    spans, foreign = (list(spans_of(File(data, by_hand))) for data in (ours, theirs))
    everything(ours, keys, source)
    exchanged, replaced = set(), set()
    for one, two in itertools.combinations(spans, 2):
        if one[0] == two[0] and one[2] == two[2]:
            exchanged.add(one[0])
            with pytest.raises(EncryptionError):
                everything(swapped(ours, one[1:], two[1:]), keys, source)
    for one, two in zip(spans, foreign, strict=True):
        if one == two:
            kind, at, size = one
            replaced.add(kind)
            with pytest.raises(EncryptionError):
                everything(ours[:at] + theirs[at : at + size] + ours[at + size :], keys, source)
    assert exchanged == replaced == KINDS


# ---- files exchanged


def test_another_file_in_its_place() -> None:
    first, second = (pa.table({"a": [k, k + 1]}) for k in (1, 5))
    keep = {"use_dictionary": False}
    for store in (True, False):
        old, new = (
            stored(t, EncryptionProperties(FOOTER, aad_prefix=name, store_aad_prefix=store), **keep)
            for t, name in ((first, "day 1"), (second, "day 2"))
        )
        supplied = DecryptionProperties(FOOTER, aad_prefix="day 2")
        assert read(new, supplied) == second
        with pytest.raises(EncryptionError):
            read(old, supplied)
        with pytest.raises(EncryptionError):  # the prefix forged
            read(old.replace(b"day 1", b"day 2"), supplied if store else DecryptionProperties(FOOTER, aad_prefix="x"))
    with pytest.raises(EncryptionError, match="written without one"):
        read(stored(first, EncryptionProperties(FOOTER), **keep), supplied)
    with pytest.raises(EncryptionError, match="not encrypted"):
        read(stored(first, None, **keep), supplied)
    # without a prefix of the reader's nobody notices: documented
    assert read(stored(first, EncryptionProperties(FOOTER), **keep), DecryptionProperties(FOOTER)) == first


def test_pages_of_another_file() -> None:
    """The file's identifier keeps modules of files under one key apart."""
    source = pa.table({"a": np.arange(500)})
    keep: dict[str, Any] = {"column_encoding": "PLAIN", "use_dictionary": False, "write_page_checksum": False}
    one, two = (stored(source, EncryptionProperties(FOOTER), **keep) for _ in range(2))
    page, other = (places(File(d, {None: FOOTER}), 0, 0)[0] for d in (one, two))
    assert page == other
    altered = bytearray(one)
    altered[page[0] : sum(page)] = two[page[0] : sum(page)]
    with pytest.raises(EncryptionError, match="data page header"):
        read(bytes(altered), KEYS)


# ---- some columns, or the footer, in the clear


def test_signed_footer() -> None:
    """Every byte of a plaintext footer is under its signature."""
    data = stored(small(), EncryptionProperties(FOOTER, {"b": OTHER}, plaintext_footer=True))
    keys = DecryptionProperties(FOOTER, {"b": OTHER})
    expected = look(data, keys)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for at in range(start, len(data)):
        altered = bytearray(data)
        altered[at] ^= 0x55
        assert assert_safe(bytes(altered), expected, keys), at


Change = Callable[[tt.FileMetaData], None]


def exchange_metadata(footer: tt.FileMetaData) -> None:
    one, two = (group.columns[1] for group in footer.row_groups)
    one.encrypted_column_metadata, two.encrypted_column_metadata = (
        two.encrypted_column_metadata,
        one.encrypted_column_metadata,
    )


def exchange_groups(footer: tt.FileMetaData) -> None:
    footer.row_groups.reverse()


def renumber_groups(footer: tt.FileMetaData) -> None:
    footer.row_groups.reverse()
    for k, group in enumerate(footer.row_groups):
        group.ordinal = k


def drop_group(footer: tt.FileMetaData) -> None:
    del footer.row_groups[0]
    footer.num_rows = footer.row_groups[0].num_rows


def falsify_statistics(footer: tt.FileMetaData) -> None:
    chunk = footer.row_groups[0].columns[1]
    chunk.encrypted_column_metadata = None
    chunk.meta_data.statistics = tt.Statistics(min_value=b"y", max_value=b"z", null_count=0)


def rename_column(footer: tt.FileMetaData) -> None:
    footer.row_groups[0].columns[1].crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema = ["c"]


def rename_at_length(footer: tt.FileMetaData) -> None:
    footer.row_groups[0].columns[1].crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema = ["c" * 10_000]


def prefix_at_length(footer: tt.FileMetaData) -> None:
    assert footer.encryption_algorithm is not None
    footer.encryption_algorithm.AES_GCM_V1.aad_prefix = b"p" * 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (exchange_metadata, "column metadata cannot be decrypted"),
        (exchange_groups, "declares a different ordinal, 1"),
        (renumber_groups, "column metadata cannot be decrypted"),
        (drop_group, "declares a different ordinal, 1"),
        (falsify_statistics, "no encrypted metadata"),
        (rename_column, "is for another column, 'c'"),
        (rename_at_length, r"is for another column, 'c{100}'\.\.\."),
        (prefix_at_length, "column metadata cannot be decrypted"),
    ],
)
def test_encrypted_columns_in_a_footer_that_nobody_checks(change: Change, message: str) -> None:
    """Who has a column's key alone cannot check the signature; the column's own modules are bound to their places."""
    properties = EncryptionProperties(FOOTER, {"b": OTHER}, plaintext_footer=True)
    data = stored(small(), properties, row_group_size=2)
    size = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - size], data[-8 - size : -8]
    meta, _ = deserialize(tt.FileMetaData, footer)
    change(meta)
    changed = serialize(meta) + footer[-28:]
    altered = body + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    keys = DecryptionProperties(column_keys={"b": OTHER})
    with pytest.warns(UnverifiedFooterWarning):
        assert read(data, keys, columns=["b"]) == small().select(["b"])
    with pytest.warns(UnverifiedFooterWarning), pytest.raises(ParquetError, match=message) as caught:
        read(altered, keys, columns=["b"], filters=col("b") == "x")
    assert len(str(caught.value)) < 500
    with pytest.raises(EncryptionError) as caught:
        read(altered, DecryptionProperties(column_keys={"b": OTHER}, aad_prefix="mine"), columns=["b"])
    assert len(str(caught.value)) < 500
    with pytest.raises(EncryptionError, match="signature"):
        read(altered, DecryptionProperties(FOOTER, {"b": OTHER}), columns=["b"])


def test_encrypted_columns_beside_clear_ones() -> None:
    data = stored(small(), EncryptionProperties(FOOTER, {"b": OTHER}), compression="none")
    keys = DecryptionProperties(FOOTER, {"b": OTHER})
    chunk = File(data, {None: FOOTER, "b": OTHER}).chunk(0, 1)
    start = min(o for o in (chunk.meta.get(11, 0), chunk.meta[9]) if o)
    for at in range(start, start + chunk.meta[7]):
        altered = bytearray(data)
        altered[at] ^= 0x10
        with pytest.raises(ParquetError):
            read(bytes(altered), keys, columns=["b"])
        assert read(bytes(altered), keys, columns=["a"]) == small().select(["a"])


def test_another_algorithm_in_the_crypto_metadata() -> None:
    """GCM pages announced as CTR would go unauthenticated: their size gives it away, or the reader's demand."""
    source = table(500)
    for compression in ("none", "snappy", "zstd", "gzip"):
        data = written(source, EncryptionProperties(FOOTER), compression=compression)
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        assert data[start : start + 2] == b"\x1c\x1c"  # field 1, then member 1 of the union
        altered = data[: start + 1] + b"\x2c" + data[start + 2 :]
        with pytest.raises(ParquetError):
            read(altered, DecryptionProperties(FOOTER))
        with pytest.raises(EncryptionError, match="AES_GCM_CTR_V1, but AES_GCM_V1 is required"):
            read(altered, DecryptionProperties(FOOTER, algorithm="AES_GCM_V1"))


def test_a_tag_makes_a_checksum_needless() -> None:
    """What a GCM tag covers is refused for its tag, whether the page has a CRC or not."""
    data = stored(pa.table({"a": np.arange(500)}), EncryptionProperties(FOOTER))
    at, size = body(data, places(File(data, {None: FOOTER}), 0, 0)[0])
    altered = bytearray(data)
    altered[at + size - 1] ^= 1
    with pytest.raises(EncryptionError, match="authentication"):
        read(bytes(altered), KEYS)


def test_levels_outside_of_a_module_need_their_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """parquet-java encrypts the values of a v2 page alone: only the CRC covers its levels."""
    real = writing.EncryptedChunk.seal

    def seal(self: Any, module: Module, parts: Any, page: int = -1) -> Any:
        clear = parts[:2] if module == Module.DATA_PAGE else []
        return [*clear, *real(self, module, parts[len(clear) :], page)]

    monkeypatch.setattr(writing.EncryptedChunk, "seal", seal)
    source = pa.table({"a": [None if k % 3 else k for k in range(500)]})
    data = stored(source, EncryptionProperties(FOOTER), data_page_version="2.0")
    assert read(data, KEYS) == source
    at, _ = body(data, places(File(data, {None: FOOTER}), 0, 0)[0])
    altered = bytearray(data)
    altered[at + 3] ^= 1
    with pytest.raises(ChecksumError):
        read(bytes(altered), KEYS)


def test_ctr_pages_are_only_as_safe_as_their_checksums() -> None:
    """With CTR the headers are authenticated, and in them the CRCs of the pages."""
    source = pa.table({"a": np.arange(500)})
    properties = EncryptionProperties(FOOTER, algorithm="AES_GCM_CTR_V1")
    keep: dict[str, Any] = {"column_encoding": "PLAIN", "compression": "none"}
    for checksum in (True, False):
        data = stored(source, properties, write_page_checksum=checksum, **keep)
        at, size = body(data, places(File(data, {None: FOOTER}), 0, 0)[0])
        altered = bytearray(data)
        altered[at + size - 1] ^= 1
        if checksum:
            with pytest.raises(ParquetError, match="CRC"):
                read(bytes(altered), KEYS)
        else:
            assert read(bytes(altered), KEYS) != source  # documented: nothing protects these bytes
