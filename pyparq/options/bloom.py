"""Options for the Bloom filters of a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pyparq.errors import OptionError, near_matches
from pyparq.options.checks import is_int, is_number


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """Options for the Bloom filters of one column."""

    fpp: float = 0.01
    """Target false-positive rate. The filter is sized for the distinct values of each row group, which are counted when
    the row group is complete."""
    ndv: int | None = None
    """Number of distinct values per row group to size the filter for. ``None`` counts them."""
    bytes: int | None = None
    """Exact size of the bitset, in bytes."""
    max_bytes: int = 128 << 20
    """Maximum size of the bitset, in bytes. A filter that reaches it has a higher false-positive rate than ``fpp``."""
    power_of_two: bool = True
    """Round the size of the bitset to a power of two. ``False`` uses the exact number of 32-byte blocks. That is
    smaller, but Arrow C++ refuses to read it."""
    auto: bool = False
    """Write no filter for a column chunk that is completely dictionary-encoded: readers can test its dictionary."""

    def __post_init__(self) -> None:
        if not (is_number(self.fpp) and 0 < self.fpp < 1):
            raise OptionError(f"a Bloom filter's fpp must be between 0 and 1 (exclusive), not {self.fpp!r}")
        if self.ndv is not None and not (is_int(self.ndv) and self.ndv >= 0):
            raise OptionError(f"a Bloom filter's ndv must be a whole number of at least 0, not {self.ndv!r}")
        for name, size in (("bytes", self.bytes), ("max_bytes", self.max_bytes)):
            if size is not None and not (is_int(size) and 32 <= size <= 128 << 20):
                raise OptionError(f"a Bloom filter's {name} must be between 32 bytes and 128 MiB, not {size!r}")
        if self.bytes is not None and self.bytes % 32:
            raise OptionError(f"a Bloom filter's bytes must be a multiple of 32, not {self.bytes}")
        if self.bytes is not None and self.power_of_two and self.bytes & (self.bytes - 1):
            raise OptionError(
                f"a Bloom filter's bytes must be a power of two, not {self.bytes}, unless power_of_two=False"
            )


def bloom_options(given: Any, base: BloomOptions | None = None) -> BloomOptions | None:
    """One column's value in ``bloom_filters`` or ``bloom_filter_options``; ``None`` when it says no filter."""
    base = base or BloomOptions()
    if given is None or given is False:
        return None
    if given is True:
        return base
    if isinstance(given, BloomOptions):
        return given
    if isinstance(given, str) and given == "auto":
        return BloomOptions(**{**_as_dict(base), "auto": True})
    if is_number(given):
        return BloomOptions(**{**_as_dict(base), "fpp": given})
    if isinstance(given, Mapping):
        known = [f.name for f in fields(BloomOptions)]
        for name in given:
            if name not in known:
                raise OptionError(f"unknown Bloom filter option {name!r}{near_matches(str(name), known, 'options')}")
        return BloomOptions(**{**_as_dict(base), **given})
    raise OptionError(f"a Bloom filter takes True, a false-positive rate, 'auto' or a dict of options, not {given!r}")


def _as_dict(options: BloomOptions) -> dict[str, Any]:
    return {f.name: getattr(options, f.name) for f in fields(options)}
