"""A local Spark for tests: a plugin, so that one session serves all modules of a run.

A test module says ``pytest_plugins = ("spark_session",)`` and uses the fixtures
``spark`` and ``ps``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import absent, require

SETTINGS = {
    "spark.driver.memory": "2g",
    # Short queries: the second compiler and collectors with threads of their own take more than they give.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # else the plan that ran hides its scan
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.daemon.module": "warm_daemon",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A SparkSession on two local cores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about pandas versions
        require("pyspark")
        from pyspark.sql import SparkSession
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        absent("needs Java 17 or later for Spark")
    builder = SparkSession.builder.master("local[2]").appName("pyparq tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    # A folder for classes that tests compile (java_classes): Java looks there when they are asked for.
    builder = builder.config("spark.driver.extraClassPath", str(tmp_path_factory.mktemp("classes")))
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # else its workers are the path's python3, of whatever version
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # where warm_daemon is
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


ZONE = "America/New_York"
"""Of sessions that are set up as users have them: not UTC, with daylight saving."""


@pytest.fixture
def usual(spark: Any) -> Iterator[Any]:
    """A session with Spark's own defaults (timestamps are INT96) in a zone with daylight saving; settings of a test end
    with it."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", ZONE)
    assert session.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"
    # Spark looks for data sources in the active session: the one that has made a DataFrame last.
    session.createDataFrame([(1,)], "x int")
    yield session
    spark.createDataFrame([(1,)], "x int")


@pytest.fixture(scope="session")
def ps(spark: Any) -> Any:
    """``pyparq.spark``, once there is a session."""
    import pyparq.spark

    return pyparq.spark


def compile_java(session: Any, source: Path) -> None:
    """Make a class known to the session: compile it against pyspark's jars."""
    import pyspark

    javac = shutil.which("javac")
    if javac is None:
        absent("needs javac")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    target = session.conf.get("spark.driver.extraClassPath")
    subprocess.run([javac, "-nowarn", "-cp", str(jars), "-d", target, str(source)], check=True, capture_output=True)
