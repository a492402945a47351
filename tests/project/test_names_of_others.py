"""Names that pyarrow, pandas, polars and fastparquet use: each is there, or the error says what to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import pyparq

PATH = "few.parquet"
FILE = (
    "shape dtypes column_names names to_polars to_arrow to_table read_all collect read_pandas filter query "
    "batches to_batches iter_row_groups count explain row_group row_groups statistics info created_by "
    "num_columns select slice write append"
)
TABLE = (
    "query where astype write_parquet to_parquet write_csv to_csv write_json to_json tail iloc loc "
    "row dtypes height width values to_dict to_dicts iter_rows iterrows itertuples drop collect field "
    "combine_chunks sort_by sort sort_values group_by groupby join merge describe info unique with_columns "
    "add_column append_column set_column drop_columns assign explode fillna dropna isna value_counts apply"
)
COLUMN = (
    "tolist to_list values dtype shape size chunk to_pandas to_polars to_arrow combine_chunks sum mean min max "
    "std unique value_counts sort cast astype filter isin is_in is_null isna fill_null fillna dropna head tail "
    "take iloc item"
)
MODULE = (
    "read_parquet read_csv read_json scan_parquet to_parquet write_parquet lit load open table "
    "from_pandas concat_tables sink_parquet write_to_dataset read_pandas"
)


@pytest.fixture(autouse=True)
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pyparq.write_table({"id": [1, 2, 3], "name": ["a", "b", None]}, PATH)


def said(thing: Any, name: str) -> str:
    with pytest.raises(AttributeError) as told:
        getattr(thing, name)
    return str(told.value)


@pytest.mark.parametrize(("kind", "names"), [("file", FILE), ("table", TABLE), ("column", COLUMN), ("module", MODULE)])
def test_the_error_says_what_to_write(kind: str, names: str) -> None:
    with pyparq.ParquetFile(PATH) as file:
        things = {"file": file, "table": file.read(), "column": file.read()["id"], "module": pyparq}
        for name in names.split():
            text = said(things[kind], name)
            assert f"no attribute {name!r}; use " in text
            # Names of ours in it are there.
            for own in re.findall(r"pyparq\.(\w+)", text):
                if own != "delete":
                    assert hasattr(pyparq, own) or own == "pandas", text
        assert said(things["table"], "nothing_like_it").endswith("no attribute 'nothing_like_it'")


def test_what_is_there_under_the_usual_name() -> None:
    with pyparq.ParquetFile(PATH) as file:
        assert (file.num_rows, file.columns) == (3, ["id", "name"])
        assert file.tail(2).to_pydict() == {"id": [2, 3], "name": ["b", None]}
        assert file.tail(9, ["id"]).to_pydict() == {"id": [1, 2, 3]}
        assert file.to_pandas(["id"], pyparq.col("id") > 1)["id"].tolist() == [2, 3]
    assert pyparq.count(PATH) == 3
    assert pyparq.count([PATH, PATH], pyparq.col("name") == "b") == 2
    assert pyparq.count(PATH, [("id", ">", 5)]) == 0


@pytest.mark.parametrize(("call", "told"), [
    (lambda: pyparq.write_table({"a": [1]}, "x", append=True), "mode=\"append\""),
    (lambda: pyparq.read_table(PATH, nrows=3), "limit="), (lambda: pyparq.read_table(PATH, usecols=["id"]), "columns="),
    (lambda: pyparq.read_table(PATH, zzz=3), "help() of the function"),
])  # fmt: skip
def test_options_of_others(call: Any, told: str) -> None:
    with pytest.raises(pyparq.OptionError, match=re.escape(told)):
        call()
