"""What a lie in the footer does, here and elsewhere: ``docs/footer.md``, made from real runs.

    python tests/footer_matrix.py             writes docs/footer.md (a few minutes; needs Java for Spark)
    python tests/footer_matrix.py --no-spark

Every file of :mod:`footer_lies` is read whole by every reader, and the values are compared with those of the file
before the lie. Each reader runs in a process of its own, with bounded memory: some die.
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

TARGET = Path(__file__).parents[1] / "docs" / "footer.md"
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
    """Of all files; a process that dies is started again behind the file that killed it."""
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

HEAD = """# What a lie in the footer does

Made by `python tests/footer_matrix.py` from real runs with {versions}.

Every line is one file: a sound one (two row groups, dictionaries, nulls, a list, several pages a chunk, page indexes,
CRCs), in which the field named says something else. In every row group, unless the line says otherwise. It is read
whole, without a filter.

- ✓: all values came back, and no word was said. The lie is harmless, or tolerated.
- *other values*, or a number of rows: something else came back, without an error.
- *refused*, or the name of an error: it was not read. What the others said is below the table, by number; the errors of
  pyparq name the file, and the row group, column and page as far as these are at fault.
- *died*: the process was gone.

What pyparq does with each field, and why, stands below the table.

"""


def page(lies: list[Lie], found: dict[str, list[str]], versions: str) -> str:
    notes: dict[str, int] = {}

    def cell(name: str, said: str) -> str:
        if name == "pyparq" or is_no_error(said):
            return pyparq_says(said)
        return f"refused {notes.setdefault(f'{name}: {said}', len(notes) + 1)}"

    lines = [HEAD.format(versions=versions), f"| field | what it says | {' | '.join(found)} |"]
    lines.append("|---" * (2 + len(found)) + "|")
    for k, lie in enumerate(lies):
        cells = " | ".join(cell(name, said[k]) for name, said in found.items())
        lines.append(f"| {lie.field} | {lie.what} | {cells} |")
    lines += ["", TAIL, "## What the others said", ""]
    lines += [f"{number}. {text}" for text, number in notes.items()]
    return "\n".join(lines) + "\n"


def is_no_error(said: str) -> bool:
    return said in (READ, WRONG, DIED, "other columns") or (said.endswith(" rows") and ":" not in said)


def pyparq_says(said: str) -> str:
    """An outcome as it stands in the table: of an error, its type."""
    return said if is_no_error(said) else said.split(":")[0]


TAIL = """## Why pyparq does what it does

What bounds memory is the stored bytes, the caps of `pyparq.limits.Limits` and what was really inflated; what makes
rows is the pages. A declared size is a hint. So a lie is tolerated where something else in the file tells the truth,
and refused where only the liar could: rows are never left out without a word, and values never guessed.

- **Refused by the format's own rules**: a required field that is missing. Four that a reader can do without may be:
  `file_offset`, and `type`, `encodings` and `path_in_schema` of a chunk, which the schema and the pages say too.
- **Rows**: `RowGroup.num_rows` is believed, `FileMetaData.num_rows` not looked at. The pages of every column chunk
  must hold that many rows: fewer, or a page more behind them, are a `CorruptFileError`. A row group of no rows whose
  columns have values is one, too.
- **`num_values`**: of a column without lists it must be the number of rows, so that a lie is harmless (what its
  statistics count is not used then). In a list no other number tells that entries are missing at the end: it is
  believed, and must fit the pages.
- **`total_uncompressed_size`** is not looked at, but for a first guess of how much memory a text column takes.
- **`total_compressed_size`**: the pages are read up to the stated values. Where they go on behind the stated end, as
  many bytes as there are up to the next known column chunk, index or Bloom filter are read in a second step. Too
  large a size costs nothing but the bytes. Whether column chunks overlap is judged by the pages that were read: two
  that share bytes are refused, as a few bytes could be unfolded any number of times otherwise. Encrypted column
  chunks are not mended.
- **Offsets of pages**: a chunk starts at the lesser of the two that are positive. What stands there must be a page.
- **Page indexes and Bloom filters**: one that lies outside the file, does not decode or contradicts the pages is
  ignored with a `CorruptIndexWarning`, when it is asked for.
- **Believed, because nothing contradicts them**: the bounds and counts of statistics, `encoding_stats`, well-formed
  page indexes, Bloom filters. A filter that is answered from a lie gives wrong rows, with every reader that uses
  them.
- **Codec, encodings, levels**: the codec is believed, and a wrong one fails in the library. Encodings are taken from
  the page headers, those of the footer are for show.
- **Schemas**: a leaf without a repetition type is required. A group without one is refused: it may as well be
  optional or repeated, and others differ. A wrong type, or a wrong repetition, shows in the pages; the physical type
  of the chunk must be that of the schema, since nobody knows which of them is right.
- **Page headers**: sizes are held against the stored bytes, `limits.max_page` and, above 64 MiB, a thousandfold
  inflation (`limits.max_expansion`); the number of rows and nulls of a version 2 page is not used. Dictionary pages
  are PLAIN, whichever dictionary encoding they name.
- **Memory**: `limits.max_memory` is what one read may have decoded and alive at once, counted before it is allocated.
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
