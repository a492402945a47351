"""The command group. It imports a command only when it runs, and turns every error into one line and an exit code."""

from __future__ import annotations

import errno
import os
import select
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TextIO, cast

import click

from pyparq._version import __version__
from pyparq.cli.missing_extra import missing_extra
from pyparq.cli.output import FOUND, one_line
from pyparq.errors import by_each, near

FAILED, MISUSED, INTERRUPTED = 1, 2, 130

_COMMANDS = {
    "schema": ("schema", "The columns with their Parquet types, annotations and Arrow types."),
    "meta": ("meta", "The footer: file facts, row groups, column chunks, statistics."),
    "pages": ("pages", "Every page: type, encoding, rows, offset, sizes, CRC."),
    "index": ("pages", "Page indexes: rows, nulls and bounds of each page."),
    "bloom": ("bloom", "Bloom filters: list them, or look up values in them."),
    "size": ("meta", "The bytes of each column, compressed and not."),
    "count": ("rows", "The number of rows, or of those for which an SQL condition is true."),
    "head": ("rows", "The first rows."),
    "tail": ("rows", "The last rows."),
    "sample": ("rows", "Some rows, chosen at random."),
    "cat": ("rows", "All rows, as lines of JSON or CSV."),
    "query": ("rows", "The rows for which an SQL condition is true."),
    "lookup": ("rows", "The rows with certain keys, out of many files."),
    "import": ("converting", "Make a Parquet file of CSV or JSON lines."),
    "convert": ("converting", "Turn a file into Parquet, CSV, JSON lines, Arrow or Feather."),
    "explain": ("explain", "What each index rules out for a query, and what is read."),
    "map": ("explain", "A picture of a file or folder, as an HTML page."),
    "diff": ("diff", "What differs between two files: schema, metadata, rows."),
    "advise": ("checks", "What another way of writing a file would change, measured."),
    "verify": ("checks", "Check checksums, statistics, indexes and filters against the data."),
    "add-index": ("upkeep", "Add Bloom filters and page indexes to files that exist."),
    "index-dataset": ("upkeep", "Make or update a catalog of keys beside a folder of files."),
    "edit-metadata": ("upkeep", "Change the key-value metadata of files."),
    "delete": ("changing", "Delete rows of files in place."),
    "update": ("changing", "Give rows of files other values in place."),
    "upsert": ("changing", "Replace rows with the same key, and add the others."),
    "merge": ("upkeep", "Join files of one schema without decoding them."),
    "split": ("upkeep", "Cut files into several: by rows, bytes, or the values of a column."),
    "rewrite": ("upkeep", "Write files again: join, sort, split, compress, encrypt."),
}


class LazyGroup(click.Group):
    """Imports the module of a command when the command runs; listing them imports nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"pyparq.cli.{_COMMANDS[cmd_name][0]}")
        return cast(click.Command, getattr(module, f"{cmd_name.replace('-', '_')}_command"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {args[0]!r}{_meant(args[0])}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _pipes():  # --help and --version print here
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipes(ctx):
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's, but errors are one line on stderr."""
        given = list(sys.argv[1:] if args is None else args)
        # Taken before parsing: it may stand anywhere, and usage errors too can show their traceback.
        arguments = [a for a in given if a != "--traceback"]
        wanted = len(arguments) < len(given) or os.environ.get("PYPARQ_TRACEBACK", "") not in ("", "0")
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                with _pipes():
                    result = super().main(arguments, prog_name, complete_var, False, **extra)
                    sys.stdout.flush()
        except BaseException as error:
            if not standalone_mode:
                raise
            if isinstance(error, ReaderLeft):
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (Python writes what is left to it at exit)
                sys.exit(error.code)
            if wanted:
                raise
            sys.exit(_report(error))
        if not standalone_mode:
            return result
        sys.exit(result if isinstance(result, int) else 0)


class ReaderLeft(Exception):
    """The reader of stdout has closed it (``| head``). This is no error. ``code``: what the command found until then,
    as its exit code."""

    def __init__(self, code: int) -> None:
        self.code = code


@contextmanager
def _pipes(ctx: click.Context | None = None) -> Iterator[None]:
    """Tell a broken stdout from other broken pipes, before click takes both for failures."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.EINVAL) and _is_broken(sys.stdout):  # (Windows says EINVAL)
            raise ReaderLeft(0 if ctx is None else ctx.meta.get(FOUND, 0)) from error
        raise


def _is_broken(out: TextIO) -> bool:
    try:
        poll = select.poll()
        poll.register(out.fileno(), select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except AttributeError:  # a system without poll
        return True
    except (OSError, ValueError):  # no file
        return False


def _report(error: BaseException) -> int:
    """Say what went wrong in one line; the exit code."""
    from pyparq.errors import ColumnNotFoundError, FilterError, OptionError, ParquetError

    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, (click.exceptions.Abort, KeyboardInterrupt)):
        click.echo("pyparq: interrupted", err=True)
        return INTERRUPTED
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return MISUSED
    if isinstance(error, click.UsageError):
        hint = f" (see '{error.ctx.command_path} --help')" if error.ctx is not None else ""
        return _complain(f"{_what(error)}{hint}", MISUSED)
    if isinstance(error, click.ClickException):
        return _complain(error.format_message(), error.exit_code)
    if isinstance(error, ParquetError):
        asked = isinstance(error, (ColumnNotFoundError, FilterError, OptionError))
        return _complain(str(error), MISUSED if asked else FAILED)
    if isinstance(error, OSError):
        return _os_error(error)
    if isinstance(error, ImportError) and (advice := missing_extra(error)) is not None:
        return _complain(advice, MISUSED)
    if isinstance(error, MemoryError):
        return _complain("out of memory", FAILED)
    if isinstance(error, Exception):
        what = f"{type(error).__name__}: {error}"
        return _complain(f"unexpected {what} (run with --traceback and please report it)", FAILED)
    raise error


_OTHER_NAMES = by_each({
    "ls info inspect footer metadata stats describe": "meta", "show print": "head", "dump": "cat", "layout": "map",
    "rowcount row-count wc": "count", "sizes du column-size": "size", "select sql filter grep": "query",
    "get find": "lookup", "compare": "diff", "validate check check-stats": "verify", "concat join append": "merge",
    "from-csv": "import", "csv to-csv to-json json tojson": "convert", "partition": "split", "optimize": "advise",
    "sort compact encrypt prune transform trans-compression": "rewrite", "column-index": "index",
    "bloom-filter": "bloom", "dictionary": "pages",
})  # fmt: skip
"""What people type who come from other tools."""


def _meant(name: str) -> str:
    """The command that a wrong name may mean."""
    if os.path.exists(name):
        return f": a command comes first, such as 'pyparq head {name}'"
    other = _OTHER_NAMES.get(name.lower())
    found = [other] if other in _COMMANDS else near(name, _COMMANDS)
    return f": did you mean {' or '.join(str(command) for command in found)}?" if found else ""


_OTHER_OPTIONS = by_each(
    {"--filter --filters": "--where", "--limit --rows --head -n": "-n --limit", "--select --fields": "--columns"}
)
"""Options of other tools, and of other commands of this one."""


def _option_meant(name: str, ctx: click.Context) -> str:
    """An option that the command has, in place of a wrong one."""
    options = {o.strip("-"): o for param in ctx.command.params for o in param.opts if o[0] == "-"}
    wanted = _OTHER_OPTIONS.get(name, name).split()
    found = [o for o in wanted if o in options.values()] or [options[n] for n in near(name.strip("-"), options, 0.7)]
    if not found and wanted[0] in ("--where", "-n"):
        first, second = ("query", "count") if wanted[0] == "--where" else ("head", "tail")
        return f": 'pyparq {first}' and 'pyparq {second}' have {wanted[0]}"
    return f": did you mean {' or '.join(found)}?" if found else ""


def _os_error(error: OSError) -> int:
    if isinstance(error, FileNotFoundError) and not error.strerror:  # fsspec's say the path alone
        return _complain(f"No such file: {error}", FAILED)
    reason = error.strerror or str(error) or type(error).__name__
    return _complain(f"{reason}: {error.filename}" if error.filename else reason, FAILED)


def _what(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        return f"No such option {error.option_name!r}{_option_meant(error.option_name, error.ctx)}"
    said = error.format_message().rstrip(".")
    if said.startswith("Got unexpected extra argument") and ".parquet" in said:
        writes = error.ctx is not None and any("-o" in param.opts for param in error.ctx.command.params)
        said = "this command takes one SOURCE. Put a pattern such as 'logs/*.parquet' in quotes"
        return f"{said}. Give what it writes with -o" if writes else said
    return said


def _complain(message: str, code: int) -> int:
    with suppress(BrokenPipeError):
        click.echo(f"pyparq: error: {one_line(message)}", err=True)
    return code


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    click.echo(f"pyparq: warning: {one_line(str(message))}", err=True)


def _show_versions(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        from pyparq.versions import show_versions

        show_versions()
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 a fault in the file or its data, 2 a mistake in the command. "
    "--traceback (or PYPARQ_TRACEBACK=1) shows where an error occurred. On a terminal, tables are coloured and fitted "
    "to the width. In a pipe they are plain and complete. Use --json in scripts.",
)
@click.version_option(__version__, prog_name="pyparq", message="%(prog)s %(version)s")
@click.option(
    "--versions",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_versions,
    help="Show versions and where each codec comes from.",
)
@click.option("--traceback", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def app() -> None:
    """Inspect and query Parquet files."""


def run(argv: list[str]) -> int:
    """Run the command line; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may hold letters that the locale has not
    try:
        app.main(argv, prog_name="pyparq")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED
    return 0
