"""Patterns of text: SQL's LIKE as a regular expression, and the test of a pattern for one value."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyparq.errors import FilterError

Part = str | None
"""A piece of text that stands for itself. ``None``: any characters. ``""``: any one character."""


def parts_of(pattern: str, escape: str) -> list[Part]:
    """The parts of a LIKE pattern. Raises :class:`FilterError` for one that ends with its escape character."""
    found: list[Part] = []
    text, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            at += 1
            if at == len(pattern):
                raise FilterError(f"the pattern {pattern!r} ends with its escape character")
            char = pattern[at]
        elif char in "%_":
            found += [text] if text else []
            text = ""
            found.append(None if char == "%" else "")
            at += 1
            continue
        text, at = text + char, at + 1
    return found + ([text] if text else [])


def like_regex(pattern: str, escape: str) -> str:
    """A regular expression for the whole text (with ``re.DOTALL``)."""
    pieces = {None: ".*", "": "."}
    return "".join(pieces[part] if not part else re.escape(part) for part in parts_of(pattern, escape))


def text_test(kind: str, pattern: str | bytes, escape: str, is_text: bool) -> Callable[[bytes], bool]:
    """The test of one value. Regular expressions look at characters of a text and bytes of a binary value."""
    if kind in ("starts_with", "ends_with", "contains"):
        part = pattern if isinstance(pattern, bytes) else pattern.encode()
        return {
            "starts_with": lambda value: value.startswith(part),
            "ends_with": lambda value: value.endswith(part),
            "contains": lambda value: part in value,
        }[kind]
    assert isinstance(pattern, str)
    text = pattern if kind == "matches" else like_regex(pattern, escape)
    flags = re.NOFLAG if kind == "matches" else re.DOTALL
    if kind == "ilike":
        flags |= re.IGNORECASE
    if is_text:
        found = re.compile(text, flags)
        ask = found.search if kind == "matches" else found.fullmatch
        return lambda value: ask(value.decode("utf-8", "surrogateescape")) is not None
    raw = re.compile(text.encode(), flags)
    ask_raw = raw.search if kind == "matches" else raw.fullmatch
    return lambda value: ask_raw(value) is not None
