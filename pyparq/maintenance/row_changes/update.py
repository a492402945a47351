"""``update``: rows of files that exist get other values in some columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyparq.errors import OptionError
from pyparq.limits import DEFAULT_LIMITS, Limits
from pyparq.maintenance.row_changes.applying import ApplyOptions, apply
from pyparq.maintenance.row_changes.changed_file import GroupChange
from pyparq.maintenance.row_changes.delete import opened, rows_asked_for
from pyparq.maintenance.row_changes.new_values import NewValues
from pyparq.maintenance.row_changes.report import ChangeReport
from pyparq.maintenance.row_changes.row_group_plans import RowGroupPlans
from pyparq.read.scan import Scan

if TYPE_CHECKING:
    from pyparq.arguments import Filters
    from pyparq.encryption.properties import DecryptionProperties


def update(
    source: Any,
    filters: Filters | None,
    values: Mapping[str, Any],
    *,
    keys: Mapping[str | tuple[str, ...], Any] | None = None,
    dry_run: bool = False,
    force: bool = False,
    progress: Callable[[int, int], Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    decryption: DecryptionProperties | None = None,
    limits: Limits | None = None,
    verify_checksums: bool = True,
    use_threads: bool = True,
    fsync: bool = False,
) -> ChangeReport:
    """Give the rows for which ``filters`` is true other values in some columns. Row groups without such rows are copied
    byte for byte, and files without them stay untouched.

    ``values``: ``{column: value}``; a value is a constant, ``None`` for null, or an expression of the row's columns
    such as ``pyparq.col("price") * 2``. All expressions see the row as it was. A column keeps its type: a value that it
    cannot hold exactly is refused, but numbers in columns of floats become the nearest float. Only whole columns can
    get values, and not those in the names of folders. The other arguments are those of :func:`pyparq.delete`.

    A row group that declares an order has it afterwards, too: its rows are sorted again.

    Returns a :class:`pyparq.ChangeReport`. Raises :class:`pyparq.DataError` and :class:`pyparq.OptionError` for values
    that do not fit, null in a required column included, and what :func:`pyparq.delete` raises. The files are then as
    they were.

    Example::

        pyparq.update("events.parquet", pyparq.col("user") == 7, {"email": None, "price": pyparq.col("price") * 2})
    """
    if not isinstance(values, Mapping) or not values:
        raise OptionError(f"values must be a dict of a column to its value, not {values!r:.80}")
    dataset = opened(
        source, storage_options, filesystem, decryption=decryption, limits=limits or DEFAULT_LIMITS,
        verify_checksums=verify_checksums, use_threads=use_threads,
    )  # fmt: skip
    for name in values:
        if name in dataset.partitions.names:
            raise OptionError("the names of folders hold the column, so rows would have to move", column=str(name))

    def find(scan: Scan) -> dict[int, GroupChange]:
        return rows_change(scan, values)

    asked = rows_asked_for(filters, keys)
    return apply(dataset, asked, find, ApplyOptions(True, dry_run, force, fsync, progress))


def rows_change(scan: Scan, values: Mapping[Any, Any]) -> dict[int, GroupChange]:
    """The rows of a scan get these values."""
    new: NewValues | None = None
    found: dict[int, GroupChange] = {}
    for row_group, rows in scan.matching_rows():
        if new is None:
            new = NewValues(scan.file, RowGroupPlans(scan.file).tree, values)
        found[row_group] = GroupChange(None, rows.rows(), new.leaves(row_group, rows))
    return found
