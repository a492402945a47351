"""What a lie in the footer does, here and elsewhere: ``docs/footer.md``, made from real runs.

    python tests/footer_matrix.py             writes docs/footer.md (a few minutes; needs Java for Spark)
    python tests/footer_matrix.py --no-spark

Every file of :mod:`footer_lies` is read whole by every reader, and the values are compared with those of the file
before the lie. Each reader runs in a process of its own, with bounded memory: some die.
"""

from __future__ import annotations

import argparse
import json
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
        return in_few_words(error)


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
- *refused*: an error. That of pyparq is named; what it says, with the file, row group, column and page, is in
  `tests/test_footer_lies.py`'s files. Those of the others are below the table, by number.
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


TAIL = ""


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
    versions = ", ".join(f"{name} {version(peers.get(name, 'pyspark'))}" for name in found)
    arguments.output.write_text(page(LIES, found, versions), "utf-8")


if __name__ == "__main__":
    main()
