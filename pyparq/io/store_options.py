"""Storage options of a URL, in the spellings of pandas and fsspec, of polars, and of obstore, as obstore takes them.

An option that only fsspec understands, and credentials that obstore cannot find, raise :class:`NotForObstore`: fsspec
opens the URL then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyparq.io import aws_profiles

Given = Mapping[str, Any]


class NotForObstore(Exception):  # a decision, and no error
    """Why a URL is left to fsspec."""


@dataclass
class StoreOptions:
    """What the constructor of a store takes."""

    config: dict[str, Any] = field(default_factory=dict)
    client: dict[str, Any] = field(default_factory=dict)
    retry: dict[str, Any] | None = None
    """The user's own."""
    credential_provider: Any = None

    def set(self, name: str, value: Any) -> None:
        if value is not None:
            self.config[name] = value


_OF_FSSPEC = frozenset({
    "skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths", "default_block_size",
    "default_fill_cache", "default_cache_type", "cache_regions", "max_concurrency", "fixed_upload_size", "batch_size",
    "cache_timeout", "project", "access", "consistency", "check_connection", "block_size", "blocksize",
})  # fmt: skip
"""Options of fsspec's file systems for caches and buffers that obstore does not have."""
_CLIENT = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_headers", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "read_timeout", "root_certificate", "timeout",
    "user_agent",
})  # fmt: skip
"""Options of obstore's client, which may stand among the others."""
_S3 = {
    "key": "access_key_id", "username": "access_key_id", "access_key_id": "access_key_id",
    "access_key": "access_key_id",
    "secret": "secret_access_key", "password": "secret_access_key", "secret_access_key": "secret_access_key",
    "secret_key": "secret_access_key", "token": "session_token", "session_token": "session_token",
    "endpoint_url": "endpoint", "endpoint": "endpoint", "region": "region", "region_name": "region",
    "default_region": "region", "anon": "skip_signature", "skip_signature": "skip_signature",
    "requester_pays": "request_payer", "request_payer": "request_payer",
}  # fmt: skip
_GCS = {
    "bearer_token": "bearer_token", "service_account": "service_account", "service_account_path": "service_account",
    "service_account_key": "service_account_key", "application_credentials": "application_credentials",
    "endpoint_url": "base_url", "base_url": "base_url", "skip_signature": "skip_signature",
}  # fmt: skip
_AZURE = {
    "account_name": "account_name", "account_key": "account_key", "access_key": "account_key", "sas_token": "sas_key",
    "sas_key": "sas_key", "client_id": "client_id", "client_secret": "client_secret", "tenant_id": "tenant_id",
    "bearer_token": "token", "endpoint": "endpoint", "skip_signature": "skip_signature", "use_emulator": "use_emulator",
}  # fmt: skip


def _sorted(given: Given, names: Mapping[str, str], prefixes: tuple[str, ...]) -> tuple[StoreOptions, dict[str, Any]]:
    """The options that have a plain counterpart, and the others."""
    found, others = StoreOptions(), {}
    for name, value in given.items():
        plain = name.lower()
        for prefix in prefixes:
            plain = plain.removeprefix(prefix)
        if plain in names:
            if value is not None and value != "":
                found.set(names[plain], value)
        elif plain in _CLIENT:
            found.client[plain] = value
        elif name == "client_options":
            found.client |= dict(value or {})
        elif name == "retry_config":
            found.retry = value
        elif name == "credential_provider":
            found.credential_provider = value
        elif name not in _OF_FSSPEC and value is not None:
            others[name] = value
    return found, others


def _allow_http(found: StoreOptions, url: Any) -> None:
    if isinstance(url, str) and url.startswith("http://"):
        found.client.setdefault("allow_http", True)


# ---- S3 ------------------------------------------------------------------------------------------------------------


def for_s3(given: Given) -> StoreOptions:
    """Raises :class:`NotForObstore`."""
    setting = aws_profiles.needs_boto()
    if setting is not None:
        raise NotForObstore(f"the environment has {setting}")
    found, others = _sorted(given, _S3, ("aws_",))
    _of_boto_client(found, others.pop("client_kwargs", None) or {})
    if others.pop("use_ssl", True) is False:
        found.client.setdefault("allow_http", True)
        if "endpoint" not in found.config:
            raise NotForObstore("use_ssl=False")
    found.config |= others  # a name that obstore does not know is refused by it
    _s3_credentials(found)
    if found.credential_provider is None:
        _check_keys(found)
    endpoint = (
        found.config.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    )
    if "endpoint" in found.config and os.environ.get("AWS_ENDPOINT_URL_S3"):
        found.config["aws_endpoint_url_s3"] = found.config["endpoint"]  # which else wins over what is given
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT")
    _allow_http(found, endpoint)
    bundle = os.environ.get("AWS_CA_BUNDLE")
    if bundle and not (isinstance(endpoint, str) and endpoint.startswith("http://")):
        _trust(found, bundle)
    return found


def _trust(found: StoreOptions, path: str) -> None:
    """Trust the certificates in a file too."""
    try:
        with open(path, encoding="utf-8") as file:
            found.client.setdefault("root_certificate", file.read())
    except (OSError, ValueError):
        raise NotForObstore(f"the certificates in {path} cannot be read") from None


def _of_boto_client(found: StoreOptions, kwargs: Given) -> None:
    """s3fs' ``client_kwargs``, which are those of boto's clients."""
    for name, value in kwargs.items():
        plain = name.removeprefix("aws_")
        if plain in _S3 and _S3[plain] != "skip_signature":
            found.config.setdefault(_S3[plain], value)
        elif name == "verify" and isinstance(value, bool):
            found.client.setdefault("allow_invalid_certificates", not value)
        elif name == "verify" and isinstance(value, str):
            _trust(found, value)
        elif name != "use_ssl" or value is not True:
            raise NotForObstore(f"client_kwargs has {name!r}")


def _s3_credentials(found: StoreOptions) -> None:
    """Credentials as boto finds them: those that are given, the environment's, a profile's, the machine's."""
    config, named = found.config, found.config.pop("profile", None)
    if isinstance(config.get("skip_signature"), bool) and not config["skip_signature"]:
        del config["skip_signature"]
    if config.get("skip_signature"):
        _profile(found, named, keys=False)
        return
    given = [name in config for name in ("access_key_id", "secret_access_key")]
    if any(given):
        if not all(given):
            raise NotForObstore("one half of a key")
        _without_another_token(found)
        _profile(found, None, keys=False)
        return
    needs_none = found.credential_provider is not None or (named is None and aws_profiles.has_keys())
    if not needs_none and aws_profiles.needs_boto_for_a_role():
        raise NotForObstore("AWS_CONTAINER_CREDENTIALS_FULL_URI without the file of a token")
    _profile(found, named, keys=not needs_none)


def _check_keys(found: StoreOptions) -> None:
    """Leave keys that cannot stand in a header, such as those with a line end behind them, to fsspec: obstore's threads
    would end on them."""
    names = ("access_key_id", "secret_access_key", "session_token")
    values = [found.config.get(name) or os.environ.get(f"AWS_{name.upper()}") for name in names]
    if not all(
        value is None or (isinstance(value, str) and value.isascii() and value.isprintable()) for value in values
    ):
        raise NotForObstore("a key has characters that are not allowed in a header")


def _without_another_token(found: StoreOptions) -> None:
    """Keep the session token of the environment, which belongs to other keys, away from these."""
    _check_keys(found)
    if "session_token" in found.config or not (os.environ.get("AWS_SESSION_TOKEN") or os.environ.get("AWS_TOKEN")):
        return
    keys = {
        "access_key_id": found.config.pop("access_key_id"),
        "secret_access_key": found.config.pop("secret_access_key"),
    }
    found.credential_provider = lambda: {**keys, "token": None, "expires_at": None}


def _profile(found: StoreOptions, named: str | None, keys: bool) -> None:
    """Region and endpoint of a profile, and with ``keys`` its keys."""
    if keys and named is None and aws_profiles.has_role():
        keys = False
    settings = aws_profiles.profile(named, keys)
    if settings is None:
        raise NotForObstore("a profile that boto has to read")
    environ = os.environ
    if not (environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")):
        found.config.setdefault("region", settings.get("region"))
    if not (environ.get("AWS_ENDPOINT_URL") or environ.get("AWS_ENDPOINT_URL_S3")) and settings.get("endpoint_url"):
        found.config.setdefault("endpoint", settings["endpoint_url"])
    if keys:
        for name in ("access_key_id", "secret_access_key", "session_token"):
            found.set(name, settings.get(f"aws_{name}"))
        if "access_key_id" in found.config:
            _without_another_token(found)
    if found.config.get("region") is None:
        found.config.pop("region", None)


# ---- Google Cloud Storage ------------------------------------------------------------------------------------------

_GCLOUD = "~/.config/gcloud/application_default_credentials.json"
_KINDS = ("service_account", "authorized_user")
"""Kinds of Google's credentials that obstore knows."""


def for_gcs(given: Given) -> StoreOptions:
    """Raises :class:`NotForObstore`."""
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        raise NotForObstore("the environment has STORAGE_EMULATOR_HOST")
    found, others = _sorted(given, _GCS, ("google_",))
    token = others.pop("token", None)
    if token == "anon":
        found.config["skip_signature"] = True
    elif isinstance(token, str) and token.endswith(".json"):
        found.config["application_credentials"] = _known(token)
    elif isinstance(token, Mapping) and token.get("type") == "service_account":
        found.config["service_account_key"] = json.dumps(dict(token))
    elif token not in (None, "google_default"):
        raise NotForObstore("a token of this kind")
    found.config |= others
    names = ("skip_signature", "application_credentials", "service_account", "service_account_key", "bearer_token")
    if not any(found.config.get(name) for name in names):
        _google_default()
    _allow_http(found, found.config.get("base_url"))
    return found


def _google_default() -> None:
    """Check that obstore finds the credentials of the environment. Without any, gcsfs knows more places."""
    environ = os.environ
    if any(environ.get(f"GOOGLE_{name}") for name in ("SERVICE_ACCOUNT", "SERVICE_ACCOUNT_KEY", "BEARER_TOKEN")):
        return
    _known(environ.get("GOOGLE_APPLICATION_CREDENTIALS") or _GCLOUD)


def _known(path: str) -> str:
    """The path of a file of credentials that obstore can read."""
    path = os.path.expanduser(path)
    try:
        with open(path, encoding="utf-8") as file:
            kind = json.load(file).get("type")
    except (OSError, ValueError, AttributeError):
        kind = None
    if kind not in _KINDS:
        raise NotForObstore("Google's credentials are of a kind that obstore does not read")
    return path


# ---- Azure ---------------------------------------------------------------------------------------------------------


def for_azure(given: Given, account: str | None = None) -> StoreOptions:
    """``account``: of the URL. Raises :class:`NotForObstore`."""
    found, others = _sorted(given, _AZURE, ("azure_storage_", "azure_"))
    text = others.pop("connection_string", None)
    environ = os.environ
    if account is not None:
        found.config.setdefault("account_name", account)
    if text is None and "account_key" not in found.config:
        text = _of_account(environ.get("AZURE_STORAGE_CONNECTION_STRING"), found.config.get("account_name"))
    if text:
        _connected(found, text)
    if others.pop("anon", None) is True:
        found.config.setdefault("skip_signature", True)
    if others.pop("account_host", None) is not None:
        raise NotForObstore("account_host")
    found.config |= others
    config = found.config
    named = config.get("account_name") or environ.get("AZURE_STORAGE_ACCOUNT_NAME") or config.get("use_emulator")
    allowed = any(config.get(name) for name in ("account_key", "sas_key", "token", "skip_signature", "use_emulator"))
    allowed = allowed or all(config.get(name) for name in ("client_id", "client_secret", "tenant_id"))
    allowed = allowed or any(environ.get(f"AZURE_STORAGE_{name}") for name in ("ACCOUNT_KEY", "SAS_KEY", "SAS_TOKEN"))
    if not (named and allowed):
        raise NotForObstore("the account, or its key, is not known")
    _allow_http(found, config.get("endpoint"))
    if config.get("use_emulator"):
        found.client.setdefault("allow_http", True)
    return found


def _of_account(text: str | None, account: str | None) -> str | None:
    """The connection string, unless it is that of another account than the one that is asked for."""
    return text if text and (account is None or f"AccountName={account}" in text.split(";")) else None


_PARTS: dict[str, Callable[[StoreOptions, str], None]] = {
    "AccountName": lambda found, value: found.set("account_name", value),
    "AccountKey": lambda found, value: found.set("account_key", value),
    "SharedAccessSignature": lambda found, value: found.set("sas_key", value),
    "BlobEndpoint": lambda found, value: found.set("endpoint", value.rstrip("/")),
}
"""Parts of a connection string."""


def _connected(found: StoreOptions, text: str) -> None:
    for part in filter(None, text.split(";")):
        name, _, value = part.partition("=")
        if name in _PARTS:
            _PARTS[name](found, value)
        elif (name, value) not in (("DefaultEndpointsProtocol", "https"), ("EndpointSuffix", "core.windows.net")):
            raise NotForObstore(f"the connection string has {name}")
