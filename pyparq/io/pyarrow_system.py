"""A file system of pyarrow as one of fsspec's."""

from __future__ import annotations

from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper


class PyarrowSystem(ArrowFSWrapper):  # type: ignore[misc]
    """Takes paths as they are: ``#`` and ``?`` are letters of names."""

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
        return super().cat_file(path, start, end, seekable=True, **options)

    @property
    def protocol(self) -> str:
        return str(self.fs.type_name).replace(":", "")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return str(path).rpartition("://")[2].rstrip("/")
