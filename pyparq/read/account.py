"""How many decoded bytes one read has alive: taken before they are allocated, so that no file makes it more than the
limit allows."""

from __future__ import annotations

import threading
from functools import cache

from pyparq.buffers import memory_size
from pyparq.errors import LimitError
from pyparq.limits import Limits

WITHOUT_END = (1 << 62) - 1
USUAL = 2 << 20
"""Bytes that a column chunk's pages may take without being asked, where the limit is not small."""


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
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Bytes that may still be taken."""
        return self.most - self.used

    def take(self, size: int) -> None:
        """Count ``size`` bytes that are about to be allocated. Raises :class:`LimitError` where they are too many."""
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
            f"{size} more bytes beside {self.used} that are decoded: beyond limits.max_memory ({self.most})"
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
    """What one column chunk takes of an account, on one thread."""

    __slots__ = ("account", "held")

    def __init__(self, account: Account) -> None:
        self.account = account
        self.held = 0

    def take(self, size: int) -> None:
        """As :meth:`Account.take`."""
        self.account.take(size)
        self.held += size

    def give(self, size: int) -> None:
        self.account.give(size)
        self.held -= size

    def check(self, size: int) -> None:
        """Raise :class:`LimitError` unless ``size`` bytes can be taken."""
        if size > self.account.left:
            raise self.account.refusal(size)

    def settle(self, size: int) -> None:
        """All that is still alive is ``size`` bytes."""
        self.give(self.held - size)


class OpenRoom:
    """What the pages of a chunk that lie open at once take: it grows with what they need, and stays for the next."""

    __slots__ = ("_share", "beside", "size")

    def __init__(self, share: Share) -> None:
        self._share = share
        self.size = 0
        """Bytes."""
        self.beside = 0
        """Bytes of it that others use, who have pages open beside."""
        self.make(min(USUAL, share.account.most >> 6))

    def make(self, size: int) -> None:
        """Have ``size`` bytes. Raises :class:`LimitError` where there are not so many."""
        missing = size + self.beside - self.size
        if missing > 0:
            self._share.take(missing)
            self.size += missing
