"""Boxes around geometries: in the metadata, as others compute them; and as a filter, which is exact."""

from __future__ import annotations

import io
import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_structs import Workpiece

import pyparq
import pyparq.parquet
from pyparq import col
from pyparq.errors import DataError, FilterError
from pyparq.filters.sql_text import parse_where
from pyparq.format import ttypes as tt

GEOMETRY, GEOGRAPHY = {"g": "geometry?"}, {"g": "geography?"}


def wkb(code: int, *rest: Any, order: str = "<") -> bytes:
    """ISO WKB: counts as int, coordinates as float, parts as bytes."""
    body = bytes([order == "<"]) + struct.pack(order + "I", code)
    for item in rest:
        body += (
            item if isinstance(item, bytes) else struct.pack(order + ("d" if isinstance(item, float) else "I"), item)
        )
    return body


def point(x: float, y: float, order: str = "<") -> bytes:
    return wkb(1, float(x), float(y), order=order)


def line(*points: tuple[float, float]) -> bytes:
    return wkb(2, len(points), *(float(v) for p in points for v in p))


def written(values: list[bytes | None], schema: dict[str, str] = GEOMETRY, **options: Any) -> bytes:
    sink = io.BytesIO()
    pyparq.write_table({"g": values}, sink, schema=schema, **options)
    return sink.getvalue()


def statistics_of(data: bytes, row_group: int = 0) -> dict[str, Any] | None:
    """As pyarrow reads them; pyparq reads the same."""
    found = pq.read_metadata(io.BytesIO(data)).row_group(row_group).column(0).geo_statistics
    ours = pyparq.parquet.read_metadata(data).row_group(row_group).column(0).geo_statistics
    assert (found is None) == (ours is None)
    if found is None or ours is None:
        return None
    assert ours.to_dict() == found.to_dict()
    return found.to_dict()


def of_geometry(path: Path, row_group: int) -> dict[str, Any]:
    chunks = pq.read_metadata(path).row_group(row_group)
    (found,) = [c for c in map(chunks.column, range(chunks.num_columns)) if c.path_in_schema == "geometry"]
    statistics: dict[str, Any] = found.geo_statistics.to_dict()
    return statistics


def box_of(data: bytes) -> tuple[float, ...] | None:
    found = statistics_of(data)
    return None if found is None or found["xmin"] is None else tuple(found[k] for k in ("xmin", "ymin", "xmax", "ymax"))


@pytest.mark.parametrize("dictionary", [True, False])
def test_the_statistics_of_the_corpus(corpus: Path, dictionary: bool) -> None:
    """Every type in every dimension, empties and nulls: what Arrow C++ wrote, from the values alone."""
    for name in ("geospatial", "geospatial-with-nan", "crs-default", "crs-srid"):
        path = corpus / "data" / "geospatial" / f"{name}.parquet"
        with pyparq.ParquetFile(path) as file:
            for k in range(file.num_row_groups):
                values = file.read_row_group(k, columns=["geometry"]).to_pydict()["geometry"]
                theirs = of_geometry(path, k)
                data = written(values, use_dictionary=dictionary)
                if all(v is None for v in values):
                    assert statistics_of(data) is None
                else:
                    assert statistics_of(data) == theirs


def test_the_points_of_the_corpus_on_a_globe(corpus: Path) -> None:
    """Boxes of another writer that cross the antimeridian, and rows that are found through them."""
    path = corpus / "data" / "geospatial" / "geography-points.parquet"
    crossing = 0
    with pyparq.ParquetFile(path) as file:
        for k in range(file.num_row_groups):
            values = file.read_row_group(k, columns=["geometry"]).to_pydict()["geometry"]
            theirs = of_geometry(path, k)
            ours = statistics_of(written(values, GEOGRAPHY))
            assert ours is not None
            crossing += ours["xmin"] > ours["xmax"]
            if not -180 < theirs["xmin"] <= theirs["xmax"] < 180:
                continue  # the other writer bounds groups around a pole by all longitudes
            for side in ("xmin", "xmax", "ymin", "ymax"):
                assert ours[side] == pytest.approx(theirs[side], abs=1e-9)
    assert crossing > 0


@pytest.mark.parametrize("version", ["V2", "NONE"])
def test_the_statistics_of_duckdb(version: str, tmp_path: Path) -> None:
    target = tmp_path / "duckdb.parquet"
    shapes = ["POINT Z (1 2 -7)", "POINT EMPTY", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))"]
    shapes += ["LINESTRING ZM (1 2 3 4, 5 6 7 8)", "GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (0 0, -3 1))"]
    rows = ", ".join(f"('{shape}'::geometry)" for shape in shapes)
    duckdb.sql(f"copy (from (values {rows}, (null)) t(g)) to '{target}' (geoparquet_version '{version}')")
    values = pyparq.read_table(target).to_pydict()["g"]
    ours, theirs = statistics_of(written(values)), statistics_of(target.read_bytes())
    assert ours is not None
    assert theirs is not None
    assert sorted(theirs.pop("geospatial_types")) == ours.pop("geospatial_types")
    assert ours == theirs
    found = pyparq.read_table(target, filters=col("g").intersects_box(-4, 0, -2, 2))
    assert found.to_pydict()["g"] == [values[4]]
    # DuckDB reads ours as geometries
    (tmp_path / "ours.parquet").write_bytes(written(values))
    assert duckdb.sql(f"select distinct typeof(g) from '{tmp_path}/ours.parquet'").fetchall() == [("GEOMETRY",)]


def test_both_byte_orders_and_nulls() -> None:
    data = written([point(1, 2), None, point(-5, 7, ">"), wkb(1, math.nan, math.nan)])
    assert box_of(data) == (-5, 2, 1, 7)
    assert box_of(written([wkb(1, 1.0, math.nan)])) is None  # no y: no box
    found = statistics_of(written([wkb(1, math.nan, math.nan)]))
    assert found is not None
    assert found["geospatial_types"] == [1]
    assert statistics_of(written([None, None])) is None


def test_across_the_antimeridian() -> None:
    values = [point(179, 1), point(-179, 2), point(170, 3)]
    assert box_of(written(values)) == (-179, 1, 179, 3)  # a plane has no antimeridian
    assert box_of(written(values, GEOGRAPHY)) == (170, 1, -179, 3)
    assert box_of(written([point(-10, 0), point(10, 0)], GEOGRAPHY)) == (-10, 0, 10, 0)
    assert box_of(written([point(181, 0)], GEOGRAPHY)) is None  # no longitude
    # An edge of a geography runs beyond the box around its ends.
    found = statistics_of(written([line((0, 50), (90, 50))], GEOGRAPHY))
    assert found is not None
    assert (found["geospatial_types"], found["ymax"]) == ([2], None)


@pytest.mark.parametrize("nested", [False, True])
def test_ewkb_is_refused(nested: bool) -> None:
    ewkb = struct.pack("<BIIdd", 1, 0x20000001, 4326, 1.0, 2.0)
    inside = wkb(7, 1, ewkb) if nested else ewkb
    with pytest.raises(DataError, match=r"EWKB.*column g"):
        written([point(1, 1), inside])
    plain = written([point(1, 1), inside], {"g": "binary"})
    with pytest.raises(FilterError, match=r"value 1: the value is EWKB.*column g"):
        pyparq.read_table(plain, filters=col("g").intersects_box(0, 0, 2, 2))


BAD = [b"", b"\1", b"\2\1\0\0\0", wkb(8), wkb(4001), wkb(0), point(1, 2)[:-1], point(1, 2) + b"x", wkb(2, 1 << 31)]
BAD += [wkb(4, 1, line((0, 0))), wkb(6, 1 << 30), wkb(7, 1) * 40, b"no WKB at all"]


@pytest.mark.parametrize("value", BAD)
def test_what_is_no_wkb_has_no_statistics(value: bytes) -> None:
    """It is written as it is, as before; a filter says that it needs WKB."""
    data = written([point(1, 1), value])
    assert statistics_of(data) is None
    if value:
        with pytest.raises(FilterError, match=r"needs ISO WKB: value 1.*column g"):
            pyparq.read_table(data, filters=col("g").intersects_box(0, 0, 2, 2))


def test_random_bytes_do_no_harm() -> None:
    rng = random.Random(1)
    good = wkb(7, 3, point(1, 2), line((0, 0), (3, 4)), wkb(3, 1, 4, *(float(v) for v in (0, 0, 1, 0, 1, 1, 0, 0))))
    for _ in range(500):
        value = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            value[rng.randrange(len(value))] = rng.randrange(256)
        try:
            written([bytes(value[: rng.randint(0, len(value))])])
        except DataError as error:
            assert "EWKB" in str(error)  # noqa: PT017


def boxes(n: int, seed: int) -> list[tuple[float, float, float, float]]:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-100, 100, n).round(1), rng.uniform(-50, 50, n).round(1)
    width, height = rng.exponential(3, n).round(1), rng.exponential(3, n).round(1)
    return list(zip(x.tolist(), y.tolist(), (x + width).tolist(), (y + height).tolist(), strict=True))


@pytest.mark.parametrize("kind", ["geometry", "geography", "binary"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_rows_by_their_boxes(kind: str, dictionary: bool) -> None:
    rows = sorted(boxes(3000, 1))
    values: list[bytes | None] = [line((a, d), (c, b)) for a, b, c, d in rows]
    values[7::50] = [None] * len(values[7::50])
    data = written(values, {"g": f"{kind}?"}, row_group_size=500, use_dictionary=dictionary)
    for wanted in [
        (0, 0, 10, 10),
        (-100, -50, -99, 50),
        (5.0, 5.0, 5.0, 5.0),
        (200, 0, 300, 1),
        (-1e300, -90, 1e300, 90),
    ]:
        inside = [
            v is not None and a <= wanted[2] and c >= wanted[0] and b <= wanted[3] and d >= wanted[1]
            for v, (a, b, c, d) in zip(values, rows, strict=True)
        ]
        expected = [v for v, keep in zip(values, inside, strict=True) if keep]
        assert pyparq.read_table(data, filters=col("g").intersects_box(*wanted)).to_pydict()["g"] == expected
        others = [v for v, keep in zip(values, inside, strict=True) if not keep and v is not None]
        assert pyparq.read_table(data, filters=~col("g").intersects_box(*wanted)).to_pydict()["g"] == others


def test_row_groups_are_pruned_and_explain_says_so() -> None:
    values = [point(x, x % 7) for x in range(1000)]
    for schema in (GEOMETRY, GEOGRAPHY):
        data = written(
            [point(x / 10, x % 7) for x in range(1000)] if schema is GEOGRAPHY else values, schema, row_group_size=100
        )
        with pyparq.ParquetFile(data) as file:
            scan = file.scan(filters=col("g").intersects_box(50, 0, 51, 9))
            assert scan.count() == (11 if schema is GEOGRAPHY else 2)
            explained = str(scan.explain())
        assert "g intersects box (50.0, 0.0, 51.0, 9.0)" in explained
        assert "1 of 10" in explained or "10 -> 1" in explained or "10 → 1" in explained, explained


def test_a_box_across_the_antimeridian() -> None:
    values = [point(x, 0) for x in range(-180, 180, 10)]
    for schema in (GEOMETRY, GEOGRAPHY):
        data = written(values, schema, row_group_size=6)
        found = pyparq.read_table(data, filters=col("g").intersects_box(165, -1, -165, 1)).to_pydict()["g"]
        assert found == [v for v, x in zip(values, range(-180, 180, 10), strict=True) if x >= 165 or x <= -165]


def with_statistics(data: bytes, found: Any) -> bytes:
    piece = Workpiece(data)
    piece.meta.row_groups[0].columns[0].meta_data.geospatial_statistics = found
    return piece.with_footer(piece.meta)


def test_odd_statistics_prove_nothing() -> None:
    """NaN, turned latitudes, and a box across the antimeridian around what is no point."""
    data = written([line((-179, 0), (179, 1))])
    nan = math.nan
    for box, types in [
        ((nan, nan, nan, nan), [2]), ((1, 2, 5, -5), [2]), ((170, -170, 0, 1), [2]), ((170, -170, 0, 1), []),
        ((170, -170, 0, 1), None),
    ]:  # fmt: skip
        stored = tt.GeospatialStatistics(bbox=tt.BoundingBox(*map(float, box)), geospatial_types=types)
        changed = with_statistics(data, stored)
        assert pyparq.read_table(changed, filters=col("g").intersects_box(0, 0, 1, 1)).num_rows == 1
    honest = tt.GeospatialStatistics(bbox=tt.BoundingBox(170.0, -170.0, 0.0, 1.0), geospatial_types=[1])
    assert pyparq.read_table(with_statistics(data, honest), filters=col("g").intersects_box(0, 0, 1, 1)).num_rows == 0


def test_wrong_questions() -> None:
    data = written([point(1, 1)])
    for box in [(0, 0, nan := math.nan, 1), ("0", 0, 1, 1), (0, 2, 1, 1)]:
        with pytest.raises(FilterError):
            col("g").intersects_box(*box)
    assert nan != nan
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": [1]}), sink)
    with pytest.raises(FilterError, match="needs a geometry column, not"):
        pyparq.read_table(sink.getvalue(), filters=col("n").intersects_box(0, 0, 1, 1))
    assert pyparq.read_table(data, filters=col("g").intersects_box(1, 1, 1, 1)).num_rows == 1


def condition_of(data: bytes, text: str) -> Any:
    with pyparq.ParquetFile(data) as file:
        return parse_where(text, file.tree)


def test_in_sql() -> None:
    data = written([point(x, 0) for x in range(-5, 5)])
    condition = "ST_Intersects_Extent(g, ST_MakeEnvelope(-2.5, -1, 1, 1e3))"
    assert pyparq.read_table(data, filters=condition_of(data, condition)).num_rows == 4
    assert pyparq.read_table(data, filters=condition_of(data, f"not {condition}")).num_rows == 6
    for wrong in ("ST_Intersects_Extent(g, g)", "ST_Intersects_Extent(g, ST_MakeEnvelope(1, 2, 3))"):
        with pytest.raises(FilterError, match="ST_MakeEnvelope"):
            pyparq.read_table(data, filters=condition_of(data, wrong))


def test_over_files(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / f"{k}.parquet").write_bytes(written([point(10 * k, 0), None]))
    assert pyparq.read_table(tmp_path, filters=col("g").intersects_box(9, -1, 11, 1)).to_pydict()["g"] == [point(10, 0)]


def test_no_statistics_where_none_are_wanted() -> None:
    assert statistics_of(written([point(1, 1)], write_statistics=False)) is None


def test_geoparquet_metadata_stay(tmp_path: Path) -> None:
    """`geo` of GeoParquet, as DuckDB writes it: kept when files are rewritten or joined, written where given."""
    source = tmp_path / "a.parquet"
    duckdb.sql(f"copy (select 'POINT (1 2)'::geometry g) to '{source}' (geoparquet_version 'V2')")
    geo = pq.read_metadata(source).metadata[b"geo"]
    assert json.loads(geo)["version"] == "2.0.0"
    pyparq.rewrite(source, tmp_path / "rewritten.parquet", compression="zstd")
    pyparq.merge([source, source], tmp_path / "merged.parquet")
    pyparq.write_table(pyparq.read_table(source), tmp_path / "read.parquet")
    for name in ("rewritten", "merged", "read"):
        path = tmp_path / f"{name}.parquet"
        assert pq.read_metadata(path).metadata[b"geo"] == geo
        assert duckdb.sql(f"select count(*), any_value(typeof(g)) from '{path}'").fetchall()[0][1] == "GEOMETRY"
        assert box_of(path.read_bytes()) == (1, 2, 1, 2)
    given = io.BytesIO()
    pyparq.write_table({"g": [point(1, 2)]}, given, schema=GEOMETRY, key_value_metadata={"geo": geo})
    assert pq.read_metadata(given).metadata[b"geo"] == geo
