"""URLs of stores that obstore opens: which of them, and with what.

Making a store costs some milliseconds and its connections, so a process keeps those that it has made.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from pyparq.io import aws_profiles
from pyparq.io.fsspec_options import has_settings
from pyparq.io.object_system import Behind, ObjectSystem
from pyparq.io.object_threads import note_use
from pyparq.io.store_options import NotForObstore, StoreOptions, for_azure, for_gcs, for_s3

_KEPT = 32
"""Stores that are kept."""
_KINDS = {
    "s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az",
}  # fmt: skip
_TAGS = {"s3": "ETag", "gs": "e_tag", "az": "etag"}
"""What fsspec's file systems call the entity tag. On Google Cloud Storage theirs is another one."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENVIRONMENT = ("AWS_", "GOOGLE_", "AZURE_", "STORAGE_EMULATOR_HOST", "HTTP", "NO_PROXY", "SSL_")
_AMAZON = "s3.amazonaws.com"
_REGION = re.compile(r"[a-z0-9-]+")
_ELSEWHERE = ("cn-", "us-iso", "eu-iso", "eusc-")
"""Regions whose servers are not below amazonaws.com, where obstore looks for all."""
_CLIENT = {"connect_timeout": "10s", "read_timeout": "30s", "timeout": "10min"}
"""Seconds without a byte count, not those of a whole answer: a large one may take long."""

_stores: OrderedDict[Any, ObjectSystem] = OrderedDict()
"""A forked child, which cannot use them, keeps them: to free them there may wait for a thread that it does not have."""


class _Parts(NamedTuple):
    """Parts of a URL."""

    kind: str
    start: str
    """The URL as far as the bucket."""
    bucket: str
    account: str | None
    path: str
    """Bucket and key."""


def open_store(url: str, given: Mapping[str, Any], behind: Behind) -> tuple[ObjectSystem, str]:
    """The store of a URL, and the path in it. ``behind``: opens fsspec's file system for the same.

    Raises :class:`NotForObstore` with the reason where obstore cannot do what the URL and the options ask for, or is
    not installed.
    """
    parts = _parts(url)
    if any(has_settings(protocol) for protocol, kind in _KINDS.items() if kind == parts.kind):
        raise NotForObstore("fsspec has settings of its own for this protocol")
    key = None if given.get("skip_instance_cache") else (parts.start, repr(sorted(given.items())), _environment())
    found = None if key is None else _stores.get(key)
    if found is None:
        found = _opened(parts, given, behind)
    if key is not None:
        _stores[key] = found
        while len(_stores) > _KEPT:
            _stores.popitem(last=False)
    return found, parts.path


def _parts(url: str) -> _Parts:
    protocol, _, rest = url.partition("://")
    kind = _KINDS.get(protocol)
    if kind is None or "::" in url:
        raise NotForObstore(f"a URL of {protocol}")
    host, slash, key = rest.partition("/")
    bucket, at, account = host.partition("@")
    if at and kind != "az":
        raise NotForObstore("a user in the URL")
    if not _BUCKET.fullmatch(bucket) or bucket.endswith("--x-s3"):
        raise NotForObstore("no plain name of a bucket")
    return _Parts(
        kind, f"{protocol}://{host}", bucket, account.partition(".")[0] or None, f"{bucket}{slash}{key}".rstrip("/")
    )


def _environment() -> tuple[Any, ...]:
    """What credentials depend on."""
    names = sorted(name for name in os.environ if name.upper().startswith(_ENVIRONMENT))
    stamps = [os.stat(path).st_mtime_ns for path in aws_profiles.files()]
    return (*((name, os.environ[name]) for name in names), *stamps)


def _opened(parts: _Parts, given: Mapping[str, Any], behind: Behind) -> ObjectSystem:
    try:
        import obstore.store as stores
    except ImportError:
        raise NotForObstore("obstore is not installed") from None
    options = _understood(parts, given)
    note_use()
    make = {"s3": stores.S3Store, "gs": stores.GCSStore, "az": stores.AzureStore}[parts.kind]
    own = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
    try:
        reading = _made(make, parts, options, options.retry or {"max_retries": 0})
    except Exception as error:  # options that it does not know
        raise NotForObstore(str(error).partition("\n\n")[0]) from None
    return ObjectSystem(
        reading,
        parts.start,
        parts.bucket,
        tag=_TAGS[parts.kind],
        options=given,
        behind=behind,
        writing=lambda: _writing(make, parts, options, options.retry or own),
    )


def _understood(parts: _Parts, given: Mapping[str, Any]) -> StoreOptions:
    if parts.kind == "s3":
        options = for_s3(given)
        _add_region(options, parts.bucket)
        return options
    return for_gcs(given) if parts.kind == "gs" else for_azure(given, parts.account)


def _writing(make: Any, parts: _Parts, options: StoreOptions, retry: Any) -> Any:
    """A store for changes. Not every relative of S3 knows the request that removes many objects."""
    if parts.kind == "s3":
        one_by_one = replace(options, config={"disable_bulk_delete": True} | options.config)
        with suppress(Exception):  # older versions do not know this option
            return _made(make, parts, one_by_one, retry)
    return _made(make, parts, options, retry)


def _made(make: Any, parts: _Parts, options: StoreOptions, retry: Any) -> Any:
    return make(
        parts.bucket, config=options.config, client_options=_CLIENT | options.client, retry_config=retry,
        credential_provider=options.credential_provider,
    )  # fmt: skip


def _add_region(options: StoreOptions, bucket: str) -> None:
    """boto follows the answers of a wrong region, obstore does not. The environment's is often that of the machine."""
    environ = os.environ
    names = ("ENDPOINT", "ENDPOINT_URL", "ENDPOINT_URL_S3")
    if "endpoint" in options.config or any(environ.get(f"AWS_{name}") for name in names):
        return
    known = options.config.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if known is not None and (not _REGION.fullmatch(str(known)) or str(known).startswith(_ELSEWHERE)):
        raise NotForObstore(f"the region {known}")
    region = region_of(bucket, known) or known
    if region is None:
        raise NotForObstore("the region is not known")
    options.config["region"] = region


@lru_cache(_KEPT)
def region_of(bucket: str, near: str | None = None) -> str | None:
    """The region of a bucket, as S3 tells it to everyone. ``None`` if it does not answer. ``near``: the region whose
    server is asked, which may be the only one that the machine reaches."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    host = _AMAZON if near is None else _AMAZON.replace(".", f".{near}.", 1)
    try:
        with urlopen(Request(f"https://{host}/{bucket}", method="HEAD"), timeout=10 if near is None else 3) as answer:
            headers = answer.headers
    except HTTPError as refused:  # an answer to a request without credentials
        headers = refused.headers
    except (OSError, HTTPException):
        return None
    found: str | None = headers.get("x-amz-bucket-region")
    return found
