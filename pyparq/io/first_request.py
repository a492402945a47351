"""The first request of a process to a store, made while the modules load that will read the answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pyparq.io.byte_ranges import Source
from pyparq.io.kept_files import kept_file
from pyparq.io.source import open_source, set_requests, versioned
from pyparq.io.store_files import StoreFile
from pyparq.io.url import is_url
from pyparq.options import ReadOptions

REMOTE_TAIL = 128 << 10
"""Bytes of the end of a remote file that are read with its footer."""


def begun(source: Any, storage_options: Mapping[str, Any] | None, options: ReadOptions, reader: str) -> Any:
    """The open source, whose end is on its way, if it is a URL of a store and the module ``reader`` is not loaded yet.
    Else ``source`` as it is."""
    if reader in sys.modules or not is_url(source):
        return source
    file = open_source(source, storage_options)
    if _is_kept(file):
        file.close()
        return source
    if isinstance(file, StoreFile):
        set_requests(file, options.retries, options.retry_wait, options.max_requests)
        file.begin_end(options.tail_size or REMOTE_TAIL)
    return file


def _is_kept(file: Source) -> bool:
    """Whether the footer is kept in memory, so that the end of the file is not needed."""
    source = versioned(file)
    identity = None if source is None else source.identity
    return identity is not None and kept_file(identity) is not None
