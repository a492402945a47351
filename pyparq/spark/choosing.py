"""Chooses the files that a compaction rewrites: small files, and files that are not in the wanted order.

A table of Spark's catalog gives a column's DEFAULT for files that do not have the column. A new file with nulls in its
place would say null for good, so jobs that replace files make new ones of files that have the same columns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pyparq.datasets.common_schema import COMPACTION, tree_of
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.dataset import dataset, files_of
from pyparq.datasets.scan import DatasetPlan
from pyparq.datasets.write.commit import complete_writes
from pyparq.datasets.write.targets import Sources, place_of
from pyparq.format.compression import LZO, codec_name
from pyparq.format.types import Schema
from pyparq.maintenance.kept_storage import ROW_METADATA, storage_kept
from pyparq.option_values import SortKey, sort_keys
from pyparq.read.footers.metadata import FileMetaData
from pyparq.read.footers.open_file import OpenFile
from pyparq.spark.options import keys_of


@dataclass(frozen=True)
class Columns:
    """The top-level columns of some files."""

    names: frozenset[str]
    """In lower case, unless the session tells names apart by case."""
    case_sensitive: bool
    described: bytes | None = field(default=None, compare=False)
    """Spark's own schema of the first of these files."""

    @staticmethod
    def of(file: OpenFile, case_sensitive: bool) -> Columns:
        names = (node.name for node in file.tree.root.children)
        return Columns(
            frozenset(name if case_sensitive else name.lower() for name in names),
            case_sensitive,
            file.key_values.get(ROW_METADATA.encode()),
        )

    def has(self, name: str) -> bool:
        """Whether there is a column of this name, or one that has the field of this dotted name."""
        name = name if self.case_sensitive else name.lower()
        return name in self.names or name.split(".")[0] in self.names

    def narrowed(self, plan: DatasetPlan, places: Collection[str]) -> DatasetPlan:
        """The plan of the files in ``places`` alone, which have these columns. Its rows have no others."""
        header = plan.header
        inner = {f.name for f in header.partitions}
        kept = [f for f in header.result.fields if f.name in inner or self.has(f.name)]
        metadata = {key: value for key, value in header.result.metadata.items() if key != ROW_METADATA.encode()}
        if self.described is not None:
            metadata[ROW_METADATA.encode()] = self.described
        if 0 < len(kept) < len(header.result.fields):
            names, tree = [f.name for f in kept], tree_of(header.schema)
            columns = [(name,) for name in names] if header.columns is None else header.columns
            own = [name for name in columns if tree.find(name).path[0] in names]
            header = replace(header, columns=own, result=Schema(tuple(kept), metadata))
        else:
            header = replace(header, result=replace(header.result, metadata=metadata))
        return replace(plan, header=header, files=tuple(f for f in plan.files if f.where in places)).trimmed()


def columns_of_files(
    folder: str, case_sensitive: bool, decryption: str | None, storage_options: Any
) -> dict[Columns, frozenset[str]]:
    """The absolute paths or URLs of the files of a folder, by their columns. Reads all footers."""
    ds = files_of(dataset(folder, decryption=keys_of(decryption), storage_options=storage_options))
    found: dict[Columns, list[str]] = {}
    for k, file in ds.open_all(range(len(ds.found.files))):
        found.setdefault(Columns.of(file, case_sensitive), []).append(place_of(ds.found.files[k]))
    return {columns: frozenset(places) for columns, places in found.items()}


def columns_that_occur(
    folder: str, case_sensitive: bool, decryption: str | None, storage_options: Any, many: int
) -> tuple[list[Columns], list[str], bool]:
    """The columns of the files of a folder, each once. A catalog that knows all files says which of them are alike:
    ``True`` then. Of more files than ``many`` it gives the places instead, for :func:`columns_of_places` in tasks."""
    ds = files_of(dataset(folder, decryption=keys_of(decryption), storage_options=storage_options))
    numbers, known = list(range(len(ds.found.files))), ds.known
    by_catalog = known is not None and known.are_all
    if known is not None and by_catalog:
        numbers = [k for k, _ in known.one_of_each(numbers)]
    elif len(numbers) > many:
        return [], [place_of(file) for file in ds.found.files], False
    return list(dict.fromkeys(Columns.of(file, case_sensitive) for _, file in ds.open_all(numbers))), [], by_catalog


def columns_of_places(
    places: Sequence[str], case_sensitive: bool, decryption: str | None, storage_options: Any
) -> list[Columns]:
    """The columns of some files, each once."""
    remote = storage_options if any("://" in place for place in places) else None
    keys = keys_of(decryption)
    ds = files_of(dataset(list(places), decryption=keys, storage_options=remote, partitioning=None, use_threads=False))
    return list(dict.fromkeys(Columns.of(file, case_sensitive) for _, file in ds.open_all(range(len(places)))))


def options_for(
    options: Mapping[str, Any], whole: Schema, own: Schema, without: Collection[str] = ()
) -> dict[str, Any]:
    """Write options that name columns of ``whole``, for files that have those of ``own`` alone. They keep the storage
    that ``own`` tells of; ``without``: columns that become names of folders."""
    missing = set(whole.names) - set(own.names)
    if missing:
        options = {name: _without(value, name, whole, missing) for name, value in options.items()}
    return storage_kept(own, options, without)


_SORTS = ("sort_by", "sorting_columns")


def _without(value: Any, option: str, whole: Schema, missing: Collection[str]) -> Any:
    tree = tree_of(whole)

    def is_kept(name: Any) -> bool:
        node = tree.leaves[name] if isinstance(name, int) else tree.find(name)
        return node.path[0] not in missing

    if option in _SORTS:
        return [replace(key, name=_path(tree, key.name)) for key in sort_keys(value) if is_kept(key.name)]
    if option == "key_value_metadata":
        return value
    if isinstance(value, Mapping):
        return {name: inner for name, inner in value.items() if is_kept(name)}
    return [name for name in value if is_kept(name)] if isinstance(value, (list, tuple, set, frozenset)) else value


def _path(tree: Any, name: Any) -> Any:
    return tree.leaves[name].path if isinstance(name, int) else name


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

    def is_met(self, file: _File) -> bool:
        """Whether the rows of the file are in order."""
        if self.interleaved:
            return file.mark.get("zorder_by") == self._zorder()
        wanted = [dotted for dotted in map(_dotted, self.keys) if file.columns.has(dotted[0])]
        return all(order[: len(wanted)] == wanted for order in file.orders)

    def is_small(self, file: DataFile) -> bool:
        return file.size is not None and 4 * file.size < 3 * self.size

    def count(self, num_bytes: int) -> int:
        """How many files so many bytes make, about."""
        return max(-(-num_bytes // self.size), 1)


def _dotted(key: SortKey) -> tuple[str, bool, bool]:
    name = key.name if isinstance(key.name, str) else ".".join(key.name) if isinstance(key.name, tuple) else ""
    return name, key.descending, key.nulls_first


class _File:
    """A file, and what its footer says."""

    def __init__(self, file: DataFile, opened: OpenFile, case_sensitive: bool) -> None:
        metadata = FileMetaData(opened)
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        leaves = opened.tree.leaves
        numbers = opened.chunk_table(range(min(len(groups), 1)), leaves).numbers
        codecs = Counter(numbers.codec.ravel().tolist())
        self.file = file
        self.rows = metadata.num_rows
        self.orders = [[(n, bool(down), bool(first)) for n, down, first in g.sorting_columns] for g in groups]
        """Of each row group."""
        codec = codecs.most_common(1)[0][0] if codecs else LZO
        self.codec = None if codec == LZO else codec_name(codec).lower()  # LZO is only read
        self.blooms = {
            leaf.path for leaf, at in zip(leaves, numbers.bloom_filter_offset.ravel(), strict=False) if at > 0
        }
        """Columns with Bloom filters."""
        self.columns = Columns.of(opened, case_sensitive)
        self.mark: Mapping[str, Any] = {}
        """What an earlier compaction has written into it."""
        with suppress(ValueError):
            mark = json.loads(opened.key_values.get(COMPACTION, b"{}"))
            self.mark = mark if isinstance(mark, dict) else {}


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
    blooms: tuple[tuple[str, ...], ...] = ()
    """Columns for which some of them have Bloom filters."""


def choose(folder: str, wanted: Wanted, decryption: str | None, storage_options: Any, case_sensitive: bool) -> Choice:
    """What there is to do in a folder. Reads the footers of small files, and of all files where an order is wanted.
    Crashed writes are completed first."""
    complete_writes(folder)
    ds = files_of(dataset(folder, decryption=keys_of(decryption), storage_options=storage_options))
    by_folder: dict[tuple[str, ...], list[int]] = {}
    for k, file in enumerate(ds.found.files):
        by_folder.setdefault(file.folders, []).append(k)
    asked = [
        k
        for numbers in by_folder.values()
        for k in numbers
        if wanted.keys or (len(numbers) > 1 and wanted.is_small(ds.found.files[k]))
    ]
    opened = {k: _File(ds.found.files[k], file, case_sensitive) for k, file in ds.open_all(asked)}
    alike: dict[tuple[Any, ...], list[_File]] = {}
    for k in asked:
        alike.setdefault((opened[k].file.folders, opened[k].columns.names), []).append(opened[k])
    picked = [files for files in (_picked(files, wanted) for files in alike.values()) if files]
    chosen = [file for files in picked for file in files]
    codecs = Counter(file.codec for file in chosen)
    return Choice(
        tuple(_group(files, wanted) for files in picked),
        Sources.of(file.file for file in chosen),
        codecs.most_common(1)[0][0] if codecs else None,
        tuple(sorted({name for file in chosen for name in file.blooms})),
    )


def _picked(files: Sequence[_File], wanted: Wanted) -> list[_File]:
    """Of the files of one partition, those that are made anew; none where that would change nothing."""
    unordered = {id(file) for file in files if wanted.keys and not wanted.is_met(file)}
    picked = [file for file in files if id(file) in unordered or wanted.is_small(file.file)]
    if sum(file.rows for file in picked) == 0:
        return []
    if unordered:
        return picked
    runs = {file.mark.get("run") for file in picked}
    sizes = {file.mark.get("size") for file in picked}
    if len(runs) == 1 and None not in runs and sizes == {wanted.size}:
        return []  # made together, for files of this size: they are as few as they can be
    return picked if wanted.count(_bytes(picked)) < len(picked) else []


def _bytes(files: Sequence[_File]) -> int:
    return sum(file.file.size or 0 for file in files)


def _group(files: Sequence[_File], wanted: Wanted) -> Group:
    size = _bytes(files)
    return Group(
        files[0].file.folders, tuple(place_of(file.file) for file in files), size, sum(file.rows for file in files),
        wanted.count(size), files[0].columns,
    )  # fmt: skip
