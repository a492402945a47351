"""The documentation site is made without a warning, and needs nothing from the network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import absent
from site_build import build

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md"))


pytestmark = pytest.mark.xdist_group("site")  # it is built once


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site") / "site")


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


FIRST = {
    "append": "append", "csv": "csv-and-json", "filter": "filters", "delete": "append", "json": "csv-and-json",
    "s3": "s3", "row group size": "row-group-size", "embeddings": "embeddings", "merge": "rewriting",
    "partition": "datasets", "read_table": "api-reading", "write_table": "api-writing", "spark": "spark",
    "encryption": "encryption",
}  # fmt: skip
DEVELOPERS = {"architecture", "decisions", "footer", "interop", "spark-pushdown"}


def test_the_search_shows_guides_first_and_pages_for_developers_last(site: Path) -> None:
    if shutil.which("node") is None:
        absent("needs node, which runs the search of the site")
    command = ["node", str(ROOT / "tests" / "support" / "site_search.js"), str(site), *FIRST]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert {word: pages[0] for word, pages in zip(FIRST, found, strict=True)} == FIRST
    for word, pages in zip(FIRST, found, strict=True):
        later = [page in DEVELOPERS or page.startswith("site/") for page in pages]
        assert later == sorted(later), word
    assert any(page in DEVELOPERS for pages in found for page in pages)


def test_search_knows_the_pages(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert all(f'"{page}"' in index for page in PAGES)
    assert '"bloom' in index or "bloom:" in index
