"""What a user can do with a file, each as one call. ``outcome`` says how it ended."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

import pyparq
from pyparq import col

Operation = Callable[[str, str], Any]


def _name(path: str) -> str:
    names = (
        [leaf.dotted for leaf in pyparq.read_schema(path).leaves]
        if False
        else [f.name for f in pyparq.ParquetFile(path).schema_arrow]
    )
    return names[0] if names else "n"


def _file(path: str) -> Any:
    return pyparq.ParquetFile(path)


def _batches(path: str, out: str) -> str:
    rows = 0
    for k, batch in enumerate(pyparq.scan(path).batches(65536)):
        rows += batch.num_rows
        if k > 2000:
            return f"{rows} rows and more"
    return f"{rows} rows"


def _iter_batches(path: str, out: str) -> str:
    rows = 0
    for k, batch in enumerate(_file(path).iter_batches(65536)):
        rows += batch.num_rows
        if k > 2000:
            return f"{rows} rows and more"
    return f"{rows} rows"


def _copied(path: str, out: str) -> str:
    target = os.path.join(out, "copy.parquet")
    shutil.copy(path, target)
    return target


def _cli(*words: str) -> Operation:
    def run(path: str, out: str) -> str:
        from contextlib import redirect_stderr, redirect_stdout
        from io import StringIO

        from pyparq.cli.app import run as command

        given = [path if w == "PATH" else os.path.join(out, "o.parquet") if w == "OUT" else w for w in words]
        said, complained = StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(complained):
            code = command(given)
        return (
            f"exit {code}: {len(said.getvalue())} {(said.getvalue() + complained.getvalue()).strip().splitlines()[-1:]}"
        )

    return run


def _verify(path: str, out: str, **o: Any) -> str:
    report = pyparq.verify(path, **o)
    return f"{len(report.findings)} findings: " + "; ".join(map(str, report.findings[:2]))


OPERATIONS: dict[str, Operation] = {
    "read_table": lambda p, o: pyparq.read_table(p).num_rows,
    "read_table 100 MB": lambda p, o: pyparq.read_table(p, limits=pyparq.Limits(max_memory=100 << 20)).num_rows,
    "read_table no columns": lambda p, o: pyparq.read_table(p, columns=[]).num_rows,
    "filter": lambda p, o: pyparq.read_table(p, filters=col(_name(p)) == 5).num_rows,
    "filter is_null": lambda p, o: pyparq.scan(p, filters=col(_name(p)).is_null()).count(),
    "count": lambda p, o: pyparq.scan(p).count(),
    "count filter": lambda p, o: pyparq.scan(p, filters=col(_name(p)) > 7).count(),
    "batches": _batches,
    "iter_batches": _iter_batches,
    "head": lambda p, o: _file(p).head(10).num_rows,
    "head filter": lambda p, o: _file(p).head(10, filters=col(_name(p)) >= 100).num_rows,
    "take": lambda p, o: _file(p).take([0, 5, 100]).num_rows,
    "read_rows": lambda p, o: _file(p).read_rows(3, 9).num_rows,
    "lookup": lambda p, o: pyparq.dataset(p).lookup(_name(p), [5, 6]).num_rows,
    "plan, execute": lambda p, o: (lambda f: f.execute(f.scan(filters=col(_name(p)) > 3).plan()).num_rows)(_file(p)),
    "explain": lambda p, o: len(str(pyparq.scan(p, filters=col(_name(p)) > 3).explain())),
    "to_pandas": lambda p, o: len(pyparq.read_table(p).to_pandas()),
    "scan to pyarrow": lambda p, o: __import__("pyarrow").table(pyparq.scan(p)).num_rows,
    "dataset": lambda p, o: pyparq.dataset(os.path.dirname(p)).read().num_rows,
    "dataset batches": lambda p, o: sum(
        b.num_rows for b, _ in zip(pyparq.dataset(os.path.dirname(p)).batches(), range(2000))
    ),
    "dataset count": lambda p, o: pyparq.dataset(os.path.dirname(p)).count(),
    "metadata": lambda p, o: len(str(pyparq.read_metadata(p))),
    "verify": _verify,
    "verify 100 MB": lambda p, o: _verify(p, o, limits=pyparq.Limits(max_memory=100 << 20)),
    "add_indexes": lambda p, o: str(
        pyparq.add_indexes(p, os.path.join(o, "o.parquet"), bloom_filters=True, replace=True)
    ),
    "add_indexes in place": lambda p, o: str(pyparq.add_indexes(_copied(p, o), page_index=True)),
    "edit_metadata": lambda p, o: pyparq.edit_metadata(p, os.path.join(o, "o.parquet"), update={"a": "b"}),
    "merge": lambda p, o: str(pyparq.merge([p, p], os.path.join(o, "o.parquet"))),
    "rewrite": lambda p, o: str(pyparq.rewrite(p, os.path.join(o, "o.parquet"))),
    "rewrite sorted": lambda p, o: str(pyparq.rewrite(p, os.path.join(o, "o.parquet"), sort_by=[_name(p)])),
    "cli meta": _cli("meta", "PATH"),
    "cli pages": _cli("pages", "PATH"),
    "cli index": _cli("index", "PATH"),
    "cli bloom": _cli("bloom", "PATH"),
    "cli head": _cli("head", "PATH"),
    "cli verify": _cli("verify", "PATH"),
    "cli merge": _cli("merge", "PATH", "PATH", "OUT"),
}


def outcome(run: Operation, path: str, out: str) -> str:
    try:
        return f"ok {run(path, out)}"
    except pyparq.ParquetError as error:
        return f"{type(error).__name__}: {error}"
