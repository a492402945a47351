"""The README's Python examples run, in order, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()


def examples(section: str) -> list[str]:
    text = README.split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples("Writing") + examples("Reading") + examples("Many files") + examples("Files that exist")
    assert len(found) >= 2
    for code in found:
        exec(compile(code, "README.md", "exec"), {})
    files = {"all.parquet", "cities.parquet", "events", "orders.parquet", "sorted.parquet", "stream.parquet"}
    assert {p.name for p in tmp_path.iterdir()} == files


def test_commands_stand_where_the_gate_looks_for_them() -> None:
    commands = {"main job": "main_job.py", "pipeline": "pipeline.py", "test command": "pytest -n auto --dist loadgroup"}
    for mark, ends in commands.items():
        block = re.search(rf"<!-- {mark} -->\n```bash\n(.*?)\n```", README, re.DOTALL)
        assert block is not None
        assert block[1].endswith(ends)
        assert "\n" not in block[1], "one command"
