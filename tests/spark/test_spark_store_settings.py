"""Hadoop's settings for stores, as options of fsspec's file systems.

Expectations: the documentation of Hadoop's S3A and ABFS and of Google's connector for the names on one side, of s3fs,
adlfs and gcsfs for those on the other.
"""

from __future__ import annotations

from typing import Any

import pytest

import pyparq
from pyparq.errors import UnsupportedError
from pyparq.spark.session import absolute, translated

ACCOUNT = "lake.dfs.core.windows.net"
LOGIN = "https://login.microsoftonline.com/some-tenant/oauth2/token"

CASES: dict[str, tuple[dict[str, str], list[str], dict[str, Any] | None]] = {
    "keys": (
        {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s", "fs.s3a.session.token": "t"}, ["s3a://b/x", "s3://b/y"],
        {"key": "k", "secret": "s", "token": "t"},
    ),
    "MinIO": (
        {"fs.s3a.endpoint": "minio:9000", "fs.s3a.path.style.access": "true", "fs.s3a.connection.ssl.enabled": "false"},
        ["s3a://b"],
        {"endpoint_url": "http://minio:9000", "config_kwargs": {"s3": {"addressing_style": "path"}}},
    ),
    "an endpoint with TLS": ({"fs.s3a.endpoint": "s3.eu"}, ["s3a://b"], {"endpoint_url": "https://s3.eu"}),
    "an endpoint as a URL": ({"fs.s3a.endpoint": "http://h:1"}, ["s3a://b"], {"endpoint_url": "http://h:1"}),
    "a region": ({"fs.s3a.endpoint.region": "eu-1"}, ["s3a://b"], {"client_kwargs": {"region_name": "eu-1"}}),
    "without credentials": (
        {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}, ["s3a://b"],
        {"anon": True},
    ),
    "requester pays": ({"fs.s3a.requester.pays.enabled": "true"}, ["s3://b"], {"requester_pays": True}),
    "a bucket's own": (
        {"fs.s3a.access.key": "k", "fs.s3a.bucket.b.access.key": "own", "fs.s3a.bucket.c.secret.key": "c"}, ["s3a://b"],
        {"key": "own"},
    ),
    "two buckets": (
        {"fs.s3a.access.key": "k", "fs.s3a.bucket.b.access.key": "own"}, ["s3a://b", "s3a://c"], {"key": "k"},
    ),
    "nothing that is known": ({"fs.s3a.impl": "x", "spark.app.name": "y"}, ["s3a://b"], None),
    "two stores": ({"fs.s3a.access.key": "k"}, ["s3a://b", "gs://b"], None),
    "another store": ({"fs.s3a.access.key": "k"}, ["memory://b"], None),
    "an account key": (
        {f"fs.azure.account.key.{ACCOUNT}": "k"}, [f"abfss://c@{ACCOUNT}/x", f"abfss://d@{ACCOUNT}"],
        {"account_name": "lake", "account_key": "k"},
    ),
    "an account key of blobs": (
        {"fs.azure.account.key.lake.blob.core.windows.net": "k"}, [f"abfss://c@{ACCOUNT}/x"],
        {"account_name": "lake", "account_key": "k"},
    ),
    "another account's key": ({"fs.azure.account.key.o.dfs.core.windows.net": "k"}, [f"abfss://c@{ACCOUNT}/x"], None),
    "a token": (
        {f"fs.azure.sas.fixed.token.{ACCOUNT}": "sv=1"}, [f"abfss://c@{ACCOUNT}/x"],
        {"account_name": "lake", "sas_token": "sv=1"},
    ),
    "a service principal": (
        {
            "fs.azure.account.auth.type": "OAuth", f"fs.azure.account.oauth2.client.id.{ACCOUNT}": "i",
            "fs.azure.account.oauth2.client.secret": "s", "fs.azure.account.oauth2.client.endpoint": LOGIN,
        },
        [f"abfss://c@{ACCOUNT}/x"],
        {"account_name": "lake", "client_id": "i", "client_secret": "s", "tenant_id": "some-tenant"},
    ),
    "a managed identity": (
        {"fs.azure.account.auth.type": "OAuth"}, [f"abfss://c@{ACCOUNT}/x"], {"account_name": "lake", "anon": False},
    ),
    "a key file": (
        {"fs.gs.auth.service.account.json.keyfile": "/k.json", "fs.gs.project.id": "p"}, ["gs://b/x"],
        {"token": "/k.json", "project": "p"},
    ),
    "an old name of a key file": (
        {"google.cloud.auth.service.account.json.keyfile": "/k.json"}, ["gs://b"], {"token": "/k.json"},
    ),
    "Google without credentials": ({"fs.gs.auth.type": "UNAUTHENTICATED"}, ["gs://b"], {"token": "anon"}),
    "a server of one's own": (
        {"fs.gs.storage.root.url": "http://localhost:4443/"}, ["gs://b"], {"endpoint_url": "http://localhost:4443"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("prefix", ["spark.hadoop.", ""])
def test_settings_are_translated(name: str, prefix: str) -> None:
    settings, urls, expected = CASES[name]
    assert translated({prefix + key: value for key, value in settings.items()}, urls) == expected


def test_what_the_session_sets_itself_comes_first() -> None:
    settings = {"spark.hadoop.fs.s3a.access.key": "started with", "fs.s3a.access.key": "set"}
    assert translated(settings, ["s3a://b"]) == {"key": "set"}


def test_paths_as_hadoop_writes_them() -> None:
    assert absolute(["file:/a", "dbfs:/b/c", "s3a://d", "/e"], far=True) == ["/a", "/dbfs/b/c", "s3://d", "/e"]


def test_a_store_whose_package_is_missing_is_named() -> None:
    import fsspec

    if "abfss" in fsspec.available_protocols():
        pytest.skip("adlfs is there")
    with pytest.raises(UnsupportedError, match="pip install adlfs"):
        pyparq.dataset("abfss://c@lake.dfs.core.windows.net/t")
