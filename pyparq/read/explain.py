"""The explanation of a scan, as text and as values: what each index ruled out, and the pages, requests and bytes
read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyparq.errors import ParquetError
from pyparq.read.column_reads import ScanCounts
from pyparq.read.decode.chunk_pages import DATA_PAGE, DATA_PAGE_V2
from pyparq.read.footers.open_file import OpenFile
from pyparq.read.plan.candidates import Selection, StageReport
from pyparq.runtime.tables import Bar, Cell, aligned, html_view, size_text, viewable
from pyparq.runtime.text import printable


@dataclass(frozen=True, slots=True, repr=False)
class Explained:
    """What explanations of one file and of many have in common."""

    source: str
    columns: list[str]
    predicate: str
    file_bytes: int
    """Size of the file, or of all files that were opened."""
    stages: tuple[StageReport, ...]
    """What each index removed."""
    candidate_rows: int
    """Rows left after pruning."""
    rows: int | None
    """Rows returned; ``None`` when the scan has not run."""
    pages_decoded: int
    dictionaries_decoded: int
    ranges: int
    """Ranges that stages asked for and that took bytes from the source."""
    requests: int
    """Requests made, near ranges merged."""
    bytes_fetched: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values (for JSON)."""
        return asdict(self)

    def _told(self: Any, what: str, left: str, *read: str) -> str:
        """As text. ``what``: what was asked. ``left``: by the indexes. ``read``: lines about what was read."""
        rows = [] if self.rows is None else [f"  rows returned         {self.rows:,}"]
        asked = [f"  filter   {self.predicate}", f"  columns  {', '.join(self.columns) or '(none)'}", what]
        name = f"{self.source}{f' (by {self.road})' if self.road else ''}"
        found = f"  left by the indexes   {left}"
        return "\n".join([name, *asked, "", *stage_table(self.stages), "", found, *rows, *read])

    @printable
    def __repr__(self: Any) -> str:
        rows = self.candidate_rows if self.rows is None else self.rows
        read = f"{_count(self.pages_decoded, 'page')}, {self.bytes_fetched:,} bytes, {_count(self.requests, 'request')}"
        return f"<{type(self).__name__} of {self.source} where {self.predicate}: {_count(rows, 'row')}, {read}>"

    def _view(self: Any, what: str, asked: str, read: str, of_rows: int) -> str:
        """As HTML. ``what``: what was ``asked``, of so many rows. ``read``: what was read."""
        facts = [("filter", self.predicate), ("columns", ", ".join(self.columns)), (what, asked), ("read", read)]
        facts += [] if self.rows is None else [("rows", f"{self.rows:,}")]
        return html_view(f"{type(self).__name__} of {self.source}", facts, *stage_view(self.stages, of_rows))


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Explained):
    """What one scan read and skipped. Bytes and requests are those of the source, including opening the file.

    Example::

        with pyparq.ParquetFile("flights.parquet") as file:
            explanation = file.scan(filters=pyparq.col("tailnum") == "N14228").explain()
        print(explanation)
        print(explanation.bytes_fetched, [stage.name for stage in explanation.stages])
    """

    file_row_groups: int
    file_rows: int
    file_pages: int | None
    """Data pages in the whole file; ``None`` where the footer does not tell."""
    row_groups: int
    """Row groups left after pruning."""
    road: str = ""
    """The library that made the requests: ``"obstore"`` or ``"fsspec"``; empty for local files and memory."""

    @viewable
    def _repr_html_(self) -> str:
        of_pages = "" if self.file_pages is None else f" of {self.file_pages:,}"
        asked = f"{self.file_rows:,} rows, {self.file_row_groups:,} row groups, {size_text(self.file_bytes)}"
        share = f"{size_text(self.bytes_fetched)} ({_share(self.bytes_fetched, self.file_bytes)})"
        read = f"{share}, {_count(self.requests, 'request')}, {self.pages_decoded:,}{of_pages} pages"
        return self._view("file", asked, read, self.file_rows)

    def __str__(self) -> str:
        of_pages = f" of {self.file_pages:,}" if self.file_pages is not None else ""
        return self._told(
            f"  file     {_count(self.file_rows, 'row')} in {_count(self.file_row_groups, 'row group')}, "
            f"{_pages(self.file_pages)}, {self.file_bytes:,} bytes",
            f"{_count(self.candidate_rows, 'row')} in {_count(self.row_groups, 'row group')}",
            f"  pages decoded         {self.pages_decoded:,}{of_pages}, "
            f"and {_count(self.dictionaries_decoded, 'dictionary')}",
            f"  bytes read            {self.bytes_fetched:,} of {self.file_bytes:,} "
            f"({_share(self.bytes_fetched, self.file_bytes)}), {_count(self.requests, 'request')} "
            f"for {_count(self.ranges, 'range')}",
        )


def explain_read(
    file: OpenFile, decoded: ScanCounts, left: Sequence[Selection], *, columns: list[str], predicate: str,
    stages: tuple[StageReport, ...], rows: int | None,
) -> Explanation:  # fmt: skip
    """What a scan of ``file`` has counted: see :class:`Explanation`. ``left``: the row groups that pruning left."""
    counts, opened = file.fetcher.counts, file.open_counts
    return Explanation(
        source=file.name, columns=columns, predicate=predicate, file_bytes=file.num_bytes,
        file_row_groups=file.num_row_groups, file_rows=sum(file.num_rows_of(k) for k in range(file.num_row_groups)),
        file_pages=_count_pages(file), stages=stages, row_groups=len(left),
        candidate_rows=sum(selection.maybe.count for selection in left), rows=rows, pages_decoded=decoded.data_pages,
        dictionaries_decoded=decoded.dictionary_pages, requests=counts.requests + opened.requests,
        bytes_fetched=counts.bytes + opened.bytes, ranges=counts.ranges + opened.ranges,
        road=getattr(file.fetcher.source, "road", ""),
    )  # fmt: skip


def _count_pages(file: OpenFile) -> int | None:
    """Data pages of all chunks from their encoding statistics (no I/O); ``None`` when a chunk has none."""
    total = 0
    for row_group in range(file.num_row_groups):
        for leaf in file.tree.leaves:
            try:
                stats = file.chunk(row_group, leaf).meta.encoding_stats
            except ParquetError:  # the scan need not have touched the column
                return None
            if not stats:
                return None
            total += sum(s.count for s in stats if s.page_type in (DATA_PAGE, DATA_PAGE_V2))
    return total


def stage_table(stages: tuple[StageReport, ...]) -> list[str]:
    rows = [
        (
            s.name, f"{s.asked:,}", f"{s.row_groups_before:,} -> {s.row_groups_after:,}",
            f"{s.rows_before:,} -> {s.rows_after:,}",
            f"{s.pages_before:,} -> {s.pages_after:,}" if s.pages_before else "-", f"{s.requests:,}", f"{s.bytes:,}",
        )
        for s in stages
    ]  # fmt: skip
    headings = ("index", ">asked", ">row groups", ">rows", ">pages", ">requests", ">bytes")
    return [f"  {line}" for line in aligned(headings, rows)] if stages else ["  no index was asked"]


def stage_view(stages: tuple[StageReport, ...], rows: int) -> tuple[list[str], list[list[Cell]]]:
    """Headings and rows of the stages for a notebook, with a bar for the rows that each has left of ``rows``."""
    lines: list[list[Cell]] = [
        [
            s.name, f"{s.row_groups_before:,} → {s.row_groups_after:,}", Bar(s.rows_after / max(rows, 1)), s.rows_after,
            f"{s.pages_before:,} → {s.pages_after:,}" if s.pages_before else "", s.requests, s.bytes,
        ]
        for s in stages
    ]  # fmt: skip
    headings = ["index", "row groups", "", "rows left", "pages", "requests", "bytes"]
    return (headings, lines) if lines else ([], [])


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {plural}"


def _pages(number: int | None) -> str:
    return "an unknown number of pages" if number is None else _count(number, "page")


def _share(read: int, size: int) -> str:
    """``43.53 %``. A number above 100 % means that bytes were read twice, for example the end of a chunk that the tail
    read had."""
    if read > size:
        return f"all, and {_count(read - size, 'byte')} twice"
    return f"{100 * read / size:.2f} %" if size else "-"
