"""Rows deleted, updated and replaced: ``pyparq delete``, ``update`` and ``upsert``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from pyparq.cli.options import FORCE, JSON, SOURCE, SOURCES, WHERE, all_of, decryption, misused, one_name, storage_for
from pyparq.cli.output import Busy, Grid, emit, print_json, title
from pyparq.cli.sources import dataset_of, sources_of

_PARQUET = (".parquet", ".parq", ".pq")

DRY_RUN = click.option("--dry-run", is_flag=True, help="Change nothing, and print what would be done.")
RETRIES = click.option(
    "--retries", type=click.IntRange(0), default=0, metavar="N",
    help="How often to begin anew where another program changes the same files, or to look at files that it adds.",
)  # fmt: skip
TABLE = click.option(
    "--table", type=click.Choice(["delta"]),
    help="SOURCE is the folder of a Delta Lake table: change it by a commit, with the package deltalake.",
)  # fmt: skip
KEYS = all_of(
    click.option(
        "--key", "-k", "wanted", multiple=True, metavar="COLUMN=VALUE", help="Rows with this value. May be repeated.",
    ),
    click.option(
        "--keys-file", "key_files", multiple=True, metavar="COLUMN=PATH",
        help="Rows with a value that this file lists: one a line, or the column of a Parquet file.",
    ),
)  # fmt: skip


@click.command("delete")
@SOURCES
@WHERE
@KEYS
@click.option("--keep-empty", is_flag=True, help="Keep files of which no row is left.")
@DRY_RUN
@RETRIES
@FORCE
@TABLE
@JSON
def delete_command(
    sources: tuple[str, ...], where: str | None, wanted: tuple[str, ...], key_files: tuple[str, ...], keep_empty: bool,
    dry_run: bool, retries: int, force: bool, table: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Delete rows of files, in place: those for which an SQL condition is true, or that have one of some keys.

    Row groups without such rows are copied as they are, and files without them stay untouched.

    \b
    pyparq delete events/ --where "user = 7" --dry-run
    pyparq delete events/ --keys-file user=forget.txt
    pyparq delete orders/ --table delta --key user=7
    """
    from pyparq.maintenance.row_changes.delete_update import delete

    given = _given(sources, table)
    asked = _asked(given, where, wanted, key_files)
    with Busy("deleting rows", share=True) as busy:
        report = delete(
            given, **asked, keep_empty=keep_empty, dry_run=dry_run, force=force, retries=retries, progress=_step(busy),
            decryption=decryption(), storage_options=storage_for(*sources),
        )  # fmt: skip
    _show(report, as_json)


@click.command("update")
@SOURCES
@WHERE
@KEYS
@click.option(
    "--set", "texts", multiple=True, metavar="SQL", required=True,
    help="Give a column a value: \"price = price * 2\", \"email = null\", \"name = 'it''s'\". May be repeated.",
)  # fmt: skip
@DRY_RUN
@RETRIES
@FORCE
@TABLE
@JSON
def update_command(
    sources: tuple[str, ...], where: str | None, wanted: tuple[str, ...], key_files: tuple[str, ...],
    texts: tuple[str, ...], dry_run: bool, retries: int, force: bool, table: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Give rows of files other values in some columns, in place. The rows are chosen as by the command "delete".

    \b
    pyparq update events/ --where "user = 7" --set "email = null" --set "status = 'gone'"
    """
    from pyparq.filters.sql_text import parse_set
    from pyparq.maintenance.row_changes.delete_update import update

    given = _given(sources, table)
    asked = _asked(given, where, wanted, key_files)
    tree, values = _dataset(given).tree, dict[Any, Any]()
    for text in texts:
        name, value = parse_set(text, tree)
        if name in values:
            misused(f"--set gives {name} two values")
        values[name] = value
    with Busy("changing rows", share=True) as busy:
        report = update(
            given, asked.get("filters"), values, keys=asked.get("keys"), dry_run=dry_run, force=force, retries=retries,
            progress=_step(busy), decryption=decryption(), storage_options=storage_for(*sources),
        )  # fmt: skip
    _show(report, as_json)


@click.command("upsert")
@SOURCE
@click.argument("data")
@click.option("--key", "-k", "key", multiple=True, required=True, metavar="COLUMN", help="The key. May be repeated.")
@DRY_RUN
@RETRIES
@FORCE
@TABLE
@JSON
def upsert_command(
    file: str, data: str, key: tuple[str, ...], dry_run: bool, retries: int, force: bool, table: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Put the rows of DATA, a Parquet file or folder, into SOURCE: in the place of rows with the same key, and behind
    all others where there are none.

    \b
    pyparq upsert events/ corrections.parquet --key id
    """
    from pyparq.maintenance.row_changes.upsert import upsert

    with Busy("changing rows", share=True) as busy:
        report = upsert(
            _given([file], table), dataset_of(data), list(key), dry_run=dry_run, force=force, retries=retries,
            progress=_step(busy), decryption=decryption(), storage_options=storage_for(file),
        )  # fmt: skip
    _show(report, as_json)


# ---- arguments -------------------------------------------------------------------------------------------------------


def _given(sources: Sequence[str], table: str | None) -> Any:
    if table is None:
        return sources[0] if len(sources) == 1 else sources_of(sources)
    if len(sources) != 1:
        misused("--table takes one source")
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError
    except ImportError:
        raise click.ClickException("--table delta needs the package deltalake: pip install 'pyparq[delta]'") from None
    try:
        return DeltaTable(sources[0], storage_options=storage_for(*sources))
    except TableNotFoundError as error:
        raise click.ClickException(f"{sources[0]} is no table of Delta Lake: {error}") from error


def _step(busy: Busy) -> Callable[[int, int], Any]:
    return busy.show_share


def _asked(given: Any, where: str | None, keys: Sequence[str], key_files: Sequence[str]) -> dict[str, Any]:
    """Which rows: a filter, or keys by column."""
    if (where is None) == (not keys and not key_files):
        misused("give either --where, or --key and --keys-file")
    if where is not None:
        return {"filters": where}
    found: dict[str, Any] = {}
    for pair in keys:
        name, text = _pair(pair, "--key")
        found.setdefault(name, []).extend(_values(given, name, [text]))
    for pair in key_files:
        name, path = _pair(pair, "--keys-file")
        if name in found:
            misused(f"the keys of {name} are given twice: give one --keys-file, or --key alone")
        found[name] = _listed(given, name, path)
    return {"keys": found}


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        misused(f"{option} {text!r} must be COLUMN=...")
    return name, value


def _values(given: Any, name: str, texts: Sequence[str]) -> list[Any]:
    """Texts as values of a column."""
    from pyparq.filters.conditions import probe_value
    from pyparq.format.schema_node import shown_field

    dataset = _dataset(given)
    tree = dataset.tree
    node = tree.find(one_name(name))
    field = shown_field(node, tree.root.children, dataset.schema.fields)
    return [probe_value(text, node, field) for text in texts]


def _dataset(given: Any) -> Any:
    if isinstance(given, (str, list, tuple)):
        return dataset_of(*([given] if isinstance(given, str) else given))
    from pyparq.datasets.dataset import Dataset

    return Dataset(given)


def _listed(given: Any, name: str, path: str) -> Any:
    """The keys of a file."""
    if path.lower().endswith(_PARQUET) or os.path.isdir(path):
        column = name.rpartition(".")[2]
        return dataset_of(path).read([column]).column(column)
    with open(path, encoding="utf-8") as file:
        return _values(given, name, [line.rstrip("\r\n") for line in file if line.strip()])


# ---- the report ------------------------------------------------------------------------------------------------------


def _show(report: Any, as_json: bool) -> None:
    if as_json:
        print_json(report.to_dict())
        return
    counts = ((report.rows_deleted, "deleted"), (report.rows_updated, "updated"), (report.rows_added, "added"))
    said = ", ".join(f"{number:,} {what}" for number, what in counts if number) or "no row changed"
    dry = " (nothing was written)" if report.dry_run else ""
    title(f"{report.source}: {said}; {len(report.files):,} of {report.files_total:,} files{dry}")
    grid = Grid("=file|deleted|updated|added|left|groups copied|made anew|removed|bytes copied|new")
    for file in report.files:
        grid.add(
            file.file, *(f"{number:,}" for number in (
                file.rows_deleted, file.rows_updated, file.rows_added, file.rows_left, file.row_groups_copied,
                file.row_groups_rewritten, file.row_groups_removed, file.bytes_copied, file.bytes_written,
            ))
        )  # fmt: skip
    if report.files:
        grid.show()
    for line in (*(f"{file.file}: {note}" for file in report.files for note in file.notes), *report.notes):
        emit(line)
