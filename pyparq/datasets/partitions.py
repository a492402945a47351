"""Partitions: columns whose values are in the names of folders (``year=2024/city=Lima``), and the column of file names.

Names are escaped as Hive and Spark do it: ``a=x%2Fy``.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column
from pyparq.arrow.column_operations import VIEWS, as_views, fixed_column, null_column, pack_mask, take
from pyparq.arrow.ingest.cast import cast
from pyparq.arrow.ingest.from_python import column_from_list
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.data_files import DataFile
from pyparq.datasets.file_columns import Matching
from pyparq.errors import DataError, OptionError, ParquetError
from pyparq.format.types import DataType, Field
from pyparq.runtime.text import visible

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of a null, as Hive and Spark write it."""

_ESCAPED = re.compile(r"""["#%'*/:=?\\\x7f{\[\]^\x01-\x1f]""")
"""What Spark's ``ExternalCatalogUtils`` escapes on Linux."""
_CODE = re.compile("%([0-9A-Fa-f]{2})")


def escaped(text: str) -> str:
    """``text`` as it is written in the name of a folder."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def unescaped(name: str) -> str:
    """The original text of :func:`escaped`. Names in which all UTF-8 bytes are percent-encoded (by pyarrow) are
    understood too."""
    if "%" not in name:
        return name
    raw = _CODE.sub(lambda found: chr(int(found[1], 16)), name)
    if not any(int(code, 16) >= 0x80 for code in _CODE.findall(name)):
        return raw
    from urllib.parse import unquote

    return unquote(name, errors="surrogateescape")


_FLAGS = {"true": True, "false": False}
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DATE = re.compile(r"[+-]?\d{4,9}-\d\d-\d\d")
_MOMENT = re.compile(rf"({_DATE.pattern})[ T](\d\d:\d\d:\d\d)(?:\.(\d{{1,18}}))?")
"""Timestamps as :mod:`pyparq.datasets.write.partition_split` writes them: any year, any number of digits."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def declared_column(name: str, texts: Sequence[str | None], type_: DataType) -> Column:
    """The column of these texts. ``None`` is null. Raises :class:`DataError` for a text that is no value of the
    type."""
    if type_.dictionary is not None:
        return _dictionary(name, texts, type_, type_.dictionary)
    if type_.format in VIEWS:
        return as_views(declared_column(name, texts, DataType("u" if type_.kind == "string" else "z")), type_)
    try:
        values = [None if text is None else _parsed(text, type_) for text in texts]
        if type_.kind == "timestamp":
            return _of_ticks(values, type_)
        return cast(column_from_list(values, name), type_, name)
    except (ParquetError, ValueError, ArithmeticError) as error:
        raise DataError(f"a partition value is not a {type_}: {error}", column=name) from None


def _dictionary(name: str, texts: Sequence[str | None], type_: DataType, of: DataType) -> Column:
    """The distinct values, and the codes."""
    known = {text: k for k, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    codes = DataType(type_.format).numpy_dtype
    if len(known) > 1 << (8 * codes.itemsize - 1):
        raise DataError(f"{len(known):,} partition values are too many for the indices of {type_}", column=name)
    if not known:
        return null_column(type_, len(texts))
    mask = np.array([text is not None for text in texts], np.bool_)
    numbers = np.array([0 if text is None else known[text] for text in texts], codes)
    validity, nulls = pack_mask(None if mask.all() else mask)
    return Column(type_, len(texts), validity, (numbers,), nulls, (), declared_column(name, list(known), of))


def _of_ticks(ticks: Sequence[int | None], type_: DataType) -> Column:
    mask = np.array([tick is not None for tick in ticks], np.bool_)
    return fixed_column(type_, np.array([tick or 0 for tick in ticks], np.int64), None if mask.all() else mask)


def _parsed(text: str, type_: DataType) -> Any:
    """A value from its text. For a timestamp, its number in the type's unit."""
    kind = type_.kind
    if kind in ("int", "uint"):
        return int(text)
    if kind == "float":
        return _float(text)
    if kind == "bool":
        if text.lower() not in _FLAGS:
            raise ValueError(f"{text!r} is neither true nor false")
        return _FLAGS[text.lower()]
    if kind == "decimal":
        return Decimal(text)
    if kind == "date":
        return _date(text)
    if kind == "timestamp":
        return _ticks(text, type_.unit, bool(type_.timezone))
    if kind == "binary":
        return text.encode("utf-8", "surrogateescape")
    return text


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(f"{text} is too large")
    return value


def _date(text: str) -> Any:
    # numpy has years beyond Python's.
    return np.datetime64(text, "D") if _DATE.fullmatch(text) else dt.date.fromisoformat(text)


def _ticks(text: str, unit: str, zoned: bool) -> int:
    """Ticks since 1970 in ``unit``: of an instant in UTC (a text without a zone is in UTC too), or, if not ``zoned``,
    of a local time."""
    match = _MOMENT.fullmatch(text)
    if match is not None:
        seconds = Fraction(int(np.datetime64(f"{match[1]}T{match[2]}", "s").astype(np.int64)))
        if match[3]:
            seconds += Fraction(int(match[3]), 10 ** len(match[3]))
    elif _DATE.fullmatch(text):
        seconds = Fraction(int(np.datetime64(text, "D").astype(np.int64)) * 86_400)
    else:
        value = dt.datetime.fromisoformat(text)
        if value.tzinfo is not None and not zoned:
            raise ValueError(f"{text} has a time zone")
        since = (value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)) - _EPOCH
        seconds = Fraction(since // dt.timedelta(microseconds=1), 10**6)
    ticks = seconds * _TICKS[unit]
    if ticks.denominator != 1:
        raise ValueError(f"{text} has a finer unit")
    if not -(1 << 63) < ticks < 1 << 63:
        raise ValueError(f"{text} does not fit 64 bits in {unit}")
    return int(ticks)


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

    def of_some(self, numbers: npt.NDArray[np.int64]) -> Partitions:
        """The partition values of the files with these numbers. The columns keep their types."""
        used, of_file = np.unique(self.of_file[numbers], return_inverse=True)
        return Partitions(self.fields, tuple(take(column, used) for column in self.columns), of_file.astype(np.int64))

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


class HiveFolders:
    """Folders called ``name=value`` whose types follow other rules, for example Spark's."""

    above = False
    """Whether folders above the root are partitions, too."""
    by_file = False
    """Whether files of one folder may have different values."""

    def values(self, file: DataFile, spelling: dict[str, str] | None) -> dict[str, str | None]:
        """The texts of one file by name. ``spelling``: that of names in lower case; ``None`` if case matters."""
        return _hive_row(file, file.above if self.above else (), spelling)

    def names(self, rows: Sequence[Mapping[str, Any]], files: Sequence[DataFile]) -> list[str]:
        """The partition columns. ``rows``: the texts of all folders, ``files``: one file of each."""
        return _common_names(rows, files)

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
    rules = partitioning if isinstance(partitioning, HiveFolders) else None
    of_folders: dict[_Folders, dict[str, str | None]] = {}
    first: dict[_Folders, DataFile] = {}
    keys: list[_Folders] = list(map(attrgetter("above", "folders"), files))
    if rules is not None and rules.by_file:
        keys = [(file.above, (*file.folders, file.name)) for file in files]
    for file, key in zip(files, keys, strict=True):
        if key not in of_folders:
            _check_text(file)
            first[key] = file
            if rules is not None:
                of_folders[key] = rules.values(file, spelling)
            elif plain is not None:
                of_folders[key] = _plain_values(file, plain)
            else:
                of_folders[key] = _hive_row(file, file.above, spelling)
                if declared:
                    _check_spelling(of_folders[key], declared, file)
    found = list(of_folders.values()), list(first.values())
    names = rules.names(*found) if rules is not None else list(declared) or plain or _common_names(*found)
    if not names:
        return Partitions((), (), np.zeros(len(files), np.int64))
    seen: dict[tuple[str | None, ...], int] = {}
    numbers = {
        folders: seen.setdefault(tuple(row.get(name) for name in names), len(seen))
        for folders, row in of_folders.items()
    }
    of_file = np.array([numbers[key] for key in keys], np.int64)
    combinations = list(seen)
    fields, columns = [], []
    for k, name in enumerate(names):
        texts = [values[k] for values in combinations]
        own = None if rules is None else rules.column(name, texts)
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


def _hive_row(file: DataFile, above: Sequence[str], spelling: dict[str, str] | None) -> dict[str, str | None]:
    """The values by name. ``above``: folders above the root; for one name, the innermost counts. ``spelling``: the
    spelling of names in lower case; ``None`` if case matters."""
    found = dict(_hive_values(above, spelling))
    inner: set[str] = set()
    for name, value in _hive_values(file.folders, spelling):
        if name in inner:
            raise OptionError(
                f"two of the folders of the file are called {name}=: give partitioning=None", file=file.name
            )
        inner.add(name)
        found[name] = value
    return found


def _hive_values(folders: Sequence[str], spelling: dict[str, str] | None) -> Iterator[tuple[str, str | None]]:
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


def _plain_values(file: DataFile, names: list[str]) -> dict[str, str | None]:
    if len(file.folders) < len(names):
        raise OptionError(
            f"the partitioning has the columns {', '.join(names)}, but the file lies below {len(file.folders)} folders",
            file=file.name,
        )
    return {
        name: None if folder == NULL else unescaped(folder) for name, folder in zip(names, file.folders, strict=False)
    }


def _common_names(rows: Sequence[Mapping[str, Any]], files: Sequence[DataFile]) -> list[str]:
    """``rows``: values by name, of all folders. ``files``: one of each."""
    first = rows[0] if rows else {}
    for row, file in zip(rows, files, strict=True):
        if row is not first and row.keys() != first.keys():
            same = {name.lower() for name in first} == {name.lower() for name in row}
            raise OptionError(
                f"the folders of the files have different partition columns: {_joined(first)} for "
                f"{files[0].name}, {_joined(row)} here. Give {'case_sensitive=False' if same else 'partitioning=None'}"
                ", or read the folders one by one",
                file=file.name,
            )
    return list(first)


def _joined(names: Any) -> str:
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


def with_filenames(partitions: Partitions, files: Sequence[DataFile], name: str, case_sensitive: bool) -> Partitions:
    """The partition columns, and behind them the file's name: one combination of values per file."""
    if Matching(case_sensitive=case_sensitive).has(partitions.names, name):
        raise OptionError(f"the column of file names cannot be called {name!r}: a partition has this name")
    columns = [take(column, partitions.of_file) for column in partitions.columns]
    valid = [file.name.encode("utf-8", "backslashreplace").decode() for file in files]  # names on disk need not be
    columns.append(column_from_list(valid, name, DataType("u")))
    fields = (*partitions.fields, Field(name, DataType("u"), False))
    return replace(partitions, fields=fields, columns=tuple(columns), of_file=np.arange(len(files)))
