"""How a table that another library has opened reaches its store: its own settings, as ``storage_options``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyparq.io.table_formats import DELTA, format_of

_ICEBERG = {
    "s3.endpoint": "endpoint_url", "s3.access-key-id": "key", "s3.secret-access-key": "secret",
    "s3.session-token": "token", "s3.anonymous": "anon", "adls.account-name": "account_name",
    "adls.account-key": "account_key", "adls.sas-token": "sas_token", "adls.connection-string": "connection_string",
    "adls.tenant-id": "tenant_id", "adls.client-id": "client_id", "adls.client-secret": "client_secret",
    "gcs.project-id": "project", "gcs.oauth2.token": "token",
}  # fmt: skip
"""Properties of Iceberg's FileIO, and the same options of fsspec's file systems."""
_ONLY = {"s3": "s3.", "s3a": "s3.", "s3n": "s3.", "gs": "gcs.", "abfs": "adls.", "abfss": "adls.", "wasbs": "adls."}
"""Properties that mean the store of a URL."""


def store_options_of(table: Any) -> Mapping[str, Any] | None:
    """The settings that the table's own library uses. ``None`` where it has none: then the environment decides."""
    if format_of(table) == DELTA:
        found = getattr(table, "_storage_options", None)
        return dict(found) if found else None
    is_scan = hasattr(table, "plan_files")
    return _of_iceberg(str(table.table_metadata.location if is_scan else table.location()), table.io)


def _of_iceberg(location: str, io: Any) -> Mapping[str, Any] | None:
    prefix = _ONLY.get(location.partition("://")[0])
    if prefix is None:
        return None
    given = {name: value for name, value in io.properties.items() if name.startswith(prefix)}
    found: dict[str, Any] = {_ICEBERG[name]: value for name, value in given.items() if name in _ICEBERG}
    if "anon" in found:
        found["anon"] = str(found["anon"]).lower() == "true"
    if region := given.get("s3.region"):
        found["client_kwargs"] = {"region_name": region}
    return found or None
