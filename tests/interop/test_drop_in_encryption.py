"""``pyparq.parquet.encryption`` beside ``pyarrow.parquet.encryption``: the same calls, and files both ways."""

from __future__ import annotations

import base64
import datetime as dt
import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as theirs
import pytest

import pyparq.parquet
import pyparq.parquet.encryption as ours
from pyparq import ChangedFileError

ZONE = "America/St_Johns"
MODULES = {"pyarrow": (pq, theirs), "pyparq": (pyparq.parquet, ours)}
BOTH_WAYS = [("pyarrow", "pyparq"), ("pyparq", "pyarrow"), ("pyparq", "pyparq")]
TABLES = [
    pa.table({
        "a": [1, None, 3], "b": ["ü", "", None], "c": pa.array([0, None, 2**40], pa.timestamp("us", ZONE)),
        "s": [{"x": 1, "y": [1.5, None]}, None, {"x": None, "y": []}],
    }),
    pa.table({"a": pa.nulls(1, pa.int64()), "b": [""], "c": [b"\0"], "s": pa.nulls(1, pa.struct({"x": pa.int8()}))}),
    pa.table({"a": range(3000), "b": ["k"] * 3000, "c": pa.nulls(3000, pa.string()), "s": [{"x": 1}] * 3000}),
]  # fmt: skip


def client(base: Any, versions: dict[str, str]) -> Any:
    """The class of a KMS client. A wrapped key begins with the version of its master key."""

    class Kms(base):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            base.__init__(self)
            self.config = config

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            return f"{versions[master_key_identifier]}:{base64.b64encode(key_bytes).decode()}"

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            version, _, key = wrapped_key.partition(":")
            if int(version) > int(versions[master_key_identifier]):
                raise LookupError(f"{master_key_identifier} has no version {version}")
            return base64.b64decode(key)

    return Kms


def settings(generator: random.Random) -> dict[str, Any]:
    uniform = generator.random() < 0.3
    columns = generator.sample(["a", "b", "c", "s"], generator.randrange(1, 5))
    cut = generator.randrange(1, len(columns) + 1)
    keys = {"k1": columns[:cut]} | ({"k2": columns[cut:]} if cut < len(columns) else {})
    return {
        "column_keys": None if uniform else keys, "uniform_encryption": uniform or None,
        "encryption_algorithm": generator.choice(["AES_GCM_V1", "AES_GCM_CTR_V1", None]),
        "plaintext_footer": generator.random() < 0.5, "double_wrapping": generator.random() < 0.5,
        "internal_key_material": generator.random() < 0.5, "data_key_length_bits": generator.choice([128, 192, 256]),
        "cache_lifetime": generator.choice([None, dt.timedelta(0), dt.timedelta(minutes=1)]),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_files_go_both_ways(seed: int, tmp_path: Path) -> None:
    """Written by one and read by the other, with keys that were rotated by either in between."""
    generator = random.Random(seed)
    writer, reader = BOTH_WAYS[seed % 3]
    given, table = settings(generator), generator.choice(TABLES)
    versions = {"kf": "1", "k1": "1", "k2": "1"}
    path = str(tmp_path / "ü f.parquet")
    module, encryption = MODULES[writer]
    factory = encryption.CryptoFactory(client(encryption.KmsClient, versions))
    configured = encryption.KmsConnectionConfig(kms_instance_id="i", kms_instance_url="https://kms.example")
    properties = factory.file_encryption_properties(configured, encryption.EncryptionConfiguration("kf", **given), path)
    module.write_table(table, path, encryption_properties=properties)
    before = Path(path).read_bytes()
    if writer == "pyparq" or not given["uniform_encryption"]:  # pyarrow encrypts the footer with all columns
        assert before[:4] == (b"PAR1" if given["plaintext_footer"] else b"PARE")
    connection: dict[str, str] = {}
    rotates = generator.random() < 0.7 and not given["internal_key_material"]
    if rotates:
        versions.update(dict.fromkeys(versions, "2"))
        rotator = generator.choice(list(MODULES))
        if (writer, rotator) == ("pyparq", "pyarrow"):
            connection["kms_instance_id"] = "i"  # pyarrow keeps it only with the name that it gives to a footer's key
        _, encryption = MODULES[rotator]
        factory = encryption.CryptoFactory(client(encryption.KmsClient, versions))
        factory.rotate_master_keys(encryption.KmsConnectionConfig(), path, double_wrapping=generator.random() < 0.5)
        assert Path(path).read_bytes() == before
        beside = (tmp_path / "_KEY_MATERIAL_FOR_ü f.parquet.json").read_text()
        assert '\\"2:' in beside
        assert '\\"1:' not in beside
    module, encryption = MODULES[reader]
    factory = encryption.CryptoFactory(client(encryption.KmsClient, versions))
    properties = factory.file_decryption_properties(
        encryption.KmsConnectionConfig(**connection), encryption.DecryptionConfiguration(cache_lifetime=60), path
    )
    assert module.read_table(path, decryption_properties=properties).equals(table)
    assert module.ParquetFile(path, decryption_properties=properties).metadata.num_rows == len(table)
    with pytest.raises(OSError, match=r"encrypted|decrypt"):
        module.read_table(path)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file of pyarrow's with key material beside it."""
    factory = theirs.CryptoFactory(client(theirs.KmsClient, {"kf": "1"}))
    config = theirs.EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
    path = tmp_path / "f.parquet"
    pq.write_table(
        TABLES[0], path,
        encryption_properties=factory.file_encryption_properties(theirs.KmsConnectionConfig(), config, path),
    )  # fmt: skip
    return path


class Plain(ours.KmsClient):
    """Keys as they are."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return "1:" + base64.b64encode(key_bytes).decode()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key[2:])


@pytest.mark.parametrize("place", ["path", "file system"])
def test_material_beside_the_path_that_is_given(written: Path, place: str) -> None:
    """A file object has no neighbours of its own. Properties pickle with the path."""
    at = (
        (written,)
        if place == "path"
        else (written.name, pafs.SubTreeFileSystem(str(written.parent), pafs.LocalFileSystem()))
    )
    made = ours.CryptoFactory(Plain).file_decryption_properties(ours.KmsConnectionConfig(), None, *at)
    for properties in (made, pickle.loads(pickle.dumps(made))) if place == "path" else (made,):
        for source in (written, pa.py_buffer(written.read_bytes()), pa.memory_map(str(written))):
            read = pyparq.parquet.read_table(source, decryption_properties=properties)
            assert read.equals(TABLES[0])
    nowhere = ours.CryptoFactory(Plain).file_decryption_properties(
        ours.KmsConnectionConfig(), None, "elsewhere.parquet"
    )
    with pytest.raises(FileNotFoundError, match=r"elsewhere\.parquet"):
        pyparq.parquet.read_table(written, decryption_properties=nowhere)


def test_keys_that_change_while_they_are_rotated(written: Path) -> None:
    beside = written.parent / "_KEY_MATERIAL_FOR_f.parquet.json"

    class Meddling(Plain):
        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            beside.write_bytes(beside.read_bytes() + b" ")
            return super().unwrap_key(wrapped_key, master_key_identifier)

    before = beside.read_bytes()
    with pytest.raises(ChangedFileError, match="written meanwhile"):
        ours.CryptoFactory(Meddling).rotate_master_keys(ours.KmsConnectionConfig(), written)
    assert beside.read_bytes() == before + b" "


def test_files_without_material_of_their_own(tmp_path: Path) -> None:
    pq.write_table(TABLES[0], tmp_path / "plain.parquet")
    for path in ("plain.parquet", "none.parquet"):
        with pytest.raises(OSError, match=path):
            ours.CryptoFactory(Plain).rotate_master_keys(ours.KmsConnectionConfig(), tmp_path / path)
    (tmp_path / "_KEY_MATERIAL_FOR_plain.parquet.json").write_text('{"k": "no material"}')
    with pytest.raises(pa.ArrowInvalid, match="not valid JSON"):
        ours.CryptoFactory(Plain).rotate_master_keys(ours.KmsConnectionConfig(), tmp_path / "plain.parquet")


def test_tokens_that_are_renewed(tmp_path: Path) -> None:
    """Properties use the token that their connection has now; a forgotten token has no client."""
    made: list[str] = []

    def factory_of(config: Any) -> Plain:
        made.append(config.key_access_token)
        return Plain(config)

    connection = ours.KmsConnectionConfig(key_access_token="one")
    factory = ours.CryptoFactory(factory_of)
    config = ours.EncryptionConfiguration("kf", uniform_encryption=True)
    properties = factory.file_encryption_properties(connection, config)
    for k in range(2):
        pyparq.parquet.write_table(TABLES[0], tmp_path / f"{k}", encryption_properties=properties)
    connection.refresh_key_access_token("two")
    pyparq.parquet.write_table(TABLES[0], tmp_path / "2", encryption_properties=properties)
    assert made == ["one", "two"]
    factory.remove_cache_entries_for_token("two")
    for k in (3, 4):
        pyparq.parquet.write_table(TABLES[0], tmp_path / f"{k}", encryption_properties=properties)
    assert made == ["one", "two", "two"]
    factory.remove_cache_entries_for_all_tokens()
    read = factory.file_decryption_properties(connection)
    assert pyparq.parquet.read_table(tmp_path / "4", decryption_properties=read).equals(TABLES[0])
    assert made == ["one", "two", "two", "two"]


def test_errors_are_those_of_the_client(tmp_path: Path) -> None:
    class Away(Plain):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            raise PermissionError(f"not allowed: {master_key_identifier}")

    properties = ours.CryptoFactory(Away).file_encryption_properties(
        ours.KmsConnectionConfig(), ours.EncryptionConfiguration("kf", uniform_encryption=True)
    )
    with pytest.raises(PermissionError, match="not allowed: kf") as caught:
        pyparq.parquet.write_table(TABLES[0], tmp_path / "f", encryption_properties=properties)
    assert "wrapping a key by master key 'kf' failed" in caught.value.__notes__[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["pyarrow", "pyparq"])
def test_settings(name: str) -> None:
    """The same refusals, and the same attributes."""
    _, encryption = MODULES[name]
    connection = encryption.KmsConnectionConfig()
    assert (connection.kms_instance_id, connection.kms_instance_url) == ("", "")
    assert (connection.key_access_token, connection.custom_kms_conf) == ("DEFAULT", {})
    config = encryption.EncryptionConfiguration("kf")
    config.column_keys = {"k1": ["a"]}
    assert (config.column_keys, config.double_wrapping, config.uniform_encryption) == ({"k1": ["a"]}, True, False)
    assert encryption.DecryptionConfiguration(cache_lifetime=90.5).cache_lifetime <= dt.timedelta(seconds=90.5)
    factory = encryption.CryptoFactory(len)
    for call in (
        lambda: encryption.CryptoFactory(None),
        lambda: factory.file_encryption_properties({}, config),
        lambda: factory.file_encryption_properties(connection, {}),
        lambda: factory.file_decryption_properties(connection, {}),
        lambda: encryption.EncryptionConfiguration("kf", {}),
        lambda: encryption.create_encryption_properties("k" * 16),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OSError):
        factory.file_encryption_properties(connection, encryption.EncryptionConfiguration("kf"))


def test_properties_of_pyarrow_are_refused(written: Path) -> None:
    key = bytes(16)
    for call in (
        lambda: pyparq.parquet.read_table(written, decryption_properties=theirs.create_decryption_properties(key)),
        lambda: pyparq.parquet.write_table(
            TABLES[0], written, encryption_properties=theirs.create_encryption_properties(key)
        ),
    ):
        with pytest.raises(TypeError, match=r"make it with pyparq\.parquet\.encryption"):
            call()
