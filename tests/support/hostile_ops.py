"""Everything that a user can do with a file, each as one call; and a process that does all of it with hostile files.

``python hostile_ops.py FOLDER NAME MEMORY SECONDS [OPERATION,...]`` writes the file of :data:`hostile_claims.CLAIMS`
and does all operations with it, or those. Each runs in a child of its own, which may take so many more bytes of memory
and so many seconds. What became of each is printed as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import islice
from pathlib import Path
from shutil import copy, rmtree
from typing import Any

if __name__ == "__main__":  # and not in a process of tests that looks for the names of operations
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["TZ"] = "America/New_York"

import pyarrow as pa

import pyparq
from pyparq import col
from pyparq.cli.app import run as command
from pyparq.limits import Limits

Operation = Callable[[Path, Path], Any]
"""Takes the file and an empty folder."""

FEW = Limits(max_memory=100 << 20)
BATCHES = 2000
"""Nobody waits for more: an endless stream in bounded memory is what such a file is."""


def column(path: Path) -> str:
    names = [field.name for field in pyparq.ParquetFile(path).schema_arrow]
    return names[0] if names else "n"


def rows(batches: Iterable[Any]) -> int:
    return sum(batch.num_rows for batch in islice(batches, BATCHES))


def executed(path: Path, out: Path) -> int:
    file = pyparq.ParquetFile(path)
    return file.execute(file.scan(filters=col(column(path)) > 3).plan()).num_rows


def exported(path: Path, out: Path) -> int:
    reader = pa.RecordBatchReader.from_stream(pyparq.scan(path))
    return rows(reader)


def in_place(path: Path, out: Path) -> str:
    return str(pyparq.add_indexes(copy(path, out / "copy.parquet")))


def verified(path: Path, out: Path, **options: Any) -> str:
    report = pyparq.verify(path, **options)
    return f"{len(report.findings)} findings"


def cli(*words: str) -> Operation:
    def run(path: Path, out: Path) -> str:
        given = {"PATH": str(path), "OUT": str(out / "out.parquet"), "COLUMN": column(path)}
        said, complained = StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(complained):
            code = command([given.get(word, word) for word in words])
        if "out of memory" in complained.getvalue() or code not in (0, 1, 2):
            raise RuntimeError(f"exit code {code}: {complained.getvalue()}")
        return f"exit code {code}"

    return run


OPERATIONS: dict[str, Operation] = {
    "read_table": lambda path, out: pyparq.read_table(path).num_rows,
    "read_table in 100 MB": lambda path, out: pyparq.read_table(path, limits=FEW).num_rows,
    "read_table of no columns": lambda path, out: pyparq.read_table(path, columns=[]).num_rows,
    "read_table, one thread": lambda path, out: pyparq.read_table(path, use_threads=False).num_rows,
    "equal": lambda path, out: pyparq.read_table(path, filters=col(column(path)) == 5).num_rows,
    "pages alone": lambda path, out: (
        pyparq.read_table(path, filters=col(column(path)) == 5, use_statistics=False, use_bloom_filters=False).num_rows
    ),
    "is_null": lambda path, out: pyparq.scan(path, filters=col(column(path)).is_null()).count(),
    "count": lambda path, out: pyparq.scan(path).count(),
    "count of some": lambda path, out: pyparq.scan(path, filters=col(column(path)) > 7).count(),
    "batches": lambda path, out: rows(pyparq.scan(path).iter_batches()),
    "batches of some": lambda path, out: rows(pyparq.scan(path, filters=col(column(path)) > 7).iter_batches()),
    "iter_batches": lambda path, out: rows(pyparq.ParquetFile(path).iter_batches()),
    "head": lambda path, out: pyparq.ParquetFile(path).head().num_rows,
    "head of some": lambda path, out: pyparq.ParquetFile(path).head(filters=col(column(path)) >= 100).num_rows,
    "take": lambda path, out: pyparq.ParquetFile(path).take([0]).num_rows,
    "read_rows": lambda path, out: pyparq.ParquetFile(path).read_rows(3, 9).num_rows,
    "read_row_group": lambda path, out: pyparq.ParquetFile(path).read_row_group(0).num_rows,
    "lookup": lambda path, out: pyparq.dataset(path).lookup(column(path), [5, 6]).num_rows,
    "execute": executed,
    "explain": lambda path, out: len(str(pyparq.scan(path, filters=col(column(path)) > 3).explain())),
    "to_pandas": lambda path, out: len(pyparq.read_table(path).to_pandas()),
    "arrow stream": exported,
    "dataset": lambda path, out: pyparq.dataset(path.parent).read().num_rows,
    "dataset of two": lambda path, out: pyparq.dataset([path, copy(path, out / "copy.parquet")]).read().num_rows,
    "dataset batches": lambda path, out: rows(pyparq.dataset(path.parent).iter_batches()),
    "dataset count": lambda path, out: pyparq.dataset(path.parent).count(),
    "metadata": lambda path, out: len(str(pyparq.read_metadata(path))),
    "verify": verified,
    "verify in 100 MB": lambda path, out: verified(path, out, limits=FEW),
    "verify, one thread": lambda path, out: verified(path, out, use_threads=False),
    "add_indexes": lambda path, out: pyparq.add_indexes(path, out / "out.parquet", bloom_filters=True, replace=True),
    "add_indexes in 100 MB": lambda path, out: pyparq.add_indexes(path, out / "out.parquet", replace=True, limits=FEW),
    "add_indexes in place": in_place,
    "edit_metadata": lambda path, out: pyparq.edit_metadata(path, out / "out.parquet", update={"a": "b"}),
    "merge": lambda path, out: pyparq.merge([path, path], out / "out.parquet"),
    "rewrite": lambda path, out: pyparq.rewrite(path, out / "out.parquet"),
    "rewrite sorted": lambda path, out: pyparq.rewrite(path, out / "out.parquet", sort_by=[column(path)]),
    "pyparq schema": cli("schema", "PATH"),
    "pyparq meta": cli("meta", "PATH"),
    "pyparq pages": cli("pages", "PATH"),
    "pyparq index": cli("index", "PATH"),
    "pyparq bloom": cli("bloom", "PATH"),
    "pyparq bloom of values": cli("bloom", "PATH", "COLUMN", "5"),
    "pyparq head": cli("head", "PATH"),
    "pyparq query": cli("query", "PATH", "--where", "n > 5"),
    "pyparq lookup": cli("lookup", "PATH", "COLUMN", "5"),
    "pyparq explain": cli("explain", "PATH", "--where", "n > 5"),
    "pyparq verify": cli("verify", "PATH"),
    "pyparq add-index": cli("add-index", "PATH", "-o", "OUT"),
    "pyparq edit-metadata": cli("edit-metadata", "PATH", "-o", "OUT", "--set", "a=b"),
    "pyparq merge": cli("merge", "PATH", "PATH", "-o", "OUT"),
    "pyparq rewrite": cli("rewrite", "PATH", "-o", "OUT"),
}


def outcome(operation: Operation, path: Path, out: Path) -> str:
    """``ok`` and what came back, or the name of the typed error."""
    try:
        return f"ok {operation(path, out)}"
    except pyparq.ParquetError as error:
        return f"{type(error).__name__}: {error}"
    except pa.ArrowInvalid as error:  # what an Arrow stream makes of it
        name, _, text = str(error).partition(": ")
        if not issubclass(getattr(pyparq, name, object), pyparq.ParquetError):
            raise
        return f"{name}: {text}"


def reserved() -> int:
    """Bytes of private memory that this process has asked for; Arrow asks for a gigabyte that it does not use."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:"))


def in_a_child(operation: Operation, path: Path, out: Path, memory: int, seconds: int) -> dict[str, Any]:
    """What became of it: how it ended, the most memory that the child had at a time, and the files it left."""
    came, went = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(seconds)
            most = reserved() + memory
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            warnings.simplefilter("ignore")
            sys.stderr = StringIO()
            try:
                said = outcome(operation, path, out)
            except BaseException as error:
                said = f"!{type(error).__name__}: {error}"
            os.write(went, said.encode(errors="replace")[:4000])
        finally:
            os._exit(0)
    os.close(went)
    with os.fdopen(came, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status, used = os.wait4(child, 0)
    left = sorted(found.name for found in out.iterdir())
    return {"said": said or f"!killed by signal {status}", "peak": used.ru_maxrss << 10, "left": left}


def warm_up(folder: Path) -> None:
    """Load all modules once, not in each child."""
    path = folder / "warm" / "f.parquet"
    path.parent.mkdir()
    pyparq.write_table({"n": [1, 5, 9, 200, 5]}, path)
    for operation in OPERATIONS.values():
        out = folder / "out"
        out.mkdir()
        said = outcome(operation, path, out)
        assert said.startswith("ok"), said
        rmtree(out)


def main(folder: Path, name: str, memory: int, seconds: int, part: str) -> None:
    from hostile_claims import CLAIMS

    path = folder / "in" / "f.parquet"
    path.parent.mkdir()
    path.write_bytes(CLAIMS[name]())
    warm_up(folder)
    found = {}
    for what, operation in OPERATIONS.items():
        if part and what not in part.split(","):
            continue
        out = folder / "out"
        out.mkdir()
        began = time.monotonic()
        found[what] = in_a_child(operation, path, out, memory, seconds)
        found[what]["seconds"] = round(time.monotonic() - began, 2)
        rmtree(out)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] if len(sys.argv) > 5 else "")
