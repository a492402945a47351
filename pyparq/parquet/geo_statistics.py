"""``pyarrow.parquet``'s GeoStatistics: the box around the geometries of a column chunk, and their types."""

from __future__ import annotations

from typing import Any


class GeoStatistics:
    """Statistics of a column chunk of geometries. What is not known is ``None``.

    ``xmin`` above ``xmax`` is a box across the antimeridian.
    """

    def __init__(self, stored: Any) -> None:
        self._stored = stored

    def _side(self, name: str) -> float | None:
        box = self._stored.bbox
        found: float | None = None if box is None else getattr(box, name)
        return found

    @property
    def geospatial_types(self) -> list[int] | None:
        """ISO WKB codes: 1 is a point, 1001 a point with z, 2001 with m, 3001 with both."""
        return list(self._stored.geospatial_types or ()) or None

    @property
    def xmin(self) -> float | None:
        return self._side("xmin")

    @property
    def xmax(self) -> float | None:
        return self._side("xmax")

    @property
    def ymin(self) -> float | None:
        return self._side("ymin")

    @property
    def ymax(self) -> float | None:
        return self._side("ymax")

    @property
    def zmin(self) -> float | None:
        return self._side("zmin")

    @property
    def zmax(self) -> float | None:
        return self._side("zmax")

    @property
    def mmin(self) -> float | None:
        return self._side("mmin")

    @property
    def mmax(self) -> float | None:
        return self._side("mmax")

    def to_dict(self) -> dict[str, Any]:
        """All of them, by name."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = ("geospatial_types", "xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
