"""Paths as Spark writes them, and paths that mean the same in another process."""

from __future__ import annotations

import os
import re
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.table_formats import format_of


def absolute(source: Any, far: bool) -> Any:
    """``source`` with absolute paths. ``far``: the files need not be seen here. A table of Delta Lake or Iceberg stays
    as it is: its files are listed here.

    Raises :class:`OptionError` for what another process cannot open.
    """
    if isinstance(source, (list, tuple)):
        return [absolute(item, far) for item in source]
    if format_of(source) is not None:
        if far:
            raise OptionError("over Spark Connect a table cannot be sent along: give its data files' paths")
        return source
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        raise OptionError(f"Spark needs paths or URLs, which its workers can open too, not {type(source).__name__}")
    source = local(source)
    if far and "://" not in source and not os.path.isabs(source):
        raise OptionError(f"over Spark Connect a path must be absolute, because workers run elsewhere: {source!r}")
    return source if "://" in source else os.path.abspath(source)


def local(path: str) -> str:
    """A path or URL that fsspec understands for one of Hadoop: ``file:/data``, ``s3a://bucket``, and ``dbfs:/data``,
    which Databricks mounts on all its machines."""
    if re.match("file:/(?!/)", path):
        return path[5:]
    if re.match("dbfs:/(?!/)", path):
        return f"/dbfs{path[5:]}"
    return re.sub("^s3[an]://", "s3://", path)
