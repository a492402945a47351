"""Whole Variants taken apart to the columns that are stored (VariantShredding.md)."""

from __future__ import annotations

from collections.abc import Mapping

from pyparq.arrow.record_batch import RecordBatch
from pyparq.arrow.variant_columns import shredded_column
from pyparq.errors import DataError
from pyparq.kernels import KernelError
from pyparq.write.plan.shredding import Shredded


def shredded_batch(batch: RecordBatch, columns: Mapping[int, Shredded]) -> RecordBatch:
    """The batch as it is stored.

    Raises :class:`DataError` for bytes that are no Variant.
    """
    made = list(batch.columns)
    for number, shredded in columns.items():
        try:
            made[number] = shredded_column(batch.columns[number], shredded.field, shredded.terms)
        except KernelError as error:
            raise DataError(f"a Variant is invalid: {error}", column=shredded.field.name) from error
    return RecordBatch(made, batch.num_rows)
