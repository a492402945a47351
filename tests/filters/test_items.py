"""Items of lists and maps in filters, ``l[1]`` and ``m['k']``: the rows that DuckDB keeps, of random questions."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyparq
from pyparq import ColumnNotFoundError, FilterError, col

KEYS = ["k", "", "Ä'x", "key", "value"]
DAYS = [dt.date(2024, 1, d) for d in (1, 2, 3)]


def frame(rows: int, seed: int) -> pa.Table:
    draw = random.Random(seed)

    def several(one: Any) -> Any:
        return None if draw.random() < 0.15 else [one() for _ in range(draw.choice([0, 1, 1, 2, 3]))]

    def of(values: list[Any]) -> Any:
        return lambda: None if draw.random() < 0.2 else draw.choice(values)

    def mapped(keys: list[Any], values: list[Any]) -> Any:
        if draw.random() < 0.15:
            return None
        return [(key, of(values)()) for key in draw.sample(keys, draw.randint(0, len(keys)))]

    def struct() -> Any:
        return None if draw.random() < 0.2 else {"x": of([1, 2, 3])(), "y": of(["a", "b"])()}

    pair = pa.struct([("x", pa.int16()), ("y", pa.string())])
    return pa.table({
        "n": pa.array(range(rows), pa.int32()), "i": pa.array([of([1, 2, 3])() for _ in range(rows)], pa.int64()),
        "l": pa.array([several(of([1, 2, 3, -4])) for _ in range(rows)], pa.list_(pa.int64())),
        "t": pa.array([several(of(["a", "b", "a long text"])) for _ in range(rows)], pa.list_(pa.string())),
        "d": pa.array([several(of(DAYS)) for _ in range(rows)], pa.large_list(pa.date32())),
        "f": pa.array([several(of([0.5, float("nan"), -0.0])) for _ in range(rows)], pa.list_(pa.float64())),
        "ls": pa.array([several(struct) for _ in range(rows)], pa.list_(pair)),
        "m": pa.array([mapped(KEYS, [1, 2, 3]) for _ in range(rows)], pa.map_(pa.string(), pa.int32())),
        "mi": pa.array([mapped([1, 2, -3], ["a", "b"]) for _ in range(rows)], pa.map_(pa.int64(), pa.string())),
        "ms": pa.array([mapped(KEYS[:2], [{"x": 1, "y": "a"}, {"x": None, "y": "b"}]) for _ in range(rows)],
                       pa.map_(pa.string(), pair)),
        "s": pa.array([None if draw.random() < 0.2 else {"l": several(of([1, 2]))} for _ in range(rows)],
                      pa.struct([("l", pa.list_(pa.int32()))])),
    })  # fmt: skip


def question(draw: random.Random) -> str:
    key = draw.choice([*KEYS, "gone"]).replace("'", "''")
    number = draw.choice([1, 1, 2, 3, 9, 0, -1, -2, -9])
    numbers = draw.choice([
        f"l[{number}]", f"m['{key}']", f"ls[{number}].x", f"ls[{number}]['x']", f"ms['{key}'].x", f"s.l[{number}]",
        f"s['l'][{number}]", f"length(t[{number}])", f"l[{number}] + 1", "i",
    ])  # fmt: skip
    texts = draw.choice([f"t[{number}]", f"mi[{draw.choice([1, 2, -3, 7])}]", f"ls[{number}].y", f"ms['{key}']['y']"])
    value, op = draw.randint(-1, 3), draw.choice(["=", "<>", "<", "<=", ">", ">="])
    made = draw.choice([
        f"{numbers} {op} {value}", f"{texts} {op} 'b'", f"{numbers} is null", f"{texts} is not null",
        f"{numbers} in (1, {value})", f"{texts} not in ('a', 'x')", f"{numbers} between 1 and 2", f"{numbers} {op} i",
        f"{texts} like 'a%'", f"upper({texts}) = 'B'", f"l[{number}] {op} m['{key}']",
        f"d[{number}] {op} date '2024-01-02'",
        f"{numbers} is distinct from {value}", f"f[{number}] {op} 0.5", f"{texts} = ls[1].y", f"{numbers} = 1.5",
    ])  # fmt: skip
    return draw.choice([made, f"not ({made})", f"({made}) or i = 2", f"({made}) and n > 5"])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One row, one row group, many small ones with page indexes; written by pyarrow, DuckDB and pyparq."""
    folder, whole = tmp_path_factory.mktemp("items"), frame(150, 1)
    found = {name: folder / f"{name}.parquet" for name in ("one row", "pyarrow", "small", "pyparq", "duckdb")}
    pq.write_table(frame(1, 2), found["one row"])
    pq.write_table(whole, found["pyarrow"], data_page_version="2.0", use_dictionary=False)
    pq.write_table(whole, found["small"], row_group_size=20, data_page_size=64, write_page_index=True)
    pyparq.write_table(whole, found["pyparq"], row_group_size=70, max_rows_per_page=10)
    with duckdb.connect() as base:
        base.register("whole", whole)
        base.execute(f"copy whole to '{found['duckdb']}' (format parquet, row_group_size 2048)")
    return found


@pytest.fixture(scope="module")
def base() -> Iterator[Any]:
    with duckdb.connect() as found:
        found.execute("set threads = 1; set timezone = 'Asia/Tokyo'")
        yield found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["one row", "pyarrow", "small", "pyparq", "duckdb"])
def test_the_rows_that_duckdb_keeps(name: str, seed: int, files: dict[str, Path], base: Any) -> None:
    draw, path, kept = random.Random(f"{name} {seed}"), files[name], 0
    base.execute(f"create or replace table asked as from '{path}'")
    for _ in range(25):
        text = question(draw)
        due = [number for (number,) in base.execute(f"select n from asked where {text} order by n").fetchall()]
        assert pyparq.read_table(path, ["n"], text)["n"].to_pylist() == due, text
        assert pyparq.count(path, text) == len(due), text
        kept += len(due)
    assert kept or name == "one row"


def test_in_python(files: dict[str, Path]) -> None:
    """Numbers count from 0 there."""
    path = files["small"]
    rows = pq.read_table(path, columns=["n", "l", "m", "ls", "s", "mi"]).to_pylist(maps_as_pydicts="strict")

    def item(values: Any, place: int) -> Any:
        return values[place] if values and -len(values) <= place < len(values) else None

    cases: list[tuple[Any, Any]] = [
        (col("l")[0] == 2, lambda r: item(r["l"], 0) == 2), (col("l")[-1] == 2, lambda r: item(r["l"], -1) == 2),
        (col("l")[-9].is_null(), lambda r: True),
        (~col("m")["k"].is_null(), lambda r: (r["m"] or {}).get("k") is not None),
        (col("m")["k"].isin([1, 3]), lambda r: (r["m"] or {}).get("k") in (1, 3)),
        (col("ls")[1]["y"].starts_with("a"), lambda r: ((item(r["ls"], 1) or {}).get("y") or "").startswith("a")),
        (col("s")["l"][0] == 1, lambda r: item((r["s"] or {}).get("l"), 0) == 1),
        (col("mi")[-3] == "b", lambda r: (r["mi"] or {}).get(-3) == "b"),
        (col("m")["k"] + col("l")[0] == 3, lambda r: ((r["m"] or {}).get("k") or 99) + (item(r["l"], 0) or 99) == 3),
        (col("s")["l"].is_null(), lambda r: (r["s"] or {}).get("l") is None),
    ]  # fmt: skip
    for asked, passes in cases:
        due = [row["n"] for row in rows if passes(row)]
        assert due, asked
        assert pyparq.read_table(path, ["n"], asked)["n"].to_pylist() == due, asked
        assert pyparq.dataset([path, path]).scan(["n"], asked).to_table()["n"].to_pylist() == due * 2


def test_a_file_without_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1], "m": pa.array([[("k", 5)]], pa.map_(pa.string(), pa.int64()))}), tmp_path / "a")
    pq.write_table(pa.table({"n": [2]}), tmp_path / "b")
    both = pyparq.dataset([tmp_path / "a", tmp_path / "b"])
    assert both.scan(["n"], "m['k'] = 5").to_table()["n"].to_pylist() == [1]
    assert both.scan(["n"], col("m")["k"].is_null()).to_table()["n"].to_pylist() == [2]


def test_items_prune(tmp_path: Path) -> None:
    """No item of a list equals what none of its items equals: Bloom filters, statistics and dictionaries say so."""
    table = {"l": [[k, k + 1] for k in range(1000)]}
    pyparq.write_table(table, tmp_path / "a", row_group_size=100, bloom_filters=True)
    with pyparq.ParquetFile(tmp_path / "a") as file:
        scan = file.scan(filters="l[2] = 550")
        assert scan.to_table().to_pydict() == {"l": [[549, 550]]}
        assert file.scan(filters="l[2] = 550").plan().row_groups[0].row_group == 5
        assert len(file.scan(filters="l[2] = 550").plan().row_groups) == 1


def test_what_is_refused(files: dict[str, Path]) -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        ("i[1] = 1", FilterError, "i is no list"), ("l['a'] = 1", FilterError, "l is no map"),
        ("ls[1].z = 1", FilterError, "no field 'z'"), ("l[i] = 1", FilterError, "a number or a 'text'"),
        ("gone[1] = 1", ColumnNotFoundError, "gone"), ("ls[1] = 1", FilterError, "nested"),
        (col("l")["a"] == 1, FilterError, "by its number"), (col("i")[0] == 1, FilterError, "lists and maps"),
        (col("m")[1] == 1, FilterError, "give a str"), (col("ls")[0].is_null(), FilterError, "nested"),
        (col("l")[0]["x"] == 1, FilterError, "no field 'x'"),
    ]  # fmt: skip
    for asked, kind, words in cases:
        with pytest.raises(kind, match=words):
            pyparq.read_table(files["one row"], filters=asked)
    with pytest.raises(FilterError, match="by a number or a key"):
        col("l")[1:2]
    with pytest.raises(TypeError):
        list(col("l"))  # type: ignore[call-overload]
