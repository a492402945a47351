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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from pyparq.arrow.variant_columns import Place
from pyparq.encryption.material import sibling_name
from pyparq.encryption.writing import FileEncryption, check_properties, file_encryption
from pyparq.errors import DataError, OptionError, ParquetError, located
from pyparq.format import ttypes as tt
from pyparq.format.thrift_codec import deserialize
from pyparq.format.types import Schema
from pyparq.io.companion_files import base_name, material_stored, sibling_of
from pyparq.io.file_objects import not_its_own
from pyparq.io.locations import located as on_system
from pyparq.io.sink import Sink, open_sink
from pyparq.io.table_formats import check_target
from pyparq.option_checks import keywords, methods_told
from pyparq.options import WriteOptions, with_options
from pyparq.runtime import fork_safety
from pyparq.write.column_plans import WritePlan, check_options, within_ordinals
from pyparq.write.external_sort import RUN_SHARE, ExternalSorter
from pyparq.write.file_layout import FileLayout, WriteReport, WrittenFile
from pyparq.write.row_groups import RowBuffer, RowGroupEncoder
from pyparq.write.schema_hint import text_key, text_value, without_notes, without_order
from pyparq.write.shredding import Shredded, needs_rows, plan_with_shredding, shredded_batch

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
    from its current position. ``schema``: the schema to write; without it, types come from the data. ``index``:
    ``False`` leaves out the index of a pandas DataFrame. ``storage_options``: options for the file system of a URL.
    ``filesystem``: a file system of fsspec or pyarrow or a store of obstore, on which ``path`` is a path; or
    ``"obstore"`` or ``"fsspec"``, by which a URL is opened (docs/urls.md). ``force``: write even into a local folder
    that Delta Lake, Apache Iceberg, Apache Hudi or a stream of Spark manages. ``options``: the fields of
    :class:`pyparq.WriteOptions`, listed below.

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


_STALE = (ARROW_SCHEMA, b"org.apache.spark.sql.parquet.row.metadata", b"pyparq.indexes")
"""Metadata of tables that were read from a file, which describe the columns and indexes of that file. Spark believes
its own."""


@dataclass(slots=True)
class _State:
    """The state of a writer whose schema is known."""

    plan: WritePlan
    layout: FileLayout
    encoder: RowGroupEncoder
    rows: RowBuffer
    encryption: FileEncryption
    shredded: Mapping[Place, Shredded]
    """The Variants that are shredded."""
    sorter: ExternalSorter | None = None
    """Has the rows that are too many to be sorted in memory."""


_watched: set[weakref.ref[ParquetWriter]] = set()
"""Data of writers that are never closed are lost, so a warning names the file."""


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
        given = WriteOptions.make(options)
        check_options(given)
        check_properties(given.encryption)
        self.options = within_ordinals(given)
        self._footer: bytes | None = None
        self._metadata: tt.FileMetaData | None = None
        self._key_values: dict[str, str | bytes | None] = {}
        self._state: _State | None = None
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
        with _Guard(self):
            if row_group_size is not None:
                self.flush()
            self._append(batches, most)
            if pieces is not None:
                self._append_rest(pieces, changes, most)
            if row_group_size is not None:
                self.flush()
            if not last:
                self._settle(own=pieces is None and changes)

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
            self._append(self._ingested(piece), max_rows)
            del piece

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
        with _Guard(self):
            if state.rows.num_rows:
                state.encoder.add(state.rows.take_all())
                state.encoder.wait_until_stored()
            elif keep_empty and not state.encryption.encrypts:
                state.layout.add_empty_group()

    def add_key_value_metadata(self, pairs: Mapping[Any, Any]) -> None:
        """Set key-value metadata of the file before it is closed. Keys are text. Values are text, bytes or ``None``."""
        self._check_process()
        try:
            given = dict(pairs)
        except (TypeError, ValueError):
            raise OptionError(f"key-value metadata must be a dict, not {pairs!r}") from None
        for key, value in given.items():
            if self._footer is not None:
                raise DataError("the file is closed, so its metadata cannot be changed")
            self._key_values[text_key(key)] = text_value(key, value)

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
                self._finish(self._state)
            self._commit(sink, self._state.encryption.material)
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
            self._state.encoder.drop()
            if self._state.sorter is not None:
                self._state.sorter.close()
        if sink is not None:
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
        if self._state is not None:
            self._state.encoder.forget()

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
        plan, shredded = self._planned(schema, first)
        if self.options.sort_by:
            schema = in_other_order(schema)
        for key, value in schema.metadata.items():
            if key not in _STALE:
                self._key_values.setdefault(text_key(key), text_value(key, value))
        encryption = file_encryption(self.options.encryption, plan.tree, base_name(sink.name))
        if encryption.material is not None:
            sibling_of(sink, "key material")  # raises an error if the target cannot store it
        layout = FileLayout(sink, plan, encryption, self.options.format_version)
        with _Guard(self):
            layout.start()
        self._schema = schema
        rows = RowBuffer(self.options.row_group_size, self.options.row_group_bytes)
        self._state = _State(plan, layout, RowGroupEncoder(plan, layout, encryption), rows, encryption, shredded)

    def _planned(self, schema: Schema, first: Sequence[RecordBatch] = ()) -> tuple[WritePlan, Mapping[Place, Shredded]]:
        """How the file is written, and which Variants are shredded to what."""
        return plan_with_shredding(schema, self.options, self._source[0] if self._source else None, first)

    def _append(self, batches: Iterator[RecordBatch], max_rows: int) -> None:
        state = self._state
        if state is None:
            return  # there are no rows yet
        state.rows.max_rows = max_rows
        for batch in batches:
            if state.shredded:
                batch = shredded_batch(batch, state.shredded)
            state.rows.add(batch)
            if state.encoder.sorts_input:
                self._spill(state)
                continue
            while state.rows.has_full_group:
                state.encoder.add(state.rows.take_group())
        state.rows.max_rows = self.options.row_group_size

    def _spill(self, state: _State) -> None:
        """Pass the waiting rows to the external sort, if they are too many for memory."""
        if state.rows.num_bytes * RUN_SHARE < self.options.sort_memory:
            return
        if state.sorter is None:
            secret = self.options.encryption is not None
            state.sorter = ExternalSorter(state.plan, self.options.sort_memory, secret=secret)
        for batch in state.rows.take_all():
            state.sorter.add(batch)

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

    def _add_arrow_schema(self, state: _State, hint: Schema) -> None:
        """Store the schema of the data. Arrow restores a table's metadata from it, too."""
        if ARROW_SCHEMA.decode() in self._key_values:
            return  # the caller's own
        tree = state.plan.tree
        hint = without_order(hint, tree, state.encoder.reordered)
        hint = without_notes(hint, tree, state.encryption.behind_clear_footer)
        pairs = {k.encode(): v.encode() if isinstance(v, str) else v or b"" for k, v in self._key_values.items()}
        self._key_values[ARROW_SCHEMA.decode()] = stored_schema(replace(hint, metadata=pairs))

    def _finish(self, state: _State) -> None:
        if state.sorter is not None:
            self._finish_sort(state, state.sorter)
        rows = state.rows.take_all()
        if rows and state.sorter is not None:
            state.encoder.add_ordered(rows)
        elif rows and state.encoder.sorts_input:
            state.encoder.add_sorted(rows)
        elif rows:
            state.encoder.add(rows)
        state.encoder.wait_until_stored()
        if state.plan.hint is not None:
            self._add_arrow_schema(state, state.plan.hint)
        self._footer = state.layout.finish(self._key_values)

    def _finish_sort(self, state: _State, sorter: ExternalSorter) -> None:
        """Write all row groups but the last, from rows that were sorted in parts."""
        for batch in state.rows.take_all():
            sorter.add(batch)
        for batch in sorter.batches():
            state.rows.add(batch)
            while state.rows.has_full_group:
                state.encoder.add_ordered(state.rows.take_group())
        sorter.close()

    def _commit(self, sink: Sink, material: Mapping[str, str] | None) -> None:
        if material is None:
            sink.commit()
            return
        name = sibling_name(base_name(sink.name))
        with material_stored(sink, name, material, self.options.fsync):
            try:
                sink.commit()
            except BaseException:
                self._discard()  # on a full disk, this frees the room of the old sidecar
                raise


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


class _Guard:
    """A failure inside this context leaves the file incomplete, so the writer refuses to go on. Errors get the file's
    name."""

    def __init__(self, writer: ParquetWriter) -> None:
        self._writer = writer

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        self._writer._failed = True
        if self._writer._state is not None:
            self._writer._state.encoder.drop()
        if isinstance(error, ParquetError) and self._writer._sink is not None:
            error.locate(file=self._writer._sink.name)


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
