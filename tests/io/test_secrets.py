"""Nothing that pyparq says shows a secret: of URLs, of their queries, of storage options, on any road."""

from __future__ import annotations

import io
import logging
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from bad_server import Asked, BadServer, serve
from conftest import require

import pyparq
from pyparq import ParquetFile, col
from pyparq.io import url as urls

require("fsspec")
require("aiohttp")
require("s3fs")
require("obstore")

USER, PASSWORD, QUERY, TOKEN = "SECRETUSER", "SECRET/pass?wo#rd", "SECRETQUERY", "SECRETTOKEN"
SHOWS = re.compile("SECRET|pass\\?wo|wo#rd|wo%23rd")
SIGNED = "&".join(
    f"{name}={QUERY}"
    for name in (
        "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "X-Goog-Signature", "sig", "AWSAccessKeyId",
        "Signature", "token", "se",
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[BadServer]:
    sink = io.BytesIO()
    pyparq.write_table({"id": list(range(5000))}, sink, row_group_size=1000, bloom_filters=["id"])
    with serve(sink.getvalue()) as running:
        yield running


Road = tuple[str, dict[str, Any]]


def roads(base: str) -> dict[str, Road]:
    """URLs with secrets, and the options with them."""
    host = base.removeprefix("http://")
    plain = PASSWORD.translate(dict.fromkeys(map(ord, "/?#")))
    headers = {"headers": {"Authorization": f"Bearer {TOKEN}", "X-Api-Key": TOKEN, "Cookie": f"a={TOKEN}"}}
    s3 = {"endpoint_url": base, "config_kwargs": {"retries": {"max_attempts": 0}}, "skip_instance_cache": True}
    keys = {"key": USER, "secret": TOKEN, "token": TOKEN}
    azure = {"account_name": "some", "account_key": "U0VDUkVUVE9LRU4=" + TOKEN, "sas_token": f"sv=1&sig={QUERY}"}
    return {
        "http": (f"{base}/t.parquet?{SIGNED}", headers),
        "http, user": (f"http://{USER}:{plain}@{host}/t.parquet?{SIGNED}", {}),
        "http, odd password": (f"http://{USER}:{PASSWORD}@{host}/t.parquet", {}),
        "http, IPv6": (f"http://{USER}:{plain}@[::1]:1/t.parquet?{SIGNED}", headers),
        "s3": ("s3://bucket/t.parquet", s3 | keys),
        "s3, obstore": (
            "s3://bucket/t.parquet",
            {"access_key_id": USER, "secret_access_key": TOKEN, "session_token": TOKEN, "endpoint": base,
             "region": "x", "client_options": {"allow_http": True}, "retry_config": {"max_retries": 0}},
        ),
        "s3, user": (f"s3://{USER}:{plain}@bucket/t.parquet", s3),
        "s3, odd password": (f"s3://{USER}:SECRET/pass@bucket/t.parquet", s3 | keys),
        "s3, signed": (f"s3://bucket/t.parquet?{SIGNED}", s3 | keys),
        "az": (f"az://box/t.parquet?sv=1&sig={QUERY}", azure | {"endpoint": base}),
        "abfs": (f"abfs://box@some.dfs.core.windows.net/t.parquet?sig={QUERY}", azure | {"no": 1}),
        "gs": ("gs://bucket/t.parquet", {"token": TOKEN, "no": 1}),
        "chained": (f"simplecache::http://{USER}:{plain}@{host}/t.parquet?{SIGNED}", {"http": headers}),
        "zip": (f"zip://t.parquet::http://{USER}:{plain}@{host}/t.zip?{SIGNED}", {"http": headers}),
        "unknown": (f"nothing://{USER}:{plain}@host/t.parquet?{SIGNED}", {"password": TOKEN}),
        "ftp": (f"ftp://{USER}:{plain}@127.0.0.1:1/t.parquet", {"password": TOKEN}),
    }  # fmt: skip


ROADS = list(roads("http://127.0.0.1:1"))


def reading(url: str, options: dict[str, Any]) -> None:
    with ParquetFile(url, storage_options=options, retry_wait=0.001) as file:
        scan = file.scan(["id"], col("id") < 10)
        plan = scan.plan()
        for shown in (file, scan, scan.explain(), plan, file.metadata, file.schema):
            print(repr(shown), str(shown), getattr(shown, "_repr_html_", str)())
        print(pickle.dumps(plan), scan.to_table().num_rows)


def dataset(url: str, options: dict[str, Any]) -> None:
    found = pyparq.dataset([url, url], storage_options=options, retry_wait=0.001, filename="name")
    scan = found.scan(filters=col("id") < 10)
    for shown in (found, scan, scan.explain(), scan.plan()):
        print(repr(shown), str(shown))
    print(scan.to_table().to_pydict())


def command(*words: str) -> Callable[[str, dict[str, Any]], None]:
    def call(url: str, options: dict[str, Any]) -> None:
        from pyparq.cli import main

        given = [f"--storage={name}={value}" for name, value in options.items() if isinstance(value, str)]
        try:
            main([words[0], *(word.replace("URL", url) for word in words[1:]), *given])
        except SystemExit as ended:
            print(ended.code)

    return call


def folder(url: str) -> str:
    """The same URL, of a folder in the place of the file."""
    return url.replace("/t.parquet", "/lake").replace("t.zip", "lake.zip")


OPERATIONS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "read": reading,
    "dataset": dataset,
    "read_table": lambda url, options: pyparq.read_table(url, storage_options=options, retry_wait=0.001),
    "obstore": lambda url, options: pyparq.read_table(url, storage_options=options, filesystem="obstore"),
    "fsspec": lambda url, options: pyparq.read_table(
        url, storage_options=options, filesystem="fsspec", retry_wait=0.001
    ),
    "write_table": lambda url, options: pyparq.write_table({"id": [1]}, url, storage_options=options),
    "write_dataset": lambda url, options: print(
        pyparq.write_dataset({"id": [1]}, folder(url), storage_options=options)
    ),
    "recover": lambda url, options: pyparq.recover_dataset(folder(url), storage_options=options),
    "index": lambda url, options: print(pyparq.index_dataset(folder(url), ["id"], storage_options=options)),
    "add_indexes": lambda url, options: print(pyparq.add_indexes(url, bloom_filters=["id"], storage_options=options)),
    "edit": lambda url, options: print(pyparq.edit_metadata(url, update={"a": "b"}, storage_options=options)),
    "merge": lambda url, options: print(pyparq.merge([url, url], url + "x", storage_options=options)),
    "rewrite": lambda url, options: print(pyparq.rewrite(url, url + "x", storage_options=options)),
    "verify": lambda url, options: print(pyparq.verify(url, storage_options=options)),
    "map": command("map", "URL", "-o", "-"),
    "schema": command("schema", "URL"),
    "head": command("head", "URL"),
    "check": command("verify", "URL"),
    "convert": command("convert", "URL", "out.txt"),
    "convert to": command("convert", "in.parquet", "URL.txt"),
    "traceback": command("schema", "URL", "--no-such-option"),
}


def told(error: BaseException | None) -> str:
    """All that an error says, with what it was raised from and what was being handled."""
    text = ""
    while error is not None:
        text += f"{error!r} {error} {error.args} {getattr(error, '__notes__', '')}\n"
        cause = error.__cause__
        if cause is not None:
            text += told(cause)
        error = error.__context__
    return text


FEW = ("http", "http, IPv6", "s3, signed", "az", "chained", "unknown")
CASES = [
    pytest.param(road, how, marks=[] if how == "works" and road in FEW else pytest.mark.slow)
    for road in ROADS
    for how in ("works", "503 at first", "403", "closed")
]


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("road", "how"), CASES)
def test_nothing_shows_a_secret(
    road: str, how: str, served: BadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    pyparq.write_table({"id": [1]}, "in.parquet")
    url, options = roads("http://127.0.0.1:1" if how == "closed" else served.url)[road]

    def script(asked: Asked) -> str:
        first.append(1)
        return "503" if how == "503 at first" and len(first) == 1 else "403" if how == "403" else ""

    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logger = logging.getLogger("pyparq")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    logger.addHandler(handler)
    try:
        for name, operation in OPERATIONS.items():
            if how == "closed" and name not in ("read_table", "write_table", "obstore", "recover"):
                continue
            first: list[int] = []
            monkeypatch.setattr(served, "script", script)
            said, error = io.StringIO(), None
            with warnings.catch_warnings(record=True) as warned, redirect_stdout(said), redirect_stderr(said):
                warnings.simplefilter("always")
                try:
                    operation(url, options)
                except Exception as raised:
                    error = raised
            text = said.getvalue() + log.getvalue() + told(error)
            text += "".join(str(one.message) for one in warned if "pyparq" in one.filename or "test_" in one.filename)
            leak = SHOWS.search(text)
            assert leak is None, (name, text[max(leak.start() - 300, 0) : leak.end() + 200])
    finally:
        logger.removeHandler(handler)


URLS = {
    "s3://AKIA:SEC/RET@lake/x.parquet": "s3://lake/x.parquet",
    "s3://AKIA:SECRET@lake/x.parquet": "s3://lake/x.parquet",
    f"s3://lake/x.parquet?{SIGNED}": "s3://lake/x.parquet",
    "s3://lake/x.parquet?versionId=1": "s3://lake/x.parquet?versionId=1",
    "s3://arn:aws:s3:eu-west-1:12:accesspoint/p/a@b": "s3://arn:aws:s3:eu-west-1:12:accesspoint/p/a@b",
    "S3://u:SECRET@lake/x": "S3://lake/x",
    "http://[::1]:9/x.parquet?sig=SECRET": "http://[::1]:9/x.parquet",
    "http://u:SECRET@[::1]/x.parquet": "http://[::1]/x.parquet",
    "http://u:SEC?RET@host/x": "http://host/x",
    "http://u:SEC#RET@host/x": "http://host/x",
    "http://u:SEC/RET@host/x?a=b": "http://host/x",
    "http://u:SEC::RET@host/x": "http://host/x",
    "http://host/x?sig=SEC::RET": "http://host/x",
    "http://host:80/a@b/x?e=1": "http://host:80/a@b/x",
    "zip://a.parquet::http://u:SECRET@[::1]:1/z?sig=SECRET": "zip://a.parquet::http://[::1]:1/z",
    "simplecache::zip://x::s3://K:SE/CRET@b/z": "simplecache::zip://x::s3://b/z",
    "az://box/x?sv=1&sig=SECRET": "az://box/x",
    "hf://datasets/a/b@main/x": "hf://datasets/a/b@main/x",
}


@pytest.mark.parametrize(("url", "shown"), URLS.items())
def test_what_is_shown(url: str, shown: str) -> None:
    assert urls.shown(url) == shown
    assert "SECRET" not in urls.without_secrets(f"cannot reach {url} or '{url}' now", url, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Invalid bucket name "AKIA:SECRET@lk": no', 'Invalid bucket name "***@lk": no'),
        ("headers=<'Authorization': 'Bearer SECRET'>", "headers=<'Authorization': '***'>"),
        ("Authorization: AWS4-HMAC-SHA256 Credential=SECRET/x, Signature=SECRET", "Authorization: ***"),
        ("GET /x?X-Amz-Signature=SECRET&a=1 failed", "GET /x?X-Amz-Signature=***&a=1 failed"),
        ("at 12:30 a@b", "at 12:30 a@b"),
    ],
)
def test_texts_of_other_libraries(text: str, said: str) -> None:
    assert urls.without_secrets(text, "", None) == said
