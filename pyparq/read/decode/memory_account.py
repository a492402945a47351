"""Counts the decoded bytes that one read holds. Bytes are counted before they are allocated, so that no file exceeds
the limit."""

from __future__ import annotations

import threading
from functools import cache

from pyparq.errors import LimitError
from pyparq.kernels.buffers import memory_size
from pyparq.limits import Limits
from pyparq.runtime import fork_safety

WITHOUT_END = (1 << 62) - 1
AHEAD = 4 << 20
"""Bytes that a column chunk reserves in advance, if the limit is not small."""


@cache
def _memory_there_is() -> int:
    return memory_size() or WITHOUT_END


class Account:
    """The bytes of all column chunks of a read. Several threads may use it."""

    lock = threading.RLock()
    """One for all accounts: each holds it for a few numbers alone."""

    def __init__(self, limits: Limits) -> None:
        self.most = _memory_there_is() if limits.max_memory is None else limits.max_memory
        """Bytes."""
        self.used = 0
        self._kept = 0

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.most - self.used

    def take(self, size: int) -> None:
        """Count ``size`` bytes. Raises :class:`LimitError` if they are too many."""
        with self.lock:
            if self.used + size > self.most:
                raise self.refusal(size)
            self.used += size

    def give(self, size: int) -> None:
        """Release bytes."""
        with self.lock:
            self.used -= size

    def reserve(self, shares: int) -> int:
        """Take one of ``shares`` parts of what is left, and return its bytes."""
        with self.lock:
            size = max(self.most - self.used, 0) // shares
            self.used += size
            return size

    def refusal(self, size: int, uncounted: int = 0) -> LimitError:
        """The error for code that needs ``size`` more bytes. ``uncounted``: bytes that it holds and that are not taken
        yet."""
        return LimitError(
            f"the read holds {self.used + uncounted} decoded bytes and needs at least {size} more bytes: "
            f"more than limits.max_memory ({self.most})"
        )

    def keep(self) -> None:
        """Keep the bytes counted so far until the scan ends: the dictionaries that pruning has decoded."""
        self._kept = self.used

    def rewind(self, used: int) -> None:
        """Go back to this number of used bytes: everything taken since was released."""
        self.used = used

    def restart(self, alive: int = 0) -> None:
        """Only ``alive`` bytes are still held: one row group of a stream was released, and the next one begins."""
        self.used = self._kept + alive


@fork_safety.in_child
def _renew_lock() -> None:
    Account.lock = threading.RLock()


class Portion:
    """A part of what is left, for one of several threads: taken from the account before the thread allocates any of it,
    so that the threads together stay within the limit."""

    __slots__ = ("_account", "_room", "_taken")

    def __init__(self, account: Account, shares: int = 1) -> None:
        """One of ``shares`` parts of what is left now."""
        self._account = account
        self._room = account.reserve(shares)
        self._taken = 0

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self._room - self._taken

    def take(self, size: int) -> None:
        """As :meth:`Account.take`."""
        if self._taken + size > self._room:
            raise self.refusal(size)
        self._taken += size

    def release(self) -> None:
        """Nothing of what was taken is held any more."""
        self._taken = 0

    def set_held(self, alive: int) -> None:
        """Give all back but ``alive`` bytes."""
        self._account.give(self._room - alive)
        self._room = self._taken = alive

    def refusal(self, size: int, uncounted: int = 0) -> LimitError:
        """As :meth:`Account.refusal`."""
        return self._account.refusal(size, uncounted - self.left)


class Share:
    """The bytes of one column chunk, on one thread. It takes larger amounts from the account, so that it asks
    rarely."""

    __slots__ = ("_account", "_ahead", "_paid", "held")

    def __init__(self, account: Account) -> None:
        self._account = account
        self._ahead = min(AHEAD, account.most >> 5)
        account.take(self._ahead)
        self._paid = self._ahead
        self.held = 0
        """Bytes."""

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self._account.left + self._paid - self.held

    def take(self, size: int) -> None:
        """Count ``size`` bytes before they are allocated. Raises :class:`LimitError` if they are too many."""
        self.held += size
        if self.held > self._paid:
            missing = self.held - self._paid
            self._account.take(missing)
            self._paid += missing

    def give(self, size: int) -> None:
        """Release bytes."""
        self.held -= size
        spare = self._paid - self.held
        if spare > 2 * self._ahead:
            self._account.give(spare)
            self._paid = self.held

    def refusal(self, size: int, uncounted: int = 0) -> LimitError:
        """As :meth:`Account.refusal`, for ``size`` bytes or more. What pages hold is taken already."""
        return self._account.refusal(size)

    def set_held(self, size: int) -> None:
        """Set the number of bytes that are still held."""
        self._account.give(self._paid - size)
        self._paid = self.held = size
