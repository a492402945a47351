"""Key management services (KMS): they wrap and unwrap keys by master keys that never leave the service."""

from __future__ import annotations

import base64
import binascii
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyparq.encryption.cipher import DataKey, check_key
from pyparq.encryption.material import DEFAULT_KMS, short
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


@dataclass(frozen=True, slots=True)
class KmsConnectionConfig:
    """Where the KMS is. It is handed to the factory of KMS clients; the token is never shown."""

    kms_instance_id: str = DEFAULT_KMS
    kms_instance_url: str = DEFAULT_KMS
    key_access_token: str = field(default="DEFAULT", repr=False)
    custom_kms_conf: Mapping[str, str] = field(default_factory=dict, repr=False)


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
