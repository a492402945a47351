"""The catalog of an Iceberg table: blobs of a Puffin file (https://iceberg.apache.org/puffin-spec) that the table's
metadata names as statistics of a snapshot. So the clean-up of other engines leaves it alone.

The file begins with the blobs that another engine has made for this snapshot, as they were. The parts of the catalog
follow, then ``catalog.json``, and the footer: one request for the end of the file brings both. A snapshot has one such
file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from pyparq.datasets.catalog.layout import HEAD, CheckedSource, Head, Part, Place, end_of, new_name, parse_head
from pyparq.datasets.iceberg import CATALOG, is_catalog
from pyparq.datasets.tables import plain_place
from pyparq.errors import (
    CommitUnknownError,
    CorruptFileError,
    LimitError,
    OptionError,
    UnsupportedError,
    WriteConflictError,
)
from pyparq.io.retry import Retry
from pyparq.io.sink import Sink
from pyparq.io.source import open_source
from pyparq.io.url import is_url, shown
from pyparq.runtime.lazy_import import load

MAGIC = b"PFA1"
BLOB = "pyparq-catalog-v1"
PIECE = 8 << 20
"""Bytes that are copied at a time."""
MOST_OF_OTHERS = 256 << 20
"""Bytes of blobs of other engines that are taken over."""


class PuffinPlace(Place):
    """A Puffin file that has a catalog."""

    def __init__(
        self, path: str, size: int, storage_options: Mapping[str, Any] | None, retry: Retry | None = None
    ) -> None:
        """``size``: what the table's metadata says."""
        folder, _, self._file = path.rpartition("/")
        super().__init__(folder, storage_options, None, retry)
        self._folder, self.name = self.root, self.root_name
        self._size = size

    def head(self) -> Head:
        name = self._name(self._file)
        with closing(self._source(self._file)) as source:
            end = end_of(source)
            if source.size != self._size:
                raise CorruptFileError(f"the file has {source.size} bytes, and not {self._size}", file=name)
            place = next(
                (b for b in _blobs(end, self._size, name) if _is_own(b) and b["properties"]["part"] == HEAD), None
            )
            if place is None:
                raise CorruptFileError("the file has no catalog", file=name)
            start, length = place["offset"] - (self._size - len(end)), place["length"]
            inside = end[start : start + length] if start >= 0 else None
            head = parse_head(source.read_ranges([(place["offset"], length)])[0] if inside is None else inside, name)
        if any(part.start < len(MAGIC) or part.size < 0 or part.start + part.size > self._size for part in head.parts):
            raise CorruptFileError("the catalog is damaged: a part lies outside of the file", file=name)
        return head

    def checked(self, part: Part) -> CheckedSource:
        return CheckedSource(lambda: self._source(self._file), part, self._name(self._file), self.is_local)

    @property
    def file(self) -> str:
        """The name of the file."""
        return self._file


def _blobs(end: memoryview, size: int, name: str) -> list[dict[str, Any]]:
    """The blobs that the footer describes. ``end``: of the file, which has ``size`` bytes."""
    try:
        length = int.from_bytes(end[-12:-8], "little", signed=True)
        first = len(end) - 12 - length
        if (
            len(end) < 16
            or length < 0
            or first < 4
            or bytes(end[-4:]) != MAGIC
            or bytes(end[first - 4 : first]) != MAGIC
        ):
            raise ValueError("it is damaged or too large")
        if any(end[-8:-4]):
            raise UnsupportedError("the footer of the Puffin file is compressed", file=name)
        blobs: list[dict[str, Any]] = json.loads(bytes(end[first:-12]))["blobs"]
        for blob in blobs:
            if not (4 <= blob["offset"] <= blob["offset"] + blob["length"] <= size - 16 - length):
                raise ValueError("a blob lies outside of the file")
        return blobs
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise CorruptFileError(f"the footer of the Puffin file cannot be read: {error}", file=name) from None


def _is_own(blob: Mapping[str, Any]) -> bool:
    return blob.get("type") == BLOB and isinstance(blob.get("properties"), dict) and "part" in blob["properties"]


def check_registers(table: Any) -> None:
    """Raise :class:`OptionError` or :class:`UnsupportedError` for a table whose metadata cannot name a catalog."""
    if hasattr(table, "plan_files") or type(table.catalog).__name__ == "NoopCatalog":
        raise OptionError(
            "the table's metadata must name the catalog of keys: give the table as a catalog of pyiceberg loads it, "
            "not a scan, and not a table that was opened by its metadata file"
        )
    if table.metadata.format_version > 2:
        raise UnsupportedError(
            f"the table has version {table.metadata.format_version} of the format, which pyiceberg does not write"
        )


class NewPuffin(Place):
    """The Puffin file that will have a catalog. Its parts lie in a folder of this machine until all are there."""

    def __init__(
        self, table: Any, before: PuffinPlace | None, keys: Sequence[Any], storage_options: Mapping[str, Any] | None
    ) -> None:
        """``before``: the file with the catalog that is updated. ``keys``: the key columns."""
        self._file = f"{CATALOG}{new_name('')[1:-8]}.stats"
        self._uri = str(table.location_provider().new_metadata_location(self._file))
        super().__init__(plain_place(self._uri).rpartition("/")[0], storage_options)
        self._folder, self.name = self.root, self.root_name
        self._table, self._before, self._fields = table, before, [key for key in keys if isinstance(key, int)]
        self._made_in = TemporaryDirectory(prefix="pyparq-")
        self._made = Place(self._made_in.name)

    def begin(self) -> None:
        self._made.begin()

    def sink(self, name: str) -> Sink:
        return self._made.sink(name)

    def remove(self, name: str) -> None:
        self._made.remove(name)

    def checked(self, part: Part) -> CheckedSource:
        return self._made.checked(part) if self._before is None or not part.start else self._before.checked(part)

    def put(self, head: Head, stale: Collection[str] = ()) -> None:
        """Write the file, and make the table name it. Raises :class:`WriteConflictError` if another writer has changed
        the table at the same time."""
        assert head.table is not None
        snapshot = self._table.snapshot_by_id(head.table[1])
        known = next((s for s in self._table.metadata.statistics if s.snapshot_id == snapshot.snapshot_id), None)
        begun, blobs = self._of_others(known)
        about = {"snapshot-id": snapshot.snapshot_id, "sequence-number": snapshot.sequence_number or 0}

        def described(part: str, offset: int, length: int) -> dict[str, Any]:
            place = {"offset": offset, "length": length, "properties": {"part": part}}
            return {"type": BLOB, "fields": self._fields, **about, **place}

        sink, moved = super().sink(self._file), dict[str, Part]()
        try:
            sink.write([begun])
            for part in head.parts:
                moved[part.name] = replace(part, start=sink.position)
                blobs.append(described(part.name, sink.position, part.size))
                source = self.checked(part)
                for start in range(0, part.size, PIECE):
                    sink.write(source.read_ranges([(start, min(PIECE, part.size - start))]))
            previous = () if self._before is None else (self._before.file,)
            data = _moved(replace(head, previous=previous), moved).to_bytes()
            blobs.append(described(HEAD, sink.position, len(data)))
            footer = json.dumps({"blobs": blobs, "properties": {"created-by": "pyparq"}}).encode()
            sink.write([data, MAGIC, footer, len(footer).to_bytes(4, "little"), bytes(4), MAGIC])
            size = sink.position
            sink.commit()
        except BaseException:
            sink.abort()
            raise
        self._register(known, {"snapshot-id": snapshot.snapshot_id, "statistics-path": self._uri,
                               "file-size-in-bytes": size, "file-footer-size-in-bytes": len(footer) + 16})  # fmt: skip
        named = {one.statistics_path.rpartition("/")[2] for one in self._table.metadata.statistics}
        for name in stale:  # readers may still use the file before this one
            if is_catalog(name) and name not in named:
                super().remove(name)
        self._made_in.cleanup()

    def _of_others(self, known: Any) -> tuple[bytes | memoryview, list[dict[str, Any]]]:
        """How the file begins: with the blobs of other engines that ``known``, the statistics of the snapshot, have."""
        if known is None or (is_catalog(known.statistics_path) and not known.blob_metadata):
            return MAGIC, []
        path = plain_place(known.statistics_path)
        name = shown(path)
        with closing(open_source(path, self._options if is_url(path) else None)) as source:
            blobs = [blob for blob in _blobs(end_of(source), source.size, name) if not _is_own(blob)]
            end = max((blob["offset"] + blob["length"] for blob in blobs), default=len(MAGIC))
            if known.key_metadata is not None:
                raise UnsupportedError("the statistics of the snapshot are encrypted", file=name)
            if end > MOST_OF_OTHERS:
                raise LimitError(f"the statistics of the snapshot have {end:,} bytes", file=name)
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
            super().remove(self._file)
            raise WriteConflictError(
                "another writer has changed the table meanwhile. Load the table and try again"
            ) from error


def _moved(head: Head, parts: Mapping[str, Part]) -> Head:
    """The catalog with its parts at these places."""
    segments = tuple(replace(segment, part=parts[segment.part.name]) for segment in head.segments)
    bounds = None if head.bounds is None else parts[head.bounds.name]
    return replace(head, files=parts[head.files.name], bounds=bounds, segments=segments)
