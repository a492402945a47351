"""The blocks of the documentation that need Spark run as copied."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from docs_blocks import Block, blocks, pages, run
from docs_files import prepare, prepare_for_spark
from docs_pairs import Pair, names, pairs, result

pytest_plugins = ("spark_session",)

ELSEWHERE = ["docs/spark-pushdown.md"]
"""Its program is run, and its result compared, by ``test_spark_read``."""
PAGES = [page for page in pages() if page not in ELSEWHERE and any(b.runs and b.spark for b in blocks(page))]


def here(block: Block) -> bool:
    """Spark's own streams look for relative paths where its JVM was started: test_spark_streams has these programs."""
    return "readStream" not in block.code


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(spark: Any, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(page)
    prepare_for_spark(page)
    monkeypatch.setattr(type(spark), "stop", lambda session: None)  # commands stop it when they are done
    try:
        run(page, [block for block in blocks(page) if block.runs and block.spark and here(block)], {"spark": spark})
    finally:
        for query in spark.streams.active:
            query.processAllAvailable()
            query.stop()


PAIRS = [pair for pair in pairs() if pair.library == "Spark"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("pair", PAIRS, ids=[pair.what for pair in PAIRS])
def test_a_call_of_spark_and_ours_give_the_same(
    spark: Any, pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table in ``docs/coming-from.md``. Spark looks for relative paths where its JVM was started: here they get
    their folder."""
    monkeypatch.chdir(tmp_path)
    given = names("Spark", {"spark": spark})
    theirs, ours = (re.sub(r'"(trips[.a-z]*|out)"', rf'"{tmp_path}/\1"', code) for code in (pair.theirs, pair.ours))
    wanted = result(theirs, given)
    assert wanted is not None
    assert result(ours, given) == wanted
