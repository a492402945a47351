"""Chooses the files that a compaction rewrites: small files, and files that are not in the wanted order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyparq.datasets.common_schema import COMPACTION
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import dataset, files_of
from pyparq.datasets.files import DatasetFiles
from pyparq.datasets.write.job_sources import Sources, place_of
from pyparq.option_values import SortKey
from pyparq.read.footers.metadata import FileMetaData
from pyparq.read.footers.open_file import OpenFile
from pyparq.spark.file_columns import Columns
from pyparq.spark.keys import keys_of


@dataclass(frozen=True)
class Wanted:
    """The wanted size and order of files."""

    size: int
    """Bytes of a file."""
    keys: tuple[SortKey, ...] = ()
    interleaved: bool = False
    """The keys are those of a Z-order."""

    def mark(self, run: str) -> str:
        return json.dumps({"run": run, "size": self.size, "zorder_by": self._zorder()})

    def _zorder(self) -> list[str]:
        return [str(key.name) for key in self.keys] if self.interleaved else []

    def is_met(self, facts: Facts) -> bool:
        """Whether the rows of the file are in order."""
        if self.interleaved:
            return facts.mark.get("zorder_by") == self._zorder()
        wanted = [dotted for dotted in map(_dotted, self.keys) if facts.columns.has(dotted[0])]
        return all(order[: len(wanted)] == wanted for order in facts.orders)


def _dotted(key: SortKey) -> tuple[str, bool, bool]:
    name = key.name if isinstance(key.name, str) else ".".join(key.name) if isinstance(key.name, tuple) else ""
    return name, key.descending, key.nulls_first


@dataclass(frozen=True)
class Facts:
    """What a file's footer says."""

    rows: int
    orders: list[list[tuple[str, bool, bool]]]
    """Of each row group."""
    mark: Mapping[str, Any]
    codec: str | None
    blooms: frozenset[str]
    """Columns with Bloom filters."""
    columns: Columns


@dataclass(frozen=True)
class Group:
    """Files of one partition that are made anew. All have the same columns."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    """Absolute paths or URLs."""
    num_bytes: int
    num_rows: int
    count: int
    """Files that they become, about."""
    columns: Columns


@dataclass(frozen=True)
class Choice:
    """What a compaction does. It can be pickled."""

    groups: tuple[Group, ...] = ()
    sources: Sources | None = None
    """The files of all groups, as they are now."""
    codec: str | None = None
    """What most of them are compressed with."""
    blooms: tuple[str, ...] = field(default=())
    """Columns for which some of them have Bloom filters."""


_CODECS = {"UNCOMPRESSED": "none", "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli",
           "LZ4_RAW": "lz4_raw"}  # fmt: skip


def choose(folder: str, wanted: Wanted, decryption: str | None, storage_options: Any, case_sensitive: bool) -> Choice:
    """What there is to do in a folder. Reads the footers of small files, and of all files where an order is wanted."""
    ds = files_of(dataset(folder, decryption=keys_of(decryption), storage_options=storage_options))
    by_folder: dict[tuple[str, ...], list[int]] = {}
    for k, file in enumerate(ds.found.files):
        by_folder.setdefault(file.folders, []).append(k)
    asked = [
        k
        for numbers in by_folder.values()
        for k in numbers
        if wanted.keys or (len(numbers) > 1 and _is_small(ds.found.files[k], wanted))
    ]
    facts = {k: _facts(file, case_sensitive) for k, file in ds.open_all(asked)}
    alike: dict[tuple[Any, ...], list[int]] = {}
    for folders, numbers in by_folder.items():
        for k in numbers:
            if k in facts:
                alike.setdefault((folders, facts[k].columns.names), []).append(k)
    groups, chosen = list[Group](), list[int]()
    for (folders, _), numbers in alike.items():
        picked = _picked(numbers, ds, facts, wanted)
        if picked:
            groups.append(_group(folders, picked, ds, facts, wanted))
            chosen += picked
    codecs = Counter(facts[k].codec for k in chosen)
    return Choice(
        tuple(groups),
        Sources.of(ds.found.files[k] for k in chosen),
        codecs.most_common(1)[0][0] if codecs else None,
        tuple(sorted({name for k in chosen for name in facts[k].blooms})),
    )


def _picked(numbers: Sequence[int], ds: DatasetFiles, facts: Mapping[int, Facts], wanted: Wanted) -> list[int]:
    """Of the files of one partition, those that are made anew; none where that would change nothing."""
    unordered = {k for k in numbers if wanted.keys and not wanted.is_met(facts[k])}
    picked = [k for k in numbers if k in unordered or _is_small(ds.found.files[k], wanted)]
    if sum(facts[k].rows for k in picked) == 0:
        return []
    if unordered:
        return picked
    runs = {facts[k].mark.get("run") for k in picked}
    sizes = {facts[k].mark.get("size") for k in picked}
    if len(runs) == 1 and None not in runs and sizes == {wanted.size}:
        return []  # made together, for files of this size: they are as few as they can be
    return picked if _count(picked, ds, wanted) < len(picked) else []


def _is_small(file: DataFile, wanted: Wanted) -> bool:
    return file.size is not None and 4 * file.size < 3 * wanted.size


def _count(numbers: Iterable[int], ds: DatasetFiles, wanted: Wanted) -> int:
    return max(-(-_bytes(numbers, ds) // wanted.size), 1)


def _bytes(numbers: Iterable[int], ds: DatasetFiles) -> int:
    return sum(ds.found.files[k].size or 0 for k in numbers)


def _group(
    folders: tuple[str, ...], numbers: Sequence[int], ds: DatasetFiles, facts: Mapping[int, Facts], wanted: Wanted
) -> Group:
    return Group(
        folders,
        tuple(place_of(ds.found.files[k]) for k in numbers),
        _bytes(numbers, ds),
        sum(facts[k].rows for k in numbers),
        _count(numbers, ds, wanted),
        facts[numbers[0]].columns,
    )


def _facts(file: OpenFile, case_sensitive: bool) -> Facts:
    metadata = FileMetaData(file)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    try:
        mark = json.loads(file.key_values.get(COMPACTION, b"{}"))
    except ValueError:
        mark = {}
    chunks = groups[0].columns if groups else []
    codecs = Counter(str(chunk.compression) for chunk in chunks)
    return Facts(
        metadata.num_rows,
        [[(name, bool(down), bool(first)) for name, down, first in group.sorting_columns] for group in groups],
        mark if isinstance(mark, dict) else {},
        _CODECS.get(codecs.most_common(1)[0][0]) if codecs else None,
        frozenset(chunk.path_in_schema for chunk in chunks if chunk.bloom_filter_offset is not None),
        Columns.of(file, case_sensitive),
    )
