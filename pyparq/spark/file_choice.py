"""Options of Spark's own readers: which files of a folder are read, and what becomes of files that cannot be."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyparq.datasets.data_files import DataFile, SourceFiles
from pyparq.errors import OptionError
from pyparq.filters.times import timestamp_ns
from pyparq.io.folders import fits
from pyparq.io.source import alternatives
from pyparq.spark.literals import instant_us, zone_of

FLAGS = ("recursivefilelookup", "ignorecorruptfiles", "ignoremissingfiles", "mergeschema")
MOMENTS = {"modifiedafter": "modifiedAfter", "modifiedbefore": "modifiedBefore"}
SPELLED = ("pathglobfilter", *FLAGS, *MOMENTS)
"""Options of Spark's readers that mean the same here, in lower case: Spark does not tell their case apart."""

OTHERS = {
    "basepath": "give the folder itself as the path, and a filter on its partition columns",
    "datetimerebasemode": "a file says itself by which calendar it was written (docs/spark.md, Old calendar)",
    "int96rebasemode": "a file says itself by which calendar it was written (docs/spark.md, Old calendar)",
    "versionasof": "pyparq reads plain files: give a table of Delta Lake or Iceberg to pyparq.dataset",
    "timestampasof": "pyparq reads plain files: give a table of Delta Lake or Iceberg to pyparq.dataset",
}
"""Those that have no equal, and what to do."""

CORRUPT, MISSING = "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"
"""Settings of a session that a read obeys."""


class NoneLeft(FileNotFoundError):
    """A choice leaves none of the files that there are."""


@dataclass(frozen=True)
class FileChoice:
    """The files of a source that are read. It is pickled for tasks."""

    glob: str | None = None
    """Of the names of files, without folders."""
    direct: bool = False
    """Only files that lie in the source itself or in its partition folders."""
    after: int | None = None
    """Only files that were changed later than this, in microseconds since 1970."""
    before: int | None = None

    def __bool__(self) -> bool:
        return self != FileChoice()

    def of(self, found: SourceFiles) -> SourceFiles:
        """These files of a listing. Raises what :meth:`numbers` does."""
        return replace(found, files=tuple(found.files[k] for k in self.numbers(found.files))) if self else found

    def numbers(self, files: Sequence[DataFile]) -> list[int]:
        """The numbers of these files in a listing.

        Raises :class:`OptionError` where a store does not say when a file was changed.
        """
        globs = None if self.glob is None else alternatives(self.glob.replace("[^", "[!"))
        return [k for k, file in enumerate(files) if self._has(file, globs)]

    def _has(self, file: DataFile, globs: list[str] | None) -> bool:
        if globs is not None and not any(fits((posixpath.basename(file.name),), (one,)) for one in globs):
            return False
        if self.direct and not all("=" in folder for folder in file.folders):
            return False
        return (self.after is None and self.before is None) or self._is_of_time(file)

    def _is_of_time(self, file: DataFile) -> bool:
        if file.mtime_ns is None:
            raise OptionError(
                "modifiedAfter and modifiedBefore need files whose listing says when they were changed", file=file.name
            )
        when = file.mtime_ns // 1_000_000 * 1_000  # Spark has milliseconds
        return (self.after is None or when > self.after) and (self.before is None or when < self.before)


class ReadAsSpark(NamedTuple):
    """What options of Spark's readers, and settings of the session, say."""

    choice: FileChoice
    on_error: str
    partitioned: bool
    """Whether folders called ``name=value`` are partitions."""
    others: dict[str, Any]
    """The options that are not Spark's."""


Setting = Callable[[str, str], Any]


def as_spark(options: Mapping[str, Any], on_error: str | None, zone: str | None, setting: Setting) -> Any:
    """Take Spark's options out of the options of a read (:class:`ReadAsSpark`). ``zone``: of moments that have none.
    ``setting``: the value of one of the session's, or a default.

    Raises :class:`OptionError` for values that mean nothing, and for options that have no equal here.
    """
    given = {name.lower(): value for name, value in options.items() if name.lower() in SPELLED}
    for name in options:
        if name.lower() in OTHERS:
            raise OptionError(f"pyparq has no option {name}: {OTHERS[name.lower()]}")
    flags = {name: as_flag(given, name) for name in FLAGS if name in given}
    after, before = (_moment(MOMENTS[name], given[name], zone) if name in given else None for name in MOMENTS)
    glob, recursive = given.get("pathglobfilter"), flags.get("recursivefilelookup")
    if glob is not None and (not isinstance(glob, str) or "/" in glob):
        raise OptionError(f"pathGlobFilter must be a pattern for the names of files, such as '*.parquet', not {glob!r}")
    return ReadAsSpark(
        FileChoice(glob, recursive is False, after, before),
        _on_error(on_error, flags, setting),
        recursive is not True,
        {name: value for name, value in options.items() if name.lower() not in SPELLED},
    )


def _on_error(given: str | None, flags: Mapping[str, bool], setting: Setting) -> str:
    """What the read does with files that cannot be read."""
    names = [name for name in ("ignorecorruptfiles", "ignoremissingfiles") if name in flags]
    if given is not None:
        if names:
            raise OptionError("ignoreCorruptFiles and ignoreMissingFiles are names of Spark's for on_error: give one")
        return given
    if flags.get("ignorecorruptfiles", str(setting(CORRUPT, "false")).lower() == "true"):
        return "skip"
    missing = flags.get("ignoremissingfiles", str(setting(MISSING, "false")).lower() == "true")
    return "skip_missing" if missing else "raise"


def _moment(name: str, text: Any, zone: str | None) -> int:
    """A point in time as Spark's readers take it, in microseconds since 1970."""
    try:
        found = timestamp_ns(text)
    except ValueError:
        found = None
    if found is None:
        raise OptionError(f"{name} must be a point in time such as '2024-03-10T02:30:00', not {text!r}")
    us = int(found[0] // 1000)
    if found[1]:
        return us
    if not zone:
        raise OptionError(f"{name}={text!r} has no time zone: write it with one (…Z), or give the option time_zone")
    return instant_us(us, zone_of(zone))


def as_flag(given: Mapping[str, Any], name: str) -> bool:
    text = str(given.get(name, "false")).lower()
    if text not in ("true", "false"):
        raise OptionError(f"the option {name} must be true or false, not {text!r}")
    return text == "true"
