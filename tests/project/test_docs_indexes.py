"""The table in ``docs/what-is-read.md`` of which index answers which question is what pyparq does."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

import pyparq
from pyparq import col

PAGE = Path(__file__).parents[2] / "docs" / "what-is-read.md"
SWITCHES = ["use_statistics", "use_bloom_filters", "use_dictionaries", "use_page_index"]
ROWS = re.findall(r"^\| (`col.*?) \|(.*?)\|(.*?)\|(.*?)\|(.*?)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
QUESTIONS = [(code, cells) for first, *cells in ROWS for code in re.findall("`(.*?)`", first)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No row of this file answers any of the questions, and each index that can tell does."""
    path, rows = tmp_path_factory.mktemp("indexes") / "x.parquet", range(1_000)
    data = {
        "a": [100 + k * 7 % 90 for k in rows], "b": [k % 50 for k in rows], "s": [f"m{k % 90}" for k in rows],
        "d": [dt.date(2020, 1, 1 + k % 30) for k in rows], "l": [[100 + k % 90] for k in rows],
    }  # fmt: skip
    pyparq.write_table(
        {**data, "n": [None] * 1_000}, path, schema={"a": "int32?", "b": "int32?", "s": "string?", "d": "date32?",
        "l": "list<int32>?", "n": "int32?"}, bloom_filters=["a", "b", "s", "d", "l"], column_encoding="DICTIONARY",
        row_group_size=500, max_rows_per_page=100,
    )  # fmt: skip
    return path


@pytest.mark.parametrize(("code", "cells"), QUESTIONS, ids=[code for code, _ in QUESTIONS])
def test_the_table_is_right(path: Path, code: str, cells: list[str]) -> None:
    """Each index alone rules out all row groups where the table says so, and none elsewhere."""
    said = [cell.strip() == "yes" for cell in cells]
    done = []
    for switch in SWITCHES:
        options = {name: name == switch for name in SWITCHES}
        with pyparq.ParquetFile(path, **options) as file:  # type: ignore[arg-type]
            found = file.scan(["b"], eval(code, {"col": col})).explain()
        done.append(not found.row_groups)
        assert found.rows == 0
    assert done == said


def test_the_table_is_there() -> None:
    assert len(QUESTIONS) > 15
