"""Boxes in columns of their own (GeoParquet 1.1): they rule out row groups and pages, and never a row that matches."""

from __future__ import annotations

import io
import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import col
from pyparq.encryption import DecryptionProperties, EncryptionProperties

SIDES = ("xmin", "ymin", "xmax", "ymax")


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def line(*points: tuple[float, float]) -> bytes:
    return struct.pack("<BII", 1, 2, len(points)) + b"".join(struct.pack("<dd", *p) for p in points)


def metadata(covering: Any = None, **more: Any) -> bytes:
    covering = {"bbox": {side: ["bbox", side] for side in SIDES}} if covering is None else covering
    column = {"encoding": "WKB", "geometry_types": [], "covering": covering, **more}
    return json.dumps({"version": "1.1.0", "primary_column": "geom", "columns": {"geom": column}}).encode()


def table(shapes: list[Any], geo: bytes, dtype: Any = None, boxes: Any = None) -> pa.Table:
    """``shapes``: lists of points; ``None`` is null. The columns that geopandas writes."""
    geometries = [None if s is None else point(*s[0]) if len(s) == 1 else line(*s) for s in shapes]
    if boxes is None:
        boxes = [None if not s else [f(p[k] for p in s) for f in (min, max) for k in (0, 1)] for s in shapes]
    type_ = pa.struct([(side, dtype or pa.float64()) for side in SIDES])
    bbox = [None if b is None else dict(zip(SIDES, b, strict=True)) for b in boxes]
    columns = {"k": list(range(len(shapes))), "geom": pa.array(geometries, pa.binary()), "bbox": pa.array(bbox, type_)}
    return pa.table(columns).replace_schema_metadata({b"geo": geo})


def stored(given: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(given, out, **{"row_group_size": 50, "write_page_index": True, **options})
    return out.getvalue()


def some_shapes(count: int = 400) -> list[Any]:
    rng = random.Random(5)
    starts = sorted(rng.uniform(-170, 170) for _ in range(count))
    made: list[Any] = []
    for x in starts:
        y = rng.uniform(-80, 80)
        made.append(rng.choice([None, [(x, y)], [(x, y)], [(x, y), (x + rng.uniform(0, 9), y + 3)]]))
    return made


def found(data: Any, box: tuple[float, ...], **options: Any) -> list[int]:
    rows: list[int] = pyparq.read_table(data, ["k"], filters=col("geom").intersects_box(*box), **options)[
        "k"
    ].to_pylist()
    return rows


def explained(data: bytes, filters: Any) -> Any:
    with pyparq.ParquetFile(data) as file:
        scan = file.scan(["k"], filters=filters)
        scan.to_table()
        return scan.explain()


BOXES = [(0, 0, 10, 10), (-30, -90, -20, 90), (170, -10, -170, 10), (50.5, -80, 50.6, 80), (-180, -90, 180, 90)]


@pytest.mark.parametrize("dtype", [pa.float64(), pa.float32()], ids=str)
def test_the_same_rows_with_fewer_row_groups_and_pages(dtype: Any, tmp_path: Path) -> None:
    shapes = some_shapes()
    with_boxes, without = (stored(table(shapes, geo, dtype)) for geo in (metadata(), b"{}"))
    for box in BOXES:
        assert found(with_boxes, box) == found(without, box)
    narrow = col("geom").intersects_box(-30, -90, -20, 90)
    assert (explained(without, narrow).row_groups, explained(with_boxes, narrow).row_groups) == (8, 1)
    pages = stored(table(shapes, metadata(), dtype), row_group_size=400, max_rows_per_page=20, use_dictionary=False)
    assert explained(pages, narrow).candidate_rows <= 80
    assert found(pages, BOXES[1]) == found(without, BOXES[1])
    other = explained(with_boxes, narrow | (col("k") == 390))
    assert (other.row_groups, other.rows) == (2, len(found(without, BOXES[1])) + 1)
    assert explained(with_boxes, ~narrow).row_groups == 8
    for k, data in enumerate((with_boxes, without)):
        (tmp_path / f"{k}.parquet").write_bytes(data)
    assert found(tmp_path, BOXES[1]) == found(without, BOXES[1]) * 2


def test_rows_without_a_box_are_kept() -> None:
    """Boxes that are null where the geometry is not prove nothing. Empty geometries have boxes of NaN, or none."""
    shapes = [[(k, 0.0)] for k in range(100)]
    boxes: list[Any] = [[k, 0, k, 0] for k in range(100)]
    boxes[90] = None
    shapes[3], boxes[3] = [(math.nan, math.nan)], [math.nan] * 4
    data = stored(table(shapes, metadata(), boxes=boxes))
    assert found(data, (89.5, -1, 90.5, 1)) == [90]
    assert found(data, (2.5, -1, 4.5, 1)) == [4]
    assert explained(data, col("geom").intersects_box(2.5, -1, 4.5, 1)).row_groups == 2  # the null box may be anywhere


def test_boxes_that_were_rounded() -> None:
    """A float of 32 bits beside the coordinate, inside the geometry: the row is found."""
    x = 0.1
    near = float(np.nextafter(np.float32(x), np.float32(1)))
    data = stored(table([[(x, 0.0)]] * 10, metadata(), pa.float32(), [[near, 0, near, 0]] * 10))
    assert found(data, (x, -1, x, 1)) == list(range(10))
    assert found(data, (near, -1, 1, 1)) == []


@pytest.mark.parametrize("geo", [
    metadata(edges="spherical"), metadata(bbox=[170.0, -10.0, -170.0, 10.0]), metadata(bbox=[170, 0, 0, -170, 1, 1]),
], ids=["spherical", "crossing", "crossing with z"])  # fmt: skip
def test_across_the_antimeridian_only_y_counts(geo: bytes) -> None:
    """A box that crosses has a larger xmin than xmax."""
    shapes = [[(175.0, float(k)), (180.0, float(k)), (-180.0, float(k)), (-175.0, float(k))] for k in range(100)]
    data = stored(table(shapes, geo, boxes=[[175, k, -175, k] for k in range(100)]))
    assert found(data, (178, 10, 179, 12)) == [10, 11, 12]
    assert explained(data, col("geom").intersects_box(178, 10, 179, 12)).row_groups == 1


HOSTILE: dict[str, bytes] = {
    "nothing": b"", "no json": b"{", "a list": b"[]", "a number": b"7", "no columns": b"{}", "not utf-8": b'{"\xff',
    "columns are a list": b'{"columns": []}', "deep": b'{"columns":' + b"[" * 100_000,
    "null": b'{"columns": {"geom": null}}',
    "no covering": metadata({}), "no sides": metadata({"bbox": {"xmin": ["bbox", "xmin"]}}),
    "absent": metadata({"bbox": {side: ["bbox", "x"] for side in SIDES}}),
    "numbers": metadata({"bbox": {side: [1, 2] for side in SIDES}}),
    "text": metadata({"bbox": dict.fromkeys(SIDES, "bbox")}), "integers": metadata({"bbox": {s: ["k"] for s in SIDES}}),
    "groups": metadata({"bbox": {side: ["bbox"] for side in SIDES}}), "deeper": metadata({"bbox": [["bbox"]]}),
    "bbox is text": metadata(bbox="everywhere"), "bbox holds text": metadata(bbox=["a", 1, 2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_metadata_that_means_nothing(name: str) -> None:
    shapes = some_shapes(100)
    data, plain = stored(table(shapes, HOSTILE[name])), stored(table(shapes, b"{}"))
    assert found(data, BOXES[1]) == found(plain, BOXES[1])


def test_a_covering_whose_key_is_not_known() -> None:
    """Nobody asked for these columns, so they are not missed."""
    out = io.BytesIO()
    keys = EncryptionProperties(b"k" * 16, column_keys={"bbox": b"b" * 16})
    pyparq.write_table(table(some_shapes(100), metadata()), out, encryption=keys, row_group_size=25)
    opens = DecryptionProperties(b"k" * 16)
    assert found(out.getvalue(), BOXES[1], decryption=opens) == found(stored(table(some_shapes(100), b"{}")), BOXES[1])


def test_the_metadata_goes_with_the_data(tmp_path: Path) -> None:
    """From a file that is read, by a rewrite, and by a merge: the boxes still rule out row groups."""
    given = table(some_shapes(), metadata())
    first = tmp_path / "a.parquet"
    first.write_bytes(stored(given))
    pyparq.write_table(pyparq.read_table(first), tmp_path / "b.parquet", row_group_size=50)
    pyparq.write_table(given, tmp_path / "c.parquet", row_group_size=50)
    pyparq.rewrite(first, tmp_path / "d.parquet", row_group_size=50)
    pyparq.merge([first, first], tmp_path / "e.parquet")
    narrow = col("geom").intersects_box(-30, -90, -20, 90)
    for name in "bcde":
        data = (tmp_path / f"{name}.parquet").read_bytes()
        assert pyparq.ParquetFile(data).key_value_metadata[b"geo"] == metadata()
        assert explained(data, narrow).row_groups == (2 if name == "e" else 1)
