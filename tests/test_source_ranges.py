"""Many ranges of a local file in one call, against slices of its bytes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from pyparq import kernels
from pyparq.errors import CorruptFileError, OptionError
from pyparq.io.source import TOGETHER, LocalFile
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
