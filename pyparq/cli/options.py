"""Options and arguments that commands share, and what their text means: names of columns, sizes, orders, keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from pyparq.column_names import ColumnName
from pyparq.errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])

KEYS = "PYPARQ_KEYS"
"""Environment variable: a key file's path, or its JSON."""
STORAGE_OPTIONS = "PYPARQ_STORAGE"
"""Environment variable: options for the file system of a URL, as a JSON object."""


def misused(message: str) -> NoReturn:
    """Raise the error for a command that makes no sense."""
    raise click.UsageError(message, ctx=click.get_current_context())


# ---- what the shell offers after TAB


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes names of files by itself."""
    return [CompletionItem(incomplete, type="file")]


def complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes names of folders by itself."""
    return [CompletionItem(incomplete, type="dir")]


def complete_columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The columns of the source on the command line, also behind the last comma of a list."""
    before, comma, begin = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in _columns_of(ctx) if name.startswith(begin)]


def _columns_of(ctx: click.Context) -> list[str]:
    """Names and dotted paths; nothing where the source cannot be read: an error would be in the way of typing."""
    # Behind -c, click has not sorted the words into arguments yet.
    sources = ctx.params.get("sources") or (ctx.params.get("file"), *ctx.args)
    source = next((str(source) for source in sources if source and source != "-"), None)
    if source is None or "://" in source:
        return []
    from pyparq.datasets.dataset import Dataset

    try:
        root = Dataset(source).tree.root
    except Exception:
        return []
    paths = (path for node in root.children for path in (node.path, *(leaf.path for leaf in node.leaves())))
    return list(dict.fromkeys(map(_typed, paths)))


def _typed(path: Any) -> str:
    """A path as :func:`one_name` reads it: names with dots, commas or quotes in quotes."""
    return ".".join('"' + n.replace('"', '""') + '"' if any(c in n for c in '.,"') else n for n in path)


# ---- names of columns: ``a``, ``a.b``, ``"a, b"``, and ``a."b.c"`` for the exact path

_QUOTED = r'"(?:[^"]|"")*"'
_NAME = rf'(?:{_QUOTED}|[^",.]+)'
_PATH = re.compile(rf"\s*({_NAME}(?:\.{_NAME})+)\s*(?:,|$)")
_FIELD = re.compile(rf"\s*({_QUOTED})?([^,]*)(?:,|$)")


def one_name(text: str) -> ColumnName:
    """One column, whatever commas its name holds."""
    if re.fullmatch(_QUOTED, text):
        return _plain(text)
    path = _PATH.fullmatch(text)
    return _parts(path[1]) if path is not None and '"' in text else text


def list_of_names(text: str) -> list[ColumnName]:
    """Names separated by commas, quoted as in CSV where they hold commas. ``""`` stands for a missing one."""
    found: list[ColumnName] = []
    at = 0
    while True:
        item = _PATH.match(text, at)
        if item is not None and '"' in item[1]:
            found.append(_parts(item[1]))
        else:
            item = _FIELD.match(text, at)
            assert item is not None, "anything is a field"
            found.append((_plain(item[1] or "") + item[2]).strip())
        at = item.end()
        if not item[0].endswith(","):
            return found


def _parts(path: str) -> tuple[str, ...]:
    names = [match[0] for match in re.finditer(_NAME, path)]
    return tuple(_plain(name) if name.startswith('"') else name.strip() for name in names)


def _plain(quoted: str) -> str:
    return quoted[1:-1].replace('""', '"')


def _names(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> list[Any]:
    """Names of all occurrences of an option, each a comma-separated list."""
    found = [name for text in given for name in list_of_names(text)]
    if "" in found:
        raise click.BadParameter("an empty name in the list", ctx=ctx, param=param)
    return found


def _sort_order(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> list[Any]:
    """``name`` or ``name:desc``."""
    found = []
    for text in given:
        name, colon, direction = text.rpartition(":")
        known = bool(colon) and direction in ("asc", "desc")
        found.append(
            (one_name(name if known else text), "descending" if direction == "desc" and known else "ascending")
        )
    return found


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes: ``1000000``, ``256M`` or ``1G``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "")
        if not number.isdecimal() or unit not in _UNITS:
            option = param.opts[0] if param is not None else "it"
            raise OptionError(f"{option} must be a number of bytes such as 1000000, 256M or 1G, not {text!r}")
        return int(number) * _UNITS[unit]


# ---- options


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keep an option's value for the functions below, which ask the running command."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[f"pyparq.{name}"] = value

    return callback


def all_of(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


STORAGE = click.option(
    "--storage", metavar="KEY=VALUE", multiple=True, expose_value=False, callback=_remember("storage"),
    help="An option for the file system of a URL, such as anon=true or client_kwargs.region_name=eu-west-1. May be "
    f"repeated. Set {STORAGE_OPTIONS} to a JSON object for options that others must not see.",
)  # fmt: skip
READING = all_of(
    STORAGE,
    click.option(
        "--aad-prefix", metavar="TEXT", expose_value=False, callback=_remember("aad_prefix"),
        help="The AAD prefix that the encrypted file must have.",
    ),
    click.option(
        "--keys", metavar="PATH", shell_complete=complete_files, expose_value=False, callback=_remember("keys"),
        help="JSON file with the keys of an encrypted file (see docs/encryption.md). "
        f"Or set {KEYS} to its path or contents.",
    ),
)  # fmt: skip
"""How to decrypt files, and how to reach URLs. Keys never stand on the command line, where others see them."""
FILE = all_of(click.argument("file", metavar="FILE", shell_complete=complete_files), READING)
SOURCE = all_of(click.argument("file", metavar="SOURCE", shell_complete=complete_files), READING)
"""A file, a folder or a glob in quotes."""
ARGUMENTS = click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, shell_complete=complete_files)
SOURCES = all_of(ARGUMENTS, READING)
"""Files, folders and globs."""

IGNORE_CASE = click.option(
    "--ignore-case", is_flag=True, expose_value=False, callback=_remember("ignore_case"),
    help="Find columns without regard to case. Id in one file and id in another are one column.",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
ALL = click.option("--all", "everything", is_flag=True, help="Show all lines, even on a terminal.")
ROW_GROUP = click.option(
    "--row-group", "-g", "row_groups", type=click.IntRange(min=0), multiple=True, metavar="N",
    help="Only row group N (counted from 0). May be repeated.",
)  # fmt: skip
COLUMNS = click.option(
    "--columns", "--column", "-c", "columns", multiple=True, callback=_names, metavar="NAMES",
    shell_complete=complete_columns,
    help="Only these columns: names or dotted paths, separated by commas. "
    'Quotes keep a dot in a name: a."b.c". May be repeated.',
)  # fmt: skip
WHERE = click.option("--where", "-w", metavar="SQL", help="Only rows for which this SQL condition is true.")
FORCE = click.option("--force", is_flag=True, help="Write even into the folder of a Delta Lake, Iceberg or Hudi table.")
SPARK = all_of(
    click.option("--spark", "on_spark", is_flag=True, help="Run as a Spark job, a task for some files each."),
    click.option(
        "--master", metavar="URL", help="Run on the Spark cluster at this address. By default --spark uses local cores."
    ),
)
WRITING = all_of(
    click.option(
        "--sort-by", multiple=True, metavar="COLUMN[:desc]", callback=_sort_order, help="Sort all rows by this. May be "
        "repeated.",
    ),
    click.option("--compression", metavar="CODEC", help="As compression= in Python: zstd, none and others."),
    click.option(
        "--bloom", "bloom_filters", multiple=True, metavar="COLUMN",
        callback=lambda ctx, param, given: [one_name(text) for text in given],
        help="Write Bloom filters. May be repeated.",
    ),
    click.option(
        "--row-group-rows", "row_group_size", type=click.IntRange(min=1), metavar="N", help="Rows per row group."
    ),
)  # fmt: skip
"""How a Parquet file is written. The parameters are options of :class:`pyparq.WriteOptions`."""


def memory(what: str) -> Callable[[F], F]:
    """``--memory``; ``what`` it is for."""
    return click.option("--memory", default="1G", metavar="SIZE", type=Size(), help=f"{what}, approximately (1G).")


# ---- what the options of the running command say


def decryption() -> Any:
    """Decryption properties from the options of the running command and the environment; ``None`` without any."""
    given = click.get_current_context().meta
    text, path, prefix = os.environ.get(KEYS), given.get("pyparq.keys"), given.get("pyparq.aad_prefix")
    if not text and path is None and prefix is None:
        return None
    from pyparq.encryption.keyfile import KINDS, decryption_from_json, load_keys

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


def opening() -> dict[str, Any]:
    """Options for opening, from those of the running command."""
    ignore_case = click.get_current_context().meta.get("pyparq.ignore_case", False)
    return {"decryption": decryption(), "case_sensitive": not ignore_case}


def storage_for(*sources: Any) -> dict[str, Any] | None:
    """Options for a file system, if any of the sources is a URL; ``None`` without options."""
    if not any(isinstance(source, str) and "://" in source for source in sources):
        return None
    options = _storage_of_environment()
    for text in click.get_current_context().meta.get("pyparq.storage", ()):
        _set_storage(options, text)
    return options or None


def _storage_of_environment() -> dict[str, Any]:
    text = os.environ.get(STORAGE_OPTIONS, "").strip()
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):  # not shown: it may hold a secret
        raise OptionError(f'{STORAGE_OPTIONS} must be a JSON object such as {{"anon": true}}')
    return found


def _set_storage(options: dict[str, Any], text: str) -> None:
    """``a.b=c`` as ``{"a": {"b": "c"}}``. A value that is JSON means what it says in JSON; any other is text."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise OptionError("--storage must be KEY=VALUE, such as anon=true")
    *outer, last = key.split(".")
    for name in outer:
        options = options.setdefault(name, {})
        if not isinstance(options, dict):
            raise OptionError(f"--storage {key}: {name} has a value already")
    try:
        options[last] = json.loads(value)
    except ValueError:
        options[last] = value
