"""Reads of many files, which Spark's tasks plan: the same plans, rows, errors and warnings as those of one process."""

from __future__ import annotations

import pickle
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    CorruptIndexWarning,
    OptionError,
    SchemaError,
    SkippedFileWarning,
)

pytest_plugins = ("spark_session",)
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve files in three partitions. The last have a column more, and a wider type."""
    root = tmp_path_factory.mktemp("many") / "table"
    for k in range(12):
        place = root / f"Year={2022 + k // 4}"
        place.mkdir(parents=True, exist_ok=True)
        ids = np.arange(k * 500, (k + 1) * 500)
        table = {"id": ids, "n": pa.array(ids % 100, pa.int32() if k < 8 else pa.int64())}
        if k >= 10:
            table["Late"] = [f"l{i % 7}" for i in ids]
        pyparq.write_table(table, place / f"{k:02d}.parquet", bloom_filters=["id"], row_group_size=250)
    return root


@pytest.fixture
def few(spark: Any) -> Iterator[Any]:
    """Makes more than three files many."""
    yield lambda: spark.conf.set("spark.pyparq.planInTasksAbove", "3")
    spark.conf.unset("spark.pyparq.planInTasksAbove")


def rows(frame: Any) -> list[str]:
    return sorted(repr(row) for row in frame.collect())


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"columns": ["ID"], "filters": col("id") == 5_300},
    {"filters": "ID >= 1990 AND id < 2010"},
    {"filters": col("year") == 2023},
    {"columns": ["late", "id"], "filters": "late = 'l3' AND year = 2024"},
    {"columns": ["n"], "filters": [("n", "==", 7), ("year", "in", [2022, 2024])]},
    {"columns": ["id", "filename"], "filters": col("n") > 97, "filename": True},
    {"filters": col("id") < 0},
    {"schema": "id bigint, n bigint, Late string", "filters": col("id") == 5_300},
    {"columns": ["Year"], "filters": "year > 2022"},
]


@pytest.mark.parametrize("small", [0, 8 << 20])
@pytest.mark.parametrize("asked", [QUESTIONS[2], QUESTIONS[4]], ids=str)
def test_rows_are_those_of_one_process(
    spark: Any, ps: Any, folder: Path, few: Any, asked: dict[str, Any], small: int
) -> None:
    alone = ps.read(spark, folder, small=small, **asked)
    few()
    shared = ps.read(spark, folder, small=small, **asked)
    assert shared.schema == alone.schema
    assert rows(shared) == rows(alone)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_plans_are_those_of_one_process(spark: Any, ps: Any, folder: Path, asked: dict[str, Any]) -> None:
    """Page for page: what is pruned, and what will be read."""
    from dataclasses import replace

    from pyparq.spark.reading import planned, question_of

    given = {"columns": None, "filters": None, **asked}
    question = replace(question_of(spark, folder, **given), many=100)
    alone = planned(spark, question)
    shared = planned(spark, replace(question, many=3))
    assert str(shared) == str(alone)
    assert shared.files == alone.files
    assert [column.to_pylist() for column in shared.values] == [column.to_pylist() for column in alone.values]
    assert replace(shared.header, filters=None) == replace(alone.header, filters=None)
    assert repr(shared.header.filters) == repr(alone.header.filters)


def test_each_task_opens_its_share(ps: Any, folder: Path) -> None:
    from pyparq.datasets.dataset import files_of
    from pyparq.datasets.shares import shares_of
    from pyparq.spark.question import Question
    from pyparq.spark.reading import share_reply

    ds = pyparq.dataset(folder)
    shares = pickle.loads(pickle.dumps(shares_of(files_of(ds), 4)))
    assert [list(share.numbers) for share in shares] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    asked = Question(str(folder), ["id"], col("id") == 5_300, None, None, 0, None, "raise", False, None, False)
    replies = [share_reply(share, asked, None, False) for share in shares]
    assert [[number for number, _ in reply.plans or ()] for reply in replies] == [[], [], [], [10]]
    assert [len(reply.survey.schemas) for reply in replies if reply.survey] == [1, 1, 2, 2]
    assert sum(int(reply.survey.rows.sum()) for reply in replies if reply.survey) == 6_000


@pytest.mark.slow
def test_counts(spark: Any, ps: Any, folder: Path, few: Any) -> None:
    few()
    assert ps.count(spark, folder) == 6_000
    assert ps.count(spark, folder, "year = 2023") == 2_000
    for small in (0, 8 << 20):
        assert ps.count(spark, folder, col("n") < 7, small=small) == 60 * 7
        assert ps.count(spark, folder, "late = 'l3'", small=small) == 143
        assert ps.count(spark, folder, col("id") < 0, small=small) == 0


def test_rewrites(spark: Any, ps: Any, folder: Path, tmp_path: Path, few: Any) -> None:
    few()
    report = ps.rewrite(spark, folder, tmp_path / "new", filters=col("n") < 50, sort_by=["id"]).collect()
    assert sum(row.rows for row in report) == 3_000
    old = pyparq.read_table(folder, filters=col("n") < 50).to_pydict()
    new = pyparq.read_table(tmp_path / "new").to_pydict()
    assert new == old


# ---- what goes wrong ----------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(folder: Path, tmp_path: Path) -> Path:
    """One file is no Parquet file, another has lost its Bloom filters."""
    copy = Path(shutil.copytree(folder, tmp_path / "table"))
    (copy / "Year=2023" / "05.parquet").write_bytes(b"PAR1 no Parquet at all PAR1")
    place = copy / "Year=2024" / "10.parquet"
    data = bytearray(place.read_bytes())
    with pyparq.ParquetFile(place) as file:
        for k in range(file.metadata.num_row_groups):
            at = file.metadata.row_group(k).column(0).bloom_filter_offset
            assert at is not None
            data[at : at + 16] = b"\xff" * 16
    place.write_bytes(data)
    return copy


@pytest.mark.parametrize("where", [None, col("id") == 5_201, "year = 2022"])
def test_damaged_files_are_reported_as_by_one_process(spark: Any, ps: Any, damaged: Path, few: Any, where: Any) -> None:
    def outcome(**options: Any) -> tuple[Any, ...]:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", SkippedFileWarning)
            warnings.simplefilter("always", CorruptIndexWarning)
            try:
                found: Any = rows(ps.read(spark, damaged, filters=where, **options))
            except pyparq.ParquetError as error:
                found = f"{type(error).__name__}: {error}"
        kinds = (SkippedFileWarning, CorruptIndexWarning)
        return found, sorted({str(w.message) for w in heard if w.category in kinds})

    alone = outcome(), outcome(on_error="skip")
    few()
    assert (outcome(), outcome(on_error="skip")) == alone
    (error, _), (found, said) = alone
    assert "05.parquet" in error
    assert any("05.parquet" in text for text in said)
    assert any("Bloom filter ignored" in text for text in said) == isinstance(where, pyparq.Expression)
    assert len(found) == (5_500 if where is None else 2_000 if isinstance(where, str) else 1)


def test_errors_are_those_of_one_process(spark: Any, ps: Any, folder: Path, damaged: Path, few: Any) -> None:
    spark.conf.set("spark.pyparq.planInTasksAbove", "few")
    with pytest.raises(OptionError, match="must be a number of files, not 'few'"):
        ps.read(spark, folder)
    few()
    with pytest.raises(CorruptFileError, match=r"05\.parquet"):
        ps.read(spark, damaged)
    with pytest.raises(CorruptFileError, match=r"05\.parquet"):
        ps.count(spark, damaged)
    with pytest.warns(SkippedFileWarning, match=r"05\.parquet"):
        assert ps.count(spark, damaged, on_error="skip") == 5_500
    with pytest.raises(ColumnNotFoundError, match="lade"):
        ps.read(spark, folder, columns=["lade"])
    with pytest.raises(pyparq.FilterError):
        ps.read(spark, folder, filters=col("id") == "text")
    with pytest.raises(FileNotFoundError):
        ps.read(spark, folder / "nowhere")
    with pytest.raises(OptionError, match="cannot be imported"):
        ps.read(spark, folder, decryption="no_such_module:make")


def test_files_without_a_common_type(spark: Any, ps: Any, tmp_path: Path, few: Any) -> None:
    for k in range(8):
        pq.write_table(pa.table({"a": [k] if k < 6 else ["x"]}), tmp_path / f"{k}.parquet")
    few()
    with pytest.raises(SchemaError, match=r"int64 in .*0\.parquet.*6\.parquet"):
        ps.read(spark, tmp_path)
    assert ps.count(spark, tmp_path) == 8  # looks at no column
    with pytest.raises(SchemaError, match=r"0\.parquet.*6\.parquet"):
        ps.count(spark, tmp_path, pyparq.col("a") == 1)


def test_parts_are_not_large() -> None:
    from pyparq.spark.question import PART_BYTES, parts_of

    assert [parts_of(size, 4) for size in (0, 100, 4 * PART_BYTES, 4 * PART_BYTES + 1, 40 * PART_BYTES)] == [
        4,
        4,
        4,
        5,
        40,
    ]
