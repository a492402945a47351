"""What obstore raises, as the ``OSError`` that a local file would give."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyparq.errors import ChangedFileError, ParquetError, UnsupportedError
from pyparq.io.url import REFUSED, forget_context, without_secrets

CHANGED = "the file has changed since it was opened: open it again"

_KINDS: dict[str, tuple[type[OSError], int]] = {
    "NotFoundError": (FileNotFoundError, errno.ENOENT),
    "AlreadyExistsError": (FileExistsError, errno.EEXIST),
    "PermissionDeniedError": (PermissionError, errno.EACCES),
    "UnauthenticatedError": (PermissionError, errno.EACCES),
}
"""What obstore's errors are for a local file."""
_MISSING = frozenset({"NoSuchBucket", "NoSuchKey", "ContainerNotFound", "BlobNotFound", "ResourceNotFound"})
"""Codes of stores for what is not there."""
_PASSING = frozenset({"InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout"})
"""Codes of stores for what may pass, whatever the HTTP status."""
_NO_CREDENTIALS = re.compile(
    r" (?:GET|PUT) http://(?:169\.254\.169\.254|\[fd00:ec2::254\]|metadata\.google\.internal)[:/]"
    r"| PUT http://\S+/latest/api/token "
)
"""Requests to the machine's own server of credentials."""


class AnsweredError(OSError):
    """With the status of the answer, as other libraries' errors have it."""

    status = 0

    def plain(self) -> OSError:
        return OSError(self.errno, self.strerror, self.filename)


@contextmanager
def plainly(name: str) -> Iterator[None]:
    """Errors of obstore, as those of the file ``name``."""
    try:
        yield
    except (ParquetError, MemoryError):
        raise
    except Exception as error:
        forget_context(_marked(plain_error(error, name)))


def _marked(error: Exception) -> Exception:
    error.is_plain = True  # type: ignore[attr-defined]  # plain_errors() of other file systems leaves it as it is
    return error


def is_an_answer(error: Exception) -> bool:
    """Whether the store has answered that the object is not there, or that access is refused."""
    return isinstance(plain_error(error, ""), (FileNotFoundError, PermissionError))


def plain_error(error: Exception, name: str) -> Exception:
    kind, text = type(error).__name__, str(error).partition("\n\nDebug source")[0].strip()
    if _NO_CREDENTIALS.search(text):  # whatever the answer was: it says nothing of the object
        return PermissionError(errno.EACCES, "no credentials were found, and the machine has no role", name)
    text = without_secrets(text, "", None)
    code, said = _stated(without_secrets(str(error), "", None))
    status = re.search(r"status code: (\d{3}) ?([A-Za-z ]*)", text)
    kind = _kind_of(error, kind, code, int(status[1]) if status else 0)
    if kind in _KINDS:
        cls, number = _KINDS[kind]
        return cls(number, f"{os.strerror(number)}{': ' * bool(said)}{said}", name)
    if kind == "PreconditionError":
        return ChangedFileError(CHANGED, file=name)
    if kind == "NotSupportedError":
        return UnsupportedError(f"the store does not do this: {text}", file=name)
    if status is not None:
        answered = AnsweredError(errno.EIO, f"the server answers {status[1]} {said or status[2]}".rstrip(), name)
        answered.status = 500 if code in _PASSING else int(status[1])
        return answered
    if "timed out" in text or "timeout" in text.replace("retry_timeout", "").lower():
        return TimeoutError(errno.ETIMEDOUT, "no answer in time", name)
    if "body error" in text or "Interrupted" in text or "decoding response body" in text:
        return ConnectionError(errno.EIO, "the connection broke in the middle of the answer", name)
    if "error sending request" in text or "connect" in text.lower():
        return ConnectionError(errno.EIO, "the connection failed", name)
    return OSError(errno.EIO, text.partition(": Error performing")[0] or kind, name)


def _kind_of(error: Exception, kind: str, code: str, status: int) -> str:
    """The name of obstore's error that fits best: errors of listings have a general one."""
    if code in REFUSED or status in (401, 403, 407):
        return "PermissionDeniedError"
    # The listing of an empty folder is an empty answer. Another 404 there means that nothing is known of the folder.
    if code in _MISSING or (isinstance(error, FileNotFoundError) and not code):
        return "NotFoundError"
    if isinstance(error, FileNotFoundError):
        return "GenericError"  # with a code that says something else
    return "AlreadyExistsError" if isinstance(error, FileExistsError) else kind


def _stated(text: str) -> tuple[str, str]:
    """The store's code in the text of an error, and the code with the store's message."""
    code, message = (re.search(f"<{tag}>([^<]*)</{tag}>", text) for tag in ("Code", "Message"))
    if code is None:
        return "", ""
    return code[1], f"{code[1]}: {message[1]}" if message is not None and message[1] else code[1]
