"""The common base of tables and batches: columns by name, slices, comparison, Python and numpy values, preview.

It stands below what makes tables from other data; the classes that users see stand above it (``table.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from operator import index, is_
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pyparq import kernels
from pyparq.arrow import equality, preview, to_python
from pyparq.arrow.chunked_array import ChunkedArray, parts_of, whole_rows
from pyparq.arrow.column import Column, batches_to_stream, bytes_held, schema_capsule, shifted
from pyparq.arrow.column_operations import take
from pyparq.arrow.decimals import with_usual_decimals
from pyparq.column_names import as_list
from pyparq.errors import ColumnNotFoundError, OptionError, OtherNames, SchemaError, UnsupportedError, by_each
from pyparq.format.types import DataType, Schema
from pyparq.option_checks import methods_told
from pyparq.runtime.lazy_import import provided
from pyparq.runtime.text import printable

Part = tuple[list[Column], int]
"""The columns of some rows, and how many rows these are."""


def for_anybody(schema: Schema, parts: list[Part]) -> tuple[Schema, list[Part]]:
    """Rows in a form that every library reads: decimals in 128 bits, or in 256 beyond 38 digits.

    polars (2.1) takes narrower decimals in an Arrow stream for 128-bit ones, and silently shows other values. It does
    not read wider ones.
    """
    if not any(
        _has_odd_decimals(field.type)
        for field in schema.fields
        if field.type.format[0] in "d+" or field.type.dictionary
    ):
        return schema, parts
    return with_usual_decimals(schema, parts)


def _has_odd_decimals(type_: DataType) -> bool:
    if type_.dictionary is not None:
        return _has_odd_decimals(type_.dictionary)
    if type_.format[0] == "d":
        precision, _, bits = type_.decimal
        return bits != (128 if precision <= 38 else 256)
    return any(_has_odd_decimals(field.type) for field in type_.children)


_IN_PYARROW = "to_arrow() of the table, whose result has it"


@methods_told
class Tabular(OtherNames):
    """Columns of equal length under a schema, in one or more parts. The base of :class:`pyparq.Table` and
    :class:`pyparq.Batch`."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    has_schema = True
    """Whether the columns have names: those of a :class:`pyparq.Batch` may have none."""
    _elsewhere = by_each({
        "query where": "filter(...)", "astype": "cast({name: type})", "names": "=column_names", "get_column": "=column",
        "write_parquet to_parquet sink_parquet": "pyparq.write_table(table, path)", "estimated_size": "nbytes",
        "write_csv to_csv write_json to_json": "to_pandas() or to_polars(), or the command pyparq convert",
        "empty is_empty len": "len(table)", "size": "shape",
        "vstack extend append concat": "pyparq.Table.concat([...])", "copy clone": "the table itself: it never changes",
        "remove_columns": "=drop", "iter_columns": "=itercolumns", "nulls": "table[name].null_count",
        "closed path name": "the file that it was read from: a table has none", "dtype": "table[name].type",
        "tail": "table[-5:]", "iloc loc row": "table[start:stop], and to_pylist() of it for Python values",
        "dtypes": "schema", "height": "=num_rows", "width": "=num_columns", "values": "to_numpy(name)",
        "to_dict": "to_pydict()", "iter_rows iterrows itertuples rows": "to_pylist()", "to_dicts": "=to_pylist",
        "drop_columns": "=drop", "collect read": "the table itself: it is read already", "field": "schema.field(name)",
        "validate": "pyparq.verify(path) for a file", "sort sort_values": "sort_by(...), or sort_by= of write_table",
        "groupby merge info assign fillna dropna isna value_counts index apply map agg melt T": "to_pandas(), "
        "whose result has it", "unique with_columns n_unique null_count": "to_polars(), whose result has it",
        "describe pivot explode sum mean min max sample": "to_pandas() or to_polars(), whose result has it",
        "add_column append_column combine_chunks drop_null flatten group_by join join_asof remove_column set_column "
        "replace_schema_metadata sort_by take to_reader to_struct_array unify_dictionaries": _IN_PYARROW,
    })  # fmt: skip
    _like = ("pandas", "DataFrame", "to_pandas()"), ("polars", "DataFrame", "to_polars()")

    if not TYPE_CHECKING:  # type checkers report what is not there

        def __getattr__(self, name: str) -> Any:
            """A method of pyarrow's, where it is installed; a table that it gives becomes one of these."""
            theirs = self.to_arrow() if self._elsewhere.get(name) is _IN_PYARROW and find_spec("pyarrow") else None
            if not hasattr(theirs, name):
                return super().__getattr__(name)

            def call(*args: Any, **given: Any) -> Any:
                taken = [other.to_arrow() if isinstance(other, Tabular) else other for other in args]
                made = getattr(theirs, name)(*taken, **given)
                return self.from_arrow(made) if isinstance(made, type(theirs)) else made

            return call

    # ---- what the two differ in

    @property
    def schema(self) -> Schema:
        raise NotImplementedError

    @property
    def num_rows(self) -> int:
        raise NotImplementedError

    def _parts(self) -> list[Part]:
        raise NotImplementedError

    @classmethod
    def _of(cls, schema: Schema, parts: Sequence[Part]) -> Self:
        raise NotImplementedError

    # ---- size and names

    @property
    def num_columns(self) -> int:
        return len(self.schema)

    @property
    def column_names(self) -> list[str]:
        return self.schema.names

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.num_rows, self.num_columns

    @property
    def nbytes(self) -> int:
        """Bytes held by all buffers. Buffers that a slice shares count in full."""
        return sum(bytes_held(column) for columns, _ in self._parts() for column in columns)

    def __len__(self) -> int:
        return self.num_rows

    def __contains__(self, name: object) -> bool:
        """Whether a column has this name."""
        return name in self.column_names

    def _ipython_key_completions_(self) -> list[str]:
        return self.column_names

    # ---- columns

    def __getitem__(self, key: Any) -> Any:
        """``t["x"]`` and ``t[0]``: a column (:meth:`column`); ``t[10:20]``: rows, as :meth:`slice` gives them."""
        if isinstance(key, slice):
            start, stop = whole_rows(key, self.num_rows)
            return self.slice(start, stop - start)
        return self.column(key)

    def column(self, key: str | int) -> ChunkedArray:
        """One column, by name or by number, sharing all buffers. Numbers count from 0; -1 is the last column.

        Raises :class:`ColumnNotFoundError` if there is no such column, or if several have the name.
        """
        k = self._place(key)
        return ChunkedArray(self.schema.fields[k], [columns[k] for columns, _ in self._parts()])

    def __iter__(self) -> Iterator[ChunkedArray]:
        """The columns, in order."""
        return (self.column(k) for k in range(self.num_columns))

    itercolumns = __iter__

    def _place(self, key: Any) -> int:
        if isinstance(key, str):
            return self.schema.index(key)
        if isinstance(key, bool) or not hasattr(key, "__index__"):
            raise OptionError(f"a column is given by name or number, not by {key!r}. Use select() for several columns")
        k, count = index(key), self.num_columns
        if not -count <= k < count:
            raise ColumnNotFoundError(f"there is no column {k}: the table has {count} columns, counted from 0")
        return k % count

    def select(self, columns: Iterable[str | int]) -> Self:
        """These columns (names, or numbers from 0), in this order, sharing all buffers.

        Raises :class:`ColumnNotFoundError` if there is no such column, or if several have the name.
        """
        if not isinstance(columns, Iterable):
            raise OptionError(f"select() takes names or numbers of columns; did you mean [{columns!r}]?")
        places = [self._place(key) for key in as_list(columns)]
        schema = replace(self.schema, fields=tuple(self.schema.fields[k] for k in places))
        return self._of(schema, [([columns[k] for k in places], rows) for columns, rows in self._parts()])

    def rename(self, names: Mapping[Any, str] | Sequence[str]) -> Self:
        """The same columns under other names. ``names`` is a dict ``{old: new}``, where an old name may be a column
        number, or a list of all names.

        Raises :class:`ColumnNotFoundError` for an old name that no column has. Raises :class:`SchemaError` for a new
        name that another column also has, or a list of the wrong length.
        """
        fields = self.schema.fields
        if isinstance(names, Mapping):
            changed = {self._place(old): new for old, new in names.items()}
        elif isinstance(names, str) or not isinstance(names, Sequence):
            raise OptionError(f"rename() takes a dict of old names to new ones, or a list of all names, not {names!r}")
        elif len(names) != len(fields):
            raise SchemaError(f"rename() got {len(names)} names for {len(fields)} columns")
        else:
            changed = dict(enumerate(names))
        for new in changed.values():
            if not isinstance(new, str):
                raise OptionError(f"a column name must be a string, not {new!r}")
        made = [changed.get(k, field.name) for k, field in enumerate(fields)]
        twice = next((new for k, new in changed.items() if new != fields[k].name and made.count(new) > 1), None)
        if twice is not None:
            raise SchemaError(f"two columns would have the name {twice!r}")
        schema = replace(self.schema, fields=tuple(replace(f, name=n) for f, n in zip(fields, made, strict=True)))
        return self._of(schema, self._parts())

    rename_columns = rename  # pyarrow's name

    # ---- rows

    def drop(self, columns: Iterable[str | int]) -> Self:
        """The columns that are not among these (names, or numbers from 0). Raises what :meth:`select` raises."""
        gone = {self._place(key) for key in as_list([columns] if isinstance(columns, str) else columns)}
        return self.select([k for k in range(self.num_columns) if k not in gone])

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """``length`` rows from ``offset`` on (to the end when ``None``), sharing all buffers.

        Raises :class:`OptionError` for an ``offset`` or ``length`` below 0.
        """
        parts, kept = self._parts(), []
        for k, first, rows in parts_of([rows for _, rows in parts], offset, length):
            columns, have = parts[k]
            kept.append((columns if rows == have else [shifted(c, first, rows) for c in columns], rows))
        return self._of(self.schema, kept)

    def head(self, num_rows: int = 5) -> Self:
        """The first rows, sharing all buffers."""
        return self.slice(0, num_rows)

    def filter(self, filters: Any) -> Self:
        """The rows for which a filter is true, in their order; ``filters`` are those of :func:`pyparq.read_table`.

        Raises :class:`FilterError` and :class:`ColumnNotFoundError` as a read does.

        Example::

            table = pyparq.Table.from_pydict({"city": ["Lima", "Kyoto"], "price": [0.5, 2.5]})
            print(table.filter(pyparq.col("price") > 1).to_pydict(), table.filter("city like 'L%'").num_rows)
        """
        kept, parts, start = provided("top-level functions").rows_that_pass(self, filters), [], 0
        for columns, rows in self._parts():
            first, end = kept.searchsorted([start, start + rows])
            parts.append(([take(column, kept[first:end] - start) for column in columns], int(end - first)))
            start += rows
        return self._of(self.schema, parts)

    # ---- comparison

    def equals(self, other: Self, check_metadata: bool = False) -> bool:
        """Whether the other has the same columns in the same order: names, types, nullability, values and nulls.

        NaN equals NaN, 0.0 equals -0.0, and a dictionary-encoded value equals itself under another index. How the rows
        are cut into batches does not matter; neither does metadata, unless ``check_metadata`` asks for it (the
        table's and that of every field, at any depth). Raises :class:`OptionError` where ``other`` is of another class.
        """
        if not _alike(self, other):
            raise OptionError(f"equals() takes another {type(self).__name__}, not a {type(other).__name__}")
        if self.num_rows != other.num_rows or not equality.same_schema(self.schema, other.schema, check_metadata):
            return False
        return all(equality.equal_chunks(a.chunks, b.chunks) for a, b in zip(self, other, strict=True))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if _alike(self, other) else NotImplemented  # type: ignore[arg-type]

    # ---- out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        # Without this, numpy and pandas would take the columns for rows.
        raise UnsupportedError(
            "a table cannot be converted to a single array. Use to_numpy(name) for one column, or to_pandas()"
        )

    def __arrow_c_schema__(self) -> object:
        return schema_capsule(for_anybody(self.schema, [])[0])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return batches_to_stream(*for_anybody(self.schema, self._parts()))

    def to_numpy(self, name: str | int) -> npt.NDArray[Any]:
        """One column as a numpy array.

        Numbers without nulls share memory when the table has one batch. Columns with nulls come as masked arrays,
        times as datetime64/timedelta64, strings, binary and decimals as object arrays.
        """
        return self.column(name).to_numpy()

    def to_pydict(self) -> dict[str, list[Any]]:
        """A dict of column names to lists of Python objects. Raises :class:`ColumnNotFoundError` if a name is
        repeated."""
        return {name: self.column(k).to_pylist() for k, name in enumerate(self._unique_names())}

    def to_pylist(self) -> list[dict[str, Any]]:
        """A list of dicts, one per row. Raises :class:`ColumnNotFoundError` if several columns have the same name."""
        names = self._unique_names()
        rows: list[dict[str, Any]] = []
        for columns, num_rows in self._parts():
            lists = [
                to_python.field_to_pylist(field, column) for field, column in zip(self.schema, columns, strict=True)
            ]
            rows += kernels.dicts_of_lists(names, lists, num_rows, None)
        return rows

    def _unique_names(self) -> list[str]:
        names = self.column_names
        if len(set(names)) != len(names):
            for name in names:
                self.schema.index(name)  # raises for the first that stands twice
        return names

    # ---- shown

    @printable
    def __repr__(self) -> str:
        return preview.table_text(self)

    def _repr_html_(self) -> str:
        return preview.table_html(self)


def _alike(a: object, b: object) -> bool:
    """Two tables, or two batches."""
    return isinstance(b, Tabular) and (isinstance(a, type(b)) or isinstance(b, type(a)))


def check_columns(schema: Schema, columns: Sequence[Column]) -> None:
    """Raise :class:`SchemaError` unless there is one column for every field."""
    if len(columns) != len(schema):
        raise SchemaError(f"the batch has {len(columns)} columns, but the schema has {len(schema)}")


def joined_schema(due: Schema | None, schemas: Sequence[Schema], what: str) -> Schema:
    """The schema of the rows of all these: ``due``, or the first one's, with columns nullable where any has them so.

    Raises :class:`SchemaError`, which names the column, where names or types differ; types may differ in the width of
    their offsets. ``what`` is what the schemas are of, for its message.
    """
    model = "the first" if due is None else "the schema"
    due = schemas[0] if due is None else due
    nullable = [field.nullable for field in due.fields]
    for n, schema in enumerate(schemas):
        _check_same_columns(due, model, schema, f"{what} {n}")
        nullable = [may or field.nullable for may, field in zip(nullable, schema, strict=True)]
    fields = (replace(field, nullable=may) for field, may in zip(due, nullable, strict=True))
    return replace(due, fields=tuple(fields))


def _check_same_columns(due: Schema, model: str, found: Schema, who: str) -> None:
    for want, have in zip(due, found, strict=False):
        if want.name != have.name:
            raise SchemaError(f"{who} has column {have.name!r} where {model} has column {want.name!r}")
        if not equality.same_type(want.type, have.type, offsets=False):
            raise SchemaError(f"column {want.name!r} is {have.type} in {who} and {want.type} in {model}")
    if len(due) > len(found):
        raise SchemaError(f"{who} has no column {due.fields[len(found)].name!r}, which {model} has")
    if len(due) < len(found):
        raise SchemaError(f"{who} has a column {found.fields[len(due)].name!r}, which {model} does not have")


# ---- one width of offsets for the columns of several batches ----


class _HasColumns(Protocol):
    @property
    def columns(self) -> list[Column]: ...


B = TypeVar("B", bound=_HasColumns)

_LARGE = {"u": "U", "z": "Z", "+l": "+L", "+vl": "+vL"}


def widen_columns(schema: Schema, batches: list[B]) -> tuple[Schema, list[B]]:
    """Make columns of one type over all batches, at any depth: where one has int64 offsets, all get them."""
    types = [field.type for field in schema.fields]
    for batch in batches:
        if not all(map(is_, [column.type for column in batch.columns], types)):
            break
    else:
        return schema, batches  # most often, and quicker than to compare
    fields = list(schema.fields)
    for i, field in enumerate(fields):
        types = [b.columns[i].type for b in batches]
        if all(type_ == field.type for type_ in types):
            continue
        widest = _widest([field.type, *types])
        fields[i] = replace(field, type=widest)
        for batch in batches:
            batch.columns[i] = _widened(batch.columns[i], widest)
    return replace(schema, fields=tuple(fields)), batches


def _widest(types: Sequence[DataType]) -> DataType:
    """The first type, with int64 offsets wherever any of the others has them."""
    first = types[0]
    large = _LARGE.get(first.format)
    form = large if large is not None and any(t.format == large for t in types) else first.format
    same = [t for t in types if len(t.children) == len(first.children)]
    children = tuple(replace(f, type=_widest([t.children[k].type for t in same])) for k, f in enumerate(first.children))
    return replace(first, format=form, children=children)


def _widened(column: Column, type_: DataType) -> Column:
    """The column with the offsets of ``type_``; its own type where that differs in more than offsets."""
    have = column.type
    if have == type_ or len(have.children) != len(type_.children):
        return column
    buffers, form = column.buffers, have.format
    if _LARGE.get(form) == type_.format:
        offsets = 2 if form == "+vl" else 1  # a list view's lengths are as wide as its offsets
        wide = (buffer.view(np.int32).astype(np.int64) for buffer in buffers[:offsets])
        buffers, form = (*wide, *buffers[offsets:]), type_.format
    children = tuple(_widened(c, f.type) for c, f in zip(column.children, type_.children, strict=True))
    fields = tuple(replace(f, type=c.type) for f, c in zip(have.children, children, strict=True))
    made = replace(have, format=form, children=fields)
    return Column(
        made, column.length, column.validity, buffers, column.null_count, children, column.dictionary, column.offset
    )
