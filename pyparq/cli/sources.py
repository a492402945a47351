"""What the arguments of commands name: files, folders, ``-``; and the scans that options ask for."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from pyparq.cli.options import misused, opening, storage_for

PIPE = "-"
NAME = "<stdin>"
CHUNK = 1 << 20


# ---- opening


@contextmanager
def opened(file: str) -> Iterator[Any]:
    """The :class:`pyparq.ParquetFile` at a path or URL."""
    from pyparq.read.file import ParquetFile

    with plain_errors_of(file):
        parquet = ParquetFile(source_of(file), storage_options=storage_for(file), **opening())
    with parquet:
        yield parquet


@contextmanager
def plain_errors_of(file: str) -> Iterator[None]:
    """Say in one line what the file system behind a URL raises: an unknown protocol, a missing package."""
    from pyparq.errors import ParquetError

    try:
        yield
    except (ParquetError, OSError):
        raise
    except Exception as error:
        if "://" not in file:
            raise
        raise click.ClickException(f"cannot open {file}: {error or type(error).__name__}") from error


@contextmanager
def opened_any(*sources: str) -> Iterator[Any]:
    """The :class:`pyparq.ParquetFile` at a path or URL, or the :class:`pyparq.Dataset` of a folder, a glob, or several
    sources."""
    from pyparq.io.source import names_many

    if len(sources) == 1 and (sources[0] == PIPE or not names_many(sources[0])):
        with opened(sources[0]) as parquet:
            yield parquet
    else:
        yield dataset_of(*sources)


def dataset_of(*sources: str) -> Any:
    """The :class:`pyparq.Dataset` of folders, globs and files."""
    from pyparq.datasets.dataset import Dataset

    with plain_errors_of(next((source for source in sources if "://" in source), sources[0])):
        given = sources_of(sources)
        dataset = Dataset(given, storage_options=storage_for(*sources), **opening())
    if not dataset.files:
        raise click.ClickException(f"the folder has no data files: {', '.join(sources)}")
    return dataset


def is_dataset(parquet: Any) -> bool:
    """Whether :func:`opened_any` gave a dataset."""
    from pyparq.read.file import ParquetFile

    return not isinstance(parquet, ParquetFile)


def rows_in(parquet: Any) -> int:
    """Number of rows of a file or a dataset, from footers."""
    return int(parquet.count() if is_dataset(parquet) else parquet.metadata.num_rows)


def rows_where(sources: Sequence[str], where: str | None) -> int:
    """Number of rows for which a condition is true. Without one, no more is loaded than footers take."""
    from pyparq.io.source import names_many

    if where is not None or len(sources) > 1 or (sources[0] != PIPE and names_many(sources[0])):
        with opened_any(*sources) as parquet:
            return int(make_scan(parquet, where).count())
    import pyparq

    with plain_errors_of(sources[0]):
        return pyparq.count(source_of(sources[0]), storage_options=storage_for(sources[0]), **opening())


def file_of(parquet: Any) -> Any:
    """What :class:`pyparq.ParquetFile` stands on: chunks, places and bytes."""
    from pyparq.read.file import file_of as opened_file

    return opened_file(parquet)


def files_in(parquet: Any) -> list[Any]:
    """The same of each file of a dataset, or of the one file."""
    if not is_dataset(parquet):
        return [file_of(parquet)]
    from pyparq.datasets.dataset import files_of

    return [file for _, file in files_of(parquet).open_all(range(len(parquet.files)))]


# ---- parts of a file


def chosen_row_groups(file: Any, wanted: Sequence[int]) -> list[int]:
    """The row groups asked for (all when none is named), checked, each once."""
    count = file.num_row_groups
    for k in wanted:
        if k >= count:
            from pyparq.errors import OptionError

            raise OptionError(f"row group {k} does not exist: the file has {count}, counted from 0")
    return list(dict.fromkeys(wanted)) if wanted else list(range(count))


def chosen_leaves(file: Any, wanted: Sequence[Any]) -> list[Any]:
    """The leaves at or below the named columns (all when none is named), in the order of the names."""
    if not wanted:
        return list(file.tree.leaves)
    return list({leaf.column: leaf for name in wanted for leaf in file.tree.find(name).leaves()}.values())


def condition(parquet: Any, where: str | None) -> Any:
    """The filter that ``--where`` means; ``None`` without one."""
    if where is None:
        return None
    from pyparq.filters.sql_text import parse_where

    return parse_where(where, parquet.tree)


def make_scan(
    parquet: Any, where: str | None, columns: Sequence[Any] = (), row_groups: Sequence[int] = (),
    limit: int | None = None,
) -> Any:  # fmt: skip
    """A scan for what the command line asked; without a condition one of the first ``limit`` rows only."""
    predicate, first = condition(parquet, where), limit or None if where is None else None
    if not is_dataset(parquet):
        return parquet.scan(columns or None, predicate, chosen_row_groups(parquet, row_groups), limit=first)
    if row_groups:
        misused("--row-group is for a single file")
    return parquet.scan(columns or None, predicate, limit=first)


# ---- standard input and output


def source_of(source: str) -> Any:
    """The source that an argument names: a path as it is, and for ``-`` what standard input holds."""
    return standard_input() if source == PIPE else source


def sources_of(sources: Sequence[str]) -> Any:
    """The same of several arguments; of one alone, it itself."""
    given = [source_of(source) for source in sources]
    return given if len(given) > 1 else given[0]


def standard_input() -> Any:
    """Standard input as a file that can seek: Parquet files are read from their end. So a pipe is copied to a temporary
    file first, a piece at a time."""
    if sys.stdin is None or sys.stdin.isatty():
        misused("- reads from a pipe, and standard input is a terminal: cat x.parquet | pyparq ... -")
    given = sys.stdin.buffer
    if _is_whole_file(given):
        return _named(os.fdopen(os.dup(given.fileno()), "rb"))
    import shutil
    import tempfile

    spooled = tempfile.TemporaryFile(prefix="pyparq-")  # noqa: SIM115  (the reader keeps it open)
    shutil.copyfileobj(given, spooled, CHUNK)
    spooled.seek(0)
    return _named(spooled)


def _is_whole_file(given: Any) -> bool:
    """Whether it is a file on disk (``< x.parquet``), from its first byte on."""
    try:
        return stat.S_ISREG(os.fstat(given.fileno()).st_mode) and given.tell() == 0
    except (OSError, ValueError):  # no descriptor, or a pipe
        return False


def _named(file: Any) -> Any:
    """Errors show this name."""
    file.raw.name = NAME
    return file


@contextmanager
def complete_output(path: str) -> Iterator[Any]:
    """Where to write a file: ``path``, or for ``-`` a temporary file that goes to standard output when it is done."""
    if path != PIPE:
        yield path
        return
    check_no_terminal()
    import shutil
    import tempfile

    with tempfile.TemporaryFile(prefix="pyparq-") as made:
        yield made
        made.seek(0)
        shutil.copyfileobj(made, sys.stdout.buffer, CHUNK)


def check_no_terminal() -> None:
    """Raise a usage error where bytes would go to a terminal."""
    if sys.stdout.isatty():
        misused("a terminal cannot show these bytes: send them to a file (> out.parquet) or to another command")
