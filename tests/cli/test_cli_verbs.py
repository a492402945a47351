"""tail, sample, cat, count, size, pipes, completion and near names: against pyarrow, in this process and as a shell."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from cli_files import ROWS, as_json, ok, refused, run, sample, shell, write_sample
from click.shell_completion import ShellComplete

import pyparq
from pyparq.cli.app import app


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("verbs") / "sample.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, the last with a column more; one of them empty."""
    for k, (first, rows) in enumerate([(0, 5), (5, 0), (5, 7)]):
        columns = {"id": pa.array(range(first, first + rows), pa.int64())}
        if k == 2:
            columns["x"] = pa.array([f"row {n}" for n in range(rows)])
        pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet")
    return tmp_path


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# ---- tail, sample, take


@pytest.mark.parametrize("n", [0, 1, 7, 3999, 4000, 5000])
def test_tail_is_the_end_of_head(file: Path, n: int) -> None:
    want = ok("query", file, "--json").splitlines()
    assert ok("tail", file, "-n", n, "--json").splitlines() == want[max(ROWS - n, 0) :]


def test_tail_of_many_files(folder: Path) -> None:
    assert [r["id"] for r in rows_of(ok("tail", folder, "-n", 9, "--json"))] == list(range(3, 12))
    assert [r["id"] for r in rows_of(ok("tail", folder / "0.parquet", folder / "2.parquet", "-n", 2, "--json"))] == [
        10,
        11,
    ]
    assert "3 rows shown, 9 more" in ok("tail", folder, "-n", 3)


def test_tail_reads_the_last_pages_alone(file: Path) -> None:
    with pyparq.ParquetFile(file) as opened:
        scan = opened.scan(["ts"], rows=slice(ROWS - 5, ROWS))
        scan.to_table()
        assert scan.explain(execute=False).pages_decoded == 1
    assert len(rows_of(ok("tail", file, "-n", 5, "-c", "ts", "--json"))) == 5


def test_sample_is_uniform_and_repeatable(folder: Path) -> None:
    found = pyparq.dataset(folder)
    seen = Counter(int(i) for seed in range(600) for i in found.sample(4, ["id"], seed=seed).to_numpy("id"))
    assert set(seen) == set(range(12))
    # Each row is drawn 200 times on average; the standard deviation is 11.5.
    assert min(seen.values()) > 150
    assert max(seen.values()) < 250
    assert found.sample(4, seed=3).equals(found.sample(4, seed=3))
    assert found.sample(100).num_rows == 12
    with pytest.raises(pyparq.OptionError, match="num_rows"):
        found.sample(-1)


def test_sample_of_a_file_reads_few_pages(file: Path) -> None:
    rows = rows_of(ok("sample", file, "-n", 3, "--seed", 5, "--json", "-c", "ts,id"))
    again = rows_of(ok("sample", file, "-n", 3, "--seed", 5, "--json", "-c", "ts,id"))
    assert rows == again
    whole = sample().select(["ts", "id"]).to_pylist()
    assert [r["id"] for r in rows] == [w["id"] for w in whole if w["id"] in {r["id"] for r in rows}]
    with pyparq.ParquetFile(file) as opened:
        assert opened.sample(ROWS * 2).num_rows == ROWS


def test_take_from_many_files(folder: Path) -> None:
    found = pyparq.dataset(folder)
    whole = found.read().to_arrow()
    for wanted in ([11, 0, 0, 5, 4], [], [3], np.array([8, 2])):
        assert found.take(wanted).to_arrow().to_pylist() == whole.take(pa.array(wanted, pa.int64())).to_pylist()
    assert found.read_rows(-3, None, ["id"]).to_pydict() == {"id": [9, 10, 11]}
    with pytest.raises(pyparq.OptionError, match="row 12 does not exist"):
        found.take([12])


# ---- cat, count, size


def test_cat_joins_files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("joined")
    rows = rows_of(ok("cat", folder / "0.parquet", folder / "2.parquet"))
    assert rows == [{"id": n, "x": None if n < 5 else f"row {n - 5}"} for n in range(12)]
    assert ok("cat", folder, "--csv").splitlines()[6] == "5,row 0"
    assert run("cat", folder, "-o", tmp_path / "all.feather").exit_code == 0
    assert feather.read_table(tmp_path / "all.feather").to_pylist() == rows
    assert "suffix" in refused(2, "cat", folder, "-o", tmp_path / "all.txt")
    assert "use only one" in refused(2, "cat", folder, "--csv", "--json")


def test_count(file: Path, folder: Path) -> None:
    assert ok("count", file) == "4000\n"
    want = sum(n == "note 3" for n in sample()["note"].to_pylist())
    assert ok("count", file, "-w", "note = 'note 3'") == f"{want}\n"
    assert ok("count", folder) == ok("count", folder / "*.parquet") == "12\n"
    assert ok("count", folder / "1.parquet") == "0\n"
    files = [folder / f"{k}.parquet" for k in range(3)]
    assert as_json("count", *files, "--each", "--json") == {
        "rows": 12, "sources": [{"source": str(f), "rows": n} for f, n in zip(files, (5, 0, 7), strict=True)]
    }  # fmt: skip
    assert ok("count", *files, "--each").splitlines()[-1] == "  12  (all)"


def test_size_adds_up(file: Path) -> None:
    found, meta = as_json("size", file, "--json"), pq.read_metadata(file)
    columns = {c["name"]: c for c in found["columns"]}
    for j in range(meta.num_columns):
        chunks = [meta.row_group(k).column(j) for k in range(meta.num_row_groups)]
        ours = columns[chunks[0].path_in_schema]
        assert ours["compressed"] == sum(c.total_compressed_size for c in chunks)
        assert ours["uncompressed"] == sum(c.total_uncompressed_size for c in chunks)
    parts = sum(c["compressed"] + c["bloom_filters"] + c["indexes"] for c in found["columns"])
    assert parts + found["left_over"] == found["bytes"] == file.stat().st_size
    assert 0 < found["left_over"] < 10_000
    shown = [line.split()[0] for line in ok("size", file).splitlines()[3:]]
    assert shown[0] == "real"  # the largest


def test_without_columns_or_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({}), tmp_path / "none.parquet")
    assert ok("count", tmp_path / "none.parquet") == "0\n"
    assert "left over" in ok("size", tmp_path / "none.parquet")
    assert "(no columns)" in ok("tail", tmp_path / "none.parquet")
    assert ok("cat", tmp_path / "none.parquet") == ""


# ---- pipes


def piped(source: Path, *args: Any) -> subprocess.CompletedProcess[bytes]:
    """The command line behind ``cat``."""
    with subprocess.Popen(["cat", source], stdout=subprocess.PIPE) as cat:
        command = [sys.executable, "-m", "pyparq", *map(str, args)]
        return subprocess.run(command, stdin=cat.stdout, capture_output=True, timeout=120, check=False)


@pytest.mark.slow
def test_pipes_in_and_out(file: Path, tmp_path: Path) -> None:
    assert piped(file, "count", "-").stdout == b"4000\n"
    out = piped(file, "query", "-", "-w", "id < 100", "-o", "-")
    assert (out.returncode, out.stderr) == (0, b"")
    found = pq.read_table(pa.BufferReader(out.stdout))
    few = sample().drop_columns("real")  # it has NaN, which equals nothing
    assert found.drop_columns("real").equals(few.filter(pc.less(few["id"], 100)))
    with open(file, "rb") as opened:  # < file: no copy
        command = [sys.executable, "-m", "pyparq", "rewrite", "-", "-o", "-", "--sort-by", "id"]
        out = subprocess.run(command, stdin=opened, capture_output=True, timeout=120, check=True)
    assert pq.read_table(pa.BufferReader(out.stdout))["id"].to_pylist() == list(range(0, 2 * ROWS, 2))


@pytest.mark.slow
def test_nothing_comes_out_of_a_failure(tmp_path: Path) -> None:
    whole = write_sample(tmp_path / "whole.parquet").read_bytes()
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(whole[:150_000] + bytes(100) + whole[150_100:])
    out = piped(damaged, "cat", "-", "-o", "-")
    assert out.returncode == 1
    assert out.stdout == b""
    assert b"<stdin>" in out.stderr
    assert b"not a Parquet file" in piped(Path(__file__), "count", "-").stderr


# ---- storage options


def test_storage_options_reach_the_file_system(file: Path) -> None:
    import fsspec

    seen: list[dict[str, Any]] = []

    class Noting(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        protocol = "noting"
        cachable = False

        def __init__(self, **options: Any) -> None:
            seen.append({k: v for k, v in options.items() if k in ("anon", "client", "token")})
            super().__init__(**options)

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix("noting://").lstrip("/")

    fsspec.register_implementation("noting", Noting, clobber=True)
    fsspec.filesystem("memory").pipe("/verbs/sample.parquet", file.read_bytes())
    url = "noting:///verbs/sample.parquet"
    assert ok("count", url, "--storage", "anon=true", "--storage", "client.region=eu-1") == "4000\n"
    assert {"anon": True, "client": {"region": "eu-1"}} in seen
    os.environ["PYPARQ_STORAGE"] = '{"token": "secret"}'
    try:
        assert ok("count", url) == "4000\n"
        assert {"token": "secret"} in seen
        assert ok("count", file) == "4000\n"  # a local path needs none
        os.environ["PYPARQ_STORAGE"] = "secret"
        assert "secret" not in refused(2, "count", url)
    finally:
        del os.environ["PYPARQ_STORAGE"]
    assert "KEY=VALUE" in refused(2, "count", url, "--storage", "anon")


# ---- names and completion


def test_near_names_of_commands() -> None:
    assert "did you mean count" in refused(2, "cuont", "x")
    assert "did you mean meta?" in refused(2, "inspect", "x")
    for other, ours in {
        "describe": "meta",
        "json": "convert",
        "layout": "map",
        "append": "merge",
        "prune": "rewrite",
    }.items():
        assert f"did you mean {ours}?" in refused(2, other, "x")
    assert "did you mean" not in refused(2, "zzzzz")


def test_completion(file: Path) -> None:
    complete = ShellComplete(app, {}, "pyparq", "_PYPARQ_COMPLETE")

    def offered(words: list[str], begun: str) -> list[str]:
        return [item.value for item in complete.get_completions(words, begun)]

    assert offered([], "cou") == ["count"]
    assert offered(["head", str(file), "-c"], "s") == ["small", "single", "st", "st.x"]
    assert offered(["cat", str(file), "-c"], "id,no") == ["id,note"]
    assert offered(["cat", str(file), "-c"], '"odd') == ['"odd name, é"']
    assert offered(["head", "nowhere.parquet", "-c"], "s") == []
    assert [item.type for item in complete.get_completions(["head"], "x")] == ["file"]
    got = shell(COMP_WORDS=f"pyparq head {file} -c fl", COMP_CWORD="4", _PYPARQ_COMPLETE="bash_complete")
    assert got.stdout.split() == ["plain,flag"]


def test_meta_names_columns(file: Path) -> None:
    document = as_json("meta", file, "--json")
    assert [c["name"] for c in document["row_groups"][0]["columns"]][-2:] == ["odd name, é", "st.x"]
    assert as_json("index", file, "-c", "id", "--json")[0]["name"] == "id"


def test_encrypted_files(tmp_path: Path) -> None:
    path, keys = tmp_path / "secret.parquet", tmp_path / "keys.json"
    pyparq.write_table({"a": [1, 2, 3]}, path, encryption=pyparq.EncryptionProperties(footer_key=b"0123456789012345"))
    keys.write_text('{"footer_key": "text:0123456789012345"}')
    assert ok("tail", path, "-n", 1, "--json", "--keys", keys) == '{"a": 3}\n'
    assert len(rows_of(ok("sample", path, "-n", 2, "--json", "--keys", keys))) == 2
    assert ok("count", path, "--keys", keys) == "3\n"
    assert "--keys" in refused(1, "cat", path)


def test_reports_as_json(tmp_path: Path) -> None:
    pyparq.write_table({"x": [3, 1, 2], "p": ["a", "b", "a"]}, tmp_path / "a.parquet")
    source = str(tmp_path / "a.parquet")

    def report(*arguments: str) -> Any:
        return json.loads(ok(*arguments, "--json"))

    merged = report("merge", source, source, "-o", str(tmp_path / "m.parquet"))
    assert (merged["num_files"], merged["num_rows"], merged["num_row_groups"]) == (2, 6, 2)
    made = report("rewrite", source, "-o", str(tmp_path / "r.parquet"), "--sort-by", "x")
    assert made["num_rows"] == 3
    assert [file["num_rows"] for file in made["files"]] == [3]
    written = report("edit-metadata", source, "--set", "k=v")
    assert written == {"files_written": 1}
    converted = report("convert", source, str(tmp_path / "a.csv"))
    assert converted == {"path": str(tmp_path / "a.csv"), "num_rows": 3}
    assert report("import", str(tmp_path / "a.csv"), "-o", str(tmp_path / "b.parquet"))["num_rows"] == 3


def test_variants_are_shown_as_what_they_hold(tmp_path: Path) -> None:
    schema = pyparq.schema({"id": "int64", "v": "variant?", "l": "list<variant?>?"})
    rows = [
        {"id": 1, "v": {"a": [1, 2.5, None], "b": b"\x01"}, "l": [1, "x"]},
        {"id": 2, "v": decimal.Decimal("1.50"), "l": None},
        {"id": 3, "v": None, "l": [{"d": dt.date(2024, 1, 2)}]},
    ]
    pyparq.write_table(rows, tmp_path / "v.parquet", schema=schema)
    source = str(tmp_path / "v.parquet")
    shown = [json.loads(line) for line in ok("cat", source, "--json").splitlines()]
    assert shown == [
        {"id": 1, "v": {"a": [1, 2.5, None], "b": "0x01"}, "l": [1, "x"]},
        {"id": 2, "v": "1.50", "l": None},
        {"id": 3, "v": None, "l": [{"d": "2024-01-02"}]},
    ]
    assert '"{""a"": [1, 2.5, null], ""b"": ""0x01""}"' in ok("cat", source, "--csv")
    assert '{"a": [1, 2.5, null], "b": "0x01"}' in ok("head", source)
