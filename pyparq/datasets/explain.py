"""What a scan over a dataset has run, and its explanation: files ruled out by partitions, and the sums over the scans
of the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from pyparq.datasets.file_columns import Adapter
from pyparq.read.explain import Explained, Explanation
from pyparq.read.plan.candidates import StageReport
from pyparq.read.scan import Scan
from pyparq.runtime.tables import size_text, viewable


@dataclass(slots=True, eq=False)
class FileScan:
    """The scan of one file, or of several small ones as one."""

    numbers: list[int]
    """Of the files in the dataset."""
    scan: Scan
    adapter: Adapter | None
    """The conversion of the columns to the dataset's types. ``None`` where they have these types already."""


class Run(NamedTuple):
    """What an explanation is made of."""

    scans: list[FileScan]
    asked: set[int]
    """Files that were asked in groups, before their scans."""
    reports: list[StageReport]
    """What that ruled out."""
    requests: int = 0
    """For the footers of files without a scan."""
    bytes: int = 0
    file_bytes: int = 0
    """The size of these files."""


@dataclass(frozen=True, slots=True, repr=False)
class DatasetExplanation(Explained):
    """What one scan of a dataset read and skipped. Bytes and requests include opening the files.

    Example::

        print(pyparq.dataset("flights/").explain(filters=pyparq.col("month") == 2))
    """

    files: int
    """Files of the dataset."""
    files_opened: int
    """Files that neither partitions, a table's log nor the catalog rule out."""
    catalog_knows: int
    """Of the files that partitions leave, the ones that the catalog knows. 0 without a catalog."""
    catalog_rules_out: int
    """Of these, the ones that it rules out."""
    parts: tuple[Explanation, ...]
    """One explanation for each file that was read, or for small files that were read as one."""
    ruled_out_by: str = "partitions"
    """What can rule out files before they are opened."""

    @property
    def road(self) -> str:
        """The library that made the requests: ``"obstore"`` or ``"fsspec"``; empty for local files."""
        return next((part.road for part in self.parts if part.road), "")

    @viewable
    def _repr_html_(self) -> str:
        share = f"{size_text(self.bytes_fetched)} of {size_text(self.file_bytes)}"
        read = f"{share}, {self.requests:,} requests, {self.pages_decoded:,} pages"
        return self._view("files", self._files_text(), read, sum(part.file_rows for part in self.parts))

    def _files_text(self) -> str:
        by_partitions = self.files - self.files_opened - self.catalog_rules_out
        text = f"{self.files:,}, of which {self.ruled_out_by} rule out {by_partitions:,}"
        if not self.catalog_knows:
            return text
        return f"{text}, and the catalog {self.catalog_rules_out:,} of the {self.catalog_knows:,} that it knows"

    def __str__(self) -> str:
        share = f" ({100 * self.bytes_fetched / self.file_bytes:.2f} %)" if self.file_bytes else ""
        return self._told(
            f"  files    {self._files_text()}",
            f"{self.candidate_rows:,} rows",
            f"  pages decoded         {self.pages_decoded:,}, and {self.dictionaries_decoded:,} dictionaries",
            f"  bytes read            {self.bytes_fetched:,} of {self.file_bytes:,}{share}, {self.requests:,} requests "
            f"for {self.ranges:,} ranges",
        )


def explain_run(run: Run, **facts: Any) -> DatasetExplanation:
    """The sums over the scans that ran. ``facts``: the numbers of the whole dataset."""
    parts = tuple(scan.scan.explain(execute=False) for scan in run.scans)
    # What is known of files that were asked in groups is not asked again, but found again in the footers.
    stages = [
        tuple(s for s in part.stages if s.name != "statistics" or not run.asked.issuperset(scan.numbers))
        for part, scan in zip(parts, run.scans, strict=True)
    ]
    return DatasetExplanation(
        **facts,
        file_bytes=run.file_bytes + sum(part.file_bytes for part in parts),
        stages=_summed([tuple(run.reports), *stages]),
        candidate_rows=sum(part.candidate_rows for part in parts),
        pages_decoded=sum(part.pages_decoded for part in parts),
        dictionaries_decoded=sum(part.dictionaries_decoded for part in parts),
        ranges=run.requests + sum(part.ranges for part in parts),
        requests=run.requests + sum(part.requests for part in parts) + sum(stage.requests for stage in run.reports),
        bytes_fetched=run.bytes + sum(part.bytes_fetched for part in parts) + sum(s.bytes for s in run.reports),
        parts=parts,
    )


def _summed(stages: Sequence[tuple[StageReport, ...]]) -> tuple[StageReport, ...]:
    """One report per stage, in the order in which they first occur."""
    sums: dict[str, list[int]] = {}
    for report in (report for part in stages for report in part):
        values = [getattr(report, name) for name in _COUNTS]
        before = sums.setdefault(report.name, [0] * len(_COUNTS))
        sums[report.name] = [a + b for a, b in zip(before, values, strict=True)]
    return tuple(StageReport(name, *counts) for name, counts in sums.items())


_COUNTS = [field.name for field in fields(StageReport) if field.name != "name"]
