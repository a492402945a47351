"""The map in a real browser: it draws, it says what it shows, and the keyboard reaches everything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import Browser, browser, is_there

import pyparq
from pyparq import col

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_there(), reason="needs chromium and chromedriver")]

ROWS = 20_000
HOSTILE = "</script><script>document.title='hacked'</script>"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> pyparq.ParquetFile:
    path, rng = tmp_path_factory.mktemp("browser") / "events.parquet", np.random.default_rng(1)
    data = {
        "time": np.arange(ROWS), "id": rng.permutation(ROWS), "amount": rng.normal(size=ROWS),
        "city": rng.choice(np.array(["Oslo", "Rome", "Lima"]), ROWS).tolist(),
    }  # fmt: skip
    pyparq.write_table(data, path, row_group_size=5000, max_rows_per_page=500, bloom_filters={"id": 0.01})
    return pyparq.ParquetFile(path)


def shown(window: Browser, page: Path, name: str, width: int = 1200, height: int = 1000, *, dark: bool = False) -> None:
    """Open a page, and keep a picture of it where ``PYPARQ_SCREENSHOTS`` says."""
    window.errors()
    window.open(page, width, height, dark=dark)
    assert window.errors() == []
    folder = os.environ.get("PYPARQ_SCREENSHOTS")
    if folder:
        (Path(folder) / f"{name}.png").write_bytes(window.screenshot())


def tip(window: Browser) -> str:
    return str(window.run("const t = document.getElementById('tip'); return t.hidden ? '' : t.innerText"))


def colours(window: Browser, canvas: str) -> set[tuple[int, ...]]:
    """The colours that cover much of a canvas."""
    found = window.run(
        "const c = document.getElementById(arguments[0]), pen = c.getContext('2d');"
        "const d = pen.getImageData(0, 0, c.width, c.height).data;"
        "const seen = {}; for (let k = 0; k < d.length; k += 16) {"
        "const t = d[k] + ',' + d[k+1] + ',' + d[k+2]; seen[t] = (seen[t] || 0) + 1; }"
        "return Object.keys(seen).filter((t) => seen[t] > 60)",
        canvas,
    )
    return {tuple(int(n) for n in text.split(",")) for text in found}


RED, PINK, DARK_BLUE, SKY = (213, 94, 0), (204, 121, 167), (0, 114, 178), (86, 180, 233)


@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("query", [False, True], ids=["file", "query"])
def test_the_map_draws(
    width: int, dark: bool, query: bool, window: Browser, events: pyparq.ParquetFile, tmp_path: Path
) -> None:
    page = tmp_path / "m.html"
    filters = (col("id") == 4711) & (col("time") > 5000) if query else None
    events.map(page, filters=filters)
    shown(window, page, f"{'query' if query else 'file'}-{width}-{'dark' if dark else 'light'}", width, 1500, dark=dark)
    assert colours(window, "grid") >= ({RED, PINK} if query else {DARK_BLUE})
    assert len(colours(window, "bytes")) >= 2
    assert window.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert window.run("return document.getElementById('query').hidden") is not query
    background = window.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(int(n) for n in background[4:-1].split(",")) < 200) is dark
    assert "20,000 rows" in window.run("return document.getElementById('facts').textContent")


def test_the_keyboard_reaches_everything(window: Browser, events: pyparq.ParquetFile, tmp_path: Path) -> None:
    page = tmp_path / "m.html"
    events.map(page, filters=col("time") < 700)
    shown(window, page, "keyboard")
    window.run("document.getElementById('bytes').focus()")
    window.press("ArrowRight")
    assert tip(window).startswith("time, row group 0, page 0")
    assert "read" in tip(window)
    window.press("ArrowRight", "ArrowRight")
    assert tip(window).startswith("time, row group 0, page 2")
    assert "ruled out by the page index" in tip(window)
    assert "1,000 to 1,499" not in tip(window)
    assert "1000 to 1499" in tip(window)
    window.press("End")
    assert tip(window).startswith("Footer")
    window.press("Escape")
    assert tip(window) == ""
    before = window.screenshot()
    window.press("+", "+")
    assert window.screenshot() != before
    window.run("document.getElementById('grid').focus()")
    window.press("ArrowDown", "ArrowRight")
    assert window.run("return document.getElementById('column-title').textContent") == "Column id"
    assert tip(window).startswith("id, row group 0, page ")
    window.press("End")
    assert tip(window).startswith("id, row group 3, page 9")
    assert window.run("return document.getElementById('say').textContent").startswith("id, row group 3, page 9")
    window.press("Tab")
    assert window.run("return document.activeElement.id") != "grid"
    assert window.errors() == []


def test_the_mouse_shows_a_tooltip(window: Browser, events: pyparq.ParquetFile, tmp_path: Path) -> None:
    page = tmp_path / "m.html"
    events.map(page)
    shown(window, page, "mouse")
    x, y = window.run(
        "const b = document.getElementById('grid').getBoundingClientRect();"
        "return [Math.round(b.x + b.width / 2), Math.round(b.y + 60)]"
    )
    window.point(x, y)
    assert tip(window).startswith("amount, row group ")
    assert "encoding" in tip(window)
    assert "ratio" in tip(window)
    window.point(x, y, click=True)
    assert window.run("return document.getElementById('column-title').textContent") == "Column amount"


def test_hostile_names_are_harmless(window: Browser, tmp_path: Path) -> None:
    path, page = tmp_path / "x.parquet", tmp_path / "m.html"
    pyparq.write_table({HOSTILE: [HOSTILE] * 3, "<img src=x onerror=document.title='hacked'>": [1, 2, 3]}, path)
    pyparq.ParquetFile(path).map(page, filters=col(HOSTILE) == HOSTILE)
    shown(window, page, "hostile")
    window.run("document.getElementById('grid').focus()")
    window.press("ArrowRight", "ArrowDown")
    assert "onerror" in tip(window)
    assert window.run("return document.title") == f"Map of {path}"
    assert (
        window.run("return document.querySelectorAll('img').length + document.querySelectorAll('script').length") == 2
    )


def test_5000_columns(window: Browser, tmp_path: Path) -> None:
    path, page, rng = tmp_path / "wide.parquet", tmp_path / "m.html", np.random.default_rng(1)
    pyparq.write_table({f"c{k:04}": rng.integers(0, 1000, 100) for k in range(5000)}, path, row_group_size=50)
    pyparq.ParquetFile(path).map(page)
    assert page.stat().st_size < 2 << 20
    shown(window, page, "5000-columns", height=1300)
    window.run("document.getElementById('find').value = 'c4321';"
               "document.getElementById('find').dispatchEvent(new Event('input'))")  # fmt: skip
    assert window.run("return document.getElementById('column-title').textContent") == "Column c4321"


def test_100000_pages(window: Browser, tmp_path: Path) -> None:
    path, page, rows = tmp_path / "pages.parquet", tmp_path / "m.html", 1_000_000
    rng = np.random.default_rng(1)
    data = {f"k{k}": np.arange(rows) if k % 2 else rng.permutation(rows) for k in range(5)}
    pyparq.write_table(data, path, row_group_size=250_000, max_rows_per_page=50)
    made = pyparq.ParquetFile(path).map(page, filters=col("k0") == 17)
    assert len(made.to_dict()["pages"]["size"]) == 100_000
    assert page.stat().st_size < 4 << 20
    shown(window, page, "100000-pages", height=1500)
    assert int(window.run("return document.body.dataset.parts")) > 100_000
    window.run("document.getElementById('grid').focus()")
    window.press("ArrowRight", "+", "+", "+", "ArrowRight")
    assert "page 1" in tip(window)
    assert window.errors() == []


@pytest.mark.parametrize("kind", ["empty", "no columns", "folder", "no index"])
def test_other_files(kind: str, window: Browser, tmp_path: Path) -> None:
    path, page = tmp_path / "x.parquet", tmp_path / "m.html"
    if kind == "empty":
        pyparq.write_table({"x": pa.array([], pa.int32())}, path)
    elif kind == "no columns":
        pq.write_table(pa.table({"x": [1, 2]}).select([]), path)
    elif kind == "no index":
        pq.write_table(pa.table({"x": list(range(50_000))}), path, data_page_size=10_000)
    else:
        pyparq.write_dataset({"x": list(range(600)), "y": [1, 2, 3] * 200}, tmp_path / "d", partition_cols=["y"])
        pyparq.dataset(tmp_path / "d").map(page, filters=(col("x") == 4) & (col("y") > 1))
    if kind != "folder":
        pyparq.ParquetFile(path).map(page)
    shown(window, page, kind.replace(" ", "-"))
    for canvas in ("bytes", "grid"):
        window.run("document.getElementById(arguments[0]).focus()", canvas)
        window.press("ArrowRight", "ArrowDown", "+", "-", "0", "End", "Home", "ArrowLeft", "ArrowUp")
    assert window.errors() == []
