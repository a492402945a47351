"""The examples of docs/command-line.md run as they stand."""

from __future__ import annotations

import glob
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from cli_files import run

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page speaks of, and `pyparq`."""
    folder = tmp_path_factory.mktemp("page")
    rows = range(600)
    flights = pa.table(
        {
            "id": rows,
            "flight": [n % 40 for n in rows],
            "dest": [("LAX", "SFO", "BOS")[n % 3] for n in rows],
            "delay": [None if n % 7 == 0 else n % 100 for n in rows],
        }
    )
    pq.write_table(flights, folder / "flights.parquet", write_page_index=True)
    pacsv.write_csv(flights, folder / "flights.csv")
    (folder / "flights").mkdir()
    for k in range(3):
        pq.write_table(flights.slice(200 * k, 200), folder / "flights" / f"{k}.parquet")
    (folder / "bin").mkdir()
    command = folder / "bin" / "pyparq"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m pyparq "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.mark.slow
def test_examples_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with pipes in a shell, the others in this process, which is faster."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.S) for line in block.splitlines()]
    assert len(lines) > 25
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
    for line in lines:
        if any(sign in line for sign in "|<"):
            command = ["bash", "-euo", "pipefail", "-c", line]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            code, out, complaints = done.returncode, done.stdout, done.stderr
        else:
            words = [glob.glob(w) or [w] for w in shlex.split(line, comments=True)[1:]]
            result = run(*(name for found in words for name in sorted(found)))
            code, out, complaints = result.exit_code, result.stdout, result.stderr
        assert code == 0, (line, complaints)
        assert "pyparq: error" not in complaints, line
        assert "they differ" not in out
    assert pq.read_table("joined.parquet").num_rows == 600
    assert pq.read_table("from-csv.parquet").equals(pq.read_table("flights.parquet"))


def test_the_page_names_every_way_to_complete() -> None:
    text = PAGE.read_text()
    assert all(f"_PYPARQ_COMPLETE={shell}_source" in text for shell in ("bash", "zsh", "fish"))
