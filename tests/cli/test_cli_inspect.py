"""schema, meta, pages, index and bloom: what they print against pyarrow's metadata and against the bytes."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, refused, run, sample, write_sample

FLAT = [name for name in sample().column_names if name != "st"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("cli") / "sample.parquet")


def chunks(file: Path) -> Iterator[tuple[int, int, Any]]:
    metadata = pq.read_metadata(file)
    for k in range(metadata.num_row_groups):
        for c in range(metadata.num_columns):
            yield k, c, metadata.row_group(k).column(c)


# ---- schema


def test_schema_names_types_and_levels(file: Path) -> None:
    theirs = pq.ParquetFile(file).schema
    ours = as_json("schema", file, "--json")["columns"]
    leaves = [leaf for column in ours for leaf in column.get("children", [column])]
    assert [leaf["column"] for leaf in leaves] == list(range(len(theirs)))
    for leaf in leaves:
        column = theirs.column(leaf["column"])
        assert ".".join(leaf["path"]) == column.path
        assert leaf["physical_type"] == column.physical_type
        assert leaf["max_definition_level"] == column.max_definition_level
        assert leaf["max_repetition_level"] == column.max_repetition_level
    annotations = {leaf["path"][0]: leaf["annotation"] for leaf in leaves}
    assert annotations["price"] == "DECIMAL(12, 2)"
    assert annotations["ts"] == "TIMESTAMP(us, local)"
    assert annotations["utc"] == "TIMESTAMP(us, UTC)"
    assert annotations["small"] == "INTEGER(8, signed)"
    assert annotations["raw"] is None


def test_schema_shows_nesting(corpus: Path) -> None:
    text = ok("schema", corpus / "data" / "nested_maps.snappy.parquet")
    lines = [line[5:22].rstrip() for line in text.splitlines()[3:]]
    assert lines == [
        "a",
        "  key_value",
        "    key",
        "    value",
        "      key_value",
        "        key",
        "        value",
        "b",
        "c",
    ]


def test_schema_of_chosen_columns(file: Path) -> None:
    text = ok("schema", file, "--columns", 'st.x,"odd name, é"')
    assert [line.split("  ")[1:3] for line in text.splitlines()[3:]] == [["12", "st.x"], ["11", "odd name, é"]]


# ---- meta


def test_meta_of_the_file(file: Path) -> None:
    ours, theirs = as_json("meta", file, "--json"), pq.read_metadata(file)
    assert ours["size"] == file.stat().st_size
    assert ours["footer_size"] == theirs.serialized_size
    for name in ("num_rows", "num_row_groups", "num_columns", "created_by"):
        assert ours[name] == getattr(theirs, name)
    assert ours["row_groups"][0]["sorting_columns"] == [{"column": "day", "descending": False, "nulls_first": False}]
    assert "ARROW:schema" in ours["key_value_metadata"]


def test_meta_of_every_chunk(file: Path) -> None:
    ours = as_json("meta", file, "--json")["row_groups"]
    for k, c, theirs in chunks(file):
        chunk = ours[k]["columns"][c]
        assert ".".join(chunk["path"]) == theirs.path_in_schema
        assert chunk["codec"] == theirs.compression
        assert set(chunk["encodings"]) == set(theirs.encodings)
        assert chunk["num_values"] == theirs.num_values
        assert chunk["compressed_size"] == theirs.total_compressed_size
        assert chunk["uncompressed_size"] == theirs.total_uncompressed_size
        assert chunk["data_page_offset"] == theirs.data_page_offset
        assert chunk["null_count"] == theirs.statistics.null_count
        assert (chunk["column_index"] is not None) == theirs.has_column_index
        assert (chunk["offset_index"] is not None) == theirs.has_offset_index
        assert (chunk["bloom_filter"] is not None) == (theirs.path_in_schema in ("id", "note"))
        if theirs.statistics.has_min_max:
            assert chunk["min"] == as_text(theirs.statistics.min)
            assert chunk["max"] == as_text(theirs.statistics.max)


def as_text(value: Any) -> Any:
    """pyarrow's statistics value as our JSON puts it."""
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        if "T" not in text:
            return text
        zone = "Z" if value.tzinfo else ""
        text = text.removesuffix("+00:00")
        return text + ("" if "." in text else ".000000") + zone
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, (bool, int, str)):
        return value
    return pytest.approx(float(value), rel=1e-6) if isinstance(value, float) else str(value)


def test_meta_sums_up_row_groups(file: Path) -> None:
    text = ok("meta", file)
    line = next(line for line in text.splitlines() if re.match(r" +1  small ", line))
    stored = sum(c.total_compressed_size for _, _, c in chunks(file) if c.path_in_schema == "small")
    nulls = sum(c.statistics.null_count for _, _, c in chunks(file) if c.path_in_schema == "small")
    assert f" {stored:,} " in line
    assert f" 4,000 {nulls:6,} " in line
    assert line.split()[-4:-1] == ["-50", "49", "bounds"]
    assert "4,000 in 3 row groups" in text


def test_meta_of_one_row_group_lists_its_chunks(file: Path) -> None:
    text = ok("meta", file, "-g", "1", "-c", "id,day")
    theirs = pq.read_metadata(file).row_group(1).column(0)
    rows = [line.split() for line in text.splitlines() if re.match(r" +1  (id|day) ", line)]
    assert [row[1] for row in rows] == ["id", "day"]
    assert str(theirs.data_page_offset) in rows[0]
    assert "2020-03-16" in rows[1]
    head = next(line for line in text.splitlines() if line.lstrip().startswith("group"))
    at = head.index("offset") + len("offset")
    assert next(line for line in text.splitlines() if " id " in line)[:at].endswith(f" {theirs.data_page_offset}")


def test_meta_and_schema_show_what_a_damaged_file_still_says(corpus: Path) -> None:
    result = run("meta", corpus / "bad_data" / "ARROW-GH-41317.parquet")
    assert result.exit_code == 1
    assert "uint8" in result.stdout
    assert len(result.stderr.splitlines()) == 1
    assert "unknown type -7" in ok("schema", corpus / "bad_data" / "PARQUET-1481.parquet")


# ---- pages


def test_json_of_pages_where_one_chunk_is_damaged(tmp_path: Path) -> None:
    """The damaged chunk has its error, the other one its pages; and the command fails."""
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:12] = b"\xff" * 8  # the header of the first page
    path.write_bytes(data)
    result = run("pages", path, "--json")
    assert result.exit_code == 1
    damaged, sound = json.loads(result.stdout)
    assert set(damaged) == {"row_group", "column", "name", "path", "error"}
    assert damaged["error"].startswith("bad page header")
    assert damaged["error"] in result.stderr
    assert [page["values"] for page in sound["pages"]] == [2]


def test_pages_lie_end_to_end_and_their_crcs_are_right(file: Path) -> None:
    data = file.read_bytes()
    seen = 0
    for chunk in as_json("pages", file, "--json"):
        theirs = pq.read_metadata(file).row_group(chunk["row_group"]).column(chunk["column"])
        at = chunk["offset"]
        assert chunk["size"] == theirs.total_compressed_size
        for page in chunk["pages"]:
            assert page["offset"] == at
            body = at + page["header_size"]
            at = body + page["compressed_size"]
            assert page["crc"] == zlib.crc32(data[body:at])
            seen += 1
        assert at == chunk["offset"] + chunk["size"]
        pages = [p for p in chunk["pages"] if p["ordinal"] is not None]
        assert [p["ordinal"] for p in pages] == list(range(len(pages)))
        assert sum(p["values"] for p in pages) == theirs.num_values
        assert sum(p["rows"] for p in pages) == (1000 if chunk["row_group"] == 2 else 1500)
        assert (chunk["pages"][0]["type"] == "dictionary") == theirs.has_dictionary_page
    assert seen > 250


def test_pages_as_text(file: Path) -> None:
    text = ok("pages", file, "-c", "note", "-g", "2")
    lines = text.splitlines()
    assert lines[0].startswith("row group 2, column note: string, SNAPPY, 5 data pages and 1 dictionary in ")
    assert lines[1].split() == ["page", "type", "encoding", "values", "rows", "offset", "header", "compressed",
                                "uncompressed", "ratio", "CRC"]  # fmt: skip
    assert lines[3].split()[:4] == ["-", "dictionary", "PLAIN", "97"]
    assert [line.split()[:6] for line in lines[4:]] == [
        [str(n), "data", "v1", "RLE_DICTIONARY", "200", "200"] for n in range(5)
    ]
    assert all(line.endswith("yes") for line in lines[3:])


@pytest.mark.parametrize("page_size", [40, 4000, 400_000])
def test_pages_of_any_size_are_found(tmp_path: Path, page_size: int) -> None:
    """The walk reads headers through a window: pages far smaller and far larger than it."""
    path = tmp_path / "pages.parquet"
    strings = [f"{i:07d}" * 20 for i in range(20_000)]
    pq.write_table(
        pa.table({"s": strings}), path, data_page_size=page_size, use_dictionary=False, compression="none",
        write_batch_size=max(page_size // 150, 1), write_page_index=True, max_rows_per_page=20_000,
    )  # fmt: skip
    (chunk,), (index,) = as_json("pages", path, "--json"), as_json("index", path, "--json")
    assert [(p["offset"], p["header_size"] + p["compressed_size"], p["rows"]) for p in chunk["pages"]] == [
        (p["offset"], p["size"], p["rows"]) for p in index["pages"]
    ]
    assert sum(p["rows"] for p in chunk["pages"]) == 20_000


def test_pages_version_two_and_nested(corpus: Path) -> None:
    chunks_ = as_json("pages", corpus / "data" / "datapage_v2.snappy.parquet", "--json")
    data = [[p for p in c["pages"] if p["ordinal"] is not None] for c in chunks_]
    assert {p["type"] for pages in data for p in pages} == {"data v2"}
    assert [sum(p["nulls"] for p in pages) for pages in data[:4]] == [1, 0, 0, 0]
    assert data[4][0]["values"] == 10
    assert data[4][0]["rows"] == 5


# ---- index


def test_index_bounds_are_those_of_the_rows(file: Path) -> None:
    table = pq.read_table(file)
    checked = 0
    for chunk in as_json(
        "index", file, "-c", ",".join(f'"{name}"' for name in ("id", "small", "note", "day")), "--json"
    ):
        column = table[chunk["path"][0]]
        start = 1500 * chunk["row_group"]
        for page in chunk["pages"]:
            part = column.slice(start + page["first_row"], page["rows"])
            assert page["null_count"] == part.null_count
            low, high = pa.compute.min_max(part).as_py().values()
            assert page["min"] == as_text(low)
            assert page["max"] == as_text(high)
            checked += 1
        if chunk["path"][0] in ("day", "id"):
            assert chunk["boundary_order"] == {"day": "ascending", "id": "unordered"}[chunk["path"][0]]
    assert checked == 4 * (8 + 8 + 5)


def test_index_as_text(file: Path) -> None:
    lines = ok("index", file, "-c", "day", "-g", "0").splitlines()
    assert re.match(
        r"row group 0, column day: date, 8 pages, ascending \(ColumnIndex [\d,]+ bytes at \d+, Off", lines[0]
    )
    assert lines[3].split()[:3] == ["0", "0", "200"]
    assert lines[3].split()[-2:] == ["2020-01-01", "2020-01-10"]
    assert lines[4].split()[-2:] == ["2020-01-11", "2020-01-20"]


def test_index_of_a_file_without(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "plain.parquet")
    assert ok("index", tmp_path / "plain.parquet") == "no page index: 1 column chunk of 1\n"


def test_index_of_null_pages(corpus: Path) -> None:
    lines = ok("index", corpus / "data" / "int32_with_null_pages.parquet").splitlines()
    null = [line for line in lines if "(all null)" in line]
    assert [line.split()[:3] for line in null] == [["2", "200", "100"]]


# ---- bloom


def test_bloom_lists_every_filter(file: Path) -> None:
    document = as_json("bloom", file, "--json")
    assert document["layout"] == "all after the last row group (layout: footer)"
    assert [(f["row_group"], f["path"]) for f in document["filters"]] == [
        (k, [name]) for k in range(3) for name in ("id", "note")
    ]
    for entry in document["filters"]:
        distinct = {"id": 1500 if entry["row_group"] < 2 else 1000, "note": 97}[entry["path"][0]]
        assert entry["estimated_distinct"] == pytest.approx(distinct, rel=0.05)
    text = ok("bloom", file)
    assert text.startswith("6 Bloom filters, ")
    assert len(text.splitlines()) == 9


def test_bloom_rate_is_the_measured_one(file: Path) -> None:
    """The printed rate of the achieved fill against absent values, asked one by one."""
    rate = as_json("bloom", file, "id", "-g", "0", "--json")["filters"][0]["false_positive_rate"]
    absent = [2 * n + 1 for n in range(20_000)]
    probes = as_json("bloom", file, "id", *absent, "-g", "0", "--json")["probes"]
    hits = sum(p["row_groups"][0]["answer"] == "maybe" for p in probes)
    assert hits / len(absent) == pytest.approx(rate, abs=4 * np.sqrt(rate / len(absent)))


def test_bloom_finds_what_is_there(file: Path) -> None:
    ids = pq.read_table(file, columns=["id"])["id"].to_pylist()
    asked = [*ids[:3], *ids[-3:]]
    probes = as_json("bloom", file, "id", *asked, "--json")["probes"]
    for value, probe in zip(asked, probes, strict=True):
        home = ids.index(value) // 1500
        assert probe["value"] == str(value)
        assert probe["row_groups"][home] == {"row_group": home, "answer": "maybe"}
    absent = ok("bloom", file, "note", "nowhere").splitlines()
    assert [line.split()[2:] for line in absent[3:]] == [["certainly", "not"]] * 3
    assert "no filter" in ok("bloom", file, "day", "2020-01-01")
    assert ok("bloom", file, "id", "--", "-3.5").count("certainly not") == 3


def test_bloom_refuses(file: Path, corpus: Path) -> None:
    assert "'abc' is not a value of type int64" in refused(2, "bloom", file, "id", "abc")
    assert "prove nothing" in refused(2, "bloom", file, "flag", "true")
    assert "NaN" in refused(2, "bloom", file, "real", "nan")
    assert "did you mean 'note'" in refused(2, "bloom", file, "nota", "x")
    assert "'st.x'" in refused(2, "bloom", file, "st", "x")
    assert refused(1, "bloom", corpus / "data" / "bloom_filter.bin")


def test_bloom_between_row_groups(tmp_path: Path) -> None:
    import pyparq

    data = {"id": np.arange(300)}
    for layout, said in (("row_group", "each row group's right after it"), ("footer", "all after the last row group")):
        pyparq.write_table(
            data, tmp_path / "b.parquet", row_group_size=100, bloom_filters=["id"], bloom_filter_layout=layout
        )
        document = as_json("bloom", tmp_path / "b.parquet", "--json")
        assert document["layout"] == f"{said} (layout: {layout})"
        assert [f["row_group"] for f in document["filters"]] == [0, 1, 2]
