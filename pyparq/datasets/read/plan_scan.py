"""A plan of a dataset as the scan that it describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pyparq.datasets.discovery import DataFile, Found
from pyparq.datasets.read.dataset import Progress, dataset_of
from pyparq.datasets.read.plan import DatasetPlan, planned_partitions
from pyparq.datasets.read.scan import DatasetScan
from pyparq.errors import OptionError
from pyparq.options import ReadOptions
from pyparq.read.plan.scan_plan import NOT_PLANNED


def scan_of_plan(
    plan: DatasetPlan,
    *,
    progress: Progress | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DatasetScan:
    """The scan that ``plan`` describes: see :meth:`DatasetPlan.scan`."""
    unknown = [name for name in options if name not in NOT_PLANNED]
    if unknown:
        raise OptionError(
            f"{', '.join(unknown)}: not an option for running a plan, which has the options that it was made with. "
            f"Options here: storage_options, progress, {', '.join(NOT_PLANNED)}"
        )
    header = plan.header
    own = {name: value for name, value in options.items() if value is not None}
    files = tuple(DataFile(file.name, file.where, (), file.size) for file in plan.files)
    dataset = dataset_of(
        Found(plan.source, files, False, storage_options), planned_partitions(plan), header.schema,
        ReadOptions.make({**{f.name: getattr(header.options, f.name) for f in fields(ReadOptions)}, **own}),
        header.by, header.on_error, progress,
    )  # fmt: skip
    return DatasetScan(dataset, header.columns, header.filters, header.limit, plan)
