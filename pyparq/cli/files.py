"""What ``pyparq meta`` shows of a folder or a glob: its files, and their rows and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from pyparq.cli.common import facts, print_json
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, show, title
from pyparq.cli.text import count, visible
from pyparq.datasets.dataset import files_of


def show_files(dataset: Any, columns: Sequence[Any], row_groups: Sequence[int], as_json: bool, limit: int) -> None:
    """The files of ``dataset``, at most ``limit`` of them, and their totals."""
    if columns or row_groups:
        raise click.UsageError("--columns and --row-group are for a single file", ctx=click.get_current_context())
    with Busy("reading footers"):
        opened = files_of(dataset).open_all(range(len(dataset.files)))
    lines = [
        {
            "file": file.name,
            "rows": sum(map(file.num_rows_of, range(file.num_row_groups))),
            "row_groups": file.num_row_groups,
            "bytes": file.fetcher.source.size,
            "created_by": file.created_by,
        }
        for _, file in opened
    ]
    writers = Counter(line["created_by"] for line in lines)
    if as_json:
        names = [field.name for field in dataset.partitions.fields]
        print_json({"source": dataset.root, "partitions": names, "files": lines})
        return
    _print(dataset, lines, writers, limit)


def _print(dataset: Any, lines: list[dict[str, Any]], writers: Counter[Any], limit: int) -> None:
    title(visible(dataset.root))
    partitions = [f"{field.name} ({field.type})" for field in dataset.partitions.fields]
    rows, groups, size = (sum(line[name] for line in lines) for name in ("rows", "row_groups", "bytes"))
    facts(
        [
            ("files", f"{len(lines):,}"),
            ("partitions", ", ".join(partitions) or "(none)"),
            ("rows", f"{rows:,} in {count(groups, 'row group')}"),
            ("size", f"{size:,} bytes"),
            *(("written by", f"{writer or '(unknown)'}: {count(n, 'file')}") for writer, n in writers.most_common(5)),
        ]
    )
    emit()
    title("files")
    grid = Grid(headings(">#|=file|>rows|>row groups|>bytes"))
    for k, line in enumerate(lines[:limit]):
        numbers = (f"{line[name]:,}" for name in ("rows", "row_groups", "bytes"))
        grid.add(str(k), visible(_below(dataset.root, line["file"])), *numbers)
    show(grid)
    if len(lines) > limit:
        emit(f"  … {count(len(lines) - limit, 'more file')}: use --all")


def _below(root: str, name: str) -> str:
    """A file's name without the folder that all files share."""
    return name[len(root) :].lstrip("/") if name.startswith(root.rstrip("/") + "/") else name
