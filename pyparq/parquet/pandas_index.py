"""The index of a pandas frame, as the file's metadata describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping


def index_columns(metadata: Mapping[bytes, bytes] | None) -> list[str]:
    """Names of the columns that hold the index. A range index has none."""
    try:
        described = json.loads((metadata or {}).get(b"pandas", b"{}"))
        columns = described.get("index_columns", []) if isinstance(described, dict) else []
    except ValueError:
        return []
    return [name for name in columns if isinstance(name, str)]
