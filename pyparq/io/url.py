"""URLs of files. Local ones are paths, all others belong to fsspec.

Names and messages show URLs without secrets (:func:`shown`). The libraries behind file systems raise errors of their
own kinds. Each becomes the ``OSError`` that a local file would give (:func:`plain_errors`).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NoReturn

from pyparq.errors import ChangedFileError, OptionError, ParquetError, UnsupportedError
from pyparq.runtime.messages import requirement

_USER_IS_A_PLACE = {"abfs", "abfss", "az", "adl", "wasb", "wasbs", "github"}
"""Protocols in which a container, or a repository, stands where others have a user."""
_NO_HOST = {"memory", "local", "file"}
"""Protocols of which all is a path."""
_BUCKETS = {"s3", "s3a", "gs", "gcs"}
"""Protocols in which a bucket stands where others have a host, and a ``?`` is a letter of the name like any other."""
_STORES = {*_BUCKETS, "az", "abfs", "abfss"}
"""Protocols that obstore opens, too."""
_BROUGHT = {"abfss": "adlfs"}
"""Protocols that fsspec knows only once a package is installed."""
_SECRET = re.compile("key|secret|token|pass|pwd|cred|auth|sas|sig|header|cookie|connection_string", re.IGNORECASE)
"""Storage options, and parameters of queries, that nothing must show."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_CHAIN = re.compile("::(?=[A-Za-z][A-Za-z0-9+.-]*://)")
"""Between two URLs of a chain. Any other ``::`` is part of an address (``[::1]``), a password or a query."""
_HOST = re.compile(r"(\[[^\]/@]*\]|[^:/?#@\[\]]*)(:\d*)?(?=[/?#]|$)")
"""A host with its port, and nothing before it."""
_BUCKET = re.compile("(arn:[^/@]*|[^:/@]*)(?=/|$)")
# Patterns of texts that are rare. They are compiled at their first use.
_SIGNED = r"(?i)[?&](x-(amz|goog)-|sig(nature)?=|(aws|google)?access(key)?id=|se=|sp=|sv=|[a-z_-]*token=)"
"""The query of a signed URL, also where a ``?`` may be a letter."""
_USER = r"[^\s\"'<>/@:=,(]+:[^\s\"'<>@]*@(?=[^\s@])"
"""User and password in front of a host, in the text of another library."""
_PARAMETER = r"(?i)((?:[?&;]|%3F|%26)([^\s=&;?%\"'<>]*)(?:=|%3D))([^\s&;%\"'<>]+)"
"""Of a query, also where that is part of a name."""
_AUTHORIZATION = r"(?i)((?:authorization|cookie)['\"]?\s*[:=]\s*['\"]?)[^'\"\r\n>)]+"


def shown(url: str) -> str:
    """The URL without user, password, query and fragment: as names, plans, logs and messages have it. Everything that
    shows a URL shows this."""
    return "::".join(map(_shown, _CHAIN.split(url)))


def is_chain(url: str) -> bool:
    """Whether a URL stands behind another one. In the names of stores ``::`` is nothing special."""
    return "::" in url and url.partition("://")[0].lower() not in _STORES


def _shown(url: str) -> str:
    protocol, mark, rest = url.partition("://")
    if not mark or protocol.lower() in _NO_HOST:
        return url
    in_bucket = protocol.lower() in _BUCKETS
    if _has_user(protocol, rest):
        host, slash, path = rest.partition("/")
        # A password may hold any letter. Where the user has no end in front of the first slash, it ends at the last @.
        rest = f"{host.rpartition('@')[2]}{slash}{path}" if "@" in host else rest.rpartition("@")[2]
    if in_bucket:
        rest = rest[: rest.index("?")] if re.search(_SIGNED, rest) and "?" in rest else rest
    else:
        rest = re.split("[?#]", rest, maxsplit=1)[0]
    return f"{protocol}://{rest}"


def _has_user(protocol: str, rest: str) -> bool:
    """Whether something stands in front of the host, or of the bucket."""
    kind = protocol.lower()
    if kind in _USER_IS_A_PLACE or kind in _NO_HOST or "@" not in rest:
        return False
    return (_BUCKET if kind in _BUCKETS else _HOST).match(rest) is None


def local_path(url: str) -> str | None:
    """The path of a ``file://`` or ``local://`` URL, and of a path that begins with ``~`` (the home folder). ``None``
    for any other."""
    if url.startswith("~"):
        return expanded(url)
    if url.startswith("local://"):  # fsspec's own name, which takes paths as they are
        return url.removeprefix("local://")
    if not url.startswith("file://"):
        return None
    from urllib.parse import unquote, urlparse

    return unquote(urlparse(url).path)


def expanded(path: str) -> str:
    """A path with the home folder in the place of ``~``."""
    return os.path.expanduser(path) if path.startswith("~") else path


def is_url(where: Any) -> bool:
    """Whether fsspec has to open it."""
    return isinstance(where, str) and "://" in where and local_path(where) is None


def check_storage_options(given: Any) -> None:
    """Raise :class:`OptionError` unless ``given`` can be handed to a file system. Local paths have no use for it."""
    if given is None:
        return
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise OptionError(f"storage_options must be a dict, not {type(given).__name__}")


def open_file_parts(where: Any) -> tuple[Any, str, str] | None:
    """File system, path and mode of what ``fsspec.open`` gives; ``None`` for anything else.

    Raises :class:`OptionError` where it would pass the bytes through a compression or as text.
    """
    names = ("full_name", "fs", "path", "mode", "open")
    if not hasattr(where, names[0]) or hasattr(where, "seek") or not all(hasattr(where, name) for name in names):
        return None
    if getattr(where, "compression", None) is not None or "t" in where.mode:
        raise OptionError(
            "an fsspec.open(...) object must be binary and without compression: Parquet compresses inside the file"
        )
    return where.fs, where.path, where.mode


def is_local_system(fs: Any) -> bool:
    protocol = getattr(fs, "protocol", ())
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def name_on(fs: Any, path: str) -> str:
    """The name of a file on a file system, for messages."""
    return shown(str(fs.unstrip_protocol(path)))


def small_protocols(url: str) -> str:
    """The URL with its protocols in small letters."""
    return "::".join(map(_small_protocol, url.split("::")))


def _small_protocol(url: str) -> str:
    """``S3://`` is ``s3://``: case means nothing in a protocol (RFC 3986)."""
    protocol, mark, rest = url.partition("://")
    return f"{protocol.lower()}{mark}{rest}" if mark else url


def fsspec_system(
    url: str, doing: str, direction: str, storage_options: Mapping[str, Any] | None = None
) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it; ``doing`` and ``direction`` (``"reading"``, ``"read from"``)
    are for messages. ``storage_options`` go to the file system as they are.

    Raises :class:`UnsupportedError` without fsspec, or without what it needs for the protocol; :class:`OptionError` for
    a protocol that it does not know; ``OSError`` where the file system cannot be reached.
    """
    try:
        import fsspec
    except ImportError:
        raise UnsupportedError(f"{doing} {shown(url)!r} {_needs(url)}") from None
    given = dict(storage_options or {})
    url = small_protocols(url)
    try:
        with plain_errors(shown(url), url, given, (ImportError, ValueError, TypeError)):
            if "::" in url and not is_chain(url):
                fs = fsspec.filesystem(url.partition("://")[0], **given)
                path = fs._strip_protocol(url)
            else:
                fs, path = fsspec.core.url_to_fs(url, **given)
    except ImportError as error:
        forget_context(_one_more(url, doing, without_secrets(str(error), url, given)))
    except (ValueError, TypeError) as error:
        protocol = url.partition("://")[0]
        if protocol in _BROUGHT and protocol not in fsspec.available_protocols():
            forget_context(_one_more(url, doing, f"pip install {_BROUGHT[protocol]}"))
        why = without_secrets(str(error), url, given)
        forget_context(OptionError(f"cannot {direction} {shown(url)!r}: {why}"))
    return fs, path


def _one_more(url: str, doing: str, package: str) -> UnsupportedError:
    needs = f"{_needs(url)}, or " if _by_obstore(url) else "needs "
    return UnsupportedError(f"{doing} {shown(url)!r} {needs}one more package: {package}")


def _needs(url: str) -> str:
    """What to install for a URL that no installed package opens."""
    library = "obstore" if _by_obstore(url) else "fsspec"
    return f"needs {library}: pip install {requirement(library)}"


def _by_obstore(url: str) -> bool:
    """Whether obstore would open the URL, but is not installed."""
    return small_protocols(url).partition("://")[0] in _STORES and find_spec("obstore") is None


# ---- errors --------------------------------------------------------------------------------------------------------

_REFUSED_BY_PYARROW = re.compile("ACCESS_DENIED|EXPIRED_TOKEN|INVALID_ACCESS_KEY|INVALID_SIGNATURE")
_KINDS = (
    (PermissionError, errno.EACCES), (IsADirectoryError, errno.EISDIR), (NotADirectoryError, errno.ENOTDIR),
    (FileExistsError, errno.EEXIST), (TimeoutError, errno.ETIMEDOUT), (ConnectionError, errno.EIO),
)  # fmt: skip


@contextmanager
def plain_errors(
    name: str, path: str, storage_options: Any = None, but: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """What a remote file system raises, as an ``OSError`` about ``name``, without what is secret in ``path`` (a path or
    URL) and ``storage_options``; errors of the kinds in ``but`` as they are.

    ``FileNotFoundError`` only where the file is not there; ``PermissionError`` where access is refused;
    ``ConnectionError`` or ``TimeoutError`` where the server is not reached, or goes away; :class:`ChangedFileError`
    where a request was bound to an object that is no longer there; :class:`UnsupportedError` for what the file system
    does not do.
    """
    try:
        yield
    except (ParquetError, MemoryError):
        raise
    except Exception as error:  # every library has its own kinds
        if isinstance(error, but):
            raise
        if getattr(error, "is_plain", False):
            add_tries(error, error)
            raise
        plain = _plain(error, name, path, storage_options)
        add_tries(plain, error)
        forget_context(plain)


def add_tries(plain: Exception, error: BaseException) -> None:
    """Add to an error how often the request behind it was made, if that was more than once."""
    tries = getattr(error, "pyparq_tries", 1)
    if tries > 1 and isinstance(plain, OSError):
        plain.strerror = f"{plain.strerror} (tried {tries} times)"


def _plain(error: Exception, name: str, path: str, storage_options: Any) -> Exception:
    cause, status = cause_of(error)
    text = without_secrets(str(cause) or type(cause).__name__, path, storage_options)
    if status == 412:
        return ChangedFileError("the file has changed since it was opened: open it again", file=name)
    if status in (404, 410):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    code = error_code(cause)
    if code == "ConditionalRequestConflict":
        return ChangedFileError("another program writes the file at the same time", file=name)
    if status is not None:
        said = ": ".join(part for part in (code, _message(cause)) if part)
        reason = explained(f"the server answers {status} {said}".rstrip(), getattr(cause, "operation_name", ""))
        refused = status in (401, 403, 407) or code in REFUSED
        return OSError(errno.EACCES if refused else errno.EIO, without_secrets(reason, path, storage_options), name)
    if isinstance(cause, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if isinstance(cause, (NotImplementedError, ImportError)):
        return UnsupportedError(f"the file system does not do this: {text}", file=name)
    for kind, number in _KINDS:
        if isinstance(cause, kind):
            return kind(_number(cause) or number, text, name)
    text, own = explained(text), _number(cause)
    if own is None and re.search("Connect|Payload", " ".join(c.__name__ for c in type(cause).__mro__)):
        return ConnectionError(errno.EIO, f"the connection failed: {text}", name)
    if isinstance(cause, OSError) and _REFUSED_BY_PYARROW.search(text):
        return PermissionError(errno.EACCES, text, name)
    if isinstance(cause, OSError):
        return OSError(own or errno.EIO, text, name)
    return OSError(errno.EIO, f"{type(cause).__name__}: {text}", name)


REFUSED = frozenset({
    "AccessDenied", "AuthenticationFailed", "ExpiredToken", "ExpiredTokenException", "InvalidAccessKeyId",
    "InvalidToken", "RequestExpired", "SignatureDoesNotMatch", "TokenRefreshRequired", "UnrecognizedClientException",
})  # fmt: skip
"""Codes of stores that mean that access is refused, whatever the HTTP status."""
_REASONS = {
    "(?is)certificate.{0,200}?expired": "the server's certificate has expired",
    "(?is)certificate.{0,200}?not.?valid.?for": "the server's certificate is for another name",
    "(?i)certificate.?verify|UnknownIssuer|invalid peer certificate": "the authority of the server's certificate is "
    "not known here: the variable SSL_CERT_FILE, for S3 also AWS_CA_BUNDLE, names the file with it",
    "PermanentRedirect|redirect without LOCATION|AuthorizationHeaderMalformed|IllegalLocation": "the bucket lies in "
    "another region: give region=",
    "RequestTimeTooSkewed": "the clock of this machine is off",
    "ExpiredToken|RequestExpired|has expired": "the link or the key is no longer valid: get a new one",
}
"""What words of stores and libraries mean."""


def explained(text: str, action: str = "") -> str:
    """What a store says, and what that means. ``action``: the request, which one may not be allowed to make."""
    found = next((reason for words, reason in _REASONS.items() if re.search(words, text)), "")
    found = found or (f"not allowed: {action}" if action and re.search("(?i)denied|forbidden|403", text) else "")
    return f"{text} ({found})" if found else text


def stated(text: str) -> tuple[str, str]:
    """The store's code in the text of an answer, and the code with the store's message."""
    code, message = ((re.search(f"<{tag}>([^<]*)</{tag}>", text) or ("", ""))[1] for tag in ("Code", "Message"))
    return code, f"{code}: {message}" if code and message else code


def error_code(error: BaseException) -> str:
    """The store's code for an error, such as ``ExpiredToken``. Empty where it has none."""
    answer = getattr(error, "response", None)
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else getattr(error, "error_code", None)
    return code if isinstance(code, str) and not code.isdigit() else ""


def _message(error: BaseException) -> str:
    """The server's message beside the status."""
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):  # botocore
        return str(answer.get("Error", {}).get("Message", ""))
    return getattr(error, "message", "") or ""


def _number(error: BaseException) -> int | None:
    """The system's error number. That of a host name that is not found, and of OpenSSL, is dropped."""
    number = getattr(error, "errno", None)
    return number if isinstance(number, int) and number > 0 and "[SSL:" not in str(error) else None


def cause_of(error: BaseException) -> tuple[BaseException, int | None]:
    """What happened, and the HTTP status if it is an answer. fsspec takes all that goes wrong for a missing file."""
    found: BaseException | None = error
    while found is not None:
        answer = getattr(found, "response", None)
        stated = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
        for number in (getattr(found, "status", None), getattr(answer, "status_code", None), stated):
            if isinstance(number, int) and number >= 400:
                return found, number
        of_s3 = isinstance(getattr(found.__cause__, "response", None), dict)
        of_memory = isinstance(found.__cause__, KeyError)  # fsspec's memory:// has looked into a dict
        if found.__cause__ is None or of_memory or not (isinstance(found, FileNotFoundError) or of_s3):
            return found, None
        found = found.__cause__
    return error, None


def described(error: BaseException, options: Any = None) -> str:
    """What an error says, without secrets, for a log."""
    cause, status = cause_of(error)
    text = f"status {status}" if status is not None else without_secrets(str(cause), "", options)
    return f"{type(cause).__name__}: {text}"


def without_secrets(text: str, path: str, storage_options: Any) -> str:
    """A library's message with the URLs in it as :func:`shown` has them, and no secrets: of headers, of the path or URL
    ``path``, of options."""
    if path:
        text = text.replace(path, shown(path))
    text = _URL.sub(lambda found: shown(found[0]), text)
    for secret in sorted({*_secrets(storage_options), *_secrets_of_url(path)}, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = re.sub(_AUTHORIZATION, r"\1***", re.sub(_USER, "***@", text))
    return re.sub(_PARAMETER, lambda found: f"{found[1]}***" if _is_secret(found[2]) else found[0], text)


def _is_secret(parameter: str) -> bool:
    return _SECRET.search(parameter) is not None or re.match(_SIGNED, f"?{parameter}=") is not None


def _secrets_of_url(url: str) -> Iterator[str]:
    """Users, passwords and values of the query, as they stand in the URL and as they are decoded."""
    from urllib.parse import unquote

    found = [match[3] for match in re.finditer(_PARAMETER, url) if _is_secret(match[2])]
    for part in _CHAIN.split(url):
        protocol, _, rest = part.rpartition("://")
        if _has_user(protocol, rest):
            user = rest.rpartition("@")[0]
            found += [user, *user.split(":", 1), *re.split("[:/?#]", user)]
    for one in found:
        yield from (text for text in (one, unquote(one)) if len(text) >= 4)


def _secrets(options: Any, within: bool = False) -> Iterator[str]:
    if isinstance(options, Mapping):
        for name, value in options.items():
            yield from _secrets(value, within or bool(_SECRET.search(str(name))))
    elif isinstance(options, (list, tuple)):
        for value in options:
            yield from _secrets(value, within)
    elif within and isinstance(options, (str, bytes)):
        text = options if isinstance(options, str) else options.decode("latin-1")
        yield from (part for part in (text, *text.split()) if len(part) >= 4)  # the words of "Bearer …" too
    elif isinstance(options, str) and "://" in options:  # a proxy, say, or the URL behind another one
        yield from _secrets_of_url(options)


def forget_context(error: BaseException) -> NoReturn:
    """Raise an error that takes the place of another one, which may show secrets, also where its context is shown."""
    try:
        raise error from None
    finally:
        error.__context__ = None
