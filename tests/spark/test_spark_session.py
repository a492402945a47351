"""What pyparq says where Spark cannot run: pyspark that is missing or too old, a Java that is too old."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

ASK = """
import pyparq
from pyparq.errors import UnsupportedError

pytest_plugins = ("spark_session",)
try:
    {what}
except UnsupportedError as error:
    print("said:", error)
"""


def said(what: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", ASK.format(what=what)], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert "said:" in ran.stdout, ran.stdout + ran.stderr
    return ran.stdout


IMPORT = "import pyparq.spark"
START = "from pyparq.spark.session import local_session; local_session()"


def test_an_old_pyspark(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text('__version__ = "3.5.1"\n')
    assert "pyspark 3.5.1 is too old: pyparq needs 4.3 or newer" in said(IMPORT, PYTHONPATH=str(tmp_path))


def test_no_pyspark(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pyspark'] = None\n")
    for what in (IMPORT, START):
        assert 'pip install "pyparq[spark]"' in said(what, PYTHONPATH=str(tmp_path))


def test_an_old_java(tmp_path: Path) -> None:
    """It does not know the classes of Spark, and says so before Spark's own words."""
    require("pyspark")
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'UnsupportedClassVersionError: class file version 61.0' >&2\nexit 1\n")
    java.chmod(0o755)
    assert "It needs Java 17 or newer" in said(START, JAVA_HOME=str(tmp_path))


def test_parallelism_is_what_the_session_has_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors come and go: a classic session is asked each time."""
    from pyparq.spark.session import parallelism

    class Context:
        defaultParallelism = 2

    class Session:
        sparkContext = Context()

    session = Session()
    assert parallelism(session) == 2
    Context.defaultParallelism = 64
    assert parallelism(session) == 64


def test_the_data_source_is_registered_in_each_session(spark: Any, ps: Any, tmp_path: Path) -> None:
    """Spark looks for it in the active session, whichever session asks."""
    pyparq.write_table({"x": [1]}, tmp_path / "x.parquet")
    sessions = [spark.newSession(), spark.newSession(), spark]
    for session in (*sessions, *sessions):
        ps.register(session)
        assert session.read.format("pyparq").load(str(tmp_path)).count() == 1
