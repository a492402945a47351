"""The road to a URL: obstore or fsspec.

obstore's requests take much less time on the client, and it loads quickly. So it is taken for S3, Google Cloud Storage
and Azure where it is installed, and where it understands all that is asked for. fsspec has all other protocols and
options. ``filesystem=`` and the environment variable ``PYPARQ_FILESYSTEM`` choose one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyparq.errors import OptionError, UnsupportedError
from pyparq.io.fsspec_options import for_fsspec
from pyparq.io.object_threads import are_lost
from pyparq.io.store_options import NotForObstore
from pyparq.io.store_urls import open_store
from pyparq.io.url import forget_context, fsspec_system, shown, small_protocols, without_secrets
from pyparq.runtime.messages import debug_logger, requirement

ROADS = ("obstore", "fsspec")
VARIABLE = "PYPARQ_FILESYSTEM"


class Chosen(dict[str, Any]):
    """Storage options with the user's choice of a file system."""

    def __init__(self, options: Mapping[str, Any] | None, road: str | None = None, fs: Any = None) -> None:
        """``road``: one of :data:`ROADS`. ``fs``: a file system itself."""
        super().__init__(options or {})
        self.road = road
        self.fs = fs

    def __bool__(self) -> bool:
        return True


def file_system(
    url: str, doing: str, direction: str, storage_options: Mapping[str, Any] | None = None
) -> tuple[Any, str]:
    """The file system of a URL and the path in it. ``doing`` and ``direction`` (``"reading"``, ``"read from"``) are for
    messages.

    Raises :class:`UnsupportedError` where a package is missing; :class:`OptionError` for a protocol or an option that
    nobody knows, and for one that the chosen road does not know; ``OSError`` where the file system cannot be reached.
    """
    road = None
    if isinstance(storage_options, Chosen):
        if storage_options.fs is not None:
            return storage_options.fs, path_on(storage_options.fs, url)
        road = storage_options.road
    road = road or _by_environment()
    given = dict(storage_options or {})
    url = small_protocols(url)
    if road == "fsspec" or are_lost():
        return _by_fsspec(url, doing, direction, given)
    try:
        return open_store(url, given, _Opened(url, doing, direction, given))
    except NotForObstore as reason:
        if road == "obstore":
            forget_context(_refusal(url, doing, without_secrets(str(reason), url, given)))
        logger = debug_logger("io")
        if logger is not None:
            logger.debug("%s is opened by fsspec: %s", shown(url), without_secrets(str(reason), url, given))
    return _by_fsspec(url, doing, direction, given)


def path_on(fs: Any, url: str) -> str:
    """The path of a URL on its file system."""
    return str(fs._strip_protocol(url))


@dataclass(frozen=True)
class _Opened:
    """How a store was opened."""

    url: str
    doing: str
    direction: str
    given: dict[str, Any] = field(repr=False)  # has secrets

    def by_fsspec(self) -> Any:
        return _by_fsspec(self.url, self.doing, self.direction, self.given)[0]

    def reopened(self) -> Any:
        return file_system(self.url, self.doing, self.direction, self.given)[0]


def _by_fsspec(url: str, doing: str, direction: str, given: Mapping[str, Any]) -> tuple[Any, str]:
    return fsspec_system(url, doing, direction, for_fsspec(url, given))


def _by_environment() -> str | None:
    road = os.environ.get(VARIABLE) or None
    if road not in (None, *ROADS):
        raise OptionError(f"{VARIABLE} must be 'obstore' or 'fsspec', not {road!r}")
    return road


def _refusal(url: str, doing: str, reason: str) -> Exception:
    if reason == "obstore is not installed":
        return UnsupportedError(f"{doing} {shown(url)!r} by obstore needs it: pip install {requirement('obstore')}")
    return OptionError(f"obstore cannot open {shown(url)!r}: {reason}")
