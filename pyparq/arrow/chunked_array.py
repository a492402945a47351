"""ChunkedArray: one column of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow import equality, preview, to_python
from pyparq.arrow.column import Column, bytes_held, chunks_to_stream, count_nulls, field_capsule, shifted
from pyparq.arrow.column_operations import trimmed
from pyparq.arrow.decimals import with_usual_decimals
from pyparq.errors import OptionError, OtherNames, by_each
from pyparq.format.types import DataType, Field, Schema
from pyparq.option_checks import methods_told
from pyparq.runtime.text import printable

Objects = list[Any]
_AT_ONCE = 4096
"""Values that iteration turns into Python objects at a time."""


@methods_told
class ChunkedArray(OtherNames):
    """The values of one column, in one or more chunks (``pyarrow.ChunkedArray`` with a name).

    It supports the Arrow interface, so ``pyarrow.chunked_array(c)``, ``polars.Series(c)`` and ``numpy.asarray(c)`` take
    it. Iterating gives Python objects. ``==`` compares type, nulls and values: see :meth:`equals`.

    Example::

        column = pyparq.read_table("flights.parquet", columns=["flight"])["flight"]
        print(column.type, column.null_count, column[0], column.to_numpy().max())
    """

    __slots__ = ("chunks", "field")
    _elsewhere = by_each({
        "tolist to_list": "=to_pylist", "values": "to_numpy()", "dtype": "type",
        "shape size length len empty is_empty": "len(column)", "nulls hasnans null_percentage": "null_count",
        "count": "len(column) - column.null_count", "path closed": "the file that it was read from",
        "dictionary indices": "read_dictionary= of read_table", "data array chunk iterchunks": "chunks",
        "to_pandas": "pandas.Series(column.to_numpy()), or table.to_pandas()", "to_polars": "polars.Series(column)",
        "to_arrow combine_chunks": "pyarrow.chunked_array(column)",
        "sum mean min max std median unique value_counts sort argsort cumsum round cast astype filter isin is_in "
        "is_null isna is_valid fill_null fillna drop_null dropna str dt dictionary_encode dictionary_decode":
            "pyarrow.chunked_array(column) with pyarrow.compute, polars.Series(column), or to_numpy()",
        "head first": "column[:5]",
        "tail last": "column[-5:]", "take iloc loc item": "column[start:stop], or to_numpy()[numbers]",
    })  # fmt: skip
    _like = ("pandas", "Series", "table.to_pandas()[name]"), ("polars", "Series", "polars.Series(column)")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, field: Field, chunks: Sequence[Column]) -> None:
        self.field = field
        self.chunks: list[Column] = list(chunks)

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def type(self) -> DataType:
        return self.field.type

    @property
    def nullable(self) -> bool:
        """Whether the schema allows nulls; :attr:`null_count` tells how many there are."""
        return self.field.nullable

    @property
    def num_chunks(self) -> int:
        return len(self.chunks)

    @property
    def null_count(self) -> int:
        return sum(count_nulls(chunk) for chunk in self.chunks)

    @property
    def nbytes(self) -> int:
        """Bytes held by all buffers. Buffers that a slice shares count in full."""
        return sum(bytes_held(chunk) for chunk in self.chunks)

    def __len__(self) -> int:
        return sum(chunk.length for chunk in self.chunks)

    def __iter__(self) -> Iterator[Any]:
        for chunk in self.chunks:
            for start in range(0, chunk.length, _AT_ONCE):
                yield from to_python.field_to_pylist(
                    self.field, shifted(chunk, start, min(_AT_ONCE, chunk.length - start))
                )

    def __getitem__(self, key: Any) -> Any:
        """A value as a Python object (``c[0]``, ``c[-1]``), or a part as a ChunkedArray (``c[10:20]``, of step 1)."""
        if isinstance(key, slice):
            start, stop = whole_rows(key, len(self))
            return self.slice(start, stop - start)
        try:
            row = index(key)
        except TypeError:
            raise OptionError(f"the index must be a row number or a slice, not {key!r}") from None
        length = len(self)
        if not -length <= row < length:
            raise IndexError(f"there is no row {row}: the column has {length} rows")
        return self.slice(row % length, 1).to_pylist()[0]

    def slice(self, offset: int = 0, length: int | None = None) -> ChunkedArray:
        """``length`` values from ``offset`` on (to the end when ``None``), sharing all buffers.

        Raises :class:`OptionError` for an ``offset`` or ``length`` below 0.
        """
        kept = []
        for k, first, rows in parts_of([chunk.length for chunk in self.chunks], offset, length):
            chunk = self.chunks[k]
            kept.append(chunk if rows == chunk.length else shifted(chunk, first, rows))
        return ChunkedArray(self.field, kept)

    def to_pylist(self) -> Objects:
        """One Python object per value, ``None`` for nulls."""
        return [value for chunk in self.chunks for value in to_python.field_to_pylist(self.field, chunk)]

    def to_numpy(self) -> npt.NDArray[Any]:
        """The values as a numpy array of shape ``(len(c),)``: see :meth:`pyparq.Table.to_numpy`."""
        if to_python.is_variant(self.field):
            return to_python.object_array(self.to_pylist())
        return to_python.chunks_to_numpy(self.type, self.chunks)

    def equals(self, other: ChunkedArray) -> bool:
        """Whether the other has the same type, the same values and the same nulls, in chunks of any length.

        NaN equals NaN, 0.0 equals -0.0, and a dictionary-encoded value equals itself under another index. Names do
        not matter. Raises :class:`OptionError` where ``other`` is no ChunkedArray.
        """
        if not isinstance(other, ChunkedArray):
            raise OptionError(f"equals() takes another ChunkedArray, not a {type(other).__name__}")
        return equality.same_type(self.type, other.type) and equality.equal_chunks(self.chunks, other.chunks)

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, ChunkedArray) else NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """numpy's own call. Nulls come as NaN or NaT, in columns that have neither as ``None`` among objects."""
        own = self.to_numpy()
        made = to_python.without_mask(own)
        if dtype is not None:
            made = made.astype(dtype, copy=False)
        if copy and np.shares_memory(made, own):
            made = made.copy()
        return made

    def __arrow_c_schema__(self) -> object:
        return field_capsule(self._for_anybody()[0])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return chunks_to_stream(*self._for_anybody())

    def _for_anybody(self) -> tuple[Field, list[Column]]:
        """Decimals of 32 and 64 bits in 128: polars reads them wrongly (:func:`pyparq.arrow.tabular.for_anybody`)."""
        if self.field.type.kind != "decimal" or self.field.type.dictionary is not None:
            return self.field, self.chunks
        schema, parts = with_usual_decimals(Schema((self.field,)), [([c], len(c)) for c in self.chunks])
        return schema.fields[0], [columns[0] for columns, _ in parts]

    def __arrow_array__(self, type: Any = None) -> Any:
        """pyarrow's own call: an Array of one chunk, a ChunkedArray of several."""
        import pyarrow

        made = pyarrow.chunked_array(self)
        made = made if type is None else made.cast(type)
        return made.chunk(0) if made.num_chunks == 1 else made

    def __reduce__(self) -> tuple[Any, ...]:
        return ChunkedArray, (self.field, [trimmed(chunk) for chunk in self.chunks])

    @printable
    def __repr__(self) -> str:
        return preview.column_text(self)


def parts_of(lengths: Sequence[int], offset: int, length: int | None) -> Iterator[tuple[int, int, int]]:
    """The pieces that hold ``length`` rows from ``offset`` on: (piece, first row in it, number of rows). Raises
    :class:`OptionError` if one of the numbers is below 0 or no whole number."""
    try:
        offset = index(offset)
        length = None if length is None else index(length)
    except TypeError:
        raise OptionError(f"slice() takes whole numbers, not {offset!r} and {length!r}") from None
    if offset < 0 or (length is not None and length < 0):
        raise OptionError(f"slice() takes an offset and a length of at least 0, not {offset} and {length}")
    return _parts(lengths, offset, length)


def _parts(lengths: Sequence[int], offset: int, length: int | None) -> Iterator[tuple[int, int, int]]:
    left, before = sum(lengths) if length is None else length, 0
    for k, size in enumerate(lengths):
        first = max(offset - before, 0)
        rows = min(size - first, left)
        if rows > 0:
            yield k, first, rows
            left -= rows
        before += size


def whole_rows(key: slice, length: int) -> tuple[int, int]:
    """First row and end of a slice in Python's notation; :class:`OptionError` for steps other than 1."""
    try:
        start, stop, step = key.indices(length)
    except (TypeError, ValueError):
        raise OptionError(f"a slice of rows takes whole numbers, not {key!r}") from None
    if step != 1:
        raise OptionError(f"a slice of rows must have step 1, not {step}")
    return start, max(start, stop)
