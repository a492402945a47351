"""Reads damaged files in a process of its own: bounded in memory, watched for hangs, and reporting as JSON.

``python hostile_worker.py job.json`` runs the cases of one job (see ``run``). The process is killed when one read takes
longer than ten seconds; the parent then finds the guilty case in the progress file.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import random
import resource
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

MEMORY = 512 << 20
"""Bytes of private memory that the whole process may have, interpreter and numpy included."""
LISTS = ("+l", "+L", "+m")
EVERY = 8
"""Of the mutations of a struct, one of so many is kept to be worked over; which, depends on the first case."""
SECONDS = 10
"""One damaged file, however it is read."""


class Wrong(Exception):
    """A read that neither failed as it should nor gave what it should."""


# ---- what a table must be, and what it holds


def check_column(column: Any) -> None:
    """The promises of the Arrow layout: whoever takes the column indexes its buffers without a further look."""
    end = column.offset + column.length
    if column.validity is not None and len(column.validity) * 8 < end:
        raise Wrong("a validity bitmap that is too short")
    type_ = column.type
    if type_.is_binary_like or type_.format in LISTS:
        offsets = column.offsets()
        if len(offsets) < column.length + 1 or offsets[0] < 0 or (offsets[1:] < offsets[:-1]).any():
            raise Wrong("offsets that are no offsets")
        if offsets[-1] > (column.buffers[1].nbytes if type_.is_binary_like else column.children[0].length):
            raise Wrong("offsets beyond the data")
        if type_.kind == "string":
            bytes(column.buffers[1][offsets[0] : offsets[-1]]).decode()
    elif type_.format == "b":
        if len(column.buffers[0]) * 8 < end:
            raise Wrong("a bitmap that is too short")
    elif type_.format != "n" and not type_.is_nested and column.buffers[0].nbytes < end * type_.byte_width:
        raise Wrong("a buffer that is too short")
    for child in column.children:
        if type_.format == "+s" and child.length < end:
            raise Wrong("a field of a struct that is too short")
        check_column(child)


def digest(table: Any) -> str:
    """A hash of all values; what lies under nulls does not count."""
    state = hashlib.sha256(str(table.schema).encode())
    for batch in table.batches:
        for column in batch.columns:
            check_column(column)
            _add(state, column)
    return state.hexdigest()


def _add(state: Any, column: Any) -> None:
    valid = column.valid_mask()
    state.update(b"-" if valid is None else valid.tobytes())
    kind = column.type
    if kind.is_binary_like or kind.format in LISTS:
        offsets = column.offsets()
        state.update((offsets[1:] - offsets[:-1]).astype("<i8").tobytes())
    if kind.is_binary_like:
        state.update(column.buffers[1][offsets[0] : offsets[-1]].tobytes())
    elif not kind.is_nested and kind.format != "n":
        values = column.values()
        state.update(values.tobytes() if valid is None else values[valid].tobytes())
    for child in column.children:  # the reader keeps nothing below null or unused slots of lists
        _add(state, child)


# ---- one damaged file


def damage(data: bytes, regions: dict[str, list[list[int]]], rng: random.Random) -> tuple[bytes, str]:
    """A copy with one to eight bytes changed, all in one kind of region."""
    kind = rng.choice(list(regions))
    spans = regions[kind]
    copy = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        start, end = rng.choice(spans)
        at = rng.randrange(start, end)
        how = rng.randrange(4)
        if how == 0:
            copy[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            copy[at] = rng.randrange(256)
        elif how == 2:
            copy[at] = rng.choice((0, 0xFF, 0x7F, 0x80))
        else:
            copy[at] = (copy[at] + rng.choice((-1, 1))) % 256
    return bytes(copy), kind


def reads(pyparq: Any, data: bytes, filters: list[Any], options: dict[str, Any]) -> list[str]:
    """One full read and one per filter, each as a digest or, where it failed as it may, the error's name."""
    found = []
    for condition in (None, *filters):
        try:
            found.append(digest(pyparq.read_table(data, filters=condition, **options)))
        except pyparq.ParquetError as error:
            str(error)
            found.append(f"error {type(error).__name__}")
    return found


def look_around(pyparq: Any, data: bytes) -> None:
    """Everything that shows what is in a file, without caring for what it says."""
    try:
        file = pyparq.ParquetFile(data)
    except pyparq.ParquetError:
        return
    asks = [lambda: str(file.schema_arrow), lambda: repr(file.metadata), lambda: file.key_value_metadata]
    asks += [lambda: str(file.scan(columns=[]).explain()), lambda: str(file.scan().plan())]
    groups = min(file.num_row_groups, 4)
    for g in range(groups):
        asks.append(lambda g=g: file.metadata.row_group(g).sorting_columns)
        for c in range(min(len(file.tree.leaves), 12)):
            asks += [
                lambda g=g, c=c: repr(file.metadata.row_group(g).column(c)),
                lambda g=g, c=c: file.metadata.row_group(g).column(c).bounds,
                lambda g=g, c=c: file.metadata.row_group(g).column(c).encodings,
                lambda g=g, c=c: file.pages(g, c),
                lambda g=g, c=c: file.column_index(g, c),
                lambda g=g, c=c: file.page_locations(g, c),
                lambda g=g, c=c: file.bloom_filter(g, c),
            ]
    for ask in asks:
        try:
            ask()
        except pyparq.ParquetError as error:
            str(error)


def one_case(pyparq: Any, subject: dict[str, Any], rng: random.Random, fixed: dict[str, Any]) -> str:
    data, kind = damage(subject["data"], subject["regions"], rng)
    # Each index is off now and then, so that damage behind it is met.
    options = {
        name: rng.random() < 0.8
        for name in ("use_statistics", "use_bloom_filters", "use_dictionaries", "use_page_index")
    }
    if kind == "unchecked":  # the same bodies, with checksums ignored: the decoders themselves meet the damage
        options["verify_checksums"] = False
    options |= fixed
    filters = rng.sample(subject["filters"], 1)
    for got, want in zip(
        reads(pyparq, data, filters, options), [subject["whole"], *map(subject["expected"].get, map(str, filters))]
    ):
        if got.startswith("error "):
            continue
        if kind == "body" and got != want:
            raise Wrong(f"damage under a CRC gave other data (filters {filters}, {options})")
    if rng.random() < 0.3:
        look_around(pyparq, data)
    return kind


def changed_struct(pyparq: Any, subject: dict[str, Any], seed: int) -> str:
    """Case ``seed`` is the mutation of that number; those that do not exist any more are no work."""
    if "mutations" not in subject:
        from hostile_structs import Workpiece

        subject["mutations"] = list(Workpiece(subject["data"]).mutations())
    if seed >= len(subject["mutations"]):
        return "none"
    what, data = subject["mutations"][seed]
    try:
        reads(pyparq, data, subject["filters"], {})
        reads(pyparq, data, subject["filters"], {"use_statistics": False, "use_bloom_filters": False})
        look_around(pyparq, data)
    except Exception as error:
        raise Wrong(what) from error
    return what.split(" ")[0]


def worked_over(pyparq: Any, subject: dict[str, Any], seed: int) -> str:
    """Everything that takes the whole file, with one struct changed or a few bytes, or both."""
    from hostile_structs import several_changes
    from hostile_work import work

    rng = random.Random(seed)
    data, what = subject["data"], "as it is"
    if rng.random() < 0.8:
        what, data = rng.choice(subject["mutations"])
    if rng.random() < 0.3:
        what, data = several_changes(data, rng, what)
    if rng.random() < 0.3:
        end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        data, kind = damage(data, {"pages and indexes": [[4, end]], "footer": [[end, len(data)]]}, rng)
        what = f"{what}, {kind}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            return work(pyparq, data, Path(folder), Wrong)
        except Exception as error:
            Path(f"{os.environ.get('PYPARQ_KEEP', folder)}/case_{seed}.parquet").write_bytes(data)
            raise Wrong(f"{what}: {error}") from error


def as_it_is(pyparq: Any, path: str) -> str:
    """Read a file that was made to mislead; it must be refused, whatever memory it asks for."""
    (outcome,) = reads(pyparq, Path(path).read_bytes(), [], {"use_threads": True})
    if not outcome.startswith("error"):
        raise Wrong("a bomb was read")
    return outcome


# ---- a job


def prepare(pyparq: Any, job: dict[str, Any]) -> None:
    for subject in job["subjects"]:
        subject["data"] = Path(subject["path"]).read_bytes()
        subject["filters"] = [[tuple(t) for t in f] for f in subject["filters"]]
        options = {"use_page_index": False}
        whole, *rest = reads(pyparq, subject["data"], subject["filters"], options)
        subject["whole"], subject["expected"] = whole, dict(zip(map(str, subject["filters"]), rest))
        if any(x.startswith("error") for x in (whole, *rest)):
            raise Wrong(f"the undamaged {subject['path']} does not read: {whole}, {rest}")
        if job.get("work"):
            from hostile_structs import Workpiece

            subject["mutations"] = list(
                islice(Workpiece(subject["data"]).mutations(), job["first"] % EVERY, None, EVERY)
            )


def memory(what: str) -> int:
    """Bytes of this process: ``VmHWM`` is the most that was ever resident (getrusage would count the parent's too)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"no {what} in /proc/self/status")


def case_of(job: dict[str, Any], seed: int, pyparq: Any) -> str:
    """Run one case; its kind."""
    if job.get("bombs"):
        return as_it_is(pyparq, job["bombs"][seed])
    if job.get("work"):
        return worked_over(pyparq, job["subjects"][seed % len(job["subjects"])], seed)
    if job.get("structs"):
        return changed_struct(pyparq, job["subjects"][0], seed)
    subject = job["subjects"][seed % len(job["subjects"])]
    try:
        return one_case(pyparq, subject, random.Random(seed), job.get("options", {}))
    except Exception as error:
        raise Wrong(f"{subject['path']}: {error}") from error


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Cases ``first`` to ``first + count``; each is its own seed, so one can be run alone (``only``)."""
    import pyparq

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    prepare(pyparq, job)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", pyparq.errors.CorruptIndexWarning)
    progress = os.open(job["progress"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    outcomes: Counter[str] = Counter()
    failures = []
    step = job.get("step", 1)
    for seed in range(job["first"], job["first"] + job["count"] * step, step):
        os.pwrite(progress, b"%12d" % seed, 0)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            outcomes[case_of(job, seed, pyparq)] += 1
        except BaseException as error:  # a panic of a Rust library derives from it
            text = "".join(traceback.format_exception(error)[-14:])
            failures.append({"seed": seed, "error": f"{type(error).__name__}: {error}", "trace": text})
    faulthandler.cancel_dump_traceback_later()
    return {"outcomes": outcomes, "failures": failures[:20], "failed": len(failures), "peak": memory("VmHWM")}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
