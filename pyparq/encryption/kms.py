"""Key management services (KMS), which wrap and unwrap keys by master keys that never leave them, and what to ask of
them."""

from __future__ import annotations

import base64
import binascii
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from pyparq.column_names import ColumnName, is_name
from pyparq.encryption.cipher import DataKey, check_key
from pyparq.encryption.material import DEFAULT_KMS, short
from pyparq.encryption.properties import AES_GCM_V1
from pyparq.errors import EncryptionError, OptionError
from pyparq.runtime.text import printable


class KmsClient(Protocol):
    """The methods that :class:`pyparq.encryption.CryptoFactory` needs of a KMS. pyarrow's clients have them.

    Errors of these methods reach the user inside an :class:`EncryptionError`.
    """

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str | bytes:
        """``key_bytes`` wrapped by a master key, as text (base64, say)."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key that :meth:`wrap_key` wrapped."""


@dataclass(slots=True)
class KmsConnectionConfig:
    """Where the KMS is. It is handed to the factory of KMS clients; the token is never shown.

    For reading, ``kms_instance_id=""`` is the one that the file names.
    """

    kms_instance_id: str = DEFAULT_KMS
    kms_instance_url: str = DEFAULT_KMS
    key_access_token: str = field(default="DEFAULT", repr=False)
    custom_kms_conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    def refresh_key_access_token(self, value: str) -> None:
        """Use another token from now on."""
        self.key_access_token = value


@dataclass(frozen=True, slots=True)
class EncryptionConfiguration:
    """What to encrypt with which master keys (names in the KMS, not keys).

    ``column_keys``: ``{master key: [columns]}``. ``uniform_encryption``: all columns with the footer key.
    ``double_wrapping``: data keys are wrapped by a key encryption key, and that by the master key, so that the KMS is
    called once per master key and ``cache_lifetime`` rather than once per file and column.
    ``internal_key_material``: the wrapped keys go into the file; otherwise into ``_KEY_MATERIAL_FOR_<file>.json``
    beside it. The rest as in :class:`EncryptionProperties`.
    """

    footer_key: str
    column_keys: Mapping[str, Sequence[ColumnName]] = field(default_factory=dict)
    uniform_encryption: bool = False
    encryption_algorithm: str = AES_GCM_V1
    plaintext_footer: bool = False
    double_wrapping: bool = True
    cache_lifetime: timedelta = timedelta(minutes=10)
    internal_key_material: bool = True
    data_key_length_bits: int = 128
    complete_columns: bool = False
    aad_prefix: str | bytes | None = None
    store_aad_prefix: bool = True

    def __post_init__(self) -> None:
        if self.data_key_length_bits not in (128, 192, 256):
            raise OptionError(f"data_key_length_bits must be 128, 192 or 256, not {self.data_key_length_bits!r}")
        if not isinstance(self.footer_key, str):
            raise OptionError(f"footer_key must be the name of a master key, not {type(self.footer_key).__name__}")
        if not isinstance(self.column_keys, Mapping):
            raise OptionError("column_keys must map names of master keys to lists of columns")
        if self.uniform_encryption == bool(self.column_keys):
            raise OptionError("give either column_keys or uniform_encryption=True")
        for name, columns in self.column_keys.items():
            if not isinstance(name, str):
                raise OptionError(f"column_keys: the name of a master key must be text, not {type(name).__name__}")
            if isinstance(columns, str) or not columns or not all(map(is_name, columns)):
                raise OptionError(f"column_keys[{name!r}] must be a list of at least one column name")
        names = [column for columns in self.column_keys.values() for column in columns]
        if len(set(names)) != len(names):
            raise OptionError("column_keys names a column twice")
        _check_lifetime(self.cache_lifetime)


@dataclass(frozen=True, slots=True)
class DecryptionConfiguration:
    """How long unwrapped key encryption keys are kept, and whom the reader asks for them.

    ``read_kms_url``: a connection whose ``kms_instance_url`` is ``""`` takes the address that the file names. Only for
    KMS clients that check the address: whoever wrote the file chose where the token goes.
    """

    cache_lifetime: timedelta = timedelta(minutes=10)
    read_kms_url: bool = False

    def __post_init__(self) -> None:
        _check_lifetime(self.cache_lifetime)


def _check_lifetime(given: Any) -> None:
    if not isinstance(given, timedelta):
        raise OptionError(f"cache_lifetime must be a timedelta, not {given!r}")


class LocalFileKms:
    """A KMS for development and tests: **its master keys lie in a plain JSON file**, ``{"id": "base64 key"}``.

    It warns when it is made. Keys are wrapped by AES-GCM with the master key's name as AAD, as the test KMS of
    parquet-java does. Raises :class:`OptionError` for a file that does not hold keys.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        warnings.warn(
            "LocalFileKms is for development only: its master keys lie in a plain file", UserWarning, stacklevel=2
        )
        self._path = os.fspath(path)
        with open(path, encoding="utf-8") as file:
            self._keys = _master_keys(file.read(), self._path)

    @staticmethod
    def create(path: str | os.PathLike[str], *names: str, bits: int = 128) -> LocalFileKms:
        """Make a file of new random master keys with these names, readable by its owner only."""
        keys = {name: base64.b64encode(os.urandom(bits // 8)).decode() for name in names}
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(keys, file, indent=1)
        return LocalFileKms(path)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        master = self._master(master_key_identifier)
        return base64.b64encode(master.wrap(key_bytes, master_key_identifier.encode())).decode()

    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        master = self._master(master_key_identifier)
        return master.unwrap(decode_base64(wrapped_key, "the wrapped key"), master_key_identifier.encode())

    def _master(self, name: str) -> DataKey:
        try:
            return self._keys[name]
        except KeyError:
            raise EncryptionError(f"no master key {short(name)} in {self._path}") from None

    @printable
    def __repr__(self) -> str:
        return f"<LocalFileKms (development only): {len(self._keys)} master keys in {self._path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFileKms, (self._path,)


def _master_keys(text: str, path: str) -> dict[str, DataKey]:
    try:
        found = json.loads(text)
    except ValueError:
        raise OptionError(f"{path} is not JSON") from None
    if not isinstance(found, dict):
        raise OptionError(f"{path} does not map names to keys")
    keys = {}
    for name, value in found.items():
        try:
            data = decode_base64(value, "")
        except EncryptionError:
            raise OptionError(f"master key {name!r} in {path} is not base64") from None
        keys[name] = DataKey(check_key(data, f"master key {name!r} in {path}"))
    return keys


def decode_base64(text: Any, what: str) -> bytes:
    """Raises :class:`EncryptionError` for what is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise EncryptionError(f"{what} is not base64") from None
