"""What a user of another library types first, before reading anything: it runs, or the message or one page says what to
write. From the tutorials of pyarrow, pandas, polars and fastparquet, with pyparq's name in place of theirs."""

from __future__ import annotations

import datetime as dt
import os
import textwrap
from pathlib import Path

import pytest

import pyparq

PEOPLE = {
    "id": [1, 2, 3, 4, 5, 6],
    "name": ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"],
    "city": ["Rome", "Oslo", "Rome", "Bern", "Oslo", "Bern"],
    "age": [36, 20, 30, 50, 24, 31],
    "born": [dt.datetime(year, 5, 1) for year in (1988, 2004, 1994, 1974, 2000, 1994)],
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyparq.write_table(PEOPLE, "people.parquet", row_group_size=3)
    for year in (2023, 2024, 2025):
        os.makedirs(f"sales/year={year}")
        pyparq.write_table({"amount": [year, year + 1, year + 2]}, f"sales/year={year}/0.parquet")
    os.makedirs("parts")
    os.makedirs("d")
    for k in range(3):
        pyparq.write_table({"a": [k, k + 1]}, f"parts/{k}.parquet")


RUN: dict[str, str] = {
    "pyarrow 1: a table, two columns": """\
        import numpy as np, pandas as pd, pyarrow as pa, pyparq.parquet as pq
        values = {"one": [-1, np.nan, 2.5], "two": ["foo", "bar", "baz"], "three": [True, False, True]}
        df = pd.DataFrame(values, index=list("abc"))
        pq.write_table(pa.Table.from_pandas(df), "example.parquet")
        assert pq.read_table("example.parquet", columns=["one", "three"]).column_names == ["one", "three"]
        assert pq.read_pandas("example.parquet", columns=["two"]).to_pandas().index.tolist() == ["a", "b", "c"]
    """,
    "pyarrow 2: what a file says of itself": """\
        import pyparq
        parquet_file = pyparq.ParquetFile("people.parquet")
        metadata = parquet_file.metadata
        assert metadata.num_rows == 6 and metadata.num_columns == 5
        column = metadata.row_group(0).column(0)
        assert column.statistics.min == 1 and column.compression
        assert parquet_file.schema.names == ["id", "name", "city", "age", "born"]
        assert parquet_file.num_row_groups == 2
        assert parquet_file.read_row_group(0).num_rows == 3
    """,
    "pyarrow 3: a writer takes tables in a loop": """\
        import pyarrow as pa, pyparq
        table = pa.table({"a": [1, 2], "b": ["x", "y"]})
        with pyparq.ParquetWriter("example2.parquet", table.schema) as writer:
            for i in range(3):
                writer.write_table(table)
        assert pyparq.ParquetFile("example2.parquet").num_row_groups in (1, 3)
        assert pyparq.read_table("example2.parquet").num_rows == 6
    """,
    "pyarrow 4: a partitioned data set": """\
        import pyparq
        table = pyparq.read_table("people.parquet")
        pyparq.write_to_dataset(table, root_path="dataset_name", partition_cols=["city"])
        assert pyparq.read_table("dataset_name").num_rows == 6
    """,
    "pyarrow 5: ds.dataset in its words": """\
        import pyparq
        dataset = pyparq.dataset("sales", format="parquet", partitioning="hive")
        assert len(dataset.files) == 3
        assert dataset.count_rows() == 9
        assert dataset.head(2).num_rows == 2
        assert dataset.to_table(columns=["amount"], filter=pyparq.field("year") == 2024).num_rows == 3
    """,
    "pyarrow 6: batches of a file": """\
        import pyparq
        total = 0
        for batch in pyparq.ParquetFile("people.parquet").iter_batches(batch_size=2, columns=["age"]):
            total += sum(batch.to_pydict()["age"])
        assert total == 191
    """,
    "pyarrow 7: metadata of one's own": """\
        import pyarrow as pa, pyparq
        table = pa.table({"a": [1]}).replace_schema_metadata({"author": "me"})
        pyparq.write_table(table, "m.parquet")
        assert pyparq.read_schema("m.parquet").metadata[b"author"] == b"me"
        assert pyparq.read_table("m.parquet").schema.metadata[b"author"] == b"me"
    """,
    "pyarrow 8: a file in memory": """\
        import io, pyarrow as pa, pyparq
        buf = pa.BufferOutputStream()
        pyparq.write_table(pa.table({"a": [1, 2, 3]}), buf)
        assert pyparq.read_table(pa.BufferReader(buf.getvalue())).num_rows == 3
        assert pyparq.read_table(io.BytesIO(buf.getvalue().to_pybytes())).num_rows == 3
    """,
    "pyarrow 10: a codec per column": """\
        import pyparq
        table = pyparq.read_table("people.parquet")
        pyparq.write_table(table, "c.parquet", compression={"id": "snappy", "name": "gzip"}, use_dictionary=["city"])
        assert pyparq.ParquetFile("c.parquet").metadata.row_group(0).column(1).compression == "GZIP"
    """,
    "pyarrow 15: a list of files, and a glob": """\
        import pyparq
        assert pyparq.read_table(["parts/0.parquet", "parts/1.parquet"]).num_rows == 4
        assert pyparq.read_table("parts/*.parquet").num_rows == 6
        tables = [pyparq.read_table(f"parts/{k}.parquet") for k in range(2)]
        assert pyparq.concat_tables(tables).num_rows == 4
    """,
    "pyarrow 17: projection of nested fields": """\
        import pyparq
        pyparq.write_table({"p": [{"x": 1, "y": 2}, {"x": 3, "y": 4}], "l": [[1], [2, 3]]}, "n.parquet")
        assert pyparq.read_table("n.parquet", columns=["p.x"]).to_pylist() == [{"p": {"x": 1}}, {"p": {"x": 3}}]
        assert pyparq.read_table("n.parquet", columns=["l"]).to_pydict() == {"l": [[1], [2, 3]]}
    """,
    "pyarrow 18: ParquetDataset and its filters": """\
        import pyparq.parquet as pq
        dataset = pq.ParquetDataset("sales", filters=[("year", ">=", 2024)])
        assert dataset.read(columns=["amount"]).num_rows == 6
        assert len(dataset.files) in (2, 3)
    """,
    "pandas 1: to_parquet and read_parquet": """\
        import pandas as pd, pyparq.pandas as ppd
        df = pd.DataFrame({"a": list("abc"), "b": list(range(1, 4)), "c": pd.Categorical(list("abc"))})
        df["d"] = pd.date_range("20130101", periods=3)
        ppd.to_parquet(df, "example_pa.parquet", engine="pyarrow", index=False)
        result = ppd.read_parquet("example_pa.parquet", engine="pyarrow", columns=["a", "b", "c"])
        assert result.dtypes["c"] == "category" and len(result) == 3
    """,
    "pandas 2: a frame to a file and back": """\
        import pandas as pd, pyparq
        times = pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("Europe/Berlin")
        df = pd.DataFrame({"a": [1, 2], "t": times}, index=pd.Index([5, 6], name="k"))
        pyparq.write_table(df, "f.parquet")
        back = pyparq.read_table("f.parquet").to_pandas()
        pd.testing.assert_frame_equal(back, df, check_dtype=False, check_freq=False)
    """,
    "pandas 3: partition_cols": """\
        import pandas as pd, pyparq.pandas as ppd
        df = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
        ppd.to_parquet(df, path="test", partition_cols=["a"], compression=None)
        assert sorted(ppd.read_parquet("test", filters=[("a", "==", 1)])["b"]) == [0, 1]
    """,
    "pandas 5: bytes": """\
        import io, pandas as pd, pyparq.pandas as ppd
        data = ppd.to_parquet(pd.DataFrame({"a": [1, 2]}))
        assert len(ppd.read_parquet(io.BytesIO(data), dtype_backend="numpy_nullable")) == 2
    """,
    "pandas 6: read_table gives a frame, chunk by chunk": """\
        import pandas as pd, pyparq
        frames = [batch.to_pandas() for batch in pyparq.ParquetFile("people.parquet").iter_batches(batch_size=4)]
        assert len(pd.concat(frames, ignore_index=True)) == 6
    """,
    "pandas 7: a Timestamp in a filter": """\
        import pandas as pd, pyparq
        filters = [("born", ">", pd.Timestamp("1990-01-01")), ("city", "in", ["Rome", "Oslo"])]
        table = pyparq.read_table("people.parquet", filters=filters)
        assert table.num_rows == 3
    """,
    "pandas 8: a query as pandas has it": """\
        import pyparq
        table = pyparq.read_table("people.parquet", filters="age > 30 and city == 'Rome'")
        assert table.num_rows == 1
    """,
    "pandas 9: head, columns, dtypes, len, iteration": """\
        import pyparq
        table = pyparq.read_table("people.parquet")
        assert len(table) == 6
        assert list(table.columns)
        assert table.head(2).num_rows == 2
        assert table["age"].to_numpy().mean() > 31
        assert [row["name"] for row in table.to_pylist()][0] == "Ada"
    """,
    "pandas 10: types of Arrow in pandas": """\
        import pandas as pd, pyparq
        df = pyparq.read_table("people.parquet").to_pandas(types_mapper=pd.ArrowDtype)
        assert str(df["age"].dtype) == "int64[pyarrow]"
    """,
    "polars 1: a lazy scan": """\
        import polars as pl, pyparq.polars
        df = pyparq.polars.scan_parquet("people.parquet").filter(pl.col("age") > 30).select("name", "age").collect()
        assert df.height == 3
    """,
    "polars 2: a hive folder, lazily": """\
        import polars as pl, pyparq
        lf = pyparq.polars.scan("sales", hive_partitioning=True)
        assert lf.filter(pl.col("year") == 2024).collect().height == 3
    """,
    "polars 3: the first rows": """\
        import pyparq
        assert pyparq.read_table("people.parquet", n_rows=2).num_rows == 2
    """,
    "polars 4: write_parquet's options": """\
        import polars as pl, pyparq
        df = pl.DataFrame({"foo": [1, 2, 3], "bar": [None, "ham", "spam"]})
        pyparq.write_table(df, "p.parquet", compression="zstd", compression_level=10, row_group_size=2, statistics=True)
        assert pyparq.ParquetFile("p.parquet").num_row_groups == 2
    """,
    "polars 5: partition_by": """\
        import polars as pl, pyparq
        df = pl.DataFrame({"a": [1, 1, 2], "b": [1, 2, 3]})
        pyparq.write_dataset(df, "hive_out", partition_by=["a"])
        assert pyparq.read_table("hive_out").num_rows == 3
    """,
    "polars 6: columns by number": """\
        import pyparq
        assert pyparq.read_table("people.parquet", columns=[0, 1]).column_names == ["id", "name"]
    """,
    "polars 7: the schema as a mapping": """\
        import pyparq
        schema = pyparq.read_schema("people.parquet")
        assert list(schema.names) == ["id", "name", "city", "age", "born"]
        assert len(schema) == 5
        assert "age" in schema
        assert str(schema["age"].type) == "int64"
    """,
    "polars 9: polars' expression as the filter": """\
        import polars as pl, pyparq
        filters = (pl.col("age") > 30) & pl.col("city").is_in(["Rome", "Oslo"])
        assert pyparq.read_table("people.parquet", filters=filters).num_rows == 1
        assert pyparq.read_table("people.parquet", filters=pl.col("name").str.starts_with("A")).num_rows == 1
    """,
    "polars 10: several files with other columns": """\
        import pyparq
        pyparq.write_table({"a": [1]}, "d/x.parquet")
        pyparq.write_table({"a": [2], "b": ["z"]}, "d/y.parquet")
        assert pyparq.read_table("d/*.parquet").to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "z"}]
    """,
    "polars 11: sink from lazy to parquet": """\
        import polars as pl, pyparq
        lf = pyparq.polars.scan("people.parquet").with_columns((pl.col("age") + 1).alias("older"))
        lf.sink_parquet("older.parquet")
        pyparq.write_table(lf, "older2.parquet")
        assert pyparq.read_table("older2.parquet")["older"].to_pylist()[0] == 37
    """,
    "fastparquet 1: quickstart": """\
        from pyparq import ParquetFile
        pf = ParquetFile("people.parquet")
        df = pf.to_pandas()
        df2 = pf.to_pandas(["name", "city"])
        assert list(df2.columns) == ["name", "city"] and len(df) == 6
    """,
    "fastparquet 7: partition_on": """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"a": [1, 1, 2], "b": [1, 2, 3]})
        pyparq.write_dataset(df, "outdir.parq", partition_on=["a"])
        assert pyparq.read_table("outdir.parq", filters=[("a", "==", 1)]).num_rows == 2
    """,
    "fastparquet 10: filters with to_pandas": """\
        from pyparq import ParquetFile
        pf = ParquetFile("people.parquet")
        df = pf.to_pandas(columns=["name"], filters=[("age", ">", 30)])
        assert len(df) == 3
    """,
    "pandas 4: without an index": """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
        pyparq.write_table(df, "f.parquet", index=False)
        assert pyparq.read_table("f.parquet").column_names == ["a"]
    """,
    "fastparquet 9: custom metadata": """\
        from pyparq import ParquetFile
        import pyparq
        pyparq.write_table({"a": [1]}, "k.parquet", custom_metadata={"origin": "test"})
        assert ParquetFile("k.parquet").key_value_metadata["origin"] == "test"
    """,
    "pyarrow 12: filter, sort, take": """\
        import pyarrow.compute as pc, pyparq
        table = pyparq.read_table("people.parquet")
        assert table.filter(pc.field("age") > 30).num_rows == 3
        assert table.sort_by([("age", "descending")])["age"].to_pylist()[0] == 50
        assert table.take([0, 2]).num_rows == 2
        assert table.slice(1, 2).num_rows == 2
        assert table.column("name").to_pylist()[0] == "Ada"
        assert table.shape == (6, 5)
    """,
    "pyarrow 13: columns come and go": """\
        import pyarrow as pa, pyparq
        table = pyparq.read_table("people.parquet")
        table = table.append_column("ok", pa.array([True] * 6))
        table = table.drop_columns(["born"])
        table = table.rename_columns(["id", "name", "town", "age", "ok"])
        assert table.select(["town", "ok"]).column_names == ["town", "ok"]
    """,
    "pyarrow 14: aggregate": """\
        import pyparq
        table = pyparq.read_table("people.parquet")
        groups = table.group_by("city").aggregate([("age", "sum")])
        assert groups.num_rows == 3
    """,
    "fastparquet 3: head and single row groups": """\
        from pyparq import ParquetFile
        pf = ParquetFile("people.parquet")
        assert len(pf.head(2)) == 2
        assert len(pf[0].to_pandas()) == 3
    """,
    "fastparquet 4: iter_row_groups": """\
        from pyparq import ParquetFile
        pf = ParquetFile("people.parquet")
        assert sum(len(df) for df in pf.iter_row_groups()) == 6
    """,
    "fastparquet 5: write": """\
        import pandas as pd
        from pyparq import write
        write("outfile.parq", pd.DataFrame({"a": [1, 2]}))
    """,
    "pyarrow 19: types, fields and arrays": """\
        import pyparq as pa, pyparq.parquet as pq
        schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("tags", pa.list_(pa.string()))])
        table = pa.table([pa.array([1, 2], type=pa.int32()), [["x"], []]], names=["id", "tags"])
        pq.write_table(table, "typed.parquet")
        assert pq.read_schema("typed.parquet").field("id").type == pa.int32()
        assert pa.Table.from_pylist([{"id": 3, "tags": None}], schema=schema).schema.names == ["id", "tags"]
    """,
    "pyarrow 20: modules of their names": """\
        import pyparq, pyparq.compute as pc, pyparq.dataset as ds
        table = ds.dataset("people.parquet", format="parquet").to_table(filter=pc.field("age") > 30, columns=["name"])
        assert table.num_rows == 3
        how = ds.partitioning(pyparq.schema({"city": "string"}), flavor="hive")
        ds.write_dataset(pyparq.read_table("people.parquet"), "by_city", format="parquet", partitioning=how)
        assert ds.dataset("by_city", partitioning="hive").count_rows(filter=ds.field("city") == "Rome") == 2
    """,
    "pyarrow 21: data of any kind by pyarrow.parquet's functions": """\
        import pandas as pd, pyparq, pyparq.parquet as pq
        frame = pd.DataFrame({"city": ["Rome"], "x": [1]})
        for data in (pyparq.read_table("people.parquet"), frame, {"city": ["Rome"]}):
            pq.write_table(data, "any.parquet")
            pq.write_to_dataset(data, "any", partition_cols=["city"])
        assert pq.read_table("any.parquet").to_pylist() == [{"city": "Rome"}]
    """,
    "polars 12: its functions": """\
        import polars as pl, pyparq.polars as pp
        df = pl.DataFrame({"a": [1, 1, 2], "b": ["x", "y", None]})
        pp.write_parquet(df, "p.parquet", compression="zstd", metadata={"who": "me"}, use_pyarrow=False)
        assert pp.read_parquet("p.parquet", use_statistics=True).equals(df)
        assert pp.read_parquet("p.parquet", columns=[1], n_rows=1)["b"].to_list() == ["x"]
        asked = {"columns": ["b"], "n_rows": 2, "row_index_name": "i", "row_index_offset": 5}
        assert pp.read_parquet("p.parquet", **asked).equals(pl.read_parquet("p.parquet", **asked))
        assert pp.read_parquet("p.parquet", columns=[1], row_index_name="i").columns == ["i", "b"]
        assert pp.scan_parquet("p.parquet", n_rows=1, row_index_name="i", row_index_offset=5).collect().row(0)[0] == 5
        assert list(pp.read_parquet_schema("p.parquet")) == ["a", "b"]
        assert pp.read_parquet_metadata("p.parquet")["who"] == "me"
        pp.sink_parquet(df.lazy().filter(pl.col("a") == 1), "q.parquet")
        pp.write_parquet(df, "hive_a", partition_by="a")
        assert pp.read_parquet("hive_a").filter(pl.col("a") == 1)["b"].to_list() == ["x", "y"]
        named = pp.scan_parquet(["q.parquet"], include_file_paths="path").collect()
        assert named["path"].to_list()[0].endswith("q.parquet")
    """,
    "polars 13: a query of scans": """\
        import pyparq
        old = pyparq.scan("people.parquet").filter(pyparq.col("age") > 30).select("name", "age").collect()
        assert old.to_polars()["name"].to_list() == ["Ada", "Di", "Flo"]
        assert pyparq.read_parquet("people.parquet", n_rows=2).num_rows == 2
    """,
    "pandas 11: bytes, and an index left out": """\
        import io, pandas as pd, pyparq
        df = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
        pyparq.write_parquet(df, "i.parquet")
        assert pyparq.ParquetFile("i.parquet").to_pandas().index.tolist() == ["x", "y"]
        assert pyparq.Table.from_pandas(df, preserve_index=False).column_names == ["a"]
        assert pyparq.pandas.read_parquet(io.BytesIO(pyparq.pandas.to_parquet(df))).loc["y", "a"] == 2
    """,
    "fastparquet 12: write and what a file says": """\
        import pandas as pd
        from pyparq import ParquetFile, dataset, write
        df = pd.DataFrame({"a": range(6), "b": list("uvwxyz")})
        write("out.parq", df, row_group_offsets=[0, 2, 4], compression="GZIP", write_index=False, times="int96")
        pf = ParquetFile("out.parq")
        assert len(pf.row_groups) == 3 and pf.statistics["max"]["a"] == [1, 3, 5]
        assert pf[1:].to_pandas()["a"].tolist() == [2, 3, 4, 5]
        assert pf.to_pandas(index="b", categories=[]).loc["w", "a"] == 2
        write("outdir", df, file_scheme="hive", partition_on=["b"])
        write("second", df, partition_by="b")
        assert dataset("second").count() == 6 and len(dataset("second").files) == 6
    """,
    "fastparquet 13: types by name": """\
        from pyparq import ParquetFile, dataset
        assert ParquetFile("people.parquet").dtypes["age"] == "int64"
        assert dict(dataset("sales").dtypes)["amount"] == "int64"
    """,
    "pyarrow 22: a type is compared with its name, or with pyarrow's": """\
        import pyarrow as pa, pyparq
        schema = pyparq.read_schema("people.parquet")
        assert schema.field("age").type == "int64" and schema.field("born").type == "timestamp[us]"
        assert schema.field("age").type == pa.int64() and pa.string() == schema.field("name").type
        assert schema.field("age").type != "int32" and schema.field("born").type != pa.timestamp("ms")
        assert schema.field("age").type != 5
    """,
    "command line: rows by the name of a format": """\
        import pyparq.cli
        assert pyparq.cli.main(["cat", "people.parquet", "--format", "json"]) == 0
        assert pyparq.cli.main(["head", "people.parquet", "--format", "csv", "-n", "1"]) == 0
        assert pyparq.cli.main(["head", "people.parquet", "--format", "csv", "--json"]) == 2
    """,
    "pandas 12: points in time keep their zone, however they come": """\
        import datetime as dt, zoneinfo, pyparq
        at = dt.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("America/New_York"))
        pyparq.write("tz.parquet", [{"at": at}, {"at": None}])
        later = [("at", ">", dt.datetime(2024, 1, 1, tzinfo=dt.UTC))]
        back = pyparq.read("tz.parquet", filters=later)["at"].to_pylist()
        assert back == [at] and back[0].utcoffset() == dt.timedelta(hours=-4)
        assert str(pyparq.read("tz.parquet").to_pandas()["at"].dtype) == "datetime64[us, America/New_York]"
    """,
    "snowflake 1: write_pandas": """\
        import pandas as pd, pyparq
        pyparq.write_pandas(pd.DataFrame({"a": [1]}), "w.parquet")
        assert pyparq.count("w.parquet") == 1
    """,
}
"""Snippets that run as they are."""

TOLD: dict[str, tuple[str, str, str]] = {
    "pyarrow 9: options of timestamps and versions": (
        """\
        import datetime as dt, pyarrow as pa, pyparq
        table = pa.table({"t": [dt.datetime(2024, 1, 1, 12, 30, 1, 999)]})
        pyparq.write_table(table, "t.parquet", version="2.6", coerce_timestamps="ms", allow_truncated_timestamps=True)
        assert pyparq.read_table("t.parquet").to_pylist() == [{"t": dt.datetime(2024, 1, 1, 12, 30, 1)}]
    """,
        "timestamp\\[us\\]",
        """\
        import datetime as dt, pyarrow as pa, pyparq
        table = pyparq.table(pa.table({"t": [dt.datetime(2024, 1, 1, 12, 30, 1)]}))
        pyparq.write_table(table, "t.parquet", schema={"t": "timestamp[ms]?"}, version="2.6")
        assert pyparq.read_table("t.parquet").to_pylist() == [{"t": dt.datetime(2024, 1, 1, 12, 30, 1)}]
    """,
    ),
    "pyarrow 11: ds.write_dataset in its words": (
        """\
        import pyparq
        table = pyparq.read_table("people.parquet")
        told = {"format": "parquet", "partitioning": ["city"], "existing_data_behavior": "overwrite_or_ignore"}
        pyparq.write_dataset(table, "out", **told)
        assert pyparq.dataset("out", partitioning=["city"]).count() == 6
    """,
        "give partition_cols",
        """\
        import pyparq
        table = pyparq.read_table("people.parquet")
        pyparq.write_dataset(table, "out", format="parquet", partition_cols=["city"], mode="append")
        assert pyparq.dataset("out").count() == 6
    """,
    ),
    "pyarrow 16: a schema in pyarrow's words": (
        """\
        import pyparq
        schema = pyparq.schema([("id", "int64"), ("name", "string")])
        with pyparq.ParquetWriter("s.parquet", schema) as writer:
            writer.write_batch({"id": [1, 2], "name": ["x", None]})
        assert pyparq.read_table("s.parquet").num_rows == 2
        assert schema.field("id").type == "int64"
    """,
        "string\\?",
        """\
        import pyparq
        schema = pyparq.schema([("id", "int64"), ("name", "string?")])
        with pyparq.ParquetWriter("s.parquet", schema) as writer:
            writer.write_batch({"id": [1, 2], "name": ["x", None]})
        assert pyparq.read_table("s.parquet").num_rows == 2
    """,
    ),
    "polars 8: to a frame": (
        """\
        import polars as pl, pyparq
        table = pyparq.read_table("people.parquet")
        assert pl.from_arrow(table).height == pl.DataFrame(table).height == table.to_polars().height == 6
        assert table.get_column("age").to_list()[0] == 36
    """,
        "height",
        """\
        import polars as pl, pyparq
        table = pyparq.read_table("people.parquet")
        assert pl.DataFrame(table).height == table.to_polars().height == 6
        assert table["age"].to_pylist()[0] == 36
    """,
    ),
    "fastparquet 2: facts": (
        """\
        from pyparq import ParquetFile
        pf = ParquetFile("people.parquet")
        assert pf.count() == 6
        assert pf.columns == ["id", "name", "city", "age", "born"]
        assert len(pf.row_groups) == 2
        assert pf.info["rows"] == 6
    """,
        "metadata",
        """\
        from pyparq import ParquetFile
        pf = ParquetFile("people.parquet")
        assert pf.count() == 6
        assert pf.columns == ["id", "name", "city", "age", "born"]
        assert pf.num_row_groups == 2
        assert pf.num_rows == 6
    """,
    ),
    "fastparquet 6: options of write": (
        """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"a": range(100)})
        pyparq.write_table(df, "outfile2.parq", row_group_offsets=[0, 50], compression="GZIP")
        assert pyparq.ParquetFile("outfile2.parq").num_row_groups == 2
    """,
        "row_group_size",
        """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"a": range(100)})
        pyparq.write_table(df, "outfile2.parq", row_group_size=50, compression="GZIP")
        assert pyparq.ParquetFile("outfile2.parq").num_row_groups == 2
    """,
    ),
    "fastparquet 8: append": (
        """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"a": [1, 2]})
        pyparq.write_table(df, "log.parquet")
        pyparq.append("log.parquet", df)
        assert pyparq.count("log.parquet") == 4
    """,
        "write_dataset",
        """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"a": [1, 2]})
        pyparq.write_dataset(df, "log")
        pyparq.write_dataset(df, "log", mode="append")
        assert pyparq.count("log") == 4
    """,
    ),
    "fastparquet 11: a folder as one ParquetFile": (
        """\
        from pyparq import ParquetFile
        pf = ParquetFile("sales")
        assert len(pf.to_pandas()) == 9
    """,
        "pyparq.dataset",
        """\
        import pyparq
        assert len(pyparq.dataset("sales").to_pandas()) == 9
    """,
    ),
    "pyarrow 23: tables with other columns": (
        """\
        import pyparq
        tables = [pyparq.table({"a": [1]}), pyparq.table({"a": [2], "b": ["x"]})]
        assert pyparq.concat_tables(tables, promote_options="default").num_rows == 2
    """,
        "pyarrow.concat_tables",
        """\
        import pyarrow, pyparq
        tables = [pyparq.table({"a": [1]}), pyparq.table({"a": [2], "b": ["x"]})]
        assert pyarrow.concat_tables([t.to_arrow() for t in tables], promote_options="default").num_rows == 2
    """,
    ),
    "fastparquet 14: objects as JSON": (
        """\
        import pandas as pd, pyparq
        df = pd.DataFrame({"n": [1, 2], "x": [{"k": 1}, {"k": 2}]})
        pyparq.write("j.parquet", df, object_encoding={"x": "json"})
    """,
        "json",
        """\
        import json, pandas as pd, pyparq
        df = pd.DataFrame({"n": [1, 2], "x": [{"k": 1}, {"k": 2}]})
        df["x"] = df["x"].map(json.dumps)
        pyparq.write("j.parquet", df, schema={"x": "json?", "n": "int64?"})
    """,
    ),
    "polars 14: batches without opening a file": (
        """\
        import pyparq
        for batch in pyparq.iter_batches("people.parquet", batch_size=4): ...
    """,
        "pyparq.ParquetFile has it",
        """\
        import pyparq
        for batch in pyparq.ParquetFile("people.parquet").iter_batches(batch_size=4): ...
    """,
    ),
    "deltalake 1: a test for nulls as a tuple": (
        """\
        import pyparq
        pyparq.read("people.parquet", filters=[("name", "is null", None)])
    """,
        r"pyparq.col\('name'\).is_null\(\)",
        """\
        import pyparq
        assert pyparq.read("people.parquet", filters=pyparq.col('name').is_null()).num_rows == 0
    """,
    ),
    "polars 15: a schema of a dict": (
        """\
        import pyparq
        schema = pyparq.Schema({"id": "int32", "at": "timestamp[us, UTC]?"})
        pyparq.write("s.parquet", [{"id": 1, "at": None}], schema=schema)
    """,
        "pyparq.schema",
        """\
        import pyparq
        schema = pyparq.schema({"id": "int32", "at": "timestamp[us, UTC]?"})
        pyparq.write("s.parquet", [{"id": 1, "at": None}], schema=schema)
    """,
    ),
    "polars 16: bytes": (
        """\
        import pyparq
        pyparq.read(pyparq.to_bytes({"a": [1]}))
    """,
        "file is an io.BytesIO",
        """\
        import io, pyparq
        file = io.BytesIO()
        pyparq.write_table({"a": [1]}, file)
        assert pyparq.read(file.getvalue()).num_rows == 1
    """,
    ),
}
"""Snippets that do not run, what the error says, and the same with what it says."""


@pytest.mark.parametrize("name", RUN)
def test_it_runs(name: str) -> None:
    exec(textwrap.dedent(RUN[name]), {})


@pytest.mark.parametrize("name", TOLD)
def test_the_message_says_what_to_write(name: str) -> None:
    wrong, told, right = TOLD[name]
    with pytest.raises((AttributeError, TypeError, KeyError, OSError, pyparq.ParquetError), match=told):
        exec(textwrap.dedent(wrong), {})
    exec(textwrap.dedent(right), {})
