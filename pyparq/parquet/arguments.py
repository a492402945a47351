"""pyarrow's arguments as pyparq's: sources and targets, options, filters, and partitions: which names and types the
folders of a dataset give its columns."""

from __future__ import annotations

import operator as compare
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from inspect import signature
from typing import Any

from pyparq.arrow.column import Column
from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.table import Batch, Table
from pyparq.datasets.data_files import DataFile, folders_between
from pyparq.datasets.dataset import Dataset
from pyparq.datasets.partitions import NULL, HiveFolders, declared_column, escaped, unescaped
from pyparq.datasets.write.partition_split import PartitionNames
from pyparq.errors import DataError, OptionError, UnsupportedError
from pyparq.filters.given import ArrowTuples
from pyparq.format.types import DataType, Field, Schema
from pyparq.io.locations import StorageOptions
from pyparq.io.locations import located as on_system
from pyparq.limits import Limits
from pyparq.option_checks import refuse_unknown

# ---- sources and targets


def located(where: Any, filesystem: Any) -> tuple[Any, Any]:
    """A path, URL or file, and the storage options for it. ``filesystem``: ``None``, or what
    :func:`pyparq.io.locations.located` takes.
    """
    if filesystem is None:
        return [_plain(one) for one in where] if isinstance(where, (list, tuple)) else _plain(where), None
    if isinstance(filesystem, StorageOptions):
        return where, filesystem
    if hasattr(where, "read") or hasattr(where, "write"):
        raise ValueError("filesystem passed but specified path is file-like, so there is nothing to open")
    place, options = on_system(where, filesystem)
    return _plain(place) if isinstance(filesystem, str) else place, options


def _plain(where: Any) -> Any:
    """A source as pyparq takes it: Buffers become memory, paths have ``~`` expanded."""
    if isinstance(where, str) or hasattr(where, "__fspath__"):
        path = os.fspath(where)
        return os.path.expanduser(path.removeprefix("fsspec+")) if isinstance(path, str) else path
    if hasattr(where, "to_pybytes") and not hasattr(where, "read"):
        return memoryview(where)
    return where


def check_source(source: Any, buffer_size: int = 0) -> None:
    """Raise :class:`TypeError` for what is no source, and :class:`ValueError` for a buffer of negative size."""
    if source is None or isinstance(source, (int, float)):
        raise TypeError(f"a source must be a path, a buffer or a file, not {type(source).__name__}")
    if buffer_size < 0:
        raise ValueError("Buffer size must be larger than zero")


def is_folder(where: Any) -> bool:
    return isinstance(where, (str, bytes)) and os.path.isdir(where)


def files_in(folder: str, ignored: Sequence[str]) -> list[str]:
    """All files below a folder, but for those with a name on their way that begins with one of ``ignored``."""
    found, prefixes = list[str](), tuple(ignored)
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(prefixes))
        found += [os.path.join(place, name) for name in sorted(names) if not name.startswith(prefixes)]
    return found


# ---- options

_TUNING_OF_READS = {
    "memory_map", "buffer_size", "pre_buffer", "thrift_string_size_limit", "thrift_container_size_limit", "metadata",
    "common_metadata",
}  # fmt: skip
"""Arguments of reads that only tune pyarrow, tell it what pyparq finds itself, or bound the footer of one file."""


def check_tuning(maker: Callable[..., None], tuning: dict[str, Any]) -> None:
    """Raise :class:`TypeError` for arguments that pyarrow does not have either. ``maker`` has the others."""
    if tuning:
        refuse_unknown(tuning, _TUNING_OF_READS, {}, [*signature(maker).parameters])


def check_footer(file: Any, tuning: dict[str, Any]) -> None:
    """Raise :class:`OSError` for a footer with longer texts or lists than pyarrow's limits allow."""
    text, items = tuning.get("thrift_string_size_limit"), tuning.get("thrift_container_size_limit")
    if text is None and items is None:
        return
    footer = file.metadata.raw
    pairs = footer.key_value_metadata or ()
    texts = [len(value) for pair in pairs for value in (pair.key, pair.value or "")]
    lists = [len(footer.schema), len(pairs), len(footer.row_groups)]
    for limit, sizes in ((text, texts), (items, lists)):
        if limit is not None and max(sizes, default=0) > limit:
            raise OSError("Couldn't deserialize thrift: TProtocolException: Exceeded size limit")


def read_options(
    coerce_int96_timestamp_unit: str | None = None,
    decryption_properties: Any = None,
    schema_depth_limit: int | None = None,
) -> dict[str, Any]:
    """Options of :class:`pyparq.ReadOptions`. Checksums are always verified: it costs little."""
    made: dict[str, Any] = {"coerce_int96_timestamp_unit": coerce_int96_timestamp_unit or "ns"}
    if decryption_properties is not None:
        made["decryption"] = own_keys(decryption_properties)
    if schema_depth_limit is not None:
        made["limits"] = Limits(max_schema_depth=schema_depth_limit - 1)  # pyarrow counts the root
    return made


def own_keys(properties: Any) -> Any:
    """Properties of encryption. Raises :class:`TypeError` for pyarrow's, which do not give their keys away."""
    if is_pyarrows(properties):
        raise TypeError(f"{type(properties).__name__} of pyarrow: make it with pyparq.parquet.encryption")
    return properties


_TUNING_OF_WRITES = {
    "write_batch_size", "writer_engine_version", "use_compliant_nested_type", "use_content_defined_chunking", "version",
    "flavor", "coerce_timestamps", "allow_truncated_timestamps",
}  # fmt: skip
"""Arguments of writes that only tune pyarrow, or that are obeyed before."""
_SAME = {
    "use_dictionary", "compression", "compression_level", "data_page_size", "data_page_version", "column_encoding",
    "dictionary_pagesize_limit", "store_schema", "write_page_index", "write_page_checksum", "sorting_columns",
    "write_time_adjusted_to_utc", "max_rows_per_page", "bloom_filter_options",
}  # fmt: skip
_RENAMED = {"encryption_properties": "encryption", "use_deprecated_int96_timestamps": "int96_timestamps"}


def write_options(given: dict[str, Any], columns: Sequence[Any]) -> dict[str, Any]:
    """Options of :class:`pyparq.WriteOptions` for pyarrow's arguments of a writer. ``columns``: their fields.

    Raises :class:`OptionError` for unknown ones.
    """
    names = [field.name for field in columns]
    left = {name: value for name, value in given.items() if name not in _TUNING_OF_WRITES}
    _check_chunking(given.get("use_content_defined_chunking", False))
    _check_blooms(left.get("bloom_filter_options") or {})
    if left.get("data_page_version", "1.0") not in ("1.0", "2.0"):
        raise OptionError(f"Unsupported Parquet data page version: {left['data_page_version']}")
    for name in ("dictionary_pagesize_limit", "data_page_size", "max_rows_per_page"):
        if not isinstance(left.get(name), (int, type(None))):
            raise TypeError(f"{name} must be a number, not {left[name]!r}")
    if "compression" in left:
        left["compression"] = _codecs(left["compression"], names)
    codec = str(left.get("compression", "")).lower()
    if codec.startswith("lz4"):
        left.pop("compression_level", None)  # pyarrow takes it
    if codec in ("none", "uncompressed") and left.get("compression_level") is not None:
        raise OptionError("uncompressed data has no compression level")
    own_keys(left.get("encryption_properties"))
    _check_encodings(left)
    made: dict[str, Any] = {
        "store_schema": True,
        "decimal_storage": "smallest" if left.pop("store_decimal_as_integer", False) else "fixed",
        "write_statistics": left.pop("write_statistics", True),
        "format_version": 1 if given.get("version") == "1.0" else 2,
    }
    if any(str(field.type).startswith("dictionary") for field in columns):
        left.setdefault("dictionary_pagesize_limit", 1 << 30)  # all entries come back
    refuse_unknown(left, {*_SAME, *_RENAMED}, {}, ["write_statistics", "store_decimal_as_integer"])
    return made | {_RENAMED.get(name, name): value for name, value in left.items() if value is not None}


def _check_chunking(given: Any) -> None:
    """Raise what pyarrow raises for wrong options, though pages are not cut by contents."""
    if not isinstance(given, (bool, dict)):
        raise TypeError(f"use_content_defined_chunking must be True, False or a dict, not {given!r}")
    if isinstance(given, dict):
        sizes = {"min_chunk_size", "max_chunk_size"}
        for what, names in (("Unknown", given.keys() - sizes - {"norm_level"}), ("Missing", sizes - given.keys())):
            if names:
                raise OptionError(f"{what} options in 'use_content_defined_chunking': {names}")
        if given["max_chunk_size"] <= given["min_chunk_size"]:
            raise OptionError("max_chunk_size must be greater than min_chunk_size")


def _check_encodings(given: dict[str, Any]) -> None:
    """Raise what pyarrow raises where a column has an encoding and a dictionary."""
    encodings, dictionaries = given.get("column_encoding"), given.get("use_dictionary", True)
    if not isinstance(encodings, (dict, str, type(None))):
        raise TypeError("'column_encoding' should be a dictionary or a string")
    named = encodings if isinstance(encodings, dict) else ()
    if encodings and (dictionaries is True or any(name in named for name in dictionaries or ())):
        raise OptionError("To use 'column_encoding' set 'use_dictionary' to False")


def _check_blooms(given: Any) -> None:
    if not isinstance(given, dict):
        raise TypeError(f"'bloom_filter_options' must be a dictionary, not {given!r}")
    for column, options in given.items():
        for name, kind, most, words in (("ndv", int, 1 << 64, "greater than zero"), ("fpp", float, 1, "in (0.0, 1.0)")):
            value = options.get(name) if isinstance(options, dict) else None
            said = f"'bloom_filter_options:{name}' for column {column!r} must be"
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{said} {'an int' if kind is int else 'a float'}, not {value!r}")
            if value is not None and not 0 < value < most:
                raise OptionError(f"{said} {words}, got {value}")


def _codecs(given: Any, names: Sequence[str]) -> Any:
    """``None`` is no compression. So have columns that a dict does not name."""
    if isinstance(given, dict):
        others = {(name,): "none" for name in names if name not in given}
        return others | {name: codec or "none" for name, codec in given.items()}
    return "none" if given is None else given


# ---- filters


def is_pyarrows(given: Any) -> bool:
    """Whether this is an object of pyarrow's: an expression, where filters are given."""
    return type(given).__module__.startswith("pyarrow")


def given_filters(filters: Any) -> Any:
    """Lists of tuples, as pyarrow allows them and with its meaning. Raises :class:`ValueError` for others. pyarrow's
    expressions stay as they are."""
    if filters is None or is_pyarrows(filters) or isinstance(filters, ArrowTuples):
        return filters
    if not filters or not isinstance(filters, (list, tuple)):
        raise ValueError("Malformed filters: a list of tuples is needed, or a list of such lists")
    groups = [[filters]] if isinstance(filters[0], str) else [filters] if isinstance(filters[0], tuple) else filters
    for group in groups:
        for test in group:
            if not isinstance(test, (tuple, list)) or len(test) != 3:
                raise ValueError(f"Malformed filters: {test!r} is not (column, operator, value)")
            if test[1] not in (*_COMPARISONS, "in", "not in"):
                raise ValueError(
                    f'"{test[1]}" is not a valid operator in predicates, such as {(test[0], "==", test[2])}'
                )
    # Text as a collection stands for its letters, as in pyarrow.
    return ArrowTuples([[(n, op, list(v) if op in ("in", "not in") else v) for n, op, v in group] for group in groups])


def check_values(filters: Any) -> None:
    """Raise :class:`NotImplementedError` for a comparison with a collection, where rows are read."""
    for name, operator, value in (test for group in getattr(filters, "groups", ()) for test in group):
        if operator not in ("in", "not in") and isinstance(value, (set, list, tuple, frozenset)):
            raise NotImplementedError(f"{(name, operator, value)}: only 'in' and 'not in' take a collection")


def filters_to_expression(filters: Any) -> Any:
    """Lists of tuples as an expression of ``pyarrow.compute``: ANDs, joined by OR.

    Example::

        import pyparq.parquet as pq

        print(pq.filters_to_expression([("dest", "==", "LAX"), ("flight", "<", 10)]))
    """
    import pyarrow.compute as pc

    given = given_filters(filters)
    if is_pyarrows(given):
        return given
    check_values(given)
    groups = [[_expression(pc.field(name), *test) for name, *test in group] for group in given.groups]
    return reduce(compare.or_, [reduce(compare.and_, group) for group in groups])


_COMPARISONS = {"=": compare.eq, "==": compare.eq, "!=": compare.ne, "<": compare.lt, ">": compare.gt, "<=": compare.le,
                ">=": compare.ge}  # fmt: skip


def _expression(field: Any, operator: str, value: Any) -> Any:
    if operator in ("in", "not in"):
        found = field.isin(value)
        return found if operator == "in" else ~found
    return _COMPARISONS[operator](field, value)


# ---- partitions


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
        there = [text for text in texts if text is not None]
        numbers = bool(there) and all(_INTEGER.fullmatch(one) and -(1 << 31) <= int(one) < 1 << 31 for one in there)
        found = DataType("i" if numbers else "u")
        return declared_column(name, texts, DataType("i", dictionary=found) if self._dictionaries else found)


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
            names = [name for name in (text or "").split("/") if name not in ("", ".")]
            if ".." in names:
                raise DataError(f"the partition value {text!r} would lead out of the folder", column=column)
            return "/".join(names)
        from urllib.parse import quote

        return f"{escaped(column)}={NULL if text is None else quote(text, safe='')}"


def names_of(partition_cols: Any, partitioning: Any) -> tuple[list[str], str]:
    """The partition columns of a write, and the kind of its folders, of pyarrow's arguments. Raises
    :class:`UnsupportedError` for partitions in the names of files."""
    if partition_cols or partitioning is None:
        return list(partition_cols or ()), "hive"
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
