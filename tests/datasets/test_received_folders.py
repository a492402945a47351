"""Folders that come from elsewhere, in an archive say, and hold links and what looks like the rest of a crashed write.
Nothing outside of them is changed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.datasets.catalog import layout
from pyparq.datasets.write import folder_commit
from pyparq.datasets.write.commit import Committer
from pyparq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from pyparq.errors import CorruptFileError, OptionError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="links and locks as Linux has them")

OURS = {"precious.txt": "my only copy", "key": "mine"}


class Folders:
    """A folder of ours, and beside it one that we were given."""

    def __init__(self, root: Path) -> None:
        self.ours, self.given = root / "ours", root / "given"
        for folder in (self.ours / "empty", self.given):
            folder.mkdir(parents=True)
        for name, text in OURS.items():
            (self.ours / name).write_text(text)
        pyparq.write_table({"id": [1, 2, 3]}, self.given / "a.parquet")
        (self.given / "link").symlink_to("../ours")

    def check(self) -> None:
        assert {path.name: path.read_text() for path in self.ours.iterdir() if path.is_file()} == OURS
        assert (self.ours / "empty").is_dir()

    def staging(self, record: dict[str, Any] | None) -> Path:
        """What looks like a write that has crashed."""
        folder = self.given / "_pyparq_staging-0123456789abcdef"
        for inner in ("new", "old"):
            (folder / inner).mkdir(parents=True)
        (folder / "staging.json").write_text(json.dumps({"target": str(self.given), "mode": "append"}))
        (folder / "new" / "evil").write_text("theirs")
        if record is not None:
            (folder / "commit.json").write_text(json.dumps(record))
        return folder


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "recover": pyparq.recover_dataset,
    "append": lambda folder: pyparq.write_dataset({"id": [4]}, folder, mode="append"),
    "overwrite": lambda folder: pyparq.write_dataset({"id": [4]}, folder, mode="overwrite"),
    "add_indexes": lambda folder: pyparq.add_indexes(folder, bloom_filters=True),
    "rewrite": lambda folder: pyparq.rewrite(folder, folder, mode="overwrite"),
    "edit": lambda folder: pyparq.edit_metadata(folder / "a.parquet", update={"a": "b"}),
}

STATE = [3, 4, 5]
RECORDS: dict[str, Any] = {
    "through a link": {"old": [["link/precious.txt", "x"], ["link/key", "y"]], "new": [["evil", "link/key"]]},
    "with states": {"old": [["link/precious.txt", "x", *STATE]], "new": []},
    "a new file alone": {"old": [], "new": [["evil", "link/planted"]]},
    "a new folder": {"old": [], "new": [["evil", "link/sub/planted"]]},
    "an empty folder": {"old": [["link/empty/x", "x"]], "new": []},
    "its own folder": {"old": [["_pyparq_staging-0123456789abcdef/new", "x"]], "new": []},
    "the folder": {"old": [[".", "x"]], "new": []},
    "odd path": {"old": [["a.parquet/../link/key", "x"]], "new": []},
    "above": {"old": [["a.parquet", ".."]], "new": []},
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_leads_out(folders: Folders, name: str, operation: str) -> None:
    folders.staging(RECORDS[name])
    with suppress(CorruptFileError):  # all but changes of other files
        OPERATIONS[operation](folders.given)
    folders.check()
    with pytest.raises(CorruptFileError, match=r"commit record names a file outside .* Remove .* to give the write up"):
        pyparq.recover_dataset(folders.given)


def test_a_link_that_an_earlier_step_puts_into_the_way(folders: Folders) -> None:
    staging = folders.staging({"old": [], "new": [["lnk", "sub"], ["evil", "sub/planted"]]})
    (staging / "new" / "lnk").symlink_to("../../../ours")
    with pytest.raises(CorruptFileError, match="outside of the folder"):
        pyparq.recover_dataset(folders.given)
    folders.check()


def test_a_folder_that_is_replaced_by_a_link_between_two_steps(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.staging({"old": [], "new": [["evil", "sub/one"], ["more", "sub/two"]]})
    (folders.given / "_pyparq_staging-0123456789abcdef" / "new" / "more").write_text("theirs")

    def swap(step: str) -> None:
        if step == "placed" and not (folders.given / "sub").is_symlink():
            (folders.given / "sub").rename(folders.given / "away")
            (folders.given / "sub").symlink_to("../ours")

    monkeypatch.setattr(folder_commit, "reached", swap)
    with pytest.raises(CorruptFileError, match="outside of the folder"):
        pyparq.recover_dataset(folders.given)
    folders.check()


@pytest.mark.parametrize("inner", ["new", "old"])
def test_a_staging_folder_whose_inner_folder_is_a_link(folders: Folders, inner: str) -> None:
    record = {"old": [["a.parquet", "x"]], "new": []} if inner == "old" else {"old": [], "new": [["key", "got"]]}
    staging = folders.staging(record)
    (staging / "new" / "evil").unlink()
    (staging / inner).rmdir()
    (staging / inner).symlink_to("../../ours")
    with pytest.raises(CorruptFileError, match="damaged"):
        pyparq.recover_dataset(folders.given)
    folders.check()
    assert pyparq.read_table(folders.given / "a.parquet").num_rows == 3


@pytest.mark.parametrize("name", ["commit.json", "staging.json"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_records_that_are_no_files(folders: Folders, name: str, kind: str) -> None:
    """A pipe would be waited for."""
    path = folders.staging({"old": [], "new": []}) / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        (folders.ours.parent / "record").write_text('{"old": [["a.parquet", "x"]], "new": []}')
        path.symlink_to("../../record")
    if name == "commit.json":
        with pytest.raises(CorruptFileError, match="damaged"):
            pyparq.recover_dataset(folders.given)
    else:
        assert pyparq.recover_dataset(folders.given) == 1
    assert pyparq.read_table(folders.given / "a.parquet").num_rows == 3


def test_locks_that_are_links(folders: Folders) -> None:
    (folders.staging(None) / "lock").symlink_to("../../ours/made")
    with pytest.raises(OSError, match="symbolic links"):
        pyparq.recover_dataset(folders.given)
    (folders.given / ".pyparq_lock").symlink_to("../ours")
    with pytest.raises(NotADirectoryError):
        OPERATIONS["append"](folders.given)
    folders.check()


def test_a_sign_of_success_that_is_a_link(folders: Folders) -> None:
    (folders.given / "_SUCCESS").symlink_to("../ours/key")
    committer = Committer.start(str(folders.given), "append")
    committer.commit([])
    with pytest.warns(UserWarning, match="committed"):
        committer.note_success("_SUCCESS")
    folders.check()


def test_a_partition_that_is_a_link(folders: Folders) -> None:
    (folders.given / "p=1").symlink_to("../ours")
    for mode in ("append", "overwrite_partitions", "overwrite"):
        with pytest.raises(OptionError, match="link to another folder"):
            pyparq.write_dataset({"id": [4], "p": [1]}, folders.given, mode=mode, partition_cols="p")
    folders.check()
    assert not list(folders.given.glob("_pyparq_staging*"))


def test_catalogs_that_are_links(folders: Folders) -> None:
    (folders.given / "link").unlink()
    catalog = folders.given / layout.FOLDER
    catalog.symlink_to("../ours")
    with pytest.raises(OptionError, match="link to another folder"):
        pyparq.index_dataset(folders.given, ["id"])
    folders.check()
    catalog.unlink()
    catalog.mkdir()
    (catalog / layout.HEAD).symlink_to("../../ours/key")
    pyparq.index_dataset(folders.given, ["id"])
    folders.check()
    assert pyparq.dataset(folders.given).lookup("id", 2).num_rows == 1


@pytest.mark.sweep(3)
@pytest.mark.parametrize("key", ["previous", "segments", "files"])
def test_a_catalog_that_names_files_of_elsewhere(folders: Folders, key: str) -> None:
    (folders.given / "link").unlink()
    pyparq.index_dataset(folders.given, ["id"])
    head = folders.given / layout.FOLDER / layout.HEAD
    stated = json.loads(head.read_text())["catalog"]
    there = "../../ours/precious.txt"
    if key == "previous":
        stated["previous"] = [there]
    else:
        part = stated["files"] if key == "files" else stated["segments"][0]["part"]
        part["name"] = there
    head.write_text(json.dumps({"checksum": layout._checksum(stated), "catalog": stated}))
    pyparq.write_table({"id": [7]}, folders.given / "b.parquet")
    for mode in ("update", "rebuild"):
        with suppress(CorruptFileError):
            pyparq.index_dataset(folders.given, ["id"], rebuild=mode == "rebuild")
        folders.check()


class Kms:
    def wrap_key(self, key: bytes, master: str) -> str:
        return key.hex()

    def unwrap_key(self, wrapped: str, master: str) -> bytes:
        return bytes.fromhex(wrapped)


def test_key_material_that_is_a_link(folders: Folders) -> None:
    config = EncryptionConfiguration("master", uniform_encryption=True, internal_key_material=False)
    keys = CryptoFactory(lambda config: Kms()).file_encryption_properties(KmsConnectionConfig(), config)
    material = folders.given / "_KEY_MATERIAL_FOR_b.parquet.json"
    material.symlink_to("../ours/key")
    pyparq.write_table({"id": [1]}, folders.given / "b.parquet", encryption=keys)
    folders.check()
    assert not material.is_symlink()
