"""The map of a file says what the footer, the indexes and explain() say, for files of several writers."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import write_sample
from click.testing import CliRunner

import pyparq
from pyparq import col
from pyparq.cli.app import app
from pyparq.read.page_fates import (
    BLOOM,
    DICTIONARY,
    NOT_ASKED,
    OTHER,
    PAGE_INDEX,
    PARTITION,
    READ,
    STATISTICS,
    VALUES,
    Fates,
    placed_pages,
)
from pyparq.read.scan import traced

ROWS = 6000
HOSTILE = "</script><script>document.title='hacked'</script>"


def events(rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "time": np.arange(rows), "id": rng.permutation(rows) * 2,
        "country": [["NO", "SE", "DE"][k] for k in rng.integers(0, 3, rows)], "amount": rng.normal(size=rows),
    }  # fmt: skip


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("map") / "events.parquet"
    pyparq.write_table(
        events(), path, row_group_size=2000, max_rows_per_page=250, bloom_filters={"id": 0.001}, compression="zstd"
    )
    return path


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/(\w+)">(.*?)</script>', page, re.S)
    assert found is not None
    text = found[2] if found[1] == "json" else zlib.decompress(base64.b64decode(found[2])).decode()
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def page_places(document: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(chunk, offset, size) of each page, as the page's script finds them."""
    chunks, pages, found, p = document["chunks"], document["pages"], [], 0
    for c, count in enumerate(chunks["listed"]):
        at = chunks["start"][c] + chunks.get("dictionary", [0] * (c + 1))[c]
        for _ in range(count):
            at += pages["skip"][p] if "skip" in pages else 0
            found.append((c, at, pages["size"][p]))
            at += pages["size"][p]
            p += 1
    return found


def check_against_footer(path: Path, document: dict[str, Any], **options: Any) -> None:
    """Chunks, pages and indexes lie where the footer and the OffsetIndexes say, and nothing overlaps."""
    with pyparq.ParquetFile(path, **options) as file:
        wide, chunks = len(file.tree.leaves), document["chunks"]
        assert document["groups"] == [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        assert [c["name"] for c in document["columns"]] == [leaf.dotted for leaf in file.tree.leaves]
        places = page_places(document)
        for g in range(file.num_row_groups):
            for c in range(wide):
                chunk, at = file.metadata.row_group(g).column(c), g * wide + c
                assert (chunks["start"][at], chunks["size"][at]) == (chunk.file_offset, chunk.total_compressed_size)
                assert chunks["codec"][at] == chunk.compression
                locations = file.page_locations(g, c)
                mine = [(offset, size) for n, offset, size in places if n == at]
                if locations is not None:
                    stored = zip(locations.offsets.tolist(), locations.sizes.tolist(), strict=True)
                    assert mine == list(stored)
                assert (
                    sum(size for _, size in mine) + chunks.get("dictionary", [0] * (at + 1))[at] == chunks["size"][at]
                )
        spans = sorted((offset, offset + size) for _, offset, size in places if size)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert document["files"][0]["size"] == path.stat().st_size
        assert path.read_bytes()[document["files"][0]["footer"] - 4 :][:4] != b""


@pytest.mark.parametrize("writer", ["pyparq", "pyarrow", "pyarrow-v2", "no-index", "polars", "sample", "nested"])
def test_the_map_is_what_the_footer_says(writer: str, tmp_path: Path, ours: Path) -> None:
    path, data = tmp_path / "x.parquet", pa.table(events())
    if writer == "pyparq":
        path = ours
    elif writer == "pyarrow":
        pq.write_table(data, path, row_group_size=2500, write_page_index=True, max_rows_per_page=300)
    elif writer == "pyarrow-v2":
        pq.write_table(data, path, data_page_version="2.0", data_page_size=2000, use_dictionary=False)
    elif writer == "no-index":
        pq.write_table(data, path, row_group_size=2500, data_page_size=3000)
    elif writer == "polars":
        pl.DataFrame(events()).write_parquet(path, row_group_size=2000)
    elif writer == "sample":
        write_sample(path)
    else:
        pyparq.write_table({"l": [[1, 2], [], None, [3]] * 500, "s": [{"x": k} for k in range(2000)]}, path)
    with pyparq.ParquetFile(path) as file:
        document = file.map().to_dict()
    check_against_footer(path, document)
    assert document["query"] is None
    assert "fate" not in document["pages"]
    assert data_of(pyparq.ParquetFile(path).map().html) == json.loads(json.dumps(document))


def test_pages_without_an_index_come_from_their_headers(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(events()), path, data_page_size=2000, use_dictionary=False)
    with pyparq.ParquetFile(path) as file:
        document = file.map().to_dict()
        stored = [page for c in range(4) for page in file.pages(0, c)]
    assert document["chunks"]["known"] == [2, 2, 2, 2]
    assert document["pages"]["rows"] == [page.num_values for page in stored]
    assert document["pages"]["encoding"] == [page.encoding for page in stored]


QUERIES = {
    "statistics": (col("time") < 100, STATISTICS),
    "bloom": (col("id") == 7, BLOOM),
    "page index": ((col("time") >= 100) & (col("time") < 300), PAGE_INDEX),
    "dictionary": (col("country") == "NP", DICTIONARY),
    "values": ((col("id") == 4) & (col("amount") > -100), VALUES),
}


@pytest.mark.parametrize("name", QUERIES)
def test_each_page_has_its_fate(name: str, ours: Path) -> None:
    """Pages read are those that the scan decoded, and each stage that removed rows has coloured pages."""
    filters, stage = QUERIES[name]
    with pyparq.ParquetFile(ours) as file:
        made = file.map(filters=filters, columns=["time", "amount"])
        scan = file.scan(["time", "amount"], filters)
        explained = scan.explain()
    document = made.to_dict()
    fates = document["pages"]["fate"]
    assert Counter(fates)[READ] == explained.pages_decoded
    assert stage in fates
    query = document["query"]
    assert (query["bytes_fetched"], query["requests"]) == (explained.bytes_fetched, explained.requests)
    assert query["rows"] == explained.rows
    tested = {c for c in ("time", "id", "country", "amount") if f"'{c}'" in repr(filters)} | {"time", "amount"}
    for (chunk, _, _), fate in zip(page_places(document), fates, strict=True):
        column = document["columns"][chunk % 4]["name"]
        assert (fate == NOT_ASKED) == (column not in tested)


def test_a_stage_without_a_colour_of_its_own_has_one(ours: Path) -> None:
    with pyparq.ParquetFile(ours) as file:
        scan = file.scan(["time"], col("time") >= 0)
        trace = traced(scan)
        trace.note_stage("an index of next year", {(0, 0)}, {})
        pages = placed_pages(scan.file, [scan.file.chunk(0, scan.outputs[0].leaves[0])], walk=False)
        assert Fates(scan.predicate, scan.projection.leaves.nodes, trace).of_pages((0, 0), pages[0, 0]) == [OTHER] * 8


def test_pages_ruled_out_hold_no_row_and_bytes_read_lie_in_requests(ours: Path) -> None:
    """No page with a matching row is coloured as ruled out; each page read lies within a request."""
    filters = (col("time") >= 700) & (col("amount") > 2.5)
    with pyparq.ParquetFile(ours) as file:
        document = file.map(filters=filters).to_dict()
        rows = file.read(columns=["time"], filters=filters).to_pydict()["time"]
    requests, first = document["files"][0]["requests"], 0
    seen, last = -1, 0
    for (chunk, offset, size), fate, count in zip(
        page_places(document), document["pages"]["fate"], document["pages"]["rows"], strict=True
    ):
        first = first + last if chunk == seen else chunk // 4 * 2000
        seen, last = chunk, count
        if fate == READ:
            assert any(at <= offset and offset + size <= at + long for at, long in requests)
        else:
            assert not any(first <= row < first + count for row in rows)


def test_ranges_tell_whether_sorting_helps(ours: Path) -> None:
    with pyparq.ParquetFile(ours) as file:
        columns = {c["name"]: c for c in file.map().to_dict()["columns"]}
    assert columns["time"]["parts"] == 24
    assert columns["time"]["touched"] == pytest.approx(1 / 24, abs=1e-3)
    assert columns["id"]["touched"] > 0.8
    assert (columns["time"]["min"], columns["time"]["max"]) == ("0", str(ROWS - 1))
    assert (columns["country"]["min"], columns["country"]["max"]) == ("DE", "SE")


def test_a_range_from_zero_is_no_missing_range(tmp_path: Path) -> None:
    """Lists that say nothing are left out, but 0 as the lowest position, or as a number of nulls, says something."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": list(range(50_000))}), path, data_page_size=10_000)
    chunks = pyparq.ParquetFile(path).map().to_dict()["chunks"]
    assert (chunks["low"], chunks["high"], chunks["nulls"]) == ([0], [1000], [0])
    assert "bloom" not in chunks
    assert "note" not in chunks


def test_encrypted_columns_without_a_key_are_shown_as_such(tmp_path: Path) -> None:
    path, keys = tmp_path / "secret.parquet", {"f": b"0123456789012345", "c": b"1234567890123450"}
    properties = pyparq.EncryptionProperties(
        footer_key=pyparq.EncryptionKey(keys["f"], b"f"), plaintext_footer=True,
        column_keys={"id": pyparq.EncryptionKey(keys["c"], b"c")},
    )  # fmt: skip
    pyparq.write_table(events(), path, encryption=properties)
    full = pyparq.DecryptionProperties(key_retriever=lambda name: keys[name.decode()])
    with pyparq.ParquetFile(path, decryption=full) as file:
        check_against_footer(path, file.map(filters=col("id") == 4).to_dict(), decryption=full)
    with pytest.warns(pyparq.UnverifiedFooterWarning), pyparq.ParquetFile(path) as file:
        document = file.map().to_dict()
    assert document["chunks"]["size"][1] == -1
    assert "key" in document["chunks"]["note"][1]
    assert document["chunks"]["size"][0] > 0


@pytest.mark.parametrize("rows", [0, 1])
def test_files_of_hardly_any_rows(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyparq.write_table({"x": pa.array([None] * rows, pa.int32())}, path)
    with pyparq.ParquetFile(path) as file:
        document = file.map(filters=col("x") > 3).to_dict()
    assert sum(document["groups"]) == rows
    assert data_of(pyparq.ParquetFile(path).map().html)["columns"][0]["name"] == "x"


def test_a_file_without_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [1, 2]}).select([]), path)
    assert pyparq.ParquetFile(path).map().to_dict()["columns"] == []


def test_hostile_names_and_values_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "<img src=x onerror=alert(1)>.parquet"
    pyparq.write_table({HOSTILE: [HOSTILE, "<!--"], "\u2028&amp;{{script}}": [1, 2]}, path)
    page = pyparq.ParquetFile(path).map(filters=col(HOSTILE) == HOSTILE).html
    assert HOSTILE not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<!--" not in page
    assert [c["name"] for c in data_of(page)["columns"]] == [HOSTILE, "\u2028&amp;{{script}}"]
    assert HOSTILE not in pyparq.ParquetFile(path).map()._repr_html_()


def test_the_page_needs_no_network(ours: Path) -> None:
    page = pyparq.ParquetFile(ours).map().html
    assert not re.search(
        r"""(?:src|href)\s*=|@import|url\(|https?://|fetch\(|XMLHttp""", page.split('<script id="data"')[0]
    )
    assert "default-src 'none'" in page
    assert "{{" not in page.replace(page[page.index('<script id="data"') :], "")


def test_many_pages_become_blocks(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyparq.read.file_map.MOST_PAGES", 10)
    monkeypatch.setattr("pyparq.read.file_map.mapped_file.__defaults__", (10,))
    with pyparq.ParquetFile(ours) as file:
        document = file.map(filters=col("time") < 100).to_dict()
    assert document["chunks"]["listed"] == [1] * 12
    assert document["chunks"]["pages"] == [8] * 12
    assert document["pages"]["fate"][:5] == [READ, READ, READ, READ, STATISTICS]
    assert sum(document["pages"]["rows"][::4]) == ROWS


def test_large_data_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyparq.write_table({f"c{k}": [k] for k in range(4000)}, path)
    made = pyparq.ParquetFile(path).map()
    page = made.html
    assert 'type="application/zlib"' in page
    assert len(page) < 200_000
    assert len(data_of(page)["columns"]) == 4000


def test_a_folder_is_mapped_file_by_file(tmp_path: Path) -> None:
    data = events() | {"year": np.repeat([2022, 2023, 2024], ROWS // 3)}
    pyparq.write_dataset(data, tmp_path, partition_cols=["year"], bloom_filters={"id": 0.001})
    dataset = pyparq.dataset(tmp_path)
    wanted = (col("id") == int(data["id"][-1])) & (col("year") >= 2023)
    document = dataset.map(filters=wanted).to_dict()
    explained = dataset.explain(filters=wanted)
    assert len(document["files"]) == 3
    assert sum(document["groups"]) == ROWS
    assert Counter(document["pages"]["fate"])[READ] == explained.pages_decoded > 0
    assert document["query"]["rows"] == 1
    files = np.repeat([f for f, file in enumerate(document["files"]) for _ in range(file["groups"])], 4)
    of_page = [files[chunk] for chunk, _, _ in page_places(document)]
    partition = {f for f, fate in zip(of_page, document["pages"]["fate"], strict=True) if fate == PARTITION}
    assert partition == {0}


def test_files_with_other_columns(tmp_path: Path) -> None:
    pyparq.write_table({"a": [1], "b": [2]}, tmp_path / "1.parquet")
    pyparq.write_table({"b": [3], "c": ["x"]}, tmp_path / "2.parquet")
    document = pyparq.dataset(tmp_path).map().to_dict()
    assert [c["name"] for c in document["columns"]] == ["a", "b", "c"]
    assert [size > 0 for size in document["chunks"]["size"]] == [True, True, False, False, True, True]


def test_the_command(ours: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.html"
    result = CliRunner().invoke(app, ["map", str(ours), "-o", str(out), "--where", "id = 4", "--columns", "time"])
    assert result.exit_code == 0, result.output
    query = data_of(out.read_text())["query"]
    assert (query["predicate"], query["columns"], query["rows"]) == ("id == 4", ["time"], 1)
    result = CliRunner().invoke(app, ["map", str(ours), "-o", "-"])
    assert data_of(result.stdout)["query"] is None
    assert CliRunner().invoke(app, ["map", str(ours), "--where", "nothing = 4"]).exit_code != 0


def test_saving_replaces_a_file_and_leaves_no_half_one(ours: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.html"
    made = pyparq.ParquetFile(ours).map(out)
    assert out.read_text() == made.html
    with pytest.raises(OSError):
        made.save(tmp_path / "none" / "m.html")
    assert [p.name for p in tmp_path.iterdir()] == ["m.html"]


def test_the_templates_are_part_of_the_package() -> None:
    """An installed pyparq has the files that the page is made of, beside the module."""
    import tomllib

    from pyparq.read import file_map

    folder = Path(file_map.__file__).parent
    assert sorted(p.name for p in folder.iterdir() if p.suffix in (".html", ".css", ".js")) == [
        "map.css", "map.html", "map.js",
    ]  # fmt: skip
    build = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert build["wheel"]["packages"] == ["pyparq"]
    assert not any(left_out.startswith("pyparq/read") for left_out in build["wheel"]["exclude"])


def test_scans_without_a_map_note_nothing(ours: Path) -> None:
    with pyparq.ParquetFile(ours) as file:
        file.map(filters=col("id") == 4)
        scan = file.scan(filters=col("id") == 4)
        scan.to_table()
        assert scan.reader.trace is None
        assert scan.file.fetcher.log is None
