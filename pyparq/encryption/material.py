"""Key material as parquet-java's key tools write it (type ``PKMT1``): JSON that says how a data key is wrapped.

Key metadata in a Parquet file is either the material itself (internal storage) or a reference into a file beside it,
``_KEY_MATERIAL_FOR_<file>.json`` (external storage).

No file system replaces two files in one step. So the references of each file that is written are its own, and while it
takes the place of an older one, the material beside them serves both. Afterwards the older one's stays for readers that
have that one open still.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyparq.errors import EncryptionError

TYPE = "PKMT1"
FOOTER_REFERENCE = "footerKey"
DEFAULT_KMS = "DEFAULT"
"""Instance name and address where none is configured, as parquet-java writes it."""

_LONG = 100
"""Characters of a name that messages show."""


def column_reference(number: int) -> str:
    return f"columnKey{number}"


def new_generation() -> str:
    """A text that ends the references of one file, different from those of all other files."""
    return f"-{os.urandom(8).hex()}"


def _generation_of(reference: str) -> str:
    """The generation in a reference that pyparq made. Empty for other references."""
    _, dash, number = reference.rpartition("-")
    return dash + number


def sibling_name(file_name: str) -> str:
    """Name of the file with the external key material of a Parquet file (both without folder)."""
    return f"_KEY_MATERIAL_FOR_{file_name}.json"


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """How one data key is wrapped: by a master key, or by a key encryption key that a master key wraps."""

    is_footer_key: bool
    master_key_id: str
    wrapped_dek: str
    kek_id: str | None = None
    """Base64; ``None`` without double wrapping."""
    wrapped_kek: str | None = None
    kms_instance_id: str = DEFAULT_KMS
    kms_instance_url: str = DEFAULT_KMS

    def to_json(self, internal: bool) -> str:
        fields: dict[str, Any] = {"keyMaterialType": TYPE}
        if internal:
            fields["internalStorage"] = True
        fields["isFooterKey"] = self.is_footer_key
        if self.is_footer_key:
            fields["kmsInstanceID"] = self.kms_instance_id
            fields["kmsInstanceURL"] = self.kms_instance_url
        fields["masterKeyID"] = self.master_key_id
        fields["wrappedDEK"] = self.wrapped_dek
        fields["doubleWrapping"] = self.kek_id is not None
        if self.kek_id is not None:
            fields["keyEncryptionKeyID"] = self.kek_id
            fields["wrappedKEK"] = self.wrapped_kek
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | bytes) -> KeyMaterial:
        """Parse PKMT1 material. Raises :class:`EncryptionError` for anything else."""
        fields = parse_fields(text)
        double = _get(fields, "doubleWrapping", bool)
        footer = _get(fields, "isFooterKey", bool)
        return cls(
            footer,
            _get(fields, "masterKeyID", str),
            _get(fields, "wrappedDEK", str),
            _get(fields, "keyEncryptionKeyID", str) if double else None,
            _get(fields, "wrappedKEK", str) if double else None,
            _get(fields, "kmsInstanceID", str) if footer else DEFAULT_KMS,
            _get(fields, "kmsInstanceURL", str) if footer else DEFAULT_KMS,
        )


def reference_json(reference: str) -> str:
    """Key metadata that refers to external material."""
    fields = {"keyMaterialType": TYPE, "internalStorage": False, "keyReference": reference}
    return json.dumps(fields, separators=(",", ":"))


def parse_fields(text: str | bytes) -> dict[str, Any]:
    """The JSON object of key metadata or material, its type checked."""
    fields = _json_object(text, "key metadata")
    if fields.get("keyMaterialType") != TYPE:
        raise EncryptionError(
            f"the key material has type {short(fields.get('keyMaterialType'))}, but only {TYPE} is supported"
        )
    return fields


def reference_of(fields: Mapping[str, Any]) -> str | None:
    """The reference to external material in key metadata. ``None`` for internal material."""
    if _get(fields, "internalStorage", bool):
        return None
    return str(_get(fields, "keyReference", str))


def parse_external(data: bytes) -> dict[str, str]:
    """The contents of an external material file: material by reference."""
    found = _json_object(data, "external key material")
    if not all(isinstance(value, str) for value in found.values()):
        raise EncryptionError("the external key material does not map references to text")
    return found


def while_replaced(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """External material for both the existing file and the one that will replace it.

    References of other programs are the same for every file; then the new file's material is stored.
    """
    own = {k: v for k, v in new.items() if k != FOOTER_REFERENCE or not _footer_of(new)}
    return {**old, **own}


def when_replaced(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """External material of the new file, and of the one that it has replaced.

    The footer's key has its usual name as well: programs that rotate master keys look for it.
    """
    last = _generation_of(next(reversed(list(old)), ""))
    kept = {k: v for k, v in old.items() if last and _generation_of(k) == last and k not in new}
    footer = _footer_of(new)
    named = {FOOTER_REFERENCE: new[footer]} if footer else {}
    return {**kept, **named, **new}


def _footer_of(material: Mapping[str, str]) -> str:
    """The last reference to a footer's key that only one file has."""
    return next((k for k in reversed(list(material)) if k.startswith(f"{FOOTER_REFERENCE}-")), "")


def external_json(material: Mapping[str, str]) -> bytes:
    return json.dumps(dict(material), separators=(",", ":")).encode()


def short(value: Any) -> str:
    """Text or bytes of a file for a message, shortened if they are long. For other values, their kind."""
    if not isinstance(value, (str, bytes)):
        return f"({type(value).__name__})"
    return repr(value) if len(value) <= _LONG else f"{value[:_LONG]!r}..."


def describe(metadata: bytes | None) -> str:
    """Key metadata for a message: the master key or reference of key tools' material, else the bytes, shortened."""
    if metadata is None:
        return "no key metadata"
    try:
        fields = parse_fields(metadata)
        if fields.get("masterKeyID"):
            return f"master key {short(fields['masterKeyID'])}"
        if fields.get("keyReference"):
            return f"external key material {short(fields['keyReference'])}"
    except EncryptionError:
        pass
    shown = metadata[:40]
    text = repr(shown.decode()) if shown.isascii() and shown.decode("ascii").isprintable() else f"0x{shown.hex()}"
    return f"key metadata {text}{'...' if len(metadata) > 40 else ''}"


def _json_object(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncryptionError(f"{what} is not valid JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise EncryptionError(f"{what} is not a JSON object")
    return found


def _get(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if not isinstance(value, kind):
        raise EncryptionError(f"the key material has no valid {name}")
    return value
