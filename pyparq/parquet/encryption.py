"""``pyarrow.parquet.encryption``'s names on :mod:`pyparq.encryption`: ``import pyparq.parquet.encryption as pe``.

Data keys are made where a file begins to be written. So a KMS that refuses is heard of there, by its own error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, MISSING, asdict, dataclass, field, fields
from datetime import timedelta
from functools import partial
from typing import Any

from pyparq.encryption import CryptoFactory as OwnFactory
from pyparq.encryption import DecryptionConfiguration as OwnDecryption
from pyparq.encryption import DecryptionProperties, EncryptionProperties
from pyparq.encryption import EncryptionConfiguration as OwnEncryption
from pyparq.encryption import KmsConnectionConfig as OwnConnection
from pyparq.encryption.material import sibling_name
from pyparq.encryption.properties import ALGORITHMS
from pyparq.errors import OptionError
from pyparq.io.companion_files import change_material
from pyparq.io.siblings import base_name, read_sibling
from pyparq.io.source import open_source
from pyparq.parquet.arguments import located
from pyparq.parquet.arrow import arrow_errors


class KmsClient:
    """The base of KMS clients."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str | bytes:
        """``key_bytes`` wrapped by a master key, as text."""
        raise NotImplementedError

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key that :meth:`wrap_key` wrapped."""
        raise NotImplementedError


class _Settings:
    """What may be set at any time; ``None`` is what is usual. Times may be numbers of seconds."""

    def __setattr__(self, name: str, value: Any) -> None:
        if value is None:
            found: Any = {one.name: one for one in fields(self)}[name]  # type: ignore[arg-type]
            value = found.default if found.default_factory is MISSING else found.default_factory()
        seconds = name == "cache_lifetime" and isinstance(value, (int, float))
        object.__setattr__(self, name, timedelta(seconds=value) if seconds else value)


@dataclass(kw_only=True)
class KmsConnectionConfig(_Settings, OwnConnection):
    """Where the KMS is. For reading, what is empty comes from the file, an address only with ``read_kms_url``."""

    kms_instance_id: str = ""
    kms_instance_url: str = ""
    key_access_token: str = field(default="DEFAULT", repr=False)
    custom_kms_conf: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass
class EncryptionConfiguration(_Settings):
    """As :class:`pyparq.encryption.EncryptionConfiguration`, but it is checked where properties are made of it."""

    footer_key: str
    _: KW_ONLY
    column_keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    uniform_encryption: bool = False
    encryption_algorithm: str = ALGORITHMS[0]
    plaintext_footer: bool = False
    double_wrapping: bool = True
    cache_lifetime: timedelta = timedelta(minutes=10)
    internal_key_material: bool = True
    data_key_length_bits: int = 128


@dataclass(kw_only=True)
class DecryptionConfiguration(_Settings):
    """As :class:`pyparq.encryption.DecryptionConfiguration`."""

    cache_lifetime: timedelta = timedelta(minutes=10)
    read_kms_url: bool = False


class CryptoFactory(OwnFactory):
    """Makes the properties to write and read files with keys of a KMS."""

    def __init__(self, kms_client_factory: Any) -> None:
        if not callable(kms_client_factory):
            raise TypeError("Parameter kms_client_factory must be a callable")
        super().__init__(kms_client_factory)

    def client(self, connection: OwnConnection) -> Any:
        made = super().client(connection)
        if not any(kind.__name__ == "KmsClient" for kind in type(made).__mro__):  # pyarrow's serve as well
            raise TypeError(f"the factory of KMS clients must return a KmsClient, not {type(made).__name__}")
        return made

    @arrow_errors()
    def file_encryption_properties(
        self, kms_connection_config: Any, encryption_config: Any, parquet_file_path: Any = None, filesystem: Any = None
    ) -> Any:
        """Properties for writing. External key material is stored beside the file that is written, whatever path is
        given here."""
        _check(kms_connection_config, OwnConnection)
        _check(encryption_config, EncryptionConfiguration | OwnEncryption)
        given = asdict(encryption_config)
        if bool(given["column_keys"]) == given["uniform_encryption"]:
            both = "Cannot set both column_keys and uniform_encryption"
            raise OptionError(both if given["column_keys"] else "Either column_keys or uniform_encryption must be set")
        return super().file_encryption_properties(kms_connection_config, OwnEncryption(**given))

    @arrow_errors()
    def file_decryption_properties(  # type: ignore[override]
        self, kms_connection_config: Any, decryption_config: Any = None, parquet_file_path: Any = None,
        filesystem: Any = None,
    ) -> Any:  # fmt: skip
        """Properties for reading. External key material is looked for beside ``parquet_file_path``, if it is given,
        and else beside the file that is read."""
        _check(kms_connection_config, OwnConnection)
        _check(decryption_config, DecryptionConfiguration | OwnDecryption | None)
        config = OwnDecryption(**asdict(decryption_config or DecryptionConfiguration()))
        made = super().file_decryption_properties(kms_connection_config, config)
        if parquet_file_path is not None:
            place, storage = located(parquet_file_path, filesystem)
            made.place = base_name(str(place)), partial(_read_beside, place, storage)
        return made

    @arrow_errors()
    def rotate_master_keys(
        self, kms_connection_config: Any, parquet_file_path: Any, filesystem: Any = None, double_wrapping: bool = True,
        cache_lifetime_seconds: float = 600, read_kms_url: bool = False,
    ) -> None:  # fmt: skip
        """Wrap the keys in the external key material of a file anew, by the present versions of their master keys. The
        file itself stays as it is."""
        _check(kms_connection_config, OwnConnection)
        config = OwnDecryption(timedelta(seconds=cache_lifetime_seconds), read_kms_url)
        change = partial(self.rotated, kms_connection_config, config, double=double_wrapping)
        with closing(open_source(*located(parquet_file_path, filesystem))) as source:
            change_material(source, sibling_name(base_name(source.name)), change)

    def remove_cache_entries_for_token(self, access_token: str) -> None:
        """Forget clients and keys that belong to a token."""
        self.forget(access_token)

    def remove_cache_entries_for_all_tokens(self) -> None:
        """Forget all clients and keys."""
        self.forget()


def _check(given: Any, kind: Any) -> None:
    if not isinstance(given, kind):
        raise TypeError(f"a {getattr(kind, '__name__', kind)} is needed, not {type(given)}")


def _read_beside(place: Any, storage: Any, sibling: str) -> bytes:
    with closing(open_source(place, storage)) as source:
        return read_sibling(source, sibling)


def create_encryption_properties(
    footer_key: bytes, *, aad_prefix: bytes | None = None, store_aad_prefix: bool = True,
    encryption_algorithm: Any = ALGORITHMS[0], plaintext_footer: bool = False,
) -> EncryptionProperties:  # fmt: skip
    """Properties for writing with one key, for the footer and all columns."""
    _check_key(footer_key, aad_prefix)
    if encryption_algorithm.upper() not in ALGORITHMS:
        raise ValueError(f"Invalid cipher name: {encryption_algorithm!r}")
    return EncryptionProperties(
        footer_key, algorithm=encryption_algorithm.upper(), plaintext_footer=plaintext_footer, aad_prefix=aad_prefix,
        store_aad_prefix=store_aad_prefix or aad_prefix is None,
    )  # fmt: skip


def create_decryption_properties(
    footer_key: bytes, *, aad_prefix: bytes | None = None, check_footer_integrity: bool = True,
    allow_plaintext_files: bool = False,
) -> DecryptionProperties:  # fmt: skip
    """Properties for reading with one key, of the footer and all columns."""
    _check_key(footer_key, aad_prefix)
    return DecryptionProperties(
        footer_key, aad_prefix=aad_prefix, check_footer_integrity=check_footer_integrity,
        allow_plaintext_files=allow_plaintext_files,
    )  # fmt: skip


def _check_key(key: Any, prefix: Any) -> None:
    for name, value in (("footer_key", key), ("aad_prefix", b"" if prefix is None else prefix)):
        if not isinstance(value, bytes):
            raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    if len(key) not in (16, 24, 32):
        raise ValueError(f"footer_key must be 16, 24, or 32 bytes, got {len(key)}")
