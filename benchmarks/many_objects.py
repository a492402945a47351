"""How the work on a folder of a store grows with its files: ``python benchmarks/many_objects.py --files 1000 10000``.

The files have 100 rows each and lie in fifty partitions (``catalog.py`` makes them). ``s3_store.py`` serves them; with
``--delay 0.03`` each answer takes 30 ms. Each job is a process of its own, which reports its seconds, those of a
processor, and by how much its memory grew at most. Requests and memory hardly depend on the machine; seconds do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from catalog import PRESENT, URL, make, options, served

JOBS = {
    "list": "pyparq.dataset(url, storage_options=given)",
    "count": "pyparq.dataset(url, catalog='off', storage_options=given).count()",
    "plan of a filter": "pyparq.dataset(url, catalog='off', storage_options=given).scan(filters=key).plan()",
    "explain of a filter": "pyparq.dataset(url, catalog='off', storage_options=given).scan(filters=key).explain()",
    "lookup": "pyparq.dataset(url, catalog='off', storage_options=given).lookup('id', value)",
    "catalog, made": "pyparq.index_dataset(url, ['id'], storage_options=given)",
    "catalog, one file more": "more(); pyparq.index_dataset(url, storage_options=given)",
    "lookup by the catalog": "pyparq.dataset(url, storage_options=given).lookup('id', value)",
    "lookup, catalog trusted": "pyparq.dataset(url, catalog='trust', storage_options=given).lookup('id', value)",
}
CHILD = """
import json, sys, time
import pyparq
url, given, value = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
key = pyparq.col("id") == value

def more():
    pyparq.write_table({"id": [1], "user": [1], "amount": [1.0]}, url + "day=00/more.parquet", storage_options=given)

def memory(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

try:
    pyparq.read_metadata(url + "nothing.parquet", storage_options=given)  # the store is opened, and modules are loaded
except FileNotFoundError:
    pass
open("/proc/self/clear_refs", "w").write("5")
before, begun, used = memory("VmRSS"), time.perf_counter(), time.process_time()
JOB
print(json.dumps([time.perf_counter() - begun, time.process_time() - used, memory("VmHWM") - before]))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--delay", type=float, default=0.03)
    parser.add_argument("--only", nargs="+", default=list(JOBS), help="jobs, by their names")
    given = parser.parse_args()
    print("| job | files | seconds | of a processor | requests | lists | serial trips | MB of memory |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for files in given.files:
        with tempfile.TemporaryDirectory() as place:
            make(Path(place), files)
            with served(Path(place), given.delay) as url:
                for name in given.only:
                    urllib.request.urlopen(f"{url}/?log").read()
                    command = [sys.executable, "-c", CHILD.replace("JOB", JOBS[name]), URL]
                    done = subprocess.run(
                        [*command, json.dumps(options(url)), str(PRESENT)], capture_output=True, text=True, check=False
                    )
                    told = json.load(urllib.request.urlopen(f"{url}/?log"))
                    if done.returncode:
                        print(f"| {name} | {files:,} | failed: {done.stderr.strip().splitlines()[-1]} |", flush=True)
                        continue
                    seconds, used, grown = json.loads(done.stdout)
                    counts = f"{told['requests'] - 1:,} | {told['lists']:,} | {told['trips'] - 1:,}"
                    print(f"| {name} | {files:,} | {seconds:.2f} | {used:.2f} | {counts} | {grown:.0f} |", flush=True)


if __name__ == "__main__":
    main()
