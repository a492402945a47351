"""Storage options of a URL, in the spellings of pandas and fsspec, of polars, and of obstore.

Credentials, endpoint, region and retries are understood in all of them, and handed to obstore or to fsspec under the
name that it has for them. With any other option, and with credentials that obstore cannot find, fsspec opens the URL:
:class:`NotForObstore`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.url import is_chain

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


class _Spellings:
    """The names that one provider's options have: obstore's, that of fsspec's file system, and others."""

    def __init__(self, prefixes: tuple[str, ...], *options: str) -> None:
        """``prefixes``: that may stand before a name. ``options``: obstore's name, fsspec's name and the others."""
        self._prefixes = prefixes
        self._names = {name: (names[0], names[1]) for names in map(str.split, options) for name in names}

    def find(self, name: str) -> tuple[str, str] | None:
        """The names of obstore and of fsspec for an option; ``None`` where it is no common one."""
        return self._names.get(self.plain(name))

    def plain(self, name: str) -> str:
        plain = name.lower()
        for prefix in self._prefixes:
            plain = plain.removeprefix(prefix)
        return plain


_S3 = _Spellings(
    ("aws_",),
    "access_key_id key username access_key", "secret_access_key secret password secret_key", "session_token token",
    "endpoint endpoint_url", "region region_name default_region", "skip_signature anon", "request_payer requester_pays",
)  # fmt: skip
_GCS = _Spellings(
    ("google_",),
    "service_account token service_account_path", "application_credentials token", "service_account_key token",
    "bearer_token token", "base_url endpoint_url", "skip_signature skip_signature",
)  # fmt: skip
_AZURE = _Spellings(
    ("azure_storage_", "azure_"),
    "account_name account_name", "account_key account_key access_key", "sas_key sas_token", "client_id client_id",
    "client_secret client_secret", "tenant_id tenant_id", "token bearer_token", "endpoint endpoint",
    "skip_signature anon", "use_emulator use_emulator", "connection_string connection_string",
)  # fmt: skip
_CLIENT = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_headers", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "read_timeout", "root_certificate", "timeout",
    "user_agent",
})  # fmt: skip
"""Options of obstore's client, which may stand among the others."""
_OF_CACHES = ("skip_instance_cache", "use_listings_cache", "project")
"""Options of fsspec's file systems that mean nothing where nothing is kept, or that only writes of buckets need."""
_OF_OBSTORE = (
    "allow_http", "virtual_hosted_style_request", "retry_config", "unsigned_payload", "conditional_put",
    "client_options",
)  # fmt: skip
"""What obstore has to be told, and the others find out."""
_OF_S3FS = frozenset({
    "anon", "endpoint_url", "key", "secret", "token", "use_ssl", "client_kwargs", "requester_pays", "config_kwargs",
    "default_block_size", "default_fill_cache", "default_cache_type", "version_aware", "s3_additional_kwargs",
    "session", "username", "password", "cache_regions", "asynchronous", "loop", "max_concurrency", "fixed_upload_size",
    "local_expiry_check", "profile", "skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths",
    "batch_size",
})  # fmt: skip


# ---- for fsspec ----------------------------------------------------------------------------------------------------


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


def for_fsspec(url: str, given: Given) -> dict[str, Any]:
    """The options for the file system of ``url``. Names that it knows itself stay as they are.

    Raises :class:`OptionError` for one that nobody knows, as far as that can be told.
    """
    protocol = url.partition("://")[0]
    spellings = {"s3": _S3, "s3a": _S3, "gs": _GCS, "gcs": _GCS, "az": _AZURE, "abfs": _AZURE, "abfss": _AZURE}
    if not given or is_chain(url) or protocol not in spellings:
        return dict(given)
    names, found = spellings[protocol], dict[str, Any]()
    for name, value in given.items():
        both = names.find(name)
        if names is _S3 and name in _OF_S3FS:
            found[name] = value
        elif both is not None:
            found[both[1]] = value
        elif names.plain(name) not in _OF_OBSTORE:
            if names is _S3:
                raise OptionError(f"storage_options has {name!r}, which neither s3fs nor obstore knows for s3://")
            found[name] = value
    if "region_name" in found:
        found["client_kwargs"] = {"region_name": found.pop("region_name")} | dict(found.get("client_kwargs") or {})
    if names is _GCS and found.pop("skip_signature", False):
        found["token"] = "anon"
    return found


# ---- for obstore ---------------------------------------------------------------------------------------------------


def _sorted(given: Given, spellings: _Spellings) -> tuple[StoreOptions, dict[str, Any]]:
    """The common options as obstore has them, and the others."""
    found, others = StoreOptions(), {}
    for name, value in given.items():
        both, plain = spellings.find(name), spellings.plain(name)
        if name == "token" and spellings is not _S3:  # of fsspec's: it has several meanings
            others[name] = value
        elif both is not None:
            found.config |= {} if value is None or value == "" else {both[0]: value}
        elif plain in _CLIENT:
            if plain == "root_certificate" and "-----BEGIN" not in value:  # a path, which obstore does not take
                value = Path(value).read_text()
            found.client[plain] = value
        elif name == "client_options":
            found.client |= dict(value or {})
        elif name == "retry_config":
            found.retry = value
        elif name == "credential_provider":
            found.credential_provider = value
        elif name not in _OF_CACHES and value is not None:
            others[name] = value
    return found, others


def _allow_http(found: StoreOptions, url: Any) -> None:
    if isinstance(url, str) and url.startswith("http://"):
        found.client.setdefault("allow_http", True)


# ---- S3 ----

_KEYS = ("access_key_id", "secret_access_key", "session_token")
_OF_BOTO = ("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
"""Settings of the environment that boto obeys and obstore does not know."""
_ROLES = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
"""Where the environment says how to get credentials, in ways that obstore knows."""
_OF_PROFILES = {
    *(f"aws_{name}" for name in _KEYS), "region", "endpoint_url", "output", "cli_pager", "retry_mode", "max_attempts",
    "defaults_mode",
}  # fmt: skip
"""Settings of a profile that are understood here, or that mean nothing for requests of an object."""
_OF_CREDENTIALS = frozenset({
    "credential_process", "credential_source", "duration_seconds", "external_id", "login_session", "mfa_serial",
    "role_arn", "role_session_name", "source_profile", "sso_account_id", "sso_region", "sso_registration_scopes",
    "sso_role_name", "sso_session", "sso_start_url", "web_identity_token_file",
})  # fmt: skip
"""Settings of a profile that say how to get keys."""


def for_s3(given: Given) -> StoreOptions:
    """Raises :class:`NotForObstore`."""
    environ = os.environ
    setting = next((name for name in _OF_BOTO if environ.get(name)), None)
    if setting is not None:
        raise NotForObstore(f"the environment has {setting}")
    found, others = _sorted(given, _S3)
    for name, value in dict(others.pop("client_kwargs", None) or {}).items():
        if name not in ("endpoint_url", "region_name"):
            raise NotForObstore(f"client_kwargs has {name!r}")
        found.config.setdefault("region" if name == "region_name" else "endpoint", value)
    found.config |= others  # a name that obstore does not know is refused by it
    _add_s3_credentials(found)
    if "endpoint" in found.config and environ.get("AWS_ENDPOINT_URL_S3"):
        found.config["aws_endpoint_url_s3"] = found.config["endpoint"]  # which else wins over what is given
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    endpoint = found.config.get("endpoint") or next(filter(None, map(environ.get, names)), None)
    _allow_http(found, endpoint)
    if environ.get("AWS_CA_BUNDLE") and not str(endpoint).startswith("http://"):
        raise NotForObstore("the environment has AWS_CA_BUNDLE")
    return found


def _add_s3_credentials(found: StoreOptions) -> None:
    """Credentials as boto finds them: those that are given, the environment's, a profile's, the machine's."""
    config, environ = found.config, os.environ
    profile = config.pop("profile", None)
    if config.get("skip_signature") is False:
        del config["skip_signature"]
    given = sum(name in config for name in _KEYS[:2])
    if given == 1:
        raise NotForObstore("one half of a key")
    if config.get("skip_signature"):
        _use_profile(found, profile, keys=False)
    elif given:
        _check_keys(config.get(name) for name in _KEYS)
        _use_only_these_keys(found)
        _use_profile(found, None, keys=False)
    elif found.credential_provider is not None or (
        profile is None and all(environ.get(f"AWS_{name.upper()}") for name in _KEYS[:2])
    ):
        _use_profile(found, profile, keys=False)
    else:
        others = (*_ROLES[:2], "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if environ.get(_ROLES[2]) and not any(map(environ.get, others)):
            raise NotForObstore(f"{_ROLES[2]} without the file of a token")
        has_role = profile is None and any(map(environ.get, _ROLES)) and not _named_profile()
        _use_profile(found, profile, keys=not has_role)
    if found.credential_provider is None:
        has_keys = any(map(config.get, ("access_key_id", "skip_signature")))
        has_keys = has_keys or any(map(environ.get, ("AWS_ACCESS_KEY_ID", *_ROLES)))
        if environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true" and not has_keys:
            raise NotForObstore("no keys, and the environment has AWS_EC2_METADATA_DISABLED")
        _check_keys(config.get(name) or environ.get(f"AWS_{name.upper()}") for name in _KEYS)


def _check_keys(keys: Iterable[Any]) -> None:
    """Leave keys that cannot stand in a header, such as those with a line end behind them, to fsspec: obstore's threads
    would end on them."""
    if not all(key is None or (isinstance(key, str) and key.isascii() and key.isprintable()) for key in keys):
        raise NotForObstore("a key has characters that are not allowed in a header")


def _use_only_these_keys(found: StoreOptions) -> None:
    """Keep the session token of the environment, which belongs to other keys, away from these."""
    if "session_token" not in found.config and (os.environ.get("AWS_SESSION_TOKEN") or os.environ.get("AWS_TOKEN")):
        keys = {name: found.config.pop(name) for name in _KEYS[:2]}
        found.credential_provider = lambda: {**keys, "token": None, "expires_at": None}


def _use_profile(found: StoreOptions, named: str | None, keys: bool) -> None:
    """Region and endpoint of a profile, and with ``keys`` its keys."""
    settings, environ = _profile(named, keys), os.environ
    if settings.get("region") and not (environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")):
        found.config.setdefault("region", settings["region"])
    if settings.get("endpoint_url") and not (environ.get("AWS_ENDPOINT_URL") or environ.get("AWS_ENDPOINT_URL_S3")):
        found.config.setdefault("endpoint", settings["endpoint_url"])
    if keys:
        found.config |= {name: settings[f"aws_{name}"] for name in _KEYS if settings.get(f"aws_{name}")}
        if "access_key_id" in found.config:
            _check_keys(map(found.config.get, _KEYS))
            _use_only_these_keys(found)


def _named_profile() -> str | None:
    return os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")


def _profile(name: str | None, keys: bool) -> dict[str, str]:
    """The settings of a profile, by default the one that the environment names. Empty where there is none and none is
    named. ``keys``: whether it has to give keys. Without, it does not matter how it would get them, nor that it is
    missing.

    Raises :class:`NotForObstore` where only boto can use it: roles, single sign-on, programs, or settings that are not
    known here.
    """
    wanted = name or _named_profile()
    shared, config = profile_files()
    sections = [_section(shared, wanted or "default", ""), _section(config, wanted or "default", "profile ")]
    found: dict[str, str] = {}
    for section in sections:
        # The first file decides, and the keys of one file belong together.
        others = {f"aws_{key}" for key in _KEYS} if "aws_access_key_id" in found else ()
        found = {name: value for name, value in (section or {}).items() if name not in others} | found
    unknown = {name for name in found if not name.startswith("cli_")} - _OF_PROFILES
    is_missing = bool(wanted) and all(section is None for section in sections)
    if (is_missing and keys) or unknown - (set() if keys else _OF_CREDENTIALS):
        raise NotForObstore("a profile that boto has to read")
    return found


def profile_files() -> tuple[str, str]:
    """The files that have profiles."""
    shared = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    return os.path.expanduser(shared), os.path.expanduser(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config")


def _section(path: str, name: str, prefix: str) -> dict[str, str] | None:
    if not os.path.exists(path):
        return None
    from configparser import Error, RawConfigParser

    parser = RawConfigParser(default_section="no section is the default of others", strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (Error, OSError, ValueError):
        return {"a file that cannot be read": path}
    title: Any = name if name == "default" and parser.has_section(name) else f"{prefix}{name}"
    return dict(parser.items(title)) if parser.has_section(title) else None


# ---- Google Cloud Storage ----

_GCLOUD = "~/.config/gcloud/application_default_credentials.json"
_CREDENTIALS = ("application_credentials", "service_account", "service_account_key", "bearer_token")


def for_gcs(given: Given) -> StoreOptions:
    """Raises :class:`NotForObstore`."""
    environ = os.environ
    if environ.get("STORAGE_EMULATOR_HOST"):
        raise NotForObstore("the environment has STORAGE_EMULATOR_HOST")
    found, others = _sorted(given, _GCS)
    token = others.pop("token", None)
    if token == "anon":
        found.config["skip_signature"] = True
    elif isinstance(token, str) and token.endswith(".json"):
        found.config["application_credentials"] = _readable(token)
    elif isinstance(token, Mapping) and token.get("type") == "service_account":
        found.config["service_account_key"] = json.dumps(dict(token))
    elif token not in (None, "google_default"):
        raise NotForObstore("a token of this kind")
    found.config |= others
    is_given = any(map(found.config.get, ("skip_signature", *_CREDENTIALS)))
    if not is_given and not any(environ.get(f"GOOGLE_{name.upper()}") for name in _CREDENTIALS[1:]):
        _readable(environ.get("GOOGLE_APPLICATION_CREDENTIALS") or _GCLOUD)  # without any, gcsfs knows more places
    _allow_http(found, found.config.get("base_url"))
    return found


def _readable(path: str) -> str:
    """The path of a file of credentials that obstore can read."""
    path = os.path.expanduser(path)
    try:
        with open(path, encoding="utf-8") as file:
            kind = json.load(file).get("type")
    except (OSError, ValueError, AttributeError):
        kind = None
    if kind not in ("service_account", "authorized_user"):
        raise NotForObstore("Google's credentials are of a kind that obstore does not read")
    return path


# ---- Azure ----

_PARTS = {
    "AccountName": "account_name", "AccountKey": "account_key", "SharedAccessSignature": "sas_key",
    "BlobEndpoint": "endpoint",
}  # fmt: skip
"""Parts of a connection string."""


def for_azure(given: Given, account: str | None = None) -> StoreOptions:
    """``account``: of the URL. Raises :class:`NotForObstore`."""
    environ = os.environ
    found, others = _sorted(given, _AZURE)
    config, text = found.config, found.config.pop("connection_string", None)
    if config.get("skip_signature") is False:
        del config["skip_signature"]
    if account is not None:
        config.setdefault("account_name", account)
    if text is None and "account_key" not in config:
        text, account = environ.get("AZURE_STORAGE_CONNECTION_STRING"), config.get("account_name")
        if text and account is not None and f"AccountName={account}" not in text.split(";"):
            text = None  # that of another account than the one that is asked for
    for part in filter(None, (text or "").split(";")):
        name, _, value = part.partition("=")
        if name in _PARTS:
            config[_PARTS[name]] = value.rstrip("/") if name == "BlobEndpoint" else value
        elif (name, value) not in (("DefaultEndpointsProtocol", "https"), ("EndpointSuffix", "core.windows.net")):
            raise NotForObstore(f"the connection string has {name}")
    if others.pop("account_host", None) is not None:
        raise NotForObstore("account_host")
    config |= others
    named = config.get("account_name") or environ.get("AZURE_STORAGE_ACCOUNT_NAME") or config.get("use_emulator")
    allowed = (
        any(map(config.get, ("account_key", "sas_key", "token", "skip_signature", "use_emulator")))
        or all(map(config.get, ("client_id", "client_secret", "tenant_id")))
        or any(environ.get(f"AZURE_STORAGE_{name}") for name in ("ACCOUNT_KEY", "SAS_KEY", "SAS_TOKEN"))
    )
    if not (named and allowed):
        raise NotForObstore("the account, or its key, is not known")
    _allow_http(found, "http://" if config.get("use_emulator") else config.get("endpoint"))
    return found
