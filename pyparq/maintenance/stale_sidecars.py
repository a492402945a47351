"""Files beside a Parquet file that become wrong when it is replaced: Hadoop's checksums, and summaries of footers."""

from __future__ import annotations

import os
from contextlib import suppress

from pyparq.errors import ParquetError
from pyparq.options import ReadOptions
from pyparq.read.footers.open_file import OpenFile, open_file

SUMMARY = "_metadata"


def remove_stale(path: str) -> list[str]:
    """Remove files beside ``path`` that are wrong now that it was replaced.

    Returns notes about what was removed and what could not be removed. The new file is in place, so a failure here is
    no error.
    """
    real = os.path.realpath(path)
    notes = []
    for remove, paths in ((remove_checksums, (path, real)), (remove_summaries, (real,))):
        try:
            notes += remove(*paths)
        except OSError as error:
            notes.append(f"could not remove {error.filename}, which is of the old file ({error.strerror}): remove it")
    return notes


def remove_checksums(*paths: str) -> list[str]:
    """Remove Hadoop's ``.NAME.crc`` beside each of these files: with the old checksum, Spark refuses the new file.
    Returns notes about it."""
    notes = []
    for path in dict.fromkeys(paths):
        folder, name = os.path.split(path)
        stale = os.path.join(folder, f".{name}.crc")
        with suppress(FileNotFoundError):
            os.unlink(stale)
            notes.append(f"removed {stale}, the checksum of the old file")
    return notes


def remove_summaries(path: str) -> list[str]:
    """Remove ``_metadata`` files with a copy of the file's old footer, from its folder and the folders above it that
    are partitions. Returns notes about it."""
    notes = []
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        summary = os.path.join(folder, SUMMARY)
        if os.path.isfile(summary) and os.path.basename(path) != SUMMARY and _names(summary, folder, path):
            os.unlink(summary)
            notes.append(f"removed {summary}, which held the old footer")
        if "=" not in os.path.basename(folder):
            return notes
        folder = os.path.dirname(folder)


def _names(summary: str, folder: str, path: str) -> bool:
    """Whether a summary describes the file. An unreadable one does not."""
    try:
        file = open_file(summary, ReadOptions())
    except (ParquetError, OSError):
        return False
    try:
        return any(_is(file, k, folder, path) for k in range(file.num_row_groups))
    finally:
        file.close()


def _is(file: OpenFile, row_group: int, folder: str, path: str) -> bool:
    try:
        named = file.raw_chunk(row_group, file.tree.leaves[0]).file_path if file.tree.leaves else None
    except ParquetError:
        return False
    if not named:
        return False
    with suppress(OSError, ValueError):
        return os.path.samefile(os.path.join(folder, named), path)
    return False
