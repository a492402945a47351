"""The command line on encrypted files: keys from a file or the environment, and what ``meta`` says of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from encryption_tools import FOOTER, MASTER_KEYS, OTHER, kms_file, local_kms, table, written

import pyparq
from pyparq.cli.app import app
from pyparq.encryption import CryptoFactory, EncryptionConfiguration, EncryptionKey, EncryptionProperties
from pyparq.encryption.keyfile import decryption_from_json
from pyparq.errors import OptionError


def run(*arguments: Any, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"PYPARQ_KEYS": "", **(env or {})})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    keys = {"unique": EncryptionKey(OTHER, b"that of unique")}
    path = tmp_path / "f.parquet"
    path.write_bytes(written(table(900), EncryptionProperties(EncryptionKey(FOOTER, b"main"), keys, aad_prefix="p")))
    return path


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    fields = {"footer_key": f"hex:{FOOTER.hex()}", "column_keys": {"unique": base64_key(OTHER)}, "aad_prefix": "p"}
    path.write_text(json.dumps(fields))
    return path


def base64_key(key: bytes) -> str:
    return f"base64:{base64.b64encode(key).decode()}"


COMMANDS: list[tuple[str, ...]] = [
    ("schema",), ("meta",), ("pages", "-c", "unique"), ("index", "-c", "unique"), ("bloom",), ("head", "-n", "2"),
    ("query", "-w", "unique = 'hush-000007'"), ("explain", "-w", "unique = 'hush-000007'"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_every_command_takes_keys(file: Path, keys: Path, command: tuple[str, ...]) -> None:
    name, *rest = command
    by_option = run(name, file, *rest, "--keys", keys)
    assert by_option.exit_code == 0, by_option.output
    for env in ({"PYPARQ_KEYS": str(keys)}, {"PYPARQ_KEYS": keys.read_text()}):
        assert run(name, file, *rest, env=env).output == by_option.output
    for key in (FOOTER, OTHER):
        assert key.decode() not in by_option.output
        assert key.hex() not in by_option.output
    without = run(name, file, *rest)
    assert without.exit_code == 1
    assert "its key is not known (key metadata 'main')" in without.output
    assert "--keys" in without.output
    other = run(name, file, *rest, "--keys", keys, "--aad-prefix", "q")
    assert other.exit_code == 1
    assert "AAD prefix b'p', but b'q' was given" in other.output


def test_pages_are_those_of_the_plain_file(file: Path, keys: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.parquet"
    plain.write_bytes(written(table(900), None))
    found = json.loads(run("pages", file, "--keys", keys, "--json").output)
    expected = json.loads(run("pages", plain, "--json").output)
    for ours, theirs in zip(found, expected, strict=True):
        kept = [
            [{k: page[k] for k in ("ordinal", "type", "encoding", "values", "rows")} for page in chunk["pages"]]
            for chunk in (ours, theirs)
        ]
        assert kept[0] == kept[1]


def test_meta_says_what_is_encrypted(file: Path, keys: Path, tmp_path: Path) -> None:
    shown = run("meta", file, "--keys", keys).output
    assert "AES_GCM_V1, footer encrypted (key metadata 'main')" in shown
    assert "key metadata 'that of unique'" in shown
    document = json.loads(run("meta", file, "--keys", keys, "--json").output)
    assert document["encryption"] == {
        "algorithm": "AES_GCM_V1", "plaintext_footer": False, "footer_verified": True, "key": "key metadata 'main'",
        "key_metadata": "main",
    }  # fmt: skip
    named = {column["path"][0]: column["key"] for column in document["row_groups"][0]["columns"]}
    assert named["unique"] == "key metadata 'that of unique'"
    assert named["id"] is None
    plain = tmp_path / "plain.parquet"
    plain.write_bytes(written(table(50), None))
    assert json.loads(run("meta", plain, "--json").output)["encryption"] is None
    assert "  encryption  " not in run("meta", plain).output


def test_meta_shows_columns_whose_key_is_missing(file: Path, tmp_path: Path) -> None:
    some = tmp_path / "some.json"
    some.write_text(json.dumps({"footer_key": f"text:{FOOTER.decode()}"}))
    shown = run("meta", file, "--keys", some)
    assert shown.exit_code == 0
    assert "key metadata 'that of unique' (not given)" in shown.output
    assert run("head", file, "--keys", some, "-c", "id").exit_code == 0
    refused = run("head", file, "--keys", some)
    assert refused.exit_code == 1
    assert "column unique" in refused.output


def test_signed_footers_are_said_to_be_unchecked(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(written(table(50), EncryptionProperties(FOOTER, {"unique": OTHER}, plaintext_footer=True)))
    shown = run("meta", path)
    assert shown.exit_code == 0
    assert "footer signed (no key metadata), signature not checked" in shown.output
    assert "signature was not checked" in shown.output  # the warning
    info = pyparq.ParquetFile(path, decryption=decryption_from_json(f'{{"footer_key": "hex:{FOOTER.hex()}"}}', "k"))
    assert info.metadata.encryption is not None
    assert info.metadata.encryption.footer_verified


def test_master_keys(tmp_path: Path) -> None:
    kms = local_kms(kms_file(tmp_path / "kms.json"))
    config = EncryptionConfiguration("kf", {"kc1": ["unique"]}, internal_key_material=False)
    path = tmp_path / "f.parquet"
    properties = CryptoFactory(lambda c: kms).file_encryption_properties(None, config)
    pyparq.write_table(table(50), path, encryption=properties)
    keys = {"master_keys": {name: base64_key(MASTER_KEYS[name]) for name in ("kf", "kc1")}}
    shown = run("head", path, "-c", "unique", "-n", "1", env={"PYPARQ_KEYS": json.dumps(keys)})
    assert "hush-000000" in shown.output
    del keys["master_keys"]["kc1"]
    shown = run("meta", path, env={"PYPARQ_KEYS": json.dumps(keys)})
    assert "external key material 'footerKey-" in shown.output
    assert "no master key 'kc1'" in shown.output


def test_keys_by_metadata(file: Path) -> None:
    keys = {"keys_by_metadata": {"main": base64_key(FOOTER), "that of unique": base64_key(OTHER)}}
    assert "hush-000000" in run("head", file, "-n", "1", env={"PYPARQ_KEYS": json.dumps(keys)}).output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[]", "does not hold a JSON object"),
        ('{"footer": 1}', "did you mean 'footer_key'"),
        ('{"footer_key": "0123456789abcdef"}', "must begin with"),
        ('{"footer_key": 5}', "must begin with"),
        ('{"footer_key": "hex:zz"}', "is not hex"),
        ('{"footer_key": "base64:%"}', "is not base64"),
        ('{"footer_key": "text:short"}', "5 bytes"),
        ('{"column_keys": ["a"]}', "must map"),
        ('{"column_keys": {"a": "x"}}', "must begin with"),
        ('{"algorithm": "x"}', "algorithm must be"),
        ('{"allow_plaintext_files": "false"}', "allow_plaintext_files must be True or False"),
        (
            '{"master_keys": {"a": "text:0123456789abcdef"}, "keys_by_metadata": {"b": "text:0123456789abcdef"}}',
            "one of",
        ),
        (
            '{"master_keys": {"a": "text:0123456789abcdef"}, "footer_key": "text:0123456789abcdef"}',
            "come from the Parquet file",
        ),
    ],
)
def test_bad_key_files(file: Path, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        decryption_from_json(text, "the file")
    path = tmp_path / "bad.json"
    path.write_text(text)
    shown = run("meta", file, "--keys", path)
    assert shown.exit_code == 2
    assert "0123456789abcdef" not in shown.output


@pytest.mark.parametrize("given", [base64_key(OTHER), OTHER.decode(), f'"hex:{OTHER.hex()}"', f'["{OTHER.hex()}"]'])
def test_a_key_in_the_wrong_place_is_not_repeated(file: Path, given: str) -> None:
    """The environment holds the path of a key file or its contents, the command line a path: people err."""
    shown = run("meta", file, env={"PYPARQ_KEYS": given})
    assert shown.exit_code == 2
    assert "must be the path of a key file or a JSON object" in shown.output
    for text in (base64_key(OTHER)[10:], OTHER.decode(), OTHER.hex()):
        assert text not in shown.output
    for given in (base64_key(OTHER), json.dumps({"footer_key": f"hex:{OTHER.hex()}"})):
        shown = run("meta", file, "--keys", given)
        assert shown.exit_code == 2
        assert "--keys takes the path of a key file" in shown.output
        assert given not in shown.output
        assert OTHER.hex() not in shown.output


def test_no_key_file(file: Path, tmp_path: Path) -> None:
    shown = run("meta", file, "--keys", tmp_path / "nothing")
    assert shown.exit_code == 1
    assert "No such file" in shown.output
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8 text" in run("meta", file, "--keys", tmp_path / "binary").output
