"""head, query and explain: rows against pyarrow's, in every form of output."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cli_files import as_json, ok, refused, run, sample, write_sample

from pyparq.arrow.to_python import column_to_pylist
from pyparq.cli.cells import csv_cell, csv_lines, json_lines
from pyparq.cli.values import cell_format, field_json
from pyparq.read.file import ParquetFile


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("cli") / "sample.parquet")


def json_rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def expected_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """pyarrow's rows as our JSON puts them."""
    for row in table.to_pylist():
        yield {name: expected(name, value) for name, value in row.items()}


def expected(name: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str, dict)):
        return value
    if isinstance(value, float):
        if value != value:
            return "NaN"
        return float(str(round(value, 1))) if name == "single" else value
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if hasattr(value, "hour"):
        return value.isoformat().removesuffix("+00:00") + ("Z" if value.tzinfo else "")
    return str(value)


def test_json_lines_hold_every_value(file: Path) -> None:
    assert json_rows(ok("query", file, "--json")) == list(expected_rows(sample()))


def test_json_of_special_values(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": [float("inf"), float("-inf"), float("nan"), -0.0],
            "ns": pa.array([1, None, -1, 1_000], pa.timestamp("ns", "UTC")),
            "time": pa.array([0, 1, 86_399_999_999_999, 1_000_000], pa.time64("ns")),
            "list": [[1, None], [], None, [3]],
            "map": pa.array([[("k", 1.5)], None, [], [("a", float("nan"))]], pa.map_(pa.string(), pa.float64())),
        }
    )
    pq.write_table(table, tmp_path / "special.parquet")
    rows = json_rows(ok("head", tmp_path / "special.parquet", "--json"))
    assert [r["d"] for r in rows] == ["Infinity", "-Infinity", "NaN", 0.0]
    assert [r["ns"] for r in rows] == [
        "1970-01-01T00:00:00.000000001Z", None, "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00.000001Z",
    ]  # fmt: skip
    assert [r["time"] for r in rows] == ["00:00:00", "00:00:00.000000001", "23:59:59.999999999", "00:00:00.001000"]
    assert [r["list"] for r in rows] == [[1, None], [], None, [3]]
    assert [r["map"] for r in rows] == [[["k", 1.5]], None, [], [["a", "NaN"]]]


def test_types_that_only_hints_tell_of(tmp_path: Path) -> None:
    table = pa.table({
        "views": pa.array([[1, None], None, []], pa.list_view(pa.int8())),
        "deep": pa.array([[{"d": Decimal("1.5")}], None, []],
                         pa.large_list_view(pa.struct([("d", pa.decimal128(3, 1))]))),
        "word": pa.array(["a", None, "b"], pa.dictionary(pa.uint16(), pa.string())),
    })  # fmt: skip
    path, copy = tmp_path / "hinted.parquet", tmp_path / "copy.parquet"
    pq.write_table(table, path)
    assert json_rows(ok("head", path, "--json")) == [
        {"views": [1, None], "deep": [{"d": "1.5"}], "word": "a"}, {"views": None, "deep": None, "word": None},
        {"views": [], "deep": [], "word": "b"},
    ]  # fmt: skip
    assert '"[1, null]","[{""d"": ""1.5""}]",a' in ok("head", path, "--csv")
    assert run("query", path, "--where", "word = 'a' OR list_contains(views, 1)", "-o", copy).exit_code == 0
    assert pq.read_table(copy).to_pylist() == table.slice(0, 1).to_pylist()


def test_csv_reads_back(tmp_path: Path) -> None:
    texts = ["plain", "with, comma", 'with "quotes"', "two\nlines", "", " spaces ", "carriage\rreturn", None]
    pq.write_table(pa.table({"text": texts, "n, m": range(8)}), tmp_path / "texts.parquet")
    text = ok("query", tmp_path / "texts.parquet", "--csv")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [["text", "n, m"], *([t or "", str(n)] for n, t in enumerate(texts))]
    assert '\n"",4\n' in text  # an empty string is not a null
    assert text.endswith("\n,7\n")


def test_table_is_aligned_and_shows_nulls(tmp_path: Path) -> None:
    table = pa.table({"number": [1, None, 300], "名前": ["é", "日本語", None], "f": [0.5, float("nan"), None]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert ok("head", tmp_path / "t.parquet") == (
        "number  名前       f\n"
        "------  ------  ----\n"
        "     1  é        0.5\n"
        "  NULL  日本語   NaN\n"
        "   300  NULL    NULL\n"
        "3 rows\n"
    )


def test_terminal_escapes_in_names_and_values_are_shown_not_obeyed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"\x1b[31mred": ["\x1b]0;title\x07", "a\nb\tc", "\u202edcba"]}), tmp_path / "evil.parquet")
    for command in ("schema", "meta", "pages", "index", "head", "explain"):
        text = ok(command, tmp_path / "evil.parquet")
        assert "\x1b" not in text
        assert "\x07" not in text
    assert ok("head", tmp_path / "evil.parquet").splitlines()[2:5] == [r"\x1b]0;title\x07", r"a\nb\tc", r"\u202edcba"]
    assert "\x1b" not in run("query", tmp_path / "evil.parquet", "-w", "x = 1").output


def test_limit_says_how_many_more(file: Path) -> None:
    table = sample()
    matching = table.filter(pc.field("small") > 40).num_rows
    lines = ok("query", file, "-w", "small > 40", "-c", "id").splitlines()
    assert len(lines) == 2 + 20 + 1
    assert lines[-1] == f"20 rows shown, {matching - 20:,} more (--limit 0 shows all)"
    assert ok("query", file, "-w", "small > 40", "-c", "id", "--limit", 0).splitlines()[-1] == f"{matching:,} rows"
    assert ok("query", file, "-w", "id < 40", "-c", "id").splitlines()[-1] == "20 rows"
    assert ok("query", file, "-l", 3, "-c", "id").splitlines()[-1] == "3 rows shown, 3,997 more (--limit 0 shows all)"
    assert len(ok("query", file, "-w", "small > 40", "--json", "-l", 7).splitlines()) == 7


def test_columns_come_in_the_order_asked(file: Path) -> None:
    rows = json_rows(ok("query", file, "-w", "id = 8", "-c", 'note,"odd name, é"', "-c", "st.x", "--json"))
    row = sample().filter(pc.field("id") == 8).to_pylist()[0]
    assert rows == [{name: row[name] for name in ("note", "odd name, é", "st")}]
    assert list(rows[0]) == ["note", "odd name, é", "st"]


def test_row_groups(file: Path) -> None:
    ids = sample()["id"].to_pylist()
    rows = json_rows(ok("query", file, "-c", "id", "-g", 1, "--json"))
    assert [r["id"] for r in rows] == ids[1500:3000]
    assert "row group 3 does not exist" in refused(2, "query", file, "-g", 3)


@pytest.mark.parametrize("wanted", [0, 1, 10, 1499, 1500, 1501, 4000, 9999])
def test_head_across_row_groups(file: Path, wanted: int) -> None:
    rows = json_rows(ok("head", file, "-n", wanted, "-c", "id", "--json"))
    assert [r["id"] for r in rows] == sample()["id"].to_pylist()[:wanted]


def test_head_decodes_the_first_pages_alone(file: Path) -> None:
    from pyparq.cli.sources import make_scan
    from pyparq.read.file import ParquetFile

    with ParquetFile(file) as parquet:
        scan = make_scan(parquet, None, ["id", "day", "note"], [0, 1, 2], 250)
        assert scan.to_table().num_rows == 250
        assert scan.explain().pages_decoded == 3 * 2


# ---- files


def test_output_parquet(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    columns = [name for name in sample().column_names if name != "st"]
    named = ",".join(f'"{name}"' for name in columns)
    result = run("query", file, "-w", "small > 0 AND id < 4000", "-c", named, "-o", out)
    expected_table = sample().filter((pc.field("small") > 0) & (pc.field("id") < 4000)).select(columns)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == f"wrote {expected_table.num_rows:,} rows to {out}\n"
    found = pq.read_table(out).cast(expected_table.schema)
    for name in columns:  # NaN equals NaN here
        assert found[name].combine_chunks().to_pylist().__repr__() == expected_table[name].to_pylist().__repr__()


def test_output_csv_and_json(file: Path, tmp_path: Path) -> None:
    for suffix, flag in ((".csv", "--csv"), (".json", "--json")):
        asked = ("query", file, "-w", "id < 50")
        assert run(*asked, "-o", tmp_path / f"out{suffix}").exit_code == 0
        assert (tmp_path / f"out{suffix}").read_text() == ok(*asked, flag)


def test_failed_output_leaves_the_old_file(corpus: Path, tmp_path: Path) -> None:
    damaged = corpus / "data" / "datapage_v1-corrupt-checksum.parquet"
    for suffix in (".csv", ".json", ".parquet"):
        out = tmp_path / f"out{suffix}"
        out.write_text("old")
        assert "CRC" in refused(1, "query", damaged, "-o", out)
        assert out.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3
    assert "suffix" in refused(2, "query", damaged, "-o", tmp_path / "out.xls")
    assert "use only one of" in refused(2, "query", damaged, "--json", "--csv")


# ---- explain


def test_explain_counts(file: Path) -> None:
    document = as_json("explain", file, "-w", "day = DATE '2020-01-05'", "-c", "id", "--plan", "--json")
    assert document["rows"] == 20
    assert document["file_rows"] == 4000
    assert document["row_groups"] == 1
    stages = {stage["name"]: stage for stage in document["stages"]}
    assert stages["statistics"]["row_groups_after"] == 1
    assert (stages["column index"]["pages_before"], stages["column index"]["pages_after"]) == (8, 1)
    plan = [(r["row_group"], r["step"], r["column"], r["pages"]) for r in document["plan"]]
    assert plan == [(0, "filter", "day", [0]), (0, "output", "id", [0])]


def test_explain_as_text(file: Path) -> None:
    text = ok("explain", file, "-w", "id = 3", "--plan")
    assert "filter   id == 3" in text
    assert "bloom filter" in text
    pruned = ok("explain", file, "-w", "day = DATE '2020-01-05'", "--no-run")
    assert "rows returned" not in pruned
    assert "pages decoded         0 of " in pruned
    ran = ok("query", file, "-w", "day = DATE '2020-01-05'", "-c", "id", "--explain")
    assert ran.index("20 rows\n\n") < ran.index("rows returned         20")
    aside = run("query", file, "-w", "id = 8", "--json", "--explain")
    assert len(aside.stdout.splitlines()) == 1
    assert "rows returned         1" in aside.stderr


def test_empty_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({}), tmp_path / "no_columns.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "no_rows.parquet", write_page_index=True)
    for command in ("schema", "meta", "pages", "index", "bloom", "head", "query", "explain"):
        ok(command, tmp_path / "no_columns.parquet")
        ok(command, tmp_path / "no_rows.parquet")
        if command not in ("head", "query"):
            as_json(command, tmp_path / "no_columns.parquet", "--json")
            as_json(command, tmp_path / "no_rows.parquet", "--json")
    assert ok("head", tmp_path / "no_rows.parquet") == "a\n-\n0 rows\n"
    assert ok("head", tmp_path / "no_columns.parquet") == "(no columns)\n0 rows\n"
    assert ok("query", tmp_path / "no_rows.parquet", "-w", "a = 1", "--csv") == "a\n"


def test_names_that_stand_twice(tmp_path: Path) -> None:
    """A JSON object holds one of a name: nothing is left out without a word."""
    twice, inside = tmp_path / "twice.parquet", tmp_path / "inside.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], ["x", "x"]), twice)
    pq.write_table(pa.table({"s": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])}), inside)
    for arguments in (
        ["head", twice, "--json"],
        ["query", twice, "--json"],
        ["query", twice, "-o", tmp_path / "o.json"],
    ):
        assert "several columns are called 'x'" in refused(2, *arguments)
    assert not (tmp_path / "o.json").exists()
    assert ok("head", twice, "--csv") == "x,x\n1,3\n2,4\n"
    for flags in ([], ["--json"], ["--csv"]):
        assert "several fields called 'x'" in refused(1, "head", inside, *flags)


def test_csv_is_refused_before_its_first_line(tmp_path: Path) -> None:
    """A file whose structs cannot be shown gives no line of names first, however deep the structs lie."""
    twice = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], ["x", "x"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), twice)
    maps = pa.MapArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array(["a", "b"]), twice)
    fine = pa.StructArray.from_arrays([pa.array([{"x": 1}])], ["x"])
    for column in (lists, maps, pa.StructArray.from_arrays([lists], ["x"])):
        pq.write_table(pa.table({"a": [1], "s": column}), tmp_path / "inside.parquet")
        for arguments in (["head", "--csv"], ["query", "--csv"], ["query", "-o", tmp_path / "o.csv"]):
            command, *options = arguments
            assert "several fields called 'x'" in refused(1, command, tmp_path / "inside.parquet", *options)
        assert not (tmp_path / "o.csv").exists()
        assert ok("head", tmp_path / "inside.parquet", "--csv", "-c", "a") == "a\n1\n"
    pq.write_table(pa.table({"s": fine}), tmp_path / "fine.parquet")
    assert ok("head", tmp_path / "fine.parquet", "--csv") == 's\n"{""x"": {""x"": 1}}"\n'


def one_by_one(schema: Any, batches: Any, is_json: bool) -> str:
    """CSV and JSON a Python object at a time, as plainly as can be."""
    formats = [(field_json if is_json else cell_format)(field) for field in schema.fields]
    lines = []
    for batch in batches:
        lists = [column_to_pylist(column) for column in batch.columns]
        for row in range(batch.num_rows):
            cells = [None if v[row] is None else form(v[row]) for form, v in zip(formats, lists, strict=True)]
            if is_json:
                lines.append(json.dumps(dict(zip(schema.names, cells, strict=True)), ensure_ascii=False))
            else:
                lines.append(",".join("" if cell is None else csv_cell(cell) for cell in cells))
    return "".join(f"{line}\n" for line in lines)


def varied(rows: int) -> pa.Table:
    """Every kind of column, few and many values, with and without nulls, and texts of every awkward sort."""
    rng = np.random.default_rng(5)
    numbers = rng.integers(-(2**62), 2**62, rows)
    words = ["", " ", "a", "a,b", 'say "so"', "two\nlines", "cr\r", "\ttab", "\u00a0nbsp", "em\u2003", "\u3000", "日本",
             "\u3042", "back\\slash", "\x01", "end ", "é", "\U0001f600", "x" * 300]  # fmt: skip
    floats = rng.normal(size=rows) * 10.0 ** rng.integers(-9, 20, rows)
    floats[:8] = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e16, 1e-5, 5e-324]
    moments = numbers // 2**20
    columns = {
        "i8": pa.array(numbers % 100, pa.int8()), "i64": pa.array(numbers), "u64": pa.array(numbers.astype(np.uint64)),
        "f64": pa.array(floats, from_pandas=False), "f32": pa.array(floats.astype(np.float32), from_pandas=False),
        "f16": pa.array(floats.astype(np.float16)), "few": pa.array(np.round(floats[:5])[numbers % 5]),
        "bool": pa.array(numbers % 2 == 0), "date": pa.array((numbers % 10**6).astype("M8[D]")),
        "s": pa.array((moments // 10**6).astype("M8[s]")), "ms": pa.array((moments // 10**3).astype("M8[ms]")),
        "us": pa.array(moments.astype("M8[us]"), pa.timestamp("us", "UTC")), "ns": pa.array(numbers.astype("M8[ns]")),
        "zone": pa.array(moments.astype("M8[us]"), pa.timestamp("us", "Asia/Tokyo")),
        "whole": pa.array((moments // 10**6 * 10**6).astype("M8[us]")), "far": pa.array(numbers.astype("M8[us]")),
        "time": pa.array(np.abs(moments) % 86_400_000_000, pa.time64("us")), "null": pa.nulls(rows),
        "decimal": pa.array([Decimal(int(n)) / 1000 for n in numbers % 10**9], pa.decimal128(20, 3)),
        "text": pa.array([words[n % len(words)] for n in numbers]), "many": pa.array([f"{n},é" for n in numbers]),
        "plain": pa.array([f"k{n}" for n in numbers]), "raw": pa.array([bytes([n % 256, 0]) for n in numbers]),
        "fixed": pa.array([int(n % 2**16).to_bytes(2, "big") for n in numbers], pa.binary(2)),
        "word": pa.array([words[n % 7] for n in numbers]).dictionary_encode(),
        "list": pa.array([[n, None] if n % 3 else None for n in numbers.tolist()]),
        "struct": pa.array([{"x": words[n % len(words)]} for n in numbers]),
    }  # fmt: skip
    mask = numbers % 4 == 0
    others = {name: column for name, column in columns.items() if name not in ("null", "word", "zone")}
    holes = {f"{name} holes": pc.if_else(mask, None, column) for name, column in others.items()}
    return pa.table(columns | holes)


@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_columns_at_a_time_write_what_values_one_by_one_do(tmp_path: Path, rows: int) -> None:
    table = varied(max(rows, 8)).slice(0, rows)
    path = tmp_path / "varied.parquet"
    pq.write_table(table, path, row_group_size=1700)
    with ParquetFile(path) as file:
        schema, batches = file.schema_arrow, list(file.scan().iter_batches(None))
        sliced = [batch.slice(5, batch.num_rows - 5) for batch in batches if batch.num_rows > 5]
        for given in (batches, sliced):
            as_lines = b"".join(json_lines(schema, given)).decode()
            assert as_lines == one_by_one(schema, given, is_json=True)
            head, _, as_csv = b"".join(csv_lines(schema, given)).decode().partition("\n")
            assert head == ",".join(map(csv_cell, schema.names))
            assert as_csv == one_by_one(schema, given, is_json=False)
            found = list(csv.reader(io.StringIO(as_csv, newline="")))
            assert all(len(row) == len(schema.names) for row in found)
            assert len(found) == sum(batch.num_rows for batch in given)


def test_progress_tells_rows_and_how_much_is_done(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, int]] = []
    monkeypatch.setattr("pyparq.cli.output.Busy.show", lambda self, share, rows: seen.append((share, rows)))
    assert len(ok("query", file, "-w", "small > 0", "--csv").splitlines()) == 1 + seen[-1][1]
    assert [share for share, _ in seen] == [1500 / 4000, 3000 / 4000, 1.0]
    assert seen == sorted(seen)
