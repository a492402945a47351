"""Links and file names in the documentation lead somewhere."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
FOLDERS = "tests|pyparq|benchmarks|testdata|docs|thrift_idl"


@lru_cache
def text_of(page: Path) -> str:
    """The page without its examples of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


@lru_cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    found = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {name if (n := found[:k].count(name)) == 0 else f"{name}-{n}" for k, name in enumerate(found)}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_file_names(page: Path) -> None:
    for name in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)(?:::\w+)?`", text_of(page)):
        assert (ROOT / name).exists(), name


def test_each_page_is_linked() -> None:
    """From the README or from another page of ``docs/``."""
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page))
        if not target.startswith("#")
    }
    assert [str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md") if page not in linked] == []
