"""Modular encryption (Encryption.md): keys and properties for writing and reading encrypted files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyparq.runtime.lazy_import import load, load_later

if TYPE_CHECKING:
    from pyparq.encryption.keytools import CryptoFactory
    from pyparq.encryption.kms import (
        DecryptionConfiguration,
        EncryptionConfiguration,
        KmsClient,
        KmsConnectionConfig,
        LocalFileKms,
    )
    from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties

__all__ = [
    "CryptoFactory", "DecryptionConfiguration", "DecryptionProperties", "EncryptionConfiguration", "EncryptionKey",
    "EncryptionProperties", "KmsClient", "KmsConnectionConfig", "LocalFileKms",
]  # fmt: skip


if not TYPE_CHECKING:  # a type checker that sees it takes every misspelt name for one that loads later

    def __getattr__(name: str) -> Any:
        # Keys are for those who use them, and key tools for those with a KMS; every reader imports this package.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        modules = (load(f"{__name__}.{module}") for module in ("properties", "keytools", "kms"))
        return next(getattr(module, name) for module in modules if hasattr(module, name))


load_later(__name__, "cipher", "material", "properties")

DOOR = ("cipher", "keyfile", "material", "properties", "reading", "writing")
"""Modules of this package that other packages may use."""
