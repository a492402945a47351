"""Applies a dataset's tests to a file that has other types. Literals mean what they mean to the dataset's types.

For example, a uuid as text is 36 bytes to a binary column, and a time with a zone is refused by a column of local
times. Results show the dataset's types, so these decide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyparq.errors import FilterError
from pyparq.filters.constant_folding import simplified
from pyparq.filters.expression import (
    AllOf,
    AnyOf,
    Compare,
    Contains,
    Expression,
    IsIn,
    IsNan,
    Not,
    Path,
    is_null_literal,
    with_literals,
)
from pyparq.filters.literal import BYTES_KINDS, FLOAT_TYPES, describe, locate, settled
from pyparq.filters.shown_values import as_shown, meaning
from pyparq.filters.value_array import ValueArray
from pyparq.format.schema_node import Node
from pyparq.format.types import Field, LeafType

_NUMBERS = ("int", "uint", "float16", "float", "double")


def for_leaf(test: Expression, wanted: Node, shown: Field | None, leaf: Node, own: Field | None) -> Expression:
    """``test`` on the dataset's leaf ``wanted``, as a test on a file's ``leaf``.

    Results show ``wanted`` as ``shown``. The file alone would show ``leaf`` as ``own``. The path of ``test`` is the
    file's. Raises :class:`FilterError` if the two types cannot be compared.
    """
    if not (wanted.is_leaf and leaf.is_leaf):
        return test
    if isinstance(test, IsNan) and wanted.type.kind in FLOAT_TYPES and leaf.type.kind in ("int", "uint"):
        return Compare(test.path, "<", -(1 << 64))  # no whole number equals it
    if not isinstance(test, (Compare, Contains, IsIn)):
        return test
    means, has = meaning(shown), meaning(own)
    if means != has and means:
        made = as_shown(test, leaf, shown)  # only the dataset's schema hints at it
        return made if _alike(wanted.type, leaf.type) else simplified(made, lambda part: _settled(part, wanted))
    if _rounds(wanted.type, leaf.type):
        return _rounded(test, wanted, leaf)
    if (means != has and has == "ordered") or not _alike(wanted.type, leaf.type):
        return _settled(test, wanted)
    return test


def check_computed(wanted: Node, shown: Field | None, leaf: Node, own: Field | None) -> None:
    """Raise :class:`FilterError` for a column that the file stores as another type than the dataset shows, so that
    values computed from it may differ."""
    if not (wanted.is_leaf and leaf.is_leaf):
        return  # binding raises the error
    same = meaning(shown) == meaning(own) and _alike(wanted.type, leaf.type) and not _rounds(wanted.type, leaf.type)
    if not same or (meaning(shown) == "duration" and shown != own):
        raise FilterError(
            f"the dataset shows {describe(wanted.type)}, and a file stores {describe(leaf.type)}: such a column can be "
            "compared with literals, but not computed with",
            column=wanted.dotted,
        )


def _alike(wanted: LeafType, leaf: LeafType) -> bool:
    """Whether a literal means the same to both types."""
    return wanted == leaf or leaf.kind == "null" or _family(wanted) == _family(leaf)


def _family(leaf: LeafType) -> str:
    if leaf.kind in _NUMBERS:
        return "number"
    if leaf.kind in BYTES_KINDS:
        return "bytes"
    return "instant" if leaf.kind == "timestamp" and leaf.utc else leaf.kind


def _settled(test: Expression, wanted: Node) -> Expression:
    leaf, name = wanted.type, wanted.dotted
    if not isinstance(test, (Compare, Contains, IsIn)):
        return test
    many = test.values if isinstance(test, IsIn) else None
    if isinstance(many, ValueArray) and many.numbers.dtype.kind != "f" and leaf.kind == "decimal":
        return test  # whole numbers mean the same in both
    if not isinstance(test, IsIn):
        null = is_null_literal(test.value)
        return test if null else with_literals(test, settled(leaf, test.value, name))
    return with_literals(test, [None if is_null_literal(v) else settled(leaf, v, name) for v in test.values])


# ---- floats that a dataset shows in a narrower type than the file's


def _rounds(wanted: LeafType, leaf: LeafType) -> bool:
    return wanted.kind in FLOAT_TYPES and leaf.kind in FLOAT_TYPES and wanted.width < leaf.width


def _rounded(test: Compare | Contains | IsIn, wanted: Node, leaf: Node) -> Expression:
    """A test of rounded values, as a test of the stored values that are rounded to them."""
    if isinstance(test, Compare):
        return _rounded_compare(test.path, test.op, test.value, wanted, leaf)
    if isinstance(test, IsIn):
        nulls = [value for value in test.values if is_null_literal(value)]
        known = [value for value in test.values if not is_null_literal(value)]
        parts = [_rounded_compare(test.path, "==", value, wanted, leaf) for value in known]
        return AnyOf((with_literals(test, nulls), *parts)) if parts else test
    if is_null_literal(test.value):
        return test
    raise FilterError(
        f"schema= makes {describe(wanted.type)} of {describe(leaf.type)}, and contains() cannot be asked of rounded "
        f"values: give {describe(leaf.type)} in schema=",
        column=wanted.dotted,
    )


def _rounded_compare(path: Path, op: str, value: Any, wanted: Node, leaf: Node) -> Expression:
    below, above = place = locate(wanted.type, value, wanted.dotted)
    if below != below:  # NaN stays NaN
        return Compare(path, op, below)
    low, high = _rounded_to(above, -1, wanted, leaf), _rounded_to(below, 1, wanted, leaf)
    if op in ("<=", ">") or (op == "<" and not place.exact):
        return Compare(path, ">" if op == ">" else "<=", high)
    if op in (">=", "<"):
        return Compare(path, op, low)
    # A literal between two narrow values: no value is rounded to it, and ``low`` is above ``high``.
    same = AllOf((Compare(path, ">=", low), Compare(path, "<=", high)))
    return same if op == "==" else Not(same)


def _rounded_to(value: Any, side: int, wanted: Node, leaf: Node) -> float:
    """The largest (``side`` 1) or smallest (``side`` -1) value of the leaf that is rounded to ``value``."""
    narrow, wide = FLOAT_TYPES[wanted.type.kind], FLOAT_TYPES[leaf.type.kind]
    near = narrow(value)
    if not np.isfinite(near):
        return float(value)
    with np.errstate(over="ignore"):
        beyond = np.nextafter(near, narrow(side * math.inf))
        if np.isfinite(beyond):
            middle = (wide(near) + wide(beyond)) / 2
        else:
            middle = wide(near) + (wide(near) - wide(np.nextafter(near, narrow(0)))) / 2
        if narrow(middle) != near:
            middle = np.nextafter(middle, wide(near))
        return float(middle)
