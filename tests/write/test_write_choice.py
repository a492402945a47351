"""The default encoding of a column: what is chosen, from what, and who reads it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok
from interop_peers import check_readers, compare, with_pyparq
from written import Written, write

import pyparq
from pyparq.errors import DataError
from pyparq.format import compression as encodings
from pyparq.format.compression import ENCODING_NAMES
from pyparq.format.types import Physical
from pyparq.write.encoding_choice import CANDIDATES, KEY, MIN_VALUES, MOST

pytest_plugins = ("spark_session",)

ROWS = 30_000
RNG = np.random.default_rng(11)
HEX = [bytes(raw).hex() for raw in RNG.integers(0, 256, (ROWS, 8), dtype=np.uint8)]
COLUMNS: dict[str, tuple[Any, str]] = {
    "rising": (np.cumsum(RNG.integers(0, 5_000, ROWS)), "DELTA_BINARY_PACKED"),
    "shuffled": (RNG.permutation(ROWS).astype(np.int32), "DELTA_BINARY_PACKED"),
    "any number": (RNG.integers(-(1 << 63), (1 << 63) - 1, ROWS), "PLAIN"),
    "few": (RNG.integers(0, 60, ROWS), "RLE_DICTIONARY"),
    "twice each": (np.repeat(np.cumsum(RNG.integers(1, 999, ROWS // 2)), 2), "DELTA_BINARY_PACKED"),
    "walk": (np.cumsum(RNG.normal(size=ROWS)), "BYTE_STREAM_SPLIT"),
    "walk of floats": (np.cumsum(RNG.normal(size=ROWS)).astype(np.float32), "BYTE_STREAM_SPLIT"),
    "any bits": (pa.array(RNG.integers(0, 1 << 64, ROWS, dtype=np.uint64).view(np.float64)), "PLAIN"),
    "two digits": (np.round(RNG.exponential(60, ROWS), 2), "RLE_DICTIONARY"),
    "hex": (HEX, "DELTA_LENGTH_BYTE_ARRAY"),
    "paths": ([f"/data/2026/{k:09d}" for k in range(ROWS)], "DELTA_BYTE_ARRAY"),
    "words": ([HEX[k % 40] for k in range(ROWS)], "RLE_DICTIONARY"),
    "long runs": (np.arange(ROWS) % 4000 < 2000, "RLE"),
    "coins": (RNG.random(ROWS) < 0.5, "PLAIN"),
    "fixed": (pa.array([bytes.fromhex(h) for h in HEX], pa.binary(8)), "PLAIN"),
    "unsigned": (pa.array(RNG.integers(0, 1 << 20, ROWS, dtype=np.uint32)), "DELTA_BINARY_PACKED"),
    "unsigned high bytes": (pa.array((RNG.random(ROWS) * (1 << 63)).astype(np.uint64) & 0xFFFF0000FF00FFFF), "PLAIN"),
    "lists": ([[k * 999 + j for j in range(k % 4)] if k % 5 else None for k in range(ROWS)], "DELTA_BINARY_PACKED"),
    "lists of hex": ([HEX[k : k + k % 3] for k in range(ROWS)], "DELTA_LENGTH_BYTE_ARRAY"),
    "structs": ([{"x": k / 7} if k % 9 else None for k in range(ROWS)], "BYTE_STREAM_SPLIT"),
    "nulls": ([None if k % 3 == 0 else k * 1000 for k in range(ROWS)], "DELTA_BINARY_PACKED"),
}
TABLE = pa.table({name: pa.array(values) for name, (values, _) in COLUMNS.items()})


@pytest.fixture(scope="module", params=["1.0", "2.0"])
def file(request: pytest.FixtureRequest) -> Written:
    return write(TABLE, data_page_version=request.param, row_group_size=20_000)


def last_encoding(file: Written, row_group: int, column: int) -> str:
    return ENCODING_NAMES[file.pages(row_group, column)[-1].detail.encoding]


def record(file: Written, row_group: int, column: int) -> dict[str, float] | None:
    for pair in file.chunk(row_group, column).meta_data.key_value_metadata or ():
        if pair.key == KEY:
            return {ENCODING_NAMES[int(e)]: float(size) for e, size in (i.split("=") for i in pair.value.split())}
    return None


def test_what_is_chosen(file: Written) -> None:
    for row_group in range(2):
        found = {name: last_encoding(file, row_group, k) for k, name in enumerate(COLUMNS)}
        assert found == {name: expected for name, (_, expected) in COLUMNS.items()}


@pytest.mark.slow
def test_all_peers_read_it(tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        for codec in ("snappy", "none", "zstd"):
            path = tmp_path / f"{version}{codec}.parquet"
            pyparq.write_table(TABLE, path, data_page_version=version, compression=codec, max_rows_per_page=7_000)
            check_readers(path, TABLE)
            compare(with_pyparq(path), TABLE, "pyparq")


@pytest.mark.spark
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_spark_reads_it(spark: Any, tmp_path: Path, version: str) -> None:
    path = tmp_path / "t.parquet"
    names = [name for name in COLUMNS if name != "any bits"]
    table = TABLE.select(names).slice(0, 5_000)
    pyparq.write_table(table, path, data_page_version=version, max_rows_per_page=2_000)
    with pyparq.ParquetFile(path) as file:
        used = {e for k in range(len(names)) for e in file.metadata.row_group(0).column(k).encodings}
    assert {"DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "RLE"} <= used
    found = spark.read.parquet(str(path)).toArrow()
    assert found.column_names == names
    for name in names:
        assert found[name].to_pylist() == table[name].to_pylist(), name


@pytest.mark.parametrize("mark", ["", "?"], ids=["required", "optional"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
def test_the_record_says_what_pages_take(codec: str, mark: str) -> None:
    """Each size is that of a page which another file really has."""
    names = ["rising", "hex", "long runs"] + ["walk"] * (codec != "none")  # which has no candidate without a codec
    schema = pyparq.schema({name: TYPES[name] + mark for name in names})
    chosen = write(TABLE.select(names), compression=codec, use_dictionary=False, schema=schema)
    for k, name in enumerate(names):
        sizes = record(chosen, 0, k)
        assert sizes is not None
        expected = {"PLAIN", *(ENCODING_NAMES[e] for e in CANDIDATES[Physical(chosen.chunk(0, k).meta_data.type)])}
        assert set(sizes) == (expected - {"BYTE_STREAM_SPLIT"} if codec == "none" else expected)
        assert next(iter(sizes)) == last_encoding(chosen, 0, k)
        for encoding, size in sizes.items():
            one = write({name: TABLE[name].to_numpy() if name != "hex" else HEX}, compression=codec,
                        column_encoding=encoding, schema=pyparq.schema({name: TYPES[name] + mark}))  # fmt: skip
            page = next(p for p in one.pages(0, 0) if p.detail.encoding != encodings.RLE_DICTIONARY)
            assert page.detail.num_values == 20_000
            near = 0.05 if name == "hex" else 0.006  # of texts a part is measured; of others three digits are kept
            assert len(page.body) / 20_000 == pytest.approx(size, rel=near)


TYPES = {"rising": "int64", "walk": "float64", "hex": "string", "long runs": "bool"}


def test_thresholds_hold(file: Written) -> None:
    """Of what was measured, nothing that was passed over would have taken the place of what was taken."""
    seen = 0
    for k in range(len(COLUMNS)):
        sizes = record(file, 0, k)
        if not sizes:
            continue
        best = "PLAIN"
        for encoding in CANDIDATES[Physical(file.chunk(0, k).meta_data.type)]:
            name = ENCODING_NAMES[encoding]
            if name in sizes and sizes[name] <= MOST[encoding] * sizes[best]:
                best = name
        assert next(iter(sizes)) == best
        seen += 1
    assert seen >= 10


def test_later_row_groups_follow_the_first(file: Written) -> None:
    for k in range(len(COLUMNS)):
        assert record(file, 1, k) is None
    values = np.concatenate([np.arange(1000), RNG.integers(-(1 << 63), (1 << 63) - 1, 1000)])
    drifting = write({"x": values}, row_group_size=1000)
    assert [last_encoding(drifting, g, 0) for g in range(2)] == ["DELTA_BINARY_PACKED"] * 2


def test_too_few_values_decide_nothing() -> None:
    """PLAIN then, and the next row group decides for itself."""
    file = write({"x": np.arange(3 * MIN_VALUES - 3)}, row_group_size=MIN_VALUES - 1)
    assert [(last_encoding(file, g, 0), record(file, g, 0)) for g in range(3)] == [("PLAIN", None)] * 3
    values = [None] * 1000 + list(range(2000))
    late = write({"x": values}, row_group_size=1000)
    assert [last_encoding(late, g, 0) for g in range(3)] == ["PLAIN", "DELTA_BINARY_PACKED", "DELTA_BINARY_PACKED"]
    assert [record(late, g, 0) is not None for g in range(3)] == [False, True, True]
    assert pq.read_table(io.BytesIO(late.data))["x"].to_pylist() == values


def test_threads_change_nothing() -> None:
    """Row groups encoded at once: the same bytes, whoever comes first."""
    table = pa.concat_tables([TABLE.select(["rising", "hex", "walk", "nulls"])] * 20)
    files = {write(table, row_group_size=70_000, use_threads=threads).data for threads in (False, True, True)}
    assert len(files) == 1


def test_a_first_row_group_that_fails_keeps_nobody_waiting() -> None:
    seconds = np.arange(600_000)
    seconds[10] = 1 << 62
    table = pa.table({"ok": np.arange(600_000), "t": pa.array(seconds, pa.timestamp("s"))})
    with pytest.raises(DataError, match="row 10"):
        write(table, row_group_size=150_000)


def test_by_name() -> None:
    values = {"x": np.arange(5000)}
    auto = write(values, column_encoding="auto")
    assert auto.data == write(values).data
    for name in ("PLAIN", "BYTE_STREAM_SPLIT"):
        file = write(values, column_encoding=name)
        assert last_encoding(file, 0, 0) == name
        assert record(file, 0, 0) is None


def test_pages_shows_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    names = ["rising", "few", "fixed", "any number"]
    pyparq.write_table(TABLE.select(names), path, row_group_size=20_000, column_encoding={"any number": "PLAIN"})
    reasons = {(c["row_group"], names[c["column"]]): c["encoding_reason"] for c in as_json("pages", path, "--json")}
    assert reasons[0, "rising"].startswith("DELTA_BINARY_PACKED: its first page stores ")
    assert "; others: PLAIN " in reasons[0, "rising"]
    assert reasons[1, "rising"].startswith("DELTA_BINARY_PACKED: the first page of row group 0 stores ")
    assert reasons[0, "few"] == "20,000 values as 60 dictionary entries, in fewer bytes than PLAIN"
    assert reasons[0, "fixed"].startswith("PLAIN: ")
    assert reasons[0, "any number"].startswith("PLAIN: chosen by the user")
    assert f"encoding: {reasons[0, 'rising']}" in ok("pages", path, "-c", "rising", "-g", "0")
    pq.write_table(TABLE.select(names), path)
    assert {c["encoding_reason"] for c in as_json("pages", path, "--json")} == {None}


def test_a_dictionary_that_fills_up(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    values = np.concatenate([RNG.integers(0, 50, 20_000), np.cumsum(RNG.integers(0, 999, 20_000))])
    pyparq.write_table({"x": values}, path, dictionary_pagesize_limit=4096, max_rows_per_page=2000)
    (chunk,) = as_json("pages", path, "--json")
    assert {p["encoding"] for p in chunk["pages"]} == {"PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"}
    assert "then the dictionary was full; DELTA_BINARY_PACKED: its first page stores" in chunk["encoding_reason"]
    assert pq.read_table(path)["x"].to_pylist() == values.tolist()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
def test_a_page_is_the_same_whether_it_was_tried_before(codec: str, version: str) -> None:
    """The first page that the choice has made is that of a file which had no choice."""
    for name in COLUMNS:
        options: dict[str, Any] = {"compression": codec, "data_page_version": version, "use_dictionary": False}
        table = TABLE.select([name])
        chosen = write(table, **options)
        encoding = last_encoding(chosen, 0, 0)
        asked = write(table, column_encoding=encoding, **options)
        for page, other in zip(chosen.pages(0, 0), asked.pages(0, 0), strict=True):
            assert bytes(page.body) == bytes(other.body), name


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("rows", [300, 2_000, 4_096, 9_000])
def test_dictionaries_at_the_edge_of_paying(rows: int, width: int) -> None:
    """A dictionary is written where its entries and indices take less than the values, and nowhere else."""
    kind = np.float32 if width == 4 else np.float64  # which have no other encoding than these two without a codec
    for distinct in sorted({max(1, round(rows * k / 64)) for k in range(40, 65)}):
        values = RNG.permutation(np.arange(rows) % distinct).astype(kind)
        file = write({"v": values}, compression="none")
        size = distinct * width + (rows * (distinct - 1).bit_length() + 7) // 8
        assert (file.chunk(0, 0).meta_data.dictionary_page_offset is not None) == (size < rows * width), (
            distinct,
            size,
        )


def test_plain_may_replace_a_dictionary() -> None:
    """A codec such as zstd takes sorted text with repeats for less than a dictionary and its indices."""
    words = pa.table({"s": sorted(f"name {n}" for n in np.random.default_rng(3).integers(0, 8000, ROWS))})
    chosen = write(words, compression="zstd")
    kept = write(words, compression="zstd", column_encoding="DICTIONARY")
    assert last_encoding(chosen, 0, 0) == "PLAIN"
    assert len(chosen.data) < 0.6 * len(kept.data)
