"""Many files as one table: ``read/`` and ``write/``."""

DOOR = (
    "discovery",
    "partitions",
    "read.dataset",
    "read.dataset_files",
    "read.evolution",
    "read.file_plan",
    "read.open_files",
    "read.plan_shards",
    "read.scan",
    "read.schema_survey",
    "read.schema_tree",
    "staging",
    "table_formats",
    "write.commit",
    "write.crashed_commits",
    "write.job_sources",
    "write.report",
    "write.store_staging",
    "write.write_dataset",
)
"""Modules of this package that other packages may use."""
