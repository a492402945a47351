"""Columns as the command line names them: ``a``, ``a.b``, ``"a, b"``, and ``a."b.c"`` for the exact path."""

from __future__ import annotations

import re

from pyparq.column_names import ColumnName

_QUOTED = r'"(?:[^"]|"")*"'
_NAME = rf'(?:{_QUOTED}|[^",.]+)'
_PATH = re.compile(rf"\s*({_NAME}(?:\.{_NAME})+)\s*(?:,|$)")
_FIELD = re.compile(rf"\s*({_QUOTED})?([^,]*)(?:,|$)")


def one_name(text: str) -> ColumnName:
    """One column, whatever commas its name holds."""
    if re.fullmatch(_QUOTED, text):
        return _plain(text)
    path = _PATH.fullmatch(text)
    return _parts(path[1]) if path is not None and '"' in text else text


def list_of_names(text: str) -> list[ColumnName]:
    """Names separated by commas, quoted as in CSV where they hold commas. ``""`` stands for a missing one."""
    found: list[ColumnName] = []
    at = 0
    while True:
        item = _PATH.match(text, at)
        if item is not None and '"' in item[1]:
            found.append(_parts(item[1]))
        else:
            item = _FIELD.match(text, at)
            assert item is not None, "anything is a field"
            found.append((_plain(item[1] or "") + item[2]).strip())
        at = item.end()
        if not item[0].endswith(","):
            return found


def _parts(path: str) -> tuple[str, ...]:
    names = [match[0] for match in re.finditer(_NAME, path)]
    return tuple(_plain(name) if name.startswith('"') else name.strip() for name in names)


def _plain(quoted: str) -> str:
    return quoted[1:-1].replace('""', '"')
