"""``index_dataset`` on Spark: the catalog that one process makes, and reads that are planned from it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import require

import pyparq
from pyparq import col

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Forty files in two partitions, of two kinds."""
    for k in range(40):
        path = tmp_path / "lake" / f"part={k % 2}" / f"{k:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = np.arange(k * 50, (k + 1) * 50) * 7 % 2000
        more = {"late": ids * 0.5} if k > 30 else {}
        pyparq.write_table({"id": ids, "name": [f"n{i % 90}" for i in ids], **more}, path, row_group_size=20)
        os.utime(path, (1_600_000_000 + k,) * 2)
    return tmp_path / "lake"


def stated(lake: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lake / "_pyparq_catalog" / "catalog.json").read_text())["catalog"]
    return found


def test_it_is_the_catalog_of_one_process(ps: Any, spark: Any, lake: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(lake, tmp_path / "copy"))
    alone = pyparq.index_dataset(copy, ["id", "name"])
    report = ps.index_dataset(spark, str(lake), ["id", "name"])
    assert (report.files, report.files_read, report.entries) == (alone.files, alone.files_read, alone.entries)
    assert stated(lake)["kinds"] == stated(copy)["kinds"]
    assert pyparq.verify(lake).ok
    for question in (col("id") == 700, col("name") == "n13", (col("id") == 7) & (col("part") == 1), col("late") > 900):
        used, without = pyparq.dataset(lake), pyparq.dataset(lake, catalog="off")
        assert used.read(filters=question).to_pydict() == without.read(filters=question).to_pydict()
        explained = [pyparq.dataset(folder).explain(filters=question) for folder in (lake, copy)]
        assert explained[0].catalog_rules_out == explained[1].catalog_rules_out > 0


def test_an_update_reads_new_files_only(ps: Any, spark: Any, lake: Path) -> None:
    ps.index_dataset(spark, str(lake), "id")
    assert ps.index_dataset(spark, str(lake)).files_read == 0
    new = lake / "part=1" / "new.parquet"
    pyparq.write_table({"id": [5000], "name": ["new"]}, new)
    os.utime(new, (1_600_000_000, 1_600_000_000))
    (lake / "part=0" / "00.parquet").unlink()
    report = ps.index_dataset(spark, str(lake))
    assert (report.files, report.files_read, report.files_removed) == (40, 1, 1)
    assert pyparq.dataset(lake).lookup("id", 5000).num_rows == 1
    names = {path.name for path in (lake / "_pyparq_catalog").iterdir()}
    known = {"catalog.json", stated(lake)["files"]["name"], stated(lake)["bounds"]["name"]}
    known |= {segment["part"]["name"] for segment in stated(lake)["segments"]} | set(stated(lake)["previous"])
    assert names <= known, "what tasks have written is removed"


def test_the_driver_plans_from_it(ps: Any, spark: Any, lake: Path) -> None:
    """Many files of which it leaves few need no job."""
    from dataclasses import replace

    from pyparq.datasets.scan import DatasetPlan
    from pyparq.spark.question import Listing, planned_or_listed
    from pyparq.spark.reading import question_of

    question = replace(question_of(spark, lake, columns=None, filters=col("id") == 700), many=3)
    assert isinstance(planned_or_listed(question), Listing)
    expected = sorted(map(str, ps.read(spark, str(lake), filters=col("id") == 700).collect()))
    ps.index_dataset(spark, str(lake), "id")
    plan = planned_or_listed(question)
    assert isinstance(plan, DatasetPlan)
    assert len(plan.files) == 1
    assert sorted(map(str, ps.read(spark, str(lake), filters=col("id") == 700).collect())) == expected
    assert ps.count(spark, str(lake)) == 2000


def test_a_table_is_indexed_by_the_driver(ps: Any, spark: Any, tmp_path: Path) -> None:
    deltalake = require("deltalake")
    for k in range(6):
        ids = np.arange(k * 50, (k + 1) * 50) * 7 % 300
        deltalake.write_deltalake(tmp_path / "t", pyparq.Table.from_pydict({"id": ids}), mode="append")
    table = deltalake.DeltaTable(tmp_path / "t")
    report = ps.index_dataset(spark, table, "id")
    assert (report.files, report.columns) == (6, ("id",))
    assert pyparq.dataset(table).explain(filters=col("id") == 7).catalog_rules_out == 5
    assert [row.id for row in ps.read(spark, table, filters=col("id").isin([7, 1000])).collect()] == [7]
    assert ps.count(spark, table, filters=col("id") > 290) == 9
