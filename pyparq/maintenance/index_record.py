"""The record of pyparq's own indexes in a file's key-value metadata: their columns, and the version that added them.

``created_by`` stays that of the writer, because readers work around the faults of some writers by it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyparq._version import __version__
from pyparq.maintenance.index_building import ChunkChange
from pyparq.maintenance.index_request import BLOOM, COLUMN_INDEX, KINDS, OFFSET_INDEX
from pyparq.maintenance.report import ADDED, REMOVED, REPLACED

RECORD_KEY = "pyparq.indexes"

_NAMES = {BLOOM: "bloom_filters", COLUMN_INDEX: "column_indexes", OFFSET_INDEX: "offset_indexes"}


def updated_record(stored: bytes | None, changes: Sequence[ChunkChange]) -> str | None:
    """The value of the key after these changes. ``None`` if no index of pyparq's is left."""
    ours = _parsed(stored)
    for kind in KINDS:
        names = ours[kind]
        for change in changes:
            name = change.node.dotted
            outcome = change.outcome.get(kind)
            if outcome in (ADDED, REPLACED) and name not in names:
                names[name] = None
            elif outcome == REMOVED:
                names.pop(name, None)
    if not any(ours.values()):
        return None
    record = {"version": __version__, **{_NAMES[kind]: list(ours[kind]) for kind in KINDS if ours[kind]}}
    return json.dumps(record, ensure_ascii=False)


def _parsed(stored: bytes | None) -> dict[str, dict[str, None]]:
    """The columns in a stored value, by kind of index. Empty if the value is not a record of pyparq's."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    try:
        value = json.loads(stored or b"{}")
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return found
    for kind, name in _NAMES.items():
        listed = value.get(name) if isinstance(value, dict) else None
        if isinstance(listed, list):
            found[kind] = {column: None for column in listed if isinstance(column, str)}
    return found
