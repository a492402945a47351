"""Keys: what is said when they are wrong or missing, that they never show, and key tools with a KMS."""

from __future__ import annotations

import base64
import copy
import errno
import itertools
import json
import os
import pickle
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from encryption_tools import FOOTER, MASTER_KEYS, OTHER, THIRD, kms_file, local_kms, read, table, written

import pyparq
from pyparq import col
from pyparq.encryption import (
    CryptoFactory,
    DecryptionConfiguration,
    DecryptionProperties,
    EncryptionConfiguration,
    EncryptionKey,
    EncryptionProperties,
    KmsConnectionConfig,
    LocalFileKms,
)
from pyparq.errors import ColumnNotFoundError, EncryptionError, OptionError, ParquetError

WRONG = b"not the right key"[:16]


def material(**fields: Any) -> bytes:
    """Internal key material of a footer key, some of it changed."""
    good = {
        "keyMaterialType": "PKMT1", "internalStorage": True, "isFooterKey": True, "kmsInstanceID": "DEFAULT",
        "kmsInstanceURL": "DEFAULT", "masterKeyID": "kf", "wrappedDEK": "AA==", "doubleWrapping": False,
    }  # fmt: skip
    return json.dumps({**good, **fields}).encode()


def own_keys() -> bytes:
    keys = {"unique": EncryptionKey(OTHER, b"key 1"), "id": EncryptionKey(THIRD, b"key 2")}
    return written(table(300), EncryptionProperties(EncryptionKey(FOOTER, b"key 0"), keys, aad_prefix="p"))


# ---- each mistake has a message of its own


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (None, "the footer is encrypted and its key is not known.*'key 0'"),
        (lambda: DecryptionProperties(), "the footer is encrypted and its key is not known.*'key 0'"),
        (lambda: DecryptionProperties(WRONG), "the footer cannot be decrypted.*authentication.*'key 0'"),
        (lambda: DecryptionProperties(OTHER), "the footer cannot be decrypted.*authentication.*'key 0'"),
        (lambda: DecryptionProperties(FOOTER), "its own key, which is not known.*'key 2'.*column id"),
        (lambda: DecryptionProperties(FOOTER, {"id": THIRD}), "not known.*'key 1'.*column unique"),
        (
            lambda: DecryptionProperties(FOOTER, {"id": THIRD, "unique": WRONG}),
            "the column metadata cannot be decrypted.*authentication.*'key 1'.*column unique",
        ),
        (lambda: DecryptionProperties(FOOTER, aad_prefix="q"), "AAD prefix b'p', but b'q' was given"),
        (
            lambda: DecryptionProperties(FOOTER, algorithm="AES_GCM_CTR_V1"),
            "AES_GCM_V1, but AES_GCM_CTR_V1 is required",
        ),
        (lambda: DecryptionProperties(key_retriever=lambda m: b"short"), "5 bytes, but an AES key has 16, 24 or 32"),
        (lambda: DecryptionProperties(key_retriever=lambda m: "text"), "must be bytes, not str"),
        (lambda: DecryptionProperties(key_retriever=lambda m: None), "its key is not known"),
        (lambda: DecryptionProperties(key_retriever=lambda m: 1 / 0), "could not be retrieved: ZeroDivisionError"),
    ],
)
def test_messages(properties: Callable[[], DecryptionProperties] | None, message: str) -> None:
    data = own_keys()
    with pytest.raises(EncryptionError, match=message):
        read(data, None if properties is None else properties())


def test_the_right_keys() -> None:
    assert read(own_keys(), DecryptionProperties(FOOTER, {"id": THIRD, "unique": OTHER})) == table(300)


def test_plain_files_are_refused() -> None:
    data = written(table(300), None)
    with pytest.raises(EncryptionError, match="not encrypted, but keys were given"):
        read(data, DecryptionProperties(FOOTER))
    assert read(data, DecryptionProperties(FOOTER, allow_plaintext_files=True)) == table(300)


def test_signed_footers() -> None:
    data = written(table(300), EncryptionProperties(FOOTER, {"id": OTHER}, plaintext_footer=True))
    for wanted in (None, True):
        keys = DecryptionProperties(WRONG, {"id": OTHER}, check_footer_integrity=wanted)
        with pytest.raises(EncryptionError, match="does not match its signature"):
            read(data, keys)
    assert read(data, DecryptionProperties(WRONG, {"id": OTHER}, check_footer_integrity=False)) == table(300)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EncryptionProperties(b"short"), "footer_key has 5 bytes, but an AES key has 16, 24 or 32"),
        (lambda: EncryptionProperties("a text of 16 let"), "footer_key must be bytes, not str"),
        (lambda: EncryptionProperties(FOOTER, {"a": b"short"}), "the key of column 'a' has 5 bytes"),
        (lambda: EncryptionProperties(FOOTER, [OTHER]), "must map column names"),
        (lambda: EncryptionProperties(FOOTER, {}), "no column would be encrypted"),
        (lambda: EncryptionProperties(FOOTER, {1: OTHER}), "must have names of columns as keys, not int"),
        (lambda: EncryptionProperties(FOOTER, plaintext_footer="false"), "plaintext_footer must be True or False"),
        (lambda: EncryptionProperties(FOOTER, complete_columns=1), "complete_columns must be True or False"),
        (lambda: EncryptionProperties(FOOTER, aad_prefix="x", store_aad_prefix="no"), "store_aad_prefix must be True"),
        (
            lambda: EncryptionProperties(FOOTER, aad_prefix="\ud800"),
            "aad_prefix contains a character that cannot be encoded",
        ),
        (lambda: EncryptionKey(FOOTER, "\ud800"), "key metadata contains a character that cannot be encoded"),
        (lambda: DecryptionProperties(FOOTER, []), "must map column names"),
        (lambda: DecryptionProperties(FOOTER, allow_plaintext_files="false"), "allow_plaintext_files must be True or"),
        (lambda: DecryptionProperties(FOOTER, check_footer_integrity=0), "check_footer_integrity must be True or"),
        (lambda: EncryptionProperties(FOOTER, algorithm="AES"), "'AES_GCM_V1' or 'AES_GCM_CTR_V1', not 'AES'"),
        (lambda: EncryptionProperties(FOOTER, store_aad_prefix=False), "needs an aad_prefix"),
        (lambda: EncryptionProperties(FOOTER, aad_prefix=1), "must be text or bytes"),
        (lambda: EncryptionKey(b"short"), "5 bytes"),
        (lambda: EncryptionKey(FOOTER, 5), "key metadata must be text or bytes"),
        (lambda: DecryptionProperties(b"short"), "footer_key has 5 bytes"),
        (lambda: DecryptionProperties(FOOTER, {"a": b"short"}), "column 'a' has 5 bytes"),
        (lambda: DecryptionProperties(key_retriever="k"), "must be a function"),
        (lambda: DecryptionProperties(algorithm="x"), "algorithm must be"),
        (
            lambda: read(b"", {"footer_key": FOOTER}),
            r"decryption must be pyparq\.DecryptionProperties\(key\), not dict",
        ),
        (lambda: EncryptionConfiguration("kf"), "give either column_keys or uniform_encryption=True"),
        (
            lambda: EncryptionConfiguration("kf", {"k": ["a"]}, uniform_encryption=True),
            "give either column_keys or uniform_encryption=True",
        ),
        (lambda: EncryptionConfiguration("kf", {"k": "a"}), "list of at least one column"),
        (lambda: EncryptionConfiguration("kf", {"k": []}), "list of at least one column name"),
        (lambda: EncryptionConfiguration("kf", [("k", ["a"])]), "names of master keys to lists"),
        (lambda: EncryptionConfiguration("kf", {5: ["a"]}), "the name of a master key must be text, not int"),
        (lambda: EncryptionConfiguration(b"kf", uniform_encryption=True), "name of a master key, not bytes"),
        (
            lambda: CryptoFactory(len).file_decryption_properties(footer_key=FOOTER),
            "'footer_key' is not an option for a KMS",
        ),
        (
            lambda: CryptoFactory(len).file_decryption_properties(key_retriever=len),
            "'key_retriever' is not an option for a KMS",
        ),
        (lambda: EncryptionConfiguration("kf", {"k": ["a"], "l": ["a"]}), "twice"),
        (lambda: EncryptionConfiguration("kf", {"k": ["a"]}, data_key_length_bits=64), "128, 192 or 256"),
        (lambda: CryptoFactory(None), "must be a function"),
    ],
)
def test_wrong_options(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


# ---- keys never show


def test_keys_never_show(tmp_path: Path) -> None:
    """Not in a repr, an error with its traceback, a plan, an explanation, nor in a pickle."""
    encryption = EncryptionProperties(FOOTER, {"id": OTHER, "unique": EncryptionKey(THIRD, b"meta")})
    decryption = DecryptionProperties(FOOTER, {"id": OTHER, "unique": THIRD})
    path = tmp_path / "f.parquet"
    path.write_bytes(written(table(300), encryption))
    shown = [repr(encryption), repr(decryption), repr(EncryptionKey(FOOTER)), str(encryption), str(decryption)]
    with pyparq.ParquetFile(path, decryption=decryption) as file:
        scan = file.scan(filters=col("id") == 4)
        plan = pickle.dumps(scan.plan())
        shown += [repr(file._file.options), str(scan.plan()), repr(scan.plan()), str(scan.explain()), repr(file)]
        shown.append(repr(file.metadata))
        assert pa.table(file.execute(pickle.loads(plan)))["id"].to_pylist() == [4]
    options = pyparq.options.WriteOptions(encryption=encryption)
    shown.append(repr(options))
    for keys in (DecryptionProperties(OTHER), DecryptionProperties(FOOTER, {"id": FOOTER})):
        with pytest.raises(EncryptionError) as caught:
            read(path, keys)
        error = caught.value
        shown += [repr(error), "".join(traceback.format_exception(error))]
        assert pickle.loads(pickle.dumps(error)).message == error.message
    for key in (FOOTER, OTHER, THIRD):
        for text in shown:
            assert key.decode() not in text
            assert key.hex() not in text
        assert key not in plan
    for secretive in (encryption, decryption, EncryptionKey(FOOTER)):
        with pytest.raises(TypeError):
            pickle.dumps(secretive)
    assert copy.deepcopy(decryption) is decryption


# ---- a KMS


@pytest.fixture
def kms(tmp_path: Path) -> LocalFileKms:
    return local_kms(kms_file(tmp_path / "kms.json"))


def factory_of(kms: Any) -> CryptoFactory:
    return CryptoFactory(lambda config: kms)


CONFIGURATIONS = [
    EncryptionConfiguration("kf", {"kc1": ["unique", "id"], "kc2": ["nested.y"]}),
    EncryptionConfiguration("kf", {"kc1": ["unique"]}, double_wrapping=False, data_key_length_bits=256),
    EncryptionConfiguration("kf", uniform_encryption=True, encryption_algorithm="AES_GCM_CTR_V1"),
    EncryptionConfiguration("kf", {"kc1": ["unique"]}, plaintext_footer=True, complete_columns=True),
    EncryptionConfiguration("kf", {"kc1": ["unique"]}, internal_key_material=False),
    EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False, double_wrapping=False),
]
ALL_WAYS = [
    EncryptionConfiguration(
        "kf",
        columns,
        uniform_encryption=not columns,
        encryption_algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        double_wrapping=double,
        internal_key_material=internal,
        data_key_length_bits=192 if double else 256,
    )
    for columns in ({}, {"kc1": ["unique", "id"], "kc2": ["nested.y"]})
    for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1")
    for plaintext_footer, double, internal in itertools.product([False, True], repeat=3)
]


@pytest.mark.parametrize("config", CONFIGURATIONS)
def test_round_trip(kms: LocalFileKms, tmp_path: Path, config: EncryptionConfiguration) -> None:
    path = tmp_path / "folder" / "f.parquet"
    path.parent.mkdir()
    factory = factory_of(kms)
    for _ in range(2):  # the second replaces the first, and its key material
        pyparq.write_table(table(300), path, encryption=factory.file_encryption_properties(None, config))
    external = path.parent / "_KEY_MATERIAL_FOR_f.parquet.json"
    assert sorted(path.parent.iterdir()) == sorted([path] + [external] * (not config.internal_key_material))
    assert read(path, factory_of(kms).file_decryption_properties()) == table(300)
    if not config.internal_key_material:
        external.unlink()
        with pytest.raises(EncryptionError, match=r"_KEY_MATERIAL_FOR_f.parquet.json.*cannot be read"):
            read(path, factory_of(kms).file_decryption_properties())
        with pytest.raises(EncryptionError, match="give the file's path or URL"):
            read(path.read_bytes(), factory_of(kms).file_decryption_properties())


class PyarrowKms(pe.KmsClient):
    """The same KMS for pyarrow."""

    def __init__(self, kms: LocalFileKms) -> None:
        pe.KmsClient.__init__(self)
        self.kms = kms

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self.kms.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return self.kms.unwrap_key(wrapped_key, master_key_identifier)


@pytest.mark.parametrize("config", [*CONFIGURATIONS, *ALL_WAYS])
def test_pyarrow_reads_ours(kms: LocalFileKms, tmp_path: Path, config: EncryptionConfiguration) -> None:
    path = tmp_path / "f.parquet"
    pyparq.write_table(table(300), path, encryption=factory_of(kms).file_encryption_properties(None, config))
    theirs = pe.CryptoFactory(lambda config: PyarrowKms(kms))
    place = (None, None) if config.internal_key_material else (str(path), fs.LocalFileSystem())
    properties = theirs.file_decryption_properties(pe.KmsConnectionConfig(), None, *place)
    assert pq.read_table(path, decryption_properties=properties) == table(300)


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("plaintext_footer", [True, False])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_we_read_pyarrow(
    kms: LocalFileKms, tmp_path: Path, algorithm: str, plaintext_footer: bool, double: bool, internal: bool
) -> None:
    path = tmp_path / "f.parquet"
    theirs = pe.CryptoFactory(lambda config: PyarrowKms(kms))
    config = pe.EncryptionConfiguration(
        "kf", column_keys={"kc1": ["unique"], "kc2": ["nested.y.list.element", "id"]}, encryption_algorithm=algorithm,
        plaintext_footer=plaintext_footer, double_wrapping=double, internal_key_material=internal,
        data_key_length_bits=256,
    )  # fmt: skip
    properties = theirs.file_encryption_properties(pe.KmsConnectionConfig(), config, str(path), fs.LocalFileSystem())
    pq.write_table(table(300), path, encryption_properties=properties, write_page_index=True)
    assert read(path, factory_of(PyarrowKms(kms)).file_decryption_properties()) == table(300)  # its client fits ours


class Recording:
    """A KMS that notes what it is asked, and raises when told to."""

    def __init__(self, kms: LocalFileKms) -> None:
        self.kms = kms
        self.calls: list[tuple[str, str]] = []
        self.fails: str | None = None

    def _note(self, what: str, name: str) -> None:
        self.calls.append((what, name))
        if self.fails == name:
            raise ConnectionError(f"no access to {name}")

    def wrap_key(self, key: bytes, name: str) -> str:
        self._note("wrap", name)
        return self.kms.wrap_key(key, name)

    def unwrap_key(self, wrapped: str, name: str) -> bytes:
        self._note("unwrap", name)
        return self.kms.unwrap_key(wrapped, name)


def test_double_wrapping_asks_once(kms: LocalFileKms, tmp_path: Path) -> None:
    recording = Recording(kms)
    factory = factory_of(recording)
    config = EncryptionConfiguration("kf", {"kc1": ["unique", "id"]})
    properties = factory.file_encryption_properties(None, config)
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for path in paths:
        pyparq.write_table(table(50), path, encryption=properties)
    assert sorted(recording.calls) == [("wrap", "kc1"), ("wrap", "kf")]
    recording.calls.clear()
    decryption = factory.file_decryption_properties()
    for path in paths:
        assert read(path, decryption) == table(50)
    assert sorted(recording.calls) == [("unwrap", "kc1"), ("unwrap", "kf")]
    recording.calls.clear()
    read(paths[0], factory.file_decryption_properties(None, DecryptionConfiguration(timedelta(0))))
    assert sorted(recording.calls) == [("unwrap", "kc1"), ("unwrap", "kc1"), ("unwrap", "kf")]


def test_every_file_has_data_keys_of_its_own(kms: LocalFileKms, tmp_path: Path) -> None:
    config = EncryptionConfiguration("kf", {"kc1": ["unique", "id"]}, double_wrapping=False)
    properties = factory_of(kms).file_encryption_properties(None, config)
    keys = []
    for _ in range(2):
        found = properties.keys_for(["unique", "id"], "f")
        for held in (found.footer, *found.columns.values()):
            assert held is not None
            assert held.metadata is not None
            material = json.loads(held.metadata)
            keys.append(kms.unwrap_key(material["wrappedDEK"], material["masterKeyID"]))
    assert len(set(keys)) == 6


def test_a_kms_that_raises(kms: LocalFileKms, tmp_path: Path) -> None:
    recording = Recording(kms)
    path = tmp_path / "f.parquet"
    config = EncryptionConfiguration("kf", {"kc1": ["unique"]}, internal_key_material=False)
    factory = factory_of(recording)
    recording.fails = "kc1"
    before = sorted(tmp_path.iterdir())
    message = "wrapping a key by master key 'kc1' failed: ConnectionError: no access to kc1"
    for schema in (None, {"unique": "string"}):
        with pytest.raises(EncryptionError, match=message):
            pyparq.write_table(
                {"unique": ["a"]}, path, schema=schema, encryption=factory.file_encryption_properties(None, config)
            )
        assert sorted(tmp_path.iterdir()) == before  # nothing half-written
    recording.fails = None
    pyparq.write_table(table(50), path, encryption=factory_of(recording).file_encryption_properties(None, config))
    recording.fails = "kc1"
    decryption = factory_of(recording).file_decryption_properties()
    with pytest.raises(EncryptionError, match=r"unwrapping a key by master key 'kc1' failed.*column unique"):
        read(path, decryption)
    assert read(path, decryption, columns=["id"]).num_rows == 50

    def refuse(config: KmsConnectionConfig) -> Any:
        raise PermissionError("who are you?")

    with pytest.raises(EncryptionError, match="making the KMS client failed: PermissionError: who are you"):
        read(path, CryptoFactory(refuse).file_decryption_properties())


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize(
    "form", [repr, bytes.hex, base64.b64encode, lambda key: f"https://kms/?key={quote(base64.b64encode(key))}"],
    ids=["repr", "hex", "base64", "url"],
)  # fmt: skip
def test_a_kms_that_repeats_the_key_when_it_fails(tmp_path: Path, form: Callable[[bytes], Any], double: bool) -> None:
    seen: list[bytes] = []

    class Chatty:
        def wrap_key(self, key: bytes, name: str) -> str:
            seen.append(key)
            raise ValueError(f"cannot wrap {form(key)} by {name}")

    config = EncryptionConfiguration("kf", uniform_encryption=True, double_wrapping=double)
    with pytest.raises(EncryptionError, match=r"ValueError .its message is left out") as caught:
        pyparq.write_table(
            {"a": [1]}, tmp_path / "f", encryption=factory_of(Chatty()).file_encryption_properties(None, config)
        )
    assert str(form(seen[0])) not in "".join(traceback.format_exception(caught.value))


EXTERNAL = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)


@pytest.mark.parametrize("url", [False, True])
def test_a_failure_at_the_very_end_keeps_the_older_keys(
    kms: LocalFileKms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: bool
) -> None:
    """The new file cannot take its name: the older one reads on, with the material that belongs to it."""
    folder = f"memory://{tmp_path.name}" if url else str(tmp_path)
    where, other = f"{folder}/f.parquet", f"{folder}/other.parquet"
    factory = factory_of(kms)
    properties = factory.file_encryption_properties(None, EXTERNAL)
    pyparq.write_table(table(5), where, encryption=properties)
    fs_ = fsspec.filesystem("memory") if url else None
    fails = "mv" if fs_ else "replace"
    real: Any = getattr(fs_ or os, fails)

    def full(source: str, target: str) -> Any:
        if target.endswith(("/f.parquet", "/other.parquet")):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(source, target) or True  # rename_new() says that it has renamed

    with monkeypatch.context() as patch:
        patch.setattr(fs_ or os, fails, full)
        patch.setattr("pyparq.io.atomic_write.rename_new", full)  # where there is no file of the name yet
        for target in (where, other):
            with pytest.raises(OSError, match="No space left"):
                pyparq.write_table(table(7), target, encryption=properties)
    assert read(where, factory.file_decryption_properties()) == table(5)
    names = [p.rpartition("/")[2] for p in fs_.ls(f"/{tmp_path.name}", detail=False)] if fs_ else os.listdir(tmp_path)
    assert sorted(set(names) - {"kms.json"}) == ["_KEY_MATERIAL_FOR_f.parquet.json", "f.parquet"]
    pyparq.write_table(table(7), where, encryption=properties)
    assert read(where, factory.file_decryption_properties()) == table(7)


def test_material_is_as_durable_as_its_file(kms: LocalFileKms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    properties = factory_of(kms).file_encryption_properties(None, EXTERNAL)
    pyparq.write_table(table(5), tmp_path / "f.parquet", encryption=properties, fsync=True)
    for name in ("f.parquet", "_KEY_MATERIAL_FOR_f.parquet.json"):
        assert (tmp_path / name).stat().st_ino in synced


def test_keys_unwrapped_wrongly(kms: LocalFileKms, tmp_path: Path) -> None:
    """A KMS that returns another key, and one whose master key is another: both say which key."""
    path = tmp_path / "f.parquet"
    config = EncryptionConfiguration("kf", uniform_encryption=True)
    pyparq.write_table(table(50), path, encryption=factory_of(kms).file_encryption_properties(None, config))
    recording = Recording(kms)
    recording.unwrap_key = lambda wrapped, name: bytes(16)  # type: ignore[method-assign]
    with pytest.raises(EncryptionError, match=r"a data key cannot be unwrapped .*'kf'\): authentication failed"):
        read(path, factory_of(recording).file_decryption_properties())
    other = local_kms(kms_file(tmp_path / "other.json", {"kf": OTHER}))
    with pytest.raises(EncryptionError, match="unwrapping a key by master key 'kf' failed: authentication failed"):
        read(path, factory_of(other).file_decryption_properties())


def test_unwrapped_keys_are_let_go_of(kms: LocalFileKms, tmp_path: Path) -> None:
    """Key encryption keys are not kept beyond their time."""
    path, factory = tmp_path / "f.parquet", factory_of(kms)
    config = EncryptionConfiguration("kf", uniform_encryption=True, cache_lifetime=timedelta(0))
    for _ in range(4):
        pyparq.write_table(table(5), path, encryption=factory.file_encryption_properties(None, config))
        read(path, factory.file_decryption_properties(None, DecryptionConfiguration(timedelta(0))))
    assert len(factory._read_keks._entries) == len(factory._write_keks._entries) == 1


def test_every_configuration_has_its_client(kms: LocalFileKms, tmp_path: Path) -> None:
    made: list[KmsConnectionConfig] = []
    factory = CryptoFactory(lambda config: (made.append(config), kms)[1])
    path = tmp_path / "f.parquet"
    configs = [
        KmsConnectionConfig(), KmsConnectionConfig("i"), KmsConnectionConfig("i", "u"),
        KmsConnectionConfig("i", "u", "token"), KmsConnectionConfig("i", "u", "token", {"region": "north"}),
        KmsConnectionConfig("i", "u", "token", {"region": "south"}),
    ]  # fmt: skip
    for config in configs * 2:
        properties = factory.file_encryption_properties(config, EncryptionConfiguration("kf", uniform_encryption=True))
        pyparq.write_table(table(5), path, encryption=properties)
        assert read(path, factory.file_decryption_properties(config)) == table(5)
    assert made == configs


def test_pyarrow_rotates_our_master_keys(kms: LocalFileKms, tmp_path: Path) -> None:
    """External material is such as its key tools take and rewrite; the file stays as it is."""
    path = tmp_path / "f.parquet"
    config = EncryptionConfiguration("kf", {"kc1": ["unique"]}, internal_key_material=False)
    pyparq.write_table(table(50), path, encryption=factory_of(kms).file_encryption_properties(None, config))
    files = path, tmp_path / "_KEY_MATERIAL_FOR_f.parquet.json"
    before = [file.read_bytes() for file in files]
    theirs = pe.CryptoFactory(lambda config: PyarrowKms(kms))
    theirs.rotate_master_keys(pe.KmsConnectionConfig(), str(path), fs.LocalFileSystem())
    after = [file.read_bytes() for file in files]
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert read(path, factory_of(kms).file_decryption_properties()) == table(50)


def test_the_footer_key_is_not_asked_for_needlessly(kms: LocalFileKms, tmp_path: Path) -> None:
    """Who may not unwrap the footer key reads a plaintext footer without checking it, and columns of other keys."""
    recording = Recording(kms)
    path = tmp_path / "f.parquet"
    config = EncryptionConfiguration("kf", {"kc1": ["unique"]}, plaintext_footer=True)
    pyparq.write_table(table(50), path, encryption=factory_of(recording).file_encryption_properties(None, config))
    recording.fails = "kf"
    recording.calls.clear()
    unchecked = factory_of(recording).file_decryption_properties(check_footer_integrity=False)
    assert read(path, unchecked) == table(50)
    assert recording.calls == [("unwrap", "kc1")]
    with pytest.raises(EncryptionError, match="master key 'kf' failed"):
        read(path, factory_of(recording).file_decryption_properties())


def test_unknown_columns_ask_no_kms(kms: LocalFileKms, tmp_path: Path) -> None:
    recording = Recording(kms)
    config = EncryptionConfiguration("kf", {"kc1": ["uniqe"]})
    with pytest.raises(ColumnNotFoundError, match="did you mean 'unique'"):
        pyparq.write_table(
            table(5), tmp_path / "f", encryption=factory_of(recording).file_encryption_properties(None, config)
        )
    assert recording.calls == []


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (b"no json", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"keyMaterialType": "PKMT9"}', "'PKMT9'"),
        (b'{"keyMaterialType": "' + b"x" * 100_000 + b'"}', r"'x{100}'\.\.\., but only"),
        (b'{"keyMaterialType": ' + b"[" * 900 + b"]" * 900 + b"}", r"type \(list\)"),
        (material(masterKeyID="x" * 100_000), r"master key 'x{100}'\.\.\."),
        (material(masterKeyID="\ud800"), r"no master key '\\ud800'"),
        (material(masterKeyID=5), "has no valid masterKeyID"),
        (material(wrappedDEK="\ud800"), "not base64"),
        (material(doubleWrapping=1), "has no valid doubleWrapping"),
        (material(doubleWrapping=True, keyEncryptionKeyID="%", wrappedKEK=""), "key encryption key is not base64"),
        (material(doubleWrapping=True, keyEncryptionKeyID=[], wrappedKEK={}), "has no valid keyEncryptionKeyID"),
        (b'{"keyMaterialType": "PKMT1"}', "internalStorage"),
        (b'{"keyMaterialType": "PKMT1", "internalStorage": true}', "doubleWrapping"),
        (b'{"keyMaterialType": "PKMT1", "internalStorage": false}', "keyReference"),
    ],
)
def test_strange_key_material(kms: LocalFileKms, metadata: bytes, message: str) -> None:
    data = written(table(50), EncryptionProperties(EncryptionKey(FOOTER, metadata)))
    with pytest.raises(EncryptionError, match=message) as caught:
        read(data, factory_of(kms).file_decryption_properties())
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "'_KEY_MATERIAL_FOR_f.parquet.json' has no key 'footerKey-.*open it again"),
        (b'{"footerKey": 5}', "does not map references to text"),
        (b'{"REFERENCE": "{}"}', "has type"),
        (None, "key material has at most"),
    ],
)
def test_strange_external_material(kms: LocalFileKms, tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "f.parquet"
    config = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
    pyparq.write_table(table(5), path, encryption=factory_of(kms).file_encryption_properties(None, config))
    material = tmp_path / "_KEY_MATERIAL_FOR_f.parquet.json"
    reference = list(json.loads(material.read_bytes()))[-1]
    with material.open("wb") as file:
        file.write((content or b"").replace(b"REFERENCE", reference.encode()))
        if content is None:
            file.truncate(1 << 40)  # a hole: takes no room but in the memory of who reads it all
    with pytest.raises(ParquetError, match=message):
        read(path, factory_of(kms).file_decryption_properties())


def test_key_tools_pickle(kms: LocalFileKms, tmp_path: Path) -> None:
    """They hold no keys but those in caches, which stay behind."""
    path = tmp_path / "f.parquet"
    factory = CryptoFactory(Client(str(tmp_path / "kms.json")))
    config = EncryptionConfiguration("kf", {"kc1": ["unique"]})
    encryption = factory.file_encryption_properties(None, config)
    pyparq.write_table(table(50), path, encryption=encryption)
    decryption = factory.file_decryption_properties(allow_plaintext_files=True)
    assert read(path, decryption) == table(50)
    for properties in (encryption, decryption):
        data = pickle.dumps(properties)
        assert not any(key in data for key in MASTER_KEYS.values())
    again = pickle.loads(pickle.dumps(decryption))
    assert read(path, again) == table(50)
    assert again.allow_plaintext_files
    pyparq.write_table(table(60), path, encryption=pickle.loads(pickle.dumps(encryption)))
    assert read(path, again) == table(60)


class Client:
    """Makes clients; picklable."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, config: KmsConnectionConfig) -> LocalFileKms:
        return local_kms(Path(self.path))


# ---- the KMS in a file


def test_local_kms_says_what_it_is(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="for development only"):
        kms = LocalFileKms.create(tmp_path / "keys.json", "one", "two", bits=256)
    assert (tmp_path / "keys.json").stat().st_mode & 0o077 == 0
    assert "development only" in repr(kms)
    raw = base64.b64decode(json.loads((tmp_path / "keys.json").read_text())["one"])
    assert len(raw) == 32
    assert raw.hex() not in repr(kms)
    wrapped = kms.wrap_key(b"0123456789abcdef", "one")
    assert kms.unwrap_key(wrapped, "one") == b"0123456789abcdef"
    with pytest.raises(EncryptionError):
        kms.unwrap_key(wrapped, "two")
    with pytest.raises(EncryptionError, match="no master key 'three'"):
        kms.unwrap_key(wrapped, "three")
    with pytest.raises(FileExistsError):
        LocalFileKms.create(tmp_path / "keys.json", "one")


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": "%%%"}', '{"a": "c2hvcnQ="}'])
def test_local_kms_files_without_keys(tmp_path: Path, text: str) -> None:
    (tmp_path / "k").write_text(text)
    with pytest.raises(ParquetError) as caught:
        local_kms(tmp_path / "k")
    assert isinstance(caught.value, OptionError)
