"""The rules of FILE values (LogicalTypes.md, "FILE", "Validation"). What they name is never opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyparq.arrow.column import Column

Mask = npt.NDArray[np.bool_]


def file_fault(column: Column, *, encrypts: bool) -> tuple[Mask, str] | None:
    """The first rule that values of a struct break: which ones do, null structs left out, and what it says.

    ``encrypts``: whether the file is encrypted. The bytes that it refers to in itself could not be.
    """
    there = column.valid_mask()
    for broken, said in _rules(column, encrypts):
        faults = broken if there is None else broken & there.view(np.bool_)
        if faults.any():
            return faults, said
    return None


def _rules(column: Column, encrypts: bool) -> Iterator[tuple[Mask, str]]:
    fields = {
        field.name: child
        for field, child in zip(column.type.children, column.children, strict=True)
        if len(child) >= column.offset + len(column)  # a shorter one is refused by the walk
    }
    part = slice(column.offset, column.offset + len(column))

    def is_set(name: str) -> Mask:
        child = fields.get(name)
        return np.zeros(len(column), np.bool_) if child is None else _is_set(child)[part]

    uri, offset, size, inline = map(is_set, ("uri", "offset", "size", "inline"))
    yield ~(inline | uri | offset), "a FILE needs inline bytes, a uri, or an offset in this file"
    yield offset & ~size, "a FILE with an offset needs a size"
    if encrypts:
        yield (
            ~(inline | uri),
            "a FILE in an encrypted file may not refer to bytes of the same file: give a uri, or inline",
        )
    for name, known in (("offset", offset), ("size", size)):
        if known.any():
            yield known & (_numbers(fields[name])[part] < 0), f"the {name} of a FILE is below 0"


def _is_set(child: Column) -> Mask:
    """Where a field is set: not null and, if it is text, not empty."""
    valid = child.valid_mask()
    found: Mask = np.ones(len(child), np.bool_) if valid is None else valid.view(np.bool_)
    if child.type.format in ("u", "U"):
        lengths: Any = np.diff(child.offsets())
        found = found & (lengths > 0)
    return found


def _numbers(child: Column) -> npt.NDArray[np.int64]:
    return np.asarray(child.values(), np.int64)
