"""The C++ kernels behind every per-value loop, with their types.

Kernels take buffers (anything C-contiguous: numpy arrays, bytes, memoryviews) and give numpy arrays or
bytes. They do no I/O, release the GIL while they work, and check every read, write and count. Bytes or
arguments that do not fit raise `KernelError`, a `ValueError`. What each does is said in `_native.pyi`.
"""

from __future__ import annotations

try:
    from pyparq.kernels._native import (
        KernelError,
        bit_packed_decode_u8,
        compact_binary,
        compact_fixed,
        compare_binary,
        compare_binary_decimal,
        compare_flba,
        count_distinct_u64,
        dict_encode_binary,
        dict_encode_fixed,
        gather_binary_bytes,
        gather_binary_offsets,
        gather_fixed,
        isin_binary,
        minmax_binary,
        minmax_binary_decimal,
        minmax_flba,
        minmax_numeric,
        narrow_offsets,
        pack_bits,
        plain_binary_decode,
        plain_binary_encode,
        rle_decode_i32,
        rle_decode_u8,
        rle_encode_i32,
        rle_encode_u8,
        sbbf_check,
        sbbf_insert,
        scatter_fixed,
        spread_offsets,
        starts_with_binary,
        take_binary,
        unpack_bits,
        utf8_validate,
        xxh64_binary,
        xxh64_fixed,
    )
except ImportError as exc:  # never a silent slow path
    raise ImportError(
        "pyparq's compiled kernels (pyparq.kernels._native) are missing or do not fit this Python. "
        "Install a wheel, or build them from the source tree with `pip install .` (needs a C++20 compiler). "
        f"The loader said: {exc}"
    ) from exc

__all__ = [
    "KernelError",
    "bit_packed_decode_u8",
    "compact_binary",
    "compact_fixed",
    "compare_binary",
    "compare_binary_decimal",
    "compare_flba",
    "count_distinct_u64",
    "dict_encode_binary",
    "dict_encode_fixed",
    "gather_binary_bytes",
    "gather_binary_offsets",
    "gather_fixed",
    "isin_binary",
    "minmax_binary",
    "minmax_binary_decimal",
    "minmax_flba",
    "minmax_numeric",
    "narrow_offsets",
    "pack_bits",
    "plain_binary_decode",
    "plain_binary_encode",
    "rle_decode_i32",
    "rle_decode_u8",
    "rle_encode_i32",
    "rle_encode_u8",
    "sbbf_check",
    "sbbf_insert",
    "scatter_fixed",
    "spread_offsets",
    "starts_with_binary",
    "take_binary",
    "unpack_bits",
    "utf8_validate",
    "xxh64_binary",
    "xxh64_fixed",
]
