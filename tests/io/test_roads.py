"""URLs of stores by obstore and by fsspec: the same values, files and errors; and which of the two is taken."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import ChangedFileError, OptionError, col
from pyparq.errors import UnfinishedWriteWarning, UnsupportedError
from pyparq.io import kept_files, locations
from pyparq.io.file_versions import Stated
from pyparq.io.locations import file_system
from pyparq.io.object_requests import plain_error
from pyparq.io.object_store import ObjectSystem
from pyparq.io.remote_file import RemoteFile
from pyparq.io.remote_sinks import ObjectSink
from pyparq.io.store_options import has_settings

require("obstore")
fsspec: Any = require("fsspec")

AWS = [name for name in os.environ if name.startswith("AWS_")]
NAMES = [
    "a b",
    "a#b",
    "a%20b",
    "a%b",
    "q?x=1",
    "plus+x",
    "tilde~",
    "ü",
    "back\\slash",
    "x=1&y=2",
    "star!'()",
    "[x]",
    "a::b",
]
KEYS = {"key": "some-key", "secret": "some-secret"}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        yield running


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, s3: S3) -> Iterator[None]:
    """No settings of this machine."""
    for name in AWS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    s3.asked.clear()
    yield
    s3.script = lambda method, path: ""
    s3.refuse = lambda method, path: False


@pytest.fixture(params=["obstore", "fsspec"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYPARQ_FILESYSTEM", request.param)
    return str(request.param)


def taken(url: str, options: dict[str, Any] | None = None) -> str:
    fs, _ = file_system(url, "reading", "read from", options)
    return "obstore" if isinstance(fs, ObjectSystem) else "fsspec"


def plain(s3: S3) -> dict[str, Any]:
    return {name: value for name, value in s3.options.items() if name != "skip_instance_cache"}


# ---- the same on both


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_as_they_are(s3: S3, road: str, name: str) -> None:
    url = f"s3://{BUCKET}/{road} names/{name}/{name}.parquet"
    pyparq.write_table({"id": [1, 2]}, url, storage_options=plain(s3))
    assert s3.fs().exists(url), "another program finds it under this name"
    assert pyparq.read_table(url, storage_options=plain(s3))["id"].to_pylist() == [1, 2]
    with pyparq.ParquetFile(url, storage_options=plain(s3)) as file:
        assert str(file.scan().explain()).startswith(f"{url} (by {road})\n")
    if set("?*").isdisjoint(name):
        found = pyparq.dataset(f"s3://{BUCKET}/{road} names/{name}/", storage_options=plain(s3), filename=True).read()
        assert found.to_pydict() == {"id": [1, 2], "filename": [url] * 2}


@pytest.mark.parametrize("key", ["d//e.parquet", "dot/./x.parquet", "up/../x.parquet"])
def test_keys_that_obstore_cannot_name(s3: S3, key: str) -> None:
    fs = s3.fs()
    pyparq.write_table({"id": [1]}, f"s3://{BUCKET}/odd/plain.parquet", storage_options=plain(s3))
    fs.call_s3("put_object", Bucket=BUCKET, Key=f"odd/{key}", Body=fs.cat_file(f"{BUCKET}/odd/plain.parquet"))
    url = f"s3://{BUCKET}/odd/{key}"
    assert taken(url, plain(s3)) == "obstore"
    try:
        assert pyparq.read_table(url, storage_options=plain(s3))["id"].to_pylist() == [1]
        found = pyparq.dataset(f"s3://{BUCKET}/odd/", storage_options=plain(s3))
        assert found.count() == (2 if "//" in key else 1), "folders whose names begin with a dot are hidden"
        pyparq.write_table({"id": [1, 2]}, url, storage_options=plain(s3))
        assert pyparq.read_table(url, storage_options=plain(s3)).num_rows == 2
    finally:
        fs.call_s3("delete_object", Bucket=BUCKET, Key=f"odd/{key}")


def test_datasets(s3: S3, road: str) -> None:
    root, given = f"s3://{BUCKET}/{road}-flights", {"storage_options": plain(s3)}
    rows = {"year": [1, 1, 2, 3], "id": [1, 2, 3, 4]}
    report = pyparq.write_dataset(rows, root, partition_cols=["year"], write_metadata=True, **given)
    assert len(report.files) == 3
    s3.fs().call_s3("put_object", Bucket=BUCKET, Key=f"{road}-flights/year=1/", Body=b"")  # as consoles mark folders
    s3.fs().call_s3("put_object", Bucket=BUCKET, Key=f"{road}-flights/empty/", Body=b"")
    ds = pyparq.dataset(root, **given)
    assert ds.explain().road == road
    assert (ds.count(), sorted(ds.read(["id"]).to_pydict()["id"])) == (4, [1, 2, 3, 4])
    assert ds.read(filters=col("year") == 2).to_pydict() == {"id": [3], "year": [2]}
    for pattern, ids in (("year=*/*.parquet", [1, 2, 3, 4]), ("year={1,3}/*", [1, 2, 4]),
                         ("**/*.parquet", [1, 2, 3, 4]), ("year=[2-3]", [3, 4]), ("y*=1/**", [1, 2])):  # fmt: skip
        assert sorted(pyparq.dataset(f"{root}/{pattern}", **given).read(["id"]).to_pydict()["id"]) == ids, pattern
    pyparq.write_dataset({"year": [2], "id": [9]}, root, partition_cols=["year"], mode="overwrite_partitions", **given)
    assert sorted(pyparq.dataset(root, **given).read(["id"]).to_pydict()["id"]) == [1, 2, 4, 9]
    with pytest.raises(pyparq.TargetExistsError):
        pyparq.write_dataset(rows, root, mode="error", **given)
    pyparq.write_dataset({"year": [5], "id": [5]}, root, mode="overwrite", **given)
    assert pyparq.dataset(root, **given).read(["id"]).to_pydict() == {"id": [5]}
    assert pyparq.recover_dataset(root, **given) == 0


def test_a_catalog_by_one_road_is_used_by_the_other(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    root, given = f"s3://{BUCKET}/catalog", {"storage_options": plain(s3)}
    for k in range(4):
        pyparq.write_table({"id": [k, k + 10]}, f"{root}/{k}.parquet", **given)
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "obstore")
    pyparq.index_dataset(root, ["id"], **given)
    for road in ("fsspec", "obstore"):
        monkeypatch.setenv("PYPARQ_FILESYSTEM", road)
        s3.asked.clear()
        assert pyparq.dataset(root, **given).lookup("id", 12).to_pydict() == {"id": [12]}
        asked = {path.rpartition("/")[2] for method, path, _ in s3.asked if path.endswith(".parquet")}
        assert asked & {f"{k}.parquet" for k in range(4)} == {"2.parquet"}, road
    pyparq.write_table({"id": [12, 12]}, f"{root}/3.parquet", **given)
    assert pyparq.index_dataset(root, **given).files_read == 1
    assert pyparq.dataset(root, **given).lookup("id", 12).num_rows == 3


@pytest.mark.parametrize("roads", [("obstore", "fsspec"), ("fsspec", "obstore")])
def test_a_write_that_one_road_began_is_seen_by_the_other(
    s3: S3, roads: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, given = f"s3://{BUCKET}/cut-{roads[0]}", {"storage_options": plain(s3)}
    pyparq.write_dataset({"id": [1]}, root, **given)
    monkeypatch.setenv("PYPARQ_FILESYSTEM", roads[0])
    removes = lambda method, path: method == "DELETE" or path.endswith("?delete")  # noqa: E731
    s3.refuse = removes
    with pytest.raises(PermissionError):
        pyparq.write_dataset({"id": [2]}, root, mode="overwrite", **given)
    s3.refuse = lambda method, path: False
    monkeypatch.setenv("PYPARQ_FILESYSTEM", roads[1])
    with pytest.warns(UnfinishedWriteWarning):
        assert pyparq.dataset(root, **given).read().to_pydict() == {"id": [2]}
    assert pyparq.recover_dataset(root, **given) == 1
    assert pyparq.dataset(root, **given).read().to_pydict() == {"id": [2]}


def test_errors(s3: S3, road: str) -> None:
    given = {"storage_options": plain(s3)}
    for url in (f"s3://{BUCKET}/nothing.parquet", f"s3://{BUCKET}/nothing/", "s3://no-such-bucket/a.parquet"):
        with pytest.raises(FileNotFoundError) as missing:
            pyparq.dataset(url, **given).read()
        assert missing.value.filename == url.rstrip("/") or missing.value.filename == url
    pyparq.write_table({"id": [1]}, f"s3://{BUCKET}/denied.parquet", **given)
    if road == "obstore":
        s3.script = lambda method, path: "404" if "list-type" in path else ""
        with pytest.raises(OSError, match="answers 404") as unknown:
            pyparq.write_dataset({"id": [1]}, f"s3://{BUCKET}/listed", mode="overwrite", **given)
        assert not isinstance(unknown.value, FileNotFoundError), "an empty folder is told by an empty answer"
        s3.script = lambda method, path: ""
    s3.refuse = lambda method, path: True
    for ask in (
        lambda: pyparq.read_table(f"s3://{BUCKET}/denied.parquet", **given),
        lambda: pyparq.dataset(f"s3://{BUCKET}/denied/", **given),
        lambda: pyparq.write_table({"id": [1]}, f"s3://{BUCKET}/denied.parquet", **given),
    ):
        with pytest.raises(PermissionError) as denied:
            ask()
        assert "denied" in str(denied.value.filename)
        assert "some-secret" not in str(denied.value)


def test_an_answer_after_several_tries_is_no_silence() -> None:
    tried = "in 1s, after 4 retries, max_retries: 4, retry_timeout: 60s  - "
    for text, kind, said in (
        ("Server returned non-2xx status code: 501 Not Implemented: ", OSError, "answers 501"),
        ("HTTP error: error sending request", ConnectionError, "connection failed"),
        ("HTTP error: operation timed out", TimeoutError, "no answer"),
    ):  # fmt: skip
        error = plain_error(Exception(f"Generic S3 error: Error performing PUT http://a/b {tried}{text}"), "s3://a/b")
        assert isinstance(error, kind)
        assert isinstance(error, TimeoutError) is (kind is TimeoutError)
        assert said in str(error)


@pytest.mark.parametrize("status", ["403 Forbidden", "404 Not Found", "500 Internal Server Error"])
def test_a_machine_without_a_role_has_no_missing_objects(status: str) -> None:
    class NotFoundError(FileNotFoundError):
        """As obstore has it."""

    asked = "Error performing GET http://169.254.169.254/latest/meta-data/iam/security-credentials in 1ms"
    error = NotFoundError(f"Object at location a not found: {asked} - Server returned non-2xx status code: {status}: ")
    found = plain_error(error, "s3://a/b")
    assert isinstance(found, PermissionError)
    assert "no credentials" in str(found)
    other = asked.replace("169.254.169.254", "127.0.0.1:9000")
    error = NotFoundError(
        f"Object at location a not found: {other} - Server returned non-2xx status code: 404 Not Found"
    )
    assert isinstance(plain_error(error, "s3://a/latest"), FileNotFoundError)


def test_no_secrets_are_shown(s3: S3) -> None:
    fs, _ = file_system(f"s3://{BUCKET}/a", "reading", "read from", plain(s3))
    assert isinstance(fs, ObjectSystem)
    assert "some-secret" not in f"{fs!r} {fs._opened!r}"


def test_a_file_that_is_replaced(s3: S3, road: str) -> None:
    url, given = f"s3://{BUCKET}/changing.parquet", {"storage_options": plain(s3)}
    pyparq.write_table({"id": list(range(50_000))}, url, compression="none", **given)
    with pyparq.ParquetFile(url, tail_size=1000, **given) as file:
        pyparq.write_table({"id": list(range(1, 50_001))}, url, compression="none", **given)
        with pytest.raises(ChangedFileError):
            file.read()
    ds = pyparq.dataset(f"s3://{BUCKET}/chang*.parquet", **given)
    pyparq.write_table({"id": [1]}, url, **given)
    with pytest.raises(ChangedFileError, match="make the dataset again"):
        ds.read()


def test_requests_are_made_again(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyparq.io.retry.pause_for", lambda seconds: None)
    url, given = f"s3://{BUCKET}/again.parquet", {"storage_options": s3.options}
    pyparq.write_table({"id": [1]}, url, **given)
    answers = ["503", "429", "lost", "503", ""]
    s3.script = lambda method, path: answers.pop(0) if answers else ""
    assert pyparq.read_table(url, **given).num_rows == 1
    s3.script = lambda method, path: "503"
    kept_files.forget_files()
    s3.asked.clear()
    with pytest.raises(OSError, match="503"):
        pyparq.read_table(url, retries=2, **given)
    assert len(s3.asked) == 4, "the end, and the size where the end does not come"


def test_a_large_object_is_uploaded_in_parts(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyparq.io.remote_sinks.IN_MEMORY", 1 << 20)
    monkeypatch.setattr("pyparq.io.object_store.PART", 5 << 20)
    url, given = f"s3://{BUCKET}/large.parquet", {"storage_options": plain(s3)}
    data = os.urandom(11 << 20)
    pyparq.write_table({"data": [data]}, url, compression="none", **given)
    assert sum("uploadId=" in path and method == "PUT" for method, path, _ in s3.asked) == 3
    assert pyparq.read_table(url, **given)["data"].to_pylist() == [data]

    def rows() -> Iterator[dict[str, Any]]:
        yield {"data": [data]}
        raise ValueError("the program fails")

    for fail in (rows(), {"data": [data]}):
        if isinstance(fail, dict):
            s3.script = lambda method, path: "403" if "partNumber=2" in path else ""
        with pytest.raises((ValueError, PermissionError)):
            pyparq.write_table(fail, url, compression="none", row_group_size=1, **given)
        s3.script = lambda method, path: ""
        assert pyparq.read_table(url, **given).num_rows == 1, "the old object stays"
        assert not s3.fs().call_s3("list_multipart_uploads", Bucket=BUCKET).get("Uploads"), "no part is left"
    # A key that may write need not be allowed to look.
    s3.script = lambda method, path: "403" if method == "HEAD" else ""
    pyparq.write_table({"data": [data, b""]}, url, compression="none", **given)
    s3.script = lambda method, path: ""
    assert pyparq.read_table(url, **given)["data"].to_pylist() == [data, b""]


@pytest.mark.parametrize("then", ["", "no object", "the old object"])
def test_the_answer_to_the_end_of_an_upload_is_lost(s3: S3, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """The store knows no such upload when it is asked again. The object tells whether it was completed."""
    monkeypatch.setattr("pyparq.io.remote_sinks.IN_MEMORY", 1 << 20)
    monkeypatch.setattr("pyparq.io.object_store.PART", 5 << 20)
    url, given = f"s3://{BUCKET}/lost {then}.parquet", {"storage_options": plain(s3)}
    old, data = os.urandom(7 << 20), os.urandom(7 << 20)
    if then != "no object":
        pyparq.write_table({"data": [old]}, url, compression="none", **given)
    ends: list[str] = []

    def script(method: str, path: str) -> str:
        if method != "POST" or "uploadId=" not in path:
            return ""
        ends.append(path)
        if then:
            s3.fs().call_s3("abort_multipart_upload", Bucket=BUCKET, Key=f"lost {then}.parquet",
                            UploadId=path.partition("uploadId=")[2].partition("&")[0])  # fmt: skip
            return ""
        return "lost" if len(ends) == 1 else ""

    s3.script = script
    if then:
        with pytest.raises(OSError):
            pyparq.write_table({"data": [data]}, url, compression="none", **given)
    else:
        pyparq.write_table({"data": [data]}, url, compression="none", **given)
        assert len(ends) == 2
    s3.script = lambda method, path: ""
    if then == "no object":
        assert not s3.fs().exists(url)
    else:
        assert pyparq.read_table(url, **given)["data"].to_pylist() == [old if then else data]


def test_a_version_that_is_too_large_for_one_request(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyparq.io.object_store.MOST_PUT", 6 << 20)
    monkeypatch.setattr("pyparq.io.object_store.PART", 5 << 20)
    data, path = os.urandom(7 << 20), f"{BUCKET}/version"
    s3.fs().pipe_file(path, b"before")

    def replaced(change: bool) -> ObjectSink:
        fs, own = file_system(f"s3://{path}", "writing", "write to", plain(s3))
        file = RemoteFile(fs, own, "the file")
        assert file.size > 0
        sink = ObjectSink(file)
        sink.replace_only(file.stated_version)
        sink.write([data])
        if change:
            s3.fs().pipe_file(path, b"another program's")
        s3.asked.clear()
        sink.commit()
        return sink

    replaced(change=False)
    assert sum("uploadId=" in asked and method == "PUT" for method, asked, _ in s3.asked) == 2
    assert s3.fs().cat_file(path) == data
    with pytest.raises(ChangedFileError):
        replaced(change=True)
    assert s3.fs().cat_file(path) == b"another program's"


# ---- which one


def test_which_road_is_taken(s3: S3, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    url, options = f"s3://{BUCKET}/a.parquet", plain(s3)
    assert (
        taken(url, options)
        == taken(f"S3://{BUCKET}/a.parquet", options)
        == taken(f"s3a://{BUCKET}/a", options)
        == "obstore"
    )
    assert taken(url, {**options, "s3_additional_kwargs": {}}) == "fsspec"
    assert taken(url, {**options, "config_kwargs": {}}) == "fsspec"
    assert taken("memory://a") == taken(f"simplecache::{url}", {"s3": options}) == "fsspec"
    assert taken("s3://arn:aws:s3:region:1:accesspoint/a", options) == "fsspec"
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "obstore")
    with pytest.raises(OptionError, match="config_kwargs"):
        taken(url, {**options, "config_kwargs": {}})
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "fsspec")
    assert taken(url, options) == "fsspec"
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "both")
    with pytest.raises(OptionError, match="'both'"):
        taken(url, options)


def test_what_is_configured_for_fsspec(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url, options = f"s3://{BUCKET}/a", plain(s3)
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": s3.url})
    assert taken(url, options) == "fsspec"
    monkeypatch.setitem(fsspec.config.conf, "s3", {})
    assert taken(url, options) == "obstore"
    monkeypatch.delitem(sys.modules, "fsspec.config")
    monkeypatch.setenv("FSSPEC_CONFIG_DIR", str(tmp_path / "conf"))
    assert not has_settings("s3")
    monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
    assert (has_settings("s3"), has_settings("gs")) == (False, True)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "conf.json").write_text("{}")
    assert has_settings("s3")


def test_without_obstore(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    assert taken(f"s3://{BUCKET}/a", s3.options) == "fsspec"
    monkeypatch.setenv("PYPARQ_FILESYSTEM", "obstore")
    with pytest.raises(UnsupportedError, match="pip install"):
        taken(f"s3://{BUCKET}/a", s3.options)


SPELLINGS: dict[str, Any] = {
    "pandas": lambda url: {**KEYS, "client_kwargs": {"endpoint_url": url, "region_name": "eu-west-1"}},
    "s3fs": lambda url: {**KEYS, "endpoint_url": url},
    "polars": lambda url: {"aws_access_key_id": "some-key", "aws_secret_access_key": "some-secret",
                           "aws_endpoint_url": url, "aws_region": "eu-west-1", "aws_allow_http": "true"},
    "obstore": lambda url: {"access_key_id": "some-key", "secret_access_key": "some-secret", "endpoint": url,
                            "region": "eu-west-1", "client_options": {"allow_http": True},
                            "virtual_hosted_style_request": False},
    "anonymous": lambda url: {"anon": True, "endpoint_url": url},
}  # fmt: skip


@pytest.mark.parametrize("how", SPELLINGS)
def test_spellings_of_options(s3: S3, road: str, how: str) -> None:
    url, options = f"s3://{BUCKET}/spelled.parquet", SPELLINGS[how](s3.url)
    if how == "anonymous":
        pyparq.write_table({"id": [7]}, url, storage_options=plain(s3))
        s3.fs().call_s3("put_object_acl", Bucket=BUCKET, Key="spelled.parquet", ACL="public-read")
    else:
        pyparq.write_table({"id": [7]}, url, storage_options=options)
    assert pyparq.read_table(url, storage_options=options)["id"].to_pylist() == [7]
    assert taken(url, options) == road


def test_a_wrong_option_names_itself(s3: S3) -> None:
    with pytest.raises(OptionError, match="'colour'"):
        pyparq.read_table(f"s3://{BUCKET}/a.parquet", storage_options={**plain(s3), "colour": "red"})


# ---- credentials


def config_of(options: dict[str, Any] | None = None) -> Any:
    fs, _ = file_system(
        f"s3://{BUCKET}/a", "reading", "read from", {"endpoint_url": "http://127.0.0.1:1"} | (options or {})
    )
    return fs.store.config if isinstance(fs, ObjectSystem) else None


def test_keys_of_the_environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "some-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "some-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    url = f"s3://{BUCKET}/environment.parquet"
    pyparq.write_table({"id": [1]}, url)
    assert pyparq.read_table(url).num_rows == 1
    assert taken(url) == "obstore"
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-the-environment")
    fs, _ = file_system(url, "reading", "read from", KEYS)
    assert fs.store.credential_provider() == {
        "access_key_id": "some-key", "secret_access_key": "some-secret", "token": None, "expires_at": None
    }, "keys that are given go without the token of others"  # fmt: skip
    assert pyparq.read_table(url, storage_options=KEYS).num_rows == 1


def test_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = uno\n"
        "[two]\naws_access_key_id = two\naws_secret_access_key = due\naws_session_token = token\n"
        "[role]\nrole_arn = arn:aws:iam::1:role/a\nsource_profile = default\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-1\n[profile two]\nregion = eu-west-2\n[profile sso]\nsso_session = x\n"
    )
    assert (config_of()["access_key_id"], config_of()["region"]) == ("one", "eu-west-1")
    monkeypatch.setenv("AWS_PROFILE", "two")
    found = config_of()
    assert (found["access_key_id"], found["session_token"], found["region"]) == ("two", "token", "eu-west-2")
    assert config_of({"profile": "default"})["access_key_id"] == "one"
    assert config_of({"anon": True})["skip_signature"] in (True, "true")
    for name in ("role", "sso", "absent"):
        monkeypatch.setenv("AWS_PROFILE", name)
        assert config_of() is None, "boto reads it"
        assert config_of(KEYS)["access_key_id"] == "some-key", "what is given needs no profile"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert config_of().keys() == {"bucket", "endpoint"}, "as boto has it, keys of the environment go before its profile"


def test_settings_that_only_boto_obeys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in ("services = mine", "s3 =\n  addressing_style = virtual", "ca_bundle = /a.pem"):
        (tmp_path / "config").write_text(f"[default]\nregion = eu-west-1\n{setting}\n")
        assert config_of(KEYS) is None, "keys that are given do not change where the requests go"
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\nsso_session = x\ncli_timestamp_format = iso8601\n")
    assert config_of(KEYS)["region"] == "eu-west-1", "it says only how to get other keys"
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/keys")
    (tmp_path / "config").unlink()
    assert config_of() is None, "obstore asks for the file of a token too"
    assert config_of(KEYS) is not None
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    assert config_of() is not None
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    assert config_of(KEYS) is None


def test_a_machine_without_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting that keeps boto from asking the machine for keys does not matter where there are keys."""
    region = {"client_kwargs": {"region_name": "us-east-1"}}
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert taken("s3://bucket/t.parquet", {**KEYS, **region}) == "obstore"
    assert taken("s3://bucket/t.parquet", {"anon": True, **region}) == "obstore"
    assert taken("s3://bucket/t.parquet", region) == "fsspec"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert taken("s3://bucket/t.parquet", region) == "obstore"


def test_keys_of_the_environment_that_change(s3: S3, road: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is opened afterwards is asked for with the new ones."""
    options = {"client_kwargs": {"endpoint_url": s3.url, "region_name": "us-east-1"}}
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    s3.fs().pipe_file(f"{BUCKET}/keys.parquet", b"")
    used = []
    for key in ("one", "two"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        fs, _ = file_system(f"s3://{BUCKET}/keys.parquet", "reading", "read from", options)
        if road == "obstore":
            used.append(fs)
        else:
            fs.info(f"{BUCKET}/keys.parquet")
            used.append(fs.s3._request_signer._credentials.access_key)
    assert used[0] is not used[1] if road == "obstore" else used == ["one", "two"]


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "marks",
    [
        ["ds/"],
        ["ds/day=1/"],
        ["ds_$folder$", "ds/day=1_$folder$", "ds/day=2_$folder$"],
        ["ds/day=1", "ds/day=3/"],
        ["ds"],
    ],
    ids=str,
)
def test_objects_that_mark_folders(s3: S3, road: str, marks: list[str]) -> None:
    fs = s3.fs()
    for day in (1, 2):
        pyparq.write_table({"id": [day]}, f"s3://{BUCKET}/ds/day={day}/a.parquet", storage_options=s3.options)
    for mark in marks:
        fs.call_s3("put_object", Bucket=BUCKET, Key=mark, Body=b"")
    try:
        for source in (f"s3://{BUCKET}/ds/", f"s3://{BUCKET}/ds", f"s3://{BUCKET}/ds/*/*.parquet"):
            assert pyparq.read_table(source, storage_options=s3.options).to_pydict() == {"id": [1, 2], "day": [1, 2]}
    finally:
        for key in [*marks, "ds/day=1/a.parquet", "ds/day=2/a.parquet"]:
            fs.call_s3("delete_object", Bucket=BUCKET, Key=key)


@pytest.mark.parametrize("odd", ["some-key\n", "schlüssel"])
def test_keys_that_no_header_can_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, odd: str) -> None:
    assert config_of({**KEYS, "key": odd}) is None, "obstore's thread would end on it"
    assert config_of({**KEYS, "token": odd}) is None
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-the-environment")
    assert config_of({**KEYS, "key": odd}) is None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", odd)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "some-secret")
    assert config_of() is None
    assert config_of(KEYS) is not None


def test_certificates_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "bundle.pem"))
    assert config_of({**KEYS, "endpoint_url": "https://127.0.0.1:1"}) is None, "boto reads them"
    assert config_of(KEYS) is not None, "no certificate is needed"


def test_the_region_of_a_bucket_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "region_of", {"mine": "eu-north-1"}.get)
    fs, _ = file_system("s3://mine/a", "reading", "read from", KEYS)
    assert fs.store.config["region"] == "eu-north-1"
    assert taken("s3://unknown/a", KEYS) == "fsspec"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    for given in (KEYS, {**KEYS, "client_kwargs": {"region_name": "us-east-1"}}):
        fs, _ = file_system("s3://mine/a", "reading", "read from", given)
        assert fs.store.config["region"] == "eu-north-1", "a wrong region does not matter to boto either"
    fs, _ = file_system("s3://unknown/a", "reading", "read from", KEYS)
    assert fs.store.config["region"] == "us-west-2", "what is given holds where S3 does not answer"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "cn-north-1")
    assert taken("s3://mine/a", KEYS) == "fsspec", "its servers are below amazonaws.com.cn"


def test_how_s3_tells_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(request: Any, timeout: float) -> Any:
        asked.append((request.get_method(), request.full_url))
        if "lost" in request.full_url:
            raise TimeoutError
        raise HTTPError(request.full_url, 301, "Moved", {"x-amz-bucket-region": "eu-west-3"}, None)  # type: ignore[arg-type]

    monkeypatch.setattr("urllib.request.urlopen", answer)
    locations.region_of.cache_clear()
    assert locations.region_of("one") == locations.region_of("two", "us-gov-west-1") == "eu-west-3"
    assert locations.region_of("lost") is None
    locations.region_of.cache_clear()
    assert asked == [
        ("HEAD", "https://s3.amazonaws.com/one"),
        ("HEAD", "https://s3.us-gov-west-1.amazonaws.com/two"),
        ("HEAD", "https://s3.amazonaws.com/lost"),
    ]


# ---- other stores


def test_options_for_google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pyparq.io.store_options import NotForObstore, for_gcs

    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    key = tmp_path / "key.json"
    key.write_text('{"type": "service_account", "client_email": "a", "private_key": "b"}')
    assert for_gcs({"token": "anon", "project": "p"}).config == {"skip_signature": True}
    assert for_gcs({"token": str(key)}).config == {"application_credentials": str(key)}
    assert for_gcs({"google_service_account": str(key)}).config == {"service_account": str(key)}
    for given in ({}, {"token": "cloud"}, {"token": object()}):
        with pytest.raises(NotForObstore):
            for_gcs(given)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    assert for_gcs({}).config == {}
    key.write_text('{"type": "external_account"}')
    with pytest.raises(NotForObstore):
        for_gcs({})


def test_options_for_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyparq.io.store_options import NotForObstore, for_azure

    for name in list(os.environ):
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)
    pair = {"account_name": "mine", "account_key": "a2V5"}
    assert for_azure(pair).config == pair
    assert for_azure({"azure_storage_account_name": "mine", "azure_storage_account_key": "a2V5"}).config == pair
    assert for_azure({"account_key": "a2V5"}, "mine").config == pair
    text = "DefaultEndpointsProtocol=https;AccountName=mine;AccountKey=a2V5;EndpointSuffix=core.windows.net"
    assert for_azure({"connection_string": text}).config == pair
    local = for_azure({"connection_string": "AccountName=mine;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1/mine"})
    assert local.config == {**pair, "endpoint": "http://127.0.0.1:1/mine"}
    assert local.client == {"allow_http": True}
    for given in ({}, {"account_name": "mine"}, {"account_name": "mine", "credential": object()}):
        with pytest.raises(NotForObstore):
            for_azure(given)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert for_azure({}).config == for_azure({}, "mine").config == for_azure({"account_name": "mine"}).config == pair
    assert for_azure({"account_name": "other", "sas_token": "x"}).config == {"account_name": "other", "sas_key": "x"}
    with pytest.raises(NotForObstore):
        for_azure({}, "other")
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    fs, path = file_system(
        "abfss://box@mine.dfs.core.windows.net/a/b.parquet", "reading", "read from", {"account_key": "a2V5"}
    )
    assert (path, fs.unstrip_protocol(path)) == ("box/a/b.parquet", "abfss://box@mine.dfs.core.windows.net/a/b.parquet")
    assert fs._strip_protocol(fs.unstrip_protocol(path)) == path


# ---- processes


def ids_of(where: Any) -> list[int]:
    found: list[int] = where.read(["id"])["id"].to_pylist()
    return found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_on_by_fsspec(s3: S3) -> None:
    url, given = f"s3://{BUCKET}/forked/a.parquet", {"storage_options": plain(s3)}
    pyparq.write_table({"id": [1, 2]}, url, **given)
    dataset = pyparq.dataset(f"s3://{BUCKET}/forked/", **given)
    with pyparq.ParquetFile(url, **given) as file:
        assert ids_of(file) == ids_of(dataset) == [1, 2]
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply(ids_of, (pyparq.dataset(f"s3://{BUCKET}/forked/", **given),)) == [1, 2]
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert ids_of(file) == ids_of(dataset) == [1, 2]
                assert taken(url, plain(s3)) == "fsspec"
                pyparq.write_table({"id": [3]}, f"s3://{BUCKET}/forked/b.parquet", **given)
                assert pyparq.dataset(f"s3://{BUCKET}/forked/", **given).count() == 3
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ids_of(file) == [1, 2], "the parent goes on"


def test_a_dataset_can_be_pickled(s3: S3) -> None:
    url, given = f"s3://{BUCKET}/pickled/a.parquet", {"storage_options": plain(s3)}
    pyparq.write_table({"id": [1, 2]}, url, **given)
    again = pickle.loads(pickle.dumps(pyparq.dataset(f"s3://{BUCKET}/pickled/", **given)))
    assert ids_of(again) == [1, 2]


def test_the_first_request_is_made_while_modules_load(s3: S3) -> None:
    """Which the read then finds answered; and an error of it is raised by the read."""
    url = f"s3://{BUCKET}/first.parquet"
    pyparq.write_table({"id": [1, 2]}, url, storage_options=plain(s3))
    code = (
        "import sys, pyparq\n"
        "read, options = pyparq.read_table, eval(sys.argv[2])\n"
        "assert 'pyparq.read.file' not in sys.modules and 'fsspec' not in sys.modules\n"
        "try:\n"
        "    read(sys.argv[1] + '.absent.parquet', storage_options=options)\n"
        "except FileNotFoundError as error:\n"
        "    assert error.filename.endswith('.absent.parquet')\n"
        "assert read(sys.argv[1], storage_options=options)['id'].to_pylist() == [1, 2]\n"
        "assert 'fsspec' not in sys.modules and 'botocore' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, url, repr(plain(s3))], check=True, timeout=120)
    s3.asked.clear()
    once = code.partition("try:")[0] + "assert read(sys.argv[1], storage_options=options).num_rows == 2\n"
    subprocess.run([sys.executable, "-c", once, url, repr(plain(s3))], check=True, timeout=120)
    assert s3.asked == [("GET", f"/{BUCKET}/first.parquet", "bytes=-131072")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_ctrl_c_does_not_wait_for_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = {**KEYS, "endpoint_url": f"http://127.0.0.1:{server.getsockname()[1]}"}
        code = "import sys, pyparq; pyparq.ParquetFile('s3://b/a.parquet', storage_options=eval(sys.argv[1]))"
        program = [sys.executable, "-c", code, repr(options)]
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as running:
            connection, _ = server.accept()  # the request is under way, and is never answered
            with connection:
                running.send_signal(signal.SIGINT)
                _, told = running.communicate(timeout=20)  # the request itself would end after 30 seconds
    assert told.rstrip().endswith("KeyboardInterrupt")


def test_a_store_that_knows_no_ranges_from_the_end(s3: S3) -> None:
    """As Azure: the size comes from the listing, and a file that has changed since then is told from it."""
    stores: Any = require("obstore.store")
    store = stores.MemoryStore()
    system = ObjectSystem(store, "azure-like://", "", tag="etag")
    pyparq.write_table({"id": list(range(1000))}, "a/b.parquet", filesystem=store)
    listed = Stated.of(system.info("a/b.parquet"), is_listed=True)
    assert not system.ends_by_length
    with pyparq.ParquetFile(RemoteFile(system, "a/b.parquet", "b", listed)) as file:
        assert file.read()["id"].to_pylist() == list(range(1000))
    for rows in (1, 100_000):
        pyparq.write_table({"id": list(range(rows))}, "a/b.parquet", filesystem=store)
        with pytest.raises(ChangedFileError, match="make the dataset again"):
            pyparq.ParquetFile(RemoteFile(system, "a/b.parquet", "b", listed))


@pytest.mark.parametrize("size", [5 << 30, (5 << 30) + 1])
def test_what_is_too_large_for_one_copy_goes_by_fsspec(size: int) -> None:
    copied: list[tuple[str, str]] = []

    class Refusing:
        def copy(self, source: str, target: str) -> None:
            raise OSError("InvalidRequest: the copy source is larger than the maximum allowable size")

        def head(self, key: str) -> dict[str, Any]:
            return {"size": size}

    class Behind:
        def by_fsspec(self) -> Any:
            return self

        def reopened(self) -> Any:
            return self

        def cp_file(self, source: str, target: str) -> None:
            copied.append((source, target))

    system = ObjectSystem(Refusing(), "s3://b", "b", opened=Behind())
    if size > 5 << 30:
        system.cp_file("b/a.parquet", "b/c.parquet")
    else:
        with pytest.raises(OSError, match="copy source"):
            system.cp_file("b/a.parquet", "b/c.parquet")
    assert copied == [("b/a.parquet", "b/c.parquet")] * (size > 5 << 30)
