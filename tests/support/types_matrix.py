"""Types that survive writing and reading: makes the tables of ``docs/types.md`` from real runs.

    python tests/support/types_matrix.py        writes the tables into docs/types.md

Every type of ``type_kinds.py`` is written with the default options: alone and (except for pandas) in structs, lists
and maps, with nulls, without nulls, with only nulls, without rows, in one row group and in several. Each file is read
twice: by pyparq into the library that the data came from, and by that library itself.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from type_kinds import (
    ARROW,
    PANDAS,
    POLARS,
    arrow_forms,
    contents,
    pandas_series,
    polars_forms,
)
from written import written

import pyparq

TARGET = Path(__file__).parents[2] / "docs" / "types.md"
BEGIN, END = "<!-- made by tests/support/types_matrix.py -->", "<!-- end of what is made -->"
SAME = "✓"


class Row(NamedTuple):
    type: str
    parquet: str
    hint: str
    ours: str
    theirs: str


class Library(NamedTuple):
    """How a library's data are made, read by pyparq and by itself, and compared; ``seen`` is the type of a result."""

    name: str
    kinds: dict[str, tuple[Any, list[Any]]]
    forms: Callable[[Any, list[Any]], Iterator[tuple[str, Any]]]
    by_pyparq: Callable[[bytes], Any]
    by_itself: Callable[[bytes], Any]
    same: Callable[[Any, Any], bool]
    seen: Callable[[Any], str]


def _arrow_tables(type_: pa.DataType, rows: list[Any]) -> Iterator[tuple[str, pa.Table]]:
    return ((form, pa.table({"x": array})) for form, array in arrow_forms(type_, rows))


def _polars_frames(dtype: Any, rows: list[Any]) -> Iterator[tuple[str, pl.DataFrame]]:
    return ((form, pl.DataFrame({"x": series})) for form, series in polars_forms(dtype, rows))


def _pandas_frames(dtype: Any, rows: list[Any]) -> Iterator[tuple[str, pd.DataFrame]]:
    yield "flat", pd.DataFrame({"x": pandas_series(dtype, rows)})


def _same_tables(found: pa.Table, given: pa.Table) -> bool:
    found.validate(full=True)
    names = str(given.schema) == str(found.schema) or not re.search("named", str(given.schema))
    return names and found.equals(given)


def _same_frames(found: pd.DataFrame, given: pd.DataFrame) -> bool:
    try:
        pd.testing.assert_frame_equal(found, given)
    except AssertionError:
        return False
    return True


LIBRARIES = [
    Library(
        "pyarrow", ARROW, _arrow_tables, lambda file: pyparq.read_table(file).to_arrow(),
        lambda file: pq.read_table(io.BytesIO(file)), _same_tables, lambda table: str(table.schema.field(0).type),
    ),
    Library(
        "polars", POLARS, _polars_frames, lambda file: pyparq.read_table(file).to_polars(), pl.read_parquet,
        lambda found, given: found.schema == given.schema and found.equals(given), lambda f: str(f.schema["x"]),
    ),
    Library(
        "pandas", PANDAS, _pandas_frames, lambda file: pyparq.read_table(file).to_pandas(),
        lambda file: pd.read_parquet(io.BytesIO(file)), _same_frames, lambda frame: str(frame["x"].dtype),
    ),
]  # fmt: skip


def pandas_contents(values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The contents that are possible: those with nulls only if the values include a missing one."""
    missing = [v for v in values if v is None or v != v]
    for name, rows in contents([v for v in values if v is not None and v == v]):
        if missing or name in ("valid", "no rows"):
            yield name, [missing[0] if v is None else v for v in rows]


def row_of(library: Library, name: str) -> Row:
    """What becomes of one type."""
    type_, values = library.kinds[name]
    wrong: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    described = ("", "")
    made = pandas_contents(values) if library.name == "pandas" else contents(values)
    for content, rows in made:
        for form, data in library.forms(type_, rows):
            for row_group_size in (100, 4):
                try:
                    file = written(data, row_group_size=row_group_size)
                except pyparq.ParquetError as error:
                    return Row(name, "refused: " + error.message, "", "", "")
                if not described[0]:
                    bare = written(
                        data, row_group_size=row_group_size, store_schema=False
                    )  # pyarrow may not know the hint
                    described = stored(bare), "yes" if b"ARROW:schema" in metadata(file) else ""
                for problems, read in zip(wrong, (library.by_pyparq, library.by_itself), strict=True):
                    problem = outcome(library, read, file, data)
                    if problem:
                        problems.setdefault(form if problem == "values" else problem, set()).add(content)
    return Row(name, *described, *(summary(problems) for problems in wrong))


def outcome(library: Library, read: Callable[[bytes], Any], file: bytes, given: Any) -> str:
    """Nothing where all is the same, what it came as, or how reading failed."""
    try:
        found = read(file)
        if library.same(found, given):
            return ""
    except Exception as error:
        return f"fails ({type(error).__name__})"
    except BaseException as error:  # what polars calls a panic
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return f"fails ({type(error).__name__})"
    seen = library.seen(found)
    return seen if seen != library.seen(given) else "other values or entries"


def summary(problems: dict[str, set[str]]) -> str:
    if not problems:
        return SAME
    first, where = next(iter(problems.items()))
    return first if "valid" in where else f"{SAME}, but for {' and '.join(sorted(where))}"


def metadata(file: bytes) -> dict[bytes, bytes]:
    return dict(pyparq.ParquetFile(file).metadata.metadata)


def stored(file: bytes) -> str:
    """The column's leaves as the file's schema has them."""
    schema = pq.ParquetFile(io.BytesIO(file)).schema
    leaves = [schema.column(k) for k in range(len(schema))]
    return ", ".join(_leaf(leaf) for leaf in leaves)


def _leaf(leaf: Any) -> str:
    length = f"({leaf.length})" if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else ""
    logical = re.sub(
        r"isAdjustedToUTC=(\w+), timeUnit=(\w+).*\)",
        lambda m: (
            {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}[m[2]]
            + (", UTC)" if m[1] == "true" else ")")
        ),
        str(leaf.logical_type),
    )
    signed = {"true": "signed", "false": "unsigned"}
    logical = re.sub(r"bitWidth=(\d+), isSigned=(\w+)", lambda m: f"{m[1]}, {signed[m[2]]}", logical)
    logical = re.sub(r"precision=(\d+), scale=(\d+)", r"\1, \2", logical)
    if logical == "None":
        logical = "" if leaf.converted_type == "NONE" else leaf.converted_type
    path = leaf.path.partition(".")[2]
    return f"{leaf.physical_type}{length} {logical}".strip() + (f" at {path}" if path else "")


# ---- the page --------------------------------------------------------------------------------------------------------


def table_of(library: Library) -> str:
    lines = [
        f"### From {library.name}", "",
        f"| type | in the file | hint | through pyparq | through {library.name} itself |", "|---|---|---|---|---|",
        *(line_of(row_of(library, name)) for name in library.kinds), "",
    ]  # fmt: skip
    return "\n".join(lines)


def line_of(row: Row) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") or " " for cell in row) + " |"


def documented() -> dict[str, list[str]]:
    """The lines of the tables that the page has, by library."""
    made = TARGET.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    parts = made.split("### From ")[1:]
    return {part.split("\n", 1)[0]: part.split("|---|---|---|---|---|\n")[1].strip().splitlines() for part in parts}


def main() -> None:
    page = TARGET.read_text("utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    made = "\n".join(table_of(library) for library in LIBRARIES)
    TARGET.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}", "utf-8")
    print(made, file=sys.stderr)


if __name__ == "__main__":
    main()
