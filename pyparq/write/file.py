"""Writes a file: ``write_table`` and the streaming ``ParquetWriter``.

This drives the write path. Rows wait in a :class:`RowBuffer` until a row group is full. A :class:`RowGroupEncoder`
encodes the row group, and a :class:`FileLayout` stores it.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from pyparq.arrow.exchange import schema_from_arrow
from pyparq.arrow.ingest import in_pieces, ingest, ingest_later, stays_the_same
from pyparq.arrow.layouts import normal_schema
from pyparq.arrow.pandas_key import in_other_order
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.schema.from_text import schema as parse_schema
from pyparq.arrow.schema.hints import ARROW_SCHEMA
from pyparq.arrow.schema.ipc_write import stored_schema
from pyparq.encryption.material import sibling_name
from pyparq.encryption.writing import CLEAR_FILE, FileEncryption, check_properties, file_encryption
from pyparq.errors import DataError, OptionError, ParquetError, located
from pyparq.format import ttypes as tt
from pyparq.format.hybrid_calendar import ROW_METADATA
from pyparq.format.thrift_codec import deserialize
from pyparq.format.types import Schema
from pyparq.io.companion_files import material_stored
from pyparq.io.file_objects import not_its_own
from pyparq.io.locations import located as on_system
from pyparq.io.siblings import base_name, sibling_of
from pyparq.io.sink import Sink, open_sink
from pyparq.io.table_formats import check_target
from pyparq.option_checks import NOT_FOR_WRITING, keywords, methods_told
from pyparq.options import WriteOptions, with_options
from pyparq.runtime import fork_safety
from pyparq.write.column_plans import check_options, within_ordinals
from pyparq.write.external_sort import RUN_SHARE, ExternalSorter
from pyparq.write.file_layout import FileLayout, WriteReport, WrittenFile
from pyparq.write.row_groups import RowBuffer, RowGroup, RowGroupEncoder
from pyparq.write.schema_hint import text_key, text_value, without_notes, without_order
from pyparq.write.shredding import Planned, needs_rows, plan_with_shredding, shredded_batch

if TYPE_CHECKING:
    from typing import Unpack

    from pyparq.arguments import WriteArguments


@keywords
def write_table(
    data: Any,
    path: Any,
    *,
    schema: Any = None,
    index: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    force: bool = False,
    **options: Unpack[WriteArguments],
) -> WriteReport:
    """Write a table to one Parquet file. Returns what was written.

    ``data``: anything that speaks the Arrow PyCapsule interface (pyarrow, polars, duckdb, pandas >= 3, nanoarrow), a
    pandas DataFrame, a dict of numpy arrays or lists, a list of dicts or dataclasses (rows), or an iterable of tables,
    batches or rows, such as a generator. An iterable is written piece by piece, so memory use stays bounded. ``path``:
    a path, a URL, a writable binary file object, or the result of ``fsspec.open(url, "wb")``. An existing file at a
    path is replaced only when the new one is complete. With a file object, the offsets in the Parquet file are counted
    from its current position. ``schema``: the schema to write: data is cast as by :meth:`Table.cast`; without it, types
    come from the data. ``index``: ``False`` leaves out the index of a pandas DataFrame. ``storage_options``: options
    for the file system of a URL. ``filesystem``: a file system of fsspec or pyarrow or a store of obstore, where
    ``path`` is a path; or ``"obstore"`` or ``"fsspec"``, the library for a URL (docs/urls.md). ``force``: write even
    into a local folder that Delta Lake, Apache Iceberg, Apache Hudi or a stream of Spark manages. ``options``: the
    fields of :class:`pyparq.WriteOptions`, listed below.

    Raises :class:`DataError`, :class:`SchemaError` or :class:`UnsupportedError` for data that cannot be written, and
    :class:`OptionError` for invalid options. A file that exists at ``path`` is then unchanged.

    Example::

        data = {"id": [3, 1, 2], "city": ["Lima", "Kyoto", None]}
        pyparq.write_table(data, "cities.parquet", sort_by=["id"], bloom_filters=["city"], compression="zstd")
    """
    if isinstance(data, (str, os.PathLike)):
        raise OptionError(f"write_table() takes the data first and the target second, but {data!r} is not data")
    if index is False and hasattr(data, "reset_index"):
        data = data.reset_index(drop=True)
    with ParquetWriter(
        path, schema, storage_options=storage_options, filesystem=filesystem, force=force, **options
    ) as writer:
        writer._write(data, None, last=True)
        sink = writer._sink
    assert sink is not None
    assert writer._state is not None
    return WriteReport(sink.name, (WrittenFile(sink.name, writer._state.layout.num_rows, sink.position),))


_STALE = (ARROW_SCHEMA, ROW_METADATA, b"pyparq.indexes")
"""Metadata of tables that were read from a file, which describe the columns and indexes of that file. Spark believes
its own."""


class FileWriter:
    """Writes one file whose schema is known, from batches of that schema. Who has made it closes it, or discards it."""

    def __init__(self, sink: Sink, planned: Planned, schema: Schema, key_values: dict[str, str | bytes | None]) -> None:
        self.plan, self.shredded = planned
        self.sink = sink
        options = self.options = self.plan.options
        for key, value in (in_other_order(schema) if options.sort_by else schema).metadata.items():
            if key not in _STALE:
                key_values.setdefault(text_key(key), text_value(key, value))
        self.key_values = key_values
        self.encryption: FileEncryption = CLEAR_FILE
        if options.encryption is not None:
            self.encryption = file_encryption(options.encryption, self.plan.tree, base_name(sink.name))
        if self.encryption.material is not None:
            sibling_of(sink, "key material")  # raises an error if the target cannot store it
        self.layout = FileLayout(sink, self.plan, self.encryption, options.format_version)
        self.encoder = RowGroupEncoder(self.plan, self.layout, self.encryption)
        self.rows = RowBuffer(options.row_group_size, options.row_group_bytes)
        self._sorter: ExternalSorter | None = None
        """Has the rows that are too many to be sorted in memory."""
        self._is_open = True

    def add(self, batches: Iterable[RecordBatch], max_rows: int) -> None:
        """Append rows, in row groups of at most ``max_rows``. Some may wait."""
        self.rows.max_rows = max_rows
        for batch in batches:
            if self.shredded:
                batch = shredded_batch(batch, self.shredded)
            self.rows.add(batch)
            if self.encoder.sorts_input:
                self._spill()
                continue
            while self.rows.has_full_group:
                self.encoder.add(self.rows.take_group())
        self.rows.max_rows = self.options.row_group_size

    def add_group(self, group: RowGroup) -> None:
        """Append a row group, where the input is not sorted: no rows wait."""
        if self.shredded or self.encoder.sorts_input:
            self.add(group.batches, self.options.row_group_size)
            self.flush()
        else:
            self.encoder.add(group)

    def flush(self) -> None:
        """End the current row group, unless the whole input is sorted."""
        if self.rows.num_rows and not self.encoder.sorts_input:
            self.encoder.add(self.rows.take_all())
        self.encoder.wait_until_stored()

    def _spill(self) -> None:
        """Pass the waiting rows to the external sort, if they are too many for memory."""
        if self.rows.num_bytes * RUN_SHARE < self.options.sort_memory:
            return
        if self._sorter is None:
            secret = self.options.encryption is not None
            self._sorter = ExternalSorter(self.plan, self.options.sort_memory, secret=secret)
        for batch in self.rows.take_all().batches:
            self._sorter.add(batch)

    def finish(self) -> bytes:
        """Write the remaining rows and the footer, which is returned."""
        encoder, rows = self.encoder, self.rows
        if self._sorter is not None:
            self._finish_sort(self._sorter)
        if rows.num_rows and self._sorter is not None:
            encoder.add_ordered(rows.take_all())
        elif rows.num_rows and encoder.sorts_input:
            encoder.add_sorted(rows.take_all().batches)
        elif rows.num_rows:
            encoder.add(rows.take_all())
        encoder.wait_until_stored()
        if self.plan.hint is not None:
            self._add_arrow_schema(self.plan.hint)
        return self.layout.finish(self.key_values)

    def _finish_sort(self, sorter: ExternalSorter) -> None:
        """Write all row groups but the last, from rows that were sorted in parts."""
        for batch in self.rows.take_all().batches:
            sorter.add(batch)
        for batch in sorter.batches():
            self.rows.add(batch)
            while self.rows.has_full_group:
                self.encoder.add_ordered(self.rows.take_group())
        sorter.close()

    def _add_arrow_schema(self, hint: Schema) -> None:
        """Store the schema of the data. Arrow restores a table's metadata from it, too."""
        if ARROW_SCHEMA.decode() in self.key_values:
            return  # the caller's own
        hint = without_order(hint, self.plan.tree, self.encoder.reordered)
        hint = without_notes(hint, self.plan.tree, self.encryption.behind_clear_footer)
        pairs = {k.encode(): v.encode() if isinstance(v, str) else v or b"" for k, v in self.key_values.items()}
        self.key_values[ARROW_SCHEMA.decode()] = stored_schema(replace(hint, metadata=pairs))

    def commit(self) -> None:
        """Put the finished file in place."""
        material, sink = self.encryption.material, self.sink
        if material is None:
            sink.commit()
        else:
            with material_stored(sink, sibling_name(base_name(sink.name)), material, self.options.fsync):
                try:
                    sink.commit()
                except BaseException:
                    self.discard()  # on a full disk, this frees the room of the old sidecar
                    raise
        self._is_open = False

    def discard(self) -> None:
        """Stop, and leave nothing behind of a file that is not in place. A forked child leaves all to its parent."""
        if self.encoder.inherited:
            return
        self.encoder.drop()
        if self._sorter is not None:
            self._sorter.close()
        if self._is_open:
            self._is_open = False
            self.sink.abort()

    def _abandon(self) -> str | None:
        name = self.sink.name if self._is_open and not self.encoder.inherited else None
        self.discard()
        return name


_watched: set[weakref.ref[ParquetWriter | FileWriter]] = set()
"""Data of writers that are never closed are lost, so a warning names the file."""


def discard_at_exit(writer: FileWriter) -> None:
    """Discard the file if the program ends before it is closed."""
    _watched.add(weakref.ref(writer, _watched.discard))


@atexit.register
def _at_exit() -> None:
    for known in list(_watched):
        writer = known()
        name = None if writer is None else writer._abandon()
        if name is not None:
            _say(name)


def _say(name: str) -> None:
    text = f"pyparq: the writer of {name!r} was still open at exit: the file is incomplete, its rows are lost"
    with suppress(Exception):  # there may be no stderr any more
        print(text, file=sys.stderr, flush=True)


@methods_told
class ParquetWriter:
    """Writes a Parquet file in several steps. Use it in a ``with`` statement: an exception discards the file.

    Without ``schema``, the first data written sets the schema. Later data must fit it. Rows of several calls are
    collected until a row group is full (``row_group_size`` rows or ``row_group_bytes`` bytes). A local file appears
    under its name only when it is complete. ``options``: the fields of :class:`pyparq.WriteOptions`, listed below.

    A writer that is garbage-collected without being closed discards the file and gives a ``ResourceWarning``. If a
    writer is still open when the interpreter exits, a message on stderr names its file. An open writer cannot be used
    in a forked child process: every call there raises :class:`DataError`, and the file is not touched.

    Example::

        schema = pyparq.schema({"id": "int64", "city": "string?"})
        with pyparq.ParquetWriter("cities.parquet", schema, bloom_filters=["id"]) as writer:
            writer.write({"id": [1, 2], "city": ["Lima", None]})
            writer.write({"id": [3], "city": ["Kyoto"]})
    """

    @keywords
    def __init__(
        self,
        path: Any,
        schema: Any = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        force: bool = False,
        **options: Unpack[WriteArguments],
    ) -> None:
        if filesystem is not None:
            path, storage_options = on_system(path, filesystem, storage_options)
        self.options = file_options(options)
        self._footer: bytes | None = None
        self._metadata: tt.FileMetaData | None = None
        self._key_values: dict[str, str | bytes | None] = {}
        self._state: FileWriter | None = None
        self._failed = False
        self._inherited = False
        """This is a forked child, and the file its parent's."""
        self._source: list[Schema] = [] if schema is None else [_schema_of(schema)]
        self._schema = normal_schema(self._source[0]) if self._source else None
        self._told = self._schema is not None
        if self.options.key_value_metadata:
            self.add_key_value_metadata(self.options.key_value_metadata)
        self._sink: Sink | None = None
        if self._schema is not None:
            self._planned(self._schema)  # before anything is created
        check_target(path, force)
        self._sink = open_sink(path, self.options.fsync, storage_options)
        fork_safety.watch(self)
        _watched.add(weakref.ref(self, _watched.discard))
        try:
            if self._schema is not None and not needs_rows(self.options):
                self._begin(self._schema)
        except BaseException:
            self._discard()
            raise

    # ---- rows ----------------------------------------------------------------------------------------------------

    def write(self, data: Any, row_group_size: int | None = None) -> None:
        """Append rows. ``data`` may be anything that :func:`write_table` takes, generators included. With
        ``row_group_size`` these rows are written as separate row groups of at most that many rows.

        The data may be changed or freed afterwards. Data that does not fit the schema raises an error and leaves the
        writer unchanged. After any later failure :meth:`close` raises an error and discards the file.
        """
        self._write(data, row_group_size, last=False)

    def _write(self, data: Any, row_group_size: int | None, last: bool) -> None:
        """``last``: no more data follow before the file is closed, so the caller's data may stay in use."""
        if row_group_size is not None and (type(row_group_size) is not int or row_group_size < 1):
            raise OptionError(f"row_group_size must be a whole number of at least 1, not {row_group_size!r}")
        sink = self._open_sink()
        with located(file=sink.name):
            pieces = in_pieces(data)
            piece = data if pieces is None else next(pieces, [])
            batches, changes = self._ingested(piece), not stays_the_same(piece)
            del piece  # a generator's caller does not want the first piece kept in memory
        most = self._most_rows(row_group_size)
        try:
            if row_group_size is not None:
                self.flush()
            if self._state is not None:  # else there are no rows yet
                self._state.add(batches, most)
            if pieces is not None:
                self._append_rest(pieces, changes, most)
            if row_group_size is not None:
                self.flush()
            if not last:
                self._settle(own=pieces is None and changes)
        except BaseException as error:
            self._fail(error)
            raise

    def _append_rest(self, pieces: Iterator[Any], changes: bool, max_rows: int) -> None:
        """Append the pieces behind the first one. The caller may use the memory of a piece again for the next one.
        Where that is possible (``changes``), each piece is copied before the next is requested."""
        while True:
            if changes:
                self._settle(own=True)
            piece = next(pieces, None)
            if piece is None:
                return
            changes = not stays_the_same(piece)
            batches = self._ingested(piece)
            if self._state is not None:
                self._state.add(batches, max_rows)
            del piece, batches

    def _ingested(self, data: Any) -> Iterator[RecordBatch]:
        """The batches of data under the file's schema. If the schema was not given, the first data decide it."""
        if self._state is not None and self._schema is not None:
            return ingest_later(data, self._schema, self._told, self.options.use_threads)
        source = None if self._source else self._source
        schema, batches = ingest(data, self._schema, source, self.options.use_threads)
        if not needs_rows(self.options):
            self._begin(schema)
            return batches
        first = _first_rows(batches)
        if sum(batch.num_rows for batch in first):
            self._begin(schema, first)
        else:
            self._schema = schema  # the next data decide
        return chain(first, batches)

    write_table = write_batch = write  # pyarrow's names

    def flush(self, keep_empty: bool = False) -> None:
        """End the current row group. This does nothing when ``sort_by`` sorts the whole input, which is written on
        close. ``keep_empty``: where no rows wait, write a row group without rows (not in encrypted files)."""
        self._open_sink()
        state = self._state
        if state is None or state.encoder.sorts_input:
            return
        try:
            if state.rows.num_rows:
                state.flush()
            elif keep_empty and not state.encryption.encrypts:
                state.layout.add_empty_group()
        except BaseException as error:
            self._fail(error)
            raise

    def add_key_value_metadata(self, pairs: Mapping[Any, Any]) -> None:
        """Set key-value metadata of the file before it is closed. Keys are text. Values are text, bytes or ``None``."""
        self._check_process()
        given = checked_pairs(pairs)
        if given and self._footer is not None:
            raise DataError("the file is closed, so its metadata cannot be changed")
        self._key_values.update(given)

    # ---- the end -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write the remaining rows and the footer, and put the file in place. A second call does nothing."""
        self._check_process()
        sink = self._sink
        if sink is None:
            return
        try:
            if self._failed:
                raise DataError("an earlier write failed, so the file is discarded", file=sink.name)
            if self._state is None and self._schema is not None:
                self._begin(self._schema)
            if self._state is None:
                raise DataError("the file has no schema: nothing was written and no schema was given", file=sink.name)
            with located(file=sink.name):
                self._footer = self._state.finish()
            self._state.commit()
        except BaseException:
            self._discard()
            raise
        self._sink = None

    def abort(self) -> None:
        """Discard the file. A local target is as it was before. Another call of this or of :meth:`close` does
        nothing."""
        self._check_process()
        self._discard()

    def _discard(self) -> None:
        if self._inherited:
            return
        sink, self._sink = self._sink, None
        if self._state is not None:
            self._state.discard()
        elif sink is not None:
            sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self._discard()

    def __del__(self) -> None:
        name = self._abandon() if getattr(self, "_sink", None) is not None else None
        if name is not None and sys.is_finalizing():
            _say(name)
        elif name is not None:
            text = f"the writer of {name!r} was not closed: the file is incomplete, its rows are lost"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)

    def _abandon(self) -> str | None:
        """Discard the file. Returns its name if a warning is needed."""
        sink = self._sink
        # An error that was raised is known already. Asked first: a thread that goes on at exit fails because of this.
        known = sink is None or self._failed or self._inherited
        self._discard()
        return None if sink is None or known else sink.name

    def _after_fork(self) -> None:
        self._inherited = self._sink is not None

    def _check_process(self) -> None:
        if self._inherited and self._sink is not None:
            raise not_its_own(self._sink.name)

    # ---- inside --------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> tt.FileMetaData | None:
        """The contents of the footer, once the file is closed."""
        if self._metadata is None and self._footer is not None:
            self._metadata = deserialize(tt.FileMetaData, self._footer)[0]
        return self._metadata

    @property
    def schema(self) -> Schema | None:
        """The schema of the file, once it is known."""
        return self._schema

    def _open_sink(self) -> Sink:
        self._check_process()
        if self._sink is None:
            raise DataError("the writer is closed")
        if self._failed:
            raise DataError("an earlier write failed; the file will be discarded", file=self._sink.name)
        return self._sink

    def _begin(self, schema: Schema, first: Sequence[RecordBatch] = ()) -> None:
        """``first``: the first rows, where they decide what Variants are shredded to."""
        sink = self._open_sink()
        state = FileWriter(sink, self._planned(schema, first), schema, self._key_values)
        try:
            state.layout.start()
        except BaseException as error:
            self._fail(error)
            raise
        self._state = state
        self._schema = in_other_order(schema) if self.options.sort_by else schema

    def _planned(self, schema: Schema, first: Sequence[RecordBatch] = ()) -> Planned:
        """How the file is written, and which Variants are shredded to what."""
        return plan_with_shredding(schema, self.options, self._source[0] if self._source else None, first)

    def _most_rows(self, row_group_size: int | None) -> int:
        asked = self.options.row_group_size if row_group_size is None else row_group_size
        return asked if self.options.encryption is None else min(asked, self.options.row_group_size)

    def _settle(self, own: bool) -> None:
        """Stop using the caller's memory. ``own``: the rows that still wait are copied, too."""
        if self._state is None:
            return
        self._state.encoder.wait_until_stored()
        if own and self._state.rows.num_rows:
            self._state.rows.own()

    def _fail(self, error: BaseException) -> None:
        """An error leaves the file incomplete, so the writer refuses to go on. It gets the file's name."""
        self._failed = True
        if self._state is not None:
            self._state.encoder.drop()
        if isinstance(error, ParquetError) and self._sink is not None:
            error.locate(file=self._sink.name)


write_table.__doc__ = with_options(write_table.__doc__, WriteOptions)
ParquetWriter.__doc__ = with_options(ParquetWriter.__doc__, WriteOptions)


def _first_rows(batches: Iterator[RecordBatch]) -> list[RecordBatch]:
    """Batches up to the first one that has rows, taken from the front."""
    found = []
    for batch in batches:
        found.append(batch)
        if batch.num_rows:
            break
    return found


def file_options(options: Mapping[str, Any], hints: Mapping[str, str] = NOT_FOR_WRITING) -> WriteOptions:
    """The options of a file, checked as far as they can be without a schema. ``hints``: see
    :meth:`WriteOptions.make`."""
    given = WriteOptions.make(options, hints)
    check_options(given)
    check_properties(given.encryption)
    return within_ordinals(given)


def checked_pairs(pairs: Mapping[Any, Any]) -> dict[str, str | bytes | None]:
    """Key-value metadata as files have them. Raises :class:`OptionError`."""
    try:
        given = dict(pairs)
    except (TypeError, ValueError):
        raise OptionError(f"key-value metadata must be a dict, not {pairs!r}") from None
    return {text_key(key): text_value(key, value) for key, value in given.items()}


def _schema_of(given: Any) -> Schema:
    """A :class:`Schema` from one, a dict of type names, or anything with ``__arrow_c_schema__``."""
    if isinstance(given, Schema):
        return given
    if isinstance(given, Mapping):
        return parse_schema(given)
    if hasattr(given, "__arrow_c_schema__"):
        return schema_from_arrow(given)
    if isinstance(given, (str, os.PathLike)):
        raise OptionError(
            f"ParquetWriter() takes the target first and the schema second, but {given!r} is not a schema"
        )
    raise OptionError(f"schema must be a pyparq.schema, a dict of names to types or an Arrow schema, not {given!r}")
