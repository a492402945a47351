"""``--spark``: commands over many files as Spark jobs."""

from __future__ import annotations

from typing import Any

from pyparq.cli.options import decryption
from pyparq.cli.output import Grid, count, emit, print_json, say, title
from pyparq.cli.progress import Busy
from pyparq.errors import OptionError


def run_on_spark(work: str, sources: Any, target: Any, master: str | None, as_json: bool, **options: Any) -> int:
    """Run ``pyparq.spark``'s function ``work`` and show its report; the exit code, 1 where a file failed."""
    if decryption() is not None:
        raise OptionError('keys are not sent to Spark. Use pyparq.spark with decryption="module:function" instead')
    import pyparq.spark
    from pyparq.spark.session import local_session

    spark = local_session("pyparq", master)
    spark.sparkContext.setLogLevel("ERROR")
    with Busy("working on Spark") as busy:
        arguments = {} if target is None else {"target": target}
        frame = getattr(pyparq.spark, work)(spark, sources, **arguments, **options, progress=busy.show_share)
    rows = [row.asDict() for row in frame.collect()]
    spark.stop()
    if as_json:
        print_json({"files": rows})
    else:
        _show(rows)
    return 0 if all(row["ok"] for row in rows) else 1


def _show(rows: list[dict[str, Any]]) -> None:
    failed = [row for row in rows if not row["ok"]]
    title(f"{count(len(rows), 'file')}, {len(failed) or 'none'} with errors")
    lines = [{**row, "seconds": f"{row['seconds']:.2f}"} for row in rows]
    Grid("=file:path|rows|?bytes copied:bytes_copied|?bytes new:bytes_written|?>seconds|added", lines).show()
    if failed:
        emit()
    for row in failed:
        say(f"{row['path']}: {row['error']}")
