"""The dictionary of a column that comes back as one: the entries that its values came from, in their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyparq.encodings import dictionary
from pyparq.schemas.types import LeafType
from pyparq.schemas.values import Values, concat_values, count_of, plain_size


def known_dictionary(
    values: Values, known: Values, leaf: LeafType, limit: int
) -> tuple[Values, npt.NDArray[np.int32]] | None:
    """All entries of ``known``, in their order, with those behind them that are missing there, and the index of each
    value; ``None`` when the entries take more than ``limit`` bytes."""
    if plain_size(known) > limit or count_of(known) == 0:
        return None
    both = concat_values([known, values], leaf)
    indices, first_positions = dictionary.build(both, leaf, limit)
    entries = dictionary.entries(both, first_positions)
    if len(indices) < count_of(both) or plain_size(entries) > limit:
        return None
    return entries, indices[count_of(known) :]
