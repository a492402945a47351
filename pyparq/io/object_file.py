"""Objects in stores of obstore (https://developmentseed.org/obstore): S3, Google Cloud Storage, Azure and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyparq.errors import OptionError
from pyparq.io.object_store import ObjectSystem
from pyparq.io.remote_file import SCHEMES, RemoteFile
from pyparq.option_checks import keywords
from pyparq.runtime.text import printable


class ObjectFile(RemoteFile):
    """A file in an obstore store: ``pyparq.read_table(pyparq.ObjectFile(store, "a/b.parquet"))``. It can be written to,
    too: ``pyparq.write_table(data, pyparq.ObjectFile(store, "a/b.parquet"))``.

    ``store``: an ``obstore.store.S3Store``, ``GCSStore``, ``AzureStore``, ``HTTPStore`` and so on, with its credentials
    and options. ``path``: of the object in the store. It makes no request before it is used.

    Its requests take much less time on the client than those of fsspec's file systems (docs/urls.md). Needs the package
    obstore, which ``pip install 'pyparq[obstore]'`` installs. It cannot be read in a forked child of a process that has
    used obstore.

    The read raises the errors that a URL gives, and :class:`ChangedFileError` if the object is replaced meanwhile.

    Example::

        from obstore.store import MemoryStore

        store = MemoryStore()
        with open("flights.parquet", "rb") as file:
            store.put("a/flights.parquet", file.read())
        table = pyparq.read_table(pyparq.ObjectFile(store, "a/flights.parquet"), columns=["flight"])
    """

    @keywords
    def __init__(self, store: Any, path: str) -> None:
        if not isinstance(path, str) or not (hasattr(store, "get") and hasattr(store, "head")):
            raise OptionError("ObjectFile takes a store of obstore and a path: ObjectFile(S3Store(...), 'a/b.parquet')")
        self.store = store
        super().__init__(ObjectSystem(store, f"{_root(store)}/", ""), path, f"{_root(store)}/{path.lstrip('/')}")

    @printable
    def __repr__(self) -> str:
        return f"<ObjectFile {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectFile, (self.store, self.path)

    @property
    def version(self) -> dict[str, str]:
        """The version of the object that was opened, as obstore's updates take it. Empty before the first request, and
        where the store tells no versions."""
        return self.stated_version

    def put(self, data: Any, only: Mapping[str, str] | None = None) -> None:
        """Put an object in this place: the bytes of an open file. ``only``: the version that it may replace.

        Raises :class:`ChangedFileError` where there is another version. Stores that cannot be told so, and all for what
        is too large for one request, are asked for their version before.
        """
        self._check_usable()
        self.fs.put(self.path, data, self.name, only)


def _root(store: Any) -> str:
    """The URL of a store in messages, without secrets."""
    scheme, place = SCHEMES.get(type(store).__name__, ("", ""))
    config = getattr(store, "config", None) or {}
    root = f"{scheme}://{config[place]}" if place and place in config else f"<{type(store).__name__}>"
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    return "/".join(part for part in (root, prefix) if part)
