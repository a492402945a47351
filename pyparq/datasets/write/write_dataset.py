"""``write_dataset``: data split by partitions into many files, committed together."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

from pyparq.arrow.ingest import in_pieces, ingest, ingest_later, stays_the_same
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.datasets.partitions import NULL, escaped
from pyparq.datasets.staging import Staging
from pyparq.datasets.write.commit import LocalTarget, StagedFiles
from pyparq.datasets.write.partition_split import SPARK_NAMES, PartitionNames, Splitter
from pyparq.datasets.write.rolling_files import FileLimits, Folders, MadeFile, RollingFiles, summary_files
from pyparq.datasets.write.store_commit import RemoteTarget, StagedObjects, StoreStaging
from pyparq.datasets.write.targets import MODES, Kept, Sources, StagedFile, Target, check_partitions
from pyparq.errors import OptionError, by_each
from pyparq.format.types import Schema
from pyparq.io.locations import located as on_system
from pyparq.io.sink import Sink
from pyparq.io.url import check_storage_options, is_url, local_path
from pyparq.option_checks import NOT_FOR_WRITING, keywords
from pyparq.options import WriteOptions, with_options
from pyparq.write.file import file_options
from pyparq.write.file_layout import WriteReport, WrittenFile
from pyparq.write.shredding import plan_with_shredding

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import WriteArguments


_TEMPLATE = "part-{i}-{id}.parquet"
_INSTEAD = by_each({
    "existing_data_behavior append overwrite exist_ok if_exists":
        'give mode="append", "overwrite" or "overwrite_partitions"',
    "format": "the format is Parquet, so leave it out", "partitioning": "give partition_cols",
    "metadata_collector": "the files are in the report that is returned; write_metadata=True writes _metadata",
})  # fmt: skip
"""Names that other libraries use for these options, and the advice to give."""


@keywords
def write_dataset(
    data: Any,
    path: Any,
    *,
    partition_cols: Sequence[str] | str = (),
    mode: str = "error",
    schema: Any = None,
    index: bool | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    max_open_files: int = 128,
    max_memory: int = 256 << 20,
    basename_template: str = _TEMPLATE,
    write_metadata: bool = False,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    **options: Unpack[WriteArguments],
) -> WriteReport:
    """Write data to a folder of Parquet files. All new files become visible together (docs/writing-datasets.md).

    ``data``: what :func:`write_table` takes; a stream or generator is written in bounded memory. It may be a
    :func:`pyparq.dataset` of the very folder that is overwritten. ``path``: the folder or its URL; it is made if it
    does not exist. ``partition_cols``: columns whose values become the names of folders, as Spark and Hive write them
    (``year=2024/city=Lima``); they are not in the files. ``mode``: ``"error"`` writes to a new or empty folder only;
    ``"append"`` adds files; ``"overwrite"`` replaces all Parquet files of the folder; ``"overwrite_partitions"``
    replaces those of the partitions that the data has; ``"overwrite_files"`` those that have a new file's name.
    ``schema``: the schema of the data, partition columns included; without it, types come from the data. ``index``: as
    in :func:`write_table`. ``max_rows_per_file``, ``max_bytes_per_file``: begin a new file there (the second is kept
    approximately). ``max_open_files``: files that are open at the same time. ``max_memory``: bytes of rows that wait
    for their partition's row group to fill. ``basename_template``: names of the files; ``{i}`` is a number and ``{id}``
    the same random text for all files of a call. ``write_metadata``: write ``_metadata`` (the footers of all files in
    the folder) and ``_common_metadata`` (the schema). ``force``: write even where Delta Lake, Iceberg or Hudi manages
    the folder. ``storage_options``, ``filesystem``: for a URL, as in :func:`pyparq.read_table`. ``options``: the fields
    of :class:`pyparq.WriteOptions`, listed below; they apply to each file.

    Data without rows make one empty file, unless there are files already.

    Raises :class:`pyparq.TargetExistsError` in mode ``"error"`` for a folder that is not empty,
    :class:`pyparq.WriteConflictError` where another write replaces files of the folder at the same time, or keeps the
    lock of the folder for ten seconds, and what :func:`write_table` raises. After an error the folder is as it was.

    Example::

        data = [{"year": 2024 + k % 2, "flight": k} for k in range(100)]
        pyparq.write_dataset(data, "by-year", partition_cols=["year"])
        pyparq.write_dataset(data[:10], "by-year", partition_cols=["year"], mode="append")
    """
    if isinstance(data, (str, os.PathLike)):
        raise OptionError(f"write_dataset() takes the data first and the folder second, but {data!r} is not data")
    if index is False and hasattr(data, "reset_index"):
        data = data.reset_index(drop=True)
    names = [partition_cols] if isinstance(partition_cols, str) else list(partition_cols)
    limits = FileLimits(max_rows_per_file, max_bytes_per_file, max_open_files, max_memory)
    path, storage_options = on_system(path, filesystem, storage_options)
    return write_folder(
        data, path, names, mode, limits, schema=schema, basename_template=basename_template,
        write_metadata=write_metadata, force=force, storage_options=storage_options, options=options,
    )  # fmt: skip


def write_folder(
    data: Any,
    path: Any,
    names: Sequence[str],
    mode: str,
    limits: FileLimits,
    *,
    schema: Any = None,
    basename_template: str = _TEMPLATE,
    write_metadata: bool = False,
    force: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    called: PartitionNames = SPARK_NAMES,
    sources: Callable[[], Sources] | None = None,
    options: WriteArguments,
) -> WriteReport:
    """As :func:`write_dataset`, all of the data or nothing. ``called``: how folders and files are called. ``sources``:
    see :func:`replace_sources`."""
    checked = _check(names, mode, basename_template, write_metadata, options)
    _check_limits(limits)
    target = _target(path, mode, storage_options, force)
    writing = _Write(target, names, limits, basename_template, checked, write_metadata, called)
    try:
        target.begin(writing.template)
        with writing as write:
            there = target.data_file()
            if there is not None and called is SPARK_NAMES and not force:  # pyarrow's need not name their columns
                check_partitions(there, names, mode, target.name)
            write.take(data, None if schema is None else parse_schema(schema))
            made = write.finish(mode == "overwrite" or there is None)
        target.sources = None if sources is None else sources()
        return _committed(target, made, writing)
    except BaseException:
        target.abort()
        raise


def replace_sources(
    data: Any,
    path: Any,
    sources: Callable[[], Sources],
    *,
    partition_cols: Sequence[str],
    schema: Any,
    force: bool,
    storage_options: Mapping[str, Any] | None,
    **options: Any,
) -> WriteReport:
    """Replace these files of a folder by ``data``, which was made from them, and no others.

    ``sources`` is asked when all of the data has been taken. The other parameters are those of :func:`write_dataset`.
    Raises :class:`pyparq.ChangedFileError` where one of the files has changed since, besides what
    :func:`write_dataset` raises."""
    limits, others = _split_options(options)
    return write_folder(
        data, path, partition_cols, "overwrite", limits, schema=schema, force=force, storage_options=storage_options,
        sources=sources, options=others,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StagedPart:
    """A file that a task has written. It can be pickled."""

    file: StagedFile
    num_rows: int
    num_bytes: int


def write_staged(
    data: Any,
    staging: Staging | StoreStaging,
    attempt: str,
    *,
    partition_cols: Sequence[str],
    schema: Any,
    even_empty: bool,
    prefix: str,
    options: Mapping[str, Any],
    storage_options: Mapping[str, Any] | None = None,
) -> list[StagedPart]:
    """What one task of a distributed write does: write ``data`` to files in ``staging``, which another process commits.

    ``attempt`` differs between tasks and between their attempts. ``even_empty``: one file for data without rows.
    ``prefix``: of the names of the files. ``options``: those of :func:`write_dataset` for each file.
    ``storage_options``: for a store. An error leaves incomplete files to the committer.
    """
    limits, others = _split_options(options)
    target: StagedFiles | StagedObjects
    if isinstance(staging, StoreStaging):
        target = StagedObjects(staging, attempt, storage_options)
    else:
        target = StagedFiles(staging, attempt)
    with _Write(target, partition_cols, limits, prefix + "-{i}-{id}.parquet", file_options(others)) as write:
        write.take(data, parse_schema(schema))
        made = write.finish(even_empty)
    return [StagedPart(target.staged(path), file.num_rows, file.num_bytes) for path, file in made]


def add_rows(
    target: Target, data: Any, schema: Any, partition_cols: Sequence[str], options: Mapping[str, Any]
) -> list[tuple[str, MadeFile]]:
    """Write more files to a target that another module commits. Their paths in the folder, and the files."""
    limits, others = _split_options(options)
    with _Write(target, partition_cols, limits, _TEMPLATE, file_options(others)) as write:
        write.take(data, parse_schema(schema))
        return write.finish(even_empty=False)


def check_write(schema: Any, partition_cols: Sequence[str], mode: str, options: Mapping[str, Any]) -> None:
    """Raise what :func:`write_staged` would raise, before anything is begun."""
    limits, others = _split_options(options)
    checked = _check(partition_cols, mode, _TEMPLATE, False, others)
    _check_limits(limits)
    plan_with_shredding(Splitter(parse_schema(schema), partition_cols).schema, checked)


def _split_options(options: Mapping[str, Any]) -> tuple[FileLimits, WriteArguments]:
    """The limits of files, and the options of each file."""
    names = [field.name for field in fields(FileLimits) if field.name in options]
    others = {name: value for name, value in options.items() if name not in names}
    return FileLimits(**{name: options[name] for name in names}), cast("WriteArguments", others)


class _Write:
    """One call: rows in, files out. Leaving it by an error discards files that are not complete."""

    def __init__(
        self,
        target: Target | StagedFiles | StagedObjects,
        names: Sequence[str],
        limits: FileLimits,
        template: str,
        options: WriteOptions,
        keep_footers: bool = False,
        called: PartitionNames = SPARK_NAMES,
    ) -> None:
        self.keep_footers = keep_footers
        self._called = called
        self._target = target
        self._names = names
        self._limits = limits
        self.template = template.replace("{id}", secrets.token_hex(8))
        self._options = options
        self.fsync = options.fsync
        self._counts: Counter[Folders] = Counter()
        self._paths: dict[Sink, str] = {}
        self._files: RollingFiles | None = None
        self._has_columns = True

    def __enter__(self) -> _Write:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None and self._files is not None:
            self._files.abort()

    def take(self, data: Any, schema: Schema | None) -> None:
        """All rows of the data, piece by piece where it is an iterable."""
        pieces = in_pieces(data)
        piece = data if pieces is None else next(pieces, [])
        source: list[Schema] = []
        use_threads = self._options.use_threads
        found, batches = ingest(piece, schema, source, use_threads)
        self._has_columns = bool(found.fields)
        splitter = Splitter(found, self._names, self._called)
        given = schema if schema is not None else source[0] if source else found
        kept = tuple([field for field in given.fields if field.name not in self._names])
        self._files = RollingFiles(
            replace(given, fields=kept), self._options, self._limits, self._new_sink, self.keep_footers
        )
        self._add(batches, splitter, self._files)
        while pieces is not None:
            if not stays_the_same(piece):
                self._files.own()
            del piece
            piece = next(pieces, None)
            if piece is None:
                return
            self._add(ingest_later(piece, found, schema is not None, use_threads), splitter, self._files)

    def _add(self, batches: Iterator[RecordBatch], splitter: Splitter, files: RollingFiles) -> None:
        for batch in batches:
            for folders, rows in splitter.split(batch):
                files.add(folders, rows)

    def finish(self, even_empty: bool) -> list[tuple[str, MadeFile]]:
        """Complete all files; their paths within the folder. ``even_empty``: without rows there is one empty file, in
        the folder of nulls if there are partitions: so readers find the columns, and later files lie as deep. Without
        columns there is nothing to find."""
        assert self._files is not None  # take() made it
        made = self._files.close()
        if not made and even_empty and self._has_columns:
            self._files.add_empty(tuple(f"{escaped(name)}={NULL}" for name in self._names))
        return [(self._paths[file.sink], file) for file in made]

    def _new_sink(self, folders: Folders) -> Sink:
        place = folders if self._called.in_each_folder else ()
        path = os.path.join(*folders, self.template.replace("{i}", format(self._counts[place], self._called.digits)))
        self._counts[place] += 1
        sink = self._target.sink(path, self.fsync)
        self._paths[sink] = path
        return sink


def _committed(target: Target, made: list[tuple[str, MadeFile]], writing: _Write) -> WriteReport:
    def summary(kept: Kept) -> dict[str, bytes]:
        return summary_files([(path, file.footer) for path, file in made], kept)

    replaced = target.commit([path for path, _ in made], writing.fsync, summary if writing.keep_footers else None)
    written = [WrittenFile(file.sink.name, file.num_rows, file.num_bytes) for _, file in made]
    files = sorted(written, key=lambda file: file.path)
    return WriteReport(target.name, tuple(files), tuple(replaced))


# ---- arguments -----------------------------------------------------------------------------------------------------


def _target(path: Any, mode: str, storage_options: Mapping[str, Any] | None, force: bool) -> Target:
    where = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else None
    if not where:
        raise OptionError(f"the target must be a folder's path or URL, not {path!r}")
    check_storage_options(storage_options)
    if is_url(where):
        return RemoteTarget(where, mode, storage_options, force)
    return LocalTarget(local_path(where) or where, mode, force)


def _check(
    names: Sequence[Any], mode: str, template: str, write_metadata: bool, options: Mapping[str, Any]
) -> WriteOptions:
    """The options of each file. Raises :class:`OptionError`."""
    checked = file_options(options, {**NOT_FOR_WRITING, **_INSTEAD})
    if mode not in MODES:
        raise OptionError(f"mode must be {', '.join(map(repr, MODES[:-1]))} or {MODES[-1]!r}, not {mode!r}")
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f"partition_cols must be a list of names, not {names!r}")
    if len(set(names)) != len(names):
        raise OptionError(f"partition_cols names a column twice: {names!r}")
    if mode == "overwrite_partitions" and not names:
        raise OptionError('mode="overwrite_partitions" needs partition_cols. Use mode="overwrite" to replace all files')
    fixed = template.replace("{id}", "").replace("{i}", "") if isinstance(template, str) else "/"
    if {*fixed} & {"/", os.sep, "{", "\0"} or "{i}" not in template or template.startswith((".", "_")):
        raise OptionError(f"basename_template must be a file name with {{i}} and no '.' or '_' in front: {template!r}")
    if write_metadata and checked.encryption is not None:
        raise OptionError("write_metadata would store statistics of encrypted columns in the clear. Leave it out")
    return checked


def _check_limits(limits: FileLimits) -> None:
    for name, value in asdict(limits).items():
        needed = name in ("max_open_files", "max_memory")
        if (value is None and needed) or (value is not None and (type(value) is not int or value < 1)):
            raise OptionError(
                f"{name} must be a whole number of at least 1{'' if needed else ', or None'}, not {value!r}"
            )


write_dataset.__doc__ = with_options(write_dataset.__doc__, WriteOptions)
