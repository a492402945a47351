"""What a write to a folder did."""

from __future__ import annotations

from dataclasses import dataclass

from pyparq.pictures.tables import Cell, html_view, viewable
from pyparq.runtime.text import printable


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One new file."""

    path: str
    """As it can be opened: a path or a URL."""
    num_rows: int
    num_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class WriteReport:
    """What :func:`pyparq.write_dataset` has done.

    Example::

        report = pyparq.write_dataset({"id": [1, 2, 3]}, "ids")
        for file in report.files:
            print(file.path, file.num_rows)
    """

    path: str
    """The folder."""
    files: tuple[WrittenFile, ...]
    """The new files, in the order of their paths."""
    replaced: tuple[str, ...] = ()
    """Paths of the files that were removed."""

    @property
    def num_rows(self) -> int:
        """Rows in all new files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Bytes of all new files."""
        return sum(file.num_bytes for file in self.files)

    @viewable
    def _repr_html_(self) -> str:
        facts = [
            ("rows", f"{self.num_rows:,}"),
            ("bytes", f"{self.num_bytes:,}"),
            ("replaced", f"{len(self.replaced):,}"),
        ]
        rows: list[list[Cell]] = [[file.path, file.num_rows, file.num_bytes] for file in self.files]
        return html_view(f"WriteReport {self.path}", facts, ["file", "rows", "bytes"], rows)

    @printable
    def __repr__(self) -> str:
        done = f"{len(self.files):,} files, {self.num_rows:,} rows, {self.num_bytes:,} bytes"
        return f"<WriteReport {self.path}: {done}, {len(self.replaced):,} files replaced>"
