"""Whole Variants taken apart to the columns that are stored (VariantShredding.md)."""

from __future__ import annotations

from collections.abc import Mapping

from pyparq.arrow.column import Column
from pyparq.arrow.plain_layouts import normalize
from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.variant_columns import shredded_column
from pyparq.arrow.variants_within import Mask, Place, with_column
from pyparq.errors import DataError
from pyparq.kernels import KernelError
from pyparq.write.plan.shredding import Shredded


def shredded_batch(batch: RecordBatch, columns: Mapping[Place, Shredded]) -> RecordBatch:
    """The batch as it is stored.

    Raises :class:`DataError` for bytes that are no Variant.
    """
    made = list(batch.columns)
    for place, shredded in columns.items():
        try:
            made[place[0]] = _shredded(made[place[0]], place[1:], shredded)
        except KernelError as error:
            raise DataError(f"a Variant is invalid: {error}", column=shredded.name) from error
    return RecordBatch(made, batch.num_rows)


def _shredded(column: Column, below: Place, shredded: Shredded) -> Column:
    def make(variants: Column, mask: Mask) -> Column:
        return shredded_column(variants, shredded.field, shredded.terms, mask)

    if not below:
        return make(column, None)
    column = normalize(column, shredded.name)
    return with_column(column, column.type, below, make)
