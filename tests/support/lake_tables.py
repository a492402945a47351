"""Makes tables with deleted rows, which the Python packages of Delta Lake and Iceberg read but do not write."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyparq


def _roaring(rows: list[int]) -> bytes:
    """A portable 64-bit Roaring bitmap with one bitmap per 2**32 rows (of which there is one here)."""
    from pyroaring import BitMap

    return struct.pack("<qi", 1, 0) + bytes(BitMap(rows).serialize())


# ---- Delta Lake ----------------------------------------------------------------------------------------------------

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = 1681511377


def _z85(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    texts = []
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        texts.append("".join(_Z85[number // 85**k % 85] for k in (4, 3, 2, 1, 0)))
    return "".join(texts)


def delete_by_vector(folder: Path, deleted: dict[str, list[int]]) -> None:
    """A commit that deletes rows of data files by deletion vectors inside the log (PROTOCOL.md, "Deletion Vectors").

    ``deleted``: row numbers by the file's path in the log.
    """
    log = folder / "_delta_log"
    actions = [json.loads(line) for path in sorted(log.glob("*.json")) for line in path.read_text().splitlines()]
    adds = {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    metadata["configuration"]["delta.enableDeletionVectors"] = "true"
    features = {"minReaderVersion": 3, "minWriterVersion": 7}
    features |= {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}  # type: ignore[dict-item]
    lines: list[dict[str, Any]] = [{"protocol": features}, {"metaData": metadata}]
    for path, rows in deleted.items():
        vector = vector_in_log(rows)
        lines.append({"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True}})
        lines.append({"add": adds[path] | {"deletionVector": vector}})
    name = f"{len(list(log.glob('*.json'))):020}.json"
    (log / name).write_text("\n".join(map(json.dumps, lines)))


# ---- Apache Iceberg ------------------------------------------------------------------------------------------------


def with_deletes(table: Any, deleted: dict[str, list[int]], form: str) -> Any:
    """The table with one more snapshot, which deletes rows of its data files by delete files.

    ``deleted``: row numbers by the file's path. ``form``: ``"parquet"`` for position deletes, ``"puffin"`` for deletion
    vectors, ``"equality"`` for a delete file that names values.
    """
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        write_manifest,
        write_manifest_list,
    )
    from pyiceberg.table import StaticTable
    from pyiceberg.typedef import Record

    base = Path(table.location().removeprefix("file://"))
    version, snapshot, io = 2, table.current_snapshot(), table.io  # pyiceberg writes no manifests of version 3
    number, sequence = snapshot.snapshot_id + 1, table.metadata.last_sequence_number + 1
    entries = []
    for task in table.scan().plan_files():
        rows = deleted.get(task.file.file_path)
        if rows is None:
            continue
        path = base / f"delete-{len(entries)}.{'puffin' if form == 'puffin' else 'parquet'}"
        _write_deletes(path, task.file.file_path, rows, form)
        content = DataFileContent.EQUALITY_DELETES if form == "equality" else DataFileContent.POSITION_DELETES
        file = DataFile.from_args(
            _table_format_version=version, content=content, file_path=f"file://{path}", record_count=len(rows),
            file_format=FileFormat.PUFFIN if form == "puffin" else FileFormat.PARQUET,
            partition=Record(*task.file.partition._data), file_size_in_bytes=path.stat().st_size,
            equality_ids=[1] if form == "equality" else None,
        )  # fmt: skip
        file.spec_id = task.file.spec_id
        entries.append(ManifestEntry.from_args(
            _table_format_version=version, status=ManifestEntryStatus.ADDED, snapshot_id=number, sequence_number=None,
            file_sequence_number=None, data_file=file,
        ))  # fmt: skip
    manifest_path, list_path = f"file://{base}/deletes.avro", f"file://{base}/snap-deletes.avro"
    writer = write_manifest(version, table.spec(), table.schema(), io.new_output(manifest_path), number, "null")
    writer.content = lambda: ManifestContent.DELETES
    with writer:
        for entry in entries:
            writer.add_entry(entry)
    made = writer.to_manifest_file()
    with write_manifest_list(
        version, io.new_output(list_path), number, snapshot.snapshot_id, sequence, "null"
    ) as listed:
        listed.add_manifests([*snapshot.manifests(io), made])
    metadata = json.loads(table.metadata.model_dump_json())
    metadata["last-sequence-number"], metadata["current-snapshot-id"] = sequence, number
    metadata["snapshots"].append({
        "snapshot-id": number, "parent-snapshot-id": snapshot.snapshot_id, "sequence-number": sequence,
        "timestamp-ms": snapshot.timestamp_ms + 1, "manifest-list": list_path, "summary": {"operation": "delete"},
    })  # fmt: skip
    metadata["refs"]["main"]["snapshot-id"] = number
    path = base / "metadata" / "deletes.metadata.json"
    path.write_text(json.dumps(metadata))
    return StaticTable.from_metadata(str(path))


def _write_deletes(path: Path, data_file: str, rows: list[int], form: str) -> None:
    """Write one delete file."""
    if form == "equality":
        pyparq.write_table({"id": rows}, path, force=True)
        return
    if form == "parquet":
        pyparq.write_table({"file_path": [data_file] * len(rows), "pos": rows}, path, force=True)
        return
    bitmap = struct.pack("<I", 0x64_39_D3_D1) + _roaring(rows)
    blob = struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    described = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4}
    described |= {"length": len(blob), "properties": {"referenced-data-file": data_file}}  # type: ignore[dict-item]
    footer = json.dumps({"blobs": [described]}).encode()
    end = b"PFA1" + footer + struct.pack("<i", len(footer)) + b"\0\0\0\0" + b"PFA1"
    path.write_bytes(b"PFA1" + blob + end)


# ---- Delta Lake, a log written by hand -----------------------------------------------------------------------------


def commit_of(folder: Path, version: int, *actions: dict[str, Any]) -> None:
    """The commit of a version with these actions."""
    (folder / "_delta_log").mkdir(exist_ok=True, parents=True)
    (folder / "_delta_log" / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def protocol_of(reader: list[str] | int, writer: list[str] | int) -> dict[str, Any]:
    """The protocol with these features, or of older versions without any."""
    found: dict[str, Any] = {"minReaderVersion": 3, "readerFeatures": reader}
    if isinstance(reader, int):
        found = {"minReaderVersion": reader}
    found |= {"minWriterVersion": writer} if isinstance(writer, int) else {"minWriterVersion": 7}
    return {"protocol": found if isinstance(writer, int) else found | {"writerFeatures": writer}}


def metadata_of(fields: list[dict[str, Any]], partitions: tuple[str, ...] = (), **configuration: str) -> dict[str, Any]:
    """The metadata of a table with these columns. Dots of settings are written as ``__``."""
    schema = json.dumps({"type": "struct", "fields": fields})
    settings = {f"delta.{name.replace('__', '.')}": value for name, value in configuration.items()}
    found: dict[str, Any] = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    return {"metaData": found | {"partitionColumns": list(partitions), "configuration": settings, "createdTime": 0}}


def field_of(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    """A column. Dots of its metadata are written as ``__``."""
    return {"name": name, "type": type_, "nullable": True,
            "metadata": {key.replace("__", ".", 1): value for key, value in metadata.items()}}  # fmt: skip


def file_of(folder: Path, name: str, data: Any, **said: Any) -> dict[str, Any]:
    """A data file, and the action that adds it. ``data``: a table of pyarrow."""
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True, parents=True)
    pq.write_table(data, folder / name)
    found: dict[str, Any] = {"path": name, "partitionValues": {}, "size": (folder / name).stat().st_size}
    found |= {"modificationTime": 0, "dataChange": True, "stats": json.dumps({"numRecords": data.num_rows})}
    return {"add": found | said}


def vector_in_file(folder: Path, rows: list[int]) -> dict[str, Any]:
    """A deletion vector in a file of its own, as most writers make them."""
    import uuid

    name, data = uuid.UUID(int=7), struct.pack("<i", _MAGIC) + _roaring(rows)
    ended = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (folder / f"deletion_vector_{name}.bin").write_bytes(b"\1" + ended)
    return {"storageType": "u", "pathOrInlineDv": _z85(name.bytes), "offset": 1, "sizeInBytes": len(data),
            "cardinality": len(rows)}  # fmt: skip


def vector_in_log(rows: list[int]) -> dict[str, Any]:
    """A deletion vector in the log itself."""
    data = struct.pack("<i", _MAGIC) + _roaring(rows)
    return {"storageType": "i", "pathOrInlineDv": _z85(data), "sizeInBytes": len(data), "cardinality": len(rows)}


def checkpoint_of(folder: Path, version: int, actions: list[dict[str, Any]], adds: list[dict[str, Any]]) -> None:
    """A checkpoint of version 2 in JSON, whose added files are in a sidecar. The commits before it are removed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = folder / "_delta_log"
    (log / "_sidecars").mkdir()
    files = pa.struct([
        ("path", pa.string()), ("partitionValues", pa.map_(pa.string(), pa.string())), ("size", pa.int64()),
        ("modificationTime", pa.int64()), ("dataChange", pa.bool_()), ("stats", pa.string()),
    ])  # fmt: skip
    rows = [action["add"] | {"partitionValues": list(action["add"]["partitionValues"].items())} for action in adds]
    pq.write_table(pa.table({"add": pa.array(rows, files)}), log / "_sidecars" / "files.parquet")
    size = (log / "_sidecars" / "files.parquet").stat().st_size
    sidecar = {"sidecar": {"path": "files.parquet", "sizeInBytes": size, "modificationTime": 0}}
    name = f"{version:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    lines = [{"checkpointMetadata": {"version": version}}, *actions, sidecar]
    (log / name).write_text("\n".join(map(json.dumps, lines)))
    for k in range(version):
        (log / f"{k:020}.json").unlink()
    (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": len(lines) + len(adds) - 1}))
