"""Which encoding a chunk's values get, and the value bytes of its pages.

A dictionary is built over the values until it grows past its limit, and kept if it makes the chunk smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyparq import encodings
from pyparq.encodings import dictionary, rle
from pyparq.schemas.types import LeafType, Physical
from pyparq.schemas.values import Values, concat_values, count_of, plain_size, slice_of
from pyparq.write.paginate import Cost, plain_cost


class Section(Protocol):
    """A stretch of a chunk's values in one encoding."""

    @property
    def encoding(self) -> int: ...

    @property
    def cost(self) -> Cost: ...

    def body(self, first: int, last: int) -> Any:
        """The encoded values ``[first, last)``, counted in the chunk, as a bytes-like object."""


@dataclass(frozen=True, slots=True)
class DictionarySection:
    """Values ``[0, len(indices))`` by their place in ``entries``."""

    entries: Values
    indices: npt.NDArray[np.int32]
    complete: bool
    """No value of the chunk is missing from ``entries``."""
    known: int = 0
    """Entries that are there whether they are used or not."""

    @property
    def encoding(self) -> int:
        return encodings.RLE_DICTIONARY

    @property
    def cost(self) -> Cost:
        return Cost(rle.bit_width(max(count_of(self.entries) - 1, 0)))

    def body(self, first: int, last: int) -> Any:
        return rle.encode_indices(self.indices[first:last], count_of(self.entries))


@dataclass(frozen=True, slots=True)
class DirectSection:
    """Values in an encoding that needs no dictionary."""

    values: Values
    leaf: LeafType
    encoding: int

    @property
    def cost(self) -> Cost:
        if self.leaf.physical == Physical.BOOLEAN:
            return Cost(1)
        return plain_cost(self.values, self.leaf.width)

    def body(self, first: int, last: int) -> Any:
        return encodings.encode(self.encoding, slice_of(self.values, first, last), self.leaf)


def try_dictionary(values: Values, leaf: LeafType, limit: int, keep: bool) -> DictionarySection | None:
    """A dictionary of at most ``limit`` bytes over the first values, or ``None`` when it does not pay.

    ``keep``: also when it does not pay (but not when not even the first value fits).
    """
    count = count_of(values)
    if count == 0:
        return None
    indices, first_positions = dictionary.build(values, leaf, limit)
    if len(indices) == 0:
        return None
    entries = dictionary.entries(values, first_positions)
    found = DictionarySection(entries, indices, len(indices) == count)
    if plain_size(entries) > limit:
        return None  # a single value wider than the limit
    return found if keep or share_of_plain(found, values) < 1 else None


def known_dictionary(values: Values, known: Values, leaf: LeafType, limit: int) -> DictionarySection | None:
    """All entries of ``known``, in their order, with those behind them that are missing there; ``None`` when that takes
    more than ``limit`` bytes."""
    if plain_size(known) > limit or count_of(known) == 0:
        return None
    both = concat_values([known, values], leaf)
    indices, first_positions = dictionary.build(both, leaf, limit)
    entries = dictionary.entries(both, first_positions)
    if len(indices) < count_of(both) or plain_size(entries) > limit:
        return None
    return DictionarySection(entries, indices[count_of(known) :], True, known=count_of(known))


def share_of_plain(section: DictionarySection, values: Values) -> float:
    """Bytes of the dictionary with its indices, as a share of the same values PLAIN."""
    covered = len(section.indices)
    with_dictionary = plain_size(section.entries) + section.cost.of(0, covered)
    return with_dictionary / max(plain_size(slice_of(values, 0, covered)), 1)


def level_bytes(levels: npt.NDArray[np.uint8] | None, count: int, maximum: int) -> Any:
    """RLE bytes of ``count`` levels; ``None`` stands for all at ``maximum``. Empty when ``maximum`` is 0."""
    if maximum == 0 or count == 0:
        return b""
    if levels is None:
        return _varint(count << 1) + bytes([maximum])
    return rle.encode_levels(levels, maximum)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
