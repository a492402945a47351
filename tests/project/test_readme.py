"""The README is short, and its commands are where the gate looks for them; the tour's examples run, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README, TOUR = (ROOT / "README.md").read_text(), (ROOT / "docs" / "tour.md").read_text()


def examples(section: str) -> list[str]:
    text = TOUR.split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples("Writing") + examples("Reading") + examples("Many files") + examples("Files that exist")
    assert len(found) >= 2
    for code in found:
        exec(compile(code, "docs/tour.md", "exec"), {})
    files = {"all.parquet", "cities.parquet", "events", "orders.parquet", "sorted.parquet", "stream.parquet"}
    assert {p.name for p in tmp_path.iterdir()} == files


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_commands_stand_where_the_gate_looks_for_them() -> None:
    commands = {"main job": "main_job.py", "test command": "pytest -n auto --dist loadgroup"}
    for mark, ends, page in (*((*one, README) for one in commands.items()), ("pipeline", "pipeline.py", TOUR)):
        block = re.search(rf"<!-- {mark} -->\n```bash\n(.*?)\n```", page, re.DOTALL)
        assert block is not None
        assert block[1].endswith(ends)
        assert "\n" not in block[1], "one command"
