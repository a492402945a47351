"""Which library reads which files: makes ``docs/interop.md`` from real runs.

    python tests/support/interop_matrix.py             writes docs/interop.md (some minutes; needs Java for Spark)
    python tests/support/interop_matrix.py --no-spark

For every writer, type and encoding, one file of one column is written (with version 1 and version 2 pages if the writer
has both). Every reader's values are compared with the written ones. A failure gets a footnote with the reader's own
message. The encoding of a file is taken from its page headers.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from interop_peers import READERS, WRITERS, compare, with_encodings, with_pyparq
from interop_tables import FLAT, WIDE_DECIMALS, Kind, encodings_of

import pyparq

TARGET = Path(__file__).parents[2] / "docs" / "interop.md"
ROWS = 60
Reader = Callable[[Path], pa.Table]
Writer = Callable[[pa.Table, Path, dict[str, Any]], None]

FILLED: dict[str, list[Any]] = {
    "bool": [True, False, False], "date64": [0, 86_400_000, -86_400_000], "null": [],
    "json": ["{}", "null", '{"é": [1, null]}'],
}  # fmt: skip
"""Values of the kinds that name no edges."""

NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "list": (pa.list_(pa.int64()), [[], [None], [1, None, 2], [3]]),
    "list of lists": (pa.list_(pa.list_(pa.string())), [[], [[]], [None, ["a", None]], [["b"], []]]),
    "struct": (pa.struct([("a", pa.int32()), ("b", pa.string())]), [{"a": None, "b": "x"}, {"a": 1, "b": None}]),
    "list of structs": (pa.list_(pa.struct([("a", pa.int32())])), [[], [None], [{"a": None}, {"a": 7}]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("k", 1), ("l", None)]]),
    "struct of lists": (pa.struct([("l", pa.list_(pa.float64()))]), [{"l": None}, {"l": []}, {"l": [0.5, None]}]),
}


def columns() -> Iterator[tuple[str, pa.Table]]:
    """Every type: its edge values repeated, every seventh row null."""
    for name, kind in {**FLAT, **WIDE_DECIMALS}.items():
        yield name, table_of(kind.array(filled(name, kind.edges or FILLED[name])), kind)
    for name, (type_, values) in NESTED.items():
        yield name, pa.table({"x": pa.array(filled(name, values), type_)})


def filled(name: str, edges: list[Any]) -> list[Any]:
    return [edges[k % len(edges)] if edges and k % 7 else None for k in range(ROWS)]


def table_of(array: pa.Array, kind: Kind) -> pa.Table:
    return pa.table([array], schema=pa.schema([pa.field("x", kind.type)]))


# ---- who writes, and in which encodings ------------------------------------------------------------------------------


def settings(writer: str, kind: pa.DataType) -> Iterator[dict[str, Any]]:
    """Option sets under which a writer shows all its encodings of a type."""
    extra = [] if pa.types.is_nested(kind) else encodings_of(kind)
    if writer == "pyparq":
        fixed = {"PLAIN", "RLE_DICTIONARY", *extra} - ({"RLE_DICTIONARY"} if pa.types.is_boolean(kind) else set())
        for encoding in sorted({"PLAIN", "RLE_DICTIONARY"} if pa.types.is_nested(kind) else fixed):
            yield {"column_encoding": encoding}
    elif writer == "pyarrow":
        yield {}
        yield {"use_dictionary": False}
        for encoding in extra:
            yield with_encodings(writer, {}, {"x": encoding})
    elif writer == "duckdb":
        yield {}
        yield {"dictionary_size_limit": 1}
        yield {"parquet_version": "v2", "dictionary_size_limit": 1}
    elif writer == "datafusion":
        yield {}
        yield {"dictionary_enabled": False}
        for encoding in extra:
            yield with_encodings(writer, {}, {"x": encoding})
    elif writer == "spark":
        for writer_version in ("PARQUET_1_0", "PARQUET_2_0"):
            for dictionary in ("true", "false"):
                yield {"parquet.writer.version": writer_version, "parquet.enable.dictionary": dictionary}
    else:
        yield {}


def versions(writer: str) -> list[dict[str, Any]]:
    """Page versions, where they are an option of their own."""
    if writer in ("pyparq", "pyarrow"):
        return [{"data_page_version": "1.0"}, {"data_page_version": "2.0"}]
    return [{"writer_version": "1.0"}, {"writer_version": "2.0"}] if writer == "datafusion" else [{}]


def by_pyparq(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    pyparq.write_table(table, path, **options)


def encoding_in(path: Path) -> str:
    """Encodings of the data pages of the first row group."""
    with pyparq.ParquetFile(path) as file:
        found: set[str] = set()
        for k in range(len(file._file.tree.leaves)):
            found |= {page.encoding for page in file.pages(0, k) if page.ordinal != "dictionary"}
    names = sorted("RLE_DICTIONARY" if name == "PLAIN_DICTIONARY" else name for name in found)
    return ", ".join(dict.fromkeys(names)) or "no pages"


# ---- runs ------------------------------------------------------------------------------------------------------------


@dataclass
class Matrix:
    """Outcomes of one writer: ``cells[encoding, type][reader]`` is empty when the values were right in every file."""

    writer: str
    cells: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    not_written: dict[str, str] = field(default_factory=dict)

    def add(self, encoding: str, type_: str, outcomes: Mapping[str, str]) -> None:
        cell = self.cells.setdefault((encoding, type_), dict.fromkeys(outcomes, ""))
        for reader, problem in outcomes.items():
            cell[reader] = cell[reader] or problem


def run(writer: str, write: Writer, readers: Mapping[str, Reader], folder: Path,
        names: set[str] | None = None) -> Matrix:  # fmt: skip
    """Write and read everything (or the columns named)."""
    matrix, path = Matrix(writer), folder / "x.parquet"
    for name, table in columns():
        if names is not None and name not in names:
            continue
        for options in settings(writer, table.schema.field(0).type):
            for page_version in versions(writer):
                path.unlink(missing_ok=True)
                problem = outcome(lambda: write(table, path, {**options, **page_version}))  # noqa: B023
                if problem:
                    matrix.not_written[name] = problem
                    continue
                found = {reader: outcome(lambda: check(read, path, table)) for reader, read in readers.items()}  # noqa: B023
                matrix.add(encoding_in(path), name, found)
    return matrix


def outcome(action: Callable[[], None]) -> str:
    """Nothing, or what went wrong in few words."""
    try:
        action()
    except AssertionError as error:
        return str(error) or "other values"
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return in_few_words(error)
    return ""


def in_few_words(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    text = next((line for line in [*causes[-1:], *lines] if not line.startswith("An error occurred while calling")), "")
    text = re.sub(r"(file:)?/\S*x\.parquet|/\S*part-\S+", "the file", text)
    text = re.sub(r"FixedLenByteArray\(\d+\)", "FixedLenByteArray(n)", re.sub(r"of len \d+", "of len n", text))
    text = re.sub(r"\s+", " ", text).replace("|", "/").strip(": ")
    return f"{type(error).__name__.lstrip('_')}: {shorten(text)}" if text else type(error).__name__


def shorten(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def check(read: Reader, path: Path, expected: pa.Table) -> None:
    found = read(path)
    assert found.num_rows == expected.num_rows, f"{found.num_rows} rows of {expected.num_rows}"
    try:
        compare(found, expected, "")
    except AssertionError:
        raise AssertionError(f"other values, as {found.schema.field(0).type}") from None


# ---- Spark -----------------------------------------------------------------------------------------------------------


def spark_session() -> Any:
    from pyspark.sql import SparkSession
    from spark_session import SETTINGS

    builder = SparkSession.builder.master("local[1]").appName("pyparq interop")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def with_spark(session: Any) -> Reader:
    return lambda path: session.read.parquet(str(path)).toArrow()


def by_spark(session: Any) -> Writer:
    def write(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
        from spark_tools import put

        with tempfile.TemporaryDirectory() as folder:
            written = put(session.createDataFrame(table), Path(folder) / "out", options)
            path.write_bytes(written.read_bytes())

    return write


# ---- the page --------------------------------------------------------------------------------------------------------

HEAD = """# Which library reads which files

Made by `python tests/support/interop_matrix.py` from real runs with {versions}.

Every writer writes each type in each encoding that it offers: {rows} rows with edge values and nulls, in both page
versions if the writer has both. ✓ means that all values came back, bit for bit. A number leads to the reader's own
message below the table.

Types are named as in Arrow. `ts` means timestamp, and `decimal38_10` has 38 digits, 10 of them after the decimal
point. `time_s` and `ts_s` are stored in milliseconds, and decimals in the smallest storage that holds them. Some types
do not exist in a reader: DuckDB has no decimals of 39 digits and Spark has no nanoseconds, for example.
"""


def page(matrices: list[Matrix], readers: list[str], peers: list[str]) -> str:
    names = ", ".join(f"{name} {version(name)}" for name in peers)
    parts = [HEAD.format(versions=names, rows=ROWS)]
    for matrix in matrices:
        parts.append(section(matrix, readers))
    return "\n".join(parts)


def section(matrix: Matrix, readers: list[str]) -> str:
    notes: dict[str, int] = {}

    def mark(problem: str) -> str:
        return str(notes.setdefault(problem, len(notes) + 1)) if problem else "✓"

    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (encoding, type_), cell in matrix.cells.items():
        grouped.setdefault((encoding, tuple(cell[reader] for reader in readers)), []).append(type_)
    lines = [f"## Written by {matrix.writer}", "", f"| encoding | types | {' | '.join(readers)} |",
             "|---" * (len(readers) + 2) + "|"]  # fmt: skip
    for (encoding, problems), types in sorted(
        grouped.items(), key=lambda item: (item[0][0], sum(map(bool, item[0][1])))
    ):
        lines.append(f"| {encoding} | {', '.join(types)} | {' | '.join(mark(p) for p in problems)} |")
    lines.append("")
    lines += [f"{number}. {text}" for text, number in notes.items()]
    refused: dict[str, list[str]] = {}
    for type_, problem in matrix.not_written.items():
        refused.setdefault(problem, []).append(type_)
    if refused:
        lines += ["", "Not written:", ""] if notes else ["Not written:", ""]
        lines += [f"- {', '.join(types)}: {problem}" for problem, types in refused.items()]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--output", type=Path, default=TARGET)
    arguments = parser.parse_args()
    readers: dict[str, Reader] = {"pyparq": with_pyparq, **READERS}
    writers: dict[str, Writer] = {"pyparq": by_pyparq, **WRITERS}
    peers = list(writers)
    if not arguments.no_spark:
        session = spark_session()
        readers["spark"], writers["spark"] = with_spark(session), by_spark(session)
        peers.append("pyspark")
    matrices = []
    with tempfile.TemporaryDirectory() as folder:
        for writer, write in writers.items():
            print(f"written by {writer} …", file=sys.stderr, flush=True)
            matrices.append(run(writer, write, readers, Path(folder)))
    arguments.output.write_text(page(matrices, list(readers), peers), "utf-8")


if __name__ == "__main__":
    main()
