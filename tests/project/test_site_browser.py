"""The documentation site in a real browser: every page loads, fits a phone, and the search finds."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser, is_there
from site_build import build

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="needs chromium and chromedriver")]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: the browser tells what is wrong."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site") / "site")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as made:
        yield made


def keep(window: Browser, name: str) -> None:
    """A picture of what the window shows, where ``PYPARQ_SCREENSHOTS`` says."""
    if "PYPARQ_SCREENSHOTS" in os.environ:
        (Path(os.environ["PYPARQ_SCREENSHOTS"]) / f"{name}.png").write_bytes(window.screenshot())


@pytest.mark.parametrize("width", [1400, 390], ids=["desktop", "phone"])
def test_each_page_loads(width: int, window: Browser, folder: Path, address: str) -> None:
    """Without an error in the console, with all its pictures, and without scrolling sideways."""
    pages = sorted(page.relative_to(folder).as_posix() for page in folder.rglob("*.html"))
    assert len(pages) > 30
    window.errors()
    wrong = {}
    for page in pages:
        window.visit(f"{address}/{page}", width, dark=width < 600)
        keep(window, f"{page.replace('/', '-')}-{width}")
        broken = window.run("return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
        wide = window.run("return document.documentElement.scrollWidth - window.innerWidth")
        if errors := [*window.errors(), *broken, *([f"{wide} pixels too wide"] if wide > 0 else [])]:
            wrong[page] = errors
    assert wrong == {}


@pytest.mark.parametrize("words", ["bloom", "row group", "storage_options", "write_dataset", "fastparquet"])
@pytest.mark.parametrize("place", ["server", "disk"])
def test_the_search_finds(place: str, words: str, window: Browser, folder: Path, address: str) -> None:
    start = address if place == "server" else folder.as_uri()
    window.errors()
    window.visit(f"{start}/index.html")
    window.run("document.querySelector('.sidebar-search').focus()")
    window.press(*words, "Enter")
    found = window.wait(
        "const n = document.querySelectorAll('#search-results li a'); return n.length > 1 ? n.length : 0"
    )
    assert found > 1
    window.wait("return document.querySelector('#search-results .search-summary').innerText.includes('found')")
    first = window.run("const a = document.querySelector('#search-results li a'); a.click(); return a.href")
    window.wait("return location.href.split('?')[0].split('#')[0] == arguments[0].split('?')[0].split('#')[0]", first)
    text = window.run("return document.body.innerText.toLowerCase()")
    assert all(word in text for word in words.split())
    assert window.errors() == []


@pytest.mark.parametrize(("word", "page"), [("append", "append"), ("csv", "csv-and-json"), ("filter", "filters")])
def test_the_search_finds_the_guide_first(word: str, page: str, window: Browser, address: str) -> None:
    window.visit(f"{address}/search.html?q={word}")
    first = window.wait("const a = document.querySelector('#search-results li a'); return a && a.getAttribute('href')")
    assert first.split("?")[0].split("#")[0].endswith(f"{page}.html")


def test_one_page_leads_to_the_next(window: Browser, address: str) -> None:
    window.visit(f"{address}/index.html")
    titles = []
    for _ in range(4):
        titles.append(
            window.run("return document.querySelector('h1').innerText.replace('#', '').replace('¶', '').trim()")
        )
        window.run("document.querySelector('.related-pages .next-page').click()")
        window.wait("return document.readyState == 'complete' && document.querySelector('h1')")
    assert titles == ["pyparq", "Installing", "Selective reads", "Writing for selective reads"]


def test_dark_and_light(window: Browser, address: str) -> None:
    shades = []
    for dark in (False, True):
        window.visit(f"{address}/index.html", dark=dark)
        shade = window.run("return getComputedStyle(document.body).backgroundColor")
        shades.append(sum(int(part) for part in shade[4:-1].split(",")))
    assert shades[0] > 600 > 200 > shades[1]
