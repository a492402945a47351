"""Partitions as pyarrow reads them: which names and types the folders of a dataset give its columns."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyparq.arrow.column import Column
from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.data_files import DataFile, folders_between
from pyparq.datasets.dataset import Dataset
from pyparq.datasets.partitions import NULL, HiveFolders, declared_column, escaped, unescaped
from pyparq.datasets.write.partition_split import PartitionNames
from pyparq.errors import OptionError, UnsupportedError
from pyparq.format.types import DataType, Field, Schema

_INTEGER = re.compile(r"-?[0-9]{1,18}")


class ArrowFolders(HiveFolders):
    """The rules of pyarrow's partitionings. A value that a file's path does not have is null."""

    def __init__(
        self, kind: str, types: Mapping[str, DataType | None], dictionaries: bool, above: bool, root: str | None
    ) -> None:
        """``kind``: ``"hive"``, ``"directory"`` or ``"filename"``. ``types``: of columns that are declared; with
        ``None`` they are found. ``dictionaries``: whether found types are dictionaries. ``above``: whether folders
        above the root count. ``root``: the folder of all files, if they were named one by one."""
        self._kind, self._types, self._dictionaries = kind, types, dictionaries
        self.above, self.by_file, self._root = above, kind == "filename", root

    def values(self, file: DataFile, spelling: dict[str, str] | None) -> dict[str, str | None]:
        if self._root is not None:
            file = replace(file, folders=folders_between(self._root, os.path.dirname(file.name)), above=())
        if self._kind == "hive":
            return super().values(file, spelling)
        folders: Sequence[str] = file.folders
        if self._kind == "filename":
            folders = file.name.replace("\\", "/").rpartition("/")[2].split("_")[:-1]
        texts = [None if folder == NULL else unescaped(folder) for folder in folders]
        return dict(zip(self._types, (*texts, *[None] * len(self._types)), strict=False))

    def names(self, rows: Sequence[Mapping[str, Any]], files: Sequence[DataFile]) -> list[str]:
        return list(self._types or dict.fromkeys(name for row in rows for name in row))

    def column(self, name: str, texts: Sequence[str | None]) -> Column:
        declared = self._types.get(name)
        if declared is not None:
            return declared_column(name, texts, declared)
        numbers = all(text is None or _is_int32(text) for text in texts) and any(text is not None for text in texts)
        found = DataType("i" if numbers else "u")
        return declared_column(name, texts, DataType("i", dictionary=found) if self._dictionaries else found)


def _is_int32(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -(1 << 31) <= int(text) < 1 << 31


class ArrowNames(PartitionNames):
    """How pyarrow calls the folders and files of a write."""

    in_each_folder = True
    digits = "d"

    def __init__(self, kind: str) -> None:
        """``kind``: ``"hive"`` (``year=2024``) or ``"directory"`` (``2024``)."""
        self._kind = kind

    def check(self, name: str, type_: DataType) -> None:
        if type_.kind not in ("time", "duration"):
            super().check(name, type_)

    def texts(self, column: Column, name: str) -> list[str | None]:
        import pyarrow as pa

        schema = Schema((Field(name, column.type, True),))
        values = Table(schema, [Batch([column], column.length, schema)]).to_arrow().column(0)
        if pa.types.is_duration(values.type):
            values = values.cast(pa.int64())
        texts: list[str | None] = values.cast(pa.string()).to_pylist()
        return texts

    def folder(self, column: str, text: str | None) -> str:
        if self._kind == "directory":
            return text or ""
        from urllib.parse import quote

        return f"{escaped(column)}={NULL if text is None else quote(text, safe='')}"


def names_of(partition_cols: Any, partitioning: Any) -> tuple[list[str], str]:
    """The partition columns of a write, and the kind of its folders, of pyarrow's arguments. Raises
    :class:`UnsupportedError` for partitions in the names of files."""
    if partition_cols:
        return list(partition_cols), "hive"
    if partitioning is None:
        return [], "hive"
    if isinstance(partitioning, (list, tuple)):
        return list(partitioning), "directory"
    if not hasattr(partitioning, "schema"):
        raise OptionError("partitioning needs names, or pyarrow.dataset.partitioning(schema)")
    kind = type(partitioning).__name__
    if kind == "FilenamePartitioning":
        raise UnsupportedError("pyparq writes no partitions into the names of files: give partition_cols")
    return [field.name for field in partitioning.schema], "hive" if kind == "HivePartitioning" else "directory"


def folder_rules(given: Any, place: Any, dictionaries: bool, root: str | None) -> Any:
    """pyarrow's argument ``partitioning`` as the one of :func:`pyparq.dataset`. ``place``: of the files, where a
    factory of pyarrow's looks. ``dictionaries``: whether ``"hive"`` makes dictionaries. ``root``: the folder of
    files that are named one by one."""
    above = isinstance(place, (list, tuple))  # of files that are named, pyarrow looks at the whole path
    if given is None:
        return None
    if isinstance(given, str):
        return ArrowFolders("hive", {}, dictionaries, above, root) if given == "hive" else given
    if isinstance(given, list):
        return ArrowFolders("directory", dict.fromkeys(given), False, above, root)
    kind = {"DirectoryPartitioning": "directory", "FilenamePartitioning": "filename"}.get(type(given).__name__, "hive")
    schema = getattr(given, "schema", None)
    if schema is None:
        kind = str(getattr(given, "type_name", kind))
        schema = _found_by(given, place)
    return ArrowFolders(
        kind, {field.name: field.type for field in schema_from_arrow(schema).fields}, False, above, root
    )


def _found_by(factory: Any, place: Any) -> Any:
    """The partition columns that a factory of pyarrow's finds in the folders."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    own = set(Dataset(place, partitioning=None).schema.names)
    whole = ds.dataset(place, format="parquet", partitioning=factory).schema
    return pa.schema([field for field in whole if field.name not in own])
