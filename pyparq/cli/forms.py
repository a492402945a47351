"""The forms of files that commands read and write, by suffix."""

from __future__ import annotations

from pathlib import PurePath
from urllib.parse import urlsplit

import click

from pyparq.io.url import shown

FORMS = ("parquet", "csv", "jsonl", "arrow", "feather")

_SUFFIXES = {
    ".parquet": "parquet", ".parq": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "jsonl",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".arrow": "arrow", ".ipc": "arrow", ".arrows": "arrow",
    ".feather": "feather",
}  # fmt: skip
PACKED = (".gz", ".zst")


def form_of(path: str) -> str:
    """The form that the suffix of a path or URL stands for."""
    form = known_form(path)
    if form is None:
        raise click.UsageError(
            f"{shown(path)!r}: the suffix must be .parquet, .csv, .jsonl, .arrow or .feather",
            ctx=click.get_current_context(),
        )
    return form


def known_form(path: str) -> str | None:
    """The same; ``None`` for any other suffix."""
    return _SUFFIXES.get(suffix_of(path))


def suffix_of(path: str) -> str:
    return PurePath(urlsplit(path).path if "://" in path else path).suffix.lower()
