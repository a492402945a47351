"""Compare pyparq with pyarrow, polars, duckdb and datafusion; needs the extra ``bench``.

    python benchmarks/run.py                          # all lines, 30 minutes; saves results.json, README.md, charts
    python benchmarks/run.py --quick                  # a tenth of the rows, 2 minutes; only prints
    python benchmarks/run.py --only filters "isin"    # groups, or lines whose name contains this; only prints
    python benchmarks/run.py --list

Every engine answers the same questions on the same files, in turn within each round; before anything is timed
each answer is compared, value for value, with the table the file was made from. No line was chosen by its result.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import events
import floors
import report
from engines import Engine, NotOffered, available_engines
from groups import GROUPS
from inputs import Inputs, Sizes
from lines import Line

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, few repetitions; saves nothing")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help=f"groups ({', '.join(GROUPS)}) or parts of names")
    parser.add_argument("--engines", nargs="+", help="only these engines")
    parser.add_argument("--cpu", action="store_true", help="show processor time: for a machine that others use too")
    parser.add_argument("--data-dir", type=Path, default=events.default_data_dir())
    parser.add_argument("--output", type=Path, help="folder for the results; default: beside this script")
    parser.add_argument("--list", action="store_true", help="show the lines and measure nothing")
    given = parser.parse_args()
    inputs = Inputs(given.data_dir, Sizes.quick() if given.quick else Sizes())
    if given.list:
        for line in chosen_lines(inputs, given.only):
            print(f"{line.group:10} {line.name}" + (f" (by {line.writer})" if line.writer else ""))
        return
    engines, missing = available_engines(given.engines)
    for name, reason in missing.items():
        print(f"skipping {name}: {reason}")
    results = run_all(engines, inputs, given.only, cpu=given.cpu)
    results["missing"] = missing
    print(report.as_markdown(results))
    if given.output or not (given.quick or given.only or given.engines):
        report.save(results, given.output or HERE)


def chosen_lines(inputs: Inputs, only: Sequence[str] | None) -> list[Line]:
    """All lines, or those of the groups named, or whose names contain one of the texts."""
    found = [line for lines in GROUPS.values() for line in lines(inputs)]
    if not only:
        return found
    names = [text for text in only if text not in GROUPS]
    return [line for line in found if line.group in only or any(text in line.name for text in names)]


def run_all(
    engines: Sequence[Engine], inputs: Inputs, only: Sequence[str] | None = None, *, cpu: bool = False
) -> dict[str, Any]:
    """Everything, as the plain data that goes into results.json."""
    results = describe(engines, inputs, cpu)
    begun = time.perf_counter()
    for line in chosen_lines(inputs, only):
        try:
            found = line.measure(engines, inputs)
        except NotOffered as error:
            results["left_out"][line.name] = str(error)
            continue
        results["lines"].append(found)
        print(f"{time.perf_counter() - begun:6.0f} s  {line.group:10} {report.in_short(found, cpu)}", flush=True)
    results["seconds"] = round(time.perf_counter() - begun)
    return results


def describe(engines: Sequence[Engine], inputs: Inputs, cpu: bool) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "load_at_start": round(os.getloadavg()[0], 2),
        "clock": "cpu" if cpu else "wall",
        "sizes": vars(inputs.sizes),
        "memory_bandwidth_gb_s": round(floors.memory_bandwidth() / 1e9, 1),
        "engines": {engine.name: {"version": engine.version, "how": engine.how} for engine in engines},
        "lines": [],
        "left_out": {},
    }


if __name__ == "__main__":
    main()
