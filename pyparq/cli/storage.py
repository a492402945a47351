"""``--storage``: options for the file system of a URL, from the command line and the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from pyparq.errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "PYPARQ_STORAGE"
"""Environment variable: options as a JSON object."""


def STORAGE(command: F) -> F:
    """Options for the file system of a URL."""
    return click.option(
        "--storage", metavar="KEY=VALUE", multiple=True, expose_value=False, callback=_remember,
        help="An option for the file system of a URL, such as anon=true or client_kwargs.region_name=eu-west-1. May be "
        f"repeated. Set {VARIABLE} to a JSON object for options that others must not see.",
    )(command)  # fmt: skip


def _remember(ctx: click.Context, param: click.Parameter, given: Sequence[str]) -> None:
    ctx.meta["pyparq.storage"] = tuple(given)


def storage_for(*sources: Any) -> dict[str, Any] | None:
    """The options, if any of the sources is a URL; ``None`` without options."""
    if not any(isinstance(source, str) and "://" in source for source in sources):
        return None
    options = _from_environment()
    for text in click.get_current_context().meta.get("pyparq.storage", ()):
        _set(options, text)
    return options or None


def _from_environment() -> dict[str, Any]:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):  # not shown: it may hold a secret
        raise OptionError(f'{VARIABLE} must be a JSON object such as {{"anon": true}}')
    return found


def _set(options: dict[str, Any], text: str) -> None:
    """``a.b=c`` as ``{"a": {"b": "c"}}``. A value that is JSON means what it says in JSON; any other is text."""
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise OptionError("--storage must be KEY=VALUE, such as anon=true")
    *outer, last = key.split(".")
    for name in outer:
        options = options.setdefault(name, {})
        if not isinstance(options, dict):
            raise OptionError(f"--storage {key}: {name} has a value already")
    try:
        options[last] = json.loads(value)
    except ValueError:
        options[last] = value
