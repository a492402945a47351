"""Many ranges of a local file in one call, against slices of its bytes."""

from __future__ import annotations

import _thread
import os
import random
import signal
from collections import deque
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from pyparq import kernels
from pyparq.errors import CorruptFileError, OptionError
from pyparq.io.source import SHARED, TOGETHER, LocalFile
from pyparq.kernels import KernelError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "bytes"
    path.write_bytes(random.Random(6).randbytes(300_000))
    return path


def test_ranges(path: Path) -> None:
    data, source = path.read_bytes(), LocalFile(str(path))
    rng = random.Random(7)
    ranges = [(at := rng.randrange(len(data)), rng.randrange(len(data) - at)) for _ in range(200)]
    assert sum(length for _, length in ranges) > TOGETHER  # more than one call
    ranges += [(0, 0), (5, 0), (0, len(data)), (len(data), 0), (len(data) - 1, 1)]
    for some in (ranges, ranges[:1], ranges[-2:], []):
        assert [bytes(part) for part in source.read_ranges(some)] == [data[at : at + n] for at, n in some]
    source.close()
    with pytest.raises(OptionError, match="closed"):
        source.read_ranges([(0, 1), (2, 1)])


def test_a_file_that_became_shorter(path: Path) -> None:
    source = LocalFile(str(path))
    os.truncate(path, 1000)
    with pytest.raises(CorruptFileError, match="200 bytes at offset 900"):
        source.read_ranges([(0, 10), (900, 200), (20, 5)])
    source.close()


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_while_a_file_is_let_go(path: Path) -> None:
    """The file is closed, and KeyboardInterrupt comes: in a ``__del__`` Python would print it and go on."""
    source = LocalFile(str(path))
    number, held = source.fileno(), [source._open]
    source.close()
    with pytest.raises(KeyboardInterrupt):
        # In C, so that Python has no time in between: the signal comes, then the last reference goes.
        deque(chain(map(_thread.interrupt_main, [signal.SIGINT]), map(held.pop, [0])), maxlen=0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_what_the_kernel_refuses(path: Path) -> None:
    assert kernels.pread_ranges is not None
    two, out = np.array([0, 5], np.int64), np.empty(10, np.uint8)
    with path.open("rb") as file:
        assert kernels.pread_ranges(file.fileno(), two, np.array([5, 5], np.int64), out) == 10
        assert out.tobytes() == path.read_bytes()[:10]
        for offsets, lengths in (([0, 5], [5, 6]), ([0, -1], [5, 5]), ([0, 5], [5, -1]), ([0, 5], [5])):
            with pytest.raises(KernelError):
                kernels.pread_ranges(file.fileno(), np.array(offsets, np.int64), np.array(lengths, np.int64), out)
    with pytest.raises(OSError, match="Bad file descriptor"):
        kernels.pread_ranges(1 << 20, two, np.array([5, 5], np.int64), out)


def test_threads_share_what_is_much(tmp_path: Path) -> None:
    path = tmp_path / "large"
    data = random.Random(8).randbytes(9 << 20)
    path.write_bytes(data)
    source = LocalFile(str(path))
    source.use_threads = True
    ranges = [(17, SHARED), (0, 3), (5 << 20, 3 << 20), (12, 0), (1 << 20, SHARED + 1), (1, len(data) - 1)]
    assert [bytes(part) for part in source.read_ranges(ranges)] == [data[at : at + n] for at, n in ranges]
    os.truncate(path, 6 << 20)
    for some in (ranges[:3], ranges[-1:]):
        with pytest.raises(CorruptFileError, match=f"at offset {some[-1][0]} "):
            source.read_ranges(some)
    source.close()


def test_the_kernel_on_threads(tmp_path: Path) -> None:
    assert kernels.pread_ranges is not None
    path, size = tmp_path / "large", 5 << 20
    path.write_bytes(b"x" * size)
    offsets, lengths, out = (
        np.array([1, 2], np.int64),
        np.array([size - 1, size], np.int64),
        np.empty(2 * size, np.uint8),
    )
    with path.open("rb") as file:
        assert kernels.pread_ranges(file.fileno(), offsets, lengths, out, 2) == 2 * size - 3
        with pytest.raises(KernelError):
            kernels.pread_ranges(file.fileno(), np.array([2**63 - 9], np.int64), lengths[:1], out, 2)
    with pytest.raises(OSError, match="Bad file descriptor"):
        kernels.pread_ranges(1 << 20, offsets, lengths, out, 2)
