"""What readers do with a wrong footer: makes ``docs/footer.md`` from real runs.

    python tests/support/footer_matrix.py             writes docs/footer.md (a few minutes; needs Java for Spark)
    python tests/support/footer_matrix.py --no-spark

Every reader reads every file of :mod:`footer_lies`. The values are compared with those of the file before the change.
Each reader runs in its own process with bounded memory, because some readers die.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from footer_lies import LIES, TABLE, Lie

TARGET = Path(__file__).parents[2] / "docs" / "footer.md"
READERS = ("pyparq", "pyarrow", "polars", "duckdb", "parquet-java")
MEMORY = 8 << 30
SECONDS = 60
READ, WRONG, DIED = "✓", "other values", "died"


# ---- the readers, each in a worker -----------------------------------------------------------------------------------


def reader(name: str) -> Callable[[Path], Any]:
    from interop_peers import with_duckdb, with_polars, with_pyarrow, with_pyparq

    if name == "parquet-java":
        from interop_matrix import spark_session, with_spark

        session = spark_session()
        session.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
        return with_spark(session)
    return {"pyparq": with_pyparq, "pyarrow": with_pyarrow, "polars": with_polars, "duckdb": with_duckdb}[name]


def outcome(read: Callable[[Path], Any], path: Path) -> str:
    """``READ``, ``WRONG`` with what is other, or the error in few words."""
    from interop_matrix import in_few_words

    try:
        found = read(path)
        if found.num_rows != TABLE.num_rows:
            return f"{found.num_rows} rows"
        if found.column_names != TABLE.column_names:
            return "other columns"
        return READ if found.to_pydict() == TABLE.to_pydict() else WRONG
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever a reader raises: Rust's panics are no Exception
        text = re.sub(r"(file:)?/[^\s\":,]*\.parquet", "the file", in_few_words(error))
        return re.sub(r"Id\(\d+\)", "Id(n)", text)


def work(name: str, folder: Path, first: int) -> None:
    """Report each file's outcome on a line of its own, as soon as it is known."""
    if name != "parquet-java":
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    read = reader(name)
    for k in range(first, len(LIES)):
        print(json.dumps([k, None]), flush=True)
        said = outcome(read, folder / f"{k}.parquet")
        if said.startswith(
            ("Py4JNetworkError", "ConnectionRefusedError", "Py4JError:")
        ):  # Java is gone, and Python goes after it
            sys.exit(1)
        print(json.dumps([k, said]), flush=True)


def outcomes(name: str, folder: Path) -> list[str]:
    """The outcome of each file. After a process dies, a new one starts with the file after the one that killed it."""
    found: dict[int, str] = {}
    while len(found) < len(LIES):
        with subprocess.Popen(
            [sys.executable, __file__, "--work", name, str(folder), str(len(found))],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            at = None
            for line in process.stdout:
                if not line.startswith("["):
                    continue
                at, said = json.loads(line)
                if said is not None:
                    found[at], at = said, None
        if at is not None:
            found[at] = DIED
        elif len(found) < len(LIES) and process.returncode:
            sys.exit(f"{name} does not run")
    return [found[k] for k in range(len(LIES))]


# ---- the page --------------------------------------------------------------------------------------------------------

HEAD = """# What happens when the footer is wrong

Made by `python tests/support/footer_matrix.py` from real runs with {versions}.

Each line of the table is one file. It was made from a sound file (two row groups, dictionaries, nulls, a list, several
pages in each column chunk, page indexes, CRCs) by changing the named field. The field is wrong in every row group,
unless the line says otherwise. Each reader then reads the whole file without a filter.

- ✓: all values came back correctly, without an error. The wrong field is harmless, or tolerated.
- *other values*, *other columns*, or a number of rows: the reader returned a wrong result without an error.
- *refused*, or the name of an error: the reader raised an error. The numbers lead to the messages of the other readers
  below the table. The errors of pyparq name the file, and the row group, column and page where these are at fault.
- *died*: the process ended.

Below the table is what pyparq does with each field, and why.

"""


def page(lies: list[Lie], found: dict[str, list[str]], versions: str) -> str:
    notes: dict[str, int] = {}

    def cell(name: str, said: str) -> str:
        if name == "pyparq" or is_no_error(said):
            return pyparq_says(said)
        return f"refused {notes.setdefault(f'{name}: {said}', len(notes) + 1)}"

    lines = [HEAD.format(versions=versions), f"| field | change | {' | '.join(found)} |"]
    lines.append("|---" * (2 + len(found)) + "|")
    for k, lie in enumerate(lies):
        cells = " | ".join(cell(name, said[k]) for name, said in found.items())
        lines.append(f"| {lie.field} | {lie.what} | {cells} |")
    lines += ["", TAIL, "## Messages of the other readers", ""]
    lines += [f"{number}. {text}" for text, number in notes.items()]
    return "\n".join(lines) + "\n"


def is_no_error(said: str) -> bool:
    return said in (READ, WRONG, DIED, "other columns") or (said.endswith(" rows") and ":" not in said)


def pyparq_says(said: str) -> str:
    """An outcome as it stands in the table: of an error, its type."""
    return said if is_no_error(said) else said.split(":")[0]


TAIL = """## Why pyparq does what it does

pyparq treats a declared size as a hint. Memory is bounded by the stored bytes, the caps of `pyparq.limits.Limits` and
the bytes that were really decompressed. The rows come from the pages. pyparq tolerates a wrong field if the rest of
the file gives the right value, and refuses the file otherwise. It never leaves out rows silently, and never guesses
values.

- **Required fields**: a file that lacks one is refused. A few may be missing because a reader can do without them:
  `file_offset` of a column chunk, and its `type`, `encodings` and `path_in_schema`, which the schema and the pages
  give too. The rows of a row group without `total_byte_size` are read as well.
- **Rows**: pyparq uses `RowGroup.num_rows` and ignores `FileMetaData.num_rows`. The pages of every column chunk must
  hold that many rows. Fewer rows, or one more page after them, raise `CorruptFileError`. So does a row group of 0 rows
  whose columns have values, and more than 2**63 - 1 rows in all row groups. Where no column is read, nothing shows that
  the rows are there. Batches of them are refused with `LimitError` if there are more than `limits.max_values_per_byte`
  for each byte of the file.
- **`num_values`**: in a column without lists, the number of values equals the number of rows. So a wrong number is
  harmless, and the counts of the chunk's statistics are then not used. In a list, no other number shows that entries
  are missing at the end. So pyparq relies on `num_values`, and it must fit the pages.
- **`total_uncompressed_size`** is not used for reading. `verify` compares it with the pages.
- **`total_compressed_size`**: pyparq reads pages until it has all declared values. If pages continue after the
  declared end, it reads on in a second step, up to the next known column chunk, index or Bloom filter. A size that is
  too large only costs the extra bytes. Column chunks overlap if the pages that were read share bytes. Overlapping
  chunks are refused, because a few bytes could otherwise expand to any number of values. For encrypted column chunks,
  a wrong size is not corrected. `verify`, `add_indexes`, `edit_metadata` and `merge`, which take the whole file, look
  first where all column chunks begin. They refuse chunks that begin at the same place (`verify` reports them), and end
  each chunk where the next one begins.
- **Page offsets**: a column chunk starts at the smaller of its two offsets, of those that are positive. A page must
  start there.
- **Page indexes and Bloom filters**: one that lies outside the file, cannot be decoded or contradicts the pages is
  ignored. pyparq emits a `CorruptIndexWarning` when the index is needed. So is a page index whose bytes are those of
  another column chunk's too: `verify` reports it, and `merge` refuses it.
- **Trusted, because nothing contradicts them**: bounds and counts of statistics, `encoding_stats`, well-formed page
  indexes and Bloom filters. If they are wrong, filters return wrong rows, in every reader that uses them.
- **Codec, encodings, levels**: pyparq uses the declared codec. With a wrong one, the decompression library fails.
  Encodings are taken from the page headers. The encodings in the footer are only shown.
- **Schemas**: a leaf column without a repetition type is required. A group without one is refused, because it could be
  optional or repeated, and readers disagree. A wrong type or repetition shows in the pages. The physical type of the
  column chunk must be that of the schema, because nothing tells which of the two is right.
- **Page headers**: declared sizes are checked against the stored bytes and `limits.max_page`. Pages over 64 MiB may
  expand at most a thousandfold (`limits.max_expansion`). The numbers of rows and nulls in a version 2 page are not
  used. Dictionary pages are decoded as PLAIN, whichever dictionary encoding they name.
- **Memory**: `limits.max_memory` limits what one read has decoded and in memory at once. Memory is counted before it
  is allocated.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--keep", type=Path, help="a JSON file of outcomes: readers that are in it are not run again")
    parser.add_argument("--output", type=Path, default=TARGET)
    parser.add_argument("--work", nargs=3)
    arguments = parser.parse_args()
    if arguments.work:
        name, folder, first = arguments.work
        work(name, Path(folder), int(first))
        return
    names = [name for name in READERS if not (arguments.no_spark and name == "parquet-java")]
    keep: Path | None = arguments.keep
    known: dict[str, dict[str, str]] = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for k, lie in enumerate(LIES):
            (Path(folder) / f"{k}.parquet").write_bytes(lie.file())
        for name in names:
            if [lie.name for lie in LIES] != list(known.get(name, ())):
                print(f"read by {name} …", file=sys.stderr, flush=True)
                known[name] = dict(zip([lie.name for lie in LIES], outcomes(name, Path(folder)), strict=True))
            found[name] = list(known[name].values())
            if keep is not None:
                keep.write_text(json.dumps(known))
    peers = {"pyparq": "pyparq", "pyarrow": "pyarrow", "polars": "polars", "duckdb": "duckdb"}
    versions = ", ".join(f"{name} {version(peers[name])}" for name in found if name in peers)
    if "parquet-java" in found:
        versions += f", and parquet-java as PySpark {version('pyspark')} has it"
    arguments.output.write_text(page(LIES, found, versions), "utf-8")


if __name__ == "__main__":
    main()
