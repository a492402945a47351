"""Each call of another library in ``docs/coming-from.md`` gives what ours beside it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import require
from docs_pairs import Pair, names, pairs, result, sections

HERE = [pair for pair in pairs() if pair.library != "Spark"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("coming")


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, Any]]:
    """The names of each section."""
    return {}


@pytest.mark.parametrize("pair", HERE, ids=[f"{pair.library}: {pair.what}" for pair in HERE])
def test_pair(pair: Pair, folder: Path, known: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if pair.library == "fastparquet":
        require("fastparquet")
    given = known.setdefault(pair.library, {}) or names(pair.library, {})
    known[pair.library] = given
    theirs = result(pair.theirs, given)
    assert theirs is not None
    assert theirs != []
    assert result(pair.ours, given) == theirs


def test_every_row_of_the_tables_is_a_pair() -> None:
    for library, text in sections().items():
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert len(rows) in (0, 1 + sum(pair.library == library for pair in pairs())), library
    assert {pair.library for pair in pairs()} == {"pyarrow", "pandas", "fastparquet", "polars", "DuckDB", "Spark"}
