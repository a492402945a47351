"""The documentation site is made without a warning, and needs nothing from the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import require

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made with CONTRIBUTING's command into another folder."""
    for name in ("sphinx", "furo", "myst_parser"):
        require(name)
    line = next(line for line in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines() if "-m sphinx" in line)
    folder = tmp_path_factory.mktemp("site") / "site"
    words = line.split("#")[0].split()[1:]
    command = [sys.executable, *[str(folder) if word == "build/site" else word for word in words], "-q"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_each_page_is_there(site: Path) -> None:
    start = (site / "index.html").read_text("utf-8")
    assert [page for page in PAGES if page != "index" and f'href="{page}.html"' not in start] == []
    changes = (site / "site" / "changelog.html").read_text("utf-8")
    assert "The site shows" not in changes
    assert len(changes) > 10_000


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    """Links may lead to other sites. Scripts, styles, fonts and pictures are the site's own."""
    for page in site.rglob("*.html"):
        asked = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"", page.read_text("utf-8"))
        asked += re.findall(
            r"<link\b[^>]*\brel=\"(?:stylesheet|icon|preload)\"[^>]*\bhref=\"([^\"]+)\"", page.read_text()
        )
        assert [address for address in asked if "//" in address] == [], page.name
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:@import\s+|url\()[\"']?(?:https?:)?//", style.read_text("utf-8")) == [], style.name


def test_search_knows_the_pages(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert all(f'"{page}"' in index for page in PAGES)
    assert '"bloom' in index or "bloom:" in index
