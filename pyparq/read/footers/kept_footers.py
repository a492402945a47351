"""Footers of remote files that are kept in memory: when they are used again, and what is kept."""

from __future__ import annotations

from pyparq.io.fetch import Fetcher
from pyparq.io.kept_files import KeptFile, drop_file, keep_file, kept_file, remote_cache_size
from pyparq.io.source import versioned

FEW = 8
"""Bytes of the request that asks whether a file has changed."""


def take_kept(fetcher: Fetcher, lazily: bool) -> bool:
    """Give the fetcher the footer and the indexes that are kept of its file, if it still has the same version. Returns
    whether it does.

    The listing of a folder tells the version, or else a request of few bytes. ``lazily``: no request is made; the next
    one will tell.
    """
    source = versioned(fetcher.source)
    identity = None if source is None else source.identity
    kept = None if identity is None else kept_file(identity)
    if source is None or identity is None or kept is None:
        return False
    listed = source.is_listed_as(kept.size, kept.tag)
    if listed or lazily:
        source.go_on(kept.size, kept.tag)
    else:
        fetcher.read_tail(FEW)
        if (source.size, source.tag) != (kept.size, kept.tag):
            drop_file(identity)
            return False
    fetcher.use(kept, is_proven=listed or not lazily)
    return True


def keep_footer(fetcher: Fetcher, size: int) -> None:
    """Keep the last ``size`` bytes of the file, where its version is known."""
    source = versioned(fetcher.source)
    identity = None if source is None or not remote_cache_size() else source.identity
    if source is not None and identity is not None and source.tag is not None:
        fetcher.kept = KeptFile(source.size, source.tag, bytes(fetcher.tail[-size:]))
        keep_file(identity, fetcher.kept)
