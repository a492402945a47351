"""The Parquet tests of other programs, with ``pyarrow.parquet`` and with pyparq in its place.

``python tests/support/suites.py FOLDER [NAME...]``. FOLDER holds unpacked source archives of the programs
(``pip download --no-deps --no-binary NAME NAME``), and of datasets, whose archive lacks what its tests import,
``tests/`` and ``pyproject.toml`` of the repository in ``datasets-VERSION/``. The programs themselves are installed
beside pyparq, with what their tests need: pytest-timeout, pytest-lazy-fixtures, pytest-datadir, absl-py, httpx, joblib.
What passes with pyarrow has to pass with pyparq: the exit status counts what does not.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path

SUPPORT = Path(__file__).parent
INSTALLED = {"pandas": "pandas/tests/io/test_parquet.py", "awswrangler": f"{SUPPORT / 'awswrangler_calls.py'}"}
"""Tests that come with the program itself, or that are ours."""
UNPACKED = {
    "dask": "dask/dataframe/io/tests/test_parquet.py",
    "geopandas": "geopandas/io/tests/test_arrow.py",
    "pyiceberg": "tests/io/test_pyarrow*.py tests/io/test_format_writers.py tests/table/test_upsert.py "
    "-m 'not s3 and not gcs and not adls and not integration'",
    "datasets": "tests/test_arrow_writer.py tests/test_arrow_dataset.py tests/test_dataset_dict.py "
    "tests/test_iterable_dataset.py tests/test_buckets.py tests/io/test_parquet.py "
    "tests/packaged_modules/test_parquet.py -k parquet",
}


def outcomes(root: Path, tests: str, ours: bool) -> dict[str, str]:
    """By test: what it said if it did not pass."""
    arguments = [str(path) for word in shlex.split(tests) for path in files_of(root, word)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "behind_pyarrow" if ours else "pyarrow.parquet",
            "-p", "no:cacheprovider", f"--junitxml={report}", "--timeout=120", f"--basetemp={folder}/work",
            "-W", "ignore", "-o", "addopts=", *arguments,
        ]  # fmt: skip
        path = os.pathsep.join([str(SUPPORT), *([str(root)] if (root / "tests").is_dir() else [])])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, check=False)
        if not report.exists():
            return {"all of them": (ran.stdout + ran.stderr)[-800:]}
        found = {}
        for case in ElementTree.parse(report).iter("testcase"):
            wrong = case.find("failure") if case.find("error") is None else case.find("error")
            said = "skipped" if case.find("skipped") is not None else ""
            said = said if wrong is None else wrong.get("message", "")
            found[f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name')}"] = said
        return found


def files_of(root: Path, word: str) -> list[str]:
    """The files that a word stands for. Other words are for pytest."""
    return sorted(map(str, root.glob(word))) if word.endswith(".py") and not word.startswith("/") else [word]


def places(folder: Path, name: str) -> list[tuple[Path, str]]:
    if name in UNPACKED:
        return [(root, UNPACKED[name]) for root in folder.glob(f"{name}-*/")]
    spec = find_spec(name)
    return [] if spec is None or spec.origin is None else [(Path(spec.origin).parents[1], INSTALLED[name])]


def main(folder: str, *names: str) -> int:
    lost = 0
    for name in names or (*INSTALLED, *UNPACKED):
        for root, tests in places(Path(folder).absolute(), name):
            theirs, ours = outcomes(root, tests, False), outcomes(root, tests, True)
            passed = [test for test, said in theirs.items() if not said]
            wrong = {test: said for test in passed if (said := ours.get(test, "it does not run"))}
            print(f"{name}: {len(passed)} of {len(theirs)} pass with pyarrow, {len(wrong)} of them not with pyparq")
            for test, said in sorted(wrong.items()):
                print(f"  {test}: {said[:300]!r}")
            if not passed:
                print(theirs)
            lost += len(wrong) + (not passed)
    return lost


if __name__ == "__main__":
    raise SystemExit(min(main(*sys.argv[1:]), 100))
