"""What ``index_dataset`` has done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pyparq.runtime.text import printable


@dataclass(frozen=True, slots=True, repr=False)
class CatalogReport:
    """What :func:`pyparq.index_dataset` has done to the catalog of a dataset.

    Example::

        report = pyparq.index_dataset("flights/", ["tailnum"])
        print(report.files, report.files_read, report.left_out)
    """

    source: str
    columns: tuple[str, ...]
    """The key columns."""
    files: int
    """Files that the catalog has now."""
    files_read: int
    """Files that were read for it: new ones, and those that have changed."""
    files_removed: int
    """Files that it had before, and that are gone or have changed."""
    left_out: tuple[tuple[str, str], ...]
    """Files that it does not have, with the reasons. Queries read them as if there were no catalog."""
    entries: int
    """Keys in all row groups, each once per row group."""
    bytes: int
    """Size of the catalog."""
    changed: bool
    """Whether a new catalog was written."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values (for JSON)."""
        return asdict(self)

    @printable
    def __repr__(self) -> str:
        left = f", {len(self.left_out):,} left out" if self.left_out else ""
        return (
            f"<CatalogReport of {self.source}: {self.files:,} files, {self.files_read:,} read, {self.files_removed:,} "
            f"removed{left}; {self.entries:,} entries, {self.bytes:,} bytes>"
        )
