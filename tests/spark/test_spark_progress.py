"""``progress=`` of what Spark's tasks do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.spark.tasks import Watch

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

Calls = list[tuple[int, int]]


def check(calls: Calls, at_least: int) -> None:
    assert calls[0] == (0, 0)
    assert calls[-1][0] == calls[-1][1] >= at_least, calls
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def told(calls: Calls) -> Any:
    return lambda done, total: calls.append((done, total))


def test_tasks_are_counted(spark: Any, ps: Any, tmp_path: Path) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.jobGroup.id", "the user's")
    spark.conf.set("spark.pyparq.planInTasksAbove", "1")
    try:
        calls: Calls = []
        ps.write(spark.range(0, 1000, 1, 3), tmp_path / "t", progress=told(calls))
        check(calls, 3)
        calls = []
        assert ps.count(spark, tmp_path / "t", "id >= 990", progress=told(calls)) == 10
        check(calls, 1)
        calls = []
        assert ps.read(spark, tmp_path / "t", filters="id = 7", progress=told(calls)).count() == 1
        check(calls, 1)
        calls = []
        ps.rewrite(spark, tmp_path / "t", sort_by=["id"], partitions=2, progress=told(calls))
        check(calls, 3)  # planning is counted too
        assert context.getLocalProperty("spark.jobGroup.id") == "the user's"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        spark.conf.unset("spark.pyparq.planInTasksAbove")
    assert pyparq.dataset(tmp_path / "t").count() == 1000


def test_what_it_raises_ends_the_write(spark: Any, ps: Any, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if total:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ps.write(spark.range(10), tmp_path / "t", progress=stop)
    assert not list(tmp_path.glob("t/*"))


def test_nothing_is_watched_without_it() -> None:
    with Watch(None, None):
        pass
