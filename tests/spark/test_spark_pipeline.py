"""The pipeline of testdata/pipeline.py, as its users run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ("spark_session",)
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SCRIPT = Path(__file__).parents[2] / "testdata" / "pipeline.py"


def test_spark_writes_and_pyparq_makes_both_skip(spark: Any, tmp_path: Path) -> None:
    """``spark`` only tells whether there is one here; the script starts its own."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "flights")], capture_output=True, text=True, env=environment,
        cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    first, *lines = ran.stdout.splitlines()
    assert first == "Spark starts"
    assert [line[:30].strip() for line in lines] == [
        "Spark writes plain Parquet", "Spark looks for one flight", "pyparq adds indexes on Spark",
        "pyparq verifies on Spark", "pyparq looks the flight up", "Spark looks for it again",
    ]  # fmt: skip
    assert "336,776 rows in 4 files" in lines[0]
    assert "no files with findings" in lines[3]
    before, after = (int(re.findall(r"([\d,]+) rows scanned", lines[k])[0].replace(",", "")) for k in (1, 5))
    assert after < before / 2
    share = float(re.findall(r"\(([\d.]+) %\)", lines[4])[0])
    assert share < 3
    assert "1 row" in lines[4]
