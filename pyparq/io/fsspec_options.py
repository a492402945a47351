"""Storage options in the spellings of polars and obstore, as fsspec's file systems take them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError

_S3 = {
    "access_key_id": "key", "access_key": "key", "secret_access_key": "secret", "secret_key": "secret",
    "session_token": "token", "endpoint": "endpoint_url", "skip_signature": "anon", "request_payer": "requester_pays",
}  # fmt: skip
_REGION = ("region", "region_name", "default_region")
_OF_S3FS = frozenset({
    "anon", "endpoint_url", "key", "secret", "token", "use_ssl", "client_kwargs", "requester_pays", "config_kwargs",
    "default_block_size", "default_fill_cache", "default_cache_type", "version_aware", "s3_additional_kwargs",
    "session", "username", "password", "cache_regions", "asynchronous", "loop", "max_concurrency", "fixed_upload_size",
    "local_expiry_check", "profile", "skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths",
    "batch_size",
})  # fmt: skip
_GCS = {
    "service_account": "token", "service_account_path": "token", "application_credentials": "token",
    "base_url": "endpoint_url",
}  # fmt: skip
_AZURE = {"access_key": "account_key", "sas_key": "sas_token", "skip_signature": "anon"}
_PLAIN = ("account_name", "account_key", "sas_token", "client_id", "client_secret", "tenant_id", "connection_string")
"""Of Azure: adlfs has these names."""
_UNUSED = ("allow_http", "virtual_hosted_style_request", "retry_config", "unsigned_payload", "conditional_put")
"""What obstore has to be told, and the others find out."""


def has_settings(protocol: str) -> bool:
    """Whether fsspec's own configuration has options for a protocol. It is not imported for that."""
    loaded = getattr(sys.modules.get("fsspec.config"), "conf", None)
    if loaded is not None:
        return bool(loaded.get(protocol))
    name = f"FSSPEC_{protocol.upper()}"
    if any(one.upper() == name or one.upper().startswith(f"{name}_") for one in os.environ):
        return True
    folder = os.environ.get("FSSPEC_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".config", "fsspec")
    try:
        return any(file.endswith((".json", ".ini")) for file in os.listdir(folder))
    except OSError:
        return False


def for_fsspec(url: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options for the file system of ``url``. Names that it knows itself stay as they are.

    Raises :class:`OptionError` for one that nobody knows, as far as that can be told.
    """
    protocol = url.partition("://")[0]
    if not given or "::" in url:
        return dict(given)
    if protocol in ("s3", "s3a"):
        return _for_s3fs(given)
    if protocol in ("gs", "gcs"):
        found = {_renamed(name, ("google_",), _GCS): value for name, value in given.items() if name not in _UNUSED}
        return ({"token": "anon"} if found.pop("skip_signature", False) else {}) | found
    if protocol in ("az", "abfs", "abfss"):
        names = _AZURE | {name: name for name in _PLAIN}
        prefixes = ("azure_storage_", "azure_")
        return {_renamed(name, prefixes, names): value for name, value in given.items() if name not in _UNUSED}
    return dict(given)


def _renamed(name: str, prefixes: tuple[str, ...], names: Mapping[str, str]) -> str:
    plain = name.lower()
    for prefix in prefixes:
        plain = plain.removeprefix(prefix)
    return names.get(plain, plain if plain == "skip_signature" else name)


def _for_s3fs(given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    client: dict[str, Any] = {}
    for name, value in given.items():
        plain = name.lower().removeprefix("aws_")
        if name in _OF_S3FS:
            found[name] = value
        elif plain in _S3:
            found[_S3[plain]] = value
        elif plain == "endpoint_url":
            found[plain] = value
        elif plain in _REGION:
            client["region_name"] = value
        elif plain == "allow_invalid_certificates":
            client["verify"] = not value
        elif plain == "client_options":
            client |= {"verify": False} if dict(value or {}).get("allow_invalid_certificates") else {}
        elif plain not in _UNUSED:
            raise OptionError(f"storage_options has {name!r}, which neither s3fs nor obstore knows for s3://")
    if client:
        found["client_kwargs"] = client | dict(found.get("client_kwargs") or {})
    return found
