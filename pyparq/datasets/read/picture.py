"""The map of a dataset: the maps of its files, one after the other."""

from __future__ import annotations

from typing import Any

from pyparq.datasets.read.dataset_files import DatasetFiles
from pyparq.datasets.read.explain import DatasetExplanation, explain_run
from pyparq.datasets.read.file_reads import Run
from pyparq.datasets.read.file_scans import FileScan
from pyparq.datasets.read.scan import DatasetScan, file_scans_of
from pyparq.read.file_map import MOST_PAGES, Asked, FileMap, MappedFile, document, mapped_file
from pyparq.read.page_fates import PARTITION


def map_files(files: DatasetFiles, scan: DatasetScan | None, most_files: int) -> FileMap:
    """The map of the first ``most_files`` files. ``scan``: the query to show; it runs over these."""
    numbers = range(min(len(files.files), most_files))
    asked: dict[int, Asked] = {}
    query = None
    if scan is not None:
        scans = [file_scan for file_scan in file_scans_of(scan) if file_scan.number in numbers]
        asked = {file_scan.number: Asked.run(file_scan.scan) for file_scan in scans}
        query = _explanation(files, scan, scans, asked, len(numbers)).to_dict()
    parts = [_part(files, number, asked.get(number), scan is not None) for number in numbers]
    return FileMap(document(files.root, [part for part in parts if part is not None], query))


def _part(files: DatasetFiles, number: int, asked: Asked | None, queried: bool) -> MappedFile | None:
    """One file; ``None`` if it is left out, because it cannot be read."""
    file = files.open(number)
    if file is None:
        return None
    part = mapped_file(file, asked, MOST_PAGES // max(len(files.files), 1))
    if queried and asked is None:
        pages = part.facts.pages
        pages["fate"] = [PARTITION] * len(pages["fate"])
    return part


def _explanation(
    files: DatasetFiles, scan: DatasetScan, scans: list[FileScan], asked: dict[int, Asked], count: int
) -> DatasetExplanation:
    rows: Any = [one.explanation.rows for one in asked.values()]
    return explain_run(
        Run(list(scans), set(), []), source=files.root, columns=scan.schema.names,
        predicate="true" if scan.filters is None else repr(scan.filters),
        files=count, files_opened=len(scans), rows=sum(row or 0 for row in rows),
    )  # fmt: skip
