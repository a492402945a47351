"""Checks of a Spark session: the right version, its parallelism, and whether the driver can read the files."""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from typing import Any
from weakref import WeakKeyDictionary

from pyparq.errors import OptionError, UnsupportedError

OLDEST = (4, 3)
"""The first pyspark whose public API has what is used here."""

KNOWN_FOR = 60.0
"""Seconds."""

_parallelism: WeakKeyDictionary[Any, tuple[int, float]] = WeakKeyDictionary()


def check_pyspark() -> None:
    """Raise :class:`UnsupportedError` without a usable pyspark."""
    try:
        import pyspark
    except ModuleNotFoundError as error:
        raise UnsupportedError('Spark needs the extra "spark": pip install "pyparq[spark]"') from error
    version = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < OLDEST:
        raise UnsupportedError(
            f"pyspark {pyspark.__version__} is too old: pyparq needs {'.'.join(map(str, OLDEST))} or newer "
            '(pip install --upgrade "pyparq[spark]")'
        )


def check_session(spark: Any) -> None:
    """Raise :class:`UnsupportedError` without a usable pyspark, :class:`OptionError` for what is no session."""
    check_pyspark()
    if not hasattr(spark, "createDataFrame"):
        raise OptionError(f"the first argument must be a SparkSession, not {type(spark).__name__}")


def local_session(name: str = "pyparq", master: str | None = None, **config: str) -> Any:
    """The running Spark session, or a new one: on this machine, or where ``master`` says. ``config``: settings with
    ``_`` for each dot, for a new session.

    Raises :class:`UnsupportedError`, with what to do, without pyspark, without Java or with a Java that is too old.
    """
    check_pyspark()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else its workers are the path's python3
    settings = {"spark_ui_enabled": "false", "spark_ui_showConsoleProgress": "false", **config}
    builder = SparkSession.builder.appName(name).master(master or "local[*]")
    for key, value in settings.items():
        builder = builder.config(key.replace("_", "."), value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of pandas
            made = builder.getOrCreate()
    except (PySparkException, FileNotFoundError) as error:
        raise UnsupportedError(
            "Spark did not start. It needs Java 17 or newer: install it, and set JAVA_HOME to its folder if "
            f"'java -version' shows an older one ({_first_line(error)})"
        ) from error
    return made


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def is_connect(spark: Any) -> bool:
    """Whether the session is a Spark Connect client: it may not see the files that the workers see."""
    return ".connect." in type(spark).__module__


def parallelism(spark: Any) -> int:
    """How many tasks the session runs at a time, now: executors come and go.

    A client of Spark Connect learns it by a small job, the partitions of a plain range, once in :data:`KNOWN_FOR`
    seconds.
    """
    if not is_connect(spark):
        return max(int(spark.sparkContext.defaultParallelism), 1)
    found, when = _parallelism.get(spark, (0, 0.0))
    if not found or time.monotonic() - when > KNOWN_FOR:
        from pyspark.sql import functions

        numbers = spark.range(1 << 12).select(functions.spark_partition_id().alias("k"))
        found = int(numbers.agg(functions.max("k")).first()[0]) + 1
        _parallelism[spark] = found, time.monotonic()
    return found


def is_case_sensitive(spark: Any) -> bool:
    """Whether names of columns are told apart by case (``spark.sql.caseSensitive``)."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def is_ansi(spark: Any) -> bool:
    """Whether values of different types are compared by ANSI's rules (``spark.sql.ansi.enabled``)."""
    return str(spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"


def time_zone(spark: Any) -> str:
    """The zone of points in time that say none (``spark.sql.session.timeZone``)."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def infers_partitions(spark: Any) -> bool:
    """Whether partition columns have other types than text
    (``spark.sql.sources.partitionColumnTypeInference.enabled``)."""
    return str(spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled", "true")).lower() == "true"


MANY_FILES = 2_000
"""Of more files, Spark's tasks read the footers. So many local ones take the driver some tenths of a second."""
_MANY_FILES = "spark.pyparq.planInTasksAbove"


def many_files(spark: Any) -> int:
    """The number of files above which a job plans a read (``spark.pyparq.planInTasksAbove``)."""
    given = spark.conf.get(_MANY_FILES, str(MANY_FILES))
    if not re.fullmatch("[0-9]{1,18}", given):
        raise OptionError(f"{_MANY_FILES} must be a number of files, not {given!r}")
    return int(given)
