"""Shared by the commands: options, opening a file, choosing columns and row groups, JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from pyparq.cli import completion
from pyparq.cli.pipes import PIPE, source_of
from pyparq.cli.storage import STORAGE, storage_for
from pyparq.cli.text import visible

F = TypeVar("F", bound=Callable[..., Any])

PRETTY = 1_000_000
"""Characters of JSON up to which it is indented."""

KEYS = "PYPARQ_KEYS"
"""Environment variable: a key file's path, or its JSON."""


def FILE(command: F) -> F:
    """The file to look into, and how to decrypt it. Keys never stand on the command line, where others see them."""
    return click.argument("file", metavar="FILE", shell_complete=completion.files)(READING(command))


def SOURCE(command: F) -> F:
    """A file, a folder or a glob in quotes, and how to decrypt its files."""
    return click.argument("file", metavar="SOURCE", shell_complete=completion.files)(READING(command))


def SOURCES(command: F) -> F:
    """Files, folders and globs, and how to decrypt them."""
    argument = click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, shell_complete=completion.files)
    return argument(READING(command))


def READING(command: F) -> F:
    """How to decrypt files, and how to reach URLs."""
    command = click.option(
        "--keys", metavar="PATH", shell_complete=completion.files, expose_value=False, callback=_remember("keys"),
        help="JSON file with the keys of an encrypted file (see docs/encryption.md). "
        f"Or set {KEYS} to its path or contents.",
    )(command)  # fmt: skip
    command = click.option(
        "--aad-prefix", metavar="TEXT", expose_value=False, callback=_remember("aad_prefix"),
        help="The AAD prefix that the encrypted file must have.",
    )(command)  # fmt: skip
    return STORAGE(command)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keep an option's value for :func:`opened`."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"pyparq.{name}"] = value

    return callback


def decryption() -> Any:
    """Decryption properties from the options of the running command and the environment; ``None`` without any."""
    given = click.get_current_context().meta
    text, path, prefix = os.environ.get(KEYS), given.get("pyparq.keys"), given.get("pyparq.aad_prefix")
    if not text and path is None and prefix is None:
        return None
    from pyparq.encryption.keyfile import KINDS, decryption_from_json, load_keys
    from pyparq.errors import OptionError

    if path is not None:
        if not os.path.exists(path) and path.lstrip().startswith(("{", "[", *KINDS)):
            raise OptionError(
                f"--keys takes the path of a key file, because others can see keys on the command line. Or set {KEYS}"
            )
        return load_keys(path, aad_prefix=prefix)
    if text and text.lstrip().startswith("{"):
        return decryption_from_json(text, KEYS, aad_prefix=prefix)
    if text:
        if not os.path.exists(text):  # not shown: it may be a key
            raise OptionError(f"{KEYS} must be the path of a key file or a JSON object in braces")
        return load_keys(text, aad_prefix=prefix)
    return decryption_from_json("{}", "--aad-prefix", aad_prefix=prefix)


IGNORE_CASE = click.option(
    "--ignore-case", is_flag=True, expose_value=False, callback=_remember("ignore_case"),
    help="Find columns without regard to case. Id in one file and id in another are one column.",
)  # fmt: skip


def _reading() -> dict[str, Any]:
    """Options for opening, from those of the running command."""
    ignore_case = click.get_current_context().meta.get("pyparq.ignore_case", False)
    return {"decryption": decryption(), "case_sensitive": not ignore_case}


JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
ALL = click.option("--all", "everything", is_flag=True, help="Show all lines, even on a terminal.")
ROW_GROUP = click.option(
    "--row-group", "-g", "row_groups", type=click.IntRange(min=0), multiple=True, metavar="N",
    help="Only row group N (counted from 0). May be repeated.",
)  # fmt: skip


def _names(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> list[Any]:
    """Names of all occurrences of an option, each a comma-separated list."""
    from pyparq.cli.names import list_of_names

    found = [name for text in given for name in list_of_names(text)]
    if "" in found:
        raise click.BadParameter("an empty name in the list", ctx=ctx, param=param)
    return found


COLUMNS = click.option(
    "--columns", "--column", "-c", "columns", multiple=True, callback=_names, metavar="NAMES",
    shell_complete=completion.columns,
    help="Only these columns: names or dotted paths, separated by commas. "
    'Quotes keep a dot in a name: a."b.c". May be repeated.',
)  # fmt: skip
WHERE = click.option("--where", "-w", metavar="SQL", help="Only rows for which this SQL condition is true.")


@contextmanager
def opened(file: str) -> Iterator[Any]:
    """The :class:`pyparq.ParquetFile` at a path or URL."""
    from pyparq.read.file import ParquetFile

    with plain_errors_of(file):
        parquet = ParquetFile(source_of(file), storage_options=storage_for(file), **_reading())
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
def opened_any(file: str) -> Iterator[Any]:
    """The :class:`pyparq.ParquetFile` at a path or URL, or the :class:`pyparq.Dataset` of a folder or glob."""
    from pyparq.datasets.patterns import names_many

    if file == PIPE or not names_many(file):
        with opened(file) as parquet:
            yield parquet
        return
    with dataset_of(file) as dataset:
        yield dataset


@contextmanager
def opened_all(sources: Sequence[str]) -> Iterator[Any]:
    """As :func:`opened_any`, of one source or of several, which are one table then."""
    with opened_any(sources[0]) if len(sources) == 1 else dataset_of(*sources) as parquet:
        yield parquet


@contextmanager
def dataset_of(*sources: str) -> Iterator[Any]:
    """The :class:`pyparq.Dataset` of folders, globs and files."""
    from pyparq.datasets.dataset import Dataset

    with plain_errors_of(next((source for source in sources if "://" in source), sources[0])):
        given = [source_of(source) for source in sources]
        dataset = Dataset(given if len(given) > 1 else given[0], storage_options=storage_for(*sources), **_reading())
    if not dataset.files:
        raise click.ClickException(f"the folder has no data files: {', '.join(sources)}")
    yield dataset


def is_dataset(parquet: Any) -> bool:
    """Whether :func:`opened_any` gave a dataset."""
    from pyparq.datasets.dataset import Dataset

    return isinstance(parquet, Dataset)


def tree_of(parquet: Any) -> Any:
    """The tree of Parquet columns of a file or a dataset."""
    return parquet.tree if is_dataset(parquet) else parquet.schema


def rows_in(parquet: Any) -> int:
    """Number of rows of a file or a dataset, from footers."""
    return int(parquet.count() if is_dataset(parquet) else parquet.metadata.num_rows)


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
        return list(file.schema.leaves)
    found = {leaf.column: leaf for name in wanted for leaf in file.schema.find(name).leaves()}
    return list(found.values())


def print_json(document: Any) -> None:
    """A document on stdout; indented unless it is long (which takes ten times as long)."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    if len(text) < PRETTY:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(text + "\n")


def report_document(report: Any) -> dict[str, Any]:
    """Files that were written, for JSON."""
    files = [{"path": file.path, "num_rows": file.num_rows, "bytes": file.num_bytes} for file in report.files]
    return {"path": report.path, "num_rows": report.num_rows, "files": files, "replaced": list(report.replaced)}


def number(value: int | None) -> str:
    """Digits in groups; ``-`` for what is not known."""
    return "-" if value is None or value < 0 else f"{value:,}"


def ratio(compressed: int, uncompressed: int) -> str:
    """How many times smaller the stored bytes are."""
    return f"{uncompressed / compressed:.1f}" if compressed > 0 else "-"


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """Lines of ``name  value``, aligned."""
    from pyparq.cli.table import emit, folded, on_terminal, terminal_width

    longest = max((len(name) for name, _ in pairs), default=0)
    room = terminal_width() - longest - 4 if on_terminal() else 1 << 30
    for name, value in pairs:
        for n, line in enumerate(folded(visible(value), room)):
            emit(f"  {('' if n else name).ljust(longest)}  {line}")


def file_of(parquet: Any) -> Any:
    """What :class:`pyparq.ParquetFile` stands on: chunks, places and bytes."""
    from pyparq.read.file import file_of as opened

    return opened(parquet)
