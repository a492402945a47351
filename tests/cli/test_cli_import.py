"""import and convert: the rows of CSV and JSON lines against pyarrow, polars and Python's own readers."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.json as pajson
import pyarrow.parquet as pq
import pytest
from cli_files import ok, refused, run, sample, write_sample

from pyparq.cli.missing_extra import missing_extra


def imported(tmp_path: Path, text: str | bytes, suffix: str = ".csv", *options: str) -> pa.Table:
    """What `import` makes of a file."""
    path = tmp_path / f"in{suffix}"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    result = run("import", path, "-o", tmp_path / "out.parquet", *options)
    assert result.exit_code == 0, result.stderr
    return pq.read_table(tmp_path / "out.parquet")


def fault(tmp_path: Path, text: str | bytes, suffix: str = ".csv", code: int = 1) -> str:
    path = tmp_path / f"in{suffix}"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    said = refused(code, "import", path, "-o", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    assert code == 2 or str(path) in said
    return said


PLAIN = (
    'id,name,score,when,at,yes\n1,"a, ""b""",1.5,2024-01-02,2024-01-02 03:04:05,true\n'
    '2,"two\nlines",,2024-02-29,,false\n3,é,-2e3,,2024-01-02 03:04:05.25,\n'
)


def test_csv_as_pyarrow_and_polars_read_it(tmp_path: Path) -> None:
    found = imported(tmp_path, PLAIN)
    theirs = pacsv.read_csv(io.BytesIO(PLAIN.encode()), parse_options=pacsv.ParseOptions(newlines_in_values=True))
    assert found.to_pydict() == theirs.cast(found.schema).to_pydict()
    polars = pl.read_csv(io.StringIO(PLAIN), try_parse_dates=True)
    assert found.to_pydict() == pa.table(polars).cast(found.schema).to_pydict()
    assert [str(t) for t in found.schema.types] == [
        "int64", "string", "double", "date32[day]", "timestamp[us]", "bool",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["\ufeff" + PLAIN, PLAIN.replace("\n", "\r\n").replace("two\r\n", "two\n"), PLAIN + "\n\n"]
)
def test_csv_with_a_mark_other_line_ends_and_empty_lines(tmp_path: Path, text: str) -> None:
    assert imported(tmp_path, text).to_pydict() == imported(tmp_path, PLAIN).to_pydict()


def test_what_no_type_may_change_stays_text(tmp_path: Path) -> None:
    text = "zip,day,long,phone\n007,01/02/2024,123456789012345678901234567890123456789012,+49 30\n"
    assert imported(tmp_path, text).to_pylist()[0] | {"long": None} == {
        "zip": "007", "day": "01/02/2024", "long": None, "phone": "+49 30",
    }  # fmt: skip


def test_types_are_found_in_all_of_the_file(tmp_path: Path) -> None:
    text = "a,b,c\n" + "1,1,\n" * 50_000 + "x,1.5,7\n"
    found = imported(tmp_path, text)
    assert [str(t) for t in found.schema.types] == ["string", "double", "int64"]
    assert found.num_rows == 50_001
    assert found["a"][-1].as_py() == "x"
    assert found["c"].null_count == 50_000


def test_big_integers_are_exact(tmp_path: Path) -> None:
    found = imported(tmp_path, f"a,b,c\n{2**63 - 1},{2**64 - 1},{-(2**63)}\n-1,0,{2**100}\n")
    assert found.to_pydict() == {
        "a": [2**63 - 1, -1], "b": [2**64 - 1, 0], "c": [Decimal(-(2**63)), Decimal(2**100)]
    }  # fmt: skip
    assert [str(t) for t in found.schema.types] == ["int64", "uint64", "decimal128(38, 0)"]


def test_nulls_empty_texts_and_options(tmp_path: Path) -> None:
    assert imported(tmp_path, 'a,b\n"",x\n,NA\n').to_pydict() == {"a": ["", None], "b": ["x", "NA"]}
    found = imported(tmp_path, "a;b\n1;NA\n2;07\n", ".csv", "--delimiter", ";", "--null", "NA", "--type", "a=varchar")
    assert found.to_pydict() == {"a": ["1", "2"], "b": [None, "07"]}
    assert imported(tmp_path, "a\tb\n1\t2\n", ".tsv").to_pydict() == {"a": [1], "b": [2]}
    assert imported(tmp_path, "a\né\n".encode("latin-1"), ".csv", "--encoding", "latin-1")["a"].to_pylist() == ["é"]
    assert imported(tmp_path, gzip.compress(b"a,b\n1,x\n"), ".csv.gz").to_pydict() == {"a": [1], "b": ["x"]}
    assert imported(tmp_path, "a,b\n").schema.names == ["a", "b"]
    assert imported(tmp_path, "a,b\n").num_rows == 0
    sorted_ = imported(tmp_path, "a\n2\n3\n1\n", ".csv", "--sort-by", "a:desc", "--compression", "gzip", "--bloom", "a")
    assert sorted_["a"].to_pylist() == [3, 2, 1]
    chunk = pq.read_metadata(tmp_path / "out.parquet").row_group(0).column(0)
    assert chunk.compression == "GZIP"


def test_faults_of_csv_name_the_line(tmp_path: Path) -> None:
    assert "line 3 has 1 field, and the header has 2" in fault(tmp_path, "a,b\n1,x\n2\n3,z\n")
    assert "line 5 has 3 fields" in fault(tmp_path, 'a,b\n"x\ny",2\n\n1,2,3\n')
    assert "line 3" in fault(tmp_path, 'a,b\n1,x\n2,"open\n3,4\n')
    assert "line 2 is not UTF-8" in fault(tmp_path, b"a,b\n1,\xff\n")
    assert "empty" in fault(tmp_path, "")
    assert "--from" in fault(tmp_path, "a\n1\n", ".txt", 2)
    assert "NAME=TYPE" in refused(2, "import", tmp_path / "in.csv", "--type", "x=1; drop")
    assert "No such file" in refused(1, "import", tmp_path / "nowhere.csv")


ROWS = [
    {"id": 1, "tags": ["a", None], "who": {"name": "é", "age": 7}, "at": "2024-01-02T03:04:05"},
    {"id": -2, "tags": [], "who": {"name": None}, "at": "2024-01-02T03:04:05.000001", "late": 1.5},
    {"id": 3, "tags": None, "who": None, "at": None},
]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_json_lines_as_pyarrow_reads_them(tmp_path: Path) -> None:
    found = imported(tmp_path, lines(ROWS), ".jsonl")
    theirs = pajson.read_json(io.BytesIO(lines(ROWS).encode()))
    ours = found.drop_columns("at").to_pylist()
    assert ours == theirs.drop_columns("at").to_pylist()
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
    assert found["at"].to_pylist() == [moment, moment.replace(microsecond=1), None]
    assert str(found.schema.field("id").type) == "int64"


def test_json_types(tmp_path: Path) -> None:
    rows = [
        {"z": "007", "n": "12", "u": "2024-01-02T03:04:05Z", "mixed": 1, "none": None, "big": 2**63},
        {"z": "1", "n": "13", "u": "2024-01-02T03:04:05+02:00", "mixed": "x", "none": None, "big": 1},
    ]
    found = imported(tmp_path, lines(rows), ".jsonl")
    assert found.select(["z", "n", "none", "big"]).to_pylist() == [
        {k: row[k] for k in ("z", "n", "none", "big")} for row in rows
    ]
    assert [json.loads(v) for v in found["mixed"].to_pylist()] == [1, "x"]
    assert str(found.schema.field("u").type) == "timestamp[us, tz=UTC]"
    assert found["u"][1].as_py() == datetime.datetime(2024, 1, 2, 1, 4, 5, tzinfo=datetime.UTC)
    assert imported(tmp_path, lines(rows), ".ndjson", "--type", "big=varchar")["big"].to_pylist() == [str(2**63), "1"]


def test_faults_of_json_name_the_line(tmp_path: Path) -> None:
    assert "line 3 is not JSON" in fault(tmp_path, '{"a": 1}\n\n{"a":\n', ".jsonl")
    assert "line 2 is no JSON object" in fault(tmp_path, '{"a": 1}\n[1]\n', ".jsonl")
    assert "empty" in fault(tmp_path, "", ".jsonl")


def test_a_value_that_is_not_of_the_type_given(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a\n1\nx\n")
    said = refused(1, "import", tmp_path / "in.csv", "--type", "a=integer")
    assert "Line: 3" in said
    assert "in.csv" in said
    assert "DuckDBPyRelation" not in said
    assert not (tmp_path / "in.parquet").exists()


@pytest.mark.parametrize("texts", [
    ["24-01-02", "24-01-03"], ["2024-1-2", "2024-1-3"], ["2024/01/02", "2024/01/03"], ["infinity", "-infinity"],
    ["epoch", "2024-01-02"], ["1:02:03", "2:00:00"], ["yes", "no"], ["t", "f"], ["0b11", "0b10"],
    ["2024-01-02 24:00:00", "2024-01-02 03:04:05"],
], ids=lambda texts: texts[0])  # fmt: skip
def test_text_that_is_no_iso_date_stays_text(tmp_path: Path, texts: list[str]) -> None:
    """As pyarrow leaves it, but for infinity, which is a number to it."""
    text = "k,v\n" + "".join(f"{k},{value}\n" for k, value in enumerate(texts))
    theirs = pacsv.read_csv(io.BytesIO(text.encode()))["v"]
    assert imported(tmp_path, text)["v"].to_pylist() == texts
    assert pa.types.is_string(theirs.type) or texts[0] == "infinity"


def test_text_of_which_a_type_would_lose_something(tmp_path: Path) -> None:
    texts = ["2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.1"]
    assert imported(tmp_path, "v\n" + "\n".join(texts))["v"].to_pylist() == texts
    assert imported(tmp_path, "v\n0x00ff\n0x1F\n")["v"].to_pylist() == ["0x00ff", "0x1F"]
    found = imported(tmp_path, "day,v\n24-01-02,x\n24-01-03,y\n", ".csv", "--type", "day=date")  # asked for
    assert found["day"].to_pylist() == [datetime.date(24, 1, 2), datetime.date(24, 1, 3)]


@pytest.mark.parametrize("texts", [
    ["2024-01-02", ""], ["2024-01-02T03:04", "2024-01-02T03:05:06.5"],
    ["2024-01-02 03:04:05+02:00", "2024-01-02 03:04Z"], ["12:30:01", "13:30:59"],
    ["TRUE", "false"], ["1e5", "-2.5"], ["20240102", "7"], [" 1", "2 "],
], ids=lambda texts: texts[0])  # fmt: skip
def test_text_that_is_a_value(tmp_path: Path, texts: list[str]) -> None:
    text = "k,v\n" + "".join(f"{k},{value}\n" for k, value in enumerate(texts))
    theirs = pacsv.read_csv(io.BytesIO(text.encode()))["v"]
    found = imported(tmp_path, text)["v"]
    assert not pa.types.is_string(found.type)
    assert found.to_pylist() == theirs.cast(found.type).to_pylist()


def test_days_of_json_that_are_none(tmp_path: Path) -> None:
    rows = [{"a": "24-01-02", "b": "2024-01-02", "c": {"d": ["infinity"]}, "e": [{"f": "2024-01-02"}]}] * 2
    found = imported(tmp_path, lines(rows), ".jsonl")
    day = datetime.date(2024, 1, 2)
    assert found.to_pylist() == [{"a": "24-01-02", "b": day, "c": {"d": ["infinity"]}, "e": [{"f": day}]}] * 2


def test_import_replaces_no_file_unasked(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("x\n1\n")
    pq.write_table(pa.table({"mine": [7]}), tmp_path / "b.parquet")
    said = refused(2, "import", tmp_path / "b.csv")
    assert "--overwrite" in said
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"mine": [7]}
    assert run("import", tmp_path / "b.csv", "--overwrite").exit_code == 0
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"x": [1]}
    (tmp_path / "b.csv").write_text("x\n2\n")
    assert run("import", tmp_path / "b.csv", "-o", tmp_path / "b.parquet").exit_code == 0  # named, so asked for
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"x": [2]}


def test_default_name_and_pipes(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("x\n1\n")  # no pattern
    assert run("import", tmp_path / "a[1].csv").exit_code == 0
    assert pq.read_table(tmp_path / "a[1].parquet").to_pydict() == {"x": [1]}
    command = [sys.executable, "-m", "pyparq", "import", "-", "--from", "jsonl", "-o", "-"]
    made = subprocess.run(command, input=lines(ROWS).encode(), capture_output=True, timeout=120, check=True)
    assert pq.read_table(pa.BufferReader(made.stdout))["id"].to_pylist() == [1, -2, 3]
    bad = subprocess.run(command, input=b'{"a": 1}\n{', capture_output=True, timeout=120, check=False)
    assert (bad.returncode, bad.stdout) == (1, b"")
    assert b"<stdin>" in bad.stderr


def test_import_with_little_memory(tmp_path: Path) -> None:
    """Less memory than DuckDB can work with is raised to what it needs."""
    row = ",".join(f"{k} text of this field" for k in range(10))
    with open(tmp_path / "big.csv", "w") as out:
        out.write(",".join("abcdefghij") + "\n" + (row + "\n") * 270_000)
    assert run("import", tmp_path / "big.csv", "--memory", "40M").exit_code == 0
    assert pq.read_metadata(tmp_path / "big.parquet").num_rows == 270_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("convert") / "sample.parquet")


def test_convert_there_and_back(file: Path, tmp_path: Path) -> None:
    for name in ("x.arrow", "x.feather"):
        assert run("convert", file, tmp_path / name).exit_code == 0
        theirs = feather.read_table(tmp_path / name)
        assert theirs.drop_columns("real").equals(sample().drop_columns("real"))
        assert run("convert", tmp_path / name, tmp_path / "back.parquet").exit_code == 0
        assert pq.read_table(tmp_path / "back.parquet").drop_columns("real").equals(sample().drop_columns("real"))
    assert run("convert", file, tmp_path / "x.csv").exit_code == 0
    assert run("convert", tmp_path / "x.csv", tmp_path / "y.parquet").exit_code == 0
    back = pq.read_table(tmp_path / "y.parquet", columns=["id", "note", "day", "flag", "odd name, é"])
    assert back.to_pydict() == sample().select(back.column_names).to_pydict()
    assert ok("convert", file, "-", "--to", "jsonl") == ok("cat", file)
    with duckdb.connect() as db:
        rows = db.sql(f"select sum(id), count(note), max(ts) from read_csv('{tmp_path / 'x.csv'}')").fetchall()
        assert rows == db.sql(f"select sum(id), count(note), max(ts) from '{file}'").fetchall()


def test_convert_of_arrow_streams_and_damaged_files(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": [[1], None]})
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    assert run("convert", tmp_path / "s.arrow", tmp_path / "s.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "s.parquet").equals(table)
    (tmp_path / "bad.arrow").write_bytes(b"nothing of the kind")
    assert "neither an Arrow IPC file nor a stream" in refused(1, "convert", tmp_path / "bad.arrow", tmp_path / "b.pq")
    assert "suffix" in refused(2, "convert", tmp_path / "s.parquet", tmp_path / "b.xyz")


def test_a_failed_conversion_leaves_the_older_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "out.parquet").write_text("older")
    (tmp_path / "in.csv").write_text("a,b\n1\n")
    assert run("convert", tmp_path / "in.csv", tmp_path / "out.parquet").exit_code == 1
    assert (tmp_path / "out.parquet").read_text() == "older"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.parquet"]


def test_missing_packages_are_named() -> None:
    assert "pyparq[import]" in (missing_extra(ImportError(name="duckdb")) or "") or "[import]" in (
        missing_extra(ImportError(name="duckdb")) or ""
    )
