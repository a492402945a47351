"""``update`` and ``upsert`` on tables of Delta Lake and Iceberg: one commit, whose values other readers agree on."""

from __future__ import annotations

import datetime as dt
import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import require

import pyparq
from pyparq import col
from pyparq.errors import DataError, OptionError, UnsupportedError, WriteConflictError

deltalake = require("deltalake")
require("pyiceberg")
pa = require("pyarrow")

COUNT = 300


def people(count: int = COUNT) -> Any:
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(count)]
    return pa.table({
        "id": pa.array(range(count), pa.int64()), "p": pa.array([k % 3 for k in range(count)], pa.int32()),
        "s": [None if k % 7 == 0 else f"person-{k:04d}-" + "é" * (k % 50) for k in range(count)],
        "f": [k / 2 for k in range(count)], "d": days,
        "t": pa.array([dt.datetime.combine(day, dt.time(1, 2, 3, 4005)) for day in days], pa.timestamp("us", "UTC")),
        "m": pa.array([Decimal(k) / 4 for k in range(count)], pa.decimal128(9, 2)),
        "st": [{"a": k, "l": [k]} for k in range(count)],
    })  # fmt: skip


def corrections() -> Any:
    """A row that moves to another partition, one that stays, two new ones of which one has no partition."""
    rows = people().slice(10, 4).to_pylist()
    rows[0]["p"] = 2
    rows[1]["s"] = "zz-changed"
    rows[2]["id"] = 9000
    rows[3] |= {"id": 9001, "p": None}
    return pa.Table.from_pylist(rows, schema=people().schema)


def expected(data: Any, new: Any) -> list[dict[str, Any]]:
    rows = {row["id"]: row for row in data.to_pylist()} | {row["id"]: row for row in new.to_pylist()}
    return [rows[number] for number in sorted(rows)]


def delta(folder: Path, data: Any, **options: Any) -> Any:
    deltalake.write_deltalake(folder, data, **options)
    return deltalake.DeltaTable(folder)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """As deltalake reads them."""
    table = deltalake.DeltaTable(folder).to_pyarrow_table().sort_by("id")
    return table.select(people().column_names).to_pylist()  # type: ignore[no-any-return]


def actions(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = max((folder / "_delta_log").glob("*.json")).read_text().splitlines()
    return [line[kind] for line in map(json.loads, lines) if kind in line]


def parquet_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    found.create_namespace("n")
    return found


def iceberg(catalog: Any, data: Any, *, partitions: list[tuple[str, str]] = [], **options: Any) -> Any:  # noqa: B006
    from pyiceberg.transforms import parse_transform

    table = catalog.create_table("n.t", schema=data.schema, **options)
    with table.update_spec() as update:
        for name, transform in partitions:
            update.add_field(name, parse_transform(transform))
    return catalog.load_table("n.t")


def of_iceberg(catalog: Any) -> list[dict[str, Any]]:
    return catalog.load_table("n.t").scan().to_arrow().sort_by("id").to_pylist()  # type: ignore[no-any-return]


# ---- Delta Lake ----------------------------------------------------------------------------------------------------


@pytest.mark.sweep(3)
@pytest.mark.parametrize("partitions", [[], ["p"], ["p", "d"]])
def test_upsert_into_delta(tmp_path: Path, partitions: list[str]) -> None:
    table = delta(tmp_path, people(), partition_by=partitions)
    version, files = table.version(), parquet_files(tmp_path)
    dry = pyparq.upsert(table, corrections(), "id", dry_run=True)
    assert parquet_files(tmp_path) == files
    report = pyparq.upsert(table, corrections(), "id")
    for one in (dry, report):
        assert one.rows_updated + one.rows_added == 4
        assert any("VACUUM" in note for note in one.notes)
    assert rows_of(tmp_path) == expected(people(), corrections())
    after = deltalake.DeltaTable(tmp_path)
    assert after.version() == version + 1
    assert after.history(1)[0]["pyparq.operation"] == "MERGE"
    assert repr(after.to_pandas().sort_values("id")["s"].tolist()[-1]) == repr(corrections()["s"][3].as_py())
    read = pyparq.read_table(after).to_arrow().sort_by("id").select(people().column_names)
    assert read.to_pylist() == expected(people(), corrections())
    for row in corrections().to_pylist():
        for name in ("id", "p", "s", "d", "t"):
            question = pa.compute.field(name).is_null() if row[name] is None else pa.compute.field(name) == row[name]
            found = after.to_pyarrow_dataset().to_table(filter=question)["id"].to_pylist()
            assert row["id"] in found, (name, row)
    if partitions == ["p"]:
        added = {action["partitionValues"]["p"] for action in actions(tmp_path, "add")}
        assert added == {"0", "1", "2", None}
        stats = [json.loads(action["stats"]) for action in actions(tmp_path, "add")]
        assert sorted(stat["numRecords"] for stat in stats) == [1, 1, 1, 99, 100]
        assert {stat["maxValues"]["id"] for stat in stats if stat["numRecords"] < 99} == {10, 9000, 9001}


def test_duckdb_reads_the_same(tmp_path: Path) -> None:
    duckdb = require("duckdb")
    pyparq.upsert(delta(tmp_path, people(), partition_by=["p"]), corrections(), "id")
    dataset = deltalake.DeltaTable(tmp_path).to_pyarrow_dataset()
    got = duckdb.sql("select id, p, s from dataset order by id").fetchall()
    assert got == [(row["id"], row["p"], row["s"]) for row in expected(people(), corrections())]
    assert dataset is not None


ODD = ["plain", "a b", "x/y", "ü", "100%", "a:b", "a=b", "a+b", "a#b", "a?b", "%20", "𠮷", "'\"", None]


def test_new_rows_of_odd_partitions(tmp_path: Path) -> None:
    table = delta(tmp_path, pa.table({"id": [-1], "s": ["plain"]}), partition_by=["s"])
    data = pa.table({"id": pa.array(range(len(ODD)), pa.int64()), "s": ODD})
    pyparq.upsert(table, data, "id")
    after = deltalake.DeltaTable(tmp_path)
    got = after.to_pyarrow_table().sort_by("id").slice(1)
    assert got.select(["id", "s"]).to_pylist() == data.to_pylist()
    assert (
        pyparq.read_table(after).to_arrow().sort_by("id").slice(1).select(["id", "s"]).to_pylist() == data.to_pylist()
    )


PARTITIONED = {
    "date": [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31), None],
    "timestamp": [dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC), dt.datetime(1969, 12, 31, tzinfo=dt.UTC), None],
    "bool": [True, False, None],
    "double": [1.5, 1e10, 1e-7, -0.25, None],
    "decimal": [Decimal("1.50"), Decimal("0.01"), None],  # deltalake itself cannot read negative ones
    "int": [-5, 0, 1 << 60, None],
}
_ARROW = {"date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "bool": pa.bool_(), "double": pa.float64(),
          "decimal": pa.decimal128(9, 2), "int": pa.int64()}  # fmt: skip


@pytest.mark.parametrize("kind", PARTITIONED)
def test_new_rows_of_partitions_of_all_types(tmp_path: Path, kind: str) -> None:
    values = PARTITIONED[kind]
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": pa.array(values, _ARROW[kind])})
    table = delta(tmp_path, data.slice(0, 1), partition_by=["v"])
    pyparq.upsert(table, data, "id")
    after = deltalake.DeltaTable(tmp_path)
    assert after.to_pyarrow_table().sort_by("id").select(["id", "v"]).to_pylist() == data.to_pylist()
    assert pyparq.read_table(after).to_arrow().sort_by("id").select(["id", "v"]).to_pylist() == data.to_pylist()


def test_update_of_delta(tmp_path: Path) -> None:
    table = delta(tmp_path, people(), partition_by=["p"])
    report = pyparq.update(table, col("id") < 4, {"s": None, "m": col("m") + 1, "d": dt.date(2030, 1, 1)})
    assert report.rows_updated == 4
    wanted = [
        row | {"s": None, "m": row["m"] + 1, "d": dt.date(2030, 1, 1)} if row["id"] < 4 else row
        for row in people().to_pylist()
    ]
    assert rows_of(tmp_path) == wanted
    assert deltalake.DeltaTable(tmp_path).history(1)[0]["pyparq.operation"] == "UPDATE"
    assert all(json.loads(add["stats"])["maxValues"]["d"] == "2030-01-01" for add in actions(tmp_path, "add"))
    with pytest.raises(OptionError, match="would have to move"):
        pyparq.update(deltalake.DeltaTable(tmp_path), col("id") == 1, {"p": 2})
    assert rows_of(tmp_path) == wanted


def test_rows_for_an_empty_table(tmp_path: Path, catalog: Any) -> None:
    pyparq.upsert(delta(tmp_path / "d", people().slice(0, 0)), people(), "id")
    assert rows_of(tmp_path / "d") == people().to_pylist()
    (add,) = actions(tmp_path / "d", "add")
    assert json.loads(add["stats"])["maxValues"]["id"] == COUNT - 1
    pyparq.upsert(iceberg(catalog, people()), people(), "id")
    assert of_iceberg(catalog) == people().to_pylist()


def test_a_key_that_others_append_is_a_conflict(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = delta(folder, pa.table({"id": [1], "v": ["a"]}), partition_by=["v"])
    stale = [deltalake.DeltaTable(folder) for _ in range(2)]
    deltalake.write_deltalake(table, pa.table({"id": [7], "v": ["b"]}), mode="append")
    files, folders = parquet_files(folder), sorted(folder.iterdir())
    with pytest.raises(WriteConflictError, match="added rows meanwhile"):
        pyparq.upsert(stale[0], pa.table({"id": [7, 8], "v": ["c", "d"]}), "id")
    assert (parquet_files(folder), sorted(folder.iterdir())) == (files, folders)
    pyparq.upsert(stale[1], pa.table({"id": [9], "v": ["c"]}), "id")
    assert sorted(deltalake.DeltaTable(folder).to_pyarrow_table()["id"].to_pylist()) == [1, 7, 9]


def test_required_columns(tmp_path: Path) -> None:
    """The log requires a column that the file does not."""
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("v", pa.int64(), False)])
    table = delta(tmp_path, pa.table({"id": [1, 2], "v": [3, 4]}, schema=schema))
    (file,) = parquet_files(tmp_path)
    pa.parquet.write_table(pa.table({"id": [1, 2], "v": [3, 4]}), file)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["size"] = file.stat().st_size
    log.write_text("\n".join(map(json.dumps, lines)))
    table = deltalake.DeltaTable(tmp_path)
    with pytest.raises(DataError, match="null"):
        pyparq.update(table, col("id") == 1, {"v": None})
    with pytest.raises(DataError):
        pyparq.upsert(table, pa.table({"id": [1, 9], "v": pa.array([None, 1], pa.int64())}), "id")
    assert parquet_files(tmp_path) == [file]
    pyparq.update(table, col("id") == 1, {"v": 9})
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")["v"].to_pylist() == [9, 4]


def test_columns_that_are_younger_than_a_file(tmp_path: Path) -> None:
    delta(tmp_path, pa.table({"id": [1, 2]}))
    delta(tmp_path, pa.table({"id": [3], "v": ["c"]}), mode="append", schema_mode="merge")
    with pytest.raises(UnsupportedError, match="older than the column"):
        pyparq.update(deltalake.DeltaTable(tmp_path), col("id") < 4, {"v": "x"})
    assert len(parquet_files(tmp_path)) == 2
    pyparq.update(deltalake.DeltaTable(tmp_path), col("id") == 3, {"v": "x"})
    pyparq.upsert(deltalake.DeltaTable(tmp_path), pa.table({"id": [1, 4], "v": ["a", "d"]}), "id")
    got = deltalake.DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert got == [{"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 3, "v": "x"}, {"id": 4, "v": "d"}]


# ---- Iceberg -------------------------------------------------------------------------------------------------------


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "partitions",
    [[], [("p", "identity")], [("id", "bucket[4]"), ("d", "month"), ("p", "identity"), ("s", "truncate[3]")],
     [("t", "day"), ("p", "void")]],
)  # fmt: skip
def test_upsert_into_iceberg(catalog: Any, tmp_path: Path, partitions: list[tuple[str, str]]) -> None:
    table = iceberg(catalog, people(), partitions=partitions)
    pyparq.upsert(table, people(), "id")
    assert of_iceberg(catalog) == people().to_pylist()
    files = parquet_files(tmp_path)
    pyparq.upsert(catalog.load_table("n.t"), corrections(), "id", dry_run=True)
    assert parquet_files(tmp_path) == files
    report = pyparq.upsert(catalog.load_table("n.t"), corrections(), "id")
    assert report.rows_updated + report.rows_added == 4
    table = catalog.load_table("n.t")
    assert of_iceberg(catalog) == expected(people(), corrections())
    assert pyparq.read_table(table).to_arrow().sort_by("id").to_pylist() == expected(people(), corrections())
    assert len(table.snapshots()) == 2
    summary = table.current_snapshot().summary
    assert (summary.operation.value, summary["pyparq.operation"]) == ("overwrite", "MERGE")
    assert summary["total-records"] == str(COUNT + 2)
    for row in corrections().to_pylist():
        for question in (f"id == {row['id']}", f"d == '{row['d']}'", f"t == '{row['t'].isoformat()}'",
                         "p is null" if row["p"] is None else f"p == {row['p']}", f"s == '{row['s']}'"):  # fmt: skip
            found = table.scan(row_filter=question).to_arrow()["id"].to_pylist()
            assert row["id"] in found, question
    for entry in table.inspect.files().to_pylist():
        own = pyparq.read_table(entry["file_path"].removeprefix("file://")).to_pylist()
        assert entry["record_count"] == len(own)
        numbers = [row["id"] for row in own]
        metric = entry["readable_metrics"]["id"]
        assert (metric["lower_bound"], metric["upper_bound"]) == (min(numbers), max(numbers))
        if ("p", "identity") in partitions:
            assert {row["p"] for row in own} == {entry["partition"]["p"]}


def test_partition_values_are_those_of_the_specification(catalog: Any) -> None:
    """Appendix B ("34 → 2017239379", "iceberg" → 1210000089), days, months and hours since 1970."""
    data = pa.table({
        "id": pa.array([34], pa.int64()), "s": ["iceberg"], "d": [dt.date(2017, 11, 16)],
        "t": pa.array([dt.datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us")),
    })  # fmt: skip
    partitions = [("id", "bucket[1000]"), ("s", "bucket[16]"), ("d", "month"), ("t", "hour"), ("s", "truncate[2]")]
    pyparq.upsert(iceberg(catalog, data, partitions=partitions), data, "id")
    (entry,) = catalog.load_table("n.t").inspect.files().to_pylist()
    days = dt.date(2017, 11, 16).toordinal() - dt.date(1970, 1, 1).toordinal()
    assert entry["partition"] == {
        "id_bucket_1000": (2017239379 & 0x7FFFFFFF) % 1000, "s_bucket_16": (1210000089 & 0x7FFFFFFF) % 16,
        "d_month": 47 * 12 + 10, "t_hour": days * 24 + 22, "s_trunc_2": "ic",
    }  # fmt: skip


def test_update_of_iceberg(catalog: Any) -> None:
    table = iceberg(catalog, people(), partitions=[("d", "month")])
    pyparq.upsert(table, people(), "id")
    pyparq.update(catalog.load_table("n.t"), col("id") < 4, {"s": None, "m": col("m") + 1})
    wanted = [row | {"s": None, "m": row["m"] + 1} if row["id"] < 4 else row for row in people().to_pylist()]
    assert of_iceberg(catalog) == wanted
    summary = catalog.load_table("n.t").current_snapshot().summary
    assert summary["pyparq.operation"] == "UPDATE"
    with pytest.raises(UnsupportedError, match="month of the column"):
        pyparq.update(catalog.load_table("n.t"), col("id") == 1, {"d": dt.date(2030, 1, 1)})
    assert of_iceberg(catalog) == wanted


def test_a_partition_spec_that_has_changed(catalog: Any) -> None:
    """A row whose partition changes leaves a file of the newer spec, and files of the older one know no partition."""
    table = iceberg(catalog, people())
    table.append(people().slice(0, 100))
    with table.update_spec() as update:
        update.add_identity("p")
    catalog.load_table("n.t").append(people().slice(100))
    rows = people().slice(98, 4).to_pylist()
    for row in rows:
        row["p"] = 2
    new = pa.Table.from_pylist(rows, schema=people().schema)
    pyparq.upsert(catalog.load_table("n.t"), new, "id")
    assert of_iceberg(catalog) == expected(people(), new)
    wanted = [row["id"] for row in expected(people(), new) if row["p"] == 2]
    assert sorted(catalog.load_table("n.t").scan(row_filter="p == 2").to_arrow()["id"].to_pylist()) == wanted


def test_names_that_have_changed_places(catalog: Any, tmp_path: Path) -> None:
    """The file's column ``a`` is the table's ``b`` now, and there is another ``a``."""
    table = iceberg(catalog, pa.table({"id": [1, 2], "a": ["x", "y"]}))
    table.append(pa.table({"id": [1, 2], "a": ["x", "y"]}))
    with table.update_schema() as update:
        update.rename_column("a", "b")
    with table.update_schema() as update:
        from pyiceberg.types import StringType

        update.add_column("a", StringType())
    files = parquet_files(tmp_path)
    for values in ({"a": "z"}, {"b": "z"}):
        with pytest.raises(UnsupportedError, match=r"name in the file|another name"):
            pyparq.update(catalog.load_table("n.t"), col("id") == 1, values)
    with pytest.raises(UnsupportedError, match=r"name in the file|another name"):
        pyparq.upsert(catalog.load_table("n.t"), pa.table({"id": [1], "b": ["n"], "a": ["m"]}), "id")
    assert parquet_files(tmp_path) == files
    pyparq.upsert(catalog.load_table("n.t"), pa.table({"id": [3], "b": ["n"], "a": ["m"]}), "id")
    assert of_iceberg(catalog) == [
        {"id": 1, "b": "x", "a": None}, {"id": 2, "b": "y", "a": None}, {"id": 3, "b": "n", "a": "m"}
    ]  # fmt: skip
    pyparq.delete(catalog.load_table("n.t"), col("b") == "x")
    assert [row["id"] for row in of_iceberg(catalog)] == [2, 3]


def test_nested_names_that_have_changed(catalog: Any) -> None:
    data = pa.table({"id": [1], "st": [{"a": 1, "b": "x"}]})
    table = iceberg(catalog, data)
    table.append(data)
    with table.update_schema() as update:
        update.rename_column(("st", "a"), "c")
    new = pa.table({"id": [1], "st": [{"c": 5, "b": "y"}]})
    with pytest.raises(UnsupportedError, match="another name"):
        pyparq.upsert(catalog.load_table("n.t"), new, "id")
    with pytest.raises(UnsupportedError, match="another name"):
        pyparq.update(catalog.load_table("n.t"), col("id") == 1, {"st": {"c": 5, "b": "y"}})
    assert of_iceberg(catalog) == [{"id": 1, "st": {"c": 1, "b": "x"}}]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
