"""Each block of code in the README and in ``docs/`` runs as copied, or says why it does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs_blocks import DATA, RUNS, Block, blocks, pages, run
from docs_files import prepare
from s3_server import serve

PAGES = pages()
ON_STORES = ["docs/s3.md", "docs/urls.md", "docs/async.md", "docs/own-stores.md"]
HERE = [page for page in PAGES if any(b.runs and not b.spark for b in blocks(page)) and page not in ON_STORES]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server that ``s3://`` leads to, with files that everybody may read."""
    with serve() as s3:
        for name, value in {"AWS_ENDPOINT_URL": s3.url, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "some-key",
                            "AWS_SECRET_ACCESS_KEY": "some-secret"}.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        yield s3


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    """A block that turns debug lines on must not do so for later tests."""
    yield
    logging.getLogger("pyparq").setLevel(logging.NOTSET)


def those_without_spark(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.runs and not block.spark]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("page", HERE)
def test_blocks_run(folder: Path, page: str) -> None:
    prepare(page)
    run(page, those_without_spark(page), {})


@pytest.mark.parametrize("page", ON_STORES)
def test_blocks_run_on_a_store(folder: Path, store: Any, page: str) -> None:
    prepare(page)
    run(page, those_without_spark(page), {})


def test_what_does_not_run_says_why() -> None:
    """A new reason is looked at here: most blocks can run."""
    found = [b for page in PAGES for b in blocks(page)]
    reasons = {b.note.removeprefix("not run: ") for b in found if b.note.startswith("not run: ")}
    assert reasons == {
        "needs a server that asks for a token", "submits a job to a cluster", "installs packages", "needs a table",
        "needs a bucket that keeps versions",
    }  # fmt: skip
    assert [f"{b.page}:{b.line}: {b.language}" for b in found if b.language not in (*RUNS, *DATA)] == []
    assert [f"{b.page}:{b.line}" for b in found if b.language == ""] == [], "name the language: text, if it is none"
    assert sum(b.runs for b in found) > 45
