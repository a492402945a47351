"""URLs of files: local ones are paths, all others belong to fsspec."""

from __future__ import annotations

from typing import Any

from pyparq.errors import OptionError, UnsupportedError


def local_path(url: str) -> str | None:
    """The path of a ``file://`` URL, ``None`` for any other."""
    if not url.startswith("file://"):
        return None
    from urllib.parse import unquote, urlparse

    return unquote(urlparse(url).path)


def file_system(url: str, doing: str, direction: str) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it; ``doing`` and ``direction`` (``"reading"``, ``"read from"``)
    are for messages.

    Raises :class:`UnsupportedError` without fsspec, or without what it needs for the protocol; :class:`OptionError` for
    a protocol that it does not know.
    """
    try:
        import fsspec
    except ImportError:
        raise UnsupportedError(f"{doing} {url!r} needs fsspec: pip install 'pyparq[fsspec]'") from None
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UnsupportedError(f"{doing} {url!r} needs one more package: {error}") from None
    except ValueError as error:
        raise OptionError(f"cannot {direction} {url!r}: {error}") from error
    return fs, path
