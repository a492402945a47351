"""Sizes of a run, and the files that its questions are asked of: made once and cached, by any of the engines."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import events
import pyarrow as pa
import tables
from engines import WriteJob, engine_named

HERE = Path(__file__).parent
#: What the events file has by whatever engine writes it, where that engine offers it.
EVENTS_JOB = WriteJob("snappy", bloom=events.BLOOM_COLUMNS, dictionary=events.DICTIONARY_COLUMNS)
#: Files that others left: defaults, without the indexes that have to be asked for.
PLAIN = WriteJob(indexed=False)


@dataclass(frozen=True)
class Sizes:
    """How large everything is, how often it is measured, and how long (seconds) an engine may take for one line."""

    rows: int = 2_000_000
    events: int = 4_000_000
    lineitem: float = 0.5  # TPC-H's scale
    log_lines: int = 300_000
    nested: int = 500_000
    flights: int = 336_776
    columns: tuple[int, ...] = (10, 100, 1_000, 10_000)
    wide_rows: int = 2_000
    row_groups: tuple[int, ...] = (1, 10, 100, 1_000, 5_000)
    pages: tuple[int, ...] = (10, 100, 1_000, 10_000)
    wanted: tuple[int, ...] = (10, 100, 10_000, 1_000_000)
    files: tuple[int, ...] = (1, 10, 100, 500)
    file_rows: int = 2_000
    runs: int = 15
    budget: float = 1.0
    processes: int = 5  # fresh interpreters per figure that needs them

    @classmethod
    def quick(cls) -> Sizes:
        """A tenth: for a look, not for a claim."""
        return cls(
            rows=200_000, events=400_000, lineitem=0.02, log_lines=20_000, nested=50_000, columns=(10, 100, 1_000),
            wide_rows=500, row_groups=(1, 10, 100, 1_000), pages=(10, 100, 1_000), wanted=(10, 100, 10_000, 100_000),
            files=(1, 10, 50), runs=3, budget=0.1, processes=2,
        )  # fmt: skip

    @classmethod
    def least(cls) -> Sizes:
        """For a test that all engines give the same answers."""
        return cls(
            rows=2_000, events=4_000, lineitem=0.001, log_lines=200, nested=300, flights=500, columns=(10, 40),
            wide_rows=20, row_groups=(1, 5), pages=(1, 5), wanted=(10, 100), files=(1, 3), file_rows=50,
            runs=1, budget=0, processes=1,
        )  # fmt: skip


@dataclass
class Inputs:
    """Tables and files by name. Two tables are kept in memory; files stay in `data_dir`.

    A file's name holds a digest of the scripts that made its table, and its writer's version, so that it is never
    stale. What pyparq writes is written anew in each run: the writer is what is being worked on.
    """

    data_dir: Path
    sizes: Sizes
    _tables: dict[str, pa.Table] = field(default_factory=dict)
    _written: set[Path] = field(default_factory=set)

    def table(self, name: str, *arguments: Any) -> pa.Table:
        """``tables.make_<name>(*arguments)``, or the events."""
        key = f"{name}{arguments}"
        if key not in self._tables:
            while len(self._tables) > 1:
                del self._tables[next(iter(self._tables))]
            make = events.make_events if name == "events" else getattr(tables, f"make_{name}")
            self._tables[key] = make(*arguments)
        return self._tables[key]

    def file(self, writer: str, job: WriteJob, name: str, *arguments: Any) -> Path:
        """The table written by `writer`."""
        path = self._path(writer, job, name, *arguments)
        path = path.with_name(f"{path.name}.parquet")  # not with_suffix(): a scale of 0.5 has a dot
        if self._wanted(path, writer):
            engine = engine_named(writer)
            table = engine.own_table(self.table(name, *arguments))
            events.replace(path, lambda target: engine.write(table, target, job))
        return path

    def derived(self, writer: str, source: Path, write: Callable[[Path, Path], None]) -> Path:
        """The file that ``write(source, target)`` makes of the file `source`."""
        path = source.with_name(f"{source.stem}-by-{writer}.parquet")
        if self._wanted(path, writer):
            events.replace(path, partial(write, source))
        return path

    def folder(self, writer: str, files: int, rows: int) -> Path:
        """`files` files of `rows` orders each."""
        path = self._path(writer, PLAIN, "orders", files, rows)
        if self._wanted(path, writer):
            engine, table = engine_named(writer), self.table("orders", files * rows)
            unfinished = path.with_name(f"{path.name}.{os.getpid()}.partial")
            unfinished.mkdir()
            try:
                for k in range(files):
                    part = engine.own_table(table.slice(k * rows, rows))
                    engine.write(part, unfinished / f"part-{k:04d}.parquet", PLAIN)
                shutil.rmtree(path, ignore_errors=True)
                unfinished.rename(path)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return path

    def scratch(self, name: str) -> Path:
        """A name for a file that a line writes and removes."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        return self.data_dir / f"scratch-{os.getpid()}-{name}.parquet"

    def _path(self, writer: str, job: WriteJob, name: str, *arguments: Any) -> Path:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        made = (HERE / "events.py").read_bytes() + (HERE / "tables.py").read_bytes() + repr(job).encode()
        described = "-".join([name, *map(str, arguments), hashlib.sha256(made).hexdigest()[:8], writer])
        version = "" if writer == "pyparq" else engine_named(writer).version.replace(".", "_")
        return self.data_dir / f"{described}{version}"

    def _wanted(self, path: Path, writer: str) -> bool:
        wanted = not path.exists() or (writer == "pyparq" and path not in self._written)
        self._written.add(path)
        return wanted
