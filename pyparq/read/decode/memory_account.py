"""How many decoded bytes one read has alive: taken before they are allocated, so that no file makes it more than the
limit allows."""

from __future__ import annotations

import threading
from functools import cache

from pyparq.errors import LimitError
from pyparq.kernels.buffers import memory_size
from pyparq.limits import Limits
from pyparq.runtime import fork_safety

WITHOUT_END = (1 << 62) - 1
AHEAD = 4 << 20
"""Bytes that a column chunk takes of the account before it is asked, where the limit is not small."""


@cache
def _memory_there_is() -> int:
    return memory_size() or WITHOUT_END


class Account:
    """What all column chunks of a read take together. May be used from several threads."""

    def __init__(self, limits: Limits) -> None:
        self.most = _memory_there_is() if limits.max_memory is None else limits.max_memory
        """Bytes."""
        self.used = 0
        self._kept = 0
        self._after_fork()
        fork_safety.watch(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.most - self.used

    def take(self, size: int) -> None:
        """Count ``size`` bytes. Raises :class:`LimitError` where they are too many."""
        with self._lock:
            if self.used + size > self.most:
                raise self.refusal(size)
            self.used += size

    def give(self, size: int) -> None:
        """These are gone."""
        with self._lock:
            self.used -= size

    def refusal(self, size: int) -> LimitError:
        """What to say to those who need ``size`` more bytes."""
        return LimitError(
            f"the read holds {self.used} decoded bytes and needs at least {size} more bytes: "
            f"more than limits.max_memory ({self.most})"
        )

    def keep(self) -> None:
        """What is counted now stays for as long as the scan: the dictionaries that pruning has decoded."""
        self._kept = self.used

    def rewind(self, used: int) -> None:
        """What was taken since no more than this was used is gone."""
        self.used = used

    def restart(self, alive: int = 0) -> None:
        """Nothing else is alive any more but ``alive`` bytes: one row group of a stream has gone, the next comes."""
        self.used = self._kept + alive


class Share:
    """What one column chunk takes of an account, on one thread: from the account itself only now and then."""

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
        """Count ``size`` bytes that are about to be allocated. Raises :class:`LimitError` where they are too many."""
        self.held += size
        if self.held > self._paid:
            missing = self.held - self._paid
            self._account.take(missing)
            self._paid += missing

    def give(self, size: int) -> None:
        """These are gone."""
        self.held -= size
        spare = self._paid - self.held
        if spare > 2 * self._ahead:
            self._account.give(spare)
            self._paid = self.held

    def refusal(self, size: int) -> LimitError:
        """As :meth:`Account.refusal`, of ``size`` bytes or more."""
        return self._account.refusal(size)

    def settle(self, size: int) -> None:
        """All that is still alive is ``size`` bytes."""
        self._account.give(self._paid - size)
        self._paid = self.held = size
