"""``docs/architecture.md``: its paths exist, it has a paragraph for every package, and its picture is sound.

The paths of ``docs/decisions.md`` exist too.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pyparq"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
DECISIONS = (ROOT / "docs" / "decisions.md").read_text("utf-8")
PICTURE = ROOT / "docs" / "architecture.svg"

PATHS = sorted({span for span in re.findall(r"`([\w./-]+)`", PAGE + DECISIONS) if "/" in span or span.endswith(".py")})


def packages() -> set[str]:
    """The folders of pyparq that are Python packages, at the top."""
    return {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("path", PATHS)
def test_each_path_exists(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


def test_names_of_functions_and_lists_exist() -> None:
    """Those that the table names beside their file."""
    named = {
        "read/plan/prune.py": "def run",
        "cli/app.py": "_COMMANDS = ",
        "io/source.py": "def open_source",
        "arrow/ingest/__init__.py": "def ingest",
    }
    for file, name in named.items():
        assert name in (PACKAGE / file).read_text("utf-8")


def test_each_package_has_its_paragraph() -> None:
    described = re.findall(r"^\*\*`(\w+)/`\*\*", section("The packages"), re.MULTILINE)
    assert len(described) == len(set(described))
    assert set(described) == packages()
    assert len(set(described) - {"parquet"}) <= 15  # pyarrow's names are a way in, not a room


def test_steps_are_few_and_short() -> None:
    for title, most in (("How a file is read", 8), ("How a file is written", 7)):
        steps = [text for text in section(title).split("\n\n") if text.strip().startswith("**")]
        assert [int(text.strip()[2]) for text in steps] == list(range(1, most + 1))
        assert max(len(text.strip().splitlines()) for text in steps) <= 5


def test_the_table_has_twenty_entries() -> None:
    rows = [line for line in section("I want to change X: where do I look?").splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    for row in rows[1:]:
        assert any(f"`{path}`" in row for path in PATHS), row


def test_the_picture_names_packages_that_exist() -> None:
    texts = [node.text or "" for node in ElementTree.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")]
    named = {name for text in texts for name in re.findall(r"\b([a-z]+)/", text)}
    assert named - {"footers", "plan", "decode", "encode"} == packages()
    assert "prefers-color-scheme: dark" in PICTURE.read_text("utf-8")
