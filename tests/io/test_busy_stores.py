"""A store that answers 503 for a moment, at any request of any operation: it ends as without that. So it does where a
bucket keeps versions, and where a store knows no conditions."""

from __future__ import annotations

import io
import urllib.request
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import require
from s3_server import BUCKET, S3, serve

import pyparq
from pyparq import col
from pyparq.datasets.catalog import catalog
from pyparq.datasets.unfinished_writes import MARKER
from pyparq.io import kept_files
from pyparq.parquet import encryption

require("obstore")
require("s3fs")
deltalake: Any = require("deltalake")

ROWS, FILES = 40, 3
ROOT = f"s3://{BUCKET}/lake"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as running:
        kept = running.fs()
        running.fs = lambda: kept  # type: ignore[method-assign]  # a new one takes seconds
        yield running


@pytest.fixture(autouse=True)
def at_once(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody waits before a request is made again, neither pyparq nor boto."""
    monkeypatch.setattr("pyparq.io.retry.pause_for", lambda seconds: None)
    monkeypatch.setattr("botocore.retryhandler.random", Never())
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "some-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "some-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    yield
    s3.script = lambda method, path: ""


class Never:
    def random(self) -> float:
        return 0.0


@pytest.fixture(params=["obstore", "fsspec"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYPARQ_FILESYSTEM", request.param)
    return str(request.param)


# ---- operations


@dataclass
class Place:
    """A folder of the server."""

    s3: S3

    @property
    def given(self) -> dict[str, Any]:
        options = {name: value for name, value in self.s3.options.items() if name != "skip_instance_cache"}
        return {"storage_options": options}

    def fill(self, files: dict[str, bytes]) -> None:
        """The folder with these files alone."""
        fs = self.s3.fs()
        fs.invalidate_cache()
        for path in fs.find(f"{BUCKET}/lake"):
            fs.rm_file(path)
        for name, data in files.items():
            fs.pipe_file(f"{BUCKET}/lake/{name}", data)
        fs.invalidate_cache()

    def state(self) -> Any:
        """The rows of each file that is there, by its folder, and how many other files are there."""
        fs = self.s3.fs()
        fs.invalidate_cache()
        names = [path.removeprefix(f"{BUCKET}/lake/") for path in fs.find(f"{BUCKET}/lake")]
        mine = [name for name in names if name.endswith(".parquet") and not name.startswith(("_", "secret"))]
        tables = [(name, pq.read_table(io.BytesIO(fs.cat_file(f"{BUCKET}/lake/{name}")))) for name in mine]
        rows = sorted((name.rpartition("/")[0], str(t.to_pydict()), str(t.schema.metadata)) for name, t in tables)
        return rows, Counter(name.partition("-")[0] for name in names if name not in mine)


def file_bytes(first: int, rows: int = ROWS, **options: Any) -> bytes:
    data = io.BytesIO()
    ids = range(first, first + rows)
    pyparq.write_table({"id": ids, "text": [f"t{k}" for k in ids]}, data, row_group_size=20, **options)
    return data.getvalue()


FOLDER = {f"g={k}/part.parquet": file_bytes(ROWS * k) for k in range(FILES)}
INDEXED = {f"g={k}/part.parquet": file_bytes(ROWS * k, bloom_filters=["id"]) for k in range(FILES)}
NEW = {"id": [1000, 1001], "text": ["a", "b"], "g": [0, 7]}
CHANGED = {"id": [5, 50, 9000], "text": ["new"] * 3, "g": [0, 0, 1]}
"""A row in its place, one that moves, and a new one."""


def write_dataset(place: Place, mode: str, **options: Any) -> Any:
    pyparq.write_dataset(NEW, ROOT, partition_cols=["g"], mode=mode, **options, **place.given)


def write_pieces(place: Place) -> Any:
    with pyparq.ParquetWriter(f"{ROOT}/new.parquet", {"id": "int64"}, **place.given) as writer:
        for k in range(3):
            writer.write({"id": range(k, k + 5)})


def write_large(place: Place) -> Any:
    noise = np.random.default_rng(0).bytes(6 << 20)
    pyparq.write_table({"data": [noise, noise]}, f"{ROOT}/new.parquet", compression="none", **place.given)


def dataset(place: Place, source: str = ROOT, **options: Any) -> Any:
    return pyparq.dataset(source, **options, **place.given)


def rows_of(table: Any) -> list[Any]:
    return sorted(map(str, table.to_pylist()))


def looked_up(place: Place, catalog: str) -> Any:
    return rows_of(dataset(place, catalog=catalog).lookup("id", [5, 50, -1]))


def planned(place: Place) -> Any:
    with pyparq.ParquetFile(f"{ROOT}/g=1/part.parquet", **place.given) as file:
        plan = file.scan(filters=col("id") > 60).plan()
        return rows_of(file.execute(plan))


def verified(place: Place) -> Any:
    report = pyparq.verify(ROOT, **place.given)
    return len(report.files), report.ok


class Kms(encryption.KmsClient):
    def wrap_key(self, key: bytes, master: str) -> str:
        return key.hex()

    def unwrap_key(self, wrapped: str, master: str) -> bytes:
        return bytes.fromhex(wrapped)


FACTORY = encryption.CryptoFactory(lambda config: Kms())
CONNECTION = encryption.KmsConnectionConfig()
CONFIG = encryption.EncryptionConfiguration("main", column_keys={"hr": ["text"]}, internal_key_material=False)
SECRET = f"{ROOT}/secret/a.parquet"


def write_secret(place: Place) -> Any:
    keys = FACTORY.file_encryption_properties(CONNECTION, CONFIG)
    pyparq.write_table(NEW, SECRET, encryption=keys, **place.given)
    return read_secret(place)


def read_secret(place: Place) -> Any:
    keys = FACTORY.file_decryption_properties(CONNECTION)
    return rows_of(pyparq.read_table(SECRET, decryption=keys, **place.given))


def rotate(place: Place) -> Any:
    FACTORY.rotate_master_keys(CONNECTION, SECRET)
    return read_secret(place)


def delta_table(place: Place) -> Any:
    options = {
        "aws_access_key_id": "some-key", "aws_secret_access_key": "some-secret", "aws_endpoint_url": place.s3.url,
        "aws_allow_http": "true", "aws_region": "us-east-1", "aws_conditional_put": "etag",
    }  # fmt: skip
    return deltalake.DeltaTable(ROOT, storage_options=options)


def delta_of(place: Place) -> None:
    """A table of Delta Lake with two files."""
    place.fill({})
    options = {"AWS_ALLOW_HTTP": "true", "AWS_CONDITIONAL_PUT": "etag", "AWS_REGION": "us-east-1"}
    for k in range(2):
        rows = pa.table({"id": range(5 * k, 5 * k + 5)})
        deltalake.write_deltalake(ROOT, rows, mode="append", storage_options=options)


def of_delta(place: Place, change: Callable[[Any], Any]) -> Any:
    """The rows of the table afterwards."""
    change(delta_table(place))
    return rows_of(pyparq.dataset(delta_table(place)).read())


def unfinished() -> dict[str, bytes]:
    """A folder in which a write has begun and not ended."""
    marker = (
        '{"pyparq": 1, "id": "a", "mode": "overwrite", "begun": "today", "template": "n-{i}.parquet", "new": [], '
        '"kept": [], "old": null}'
    )
    return {**FOLDER, "g=0/n-00000.parquet": file_bytes(500), MARKER: marker.encode()}


def cataloged(place: Place) -> None:
    place.fill(FOLDER)
    pyparq.index_dataset(ROOT, ["id"], **place.given)


def outdated(place: Place) -> None:
    cataloged(place)
    fs = place.s3.fs()
    fs.pipe_file(f"{BUCKET}/lake/g=1/new.parquet", file_bytes(700))
    fs.rm_file(f"{BUCKET}/lake/g=0/part.parquet")


Begin = Callable[[Place], Any]


def filled(files: dict[str, bytes]) -> Begin:
    return lambda place: place.fill(files)


def changed(change: Callable[..., Any], *given: Any, source: str = ROOT, **options: Any) -> Begin:
    return lambda place: change(source, *given, **options, **place.given)


ONE = f"{ROOT}/g=1/part.parquet"
OPERATIONS: dict[str, tuple[Begin, Begin]] = {
    "write_table": (filled({}), lambda place: pyparq.write_table(NEW, f"{ROOT}/new.parquet", **place.given)),
    "write_table in parts": (filled({}), write_large),
    "ParquetWriter": (filled({}), write_pieces),
    "error": (filled({}), lambda place: write_dataset(place, "error")),
    "append": (filled(FOLDER), lambda place: write_dataset(place, "append")),
    "overwrite": (filled(FOLDER), lambda place: write_dataset(place, "overwrite")),
    "overwrite_partitions": (filled(FOLDER), lambda place: write_dataset(place, "overwrite_partitions")),
    "summary": (filled(FOLDER), lambda place: write_dataset(place, "overwrite", write_metadata=True)),
    "merge": (filled(FOLDER), changed(pyparq.merge, f"{ROOT}/all.parquet")),
    "merge into itself": (filled(FOLDER), changed(pyparq.merge, ONE, source=ONE)),
    "rewrite a file": (filled(FOLDER), changed(pyparq.rewrite, ONE, source=ONE, bloom_filters=["id"])),
    "rewrite to one file": (filled(FOLDER), changed(pyparq.rewrite, f"{ROOT}/all.parquet")),
    "rewrite a folder": (filled(FOLDER), changed(pyparq.rewrite, ROOT, mode="overwrite", sort_by=["id"])),
    "delete": (filled(FOLDER), changed(pyparq.delete, col("id") == 50)),
    "delete keys": (filled(INDEXED), changed(pyparq.delete, keys={"id": [5, 50]})),
    "delete a partition": (filled(FOLDER), changed(pyparq.delete, "g = 1")),
    "delete beside a catalog": (cataloged, changed(pyparq.delete, col("id") == 50)),
    "update": (filled(FOLDER), changed(pyparq.update, col("id") == 50, {"text": "new"})),
    "upsert": (filled(FOLDER), changed(pyparq.upsert, CHANGED, "id")),
    "add_indexes": (filled(FOLDER), changed(pyparq.add_indexes, bloom_filters=["id"])),
    "edit_metadata": (filled(FOLDER), changed(pyparq.edit_metadata, update={"owner": "us"})),
    "verify": (filled(INDEXED), verified),
    "index_dataset": (filled(FOLDER), changed(pyparq.index_dataset, ["id"])),
    "index_dataset again": (outdated, changed(pyparq.index_dataset)),
    "encrypted": (filled({}), write_secret),
    "rotate_master_keys": (lambda place: (place.fill({}), write_secret(place)), rotate),
    "a table": (delta_of, lambda place: of_delta(place, lambda table: None)),
    "add_indexes to a table": (
        delta_of,
        lambda place: of_delta(place, lambda table: pyparq.add_indexes(table, bloom_filters=["id"])),
    ),
    "delete from a table": (
        delta_of,
        lambda place: of_delta(place, lambda table: pyparq.delete(table, col("id") == 7)),
    ),
    "recover_dataset": (filled(unfinished()), lambda place: pyparq.recover_dataset(ROOT, **place.given)),
    "read_table": (filled(FOLDER), lambda place: rows_of(pyparq.read_table(ONE, **place.given))),
    "read_metadata": (filled(FOLDER), lambda place: pyparq.read_metadata(ONE, **place.given).num_rows),
    "read_schema": (filled(FOLDER), lambda place: str(pyparq.read_schema(ONE, **place.given))),
    "read": (filled(FOLDER), lambda place: rows_of(dataset(place).read())),
    "glob": (filled(FOLDER), lambda place: rows_of(dataset(place, f"{ROOT}/g=[12]/*.parquet").read())),
    "scan": (
        filled(INDEXED),
        lambda place: [rows_of(b) for b in dataset(place).scan(filters="id < 45").iter_batches()],
    ),
    "plan": (filled(INDEXED), planned),
    "explain": (filled(INDEXED), lambda place: dataset(place).scan(filters=col("id") == 50).explain().rows),
    "count": (filled(INDEXED), lambda place: dataset(place).scan(filters=col("id") > 50).count()),
    "lookup": (filled(INDEXED), lambda place: looked_up(place, "off")),
    "lookup by a catalog": (cataloged, lambda place: looked_up(place, "check")),
    "lookup by a catalog that is trusted": (cataloged, lambda place: looked_up(place, "trust")),
    "lookup by a catalog that is old": (outdated, lambda place: looked_up(place, "check")),
}


TOLD = ("rows_deleted", "rows_updated", "rows_added", "files_read", "left_out", "num_rows", "notes")


def told(answer: Any) -> Any:
    """What an operation returns, without names that differ from run to run."""
    if answer is None or isinstance(answer, (int, str, list, tuple)):
        return answer
    return {name: getattr(answer, name) for name in TOLD if hasattr(answer, name)}


class Busy:
    """Requests are answered with 503 at first."""

    def __init__(self, times: int, only: int | None = None) -> None:
        """``times``: how often each is answered so. ``only``: the number of the one that is, from 1; ``None``: all."""
        self._times = times
        self._only = only
        self.count = 0
        self._chosen: tuple[str, str] | None = None
        self.refused = Counter[tuple[str, str]]()

    def __call__(self, method: str, path: str) -> str:
        asked, self.count = (method, path), self.count + 1
        if self.count == self._only:
            self._chosen = asked
        if (self._only is not None and asked != self._chosen) or self.refused[asked] == self._times:
            return ""
        self.refused[asked] += 1
        return "503"


def done(place: Place, how: str, script: Callable[[str, str], str]) -> Any:
    """What an operation returns and leaves, where some requests are answered otherwise."""
    begin, act = OPERATIONS[how]
    begin(place)
    forget()
    place.s3.asked.clear()
    place.s3.script = script
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            answer = told(act(place))
    finally:
        place.s3.script = lambda method, path: ""
    return answer, place.state()


def forget() -> None:
    """As in another process."""
    kept_files.forget_files()
    catalog._forget()


@pytest.mark.sweep(21)
@pytest.mark.parametrize("how", OPERATIONS)
def test_each_request_is_answered_503_at_first(s3: S3, road: str, how: str) -> None:
    place, busy = Place(s3), Busy(1)
    assert done(place, how, busy) == done(place, how, Busy(0))
    assert busy.refused


@pytest.mark.slow
@pytest.mark.parametrize("how", OPERATIONS)
def test_each_request_is_answered_503_twice(s3: S3, road: str, how: str) -> None:
    place = Place(s3)
    assert done(place, how, Busy(2)) == done(place, how, Busy(0))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", OPERATIONS)
def test_one_request_is_answered_503_twice(s3: S3, road: str, how: str) -> None:
    place, calm = Place(s3), Busy(0)
    expected = done(place, how, calm)
    for number in range(1, calm.count + 1):
        assert done(place, how, Busy(2, only=number)) == expected, number


@pytest.mark.slow
@pytest.mark.parametrize("how", OPERATIONS)
def test_a_bucket_that_keeps_versions_and_a_store_without_conditions(s3: S3, road: str, how: str) -> None:
    place = Place(s3)
    expected = done(place, how, Busy(0))
    s3.ignores_conditions = True
    try:
        assert done(place, how, Busy(0)) == expected
    finally:
        s3.ignores_conditions = False
    if how == "error":  # moto lists folders of what is removed, where it keeps versions
        return
    try:
        s3.fs().call_s3("put_bucket_versioning", Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        assert done(place, how, Busy(0)) == expected
    finally:
        urllib.request.urlopen(f"{s3.url}/moto-api/reset", data=b"").close()
        s3.fs().invalidate_cache()
        s3.fs().mkdir(BUCKET)
