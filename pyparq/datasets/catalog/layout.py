"""The names of a catalog's files, and ``catalog.json``, which says what they hold.

``catalog.json`` is replaced last, so that a catalog is there as a whole or not at all. It names the other files with
their sizes and checksums. Those are never changed: an update writes new ones under new names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import posixpath
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyparq.errors import CorruptFileError, UnsupportedError

FOLDER = "_pyparq_catalog"
HEAD = "catalog.json"
VERSION = 1
"""Must grow with every change in the contents or the meaning of a catalog."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a catalog."""

    name: str
    size: int
    rows: int
    block: int
    """Bytes of each block that has a checksum."""
    checks: bytes = field(repr=False)
    """The CRC-32 of each block, four bytes each, little-endian."""
    tail: int = 0
    """Bytes at the end of the file with its footer and page indexes."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part with keys. Its hashes are sorted, and those of other segments of the column may lie between them."""

    part: Part
    column: int
    """Number of the key column."""
    bits: int
    """The upper bits of the XXH64 hashes that are stored."""
    low: int
    high: int
    """The smallest and the largest of the stored hashes."""


@dataclass(frozen=True, slots=True)
class Head:
    """What ``catalog.json`` states."""

    columns: tuple[tuple[str, ...], ...]
    """The paths of the key columns."""
    kinds: tuple[bytes, ...]
    """Footers without row groups: one for each kind of file."""
    files: Part
    bounds: Part | None
    segments: tuple[Segment, ...]
    num_files: int
    next_number: int
    """Number for the next file. Numbers are never used again."""
    partitions: Mapping[str, str] | None
    """The partition columns of folders called ``name=value``, with their types. ``None`` if folders do not agree."""
    kind_order: tuple[int, ...]
    """The kinds of the files, in the order in which they first occur in the dataset."""
    is_complete: bool
    """Whether no file of the dataset was left out."""
    previous: tuple[str, ...] = ()
    """Parts of the catalog before this one, which readers may still use."""
    checksum: str = ""
    """Of the contents: it tells one catalog from another."""

    @property
    def parts(self) -> list[Part]:
        bounds = [] if self.bounds is None else [self.bounds]
        return [self.files, *bounds, *(segment.part for segment in self.segments)]

    def to_bytes(self) -> bytes:
        """As it is stored."""
        stated = {
            "format": "pyparq catalog", "version": VERSION, "columns": self.columns,
            "kinds": [_text(zlib.compress(kind)) for kind in self.kinds],
            "files": _part_state(self.files), "bounds": None if self.bounds is None else _part_state(self.bounds),
            "segments": [{**asdict(segment), "part": _part_state(segment.part)} for segment in self.segments],
            "num_files": self.num_files, "next_number": self.next_number,
            "partitions": None if self.partitions is None else dict(self.partitions),
            "kind_order": self.kind_order, "is_complete": self.is_complete, "previous": self.previous,
        }  # fmt: skip
        return json.dumps({"checksum": _checksum(stated), "catalog": stated}, indent=1).encode()


def parse_head(data: bytes | memoryview, name: str) -> Head:
    """Raises :class:`CorruptFileError` for damage, and :class:`UnsupportedError` for a catalog of another version."""
    try:
        given = json.loads(bytes(data))
        stated, checksum = given["catalog"], given["checksum"]
        version = stated["version"]
        if _checksum(stated) != checksum:
            raise ValueError("its checksum does not fit its contents")
        if version != VERSION:
            raise UnsupportedError(
                f"the catalog has the form of another version of pyparq ({version}, not {VERSION}): make it anew with "
                "pyparq.index_dataset", file=name,
            )  # fmt: skip
        return replace(_head(stated), checksum=checksum)
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        raise CorruptFileError(f"the catalog is damaged: {error}", file=name) from None


def _head(stated: Mapping[str, Any]) -> Head:
    return Head(
        columns=tuple(tuple(path) for path in stated["columns"]),
        kinds=tuple(zlib.decompress(base64.b64decode(kind)) for kind in stated["kinds"]),
        files=_part(stated["files"]),
        bounds=None if stated["bounds"] is None else _part(stated["bounds"]),
        segments=tuple(Segment(**{**segment, "part": _part(segment["part"])}) for segment in stated["segments"]),
        num_files=stated["num_files"], next_number=stated["next_number"], partitions=stated["partitions"],
        kind_order=tuple(stated["kind_order"]), is_complete=stated["is_complete"],
        previous=tuple(map(_plain, stated["previous"])),
    )  # fmt: skip


def _part_state(part: Part) -> dict[str, Any]:
    return {**asdict(part), "checks": _text(part.checks)}


def _part(stated: Mapping[str, Any]) -> Part:
    return Part(**{**stated, "name": _plain(stated["name"]), "checks": base64.b64decode(stated["checks"])})


def _plain(name: str) -> str:
    """A name in the catalog's folder. A catalog may come from elsewhere, and name anything."""
    if name in ("", ".", "..") or posixpath.basename(name) != name or os.path.basename(name) != name:
        raise ValueError(f"{name!r} is not the name of a part")
    return name


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _checksum(stated: Any) -> str:
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def new_name(kind: str) -> str:
    """A name that no part has yet. It does not end as data files do: globs of other tools, ``**/*.parquet``, would take
    the part for data."""
    return f"{kind}-{secrets.token_hex(8)}.catalog"
