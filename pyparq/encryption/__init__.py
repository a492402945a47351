"""Modular encryption (Encryption.md): keys and properties for writing and reading encrypted files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties

if TYPE_CHECKING:
    from pyparq.encryption.keytools import CryptoFactory
    from pyparq.encryption.kms import (
        DecryptionConfiguration,
        EncryptionConfiguration,
        KmsClient,
        KmsConnectionConfig,
        LocalFileKms,
    )

__all__ = [
    "CryptoFactory",
    "DecryptionConfiguration",
    "DecryptionProperties",
    "EncryptionConfiguration",
    "EncryptionKey",
    "EncryptionProperties",
    "KmsClient",
    "KmsConnectionConfig",
    "LocalFileKms",
]


if not TYPE_CHECKING:  # a type checker that sees it takes every misspelt name for one that loads later

    def __getattr__(name: str) -> Any:
        # Key tools are for those who use a KMS; every reader imports this package.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from pyparq.encryption import keytools, kms

        return getattr(keytools if hasattr(keytools, name) else kms, name)


DOOR = (
    "cipher",
    "keyfile",
    "material",
    "properties",
    "reading",
    "writing",
)
"""Modules of this package that other packages may use."""
