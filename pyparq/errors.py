"""All errors of pyparq. Each can name the file and the place in it where the error happened.

Every error that pyparq raises on purpose derives from :class:`ParquetError`. A function deep inside (a decoder,
a kernel wrapper) raises with what it knows; the layers above add the place with :func:`located`, so the message
that reaches the user names the file, row group, column and page.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

_PLACES = ("file", "row_group", "column", "page")


class ParquetError(Exception):
    """Base of every pyparq error.

    ``file``, ``row_group``, ``column`` and ``page`` say where the error happened. Each is ``None`` when it is unknown.
    Row groups and pages are counted from 0. ``page`` may be ``"dictionary"``.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
        page: int | str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.row_group = row_group
        self.column = column
        self.page = page

    def locate(self, **place: Any) -> ParquetError:
        """Add missing parts of the place, by the names above. Parts that an inner layer has set stay."""
        for name, value in place.items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    def __str__(self) -> str:
        given = {name.replace("_", " "): getattr(self, name) for name in _PLACES}
        place = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
        return f"{self.message} [{place}]" if place else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark executors): they are rebuilt from the message and the place.
        state = {name: getattr(self, name) for name in _PLACES}
        return (_rebuild, (type(self), self.message, state))


def _rebuild(cls: type[ParquetError], message: str, state: dict[str, object]) -> ParquetError:
    error = cls(message)
    error.__dict__.update(state)
    return error


class CorruptFileError(ParquetError, ValueError):
    """The file is not a valid Parquet file, or its parts contradict each other."""


class ChecksumError(CorruptFileError):
    """A page body does not match its CRC."""


class LimitError(ParquetError, ValueError):
    """The file asks for more memory, depth or items than :class:`pyparq.Limits` allows."""


class UnsupportedError(ParquetError, NotImplementedError):
    """The file or the request uses something that pyparq (or an optional package) does not provide."""


class SchemaError(ParquetError, ValueError):
    """A schema is invalid, or data does not fit it."""


class ColumnNotFoundError(SchemaError, KeyError):
    """The requested column does not exist, or the name does not identify one column."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument: take the readable form instead.
        return ParquetError.__str__(self)


class FilterError(ParquetError, ValueError):
    """A filter expression is malformed, or its literal cannot be compared with the column."""


class DataError(ParquetError, ValueError):
    """Data given to the writer cannot be written as asked (wrong type, ragged lengths, null in required), or a value of
    a file does not fit the type to read it in."""


class OptionError(ParquetError, ValueError):
    """An option or argument has an invalid value."""


class PlanError(OptionError):
    """The plan cannot be run: the file changed since, another version of pyparq made the plan, or it was altered."""


class EncryptionError(ParquetError, ValueError):
    """A key is missing or wrong, or an encrypted module fails its authentication."""


class MissingKeyError(EncryptionError):
    """The requested data is encrypted, and its key is not known."""


class ChangedFileError(ParquetError):
    """A file has changed since it was opened, or since its dataset was made. Open it, or make the dataset, again."""


class ChangedMeanwhile(ChangedFileError):
    """Another program has replaced, removed or changed a file while a new one was made from it. The other program's
    file stays; nothing of the new one does."""


class TargetExistsError(ParquetError, FileExistsError):
    """The folder to write to is not empty, or a file there has the name of a new one."""


class WriteConflictError(ParquetError):
    """Another write to the same folder is under way, or another program has ended this write."""


class CommitUnknownError(WriteConflictError):
    """A commit to a table failed in a way that does not tell whether it took place."""


class CorruptIndexWarning(UserWarning):
    """An index in the file is damaged. pyparq ignores it and reads the data without it."""


class CatalogWarning(UserWarning):
    """The catalog beside a dataset cannot be used. The files are read without it."""


class UnverifiedFooterWarning(UserWarning):
    """The signature of a plaintext footer was not checked, because the footer key is not known."""


class ManagedTableWarning(UserWarning):
    """The files belong to a table of Delta Lake, Apache Iceberg or Apache Hudi. Reading them as plain files may return
    rows that were deleted from the table."""


class UnfinishedWriteWarning(UserWarning):
    """A write to the folder has begun to put its files in place, and has not ended. The files from before the write are
    read or, on a store, those of the write once all of them are complete. :func:`pyparq.recover_dataset` ends the write
    if its program has crashed."""


class DroppedMetadataWarning(UserWarning):
    """Key-value metadata that do not hold for all rows of a table are left out. The message names the keys."""


class LeftOutColumnsWarning(UserWarning):
    """A dataset's ``schema=`` does not have all columns of a file: the others are not read. The message names them."""


class SkippedFileWarning(UserWarning):
    """A file of a dataset was left out because it could not be read (``on_error="skip"``). ``file``: its name."""

    def __init__(self, message: str, file: str = "") -> None:
        super().__init__(message)
        self.file = file


class located(SimpleNamespace):
    """Context that adds a place (file, row group, column, page) to any :class:`ParquetError` that passes
    through."""

    # A read enters many. So the only function of Python in it is the last: a generator takes three times as long.
    __enter__ = object.__sizeof__

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ParquetError):
            error.locate(**self.__dict__)


class reading(located):
    """The same around code in which a file decides how much is allocated.

    If the file's claims use up the memory, that is a fault of the file and not of the program. So a ``MemoryError``
    becomes a :class:`LimitError`.
    """

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MemoryError):
            found = LimitError(f"there is not enough memory for this read: {error}")
            raise found.locate(**self.__dict__) from error
        if isinstance(error, ParquetError):
            error.locate(**self.__dict__)


def near(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Up to three of ``names`` that ``name`` may be a misspelling of, the nearest first. ``cutoff``: how near,
    from 0 to 1."""
    import difflib  # only an error needs it

    lowered = {known.lower(): known for known in names}
    return [lowered[n] for n in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=cutoff)]


def near_matches(name: str, names: Iterable[str], what: str = "columns") -> str:
    """``"; did you mean 'a' or 'b'?"``, or the columns (or whatever) there are when nothing is near."""
    known = list(names)
    found = near(name, known)
    if found:
        return "; did you mean " + " or ".join(repr(n) for n in found) + "?"
    if what == "options":
        return "; help() of the function tells of all that there are"
    shown = ", ".join(repr(n) for n in known[:10]) + (", ..." if len(known) > 10 else "")
    return f"; the {what} are {shown}" if known else f"; there are no {what}"


class OtherNames:
    """A class whose ``_elsewhere`` says what to write in place of the names that pyarrow, pandas and polars use. A name
    with the same meaning is taken: ``"=name"`` is what it is called here, ``"="`` the object itself. ``"=!name"``: the
    name was ours until now; it is taken with a warning. ``_like``: classes of others, and what makes one of it."""

    __slots__ = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    _like: ClassVar[tuple[tuple[str, str, str], ...]] = ()

    if not TYPE_CHECKING:  # type checkers report what is not there

        def __getattr__(self, name: str) -> Any:
            hint = self._elsewhere.get(name)
            if hint and hint[0] == "=":
                if hint[1:2] == "!":
                    warnings.warn(f"{name}() is called {hint[2:]}() now", DeprecationWarning, stacklevel=2)
                return getattr(self, hint.lstrip("=!")) if hint[1:] else self
            for module, kind, made in () if hint or name[:1] == "_" else self._like:
                if hasattr(getattr(sys.modules.get(module), kind, None), name):
                    hint = f"{made}, which has it"
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{text}; use {hint}" if hint else text, name=name, obj=self)


def by_each(hints: Mapping[str, str]) -> dict[str, str]:
    """``{"a b": hint}`` as ``{"a": hint, "b": hint}``."""
    return {name: hint for names, hint in hints.items() for name in names.split()}
