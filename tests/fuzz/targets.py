"""What is fuzzed: functions that take the bytes of one input and call kernels with them.

Each lets :class:`KernelError` and its kin pass, as what it should be for bad bytes. Any other exception is a finding,
as is what a sanitizer reports. The first :data:`HEAD` bytes of an input say how the others are read. The same functions
run under libFuzzer (``run.py``) and replay the corpora in the ordinary tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import fuzz_arrow
import fuzz_codecs
import fuzz_encoders
import fuzz_files
import fuzz_geometries
import fuzz_pages
import fuzz_sealed
import fuzz_select
import fuzz_thrift
import fuzz_values
import fuzz_variants


@dataclass(frozen=True)
class Target:
    """``run`` takes the bytes of an input. ``form``: what the mutator knows of it; ``longest`` its bytes."""

    run: Callable[[memoryview], object]
    form: Literal["bytes", "thrift", "pages"] = "bytes"
    longest: int = 512


TARGETS = {
    "snappy": Target(fuzz_codecs.snappy),
    "lz4": Target(fuzz_codecs.lz4),
    "lzo": Target(fuzz_codecs.lzo),
    "wkb": Target(fuzz_geometries.boxes),
    "geometry_columns": Target(fuzz_geometries.columns, longest=1024),
    "compress": Target(fuzz_codecs.compress),
    "rle": Target(fuzz_values.rle),
    "delta": Target(fuzz_values.delta),
    "alp": Target(fuzz_values.alp),
    "alp_values": Target(fuzz_values.alp_values),
    "byte_arrays": Target(fuzz_values.byte_arrays),
    "encoders": Target(fuzz_encoders.encoders),
    "files": Target(fuzz_files.files, longest=1024),
    "footer": Target(fuzz_thrift.footer, "thrift", 4096),
    "struct": Target(fuzz_thrift.struct, "thrift", 2048),
    "column_index": Target(fuzz_thrift.column_index, "thrift", 1024),
    "bloom": Target(fuzz_thrift.bloom, "thrift", 1024),
    "pages": Target(fuzz_pages.pages, "pages", 4096),
    "chunk": Target(fuzz_pages.chunk, "pages", 4096),
    "sealed": Target(fuzz_sealed.sealed, "pages", 4096),
    "modules": Target(fuzz_sealed.modules),
    "select": Target(fuzz_select.select),
    "computed": Target(fuzz_select.computed),
    "arrow_schema": Target(fuzz_arrow.schema, longest=1024),
    "arrow_import": Target(fuzz_arrow.imported),
    "variant": Target(fuzz_variants.unshredded),
    "shred": Target(fuzz_variants.shredded),
}
