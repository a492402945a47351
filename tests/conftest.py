"""Shared fixtures: the public corpus, and what to do when something optional is not there."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from quick import QUICK, SLOW

# Nothing fails because a machine was busy: neither a slow example nor slow drawing is an error. The same code gives the
# same answer: examples follow from the test's name, unless other ones are asked for.
settings.register_profile(
    "pyparq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("PYPARQ_RANDOM_TESTS"),
)
settings.load_profile("pyparq")


QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A Java that compiles little and collects on one thread: Spark's tests are many short queries. They take half the time
of the processor so."""


def pytest_configure(config: pytest.Config) -> None:
    """A shell has what it starts in the background ignore Ctrl-C, which some tests send to their own process."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_JAVA)
    if os.environ.get("PYPARQ_CLUSTER_TESTS") == "1":
        config.option.markexpr = config.option.markexpr.replace(" and not cluster", "")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Thousands of tests are objects that stay: each garbage collection would walk through them all."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``-m quick`` looks at no other modules: collecting them all would take longer than running the quick ones."""
    is_other = collection_path.suffix == ".py" and collection_path.stem not in QUICK
    return True if config.option.markexpr == "quick" and is_other else None


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """No test finds what another has read of a store: requests are counted."""
    kept = sys.modules.get("pyparq.io.kept_files")
    if kept is not None:
        kept.forget_files()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``-n`` and ``--dist loadgroup`` tests that need Spark run in two processes, each module in one of them:
    Spark takes seconds to start, and waits often.

    Of the cases of a test that says ``sweep(n)``, the first and each n-th after it run in the gate. The others are
    slow.
    """
    cases = Counter[str]()
    for item in items:
        sweep = item.get_closest_marker("sweep")
        if sweep is not None:
            name = item.nodeid.partition("[")[0]
            if cases[name] % sweep.args[0]:
                item.add_marker(pytest.mark.slow)
            cases[name] += 1
        if re.search(r" at 0x[0-9a-f]{6}", item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: an id that changes from run to run; give ids=stable_id")
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(f"spark {crc32(item.path.stem.encode()) % 2}"))
        if item.path.stem in QUICK and not any(item.get_closest_marker(name) for name in SLOW):
            item.add_marker(pytest.mark.quick)


def stable_id(value: object) -> str:
    """The id of a test's parameter: its text without addresses in memory, as every process must call it the same."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def absent(reason: str) -> NoReturn:
    """Skip, or fail where ``PYPARQ_REQUIRE_ALL=1`` says that everything must be there."""
    if os.environ.get("PYPARQ_REQUIRE_ALL") == "1":
        pytest.fail(f"required by PYPARQ_REQUIRE_ALL: {reason}", pytrace=False)
    pytest.skip(reason)


def require(name: str) -> object:
    """The imported module ``name``, or :func:`absent`."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        absent(f"needs {name}: {error}")


def corpus_path() -> Path | None:
    """The folder that holds ``data`` and ``bad_data`` of apache/parquet-testing, where it is to be found."""
    named = os.environ.get("PYPARQ_CORPUS")
    places = [Path(named)] if named else [Path(__file__).parents[2] / "shared" / "parquet-testing"]
    return next((p for p in places if (p / "data").is_dir()), None)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """``apache/parquet-testing``; CONTRIBUTING says which commit and where to put it."""
    path = corpus_path()
    if path is None:
        absent("the public corpus is not here: set PYPARQ_CORPUS to a checkout of apache/parquet-testing")
    return path
