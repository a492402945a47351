"""``--spark``: commands over many files as Spark jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pyparq.cli.common import decryption, print_json
from pyparq.cli.progress import Busy
from pyparq.cli.table import Grid, emit, headings, say, show, title
from pyparq.cli.text import count, visible
from pyparq.errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])


def SPARK(command: F) -> F:
    """Run on Spark: on this machine, or on a cluster."""
    command = click.option(
        "--master", metavar="URL", help="Run on the Spark cluster at this address. By default --spark uses local cores."
    )(command)
    return click.option("--spark", "on_spark", is_flag=True, help="Run as a Spark job, a task for some files each.")(
        command
    )


def run(work: str, sources: Any, target: Any, master: str | None, as_json: bool, **options: Any) -> int:
    """Run ``pyparq.spark``'s function ``work`` and show its report; the exit code, 1 where a file failed."""
    if decryption() is not None:
        raise OptionError('keys are not sent to Spark. Use pyparq.spark with decryption="module:function" instead')
    import pyparq.spark
    from pyparq.spark.session import local_session

    spark = local_session("pyparq", master)
    spark.sparkContext.setLogLevel("ERROR")
    with Busy("working on Spark") as busy:
        arguments = {} if target is None else {"target": target}
        frame = getattr(pyparq.spark, work)(
            spark, sources, **arguments, **options,
            progress=lambda done, total: busy.show(done / total if total else 0.0, 0),
        )  # fmt: skip
    rows = [row.asDict() for row in frame.collect()]
    spark.stop()
    if as_json:
        print_json({"files": rows})
    else:
        _print(rows)
    return 0 if all(row["ok"] for row in rows) else 1


def _print(rows: list[dict[str, Any]]) -> None:
    bad = [row for row in rows if not row["ok"]]
    total = {name: sum(row[name] or 0 for row in rows) for name in ("rows", "bytes_copied", "bytes_written")}
    title(f"{count(len(rows), 'file')}, {len(bad) or 'none'} with errors")
    grid = Grid(headings("=file|>rows|?>bytes copied|?>bytes new|?>seconds|added"))
    for row in rows:
        numbers = ["-" if row[name] is None else f"{row[name]:,}" for name in total]
        grid.add(visible(row["path"]), *numbers, f"{row['seconds']:.2f}", visible(row["added"] or "-"))
    show(grid)
    if bad:
        emit()
        for row in bad:
            say(f"{visible(row['path'])}: {visible(row['error'])}")
