"""Requests to stores of obstore: one by one, and what they raise as the ``OSError`` that a local file would give.

obstore's threads serve all stores of a process. They do not exist in a forked child of a process that has used
them, and a request there would wait for ever.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pyparq.errors import ChangedFileError, OptionError, ParquetError, UnsupportedError
from pyparq.io.url import REFUSED, explained, forget_context, stated, without_secrets
from pyparq.runtime import fork_safety

R = TypeVar("R")

NOT_IN_A_FORK = "obstore does not work in a forked child of a process that has used it: start processes by 'spawn'"
_STEP = 0.1
"""Seconds between two looks for Ctrl-C, where the system does not end a wait for it."""
_used = False
"""Whether this process has used a store, or its parent had before the fork."""
_lost = False


@fork_safety.in_child
def _note_fork() -> None:
    global _lost
    _lost = _used


def are_lost() -> bool:
    """Whether no store can be used in this process: its threads were the parent's."""
    return _lost


def note_use() -> None:
    """Note that this process uses a store."""
    global _used
    _used = True


def interruptibly(ask: Callable[[], R]) -> R:
    """The result of a request. obstore does not notice Ctrl-C, so another thread waits for it in the place of the main
    one, and is left behind after Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        return ask()
    answers: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)

    asking = threading.Thread(target=run, name="pyparq-waits", daemon=True)
    try:
        asking.start()
    except RuntimeError:  # Python ends
        return ask()
    while asking.is_alive():
        asking.join(_STEP)
    if errors:
        raise errors[0]
    return answers[0]


def get_object(store: Any, path: str, options: Mapping[str, Any]) -> tuple[Any, memoryview]:
    """The answer of a store, and the bytes in it."""

    def get() -> tuple[Any, memoryview]:
        answer = store.get(path, options=options)
        return answer, memoryview(answer.bytes())

    return interruptibly(get)


def head_object(store: Any, path: str) -> Any:
    """What a store says of an object."""
    return interruptibly(lambda: store.head(path))


# ---- errors --------------------------------------------------------------------------------------------------------

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

_NO_RANGES = re.compile("non-partial response|Content-Length Header missing|value for CONTENT_RANGE")
"""What is not understood here: all of an object for a range of it, and answers without a size."""
_ACTIONS = {"GET": "read", "HEAD": "read", "PUT": "write", "POST": "write", "DELETE": "remove"}


class OddKeyError(OptionError):
    """A key that obstore cannot name."""


@contextmanager
def plainly(name: str) -> Iterator[None]:
    """Errors of obstore, as those of the file ``name``."""
    try:
        yield
    except (ParquetError, MemoryError):
        raise
    except BaseException as error:
        if (
            not isinstance(error, Exception) and type(error).__name__ != "PanicException"
        ):  # Rust's, of an odd address, say
            raise
        forget_context(_marked(plain_error(error, name)))


def _marked(error: Exception) -> Exception:
    error.is_plain = True  # type: ignore[attr-defined]  # plain_errors() of other file systems leaves it as it is
    return error


def plain_error(error: BaseException, name: str) -> Exception:
    kind, text = type(error).__name__, str(error).partition("\n\nDebug source")[0].strip()
    if _NO_CREDENTIALS.search(text):  # whatever the answer was: it says nothing of the object
        return PermissionError(errno.EACCES, "no credentials were found, and the machine has no role", name)
    text = without_secrets(text, "", None)
    code, said = stated(without_secrets(str(error), "", None))
    asked = re.search(r"performing (\w+) (\S*)", text)
    action = "" if asked is None else "list" if re.search("[?&](list-type|comp=list|prefix)", asked[2]) else asked[1]
    status = re.search(r"status code: (\d{3}) ?([A-Za-z ]*)", text)
    kind = _kind_of(error, kind, code, int(status[1]) if status else 0)
    if kind in _KINDS:
        cls, number = _KINDS[kind]
        action = _ACTIONS.get(action, action) * (cls is PermissionError)
        return cls(number, explained(f"{os.strerror(number)}{': ' * bool(said)}{said}", action), name)
    if kind == "InvalidPathError":
        return OddKeyError(text, file=name)
    if kind == "PreconditionError":
        return ChangedFileError(CHANGED, file=name)
    if kind == "NotSupportedError" or _NO_RANGES.search(text):
        return UnsupportedError(f"the store does not do this: {text}", file=name)
    if status is not None:
        said = explained(f"the server answers {status[1]} {said or status[2]}".rstrip())
        answered = OSError(errno.EIO, said, name)
        answered.status = 500 if code in _PASSING else int(status[1])  # type: ignore[attr-defined]  # as others have it
        return answered
    if "timed out" in text or "timeout" in text.replace("retry_timeout", "").lower():
        return TimeoutError(errno.ETIMEDOUT, "no answer in time", name)
    if "body error" in text or "Interrupted" in text or "decoding response body" in text:
        return ConnectionError(errno.EIO, "the connection broke in the middle of the answer", name)
    if "error sending request" in text or "connect" in text.lower():
        why = explained(str(error))[len(str(error)) :]
        return ConnectionError(errno.EIO, f"the connection failed{why}", name)
    return OSError(errno.EIO, explained(re.sub("Error performing .* - ", "", text) or kind), name)


def _kind_of(error: BaseException, kind: str, code: str, status: int) -> str:
    """The name of obstore's error that fits best: errors of listings have a general one."""
    if code in REFUSED or status in (401, 403, 407):
        return "PermissionDeniedError"
    # The listing of an empty folder is an empty answer. Another 404 there means that nothing is known of the folder.
    if code in _MISSING or (isinstance(error, FileNotFoundError) and not code):
        return "NotFoundError"
    if isinstance(error, FileNotFoundError):
        return "GenericError"  # with a code that says something else
    return "AlreadyExistsError" if isinstance(error, FileExistsError) else kind
