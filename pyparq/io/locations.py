"""Where a path or URL leads: the file system that opens it, and the path there.

obstore's requests take much less time on the client than fsspec's, and it loads quickly. So it opens S3, Google Cloud
Storage and Azure where it is installed, and where it understands all that is asked for. fsspec has all other protocols
and options. ``filesystem=`` and the environment variable ``PYPARQ_FILESYSTEM`` choose one.

Making a store costs some milliseconds and its connections, so a process keeps those that it has made. pyarrow is
recognised by the names of its modules, and never imported here.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from pyparq.errors import OptionError, UnsupportedError
from pyparq.io import store_options as stores
from pyparq.io.object_requests import are_lost, note_use
from pyparq.io.object_store import ObjectSystem
from pyparq.io.remote_file import SCHEMES
from pyparq.io.url import forget_context, fsspec_system, is_local_system, shown, small_protocols, without_secrets
from pyparq.runtime.lazy_import import load
from pyparq.runtime.messages import debug_logger, requirement

LIBRARIES = ("obstore", "fsspec")
VARIABLE = "PYPARQ_FILESYSTEM"

Options = Mapping[str, Any] | None


class StorageOptions(dict[str, Any]):
    """Storage options with the user's choice of a file system."""

    def __init__(self, options: Options, library: str | None = None, fs: Any = None) -> None:
        """``library``: one of :data:`LIBRARIES`. ``fs``: a file system itself."""
        super().__init__(options or {})
        self.library = library
        self.fs = fs

    def __bool__(self) -> bool:
        return True


def file_system(url: str, doing: str, direction: str, storage_options: Options = None) -> tuple[Any, str]:
    """The file system of a URL and the path in it. ``doing`` and ``direction`` (``"reading"``, ``"read from"``) are for
    messages.

    Raises :class:`UnsupportedError` where a package is missing; :class:`OptionError` for a protocol or an option that
    nobody knows, and for one that the chosen library does not know; ``OSError`` where the file system cannot be
    reached.
    """
    library = None
    if isinstance(storage_options, StorageOptions):
        if storage_options.fs is not None:
            return storage_options.fs, path_on(storage_options.fs, url)
        library = storage_options.library
    library = library or os.environ.get(VARIABLE) or None
    if library not in (None, *LIBRARIES):
        raise OptionError(f"{VARIABLE} must be 'obstore' or 'fsspec', not {library!r}")
    opened = Opened(small_protocols(url), doing, direction, dict(storage_options or {}))
    if library == "fsspec" or are_lost():
        return opened.fsspec_place()
    try:
        return _store_of(opened)
    except stores.NotForObstore as reason:
        why = without_secrets(str(reason), url, opened.given)
        if library == "obstore":
            forget_context(_refusal(url, doing, why))
        logger = debug_logger("io")
        if logger is not None:
            logger.debug("%s is opened by fsspec: %s", shown(url), why)
    return opened.fsspec_place()


def path_on(fs: Any, url: str) -> str:
    """The path of a URL on its file system."""
    return str(fs._strip_protocol(url))


@dataclass(frozen=True)
class Opened:
    """How a URL is opened. It can be pickled."""

    url: str
    doing: str
    direction: str
    given: dict[str, Any] = field(repr=False)  # has secrets

    def by_fsspec(self) -> Any:
        """The file system of fsspec."""
        return self.fsspec_place()[0]

    def fsspec_place(self) -> tuple[Any, str]:
        """The file system of fsspec, and the path in it."""
        _forget_credentials(self.url.partition("://")[0])
        return fsspec_system(self.url, self.doing, self.direction, stores.for_fsspec(self.url, self.given))

    def reopened(self) -> Any:
        """The file system of either library, opened in another process."""
        return file_system(self.url, self.doing, self.direction, self.given)[0]


_environments = dict[str, tuple[Any, ...]]()
"""What credentials depended on when fsspec's file system of a protocol was made."""


def _forget_credentials(protocol: str) -> None:
    """Have fsspec make a new file system where the environment has changed since: it keeps old ones for good."""
    if protocol in _KINDS:
        now = _environment()
        if _environments.setdefault(protocol, now) != now:
            load("fsspec").get_filesystem_class(protocol).clear_instance_cache()
            _environments[protocol] = now


def _refusal(url: str, doing: str, reason: str) -> Exception:
    if reason == "obstore is not installed":
        return UnsupportedError(f"{doing} {shown(url)!r} by obstore needs it: pip install {requirement('obstore')}")
    return OptionError(f"obstore cannot open {shown(url)!r}: {reason}")


# ---- filesystem= ---------------------------------------------------------------------------------------------------


def located(where: Any, filesystem: Any, storage_options: Options = None) -> tuple[Any, Options]:
    """A path on the file system as a local path or URL, and the storage options with the choice of it.

    ``filesystem``: ``None``; a file system of fsspec or pyarrow; a store of obstore; ``"obstore"`` or ``"fsspec"``, the
    library for URLs then; or the URL of a folder that paths are relative to. A list of paths stays a list.

    Raises :class:`OptionError` for what is no file system, and for sources that are no paths.
    """
    if filesystem is None:
        return where, storage_options
    if isinstance(filesystem, str) and filesystem in LIBRARIES:
        return where, StorageOptions(storage_options, filesystem)
    if isinstance(where, (list, tuple)):
        pairs = [located(one, filesystem, storage_options) for one in where]
        return [place for place, _ in pairs], next((options for _, options in pairs), storage_options)
    if not isinstance(where, (str, os.PathLike)):
        raise OptionError("filesystem is for paths, and the source or target is none: leave it out")
    path = os.fsdecode(where)
    if isinstance(filesystem, str):
        if "://" not in filesystem:
            raise OptionError(f"filesystem must be a file system, a URL, 'obstore' or 'fsspec', not {filesystem!r}")
        return filesystem + "/" * (not filesystem.endswith("/")) + path, storage_options
    packages = {cls.__module__.partition(".")[0] for cls in type(filesystem).__mro__}
    on = next((on for package, on in _SYSTEMS.items() if package in packages), None)
    if on is None:
        raise OptionError(f"filesystem must be one of fsspec, pyarrow or obstore, not {type(filesystem).__name__}")
    place, fs = on(path, filesystem)
    return place, storage_options if fs is None else StorageOptions(storage_options, fs=fs)


def both_located(source: Any, target: Any, filesystem: Any, storage_options: Options) -> tuple[Any, Any, Options]:
    """As :func:`located`, for a source and a target, of which one may be no path."""
    paths = [isinstance(where, (str, os.PathLike, list, tuple)) for where in (source, target)]
    options = storage_options
    if paths[0] or not paths[1]:
        source, options = located(source, filesystem, storage_options)
    if paths[1]:
        target, options = located(target, filesystem, storage_options)
    return source, target, options


def _on_fsspec(path: str, fs: Any) -> tuple[str, Any]:
    """The place of a path, and its file system: ``None`` for a local one."""
    if is_local_system(fs):
        return str(fs._strip_protocol(path)) if "://" in path else path, None
    return str(fs.unstrip_protocol(path)), fs


def _on_pyarrow(path: str, fs: Any) -> tuple[str, Any]:
    kind = str(fs.type_name)
    if kind == "local":
        return path, None
    if kind == "subtree":
        return _on_pyarrow(posixpath.join(fs.base_path, path.lstrip("/")), fs.base_fs)
    behind = getattr(getattr(fs, "handler", None), "fs", None)
    if kind.startswith("py::fsspec") and behind is not None:
        return _on_fsspec(path, behind)
    try:
        from pyparq.io.pyarrow_system import PyarrowSystem
    except ImportError:
        raise UnsupportedError(f"file systems of pyarrow need fsspec: pip install {requirement('fsspec')}") from None
    return _on_fsspec(path, PyarrowSystem(fs, skip_instance_cache=True))


def _on_obstore(path: str, store: Any) -> tuple[str, Any]:
    kind = type(store).__name__
    if kind == "LocalStore":
        return os.path.join(str(store.prefix or "/"), path.lstrip("/")), None
    scheme, place = SCHEMES.get(kind, (kind.lower(), ""))
    prefix = str(getattr(store, "prefix", None) or "").strip("/")
    root = "/".join(part for part in (str(store.config[place]) if place else "", prefix) if part)
    url = str(store.url).rstrip("/") + "/" if hasattr(store, "url") else f"{scheme}://{root}"
    system = ObjectSystem(store, url, root)
    own = path if path.startswith(url) else system.unstrip_protocol(posixpath.join(root, path.lstrip("/")))
    return own, system


_SYSTEMS = {"fsspec": _on_fsspec, "pyarrow": _on_pyarrow, "obstore": _on_obstore}


# ---- stores by their URLs ------------------------------------------------------------------------------------------

_KEPT = 32
"""Stores that are kept."""
_KINDS = {
    "s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az",
}  # fmt: skip
_TAGS = {"s3": "ETag", "gs": "e_tag", "az": "etag"}
"""What fsspec's file systems call the entity tag. On Google Cloud Storage theirs is another one."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENVIRONMENT = ("AWS_", "GOOGLE_", "AZURE_", "STORAGE_EMULATOR_HOST", "HTTP", "NO_PROXY", "SSL_")
_AMAZON = "s3.amazonaws.com"
_REGION = re.compile(r"(?!cn-|us-iso|eu-iso|eusc-)[a-z0-9-]+")
"""But for regions whose servers are not below amazonaws.com, where obstore looks for all."""
_CLIENT = {"connect_timeout": "10s", "read_timeout": "30s", "timeout": "10min"}
"""Seconds without a byte count, not those of a whole answer: a large one may take long."""
_RETRY = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
"""Of the store for changes. Reads are made again by pyparq."""

_stores: OrderedDict[Any, ObjectSystem] = OrderedDict()
"""A forked child, which cannot use them, keeps them: to free them there may wait for a thread that it does not have."""


class _Parts(NamedTuple):
    """Parts of a URL."""

    kind: str
    start: str
    """The URL as far as the bucket."""
    bucket: str
    account: str | None
    path: str
    """Bucket and key."""


def _store_of(opened: Opened) -> tuple[ObjectSystem, str]:
    """The store of a URL, and the path in it.

    Raises :class:`NotForObstore` with the reason where obstore cannot do what the URL and the options ask for, or is
    not installed.
    """
    parts, given = _parts(opened.url), opened.given
    if any(stores.has_settings(protocol) for protocol, kind in _KINDS.items() if kind == parts.kind):
        raise stores.NotForObstore("fsspec has settings of its own for this protocol")
    key = None if given.get("skip_instance_cache") else (parts.start, repr(sorted(given.items())), _environment())
    found = None if key is None else _stores.get(key)
    if found is None:
        found = _made(parts, opened)
    if key is not None:
        _stores[key] = found
        while len(_stores) > _KEPT:
            _stores.popitem(last=False)
    return found, parts.path


def _parts(url: str) -> _Parts:
    protocol, _, rest = url.partition("://")
    kind = _KINDS.get(protocol)
    if kind is None:
        raise stores.NotForObstore(f"a URL of {protocol}")
    host, slash, key = rest.partition("/")
    bucket, at, account = host.partition("@")
    if at and kind != "az":
        raise stores.NotForObstore("a user in the URL")
    if not _BUCKET.fullmatch(bucket) or bucket.endswith("--x-s3"):
        raise stores.NotForObstore("no plain name of a bucket")
    path = f"{bucket}{slash}{key}".rstrip("/")
    return _Parts(kind, f"{protocol}://{host}", bucket, account.partition(".")[0] or None, path)


def _environment() -> tuple[Any, ...]:
    """What credentials depend on."""
    names = sorted(name for name in os.environ if name.upper().startswith(_ENVIRONMENT))
    stamps = [os.stat(path).st_mtime_ns for path in stores.profile_files() if os.path.exists(path)]
    return (*((name, os.environ[name]) for name in names), *stamps)


def _made(parts: _Parts, opened: Opened) -> ObjectSystem:
    try:
        import obstore.store as makers
    except ImportError:
        raise stores.NotForObstore("obstore is not installed") from None
    if parts.kind == "s3":
        options = stores.for_s3(opened.given)
        _add_region(options, parts.bucket)
    else:
        options = stores.for_gcs(opened.given) if parts.kind == "gs" else stores.for_azure(opened.given, parts.account)
    note_use()
    make = {"s3": makers.S3Store, "gs": makers.GCSStore, "az": makers.AzureStore}[parts.kind]

    def made(options: stores.StoreOptions, retry: Any) -> Any:
        return make(
            parts.bucket, config=options.config, client_options=_CLIENT | options.client,
            retry_config=options.retry or retry, credential_provider=options.credential_provider,
        )  # fmt: skip

    def for_changes() -> Any:
        """Not every relative of S3 knows the request that removes many objects."""
        if parts.kind == "s3":
            with suppress(Exception):  # older versions of obstore do not know this option
                return made(replace(options, config={"disable_bulk_delete": True} | options.config), _RETRY)
        return made(options, _RETRY)

    try:
        reading = made(options, {"max_retries": 0})
    except Exception as error:  # options that it does not know
        raise stores.NotForObstore(str(error).partition("\n\n")[0]) from None
    return ObjectSystem(
        reading, parts.start, parts.bucket, writing=for_changes, tag=_TAGS[parts.kind], options=opened.given,
        opened=opened,
    )  # fmt: skip


def _add_region(options: stores.StoreOptions, bucket: str) -> None:
    """boto follows the answers of a wrong region, obstore does not. The environment's is often that of the machine."""
    environ = os.environ
    names = ("ENDPOINT", "ENDPOINT_URL", "ENDPOINT_URL_S3")
    if "endpoint" in options.config or any(environ.get(f"AWS_{name}") for name in names):
        return
    known = options.config.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if known is not None and not _REGION.fullmatch(str(known)):
        raise stores.NotForObstore(f"the region {known}")
    region = region_of(bucket, known) or known
    if region is None:
        raise stores.NotForObstore("the region is not known")
    options.config["region"] = region


@lru_cache(_KEPT)
def region_of(bucket: str, near: str | None = None) -> str | None:
    """The region of a bucket, as S3 tells it to everyone. ``None`` if it does not answer. ``near``: the region whose
    server is asked, which may be the only one that the machine reaches."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    host = _AMAZON if near is None else _AMAZON.replace(".", f".{near}.", 1)
    try:
        with urlopen(Request(f"https://{host}/{bucket}", method="HEAD"), timeout=10 if near is None else 3) as answer:
            headers = answer.headers
    except HTTPError as refused:  # an answer to a request without credentials
        headers = refused.headers
    except (OSError, HTTPException):
        return None
    found: str | None = headers.get("x-amz-bucket-region")
    return found
