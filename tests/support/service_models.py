"""botocore's descriptions of services, read once for each process."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def keep_models() -> None:
    """botocore reads them anew for each client, which is more than half of what a client costs."""
    import botocore.loaders

    read, kept = botocore.loaders.JSONFileLoader.load_file, {}

    def load_file(self: Any, path: str) -> Any:
        if path not in kept:
            kept[path] = read(self, path)
        return kept[path]

    botocore.loaders.JSONFileLoader.load_file = load_file
