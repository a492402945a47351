"""Reads a scan of a dataset file by file, as if none of the files were alike."""

from __future__ import annotations

from pyparq.arrow.table import Table
from pyparq.datasets.scan import DatasetScan, file_scans_of


def read_one_by_one(scan: DatasetScan) -> Table:
    """What ``scan.to_table()`` gives, by a scan for each file that asks all indexes by itself."""
    reads = scan._reads
    found = reads._each(file_scans_of(scan), lambda one: reads._adapted(one, one.scan.to_table().batches))
    return Table(scan.schema, [batch for part in found for batch in part])
