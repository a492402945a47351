"""Partition values in the names of folders, escaped as Hive and Spark do it: ``a=x%2Fy``."""

from __future__ import annotations

import re

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of a null, as Hive and Spark write it."""

_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^") | {chr(code) for code in range(1, 32)}
"""What Spark's ``ExternalCatalogUtils`` escapes on Linux."""
_CODE = re.compile("%([0-9A-Fa-f]{2})")


def escaped(text: str) -> str:
    """``text`` as it is written in the name of a folder."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def unescaped(name: str) -> str:
    """The original text of :func:`escaped`. Names in which all UTF-8 bytes are percent-encoded (by pyarrow) are
    understood too."""
    if "%" not in name:
        return name
    raw = _CODE.sub(lambda found: chr(int(found[1], 16)), name)
    if not any(int(code, 16) >= 0x80 for code in _CODE.findall(name)):
        return raw
    from urllib.parse import unquote

    return unquote(name, errors="surrogateescape")
