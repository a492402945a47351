"""Keys and rows of a DataFrame in staging: sorted by key, so that each task reads those that its files may have.

Nothing is collected. Spark sorts by ranges, and the task of each range writes a file. It finds nulls and doubles, as
rows with one key are neighbours.
"""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.datasets.dataset import Dataset, dataset, key_filter
from pyparq.datasets.write.store_commit import StoreStaging
from pyparq.datasets.write.write_dataset import write_staged
from pyparq.errors import DataError, OptionError
from pyparq.filters.expression import Expression, Known, col
from pyparq.maintenance.table_change import facts_in
from pyparq.read.footers.metadata import FileMetaData
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan
from pyparq.runtime.tables import summed
from pyparq.spark.tasks import OF_WRITES, attempt, over_partitions
from pyparq.spark.writing import WriteJob, fitted, nullable_schema

Numbers = npt.NDArray[np.int64]

AT_ONCE = 1_000_000
"""Keys that a task holds and asks for together."""
TUPLES_AT_ONCE = 200_000
"""The same for keys of several columns, which are compared as values of Python."""
NUMBER = "pyparq.number"
"""The column of staged rows that has their numbers: no two rows have the same."""
MOST_NAMED = 10_000
"""Keys that the driver gets to know, to rule out files by them."""
NAMED_OF_RANGE = 1_000
"""The same of one range."""
MOST_RANGES = 64
"""Of keys, by which the driver rules out files."""
_OF_RANGE = 40
"""Bits of a number that count the rows of one range."""
OF_PIECES = {"compression": "snappy", "use_dictionary": False, "write_page_index": False, "write_statistics": False,
              "store_schema": True, "use_threads": False}  # fmt: skip
"""Options of files that are read once more before the commit."""
_OF_SORTED = {**OF_PIECES, "write_statistics": True, "row_group_size": 100_000}


@dataclass(frozen=True)
class StagedFile:
    """The rows of one range."""

    place: str
    number: int
    """Of the range."""
    num_rows: int
    num_bytes: int
    low: tuple[Any, ...] = ()
    """The smallest value of each column of the key. ``None`` for one that has NaN."""
    high: tuple[Any, ...] = ()
    few: tuple[tuple[Any, ...], ...] | None = None
    """The keys, each a tuple, if they are few."""


@dataclass(frozen=True)
class StagedRows:
    """Rows in staging, by the columns of their key."""

    key: tuple[str, ...]
    """The columns, as the files call them. All columns of the staged rows are called so."""
    files: tuple[StagedFile, ...]

    num_rows = summed("num_rows")

    def filters(self) -> Expression:
        """True for all rows with one of the keys, and for others: few keys are named, of many the bounds of ranges."""
        named = [key for file in self.files for key in file.few or ()]
        if self.files and len(named) == self.num_rows <= MOST_NAMED:
            columns = zip(self.key, zip(*named, strict=True), strict=True)
            return reduce(and_, (key_filter((name,), list(set(of))) for name, of in columns))
        step, found = -(-len(self.files) // MOST_RANGES), list[Expression]()
        for k in range(0, len(self.files), max(step, 1)):
            some, tests = self.files[k : k + step], list[Expression]()
            for place, name in enumerate(self.key):
                lows, highs = [file.low[place] for file in some], [file.high[place] for file in some]
                if None not in lows:
                    tests.append((col(name) >= min(lows)) & (col(name) <= max(highs)))
            found.append(reduce(and_, tests) if tests else Known(True))
        return reduce(or_, found) if found else Known(False)


@dataclass(frozen=True)
class _How:
    """How rows are staged. It is pickled."""

    schema: Any
    """Of the rows, as pyarrow has it, with the names of the files' columns."""
    key: tuple[str, ...]
    are_rows: bool
    """Each row has a key of its own, and gets a number. Otherwise there are keys alone, and doubles are left out."""


def staged_rows(frame: Any, names: Sequence[str], key: Sequence[str], job: WriteJob, *, are_rows: bool) -> StagedRows:
    """Write the rows of a DataFrame into the staging folder of a job. ``names``: of its columns in the files.

    ``are_rows``: raises :class:`DataError` for a key that is null or NaN, and for two rows with the same key. Otherwise
    they are keys: nulls and doubles are left out.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    for name in key:
        if isinstance(frame.schema[list(names).index(name)].dataType, (ArrayType, MapType, StructType, VariantType)):
            raise OptionError("keys must be single values, and the column is nested", column=name)
    arrow = nullable_schema(frame.schema)
    how = _How(arrow.with_metadata(None), tuple(key), are_rows)
    how = replace(how, schema=_renamed(how.schema, names))
    plain = frame.toDF(*(f"c{k}" for k in range(len(names))))
    by = [f"c{list(names).index(name)}" for name in key]
    if not are_rows:
        plain = plain.dropna(subset=by)
    ordered = plain.repartitionByRange(*by).sortWithinPartitions(*by)
    made = over_partitions(ordered, _write_range, job, how, errors=OF_WRITES)
    return StagedRows(tuple(key), tuple(file for files in made for file in files))


def _renamed(schema: Any, names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


def place_staged(staged: str, job: WriteJob) -> str:
    """Where a staged file can be read."""
    if isinstance(job.staging, StoreStaging):
        return posixpath.join(job.staging.folder, posixpath.basename(staged))
    return staged


# ---- tasks that stage ------------------------------------------------------------------------------------------------


def _write_range(batches: Any, job: WriteJob, how: _How) -> list[StagedFile]:
    """The rows of one range, which come in the order of their keys, as a file in staging."""
    import pyarrow as pa
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    schema = how.schema.append(pa.field(NUMBER, pa.int64())) if how.are_rows else how.schema
    bounds = _Bounds(len(how.key))
    rows = pa.RecordBatchReader.from_batches(schema, _checked(batches, how, schema, number << _OF_RANGE, bounds))
    made = write_staged(
        rows, job.staging, attempt(), partition_cols=(), schema=schema, even_empty=False, prefix="keys",
        options=_OF_SORTED, storage_options=job.storage_options,
    )  # fmt: skip
    return [
        StagedFile(place_staged(part.file.staged, job), number, part.num_rows, part.num_bytes, *bounds.found())
        for part in made
    ]


class _Bounds:
    """The smallest and the largest value of each column of a key, and the keys if they are few."""

    def __init__(self, columns: int) -> None:
        self._seen: list[list[Any]] = [[] for _ in range(columns)]
        self._few: list[tuple[Any, ...]] | None = []

    def add(self, key: Sequence[Any]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(key[0]):
            return
        for seen, column in zip(self._seen, key, strict=True):
            found = pc.min_max(column).as_py()
            is_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
            if is_nan or None in seen:
                seen[:] = [None, None]
                continue
            seen[:] = [min([*seen[:1], found["min"]]), max([*seen[1:], found["max"]])]

        if self._few is not None and len(self._few) + len(key[0]) <= NAMED_OF_RANGE:
            self._few += zip(*(column.to_pylist() for column in key), strict=True)
        else:
            self._few = None

    def found(self) -> tuple[Any, Any, Any]:
        few = None if self._few is None else tuple(self._few)
        return tuple(seen[0] for seen in self._seen), tuple(seen[1] for seen in self._seen), few


def _checked(batches: Any, how: _How, schema: Any, first: int, bounds: _Bounds) -> Iterator[Any]:
    """The batches with numbers, or without doubles."""
    import pyarrow as pa

    last: list[Any] | None = None
    for given in batches:
        if not len(given):
            continue
        batch = fitted(how.schema, given)
        key = [batch.column(name) for name in how.key]
        again = _as_before(key, last)
        last = [column.slice(len(column) - 1) for column in key]
        if how.are_rows:
            _check_keys(how.key, key, again)
        bounds.add(key if how.are_rows else [column.filter(pa.array(~again)) for column in key])
        if how.are_rows:
            numbers = pa.array(np.arange(first, first + len(batch)))
            first += len(batch)
            yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
        else:
            yield batch.filter(pa.array(~again))


def _as_before(key: Sequence[Any], last: Sequence[Any] | None) -> npt.NDArray[np.bool_]:
    """The rows that have the key of the row before them. ``last``: the key of the row before all of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    again = np.ones(len(key[0]), np.bool_)
    for k, column in enumerate(key):
        before = pa.concat_arrays([column.slice(0, 1) if last is None else last[k], column.slice(0, len(column) - 1)])
        again &= pc.equal(column, before).fill_null(False).to_numpy(zero_copy_only=False)
    if last is None:
        again[0] = False
    return again


def _check_keys(names: Sequence[str], key: Sequence[Any], again: npt.NDArray[np.bool_]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(names, key, strict=True):
        is_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
        if column.null_count or is_nan:
            raise DataError(f"a row has no key: it is {'null' if column.null_count else 'NaN'}", column=name)
    if again.any():
        row = int(np.flatnonzero(again)[0])
        shown = ", ".join(f"{name}={column[row].as_py()!r:.60}" for name, column in zip(names, key, strict=True))
        raise DataError(f"two rows have the same key: {shown}")


# ---- tasks that read them --------------------------------------------------------------------------------------------


class StagedReader:
    """Reads staged rows, for one task."""

    def __init__(self, staged: StagedRows, storage_options: Any) -> None:
        self._staged = staged
        self.key = staged.key
        places = [file.place for file in staged.files]
        remote = storage_options if any("://" in place for place in places) else None
        self._dataset: Dataset | None = None
        if places:
            self._dataset = dataset(places, storage_options=remote, partitioning=None, use_threads=False)
        self._whole: tuple[Any, Expression] | None = None

    def keys_within(self, file: OpenFile, values: Mapping[str, Any]) -> Iterator[tuple[Any, Expression]]:
        """The keys that may be in a file, as pyarrow's tables, so many at a time. With each a filter: true for rows
        that may have one of the keys, exactly these if the key is one column. ``values``: of the file's partition."""
        import pyarrow as pa

        of_partition = {name: value for name, value in values.items() if name in self.key}
        if self._dataset is None or None in of_partition.values():
            return
        most, names = AT_ONCE if len(self.key) == 1 else TUPLES_AT_ONCE, [(name,) for name in self.key]
        if self._is_small():
            yield self._all()
            return
        waiting, count = list[Any](), 0
        scan = self._dataset.scan(names, _within(file, self.key, of_partition))
        own = None if self._are_numbers() else _own_keys(file, self.key, of_partition)
        for batch in pa.RecordBatchReader.from_stream(scan):
            kept = batch if own is None else batch.filter(_among(batch, own))
            waiting.append(kept)
            count += len(kept)
            if count >= most:
                yield _chunk(waiting)
                waiting, count = [], 0
        if count:
            yield _chunk(waiting)

    def all_keys(self) -> Expression | None:
        """True for rows that have one of the keys. ``None`` for keys that are not asked for all at once."""
        return self._all()[1] if self._dataset is not None and self._is_small() else None

    def _all(self) -> tuple[Any, Expression]:
        import pyarrow as pa

        assert self._dataset is not None
        if self._whole is None:
            chunk = pa.table(self._dataset.scan([(name,) for name in self.key]).to_table()).combine_chunks()
            self._whole = chunk, _filter(chunk)
        return self._whole

    def rows(self, file: OpenFile, values: Mapping[str, Any], own: Any) -> tuple[Any, Numbers]:
        """The rows that have one of the keys ``own`` (pyarrow's table) of a file, or may have it, as pyarrow's table,
        and their numbers."""
        import pyarrow as pa

        assert self._dataset is not None
        of_partition = {name: value for name, value in values.items() if name in self.key}
        reader = pa.RecordBatchReader.from_stream(self._dataset.scan(None, _within(file, self.key, of_partition)))
        kept = [batch.filter(_among(batch, own)) for batch in reader]
        return numbered(pa.Table.from_batches(kept, reader.schema))

    def _is_small(self) -> bool:
        """Whether all keys are held for all files: sorted once, numbers are asked for quickly."""
        return self._staged.num_rows <= AT_ONCE and self._are_numbers()

    def _are_numbers(self) -> bool:
        """Whether the keys are one column of numbers, which filters hold as an array. Of others each is an object, so
        those that a file does not have are left out before."""
        assert self._dataset is not None
        return len(self.key) == 1 and self._dataset.schema.field(self.key[0]).type.kind in ("int", "uint", "float")


def _chunk(batches: Sequence[Any]) -> tuple[Any, Expression]:
    import pyarrow as pa

    chunk = pa.Table.from_batches(batches).combine_chunks()
    return chunk, _filter(chunk)


def _filter(chunk: Any) -> Expression:
    columns = ((name, chunk.column(name).combine_chunks()) for name in chunk.column_names)
    return reduce(and_, (key_filter((name,), column) for name, column in columns))


def _own_keys(file: OpenFile, key: Sequence[str], values: Mapping[str, Any]) -> Any:
    """The key columns of a file, those of its partition excepted, as pyarrow's table."""
    import pyarrow as pa

    names = [name for name in key if name not in values]
    return pa.table(Scan(file.fork(), names).to_table()) if names else pa.table({})


def _among(batch: Any, own: Any) -> Any:
    """A mask: rows of which each column of the key has a value that the same column of ``own`` has. True also where
    pyarrow does not compare them exactly."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = np.ones(len(batch), np.bool_)
    for name in own.column_names:
        column, other = batch.column(name), own.column(name)
        kinds = [pa.types.is_string(t) or pa.types.is_large_string(t) for t in (column.type, other.type)]
        numbers = [pa.types.is_integer(t) for t in (column.type, other.type)]
        if column.type == other.type or all(kinds) or all(numbers):
            try:
                values = other.cast(column.type)
            except pa.ArrowException:
                continue
            mask &= pc.is_in(column, value_set=values.combine_chunks()).to_numpy(zero_copy_only=False)
    return pa.array(mask)


def numbered(table: Any) -> tuple[Any, Numbers]:
    """Staged rows without their numbers, and these."""
    place = table.schema.get_field_index(NUMBER)
    return table.remove_column(place), table.column(place).to_numpy()


def _within(file: OpenFile, key: Sequence[str], values: Mapping[str, Any]) -> Expression | None:
    """True for keys within the bounds of a file."""
    tests: list[Expression] = [col(name) == value for name, value in values.items()]
    for column in facts_in(FileMetaData(file), file.tree).columns:
        if len(column.path) == 1 and column.path[0] in key and column.low is not None and column.high is not None:
            place = col(column.path[0])
            tests.append((place >= column.low) & (place <= column.high))
    return reduce(and_, tests) if tests else None


# ---- numbers of rows on their way to the driver ----------------------------------------------------------------------


def packed(numbers: Numbers) -> bytes:
    """Numbers of rows in ascending order, in little space: they are near each other."""
    return zlib.compress(np.diff(numbers, prepend=np.int64(0)).tobytes(), 1)


def unpacked(data: bytes) -> Numbers:
    return np.cumsum(np.frombuffer(zlib.decompress(data), np.int64))


def of_range(numbers: Numbers, number: int) -> Numbers:
    """Those of some ascending numbers that are of one range."""
    begin, end = np.searchsorted(numbers, [number << _OF_RANGE, (number + 1) << _OF_RANGE])
    return numbers[begin:end]
