"""Names that pyarrow, pandas, polars and fastparquet use: each is there, or the error says what to write."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyparq
from pyparq.errors import OptionError

PATH = "few.parquet"
FILE = (
    "shape query row_group info describe created_by num_columns slice write append write_row_groups delete cats "
    "closed path name is_empty nulls size fetchall with_columns optimize to_reader"
)
TABLE = (
    "query where astype write_parquet to_parquet write_csv to_csv write_json to_json tail iloc loc "
    "row dtypes values to_dict iter_rows iterrows itertuples collect field "
    "sort sort_values groupby merge describe info unique with_columns assign explode fillna dropna isna value_counts "
    "apply agg sum mean sample melt n_unique null_count T estimated_size closed path name is_empty len nulls dtype "
    "copy vstack size"
)
COLUMN = (
    "values dtype shape size chunk to_pandas to_polars to_arrow combine_chunks sum mean min max "
    "std unique value_counts sort cast astype filter isin is_in is_null isna fill_null fillna dropna head tail "
    "take iloc item closed path is_empty len nulls dictionary_encode count data"
)
DATASET = "is_empty append compact metadata paths size"
FOOTER = "columns row_groups statistics set_file_path"
FILTER = "fill_null not_in str isnull isna notnull eq ne lt le gt ge not_ and_ or_ cast alias len"
SCHEMA = "leaves root find column types with_metadata to_arrow equals text to_string len items remove_metadata"
MODULE = (
    "read_csv read_json lit load open append ParquetDataset update_file_custom_metadata sql "
    "concat sink_parquet read_pandas record_batch convert from_csv to_csv from_json to_json to_bytes dumps loads "
    "DataFrame from_dict read_dataset File Reader ParquetReader query ParquetSchema infer_schema expr when LazyFrame "
    "concat_batches info describe list_files stream validate repair split compact concat_files add_bloom_filter "
    "decrypt Codec read_feather HivePartitioning read_delta scan_iceberg S3FileSystem partition_by String connect"
)


@pytest.fixture(autouse=True)
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyparq.write_table({"id": [1, 2, 3], "name": ["a", "b", None]}, PATH)


def said(thing: Any, name: str) -> str:
    with pytest.raises(AttributeError) as told:
        getattr(thing, name)
    return str(told.value)


@pytest.mark.parametrize(("kind", "names"), [
    ("file", FILE), ("table", TABLE), ("column", COLUMN), ("filter", FILTER), ("schema", SCHEMA), ("module", MODULE),
    ("dataset", DATASET), ("footer", FOOTER),
])  # fmt: skip
def test_the_error_says_what_to_write(kind: str, names: str) -> None:
    with pyparq.ParquetFile(PATH) as file:
        things = {
            "file": file, "table": file.read(), "column": file.read()["id"], "module": pyparq, "schema": file.schema,
            "filter": pyparq.col("id"), "dataset": pyparq.dataset(PATH), "footer": file.metadata,
        }  # fmt: skip
        for name in names.split():
            text = said(things[kind], name)
            assert f"no attribute {name!r}; use " in text
            # Names of ours in it are there.
            for own in re.findall(r"pyparq\.(\w+)", text):
                assert hasattr(pyparq, own), text
        assert said(things["table"], "nothing_like_it").endswith("no attribute 'nothing_like_it'")


def test_names_of_the_same_meaning_are_taken() -> None:
    table = pyparq.read_table(PATH, memory_map=True, engine="auto")
    assert (table.height, table.width, table.to_dicts()) == (3, 2, table.to_pylist())
    assert table.drop("id").column_names == table.drop_columns(["id"]).column_names == table.drop([0]).column_names
    assert table.drop(["name"]).column_names == ["id"]
    assert table["id"].to_list() == table["id"].tolist() == [1, 2, 3]
    asked = pyparq.col("name").startswith("a") | pyparq.col("id").is_between(2, 2) | pyparq.col("id").is_in([3])
    with pyparq.ParquetFile(PATH) as file:
        assert file
        assert file.column_names == file.columns
        assert file.to_table(filters=asked).num_rows == sum(batch.num_rows for batch in file.to_batches()) == 3
    data = pyparq.dataset(PATH)
    assert data.scanner(columns=["id"], filter=asked).to_table() == table.select(["id"])
    assert sum(batch.num_rows for batch in data.to_batches(filter=asked)) == 3
    pyparq.write_parquet(table, "other.parquet", sorting_columns=[pyparq.SortingColumn(0)], stats=True, has_nulls=True)
    assert pyparq.scan_parquet("other.parquet").collect().to_dicts() == table.to_pylist()


def test_names_that_pandas_and_polars_have() -> None:
    """They are not listed: the libraries are asked, where the program has imported them."""
    import pandas  # noqa: F401  their classes tell
    import polars  # noqa: F401

    table = pyparq.read_table(PATH)
    assert said(table, "nsmallest").endswith("use to_pandas(), which has it")
    assert said(table, "hash_rows").endswith("use to_polars(), which has it")
    assert said(table["id"], "nsmallest").endswith("use table.to_pandas()[name], which has it")
    assert said(pyparq.scan(PATH), "nsmallest").endswith("use to_pandas(), which has it")
    assert "pyparq.polars.scan" in said(pyparq.col("id"), "cosh")
    assert said(table, "_repr_latex_").endswith("no attribute '_repr_latex_'")


def test_more_names_of_the_same_meaning() -> None:
    table, scan = pyparq.read_table(PATH), pyparq.scan(PATH)
    with pyparq.ParquetFile(PATH) as file:
        assert (file.len(), scan.count_rows(), file.metadata.size) == (3, 3, file.metadata.serialized_size)
        assert next(file.iter_batches(batch_size=2, use_threads=True)).num_rows == 2
        assert file.read_row_group(0, use_pandas_metadata=True) == table
    assert scan.df().equals(table.to_pandas())
    assert scan.arrow().num_rows == scan.pl().height == 3
    assert table.remove_columns(["id"]).column_names == ["name"]
    assert pyparq.read_table(PATH, predicate=pyparq.col("id") > 1).num_rows == 2


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("dtype_backend", "pyparq.pandas.read_parquet"), ("fs", "filesystem="), ("glob", "leave it out"),
        ("dtype", "cast()"), ("skip_rows", "read_rows"), ("filename", "filename='path'"), ("union_by_name", "null"),
    ],
)  # fmt: skip
def test_more_options_of_others(option: str, told: str) -> None:
    with pytest.raises(TypeError, match=re.escape(told)):
        pyparq.read_table(PATH, **{option: 7})  # type: ignore[misc]


def test_options_of_writers_of_others() -> None:
    for option in ("overwrite", "if_exists", "exist_ok"):
        with pytest.raises(TypeError, match="replaced when the new one is complete"):
            pyparq.write_table({"a": [1]}, "new.parquet", **{option: 7})
    for option in ("overwrite", "append", "exist_ok", "if_exists", "existing_data_behavior"):
        with pytest.raises(TypeError, match='give mode="append", "overwrite"'):
            pyparq.write_dataset({"a": [1]}, "new", **{option: 7})


def test_names_of_polars_are_ours() -> None:
    table = pyparq.read_table(PATH)
    assert table.get_column("id").to_pylist() == [1, 2, 3]
    assert table.names == ["id", "name"]
    assert sum(len(batch) for batch in table.to_reader()) == pyparq.ParquetFile(PATH).nrows == 3


def test_methods_of_pyarrow_make_tables_of_ours() -> None:
    table = pyparq.read_table(PATH)
    assert isinstance(table.take([2, 0]), pyparq.Table)
    assert (
        table.sort_by([("id", "descending")])["id"].to_pylist() == table.take([2, 1, 0])["id"].to_pylist() == [3, 2, 1]
    )
    longer = table.append_column("twice", [[2, 4, 6]]).set_column(0, "id", [[7, 8, 9]]).remove_column(1)
    assert longer.to_pydict() == {"id": [7, 8, 9], "twice": [2, 4, 6]}
    assert table.join(pyparq.table({"id": [3], "more": ["x"]}), "id", join_type="inner").to_pylist() == [
        {"id": 3, "name": None, "more": "x"}
    ]
    assert table.group_by("name").aggregate([("id", "sum")]).num_rows == 3
    assert table.replace_schema_metadata({"who": "me"}).schema.metadata == {b"who": b"me"}
    assert isinstance(table.batches[0].sort_by("id"), pyparq.Batch)
    with pytest.raises(AttributeError, match="'Batch' object has no attribute 'group_by'; use to_arrow"):
        table.batches[0].group_by  # noqa: B018
    assert pyparq.Table.from_arrays([[1], ["x"]], names=["a", "b"]) == pyparq.table([[1], ["x"]], names=["a", "b"])
    assert pyparq.Table.from_arrays([[1]], schema={"a": "int8"}).schema == pyparq.schema({"a": "int8"})
    for names in (["a"], ["a", "b", "c"], ["a", "a"]):
        for made in (pyparq.Table.from_arrays, pyparq.table):
            with pytest.raises(pyparq.DataError, match="2 columns need as many names, each once"):
                made([[1], [2]], names=names)
    assert pyparq.Table.from_pandas(table_of_pandas(), preserve_index=False).column_names == ["v"]


def test_scans_are_narrowed() -> None:
    with pyparq.ParquetFile(PATH) as file:
        for source in (file, pyparq.dataset(PATH), file.scan(), pyparq.scan(PATH), file.scan(row_groups=[0])):
            found = source.filter(pyparq.col("id") > 1).filter("name = 'b'").select("id")
            assert found.collect().to_pydict() == {"id": [2]}
            assert source.select(["name"]).filter([("id", "==", 1)]).to_table().to_pydict() == {"name": ["a"]}
        assert file.scan(rows=[0, 2]).filter(pyparq.col("id") > 1).to_table()["id"].to_pylist() == [3]
        assert file.scan(limit=2).select("id", "name").to_table().num_rows == 2
        assert file.explain(filters=pyparq.col("id") > 1).rows == 2
        assert file.execute(file.plan(["id"])) == file.read(["id"])


def test_types_of_other_libraries_in_schemas() -> None:
    import polars as pl
    import pyarrow as pa

    own = pyparq.schema({"a": "int32?", "b": "list<string?>?"})
    assert pyparq.schema({"a": pa.int32(), "b": pyparq.list_(pyparq.string())}).field("a") == own.field("a")
    assert pyparq.schema([pyparq.field("a", pyparq.int32()), ("b", pyparq.list_(pyparq.string()))]).names == own.names
    assert pyparq.schema([pyparq.field("a", pyparq.int32(), nullable=False)]).field(0).nullable is False
    assert pyparq.schema({"a": pl.Int32}).field("a") == own.field("a")


def test_names_of_fastparquet() -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [3, 1, 2, 5], "b": list("wxyz")})
    pyparq.write("f.parquet", frame, row_group_offsets=[0, 1, 3], times="int96", object_encoding={"b": "utf8"})
    with pyparq.ParquetFile("f.parquet") as file:
        assert [one.num_rows for one in file.row_groups] == [len(part) for part in file.iter_row_groups()] == [1, 2, 1]
        assert file.statistics["min"] == {"a": [3, 1, 5], "b": ["w", "x", "z"]}
        assert file.statistics["null_count"]["a"] == [0, 0, 0]
        assert file[1].to_pandas()["a"].tolist() == [1, 2]
        assert file[-1].count() == 1
        assert file[1:].to_table()["a"].to_pylist() == [1, 2, 5]
        with pytest.raises(IndexError):
            file[3]
        assert file.to_pandas(index="b").loc["x", "a"] == 1
        assert str(file.to_pandas(categories=["b"])["b"].dtype) == "category"
    pyparq.write(frame, "g.parquet", row_group_offsets=2)
    assert pyparq.ParquetFile("g.parquet").num_row_groups == 2
    for _ in range(2):
        pyparq.write("h", frame, file_scheme="hive", partition_on=["b"], append=True)
    assert pyparq.read("h").num_rows == 8
    for nothing in ([], (), None):
        pyparq.write("one.parquet", frame, partition_on=nothing)
        assert Path("one.parquet").is_file()
    with pytest.raises(pyparq.OptionError, match="give a schema"):
        pyparq.write("x", frame, object_encoding={"b": "json"})


def test_the_index_of_a_frame_may_be_left_out() -> None:
    frame = table_of_pandas()
    for name in ("index", "preserve_index"):
        pyparq.write_table(frame, "frame.parquet", **{name: False})
        assert pyparq.read_schema("frame.parquet").names == ["v"]
    pyparq.write_dataset(frame, "frames", index=False)
    assert pyparq.read_table("frames").column_names == ["v"]
    pyparq.write_table(frame, "frame.parquet")
    assert pyparq.read_schema("frame.parquet").names == ["v", "__index_level_0__"]


def table_of_pandas() -> Any:
    import pandas as pd

    return pd.DataFrame({"v": [1, 2]}, index=["r", "s"])


def test_key_values_by_text_are_text() -> None:
    pyparq.write_table({"a": [1]}, "who.parquet", key_value_metadata={"who": "é"})
    for found in (pyparq.ParquetFile("who.parquet").key_value_metadata, pyparq.read_metadata("who.parquet").metadata):
        assert (found["who"], found[b"who"], found.get("who"), found.get("x", 3)) == ("é", "é".encode(), "é", 3)
        assert "who" in found
        assert b"who" in found
        assert "x" not in found
        with pytest.raises(KeyError, match="x"):
            found["x"]


def test_what_is_there_under_the_usual_name() -> None:
    with pyparq.ParquetFile(PATH) as file:
        assert (file.num_rows, file.columns) == (3, ["id", "name"])
        assert file.tail(2).to_pydict() == {"id": [2, 3], "name": ["b", None]}
        assert file.tail(9, ["id"]).to_pydict() == {"id": [1, 2, 3]}
        assert file.to_pandas(["id"], pyparq.col("id") > 1)["id"].tolist() == [2, 3]
    assert pyparq.count(PATH) == 3
    assert pyparq.count([PATH, PATH], pyparq.col("name") == "b") == 2
    assert pyparq.count(PATH, [("id", ">", 5)]) == 0


@pytest.mark.parametrize("name", ["iter_batches", "read_row_group", "num_rows", "columns", "metadata", "filter"])
def test_what_an_open_file_has_is_no_function(name: str) -> None:
    assert said(pyparq, name).endswith("; pyparq.ParquetFile has it")


@pytest.mark.parametrize("name", ["from_pydict", "from_pylist", "from_arrow", "from_polars", "from_pandas"])
def test_what_a_table_has_is_no_function(name: str) -> None:
    assert said(pyparq, name).endswith("; pyparq.Table has it")
    assert "has it" not in said(pyparq, "sort_values")


@pytest.mark.parametrize(("operator", "own"), [
    ("is null", "is_null"), ("is not null", "is_not_null"), ("isnull", "is_null"), ("like", "like"),
    ("contains", "contains"), ("between", "between"), ("startswith", "starts_with"), ("ends with", "ends_with"),
])  # fmt: skip
def test_operators_that_are_methods(operator: str, own: str) -> None:
    with pytest.raises(pyparq.FilterError, match=rf"unknown operator '{operator}'.* or pyparq\.col\('id'\)\.{own}\(\)"):
        pyparq.read_table(PATH, filters=[("id", operator, 1)])
    with pytest.raises(pyparq.FilterError, match=r"unknown operator '<>': use one of .*, not in \["):
        pyparq.read_table(PATH, filters=[("id", "<>", 1)])


def test_a_schema_is_made_by_schema() -> None:
    with pytest.raises(pyparq.OptionError, match=r"Table\(\) takes a Schema, not a dict. Use pyparq.table\(data\)"):
        pyparq.Table({"id": [1]})  # type: ignore[arg-type]
    for wrong in ({"id": "int64"}, [pyparq.Field("id", pyparq.DataType("l"))]):
        with pytest.raises(pyparq.OptionError, match=r"pyparq\.schema\(\{'id': 'int64'\}\)"):
            pyparq.Schema(wrong)  # type: ignore[arg-type]
    made = pyparq.schema({"id": "int64"})
    assert pyparq.Schema(made.fields) == made
    assert pyparq.Schema(made.fields, {b"k": b"v"}).metadata == {b"k": b"v"}


@pytest.mark.parametrize(("call", "told"), [
    (lambda: pyparq.write_table({"a": [1]}, "x", append=True), "mode=\"append\""),
    (lambda: pyparq.ParquetFile(PATH, nrows=3), "limit="),
    (lambda: pyparq.ParquetFile(PATH, usecols=["id"]), "columns="),
    (lambda: pyparq.read_table(PATH, limit=1, nrows=3), "'nrows' is another name of 'limit'"),
    (lambda: pyparq.read_table(PATH, zzz=3), "help() of the function"),
])  # fmt: skip
def test_options_of_others(call: Any, told: str) -> None:
    with pytest.raises(pyparq.OptionError, match=re.escape(told)):
        call()


@pytest.mark.parametrize(("call", "told"), [
    (lambda: pyparq.write("x.parquet", {"a": [1]}, append=True), "a Parquet file cannot grow"),
    (lambda: pyparq.ParquetFile(PATH)["id"], r"use read\(\['name'\]\)"),
    (lambda: pyparq.read_table(PATH, {"twice": pyparq.col("id") * 2}), r"not \{.*; use pyparq\.polars\.scan\(path"),
    (lambda: pyparq.scan(PATH, [pyparq.col("id") * 2]).schema, r"pyparq\.polars\.scan\(path\)\.with_columns"),
    (lambda: pyparq.scan(PATH, limit=1).filter("id > 1"), "the scan has a limit"),
    (lambda: len(pyparq.ParquetFile(PATH)), "use num_rows or num_row_groups"),
    (lambda: pyparq.read_table(PATH, filters="regexp(name, '^a')"), r"regexp_matches\(city, '\^L'\)"),
    (lambda: pyparq.read_table(PATH, filters="name similar to 'a'"), r"regexp_matches\(city, '\^L'\)"),
])  # fmt: skip
def test_what_is_called_otherwise_says_so(call: Any, told: str) -> None:
    with pytest.raises((TypeError, KeyError, pyparq.ParquetError), match=told):
        call()


KEYWORDS: list[tuple[Any, str]] = [
    (lambda: pyparq.read_table(PATH, colums="id"), r"read_table\(\) has no option 'colums'; did you mean 'columns'"),
    (lambda: pyparq.scan(PATH, colums="id"), r"scan\(\) has no option 'colums'; did you mean 'columns'"),
    (lambda: pyparq.count(PATH, filtr="id > 1"), r"count\(\) has no option 'filtr'; did you mean 'filters'"),
    (lambda: pyparq.read_schema(PATH, columns=["id"]), r"read_schema\(\) has no option 'columns'; give it to read_t"),
    (lambda: pyparq.ParquetFile(PATH, limit=1), r"ParquetFile\(\) has no option 'limit'; give it to read_table"),
    (lambda: pyparq.dataset(PATH, partition="hive"), r"dataset\(\) has no option 'partition'; did you mean 'partition"),
    (lambda: pyparq.write_table({"a": [1]}, "x", compresion="zstd"), r"write_table\(\) has no option 'compresion'"),
    (lambda: pyparq.write_dataset({"a": [1]}, "x", format="csv"), r"write_dataset\(\) has no option 'format'; the"),
    (lambda: pyparq.ParquetWriter("x", overwrite=1), r"ParquetWriter\(\) has no option 'overwrite'"),
    (lambda: pyparq.rewrite(PATH, "x", colums="id"), r"rewrite\(\) has no option 'colums'; did you mean 'columns'"),
    (lambda: pyparq.delete(PATH, where="id = 1"), r"delete\(\) has no argument 'where'; give filters="),
    (lambda: pyparq.merge([PATH], "x", filesystm=None), r"merge\(\) has no argument 'filesystm'; did you mean 'files"),
    (lambda: pyparq.verify(PATH, column="id"), r"verify\(\) has no argument 'column'; did you mean 'columns'"),
    (lambda: pyparq.upsert(PATH, {}, keys="id"), r"upsert\(\) has no argument 'keys'; did you mean 'key'"),
    (lambda: pyparq.ParquetFile(PATH).read(column="id"), r"ParquetFile.read\(\) has no argument 'column'; did you m"),
    (lambda: pyparq.ParquetFile(PATH).head(n=1), r"ParquetFile.head\(\) has no argument 'n'"),
    (lambda: pyparq.ParquetFile(PATH).iter_batches(size=1), r"iter_batches\(\) has no argument 'size'"),
    (lambda: pyparq.dataset(PATH).to_table(filtr="id > 1"), r"read\(\) has no argument 'filtr'; did you mean 'fil"),
    (lambda: pyparq.dataset(PATH).lookup("id", [1], colums="id"), r"lookup\(\) has no argument 'colums'; did you"),
    (
        lambda: pyparq.Field("a", pyparq.DataType("l"), nulable=True),
        r"Field\(\) has no argument 'nulable'; did you mea",
    ),
    (lambda: pyparq.Schema((), nothing=1), r"Schema\(\) has no option 'nothing'"),
    (lambda: pyparq.DataType(fmt="l"), r"DataType\(\) has no argument 'fmt'; did you mean 'format'"),
    (lambda: pyparq.read_schema(PATH).field(nam="id"), r"Schema.field\(\) has no argument 'nam'; did you mean 'name'"),
    (lambda: pyparq.read_schema(PATH).index(nme="id"), r"Schema.index\(\) has no argument 'nme'; did you mean 'name'"),
    (
        lambda: pyparq.read_schema(PATH).select(nmes=[]),
        r"Schema.select\(\) has no argument 'nmes'; did you mean 'name",
    ),
    (
        lambda: pyparq.EncryptionKey(b"0" * 16, meta=b""),
        r"EncryptionKey\(\) has no argument 'meta'; did you mean 'me",
    ),
    (lambda: pyparq.ObjectFile(None, pth="x"), r"ObjectFile\(\) has no argument 'pth'; did you mean 'path'"),
    (lambda: pyparq.show_versions(asdict=True), r"show_versions\(\) has no argument 'asdict'; did you mean 'as_dict'"),
    (lambda: pyparq.Table.from_pandas(None, preserv=1), r"Table.from_pandas\(\) has no argument 'preserv'"),
]


@pytest.mark.parametrize("case", range(len(KEYWORDS)))
def test_a_wrong_keyword_names_the_function_and_the_right_one(case: int) -> None:
    call, told = KEYWORDS[case]
    with pytest.raises(pyparq.OptionError, match=told) as raised:
        call()
    assert isinstance(raised.value, TypeError)  # which Python raises for one


def test_old_names_go_on_with_a_warning() -> None:
    calls: list[tuple[Any, str]] = [
        (lambda: pyparq.write_table({"a": [1]}, where="old.parquet"), "where= is called path= now"),
        (lambda: pyparq.write_dataset({"a": [1]}, where="folder"), "where= is called path= now"),
        (lambda: pyparq.ParquetWriter(where="w", schema={"a": "int64"}).abort(), "where= is called path= now"),
        (lambda: pyparq.merge(files=[PATH], target="merged.parquet"), "files= is called source= now"),
        (lambda: pyparq.recover_dataset(path="folder"), "path= is called source= now"),
        (lambda: pyparq.dataset(PATH).lookup("id", [1], path=True).schema.field("filename"), "is called filename="),
        (lambda: list(pyparq.dataset(PATH).batches()), r"batches\(\) is called iter_batches\(\) now"),
        (lambda: list(pyparq.dataset(PATH).scan().batches(2)), r"batches\(\) is called iter_batches\(\) now"),
        (lambda: list(pyparq.ParquetFile(PATH).scan().batches()), r"batches\(\) is called iter_batches\(\) now"),
    ]
    for call, told in calls:
        with pytest.warns(DeprecationWarning, match=told) as warned:
            call()
        assert warned[0].filename == __file__  # where the user has to change it
    assert pyparq.read_table("old.parquet").to_pydict() == {"a": [1]}


def test_a_column_alone_is_a_text() -> None:
    pyparq.write_dataset({"name": ["a", "b"], "id": [1, 2]}, "d")
    for source in (pyparq.ParquetFile(PATH), pyparq.dataset("d")):
        assert source.read("name").column_names == ["name"]
        assert source.scan(columns="name").to_table().column_names == ["name"]
        assert source.head(1, "name").column_names == source.take([1], "name").column_names == ["name"]
        assert [b.column_names for b in source.iter_batches(columns="name")] == [["name"]]
    assert pyparq.read_table([PATH, PATH], "name", limit=2).to_pydict() == {"name": ["a", "b"]}
    assert pyparq.dataset("d").lookup("id", 1, columns="name", filename="in").column_names == ["name", "in"]
    assert pyparq.read_table(PATH).select("name").column_names == pyparq.read_schema(PATH).select("name").names
    options: Any = {"bloom_filters": "name", "use_dictionary": "name", "write_statistics": "name", "sort_by": "name"}
    pyparq.write_table({"name": ["b", "a"], "id": [1, 2]}, "w.parquet", **options)
    with pyparq.ParquetFile("w.parquet") as file:
        assert file.read("name").to_pydict() == {"name": ["a", "b"]}
        assert file.bloom_filter(0, "name") is not None
        assert file.bloom_filter(0, "id") is None
        assert file.metadata.row_group(0).column("id").statistics is None
    pyparq.add_indexes("w.parquet", bloom_filters="id", page_index="id")
    pyparq.rewrite("w.parquet", "r.parquet", columns="id")
    assert pyparq.read_table("r.parquet").column_names == ["id"]
    assert pyparq.read_table("w.parquet", read_dictionary="name").schema.field("name").type.dictionary is not None
    assert pyparq.index_dataset("d", "id").columns == ("id",)


def test_tab_completion_shows_what_people_call() -> None:
    shown = dir(pyparq)
    assert {"read_table", "write_table", "table", "col", "ParquetFile", "errors", "pandas", "parquet"} < set(shown)
    assert [n for n in shown if n.endswith(("Error", "Warning", "Report", "Plan", "Explanation"))] == []
    assert all(hasattr(pyparq, name) for name in (*shown, *pyparq.__all__))  # all can be imported as before


def test_a_table_of_anything() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {"a": [1, None], "b": ["x", "y"]}
    rows = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
    for data in (columns, rows, pa.table(columns), pl.DataFrame(columns), pyparq.table(columns), iter(rows)):
        assert pyparq.table(data).to_pydict() == columns
    frame = pd.DataFrame({"b": ["x", "y"]}, index=pd.Index([5, 6], name="k"))
    assert pyparq.table(frame).to_pydict() == {"b": ["x", "y"], "k": [5, 6]}
    schema = pyparq.schema({"a": "int8?", "b": "string"})
    assert pyparq.table(columns, schema).schema.field("a").type == schema.field("a").type
    assert pyparq.table({}).num_rows == 0


def test_a_written_file_is_reported() -> None:
    report = pyparq.write_table({"a": range(1000)}, "a.parquet", row_group_size=300)
    assert (report.path, report.num_rows, report.num_bytes) == ("a.parquet", 1000, Path("a.parquet").stat().st_size)
    assert [file.path for file in report.files] == ["a.parquet"]
    buffer = io.BytesIO()
    report = pyparq.write_table({"a": []}, buffer)
    assert (report.num_rows, report.num_bytes) == (0, len(buffer.getvalue()))


def test_the_schema_of_a_file_is_a_schema() -> None:
    with pyparq.ParquetFile(PATH) as file:
        assert file.schema == file.schema_arrow == pyparq.read_schema(PATH)
        assert isinstance(file.schema, pyparq.Schema)
        assert [leaf.dotted for leaf in file.tree.leaves] == file.schema.names == pyparq.dataset(PATH).schema.names


def test_a_path_with_dots_is_shown_as_it_has_to_be_written() -> None:
    pyparq.write_table({"a.b": [1], "c": [{"d": 2}]}, "dots.parquet")
    asks: list[Any] = [pyparq.read_table, lambda path, columns: pyparq.dataset(path).read(columns)]
    for name, path in ((("a", "b"), ("a.b",)), (("c.d",), ("c", "d"))):
        for ask in asks:
            with pytest.raises(
                pyparq.ColumnNotFoundError, match=re.escape(f"{name!r}; did you mean the path {path!r}")
            ):
                ask("dots.parquet", columns=[name])
            assert ask("dots.parquet", columns=[path]).num_rows == 1


def test_an_empty_name_is_no_attribute() -> None:
    with pyparq.ParquetFile(PATH) as file:
        table = pyparq.read_table(PATH)
        every = file, file.metadata, table, table.batches[0], table["id"], table.schema
        for one in (*every, pyparq.dataset(PATH), pyparq.scan(PATH), pyparq.col("id"), pyparq):
            assert not hasattr(one, "")


def test_two_names_of_one_option() -> None:
    data = {"a": [1]}
    twice: list[tuple[Callable[[], object], str, str]] = [
        (lambda: pyparq.read_table(PATH, filters="id > 1", predicate="id > 1"), "predicate", "filters"),
        (lambda: pyparq.read_table(PATH, ["id"], usecols=["id"]), "usecols", "columns"),
        (lambda: pyparq.write_table(data, "new", level=3, compression_level=4), "level", "compression_level"),
        (lambda: pyparq.write_table(data, "new", compression_level=4, level=3), "level", "compression_level"),
        (lambda: pyparq.write_table(data, "new", stats=True, statistics=True), "statistics", "write_statistics"),
        (lambda: pyparq.write_dataset(data, "new", base_dir="x"), "base_dir", "path"),
        (lambda: pyparq.write_dataset(data, path="new", base_dir="x"), "base_dir", "path"),
    ]
    for call, name, ours in twice:
        with pytest.raises(OptionError, match=f"^'{name}' is another name of '{ours}'.* Give only one"):
            call()
    with pytest.raises(OptionError, match="give filters= to read_table"):
        pyparq.ParquetFile(PATH, predicate="id > 1")  # type: ignore[call-arg]


def test_hints_lead_to_what_is_there() -> None:
    """Of each library that a hint names, the result has the name."""
    import pandas
    import polars
    import pyarrow

    kinds = {"to_pandas()": pandas.DataFrame, "to_polars()": polars.DataFrame, "to_arrow()": pyarrow.Table}
    told = {name: hint for name, hint in pyparq.Table._elsewhere.items() if hint.endswith("whose result has it")}
    named = [(name, kind) for name, hint in told.items() for way, kind in kinds.items() if way in hint]
    assert len(named) >= len(told) > 40
    assert [(name, kind.__module__) for name, kind in named if not hasattr(kind, name)] == []
    assert said(pyparq.read_table(PATH), "merge").endswith("use to_pandas(), whose result has it")
    assert "polars.when" in said(pyparq, "when")
    assert "pyparq.add_indexes(path)" in said(pyparq, "repair")


def test_names_of_columns_are_a_list_of_texts() -> None:
    assert pyparq.table([[1], [2]], names=("x", "y")).to_pydict() == {"x": [1], "y": [2]}
    for names in ({"x", "y"}, "xy", iter("xy"), [1, 2], 5, {"x": 1, "y": 2}):
        for make in (pyparq.table, pyparq.Table.from_arrays, pyparq.Batch.from_arrays):
            with pytest.raises(OptionError, match="names must be a list or tuple of texts"):
                make([[1], [2]], names=names)  # type: ignore[operator]


def test_polars_columns_by_number() -> None:
    import polars

    import pyparq.polars

    for columns in ([1], [-1], ["name", 0], "id"):
        given = columns if columns != ["name", 0] else ["name", "id"]
        assert pyparq.polars.read_parquet(PATH, columns=columns).equals(polars.read_parquet(PATH, columns=given))
    assert pyparq.polars.read_parquet(PATH, columns=iter([1])).columns == ["name"]
    for columns in ([5], [-3], ["zz"]):
        with pytest.raises(pyparq.ColumnNotFoundError):
            pyparq.polars.read_parquet(PATH, columns=columns)
    for wrong in (["zz"], [5]):
        with pytest.raises(polars.exceptions.ColumnNotFoundError):
            polars.read_parquet(PATH, columns=wrong)
