"""The catalog of an Iceberg table: blobs of a Puffin file (https://iceberg.apache.org/puffin-spec) that the table's
metadata names as statistics of a snapshot. So the clean-up of other engines leaves it alone.

The file begins with the blobs that another engine has made for this snapshot, as they were. The parts of the catalog
follow, then ``catalog.json``, and the footer: one request for the end of the file brings both.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from pyparq.datasets.catalog.layout import HEAD, CheckedSource, Head, Key, Part, Place, end_of, new_name, parse_head
from pyparq.datasets.data_files import data_file, plain_place
from pyparq.errors import CommitUnknownError, CorruptFileError, OptionError, UnsupportedError, WriteConflictError
from pyparq.io.retry import Retry
from pyparq.io.source import open_source
from pyparq.io.url import is_url
from pyparq.runtime.lazy_import import load

MAGIC = b"PFA1"
BLOB = "pyparq-catalog-v1"
_BEGINS, _ENDS = "pyparq-catalog-", ".stats"
PIECE = 8 << 20
"""Bytes that are copied at a time."""
MOST_OF_OTHERS = 256 << 20
"""Bytes of blobs of other engines that are taken over."""


def is_catalog(path: str) -> bool:
    """Whether a Puffin file is called as those with catalogs are. The table's metadata cannot say more of it: pyiceberg
    cannot load a table of which they name a blob of an unknown type."""
    return path.rpartition("/")[2].startswith(_BEGINS) and path.endswith(_ENDS)


class PuffinPlace(Place):
    """A Puffin file that has a catalog."""

    def __init__(
        self, path: str, size: int, storage_options: Mapping[str, Any] | None, retry: Retry | None = None
    ) -> None:
        """``size``: what the table's metadata says."""
        folder, _, self.file = path.rpartition("/")
        super().__init__(folder, storage_options, None, retry)
        self._folder, self.name = self.root, self.root_name
        self._size = size
        self.places: dict[str, tuple[int, int]] = {}
        """Offset and length of each part, once the head was read."""

    def head(self) -> Head:
        name = self._name(self.file)
        with closing(self._source(self.file)) as source:
            end = end_of(source)
            if source.size != self._size:
                raise CorruptFileError(f"the file has {source.size} bytes, and not {self._size}", file=name)
            self.places = {_part_of(b): (b["offset"], b["length"]) for b in _blobs(end, self._size, name)}
            if HEAD not in self.places:
                raise CorruptFileError("the file has no catalog", file=name)
            start = self.places[HEAD][0] - (self._size - len(end))
            data = (
                source.read_ranges([self.places[HEAD]])[0] if start < 0 else end[start : start + self.places[HEAD][1]]
            )
        return parse_head(data, name)

    def checked(self, part: Part) -> CheckedSource:
        name = self._name(self.file)
        start, length = self.places.get(part.name, (0, -1))
        if length != part.size:
            raise CorruptFileError("the catalog is damaged: a part is missing", file=name)
        return CheckedSource(lambda: self._source(self.file), part, name, self.is_local, start)


def _blobs(end: memoryview, size: int, name: str) -> list[dict[str, Any]]:
    """The blobs that the footer describes. ``end``: of the file, which has ``size`` bytes."""
    try:
        length = int.from_bytes(end[-12:-8], "little", signed=True)
        first = len(end) - 12 - length
        if bytes(end[-4:]) != MAGIC or bytes(end[first - 4 : first]) != MAGIC:
            raise ValueError("it is damaged or too large")
        if any(end[-8:-4]):
            raise UnsupportedError("the footer of the Puffin file is compressed", file=name)
        blobs: list[dict[str, Any]] = json.loads(bytes(end[first:-12]))["blobs"]
        for start, count in ((blob["offset"], blob["length"]) for blob in blobs):
            if {type(start), type(count)} != {int} or not 4 <= start <= start + count <= size - 16 - length:
                raise ValueError("a blob lies outside of the file")
        return blobs
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise CorruptFileError(f"the footer of the Puffin file cannot be read: {error}", file=name) from None


def _part_of(blob: Mapping[str, Any]) -> str:
    """Which part of a catalog a blob is. Empty for a blob of another engine."""
    properties = blob.get("properties")
    return str(properties.get("part")) if blob.get("type") == BLOB and isinstance(properties, dict) else ""


class NewPuffin(Place):
    """The Puffin file that will have a catalog. Its parts lie in a folder of this machine until all are there."""

    def __init__(
        self, table: Any, before: PuffinPlace | None, keys: Sequence[Key], storage_options: Mapping[str, Any] | None
    ) -> None:
        """``before``: the file with the catalog that is updated. ``keys``: the key columns.

        Raises :class:`OptionError` or :class:`UnsupportedError` for a table whose metadata cannot name the file.
        """
        if hasattr(table, "plan_files") or type(table.catalog).__name__ == "NoopCatalog":
            raise OptionError(
                "the table's metadata must name the catalog of keys: give the table as a catalog of pyiceberg loads "
                "it, not a scan, and not a table that was opened by its metadata file"
            )
        version = table.metadata.format_version
        if version > 2:
            raise UnsupportedError(f"the table has version {version} of the format, which pyiceberg does not write")
        self._made_in = TemporaryDirectory(prefix="pyparq-")
        super().__init__(self._made_in.name)
        self._uri = str(table.location_provider().new_metadata_location(f"{_BEGINS}{new_name('')[1:-8]}{_ENDS}"))
        self._target = PuffinPlace(plain_place(self._uri), 0, storage_options)
        self._table, self._before, self._reach = table, before, storage_options
        self._fields = [key[0] for key in keys if isinstance(key[0], int)]

    def checked(self, part: Part) -> CheckedSource:
        is_old = self._before is not None and part.name in self._before.places
        return self._before.checked(part) if is_old else super().checked(part)  # type: ignore[union-attr]

    def put(self, head: Head, stale: Collection[str] = ()) -> None:
        """Write the file, and make the table name it. Raises :class:`WriteConflictError` if another writer has changed
        the table at the same time."""
        assert head.table is not None
        number, statistics = head.table[1], self._table.metadata.statistics
        known = next((one for one in statistics if one.snapshot_id == number), None)
        size, footer = self._written(replace(head, previous=(self._before.file,) if self._before else ()), known)
        self._register(known, {"snapshot-id": number, "statistics-path": self._uri, "file-size-in-bytes": size,
                               "file-footer-size-in-bytes": footer})  # fmt: skip
        named = {one.statistics_path.rpartition("/")[2] for one in self._table.metadata.statistics}
        for name in stale:  # readers may still use the file before this one
            if is_catalog(name) and name not in named:
                self._target.remove(name)
        self._made_in.cleanup()

    def _written(self, head: Head, known: Any) -> tuple[int, int]:
        """Write the file. Returns its size, and that of the footer."""
        snapshot = self._table.snapshot_by_id(head.table[1])  # type: ignore[index]
        begun, blobs = self._of_others(known)
        about = {"type": BLOB, "fields": self._fields, "snapshot-id": snapshot.snapshot_id,
                 "sequence-number": snapshot.sequence_number or 0}  # fmt: skip

        def describe(part: str, length: int) -> None:
            blobs.append({**about, "offset": sink.position, "length": length, "properties": {"part": part}})

        sink = self._target.sink(self._target.file)
        try:
            sink.write([begun])
            for part in head.parts:
                describe(part.name, part.size)
                source = self.checked(part)
                for start in range(0, part.size, PIECE):
                    sink.write(source.read_ranges([(start, min(PIECE, part.size - start))]))
            data = head.to_bytes()
            describe(HEAD, len(data))
            footer = json.dumps({"blobs": blobs, "properties": {"created-by": "pyparq"}}).encode()
            sink.write([data, MAGIC, footer, len(footer).to_bytes(4, "little"), bytes(4), MAGIC])
            sink.commit()
        except BaseException:
            sink.abort()
            raise
        return sink.position, len(footer) + 16

    def _of_others(self, known: Any) -> tuple[bytes | memoryview, list[dict[str, Any]]]:
        """How the file begins: with the blobs of other engines that ``known``, the statistics of the snapshot, have."""
        if known is None or (is_catalog(known.statistics_path) and not known.blob_metadata):
            return MAGIC, []
        file = data_file(known.statistics_path, None, str(self._table.location()))
        with closing(open_source(file.where, self._reach if is_url(file.where) else None)) as source:
            blobs = [blob for blob in _blobs(end_of(source), source.size, file.name) if not _part_of(blob)]
            end = max((blob["offset"] + blob["length"] for blob in blobs), default=len(MAGIC))
            if known.key_metadata is not None or end > MOST_OF_OTHERS:
                raise UnsupportedError("the snapshot has statistics that are encrypted or too large", file=file.name)
            return source.read_ranges([(0, end)])[0], blobs

    def _register(self, known: Any, facts: Mapping[str, Any]) -> None:
        """Name the file in the table's metadata, in place of older catalogs."""
        others = [] if known is None else [blob.model_dump(by_alias=True) for blob in known.blob_metadata]
        made = load("pyiceberg.table.statistics").StatisticsFile(**facts, **{"blob-metadata": others})
        try:
            with self._table.transaction() as transaction:
                for old in self._table.metadata.statistics:
                    if old is not known and is_catalog(old.statistics_path) and not old.blob_metadata:
                        transaction.update_statistics().remove_statistics(old.snapshot_id).commit()
                transaction.update_statistics().set_statistics(made).commit()
        except Exception as error:
            if type(error).__name__ != "CommitFailedException":
                raise CommitUnknownError(f"the commit failed, and may have taken place: {error}") from error
            self._target.remove(self._target.file)
            said = "another writer has changed the table meanwhile. Load the table and try again"
            raise WriteConflictError(said) from error
