"""Modular encryption (Encryption.md): keys and properties for writing and reading encrypted files."""

from pyparq.encryption.keytools import CryptoFactory, DecryptionConfiguration, EncryptionConfiguration
from pyparq.encryption.kms import KmsClient, KmsConnectionConfig, LocalFileKms
from pyparq.encryption.properties import DecryptionProperties, EncryptionKey, EncryptionProperties

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
