"""Servers whose certificates an authority of one's own has signed: what the errors say, and what to set."""

from __future__ import annotations

import datetime as dt
import io
import ipaddress
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bad_server import serve
from conftest import require
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import pyparq

require("obstore")
require("s3fs")

NOW = dt.datetime.now(dt.UTC)
PEM = serialization.Encoding.PEM


class Authority:
    """It signs certificates."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        is_authority = x509.BasicConstraints(True, None)
        self.file = folder / "authority.pem"
        self.file.write_bytes(self._signed("An authority", self._key, is_authority).public_bytes(PEM))

    def _signed(self, name: str, key: Any, *extensions: Any, days: int = 30) -> x509.Certificate:
        subject, issuer = (
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in (name, "An authority")
        )
        made = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(NOW - dt.timedelta(60)).not_valid_after(NOW + dt.timedelta(days))
        for extension in extensions:
            made = made.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return made.sign(self._key, hashes.SHA256())

    def context(self, name: str, host: x509.GeneralName, days: int = 30) -> ssl.SSLContext:
        """What a server needs to be ``host`` for so many days."""
        key, file = ec.generate_private_key(ec.SECP256R1()), self._folder / f"{name}.pem"
        signed = self._signed(name, key, x509.SubjectAlternativeName([host]), days=days)
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file.write_bytes(signed.public_bytes(PEM) + secret)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(file)
        return made


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The authority's file, and the URLs of servers: a good one, and two with certificates that are not."""
    authority, data = Authority(tmp_path_factory.mktemp("authority")), io.BytesIO()
    pyparq.write_table({"id": [1, 2]}, data)
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    contexts = {
        "good": authority.context("good", here), "expired": authority.context("expired", here, -1),
        "other": authority.context("other", x509.DNSName("elsewhere.example")),
    }  # fmt: skip
    with ExitStack() as running:
        urls = {name: running.enter_context(serve(data.getvalue(), tls)).url for name, tls in contexts.items()}
        yield str(authority.file), urls


CHILD = """
import json, sys
import pyparq

road, urls, given = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
said = {}
for name, url in urls.items():
    place = f"{url}/t.parquet" if road == "https" else "s3://bucket/t.parquet"
    keys = {} if road == "https" else {"key": "some-key", "secret": "some-secret", "endpoint_url": url}
    try:
        said[name] = pyparq.read_table(place, storage_options=keys | given).num_rows
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""


def read(road: str, urls: dict[str, str], given: dict[str, Any] | None = None, **environment: str) -> dict[str, Any]:
    """What a process of its own gets of each server: libraries look for authorities once."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SSL_"))} | environment
    if road != "https":
        env["PYPARQ_FILESYSTEM"] = road
    command = [sys.executable, "-c", CHILD, road, json.dumps(urls), json.dumps(given or {})]
    found: dict[str, Any] = json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("road", ["https", "obstore", "fsspec"])
def test_the_error_says_what_to_set(servers: Any, road: str) -> None:
    authority, urls = servers
    given = {"config_kwargs": {"retries": {"max_attempts": 0}}} if road == "fsspec" else {}  # boto waits for long
    said = read(road, {"good": urls["good"]}, given)["good"]
    assert said.startswith("ConnectionError: ")
    assert "the authority of the server's certificate is not known here: the variable SSL_CERT_FILE" in said
    assert "tried" not in said, "it would not help"
    assert "t.parquet" in said
    said = read(road, urls, given, **{"AWS_CA_BUNDLE" if road == "fsspec" else "SSL_CERT_FILE": authority})
    assert said["good"] == 2
    assert said["expired"].startswith("ConnectionError: ")
    assert "the server's certificate has expired" in said["expired"]
    assert said["other"].startswith("ConnectionError: ")
    assert "the server's certificate is for another name" in said["other"]


@pytest.mark.slow
def test_other_ways_to_name_it(servers: Any) -> None:
    authority, urls = servers
    good = {"good": urls["good"]}
    for given in (Path(authority).read_text(), authority):
        assert read("obstore", good, {"root_certificate": given})["good"] == 2
    said = read("obstore", good, {"root_certificate": "no-such.pem"})["good"]
    assert said.startswith("FileNotFoundError: ")
    assert "no-such.pem" in said
    assert read("", good, AWS_CA_BUNDLE=authority)["good"] == 2, "s3fs opens it"
