"""Which tables of Delta Lake and Apache Iceberg are refused, by name and before anything is written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyparq.datasets.delta import folder_of
from pyparq.errors import OptionError, UnsupportedError
from pyparq.io.table_formats import DELTA, format_of


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be done to the rows of a table."""

    operation: str = ""
    """``"DELETE"``, ``"UPDATE"`` or ``"MERGE"``. ``""``: the new files have the same rows."""
    columns: Collection[str] = ()
    """Columns of which an update changes values."""

    @property
    def makes_values(self) -> bool:
        """Whether the table gets values that it may not take."""
        return self.operation in ("UPDATE", "MERGE")


SAME_ROWS = Intent()


def check_table(table: Any, intent: Intent = SAME_ROWS) -> None:
    """Raise :class:`OptionError` for a table whose files cannot be replaced, and :class:`UnsupportedError` for what a
    change of rows, or the table's own library, would not keep."""
    (_check_delta if format_of(table) == DELTA else _check_iceberg)(table, intent)


# ---- Delta Lake (PROTOCOL.md, "Table Features" and "Requirements for Writers") ---------------------------------------

_REFUSED = {
    "delta.appendOnly": "the table takes no other changes than new rows",
    "delta.enableChangeDataFeed": "pyparq writes no change data: readers of the feed would see all rows of the changed "
    "files",
    "delta.enableRowTracking": "the rows would lose their numbers",
}
_KEPT = frozenset(
    ["appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
     "invariants", "timestampNtz", "v2Checkpoint"]
)  # fmt: skip
"""Writer features that ask nothing of a commit that leaves rows out, or that are refused where they are in use.
``deltalake`` commits to tables with these."""
_WRITER_VERSIONS = (1, 2, 3, 4, 5, 7)
"""6 stands for identity columns, to which ``deltalake`` does not commit."""
_CONSTRAINT = "delta.constraints."
_OF_COLUMNS = {
    "delta.generationExpression": "is computed from others",
    "delta.identity.start": "numbers the rows",
    "delta.invariants": "has an invariant",
    "__CHAR_VARCHAR_TYPE_STRING": "has the type char or varchar, which limits its length",
}
"""What the metadata of a column may say, and pyparq does not check in new values."""


def _check_delta(table: Any, intent: Intent) -> None:
    settings, root = table.metadata().configuration, folder_of(table)
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise OptionError("tables of Delta Lake with column mapping cannot get new files: deltalake cannot commit them")
    if not intent.operation:
        return
    for name, what in _REFUSED.items():
        if str(settings.get(name)).lower() == "true":
            raise UnsupportedError(f"{name} is on, and {what}", file=root)
    protocol = table.protocol()
    unknown = sorted(set(protocol.writer_features or ()) - _KEPT)
    if unknown:
        raise UnsupportedError(f"the table has the feature {unknown[0]}, which is not kept", file=root)
    if protocol.min_writer_version not in _WRITER_VERSIONS:
        raise UnsupportedError(
            f"the table needs a writer of version {protocol.min_writer_version}, which neither deltalake nor pyparq is",
            file=root,
        )
    if intent.makes_values:
        _check_values(table, settings, root)


def _check_values(table: Any, settings: Mapping[str, Any], root: str) -> None:
    """Refuse what a table demands of new values."""
    for name in settings:
        if name.startswith(_CONSTRAINT):
            raise UnsupportedError(
                f"the table has the constraint {name.removeprefix(_CONSTRAINT)}: {settings[name]}. pyparq does not "
                "check it in new values",
                file=root,
            )
    for column, metadata in _metadata(json.loads(table.schema().to_json())):
        for name, what in _OF_COLUMNS.items():
            if name in metadata:
                raise UnsupportedError(
                    f"the column {what}, and pyparq does not make such values", file=root, column=column
                )


def _metadata(schema: Any, above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The metadata of all fields of a schema's JSON, by their dotted names."""
    if not isinstance(schema, dict):
        return
    for field in schema.get("fields", ()):
        yield above + field["name"], field.get("metadata") or {}
        yield from _metadata(field["type"], f"{above}{field['name']}.")
    for part in ("elementType", "keyType", "valueType"):
        yield from _metadata(schema.get(part), above)


# ---- Apache Iceberg --------------------------------------------------------------------------------------------------

_MOST_VERSION = 2
"""Manifests of later versions number the rows, and ``pyiceberg`` writes none."""


def _check_iceberg(table: Any, intent: Intent) -> None:
    if hasattr(table, "plan_files"):
        raise OptionError("give the Iceberg table itself: a scan of it cannot be changed")
    version = table.metadata.format_version
    if version > _MOST_VERSION:
        raise UnsupportedError(f"the table has version {version} of the format, which pyiceberg does not write")
    specs, names = table.specs(), {field.field_id: field.name for field in table.schema().fields}
    files = [task.file for task in table.scan().plan_files()]
    known = set(table.schema().field_ids)
    for number in sorted({file.spec_id for file in files}):
        for field in specs[number].fields:
            if field.source_id not in known:
                raise UnsupportedError(
                    f"the partition field {field.name!r} of older files is made of a column that the table no longer "
                    "has: pyiceberg cannot write their manifests"
                )
            if names.get(field.source_id) in intent.columns and str(field.transform) != "void":
                raise UnsupportedError(
                    f"files are partitioned by {field.transform} of the column, so rows would have to move",
                    column=names[field.source_id],
                )
    for file in files:
        if intent.operation and file.key_metadata is not None:
            raise UnsupportedError("the file is encrypted with keys of the table", file=file.file_path)
