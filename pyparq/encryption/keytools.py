"""Envelope encryption: a data key for each file and column, wrapped by master keys that stay in a KMS.

The names are those of ``pyarrow.parquet.encryption``, the key material that of parquet-java's key tools.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote

from pyparq.column_names import ColumnName
from pyparq.encryption import material as km
from pyparq.encryption.cipher import DataKey, check_key
from pyparq.encryption.kms import (
    DecryptionConfiguration,
    EncryptionConfiguration,
    KmsClient,
    KmsConnectionConfig,
    decode_base64,
)
from pyparq.encryption.material import KeyMaterial
from pyparq.encryption.properties import (
    DecryptionProperties,
    EncryptionProperties,
    FileKeys,
    Find,
    HeldKey,
    ReadSibling,
    assign,
    find_among,
)
from pyparq.errors import EncryptionError, OptionError, ParquetError, near_matches
from pyparq.runtime import fork_safety

T = TypeVar("T")
KmsClientFactory = Callable[[KmsConnectionConfig], KmsClient]

KEK_BYTES = KEK_ID_BYTES = 16

_OPTIONS = ("aad_prefix", "check_footer_integrity", "allow_plaintext_files", "algorithm")
"""Of :class:`DecryptionProperties`, those that are no keys: the properties made here are pickled."""

Where = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""A KMS and its user."""


class _Cache:
    """Values that are kept for some time, by the KMS and by more. Two threads that miss a value may both call
    ``make``."""

    def __init__(self) -> None:
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        """Start empty: a KMS client may have a connection, which parent and child must not share."""
        self._entries: dict[tuple[Where, *tuple[Any, ...]], tuple[float, Any]] = {}
        self._lock = threading.Lock()

    def forget(self, token: str | None) -> None:
        """Let go of the values of one token, or of all."""
        with self._lock:
            for key in [key for key in self._entries if token in (None, key[0][2])]:
                del self._entries[key]

    def get(self, key: tuple[Where, *tuple[Any, ...]], lifetime: timedelta, make: Callable[[], T]) -> T:
        now = time.monotonic()
        with self._lock:
            found = self._entries.get(key)
        if found is not None and now - found[0] < lifetime.total_seconds():
            value: T = found[1]
            return value
        value = make()
        with self._lock:
            old = [k for k, (made, _) in self._entries.items() if now - made >= lifetime.total_seconds()]
            for k in old:
                del self._entries[k]
            self._entries[key] = now, value
        return value


@dataclass(frozen=True, slots=True)
class _Kek:
    """A key encryption key of the writer. It wraps the data keys of many files."""

    key: DataKey
    id: bytes
    wrapped: str


class CryptoFactory:
    """Makes properties for files whose keys are wrapped by a KMS.

    ``kms_client_factory`` makes a :class:`KmsClient` from a :class:`KmsConnectionConfig`; it is called once per
    configuration. Pickles (for Spark, say) when the factory does; cached keys stay behind.
    """

    def __init__(self, kms_client_factory: KmsClientFactory) -> None:
        if not callable(kms_client_factory):
            raise OptionError(
                "kms_client_factory must be a function that takes the KMS configuration and returns a KMS client"
            )
        self._make_client = kms_client_factory
        self._clients = _Cache()
        self._write_keks = _Cache()
        self._read_keks = _Cache()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._make_client,)

    def file_encryption_properties(
        self, kms_connection_config: KmsConnectionConfig | None, encryption_config: EncryptionConfiguration
    ) -> KmsEncryptionProperties:
        """Properties for writing: every file gets new data keys when its writing begins."""
        return KmsEncryptionProperties(self, kms_connection_config or KmsConnectionConfig(), encryption_config)

    def file_decryption_properties(
        self,
        kms_connection_config: KmsConnectionConfig | None = None,
        decryption_config: DecryptionConfiguration | None = None,
        **options: Any,
    ) -> KmsDecryptionProperties:
        """Properties for reading; ``options`` are those of :class:`DecryptionProperties` but the keys.

        The address of the KMS is that of ``kms_connection_config``, whatever the file says of it: no file may send a
        reader's token elsewhere, unless ``read_kms_url`` allows it. Raises :class:`OptionError`.
        """
        for name in options:
            if name not in _OPTIONS:
                raise OptionError(f"{name!r} is not an option for a KMS{near_matches(name, _OPTIONS, 'options')}")
        config = decryption_config or DecryptionConfiguration()
        return KmsDecryptionProperties(self, kms_connection_config or KmsConnectionConfig(), config, options)

    # ---- what the properties ask

    def client(self, connection: KmsConnectionConfig) -> KmsClient:
        return self._clients.get(
            (_where(connection),),
            timedelta.max,
            lambda: _ask("making the KMS client", lambda: self._make_client(connection)),
        )

    def new_key(
        self, connection: KmsConnectionConfig, config: EncryptionConfiguration, master: str, is_footer: bool
    ) -> tuple[bytes, KeyMaterial]:
        """A new data key, and its key material."""
        key = os.urandom(config.data_key_length_bits // 8)
        kek: _Kek | None = None
        if config.double_wrapping:
            where = _where(connection), master
            kek = self._write_keks.get(where, config.cache_lifetime, lambda: self._new_kek(connection, master))
        return key, self._wrapped(connection, key, master, is_footer, kek)

    def _wrapped(
        self, connection: KmsConnectionConfig, key: bytes, master: str, is_footer: bool, kek: _Kek | None
    ) -> KeyMaterial:
        """A data key wrapped by a key encryption key or, without one, by the master key."""
        instance = connection.kms_instance_id or km.DEFAULT_KMS, connection.kms_instance_url or km.DEFAULT_KMS
        if kek is None:
            return KeyMaterial(is_footer, master, _wrap(self.client(connection), key, master), None, None, *instance)
        wrapped, kek_id = (base64.b64encode(one).decode() for one in (kek.key.wrap(key, kek.id), kek.id))
        return KeyMaterial(is_footer, master, wrapped, kek_id, kek.wrapped, *instance)

    def _new_kek(self, connection: KmsConnectionConfig, master: str) -> _Kek:
        key = os.urandom(KEK_BYTES)
        return _Kek(DataKey(key), os.urandom(KEK_ID_BYTES), _wrap(self.client(connection), key, master))

    def unwrap(self, connection: KmsConnectionConfig, material: KeyMaterial, lifetime: timedelta) -> bytes:
        """The data key of a key material."""
        client = self.client(connection)
        if material.kek_id is None or material.wrapped_kek is None:
            return _unwrap(client, material.wrapped_dek, material.master_key_id)
        wrapped_kek = material.wrapped_kek
        kek_id = decode_base64(material.kek_id, "the id of a key encryption key")
        kek = self._read_keks.get(
            (_where(connection), material.master_key_id, wrapped_kek, kek_id),
            lifetime,
            lambda: DataKey(_unwrap(client, wrapped_kek, material.master_key_id)),
        )
        try:
            return kek.unwrap(decode_base64(material.wrapped_dek, "a wrapped data key"), kek_id)
        except EncryptionError as error:
            raise EncryptionError(
                f"a data key cannot be unwrapped by its key encryption key (master key "
                f"{km.short(material.master_key_id)}): {error.message}"
            ) from None

    def rotated(
        self, connection: KmsConnectionConfig, config: DecryptionConfiguration, stored: Mapping[str, str], double: bool
    ) -> dict[str, str]:
        """External key material with the same data keys, wrapped anew as the KMS wraps by its master keys today."""
        self.forget()
        self.client(connection)
        materials = {reference: KeyMaterial.parse(text) for reference, text in stored.items()}
        known = completed(connection, config, next((one for one in materials.values() if one.is_footer_key), None))
        keks: dict[str, _Kek] = {}
        made = {}
        for reference, old in materials.items():
            key, master = self.unwrap(known, old, config.cache_lifetime), old.master_key_id
            if double and master not in keks:
                keks[master] = self._new_kek(connection, master)
            new = self._wrapped(connection, key, master, old.is_footer_key, keks.get(master))
            made[reference] = new.to_json(internal=False)
        return made

    def forget(self, token: str | None = None) -> None:
        """Let go of clients and keys: of those of one access token, or of all."""
        for cache in (self._clients, self._write_keks, self._read_keks):
            cache.forget(token)


def completed(
    connection: KmsConnectionConfig, config: DecryptionConfiguration, footer: KeyMaterial | None
) -> KmsConnectionConfig:
    """A connection with what it leaves empty: from the key material of a footer, as far as that is allowed."""
    name = connection.kms_instance_id or (km.DEFAULT_KMS if footer is None else footer.kms_instance_id)
    said = footer.kms_instance_url if footer is not None and config.read_kms_url else km.DEFAULT_KMS
    url = connection.kms_instance_url or said
    if (name, url) == (connection.kms_instance_id, connection.kms_instance_url):
        return connection
    return replace(connection, kms_instance_id=name, kms_instance_url=url)


class KmsEncryptionProperties(EncryptionProperties):
    """Encryption with data keys that a KMS wraps; made by :class:`CryptoFactory`."""

    def __init__(
        self, factory: CryptoFactory, connection: KmsConnectionConfig, config: EncryptionConfiguration
    ) -> None:
        self._parts = factory, connection, config
        self._columns = None if config.uniform_encryption else {}
        self._settle(
            config.encryption_algorithm,
            config.plaintext_footer,
            config.aad_prefix,
            config.store_aad_prefix,
            config.complete_columns,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return KmsEncryptionProperties, self._parts

    def keys_for(self, leaves: Sequence[ColumnName], file_name: str, find: Find | None = None) -> FileKeys:
        factory, connection, config = self._parts
        external: dict[str, str] | None = None if config.internal_key_material else {}
        generation = km.new_generation()

        def new_key(master: str, name: str) -> HeldKey:
            key, wrapped = factory.new_key(connection, config, master, name == km.FOOTER_REFERENCE)
            if external is None:
                return HeldKey(DataKey(key), wrapped.to_json(internal=True).encode())
            reference = name + generation
            external[reference] = wrapped.to_json(internal=False)
            return HeldKey(DataKey(key), km.reference_json(reference).encode())

        # Before the KMS is asked for anything: is every column there?
        names = [(master, column) for master, columns in config.column_keys.items() for column in columns]
        find = find or find_among(leaves)
        assign(leaves, {column: master for master, column in names}, find)
        footer = new_key(config.footer_key, km.FOOTER_REFERENCE)
        if config.uniform_encryption:
            return FileKeys(footer, dict.fromkeys(leaves), external)
        keys = {column: new_key(master, km.column_reference(k)) for k, (master, column) in enumerate(names)}
        return FileKeys(footer, self._all_of(leaves, assign(leaves, keys, find)), external)


class KmsDecryptionProperties(DecryptionProperties):
    """Decryption with keys that a KMS unwraps; made by :class:`CryptoFactory`."""

    def __init__(
        self,
        factory: CryptoFactory,
        connection: KmsConnectionConfig,
        config: DecryptionConfiguration,
        options: Mapping[str, Any],
        place: tuple[str, ReadSibling] | None = None,
    ) -> None:
        """``place``: the name of the file whose external key material is used, instead of the file's own name."""
        super().__init__(**options)
        self._parts = factory, connection, config, dict(options)
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return KmsDecryptionProperties, (*self._parts, self.place)

    def for_file(self, file_name: str, read_sibling: ReadSibling) -> DecryptionProperties:
        factory, connection, config, options = self._parts
        file_name, read_sibling = self.place or (file_name, read_sibling)
        retriever = _Retriever(factory, connection, config, file_name, read_sibling)
        return DecryptionProperties(**{**options, "key_retriever": retriever})


class _Retriever:
    """The key of each key metadata of one file."""

    def __init__(
        self,
        factory: CryptoFactory,
        connection: KmsConnectionConfig,
        config: DecryptionConfiguration,
        file_name: str,
        read_sibling: ReadSibling,
    ) -> None:
        self._factory = factory
        self._connection = connection
        self._config = config
        self._sibling = km.sibling_name(file_name)
        self._read_sibling = read_sibling
        self._external: dict[str, str] | None = None
        self._footer: KeyMaterial | None = None

    def __call__(self, metadata: bytes) -> bytes:
        fields = km.parse_fields(metadata)
        reference = km.reference_of(fields)
        text: str | bytes = metadata if reference is None else self._from_external(reference)
        material = KeyMaterial.parse(text)
        if material.is_footer_key:
            self._footer = material
        connection = completed(self._connection, self._config, self._footer)
        return self._factory.unwrap(connection, material, self._config.cache_lifetime)

    def _from_external(self, reference: str) -> str:
        if self._external is None:
            try:
                self._external = km.parse_external(self._read_sibling(self._sibling))
            except OSError as error:
                raise EncryptionError(f"external key material {self._sibling!r} cannot be read: {error}") from error
        try:
            return self._external[reference]
        except KeyError:
            raise EncryptionError(
                f"{self._sibling!r} has no key {km.short(reference)}: if the file was replaced meanwhile, open it again"
            ) from None


def _where(connection: KmsConnectionConfig) -> Where:
    custom = tuple(sorted((name, repr(value)) for name, value in connection.custom_kms_conf.items()))
    return connection.kms_instance_id, connection.kms_instance_url, connection.key_access_token, custom


def _ask(what: str, call: Callable[[], T], secret: bytes = b"") -> T:
    """The result of ``call``. Its errors become :class:`EncryptionError`, without texts that contain ``secret``."""
    try:
        return call()
    except Exception as error:
        name = type(error).__name__
        said = error.message if isinstance(error, ParquetError) else f"{name}: {error}"
        if secret and _shows(f"{said}{error!r}", secret):
            raise EncryptionError(f"{what} failed: {name} (its message is left out because it shows the key)") from None
        raise EncryptionError(f"{what} failed: {said}") from error


def _shows(text: str, secret: bytes) -> bool:
    encoded = base64.b64encode(secret).rstrip(b"=")
    forms = [secret.hex(), secret.hex().upper(), repr(secret)[2:-1], quote(secret)]
    forms += [encoded.decode(), quote(encoded), quote(encoded, safe="")]
    forms.append(base64.urlsafe_b64encode(secret).decode().rstrip("="))
    return any(form in text for form in forms)


def _wrap(client: KmsClient, key: bytes, master: str) -> str:
    wrapped = _ask(f"wrapping a key by master key {master!r}", lambda: client.wrap_key(key, master), key)
    if not isinstance(wrapped, (str, bytes)):
        raise EncryptionError(f"the KMS wrapped a key as {type(wrapped).__name__}, which is not text")
    try:
        return wrapped.decode() if isinstance(wrapped, bytes) else wrapped
    except UnicodeDecodeError:
        raise EncryptionError("the KMS wrapped a key as bytes that are not text") from None


def _unwrap(client: KmsClient, wrapped: str, master: str) -> bytes:
    named = km.short(master)
    key = _ask(f"unwrapping a key by master key {named}", lambda: client.unwrap_key(wrapped, master))
    try:
        return check_key(key, f"a key unwrapped by master key {named}")
    except OptionError as error:
        raise EncryptionError(error.message) from None
