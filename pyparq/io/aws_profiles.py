"""What the environment and the files in ``~/.aws`` say about S3, as far as obstore does not find it by itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_TAKEN = {*_KEYS, "region", "endpoint_url", "output", "cli_pager", "retry_mode", "max_attempts", "defaults_mode"}
"""Settings of a profile that are understood here, or that mean nothing for requests of an object."""
_OF_CREDENTIALS = frozenset({
    "credential_process", "credential_source", "duration_seconds", "external_id", "login_session", "mfa_serial",
    "role_arn", "role_session_name", "source_profile", "sso_account_id", "sso_region", "sso_registration_scopes",
    "sso_role_name", "sso_session", "sso_start_url", "web_identity_token_file",
})  # fmt: skip
"""Settings that say how to get keys."""
_OTHERS = (
    "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_EC2_METADATA_DISABLED",
)  # fmt: skip
"""Settings of the environment that boto obeys and obstore does not know."""
_ROLES = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
"""Where the environment says how to get credentials, in ways that obstore knows."""


def needs_boto() -> str | None:
    """The setting of the environment that only boto obeys; ``None`` if there is none."""
    return next((name for name in _OTHERS if os.environ.get(name)), None)


def has_keys() -> bool:
    """Whether the environment has keys, or says how to get them."""
    return bool(os.environ.get("AWS_ACCESS_KEY_ID") and os.environ.get("AWS_SECRET_ACCESS_KEY"))


def has_role() -> bool:
    return any(os.environ.get(name) for name in _ROLES) and not _named()


def needs_boto_for_a_role() -> bool:
    """Whether the environment gives the address of credentials without the file of a token, which obstore asks for."""
    environ = os.environ
    has_others = any(environ.get(name) for name in (*_ROLES[:2], "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
    return bool(environ.get(_ROLES[2])) and not has_others


def _named() -> str | None:
    return os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")


def profile(name: str | None, keys: bool = True) -> Mapping[str, str] | None:
    """The settings of a profile, by default the one that the environment names. Empty where there is none and none is
    named; ``None`` where only boto can use it: roles, single sign-on, programs, or settings that are not known here.

    ``keys``: whether it has to give keys. Without, it does not matter how it would get them, nor that it is missing.
    """
    wanted = name or _named()
    sections = [_section(path, wanted or "default", prefix) for path, prefix in _files()]
    found: dict[str, str] = {}
    for section in sections:
        others = _KEYS if _KEYS[0] in found else ()  # those of one file belong together
        found = {name: value for name, value in (section or {}).items() if name not in others} | found
    if all(section is None for section in sections):
        return None if wanted and keys else {}
    unknown = {name for name in found if not name.startswith("cli_")} - _TAKEN
    return None if unknown - (set() if keys else _OF_CREDENTIALS) else found


def files() -> list[str]:
    """The files that have profiles, if they exist."""
    return [path for path, _ in _files() if os.path.exists(path)]


def _files() -> list[tuple[str, str]]:
    """With what stands in front of the names of profiles. The first one decides."""
    shared = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    config = os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config"
    return [(os.path.expanduser(shared), ""), (os.path.expanduser(config), "profile ")]


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
