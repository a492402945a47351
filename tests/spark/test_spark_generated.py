"""Random frames of all of Spark's types, under random settings: Spark writes and pyparq reads, pyparq writes and Spark
reads, and Spark reads what pyparq has rewritten or given indexes. A case is one column on one of these ways.

``PYPARQ_SPARK_SEEDS=1000-1030 pytest -m slow tests/spark/test_spark_generated.py`` runs other seeds.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import spark_frames

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark

COLUMNS = 20


@contextmanager
def using(session: Any, settings: dict[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def rows_of(frame: Any) -> dict[str, str]:
    """Each column's values as text, in which NaN equals itself, in the order of the rows."""
    found: pa.Table = frame.toArrow().sort_by("row")
    return {name: repr([scalar_text(value) for value in found[name]]) for name in found.column_names}


def scalar_text(value: Any) -> str:
    """Points in time as numbers: Python's own end at the year 9999, and have no negative zero."""
    kind = value.type
    if not value.is_valid:
        return "null"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind):
        return str(value.cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).as_py())
    if pa.types.is_struct(kind):
        return str({name: scalar_text(value[name]) for name in (field.name for field in kind)})
    if pa.types.is_map(kind):
        entries = value.values
        return str(sorted((scalar_text(e["key"]), scalar_text(e["value"])) for e in entries))
    if pa.types.is_nested(kind):
        return str([scalar_text(item) for item in value.values])
    return repr(value.as_py())


DIFFERENCES = {"read": {"interval day to second": "bigint"}}
"""Types that are not Spark's own: docs/spark.md says so."""


def types_of(frame: Any, way: str = "") -> list[tuple[str, str]]:
    found = []
    for field in frame.schema:
        text = field.dataType.simpleString()
        for theirs, ours in DIFFERENCES.get(way, {}).items():
            text = text.replace(theirs, ours)
        found.append((field.name, text))
    return found


def check(found: Any, expected: Any, way: str, seed: int) -> int:
    """Compare, column by column. Returns the number of columns."""
    assert types_of(found) == types_of(expected, way), f"{way}, seed {seed}"
    theirs, ours = rows_of(expected), rows_of(found)
    for name, values in theirs.items():
        assert ours[name] == values, f"{way}, seed {seed}, column {name}"
    return len(theirs)


def run(session: Any, ps: Any, folder: Path, seed: int) -> int:
    """All ways of one seed. Returns the number of cases."""
    chance = random.Random(seed)
    settings = spark_frames.settings(chance)
    # Spark refuses old points in time unless it is told how to write them.
    is_refused = settings["spark.sql.parquet.int96RebaseModeInWrite"] == "EXCEPTION"
    oldest = -2_208_988_800_000_000 if is_refused else spark_frames.YEAR_1
    rows = spark_frames.table(chance, chance.choice([1, 30, 200]), COLUMNS, oldest)
    # Spark 4.3 reads garbage of uncompressed v2 pages that it wrote, but not by its row-wise reader (docs/spark.md).
    version, codec = settings["parquet.writer.version"], settings["spark.sql.parquet.compression.codec"]
    session_settings = {
        "spark.sql.session.timeZone": settings["spark.sql.session.timeZone"],
        "spark.sql.parquet.enableVectorizedReader": str((version, codec) != ("v2", "none")).lower(),
    }
    with using(session, session_settings):
        frame = session.createDataFrame(rows)
        hadoop = {name: value for name, value in settings.items() if not name.startswith("spark.")}
        with using(session, {k: v for k, v in settings.items() if k.startswith("spark.")}):
            frame.repartition(2).write.options(**hadoop).parquet(str(folder / "theirs"))
        theirs, cases = session.read.parquet(str(folder / "theirs")), 0
        cases += check(ps.read(session, folder / "theirs", small=chance.choice([0, 1 << 23])), theirs, "read", seed)
        ps.write(
            frame, folder / "ours", **chance.choice([{}, {"bloom_filters": ["row"]}, {"data_page_version": "2.0"}])
        )
        cases += check(session.read.parquet(str(folder / "ours")), frame, "write", seed)
        ps.rewrite(session, folder / "theirs", folder / "again", sort_by=["row"])
        cases += check(session.read.parquet(str(folder / "again")), theirs, "rewrite", seed)
        shutil.copytree(folder / "theirs", folder / "indexed")
        assert not ps.add_indexes(session, folder / "indexed", bloom_filters=["row"]).where("not ok").collect()
        cases += check(session.read.parquet(str(folder / "indexed")), theirs, "add_indexes", seed)
    return cases


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", [1, 2, 7028])
def test_random_frames(usual: Any, ps: Any, tmp_path: Path, seed: int) -> None:
    assert run(usual, ps, tmp_path, seed) == 4 * (COLUMNS + 1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_frames(usual: Any, ps: Any, tmp_path: Path) -> None:
    first, _, last = os.environ.get("PYPARQ_SPARK_SEEDS", "100-123").partition("-")
    cases = 0
    for seed in range(int(first), int(last or first) + 1):
        cases += run(usual, ps, tmp_path / str(seed), seed)
        shutil.rmtree(tmp_path / str(seed))
    print(f"{cases} cases")
