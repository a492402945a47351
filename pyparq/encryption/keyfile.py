"""Keys from a JSON file, for the command line and for programs that start others.

    {"footer_key": "base64:...", "column_keys": {"salary": "hex:..."}, "aad_prefix": "employees_2026"}

Keys are text that begins with ``base64:``, ``hex:`` or ``text:``. ``keys_by_metadata`` maps key metadata to keys,
``master_keys`` maps the names of master keys to keys, for files whose key material is that of parquet-java's key tools.
The other fields are the options of :class:`DecryptionProperties`.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from typing import Any

from pyparq.encryption.cipher import DataKey, check_key
from pyparq.encryption.material import short
from pyparq.encryption.properties import DecryptionProperties
from pyparq.errors import EncryptionError, OptionError, near_matches

KINDS = ("base64:", "hex:", "text:")
"""What a key begins with."""
_OPTIONS = ("aad_prefix", "check_footer_integrity", "allow_plaintext_files", "algorithm")
_FIELDS = ("footer_key", "column_keys", "keys_by_metadata", "master_keys", *_OPTIONS)


def load_keys(path: str | os.PathLike[str], **options: Any) -> DecryptionProperties:
    """Decryption properties from a key file. ``options`` that are not ``None`` win over the file.

    Raises :class:`OptionError` for an invalid key file, without showing its contents.
    """
    with open(path, encoding="utf-8") as file:
        try:
            text = file.read()
        except UnicodeDecodeError:
            raise OptionError(f"{os.fspath(path)} is not a key file: it is not UTF-8 text") from None
    return decryption_from_json(text, os.fspath(path), **options)


def decryption_from_json(text: str, where: str, **options: Any) -> DecryptionProperties:
    """The same from JSON text; ``where`` names its origin in messages."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise OptionError(f"{where} is not a key file: it is not valid JSON") from None
    if not isinstance(fields, dict):
        raise OptionError(f"{where} is not a key file: it does not hold a JSON object")
    for name in fields:
        if name not in _FIELDS:
            raise OptionError(f"unknown field {name!r} in {where}{near_matches(name, _FIELDS, 'fields')}")
    settings = {name: fields[name] for name in _OPTIONS if name in fields}
    settings.update({name: value for name, value in options.items() if value is not None})
    footer = fields.get("footer_key")
    columns = _mapping(fields, "column_keys", where)
    by_metadata = _mapping(fields, "keys_by_metadata", where)
    masters = _mapping(fields, "master_keys", where)
    if by_metadata and masters:
        raise OptionError(f"{where} has both keys_by_metadata and master_keys. Give only one of the two")
    footer_key = None if footer is None else _key(footer, f"footer_key in {where}")
    if masters:
        if footer_key is not None or columns:
            raise OptionError(
                f"{where} has master_keys, so footer_key and column_keys are not allowed: "
                "these keys come from the Parquet file"
            )
        return _by_masters(masters, settings)
    if by_metadata:
        settings["key_retriever"] = {name.encode(): key for name, key in by_metadata.items()}.get
    return DecryptionProperties(footer_key, columns, **settings)


def _by_masters(masters: Mapping[str, bytes], settings: dict[str, Any]) -> DecryptionProperties:
    from pyparq.encryption.keytools import CryptoFactory

    client = _MasterKeys(masters)
    return CryptoFactory(lambda config: client).file_decryption_properties(**settings)


class _MasterKeys:
    """Unwraps as :class:`pyparq.encryption.LocalFileKms` does."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = {name: DataKey(key) for name, key in keys.items()}

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        raise EncryptionError("a key file can only be used for reading")

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        if master_key_identifier not in self._keys:
            raise EncryptionError(f"no master key {short(master_key_identifier)} was given")
        try:
            wrapped = base64.b64decode(wrapped_key, validate=True)
        except binascii.Error:
            raise EncryptionError("the wrapped key is not base64") from None
        return self._keys[master_key_identifier].unwrap(wrapped, master_key_identifier.encode())


def _mapping(fields: Mapping[str, Any], name: str, where: str) -> dict[str, bytes]:
    given = fields.get(name, {})
    if not isinstance(given, dict):
        raise OptionError(f"{name} in {where} must map names to keys")
    return {key: _key(value, f"{name}[{key!r}] in {where}") for key, value in given.items()}


def _key(text: Any, what: str) -> bytes:
    kind, _, value = text.partition(":") if isinstance(text, str) else ("", "", "")
    try:
        if kind == "base64":
            return check_key(base64.b64decode(value, validate=True), what)
        if kind == "hex":
            return check_key(bytes.fromhex(value), what)
        if kind == "text":
            return check_key(value.encode(), what)
    except ValueError as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{what} is not {kind}") from None
    raise OptionError(f"{what} must begin with 'base64:', 'hex:' or 'text:'")
