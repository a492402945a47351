"""Write options resolved against a schema: everything that is decided once per column, before any row arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from operator import is_
from typing import Any, NamedTuple

from pyparq.arrow.schema.to_parquet import elements_from_schema
from pyparq.encryption.cipher import MAX_ORDINAL
from pyparq.errors import OptionError, ParquetError, located
from pyparq.format import compression
from pyparq.format import compression as encodings
from pyparq.format import ttypes as tt
from pyparq.format.order import Order, has_order
from pyparq.format.schema_node import Node, Shape, shapes
from pyparq.format.schema_tree import SchemaTree, build_tree
from pyparq.format.types import Field, LeafType, Schema
from pyparq.index.bloom_filter import can_prune
from pyparq.option_values import BloomOptions, SortKey, bloom_options, sort_keys
from pyparq.options import WriteOptions
from pyparq.write.schema_hint import (
    apply_storage,
    by_node,
    dictionary_leaves,
    hint_for,
    order_of_leaf,
    text_key,
    text_value,
)


@dataclass(slots=True, eq=False)
class ColumnPlan:
    """How one leaf is written."""

    node: Node
    leaf: LeafType
    path: tuple[str, ...]
    codec: int
    level: int | None
    dictionary: bool
    """Try a dictionary."""
    keep_dictionary: bool
    """Keep it also where it does not pay."""
    encoding: int | None
    """Encoding of data pages without a dictionary. ``None``: chosen by measuring
    (:mod:`pyparq.write.encoding_choice`)."""
    statistics: bool
    bloom: BloomOptions | None
    order: Order
    """The order of the bounds."""
    key_values: Mapping[str, str | bytes | None]
    """Key-value metadata of the chunks."""
    entries: bool
    """Whether the column comes back as a dictionary. The entries of its original dictionary are then kept in their
    order, used or not, if they fit."""
    ordered: bool
    """Whether the order of these entries has a meaning. They are kept then however many bytes they take."""

    @property
    def column(self) -> int:
        return self.node.column


@dataclass(frozen=True, slots=True)
class SortPlan:
    """A sort order over leaves: ``(leaf, key)`` pairs. ``scope`` names the rows that are sorted together; ``""``: rows
    are only checked."""

    keys: tuple[tuple[Node, SortKey], ...]
    scope: str


class Top(NamedTuple):
    """A top-level column."""

    column: int
    """Its number."""
    shape: Shape
    leaves: list[int]
    """Their numbers."""
    is_flat: bool
    """Whether the kernels can make its chunk from Arrow's buffers."""
    entries: bool
    """Those of its :class:`ColumnPlan`, if it has one leaf and is not nested."""


@dataclass(slots=True)
class WritePlan:
    """Options, schema, and everything derived from both. Files share it, so nothing in it may be changed."""

    options: WriteOptions
    schema: Schema
    elements: list[Any]
    tree: SchemaTree
    columns: list[ColumnPlan]
    sort: SortPlan | None
    hint: Schema | None
    """What to store as ``ARROW:schema``."""
    tops: list[Top]
    """The top-level columns."""
    orders: list[tt.ColumnOrder]
    """Those of the bounds, for the footer."""
    rules: Any = None
    """The columns as the kernels know them, kept by :class:`pyparq.write.column_chunks.ChunkEncoder`."""


MOST_PLANS = 8
MOST_KEPT = 1000
"""Plans that are kept, and the columns of each: the files of a folder, and those of a program that writes often, share
one."""
_kept: deque[tuple[WritePlan, Schema, tuple[Field, ...]]] = deque(maxlen=MOST_PLANS)
"""Plans, the schemas of the data, and the fields of both schemas."""


def make_plan(schema: Schema, options: WriteOptions, source: Schema | None = None) -> WritePlan:
    """Resolve ``options`` for ``schema``. ``source`` is the schema of the data if it differs: with its dictionaries,
    views and other layouts.

    Raises :class:`ColumnNotFoundError` for an option on a missing column, :class:`OptionError` for an option that does
    not fit its column, and :class:`UnsupportedError` for types that Parquet does not have.
    """
    source = schema if source is None else source
    keeps = options.encryption is None and len(schema.fields) <= MOST_KEPT and _cannot_change(options)
    # Equal fields that are not the same are not looked for: that takes as long as a plan.
    fields = (*schema.fields, *source.fields)
    for plan, of, known in list(_kept) if keeps else ():
        if len(known) == len(fields) and len(of.fields) == len(source.fields) and all(map(is_, known, fields)):
            same_metadata = plan.schema.metadata == schema.metadata and of.metadata == source.metadata
            if same_metadata and plan.options == options:
                return plan
    plan = _made(schema, options, source)
    if keeps:
        _kept.append((plan, source, fields))
    return plan


def _cannot_change(options: WriteOptions) -> bool:
    """Whether no value is a list or dict with items, which the caller may change before the next file."""
    for name in _OPTIONS:
        value = getattr(options, name)
        if value.__hash__ is None and len(value):
            return False
    return True


_OPTIONS = [field.name for field in dataclass_fields(WriteOptions)]


def _made(schema: Schema, options: WriteOptions, source: Schema) -> WritePlan:
    elements = elements_from_schema(schema)
    tree = build_tree(elements)
    apply_storage(tree, options, per_leaf)
    hint = hint_for(source, tree, options.store_schema)
    columns = _columns(tree, options, dictionary_leaves(hint, tree))
    tops = [_top(k, shape, columns) for k, shape in enumerate(shapes(tree.root))]
    orders = _column_orders([column.order for column in columns])
    return WritePlan(options, schema, elements, tree, columns, _sort_plan(tree, options), hint, tops, orders)


def _column_orders(orders: list[Order]) -> list[tt.ColumnOrder]:
    made = {order: _column_order(order) for order in set(orders)}
    return [made[order] for order in orders]


def _column_order(order: Order) -> tt.ColumnOrder:
    if order == Order.TOTAL:
        return tt.ColumnOrder(IEEE_754_TOTAL_ORDER=tt.IEEE754TotalOrder())
    if order == Order.INT96:
        return tt.ColumnOrder(INT96_TIMESTAMP_ORDER=tt.Int96TimestampOrder())
    return tt.ColumnOrder(TYPE_ORDER=tt.TypeDefinedOrder())


def _top(column: int, shape: Shape, columns: list[ColumnPlan]) -> Top:
    node = shape.node
    plan = columns[node.column] if shape.kind == "leaf" and node.max_rep == 0 and node.max_def <= 1 else None
    # A Bloom filter needs the values again, unless they are the entries of a dictionary.
    is_flat = plan is not None and (plan.bloom is None or plan.entries)
    entries = plan is not None and plan.entries
    return Top(column, shape, [leaf.column for leaf in node.leaves()], is_flat, entries)


def check_options(options: WriteOptions) -> None:
    """Check everything that needs no schema: names of codecs and encodings, the form of sort orders."""
    for name in _each(options.compression):
        compression.codec_number(name)
    for name in _each(options.column_encoding):
        _encoding_number(name)


def within_ordinals(options: WriteOptions) -> WriteOptions:
    """With encryption, the options with a smaller row group size, so that no chunk has more pages than two bytes can
    count.

    A page ends when it has its maximum of rows, or when one more row would be too large for it. So two neighbouring
    pages that end by size hold more than the maximum size together. Encoded values and levels are assumed to be at most
    eight times as large as in memory.
    """
    if options.encryption is None:
        return options
    pages = (MAX_ORDINAL + 1) // 2
    return replace(
        options,
        row_group_size=min(options.row_group_size, pages * options.max_rows_per_page),
        row_group_bytes=min(options.row_group_bytes, max(pages // 2 * options.data_page_size // 8, 1)),
    )


def _columns(tree: SchemaTree, options: WriteOptions, were_dictionaries: Mapping[int, bool]) -> list[ColumnPlan]:
    codecs = per_leaf(tree, options.compression, "snappy")
    levels = per_leaf(tree, options.compression_level, None)
    dictionaries = per_leaf(tree, options.use_dictionary, True)
    given_encodings = per_leaf(tree, options.column_encoding, None)
    statistics = per_leaf(tree, options.write_statistics, True)
    blooms = bloom_plan(tree, options)
    orders = per_leaf(tree, options.float_order, "TYPE_ORDER")
    key_values = _key_values(tree, options.column_key_value_metadata)
    by_name = isinstance(options.compression_level, Mapping), isinstance(options.float_order, Mapping)
    plans, found = [], _Storages()
    for leaf, bloom in zip(tree.leaves, blooms, strict=True):
        k = leaf.column
        try:
            codec, level, wanted, forced, encoding, order = found.of(
                leaf.type, codecs[k], levels[k], given_encodings[k], orders[k], by_name
            )
        except ParquetError as error:
            error.locate(column=leaf.dotted)
            raise
        plans.append(
            ColumnPlan(
                node=leaf,
                leaf=leaf.type,
                path=leaf.path,
                codec=codec,
                level=level,
                dictionary=forced or (wanted and bool(dictionaries[k])),
                keep_dictionary=forced,
                encoding=encoding,
                statistics=bool(statistics[k]),
                bloom=bloom,
                order=order,
                key_values=key_values.get(k, _NONE),
                entries=k in were_dictionaries,
                ordered=were_dictionaries.get(k, False),
            )
        )
    return plans


_NONE: Mapping[str, str | bytes | None] = {}


class _Storages:
    """How leaves are stored, shared by equal leaves: wide tables have thousands, but few that differ in type and
    options."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[tuple[Any, ...], tuple[int, int | None, bool, bool, int | None, Order]]] = {}

    def of(
        self, leaf: LeafType, codec: Any, level: Any, encoding: Any, order: Any, by_name: tuple[bool, bool]
    ) -> tuple[int, int | None, bool, bool, int | None, Order]:
        """Codec, level, whether a dictionary may be tried, whether it was requested by name, encoding, order."""
        asked = leaf, codec, level, encoding, order
        known = self._last.get(id(leaf))
        # By identity, because a user's value may be unhashable. The leaf is kept alive, so its id is not used again.
        if known is not None and all(a is b for a, b in zip(known[0], asked, strict=True)):
            return known[1]
        number = compression.codec_number(codec)
        made, forced = _encoding(leaf, encoding)
        may = encodings.holds(encodings.RLE_DICTIONARY, leaf.physical)
        found = (
            number, _level(number, level, by_name[0]), may and made is None, may and forced, made,
            order_of_leaf(leaf, order, by_name[1]),
        )  # fmt: skip
        self._last[id(leaf)] = asked, found
        return found


def _key_values(tree: SchemaTree, given: Mapping[Any, Any]) -> dict[int, dict[str, str | bytes | None]]:
    """Key-value metadata by leaf ordinal."""
    found = {}
    for node, pairs in by_node(tree, given).items():
        if not node.is_leaf or not isinstance(pairs, Mapping):
            raise OptionError("column_key_value_metadata must be {column: {key: value}}", column=node.dotted)
        with located(column=node.dotted):
            found[node.column] = {text_key(k): text_value(k, v) for k, v in pairs.items()}
    return found


def _level(codec: int, level: Any, per_column: bool) -> int | None:
    if level is not None and codec == compression.UNCOMPRESSED and not per_column:
        return None  # one level for all columns, even if some are not compressed
    return compression.check_level(codec, level)


def _encoding(leaf: LeafType, name: Any) -> tuple[int | None, bool]:
    """The encoding of pages without a dictionary, and whether a dictionary was requested by name."""
    number = None if name is None else _encoding_number(name)
    if number is None:
        return None, False
    if not encodings.holds(number, leaf.physical):
        raise OptionError(f"encoding {encodings.encoding_name(number)} cannot hold {leaf.physical.name} values")
    return (encodings.PLAIN, True) if number == encodings.RLE_DICTIONARY else (number, False)


def _encoding_number(name: Any) -> int | None:
    """The number of an encoding's name, in any case. ``None`` for ``auto``. Every name of a dictionary encoding means
    RLE_DICTIONARY."""
    wanted = name.upper() if isinstance(name, str) else name
    if wanted == "AUTO":
        return None
    if wanted in ("DICTIONARY", "PLAIN_DICTIONARY"):
        return encodings.RLE_DICTIONARY
    for number in encodings.WRITABLE:
        if encodings.ENCODING_NAMES[number] == wanted:
            return number
    names = ", ".join(encodings.ENCODING_NAMES[number] for number in encodings.WRITABLE)
    raise OptionError(f"unknown encoding {name!r}. The encodings are auto, {names}")


def bloom_plan(tree: SchemaTree, options: WriteOptions) -> list[BloomOptions | None]:
    """Bloom filter options per leaf. The short form names the leaves that get a filter, the long form gives its
    options."""
    short, long = options.bloom_filters, options.bloom_filter_options
    if (short is None or short is False) and long is None:
        return [None] * len(tree.leaves)
    asked = per_leaf(tree, short, False)
    details = per_leaf(tree, long, None)
    result: list[BloomOptions | None] = []
    for leaf in tree.leaves:
        k = leaf.column
        with located(column=leaf.dotted):
            found = bloom_options(asked[k])
            if details[k] is not None and asked[k] is not False:
                found = bloom_options(details[k], found)
            elif details[k] is not None and isinstance(long, Mapping):
                found = bloom_options(details[k])
            by_name = (isinstance(long, Mapping) and details[k] is not None) or not isinstance(short, bool)
            if found is not None and not can_prune(leaf.type):
                if by_name:
                    raise OptionError(
                        f"a column of {leaf.type.kind} ({leaf.type.physical.name}) cannot have a Bloom filter: no "
                        "reader could use it"
                    )
                found = None
        result.append(found)
    return result


def _sort_plan(tree: SchemaTree, options: WriteOptions) -> SortPlan | None:
    sorted_by, claimed = sort_keys(options.sort_by), sort_keys(options.sorting_columns)
    keys = sorted_by or claimed
    if not keys:
        return None
    pairs: list[tuple[Node, SortKey]] = []
    for key in keys:
        if isinstance(key.name, int) and not 0 <= key.name < len(tree.leaves):
            raise OptionError(
                f"there is no leaf column {key.name}. The schema has {len(tree.leaves)} leaf columns, counted from 0"
            )
        node = tree.leaves[key.name] if isinstance(key.name, int) else tree.find(key.name)
        # Comparing numbers in byte arrays of variable length costs more than bounds would gain.
        is_dear = node.is_leaf and node.type.kind == "decimal" and node.type.is_binary
        if not node.is_leaf or node.max_rep or is_dear or not has_order(node.type):
            what = node.type.kind if node.is_leaf and not node.max_rep else "nested"
            raise OptionError(f"rows cannot be sorted by {what} values", column=node.dotted)
        if any(node is other for other, _ in pairs):
            raise OptionError("the sort order names this column twice", column=node.dotted)
        pairs.append((node, key))
    return SortPlan(tuple(pairs), options.sort_scope if sorted_by else "")


def per_leaf(tree: SchemaTree, option: Any, default: Any) -> list[Any]:
    """The value of an option for each leaf: one value for all, a list of names (True for these), or a mapping by name.

    Names are resolved by :meth:`SchemaTree.find`. A group stands for all leaves below it, and a longer path wins over a
    shorter one. Two names of one column with different values raise :class:`OptionError`.
    """
    if isinstance(option, Mapping):
        named = list(by_node(tree, option).items())
    elif isinstance(option, (list, tuple, set, frozenset)):
        named, default = [(tree.find(name), True) for name in option], False
    else:
        return [option] * len(tree.leaves)
    result = [default] * len(tree.leaves)
    for node, value in sorted(named, key=lambda pair: len(pair[0].path)):
        for leaf in node.leaves():
            result[leaf.column] = value
    return result


def _each(option: Any) -> list[Any]:
    """The values of an option that may be given per column."""
    if isinstance(option, Mapping):
        return list(option.values())
    return [] if option is None else [option]
