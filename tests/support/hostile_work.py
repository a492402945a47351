"""What works on a whole file, done with a damaged one: each may fail with a typed error, but what it makes must be what
reading gives, and it leaves nothing behind where it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

FAILED = "error"
MOST = 100_000
"""Rows that are compared."""


def work(pyparq: Any, data: bytes, folder: Path, wrong: type[Exception]) -> str:
    """Raises ``wrong`` for a broken promise, and whatever else is raised that should not be. The outcome otherwise."""
    path, out = folder / "damaged.parquet", folder / "out.parquet"
    path.write_bytes(data)

    def done(make: Callable[[], Any]) -> Any:
        try:
            return make()
        except pyparq.ParquetError as error:
            str(error)
            return FAILED

    def made(what: str, make: Callable[[], Any]) -> None:
        """A new file has the rows of the damaged one."""
        ended = done(make)
        if ended is FAILED:
            if out.exists() or path.read_bytes() != data or len(list(folder.iterdir())) != 1:
                raise wrong(f"{what} failed and left {sorted(p.name for p in folder.iterdir())}")
            return
        found = done(lambda: shown(pyparq.read_table(out))) if out.exists() else whole
        if whole is not FAILED and found != whole:
            raise wrong(f"{what} made a file of other data")
        out.unlink(missing_ok=True)

    whole = done(lambda: shown(pyparq.read_table(path)))
    streamed = done(lambda: shown(pyparq.Table.from_batches(pyparq.scan(path).iter_batches(50))))
    if streamed != whole and FAILED not in (streamed, whole):
        raise wrong("batches give other data than read_table")
    report = pyparq.verify(path)
    str(report)
    if report.ok and whole is FAILED:
        done_again = explained(pyparq, path)
        if done_again not in ("LimitError", "UnsupportedError", "SchemaError"):
            raise wrong(f"verify finds nothing, but reading raises {done_again}")
    made("add_indexes", lambda: pyparq.add_indexes(path, out, bloom_filters=True))
    made("add_indexes anew", lambda: pyparq.add_indexes(path, out, bloom_filters=True, replace=True))
    made("edit_metadata", lambda: pyparq.edit_metadata(path, out, update={"a": "b"}))
    made("merge", lambda: pyparq.merge([path], out))
    made("rewrite", lambda: pyparq.rewrite(path, out))
    path.unlink()
    return "read" if whole is not FAILED else "refused"


def explained(pyparq: Any, path: Path) -> str:
    try:
        pyparq.read_table(path)
    except pyparq.ParquetError as error:
        return type(error).__name__
    return "nothing the second time"


def shown(table: Any) -> str:
    """The rows, as long as these are not too many, however they are cut."""
    return f"{table.num_rows} rows" if table.num_rows > MOST else repr(table.to_pydict())
