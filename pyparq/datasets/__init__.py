"""Many files as one table: read, found again by a catalog (``catalog/``), and written (``write/``)."""

from pyparq.runtime.lazy_import import load_later

load_later(__name__, "dataset")

DOOR = (
    "catalog.building", "catalog.catalog", "catalog.index_dataset", "catalog.key_table", "catalog.layout",
    "common_schema", "data_files", "dataset", "delta", "discovery", "explain", "file_columns", "file_groups", "files",
    "footers", "iceberg", "joint_keys", "partitions", "reader", "scan", "shares", "staging",
    "write.commit", "write.folder_commit", "write.partition_split", "write.rolling_files",
    "write.store_commit", "write.targets", "write.write_dataset",
)  # fmt: skip
"""Modules of this package that other packages may use."""
