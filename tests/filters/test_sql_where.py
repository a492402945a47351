"""--where: what DuckDB answers to the same SQL on the same file, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_files import ok, refused, write_sample

from pyparq.filters.sql_text import parse_where
from pyparq.read.file import ParquetFile


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("cli") / "sample.parquet")


@pytest.fixture(scope="module")
def rows(sample: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file's rows in a table of DuckDB's own: on the file itself it would prune (isnan() wrongly, in 2.0)."""
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE sample AS FROM '{sample}'")
        yield connection


CONDITIONS = [
    "id = 4",
    "4 = id",
    "id <> 4 AND id != 6 AND id < 100",
    "100 >= id AND 4 < id",
    "id IN (2, 4, 5, 8000)",
    "id NOT IN (2, 4) AND id < 20",
    "id IN (2, NULL)",
    "id BETWEEN 10 AND 20 OR id BETWEEN 7990 AND 99999999999999999999",
    "id NOT BETWEEN 10 AND 7990",
    "id < 3.5",
    "id = 3.0000000000000000001",
    "id > -1e400",
    "small IS NULL",
    "small IS NOT NULL AND small < -48",
    "NOT (small > -49)",
    "NOT small IN (1, 2) AND id < 300",
    "small = -(-3)",
    "real > 2.5",
    "isnan(real)",
    "NOT isnan(real) AND real < -2.9",
    "real = 0.0",
    "real >= 2 OR real IS NULL",
    "single = 0.3",
    "single <= CAST(0.3 AS REAL)",
    "price = 2.50",
    "price > 990.75 AND price < 995",
    "price IN (0.25, 0.5, 7.1)",
    "note = 'note 7'",
    "note LIKE 'note 9%'",
    "note NOT LIKE 'note%'",
    "note LIKE 'note 8'",
    r"note LIKE 'note!%%' ESCAPE '!'",
    "starts_with(note, 'note 55')",
    "note LIKE '%7'",
    "note LIKE 'note _'",
    "note NOT LIKE '%1%'",
    "note ILIKE 'NOTE 3%'",
    "upper(note) = 'NOTE 8'",
    "length(note) = 7",
    "length(note) IN (6, 9)",
    "suffix(note, '9')",
    "regexp_matches(note, '[13]$')",
    "id + 1 < small * 2",
    "id * 2 - 1 BETWEEN 7 AND 20",
    "-id > -20",
    "year(day) = 2020 AND id < 100",
    "month(ts) = 1 AND id < 90",
    "extract(hour FROM ts) = 1",
    "small > id",
    "(id + small) IS NULL",
    "100 / small < 10",
    "note > 'note 96' OR note < 'note 0'",
    "day = DATE '2020-03-01'",
    "day < '2020-01-03'",
    "day BETWEEN DATE '2020-02-01' AND DATE '2020-02-03'",
    "ts < TIMESTAMP '2020-01-01 00:00:10'",
    "ts >= TIMESTAMP '2020-01-01 01:00:00.5'",
    "flag",
    "NOT flag",
    "flag = TRUE AND id < 100",
    "flag IS TRUE AND id < 100",
    "flag IS NOT TRUE AND id < 100",
    "NOT (flag IS FALSE) AND id < 100",
    '"odd name, \u00e9" < 3',
    "st.x = 3 AND id < 300",
    "(id < 10 OR id > 7990) AND (note IS NULL OR NOT (note = 'note 1'))",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_answers_what_duckdb_answers(sample: Path, rows: duckdb.DuckDBPyConnection, condition: str) -> None:
    lines = ok("query", sample, "--where", condition, "--columns", "id", "--csv").splitlines()
    found = sorted(int(line) for line in lines[1:])
    expected = rows.execute(f"SELECT id FROM sample WHERE {condition}").fetchall()
    assert found == sorted(row[0] for row in expected)


def test_conditions_are_not_all_alike(rows: duckdb.DuckDBPyConnection) -> None:
    """Guards the comparison above against conditions that nothing or everything satisfies."""
    counts = [len(rows.execute(f"SELECT id FROM sample WHERE {c}").fetchall()) for c in CONDITIONS]
    assert sum(0 < n < 4000 for n in counts) > 40


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("utc < TIMESTAMP '2020-01-01 00:00:10'", 10),  # a UTC column: no zone means UTC
        ("utc < TIMESTAMPTZ '2020-01-01 01:00:10+01:00'", 10),
        ("raw = X'0501'", 5),
        ("raw = 0x0501", 5),
        ("id = 0x10", 1),
        ("real IS NAN", 80),
        ("real = nan", 80),
        ("real IS NOT NAN AND real < -inf", 0),
        ('"st"."x" = 3 AND "id" < 0', 0),
        ("id = 2 AND " * 2000 + "id = 2", 1),
    ],
)
def test_beyond_duckdb(sample: Path, condition: str, count: int) -> None:
    lines = ok("query", sample, "--where", condition, "--json").splitlines()
    assert len(lines) == count


def test_values_on_binary_are_right(sample: Path) -> None:
    import json

    rows = [json.loads(line) for line in ok("query", sample, "-w", "raw = X'0501'", "--json").splitlines()]
    assert {row["raw"] for row in rows} == {"0x0501"}


@pytest.mark.parametrize(
    ("condition", "piece"),
    [
        ("id & 2 = 1", "one side must be a column"),
        ("trim(note) = 'x'", "TRIM"),
        ("id + small", "id + small"),
        ("id + 1 = DATE '2020-01-01'", "a number is needed here"),
        ("note + 1 = 2", "needs numbers"),
        ("extract(epoch from ts) = 1", "the parts are year"),
        ("note ~ '('", "not a regular expression"),
        ("1 = 1", "one side must be a column"),
        ("TRUE", "TRUE"),
        ("id = NULL", "IS NULL"),
        (r"note LIKE 'a\%'", "ESCAPE"),
        ("id IN (SELECT 1)", "subqueries"),
        ("EXISTS (SELECT 1)", "subqueries"),
        ("id = (SELECT 1)", "SELECT 1"),
        ("id BETWEEN SYMMETRIC 9 AND 1", "SYMMETRIC"),
        ("id BETWEEN 1 AND NULL", "NULL"),
        ("CAST(id AS TEXT) = 'x'", "CAST(id AS TEXT)"),
        ("day > CURRENT_DATE", "CURRENT_DATE"),
        ("day = DATE '2020-13-01'", "month must be in 1..12"),
        ("ts = TIMESTAMP 'noon'", "noon"),
        ("note = DATE '2020-01-01'", "the column is of type string"),
        ("ts > TIMESTAMP '2020-01-01' - INTERVAL '1 day'", "INTERVAL"),
        ("id = -'x'", "sign"),
        ("raw = X'012'", "hexadecimal"),
        ("st.x[1] = 2", "st.x is no list"),
        ("id IS OF (int)", "IS OF"),
        ("id IS 5", "IS"),
        ("id = 1 id2", "has 'id2' after"),
        ("id = 1; DROP TABLE x", "DROP TABLE"),
        ("id = ?", "?"),
        ("CASE WHEN flag THEN TRUE END", "CASE"),
        ("id = ", "the condition cannot be parsed"),
        ("(id = 1", "the condition cannot be parsed"),
        ("note = 'x", "not closed"),
        ("", "empty"),
        ("NOT " * 3000 + "flag", "nested too deeply"),
        ("idd = 1", "did you mean 'id'"),
        ("st = 1", "'st.x'"),
        ("id = 'x'", "'x' is not a number"),
        ("note = 5", "give a str"),
        ("isnan(id)", "floating-point"),
    ],
)
def test_refuses_by_name(sample: Path, condition: str, piece: str) -> None:
    message = refused(2, "query", sample, f"--where={condition}")
    assert piece in message


def test_names_with_dots_and_paths(sample: Path) -> None:
    with ParquetFile(sample) as file:
        assert repr(parse_where("st.x = 1", file.tree)) == "(col('st.x') == 1)"
        assert repr(parse_where('"st"."x" = 1', file.tree)) == "(col('st', 'x') == 1)"
        assert repr(parse_where("id = 1 -- comment", file.tree)) == "(col('id') == 1)"


WORDS = {
    'city = "Lima"': "Write the text as 'Lima'",
    "city = Lima": "Write the text as 'Lima'",
    '"Lima" = city': "Write the text as 'Lima'",
    "city IN (Lima, 'x')": "Write text as 'Lima'",
    '"city = "Lima""': "the whole condition is in quotes: remove them",
    "'city = 1'": "remove them",
    "city = 'Lima": "a quote is not closed. Write text as 'Lima'",
    "city = 'O'Higgins'": "a quote is not closed",
    "city = `Lima`": "a backtick is not a quote here",
    "where id = 1": "leave out the word WHERE",
    "select id from t where id = 1": "Write only the condition",
    "id IN 1": "IN takes a list in brackets: IN (1, 2)",
    "id = 1 AND": "a condition looks like city = 'Lima'",
    "id = 1 AND between > 2": 'between is an SQL keyword: write the column as "between"',
}


@pytest.mark.parametrize("text", WORDS)
def test_messages_show_what_to_write(words: Path, text: str) -> None:
    assert WORDS[text] in refused(2, "query", words, "-w", text)


@pytest.mark.parametrize(
    "name", ["order", "select", "group", "desc", "limit", "table", "from", "end", "case", "user", "date"]
)
def test_columns_called_like_words_of_sql(words: Path, name: str) -> None:
    for text in (
        f"{name} = 7",
        f"id = 1 AND {name} > 6",
        f'"{name}" = 7',
        f"{name} BETWEEN 7 AND 7",
        f"NOT {name} = 6",
    ):
        assert len(ok("query", words, "-w", text, "--json", "-c", "id").splitlines()) == 1, text
        assert ok("query", words, "-w", text.replace("7", "8").replace("6", "7"), "--json", "-c", "id") in (
            "",
            '{"id": 1}\n',
        )
    assert ok("query", words, "-w", f"{name} = 8", "--json") == ""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = (
        "order",
        "select",
        "group",
        "desc",
        "limit",
        "table",
        "from",
        "end",
        "case",
        "user",
        "date",
        "in",
        "between",
    )
    path = tmp_path_factory.mktemp("words") / "words.parquet"
    pq.write_table(pa.table({"city": ["Lima"], "id": [1], **{name: [7] for name in names}}), path)
    return path
