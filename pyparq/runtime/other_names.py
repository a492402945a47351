"""Names that other libraries give to what a class can do, for errors that say what to write here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar


class OtherNames:
    """A class whose ``_elsewhere`` says what to write in place of the names that pyarrow, pandas and polars use."""

    __slots__ = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # type checkers report what is not there

        def __getattr__(self, name: str) -> Any:
            hint = self._elsewhere.get(name)
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{text}; use {hint}" if hint else text, name=name, obj=self)


def by_each(hints: Mapping[str, str]) -> dict[str, str]:
    """``{"a b": hint}`` as ``{"a": hint, "b": hint}``."""
    return {name: hint for names, hint in hints.items() for name in names.split()}
