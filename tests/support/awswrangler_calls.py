"""Calls of awswrangler's on a store that moto simulates. ``suites.py`` runs them: its archive has no tests."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

wr = pytest.importorskip("awswrangler")
FRAME = pd.DataFrame({
    "id": [1, 2, None], "s": ["a", None, "ü"], "d": [dt.date(2024, 1, 1)] * 3, "l": [[1], [2, 3], None],
    "t": pd.to_datetime(["2024-01-01", "2024-01-02", None]), "p": ["x", "y", "x"],
})  # fmt: skip


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from boto3 import client
    from moto.server import ThreadedMotoServer

    for name, value in (("ACCESS_KEY_ID", "k"), ("SECRET_ACCESS_KEY", "s"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    server = ThreadedMotoServer(port=0)
    server.start()
    wr.config.s3_endpoint_url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    client("s3", endpoint_url=wr.config.s3_endpoint_url).create_bucket(Bucket="bucket")
    yield "s3://bucket"
    server.stop()


def rows(frame: Any) -> Any:
    return sorted(map(repr, frame[["id", "s", "d", "t"]].astype(str).to_numpy().tolist()))


@pytest.mark.parametrize("codec", [None, "snappy", "gzip", "zstd"])
def test_file(bucket: str, codec: str | None) -> None:
    wr.s3.to_parquet(FRAME, f"{bucket}/f.parquet", compression=codec)
    assert rows(wr.s3.read_parquet(f"{bucket}/f.parquet")) == rows(FRAME)
    assert list(wr.s3.read_parquet(f"{bucket}/f.parquet", columns=["s", "id"]).columns) == ["s", "id"]
    assert wr.s3.read_parquet(f"{bucket}/f.parquet", dtype_backend="pyarrow").shape == FRAME.shape


def test_folder(bucket: str) -> None:
    place: dict[str, Any] = {"path": f"{bucket}/d/", "dataset": True}
    for mode in ("overwrite", "append"):
        wr.s3.to_parquet(FRAME, **place, partition_cols=["p"], mode=mode)
    assert rows(wr.s3.read_parquet(**place)) == rows(pd.concat([FRAME, FRAME]))
    assert len(wr.s3.read_parquet(**place, partition_filter=lambda values: values["p"] == "x")) == 4
    assert [len(part) for part in wr.s3.read_parquet(**place, chunked=4)] == [4, 2]
    types, partitions = wr.s3.read_parquet_metadata(**place)
    assert (types["l"], types["d"], partitions) == ("array<bigint>", "date", {"p": "string"})
    wr.s3.to_parquet(FRAME[:1], **place, partition_cols=["p"], mode="overwrite_partitions")
    assert len(wr.s3.read_parquet(**place)) == 3
    assert len(wr.s3.to_parquet(FRAME, f"{bucket}/m/", dataset=True, max_rows_by_file=1)["paths"]) == 3


def test_encrypted(bucket: str) -> None:
    import pyarrow.parquet.encryption as pe

    class Kms(pe.KmsClient):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            pe.KmsClient.__init__(self)

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            return base64.b64encode(key_bytes)

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return base64.b64decode(wrapped_key)

    known = {"crypto_factory": pe.CryptoFactory(Kms), "kms_connection_config": pe.KmsConnectionConfig()}
    config = pe.EncryptionConfiguration("k", column_keys={"m": ["id"]})
    wr.s3.to_parquet(FRAME, f"{bucket}/e.parquet", encryption_configuration={**known, "encryption_config": config})
    assert rows(wr.s3.read_parquet(f"{bucket}/e.parquet", decryption_configuration=known)) == rows(FRAME)
    with pytest.raises(OSError, match="encrypted metadata"):
        wr.s3.read_parquet(f"{bucket}/e.parquet")
