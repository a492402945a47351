"""Files and runners for the tests of the command line."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from pyparq.cli.app import app

ROWS = 4000


def sample() -> pa.Table:
    """A table of every flat type that SQL has literals for, with nulls, NaN, odd names and one nested column."""
    rng = np.random.default_rng(7)
    numbers = np.arange(ROWS)
    note = [None if i % 5 == 0 else f"note {i % 97}" for i in range(ROWS)]
    real = rng.normal(size=ROWS)
    real[::50] = np.nan
    real[1::50] = -0.0
    day = datetime.date(2020, 1, 1)
    moments = pa.array(numbers * 1_000_003 + 1_577_836_800_000_000, pa.timestamp("us"))
    return pa.table(
        {
            "id": pa.array(rng.permutation(ROWS) * 2, pa.int64()),
            "small": pa.array([None if i % 7 == 0 else i % 100 - 50 for i in range(ROWS)], pa.int8()),
            "real": pa.array(real, from_pandas=False),
            "single": pa.array((numbers / 10).astype(np.float32)),
            "price": pa.array([None if i % 11 == 0 else Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(12, 2)),
            "note": note,
            "day": [day + datetime.timedelta(days=i // 20) for i in range(ROWS)],
            "ts": moments,
            "utc": moments.cast(pa.timestamp("us", "UTC")),
            "raw": [bytes([i % 251, i % 3]) for i in range(ROWS)],
            "flag": [None if i % 13 == 0 else i % 2 == 0 for i in range(ROWS)],
            "odd name, \u00e9": numbers,
            "st": pa.array([None if i % 17 == 0 else {"x": i % 10} for i in range(ROWS)]),
        }
    )


def write_sample(path: Path) -> Path:
    """The sample by pyarrow: 3 row groups, small pages, indexes, Bloom filters, CRCs."""
    pq.write_table(
        sample(), path, row_group_size=1500, max_rows_per_page=200, write_page_index=True, write_page_checksum=True,
        bloom_filter_options={"id": {"fpp": 0.01, "ndv": 1500}, "note": {}}, use_dictionary=["note", "small"],
        sorting_columns=[pq.SortingColumn(6)],
    )  # fmt: skip
    return path


def run(*args: Any) -> Result:
    """The command line in this process, as into a pipe."""
    return CliRunner().invoke(app, [str(a) for a in args])


def ok(*args: Any) -> str:
    """Its output; it must end well and say nothing on stderr."""
    result = run(*args)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def as_json(*args: Any) -> Any:
    return json.loads(ok(*args))


def refused(code: int, *args: Any) -> str:
    """The one line of an error, and nothing on stdout."""
    result = run(*args)
    assert result.exit_code == code, (result.stdout, result.stderr)
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("pyparq: error: ")
    assert result.stdout == ""
    assert "Traceback" not in result.output
    return lines[0]


def shell(*args: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "pyparq", *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120, check=False
    )


def terminal(*args: Any, columns: int = 80) -> str:
    """What a terminal of that width gets, escape sequences included."""
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "pyparq", *map(str, args)]
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdout=follower, stderr=subprocess.PIPE, env=environment) as process:
        os.close(follower)
        parts = []
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            parts.append(part)
        assert process.stderr is not None
        complaints = process.stderr.read().decode()
        assert process.wait(timeout=60) == 0, complaints
    os.close(leader)
    return b"".join(parts).decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """Text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
