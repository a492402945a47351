"""Partitions: columns whose values are in the names of folders (``year=2024/city=Lima``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import take
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.folder_names import NULL, unescaped
from pyparq.datasets.partition_values import declared_column
from pyparq.errors import OptionError
from pyparq.format.types import DataType, Field
from pyparq.runtime.text import visible

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


_Folders = tuple[tuple[str, ...], tuple[str, ...]]
"""The folders above the root of a dataset that may be partitions, and those below it."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partition columns of a dataset, and the values of each file."""

    fields: tuple[Field, ...]
    columns: tuple[Column, ...]
    """The distinct combinations of values, one per row."""
    of_file: npt.NDArray[np.int64]
    """For each file its row in ``columns``."""

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    @property
    def num_combinations(self) -> int:
        return len(self.columns[0]) if self.columns else 1

    def spelled(self, names: Sequence[str]) -> Partitions:
        """The same with the columns spelled as in ``names``, where they differ by case only."""
        known = {name.lower(): name for name in names}
        fields = (replace(field, name=known.get(field.name.lower(), field.name)) for field in self.fields)
        return replace(self, fields=tuple(fields))

    def values(self, k: int, combination: int, num_rows: int) -> Column:
        """Partition column ``k`` of one combination, for ``num_rows`` rows."""
        column = self.columns[k]
        if column.type.kind in ("int", "uint", "float") and column.dictionary is None and column.null_count == 0:
            return Column(column.type, num_rows, None, (np.full(num_rows, column.values()[combination]),), 0)
        return take(column, np.full(num_rows, combination, np.int64))

    def values_of(self, k: int, combinations: npt.NDArray[np.int64], num_rows: npt.NDArray[np.int64]) -> Column:
        """Partition column ``k`` of several combinations, one after the other, each for its number of rows."""
        if len(combinations) and (combinations == combinations[0]).all():
            return self.values(k, int(combinations[0]), int(num_rows.sum()))
        return take(self.columns[k], combinations.repeat(num_rows))


NONE = Partitions((), (), np.zeros(0, np.int64))


class HiveFolders:
    """Folders called ``name=value`` whose types follow other rules, for example Spark's."""

    def column(self, name: str, texts: Sequence[str | None]) -> Column:
        """The values of a column from their texts. ``None`` is null."""
        raise NotImplementedError


def partitions_of(files: Sequence[DataFile], partitioning: Any, case_sensitive: bool = True) -> Partitions:
    """The partition columns of ``files``.

    ``partitioning``: ``"hive"`` takes folders called ``name=value`` and infers the types; a mapping of names to types
    or a schema declares the types of such folders; a list of names takes the folders as they are, one value each, and
    infers the types; a list of ``(name, type)`` pairs declares them; ``None`` takes no folder for a partition.
    ``case_sensitive=False``: folders called ``M=1`` and ``m=2`` are one column, as the declared name or the first is
    spelled.

    Inferred types: int32 or int64 if every value of the column is a plain integer, otherwise string. A value that is
    ``__HIVE_DEFAULT_PARTITION__`` is null. A :class:`HiveFolders` has rules of its own. Raises :class:`DataError` for a
    value that does not have its declared type, and :class:`OptionError` for files whose folders do not agree.
    """
    if partitioning is None:
        return Partitions((), (), np.zeros(len(files), np.int64))
    declared, plain = _declared(partitioning)
    spelling = None if case_sensitive else {name.lower(): name for name in declared}
    follows_others = isinstance(partitioning, HiveFolders)
    of_folders: dict[_Folders, dict[str, str | None]] = {}
    first: dict[_Folders, DataFile] = {}
    for file in files:
        key = file.above, file.folders
        if key not in of_folders:
            _check_text(file)
            first[key] = file
            above = () if follows_others else file.above
            of_folders[key] = _plain(file, plain) if plain is not None else _hive(file, above, spelling)
            if declared and plain is None:
                _check_spelling(of_folders[key], declared, file)
    names = list(declared) or plain or _names(list(of_folders.values()), list(first.values()))
    if not names:
        return Partitions((), (), np.zeros(len(files), np.int64))
    seen: dict[tuple[str | None, ...], int] = {}
    numbers = {
        folders: seen.setdefault(tuple(row.get(name) for name in names), len(seen))
        for folders, row in of_folders.items()
    }
    of_file = np.array([numbers[file.above, file.folders] for file in files], np.int64)
    combinations = list(seen)
    fields, columns = [], []
    for k, name in enumerate(names):
        texts = [values[k] for values in combinations]
        own = partitioning.column(name, texts) if isinstance(partitioning, HiveFolders) else None
        column = _column(name, texts, declared.get(name)) if own is None else own
        fields.append(Field(name, column.type, True))
        columns.append(column)
    return Partitions(tuple(fields), tuple(columns), of_file)


def _declared(partitioning: Any) -> tuple[dict[str, DataType | None], list[str] | None]:
    """Declared types by name, and the names in the order of the folders if these have no ``name=``."""
    if isinstance(partitioning, HiveFolders) or partitioning == "hive":
        return {}, None
    if isinstance(partitioning, str):
        raise OptionError(
            f'partitioning must be "hive", None, a list of names or names with types, not {partitioning!r}'
        )
    if isinstance(partitioning, (list, tuple)) and all(isinstance(name, str) for name in partitioning):
        return {}, list(partitioning)
    plain = isinstance(partitioning, (list, tuple)) and not isinstance(partitioning, Mapping)
    fields = parse_schema(partitioning).fields
    return {field.name: field.type for field in fields}, [f.name for f in fields] if plain else None


def _check_text(file: DataFile) -> None:
    """Raise :class:`OptionError` for folders whose names cannot be values of a string column."""
    try:
        "".join((*file.above, *file.folders)).encode("utf-8")
    except UnicodeEncodeError:
        raise OptionError(
            "the name of a folder is not UTF-8, so it cannot be the value of a partition column. Rename the folder, or "
            "give partitioning=None",
            file=visible(file.name),
        ) from None


def _hive(file: DataFile, above: Sequence[str], spelling: dict[str, str] | None) -> dict[str, str | None]:
    """The values by name. ``above``: folders above the root; for one name, the innermost counts. ``spelling``: the
    spelling of names in lower case; ``None`` if case matters."""
    found = dict(_values(above, spelling))
    inner: set[str] = set()
    for name, value in _values(file.folders, spelling):
        if name in inner:
            raise OptionError(
                f"two of the folders of the file are called {name}=: give partitioning=None", file=file.name
            )
        inner.add(name)
        found[name] = value
    return found


def _values(folders: Sequence[str], spelling: dict[str, str] | None) -> Iterator[tuple[str, str | None]]:
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            name = unescaped(name)
            name = name if spelling is None else spelling.setdefault(name.lower(), name)
            yield name, None if value == NULL else unescaped(value)


def _check_spelling(values: Mapping[str, Any], declared: Mapping[str, Any], file: DataFile) -> None:
    """Raise :class:`OptionError` for a declared name that a folder spells in another way. Its column would be null."""
    spelled = {name.lower(): name for name in values}
    for name in declared:
        other = spelled.get(name.lower())
        if name not in values and other is not None:
            raise OptionError(
                f"partitioning names the column {name!r}, but the folder is called {other}=: give "
                "case_sensitive=False, or the name as it is spelled",
                file=file.name,
            )


def _plain(file: DataFile, names: list[str]) -> dict[str, str | None]:
    if len(file.folders) < len(names):
        raise OptionError(
            f"the partitioning has the columns {', '.join(names)}, but the file lies below {len(file.folders)} folders",
            file=file.name,
        )
    return {
        name: None if folder == NULL else unescaped(folder) for name, folder in zip(names, file.folders, strict=False)
    }


def _names(rows: Sequence[Mapping[str, Any]], files: Sequence[DataFile]) -> list[str]:
    """``rows``: values by name, of all folders. ``files``: one of each."""
    first = rows[0] if rows else {}
    for row, file in zip(rows, files, strict=True):
        if row is not first and row.keys() != first.keys():
            same = {name.lower() for name in first} == {name.lower() for name in row}
            raise OptionError(
                f"the folders of the files have different partition columns: {_listed(first)} for "
                f"{files[0].name}, {_listed(row)} here. Give {'case_sensitive=False' if same else 'partitioning=None'}"
                ", or read the folders one by one",
                file=file.name,
            )
    return list(first)


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"


# ---- values --------------------------------------------------------------------------------------------------------


def _column(name: str, texts: Sequence[str | None], type_: DataType | None) -> Column:
    return _inferred(name, texts) if type_ is None else declared_column(name, texts, type_)


def _inferred(name: str, texts: Sequence[str | None]) -> Column:
    known = [text for text in texts if text is not None]
    if known and all(_INTEGER.fullmatch(text) for text in known):
        numbers = [None if text is None else int(text) for text in texts]
        extremes = [number for number in numbers if number is not None]
        if min(extremes) >= -(1 << 31) and max(extremes) < 1 << 31:
            return cast(column_from_list(numbers, name), DataType("i"), name)
        if min(extremes) >= -(1 << 63) and max(extremes) < 1 << 63:
            return cast(column_from_list(numbers, name), DataType("l"), name)
    return cast(column_from_list(list(texts), name), DataType("u"), name)
