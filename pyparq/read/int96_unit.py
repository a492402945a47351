"""The unit that ``coerce_int96_timestamp_unit="auto"`` means for a file: nanoseconds where all instants fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyparq.errors import DataError
from pyparq.filters.expression import Expression, col
from pyparq.format.int96 import UNIT_NS
from pyparq.format.schema_node import Node
from pyparq.option_values import Int96Unit
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.scan import Scan

_LAST, _FIRST = (
    np.datetime64(nanoseconds // UNIT_NS["us"], "us") for nanoseconds in ((1 << 63) - 1, -(1 << 63))
)  # fmt: skip
"""The microseconds in which 64 bits of nanoseconds end and begin."""


def settled(file: OpenFile) -> OpenFile:
    """The file with a unit in place of ``"auto"``."""
    if file.options.coerce_int96_timestamp_unit != "auto":
        return file
    unit: Int96Unit = "us" if needs_microseconds(file) else "ns"
    return file.with_options(replace(file.options, coerce_int96_timestamp_unit=unit))


def needs_microseconds(file: OpenFile) -> bool:
    """Whether nanoseconds do not hold every INT96 timestamp of the file.

    Statistics and page indexes answer if the file has them in INT96's own order. Otherwise the values are read.
    """
    return any(leaf.type.kind == "int96" and _is_beyond(file, leaf) for leaf in file.tree.leaves)


def _is_beyond(file: OpenFile, leaf: Node) -> bool:
    try:
        if leaf.max_rep == 0 and not Scan(_read_in(file, "us"), [], _far(leaf)).count():
            return False
        for _ in Scan(_read_in(file, "ns"), [leaf.path]).batches():
            pass
    except DataError:
        return True
    return False


def _read_in(file: OpenFile, unit: Int96Unit) -> OpenFile:
    options: ReadOptions = replace(file.options, coerce_int96_timestamp_unit=unit, out_of_range="raise")
    return file.with_options(options)


def _far(leaf: Node) -> Expression:
    """True for all instants that nanoseconds do not hold, and for a few beside them."""
    return (col(leaf.path) >= _LAST) | (col(leaf.path) <= _FIRST)
