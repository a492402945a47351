"""The session's settings for object stores (``spark.hadoop.fs.…``) as storage options of fsspec.

A Spark session that reads ``s3a://``, ``abfss://`` or ``gs://`` has the keys and places in settings of Hadoop. pyparq's
own requests go through fsspec, which has other names for the same. Names on the left: Hadoop's S3A, ABFS and the GCS
connector; on the right: s3fs, adlfs and gcsfs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from pyparq.spark.session import check_session

Setting = Callable[[str], str | None]
"""The value of a Hadoop setting by its name, ``None`` where the session has none."""


def storage_options(spark: Any, given: Any, *sources: Any) -> Any:
    """``given``, or else what the session's settings say for the store of ``sources`` (URLs, or lists of them).

    Only settings that Spark's public interface shows are seen: those of the session and of ``spark.hadoop.…``, not
    what a program has put into Hadoop's own configuration.
    """
    urls = [url for source in sources for url in _urls(source)]
    if given is not None or not urls:
        return given
    check_session(spark)
    return translated(dict(spark.conf.getAll), urls)


def _urls(source: Any) -> list[str]:
    if isinstance(source, (list, tuple)):
        return [url for item in source for url in _urls(item)]
    return [source] if isinstance(source, str) and "://" in source else []


def translated(settings: Mapping[str, str], urls: list[str]) -> dict[str, Any] | None:
    """Storage options for the store of ``urls``; ``None`` where the settings say nothing of it, or where the URLs are
    of several stores."""
    places = {(_STORES.get(urlsplit(url).scheme), urlsplit(url).netloc.rpartition("@")[2]) for url in urls}
    if len({store for store, _ in places}) != 1:
        return None
    store, place = next(iter(places))
    if store is None:
        return None

    def setting(name: str) -> str | None:
        # What a session sets by itself counts more than what it was started with.
        return settings.get(name) or settings.get(f"spark.hadoop.{name}") or None

    return store(setting, place if len(places) == 1 else "") or None


# ---- S3 ------------------------------------------------------------------------------------------------------------


def _s3(setting: Setting, bucket: str) -> dict[str, Any]:
    """Options of s3fs. Settings of the bucket (``fs.s3a.bucket.NAME.…``) come first."""

    def own(name: str) -> str | None:
        return (setting(f"fs.s3a.bucket.{bucket}.{name}") if bucket else None) or setting(f"fs.s3a.{name}")

    found: dict[str, Any] = {}
    for name, hadoop in (("key", "access.key"), ("secret", "secret.key"), ("token", "session.token")):
        if value := own(hadoop):
            found[name] = value
    if endpoint := own("endpoint"):
        scheme = "http" if own("connection.ssl.enabled") == "false" else "https"
        found["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region := own("endpoint.region"):
        found["client_kwargs"] = {"region_name": region}
    if own("path.style.access") == "true":
        found["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    if "AnonymousAWSCredentialsProvider" in (own("aws.credentials.provider") or ""):
        found["anon"] = True
    if own("requester.pays.enabled") == "true":
        found["requester_pays"] = True
    return found


# ---- Azure ---------------------------------------------------------------------------------------------------------


def _azure(setting: Setting, host: str) -> dict[str, Any]:
    """Options of adlfs. ``host``: ``account.dfs.core.windows.net``. Settings of the account come first."""
    account = host.partition(".")[0]
    if not account:
        return {}

    def own(name: str) -> str | None:
        other = host.replace(".dfs.", ".blob.")
        return setting(f"{name}.{host}") or setting(f"{name}.{other}") or setting(name)

    found: dict[str, Any] = {}
    if key := own("fs.azure.account.key"):
        found["account_key"] = key
    if token := own("fs.azure.sas.fixed.token"):
        found["sas_token"] = token
    if own("fs.azure.account.auth.type") == "OAuth":
        found |= _azure_oauth(own)
    return {"account_name": account, **found} if found else {}


def _azure_oauth(own: Setting) -> dict[str, Any]:
    """A service principal; otherwise (managed identities) what the libraries of Azure find by themselves."""
    client, secret = own("fs.azure.account.oauth2.client.id"), own("fs.azure.account.oauth2.client.secret")
    tenant = re.search("//[^/]+/([^/]+)/oauth2", own("fs.azure.account.oauth2.client.endpoint") or "")
    if client and secret and tenant:
        return {"client_id": client, "client_secret": secret, "tenant_id": tenant[1]}
    return {"anon": False}


# ---- Google --------------------------------------------------------------------------------------------------------


def _google(setting: Setting, bucket: str) -> dict[str, Any]:
    """Options of gcsfs."""
    found: dict[str, Any] = {}
    for name in ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile"):
        if keyfile := setting(name):
            found["token"] = keyfile
            break
    if setting("fs.gs.auth.type") == "UNAUTHENTICATED" or setting("google.cloud.auth.null.enable") == "true":
        found["token"] = "anon"
    if project := setting("fs.gs.project.id"):
        found["project"] = project
    if endpoint := setting("fs.gs.storage.root.url"):
        found["endpoint_url"] = endpoint.rstrip("/")
    return found


_STORES: dict[str, Callable[[Setting, str], dict[str, Any]]] = {
    "s3": _s3, "s3a": _s3, "s3n": _s3, "abfs": _azure, "abfss": _azure, "gs": _google, "gcs": _google,
}  # fmt: skip
