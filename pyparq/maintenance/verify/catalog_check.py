"""Checks the catalog beside a dataset against the files that it knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyparq.datasets.catalog.building import FileEntries, entries_of
from pyparq.datasets.catalog.catalog import Catalog, open_catalog
from pyparq.datasets.catalog.key_table import Columns, cut
from pyparq.datasets.catalog.layout import FOLDER, Place
from pyparq.datasets.data_files import SourceFiles
from pyparq.errors import ParquetError
from pyparq.maintenance.verify.findings import Findings
from pyparq.maintenance.verify.report import FileReport
from pyparq.options import ReadOptions

KIND = "catalog"


def check_catalog(found: SourceFiles, options: ReadOptions) -> FileReport | None:
    """What is wrong with the catalog of a folder; ``None`` where there is none.

    Files that it does not know as they are listed are no finding: readers do not ask it about them.
    """
    if found.catalog is None:
        return None
    findings = Findings(f"{found.root.rstrip('/')}/{FOLDER}")
    try:
        catalog = open_catalog(Place(str(found.catalog.where), found.storage_options, found.catalog.fs))
        if catalog is not None:
            _check(catalog, found, options, findings)
    except (ParquetError, OSError) as error:
        findings.add(KIND, "catalog.json", f"it cannot be read: {error}")
    return FileReport(findings.file, findings=findings.found)


def _check(catalog: Catalog, found: SourceFiles, options: ReadOptions, findings: Findings) -> None:
    table = catalog.files
    stored = [_stored(catalog, column) for column in range(len(catalog.head.columns))]
    for file, place in zip(found.files, table.places_of(found.files).tolist(), strict=True):
        if place < 0:
            continue
        try:
            entries = entries_of(file, catalog.head.columns, options, found.storage_options)
        except (ParquetError, OSError):  # a finding of the file itself
            continue
        number = int(table.numbers[place])
        if (sum(entries.rows), len(entries.rows)) != (int(table.rows[place]), int(table.row_groups[place])):
            findings.add(KIND, "files", f"{file.name} has {sum(entries.rows)} rows, but it states {table.rows[place]}")
        _check_keys(catalog, stored, number, entries, findings)


def _stored(catalog: Catalog, column: int) -> list[tuple[int, Columns]]:
    """The rows of the key tables of a column, with the bits of their hashes."""
    tables = [table for table in catalog.keys if table.segment.column == column]
    return [(t.segment.bits, t.between(0, (1 << t.segment.bits) - 1, t.segment.bits)) for t in tables]


def _check_keys(
    catalog: Catalog, stored: Sequence[list[tuple[int, Columns]]], number: int, entries: FileEntries,
    findings: Findings,
) -> None:  # fmt: skip
    for (column, group), hashes in entries.keys.items():
        missing = np.ones(len(hashes), bool)
        for bits, (own, files, groups) in stored[column]:
            there = own[(files == number) & (groups == group)]
            missing &= ~np.isin(cut(hashes, 64, bits), there)
        if missing.any():
            name = ".".join(map(str, catalog.head.columns[column]))
            findings.add(
                KIND, "keys",
                f"it denies {int(missing.sum())} keys of the column {name} in row group {group} of {entries.file.name}",
            )  # fmt: skip
