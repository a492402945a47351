"""How often requests to stores are made, and how many at the same time.

Requests that fail for the moment are repeated: a few times, after waits that double, with some randomness.

Failures that may pass are the answers 408, 429, 500, 502, 503 and 504, connections that fail or break, timeouts, and
bodies shorter than promised. All other errors are raised at once.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pyparq.errors import OptionError, ParquetError
from pyparq.io.url import cause_of, described, explained
from pyparq.option_checks import keywords
from pyparq.runtime.messages import debug_logger
from pyparq.runtime.threads import bound_requests, check_stopped, most_requests

if TYPE_CHECKING:
    import asyncio  # loads slowly, so only where a loop runs

T = TypeVar("T")

_PASSING = {408, 429, 500, 502, 503, 504}
_LASTING = (
    ParquetError, FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError,
    NotImplementedError, ImportError, MemoryError,
)  # fmt: skip
_LONGEST_WAIT = 20.0
"""Seconds between two tries, whatever a server asks for."""
_LONGEST = 60.0
"""Seconds after which nothing is tried again."""
_STEP = 0.1
"""Seconds between two checks whether the caller still waits."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a request is repeated, and the seconds before the first repetition."""

    times: int = 4
    wait: float = 0.1

    def at_most(self, times: int) -> Retry:
        """The same with fewer repetitions, for a library that repeats its own requests."""
        return replace(self, times=min(self.times, times))

    def once(self, ask: Callable[[], T]) -> T:
        """The result of ``ask``. Raises its last error."""
        return self.each(lambda wanted: [tried(ask)], [None])[0]  # type: ignore[no-any-return]

    def each(
        self,
        ask: Callable[[Sequence[Any]], Sequence[Any]],
        wanted: Sequence[Any],
        is_wrong: Callable[[Any, Any], bool] = lambda wanted, answer: False,
    ) -> list[Any]:
        """The answers to ``wanted``. ``ask`` gets the requests that have no answer yet, and returns an exception for
        one that failed. An answer that ``is_wrong`` is requested again. The last try returns it as it is.

        Raises the first error that is not expected to pass, or the first of the last try.
        """
        found: list[Any] = [None] * len(wanted)
        missing, begun = list(range(len(wanted))), time.monotonic()
        for tries in range(1, self.times + 2):
            check_stopped()
            for k, answer in zip(missing, ask([wanted[k] for k in missing]), strict=True):
                found[k] = answer
            errors = [found[k] for k in missing if isinstance(found[k], BaseException)]
            for error in errors:
                if not may_pass(error):
                    raise error
            missing = [k for k in missing if isinstance(found[k], BaseException) or is_wrong(wanted[k], found[k])]
            pause = self._pause(tries, errors)
            if not missing or tries > self.times or time.monotonic() - begun + pause > _LONGEST:
                break
            _log(tries, len(missing), pause, errors)
            pause_for(pause)
        if missing and errors:
            raise _counted(errors[0], tries)
        return found

    def _pause(self, tries: int, errors: Sequence[BaseException]) -> float:
        import random  # a first answer needs it not

        own = self.wait * 2.0 ** (tries - 1) * random.uniform(0.5, 1.0)
        asked = max((_retry_after(error) for error in errors), default=0.0)
        return min(max(own, asked), _LONGEST_WAIT)


def _log(tries: int, count: int, pause: float, errors: Sequence[BaseException]) -> None:
    logger = debug_logger("io")
    if logger is not None:
        why = described(errors[0]) if errors else "the answer is too short"
        logger.debug("%d requests are repeated in %.2f s, after try %d: %s", count, pause, tries, why)


def tried(ask: Callable[[], Any]) -> Any:
    """The result of ``ask``, or the exception that it ends in."""
    try:
        return ask()
    except Exception as error:
        return error


def may_pass(error: BaseException) -> bool:
    """Whether repeating may help."""
    cause, status = cause_of(error)
    if status is not None:
        return status in _PASSING
    if isinstance(cause, _LASTING) or "server's certificate" in explained(str(cause)):
        return False
    if isinstance(cause, (ConnectionError, TimeoutError)):
        return True
    kinds = " ".join(kind.__name__ for kind in type(cause).__mro__)
    return any(part in kinds for part in ("Connect", "Payload", "Timeout", "IncompleteRead"))


def _retry_after(error: BaseException) -> float:
    """Seconds that the server asks to wait. 0 if it does not say."""
    cause, _ = cause_of(error)
    answer = getattr(cause, "response", None)
    told = answer.get("ResponseMetadata", {}).get("HTTPHeaders") if isinstance(answer, dict) else None
    told = told or getattr(cause, "headers", None) or {}
    text = str(told.get("Retry-After") or told.get("retry-after") or "")
    if text.isdigit():
        return float(text[:6])
    try:
        from email.utils import parsedate_to_datetime

        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0) if text else 0.0
    except ValueError:
        return 0.0


def pause_for(seconds: float) -> None:
    """Sleep, in steps: a task whose result is no longer needed ends between two of them."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        check_stopped()
        time.sleep(min(left, _STEP))


def _counted(error: BaseException, tries: int) -> BaseException:
    """The error, with the number of tries in its message."""
    if tries > 1:
        error.pyparq_tries = tries  # type: ignore[attr-defined]
    return error


# ---- how many at the same time -------------------------------------------------------------------------------------

_free: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, asyncio.Semaphore]] = weakref.WeakKeyDictionary()


def io_thread_count() -> int:
    """Maximum number of requests to stores that pyparq makes at the same time, in the whole process: 128 unless
    :func:`set_io_thread_count` has changed it. Each thread that reads may make one more.

    Example::

        print(pyparq.io_thread_count())      # 128
    """
    return most_requests()


@keywords
def set_io_thread_count(count: int) -> None:
    """Set the maximum number of requests to stores at the same time, for the whole process.

    It bounds all reads together. What one read may do at a time is the option ``max_requests``. Requests that are under
    way end as they are. Raises :class:`pyparq.OptionError` for anything but a whole number of at least 1.

    Example::

        pyparq.set_io_thread_count(256)
    """
    if type(count) is not int or count < 1:
        raise OptionError(f"count must be a whole number of at least 1, not {count!r}")
    bound_requests(count)


def free_request() -> asyncio.Semaphore:
    """What a request of the running event loop must hold. At most :func:`io_thread_count` hold it at a time."""
    import asyncio

    loop, count = asyncio.get_running_loop(), most_requests()
    known = _free.get(loop)
    if known is None or known[0] != count:
        known = _free[loop] = count, asyncio.Semaphore(count)
    return known[1]
